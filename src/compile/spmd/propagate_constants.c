/* What is computed of constants alone (masks, positions), and numbers that are broadcast, are made again for each
 * operation that reads them, as Shardy has it: what is free to make carries no sharding from one reader to
 * another. Within such a computation a value may have several readers. */
#include <stdlib.h>

#include "compile/spmd/propagate_priv.h"

typedef struct Split {
  Module *m;
  bool *constant; /* by value id: computed of constants alone */
  bool *grouped;  /* by value id: to be cut as others are */
  int *readers;   /* by value id */
  Value **copy;   /* by value id: for the operation at hand */
  VEC(int) copied;
} Split;

static bool is_constant(const Split *s, const Value *v) {
  return v->id >= 0 && v->def && s->constant[v->id];
}

static bool of_constants(const Split *s, const Op *op) {
  if (op->n_results != 1 || op->n_regions || op->results[0].type->kind != TY_TENSOR) return false;
  if (op->kind == OP_CONSTANT || op->kind == OP_IOTA) return true;
  if (op_info[op->kind].cls != OC_EWISE && op->kind != OP_BROADCAST_IN_DIM && op->kind != OP_SLICE)
    return false;
  for (int k = 0; k < op->n_operands; k++)
    if (!is_constant(s, op->operands[k])) return false;
  return op->n_operands > 0;
}

static bool is_number_broadcast(const Op *op) {
  return op->kind == OP_BROADCAST_IN_DIM && op->operands[0]->type->rank == 0;
}

static bool is_split(const Split *s, const Value *v) {
  return v->id >= 0 && v->def && !s->grouped[v->id] &&
         (s->constant[v->id] || is_number_broadcast(v->def));
}

/* The value made again before `at`, with all constants that it is computed of. */
static Value *again(Split *s, Value *v, Op *at) {
  if (!is_split(s, v)) return v;
  if (s->copy[v->id]) return s->copy[v->id];
  Op *def = v->def, *c = op_clone(s->m, def, NULL);
  for (int k = 0; k < def->n_operands; k++)
    if (is_constant(s, v)) c->operands[k] = again(s, def->operands[k], at);
  op_insert_before(at, c);
  c->results[0].id = -1;
  s->copy[v->id] = &c->results[0];
  *vec_push(&s->copied) = v->id;
  return &c->results[0];
}

static void split_region(Split *s, Region *r) {
  for (Op *op = r->first; op; op = op->next) {
    if (op->n_results && op->results[0].id < 0) continue; /* made again */
    bool grouped = op->n_results && s->grouped[op->results[0].id];
    if (!grouped && of_constants(s, op)) s->constant[op->results[0].id] = true;
    else if (grouped || !is_number_broadcast(op))
      for (int k = 0; k < op->n_operands; k++) op->operands[k] = again(s, op->operands[k], op);
    for (int i = 0; i < s->copied.n; i++) s->copy[s->copied.v[i]] = NULL;
    s->copied.n = 0;
    for (int i = 0; i < op->n_regions; i++) split_region(s, op->regions[i]);
  }
}

static void find_groups(Split *s, const Region *r) {
  for (const Op *op = r->first; op; op = op->next) {
    if (op->kind == OP_SHARDING_GROUP) s->grouped[op->operands[0]->id] = true;
    for (int i = 0; i < op->n_regions; i++) find_groups(s, op->regions[i]);
  }
}

static void count_readers(Split *s, const Region *r) {
  for (const Op *op = r->first; op; op = op->next) {
    for (int k = 0; k < op->n_operands; k++)
      if (op->operands[k]->id >= 0) s->readers[op->operands[k]->id]++;
    for (int i = 0; i < op->n_regions; i++) count_readers(s, op->regions[i]);
  }
}

/* What all readers have made again for themselves. */
static void remove_unread(Split *s, Region *r) {
  for (Op *op = r->last, *before; op; op = before) {
    before = op->prev;
    for (int i = 0; i < op->n_regions; i++) remove_unread(s, op->regions[i]);
    if (op->n_results != 1 || !is_split(s, &op->results[0]) || s->readers[op->results[0].id])
      continue;
    for (int k = 0; k < op->n_operands; k++)
      if (op->operands[k]->id >= 0) s->readers[op->operands[k]->id]--;
    op_remove(op);
  }
}

void spread_split_constants(Module *m, Func *f) {
  size_t n = (size_t)ir_number(f) + 1;
  Split s = {.m = m};
  s.constant = xcalloc(n, sizeof *s.constant);
  s.grouped = xcalloc(n, sizeof *s.grouped);
  s.readers = xcalloc(n, sizeof *s.readers);
  s.copy = xcalloc(n, sizeof *s.copy);
  find_groups(&s, f->body);
  split_region(&s, f->body);
  count_readers(&s, f->body);
  remove_unread(&s, f->body);
  free(s.constant);
  free(s.grouped);
  free(s.readers);
  free(s.copy);
  vec_free(&s.copied);
}
