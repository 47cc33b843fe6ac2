/* Dimensions tied by operations are joined into classes (union-find over all dimensions of all
 * values); the class of the inputs' leading dimension is the batch, and whatever it reaches through
 * concatenations and reshapes grows in proportion. Types, and the attributes that repeat sizes, are
 * rewritten; the verifier has the last word.
 */
#include "compile/pass/rebatch.h"

#include "compile/spmd/propagate.h"

#include <stdlib.h>

typedef struct Classes {
  Module *m;
  int *first;  /* by value id: number of its dimension 0 */
  int *parent; /* by dimension number */
  bool *grows; /* by root */
  int64_t from, to;
} Classes;

static int find(Classes *c, int i) {
  while (c->parent[i] != i) i = c->parent[i] = c->parent[c->parent[i]];
  return i;
}
static int class_of(Classes *c, const Value *v, int d) { return find(c, c->first[v->id] + d); }

static void tie(void *arg, Value *a, int da, Value *b, int db) {
  Classes *c = arg;
  /* a reshape's group may begin with a 1 on one side: mark_reshape sees to those */
  if ((a->type->dims[da] == 1) != (b->type->dims[db] == 1)) return;
  c->parent[class_of(c, a, da)] = class_of(c, b, db);
}

static int rank_of(const Value *v) { return v->type->kind == TY_TENSOR ? v->type->rank : 0; }

typedef VEC(Value *) Values;

static void values_of(Region *r, Values *out) {
  for (int i = 0; i < r->n_args; i++) *vec_push(out) = r->args[i];
  for (Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_results; i++) *vec_push(out) = &op->results[i];
    for (int i = 0; i < op->n_regions; i++) values_of(op->regions[i], out);
  }
}

static void classes_make(Module *m, Func *f, Classes *c, Values *all) {
  int n = ir_number(f), dims = 0;
  *c = (Classes){.m = m, .first = xcalloc((size_t)n + 1, sizeof *c->first)};
  values_of(f->body, all);
  for (int i = 0; i < all->n; i++) {
    c->first[all->v[i]->id] = dims;
    dims += rank_of(all->v[i]);
  }
  c->parent = xmalloc(sizeof *c->parent * (size_t)(dims + 1));
  c->grows = xcalloc((size_t)dims + 1, sizeof *c->grows);
  for (int i = 0; i < dims; i++) c->parent[i] = i;
  dims_tied(f, tie, c);
}

static void classes_free(Classes *c, Values *all) {
  free(c->first);
  free(c->parent);
  free(c->grows);
  vec_free(all);
}

/* The class of the batch, -1: none. */
static int batch_class(Classes *c, const Func *f, const bool *is_input, const bool *is_state,
                       int64_t *size) {
  int best = -1;
  double best_bytes = 0;
  for (int i = 0; i < f->body->n_args; i++) {
    const Value *v = f->body->args[i];
    if (!is_input[i] || rank_of(v) < 1 || !type_is_static(v->type)) continue;
    int k = class_of(c, v, 0);
    double bytes = 0;
    bool fixed = false;
    for (int j = 0; j < f->body->n_args && !fixed; j++) {
      const Value *u = f->body->args[j];
      for (int d = 0; d < rank_of(u); d++) {
        if (class_of(c, u, d) != k) continue;
        fixed |= is_state[j];
        if (is_input[j] && d == 0) bytes += (double)type_bytes(u->type);
      }
    }
    if (!fixed && bytes > best_bytes) best = k, best_bytes = bytes, *size = v->type->dims[0];
  }
  return best;
}

int64_t batch_of(Module *m, const bool *is_input, const bool *is_state) {
  Func *f = module_main(m);
  Classes c;
  Values all = {0};
  int64_t size = 0;
  classes_make(m, f, &c, &all);
  batch_class(&c, f, is_input, is_state, &size);
  classes_free(&c, &all);
  return size;
}

static bool grows(Classes *c, const Value *v, int d) { return c->grows[class_of(c, v, d)]; }
static bool mark(Classes *c, const Value *v, int d) {
  bool *g = &c->grows[class_of(c, v, d)];
  bool changed = !*g;
  *g = true;
  return changed;
}

