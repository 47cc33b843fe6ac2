/* gemm: blocks, tiles and the order in which panels are packed. */
#include "dev/cpu/dot/gemm.h"

#include "dev/cpu/kernel/clones.h"
#include "dev/cpu/kernel/kernel.h"

#define GROUP 32                       /* rows packed at a time by a task, or a panel of columns; */
#define GROUP_BIG 72                   /* on a big core: lines that rows share come once */
#define SHORT 64                       /* block of k that results are written row by row with: */
#define GROUP_SHORT 128                /* so many with that */
#define PART 8                         /* panels packed ahead as one part */
#define TILE_FLOPS 5e7                 /* a quarter of a millisecond, and more */
#define LEAST_FLOPS 1e6                /* of a tile */
#define COLUMNS 128                    /* of a tile that takes them where they are */
#define TILES 16                       /* wanted of one product */
#define TILES_BOTH 64                  /* of one whose sides are both packed before */
#define BOTH_FLOATS ((int64_t)4 << 20) /* of the other side at a time */
#define FEW_PANELS 5                   /* of rows: with so many no longer than */
#define FEW_K 256                      /* are blocks of k */

const GemmKernels *gemm_kernels(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c()) return NULL;
  return cpu_vector_bits() >= 512 ? &gemm_avx512 : &gemm_avx2;
#else
  return NULL;
#endif
}

const GemmKernels *gemm_quads(void) {
#if defined(__x86_64__) && !defined(WEFT_EMULATE_AVX512)
  const GemmKernels *kern = gemm_kernels();
  return kern && kern->lanes == gemm_avx512_vnni.lanes && __builtin_cpu_supports("avx512vnni")
             ? &gemm_avx512_vnni
             : NULL;
#else
  return NULL;
#endif
}

const GemmKernels *gemm_pairs(void) {
#if defined(WEFT_EMULATE_AVX512)
  return &gemm_avx512_bf16;
#elif defined(__x86_64__)
  const GemmKernels *kern = gemm_kernels();
  return kern && kern->lanes == gemm_avx512_bf16.lanes && __builtin_cpu_supports("avx512bf16")
             ? &gemm_avx512_bf16
             : NULL;
#else
  return NULL;
#endif
}

static const GemmKernels *gemm_int16(void) {
#if defined(__x86_64__)
  return &gemm_avx2_int; /* where gemm_kernels has any */
#else
  return NULL;
#endif
}

static int64_t parts_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

/* Steps of k in a block. Long ones write results less often; where columns pass by few panels of rows,
 * these must be multiplied as fast as they come, and the first cache holds a panel of short ones. */
static int64_t block_of(int64_t panels, int64_t k) {
  int64_t most = panels <= FEW_PANELS ? FEW_K : GEMM_MAX_K;
  return parts_of(parts_of(k, parts_of(k, most)), 16) * 16;
}

/* Panels of rows, a block of k long, that stay in the second cache while columns pass by: they take
 * five eighths of it, what passes (columns being packed and asked for, the results) the rest. */
static int64_t near_panels(const Gemm *g) {
  int64_t panel = g->kern->mr * g->kc * (int64_t)sizeof(float);
  return MAX(8, cpu_second_cache() * 5 / 8 / panel);
}

/* Rows of the panel, and where they begin. */
static int64_t rows_of(const Gemm *g, int64_t panel) { return g->thin + (panel < g->thick); }
static int64_t row_at(const Gemm *g, int64_t panel) {
  return panel * g->thin + MIN(panel, g->thick);
}

/* Of a panel that holds so many columns. */
static int64_t width_of(const Gemm *g, int64_t columns) {
  return columns > g->kern->lanes ? 2 * g->kern->lanes : g->kern->lanes;
}

static const GemmKernels *kernels_for(GemmTypes t) {
  const GemmKernels *several = NULL;
  if (t.a == DT_BF16) several = gemm_pairs();
  else if (dtype_bytes(t.a) == 1 && t.b == DT_I8) several = gemm_quads();
  if (!several && dtype_is_int(t.a)) several = gemm_int16();
  return several ? several : gemm_kernels();
}

