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
