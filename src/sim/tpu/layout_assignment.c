/* The order of each stored value's dimensions: products, padding, pooling and addressed rows want
 * certain dimensions in the tile, arguments and results keep the order that pads least. The
 * relayouts that follow from it are in layout_copies.c. */
#include <math.h>
#include <stdlib.h>

#include "sim/hlo/query.h"
#include "sim/schedule/schedule.h"
#include "sim/tpu/layout_propagation.h"
#include "sim/tpu/tpu.h"

/* In the tile: not a batch dimension of a dot, not a spatial one of a convolution. */
static bool role_ok(const HConv *c, char r) { return c->is_conv ? r != 's' : r != 'b'; }

#define PATHS 1000 /* operations looked at, on ways that lead nowhere, too */

static LayoutFound argument(const LayoutWalk *w, const HNode *n, int *order) {
  if (n->kind != H_GET && n->kind != H_PARAM) return LAYOUT_BEFORE;
  value_order_default(w->params, n, order);
  return LAYOUT_HERE;
}

/* The order of what comes from an argument or a loop's result, perhaps through products that keep its rows. */
static bool given_order(const CostParams *params, const HNode *n, int *order) {
  LayoutWalk w = {.source = argument,
                  .through = 1 << H_TRANSPOSE | 1 << H_EWISE | 1 << H_CONCAT | 1 << H_CONV,
                  .first = true,
                  .params = params,
                  .left = PATHS};
  return layout_from(&w, n, order);
}

/* How much whole tiles of so many rows pad an operand at least, with dimension d in the tile. */
static double padding_with(const HNode *n, int d, double tile) {
  double best = HUGE_VAL;
  for (int i = 0; i < n->rank; i++) {
    double a = (double)n->d[d], b = (double)n->d[i];
    if (i == d || a <= 0 || b <= 0) continue;
    best =
        MIN(best, MIN(round_up(a, 128) * round_up(b, tile), round_up(a, tile) * round_up(b, 128)) /
                      (a * b));
  }
  return best;
}

int tpu_dot_row(const HNode *x, const HConv *c, int like) {
  int rows = 0, best = -1;
  double least = HUGE_VAL;
  for (int i = 0; i < x->rank; i++) rows += c->lhs[i] == 'm';
  for (int i = x->rank - 1; i >= 0; i--) {
    if (c->lhs[i] != 'm' || x->d[i] <= 1) continue;
    double pad = padding_with(x, i, rows > 2 ? 16 : 8) - (i == like ? 1e-9 : 0);
    if (pad < least) least = pad, best = i;
  }
  return best;
}

/* The dimension of n, which is made of the dot, that is dimension d of the dot's first operand; -1: none. */
static int row_of(const HNode *n, const HNode *dot, const int *from, int d) {
  int row = layout_row(dot, d);
  for (int q = 0; q < n->rank; q++)
    if (from[q] == row) return q;
  return -1;
}

/* Is what is made of a product, element by element, summed up along that dimension, or its largest
 * sought? */
static bool sums_along(const HNode *n, int d, int depth) {
  for (int i = 0; i < n->n_users && depth < 6; i++) {
    const HNode *u = n->users[i];
    for (int q = 0; q < u->n_dims && u->kind == H_REDUCE; q++)
      if (u->dims[q] == d) return true;
    int at = d;
    for (int q = 0; q < u->rank && u->kind == H_TRANSPOSE; q++)
      if (u->dims[q] == d) at = q;
    if ((u->kind == H_EWISE || u->kind == H_TRANSPOSE) && sums_along(u, at, depth + 1)) return true;
  }
  return false;
}

/* The result of a dot: a row and the last column dimension share the tiles. The row is the one that is
 * nearest to the lanes in an operand whose order is given, in another as tpu_dot_row has it. False when
 * it has not both. */
