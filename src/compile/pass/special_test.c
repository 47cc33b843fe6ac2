/* erfc as JAX writes it out is found, and nothing that differs from it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "compile/pass/pass.h"
#include "stablehlo/stablehlo.h"

#define PROGRAM WEFT_SOURCE_DIR "/tests/golden/corpus/ew_erfc_f64_f32_f16.mlir"

static int erfcs(const Region *r) {
  int n = 0;
  for (const Op *op = r->first; op; op = op->next) n += op->kind == OP_CHLO_ERFC;
  return n;
}

/* The program with a word of it changed (NULL: as it is): how many are found? */
static int found(const char *word, const char *by) {
  Buf file = {0}, text = {0};
  Module *m = NULL;
  Err *e = file_read(PROGRAM, &file);
  if (e) fail_msg("%s", err_text(e));
  buf_add(&file, "", 1);
  const char *at = word ? strstr(file.p, word) : file.p;
  assert_non_null(at);
  buf_add(&text, file.p, (size_t)(at - file.p));
  buf_cstr(&text, word ? by : "");
  buf_cstr(&text, at + (word ? strlen(word) : 0));
  e = stablehlo_read("erfc.mlir", (Str){text.p, text.n}, &m);
  if (!e) e = pass_inline(m);
  if (!e) e = pass_special(m);
  if (e) fail_msg("%s", err_text(e));
  int n = erfcs(module_main(m)->body);
  module_free(m);
  buf_free(&text);
  buf_free(&file);
  return n;
}

static void is_found(void **state) {
  (void)state;
  assert_int_equal(found(NULL, NULL), 2); /* of f32, and of f16 by way of it */
}

static void others_are_not(void **state) {
  (void)state;
  assert_int_equal(found("dense<3.404880e-01>", "dense<3.405880e-01>"), 0);
  assert_int_equal(found("dense<1.12837911>", "dense<1.12937911>"), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(is_found), cmocka_unit_test(others_are_not)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
