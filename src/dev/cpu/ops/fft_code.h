/* fft.h for one width of vectors. The includer defines FN (target attributes), BYTES and CODE, the
 * name. */
#include <string.h>

#include "base/base.h"
#include "dev/cpu/ops/fft.h"

#define INLINE FN static inline __attribute__((always_inline))

#define ZIP_LO_2 0, 2
#define ZIP_HI_2 1, 3
#define EVEN_2 0, 2
#define ODD_2 1, 3
#define BACK_2 1, 0
#define ZIP_LO_4 0, 4, 1, 5
#define ZIP_HI_4 2, 6, 3, 7
#define EVEN_4 0, 2, 4, 6
#define ODD_4 1, 3, 5, 7
#define BACK_4 3, 2, 1, 0
#define ZIP_LO_8 0, 8, 1, 9, 2, 10, 3, 11
#define ZIP_HI_8 4, 12, 5, 13, 6, 14, 7, 15
#define EVEN_8 0, 2, 4, 6, 8, 10, 12, 14
#define ODD_8 1, 3, 5, 7, 9, 11, 13, 15
#define BACK_8 7, 6, 5, 4, 3, 2, 1, 0
#define ZIP_LO_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define ZIP_HI_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define EVEN_16 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD_16 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define BACK_16 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define AT(what) PASTE(what##_, LANES)

#define T float
#define NAME(x) x##_f32
#if BYTES == 64
#define LANES 16
#elif BYTES == 32
#define LANES 8
#else
#define LANES 4
#endif
#include "dev/cpu/ops/fft_passes.h"
#include "dev/cpu/ops/fft_lines.h"
#undef T
#undef NAME
#undef LANES

#define T double
#define NAME(x) x##_f64
#if BYTES == 64
#define LANES 8
#elif BYTES == 32
#define LANES 4
#else
#define LANES 2
#endif
#include "dev/cpu/ops/fft_passes.h"
#include "dev/cpu/ops/fft_lines.h"

const FftCode CODE = {BYTES,
                      {lines_f32, lines_f64},
                      {row_f32, row_f64},
                      {forward_f32, forward_f64},
                      {untie_f32, untie_f64},
                      {tie_f32, tie_f64}};