/* A group of dimensions that a reshape turns into another: when one side grows, so does the other.
 */
static bool mark_reshape(Classes *c, const Value *x, const Value *r) {
  const Type *a = x->type, *b = r->type;
  bool changed = false;
  for (int i = 0, j = 0; i < a->rank && j < b->rank;) {
    int64_t pa = a->dims[i], pb = b->dims[j];
    int i0 = i++, j0 = j++;
    while (pa != pb) {
      if (pa < pb && i < a->rank) pa *= a->dims[i++];
      else if (pb < pa && j < b->rank) pb *= b->dims[j++];
      else return changed;
    }
    bool left = false, right = false;
    for (int k = i0; k < i; k++) left |= grows(c, x, k);
    for (int k = j0; k < j; k++) right |= grows(c, r, k);
    if (left == right) continue;
    const Value *to = left ? r : x; /* the dimension of the batch's own size, else the major one */
    int from = left ? j0 : i0, end = left ? j : i, pick = from;
    for (int k = end - 1; k >= from; k--)
      if (to->type->dims[k] == c->from) pick = k;
    changed |= mark(c, to, pick);
  }
  return changed;
}

static bool mark_region(Classes *c, Region *r) {
  bool changed = false;
  for (Op *op = r->first; op; op = op->next) {
    if (op->kind == OP_RESHAPE) changed |= mark_reshape(c, op->operands[0], &op->results[0]);
    if (op->kind == OP_CONCATENATE) {
      int d = (int)op_int(op, "dimension", 0);
      bool any = grows(c, &op->results[0], d);
      for (int i = 0; i < op->n_operands; i++) any |= grows(c, op->operands[i], d);
      for (int i = 0; i < op->n_operands && any; i++) changed |= mark(c, op->operands[i], d);
      if (any) changed |= mark(c, &op->results[0], d);
    }
    for (int i = 0; i < op->n_regions; i++) changed |= mark_region(c, op->regions[i]);
  }
  return changed;
}

static bool scaled(const Classes *c, int64_t v, int64_t *out) {
  if (v % c->from && v * c->to % c->from) return false;
  *out = v % c->from ? v * c->to / c->from : v / c->from * c->to;
  return true;
}

static Err *retype(Classes *c, Value *v) {
  const Type *t = v->type;
  if (t->kind != TY_TENSOR || !t->rank) return NULL;
  int64_t *dims = arena_dup(c->m->arena, t->dims, sizeof *dims * (size_t)t->rank);
  bool changed = false;
  for (int d = 0; d < t->rank; d++) {
    if (!grows(c, v, d)) continue;
    if (dims[d] < 0 || !scaled(c, dims[d], &dims[d]))
      return err_new(ERR_UNIMPLEMENTED, "a dimension of %lld does not divide as the batch of %lld",
                     (long long)t->dims[d], (long long)c->from);
    changed = true;
  }
  if (changed) v->type = type_tensor_full(c->m, t->dtype, t->rank, dims, t->bounds, t->quant);
  return NULL;
}

/* sizes[d] along a dimension that grows: a whole dimension stays whole. */
static void resize_list(Classes *c, Op *op, const char *attr, const Value *v) {
  const int64_t *old;
  int n = op_ints(op, attr, &old);
  if (n != rank_of(v)) return;
  int64_t *new = arena_dup(c->m->arena, old, sizeof *new *(size_t)n);
  for (int d = 0; d < n; d++)
    if (old[d] == v->type->dims[d] && grows(c, v, d)) scaled(c, old[d], &new[d]);
  op_set_attr(c->m, op, str_from(attr), attr_ints(c->m, DT_I64, n, new));
}

