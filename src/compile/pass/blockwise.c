/* pass_blockwise: scores, which have an element for each pair of a row and a column, are computed block by block
 * and never stored, where nobody but what is computed of them reads them. Attention is the case:
 *
 *   softmax(q k') v   =   for each block of q's rows: softmax(q[rows] k') v
 *
 * and so are its gradients, in a second loop that computes the scores again. What the scores are masked, biased,
 * scaled or normalized by is any chain of operations of elements, moves and sums along one side. The program is
 * divided into levels: what is computed of scores alone, what needs results of these (as the gradient of the
 * weights needs that of the attention's result), and so on. Each level is one loop (blockwise_loop.c). */
#include <stdlib.h>

#include "compile/pass/blockwise.h"

#define LEAST_BLOCK 64 /* rows */
#define MOST_AGAIN 256 /* terms of a product that is computed twice */
#define MOST_OPS 200   /* behind a member, to find products */

/* ---- values ---- */

ScoreInfo *scores_info(const Scores *s, const Value *v) {
  return v->region == s->r && v->id >= 0 && v->id < s->n_values ? &s->info[v->id] : NULL;
}

static ScoreKind kind_of(const Scores *s, const Value *v) {
  const ScoreInfo *i = scores_info(s, v);
  return i ? i->kind : SCORE_NONE;
}

static void keep_whole(Scores *s, unsigned axes) {
  for (int a = 0; a < MOST_AXES; a++)
    if (axes >> a & 1) s->whole[a] = true;
}

static bool is_plain(const Type *t) {
  return type_is_static(t) && !t->quant && t->rank <= B_MAX_RANK;
}

/* An operation of elements that a part of can be computed of parts. */
static bool is_of_elements(const Op *op) {
  return of_elements(op) && !op->n_regions && op->kind != OP_THREEFRY &&
         type_count(op_type(op)) == type_count(op->operands[0]->type) && is_plain(op_type(op));
}

static bool same_axes(const Axes *a, const Axes *b) { return !memcmp(a, b, sizeof *a); }

/* false: it is one already, but otherwise. */
static bool add_member(Scores *s, Value *v, const Axes *axes) {
  ScoreInfo *i = scores_info(s, v);
  if (!i || !is_plain(v->type)) return false;
  if (i->kind) return i->kind == SCORE_MEMBER && same_axes(&i->axes, axes);
  i->kind = SCORE_MEMBER;
  i->axes = *axes;
  *vec_push(&s->members) = v;
  return true;
}

/* ---- members ---- */

static bool is_score_product(const Scores *s, const Op *op) {
  return op && op->kind == OP_DOT_GENERAL && op->parent == s->r &&
         dtype_is_float(op_type(op)->dtype) && type_count(op_type(op)) == s->count &&
         !op_attr(op, "lhs_precision_type") && is_plain(op->operands[0]->type) &&
         is_plain(op->operands[1]->type);
}

/* Products that v, of as many elements as the scores, is computed of. */
static bool find_products(Scores *s, Value *v, const Axes *axes, int *left) {
  const Op *op = v->def;
  if (!op || op->parent != s->r || kind_of(s, v) || (*left)-- <= 0) return true;
  if (is_score_product(s, op)) return add_member(s, v, axes);
  if (is_of_elements(op)) {
    for (int i = 0; i < op->n_operands; i++)
      if (!find_products(s, op->operands[i], axes, left)) return false;
  } else if (op->kind == OP_TRANSPOSE || op->kind == OP_RESHAPE) {
    Axes before;
    unsigned lost;
    axes_before_move(op, axes, &before, &lost);
    return lost ? true : find_products(s, op->operands[0], &before, left);
  }
  return true;
}

/* What computes something of member v: a member, too, or a result. false: anything else. */
static bool join_user(Scores *s, const Value *v, Op *op) {
  const Axes axes = scores_info(s, v)->axes;
  Axes after, other;
  unsigned lost;
  if (op->parent != s->r || op->n_results != 1) return false;
  ScoreInfo *i = scores_info(s, op->results);
  if (is_of_elements(op)) return add_member(s, op->results, &axes);
  switch (op->kind) {
  case OP_TRANSPOSE:
  case OP_RESHAPE:
    axes_after_move(op, &axes, &after, &lost);
    keep_whole(s, lost);
    return add_member(s, op->results, &after);
  case OP_REDUCE:
    if (!sums_or_maximizes(op) || op->operands[0] != v) return false;
    axes_of_sum(op, &axes, &lost);
    keep_whole(s, lost);
    i->kind = SCORE_SUM;
    return true;
  case OP_DOT_GENERAL: {
    int side = op->operands[1] == v;
    if (op->operands[0] == op->operands[1] || kind_of(s, op->operands[!side]) == SCORE_MEMBER ||
        op_attr(op, "lhs_precision_type") || !is_plain(op_type(op)) ||
        !is_plain(op->operands[!side]->type))
      return false;
    axes_of_product(op, side, &axes, &other, &after, &lost);
    s->summed |= lost;
    i->kind = SCORE_RESULT;
    return true;
  }
  default: return false;
  }
}

