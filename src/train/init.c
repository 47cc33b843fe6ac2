/* Initial values from counter-based random numbers: element i of a tensor depends on (seed,
 * name, i) only. */
#include "train/train_priv.h"

#include <math.h>
#include <stdlib.h>

void threefry2x32(const uint32_t key[2], const uint32_t in[2], uint32_t out[2]) {
  static const int rot[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  uint32_t ks[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA}, x = in[0] + ks[0],
           y = in[1] + ks[1];
  for (int g = 0; g < 5; g++) {
    for (int i = 0; i < 4; i++) {
      int r = rot[g & 1][i];
      x += y;
      y = (y << r | y >> (32 - r)) ^ x;
    }
    x += ks[(g + 1) % 3];
    y += ks[(g + 2) % 3] + (uint32_t)g + 1;
  }
  out[0] = x;
  out[1] = y;
}

static double uniform01(uint32_t bits) { return ((double)bits + 0.5) / 4294967296.0; }

typedef struct Fill {
  uint64_t key;
  bool normal;
  double scale;
  int64_t count;
  float *out;
} Fill;

enum { CHUNK = 1 << 15 };

static void fill_chunk(void *arg, int64_t c) {
  const Fill *f = arg;
  int64_t end = MIN(f->count, (c + 1) * CHUNK);
  for (int64_t i = c * CHUNK; i < end; i += 2) { /* two numbers from one draw: Box-Muller */
    uint64_t w = random_word(f->key, 0, (uint64_t)i);
    double u = uniform01((uint32_t)w), v = uniform01((uint32_t)(w >> 32)), a, b;
    if (f->normal) {
      double r = sqrt(-2 * log(u)), phi = 6.283185307179586 * v;
      a = r * cos(phi), b = r * sin(phi);
    } else {
      a = 2 * u - 1, b = 2 * v - 1;
    }
    f->out[i] = (float)(a * f->scale);
    if (i + 1 < end) f->out[i + 1] = (float)(b * f->scale);
  }
}

/* Gram-Schmidt on the shorter side; done twice for accuracy. m[rows, cols] holds normal numbers. */
static void orthogonalise(float *m, int64_t rows, int64_t cols, double scale) {
  bool wide = rows <= cols;
  int64_t n = wide ? rows : cols, len = wide ? cols : rows, step = wide ? 1 : cols,
          next = wide ? cols : 1;
  for (int64_t i = 0; i < n; i++) {
    float *v = m + i * next;
    for (int pass = 0; pass < 2; pass++) {
      for (int64_t j = 0; j < i; j++) {
        const float *u = m + j * next;
        double dot = 0;
        for (int64_t k = 0; k < len; k++) dot += (double)v[k * step] * u[k * step];
        for (int64_t k = 0; k < len; k++) v[k * step] -= (float)(dot * u[k * step]);
      }
      double norm = 0;
      for (int64_t k = 0; k < len; k++) norm += (double)v[k * step] * v[k * step];
      norm = norm > 0 ? 1 / sqrt(norm) : 0;
      for (int64_t k = 0; k < len; k++) v[k * step] = (float)(v[k * step] * norm);
    }
  }
  for (int64_t i = 0; i < rows * cols; i++) m[i] = (float)(m[i] * scale);
}

void init_fill(Init in, const char *name, uint64_t seed, DType type, int rank, const int64_t *dims,
               void *out) {
  int64_t count = 1, last = rank ? dims[rank - 1] : 1;
  for (int i = 0; i < rank; i++) count *= dims[i];
  if (in.kind == INIT_CONST || type != DT_F32) {
    for (int64_t i = 0; i < count; i++)
      elem_set_f64(type, (char *)out + i * dtype_bytes(type), in.scale);
    return;
  }
  /* kernels (H, W, in, out): each output sees H W in numbers, each input goes to H W out */
  int64_t window = rank > 2 ? count / MAX(1, last * dims[rank - 2]) : 1;
  double fan_in = (double)(in.fan_in ? in.fan_in : rank > 1 ? count / MAX(1, last) : last);
  double fan_out = (double)(in.fan_out ? in.fan_out : last * window);
  Fill f = {hash_bytes(name, strlen(name), seed), true, in.scale, count, out};
  switch (in.kind) {
  case INIT_UNIFORM: f.normal = false; break;
  case INIT_GLOROT_UNIFORM:
    f.normal = false;
    f.scale *= sqrt(6 / (fan_in + fan_out));
    break;
  case INIT_HE_NORMAL: f.scale *= sqrt(2 / fan_in); break;
  case INIT_LECUN_NORMAL: f.scale *= sqrt(1 / fan_in); break;
  case INIT_TORCH_UNIFORM:
    f.normal = false;
    f.scale *= sqrt(1 / fan_in);
    break;
  case INIT_ORTHOGONAL: f.scale = 1; break;
  default: break;
  }
  pool_run((count + CHUNK - 1) / CHUNK, fill_chunk, &f);
  if (in.kind == INIT_ORTHOGONAL && count) orthogonalise(out, count / last, last, in.scale);
}
