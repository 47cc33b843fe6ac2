/* The cost of one kernel on a TPU, as the compiler's own model has it: windows stream from HBM into
 * VMEM while the previous ones compute, and the compiler takes the windows with the least estimate.
 * With
 *
 *   in, out   cycles to move one window's operands and results     comp  cycles that one window
 * computes cycles = base + in(first) + sum over windows of max(comp + w, in + out + q) + comp(last)
 * + out(last)
 *
 * and products counted as tiles of weights pushed into the array and rows streamed through it,
 * choosing the least over all windows that fit the scoped VMEM reproduces the compiler's estimate
 * of plain matrix products to 0.1 to 0.3 % (median, v5e and later), 1 to 3 % on v2 to v4.
 * Coefficients: fit.* in the chip files. */
#include <math.h>
#include <stdlib.h>

#include "sim/tpu/cost.h"
#include "sim/tpu/tpu.h"

/* Bytes read and written in device memory. */
static double traffic(const Kernel *k) {
  double b = 0;
  for (int i = 0; i < k->reads.n; i++)
    if (k->reads.v[i]->space == SP_HBM)
      b += k->reads.v[i]->bytes * tpu_read_fraction(k, k->reads.v[i]);
  for (int i = 0; i < k->roots.n; i++) {
    const HValue *v = k->roots.v[i]->val;
    if (v && !v->dropped && v->space == SP_HBM && !v->alias) b += v->bytes;
    b += sched_results_bytes(k->roots.v[i], SP_HBM);
  }
  return b;
}

#define NARROW_MOVE 0.75 /* of what wide elements take to be relaid on the way */
#define POOLED \
  0.7 /* of a register's part in a depthwise convolution: a window, whatever its size */

/* Vector work of a window over out tiles of results. Inside a tile, and without on-chip memory for
 * values, each tap counts; a running sum over all of a dimension is doubled in so many steps. */
static double window_work(const CostParams *params, const HNode *w, const HValue *ov, double out) {
  const HNode *x = w->in[0]->kind == H_PAD ? w->in[0]->in[0] : w->in[0];
  double taps = 1, steps = 0, in = (double)hlo_count(x) / 1024; /* holes and edges left out */
  bool inside = !params->prefetch;
  for (int d = 0; d < w->rank; d++) {
    bool outside = ov && ov->node->rank == w->rank && d != ov->order[0] && d != ov->order[1];
    bool all = outside && w->lo[d] > 8 && w->lo[d] >= w->in[0]->d[d] && w->d[d] == w->in[0]->d[d];
    taps *= (double)w->lo[d];
    inside |= !outside && w->lo[d] > 1;
    if (all) steps += ceil(log2((double)w->lo[d]));
    if (w->step) in /= (double)MAX(1, w->step[d]);
  }
  if (inside) steps = taps > 4 ? taps : 0;
  else if (steps <= 0) return out * POOLED * params->dw * params->vhalf;
  return MIN(out, in) * steps * params->dw / 4 * (hlo_bits(w->dt) < 32 ? params->vhalf : 1);
}

/* A mask whose bits are packed is unpacked by a kernel of its own before a windowed reduction: that
 * writes a byte an element. */
static double unpacked_before(const CostParams *params, const Kernel *k) {
  double cycles = 0;
  for (int i = 0; i < k->reads.n; i++) {
    const HValue *v = k->reads.v[i];
    if (v->packed) cycles += params->lbase + v->tiles * v->packed * params->loop.o[1];
  }
  return cycles;
}

/* Windowed reductions: estimated as a product is, when the compiler has an emitter for them (the
 * window's dimensions outside the tile, whole lanes); otherwise without an estimate. */
