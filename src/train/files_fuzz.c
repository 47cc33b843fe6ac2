/* Any bytes as a file that training reads: an Err or data, never a crash. The first byte says which
 * reader: 'S' a checkpoint, 'I' a file of idx, 'T' a vocabulary of byte pairs, 'B' one of word pieces, 'C' a picture of CIFAR-10, 'P' any picture,
 * 'W' a webdataset, 'K' what a checkpoint says of itself, 'N' arrays, 'V' a table of a csv. WEFT_FUZZ_READER=V: always that
 * one, whatever the first byte. */
#include "train/data_priv.h"
#include "train/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(int fd, const uint8_t *p, size_t n) {
  if (ftruncate(fd, 0) || pwrite(fd, p, n, 0) != (ssize_t)n) abort();
}

static void encode(const char *path, const uint8_t *p, size_t n) {
  Tokenizer *t;
  Err *e = tokenizer_open(path, &t);
  if (!e) {
    IdVec ids = {0};
    tokenizer_encode(t, (Str){(const char *)p, MIN(n, 256)}, &ids);
    for (int i = 0; i < ids.n; i++)
      if (ids.v[i] < 0 || ids.v[i] >= tokenizer_size(t)) abort();
    vec_free(&ids);
    tokenizer_close(t);
  }
  err_free(e);
}

/* A folder that only this process sees the contents of: encoder.json and vocab.bpe are links to
 * files in memory. The vocabulary is what comes before the first NUL. */
static void tokens(const uint8_t *p, size_t n) {
  static char folder[] = "/tmp/weft-fuzz-XXXXXX";
  static int fd[2] = {-1, -1};
  static const char *const names[] = {"encoder.json", "vocab.bpe"};
  if (fd[0] < 0) {
    if (!mkdtemp(folder)) abort();
    for (int i = 0; i < 2; i++) {
      fd[i] = memfd_create(names[i], 0);
      char *at = xasprintf("%s/%s", folder, names[i]), *to = xasprintf("/proc/self/fd/%d", fd[i]);
      if (symlink(to, at)) abort();
      free(at);
      free(to);
    }
  }
  const uint8_t *nul = memchr(p, 0, n);
  size_t first = nul ? (size_t)(nul - p) : n;
  put(fd[0], p, first);
  put(fd[1], nul ? nul + 1 : p, nul ? n - first - 1 : 0);
  encode(folder, p, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static int fd = -1;
  static char path[64];
  const char *fixed = getenv("WEFT_FUZZ_READER");
  if (!size) return 0;
  char reader = fixed && *fixed ? *fixed : (char)*data;
  if (fd < 0) {
    fd = memfd_create("fuzz", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  }
  put(fd, data + 1, size - 1);
  Err *e = NULL;
  if (reader == 'S') {
    int n;
    NamedTensor *t;
    e = safetensors_read(path, &n, &t);
    if (!e) safetensors_free(n, t);
  } else if (reader == 'I') {
    int rank;
    int64_t dims[4];
    uint8_t *bytes;
    e = idx_read(path, &rank, dims, &bytes);
    if (!e) free(bytes);
  } else if (reader == 'T') {
    tokens(data + 1, size - 1);
  } else if (reader == 'B') {
    encode(path, data + 1, size - 1);
  } else if (reader == 'P') {
    Picture p;
    uint8_t small[8 * 8 * 3];
    e = picture_decode(data + 1, size - 1, &p);
    if (!e) {
      picture_fit(&p, 8, 8, 3, small);
      picture_free(&p);
    }
  } else if (reader == 'W' || reader == 'N' || reader == 'V') {
    Data *d;
    DataOpts o = {.image_size = 8};
    char *spec = xasprintf("%s:%s", reader == 'W' ? "wds" : reader == 'N' ? "npz" : "csv", path);
    e = data_open(spec, &o, &d);
    if (!e) data_close(d);
    free(spec);
  } else if (reader == 'K') {
    CheckpointInfo c;
    e = checkpoint_info(path, &c);
    if (!e) checkpoint_info_free(&c);
  } else if (reader == 'C') {
    uint8_t picture[32 * 32 * 3];
    cifar_decode(data + 1, size - 1, picture);
  }
  err_free(e);
  return 0;
}
