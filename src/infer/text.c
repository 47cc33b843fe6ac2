/* Text to tokens and back; one token of many by their logits. */
#include "infer/infer.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

struct Tokens {
  int64_t length; /* of an example */
  bool masked;
  TokenMarks marks;
  Tokenizer *words;     /* NULL: a token is a byte */
  pthread_mutex_t lock; /* it keeps the words that it has seen */
};

Err *tokens_open(const CheckpointInfo *c, Tokens **out) {
  Tokens *t = xcalloc(1, sizeof *t);
  pthread_mutex_init(&t->lock, NULL);
  t->length = c->data->fields[0].dims[0];
  t->masked = c->config.masked;
  t->marks = c->data->marks;
  if (!t->marks.there) t->marks.mask = (int32_t)c->data->classes - 1; /* after the vocabulary */
  if (c->tokenizer) {
    Err *e = tokenizer_open(c->tokenizer, &t->words);
    if (e) return free(t), e;
  }
  *out = t;
  return NULL;
}

void tokens_close(Tokens *t) {
  if (!t) return;
  tokenizer_close(t->words);
  pthread_mutex_destroy(&t->lock);
  free(t);
}

Err *tokens_encode(Tokens *t, Str text, IdVec *out) {
  pthread_mutex_lock(&t->lock);
  if (t->words) tokenizer_encode(t->words, text, out);
  else
    for (size_t i = 0; i < text.n; i++) *vec_push(out) = (uint8_t)text.p[i];
  pthread_mutex_unlock(&t->lock);
  return out->n ? NULL : err_new(ERR_INVALID, "an empty text has no tokens");
}

void tokens_decode(const Tokens *t, int32_t id, Buf *out) {
  if (t->words) tokenizer_decode(t->words, id, out);
  else if (id >= 0 && id < 256) buf_byte(out, id);
}

/* The tokens of a text in which [MASK] stands for the mask. */
static Err *with_masks(Tokens *t, Str text, IdVec *ids) {
  static const char word[] = "[MASK]";
  Err *e = NULL;
  while (text.n && !e) {
    const char *at = t->masked ? memmem(text.p, text.n, word, sizeof word - 1) : NULL;
    size_t before = at ? (size_t)(at - text.p) : text.n;
    if (before) e = tokens_encode(t, (Str){text.p, before}, ids);
    if (at) *vec_push(ids) = t->marks.mask;
    before += at ? sizeof word - 1 : 0;
    text.p += before;
    text.n -= before;
  }
  return e || ids->n ? e : err_new(ERR_INVALID, "an empty text has no tokens");
}

Err *tokens_example(Tokens *t, Str text, int32_t *example, IdVec *places) {
  IdVec ids = {0};
  bool marked = t->masked && t->marks.there;
  int edge = marked, room = (int)t->length - 2 * edge;
  Err *e = with_masks(t, text, &ids);
  int cut = MAX(0, ids.n - room), n = ids.n - cut;
  for (int64_t i = 0; i < t->length; i++) example[i] = marked ? t->marks.pad : 0;
  for (int i = 0; i < n && !e; i++) {
    int32_t id = example[i + edge] = ids.v[cut + i];
    if (t->masked ? id == t->marks.mask : i == n - 1) *vec_push(places) = i + edge;
  }
  if (marked) example[0] = t->marks.begin, example[n + 1] = t->marks.end;
  if (!e && !places->n)
    e = err_hint(err_new(ERR_INVALID, "no [MASK] in '%.40s'", text.p),
                 "the network fills in what is masked");
  vec_free(&ids);
  return e;
}

/* ---- sampling -------------------------------------------------------------------------------- */

typedef struct Candidate {
  int32_t id;
  double p;
} Candidate;

static int likelier(const void *a, const void *b) {
  const Candidate *x = a, *y = b;
  if (x->p != y->p) return x->p < y->p ? 1 : -1;
  return x->id < y->id ? -1 : x->id > y->id;
}

static int32_t likeliest(int64_t k, const float *logits) {
  int64_t best = 0;
  for (int64_t i = 1; i < k; i++)
    if (logits[i] > logits[best]) best = i;
  return (int32_t)best;
}

int32_t sample_token(const Sampling *s, int64_t k, const float *logits, uint64_t at) {
  int32_t best = likeliest(k, logits);
  if (s->temperature <= 0 || s->top_k == 1) return best;
  Candidate *c = xmalloc(sizeof *c * (size_t)k);
  for (int64_t i = 0; i < k; i++)
    c[i] =
        (Candidate){(int32_t)i, exp(((double)logits[i] - (double)logits[best]) / s->temperature)};
  qsort(c, (size_t)k, sizeof *c, likelier);
  int64_t n = s->top_k ? MIN(k, s->top_k) : k, kept = 0;
  double sum = 0, part = 0;
  for (int64_t i = 0; i < n; i++) sum += c[i].p;
  double enough = s->top_p > 0 && s->top_p < 1 ? s->top_p * sum : sum;
  while (kept < n && (part < enough || !kept)) part += c[kept++].p;
  double u = ((double)(random_word(s->seed, 77, at) >> 11) + 0.5) / 9007199254740992.0 * part;
  int64_t i = 0;
  for (double up = c[0].p; i < kept - 1 && up < u;) up += c[++i].p;
  int32_t id = c[i].id;
  free(c);
  return id;
}
