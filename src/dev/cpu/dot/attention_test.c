/* Attention: which programs become weft.attention, and that the cpu device and the interpreter answer as the interpreter does
 * with what the program says, whatever masks, biases, shared keys and orders of dimensions there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "compile/pass/pass.h"
#include "dev/cpu/answer_test.h"
#include "ir/build.h"

typedef enum Mask { NONE, CAUSAL, WINDOW, PADDING, BOTH, NOTHING, BIAS, SLOPE } Mask;

typedef struct Case {
  const char *name;
  DType type;
  int64_t batch, groups, rows, cols, width;
  Mask mask;
  double fill;
  bool heads_last; /* [batch, rows, groups, width], and keys of each group */
  bool gradient, quotients;
  enum { AS_IT_IS, WEIGHTS_WANTED, CAPPED, SUM_WANTED } otherwise;
  int found;
} Case;

static Case cases[] = {
    {"plain", DT_F32, 4, 1, 140, 150, 24, NONE, 0, .found = 1},
    {"plain_grad", DT_F32, 4, 1, 140, 150, 24, NONE, 0, .gradient = true, .found = 1},
    {"quotients_grad", DT_F32, 4, 1, 131, 257, 18, NONE, 0, .gradient = true, .quotients = true,
     .found = 1},
    {"shared_keys", DT_F32, 2, 3, 120, 141, 17, NONE, 0, .gradient = true, .found = 1},
    {"heads_last", DT_F32, 2, 3, 120, 141, 16, NONE, 0, true, .gradient = true, .quotients = true,
     .found = 1},
    {"causal", DT_F32, 2, 2, 190, 190, 16, CAUSAL, -1e30, .gradient = true, .found = 1},
    {"causal_more_columns", DT_F32, 2, 2, 130, 280, 16, CAUSAL, -INFINITY, true, true, true,
     .found = 1},
    {"window", DT_F32, 4, 1, 260, 260, 16, WINDOW, -1e30, .gradient = true, .found = 1},
    {"padding", DT_F32, 2, 2, 140, 150, 16, PADDING, -1e30, true, true, .found = 1},
    {"padding_and_causal", DT_F32, 2, 2, 190, 190, 16, BOTH, -INFINITY, .gradient = true,
     .found = 1},
    {"padding_and_causal_to_a_number", DT_F32, 2, 2, 190, 190, 16, BOTH, -1e30, .gradient = true,
     .found = 1},
    {"rows_that_see_nothing", DT_F32, 2, 2, 140, 150, 16, NOTHING, -1e30, .gradient = true,
     .found = 1},
    {"rows_that_see_nothing_at_all", DT_F32, 2, 2, 140, 150, 16, NOTHING, -INFINITY, .found = 1},
    {"bias", DT_F32, 2, 4, 140, 150, 16, BIAS, 0, .gradient = true, .found = 1},
    {"slope", DT_F32, 2, 4, 140, 150, 16, SLOPE, 0, .gradient = true, .found = 1},
    {"bf16", DT_BF16, 4, 1, 140, 151, 24, NONE, 0, .gradient = true, .found = 1},
    {"bf16_odd_causal", DT_BF16, 2, 2, 191, 191, 15, CAUSAL, -1e30, true, true, .found = 1},
    {"bf16_padding", DT_BF16, 2, 2, 140, 151, 16, PADDING, -1e30, .gradient = true, .found = 1},
    {"f16", DT_F16, 4, 1, 140, 151, 24, CAUSAL, -INFINITY, .gradient = true, .found = 1},
    {"f64", DT_F64, 4, 1, 140, 150, 24, NONE, 0, .found = 0},
    {"weights_wanted", DT_F32, 4, 1, 140, 150, 24, NONE, 0, .otherwise = WEIGHTS_WANTED,
     .found = 0},
    {"capped", DT_F32, 4, 1, 140, 150, 24, NONE, 0, .otherwise = CAPPED, .found = 0},
    {"sum_wanted", DT_F32, 4, 1, 140, 150, 24, NONE, 0, .otherwise = SUM_WANTED, .found = 0},
    {"few", DT_F32, 4, 1, 40, 50, 24, NONE, 0, .found = 0},
};

