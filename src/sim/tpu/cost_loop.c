/* Kernels without a product on a TPU: loops, relayouts, concatenations, updates in place. */
#include <math.h>
#include <stdlib.h>

#include "sim/hlo/query.h"
#include "sim/tpu/cost.h"
#include "sim/tpu/tpu.h"

/* Are an unfused reduction's arrays taken in one window? They are up to a third of each core's share of
 * on-chip memory: 1280 tiles of 4 KiB but not 1320 in 16 MiB, 2560 but not 2640 in twice that. */
static bool reduced_at_once(const CostParams *params, const Kernel *k, double tiles) {
  for (int i = 0; i < k->roots.n; i++)
    if (k->roots.v[i]->val) tiles += k->roots.v[i]->val->tiles;
  return tiles <= 1290 * params->scoped / (16 << 20) * params->cores;
}

/* Are elements added, which takes 32 bits whatever they are stored in? */
static bool sums(const Kernel *k) {
  for (int i = 0; i < k->inner.n; i++) {
    const HNode *n = k->inner.v[i];
    if (n->kind != H_REDUCE) continue;
    if (!n->src || n->src->n_regions != 1) return true;
    const Op *op = n->src->regions[0]->first;
    for (; op; op = op->next)
      if (op->kind == OP_ADD) return true;
  }
  return false;
}

#define WINDOW 1064  /* tiles of the largest window that a loop is cut into */
#define AT_ONCE 1260 /* that a loop may take whole */

static double cut(const CostParams *params, double tiles, bool narrow) {
  if (params->fast <= 0) return 1;
  double most = AT_ONCE * params->scoped / (16 << 20);
  return tiles * (narrow ? 0.8 : 1) <= most ? 1 : ceil(tiles / WINDOW);
}

/* Where an array is only repeated or summed up, a window holds as many of its tiles of two or four rows
 * as of whole ones: each in the room of so many. */
static double small_tiles(const Kernel *k, const HValue *v) {
  int kind = k->roots.v[0]->kind;
  if (!k->alone || (kind != H_BCAST && kind != H_REDUCE) || v->node->rank < 2) return 1;
  int64_t rows = v->node->d[v->order[1]];
  return rows == 2 ? 4 : rows == 3 || rows == 4 ? 2 : 1;
}

static double held_tiles(const HValue *v, double small) {
  return small > 1 ? MAX(v->tiles, v->bytes / tpu_width(v) / 1024 * small) : v->tiles;
}

/* What a loop moves, in the units of its params: cycles of reading and writing, and sizes. */
typedef struct {
  double rd, wr; /* cycles */
  double slow;   /* of them, what registers are loaded, packed and stored for */
  double bytes;  /* of arrays, without what is copied from on-chip memory */
  double all;    /* of arrays as tiles hold them */
  double tiles;  /* of the largest array */
  bool any_array, narrow;
  int widest; /* bytes of an element read */
} Traffic;

/* Cycles in n windows: transfers of one hide under the work of the one before. */
static double in_windows(const CostParams *params, const Traffic *t, double comp, double n) {
  double mg = n > 1 ? params->cores : 1, R = ceil(n / mg);
  if (R <= 1) return params->lbase + t->rd + t->wr + comp;
  double slow = params->cores < 2 ? 0 : t->slow;
  double moved = t->rd + t->wr - slow, work = comp + slow;
  return params->lbase + moved / R + (R - 1) * MAX(work / R, moved / R + params->lq) + work / R;
}

/* Is anything made of counters, as random bits and one-hot rows are? */
static bool counts(const Kernel *k) {
  for (int i = 0; i < k->inner.n; i++)
    if (k->inner.v[i]->kind == H_IOTA && hlo_count(k->inner.v[i]) > 1) return true;
  return false;
}

#define MOST_CUT \
  10 /* windows for the sake of arithmetic alone: what memory cuts into nine stays so */

