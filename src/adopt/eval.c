/* A program that evaluates an adopted step's state: (some of the state, a batch) -> mean loss, accuracy. */
#include "adopt/adopt_priv.h"

#include "stablehlo/stablehlo.h"

#include <math.h>
#include <stdlib.h>

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

static Err *find_fields(Adopted *e, const Data *d) {
  bool used[DATA_FIELDS] = {0};
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < e->n_args; i++) {
      AdoptArg *g = &e->args[i];
      if (g->role != ROLE_BATCH || g->field >= 0) continue;
      for (int k = 0; k < d->n_fields && g->field < 0; k++) {
        bool named = !strcasecmp(d->fields[k].name, adopt_last(g->path));
        if (used[k] || !(pass || named) || !adopt_fits(&d->fields[k], g->type)) continue;
        g->field = k;
        used[k] = true;
      }
      if (pass && g->field < 0)
        return err_new(ERR_INVALID, "no field of '%s' becomes argument %d (%s) of '%s'", d->name, i,
                       g->name, e->program);
    }
  return NULL;
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
  }
  if (!e->batch) return err_new(ERR_INVALID, "'%s' takes no batch", e->program);
  return adopt_find_metrics(e);
}

static Err *read_eval(Adopted *a, Adopted *e) {
  TRY(file_read(e->program, &e->bytes));
  TRY(stablehlo_read(e->program, (Str){e->bytes.p, e->bytes.n}, &e->m));
  TRY(ir_verify(e->m));
  e->f = module_main(e->m);
  if (!e->f || !e->f->body) return err_new(ERR_INVALID, "'%s' has no main function", e->program);
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

Err *adopt_build_eval(const Model *model, const TrainConfig *c, const Data *d, StepProgram *out) {
  const Adopted *a = (const Adopted *)(const void *)model;
  Adopted *e = a->eval;
  (void)c;
  TRY(find_fields(e, d));
  Module *m = module_clone(e->m);
  Func *inner = adopt_take_function(e, m);
  Build b = {.m = m, .loc = inner->loc};
  b_func(&b, m, "main");
  StepProgram p = {.m = m, .state = xcalloc((size_t)a->n_args + 1, sizeof *p.state)};
  Value **state = xcalloc((size_t)a->n_args + 1, sizeof *state),
        **args = xcalloc((size_t)e->n_args + 1, sizeof *args), *in[DATA_FIELDS];
  for (int i = 0; i < a->n_args; i++)
    if (a->args[i].role != ROLE_BATCH) state[i] = adopt_state_arg(&b, &p, &a->args[i]);
  adopt_inputs(&b, &p, d, e->batch, in);
  for (int i = 0; i < e->n_args; i++) {
    const AdoptArg *g = &e->args[i];
    args[i] = g->role == ROLE_STATE
                  ? state[g->result]
                  : adopt_as_argument(&b, e, d, &d->fields[g->field], in[g->field], g->type);
  }
  Op *call = adopt_call(&b, e, inner, args);
  Value *v[3] = {b_full(&b, b_type(&b, DT_F32, 1, (int64_t[]){1}), (double)e->batch)};
  v[2] = v[0];
  int which[2] = {e->loss, e->accuracy};
  for (int i = 0; i < 2; i++) {
    Value *mean =
        which[i] < 0 ? b_full(&b, v[2]->type, NAN) : adopt_scalar(&b, &call->results[which[i]]);
    v[i] = b_mul(&b, mean, v[2]); /* sums, so that batches add up */
  }
  Value *metrics = b_concat(&b, 3, v, 0);
  b_return(&b, 1, &metrics);
  free(state);
  free(args);
  p.n_params = p.n_state;
  Err *bad = err_wrap(ir_verify(m), "in the program made around '%s'", e->program);
  if (bad) step_free(&p);
  else *out = p;
  return bad;
}
