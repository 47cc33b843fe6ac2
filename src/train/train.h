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

/* ---- a network under construction ------------------------------------------------------------ */

typedef enum StateKind { STATE_PARAM, STATE_STAT, STATE_SLOT, STATE_COUNTER } StateKind;
typedef struct StateSpec {
  char *name; /* "conv1/kernel", "opt/m/conv1/kernel", "step" */
  StateKind kind;
  DType type;
  int rank;
  int64_t dims[6];
  Init init;
  bool decay; /* weight decay applies */
} StateSpec;

typedef struct NetParam {
  StateSpec spec;
  Value *arg;
  Value *next; /* statistics: the new value; parameters: set by the optimiser */
} NetParam;

typedef struct Net {
  Build b;
  bool training;
  DType compute; /* DT_F32 or DT_BF16: type of products and activations; parameters and statistics
                    are f32 */
  Func *f;
  Value *step, *seed; /* counters; NULL in evaluation */
  VEC(NetParam) params, stats;
  int n_draws;   /* random masks drawn so far: each has its own stream */
  Value *key[2]; /* this step's random key, made when first needed */
  int replicas;
  char scope[256];
} Net;

/* Names inside: "outer/name". Returns the former scope for net_leave. */
typedef struct NetScope {
  size_t len;
  const Loc *loc;
} NetScope;
NetScope net_enter(Net *n, const char *fmt, ...) PRINTF_LIKE(2, 3);
void net_leave(Net *n, NetScope s);

enum { PARAM_NO_DECAY = 1 };
/* A trainable argument. The value has type f32; layers convert it to n->compute where they
 * multiply. */
Value *net_param(Net *n, const char *name, int rank, const int64_t *dims, Init init,
                 unsigned flags);
Value *net_stat(Net *n, const char *name, int rank, const int64_t *dims, double initial);
void net_set_stat(Net *n, Value *stat, Value *next);
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
Value *net_max_pool(Net *n, Value *x, int64_t size, int64_t stride, int64_t pad);
Value *net_global_max(Net *n, Value *x); /* (B, H, W, C) -> (B, C) */
Value *net_global_mean(Net *n, Value *x);
Value *net_relu(Net *n, Value *x);
Value *net_gelu(Net *n, Value *x, bool tanh_form);
Value *net_batch_norm(Net *n, const char *name, Value *x, double momentum, double eps);
Value *net_layer_norm(Net *n, const char *name, Value *x, double eps);
Value *net_dropout(Net *n, Value *x, double rate);
Value *net_flatten(Net *n, Value *x);
Value *net_embedding(Net *n, const char *name, Value *ids, int64_t rows, int64_t width, double std,
                     Value **table);
Value *net_softmax(Net *n, Value *x); /* over the last dimension */
/* x (B, T, C), packed qkv projection, heads of C / heads; names qkv, proj. proj_std: initial
 * deviation. */
Value *net_attention(Net *n, Value *x, int64_t heads, bool causal, double std, double proj_std);
/* x (B, T, C) -> (B, T, units); gate order i, f, g, o; one loop over T. */
Value *net_lstm(Net *n, const char *name, Value *x, int64_t units);
/* Random 32-bit words, one for each element: threefry2x32 of (seed, step) and (element, draw). */
Value *net_random_bits(Net *n, int rank, const int64_t *dims);

/* Mean over the replicas (all-reduce); x itself when there is one. */
Value *net_mean_over_replicas(Net *n, Value *x);

/* ---- losses ---------------------------------------------------------------------------------- */

