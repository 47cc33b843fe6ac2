/* A checkpoint as a network that answers: weights on the device, programs for batches. */
#include "infer/infer_priv.h"

#include "stablehlo/stablehlo.h"
#include "zoo/zoo.h"

#include <math.h>
#include <stdlib.h>

const CheckpointInfo *infer_info(const Infer *i) { return &i->info; }
const Model *infer_model(const Infer *i) { return i->model; }
int64_t infer_weights(const Infer *i) { return i->elements; }
int64_t infer_outputs(const Infer *i) { return i->outputs; }

int64_t infer_fixed_batch(const Infer *i) { return i->fixed; }
bool infer_by_type(const Infer *i) { return i->own && !adopt_predict_is_named(i->own); }
const Field *infer_field(const Infer *i) { return &i->info.data->fields[MAX(0, i->field)]; }

int64_t infer_classes(const Infer *i) {
  int64_t k = i->info.data->classes;
  bool each = k > 1 && i->outputs == k;
  bool token = k > 1 && infer_field(i)->rank == 1 && i->outputs == k * infer_field(i)->dims[0];
  return !i->own || each || token ? k : 0;
}

size_t infer_input_bytes(const Infer *i) {
  const Field *f = infer_field(i);
  size_t n = (size_t)dtype_bytes(f->type);
  for (int k = 0; k < f->rank; k++) n *= (size_t)f->dims[k];
  return n;
}

/* ---- opening --------------------------------------------------------------------------------- */

Err *infer_tensor(const Infer *i, const StateSpec *s, const NamedTensor **out) {
  char *average = xasprintf("opt/ema/%s", s->name);
  const NamedTensor *t = safetensors_find(i->n_file, i->file, average);
  free(average);
  if (!t) t = safetensors_find(i->n_file, i->file, s->name);
  if (!t) return err_new(ERR_INVALID, "the checkpoint has no tensor '%s'", s->name);
  bool same = t->type == s->type && t->rank == s->rank &&
              (!s->rank || !memcmp(t->dims, s->dims, sizeof *t->dims * (size_t)s->rank));
  if (!same)
    return err_new(ERR_INVALID, "tensor '%s' of the checkpoint has another shape than the model's",
                   s->name);
  *out = t;
  return NULL;
}

Err *infer_compile(Infer *i, const Module *m, ClientProgram **out) {
  Buf code = {0};
  Err *e = stablehlo_write_bytecode(&code, m, NULL);
  if (!e) e = client_compile(i->client, (Str){code.p, code.n}, NULL, out);
  buf_free(&code);
  return err_wrap(e, "compiling '%.*s'", STR_ARG(m->name));
}

static Err *build(const Infer *i, int64_t batch, StepProgram *out) {
  if (i->own) return adopt_build_predict(i->own, i->info.data, NULL, NULL, out);
  TrainConfig c = i->info.config;
  c.batch = batch;
  c.replicas = 0;
  return forward_build(i->model, &c, i->info.data, out);
}

static Err *upload(Infer *i) {
  i->weights = xcalloc((size_t)i->n_weights + 1, sizeof *i->weights);
  for (int k = 0; k < i->n_weights; k++) {
    const StateSpec *s = &i->specs[k];
    const NamedTensor *t;
    TRY(infer_tensor(i, s, &t));
    TRY(client_buffer_from_host(i->client, i->device, s->type, s->rank, s->dims, t->data,
                                &i->weights[k]));
  }
  return NULL;
}

static Err *open_run(Infer *i, const InferOpts *o, const char *path) {
  TRY(checkpoint_info(path, &i->info));
  StepProgram p = {0};
  if (i->info.program) {
    TRY(own_open(i, o, path, &p));
  } else {
    if (o->eval_program || o->predict_program)
      return err_new(ERR_INVALID, "'%s' is a run of model '%s', which needs no program", path,
                     i->info.model);
    TRY(zoo_find(i->info.model, &i->model));
    TRY(build(i, 1, &p));
    i->outputs = type_count(module_main(p.m)->body->last->operands[0]->type);
  }
  i->n_weights = p.n_state;
  i->specs = p.state;
  i->elements = p.n_weights;
  p.state = NULL;
  p.n_state = 0;
  step_free(&p);
  TRY(safetensors_read(path, &i->n_file, &i->file));
  return i->client ? upload(i) : NULL;
}

