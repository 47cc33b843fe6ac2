/* The cost of one kernel on a GPU: a roofline with the losses that tiles, waves, launches and small
 * sizes bring.
 *   product   its arithmetic (cost_product.c) against bytes / bandwidth; plus a launch
 *   loop      bytes / (bandwidth x efficiency); arrays that fit L2 move faster; plus a launch
 * Coefficients: fit.* in the chip files are shares of peak and of bandwidth that micro-benchmarks
 * reach; what is checked against training runs is in docs/accuracy.md. */
#include <math.h>

#include "sim/gpu/cost.h"
#include "sim/gpu/gpu.h"

/* Bytes: with fewer nobody waits for the first numbers, or for what threads add up. */
#define FILLED 1e4

/* Elements of an array that the kernel reads: where it only takes slices or rows of it, or writes a
 * slice into it, not all. */
static double taken(const Kernel *k, const HNode *x) {
  double part = 0, all = (double)hlo_count(x);
  bool read = false;
  for (int i = 0; i < k->inner.n; i++) {
    const HNode *n = k->inner.v[i];
    for (int q = 0; q < n->n_in; q++) {
      if (n->in[q] != x) continue;
      if (n->kind == H_SCATTER && q == 0 && n->n_in > 2) {
        read = true, part += (double)hlo_count(n->in[2]);
        continue;
      }
      bool some = n->kind == H_SLICE || n->kind == H_DSLICE || n->kind == H_GATHER;
      bool shape = n->kind == H_RESHAPE && !n->val;
      if (q > 0 || (!some && !shape && n->kind != H_DUS)) return all;
      read = true;
      if (some) part += (double)hlo_count(n);
      if (shape) part += taken(k, n);
    }
  }
  return read ? MIN(part, all) : all;
}

static double read_bytes(const Kernel *k, const HValue *v) {
  double all = (double)hlo_count(v->node);
  return all > 0 ? v->plain * taken(k, v->node) / all : v->plain;
}

/* What is read again and again from the cache, or was just written there: as much as half of it moves
 * at its rate, what is larger than 0.7 of it at that of memory. */
static double from_memory(const Chip *c,
                          double bytes) { /* the part of them that is not in the cache */
  double all = chip_num(c, "l2", 4 << 20), share = (bytes - all / 2) / (all / 5);
  return MIN(1, MAX(0, share));
}

static double bandwidth(const Chip *c, double bytes) {
  double memory = c->hbm_bandwidth * gpu_rate(c, "fit.stream");
  double cache = MAX(memory, chip_num(c, "fit.l2", 1.6 * memory));
  double share = from_memory(c, bytes);
  return 1 / (share / memory + (1 - share) / cache);
}

/* Bytes that are not in the cache: arguments, where all of the program's are more than it holds, as the run before
 * left others there; and slices of a loop's state that is larger, as each round has others. */
static double cold_bytes(const Schedule *p, const Kernel *k) {
  double all = 0, cold = 0, cache = chip_num(p->chip, "l2", 4 << 20);
  for (int i = 0; i < p->g->main->params.n; i++) all += hlo_bytes(p->g->main->params.v[i]);
  for (int i = 0; i < k->reads.n; i++) {
    const HValue *v = k->reads.v[i];
    if (!v->is_param) continue;
    if (v->node->comp->parent ? v->plain > cache : all > cache) cold += read_bytes(k, v);
  }
  for (int i = 0; i < k->roots.n; i++) {
    const HNode *n = k->roots.v[i];
    if (n->kind == H_DUS && n->n_in > 1 && n->val && n->val->plain > cache && n->comp->parent)
      cold += hlo_bytes(n->in[1]);
  }
  return cold;
}

/* An attention kernel: blocks of 128 queries of one head to an SM; its products at a share of what
 * large ones reach, over nothing but the operands and results of the whole. Kernels that frameworks
 * call may be older than the chip. */
static double attention_s(const Chip *c, const Kernel *k, bool eager) {
  double flops = 0, sms = chip_num(c, "sms", 80) / c->devices_per_chip;
  const HConv *scores = k->conv->conv;
  bool matrix;
  for (int i = 0; i < k->inner.n; i++) {
    const HNode *n = k->inner.v[i];
    if (n->kind == H_CONV) flops += (double)n->conv->flops;
    if (n->scores) scores = n->conv;
  }
  double peak = gpu_peak(c, k->conv->in[0]->dt, 1, &matrix);
  if (attention_causal(k)) flops /= 2;
  double blocks = (double)scores->batch * ceil((double)scores->m / 128);
  double waves = ceil(blocks / sms) * sms / blocks;
  double share = gpu_rate(c, "fit.matmul") * ATTENTION;
  if (eager) share = MIN(share, chip_num(c, "flash_attention_2", 1));
  return flops * waves / (peak * share);
}

static bool sums(const Kernel *k) {
  for (int i = 0; i < k->inner.n; i++)
    if (k->inner.v[i]->kind == H_REDUCE) return true;
  return false;
}

