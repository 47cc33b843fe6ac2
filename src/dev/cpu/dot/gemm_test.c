/* gemm against sums in f64: shapes around the sizes of panels, blocks and tiles, all combinations
 * of transposed operands, padded rows, every type. Tiles run last to first: their order must not
 * matter. Guards after the result and the packed side must survive. */
#include "dev/cpu/dot/gemm.h"
#include "dev/cpu/dot/product_test.h"

#define GUARD 16
#define MARK 12345.0f

/* Integers; of floats multiples of 1/64: exact in bf16 and f16. */
static char *operand(DType t, int64_t n) {
  char *p = xmalloc((size_t)(n * dtype_bytes(t)) + 1);
  for (int64_t i = 0; i < n; i++)
    if (dtype_is_int(t)) elem_set_i64(t, p + i * dtype_bytes(t), below(256) - 128);
    else elem_set_f64(t, p + i * dtype_bytes(t), (double)(below(255) - 127) / 64);
  return p;
}

static float *guarded(int64_t n) {
  float *p = xmalloc(sizeof *p * (size_t)(n + GUARD));
  for (int64_t i = 0; i < n + GUARD; i++) p[i] = MARK;
  return p;
}

static void check_one(int64_t m, int64_t n, int64_t k, bool ta, bool tb, int64_t pad, GemmTypes t) {
  Gemm g;
  gemm_plan(&g, m, n, k, t, 1, (GemmAhead)below(3), !tb);
  if (g.both && below(2)) g.at_once = 1; /* as if there was memory for no more */
  DType out = t.c;
  int64_t as = (ta ? m : k) + pad, bs = (tb ? k : n) + pad;
  char *x = operand(t.a, (ta ? k : m) * as), *y = operand(t.b, (tb ? n : k) * bs);
  int64_t c_floats = (m * n * dtype_bytes(out) + 3) / 4, n_ahead = gemm_ahead_floats(&g),
          n_other = gemm_other_floats(&g);
  float *c = guarded(c_floats), *ahead = guarded(n_ahead), *other = guarded(n_other),
        *scratch = guarded(gemm_scratch_floats(&g));
  GemmArgs args = {.a = x,
                   .b = y,
                   .a_row = ta ? 1 : as,
                   .a_k = ta ? as : 1,
                   .b_col = tb ? bs : 1,
                   .b_k = tb ? 1 : bs,
                   .c_row = n,
                   .c = c};
  for (int64_t p = gemm_ahead_parts(&g) - 1; p >= 0; p--) gemm_ahead(&g, &args, ahead, p, p + 1);
  for (int64_t r = gemm_rounds(&g) - 1, end = g.tiles_m * g.tiles_n; r >= 0; r--) {
    for (int64_t p = gemm_other_parts(&g, r) - 1; p >= 0; p--)
      gemm_other(&g, &args, r, other, p, p + 1);
    int64_t first = r * gemm_round_tiles(&g);
    for (int64_t i = end - 1; i >= first; i--) gemm_tile(&g, &args, ahead, other, i, scratch);
    end = first;
  }
  double tol = out == DT_I32 ? 0 : out == DT_F32 ? 1e-6 : out == DT_F16 ? 1e-3 : 8e-3;
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      double sum = 0, size = 1e-6;
      for (int64_t p = 0; p < k; p++) {
        double v = element(t.a, x + (i * args.a_row + p * args.a_k) * dtype_bytes(t.a)) *
                   element(t.b, y + (j * args.b_col + p * args.b_k) * dtype_bytes(t.b));
        sum += v;
        size += fabs(v);
      }
      double got = element(out, (char *)c + (i * n + j) * dtype_bytes(out));
      if (fabs(got - sum) <= tol * size) continue;
      fail_msg("[%lld, %lld] of %lldx%lldx%lld %s%s %s: %g, not %g", (long long)i, (long long)j,
               (long long)m, (long long)n, (long long)k, ta ? "T" : "N", tb ? "T" : "N",
               dtype_name(t.a), got, sum);
    }
  for (int i = 0; i < GUARD; i++) {
    assert_true(c[c_floats + i] == MARK);
    assert_true(ahead[n_ahead + i] == MARK);
    assert_true(other[n_other + i] == MARK);
    assert_true(scratch[gemm_scratch_floats(&g) + i] == MARK);
  }
  free(x);
  free(y);
  free(c);
  free(ahead);
  free(other);
  free(scratch);
}

