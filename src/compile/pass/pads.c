/* pass_pads: a sum of padded pieces that do not overlap is these pieces side by side.
 *
 *   pad(a, 0, low 0, high 2) + pad(b, 0, low 1, high 1) + pad(c, 0, low 2) = concatenate(a + 0, b + 0, c + 0)
 *   pad(a, 0, interior 1, high 1) + pad(b, 0, interior 1, low 1)           = the same of [n, 1], reshaped
 *
 * Gradients of code that takes an array's columns apart are such sums. The pieces have one shape; places
 * that none of them has are a piece of zeros. (x + 0 is x, and +0 for -0, as in the sum.) */
#include <stdlib.h>

#include "compile/pass/pass_priv.h"
#include "ir/build.h"

typedef struct Piece {
  const Op *pad;
  int64_t at; /* which of the places along the dimension */
} Piece;

typedef struct Sum {
  Map *uses;
  VEC(Piece) pieces;
  VEC(Value *) others;
  int64_t dim,
      step; /* places are size apart, or (step > 1) each element has its own and they alternate */
  int64_t places;
} Sum;

static bool is_zero(const Value *v) {
  const void *p = value_splat(v);
  if (!p) return false;
  DTypeClass c = dtype_class(v->type->dtype);
  if (c == DC_SINT || c == DC_UINT) return elem_get_i64(v->type->dtype, p) == 0;
  return dtype_is_float(v->type->dtype) && elem_get_f64(v->type->dtype, p) == 0;
}

static bool single_use(const Sum *s, const Value *v) {
  return (intptr_t)map_get(s->uses, (Str){(const char *)&v, sizeof v}) == 1;
}

/* The pad's place along the one dimension that it pads; false: it is no piece like those before. */
static bool add_piece(Sum *s, const Op *op) {
  const int64_t *low, *high, *inner;
  const Type *t = op->operands[0]->type, *whole = op_type(op);
  op_ints(op, "edge_padding_low", &low);
  op_ints(op, "edge_padding_high", &high);
  op_ints(op, "interior_padding", &inner);
  int64_t dim = -1;
  for (int i = 0; i < t->rank; i++) {
    if (!low[i] && !high[i] && !inner[i]) continue;
    if (dim >= 0 || low[i] < 0 || high[i] < 0) return false;
    dim = i;
  }
  if (dim < 0 || !is_zero(op->operands[1]) || t->dims[dim] < 1) return false;
  int64_t size = t->dims[dim], step = inner[dim] + 1, at = low[dim];
  if (step > 1 && (low[dim] + high[dim] != step - 1 || whole->dims[dim] != size * step))
    return false;
  if (step == 1 && (whole->dims[dim] % size || at % size)) return false;
  if (step == 1) at /= size;
  if (!s->pieces.n) {
    s->dim = dim;
    s->step = step;
    s->places = whole->dims[dim] / size;
  }
  if (s->dim != dim || s->step != step ||
      (s->pieces.n && s->pieces.v[0].pad->operands[0]->type != t))
    return false;
  for (int i = 0; i < s->pieces.n; i++)
    if (s->pieces.v[i].at == at) return false;
  *vec_push(&s->pieces) = (Piece){op, at};
  return s->places <= MAX_PARTS;
}

static void add_term(Sum *s, Value *v, int depth) {
  const Op *op = v->def;
  bool mine = op && single_use(s, v) && depth < 64;
  if (mine && op->kind == OP_ADD) {
    add_term(s, op->operands[0], depth + 1);
    add_term(s, op->operands[1], depth + 1);
    return;
  }
  int n = s->pieces.n;
  if (mine && op->kind == OP_PAD && add_piece(s, op)) return;
  s->pieces.n = n;
  *vec_push(&s->others) = v;
}

static Value *zeros(Build *b, Type *t) { return b_full(b, t, 0); }

