/* amx: rectangles of results, blocks of k, and the packing before them. */
#include "dev/cpu/dot/amx.h"

#include "dev/cpu/kernel/kernel.h"

#define PAIR (2 * AMX_SIDE) /* rows and columns of a block of results */
/* Of k: */
#define NEAR 8    /* steps of 32 rows that stay in the first cache, and */
#define BLOCK 32  /* steps packed together, */
#define HELD 1024 /* tiles of 16 columns by a step, of a task: these stay in the second */
#define ROWS 1024 /* of a task */
#define COLUMNS 512
#define TASKS 8        /* wanted of one product: */
#define LEAST_MACS 3e6 /* of each */
#define BLOCK_BYTES (PAIR * PAIR * 4)
/* Rows that are runs are packed ahead where more tasks than so many read them, if they are no more bytes than: */
#define AGAIN 2
#define MOST (16 << 20)
#define PART 128                      /* rows or columns, packed ahead by one task */
#define PACKED_PANEL (2 * AMX_TILE_B) /* a step of 32 rows */

static int64_t parts_of(int64_t n, int64_t size) { return (n + size - 1) / size; }
static int64_t even_parts(int64_t n, int64_t most, int64_t unit) {
  return parts_of(parts_of(n, parts_of(n, most)), unit) * unit;
}

/* Of all rows (columns), a step. */
static int64_t a_step_bytes(const Amx *g) { return parts_of(g->m, PAIR) * PACKED_PANEL; }
static int64_t b_step_bytes(const Amx *g) { return parts_of(g->n, AMX_SIDE) * AMX_TILE_B; }

bool amx_plan(Amx *g, int64_t m, int64_t n, int64_t k, GemmTypes t, int64_t batch, AmxRows rows) {
  bool floats = t.a == DT_BF16;
  *g = (Amx){.t = t, .m = m, .n = n, .k = k, .per = floats ? 2 : 4};
  g->kern = floats ? amx_bf16() : amx_bytes(t.a == DT_I8, t.b == DT_I8);
  if (!g->kern) return false;
  g->steps = parts_of(k, AMX_SIDE * g->per);
  g->block = even_parts(g->steps, BLOCK, 1);
  g->near = even_parts(g->block, NEAR, 1);
  double macs = (double)m * (double)n * (double)k;
  int64_t want = MAX(1, (int64_t)MIN(TASKS, macs / LEAST_MACS));
  if (batch >= TASKS) want = 1;
  g->tile_m = even_parts(m, ROWS, PAIR);
  g->tile_n = even_parts(n, MIN(COLUMNS, HELD / g->block / 2 * PAIR), PAIR);
  /* The longer side is cut; rows later, as each packed column serves all rows of a task, and sooner where every
   * task would gather them again. */
  while (parts_of(m, g->tile_m) * parts_of(n, g->tile_n) < want) {
    bool longer = rows == AMX_GATHERED ? 4 * g->tile_m > g->tile_n : g->tile_m > 2 * g->tile_n;
    if (longer && g->tile_m > PAIR) g->tile_m = even_parts(g->tile_m, g->tile_m - 1, PAIR);
    else if (g->tile_n > PAIR) g->tile_n = even_parts(g->tile_n, g->tile_n - 1, PAIR);
    else break;
  }
  g->tiles_m = parts_of(m, g->tile_m);
  g->tiles_n = parts_of(n, g->tile_n);
  bool heavy = a_step_bytes(g) * g->steps > MOST;
  g->ahead_a =
      rows == AMX_TURNED ? g->tiles_n > 1 : rows == AMX_RUNS && g->tiles_n > AGAIN && !heavy;
  g->ahead_b = g->tiles_m > 1;
  return true;
}

static int64_t ahead_a_bytes(const Amx *g) { return g->ahead_a ? a_step_bytes(g) * g->steps : 0; }
static int64_t ahead_b_bytes(const Amx *g) { return g->ahead_b ? b_step_bytes(g) * g->steps : 0; }
int64_t amx_ahead_bytes(const Amx *g) { return ahead_a_bytes(g) + ahead_b_bytes(g); }

