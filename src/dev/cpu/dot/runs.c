/* Products whose rows are read where they are: see the header. */
#include "dev/cpu/dot/runs.h"

#include <stdatomic.h>

#include "dev/cpu/dot/gemm.h"
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"

#define BLOCK 512         /* elements of a row multiplied, and added up, at a time, about; */
#define BLOCK_BIG 1024    /* on a big core: results are read again half as often */
#define LEAST_ROWS 48     /* of a tile */
#define MOST_ROWS 192     /* of a tile */
#define TILES 16          /* wanted of one product; of more */
#define EVEN 4            /* a multiple: as many for each of two or four threads */
#define PACK_FLOATS 65536 /* packed by a task */
#define OWN_SHARE 2       /* a thread's own columns take no more than one part of so many */

static int64_t up(int64_t n, int64_t by) { return (n + by - 1) / by; }

const RunsKernels *runs_kernels(int64_t n) {
  const GemmKernels *kern = gemm_kernels();
  if (!kern) return NULL;
#if defined(__x86_64__)
  return kern->lanes == runs_avx512.lanes && n > runs_avx2.lanes ? &runs_avx512 : &runs_avx2;
#else
  (void)n;
  return NULL;
#endif
}

typedef struct Plan {
  const Runs *x;
  const RunsKernels *kern;
  int64_t vectors, panels; /* of a group's columns: as many vectors as each other, or one less */
  int64_t deep, block, together; /* elements of a row; of a run, and runs, multiplied at a time */
  int64_t strips; /* of RUNS_ROWS rows: a tile has as many as each other, or one less */
  int64_t tile_m, tiles_m, tiles_n; /* tile_m: rows of the largest */
  bool unpacked; /* the columns are still where they were: a tile packs what it meets first */
  bool far; /* more rows than the second cache holds, not windows: those share what they read */
  float *b;
} Plan;

static int64_t vector_at(const Plan *p, int64_t panel) { return panel * p->vectors / p->panels; }

static int64_t row_at(const Plan *p, int64_t tile) {
  return MIN(p->x->m, tile * p->strips / p->tiles_m * RUNS_ROWS);
}

static Plan plan_of(const Runs *x) {
  Plan p = {.x = x, .kern = runs_kernels(x->n)};
  p.vectors = up(x->n, p.kern->lanes);
  p.panels = up(p.vectors, p.kern->vectors);
  p.deep = x->runs * x->k;
  int64_t block = cpu_big_core() ? BLOCK_BIG : BLOCK;
  p.together = MIN(x->runs, MAX(1, block / x->k));
  p.block = up(x->k, up(x->k, block));
  int64_t near = cpu_second_cache() / 3 / (p.together * p.block * (int64_t)sizeof(float)),
          most = MIN(MOST_ROWS, near), rows = MAX(LEAST_ROWS, MIN(most, x->m / TILES));
  p.far = x->runs == 1 && x->m * p.deep * (int64_t)sizeof(float) > cpu_second_cache();
  p.strips = up(x->m, RUNS_ROWS);
  p.tiles_m = up(x->m, up(rows, RUNS_ROWS) * RUNS_ROWS);
  if (p.tiles_m > TILES) p.tiles_m = MIN(p.strips, up(p.tiles_m, EVEN) * EVEN);
  p.tile_m = up(p.strips, p.tiles_m) * RUNS_ROWS;
  p.tiles_n = MIN(x->groups * p.panels, up(TILES, p.tiles_m));
  return p;
}

int64_t runs_floats(const Runs *x) {
  Plan p = plan_of(x);
  return x->groups * p.vectors * p.kern->lanes * p.deep;
}

/* ---- columns ---- */

/* Of a group, packed: columns from a vector on. */
static float *packed(const Plan *p, int64_t group, int64_t vector) {
  return p->b + (group * p->vectors + vector) * p->kern->lanes * p->deep;
}

static void pack(void *arg, int64_t begin, int64_t end) { /* (group, panel, run) */
  const Plan *p = arg;
  const Runs *x = p->x;
  int64_t lanes = p->kern->lanes;
  for (int64_t i = begin; i < end; i++) {
    int64_t group = i / x->runs / p->panels, panel = i / x->runs % p->panels, run = i % x->runs,
            v = vector_at(p, panel), first = v * lanes,
            width = vector_at(p, panel + 1) * lanes - first, held = MIN(width, x->n - first);
    gemm_pack(DT_F32, x->columns(x->of, group, run) + first * x->b_col, x->b_col, x->b_k, (int)held,
              (int)width, x->k, 1, width * x->k, packed(p, group, v) + run * x->k * width);
  }
}

/* Columns from a vector on, from term p0 on, where the only group has them. */
static const float *in_place(const Plan *p, int64_t vector, int64_t p0) {
  const Runs *x = p->x;
  return x->columns(x->of, 0, 0) + vector * p->kern->lanes + p0 * x->b_k;
}

/* ---- tiles ---- */

/* Elements [p0, p0 + k) of some runs of a tile's rows, times panel `panel` of those of all groups. The
 * first one asks for the rows. */
