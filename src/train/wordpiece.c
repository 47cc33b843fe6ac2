/* BERT's word pieces (Devlin et al. 2018; Wu et al. 2016), as in its published vocabularies.
 *
 * A text is cleaned of control characters and cut at blanks, around Chinese characters and around
 * punctuation; of uncased vocabularies words are in lower case, their accents taken off (NFD
 * without nonspacing marks). From the front of a word the longest piece of the vocabulary is taken,
 * then the longest with ## before it, and so on; a word that does not come out is [UNK]. [CLS],
 * [SEP], [MASK], [PAD] and [UNK] in a text stand for themselves.
 */
#include "train/tokenizer_priv.h"

#include <stdlib.h>
#include <utf8proc.h>

enum { LONGEST_WORD = 100 }; /* characters; a longer one is [UNK] */

typedef struct Special {
  Str text;
  int32_t id;
} Special;

typedef struct WordPiece {
  Tokenizer t;
  Map *pieces; /* bytes -> id + 1 */
  VEC(Special) specials;
  bool clean, lower, strip, chinese; /* what is done to a text */
  Str prefix;                        /* of a piece inside a word */
  int longest;
  int32_t unknown;
} WordPiece;

static int32_t piece_id(const WordPiece *w, Str s) {
  return (int32_t)(intptr_t)map_get(w->pieces, s) - 1;
}

/* ---- characters ------------------------------------------------------------------------------ */

static bool is_blank(uint32_t c) {
  utf8proc_category_t k = utf8proc_category((int32_t)c);
  return (c >= '\t' && c <= '\r') || c == 0x85 || k == UTF8PROC_CATEGORY_ZS ||
         k == UTF8PROC_CATEGORY_ZL || k == UTF8PROC_CATEGORY_ZP;
}

/* What cleaning takes out: controls, formats and private characters; not unassigned ones, which a newer Unicode may have. */
static bool is_dirt(uint32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  utf8proc_category_t k = utf8proc_category((int32_t)c);
  return !c || c == 0xFFFD || k == UTF8PROC_CATEGORY_CC || k == UTF8PROC_CATEGORY_CF ||
         k == UTF8PROC_CATEGORY_CO || k == UTF8PROC_CATEGORY_CS;
}

/* ASCII's signs all count, whatever Unicode calls them. */
static bool is_punctuation(uint32_t c) {
  if (c < 0x80)
    return c > ' ' && c < 0x7F && !(c >= '0' && c <= '9') && !((c | 32) >= 'a' && (c | 32) <= 'z');
  utf8proc_category_t k = utf8proc_category((int32_t)c);
  return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

/* The blocks of unified and compatibility ideographs that BERT sets apart. */
static bool is_chinese(uint32_t c) {
  static const uint32_t blocks[][2] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                                       {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F},
                                       {0x2B820, 0x2CEAF}, {0x2F800, 0x2FA1F}};
  for (size_t i = 0; i < COUNT_OF(blocks); i++)
    if (c >= blocks[i][0] && c <= blocks[i][1]) return true;
  return false;
}

static void put_char(int32_t c, Buf *out) {
  utf8proc_uint8_t bytes[4];
  buf_add(out, bytes, (size_t)utf8proc_encode_char(c, bytes));
}

/* ---- one word -------------------------------------------------------------------------------- */

static int characters(Str s) {
  int n = 0;
  for (size_t i = 0; i < s.n; i++) n += ((uint8_t)s.p[i] & 0xC0) != 0x80;
  return n;
}

/* The longest piece that rest begins with; its bytes in *used. */
static int32_t longest_piece(const WordPiece *w, Str rest, bool inside, Buf *key, size_t *used) {
  key->n = 0;
  if (inside) buf_str(key, w->prefix);
  size_t before = key->n;
  buf_str(key, rest);
  for (size_t n = rest.n; n; n--) {
    if (n < rest.n && ((uint8_t)rest.p[n] & 0xC0) == 0x80) continue; /* inside a character */
    int32_t id = piece_id(w, (Str){key->p, before + n});
    if (id >= 0) return *used = n, id;
  }
  return -1;
}

