/* The step as train/ has it: a main function that takes the state and the data's fields, turns the
 * fields into what the adopted function takes, calls it and packs its metrics. */
#include "adopt/adopt_priv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- a field as an argument -------------------------------------------------------------------- */

typedef enum How { HOW_NOT, HOW_SAME, HOW_RESHAPE, HOW_CHANNELS_FIRST, HOW_ONE_HOT } How;

static int64_t elements(int rank, const int64_t *dims) {
  int64_t n = 1;
  for (int i = 0; i < rank; i++) n *= dims[i];
  return n;
}

/* Without dimensions of 1: (28, 28, 1), (1, 28, 28) and (28, 28) are the same. */
static bool same_but_ones(const Field *f, int rank, const int64_t *dims) {
  int i = 0, k = 0;
  for (;;) {
    while (i < f->rank && f->dims[i] == 1) i++;
    while (k < rank && dims[k] == 1) k++;
    if (i == f->rank || k == rank) return i == f->rank && k == rank;
    if (f->dims[i++] != dims[k++]) return false;
  }
}

/* How an example of a field becomes one of the argument. */
static How how_to(const Field *f, const Type *t) {
  int rank = t->rank - 1;
  const int64_t *dims = t->dims + 1;
  bool same = f->rank == rank, one = !f->rank && dtype_is_int(f->type);
  for (int i = 0; i < rank && same; i++) same = f->dims[i] == dims[i];
  if (dtype_is_float(f->type) && !dtype_is_float(t->dtype)) return HOW_NOT;
  if (same) return HOW_SAME;
  if (one && rank == 1 && dims[0] > 1 && dtype_is_float(t->dtype)) return HOW_ONE_HOT;
  if (elements(f->rank, f->dims) != elements(rank, dims)) return HOW_NOT;
  bool first = f->rank == 3 && rank == 3 && dims[0] == f->dims[2] && dims[1] == f->dims[0];
  if (first && f->dims[2] > 1) return HOW_CHANNELS_FIRST;
  bool flat = rank <= 1 || f->rank <= 1; /* (28, 28, 1) as (784); a label is a column of one */
  return flat || same_but_ones(f, rank, dims) ? HOW_RESHAPE : HOW_NOT;
}

static bool fits(const Field *f, const Type *t) { return how_to(f, t) != HOW_NOT; }

/* Bytes of a picture that become numbers: where --pixels counts. */
static bool is_scaled(const Field *f, const Type *t) {
  return f->type == DT_U8 && f->rank == 3 && dtype_is_float(t->dtype);
}

/* Bytes of a picture as "unit" or "normal" has them. */
static Value *scaled(Build *b, const Adopted *a, const Data *d, Value *x) {
  x = b_convert(b, x, DT_F32);
  if (a->pixels && !strcmp(a->pixels, "bytes")) return x;
  x = b_muls(b, x, 1 / 255.0);
  if (!a->pixels || strcmp(a->pixels, "normal")) return x;
  int channels = (int)b_dim(x, 3);
  float shift[DATA_CHANNELS],
      factor[DATA_CHANNELS]; /* of more channels nothing is known: adopt_bind refuses them */
  assert(channels <= COUNT_OF(shift));
  for (int c = 0; c < channels; c++) {
    factor[c] = 1 / d->std[c];
    shift[c] = -d->mean[c] / d->std[c];
  }
  Type *row = b_type(b, DT_F32, 1, (int64_t[]){channels});
  x = b_mul(b, x, b_bcast_last(b, b_const(b, row, factor), x->type));
  return b_add(b, x, b_bcast_last(b, b_const(b, row, shift), x->type));
}

static Value *one_hot(Build *b, Value *labels, const Type *t) {
  labels = b_convert(b, labels, DT_I32); /* of bytes there may be more classes than they count */
  Type *whole = b_type(b, DT_I32, 2, t->dims);
  Value *classes = b_iota(b, whole, 1), *of = b_bcast(b, labels, 2, t->dims, (int[]){0});
  return b_convert(b, b_compare(b, "EQ", classes, of), t->dtype);
}

