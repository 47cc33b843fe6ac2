/* For tests: what must not fail. Include <cmocka.h> before. */
#ifndef WEFT_BASE_ERR_TEST_H
#define WEFT_BASE_ERR_TEST_H

#include "base/base.h"

/* Fails the test with the error's text, after `what` it happened to. */
static inline void ok_with(Err *e, const char *what) {
  if (e) fail_msg("%s: %s", what, err_text(e));
}
static inline void ok(Err *e) {
  if (e) fail_msg("%s", err_text(e));
}

#endif
