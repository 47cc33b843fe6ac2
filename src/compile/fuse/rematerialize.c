/* again: which values are better computed again by each fusion that reads them than stored.
 *
 * An element-wise value comes from its roots: large values that are in memory anyway, because they
 * are an argument, or a product, or read by one. Everything small on the way (means, biases)
 * counts for nothing. A value with one root that is not larger than itself costs nothing to
 * compute again: whoever reads it reads the root instead, and a backward pass that wants five
 * values between x and gelu(x) keeps x alone. With two roots, it does where a fusion reads one of
 * them anyway.
 *
 * What computes halves keeps more digits than it stores, so that computing one again from what was stored
 * may round it otherwise. That does no harm but where elements are sought that equal their row's greatest
 * (the gradient of a maximum): these are computed once. */
#include <stdlib.h>

#include "compile/fuse/fuse_priv.h"

#define SMALL_PART 8 /* this many times smaller than the result: small */
#define MOST_OPS 24  /* on the way from the roots */
#define MOST_HEAVY 2 /* of them exponentials, divisions, ... */
#define MIN_ELEMENTS 4096

/* ---- what is in memory anyway ---- */

static bool is_computed(const Op *op) { /* one element from one of each operand */
  OpClass c = op_info[op->kind].cls;
  return op->n_results == 1 && (c == OC_EWISE || op->kind == OP_BROADCAST_IN_DIM ||
                                op->kind == OP_IOTA || op->kind == OP_CONSTANT);
}

static int from_here(const RematInput *in, const Value *v) {
  return v->def && v->region == in->region ? in->pos(in->arg, v->def) : -1;
}

/* A gather reads its operand anywhere. */
static bool is_gathered(const Op *user, const Op *op) {
  return user->kind == OP_GATHER && user->operands[0]->def == op;
}

/* Read by a step that is no fusion, or by the region's end. */
static bool *find_stored(const RematInput *in) {
  bool *stored = xcalloc((size_t)in->n + 1, 1);
  for (int i = in->n - 1; i >= 0; i--)
    for (int k = 0; k < in->n_users[i] && !stored[i]; k++) {
      int u = in->users[i][k];
      stored[i] = u >= in->n || (op_is_alias(in->ops[u])
                                     ? stored[u]
                                     : !in->fusible[u] || is_gathered(in->ops[u], in->ops[i]));
    }
  return stored;
}

/* ---- what is looked for ---- */

typedef struct Sought {
  bool reduced, compared;
} Sought;

static bool is_extreme(const Op *op) {
  if (op->kind != OP_REDUCE) return false;
  OpKind by = op->regions[0]->first->kind;
  return by == OP_MAXIMUM || by == OP_MINIMUM;
}

/* What becomes of the value and of what moves it. */
static Sought *find_sought(const RematInput *in) {
  Sought *all = xcalloc((size_t)in->n + 1, sizeof *all);
  for (int i = in->n - 1; i >= 0; i--)
    for (int k = 0; k < in->n_users[i]; k++) {
      int u = in->users[i][k];
      if (u >= in->n) continue;
      const Op *user = in->ops[u];
      bool moves = op_is_alias(user) || op_is_cheap(user);
      all[i].reduced |= is_extreme(user) || (moves && all[u].reduced);
      all[i].compared |= user->kind == OP_COMPARE || (moves && all[u].compared);
    }
  return all;
}

static bool is_half(const Value *v) {
  return v->type->dtype == DT_BF16 || v->type->dtype == DT_F16;
}

/* ---- where values come from ---- */

static void anchor(Origin *o, const Value *v) { *o = (Origin){.n = 1, .root = {v}}; }

static void add_root(Origin *o, const Value *root) {
  for (int i = 0; i < o->n && i < REMAT_ROOTS; i++)
    if (o->root[i] == root) return;
  if (o->n < REMAT_ROOTS) o->root[o->n] = root;
  o->n++;
}

static void add_operand(const RematInput *in, const Origin *all, const bool *stored, Origin *o,
                        const Value *v, int64_t count) {
  if (type_count(v->type) <= count / SMALL_PART || value_splat(v)) return;
  int p = from_here(in, v);
  if (p < 0 || stored[p]) {
    add_root(o, v);
    return;
  }
  const Origin *from = &all[p];
  for (int i = 0; i < from->n; i++) add_root(o, from->root[i]);
  o->ops += from->ops;
  o->heavy += from->heavy;
}

static void find_origin(const RematInput *in, Origin *all, const bool *stored, int i) {
  const Op *op = in->ops[i];
  Origin *o = &all[i];
  const Value *v = op->n_results ? &op->results[0] : NULL;
  if (!v || v->type->kind != TY_TENSOR || op->n_results > 1) return;
  bool alias = op_is_alias(op);
  if (!alias && (!in->fusible[i] || !is_computed(op)) && op->kind != OP_CONSTANT) {
    anchor(o, v);
    return;
  }
  for (int k = 0; k < op->n_operands; k++)
    add_operand(in, all, stored, o, op->operands[k], type_count(v->type));
  o->ops += alias ? 0 : 1;
  o->heavy += op_is_heavy(op);
  if (o->n > REMAT_ROOTS || o->ops > MOST_OPS || o->heavy > MOST_HEAVY) {
    anchor(o, v);
    return;
  }
  o->again = !alias && !stored[i] && op->kind != OP_CONSTANT && type_count(v->type) >= MIN_ELEMENTS;
  for (int k = 0; k < o->n; k++) o->again &= type_bytes(o->root[k]->type) <= type_bytes(v->type);
}

Origin *remat_find(const RematInput *in) {
  Origin *all = xcalloc((size_t)in->n + 1, sizeof *all);
  bool *stored = find_stored(in);
  Sought *sought = find_sought(in);
  for (int i = 0; i < in->n; i++) {
    find_origin(in, all, stored, i);
    if (all[i].again && sought[i].reduced && sought[i].compared)
      all[i].again = !is_half(&in->ops[i]->results[0]);
  }
  free(stored);
  free(sought);
  return all;
}
