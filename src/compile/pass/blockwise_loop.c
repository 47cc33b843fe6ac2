/* The loop of one level: parts of the results are made of parts of what they are computed of, and put in their
 * places or, where a product sums over what is cut, added up. */
#include <stdlib.h>

#include "compile/pass/blockwise.h"

typedef struct Body { /* of the loop that is being built */
  Scores *s;
  int level;
  Build b;
  Map *made; /* value and axes -> part */
  Value *begin[MOST_AXES],
      *fresh[MOST_AXES]; /* of the block; its first place that no block before it had */
} Body;

/* ---- shapes ---- */

static Type *part_type(Body *p, const Type *t, const Axes *axes) {
  int64_t dims[B_MAX_RANK];
  for (int i = 0; i < t->rank; i++)
    dims[i] = scores_cut(p->s, axes->of[i]) ? p->s->block[axes->of[i]] : t->dims[i];
  return b_type(&p->b, t->dtype, t->rank, dims);
}

static bool is_cut(const Scores *s, const Type *t, const Axes *axes) {
  for (int i = 0; i < t->rank; i++)
    if (scores_cut(s, axes->of[i])) return true;
  return false;
}

static bool any_cut(const Scores *s, unsigned axes) {
  for (int a = 0; a < MOST_AXES; a++)
    if (axes >> a & 1 && scores_cut(s, a)) return true;
  return false;
}

static void starts(Body *p, int rank, const Axes *axes, Value **out) {
  for (int i = 0; i < rank; i++)
    out[i] = scores_cut(p->s, axes->of[i]) ? p->begin[axes->of[i]] : b_scalar_i64(&p->b, DT_I32, 0);
}

/* ---- parts ---- */

static Value *part(Body *p, Value *v, const Axes *axes);

static Value *cut_out(Body *p, Value *v, const Axes *axes) {
  if (!is_cut(p->s, v->type, axes)) return v;
  Value *start[B_MAX_RANK];
  starts(p, v->type->rank, axes, start);
  return b_dynamic_slice(&p->b, v, start, part_type(p, v->type, axes)->dims);
}

/* Of what is there before the loop. NULL: it is not. */
static Value *slice(Body *p, Value *v, const Axes *axes) {
  return scores_want(p->s, v, p->level) ? cut_out(p, v, axes) : NULL;
}

static Value *part_of_elements(Body *p, const Op *op, const Axes *axes) {
  Value *in[4];
  if (op->n_operands > COUNT_OF(in)) return NULL;
  for (int i = 0; i < op->n_operands; i++)
    if (!(in[i] = part(p, op->operands[i], axes))) return NULL;
  Type *t = part_type(p, op_type(op), axes);
  return b_op(&p->b, op->kind, op->n_operands, in, 1, &t, op->n_attrs, op->attrs, 0, NULL)->results;
}

static Value *part_of_move(Body *p, const Op *op, const Axes *axes) {
  Axes before;
  unsigned lost;
  axes_before_move(op, axes, &before, &lost);
  if (any_cut(p->s, lost)) return NULL;
  Value *from = part(p, op->operands[0], &before);
  Type *t = part_type(p, op_type(op), axes);
  if (!from) return NULL;
  return b_op(&p->b, op->kind, 1, &from, 1, &t, op->n_attrs, op->attrs, 0, NULL)->results;
}

static Value *part_of_scores(Body *p, const Op *op, const Axes *axes) {
  Axes of[2];
  DotDims d = b_dot_dims(op);
  axes_of_operands(op, axes, &of[0], &of[1]);
  Value *x = slice(p, op->operands[0], &of[0]), *y = slice(p, op->operands[1], &of[1]);
  if (!x || !y) return NULL;
  return b_dot(&p->b, x, y, &d, op_type(op)->dtype, op_attr(op, "precision_config"));
}

static Value *part_of_sum(Body *p, const Op *op) {
  const int64_t *dims;
  int n = op_ints(op, "dimensions", &dims);
  const ScoreInfo *member = scores_info(p->s, op->operands[0]);
  Value *x = part(p, op->operands[0], &member->axes);
  return x ? b_reduce(&p->b, op->regions[0]->first->kind, x, n, dims) : NULL;
}

/* Counted in whole numbers, as the positions of the whole: what is near in 16 bits is rounded once. */
static Value *part_of_iota(Body *p, const Op *op, const Axes *axes) {
  int d = (int)op_int(op, "iota_dimension", 0);
  Type *t = part_type(p, op_type(op), axes);
  if (!scores_cut(p->s, axes->of[d])) return b_iota(&p->b, t, d);
  Type *whole = b_type(&p->b, DT_I32, t->rank, t->dims);
  Value *first = b_bcast_scalar(&p->b, p->begin[axes->of[d]], whole);
  return b_convert(&p->b, b_add(&p->b, b_iota(&p->b, whole, d), first), t->dtype);
}

static bool same_cuts(const Scores *s, const Type *t, const Axes *a, const Axes *b) {
  for (int i = 0; i < t->rank; i++)
    if (a->of[i] != b->of[i] && (scores_cut(s, a->of[i]) || scores_cut(s, b->of[i]))) return false;
  return true;
}

