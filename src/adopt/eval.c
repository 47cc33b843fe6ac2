/* A program that evaluates an adopted step's state: (some of the state, a batch) -> mean loss, accuracy. */
#include "adopt/adopt_priv.h"

#include "stablehlo/stablehlo.h"

#include <math.h>

/* ---- who is who -------------------------------------------------------------------------------- */

static bool claimed(const Adopted *e, int state) {
  for (int i = 0; i < e->n_args; i++)
    if (e->args[i].role == ROLE_STATE && e->args[i].result == state) return true;
  return false;
}

static bool same_shape(const Type *x, const Type *y) { /* of two modules */
  return x->dtype == y->dtype && x->rank == y->rank &&
         (!x->rank || !memcmp(x->dims, y->dims, sizeof *x->dims * (size_t)x->rank));
}

/* An argument of the evaluation is the step's argument `state` (AdoptArg.result): of its name, else, where
 * `by_type`, the next of its type. */
static void find_state(const Adopted *a, Adopted *e, int arg, bool by_type) {
  AdoptArg *g = &e->args[arg];
  for (int i = 0; i < a->n_args && g->role == ROLE_NONE; i++) {
    const AdoptArg *s = &a->args[i];
    const char *tail = adopt_tail(s->path);
    bool name =
        *g->path && (!strcmp(s->path, g->path) || (*tail && !strcmp(tail, adopt_tail(g->path))));
    if (s->role == ROLE_BATCH || !same_shape(s->type, g->type) || claimed(e, i) ||
        !(name || by_type))
      continue;
    g->role = ROLE_STATE;
    g->result = i;
  }
}

static Err *match(const Adopted *a, Adopted *e) {
  for (int i = 0; i < e->n_args; i++) find_state(a, e, i, false);
  for (int i = 0; i < e->n_args; i++)
    if (!adopt_named_as_batch(&e->args[i])) find_state(a, e, i, true);
  for (int i = 0; i < e->n_args; i++) {
    AdoptArg *g = &e->args[i];
    if (g->role != ROLE_NONE) continue;
    if (!g->type->rank)
      return err_new(ERR_INVALID,
                     "argument %d (%s) of '%s' is neither of the step's state nor data", i, g->name,
                     e->program);
    if (e->batch && g->type->dims[0] != e->batch)
      return err_new(ERR_INVALID, "arguments of '%s' have batches of %lld and of %lld", e->program,
                     (long long)e->batch, (long long)g->type->dims[0]);
    e->batch = g->type->dims[0];
    g->role = ROLE_BATCH;
    if (!e->batch)
      return err_new(ERR_INVALID, "argument %d (%s) of '%s' takes 0 examples", i, g->name,
                     e->program);
  }
  if (!e->batch) return err_new(ERR_INVALID, "'%s' takes no batch", e->program);
  return adopt_find_metrics(e);
}

static Err *read_eval(Adopted *a, Adopted *e) {
  TRY(stablehlo_open(e->program, &e->bytes, &e->m));
  e->f = module_main(e->m);
  TRY(adopt_read_names(e));
  return match(a, e);
}

Err *adopt_read_eval(Adopted *a, const char *path) {
  Adopted *e = a->eval = xcalloc(1, sizeof *e);
  e->program = xstrdup(path);
  e->pixels = a->pixels ? xstrdup(a->pixels) : NULL;
  return err_wrap(read_eval(a, e), "the program that evaluates");
}

/* ---- the program ------------------------------------------------------------------------------- */

/* An argument of the step's name takes the field that the step's takes. */
static void bind_as_step(const Adopted *a, Adopted *e, const Data *d) {
  for (int i = 0; i < e->n_args; i++) {
    AdoptArg *g = &e->args[i];
    for (int k = 0; k < a->n_args && g->role == ROLE_BATCH; k++) {
      const AdoptArg *s = &a->args[k];
      if (s->role != ROLE_BATCH || s->field < 0 || !*g->path) continue;
      if (strcmp(base_name(s->path), base_name(g->path)) || g->wants) continue;
      g->wants = xstrdup(d->fields[s->field].name);
    }
  }
}

Err *adopt_build_eval(const Model *model, const TrainConfig *c, const Data *d, StepProgram *out) {
  const Adopted *a = (const Adopted *)(const void *)model;
  Adopted *e = a->eval;
  (void)c;
  bind_as_step(a, e, d);
  TRY(adopt_bind(e, d));
  Around w;
  adopt_around(a, e, d, &w);
  Build *b = &w.b;
  Value *v[3] = {[2] = b_full(b, b_type(b, DT_F32, 1, (int64_t[]){1}), (double)e->batch)};
  int which[2] = {e->loss, e->accuracy};
  for (int i = 0; i < 2; i++) {
    Value *mean =
        which[i] < 0 ? b_full(b, v[2]->type, NAN) : adopt_scalar(b, &w.call->results[which[i]]);
    v[i] = b_mul(b, mean, v[2]); /* sums, so that batches add up */
  }
  Value *metrics = b_concat(b, 3, v, 0);
  return adopt_end(&w, e, 1, &metrics, out);
}
