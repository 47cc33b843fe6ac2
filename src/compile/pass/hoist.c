/* pass_hoist: what a loop need not do.
 *
 * Products that a loop adds up become one product after it. The backward pass of a recurrent
 * network sums the gradient of its weights over time,
 *
 *   sum += lhs[t]^T rhs[t]      where lhs[t] is a slice of a stack, or rhs[t] is put into one
 *
 * which is one product of the two stacks that contracts time as well: it runs at the speed of a
 * large product, and the sum does not pass through memory at every step. Asked for: a trip count
 * that the program gives, both operands in stacks of that many parts, all of them visited in the
 * same order by both.
 *
 * Carried values that never change leave the loop: the body reads them where they are, and nobody
 * copies them. */
#include <stdlib.h>

#include "compile/pass/pass_priv.h"

#define MAX_TRIPS 1000000

typedef struct Trips {
  int count, counter; /* carried value that counts */
  int64_t first, by;
} Trips;

/* ---- sums ---- */

/* The integer v is when the counter is `now`. */
static bool int_at(const Value *v, const Value *counter, int64_t now, int64_t *out) {
  int64_t a, b;
  if (v == counter) {
    *out = now;
    return true;
  }
  if (value_int(v, out)) return true;
  const Op *op = v->def;
  if (!op || v->type->rank || op->n_operands < 1 || !int_at(op->operands[0], counter, now, &a))
    return false;
  if (op->kind == OP_CONVERT) {
    *out = a;
    return dtype_is_int(op_type(op)->dtype) && a >= 0 && a <= INT32_MAX;
  }
  if (op->n_operands != 2 || !int_at(op->operands[1], counter, now, &b)) return false;
  *out = op->kind == OP_ADD ? a + b : a - b;
  return (op->kind == OP_ADD || op->kind == OP_SUBTRACT) && *out >= INT32_MIN && *out <= INT32_MAX;
}

/* The part of a stack [n, dims of x] at one place, all of it in the other dimensions. */
static bool is_part(const Op *move, int first_start, const Type *stack, const Value *x,
                    const Value **place) {
  int64_t zero;
  if (stack->rank != x->type->rank + 1 || stack->dtype != x->type->dtype) return false;
  for (int i = 0; i < x->type->rank; i++) {
    if (stack->dims[i + 1] != x->type->dims[i]) return false;
    if (!value_int(move->operands[first_start + i + 1], &zero) || zero) return false;
  }
  *place = move->operands[first_start];
  return true;
}

static const Op *through_reshape(const Value *v) {
  return v->def && v->def->kind == OP_RESHAPE ? v->def : NULL;
}

/* The stack, as it is after the loop, that x is the part of at *place; NULL: none. */
static Value *stack_of(Op *loop, const Value *x, const Value **place) {
  const Region *body = loop->regions[1];
  const Op *flat = through_reshape(x), *slice = flat ? flat->operands[0]->def : NULL;
  if (slice && slice->kind == OP_DYNAMIC_SLICE) {
    Value *s = slice->operands[0];
    bool carried = s->region == body && !s->def && body->last->operands[s->index] == s;
    if (op_type(slice)->dims[0] == 1 && (carried || s->region == loop->parent) &&
        is_part(slice, 1, s->type, x, place))
      return carried ? loop->operands[s->index] : s;
  }
  for (int i = 0; i < loop->n_results; i++) {
    const Op *put = body->last->operands[i]->def;
    if (!put || put->kind != OP_DYNAMIC_UPDATE_SLICE || put->operands[0] != body->args[i]) continue;
    const Op *part = through_reshape(put->operands[1]);
    if (!part || part->operands[0] != x || op_type(part)->dims[0] != 1) continue;
    if (region_uses(body, body->args[i]) == 1 && is_part(put, 2, op_type(put), x, place))
      return &loop->results[i];
  }
  return NULL;
}

