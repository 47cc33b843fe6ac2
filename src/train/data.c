/* Data sets by name; made-up data for measuring. */
#include "train/data_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const data_specs =
    "  fashion-mnist       Debian package dataset-fashion-mnist (60,000 + 10,000 of 28x28)\n"
    "  mnist               the same four files from the original set\n"
    "  cifar10[:PATH]      directory of data_batch_*.bin, or a cifar10-jpeg.rec[.xz] file\n"
    "  idx:DIR             any four idx files named as MNIST's, plain or gzip\n"
    "  folder:DIR          PNG and JPEG in DIR/train/CLASS and DIR/test/CLASS; or in DIR/CLASS, a "
    "tenth\n"
    "                      held out. Resized to the model's size or --image-size N\n"
    "  wds:FILE.tar        webdataset: KEY.png or KEY.jpg, KEY.cls; a tenth held out\n"
    "  npz:FILE            x_train, y_train, x_test, y_test, as Keras' mnist.npz; or arrays of any "
    "names\n"
    "                      and shapes, an example in each row\n"
    "  csv:FILE[,TEST]     numbers, and a class in the column label, class, target or y, or the "
    "last;\n"
    "                      each column standardised; without TEST one row of each ten is held out\n"
    "  tokens:FILE         16-bit tokens, as nanoGPT's train.bin; last tenth for testing\n"
    "  text:FILE           bytes of a text file, or tokens (--tokenizer); last tenth for testing\n"
    "  synthetic           random numbers of the model's shape: speed without files\n";

/* What a path without a kind holds, by what it ends in; NULL: it is no path. */
static const char *kind_of_path(const char *path) {
  static const char *const ends[][2] = {{".tar", "wds"},    {".npz", "npz"},  {".csv", "csv"},
                                        {".bin", "tokens"}, {".txt", "text"}, {".md", "text"}};
  struct stat st;
  bool there = !stat(path, &st);
  if (there && S_ISDIR(st.st_mode)) {
    char *idx = xasprintf("%s/train-labels-idx1-ubyte", path), *gz = xasprintf("%s.gz", idx);
    bool is_idx = !access(idx, F_OK) || !access(gz, F_OK);
    free(idx);
    free(gz);
    return is_idx ? "idx" : "folder";
  }
  for (size_t i = 0; i < COUNT_OF(ends); i++)
    if (str_ends(str_from(path), ends[i][0])) return ends[i][1];
  return there ? "text" : NULL;
}

static Err *no_such_data(const char *spec, Str kind) {
  Err *e = err_new(ERR_NOT_FOUND, "there is no data set '%s'", spec);
  const char *held = kind_of_path(spec);
  if (held) return err_hint(e, "did you mean %s:%s?", held, spec);
  char name[32];
  Buf best = {0};
  Nearest near = {.want = kind};
  for (const char *p = data_specs; *p; p = strchr(p, '\n') + 1) { /* each line that names one */
    size_t n = strcspn(p + 2, " [:");
    if (!n || n >= sizeof name || strncmp(p, "  ", 2)) continue;
    snprintf(name, n + 1, "%s", p + 2);
    nearest_see(&near, name);
    if (near.best != name) continue;
    best.n = 0;
    buf_cstr(&best, name);
    near.best = best.p;
  }
  if (best.n) err_hint(e, "did you mean %s?", best.p);
  else err_hint(e, "data sets:\n%s", data_specs);
  buf_free(&best);
  return e;
}

static Err *open_kind(const char *spec, Str kind, const char *path, const DataOpts *o, Data **out) {
  if (str_is(kind, "fashion-mnist") || str_is(kind, "mnist") || str_is(kind, "idx")) {
    char *name = xstrndup(kind.p, kind.n);
    Err *e = data_open_idx(name, path, out);
    free(name);
    return e;
  }
  if (str_is(kind, "cifar10") || str_is(kind, "cifar"))
    return data_open_cifar(path, o->augment, out);
  bool folder = str_is(kind, "folder"), tar = str_is(kind, "wds");
  if ((folder || tar) && path) return data_open_files(path, tar, o, out);
  if (str_is(kind, "npz") && path) return data_open_npz(path, o->whole, out);
  if (str_is(kind, "csv") && path) return data_open_csv(path, o, out);
  if (str_is(kind, "text") || str_is(kind, "tokens")) {
    if (path && *path) return data_open_text(path, str_is(kind, "tokens"), o, out);
    return err_hint(err_new(ERR_NOT_FOUND, "which text? it is learnt from a file"),
                    "--data text:FILE; or --data synthetic for speed alone");
  }
  if (str_is(kind, "synthetic")) return data_open_synthetic(o, out);
  return no_such_data(spec, kind);
}

/* Of one path, or of two with a comma between; NULL: they are no files. */
static char *full_path(const char *path) {
  const char *comma = strchr(path, ',');
  char *full = realpath(path, NULL);
  if (full || !comma) return full;
  char *first = xstrndup(path, (size_t)(comma - path));
  char *a = realpath(first, NULL), *b = realpath(comma + 1, NULL);
  if (a && b) full = xasprintf("%s,%s", a, b);
  free(first);
  free(a);
  free(b);
  return full;
}

