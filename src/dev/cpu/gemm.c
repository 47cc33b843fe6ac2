/* gemm: blocks, tiles and the order in which panels are packed. */
#include "dev/cpu/gemm.h"

#include "dev/cpu/cpu_priv.h"

#define BLOCK_K 320     /* two panels of such length stay in the innermost cache */
#define AHEAD_PANELS 64 /* rows of a tile / mr: as many panels stay in the second cache */
#define GROUP 256       /* columns, or rows, packed at a time by a task */
#define PART 8          /* panels packed ahead as one part */
#define TILE_FLOPS 5e7  /* a quarter of a millisecond, and more */
#define LEAST_FLOPS 1e6 /* of a tile */
#define TILES 16        /* wanted of one product */

const GemmKernels *gemm_kernels(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("f16c"))
    return NULL;
  return jit_vector_bits() >= 512 ? &gemm_avx512 : &gemm_avx2;
#else
  return NULL;
#endif
}

static int64_t parts_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

/* Rows of the panel, and where they begin. */
static int64_t rows_of(const Gemm *g, int64_t panel) { return g->thin + (panel < g->thick); }
static int64_t row_at(const Gemm *g, int64_t panel) {
  return panel * g->thin + MIN(panel, g->thick);
}

static int64_t width_of(const Gemm *g,
                        int64_t columns) { /* of a panel that holds so many columns */
  return columns > g->kern->lanes ? 2 * g->kern->lanes : g->kern->lanes;
}

void gemm_plan(Gemm *g, int64_t m, int64_t n, int64_t k, DType in, DType out, int64_t batch,
               GemmAhead ahead) {
  const GemmKernels *kern = gemm_kernels();
  *g = (Gemm){.kern = kern, .m = m, .n = n, .k = k, .in = in, .out = out};
  int64_t nr = 2 * kern->lanes;
  g->kc = parts_of(k, parts_of(k, BLOCK_K));
  g->panels = parts_of(m, kern->mr);
  g->thin = m / g->panels;
  g->thick = m % g->panels;
  g->a_ahead = ahead == GEMM_A || (ahead == GEMM_SMALLER && m <= n);
  double flops = 2.0 * (double)m * (double)n * (double)k;
  double tile = MIN(TILE_FLOPS, MAX(LEAST_FLOPS, flops / TILES));
  if (batch > 4) tile = MAX(tile, TILE_FLOPS);
  double want = MAX(1, flops / tile);
  /* The side packed ahead is cut only when long; the other one into as many pieces as wanted. */
  int64_t columns = parts_of(n, nr), many = g->a_ahead ? parts_of(g->panels, AHEAD_PANELS)
                                                       : parts_of(n, AHEAD_PANELS * kern->mr);
  int64_t others = MAX(1, (int64_t)(want / (double)many + 0.5));
  g->tile_m = parts_of(g->panels, g->a_ahead ? many : MIN(others, g->panels));
  g->tile_n = parts_of(columns, g->a_ahead ? MIN(others, columns) : many) * nr;
  g->tiles_m = parts_of(g->panels, g->tile_m);
  g->tiles_n = parts_of(n, g->tile_n);
}

int64_t gemm_ahead_floats(const Gemm *g) {
  return (g->a_ahead ? g->m : parts_of(g->n, g->kern->lanes) * g->kern->lanes) * g->k;
}

static int64_t ahead_panels(const Gemm *g) {
  return g->a_ahead ? g->panels : parts_of(g->n, 2 * g->kern->lanes);
}

int64_t gemm_ahead_parts(const Gemm *g) {
  return parts_of(g->k, g->kc) * parts_of(ahead_panels(g), PART);
}

static const void *at(const Gemm *g, const void *p, int64_t i) {
  return (const char *)p + i * (g->in == DT_F32 ? 4 : 2);
}

/* Panels lie one after the other in each block of k: the one that begins at row or column i at
 * i * (length of the block). */
