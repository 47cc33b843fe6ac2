/* Products of f64 with some rows and columns, by kernels of our own (f64.h): BLAS's are of the vectors that hosts had when it was built.
 * A task is a tile of results: its rows are packed a block of k at a time, unless few columns read them, its columns a panel at a
 * time. A product is cut by size only, and k into blocks that are added up in order. */
#include "dev/cpu/dot/dot.h"
#include "dev/cpu/dot/f64.h"
#include "dev/cpu/kernel/mem.h"

#define BLOCK 256 /* of k: a panel of columns stays in the first cache */
#define ROWS \
  192 /* of a tile: those of a block stay in the second cache; both kernels' rows divide it */
#define COLUMNS 512     /* of a tile */
#define TILES 16        /* wanted of one product */
#define TILE_FLOPS 4e6  /* of a tile, at least, */
#define TASK_FLOPS 5e5  /* of a task */
#define LEAST_SIDE 8    /* rows and columns: fewer are as fast as memory by BLAS, */
#define LEAST_TURNED 24 /* rows, of columns that are no runs */
#define LEAST_LANES 8   /* with fewer BLAS is as fast */
#define LEAST_FLOPS 2e4 /* and less as fast in any way */
#define READ_IN_PLACE 4 /* panels of columns: so few take rows where they are */

static int64_t parts_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

bool dot_f64_plan(Dot *d) {
  const F64Kernels *kern = f64_kernels();
  double flops = 2.0 * (double)d->m * (double)d->n * (double)d->k;
  if (!kern || kern->lanes < LEAST_LANES || d->b * d->m * d->n * d->k == 0 ||
      MIN(d->m, d->n) < LEAST_SIDE || flops < LEAST_FLOPS ||
      (d->rhs.free_stride != 1 && d->m < LEAST_TURNED))
    return false;
  Doubles *t = &d->doubles;
  int64_t want = (int64_t)MIN(TILES, flops / TILE_FLOPS), nr = 2 * kern->lanes;
  *t = (Doubles){.rows = MIN(ROWS, parts_of(d->m, kern->rows) * kern->rows),
                 .columns = MIN(COLUMNS, parts_of(d->n, nr) * nr)};
  while (parts_of(d->m, t->rows) * parts_of(d->n, t->columns) < want) { /* halve a tile's sides */
    bool wide = t->columns > t->rows && t->columns > 4 * nr;
    if (!wide && t->rows <= 4 * kern->rows) break;
    if (wide) t->columns = parts_of(t->columns / 2, nr) * nr;
    else t->rows = parts_of(t->rows / 2, kern->rows) * kern->rows;
  }
  t->tiles_m = parts_of(d->m, t->rows);
  t->tiles_n = parts_of(d->n, t->columns);
  return true;
}

/* Rows [i, i + n) of k terms from p on, to panels of the kernel's rows. */
static void pack_rows(const GemmArgs *x, int64_t each, int64_t i, int64_t n, int64_t p, int64_t k,
                      double *out) {
  const double *a = (const double *)x->a + i * x->a_row + p * x->a_k;
  for (int64_t first = 0; first < n; first += each, a += each * x->a_row, out += each * k) {
    int64_t rows = MIN(each, n - first);
    if (x->a_row == 1)
      for (int64_t q = 0; q < k; q++)
        memcpy(out + q * each, a + q * x->a_k, sizeof *a * (size_t)rows);
    else
      for (int64_t r = 0; r < rows; r++)
        for (int64_t q = 0; q < k; q++) out[q * each + r] = a[r * x->a_row + q * x->a_k];
  }
}

/* Columns [j, j + n) of k terms from p on, zero from n to `width` on. */
static void pack_columns(const GemmArgs *x, int64_t j, int64_t n, int64_t width, int64_t p,
                         int64_t k, double *out) {
  const double *b = (const double *)x->b + p * x->b_k + j * x->b_col;
  if (n < width) memset(out, 0, sizeof *out * (size_t)(k * width));
  if (x->b_col == 1)
    for (int64_t q = 0; q < k; q++) memcpy(out + q * width, b + q * x->b_k, sizeof *b * (size_t)n);
  else
    for (int64_t c = 0; c < n; c++)
      for (int64_t q = 0; q < k; q++) out[q * width + c] = b[c * x->b_col + q * x->b_k];
}

typedef struct Tile { /* of one block of k */
  const F64Kernels *kern;
  const GemmArgs *x;
  int64_t i, rows, p, k;
  const double *a; /* packed; NULL: where they are */
} Tile;

