/* The gradients of weft.attention: a task has some keys, computes their weights again and adds up what all queries make of
 * them. Gradients of queries are sums over tasks. */
#include <math.h>

#include "dev/cpu/dot/attention.h"

#define TASKS 16 /* at least, where there are so many keys */

typedef struct Backward {
  const Attention *a;
  const char *o, *grad;
  const float *stats;
  float *turned_q, *turned_grad; /* of all tiles, [b g][panels][..][across] */
  float *q_in, *grad_in;         /* [b g][panels][across or half][d, e] */
  float *means;         /* [b g][panels][across]: inner products of results and their gradients */
  float *parts;         /* [chunks][b g m][d] */
  int64_t chunks, keys; /* of a chunk */
  void *const *out;
} Backward;

/* ---- queries ---- */

static float row_mean(const Backward *g, int64_t row) {
  const Attention *a = g->a;
  int64_t bytes = dtype_bytes(a->type);
  double sum = 0;
  float o[64], y[64];
  for (int64_t x = 0; x < a->e; x += 64) {
    int64_t n = MIN(64, a->e - x), at = (row * a->e + x) * bytes;
    attention_floats(a->type, g->o + at, o, n);
    attention_floats(a->type, g->grad + at, y, n);
    for (int64_t i = 0; i < n; i++) sum += (double)o[i] * (double)y[i];
  }
  return (float)sum;
}

static void prepare_panels(void *arg, int64_t begin, int64_t end) {
  const Backward *g = arg;
  const Attention *a = g->a;
  int64_t w = a->across, half = attention_pairs(a, w), qb = dtype_bytes(a->types[0]),
          ob = dtype_bytes(a->type);
  for (int64_t i = begin; i < end; i++) {
    int64_t m0 = i % a->panels * w, n = MIN(w, a->m - m0), row = i / a->panels * a->m + m0;
    const char *q = a->q + row * a->d * qb, *y = g->grad + row * a->e * ob;
    attention_turn(a, a->types[0], q, n, a->d, g->turned_q + i * w * a->kd);
    attention_turn(a, a->type, y, n, a->e, g->turned_grad + i * w * a->ke);
    memset(g->q_in + i * half * a->d, 0, sizeof(float) * (size_t)(half * a->d));
    memset(g->grad_in + i * half * a->e, 0, sizeof(float) * (size_t)(half * a->e));
    attention_rows_in(a, a->types[0], q, n, a->d, g->q_in + i * half * a->d);
    attention_rows_in(a, a->type, y, n, a->e, g->grad_in + i * half * a->e);
    for (int64_t k = 0; k < w; k++) g->means[i * w + k] = k < n ? row_mean(g, row + k) : 0;
  }
}

/* ---- a tile ---- */

typedef struct Tiles {
  float *p, *dp;       /* [keys][across] */
  float *lanes, *rows; /* the same as pairs */
  float *dk, *dv;      /* of the task's keys */
} Tiles;

static void weigh(const Backward *g, const AttentionTile *t, int64_t panel, Tiles *x) {
  const Attention *a = g->a;
  const int64_t w = a->across, head = t->b * a->g + t->g;
  const float *stats = g->stats + head * 2 * a->m + t->m0;
  float most[ATTENTION_ACROSS], part[ATTENTION_ACROSS] = {0};
  for (int64_t k = 0; k < w; k++) most[k] = INFINITY; /* beyond the last query there is no weight */
  memcpy(most, stats, sizeof *most * (size_t)t->m);
  memcpy(part, stats + a->m, sizeof *part * (size_t)t->m);
  attention_scores(a, t, g->turned_q + panel * w * a->kd, x->p);
  attention_finish_scores(a, t, x->p);
  attention_weights(t->n, w, x->p, most, part);
  GemmAt at = {.a_row = a->ke, .a_k = 1, .b_k = w, .c_row = w};
  attention_product(a, &at, t->n, attention_columns(a, t), a->ke,
                    a->values + (t->b * a->n + t->n0) * a->ke, g->turned_grad + panel * w * a->ke,
                    x->dp, false);
}

/* Sums over the tile's queries: [n][width] += of [n][across] and [across][width]. */
static void sum_queries(const Attention *a, const AttentionTile *t, Tiles *x, const float *tile,
                        const float *in, int64_t width, float *sums) {
  const int64_t row = attention_pairs(a, a->across), k = attention_pairs(a, t->m);
  if (a->pairs) attention_narrow(a, t->n, tile, x->lanes);
  GemmAt at = {.a_row = row, .a_k = 1, .b_k = width, .c_row = width};
  attention_product(a, &at, t->n, width, k, a->pairs ? x->lanes : tile, in, sums, true);
}