static void cost_pool(Schedule *p, Kernel *k) {
  const CostParams *params = p->params;
  double rd = 0, wr = 0, out = 0;
  const HValue *ov = NULL;
  for (int i = 0; i < k->roots.n; i++) {
    const HValue *v = k->roots.v[i]->val;
    if (!v) continue;
    wr += v->tiles * params->product.o[tpu_width(v)];
    out += v->tiles;
    ov = v;
  }
  bool far = false;
  double work = 0; /* a relayout that is fused in; elements of each window */
  for (int i = 0; i < k->reads.n; i++) {
    const HValue *v = k->reads.v[i];
    rd += tpu_read_cost(params, &params->product, k->reads.v[i]);
    far |= base_of(k->reads.v[i])->space == SP_HBM && v->node->rank > 0;
    if (ov && v->node->rank == ov->node->rank && v->node->rank > 1 &&
        (v->order[0] != ov->order[0] || v->order[1] != ov->order[1]))
      work += v->tiles * params->fmove * (tpu_width(v) < 4 ? NARROW_MOVE : 1);
  }
  for (int i = 0; i < k->inner.n; i++)
    if (k->inner.v[i]->kind == H_RWIN && k->inner.v[i]->lo)
      work += window_work(params, k->inner.v[i], ov, out);
  double base =
      params->base; /* half of the start is for what comes from far, unless params->lat is */
  if (!far && params->prefetch && params->lat <= 0)
    base -= (params->base - params->base0 - params->base_out) / 2;
  double n = MAX(1, ceil(out / (900 * params->scoped / (16 << 20))));
  double R = ceil(n / (n > 1 ? params->cores : 1));
  k->windows = (int)n;
  k->cycles = base + (rd + wr + work) / R + (R - 1) * MAX((rd + wr) / R + params->q, work / R);
  k->bound = SIM_MEMORY;
  k->util = MIN(1, (rd + wr) / k->cycles);
  k->cycles += unpacked_before(params, k);
}

/* A softmax in one kernel: rows are read once and written once, and walked over on chip for the largest,
 * for the sum and for the quotients, most of which is for what arrives. Beside both a window holds a tile of
 * 32-bit numbers twice. */
#define THERE 0.2 /* of the walks, where rows are on chip */
static void cost_softmax(Schedule *p, Kernel *k) {
  const CostParams *params = p->params;
  double rd = 0, wr = 0, bytes = 0, work = 0;
  for (int i = 0; i < k->reads.n; i++)
    rd += tpu_read_cost(params, &params->product, k->reads.v[i]), bytes += k->reads.v[i]->bytes;
  for (int i = 0; i < k->roots.n; i++) {
    HValue *v = k->roots.v[i]->val;
    if (!v) continue;
    wr += tpu_write_cost(params, &params->product, v), bytes += v->bytes + v->tiles * 4096;
    work = MAX(work, v->tiles * params->soft[tpu_width(v) < 4 ? 2 : 4]);
  }
  double n = MAX(1, ceil(2 * bytes / params->scoped)), R = ceil(n / (n > 1 ? params->cores : 1));
  k->windows = (int)n;
  double arrives = rd > 0 ? params->lbase + work : THERE * work;
  k->cycles = params->base + rd + wr + arrives + (R - 1) * params->q;
  k->bound = SIM_MEMORY;
  k->util = MIN(1, (rd + wr) / k->cycles);
}

/* Slots of the vector unit for 1024 random words: the core's own generator, and counted out in rounds of additions,
 * rotations and multiplications; and to make a normal number of one (erf_inv). */
#define HARDWARE_SLOTS 4
#define ROUNDS_SLOTS 60
#define NORMAL_SLOTS 50

static double random_cycles(const CostParams *params, const HNode *n) {
  int last = n->n_results > 1 ? n->n_results - 1 : 0;
  double all = n->n_results > 1 ? 1 : (double)hlo_count(n), slots = HARDWARE_SLOTS;
  for (int i = 0; n->n_results > 1 && i < n->res_rank[last]; i++) all *= (double)n->res_d[last][i];
  DType type = n->n_results > 1 ? n->res_dt[last] : n->dt;
  Str how = n->src && n->op == OP_RNG_BIT_GENERATOR ? op_str(n->src, "rng_algorithm") : (Str){0};
  if (str_is(how, "THREE_FRY") || str_is(how, "PHILOX")) slots = ROUNDS_SLOTS;
  if (n->src && n->op == OP_RNG && str_is(op_str(n->src, "rng_distribution"), "NORMAL"))
    slots += NORMAL_SLOTS;
  return all / 1024 * MAX(1, hlo_bits(type) / 32) * slots * params->lvpu;
}

