/* Host tensors: one allocation for the object, its dims and the data when that is small; else a
 * 64-byte aligned block for the data. Large ones of one value are one small piece of memory, mapped
 * again and again. */
#include "ir/ir.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGE_SPLAT ((size_t)1 << 20)
#define BLOCK ((size_t)1 << 16) /* a multiple of every page size */
#define MAPPINGS 64             /* for a tensor: a process may have some ten thousand */

#define SMALL 512 /* bytes */

/* A vector load may touch the whole last 64-byte line. */
static size_t data_room(size_t bytes) { return (bytes + 127) & ~(size_t)63; }

/* `inside`: with room for the data when that is small. */
static Err *tensor_object(DType dtype, int rank, const int64_t *dims, bool inside, Tensor **out) {
  int64_t count = 1, bytes;
  for (int i = 0; i < rank; i++) {
    if (dims[i] < 0) return err_new(ERR_INVALID, "negative dimension %lld", (long long)dims[i]);
    if (mul_overflows(count, dims[i], &count)) return err_new(ERR_INVALID, "tensor size overflows");
  }
  if (mul_overflows(count, MAX(dtype_bytes(dtype), 1), &bytes) || bytes > INT64_MAX / 4)
    return err_new(ERR_INVALID, "tensor size overflows");
  size_t head = sizeof(Tensor) + sizeof(int64_t) * (size_t)rank;
  inside = inside && bytes <= SMALL;
  Tensor *t = xmalloc(inside ? head + 63 + data_room((size_t)bytes) : head);
  *t = (Tensor){.refs = 1, .dtype = dtype, .rank = rank, .dims = (int64_t *)(t + 1)};
  if (inside) t->data = (void *)(((uintptr_t)t + head + 63) & ~(uintptr_t)63);
  if (rank) memcpy(t->dims, dims, sizeof(int64_t) * (size_t)rank);
  t->count = count;
  *out = t;
  return NULL;
}

static void release_free(void *arg, void *data) {
  (void)arg;
  free(data);
}

Err *tensor_new(DType dtype, int rank, const int64_t *dims, Tensor **out) {
  Tensor *t;
  TRY(tensor_object(dtype, rank, dims, true, &t));
  if (!t->data) {
    size_t bytes = tensor_bytes(t);
    t->data = aligned_alloc(64, data_room(bytes));
    t->release = release_free;
    if (!t->data) {
      free(t);
      return err_new(ERR_EXHAUSTED, "cannot allocate %zu bytes of host memory", bytes);
    }
  }
  *out = t;
  return NULL;
}

/* ---- one value ---- */

static void repeat(char *p, const void *element, size_t size, size_t total) {
  if (total) memcpy(p, element, size);
  for (size_t done = size; done < total;) {
    size_t n = MIN(done, total - done);
    memcpy(p + done, p, n);
    done += n;
  }
}

static void release_mapping(void *arg, void *data) { munmap(data, (size_t)(uintptr_t)arg); }

static bool map_file(char *at, size_t total, size_t part, const char *block) {
  int fd = memfd_create("weft constant", MFD_CLOEXEC);
  bool ok = fd >= 0;
  for (size_t i = 0; i < part && ok; i += BLOCK)
    ok = pwrite(fd, block, BLOCK, (off_t)i) == (ssize_t)BLOCK;
  for (size_t i = 0; i < total && ok; i += part)
    ok = mmap(at + i, part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) != MAP_FAILED;
  if (fd >= 0) close(fd);
  return ok;
}

/* NULL: this system does not let us. */
static char *map_repeated(const void *element, size_t size, size_t bytes, size_t *mapped) {
  size_t part = (bytes / MAPPINGS / BLOCK + 1) * BLOCK, total = (bytes + part) / part * part;
  char block[BLOCK];
  static const char zero[16] = {0};
  char *at =
      mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return NULL;
  *mapped = total;
  if (!memcmp(element, zero, size)) return at;
  repeat(block, element, size, sizeof block);
  if (map_file(at, total, part, block)) return at;
  munmap(at, total);
  return NULL;
}

Err *tensor_splat(DType dtype, int rank, const int64_t *dims, const void *element, Tensor **out) {
  Tensor *t;
  TRY(tensor_object(dtype, rank, dims, false, &t));
  size_t bytes = tensor_bytes(t), mapped, size = (size_t)dtype_bytes(dtype);
  t->data = bytes >= LARGE_SPLAT ? map_repeated(element, size, bytes, &mapped) : NULL;
  if (t->data) {
    t->release = release_mapping;
    t->release_arg = (void *)(uintptr_t)mapped;
  } else {
    tensor_release(t);
    TRY(tensor_new(dtype, rank, dims, &t));
    repeat(t->data, element, size, bytes);
  }
  t->splat = t->count > 0;
  *out = t;
  return NULL;
}

bool tensor_is_splat(const Tensor *t) {
  size_t size = (size_t)dtype_bytes(t->dtype), bytes = tensor_bytes(t);
  if (t->splat || t->count == 0) return t->count > 0;
  return !memcmp(t->data, (const char *)t->data + size, bytes - size);
}

/* ---- others ---- */

Tensor *tensor_make(DType dtype, int rank, const int64_t *dims) {
  Tensor *t = NULL;
  Err *e = tensor_new(dtype, rank, dims, &t);
  if (e) {
    err_report(e);
    abort();
  }
  return t;
}

Tensor *tensor_wrap(DType dtype, int rank, const int64_t *dims, void *data,
                    void (*release)(void *, void *), void *arg) {
  Tensor *t = NULL;
  Err *e = tensor_object(dtype, rank, dims, false, &t);
  if (e) {
    err_report(e);
    abort();
  }
  t->data = data;
  t->release = release;
  t->release_arg = arg;
  return t;
}

Tensor *tensor_phantom(DType dtype, int rank, const int64_t *dims) {
  Tensor *t = tensor_wrap(dtype, rank, dims, NULL, NULL, NULL);
  t->phantom = true;
  return t;
}

Tensor *tensor_tuple(Tensor **elems, int n) {
  Tensor *t = xcalloc(1, sizeof *t);
  t->refs = 1;
  t->dtype = DT_NONE;
  t->count = 1;
  t->elems = xmalloc(sizeof *elems * (size_t)n);
  if (n) memcpy(t->elems, elems, sizeof *elems * (size_t)n);
  t->n_elems = n;
  return t;
}

Tensor *tensor_retain(Tensor *t) {
  if (t) __atomic_fetch_add(&t->refs, 1, __ATOMIC_RELAXED);
  return t;
}

void tensor_release(Tensor *t) {
  if (!t || __atomic_sub_fetch(&t->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
  for (int i = 0; i < t->n_elems; i++) tensor_release(t->elems[i]);
  free(t->elems);
  if (t->release) t->release(t->release_arg, t->data);
  free(t);
}
