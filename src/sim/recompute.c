/* How much of a program's products is computed a second time, as jax.checkpoint has it: what MFU leaves
 * out and HFU counts.
 *
 * Values get numbers: two have the same number when the same operation makes them of the same numbers.
 * A barrier has the number of what goes through it, a part that a loop cuts from a stack in its turn
 * that of what a loop before it has put there in its turn, and parts of one stack are one. A product
 * whose number is there already is computed again, unless the compiler sees that too: in one region,
 * without a barrier between.
 */
#include "sim/lists.h"

#include <stdlib.h>

#include "compile/pass/pass.h"
#include "compile/pass/query.h"
#include "ir/build.h"

typedef struct Known { /* an operation that has been numbered */
  const Op *op;
  int n_operands, first; /* number of its first result */
  int *operands;         /* their numbers */
  const Region *region;
  uint64_t hash;
} Known;

typedef struct Numbering {
  bool barriers; /* end what is the same */
  int *of;       /* by value id */
  int next;
  VEC(Known) known;
  int *buckets, n_buckets; /* 1 + index into known; 0: empty */
  VEC(int) put;            /* by number: of what is stacked in it, 0: nothing known */
} Numbering;

static int fresh(Numbering *n) {
  *vec_push(&n->put) = 0;
  return n->next++;
}

static bool says_nothing(Str name) {
  return str_is(name, "channel_handle") || str_starts(name, "sdy.") || str_starts(name, "mhlo.") ||
         str_starts(name, "weft.");
}

static bool same_attrs(const Op *a, const Op *b) {
  if (a->n_attrs != b->n_attrs) return false;
  for (int i = 0; i < a->n_attrs; i++) {
    if (!str_eq(a->attrs[i].name, b->attrs[i].name)) return false;
    if (!says_nothing(a->attrs[i].name) && !attr_equal(a->attrs[i].value, b->attrs[i].value))
      return false;
  }
  return true;
}

/* Regions of reductions and the like: the same operations in a row. */
static bool same_regions(const Op *a, const Op *b) {
  if (a->n_regions != b->n_regions) return false;
  for (int i = 0; i < a->n_regions; i++) {
    const Op *x = a->regions[i]->first, *y = b->regions[i]->first;
    for (; x && y && x->kind == y->kind && !x->n_regions; x = x->next) y = y->next;
    if (x || y) return false;
  }
  return true;
}

static bool same_op(const Known *k, const Op *op, const int *operands) {
  if (k->op->kind != op->kind || k->n_operands != op->n_operands ||
      k->op->n_results != op->n_results || !str_eq(k->op->name, op->name))
    return false;
  for (int i = 0; i < op->n_operands; i++)
    if (k->operands[i] != operands[i]) return false;
  for (int i = 0; i < op->n_results; i++)
    if (k->op->results[i].type != op->results[i].type) return false;
  return same_attrs(k->op, op) && same_regions(k->op, op);
}

static uint64_t hash_of(const Op *op, const int *operands) {
  uint64_t h = (uint64_t)op->kind * 0x9e3779b97f4a7c15u;
  for (int i = 0; i < op->n_operands; i++) h = (h ^ (uint64_t)operands[i]) * 0x100000001b3u;
  return h ^ h >> 29;
}

static void grow(Numbering *n) {
  free(n->buckets);
  n->n_buckets = n->n_buckets ? 2 * n->n_buckets : 1024;
  n->buckets = xcalloc((size_t)n->n_buckets, sizeof *n->buckets);
  for (int k = 0; k < n->known.n; k++) {
    uint64_t at = n->known.v[k].hash % (uint64_t)n->n_buckets;
    while (n->buckets[at]) at = (at + 1) % (uint64_t)n->n_buckets;
    n->buckets[at] = k + 1;
  }
}

