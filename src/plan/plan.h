/* plan: a training job over many devices, from the model's shape alone: does a layout fit, how long
 * does a step take, and what for; which layout, chip and number of chips serve best.
 *
 *   PlanModel m;  plan_model("llama3-8b", &m);
 *   PlanJob job = {.model = &m, .layout = {.devices = 64, .dp = 8, .tp = 8, ...}};
 *   PlanMachine *h;  plan_machine_open(chip, 64, 0, &h);
 *   PlanStep s;  plan_step(h, &job, &s);          // s.time_s, s.part[PLAN_PRODUCTS], s.peak_bytes
 *
 * How     one layer is a list of kernels (block.c): products, attention, passes over memory, each in
 *         its three runs: forwards, backwards, again. sim says what a kernel takes on the chip, net
 *         what an exchange takes between chips. step.c adds up a microbatch of a stage, then the
 *         schedule of the pipeline, what the network does not hide, the optimizer and the host.
 *         memory.c counts what a device holds. coefficients.def has the coefficients that are fitted on
 *         measured runs (tools/plan_fit.py); docs/plan.md says what each part rests on.
 * Speed   kernels are costed once a shape (kernels.h): some 10 microseconds a layout.
 * Threads a PlanMachine serves one thread at a time; everything else any.
 */
#ifndef WEFT_PLAN_PLAN_H
#define WEFT_PLAN_PLAN_H

#include "chip/chip.h"

/* ---- the model ------------------------------------------------------------------------------- */

enum { PLAN_NAME = 64, PLAN_PATTERN = 256 };

typedef enum PlanActivation { PLAN_USUAL_ACT, PLAN_GELU, PLAN_RELU2 } PlanActivation;

typedef struct PlanModel {
  char name[PLAN_NAME];
  int layers;
  double hidden, vocab;
  double ffn; /* of dense layers */
  bool gated; /* three matrices instead of two */
  PlanActivation
      act; /* usual: SiLU where gated, else GELU. It is named in commands, not timed; so are */
  bool qk_norm, qkv_bias; /* norms of queries and keys, biases of their products alone */
  int heads, kv_heads;
  double head_dim;     /* of queries and keys; */
  double value_dim;    /* of values; 0: the same */
  bool bidirectional;  /* every query sees every key */
  double window;       /* keys that a query of a local layer sees; 0: all layers are global */
  int period;          /* one layer of so many is global; 0: none is */
  double global_dim;   /* head_dim of the global layers, */
  int global_kv_heads; /* their heads of keys; 0: as the others */
  bool latent;         /* multi-head latent attention, */
  double q_rank, kv_rank, rope_dim; /* its ranks (q_rank 0: queries are not compressed) */
  int experts, active;              /* 0: no mixture */
  double expert_ffn, shared_ffn;
  bool biased;      /* experts add biases and clamp */
  int dense_layers; /* of a mixture's layers: have no experts */
  int mtp_layers;   /* that predict further tokens: count as layers */
  bool tied;        /* the output head is the embedding */
  bool learned;     /* positions, */
  double context;   /* so many; 0: not told */
  double masked;    /* share of tokens that the head answers; 0: all */
  char pattern
      [PLAN_PATTERN]; /* hybrids, one letter a layer: M mamba2, E experts, * attention, - MLP */
  double mamba_heads, mamba_dim, mamba_state, mamba_groups;
  double parameters; /* of a program, which has no layers here */
} PlanModel;

/* "llama3-8b", "llama:70b", "deepseek-v3", or a shape: "gpt:layers=96,hidden=12288,heads=96".
 * errors ERR_NOT_FOUND with the nearest names; ERR_INVALID a key or number that makes no model. */
Err *plan_model(const char *text, PlanModel *out);
double plan_parameters(const PlanModel *m);
double plan_usual_seq(const PlanModel *m); /* tokens of a sequence, where nobody says */
/* A token's way forwards and backwards, without recomputation, sequences of that length. */
double plan_flops_per_token(const PlanModel *m, double seq);

/* ---- the layout ------------------------------------------------------------------------------ */

