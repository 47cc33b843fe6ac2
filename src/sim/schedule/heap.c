/* Where values lie in on-chip memory. A value needs one piece of it for as long as it stays, so that
 * what is free may be too scattered to be of use, as in the compiler's own heap. */
#include "sim/schedule/schedule.h"

/* The smallest gap that is free while kernels a to b run and large enough: where it begins, or -1.
 * With `at` not negative: that place or none. */
double heap_gap(const Heap *h, int a, int b, double bytes, double at) {
  double end = 0, best = -1, size = 0;
  for (int i = 0; i <= h->chunks.n; i++) {
    const Chunk *c = i < h->chunks.n ? &h->chunks.v[i] : NULL;
    if (c && (c->a > b || c->b < a)) continue;
    double next = c ? c->at : h->size;
    if (at >= 0 && end <= at && at + bytes <= next) return at;
    /* what lies above everything counts as endless: taken last */
    if (at < 0 && next - end >= bytes && (best < 0 || (c && next - end < size)))
      best = end, size = next - end;
    if (c) end = MAX(end, c->at + c->bytes);
  }
  return best;
}

void heap_put(Heap *h, int a, int b, double at, double bytes) {
  *vec_push(&h->chunks) = (Chunk){a, b, at, bytes};
  Chunk *c = h->chunks.v;
  for (int i = h->chunks.n - 1; i > 0 && c[i - 1].at > at; i--) {
    Chunk t = c[i];
    c[i] = c[i - 1];
    c[i - 1] = t;
  }
}
