/* The list of models. */
#include "zoo/zoo.h"

const Model *const zoo_all[] = {
#define X(name) &zoo_##name,
    ZOO(X)
#undef X
        NULL};

Err *zoo_find(const char *name, const Model **out) {
  Buf names = {0};
  Nearest near = {.want = str_from(name)};
  for (int i = 0; zoo_all[i]; i++) {
    if (!strcmp(zoo_all[i]->name, name)) {
      *out = zoo_all[i];
      buf_free(&names);
      return NULL;
    }
    buf_printf(&names, "%s%s", i ? ", " : "", zoo_all[i]->name);
    nearest_see(&near, zoo_all[i]->name);
  }
  Err *e = err_new(ERR_NOT_FOUND, "there is no model '%s'", name);
  if (near.best) err_hint(e, "did you mean %s? models: %s", near.best, names.p);
  else err_hint(e, "models: %s", names.p);
  buf_free(&names);
  return e;
}

int64_t zoo_weights(const Model *m) {
  TrainConfig c = {.compute = DT_F32};
  m->defaults(&c);
  c.batch = 1;
  if (c.length) c.length = 8;
  DataOpts o = model_data(m, &c);
  Data *d;
  StepProgram p = {0};
  Err *e = data_open("synthetic", &o, &d);
  if (!e) {
    e = forward_build(m, &c, d, &p);
    data_close(d);
  }
  int64_t n = e ? 0 : p.n_weights;
  if (!e) step_free(&p);
  err_free(e);
  return n;
}
