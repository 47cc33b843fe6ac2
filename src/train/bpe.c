/* GPT-2's byte-level byte-pair encoding (Radford et al. 2019), from its published files or a tokenizer.json.
 *
 * Text is cut into words by GPT-2's pattern ('s 'll ..., letters, digits, other signs, each with
 * one blank before them, runs of blanks); in a word the pair of tokens with the lowest rank is
 * merged until none is left. Letters and digits are Unicode's.
 */
#include "train/tokenizer_priv.h"

#include <stdlib.h>
#include <utf8proc.h>

typedef struct Bpe {
  Tokenizer t;
  Map *tokens; /* bytes -> id + 1 */
  Map *merges; /* two ids -> Merge */
  int32_t of_byte[256];
} Bpe;

typedef struct Merge {
  int rank;
  int32_t result;
} Merge;

/* The files write bytes as printable characters: those that are printable stand for themselves, the
 * others for U+0100 and on. Gives the byte of a character, -1 when it is none. */
static int byte_of(uint32_t c) {
  static int table[324], ready;
  if (!ready) {
    int next = 256;
    for (int i = 0; i < 324; i++) table[i] = -1;
    for (int b = 0; b < 256; b++) {
      bool plain = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
      table[plain ? b : next++] = b;
    }
    ready = 1;
  }
  return c < 324 ? table[c] : -1;
}

static bool raw_bytes(Str s, Buf *out) {
  out->n = 0;
  for (size_t i = 0; i < s.n;) {
    uint32_t c;
    i += (size_t)tokenizer_char(s, i, &c);
    int b = byte_of(c);
    if (b < 0) return false;
    buf_byte(out, b);
  }
  return true;
}

static int32_t token_id(const Bpe *b, Str raw) {
  return (int32_t)(intptr_t)map_get(b->tokens, raw) - 1;
}

/* ---- words ----------------------------------------------------------------------------------- */

static void add_word(Tokenizer *t, Str s, IdVec *out) {
  const Bpe *b = (const Bpe *)t;
  int32_t *ids = xmalloc(sizeof *ids * (s.n + 1));
  int n = (int)s.n;
  for (int i = 0; i < n; i++) ids[i] = b->of_byte[(uint8_t)s.p[i]];
  for (;;) { /* merge the pair of the lowest rank, everywhere */
    const Merge *best = NULL;
    int32_t pair[2] = {0};
    for (int i = 0; i + 1 < n; i++) {
      const Merge *m = map_get(b->merges, (Str){(char *)(ids + i), 2 * sizeof *ids});
      if (m && (!best || m->rank < best->rank)) best = m, memcpy(pair, ids + i, sizeof pair);
    }
    if (!best) break;
    int k = 0;
    for (int i = 0; i < n; i++) {
      bool hit = i + 1 < n && ids[i] == pair[0] && ids[i + 1] == pair[1];
      ids[k++] = hit ? best->result : ids[i];
      i += hit;
    }
    n = k;
  }
  for (int i = 0; i < n; i++) *vec_push(out) = ids[i];
  free(ids);
}

typedef enum CharKind { BLANK, LETTER, DIGIT, SIGN } CharKind;

static CharKind kind_of(uint32_t c) {
  if ((c >= '\t' && c <= '\r') || c == 0x85) return BLANK;
  switch (utf8proc_category((int32_t)c)) {
  case UTF8PROC_CATEGORY_ZS:
  case UTF8PROC_CATEGORY_ZL:
  case UTF8PROC_CATEGORY_ZP: return BLANK;
  case UTF8PROC_CATEGORY_LU:
  case UTF8PROC_CATEGORY_LL:
  case UTF8PROC_CATEGORY_LT:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_LO: return LETTER;
  case UTF8PROC_CATEGORY_ND:
  case UTF8PROC_CATEGORY_NL:
  case UTF8PROC_CATEGORY_NO: return DIGIT;
  default: return SIGN;
  }
}

