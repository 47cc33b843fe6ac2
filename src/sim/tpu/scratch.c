/* Memory that a TPU's kernels need besides operands and results, and where they may write over operands. */
#include <math.h>

#include "sim/schedule/schedule.h"
#include "sim/tpu/tpu.h"

/* 1: x is computed from `from` by element-wise steps of one kernel, none of which takes in a
 * broadcast array; 0: not from it; -1: by others. */
static int plain_path(const HNode *from, const HNode *x, int *budget) {
  if (x == from) return 1;
  if (--*budget < 0) return -1;
  if (x->kind != H_EWISE) return 0;
  int way = 0;
  bool spread = false;
  for (int i = 0; i < x->n_in; i++) {
    const HNode *y = x->in[i];
    if (y->val && y != from) continue;
    int w = plain_path(from, y, budget);
    if (w) way = way < 0 || w < 0 ? -1 : 1;
    while (y->kind == H_EWISE && y->n_in == 1) y = y->in[0];
    spread |= y->kind == H_BCAST && hlo_count(y->in[0]) > 1;
  }
  return way && spread ? -1 : way;
}

/* Does a product take it, perhaps computed on? */
static bool feeds_product(const Schedule *p, const HValue *v) {
  for (int i = 0; i < p->kernels.n; i++) {
    const Kernel *k = p->kernels.v[i];
    for (int r = 0; k->conv && r < k->reads.n; r++)
      if (k->reads.v[r] == v && sched_made_from(k, k->conv, v->node, 0)) return true;
  }
  return false;
}

bool tpu_overwrites(const Schedule *p, const Kernel *k, const HValue *v, const HValue *o,
                    bool state) {
  if (state && !k->conv) return !k->reduce && hlo_light(k->roots.v[0]);
  if (sched_space(p, o, k->pos) != SP_HBM || v->node->dt != o->node->dt ||
      v->node->rank != o->node->rank || !hlo_light(o->node))
    return false;
  for (int i = 0; i < o->node->rank; i++)
    if (v->order[i] != o->order[i]) return false;
  int budget = 500;
  const HValue *of = /* a copy: what reads it names the original */
      v->kernel < 0 ? NULL : p->kernels.v[v->kernel]->copy_of;
  if (plain_path(of ? of->node : v->node, o->node, &budget) != 1) return false;
  return !p->params->tall || hlo_bits(v->node->dt) != 16 ||
         feeds_product(p, v) == feeds_product(p, o);
}

/* Attention that loops over queries holds the scores of as many as fit, rounded: at most half of what
 * is on chip before they are. And so many arrays of their rows: what they come to, and, where room is
 * sought, the next queries beside these and the result before on its way out. */
static double held_scores(const CostParams *params, const Kernel *k, int rows) {
  const HValue *out = k->roots.v[0]->val;
  for (int i = 0; i < k->inner.n && params->queries; i++) {
    const HNode *s = k->inner.v[i];
    double bytes = 4 * (double)hlo_count(s), parts = 1;
    if (!s->scores) continue;
    while (bytes / parts > (params->fast + params->scoped) / 2) parts *= 2;
    return (bytes / 2 + rows * (out ? out->bytes : 0)) / parts;
  }
  return 0;
}

/* The blocks of a running sum lie with the summed dimension outside of the tile, before and after a
 * step. In device memory the second is smaller: what is padded last is not there yet, and if nothing
 * had to be turned, there is none. */
static double summed_blocks(const CostParams *params, const Kernel *k, const RunningSum *s) {
  double tile = 1024 * s->width, both = s->tiles + s->tiles;
  if (!params->keep) both = s->tiles + (s->in_lanes ? MIN(s->plain, s->tiles) : 0);
  bool copied = k->reads.n && k->reads.v[0]->node->op == OP_COPY; /* by a kernel of its own */
  return both * tile - (copied ? MIN(both * tile, k->reads.v[0]->bytes) : 0);
}

/* Memory that a kernel needs besides its operands and results: positions and turned copies of
 * sorts, the groups of a grouped convolution laid out one by one, a part of attention's scores. */
double tpu_scratch(const Schedule *p, const Kernel *k) {
  const CostParams *params = p->params;
  const HNode *n = k->roots.n ? k->roots.v[0] : NULL;
  if (!n || k->copy) return 0;
  if (k->attention) return held_scores(params, k, 1);
  if (k->conv && k->conv->conv->groups > 1 && k->conv->conv->k > 1 &&
      k->conv->conv->n > k->conv->conv->groups && k->conv->conv->is_conv) {
    double g = (double)k->conv->conv->groups,
           side[2] = {(double)k->conv->conv->k, (double)k->conv->conv->n / g};
    double b = 0;
    for (int i = 0; i < 2; i++) {
      const HNode *x = i ? k->conv : k->conv->in[0];
      b += hlo_bytes(x) / side[i] * ceil(side[i] / 128) * 128 * (ceil(g / 4) * 4 / g);
    }
    return b;
  }
  if (params->prefetch && params->keep && n->val && tpu_written_in_place(params, n))
    return 2 * n->val->bytes; /* made on chip */
  if (n->n_in < 1 || n->in[0]->rank < 2 || n->in[0]->rank > 64) return 0;
  RunningSum sum;
  if (tpu_running_sum(k, &sum)) return n->val ? summed_blocks(params, k, &sum) : 0;
  if (n->kind != H_SORT || !params->prefetch || !params->keep) return 0;
  const HValue *v = n->in[0]->val, *u = k->reads.n ? k->reads.v[0] : NULL;
  if (n->op == OP_CHLO_TOP_K && v && n->n_results > 1)
    return 3 * v->bytes; /* and both results stay there */
  /* an argument is brought on chip */
  return v && v->is_param && u == v && v->space == SP_HBM ? v->bytes : 0;
}

double tpu_attention_room(const Schedule *p, const Kernel *k) {
  return k->attention ? held_scores(p->params, k, 4) : 0;
}
