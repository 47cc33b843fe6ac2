/* Element-wise operations: the driver. An op and its element types are resolved once to a kernel
 * (ewise_resolve), which then runs over chunks: load into double, long double complex or int64_t,
 * call the scalar function, store. The scalar functions are in ewise_real.c, ewise_int.c,
 * ewise_complex.c; what does not fit the pattern is in ewise_misc.c.
 */
#include <math.h>
#include <pthread.h>

#include "interp/ewise_priv.h"

#define CHUNK 64
#define BLOCK 16384 /* elements of one parallel task */

/* ---- loading and storing --------------------------------------------------------------------- */

/* Every value of the floats of a byte or less. */
static double small_floats[DT_COUNT][256];
static pthread_once_t small_once = PTHREAD_ONCE_INIT;
static void fill_small(void) {
  for (int t = 1; t < DT_COUNT; t++)
    for (unsigned i = 0; i < 256 && dtype_is_float((DType)t) && dtype_bits((DType)t) <= 8; i++)
      small_floats[t][i] = float_decode((DType)t, i & ((1u << dtype_bits((DType)t)) - 1));
}

/* v as a float rounded to odd: rounding that once more to 16 bits gives what rounding v gives. */
static float to_odd(double v) {
  float f = (float)v;
  if ((double)f == v || isnan(v)) return f;
  uint32_t u;
  memcpy(&u, &f, 4);
  if (fabs((double)f) > fabs(v)) u--; /* toward zero; infinity becomes the largest number */
  u |= 1;
  memcpy(&f, &u, 4);
  return f;
}

#define LOOP(T, expr)                 \
  do {                                \
    const T *q = (const T *)p + at;   \
    for (int64_t i = 0; i < m; i++) { \
      T v = q[i];                     \
      a[i] = expr;                    \
    }                                 \
  } while (0)

void load_d(DType t, const void *p, int64_t at, int64_t m, int64_t stride, double *a) {
  if (!stride) {
    load_d(t, p, 0, 1, 1, a);
    for (int64_t i = 1; i < m; i++) a[i] = a[0];
    return;
  }
  switch (t) {
  case DT_F64: LOOP(double, v); return;
  case DT_F32: LOOP(float, (double)v); return;
  case DT_BF16: LOOP(uint16_t, (double)bf16_to_f32(v)); return;
  case DT_F16: LOOP(uint16_t, (double)f16_to_f32(v)); return;
  default:
    if (dtype_is_float(t)) {
      pthread_once(&small_once, fill_small);
      const double *table = small_floats[t];
      LOOP(uint8_t, table[v]);
      return;
    }
    for (int64_t i = 0; i < m; i++)
      a[i] = elem_get_f64(t, (const char *)p + (size_t)(at + i) * (size_t)dtype_bytes(t));
  }
}

void load_i(DType t, const void *p, int64_t at, int64_t m, int64_t stride, int64_t *a) {
  if (!stride) {
    load_i(t, p, 0, 1, 1, a);
    for (int64_t i = 1; i < m; i++) a[i] = a[0];
    return;
  }
  switch (t) {
  case DT_I64:
  case DT_U64: LOOP(int64_t, v); return;
  case DT_I32: LOOP(int32_t, v); return;
  case DT_U32: LOOP(uint32_t, v); return;
  case DT_I16: LOOP(int16_t, v); return;
  case DT_U16: LOOP(uint16_t, v); return;
  case DT_I8: LOOP(int8_t, v); return;
  case DT_U8: LOOP(uint8_t, v); return;
  case DT_I1: LOOP(uint8_t, v != 0); return;
  default:
    for (int64_t i = 0; i < m; i++)
      a[i] = elem_get_i64(t, (const char *)p + (size_t)(at + i) * (size_t)dtype_bytes(t));
  }
}
#undef LOOP

void load_z(DType t, const void *p, int64_t at, int64_t m, int64_t stride, Cx *a) {
  double buf[CHUNK];
  for (int64_t i = 0; i < m; i++) {
    int64_t j = stride ? at + i : 0;
    if (t == DT_C64) {
      const float *q = (const float *)p + 2 * j;
      a[i] = (Cx){(long double)q[0], (long double)q[1]};
    } else if (t == DT_C128) {
      const double *q = (const double *)p + 2 * j;
      a[i] = (Cx){(long double)q[0], (long double)q[1]};
    } else {
      load_d(t, p, j, 1, 1, buf);
      a[i] = (Cx){(long double)buf[0], 0};
    }
  }
}

#define LOOP(T, expr)                                 \
  do {                                                \
    T *q = (T *)p + at;                               \
    for (int64_t i = 0; i < m; i++) q[i] = (T)(expr); \
  } while (0)