static Value *as_argument(Build *b, const Adopted *a, const Data *d, const Field *f, Value *x,
                          const Type *t) {
  How how = how_to(f, t);
  if (how == HOW_ONE_HOT) return one_hot(b, x, t);
  if (is_scaled(f, t)) x = scaled(b, a, d, x);
  if (how == HOW_CHANNELS_FIRST) x = b_transpose(b, x, (int[]){0, 3, 1, 2});
  if (how == HOW_RESHAPE) x = b_reshape(b, x, t->rank, t->dims);
  return b_convert(b, x, t->dtype);
}

/* ---- binding ----------------------------------------------------------------------------------- */

static Err *fits_nothing(const Adopted *a, int arg, const Data *d, const char *why) {
  Buf b = {0};
  const AdoptArg *g = &a->args[arg];
  type_print(&b, g->type);
  Err *e = g->wants ? err_new(ERR_INVALID, "--batch-args %s=%s: %s; '%s' takes a %s", g->name,
                              g->wants, why, a->program, b.p)
                    : err_new(ERR_INVALID, "argument %d (%s) of '%s' is a %s: %s", arg, g->name,
                              a->program, b.p, why);
  b.n = 0;
  for (int i = 0; i < d->n_fields; i++) {
    const Field *f = &d->fields[i];
    buf_printf(&b, "%s%s %s [", i ? ", " : "", f->name, dtype_name(f->type));
    for (int k = 0; k < f->rank; k++)
      buf_printf(&b, "%s%lld", k ? ", " : "", (long long)f->dims[k]);
    buf_byte(&b, ']');
  }
  e = err_hint(e,
               "an example of '%s' has %s; --batch-args ARGUMENT=FIELD,... says which goes where",
               d->name, b.p);
  buf_free(&b);
  return e;
}

static int field_named(const Data *d, const char *name) {
  for (int i = 0; i < d->n_fields; i++)
    if (!strcasecmp(d->fields[i].name, name)) return i;
  return -1;
}

static Err *bind_said(Adopted *a, int arg, const Data *d) {
  AdoptArg *g = &a->args[arg];
  g->field = -1;
  if (!g->wants) return NULL;
  int k = field_named(d, g->wants);
  if (k < 0) return fits_nothing(a, arg, d, "the data have no such field");
  if (!fits(&d->fields[k], g->type))
    return fits_nothing(a, arg, d, "that field does not become what it takes");
  g->field = k;
  return NULL;
}

/* The field that has its name, where `named`; else the first that is not used and fits. -1: none */
static int field_for(const AdoptArg *g, const Data *d, const bool *used, bool named) {
  int k = named ? field_named(d, base_name(g->path)) : 0;
  if (named) return k >= 0 && fits(&d->fields[k], g->type) ? k : -1;
  while (k < d->n_fields && (used[k] || !fits(&d->fields[k], g->type))) k++;
  return k < d->n_fields ? k : -1;
}

/* Mean and deviation are known of the first field, of up to so many channels. */
static Err *check_normal(const Adopted *a, const Data *d) {
  for (int i = 0; i < a->n_args; i++) {
    const AdoptArg *g = &a->args[i];
    if (g->role != ROLE_BATCH || !is_scaled(&d->fields[g->field], g->type)) continue;
    if (g->field > 0 || d->fields[0].dims[2] > COUNT_OF(d->mean))
      return err_hint(
          err_new(ERR_INVALID,
                  "--pixels normal: '%s' has no mean and deviation of the %lld channels of '%s'",
                  d->name, (long long)d->fields[g->field].dims[2], d->fields[g->field].name),
          "they are those of up to %d channels of its first field; --pixels unit or bytes",
          DATA_CHANNELS);
  }
  return NULL;
}

