/* include/weft.h on top of client, train and zoo. Nothing is computed here: names and structs
 * are translated. */
#include "api/api_priv.h"

#include "stablehlo/stablehlo.h"
#include "train/train.h"
#include "zoo/zoo.h"

#include <stdlib.h>

struct WeftError {
  int code;
  char *text;
};
#define PROGRAM(p) ((ClientProgram *)(void *)(p))
#define BUFFER(b) ((ClientBuffer *)(void *)(b))

WeftError *api_wrap(Err *e) {
  if (!e) return NULL;
  WeftError *w = xmalloc(sizeof *w);
  w->code = (int)e->code;
  w->text = err_text(e);
  err_free(e);
  return w;
}

API const char *weft_version(void) { return WEFT_VERSION; }
API int weft_error_code(const WeftError *e) { return e ? e->code : 0; }
API const char *weft_error_message(const WeftError *e) { return e ? e->text : ""; }
API void weft_error_free(WeftError *e) {
  if (!e) return;
  free(e->text);
  free(e);
}

/* ---- client ---------------------------------------------------------------------------------- */

API WeftError *weft_client_open(const char *plugin, const char *device, WeftClient **out) {
  ClientOption o = {.name = "device", .str = device};
  return api_wrap(client_open(plugin, &o, !plugin && device ? 1 : 0, (Client **)(void *)out));
}
API void weft_client_close(WeftClient *c) { client_close(CLIENT(c)); }
API const char *weft_client_platform(const WeftClient *c) { return client_platform(CLIENT(c)); }
API int weft_client_device_count(const WeftClient *c) { return client_device_count(CLIENT(c)); }
static bool has_device(const WeftClient *c, int i) {
  return i >= 0 && i < client_device_count(CLIENT(c));
}
API const char *weft_client_device_kind(const WeftClient *c, int i) {
  return has_device(c, i) ? client_device_kind(CLIENT(c), i) : "";
}

static int count_of(const Module *m, const char *name) {
  const Attr *a = attrs_get(m->attrs, m->n_attrs, name);
  return a && a->kind == AT_INT && a->i > 0 && a->i < 1 << 20 ? (int)a->i : 1;
}

API WeftError *weft_compile(WeftClient *c, const void *program, size_t n, WeftProgram **out) {
  ClientCompileOpts opts = {0};
  Module *m = NULL;
  Err *e = stablehlo_read("program", (Str){program, n}, &m);
  if (!e) {
    opts.replicas = count_of(m, "mhlo.num_replicas");
    opts.partitions = count_of(m, "mhlo.num_partitions");
  }
  err_free(e); /* the plugin may know more than weft; else it says what is wrong */
  module_free(m);
  return api_wrap(
      client_compile(CLIENT(c), (Str){program, n}, &opts, (ClientProgram **)(void *)out));
}
API int weft_program_processes(const WeftProgram *p) {
  return client_program_processes(PROGRAM(p));
}
API void weft_program_free(WeftProgram *p) { client_program_free(PROGRAM(p)); }
API int weft_program_outputs(const WeftProgram *p) { return client_program_outputs(PROGRAM(p)); }
API void weft_program_cost(const WeftProgram *p, WeftCost *out) {
  ClientStats s;
  client_program_stats(PROGRAM(p), &s);
  *out = (WeftCost){s.argument_bytes, s.output_bytes,   s.temp_bytes, s.peak_bytes,
                    s.flops,          s.bytes_accessed, s.optimal_s};
}

API WeftError *weft_buffer_new(WeftClient *c, int device, WeftType type, int rank,
                               const int64_t *dims, const void *data, WeftBuffer **out) {
  bool some = true;
  if (!has_device(c, device))
    return api_wrap(err_new(ERR_INVALID, "there is no device %d: they are 0 to %d", device,
                            client_device_count(CLIENT(c)) - 1));
  if (type < WEFT_BOOL || type > WEFT_C128)
    return api_wrap(err_new(ERR_INVALID, "no element type has the number %d", (int)type));
  if (rank < 0 || (rank && !dims))
    return api_wrap(err_new(ERR_INVALID, "%d dimensions that are not told", rank));
  for (int i = 0; i < rank; i++) {
    if (dims[i] < 0)
      return api_wrap(
          err_new(ERR_INVALID, "dimension %d has the size %lld", i, (long long)dims[i]));
    some &= dims[i] > 0;
  }
  if (!data && some) return api_wrap(err_new(ERR_INVALID, "a buffer without data"));
  return api_wrap(client_buffer_from_host(CLIENT(c), device, (DType)type, rank, dims, data,
                                          (ClientBuffer **)(void *)out));
}
API void weft_buffer_free(WeftBuffer *b) { client_buffer_free(BUFFER(b)); }
API WeftType weft_buffer_type(const WeftBuffer *b) {
  return (WeftType)client_buffer_type(BUFFER(b));
}
API WeftError *weft_buffer_dims(const WeftBuffer *b, int *rank, const int64_t **dims) {
  return api_wrap(client_buffer_dims(BUFFER(b), rank, dims));
}
API WeftError *weft_buffer_read(WeftBuffer *b, void *dst, size_t n) {
  return api_wrap(client_buffer_to_host(BUFFER(b), dst, n));
}
API WeftError *weft_execute(WeftProgram *p, WeftBuffer *const *args, int n, WeftBuffer **outs) {
  for (int i = 0; i < n * weft_program_processes(p); i++)
    if (!args[i])
      return api_wrap(err_new(ERR_INVALID, "argument %d of process %d is no buffer", i % n, i / n));
  return api_wrap(client_execute(PROGRAM(p), (ClientBuffer *const *)(const void *)args, n,
                                 (ClientBuffer **)(void *)outs));
}

