/* Where data files come from: the folder named by WEFT_DATA, then the copies that the build
 * compiled in. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "chip/chip_priv.h"

#include "base/system.h"

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static Err *each_in_dir(const char *dir, const char *ext, Err *(*fn)(void *, const char *, Str),
                        void *arg) {
  DIR *d = opendir(dir);
  if (!d) {
    if (errno == ENOENT) return NULL;
    return err_hint(err_errno("cannot read the data folder %s", dir),
                    "WEFT_DATA must name a folder with chips/, servers/ and prices/");
  }
  VEC(char *) names = {0};
  for (struct dirent *e; (e = readdir(d));)
    if (str_ends(str_from(e->d_name), ext)) *vec_push(&names) = xasprintf("%s/%s", dir, e->d_name);
  closedir(d);
  if (names.n) qsort(names.v, (size_t)names.n, sizeof *names.v, by_name);
  Err *err = NULL;
  for (int i = 0; i < names.n; i++) {
    Buf text = {0};
    if (!err) err = file_read(names.v[i], &text);
    if (!err) err = fn(arg, names.v[i], (Str){text.p ? text.p : "", text.n});
    buf_free(&text);
    free(names.v[i]);
  }
  vec_free(&names);
  return err;
}

Err *data_each(const char *folder, const char *ext,
               Err *(*fn)(void *arg, const char *file, Str text), void *arg) {
  const char *root = env_get("WEFT_DATA");
  if (root && access(root, R_OK | X_OK))
    return err_hint(err_errno("cannot read the data folder %s", root),
                    "WEFT_DATA must name a folder with chips/, servers/ and prices/");
  if (root) {
    char *dir = xasprintf("%s/%s", root, folder);
    Err *err = each_in_dir(dir, ext, fn, arg);
    free(dir);
    if (err) return err;
  }
  size_t n = strlen(folder);
  for (int i = 0; i < n_embedded_files; i++) {
    const EmbeddedFile *f = &embedded_files[i];
    if (!strncmp(f->name, folder, n) && f->name[n] == '/' && str_ends(str_from(f->name), ext))
      TRY(fn(arg, f->name, (Str){f->text, f->n}));
  }
  return NULL;
}
