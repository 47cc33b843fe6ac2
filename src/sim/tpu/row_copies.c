/* Copies for what addresses rows: gathers, scatters and sorts want the natural order or one of their own; and for tables that
 * sums of rows are added to. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "sim/hlo/query.h"
#include "sim/tpu/layout_copies.h"

/* Operations element by element on arrays of one shape, each reached from the others, and what is
 * around them: the compiler gives all of them one order. */
typedef struct Group {
  const HNode *first;
  int ops;     /* that are not made of constants alone */
  int around;  /* what else reads and writes them */
  int params;  /* uses of arguments */
  bool result; /* of the program */
  bool asks;   /* makes predicates: these stay in the order they come in */
} Group;

static void reach(Group *g, HNode *n, char *seen) {
  if (n->dead || !hlo_same_shape(n, g->first->rank, g->first->d)) return;
  if (n->kind == H_PARAM && !n->comp->parent) {
    g->params++;
    return;
  }
  if (seen[n->id] || n->kind == H_CONST || n->kind == H_BCAST) return;
  seen[n->id] = 1;
  if (n->kind != H_EWISE) {
    g->around++;
    return;
  }
  g->ops += !hlo_const_only(n);
  g->asks |= n->dt == DT_I1;
  g->result |= n->is_output;
  for (int i = 0; i < n->n_in; i++) reach(g, n->in[i], seen);
  for (int i = 0; i < n->n_users; i++) {
    HNode *u = n->users[i];
    if (u->comp != n->comp || u->dead) continue;
    if (u->kind == H_EWISE) reach(g, u, seen);
    else if (!seen[u->id]) seen[u->id] = 1, g->around++;
  }
}

/* Where sums of rows meet tables that lie in another order, everything between takes the order of
 * the sums, unless it saves more in the tables' order, which pads less, than turning what is around
 * it moves: each of these counts once, a copy of an argument that goes away makes up for one, and
 * the program's results count as five. All is counted as if elements had 32 bits. Where there is a
 * comparison, the sums' order it is (15 updates of 8 to 64 columns on v5e). */
static bool as_tables(const Schedule *p, const HNode *first, const HValue *sums,
                      const HValue *table) {
  Group g = {.first = first};
  char *seen = calloc((size_t)p->g->n_nodes + 1, 1);
  assert(seen);
  reach(&g, (HNode *)first, seen);
  free(seen);
  if (g.asks) return false;
  double wide = 0, narrow = 0;
  HNode as = *first;
  as.dt = DT_F32;
  value_padded(p->params, &as, sums->order, &wide);
  value_padded(p->params, &as, table->order, &narrow);
  return g.ops * (wide - narrow) > (g.around + 5 * g.result - g.params) * (wide + narrow);
}

static bool updates_by_rows(Relayout *r) {
  const Kernel *k = r->k;
  const HNode *n = r->n;
  const HValue *sums = NULL, *table = NULL;
  if (k->conv || k->copy || k->reduce || n->kind != H_EWISE) return false;
  for (int q = 0; q < k->reads.n; q++) {
    const HValue *v = k->reads.v[q];
    if (v->node->comp != r->p->comp || v->node->rank < 2 || v->node->rank > 64 ||
        v->bytes < TURN_MIN || v->rounded || !hlo_same_shape(v->node, n->rank, n->d))
      continue;
    if (v->node->kind == H_SCATTER) sums = v;
    else if (v->is_param) table = v;
  }
  if (!sums || !table || tpu_same_order(sums, table)) return false;
  r->writes = !as_tables(r->p, n, sums, table);
  tpu_copy_order(r->order, (r->writes ? sums : table)->order, n->rank);
  tpu_copy_order(r->made, r->order, n->rank);
  return true;
}

static bool update_read(Relayout *r, const HValue *v, int *order) {
  (void)order;
  return (r->writes ? v->is_param : v->node->kind == H_SCATTER) &&
         hlo_same_shape(v->node, r->n->rank, r->n->d);
}

/* Is an operand's order good enough as it is? A gather does not want the dimension that it indexes
 * in lanes, unless it takes one number a row. */
static bool rows_reachable(const HNode *n, const HValue *v) {
  const int64_t *map;
  if (n->kind != H_GATHER || !n->src) return false;
  if (op_ints(n->src, "operand_batching_dims", &map) > 0 || hlo_takes_numbers(n->src)) return true;
  return op_ints(n->src, "start_index_map", &map) == 1 && v->node->rank > 2 &&
         v->order[0] != map[0];
}

/* A sort runs along sublanes when another dimension fills whole tiles of lanes, else as it comes. */
static void sort_order(const CostParams *params, const HNode *n, int *order) {
  const HNode *x = n->in[0];
  int r = x->rank, other = -1;
  int along = n->op == OP_SORT && n->src ? (int)op_int(n->src, "dimension", r - 1) : r - 1;
  for (int d = 0; d < r; d++)
    if (d != along && x->d[d] % 128 == 0) other = d;
  value_order_default(params, x, order);
  if (other < 0) return;
  order[0] = other;
  order[1] = along;
  value_order_rest(order, other == along ? 1 : 2, r);
}