/* ---- trainer --------------------------------------------------------------------------------- */

static Err *find_model(const char *name, const Model **out) {
  return name ? zoo_find(name, out) : err_new(ERR_INVALID, "no model is named");
}

API WeftError *weft_train_defaults(const char *name, WeftTrainOptions *out) {
  const Model *m;
  Err *e = find_model(name, &m);
  if (e) return api_wrap(e);
  TrainConfig c = {0};
  m->defaults(&c);
  *out = (WeftTrainOptions){.model = m->name,
                            .data = m->data,
                            .batch = c.batch,
                            .steps = c.steps,
                            .epochs = c.epochs,
                            .learning_rate = c.opt.lr,
                            .seed = 1,
                            .length = c.length,
                            .layers = c.size};
  return NULL;
}

static Err *sensible(const WeftTrainOptions *o) {
  if (o->batch < 1) return err_new(ERR_INVALID, "a batch has at least one example");
  if (o->steps < 0 || !(o->epochs >= 0 && o->epochs < 1e9))
    return err_new(ERR_INVALID, "%lld steps, %g epochs", (long long)o->steps, o->epochs);
  if (o->steps == 0 && o->epochs == 0)
    return err_new(ERR_INVALID, "neither steps nor epochs are told");
  if (!(o->learning_rate >= 0 && o->learning_rate < 1e9))
    return err_new(ERR_INVALID, "a learning rate of %g", o->learning_rate);
  if (o->layers < 0 || o->length < 0)
    return err_new(ERR_INVALID, "%d layers, length %lld", o->layers, (long long)o->length);
  return NULL;
}

static Err *resolve(const WeftTrainOptions *o, const Model **model, TrainConfig *c, Data **data) {
  TRY(find_model(o->model, model));
  TRY(sensible(o));
  *c = (TrainConfig){.augment = true};
  (*model)->defaults(c);
  int replicas = o->replicas > 1 ? o->replicas : 1;
  if (o->batch % replicas)
    return err_new(ERR_INVALID, "a batch of %lld does not divide into %d replicas",
                   (long long)o->batch, replicas);
  c->batch = o->batch / replicas;
  c->replicas = o->replicas;
  c->steps = o->steps;
  c->epochs = o->epochs;
  c->opt.lr = o->learning_rate;
  c->seed = o->seed;
  c->compute = o->bf16 ? DT_BF16 : DT_F32;
  c->size = o->layers;
  c->length = o->length;
  DataOpts d = model_data(*model, c);
  d.tokenizer = o->bpe_dir;
  return data_open(o->data ? o->data : (*model)->data, &d, data);
}

static void forward(void *arg, const Progress *p) {
  const WeftTrainOptions *o = arg;
  if (p->batches) return; /* part of an evaluation: no result yet */
  WeftProgress w = {.step = p->step,
                    .steps = p->steps,
                    .epoch = p->epoch,
                    .loss = p->loss,
                    .accuracy = p->accuracy,
                    .examples_per_s = p->examples_per_s,
                    .seconds_left = p->left_s,
                    .input_wait = p->exposed_share,
                    .test = p->eval};
  if (o->progress && !p->batches)
    o->progress(o->user, &w); /* an evaluation that goes on has no result */
}

API WeftError *weft_train(WeftClient *client, const WeftTrainOptions *o, WeftTrainResult *out) {
  TrainOpts t = {.client = CLIENT(client),
                 .out = o->out_dir,
                 .resume = o->resume,
                 .init = o->init,
                 .overwrite = o->overwrite,
                 .save_s = TRAIN_SAVE_S,
                 .progress = forward,
                 .arg = (void *)o};
  Data *data = NULL;
  TrainResult r;
  Err *e = resolve(o, &t.model, &t.config, &data);
  t.data = data;
  if (!e) e = train_run(&t, &r);
  data_close(data);
  if (e) return api_wrap(e);
  *out = (WeftTrainResult){r.train_loss, r.test_loss, r.test_accuracy, r.step_s,
                           r.exposed_s,  r.compile_s, r.total_s,       r.steps};
  return NULL;
}

API WeftError *weft_train_program(const WeftTrainOptions *o, char **out) {
  const Model *model;
  TrainConfig c;
  Data *data = NULL;
  StepProgram p;
  Err *e = resolve(o, &model, &c, &data);
  if (!e) e = step_build(model, &c, data, true, &p);
  data_close(data);
  if (e) return api_wrap(e);
  Buf text = {0};
  stablehlo_write_text(&text, p.m, NULL);
  step_free(&p);
  *out = text.p;
  return NULL;
}
API void weft_text_free(char *text) { free(text); }
