/* weft.attention: the scores of a task's queries, some keys at a time; what was summed before shrinks by what the greatest score grew
 * (Milakov and Gimelshein, Online normalizer calculation for softmax, 2018). */
#include <math.h>

#include "dev/cpu/dot/attention.h"
#include "ir/build.h"

#define TILES 4 /* of a task: queries that pass by the same keys */

typedef struct Forward {
  const Attention *a;
  char *out;
  float *stats;
} Forward;

typedef struct Block { /* of a task, in its scratch */
  float *turned, *sums;
  float *s, *lanes, *p; /* a tile; the same in bf16, and as pairs */
  float most[TILES * ATTENTION_ACROSS], sum[TILES * ATTENTION_ACROSS];
} Block;

static AttentionTile tile_of(const Attention *a, int64_t head, int64_t panel) {
  AttentionTile t = {.b = head / a->g, .g = head % a->g, .m0 = panel * a->across};
  t.m = MIN(a->across, a->m - t.m0);
  return t;
}

static void shrink(const Attention *a, const AttentionTile *t, const float *again, float *sums) {
  for (int64_t i = 0; i < t->m; i++)
    if (again[i] != 1) attention_scale(a->e, sums + i * a->e, again[i]);
}

static void add_tile(const Attention *a, const AttentionTile *t, int k, Block *b) {
  int64_t w = a->across;
  float *most = b->most + k * w, *sums = b->sums + k * w * a->e, again[ATTENTION_ACROSS], *p = b->s;
  attention_scores(a, t, b->turned + k * w * a->kd, b->s);
  attention_finish_scores(a, t, b->s);
  if (attention_soften(t->n, w, b->s, most, b->sum + k * w, again)) shrink(a, t, again, sums);
  if (a->pairs) {
    attention_narrow(a, t->n, b->s, b->lanes);
    attention_rows_in(a, DT_BF16, (const char *)b->lanes, t->n, w, p = b->p);
  }
  int64_t rows = attention_pairs(a, t->n), first = t->b * attention_pairs(a, a->n);
  GemmAt at = {.a_row = 1, .a_k = w, .b_k = a->e, .c_row = a->e};
  attention_product(a, &at, t->m, a->e, rows, p,
                    a->values_in + (first + (a->pairs ? t->n0 / 2 : t->n0)) * a->e, sums, true);
}

static void store(const Forward *f, const AttentionTile *t, int k, Block *b) {
  const Attention *a = f->a;
  int64_t w = a->across, head = t->b * a->g + t->g, row = head * a->m + t->m0;
  float *sums = b->sums + k * w * a->e, *stats = f->stats + head * 2 * a->m + t->m0;
  for (int64_t i = 0; i < t->m; i++) {
    float most = b->most[k * w + i], part = 1 / b->sum[k * w + i];
    attention_scale(a->e, sums + i * a->e, part);
    stats[i] = most == -INFINITY ? 0 : most;
    stats[a->m + i] = part;
  }
  attention_put(a->type, sums, f->out + row * a->e * dtype_bytes(a->type), t->m * a->e);
}

static Block block_of(const Attention *a) {
  int64_t w = a->across, tile = ATTENTION_KEYS * w, q = TILES * w * a->kd, o = TILES * w * a->e;
  float *all = cpu_scratch(sizeof *all * (size_t)(q + o + 2 * tile));
  Block b = {.turned = all, .sums = all + q, .s = all + q + o, .p = all + q + o + tile};
  b.lanes = b.p + tile / 2;
  memset(b.sums, 0, sizeof *all * (size_t)o);
  for (int i = 0; i < TILES * ATTENTION_ACROSS; i++) b.most[i] = -INFINITY, b.sum[i] = 0;
  return b;
}

static void attend(void *arg, int64_t begin, int64_t end) { /* heads and groups of their tiles */
  const Forward *f = arg;
  const Attention *a = f->a;
  int64_t groups = (a->panels + TILES - 1) / TILES, bytes = dtype_bytes(a->types[0]);
  for (int64_t i = begin; i < end; i++) {
    int64_t head = i / groups, first = i % groups * TILES, n = MIN(TILES, a->panels - first);
    Block b = block_of(a);
    AttentionTile t[TILES];
    for (int k = 0; k < n; k++) {
      t[k] = tile_of(a, head, first + k);
      attention_turn(a, a->types[0], a->q + (head * a->m + t[k].m0) * a->d * bytes, t[k].m, a->d,
                     b.turned + k * a->across * a->kd);
    }
    for (int64_t n0 = 0; n0 < a->n; n0 += ATTENTION_KEYS)
      for (int k = 0; k < n; k++) {
        t[k].n0 = n0;
        t[k].n = MIN(ATTENTION_KEYS, a->n - n0);
        if (attention_sees(a, &t[k])) add_tile(a, &t[k], k, &b);
      }
    for (int k = 0; k < n; k++) store(f, &t[k], k, &b);
  }
}

static Err *run(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  Attention a = attention_of(op, in);
  Forward f = {&a, out[0], out[1]};
  cpu_parallel(a.b * a.g * ((a.panels + TILES - 1) / TILES), 1, attend, &f);
  attention_done(&a);
  return NULL;
}

static bool is_known(DType t) { return t == DT_F32 || t == DT_BF16 || t == DT_F16; }

static bool accepts(const Op *op) {
  for (int i = 0; i < 3 + op_bool(op, "biased", false); i++)
    if (!is_known(op->operands[i]->type->dtype)) return false;
  return true;
}

/* Of products; gradients have five where attention has two. */
static double flops(const Op *op) {
  AttentionDims a = b_attention_dims(op);
  double scores = (double)(a.b * a.g * a.m * a.n), d = (double)a.d, e = (double)a.e;
  return 2 * scores * (op->kind == OP_ATTENTION ? d + e : 3 * d + 2 * e);
}

const CpuKernel cpu_kernels_attention[] = {
    {.name = "attention", .kind = OP_ATTENTION, .accepts = accepts, .run = run, .flops = flops},
    {.name = "attention_grad",
     .kind = OP_ATTENTION_GRAD,
     .accepts = accepts,
     .run = attention_grad_run,
     .flops = flops},
    {0},
};
