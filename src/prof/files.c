/* The folder that TensorBoard looks into, and finding recordings in it. */
#include "prof/prof_priv.h"

#include "base/system.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

static Err *write_gz(const char *path, const Buf *b) {
  gzFile f = gzopen(path, "wb6");
  bool ok = f && gzwrite(f, b->p, (unsigned)b->n) == (int)b->n;
  if (f) ok = gzclose(f) == Z_OK && ok;
  return ok ? NULL : err_errno("cannot write '%s'", path);
}

Err *prof_write(Prof *p, const char *dir, char **out_folder) {
  char run[32], host[64] = "host";
  time_t now = time(NULL);
  struct tm t;
  localtime_r(&now, &t);
  strftime(run, sizeof run, "%Y_%m_%d_%H_%M_%S", &t);
  gethostname(host, sizeof host - 1);
  char *folder = xasprintf("%s/plugins/profile/%s", dir, run);
  Err *e = folder_make(folder);
  Buf b = {0};
  if (!e) {
    char *path = xasprintf("%s/%s.xplane.pb", folder, host);
    prof_xspace(p, false, &b);
    e = file_write(path, b.p, b.n);
    free(path);
    buf_free(&b);
  }
  if (!e) {
    char *path = xasprintf("%s/%s.trace.json.gz", folder, host);
    prof_chrome(p, &b);
    e = write_gz(path, &b);
    free(path);
    buf_free(&b);
  }
  if (e) free(folder);
  else *out_folder = folder;
  return e;
}

/* ---- finding --------------------------------------------------------------------------------- */

static _Thread_local struct {
  char *path;
  struct timespec when;
} newest;

static int look(const char *path, const struct stat *st, int type, struct FTW *at) {
  (void)at;
  if (type != FTW_F || !str_ends(str_from(path), ".xplane.pb")) return 0;
  struct timespec t = st->st_mtim, n = newest.when;
  if (newest.path && (t.tv_sec < n.tv_sec || (t.tv_sec == n.tv_sec && t.tv_nsec <= n.tv_nsec)))
    return 0;
  free(newest.path);
  newest.path = xstrdup(path);
  newest.when = t;
  return 0;
}

Err *prof_find(const char *path, char **out) {
  struct stat st;
  if (stat(path, &st)) return err_errno("cannot open %s", path);
  if (!S_ISDIR(st.st_mode)) {
    *out = xstrdup(path);
    return NULL;
  }
  newest.path = NULL;
  nftw(path, look, 16, FTW_PHYS);
  if (!newest.path)
    return err_hint(err_new(ERR_NOT_FOUND, "no *.xplane.pb under %s", path),
                    "jax.profiler.trace(DIR) and weft profile --out DIR write one");
  *out = newest.path;
  return NULL;
}