Err *adopt_bind(Adopted *a, const Data *d) {
  bool used[DATA_FIELDS] = {0};
  for (int i = 0; i < a->n_args; i++)
    if (a->args[i].role == ROLE_BATCH) {
      TRY(bind_said(a, i, d));
      if (a->args[i].field >= 0) used[a->args[i].field] = true;
    }
  for (int pass = 0; pass < 2; pass++) /* of one name, in order */
    for (int i = 0; i < a->n_args; i++) {
      AdoptArg *g = &a->args[i];
      if (g->role != ROLE_BATCH || g->field >= 0) continue;
      g->field = field_for(g, d, used, pass == 0);
      if (g->field >= 0) used[g->field] = true;
      else if (pass) return fits_nothing(a, i, d, "no field of the data becomes that");
    }
  return a->pixels && !strcmp(a->pixels, "normal") ? check_normal(a, d) : NULL;
}

/* ---- the program ------------------------------------------------------------------------------- */

static Value *named_arg(Build *b, const Type *t, const char *name) {
  Value *v = b_arg(b, b_type(b, t->dtype, t->rank, t->dims));
  v->name = arena_str(b->m->arena, str_from(name));
  return v;
}

/* The adopted function by another name, in a module of its own. */
static Func *take_function(const Adopted *a, Module *m) {
  Func *f = module_main(m);
  int k = 0;
  Str name = STR("adopted_step");
  while (module_func(m, name)) name = arena_printf(m->arena, "adopted_step_%d", k++);
  f->name = name;
  f->is_private = true;
  f->says_public = false;
  for (int i = 0; i < a->n_args; i++) f->arg_attrs[i] = NULL, f->n_arg_attrs[i] = 0;
  for (int i = 0; i < a->n_results; i++) f->res_attrs[i] = NULL, f->n_res_attrs[i] = 0;
  return f;
}

Value *adopt_scalar(Build *b, Value *x) {
  x = b_convert(b, x, DT_F32);
  if (b_rank(x)) { /* a loss for each example: their mean */
    double n = (double)type_count(x->type);
    x = b_muls(b, b_reduce_all(b, OP_ADD, x), 1 / n);
  }
  return b_reshape(b, x, 1, (int64_t[]){1});
}

static StateSpec spec_of(const AdoptArg *g) {
  StateSpec s = {.name = xstrdup(g->name), .type = g->type->dtype, .rank = g->type->rank};
  if (s.rank) memcpy(s.dims, g->type->dims, sizeof(int64_t) * (size_t)s.rank);
  return s;
}

/* A value of the state: an argument of main, or a constant that `weight` gives. */
static Err *add_state(Around *w, const AdoptArg *g, const AroundOpts *o, Value **out) {
  StepProgram *p = &w->p;
  StateSpec *s = &p->state[p->n_state++];
  *s = spec_of(g);
  if (g->role == ROLE_STATE) p->n_weights += type_count(g->type);
  if (!o || !o->weight) {
    *out = named_arg(&w->b, g->type, g->name);
    return NULL;
  }
  const NamedTensor *t;
  TRY(o->weight(o->arg, s, &t));
  *out = b_const(&w->b, b_type(&w->b, g->type->dtype, g->type->rank, g->type->dims), t->data);
  return NULL;
}

static void add_inputs(Around *w, const Data *d, int64_t batch, const bool *which, Value **in) {
  StepProgram *p = &w->p;
  for (int i = 0; i < d->n_fields; i++) {
    if (which && !which[i]) continue;
    Field *to = &p->inputs[p->n_inputs++];
    *to = d->fields[i];
    to->rank++;
    to->dims[0] = batch;
    memcpy(to->dims + 1, d->fields[i].dims, sizeof(int64_t) * (size_t)d->fields[i].rank);
    in[i] = named_arg(&w->b, b_type(&w->b, to->type, to->rank, to->dims), to->name);
  }
}