/* Much arithmetic on arrays is cut into more windows than these need, as many as take least: where VMEM has room beside
 * windows. What is made of counters is not. */
static double best_windows(const CostParams *params, const Kernel *k, const Traffic *t, double comp,
                           double n) {
  if (params->fast <= 0 || counts(k)) return n;
  double more = n > 1 ? n + params->cores : MAX(params->cores, 2);
  while (more <= MIN(t->tiles, MOST_CUT * params->cores) &&
         in_windows(params, t, comp, more) < in_windows(params, t, comp, n)) {
    n = more;
    more += params->cores;
  }
  return n;
}

/* An unfused operation runs in one window while its arrays fit, else in windows of a fixed number
 * of tiles. What registers are loaded, packed and stored for hides under the transfers of other
 * windows where two cores share the memory. */
static double loop_cycles(const CostParams *params, const Kernel *k, const Traffic *t, double comp,
                          int *windows) {
  double n;
  bool one = t->all <= params->one_bytes;
  if (k->reduce) {
    one = reduced_at_once(params, k, t->tiles * (!t->narrow ? 1 : sums(k) ? 0.75 : 0.8));
    n = k->alone
            ? (one ? 1 : ceil(t->tiles / params->lwin))
            : (params->fast > 0 ? cut(params, t->tiles, t->narrow) : ceil(t->tiles / params->rwin));
  } else if (k->alone && !k->copy) {
    n = one ? 1 : ceil(t->tiles / params->lwin);
  } else if (k->copy) {
    n = ceil((t->narrow ? 2 : 1) * t->bytes / params->cwin);
    if (params->scoped > 16 << 20) n = t->all <= params->cwin ? 1 : ceil(t->tiles / 1024);
  } else {
    n = ceil(2 * t->bytes / (params->scoped * (t->narrow ? 0.72 : 0.985)));
    n = MAX(n, cut(params, t->tiles, false));
    n = best_windows(params, k, t, comp, MAX(n, 1));
  }
  if (n < 1) n = 1;
  *windows = (int)MIN(n, 1e9);
  return in_windows(params, t, comp, n);
}

/* An argument that later kernels read as well is copied on chip while its first reader takes it
 * from HBM. */
static bool arrives(const Schedule *p, const Kernel *k, const HValue *v) {
  if (!v->is_param || p->comp->parent || v->last_read <= k->pos || !v->n_stays ||
      !v->stays[0].fetched || v->stays[0].first > k->pos)
    return false;
  for (int i = v->stays[0].first; i < k->pos; i++)
    for (int r = 0; r < p->kernels.v[i]->reads.n; r++)
      if (p->kernels.v[i]->reads.v[r] == v) return false;
  return true;
}

/* Rows that lie alone in their tiles (a dimension of one beside the lanes) are taken eight at a time
 * by what is fused: the share of the time that is left. */
static double rows_together(const Kernel *k, const HValue *v) {
  const HNode *n = v->node;
  if (k->alone || k->copy || k->reduce || n->rank < 3 || tpu_width(v) < 4 ||
      n->d[v->order[1]] > 1 || v->tiles <= 0 || (hlo_count(n) / MAX(1, n->d[v->order[0]])) % 8)
    return 1;
  return MIN(1, v->bytes / 4096 / v->tiles);
}

/* What a loop is charged for an operand: on some generations one on chip costs as much as one in
 * HBM. */
static double far_read(const Schedule *p, const Kernel *k, HValue *v) {
  const CostParams *params = p->params;
  while (v->alias) v = v->alias;
  if (v->space == SP_SCALAR) return 0;
  double near = v->space == SP_VMEM && !arrives(p, k, v) ? params->lvm : 1;
  return v->tiles * params->loop.r[tpu_width(v)] * tpu_wide(v) * near * rows_together(k, v);
}