static bool dot_order(const CostParams *params, const HNode *n, const HNode *dot, const char *out,
                      const int *from, int *order) {
  const HConv *c = dot->conv;
  int m = -1, f = -1, left[64], rows = 0;
  for (int i = 0; i < n->rank; i++) {
    rows += out[i] == 'm';
    if (n->d[i] <= 1) continue;
    if (out[i] == 'm') m = i;
    if (out[i] == 'n') f = i;
  }
  const HNode *x = dot->in[0];
  int row = -1;
  if (rows > 1 && c->batch == 1 && given_order(params, x, left)) {
    for (int q = x->rank - 1; q >= 0; q--)
      if (c->lhs[left[q]] == 'm' && x->d[left[q]] > 1) row = left[q];
  } else if (rows > 1) {
    int last = x->rank - 1;
    while (last >= 0 && (c->lhs[last] != 'm' || row_of(n, dot, from, last) != m)) last--;
    row = tpu_dot_row(x, c, last);
  }
  if (row >= 0 && row_of(n, dot, from, row) >= 0) m = row_of(n, dot, from, row);
  if (m < 0 || f < 0) return false;
  if (m > f) { /* of equals the later one lies in lanes, unless sums run over it */
    int t = m;
    m = f;
    f = t;
  }
  double dm = (double)n->d[m], df = (double)n->d[f];
  bool swap = round_up(dm, 128) * round_up(df, 8) < round_up(df, 128) * round_up(dm, 8) ||
              (dm == df && c->batch > 1 && sums_along(dot, from[f], 0));
  order[0] = swap ? m : f;
  order[1] = swap ? f : m;
  value_order_rest(order, 2, n->rank);
  return true;
}

static LayoutFound product(const LayoutWalk *w, const HNode *n, int *order) {
  for (int i = 0; i < n->rank; i++) order[i] = i;
  if (n == w->of) return LAYOUT_HERE;
  return n->kernel != w->kernel && (n->val || n->kind == H_BCAST) ? LAYOUT_NONE : LAYOUT_BEFORE;
}

/* Which dimensions of the product that it is made of in that kernel, element by element, those of n are, and
 * their roles there. */
static void made_roles(const HNode *n, const HNode *of, int kernel, int *from, char *roles) {
  LayoutWalk w = {.source = product,
                  .through = 1 << H_EWISE | 1 << H_TRANSPOSE,
                  .of = of,
                  .kernel = kernel,
                  .left = PATHS};
  int order[64];
  bool made = layout_from(&w, n, order);
  for (int i = 0; i < n->rank; i++) from[made ? order[i] : i] = i;
  for (int i = 0; i < n->rank; i++) roles[i] = of->conv->out[from[i]];
}

/* The product that reads this node (through element-wise nodes of the same shape), and the roles of
 * its dimensions. */
static const char *reader_roles(const HNode *n, const HConv **conv, int depth) {
  if (depth > 6) return NULL;
  for (int i = 0; i < n->n_users; i++) {
    const HNode *u = n->users[i];
    if (u->kind == H_CONV) {
      *conv = u->conv;
      return u->in[0] == n ? u->conv->lhs : u->conv->rhs;
    }
    if (u->kind == H_EWISE && u->rank == n->rank) {
      const char *r = reader_roles(u, conv, depth + 1);
      if (r) return r;
    }
  }
  return NULL;
}

bool tpu_turned_inside(const HValue *v, const HConv *c, const char *roles) {
  return !c->is_conv && v->node->rank > 2 && role_ok(c, roles[v->order[0]]) &&
         !role_ok(c, roles[v->order[1]]) && v->node->d[v->order[1]] > 1;
}

bool tpu_order_serves(const HValue *v, const HConv *c, const char *roles, bool result) {
  int r = v->node->rank;
  if (r < 2) return true;
  int allowed = 0;
  for (int i = 0; i < r; i++) allowed += role_ok(c, roles[i]) && v->node->d[i] > 1;
  if (allowed < 2) return true;
  if (!role_ok(c, roles[v->order[0]])) return false;
  /* in sublanes an operand may have any dimension, a result may not */
  return !result || role_ok(c, roles[v->order[1]]);
}

/* Do only products read it, which round it to bf16 anyway? Others of the kernel that makes it do not
 * count, nor do changes of shape and concatenations. */
static bool products_read(const HNode *n, int kernel, int depth) {
  int products = 0;
  for (int i = 0; i < n->n_users; i++) {
    const HNode *u = n->users[i];
    bool rounds = u->kind == H_EWISE && u->op == OP_CONVERT && u->dt == DT_BF16 && !u->val;
    bool shaped = !u->val && (u->kind == H_RESHAPE || u->kind == H_TRANSPOSE);
    bool moves = depth < 4 && !u->is_output && (shaped || u->kind == H_CONCAT);
    int at = u->val ? u->val->kernel : kernel;
    if (u->comp == n->comp && (rounds || (u->kind == H_CONV && u->conv->passes == 1) ||
                               (moves && products_read(u, at, depth + 1))))
      products++;
    else if (u->kernel != kernel) return false;
  }
  return products > 0;
}