typedef struct NetOut {
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

typedef struct Data Data;
struct Data {
  char *name;
  int n_fields;
  Field fields[3]; /* images u8 (H, W, C), labels i32; or tokens, targets (, weights) */
  int64_t n_train, n_test;
  int64_t classes;       /* or the size of the vocabulary */
  float mean[3], std[3]; /* of images as 0 ... 1, by channel */
  /* Writes example `index` into dst[field]; `rand` is this example's own random number for
   * augmentation. Any thread. */
  void (*get)(const Data *d, bool test, int64_t index, uint64_t rand, void *const *dst);
  void (*free)(Data *d);
  void *impl;
};
typedef struct DataOpts {
  const char *dir;           /* where the files are; NULL: the usual places */
  int64_t length;            /* tokens in an example */
  bool augment;              /* CIFAR: pad 4 and crop, flip, cut out 8 x 8 */
  const char *bpe;           /* text: folder of GPT-2's encoder.json and vocab.bpe; NULL: bytes */
  bool masked;               /* text: BERT's 15 % masks instead of the next token */
  int64_t shape[3], classes; /* synthetic */
} DataOpts;
/* spec: fashion-mnist, mnist, cifar10, idx:DIR, cifar10:DIR (binary files), cifar10:FILE (records),
 * text:FILE, synthetic. errors: ERR_NOT_FOUND naming the file and how to get it; ERR_DATA_LOSS for damaged files */
Err *data_open(const char *spec, const DataOpts *opts, Data **out);
void data_close(Data *d);
extern const char *const data_specs; /* for --help */

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
  bool test;
  int64_t batch; /* of all devices together; a multiple of n_devices */
  uint64_t seed;
  int64_t first, n_batches;
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

typedef enum OptKind { OPT_SGD, OPT_ADAM, OPT_ADAMW } OptKind;
typedef enum OptStyle { STYLE_TORCH, STYLE_KERAS } OptStyle;
typedef enum ScheduleKind { LR_CONST, LR_LINEAR, LR_COSINE } ScheduleKind;
typedef struct OptConfig {
  OptKind kind;
  OptStyle style; /* Adam's epsilon: torch adds it to sqrt(v / c2), Keras to sqrt(v); momentum:
                   * torch m = mu m + g, p -= lr m; Keras m = mu m - lr g, p += m */
  double lr, momentum, beta1, beta2, eps;
  bool nesterov;
  double decay; /* SGD: added to the gradient, decay * p; AdamW: p -= lr decay p */
  double clip;  /* largest global gradient norm; 0: none */
  ScheduleKind schedule;
  /* LR_LINEAR, LR_COSINE: 0 up to lr during warmup_steps, then down to end * lr at total_steps */
  double warmup_steps, total_steps, end;
} OptConfig;

/* ---- step programs --------------------------------------------------------------------------- */

typedef struct TrainConfig {
  int64_t batch;      /* of one program; the global batch is batch x replicas */
  int64_t eval_batch; /* of one evaluation program; 0: batch */
  int replicas;       /* data parallel: gradients are averaged over this many replicas; 0: 1 */
  double epochs;      /* when steps == 0 */
  int64_t steps;
  OptConfig opt;
  uint64_t seed;
  DType compute;
  int64_t length; /* text: tokens in an example */
  bool augment, masked;
  double dropout; /* of models that have one; negative: the model's own */
  double label_smoothing;
  int size; /* variant of the model: layers; 0: its own */
} TrainConfig;

typedef struct Model {
  const char *name, *summary;
  const char *data; /* default data set */
  void (*defaults)(TrainConfig *c);
  /* in[i]: the data's fields with the batch dimension in front */
  Err *(*build)(Net *n, const TrainConfig *c, const Data *d, Value *const *in, NetOut *out);
  int64_t shape[3], classes; /* of made-up data; text: classes is the vocabulary */
  bool sized;                /* TrainConfig.size means something */
} Model;

typedef struct StepProgram {
  Module *m; /* owned; function main */
  int n_state, n_params, n_stats;
  StateSpec *state;
  int n_inputs;
  Field inputs[3];   /* with the batch dimension */
  int64_t n_weights; /* elements of all parameters */
} StepProgram;
/* training: the whole step; else the evaluation program. The module is verified. */
Err *step_build(const Model *model, const TrainConfig *c, const Data *d, bool training,
                StepProgram *out);
void step_free(StepProgram *p);
/* Appends the optimiser to a net whose loss is given: slots, new parameters; fills next of
 * params. Used by step_build. */
Err *opt_apply(Net *n, const OptConfig *o, Value *loss, Value **out_lr, StateSpec **slots,
               Value ***slot_args, Value ***slot_next, int *n_slots);

/* ---- checkpoints: safetensors ---------------------------------------------------------------- */

typedef struct NamedTensor {
  char *name;
  DType type;
  int rank;
  int64_t dims[8];
  void *data;
} NamedTensor;
/* meta: n_meta pairs key, value for __metadata__. Written beside and renamed. */
Err *safetensors_write(const char *path, int n, const NamedTensor *t, int n_meta,
                       const char *const *meta);
/* errors: ERR_DATA_LOSS, ERR_NOT_FOUND. Free with safetensors_free. */
Err *safetensors_read(const char *path, int *n, NamedTensor **out);
void safetensors_free(int n, NamedTensor *t);

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
  double examples_per_s, left_s, exposed_share; /* share of the time spent waiting for input */
  bool eval;
} Progress;

typedef struct TrainResult {
  double train_loss, test_loss, test_accuracy; /* NAN: not computed, no evaluation */
  double step_s;     /* median time of a step, input included; not of the first two if more */
  double step_cpu_s; /* the same in CPU time of the whole process */
  double exposed_s;  /* input time that was not hidden, in all */
  double compile_s, total_s;
  int64_t steps, examples;
  Prof *profile;     /* with TrainOpts.profile: prof_free */
  ClientStats stats; /* of the step program, from the plugin */
  ClientMemory memory;
} TrainResult;

typedef struct Trainer Trainer;
typedef struct TrainOpts {
  const Model *model;
  TrainConfig config;
  const Data *data;
  Client *client;
  int device;         /* the first of config.replicas devices */
  const char *out;    /* run folder: checkpoint.safetensors, events; NULL: none */
  const char *resume; /* checkpoint to start from; NULL: none */
  int64_t save_every; /* steps between checkpoints; 0: at the end */
  int64_t eval_every; /* steps between evaluations; 0: after each epoch and at the end; -1: never */
  /* Called when a step's loss is known: one step late, so that nothing stalls. */
  void (*progress)(void *arg, const Progress *p);
  void *arg;
  int profile;  /* record this many steps, after the first two; 0: none */
  bool phantom; /* the device computes no numbers: losses are NAN, nothing is kept in `out` */
  const volatile int *stop; /* becomes nonzero: finish this step, save, return; may be NULL */
} TrainOpts;
/* errors: those of building, compiling and running; ERR_ABORTED when the loss is no longer
 * finite; for a checkpoint that does not fit: ERR_INVALID naming the tensor */
Err *train_run(const TrainOpts *o, TrainResult *out);

#endif