/* And for a result: one in the memory that cores share as much as one in HBM. */
static double far_write(const CostParams *params, const HValue *v) {
  if (v->dropped || v->space != SP_CMEM) return tpu_write_cost(params, &params->loop, v);
  return v->tiles * params->loop.o[tpu_width(v)] * tpu_wide(v);
}

#define TURN_WINDOW 768 /* tiles of both sides that are turned at a time */

/* Matrices in a batch, of more than a tile's height, do not go through the transpose unit. */
static bool tall_matrices(const HValue *v) {
  return v->node->rank > 3 || (v->node->rank == 3 && v->node->d[v->order[1]] > 8);
}

/* Moving another dimension into lanes goes through the transpose unit, window by window: nothing
 * overlaps, and a tile of any type costs the same. */
static double turn_cycles(const CostParams *params, HValue *from, HValue *to, bool joins,
                          int *windows) {
  HValue *side[2] = {base_of(from), to};
  bool on_chip =
      joins && params->fast > 0 && to->node->d[0] != from->node->d[0]; /* moved once more */
  double held[2];
  for (int i = 0; i < 2; i++) /* rows that are joined fill their tiles */
    held[i] = joins || side[i]->node->lies
                  ? MIN(side[i]->tiles, side[i]->bytes / tpu_width(side[i]) / 1024)
                  : side[i]->tiles;
  double tiles = held[0] + held[1], per = TURN_WINDOW * params->cores, w = 100;
  double n = MAX(1, ceil(tiles / per));
  const HNode *x = to->node; /* windows are whole slices of the outermost dimension */
  if (n > 1 && x->rank > 2) {
    double outer = (double)x->d[to->order[x->rank - 1]], take = floor(outer * per / tiles);
    if (take >= 1) n = ceil(outer / take);
  }
  for (int i = 0; i < 2; i++) {
    double t = held[i] / n, far = params->lbase - 30;
    if (side[i]->space == SP_HBM && !(i && on_chip)) w += far + t * params->lane;
    else if (side[i]->space == SP_CMEM) w += far + t * params->lane * 0.41;
    else if (i && params->lane_pack > 0 && tpu_width(to) < 4 && side[0]->space != SP_HBM &&
             tall_matrices(to))
      w += far + t * params->lane_pack;
  }
  *windows = (int)n;
  return n * w;
}

#define STACK 0.4     /* of that, where each piece has tiles of its own */
#define JOIN_NARROW 8 /* instruction slots to join registers of 16 bits, two in a word */

/* A reshape of its own from the first dimension in lanes to the last one, or back. */
static bool lanes_split(const Kernel *k) {
  const HNode *n = k->roots.v[0];
  if (!k->copy || n->kind != H_RESHAPE || !n->val || k->reads.n != 1) return false;
  const HValue *v = k->reads.v[0];
  int r = v->node->rank;
  if (r < 2 || n->rank < 2 || (r == 2 && n->rank == 2)) return false;
  return (v->order[0] == 0 && n->val->order[0] == n->rank - 1) ||
         (v->order[0] == r - 1 && n->val->order[0] == 0);
}

/* A concatenation is the largest of its operands, each padded to the size of the result. */
static double joining(const CostParams *params, const HNode *n, double tiles, double *rd) {
  const HValue *v = n->val;
  if (!v || n->rank < 2) return 0;
  bool equal = true;
  for (int i = 1; i < n->n_in; i++) equal &= hlo_count(n->in[i]) == hlo_count(n->in[0]);
  double windows = ceil(8 * v->bytes / params->scoped);
  if (!equal && n->index == v->order[n->rank - 1] && 4 * v->bytes > params->scoped) {
    double share = 0; /* every window reads a window of each operand, as much of it as there is */
    for (int i = 0; i < n->n_in; i++)
      share += MIN(1, windows * (double)hlo_count(n->in[i]) / (double)hlo_count(n));
    *rd += tiles * params->loop.r[tpu_width(v)] * (share - 1);
    return 0;
  }
  double slots = tpu_width(v) == 4 ? params->join : JOIN_NARROW;
  int arrays = 0;
  for (int i = 0; i < n->n_in; i++) arrays += !hlo_const_only(n->in[i]);
  return tiles * (hlo_stacked(n) ? STACK * slots : slots) * params->lvpu * MAX(0, arrays - 1);
}

