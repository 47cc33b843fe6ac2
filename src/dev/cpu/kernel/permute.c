/* The strided gather that transposes, slices, reversals and broadcasts are: dimensions are joined where they can be, the
 * innermost ones go as planes to turn, small blocks (turns.c), or rows. */
#include "dev/cpu/kernel/clones.h"
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/turns.h"

/* ---- rows ---- */

#define EACH(...)                                                     \
  {                                                                   \
    for (int64_t i = 0; i < n; i++, in += in_step, out += out_step) { \
      __VA_ARGS__                                                     \
    }                                                                 \
    return;                                                           \
  }
#define WHOLE(size) \
  case size: EACH(memcpy(out, in, size);)
/* Its first and its last bytes may be the same ones. */
#define BOTH_ENDS(size) \
  EACH(memcpy(out, in, size); memcpy(out + bytes - (size), in + bytes - (size), size);)
/* The compiler makes no call of memcpy of the loop around. */
#define NO_CALL __asm__ volatile("" ::: "memory")
#define LONG 2048 /* bytes: worth a call */

CLONES void cpu_copy_rows(int64_t bytes, int64_t n, const char *restrict in, int64_t in_step,
                          char *restrict out, int64_t out_step) {
  switch (bytes) {
    WHOLE(1)
    WHOLE(2)
    WHOLE(4)
    WHOLE(8)
    WHOLE(16)
  case 0: return;
  }
  if (bytes >= LONG) EACH(memcpy(out, in, (size_t)bytes);)
  if (bytes > 32)
    EACH(for (int64_t at = 0; at + 32 < bytes; at += 32) {
      memcpy(out + at, in + at, 32);
      NO_CALL;
    } memcpy(out + bytes - 32, in + bytes - 32, 32);)
  if (bytes > 16) BOTH_ENDS(16)
  if (bytes > 8) BOTH_ENDS(8)
  if (bytes > 4) BOTH_ENDS(4)
  EACH(memcpy(out, in, 2); out[2] = in[2];)
}

/* ---- the gather ---- */

typedef struct Permute {
  size_t bytes;
  int rank;
  int64_t dims[CPU_MAX_RANK], strides[CPU_MAX_RANK];
  int tile; /* the dimension that is contiguous in the input, when it is not the last: tiles of it
               and the last; -1 */
  int64_t inner; /* elements below the outermost dimension */
  int block;     /* the dimensions from here on are a small block, dense in the input, too; -1 */
  int64_t size;  /* its elements */
  uint8_t from[TURN_BLOCK];
  const char *in;
  char *out;
} Permute;

#define LINE 64 /* elements: whole squares for each thread (turns.c) */

#define ROW(T)                                              \
  case sizeof(T): {                                         \
    const T *s = (const T *)src;                            \
    T *d = (T *)dst;                                        \
    if (stride == 0)                                        \
      for (int64_t i = 0; i < n; i++) d[i] = s[0];          \
    else if (stride == -1)                                  \
      for (int64_t i = 0; i < n; i++) d[i] = s[-i];         \
    else if (stride == 2)                                   \
      for (int64_t i = 0; i < n; i++) d[i] = s[2 * i];      \
    else                                                    \
      for (int64_t i = 0; i < n; i++) d[i] = s[i * stride]; \
    return;                                                 \
  }

CLONES static void copy_row(size_t bytes, int64_t n, int64_t stride, const char *src, char *dst) {
  if (stride == 1) {
    memcpy(dst, src, (size_t)n * bytes);
    return;
  }
  switch (bytes) {
    ROW(uint8_t)
    ROW(uint16_t)
    ROW(uint32_t)
    ROW(uint64_t)
  default:
    for (int64_t i = 0; i < n; i++)
      memcpy(dst + (size_t)i * bytes, src + i * stride * (int64_t)bytes, bytes);
  }
}

/* Dimensions k .. rank - 1; out dense. Skips the tiled dimension, which the innermost call handles.
 */
