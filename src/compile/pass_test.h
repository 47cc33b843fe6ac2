/* What the tests of single passes share: a program before and after, run by the interpreter. */
#ifndef WEFT_COMPILE_PASS_TEST_H
#define WEFT_COMPILE_PASS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "compile/compile.h"
#include "interp/interp.h"
#include "stablehlo/stablehlo.h"

static inline void ok(Err *e) {
  if (e) fail_msg("%s", err_text(e));
}

static inline Module *read_program(Str text) {
  Module *m = NULL;
  ok(stablehlo_read("case.mlir", text, &m));
  ok(ir_verify(m));
  return m;
}

/* n arguments, at most two; the one result is a new reference. */
static inline Tensor *run(const Module *m, int n, Tensor *const *in) {
  Tensor *own[2] = {in[0], in[n - 1]};
  Shards args[2] = {{1, &own[0]}, {1, &own[1]}}, result = {0};
  ok(interp_run(m, STR(""), NULL, args, n, &result, 1));
  Tensor *t = tensor_retain(result.t[0]);
  shards_free(&result);
  return t;
}

#endif
