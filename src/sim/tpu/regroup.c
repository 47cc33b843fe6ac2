#include "sim/tpu/regroup.h"

void regroup(const HNode *x, const HNode *n, Regroup *r) {
  int i = 0, j = 0;
  memset(r, 0, sizeof *r);
  r->x = x, r->n = n;
  for (int g = 0; i < x->rank || j < n->rank; g++) {
    int64_t a = 1, b = 1;
    int wide[2] = {0, 0};
    do {
      bool left = a <= b ? i < x->rank : j >= n->rank;
      int64_t d = left ? x->d[i] : n->d[j];
      if (left) a *= d, r->gx[i++] = d > 1 ? g : -1;
      else b *= d, r->gn[j++] = d > 1 ? g : -1;
      wide[left] += d > 1;
    } while (a != b && (i < x->rank || j < n->rank));
    r->same[g] = wide[0] == 1 && wide[1] == 1;
  }
}

int regroup_count(const Regroup *r, bool after, int group, int *last) {
  const HNode *n = after ? r->n : r->x;
  const int *of = after ? r->gn : r->gx;
  int count = 0;
  for (int d = 0; d < n->rank; d++)
    if (of[d] == group) *last = d, count++;
  return count;
}

bool regroup_order(const Regroup *r, bool forward, const int *from, int *to) {
  const HNode *a = forward ? r->x : r->n, *b = forward ? r->n : r->x;
  const int *ga = forward ? r->gx : r->gn, *gb = forward ? r->gn : r->gx;
  int k = 0, group = -1, last = 0;
  for (int q = 0; q < a->rank; q++) {
    int d = from[q];
    if (ga[d] < 0) continue;
    if (ga[d] == group) {
      if (d > last) return false;
      last = d;
      continue;
    }
    group = ga[d], last = d;
    for (int e = d + 1; e < a->rank; e++)
      if (ga[e] == group) return false;
    for (int e = b->rank - 1; e >= 0; e--)
      if (gb[e] == group) to[k++] = e;
  }
  for (int e = b->rank - 1; e >= 0; e--)
    if (gb[e] < 0) to[k++] = e;
  return k == b->rank;
}