static void walk(const Permute *p, int k, const char *in, char *out, const int64_t *out_strides) {
  int last = p->rank - 1;
  int64_t b = (int64_t)p->bytes;
  k += k == p->tile;
  if (k + 1 == p->block) {
    turn_blocks(p->bytes, p->dims[k], p->size, p->from, p->strides[k], in, out);
  } else if (k == last - 1 && p->strides[last] == 1) {
    int64_t row = p->dims[last] * b;
    cpu_copy_rows(row, p->dims[k], in, p->strides[k] * b, out, row);
  } else if (k < last) {
    for (int64_t i = 0; i < p->dims[k]; i++)
      walk(p, k + 1, in + i * p->strides[k] * b, out + i * out_strides[k] * b, out_strides);
  } else if (p->tile < 0) {
    copy_row(p->bytes, p->dims[k], p->strides[k], in, out);
  } else {
    turn_plane(p->bytes, p->dims[p->tile], p->dims[k], out_strides[p->tile], p->strides[k], in,
               out);
  }
}

static void permute_range(void *arg, int64_t begin, int64_t end) {
  Permute p = *(const Permute *)arg;
  int64_t os[CPU_MAX_RANK], s = 1;
  for (int k = p.rank - 1; k >= 0; k--) {
    os[k] = s;
    s *= p.dims[k];
  }
  p.in += begin * p.strides[0] * (int64_t)p.bytes;
  p.out += begin * os[0] * (int64_t)p.bytes;
  p.dims[0] = end - begin;
  walk(&p, 0, p.in, p.out, os);
}

/* The bytes of a gather of one run, -1: there are more. */
static int64_t one_run(size_t bytes, int rank, const int64_t *dims, const int64_t *strides) {
  int64_t run = 1;
  for (int i = rank - 1; i >= 0; i--) {
    if (dims[i] == 1) continue;
    if (strides[i] != run) return -1;
    run *= dims[i];
  }
  return run * (int64_t)bytes;
}

/* Do the innermost dimensions cut both sides into the same small blocks? */
static void find_blocks(Permute *p) {
  int64_t size = 1;
  p->block = -1;
  for (int k = p->rank - 1; k > 0 && (size *= p->dims[k]) <= TURN_BLOCK; k--) {
    int64_t most = 0;
    bool forward = true;
    for (int i = k; i < p->rank; i++) {
      most += p->strides[i] * (p->dims[i] - 1);
      forward &= p->strides[i] > 0;
    }
    if (!forward || most != size - 1 || k == p->rank - 1) continue;
    bool seen[TURN_BLOCK] = {0}, dense = true;
    for (int64_t j = 0; j < size; j++) {
      int64_t rest = j, at = 0;
      for (int i = p->rank - 1; i >= k; rest /= p->dims[i--])
        at += rest % p->dims[i] * p->strides[i];
      dense &= !seen[at];
      seen[at] = true;
      p->from[j] = (uint8_t)at;
    }
    if (!dense || p->dims[k - 1] < 4) continue;
    p->block = k;
    p->size = size;
    return;
  }
}

void cpu_permute(size_t bytes, int rank, const int64_t *dims, const int64_t *strides,
                 const void *in, void *out) {
  int64_t run = one_run(bytes, rank, dims, strides);
  if (run >= 0 && run < 1 << 20) {
    memcpy(out, in, (size_t)run);
    return;
  }
  Permute p = {.bytes = bytes, .tile = -1, .in = in, .out = out};
  int64_t total = 1;
  for (int i = 0; i < rank; i++) {
    total *= dims[i];
    if (dims[i] == 1) continue;
    int k = p.rank;
    if (k && p.strides[k - 1] == strides[i] * dims[i]) { /* one run */
      p.dims[k - 1] *= dims[i];
      p.strides[k - 1] = strides[i];
      continue;
    }
    p.dims[k] = dims[i];
    p.strides[k] = strides[i];
    p.rank++;
  }
  if (total == 0) return;
  if (p.strides[p.rank - 1] != 1 && p.strides[p.rank - 1] != 0)
    for (int k = 0; k < p.rank - 1; k++)
      if (p.strides[k] == 1) p.tile = k;
  find_blocks(&p);
  if (p.block > 0) p.tile = -1;
  p.inner = total / p.dims[0];
  int64_t grain = MAX(1, 65536 / MAX(1, p.inner));
  if (p.tile == 0) grain = (grain + LINE - 1) / LINE * LINE;
  cpu_parallel(p.dims[0], total < 65536 ? p.dims[0] : grain, permute_range, &p);
}