/* Does all that reads it, directly or after choosing elements, go on in bf16? */
static bool goes_on_narrow(const HNode *n, int depth) {
  for (int i = 0; i < n->n_users; i++) {
    const HNode *u = n->users[i];
    bool rounds = u->kind == H_EWISE && u->op == OP_CONVERT && u->dt == DT_BF16;
    bool moves = u->kind == H_RESHAPE || (u->kind == H_EWISE && u->op == OP_SELECT);
    if (u->comp != n->comp || u->is_output) return false;
    if (!rounds && !(moves && depth < 4 && goes_on_narrow(u, depth + 1))) return false;
  }
  return n->n_users > 0;
}

/* A sum over devices that goes on in bf16 is sent so. */
static bool sent_narrow(const HNode *n) {
  return n->kind == H_COLL && n->op == OP_ALL_REDUCE && n->dt == DT_F32 && n->rank > 1 &&
         !n->is_output && goes_on_narrow(n, 0);
}

/* A wide array that only products read is stored rounded; rows are rounded before they are
 * gathered. */
static bool only_rounded(const HValue *v) {
  const HNode *n = v->node;
  if (v->kernel >= 0 && !v->alias && sent_narrow(n)) return true;
  if (v->kernel >= 0 && !v->alias && n->dt == DT_F32 && n->n_users == 1 && n->kind == H_EWISE &&
      sent_narrow(n->users[0]))
    return true;
  bool kind = hlo_light(n) || n->kind == H_CONCAT || n->kind == H_GATHER ||
              (n->kind == H_RWIN && n->n_results == 1);
  return n->dt == DT_F32 && v->kernel >= 0 && !v->alias && !n->is_output && kind && n->rank > 1 &&
         products_read(n, v->kernel, 0);
}

/* Is it a stack that a loop writes slice by slice, in the loop or after it? */
static bool is_stack(const HNode *n) {
  const HNode *w = n->kind == H_GET ? n->in[0] : n->comp->owner;
  if (!w || w->kind != H_WHILE || (n->kind != H_GET && n->kind != H_PARAM)) return false;
  const HComp *body = w->comps[1];
  int i = n->index;
  return i < body->outputs.n && body->outputs.v[i]->kind == H_DUS &&
         body->outputs.v[i]->in[0] == body->params.v[i];
}

/* What a loop does not change lies in its body as it does outside. NULL: in its default order. */
static const int *order_outside(const Schedule *p, const HValue *v) {
  const HComp *c = p->comp;
  const HNode *w = c->owner;
  int i = v->node->index;
  if (!v->is_param || !p->loop_body || i >= w->n_in || i >= c->outputs.n ||
      c->outputs.v[i] != v->node || v->node->rank < 2)
    return NULL;
  const HValue *out = w->in[i]->val;
  return out && out->bytes > 0 && !out->is_param && out->node->rank == v->node->rank ? out->order
                                                                                     : NULL;
}

/* Is dimension `at` of n, perhaps without the round's own, the batch of a product that reads it? */
static bool batch_of_product(const HNode *n, int at) {
  for (int i = 0; i < n->n_users; i++) {
    const HNode *u = n->users[i];
    if (u->kind == H_RESHAPE && n->d[0] == 1 && u->rank == n->rank - 1 && at > 0 &&
        hlo_same_shape(u, n->rank - 1, n->d + 1) && batch_of_product(u, at - 1))
      return true;
    if (u->kind == H_CONV && !u->conv->is_conv &&
        (u->in[0] == n ? u->conv->lhs : u->conv->rhs)[at] == 'b')
      return true;
  }
  return false;
}

/* Does a round of a loop take a slice of an array whose tiles hold rounds beside each other, or what is the
 * batch of the slice's product? (Not of what a loop wrote: that lies slice by slice.) */
bool tpu_slices_tiles(const Schedule *p, const HNode *n) {
  const HValue *v = n->kind == H_DSLICE ? n->in[0]->val : NULL;
  const int *order = v && n->rank > 2 ? order_outside(p, v) : NULL;
  if (!order || n->in[0]->rank != n->rank) return false;
  int sublanes = order[1];
  if (n->d[sublanes] == 1) return n->in[0]->d[sublanes] > 1;
  return p->comp->owner->in[v->node->index]->kind != H_GET && batch_of_product(n, sublanes);
}

static void lay_out(Schedule *p, HValue *v);

