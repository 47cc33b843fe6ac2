/* fft.h with AVX-512. */
#if defined(__x86_64__)
#ifdef WEFT_EMULATE_AVX512
#define FN __attribute__((target("avx2,fma")))
#else
#define FN __attribute__((target("avx512f,avx512dq,fma")))
#endif
#define BYTES 64
#define CODE fft_avx512
#include "dev/cpu/ops/fft_code.h"
#endif