static Value *part_of_member(Body *p, Value *v, const Axes *axes) {
  const ScoreInfo *i = scores_info(p->s, v);
  const Op *op = v->def;
  if (!same_cuts(p->s, v->type, axes, &i->axes)) return NULL;
  if (op->kind == OP_DOT_GENERAL) return part_of_scores(p, op, &i->axes);
  return moves_elements(op) ? part_of_move(p, op, &i->axes) : part_of_elements(p, op, &i->axes);
}

/* Computed here rather than stored: repetitions, counts, and what little is computed of as many elements as there are
 * scores, as masks are. */
static bool is_recomputed(const Body *p, const Op *op) {
  if (op->kind == OP_BROADCAST_IN_DIM || op->kind == OP_IOTA) return true;
  bool large = op->n_results == 1 && type_count(op_type(op)) * 8 >= p->s->count;
  return large && (op->kind == OP_RESHAPE || op->kind == OP_TRANSPOSE ||
                   (of_elements(op) && !op->n_regions && !op_is_heavy(op)));
}

static Value *part_of_other(Body *p, Value *v, const Axes *axes, bool needed) {
  const Op *op = v->def;
  if (op && op->kind == OP_IOTA) return part_of_iota(p, op, axes);
  bool recomputed = op && op->parent == p->s->r && type_is_static(v->type) && !v->type->quant &&
                    (needed || is_recomputed(p, op));
  Value *made = NULL;
  if (recomputed && moves_elements(op)) made = part_of_move(p, op, axes);
  else if (recomputed && of_elements(op)) made = part_of_elements(p, op, axes);
  return made || needed ? made : slice(p, v, axes);
}

static Value *part_made(Body *p, Value *v, const Axes *axes) {
  const ScoreInfo *i = scores_info(p->s, v);
  const void *all = value_splat(v);
  if (all) {
    Value *one = b_const(&p->b, b_type(&p->b, v->type->dtype, 0, NULL), all);
    return v->type->rank ? b_bcast_scalar(&p->b, one, part_type(p, v->type, axes)) : one;
  }
  if (!i) return cut_out(p, v, axes);
  switch (i->kind) {
  case SCORE_MEMBER: return part_of_member(p, v, axes);
  case SCORE_SUM: {
    if (i->level < p->level) return slice(p, v, axes);
    unsigned summed;
    Axes of = axes_of_sum(v->def, &scores_info(p->s, v->def->operands[0])->axes, &summed);
    return same_cuts(p->s, v->type, axes, &of) ? part_of_sum(p, v->def) : NULL;
  }
  case SCORE_RESULT: return slice(p, v, axes);
  case SCORE_OF_SUM: return part_of_other(p, v, axes, i->level >= p->level);
  default: return part_of_other(p, v, axes, false);
  }
}

static Value *part(Body *p, Value *v, const Axes *axes) {
  struct {
    Value *v;
    Axes axes;
  } key = {v, *axes};
  Str name = {(const char *)&key, sizeof key};
  Value *made = map_get(p->made, name);
  if (!made) map_set(p->made, name, made = part_made(p, v, axes));
  return made;
}

/* ---- results ---- */

/* Zeros where the last block of a cut axis has places that the one before it had. */
static Value *only_fresh(Body *p, Value *x, const Axes *axes, unsigned summed) {
  for (int i = 0; i < b_rank(x); i++) {
    int a = axes->of[i];
    if (a < 0 || !(summed >> a & 1) || !p->fresh[a]) continue;
    Type *t = b_type(&p->b, DT_I32, b_rank(x), x->type->dims);
    Value *at = b_add(&p->b, b_iota(&p->b, t, i), b_bcast_scalar(&p->b, p->begin[a], t));
    Value *is = b_compare(&p->b, "GE", at, b_bcast_scalar(&p->b, p->fresh[a], t));
    x = b_select(&p->b, is, x, b_full(&p->b, x->type, 0));
  }
  return x;
}

typedef struct Whole { /* a result */
  Value *v;
  Axes axes;
  unsigned summed;
  bool adds;          /* over what is cut */
  DType in;           /* sums of 16 bits are added up as f32 */
  int side;           /* of a product: the operand that is made of scores */
  Axes member, other; /* of it and of the other operand */
} Whole;

static Whole whole_of(const Scores *s, Value *v) {
  Whole w = {.v = v, .in = v->type->dtype};
  const Op *op = v->def;
  if (op->kind == OP_REDUCE) {
    w.axes = axes_of_sum(op, &scores_info(s, op->operands[0])->axes, &w.summed);
    return w;
  }
  const ScoreInfo *rhs = scores_info(s, op->operands[1]);
  w.side = rhs && rhs->kind == SCORE_MEMBER;
  w.member = scores_info(s, op->operands[w.side])->axes;
  axes_of_product(op, w.side, &w.member, &w.other, &w.axes, &w.summed);
  w.adds = any_cut(s, w.summed);
  if (w.adds && dtype_bytes(w.in) < 4) w.in = DT_F32;
  return w;
}