static void add_pieces(const WordPiece *w, Str word, IdVec *out) {
  int begin = out->n;
  bool known = characters(word) <= w->longest;
  Buf key = {0};
  for (size_t i = 0, used; i < word.n && known; i += used) {
    int32_t id = longest_piece(w, (Str){word.p + i, word.n - i}, i > 0, &key, &used);
    known = id >= 0;
    if (known) *vec_push(out) = id;
    else used = 0;
  }
  buf_free(&key);
  if (known) return;
  out->n = begin;
  *vec_push(out) = w->unknown;
}

/* A run without blanks: accents and case, then its words and signs. */
static void add_run(Tokenizer *t, Str run, IdVec *out) {
  const WordPiece *w = (const WordPiece *)t;
  int how = w->strip ? UTF8PROC_DECOMPOSE | UTF8PROC_STABLE : 0;
  const utf8proc_uint8_t *p = (const utf8proc_uint8_t *)run.p;
  utf8proc_ssize_t n = utf8proc_decompose(p, (utf8proc_ssize_t)run.n, NULL, 0, how);
  if (n < 0) n = 0; /* too long for its counter: a run of gigabytes */
  int32_t *c = xmalloc(sizeof *c * ((size_t)n + 1));
  if (n) utf8proc_decompose(p, (utf8proc_ssize_t)run.n, c, n, how);
  Buf word = {0};
  for (utf8proc_ssize_t i = 0; i <= n; i++) {
    bool sign = i < n && is_punctuation((uint32_t)c[i]);
    if ((sign || i == n) && word.n) add_pieces(w, (Str){word.p, word.n}, out), word.n = 0;
    if (i == n || (w->strip && utf8proc_category(c[i]) == UTF8PROC_CATEGORY_MN)) continue;
    if (w->lower && c[i] == 0x130)
      buf_cstr(&word, "i\xCC\x87"); /* the only one of two characters */
    else put_char(w->lower ? utf8proc_tolower(c[i]) : c[i], &word);
    if (sign) add_pieces(w, (Str){word.p, word.n}, out), word.n = 0;
  }
  buf_free(&word);
  free(c);
}

/* ---- a text ---------------------------------------------------------------------------------- */

static void flush(WordPiece *w, Buf *run, IdVec *out) {
  if (run->n) tokenizer_word(&w->t, (Str){run->p, run->n}, add_run, out);
  run->n = 0;
}

static void add_text(WordPiece *w, Str text, IdVec *out) {
  Buf run = {0};
  for (size_t i = 0; i < text.n;) {
    uint32_t c;
    int len = utf8_char(text.p + i, text.n - i, &c);
    i += (size_t)MAX(len, 1);
    if (!len) c = 0xFFFD; /* a byte that is no character */
    if (w->clean && is_dirt(c)) continue;
    bool apart = w->chinese && is_chinese(c);
    if (apart || is_blank(c)) flush(w, &run, out);
    if (!is_blank(c)) put_char((int32_t)c, &run);
    if (apart) flush(w, &run, out);
  }
  flush(w, &run, out);
  buf_free(&run);
}

/* The special token that begins at p; the longest. NULL: none. */
static const Special *special_at(const WordPiece *w, Str rest) {
  const Special *best = NULL;
  for (int i = 0; i < w->specials.n; i++) {
    const Special *s = &w->specials.v[i];
    if (s->text.n > rest.n || memcmp(s->text.p, rest.p, s->text.n) != 0) continue;
    if (!best || s->text.n > best->text.n) best = s;
  }
  return best;
}

