/* bf16 and f16 inside a kernel: chains of arithmetic are rounded once, at their end; what the
 * program looks at on the way (conversions, comparisons) it sees in the digits of its type. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dev/cpu/answer_test.h"

#define ROWS 16
#define COLUMNS 101 /* the last vector of a row is not full */
#define N (ROWS * COLUMNS)

static Tensor *input(DType t) {
  Tensor *x = tensor_make(t, 2, (const int64_t[]){ROWS, COLUMNS});
  for (int i = 0; i < N; i++)
    elem_set_f64(t, (char *)x->data + i * dtype_bytes(t), 3.0 * sin(i * 0.7 + 0.1));
  return x;
}

/* What `body` makes of x, with S for its shape and T for its type. */
static Tensor *answer(const char *result, const char *body, Tensor *x) {
  char *text = xasprintf("func.func @main(%%x: tensor<ST>) -> tensor<%s> {\n%s"
                         "  return %%r : tensor<%s>\n}\n",
                         result, body, result);
  Buf b = {0};
  for (const char *p = text; *p; p++) {
    if (*p == 'S') buf_printf(&b, "%dx%dx", ROWS, COLUMNS);
    else if (*p == 'T') buf_cstr(&b, dtype_name(x->dtype));
    else buf_byte(&b, (uint8_t)*p);
  }
  free(text);
  Tensor *t = answer_of(b.p, x);
  buf_free(&b);
  return t;
}

static double at(const Tensor *t, int64_t i) {
  return elem_get_f64(t->dtype, (const char *)t->data + i * dtype_bytes(t->dtype));
}

static double rounded(DType t, double x) {
  uint64_t bits;
  elem_set_f64(t, &bits, x);
  return elem_get_f64(t, &bits);
}

static const DType types[] = {DT_BF16, DT_F16};

/* tanh(x + x^3 / 2): within half a unit of the last digit; six roundings would not be */
static void test_chain(void **state) {
  (void)state;
  for (int k = 0; k < COUNT_OF(types); k++) {
    Tensor *x = input(types[k]);
    Tensor *r = answer("ST",
                       "  %half = stablehlo.constant dense<0.5> : tensor<ST>\n"
                       "  %2 = stablehlo.multiply %x, %x : tensor<ST>\n"
                       "  %3 = stablehlo.multiply %2, %x : tensor<ST>\n"
                       "  %4 = stablehlo.multiply %3, %half : tensor<ST>\n"
                       "  %5 = stablehlo.add %x, %4 : tensor<ST>\n"
                       "  %r = stablehlo.tanh %5 : tensor<ST>\n",
                       x);
    double unit = types[k] == DT_BF16 ? 0x1p-8 : 0x1p-11;
    for (int i = 0; i < N; i++) {
      double v = at(x, i), want = tanh(v + 0.5 * v * v * v);
      assert_true(fabs(at(r, i) - want) <= 1.01 * unit * fabs(want));
    }
    tensor_release(x);
    tensor_release(r);
  }
}

/* Conversions between other ops keep to their type: there and back, and out of a chain. */
static void test_convert(void **state) {
  (void)state;
  for (int k = 0; k < COUNT_OF(types); k++) {
    Tensor *x = input(types[k]);
    Tensor *r = answer("Sf32",
                       "  %w = stablehlo.convert %x : (tensor<ST>) -> tensor<Sf32>\n"
                       "  %s = stablehlo.sine %w : tensor<Sf32>\n"
                       "  %n = stablehlo.convert %s : (tensor<Sf32>) -> tensor<ST>\n"
                       "  %v = stablehlo.convert %n : (tensor<ST>) -> tensor<Sf32>\n"
                       "  %r = stablehlo.subtract %s, %v : tensor<Sf32>\n",
                       x);
    for (int i = 0; i < N; i++) {
      float s = (float)sin(at(x, i));
      double want = s - (float)rounded(types[k], s);
      assert_true(fabs(at(r, i) - want) <= 1e-6);
    }
    tensor_release(r);
    r = answer("Sf32",
               "  %m = stablehlo.multiply %x, %x : tensor<ST>\n"
               "  %r = stablehlo.convert %m : (tensor<ST>) -> tensor<Sf32>\n",
               x);
    for (int i = 0; i < N; i++) assert_true(at(r, i) == rounded(types[k], at(x, i) * at(x, i)));
    tensor_release(x);
    tensor_release(r);
  }
}

