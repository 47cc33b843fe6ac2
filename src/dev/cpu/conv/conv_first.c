/* First layers: convolutions of images with few channels, and their weights' gradients, channels
 * last. For each row of results the rows under its windows are copied with their padding, so that
 * element t of the window of place c lies at offset[t] + c * step: nothing is gathered. Then blocks
 * of 6 places x 16 channels forward, of 5 elements x 16 channels for gradients, in registers.
 * Gradients are summed in PARTS of the rows, added in order. */
#include "dev/cpu/conv/conv.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"

#define AVX2 __attribute__((target("avx2,fma")))
#define PARTS 16
#define BLOCK 6    /* places */
#define ELEMENTS 5 /* of windows */
#define MAX_ELEMENTS 1024

typedef struct First {
  const float *x;
  float *y, *w; /* w: [elements][depth], depth a multiple of 16; gradients: PARTS of these */
  ConvPlane g;
  int64_t depth; /* channels of Y, up to a multiple of 16 */
  int64_t wide;  /* elements of a copied row */
  int64_t elements;
  int64_t offset[MAX_ELEMENTS + ELEMENTS]; /* zeros after the last */
} First;

bool conv_first_fits(const ConvShape *s) {
  const ConvView *x = &s->v[X], *w = &s->v[W];
  int64_t elements = x->dims[1];
  for (int i = 3; i < w->n; i++) elements *= w->dims[i];
  return s->form != CONV_DATA && s->groups == 1 && !conv_patches(s) && (x->n == 3 || x->n == 4) &&
         x->dims[1] < 8 && s->v[Y].dims[1] >= 8 && elements <= MAX_ELEMENTS &&
         cpu_vector_bits() >= 256;
}

/* The rows under the windows of row `row` of the results, with zeros outside. */
static void copy_rows(const First *p, int64_t image, int64_t row, float *to) {
  int64_t c = p->g.channels, first = p->g.low[1] * c, last = MIN(p->wide, first + p->g.width * c),
          from = 0;
  if (first < 0) from = -first, first = 0;
  for (int64_t i = 0; i < p->g.rows; i++, to += p->wide) {
    int64_t y = row * p->g.step[0] + i * p->g.apart[0] - p->g.low[0];
    if (y < 0 || y >= p->g.height || last <= first) {
      memset(to, 0, sizeof(float) * (size_t)p->wide);
      continue;
    }
    memset(to, 0, sizeof(float) * (size_t)first);
    memcpy(to + first, p->x + image * p->g.x_image + y * p->g.x_row + from,
           sizeof(float) * (size_t)(last - first));
    memset(to + last, 0, sizeof(float) * (size_t)(p->wide - last));
  }
}

AVX2 static inline __m256i lanes(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n > 8   ? 8
                                              : n < 0 ? 0
                                                      : (int)n),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* Six places x 16 channels; n places and m channels are stored. */
AVX2 static void block(const First *p, const float *x, int64_t step, const float *w, float *y,
                       int64_t n, int64_t m) {
  __m256 a[BLOCK][2];
#pragma GCC unroll 6
  for (int i = 0; i < BLOCK; i++) a[i][0] = a[i][1] = _mm256_setzero_ps();
  for (int64_t t = 0; t < p->elements; t++, w += p->depth) {
    const float *at = x + p->offset[t];
    __m256 w0 = _mm256_load_ps(w), w1 = _mm256_load_ps(w + 8);
#pragma GCC unroll 6
    for (int i = 0; i < BLOCK; i++) {
      __m256 v = _mm256_broadcast_ss(at + i * step);
      a[i][0] = _mm256_fmadd_ps(v, w0, a[i][0]);
      a[i][1] = _mm256_fmadd_ps(v, w1, a[i][1]);
    }
  }
  if (n >= BLOCK && m >= 16) { /* masked stores are slow */
#pragma GCC unroll 6
    for (int i = 0; i < BLOCK; i++) {
      _mm256_storeu_ps(y + i * p->g.y_pixel, a[i][0]);
      _mm256_storeu_ps(y + i * p->g.y_pixel + 8, a[i][1]);
    }
    return;
  }
  float rest[BLOCK][16];
#pragma GCC unroll 6
  for (int i = 0; i < BLOCK; i++) {
    _mm256_storeu_ps(rest[i], a[i][0]);
    _mm256_storeu_ps(rest[i] + 8, a[i][1]);
  }
  for (int64_t i = 0; i < MIN(n, BLOCK); i++)
    memcpy(y + i * p->g.y_pixel, rest[i], sizeof(float) * (size_t)MIN(m, 16));
}

static void result_rows(void *arg, int64_t begin, int64_t end) {
  const First *p = arg;
  int64_t step = p->g.step[1] * p->g.channels;
  float *rows = cpu_scratch(sizeof(float) * (size_t)(p->g.rows * p->wide + BLOCK * step));
  for (int64_t b = begin; b < end; b++) {
    int64_t image = b / p->g.down, row = b % p->g.down;
    copy_rows(p, image, row, rows);
    float *y = p->y + image * p->g.y_image + row * p->g.y_row;
    for (int64_t k = 0; k < p->depth; k += 16)
      for (int64_t c = 0; c < p->g.across; c += BLOCK)
        block(p, rows + c * step, step, p->w + k, y + c * p->g.y_pixel + k, p->g.across - c,
              p->g.depth - k);
  }
}

/* to[t][0..15] += sum over n places of x[offset[t] + c * step] * y[c][0..15], for ELEMENTS t; of y
 * the first m channels. */
