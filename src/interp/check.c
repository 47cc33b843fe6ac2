/* The checks of the conformance files (check.*, and the custom calls of the same names),
 * interpreter.print and .probe.
 *
 * expect_eq         equal elements; floats by IEEE comparison, so NaN never passes and -0 equals 0
 * expect_almost_eq  absolute difference in double; NaN passes against NaN, an infinity against the
 * same one expect_close      distance in units of the last place; +0 and -0 are 0 apart
 */
#include <math.h>
#include <stdio.h>

#include "interp/ewise_priv.h"

typedef enum { RULE_EQ, RULE_ALMOST, RULE_CLOSE } Rule;
typedef struct Check {
  Rule rule;
  double tolerance;
  uint64_t min_ulp, max_ulp;
} Check;

/* ---- one element ----------------------------------------------------------------------------- */

static uint64_t ulp_distance(DType t, double a, double b) {
  if (isnan(a) && isnan(b)) return 0;
  if (a == b) return 0;
  if (!isfinite(a) || !isfinite(b)) return UINT64_MAX;
  uint64_t x = 0, y = 0;
  double fa = fabs(a), fb = fabs(b);
  store_d(t, &x, 0, 1, &fa);
  store_d(t, &y, 0, 1, &fb);
  if (signbit(a) != signbit(b)) return x + y;
  return x > y ? x - y : y - x;
}

static bool pass_real(const Check *c, DType t, double a, double b) {
  switch (c->rule) {
  case RULE_EQ: return a == b;
  case RULE_ALMOST:
    return a == b || (isnan(a) && isnan(b)) ||
           (isfinite(a) && isfinite(b) && fabs(a - b) <= c->tolerance);
  default: {
    uint64_t d = ulp_distance(t, a, b);
    return d >= c->min_ulp && d <= c->max_ulp;
  }
  }
}

static bool pass(const Check *c, const Tensor *a, const Tensor *b, int64_t i) {
  DType t = a->dtype;
  if (dtype_is_float(t)) {
    double x, y;
    load_d(t, a->data, i, 1, 1, &x);
    load_d(t, b->data, i, 1, 1, &y);
    return pass_real(c, t, x, y);
  }
  if (dtype_is_complex(t)) {
    Cx x, y;
    load_z(t, a->data, i, 1, 1, &x);
    load_z(t, b->data, i, 1, 1, &y);
    DType part = dtype_real_of(t);
    return pass_real(c, part, (double)x.re, (double)y.re) &&
           pass_real(c, part, (double)x.im, (double)y.im);
  }
  int64_t x, y;
  load_i(t, a->data, i, 1, 1, &x);
  load_i(t, b->data, i, 1, 1, &y);
  return x == y;
}

/* As MLIR: seven digits when they say it all, else as many as it takes. */
static void print_real(Buf *b, DType t, double v) {
  char text[40];
  for (int digits = 6; digits <= 16; digits++) {
    snprintf(text, sizeof text, "%.*e", digits, v);
    if (!isfinite(v) || round_to(t, strtod(text, NULL)) == v) break;
  }
  buf_cstr(b, text);
}

static void print_element(Buf *b, const Tensor *t, int64_t i) {
  if (dtype_is_float(t->dtype)) {
    double v;
    load_d(t->dtype, t->data, i, 1, 1, &v);
    print_real(b, t->dtype, v);
  } else if (dtype_is_complex(t->dtype)) {
    Cx v;
    load_z(t->dtype, t->data, i, 1, 1, &v);
    buf_cstr(b, "(");
    print_real(b, dtype_real_of(t->dtype), (double)v.re);
    buf_cstr(b, ", ");
    print_real(b, dtype_real_of(t->dtype), (double)v.im);
    buf_cstr(b, ")");
  } else {
    int64_t v;
    load_i(t->dtype, t->data, i, 1, 1, &v);
    if (t->dtype == DT_I1) buf_cstr(b, v ? "true" : "false");
    else if (t->dtype == DT_U64) buf_printf(b, "%llu", (unsigned long long)v);
    else buf_printf(b, "%lld", (long long)v);
  }
}

/* ---- whole tensors --------------------------------------------------------------------------- */

static Err *check(const Op *op, const Check *c, const Tensor *got, const Tensor *want) {
  bool same = got->dtype == want->dtype && got->rank == want->rank;
  for (int d = 0; same && d < got->rank; d++) same = got->dims[d] == want->dims[d];
  if (!same)
    return op_err(op, ERR_ABORTED,
                  "a %s of rank %d with %lld elements is compared with a %s of rank %d with %lld",
                  dtype_name(got->dtype), got->rank, (long long)got->count, dtype_name(want->dtype),
                  want->rank, (long long)want->count);
  int64_t bad = 0, first = -1;
  for (int64_t i = 0; i < got->count; i++)
    if (!pass(c, got, want, i)) {
      if (!bad++) first = i;
    }
  if (!bad) return NULL;
  Buf b = {0};
  int64_t index[MAX_RANK];
  index_of(first, got->rank, got->dims, index);
  buf_cstr(&b, "element [");
  for (int d = 0; d < got->rank; d++) buf_printf(&b, d ? ", %lld" : "%lld", (long long)index[d]);
  buf_cstr(&b, "] is ");
  print_element(&b, got, first);
  buf_cstr(&b, ", expected ");
  print_element(&b, want, first);
  Err *e = op_err(op, ERR_ABORTED, "%s (%lld of %lld differ)", b.p, (long long)bad,
                  (long long)got->count);
  buf_free(&b);
  return e;
}

