/* scatter by runs of memory (indexed.h).
 *
 * A scatter whose windows are either equal or disjoint (every indexed dimension has window size 1:
 * rows, single elements) divides the operand's places into parts: the updates are put in order of
 * the parts, those of a part stay in the order they have, so the sums do not depend on the number
 * of threads. */
#include "dev/cpu/kernel/clones.h"
#include "dev/cpu/ops/indexed.h"

#define MAX_PARTS 8 /* of the operand */
#define SMALL_WINDOW 64

typedef struct Scatter {
  const Walk *w;
  const char *indices, *in;
  char *out;
  int64_t *from, *to;           /* of all index vectors */
  int64_t first[MAX_PARTS + 1]; /* of the windows in each part of the operand */
} Scatter;

static void find_windows(void *arg, int64_t begin, int64_t end) {
  const Scatter *r = arg;
  walk_windows(r->w, r->indices, false, begin, end, r->from + begin, r->to + begin);
}

#define EACH(T, expr)                          \
  do {                                         \
    T *d = (T *)(void *)dst;                   \
    const T *s = (const T *)(const void *)src; \
    for (int64_t i = 0; i < n; i++) {          \
      T a = d[i], b = s[i];                    \
      d[i] = (expr);                           \
    }                                          \
  } while (0)
#define INTS(T)                                    \
  switch (kind) {                                  \
  case OP_ADD: EACH(T, (T)(a + b)); return;        \
  case OP_SUBTRACT: EACH(T, (T)(a - b)); return;   \
  case OP_MULTIPLY: EACH(T, (T)(a * b)); return;   \
  case OP_MAXIMUM: EACH(T, a > b ? a : b); return; \
  case OP_MINIMUM: EACH(T, a < b ? a : b); return; \
  case OP_AND: EACH(T, (T)(a & b)); return;        \
  case OP_OR: EACH(T, (T)(a | b)); return;         \
  case OP_XOR: EACH(T, (T)(a ^ b)); return;        \
  default: return;                                 \
  }
/* NaN wins; of two zeros the positive one is the larger. */
#define LARGER(a, b)                                          \
  ((a) != (a)                                           ? (a) \
   : (b) != (b)                                         ? (b) \
   : (a) > (b) || ((a) == (b) && !__builtin_signbit(a)) ? (a) \
                                                        : (b))
#define SMALLER(a, b)                                        \
  ((a) != (a)                                          ? (a) \
   : (b) != (b)                                        ? (b) \
   : (a) < (b) || ((a) == (b) && __builtin_signbit(a)) ? (a) \
                                                       : (b))
#define FLOATS(T)                                  \
  switch (kind) {                                  \
  case OP_ADD: EACH(T, a + b); return;             \
  case OP_SUBTRACT: EACH(T, a - b); return;        \
  case OP_MULTIPLY: EACH(T, a *b); return;         \
  case OP_MAXIMUM: EACH(T, LARGER(a, b)); return;  \
  case OP_MINIMUM: EACH(T, SMALLER(a, b)); return; \
  default: return;                                 \
  }

static void combine(OpKind kind, DType t, char *dst, const char *src, int64_t n) {
  if (kind == OP_RETURN) {
    memcpy(dst, src, (size_t)(n * dtype_bytes(t)));
    return;
  }
  switch (t) {
  case DT_F32: FLOATS(float)
  case DT_F64: FLOATS(double)
#define SIGNED(T, U)                                    \
  if (kind == OP_MAXIMUM) EACH(T, a > b ? a : b);       \
  if (kind == OP_MINIMUM) EACH(T, a < b ? a : b);       \
  if (kind == OP_MAXIMUM || kind == OP_MINIMUM) return; \
  INTS(U)
  case DT_I8: SIGNED(int8_t, uint8_t)
  case DT_I16: SIGNED(int16_t, uint16_t)
  case DT_I32: SIGNED(int32_t, uint32_t)
  case DT_I64: SIGNED(int64_t, uint64_t)
  case DT_I1:
  case DT_U8: INTS(uint8_t)
  case DT_U16: INTS(uint16_t)
  case DT_U32: INTS(uint32_t)
  case DT_U64: INTS(uint64_t)
  default: break;
  }
  /* bf16, f16: rounded after each */
  for (int64_t at = 0; at < n; at += 64) {
    int64_t m = MIN(64, n - at);
    float x[64], y[64];
    cpu_to_f32(t, dst + 2 * at, x, m);
    cpu_to_f32(t, src + 2 * at, y, m);
    for (int64_t i = 0; i < m; i++) {
      float a = x[i], b = y[i];
      x[i] = kind == OP_ADD        ? a + b
             : kind == OP_SUBTRACT ? a - b
             : kind == OP_MULTIPLY ? a * b
             : kind == OP_MAXIMUM  ? LARGER(a, b)
                                   : SMALLER(a, b);
    }
    cpu_from_f32(t, x, dst + 2 * at, m);
  }
}

