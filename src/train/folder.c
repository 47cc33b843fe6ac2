/* The folder of a run: made, never written over unless that is asked for, with what its checkpoint
 * needs to be used elsewhere. */
#include "train/train_priv.h"

#include "base/system.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_RUNS = 8 }; /* in a hint */

static bool is_ours(const char *name) {
  return !strcmp(name, "checkpoint.safetensors") || !strcmp(name, "result.json") ||
         str_starts(str_from(name), "events.out.tfevents.");
}

/* Calls fn with the path of each file of a run; their number. */
static int each_of_ours(const char *folder, int (*fn)(const char *path)) {
  DIR *d = opendir(folder);
  int n = 0;
  for (struct dirent *f; d && (f = readdir(d));) {
    if (!is_ours(f->d_name)) continue;
    n++;
    char *path = xasprintf("%s/%s", folder, f->d_name);
    if (fn) fn(path);
    free(path);
  }
  if (d) closedir(d);
  return n;
}

/* The folder that a path lies in. */
static char *folder_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? xstrndup(path, (size_t)(slash - path)) : xstrdup(".");
}

/* Whether a checkpoint lies in a folder. */
static bool lies_in(const char *checkpoint, const char *folder) {
  char *dir = folder_of(checkpoint), *a = realpath(dir, NULL), *b = realpath(folder, NULL);
  bool same = a && b && !strcmp(a, b);
  free(a);
  free(b);
  free(dir);
  return same;
}

Err *runs_beside(Err *e, const char *path) {
  if (!e || e->code != ERR_NOT_FOUND) return e;
  char *folder = folder_of(path);
  struct dirent **list = NULL;
  int n = scandir(folder, &list, NULL, alphasort), found = 0;
  Buf names = {0};
  for (int i = 0; i < n; i++) {
    char *run = xasprintf("%s/%s/checkpoint.safetensors", folder, list[i]->d_name);
    if (list[i]->d_name[0] != '.' && !access(run, F_OK) && found++ < MOST_RUNS)
      buf_printf(&names, "%s%s/%s", names.n ? ", " : "", folder, list[i]->d_name);
    free(run);
    free(list[i]);
  }
  free(list);
  if (each_of_ours(folder, NULL))
    err_hint(e,
             "the run there ended before its first checkpoint: begin it again, with --overwrite");
  else if (found) err_hint(e, "runs there: %s%s", names.p, found > MOST_RUNS ? ", ..." : "");
  buf_free(&names);
  free(folder);
  return e;
}

Err *run_folder_open(const TrainOpts *o) {
  bool goes_on = o->resume && lies_in(o->resume, o->out);
  if (!goes_on && each_of_ours(o->out, NULL)) {
    if (!o->overwrite)
      return err_hint(err_new(ERR_EXISTS, "'%s' holds a run", o->out),
                      "--resume %s goes on with it, --overwrite begins anew in its place", o->out);
    each_of_ours(o->out, remove);
  }
  TRY(folder_make(o->out));
  if (o->model->whole && !o->phantom) TRY(o->model->whole->keep(o->model, o->out));
  const char *tokens = o->data->tokenizer; /* a checkpoint is of use where its vocabulary is not */
  return tokens && !o->phantom ? tokenizer_copy(tokens, o->out) : NULL;
}
