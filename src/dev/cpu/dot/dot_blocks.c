/* Products of f32 with many rows and columns, where the second cache is large: a task packs a block
 * of its rows, which stays there while the columns pass by, panel by panel, each asked for in time.
 * Nothing is packed ahead of the tiles: that would leave the caches and come back. */
#include "dev/cpu/dot/dot.h"

#define LEAST_ROWS 96
#define LEAST_COLUMNS 64
#define LEAST_K 64
#define TALL 6            /* times as many rows as columns, */
#define NEAR 4            /* that take no more than one part of so many of the second cache: */
#define LEAST_MACS 500000 /* of a tile */
/* Cycles for an element of k of a row or column that is packed, or of one that the first rows read
 * where it is: more than packed ones take (Granite Rapids, 2026). */
#define ROW_PACKED .6
#define COLUMN_PACKED .4
#define COLUMN_TAKEN .15

static int64_t up(int64_t n, int64_t by) { return (n + by - 1) / by; }

/* Into tiles, for which the threads take the least time. Sums are the same for any number of them: k is
 * cut by its length. */
static void cut(const Dot *d, const GemmKernels *kern, Blocks *s) {
  int64_t nr = 2 * kern->lanes,
          held = cpu_second_cache() * 3 / 4 / (s->kc * (int64_t)sizeof(float)),
          least = up(d->m, held), threads = up(pool_threads(), d->b);
  threads = MIN(threads, up(d->m * d->n * d->k, LEAST_MACS));
  double best = 0, column = d->rhs.free_stride == 1 ? COLUMN_TAKEN : COLUMN_PACKED;
  for (int64_t m = least; m < least + threads && m <= s->panels; m++)
    for (int64_t n = 1; n <= threads && n <= s->columns; n++) {
      double rows = (double)(up(s->panels, m) * kern->mr),
             columns = (double)(up(s->columns, n) * nr), rounds = (double)up(m * n, threads),
             sums = rows * columns / (2 * kern->lanes), /* two vectors a cycle */
          cost = rounds * (sums + ROW_PACKED * rows + column * columns);
      if (best > 0 && cost >= best) continue;
      best = cost;
      s->tiles_m = m;
      s->tiles_n = n;
    }
}

/* Columns that stay in the second cache, passed by so many rows: dot:gemm packs those in small groups,
 * and the columns once. */
static bool is_tall(const Dot *d) {
  return d->m >= TALL * d->n && NEAR * d->n * d->k * (int64_t)sizeof(float) <= cpu_second_cache();
}

bool dot_blocks_plan(Dot *d) {
  const GemmKernels *kern = gemm_kernels();
  if (!kern || !cpu_big_cache() || d->in != DT_F32 || d->out != DT_F32 || !d->lhs.direct ||
      !d->rhs.direct || d->m < LEAST_ROWS || d->n < LEAST_COLUMNS || d->k < LEAST_K || is_tall(d))
    return false;
  Blocks *s = &d->blocks;
  *s = (Blocks){.panels = up(d->m, kern->mr), .columns = up(d->n, 2 * kern->lanes)};
  s->kc = up(up(d->k, up(d->k, GEMM_MAX_K)), 16) * 16;
  cut(d, kern, s);
  return true;
}

typedef struct Call {
  const Dot *d;
  const GemmKernels *kern;
  const float *lhs, *rhs;
  float *out;
} Call;

typedef struct Tile { /* panels of rows and of columns, rows, a block of k */
  GemmArgs x;
  int64_t i0, i1, j0, j1, row, rows, p0, k;
} Tile;

/* Panels have as many rows as each other, the first ones one more. */
static int64_t row_at(const Dot *d, int64_t panel) {
  int64_t all = d->blocks.panels;
  return panel * (d->m / all) + MIN(panel, d->m % all);
}

static int64_t rows_of(const Dot *d, int64_t panel) {
  return row_at(d, panel + 1) - row_at(d, panel);
}

static int64_t tiles_of(const Dot *d) { return d->b * d->blocks.tiles_m * d->blocks.tiles_n; }

