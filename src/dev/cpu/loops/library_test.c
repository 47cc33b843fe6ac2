/* What loading LLVM's library read is given back, and the library still works. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <llvm-c/Core.h>

#include "dev/cpu/loops/loops.h"

static long file_kb(void) { /* of files in memory; 0: the system does not say */
  FILE *f = fopen("/proc/self/status", "r");
  char line[256];
  long kb = 0;
  while (f && fgets(line, sizeof line, f)) sscanf(line, "RssFile: %ld", &kb);
  if (f) fclose(f);
  return kb;
}

static void test_rests(void **state) {
  (void)state;
  long before = file_kb();
  if (!before) skip();
  jit_library_rests();
  assert_true(file_kb() < before - 8192);
  LLVMContextRef c = LLVMContextCreate();
  LLVMModuleRef m = LLVMModuleCreateWithNameInContext("weft", c);
  assert_non_null(LLVMAddFunction(m, "f", LLVMFunctionType(LLVMVoidTypeInContext(c), NULL, 0, 0)));
  LLVMDisposeModule(m);
  LLVMContextDispose(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_rests)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