/* A constant of one value becomes a broadcast scalar. */
static Err *resize_constant(Classes *c, Op *op, const Type *old) {
  const Attr *a = op_attr(op, "value");
  const Tensor *t = a && a->kind == AT_TENSOR ? a->tensor : NULL;
  if (!t || !t->data || !tensor_is_splat(t))
    return op_err(op, ERR_UNIMPLEMENTED, "a constant that lists %lld examples has no other batch",
                  (long long)c->from);
  Tensor *one = tensor_make(t->dtype, 0, NULL);
  memcpy(one->data, t->data, tensor_bytes(one));
  Type *st = type_tensor_full(c->m, old->dtype, 0, NULL, NULL, old->quant);
  NamedAttr value = {STR("value"), attr_tensor(c->m, one, old->quant)};
  Op *scalar = op_new(c->m, OP_CONSTANT, 0, NULL, 1, &st, 1, &value, 0, NULL);
  op_insert_before(op, scalar);
  NamedAttr none = {STR("broadcast_dimensions"), attr_ints(c->m, DT_I64, 0, NULL)};
  Value *in = &scalar->results[0];
  Op *wide = op_new(c->m, OP_BROADCAST_IN_DIM, 1, &in, 1, &op->results[0].type, 1, &none, 0, NULL);
  op_insert_before(op, wide);
  value_replace_all(module_main(c->m), &op->results[0], &wide->results[0]);
  op_remove(op);
  return NULL;
}

/* Attributes first: they compare with the old sizes. */
static Err *resize_region(Classes *c, Region *r) {
  for (Op *op = r->first, *next; op; op = next) {
    next = op->next;
    switch (op->kind) {
    case OP_SLICE:
      resize_list(c, op, "start_indices", op->operands[0]);
      resize_list(c, op, "limit_indices", op->operands[0]);
      break;
    case OP_DYNAMIC_SLICE: resize_list(c, op, "slice_sizes", &op->results[0]); break;
    case OP_GATHER: resize_list(c, op, "slice_sizes", op->operands[0]); break;
    default: break;
    }
    for (int i = 0; i < op->n_regions; i++) TRY(resize_region(c, op->regions[i]));
  }
  return NULL;
}

static Err *resize_constants(Classes *c, const Values *all) {
  for (int i = 0; i < all->n; i++) {
    Op *op = all->v[i]->def;
    const Attr *a = op && op->kind == OP_CONSTANT ? op_attr(op, "value") : NULL;
    if (a && a->type && a->type != all->v[i]->type) TRY(resize_constant(c, op, a->type));
  }
  return NULL;
}

Err *pass_rebatch(Module *m, const bool *is_input, const bool *is_state, int64_t batch) {
  Func *f = module_main(m);
  Classes c;
  Values all = {0};
  classes_make(m, f, &c, &all);
  c.to = batch;
  int k = batch_class(&c, f, is_input, is_state, &c.from);
  Err *e =
      k < 0 ? err_new(ERR_UNIMPLEMENTED, "no leading dimension of an input is the batch") : NULL;
  if (!e && c.from != batch) {
    c.grows[k] = true;
    while (mark_region(&c, f->body)) {
    }
    for (int i = 0; i < f->body->n_args && !e; i++)
      for (int d = 0; d < rank_of(f->body->args[i]) && !e; d++)
        if (is_state[i] && grows(&c, f->body->args[i], d))
          e = err_new(ERR_UNIMPLEMENTED, "argument %d, a parameter, is as large as the batch", i);
    if (!e) e = resize_region(&c, f->body);
    for (int i = 0; i < all.n && !e; i++) e = retype(&c, all.v[i]);
    if (!e) e = resize_constants(&c, &all);
    int n_in = f->body->n_args, n_out = f->body->last->n_operands;
    Type **t = xmalloc(sizeof *t * (size_t)(n_in + n_out + 1));
    for (int i = 0; i < n_in; i++) t[i] = f->body->args[i]->type;
    for (int i = 0; i < n_out; i++) t[n_in + i] = f->body->last->operands[i]->type;
    f->type = type_func(m, n_in, t, n_out, t + n_in);
    free(t);
    if (!e) e = ir_verify(m);
    if (e && e->code != ERR_UNIMPLEMENTED) e->code = ERR_UNIMPLEMENTED;
  }
  classes_free(&c, &all);
  return err_wrap(e, "changing the batch from %lld to %lld", (long long)c.from, (long long)batch);
}