/* Where the run of characters of kind k that begins at i ends; *last: where its last one begins. */
static size_t run_end(Str s, size_t i, CharKind k, size_t *last) {
  while (i < s.n) {
    uint32_t c;
    int len = tokenizer_char(s, i, &c);
    if (kind_of(c) != k) break;
    *last = i;
    i += (size_t)len;
  }
  return i;
}

/* End of the word that begins at i, by '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+
 * |\s+(?!\S)|\s+ */
static size_t word_end(Str s, size_t i) {
  const char *p = s.p + i;
  size_t left = s.n - i, last = i;
  if (*p == '\'' && left > 1) {
    if (strchr("sdmt", p[1]) && p[1]) return i + 2;
    if (left > 2 && (!memcmp(p + 1, "ll", 2) || !memcmp(p + 1, "ve", 2) || !memcmp(p + 1, "re", 2)))
      return i + 3;
  }
  uint32_t c;
  size_t start = i;
  tokenizer_char(s, i, &c);
  CharKind k = kind_of(c);
  if (c == ' ' && left > 1) { /* one blank goes with what follows */
    tokenizer_char(s, i + 1, &c);
    CharKind next = kind_of(c);
    if (next != BLANK) k = next, start = i + 1;
  }
  size_t end = run_end(s, start, k, &last);
  if (k != BLANK || end == s.n) return end;
  return last > i ? last : end; /* the last blank of a run is left for the next word */
}

static void encode(Tokenizer *t, Str text, IdVec *out) {
  for (size_t i = 0; i < text.n;) {
    size_t end = word_end(text, i);
    tokenizer_word(t, (Str){text.p + i, end - i}, add_word, out);
    i = end;
  }
}

/* ---- reading --------------------------------------------------------------------------------- */

static void take_token(void *arg, const char *token, int32_t id) {
  Bpe *b = arg;
  Buf raw = {0};
  b->t.size = MAX(b->t.size, id + 1);
  if (raw_bytes(str_from(token), &raw)) { /* others, <|endoftext|> among them, are no text */
    map_set(b->tokens, (Str){raw.p, raw.n}, (void *)(intptr_t)(id + 1));
    if (raw.n == 1) b->of_byte[(uint8_t)raw.p[0]] = id;
  }
  buf_free(&raw);
}

static Err *read_tokens(Bpe *b, const cJSON *vocabulary, const char *path) {
  TRY(tokenizer_vocabulary(vocabulary, path, take_token, b));
  for (int i = 0; i < 256; i++)
    if (b->of_byte[i] < 0) return err_new(ERR_DATA_LOSS, "'%s' has no token for byte %d", path, i);
  return NULL;
}

/* Two tokens as the files write them; false: they or what they make are none. */
static bool add_merge(Bpe *b, Str first, Str second, int rank) {
  Buf left = {0}, right = {0};
  int32_t pair[2] = {-1, -1}, result = -1;
  if (raw_bytes(first, &left) && raw_bytes(second, &right)) {
    pair[0] = token_id(b, (Str){left.p, left.n});
    pair[1] = token_id(b, (Str){right.p, right.n});
    buf_add(&left, right.p, right.n);
    result = token_id(b, (Str){left.p, left.n});
  }
  buf_free(&left);
  buf_free(&right);
  if (pair[0] < 0 || pair[1] < 0 || result < 0) return false;
  Merge *m = ARENA_NEW(b->t.arena, Merge);
  *m = (Merge){rank, result};
  map_set(b->merges, (Str){(char *)pair, sizeof pair}, m);
  return true;
}

/* "first second" */
static bool add_merge_line(Bpe *b, Str line, int rank) {
  const char *gap = line.n ? memchr(line.p, ' ', line.n) : NULL;
  if (!gap) return false;
  size_t n = (size_t)(gap - line.p);
  return add_merge(b, (Str){line.p, n}, (Str){gap + 1, line.n - n - 1}, rank);
}