static int64_t blocks_of(const Amx *g) { return parts_of(g->steps, g->block); }
static int64_t ahead_a_parts(const Amx *g) { return g->ahead_a ? parts_of(g->m, PART) : 0; }
int64_t amx_ahead_parts(const Amx *g) {
  return blocks_of(g) * (ahead_a_parts(g) + (g->ahead_b ? parts_of(g->n, PART) : 0));
}

typedef struct Steps {  /* a block of k, */
  int64_t s0, steps, k; /* of so many elements from s0 steps on */
} Steps;
static Steps steps_at(const Amx *g, int64_t s0, int64_t most) {
  int64_t each = AMX_SIDE * g->per, steps = MIN(most, g->steps - s0);
  return (Steps){s0, steps, MIN(steps * each, g->k - s0 * each)};
}
static const char *a_at(const Amx *g, const GemmArgs *x, int64_t i, int64_t s0) {
  return (const char *)x->a +
         (i * x->a_row + s0 * AMX_SIDE * g->per * x->a_k) * dtype_bytes(g->t.a);
}
static const char *b_at(const Amx *g, const GemmArgs *x, int64_t j, int64_t s0) {
  return (const char *)x->b +
         (j * x->b_col + s0 * AMX_SIDE * g->per * x->b_k) * dtype_bytes(g->t.b);
}

/* ahead: [block of k][32 rows][step], then [block of k][16 columns][step]: a block's panels are one run. */
void amx_ahead(const Amx *g, const GemmArgs *x, char *ahead, int64_t begin, int64_t end) {
  _Alignas(64) char turned[AMX_TILE_B];
  int64_t rows = ahead_a_parts(g), parts = amx_ahead_parts(g) / blocks_of(g);
  for (int64_t part = begin; part < end; part++) {
    Steps s = steps_at(g, part / parts * g->block, g->block);
    int64_t at = part % parts;
    if (at >= rows) {
      int64_t j = (at - rows) * PART;
      char *to =
          ahead + ahead_a_bytes(g) + s.s0 * b_step_bytes(g) + j / AMX_SIDE * s.steps * AMX_TILE_B;
      amx_pack_columns(g->t.b, b_at(g, x, j, s.s0), x->b_col, x->b_k, MIN(PART, g->n - j), s.k,
                       s.steps, s.steps * AMX_TILE_B, to);
      continue;
    }
    char *to = ahead + s.s0 * a_step_bytes(g) + at * (PART / PAIR) * s.steps * PACKED_PANEL;
    for (int64_t i = at * PART; i < MIN((at + 1) * PART, g->m);
         i += PAIR, to += s.steps * PACKED_PANEL)
      amx_pack_rows(g->t.a, a_at(g, x, i, s.s0), x->a_row, x->a_k, MIN(PAIR, g->m - i), s.k,
                    s.steps, to, turned);
  }
}

static int64_t b_bytes(const Amx *g) {
  return g->ahead_b ? 0 : g->tile_n / AMX_SIDE * g->block * AMX_TILE_B;
}
static int64_t a_bytes(const Amx *g) { return g->ahead_a ? 0 : g->near * PACKED_PANEL; }
/* A step of k of a task's columns. */
static int64_t gathered_bytes(const Amx *g) { return g->ahead_b ? 0 : g->tile_n * AMX_STEP; }
static bool one_block(const Amx *g) { return g->block == g->steps; }

int64_t amx_scratch_bytes(const Amx *g) {
  int64_t blocks = one_block(g) ? g->tile_n / PAIR : g->tile_m / PAIR * (g->tile_n / PAIR);
  return b_bytes(g) + a_bytes(g) + AMX_TILE_B + gathered_bytes(g) + blocks * BLOCK_BYTES;
}

typedef struct Part { /* a rectangle, one block of k */
  const AmxGather *gather;
  int64_t i0, i1, j0, j1;
  Steps s;
  const char *b, *ahead; /* packed: columns from j0 on; all rows, or NULL */
  char *a, *turned, *gathered, *sums;
} Part;

