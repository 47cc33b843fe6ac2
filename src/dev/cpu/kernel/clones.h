/* dev/cpu, private: functions that the C compiler turns into vectors, built for several instruction
 * sets and chosen at load time. */
#ifndef WEFT_DEV_CPU_CLONES_H
#define WEFT_DEV_CPU_CLONES_H

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), optimize("O3")))
/* Products and sums may become one instruction, rounded once. */
#define CLONES_FUSED                                                           \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), \
                 optimize("O3", "fp-contract=fast")))
#else
#define CLONES
#define CLONES_FUSED
#endif

/* Before a loop: its iterations do not overlap. */
#if defined(__clang__)
#define IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define IVDEP _Pragma("GCC ivdep")
#endif

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdbool.h>

/* __builtin_cpu_supports("f16c") is an error in clang 14. Asked once: cpuid takes some 20 us where a
 * hypervisor answers it. */
static inline bool has_f16c(void) {
  static int known; /* 1 no, 2 yes */
  int k = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (!k) {
    unsigned a, b, c = 0, d;
    __builtin_cpu_init();
    k = __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) ? 2 : 1;
    __atomic_store_n(&known, k, __ATOMIC_RELAXED);
  }
  return k == 2;
}
#endif

#endif