Err *infer_open(const InferOpts *o, Infer **out) {
  Infer *i = xcalloc(1, sizeof *i);
  *i = (Infer){.client = o->client, .device = o->device, .batch = o->batch ? o->batch : 64};
  char *path = checkpoint_path(o->run);
  Err *e = err_wrap(open_run(i, o, path), "opening '%s'", o->run);
  free(path);
  if (e) infer_close(i);
  else *out = i;
  return e;
}

void infer_close(Infer *i) {
  if (!i) return;
  for (int k = 0; i->weights && k < i->n_weights; k++) client_buffer_free(i->weights[k]);
  for (int k = 0; k < MOST_BATCHES; k++) client_program_free(i->forward[k]);
  for (int k = 0; k < i->n_weights; k++) free(i->specs[k].name);
  free(i->specs);
  free(i->weights);
  safetensors_free(i->n_file, i->file);
  adopt_close(i->own);
  checkpoint_info_free(&i->info);
  free(i);
}

/* ---- forward --------------------------------------------------------------------------------- */

static Err *program_for(Infer *i, int k) {
  if (i->forward[k]) return NULL;
  StepProgram p;
  TRY(build(i, (int64_t)1 << k, &p));
  Err *e = infer_compile(i, p.m, &i->forward[k]);
  step_free(&p);
  return e;
}

/* n <= 1 << k examples by one run. */
static Err *run_batch(Infer *i, int k, int64_t n, const char *inputs, float *logits) {
  TRY(program_for(i, k));
  int64_t size = i->fixed ? i->fixed : (int64_t)1 << k;
  size_t each = infer_input_bytes(i), out = (size_t)i->outputs * sizeof *logits;
  char *full = n < size ? xcalloc((size_t)size, each) : NULL;
  float *all = n < size ? xmalloc(out * (size_t)size) : logits;
  if (full) memcpy(full, inputs, each * (size_t)n);
  const Field *f = infer_field(i);
  int64_t dims[7] = {size};
  memcpy(dims + 1, f->dims, sizeof *dims * (size_t)f->rank);
  ClientBuffer **args = xcalloc((size_t)i->n_weights + 1, sizeof *args), *res = NULL;
  memcpy(args, i->weights, sizeof *args * (size_t)i->n_weights);
  Err *e = client_buffer_from_host(i->client, i->device, f->type, f->rank + 1, dims,
                                   full ? full : inputs, &args[i->n_weights]);
  if (!e) e = client_execute(i->forward[k], args, i->n_weights + 1, &res);
  if (!e) e = client_buffer_to_host(res, all, out * (size_t)size);
  client_buffer_free(res);
  client_buffer_free(args[i->n_weights]);
  if (!e && full) memcpy(logits, all, out * (size_t)n);
  if (full) free(all);
  free(full);
  free(args);
  return e;
}

Err *infer_can_answer(const Infer *i) {
  const char *not = !i->model                       ? NULL
                    : i->model->task == TASK_PIXELS ? "answers with a class for each pixel"
                    : i->model->inputs > 1          ? "takes several arrays"
                                                    : NULL;
  if (not )
    return err_hint(
        err_new(ERR_UNIMPLEMENTED,
                "model '%s' %s: predict and serve take one array and answer with one class",
                i->info.model, not ),
        "weft eval tells how well it does; weft export gives the network to others");
  if (i->field >= 0) return NULL;
  return err_hint(
      err_new(ERR_INVALID, "nothing is known of the network inside the step '%s'", i->info.model),
      "--predict-program PROGRAM, from state and batch to its answers; weft train keeps it "
      "with the run");
}

Err *infer_forward(Infer *i, int64_t n, const void *inputs, float *logits) {
  size_t each = infer_input_bytes(i);
  TRY(infer_can_answer(i));
  for (int64_t at = 0; at < n;) {
    int64_t part = MIN(n - at, i->fixed ? i->fixed : i->batch);
    int k = 0;
    while (!i->fixed && k < MOST_BATCHES - 1 && (int64_t)1 << k < part) k++;
    if (!i->fixed) part = MIN(part, (int64_t)1 << k);
    TRY(run_batch(i, k, part, (const char *)inputs + (size_t)at * each, logits + at * i->outputs));
    at += part;
  }
  return NULL;
}

void infer_softmax(float *v, int64_t k) {
  double most = -INFINITY, sum = 0, least = 0;
  for (int64_t i = 0; i < k; i++) sum += (double)v[i], least = fmin(least, (double)v[i]);
  if (least >= 0 && fabs(sum - 1) < 1e-3) return; /* of a network that ends with it */
  sum = 0;
  for (int64_t i = 0; i < k; i++) most = fmax(most, (double)v[i]);
  for (int64_t i = 0; i < k; i++) sum += exp((double)v[i] - most);
  for (int64_t i = 0; i < k; i++) v[i] = (float)(exp((double)v[i] - most) / sum);
}

