/* reduce_window and select_and_scatter: pooling and its gradient.
 *
 * Trailing dimensions that the window does not touch (channels of NHWC) are one run, taken a vector
 * at a time through all places of the window. bf16 is compared as it is, or widened in registers;
 * f16, and gradients of both, by f32 copies: sums are rounded once, maxima are exact. */
#include <stdatomic.h>

#include "dev/cpu/kernel/clones.h"
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"

typedef enum Kind { K_ADD, K_MUL, K_MAX, K_MIN, K_AND, K_OR } Kind;

typedef struct Window {
  int rank; /* dimensions before the run */
  int64_t in[CPU_MAX_RANK], out[CPU_MAX_RANK], size[CPU_MAX_RANK], stride[CPU_MAX_RANK],
      lo[CPU_MAX_RANK], base[CPU_MAX_RANK], dilate[CPU_MAX_RANK];
  int64_t in_step[CPU_MAX_RANK]; /* elements */
  int64_t run;                   /* elements of the trailing run */
  int64_t outer;                 /* output positions */
  int64_t window;                /* positions of the window */
  Kind kind;
  DType type, math;
  int64_t *near; /* of each position: elements from the window's first one */
} Window;

static bool kind_of(const Region *r, Kind *k) {
  switch (cpu_region_binary(r, NULL)) {
  case OP_ADD: *k = K_ADD; return true;
  case OP_MULTIPLY: *k = K_MUL; return true;
  case OP_MAXIMUM: *k = K_MAX; return true;
  case OP_MINIMUM: *k = K_MIN; return true;
  case OP_AND: *k = K_AND; return true;
  case OP_OR: *k = K_OR; return true;
  default: return false;
  }
}

static void ints_or(const Op *op, const char *name, int n, int64_t dflt, int64_t *out) {
  const int64_t *v;
  int have = op_ints(op, name, &v);
  for (int i = 0; i < n; i++) out[i] = i < have ? v[i] : dflt;
}

static void window_of(const Op *op, const Type *whole, const Type *pooled, Window *w) {
  int r = whole->rank;
  int64_t pad[2 * CPU_MAX_RANK], s[CPU_MAX_RANK];
  ints_or(op, "window_dimensions", r, 1, w->size);
  ints_or(op, "window_strides", r, 1, w->stride);
  ints_or(op, "base_dilations", r, 1, w->base);
  ints_or(op, "window_dilations", r, 1, w->dilate);
  ints_or(op, "padding", 2 * r, 0, pad);
  cpu_strides(whole, s);
  w->run = 1;
  w->rank = r;
  while (w->rank > 0) {
    int i = w->rank - 1;
    if (w->size[i] != 1 || w->stride[i] != 1 || w->base[i] != 1 || pad[2 * i] || pad[2 * i + 1])
      break;
    w->run *= whole->dims[i];
    w->rank--;
  }
  w->outer = w->window = 1;
  for (int i = 0; i < w->rank; i++) {
    w->in[i] = whole->dims[i];
    w->out[i] = pooled->dims[i];
    w->lo[i] = pad[2 * i];
    w->in_step[i] = s[i];
    w->outer *= w->out[i];
    w->window *= w->size[i];
  }
  w->near = xmalloc(sizeof(int64_t) * (size_t)w->window);
  for (int64_t p = 0; p < w->window; p++) {
    int64_t rest = p;
    w->near[p] = 0;
    for (int i = w->rank - 1; i >= 0; i--) {
      w->near[p] += rest % w->size[i] * w->dilate[i] * w->in_step[i];
      rest /= w->size[i];
    }
  }
}

static void release(void *state) {
  Window *w = state;
  if (w) free(w->near);
  free(w);
}

