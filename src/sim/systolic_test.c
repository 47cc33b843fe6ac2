/* systolic: the array against closed forms, plain loops and published counts. */
#include <stdlib.h>

#include "sim/estimate_test.h"

static void test_systolic_numbers(void **state) {
  (void)state;
  static const int shapes[][5] = {
      {4, 4, 4, 4, 4}, {4, 4, 7, 5, 9}, {8, 4, 3, 10, 17}, {3, 5, 11, 1, 2}, {16, 16, 33, 40, 20}};
  for (int s = 0; s < COUNT_OF(shapes); s++)
    for (int flow = 0; flow < 2; flow++)
      for (int db = 0; db < 2; db++) {
        int R = shapes[s][0], C = shapes[s][1], m = shapes[s][2], n = shapes[s][3],
            k = shapes[s][4];
        float *a = malloc(sizeof *a * (size_t)(m * k)), *b = malloc(sizeof *b * (size_t)(k * n));
        for (int i = 0; i < m * k; i++) a[i] = (float)((i * 7) % 13 - 6);
        for (int i = 0; i < k * n; i++) b[i] = (float)((i * 5) % 11 - 5);
        SystolicRun r;
        assert_null(systolic_run(flow, R, C, m, n, k, a, b, db, &r));
        for (int i = 0; i < m; i++)
          for (int j = 0; j < n; j++) {
            float want = 0;
            for (int q = 0; q < k; q++) want += a[i * k + q] * b[q * n + j];
            assert_true(r.result[i * n + j] == want); /* small integers: exact */
          }
        assert_int_equal(r.macs, (int64_t)m * n * k);
        assert_int_equal(r.fill + r.steady + r.drain, r.cycles);
        assert_int_equal(r.cycles, systolic_cycles(flow, R, C, m, n, k, db));
        systolic_free(&r);
        free(a);
        free(b);
      }
}

static void test_systolic_counts(void **state) {
  (void)state;
  /* counted wave by wave, as large runs are, against the same run with numbers, element by element
   */
  for (int flow = 0; flow < 2; flow++)
    for (int db = 0; db < 2; db++) {
      enum { M = 150, N = 60, K = 140 };
      float *a = calloc(M * K, sizeof *a), *b = calloc(K * N, sizeof *b);
      SystolicRun walked, counted;
      assert_null(systolic_run(flow, 24, 16, M, N, K, a, b, db, &walked));
      assert_null(systolic_run(flow, 24, 16, M, N, K, NULL, NULL, db, &counted));
      assert_true(walked.cycles * 24.0 * 16 <= SYSTOLIC_WALK || counted.counted);
      assert_int_equal(walked.macs, counted.macs);
      assert_int_equal(walked.steady, counted.steady);
      assert_int_equal(walked.fill, counted.fill);
      for (int64_t t = 0; t < walked.cycles; t++)
        assert_int_equal(walked.active[t], counted.active[t]);
      systolic_free(&walked);
      systolic_free(&counted);
      free(a);
      free(b);
    }
}

/* Fill and drain are one tile's, whatever part of the array the last ones fill. */
static void test_systolic_parts(void **state) {
  (void)state;
  static const struct {
    SystolicFlow flow;
    bool db;
    int rows, cols;
    int64_t m, n, k, fill, drain;
  } runs[] = {
      {SYSTOLIC_WS, true, 128, 128, 300, 300, 300, 128 + 254, 254},
      {SYSTOLIC_WS, true, 128, 128, 300, 256, 256, 128 + 254, 254},
      {SYSTOLIC_WS, false, 16, 16, 64, 40, 40, 16 + 30, 30},
      {SYSTOLIC_OS, true, 16, 16, 40, 40, 64, 30, 46},
      {SYSTOLIC_WS, true, 4, 4, 3, 2, 2, 4 + 2, 6}, /* fills a corner, which all works once */
      {SYSTOLIC_WS, true, 8, 4, 2, 4, 8, 8 + 4, 4}, /* too short a stream: a band of it works */
      {SYSTOLIC_WS, true, 1, 1, 5, 1, 1, 1, 0},
  };
  for (int i = 0; i < COUNT_OF(runs); i++) {
    SystolicRun r;
    assert_null(systolic_run(runs[i].flow, runs[i].rows, runs[i].cols, runs[i].m, runs[i].n,
                             runs[i].k, NULL, NULL, runs[i].db, &r));
    assert_int_equal(r.fill, runs[i].fill);
    assert_int_equal(r.drain, runs[i].drain);
    assert_int_equal(r.fill + r.steady + r.drain, r.cycles);
    systolic_free(&r);
  }
}

