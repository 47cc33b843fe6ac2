/* Reads the golden arrays numpy wrote, and reads back what npz_write writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/npy.h"
#include <cmocka.h>

static void round_trip(void **state) {
  (void)state;
  double f[6] = {1, 2, 3, 4, 5, 6};
  uint16_t h = 0x3f80;
  Npy a[3] = {{(char *)"x", DT_F64, 2, {2, 3}, 6, f},
              {(char *)"s", DT_BF16, 0, {0}, 1, &h},
              {(char *)"empty", DT_I32, 1, {0}, 0, NULL}};
  char path[] = "/tmp/weft_npy_XXXXXX";
  close(mkstemp(path));
  assert_null(npz_write(path, a, 3));
  Npz z;
  assert_null(npz_read(path, &z));
  assert_int_equal(z.n, 3);
  const Npy *x = npz_find(&z, "x");
  assert_non_null(x);
  assert_int_equal(x->dtype, DT_F64);
  assert_int_equal(x->dims[1], 3);
  assert_memory_equal(x->data, f, sizeof f);
  assert_int_equal(npz_find(&z, "s")->dtype, DT_U16);
  assert_int_equal(*(uint16_t *)npz_find(&z, "s")->data, h);
  assert_int_equal(npz_find(&z, "empty")->count, 0);
  assert_null(npz_find(&z, "nothing"));
  npz_free(&z);
  unlink(path);
}

static void header_forms(void **state) {
  (void)state;
  char file[128 + 12] =
      "\x93NUMPY\x01\x00\x76\x00{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }";
  for (int i = 0; i < 128; i++)
    if (!file[i] && i > 12) file[i] = ' ';
  for (int i = 0; i < 6; i++) file[128 + 2 * i] = 0, file[129 + 2 * i] = (char)i;
  Npy a;
  assert_null(npy_parse(file, sizeof file, &a));
  assert_int_equal(a.rank, 2);
  const int16_t want[6] = {0, 2, 4, 1, 3, 5};
  assert_memory_equal(a.data, want, sizeof want);
  npy_free(&a);
  for (size_t n = 0; n < sizeof file; n += 7) { /* every truncation is refused */
    Err *e = npy_parse(file, n, &a);
    assert_non_null(e);
    assert_int_equal(e->code, ERR_INVALID);
    err_free(e);
  }
}

static void eight_bit_floats(void **state) { /* numpy.save of ml_dtypes' float8_e5m2 */
  (void)state;
  char file[128 + 3] =
      "\x93NUMPY\x01\x00\x76\x00{'descr': '<f1', 'fortran_order': False, 'shape': (3,), }";
  for (int i = 12; i < 128; i++)
    if (!file[i]) file[i] = ' ';
  memcpy(file + 128, "\x3c\xc0\x7c", 3);
  Npy a;
  assert_null(npy_parse(file, sizeof file, &a));
  assert_int_equal(a.dtype, DT_U8);
  assert_memory_equal(a.data, "\x3c\xc0\x7c", 3);
  npy_free(&a);
}

static void golden(void **state) {
  (void)state;
  Npz z;
  Err *e = npz_read("tests/golden/corpus/argmax_argmin.npz", &z);
  if (e && e->code == ERR_NOT_FOUND) {
    err_free(e);
    skip();
  }
  assert_null(e);
  assert_non_null(npz_find(&z, "in0"));
  assert_int_equal(npz_find(&z, "in0")->dtype, DT_F32);
  assert_int_equal(npz_find(&z, "in0")->count, 24);
  assert_int_equal(npz_find(&z, "out2")->rank, 0);
  npz_free(&z);
}

static void types(void **state) {
  (void)state;
  assert_true(npy_holds(DT_F32, DT_F32));
  assert_false(npy_holds(DT_I32, DT_F32)); /* of one size, but numpy has both */
  assert_true(npy_holds(DT_U16, DT_BF16));
  assert_false(npy_holds(DT_U8, DT_BF16));
}

/* A file that lost its end was an .npz; other bytes never were. */
static void damaged(void **state) {
  (void)state;
  static const char cut[64] = "PK\x03\x04", other[64] = "{}";
  Npz z;
  Err *e = npz_parse(cut, sizeof cut, &z);
  assert_int_equal(e->code, ERR_DATA_LOSS);
  err_free(e);
  e = npz_parse(other, sizeof other, &z);
  assert_int_equal(e->code, ERR_INVALID);
  err_free(e);
}

/* A byte that changed on the way: numpy.load says "Bad CRC-32" of the same file. */
static void changed(void **state) {
  (void)state;
  float x[4] = {1, 2, 3, 4};
  Npy a = {(char *)"x", DT_F32, 1, {4}, 4, x};
  char path[] = "/tmp/weft_npy_XXXXXX";
  close(mkstemp(path));
  assert_null(npz_write(path, &a, 1));
  Buf b = {0};
  assert_null(file_read(path, &b));
  char *at = memmem(b.p, b.n, x, sizeof x);
  assert_non_null(at);
  at[5] ^= 0x10;
  Npz z;
  Err *e = npz_parse(b.p, b.n, &z);
  assert_non_null(e);
  assert_int_equal(e->code, ERR_DATA_LOSS);
  assert_non_null(strstr(e->msg, "x.npy"));
  err_free(e);
  buf_free(&b);
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(round_trip),
                                     cmocka_unit_test(header_forms),
                                     cmocka_unit_test(eight_bit_floats),
                                     cmocka_unit_test(golden),
                                     cmocka_unit_test(types),
                                     cmocka_unit_test(damaged),
                                     cmocka_unit_test(changed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
