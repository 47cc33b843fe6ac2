/* Running combinations: reduce_window over everything before (or after) in one dimension, as
 * cumsum, cummax and their like are written.
 *
 * One pass. Along the last dimension a vector's lanes are combined with those before them, and then with what
 * comes before the vector (short rows go side by side, as they lie); along another one the elements below
 * are a vector. A few long rows are cut into blocks: totals of the blocks, then each block from what
 * comes before it; the cut follows from the length alone. Sums of bf16 and f16 are kept in f32 and
 * rounded once.
 *
 * A sum of n numbers added one after another loses with n. Here it begins anew after SUM_ROWS of them (or
 * SUM_VECTORS vectors); what came before is a number and the part of it that has no room in its type
 * (Knuth's two-sum), so that a result is off by its own rounding and a short sum's. */
#include "dev/cpu/kernel/kernel.h"

#include "dev/cpu/kernel/clones.h"
#include "dev/cpu/kernel/mem.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define FEW_LINES 8 /* not enough to share out whole */
#define BLOCK 8192
#define SHORT 32 /* elements of a line that goes beside others */
#define SHORT_LINES 16
#define SUM_ROWS 16
#define SUM_VECTORS 16
#define MOST_ROW 1024 /* elements of a vector that one task takes */

typedef struct Scan {
  int64_t outer, n, inner;
  bool back;
  OpKind kind;
  DType type;
} Scan;

static bool recognise(const Op *op, Scan *s) {
  if (op->n_results != 1 || op->n_operands != 2) return false;
  const Type *t = op->operands[0]->type, *o = op_type(op);
  const int64_t *size, *stride, *base, *dilate, *pad;
  int ns = op_ints(op, "window_dimensions", &size), nst = op_ints(op, "window_strides", &stride);
  int nb = op_ints(op, "base_dilations", &base), nd = op_ints(op, "window_dilations", &dilate),
      np = op_ints(op, "padding", &pad);
  if (ns != t->rank || t->quant || o->quant || o->dtype != t->dtype ||
      op->operands[1]->type->dtype != t->dtype)
    return false;
  int dim = -1;
  for (int i = 0; i < t->rank; i++) {
    if ((i < nst && stride[i] != 1) || (i < nb && base[i] != 1) || (i < nd && dilate[i] != 1))
      return false;
    int64_t lo = 2 * i < np ? pad[2 * i] : 0, hi = 2 * i + 1 < np ? pad[2 * i + 1] : 0;
    if (size[i] == 1 && !lo && !hi) continue;
    if (dim >= 0 || size[i] != t->dims[i] || size[i] < 2) return false;
    bool ahead = lo == size[i] - 1 && hi == 0, behind = hi == size[i] - 1 && lo == 0;
    if (!ahead && !behind) return false;
    dim = i;
    s->back = behind;
  }
  if (dim < 0) return false;
  s->type = t->dtype;
  s->kind = cpu_region_binary(op->regions[0], NULL);
  const Region *r = op->regions[0];
  if (r->args[0]->type->dtype != t->dtype) return false;
  bool is_float = s->type == DT_F32 || s->type == DT_F64 || s->type == DT_BF16 || s->type == DT_F16;
  bool is_int = s->type == DT_I32 || s->type == DT_I64 || s->type == DT_U32 || s->type == DT_U64;
  if (!is_float && !is_int) return false;
  if (s->kind != OP_ADD && s->kind != OP_MULTIPLY && s->kind != OP_MAXIMUM && s->kind != OP_MINIMUM)
    return false;
  if (!cpu_window_skips_outside(op)) return false;
  s->outer = s->inner = 1;
  s->n = t->dims[dim];
  for (int i = 0; i < dim; i++) s->outer *= t->dims[i];
  for (int i = dim + 1; i < t->rank; i++) s->inner *= t->dims[i];
  return true;
}

