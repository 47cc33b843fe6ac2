/* Text as bytes or GPT-2 tokens: windows of `length` for next-token prediction, or with BERT's
 * masks. The last tenth is for testing. */
#include "train/data_priv.h"

#include <stdlib.h>

typedef struct Text {
  IdVec ids;
  int64_t split; /* where testing begins */
  int32_t plain; /* vocabulary without the mask, which is the token after it */
  bool masked;
} Text;

static void free_text(Data *d) {
  Text *t = d->impl;
  vec_free(&t->ids);
  free(t);
}

static Err *get_text(const Data *d, bool test, int64_t index, uint64_t rand, void *const *dst) {
  const Text *t = d->impl;
  int64_t len = d->fields[0].dims[0];
  /* training windows begin anywhere, test windows side by side */
  int64_t start = test ? t->split + index * len : (int64_t)(rand % (uint64_t)(t->split - len - 1));
  const int32_t *p = t->ids.v + start;
  int32_t *tokens = dst[0], *targets = dst[1];
  for (int64_t i = 0; i < len; i++) {
    tokens[i] = p[i];
    targets[i] = t->masked ? p[i] : p[i + 1];
  }
  if (!t->masked) return NULL;
  float *weights = dst[2];
  uint64_t key = rand ^ (uint64_t)index * 0x9E3779B97F4A7C15ull;
  for (int64_t i = 0; i < len; i++) { /* 15 % count: 80 % of them masked, 10 % another, 10 % left */
    key = key * 6364136223846793005ull + 1442695040888963407ull;
    unsigned r = (unsigned)(key >> 33) % 1000;
    weights[i] = r < 150;
    if (r < 120) tokens[i] = t->plain;
    else if (r < 135) tokens[i] = (int32_t)((key >> 40) % (uint64_t)t->plain);
  }
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
  t->plain = most < 256 ? 256 : most < 50257 ? 50257 : most + 1;
  buf_free(&b);
  return NULL;
}

static Err *read_ids(const char *path, const DataOpts *o, Text *t) {
  Buf b = {0};
  TRY(file_read(path, &b));
  Err *e = NULL;
  if (o->bpe) {
    Bpe *bpe = NULL;
    e = bpe_open(o->bpe, &bpe);
    if (!e) {
      bpe_encode(bpe, (Str){b.p, b.n}, &t->ids);
      t->plain = bpe_size(bpe);
    }
    bpe_close(bpe);
  } else {
    t->plain = 256;
    for (size_t i = 0; i < b.n; i++) *vec_push(&t->ids) = (uint8_t)b.p[i];
  }
  buf_free(&b);
  return e;
}

Err *data_open_text(const char *path, bool tokens, const DataOpts *o, Data **out) {
  Text *t = xcalloc(1, sizeof *t);
  int64_t len = o->length ? o->length : 64;
  Err *e = tokens ? read_tokens(path, t) : read_ids(path, o, t);
  if (!e && t->ids.n < (len + 2) * 20)
    e = err_hint(
        err_new(ERR_INVALID,
                "'%s' has %d tokens: windows of %lld want %lld, of which the last tenth is "
                "for testing",
                path, t->ids.n, (long long)len, (long long)(len + 2) * 20),
        "use a longer text, or shorter windows: --length");
  if (e) {
    vec_free(&t->ids);
    free(t);
    return e;
  }
  Data *d = xcalloc(1, sizeof *d);
  d->name = xasprintf("%s:%s", tokens ? "tokens" : "text", base_name(path));
  t->split = t->ids.n - t->ids.n / 10;
  t->masked = o->masked;
  d->reads = tokens ? 0 : READ_BPE;
  d->tokenizer = o->bpe ? xstrdup(o->bpe) : NULL;
  d->n_fields = o->masked ? 3 : 2;
  d->fields[0] = (Field){"tokens", DT_I32, 1, {len}};
  d->fields[1] = (Field){"targets", DT_I32, 1, {len}};
  d->fields[2] = (Field){"weights", DT_F32, 1, {len}};
  d->n_train = t->split / len;
  d->n_test = (t->ids.n - t->split - 1) / len;
  d->classes = t->plain + (o->masked ? 1 : 0);
  d->get = get_text;
  d->free = free_text;
  d->impl = t;
  *out = d;
  return NULL;
}