static bool gather(Scores *s) {
  for (int k = 0; k < s->members.n; k++) {
    Value *v = s->members.v[k];
    const Axes axes = scores_info(s, v)->axes;
    for (int i = uses_first(s->uses, v); i < s->uses->all.n && s->uses->all.v[i].v == v; i++)
      if (!join_user(s, v, s->uses->all.v[i].by)) return false;
    int left = MOST_OPS;
    for (int i = 0; is_of_elements(v->def) && i < v->def->n_operands; i++)
      if (!find_products(s, v->def->operands[i], &axes, &left)) return false;
  }
  return true;
}

/* Two members in one product cannot both be cut. */
static bool are_products_of_one(const Scores *s) {
  for (const Op *op = s->r->first; op; op = op->next)
    if (op->kind == OP_DOT_GENERAL && kind_of(s, op->operands[0]) == SCORE_MEMBER &&
        kind_of(s, op->operands[1]) == SCORE_MEMBER)
      return false;
  return true;
}

/* ---- levels ---- */

/* The first loop before which v is known to `user`. */
static int level_for(const Scores *s, const Value *v, bool inside) {
  const ScoreInfo *i = scores_info(s, v);
  if (!i) return 0;
  bool after =
      i->kind == SCORE_RESULT || (!inside && (i->kind == SCORE_SUM || i->kind == SCORE_OF_SUM));
  return i->level + after;
}

static bool reads_sums(const Scores *s, const Op *op) {
  if (op->n_results != 1 || op->parent != s->r || !is_plain(op_type(op)) ||
      !(moves_elements(op) || is_of_elements(op)))
    return false;
  for (int i = 0; i < op->n_operands; i++) {
    ScoreKind k = kind_of(s, op->operands[i]);
    if (k == SCORE_SUM || k == SCORE_OF_SUM) return true;
  }
  return false;
}

static void find_level(Scores *s, Op *op) {
  ScoreInfo *of = op->n_results ? scores_info(s, op->results) : NULL;
  if (of && !of->kind && reads_sums(s, op)) of->kind = SCORE_OF_SUM;
  ScoreKind kind = of ? of->kind : SCORE_NONE;
  int level = 0;
  for (int i = 0; i < op->n_operands; i++) {
    bool inside = kind == SCORE_OF_SUM || kind == SCORE_SUM ||
                  (kind == SCORE_MEMBER && op->kind != OP_DOT_GENERAL);
    level = MAX(level, level_for(s, op->operands[i], inside));
  }
  if (op->n_regions) {
    Value **in;
    int n = op_captures(op, &in);
    for (int i = 0; i < n; i++) level = MAX(level, level_for(s, in[i], false));
    free(in);
  }
  for (int i = 0; i < op->n_results; i++) scores_info(s, &op->results[i])->level = level;
  if (kind) s->levels = MAX(s->levels, level + 1);
}

/* ---- what is wanted ---- */

typedef VEC(const Value *) Values;

static void want_operands(const Op *op, Values *todo) {
  for (int i = 0; i < op->n_operands; i++) *vec_push(todo) = op->operands[i];
  if (!op->n_regions) return;
  Value **in;
  int n = op_captures(op, &in);
  for (int i = 0; i < n; i++) *vec_push(todo) = in[i];
  free(in);
}

static bool want(Scores *s, Values *todo, int level) {
  bool fine = true;
  while (todo->n && fine) {
    const Value *v = todo->v[--todo->n];
    ScoreInfo *i = scores_info(s, v);
    if (!i || i->seen) continue;
    i->seen = true;
    if (i->kind == SCORE_SUM || i->kind == SCORE_RESULT) {
      i->wanted = true;
      fine = i->level < level;
    } else {
      fine = i->kind != SCORE_MEMBER;
      if (v->def) want_operands(v->def, todo);
    }
  }
  vec_free(todo);
  return fine;
}

