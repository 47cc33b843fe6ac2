/* Fuzzer of the bytecode reader and writer: any bytes are read or refused; what is read is
 * verified, written, read again and written again, and the two writings must agree byte for byte.
 *   build  clang, -DWEFT_FUZZ=ON, -DWEFT_SANITIZE=address,undefined
 *   seeds  tests/golden/corpus, *.mlirbc */
#include <stdio.h>
#include <stdlib.h>

#include "stablehlo/stablehlo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void stop(Err *e, const char *what) {
  fprintf(stderr, "%s: ", what);
  err_report(e);
  abort();
}

static bool write_one(const Module *m, const char *version, Buf *out) {
  Err *e = stablehlo_write_bytecode(out, m, version);
  if (!e) return true;
  if (e->code == ERR_INTERNAL) stop(e, "writing");
  err_free(e); /* nothing in VHLO for it */
  return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Module *m, *again;
  Err *e = stablehlo_read_bytecode("fuzz", (Str){(const char *)data, size}, &m);
  if (e) {
    if (!e->place) stop(e, "an error without a place");
    err_free(e);
    return 0;
  }
  err_free(ir_verify(m));
  Buf one = {0}, two = {0};
  if (write_one(m, NULL, &one)) {
    e = stablehlo_read_bytecode("written", (Str){one.p, one.n}, &again);
    if (e) stop(e, "reading what was written");
    if (!write_one(again, NULL, &two) || one.n != two.n || memcmp(one.p, two.p, one.n) != 0)
      stop(stablehlo_compare(m, again), "the second writing differs");
    module_free(again);
  }
  buf_free(&one);
  buf_free(&two);
  module_free(m);
  return 0;
}