/* What is stored lies as it is stored, a product as it is written. */
static LayoutFound stored(const LayoutWalk *w, const HNode *n, int *order) {
  const HConv *c = n->conv;
  int same[64];
  if (n == w->of) return n->kind == H_TRANSPOSE ? LAYOUT_NONE : LAYOUT_BEFORE;
  if (n->val) {
    if (n->comp == w->schedule->comp) lay_out(w->schedule, n->val);
    memcpy(order, n->val->order, sizeof *order * (size_t)n->rank);
    return n->val->bytes > 0 ? LAYOUT_HERE : LAYOUT_NONE;
  }
  if (n->kind != H_CONV || n->rank < 3) return LAYOUT_BEFORE;
  for (int i = 0; i < n->rank; i++) same[i] = i;
  if (c->is_conv) tpu_conv_order(w->params, n, c, c->out, order);
  return c->is_conv || dot_order(w->params, n, n, c->out, same, order) ? LAYOUT_HERE : LAYOUT_NONE;
}

/* Element by element, cut, padded or summed up, and by `more` kinds of operations. *from: of what, or NULL. */
static bool made_of(Schedule *p, const HNode *n, unsigned more, int *order, const HNode **from) {
  LayoutWalk w = {.source = stored,
                  .through = 1 << H_EWISE | 1 << H_SLICE | 1 << H_DSLICE | 1 << H_PAD |
                             1 << H_REVERSE | 1 << H_REDUCE | 1 << H_TRANSPOSE | more,
                  .left = PATHS,
                  .params = p->params,
                  .schedule = p,
                  .of = n};
  bool found = layout_from(&w, n, order);
  if (from) *from = w.at;
  return found;
}

/* The product in whose kernel v is made element by element; or NULL. */
static const HNode *product_of(const Schedule *p, const HValue *v) {
  const HNode *c = v->kernel >= 0 ? p->kernels.v[v->kernel]->conv : NULL;
  return c && hlo_count(c) == hlo_count(v->node) && c->rank == v->node->rank ? c : NULL;
}

static bool as_stack(Schedule *p, const HValue *v, int *order) { /* slice after slice */
  const HNode *n = v->node;
  if (n->rank < 3 || n->rank > 64 || !is_stack(n)) return false;
  HNode slice = {.dt = n->dt, .rank = n->rank - 1, .d = n->d + 1};
  value_order_default(p->params, &slice, order);
  for (int d = 0; d < slice.rank; d++) order[d]++;
  order[slice.rank] = 0;
  return true;
}

static bool as_given(Schedule *p, const HValue *v, int *order) {
  const int *outside = order_outside(p, v);
  if (!v->is_param && v->node->kind != H_CONST && v->node->rank > 1 && v->node->rank <= 64)
    return false;
  if (outside) memcpy(order, outside, sizeof *order * (size_t)v->node->rank);
  else value_order_default(p->params, v->node, order);
  return true;
}

static bool as_rewritten(Schedule *p, const HValue *v, int *order) {
  (void)p;
  if (v->node->lies) memcpy(order, v->node->lies, sizeof *order * (size_t)v->node->rank);
  return v->node->lies != NULL;
}

/* With more or less dimensions of one, or a piece of something. */
static bool as_same_memory(Schedule *p, const HValue *v, int *order) {
  const HNode *n = v->node;
  bool stack = hlo_stacked(n) && n->in[0]->kind == H_RESHAPE;
  bool piece =
      n->kind == H_RESHAPE && n->n_users == 1 && hlo_stacked(n->users[0]) && hlo_same_dimensions(n);
  bool view = v->alias && n->kind == H_SLICE;
  if ((stack || piece || view || tpu_upsampled(n)) &&
      made_of(p, n, 1 << H_RESHAPE | (stack ? 1 << H_CONCAT : 1 << H_BCAST), order, NULL))
    return true;
  if (v->alias) value_order_default(p->params, n, order);
  return v->alias != NULL;
}

static bool as_image(Schedule *p, const HValue *v, int *order) {
  const HNode *n = v->node;
  bool moved = n->kind == H_RESHAPE || n->kind == H_SLICE || n->kind == H_PAD ||
               n->kind == H_CONCAT || n->kind == H_RWIN;
  return ((n->part && moved) || n->rows) && tpu_part_order(p->params, n, order);
}

static bool as_gathered(Schedule *p, const HValue *v, int *order) {
  (void)p;
  return tpu_rows_order(v->node, order);
}

static bool as_product(Schedule *p, const HValue *v, int *order) {
  const HNode *c = product_of(p, v);
  char roles[64];
  int from[64];
  if (!c) return false;
  made_roles(v->node, c, v->kernel, from, roles);
  if (c->conv->is_conv) tpu_conv_order(p->params, v->node, c->conv, roles, order);
  return c->conv->is_conv ||
         (v->node->rank > 2 && dot_order(p->params, v->node, c, roles, from, order));
}

#define HALF 2 /* times as large as it needs to be: lanes that are half full */

