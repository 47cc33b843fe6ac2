/* How far the kernel of a product or a pool goes on computing with its result: element by element, one user at
 * a time, same number of elements. */
#include "sim/hlo/query.h"
#include "sim/schedule/schedule.h"
#include "sim/tpu/tpu.h"

#define DIAMOND 64 /* nodes */

HNode *tpu_meets_again(HNode *v, const unsigned char *claimed) {
  HNode *set[DIAMOND] = {v};
  for (int n = 1; n < DIAMOND; n++) {
    HNode *next = NULL; /* the first user outside */
    int open = 0;       /* nodes that are needed outside */
    bool last = false;
    for (int i = 0; i < n; i++) {
      last = set[i]->is_output;
      for (int u = 0; u < set[i]->n_users; u++) {
        HNode *w = set[i]->users[u];
        bool inside = false;
        for (int k = 0; k < n; k++) inside |= set[k] == w;
        last |= !inside;
        if (!inside && (!next || w->id < next->id)) next = w;
      }
      open += last;
    }
    if (n > 1 && open == 1 && last) return set[n - 1];
    if (!next || next->comp != v->comp || claimed[next->id] || next->kind != H_EWISE ||
        hlo_count(next) != hlo_count(v))
      return NULL;
    set[n] = next;
  }
  return NULL;
}

/* Does a product take in the conversion that widens its result before the readers of that do? The
 * compiler joins first what saves most: there two kernels' base, here each reader's bytes, which it
 * counts at a quarter of the bandwidth. */
static bool takes_widening(const Schedule *p, int64_t count, int readers) {
  double cycles =
      4 * (2.0 * readers + 6) * (double)count * p->params->clock / p->chip->hbm_bandwidth;
  return cycles < 2 * p->params->lbase;
}

HNode *tpu_epilogue_end(const Schedule *p, HNode *conv, const unsigned char *claimed) {
  HNode *v = conv;
  int64_t count = hlo_count(conv);
  for (int steps = 0; steps < 200; steps++) {
    if (v->is_output) break;
    HNode *u = v->n_users == 1 ? v->users[0] : NULL;
    if (v->n_users > 1 && v->kind == H_EWISE) {
      u = tpu_meets_again(v, claimed);
      if (u) v = u;
      if (u) continue;
    }
    if (!u || u->comp != conv->comp || claimed[u->id]) break;
    bool ew = u->kind == H_EWISE || u->kind == H_RESHAPE || u->kind == H_TRANSPOSE;
    if (!ew || hlo_count(u) != count || u->rows || (u->lies && u->kind == H_RESHAPE && v->lies))
      break;
    if (u->kind == H_TRANSPOSE && v != conv) break;
    v = u;
  }
  if (p->params->weighs && takes_widening(p, count, v->n_users)) return v;
  return sched_narrow_end(conv, v);
}
