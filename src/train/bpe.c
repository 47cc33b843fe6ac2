/* GPT-2's byte-level byte-pair encoding (Radford et al. 2019), from its two published files.
 *
 * Text is cut into words by GPT-2's pattern ('s 'll ..., letters, digits, other signs, each with
 * one blank before them, runs of blanks); in a word the pair of tokens with the lowest rank in
 * vocab.bpe is merged until none is left. Words repeat, so their tokens are kept in a map. Letters
 * and digits beyond ASCII are told by the C library's tables, which differ from Unicode's in rare
 * characters.
 */
#include "train/data_priv.h"

#include <cjson/cJSON.h>
#include <locale.h>
#include <stdlib.h>
#include <wctype.h>

enum { MAX_TOKENS = 1 << 24 };

typedef struct Word { /* tokens of a word, in the cache */
  int n;
  int32_t ids[];
} Word;

struct Bpe {
  Arena *arena;
  Map *tokens; /* bytes -> id + 1 */
  Map *merges; /* two ids -> Merge */
  Map *words;  /* bytes -> Word */
  int32_t of_byte[256];
  Str *bytes; /* of each token; size of them */
  int32_t size;
  locale_t locale;
};

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

/* One character of UTF-8; a byte that is not part of one counts as itself. Returns its length. */
static int decode(const char *p, size_t n, uint32_t *out) {
  int len = utf8_char(p, n, out);
  if (!len) *out = (uint8_t)*p;
  return MAX(len, 1);
}

static bool raw_bytes(Str s, Buf *out) {
  out->n = 0;
  for (size_t i = 0; i < s.n;) {
    uint32_t c;
    i += (size_t)decode(s.p + i, s.n - i, &c);
    int b = byte_of(c);
    if (b < 0) return false;
    buf_byte(out, b);
  }
  return true;
}

static int32_t token_id(const Bpe *b, Str raw) {
  return (int32_t)(intptr_t)map_get(b->tokens, raw) - 1;
}

static Err *read_tokens(Bpe *b, const char *path) {
  Buf file = {0}, raw = {0};
  TRY(file_read(path, &file));
  cJSON *root = cJSON_ParseWithLength(file.p, file.n);
  const cJSON *item;
  Err *e = cJSON_IsObject(root) ? NULL : err_new(ERR_DATA_LOSS, "'%s' is not a JSON object", path);
  if (!e) {
    cJSON_ArrayForEach(item, root) {
      if (!cJSON_IsNumber(item) || item->valueint < 0 || item->valueint >= MAX_TOKENS) {
        e = err_new(ERR_DATA_LOSS, "'%s': token '%s' has no number below %d", path, item->string,
                    MAX_TOKENS);
        break;
      }
      b->size = MAX(b->size, item->valueint + 1);
      if (!raw_bytes(str_from(item->string), &raw)) continue; /* <|endoftext|> is no text */
      map_set(b->tokens, (Str){raw.p, raw.n}, (void *)(intptr_t)(item->valueint + 1));
      if (raw.n == 1) b->of_byte[(uint8_t)raw.p[0]] = item->valueint;
    }
  }
  for (int i = 0; i < 256 && !e; i++)
    if (b->of_byte[i] < 0) e = err_new(ERR_DATA_LOSS, "'%s' has no token for byte %d", path, i);
  cJSON_Delete(root);
  buf_free(&file);
  buf_free(&raw);
  return e;
}

static Err *read_merges(Bpe *b, const char *path) {
  Buf file = {0}, left = {0}, right = {0};
  TRY(file_read(path, &file));
  Err *e = NULL;
  int rank = 0, line = 0;
  for (char *p = file.p, *end = file.p + file.n; p < end && !e;) {
    char *nl = memchr(p, '\n', (size_t)(end - p)), *stop = nl ? nl : end;
    char *gap = memchr(p, ' ', (size_t)(stop - p));
    line++;
    if (p < stop && !(line == 1 && *p == '#')) {
      bool ok = gap && raw_bytes((Str){p, (size_t)(gap - p)}, &left) &&
                raw_bytes((Str){gap + 1, (size_t)(stop - gap - 1)}, &right);
      int32_t pair[2] = {-1, -1}, result = -1;
      if (ok) {
        pair[0] = token_id(b, (Str){left.p, left.n});
        pair[1] = token_id(b, (Str){right.p, right.n});
        buf_add(&left, right.p, right.n);
        result = token_id(b, (Str){left.p, left.n});
      }
      if (pair[0] < 0 || pair[1] < 0 || result < 0) {
        e = err_new(ERR_DATA_LOSS, "%s:%d: not a pair of tokens", path, line);
      } else {
        Merge *m = ARENA_NEW(b->arena, Merge);
        *m = (Merge){rank++, result};
        map_set(b->merges, (Str){(char *)pair, sizeof pair}, m);
      }
    }
    p = stop + 1;
  }
  buf_free(&file);
  buf_free(&left);
  buf_free(&right);
  return e;
}