/* The one like op that is known, else op, which then is; *found: it was there. */
static const Known *look_up(Numbering *n, const Op *op, const int *operands, const Region *r,
                            bool *found) {
  if (2 * n->known.n >= n->n_buckets) grow(n);
  uint64_t h = hash_of(op, operands), at = h % (uint64_t)n->n_buckets;
  *found = true;
  for (; n->buckets[at]; at = (at + 1) % (uint64_t)n->n_buckets) {
    const Known *k = &n->known.v[n->buckets[at] - 1];
    if (k->hash == h && same_op(k, op, operands)) return k;
  }
  *found = false;
  Known k = {op, op->n_operands, n->next, xmalloc(sizeof(int) * (size_t)(op->n_operands + 1)), r,
             h};
  memcpy(k.operands, operands, sizeof(int) * (size_t)op->n_operands);
  for (int i = 0; i < op->n_results; i++) fresh(n);
  *vec_push(&n->known) = k;
  n->buckets[at] = n->known.n;
  return &n->known.v[n->known.n - 1];
}

/* Does it cut or put one part of the first dimension, all of the others, at a place that is computed? */
static bool one_part(const Type *whole, const Type *part, const Value *place) {
  if (whole->rank < 1 || whole->rank != part->rank || part->dims[0] != 1) return false;
  for (int d = 1; d < whole->rank; d++)
    if (whole->dims[d] != part->dims[d]) return false;
  return !place->def || place->def->kind != OP_CONSTANT;
}

static const Value *unshaped(const Value *v) {
  while (v->def && (v->def->kind == OP_RESHAPE ||
                    (v->def->kind == OP_BROADCAST_IN_DIM &&
                     type_count(v->type) == type_count(v->def->operands[0]->type))))
    v = v->def->operands[0];
  return v;
}

typedef struct Count {
  Numbering loose, strict; /* barriers let through; or not */
  double all, again;       /* floating-point operations of products */
} Count;

static double product_flops(const Op *op) {
  if (op->kind == OP_DOT_GENERAL) {
    DotDims d = b_dot_dims(op);
    double n = 2.0 * (double)type_count(op_type(op));
    for (int i = 0; i < d.n_contract; i++)
      n *= (double)op->operands[0]->type->dims[d.lhs_contract[i]];
    return n;
  }
  if (op->kind != OP_CONVOLUTION) return 0;
  const Type *k = op->operands[1]->type;
  return 2.0 * (double)type_count(op_type(op)) * (double)type_count(k) /
         (double)MAX(1, k->dims[b_conv_dims(op).k_out]);
}

static void number_region(Count *a, const Region *r, double times);

/* Carried values that the body hands on as they are stay what they were; a stack remembers what is put
 * into it. */
static void number_loop(Count *a, const Op *op, double times) {
  Numbering *both[2] = {&a->loose, &a->strict};
  const Region *body = op->regions[1];
  int counter;
  int64_t first, by;
  int trips = loop_trip_count(op, 1 << 24, &counter, &first, &by);
  for (int w = 0; w < 2; w++)
    for (int k = 0; k < op->n_operands; k++) {
      bool same = body->last->operands[k] == body->args[k];
      int number = same ? both[w]->of[op->operands[k]->id] : fresh(both[w]);
      both[w]->of[body->args[k]->id] = both[w]->of[op->regions[0]->args[k]->id] = number;
    }
  number_region(a, body, times * MAX(1, trips));
  for (int w = 0; w < 2; w++)
    for (int k = 0; k < op->n_results; k++) {
      Numbering *n = both[w];
      const Value *last = body->last->operands[k];
      int number = last == body->args[k] ? n->of[op->operands[k]->id] : fresh(n);
      const Op *put = last->def;
      if (put && put->kind == OP_DYNAMIC_UPDATE_SLICE && put->operands[0] == body->args[k] &&
          one_part(put->operands[0]->type, put->operands[1]->type, put->operands[2]))
        n->put.v[number] = n->of[unshaped(put->operands[1])->id] + 1;
      n->of[op->results[k].id] = number;
    }
}

