/* Copies between strided layouts. */
#include "pjrt/pjrt_priv.h"

#define CHUNK ((size_t)1 << 20)

typedef struct Bytes {
  char *dst;
  const char *src;
  size_t n;
} Bytes;

static void copy_chunk(void *arg, int64_t i) {
  const Bytes *b = arg;
  size_t at = (size_t)i * CHUNK;
  memcpy(b->dst + at, b->src + at, MIN(CHUNK, b->n - at));
}

static void copy_bytes(char *dst, const char *src, size_t n) {
  if (n < 4 * CHUNK) memcpy(dst, src, n);
  else pool_run((int64_t)((n + CHUNK - 1) / CHUNK), copy_chunk, &(Bytes){dst, src, n});
}

static void copy_level(char *dst, const int64_t *ds, const char *src, const int64_t *ss, int rank,
                       const int64_t *dims, size_t elem) {
  if (rank == 0) {
    memcpy(dst, src, elem);
    return;
  }
  int64_t n = dims[0];
  if (rank > 1) {
    for (int64_t i = 0; i < n; i++)
      copy_level(dst + i * ds[0], ds + 1, src + i * ss[0], ss + 1, rank - 1, dims + 1, elem);
    return;
  }
  if (ds[0] == (int64_t)elem && ss[0] == (int64_t)elem) {
    copy_bytes(dst, src, (size_t)n * elem);
    return;
  }
#define RUN(T)                                                                         \
  for (int64_t i = 0; i < n; i++) memcpy(dst + i * ds[0], src + i * ss[0], sizeof(T)); \
  return
  switch (elem) {
  case 1: RUN(uint8_t);
  case 2: RUN(uint16_t);
  case 4: RUN(uint32_t);
  case 8: RUN(uint64_t);
  default:
    for (int64_t i = 0; i < n; i++) memcpy(dst + i * ds[0], src + i * ss[0], elem);
  }
#undef RUN
}

static void dense_strides(int rank, const int64_t *dims, size_t elem, int64_t *out) {
  int64_t stride = (int64_t)elem;
  for (int i = rank - 1; i >= 0; i--) out[i] = stride, stride *= dims[i];
}

void copy_strided(void *dst, const int64_t *dst_strides, const void *src,
                  const int64_t *src_strides, int rank, const int64_t *dims, size_t elem) {
  int64_t *all = xcalloc((size_t)rank * 3 + 1, sizeof *all);
  int64_t *d = all, *s = all + rank, *n = all + 2 * rank;
  int64_t count = 1;
  for (int i = 0; i < rank; i++) count *= dims[i];
  if (count == 0) {
    free(all);
    return;
  }
  if (dst_strides) memcpy(d, dst_strides, (size_t)rank * sizeof *d);
  else dense_strides(rank, dims, elem, d);
  if (src_strides) memcpy(s, src_strides, (size_t)rank * sizeof *s);
  else dense_strides(rank, dims, elem, s);
  /* merge neighbours that are contiguous on both sides, drop dimensions of one */
  int r = 0;
  for (int i = 0; i < rank; i++) {
    if (dims[i] == 1) continue;
    if (r && d[r - 1] == d[i] * dims[i] && s[r - 1] == s[i] * dims[i]) {
      n[r - 1] *= dims[i];
      d[r - 1] = d[i], s[r - 1] = s[i];
    } else {
      d[r] = d[i], s[r] = s[i], n[r] = dims[i];
      r++;
    }
  }
  copy_level(dst, d, src, s, r, n, elem);
  free(all);
}