/* Linear algebra, and calls that say what they cost; 0 for others. data: seconds for operands and results. */
static double other_s(const Chip *c, Kernel *k, const HNode *n, double data) {
  Linalg a;
  CallCost call;
  double compute = 0;
  if (n->kind != H_OTHER) return 0;
  if (hlo_linalg(n, &a)) {
    compute = gpu_linalg_s(c, &a);
    k->flops += a.flops;
  } else if (hlo_call_cost(n, &call)) {
    bool matrix;
    compute = call.flops /
              (gpu_peak(c, n->n_in ? n->in[0]->dt : n->dt, 1, &matrix) * gpu_rate(c, "fit.matmul"));
    k->flops += call.flops;
    k->bytes = MAX(call.bytes, 0);
    data = call.bytes / (c->hbm_bandwidth * gpu_rate(c, "fit.stream"));
  } else {
    k->unknown = hlo_unknown_call(n);
    return 0;
  }
  k->bound = compute > data ? SIM_COMPUTE : SIM_MEMORY;
  k->util = compute > data ? MIN(1, k->flops / c->peak_flops / compute) : 1;
  return MAX(compute, data);
}

/* Operations of a product; on vector units those that are left by Winograd's algorithm. */
static double multiplied(const Chip *c, const HNode *n) {
  bool matrix;
  gpu_peak(c, n->in[0]->dt, n->conv->passes, &matrix);
  return (double)n->conv->flops / (matrix || !n->conv->is_conv ? 1 : gpu_winograd(c, n));
}

void gpu_cost(Schedule *p, Kernel *k) {
  const Chip *c = p->chip;
  const HNode *root = k->roots.n ? k->roots.v[0] : NULL;
  if (!root) return;
  double rd = 0, wr = 0;
  bool copied = false;
  for (int i = 0; i < k->reads.n; i++) rd += read_bytes(k, k->reads.v[i]);
  for (int i = 0; i < k->roots.n; i++) {
    const HNode *n = k->roots.v[i];
    const HValue *v = n->val;
    if (!v || v->dropped || v->alias) continue;
    bool scatter = n->kind == H_SCATTER && n->n_in > 2, updates = n->kind == H_DUS && n->n_in > 1;
    wr += updates ? MIN(v->plain, hlo_bytes(n->in[1])) : scatter ? hlo_bytes(n->in[2]) : v->plain;
    if ((updates || scatter) && k->must_copy && i == 0)
      rd += v->plain, wr += v->plain, copied = true;
  }
  for (int i = 0; i < k->inner.n; i++) {
    const HNode *n = k->inner.v[i];
    if (attention_again(k, n)) continue;
    if (n->conv) k->flops += multiplied(c, n);
    else if (n->kind == H_EWISE) k->flops += (double)hlo_count(n);
    else if (n->kind == H_REDUCE) k->flops += (double)hlo_count(n->in[0]);
  }
  k->costed = false;
  k->modelled = true;
  double launch = gpu_rate(c, "fit.launch"), bw = c->hbm_bandwidth * gpu_rate(c, "fit.stream");
  if (root->kind == H_COLL) {
    k->collective = true;
    k->time_s = collective_time(p, k, root);
    k->bound = SIM_NETWORK;
    k->util = 1;
    return;
  }
  double bytes = rd + wr, all_results = sched_results_bytes(root, SP_HBM);
  double cold = MIN(bytes, cold_bytes(p, k));
  if (all_results > 0) all_results -= MIN(all_results, root->val ? root->val->plain : 0);
  k->cached = (bytes - cold) * (1 - from_memory(c, bytes));
  k->bytes = bytes + all_results - k->cached;
  double t_mem = cold / bw + (bytes - cold) / bandwidth(c, bytes);
  /* small arrays never reach the bandwidth */
  double ramp = MAX(0.05, bytes / MAX(1, bytes + gpu_rate(c, "fit.ramp") * bw));
  if (k->attention && k->conv) {
    double t_comp = attention_s(c, k, p->opts->eager), t_data = t_mem / ramp,
           overlap = gpu_rate(c, "fit.attention_overlap");
    k->time_s = pow(pow(t_comp, overlap) + pow(t_data, overlap), 1 / overlap) + launch;
    k->bound = t_comp > t_data ? SIM_COMPUTE : SIM_MEMORY;
    bool matrix;
    k->util = MIN(1, k->flops / gpu_peak(c, k->conv->in[0]->dt, 1, &matrix) / k->time_s);
    return;
  }
  if (k->conv) {
    GpuProduct g = k->conv->conv->is_conv ? gpu_conv(p, k->conv) : gpu_product(p, k->conv);
    double t_data = t_mem / ramp * gpu_rate(c, "fit.stream");
    k->bytes += g.beside_bytes;
    k->time_s = gpu_product_time(c, &g, t_data);
    k->bound = g.s > t_data / g.stream * g.moved + g.beside_s ? SIM_COMPUTE : SIM_MEMORY;
    k->util = MIN(1, (double)k->conv->conv->flops / g.peak / k->time_s);
    return;
  }
  double other = other_s(c, k, root, t_mem / ramp);
  if (other > 0) {
    k->time_s = other + launch;
    return;
  }
  double after = 0, t_vec = gpu_vector_s(p, k, bytes, bw, &after);
  k->time_s = k->rows
                  ? gpu_rate(c, "fit.held_fill") + t_vec + gpu_rate(c, "fit.held_memory") * t_mem
                  : MAX(t_vec, t_mem / ramp);
  if (!k->rows && bytes > FILLED)
    k->time_s += gpu_rate(c, sums(k) ? "fit.sum_fill" : "fit.loop_fill");
  k->time_s += launch * (copied ? 2 : 1) + after;
  if (!p->opts->eager) k->time_s += gpu_made_s(p, root, bandwidth(c, gpu_made_bytes(root)));
  k->bound = launch > k->time_s * 0.6 ? SIM_LATENCY : t_vec > t_mem ? SIM_VECTOR : SIM_MEMORY;
  k->util = MIN(1, t_mem / k->time_s);
}
