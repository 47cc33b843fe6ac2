/* What the host's vector instructions allow, and its caches hold. */
#include <pthread.h>
#include <unistd.h>

#include "dev/cpu/kernel/kernel.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int bits = 128;
static int64_t second_cache = 512 << 10; /* where the system does not say */

static void know_host(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2")) bits = 256;
#ifdef WEFT_EMULATE_AVX512
  if (bits == 256) bits = 512;
#else
  if (bits == 256 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    bits = 512;
#endif
#endif
#ifdef _SC_LEVEL2_CACHE_SIZE
  long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (bytes > 0) second_cache = bytes;
#endif
  int want = env_choice("WEFT_VECTOR_BITS", "128|256|512");
  if (want >= 0) bits = MIN(bits, 128 << want);
}

int cpu_vector_bits(void) {
  pthread_once(&once, know_host);
  return bits;
}

int64_t cpu_second_cache(void) {
  pthread_once(&once, know_host);
  return second_cache;
}

#define BIG_CACHE (2 << 20)

bool cpu_big_cache(void) { return cpu_second_cache() >= BIG_CACHE; }

bool cpu_big_core(void) { return cpu_vector_bits() >= 512 && cpu_big_cache(); }
