/* Any bytes as an XSpace: an Err or a recording that can be summed up, never a crash. */
#include "prof/prof.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Prof *p;
  Err *e = prof_read_xspace((Str){(const char *)data, size}, &p);
  if (!e) {
    ProfSummary *s;
    e = prof_summary(p, 0, &s);
    Buf b = {0};
    if (!e) prof_print(p, s, 10, &b);
    buf_free(&b);
    prof_free(p);
  }
  err_free(e);
  return 0;
}