static void encode(Tokenizer *t, Str text, IdVec *out) {
  WordPiece *w = (WordPiece *)t;
  size_t begin = 0;
  for (size_t i = 0; i < text.n;) {
    const Special *s = special_at(w, (Str){text.p + i, text.n - i});
    if (!s) {
      i++;
      continue;
    }
    add_text(w, (Str){text.p + begin, i - begin}, out);
    *vec_push(out) = s->id;
    begin = i += s->text.n;
  }
  add_text(w, (Str){text.p + begin, text.n - begin}, out);
}

static void free_pieces(Tokenizer *t) {
  WordPiece *w = (WordPiece *)t;
  map_free(w->pieces);
  vec_free(&w->specials);
}

static const TokenizerKind word_pieces = {"wordpiece", encode, free_pieces};

/* ---- reading --------------------------------------------------------------------------------- */

static WordPiece *new_pieces(void) {
  WordPiece *w = (WordPiece *)tokenizer_new(&word_pieces, sizeof *w);
  w->pieces = map_new();
  w->clean = w->lower = w->strip = w->chinese = true;
  w->prefix = STR("##");
  w->longest = LONGEST_WORD;
  return w;
}

static void take_piece(void *arg, const char *token, int32_t id) {
  WordPiece *w = arg;
  map_set(w->pieces, str_from(token), (void *)(intptr_t)(id + 1));
  w->t.size = MAX(w->t.size, id + 1);
}

static void add_special(WordPiece *w, Str text, int32_t id) {
  if (text.n) *vec_push(&w->specials) = (Special){arena_str(w->t.arena, text), id};
}

/* When all pieces are there: their bytes by number, [UNK] and what is no text. */
static Err *finish(WordPiece *w, const char *path, const char *unknown, Tokenizer **out) {
  Tokenizer *t = &w->t;
  t->bytes = ARENA_ARRAY(t->arena, Str, t->size + 1);
  Str key;
  void *value;
  for (int i = 0; map_at(w->pieces, i, &key, &value); i++)
    t->bytes[(intptr_t)value - 1] = arena_str(t->arena, key);
  w->unknown = piece_id(w, str_from(unknown));
  int32_t begin = piece_id(w, STR("[CLS]")), end = piece_id(w, STR("[SEP]"));
  int32_t mask = piece_id(w, STR("[MASK]")), pad = piece_id(w, STR("[PAD]"));
  bool there = begin >= 0 && end >= 0 && mask >= 0 && pad >= 0;
  if (there) t->marks = (TokenMarks){there, begin, end, mask, pad};
  if (w->unknown >= 0) return *out = t, NULL;
  tokenizer_close(t);
  return err_hint(err_new(ERR_DATA_LOSS, "'%s' has no token %s", path, unknown),
                  "BERT's vocab.txt has a token in each line, or tokenizer.json");
}

/* A vocabulary with capital letters is of a model that tells them apart. */
static bool has_capitals(const WordPiece *w) {
  Str key;
  for (int i = 0; map_at(w->pieces, i, &key, &(void *){NULL}); i++) {
    if (key.n && key.p[0] == '[') continue;
    for (size_t k = 0; k < key.n; k++)
      if (key.p[k] >= 'A' && key.p[k] <= 'Z') return true;
  }
  return false;
}

static bool flag_of(const cJSON *object, const char *key, bool usual) {
  const cJSON *v = cJSON_GetObjectItem(object, key);
  return cJSON_IsBool(v) ? cJSON_IsTrue(v) : usual;
}

/* tokenizer_config.json, where it is. */
static Err *read_settings(WordPiece *w, const TokenizerFile *f) {
  w->lower = !has_capitals(w);
  cJSON *root = f->bytes.p ? cJSON_ParseWithLength(f->bytes.p, f->bytes.n) : NULL;
  if (f->bytes.p && !cJSON_IsObject(root)) {
    cJSON_Delete(root);
    return err_new(ERR_DATA_LOSS, "'%s' is not a JSON object", f->path);
  }
  w->lower = flag_of(root, "do_lower_case", w->lower);
  w->strip = flag_of(root, "strip_accents", w->lower);
  w->chinese = flag_of(root, "tokenize_chinese_chars", true);
  cJSON_Delete(root);
  return NULL;
}

