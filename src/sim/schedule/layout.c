/* Tiled layouts. The two most minor dimensions of an array are padded to (8, 128) elements; the
 * compiler picks, for arguments and results, the order that wastes least, which is why a narrow
 * array keeps its long dimension in lanes. The rules were read off the compiler's layouts in the
 * oracle; see docs/accuracy.md. */
#include <math.h>

#include "sim/schedule/schedule.h"

/* Padded bytes and tiles of 1024 elements for an order (minor to major). */
double value_padded(const CostParams *params, const HNode *n, const int *order, double *tiles) {
  double bytes = hlo_bits(n->dt) / 8;
  if (!params->tiled) {
    double c = (double)hlo_count(n);
    *tiles = c / 1024;
    return round_up(c * bytes, 256);
  }
  if (n->rank == 0) {
    *tiles = 0;
    return params->min_alloc;
  }
  double elems = 1;
  if (n->rank == 1) {
    double d = (double)n->d[0], t = 128;
    double most = bytes < 4 ? 1024 : 1024;
    if (bytes == 2) t = 256;
    if (bytes == 1) t = 512;
    while (t < d && t < most) t *= 2;
    elems = round_up(d, t);
    if (d == 0) elems = 0;
  } else {
    for (int i = 0; i < n->rank; i++) elems *= (double)n->d[i];
    double a = (double)n->d[order[0]], b = (double)n->d[order[1]];
    double sub = b > 4 ? 8 : b > 2 ? 4 : b > 1 || !params->softmax ? 2 : 1;
    if (bytes == 2 && b <= 2) sub = params->softmax ? 2 : 4; /* packed in pairs of rows */
    if (bytes == 1) sub = b > 8 ? 8 : b > 4 ? 8 : 4;
    if (a > 0 && b > 0) elems = elems / (a * b) * round_up(a, 128) * round_up(b, sub);
    /* smaller tiles cost almost as much to move as whole ones */
    if (bytes == 2 && sub < 8) {
      *tiles = elems / 1024 * 8 / sub;
      return MAX(round_up(elems * bytes, params->min_alloc), params->min_alloc);
    }
    if (bytes >= 4 && sub < 8) {
      if (b <= 1) *tiles = elems / 1024 * (params->softmax ? 4 : 0.5);
      else *tiles = elems / 1024 * (sub == 4 ? 1.68 : 2.6);
      return MAX(round_up(elems * bytes, params->min_alloc), params->min_alloc);
    }
  }
  *tiles = elems / 1024;
  double total = round_up(elems * bytes, params->min_alloc);
  return total < params->min_alloc ? params->min_alloc : total;
}

void value_order_rest(int *order, int k, int rank) {
  bool there[64] = {false};
  for (int i = 0; i < k; i++) there[order[i]] = true;
  for (int i = MIN(rank, 64) - 1; i >= 0; i--)
    if (!there[i]) order[k++] = i;
}

/* Rows of the tile that a type prefers for so many, when orders are compared. */
static double tile_rows(const CostParams *params, double bytes, double rows) {
  if (rows > (bytes == 1 ? 16 : 4)) return bytes == 1 ? 32 : 8;
  if (rows <= 1 && bytes == 1) return 4; /* a word of each lane */
  if (rows <= 1 && (bytes == 2 || (bytes >= 4 && !params->softmax))) return 2;
  return rows > 4 ? 8 : rows > 2 ? 4 : rows > 1 ? 2 : 1;
}

/* Least padding over all choices of the two minor dimensions, ties to features over rows and to the order of the type. */
bool value_order_roles(const CostParams *params, const HNode *n, const char *roles, char not,
                       int *order) {
  int r = n->rank;
  double best = -1, bytes = hlo_bits(n->dt) / 8;
  value_order_rest(order, 0, r);
  if (r < 2 || r > 64 || !params->tiled) return true;
  for (int a = r - 1; a >= 0; a--)
    for (int b = r - 1; b >= 0; b--) {
      double da = (double)n->d[a], db = (double)n->d[b];
      if (a == b || da <= 0 || db <= 0 || (roles && (roles[a] == not || roles[b] == not )))
        continue;
      double pad = round_up(da, 128) * round_up(db, tile_rows(params, bytes, db)) / (da * db);
      double tie = roles && roles[a] == 'n' && roles[b] == 'm' ? -1e-9 : 1e-9;
      if (best < 0 || pad < best - tie) best = pad, order[0] = a, order[1] = b;
    }
  if (best >= 0) value_order_rest(order, 2, r);
  return best >= 0;
}

void value_order_default(const CostParams *params, const HNode *n, int *order) {
  value_order_roles(params, n, NULL, 0, order);
}

void value_layout(const CostParams *params, HValue *v, const int *order) {
  if (order)
    for (int i = 0; i < v->node->rank && i < 64; i++) v->order[i] = order[i];
  else value_order_default(params, v->node, v->order);
  HNode as_stored = *v->node;
  if (v->rounded) as_stored.dt = DT_BF16;
  v->bytes = value_padded(params, &as_stored, v->order, &v->tiles);
  if (v->packed) {
    int word = v->packed <= 8 ? 1 : v->packed <= 16 ? 2 : 4;
    v->bytes = round_up(v->bytes * word / v->packed, params->min_alloc);
    v->tiles /= v->packed;
  }
  v->plain = hlo_bytes(v->node);
}

double sim_array_bytes(const Chip *chip, const Type *t) {
  if (t->kind != TY_TENSOR || !type_is_static(t) || t->rank > 64) return 0;
  CostParams params;
  params_read(chip, &params);
  HNode n = {.dt = t->dtype, .rank = t->rank, .d = t->dims};
  int order[64];
  double tiles;
  value_order_default(&params, &n, order);
  return value_padded(&params, &n, order, &tiles);
}

/* A view lies in the memory of what it looks at. */
void sched_flat_layouts(Schedule *p) {
  for (int i = 0; i < p->values.n; i++) value_layout(p->params, p->values.v[i], NULL);
  for (int i = 0; i < p->values.n; i++) {
    HValue *v = p->values.v[i];
    if (v->alias) v->bytes = v->alias->bytes, v->tiles = v->alias->tiles;
  }
}