/* The natural order of those dimensions that have more than one element. */
static void rows_order(const HNode *x, int *order) {
  int n = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int d = x->rank - 1; d >= 0; d--)
      if ((x->d[d] == 1) == pass) order[n++] = d;
}

/* The order in which what addresses rows wants its operand x. */
static void indexed_order(const CostParams *params, const HNode *n, const HNode *x, int *order) {
  const int64_t *map;
  int r = x->rank;
  rows_order(x, order);
  if (n->kind == H_SORT) sort_order(params, n, order);
  else if (n->kind == H_OTHER)
    value_order_default(params, n, order); /* of the result, which is narrow */
  else if (n->kind == H_GATHER && n->src && op_ints(n->src, "start_index_map", &map) == 1 &&
           map[0] == r - 1 && x->d[r - 1] > 1)
    value_order_swap(order); /* the indexed dimension may not be in lanes */
}

bool tpu_rows_order(const HNode *n, int *order) {
  const int64_t *map;
  const HNode *x = n->kind == H_GATHER ? n->in[0] : NULL;
  if (!x || !n->src || n->rank != 3 || x->rank != 2 || n->is_output || n->d[2] != x->d[1] ||
      op_ints(n->src, "start_index_map", &map) != 1 || map[0] != 0)
    return false;
  double b = (double)n->d[0], t = (double)n->d[1], d = (double)n->d[2];
  double lie = b * round_up(t, 8) * round_up(d, 128) + round_up(b * t, 8) * round_up(d, 128);
  double across = d * round_up(b, 8) * round_up(t, 128) + round_up(b * t, 128) * round_up(d, 8);
  bool turned = across < lie;
  for (int i = 0; i < 3; i++) order[i] = turned ? (int[]){1, 0, 2}[i] : 2 - i;
  return true;
}

static bool lies_across(const HValue *v) {
  return v->node->rank == 3 && v->order[0] == 1 && v->order[1] == 0;
}

static bool addresses_rows(Relayout *r) {
  const Kernel *k = r->k;
  const HNode *n = r->n, *x = n->n_in ? n->in[0] : NULL;
  bool scatter = n->kind == H_SCATTER, gather = n->kind == H_GATHER;
  if (k->roots.n != 1 || (!scatter && !gather && n->kind != H_SORT &&
                          (n->kind != H_OTHER || n->op != OP_CHLO_TOP_K || n->lies)))
    return false;
  for (int q = 0; q < k->inner.n && scatter; q++) /* rows straight from a gather */
    if (k->inner.v[q]->kind == H_GATHER) x = k->inner.v[q]->in[0];
  if (x->rank < 2 || x->rank > 64) return false;
  r->x = x;
  indexed_order(r->p->params, n, x, r->order);
  for (int q = 0; q < k->reads.n && gather; q++) /* the result is so, too */
    if (k->reads.v[q]->node == x && k->reads.v[q]->bytes > TURN_MAX)
      tpu_copy_order(r->order, k->reads.v[q]->order, x->rank);
  /* rows land as they come, and are turned into the order of tpu_rows_order() */
  r->back = gather && n->val && x->rank == 2 && lies_across(n->val) && !n->is_output;
  if (r->back) tpu_copy_order(r->copied, n->val->order, 3);
  r->writes = r->back || n->rank == x->rank;
  tpu_copy_order(r->made, r->order, x->rank);
  if (r->back) value_order_rest(r->made, 0, 3);
  else if (n->rank == 2 && n->d[1] == 1) rows_order(n, r->made);
  return true;
}

static bool row_read(Relayout *r, const HValue *v, int *order) {
  const HNode *n = r->n;
  bool scatter = n->kind == H_SCATTER, rows = scatter && v->node == n->in[n->n_in - 1];
  if (rows && n->rank == 2 && lies_across(v)) {
    value_order_rest(order, 0, 3);
    return true;
  }
  bool operand = v->node == r->x || (scatter && n->n_in >= 3 && (rows || v->node == n->in[0]));
  if (!operand || v->node->rank != r->x->rank || v->bytes > TURN_MAX ||
      (v->node == r->x && rows_reachable(n, v)) || tpu_lies_so(v, order))
    return false;
  if (scatter && v->node == n->in[0] && v->kernel >= 0 && !n->is_output) { /* and back */
    r->back = true;
    tpu_copy_order(r->copied, v->order, v->node->rank);
  }
  return true;
}

const CopyRule tpu_rows = {"rows", true, addresses_rows, row_read,
                           "rows_gathered_turn, rows_scattered_made, relaid_once"};
const CopyRule tpu_row_updates = {"tables and sums of rows", false, updates_by_rows, update_read,
                                  "rows_tables_turn, rows_tables_under_masks"};
