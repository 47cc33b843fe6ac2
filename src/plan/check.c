/* Does a layout divide what it is to divide? */
#include <math.h>

#include "plan/plan_priv.h"

static bool divides(double part, double whole) { return part > 0 && fmod(whole, part) == 0; }

Err *plan_check(const PlanJob *j) {
  const PlanModel *m = j->model;
  const PlanLayout *l = &j->layout;
  const struct {
    const char *name;
    int ways;
  } ways[] = {{"data", l->dp},    {"tensor", l->tp}, {"pipeline", l->pp},
              {"context", l->cp}, {"expert", l->ep}, {"interleaving", MAX(1, l->vpp)}};
  for (int i = 0; i < COUNT_OF(ways); i++)
    if (ways[i].ways < 1) return err_new(ERR_INVALID, "%d %s ways", ways[i].ways, ways[i].name);
  if (l->devices < 1)
    return err_hint(err_new(ERR_INVALID, "a plan for %d devices", l->devices), "name at least one");
  if ((int64_t)l->dp * l->tp * l->pp * l->cp != l->devices)
    return err_hint(
        err_new(ERR_INVALID,
                "%d data x %d tensor x %d pipeline x %d context ways are %lld devices, not %d",
                l->dp, l->tp, l->pp, l->cp, (long long)l->dp * l->tp * l->pp * l->cp, l->devices),
        "the product of the four must be the number of devices");
  if (!divides(l->tp, m->heads) && !*m->pattern)
    return err_hint(
        err_new(ERR_INVALID, "%d tensor ways do not divide %d attention heads", l->tp, m->heads),
        "use a divisor of %d", m->heads);
  if (l->pp > m->layers + 2)
    return err_hint(err_new(ERR_INVALID, "%d pipeline stages for %d layers", l->pp, m->layers),
                    "use at most %d", m->layers);
  if (m->experts > 0 && !divides(l->ep, m->experts))
    return err_hint(
        err_new(ERR_INVALID, "%d expert ways do not divide %d experts", l->ep, m->experts),
        "use a divisor of %d", m->experts);
  if (m->experts == 0 && l->ep > 1)
    return err_hint(err_new(ERR_INVALID, "%d expert ways, but '%s' has no experts", l->ep, m->name),
                    "use 1");
  if (l->mbs * l->dp > l->gbs * 1.0001)
    return err_hint(
        err_new(ERR_INVALID,
                "a batch of %g sequences gives %d data ways less than one microbatch of %g each",
                l->gbs, l->dp, l->mbs),
        "a batch of at least %g, or fewer data ways", l->mbs * l->dp);
  return NULL;
}