/* A row's largest product is equal to the maximum of the row, wherever each was computed. */
static void test_compare(void **state) {
  (void)state;
  for (int k = 0; k < COUNT_OF(types); k++) {
    Tensor *x = input(types[k]);
    Tensor *r = answer("Si1",
                       "  %low = stablehlo.constant dense<-1000.0> : tensor<T>\n"
                       "  %m = stablehlo.multiply %x, %x : tensor<ST>\n"
                       "  %y = stablehlo.add %m, %x : tensor<ST>\n"
                       "  %t = stablehlo.reduce(%y init: %low) applies stablehlo.maximum across "
                       "dimensions = [1] : (tensor<ST>, tensor<T>) -> tensor<16xT>\n"
                       "  %b = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<16xT>) -> "
                       "tensor<ST>\n"
                       "  %r = stablehlo.compare EQ, %y, %b : (tensor<ST>, tensor<ST>) -> "
                       "tensor<Si1>\n",
                       x);
    for (int i = 0; i < ROWS; i++) {
      double top = -1000;
      for (int j = 0; j < COLUMNS; j++) {
        double v = at(x, i * COLUMNS + j);
        top = fmax(top, rounded(types[k], v * v + v));
      }
      for (int j = 0; j < COLUMNS; j++) {
        double v = at(x, i * COLUMNS + j);
        bool want = rounded(types[k], v * v + v) == top;
        assert_int_equal(((uint8_t *)r->data)[i * COLUMNS + j], want);
      }
    }
    tensor_release(x);
    tensor_release(r);
  }
}

/* The same where they are looked for after a product of theirs, by another kernel: it has not computed the
 * row's factor but reads what was stored of it. */
static void test_compare_later(void **state) {
  (void)state;
  enum { ROWS_LATER = 512, EACH = 16 };
  for (int k = 0; k < COUNT_OF(types); k++) {
    Tensor *x = tensor_make(types[k], 2, (const int64_t[]){ROWS_LATER, EACH});
    for (int i = 0; i < x->count; i++)
      elem_set_f64(types[k], (char *)x->data + i * dtype_bytes(types[k]), 3.0 * sin(i * 0.7 + 0.1));
    const char *t = dtype_name(types[k]);
    char *text = xasprintf(
        "!t = tensor<512x16x%s>\n"
        "func.func @main(%%x: !t) -> !t {\n"
        "  %%low = stablehlo.constant dense<-1000.0> : tensor<%s>\n"
        "  %%zero = stablehlo.constant dense<0.0> : !t\n"
        "  %%one = stablehlo.constant dense<1.0> : !t\n"
        "  %%first = stablehlo.slice %%x [0:512, 0:1] : (!t) -> tensor<512x1x%s>\n"
        "  %%s = stablehlo.sine %%first : tensor<512x1x%s>\n"
        "  %%sb = stablehlo.broadcast_in_dim %%s, dims = [0, 1] : (tensor<512x1x%s>) -> !t\n"
        "  %%y = stablehlo.multiply %%x, %%sb : !t\n"
        "  %%top = stablehlo.reduce(%%y init: %%low) applies stablehlo.maximum across dimensions = "
        "[1] : (!t, tensor<%s>) -> tensor<512x%s>\n"
        "  %%tb = stablehlo.broadcast_in_dim %%top, dims = [0] : (tensor<512x%s>) -> !t\n"
        "  %%d = stablehlo.subtract %%y, %%tb : !t\n"
        "  %%p = stablehlo.dot_general %%d, %%d, contracting_dims = [1] x [1] : (!t, !t) -> "
        "tensor<512x512x%s>\n"
        "  %%g = stablehlo.slice %%p [0:512, 0:16] : (tensor<512x512x%s>) -> !t\n"
        "  %%z = stablehlo.multiply %%g, %%zero : !t\n"
        "  %%is = stablehlo.compare EQ, %%y, %%tb : (!t, !t) -> tensor<512x16xi1>\n"
        "  %%f = stablehlo.select %%is, %%one, %%z : tensor<512x16xi1>, !t\n"
        "  return %%f : !t\n}\n",
        t, t, t, t, t, t, t, t, t, t);
    Tensor *r = answer_of(text, x);
    for (int i = 0; i < ROWS_LATER; i++) {
      double found = 0;
      for (int j = 0; j < EACH; j++) found += at(r, i * EACH + j);
      if (found < 1) fail_msg("%s: row %d has no maximum", t, i);
    }
    free(text);
    tensor_release(x);
    tensor_release(r);
  }
}

