/* Transfers between device memory and on-chip memory, beside the kernels. What memory space assignment (memory_space_assignment.c)
 * fetches ahead of its readers, and what it writes back, moves at the rate of device memory while kernels leave some of that
 * unused; what a kernel needs and has not arrived, it waits for. */
#include <math.h>
#include <stdlib.h>

#include "sim/schedule/schedule.h"
#include "sim/tpu/tpu.h"

typedef struct Transfer {
  double left;   /* bytes */
  int from, due; /* kernels: may start with the first, has to be done before the second */
} Transfer;
typedef VEC(Transfer) Transfers;

/* Bytes a second: what the compiler's cycles for moving a tile amount to, and no more than there is. */
static double rate(const Schedule *p) {
  double cycles = p->params->product.r[4];
  double fitted = cycles > 0 ? 4096 / cycles * p->params->clock : p->chip->hbm_bandwidth;
  return MIN(fitted, p->chip->hbm_bandwidth);
}

/* A loop's state that lies on chip for all rounds is fetched once, before the first. */
static bool once(const Schedule *p, const Stay *s) {
  return p->loop_body && s->fetched && s->ready == 0;
}

static bool written_back(const HValue *v) {
  return v->far && !v->is_param && v->kernel >= 0 && v->n_stays && !v->stays[0].fetched &&
         v->stays[0].first == v->kernel;
}

/* The first kernel after `from` that reads the value in the given memory. */
static int first_reader(const Schedule *p, const HValue *v, int from, bool far) {
  for (int i = MAX(from, 0); i <= v->last_read && i < p->kernels.n; i++) {
    const Kernel *k = p->kernels.v[i];
    for (int r = 0; r < k->reads.n; r++)
      if (base_of(k->reads.v[r]) == v && (sched_space(p, v, i) == SP_HBM) == far) return i;
  }
  return p->kernels.n;
}

static int by_start(const void *x, const void *y) {
  const Transfer *a = x, *b = y;
  return a->from != b->from ? a->from - b->from : a->due - b->due;
}

static Transfers transfers_of(Schedule *p) {
  Transfers all = {0};
  for (int i = 0; i < p->values.n; i++) {
    const HValue *v = p->values.v[i];
    if (v->alias || v->dropped || v->space == SP_SCALAR) continue;
    for (int t = 0; t < v->n_stays; t++) {
      const Stay *s = &v->stays[t];
      if (!s->fetched) continue;
      if (once(p, s)) p->once_bytes += v->bytes;
      else
        *vec_push(&all) =
            (Transfer){v->bytes, MAX(s->first, 0), first_reader(p, v, s->ready, false)};
    }
    if (written_back(v))
      *vec_push(&all) =
          (Transfer){v->bytes, v->kernel + 1, first_reader(p, v, v->kernel + 1, true)};
  }
  if (all.n > 1) qsort(all.v, (size_t)all.n, sizeof *all.v, by_start);
  return all;
}

/* Those under way, the last one due first. */
static void begin(Transfers *now, Transfer t) {
  int at = now->n;
  vec_push(now);
  for (; at > 0 && now->v[at - 1].due < t.due; at--) now->v[at] = now->v[at - 1];
  now->v[at] = t;
}

/* Moves up to so many bytes of what is due before kernel `due`. */
static double move(Transfers *now, double room, int due) {
  double moved = 0;
  while (now->n && room > 0 && now->v[now->n - 1].due <= due) {
    Transfer *t = &now->v[now->n - 1];
    double d = MIN(room, t->left);
    t->left -= d, room -= d, moved += d;
    if (t->left <= 0) now->n--;
  }
  return moved;
}

void tpu_transfers(Schedule *p) {
  Transfers all = transfers_of(p), now = {0};
  int n = p->kernels.n, next = 0;
  double bandwidth = rate(p), end = 0;
  p->copy_s = 0;
  for (int i = 0; i <= n; i++) {
    for (; next < all.n && all.v[next].from <= i; next++) begin(&now, all.v[next]);
    double late = move(&now, HUGE_VAL, i);
    Kernel *k = i < n ? p->kernels.v[i] : NULL;
    if (k && k->dearest) late += k->dearest->once_bytes;
    if (k) k->wait_bytes = late, k->wait_s = late / bandwidth;
    else p->end_bytes = late, p->end_s = late / bandwidth;
    end += late / bandwidth;
    p->copy_s += late / bandwidth;
    p->bytes += late;
    if (!k) break;
    k->start_s = end;
    end += k->time_s;
    if (k->dearest) p->copy_s += k->dearest->copy_s * k->dearest->mult / p->mult;
    k->beside = move(&now, MAX(0, k->time_s * bandwidth - k->bytes), n);
    p->bytes += k->beside;
  }
  p->time_s = end;
  vec_free(&all);
  vec_free(&now);
}
