/* Where memory is nearly full: values that wait for a late reader are given up and computed again
 * before it, as XLA's rematerialisation does. At the fullest moment it gives up the largest array that
 * the running kernel does not need, less the operands of its kernel that have to wait instead; the
 * earliest of equals. The time is paid, however long: memory that is not there cannot be had. */
#include <stdlib.h>

#include "sim/schedule/schedule.h"

#define MOST 200 /* arrays */

static bool there(const Schedule *p, const HValue *v, int at) {
  if (v->is_param || v->node->kind == H_CONST || v->node->comp != p->comp) return true;
  if (v->is_output || v->space == SP_SCALAR) return v->kernel < at;
  bool away = v->away_from < at && at < v->away_to;
  return v->from <= at && at <= v->to && !away;
}

/* May the operand wait until kernel `at`? */
static bool can_wait(const HValue *v) {
  return !v->n_stays && !v->held && !v->away_to && v->kernel >= 0 && v->node->kind != H_GET;
}

/* Bytes that giving it up at kernel t saves, 0: it cannot be. *a, *b: its readers before and after t. */
static double saves(const Schedule *p, const HValue *v, int t, int *a, int *b) {
  *a = v->kernel, *b = -1;
  if (v->is_param || v->is_output || v->alias || v->n_stays || v->held || v->lent ||
      v->kernel < 0 || v->away_to > 0 || v->from > t || v->to <= t || v->kernel >= t ||
      v->node->n_results > 1 || v->node->kind == H_GET || v->node->kind == H_DUS ||
      v->node->kind == H_SCATTER)
    return 0;
  for (int i = v->kernel + 1; i <= v->to && i < p->kernels.n && *b < 0; i++)
    for (int r = 0; r < p->kernels.v[i]->reads.n; r++) {
      if (base_of(p->kernels.v[i]->reads.v[r]) != v) continue;
      if (i == t) return 0;
      *(i < t ? a : b) = i;
    }
  const Kernel *k = p->kernels.v[v->kernel];
  if (*b <= t || k->dearest || k->collective || k->scalar) return 0;
  double bytes = v->bytes;
  for (int r = 0; r < k->reads.n; r++) {
    const HValue *u = base_of(k->reads.v[r]);
    if (there(p, u, *b)) continue;
    if (!can_wait(u)) return 0;
    bytes -= u->bytes;
  }
  return bytes;
}

void sched_remat(Schedule *p, double room) {
  for (int n = 0; n < MOST && p->peak_hbm > room; n++) {
    HValue *best = NULL;
    double most = 0;
    int from = 0, to = 0, a, b;
    for (int i = 0; i < p->values.n; i++) {
      double bytes = saves(p, p->values.v[i], p->peak_pos, &a, &b);
      bool earlier = best && bytes == most && p->values.v[i]->kernel < best->kernel;
      if (bytes > most || (earlier && bytes > 0))
        most = bytes, best = p->values.v[i], from = a, to = b;
    }
    if (!best) return;
    best->away_from = from, best->away_to = to;
    Kernel *k = p->kernels.v[best->kernel];
    for (int r = 0; r < k->reads.n; r++) {
      HValue *u = base_of(k->reads.v[r]);
      if (!there(p, u, to)) u->last = to;
    }
    k->mult += p->mult;
    p->rematerialized++;
    p->rematerialized_s += k->time_s;
    p->time_s += k->time_s;
    p->bytes += k->bytes;
    p->cycles += k->costed ? k->est : 0;
    sched_peak(p, true);
  }
}
