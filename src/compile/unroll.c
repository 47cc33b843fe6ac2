/* pass_unroll: short loops of element-wise work with a trip count that the program gives are
 * written out, so that the whole becomes one fused kernel: random bits (threefry: five rounds over
 * all numbers) pass through memory once instead of once a round.
 *
 * The count is found by running the condition: one carried integer starts from a constant, the body
 * adds a constant to it, and the condition compares it with a constant. */
#include <stdlib.h>

#include "compile/compile_priv.h"

#define MAX_TRIPS 16
#define MAX_OPS 800 /* after unrolling */

bool compile_constant_int(const Value *v, int64_t *out) {
  const void *p = v->type->kind == TY_TENSOR && v->type->rank == 0 ? value_splat(v) : NULL;
  if (!p || !dtype_is_int(v->type->dtype)) return false;
  *out = elem_get_i64(v->type->dtype, p);
  return true;
}

static bool compares(const Op *op, int64_t a, int64_t b) {
  Str d = op_str(op, "comparison_direction");
  if (str_is(d, "LT")) return a < b;
  if (str_is(d, "LE")) return a <= b;
  if (str_is(d, "GT")) return a > b;
  if (str_is(d, "GE")) return a >= b;
  return str_is(d, "NE") ? a != b : a == b;
}

int compile_uses(const Region *r, const Value *v) {
  int n = 0;
  for (const Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_operands; i++) n += op->operands[i] == v;
    for (int i = 0; i < op->n_regions; i++) n += compile_uses(op->regions[i], v);
  }
  return n;
}

int compile_trip_count(const Op *loop, int most, int *counter, int64_t *first, int64_t *by) {
  const Region *cond = loop->regions[0], *body = loop->regions[1];
  const Op *cmp = cond->last->operands[0]->def;
  int64_t limit, at;
  if (!cmp || cmp->kind != OP_COMPARE || !compile_constant_int(cmp->operands[1], &limit)) return -1;
  const Value *var = cmp->operands[0];
  if (var->def || var->region != cond || !dtype_is_signed(var->type->dtype)) return -1;
  int k = var->index;
  const Op *add = body->last->operands[k]->def;
  if (!compile_constant_int(loop->operands[k], &at) || !add || add->kind != OP_ADD) return -1;
  const Value *arg = body->args[k];
  const Value *step = add->operands[0] == arg ? add->operands[1] : add->operands[0];
  if ((add->operands[0] != arg && add->operands[1] != arg) || !compile_constant_int(step, by) ||
      *by == 0)
    return -1;
  *counter = k;
  *first = at;
  int n = 0;
  for (; compares(cmp, at, limit); n++) {
    if (n == most || at > INT32_MAX || at < INT32_MIN || *by > INT32_MAX || *by < INT32_MIN)
      return -1;
    at += *by;
  }
  return n;
}

static bool worth_it(const Op *loop, int trips) {
  int n = 0;
  for (const Op *op = loop->regions[1]->first; op; op = op->next) {
    OpClass c = op_info[op->kind].cls;
    if (op->kind != OP_RETURN && c != OC_EWISE && c != OC_MOVE && c != OC_CONSTANT) return false;
    if (op->n_regions || op->kind == OP_MAP) return false;
    n++;
  }
  for (const Op *op = loop->regions[0]->first; op; op = op->next)
    if (!simp_is_pure(op)) return false;
  return n * trips <= MAX_OPS;
}

static void write_out(Module *m, Op *loop, int trips) {
  Func *f = module_main(m);
  const Region *body = loop->regions[1];
  int n_ids = ir_number(f), n = loop->n_operands;
  Value **now = xmalloc(sizeof *now * (size_t)(n + 1)),
        **map = xcalloc((size_t)n_ids + 1, sizeof *map);
  for (int i = 0; i < n; i++) now[i] = loop->operands[i];
  for (int t = 0; t < trips; t++) {
    for (int i = 0; i < n; i++) map[body->args[i]->id] = now[i];
    for (Op *op = body->first; op != body->last; op = op->next) {
      Op *copy = op_clone(m, op, map);
      for (int i = 0; i < op->n_results; i++) map[op->results[i].id] = &copy->results[i];
      op_insert_before(loop, copy);
    }
    for (int i = 0; i < n; i++) {
      Value *v = body->last->operands[i];
      now[i] = map[v->id] ? map[v->id] : v;
    }
  }
  for (int i = 0; i < n; i++) value_replace_all(f, &loop->results[i], now[i]);
  op_remove(loop);
  free(now);
  free(map);
}

static bool unroll_region(Module *m, Region *r) {
  bool changed = false;
  for (Op *op = r->first, *next; op; op = next) {
    next = op->next;
    if (op->kind == OP_WHILE) {
      int counter;
      int64_t first, by;
      int trips = compile_trip_count(op, MAX_TRIPS, &counter, &first, &by);
      if (trips >= 0 && worth_it(op, trips)) {
        write_out(m, op, trips);
        changed = true;
        continue;
      }
    }
    if (op->kind == OP_WHILE || op->kind == OP_CASE || op->kind == OP_IF ||
        op->kind == OP_MANUAL_COMPUTATION)
      for (int i = 0; i < op->n_regions; i++) changed |= unroll_region(m, op->regions[i]);
  }
  return changed;
}

Err *pass_unroll(Module *m) {
  if (!unroll_region(m, module_main(m)->body)) return NULL;
  return pass_simplify(m);
}