/* The elements under window o that exist, in order: where their runs start. */
static int64_t under(const Window *w, int64_t o, int64_t *to) {
  int64_t at[CPU_MAX_RANK], wi[CPU_MAX_RANK] = {0}, first = 0, n = 0;
  bool inside = true;
  for (int i = w->rank - 1; i >= 0; i--) {
    at[i] = o % w->out[i] * w->stride[i] - w->lo[i], o /= w->out[i];
    inside &= w->base[i] == 1 && at[i] >= 0 && at[i] + (w->size[i] - 1) * w->dilate[i] < w->in[i];
    first += at[i] * w->in_step[i];
  }
  if (inside) {
    for (int64_t p = 0; p < w->window; p++) to[p] = first + w->near[p];
    return w->window;
  }
  for (int64_t p = 0; p < w->window; p++) {
    int64_t off = 0;
    bool exists = true;
    for (int i = 0; i < w->rank && exists; i++) {
      int64_t x = at[i] + wi[i] * w->dilate[i];
      exists = x >= 0 && x % w->base[i] == 0 && x / w->base[i] < w->in[i];
      off += x / w->base[i] * w->in_step[i];
    }
    if (exists) to[n++] = off;
    for (int i = w->rank - 1; i >= 0 && ++wi[i] == w->size[i]; i--) wi[i] = 0;
  }
  return n;
}

/* The same for o, o + 1, .. in turn: x is the place of o along the last dimension. */
typedef struct Under {
  int64_t x, n, *to;
  bool whole; /* the elements of the last o all exist, one after the other */
} Under;

static void under_next(const Window *w, int64_t o, Under *u) {
  int last = w->rank - 1;
  int64_t step = last < 0 ? 0 : w->stride[last] * w->in_step[last];
  bool beside =
      u->whole && u->x > 0 &&
      u->x * w->stride[last] - w->lo[last] + (w->size[last] - 1) * w->dilate[last] < w->in[last];
  if (beside) {
    for (int64_t p = 0; p < u->n; p++) u->to[p] += step;
  } else {
    u->n = under(w, o, u->to);
    u->whole = last >= 0 && u->n == w->window && w->base[last] == 1;
  }
  if (last >= 0 && ++u->x == w->out[last]) u->x = 0;
}

/* ---- vectors: a type, its mask, and how to choose by one ---- */

#define VECTOR(T, I, N)                                                            \
  typedef T V_##N __attribute__((vector_size(32), aligned(sizeof(T)), may_alias)); \
  typedef I M_##N __attribute__((vector_size(32), may_alias));
VECTOR(float, int32_t, f32)
VECTOR(double, int64_t, f64)
VECTOR(int32_t, int32_t, i32)
VECTOR(int64_t, int64_t, i64)
VECTOR(uint32_t, int32_t, u32)
#define AT(N, p) (*(const V_##N *)(p))
#define CHOOSE(N, m, a, b) ((V_##N)(((M_##N)(m) & (M_##N)(a)) | (~(M_##N)(m) & (M_##N)(b))))

#define ADD(N, a, b) ((a) + (b))
#define MUL(N, a, b) ((a) * (b))
#define MORE(N, a, b) CHOOSE(N, ((b) > (a)) | ((b) != (b)), b, a)
#define LESS(N, a, b) CHOOSE(N, ((b) < (a)) | ((b) != (b)), b, a)

/* How vectors are in memory: as they are, or as bf16. */
#define GET_SAME(N, p) AT(N, p)
#define PUT_SAME(N, p, x) (*(V_##N *)(p) = (x))
#define ONE_SAME(x) (x)
#define BACK_SAME(x) (x)
typedef uint16_t Halves __attribute__((vector_size(16), aligned(2), may_alias));
typedef uint32_t Words __attribute__((vector_size(32), may_alias));
#define GET_BF16(N, p) ((V_f32)(__builtin_convertvector(*(const Halves *)(p), Words) << 16))
#define PUT_BF16(N, p, x)                                           \
  do {                                                              \
    Words bits = (Words)(x), up = bits + 0x7fff + (bits >> 16 & 1); \
    Words none = (Words)((x) != (x)), kept = bits | 0x400000;       \
    up = (none & kept) | (~none & up);                              \
    *(Halves *)(p) = __builtin_convertvector(up >> 16, Halves);     \
  } while (0)
#define ONE_BF16(x) bf16_to_f32(x)
#define BACK_BF16(x) f32_to_bf16(x)

/* a = init op in[off[0]] op in[off[1]] .., for m elements. What does not fill a vector goes through
 * a padded copy. M: how they are in memory. */