static Err *read_merges(Bpe *b, const TokenizerFile *f) {
  int rank = 0, line = 0;
  for (size_t at = 0; at < f->bytes.n;) {
    const char *p = f->bytes.p + at, *nl = memchr(p, '\n', f->bytes.n - at);
    size_t n = nl ? (size_t)(nl - p) : f->bytes.n - at;
    at += n + 1;
    line++;
    if (n && p[n - 1] == '\r') n--;
    if (!n || (line == 1 && *p == '#')) continue;
    if (!add_merge_line(b, (Str){p, n}, rank++))
      return err_new(ERR_DATA_LOSS, "%s:%d: not a pair of tokens", f->path, line);
  }
  return NULL;
}

/* ["first second", ...] or [["first", "second"], ...] */
static Err *read_merge_list(Bpe *b, const cJSON *list, const char *path) {
  int rank = 0;
  const cJSON *item;
  if (!cJSON_IsArray(list)) return err_new(ERR_DATA_LOSS, "'%s' has no list of merges", path);
  cJSON_ArrayForEach(item, list) {
    const cJSON *first = cJSON_GetArrayItem(item, 0), *second = cJSON_GetArrayItem(item, 1);
    bool good = cJSON_IsString(item) ? add_merge_line(b, str_from(item->valuestring), rank)
                                     : cJSON_IsString(first) && cJSON_IsString(second) &&
                                           add_merge(b, str_from(first->valuestring),
                                                     str_from(second->valuestring), rank);
    if (!good) return err_new(ERR_DATA_LOSS, "'%s': merge %d is not a pair of tokens", path, rank);
    rank++;
  }
  return NULL;
}

static void free_bpe(Tokenizer *t) {
  Bpe *b = (Bpe *)t;
  map_free(b->tokens);
  map_free(b->merges);
}

static const TokenizerKind byte_pairs = {"gpt2", encode, free_bpe};

static Bpe *new_bpe(void) {
  Bpe *b = (Bpe *)tokenizer_new(&byte_pairs, sizeof *b);
  b->tokens = map_new();
  b->merges = map_new();
  for (int i = 0; i < 256; i++) b->of_byte[i] = -1;
  return b;
}

static Err *finish(Err *e, Bpe *b, Tokenizer **out) {
  Tokenizer *t = &b->t;
  if (e) return tokenizer_close(t), e;
  t->bytes = ARENA_ARRAY(t->arena, Str, t->size + 1);
  Str key;
  void *value;
  for (int i = 0; map_at(b->tokens, i, &key, &value); i++)
    t->bytes[(intptr_t)value - 1] = arena_str(t->arena, key);
  *out = t;
  return NULL;
}

Err *bpe_read(const TokenizerFile f[2], Tokenizer **out) {
  Bpe *b = new_bpe();
  cJSON *root = cJSON_ParseWithLength(f[0].bytes.p, f[0].bytes.n);
  Err *e = read_tokens(b, root, f[0].path);
  if (!e) e = read_merges(b, &f[1]);
  cJSON_Delete(root);
  return finish(e, b, out);
}

Err *bpe_read_json(const cJSON *root, const char *path, Tokenizer **out) {
  const cJSON *cut = cJSON_GetObjectItem(root, "pre_tokenizer");
  const cJSON *type = cJSON_GetObjectItem(cut, "type");
  const char *name = cJSON_IsString(type) ? type->valuestring : "none";
  bool ours = !strcmp(name, "ByteLevel") && !cJSON_IsFalse(cJSON_GetObjectItem(cut, "use_regex")) &&
              !cJSON_IsTrue(cJSON_GetObjectItem(cut, "add_prefix_space")) &&
              !cJSON_IsObject(cJSON_GetObjectItem(root, "normalizer"));
  if (!ours)
    return err_new(ERR_UNIMPLEMENTED,
                   "'%s' cuts text by %s: of byte pairs only GPT-2's, ByteLevel without a prefix "
                   "and a normalizer, is known",
                   path, name);
  const cJSON *model = cJSON_GetObjectItem(root, "model");
  Bpe *b = new_bpe();
  Err *e = read_tokens(b, cJSON_GetObjectItem(model, "vocab"), path);
  if (!e) e = read_merge_list(b, cJSON_GetObjectItem(model, "merges"), path);
  return finish(e, b, out);
}
