/* Text as bytes or tokens: windows of `length` for next-token prediction, or with BERT's masks,
 * between the marks that its vocabulary has for begin and end. The last tenth is for testing. */
#include "train/data_priv.h"

#include <stdlib.h>

typedef struct Text {
  IdVec ids;
  int64_t split; /* where testing begins */
  int32_t words; /* vocabulary, without a mask that is the token after it */
  int32_t mask;
  bool masked, marked; /* marked: between marks */
} Text;

static void free_text(Data *d) {
  Text *t = d->impl;
  vec_free(&t->ids);
  free(t);
}

/* 15 % count: 80 % of them masked, 10 % another, 10 % left. */
static void put_masks(const Text *t, int64_t len, uint64_t key, int32_t *tokens, float *weights) {
  for (int64_t i = 0; i < len; i++) {
    key = key * 6364136223846793005ull + 1442695040888963407ull;
    unsigned r = (unsigned)(key >> 33) % 1000;
    weights[i] = r < 150;
    if (r < 120) tokens[i] = t->mask;
    else if (r < 135) tokens[i] = (int32_t)((key >> 40) % (uint64_t)t->words);
  }
}

static Err *get_text(const Data *d, bool test, int64_t index, uint64_t rand, void *const *dst) {
  const Text *t = d->impl;
  int64_t edge = t->marked, len = d->fields[0].dims[0] - 2 * edge;
  /* training windows begin anywhere, test windows side by side */
  int64_t start = test ? t->split + index * len : (int64_t)(rand % (uint64_t)(t->split - len - 1));
  const int32_t *p = t->ids.v + start;
  int32_t *tokens = (int32_t *)dst[0] + edge, *targets = (int32_t *)dst[1] + edge;
  for (int64_t i = 0; i < len; i++) {
    tokens[i] = p[i];
    targets[i] = t->masked ? p[i] : p[i + 1];
  }
  if (!t->masked) return NULL;
  float *weights = (float *)dst[2] + edge;
  put_masks(t, len, rand ^ (uint64_t)index * 0x9E3779B97F4A7C15ull, tokens, weights);
  if (!edge) return NULL;
  tokens[-1] = targets[-1] = d->marks.begin;
  tokens[len] = targets[len] = d->marks.end;
  weights[-1] = weights[len] = 0;
  return NULL;
}

/* 16-bit numbers; the vocabulary is GPT-2's where they fit it. */
static Err *read_tokens(const char *path, Text *t) {
  Buf b = {0};
  TRY(file_read(path, &b));
  int32_t most = 0;
  for (size_t i = 0; i + 1 < b.n; i += 2) {
    int32_t id = (uint8_t)b.p[i] | (uint8_t)b.p[i + 1] << 8;
    most = MAX(most, id);
    *vec_push(&t->ids) = id;
  }
  t->words = most < 256 ? 256 : most < 50257 ? 50257 : most + 1;
  buf_free(&b);
  return NULL;
}

static Err *read_text(const char *path, const DataOpts *o, Text *t, Data *d) {
  Buf b = {0};
  TRY(file_read(path, &b));
  Err *e = NULL;
  if (o->tokenizer) {
    Tokenizer *k = NULL;
    e = tokenizer_open(o->tokenizer, &k);
    if (!e) {
      tokenizer_encode(k, (Str){b.p, b.n}, &t->ids);
      t->words = tokenizer_size(k);
      d->marks = tokenizer_marks(k);
      d->tokenizer = xstrdup(o->tokenizer);
      d->tokenizer_kind = tokenizer_kind(k);
    }
    tokenizer_close(k);
  } else {
    t->words = 256;
    for (size_t i = 0; i < b.n; i++) *vec_push(&t->ids) = (uint8_t)b.p[i];
  }
  buf_free(&b);
  return e;
}

static Err *want_tokens(const char *path, int n, int64_t len, bool whole) {
  if (n >= (len + 2) * (whole ? 1 : 20)) return NULL;
  if (whole)
    return err_new(ERR_INVALID, "'%s' has %d tokens, a window %lld", path, n, (long long)len);
  return err_hint(
      err_new(ERR_INVALID,
              "'%s' has %d tokens: windows of %lld want %lld, of which the last tenth is "
              "for testing",
              path, n, (long long)len, (long long)(len + 2) * 20),
      "use a longer text, or shorter windows: --length");
}

Err *data_open_text(const char *path, bool tokens, const DataOpts *o, Data **out) {
  Text *t = xcalloc(1, sizeof *t);
  Data *d = xcalloc(1, sizeof *d);
  d->impl = t;
  d->free = free_text;
  int64_t len = o->length ? o->length : 64;
  Err *e = tokens ? read_tokens(path, t) : read_text(path, o, t, d);
  if (!e) e = want_tokens(path, t->ids.n, len, o->whole);
  t->masked = o->masked;
  t->marked = o->masked && d->marks.there;
  t->mask = d->marks.there ? d->marks.mask : t->words;
  if (!e && t->marked && len < 3)
    e = err_new(ERR_INVALID, "--length %lld has no place for a token between begin and end",
                (long long)len);
  if (e) {
    data_close(d);
    return e;
  }
  d->name = xasprintf("%s:%s", tokens ? "tokens" : "text", base_name(path));
  t->split = o->whole ? 0 : t->ids.n - t->ids.n / 10;
  d->reads = tokens ? 0 : READ_TOKENIZER;
  d->n_fields = o->masked ? 3 : 2;
  d->fields[0] = (Field){"tokens", DT_I32, 1, {len}};
  d->fields[1] = (Field){"targets", DT_I32, 1, {len}};
  d->fields[2] = (Field){"weights", DT_F32, 1, {len}};
  int64_t inner = len - (t->marked ? 2 : 0);
  d->n_train = t->split / inner;
  d->n_test = (t->ids.n - t->split - 1) / inner;
  d->classes = t->words + (o->masked && t->mask == t->words ? 1 : 0);
  d->get = get_text;
  *out = d;
  return NULL;
}
