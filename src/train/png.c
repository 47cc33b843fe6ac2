/* PNG (W3C REC-PNG, 2003): chunks, deflate by zlib, filters, every colour type and depth, Adam7. To
 * 8 bits, grey or RGB; what is transparent is laid over white. */
#include "train/data_priv.h"

#include <stdlib.h>
#include <zlib.h>

enum { GREY = 0, RGB = 2, PALETTE = 3, GREY_ALPHA = 4, RGBA = 6, MOST_SIDE = 1 << 15 };

typedef struct Png {
  int64_t width, height;
  int depth, colour, interlace, samples; /* samples of a pixel */
  uint8_t palette[256][4];
  Buf packed; /* all IDAT chunks */
  Picture *out;
} Png;

static uint32_t be32(const uint8_t *p) {
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static Err *damaged(const char *what) { return err_new(ERR_DATA_LOSS, "damaged PNG: %s", what); }

static Err *header(Png *g, const uint8_t *p, size_t n) {
  static const int samples[] = {1, 0, 3, 1, 2, 0, 4};
  if (n < 13) return damaged("a short header");
  g->width = be32(p), g->height = be32(p + 4);
  g->depth = p[8], g->colour = p[9], g->interlace = p[12];
  bool depth = g->depth == 8 || (g->depth == 16 && g->colour != PALETTE) ||
               ((g->depth == 1 || g->depth == 2 || g->depth == 4) &&
                (g->colour == GREY || g->colour == PALETTE));
  if (g->colour > RGBA || !samples[g->colour] || !depth || p[10] || p[11] || g->interlace > 1)
    return damaged("a header that the standard does not have");
  if (!g->width || !g->height || g->width > MOST_SIDE || g->height > MOST_SIDE)
    return err_new(ERR_UNIMPLEMENTED, "PNG of %lld x %lld", (long long)g->width,
                   (long long)g->height);
  g->samples = samples[g->colour];
  return NULL;
}

static void read_palette(Png *g, const uint8_t *p, size_t n) {
  for (size_t i = 0; i < MIN(n / 3, 256); i++) memcpy(g->palette[i], p + 3 * i, 3);
}

static void read_alpha(Png *g, const uint8_t *p, size_t n) {
  for (size_t i = 0; i < MIN(n, 256) && g->colour == PALETTE; i++) g->palette[i][3] = p[i];
}

static Err *chunks(Png *g, const uint8_t *p, size_t n) {
  bool first = true;
  for (size_t at = 8; at + 12 <= n;) {
    size_t len = be32(p + at);
    const uint8_t *type = p + at + 4, *data = type + 4;
    if (len > n - at - 12) return damaged("it ends inside a chunk");
    if (crc32(0, type, (unsigned)len + 4) != be32(data + len)) return damaged("a wrong checksum");
    if (first != !memcmp(type, "IHDR", 4)) return damaged("no header");
    if (first) TRY(header(g, data, len));
    first = false;
    if (!memcmp(type, "PLTE", 4)) read_palette(g, data, len);
    else if (!memcmp(type, "tRNS", 4)) read_alpha(g, data, len);
    else if (!memcmp(type, "IDAT", 4)) buf_add(&g->packed, data, len);
    else if (!memcmp(type, "IEND", 4)) return NULL;
    at += len + 12;
  }
  return damaged("it ends too early");
}

static int paeth(int a, int b, int c) {
  int p = a + b - c, pa = abs(p - a), pb = abs(p - b), pc = abs(p - c);
  return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

/* A row of n bytes with its filter undone; `step` bytes are a pixel, prev is the row above. */
static bool unfilter(int filter, uint8_t *row, const uint8_t *prev, size_t n, size_t step) {
  for (size_t i = 0; i < n; i++) {
    int a = i >= step ? row[i - step] : 0, b = prev ? prev[i] : 0,
        c = prev && i >= step ? prev[i - step] : 0;
    switch (filter) {
    case 0: return true;
    case 1: row[i] = (uint8_t)(row[i] + a); break;
    case 2: row[i] = (uint8_t)(row[i] + b); break;
    case 3: row[i] = (uint8_t)(row[i] + (a + b) / 2); break;
    case 4: row[i] = (uint8_t)(row[i] + paeth(a, b, c)); break;
    default: return false;
    }
  }
  return true;
}

/* Sample k of pixel x as 8 bits; of a palette its number. */
static int sample(const Png *g, const uint8_t *row, int64_t x, int k) {
  int64_t i = x * g->samples + k;
  if (g->depth == 8) return row[i];
  if (g->depth == 16) return row[2 * i];
  int bits = g->depth, most = (1 << bits) - 1;
  int v = row[i * bits / 8] >> (8 - bits - i * bits % 8) & most;
  return g->colour == PALETTE ? v : v * 255 / most;
}

static int over_white(int v, int alpha) { return (v * alpha + 255 * (255 - alpha) + 127) / 255; }

static void put_pixel(const Png *g, const uint8_t *row, int64_t x, uint8_t *to) {
  int v[4] = {0, 0, 0, 255};
  for (int k = 0; k < g->samples; k++) v[k] = sample(g, row, x, k);
  if (g->colour == PALETTE) {
    const uint8_t *c = g->palette[v[0]];
    for (int k = 0; k < 4; k++) v[k] = c[k];
  }
  int alpha = g->colour == GREY_ALPHA ? v[1] : g->colour == RGB || g->colour == GREY ? 255 : v[3];
  for (int k = 0; k < g->out->channels; k++) to[k] = (uint8_t)over_white(v[k], alpha);
}

static int64_t row_bytes(const Png *g, int64_t width) {
  return (width * g->samples * g->depth + 7) / 8;
}

typedef struct Pass { /* of Adam7; one with steps of 1 is all of a plain picture */
  int x, y, dx, dy;
} Pass;
static const Pass adam7[7] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                              {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
static const Pass plain = {0, 0, 1, 1};

static int64_t pass_size(int64_t all, int from, int step) {
  return all > from ? (all - from + step - 1) / step : 0;
}

static bool put_pass(const Png *g, const Pass *p, uint8_t **at) {
  int64_t w = pass_size(g->width, p->x, p->dx), h = pass_size(g->height, p->y, p->dy);
  if (!w) return true;
  size_t n = (size_t)row_bytes(g, w), step = (size_t)MAX(1, g->samples * g->depth / 8);
  const uint8_t *prev = NULL;
  for (int64_t y = 0; y < h; y++) {
    uint8_t *row = *at + 1;
    if (!unfilter(**at, row, prev, n, step)) return false;
    for (int64_t x = 0; x < w; x++) {
      int64_t pixel = (p->y + y * p->dy) * g->width + p->x + x * p->dx;
      put_pixel(g, row, x, g->out->pixels + pixel * g->out->channels);
    }
    prev = row;
    *at += n + 1;
  }
  return true;
}

static Err *pixels(Png *g) {
  const Pass *passes = g->interlace ? adam7 : &plain;
  int n_passes = g->interlace ? 7 : 1;
  size_t size = 0;
  for (int i = 0; i < n_passes; i++) {
    int64_t w = pass_size(g->width, passes[i].x, passes[i].dx);
    int64_t h = pass_size(g->height, passes[i].y, passes[i].dy);
    if (w) size += (size_t)(h * (row_bytes(g, w) + 1));
  }
  /* deflate makes at most 1032 bytes of one: a small file does not ask for much memory */
  if (size / 1032 > g->packed.n) return damaged("too few data");
  uint8_t *raw = malloc(size + 1), *at = raw;
  uLongf got = size;
  if (!raw) return err_new(ERR_EXHAUSTED, "no memory for a PNG of %zu bytes", size);
  int z = uncompress(raw, &got, (const uint8_t *)g->packed.p, g->packed.n);
  if (z != Z_OK || got != size) {
    free(raw);
    return damaged("its data do not unpack");
  }
  bool grey = g->colour == GREY || g->colour == GREY_ALPHA, good = true;
  *g->out = (Picture){.height = g->height, .width = g->width, .channels = grey ? 1 : 3};
  g->out->pixels = xcalloc((size_t)(g->width * g->height), (size_t)g->out->channels);
  for (int i = 0; i < n_passes && good; i++) good = put_pass(g, &passes[i], &at);
  free(raw);
  if (good) return NULL;
  picture_free(g->out);
  return damaged("an unknown filter");
}

Err *png_read(const uint8_t *p, size_t n, Picture *out) {
  Png g = {.out = out};
  for (int i = 0; i < 256; i++) g.palette[i][3] = 255;
  Err *e = chunks(&g, p, n);
  if (!e) e = pixels(&g);
  buf_free(&g.packed);
  return e;
}