typedef struct Program {
  const Case *c;
  Build b;
  Value *x;             /* the argument */
  Value *q, *k, *v, *g; /* g: the result's gradient */
  Value *mask;          /* NULL: none */
  Value *e, *sum, *p;   /* exponentials, their sum over the columns, weights */
  Type *scores;
} Program;

/* Some of the argument's numbers. */
static Value *numbers_from(Program *m, int64_t first, int rank, const int64_t *dims) {
  int64_t n = 1;
  for (int i = 0; i < rank; i++) n *= dims[i];
  return b_reshape(&m->b, b_slice_dim(&m->b, m->x, 0, first, first + n), rank, dims);
}

static Value *some(Program *m, int64_t first, int rank, const int64_t *dims) {
  return b_muls(&m->b, numbers_from(m, first, rank, dims), 0.0625);
}

static Value *rows_of(Program *m, int64_t first, int64_t rows, bool keys) {
  const Case *c = m->c;
  if (c->heads_last) return some(m, first, 4, (int64_t[]){c->batch, rows, c->groups, c->width});
  if (keys) return some(m, first, 3, (int64_t[]){c->batch, rows, c->width});
  return some(m, first, 4, (int64_t[]){c->batch, c->groups, rows, c->width});
}

/* lhs and rhs: numbers of what is summed over. */
static Value *product(Program *m, Value *x, Value *y, int n, const int64_t *lhs, const int64_t *rhs,
                      bool of_scores) {
  const bool last = m->c->heads_last;
  DotDims d = {.n_batch = 1 + last, .n_contract = n};
  d.lhs_batch[1] = of_scores ? 1 : 2;
  d.rhs_batch[1] = 2;
  memcpy(d.lhs_contract, lhs, sizeof *lhs * (size_t)n);
  memcpy(d.rhs_contract, rhs, sizeof *rhs * (size_t)n);
  return b_dot(&m->b, x, y, &d, b_dtype(x), NULL);
}

static Value *positions(Program *m, int dim) {
  return b_iota(&m->b, b_type_as(&m->b, m->scores, DT_I32), dim);
}

static Value *of_keys(Program *m) { /* for each batch and key, whether it is there */
  const Case *c = m->c;
  Value *x = some(m, 3, 2, (int64_t[]){c->batch, c->cols});
  double least = c->mask == NOTHING ? 100 : -0.2;
  Value *is = b_compare(&m->b, "GT", x, b_full(&m->b, x->type, least));
  is = b_bcast_like(&m->b, is, m->scores, (int[]){0, 3});
  if (c->mask != BOTH || c->fill > -INFINITY) return is;
  Value *at = positions(m, 3); /* no row sees nothing: NaN would be in all of the keys' gradients */
  return b_or(&m->b, is, b_compare(&m->b, "EQ", at, b_full(&m->b, at->type, 0)));
}

static Value *mask_of(Program *m) {
  Build *b = &m->b;
  if (m->c->mask == PADDING || m->c->mask == NOTHING) return of_keys(m);
  Value *i = positions(m, 2), *j = positions(m, 3), *is = b_compare(b, "GE", i, j);
  if (m->c->mask == BOTH) return b_and(b, of_keys(m), is);
  if (m->c->mask != WINDOW) return is;
  return b_and(b, is, b_compare(b, "LT", i, b_add(b, j, b_full(b, j->type, 33))));
}

