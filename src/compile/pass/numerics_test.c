/* Which products libtpu 0.0.51 gives to the matrix unit, as its optimised programs of f32 say (conv or multiply and
 * reduce; asked through tools/libtpu_ask.py's compiler), and what becomes of infinities in products of parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>

#include "compile/pass/numerics.h"
#include "interp/interp.h"
#include "ir/build.h"

/* Dimensions by role in the order given, both operands: "bk,bkn" as einsum has it; sizes by letter. */
typedef struct Asked {
  const char *lhs, *rhs;
  int64_t a, b, k, l, m, n, q;
  bool vector, vector7; /* on the vector unit: up to v6e; on TPU7x */
} Asked;

static const Asked asked[] = {
    {"k", "k", .k = 2, .vector = true, .vector7 = true},
    {"k", "k", .k = 4096, .vector = true, .vector7 = true},
    {"bk", "bk", .b = 16, .k = 64, .vector = true, .vector7 = true},
    {"mk", "kn", .m = 512, .k = 1, .n = 512, .vector = true, .vector7 = true},
    {"mk", "k", .m = 4096, .k = 1, .vector = true, .vector7 = true},
    {"bmk", "bkn", .b = 16, .m = 128, .k = 1, .n = 128, .vector = true, .vector7 = true},
    {"mk", "k", .m = 1, .k = 512, .vector = true, .vector7 = true},
    {"mk", "k", .m = 2, .k = 2, .vector = true},
    {"mk", "k", .m = 128, .k = 500, .vector = true},
    {"mk", "k", .m = 4096, .k = 4096, .vector = true},
    {"mk", "kn", .m = 1, .k = 512, .n = 512, .vector = true},
    {"mk", "kn", .m = 512, .k = 512, .n = 1, .vector = true},
    {"mk", "kn", .m = 1, .k = 512, .n = 1, .vector = true, .vector7 = true},
    {"mk", "kn", .m = 1, .k = 1000, .n = 7, .vector = true},
    {"mk", "kn", .m = 2, .k = 2, .n = 2},
    {"mk", "kn", .m = 512, .k = 2, .n = 512},
    {"mk", "kn", .m = 3, .k = 512, .n = 3},
    {"mlk", "lkn", .m = 3, .l = 1, .k = 64, .n = 512},
    {"mlk", "lkn", .m = 3, .l = 1, .k = 1, .n = 512, .vector = true, .vector7 = true},
    {"mqk", "kn", .m = 4, .q = 1, .k = 512, .n = 512},
    {"bmk", "bkn", .b = 1000, .m = 3, .k = 3, .n = 3},
    {"bmk", "bkn", .b = 64, .m = 4, .k = 64, .n = 4},
    {"bqk", "bkn", .b = 64, .q = 1, .k = 64, .n = 1, .vector = true, .vector7 = true},
    {"bqk", "bkn", .b = 4, .q = 1, .k = 128, .n = 128, .vector = true},
    {"bqk", "bkn", .b = 8, .q = 1, .k = 512, .n = 512, .vector = true},
    {"bqk", "bkn", .b = 1000, .q = 1, .k = 3, .n = 3, .vector = true, .vector7 = true},
    {"bqk", "bkn", .b = 64, .q = 1, .k = 3, .n = 128, .vector = true},
    {"bqk", "bkn", .b = 64, .q = 1, .k = 16, .n = 3, .vector = true, .vector7 = true},
    {"bqk", "bkn", .b = 8, .q = 1, .k = 3, .n = 16, .vector = true},
    {"bqk", "bkn", .b = 8, .q = 1, .k = 3, .n = 3, .vector = true, .vector7 = true},
    {"bk", "bkn", .b = 2, .k = 2, .n = 2, .vector = true},
    {"bk", "bkn", .b = 8, .k = 2, .n = 2, .vector = true, .vector7 = true},
    {"bk", "bkn", .b = 8, .k = 8, .n = 8, .vector = true},
    {"bk", "bkn", .b = 64, .k = 32, .n = 32, .vector = true, .vector7 = true},
    {"bk", "bkn", .b = 64, .k = 63, .n = 63, .vector = true},
    {"bk", "bkn", .b = 64, .k = 64, .n = 32, .vector = true},
    {"bk", "bkn", .b = 64, .k = 64, .n = 64},
    {"bk", "bkn", .b = 1000, .k = 63, .n = 63, .vector = true, .vector7 = true},
    {"bk", "bkn", .b = 1000, .k = 64, .n = 64, .vector7 = true},
    {"bk", "bkn", .b = 1000, .k = 128, .n = 8, .vector = true},
    {"bk", "bkn", .b = 1000, .k = 8, .n = 128, .vector = true},
    {"bk", "bnk", .b = 16, .k = 64, .n = 64},
    {"bk", "bkn", .b = 4, .k = 4096, .n = 512},
    {"kb", "knb", .b = 64, .k = 64, .n = 256},
    {"abk", "abkn", .a = 4, .b = 4, .k = 64, .n = 64},
    {"abk", "abkn", .a = 4, .b = 4, .k = 8, .n = 8, .vector = true},
    {"abk", "abkn", .a = 8, .b = 1, .k = 64, .n = 64, .vector = true},
    {"abk", "abkn", .a = 1, .b = 8, .k = 64, .n = 64, .vector = true},
    {"bk", "bkmn", .b = 8, .k = 64, .m = 8, .n = 16, .vector = true},
    {"bk", "bkmn", .b = 8, .k = 64, .m = 64, .n = 2},
    {"bkl", "bkln", .b = 8, .k = 8, .l = 8, .n = 64, .vector = true},
    {"bkl", "bkln", .b = 8, .k = 64, .l = 2, .n = 64},
    {"abk", "anbk", .a = 4, .b = 8, .k = 64, .n = 512}, /* attention, one token */
};