void store_d(DType t, void *p, int64_t at, int64_t m, const double *r) {
  switch (t) {
  case DT_F64: LOOP(double, r[i]); return;
  case DT_F32: LOOP(float, r[i]); return;
  case DT_BF16: LOOP(uint16_t, f32_to_bf16(to_odd(r[i]))); return;
  case DT_F16: LOOP(uint16_t, f32_to_f16(to_odd(r[i]))); return;
  default:
    for (int64_t i = 0; i < m; i++)
      elem_set_f64(t, (char *)p + (size_t)(at + i) * (size_t)dtype_bytes(t), r[i]);
  }
}

void store_i(DType t, void *p, int64_t at, int64_t m, const int64_t *r) {
  switch (t) {
  case DT_I64:
  case DT_U64: LOOP(int64_t, r[i]); return;
  case DT_I32:
  case DT_U32: LOOP(uint32_t, r[i]); return;
  case DT_I16:
  case DT_U16: LOOP(uint16_t, r[i]); return;
  case DT_I8:
  case DT_U8: LOOP(uint8_t, r[i]); return;
  case DT_I1: LOOP(uint8_t, r[i] & 1); return;
  default:
    for (int64_t i = 0; i < m; i++)
      elem_set_i64(t, (char *)p + (size_t)(at + i) * (size_t)dtype_bytes(t), r[i]);
  }
}
#undef LOOP

void store_z(DType t, void *p, int64_t at, int64_t m, const Cx *r) {
  for (int64_t i = 0; i < m; i++) {
    if (t == DT_C64) {
      float *q = (float *)p + 2 * (at + i);
      q[0] = (float)r[i].re, q[1] = (float)r[i].im;
    } else {
      double *q = (double *)p + 2 * (at + i);
      q[0] = (double)r[i].re, q[1] = (double)r[i].im;
    }
  }
}

uint64_t load_bits(DType t, const void *p, int64_t at) {
  uint64_t v = 0;
  size_t n = (size_t)dtype_bytes(t);
  memcpy(&v, (const char *)p + (size_t)at * n, n); /* little-endian hosts */
  int bits = dtype_bits(t);
  return bits < 64 ? v & (((uint64_t)1 << bits) - 1) : v;
}

void store_bits(DType t, void *p, int64_t at, uint64_t bits) {
  int width = dtype_bits(t);
  if (width < 8 && dtype_is_signed(t) && (bits >> (width - 1)) & 1) bits |= ~(uint64_t)0 << width;
  size_t n = (size_t)dtype_bytes(t);
  memcpy((char *)p + (size_t)at * n, &bits, n);
}

double round_to(DType t, double v) {
  if (t == DT_F64 || !dtype_is_float(t)) return v;
  if (t == DT_F32) return (double)(float)v;
  return float_decode(t, float_encode(t, v));
}

/* ---- running scalar functions over chunks ---------------------------------------------------- */

static void run_d1(const EwKernel *k, int64_t n, void *out, const void *const *in,
                   const int64_t *stride) {
  double a[CHUNK];
  for (int64_t i = 0; i < n; i += CHUNK) {
    int64_t m = MIN(CHUNK, n - i);
    load_d(k->in, in[0], i, m, stride[0], a);
    for (int64_t j = 0; j < m; j++) a[j] = k->f.d1(a[j]);
    store_d(k->out, out, i, m, a);
  }
}

static void run_d2(const EwKernel *k, int64_t n, void *out, const void *const *in,
                   const int64_t *stride) {
  double a[CHUNK], b[CHUNK];
  for (int64_t i = 0; i < n; i += CHUNK) {
    int64_t m = MIN(CHUNK, n - i);
    load_d(k->in, in[0], i, m, stride[0], a);
    load_d(k->in, in[1], i, m, stride[1], b);
    for (int64_t j = 0; j < m; j++) a[j] = k->f.d2(a[j], b[j]);
    store_d(k->out, out, i, m, a);
  }
}

static void run_i1(const EwKernel *k, int64_t n, void *out, const void *const *in,
                   const int64_t *stride) {
  int64_t a[CHUNK];
  for (int64_t i = 0; i < n; i += CHUNK) {
    int64_t m = MIN(CHUNK, n - i);
    load_i(k->in, in[0], i, m, stride[0], a);
    for (int64_t j = 0; j < m; j++) a[j] = k->f.i1(k, a[j]);
    store_i(k->out, out, i, m, a);
  }
}