static Value *scores_of(Program *m) {
  const Case *c = m->c;
  Build *b = &m->b;
  const int64_t last = 3, key = c->heads_last ? 3 : 2;
  Value *s = b_muls(b, product(m, m->q, m->k, 1, &last, &key, false), 0.25);
  m->scores = s->type;
  if (c->otherwise == CAPPED) s = b_tanh(b, s);
  if (c->mask == BIAS || c->mask == SLOPE) {
    const bool each = c->mask == BIAS;
    Value *x =
        numbers_from(m, 5, each ? 3 : 1, (int64_t[]){each ? c->batch : c->cols, c->rows, c->cols});
    return b_add(b, s, b_bcast_like(b, x, m->scores, each ? (int[]){0, 2, 3} : (int[]){3}));
  }
  if (c->mask == NONE) return s;
  m->mask = mask_of(m);
  return b_select(b, m->mask, s, b_full(b, m->scores, c->fill));
}

static Value *wide(Program *m, Value *x) {
  return b_bcast_like(&m->b, x, m->scores, (int[]){0, 1, 2});
}

static Value *weights_of(Program *m, Value *s) {
  Build *b = &m->b;
  const int64_t cols = 3;
  m->e = b_exp(b, b_sub(b, s, wide(m, b_reduce(b, OP_MAXIMUM, s, 1, &cols))));
  m->sum = b_reduce(b, OP_ADD, m->e, 1, &cols);
  return m->p = b_div(b, m->e, wide(m, m->sum));
}

/* Of the scores: p (dp - sum(p dp)), or as JAX has it, e (dp / sum - sum(dp e / sum^2)). */
static Value *slopes_of(Program *m) {
  Build *b = &m->b;
  const int64_t last = 3, key = m->c->heads_last ? 3 : 2, cols = 3;
  Value *dp = product(m, m->g, m->v, 1, &last, &key, false), *ds;
  if (m->c->quotients) {
    Value *one = b_div(b, b_full(b, m->sum->type, 1), b_mul(b, m->sum, m->sum));
    Value *mean = b_reduce(b, OP_ADD, b_mul(b, b_mul(b, dp, wide(m, one)), m->e), 1, &cols);
    ds = b_mul(b, b_add(b, b_div(b, dp, wide(m, m->sum)), wide(m, b_neg(b, mean))), m->e);
  } else {
    Value *mean = b_reduce(b, OP_ADD, b_mul(b, m->p, dp), 1, &cols);
    ds = b_mul(b, m->p, b_sub(b, dp, wide(m, mean)));
  }
  if (m->mask) ds = b_select(b, m->mask, ds, b_full(b, ds->type, 0));
  return b_muls(b, ds, 0.25);
}

static int results_of(Program *m, Value **out) {
  const bool last = m->c->heads_last;
  const int64_t cols = 3, key = 1, rows[] = {2, 1}, of_rows[] = {last ? 1 : 2, 1};
  Value *p = weights_of(m, scores_of(m));
  out[0] = product(m, p, m->v, 1, &cols, &key, true);
  if (m->c->otherwise == WEIGHTS_WANTED) out[1] = p;
  if (m->c->otherwise == SUM_WANTED) out[1] = m->sum;
  if (!m->c->gradient)
    return m->c->otherwise == WEIGHTS_WANTED || m->c->otherwise == SUM_WANTED ? 2 : 1;
  Value *ds = slopes_of(m);
  int n = last ? 1 : 2; /* keys that groups share: sums over these as well */
  out[1] = product(m, ds, m->k, 1, &cols, &key, true);
  out[2] = product(m, ds, m->q, n, rows, of_rows, true);
  out[3] = product(m, p, m->g, n, rows, of_rows, true);
  return 4;
}

static int64_t numbers(const Case *c) {
  return c->batch * MAX(c->groups * MAX(c->rows, c->cols) * c->width, c->rows * c->cols) + 100;
}

