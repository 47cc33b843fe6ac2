/* fft.h with the vectors that every host has. */
#define FN
#define BYTES 16
#define CODE fft_plain
#include "dev/cpu/ops/fft_code.h"