static void run_i2(const EwKernel *k, int64_t n, void *out, const void *const *in,
                   const int64_t *stride) {
  int64_t a[CHUNK], b[CHUNK];
  for (int64_t i = 0; i < n; i += CHUNK) {
    int64_t m = MIN(CHUNK, n - i);
    load_i(k->in, in[0], i, m, stride[0], a);
    load_i(k->in, in[1], i, m, stride[1], b);
    for (int64_t j = 0; j < m; j++) a[j] = k->f.i2(k, a[j], b[j]);
    store_i(k->out, out, i, m, a);
  }
}

/* Complex functions; one with a real result (abs) leaves it in .re. */
static void run_z(const EwKernel *k, int64_t n, void *out, const void *const *in,
                  const int64_t *stride) {
  Cx a[CHUNK], b[CHUNK];
  bool real = !dtype_is_complex(k->out);
  for (int64_t i = 0; i < n; i += CHUNK) {
    int64_t m = MIN(CHUNK, n - i);
    load_z(k->in, in[0], i, m, stride[0], a);
    if (k->n_in == 2) {
      load_z(k->in, in[1], i, m, stride[1], b);
      for (int64_t j = 0; j < m; j++) a[j] = k->f.z2(a[j], b[j]);
    } else {
      for (int64_t j = 0; j < m; j++) a[j] = k->f.z1(a[j]);
    }
    if (real) {
      double r[CHUNK];
      for (int64_t j = 0; j < m; j++) r[j] = (double)a[j].re;
      store_d(k->out, out, i, m, r);
    } else {
      store_z(k->out, out, i, m, a);
    }
  }
}

bool ewise_resolve(const Op *op, const DType *in, DType out, EwKernel *k) {
  *k = (EwKernel){.kind = op->kind, .n_in = op->n_operands};
  if (op->n_operands < 1 || op->n_operands > EW_MAX_OPERANDS) return false;
  k->in = in[op->kind == OP_SELECT || op->kind == OP_CLAMP ? 1 : 0];
  k->out = out;
  if (ewise_misc(op, k)) return true;
  switch (dtype_class(k->in)) {
  case DC_FLOAT:
    if (!ewise_real(op, k)) return false;
    k->run = k->n_in == 2 ? run_d2 : run_d1;
    break;
  case DC_COMPLEX:
    if (!ewise_complex(op, k)) return false;
    k->run = run_z;
    break;
  case DC_BOOL:
  case DC_SINT:
  case DC_UINT:
    if (!ewise_int(op, k)) return false;
    k->run = k->n_in == 2 ? run_i2 : run_i1;
    break;
  default: return false;
  }
  ewise_fast(k);
  return true;
}

/* ---- the sem_ functions ---------------------------------------------------------------------- */

typedef struct Task {
  const EwKernel *k;
  int64_t n;
  char *out;
  const char *in[EW_MAX_OPERANDS];
  int64_t stride[EW_MAX_OPERANDS], bytes[EW_MAX_OPERANDS];
} Task;

static void run_block(void *arg, int64_t block) {
  const Task *t = arg;
  int64_t at = block * BLOCK;
  const void *in[EW_MAX_OPERANDS] = {0};
  for (int i = 0; i < t->k->n_in; i++) in[i] = t->in[i] + at * t->stride[i] * t->bytes[i];
  ewise_apply(t->k, MIN(BLOCK, t->n - at), t->out + at * dtype_bytes(t->k->out), in, t->stride);
}

static Err *sem_ewise(Eval *e) {
  EwKernel k;
  DType types[EW_MAX_OPERANDS] = {DT_INVALID};
  for (int i = 0; i < e->n_in && i < EW_MAX_OPERANDS; i++) types[i] = e->in[i]->dtype;
  if (!ewise_resolve(e->op, types, eval_out_dtype(e, 0), &k))
    return op_err(e->op, ERR_UNIMPLEMENTED, "no meaning for operands of type %s",
                  dtype_name(types[0]));
  Tensor *out;
  TRY(eval_out(e, 0, &out));
  Task t = {.k = &k, .n = out->count, .out = out->data};
  for (int i = 0; i < e->n_in; i++) {
    const Tensor *x = e->in[i];
    if (x->count != t.n && x->count != 1)
      return op_err(e->op, ERR_INVALID, "operand %d has %lld elements, not %lld", i,
                    (long long)x->count, (long long)t.n);
    t.in[i] = x->data;
    t.stride[i] = x->count == t.n ? 1 : 0;
    t.bytes[i] = dtype_bytes(x->dtype);
  }
  if (t.n <= BLOCK) {
    if (t.n) ewise_apply(&k, t.n, t.out, (const void *const *)t.in, t.stride);
  } else {
    pool_run((t.n + BLOCK - 1) / BLOCK, run_block, &t);
  }
  return NULL;
}

#define OP(...)
#define EWISE(id, fn, ...) \
  Err *sem_##fn(Eval *e) { return sem_ewise(e); }
#include "ir/ops.def"
