/* errno as codes; folders. */
#include "base/system.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static ErrCode code_of(int number) {
  switch (number) {
  case ENOENT:
  case ENXIO:
  case ENODEV: return ERR_NOT_FOUND;
  case EEXIST: return ERR_EXISTS;
  case EACCES:
  case EPERM: return ERR_PERMISSION;
  case ENOSPC:
  case EDQUOT:
  case EMFILE:
  case ENFILE:
  case ENOMEM: return ERR_EXHAUSTED;
  case EISDIR:
  case ENOTDIR:
  case ENOTEMPTY:
  case EROFS: return ERR_PRECONDITION;
  case EAGAIN:
  case EBUSY:
  case EADDRINUSE:
  case ECONNREFUSED: return ERR_UNAVAILABLE;
  case EFBIG: return ERR_RANGE;
  case EINVAL:
  case ENAMETOOLONG:
  case ELOOP: return ERR_INVALID;
  default: return ERR_UNKNOWN;
  }
}

Err *err_errno(const char *fmt, ...) {
  int number = errno;
  va_list ap;
  va_start(ap, fmt);
  Err *e = err_newv(code_of(number), fmt, ap);
  va_end(ap);
  char *msg = xasprintf("%s: %s", e->msg, strerror(number));
  free(e->msg);
  e->msg = msg;
  return e;
}

void buf_shell(Buf *b, const char *word) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "_-+=./:,@%";
  if (*word && !word[strspn(word, plain)]) {
    buf_cstr(b, word);
    return;
  }
  buf_byte(b, '\'');
  for (; *word; word++)
    if (*word == '\'') buf_cstr(b, "'\\''");
    else buf_byte(b, *word);
  buf_byte(b, '\'');
}

static bool is_folder(const char *path) {
  struct stat s;
  return !stat(path, &s) && S_ISDIR(s.st_mode);
}

/* Cuts `path` after its first `n` bytes while the folder is made. */
static bool make_part(char *path, size_t n) {
  char c = path[n];
  path[n] = 0;
  bool made = !mkdir(path, 0777);
  int why = errno;
  if (!made && is_folder(path)) made = true;
  path[n] = c;
  errno = why;
  return made;
}

Err *folder_make(const char *path) {
  char *p = xstrdup(path);
  bool ok = true;
  for (size_t n = 1; ok && *p; n++) {
    if (p[n] && p[n] != '/') continue;
    ok = make_part(p, n);
    if (!p[n]) break;
    if (!ok && errno == EEXIST) errno = ENOTDIR;
  }
  Err *e = ok && *p ? NULL : err_errno("cannot make the folder '%s'", path);
  free(p);
  return e;
}

Err *file_may_write(const char *path) {
  if (!strcmp(path, "-")) return NULL;
  const char *slash = strrchr(path, '/');
  char *folder = slash ? xstrndup(path, (size_t)(slash - path) + 1) : xstrdup(".");
  bool ok = !access(folder, W_OK | X_OK);
  if (ok && is_folder(path)) ok = false, errno = EISDIR;
  Err *e = ok ? NULL : err_errno("cannot write '%s'", path);
  free(folder);
  return e;
}
