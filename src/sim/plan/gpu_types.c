/* Types that a GPU does not compute in, which XLA widens to f32: bf16 before Ampere, f16 before Pascal.
 *
 * Products, sums and all arithmetic are done in f32, and what one of them hands to the next is not rounded in
 * between. What only moves elements (transposes, slices, selections, reshapes, loops' state) stays narrow: it is
 * rounded on the way in and widened by whoever computes with it. Arguments and results are as the program has
 * them; operands of libraries lie in memory as f32. A type is one that the chip computes in if its file has a peak
 * for it. */
#include <stdlib.h>

#include "sim/plan/gpu_expand.h"

typedef struct Types {
  HGraph *g;
  HComp *c;
  DType type;    /* that the chip has not */
  HNode **wide;  /* by id: the node in f32; itself if it became that */
  HNode **again; /* by id: what became f32, rounded */
  int n;         /* nodes that were there before */
} Types;

/* Does it do anything with the elements but move them? */
static bool computes(const HNode *n) {
  switch (n->kind) {
  case H_EWISE:
    return n->op != OP_SELECT && n->op != OP_COPY && n->op != OP_CONVERT &&
           n->op != OP_BITCAST_CONVERT;
  case H_REDUCE:
  case H_RWIN: return n->n_results == 1;
  case H_CONV: return true;
  default: return false;
  }
}

static HNode *converted(Types *t, HNode *x, DType to) {
  bool number = x->kind == H_CONST && x->splat;
  HNode *n = hlo_node(t->g, t->c, number ? H_CONST : H_EWISE, number ? x->op : OP_CONVERT, x->src,
                      to, x->rank, x->d, !number, &x);
  n->splat = x->splat;
  n->value = x->value;
  return n;
}

/* x as arithmetic takes it. */
static HNode *wide(Types *t, HNode *x) {
  if (x->id < t->n && t->wide[x->id]) return t->wide[x->id];
  if (x->dt != t->type) return x;
  HNode *w = x->kind == H_EWISE && x->op == OP_CONVERT && x->in[0]->dt == DT_F32
                 ? x->in[0]
                 : converted(t, x, DT_F32);
  if (x->comp == t->c) t->wide[x->id] = w;
  return w;
}

/* And as the program has it. */
static HNode *as_said(Types *t, HNode *x) {
  HNode *w = x->id < t->n ? t->wide[x->id] : NULL;
  if (!w || x->dt == t->type) return x;
  if (w != x) return w; /* widened before, and there already */
  if (x->comp != t->c) return converted(t, x, t->type);
  if (!t->again[x->id]) t->again[x->id] = converted(t, x, t->type);
  return t->again[x->id];
}

static void widen_comp(Types *t) {
  for (int i = 0, nodes = t->c->nodes.n; i < nodes; i++) {
    HNode *n = t->c->nodes.v[i];
    bool arithmetic = computes(n), convert = n->kind == H_EWISE && n->op == OP_CONVERT;
    for (int k = 0; k < n->n_in; k++)
      n->in[k] = arithmetic || convert ? wide(t, n->in[k]) : as_said(t, n->in[k]);
    if (convert && n->dt == DT_F32 && n->in[0]->dt == DT_F32) t->wide[n->id] = n->in[0];
    if (!arithmetic || n->dt != t->type) continue;
    n->dt = DT_F32;
    t->wide[n->id] = n;
  }
  for (int k = 0; k < t->c->outputs.n; k++) {
    HNode **o = &t->c->outputs.v[k];
    *o = as_said(t, *o);
  }
}

static void widen(HGraph *g, DType type) {
  Types t = {.g = g, .type = type, .n = g->n_nodes};
  t.wide = xcalloc((size_t)t.n + 1, sizeof(HNode *));
  t.again = xcalloc((size_t)t.n + 1, sizeof(HNode *));
  for (HComp *c = g->comps; c; c = c->next) {
    t.c = c;
    widen_comp(&t);
  }
  free(t.wide);
  free(t.again);
}

void gpu_types(HGraph *g, const Chip *chip) {
  if (chip_num(chip, "peak_bf16", 0) <= 0) widen(g, DT_BF16);
  if (chip_num(chip, "peak_fp16", 0) <= 0) widen(g, DT_F16);
}
