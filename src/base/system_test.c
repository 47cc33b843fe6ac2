/* errno as codes, folders, words for a shell. */
#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/system.h"
#include <cmocka.h>

static void is(Err *e, ErrCode code, const char *words) {
  assert_non_null(e);
  assert_int_equal(e->code, code);
  assert_non_null(strstr(e->msg, words));
  err_free(e);
}

static void codes(void **state) {
  (void)state;
  static const struct {
    int number;
    ErrCode code;
  } all[] = {{ENOENT, ERR_NOT_FOUND},      {EEXIST, ERR_EXISTS},        {EACCES, ERR_PERMISSION},
             {ENOSPC, ERR_EXHAUSTED},      {ENOTDIR, ERR_PRECONDITION}, {EINVAL, ERR_INVALID},
             {EADDRINUSE, ERR_UNAVAILABLE}};
  for (int i = 0; i < COUNT_OF(all); i++) {
    errno = all[i].number;
    is(err_errno("opening %d", i), all[i].code, strerror(all[i].number));
  }
}

static int gone(const char *path, const struct stat *s, int type, struct FTW *at) {
  (void)s, (void)type, (void)at;
  return remove(path);
}

static void folders(void **state) {
  (void)state;
  char root[] = "/tmp/weft_system_XXXXXX";
  assert_non_null(mkdtemp(root));
  char *deep = xasprintf("%s/a/b/c", root), *file = xasprintf("%s/f", root);
  assert_null(folder_make(deep));
  assert_null(folder_make(deep)); /* it is there */
  assert_int_equal(access(deep, W_OK), 0);
  assert_null(file_write(file, "x", 1));
  is(folder_make(file), ERR_EXISTS, "File exists");
  char *below = xasprintf("%s/g", file), *nowhere = xasprintf("%s/no/such", root);
  is(folder_make(below), ERR_PRECONDITION, "Not a directory");
  assert_null(file_may_write(file));
  is(file_may_write(nowhere), ERR_NOT_FOUND, "No such file");
  is(file_may_write(deep), ERR_PRECONDITION, "directory");
  assert_null(file_may_write("-"));
  nftw(root, gone, 8, FTW_DEPTH | FTW_PHYS);
  free(below), free(nowhere), free(deep), free(file);
}

/* Truth: what sh makes of it. */
static void shell(void **state) {
  (void)state;
  static const char *const words[] = {"plain", "", "two words", "it's", "$HOME", "a;b", "--x=1,2"};
  for (int i = 0; i < COUNT_OF(words); i++) {
    Buf b = {0};
    buf_cstr(&b, "printf %s ");
    buf_shell(&b, words[i]);
    FILE *p = popen(b.p, "r");
    char got[64] = "";
    assert_non_null(p);
    size_t n = fread(got, 1, sizeof got - 1, p);
    pclose(p);
    got[n] = 0;
    assert_string_equal(got, words[i]);
    buf_free(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(codes), cmocka_unit_test(folders),
                                     cmocka_unit_test(shell)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
