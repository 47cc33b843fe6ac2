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

#endif
