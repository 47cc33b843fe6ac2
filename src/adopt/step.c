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
  /* (28, 28, 1) is (28, 28), (1, 28, 28) and (784); a label is a column of one */
  bool flat = rank <= 1 || f->rank <= 1 || (f->rank == 3 && f->dims[2] == 1);
  return flat ? HOW_RESHAPE : HOW_NOT;
}

bool adopt_fits(const Field *f, const Type *t) { return how_to(f, t) != HOW_NOT; }

/* Bytes of a picture as "unit" or "normal" has them. */
static Value *scaled(Build *b, const Adopted *a, const Data *d, Value *x) {
  x = b_convert(b, x, DT_F32);
  if (a->pixels && !strcmp(a->pixels, "bytes")) return x;
  x = b_muls(b, x, 1 / 255.0);
  if (!a->pixels || strcmp(a->pixels, "normal")) return x;
  int channels = (int)b_dim(x, 3);
  float shift[3], factor[3];
  for (int c = 0; c < channels && c < 3; c++) {
    factor[c] = 1 / d->std[c];
    shift[c] = -d->mean[c] / d->std[c];
  }
  Type *row = b_type(b, DT_F32, 1, (int64_t[]){channels});
  x = b_mul(b, x, b_bcast_last(b, b_const(b, row, factor), x->type));
  return b_add(b, x, b_bcast_last(b, b_const(b, row, shift), x->type));
}

static Value *one_hot(Build *b, Value *labels, const Type *t) {
  Type *whole = b_type(b, b_dtype(labels), 2, t->dims);
  Value *classes = b_iota(b, whole, 1), *of = b_bcast(b, labels, 2, t->dims, (int[]){0});
  return b_convert(b, b_compare(b, "EQ", classes, of), t->dtype);
}

Value *adopt_as_argument(Build *b, const Adopted *a, const Data *d, const Field *f, Value *x,
                         const Type *t) {
  How how = how_to(f, t);
  if (how == HOW_ONE_HOT) return one_hot(b, x, t);
  if (f->type == DT_U8 && f->rank == 3 && dtype_is_float(t->dtype)) x = scaled(b, a, d, x);
  if (how == HOW_CHANNELS_FIRST) x = b_transpose(b, x, (int[]){0, 3, 1, 2});
  if (how == HOW_RESHAPE) x = b_reshape(b, x, t->rank, t->dims);
  return b_convert(b, x, t->dtype);
}

/* ---- binding ----------------------------------------------------------------------------------- */

