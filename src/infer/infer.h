/* infer: a trained network in use: its answers to pictures and text, its score on a test set, text
 * that it makes, files for other programs. What it needs stands in the checkpoint that `weft
 * train --out` wrote; where an average of the weights was kept (--ema) it is taken.
 *
 * Threads   an Infer: one at a time.
 */
#ifndef WEFT_INFER_INFER_H
#define WEFT_INFER_INFER_H

#include "train/train.h"

typedef struct Infer Infer;
typedef struct InferOpts {
  const char *run; /* run folder or checkpoint */
  Client *client;
  int device;
  int64_t batch; /* the largest batch of one program; 0: 64 */
  /* Of a run of a train step of one's own (adopt/): programs in place of those that the run has; NULL: its own. Their
   * batch is the only one. */
  const char *eval_program, *predict_program;
} InferOpts;
/* errors: those of checkpoint_info; ERR_NOT_FOUND the model is none of this version's; ERR_INVALID a
 * tensor is missing or of another shape */
Err *infer_open(const InferOpts *o, Infer **out);
void infer_close(Infer *i); /* NULL is fine */
const CheckpointInfo *infer_info(const Infer *i);
const Model *infer_model(const Infer *i);
int64_t infer_weights(const Infer *i); /* elements of all parameters */

/* What goes in: one example of a field of the data, the first of models of the zoo; what comes out of it: f32 numbers. */
const Field *infer_field(const Infer *i);
size_t infer_input_bytes(const Infer *i);
int64_t infer_outputs(const Infer *i);
/* Classes among which the outputs choose, once or for each token; 0: they are other numbers. */
int64_t infer_classes(const Infer *i);
/* The state of a program that predicts was found by types and order: it has no names. */
bool infer_by_type(const Infer *i);
/* Examples that its program takes; 0: any number. */
int64_t infer_fixed_batch(const Infer *i);
/* Has it an answer for one array? NULL, or why not: ERR_INVALID of a run of one's own without a program that
 * predicts, ERR_UNIMPLEMENTED of models that take several arrays or answer for each pixel. */
Err *infer_can_answer(const Infer *i);
/* n examples side by side; logits: n x infer_outputs numbers. Programs are made for batches of
 * powers of two when they are first needed; what is missing to one is filled up. */
Err *infer_forward(Infer *i, int64_t n, const void *inputs, float *logits);
/* Softmax of k numbers in place; shares that sum to 1 already stay what they are. */
void infer_softmax(float *v, int64_t k);

typedef struct InferScore {
  double loss, accuracy; /* means over the answers */
  int64_t examples;
  double seconds; /* of running, compiling not counted */
} InferScore;
/* On the test examples of d, whose fields must be those of the checkpoint's data. */
Err *infer_evaluate(Infer *i, const Data *d, InferScore *out);

/* ---- inputs from files (input.c) ------------------------------------------------------------- */

/* The examples in a file: of pictures a PNG, a JPEG or bytes in an npy or npz file ((H, W), (H, W, C) or
 * (n, H, W, C)), sized as the network wants them; of numbers an npy or npz file of their shape, one or many, or a csv.
 * *out: *n x infer_input_bytes; the caller frees it. */
Err *infer_read(const Infer *i, const char *path, int64_t *n, void **out);
/* The same of a file's bytes in memory (PNG or JPEG): one example. */
Err *infer_image(const Infer *i, const void *bytes, size_t n, uint8_t *out);

/* ---- files for other programs (export.c, import.c) -------------------------------------------- */

typedef struct ExportOpts {
  const char *to; /* folder; made where it is not there */
  int64_t batch;  /* of the program; 0: 1 */
} ExportOpts;
/* Writes into the folder: forward.mlirbc, the network with its weights and preprocessing as portable
 * StableHLO bytecode, (inputs as they are in files) -> f32 logits; pytorch.safetensors and,
 * of models that Keras has, keras.safetensors, the weights under the names of NameStyle; load_jax.py,
 * load_pytorch.py, load_keras.py, which read them; export.json, which says what goes in and what comes out. `i` may
 * have no client. */
Err *infer_export(const Infer *i, const ExportOpts *o);

typedef struct ImportOpts {
  const char *model; /* of the zoo */
  const char *
      file; /* safetensors with the names of NAMES_TORCH; or a folder with them, config.json and a tokenizer */
  const char *tokenizer; /* text: what opens its tokenizer; NULL: bytes */
  const char *to;        /* run folder */
  int64_t length;        /* text: tokens in an example; 0: 1024, BERT 512 */
  int size;              /* variant; 0: the model's own */
  bool overwrite;
} ImportOpts;
/* Makes a run folder of them, as if it had been trained by weft.
 *   errors    ERR_INVALID a tensor that is missing or does not fit: names it; ERR_EXISTS */
Err *infer_import(const ImportOpts *o);

/* ---- text (text.c) --------------------------------------------------------------------------- */

typedef struct Tokens Tokens; /* bytes, or a tokenizer's; any thread */
Err *tokens_open(const CheckpointInfo *c, Tokens **out);
void tokens_close(Tokens *t);
Err *tokens_encode(Tokens *t, Str text, IdVec *out);
/* A text as one example of the network, its last tokens that fit; places: of the tokens where it is answered, those that
 * [MASK] stands for where the network was trained on masks, else the last one.
 *   errors    ERR_INVALID an empty text, or none of the masks that are asked for */
Err *tokens_example(Tokens *t, Str text, int32_t *example, IdVec *places);
void tokens_decode(const Tokens *t, int32_t id, Buf *out);

typedef struct Sampling {
  double temperature; /* 0: always the likeliest */
  int64_t top_k;      /* among so many; 0: all */
  double top_p;       /* among the likeliest that make up this share; 0 or 1: all */
  uint64_t seed;
} Sampling;
/* One of k by their logits, with the random word of (seed, at). Ties: the lower number. */
int32_t sample_token(const Sampling *s, int64_t k, const float *logits, uint64_t at);

typedef struct GenerateOpts {
  int64_t tokens; /* to make */
  Sampling sampling;
  bool no_cache; /* all tokens again for each: the same text, slower */
  /* Called with each token that is made. false: enough. May be NULL. */
  bool (*each)(void *arg, int32_t token);
  void *arg;
} GenerateOpts;
typedef struct Generated {
  IdVec ids;               /* what was made; vec_free */
  double prompt_s, each_s; /* until the first token; the median of the others */
} Generated;
/* Goes on from prompt, at least one token. When the network's length is full it goes on from the
 * last half of it.
 *   errors    ERR_UNIMPLEMENTED a model that makes no text */
Err *infer_generate(Infer *i, const IdVec *prompt, const GenerateOpts *o, Generated *out);

#endif
