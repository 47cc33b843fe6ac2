/* A run of a train step of one's own for other programs: its state, and the network where a program tells it. */
#include "infer/infer_priv.h"
#include "infer/loaders.h"

#include <stdlib.h>

static Err *weight(void *arg, const StateSpec *s, const NamedTensor **out) {
  return infer_tensor(arg, s, out);
}

/* The whole state, as `weft train --init` and safetensors' users take it. */
static Err *write_state(const Infer *i, const char *to) {
  NamedTensor *t = xcalloc((size_t)i->n_file + 1, sizeof *t);
  for (int k = 0; k < i->n_file; k++) {
    t[k] = i->file[k];
    t[k].name = (char *)(uintptr_t)adopt_state_path(i->own, i->file[k].name);
  }
  char *path = xasprintf("%s/state.safetensors", to);
  const char *meta[] = {"model", i->info.model};
  Err *e = safetensors_write(path, i->n_file, t, 1, meta);
  free(path);
  free(t);
  return e;
}

Err *own_export(const Infer *i, const ExportOpts *o) {
  TRY(write_state(i, o->to));
  TRY(export_put(o->to, "load_state.py", loader_state, strlen(loader_state)));
  if (!i->fixed) return NULL;
  if (o->batch && o->batch != i->fixed)
    return err_new(ERR_INVALID, "--batch %lld: the program that predicts is made for %lld examples",
                   (long long)o->batch, (long long)i->fixed);
  StepProgram p;
  TRY(adopt_build_predict(i->own, i->info.data, weight, (void *)(uintptr_t)i, &p));
  Err *e = export_program(i, o->to, p.m);
  step_free(&p);
  return e ? e : export_put(o->to, "load_jax.py", loader_jax, strlen(loader_jax));
}
