/* Host tensors: one allocation for the object, its dims and the data when that is small; else a
 * 64-byte aligned block for the data. Splats hold one element; where all are needed and they are
 * many, they are one small piece of memory, mapped again and again. */
#include "ir/ir.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGE_SPLAT ((size_t)1 << 20)
#define BLOCK ((size_t)1 << 16)    /* a multiple of every page size */
#define MAPPINGS 64                /* for a tensor: a process may have some ten thousand */
#define MAX_PART ((size_t)1 << 26) /* of a file; what is larger than MAPPINGS of them has more */
#define MOST_MAPPINGS 4096
#define MAX_ELEMENT 16 /* bytes */

#define SMALL 512 /* bytes */

/* A vector load may touch the whole last 64-byte line. */
static size_t data_room(size_t bytes) { return (bytes + 127) & ~(size_t)63; }

/* Elements that have their room in the object itself. */
typedef enum Inside { INSIDE_NONE, INSIDE_ALL_IF_SMALL, INSIDE_ONE } Inside;

static Err *tensor_object(DType dtype, int rank, const int64_t *dims, Inside which, Tensor **out) {
  int64_t count = 1, bytes;
  for (int i = 0; i < rank; i++) {
    if (dims[i] < 0) return err_new(ERR_INVALID, "negative dimension %lld", (long long)dims[i]);
    if (mul_overflows(count, dims[i], &count)) return err_new(ERR_INVALID, "tensor size overflows");
  }
  if (mul_overflows(count, MAX(dtype_bytes(dtype), 1), &bytes) || bytes > INT64_MAX / 4)
    return err_new(ERR_INVALID, "tensor size overflows");
  size_t head = sizeof(Tensor) + sizeof(int64_t) * (size_t)rank;
  if (which == INSIDE_ONE) bytes = MIN(bytes, dtype_bytes(dtype));
  bool inside = which != INSIDE_NONE && bytes <= SMALL;
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
  TRY(tensor_object(dtype, rank, dims, INSIDE_ALL_IF_SMALL, &t));
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

Err *tensor_splat(DType dtype, int rank, const int64_t *dims, const void *element, Tensor **out) {
  Tensor *t;
  TRY(tensor_object(dtype, rank, dims, INSIDE_ONE, &t));
  if (t->count) memcpy(t->data, element, (size_t)dtype_bytes(dtype));
  t->splat = t->count > 1;
  *out = t;
  return NULL;
}

bool tensor_is_splat(const Tensor *t) {
  size_t size = (size_t)dtype_bytes(t->dtype), bytes = tensor_bytes(t);
  if (t->splat || t->count == 0) return t->count > 0;
  return !memcmp(t->data, (const char *)t->data + size, bytes - size);
}

bool tensor_same_data(const Tensor *a, const Tensor *b) {
  if (a->count == 0 || a->data == b->data) return true;
  if (a->splat == b->splat) return !memcmp(a->data, b->data, tensor_held_bytes(a));
  return tensor_is_splat(a->splat ? b : a) &&
         !memcmp(a->data, b->data, (size_t)dtype_bytes(a->dtype));
}

/* ---- all elements of one value ---- */

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
  size_t part = MIN(bytes / MAPPINGS / BLOCK + 1, MAX_PART / BLOCK) * BLOCK;
  size_t total = (bytes + part) / part * part;
  char block[BLOCK];
  static const char zero[MAX_ELEMENT] = {0};
  bool zeros = !memcmp(element, zero, size);
  if (!zeros && total / part > MOST_MAPPINGS) return NULL;
  char *at =
      mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return NULL;
  *mapped = total;
  if (zeros) return at;
  repeat(block, element, size, sizeof block);
  if (map_file(at, total, part, block)) return at;
  munmap(at, total);
  return NULL;
}

static Err *all_elements(const Tensor *one, Tensor **out) {
  Tensor *t;
  size_t bytes = tensor_bytes(one), mapped, size = (size_t)dtype_bytes(one->dtype);
  char *data = bytes >= LARGE_SPLAT ? map_repeated(one->data, size, bytes, &mapped) : NULL;
  if (data) {
    t = tensor_wrap(one->dtype, one->rank, one->dims, data, release_mapping,
                    (void *)(uintptr_t)mapped);
  } else {
    TRY(tensor_new(one->dtype, one->rank, one->dims, &t));
    repeat(t->data, one->data, size, bytes);
  }
  *out = t;
  return NULL;
}

Err *tensor_dense(Tensor *t, Tensor **out) {
  *out = t->splat ? __atomic_load_n(&t->dense, __ATOMIC_ACQUIRE) : t;
  if (*out) return NULL;
  Tensor *made, *first = NULL;
  TRY(all_elements(t, &made));
  *out = made;
  if (__atomic_compare_exchange_n(&t->dense, &first, made, false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE))
    return NULL;
  tensor_release(made);
  *out = first;
  return NULL;
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
  Err *e = tensor_object(dtype, rank, dims, INSIDE_NONE, &t);
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
  tensor_release(t->dense);
  if (t->release) t->release(t->release_arg, t->data);
  free(t);
}
