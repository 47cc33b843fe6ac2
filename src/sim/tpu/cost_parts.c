/* What the cost of any kernel on a TPU is made of: moving operands and results between memories,
 * and the vector work of what is computed inside. */
#include <math.h>
#include <stdlib.h>

#include "sim/hlo/query.h"
#include "sim/tpu/cost.h"
#include "sim/tpu/tpu.h"

int tpu_width(const HValue *v) {
  if (v->rounded) return 2;
  double b = hlo_bits(v->node->dt) / 8;
  return b >= 4 ? 4 : b >= 2 ? 2 : 1;
}

double tpu_wide(const HValue *v) { return MAX(1, hlo_bits(v->node->dt) / 32); }

double tpu_base_bytes(const HValue *v) {
  while (v->alias) v = v->alias;
  return v->space == SP_HBM || v->space == SP_CMEM ? v->bytes : 0;
}

double tpu_read_cost(const CostParams *params, const Rates *at, HValue *v) {
  while (v->alias) v = v->alias;
  if (v->space == SP_VMEM || v->space == SP_SCALAR) return 0;
  if (v->space == SP_CMEM) return v->tiles * params->c[tpu_width(v) == 4 ? 4 : 2];
  return v->tiles * at->r[tpu_width(v)] * tpu_wide(v);
}

/* A narrow result is packed from 32-bit registers; the estimate charges that even when the result
 * stays on chip. */
double tpu_pack_cost(const Rates *at, const HValue *v) {
  int w = tpu_width(v);
  return w < 4 ? v->tiles * (at->o[w] - at->r[w]) : 0;
}

/* Results go to the shared memory as slowly as to device memory. */
double tpu_write_cost(const CostParams *params, const Rates *at, const HValue *v) {
  if (v->dropped || v->space == SP_SCALAR) return 0;
  if (v->space == SP_VMEM) return params->nopack ? 0 : tpu_pack_cost(at, v);
  return v->tiles * at->o[tpu_width(v)] * tpu_wide(v);
}

#define INSIDE -1 /* marks of what a kernel computes, */
#define BEFORE -2 /* of it, of what its product's operands are made of */

static void mark_before(HNode *n) {
  if (n->visit != INSIDE) return;
  n->visit = BEFORE;
  for (int i = 0; i < n->n_in; i++) mark_before(n->in[i]);
}

/* Registers that an operation loads from memory: its operands that another kernel made, and what is
 * repeated along a dimension. Constants and single numbers are parts of the instruction. */
static int loads(const HNode *n) {
  bool whole = n->kind == H_EWISE || n->kind == H_RESHAPE || n->kind == H_TRANSPOSE;
  int sum = 0;
  for (int i = 0; i < (whole ? n->n_in : n->kind == H_REDUCE ? n->n_in / 2 : 0); i++) {
    const HNode *x = n->in[i];
    bool repeated = false;
    for (; (x->kind == H_BCAST || x->kind == H_BARRIER) && !x->val; x = x->in[0])
      repeated |= x->kind == H_BCAST;
    if ((x->kind != H_CONST || !x->splat) && hlo_count(x) > 1) sum += repeated || x->visit >= 0;
  }
  return sum;
}

/* Instruction slots that the nodes computed inside take, and *before of them for a product's operands;
 * products left out. What a loop loads and what either stores first is part of what moving it
 * costs. */