/* All results in one, as f32. */
static Module *program(const Case *c) {
  Module *module = module_new();
  Program m = {.c = c};
  Value *out[4];
  int64_t n = numbers(c);
  b_func(&m.b, module, "main");
  m.x = b_arg(&m.b, b_type(&m.b, c->type, 1, &n));
  m.q = rows_of(&m, 0, c->rows, false);
  m.k = rows_of(&m, 11, c->cols, true);
  m.v = rows_of(&m, 23, c->cols, true);
  m.g = rows_of(&m, 7, c->rows, false);
  int k = results_of(&m, out);
  for (int i = 0; i < k; i++) {
    int64_t all = type_count(out[i]->type);
    out[i] = b_reshape(&m.b, b_convert(&m.b, out[i], DT_F32), 1, &all);
  }
  Value *r = b_concat(&m.b, k, out, 0);
  b_return(&m.b, 1, &r);
  return module;
}

static int count(const Module *m, OpKind kind) {
  int n = 0;
  for (const Op *op = module_main(m)->body->first; op; op = op->next) n += op->kind == kind;
  return n;
}

static Tensor *interpreted(const Module *m, Tensor *x) {
  Shards arg = {1, &x}, got = {0};
  Err *e = interp_run(m, STR("main"), NULL, &arg, 1, &got, 1);
  if (e) fail_msg("%s", err_text(e));
  Tensor *t = tensor_retain(got.t[0]);
  shards_free(&got);
  return t;
}

static void same(const Case *c, const char *who, const Tensor *got, const Tensor *want) {
  double far = c->type == DT_F32 || c->type == DT_F64 ? 2e-5 : c->type == DT_F16 ? 0.01 : 0.06;
  const float *x = got->data, *y = want->data;
  for (int64_t i = 0; i < want->count; i++) {
    if (isnan(x[i]) && isnan(y[i])) continue;
    if (!(fabsf(x[i] - y[i]) <= far * fmax(1, fabsf(y[i]))))
      fail_msg("%s: %s: element %lld of %lld is %g, not %g", c->name, who, (long long)i,
               (long long)want->count, (double)x[i], (double)y[i]);
  }
}

static void attention(void **state) {
  const Case *c = *state;
  Module *before = program(c), *after = program(c);
  Err *e = ir_verify(before);
  if (!e) e = pass_attention(after, NULL, NULL);
  if (!e) e = ir_verify(after);
  if (e) fail_msg("%s: %s", c->name, err_text(e));
  assert_int_equal(count(after, OP_ATTENTION), c->found);
  assert_int_equal(count(after, OP_ATTENTION_GRAD), c->found && c->gradient);
  assert_int_equal(count(after, OP_DOT_GENERAL), c->found ? 0 : count(before, OP_DOT_GENERAL));
  int64_t n = numbers(c);
  Tensor *x = test_numbers(c->type, 1, &n);
  Buf text = {0};
  stablehlo_write_text(&text, before, NULL);
  Tensor *want = interpreted(before, x), *made = interpreted(after, x),
         *got = answer_of((const char *)text.p, x);
  same(c, "interpreter", made, want);
  same(c, "device", got, want);
  tensor_release(want);
  tensor_release(made);
  tensor_release(got);
  tensor_release(x);
  buf_free(&text);
  module_free(before);
  module_free(after);
}

static bool of_floats(void *arg, DType t) {
  (void)arg;
  return t == DT_F32;
}

/* A device that rounds every operation, or multiplies pairs faster by themselves, has attention of floats alone. */
static void as_the_device_has_it(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(cases); i++) {
    Module *m = program(&cases[i]);
    Err *e = pass_attention(m, of_floats, NULL);
    if (e) fail_msg("%s: %s", cases[i].name, err_text(e));
    assert_int_equal(count(m, OP_ATTENTION), cases[i].found && cases[i].type == DT_F32);
    module_free(m);
  }
}

int main(void) {
  struct CMUnitTest tests[COUNT_OF(cases) + 1];
  for (int i = 0; i < COUNT_OF(cases); i++)
    tests[i] = (struct CMUnitTest){cases[i].name, attention, NULL, NULL, &cases[i]};
  tests[COUNT_OF(cases)] = (struct CMUnitTest)cmocka_unit_test(as_the_device_has_it);
  return _cmocka_run_group_tests("attention", tests, COUNT_OF(tests), NULL, NULL);
}
