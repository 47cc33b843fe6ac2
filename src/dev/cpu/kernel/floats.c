/* bf16, f16 and bytes to f32 and back, floats rounded to nearest even: a vector at a time where the host can;
 * floats that are not finite. */
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <stdatomic.h>

#include "dev/cpu/kernel/clones.h"
#include "dev/cpu/kernel/kernel.h"

#if defined(__x86_64__)
#define F16C __attribute__((target("avx,f16c")))

F16C static int64_t eights_from_f16(const uint16_t *in, float *out, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(in + i))));
  return i;
}

F16C static int64_t eights_to_f16(const float *in, uint16_t *out, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128((__m128i *)(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(in + i), 0));
  return i;
}
#else
static bool has_f16c(void) { return false; }
static int64_t eights_from_f16(const uint16_t *in, float *out, int64_t n) {
  (void)in, (void)out, (void)n;
  return 0;
}
static int64_t eights_to_f16(const float *in, uint16_t *out, int64_t n) {
  (void)in, (void)out, (void)n;
  return 0;
}
#endif

CLONES static void from_bf16(const uint16_t *in, float *out, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    uint32_t u = (uint32_t)in[i] << 16;
    memcpy(&out[i], &u, 4);
  }
}

CLONES static void to_bf16(const float *in, uint16_t *out, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    uint32_t u;
    memcpy(&u, &in[i], 4);
    uint32_t r = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
    out[i] = (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? (u >> 16) | 0x40 : r);
  }
}

#define FROM_BYTES(type) \
  for (int64_t i = 0; i < n; i++) out[i] = (float)((const type *)in)[i]

CLONES static void from_bytes(bool sign, const void *in, float *out, int64_t n) {
  if (sign) FROM_BYTES(int8_t);
  else FROM_BYTES(uint8_t);
}

CLONES static void to_int32(const float *in, int32_t *out, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = (int32_t)in[i];
}

void cpu_to_f32(DType t, const void *in, float *out, int64_t n) {
  const uint16_t *s = in;
  if (t == DT_I8 || t == DT_U8) {
    from_bytes(t == DT_I8, in, out, n);
    return;
  }
  if (t == DT_BF16) {
    from_bf16(s, out, n);
    return;
  }
  for (int64_t i = has_f16c() ? eights_from_f16(s, out, n) : 0; i < n; i++)
    out[i] = f16_to_f32(s[i]);
}

void cpu_from_f32(DType t, const float *in, void *out, int64_t n) {
  uint16_t *d = out;
  if (dtype_is_int(t)) {
    if (dtype_bytes(t) == 4) to_int32(in, out, n);
    else
      for (int64_t i = 0; i < n; i++)
        elem_set_i64(t, (char *)out + i * dtype_bytes(t), (int64_t)in[i]);
    return;
  }
  if (t == DT_BF16) {
    to_bf16(in, d, n);
    return;
  }
  for (int64_t i = has_f16c() ? eights_to_f16(in, d, n) : 0; i < n; i++) d[i] = f32_to_f16(in[i]);
}

typedef struct Cast {
  DType t;
  char *narrow;
  float *wide;
} Cast;

static void widen(void *arg, int64_t begin, int64_t end) {
  const Cast *c = arg;
  cpu_to_f32(c->t, c->narrow + dtype_bytes(c->t) * begin, c->wide + begin, end - begin);
}

static void narrow(void *arg, int64_t begin, int64_t end) {
  const Cast *c = arg;
  cpu_from_f32(c->t, c->wide + begin, c->narrow + dtype_bytes(c->t) * begin, end - begin);
}

void cpu_widen(DType t, const void *in, float *out, int64_t n) {
  Cast c = {t, (char *)(uintptr_t)in, out};
  cpu_parallel(n, 65536, widen, &c);
}

void cpu_narrow(DType t, const float *in, void *out, int64_t n) {
  Cast c = {t, out, (float *)(uintptr_t)in};
  cpu_parallel(n, 65536, narrow, &c);
}

typedef struct Scan {
  const void *in;
  uint32_t exponent; /* of what is not finite, in place; halves: of two bytes each */
  bool halves;
  atomic_bool found;
} Scan;

CLONES static bool any_word(const uint32_t *in, uint32_t exponent, int64_t n) {
  uint32_t any = 0;
  for (int64_t i = 0; i < n; i++) any |= (in[i] & exponent) == exponent;
  return any;
}

CLONES static bool any_half(const uint16_t *in, uint16_t exponent, int64_t n) {
  uint16_t any = 0;
  for (int64_t i = 0; i < n; i++) any |= (in[i] & exponent) == exponent;
  return any;
}

static void scan(void *arg, int64_t begin, int64_t end) {
  Scan *s = arg;
  if (s->halves ? any_half((const uint16_t *)s->in + begin, (uint16_t)s->exponent, end - begin)
                : any_word((const uint32_t *)s->in + begin, s->exponent, end - begin))
    s->found = true;
}

bool cpu_finite(DType t, const void *in, int64_t n) {
  Scan s = {.in = in,
            .exponent = t == DT_F32    ? 0x7f800000
                        : t == DT_BF16 ? 0x7f80
                                       : 0x7c00,
            .halves = t != DT_F32};
  cpu_parallel(n, 65536, scan, &s);
  return !s.found;
}
