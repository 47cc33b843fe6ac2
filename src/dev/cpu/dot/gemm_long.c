/* Products with few results that are sums of many terms (gradients of weights over large batches): k
 * is cut into parts and rows into tiles whose results stay in the second cache; a task is a part of
 * a tile and has results of its own. Both operands are read where they are, a block of k at a time
 * that stays in the second cache too, or a's block is gathered. Parts are added up in order, in f64. */
#include "dev/cpu/dot/gemm.h"

#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"

#define BLOCK 128      /* of k; */
#define BLOCK_LONG 512 /* with AVX-512 of so few rows and columns: */
#define SIDES_LONG 128
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
  int64_t block, part, parts; /* of k */
  int64_t tile, tiles;        /* rows */
  float *sums;                /* [part][m][n] */
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

static void tasks(void *arg, int64_t begin, int64_t end) { /* (part, tile) */
  const Call *c = arg;
  const GemmLong *g = c->g;
  int64_t pitch = c->tile + 16; /* not all rows in the same places of the first cache */
  float *own = g->gather ? cpu_scratch(sizeof(float) * (size_t)(c->block * pitch)) : NULL;
  GemmAt at = {.a_row = g->gather ? 1 : g->a_row,
               .a_k = g->gather ? pitch : g->a_k,
               .b_k = g->b_k,
               .c_row = g->n};
  for (int64_t t = begin; t < end; t++) {
    int64_t p0 = t / c->tiles * c->part, p1 = MIN(p0 + c->part, g->k);
    int64_t row = t % c->tiles * c->tile, m = MIN(c->tile, g->m - row),
            calls = parts_of(m, c->kern->mr) * parts_of(g->n, 2 * c->kern->lanes);
    float *sums = c->sums + (t / c->tiles * g->m + row) * g->n;
    for (int64_t p = p0; p < p1; p += c->block) {
      int64_t q = p + c->block, k = MIN(c->block, p1 - p), after = MIN(c->block, p1 - q);
      GemmComing next[2] = {0};
      if (after > 0 && !g->gather)
        next[0] = gemm_coming(DT_F32, g->a + row * g->a_row + q * g->a_k, m, g->a_row, after,
                              g->a_k, calls);
      if (after > 0)
        next[1] = gemm_coming(DT_F32, g->b + q * g->b_k, g->n, 1, after, g->b_k, calls);
      if (g->gather) g->gather(g->of, row, m, p, k, own, pitch);
      block(c, at, m, g->gather ? own : g->a + row * g->a_row + p * g->a_k, g->b + p * g->b_k, sums,
            k, p > p0, next);
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

bool gemm_long_run(const GemmLong *g) {
  Call c = {.g = g, .kern = gemm_kernels()};
  int64_t all = g->m * g->n, parts = MAX(g->k / LEAST_PART, MIN(FEW_PARTS, g->k / SHORT_PART)),
          most = MAX(1, MIN(parts, PART_FLOATS / all));
  c.block = c.kern->lanes >= 16 && g->m + g->n <= SIDES_LONG ? BLOCK_LONG : BLOCK;
  c.part = parts_of(parts_of(g->k, MIN(PARTS, most)), c.block) * c.block;
  c.parts = parts_of(g->k, c.part);
  int64_t fits = MAX(c.kern->mr, MIN(TILE / g->n, g->gather ? GATHERED : INT64_MAX));
  c.tile = parts_of(g->m, parts_of(g->m, fits));
  c.tiles = parts_of(g->m, c.tile);
  size_t bytes = sizeof(float) * (size_t)(c.parts * all);
  if (!(c.sums = cpu_block_alloc(bytes))) return false;
  cpu_parallel(c.parts * c.tiles, 1, tasks, &c);
  cpu_parallel(all, 1024, join, &c);
  cpu_block_free(c.sums, bytes);
  return true;
}