static bool pads_little(const CostParams *params, const HNode *n, const int *order) {
  int least[64];
  double tiles;
  value_order_default(params, n, least);
  return value_padded(params, n, order, &tiles) <= HALF * value_padded(params, n, least, &tiles);
}

/* Pixels split for a sum, or heads joined, with rows in lanes where one head's columns do not fill them and the rows
 * fill half of them, are the memory that the product writes. */
static bool as_product_reshaped(Schedule *p, const HValue *v, int *order) {
  const HNode *n = v->node, *c = v->kernel >= 0 ? p->kernels.v[v->kernel]->conv : NULL;
  return c && n->kind == H_RESHAPE && !product_of(p, v) &&
         (c->conv->is_conv || c->conv->batch > 1) && made_of(p, n, 1 << H_RESHAPE, order, NULL) &&
         pads_little(p->params, n, order);
}

/* An argument is rounded as it lies, and turned after that. */
static bool rounds_argument(const Kernel *k) {
  return k->roots.n == 1 && k->inner.n == 1 && k->roots.v[0]->op == OP_CONVERT &&
         k->roots.v[0]->in[0]->val && k->roots.v[0]->in[0]->val->is_param;
}

static bool as_convolution_reads(Schedule *p, const HValue *v, int *order) {
  const HConv *reader;
  if (product_of(p, v) || v->node->kind == H_REDUCE ||
      (v->kernel >= 0 && rounds_argument(p->kernels.v[v->kernel])))
    return false;
  const char *roles = reader_roles(v->node, &reader, 0);
  if (!roles || !reader->is_conv) return false;
  tpu_conv_order(p->params, v->node, reader, roles, order);
  return true;
}

/* A piece keeps the order of what it is cut from, but not several of an image; so does what is computed of one, if that does
 * not pad much. What is turned round, and sums of gathered rows, lie as they pad least. */
static bool as_made(Schedule *p, const HValue *v, int *order) {
  const HNode *n = v->node, *from;
  const Kernel *k = v->kernel >= 0 ? p->kernels.v[v->kernel] : NULL;
  bool sum = n->kind == H_REDUCE, slice = n->kind == H_SLICE || n->kind == H_DSLICE;
  if (!k || (!sum && k->conv) || !made_of(p, n, 0, order, &from)) return false;
  if (sum) return from->kind != H_GATHER;
  if (slice) return k->roots.n == 1 || n->rank < 3;
  return hlo_count(from) <= hlo_count(n) ||
         (n->kind == H_EWISE && pads_little(p->params, n, order));
}

/* A copy of something stored that has ones besides. */
static bool as_with_ones(Schedule *p, const HValue *v, int *order) {
  const HNode *n = v->node;
  Regroup r;
  if (v->kernel < 0 || !layout_adds_ones(n) || !n->in[0]->val || n->in[0]->comp != p->comp ||
      n->rank > 64 || n->in[0]->rank > 64)
    return false;
  lay_out(p, n->in[0]->val);
  regroup(n->in[0], n, &r);
  return regroup_order(&r, true, n->in[0]->val->order, order);
}

static bool as_pads_least(Schedule *p, const HValue *v, int *order) {
  value_order_default(p->params, v->node, order);
  return true;
}

/* What decides how a value lies: the first that says something. */
static const struct Rule {
  const char *name;
  bool (*order)(Schedule *p, const HValue *v, int *order);
} rules[] = {
    {"a loop's stack", as_stack},
    {"argument", as_given},
    {"rewritten", as_rewritten},
    {"same memory", as_same_memory},
    {"image in parts", as_image},
    {"gathered rows", as_gathered},
    {"a product's result", as_product},
    {"a product's result, reshaped", as_product_reshaped},
    {"a convolution's operand", as_convolution_reads},
    {"what it is made of", as_made},
    {"what it is, with ones", as_with_ones},
    {"least padding", as_pads_least},
};

static void lay_out(Schedule *p, HValue *v) {
  int order[64], rule = 0;
  if (v->laid) return;
  v->laid = true;
  while (!rules[rule].order(p, v, order)) rule++;
  value_layout(p->params, v, order);
  sched_why(v->node, "laid out", rules[rule].name);
  if (!v->alias) return;
  lay_out(p, v->alias);
  v->bytes = v->alias->bytes, v->tiles = v->alias->tiles;
}

void tpu_layouts(Schedule *p) {
  for (int i = 0; i < p->values.n; i++) p->values.v[i]->rounded = only_rounded(p->values.v[i]);
  for (int i = 0; i < p->values.n; i++) lay_out(p, p->values.v[i]);
}