static void put_rows(const Amx *g, const float *c, int64_t rows, int64_t columns, char *out,
                     int64_t out_row) {
  int64_t e = dtype_bytes(g->t.c);
  const GemmKernels *pairs = gemm_pairs();
  if (e == 4) {
    for (int64_t r = 0; r < rows; r++)
      memcpy(out + r * out_row * e, c + r * PAIR, (size_t)(columns * e));
  } else if (pairs && pairs->narrow) {
    pairs->narrow(c, PAIR, rows, columns, (uint16_t *)(void *)out, out_row);
  } else {
    gemm_narrow(g->t.c, c, PAIR, rows, columns, out, out_row);
  }
}

static void put(const Amx *g, const GemmArgs *x, const AmxGather *gather, const char *block,
                int64_t i, int64_t j, int64_t rows, int64_t columns) {
  const float *c = (const float *)(const void *)block;
  int64_t e = dtype_bytes(g->t.c);
  if (!gather || !gather->c_at) {
    put_rows(g, c, rows, columns, (char *)x->c + (i * x->c_row + j) * e, x->c_row);
    return;
  }
  for (int64_t r = 0; r < rows; r++)
    put_rows(g, c + r * PAIR, 1, columns, gather->c_at(gather->of, i + r) + j * e, 0);
}

static GemmComing run_coming(const char *p, int64_t bytes, int64_t calls) {
  int64_t lines = bytes / 64;
  return (GemmComing){.p = p, .lines = lines, .runs = 1, .each = parts_of(lines, calls)};
}

/* Where rows [i, i + rows) of some steps are read, packed before where they are no runs; what is read
 * after them. */
static GemmComing take_rows(const Amx *g, const GemmArgs *x, const Part *p, Steps s, int64_t i,
                            int64_t rows, AmxBlock *blk) {
  int64_t e = dtype_bytes(g->t.a), calls = parts_of(p->j1 - p->j0, PAIR) * s.steps;
  bool more = i + PAIR < p->i1;
  blk->a_row = AMX_STEP;
  blk->a_step = PACKED_PANEL;
  if (p->ahead) {
    int64_t bytes = p->s.steps * PACKED_PANEL;
    blk->a = p->ahead + i / PAIR * bytes + (s.s0 - p->s.s0) * PACKED_PANEL;
    return more ? run_coming(blk->a + bytes, s.steps * PACKED_PANEL, calls) : (GemmComing){0};
  }
  blk->a = p->a;
  if (p->gather && p->gather->a) {
    int64_t held = s.k * e;
    blk->a_row = s.steps * AMX_STEP;
    blk->a_step = AMX_STEP;
    p->gather->a(p->gather->of, i, rows, s.s0 * AMX_SIDE * g->per, s.k, p->a, blk->a_row);
    for (int64_t r = 0; r < rows && held < blk->a_row; r++)
      memset(p->a + r * blk->a_row + held, 0, (size_t)(blk->a_row - held));
    return (GemmComing){0};
  }
  const char *a = a_at(g, x, i, s.s0);
  if (x->a_k != 1 || s.k != s.steps * AMX_SIDE * g->per) {
    amx_pack_rows(g->t.a, a, x->a_row, x->a_k, rows, s.k, s.steps, p->a, p->turned);
  } else {
    blk->a = a;
    blk->a_row = x->a_row * e;
    blk->a_step = AMX_STEP;
  }
  if (!more) return (GemmComing){0};
  return gemm_coming(g->t.a, a + PAIR * x->a_row * e, MIN(PAIR, p->i1 - i - PAIR), x->a_row, s.k,
                     x->a_k, calls);
}

