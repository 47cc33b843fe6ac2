/* train: networks, losses, optimisers, data, checkpoints and the training loop. A training step
 * is one StableHLO program
 *
 *     (state..., batch...) -> (state..., metrics)        state is donated (tf.aliasing_output)
 *
 * that any PJRT plugin runs; this folder knows devices only through client/client.h. Models are
 * in zoo/.
 *
 * Order of the state   parameters, statistics (batch norm), optimiser slots, step (i32), seed
 *                      (ui32[2]). An evaluation program takes the parameters and statistics, a
 *                      prefix, and gives them back to nobody.
 * Metrics              f32[3]: mean loss, share of right answers, learning rate. Evaluation:
 *                      sums of loss and right answers, and their number, so that batches add up.
 * Threads              a Net and a Trainer: one thread. A Loader runs threads of its own.
 */
#ifndef WEFT_TRAIN_TRAIN_H
#define WEFT_TRAIN_TRAIN_H

#include "client/client.h"
#include "ir/build.h"
#include "prof/prof.h"

/* ---- initial values -------------------------------------------------------------------------- */

typedef enum InitKind {
  INIT_CONST,          /* scale */
  INIT_NORMAL,         /* standard deviation scale */
  INIT_UNIFORM,        /* -scale ... scale */
  INIT_GLOROT_UNIFORM, /* limit scale * sqrt(6 / (fan_in + fan_out)): Keras' default */
  INIT_HE_NORMAL,      /* deviation scale * sqrt(2 / fan_in) */
  INIT_LECUN_NORMAL,   /* deviation scale * sqrt(1 / fan_in) */
  INIT_TORCH_UNIFORM,  /* limit scale * sqrt(1 / fan_in): PyTorch's default */
  INIT_ORTHOGONAL      /* rows orthonormal, times scale: recurrent kernels */
} InitKind;
typedef struct Init {
  InitKind kind;
  double scale;
  int64_t fan_in, fan_out; /* 0: from the shape, last dimension out, the others in (kernels HWIO,
                              dense [in, out]) */
} Init;
#define INIT(k, s) ((Init){.kind = (k), .scale = (s)})
/* Deterministic: depends on name, seed and shape only, not on the order, machine or threads. */
void init_fill(Init in, const char *name, uint64_t seed, DType type, int rank, const int64_t *dims,
               void *out);

/* Counter-based random words for host-side use: the same threefry2x32 as in the programs. */
void threefry2x32(const uint32_t key[2], const uint32_t in[2], uint32_t out[2]);
static inline uint64_t random_word(uint64_t seed, uint64_t stream, uint64_t i) {
  uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)}, r[2];
  uint32_t mixed[2] = {(uint32_t)i, (uint32_t)(i >> 32) ^ (uint32_t)(stream * 0x9E3779B9u)};
  threefry2x32(key, mixed, r);
  return (uint64_t)r[1] << 32 | r[0];
}

/* ---- tensors by name ------------------------------------------------------------------------- */

typedef struct NamedTensor {
  char *name;
  DType type;
  int rank;
  int64_t dims[8];
  void *data;
} NamedTensor;

/* ---- a network under construction ------------------------------------------------------------ */

/* How a value lies on the devices that run one step together. s NULL: whole on each. */
typedef struct Cut {
  const Sharding *s;
  const Mesh *mesh;
} Cut;

typedef enum StateKind {
  STATE_PARAM,
  STATE_STAT,
  STATE_SLOT,
  STATE_COUNTER,
  STATE_CACHE
} StateKind;
typedef struct StateSpec {
  char *name; /* "conv1/kernel", "opt/m/conv1/kernel", "step" */
  StateKind kind;
  DType type;
  int rank;
  int64_t dims[6];
  Init init;
  int alias;   /* its first value is that of name + alias */
  bool decay;  /* weight decay applies */
  bool frozen; /* stays what it was (LoRA) */
  Cut cut;
} StateSpec;

typedef struct NetParam {
  StateSpec spec;
  Value *arg;
  Value *next; /* statistics: the new value; parameters: set by the optimiser */
} NetParam;

typedef struct NetBlock { /* what --remat computes again */
  Op *before, *last;
} NetBlock;

typedef struct Model Model;
typedef struct WholeStep WholeStep;

