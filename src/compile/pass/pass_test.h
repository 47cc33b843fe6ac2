/* What the tests of single passes share: a program before and after, run by the interpreter. */
#ifndef WEFT_COMPILE_PASS_PASS_TEST_H
#define WEFT_COMPILE_PASS_PASS_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err_test.h"
#include "compile/pass/pass.h"
#include "interp/interp.h"
#include "stablehlo/stablehlo.h"

static inline Module *read_program(Str text) {
  Module *m = NULL;
  ok(stablehlo_read("case.mlir", text, &m));
  ok(ir_verify(m));
  return m;
}

/* n arguments, at most three; the one result is a new reference. */
static inline Tensor *run(const Module *m, int n, Tensor *const *in) {
  Tensor *own[3] = {in[0], in[n > 1], in[n - 1]};
  Shards args[3] = {{1, &own[0]}, {1, &own[1]}, {1, &own[2]}}, result = {0};
  ok(interp_run(m, STR(""), NULL, args, n, &result, 1));
  Tensor *t = tensor_retain(result.t[0]);
  shards_free(&result);
  return t;
}

/* Both programs give the same for the arguments: the same bits, or to tol * (1 + |value|). Frees all
 * of them. */
static inline void same_result(const char *name, Module *before, Module *after, int n, Tensor **in,
                               double tol) {
  Tensor *want = run(before, n, in), *got = run(after, n, in);
  DType r = dtype_real_of(want->dtype);
  int64_t b = dtype_bytes(r), parts = (int64_t)tensor_bytes(want) / b;
  assert_int_equal(tensor_bytes(want), tensor_bytes(got));
  for (int64_t k = 0; k < parts; k++) {
    const char *wp = (char *)want->data + k * b, *gp = (char *)got->data + k * b;
    double w = elem_get_f64(r, wp), g = elem_get_f64(r, gp);
    bool same = !memcmp(wp, gp, (size_t)b);
    if (tol > 0) same |= w == g || (isnan(w) && isnan(g)) || fabs(w - g) <= tol * (1 + fabs(w));
    if (!same) fail_msg("%s: part %lld is %g, not %g", name, (long long)k, g, w);
  }
  for (int i = 0; i < n; i++) tensor_release(in[i]);
  tensor_release(want);
  tensor_release(got);
  module_free(before);
  module_free(after);
}

/* Both programs, of two arguments, give the same for small integers: all sums are exact. */
static inline void same_on_integers(const char *name, Module *before, Module *after) {
  Tensor *in[2];
  for (int i = 0; i < 2; i++) {
    const Type *t = module_main(before)->body->args[i]->type;
    in[i] = tensor_make(t->dtype, t->rank, t->dims);
    bool sign = dtype_is_float(t->dtype) || dtype_is_signed(t->dtype);
    for (int64_t k = 0; k < in[i]->count; k++)
      elem_set_f64(t->dtype, (char *)in[i]->data + k * dtype_bytes(t->dtype),
                   (double)((k * 37 + i * 11) % 19 - (sign ? 9 : 0)));
  }
  same_result(name, before, after, 2, in, 1e-30);
}

#endif
