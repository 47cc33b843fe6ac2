/* Private to the tokenizers: what GPT-2's byte pairs and BERT's word pieces share. */
#ifndef WEFT_TRAIN_TOKENIZER_PRIV_H
#define WEFT_TRAIN_TOKENIZER_PRIV_H

#include "train/train.h"

#include <cjson/cJSON.h>

enum { MOST_TOKENS = 1 << 24 };

typedef struct TokenizerKind {
  const char *name; /* as checkpoints have it */
  /* Adds the tokens of a text. */
  void (*encode)(Tokenizer *t, Str text, IdVec *out);
  void (*free)(Tokenizer *t);
} TokenizerKind;

struct Tokenizer { /* first in a Bpe and a WordPiece */
  const TokenizerKind *kind;
  Arena *arena;
  int32_t size;
  Str *bytes; /* of each token; size of them */
  TokenMarks marks;
  Map *words; /* what has been encoded: bytes -> ids */
};

/* size bytes, the first of which are a Tokenizer. */
Tokenizer *tokenizer_new(const TokenizerKind *kind, size_t size);
/* Words repeat: the tokens of one are made once, by `make`, and kept. */
void tokenizer_word(Tokenizer *t, Str word, void (*make)(Tokenizer *t, Str word, IdVec *out),
                    IdVec *out);
/* One character of UTF-8; a byte that is not part of one counts as itself. Returns its length. */
int tokenizer_char(Str s, size_t i, uint32_t *out);
/* {"token": id, ...}: calls `take` for each. errors: no object, or an id that is none */
Err *tokenizer_vocabulary(const cJSON *object, const char *path,
                          void (*take)(void *arg, const char *token, int32_t id), void *arg);

/* A file that a tokenizer is read from; bytes.p NULL: it is not there. */
typedef struct TokenizerFile {
  char *path;
  Buf bytes;
} TokenizerFile;
Err *bpe_read(const TokenizerFile f[2], Tokenizer **out); /* vocabulary, merges */
Err *bpe_read_json(const cJSON *root, const char *path, Tokenizer **out);
Err *wordpiece_read(const TokenizerFile f[2], Tokenizer **out); /* vocabulary, settings */
Err *wordpiece_read_json(const cJSON *root, const char *path, Tokenizer **out);

#endif