static void test_systolic_published(void **state) {
  (void)state;
  /* runs of SCALE-Sim 3.0.0: COMPUTE_REPORT.csv, Total Cycles (tools/systolic_peer.py) */
  static const struct {
    SystolicFlow flow;
    int rows, cols;
    int64_t m, n, k, cycles;
  } runs[] = {
      {SYSTOLIC_WS, 8, 8, 16, 8, 8, 37},
      {SYSTOLIC_WS, 8, 8, 5, 20, 13, 161},
      {SYSTOLIC_WS, 16, 16, 64, 64, 64, 1759},
      {SYSTOLIC_WS, 16, 32, 100, 70, 50, 1943},
      {SYSTOLIC_WS, 32, 32, 128, 128, 128, 3551},
      {SYSTOLIC_WS, 32, 16, 33, 65, 97, 2219},
      {SYSTOLIC_WS, 128, 128, 256, 256, 256, 2551},
      {SYSTOLIC_WS, 128, 128, 100, 300, 200, 2891},
      {SYSTOLIC_OS, 8, 8, 16, 8, 8, 43},
      {SYSTOLIC_OS, 8, 8, 5, 20, 13, 80},
      {SYSTOLIC_OS, 16, 16, 64, 64, 64, 1503},
      {SYSTOLIC_OS, 16, 32, 100, 70, 50, 2015},
      {SYSTOLIC_OS, 32, 32, 128, 128, 128, 3039},
      {SYSTOLIC_OS, 32, 16, 33, 65, 97, 1429},
      {SYSTOLIC_OS, 128, 128, 256, 256, 256, 2039},
      {SYSTOLIC_OS, 128, 128, 100, 300, 200, 1361},
  };
  for (int i = 0; i < COUNT_OF(runs); i++) {
    SystolicFlow flow = runs[i].flow;
    int R = runs[i].rows, C = runs[i].cols;
    int64_t m = runs[i].m, n = runs[i].n, k = runs[i].k;
    assert_int_equal(systolic_scalesim_cycles(flow, R, C, m, n, k), runs[i].cycles);
    SystolicRun r;
    assert_null(systolic_run(flow, R, C, m, n, k, NULL, NULL, false, &r));
    /* it numbers cycles from 0; its output-stationary results are never shifted out, which takes R
     * cycles a fold */
    int64_t out = flow == SYSTOLIC_OS ? r.folds * R : 0;
    assert_int_equal(r.cycles, runs[i].cycles + 1 + out);
    systolic_free(&r);
  }
  /* without double buffering the simulated array needs no fewer cycles than one that hides its
   * weights */
  assert_true(systolic_cycles(SYSTOLIC_WS, 128, 128, 512, 512, 512, false) >
              systolic_cycles(SYSTOLIC_WS, 128, 128, 512, 512, 512, true));
  /* the tile formula of the cost model: rows stream past each tile of weights, one a cycle, once
   * the array is full */
  for (int64_t m = 256; m <= 4096; m *= 2) {
    double tiles = 4 * 6, formula = tiles * (double)m;
    double exact = (double)systolic_cycles(SYSTOLIC_WS, 128, 128, m, 6 * 128, 4 * 128, true);
    assert_true(exact >= formula && exact <= formula + 3 * 128 + 256);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_systolic_numbers),
      cmocka_unit_test(test_systolic_counts),
      cmocka_unit_test(test_systolic_parts),
      cmocka_unit_test(test_systolic_published),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