/* NaNs of all digits, from f32 and from bf16, stay NaNs. */
static void test_nan(void **state) {
  (void)state;
  static const uint32_t wide[] = {0x7fffffff, 0xffffffff, 0x7f800001, 0xff80ffff, 0x7fc00000};
  static const uint16_t narrow[] = {0x7fff, 0xffff, 0x7f81, 0xffc0};
  Tensor *x = input(DT_F32), *y = input(DT_BF16);
  for (int i = 0; i < N; i += 3) {
    ((uint32_t *)x->data)[i] = wide[i / 3 % COUNT_OF(wide)];
    ((uint16_t *)y->data)[i] = narrow[i / 3 % COUNT_OF(narrow)];
  }
  Tensor *r = answer("Sbf16", "  %r = stablehlo.convert %x : (tensor<ST>) -> tensor<Sbf16>\n", x),
         *s = answer("ST",
                     "  %m = stablehlo.multiply %x, %x : tensor<ST>\n"
                     "  %r = stablehlo.add %m, %x : tensor<ST>\n",
                     y);
  for (int i = 0; i < N; i++) {
    assert_int_equal(isnan(at(r, i)), i % 3 == 0);
    assert_int_equal(isnan(at(s, i)), i % 3 == 0);
  }
  tensor_release(x);
  tensor_release(y);
  tensor_release(r);
  tensor_release(s);
}

/* From f64 they are rounded once: next to the middle of two, at the largest and the smallest. */
static void test_from_f64(void **state) {
  (void)state;
  static const double near[] = {0, 0x1p-40, -0x1p-40, 0x1p-26, -0x1p-26};
  for (int k = 0; k < COUNT_OF(types); k++) {
    const char *name = dtype_name(types[k]);
    Tensor *x = input(DT_F64);
    double *v = x->data, ulp = types[k] == DT_F16 ? 0x1p-10 : 0x1p-7;
    for (int i = 0; i < N; i++) {
      double middle = (1 + (i / 5 % 64 + 0.5) * ulp) * (i % 2 ? -1 : 1);
      v[i] = ldexp(middle * (1 + near[i % 5]), i * 7 % 60 - 30); /* also beyond f16's ends */
    }
    static const double last[] = {NAN,         INFINITY,      -INFINITY, 65519.999999, 65520, 1e300,
                                  0x1.ffp+127, 3.4028235e+38, -1e-300,   0x1p-25,      -0.0};
    memcpy(v, last, sizeof last);
    char *result = xasprintf("%dx%dx%s", ROWS, COLUMNS, name);
    char *body = xasprintf("  %%r = stablehlo.convert %%x : (tensor<ST>) -> tensor<S%s>\n", name);
    Tensor *r = answer(result, body, x);
    for (int i = 0; i < N; i++) {
      double want = rounded(types[k], v[i]), got = at(r, i);
      if (isnan(want) ? !isnan(got) : want != got || signbit(want) != signbit(got))
        fail_msg("%s of %.17g: %.17g, not %.17g", name, v[i], got, want);
    }
    free(result), free(body);
    tensor_release(r);
    tensor_release(x);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_chain),         cmocka_unit_test(test_from_f64),
      cmocka_unit_test(test_convert),       cmocka_unit_test(test_compare),
      cmocka_unit_test(test_compare_later), cmocka_unit_test(test_nan)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