static void multiply(const Plan *p, RunsBlock at, bool first_panel, int64_t rows, int64_t panel,
                     int64_t run, const float *const *from, float *const *to) {
  int64_t lanes = p->kern->lanes, group = panel / p->panels,
          first = vector_at(p, panel % p->panels), nv = vector_at(p, panel % p->panels + 1) - first,
          end = MIN(p->x->n, (first + nv) * lanes);
  float *b = packed(p, group, first) + (run * p->x->k + at.p0) * nv * lanes;
  at.p0 += group * p->x->k;
  at.column = group * p->x->n + first * lanes;
  at.last = end - (first + nv - 1) * lanes;
  from += run * at.pitch;
  int64_t i = 0;
  if (p->unpacked) {
    at.ask = first_panel && p->far && 2 * RUNS_ROWS <= rows;
    at.b_step = p->x->b_k;
    at.to_pack = b;
    p->kern->packing[nv - 1](&at, from, in_place(p, first, at.p0), to);
    i = RUNS_ROWS;
  }
  for (; i < rows; i += RUNS_ROWS) {
    at.ask = first_panel && p->far && i + 2 * RUNS_ROWS <= rows;
    p->kern->fn[nv - 1][MIN(RUNS_ROWS, rows - i) - 1](&at, from + i, b, to + i);
  }
}

static void tile(const Plan *p, int64_t t) {
  const Runs *x = p->x;
  const float **from = cpu_scratch(sizeof(float *) * (size_t)((x->runs + 1) * p->tile_m));
  float **to = (float **)(from + x->runs * p->tile_m);
  int64_t row = row_at(p, t / p->tiles_n), rows = row_at(p, t / p->tiles_n + 1) - row,
          panels = x->groups * p->panels, j0 = t % p->tiles_n * panels / p->tiles_n,
          j1 = (t % p->tiles_n + 1) * panels / p->tiles_n;
  x->rows(x->of, row, rows, p->tile_m, from, to);
  RunsBlock at = {.pitch = p->tile_m, .zeros = x->zeros};
  for (int64_t run = 0; run < x->runs; run += p->together)
    for (at.p0 = 0; at.p0 < x->k; at.p0 += p->block, at.add = true) {
      at.runs = MIN(p->together, x->runs - run);
      at.k = MIN(p->block, x->k - at.p0);
      for (int64_t j = j0; j < j1; j++)
        multiply(p, at, j == j0, rows, j, run, (const float *const *)from, to);
    }
}

static void tiles(void *arg, int64_t begin, int64_t end) {
  for (int64_t t = begin; t < end; t++) tile(arg, t);
}

/* ---- columns that each thread packs for itself, while it multiplies its first rows ----
 *
 * There is no pass over the columns, nor anybody to wait for: 1 to 2 % of 2 ms, 10 % of 0.4 ms, 30 % of
 * 25 us (Granite Rapids, two threads). */

typedef struct Own {
  const Plan *p;
  int64_t floats;
  _Atomic int64_t next; /* tile */
} Own;

static void own(void *arg, int64_t begin, int64_t end) {
  Own *o = arg;
  for (int64_t i = begin; i < end; i++) {
    Plan p = *o->p;
    p.b += i * o->floats;
    for (int64_t t; (t = atomic_fetch_add(&o->next, 1)) < p.tiles_m; p.unpacked = false)
      tile(&p, t);
  }
}

/* Whole vectors side by side, which stay in a thread's second cache; every tile takes all of them and
 * begins with a whole strip. */
static bool packs_own(const Plan *p) {
  const Runs *x = p->x;
  return x->runs == 1 && !x->zeros && x->groups == 1 && x->b_col == 1 &&
         x->n % p->kern->lanes == 0 && cpu_big_cache() && p->tiles_n == 1 &&
         p->strips >= 2 * p->tiles_m &&
         OWN_SHARE * x->n * p->deep * (int64_t)sizeof(float) <= cpu_second_cache();
}

bool runs_run(const Runs *x, float *prepacked, bool fresh) {
  Plan p = plan_of(x);
  p.unpacked = !prepacked && packs_own(&p);
  Own o = {.p = &p, .floats = runs_floats(x)};
  int64_t threads = p.unpacked ? MIN(pool_threads(), p.tiles_m) : 1,
          part = x->k * p.kern->lanes * p.kern->vectors;
  size_t bytes = sizeof(float) * (size_t)(o.floats * threads);
  p.b = prepacked ? prepacked : cpu_block_alloc(bytes);
  if (!p.b) return false;
  if (p.unpacked) cpu_parallel(threads, 1, own, &o);
  else {
    if (!prepacked || fresh)
      cpu_parallel(x->groups * p.panels * x->runs, MAX(1, PACK_FLOATS / part), pack, &p);
    cpu_parallel(p.tiles_m * p.tiles_n, 1, tiles, &p);
  }
  if (!prepacked) cpu_block_free(p.b, bytes);
  return true;
}
