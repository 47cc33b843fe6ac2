/* Types that a GPU does not compute in, which XLA widens to f32: f16 before Pascal; of bf16 products before Ampere,
 * and on all GPUs what they have no instruction for, addition and multiplication before Hopper.
 *
 * What one such operation hands to the next is not rounded in between. What only moves elements (transposes,
 * slices, selections, reshapes, loops' state) stays narrow, as what the chip does compute: it is rounded on the way
 * in and widened by whoever computes with it. Arguments and results are as the program has them; operands of
 * libraries lie in memory as they take them. A chip multiplies matrices of a type if its file has a peak for it. */
#include <stdlib.h>

#include "sim/gpu/gpu.h"
#include "sim/gpu/rewrite.h"

typedef struct Types {
  HGraph *g;
  HComp *c;
  DType type;
  bool products;     /* has the chip products of it? */
  double capability; /* which instructions it has, as CUDA numbers them; 0: none of that type */
  HNode **wide;      /* by id: the node in f32; itself if it became that */
  HNode **again;     /* by id: what became f32, rounded */
  int n;             /* nodes that were there before */
} Types;

static bool instruction(const Types *t, OpKind op) {
  switch (op) {
  case OP_SELECT:
  case OP_COPY:
  case OP_CONVERT:
  case OP_BITCAST_CONVERT:
  case OP_REDUCE_PRECISION: return true;
  case OP_COMPARE:
  case OP_EXPONENTIAL:
  case OP_LOG: return t->capability > 0;
  case OP_ABS:
  case OP_MAXIMUM:
  case OP_MINIMUM:
  case OP_NEGATE: return t->capability >= 8;
  case OP_ADD:
  case OP_MULTIPLY:
  case OP_SUBTRACT: return t->capability >= 9;
  default: return false;
  }
}

/* Does a library add it up with the result of its product, before types are looked at? */
static bool with_product(const Types *t, const HNode *n) {
  for (int i = 0; i < n->n_in && t->products; i++)
    if (n->in[i]->kind == H_CONV && gpu_library_adds(n->in[i], n)) return true;
  return false;
}

/* Does it do anything with the elements but move them, that the chip does in f32? */
static bool widened(const Types *t, const HNode *n) {
  const Op *step = n->src && n->src->n_regions ? n->src->regions[0]->first : NULL;
  switch (n->kind) {
  case H_EWISE: return !instruction(t, n->op) && !with_product(t, n);
  case H_REDUCE: return n->n_results == 1 && !(step && instruction(t, step->kind));
  case H_RWIN: return n->n_results == 1 && !t->products; /* within its kernel */
  case H_CONV: return !t->products;
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

/* Several dimensions of an array, which XLA makes one of first: between what rounds and what widens again. */
static bool sums_several(const HNode *n) {
  int dims = 0;
  for (int i = 0; n->kind == H_REDUCE && i < n->n_dims; i++) dims += n->in[0]->d[n->dims[i]] > 1;
  return dims > 1;
}

static HNode *rounded(Types *t, HNode *x) {
  HNode *narrow = as_said(t, x);
  return narrow->dt == t->type ? converted(t, narrow, DT_F32) : narrow;
}

static void widen_comp(Types *t) {
  for (int i = 0, nodes = t->c->nodes.n; i < nodes; i++) {
    HNode *n = t->c->nodes.v[i];
    bool arithmetic = widened(t, n), convert = n->kind == H_EWISE && n->op == OP_CONVERT;
    for (int k = 0; k < n->n_in; k++)
      n->in[k] = arithmetic && sums_several(n) ? rounded(t, n->in[k])
                 : arithmetic || convert       ? wide(t, n->in[k])
                                               : as_said(t, n->in[k]);
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

static void widen(HGraph *g, DType type, bool products, double capability) {
  Types t = {.g = g, .type = type, .products = products, .capability = capability};
  t.n = g->n_nodes;
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
  widen(g, DT_BF16, chip_num(chip, "peak_bf16", 0) > 0, chip_num(chip, "compute_capability", 0));
  if (chip_num(chip, "peak_fp16", 0) <= 0) widen(g, DT_F16, false, 0);
}