#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))
#define MORE(a, b) ((b) > (a) ? (b) : (a))
#define LESS(a, b) ((b) < (a) ? (b) : (a))
/* NaN wins; of two zeros the positive one is the larger. */
#define FMORE(a, b)                                                          \
  ((a) != (a) || (b) != (b)                                      ? (a) + (b) \
   : (b) > (a) || ((a) == 0 && (b) == 0 && __builtin_signbit(a)) ? (b)       \
                                                                 : (a))
#define FLESS(a, b)                                                           \
  ((a) != (a) || (b) != (b)                                       ? (a) + (b) \
   : (b) < (a) || ((a) == 0 && (b) == 0 && !__builtin_signbit(a)) ? (b)       \
                                                                  : (a))

/* The same for one number at a time: what is rare is a branch. */
#define FMORE1(a, b) \
  (__builtin_expect(!__builtin_islessgreater(a, b), 0) ? FMORE(a, b) : ((a) > (b) ? (a) : (b)))
#define FLESS1(a, b) \
  (__builtin_expect(!__builtin_islessgreater(a, b), 0) ? FLESS(a, b) : ((a) < (b) ? (a) : (b)))

/* The same for vectors. */
#define V_PICK(m, a, b) ((__typeof__(a))(((__typeof__(m))(a) & (m)) | ((__typeof__(m))(b) & ~(m))))
#define V_BOTH(M, a, b) ((__typeof__(a))((M)(a) & (M)(b)))
#define V_EITHER(M, a, b) ((__typeof__(a))((M)(a) | (M)(b)))
#define V_PLUS(M, a, b) ((a) + (b))
#define V_TIMES(M, a, b) ((a) * (b))
#define V_MORE(M, a, b) V_PICK((M)((b) > (a)), b, a)
#define V_LESS(M, a, b) V_PICK((M)((b) < (a)), b, a)
#define V_FLOAT(M, a, b, pick, equal)                  \
  V_PICK((M)((a) != (a)) | (M)((b) != (b)), (a) + (b), \
         V_PICK((M)((a) == (b)), equal(M, a, b), pick(M, a, b)))
#define V_FMORE(M, a, b) V_FLOAT(M, a, b, V_MORE, V_BOTH) /* equal ones differ in zero's sign */
#define V_FLESS(M, a, b) V_FLOAT(M, a, b, V_LESS, V_EITHER)

/* Vectors of 32 bytes. up: lanes move up by 1, 2, 4; those below are the first operand's. */
typedef float Vf32 __attribute__((vector_size(32)));
typedef double Vf64 __attribute__((vector_size(32)));
typedef uint32_t Vu32 __attribute__((vector_size(32)));
typedef uint64_t Vu64 __attribute__((vector_size(32)));
typedef int32_t Vi32 __attribute__((vector_size(32)));
typedef int64_t Vi64 __attribute__((vector_size(32)));
#define LANES_OF(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define PREFIX_8(M, F, x, low)                                     \
  do {                                                             \
    x = F(M, LANES_OF(low(x), x, 0, 8, 9, 10, 11, 12, 13, 14), x); \
    x = F(M, LANES_OF(low(x), x, 0, 1, 8, 9, 10, 11, 12, 13), x);  \
    x = F(M, LANES_OF(low(x), x, 0, 1, 2, 3, 8, 9, 10, 11), x);    \
  } while (0)
#define PREFIX_4(M, F, x, low)                    \
  do {                                            \
    x = F(M, LANES_OF(low(x), x, 0, 4, 5, 6), x); \
    x = F(M, LANES_OF(low(x), x, 0, 1, 4, 5), x); \
  } while (0)
#define TURN_8(x) LANES_OF(x, x, 7, 6, 5, 4, 3, 2, 1, 0)
#define TURN_4(x) LANES_OF(x, x, 3, 2, 1, 0)
#define LAST_8(x) LANES_OF(x, x, 7, 7, 7, 7, 7, 7, 7, 7)
#define LAST_4(x) LANES_OF(x, x, 3, 3, 3, 3)
#define LOW_ZERO(x) (none)
#define LOW_SAME(x) (x) /* combined with itself */

