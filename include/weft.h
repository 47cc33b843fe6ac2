/* weft.h: libweft, in C. Two parts: a client for any PJRT plugin (weft's own, libtpu, XLA's CPU
 * and CUDA plugins), and a trainer
 * that uses it.  Link with -lweft (pkg-config weft).
 *
 * Errors      every function that can fail returns WeftError *, NULL on success; free it with
 *             weft_error_free. Outputs are untouched on error.
 * Ownership   what a function makes is freed with the *_free or *_close of its type. Free
 *             buffers and programs before their client.
 * Threads     a client and its programs: any. A buffer: one at a time. A training run: the
 *             thread that called it.
 * Data        dense, row-major, in the host's byte order; elements narrower than a byte take one
 *             byte each.
 */
#ifndef WEFT_H
#define WEFT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1

const char *weft_version(void); /* "0.1.0" */

/* ---- errors ---------------------------------------------------------------------------------- */

typedef struct WeftError WeftError;
int weft_error_code(
    const WeftError *e); /* the numbers of PJRT_Error_Code: 3 INVALID_ARGUMENT, 5 NOT_FOUND, ... */
const char *
weft_error_message(const WeftError *e); /* code, place, sentence and hint; lives as long as e */
void weft_error_free(WeftError *e);     /* NULL is fine */

/* ---- client ---------------------------------------------------------------------------------- */

/* Element types: the numbers of PJRT_Buffer_Type. */
typedef enum WeftType {
  WEFT_BOOL = 1,
  WEFT_I8 = 2,
  WEFT_I16 = 3,
  WEFT_I32 = 4,
  WEFT_I64 = 5,
  WEFT_U8 = 6,
  WEFT_U16 = 7,
  WEFT_U32 = 8,
  WEFT_U64 = 9,
  WEFT_F16 = 10,
  WEFT_F32 = 11,
  WEFT_F64 = 12,
  WEFT_BF16 = 13,
  WEFT_C64 = 14,
  WEFT_C128 = 15
} WeftType;

typedef struct WeftClient WeftClient;
typedef struct WeftProgram WeftProgram;
typedef struct WeftBuffer WeftBuffer;

/* Opens a device.
 *   plugin    path of a PJRT plugin; NULL: weft's own
 *   device    for weft's own plugin: "cpu", "cpu:8", "interp", or a virtual chip ("tpu-v3-8",
 *             "A100-80GB:8", "T4"); NULL: $WEFT_DEVICE, else "cpu". Not used with other plugins.
 *   errors    NOT_FOUND with what was tried; FAILED_PRECONDITION for another ABI */
WeftError *weft_client_open(const char *plugin, const char *device, WeftClient **out_client);
void weft_client_close(WeftClient *c); /* NULL is fine */
const char *weft_client_platform(const WeftClient *c);
int weft_client_device_count(const WeftClient *c);
const char *weft_client_device_kind(const WeftClient *c, int device); /* "": there is none */

/* Compiles StableHLO, text or portable bytecode; n is its size in bytes. A program that says so
 * (mhlo.num_replicas x mhlo.num_partitions) runs on several devices: process p on device p.
 *   errors    INVALID_ARGUMENT the program is wrong, or for more devices than the client has */
WeftError *weft_compile(WeftClient *c, const void *program, size_t n, WeftProgram **out_program);
void weft_program_free(WeftProgram *p);
int weft_program_outputs(const WeftProgram *p);   /* of each process */
int weft_program_processes(const WeftProgram *p); /* 1: of one device */
typedef struct WeftCost { /* what the compiler says; -1 where the plugin does not know */
  int64_t argument_bytes, output_bytes, temp_bytes, peak_bytes;
  double flops, bytes_accessed, seconds;
} WeftCost;
void weft_program_cost(const WeftProgram *p, WeftCost *out_cost);

/* Copies `data` to a device before it returns. */
WeftError *weft_buffer_new(WeftClient *c, int device, WeftType type, int rank, const int64_t *dims,
                           const void *data, WeftBuffer **out_buffer);
void weft_buffer_free(WeftBuffer *b);
WeftType weft_buffer_type(const WeftBuffer *b);
/* *out_dims lives as long as the buffer. */
WeftError *weft_buffer_dims(const WeftBuffer *b, int *out_rank, const int64_t **out_dims);
/* Waits for the data and copies it; n must be its size in bytes. */
WeftError *weft_buffer_read(WeftBuffer *b, void *dst, size_t n);

/* Enqueues a run: args[n_args], outs[weft_program_outputs(p)], which are new buffers. Of several
 * processes: n_args is the number of each, argument i of process d is args[d * n_args + i], a buffer
 * on device d that holds the part that the argument's sharding gives it; its result j is
 * outs[d * weft_program_outputs(p) + j]. Arguments that the program donates (tf.aliasing_output) are gone afterwards; free their handles all the
 * same. An error of the run itself may come here or from weft_buffer_read of an output. */
WeftError *weft_execute(WeftProgram *p, WeftBuffer *const *args, int n_args, WeftBuffer **outs);

/* ---- trainer --------------------------------------------------------------------------------- */

typedef struct WeftProgress {
  int64_t step, steps, epoch;
  double loss, accuracy; /* of this step's batch; of the whole test set when `test` is set */
  double examples_per_s, seconds_left;
  double input_wait; /* share of the time spent waiting for data */
  int test;          /* an evaluation is over; its parts are not reported */
} WeftProgress;

