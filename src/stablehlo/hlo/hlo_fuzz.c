/* Fuzzes the readers of HLO: whatever bytes come, as text or as a proto, the answer is a module or an error; what
 * was read can be verified and written.   cmake -DWEFT_FUZZ=ON -DWEFT_SANITIZE=address,undefined; hlo_fuzz CORPUS */
#include <stdlib.h>

#include "stablehlo/stablehlo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Module *m = NULL;
  Err *e = stablehlo_read_hlo("fuzz.hlo", (Str){(const char *)data, size}, &m);
  if (!e) {
    e = ir_verify(m);
    Buf text = {0};
    stablehlo_write_text(&text, m, NULL);
    buf_free(&text);
  }
  err_free(e);
  module_free(m);
  return 0;
}