static void list_bytes(Bpe *b);

Err *bpe_open(const char *dir, Bpe **out) {
  Bpe *b = xcalloc(1, sizeof *b);
  b->arena = arena_new();
  b->tokens = map_new();
  b->merges = map_new();
  b->words = map_new();
  b->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
  for (int i = 0; i < 256; i++) b->of_byte[i] = -1;
  char *path = xasprintf("%s/encoder.json", dir);
  Err *e = read_tokens(b, path);
  free(path);
  path = xasprintf("%s/vocab.bpe", dir);
  if (!e) e = read_merges(b, path);
  if (!e) list_bytes(b);
  free(path);
  if (e) {
    bpe_close(b);
    return err_hint(e, "the folder must hold GPT-2's encoder.json and vocab.bpe");
  }
  *out = b;
  return NULL;
}

void bpe_close(Bpe *b) {
  if (!b) return;
  if (b->locale) freelocale(b->locale);
  map_free(b->tokens);
  map_free(b->merges);
  map_free(b->words);
  arena_free(b->arena);
  free(b);
}

int32_t bpe_size(const Bpe *b) { return b->size; }

static void list_bytes(Bpe *b) {
  b->bytes = ARENA_ARRAY(b->arena, Str, b->size);
  Str key;
  void *value;
  for (int i = 0; map_at(b->tokens, i, &key, &value); i++)
    b->bytes[(intptr_t)value - 1] = arena_str(b->arena, key);
}

void bpe_decode(const Bpe *b, int32_t id, Buf *out) {
  if (id >= 0 && id < b->size) buf_str(out, b->bytes[id]);
}

/* ---- words ----------------------------------------------------------------------------------- */

static const Word *word_tokens(Bpe *b, Str s) {
  Word *w = map_get(b->words, s);
  if (w) return w;
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
  w = arena_alloc(b->arena, sizeof *w + sizeof *ids * (size_t)n);
  w->n = n;
  memcpy(w->ids, ids, sizeof *ids * (size_t)n);
  map_set(b->words, s, w);
  free(ids);
  return w;
}

typedef enum CharKind { BLANK, LETTER, DIGIT, SIGN } CharKind;

static CharKind kind_of(const Bpe *b, uint32_t c) {
  if (c == ' ' || (c >= '\t' && c <= '\r') || c == 0x85 || c == 0xA0) return BLANK;
  if (c < 0x80) {
    uint32_t low = c | 32;
    return low >= 'a' && low <= 'z' ? LETTER : c >= '0' && c <= '9' ? DIGIT : SIGN;
  }
  if (!b->locale) return SIGN;
  if (iswspace_l((wint_t)c, b->locale)) return BLANK;
  return iswalpha_l((wint_t)c, b->locale) ? LETTER : SIGN;
}

/* Where the run of characters of kind k that begins at i ends; *last: where its last one begins. */
static size_t run_end(const Bpe *b, Str s, size_t i, CharKind k, size_t *last) {
  while (i < s.n) {
    uint32_t c;
    int len = decode(s.p + i, s.n - i, &c);
    if (kind_of(b, c) != k) break;
    *last = i;
    i += (size_t)len;
  }
  return i;
}

/* End of the word that begins at i, by '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+
 * |\s+(?!\S)|\s+ */
static size_t word_end(const Bpe *b, Str s, size_t i) {
  const char *p = s.p + i;
  size_t left = s.n - i, last = i;
  if (*p == '\'' && left > 1) {
    if (strchr("sdmt", p[1]) && p[1]) return i + 2;
    if (left > 2 && (!memcmp(p + 1, "ll", 2) || !memcmp(p + 1, "ve", 2) || !memcmp(p + 1, "re", 2)))
      return i + 3;
  }
  uint32_t c;
  size_t start = i;
  decode(p, left, &c);
  CharKind k = kind_of(b, c);
  if (c == ' ' && left > 1) { /* one blank goes with what follows */
    decode(p + 1, left - 1, &c);
    CharKind next = kind_of(b, c);
    if (next != BLANK) k = next, start = i + 1;
  }
  size_t end = run_end(b, s, start, k, &last);
  if (k != BLANK || end == s.n) return end;
  return last > i ? last : end; /* the last blank of a run is left for the next word */
}

void bpe_encode(Bpe *b, Str text, IdVec *out) {
  for (size_t i = 0; i < text.n;) {
    size_t end = word_end(b, text, i);
    const Word *w = word_tokens(b, (Str){text.p + i, end - i});
    for (int k = 0; k < w->n; k++) *vec_push(out) = w->ids[k];
    i = end;
  }
}
