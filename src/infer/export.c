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

/* A kernel with what was learnt beside it; NULL: nothing was. t: as the network uses it, an average where one is kept. */
static float *with_lora(const Infer *i, const StateSpec *s, const NamedTensor *t) {
  if (!str_ends(str_from(s->name), "/kernel") || t->type != DT_F32) return NULL;
  NamedTensor beside[3] = {*t};
  beside[0].name = s->name;
  int n = 1;
  size_t stem = strlen(s->name) - strlen("kernel");
  for (int k = 0; k < i->n_weights && n < 3; k++) {
    const char *name = i->specs[k].name;
    const NamedTensor *found;
    if (strncmp(name, s->name, stem) || strncmp(name + stem, "lora_", 5)) continue;
    Err *none = infer_tensor(i, &i->specs[k], &found);
    if (none) return err_free(none), NULL;
    beside[n] = *found;
    beside[n++].name = i->specs[k].name; /* not "opt/ema/..." */
  }
  float *w = xmalloc(sizeof *w * (size_t)(s->rank == 2 ? s->dims[0] * s->dims[1] : 0) + 1);
  if (lora_merge(n, beside, &beside[0], w)) return w;
  free(w);
  return NULL;
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
  if (loader_keras(i->model)) TRY(write_weights(i, o->to, NAMES_KERAS, "keras.safetensors"));
  return write_loaders(i, o->to);
}
