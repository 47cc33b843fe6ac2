/* Files and the clock. */
#include "base/system.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

Err *file_read(const char *path, Buf *out) {
  FILE *f = strcmp(path, "-") ? fopen(path, "rb") : stdin;
  if (!f) return err_errno("cannot open %s", path);
  Buf b = {0};
  char chunk[65536];
  size_t n;
  while ((n = fread(chunk, 1, sizeof chunk, f)) > 0) buf_add(&b, chunk, n);
  bool bad = ferror(f);
  int why = errno;
  if (f != stdin) fclose(f);
  if (bad) {
    buf_free(&b);
    errno = why;
    return err_errno("cannot read %s", path);
  }
  if (!b.p) buf_add(&b, "", 0);
  *out = b;
  return NULL;
}

Err *file_write(const char *path, const void *p, size_t n) {
  char *tmp = xasprintf("%s.tmp.%d", path, (int)getpid());
  FILE *f = fopen(tmp, "wb");
  bool ok = f && (n == 0 || fwrite(p, 1, n, f) == n);
  if (f) ok = (fclose(f) == 0) && ok;
  ok = ok && rename(tmp, path) == 0;
  Err *e = ok ? NULL : err_errno("cannot write %s", path);
  if (!ok) remove(tmp);
  free(tmp);
  return e;
}

double time_now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
