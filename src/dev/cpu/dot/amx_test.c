/* amx against sums in f64: shapes around the sizes of tiles, blocks of k and tasks, operands in any
 * order, padded rows, every type; exact where the types are. Guards must survive. */
#include "dev/cpu/dot/amx.h"
#include "dev/cpu/dot/product_test.h"

#define GUARD 64
#define MARK 0x5b

/* Between runs of `run` elements, `step` apart, lies what would spoil all sums: NaN, where there is
 * one. */
static char *operand(DType t, int64_t runs, int64_t run, int64_t step) {
  int64_t e = dtype_bytes(t);
  char *p = xmalloc((size_t)(runs * step * e + GUARD));
  for (int64_t i = 0; i < runs * step; i++)
    if (dtype_is_int(t)) elem_set_i64(t, p + i * e, below(256) - 128);
    else elem_set_f64(t, p + i * e, i % step < run ? (double)(below(255) - 127) / 64 : NAN);
  memset(p + runs * step * e, 0xff, GUARD);
  return p;
}

static char *guarded(int64_t bytes) {
  char *p = aligned_alloc(64, (size_t)(bytes + GUARD + 63) / 64 * 64);
  memset(p, MARK, (size_t)(bytes + GUARD));
  return p;
}

static void check_guard(const char *p, int64_t bytes) {
  for (int i = 0; i < GUARD; i++) assert_int_equal(p[bytes + i], MARK);
}

/* at[i]: element (i / n, i % n) of the product. */
static void check_product(int64_t m, int64_t n, int64_t k, GemmTypes t, const GemmArgs *x,
                          int64_t c_row) {
  const char *a = x->a, *b = x->b, *c = x->c;
  double tol = t.c == DT_I32 ? 0 : t.c == DT_F32 ? 1e-6 : 8e-3;
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < c_row; j++) {
      const char *out = c + (i * c_row + j) * dtype_bytes(t.c);
      for (int u = 0; j >= n && u < dtype_bytes(t.c); u++) assert_int_equal(out[u], MARK);
      double sum = 0, size = 1e-6;
      for (int64_t p = 0; j < n && p < k; p++) {
        double v = element(t.a, a + (i * x->a_row + p * x->a_k) * dtype_bytes(t.a)) *
                   element(t.b, b + (j * x->b_col + p * x->b_k) * dtype_bytes(t.b));
        sum += v;
        size += fabs(v);
      }
      if (j >= n || fabs(element(t.c, out) - sum) <= tol * size) continue;
      fail_msg("[%lld, %lld] of %lldx%lldx%lld, %lld %lld, %s: %g, not %g", (long long)i,
               (long long)j, (long long)m, (long long)n, (long long)k, (long long)x->a_k,
               (long long)x->b_k, dtype_name(t.a), element(t.c, out), sum);
    }
}

static void check_one(int64_t m, int64_t n, int64_t k, bool ta, bool tb, int64_t pad, GemmTypes t) {
  Amx g;
  assert_true(amx_plan(&g, m, n, k, t, 1, !ta));
  int64_t ar = ta ? k : m, ac = ta ? m : k, br = tb ? n : k, bc = tb ? k : n, as = ac + pad,
          bs = bc + pad, c_row = n + pad, out = m * c_row * dtype_bytes(t.c),
          scratch = amx_scratch_bytes(&g), ahead = amx_ahead_bytes(&g);
  char *a = operand(t.a, ar, ac, as), *b = operand(t.b, br, bc, bs), *c = guarded(out),
       *own = guarded(scratch), *packed = guarded(ahead);
  GemmArgs x = {.a = a,
                .b = b,
                .a_row = ta ? 1 : as,
                .a_k = ta ? as : 1,
                .b_col = tb ? bs : 1,
                .b_k = tb ? 1 : bs,
                .c_row = c_row,
                .c = c};
  for (int64_t i = amx_ahead_parts(&g) - 1; i >= 0; i--) amx_ahead(&g, &x, packed, i, i + 1);
  for (int64_t i = g.tiles_m * g.tiles_n - 1; i >= 0; i--) amx_tile(&g, &x, NULL, packed, i, own);
  amx_release(&g);
  check_product(m, n, k, t, &x, c_row);
  check_guard(c, out);
  check_guard(own, scratch);
  check_guard(packed, ahead);
  free(packed);
  free(a);
  free(b);
  free(c);
  free(own);
}

static const GemmTypes types[] = {{DT_BF16, DT_BF16, DT_BF16}, {DT_BF16, DT_BF16, DT_F32},
                                  {DT_I8, DT_I8, DT_I32},      {DT_U8, DT_I8, DT_I32},
                                  {DT_I8, DT_U8, DT_I32},      {DT_U8, DT_U8, DT_I32}};

/* Without tiles, or their emulation, there is nothing to be tested. */
static void needs_tiles(void) {
  if (!amx_bf16() && !amx_bytes(true, true)) skip();
}

static void test_shapes(void **state) {
  (void)state;
  needs_tiles();
  for (int i = 0; i < 360; i++) {
    bool large = i % 12 >= 10;
    int64_t m = 1 + below(large ? 300 : 50), n = 1 + below(large ? 300 : 80),
            k = 1 + below(i % 9 == 0 ? 900 : 80), turn = below(4);
    GemmTypes t = types[i % COUNT_OF(types)];
    Amx g;
    if (!amx_plan(&g, m, n, k, t, 1, true)) continue;
    check_one(m, n, k, turn & 1, turn & 2, below(3), t);
  }
}

/* Several tasks along either side. */
static void test_tasks(void **state) {
  (void)state;
  needs_tiles();
  for (size_t i = 0; i < COUNT_OF(types); i++) {
    Amx g;
    if (!amx_plan(&g, 700, 40, 70, types[i], 1, true)) continue;
    check_one(700, 40, 70, i & 1, i & 2, 1, types[i]);
    check_one(40, 700, 70, i & 1, i & 2, 1, types[i]);
    check_one(560, 560, 33, i & 1, i & 2, 0, types[i]);
    /* blocks of k */
    if (i < 3) check_one(70, 40, i < 2 ? 4500 : 8500, i & 1, i & 2, 0, types[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes), cmocka_unit_test(test_tasks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