static void pack_a(const Gemm *g, const GemmArgs *x, int64_t panel, int64_t p0, int64_t k,
                   float *out) {
  int h = (int)rows_of(g, panel);
  gemm_pack(g->in, at(g, x->a, row_at(g, panel) * x->a_row + p0 * x->a_k), x->a_row, x->a_k, h, h,
            k, out);
}

static void pack_b(const Gemm *g, const GemmArgs *x, int64_t column, int64_t p0, int64_t k,
                   float *out) {
  int64_t w = MIN(2 * g->kern->lanes, g->n - column);
  gemm_pack(g->in, at(g, x->b, column * x->b_col + p0 * x->b_k), x->b_col, x->b_k, (int)w,
            (int)width_of(g, w), k, out);
}

void gemm_ahead(const Gemm *g, const GemmArgs *x, float *ahead, int64_t begin, int64_t end) {
  int64_t parts = parts_of(ahead_panels(g), PART), rows = gemm_ahead_floats(g) / g->k;
  for (int64_t t = begin; t < end; t++) {
    int64_t p0 = t / parts * g->kc, k = MIN(g->kc, g->k - p0), first = t % parts * PART;
    float *block = ahead + p0 * rows;
    for (int64_t i = first; i < MIN(first + PART, ahead_panels(g)); i++) {
      if (g->a_ahead) pack_a(g, x, i, p0, k, block + row_at(g, i) * k);
      else pack_b(g, x, i * 2 * g->kern->lanes, p0, k, block + i * 2 * g->kern->lanes * k);
    }
  }
}

int64_t gemm_scratch_floats(const Gemm *g) {
  int64_t c = g->out == DT_F32 ? 0 : g->tile_m * g->kern->mr * g->tile_n;
  return c + (GROUP + 2 * g->kern->lanes) * g->kc;
}

/* One panel of a times one of b. c_row: of `c`, whose element (0, 0) is theirs. */
static void multiply(const Gemm *g, int64_t rows, int64_t columns, int64_t k, const float *a,
                     const float *b, float *c, int64_t c_row, bool add) {
  int64_t lanes = g->kern->lanes, width = width_of(g, columns);
  GemmKernelFn fn = g->kern->fn[rows - 1][width / lanes - 1];
  if (columns == width) {
    fn(k, a, b, c, c_row, add);
    return;
  }
  float whole[GEMM_MAX_MR * 32];
  fn(k, a, b, whole, width, false);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      c[i * c_row + j] = add ? c[i * c_row + j] + whole[i * width + j] : whole[i * width + j];
}

/* What the next group will be packed from, asked for line by line while this one is multiplied. */
typedef struct Coming {
  const char *p; /* next line */
  int64_t line, lines, run, runs, stride;
  int64_t each; /* lines for each pair of panels */
} Coming;

static Coming coming(const Gemm *g, const void *p, int64_t count, int64_t step, int64_t k,
                     int64_t k_step, int64_t calls) {
  int64_t e = g->in == DT_F32 ? 4 : 2;
  bool across = step == 1; /* runs across the panel, else along k */
  if (count <= 0 || (!across && k_step != 1)) return (Coming){0};
  Coming c = {.p = p,
              .lines = parts_of((across ? count : k) * e, 64),
              .runs = across ? k : count,
              .stride = (across ? k_step : step) * e};
  c.each = parts_of(c.lines * c.runs, MAX(calls, 1));
  return c;
}

static void ask(Coming *c) {
  for (int64_t i = 0; i < c->each && c->run < c->runs; i++) {
    __builtin_prefetch(c->p + c->line * 64, 0, 2);
    if (++c->line < c->lines) continue;
    c->line = 0;
    c->run++;
    c->p += c->stride;
  }
}

typedef struct Tile {
  int64_t i0, i1; /* panels */
  int64_t r0;     /* first row */
  int64_t j0, j1; /* columns */
  int64_t p0, k;
  const float *ahead; /* this block of k */
  float *c;           /* element (r0, j0) */
  int64_t c_row;
  bool add;
} Tile;

