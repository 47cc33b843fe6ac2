/* A network for other programs: StableHLO with everything inside, weights under others' names, and
 * the few lines that read them. */
#include "infer/infer_priv.h"

#include "base/system.h"
#include "infer/loaders.h"
#include "infer/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static Err *weight(void *arg, const StateSpec *s, const NamedTensor **out) {
  return infer_tensor(arg, s, out);
}

/* "h0/fc/lora_a" of "h0/fc/kernel"; NULL: none. */
static const NamedTensor *beside(const Infer *i, const char *kernel, const char *name) {
  char *full = xasprintf("%.*s%s", (int)(strlen(kernel) - strlen("kernel")), kernel, name);
  const NamedTensor *t = NULL;
  for (int k = 0; k < i->n_weights && !t; k++)
    if (!strcmp(i->specs[k].name, full)) err_free(infer_tensor(i, &i->specs[k], &t));
  free(full);
  return t;
}

/* A kernel with what was learnt beside it; NULL: nothing was. */
static float *with_lora(const Infer *i, const StateSpec *s, const NamedTensor *t) {
  if (!str_ends(str_from(s->name), "/kernel") || s->rank != 2) return NULL;
  const NamedTensor *a = beside(i, s->name, "lora_a"), *b = beside(i, s->name, "lora_b");
  if (!a || !b) return NULL;
  int64_t rows = s->dims[0], cols = s->dims[1], rank = a->dims[1];
  float *w = xmalloc(sizeof *w * (size_t)(rows * cols) + 1);
  memcpy(w, t->data, sizeof *w * (size_t)(rows * cols));
  for (int64_t r = 0; r < rows; r++)
    for (int64_t k = 0; k < rank; k++) {
      float scale = (float)LORA_SCALE * ((const float *)a->data)[r * rank + k];
      const float *row = (const float *)b->data + k * cols;
      for (int64_t c = 0; c < cols; c++) w[r * cols + c] += scale * row[c];
    }
  return w;
}

static Err *write_weights(const Infer *i, const char *to, NameStyle style, const char *name) {
  TensorVec v = {0};
  Err *e = NULL;
  for (int k = 0; k < i->n_weights && !e; k++) {
    const NamedTensor *t;
    e = infer_tensor(i, &i->specs[k], &t);
    if (e) break;
    if (strstr(i->specs[k].name, "/lora_")) continue; /* in its kernel */
    NamedTensor ours = *t;
    ours.name = i->specs[k].name; /* an average is exported as the weight */
    float *merged = with_lora(i, &i->specs[k], t);
    if (merged) ours.data = merged;
    names_export(style, i->model, &ours, &v);
    free(merged);
  }
  char *path = xasprintf("%s/%s", to, name);
  const char *meta[] = {"format", style == NAMES_TORCH ? "pt" : "keras", "model", i->info.model};
  if (!e) e = safetensors_write(path, v.n, v.v, 2, meta);
  free(path);
  safetensors_free(v.n, v.v);
  return e;
}

static Err *write_program(const Infer *i, const ExportOpts *o) {
  TrainConfig c = i->info.config;
  c.batch = o->batch ? o->batch : 1;
  c.replicas = 0;
  StepProgram p;
  TRY(forward_build_with(i->model, &c, i->info.data, weight, (void *)i, &p));
  Err *e = export_program(i, o->to, p.m);
  step_free(&p);
  return e;
}

static Err *write_loaders(const Infer *i, const char *to) {
  const char *torch = loader_pytorch(i->model), *keras = loader_keras(i->model);
  TRY(export_put(to, "load_jax.py", loader_jax, strlen(loader_jax)));
  if (torch) TRY(export_put(to, "load_pytorch.py", torch, strlen(torch)));
  if (keras) TRY(export_put(to, "load_keras.py", keras, strlen(keras)));
  return NULL;
}

Err *infer_export(const Infer *i, const ExportOpts *o) {
  TRY(folder_make(o->to));
  if (i->own) return own_export(i, o);
  TRY(write_program(i, o));
  TRY(write_weights(i, o->to, NAMES_TORCH, "pytorch.safetensors"));
  TRY(write_weights(i, o->to, NAMES_KERAS, "keras.safetensors"));
  return write_loaders(i, o->to);
}