/* Do both places go through 0 .. count - 1, each once, and together? */
static bool same_order(const Op *loop, const Trips *t, const Value *p, const Value *q) {
  const Value *counter = loop->regions[1]->args[t->counter];
  bool *seen = xcalloc((size_t)t->count + 1, 1), ok = true;
  for (int i = 0; i < t->count && ok; i++) {
    int64_t a, b, now = t->first + i * t->by;
    ok = int_at(p, counter, now, &a) && int_at(q, counter, now, &b) && a == b && a >= 0 &&
         a < t->count && !seen[a];
    if (ok) seen[a] = true;
  }
  free(seen);
  return ok;
}

bool loop_visits_all(const Op *loop, const Value *place, int64_t n) {
  Trips t;
  t.count = loop_trip_count(loop, MAX_TRIPS, &t.counter, &t.first, &t.by);
  return n > 0 && t.count == n && same_order(loop, &t, place, place);
}

static bool is_zero(const Value *v) {
  const char *p = v->type->kind == TY_TENSOR ? value_splat(v) : NULL;
  for (int i = 0; p && i < dtype_bytes(v->type->dtype); i++)
    if (p[i]) return false;
  return p != NULL;
}

/* Carried value k starts as zeros and the loop adds to each part once: then it writes the parts.
 * So come the gradients of slices out of reverse mode. */
static bool write_once(Op *loop, int k, const Trips *t) {
  const Region *cond = loop->regions[0], *body = loop->regions[1];
  Value *stack = body->args[k];
  Op *put = body->last->operands[k]->def;
  if (!put || put->kind != OP_DYNAMIC_UPDATE_SLICE || put->operands[0] != stack ||
      region_uses(body, stack) != 2 || region_uses(cond, cond->args[k]) ||
      !is_zero(loop->operands[k]))
    return false;
  Value *sum = put->operands[1];
  const Type *part = sum->type, *whole = stack->type;
  Op *add = sum->def;
  if (!add || add->kind != OP_ADD || add->parent != body || region_uses(body, sum) != 1 ||
      part->rank < 1 || part->dims[0] != 1 ||
      !same_order(loop, t, put->operands[2], put->operands[2]) || whole->dims[0] < t->count)
    return false;
  for (int i = 1; i < part->rank; i++)
    if (part->dims[i] != whole->dims[i]) return false;
  for (int side = 0; side < 2; side++) {
    Op *get = add->operands[side]->def;
    if (!get || get->kind != OP_DYNAMIC_SLICE || get->operands[0] != stack ||
        get->operands[1] != put->operands[2] || region_uses(body, &get->results[0]) != 1)
      continue;
    put->operands[1] = add->operands[!side];
    op_remove(add);
    op_remove(get);
    return true;
  }
  return false;
}

static void shift(Module *m, Op *dot, const char *name, bool contracting) {
  const int64_t *old;
  int64_t v[MAX_RANK + 1];
  int n = op_ints(dot, name, &old), k = 0;
  if (contracting) v[k++] = 0;
  for (int i = 0; i < n; i++) v[k++] = old[i] + 1;
  if (k) op_set_attr(m, dot, str_from(name), attr_ints(m, DT_I64, k, v));
}

