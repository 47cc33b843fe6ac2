/* amx: rectangles of results, blocks of k, and the packing before them. */
#include "dev/cpu/dot/amx.h"

#include "dev/cpu/kernel/kernel.h"

#define PAIR (2 * AMX_SIDE) /* rows and columns of a block of results */
#define BLOCK 8             /* steps: 32 rows and 32 columns stay in the first cache */
#define ROWS 512            /* of a task, */
#define COLUMNS 512         /* whose packed columns stay in the second cache */
#define TASKS 8             /* wanted of one product: */
#define LEAST_MACS 3e6      /* of each */
#define BLOCK_BYTES (PAIR * PAIR * 4)
#define PACKED_PANEL (2 * AMX_TILE_B) /* a step of 32 rows */

static int64_t parts_of(int64_t n, int64_t size) { return (n + size - 1) / size; }
static int64_t even_parts(int64_t n, int64_t most, int64_t unit) {
  return parts_of(parts_of(n, parts_of(n, most)), unit) * unit;
}

bool amx_plan(Amx *g, int64_t m, int64_t n, int64_t k, GemmTypes t, int64_t batch) {
  bool floats = t.a == DT_BF16;
  *g = (Amx){.t = t, .m = m, .n = n, .k = k, .per = floats ? 2 : 4};
  g->kern = floats ? amx_bf16() : amx_bytes(t.a == DT_I8, t.b == DT_I8);
  if (!g->kern) return false;
  g->steps = parts_of(k, AMX_SIDE * g->per);
  g->block = even_parts(g->steps, BLOCK, 1);
  double macs = (double)m * (double)n * (double)k;
  int64_t want = MAX(1, (int64_t)MIN(TASKS, macs / LEAST_MACS));
  if (batch >= TASKS) want = 1;
  g->tile_m = even_parts(m, ROWS, PAIR);
  g->tile_n = even_parts(n, COLUMNS, PAIR);
  /* The longer side is cut. */
  while (parts_of(m, g->tile_m) * parts_of(n, g->tile_n) < want) {
    if (g->tile_m > g->tile_n && g->tile_m > PAIR)
      g->tile_m = even_parts(g->tile_m, g->tile_m - 1, PAIR);
    else if (g->tile_n > PAIR) g->tile_n = even_parts(g->tile_n, g->tile_n - 1, PAIR);
    else break;
  }
  g->tiles_m = parts_of(m, g->tile_m);
  g->tiles_n = parts_of(n, g->tile_n);
  return true;
}

static int64_t b_bytes(const Amx *g) { return g->tile_n / AMX_SIDE * g->block * AMX_TILE_B; }
static int64_t a_bytes(const Amx *g) { return g->block * PACKED_PANEL; }
static bool one_block(const Amx *g) { return g->block == g->steps; }

int64_t amx_scratch_bytes(const Amx *g) {
  int64_t blocks = one_block(g) ? 1 : g->tile_m / PAIR * (g->tile_n / PAIR);
  return b_bytes(g) + a_bytes(g) + AMX_TILE_B + blocks * BLOCK_BYTES;
}

typedef struct Part { /* a rectangle, one block of k */
  int64_t i0, i1, j0, j1;
  int64_t s0, steps, k; /* k: elements from s0 on */
  bool add, last;
  char *b, *a, *turned, *sums;
} Part;

static void put(const Amx *g, const GemmArgs *x, const char *block, int64_t i, int64_t j,
                int64_t rows, int64_t columns) {
  const float *c = (const float *)(const void *)block;
  int64_t e = dtype_bytes(g->t.c);
  char *out = (char *)x->c + (i * x->c_row + j) * e;
  if (e == 4) {
    for (int64_t r = 0; r < rows; r++)
      memcpy(out + r * x->c_row * e, c + r * PAIR, (size_t)(columns * e));
    return;
  }
  const GemmKernels *pairs = gemm_pairs();
  if (pairs && pairs->narrow)
    pairs->narrow(c, PAIR, rows, columns, (uint16_t *)(void *)out, x->c_row);
  else gemm_narrow(g->t.c, c, PAIR, rows, columns, out, x->c_row);
}

/* Rows [i, i + rows) times all columns. */
static void row_of_blocks(const Amx *g, const GemmArgs *x, const Part *p, int64_t i, int64_t rows) {
  int64_t e = dtype_bytes(g->t.a), each = AMX_SIDE * g->per;
  const char *a = (const char *)x->a + (i * x->a_row + p->s0 * each * x->a_k) * e;
  AmxBlock blk = {.steps = p->steps, .a = a, .a_row = x->a_row * e, .a_step = AMX_STEP};
  if (x->a_k != 1 || p->k != p->steps * each) {
    amx_pack_rows(g->t.a, a, x->a_row, x->a_k, rows, p->k, p->steps, p->a, p->turned);
    blk.a = p->a;
    blk.a_row = AMX_STEP;
    blk.a_step = PACKED_PANEL;
  }
  blk.b_panel = p->steps * AMX_TILE_B;
  blk.add = p->add;
  GemmComing next = {0};
  int64_t calls = parts_of(p->j1 - p->j0, PAIR) * p->steps;
  if (i + PAIR < p->i1)
    next = gemm_coming(g->t.a, a + PAIR * x->a_row * e, MIN(PAIR, p->i1 - i - PAIR), x->a_row, p->k,
                       x->a_k, calls);
  blk.next = &next;
  for (int64_t j = p->j0; j < p->j1; j += PAIR) {
    int64_t columns = MIN(PAIR, p->j1 - j);
    bool straight = dtype_bytes(g->t.c) == 4 && columns % AMX_SIDE == 0;
    blk.b = p->b + (j - p->j0) / AMX_SIDE * blk.b_panel;
    blk.c = p->sums;
    blk.c_row = PAIR * 4;
    if (straight) {
      blk.c = (char *)x->c + (i * x->c_row + j) * 4;
      blk.c_row = x->c_row * 4;
    } else if (!one_block(g))
      blk.c += ((i - p->i0) / PAIR * (g->tile_n / PAIR) + (j - p->j0) / PAIR) * BLOCK_BYTES;
    g->kern->fn[rows > AMX_SIDE][columns > AMX_SIDE](&blk);
    if (p->last && !straight) put(g, x, blk.c, i, j, rows, columns);
  }
}

void amx_tile(const Amx *g, const GemmArgs *x, int64_t tile, char *scratch) {
  int64_t each = AMX_SIDE * g->per;
  Part p = {.i0 = tile / g->tiles_n * g->tile_m, .j0 = tile % g->tiles_n * g->tile_n};
  p.i1 = MIN(p.i0 + g->tile_m, g->m);
  p.j1 = MIN(p.j0 + g->tile_n, g->n);
  p.b = scratch;
  p.a = p.b + b_bytes(g);
  p.turned = p.a + a_bytes(g);
  p.sums = p.turned + AMX_TILE_B;
  for (; p.s0 < g->steps; p.s0 += p.steps, p.add = true) {
    p.steps = MIN(g->block, g->steps - p.s0);
    p.k = MIN(p.steps * each, g->k - p.s0 * each);
    p.last = p.s0 + p.steps == g->steps;
    const char *b =
        (const char *)x->b + (p.j0 * x->b_col + p.s0 * each * x->b_k) * dtype_bytes(g->t.b);
    amx_pack_columns(g->t.b, b, x->b_col, x->b_k, p.j1 - p.j0, p.k, p.steps, p.b);
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
