/* For tests: what a program, as text, with one or two arguments and one result, gives on the cpu device.
 * Include it after cmocka. */
#ifndef WEFT_ANSWER_TEST_H
#define WEFT_ANSWER_TEST_H

#include <math.h>

#include "dev/dev.h"
#include "interp/interp.h"
#include "ir/ir.h"
#include "stablehlo/stablehlo.h"

static inline Tensor *answer_of2(const char *text, Tensor *x, Tensor *y) {
  Module *m = NULL;
  Dev *dev = NULL;
  DevProgram *prog = NULL;
  Shards args[] = {{1, (Tensor *[]){x}}, {1, (Tensor *[]){y}}}, got = {0};
  Err *e = stablehlo_read("test.mlir", str_from(text), &m);
  if (!e) e = ir_verify(m);
  if (!e) e = dev_open("cpu", &dev);
  if (!e) e = dev_compile(dev, m, NULL, &prog);
  if (!e) e = dev->ops->run(prog, &(DevPart){.n = 1}, args, NULL, &got, NULL);
  if (e) fail_msg("%s\n%s", err_text(e), text);
  Tensor *t = tensor_retain(got.t[0]);
  shards_free(&got);
  dev_program_release(prog);
  dev_close(dev);
  module_free(m);
  return t;
}

static inline Tensor *answer_of(const char *text, Tensor *x) { return answer_of2(text, x, NULL); }

/* The same ones each time, with halves and eighths, of either sign. */
static inline Tensor *test_numbers(DType t, int rank, const int64_t *dims) {
  Tensor *x = tensor_make(t, rank, dims);
  uint64_t rng = 88172645463325252u;
  for (int64_t i = 0; i < x->count; i++) {
    rng ^= rng << 13, rng ^= rng >> 7, rng ^= rng << 17;
    double v = (double)(int64_t)(rng % 201) / 8 - 12;
    if (dtype_is_float(t)) elem_set_f64(t, (char *)x->data + i * dtype_bytes(t), v);
    else elem_set_i64(t, (char *)x->data + i * dtype_bytes(t), t == DT_I1 ? v > 0 : (int64_t)v);
  }
  return x;
}

/* What the program gives for test_numbers, beside the interpreter: the same bits, or to tol * max(1, |value|). */
static inline void check_answer(DType t, int rank, const int64_t *dims, const char *text,
                                double tol) {
  Tensor *x = test_numbers(t, rank, dims), *got = answer_of(text, x);
  Module *m = NULL;
  Shards arg = {1, (Tensor *[]){x}}, want = {0};
  Err *e = stablehlo_read("test.mlir", str_from(text), &m);
  if (!e) e = interp_run(m, STR("main"), NULL, &arg, 1, &want, 1);
  if (e) fail_msg("%s\n%s", err_text(e), text);
  DType o = got->dtype;
  for (int64_t i = 0; i < got->count; i++) {
    const char *a = (char *)got->data + i * dtype_bytes(o),
               *b = (char *)want.t[0]->data + i * dtype_bytes(o);
    if (!memcmp(a, b, (size_t)dtype_bytes(o))) continue;
    double u = dtype_is_float(o) ? elem_get_f64(o, a) : (double)elem_get_i64(o, a),
           v = dtype_is_float(o) ? elem_get_f64(o, b) : (double)elem_get_i64(o, b);
    if (!(fabs(u - v) <= tol * fmax(1, fabs(v))))
      fail_msg("element %lld is %g, not %g\n%s", (long long)i, u, v, text);
  }
  shards_free(&want);
  tensor_release(got);
  tensor_release(x);
  module_free(m);
}

/* What the program gives, as check_answer has it to the bit, and from the interpreter again as a pass has
 * made it, which has operations of weft's own. */
static inline void check_made(DType t, int rank, const int64_t *dims, const Module *before,
                              const Module *made) {
  Buf text = {0};
  stablehlo_write_text(&text, before, NULL);
  check_answer(t, rank, dims, (const char *)text.p, 0);
  Tensor *x = test_numbers(t, rank, dims);
  Shards arg = {1, &x}, want = {0}, got = {0};
  Err *e = interp_run(before, STR("main"), NULL, &arg, 1, &want, 1);
  if (!e) e = interp_run(made, STR("main"), NULL, &arg, 1, &got, 1);
  if (e) fail_msg("%s", err_text(e));
  assert_memory_equal(want.t[0]->data, got.t[0]->data, tensor_bytes(want.t[0]));
  shards_free(&want);
  shards_free(&got);
  tensor_release(x);
  buf_free(&text);
}

#endif