Err *wordpiece_read(const TokenizerFile f[2], Tokenizer **out) {
  static const char *const specials[] = {"[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"};
  WordPiece *w = new_pieces();
  const Buf *b = &f[0].bytes;
  for (size_t at = 0; at < b->n && w->t.size < MOST_TOKENS;) {
    const char *p = b->p + at, *nl = memchr(p, '\n', b->n - at);
    size_t n = nl ? (size_t)(nl - p) : b->n - at;
    at += n + 1;
    if (n && p[n - 1] == '\r') n--;
    map_set(w->pieces, (Str){p, n}, (void *)(intptr_t)++w->t.size);
  }
  for (size_t i = 0; i < COUNT_OF(specials); i++) {
    int32_t id = piece_id(w, str_from(specials[i]));
    if (id >= 0) add_special(w, str_from(specials[i]), id);
  }
  Err *e = read_settings(w, &f[1]);
  if (e) return tokenizer_close(&w->t), e;
  return finish(w, f[0].path, "[UNK]", out);
}

static Err *want_type(const cJSON *root, const char *part, const char *type, const char *path) {
  const cJSON *o = cJSON_GetObjectItem(root, part), *is = cJSON_GetObjectItem(o, "type");
  const char *name = cJSON_IsString(is) ? is->valuestring : "none";
  if (!strcmp(name, type)) return NULL;
  return err_new(ERR_UNIMPLEMENTED, "'%s': the %s is %s; of word pieces only BERT's, %s, is known",
                 path, part, name, type);
}

static void read_added(WordPiece *w, const cJSON *list) {
  const cJSON *item;
  cJSON_ArrayForEach(item, list) {
    const cJSON *text = cJSON_GetObjectItem(item, "content"), *id = cJSON_GetObjectItem(item, "id");
    bool good = cJSON_IsString(text) && cJSON_IsNumber(id) && id->valueint >= 0 &&
                id->valueint < MOST_TOKENS;
    if (!good) continue;
    take_piece(w, text->valuestring, id->valueint);
    add_special(w, str_from(text->valuestring), id->valueint);
  }
}

Err *wordpiece_read_json(const cJSON *root, const char *path, Tokenizer **out) {
  TRY(want_type(root, "normalizer", "BertNormalizer", path));
  TRY(want_type(root, "pre_tokenizer", "BertPreTokenizer", path));
  const cJSON *model = cJSON_GetObjectItem(root, "model");
  const cJSON *norm = cJSON_GetObjectItem(root, "normalizer");
  const cJSON *unknown = cJSON_GetObjectItem(model, "unk_token");
  const cJSON *prefix = cJSON_GetObjectItem(model, "continuing_subword_prefix");
  const cJSON *longest = cJSON_GetObjectItem(model, "max_input_chars_per_word");
  WordPiece *w = new_pieces();
  Err *e = tokenizer_vocabulary(cJSON_GetObjectItem(model, "vocab"), path, take_piece, w);
  if (e) return tokenizer_close(&w->t), e;
  read_added(w, cJSON_GetObjectItem(root, "added_tokens"));
  if (cJSON_IsString(prefix)) w->prefix = arena_str(w->t.arena, str_from(prefix->valuestring));
  if (cJSON_IsNumber(longest)) w->longest = longest->valueint;
  w->clean = flag_of(norm, "clean_text", true);
  w->lower = flag_of(norm, "lowercase", true);
  w->strip = flag_of(norm, "strip_accents", w->lower);
  w->chinese = flag_of(norm, "handle_chinese_chars", true);
  return finish(w, path, cJSON_IsString(unknown) ? unknown->valuestring : "[UNK]", out);
}