/* line_: a chain of n elements from its start in acc, left there.  short_: SHORT_LINES of them, `line`
 * apart.  rows_: n vectors of m elements, `step` apart. d is 1 or -1, the direction. join_: a and b, and
 * what a lacks. */
#define LINES(name, T, F, ONE, V, M, W, VF, LOW, neutral)                                       \
  CLONES static void line_##name(const void *in_, void *out_, int64_t n, int64_t d, void *acc_, \
                                 bool store) {                                                  \
    const T *in = in_;                                                                          \
    T *out = out_, a = *(T *)acc_;                                                              \
    V before, none;                                                                             \
    int64_t i = 0;                                                                              \
    for (int j = 0; j < W; j++) before[j] = a, none[j] = (T)(neutral);                          \
    (void)none;                                                                                 \
    for (; i + W <= n; i += W) {                                                                \
      V x;                                                                                      \
      const int64_t at = d > 0 ? i : -(i + W - 1);                                              \
      memcpy(&x, in + at, sizeof x);                                                            \
      if (d < 0) x = TURN_##W(x);                                                               \
      PREFIX_##W(M, VF, x, LOW);                                                                \
      V y = VF(M, before, x), last = LAST_##W(x);                                               \
      before = VF(M, before, last);                                                             \
      if (d < 0) y = TURN_##W(y);                                                               \
      if (store) memcpy(out + at, &y, sizeof y);                                                \
    }                                                                                           \
    for (a = before[0]; i < n; i++) {                                                           \
      a = ONE(a, in[i * d]);                                                                    \
      if (store) out[i * d] = a;                                                                \
    }                                                                                           \
    *(T *)acc_ = a;                                                                             \
  }                                                                                             \
  static void join_##name(void *a, void *low, const void *b) {                                  \
    (void)low;                                                                                  \
    *(T *)a = F(*(T *)a, *(const T *)b);                                                        \
  }
#define SHORTS(name, T, ONE)                                                                \
  static void short_##name(const void *in_, void *out_, int64_t n, int64_t d, int64_t line, \
                           const void *init) {                                              \
    const T *in = in_;                                                                      \
    T *out = out_, a[SHORT_LINES];                                                          \
    for (int j = 0; j < SHORT_LINES; j++) a[j] = *(const T *)init;                          \
    for (int64_t i = 0; i < n; i++, in += d, out += d)                                      \
      for (int j = 0; j < SHORT_LINES; j++) out[j * line] = a[j] = ONE(a[j], in[j * line]); \
  }
#define ROWS(name, T, F)                                                                          \
  CLONES static void rows_##name(const void *in_, void *out_, int64_t n, int64_t step, int64_t m, \
                                 const void *init) {                                              \
    const T *in = in_, *last;                                                                     \
    T *out = out_, first = *(const T *)init;                                                      \
    for (int64_t c = 0; c < m; c++) out[c] = F(first, in[c]);                                     \
    for (int64_t i = 1; i < n; i++) {                                                             \
      last = out;                                                                                 \
      in += step, out += step;                                                                    \
      for (int64_t c = 0; c < m; c++) out[c] = F(last[c], in[c]);                                 \
    }                                                                                             \
  }
#define SCAN(name, T, F, ONE, V, M, W, VF, LOW, neutral) \
  LINES(name, T, F, ONE, V, M, W, VF, LOW, neutral)      \
  SHORTS(name, T, ONE)                                   \
  ROWS(name, T, F)

/* high + b as a number and, in low, what it lacks; what is not finite lacks nothing. None is -0: added, it
 * changes no number. */