#define FOLD_KIND(T, N, M, OP)                                                 \
  for (; c + lanes <= m; c += lanes) {                                         \
    V_##N x = start;                                                           \
    for (int64_t p = 0; p < n; p++) x = OP(N, x, GET_##M(N, in + off[p] + c)); \
    PUT_##M(N, a + c, x);                                                      \
  }                                                                            \
  for (; c < m; c++) {                                                         \
    V_##N x = start;                                                           \
    for (int64_t p = 0; p < n; p++) {                                          \
      V_##N y = start;                                                         \
      y[0] = ONE_##M(in[off[p] + c]);                                          \
      x = OP(N, x, y);                                                         \
    }                                                                          \
    a[c] = BACK_##M(x[0]);                                                     \
  }
/* S: the type in memory, T: in which it is reduced. */
#define FOLD_FN(NAME, S, T, N, M)                                                                  \
  CLONES static void fold_##NAME(Kind k, T init, const S *in, const int64_t *off, int64_t n, S *a, \
                                 int64_t m) {                                                      \
    const int64_t lanes = 32 / (int64_t)sizeof(T);                                                 \
    V_##N start = (V_##N){0} + init;                                                               \
    int64_t c = 0;                                                                                 \
    switch (k) {                                                                                   \
    case K_ADD: FOLD_KIND(T, N, M, ADD) break;                                                     \
    case K_MUL: FOLD_KIND(T, N, M, MUL) break;                                                     \
    case K_MAX: FOLD_KIND(T, N, M, MORE) break;                                                    \
    default: FOLD_KIND(T, N, M, LESS) break;                                                       \
    }                                                                                              \
  }

#define ROW_FN(NAME, S, T)                                                          \
  typedef struct Reduce_##NAME {                                                    \
    const Window *w;                                                                \
    const S *in;                                                                    \
    S *out;                                                                         \
    T init;                                                                         \
  } Reduce_##NAME;                                                                  \
  static void reduce_##NAME(void *arg, int64_t begin, int64_t end) {                \
    const Reduce_##NAME *r = arg;                                                   \
    const Window *w = r->w;                                                         \
    Under u = {.to = cpu_scratch(sizeof(int64_t) * (size_t)w->window)};             \
    if (w->rank) u.x = begin % w->out[w->rank - 1];                                 \
    for (int64_t o = begin; o < end; o++) {                                         \
      under_next(w, o, &u);                                                         \
      fold_##NAME(w->kind, r->init, r->in, u.to, u.n, r->out + o * w->run, w->run); \
    }                                                                               \
  }                                                                                 \
  static void window_##NAME(const Window *w, const void *in, T init, void *out) {   \
    Reduce_##NAME r = {w, in, out, init};                                           \
    int64_t cost = w->run * w->window + 16;                                         \
    cpu_parallel(w->outer, MAX(1, 131072 / cost), reduce_##NAME, &r);               \
  }

FOLD_FN(f32, float, float, f32, SAME)
FOLD_FN(f64, double, double, f64, SAME)
FOLD_FN(i32, int32_t, int32_t, i32, SAME)
FOLD_FN(i64, int64_t, int64_t, i64, SAME)
FOLD_FN(u32, uint32_t, uint32_t, u32, SAME)
FOLD_FN(bf16_wide, uint16_t, float, f32, BF16)

/* The largest (smallest) of bf16, as the integers of 16 bits that are ordered as they are; what is not
 * a number is, in the end. At least a vector of them: the last one again, as far as need be. */
typedef int16_t Shorts __attribute__((vector_size(32), aligned(2), may_alias));
#define ORDERED(v) ((v) ^ (((v) >> 15) & 0x7fff))
#define NO_NUMBER(v) (((v)&0x7fff) > 0x7f80)
CLONES static void extreme_bf16(bool max, uint16_t init, const uint16_t *in, const int64_t *off,
                                int64_t n, uint16_t *a, int64_t m) {
  Shorts zero = {0}, flip = zero + (int16_t)(max ? 0 : -1), start = zero + (int16_t)init;
  for (int64_t c = 0; c < m; c += 16) {
    int64_t at = MIN(c, m - 16);
    Shorts best = ORDERED(start) ^ flip, none = NO_NUMBER(start);
    for (int64_t p = 0; p < n; p++) {
      Shorts v = *(const Shorts *)(in + off[p] + at), key = ORDERED(v) ^ flip, more = key > best;
      best = (more & key) | (~more & best);
      none |= NO_NUMBER(v);
    }
    best ^= flip;
    *(Shorts *)(a + at) = (none & 0x7fc0) | (~none & ORDERED(best));
  }
}

