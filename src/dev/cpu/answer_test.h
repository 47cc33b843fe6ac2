/* For tests: what a program, as text, with one or two arguments and one result, gives on the cpu device.
 * Include it after cmocka. */
#ifndef WEFT_ANSWER_TEST_H
#define WEFT_ANSWER_TEST_H

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
  if (!e) e = dev->ops->run(prog, args, NULL, &got, NULL);
  if (e) fail_msg("%s\n%s", err_text(e), text);
  Tensor *t = tensor_retain(got.t[0]);
  shards_free(&got);
  dev_program_release(prog);
  dev_close(dev);
  module_free(m);
  return t;
}

static inline Tensor *answer_of(const char *text, Tensor *x) { return answer_of2(text, x, NULL); }

#endif