bool scores_want(Scores *s, const Value *v, int level) {
  Values todo = {0};
  const ScoreInfo *i = scores_info(s, v);
  if (i && (i->kind == SCORE_SUM || i->kind == SCORE_RESULT) && i->level >= level) return false;
  *vec_push(&todo) = v;
  return want(s, &todo, level);
}

/* By the program. false: it wants a member. */
static bool want_results(Scores *s) {
  Values todo = {0};
  for (const Op *op = s->r->first; op; op = op->next)
    if (op == s->r->last || !op_is_pure(op)) want_operands(op, &todo);
  return want(s, &todo, s->levels);
}

/* ---- blocks ---- */

static int64_t part_bytes(const Scores *s) {
  int64_t n = (int64_t)sizeof(float);
  for (int i = 0; i < s->type->rank; i++) n *= s->block[i];
  return n;
}

/* The largest number of places of an axis, at most `most`, that divides them. */
static int64_t divisor(int64_t n, int64_t most) {
  int64_t d = MAX(1, MIN(n, most));
  while (n % d) d--;
  return d;
}

/* Batches are cut first, down to one of them, then the longest axis that may be. false: none may. */
static bool cut(Scores *s, const Op *dot) {
  int rank = s->type->rank, rows = -1;
  DotDims d = b_dot_dims(dot);
  for (int i = 0; i < rank; i++) s->block[i] = s->type->dims[i];
  for (int i = d.n_batch; i < rank; i++)
    if (!s->whole[i] && (rows < 0 || s->type->dims[i] > s->type->dims[rows])) rows = i;
  for (int i = 0; i < rank && part_bytes(s) > s->limits->block; i++) {
    if (s->whole[i] || i == rows) continue;
    int64_t one = part_bytes(s) / s->block[i];
    s->block[i] = divisor(s->block[i], s->limits->block / one);
  }
  if (rows >= 0 && part_bytes(s) > s->limits->block) {
    int64_t n = s->block[rows], most = MAX(LEAST_BLOCK, s->limits->block / (part_bytes(s) / n));
    int64_t even = divisor(n, most);
    s->block[rows] = 2 * even >= MIN(n, most) ? even : MIN(n, most);
  }
  for (int i = 0; i < rank; i++)
    if (scores_cut(s, i)) return true;
  return false;
}

/* ---- the whole ---- */

/* Scores that would be computed twice must cost little, and take much room otherwise. */
static bool is_worth_recomputing(const Scores *s) {
  if (s->levels > 1 && s->count * (int64_t)sizeof(float) < s->limits->recompute) return false;
  for (int i = 0; i < s->members.n && s->levels > 1; i++) {
    const Op *op = s->members.v[i]->def;
    if (op->kind != OP_DOT_GENERAL) continue;
    DotDims d = b_dot_dims(op);
    int64_t terms = 1;
    for (int k = 0; k < d.n_contract; k++) terms *= b_dim(op->operands[0], (int)d.lhs_contract[k]);
    if (terms > MOST_AGAIN) return false;
  }
  return true;
}

/* Gradients that are sums over blocks take more time than at once, too. */
static bool adds_blocks(const Scores *s) {
  for (int a = 0; a < s->type->rank; a++)
    if (s->summed >> a & 1 && scores_cut(s, a)) return true;
  return false;
}

/* Is it a softmax: an exponential, and sums that members are computed of? */
static bool is_normalized(const Scores *s) {
  bool exponential = false, sums = false;
  for (int i = 0; i < s->members.n; i++)
    exponential |= s->members.v[i]->def->kind == OP_EXPONENTIAL;
  for (const Op *op = s->r->first; op && !sums; op = op->next)
    sums = op->n_results == 1 && kind_of(s, op->results) == SCORE_SUM;
  return exponential && sums;
}

static void find_levels(Scores *s) {
  s->levels = 0;
  for (Op *op = s->r->first; op; op = op->next) find_level(s, op);
}

/* All that is computed of dot's scores; false: something else as well, or no softmax. */
static bool find_all(Scores *s, const Op *dot) {
  Axes axes;
  memset(axes.of, -1, sizeof axes.of);
  for (int i = 0; i < s->type->rank; i++) axes.of[i] = (int8_t)i;
  if (!add_member(s, dot->results, &axes) || !gather(s) || !are_products_of_one(s) ||
      !is_normalized(s))
    return false;
  find_levels(s);
  return true;
}

static bool is_worth_it(Scores *s, const Op *dot) {
  return is_worth_recomputing(s) && want_results(s) && cut(s, dot) &&
         (!adds_blocks(s) || s->count * (int64_t)sizeof(float) >= s->limits->recompute);
}

