/* dev/cpu/vinterp, private: the functions on strips of numbers, for each width of vectors. */
#ifndef WEFT_DEV_CPU_VINTERP_PRIV_H
#define WEFT_DEV_CPU_VINTERP_PRIV_H

#include <stdint.h>

#include "dev/cpu/loops/math_list.h"

/* In strips of 32 bits f32, i32 and u32 lie as in memory; i1 as 0 or -1; narrower integers as i32; bf16
 * and f16 as f32, which may have more digits (emit_priv.h). VInterp of 64 bits have f64, i64 and u64 so,
 * what is narrower as i64 and f32 as f64. u_: of unsigned numbers of all bits, i_: of both or of others, t_:
 * floats in the total order; _one: of one number, to be had n times. */
/* clang-format off */
#define STRIP_FNS(X)                                                                              \
  X(copy) X(neg) X(abs) X(sqrt) X(rsqrt) X(floor) X(ceil) X(round) X(sign) X(finite)              \
  X(f_to_i) X(f_to_u) X(f_to_i8) X(f_to_u8) X(f_to_i16) X(f_to_u16) X(f_to_mask) X(i_to_f)        \
  X(u_to_f) X(i_to_mask) X(mask_to_f) X(mask_to_i) X(add) X(sub) X(mul) X(div) X(max) X(min)      \
  X(eq) X(ne) X(ge) X(gt) X(le) X(lt) X(t_eq) X(t_ne) X(t_ge) X(t_gt) X(t_le) X(t_lt)             \
  X(select) X(clamp) X(i_neg) X(i_abs) X(i_sign) X(i_clamp) X(not) X(i_add) X(i_sub) X(i_mul)     \
  X(i_div) X(i_rem) X(u_div) X(u_rem) X(i_max) X(i_min) X(u_max) X(u_min) X(and) X(or) X(xor)     \
  X(shl) X(shr) X(sar) X(popcnt) X(clz) X(i_eq) X(i_ne) X(i_ge) X(i_gt) X(i_le) X(i_lt)           \
  X(u_ge) X(u_gt) X(u_le) X(u_lt) X(load_mask) X(store_mask) X(load_i8) X(load_u8) X(load_i16)    \
  X(load_u16) X(store_8) X(store_16) X(to_i8) X(to_u8) X(to_i16) X(to_u16)
#define STRIP_FNS_OF_32(X)                                                                        \
  MATH_FORMS(X) X(atan2)                                                                          \
  X(load_bf16) X(store_bf16) X(to_bf16) X(load_f16) X(store_f16) X(to_f16)                        \
  X(sin) X(cos) X(tan) X(power) X(rem) X(sin_one) X(cos_one) X(tan_one) X(power_one) X(rem_one)   \
  X(cbrt) X(cbrt_one)                                                                             \
  X(threefry_first) X(threefry_second) X(threefry_both)
#define STRIP_FNS_OF_64(X)                                                                        \
  X(load_f32) X(store_f32) X(to_f32) X(i_to_f32) X(u_to_f32) X(load_i32) X(load_u32) X(store_32)  \
  X(to_i32) X(to_u32) X(f_to_i32) X(f_to_u32)
#define STRIP_SUMS(X) X(add) X(mul) X(max) X(min) X(i_add) X(i_mul) X(i_max) X(i_min) X(u_max) X(u_min) X(and) X(or) X(xor)
/* clang-format on */

#define STRIP_ID(name, ...) STRIP_##name,
#define SUM_ID(name) SUM_##name,
enum { STRIP_FNS(STRIP_ID) STRIP_FNS_OF_32(STRIP_ID) STRIP_FNS_OF_64(STRIP_ID) N_STRIPS };
enum { STRIP_SUMS(SUM_ID) N_SUMS };

/* to[i] = f(in[0][i], ...); `to` may be one of `in`. same: bit k: in[k] is one vector of equal numbers,
 * for all i. */
typedef void (*StripFn)(void *to, const void *const *in, unsigned same, int64_t n);
/* Takes the strip into `count` (1, 2 or 4) vectors of sums, one vector after the other. */
typedef void (*StripSum)(void *sums, const void *x, int64_t n, int count);

/* `count` vectors of sums to one number, in all lanes of the first. */
typedef void (*StripFold)(void *sums, int count);

typedef struct StripSimd {
  int lanes, bytes;     /* bytes: of a number */
  StripFn fn[N_STRIPS]; /* NULL: not for numbers of that size */
  StripSum sum[N_SUMS];
  StripFold fold[N_SUMS];
} StripSimd;

extern const StripSimd vinterp_avx2, vinterp_avx512, vinterp_wide_avx2, vinterp_wide_avx512;

#endif
