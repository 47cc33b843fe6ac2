/* Small programs made by hand, for tests of what is left of them. */
#ifndef WEFT_COMPILE_PASS_PROG_TEST_H
#define WEFT_COMPILE_PASS_PROG_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err_test.h"
#include "compile/pass/pass.h"
#include "ir/build.h"

static inline int count(const Module *m, OpKind kind) {
  int n = 0;
  for (const Op *op = module_main(m)->body->first; op; op = op->next) n += op->kind == kind;
  return n;
}

typedef struct Prog {
  Build b;
  Module *m;
} Prog;

static inline Prog start(void) {
  Prog p = {.m = module_new()};
  b_func(&p.b, p.m, "main");
  return p;
}

static inline Type *f32(Prog *p, int64_t a, int64_t c) {
  int64_t dims[2] = {a, c};
  return b_type(&p->b, DT_F32, c ? 2 : 1, dims);
}

#endif