static void fold_bf16(Kind k, float init, const uint16_t *in, const int64_t *off, int64_t n,
                      uint16_t *a, int64_t m) {
  if (m >= 16 && (k == K_MAX || k == K_MIN))
    extreme_bf16(k == K_MAX, f32_to_bf16(init), in, off, n, a, m);
  else fold_bf16_wide(k, init, in, off, n, a, m);
}

ROW_FN(f32, float, float)
ROW_FN(f64, double, double)
ROW_FN(i32, int32_t, int32_t)
ROW_FN(i64, int64_t, int64_t)
ROW_FN(u32, uint32_t, uint32_t)
ROW_FN(bf16, uint16_t, float)

/* ---- f16, gradients of bf16: copies in f32, of an entry of dimension 0 at a time ---- */

/* Entries of dimension 0 that windows do not join; 1: all is one. */
static int64_t batches_of(const Window *w) {
  bool apart = w->rank > 0 && w->size[0] == 1 && w->stride[0] == 1 && w->base[0] == 1 &&
               w->lo[0] == 0 && w->out[0] == w->in[0];
  return apart ? MAX(w->out[0], 1) : 1;
}

typedef struct Scatter Scatter;
typedef struct Narrow {
  const Window *w;
  DType t;
  const char *in, *src; /* src: of select_and_scatter */
  char *out;
  float init;
  const Scatter *scatter;
  int64_t whole, pooled, batches; /* whole, pooled: elements of a batch */
  atomic_bool failed;
} Narrow;

static void scatter_wide(const Scatter *like, const float *in, const float *src, float init,
                         float *out);

static void narrow_batches(void *arg, int64_t begin, int64_t end) {
  Narrow *r = arg;
  bool back = r->scatter;
  size_t bytes = sizeof(float) * (size_t)(r->whole * (back ? 2 : 1) + r->pooled);
  float *in = cpu_block_alloc(bytes);
  if (!in) {
    atomic_store(&r->failed, true);
    return;
  }
  float *pooled = in + r->whole, *whole = pooled + r->pooled;
  for (int64_t b = begin; b < end; b++) {
    cpu_to_f32(r->t, r->in + b * r->whole * 2, in, r->whole);
    if (back) {
      cpu_to_f32(r->t, r->src + b * r->pooled * 2, pooled, r->pooled);
      scatter_wide(r->scatter, in, pooled, r->init, whole);
      cpu_from_f32(r->t, whole, r->out + b * r->whole * 2, r->whole);
    } else {
      Reduce_f32 one = {r->w, in, pooled, r->init};
      reduce_f32(&one, 0, r->w->outer / r->batches);
      cpu_from_f32(r->t, pooled, r->out + b * r->pooled * 2, r->pooled);
    }
  }
  cpu_block_free(in, bytes);
}

static Err *run_narrow(Narrow *r, const Op *op, const Type *whole, const Type *pooled) {
  r->batches = batches_of(r->w);
  r->whole = type_count(whole) / r->batches;
  r->pooled = type_count(pooled) / r->batches;
  if (r->batches > 1 || r->scatter) {
    cpu_parallel(r->batches, MAX(1, 65536 / (r->whole + r->pooled)), narrow_batches, r);
  } else {
    size_t bytes = sizeof(float) * (size_t)(r->whole + r->pooled);
    float *in = cpu_block_alloc(bytes);
    if (in) {
      cpu_widen(r->t, r->in, in, r->whole);
      window_f32(r->w, in, r->init, in + r->whole);
      cpu_narrow(r->t, in + r->whole, r->out, r->pooled);
    }
    r->failed = !in;
    cpu_block_free(in, bytes);
  }
  return atomic_load(&r->failed) ? op_err(op, ERR_EXHAUSTED, "no memory for f32 copies") : NULL;
}