/* ---- a test set ------------------------------------------------------------------------------ */

static Err *same_fields(const Data *want, const Data *d) {
  bool same = want->n_fields == d->n_fields;
  for (int k = 0; k < d->n_fields && same; k++) {
    const Field *a = &want->fields[k], *b = &d->fields[k];
    same = a->type == b->type && a->rank == b->rank &&
           (!a->rank || !memcmp(a->dims, b->dims, sizeof *a->dims * (size_t)a->rank));
  }
  if (!same)
    return err_new(ERR_INVALID,
                   "data set '%s' has other inputs than '%s', with which it was trained", d->name,
                   want->name);
  if (d->classes > want->classes)
    return err_new(ERR_INVALID, "data set '%s' has %lld classes, the network knows %lld", d->name,
                   (long long)d->classes, (long long)want->classes);
  return NULL;
}

static Err *score_batches(Infer *i, ClientProgram *exe, Loader *l, int inputs, double sums[3]) {
  int n = i->n_weights;
  ClientBuffer **args = xcalloc((size_t)(n + inputs), sizeof *args);
  memcpy(args, i->weights, sizeof *args * (size_t)n);
  Err *e = NULL;
  for (bool more = true; more && !e;) {
    Batch b = {0};
    double wait;
    e = loader_next(l, &b, &wait, &more);
    if (e || !more) break;
    memcpy(args + n, b.bufs, sizeof *args * (size_t)inputs);
    ClientBuffer *out = NULL;
    float m[3];
    e = client_execute(exe, args, n + inputs, &out);
    if (!e) e = client_buffer_to_host(out, m, sizeof m);
    for (int k = 0; k < 3 && !e; k++) sums[k] += (double)m[k];
    client_buffer_free(out);
    batch_free(l, &b);
  }
  free(args);
  return e;
}

/* The program that scores a batch, and how many examples that is. */
static Err *build_score(Infer *i, const Data *d, int64_t *batch, StepProgram *out) {
  TrainConfig c = i->info.config;
  if (i->own) {
    *batch = adopt_eval_batch(i->own);
    if (!*batch)
      return err_hint(
          err_new(ERR_INVALID, "nothing evaluates the step '%s'", i->info.model),
          "--eval-program PROGRAM, from state and batch to loss and accuracy; weft train keeps "
          "it with the run");
    if (*batch > d->n_test)
      return err_new(
          ERR_INVALID,
          "the program that evaluates takes batches of %lld, '%s' has %lld test examples",
          (long long)*batch, d->name, (long long)d->n_test);
    return adopt_build_score(i->own, d, out);
  }
  *batch = c.batch = MIN(i->batch, d->n_test);
  c.replicas = 0;
  return step_build(i->model, &c, i->info.data, false, out);
}

Err *infer_evaluate(Infer *i, const Data *d, InferScore *out) {
  TRY(same_fields(i->info.data, d));
  if (!d->n_test)
    return err_hint(err_new(ERR_INVALID, "'%s' holds no test examples", d->name),
                    "--data: another set; of an npz, arrays x_test beside x_train, or other files");
  StepProgram p;
  ClientProgram *exe = NULL;
  int64_t batch;
  TRY(build_score(i, d, &batch, &p));
  Err *e = infer_compile(i, p.m, &exe);
  Loader *l = NULL;
  int64_t batches = i->own ? d->n_test / batch : (d->n_test + batch - 1) / batch;
  LoaderOpts lo = {.data = d,
                   .client = i->client,
                   .device = i->device,
                   .test = true,
                   .batch = batch,
                   .n_batches = batches};
  double from = time_now_s(), sums[3] = {0};
  if (!e) e = loader_open(&lo, &l);
  if (!e) e = score_batches(i, exe, l, p.n_inputs, sums);
  loader_close(l);
  client_program_free(exe);
  step_free(&p);
  if (e) return err_wrap(e, "while evaluating");
  *out = (InferScore){.loss = sums[0] / fmax(sums[2], 1),
                      .accuracy = sums[1] / fmax(sums[2], 1),
                      .examples = MIN(d->n_test, batches * batch),
                      .seconds = time_now_s() - from};
  return NULL;
}
