/* Text token by token. With caches a program gets some tokens and remembers the rest; without, one
 * that gets all of them runs for each: both ask the same network. */
#include "infer/infer_priv.h"

#include <stdlib.h>

enum { PROMPT_PART = 16 }; /* tokens of a prompt that are taken at once */

typedef struct Writer {
  Infer *i;
  int64_t context, vocabulary;
  bool cached;
  int n_cache;
  StepProgram step;          /* of one token: names its caches */
  ClientProgram *one, *part; /* cached: of 1 and of PROMPT_PART tokens */
  ClientBuffer **cache;
  int64_t at;    /* tokens that the caches hold */
  float *logits; /* of the last token */
  IdVec ids;     /* all that the network sees */
} Writer;

static Err *open_programs(Writer *w) {
  Infer *i = w->i;
  TrainConfig c = i->info.config;
  c.batch = 1;
  c.replicas = 0;
  TRY(decode_build(i->model, &c, i->info.data, 1, &w->step));
  if (!w->cached) return NULL;
  TRY(infer_compile(i, w->step.m, &w->one));
  if (w->context < PROMPT_PART) return NULL;
  StepProgram p;
  TRY(decode_build(i->model, &c, i->info.data, PROMPT_PART, &p));
  Err *e = infer_compile(i, p.m, &w->part);
  step_free(&p);
  return e;
}

/* Caches of zeros. */
static Err *empty_caches(Writer *w) {
  Infer *i = w->i;
  w->n_cache = w->step.n_state - i->n_weights;
  w->at = 0;
  if (!w->cached) return NULL;
  if (!w->cache) w->cache = xcalloc((size_t)w->n_cache + 1, sizeof *w->cache);
  for (int k = 0; k < w->n_cache; k++) {
    const StateSpec *s = &w->step.state[i->n_weights + k];
    size_t n = (size_t)dtype_bytes(s->type);
    for (int r = 0; r < s->rank; r++) n *= (size_t)s->dims[r];
    void *zeros = xcalloc(n + 1, 1);
    client_buffer_free(w->cache[k]);
    w->cache[k] = NULL;
    Err *e = client_buffer_from_host(i->client, i->device, s->type, s->rank, s->dims, zeros,
                                     &w->cache[k]);
    free(zeros);
    TRY(e);
  }
  return NULL;
}

/* n tokens from position w->at on; their last one's logits. */
static Err *feed(Writer *w, ClientProgram *exe, int64_t n, const int32_t *ids) {
  Infer *i = w->i;
  int nw = i->n_weights, n_args = nw + w->n_cache + 2;
  ClientBuffer **args = xcalloc((size_t)n_args, sizeof *args);
  ClientBuffer **out = xcalloc((size_t)w->n_cache + 1, sizeof *out);
  int32_t at = (int32_t)w->at;
  memcpy(args, i->weights, sizeof *args * (size_t)nw);
  memcpy(args + nw, w->cache, sizeof *args * (size_t)w->n_cache);
  Err *e = client_buffer_from_host(i->client, i->device, DT_I32, 2, (int64_t[]){1, n}, ids,
                                   &args[n_args - 2]);
  if (!e)
    e = client_buffer_from_host(i->client, i->device, DT_I32, 0, NULL, &at, &args[n_args - 1]);
  if (!e) e = client_execute(exe, args, n_args, out);
  if (!e) {
    size_t size = sizeof(float) * (size_t)(n * w->vocabulary);
    float *all = xmalloc(size);
    e = client_buffer_to_host(out[w->n_cache], all, size);
    memcpy(w->logits, all + (n - 1) * w->vocabulary, sizeof(float) * (size_t)w->vocabulary);
    free(all);
    client_buffer_free(out[w->n_cache]);
    for (int k = 0; k < w->n_cache; k++) {
      client_buffer_free(w->cache[k]);
      w->cache[k] = out[k];
    }
    w->at += n;
  }
  client_buffer_free(args[n_args - 2]);
  client_buffer_free(args[n_args - 1]);
  free(args);
  free(out);
  return e;
}

/* The logits behind the last of w->ids. */
static Err *look(Writer *w) {
  if (w->ids.n > w->context) { /* full: the last half stays */
    int keep = (int)MAX(1, w->context / 2);
    memmove(w->ids.v, w->ids.v + w->ids.n - keep, sizeof *w->ids.v * (size_t)keep);
    w->ids.n = keep;
    TRY(empty_caches(w));
  }
  if (!w->cached) { /* what stands behind the last token changes nothing for it */
    int32_t *all = xcalloc((size_t)w->context, sizeof *all);
    float *logits = xmalloc(sizeof *logits * (size_t)(w->context * w->vocabulary));
    memcpy(all, w->ids.v, sizeof *all * (size_t)w->ids.n);
    Err *e = infer_forward(w->i, 1, all, logits);
    if (!e)
      memcpy(w->logits, logits + (w->ids.n - 1) * w->vocabulary,
             sizeof *logits * (size_t)w->vocabulary);
    free(all);
    free(logits);
    return e;
  }
  while (w->at < w->ids.n) {
    bool many = w->part && w->ids.n - w->at >= PROMPT_PART;
    TRY(feed(w, many ? w->part : w->one, many ? PROMPT_PART : 1, w->ids.v + w->at));
  }
  return NULL;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static Err *write_tokens(Writer *w, const GenerateOpts *o, Generated *out) {
  VEC(double) times = {0};
  Err *e = NULL;
  for (int64_t k = 0; k < o->tokens && !e; k++) {
    double from = time_now_s();
    e = look(w);
    if (e) break;
    int32_t id = sample_token(&o->sampling, w->vocabulary, w->logits, (uint64_t)k);
    *vec_push(&w->ids) = id;
    *vec_push(&out->ids) = id;
    double s = time_now_s() - from;
    if (!k) out->prompt_s = s;
    else *vec_push(&times) = s;
    if (o->each && !o->each(o->arg, id)) break;
  }
  if (times.n) qsort(times.v, (size_t)times.n, sizeof *times.v, by_value);
  out->each_s = times.n ? times.v[times.n / 2] : out->prompt_s;
  vec_free(&times);
  return e;
}

Err *infer_generate(Infer *i, const IdVec *prompt, const GenerateOpts *o, Generated *out) {
  const CheckpointInfo *c = &i->info;
  Writer w = {
      .i = i, .context = c->config.length, .vocabulary = c->data->classes, .cached = !o->no_cache};
  *out = (Generated){0};
  if (!i->model->generates)
    return err_hint(err_new(ERR_UNIMPLEMENTED, "model '%s' makes no text", c->model),
                    "gpt2, llama, moe, lstm and gru do");
  if (!prompt->n) return err_new(ERR_INVALID, "the prompt is empty");
  for (int k = 0; k < prompt->n; k++) *vec_push(&w.ids) = prompt->v[k];
  if (prompt->n > w.context) { /* the network never saw longer ones */
    memmove(w.ids.v, w.ids.v + prompt->n - w.context, sizeof *w.ids.v * (size_t)w.context);
    w.ids.n = (int)w.context;
  }
  w.logits = xmalloc(sizeof *w.logits * (size_t)w.vocabulary);
  Err *e = open_programs(&w);
  if (!e) e = empty_caches(&w);
  if (!e) e = write_tokens(&w, o, out);
  for (int k = 0; w.cache && k < w.n_cache; k++) client_buffer_free(w.cache[k]);
  free(w.cache);
  client_program_free(w.one);
  client_program_free(w.part);
  step_free(&w.step);
  free(w.logits);
  vec_free(&w.ids);
  if (e) vec_free(&out->ids);
  return e;
}