bool data_held_out(int64_t index) {
  uint64_t ten = (uint64_t)index / 10, key = ten * 0x9E3779B97F4A7C15ull;
  key = (key ^ key >> 32) * 0xD6E8FEB86659FD93ull;
  return (uint64_t)index % 10 == (key >> 32) % 10;
}

int data_class_of(Buf *labels, const char *name, bool grow) {
  int k = 0;
  for (const char *p = labels->p; p && *p; k++) {
    size_t n = strcspn(p, "\n");
    if (n == strlen(name) && !memcmp(p, name, n)) return k;
    p += n + (p[n] == '\n');
  }
  if (!grow) return -1;
  if (labels->n) buf_byte(labels, '\n');
  buf_cstr(labels, name);
  return k;
}

Err *data_open(const char *spec, const DataOpts *opts, Data **out) {
  static const DataOpts none;
  const DataOpts *o = opts ? opts : &none;
  const char *colon = strchr(spec, ':'), *path = colon ? colon + 1 : o->dir;
  Str kind = {spec, colon ? (size_t)(colon - spec) : strlen(spec)};
  TRY(open_kind(spec, kind, path, o, out));
  Data *d = *out;
  if (d->fields[0].rank == 3 && d->fields[0].type == DT_U8 && d->fields[1].rank == 0) {
    d->reads |= READ_WARP;
    d->shift = o->shift;
    d->rotate = o->rotate;
  }
  char *full = path ? full_path(path) : NULL;
  d->spec = full ? xasprintf("%.*s:%s", STR_ARG(kind), full) : xstrdup(spec);
  free(full);
  return NULL;
}

/* ---- made-up data ---------------------------------------------------------------------------- */

static Err *get_synthetic(const Data *d, bool test, int64_t index, uint64_t rand,
                          void *const *dst) {
  (void)test;
  uint64_t key = rand ^ (uint64_t)index * 0x9E3779B97F4A7C15ull;
  for (int f = 0; f < d->n_fields; f++) {
    int64_t n = 1;
    for (int i = 0; i < d->fields[f].rank; i++) n *= d->fields[f].dims[i];
    bool bytes = d->fields[f].type == DT_U8;
    for (int64_t i = 0; i < n; i += bytes ? 4 : 1) { /* bytes come four at a time */
      key = key * 6364136223846793005ull + 1442695040888963407ull;
      uint32_t high = (uint32_t)(key >> 32);
      if (bytes) memcpy((uint8_t *)dst[f] + i, &high, (size_t)MIN(4, n - i));
      else if (d->fields[f].type == DT_F32) ((float *)dst[f])[i] = high % 7 == 0; /* weights */
      else ((int32_t *)dst[f])[i] = (int32_t)(high % (uint64_t)d->classes);
    }
  }
  return NULL;
}

/* Numbers that are normal; ids of any size, which the model takes modulo its rows. */
static Err *get_clicks(const Data *d, bool test, int64_t index, uint64_t rand, void *const *dst) {
  (void)test, (void)rand;
  char name[32];
  snprintf(name, sizeof name, "%lld", (long long)index);
  init_fill(INIT(INIT_NORMAL, 1), name, 1, DT_F32, 1, d->fields[0].dims, dst[0]);
  for (int64_t i = 0; i < d->fields[1].dims[0]; i++)
    ((int32_t *)dst[1])[i] = (int32_t)(random_word((uint64_t)index, 1, (uint64_t)i) >> 33);
  *(int32_t *)dst[2] = *(float *)dst[0] > 0;
  return NULL;
}

Err *data_open_synthetic(const DataOpts *o, Data **out) {
  Data *d = xcalloc(1, sizeof *d);
  d->name = xstrdup("synthetic");
  d->n_train = o->shape[0] == 32 ? 50000 : o->shape[0] == 28 ? 60000 : 51200; /* CIFAR-10, MNIST */
  d->n_test = 512;
  d->classes = o->classes ? o->classes : 10;
  d->get = get_synthetic;
  for (int c = 0; c < DATA_CHANNELS; c++) d->mean[c] = 0.5f, d->std[c] = 0.29f;
  if (o->length) {
    d->n_fields = o->masked ? 3 : 2;
    d->fields[0] = (Field){"tokens", DT_I32, 1, {o->length}};
    d->fields[1] = (Field){"targets", DT_I32, 1, {o->length}};
    d->fields[2] = (Field){"weights", DT_F32, 1, {o->length}};
  } else if (o->task == TASK_CLICKS) {
    d->n_fields = 3;
    d->fields[0] = (Field){"dense", DT_F32, 1, {o->shape[0]}};
    d->fields[1] = (Field){"ids", DT_I32, 1, {o->shape[1]}};
    d->fields[2] = (Field){"labels", DT_I32, 0, {0}};
    d->labels_at = 2;
    d->get = get_clicks;
  } else {
    d->n_fields = 2;
    d->fields[0] = (Field){"images", DT_U8, 3, {o->shape[0], o->shape[1], o->shape[2]}};
    d->fields[1] = (Field){"labels", DT_I32, 0, {0}};
    if (o->task == TASK_PIXELS)
      d->fields[1] = (Field){"labels", DT_I32, 2, {o->shape[0], o->shape[1]}};
  }
  *out = d;
  return NULL;
}
