/* The coefficients, and their other values. */
#include "plan/plan_priv.h"

PlanLaw plan_law = {
#define LAW(key, value, what) .key = value,
#include "plan/law.def"
#undef LAW
};

Err *plan_law_set(const char *key, double value) {
  Nearest near = {.want = str_from(key)};
#define LAW(name, otherwise, what)                             \
  if (!strcmp(key, #name)) return plan_law.name = value, NULL; \
  nearest_see(&near, #name);
#include "plan/law.def"
#undef LAW
  Err *e = err_new(ERR_NOT_FOUND, "no coefficient is called '%s'", key);
  return near.best ? err_hint(e, "did you mean %s?", near.best) : e;
}
