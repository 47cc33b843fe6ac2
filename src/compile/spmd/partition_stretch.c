/* Of an array that is cut, each device its stretch: from where its own part begins, or elsewhere, a number of elements. What
 * it lacks comes from the devices that have it, by permutes of these elements alone. */
#include <stdlib.h>

#include "compile/spmd/partition_priv.h"

static int64_t div_down(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

/* The elements that device p needs and that there are: of [lo, hi). */
static bool needs(const Stretch *w, int64_t p, int64_t *lo, int64_t *hi) {
  *lo = p * w->step + w->begin;
  *hi = *lo + w->len;
  if (!w->around) {
    *lo = MAX(*lo, w->first);
    *hi = MIN(*hi, w->end);
  }
  return *lo < *hi;
}

/* What any device needs, counted from where its own part begins. */
static bool span(const Stretch *w, int64_t *from, int64_t *to) {
  bool any = false;
  for (int64_t p = 0; p < w->n; p++) {
    int64_t lo, hi, own = p * w->part;
    if (!needs(w, p, &lo, &hi)) continue;
    *from = any ? MIN(*from, lo - own) : lo - own;
    *to = any ? MAX(*to, hi - own) : hi - own;
    any = true;
  }
  return any;
}

int64_t spmd_stretch_fetches(const Stretch *w) {
  int64_t from, to;
  if (!span(w, &from, &to)) return 0;
  return (to - from) - MAX(0, MIN(to, w->part) - MAX(from, 0));
}

static Value *zero_of(Build *b, DType t) {
  static const uint64_t zeros[2];
  return b_const(b, b_type(b, t, 0, NULL), zeros);
}

/* Part of the device that is `hop` places on, [lo, hi) of it; of a device that there is not, `fill`, NULL: zeros. */
static Value *of_other(Spmd *s, Value *x, int dim, const Dim *axes, const Stretch *w, int64_t hop,
                       int64_t lo, int64_t hi, Value *fill) {
  Build b = {.m = s->m, .r = s->at, .loc = s->loc};
  int64_t *from = xmalloc(sizeof *from * (size_t)w->n);
  bool any = false, lacks = false;
  for (int64_t p = 0; p < w->n; p++) {
    int64_t q = p + hop, first, end;
    bool takes = needs(w, p, &first, &end) && first < (q + 1) * w->part && end > q * w->part;
    from[p] = !takes ? -1 : w->around ? ((q % w->n) + w->n) % w->n : q;
    any |= takes;
    int64_t want = p * w->step + w->begin;
    lacks |= (q < 0 || q >= w->n) && want < (q + 1) * w->part && want + w->len > q * w->part;
  }
  Value *y = lo == 0 && hi == w->part ? x : b_slice_dim(&b, x, dim, lo, hi);
  Value *none = fill ? fill : zero_of(&b, x->type->dtype);
  if (!any) y = b_bcast_scalar(&b, none, y->type);
  else if (hop) y = spmd_fetch(s, y, axes, from);
  free(from);
  if (!fill || !any || !lacks || w->around) return y;
  Value *end = b_scalar_i64(&b, DT_I64, hop < 0 ? -hop : w->n - hop);
  Value *there = b_compare(&b, hop < 0 ? "GE" : "LT", spmd_own_place(s, axes, 1), end);
  return b_select(&b, b_bcast_scalar(&b, there, y->type), y, b_bcast_scalar(&b, fill, y->type));
}

/* [from, to) of what lies around a device's own part. */
static Value *gathered(Spmd *s, Value *x, int dim, const Dim *axes, const Stretch *w, int64_t from,
                       int64_t to, Value *fill) {
  Build b = {.m = s->m, .r = s->at, .loc = s->loc};
  int64_t first = div_down(from, w->part), n = div_down(to - 1, w->part) - first + 1;
  Value **pieces = xmalloc(sizeof *pieces * (size_t)n);
  for (int64_t i = 0; i < n; i++) {
    int64_t at = (first + i) * w->part;
    int64_t lo = MAX(from, at) - at, hi = MIN(to, at + w->part) - at;
    pieces[i] = of_other(s, x, dim, axes, w, first + i, lo, hi, fill);
  }
  Value *all = n > 1 ? b_concat(&b, (int)n, pieces, dim) : pieces[0];
  free(pieces);
  return all;
}

/* len elements from `at` + (a device's place) * step on, which may lie outside. */
static Value *taken(Spmd *s, Value *x, int dim, const Dim *axes, int64_t n, int64_t at,
                    int64_t step, int64_t len, Value *fill) {
  Build b = {.m = s->m, .r = s->at, .loc = s->loc};
  int64_t last = at + (n - 1) * step, size = x->type->dims[dim];
  int64_t low[MAX_RANK] = {0}, high[MAX_RANK] = {0}, none[MAX_RANK] = {0}, dims[MAX_RANK];
  low[dim] = MAX(0, -MIN(at, last));
  high[dim] = MAX(0, MAX(at, last) + len - size);
  if (low[dim] || high[dim])
    x = b_pad(&b, x, fill ? fill : zero_of(&b, x->type->dtype), low, high, none);
  at += low[dim];
  if (!step && len == x->type->dims[dim]) return x;
  if (!step) return b_slice_dim(&b, x, dim, at, at + len);
  Value *start[MAX_RANK];
  for (int d = 0; d < x->type->rank; d++) {
    start[d] = b_scalar_i64(&b, DT_I64, d == dim ? at : 0);
    dims[d] = d == dim ? len : x->type->dims[d];
  }
  start[dim] = b_add(&b, start[dim], spmd_own_place(s, axes, step));
  return b_dynamic_slice(&b, x, start, dims);
}

Value *spmd_where_inside(Spmd *s, Value *y, int dim, const Dim *axes, const Stretch *w,
                         Value *otherwise) {
  Build b = {.m = s->m, .r = s->at, .loc = s->loc};
  Type *row = b_type(&b, DT_I64, 1, &w->len);
  Value *begin = b_add(&b, spmd_own_place(s, axes, w->step), b_scalar_i64(&b, DT_I64, w->begin));
  Value *at = b_add(&b, b_iota(&b, row, 0), b_bcast_scalar(&b, begin, row));
  Value *first = b_bcast_scalar(&b, b_scalar_i64(&b, DT_I64, w->first), row);
  Value *end = b_bcast_scalar(&b, b_scalar_i64(&b, DT_I64, w->end), row);
  Value *in = b_and(&b, b_compare(&b, "GE", at, first), b_compare(&b, "LT", at, end));
  in = b_bcast_like(&b, in, y->type, &dim);
  if (!b_rank(otherwise)) otherwise = b_bcast_scalar(&b, otherwise, y->type);
  return b_select(&b, in, y, otherwise);
}

Value *spmd_stretch(Spmd *s, Value *x, int dim, const Dim *axes, const Stretch *w, Value *fill) {
  int64_t from, to;
  if (!span(w, &from, &to)) from = 0, to = w->part;
  x = gathered(s, x, dim, axes, w, from, to, fill);
  return taken(s, x, dim, axes, w->n, w->begin - from, w->step - w->part, w->len, fill);
}

Value *spmd_stretch_of_whole(Spmd *s, Value *x, int dim, const Dim *axes, const Stretch *w) {
  Build b = {.m = s->m, .r = s->at, .loc = s->loc};
  int64_t around[MAX_RANK] = {0}, none[MAX_RANK] = {0}, dims[MAX_RANK];
  around[dim] = w->len;
  x = b_pad(&b, x, zero_of(&b, x->type->dtype), around, around, none);
  Value *start[MAX_RANK];
  for (int d = 0; d < x->type->rank; d++) {
    start[d] = b_scalar_i64(&b, DT_I64, d == dim ? w->begin + w->len : 0);
    dims[d] = d == dim ? w->len : x->type->dims[d];
  }
  start[dim] = b_add(&b, start[dim], spmd_own_place(s, axes, w->step));
  return b_dynamic_slice(&b, x, start, dims); /* of one that lies outside, what pads */
}