/* Numbers of the layers' products; the rest stays in 16 bits. X(id, name, type of the products) */
#define PLAN_FORMATS(X)                      \
  X(BF16, "bf16", DT_BF16)                   \
  X(FP16, "fp16", DT_F16)                    \
  X(TF32, "tf32", DT_F32)                    \
  X(FP8, "fp8", DT_F8E4M3FN)                 \
  X(FP8_CURRENT, "fp8-current", DT_F8E4M3FN) \
  X(FP8_ROWS, "fp8-rows", DT_F8E4M3FN)       \
  X(FP8_BLOCKS, "fp8-blocks", DT_F8E4M3FN)   \
  X(MXFP8, "mxfp8", DT_F8E4M3FN)             \
  X(NVFP4, "nvfp4", DT_F4E2M1FN)             \
  X(INT8, "int8", DT_I8)                     \
  X(OWN_NUMBERS, "as it is", DT_F32)
typedef enum PlanFormat {
#define X(id, name, type) PLAN_##id,
  PLAN_FORMATS(X)
#undef X
      PLAN_FORMATS_N, /* the last one is a program's own, which nobody asks for */
} PlanFormat;
const char *plan_format_name(PlanFormat f);

typedef enum PlanZero { /* what data-parallel ranks cut among themselves */
                        PLAN_ZERO_NONE,
                        PLAN_ZERO_1, /* the optimizer's state */
                        PLAN_ZERO_2, /* and gradients */
                        PLAN_ZERO_3  /* and weights: fully sharded */
} PlanZero;

/* PlanKernels by what they compute: what a recomputation policy names. */
typedef enum PlanTag {
  PLAN_NORM,
  PLAN_QKV,
  PLAN_LATENT, /* up-projections of latent attention */
  PLAN_ROPE,
  PLAN_CORE, /* softmax(Q K) V */
  PLAN_OUT,
  PLAN_RESIDUAL,
  PLAN_UP,
  PLAN_ACT,
  PLAN_DOWN,
  PLAN_ROUTER,
  PLAN_DISPATCH,
  PLAN_EXPERT_UP,
  PLAN_EXPERT_ACT,
  PLAN_EXPERT_DOWN,
  PLAN_MIX, /* mamba's scan and convolution */
  PLAN_TAGS
} PlanTag;
#define PLAN_TAG(t) (1u << (t))
#define PLAN_ALL_TAGS (PLAN_TAG(PLAN_TAGS) - 1)

/* Who runs the layers, as far as it changes what runs. */
typedef enum PlanStack {
  PLAN_MEGATRON, /* Megatron-LM, NeMo, Transformer Engine */
  PLAN_FSDP,     /* PyTorch modules, fully sharded */
  PLAN_XLA,      /* JAX: MaxText, Pax */
  PLAN_PROGRAM   /* a program by XLA, as it is (program.h) */
} PlanStack;

typedef struct PlanLayout {
  int devices; /* as JAX lists them; = dp * tp * pp * cp */
  int dp, tp, pp, cp, ep;
  int etp;    /* tensor ways inside an expert; 0: as tp */
  int vpp;    /* chunks of layers a stage; 1: not interleaved */
  int fsdp;   /* ways that weights are cut (zero 3); 0: dp * cp. Fewer: copies across such groups */
  double seq; /* tokens of a sequence */
  double gbs, mbs; /* sequences a step, and a microbatch of one data-parallel rank */
  PlanZero zero;
  unsigned recompute;     /* tags whose results are computed again in the backward pass */
  double recompute_share; /* of the layers; 0: all */
  bool keep_gathered; /* zero 3: weights stay whole from the forward pass to the backward pass */
  double offload;     /* share of the kept activations that waits in the host's memory */
  PlanFormat format;
} PlanLayout;

/* How the software runs it; all zero is what is usual today. */
typedef struct PlanSoftware {
  PlanStack stack;
  double year;          /* of its release, 2024.5; 0: today's */
  bool unfused;         /* attention as products and a softmax */
  bool blocking;        /* every launch waits for the one before */
  bool compiled;        /* PyTorch: fused passes; XLA always does */
  bool graphs;          /* CUDA graphs: no launches by the host, */
  bool some_graphs;     /* but those of experts */
  bool tuned;           /* for a benchmark: activations are kept in the products' numbers */
  bool pure16;          /* weights, gradients and the optimizer's state in 16 bits */
  bool fused_dispatch;  /* experts' tokens are sent by one kernel, not NCCL's */
  bool hidden_dispatch; /* behind another microbatch's products */
  bool host_counts; /* that dispatch reads counts of tokens back: launching waits all the same */
  bool dropped;     /* tokens above an expert's capacity */
  bool balanced;    /* routing is forced to be even */
} PlanSoftware;

