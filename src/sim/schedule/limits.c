/* What no kernel can be faster than: its bytes at the bandwidth of device memory, its products at the peak of their precision, and
 * with all that is computed beside them at the fastest one's. A
 * compiler's own estimate may be below that, where it reckons with other rates than a chip's data sheet has; time is not. */
#include "sim/schedule/compiler.h"

double sched_least_s(const Schedule *p, const Kernel *k) {
  double memory = k->bytes / p->chip->hbm_bandwidth, products = 0, fastest = 0;
  if (k->collective) return memory;
  for (int i = 0; i < k->inner.n; i++) {
    const HNode *n = k->inner.v[i];
    if (n->kind != H_CONV || attention_again(k, n)) continue;
    double peak = p->compiler->peak(p->chip, n);
    products += (double)n->conv->flops / peak;
    fastest = MAX(fastest, peak);
  }
  if (k->attention && attention_causal(k)) products /= 2;
  if (!k->attention && fastest > 0) products = MAX(products, k->flops / fastest);
  return MAX(memory, products);
}

/* Products of narrower types than 16 bits have a higher peak than the chip's. */
double sched_peak_s(const Schedule *p, const Kernel *k) {
  double peak = p->chip->peak_flops;
  for (int i = 0; i < k->inner.n; i++)
    if (k->inner.v[i]->kind == H_CONV) peak = MAX(peak, p->compiler->peak(p->chip, k->inner.v[i]));
  return k->flops / peak;
}

void sched_limit(const Schedule *p, Kernel *k) {
  double least = sched_least_s(p, k);
  if (k->time_s >= least) return;
  bool memory = k->bytes / p->chip->hbm_bandwidth >= least;
  k->bound = memory ? SIM_MEMORY : SIM_COMPUTE;
  k->time_s = least;
  k->util = 1;
}

/* ---- results of an operation that has several ---- */

double sched_results_bytes(const HNode *n, Space in) {
  double bytes = 0;
  for (int u = 0; n->n_results > 1 && u < n->n_users; u++) {
    const HValue *v = n->users[u]->kind == H_GET ? n->users[u]->val : NULL;
    if (v && !v->dropped && !v->alias && v->space == in) bytes += v->bytes;
  }
  return bytes;
}
