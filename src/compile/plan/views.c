/* Views: parts of stacks that a loop uses where they are.
 *
 * A slice of a stack that was there before the loop and stays until after it is read in place; so is
 * one of an argument, the weights of one layer out of a stack of all for one. What
 * a loop puts into a stack is computed there, if the place is known by then and nobody else asks for
 * the stack meanwhile. */
#include <stdlib.h>

#include "compile/plan/plan_priv.h"

static bool in_loop(const Builder *b) { return b->loops.n && !b->manual && b->plan->n_procs == 1; }

bool plan_slice_is_view(const Builder *b, const Op *op) {
  if (op->kind == OP_SLICE)
    return b->plan->n_procs == 1 && !b->manual && op_is_part_of_argument(op);
  if (op->kind != OP_DYNAMIC_SLICE || !in_loop(b)) return false;
  int whole = b->plan->value_place[op->operands[0]->id];
  if (whole < 0) return false;
  const Place *p = &b->places.v[whole];
  if (p->kind == PLACE_NONE || p->kind == PLACE_VIEW ||
      (p->kind == PLACE_ARENA && (p->begin < 0 || p->begin >= b->loops.v[b->loops.n - 1].begin)))
    return false;
  return slice_is_aligned_run(op->operands[0]->type, op_type(op)) &&
         value_is_read_by_steps(op->parent, &op->results[0]);
}

static bool node_reads(const Node *n, const Value *v) {
  if (n->kind == NODE_FUSION) {
    for (int i = 0; i < n->fusion->n_in; i++)
      if (n->fusion->in[i] == v) return true;
    return false;
  }
  for (int i = 0; i < n->op->n_operands; i++)
    if (n->op->operands[i] == v) return true;
  return false;
}

static bool read_from(const Nodes *nodes, int first, const Value *v) {
  for (int i = 0; i < nodes->n; i++) {
    const Node *n = &nodes->v[i];
    if (!node_reads(n, v)) continue;
    bool alias = n->kind == NODE_OP && op_is_alias(n->op);
    if (alias ? read_from(nodes, first, &n->op->results[0]) : i >= first) return true;
  }
  return false;
}

bool plan_is_outlived(const Builder *b, const Nodes *nodes, int slice) {
  const Op *op = nodes->v[slice].op;
  const Target *t = b->target;
  for (int i = slice + 1; i < nodes->n && t->in_place; i++) {
    const Node *n = &nodes->v[i];
    int k = n->kind == NODE_OP ? t->in_place(t->arg, n->op) - 1 : -1;
    if (k >= 0 && n->op->operands[k] == op->operands[0])
      return read_from(nodes, i + 1, &op->results[0]);
  }
  return false;
}

/* ---- what is put into a stack ---- */

static const Value *original(const Value *v) {
  while (v->def && v->def->kind == OP_RESHAPE) v = v->def->operands[0];
  return v;
}

void plan_find_puts(Builder *b, const Op *loop) {
  const Region *body = loop->regions[1];
  for (Op *op = body->first; op && in_loop(b); op = op->next) {
    if (op->kind != OP_DYNAMIC_UPDATE_SLICE) continue;
    const Value *v = original(op->operands[1]);
    bool made_here = v->def && v->region == body && !op_is_alias(v->def) && !v->def->n_regions &&
                     v->def->kind != OP_CONSTANT;
    if (made_here && slice_is_aligned_run(op->operands[0]->type, op->operands[1]->type) &&
        loop_hides_stack(loop, op) && value_is_read_by_steps(body, v))
      *vec_push(&b->puts) = (Put){op, v, false};
  }
}

Op *plan_put_of(Builder *b, const Value *v) {
  for (int i = 0; i < b->puts.n; i++) {
    Put *p = &b->puts.v[i];
    if (p->v != v) continue;
    for (int k = 2; k < p->op->n_operands; k++)
      if (b->plan->value_place[p->op->operands[k]->id] < 0) return NULL;
    if (b->plan->value_place[p->op->operands[0]->id] < 0) return NULL;
    p->done = true;
    return p->op;
  }
  return NULL;
}

bool plan_put_is_done(const Builder *b, const Op *op) {
  for (int i = 0; i < b->puts.n; i++)
    if (b->puts.v[i].op == op) return b->puts.v[i].done;
  return false;
}