typedef struct Net {
  Build b;
  const Model *model;
  bool training;
  bool forward;      /* the network's answer alone: no loss; labels are NULL */
  bool f8;           /* what net_f8 marks computes in 8 bits when training; */
  bool f8_attention; /* attention as well */
  DType compute; /* DT_F32 or DT_BF16: type of products and activations; parameters and statistics
                    are f32 */
  Func *f;
  Value *step, *seed; /* counters; NULL in evaluation */
  VEC(NetParam) params, stats;
  int n_draws;   /* random masks drawn so far: each has its own stream */
  Value *key[2]; /* this step's random key, made when first needed */
  int lora;      /* TrainConfig.lora */
  Value *scale;  /* of the loss, for f16; NULL: none */
  Value *live;   /* i1 (B, T): tokens that attention sees; NULL: all */
  Value *part;   /* ui32: which part of the batch, when it is computed in several; NULL: all */
  int replicas;
  /* Text that is made token by token: this program gets the tokens from position `at` on, and
   * caches hold what layers need of those before. NULL: all of an example at once. */
  Value *at;
  int64_t context; /* tokens that the caches hold */
  /* Weights that become constants of the program, by (spec); NULL: they are arguments. */
  Err *(*weight)(void *arg, const StateSpec *s, const NamedTensor **out);
  void *weight_arg;
  Err *weight_error;
  VEC(NetParam) caches;
  VEC(NetBlock) blocks;
  char scope[256];
} Net;