/* The same by numbers, where a branch would be mispredicted half of the time. */
static inline float picked(float a, float b, bool second) {
  uint32_t x, y;
  memcpy(&x, &a, 4);
  memcpy(&y, &b, 4);
  x ^= (x ^ y) & -(uint32_t)second;
  memcpy(&a, &x, 4);
  return a;
}
static inline bool is_negative(float a) {
  uint32_t x;
  memcpy(&x, &a, 4);
  return x >> 31;
}
static inline float larger(float a, float b) {
  return picked(a, b, (b > a) | (b != b) | ((a == b) & is_negative(a)));
}
static inline float smaller(float a, float b) {
  return picked(a, b, (b < a) | (b != b) | ((a == b) & !is_negative(a)));
}
/* One number: what is rare is a branch. */
static inline float larger_one(float a, float b) {
  if (__builtin_expect(!__builtin_islessgreater(a, b), 0)) return LARGER(a, b);
  return a > b ? a : b;
}
static inline float smaller_one(float a, float b) {
  if (__builtin_expect(!__builtin_islessgreater(a, b), 0)) return SMALLER(a, b);
  return a < b ? a : b;
}
static inline float of_bf16(uint16_t x) {
  uint32_t u = (uint32_t)x << 16;
  float f;
  memcpy(&f, &u, 4);
  return f;
}
static inline uint16_t to_bf16(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  uint32_t r = (u + 0x7fff + (u >> 16 & 1)) >> 16;
  return (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? u >> 16 | 0x40 : r);
}

static inline float _Complex product_c64(float _Complex a, float _Complex b) {
  float x = __real__ a, y = __imag__ a, u = __real__ b, v = __imag__ b;
  return __builtin_complex(x * u - y * v, x * v + y * u);
}
static inline double _Complex product_c128(double _Complex a, double _Complex b) {
  double x = __real__ a, y = __imag__ a, u = __real__ b, v = __imag__ b;
  return __builtin_complex(x * u - y * v, x * v + y * u);
}

/* dst[from[i] + k] = combination with src[to[i] + k], k < run, in order of i: what is common, in
 * vectors. */
typedef void Apply(int64_t n, const int64_t *from, const int64_t *to, int64_t run, void *dst,
                   const void *src);
/* dst[at[i] + k] = combination with src[i * run + k], k < run; nothing where at[i] is negative. */
typedef void Each(int64_t n, const int32_t *at, int64_t run, void *dst, const void *src);
/* A short loop of known length stays one until it is made vectors of: unrolled before, it is not. */
#ifdef __clang__
#define LOOP IVDEP
#else
#define LOOP IVDEP _Pragma("GCC unroll 1")
#endif
#define EACH_ROW(T, expr, N)                   \
  if (run == (N)) {                            \
    for (int64_t i = 0; i < n; i++) {          \
      if (at[i] < 0) continue;                 \
      T *d = (T *)dst + at[i];                 \
      const T *s = (const T *)src + i * (N);   \
      LOOP for (int64_t k = 0; k < (N); k++) { \
        T a = d[k], b = s[k];                  \
        (void)a;                               \
        d[k] = (expr);                         \
      }                                        \
    }                                          \
    return;                                    \
  }