typedef enum PlanOptimizer { PLAN_ADAM, PLAN_ADAFACTOR, PLAN_LAMB, PLAN_SGD } PlanOptimizer;

typedef struct PlanJob {
  const PlanModel *model;
  PlanLayout layout;
  PlanSoftware software;
  PlanOptimizer optimizer;
  int lora_rank; /* 0: all weights are trained */
  bool lora_all; /* on every product, not on attention's alone */
} PlanJob;

/* errors ERR_INVALID: the first thing that does not divide, in words, and what would. */
Err *plan_check(const PlanJob *j);

/* ---- the answer ------------------------------------------------------------------------------ */

/* What a step's time goes to. X(id, name) */
#define PLAN_PARTS(X)               \
  X(PRODUCTS, "products")           \
  X(ATTENTION, "attention")         \
  X(PASSES, "passes")               \
  X(QUANTISE, "quantise")           \
  X(RECOMPUTE, "recompute")         \
  X(TENSOR, "tensor_exchange")      \
  X(CONTEXT, "context_exchange")    \
  X(EXPERT, "expert_exchange")      \
  X(SHARDS, "shard_exchange")       \
  X(GRADIENTS, "gradient_exchange") \
  X(STAGES, "stage_exchange")       \
  X(BUBBLE, "bubble")               \
  X(OPTIMIZER, "optimizer")         \
  X(HOST, "host")                   \
  X(OTHER, "other")
typedef enum PlanPart {
#define X(id, name) PLAN_##id,
  PLAN_PARTS(X)
#undef X
      PLAN_PARTS_N
} PlanPart;
const char *plan_part_name(PlanPart p);

/* Who holds a device's memory. */
#define PLAN_OWNERS(X)        \
  X(WEIGHTS, "weights")       \
  X(GRADS, "gradients")       \
  X(SLOTS, "optimizer_slots") \
  X(KEPT, "activations")      \
  X(LOGITS, "logits")         \
  X(GATHERED, "gathered")     \
  X(RUNTIME, "runtime")
typedef enum PlanOwner {
#define X(id, name) PLAN_OWN_##id,
  PLAN_OWNERS(X)
#undef X
      PLAN_OWNERS_N
} PlanOwner;
const char *plan_owner_name(PlanOwner o);

typedef struct PlanStep {
  double time_s;
  double part[PLAN_PARTS_N];      /* seconds; adds up to time_s */
  double peak_bytes, limit_bytes; /* of one device */
  double owner[PLAN_OWNERS_N];    /* bytes; adds up to peak_bytes */
  bool fits;
  double flops; /* useful, of all devices */
  double mfu;   /* of the 16-bit peak */
} PlanStep;

/* Chips of one kind joined by their network; caches what kernels take. */
typedef struct PlanMachine PlanMachine;
typedef struct PlanMachineOpts { /* all zero: as the chip's file and its usual server have it */
  int domain;                    /* devices joined by the fast fabric */
  int slices;                    /* of TPUs */
  const ChipRef *where; /* a server's GPUs, slices by name; read where it has as many devices */
  const Server *server; /* GPUs are in these; NULL: as `where` says, else the chip's usual one */
  double card;          /* bytes/s of one device's share of the network cards */
  double power_w;       /* limit of one device */
  double bandwidth;     /* of device memory, bytes/s */
  struct PlanKernels *kernels; /* of that chip, to share among machines; NULL: its own */
} PlanMachineOpts;
/* opts may be NULL. errors: as net_open; ERR_INVALID zero devices. */
Err *plan_machine_open(const Chip *chip, int devices, const PlanMachineOpts *opts,
                       PlanMachine **out);
void plan_machine_close(PlanMachine *h); /* NULL is fine */

/* The job must have passed plan_check. */
void plan_step(PlanMachine *h, const PlanJob *j, PlanStep *out);

/* ---- the search -------------------------------------------------------------------------------- */

typedef enum PlanOrder { PLAN_BY_COST, PLAN_BY_TIME, PLAN_BY_ENERGY } PlanOrder;

/* Of earlier runs of the model on a chip: a step's time by what is said here. */
typedef struct PlanMeasured {
  const char *chip;
  double ratio;
  int runs;
} PlanMeasured;

