/* Rows that are shorter than vectors: along the lanes, or one in each lane? */
#include "dev/cpu/loops/shape.h"

#define MAX_ACROSS_CODE 1000 /* nodes, written out */

int64_t shape_row_length(const Dag *d, int nk) {
  int64_t n = 1;
  for (int i = nk; i < d->n_loops; i++) n *= d->loops[i].extent;
  return n;
}

static void row_levels(Dag *d, int nk) {
  d->vloop = d->n_loops > nk ? d->n_loops - 1 : -1;
  for (int i = 0; i < d->n_loops; i++) d->loops[i].level = i < nk ? 1 : i - nk + 2;
  dag_levels(d);
}

static void across_levels(Dag *d, int nk) {
  d->vloop = nk - 1;
  for (int i = 0; i < d->n_loops; i++) d->loops[i].level = i < nk - 1 ? 1 : i < nk ? 2 : 3;
  dag_levels(d);
}

/* ---- rows that are turned ---- */

/* Does the form walk through dense rows, one for each lane? */
static bool is_dense(const Dag *d, const Affine *a, int nk, int64_t length) {
  int64_t at = 1;
  for (int i = d->n_loops - 1; i >= nk; i--) {
    if (d->loops[i].extent > 1 && a->coef[d->loops[i].last] != at) return false;
    at *= d->loops[i].extent;
  }
  return dag_vector_stride(d, a) == length && length > 1;
}

bool shape_turns(const Dag *d, const DagNode *n, int nk, int64_t length) {
  return n->kind == N_INPUT && !n->part && !n->mask && length > LEAST_TURNED &&
         is_dense(d, &n->lin, nk, length);
}

bool shape_turns_out(const Dag *d, int out, int nk, int64_t length) {
  const FusionOut *o = &d->f->out[out];
  return o->full && o->part < 0 && !dtype_is_complex(o->v->type->dtype) &&
         is_dense(d, &d->out_lin[out], nk, length);
}

/* Vector operations for an element of each row. */
static double turned_work(int lanes, int64_t length) {
  int64_t blocks = (length + lanes - 1) / lanes, steps = 1;
  for (int n = lanes; n > 1; n /= 2) steps++;
  if (length <= LEAST_TURNED) return (double)length;
  return 2.25 * (double)(blocks * lanes * steps) / (double)length;
}

/* ---- what they cost ---- */

/* Of a combination of two elements. */
static double body_work(const DagReduce *r) {
  double w = r->n;
  for (const Op *op = r->op->regions[0]->first; op; op = op->next) w += 1;
  return w;
}

static double node_work(const Dag *d, const DagNode *n) {
  int64_t stride = n->kind == N_INPUT ? llabs(dag_vector_stride(d, &n->lin)) : 0;
  if (n->kind == N_INPUT) return stride <= 1 ? 2 : stride <= 4 ? 2 * (double)stride : 12;
  return n->kind == N_OP ? op_loop_work(n->op) : 0;
}

/* For each row, in operations, levels set accordingly: with its elements in a vector, ... */
static double work_along(const Dag *d, int lanes, int64_t length) {
  double w = 0, vectors = (double)((length + lanes - 1) / lanes);
  for (int i = 0; i < d->nodes.n; i++) {
    const DagNode *n = &d->nodes.v[i];
    if (n->level) w += (n->vec ? vectors : 1) * node_work(d, n);
  }
  for (int i = 0; i < d->reduces.n; i++)
    for (int n = lanes; n > 1; n /= 2) w += body_work(&d->reduces.v[i]);
  return w;
}

/* ... with rows in its lanes. */
static double work_across(const Dag *d, int lanes, int nk, int64_t length) {
  double w = 0, each = (double)length, turned = turned_work(lanes, length);
  for (int i = 0; i < d->nodes.n; i++) {
    const DagNode *n = &d->nodes.v[i];
    bool dense = n->level == 3 && shape_turns(d, n, nk, length);
    if (n->level >= 2) w += (n->level == 3 ? each : 1) * (dense ? turned : node_work(d, n));
  }
  for (int i = 0; i < d->reduces.n; i++) w += each * body_work(&d->reduces.v[i]);
  for (int i = 0; i < d->n_out; i++)
    if (d->f->out[i].full)
      w += each * (dag_vector_stride(d, &d->out_lin[i]) == 1 ? 2
                   : shape_turns_out(d, i, nk, length)       ? turned
                                                             : 2 * lanes);
  return w / lanes;
}

bool shape_across(Dag *d, int lanes, int nk) {
  int64_t length = shape_row_length(d, nk);
  if (nk < 1 || nk == d->n_loops || d->loops[nk - 1].extent < lanes || length > MAX_ACROSS_ROW ||
      length * d->nodes.n > MAX_ACROSS_CODE)
    return false;
  row_levels(d, nk);
  double along = work_along(d, lanes, length);
  across_levels(d, nk);
  for (int i = 0; i < d->nodes.n; i++) { /* a row for each lane, in every reduction */
    const DagNode *n = &d->nodes.v[i];
    if (n->kind == N_REDUCE && (!n->vec || n->level != 2)) return false;
  }
  return work_across(d, lanes, nk, length) < along;
}