/* Puts every operation behind those whose results it reads; else the order stays. */
static void place(Region *r, Map *done, Op *op, Op *end) {
  Str key = {(const char *)&op, sizeof op};
  if (map_get(done, key)) return;
  map_set(done, key, op);
  for (int i = 0; i < op->n_operands; i++)
    if (op->operands[i]->def && op->operands[i]->def->parent == r)
      place(r, done, op->operands[i]->def, end);
  if (op->n_regions) {
    Value **in;
    int n = op_captures(op, &in);
    for (int i = 0; i < n; i++)
      if (in[i]->def && in[i]->def->parent == r) place(r, done, in[i]->def, end);
    free(in);
  }
  if (op == end) return;
  op_remove(op);
  op_insert_before(end, op);
}

void scores_sort_ops(Region *r) {
  VEC(Op *) all = {0};
  Map *done = map_new();
  for (Op *op = r->first; op; op = op->next) *vec_push(&all) = op;
  for (int i = 0; i < all.n; i++) place(r, done, all.v[i], r->last);
  map_free(done);
  vec_free(&all);
}

static bool rewrite(Scores *s) {
  ScoreLoop *loops = xcalloc((size_t)s->levels, sizeof *loops);
  bool fine = true;
  for (int k = s->levels - 1; k >= 0 && fine; k--) fine = scores_loop(s, k, &loops[k]);
  for (int k = 0; k < s->levels && fine; k++)
    while (loops[k].n && loops[k].ops->first) {
      Op *op = loops[k].ops->first;
      op_remove(op);
      op_insert_before(s->r->last, op);
    }
  for (int k = 0; k < s->levels; k++) {
    for (int i = 0; i < loops[k].n && fine; i++)
      value_replace_all(s->r->func, loops[k].from[i], loops[k].to[i]);
    free(loops[k].from);
    free(loops[k].to);
  }
  free(loops);
  if (fine) scores_sort_ops(s->r);
  return fine;
}

/* Worth it, as far as the product alone tells? */
static bool is_large(const Op *op, const BlockLimits *limits) {
  if (op->kind != OP_DOT_GENERAL) return false;
  const Type *t = op_type(op);
  if (!is_plain(t) || t->rank < 2 || t->rank > MOST_AXES || !dtype_is_float(t->dtype)) return false;
  int64_t n = type_count(t);
  return n * (int64_t)sizeof(float) >= limits->least &&
         n >= limits->ratio *
                  (type_count(op->operands[0]->type) + type_count(op->operands[1]->type));
}

static bool of_product(Module *m, Region *r, const Op *dot, const BlockLimits *limits,
                       ScoresFn *fn) {
  Uses u = uses_of(r, OP_COUNT);
  Scores s = {.m = m, .r = r, .limits = limits, .uses = &u, .type = op_type(dot)};
  s.count = type_count(s.type);
  s.n_values = ir_number(r->func);
  s.info = xcalloc((size_t)s.n_values + 1, sizeof *s.info);
  bool changed = is_score_product(&s, dot) && find_all(&s, dot) && fn(&s, dot);
  vec_free(&u.all);
  vec_free(&s.members);
  free(s.info);
  return changed;
}

static bool walk(Module *m, Region *r, const BlockLimits *limits, ScoresFn *fn) {
  VEC(const Op *) large = {0};
  bool changed = false;
  for (Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_regions; i++) changed |= walk(m, op->regions[i], limits, fn);
    if (is_large(op, limits)) *vec_push(&large) = op;
  }
  for (int i = 0; i < large.n; i++)
    if (region_uses(r, large.v[i]->results)) changed |= of_product(m, r, large.v[i], limits, fn);
  vec_free(&large);
  return changed;
}

bool scores_each(Module *m, const BlockLimits *limits, ScoresFn *fn) {
  return walk(m, module_main(m)->body, limits, fn);
}

static bool in_blocks(Scores *s, const Op *dot) { return is_worth_it(s, dot) && rewrite(s); }

Err *scores_in_blocks(Module *m, const BlockLimits *limits) {
  return scores_each(m, limits, in_blocks) ? pass_simplify(m) : NULL;
}

/* Fewer scores than the third caches hold are as fast as they are; a block leaves time for the threads to meet. */
Err *pass_blockwise(Module *m) {
  return scores_in_blocks(
      m, &(BlockLimits){
             .least = 64 << 20, .recompute = (int64_t)512 << 20, .block = 4 << 20, .ratio = 4});
}