typedef struct PlanAsk {
  const PlanModel *model;
  double seq;       /* tokens of a sequence; 0: 4096, or as many as the model has positions */
  double gbs;       /* sequences a step; 0: what models of its size are trained with */
  double usual_gbs; /* filled in where gbs was 0: that, of which gbs is what the chips divide */
  double
      tokens; /* of the whole run; 0: not told, then as many as the budget or the deadline allow */
  const ChipRef *chips; /* asked for; a count of 0: any */
  int n_chips;
  int most;                      /* chips, where any count will do; 0: 1024 */
  PriceAsk price;                /* whose prices count */
  double budget_usd, deadline_s; /* 0: none */
  PlanOrder order;
  int lora_rank; /* 0: all weights are trained */
  unsigned
      formats; /* bits of PlanFormat that may be used; 0: 16 bits, and 8 where the chip has them */
  unsigned stacks;              /* bits of PlanStack; 0: any that the chip runs */
  const PlanMeasured *measured; /* what steps' times are multiplied with, by chip */
  int n_measured;
  const char *unit; /* what tokens count, "examples" of a program; NULL: tokens */
} PlanAsk;

typedef struct PlanChoice {
  const Chip *chip;
  int chips;
  ChipSlice slice;      /* how they lie */
  const Server *server; /* whose they are: timed and priced; NULL: the chip's usual one */
  const ChipRef *asked; /* of PlanAsk.chips */
  PlanJob job;
  PlanStep step;
  const PlanMeasured *measured; /* that is in the step's time; NULL: none */
  double tokens, steps;         /* of the run; 0: not told */
  double p50_s,
      p95_s;       /* of the run, with jitter and failures; of a step where tokens are not told */
  double usd_hour; /* of all chips; NaN: no price */
  double usd, usd95;
  double usd_1e9; /* a thousand million tokens */
  double energy_j;
  const Offer *offer; /* NULL: none */
  bool front;         /* no other choice is faster, cheaper and leaner */
  bool meets;         /* budget and deadline */
} PlanChoice;

typedef struct PlanAnswer {
  PlanAsk ask;             /* with what was not told filled in */
  VEC(PlanChoice) choices; /* the best layout of each chip and count, in the order asked for */
  double layouts;          /* looked at */
  double seconds;          /* of search */
  char *nothing;           /* why there is no choice; NULL */
  char *remarks;           /* what was asked for and left out, a line each; NULL */
  PlanChoice
      sooner; /* where no choice meets the deadline: more chips of the fastest's kind that do, */
  int most_looked;   /* else their largest number looked at; 0: not looked (sooner.chips 0: none) */
  PlanModel program; /* what ask.model is in plans of programs */
} PlanAnswer;

/* errors ERR_INVALID: a layout for zero devices, a batch, a sequence or a rank that makes no sense. A budget or
 * deadline that cannot be met is no error: plan_words says what would. */
Err *plan_search(const PlanAsk *ask, PlanAnswer *out);
void plan_answer_free(PlanAnswer *a);

/* The table: the choices that nothing beats, and the best of each chip that was named; all: every one. */
void plan_write_text(const PlanAnswer *a, bool all, Buf *out);
/* What the best choice waits for and holds, a TPU or a GPU and why, what meets the budget, what changes for
 * who moves to it. */
void plan_words(const PlanAnswer *a, Buf *out);
void plan_json(const PlanAnswer *a, Buf *out);

/* The choice as files in a folder, which is made: train.sh (the framework's command with the layout's
 * options), sky.yaml (SkyPilot), slurm.sh, xpk.sh, dstack.yml, plan.json. left_out: those that the tool has no machine
 * for, and why. errors: a folder that cannot be written. */
Err *plan_emit(const PlanAnswer *a, const PlanChoice *c, const char *dir, Buf *left_out);

/* What limits a step: "compute", "memory", "network", "bubble", "host". */
const char *plan_limit(const PlanStep *s);
const char *plan_stack_name(PlanStack s); /* "megatron", "fsdp", "maxtext" */

/* ---- measured runs --------------------------------------------------------------------------- */

/* One JSON object a line for every row of a CSV of runs (docs/plan.md names its columns): what
 * plan_step says of it, or why it cannot be answered. Never an error for a row; errors: no file, no
 * such columns. */
Err *plan_runs(const char *csv_path, Buf *out);

/* Another value for a coefficient of coefficients.def, for the whole process; for fitting. errors
 * ERR_NOT_FOUND. */
Err *plan_coef_set(const char *key, double value);

#endif
