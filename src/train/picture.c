/* Pictures from files, and into the size that a network wants. */
#include "train/data_priv.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

void picture_free(Picture *i) {
  free(i->pixels);
  *i = (Picture){0};
}

/* ---- JPEG, by libjpeg ------------------------------------------------------------------------ */

enum { MOST_PIXELS = 1 << 28 };

typedef struct Catch {
  struct jpeg_error_mgr mgr;
  jmp_buf jump;
} Catch;

static void on_error(j_common_ptr c) { longjmp(((Catch *)c->err)->jump, 1); }
static void on_message(j_common_ptr c) { (void)c; }

/* What libjpeg makes up where data are missing or damaged is a warning to it, no picture to us. */
Err *jpeg_read(const uint8_t *p, size_t n, Picture *out) {
  struct jpeg_decompress_struct d;
  Catch c;
  uint8_t *volatile pixels = NULL;
  d.err = jpeg_std_error(&c.mgr);
  c.mgr.error_exit = on_error;
  c.mgr.output_message = on_message;
  jpeg_create_decompress(&d);
  if (setjmp(c.jump)) {
    jpeg_destroy_decompress(&d);
    free(pixels);
    return err_new(ERR_DATA_LOSS, "damaged JPEG");
  }
  jpeg_mem_src(&d, p, n);
  jpeg_read_header(&d, TRUE);
  d.out_color_space = d.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  if ((int64_t)d.image_width * d.image_height > MOST_PIXELS) {
    jpeg_destroy_decompress(&d);
    return err_new(ERR_UNIMPLEMENTED, "JPEG of %u x %u", d.image_width, d.image_height);
  }
  jpeg_start_decompress(&d);
  *out = (Picture){
      .height = d.output_height, .width = d.output_width, .channels = d.output_components};
  size_t row = (size_t)out->width * (size_t)out->channels;
  pixels = malloc(row * (size_t)out->height + 1);
  if (!pixels) longjmp(c.jump, 1);
  while (d.output_scanline < d.output_height) {
    JSAMPROW at = pixels + d.output_scanline * row;
    jpeg_read_scanlines(&d, &at, 1);
  }
  jpeg_finish_decompress(&d);
  bool good = !c.mgr.num_warnings;
  jpeg_destroy_decompress(&d);
  out->pixels = pixels;
  if (good) return NULL;
  picture_free(out);
  return err_new(ERR_DATA_LOSS, "damaged JPEG");
}

/* ---- any file -------------------------------------------------------------------------------- */

/* What bytes are that are no picture of ours, by how such files begin. */
static const char *kind_of(const uint8_t *p, size_t n) {
  static const struct {
    const char *begin;
    size_t n, at;
    const char *name;
  } kinds[] = {{"GIF8", 4, 0, "a GIF"},
               {"WEBP", 4, 8, "a WebP"},
               {"BM", 2, 0, "a BMP"},
               {"II*\0", 4, 0, "a TIFF"},
               {"MM\0*", 4, 0, "a TIFF"},
               {"ftyp", 4, 4, "HEIC, AVIF or video"},
               {"%PDF", 4, 0, "a PDF"},
               {"PK\3\4", 4, 0, "a zip file"},
               {"\x93NUMPY", 6, 0, "a numpy array"},
               {"{", 1, 0, "JSON"},
               {"[", 1, 0, "JSON"},
               {"<", 1, 0, "XML or HTML"}};
  for (int i = 0; i < COUNT_OF(kinds); i++)
    if (n >= kinds[i].at + kinds[i].n && !memcmp(p + kinds[i].at, kinds[i].begin, kinds[i].n))
      return kinds[i].name;
  for (size_t i = 0; i < MIN(n, 256); i++)
    if (p[i] < 32 && !strchr("\t\n\r\f", p[i])) return "unknown bytes";
  return "text";
}

Err *picture_decode(const uint8_t *p, size_t n, Picture *out) {
  static const uint8_t png[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  *out = (Picture){0};
  if (n >= 8 && !memcmp(p, png, 8)) return png_read(p, n, out);
  if (n >= 3 && p[0] == 0xff && p[1] == 0xd8 && p[2] == 0xff) return jpeg_read(p, n, out);
  if (!n) return err_new(ERR_INVALID, "empty: a picture is a PNG or a JPEG");
  return err_new(ERR_UNIMPLEMENTED, "neither a PNG nor a JPEG: %s", kind_of(p, n));
}

Err *picture_read(const char *path, Picture *out) {
  Buf b = {0};
  TRY(file_read(path, &b));
  Err *e = picture_decode((const uint8_t *)b.p, b.n, out);
  buf_free(&b);
  return err_wrap(e, "'%s'", path);
}

/* ---- its size -------------------------------------------------------------------------------- */

/* Channel k of a pixel in the channels that are wanted. */
static double channel(const Picture *i, int64_t y, int64_t x, int64_t k, int64_t wanted) {
  const uint8_t *p = i->pixels + (y * i->width + x) * i->channels;
  if (i->channels >= 3 && wanted == 1) return 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2];
  return p[i->channels >= 3 ? MIN(k, 2) : 0];
}

/* The weights of source cells lo ... hi - 1 for target cell t: a triangle as wide as a step, at
 * least as wide as a pixel (so smaller pictures are averages, larger ones linear). */
static void span(double first, double step, int64_t t, int64_t size, int64_t *lo, int64_t *hi) {
  double middle = first + ((double)t + 0.5) * step - 0.5, reach = step > 1 ? step : 1;
  *lo = MAX(0, (int64_t)__builtin_ceil(middle - reach));
  *hi = MIN(size, (int64_t)__builtin_floor(middle + reach) + 1);
}

static double weight(double first, double step, int64_t t, int64_t at) {
  double middle = first + ((double)t + 0.5) * step - 0.5, reach = step > 1 ? step : 1;
  double far = __builtin_fabs((double)at - middle) / reach;
  return far < 1 ? 1 - far : 0;
}

void picture_fit(const Picture *im, int64_t height, int64_t width, int64_t channels, uint8_t *out) {
  double step = MIN((double)im->height / (double)height, (double)im->width / (double)width);
  double top = ((double)im->height - step * (double)height) / 2,
         left = ((double)im->width - step * (double)width) / 2;
  for (int64_t y = 0; y < height; y++)
    for (int64_t x = 0; x < width; x++) {
      int64_t y0, y1, x0, x1;
      span(top, step, y, im->height, &y0, &y1);
      span(left, step, x, im->width, &x0, &x1);
      for (int64_t k = 0; k < channels; k++) {
        double sum = 0, all = 0;
        for (int64_t v = y0; v < y1; v++)
          for (int64_t u = x0; u < x1; u++) {
            double w = weight(top, step, y, v) * weight(left, step, x, u);
            sum += w * channel(im, v, u, k, channels);
            all += w;
          }
        out[(y * width + x) * channels + k] = (uint8_t)(all > 0 ? sum / all + 0.5 : 0);
      }
    }
}