/* Linear algebra, transforms, and calls that say what they cost (their bytes stand for operands and results then). */
static double other_cycles(const Schedule *p, Kernel *k, const HNode *n, double *rd, double *wr) {
  Linalg a;
  CallCost call;
  if (hlo_linalg(n, &a)) {
    k->flops += a.flops;
    return tpu_linalg_cycles(p->chip, p->params, &a);
  }
  if (!hlo_call_cost(n, &call)) {
    k->unknown = hlo_unknown_call(n);
    return 0;
  }
  k->flops += call.flops;
  k->bytes = call.bytes;
  *rd = call.bytes / p->chip->hbm_bandwidth * p->params->clock, *wr = 0;
  return call.flops / p->chip->peak_flops * p->params->clock;
}

/* Gathers, scatters, sorts and the like carry no estimate in the compiler: modelled from what they
 * move. */
static void cost_irregular(Schedule *p, Kernel *k) {
  const CostParams *params = p->params;
  const HNode *n = k->roots.v[0];
  double rd = 0, wr = 0, passes = 1, latency = 0;
  for (int i = 0; i < k->reads.n; i++)
    rd += k->reads.v[i]->tiles * params->loop.r[tpu_width(k->reads.v[i])];
  for (int i = 0; i < k->roots.n; i++)
    if (k->roots.v[i]->val)
      wr += k->roots.v[i]->val->tiles * params->loop.o[tpu_width(k->roots.v[i]->val)];
  double rows = 0;
  double other = 0;
  if (n->kind == H_RNG || n->kind == H_OTHER)
    wr += sched_results_bytes(n, SP_HBM) / 4096 * params->loop.o[4];
  switch (n->kind) {
  case H_RNG: other = random_cycles(params, n); break;
  case H_OTHER: other = other_cycles(p, k, n, &rd, &wr); break;
  case H_GATHER: {
    int64_t idx = n->n_in > 1 ? hlo_count(n->in[1]) : 1;
    rd = wr;
    rows = (double)MIN(idx, hlo_count(n));
    latency = rows * 12; /* one row a descriptor */
    break;
  }
  case H_SCATTER: {
    int64_t idx = n->n_in > 1 ? hlo_count(n->in[n->n_in / 2]) : 1;
    rows = (double)idx;
    latency = rows * 25;
    rd = wr = 0;
    for (int i = 0; i < k->reads.n; i++)
      rd += k->reads.v[i]->tiles * params->loop.r[tpu_width(k->reads.v[i])];
    break;
  }
  case H_RWIN: passes = 1; break;
  case H_SORT: {
    double len = 1;
    const HNode *x = n->in[0];
    if (x->rank) len = (double)x->d[x->rank - 1];
    passes = MAX(1, log2(len + 1) * (log2(len + 1) + 1) / 2);
    rd = (double)hlo_count(x) / 1024 * passes * 1.1;
    wr = 0;
    break;
  }
  default: break;
  }
  k->cycles = params->lbase + MAX(other, rd + wr) + latency;
  k->bound = latency > rd + wr ? SIM_LATENCY : other > rd + wr ? SIM_COMPUTE : SIM_MEMORY;
  k->util = MIN(1, (rd + wr) / k->cycles);
  k->modelled = true;
}

/* A slice of every so many elements, on its own, or a pad between those of an array, but along a matrix'
 * lanes alone. */
static bool skips(const Kernel *k) {
  const HNode *n = k->roots.v[0];
  if (n->kind == H_PAD && k->inner.n <= 2 && n->rank > 1)
    for (int d = 0; d < n->rank; d++)
      if (n->step[d] > 0) return n->rank > 2 || !n->val || d != n->val->order[0];
  if (n->kind != H_SLICE || k->inner.n > 1 || !n->step) return false;
  for (int d = 0; d < n->rank; d++)
    if (n->step[d] > 1) return n->rank > 1;
  return false;
}

/* Elements spread apart along lanes: a product with a matrix of zeros and ones, in three passes. 0 for other
 * kernels. */
static double spreading(const CostParams *params, const Kernel *k, int *windows) {
  const HNode *n = k->roots.v[0];
  if (n->kind != H_PAD || k->inner.n > 2 || n->rank != 2 || !n->val || k->reads.n < 1) return 0;
  int d = n->val->order[0];
  if (n->step[d] < 1 || n->step[1 - d] > 0) return 0;
  double from = params->side, to = round_up((double)n->d[d], params->side); /* block by block */
  double others = (double)n->d[1 - d];
  int w = tpu_width(n->val);
  double cut = 0; /* of what the last block has too much */
  if (n->in[0]->d[d] % 128)
    cut = params->lbase +
          n->val->tiles *
              (params->loop.o[w] + params->loop.r[w] * (params->fast > 0 ? params->lvm : 1));
  *windows = 1;
  return params->base + tpu_read_cost(params, &params->loop, k->reads.v[0]) +
         tpu_write_cost(params, &params->loop, n->val) + cut +
         3 * round_up(others, 8) * from * to / params->macs;
}