#define APPLY(name, T, expr) APPLY_ONE(name, T, expr, expr)
#define APPLY_ONE(name, T, expr, one)                                                       \
  CLONES static void name(int64_t n, const int64_t *from, const int64_t *to, int64_t run,   \
                          void *dst, const void *src) {                                     \
    for (int64_t i = 0; i < n; i++) {                                                       \
      T *d = (T *)dst + from[i];                                                            \
      const T *s = (const T *)src + to[i];                                                  \
      IVDEP for (int64_t k = 0; k < run; k++) {                                             \
        T a = d[k], b = s[k];                                                               \
        (void)a;                                                                            \
        d[k] = (expr);                                                                      \
      }                                                                                     \
    }                                                                                       \
  }                                                                                         \
  static void name##_one(int64_t n, const int64_t *from, const int64_t *to, int64_t run,    \
                         void *dst, const void *src) {                                      \
    (void)run;                                                                              \
    for (int64_t i = 0; i < n; i++) {                                                       \
      T a = ((T *)dst)[from[i]], b = ((const T *)src)[to[i]];                               \
      (void)a;                                                                              \
      ((T *)dst)[from[i]] = (one);                                                          \
    }                                                                                       \
  }                                                                                         \
  CLONES static void name##_each(int64_t n, const int32_t *at, int64_t run, void *dst,      \
                                 const void *src) {                                         \
    if (run == 1) {                                                                         \
      for (int64_t i = 0; i < n; i++) {                                                     \
        if (at[i] < 0) continue;                                                            \
        T a = ((T *)dst)[at[i]], b = ((const T *)src)[i];                                   \
        (void)a;                                                                            \
        ((T *)dst)[at[i]] = (one);                                                          \
      }                                                                                     \
      return;                                                                               \
    }                                                                                       \
    EACH_ROW(T, expr, 2)                                                                    \
    EACH_ROW(T, expr, 3)                                                                    \
    EACH_ROW(T, expr, 4)                                                                    \
    EACH_ROW(T, expr, 8) EACH_ROW(T, expr, 16) EACH_ROW(T, expr, 32) EACH_ROW(T, expr, run) \
  }
APPLY(add_f32, float, a + b)
APPLY(add_f64, double, a + b)
APPLY(add_i32, uint32_t, a + b)
APPLY(add_i64, uint64_t, a + b)
APPLY(add_c64, float _Complex, a + b)
APPLY(add_c128, double _Complex, a + b)
APPLY(sub_f32, float, a - b)
APPLY(sub_f64, double, a - b)
APPLY(sub_c64, float _Complex, a - b)
APPLY(sub_c128, double _Complex, a - b)
APPLY(mul_c64, float _Complex, product_c64(a, b))
APPLY(mul_c128, double _Complex, product_c128(a, b))
APPLY(mul_f32, float, a *b)
APPLY(mul_f64, double, a *b)
APPLY_ONE(max_f32, float, larger(a, b), larger_one(a, b))
APPLY_ONE(min_f32, float, smaller(a, b), smaller_one(a, b))
APPLY(max_f64, double, LARGER(a, b))
APPLY(min_f64, double, SMALLER(a, b))
APPLY(max_i32, int32_t, a > b ? a : b)
APPLY(min_i32, int32_t, a < b ? a : b)
APPLY(add_bf16, uint16_t, to_bf16(of_bf16(a) + of_bf16(b)))
APPLY(mul_bf16, uint16_t, to_bf16(of_bf16(a) * of_bf16(b)))
APPLY_ONE(max_bf16, uint16_t, to_bf16(larger(of_bf16(a), of_bf16(b))),
          to_bf16(larger_one(of_bf16(a), of_bf16(b))))
APPLY_ONE(min_bf16, uint16_t, to_bf16(smaller(of_bf16(a), of_bf16(b))),
          to_bf16(smaller_one(of_bf16(a), of_bf16(b))))
APPLY(set_8, uint8_t, b)
APPLY(set_16, uint16_t, b)
APPLY(set_32, uint32_t, b)
APPLY(set_64, uint64_t, b)