static Value *part_of_product(Body *p, const Whole *w) {
  const Op *op = w->v->def;
  Value *x = part(p, op->operands[w->side], &w->member),
        *y = slice(p, op->operands[!w->side], &w->other);
  if (!x || !y) return NULL;
  x = only_fresh(p, x, &w->member, w->summed);
  y = only_fresh(p, y, &w->other, w->summed);
  DotDims d = b_dot_dims(op);
  return b_dot(&p->b, w->side ? y : x, w->side ? x : y, &d, w->in, op_attr(op, "precision_config"));
}

/* The whole, of which `so_far` has what other blocks made. */
static Value *put(Body *p, const Whole *w, Value *so_far) {
  Value *x = w->v->def->kind == OP_REDUCE ? part(p, w->v, &w->axes) : part_of_product(p, w);
  if (!x) return NULL;
  if (w->adds) x = b_add(&p->b, cut_out(p, so_far, &w->axes), x);
  if (!is_cut(p->s, w->v->type, &w->axes)) return x;
  Value *start[B_MAX_RANK];
  starts(p, b_rank(x), &w->axes, start);
  return b_dynamic_update(&p->b, so_far, x, start);
}

/* ---- the loop ---- */

static Value *number(Build *b, int64_t n) { return b_scalar_i64(b, DT_I32, n); }

/* Where the block of this turn begins; the last axis goes fastest. Returns how many turns there are. */
static int64_t find_begins(Body *p, Value *turn) {
  int64_t turns = 1;
  for (int a = p->s->type->rank - 1; a >= 0; a--) {
    if (!scores_cut(p->s, a)) continue;
    int64_t size = p->s->type->dims[a], block = p->s->block[a], n = (size + block - 1) / block;
    if (turn) {
      Value *k = turns > 1 ? b_div(&p->b, turn, number(&p->b, turns)) : turn;
      k = b_binary(&p->b, OP_REMAINDER, k, number(&p->b, n));
      p->begin[a] = b_mul(&p->b, k, number(&p->b, block));
      if (size % block) {
        p->fresh[a] = p->begin[a];
        p->begin[a] = b_min(&p->b, p->begin[a], number(&p->b, size - block));
      }
    }
    turns *= n;
  }
  return turns;
}

static bool fill_body(Body *p, int n, const Whole *all) {
  Region *r = p->b.r;
  Value **next = xmalloc(sizeof *next * (size_t)(n + 1));
  bool fine = true;
  find_begins(p, r->args[0]);
  for (int i = 0; i < n && fine; i++)
    fine = (next[i + 1] = put(p, &all[i], r->args[i + 1])) != NULL;
  next[0] = b_add(&p->b, r->args[0], number(&p->b, 1));
  if (fine) b_return(&p->b, n + 1, next);
  free(next);
  return fine;
}

static bool build(Scores *s, int level, int n, const Whole *all, ScoreLoop *out) {
  Build b = {s->m, region_new(s->m, 0, NULL), all[0].v->def->loc};
  Value **in = xmalloc(sizeof *in * (size_t)(n + 1));
  Type **types = xmalloc(sizeof *types * (size_t)(n + 1));
  in[0] = number(&b, 0);
  for (int i = 0; i < n; i++) in[i + 1] = b_full(&b, b_type_as(&b, all[i].v->type, all[i].in), 0);
  for (int i = 0; i <= n; i++) types[i] = in[i]->type;
  Build cond = {s->m, region_new(s->m, n + 1, types), b.loc};
  Body p = {.s = s, .level = level, .made = map_new()};
  p.b = (Build){s->m, region_new(s->m, n + 1, types), b.loc};
  Value *more = b_compare(&cond, "LT", cond.r->args[0], number(&cond, find_begins(&p, NULL)));
  b_return(&cond, 1, &more);
  bool fine = fill_body(&p, n, all);
  map_free(p.made);
  if (fine) {
    Region *regions[] = {cond.r, p.b.r};
    Op *loop = b_op(&b, OP_WHILE, n + 1, in, n + 1, types, 0, NULL, 2, regions);
    *out = (ScoreLoop){b.r, n, xmalloc(sizeof(Value *) * (size_t)n),
                       xmalloc(sizeof(Value *) * (size_t)n)};
    for (int i = 0; i < n; i++) {
      out->from[i] = all[i].v;
      out->to[i] = b_convert(&b, &loop->results[i + 1], all[i].v->type->dtype);
    }
  }
  free(in);
  free(types);
  return fine;
}

bool scores_loop(Scores *s, int level, ScoreLoop *out) {
  VEC(Whole) all = {0};
  *out = (ScoreLoop){0};
  for (const Op *op = s->r->first; op; op = op->next) {
    const ScoreInfo *i = op->n_results == 1 ? scores_info(s, op->results) : NULL;
    if (i && i->wanted && i->level == level) *vec_push(&all) = whole_of(s, op->results);
  }
  bool fine = all.n == 0 || build(s, level, all.n, all.v, out);
  vec_free(&all);
  return fine;
}
