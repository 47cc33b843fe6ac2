/* Questions about nodes that the compilers of several kinds of chips ask. */
#include "sim/hlo/query.h"

#define TINY 2 /* elements: arithmetic on so few runs on the scalar unit */

bool hlo_const_only(const HNode *n) { /* made of constants: recomputed for nothing */
  for (int depth = 0; depth < 64; depth++) {
    if (n->kind == H_CONST) return n->splat;
    if (n->kind == H_IOTA) return true;
    if (n->kind == H_BCAST || n->kind == H_RESHAPE || (n->kind == H_EWISE && n->n_in == 1))
      n = n->in[0];
    else return false;
  }
  return false;
}

bool hlo_is_tiny(const HNode *n) { return hlo_count(n) <= TINY && n->rank <= 1; }

int hlo_sides(const HNode *n) {
  int count = 0;
  for (int i = 0; i < n->rank; i++) count += n->d[i] > 1;
  return count;
}

const HNode *hlo_exponentials(const HNode *n) {
  if (n->op == OP_CONVERT) n = n->in[0];
  return n->op == OP_DIVIDE && n->in[0]->op == OP_EXPONENTIAL ? n->in[0] : NULL;
}

bool hlo_same_dimensions(const HNode *n) {
  const HNode *x = n->in[0];
  int i = 0, j = 0;
  for (;; i++, j++) {
    while (i < n->rank && n->d[i] == 1) i++;
    while (j < x->rank && x->d[j] == 1) j++;
    if (i == n->rank || j == x->rank) return i == n->rank && j == x->rank;
    if (n->d[i] != x->d[j]) return false;
  }
}

bool hlo_stacked(const HNode *n) {
  if (n->kind != H_CONCAT || n->rank < 3 || n->n_in < 2 || n->part || n->rows) return false;
  for (int i = 0; i < n->n_in; i++)
    if (n->in[i]->d[n->index] != 1) return false;
  return true;
}

bool hlo_stacked_argument(const HNode *n) {
  return n->kind == H_RESHAPE && n->n_users == 1 && !n->is_output && hlo_stacked(n->users[0]) &&
         hlo_same_dimensions(n);
}

bool hlo_cuts_number(const HNode *n) {
  return n->kind == H_SLICE && hlo_count(n) == 1 && !hlo_is_tiny(n->in[0]);
}
