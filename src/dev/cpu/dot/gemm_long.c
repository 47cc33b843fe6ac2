/* Products with few results that are sums of many terms (gradients of weights over large batches): k
 * is cut into parts and rows into tiles whose results stay in the second cache; a task is a part of
 * a tile and has results of its own. Both operands are read where they are, a block of k at a time
 * that stays in the second cache too, or a's block is gathered; on big cores both are packed where
 * there are columns enough. Parts are added up in order, in f64. */
#include "dev/cpu/dot/gemm.h"

#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"

#define BLOCK 128      /* of k; */
#define BLOCK_LONG 512 /* with AVX-512 of so few rows and columns: */
#define SIDES_LONG 128
#define BLOCK_PACKED 512 /* of packed operands; */
#define BLOCK_FEW 256    /* of so few panels of rows: a panel of columns stays in the first cache */
#define FEW_PANELS 8
#define LEAST_PACKED 96 /* columns: with fewer the copies cost what they save (Granite Rapids); */
#define LEAST_PACKED_ROWS 24
#define LEAST_PART 1024 /* of k; */
#define SHORT_PART 256  /* where there would be few of them */
#define FEW_PARTS 4
#define PARTS 64                       /* at most */
#define PART_FLOATS ((int64_t)4 << 20) /* of all parts, about */
#define TILE 65536                     /* results */
#define GATHERED 512                   /* rows of a tile that are gathered */

static int64_t parts_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

typedef struct Call {
  const GemmLong *g;
  const GemmKernels *kern;
  bool packed;
  int64_t block, blocks; /* of k; of a piece */
  int64_t part, parts;   /* blocks of a part of all pieces' */
  int64_t tile, tiles;   /* rows */
  float *sums;           /* [part][m][n] */
} Call;

/* c (+)= a b, over k <= x->block, rows of c g->n apart. */
static void block(const Call *x, GemmAt at, int64_t m, const float *a, const float *b, float *c,
                  int64_t k, bool add, GemmComing next[2]) {
  const GemmKernels *kern = x->kern;
  int64_t n = x->g->n, wide = 2 * kern->lanes, panels = parts_of(m, kern->mr), thin = m / panels,
          thick = m % panels;
  for (int64_t j = 0; j < n; j += wide) {
    int64_t w = MIN(wide, n - j);
    const GemmPanelFn *fn = kern->panel[w > kern->lanes];
    const float *p = a;
    float *z = c + j;
    for (int64_t i = 0, rows; i < panels; i++, p += rows * at.a_row, z += rows * n) {
      rows = thin + (i < thick);
      gemm_ask(&next[0]);
      gemm_ask(&next[1]);
      fn[rows - 1](&at, k, p, b + j, z, w, add);
    }
  }
}

/* The same, packed into `room`. */
static void block_packed(const Call *x, const GemmAt *at, int64_t m, const float *a, const float *b,
                         float *c, int64_t k, bool add, GemmComing next[2], float *room) {
  const GemmKernels *kern = x->kern;
  int64_t n = x->g->n, wide = 2 * kern->lanes, panels = parts_of(m, kern->mr), thin = m / panels,
          thick = m % panels, more = thick * (thin + 1);
  float *panel = room + m * k;
  gemm_pack_rows(a, at->a_row, at->a_k, thin + 1, thick, k, room);
  gemm_pack_rows(a + more * at->a_row, at->a_row, at->a_k, thin, panels - thick, k,
                 room + more * k);
  for (int64_t j = 0; j < n; j += wide) {
    int64_t w = MIN(wide, n - j);
    const float *p = room;
    float *z = c + j;
    const float *y = b + j * x->g->b_col;
    bool take = x->g->b_col == 1 && w == wide;
    if (!take)
      gemm_pack(DT_F32, y, x->g->b_col, at->b_k, (int)w, w > kern->lanes ? (int)wide : kern->lanes,
                k, 1, 0, panel);
    for (int64_t i = 0, rows; i < panels; i++, p += rows * k, z += rows * n) {
      rows = thin + (i < thick);
      gemm_ask(&next[0]);
      if (i == 0 && take)
        kern->take[rows - 1](k, p, (const char *)y, at->b_k * (int64_t)sizeof *y, panel, z, n, add,
                             &next[1]);
      else gemm_multiply(kern, rows, w, k, p, panel, z, n, add, &next[1]);
    }
  }
}

/* Rows from `row` on and all columns, in a block of k. */
typedef struct Place {
  const float *a, *b;
  int64_t piece, p, k;
} Place;

static Place place_of(const Call *c, int64_t row, int64_t block) {
  const GemmLong *g = c->g;
  Place at = {.piece = block / c->blocks, .p = block % c->blocks * c->block};
  at.k = MIN(c->block, g->k - at.p);
  at.a = g->a + at.piece * g->a_piece + row * g->a_row + at.p * g->a_k;
  at.b = g->b + at.piece * g->b_piece + at.p * g->b_k;
  return at;
}

