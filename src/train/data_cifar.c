/* CIFAR-10: the binary files of the original, or one file of records (label, u16 length, JPEG),
 * plain or xz. */
#include "train/data_priv.h"

#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIDE = 32, PIXELS = SIDE * SIDE, SIZE = 3 * PIXELS, N_TRAIN = 50000, N_TEST = 10000 };

/* ---- binary files: label, 1024 red, 1024 green, 1024 blue ------------------------------------ */

static Err *read_planes(const char *path, int64_t n, uint8_t *images, uint8_t *labels) {
  Buf b = {0};
  TRY(file_read(path, &b));
  Err *e = NULL;
  if (b.n != (size_t)n * (SIZE + 1))
    e = err_new(ERR_DATA_LOSS, "'%s' has %zu bytes, not %lld", path, b.n,
                (long long)n * (SIZE + 1));
  for (int64_t i = 0; i < n && !e; i++) {
    const uint8_t *p = (const uint8_t *)b.p + i * (SIZE + 1);
    labels[i] = p[0];
    for (int k = 0; k < PIXELS; k++)
      for (int c = 0; c < 3; c++) images[i * SIZE + k * 3 + c] = p[1 + c * PIXELS + k];
  }
  buf_free(&b);
  return e;
}

/* ---- xz -------------------------------------------------------------------------------------- */

static Err *unpack(const char *path, Buf *raw) {
  if (raw->n < 6 || memcmp(raw->p,
                           "\xfd"
                           "7zXZ",
                           6))
    return NULL;
  uint64_t limit = (uint64_t)1 << 30;
  size_t in = 0, out = 0, room = (size_t)96 << 20;
  for (;;) {
    char *p = malloc(room);
    if (!p) return err_new(ERR_EXHAUSTED, "no memory to unpack '%s'", path);
    in = out = 0;
    lzma_ret r = lzma_stream_buffer_decode(&limit, 0, NULL, (const uint8_t *)raw->p, &in, raw->n,
                                           (uint8_t *)p, &out, room);
    if (r == LZMA_OK) {
      buf_free(raw);
      *raw = (Buf){p, out, room};
      return NULL;
    }
    free(p);
    if (r != LZMA_BUF_ERROR || room > ((size_t)1 << 30))
      return err_new(ERR_DATA_LOSS, "'%s' is a damaged xz file (liblzma says %d)", path, (int)r);
    room *= 2;
  }
}

bool cifar_decode(const uint8_t *p, size_t n, uint8_t *out) {
  Picture x = {0};
  Err *e = jpeg_read(p, n, &x);
  bool ok = !e && x.width == SIDE && x.height == SIDE;
  err_free(e);
  for (int64_t i = 0; ok && i < SIDE * SIDE * 3; i++)
    out[i] = x.pixels[x.channels == 3 ? i : i / 3];
  picture_free(&x);
  return ok;
}

enum { PART = 256 };
typedef struct Job {
  const uint8_t *base;
  const size_t *at; /* offset of each record */
  int64_t n;
  Images *im;
  int bad; /* a record that would not decode, + 1 */
} Job;

static void decode_part(void *arg, int64_t part) {
  Job *j = arg;
  for (int64_t i = part * PART; i < MIN(j->n, (part + 1) * PART); i++) {
    const uint8_t *p = j->base + j->at[i];
    bool train = i < N_TRAIN;
    int64_t k = train ? i : i - N_TRAIN;
    (train ? j->im->train_labels : j->im->test_labels)[k] = p[0];
    if (!cifar_decode(p + 3, (size_t)p[1] | (size_t)p[2] << 8,
                      (train ? j->im->train : j->im->test) + k * SIZE))
      __atomic_store_n(&j->bad, (int)i + 1, __ATOMIC_RELAXED);
  }
}