void gemm_plan(Gemm *g, int64_t m, int64_t n, int64_t k, GemmTypes t, int64_t batch,
               GemmAhead ahead, bool runs) {
  const GemmKernels *kern = kernels_for(t);
  *g = (Gemm){.kern = kern, .m = m, .n = n, .k_in = k, .t = t};
  g->per = kern->per;
  g->k = k = parts_of(k, g->per);
  int64_t nr = 2 * kern->lanes;
  g->panels = parts_of(m, kern->mr);
  g->kc = block_of(g->panels, k);
  g->thin = m / g->panels;
  g->thick = m % g->panels;
  g->near = near_panels(g);
  g->a_ahead = ahead == GEMM_A || (ahead == GEMM_SMALLER && m <= n);
  double flops = 2.0 * (double)m * (double)n * (double)k;
  /* The side packed ahead is cut only when long; the other one into as many pieces as wanted. */
  int64_t columns = parts_of(n, nr),
          many = g->a_ahead ? parts_of(g->panels, g->near) : parts_of(n, g->near * kern->mr);
  g->both = many > 1;
  g->take = runs && kern->take[0] && kern->takes == t.b && g->k_in % g->per == 0 && k > SHORT &&
            (g->a_ahead || (g->both && ahead == GEMM_SMALLER && m * k <= BOTH_FLOATS));
  g->hurries = g->take && g->panels <= FEW_PANELS && cpu_big_core();
  double tile = g->both ? MAX(TILE_FLOPS, flops / TILES_BOTH) : TILE_FLOPS;
  if (g->take) {
    g->a_ahead = true;
    g->both = false;
    tile = MAX(tile, flops / (double)n * COLUMNS / (double)parts_of(g->panels, g->near));
  }
  tile = MIN(tile, MAX(LEAST_FLOPS, flops / TILES));
  if (batch > 4) tile = MAX(tile, TILE_FLOPS);
  double want = MAX(1, flops / tile);
  bool by_m = g->a_ahead || g->both;
  if (by_m) many = parts_of(g->panels, g->near);
  int64_t others = MAX(1, (int64_t)(want / (double)many + 0.5));
  g->tile_m = parts_of(g->panels, by_m ? many : MIN(others, g->panels));
  g->tile_n = parts_of(columns, by_m ? MIN(others, columns) : many) * nr;
  g->tiles_m = parts_of(g->panels, g->tile_m);
  g->tiles_n = parts_of(n, g->tile_n);
  int64_t pieces = g->a_ahead ? g->tiles_n : g->tiles_m,
          floats = (g->a_ahead ? g->tile_n : g->tile_m * kern->mr) * k;
  g->at_once = g->both ? MIN(pieces, MAX(1, BOTH_FLOATS / floats)) : pieces;
}

/* ---- packing ---- */

static const void *at(DType t, const void *p, int64_t i) {
  return (const char *)p + i * dtype_bytes(t);
}

/* What a row or column takes in packed form, of k floats: before each block of a column there may be
 * one more. */
static int64_t depth(const Gemm *g, bool a, int64_t k) {
  return a || !g->kern->head ? k : k + parts_of(k, g->kc);
}

/* From `in` on, the first of floats [p0, p0 + k) of k. */
static void pack_side(const Gemm *g, bool a, const void *in, int64_t step, int64_t k_step,
                      int64_t held, int64_t width, int64_t p0, int64_t k, int64_t panels,
                      float *out) {
  int64_t panel = width * depth(g, a, k), elements = MIN(g->per * k, g->k_in - g->per * p0);
  int w = (int)held, all = (int)width;
  DType t = a ? g->t.a : g->t.b;
  bool head = !a && g->kern->head;
  float *to = out + (head ? width : 0);
  if (g->per == 1) gemm_pack(t, in, step, k_step, w, all, k, panels, panel, to);
  else if (g->per == 2)
    gemm_pack_pairs(g->kern, t, in, step, k_step, w, all, elements, panels, panel, to);
  else gemm_pack_quads(a && t == DT_I8, in, step, k_step, w, all, elements, panels, panel, to);
  for (int64_t q = 0; head && q < panels; q++)
    g->kern->head(g->t.a == DT_I8, width, k, out + q * panel);
}

