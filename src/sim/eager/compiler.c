/* A framework that runs one operation at a time on a GPU: the same libraries and kernels, joined only as its own
 * kernels are, each issued by the host. */
#include "sim/eager/eager.h"
#include "sim/gpu/gpu.h"
#include "sim/schedule/kernels.h"

#define ROW 65536  /* elements that one kernel of a framework holds */
#define SHORT 8192 /* elements: sums over fewer join what is no sum */

/* Nothing but sums along whole rows? */
static bool sums_rows(const Kernel *k) {
  for (int i = 0; i < k->roots.n; i++) {
    const HNode *n = k->roots.v[i];
    if (n->kind != H_REDUCE) return false;
    const HNode *x = n->in[0];
    int64_t row = 1;
    for (int q = 0; q < n->n_dims; q++) {
      row *= x->d[n->dims[q]];
      if (n->dims[q] < x->rank - n->n_dims) return false;
    }
    if (row > ROW) return false;
  }
  return k->roots.n > 0 && !k->conv;
}

/* What walks over rows twice, once to sum them up (softmax, normalisation), holds each row meanwhile:
 * one of a framework's own kernels, where nothing that it sums up is somebody else's. */
static void join_row_sums(Joins *js, int at) {
  const Schedule *p = js->p;
  Kernel *s = p->kernels.v[at];
  for (int i = at + 1; i < p->kernels.n && !s->dead && sums_rows(s); i++) {
    Kernel *k = p->kernels.v[i];
    bool sum = false, row = false;
    if (k->dead || k->conv || k->copy || !kernel_loops_over(k) ||
        kernel_domain(k) != kernel_domain(s))
      continue;
    for (int r = 0; r < k->reads.n; r++) {
      const HValue *v = k->reads.v[r];
      sum |= v->kernel == at && v->node->comp == p->comp;
      for (int q = 0; q < s->reads.n; q++)
        row |= s->reads.v[q] == v && hlo_count(v->node) == kernel_domain(s);
    }
    if (!sum || !row || joins_depends(js, i, at, true)) continue;
    joins_merge(js, at, i);
  }
}

static bool may_join_maker(Joins *js, int at, const HValue *v, bool loops) {
  const Kernel *k = js->p->kernels.v[at], *s = js->p->kernels.v[v->kernel];
  return !loops && !s->conv && !kernel_updates(s) && !kernel_updates(k);
}

static bool may_join_sibling(Joins *js, int i, int j, const HNode *shared, bool table) {
  const Kernel *a = js->p->kernels.v[i], *b = js->p->kernels.v[j];
  (void)table;
  if (!(a->reduce && b->reduce) && shared->ends) return false;
  if (kernel_updates(a) || kernel_updates(b)) return false;
  return a->reduce == b->reduce || kernel_domain(a) <= SHORT || kernel_only_widens(a) ||
         kernel_only_widens(b);
}

static void join(Joins *js) {
  joins_attention(js);
  joins_makers(js, false);
  for (int i = 0; i < js->p->kernels.n; i++) join_row_sums(js, i);
  joins_siblings(js, false);
}

static bool overwrites(const Schedule *p, const Kernel *k, const HValue *v, const HValue *o,
                       bool state) {
  (void)p, (void)v, (void)o, (void)state;
  return !k->conv && !k->reduce && hlo_light(k->roots.v[0]);
}

/* What cuBLAS is given to split sums in. */
static double scratch(const Schedule *p, const Kernel *k) {
  bool product = k->roots.n && k->conv && !k->attention && !k->conv->conv->is_conv;
  return product ? chip_num(p->chip, "product_workspace", 0) : 0;
}

/* Operation by operation the host issues each kernel: the interpreter, the dispatcher, the launch. It runs ahead of
 * the device and waits for nothing; the device cannot start earlier than asked. */
static void issue(Schedule *p, Kernel *k) {
  const Schedule *in = k->dearest;
  p->issue_s += in ? in->issue_s * in->mult / p->mult : gpu_rate(p->chip, "fit.issue");
  if (in || p->issue_s <= p->time_s) return;
  p->host_s += p->issue_s - p->time_s;
  p->time_s = k->start_s = p->issue_s;
}

static void rewrite(HGraph *g, const Chip *chip, const CostParams *params) {
  (void)chip, (void)params;
  eager_residuals(g);
}

static void lower(HGraph *g, const Chip *chip, const CostParams *params) {
  (void)chip, (void)params;
  gpu_turn_operands(g);
}

const ChipCompiler eager_compiler = {
    .name = "one operation at a time",
    .rewrite = rewrite,
    .lower = lower,
    .fuse = eager_fuse,
    .view = sched_flat_view,
    .holds_rows = true,
    .join = join,
    .joins_maker = may_join_maker,
    .joins_sibling = may_join_sibling,
    .layout = sched_flat_layouts,
    .orders_scratch = true,
    .combines_to = 30 * 1048576.0, /* buckets of gradients are about as large */
    .overwrites = overwrites,
    .shares_temporaries = true,
    .scratch = scratch,
    .cost = gpu_cost,
    .count = gpu_count,
    .issue = issue,
    .peak = gpu_product_peak,
    .launch_s = gpu_launch_s,
    .energy_j = gpu_energy,
};