/* Kernels beside one that makes random bits from a counter: the key is taken apart, and each row
 * has three words of its counters computed once, for nothing where they fill whole registers. */
static double counters(const CostParams *params, const Kernel *k) {
  double t = 0;
  for (int i = 0; i < k->inner.n; i++) {
    const HNode *n = k->inner.v[i];
    if (n->kind == H_SLICE && n->in[0]->val && n->dt == DT_U32 && n->rank == 1 &&
        hlo_count(n->in[0]) <= 4 && t < params->lbase)
      t += params->lbase + 8;
  }
  for (int i = 0; i < k->inner.n && t > 0; i++) {
    const HNode *n = k->inner.v[i];
    if (n->kind != H_IOTA || n->dt != DT_U64 || n->rank < 2) continue;
    double rows = (double)(hlo_count(n) / MAX(1, n->d[n->rank - 1]));
    return t + 3 * (rows <= 512 ? params->lbase + 4 : 15 + 3 * rows / 1024);
  }
  return t;
}

/* What only moves to on-chip memory packs its narrow elements even where arithmetic does not. */
static double moves_packed(const CostParams *params, const Kernel *k) {
  double w = 0;
  for (int i = 0; i < k->roots.n; i++) {
    const HNode *n = k->roots.v[i];
    const HValue *v = n->val;
    bool moves = n->kind == H_SLICE || n->kind == H_PAD || n->kind == H_BCAST || k->copy;
    if (moves && v && !v->alias && v->space == SP_VMEM) w += tpu_pack_cost(&params->loop, v);
  }
  return w;
}

/* To fill one such tile, beside what moving its bytes takes. */
static double fill_cost(const CostParams *params) {
  return params->loop.o[2] - params->loop.r[2] + 0.5;
}

#define SMALL_WINDOW 128 /* tiles of a window of a copy on chip that has several */

/* Which dimension of what a copy or a transposition reads its result's dimension d is. */
static int read_dimension(const HNode *n, int d) {
  return n->kind == H_TRANSPOSE ? (int)n->dims[d] : d;
}

/* Tiles of two or four rows of 32-bit elements that a copy fills from tiles which have others beside each
 * other, or a broadcast with what it repeats; 0: it does not. */
static double small_filled(const Kernel *k) {
  const HNode *n = k->roots.v[0], *made = n;
  const HValue *o = n->val, *v = k->reads.n == 1 ? k->reads.v[0] : NULL;
  if (!o || !v || n->rank < 3 || tpu_width(o) < 4) return 0;
  if (n->view && !n->in[0]->val && n->in[0]->lies) made = n->in[0];
  if (k->inner.n > 1 + (made != n)) return 0;
  int64_t rows = made->d[made == n ? o->order[1] : made->lies[1]];
  int lanes = made == n ? o->order[0] : made->lies[0];
  bool copy = (k->copy || made->kind == H_TRANSPOSE) && v->node->rank == made->rank &&
              v->order[0] == read_dimension(made, lanes);
  if ((!copy && (!k->alone || made->kind != H_BCAST)) || rows < 2 || rows > 4) return 0;
  return o->bytes / (rows == 2 ? 1024 : 2048) * tpu_wide(o);
}

/* Bytes of a kernel's memory for a tile: what a copy on chip has more tiles than that is several windows. */
#define COPIED_BYTES 7000

/* A copy inside VMEM. Elements that stay in their lanes go through registers, where narrow ones and those
 * of small tiles are packed anew. */
