/* The run folder: the program and the data copied into it. */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/system.h"
#include "launch/launch_priv.h"

char *run_path(const Run *r, const char *name) { return xasprintf("%s/%s", r->dir, name); }

bool run_number(const Run *r, const char *name, double *out) {
  char *path = run_path(r, name);
  FILE *f = fopen(path, "r");
  bool good = f && fscanf(f, "%lf", out) == 1;
  if (f) fclose(f);
  free(path);
  return good;
}

static Err *failed(const char *what, const char *path) {
  return err_errno("cannot %s %s", what, path);
}

static Err *copy_file(const char *from, const char *to, mode_t mode) {
  int in = open(from, O_RDONLY | O_CLOEXEC);
  if (in < 0) return failed("read", from);
  int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode & 0777);
  Err *e = out < 0 ? failed("write", to) : NULL;
  static char chunk[1 << 18];
  for (ssize_t n; !e && (n = read(in, chunk, sizeof chunk)) != 0;)
    if (n < 0) e = failed("read", from);
    else
      for (ssize_t at = 0, w; !e && at < n; at += w)
        if ((w = write(out, chunk + at, (size_t)(n - at))) < 0) e = failed("write", to), w = 0;
  close(in);
  if (out >= 0 && close(out) && !e) e = failed("write", to);
  return e;
}

static Err *copy_link(const char *from, const char *to) {
  char target[4096];
  ssize_t n = readlink(from, target, sizeof target - 1);
  if (n < 0) return failed("read", from);
  target[n] = 0;
  return symlink(target, to) && errno != EEXIST ? failed("make", to) : NULL;
}

static Err *copy_entry(const FTSENT *f, const char *to) {
  switch (f->fts_info) {
  case FTS_D: return folder_make(to);
  case FTS_F: return copy_file(f->fts_path, to, f->fts_statp->st_mode);
  case FTS_SL:
  case FTS_SLNONE: return copy_link(f->fts_path, to);
  case FTS_DNR:
  case FTS_ERR:
  case FTS_NS: return errno = f->fts_errno, failed("read", f->fts_path);
  default: return NULL; /* a folder's end, devices */
  }
}

/* Not what other runs left, nor a repository's own files. */
static bool left_out(const FTSENT *f, const char *without) {
  if (f->fts_info != FTS_D || f->fts_level == 0) return false;
  struct stat s;
  bool own =
      !stat(without, &s) && s.st_dev == f->fts_statp->st_dev && s.st_ino == f->fts_statp->st_ino;
  return own || !strcmp(f->fts_name, ".git") || !strcmp(f->fts_name, "__pycache__");
}

static Err *copy_tree(const char *from, const char *to, const char *without) {
  char *const roots[] = {(char *)from, NULL};
  struct stat s;
  if (stat(from, &s)) return failed("stage", from);
  FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_COMFOLLOW, NULL);
  if (!walk) return failed("stage", from);
  size_t skip = strlen(from);
  Err *e = NULL;
  for (FTSENT *f; !e && (f = fts_read(walk));) {
    if (left_out(f, without)) {
      fts_set(walk, f, FTS_SKIP);
      continue;
    }
    char *target = xasprintf("%s%s", to, f->fts_path + skip);
    e = copy_entry(f, target);
    free(target);
  }
  fts_close(walk);
  return e;
}

/* runs/NAME-DATE, with a number where runs start within one second; a new string of the folder made. */
static Err *make_dated_folder(const char *name, char **made) {
  TRY(folder_make("runs"));
  char date[32];
  time_t now = (time_t)wall_s();
  strftime(date, sizeof date, "%Y%m%d-%H%M%S", localtime(&now));
  char *dir = xasprintf("runs/%s-%s", name, date);
  for (int next = 2; mkdir(dir, 0777); next++) {
    Err *e = errno == EEXIST ? NULL : failed("make the run folder", dir);
    free(dir);
    if (e) return e;
    dir = xasprintf("runs/%s-%s-%d", name, date, next);
  }
  *made = dir;
  return NULL;
}

static Err *make_given_folder(const char *name) {
  if (!mkdir(name, 0777)) return NULL;
  Err *e = failed("make the run folder", name);
  if (errno == EEXIST) err_hint(e, "each run has a folder of its own: another --dir, or none");
  return e;
}

static Err *make_run_folder(Run *r) {
  const char *given = r->job->dir;
  char *dir = NULL;
  TRY(given ? make_given_folder(given) : make_dated_folder(r->row.name, &dir));
  Err *e =
      (r->dir = realpath(given ? given : dir, NULL)) ? NULL : failed("find", given ? given : dir);
  free(dir);
  return e;
}

static Err *stage_into(Run *r, const char *from, const char *name) {
  char *to = run_path(r, name), *parent = xstrdup(r->dir), *real = realpath(from, NULL);
  /* runs of the same place lie side by side: none of them is copied into another */
  char *slash = strrchr(parent, '/');
  if (slash && real && strcmp(parent, real)) *slash = 0;
  if (real && !strcmp(parent, real)) free(parent), parent = xstrdup(r->dir);
  Err *e = real ? copy_tree(real, to, parent) : failed("stage", from);
  free(to), free(parent), free(real);
  return e;
}

Err *stage(Run *r) {
  TRY(make_run_folder(r));
  static const char *const folders[] = {"logs", "ranks", "out"};
  for (int i = 0; i < COUNT_OF(folders); i++) {
    char *path = run_path(r, folders[i]);
    Err *e = folder_make(path);
    free(path);
    if (e) return e;
  }
  const LaunchJob *j = r->job;
  if (j->work) TRY(stage_into(r, j->work, "work"));
  if (!j->data) return NULL;
  if (!(r->data = realpath(j->data, NULL))) return failed("stage", j->data);
  char *folder = run_path(r, "data"), *to = xasprintf("data/%s", base_name(r->data));
  Err *e = folder_make(folder);
  if (!e) e = stage_into(r, r->data, to);
  free(folder), free(to);
  return e;
}