static bool hoist_sum(Module *m, Op *loop, int k, const Trips *t) {
  const Region *cond = loop->regions[0], *body = loop->regions[1];
  Value *sum = body->args[k];
  Op *add = body->last->operands[k]->def;
  if (!add || add->kind != OP_ADD || !dtype_is_float(sum->type->dtype)) return false;
  if (add->operands[0] != sum && add->operands[1] != sum) return false;
  Value *term = add->operands[add->operands[0] == sum];
  Op *dot = term->def;
  if (!dot || dot->kind != OP_DOT_GENERAL || dot->parent != body ||
      dot->operands[0]->type->rank > MAX_RANK || dot->operands[1]->type->rank > MAX_RANK ||
      region_uses(body, sum) != 1 || region_uses(cond, cond->args[k]) ||
      region_uses(body, term) != 1 || region_uses(body, &add->results[0]) != 1)
    return false;
  const Value *at[2];
  Value *stacks[2];
  for (int i = 0; i < 2; i++) {
    stacks[i] = stack_of(loop, dot->operands[i], &at[i]);
    if (!stacks[i] || stacks[i]->type->dims[0] != t->count) return false;
  }
  if (!same_order(loop, t, at[0], at[1])) return false;
  Op *whole = op_new(m, OP_DOT_GENERAL, 2, stacks, 1, (Type *[]){op_type(dot)}, dot->n_attrs,
                     dot->attrs, 0, NULL);
  shift(m, whole, "lhs_batching_dimensions", false);
  shift(m, whole, "rhs_batching_dimensions", false);
  shift(m, whole, "lhs_contracting_dimensions", true);
  shift(m, whole, "rhs_contracting_dimensions", true);
  whole->loc = dot->loc;
  Value *terms[2] = {loop->operands[k], &whole->results[0]};
  Op *total = op_new(m, OP_ADD, 2, terms, 1, (Type *[]){sum->type}, 0, NULL, 0, NULL);
  total->loc = add->loc;
  Op *after = loop->next;
  op_insert_before(after, whole);
  op_insert_before(after, total);
  body->last->operands[k] = sum;
  value_replace_all(module_main(m), &loop->results[k], &total->results[0]);
  return true;
}

/* ---- values that never change ---- */

static void drop_args(Region *r, const bool *drop) {
  int n = 0;
  for (int i = 0; i < r->n_args; i++) {
    if (drop[i]) continue;
    r->args[n] = r->args[i];
    r->args[n]->index = n;
    n++;
  }
  r->n_args = n;
}

/* The loop without them; the loop itself when it has none. */
static Op *drop_fixed(Module *m, Op *loop) {
  Func *f = module_main(m);
  Region *cond = loop->regions[0], *body = loop->regions[1];
  int n = loop->n_results, kept = 0;
  bool *drop = xcalloc((size_t)n + 1, 1);
  for (int i = 0; i < n; i++) {
    drop[i] = body->last->operands[i] == body->args[i];
    kept += !drop[i];
  }
  if (kept == n || kept == 0) {
    free(drop);
    return loop;
  }
  Value **in = xmalloc(sizeof *in * (size_t)n);
  Type **types = xmalloc(sizeof *types * (size_t)n);
  int *from = xmalloc(sizeof *from * (size_t)n), k = 0;
  for (int i = 0; i < n; i++) {
    if (drop[i]) {
      value_replace_all(f, cond->args[i], loop->operands[i]);
      value_replace_all(f, body->args[i], loop->operands[i]);
      value_replace_all(f, &loop->results[i], loop->operands[i]);
      continue;
    }
    from[k] = i;
    in[k] = loop->operands[i];
    body->last->operands[k] = body->last->operands[i];
    types[k++] = loop->results[i].type;
  }
  body->last->n_operands = k;
  drop_args(cond, drop);
  drop_args(body, drop);
  Op *less = op_new(m, OP_WHILE, k, in, k, types, loop->n_attrs, loop->attrs, loop->n_regions,
                    loop->regions);
  less->loc = loop->loc;
  op_insert_before(loop, less);
  for (int i = 0; i < k; i++) value_replace_all(f, &loop->results[from[i]], &less->results[i]);
  op_remove(loop);
  free(drop);
  free(in);
  free(types);
  free(from);
  return less;
}

static bool hoist_region(Module *m, Region *r) {
  bool changed = false;
  for (Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_regions; i++) changed |= hoist_region(m, op->regions[i]);
    if (op->kind != OP_WHILE) continue;
    Trips t;
    t.count = loop_trip_count(op, MAX_TRIPS, &t.counter, &t.first, &t.by);
    for (int k = 0; k < op->n_results && t.count > 1; k++) changed |= write_once(op, k, &t);
    for (int k = 0; k < op->n_results && t.count > 1; k++) changed |= hoist_sum(m, op, k, &t);
    Op *less = drop_fixed(m, op);
    changed |= less != op;
    op = less;
  }
  return changed;
}

Err *pass_hoist(Module *m) {
  return hoist_region(m, module_main(m)->body) ? pass_simplify(m) : NULL;
}