static bool accepts_reduce(const Op *op) {
  if (op->n_results != 1 || op->n_operands != 2 || !cpu_window_skips_outside(op)) return false;
  DType t = op->operands[0]->type->dtype;
  Kind k;
  if (!kind_of(op->regions[0], &k) || k == K_AND || k == K_OR) return false;
  if (op_type(op)->dtype != t || op->operands[1]->type->dtype != t || op_type(op)->quant)
    return false;
  return t == DT_F32 || t == DT_F64 || t == DT_I32 || t == DT_I64 || t == DT_U32 || t == DT_BF16 ||
         t == DT_F16;
}

static Err *prepare_reduce(const Op *op, void **state) {
  Window *w = xcalloc(1, sizeof *w);
  window_of(op, op->operands[0]->type, op_type(op), w);
  kind_of(op->regions[0], &w->kind);
  *state = w;
  return NULL;
}

static Err *run_reduce(void *state, const Op *op, void *const *in, void *const *out) {
  const Window *w = state;
  DType t = op_type(op)->dtype;
  if (type_count(op_type(op)) == 0) return NULL;
  switch (t) {
  case DT_F32: window_f32(w, in[0], *(const float *)in[1], out[0]); return NULL;
  case DT_F64: window_f64(w, in[0], *(const double *)in[1], out[0]); return NULL;
  case DT_I32: window_i32(w, in[0], *(const int32_t *)in[1], out[0]); return NULL;
  case DT_I64: window_i64(w, in[0], *(const int64_t *)in[1], out[0]); return NULL;
  case DT_U32: window_u32(w, in[0], *(const uint32_t *)in[1], out[0]); return NULL;
  case DT_BF16: window_bf16(w, in[0], bf16_to_f32(*(const uint16_t *)in[1]), out[0]); return NULL;
  default: break;
  }
  Narrow n = {.w = w, .t = t, .in = in[0], .out = out[0]};
  cpu_to_f32(t, in[1], &n.init, 1);
  return run_narrow(&n, op, op->operands[0]->type, op_type(op));
}

/* ---- select_and_scatter: the first largest (or smallest) of each window gets the source added
 * ---- */

struct Scatter {
  const Window *w;
  const void *in, *src;
  void *out;
  bool max;
  bool exact; /* every element lies under one window, all of which are whole: out is written, not
                 added to */
  double init;
  int64_t per_batch; /* source positions of an entry of dimension 0 */
};

