/* Products of integers, exact modulo the result's width: operands are widened to 32 bits (64 where
 * the result asks for it), the rhs into panels of 64 bytes of columns, the lhs into rows. Those of
 * up to 16 bits go in pairs along k, which one instruction multiplies and adds, where the host has
 * it. Tasks are tiles of the result, by size only. */
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "dev/cpu/kernel/clones.h"
#include "dev/cpu/kernel/mem.h"
#include "dev/cpu/dot/dot.h"

#define ROWS 4       /* of the innermost kernel */
#define TILE_ROWS 48 /* of a task */
#define TILE_PANELS 8
#define GRAIN 2e5 /* multiplications of a task that takes several tiles */
#define PACK_GRAIN 65536

#define PANEL_BYTES 64 /* two vectors */
typedef uint32_t V32 __attribute__((vector_size(32), may_alias));
typedef uint64_t V64 __attribute__((vector_size(32), may_alias));

typedef enum Width { W_PAIRS, W_32, W_64 } Width;

typedef struct Call {
  const Dot *d;
  DType lt, rt;
  Width width;
  int64_t k;               /* of 32 or 64 bits */
  int64_t columns, panels; /* of a panel; of a product */
  int64_t tiles_m, tiles_n;
  const char *in[2];
  char *lhs, *rhs, *out; /* [b][m][k], [b][panel][k][columns] */
} Call;

static int64_t bytes_of(const Call *c) { return c->width == W_64 ? 8 : 4; }

/* ---- widening ---- */

#define WIDEN_TO(to, from) \
  for (int64_t i = 0; i < n; i++) ((to *)out)[i * step] = (to)((const from *)in)[i * in_step]
#define WIDEN_CASE(id, from)                      \
  case DT_##id:                                   \
    if (w == W_64) WIDEN_TO(uint64_t, from);      \
    else if (w == W_32) WIDEN_TO(uint32_t, from); \
    else WIDEN_TO(uint16_t, from);                \
    return;

/* n elements, each to `step` of its width further. */
static void widen(DType t, Width w, const void *in, int64_t in_step, int64_t n, int64_t step,
                  void *out) {
  switch (t) {
    WIDEN_CASE(I8, int8_t)
    WIDEN_CASE(U8, uint8_t)
    WIDEN_CASE(I16, int16_t)
    WIDEN_CASE(U16, uint16_t)
    WIDEN_CASE(I32, int32_t)
    WIDEN_CASE(U32, uint32_t)
    WIDEN_CASE(I64, int64_t)
    WIDEN_CASE(U64, uint64_t)
  default: break;
  }
  for (int64_t i = 0; i < n; i++) {
    uint64_t v = (uint64_t)elem_get_i64(t, (const char *)in + i * in_step * dtype_bytes(t));
    if (w == W_64) ((uint64_t *)out)[i * step] = v;
    else if (w == W_32) ((uint32_t *)out)[i * step] = (uint32_t)v;
    else ((uint16_t *)out)[i * step] = (uint16_t)v;
  }
}

static void pack_lhs(void *arg, int64_t begin, int64_t end) { /* rows */
  const Call *c = arg;
  const Dot *d = c->d;
  int64_t lo, ro, row = c->k * bytes_of(c);
  for (int64_t r = begin; r < end; r++) {
    char *to = c->lhs + r * row;
    dot_batch_at(d, r / d->m, &lo, &ro);
    lo += r % d->m * d->lhs.free_stride;
    if (c->width == W_PAIRS) memset(to + row - 4, 0, 4); /* k may be odd */
    widen(c->lt, c->width, c->in[0] + lo * dtype_bytes(c->lt), d->lhs.k_stride, d->k, 1, to);
  }
}