/* Its rows times a panel of n columns from j on. */
static void panel(const Tile *t, int64_t j, int64_t n, const double *b) {
  const GemmArgs *x = t->x;
  int64_t lanes = t->kern->lanes, vectors = parts_of(n, lanes), width = vectors * lanes, rows;
  double whole[F64_MAX_ROWS * 16];
  for (int64_t i = 0; i < t->rows; i += rows) {
    rows = MIN(t->kern->rows, t->rows - i);
    F64Kernel fn = t->kern->fn[rows - 1][vectors - 1];
    const double *a =
        t->a ? t->a + i * t->k : (const double *)x->a + (t->i + i) * x->a_row + t->p * x->a_k;
    int64_t a_row = t->a ? 1 : x->a_row, a_k = t->a ? t->kern->rows : x->a_k;
    double *c = (double *)x->c + (t->i + i) * x->c_row + j;
    if (n == width) {
      fn(t->k, a, a_row, a_k, b, c, x->c_row, t->p > 0);
      continue;
    }
    size_t bytes = sizeof *c * (size_t)n;
    memset(whole, 0, sizeof whole);
    for (int64_t r = 0; r < rows && t->p; r++) memcpy(whole + r * width, c + r * x->c_row, bytes);
    fn(t->k, a, a_row, a_k, b, whole, width, t->p > 0);
    for (int64_t r = 0; r < rows; r++) memcpy(c + r * x->c_row, whole + r * width, bytes);
  }
}

typedef struct Call {
  const Dot *d;
  const void *lhs, *rhs;
  void *out;
  double *
      ahead; /* all panels of columns, [k][width] each, packed once; NULL: each tile packs its own */
} Call;

/* Of panel j, a column's number, from p on: where it is in `ahead`. */
static double *ahead_at(const Call *c, int64_t j, int64_t p) {
  int64_t lanes = f64_kernels()->lanes, n = MIN(2 * lanes, c->d->n - j);
  return c->ahead + j * c->d->k + p * parts_of(n, lanes) * lanes;
}

static void pack_ahead(void *arg, int64_t begin, int64_t end) { /* panels */
  const Call *c = arg;
  const Dot *d = c->d;
  int64_t lanes = f64_kernels()->lanes;
  GemmArgs x = dot_gemm_args(d, c->lhs, c->rhs, c->out, 0);
  for (int64_t i = begin; i < end; i++) {
    int64_t j = 2 * lanes * i, n = MIN(2 * lanes, d->n - j);
    pack_columns(&x, j, n, parts_of(n, lanes) * lanes, 0, d->k, ahead_at(c, j, 0));
  }
}

static void tile(const Call *c, const GemmArgs *x, int64_t i0, int64_t j0, double *room) {
  const Dot *d = c->d;
  const F64Kernels *kern = f64_kernels();
  int64_t nr = 2 * kern->lanes, j1 = MIN(j0 + d->doubles.columns, d->n);
  Tile t = {.kern = kern, .x = x, .i = i0, .rows = MIN(d->doubles.rows, d->m - i0)};
  double *b = room, *a = room + nr * BLOCK;
  bool pack = j1 - j0 > READ_IN_PLACE * nr;
  for (; t.p < d->k; t.p += t.k) {
    t.k = MIN(BLOCK, d->k - t.p);
    if (pack) pack_rows(x, kern->rows, i0, t.rows, t.p, t.k, a);
    t.a = pack ? a : NULL;
    for (int64_t j = j0; j < j1; j += nr) {
      int64_t n = MIN(nr, j1 - j);
      if (!c->ahead) pack_columns(x, j, n, parts_of(n, kern->lanes) * kern->lanes, t.p, t.k, b);
      panel(&t, j, n, c->ahead ? ahead_at(c, j, t.p) : b);
    }
  }
}

static void tiles(void *arg, int64_t begin, int64_t end) {
  const Call *c = arg;
  const Doubles *s = &c->d->doubles;
  int64_t each = s->tiles_m * s->tiles_n, nr = 2 * f64_kernels()->lanes;
  double *room = cpu_scratch(sizeof(double) * (size_t)((s->rows + nr) * BLOCK));
  for (int64_t t = begin; t < end; t++) {
    GemmArgs x = dot_gemm_args(c->d, c->lhs, c->rhs, c->out, t / each);
    tile(c, &x, t % each / s->tiles_n * s->rows, t % s->tiles_n * s->columns, room);
  }
}

Err *dot_f64_run(void *state, const Op *op, void *const *in, void *const *out) {
  const Dot *d = state;
  const Doubles *s = &d->doubles;
  DotOperands o;
  bool ok = dot_operands(d, in, &o);
  Call c = {d, o.at[0], o.at[1], out[0], NULL};
  int64_t nr = 2 * f64_kernels()->lanes, panels = parts_of(d->n, nr);
  size_t bytes = d->b == 1 && s->tiles_m > 1 ? sizeof(double) * (size_t)(panels * nr * d->k) : 0;
  if (ok && bytes) ok = (c.ahead = cpu_block_alloc(bytes)) != NULL;
  if (ok && bytes) cpu_parallel(panels, (int64_t)(65536 / (nr * d->k)) + 1, pack_ahead, &c);
  int64_t n = d->b * s->tiles_m * s->tiles_n;
  double flops = 2.0 * (double)d->m * (double)d->n * (double)d->k * (double)d->b / (double)n;
  if (ok) cpu_parallel(n, (int64_t)(TASK_FLOPS / flops) + 1, tiles, &c);
  cpu_block_free(c.ahead, bytes);
  dot_operands_free(&o);
  return ok ? NULL : op_err(op, ERR_EXHAUSTED, "no memory for operands in order");
}