/* The chosen one of n elements gets src: the first, unless a later one is larger (smaller). */
#define SCATTER_FN(T, N)                                                                           \
  CLONES static void select_##N(bool max, bool exact, T init, const T *in, const int64_t *off,     \
                                int64_t n, const T *src, T *out, int64_t m) {                      \
    const int64_t lanes = 32 / (int64_t)sizeof(T);                                                 \
    int64_t c = 0;                                                                                 \
    for (; c + lanes <= m; c += lanes) {                                                           \
      V_##N best = AT(N, in + off[0] + c), give = AT(N, src + c), start = (V_##N){0} + init;       \
      M_##N at = {0};                                                                              \
      for (int32_t p = 1; p < (int32_t)n; p++) {                                                   \
        V_##N x = AT(N, in + off[p] + c);                                                          \
        M_##N keep = max ? (M_##N)(best >= x) : (M_##N)(best <= x);                                \
        best = CHOOSE(N, keep, best, x);                                                           \
        at = (keep & at) | (~keep & ((M_##N){0} + p));                                             \
      }                                                                                            \
      for (int32_t p = 0; p < (int32_t)n; p++) {                                                   \
        V_##N *to = (V_##N *)(out + off[p] + c);                                                   \
        *to = (exact ? start : *to) + (V_##N)((M_##N)(at == p) & (M_##N)give);                     \
      }                                                                                            \
    }                                                                                              \
    for (; c < m; c++) {                                                                           \
      int64_t at = 0;                                                                              \
      for (int64_t p = 1; p < n; p++) {                                                            \
        T best = in[off[at] + c], x = in[off[p] + c];                                              \
        if (!(max ? best >= x : best <= x)) at = p;                                                \
      }                                                                                            \
      for (int64_t p = 0; p < n && exact; p++) out[off[p] + c] = init;                             \
      out[off[at] + c] += src[c];                                                                  \
    }                                                                                              \
  }                                                                                                \
  static void scatter_##N(void *arg, int64_t begin, int64_t end) {                                 \
    const Scatter *s = arg;                                                                        \
    const Window *w = s->w;                                                                        \
    int64_t from = begin * s->per_batch, to = end * s->per_batch;                                  \
    Under u = {.to = cpu_scratch(sizeof(int64_t) * (size_t)w->window)};                            \
    if (w->rank) u.x = from % MAX(1, w->out[w->rank - 1]);                                         \
    for (int64_t o = from; o < to; o++) {                                                          \
      under_next(w, o, &u);                                                                        \
      if (u.n)                                                                                     \
        select_##N(s->max, s->exact, (T)s->init, s->in, u.to, u.n, (const T *)s->src + o * w->run, \
                   s->out, w->run);                                                                \
    }                                                                                              \
  }

SCATTER_FN(float, f32)
SCATTER_FN(double, f64)

static bool accepts_scatter(const Op *op) {
  DType t = op_type(op)->dtype;
  bool max;
  return (t == DT_F32 || t == DT_F64 || t == DT_BF16 || t == DT_F16) &&
         cpu_region_select(op->regions[0], &max) &&
         cpu_region_binary(op->regions[1], NULL) == OP_ADD && op->operands[0]->type->dtype == t &&
         op_type(op)->rank > 0;
}

static Err *prepare_scatter(const Op *op, void **state) {
  Window *w = xcalloc(1, sizeof *w);
  window_of(op, op->operands[0]->type, op->operands[1]->type, w);
  *state = w;
  return NULL;
}

static Scatter scatter_of(const Window *w, const Op *op) {
  Scatter s = {.w = w, .exact = true, .per_batch = w->outer / batches_of(w)};
  cpu_region_select(op->regions[0], &s.max);
  for (int i = 0; i < w->rank; i++)
    s.exact &= w->lo[i] == 0 && w->size[i] == w->stride[i] && w->out[i] * w->size[i] == w->in[i];
  return s;
}

static void scatter_wide(const Scatter *like, const float *in, const float *src, float init,
                         float *out) { /* one batch */
  Scatter s = *like;
  s.in = in, s.src = src, s.out = out, s.init = init;
  int64_t n = s.w->rank ? s.w->in[0] * s.w->in_step[0] / batches_of(s.w) : s.w->run;
  for (int64_t i = 0; i < n && !s.exact; i++) out[i] = init;
  scatter_f32(&s, 0, 1);
}

static Err *run_scatter(void *state, const Op *op, void *const *in, void *const *out) {
  const Window *w = state;
  const Type *whole = op_type(op);
  DType t = whole->dtype;
  if (type_count(whole) == 0) return NULL;
  Scatter s = scatter_of(w, op);
  if (t == DT_BF16 || t == DT_F16) {
    Narrow n = {.w = w, .t = t, .in = in[0], .src = in[1], .out = out[0], .scatter = &s};
    cpu_to_f32(t, in[2], &n.init, 1);
    return run_narrow(&n, op, whole, op->operands[1]->type);
  }
  s.in = in[0], s.src = in[1], s.out = out[0], s.init = elem_get_f64(t, in[2]);
  int64_t zero[CPU_MAX_RANK] = {0}, batches = batches_of(w);
  if (!s.exact) cpu_permute((size_t)dtype_bytes(t), whole->rank, whole->dims, zero, in[2], out[0]);
  int64_t cost = s.per_batch * (w->run * w->window * 2 + 32);
  cpu_parallel(batches, MAX(1, 131072 / MAX(cost, 1)), t == DT_F64 ? scatter_f64 : scatter_f32, &s);
  return NULL;
}

const CpuKernel cpu_kernels_window[] = {
    {.name = "reduce_window",
     .kind = OP_REDUCE_WINDOW,
     .accepts = accepts_reduce,
     .prepare = prepare_reduce,
     .run = run_reduce,
     .release = release},
    {.name = "select_and_scatter",
     .kind = OP_SELECT_AND_SCATTER,
     .accepts = accepts_scatter,
     .prepare = prepare_scatter,
     .run = run_scatter,
     .release = release},
    {0},
};