/* A reshape of its own, from the natural order to the natural order. */
static bool moves_elements(const Kernel *k) {
  const HNode *n = k->roots.v[0];
  if (!k->copy || n->kind != H_RESHAPE || k->reads.n != 1) return false;
  const HValue *v = k->reads.v[0], *o = n->val;
  if (!o || (v->node->rank < 2 && !n->lies)) return false;
  if (n->rows && n->in[0]->rows && !n->part) return true;
  if (n->lies) return !n->view && !n->copies;
  int r = v->node->rank;
  if (n->rank < 2) return v->node->d[r - 1] % 128 || v->node->d[r - 2] % 8;
  for (int d = 0; d < 2; d++)
    if (v->order[d] != v->node->rank - 1 - d || o->order[d] != n->rank - 1 - d) return false;
  bool tiles_stay = v->node->d[r - 1] == n->d[n->rank - 1] && v->node->d[r - 2] % 8 == 0 &&
                    n->d[n->rank - 2] % 8 == 0;
  return !tiles_stay; /* else a plain copy */
}

#define SLIVER \
  512 /* of the largest piece's length is that of the least: between 128 and 700 times */

/* Slivers on both sides of an array: put together by an operation of its own. */
static bool slivers(const Kernel *k) {
  const HNode *n = k->roots.v[0];
  int64_t least = INT64_MAX, most = 0;
  if (n->kind != H_CONCAT || n->n_in < 3) return false;
  for (int i = 0; i < n->n_in; i++) {
    int64_t d = n->in[i]->d[n->index];
    least = MIN(least, d), most = MAX(most, d);
  }
  return most > SLIVER * least;
}

/* Is it reversed along a dimension of its tiles? */
static bool turns_round(const HNode *n) {
  for (int i = 0; i < n->n_dims && n->kind == H_REVERSE && n->val; i++)
    if (n->rank < 2 || n->dims[i] == n->val->order[0] || n->dims[i] == n->val->order[1])
      return true;
  return false;
}

static bool updates(const Kernel *k) {
  for (int i = 0; i < k->roots.n; i++)
    if (k->roots.v[i]->kind == H_DUS) return true;
  return false;
}

#define SUM_SLOTS \
  10 /* instruction slots to widen a register of a product's result and to add it up */

/* The sum of a loop's state is taken by the product that makes the state's next value, and once
 * before the loop: the share of the kernel's time that a round has. */
static double share_of_round(const Schedule *p, const Kernel *k) {
  const HComp *c = p->comp;
  if (!p->params->rotates || !p->loop_body || !p->parent || k->conv || k->roots.n != 1 ||
      k->reads.n != 1 || k->roots.v[0]->kind != H_REDUCE || hlo_count(k->roots.v[0]) > 1)
    return 1;
  for (int i = 0; i < c->params.n && i < c->outputs.n; i++) {
    const HValue *o = c->outputs.v[i]->val;
    if (c->params.v[i]->val != k->reads.v[0] || !o || o->kernel < 0 || o->node->comp != c) continue;
    if (p->kernels.v[o->kernel]->conv && p->mult > p->parent->mult)
      return p->parent->mult / p->mult;
  }
  return 1;
}

/* Attention by a kernel of its own (Pallas' splash attention). */
static void cost_attention(const Schedule *p, Kernel *k) {
  const Chip *c = p->chip;
  double flops = 0;
  for (int i = 0; i < k->inner.n; i++)
    if (k->inner.v[i]->conv) flops += (double)k->inner.v[i]->conv->flops;
  if (attention_causal(k)) flops /= 2;
  double compute = flops / (c->peak_flops * ATTENTION), data = k->bytes / c->hbm_bandwidth;
  k->time_s = MAX(compute, data);
  k->cycles = k->time_s * p->params->clock;
  k->bound = compute > data ? SIM_COMPUTE : SIM_MEMORY;
  k->util = MIN(1, k->flops / c->peak_flops / k->time_s);
  k->modelled = true;
  k->costed = false;
}

