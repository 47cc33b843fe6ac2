/* What the tests of passes that write convolutions as products share: a convolution, and whether it
 * becomes a dot_general. */
#ifndef WEFT_COMPILE_PASS_CONV_PASS_TEST_H
#define WEFT_COMPILE_PASS_CONV_PASS_TEST_H

#include "compile/pass/pass_test.h"

typedef struct Case {
  const char *name, *dims, *window, *lhs, *rhs, *out, *groups;
  bool product;
} Case;

#define NHWC "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
#define GROUPS(n) "batch_group_count = 1 : i64, feature_group_count = " #n " : i64"

static inline Module *read_conv(const Case *c) {
  Buf b = {0};
  buf_printf(
      &b,
      "func.func @main(%%a: tensor<%s>, %%b: tensor<%s>) -> tensor<%s> { %%r = "
      "stablehlo.convolution(%%a, %%b) dim_numbers = %s, "
      "window = {%s} {%s} : (tensor<%s>, tensor<%s>) -> tensor<%s> return %%r : tensor<%s> }",
      c->lhs, c->rhs, c->out, c->dims, c->window, c->groups, c->lhs, c->rhs, c->out, c->out);
  Module *m = read_program((Str){b.p, b.n});
  buf_free(&b);
  return m;
}

static inline void check_conv(const Case *c, Err *(*pass)(Module *m)) {
  Module *before = read_conv(c), *after = read_conv(c);
  ok(pass(after));
  ok(ir_verify(after));
  bool convolution = false;
  for (const Op *op = module_main(after)->body->first; op; op = op->next)
    convolution |= op->kind == OP_CONVOLUTION;
  assert_int_equal(convolution, !c->product);
  same_on_integers(c->name, before, after);
}

#endif