static void tasks(void *arg, int64_t begin, int64_t end) { /* (part, tile) */
  const Call *c = arg;
  const GemmLong *g = c->g;
  int64_t pitch = c->tile + 16; /* not all rows in the same places of the first cache */
  int64_t gathered = g->gather ? c->block * pitch : 0,
          packed = c->packed ? c->block * (c->tile + 2 * c->kern->lanes) : 0;
  float *own = cpu_scratch(sizeof(float) * (size_t)(gathered + packed));
  GemmAt at = {.a_row = g->gather ? 1 : g->a_row,
               .a_k = g->gather ? pitch : g->a_k,
               .b_k = g->b_k,
               .c_row = g->n};
  for (int64_t t = begin; t < end; t++) {
    int64_t first = t / c->tiles * c->part, last = MIN(first + c->part, g->pieces * c->blocks);
    int64_t row = t % c->tiles * c->tile, m = MIN(c->tile, g->m - row),
            calls = parts_of(m, c->kern->mr) * parts_of(g->n, 2 * c->kern->lanes);
    float *sums = c->sums + (t / c->tiles * g->m + row) * g->n;
    for (int64_t i = first; i < last; i++) {
      Place x = place_of(c, row, i), after = place_of(c, row, i + 1);
      int64_t asks = c->packed ? calls * MAX(1, x.k / GEMM_ASK) : calls;
      GemmComing next[2] = {0};
      if (i + 1 < last && !g->gather)
        next[0] = gemm_coming(DT_F32, after.a, m, g->a_row, after.k, g->a_k, calls);
      if (i + 1 < last)
        next[1] = gemm_coming(DT_F32, after.b, g->n, g->b_col, after.k, g->b_k, asks);
      if (g->gather) g->gather(g->of, row, m, x.p, x.k, own, pitch);
      if (g->gather) x.a = own;
      if (c->packed) block_packed(c, &at, m, x.a, x.b, sums, x.k, i > first, next, own + gathered);
      else block(c, at, m, x.a, x.b, sums, x.k, i > first, next);
    }
  }
}

static void join(void *arg, int64_t begin, int64_t end) { /* results */
  const Call *c = arg;
  int64_t n = end - begin, all = c->g->m * c->g->n;
  double *sums = cpu_scratch(sizeof *sums * (size_t)n);
  memset(sums, 0, sizeof *sums * (size_t)n);
  for (int64_t p = 0; p < c->parts; p++)
    for (int64_t i = 0; i < n; i++) sums[i] += (double)c->sums[p * all + begin + i];
  for (int64_t i = 0; i < n; i++) c->g->c[begin + i] = (float)sums[i];
}

/* Steps of k multiplied at a time, where there are to be so many parts. */
static int64_t block_of(const Call *c, int64_t parts) {
  const GemmLong *g = c->g;
  if (!c->packed) return c->kern->lanes >= 16 && g->m + g->n <= SIDES_LONG ? BLOCK_LONG : BLOCK;
  int64_t most = c->tile <= FEW_PANELS * c->kern->mr ? BLOCK_FEW : BLOCK_PACKED,
          part = MIN(g->k, parts_of(g->k * g->pieces, parts));
  return parts_of(parts_of(part, parts_of(part, most)), 16) * 16;
}

bool gemm_long_run(const GemmLong *g) {
  Call c = {.g = g, .kern = gemm_kernels()};
  int64_t all = g->m * g->n, k = g->pieces * g->k,
          parts = MAX(k / LEAST_PART, MIN(FEW_PARTS, k / SHORT_PART)),
          most = MAX(1, MIN(parts, PART_FLOATS / all));
  int64_t fits = MAX(c.kern->mr, MIN(TILE / g->n, g->gather ? GATHERED : INT64_MAX));
  c.tile = parts_of(g->m, parts_of(g->m, fits));
  c.tiles = parts_of(g->m, c.tile);
  c.packed =
      cpu_big_core() && (g->b_col != 1 || (g->n >= LEAST_PACKED && c.tile >= LEAST_PACKED_ROWS));
  c.block = block_of(&c, MIN(PARTS, most));
  c.blocks = parts_of(g->k, c.block);
  c.part = parts_of(c.blocks * g->pieces, MIN(PARTS, most));
  c.parts = parts_of(c.blocks * g->pieces, c.part);
  size_t bytes = sizeof(float) * (size_t)(c.parts * all);
  if (!(c.sums = cpu_block_alloc(bytes))) return false;
  cpu_parallel(c.parts * c.tiles, 1, tasks, &c);
  cpu_parallel(all, 1024, join, &c);
  cpu_block_free(c.sums, bytes);
  return true;
}