double tpu_vector_work(const CostParams *params, const Kernel *k, double *before) {
  double w = 0, first_load = 0, first_store = 0;
  *before = 0;
  for (int i = 0; i < k->inner.n; i++) k->inner.v[i]->visit = INSIDE;
  for (int i = 0; k->conv && i < 2; i++) mark_before(k->conv->in[i]);
  for (int i = 0; i < k->inner.n; i++) {
    const HNode *n = k->inner.v[i];
    if (n->kind == H_CONV) continue;
    double c = (double)hlo_count(n->kind == H_REDUCE ? n->in[0] : n);
    if (c <= 1024) continue;
    double ops = op_weight(n);
    if (k->conv && n->kind == H_REDUCE) ops = 2; /* a product's results are widened first */
    bool half = params->vhalf < 1 && ops < 30 && !k->conv && /* a sine is computed in f32 */
                (n->dt == DT_BF16 || (n->op == OP_COMPARE && n->in[0]->dt == DT_BF16));
    if (n->kind == H_EWISE && (dtype_class(n->dt) == DC_SINT || dtype_class(n->dt) == DC_UINT))
      ops *= params->iw;
    int from = loads(n);
    if (from > 0 && !k->conv) first_load = MAX(first_load, c / 1024 * (half ? params->vhalf : 1));
    double slots = (ops + from) * c / 1024 * (half ? params->vhalf : 1);
    w += slots;
    if (n->visit == BEFORE) *before += slots;
  }
  for (int i = 0; i < k->roots.n; i++) {
    const HValue *v = k->roots.v[i]->val;
    double c = (double)hlo_count(k->roots.v[i]) / 1024 * tpu_written_part(k->roots.v[i]);
    if (!v || v->dropped || v->alias || c <= 1) continue;
    first_store = MAX(first_store, c);
    w += c;
  }
  return MAX(0, w - first_load - first_store);
}

/* A softmax, or what goes backwards through one, has its rows in lanes already. */
static bool rows_in_lanes(const Kernel *k) {
  for (int i = 0; i < k->inner.n; i++)
    if (k->inner.v[i]->inlined || k->inner.v[i]->soft) return true;
  for (int i = 0; i < k->reads.n; i++)
    if (k->reads.v[i]->node->soft) return true;
  return false;
}

static bool spreads_rows(const HNode *n) {
  return n->kind == H_BCAST && n->rank >= 2 && hlo_count(n->in[0]) >= 8 && !hlo_const_only(n);
}

/* Registers that such a kernel fills with row values, one lane each. */
double tpu_spread_rows(const Kernel *k) {
  double sum = 0;
  for (int i = 0; i < k->inner.n && !k->conv && rows_in_lanes(k); i++)
    if (spreads_rows(k->inner.v[i])) sum += (double)hlo_count(k->inner.v[i]) / 1024;
  return sum;
}

/* Values along rows lie in lanes; repeating them over the lanes of their row turns them first.
 * Registers turned this way by the broadcasts inside a kernel. */
double tpu_turned_rows(const Kernel *k) {
  double sum = 0;
  if (rows_in_lanes(k)) return 0;
  for (int i = 0; i < k->inner.n; i++) {
    const HNode *n = k->inner.v[i];
    if (!spreads_rows(n)) continue;
    int lane = n->rank - 1;
    for (int r = 0; r < k->reads.n + k->roots.n; r++) {
      const HValue *v = r < k->reads.n ? k->reads.v[r] : k->roots.v[r - k->reads.n]->val;
      if (!v || v->node->rank < 1 || hlo_count(v->node) != hlo_count(n)) continue;
      if (v->node->rank == n->rank) lane = v->order[0];
      else if (v->order[0] == 0 && v->node->d[0] == n->d[0])
        lane = 0; /* its first dimension stays */
      else continue;
      break;
    }
    bool along = true;
    for (int q = 0; q < n->n_dims; q++) along &= n->dims[q] != lane;
    if (along) sum += MIN((double)hlo_count(n->in[0]) / 8, (double)hlo_count(n) / 1024);
  }
  return sum;
}

/* The part of a value that a slice of it touches, in whole tiles. */
static double slice_part(const HValue *v, const HNode *n) {
  double part = 1;
  for (int i = 0; i < n->rank && i < v->node->rank; i++) {
    int d = v->order[i];
    double all = (double)v->node->d[d], span = (double)n->d[d];
    if (n->kind == H_SLICE && n->lo && n->hi) span = (double)(n->hi[d] - n->lo[d]);
    double unit = v->node->rank < 2 ? 1 : i == 0 ? 128 : i == 1 ? 8 : 1;
    part *= MIN(1, round_up(span, unit) / round_up(MAX(all, 1), unit));
  }
  return part;
}