static int64_t size_of(const Asked *x, char c) {
  switch (c) {
  case 'a': return x->a;
  case 'b': return x->b;
  case 'k': return x->k;
  case 'l': return x->l;
  case 'm': return x->m;
  case 'n': return x->n;
  default: return x->q;
  }
}

static Value *argument(Build *b, const Asked *x, const char *dims) {
  int64_t d[B_MAX_RANK];
  int rank = (int)strlen(dims);
  for (int i = 0; i < rank; i++) d[i] = size_of(x, dims[i]);
  return b_arg(b, b_type(b, DT_F32, rank, d));
}

static const Op *product(Module *m, const Asked *x) {
  Func *f = func_new(m, STR("main"), 0, NULL, 0, NULL);
  Build b = {m, f->body, NULL};
  DotDims d = {0};
  for (const char *c = x->lhs; *c; c++) {
    const char *other = strchr(x->rhs, *c);
    bool batch = *c == 'a' || *c == 'b';
    if (!other) continue;
    int64_t *left = batch ? d.lhs_batch + d.n_batch : d.lhs_contract + d.n_contract;
    int64_t *right = batch ? d.rhs_batch + d.n_batch++ : d.rhs_contract + d.n_contract++;
    *left = c - x->lhs, *right = other - x->rhs;
  }
  Value *in[2] = {argument(&b, x, x->lhs), argument(&b, x, x->rhs)};
  return b_dot(&b, in[0], in[1], &d, DT_F32, NULL)->def;
}

static void as_libtpu_has_it(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(asked); i++) {
    Module *m = module_new();
    const Op *op = product(m, &asked[i]);
    if ((numerics_level(op, NUM_BF16_PASSES) < 0) != asked[i].vector)
      fail_msg("row %d, %s,%s up to v6e", i, asked[i].lhs, asked[i].rhs);
    if ((numerics_level(op, NUM_BF16_MATVEC) < 0) != asked[i].vector7)
      fail_msg("row %d, %s,%s on TPU7x", i, asked[i].lhs, asked[i].rhs);
    module_free(m);
  }
}

/* x y of 2 x 2 matrices at a precision, on a TPU. */
static void multiply(const char *precision, const float x[4], const float y[4], float out[4]) {
  const int64_t two[2] = {2, 2};
  Module *m = module_new();
  Build b = {m, NULL, NULL};
  Type *t = type_tensor(m, DT_F32, 2, two);
  Func *f = func_new(m, STR("main"), 2, (Type *[]){t, t}, 1, &t);
  b.r = f->body;
  Attr *p[2] = {attr_enum(m, str_from(precision)), attr_enum(m, str_from(precision))};
  Value *r = b_dot(&b, f->body->args[0], f->body->args[1],
                   &(DotDims){.n_contract = 1, .lhs_contract = {1}, .rhs_contract = {0}}, DT_F32,
                   attr_array(m, 2, p));
  b_return(&b, 1, &r);
  pass_numerics(m, NUM_BF16_PASSES);
  assert_null(ir_verify(m));
  Tensor *in[2];
  for (int i = 0; i < 2; i++) {
    in[i] = tensor_make(DT_F32, 2, two);
    memcpy(in[i]->data, i ? y : x, 16);
  }
  Shards args[2] = {{1, &in[0]}, {1, &in[1]}}, res = {0};
  assert_null(interp_run(m, STR("main"), NULL, args, 2, &res, 1));

  memcpy(out, res.t[0]->data, 16);
  for (int i = 0; i < 2; i++) tensor_release(in[i]);
  shards_free(&res);
  module_free(m);
}

static bool same(float a, float b) { return a == b || (isnan(a) && isnan(b)); }

/* As a product of f32 has them, at every precision. */
static void infinities_stay(void **state) {
  (void)state;
  static const float cases[][4] = {{INFINITY, 1, 1, 2},         {-INFINITY, 1, 0.3f, 2},
                                   {INFINITY, INFINITY, 1, 0},  {NAN, 1, 1, 1},
                                   {INFINITY, -INFINITY, 1, 1}, {3, 1e-40f, INFINITY, 0},
                                   {1.1f, 2, 3, -0.0f}};
  static const float y[4] = {2.5f, 1, 1.1f, -3};
  for (int c = 0; c < COUNT_OF(cases); c++)
    for (int level = 0; level < 3; level++) {
      float got[4];
      multiply(((const char *[]){"DEFAULT", "HIGH", "HIGHEST"})[level], cases[c], y, got);
      for (int i = 0; i < 4; i++) {
        const float *row = cases[c] + i / 2 * 2;
        float want = row[0] * y[i % 2] + row[1] * y[2 + i % 2];
        bool near = isfinite(want) && fabsf(got[i] - want) <= fabsf(want) * 0x1p-6f;
        if (!near && !same(got[i], want))
          fail_msg("case %d, level %d, element %d: %g for %g", c, level, i, got[i], want);
      }
    }
}

/* Its first part would be infinity, rounded to nearest. */
static void the_largest_number_is_finite(void **state) {
  (void)state;
  float got[4];
  multiply("HIGHEST", (float[4]){3.4028235e38f, 0, 0, -3.4028235e38f}, (float[4]){0.5f, 0, 0, 1},
           got);
  assert_true(got[0] == 3.4028235e38f / 2 && got[3] == -3.4028235e38f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(as_libtpu_has_it),
      cmocka_unit_test(infinities_stay),
      cmocka_unit_test(the_largest_number_is_finite),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