/* A part of a stack is what was put there; a reshaped one that is no more reshaped. True: done. */
static bool number_part(Numbering *n, const Op *op) {
  const Value *x = op->n_operands ? unshaped(op->operands[0]) : NULL;
  if (op->kind == OP_DYNAMIC_SLICE &&
      one_part(op->operands[0]->type, op_type(op), op->operands[1])) {
    int put = n->put.v[n->of[op->operands[0]->id]];
    if (put) return n->of[op->results[0].id] = put - 1, true;
  }
  if (op->kind != OP_RESHAPE || !x->def || x->def->kind != OP_DYNAMIC_SLICE) return false;
  if (!one_part(x->def->operands[0]->type, x->type, x->def->operands[1])) return false;
  int put = n->put.v[n->of[x->def->operands[0]->id]];
  if (put) n->of[op->results[0].id] = put - 1;
  return put != 0;
}

/* What the operation is known as, *found: it was before; NULL: it makes nothing that could be the same. */
static const Known *number_op(Numbering *n, const Op *op, const Region *r, bool *found) {
  *found = false;
  if (op->kind == OP_OPTIMIZATION_BARRIER && !n->barriers) {
    for (int i = 0; i < op->n_results; i++) n->of[op->results[i].id] = n->of[op->operands[i]->id];
    return NULL;
  }
  if (number_part(n, op)) return NULL;
  bool once = op_info[op->kind].cls == OC_CONTROL || op_info[op->kind].cls == OC_RNG ||
              op->kind == OP_OPTIMIZATION_BARRIER;
  if (once) {
    for (int i = 0; i < op->n_results; i++) n->of[op->results[i].id] = fresh(n);
    return NULL;
  }
  int few[8], *operands = op->n_operands <= 8 ? few : xmalloc(sizeof(int) * (size_t)op->n_operands);
  bool part =
      op->kind == OP_DYNAMIC_SLICE && one_part(op->operands[0]->type, op_type(op), op->operands[1]);
  for (int i = 0; i < op->n_operands; i++)
    operands[i] = part && i ? -1 : n->of[op->operands[i]->id];
  const Known *k = look_up(n, op, operands, r, found);
  for (int i = 0; i < op->n_results; i++) n->of[op->results[i].id] = k->first + i;
  if (operands != few) free(operands);
  return k;
}

static void number_region(Count *a, const Region *r, double times) {
  for (const Op *op = r->first; op; op = op->next) {
    if (op->kind == OP_WHILE) {
      number_loop(a, op, times);
      continue;
    }
    bool again, seen;
    number_op(&a->loose, op, r, &again);
    const Known *k = number_op(&a->strict, op, r, &seen);
    if (op->kind == OP_IF || op->kind == OP_CASE)
      for (int i = 0; i < op->n_regions; i++) number_region(a, op->regions[i], times);
    double flops = product_flops(op) * times;
    if (flops == 0 || (seen && k->region == r && k->op != op)) continue;
    a->all += flops;
    if (again) a->again += flops;
  }
}

static void numbering_free(Numbering *n) {
  for (int i = 0; i < n->known.n; i++) free(n->known.v[i].operands);
  vec_free(&n->known);
  vec_free(&n->put);
  free(n->buckets);
  free(n->of);
}

double products_recomputed(const Module *m) {
  Module *c = module_clone(m);
  Err *e = pass_inline(c);
  Func *f = e ? NULL : module_main(c);
  err_free(e);
  Count a = {.strict.barriers = true};
  if (f && f->body) {
    size_t n = (size_t)ir_number(f) + 1;
    a.loose.of = xcalloc(n, sizeof(int));
    a.strict.of = xcalloc(n, sizeof(int));
    for (int i = 0; i < f->body->n_args; i++) {
      a.loose.of[f->body->args[i]->id] = fresh(&a.loose);
      a.strict.of[f->body->args[i]->id] = fresh(&a.strict);
    }
    number_region(&a, f->body, 1);
  }
  numbering_free(&a.loose);
  numbering_free(&a.strict);
  module_free(c);
  return a.all > 0 ? a.again / a.all : 0;
}