/* Columns, or rows of a panel where memory has them together: the innermost loop follows runs. */
static void pack_rhs(void *arg, int64_t begin, int64_t end) { /* panels */
  const Call *c = arg;
  const Dot *d = c->d;
  int64_t lo, ro, pair = c->width == W_PAIRS ? 2 : 1, e = bytes_of(c) / pair,
                  rb = dtype_bytes(c->rt), step = d->rhs.free_stride, k_step = d->rhs.k_stride;
  for (int64_t t = begin; t < end; t++) {
    int64_t j0 = t % c->panels * c->columns, n = MIN(c->columns, d->n - j0);
    dot_batch_at(d, t / c->panels, &lo, &ro);
    const char *from = c->in[1] + (ro + j0 * step) * rb;
    char *to = c->rhs + t * c->k * PANEL_BYTES;
    if (n < c->columns || c->k * pair != d->k) memset(to, 0, (size_t)(c->k * PANEL_BYTES));
    for (int64_t p = 0; step == 1 && p < d->k; p++)
      widen(c->rt, c->width, from + p * k_step * rb, 1, n, pair,
            to + p / pair * PANEL_BYTES + p % pair * e);
    for (int64_t j = 0; step != 1 && j < n; j++)
      for (int64_t p = 0; p < pair; p++)
        widen(c->rt, c->width, from + (j * step + p * k_step) * rb, pair * k_step,
              (d->k - p + pair - 1) / pair, PANEL_BYTES / e, to + (j * pair + p) * e);
  }
}

/* ---- multiplying ---- */

/* c[rows][columns] = sum over k of a[rows][k] b[k][columns] */
typedef void (*PanelFn)(int64_t rows, int64_t k, const void *a, const void *b, void *c);

#define PANEL_ROWS(n, V, SET, FMA)                                                  \
  {                                                                                 \
    V s[n][2];                                                                      \
    _Pragma("GCC unroll 4") for (int i = 0; i < n; i++) s[i][0] = s[i][1] = (V){0}; \
    for (int64_t p = 0; p < k; p++) {                                               \
      V y0 = y[2 * p], y1 = y[2 * p + 1];                                           \
      _Pragma("GCC unroll 4") for (int i = 0; i < n; i++) {                         \
        V x = SET(a[i * k + p]);                                                    \
        s[i][0] = FMA(s[i][0], x, y0);                                              \
        s[i][1] = FMA(s[i][1], x, y1);                                              \
      }                                                                             \
    }                                                                               \
    _Pragma("GCC unroll 4") for (int i = 0; i < n; i++) {                           \
      to[2 * i] = s[i][0];                                                          \
      to[2 * i + 1] = s[i][1];                                                      \
    }                                                                               \
  }
#define PANEL(name, attributes, T, V, SET, FMA)                                                  \
  attributes static void name(int64_t rows, int64_t k, const void *a_, const void *b, void *c) { \
    const T *a = a_;                                                                             \
    const V *y = b;                                                                              \
    V *to = c;                                                                                   \
    if (rows == ROWS) PANEL_ROWS(ROWS, V, SET, FMA)                                              \
    else                                                                                         \
      for (int64_t r = 0; r < rows; r++, a += k, to += 2) PANEL_ROWS(1, V, SET, FMA)             \
  }
#define SPLAT32(x) ((V32){0} + (x))
#define SPLAT64(x) ((V64){0} + (x))
#define MULTIPLY_ADD(s, x, y) ((s) + (x) * (y))
PANEL(panel_32, CLONES, uint32_t, V32, SPLAT32, MULTIPLY_ADD)
PANEL(panel_64, CLONES, uint64_t, V64, SPLAT64, MULTIPLY_ADD)

#if defined(__x86_64__)
#define SPLAT_PAIR(x) _mm256_set1_epi32((int)(x))
#define PAIRS_ADD(s, x, y) _mm256_add_epi32(s, _mm256_madd_epi16(x, y))
PANEL(panel_pairs, __attribute__((target("avx2"))), uint32_t, __m256i, SPLAT_PAIR, PAIRS_ADD)
static PanelFn pairs(void) {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") ? panel_pairs : NULL;
}
#else
static PanelFn pairs(void) { return NULL; }
#endif

/* Signed 16 bits hold them: then so do 32 bits, modulo 2^32, the sum of two products. */
bool dot_fits_int16(DType t) {
  return t == DT_I16 || (dtype_bytes(t) == 1 && (dtype_is_int(t) || t == DT_I1));
}

static void store(const Call *c, const char *sums, int64_t n, char *out) {
  DType t = c->d->out;
  for (int64_t j = 0; j < n; j++) {
    int64_t v;
    if (c->width == W_64) {
      memcpy(&v, sums + j * 8, 8);
    } else {
      int32_t v32;
      memcpy(&v32, sums + j * 4, 4);
      v = v32;
    }
    elem_set_i64(t, out + j * dtype_bytes(t), t == DT_I1 ? v != 0 : v);
  }
}