static void by_columns(const Gemm *g, const GemmArgs *x, const Tile *t, float *group) {
  int64_t nr = 2 * g->kern->lanes;
  for (int64_t j0 = t->j0; j0 < t->j1; j0 += GROUP) {
    int64_t j1 = MIN(j0 + GROUP, t->j1);
    for (int64_t j = j0; j < j1; j += nr) pack_b(g, x, j, t->p0, t->k, group + (j - j0) * t->k);
    Coming next = coming(g, at(g, x->b, j1 * x->b_col + t->p0 * x->b_k), MIN(GROUP, t->j1 - j1),
                         x->b_col, t->k, x->b_k, (j1 - j0) / nr * (t->i1 - t->i0));
    for (int64_t j = j0; j < j1; j += nr) {
      int64_t row = t->r0;
      for (int64_t i = t->i0; i < t->i1; i++) {
        int64_t rows = rows_of(g, i);
        ask(&next);
        multiply(g, rows, MIN(nr, j1 - j), t->k, t->ahead + row * t->k, group + (j - j0) * t->k,
                 t->c + (row - t->r0) * t->c_row + (j - t->j0), t->c_row, t->add);
        row += rows;
      }
    }
  }
}

static void by_rows(const Gemm *g, const GemmArgs *x, const Tile *t, float *group) {
  int64_t nr = 2 * g->kern->lanes, step = MAX(1, GROUP / g->kern->mr);
  for (int64_t i0 = t->i0; i0 < t->i1; i0 += step) {
    int64_t i1 = MIN(i0 + step, t->i1), first = row_at(g, i0);
    for (int64_t i = i0; i < i1; i++)
      pack_a(g, x, i, t->p0, t->k, group + (row_at(g, i) - first) * t->k);
    int64_t after = row_at(g, i1), last = row_at(g, MIN(i1 + step, t->i1));
    Coming next = coming(g, at(g, x->a, after * x->a_row + t->p0 * x->a_k), last - after, x->a_row,
                         t->k, x->a_k, (t->j1 - t->j0) / nr * (i1 - i0));
    for (int64_t j = t->j0; j < t->j1; j += nr) {
      int64_t row = first;
      for (int64_t i = i0; i < i1; i++) {
        int64_t rows = rows_of(g, i);
        ask(&next);
        multiply(g, rows, MIN(nr, t->j1 - j), t->k, group + (row - first) * t->k,
                 t->ahead + j * t->k, t->c + (row - t->r0) * t->c_row + (j - t->j0), t->c_row,
                 t->add);
        row += rows;
      }
    }
  }
}

void gemm_tile(const Gemm *g, const GemmArgs *x, const float *ahead, int64_t tile, float *scratch) {
  Tile t = {.i0 = tile / g->tiles_n * g->tile_m, .j0 = tile % g->tiles_n * g->tile_n};
  t.i1 = MIN(t.i0 + g->tile_m, g->panels);
  t.j1 = MIN(t.j0 + g->tile_n, g->n);
  t.r0 = row_at(g, t.i0);
  float *group = scratch;
  bool narrow = g->out != DT_F32;
  t.c_row = narrow ? t.j1 - t.j0 : x->c_row;
  t.c = narrow ? scratch + (GROUP + 2 * g->kern->lanes) * g->kc
               : (float *)x->c + t.r0 * x->c_row + t.j0;
  int64_t rows = gemm_ahead_floats(g) / g->k;
  for (t.p0 = 0; t.p0 < g->k; t.p0 += g->kc, t.add = true) {
    t.k = MIN(g->kc, g->k - t.p0);
    t.ahead = ahead + t.p0 * rows;
    if (g->a_ahead) by_columns(g, x, &t, group);
    else by_rows(g, x, &t, group);
  }
  for (int64_t i = t.r0; narrow && i < row_at(g, t.i1); i++)
    cpu_from_f32(g->out, t.c + (i - t.r0) * t.c_row, (char *)x->c + (i * x->c_row + t.j0) * 2,
                 t.c_row);
}