static Value *side_by_side(Build *b, const Sum *s) {
  Value *piece[MAX_PARTS] = {0};
  Type *t = s->pieces.v[0].pad->operands[0]->type, *whole = op_type(s->pieces.v[0].pad);
  int64_t dims[MAX_RANK];
  for (int i = 0; i < s->pieces.n; i++)
    piece[s->pieces.v[i].at] = b_add(b, s->pieces.v[i].pad->operands[0], zeros(b, t));
  for (int64_t k = 0; k < s->places; k++)
    if (!piece[k]) piece[k] = zeros(b, t);
  if (s->step == 1) return b_concat(b, (int)s->places, piece, (int)s->dim);
  int at = (int)s->dim + 1; /* [.., n, ..] -> [.., n, 1, ..], side by side along the 1 */
  for (int i = 0; i < t->rank; i++) dims[i < at ? i : i + 1] = t->dims[i];
  dims[at] = 1;
  for (int64_t k = 0; k < s->places; k++) piece[k] = b_reshape(b, piece[k], t->rank + 1, dims);
  return b_reshape(b, b_concat(b, (int)s->places, piece, at), whole->rank, whole->dims);
}

/* The root of a sum: not itself a term of one. */
static bool rewrite(Module *m, Op *op, Map *uses, Map *inner) {
  const Value *key = &op->results[0];
  const Type *t = op_type(op);
  if (map_get(inner, (Str){(const char *)&key, sizeof key}) || !type_is_static(t) || t->quant ||
      t->kind != TY_TENSOR || t->rank >= B_MAX_RANK || dtype_is_complex(t->dtype))
    return false;
  Sum s = {.uses = uses};
  add_term(&s, op->operands[0], 0);
  add_term(&s, op->operands[1], 0);
  bool several = s.pieces.n >= 2;
  if (several) {
    Build b = {.m = m, .r = op->results[0].region, .loc = op->loc};
    Op *end = b.r->last;
    Value *v = side_by_side(&b, &s);
    for (int i = 0; i < s.others.n; i++) v = b_add(&b, v, s.others.v[i]);
    compile_move_built(end, op);
    value_replace_all(b.r->func, &op->results[0], v);
    op_remove(op);
  }
  vec_free(&s.pieces);
  vec_free(&s.others);
  return several;
}

/* Uses of each value, + 1 for each; and the sums that are a term of another, alone in using them. */
static void count(const Region *r, Map *uses) {
  for (const Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_operands; i++) {
      Str k = {(const char *)&op->operands[i], sizeof(Value *)};
      map_set(uses, k, (void *)((intptr_t)map_get(uses, k) + 1));
    }
    for (int i = 0; i < op->n_regions; i++) count(op->regions[i], uses);
  }
}

static void find_inner(const Region *r, Map *uses, Map *inner) {
  for (const Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_operands && op->kind == OP_ADD; i++) {
      Str k = {(const char *)&op->operands[i], sizeof(Value *)};
      if ((intptr_t)map_get(uses, k) == 1) map_set(inner, k, (void *)op);
    }
    for (int i = 0; i < op->n_regions; i++) find_inner(op->regions[i], uses, inner);
  }
}

static bool walk(Module *m, Region *r, Map *uses, Map *inner) {
  bool changed = false;
  for (Op *op = r->first, *next; op; op = next) {
    next = op->next;
    for (int i = 0; i < op->n_regions; i++) changed |= walk(m, op->regions[i], uses, inner);
    if (op->kind == OP_ADD) changed |= rewrite(m, op, uses, inner);
  }
  return changed;
}

Err *pass_pads(Module *m) {
  Map *uses = map_new(), *inner = map_new();
  count(module_main(m)->body, uses);
  find_inner(module_main(m)->body, uses, inner);
  bool changed = walk(m, module_main(m)->body, uses, inner);
  map_free(uses);
  map_free(inner);
  return changed ? pass_simplify(m) : NULL;
}
