/* Plans of small programs, for a device that fuses element-wise operations and reductions. */
#ifndef WEFT_COMPILE_PLAN_TEST_H
#define WEFT_COMPILE_PLAN_TEST_H

#include "compile/compile.h"
#include "compile/pass/prog_test.h"

static inline bool fusible(void *arg, const Op *op) {
  (void)arg;
  OpClass c = op_info[op->kind].cls;
  return c == OC_EWISE || c == OC_MOVE || op->kind == OP_IOTA || op->kind == OP_REDUCE;
}

static inline int in_place(void *arg, const Op *op) {
  (void)arg;
  return op->kind == OP_DYNAMIC_UPDATE_SLICE ? 1 : 0;
}

static const Target target = {
    .fusible = fusible, .in_place = in_place, .replicas = 1, .partitions = 1};

static inline Plan *plan_of(Module *m) {
  Plan *p = NULL;
  ok(ir_verify(m));
  ok(compile_program(m, &target, &p));
  module_free(m);
  return p;
}

#endif