/* What other devices have written on chip goes to a result as it lies: a transfer without an estimate. v4's
 * common memory takes its cores. */
static void received(const Schedule *p, Kernel *k) {
  if (!k->copy || k->reads.n != 1) return;
  const HValue *from = base_of(k->reads.v[0]), *to = k->roots.v[0]->val;
  if (from->node->kind != H_COLL || from->space == SP_HBM) return;
  if (p->params->cmem > 0) {
    k->cycles = p->params->lbase + to->tiles * p->params->loop.o[tpu_width(to)];
    return;
  }
  k->cycles = to->bytes / p->chip->hbm_bandwidth * p->params->clock;
  k->costed = false, k->modelled = true;
}

/* A product of nothing, or of no terms: what there is of its result is filled with zeros. */
static void cost_nothing(Schedule *p, Kernel *k) {
  k->cycles = p->params->lbase;
  for (int i = 0; i < k->roots.n; i++)
    if (k->roots.v[i]->val)
      k->cycles += tpu_write_cost(p->params, &p->params->loop, k->roots.v[i]->val);
  k->bound = SIM_LATENCY;
  k->windows = 1;
}

void tpu_cost(Schedule *p, Kernel *k) {
  const HNode *root = k->roots.n ? k->roots.v[0] : NULL;
  k->bytes = traffic(k);
  for (int i = 0; i < k->inner.n; i++) {
    const HNode *n = k->inner.v[i];
    if (attention_again(k, n)) continue;
    if (n->conv) k->flops += (double)n->conv->flops;
    else if (n->kind == H_EWISE) k->flops += (double)hlo_count(n);
    else if (n->kind == H_REDUCE) k->flops += (double)hlo_count(n->in[0]);
  }
  if (!root) return;
  k->costed = true;
  if (root->kind == H_COLL) {
    k->collective = k->modelled = true;
    k->costed = false;
    k->time_s = collective_time(p, k, root);
    if (k->time_s <= 0) k->bytes = 0; /* a device's own number */
    k->cycles = k->time_s * p->params->clock;
    k->bound = SIM_NETWORK;
    k->util = 1;
    return;
  }
  if (k->attention) return cost_attention(p, k);
  if (k->conv && !(k->conv->conv->flops > 0)) {
    cost_nothing(p, k);
  } else if (k->conv) {
    tpu_product(p, k);
  } else if (updates(k)) {
    tpu_update(p, k);
  } else if (tpu_running_sum(k, NULL)) {
    tpu_scan(p, k);
  } else if (k->pool) {
    cost_pool(p, k);
  } else if (k->soft && root->kind != H_REDUCE) {
    cost_softmax(p, k);
  } else if (root->kind == H_REDUCE || hlo_light(root) || root->kind == H_CONCAT ||
             root->kind == H_DSLICE) {
    tpu_loop(p, k);
    double t = spreading(p->params, k, &k->windows);
    if (t > 0) k->cycles = t;
    received(p, k);
  } else {
    cost_irregular(p, k);
    k->costed = root->op == OP_BITCAST_CONVERT;
    k->modelled = !k->costed;
  }
  if (moves_elements(k) || skips(k) || slivers(k) || turns_round(root) || tpu_joins_parts(root) ||
      (tpu_slice_of_tiles(p, k) && root->val->space == SP_VMEM))
    k->costed = false, k->modelled = true; /* no estimate exists */
  double share = share_of_round(p, k);
  k->cycles *= share;
  if (share < 1 && p->params->cores > 1) /* the rest, beside the product */
    k->cycles += SUM_SLOTS * p->params->lvpu * k->reads.v[0]->tiles;
  k->est = k->cycles;
  if (k->must_copy) { /* the operand must survive: it is copied before it is changed */
    HValue *v = root->val;
    double bytes = 2 * v->bytes, n = MAX(1, ceil(2 * bytes / (p->params->scoped * 0.985)));
    double R = ceil(n / (n > 1 ? p->params->cores : 1));
    k->est = p->params->lbase +
             v->tiles * (p->params->loop.r[tpu_width(v)] + p->params->loop.o[tpu_width(v)]) +
             (R - 1) * p->params->lq;
    k->cycles += k->est;
    k->costed = true;
  }
  k->time_s = k->cycles / p->params->clock;
}
