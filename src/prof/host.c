/* This machine's peaks, for the roofline of what was measured on it: multiply-adds in registers
 * by all cores, and a sum over more memory than the caches hold. Both are measured once. */
#include "prof/prof.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

/* ---- this CPU's peak: chains of fused multiply-adds in registers ----------------------------- */

#if defined(__x86_64__)
/* FLOP/s of one core with vectors of `lanes` floats: ten independent chains, best of five rounds.
 */
#define FMA_RATE(name, Vec, lanes, isa)                                            \
  typedef float Vec __attribute__((vector_size(4 * (lanes))));                     \
  __attribute__((target(isa))) static double name(void) {                          \
    Vec a[10], x, y;                                                               \
    for (int i = 0; i < (lanes); i++) x[i] = 0.999f, y[i] = 1e-6f;                 \
    for (int k = 0; k < 10; k++) a[k] = x;                                         \
    double best = 0;                                                               \
    for (int round = 0; round < 5; round++) {                                      \
      double t = time_now_s();                                                     \
      int n = 300000;                                                              \
      for (int i = 0; i < n; i++) {                                                \
        _Pragma("GCC unroll 10") for (int k = 0; k < 10; k++) {                    \
          Vec r;                                                                   \
          __asm__("vfmadd213ps %2, %1, %0" : "=v"(r) : "v"(x), "v"(y), "0"(a[k])); \
          a[k] = r;                                                                \
        }                                                                          \
      }                                                                            \
      best = fmax(best, n * 10.0 * 2 * (lanes) / (time_now_s() - t));              \
    }                                                                              \
    float sum = 0;                                                                 \
    for (int k = 0; k < 10; k++) sum += a[k][0];                                   \
    return isfinite(sum) ? best : 0;                                               \
  }
FMA_RATE(fma_rate8, Vec8, 8, "avx2,fma")
FMA_RATE(fma_rate16, Vec16, 16, "avx512f")

static double measure_flops(void) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 0;
  double one = fma_rate8();
  if (__builtin_cpu_supports("avx512f")) one = fmax(one, fma_rate16());
  return one * pool_threads();
}
#else
static double measure_flops(void) { return 0; }
#endif

/* ---- memory: a sum over 256 MiB by all threads, best of three rounds ---------------------------
 */

#define SUM_BYTES ((size_t)256 << 20)
#define SUM_CHUNK ((size_t)4 << 20)

typedef struct Sum {
  const uint64_t *data;
  uint64_t *out;
} Sum;

static void sum_chunk(void *arg, int64_t i) {
  const Sum *s = arg;
  const uint64_t *p = s->data + (size_t)i * SUM_CHUNK / 8;
  uint64_t a[8] = {0};
  for (size_t k = 0; k < SUM_CHUNK / 8; k += 8)
    for (int j = 0; j < 8; j++) a[j] += p[k + (size_t)j];
  s->out[i] = a[0] + a[1] + a[2] + a[3] + a[4] + a[5] + a[6] + a[7];
}

static double measure_bandwidth(void) {
  uint64_t out[SUM_BYTES / SUM_CHUNK];
  uint64_t *data = malloc(SUM_BYTES);
  if (!data) return 0;
  memset(data, 1, SUM_BYTES);
  double best = 0;
  for (int round = 0; round < 3; round++) {
    double t = time_now_s();
    pool_run(COUNT_OF(out), sum_chunk, &(Sum){data, out});
    best = fmax(best, (double)SUM_BYTES / (time_now_s() - t));
  }
  free(data);
  return best;
}

static double flops, bandwidth;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void measure(void) {
  flops = measure_flops();
  bandwidth = measure_bandwidth();
}

double prof_host_flops(void) {
  pthread_once(&once, measure);
  return flops;
}

double prof_host_bandwidth(void) {
  pthread_once(&once, measure);
  return bandwidth;
}

void prof_host_peaks(Prof *p) {
  for (int i = 0; i < p->devices.n; i++) {
    ProfDevice *d = &p->devices.v[i];
    if (d->is_virtual) continue;
    d->peak_flops = prof_host_flops();
    d->bandwidth = prof_host_bandwidth();
  }
}
