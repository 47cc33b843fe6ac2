/* Winograd's arithmetic with AVX-512. */
#if defined(__x86_64__)
#include "dev/cpu/kernel/avx512.h"

#include "dev/cpu/conv/winograd_simd.h"

#define TARGET AVX512

#define V_LANES 16
typedef V16 V;
#define V_ZERO V16_ZERO
#define V_SET V16_SET
#define V_ADD V16_ADD
#define V_SUB V16_SUB
#define V_MUL V16_MUL
#define V_MADD V16_MADD
#define V_LOAD V16_LOAD
#define V_STORE V16_STORE
#define V_LOAD_PART(p, n) V16_LOAD_MASK(p, V16_MASK(n))
#define V_STORE_PART(p, n, x) V16_STORE_MASK(p, V16_MASK(n), x)
#define V_BF16 V16_BF16
#define V_STORE_BF16 V16_STORE_BF16
#define V_FINITE V16_FINITE

#define V_FMA V16_FMA
#define ROWS 12
#define PANELS 2
#define TERMS
#include "dev/cpu/conv/winograd_tile.h"

OUTER(8, 1)
OUTER(8, 2)
OUTER(8, 3)

static void outer(const float *a, const float *b, int64_t b_step, int64_t many, int64_t tiles,
                  float *to, int64_t to_step, int add) {
  while (many > 0) {
    int64_t n = many == 4 ? 2 : many < 3 ? many : 3;
    for (int h = 0; h < PANEL; h += 8)
      (n == 3   ? outer_8x3
       : n == 2 ? outer_8x2
                : outer_8x1)(a + h, b, b_step, tiles, to + h * to_step, to_step, add);
    many -= n;
    b += n * b_step;
    to += n * PANEL;
  }
}

const WinoSimd wino_avx512[2][2] = WINO_ALL;
#endif