typedef struct WeftTrainOptions { /* start from weft_train_defaults */
  const char *model; /* "mnist", "resnet50", "gpt2-medium", ...: `weft train --help` lists them */
  const char
      *data; /* "fashion-mnist", "mnist", "cifar10:PATH", "idx:DIR", "text:FILE", "synthetic" */
  int64_t batch, steps; /* steps 0: epochs */
  double epochs, learning_rate;
  uint64_t seed;
  int bf16;            /* products and activations in bfloat16 */
  int layers;          /* variant of the model; 0: its own */
  int64_t length;      /* text: tokens in an example */
  const char *bpe_dir; /* text: GPT-2's or BERT's tokenizer, as --tokenizer; NULL: bytes */
  const char *out_dir; /* events, checkpoint.safetensors (each 10 minutes, and the last); NULL */
  const char *resume;  /* checkpoint to go on from; NULL: none */
  const char *init;    /* safetensors whose weights of the same names a new run begins with; NULL */
  int replicas;  /* data parallel over so many devices of the client, `batch` over all; 0: 1 */
  int overwrite; /* out_dir may hold another run: it is replaced */
  void (*progress)(void *user, const WeftProgress *p); /* may be NULL */
  void *user;
} WeftTrainOptions;

typedef struct WeftTrainResult {
  double train_loss, test_loss, test_accuracy; /* NaN: there is no test set */
  double step_seconds;                         /* median */
  double input_wait_seconds, compile_seconds, total_seconds;
  int64_t steps;
} WeftTrainResult;

/* The model's own settings. errors: NOT_FOUND listing the models */
WeftError *weft_train_defaults(const char *model, WeftTrainOptions *out_options);
/* Trains on device 0 of the client and, with replicas, those after it.
 *   errors    NOT_FOUND data or model; INVALID_ARGUMENT sizes, a checkpoint that does not fit;
 *             ALREADY_EXISTS out_dir holds a run that `resume` does not go on with;
 *             ABORTED the loss is no longer finite; RESOURCE_EXHAUSTED the step does not fit the
 *             device */
WeftError *weft_train(WeftClient *c, const WeftTrainOptions *options, WeftTrainResult *out_result);
/* The training step as StableHLO text: (state..., batch...) -> (state..., metrics). Free it with
 * weft_text_free. */
WeftError *weft_train_program(const WeftTrainOptions *options, char **out_text);
void weft_text_free(char *text);

/* ---- a trained network in use ---------------------------------------------------------------- */

typedef struct WeftNetwork WeftNetwork;

typedef struct WeftNetworkInfo { /* strings live as long as the network */
  const char *model;
  int64_t steps;   /* that it was trained for */
  int64_t weights; /* elements of all parameters */
  WeftType input_type;
  int input_rank; /* of one example, without the batch */
  int64_t input_dims[6];
  int64_t outputs;              /* f32 numbers for one example: classes, or tokens x vocabulary */
  int64_t classes;              /* or the vocabulary */
  double mean[3], deviation[3]; /* of pixels as 0 ... 1, by channel; the network applies them */
} WeftNetworkInfo;

/* Opens what weft_train or `weft train --out` wrote: a run folder, or a checkpoint in one. Weights are
 * put on device 0 of the client. One thread at a time.
 *   errors    NOT_FOUND; DATA_LOSS no checkpoint of weft; INVALID_ARGUMENT a tensor that is missing */
WeftError *weft_network_open(WeftClient *c, const char *run, WeftNetwork **out_network);
void weft_network_close(WeftNetwork *n); /* NULL is fine; before its client */
void weft_network_info(const WeftNetwork *n, WeftNetworkInfo *out_info);
/* Name of a class, "" without one; copied, cut to `size`. */
void weft_network_label(const WeftNetwork *n, int64_t class_number, char *out_text, size_t size);

/* n examples side by side, as they are in files (bytes of pixels, i32 tokens), to n x outputs logits. */
WeftError *weft_network_forward(WeftNetwork *n, int64_t examples, const void *inputs,
                                float *out_logits);
/* A PNG, JPEG or npy file to n = *out_examples rows of probabilities, classes each; free them with
 * weft_numbers_free. Pictures of another size are cut from their middle and resized. */
WeftError *weft_network_predict(WeftNetwork *n, const char *path, int64_t *out_examples,
                                float **out_probabilities);
void weft_numbers_free(float *numbers);
/* Goes on from a text: gpt2, llama, lstm, gru. temperature 0: the likeliest tokens; top_k 0 and top_p
 * 0: all. Free the text, which does not repeat the prompt, with weft_text_free.
 *   errors    UNIMPLEMENTED another kind of network */
WeftError *weft_network_generate(WeftNetwork *n, const char *prompt, int64_t tokens,
                                 double temperature, int64_t top_k, double top_p, uint64_t seed,
                                 char **out_text);
/* Writes forward.mlirbc (StableHLO for `batch` examples, weights and preprocessing inside), weights
 * under PyTorch's and Keras' names, and the Python that loads them, into a folder. */
WeftError *weft_network_export(const WeftNetwork *n, const char *folder, int64_t batch);

#ifdef __cplusplus
}
#endif

#endif
