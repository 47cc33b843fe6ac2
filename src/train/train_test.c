/* The trainer, through weft's own plugin: random numbers against published answers, files
 * against their formats, and a small network that has to learn, to be saved, and to go on from
 * there as if nothing had happened.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err_test.h"
#include <jpeglib.h>
#include <zlib.h>

#include "interp/interp.h"
#include "train/data_priv.h"
#include "train/train_priv.h"
#include "zoo/zoo.h"

#include <math.h>
#include <unistd.h>

#define PLUGIN WEFT_BINARY_DIR "/libpjrt_weft.so"

static char folder[64];

static char *in_folder(const char *name) { return xasprintf("%s/%s", folder, name); }

/* ---- random numbers -------------------------------------------------------------------------- */

static void threefry_known_answers(void **state) { /* Random123's kat_vectors, threefry2x32 20 */
  (void)state;
  static const uint32_t v[3][6] = {
      {0, 0, 0, 0, 0x6b200159, 0x99ba4efe},
      {~0u, ~0u, ~0u, ~0u, 0x1cb996fc, 0xbb002be7},
      {0x13198a2e, 0x03707344, 0x243f6a88, 0x85a308d3, 0xc4923a9c, 0x483df7a0}};
  for (int i = 0; i < 3; i++) {
    uint32_t out[2];
    threefry2x32(v[i], v[i] + 2, out);
    assert_int_equal(out[0], v[i][4]);
    assert_int_equal(out[1], v[i][5]);
  }
}

static void threefry_in_programs(void **state) { /* the ops give what the C function gives */
  (void)state;
  Module *m = module_new();
  Net n = {.training = true};
  n.f = b_func(&n.b, m, "main");
  n.step = b_scalar_i64(&n.b, DT_I32, 5);
  uint32_t seed[2] = {11, 22};
  n.seed = b_const(&n.b, b_type(&n.b, DT_U32, 1, (int64_t[]){2}), seed);
  net_random_bits(&n, 1, (int64_t[]){4}); /* the second draw is tested */
  Value *bits = net_random_bits(&n, 2, (int64_t[]){3, 4});
  b_return(&n.b, 1, &bits);
  ok(ir_verify(m));
  Shards r;
  ok(interp_run(m, STR(""), NULL, NULL, 0, &r, 1));
  uint32_t key[2], in[2] = {5, 0}, want[2];
  threefry2x32(seed, in, key);
  for (uint32_t i = 0; i < 12; i++) {
    threefry2x32(key, (uint32_t[]){i, 1}, want);
    assert_int_equal(((uint32_t *)r.t[0]->data)[i], want[0]);
  }
  shards_free(&r);
  module_free(m);
}

/* n numbers spread evenly over -limit ... limit. */
static void is_uniform(const float *v, int64_t n, double limit) {
  double sum = 0, squares = 0;
  for (int i = 0; i < n; i++) {
    assert_true(fabsf(v[i]) <= (float)limit);
    sum += (double)v[i];
    squares += (double)v[i] * (double)v[i];
  }
  assert_true(fabs(sum / (double)n) < 0.01 * limit);
  assert_true(fabs(sqrt(squares / (double)n) / (limit / sqrt(3)) - 1) < 0.02);
}