/* Rows [i, i + rows) times all columns. */
static void row_of_blocks(const Amx *g, const GemmArgs *x, const Part *p, int64_t i, int64_t rows) {
  bool wide = dtype_bytes(g->t.c) == 4;
  char *sums = p->sums;
  if (!one_block(g)) sums += (i - p->i0) / PAIR * (g->tile_n / PAIR) * BLOCK_BYTES;
  int64_t end = p->s.s0 + p->s.steps;
  for (int64_t s0 = p->s.s0; s0 < end; s0 += g->near) {
    Steps s = steps_at(g, s0, MIN(g->near, end - s0));
    bool last = s0 + s.steps == g->steps, in_rows = !p->gather || !p->gather->c_at;
    AmxBlock blk = {.steps = s.steps, .b_panel = p->s.steps * AMX_TILE_B};
    GemmComing next = take_rows(g, x, p, s, i, rows, &blk);
    blk.next = &next;
    for (int64_t j = p->j0; j < p->j1; j += PAIR) {
      int64_t columns = MIN(PAIR, p->j1 - j);
      bool straight = last && wide && in_rows && columns % AMX_SIDE == 0;
      blk.b = p->b + (j - p->j0) / AMX_SIDE * blk.b_panel + (s0 - p->s.s0) * AMX_TILE_B;
      char *own = sums + (j - p->j0) / PAIR * BLOCK_BYTES;
      blk.add = s0 > 0 ? own : NULL;
      blk.c = straight ? (char *)x->c + (i * x->c_row + j) * 4 : own;
      blk.c_row = straight ? x->c_row * 4 : AMX_SUMS_ROW;
      g->kern->fn[rows > AMX_SIDE][columns > AMX_SIDE](&blk);
      if (last && !straight) put(g, x, p->gather, blk.c, i, j, rows, columns);
    }
  }
}

/* The columns of a task, for a block of k. */
static void pack_part(const Amx *g, const GemmArgs *x, const Part *p, char *out) {
  const AmxGather *gather = p->gather;
  int64_t each = AMX_SIDE * g->per, w = p->j1 - p->j0, panel = p->s.steps * AMX_TILE_B;
  if (!gather || !gather->b) {
    amx_pack_columns(g->t.b, b_at(g, x, p->j0, p->s.s0), x->b_col, x->b_k, w, p->s.k, p->s.steps,
                     panel, out);
    return;
  }
  for (int64_t s = 0; s < p->s.steps; s++) {
    int64_t k = MIN(each, p->s.k - s * each);
    gather->b(gather->of, (p->s.s0 + s) * each, k, p->j0, w, p->gathered, w * dtype_bytes(g->t.b));
    amx_pack_columns(g->t.b, p->gathered, 1, w, w, k, 1, panel, out + s * AMX_TILE_B);
  }
}

void amx_tile(const Amx *g, const GemmArgs *x, const AmxGather *gather, const char *ahead,
              int64_t tile, char *scratch) {
  Part p = {
      .gather = gather, .i0 = tile / g->tiles_n * g->tile_m, .j0 = tile % g->tiles_n * g->tile_n};
  p.i1 = MIN(p.i0 + g->tile_m, g->m);
  p.j1 = MIN(p.j0 + g->tile_n, g->n);
  p.a = scratch + b_bytes(g);
  p.turned = p.a + a_bytes(g);
  p.gathered = p.turned + AMX_TILE_B;
  p.sums = p.gathered + gathered_bytes(g);
  for (int64_t s0 = 0; s0 < g->steps; s0 += p.s.steps) {
    p.s = steps_at(g, s0, g->block);
    p.b = scratch;
    if (g->ahead_a) p.ahead = ahead + s0 * a_step_bytes(g);
    if (g->ahead_b)
      p.b = ahead + ahead_a_bytes(g) + s0 * b_step_bytes(g) +
            p.j0 / AMX_SIDE * p.s.steps * AMX_TILE_B;
    else pack_part(g, x, &p, scratch);
    int64_t whole = (p.i1 - p.i0) / PAIR * PAIR, left = p.i1 - p.i0 - whole;
    if (whole) g->kern->begin(PAIR);
    for (int64_t i = p.i0; i < p.i0 + whole; i += PAIR) row_of_blocks(g, x, &p, i, PAIR);
    if (left) {
      g->kern->begin((int)left);
      row_of_blocks(g, x, &p, p.i0 + whole, left);
    }
  }
}

void amx_release(const Amx *g) { g->kern->end(); }