static Tile tile_at(const Call *c, int64_t t) {
  const Dot *d = c->d;
  const Blocks *s = &d->blocks;
  int64_t tiles = s->tiles_m * s->tiles_n, i = t % tiles % s->tiles_m, j = t % tiles / s->tiles_m;
  Tile tile = {.x = dot_gemm_args(d, c->lhs, c->rhs, c->out, t / tiles),
               .i0 = i * s->panels / s->tiles_m,
               .i1 = (i + 1) * s->panels / s->tiles_m,
               .j0 = j * s->columns / s->tiles_n,
               .j1 = (j + 1) * s->columns / s->tiles_n,
               .k = MIN(s->kc, d->k)};
  tile.row = row_at(d, tile.i0);
  tile.rows = row_at(d, tile.i1) - tile.row;
  return tile;
}

static void pack_rows(const Call *c, const Tile *t, float *out) {
  const float *a = (const float *)t->x.a + t->p0 * t->x.a_k;
  int64_t thin = c->d->m / c->d->blocks.panels, thick = c->d->m % c->d->blocks.panels,
          part = MIN(MAX(thick, t->i0), t->i1), row = row_at(c->d, part);
  gemm_pack_rows(a + t->row * t->x.a_row, t->x.a_row, t->x.a_k, thin + 1, part - t->i0, t->k, out);
  gemm_pack_rows(a + row * t->x.a_row, t->x.a_row, t->x.a_k, thin, t->i1 - part, t->k,
                 out + (row - t->row) * t->k);
}

/* A panel of columns, asked for. */
static GemmComing columns_coming(const Call *c, const Tile *t, int64_t j, int64_t calls) {
  int64_t nr = 2 * c->kern->lanes, column = j * nr;
  return gemm_coming(DT_F32, (const float *)t->x.b + column * t->x.b_col + t->p0 * t->x.b_k,
                     MIN(nr, c->d->n - column), t->x.b_col, t->k, t->x.b_k, calls);
}

/* The rows packed at a times panel j of the columns, which goes to b; the next one, which may be the
 * first of the tile's next block, is asked for. */
static void pass(const Call *c, const Tile *t, const Tile *block, int64_t j, const float *a,
                 float *b) {
  const GemmKernels *kern = c->kern;
  int64_t lanes = kern->lanes, first = 2 * lanes * j, wide = MIN(2 * lanes, c->d->n - first),
          asks = (t->i1 - t->i0) * (t->k / GEMM_ASK);
  const float *from = (const float *)t->x.b + first * t->x.b_col + t->p0 * t->x.b_k;
  float *to = (float *)t->x.c + t->row * t->x.c_row + first;
  bool last = j + 1 == t->j1, take = t->x.b_col == 1 && wide == 2 * lanes;
  GemmComing next = {0};
  if (!last) next = columns_coming(c, t, j + 1, asks);
  else if (block->k > 0) next = columns_coming(c, block, block->j0, asks);
  if (!take)
    gemm_pack(DT_F32, from, t->x.b_col, t->x.b_k, (int)wide, (int)(up(wide, lanes) * lanes), t->k,
              1, 0, b);
  for (int64_t i = t->i0; i < t->i1; i++) {
    int64_t rows = rows_of(c->d, i);
    if (take && i == t->i0)
      kern->take[rows - 1](t->k, a, (const char *)from, t->x.b_k * (int64_t)sizeof(float), b, to,
                           t->x.c_row, t->p0 > 0, &next);
    else gemm_multiply(kern, rows, wide, t->k, a, b, to, t->x.c_row, t->p0 > 0, &next);
    a += rows * t->k;
    to += rows * t->x.c_row;
  }
}

static void tiles(void *arg, int64_t begin, int64_t end) {
  const Call *c = arg;
  const Dot *d = c->d;
  const Blocks *s = &d->blocks;
  int64_t rows = up(s->panels, s->tiles_m) * c->kern->mr, nr = 2 * c->kern->lanes;
  float *b = cpu_scratch((size_t)((rows + nr) * s->kc) * sizeof(float)), *a = b + nr * s->kc;
  for (int64_t i = begin; i < end; i++) {
    for (Tile t = tile_at(c, i); t.k > 0;) {
      Tile next = t;
      next.p0 += t.k;
      next.k = MIN(t.k, d->k - next.p0);
      pack_rows(c, &t, a);
      for (int64_t j = t.j0; j < t.j1; j++) pass(c, &t, &next, j, a, b);
      t = next;
    }
  }
}

Err *dot_blocks_run(void *state, const Op *op, void *const *in, void *const *out) {
  Call c = {state, gemm_kernels(), in[0], in[1], out[0]};
  (void)op;
  cpu_parallel(tiles_of(c.d), 1, tiles, &c);
  return NULL;
}