static void initial_values(void **state) {
  (void)state;
  enum { N = 40000 };
  float *a = xmalloc(N * 4), *b = xmalloc(N * 4);
  int64_t dims[] = {3, 3, 40, 100}, n = 36000;
  init_fill(INIT(INIT_GLOROT_UNIFORM, 1), "k", 1, DT_F32, 4, dims, a);
  is_uniform(a, n, sqrt(6.0 / (9 * 140)));
  init_fill(INIT(INIT_TORCH_UNIFORM, 1), "k", 1, DT_F32, 4, dims, a);
  is_uniform(a, n, 1 / sqrt(9.0 * 40)); /* as torch.nn.Conv2d(40, 100, 3) says */
  init_fill(INIT(INIT_NORMAL, 0.5), "k", 1, DT_F32, 1, &n, a);
  init_fill(INIT(INIT_NORMAL, 0.5), "k", 1, DT_F32, 1, &n, b);
  assert_memory_equal(a, b, (size_t)n * 4);
  init_fill(INIT(INIT_NORMAL, 0.5), "other", 1, DT_F32, 1, &n, b);
  assert_true(memcmp(a, b, (size_t)n * 4) != 0);
  int64_t wide[] = {20, 80};
  init_fill(INIT(INIT_ORTHOGONAL, 1), "q", 1, DT_F32, 2, wide, a);
  for (int i = 0; i < 20; i++)
    for (int j = 0; j <= i; j++) {
      double dot = 0;
      for (int k = 0; k < 80; k++) dot += (double)a[i * 80 + k] * (double)a[j * 80 + k];
      assert_true(fabs(dot - (i == j)) < 1e-5);
    }
  free(a);
  free(b);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void crc32c_known_answer(void **state) {
  (void)state;
  assert_int_equal(crc32c("123456789", 9), 0xe3069283u); /* RFC 3720's check value */
}

static void safetensors_round_trip(void **state) {
  (void)state;
  char *path = in_folder("t.safetensors");
  float x[6] = {1, 2, 3, 4, 5, 6};
  int32_t step = 7;
  NamedTensor t[] = {{"a/\"b\"", DT_F32, 2, {2, 3}, x}, {"step", DT_I32, 0, {0}, &step}}, *back;
  ok(safetensors_write(path, 2, t, 1, (const char *const[]){"model", "m\n"}));
  int n;
  ok(safetensors_read(path, &n, &back));
  assert_int_equal(n, 2);
  assert_string_equal(back[0].name, "a/\"b\"");
  assert_int_equal(back[0].dims[1], 3);
  assert_memory_equal(back[0].data, x, sizeof x);
  assert_int_equal(*(int32_t *)back[1].data, 7);
  safetensors_free(n, back);
  Buf b = {0};
  ok(file_read(path, &b));
  assert_int_equal(b.p[8], '{');
  uint64_t len;
  memcpy(&len, b.p, 8);
  assert_int_equal(len % 8, 0);
  assert_int_equal(b.n, 8 + len + 28);
  for (size_t cut = 0; cut < b.n; cut += 5) { /* a damaged file is an error, not a crash */
    ok(file_write(path, b.p, cut));
    Err *e = safetensors_read(path, &n, &back);
    assert_non_null(e);
    err_free(e);
  }
  buf_free(&b);
  free(path);
}

/* Four idx files of 8 x 8 pictures: class c has its rows 2c and 2c + 1 bright, under noise. */
static void write_idx(const char *stem, int n, bool images) {
  Buf b = {0};
  uint8_t head[] = {0, 0, 8, images ? 3 : 1, 0, 0, (uint8_t)(n >> 8), (uint8_t)n, 0, 0, 0, 8, 0,
                    0, 0, 8};
  buf_add(&b, head, images ? 16 : 8);
  for (int i = 0; i < n; i++) {
    int c = i % 4;
    if (!images) buf_byte(&b, c);
    for (int k = 0; images && k < 64; k++)
      buf_byte(&b, (int)(random_word(9, (uint64_t)n, (uint64_t)(i * 64 + k)) % 120) +
                       (k / 16 == c ? 100 : 0));
  }
  char *path = in_folder(stem);
  ok(file_write(path, b.p, b.n));
  free(path);
  buf_free(&b);
}

static Data *small_data(void) {
  write_idx("train-images-idx3-ubyte", 640, true);
  write_idx("train-labels-idx1-ubyte", 640, false);
  write_idx("t10k-images-idx3-ubyte", 100, true);
  write_idx("t10k-labels-idx1-ubyte", 100, false);
  char *spec = xasprintf("idx:%s", folder);
  Data *d;
  ok(data_open(spec, NULL, &d));
  free(spec);
  return d;
}

static void data_errors(void **state) {
  (void)state;
  Data *d;
  Err *e = data_open("idx:/nonexistent", NULL, &d);
  assert_int_equal(e->code, ERR_NOT_FOUND);
  err_free(e);
  e = data_open("text", NULL, &d); /* the default of models of text: says what it lacks */
  char *said = err_text(e);
  assert_non_null(strstr(said, "text:FILE"));
  free(said);
  err_free(e);
  e = data_open("nothing", NULL, &d);
  assert_int_equal(e->code, ERR_NOT_FOUND);
  err_free(e);
  char *path = in_folder("bad");
  ok(file_write(path,
                "\0\0\x08\x01\0\0\0\x09"
                "abc",
                11));
  int rank;
  int64_t dims[4];
  uint8_t *p;
  e = idx_read(path, &rank, dims, &p);
  assert_int_equal(e->code, ERR_DATA_LOSS);
  err_free(e);
  free(path);
  data_close(small_data());
  write_idx("t10k-images-idx3-ubyte", 0, true); /* nothing to test on */
  write_idx("t10k-labels-idx1-ubyte", 0, false);
  char *spec = xasprintf("idx:%s", folder);
  e = data_open(spec, NULL, &d);
  assert_int_equal(e->code, ERR_DATA_LOSS);
  err_free(e);
  static const char *const stems[] = {"train-images-idx3-ubyte", "t10k-images-idx3-ubyte",
                                      "train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte"};
  for (int i = 0; i < 4; i++) { /* one picture of 2 x 2 places without a channel, and its label */
    path = in_folder(stems[i]);
    if (i < 2) ok(file_write(path, "\0\0\x08\x04\0\0\0\1\0\0\0\2\0\0\0\2\0\0\0", 20));
    else ok(file_write(path, "\0\0\x08\x01\0\0\0\1\0", 9));
    free(path);
  }
  e = data_open(spec, NULL, &d);
  assert_int_equal(e->code, ERR_DATA_LOSS);
  err_free(e);
  free(spec);
}

/* A vocabulary of the 256 bytes (as GPT-2 writes them) and three merges. */
/* Of one colour to the left, of another to the right. */
static void write_jpeg(int width, unsigned char **out, unsigned long *n) {
  struct jpeg_compress_struct c;
  struct jpeg_error_mgr errors;
  c.err = jpeg_std_error(&errors);
  jpeg_create_compress(&c);
  jpeg_mem_dest(&c, out, n);
  c.image_width = (JDIMENSION)width;
  c.image_height = 32;
  c.input_components = 3;
  c.in_color_space = JCS_RGB;
  jpeg_set_defaults(&c);
  jpeg_start_compress(&c, TRUE);
  uint8_t row[64 * 3];
  for (int i = 0; i < width * 3; i++) row[i] = i < 16 * 3 ? 20 : 200;
  while (c.next_scanline < c.image_height) jpeg_write_scanlines(&c, (JSAMPROW[]){row}, 1);
  jpeg_finish_compress(&c);
  jpeg_destroy_compress(&c);
}

static void cifar_pictures(void **state) {
  (void)state;
  unsigned char *jpeg = NULL, *wide = NULL;
  unsigned long n = 0, n_wide = 0;
  uint8_t picture[32 * 32 * 3];
  write_jpeg(32, &jpeg, &n);
  write_jpeg(33, &wide, &n_wide);
  assert_true(cifar_decode(jpeg, n, picture));
  for (int i = 0; i < COUNT_OF(picture); i++)
    assert_in_range(picture[i] + 3 - (i / 3 % 32 < 16 ? 20 : 200), 0, 6);
  assert_false(cifar_decode(wide, n_wide, picture));
  for (unsigned long less = 2; less < n; less++) /* the last two bytes mark the end */
    if (cifar_decode(jpeg, n - less - 1, picture))
      fail_msg("%lu bytes of %lu will do", n - less, n);
  free(jpeg);
  free(wide);
}

static void png_chunk(Buf *b, const char *type, const void *p, size_t n) {
  uint8_t len[4] = {0, 0, (uint8_t)(n >> 8), (uint8_t)n}, sum[4];
  buf_add(b, len, 4);
  size_t from = b->n;
  buf_add(b, type, 4);
  buf_add(b, p, n);
  uint32_t crc = (uint32_t)crc32(0, (const uint8_t *)b->p + from, (unsigned)(n + 4));
  for (int i = 0; i < 4; i++) sum[i] = (uint8_t)(crc >> (24 - 8 * i));
  buf_add(b, sum, 4);
}

/* 3 x 2 RGB; every filter's number may stand before a row. */
static void write_png(const uint8_t *rows, size_t n, uint8_t width, uint8_t interlace, Buf *out) {
  uint8_t head[13] = {0, 0, 0, width, 0, 0, 0, 2, 8, 2, 0, 0, interlace}, packed[256];
  uLongf size = sizeof packed;
  assert_int_equal(compress(packed, &size, rows, n), Z_OK);
  out->n = 0;
  buf_add(out, "\x89PNG\r\n\x1a\n", 8);
  png_chunk(out, "IHDR", head, 13);
  png_chunk(out, "IDAT", packed, size);
  png_chunk(out, "IEND", "", 0);
}

static void png_pictures(void **state) {
  (void)state;
  /* the second row is the first, by the filter that adds what stands above */
  static const uint8_t rows[20] = {1, 10, 20, 30, 5, 5, 5, 1, 2, 3, 2};
  static const uint8_t want[9] = {10, 20, 30, 15, 25, 35, 16, 27, 38};
  Buf b = {0};
  Picture p;
  write_png(rows, sizeof rows, 3, 0, &b);
  ok(picture_decode((uint8_t *)b.p, b.n, &p));
  assert_true(p.width == 3 && p.height == 2 && p.channels == 3);
  assert_memory_equal(p.pixels, want, 9);
  assert_memory_equal(p.pixels + 9, want, 9);
  picture_free(&p);
  for (size_t cut = 0; cut < b.n; cut++) { /* a damaged file is an error, not a crash */
    Err *e = picture_decode((uint8_t *)b.p, cut, &p);
    assert_non_null(e);
    err_free(e);
    char kept = b.p[cut];
    b.p[cut] ^= 0x55;
    e = picture_decode((uint8_t *)b.p, b.n, &p);
    assert_non_null(e);
    err_free(e);
    b.p[cut] = kept;
  }
  for (int width = 1; width < 9; width++) /* rows that are too short or too long for the header */
    for (int interlace = 0; interlace < 2; interlace++) {
      if (width == 3 && !interlace) continue;
      write_png(rows, sizeof rows, (uint8_t)width, (uint8_t)interlace, &b);
      Err *e = picture_decode((uint8_t *)b.p, b.n, &p);
      assert_true(!e || e->code == ERR_DATA_LOSS);
      if (!e) picture_free(&p);
      err_free(e);
    }
  buf_free(&b);
}

static void bpe_merges_and_words(void **state) {
  (void)state;
  Buf json = {0};
  int next = 256;
  buf_byte(&json, '{');
  for (int b = 0; b < 256; b++) {
    bool plain = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
    buf_printf(&json, "\"\\u%04x\": %d, ", plain ? b : next++, b);
  }
  buf_cstr(&json, "\"\\u0120a\": 256, \"ab\": 257, \"abc\": 258, \"<|endoftext|>\": 259}");
  char *enc = in_folder("encoder.json"), *voc = in_folder("vocab.bpe");
  ok(file_write(enc, json.p, json.n));
  static const char merges[] = "#version: 0.2\na b\nab c\n\xC4\xA0 a\n";
  ok(file_write(voc, merges, sizeof merges - 1));
  Tokenizer *b;
  ok(tokenizer_open(folder, &b));
  assert_int_equal(tokenizer_size(b), 260);
  IdVec v = {0};
  tokenizer_encode(b, STR("abcab a's  7\n\n"), &v); /* words: abcab, " a", 's, " ", " 7", "\n\n" */
  static const int32_t want[] = {258, 257, 256, '\'', 's', ' ', ' ', '7', '\n', '\n'};
  assert_int_equal(v.n, COUNT_OF(want));
  assert_memory_equal(v.v, want, sizeof want);
  v.n = 0;
  tokenizer_encode(b, STR("\xC3\xA9\xff"), &v); /* any bytes pass */
  assert_int_equal(v.n, 3);
  assert_int_equal(v.v[2], 0xff);
  vec_free(&v);
  tokenizer_close(b);
  ok(file_write(voc, "x nothing\n", 10));
  Err *e = tokenizer_open(folder, &b);
  assert_int_equal(e->code, ERR_DATA_LOSS);
  err_free(e);
  buf_free(&json);
  free(enc);
  free(voc);
}

/* ---- the zoo: every model builds a program that verifies, for training and evaluation, in f32 and
 * bf16  */

static void zoo_verifies(void **state) {
  (void)state;
  for (int i = 0; zoo_all[i]; i++) {
    const Model *m = zoo_all[i];
    for (int variant = 0; variant < 4; variant++) {
      TrainConfig c = {.compute = variant & 1 ? DT_BF16 : DT_F32, .replicas = variant == 2 ? 4 : 0};
      m->defaults(&c);
      c.batch = 2;
      c.size = c.length ? 2 : 0;
      if (c.length) c.length = 8;
      c.dropout = 0.1;
      c.label_smoothing = 0.1;
      DataOpts o = model_data(m, &c);
      Data *d;
      StepProgram p;
      ok(data_open("synthetic", &o, &d));
      ok(step_build(m, &c, d, !(variant & 1) || variant == 1, &p));
      step_free(&p);
      ok(step_build(m, &c, d, false, &p));
      step_free(&p);
      data_close(d);
    }
  }
}

static void models_refuse_wrong_data(void **state) {
  (void)state;
  const Model *m;
  ok(zoo_find("gpt2", &m));
  Data *d = small_data();
  TrainConfig c = {0};
  m->defaults(&c);
  StepProgram p;
  Err *e = step_build(m, &c, d, true, &p);
  assert_int_equal(e->code, ERR_INVALID);
  err_free(e);
  data_close(d);
}

/* ---- training -------------------------------------------------------------------------------- */

static TrainOpts small_run(const Data *d, Client *client) {
  TrainOpts o = {.data = d, .client = client};
  ok(zoo_find("mlp", &o.model));
  o.config = (TrainConfig){.seed = 3, .compute = DT_F32};
  o.model->defaults(&o.config);
  o.config.size = 32;
  o.config.batch = 32;
  o.config.steps = 40;
  o.config.opt.lr = 0.01;
  o.config.dropout = 0;
  return o;
}

static void learns(void **state) {
  Data *d = small_data();
  TrainOpts o = small_run(d, *state);
  TrainResult r;
  ok(train_run(&o, &r));
  assert_int_equal(r.steps, 40);
  if (r.test_accuracy < 0.95) print_error("accuracy %f\n", r.test_accuracy);
  assert_true(r.test_accuracy >= 0.95 && r.test_accuracy <= 1);
  assert_true(r.test_loss < 0.3);
  data_close(d);
}

/* 40 steps at once, and 17 steps, a checkpoint, 23 steps: the same bits. */
static void resumes_exactly(void **state) {
  Data *d = small_data();
  TrainOpts o = small_run(d, *state);
  char *one = in_folder("one"), *two = in_folder("two"),
       *file = in_folder("two/checkpoint.safetensors");
  char *file1 = in_folder("one/checkpoint.safetensors");
  TrainResult r;
  o.config.opt.total_steps = 40;
  o.config.opt.schedule = LR_COSINE;
  o.out = one;
  ok(train_run(&o, &r));
  o.out = two;
  o.config.steps = 17;
  ok(train_run(&o, &r));
  o.config.steps = 40;
  o.resume = file;
  ok(train_run(&o, &r));
  assert_int_equal(r.steps, 23);
  Buf a = {0}, b = {0};
  ok(file_read(file1, &a));
  ok(file_read(file, &b));
  assert_int_equal(a.n, b.n);
  assert_memory_equal(a.p, b.p, a.n);
  buf_free(&a);
  buf_free(&b);
  Err *e = train_run(&o, &r); /* nothing left to do */
  assert_int_equal(e->code, ERR_PRECONDITION);
  err_free(e);
  o.config.size = 16; /* another model */
  e = train_run(&o, &r);
  assert_int_equal(e->code, ERR_INVALID);
  err_free(e);
  free(one);
  free(two);
  free(file);
  free(file1);
  data_close(d);
}

typedef struct Sight {
  const char *file;
  int64_t step; /* the first whose report found the file; 0: none */
} Sight;

static void look_for_file(void *arg, const Progress *p) {
  Sight *s = arg;
  if (!s->step && !access(s->file, F_OK)) s->step = p->step;
}

/* A run of 40 steps that saves every save_s seconds: when is its checkpoint first there? */
static int64_t first_checkpoint(Client *client, const char *name, double save_s) {
  Data *d = small_data();
  char *out = in_folder(name), *file = xasprintf("%s/checkpoint.safetensors", out);
  Sight seen = {.file = file};
  TrainOpts o = small_run(d, client);
  TrainResult r;
  o.progress = look_for_file;
  o.arg = &seen;
  o.out = out;
  o.save_s = save_s;
  ok(train_run(&o, &r));
  assert_int_equal(access(file, F_OK), 0);
  free(out);
  free(file);
  data_close(d);
  return seen.step;
}

static void saves_by_the_clock(void **state) {
  int64_t at_once = first_checkpoint(*state, "early", 1e-9);
  assert_true(at_once > 0 && at_once < 5);
  assert_int_equal(first_checkpoint(*state, "late", TRAIN_SAVE_S), 0);
}

static void reports_divergence(void **state) {
  Data *d = small_data();
  TrainOpts o = small_run(d, *state);
  TrainResult r;
  o.config.opt = (OptConfig){.kind = OPT_SGD, .lr = 1e30};
  Err *e = train_run(&o, &r);
  assert_non_null(e);
  assert_int_equal(e->code, ERR_ABORTED);
  err_free(e);
  data_close(d);
}

static void loader_visits_all(void **state) {
  Data *d = small_data();
  Loader *l;
  LoaderOpts lo = {.data = d, .client = *state, .batch = 64, .seed = 1, .n_batches = 20};
  ok(loader_open(&lo, &l));
  int64_t first[10] = {0}, second[10] = {0};
  for (int k = 0; k < 20; k++) {
    Batch b;
    double wait;
    bool more;
    ok(loader_next(l, &b, &wait, &more));
    assert_true(more);
    assert_int_equal(b.epoch, k / 10);
    uint8_t px[64 * 64];
    int32_t labels[64];
    ok(client_buffer_to_host(b.bufs[0], px, sizeof px));
    ok(client_buffer_to_host(b.bufs[1], labels, sizeof labels));
    for (int i = 0; i < 64; i++) { /* picture and label belong together */
      int bright = 0, best = -1;
      for (int c = 0; c < 4; c++) {
        int sum = 0;
        for (int p = 0; p < 16; p++) sum += px[i * 64 + c * 16 + p];
        if (sum > best) best = sum, bright = c;
      }
      assert_int_equal(bright, labels[i]);
      (k < 10 ? first : second)[labels[i]]++;
    }
    batch_free(l, &b);
  }
  for (int c = 0; c < 4; c++) {
    assert_int_equal(first[c], 160);
    assert_int_equal(second[c], 160);
  }
  loader_close(l);
  ok(loader_open(&lo, &l)); /* closing early must not hang */
  loader_close(l);
  data_close(d);
}

/* Two replicas with half a batch each do what one does with all of it, up to rounding. */
static void replicas_agree(void **state) {
  (void)state;
  Data *d = small_data();
  double loss[2];
  for (int k = 0; k < 2; k++) {
    Client *c;
    ClientOption dev = {.name = "device", .str = k ? "cpu:2" : "cpu"};
    ok(client_open(PLUGIN, &dev, 1, &c));
    TrainOpts o = small_run(d, c);
    o.config.steps = 10;
    if (k) o.config.replicas = 2, o.config.batch /= 2;
    TrainResult r;
    ok(train_run(&o, &r));
    assert_int_equal(r.examples, 320);
    loss[k] = r.test_loss;
    client_close(c);
  }
  if (!(fabs(loss[0] - loss[1]) < 1e-4)) print_error("losses %g %g\n", loss[0], loss[1]);
  assert_true(fabs(loss[0] - loss[1]) < 1e-4);
  data_close(d);
}

/* Of LLaMA 3.2 1B, as transformers 5.24 has them (float32): kept, mixed and slowed angles. */
static void rotary_rates(void **state) {
  (void)state;
  const Rotary r = {5e5, 32, 1, 4, 8192}, plain = {.theta = 5e5};
  static const struct {
    int i;
    double rate;
  } want[] = {{0, 1.0},
              {1, 0.663601279258728},
              {10, 0.016560440883040428},
              {14, 0.0032114461064338684},
              {15, 0.0012905480107292533},
              {16, 0.000429556705057621},
              {17, 9.708286233944818e-05},
              {18, 1.9461638657958247e-05},
              {31, 9.418306490260875e-08}};
  for (int k = 0; k < COUNT_OF(want); k++) {
    double got = rotary_rate(&r, want[k].i, 32);
    if (fabs(got / want[k].rate - 1) > 2e-6)
      fail_msg("angle %d: %.9g, not %.9g", want[k].i, got, want[k].rate);
  }
  assert_true(fabs(rotary_rate(&plain, 31, 32) / (32 * want[8].rate) - 1) < 2e-6);
}

static int open_client(void **state) {
  snprintf(folder, sizeof folder, "/tmp/weft_train_test.XXXXXX");
  if (!mkdtemp(folder)) return 1;
  Client *c;
  ClientOption o = {.name = "device", .str = "cpu"};
  ok(client_open(PLUGIN, &o, 1, &c));
  *state = c;
  return 0;
}

static int close_client(void **state) {
  client_close(*state);
  char *cmd = xasprintf("rm -r %s", folder);
  int r = system(cmd);
  free(cmd);
  return r;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(threefry_known_answers),
                                     cmocka_unit_test(threefry_in_programs),
                                     cmocka_unit_test(initial_values),
                                     cmocka_unit_test(crc32c_known_answer),
                                     cmocka_unit_test(safetensors_round_trip),
                                     cmocka_unit_test(data_errors),
                                     cmocka_unit_test(cifar_pictures),
                                     cmocka_unit_test(png_pictures),
                                     cmocka_unit_test(bpe_merges_and_words),
                                     cmocka_unit_test(zoo_verifies),
                                     cmocka_unit_test(models_refuse_wrong_data),
                                     cmocka_unit_test(loader_visits_all),
                                     cmocka_unit_test(learns),
                                     cmocka_unit_test(resumes_exactly),
                                     cmocka_unit_test(saves_by_the_clock),
                                     cmocka_unit_test(reports_divergence),
                                     cmocka_unit_test(rotary_rates),
                                     cmocka_unit_test(replicas_agree)};
  return cmocka_run_group_tests(tests, open_client, close_client);
}