/* The rows or columns before a panel, in packed form: those of the last panel of b are filled up to
 * whole vectors. */
static int64_t place_of(const Gemm *g, bool a, int64_t panel) {
  if (a) return row_at(g, panel);
  return MIN(panel * 2 * g->kern->lanes, parts_of(g->n, g->kern->lanes) * g->kern->lanes);
}

/* Panels [first, last) lie one after the other. */
static void pack_panels(const Gemm *g, const GemmArgs *x, bool a, int64_t first, int64_t last,
                        int64_t p0, int64_t k, float *out) {
  while (first < last) { /* runs of equal ones */
    int64_t i = first, row, width, held;
    if (a) {
      row = row_at(g, first);
      held = width = rows_of(g, first);
      while (i < last && rows_of(g, i) == width) i++;
      if (x->gather) x->gather(x->of, row, (int)width, i - first, p0, k, out);
      else
        pack_side(g, a, at(g->t.a, x->a, row * x->a_row + p0 * g->per * x->a_k), x->a_row, x->a_k,
                  held, width, p0, k, i - first, out);
    } else {
      row = first * 2 * g->kern->lanes;
      held = MIN(2 * g->kern->lanes, g->n - row);
      width = width_of(g, held);
      while (i < last && MIN(2 * g->kern->lanes, g->n - i * 2 * g->kern->lanes) == held) i++;
      pack_side(g, a, at(g->t.b, x->b, row * x->b_col + p0 * g->per * x->b_k), x->b_col, x->b_k,
                held, width, p0, k, i - first, out);
    }
    out += (i - first) * width * depth(g, a, k);
    first = i;
  }
}

/* A side, or some panels of it, packed in blocks of k: panel i of a block at (rows before it) *
 * (length of the block). */
typedef struct Packed {
  bool a;
  int64_t first, last; /* panels */
  int64_t base, rows;  /* place of the first; of all */
} Packed;

static Packed packed(const Gemm *g, bool a, int64_t first, int64_t last) {
  int64_t base = place_of(g, a, first);
  return (Packed){a, first, last, base, place_of(g, a, last) - base};
}

static Packed packed_ahead(const Gemm *g) {
  return packed(g, g->a_ahead, 0, g->a_ahead ? g->panels : parts_of(g->n, 2 * g->kern->lanes));
}

static Packed packed_other(const Gemm *g, int64_t round) {
  int64_t each = g->a_ahead ? g->tile_n / (2 * g->kern->lanes) : g->tile_m,
          all = g->a_ahead ? parts_of(g->n, 2 * g->kern->lanes) : g->panels;
  return packed(g, !g->a_ahead, MIN(all, round * g->at_once * each),
                MIN(all, (round + 1) * g->at_once * each));
}

static int64_t parts(const Gemm *g, const Packed *s) {
  return parts_of(g->k, g->kc) * parts_of(s->last - s->first, PART);
}

static void pack_parts(const Gemm *g, const GemmArgs *x, const Packed *s, float *out, int64_t begin,
                       int64_t end) {
  int64_t each = parts_of(s->last - s->first, PART);
  for (int64_t t = begin; t < end; t++) {
    int64_t p0 = t / each * g->kc, k = MIN(g->kc, g->k - p0), first = s->first + t % each * PART;
    pack_panels(g, x, s->a, first, MIN(first + PART, s->last), p0, k,
                out + depth(g, s->a, p0) * s->rows +
                    (place_of(g, s->a, first) - s->base) * depth(g, s->a, k));
  }
}

int64_t gemm_ahead_floats(const Gemm *g) {
  return packed_ahead(g).rows * depth(g, g->a_ahead, g->k);
}

int64_t gemm_ahead_parts(const Gemm *g) {
  Packed s = packed_ahead(g);
  return parts(g, &s);
}

void gemm_ahead(const Gemm *g, const GemmArgs *x, float *ahead, int64_t begin, int64_t end) {
  Packed s = packed_ahead(g);
  pack_parts(g, x, &s, ahead, begin, end);
}

