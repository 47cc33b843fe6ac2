/* pass_unroll: short loops of element-wise work with a trip count that the program gives are
 * written out, so that the whole becomes one fused kernel: random bits (threefry: five rounds over
 * all numbers) pass through memory once instead of once a round.
 *
 * The count is found by running the condition: one carried integer starts from a constant, the body
 * adds a constant to it, and the condition compares it with a constant. */
#include <stdlib.h>

#include "compile/pass/pass_priv.h"

#define MAX_TRIPS 16
#define MAX_OPS 800 /* after unrolling */

static bool worth_it(const Op *loop, int trips) {
  int n = 0;
  for (const Op *op = loop->regions[1]->first; op; op = op->next) {
    OpClass c = op_info[op->kind].cls;
    if (op->kind != OP_RETURN && c != OC_EWISE && c != OC_MOVE && c != OC_CONSTANT) return false;
    if (op->n_regions || op->kind == OP_MAP) return false;
    n++;
  }
  for (const Op *op = loop->regions[0]->first; op; op = op->next)
    if (!op_is_pure(op)) return false;
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
      int trips = loop_trip_count(op, MAX_TRIPS, &counter, &first, &by);
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
