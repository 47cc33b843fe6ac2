/* Memory of results and arenas. Fresh pages cost a fault each (4 GB/s at best), so large blocks are
 * kept when they come back and given out again: by size, rounded up to an eighth of a power of two.
 * Blocks of 4 MiB and more ask for huge pages. */
#include "dev/cpu/kernel/mem.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/units.h"

#define SMALL ((size_t)32 << 10)
#define HUGE ((size_t)4 << 20)
#define KEEP_MAX ((size_t)1 << 30) /* bytes kept for later */
#define CLASSES 512

typedef struct Free {
  struct Free *next;
} Free;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Free *idle[CLASSES];
static size_t kept;

/* Rounds n up to its class; returns the class number. */
static int class_of(size_t *n) {
  int top = 63 - __builtin_clzll(*n | 1);
  int shift = top > 3 ? top - 3 : 0;
  size_t step = (size_t)1 << shift;
  *n = (*n + step - 1) & ~(step - 1);
  top = 63 - __builtin_clzll(*n | 1);
  shift = top > 3 ? top - 3 : 0;
  return MIN(CLASSES - 1, top * 8 + (int)((*n >> shift) & 7));
}

static void *fresh(size_t n) {
  if (n < HUGE) return aligned_alloc(64, (n + 63) & ~(size_t)63);
  void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return NULL;
  madvise(p, n, MADV_HUGEPAGE);
  return p;
}

static void discard(void *p, size_t n) {
  if (n < HUGE) free(p);
  else munmap(p, n);
}

static void discard_idle(void) { /* with the lock held */
  for (int c = 0; c < CLASSES; c++)
    while (idle[c]) {
      Free *f = idle[c];
      idle[c] = f->next;
      size_t n = *(size_t *)(f + 1);
      discard(f, n);
    }
  kept = 0;
}

void *cpu_block_alloc(size_t n) {
  if (n < SMALL) return aligned_alloc(64, (n + 64) & ~(size_t)63);
  int c = class_of(&n);
  pthread_mutex_lock(&lock);
  Free *f = idle[c];
  if (f) {
    idle[c] = f->next;
    kept -= n;
  }
  pthread_mutex_unlock(&lock);
  if (f) return f;
  void *p = fresh(n);
  if (!p) {
    pthread_mutex_lock(&lock);
    discard_idle();
    pthread_mutex_unlock(&lock);
    p = fresh(n);
  }
  return p;
}

void cpu_block_free(void *p, size_t n) {
  if (!p) return;
  if (n < SMALL) {
    free(p);
    return;
  }
  int c = class_of(&n);
  pthread_mutex_lock(&lock);
  bool keep = kept + n <= KEEP_MAX;
  if (keep) {
    Free *f = p;
    f->next = idle[c];
    *(size_t *)(f + 1) = n;
    idle[c] = f;
    kept += n;
  }
  pthread_mutex_unlock(&lock);
  if (!keep) discard(p, n);
}

static void give_back(void *arg, void *data) { cpu_block_free(data, (size_t)(uintptr_t)arg); }

static Err *tensor_bytes_of(DType t, int rank, const int64_t *dims, int64_t *out) {
  int64_t n = dtype_bytes(t);
  for (int i = 0; i < rank; i++)
    if (mul_overflows(n, dims[i], &n))
      return err_new(ERR_INVALID, "a result is larger than memory can be");
  *out = n;
  return NULL;
}

static Err *wrap_block(void *p, int64_t n, DType t, int rank, const int64_t *dims, Tensor **out) {
  char size[UNITS_TEXT];
  if (!p)
    return err_new(ERR_EXHAUSTED, "no memory for a result of %s", units_bytes(size, (double)n));
  *out = tensor_wrap(t, rank, dims, p, give_back, (void *)(uintptr_t)n);
  return NULL;
}

Err *cpu_tensor_new(DType t, int rank, const int64_t *dims, Tensor **out) {
  int64_t n;
  TRY(tensor_bytes_of(t, rank, dims, &n));
  if ((size_t)n < SMALL) return tensor_new(t, rank, dims, out);
  return wrap_block(cpu_block_alloc((size_t)n), n, t, rank, dims, out);
}

Err *cpu_tensor_for_argument(DType t, int rank, const int64_t *dims, bool zeros, Tensor **out) {
  int64_t n;
  TRY(tensor_bytes_of(t, rank, dims, &n));
  if (zeros && (size_t)n >= HUGE) { /* pages that the system has just made are zeros */
    size_t whole = (size_t)n;
    class_of(&whole);
    return wrap_block(fresh(whole), n, t, rank, dims, out);
  }
  TRY(cpu_tensor_new(t, rank, dims, out));
  if (zeros) memset((*out)->data, 0, (size_t)n);
  return NULL;
}
