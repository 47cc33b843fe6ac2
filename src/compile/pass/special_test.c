/* erfc and erf's inverse as JAX writes them out are found, and nothing that differs from them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "compile/pass/pass.h"
#include "stablehlo/stablehlo.h"

#define PROGRAMS WEFT_SOURCE_DIR "/tests/golden/corpus/ew_"

static int count(const Region *r, OpKind kind) {
  int n = 0;
  for (const Op *op = r->first; op; op = op->next) n += op->kind == kind;
  return n;
}

/* The program with a word of it changed (NULL: as it is): how many are found? */
static int found(OpKind kind, const char *word, const char *by) {
  const char *program =
      kind == OP_CHLO_ERFC ? PROGRAMS "erfc_f64_f32_f16.mlir" : PROGRAMS "erf_inv_f64_f32_f16.mlir";
  Buf file = {0}, text = {0};
  Module *m = NULL;
  Err *e = file_read(program, &file);
  if (e) fail_msg("%s", err_text(e));
  buf_add(&file, "", 1);
  const char *at = word ? strstr(file.p, word) : file.p;
  assert_non_null(at);
  buf_add(&text, file.p, (size_t)(at - file.p));
  buf_cstr(&text, word ? by : "");
  buf_cstr(&text, at + (word ? strlen(word) : 0));
  e = stablehlo_read("case.mlir", (Str){text.p, text.n}, &m);
  if (!e) e = pass_inline(m);
  if (!e) e = pass_special(m);
  if (e) fail_msg("%s", err_text(e));
  int n = count(module_main(m)->body, kind);
  module_free(m);
  buf_free(&text);
  buf_free(&file);
  return n;
}

static void is_found(void **state) {
  (void)state;
  assert_int_equal(found(OP_CHLO_ERFC, NULL, NULL), 2); /* of f32, and of f16 by way of it */
  assert_int_equal(found(OP_CHLO_ERF_INV, NULL, NULL), 2);
}

static void others_are_not(void **state) {
  (void)state;
  assert_int_equal(found(OP_CHLO_ERFC, "dense<3.404880e-01>", "dense<3.405880e-01>"), 0);
  assert_int_equal(found(OP_CHLO_ERFC, "dense<1.12837911>", "dense<1.12937911>"), 0);
  assert_int_equal(found(OP_CHLO_ERF_INV, "dense<3.000000e+00>", "dense<3.001000e+00>"), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(is_found), cmocka_unit_test(others_are_not)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
