/* Rows that are added up go to what their sums are added to. */
#include "sim/hlo/query.h"

static bool all_zero(const HNode *n) {
  while ((n->kind == H_BCAST || n->kind == H_RESHAPE) && n->n_in == 1) n = n->in[0];
  return n->kind == H_CONST && n->splat && n->value == 0;
}

void hlo_add_rows_to(HGraph *g, HNode *n) {
  for (int i = 0; i < n->n_in && n->n_in == 2 && n->op == OP_ADD; i++) {
    HNode *s = n->in[i], *y = n->in[1 - i];
    const Region *r = s->src && s->src->n_regions ? s->src->regions[0] : NULL;
    if (s->kind != H_SCATTER || s->comp != n->comp || s->n_in != 3 || s->n_users != 1 ||
        s->is_output || y == s || !all_zero(s->in[0]) || !r || !r->first ||
        r->first->kind != OP_ADD || (y->kind == H_SCATTER && all_zero(y->in[0])))
      continue;
    n->src = s->src;
    n->kind = H_SCATTER;
    n->op = s->op;
    n->n_in = 3;
    n->in = arena_dup(g->arena, ((HNode *[]){y, s->in[1], s->in[2]}), 3 * sizeof *n->in);
    return;
  }
}