static void test_shapes(void **state) {
  (void)state;
  if (!gemm_kernels()) skip();
  static const GemmTypes types[] = {
      {DT_F32, DT_F32, DT_F32}, {DT_BF16, DT_BF16, DT_BF16}, {DT_BF16, DT_BF16, DT_F32},
      {DT_F16, DT_F16, DT_F16}, {DT_F16, DT_F16, DT_F32},    {DT_I8, DT_I8, DT_I32},
      {DT_U8, DT_I8, DT_I32},   {DT_I8, DT_U8, DT_I32},      {DT_U8, DT_I16, DT_I32},
      {DT_I16, DT_I16, DT_I32}, {DT_I16, DT_I8, DT_I32}};
  for (int i = 0; i < 660; i++) {
    bool large = i % 10 == 5;
    int64_t m = 1 + below(large ? 500 : 40), n = 1 + below(large ? 600 : 80),
            k = 1 + below(i % 9 == 0 ? 700 : 40), turn = below(4);
    GemmTypes t = types[i % COUNT_OF(types)];
    if (i % 30 == 0) m += 380, n += 380; /* both sides packed before the tiles */
    check_one(m, n, k, turn & 1, turn & 2, below(3), t);
  }
}

/* Every panel of a small product, every width: exact, and nothing beyond the columns changes. */
static void test_panels(void **state) {
  (void)state;
  const GemmKernels *kern = gemm_kernels();
  if (!kern) skip();
  for (int64_t columns = 1; columns <= 2 * kern->lanes; columns++) {
    const GemmPanelFn *fn = kern->panel[columns > kern->lanes];
    for (int rows = 1; rows <= GEMM_MAX_MR && fn[rows - 1]; rows++) {
      int64_t k = 1 + below(20), turned = below(2), n = columns + below(5);
      GemmAt at = {.a_row = turned ? 1 : k + below(3),
                   .a_k = turned ? rows + below(3) : 1,
                   .b_k = columns + below(4),
                   .c_row = n};
      int64_t all = rows * n + kern->lanes;
      float *a = (float *)operand(DT_F32, (rows + 3) * (k + 3)),
            *b = (float *)operand(DT_F32, k * at.b_k), *c = guarded(all);
      for (int add = 0; add < 2; add++) fn[rows - 1](&at, k, a, b, c, columns, add);
      for (int64_t i = 0; i < all; i++) {
        double sum = 0;
        for (int64_t p = 0; p < k && i / n < rows && i % n < columns; p++)
          sum += 2 * (double)a[i / n * at.a_row + p * at.a_k] * (double)b[p * at.b_k + i % n];
        bool outside = i / n >= rows || i % n >= columns;
        assert_true(outside ? c[i] == MARK : (double)c[i] == sum);
      }
      at.c_end = c + all; /* of rows that follow one another */
      fn[rows - 1](&at, k, a, b, c, columns, false);
      for (int64_t i = 0; i < columns; i++) {
        double sum = 0;
        for (int64_t p = 0; p < k; p++)
          sum += (double)a[(rows - 1) * at.a_row + p * at.a_k] * (double)b[p * at.b_k + i];
        assert_true((double)c[(rows - 1) * n + i] == sum);
      }
      for (int i = 0; i < GUARD; i++) assert_true(c[all + i] == MARK);
      free(a);
      free(b);
      free(c);
    }
  }
}

/* Any bits to bf16, as a number in f64 would become one: ties, denormals, infinities, NaN. */
static void test_narrow(void **state) {
  (void)state;
  const GemmKernels *pairs = gemm_pairs();
  if (!gemm_kernels()) skip();
  for (int i = 0; i < 2000; i++) {
    uint32_t bits[2][40];
    uint16_t out[2][44];
    float in[2][40];
    int64_t columns = 1 + below(40);
    for (int r = 0; r < 2; r++)
      for (int j = 0; j < 40; j++) {
        uint32_t u = (uint32_t)below((int64_t)1 << 32);
        if (i % 4 == 0) u &= 0x807fffff;                           /* denormal */
        if (i % 4 == 1) u = (u & 0xffff0000) | 0x8000;             /* a tie */
        if (i % 4 == 2 && below(4) == 0) u |= 0x7f800000;          /* NaN */
        if (i % 8 == 3 && below(4) == 0) u = 0x7f7f8000 - (u & 1); /* about the largest */
        bits[r][j] = u;
      }
    memcpy(in, bits, sizeof in);
    memset(out, 0xab, sizeof out);
    if (pairs && pairs->narrow) pairs->narrow(in[0], 40, 2, columns, out[0], 44);
    else gemm_narrow(DT_BF16, in[0], 40, 2, columns, out, 44);
    for (int r = 0; r < 2; r++)
      for (int64_t j = 0; j < 44; j++) {
        uint16_t want = 0xabab;
        if (j < columns) elem_set_f64(DT_BF16, &want, (double)in[r][j]);
        if (j < columns && isnan(in[r][j])) assert_true(isnan(elem_get_f64(DT_BF16, &out[r][j])));
        else assert_int_equal(out[r][j], want);
      }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes), cmocka_unit_test(test_panels),
                                     cmocka_unit_test(test_narrow)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