static Err *read_records(const char *path, Images *im) {
  Buf b = {0};
  TRY(file_read(path, &b));
  Err *e = unpack(path, &b);
  VEC(size_t) at = {0};
  for (size_t p = 0; !e && p < b.n;) {
    size_t n = p + 3 <= b.n ? (size_t)(uint8_t)b.p[p + 1] | (size_t)(uint8_t)b.p[p + 2] << 8 : b.n;
    if (p + 3 + n > b.n) e = err_new(ERR_DATA_LOSS, "'%s' ends inside record %d", path, at.n);
    *vec_push(&at) = p;
    p += 3 + n;
  }
  if (!e && at.n != N_TRAIN + N_TEST)
    e = err_new(ERR_DATA_LOSS, "'%s' has %d records, not %d", path, at.n, N_TRAIN + N_TEST);
  if (!e) {
    Job j = {(const uint8_t *)b.p, at.v, at.n, im, 0};
    pool_run((at.n + PART - 1) / PART, decode_part, &j);
    if (j.bad)
      e = err_new(ERR_DATA_LOSS, "record %d of '%s' is not a 32 x 32 JPEG", j.bad - 1, path);
  }
  vec_free(&at);
  buf_free(&b);
  return e;
}

static char *usual_path(void) {
  static const char *const names[] = {"cifar10/cifar10-jpeg.rec.xz", "cifar10/cifar10-jpeg.rec",
                                      "cifar-10-batches-bin", "cifar10"};
  const char *roots[] = {env_get("WEFT_DATASETS"), "/usr/share/datasets", "data"};
  for (int r = 0; r < 3; r++)
    for (int i = 0; roots[r] && i < 4; i++) {
      char *p = xasprintf("%s/%s", roots[r], names[i]);
      if (!access(p, R_OK)) return p;
      free(p);
    }
  return NULL;
}

Err *data_open_cifar(const char *path, bool augment, Data **out) {
  char *found = path ? xstrdup(path) : usual_path();
  if (!found)
    return err_hint(
        err_new(ERR_NOT_FOUND, "the files of CIFAR-10 are not in $WEFT_DATASETS/cifar10"),
        "give them: --data cifar10:DIR (data_batch_1.bin ...) or cifar10:FILE.rec.xz");
  Images im = {.train = xmalloc((size_t)N_TRAIN * SIZE),
               .test = xmalloc((size_t)N_TEST * SIZE),
               .train_labels = xmalloc(N_TRAIN),
               .test_labels = xmalloc(N_TEST),
               .augment = augment};
  struct stat st;
  Err *e = NULL;
  if (stat(found, &st)) {
    e = err_new(ERR_NOT_FOUND, "cannot open '%s'", found);
  } else if (S_ISDIR(st.st_mode)) {
    for (int i = 0; i < 6 && !e; i++) {
      char *f = i < 5 ? xasprintf("%s/data_batch_%d.bin", found, i + 1)
                      : xasprintf("%s/test_batch.bin", found);
      e = i < 5 ? read_planes(f, 10000, im.train + (int64_t)i * 10000 * SIZE,
                              im.train_labels + i * 10000)
                : read_planes(f, N_TEST, im.test, im.test_labels);
      free(f);
    }
  } else {
    e = read_records(found, &im);
  }
  for (int i = 0; i < N_TRAIN + N_TEST && !e; i++) {
    int label = i < N_TRAIN ? im.train_labels[i] : im.test_labels[i - N_TRAIN];
    if (label > 9)
      e = err_new(ERR_DATA_LOSS, "'%s': image %d has label %d, not 0 to 9", found, i, label);
  }
  if (!e) {
    *out = data_from_images("cifar10", im, N_TRAIN, N_TEST, (int64_t[]){SIDE, SIDE, 3}, 10);
    (*out)->reads = READ_AUGMENT;
    (*out)->labels =
        xstrdup("airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck");
  } else {
    free(im.train);
    free(im.test);
    free(im.train_labels);
    free(im.test_labels);
  }
  free(found);
  return e;
}