static double inside_chip(const CostParams *params, const Kernel *k, double tiles) {
  const HValue *v = k->copy_of, *o = k->roots.v[0]->val;
  if (k->roots.v[0]->rows || k->roots.v[0]->lies)
    v = k->reads.v[0]; /* whose first dimensions may be in another order */
  if (k->roots.v[0]->kind == H_TRANSPOSE) v = k->reads.v[0];
  if (!v || v->node->rank < 2 || v->order[0] != read_dimension(k->roots.v[0], o->order[0]))
    return 100 * MAX(1, ceil(tiles / 384));
  double small = small_filled(k), filled = MAX(small, o->tiles), n = 1,
         pack = tpu_pack_cost(&params->loop, o) + o->tiles;
  if (tpu_width(o) >= 4 && small <= 0) return 15 + 0.5 * o->tiles;
  if (small > 0) pack = small * fill_cost(params);
  if (filled > params->scoped / COPIED_BYTES) n = ceil(filled / SMALL_WINDOW);
  return params->lbase + pack + (n - 1) * params->lq;
}

/* Several slices, taken apart in one kernel. */
static bool only_cuts(const Kernel *k) {
  for (int i = 0; i < k->inner.n; i++)
    if (k->inner.v[i]->kind != H_SLICE && k->inner.v[i]->kind != H_RESHAPE) return false;
  return k->roots.n > 1;
}

/* What is not computed is not widened: half of what packing takes. */
static double cut_unpacked(const CostParams *params, const Kernel *k) {
  double w = 0;
  for (int i = 0; i < k->roots.n; i++)
    if (k->roots.v[i]->val && !k->roots.v[i]->val->dropped)
      w += tpu_pack_cost(&params->loop, k->roots.v[i]->val) / 2;
  return w;
}

/* What is made from nothing on chip costs next to nothing in whole registers of 32-bit elements; anything
 * else is written like an array. */
static bool fills_registers(const HNode *n) {
  const HValue *v = n->val;
  if (n->part) return true;
  if (v && tpu_width(v) < 4) return false;
  return n->rank == 1 || !v ? hlo_count(n) > 512 : n->d[v->order[1]] > 4;
}

static void add_reads(Schedule *p, const Kernel *k, Traffic *t) {
  const CostParams *params = p->params;
  for (int i = 0; i < k->reads.n; i++) {
    HValue *v = k->reads.v[i];
    double part = tpu_read_fraction(k, v);
    double read = k->copy && base_of(v)->space != SP_CMEM ? tpu_read_cost(params, &params->loop, v)
                                                          : far_read(p, k, v);
    t->rd += read * part;
    t->slow += read * part * (1 - params->product.r[tpu_width(v)] / params->loop.r[tpu_width(v)]);
    if (v->node->rank > 0) t->any_array = true;
    if (!k->copy || v->space != SP_CMEM) t->bytes += v->bytes * part;
    double small = small_tiles(k, v);
    t->all += v->bytes * part * small;
    t->narrow |= tpu_width(v) == 2;
    t->widest = MAX(t->widest, tpu_width(v));
    if (part >= 1) t->tiles = MAX(t->tiles, held_tiles(v, small));
  }
}

/* A reduction's operand is walked over anyway when a whole array is written as well. */
static bool walked_anyway(const Kernel *k) {
  for (int i = 0; i < k->roots.n && k->reduce; i++) {
    const HNode *n = k->roots.v[i];
    if (n->kind != H_REDUCE && n->val && !n->val->dropped && !n->val->alias && !n->val->lone &&
        n->val->tiles > 16)
      return true;
  }
  return false;
}

/* The estimate charges the window that a reduction walks over, as 4-byte results. */
static void add_walk(const CostParams *params, const Kernel *k, const HNode *n, bool charged,
                     Traffic *t) {
  double tiles = (double)hlo_count(n->in[0]) / 1024; /* bits are packed by a reduction */
  bool narrow = false;
  for (int q = 0; q < k->reads.n; q++) {
    if (hlo_count(k->reads.v[q]->node) != hlo_count(n->in[0])) continue;
    tiles = MAX(tiles, k->reads.v[q]->tiles);
    narrow |= tpu_width(k->reads.v[q]) < 4;
  }
  if (charged) {
    t->wr += tiles * params->product.o[4];
    if (narrow) t->all += tiles * 4096;
  }
  t->tiles = MAX(t->tiles, tiles);
}