static Err *fits_nothing(const Adopted *a, int arg, const Data *d, const char *why) {
  Buf b = {0};
  type_print(&b, a->args[arg].type);
  Err *e = err_new(ERR_INVALID, "argument %d (%s) of '%s' is a %s: %s", arg, a->args[arg].name,
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

Err *adopt_bind(Adopted *a, const Data *d) {
  bool used[DATA_FIELDS] = {0};
  for (int pass = 0; pass < 3; pass++) /* said, of one name, in order */
    for (int i = 0; i < a->n_args; i++) {
      AdoptArg *g = &a->args[i];
      if (g->role != ROLE_BATCH || (pass && g->field >= 0)) continue;
      int k = -1;
      if (pass == 0) {
        g->field = -1;
        if (!g->wants) continue;
        if ((k = field_named(d, g->wants)) < 0)
          return fits_nothing(a, i, d, "the data have no field of the name that was asked for");
        if (!adopt_fits(&d->fields[k], g->type))
          return fits_nothing(a, i, d, "the field that was asked for does not become that");
      } else if (pass == 1) {
        const char *slash = strrchr(g->path, '/');
        k = field_named(d, slash ? slash + 1 : g->path);
        if (k >= 0 && !adopt_fits(&d->fields[k], g->type)) k = -1;
      } else {
        for (k = 0; k < d->n_fields; k++)
          if (!used[k] && adopt_fits(&d->fields[k], g->type)) break;
        if (k == d->n_fields) return fits_nothing(a, i, d, "no field of the data becomes that");
      }
      if (k < 0) continue;
      g->field = k;
      used[k] = true;
    }
  return NULL;
}

/* ---- the program ------------------------------------------------------------------------------- */

static Value *named_arg(Build *b, const Type *t, const char *name) {
  Value *v = b_arg(b, b_type(b, t->dtype, t->rank, t->dims));
  v->name = arena_str(b->m->arena, str_from(name));
  return v;
}

/* The adopted function by another name, in a module of its own. */
Func *adopt_take_function(const Adopted *a, Module *m) {
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

static Value *pack_metrics(Build *b, const Adopted *a, Op *call) {
  Value *v[3 + STEP_EXTRA];
  int which[3] = {a->loss, a->accuracy, a->rate}, n = 3;
  for (int i = 0; i < 3; i++)
    v[i] = which[i] < 0 ? b_full(b, b_type(b, DT_F32, 1, (int64_t[]){1}), NAN)
                        : adopt_scalar(b, &call->results[which[i]]);
  for (int i = 0; i < a->n_extra; i++) v[n++] = adopt_scalar(b, &call->results[a->extra[i]]);
  return b_concat(b, n, v, 0);
}

static void add_state(StepProgram *p, const AdoptArg *g) {
  StateSpec *s = &p->state[p->n_state++];
  *s = (StateSpec){.name = xstrdup(g->name), .type = g->type->dtype, .rank = g->type->rank};
  if (s->rank) memcpy(s->dims, g->type->dims, sizeof(int64_t) * (size_t)s->rank);
  if (dtype_is_float(s->type)) p->n_weights += type_count(g->type);
}

Value *adopt_state_arg(Build *b, StepProgram *p, const AdoptArg *g) {
  add_state(p, g);
  return named_arg(b, g->type, g->name);
}

void adopt_inputs(Build *b, StepProgram *p, const Data *d, int64_t batch, Value **in) {
  for (int i = 0; i < d->n_fields; i++) {
    Field *to = &p->inputs[i];
    *to = d->fields[i];
    to->rank++;
    to->dims[0] = batch;
    memcpy(to->dims + 1, d->fields[i].dims, sizeof(int64_t) * (size_t)d->fields[i].rank);
    in[i] = named_arg(b, b_type(b, to->type, to->rank, to->dims), to->name);
  }
  p->n_inputs = d->n_fields;
}

Op *adopt_call(Build *b, const Adopted *a, const Func *inner, Value *const *args) {
  NamedAttr callee = {STR("callee"), attr_symbol(b->m, inner->name)};
  return b_op(b, OP_CALL, a->n_args, args, a->n_results, inner->type->results, 1, &callee, 0, NULL);
}

Err *adopt_build(const Model *model, const TrainConfig *c, const Data *d, StepProgram *out) {
  const Adopted *a = (const Adopted *)(const void *)model;
  (void)c;
  Module *m = module_clone(a->m);
  Func *inner = adopt_take_function(a, m);
  Build b = {.m = m, .loc = inner->loc};
  Func *f = b_func(&b, m, "main");
  StepProgram p = {.m = m, .extra = (const char *const *)a->extra_names, .n_extra = a->n_extra};
  p.state = xcalloc((size_t)a->n_args + 1, sizeof *p.state);
  Value **args = xcalloc((size_t)a->n_args + 1, sizeof *args),
        **res = xcalloc((size_t)a->n_args + 2, sizeof *res), *in[DATA_FIELDS];
  for (int i = 0; i < a->n_args; i++)
    if (a->args[i].role != ROLE_BATCH) args[i] = adopt_state_arg(&b, &p, &a->args[i]);
  adopt_inputs(&b, &p, d, a->batch, in);
  for (int i = 0; i < a->n_args; i++) {
    int k = a->args[i].field;
    if (a->args[i].role == ROLE_BATCH)
      args[i] = adopt_as_argument(&b, a, d, &d->fields[k], in[k], a->args[i].type);
  }
  Op *call = adopt_call(&b, a, inner, args);
  int n = 0;
  for (int i = 0; i < a->n_args; i++) {
    if (a->args[i].role == ROLE_BATCH) continue;
    b_arg_attr(f, n, "tf.aliasing_output", attr_int(m, DT_I32, n));
    res[n++] = a->args[i].role == ROLE_STATE ? &call->results[a->args[i].result] : args[i];
  }
  res[n] = pack_metrics(&b, a, call);
  b_return(&b, n + 1, res);
  free(args);
  free(res);
  p.n_params = p.n_state;
  Err *e = err_wrap(ir_verify(m), "in the program made around '%s'", a->program);
  if (e) step_free(&p);
  else *out = p;
  return e;
}