static void tiles(void *arg, int64_t begin, int64_t end) {
  const Call *c = arg;
  const Dot *d = c->d;
  int64_t e = bytes_of(c), each = c->tiles_m * c->tiles_n, ob = dtype_bytes(d->out);
  PanelFn fn = c->width == W_64 ? panel_64 : c->width == W_32 ? panel_32 : pairs();
  _Alignas(64) char sums[ROWS * PANEL_BYTES];
  for (int64_t t = begin; t < end; t++) {
    int64_t b = t / each, i0 = t % each / c->tiles_n * TILE_ROWS, i1 = MIN(i0 + TILE_ROWS, d->m),
            q0 = t % c->tiles_n * TILE_PANELS, q1 = MIN(q0 + TILE_PANELS, c->panels);
    for (int64_t q = q0; q < q1; q++) {
      const char *y = c->rhs + (b * c->panels + q) * c->k * PANEL_BYTES;
      int64_t j0 = q * c->columns, n = MIN(c->columns, d->n - j0);
      for (int64_t i = i0; i < i1; i += ROWS) {
        int64_t rows = MIN(ROWS, i1 - i);
        fn(rows, c->k, c->lhs + (b * d->m + i) * c->k * e, y, sums);
        char *out = c->out + ((b * d->m + i) * d->n + j0) * ob;
        for (int64_t r = 0; r < rows; r++, out += d->n * ob) {
          if (ob == e) memcpy(out, sums + r * PANEL_BYTES, (size_t)(n * e));
          else store(c, sums + r * PANEL_BYTES, n, out);
        }
      }
    }
  }
}

Err *dot_int_run(void *state, const Op *op, void *const *in, void *const *out) {
  const Dot *d = state;
  if (d->b * d->m * d->n == 0) return NULL;
  if (d->k == 0) {
    memset(out[0], 0, (size_t)type_bytes(op_type(op)));
    return NULL;
  }
  Call c = {.d = d,
            .lt = op->operands[0]->type->dtype,
            .rt = op->operands[1]->type->dtype,
            .out = out[0]};
  /* A bool says whether the sum of 64 bits is 0; that of bools fits 32. */
  bool wide = d->out == DT_I1 ? c.lt != DT_I1 || c.rt != DT_I1 || d->k > INT32_MAX
                              : dtype_bytes(d->out) > 4;
  c.width = wide ? W_64 : pairs() && dot_fits_int16(c.lt) && dot_fits_int16(c.rt) ? W_PAIRS : W_32;
  c.k = c.width == W_PAIRS ? (d->k + 1) / 2 : d->k;
  int64_t e = bytes_of(&c);
  c.columns = PANEL_BYTES / e;
  c.panels = (d->n + c.columns - 1) / c.columns;
  c.tiles_m = (d->m + TILE_ROWS - 1) / TILE_ROWS;
  c.tiles_n = (c.panels + TILE_PANELS - 1) / TILE_PANELS;
  size_t lhs = (size_t)(d->b * d->m * c.k * e), rhs = (size_t)(d->b * c.panels * c.k) * PANEL_BYTES;
  char *packed = cpu_block_alloc(rhs + lhs);
  DotOperands o;
  bool ok = dot_operands(d, in, &o) && packed;
  if (ok) {
    c.rhs = packed;
    c.lhs = packed + rhs;
    for (int i = 0; i < 2; i++) c.in[i] = o.at[i];
    cpu_parallel(d->b * d->m, PACK_GRAIN / d->k + 1, pack_lhs, &c);
    cpu_parallel(d->b * c.panels, PACK_GRAIN / (d->k * c.columns) + 1, pack_rhs, &c);
    double tile =
        (double)MIN(TILE_ROWS, d->m) * (double)MIN(TILE_PANELS * c.columns, d->n) * (double)d->k;
    cpu_parallel(d->b * c.tiles_m * c.tiles_n, (int64_t)(GRAIN / tile) + 1, tiles, &c);
  }
  dot_operands_free(&o);
  cpu_block_free(packed, rhs + lhs);
  return ok ? NULL : op_err(op, ERR_EXHAUSTED, "no memory for widened operands");
}