static void add_write(const CostParams *params, const Kernel *k, const HNode *n, Traffic *t) {
  HValue *v = n->val;
  double written = far_write(params, v) * rows_together(k, v);
  if (params->fast > 0 && params->keep && tpu_written_in_place(params, n)) /* and out from there */
    written = tpu_pack_cost(&params->loop, v);
  t->wr += written;
  t->slow += written * (1 - params->product.o[tpu_width(v)] / params->loop.o[tpu_width(v)]);
  double small = small_tiles(k, v);
  t->tiles = MAX(t->tiles, held_tiles(v, small));
  t->bytes += v->bytes;
  t->all += small * (tpu_width(v) < 4 && tpu_width(v) <= t->widest ? 2 * v->bytes : v->bytes);
}

static void add_writes(const CostParams *params, const Kernel *k, Traffic *t) {
  bool walked = walked_anyway(k);
  for (int i = 0; i < k->roots.n; i++) {
    HNode *n = k->roots.v[i];
    HValue *v = n->val;
    if (!v || v->dropped || v->alias) continue;
    if (n->kind == H_REDUCE || (v->lone && n->kind != H_DSLICE)) {
      add_walk(params, k, n, !walked, t);
      walked = true;
    } else {
      add_write(params, k, n, t);
    }
    t->any_array |= (v->space == SP_HBM || v->space == SP_CMEM) && v->node->rank > 0;
  }
}

/* What certain loops read and write otherwise than array by array. */
static void adjust(const CostParams *params, const Kernel *k, Traffic *t) {
  for (int i = 0; i < k->inner.n; i++) { /* rows of one image lie apart */
    const HNode *n = k->inner.v[i];
    const HValue *v = n->kind == H_RESHAPE ? n->in[0]->val : NULL;
    if (v && v->is_param && n->rank == 2 && v->node->rank > 2 && v->node->d[v->order[1]] == 1)
      t->rd *= 2;
  }
  if (only_cuts(k)) t->wr -= cut_unpacked(params, k);
  t->wr -= tpu_packed_twice(params, &params->loop, k);
  if (params->nopack) t->wr += moves_packed(params, k);
  double small = small_filled(k);
  if (small <= 0) return;
  const HValue *from = k->reads.v[0], *to = k->roots.v[0]->val;
  t->rd = base_of(k->reads.v[0])->space == SP_HBM ? from->bytes / 4096 * params->loop.r[4] : 0;
  t->wr =
      small * fill_cost(params) + (to->space == SP_HBM ? to->bytes / 4096 * params->loop.o[4] : 0);
  t->tiles = MAX(t->tiles, small);
}

/* Cycles of the vector unit. */
static double computing(const CostParams *params, const Kernel *k, double spread, Traffic *t) {
  const HNode *root = k->roots.v[0];
  double before, comp = tpu_vector_work(params, k, &before) * params->lvpu +
                        tpu_turned_rows(k) * params->row + spread;
  if (k->alone && !k->reduce)
    comp = MIN(comp, t->tiles * params->lvpu); /* all unfused operations alike */
  if (k->alone && k->reduce && params->scoped > 16 << 20) comp = 0;
  if (root->kind == H_CONCAT && !tpu_written_in_place(params, root))
    comp += joining(params, root, t->tiles, &t->rd);
  return comp;
}