/* Names inside: "outer/name". Returns the former scope for net_leave. */
typedef struct NetScope {
  size_t len;
  const Loc *loc;
  int block;
} NetScope;
NetScope net_enter(Net *n, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The same, and what is made until net_leave is a block of the model: with TrainConfig.remat its
 * inside is not kept for the backward pass but computed again. */
NetScope net_block(Net *n, const char *fmt, ...) PRINTF_LIKE(2, 3);
void net_leave(Net *n, NetScope s);

enum { PARAM_NO_DECAY = 1, PARAM_LORA = 2 };
#define LORA_SCALE 2.0 /* a kernel is W + 2 A B: alpha is twice the rank */
/* A trainable argument. The value has type f32; layers convert it to n->compute where they
 * multiply. */
Value *net_param(Net *n, const char *name, int rank, const int64_t *dims, Init init,
                 unsigned flags);
Value *net_stat(Net *n, const char *name, int rank, const int64_t *dims, double initial);
void net_set_stat(Net *n, Value *stat, Value *next);
/* A value that goes from one run of a program with `at` to the next, zero at first. */
Value *net_cache(Net *n, const char *name, DType type, int rank, const int64_t *dims);
void net_set_cache(Net *n, Value *cache, Value *next);
/* `product`, a dot_general or convolution that was just made: in 8 bits where the run says so. */
Value *net_f8(Net *n, Value *product);
/* A value that gradients do not flow through. */
Value *net_stop_gradient(Net *n, Value *x);

/* ---- layers: x is (B, ...) with features last ------------------------------------------------ */

Value *net_dense(Net *n, const char *name, Value *x, int64_t units, bool bias,
                 Init init); /* last dimension -> units */
typedef enum ConvPad { PAD_VALID, PAD_SAME } ConvPad;
/* x (B, H, W, C), kernel HWIO. PAD_SAME as TensorFlow: the odd one goes behind. pad >= 0:
 * symmetric padding instead. */
Value *net_conv(Net *n, const char *name, Value *x, int64_t size, int64_t stride, ConvPad same,
                int64_t pad, int64_t filters, bool bias, Init init);
/* A transposed convolution whose windows do not overlap: (B, H, W, C) -> (B, size H, size W, filters), kernel
 * (size, size, C, filters), with bias. */
Value *net_conv_up(Net *n, const char *name, Value *x, int64_t size, int64_t filters, Init init);
Value *net_max_pool(Net *n, Value *x, int64_t size, int64_t stride, int64_t pad);
Value *net_global_max(Net *n, Value *x); /* (B, H, W, C) -> (B, C) */
Value *net_global_mean(Net *n, Value *x);
Value *net_relu(Net *n, Value *x);
Value *net_gelu(Net *n, Value *x, bool tanh_form);
Value *net_batch_norm(Net *n, const char *name, Value *x, double momentum, double eps);
Value *net_layer_norm(Net *n, const char *name, Value *x, double eps);
Value *net_rms_norm(Net *n, const char *name, Value *x, double eps); /* scale, no bias */
Value *net_dropout(Net *n, Value *x, double rate);
Value *net_flatten(Net *n, Value *x);
Value *net_embedding(Net *n, const char *name, Value *ids, int64_t rows, int64_t width, double std,
                     Value **table);
Value *net_softmax(Net *n, Value *x); /* over the last dimension */
/* A learned vector for each position, added: x (B, T, C). */
Value *net_positions(Net *n, const char *name, Value *x, int64_t positions, double std);
/* x (B, T, C), packed qkv projection, heads of C / heads; names qkv, proj. proj_std: initial
 * deviation. */
Value *net_attention(Net *n, Value *x, int64_t heads, bool causal, double std, double proj_std);
/* Its parts: (B, T, C) -> (B, heads, T, C / heads); softmax(q k / sqrt(D)) v as (B, T, C). */
Value *net_heads(Net *n, Value *x, int64_t heads);
/* Rotary positions of (B, H, T, D): halves of D turned by position times theta^(-2i / D). Where `factor` is above 1,
 * angles that turn less than `low` times in `context` positions are slower by it, those that turn more than `high` times
 * are not, between them a mixture (Dubey et al. 2024). */
typedef struct Rotary {
  double theta, factor, low, high, context;
} Rotary;
double rotary_rate(const Rotary *r, int64_t i, int64_t half); /* of angle i */
Value *net_rotary(Net *n, Value *x, const Rotary *r);
Value *net_attend(Net *n, Value *q, Value *k, Value *v, bool causal);
/* x (B, T, C) -> (B, T, units); gate order i, f, g, o; one loop over T. */
Value *net_lstm(Net *n, const char *name, Value *x, int64_t units);
/* The same; gates r, z, n as PyTorch's, whose candidate has a bias inside. */
Value *net_gru(Net *n, const char *name, Value *x, int64_t units);
/* Random 32-bit words, one for each element: threefry2x32 of (seed, step) and (element, draw). */
Value *net_random_bits(Net *n, int rank, const int64_t *dims);

/* Mean over the replicas (all-reduce); x itself when there is one. */
Value *net_mean_over_replicas(Net *n, Value *x);

/* ---- losses ---------------------------------------------------------------------------------- */

typedef struct NetOut {
  Value *logits;  /* (..., K) */
  Value *loss;    /* f32: mean over the examples in training, sum in evaluation */
  Value *correct; /* f32: number of right answers */
  Value *count;   /* f32: number of answers */
} NetOut;
/* logits (..., K), labels i32 (...): negative labels are padding and count for nothing. weights:
 * f32 (...) or NULL. */
void net_softmax_loss(Net *n, Value *logits, Value *labels, Value *weights, double label_smoothing,
                      NetOut *out);

/* ---- data ------------------------------------------------------------------------------------ */

typedef struct Field { /* one array of an example, without the batch dimension */
  const char *name;
  DType type;
  int rank;
  int64_t dims[6];
} Field;

enum { DATA_FIELDS = 8 };    /* at most */
enum { DATA_CHANNELS = 16 }; /* of pictures, whose mean and deviation are known */

/* What examples look like where a model makes them up. */
typedef enum TaskKind {
  TASK_LABEL,  /* a picture, its class; or, with a length, text */
  TASK_PIXELS, /* a picture (images), a class for each pixel (labels) */
  TASK_CLICKS  /* numbers (dense), rows of tables (ids), 0 or 1 (labels) */
} TaskKind;

/* Tokens that are no text. */
typedef struct TokenMarks {
  bool there; /* the vocabulary has them all */
  int32_t begin, end, mask, pad;
} TokenMarks;

typedef struct Data Data;
struct Data {
  char *name;
  char *spec;                 /* what opens the same again: "text:a.txt" */
  char *tokenizer;            /* text: what opens its tokenizer; NULL: bytes */
  const char *tokenizer_kind; /* its name; NULL: bytes */
  TokenMarks marks;           /* text: of its vocabulary */
  unsigned reads;             /* Reader bits */
  int n_fields;
  Field fields[DATA_FIELDS]; /* images u8 (H, W, C), labels i32; or tokens, targets (, weights); or
                                any, for a step of one's own (adopt/) */
  char *names;               /* what names of fields point into, where they are no constants */
  int64_t n_train, n_test;
  int64_t classes; /* or the size of the vocabulary */
  int labels_at; /* field that is -1 where the last batch of an evaluation is filled up; 0: the second */
  char *labels; /* names of the classes, a line each; NULL: numbers */
  float mean[DATA_CHANNELS], std[DATA_CHANNELS]; /* of images as 0 ... 1, by channel */
  float *column_mean,
      *column_std;    /* csv: of the numbers of field 0, which are (x - mean) / std; NULL: others */
  char *column_names; /* csv: theirs, then the label's, a line each; NULL: it has none */
  /* Writes example `index` into dst[field]; `rand` is this example's own random number for
   * augmentation. Any thread. */
  Err *(*get)(const Data *d, bool test, int64_t index, uint64_t rand, void *const *dst);
  int64_t shift; /* training pictures are moved and turned by up to so much */
  double rotate;
  bool decodes; /* get takes long: several threads at once */
  void (*free)(Data *d);
  void *impl;
};
typedef struct DataOpts {
  const char *dir;       /* where the files are; NULL: the usual places */
  int64_t length;        /* tokens in an example */
  bool augment;          /* CIFAR: pad 4 and crop, flip, cut out 8 x 8 */
  const char *tokenizer; /* text: what opens its tokenizer; NULL: bytes */
  int64_t shift;         /* pictures: in training moved by up to so many pixels, */
  double rotate;         /* turned by up to so many degrees */
  bool masked;           /* text: BERT's 15 % masks instead of the next token */
  int64_t image_size;    /* of a side of pictures in files; 0: that of shape */
  int64_t shape[3],
      classes; /* of the model: synthetic, pictures in files. TASK_CLICKS: numbers, tables, rows of each */
  TaskKind task;
  const Data *
      like; /* what a network learnt from: its classes and columns by name, their mean and deviation; or NULL */
  bool
      whole; /* all examples are for testing, where the set does not say itself which are (csv, pictures, text) */
} DataOpts;
/* spec: a row of data_specs. errors: ERR_NOT_FOUND naming the file and how to get it; ERR_DATA_LOSS for
 * damaged files */
Err *data_open(const char *spec, const DataOpts *opts, Data **out);
void data_close(Data *d);
/* Rows of a csv as `like` has them, the data of a checkpoint: numbers of its field 0, by the names of columns where both
 * have names; a column of labels, and others of names that it does not have, left out.
 * The caller frees *out. */
Err *data_csv_rows(const char *path, const Data *like, int64_t *n, float **out);
extern const char *const data_specs; /* for --help */

/* Text as tokens: GPT-2's byte pairs, BERT's word pieces. One thread. */
typedef struct Tokenizer Tokenizer;
typedef VEC(int32_t) IdVec;
/* path: a folder with GPT-2's encoder.json and vocab.bpe (or vocab.json and merges.txt), BERT's vocab.txt (with
 * tokenizer_config.json, which says whether case and accents count), or tokenizer.json, as transformers write them; or a
 * vocab.txt or tokenizer.json of any name.
 *   errors    ERR_NOT_FOUND; ERR_DATA_LOSS names file and line; ERR_UNIMPLEMENTED another kind */
Err *tokenizer_open(const char *path, Tokenizer **out);
void tokenizer_close(Tokenizer *t);             /* NULL is fine */
const char *tokenizer_kind(const Tokenizer *t); /* "gpt2", "wordpiece" */
int32_t tokenizer_size(const Tokenizer *t);     /* of the vocabulary */
TokenMarks tokenizer_marks(const Tokenizer *t);
void tokenizer_encode(Tokenizer *t, Str text, IdVec *out); /* adds the tokens of text */
/* Adds the token's bytes; nothing for others. */
void tokenizer_decode(const Tokenizer *t, int32_t id, Buf *out);
/* Its files into a folder, under their usual names. */
Err *tokenizer_copy(const char *from, const char *to);

/* Pictures: 8 bits, (height, width, channels), channels 1 (grey) or 3. */
typedef struct Picture {
  int64_t height, width, channels;
  uint8_t *pixels; /* malloc'd */
} Picture;
/* PNG or JPEG, told by its first bytes. Transparency is laid over white.
 *   errors    ERR_DATA_LOSS damaged; ERR_UNIMPLEMENTED another kind of file */
Err *picture_decode(const uint8_t *bytes, size_t n, Picture *out);
Err *picture_read(const char *path, Picture *out);
bool picture_named(const char *path); /* .png, .jpg, .jpeg */
void picture_free(Picture *i);
/* Into (height, width, channels): the largest part of that shape from the middle, made smaller by
 * averages of areas, larger by linear interpolation; grey from colour by 0.299 R 0.587 G 0.114 B. */
void picture_fit(const Picture *i, int64_t height, int64_t width, int64_t channels, uint8_t *out);

/* Reads one gzip or plain idx file of bytes: dims and data (malloc'd). */
Err *idx_read(const char *path, int *rank, int64_t dims[4], uint8_t **out);

typedef struct Batch {
  int64_t epoch, index; /* index within the epoch */
  int n; /* examples that are real: less than the batch size only at the end of an evaluation */
  ClientBuffer **bufs; /* one for each device and field: [device * n_fields + field]; batch_free */
  double begin_s, make_s; /* when its making began (time_now_s), and how long the host took for it,
                             waiting for a CPU not counted */
} Batch;
typedef struct Loader Loader;
typedef struct LoaderOpts {
  const Data *data;
  Client *client;
  int device, n_devices; /* the first of them; 0 devices means 1: each gets its part of a batch */
  const Cut *cuts;       /* by field: which part; NULL: equal ones, in the order of the devices */
  int first_part,
      parts; /* of a batch, what these devices get: that of the first; 0 parts: all of it */
  bool test;
  int64_t batch; /* of all parts together; a multiple of them */
  uint64_t seed;
  int64_t first, n_batches;
  bool in_order; /* not shuffled */
} LoaderOpts;
/* Makes batches ahead of time on a thread: shuffled by (seed, epoch), augmented, already on the
 * device. Training drops a last incomplete batch; evaluation fills it up with labels -1. Starts
 * at batch `first` counted from epoch 0. */
Err *loader_open(const LoaderOpts *o, Loader **out);
/* The next batch; ownership of the buffers passes. *wait_s gets the time this call had to wait:
 * exposed input time. *more = false: no batch is left. */
Err *loader_next(Loader *l, Batch *out, double *wait_s, bool *more);
void loader_close(Loader *l);
void batch_free(const Loader *l, Batch *b);

/* ---- optimisers ------------------------------------------------------------------------------ */

/* X(ID, name): docs of each in optim.c, with whom it agrees. */
#define OPTIMIZERS(X)     \
  X(SGD, "sgd")           \
  X(MOMENTUM, "momentum") \
  X(NESTEROV, "nesterov") \
  X(ADAM, "adam")         \
  X(ADAMW, "adamw") X(LAMB, "lamb") X(LION, "lion") X(ADAFACTOR, "adafactor") X(MUON, "muon")
typedef enum OptKind {
#define X(id, name) OPT_##id,
  OPTIMIZERS(X)
#undef X
      OPT_COUNT
} OptKind;
typedef enum OptStyle { STYLE_TORCH, STYLE_KERAS } OptStyle;
typedef enum ScheduleKind { LR_CONST, LR_LINEAR, LR_COSINE } ScheduleKind;
typedef struct OptConfig {
  OptKind kind;
  OptStyle style; /* Adam's epsilon: torch adds it to sqrt(v / c2), Keras to sqrt(v); momentum:
                   * torch m = mu m + g, p -= lr m; Keras m = mu m - lr g, p += m */
  double lr, momentum, beta1, beta2, eps;
  double
      decay; /* sgd, momentum, nesterov: added to the gradient, decay * p; others: p -= lr decay p */
  double clip; /* largest global gradient norm; 0: none */
  double ema;  /* moving average of the parameters, with which is evaluated; 0: none */
  ScheduleKind schedule;
  /* LR_LINEAR, LR_COSINE: 0 up to lr during warmup_steps, then down to end * lr at total_steps */
  double warmup_steps, total_steps, end;
} OptConfig;
/* What an optimizer is used with when nobody says: rate, momentum, betas, decay. Schedule and clip are
 * left as they are. */
void opt_defaults(OptKind kind, OptConfig *o);
unsigned opt_reads(const OptConfig *o); /* settings that it reads: Reader bits */
int opt_n_slots(const OptConfig *o);    /* values it keeps for each parameter (Adafactor: fewer) */

/* ---- step programs --------------------------------------------------------------------------- */

typedef struct TrainConfig {
  int64_t batch;      /* of one program; the global batch is batch x replicas */
  int64_t eval_batch; /* of one evaluation program; 0: batch */
  int replicas;       /* data parallel: gradients are averaged over this many replicas; 0: 1 */
  int devices;        /* of a whole step: they run it together, each its part of `batch`; 0: 1 */
  double epochs;      /* when steps == 0 */
  int64_t steps;
  OptConfig opt;
  int64_t accumulate; /* the batch is computed in this many parts, one after another; 0: 1 */
  uint64_t seed;
  DType compute;      /* F16: with a loss scale that adapts; F8E4M3FN: f8.c */
  int64_t length;     /* text: tokens in an example */
  int64_t image_size; /* of pictures in files: a side; 0: the model's own */
  int64_t shift;      /* pictures: in training moved by up to so many pixels, */
  double rotate;      /* turned by up to so many degrees */
  bool augment, masked;
  bool in_order;     /* examples as the data have them, not shuffled */
  bool f8_attention; /* with F8E4M3FN: scores and what they weigh too */
  int lora;   /* rank of what is learnt beside frozen kernels (Hu et al. 2021); 0: all is learnt */
  bool remat; /* blocks of the model are computed again in the backward pass */
  double dropout; /* of models that have one; negative: the model's own */
  double label_smoothing;
  int size; /* variant of the model: layers; 0: its own */
} TrainConfig;

/* Of a transformer, what config.json of transformers tells of one. */
typedef struct NetShape {
  int64_t layers, width, heads, kv_heads;
  double eps;      /* of normalisations */
  Rotary rotary;   /* theta 0: learnt positions */
  const char *act; /* names of the activation there, with blanks between */
  bool tied;       /* the embedding is the head, too */
} NetShape;

struct Model {
  const char *name, *summary;
  const char *data; /* default data set */
  void (*defaults)(TrainConfig *c);
  /* in[i]: the data's fields with the batch dimension in front */
  Err *(*build)(Net *n, const TrainConfig *c, const Data *d, Value *const *in, NetOut *out);
  int64_t shape[3], classes; /* of made-up data, as in DataOpts; text: classes is the vocabulary */
  TaskKind task;
  int inputs;     /* fields that the network alone takes, the first of the data; 0: 1 */
  int size;       /* which of its family */
  unsigned reads; /* settings that it reads: Reader bits */
  bool generates; /* text from left to right: builds with Net.at */
  void (*transformer)(const Model *m, const TrainConfig *c, NetShape *out); /* NULL: is none */
  const WholeStep *whole; /* of a step that is there already; `build` is NULL then. NULL: none */
  int devices; /* of a whole step: how many it is written for; 0: any that divide its batch */
};

/* Data as the model and its settings want them. */
DataOpts model_data(const Model *m, const TrainConfig *c);

/* ---- settings: what a TrainConfig holds, by name --------------------------------------------- */

/* Who reads a setting: models, data sets and optimizers say so, and a flag that nobody reads is
 * refused (settings_unread). */
typedef enum Reader {
  READ_SIZE = 1,
  READ_LENGTH = 2,
  READ_DROPOUT = 4,
  READ_SMOOTHING = 8,
  READ_REMAT = 16,
  READ_AUGMENT = 32,
  READ_TOKENIZER = 64,
  READ_MOMENTUM = 128,
  READ_BETAS = 256,
  READ_EPS = 512,
  READ_DECAY = 1024,
  READ_SCHEDULE = 2048,   /* of schedules that end */
  READ_IMAGE_SIZE = 4096, /* pictures that are resized */
  READ_LORA = 8192,
  READ_WARP = 32768, /* pictures: shift, rotate */
  READ_F8_ATTENTION = 65536,
  READ_RECIPE =
      16384 /* optimizer, rate, precision, parts: of all models but those with a step that is
                         there already */
} Reader;

typedef enum SettingKind { SET_REAL, SET_COUNT, SET_INT, SET_FLAG, SET_CHOICE } SettingKind;
typedef struct Setting {
  const char *name; /* as in --NAME, in a checkpoint's metadata and in result.json */
  SettingKind kind;
  size_t at;                /* in a TrainConfig: double, int64_t, int, bool, int */
  double least, below;      /* least <= value < below */
  const char *const *names; /* SET_CHOICE: NULL at the end; */
  const int *values;        /* their values; NULL: 0, 1, ... */
  unsigned read_by;         /* Reader bits; 0: always */
  bool fixed;               /* a run that goes on has the same */
  bool hidden;              /* no flag of the command */
} Setting;
extern const Setting settings[];               /* a row without a name at the end */
const Setting *setting_find(const char *name); /* NULL: none */
/* errors: ERR_INVALID "wants ..." without the name of the setting */
Err *setting_parse(const Setting *s, const char *text, TrainConfig *c);
/* The value as text that setting_parse reads. */
void setting_text(const Setting *s, const TrainConfig *c, Buf *out);
bool setting_equal(const Setting *s, const TrainConfig *a, const TrainConfig *b);
/* All that are read, as ", key: value" members of a JSON object. */
void settings_json(const TrainConfig *c, unsigned reads, Buf *out);
/* Reader bits of what reads settings in such a run. */
unsigned settings_reads(const Model *m, const Data *d, const TrainConfig *c);
/* ERR_INVALID when nobody in such a run reads the setting; says who would. */
Err *setting_unread(const Setting *s, const Model *m, const Data *d, const TrainConfig *c);

enum { STEP_EXTRA = 32 }; /* further metrics, at most */

typedef struct StepProgram {
  Module *m; /* owned; function main */
  int n_state, n_params, n_stats;
  StateSpec *state;
  int n_inputs;
  Field inputs[DATA_FIELDS];   /* with the batch dimension, of all devices */
  Cut input_cuts[DATA_FIELDS]; /* of all or of none */
  int64_t n_weights;           /* elements of all parameters */
  int n_extra;                 /* metrics after the first three, f32 */
  const char *const *extra;    /* their names; the model's */
} StepProgram;
typedef struct Meta { /* pairs of strings, in order */
  VEC(char *) kv;     /* key, value, key, value, ... */
} Meta;
/* A training step that was written elsewhere (adopt/). */
struct WholeStep {
  /* The step as train.h has it. All state is parameters. */
  Err *(*build)(const Model *m, const TrainConfig *c, const Data *d, StepProgram *out);
  /* The evaluation of all of its state, as train.h has it; NULL: none. Batches are whole. */
  Err *(*eval)(const Model *m, const TrainConfig *c, const Data *d, StepProgram *out);
  /* What a value of the state begins with, into out; seed: TrainConfig.seed. */
  Err *(*first)(const Model *m, const StateSpec *s, uint64_t seed, void *out);
  /* Whether `first` counts though a checkpoint has a value, too. */
  bool (*is_set)(const Model *m, const StateSpec *s);
  void (*meta)(const Model *m, Meta *out);          /* what a checkpoint has to say of it */
  Err *(*keep)(const Model *m, const char *folder); /* writes what goes with a checkpoint */
};

/* training: the whole step; else the evaluation program. The module is verified. */
Err *step_build(const Model *model, const TrainConfig *c, const Data *d, bool training,
                StepProgram *out);
/* (parameters and statistics..., field 0 of the data) -> f32 logits. c->batch examples; c->compute
 * is the type of products. */
Err *forward_build(const Model *model, const TrainConfig *c, const Data *d, StepProgram *out);
/* The same with the weights inside: (field 0) -> logits. `weight` gives each, its errors pass. */
Err *forward_build_with(const Model *model, const TrainConfig *c, const Data *d,
                        Err *(*weight)(void *arg, const StateSpec *s, const NamedTensor **out),
                        void *arg, StepProgram *out);
/* (parameters and statistics..., caches..., tokens i32 (batch, n), position i32) -> (caches...,
 * f32 logits (batch, n, V)); caches are donated and hold c->length tokens.
 *   errors    ERR_UNIMPLEMENTED a model that makes no text */
Err *decode_build(const Model *model, const TrainConfig *c, const Data *d, int64_t n,
                  StepProgram *out);
void step_free(StepProgram *p);
/* Sent as portable bytecode, which any plugin of the last years reads; as text where that has no word for an op. */
Err *train_compile(Client *c, const Module *m, int replicas, bool alone, ClientProgram **out);
int train_partitions(
    const Module *m); /* devices that a program is written for; 1 where it does not say */
/* Appends the optimiser to a net whose gradients are given (replaced on the way): slots, new
 * parameters; fills next of params. Used by step_build. */
Err *opt_apply(Net *n, const OptConfig *o, Value **gradients, Value **out_lr, StateSpec **slots,
               Value ***slot_args, Value ***slot_next, int *n_slots);

/* ---- checkpoints: safetensors ---------------------------------------------------------------- */

/* meta: n_meta pairs key, value for __metadata__. Written beside and renamed. */
Err *safetensors_write(const char *path, int n, const NamedTensor *t, int n_meta,
                       const char *const *meta);
/* errors: ERR_DATA_LOSS, ERR_NOT_FOUND. Free with safetensors_free. */
Err *safetensors_read(const char *path, int *n, NamedTensor **out);
void safetensors_free(int n, NamedTensor *t);
const NamedTensor *safetensors_find(int n, const NamedTensor *t, const char *name); /* or NULL */

/* Channels of pictures whose mean and deviation are known; of other data 0. */
int data_channels(const Data *d);
/* Members of a JSON object: ,"mean": [...], "std": [...], a number for each channel. */
void data_channels_json(const Data *d, Buf *out);

/* kernel: one of t, which has what was learnt beside it (LoRA) as well; out: both together, of its size, may be its own
 * data. false: nothing lies beside it, out is as it was. */
bool lora_merge(int n, const NamedTensor *t, const NamedTensor *kernel, float *out);

void meta_set(Meta *m, const char *key, const char *fmt, ...) PRINTF_LIKE(3, 4);
const char *meta_get(const Meta *m, const char *key); /* NULL: absent */
void meta_free(Meta *m);
/* __metadata__ of a file; the tensors are not read. errors as safetensors_read */
Err *safetensors_meta(const char *path, Meta *out);

/* What a checkpoint says of itself: enough to build its network and to give it data. */
typedef struct CheckpointInfo {
  char *model, *version, *tokenizer;
  char *
      program; /* of a step of its own: path of the file beside the checkpoint; NULL: a model of the zoo */
  TrainConfig config; /* batch: of all replicas together */
  Data *data;         /* name, spec, fields, classes, mean, std; no examples */
  int64_t step;
} CheckpointInfo;
/* The metadata of a checkpoint; config.batch is that of all replicas. */
void checkpoint_meta(const Model *model, const TrainConfig *c, const Data *d, int64_t step,
                     Meta *out);
/* errors: those of safetensors_meta; ERR_DATA_LOSS a checkpoint of before 0.1 or of other programs */
Err *checkpoint_info(const char *path, CheckpointInfo *out);
void checkpoint_info_free(CheckpointInfo *i);
/* The file in a run folder; a file's path as it is. The caller frees it. */
char *checkpoint_path(const char *run);
/* The file of that name in the checkpoint's folder; NULL without a name, or where it has folders of its own. */
char *checkpoint_beside(const char *path, const char *name);

/* ---- curves: TensorBoard --------------------------------------------------------------------- */

typedef struct Events Events;
Err *events_open(const char *dir, Events **out); /* a new events.out.tfevents file in dir */
Err *events_scalar(Events *e, const char *tag, int64_t step, double value);
void events_close(Events *e);
uint32_t crc32c(const void *p, size_t n);

/* ---- the loop -------------------------------------------------------------------------------- */

typedef struct Progress { /* after a step, or an evaluation or a batch of one */
  int64_t step, steps, epoch;
  int64_t batch, batches; /* of an evaluation that goes on; 0: of none */
  double loss, accuracy, lr;
  double step_s;                                /* of wall time, over the last steps */
  double examples_per_s, left_s, exposed_share; /* share of the time spent waiting for input */
  bool eval;
} Progress;

typedef struct TrainResult {
  double train_loss, test_loss, test_accuracy; /* NAN: not computed, no evaluation */
  double step_s;     /* median time of a step, input included; not of the first two if more */
  double step_cpu_s; /* the same in CPU time of the whole process */
  double exposed_s;  /* input time that was not hidden, in all */
  double compile_s, total_s;
  int64_t steps, examples; /* of this run of the program */
  int64_t at;              /* the step that the run is at: of all of its parts together */
  Prof *profile;           /* with TrainOpts.profile: prof_free */
  int64_t n_weights;       /* elements of all parameters */
  ClientStats stats;       /* of the step program, from the plugin */
  ClientMemory memory;
} TrainResult;

typedef struct Trainer Trainer;
enum { TRAIN_SAVE_S = 600 }; /* what save_s is unless told otherwise */
typedef struct TrainOpts {
  const Model *model;
  TrainConfig config;
  const Data *data;
  Client *client;
  int device;         /* the first of config.replicas devices */
  const char *out;    /* run folder: checkpoint.safetensors, events; NULL: none */
  const char *resume; /* checkpoint to go on from; NULL: none */
  const char *init; /* checkpoint (any safetensors) whose weights of the same names and shapes a new
                         run begins with; NULL: none */
  int64_t save_every; /* steps between checkpoints; 0: at the end, */
  double
      save_s; /* and after the first step that ends this many seconds after the last one; 0: only at the end */
  int64_t eval_every; /* steps between evaluations; 0: after each epoch and at the end; -1: never */
  /* Called when a step's loss is known: one step late, so that nothing stalls. */
  void (*progress)(void *arg, const Progress *p);
  /* Called before the first step of a run with `init`: parameters that it had, of how many, how many of them with
   * adapters (LoRA) added in, and the names of others; may be NULL. */
  void (*begun)(void *arg, int taken, int all, int merged, const char *fresh);
  void *arg;
  int profile;  /* record this many steps, after the first two; 0: none */
  bool phantom; /* the device computes no numbers: losses are NAN, nothing is kept in `out` */
  const volatile int *stop; /* becomes nonzero: finish this step, save, return; may be NULL */
  bool overwrite;           /* `out` may hold another run: it is written over */
  /* Of a run in several processes, whose client was opened with it: each computes its share of the
   * replicas (client_share). `out` is of process 0 alone; `stop` of any stops all. NULL: one process. */
  const ClientJob *job;
} TrainOpts;
/* errors: ERR_EXISTS `out` holds a run that this one does not resume; those of building, compiling and running; ERR_ABORTED when the loss is no longer
 * finite; for a checkpoint that does not fit: ERR_INVALID naming the tensor */
Err *train_run(const TrainOpts *o, TrainResult *out);
/* Of several processes, after what process 0 writes besides: the others wait for it, since what started them
 * may end all with the first that ends. errors: ERR_UNAVAILABLE it failed */
Err *train_end(const ClientJob *job);

#endif
