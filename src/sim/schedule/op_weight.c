/* What element-wise operations take of a vector unit. */
#include "sim/hlo/query.h"
#include "sim/schedule/schedule.h"

/* A quotient of a quotient is one quotient, of products. */
static bool divides_again(const HNode *n) {
  const HNode *u = n->n_users == 1 && !n->val ? n->users[0] : NULL;
  return u && u->op == OP_DIVIDE && hlo_count(u) == hlo_count(n);
}

/* A quotient by a constant is a product with its reciprocal, but that of a window's sum. */
static bool multiplies(const HNode *n) {
  return hlo_const_only(n->in[1]) && n->in[0]->kind != H_RWIN;
}

/* Instruction slots that an element-wise operation takes on one register of 8 x 128 elements whose
 * operands are in registers: one where it joins several, none for what has an instruction of its own
 * beside others, more for what is several instructions. Read off single operations of f32[1024,512]
 * and of products' epilogues in the oracle's compiler: whole numbers of quarter cycles on v5e and
 * later. */
double op_weight(const HNode *n) {
  if (n->val && n->val->packed) return n->val->lone ? 6 : 20; /* bit after bit, shifted and added */
  if (n->kind == H_BCAST || n->kind == H_RESHAPE || n->kind == H_BARRIER || n->kind == H_CONST ||
      n->kind == H_DUS)
    return 0;
  if (n->kind == H_DSLICE || n->kind == H_IOTA) return 1;
  if (n->kind == H_REDUCE && n->n_in == 2) return 1;
  if (n->kind != H_EWISE) return 2;
  double join = n->n_in > 1;
  double slots = op_cost[n->op].slots;
  if (n->op == OP_DIVIDE) return join + (divides_again(n) || multiplies(n) ? 0 : slots);
  if (n->op == OP_POWER) return join + slots;
  return slots ? slots : join;
}
