/* Programs beside an adopted step, from some of its state and a batch: to mean loss and accuracy, and to the network's
 * answers. */
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

/* An argument of such a program is the step's argument `state` (AdoptArg.result): of its name, else, where
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
    e->by_type |= by_type;
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
  return e->batch ? NULL : err_new(ERR_INVALID, "'%s' takes no batch", e->program);
}

static Err *read_beside(Adopted *a, const char *path, Adopted **out) {
  Adopted *e = *out = xcalloc(1, sizeof *e);
  const char *ending = adopt_ending(path);
  e->program = xstrdup(path);
  e->ending = xstrdup(ending ? ending : "");
  e->pixels = a->pixels ? xstrdup(a->pixels) : NULL;
  TRY(stablehlo_open(path, &e->bytes, &e->m));
  e->f = module_main(e->m);
  if (train_partitions(e->m) > 1)
    return err_hint(err_new(ERR_UNIMPLEMENTED, "'%s' is a program of several devices", path),
                    "it runs on one: export it without shardings");
  TRY(adopt_read_names(e));
  return match(a, e);
}

Err *adopt_read_eval(Adopted *a, const char *path) {
  Err *e = read_beside(a, path, &a->eval);
  if (!e) e = adopt_find_metrics(a->eval);
  return err_wrap(e, "the program that evaluates");
}

static bool is_answer(const Adopted *p, int i) {
  const Type *t = p->results[i].type;
  return t->rank && t->dims[0] == p->batch && !dtype_is_complex(t->dtype);
}

/* The result with a row for each example: of a name that says it, else the first of floating-point numbers, else the first. */
static Err *find_answer(Adopted *p) {
  static const char *const words[] = {"logits", "output", "pred", "prob", "answer"};
  int first = -1, real = -1;
  for (int i = p->n_results - 1; i >= 0; i--) {
    if (!is_answer(p, i)) continue;
    first = i;
    if (dtype_is_float(p->results[i].type->dtype)) real = i;
  }
  p->answer = real >= 0 ? real : first;
  for (int k = 0; k < COUNT_OF(words); k++)
    for (int i = 0; i < p->n_results; i++)
      if (is_answer(p, i) && strcasestr(base_name(p->results[i].path), words[k])) {
        p->answer = i;
        return NULL;
      }
  if (first >= 0) return NULL;
  return adopt_wrong(p, "no result has a row for each of its %lld examples", (long long)p->batch);
}

Err *adopt_read_predict(Adopted *a, const char *path) {
  Err *e = read_beside(a, path, &a->predict);
  if (!e) {
    a->predict->loss = -1;
    e = find_answer(a->predict);
  }
  return err_wrap(e, "the program that predicts");
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

static Err *build_eval(const Adopted *a, const Data *d, const AroundOpts *o, StepProgram *out) {
  Adopted *e = a->eval;
  bind_as_step(a, e, d);
  TRY(adopt_bind(e, d));
  Around w;
  TRY(adopt_around(a, e, d, o, &w));
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

Err *adopt_build_eval(const Model *model, const TrainConfig *c, const Data *d, StepProgram *out) {
  (void)c;
  return build_eval((const Adopted *)(const void *)model, d, NULL, out);
}

/* ---- the state in use -------------------------------------------------------------------------- */

/* By argument of the step: what the two programs take. The caller frees it. */
static bool *state_in_use(const Adopted *a) {
  bool *used = xcalloc((size_t)a->n_args + 1, sizeof *used);
  const Adopted *both[] = {a->eval, a->predict};
  for (int k = 0; k < 2; k++)
    for (int i = 0; both[k] && i < both[k]->n_args; i++)
      if (both[k]->args[i].role == ROLE_STATE) used[both[k]->args[i].result] = true;
  return used;
}

Err *adopt_build_score(Adopted *a, const Data *d, StepProgram *out) {
  bool *used = state_in_use(a);
  Err *e = build_eval(a, d, &(AroundOpts){.state = used}, out);
  free(used);
  return e;
}

static Err *bind_predict(Adopted *a, const Data *d) {
  bind_as_step(a, a->predict, d);
  return adopt_bind(a->predict, d);
}

int adopt_predict_field(Adopted *a, const Data *d) {
  int field = -1;
  Err *e = bind_predict(a, d);
  for (int i = 0; i < a->predict->n_args && !e; i++) {
    const AdoptArg *g = &a->predict->args[i];
    if (g->role != ROLE_BATCH || g->field == field) continue;
    if (field >= 0) return -1;
    field = g->field;
  }
  err_free(e); /* adopt_build_predict says it */
  return field;
}

Err *adopt_build_predict(Adopted *a, const Data *d,
                         Err *(*weight)(void *arg, const StateSpec *s, const NamedTensor **out),
                         void *arg, StepProgram *out) {
  Adopted *p = a->predict;
  TRY(bind_predict(a, d));
  int field = adopt_predict_field(a, d);
  if (field < 0)
    return err_new(ERR_UNIMPLEMENTED, "'%s' takes several fields of the data, one can be given",
                   p->program);
  bool *used = state_in_use(a), fields[DATA_FIELDS] = {0};
  fields[field] = true;
  Around w;
  Err *e = adopt_around(a, p, d, &(AroundOpts){used, fields, weight, arg}, &w);
  free(used);
  if (e) return e;
  Value *v = b_convert(&w.b, &w.call->results[p->answer], DT_F32);
  int64_t dims[2] = {p->batch, type_count(v->type) / p->batch};
  v = b_reshape(&w.b, v, 2, dims);
  return adopt_end(&w, p, 1, &v, out);
}

const char *adopt_state_path(const Adopted *a, const char *name) {
  for (int i = 0; i < a->n_args; i++)
    if (!strcmp(a->args[i].name, name) && *a->args[i].path) return a->args[i].path;
  return name;
}

int64_t adopt_answers(const Adopted *a) {
  const Adopted *p = a->predict;
  return p && p->batch ? type_count(p->results[p->answer].type) / p->batch : 0;
}

bool adopt_predict_is_named(const Adopted *a) { return !a->predict || !a->predict->by_type; }
int64_t adopt_predict_batch(const Adopted *a) { return a->predict ? a->predict->batch : 0; }