int64_t gemm_rounds(const Gemm *g) {
  return parts_of(g->a_ahead ? g->tiles_n : g->tiles_m, g->at_once);
}

int64_t gemm_round_tiles(const Gemm *g) {
  return g->at_once * (g->a_ahead ? g->tiles_m : g->tiles_n);
}

int64_t gemm_other_floats(const Gemm *g) {
  return g->both ? packed_other(g, 0).rows * depth(g, !g->a_ahead, g->k) : 0;
}

int64_t gemm_other_parts(const Gemm *g, int64_t round) {
  Packed s = packed_other(g, round);
  return g->both ? parts(g, &s) : 0;
}

void gemm_other(const Gemm *g, const GemmArgs *x, int64_t round, float *other, int64_t begin,
                int64_t end) {
  Packed s = packed_other(g, round);
  pack_parts(g, x, &s, other, begin, end);
}

int64_t gemm_scratch_floats(const Gemm *g) {
  int64_t c = g->tile_m * g->kern->mr * g->tile_n; /* of results, for those that go elsewhere */
  return c + (g->both ? 0 : (GROUP_SHORT + 2 * g->kern->lanes) * depth(g, !g->a_ahead, g->kc));
}

/* ---- multiplying ---- */

void gemm_multiply(const GemmKernels *kern, int64_t rows, int64_t columns, int64_t k,
                   const float *a, const float *b, float *c, int64_t c_row, bool add,
                   GemmComing *next) {
  int64_t lanes = kern->lanes, width = columns > lanes ? 2 * lanes : lanes;
  GemmKernelFn fn = kern->fn[rows - 1][width / lanes - 1];
  if (columns == width) {
    fn(k, a, b, c, c_row, add, next);
    return;
  }
  float whole[GEMM_MAX_MR * 32] = {0};
  size_t bytes = sizeof *c * (size_t)columns;
  for (int64_t i = 0; add && i < rows; i++) memcpy(whole + i * width, c + i * c_row, bytes);
  fn(k, a, b, whole, width, add, next);
  for (int64_t i = 0; i < rows; i++) memcpy(c + i * c_row, whole + i * width, bytes);
}

typedef struct Tile {
  int64_t i0, i1; /* panels */
  int64_t r0;     /* first row */
  int64_t j0, j1; /* columns */
  int64_t p0, k;
  const float *ahead; /* of this tile, this block of k */
  float *c;           /* element (r0, j0), or with `passing` of each pair of panels */
  int64_t c_row;
  bool add, passing;
  char *narrow; /* c's place in bf16 or f16, in the last block of k; NULL: not now */
  int64_t narrow_row;
} Tile;

/* Two vectors of columns where they are, far bytes from row to row, and where to pack them. */
typedef struct Taken {
  const char *from;
  int64_t far;
  float *panel;
} Taken;

/* One panel of a, whose first row is `row`, times one of b from column j on, or those taken. */
static void pair(const Gemm *g, const Tile *t, int64_t row, int64_t rows, int64_t j,
                 int64_t columns, const float *a, const float *b, const Taken *taken,
                 GemmComing *next) {
  const GemmKernels *kern = g->kern;
  int64_t i = row - t->r0, vectors = width_of(g, columns) / kern->lanes;
  char *out = t->narrow ? t->narrow + (i * t->narrow_row + j - t->j0) * 2 : NULL;
  if (t->passing && g->t.c == DT_BF16 && kern->narrows[0][0] && columns == vectors * kern->lanes) {
    float *c = (float *)(void *)out;
    if (taken)
      kern->take_narrow[rows - 1](t->k, a, taken->from, taken->far, taken->panel, c, t->narrow_row,
                                  false, next);
    else kern->narrows[rows - 1][vectors - 1](t->k, a, b, c, t->narrow_row, false, next);
    return;
  }
  float *c = t->passing ? t->c : t->c + i * t->c_row + (j - t->j0);
  if (taken)
    kern->take[rows - 1](t->k, a, taken->from, taken->far, taken->panel, c, t->c_row, t->add, next);
  else gemm_multiply(kern, rows, columns, t->k, a, b, c, t->c_row, t->add, next);
  if (!t->narrow) return;
  if (kern->narrow && g->t.c == DT_BF16)
    kern->narrow(c, t->c_row, rows, columns, (uint16_t *)out, t->narrow_row);
  else gemm_narrow(g->t.c, c, t->c_row, rows, columns, out, t->narrow_row);
}