#define ROW(kind, t, name) \
  { kind, t, {name, name##_one}, name##_each }
static const struct {
  OpKind kind;
  DType t;
  Apply *how[2]; /* runs, runs of one element */
  Each *each;
} applies[] = {
    ROW(OP_ADD, DT_F32, add_f32),       ROW(OP_ADD, DT_F64, add_f64),
    ROW(OP_ADD, DT_I32, add_i32),       ROW(OP_ADD, DT_U32, add_i32),
    ROW(OP_ADD, DT_I64, add_i64),       ROW(OP_ADD, DT_U64, add_i64),
    ROW(OP_ADD, DT_C64, add_c64),       ROW(OP_ADD, DT_C128, add_c128),
    ROW(OP_ADD, DT_BF16, add_bf16),     ROW(OP_MULTIPLY, DT_F32, mul_f32),
    ROW(OP_SUBTRACT, DT_F32, sub_f32),  ROW(OP_SUBTRACT, DT_F64, sub_f64),
    ROW(OP_SUBTRACT, DT_C64, sub_c64),  ROW(OP_SUBTRACT, DT_C128, sub_c128),
    ROW(OP_MULTIPLY, DT_C64, mul_c64),  ROW(OP_MULTIPLY, DT_C128, mul_c128),
    ROW(OP_MULTIPLY, DT_F64, mul_f64),  ROW(OP_MULTIPLY, DT_BF16, mul_bf16),
    ROW(OP_MAXIMUM, DT_F32, max_f32),   ROW(OP_MINIMUM, DT_F32, min_f32),
    ROW(OP_MAXIMUM, DT_F64, max_f64),   ROW(OP_MINIMUM, DT_F64, min_f64),
    ROW(OP_MAXIMUM, DT_BF16, max_bf16), ROW(OP_MINIMUM, DT_BF16, min_bf16),
    ROW(OP_MAXIMUM, DT_I32, max_i32),   ROW(OP_MINIMUM, DT_I32, min_i32),
    ROW(OP_RETURN, DT_I1, set_8),       ROW(OP_RETURN, DT_I8, set_8),
    ROW(OP_RETURN, DT_U8, set_8),       ROW(OP_RETURN, DT_BF16, set_16),
    ROW(OP_RETURN, DT_F16, set_16),     ROW(OP_RETURN, DT_I16, set_16),
    ROW(OP_RETURN, DT_U16, set_16),     ROW(OP_RETURN, DT_F32, set_32),
    ROW(OP_RETURN, DT_I32, set_32),     ROW(OP_RETURN, DT_U32, set_32),
    ROW(OP_RETURN, DT_F64, set_64),     ROW(OP_RETURN, DT_I64, set_64),
    ROW(OP_RETURN, DT_U64, set_64),
};

static void apply(const Walk *w, int64_t n, const int64_t *from, const int64_t *to, char *dst,
                  const char *src) {
  for (int i = 0; i < COUNT_OF(applies); i++)
    if (applies[i].kind == w->combine && applies[i].t == w->type) {
      applies[i].how[w->run == 1](n, from, to, w->run, dst, src);
      return;
    }
  int64_t b = dtype_bytes(w->type);
  for (int64_t i = 0; i < n; i++)
    combine(w->combine, w->type, dst + from[i] * b, src + to[i] * b, w->run);
}

static void scatter_simple(const Walk *w, const char *indices, const char *in, char *out) {
  Each *each = NULL;
  for (int i = 0; i < COUNT_OF(applies); i++)
    if (applies[i].kind == w->combine && applies[i].t == w->type) each = applies[i].each;
  int64_t b = dtype_bytes(w->type), run = w->run;
  int32_t at[SIMPLE_BATCH];
  for (int64_t i = 0; i < w->n; i += SIMPLE_BATCH) {
    int64_t n = MIN(SIMPLE_BATCH, w->n - i);
    walk_simple(w, indices, false, i, i + n, at);
    if (each) each(n, at, run, out, in + i * run * b);
    for (int64_t k = 0; !each && k < n; k++)
      if (at[k] >= 0) combine(w->combine, w->type, out + at[k] * b, in + (i + k) * run * b, run);
  }
}

static OpKind body_kind(const Region *r) {
  if (r->n_args == 2 && r->first == r->last && r->last->n_operands == 1 &&
      r->last->operands[0] == r->args[1])
    return OP_RETURN;
  bool swapped = false;
  OpKind k = cpu_region_binary(r, &swapped);
  return k == OP_SUBTRACT && swapped ? OP_UNKNOWN : k;
}

static bool accepts(const Op *op) {
  if (op->n_operands != 3 || op->n_results != 1) return false;
  const Type *t = op->operands[0]->type, *u = op->operands[2]->type;
  const Region *body = op->regions[0];
  if (t->quant || u->quant || u->dtype != t->dtype || op_type(op)->dtype != t->dtype) return false;
  if (body->n_args != 2 || body->args[0]->type->dtype != t->dtype ||
      body->args[1]->type->dtype != t->dtype)
    return false;
  OpKind k = body_kind(body);
  DType d = t->dtype;
  bool is_int = dtype_is_int(d) && dtype_bits(d) >= 8;
  bool is_float = d == DT_F32 || d == DT_F64 || d == DT_BF16 || d == DT_F16;
  switch (k) {
  case OP_RETURN: return true;
  case OP_ADD:
  case OP_SUBTRACT:
  case OP_MULTIPLY: return is_int || is_float || d == DT_C64 || d == DT_C128;
  case OP_MAXIMUM:
  case OP_MINIMUM: return is_float || is_int;
  case OP_AND:
  case OP_OR:
  case OP_XOR: return is_int || d == DT_I1;
  default: return false;
  }
}

static Err *prepare(const Op *op, void **state) {
  Walk *w = walk_new(op, true, op->operands[0]->type, op->operands[1]->type, op->operands[2]->type);
  w->combine = body_kind(op->regions[0]);
  *state = w;
  return NULL;
}

/* The windows of parts begin .. end - 1 of the operand, in order. */
static void scatter_parts(void *arg, int64_t begin, int64_t end) {
  const Scatter *r = arg;
  const Walk *w = r->w;
  int64_t b = dtype_bytes(w->type), first = r->first[begin], n = r->first[end] - first;
  const int64_t *from = r->from + first, *to = r->to + first;
  if (w->n_runs == 1) {
    apply(w, n, from, to, r->out, r->in);
    return;
  }
  for (int64_t i = 0; i < n; i++)
    apply(w, w->n_runs, w->at_operand, w->at_other, r->out + from[i] * b, r->in + to[i] * b);
}

/* Runs begin .. end - 1 of every window: where the updates of a run lie together, as they do along the
 * last dimensions. */
static void scatter_runs(void *arg, int64_t begin, int64_t end) {
  const Scatter *r = arg;
  const Walk *w = r->w;
  int64_t b = dtype_bytes(w->type);
  for (int64_t k = begin; k < end; k++)
    apply(w, r->first[1], r->from, r->to, r->out + w->at_operand[k] * b,
          r->in + w->at_other[k] * b);
}

/* Leaves out the windows that are not inside the operand: XLA drops them whole, too. */
static int64_t keep_inside(int64_t n, int64_t *from, int64_t *to) {
  int64_t kept = 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t f = from[i], t = to[i];
    from[kept] = f, to[kept] = t;
    kept += f >= 0;
  }
  return kept;
}

/* Puts n windows in order of the parts, of `size` elements, of the operand that they lie in; those
 * of a part stay in their order. part[i]: room for n. */
static void sort_windows(Scatter *r, int parts, int64_t size, int64_t n, const int64_t *from,
                         const int64_t *to, uint8_t *part) {
  int64_t next[MAX_PARTS] = {0};
  double scale = 1 / (double)size; /* equal windows are of one part however it is rounded */
  for (int64_t i = 0; i < n; i++) {
    part[i] = (uint8_t)MIN(parts - 1, (int)((double)from[i] * scale));
    next[part[i]]++;
  }
  for (int64_t k = 0, at = 0; k < parts; k++) {
    int64_t count = next[k];
    r->first[k] = next[k] = at;
    at += count;
  }
  for (int64_t i = 0; i < n; i++) {
    int64_t at = next[part[i]]++;
    r->from[at] = from[i], r->to[at] = to[i];
  }
}

static Err *run(void *state, const Op *op, void *const *in, void *const *out) {
  const Walk *w = state;
  int64_t count = type_count(op_type(op));
  if (count == 0) return NULL;
  copy_sums(op, in, out);
  if (type_count(op->operands[2]->type) == 0) return NULL;
  if (walk_is_simple(w) && w->run < SMALL_WINDOW) {
    scatter_simple(w, in[1], in[2], out[0]);
    return NULL;
  }
  /* putting the windows in order costs as much as some dozen elements of each */
  int64_t elements = w->run * w->n_runs, work = w->n * (4 * w->n_runs + elements / 4);
  bool by_runs = w->aligned && w->window_first && w->n_runs > 1;
  bool divide = w->aligned && elements >= SMALL_WINDOW && !by_runs;
  int parts = divide ? (int)MAX(1, MIN(MAX_PARTS, work / 50000)) : 1;
  size_t n = (size_t)w->n;
  int64_t *places = xmalloc(n * (parts > 1 ? 4 * sizeof *places + 1 : 2 * sizeof *places));
  Scatter r = {
      .w = w, .indices = in[1], .in = in[2], .out = out[0], .from = places, .to = places + n};
  cpu_parallel(w->n, 16384, find_windows, &r);
  r.first[parts] = keep_inside(w->n, r.from, r.to);
  if (by_runs) {
    cpu_parallel(w->n_runs, MAX(1, 16384 / (w->n * w->run)), scatter_runs, &r);
    free(places);
    return NULL;
  }
  if (parts > 1) {
    r.from += 2 * n, r.to += 2 * n;
    sort_windows(&r, parts, (count + parts - 1) / parts, r.first[parts], places, places + n,
                 (uint8_t *)(places + 4 * n));
  }
  cpu_parallel(parts, 1, scatter_parts, &r);
  free(places);
  return NULL;
}

const CpuKernel cpu_kernels_scatter[] = {
    {.name = "scatter",
     .kind = OP_SCATTER,
     .accepts = accepts,
     .prepare = prepare,
     .run = run,
     .release = walk_free,
     .in_place = 1},
    {0},
};