#define TWO_SUM(T, high, low, b)                          \
  do {                                                    \
    T sum = (high) + (b), part = sum - (high);            \
    T lost = ((high) - (sum - part)) + ((b)-part);        \
    (low) = sum - sum == 0 && lost != 0 ? lost : (T)-0.0; \
    (high) = sum;                                         \
  } while (0)
#define V_TWO_SUM(V, M, high, low, b, none)                           \
  do {                                                                \
    V sum = (high) + (b), part = sum - (high);                        \
    V lost = ((high) - (sum - part)) + ((b)-part);                    \
    (low) = V_PICK((M)(sum - sum == 0) & (M)(lost != 0), lost, none); \
    (high) = sum;                                                     \
  } while (0)

/* The same of sums of floats, a block at a time from what it lacks: see above. */
#define SUMS(name, T, V, M, W)                                                                    \
  CLONES static void line_##name(const void *in_, void *out_, int64_t n, int64_t d, void *acc_,   \
                                 bool store) {                                                    \
    const T *in = in_;                                                                            \
    T *out = out_, high = *(T *)acc_, low = (T)-0.0;                                              \
    V none;                                                                                       \
    for (int j = 0; j < W; j++) none[j] = (T)-0.0;                                                \
    for (int64_t i = 0; i < n;) {                                                                 \
      V before = none + low, all = none + high;                                                   \
      int64_t end = MIN(n, i + SUM_VECTORS * W);                                                  \
      for (; i + W <= end; i += W) {                                                              \
        V x;                                                                                      \
        const int64_t at = d > 0 ? i : -(i + W - 1);                                              \
        memcpy(&x, in + at, sizeof x);                                                            \
        if (d < 0) x = TURN_##W(x);                                                               \
        PREFIX_##W(M, V_PLUS, x, LOW_ZERO);                                                       \
        V y = all + (before + x);                                                                 \
        before += LAST_##W(x);                                                                    \
        if (d < 0) y = TURN_##W(y);                                                               \
        if (store) memcpy(out + at, &y, sizeof y);                                                \
      }                                                                                           \
      low = before[0];                                                                            \
      for (; i < end; i++) {                                                                      \
        low += in[i * d];                                                                         \
        if (store) out[i * d] = high + low;                                                       \
      }                                                                                           \
      TWO_SUM(T, high, low, low);                                                                 \
    }                                                                                             \
    *(T *)acc_ = high;                                                                            \
  }                                                                                               \
  static void join_##name(void *a, void *low, const void *b) {                                    \
    T x = *(const T *)b + *(T *)low;                                                              \
    TWO_SUM(T, *(T *)a, *(T *)low, x);                                                            \
  }                                                                                               \
  SHORTS(name, T, PLUS)                                                                           \
  /* Rows of m elements: `many` vectors at a time from v on, whose state stays in registers. */   \
  static ALWAYS_INLINE int64_t vectors_##name(const T *in, T *out, int64_t step, int64_t m,       \
                                              int64_t rows, V *high, V *low, int64_t v,           \
                                              int many) {                                         \
    for (; (v + many) * W <= m; v += many) {                                                      \
      V h[4], l[4], x;                                                                            \
      for (int q = 0; q < many; q++) h[q] = high[v + q], l[q] = low[v + q];                       \
      for (int64_t r = 0; r < rows; r++)                                                          \
        for (int q = 0; q < many; q++) {                                                          \
          const int64_t at = r * step + (v + q) * W;                                              \
          memcpy(&x, in + at, sizeof x);                                                          \
          l[q] += x;                                                                              \
          x = h[q] + l[q];                                                                        \
          memcpy(out + at, &x, sizeof x);                                                         \
        }                                                                                         \
      for (int q = 0; q < many; q++) low[v + q] = l[q];                                           \
    }                                                                                             \
    return v;                                                                                     \
  }                                                                                               \
  static ALWAYS_INLINE void block_##name(const T *in, T *out, int64_t step, int64_t m,            \
                                         int64_t rows, V *high, V *low) {                         \
    int64_t v = vectors_##name(in, out, step, m, rows, high, low, 0, 4);                          \
    v = vectors_##name(in, out, step, m, rows, high, low, v, 1);                                  \
    T *h = (T *)high, *l = (T *)low;                                                              \
    for (int64_t c = v * W; c < m; c++)                                                           \
      for (int64_t r = 0; r < rows; r++) out[r * step + c] = h[c] + (l[c] += in[r * step + c]);   \
  }                                                                                               \
  CLONES static void rows_##name(const void *in_, void *out_, int64_t n, int64_t step, int64_t m, \
                                 const void *init) {                                              \
    const T *in = in_;                                                                            \
    T *out = out_;                                                                                \
    V high[MOST_ROW / W], low[MOST_ROW / W], none;                                                \
    const int64_t vectors = (m + W - 1) / W;                                                      \
    for (int j = 0; j < W; j++) none[j] = (T)-0.0;                                                \
    for (int64_t v = 0; v < vectors; v++) low[v] = none, high[v] = none + *(const T *)init;       \
    for (int64_t i = 0; i < n; i += SUM_ROWS) {                                                   \
      int64_t rows = MIN(SUM_ROWS, n - i);                                                        \
      if (rows == SUM_ROWS) block_##name(in, out, step, m, SUM_ROWS, high, low);                  \
      else block_##name(in, out, step, m, rows, high, low);                                       \
      for (int64_t v = 0; v < vectors; v++) V_TWO_SUM(V, M, high[v], low[v], low[v], none);       \
      in += SUM_ROWS * step, out += SUM_ROWS * step;                                              \
    }                                                                                             \
  }