static void add_tile(const Backward *g, const AttentionTile *t, int64_t panel, Tiles *x,
                     int64_t from, float *dq) {
  const Attention *a = g->a;
  const int64_t w = a->across, half = attention_pairs(a, w), key = t->n0 - from;
  weigh(g, t, panel, x);
  sum_queries(a, t, x, x->p, g->grad_in + panel * half * a->e, a->e, x->dv + key * a->e);
  attention_slopes(t->n, w, x->p, x->dp, g->means + panel * w, a->scale);
  attention_hide(a, t, x->dp);
  sum_queries(a, t, x, x->dp, g->q_in + panel * half * a->d, a->d, x->dk + key * a->d);
  const float *ds = x->dp;
  if (a->pairs) {
    attention_rows_in(a, DT_BF16, (const char *)x->lanes, t->n, w, x->rows);
    ds = x->rows;
  }
  GemmAt at = {.a_row = 1, .a_k = w, .b_k = a->d, .c_row = a->d};
  int64_t keys = t->b * attention_pairs(a, a->n) + (a->pairs ? t->n0 / 2 : t->n0);
  attention_product(a, &at, t->m, a->d, attention_pairs(a, t->n), ds, a->keys_in + keys * a->d, dq,
                    true);
}

/* ---- tasks ---- */

static void put(DType t, const float *x, char *out, int64_t at, int64_t n) {
  attention_put(t, x, out + at * dtype_bytes(t), n);
}

static Tiles tiles_of(const Attention *a, int64_t keys) {
  int64_t tile = ATTENTION_KEYS * a->across, all = keys * (a->d + a->e);
  float *p = cpu_scratch(sizeof *p * (size_t)(4 * tile + all));
  memset(p + 4 * tile, 0, sizeof *p * (size_t)all);
  return (Tiles){p, p + tile, p + 2 * tile, p + 3 * tile, p + 4 * tile, p + 4 * tile + keys * a->d};
}

static void add_keys(const Backward *g, int64_t b, int64_t chunk, int64_t from, int64_t to,
                     Tiles *x) {
  const Attention *a = g->a;
  float *parts = g->parts + chunk * a->b * a->g * a->m * a->d;
  for (int64_t n0 = from; n0 < to; n0 += ATTENTION_KEYS)
    for (int64_t i = 0; i < a->g * a->panels; i++) {
      int64_t panel = b * a->g * a->panels + i;
      AttentionTile t = {.b = b, .g = i / a->panels, .m0 = i % a->panels * a->across, .n0 = n0};
      t.m = MIN(a->across, a->m - t.m0);
      t.n = MIN(ATTENTION_KEYS, to - n0);
      if (attention_sees(a, &t))
        add_tile(g, &t, panel, x, from, parts + (panel / a->panels * a->m + t.m0) * a->d);
    }
}

static void run_task(void *arg, int64_t begin, int64_t end) { /* batches and chunks of keys */
  const Backward *g = arg;
  const Attention *a = g->a;
  for (int64_t i = begin; i < end; i++) {
    int64_t b = i / g->chunks, chunk = i % g->chunks, from = chunk * g->keys,
            to = MIN(a->n, from + g->keys), at = b * a->n + from;
    Tiles x = tiles_of(a, to - from);
    add_keys(g, b, chunk, from, to, &x);
    put(a->types[1], x.dk, g->out[1], at * a->d, (to - from) * a->d);
    put(a->types[2], x.dv, g->out[2], at * a->e, (to - from) * a->e);
  }
}

static void add_parts(void *arg, int64_t begin, int64_t end) { /* elements of the first part */
  const Backward *g = arg;
  const int64_t all = g->a->b * g->a->g * g->a->m * g->a->d;
  for (int64_t c = 1; c < g->chunks; c++)
    for (int64_t i = begin; i < end; i++) g->parts[i] += g->parts[c * all + i];
  put(g->a->types[0], g->parts + begin, g->out[0], begin, end - begin);
}

/* ---- the whole ---- */

static void divide(Backward *g) {
  const Attention *a = g->a;
  int64_t tiles = (a->n + ATTENTION_KEYS - 1) / ATTENTION_KEYS,
          wanted = MAX(1, TASKS / MAX(1, a->b)), each = (tiles + wanted - 1) / wanted;
  g->keys = MAX(1, each) * ATTENTION_KEYS;
  g->chunks = (a->n + g->keys - 1) / g->keys;
}

Err *attention_grad_run(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  Attention a = attention_of(op, in);
  const int n = op->n_operands;
  Backward g = {.a = &a, .o = in[n - 3], .stats = in[n - 2], .grad = in[n - 1], .out = out};
  divide(&g);
  int64_t tiles = a.b * a.g * a.panels, w = a.across, half = attention_pairs(&a, w),
          rows = a.b * a.g * a.m,
          sizes[] = {tiles * w * a.kd,   tiles * w * a.ke, tiles * half * a.d,
                     tiles * half * a.e, tiles * w,        MAX(1, g.chunks) * rows * a.d},
          all = 0;
  float **places[] = {&g.turned_q, &g.turned_grad, &g.q_in, &g.grad_in, &g.means, &g.parts};
  for (int i = 0; i < COUNT_OF(sizes); i++) all += sizes[i];
  float *memory = xmalloc(sizeof *memory * (size_t)(all + 1)), *next = memory;
  for (int i = 0; i < COUNT_OF(sizes); i++) *places[i] = next, next += sizes[i];
  memset(g.parts, 0, sizeof *memory * (size_t)sizes[COUNT_OF(sizes) - 1]);
  cpu_parallel(tiles, 4, prepare_panels, &g);
  cpu_parallel(a.b * g.chunks, 1, run_task, &g);
  cpu_parallel(rows * a.d, 1 << 14, add_parts, &g);
  free(memory);
  attention_done(&a);
  return NULL;
}
