/* Text as tokens: which files there are, and what the two kinds of tokenizers share. */
#include "train/tokenizer_priv.h"

#include "base/path.h"
#include "base/system.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- shared ---------------------------------------------------------------------------------- */

typedef struct Word { /* what a word is encoded as */
  int n;
  int32_t ids[];
} Word;

Tokenizer *tokenizer_new(const TokenizerKind *kind, size_t size) {
  Tokenizer *t = xcalloc(1, size);
  t->kind = kind;
  t->arena = arena_new();
  t->words = map_new();
  return t;
}

void tokenizer_word(Tokenizer *t, Str word, void (*make)(Tokenizer *t, Str word, IdVec *out),
                    IdVec *out) {
  Word *w = map_get(t->words, word);
  if (!w) {
    IdVec ids = {0};
    make(t, word, &ids);
    w = arena_alloc(t->arena, sizeof *w + sizeof *ids.v * (size_t)ids.n);
    w->n = ids.n;
    if (ids.n) memcpy(w->ids, ids.v, sizeof *ids.v * (size_t)ids.n);
    map_set(t->words, word, w);
    vec_free(&ids);
  }
  for (int i = 0; i < w->n; i++) *vec_push(out) = w->ids[i];
}

int tokenizer_char(Str s, size_t i, uint32_t *out) {
  int len = utf8_char(s.p + i, s.n - i, out);
  if (!len) *out = (uint8_t)s.p[i];
  return MAX(len, 1);
}

Err *tokenizer_vocabulary(const cJSON *object, const char *path,
                          void (*take)(void *arg, const char *token, int32_t id), void *arg) {
  const cJSON *item;
  if (!cJSON_IsObject(object))
    return err_new(ERR_DATA_LOSS, "'%s' has no object of tokens and their numbers", path);
  cJSON_ArrayForEach(item, object) {
    if (!cJSON_IsNumber(item) || item->valueint < 0 || item->valueint >= MOST_TOKENS)
      return err_new(ERR_DATA_LOSS, "'%s': token '%s' has no number below %d", path, item->string,
                     MOST_TOKENS);
    take(arg, item->string, item->valueint);
  }
  return NULL;
}

/* ---- files ----------------------------------------------------------------------------------- */

static Err *read_any_json(const TokenizerFile f[2], Tokenizer **out) {
  cJSON *root = cJSON_ParseWithLength(f[0].bytes.p, f[0].bytes.n);
  const cJSON *type = cJSON_GetObjectItem(cJSON_GetObjectItem(root, "model"), "type");
  const char *name = cJSON_IsString(type) ? type->valuestring : NULL;
  Err *e;
  if (!cJSON_IsObject(root)) e = err_new(ERR_DATA_LOSS, "'%s' is not a JSON object", f[0].path);
  else if (name && !strcmp(name, "WordPiece")) e = wordpiece_read_json(root, f[0].path, out);
  else if (name && !strcmp(name, "BPE")) e = bpe_read_json(root, f[0].path, out);
  else
    e = err_new(ERR_UNIMPLEMENTED, "'%s' has a model of type '%s': BPE and WordPiece are known",
                f[0].path, name ? name : "?");
  cJSON_Delete(root);
  return e;
}

/* By the files' usual names. The first set whose first file is there counts. */
static const struct FileSet {
  const char *names[2];
  bool both; /* the second must be there, too */
  Err *(*read)(const TokenizerFile f[2], Tokenizer **out);
} file_sets[] = {{{"encoder.json", "vocab.bpe"}, true, bpe_read},
                 {{"vocab.json", "merges.txt"}, true, bpe_read},
                 {{"vocab.txt", "tokenizer_config.json"}, false, wordpiece_read},
                 {{"tokenizer.json", NULL}, false, read_any_json}};

static char *beside(const char *path, bool folder, const char *name) {
  const char *slash = strrchr(path, '/');
  if (folder) return xasprintf("%s/%s", path, name);
  return slash ? xasprintf("%.*s/%s", (int)(slash - path), path, name) : xstrdup(name);
}

/* The set that a path means, a folder or the first file of a set, and where its files are. */
static Err *find_files(const char *path, const struct FileSet **out, TokenizerFile f[2]) {
  struct stat st;
  if (stat(path, &st)) return err_errno("cannot open '%s'", path);
  bool folder = S_ISDIR(st.st_mode);
  const struct FileSet *set = NULL;
  for (size_t i = 0; i < COUNT_OF(file_sets) && !set; i++) {
    char *first = beside(path, folder, file_sets[i].names[0]);
    bool here = folder ? !access(first, F_OK) : !strcmp(base_name(path), file_sets[i].names[0]);
    if (here) set = &file_sets[i];
    free(first);
  }
  if (!set && folder)
    return err_hint(err_new(ERR_NOT_FOUND, "'%s' holds no files of a tokenizer", path),
                    "GPT-2's encoder.json and vocab.bpe (or vocab.json and merges.txt), BERT's "
                    "vocab.txt, or tokenizer.json");
  if (!set) set = &file_sets[str_ends(str_from(path), ".json") ? 3 : 2]; /* of any name */
  f[0].path = folder ? beside(path, true, set->names[0]) : xstrdup(path);
  f[1].path = set->names[1] ? beside(path, folder, set->names[1]) : NULL;
  *out = set;
  return NULL;
}

static void free_files(TokenizerFile f[2]) {
  for (int i = 0; i < 2; i++) {
    free(f[i].path);
    buf_free(&f[i].bytes);
  }
}

static Err *read_files(const char *path, const struct FileSet **set, TokenizerFile f[2]) {
  TRY(find_files(path, set, f));
  TRY(file_read(f[0].path, &f[0].bytes));
  bool there = f[1].path && ((*set)->both || !access(f[1].path, F_OK));
  return there ? file_read(f[1].path, &f[1].bytes) : NULL;
}

Err *tokenizer_open(const char *path, Tokenizer **out) {
  TokenizerFile f[2] = {0};
  const struct FileSet *set;
  Err *e = read_files(path, &set, f);
  if (!e) e = set->read(f, out);
  free_files(f);
  return e;
}

Err *tokenizer_copy(const char *from, const char *to) {
  TokenizerFile f[2] = {0};
  const struct FileSet *set;
  Err *e = read_files(from, &set, f);
  for (int i = 0; i < 2 && !e; i++) {
    if (!f[i].bytes.p) continue;
    char *path = xasprintf("%s/%s", to, set->names[i]);
    e = file_write(path, f[i].bytes.p, f[i].bytes.n);
    free(path);
  }
  free_files(f);
  return e;
}

/* ---- in use ---------------------------------------------------------------------------------- */

void tokenizer_close(Tokenizer *t) {
  if (!t) return;
  t->kind->free(t);
  map_free(t->words);
  arena_free(t->arena);
  free(t);
}

const char *tokenizer_kind(const Tokenizer *t) { return t->kind->name; }
int32_t tokenizer_size(const Tokenizer *t) { return t->size; }
TokenMarks tokenizer_marks(const Tokenizer *t) { return t->marks; }
void tokenizer_encode(Tokenizer *t, Str text, IdVec *out) { t->kind->encode(t, text, out); }

void tokenizer_decode(const Tokenizer *t, int32_t id, Buf *out) {
  if (id >= 0 && id < t->size) buf_str(out, t->bytes[id]);
}