/* Panels [i0, i1) of a times columns [j0, j1): `a` and `b` hold them packed. Column by column, so
 * that a panel of b stays in the first cache; row by row where k is so short that writing the
 * results is most of the work. */
static void block(const Gemm *g, const Tile *t, int64_t i0, int64_t i1, int64_t j0, int64_t j1,
                  const float *a, const float *b, GemmComing *next) {
  int64_t nr = 2 * g->kern->lanes, first = row_at(g, i0), deep = depth(g, false, t->k);
  if (t->k <= SHORT) {
    for (int64_t i = i0; i < i1; i++)
      for (int64_t j = j0; j < j1; j += nr) {
        int64_t row = row_at(g, i);
        pair(g, t, row, rows_of(g, i), j, MIN(nr, j1 - j), a + (row - first) * t->k,
             b + (j - j0) * deep, NULL, next);
      }
    return;
  }
  for (int64_t j = j0; j < j1; j += nr) {
    int64_t row = first;
    for (int64_t i = i0; i < i1; i++) {
      int64_t rows = rows_of(g, i);
      pair(g, t, row, rows, j, MIN(nr, j1 - j), a + (row - first) * t->k, b + (j - j0) * deep, NULL,
           next);
      row += rows;
    }
  }
}

/* What is packed after rows or columns [.., end) of a tile: a group of those that follow, or the first
 * ones of the next block of k. */
static GemmComing after(const Gemm *g, const GemmArgs *x, const Tile *t, bool a, int64_t end,
                        int64_t group, int64_t calls) {
  int64_t first = a ? t->r0 : t->j0, last = a ? row_at(g, t->i1) : t->j1,
          step = a ? x->a_row : x->b_col, k_step = a ? x->a_k : x->b_k, p0 = t->p0, k = t->k;
  if (a && x->gather) return (GemmComing){0};
  if (end == last) {
    end = first;
    p0 += k;
    k = MIN(k, g->k - p0);
  }
  DType type = a ? g->t.a : g->t.b;
  const char *p = at(type, a ? x->a : x->b, end * step + p0 * g->per * k_step);
  calls *= t->k / GEMM_ASK;
  return gemm_coming(type, p, k > 0 ? MIN(group, last - end) : 0, step, k * g->per, k_step, calls);
}

/* Columns that are runs are read by the first panel of rows, which packs them for the others. */
static void by_columns(const Gemm *g, const GemmArgs *x, const Tile *t, float *group) {
  int64_t nr = 2 * g->kern->lanes, step = t->k <= SHORT ? GROUP_SHORT : nr;
  for (int64_t j0 = t->j0; j0 < t->j1; j0 += step) {
    int64_t j1 = MIN(j0 + step, t->j1), i0 = t->i0, rows = rows_of(g, i0);
    GemmComing next = {0};
    if (!g->hurries) next = after(g, x, t, false, j1, step, parts_of(j1 - j0, nr) * (t->i1 - i0));
    const float *a = t->ahead;
    if (g->take && j1 - j0 == nr) {
      Taken taken = {at(g->t.b, x->b, j0 + t->p0 * g->per * x->b_k), x->b_k * dtype_bytes(g->t.b),
                     group};
      pair(g, t, t->r0, rows, j0, nr, a, NULL, &taken, &next);
      a += rows * t->k;
      i0++;
    } else pack_panels(g, x, false, j0 / nr, parts_of(j1, nr), t->p0, t->k, group);
    block(g, t, i0, t->i1, j0, j1, a, group, &next);
  }
}

