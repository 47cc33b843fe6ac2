/* The coefficients, and their other values. */
#include "plan/plan_priv.h"

PlanCoefs plan_coef = {
#define COEF(key, value, what) .key = value,
#include "plan/coefficients.def"
#undef COEF
};

Err *plan_coef_set(const char *key, double value) {
  Nearest near = {.want = str_from(key)};
#define COEF(name, otherwise, what)                             \
  if (!strcmp(key, #name)) return plan_coef.name = value, NULL; \
  nearest_see(&near, #name);
#include "plan/coefficients.def"
#undef COEF
  Err *e = err_new(ERR_NOT_FOUND, "no coefficient is called '%s'", key);
  return near.best ? err_hint(e, "did you mean %s?", near.best) : e;
}
