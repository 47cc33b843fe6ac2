/* The innermost kernels of amx.h. Where the build emulates AVX-512 and the host has no tiles they are
 * emulated too, so that all that is around them is tested there. */
#include "dev/cpu/dot/amx.h"

#include "dev/cpu/kernel/kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define FN __attribute__((target("amx-tile,amx-bf16,amx-int8")))

typedef struct Config { /* LDTILECFG's operand */
  uint8_t palette, start, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} Config;

/* Tiles 0 .. 3 are results, by rows; 4, 5 are a's, 6, 7 b's. */
FN static void begin(int rows) {
  Config c = {.palette = 1};
  int first = rows < AMX_SIDE ? rows : AMX_SIDE, second = rows - first;
  for (int t = 0; t < 8; t++) {
    bool low = t == 0 || t == 1 || t == 4;
    int r = t >= 6 ? AMX_SIDE : low ? first : second;
    c.rows[t] = (uint8_t)r;
    c.row_bytes[t] = r ? AMX_STEP : 0;
  }
  __asm__ volatile("" ::"r"(&c) : "memory"); /* gcc 12 says that 8 bytes are read */
  _tile_loadconfig(&c);
}

FN static void end(void) { _tile_release(); }

#define EACH(X) X(0) if (N > 1) X(1)
/* The instructions name tiles by constants. */
#define MULTIPLY(DP)            \
  DP(0, 4, 6);                  \
  if (columns > 1) DP(1, 4, 7); \
  if (rows > 1) DP(2, 5, 6);    \
  if (rows > 1 && columns > 1) DP(3, 5, 7);

#define OPEN                                                            \
  const char *a = x->a, *b = x->b, *b1 = x->b + x->b_panel;             \
  char *c1 = x->c + AMX_SIDE * x->c_row;                                \
  size_t c_row = (size_t)x->c_row, a_row = (size_t)x->a_row;            \
  if (x->add) {                                                         \
    const char *f = x->add, *f1 = f + AMX_SIDE * AMX_SUMS_ROW;          \
    _tile_loadd(0, f, AMX_SUMS_ROW);                                    \
    if (columns > 1) _tile_loadd(1, f + 64, AMX_SUMS_ROW);              \
    if (rows > 1) _tile_loadd(2, f1, AMX_SUMS_ROW);                     \
    if (rows > 1 && columns > 1) _tile_loadd(3, f1 + 64, AMX_SUMS_ROW); \
  } else {                                                              \
    _tile_zero(0);                                                      \
    if (columns > 1) _tile_zero(1);                                     \
    if (rows > 1) _tile_zero(2);                                        \
    if (rows > 1 && columns > 1) _tile_zero(3);                         \
  }

#define KERNEL(name, DP, rows_, columns_)                         \
  FN static void name##_##rows_##columns_(const AmxBlock *x) {    \
    const int rows = rows_, columns = columns_;                   \
    OPEN for (int64_t s = 0; s < x->steps; s++) {                 \
      _tile_loadd(6, b, AMX_STEP);                                \
      _tile_loadd(4, a, a_row);                                   \
      if (columns > 1) _tile_loadd(7, b1, AMX_STEP);              \
      if (rows > 1) _tile_loadd(5, a + AMX_SIDE * a_row, a_row);  \
      MULTIPLY(DP)                                                \
      gemm_ask(x->next);                                          \
      a += x->a_step;                                             \
      b += AMX_TILE_B;                                            \
      b1 += AMX_TILE_B;                                           \
    }                                                             \
    _tile_stored(0, x->c, c_row);                                 \
    if (columns > 1) _tile_stored(1, x->c + 64, c_row);           \
    if (rows > 1) _tile_stored(2, c1, c_row);                     \
    if (rows > 1 && columns > 1) _tile_stored(3, c1 + 64, c_row); \
  }
