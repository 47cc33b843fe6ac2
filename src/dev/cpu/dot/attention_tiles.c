/* Loops over a tile of scores, [keys][across]. */
#include <math.h>

#include "dev/cpu/dot/attention.h"
#include "dev/cpu/kernel/clones.h"

#define ACROSS ATTENTION_ACROSS
#define ROUNDER 0x1.8p23f /* added and taken away: the nearest integer, in the low bits meanwhile */
#define LEAST -87.0f      /* below it an exponential counts as zero */

/* e^x for x that is not above zero by more than rounding; relative error 3.1e-9 and its rounding, as math_forms.h has it. */
static inline __attribute__((always_inline)) float exponential(float x) {
  float y = x < LEAST ? LEAST : x, t = y * 1.4426950408889634f + ROUNDER, n = t - ROUNDER;
  float r = n * -1.42860682030941723212e-6f + (n * -0.693145751953125f + y);
  float e = 1.381949056e-03f;
  e = e * r + 8.368690498e-03f;
  e = e * r + 4.166828096e-02f;
  e = e * r + 1.666652113e-01f;
  e = e * r + 4.999999404e-01f;
  e = e * r + 1.0f;
  e = e * r + 1.0f;
  uint32_t bits, turns;
  memcpy(&bits, &e, 4);
  memcpy(&turns, &t, 4);
  bits += turns << 23;
  memcpy(&e, &bits, 4);
  e += n - n; /* NaN stays */
  return x < LEAST ? 0 : e;
}

#define LANES_OF(across)                                                                         \
  CLONES_FUSED static void most_##across(int64_t n, const float *s, float *most) {               \
    float m[across];                                                                             \
    memcpy(m, most, sizeof m);                                                                   \
    for (int64_t i = 0; i < n; i++, s += across)                                                 \
      for (int k = 0; k < across; k++) m[k] = s[k] > m[k] ? s[k] : m[k];                         \
    memcpy(most, m, sizeof m);                                                                   \
  }                                                                                              \
  CLONES_FUSED static void soften_##across(int64_t n, float *s, const float *from, float *sum) { \
    float all[across] = {0};                                                                     \
    for (int64_t i = 0; i < n; i++, s += across) IVDEP for (int k = 0; k < across; k++) {        \
        float e = exponential(s[k] - from[k]);                                                   \
        s[k] = e;                                                                                \
        all[k] += e;                                                                             \
      }                                                                                          \
    for (int k = 0; k < across; k++) sum[k] += all[k];                                           \
  }                                                                                              \
  CLONES_FUSED static void weights_##across(int64_t n, float *s, const float *from,              \
                                            const float *part) {                                 \
    for (int64_t i = 0; i < n; i++, s += across)                                                 \
      IVDEP for (int k = 0; k < across; k++) s[k] = exponential(s[k] - from[k]) * part[k];       \
  }                                                                                              \
  CLONES_FUSED static void slopes_##across(int64_t n, const float *p, float *dp,                 \
                                           const float *mean, float scale) {                     \
    for (int64_t i = 0; i < n; i++, p += across, dp += across)                                   \
      IVDEP for (int k = 0; k < across; k++) dp[k] = p[k] * (dp[k] - mean[k]) * scale;           \
  }
LANES_OF(32)
LANES_OF(16)

bool attention_soften(int64_t n, int64_t across, float *s, float *most, float *sum, float *again) {
  float now[ACROSS], from[ACROSS];
  bool shrinks = false;
  memcpy(now, most, sizeof *now * (size_t)across);
  if (across == 32) most_32(n, s, now);
  else most_16(n, s, now);
  for (int k = 0; k < across; k++) {
    from[k] = now[k] == -INFINITY ? 0 : now[k]; /* a row that has seen nothing has no NaN yet */
    again[k] = most[k] == now[k] ? 1 : exponential(most[k] - now[k]);
    shrinks |= again[k] != 1;
    sum[k] *= again[k];
    most[k] = now[k];
  }
  if (across == 32) soften_32(n, s, from, sum);
  else soften_16(n, s, from, sum);
  return shrinks;
}

void attention_weights(int64_t n, int64_t across, float *s, const float *most, const float *part) {
  if (across == 32) weights_32(n, s, most, part);
  else weights_16(n, s, most, part);
}

void attention_slopes(int64_t n, int64_t across, const float *p, float *dp, const float *mean,
                      float scale) {
  if (across == 32) slopes_32(n, p, dp, mean, scale);
  else slopes_16(n, p, dp, mean, scale);
}

CLONES void attention_scale(int64_t n, float *x, float by) {
  for (int64_t i = 0; i < n; i++) x[i] *= by;
}