/* The part of a value that the kernel reads: less than all when it only takes slices of it, more where
 * these overlap: each is read on its own. */
double tpu_read_fraction(const Kernel *k, const HValue *v) {
  double part = 0, all = (double)hlo_count(v->node);
  if (all <= 0) return 1;
  for (int i = 0; i < k->inner.n; i++) {
    const HNode *n = k->inner.v[i];
    for (int q = 0; q < n->n_in; q++) {
      if (n->in[q] != v->node) continue;
      if (q > 0 || (n->kind != H_SLICE && n->kind != H_DSLICE && n->kind != H_GATHER)) return 1;
      part += n->kind == H_GATHER || n->rank != v->node->rank ? (double)hlo_count(n) / all
                                                              : slice_part(v, n);
    }
  }
  return part > 0 ? part : 1;
}

/* Bytes of on-chip memory that are kept for a kernel's windows, where that is settled kernel by
 * kernel: two windows of everything that it reads and writes, if they hold it all. Operations that
 * are not fused, loops, and what has no window, get the most that there is. */
double tpu_windows(const CostParams *params, const Kernel *k) {
  const HNode *root = k->roots.n ? k->roots.v[0] : NULL;
  bool plain = root && (k->conv || k->reduce || k->copy || hlo_light(root) || root->kind == H_DUS);
  if (!plain || k->scalar || k->attention || (k->alone && k->reduce)) return params->scoped;
  double all = 0;
  for (int r = 0; r < k->reads.n; r++)
    if (!tpu_written_into(k, k->reads.v[r]))
      all += k->reads.v[r]->bytes * tpu_read_fraction(k, k->reads.v[r]);
  for (int r = 0; r < k->roots.n; r++)
    if (k->roots.v[r]->val && !k->roots.v[r]->val->dropped)
      all += k->roots.v[r]->val->bytes * tpu_written_part(k->roots.v[r]);
  double need = params->windows + 2 * all;
  return need <= params->scoped ? need : params->scoped * (k->conv ? 1 : 0.7);
}

/* Is this the array that the kernel writes a slice into? */
bool tpu_written_into(const Kernel *k, const HValue *v) {
  for (int q = 0; q < k->roots.n; q++)
    if (k->roots.v[q]->kind == H_DUS && v->node == k->roots.v[q]->in[0]) return true;
  return false;
}

/* The part of a result that is written: a slice of what is updated in place. */
double tpu_written_part(const HNode *r) {
  return r->kind == H_DUS && r->n_in > 1
             ? (double)hlo_count(r->in[1]) / (double)MAX(1, hlo_count(r))
             : 1;
}

/* Results are packed from the same registers: what is counted too much when there are several of the
 * kernel's size, or a wide one, which needs no packing. */
double tpu_packed_twice(const CostParams *params, const Rates *at, const Kernel *k) {
  double all = 0, most = 0;
  int64_t size = k->conv ? hlo_count(k->conv) : 0;
  bool wide = false;
  for (int i = 0; i < k->roots.n; i++) {
    const HValue *v = k->roots.v[i]->val;
    if (!v || v->dropped || v->alias || v->space == SP_SCALAR) continue;
    const HNode *n = k->roots.v[i]->kind == H_DUS ? k->roots.v[i]->in[1] : v->node;
    if (k->conv && hlo_count(n) != size) continue;
    if (!k->conv && (n->kind == H_REDUCE || v->space != SP_VMEM)) continue;
    double pack = v->space == SP_VMEM && params->nopack ? 0 : tpu_pack_cost(at, v);
    pack *= tpu_written_part(k->roots.v[i]);
    wide |= tpu_width(v) >= 4;
    all += pack;
    most = MAX(most, pack);
  }
  return wide && k->conv ? all : all - most;
}
