/* MNIST's idx files (bytes 0 0 8 ndim, big-endian sizes, bytes), plain or gzip; zlib reads both. */
#include "train/data_priv.h"

#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

static bool read_all(gzFile f, void *p, size_t n) {
  for (char *at = p; n;) {
    unsigned part = (unsigned)MIN(n, (size_t)1 << 30);
    int got = gzread(f, at, part);
    if (got <= 0) return false;
    at += got;
    n -= (size_t)got;
  }
  return true;
}

Err *idx_read(const char *path, int *rank, int64_t dims[4], uint8_t **out) {
  gzFile f = gzopen(path, "rb");
  if (!f) return err_new(ERR_NOT_FOUND, "cannot open '%s'", path);
  uint8_t head[4], word[4], *data = NULL;
  Err *e = NULL;
  int64_t count = 1;
  if (!read_all(f, head, 4) || head[0] || head[1] || head[2] != 8 || head[3] < 1 || head[3] > 4) {
    e = err_new(ERR_DATA_LOSS, "'%s' is not an idx file of bytes", path);
    goto out;
  }
  for (int i = 0; i < head[3]; i++) {
    if (!read_all(f, word, 4)) {
      e = err_new(ERR_DATA_LOSS, "'%s' ends inside its header", path);
      goto out;
    }
    dims[i] = (int64_t)((uint32_t)word[0] << 24 | (uint32_t)word[1] << 16 | (uint32_t)word[2] << 8 |
                        word[3]);
    if (mul_overflows(count, dims[i], &count) || count > ((int64_t)1 << 36)) {
      e = err_new(ERR_DATA_LOSS, "'%s' claims an impossible size", path);
      goto out;
    }
  }
  for (size_t have = 0, n = (size_t)count; !data || have < n;) { /* the header may lie */
    size_t room = MIN(n, MAX(2 * have, (size_t)1 << 26));
    uint8_t *more = realloc(data, room + 1);
    if (!more) {
      e = err_new(ERR_EXHAUSTED, "no memory for %zu bytes of '%s'", room, path);
      goto out;
    }
    data = more;
    if (!read_all(f, data + have, room - have)) {
      e = err_new(ERR_DATA_LOSS, "'%s' is shorter than its header says", path);
      goto out;
    }
    have = room;
  }
  *rank = head[3];
  *out = data;
  data = NULL;
out:
  free(data);
  gzclose(f);
  return e;
}

/* DIR/stem or DIR/stem.gz */
static char *find_file(const char *dir, const char *stem) {
  char *p = xasprintf("%s/%s", dir, stem);
  if (!access(p, R_OK)) return p;
  free(p);
  p = xasprintf("%s/%s.gz", dir, stem);
  if (!access(p, R_OK)) return p;
  free(p);
  return NULL;
}

static const char *const stems[4] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                     "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

static Err *find_dir(const char *name, char **out) {
  const char *root = env_get("WEFT_DATASETS");
  char *tried[3] = {root ? xasprintf("%s/%s", root, name) : NULL,
                    xasprintf("/usr/share/datasets/%s", name), xasprintf("data/%s", name)};
  for (int i = 0; i < 3 && !*out; i++) {
    char *f = tried[i] ? find_file(tried[i], stems[0]) : NULL;
    if (f) *out = xstrdup(tried[i]);
    free(f);
  }
  Err *e = NULL;
  if (!*out) {
    e = err_new(ERR_NOT_FOUND, "the files of '%s' are neither in %s nor in $WEFT_DATASETS/%s", name,
                tried[1], name);
    if (!strcmp(name, "fashion-mnist")) err_hint(e, "apt-get install dataset-fashion-mnist");
    else err_hint(e, "give their directory: --data idx:DIR");
  }
  for (int i = 0; i < 3; i++) free(tried[i]);
  return e;
}

Err *data_open_idx(const char *name, const char *dir, Data **out) {
  char *found = dir ? xstrdup(dir) : NULL;
  if (!found) TRY(find_dir(name, &found));
  uint8_t *raw[4] = {0};
  int rank[4];
  int64_t dims[4][4] = {{0}}, shape[3];
  Err *e = NULL;
  for (int i = 0; i < 4 && !e; i++) {
    char *path = find_file(found, stems[i]);
    if (!path) e = err_new(ERR_NOT_FOUND, "'%s' has no %s[.gz]", found, stems[i]);
    else e = idx_read(path, &rank[i], dims[i], &raw[i]);
    if (!e && i % 2 == 0 && rank[i] != 3 && !(rank[i] == 4 && dims[i][3] <= DATA_CHANNELS))
      e = err_new(ERR_DATA_LOSS, "'%s' does not hold images", path);
    if (!e && i % 2 == 1 && (rank[i] != 1 || dims[i][0] != dims[i - 1][0]))
      e = err_new(ERR_DATA_LOSS, "'%s' does not hold a label for each image", path);
    free(path);
  }
  if (!e && (dims[0][1] != dims[2][1] || dims[0][2] != dims[2][2] || rank[0] != rank[2] ||
             (rank[0] == 4 && dims[0][3] != dims[2][3])))
    e = err_new(ERR_DATA_LOSS, "training and test images in '%s' differ in size", found);
  bool empty = !dims[0][0] || !dims[2][0] || !dims[0][1] || !dims[0][2];
  if (!e && (empty || (rank[0] == 4 && !dims[0][3])))
    e = err_new(ERR_DATA_LOSS, "'%s' has no images for training or for testing", found);
  if (!e) {
    int64_t classes = 0;
    for (int64_t i = 0; i < dims[1][0]; i++) classes = MAX(classes, raw[1][i] + 1);
    for (int64_t i = 0; i < dims[3][0]; i++) classes = MAX(classes, raw[3][i] + 1);
    shape[0] = dims[0][1], shape[1] = dims[0][2], shape[2] = rank[0] == 4 ? dims[0][3] : 1;
    Images im = {.train = raw[0], .test = raw[2], .train_labels = raw[1], .test_labels = raw[3]};
    *out = data_from_images(name, im, dims[0][0], dims[2][0], shape, classes);
    if (!strcmp(name, "fashion-mnist"))
      (*out)->labels = xstrdup("T-shirt/top\nTrouser\nPullover\nDress\nCoat\nSandal\nShirt\n"
                               "Sneaker\nBag\nAnkle boot");
  } else {
    for (int i = 0; i < 4; i++) free(raw[i]);
  }
  free(found);
  return e;
}