AVX2 static inline __attribute__((always_inline)) void
along(const int64_t *offset, const float *x, int64_t step, const float *y, int64_t y_step,
      int64_t n, bool whole, __m256i m0, __m256i m1, float *to, int64_t to_step) {
  __m256 a[ELEMENTS][2];
  const float *at[ELEMENTS];
#pragma GCC unroll 5
  for (int i = 0; i < ELEMENTS; i++) a[i][0] = a[i][1] = _mm256_setzero_ps(), at[i] = x + offset[i];
  for (int64_t c = 0, s = 0; c < n; c++, s += step, y += y_step) {
    __m256 v0 = whole ? _mm256_loadu_ps(y) : _mm256_maskload_ps(y, m0);
    __m256 v1 = whole ? _mm256_loadu_ps(y + 8) : _mm256_maskload_ps(y + 8, m1);
#pragma GCC unroll 5
    for (int i = 0; i < ELEMENTS; i++) {
      __m256 e = _mm256_broadcast_ss(at[i] + s);
      a[i][0] = _mm256_fmadd_ps(e, v0, a[i][0]);
      a[i][1] = _mm256_fmadd_ps(e, v1, a[i][1]);
    }
  }
#pragma GCC unroll 5
  for (int i = 0; i < ELEMENTS; i++) {
    float *row = to + i * to_step;
    _mm256_store_ps(row, _mm256_add_ps(_mm256_load_ps(row), a[i][0]));
    _mm256_store_ps(row + 8, _mm256_add_ps(_mm256_load_ps(row + 8), a[i][1]));
  }
}

AVX2 static void weight_parts(void *arg, int64_t begin, int64_t end) {
  const First *p = arg;
  int64_t step = p->g.step[1] * p->g.channels, all = p->g.images * p->g.down;
  int64_t padded = (p->elements + ELEMENTS - 1) / ELEMENTS * ELEMENTS, size = padded * p->depth;
  float *rows = cpu_scratch(sizeof(float) * (size_t)(p->g.rows * p->wide + BLOCK * step));
  for (int64_t part = begin; part < end; part++) {
    float *w = p->w + part * size;
    memset(w, 0, sizeof(float) * (size_t)size);
    for (int64_t b = all * part / PARTS; b < all * (part + 1) / PARTS; b++) {
      int64_t image = b / p->g.down, row = b % p->g.down;
      copy_rows(p, image, row, rows);
      const float *y = p->y + image * p->g.y_image + row * p->g.y_row;
      for (int64_t k = 0; k < p->depth; k += 16) {
        int64_t left = p->g.depth - k;
        __m256i m0 = lanes(left), m1 = lanes(left - 8);
        for (int64_t t = 0; t < padded; t += ELEMENTS) {
          float *to = w + t * p->depth + k;
          if (left >= 16)
            along(p->offset + t, rows, step, y + k, p->g.y_pixel, p->g.across, true, m0, m1, to,
                  p->depth);
          else
            along(p->offset + t, rows, step, y + k, p->g.y_pixel, p->g.across, false, m0, m1, to,
                  p->depth);
        }
      }
    }
  }
}

bool conv_first_run(const ConvShape *s, float *const *data) {
  const ConvView *x = &s->v[X], *w = &s->v[W], *y = &s->v[Y];
  bool weights = s->form == CONV_WEIGHTS;
  First p = {.x = data[X] + x->offset, .y = data[Y] + y->offset, .g = conv_plane(s)};
  p.depth = (p.g.depth + 15) / 16 * 16;
  p.wide = ((p.g.across - 1) * p.g.step[1] + (p.g.columns - 1) * p.g.apart[1] + 1) * p.g.channels;
  for (int64_t r = 0; r < p.g.rows; r++)
    for (int64_t i = 0; i < p.g.columns; i++)
      for (int64_t c = 0; c < p.g.channels; c++)
        p.offset[p.elements++] = r * p.wide + i * p.g.apart[1] * p.g.channels + c;
  int64_t size = (p.elements + ELEMENTS - 1) / ELEMENTS * ELEMENTS * p.depth;
  size_t bytes = sizeof(float) * (size_t)(weights ? size * PARTS : size);
  if (!(p.w = cpu_block_alloc(bytes))) return false;
  if (weights) {
    cpu_parallel(PARTS, 1, weight_parts, &p);
    for (int64_t part = 1; part < PARTS; part++)
      for (int64_t i = 0; i < size; i++) p.w[i] += p.w[part * size + i];
  } else {
    memset(p.w, 0, bytes);
  }
  float *own = p.w;
  for (int64_t r = 0; r < p.g.rows; r++)
    for (int64_t i = 0; i < p.g.columns; i++)
      for (int64_t c = 0; c < p.g.channels; c++, own += p.depth) {
        float *user = data[W] + w->offset + c * w->strides[2] + r * p.g.w_row + i * p.g.w_column;
        for (int64_t k = 0; k < p.g.depth; k++) {
          if (weights) user[k * w->strides[1]] = own[k];
          else own[k] = user[k * w->strides[1]];
        }
      }
  double row = (double)(p.g.across * p.elements * p.depth);
  if (!weights) cpu_parallel(p.g.images * p.g.down, MAX(1, (int64_t)(1e6 / row)), result_rows, &p);
  cpu_block_free(p.w, bytes);
  return true;
}

#else
bool conv_first_fits(const ConvShape *s) {
  (void)s;
  return false;
}
bool conv_first_run(const ConvShape *s, float *const *data) {
  (void)s, (void)data;
  return false;
}
#endif
