/* Plain loops for the common element types and the ops that regions of reductions and training
 * programs are made of. They give the same bits as the general way: +, -, *, / and the comparisons
 * of f32 in double rounded once equal those in f32.
 */
#include <math.h>

#include "interp/ewise_priv.h"

typedef const void *const *Ins;

#define BINARY(name, T, expr)                                                                \
  static void name(const EwKernel *k, int64_t n, void *out, Ins in, const int64_t *stride) { \
    (void)k;                                                                                 \
    const T *a = in[0], *b = in[1];                                                          \
    T *r = out;                                                                              \
    int64_t sa = stride[0], sb = stride[1];                                                  \
    for (int64_t i = 0; i < n; i++) {                                                        \
      T x = a[i * sa], y = b[i * sb];                                                        \
      r[i] = (T)(expr);                                                                      \
    }                                                                                        \
  }
/* clang-format off */
#define FLOATS(T, s)                                                                           \
  BINARY(add_##s, T, x + y)                                                                    \
  BINARY(sub_##s, T, x - y)                                                                    \
  BINARY(mul_##s, T, x *y)                                                                     \
  BINARY(div_##s, T, x / y)                                                                    \
  BINARY(max_##s, T, isnan(x) || isnan(y) ? (T)NAN : x > y || (x == y && !signbit(x)) ? x : y) \
  BINARY(min_##s, T, isnan(x) || isnan(y) ? (T)NAN : x < y || (x == y && signbit(x)) ? x : y)
/* clang-format on */
FLOATS(float, f32)
FLOATS(double, f64)
/* Wrapping arithmetic is the same for signed and unsigned. */
#define INTS(T, s) BINARY(add_##s, T, x + y) BINARY(sub_##s, T, x - y) BINARY(mul_##s, T, x *y)
INTS(uint32_t, i32)
INTS(uint64_t, i64)

/* Complex sums part by part. Products of c64 in double, where they are exact before the difference
 * is rounded. */
#define COMPLEX(name, T, W, real, imag)                                                      \
  static void name(const EwKernel *k, int64_t n, void *out, Ins in, const int64_t *stride) { \
    (void)k;                                                                                 \
    const T *a = in[0], *b = in[1];                                                          \
    T *r = out;                                                                              \
    for (int64_t i = 0; i < n; i++) {                                                        \
      const T *p = a + 2 * i * stride[0], *q = b + 2 * i * stride[1];                        \
      W x = p[0], y = p[1], u = q[0], v = q[1];                                              \
      r[2 * i] = (T)(real), r[2 * i + 1] = (T)(imag);                                        \
    }                                                                                        \
  }
COMPLEX(add_c64, float, float, x + u, y + v)
COMPLEX(sub_c64, float, float, x - u, y - v)
COMPLEX(mul_c64, float, double, x *u - y * v, x *v + y * u)
COMPLEX(add_c128, double, double, x + u, y + v)
COMPLEX(sub_c128, double, double, x - u, y - v)

#define FLOAT_ROWS(D, s)                                                      \
  {OP_ADD, D, add_##s}, {OP_SUBTRACT, D, sub_##s}, {OP_MULTIPLY, D, mul_##s}, \
      {OP_DIVIDE, D, div_##s}, {OP_MAXIMUM, D, max_##s}, {                    \
    OP_MINIMUM, D, min_##s                                                    \
  }
#define INT_ROWS(D, s) \
  {OP_ADD, D, add_##s}, {OP_SUBTRACT, D, sub_##s}, { OP_MULTIPLY, D, mul_##s }

static const struct {
  OpKind kind;
  DType dtype;
  void (*run)(const EwKernel *k, int64_t n, void *out, Ins in, const int64_t *stride);
} rows[] = {
    {OP_ADD, DT_C64, add_c64},
    {OP_SUBTRACT, DT_C64, sub_c64},
    {OP_MULTIPLY, DT_C64, mul_c64},
    {OP_ADD, DT_C128, add_c128},
    {OP_SUBTRACT, DT_C128, sub_c128},
    FLOAT_ROWS(DT_F32, f32),
    FLOAT_ROWS(DT_F64, f64),
    INT_ROWS(DT_I32, i32),
    INT_ROWS(DT_U32, i32),
    INT_ROWS(DT_I64, i64),
    INT_ROWS(DT_U64, i64),
};

bool ewise_fast(EwKernel *k) {
  if (k->in != k->out) return false;
  for (int i = 0; i < COUNT_OF(rows); i++)
    if (rows[i].kind == k->kind && rows[i].dtype == k->in) return k->run = rows[i].run, true;
  return false;
}