#define KERNELS(name, DP) \
  KERNEL(name, DP, 1, 1)  \
  KERNEL(name, DP, 1, 2)  \
  KERNEL(name, DP, 2, 1)  \
  KERNEL(name, DP, 2, 2)  \
  static const AmxKernels name = {begin, end, {{name##_11, name##_12}, {name##_21, name##_22}}};

/* clang-format off */
KERNELS(bf16, _tile_dpbf16ps)
KERNELS(bytes_ss, _tile_dpbssd)
KERNELS(bytes_su, _tile_dpbsud)
KERNELS(bytes_us, _tile_dpbusd)
KERNELS(bytes_uu, _tile_dpbuud)
/* clang-format on */
static const AmxKernels *const bytes[2][2] = {{&bytes_uu, &bytes_us}, {&bytes_su, &bytes_ss}};

#ifdef WEFT_EMULATE_AVX512
static _Thread_local int said_rows;
static void begin_emulated(int rows) { said_rows = rows; }
static void end_emulated(void) { said_rows = 0; }

typedef enum Kind { UU, US, SU, SS, BF16 } Kind;

static double part(const char *p, int64_t i, Kind kind, bool of_a) {
  if (kind == BF16) return elem_get_f64(DT_BF16, p + 2 * i);
  return of_a ? (kind & 2 ? (double)((const int8_t *)p)[i] : (double)((const uint8_t *)p)[i])
              : (kind & 1 ? (double)((const int8_t *)p)[i] : (double)((const uint8_t *)p)[i]);
}

static void emulated(const AmxBlock *x, int rows, int columns, Kind kind) {
  const int per = kind == BF16 ? 2 : 4;
  if (said_rows <= (rows - 1) * AMX_SIDE || said_rows > rows * AMX_SIDE) abort();
  for (int i = 0; i < said_rows; i++)
    for (int j = 0; j < columns * AMX_SIDE; j++) {
      char *c = x->c + i * x->c_row + j * 4;
      const char *f = x->add ? x->add + i * AMX_SUMS_ROW + j * 4 : NULL;
      double sum = 0;
      if (x->add) sum = kind == BF16 ? elem_get_f64(DT_F32, f) : (double)elem_get_i64(DT_I32, f);
      for (int64_t s = 0; s < x->steps; s++) {
        const char *a = x->a + s * x->a_step + i * x->a_row,
                   *b = x->b + j / AMX_SIDE * x->b_panel + s * AMX_TILE_B + j % AMX_SIDE * 4;
        for (int g = 0; g < AMX_SIDE; g++)
          for (int u = 0; u < per; u++)
            sum += part(a, g * per + u, kind, true) * part(b + g * AMX_STEP, u, kind, false);
      }
      if (kind == BF16) elem_set_f64(DT_F32, c, sum);
      else elem_set_i64(DT_I32, c, (int64_t)sum);
    }
}

#define EMULATED(name, kind)                                            \
  static void name##_11(const AmxBlock *x) { emulated(x, 1, 1, kind); } \
  static void name##_12(const AmxBlock *x) { emulated(x, 1, 2, kind); } \
  static void name##_21(const AmxBlock *x) { emulated(x, 2, 1, kind); } \
  static void name##_22(const AmxBlock *x) { emulated(x, 2, 2, kind); } \
  static const AmxKernels name = {                                      \
      begin_emulated, end_emulated, {{name##_11, name##_12}, {name##_21, name##_22}}};
EMULATED(plain_bf16, BF16)
EMULATED(plain_uu, UU)
EMULATED(plain_us, US)
EMULATED(plain_su, SU)
EMULATED(plain_ss, SS)
static const AmxKernels *const plain_bytes[2][2] = {{&plain_uu, &plain_us}, {&plain_su, &plain_ss}};
#define OR_EMULATED(k) (gemm_kernels() ? (k) : NULL)
#else
#define OR_EMULATED(k) NULL
#endif

const AmxKernels *amx_bf16(void) {
  return cpu_has_tiles(CPU_TILES_BF16) ? &bf16 : OR_EMULATED(&plain_bf16);
}

const AmxKernels *amx_bytes(bool a_signed, bool b_signed) {
  return cpu_has_tiles(CPU_TILES_INT8) ? bytes[a_signed][b_signed]
                                       : OR_EMULATED(plain_bytes[a_signed][b_signed]);
}
#else
const AmxKernels *amx_bf16(void) { return NULL; }
const AmxKernels *amx_bytes(bool a_signed, bool b_signed) {
  (void)a_signed;
  (void)b_signed;
  return NULL;
}
#endif