#define OTHERS(name, T, V, M, W, more, less, more1, less1, vmore, vless) \
  SCAN(name##_mul, T, TIMES, TIMES, V, M, W, V_TIMES, LOW_ZERO, 1)       \
  SCAN(name##_max, T, more, more1, V, M, W, vmore, LOW_SAME, 0)          \
  SCAN(name##_min, T, less, less1, V, M, W, vless, LOW_SAME, 0)
SUMS(f32_add, float, Vf32, Vi32, 8)
SUMS(f64_add, double, Vf64, Vi64, 4)
SCAN(u32_add, uint32_t, PLUS, PLUS, Vu32, Vi32, 8, V_PLUS, LOW_ZERO, 0)
SCAN(u64_add, uint64_t, PLUS, PLUS, Vu64, Vi64, 4, V_PLUS, LOW_ZERO, 0)
OTHERS(f32, float, Vf32, Vi32, 8, FMORE, FLESS, FMORE1, FLESS1, V_FMORE, V_FLESS)
OTHERS(f64, double, Vf64, Vi64, 4, FMORE, FLESS, FMORE1, FLESS1, V_FMORE, V_FLESS)
OTHERS(u32, uint32_t, Vu32, Vi32, 8, MORE, LESS, MORE, LESS, V_MORE, V_LESS)
OTHERS(u64, uint64_t, Vu64, Vi64, 4, MORE, LESS, MORE, LESS, V_MORE, V_LESS)
SCAN(i32_max, int32_t, MORE, MORE, Vi32, Vi32, 8, V_MORE, LOW_SAME, 0)
SCAN(i32_min, int32_t, LESS, LESS, Vi32, Vi32, 8, V_LESS, LOW_SAME, 0)
SCAN(i64_max, int64_t, MORE, MORE, Vi64, Vi64, 4, V_MORE, LOW_SAME, 0)
SCAN(i64_min, int64_t, LESS, LESS, Vi64, Vi64, 4, V_LESS, LOW_SAME, 0)

typedef struct Fns {
  void (*line)(const void *in, void *out, int64_t n, int64_t d, void *acc, bool store);
  void (*few)(const void *in, void *out, int64_t n, int64_t d, int64_t line, const void *init);
  void (*rows)(const void *in, void *out, int64_t n, int64_t step, int64_t m, const void *init);
  void (*join)(void *a, void *low, const void *b);
  int64_t bytes;
} Fns;
#define FNS(name, T) \
  { line_##name, short_##name, rows_##name, join_##name, sizeof(T) }
#define FOUR(name, T) \
  { FNS(name##_add, T), FNS(name##_mul, T), FNS(name##_max, T), FNS(name##_min, T) }
static const Fns of_f32[] = FOUR(f32, float), of_f64[] = FOUR(f64, double),
                 of_u32[] = FOUR(u32, uint32_t), of_u64[] = FOUR(u64, uint64_t);
static const Fns of_i32[] = {FNS(u32_add, uint32_t), FNS(u32_mul, uint32_t), FNS(i32_max, int32_t),
                             FNS(i32_min, int32_t)};
static const Fns of_i64[] = {FNS(u64_add, uint64_t), FNS(u64_mul, uint64_t), FNS(i64_max, int64_t),
                             FNS(i64_min, int64_t)};

static const Fns *fns(OpKind kind, DType t) {
  int i = kind == OP_ADD ? 0 : kind == OP_MULTIPLY ? 1 : kind == OP_MAXIMUM ? 2 : 3;
  switch (t) {
  case DT_F64: return &of_f64[i];
  case DT_I32: return &of_i32[i];
  case DT_I64: return &of_i64[i];
  case DT_U32: return &of_u32[i];
  case DT_U64: return &of_u64[i];
  default: return &of_f32[i];
  }
}

typedef struct Run {
  const Scan *s;
  const Fns *f;
  const char *in;
  char *out;
  const char *init;
  int64_t part; /* elements of a vector for each task */
  char *totals; /* of blocks */
  int64_t blocks;
} Run;

static void some_lines(void *arg, int64_t begin, int64_t end) {
  const Run *r = arg;
  const Scan *s = r->s;
  int64_t b = r->f->bytes, d = s->back ? -1 : 1, first = s->back ? s->n - 1 : 0;
  for (int64_t o = begin; o < end;) {
    int64_t at = (o * s->n + first) * b;
    if (s->n <= SHORT && end - o >= SHORT_LINES) {
      r->f->few(r->in + at, r->out + at, s->n, d, s->n, r->init);
      o += SHORT_LINES;
      continue;
    }
    uint64_t acc;
    memcpy(&acc, r->init, (size_t)b);
    r->f->line(r->in + at, r->out + at, s->n, d, &acc, true);
    o++;
  }
}

static void some_rows(void *arg, int64_t begin, int64_t end) { /* (outer, part of the vector) */
  const Run *r = arg;
  const Scan *s = r->s;
  int64_t b = r->f->bytes, parts = (s->inner + r->part - 1) / r->part,
          step = s->back ? -s->inner : s->inner;
  for (int64_t i = begin; i < end; i++) {
    int64_t c = i % parts * r->part, m = MIN(r->part, s->inner - c);
    int64_t at = ((i / parts * s->n + (s->back ? s->n - 1 : 0)) * s->inner + c) * b;
    r->f->rows(r->in + at, r->out + at, s->n, step, m, r->init);
  }
}

/* Blocks of one line: their totals, or (when `out` is set) their elements from the totals before.
 */
static void some_blocks(void *arg, int64_t begin, int64_t end) {
  const Run *r = arg;
  const Scan *s = r->s;
  int64_t b = r->f->bytes, d = s->back ? -1 : 1;
  bool store = r->out != NULL;
  for (int64_t k = begin; k < end; k++) {
    int64_t at = s->back ? s->n - 1 - k * BLOCK : k * BLOCK;
    char *out = store ? r->out + at * b : NULL;
    r->f->line(r->in + at * b, out, MIN(BLOCK, s->n - k * BLOCK), d, r->totals + k * b, store);
  }
}

static void long_line(const Run *line, int64_t o) {
  Run r = *line;
  const Scan *s = r.s;
  int64_t b = r.f->bytes, blocks = (s->n + BLOCK - 1) / BLOCK;
  r.in += o * s->n * b;
  char *out = r.out + o * s->n * b, identity[8] = {0};
  r.out = NULL;
  /* the first element of each block starts its total: maxima have no other beginning that suits all
   */
  for (int64_t k = 0; k < blocks; k++) {
    int64_t at = s->back ? s->n - 1 - k * BLOCK : k * BLOCK;
    if (s->kind == OP_ADD) memcpy(r.totals + k * b, identity, (size_t)b);
    else if (s->kind == OP_MULTIPLY)
      elem_set_f64(s->type == DT_BF16 || s->type == DT_F16 ? DT_F32 : s->type, r.totals + k * b, 1);
    else memcpy(r.totals + k * b, r.in + at * b, (size_t)b);
  }
  cpu_parallel(blocks, FEW_LINES, some_blocks, &r);
  char before[8], total[8], low[8] = {0};
  memcpy(before, r.init, (size_t)b);
  for (int64_t k = 0; k < blocks; k++) {
    memcpy(total, r.totals + k * b, (size_t)b);
    memcpy(r.totals + k * b, before, (size_t)b);
    r.f->join(before, low, total);
  }
  r.out = out;
  cpu_parallel(blocks, FEW_LINES, some_blocks, &r);
}

static void scan(const Scan *s, DType math, const void *in, const void *init, void *out) {
  Run r = {.s = s, .f = fns(s->kind, math), .in = in, .out = out, .init = init};
  if (s->inner == 1) {
    if (s->outer < FEW_LINES && s->n > 4 * BLOCK) {
      r.totals = xmalloc((size_t)((s->n + BLOCK - 1) / BLOCK * r.f->bytes));
      for (int64_t o = 0; o < s->outer; o++) long_line(&r, o);
      free(r.totals);
      return;
    }
    cpu_parallel(s->outer, (65536 / s->n + SHORT_LINES) / SHORT_LINES * SHORT_LINES, some_lines,
                 &r);
    return;
  }
  r.part = MIN(s->inner, MOST_ROW);
  int64_t parts = (s->inner + r.part - 1) / r.part;
  cpu_parallel(s->outer * parts, MAX(1, 65536 / (s->n * r.part)), some_rows, &r);
}

static Err *run(void *state, const Op *op, void *const *in, void *const *out) {
  const Scan *s = state;
  int64_t n = type_count(op_type(op));
  if (n == 0) return NULL;
  if (s->type != DT_BF16 && s->type != DT_F16) {
    scan(s, s->type, in[0], in[1], out[0]);
    return NULL;
  }
  const size_t bytes = (size_t)n * 2 * sizeof(float);
  float init, *wide = cpu_block_alloc(bytes);
  if (!wide) return op_err(op, ERR_EXHAUSTED, "no memory for f32 copies");
  cpu_widen(s->type, in[0], wide, n);
  cpu_to_f32(s->type, in[1], &init, 1);
  scan(s, DT_F32, wide, &init, wide + n);
  cpu_narrow(s->type, wide + n, out[0], n);
  cpu_block_free(wide, bytes);
  return NULL;
}

bool cpu_window_is_running(const Op *op) {
  Scan s;
  return recognise(op, &s);
}

static Err *prepare(const Op *op, void **state) {
  Scan *s = xcalloc(1, sizeof *s);
  if (!recognise(op, s)) {
    free(s);
    return op_err(op, ERR_INTERNAL, "no running combination");
  }
  *state = s;
  return NULL;
}

const CpuKernel cpu_kernels_scan[] = {
    {.name = "scan",
     .kind = OP_REDUCE_WINDOW,
     .accepts = cpu_window_is_running,
     .prepare = prepare,
     .run = run,
     .release = free},
    {0},
};