void tpu_loop(Schedule *p, Kernel *k) {
  const CostParams *params = p->params;
  Traffic t = {0};
  add_reads(p, k, &t);
  add_writes(params, k, &t);
  adjust(params, k, &t);
  const HNode *root = k->roots.v[0];
  double spread = tpu_spread_rows(k) * params->spread;
  double comp = computing(params, k, spread, &t);
  bool moved = root->kind == H_TRANSPOSE && k->inner.n == 1 && root->val && k->reads.n == 1 &&
               root->rank >= 2 && root->dims[root->val->order[0]] != k->reads.v[0]->order[0];
  k->vpu = comp;
  k->parts.start = params->lbase, k->parts.reads = t.rd, k->parts.writes = t.wr;
  k->parts.vector = comp;
  k->cycles = loop_cycles(params, k, &t, comp, &k->windows);
  if (spread > 0 && t.wr <= 0) /* with nothing to write, reading hides nothing */
    k->cycles = MAX(k->cycles, params->lbase + t.rd + comp);
  if (!t.any_array)
    k->cycles =
        root->rank == 0 || fills_registers(root) ? 15 + t.tiles * 0.25 : params->lbase + 2 + t.wr;
  k->cycles += counters(params, k);
  if (k->copy && k->reads.n == 1 && k->reads.v[0]->space != SP_HBM && k->roots.v[0]->val &&
      k->roots.v[0]->val->space == SP_VMEM)
    k->cycles = inside_chip(params, k, t.tiles);
  bool joins = lanes_split(k);
  if ((k->turns || moved || joins) && root->val)
    k->cycles = turn_cycles(params, k->reads.v[0], root->val, joins, &k->windows);
  k->bound = comp > t.rd + t.wr              ? SIM_VECTOR
             : k->cycles < 2 * params->lbase ? SIM_LATENCY
                                             : SIM_MEMORY;
  k->util = MIN(1, MAX(comp, t.rd + t.wr) / MAX(k->cycles, 1));
}

/* A slice written in place into a larger array: a loop over the slice. libtpu estimates it where it
 * is fused with what computes the slice, or runs in a loop. */
void tpu_update(Schedule *p, Kernel *k) {
  const CostParams *params = p->params;
  double rd = 0, wr = 0, bytes = 0;
  for (int i = 0; i < k->reads.n; i++) {
    HValue *v = k->reads.v[i];
    if (tpu_written_into(k, v)) continue;
    double part = tpu_read_fraction(k, v);
    rd += far_read(p, k, v) * part;
    bytes += v->bytes * part;
  }
  for (int i = 0; i < k->roots.n; i++) {
    const HNode *r = k->roots.v[i];
    if (!r->val) continue;
    double part = tpu_written_part(r);
    wr += tpu_write_cost(params, &params->loop, r->val) * part;
    bytes += r->val->bytes * part;
  }
  wr -= tpu_packed_twice(params, &params->loop, k);
  double R = MAX(1, ceil(ceil(2 * bytes / (params->scoped * 0.985)) / params->cores));
  k->windows = (int)R;
  double before, work = tpu_vector_work(params, k, &before);
  k->cycles = params->lbase + rd + wr + (R - 1) * params->lq + work * params->lvpu / R;
  const HNode *one = k->roots.n == 1 && k->roots.v[0]->kind == H_DUS ? k->roots.v[0] : NULL;
  if (one && one->n_in > 1 && hlo_count(one->in[1]) == 1 && hlo_count(one) <= 1024)
    k->cycles = 15; /* one number, by the scalar unit */
  k->bound = SIM_MEMORY;
  k->util = MIN(1, (rd + wr) / k->cycles);
  const HNode *first = k->roots.v[0];
  const int lane = first->rank > 1 ? first->val->order[0] : 0;
  bool plain = k->inner.n <= 1 &&
               (tpu_width(first->val) >= 4 || first->rank < 2 || lane == first->rank - 1 ||
                (first->n_in > 1 && first->in[1]->d[lane] != first->d[lane]));
  k->modelled = !p->comp->parent && plain;
  k->costed = !k->modelled;
}
