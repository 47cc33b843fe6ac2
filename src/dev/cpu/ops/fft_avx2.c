/* fft.h with AVX2. */
#if defined(__x86_64__)
#define FN __attribute__((target("avx2,fma")))
#define BYTES 32
#define CODE fft_avx2
#include "dev/cpu/ops/fft_code.h"
#endif