static const Check equal = {RULE_EQ, 0, 0, 0};

static Err *check_value(Eval *e, const Check *c) {
  const Attr *a = op_attr(e->op, "value");
  assert(a && a->kind == AT_TENSOR);
  Tensor *want;
  TRY(tensor_dense(a->tensor, &want));
  return check(e->op, c, e->in[0], want);
}

Err *sem_check_expect_eq(Eval *e) { return check(e->op, &equal, e->in[0], e->in[1]); }
Err *sem_check_expect_eq_const(Eval *e) { return check_value(e, &equal); }

static Check almost_of(const Op *op) {
  const Attr *a = op_attr(op, "tolerance");
  return (Check){RULE_ALMOST, a && a->kind == AT_FLOAT ? a->f : 1e-4, 0, 0};
}
Err *sem_check_expect_almost_eq(Eval *e) {
  Check c = almost_of(e->op);
  return check(e->op, &c, e->in[0], e->in[1]);
}
Err *sem_check_expect_almost_eq_const(Eval *e) {
  Check c = almost_of(e->op);
  return check_value(e, &c);
}
Err *sem_check_expect_close(Eval *e) {
  Check c = {RULE_CLOSE, 0, (uint64_t)op_int(e->op, "min_ulp_difference", 0),
             (uint64_t)op_int(e->op, "max_ulp_difference", 1)};
  return check(e->op, &c, e->in[0], e->in[1]);
}

/* A tensor saved by an earlier probe. */
Err *sem_check_expect_serialized_eq(Eval *e) {
  Run *root = run_root(e->run);
  Str id = op_str(e->op, "probe_id");
  int64_t iteration = op_int(e->op, "iteration", 0), seen = 0;
  for (int i = 0; i < root->probes.n; i++)
    if (str_eq(root->probes.v[i].id, id) && seen++ == iteration)
      return check(e->op, &equal, e->in[0], root->probes.v[i].t);
  return op_err(e->op, ERR_ABORTED, "probe \"%.*s\" has no iteration %lld", STR_ARG(id),
                (long long)iteration);
}

/* ---- custom calls ---------------------------------------------------------------------------- */

Err *check_call_eq(const Op *op, Tensor *const *in, Tensor **results) {
  (void)results;
  return check(op, &equal, in[0], in[1]);
}
Err *check_call_close(const Op *op, Tensor *const *in, Tensor **results) {
  (void)results;
  Check c = {RULE_CLOSE, 0, 0, 3};
  return check(op, &c, in[0], in[1]);
}
Err *check_call_almost(const Op *op, Tensor *const *in, Tensor **results) {
  (void)results;
  Check c = {RULE_ALMOST, 1e-3, 0, 0};
  return check(op, &c, in[0], in[1]);
}
/* check.eq(expected, actual) -> tensor<i1>: fails the run rather than answering false. */
Err *check_call_quantized(const Op *op, Tensor *const *in, Tensor **results) {
  Check c = {RULE_ALMOST, 1e-4, 0, 0};
  TRY(check(op, &c, in[1], in[0]));
  if (op->n_results == 1) {
    results[0] = tensor_make(DT_I1, 0, NULL);
    *(uint8_t *)results[0]->data = 1;
  }
  return NULL;
}

/* ---- print and probe ------------------------------------------------------------------------- */

/* The layout of upstream's interpreter: the innermost dimension on a line, the others indented. */
static void print_nested(Buf *b, const Tensor *t, int dim, int64_t at, int64_t size) {
  int64_t n = t->dims[dim], inner = n ? size / n : 0;
  buf_printf(b, "%*s[", 2 * dim + 2, "");
  bool last = dim + 1 == t->rank;
  for (int64_t i = 0; i < n; i++) {
    if (i) buf_cstr(b, last ? ", " : ",");
    if (last) {
      print_element(b, t, at + i);
    } else {
      buf_cstr(b, "\n");
      print_nested(b, t, dim + 1, at + i * inner, inner);
    }
  }
  if (n && !last) buf_printf(b, "\n%*s", 2 * dim + 2, "");
  buf_cstr(b, "]");
}

Err *sem_interpreter_print(Eval *e) {
  const Tensor *t = e->in[0];
  Buf b = {0};
  type_print(&b, e->op->operands[0]->type);
  buf_cstr(&b, " {");
  if (t->rank) {
    buf_cstr(&b, "\n");
    print_nested(&b, t, 0, 0, t->count);
    buf_cstr(&b, "\n");
  } else {
    print_element(&b, t, 0);
  }
  buf_cstr(&b, "}\n");
  fwrite(b.p, 1, b.n, stdout);
  fflush(stdout);
  buf_free(&b);
  return NULL;
}

Err *sem_interpreter_probe(Eval *e) {
  Run *root = run_root(e->run);
  Str id = op_str(e->op, "probe_id");
  *vec_push(&root->probes) = (Probe){{xstrndup(id.p, id.n), id.n}, tensor_retain(e->in[0])};
  eval_set(e, 0, tensor_retain(e->in[0]));
  return NULL;
}