static Op *call(Build *b, const Adopted *a, const Func *inner, Value *const *args) {
  NamedAttr callee = {STR("callee"), attr_symbol(b->m, inner->name)};
  return b_op(b, OP_CALL, a->n_args, args, a->n_results, inner->type->results, 1, &callee, 0, NULL);
}

Err *adopt_around(const Adopted *step, const Adopted *a, const Data *d, const AroundOpts *o,
                  Around *out) {
  Module *m = module_clone(a->m);
  Func *inner = take_function(a, m);
  *out = (Around){.b = {.m = m, .loc = inner->loc}, .p.m = m};
  out->f = b_func(&out->b, m, "main");
  out->p.state = xcalloc((size_t)step->n_args + 1, sizeof *out->p.state);
  out->state = xcalloc((size_t)step->n_args + 1, sizeof *out->state);
  Value **args = xcalloc((size_t)a->n_args + 1, sizeof *args), *in[DATA_FIELDS];
  Err *e = NULL;
  for (int i = 0; i < step->n_args && !e; i++)
    if (step->args[i].role != ROLE_BATCH && (!o || !o->state || o->state[i]))
      e = add_state(out, &step->args[i], o, &out->state[i]);
  add_inputs(out, d, a->batch, o ? o->fields : NULL, in);
  for (int i = 0; i < a->n_args && !e; i++) {
    const AdoptArg *g = &a->args[i];
    if (g->role == ROLE_BATCH)
      args[i] = as_argument(&out->b, a, d, &d->fields[g->field], in[g->field], g->type);
    else args[i] = out->state[a == step ? i : g->result];
  }
  if (!e) out->call = call(&out->b, a, inner, args);
  out->p.n_params = out->p.n_state;
  free(args);
  if (e) free(out->state), step_free(&out->p);
  return e;
}

Err *adopt_end(Around *w, const Adopted *a, int n, Value *const *results, StepProgram *out) {
  b_return(&w->b, n, results);
  free(w->state);
  Err *e = err_wrap(ir_verify(w->p.m), "in the program made around '%s'", a->program);
  if (e) step_free(&w->p);
  else *out = w->p;
  return e;
}

static Value *pack_metrics(const Adopted *a, Around *w) {
  Build *b = &w->b;
  Value *v[3 + STEP_EXTRA];
  int which[3] = {a->loss, a->accuracy, a->rate}, n = 3;
  for (int i = 0; i < 3; i++)
    v[i] = which[i] < 0 ? b_full(b, b_type(b, DT_F32, 1, (int64_t[]){1}), NAN)
                        : adopt_scalar(b, &w->call->results[which[i]]);
  if (a->rate_arg >= 0) v[2] = adopt_scalar(b, w->state[a->rate_arg]);
  for (int i = 0; i < a->n_extra; i++) v[n++] = adopt_scalar(b, &w->call->results[a->extra[i]]);
  return b_concat(b, n, v, 0);
}

Err *adopt_build(const Model *model, const TrainConfig *c, const Data *d, StepProgram *out) {
  const Adopted *a = (const Adopted *)(const void *)model;
  Around w;
  TRY(adopt_around(a, a, d, NULL, &w));
  w.p.extra = (const char *const *)a->extra_names, w.p.n_extra = a->n_extra;
  Value **res = xcalloc((size_t)a->n_args + 2, sizeof *res);
  int n = 0;
  for (int i = 0; i < a->n_args; i++) {
    if (a->args[i].role == ROLE_BATCH) continue;
    b_arg_attr(w.f, n, "tf.aliasing_output", attr_int(w.p.m, DT_I32, n));
    res[n++] = a->args[i].role == ROLE_STATE ? &w.call->results[a->args[i].result] : w.state[i];
  }
  res[n] = pack_metrics(a, &w);
  Err *e = adopt_end(&w, a, n + 1, res, out);
  free(res);
  if (!e) adopt_spread(a, c->devices, out);
  return e;
}