static void by_rows(const Gemm *g, const GemmArgs *x, const Tile *t, float *group) {
  int64_t nr = 2 * g->kern->lanes,
          rows = t->k <= SHORT    ? GROUP_SHORT
                 : cpu_big_core() ? GROUP_BIG
                                  : GROUP,
          step = MAX(1, rows / g->kern->mr);
  for (int64_t i0 = t->i0; i0 < t->i1; i0 += step) {
    int64_t i1 = MIN(i0 + step, t->i1);
    pack_panels(g, x, true, i0, i1, t->p0, t->k, group);
    GemmComing next = after(g, x, t, true, row_at(g, i1), step * g->kern->mr,
                            parts_of(t->j1 - t->j0, nr) * (i1 - i0));
    block(g, t, i0, i1, t->j0, t->j1, group, t->ahead, &next);
  }
}

/* Both sides are packed: column by column, the next one's panel is asked for meanwhile. */
static void by_blocks(const Gemm *g, const Tile *t, const float *a, const float *b) {
  int64_t nr = 2 * g->kern->lanes, deep = depth(g, false, t->k);
  for (int64_t i0 = t->i0; i0 < t->i1; i0 += g->near) {
    int64_t i1 = MIN(i0 + g->near, t->i1);
    if (t->k <= SHORT) {
      block(g, t, i0, i1, t->j0, t->j1, a + (row_at(g, i0) - t->r0) * t->k, b, &(GemmComing){0});
      continue;
    }
    for (int64_t j = t->j0; j < t->j1; j += nr) {
      const float *panel = b + (j - t->j0) * deep;
      GemmComing next = {.p = (const char *)(panel + nr * deep), .runs = j + nr < t->j1};
      next.lines = parts_of(nr * deep * 4, 64);
      next.each = parts_of(next.lines, MAX(1, (i1 - i0) * (t->k / GEMM_ASK)));
      block(g, t, i0, i1, j, MIN(j + nr, t->j1), a + (row_at(g, i0) - t->r0) * t->k, panel, &next);
    }
  }
}

void gemm_tile(const Gemm *g, const GemmArgs *x, const float *ahead, const float *other,
               int64_t tile, float *scratch) {
  int64_t many = g->a_ahead ? g->tiles_m : g->tiles_n, i = tile % many, j = tile / many;
  Tile t = {.add = x->add,
            .i0 = (g->a_ahead ? i : j) * g->tile_m,
            .j0 = (g->a_ahead ? j : i) * g->tile_n};
  t.i1 = MIN(t.i0 + g->tile_m, g->panels);
  t.j1 = MIN(t.j0 + g->tile_n, g->n);
  t.r0 = row_at(g, t.i0);
  bool narrow = dtype_bytes(g->t.c) == 2, later = narrow || x->c_at;
  char *out = (char *)x->c + (t.r0 * x->c_row + t.j0) * 2;
  t.passing = narrow && g->k <= g->kc;
  t.c_row = t.passing ? 2 * g->kern->lanes : later ? t.j1 - t.j0 : x->c_row;
  t.narrow_row = x->c_row;
  t.c = later ? scratch + gemm_scratch_floats(g) - g->tile_m * g->kern->mr * g->tile_n
              : (float *)x->c + t.r0 * x->c_row + t.j0;
  Packed s = packed_ahead(g), o = packed_other(g, j / g->at_once);
  int64_t here = g->a_ahead ? t.r0 : t.j0, there = (g->a_ahead ? t.j0 : t.r0) - o.base;
  for (t.p0 = 0; t.p0 < g->k; t.p0 += g->kc, t.add = true) {
    t.k = MIN(g->kc, g->k - t.p0);
    t.narrow = narrow && t.p0 + t.k == g->k ? out : NULL;
    t.ahead = ahead + depth(g, s.a, t.p0) * s.rows + here * depth(g, s.a, t.k);
    const float *second =
        g->both ? other + depth(g, o.a, t.p0) * o.rows + there * depth(g, o.a, t.k) : NULL;
    if (g->both) by_blocks(g, &t, g->a_ahead ? t.ahead : second, g->a_ahead ? second : t.ahead);
    else if (g->a_ahead) by_columns(g, x, &t, scratch);
    else by_rows(g, x, &t, scratch);
  }
  for (int64_t r = t.r0; x->c_at && r < row_at(g, t.i1); r++)
    memcpy(x->c_at(x->of, r) + t.j0, t.c + (r - t.r0) * t.c_row, sizeof(float) * (size_t)t.c_row);
}
