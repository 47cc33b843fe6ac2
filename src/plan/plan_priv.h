/* Private to src/plan: what its files share. */
#ifndef WEFT_PLAN_PRIV_H
#define WEFT_PLAN_PRIV_H

#include "base/units.h"
#include "net/net.h"
#include "plan/kernels.h"
#include "plan/plan.h"

/* ---- coefficients (coefficients.def) ------------------------------------------------------------------- */

typedef struct PlanCoefs {
#define COEF(key, value, what) double key;
#include "plan/coefficients.def"
#undef COEF
} PlanCoefs;
extern PlanCoefs plan_coef;

/* ---- one layer's kernels (block.c) ------------------------------------------------------------ */

typedef enum LayerOpKind { KERNEL_PRODUCT, KERNEL_ATTENTION, KERNEL_PASS } LayerOpKind;

typedef struct LayerOp {
  LayerOpKind kind;
  PlanTag tag;
  double count, m, n, k; /* of a product; count: of its own weights each */
  bool frozen;           /* its weights are not trained */
  bool narrow;           /* in the layout's format, else in 16 bits */
  KernelAttention attention;
  double fwd_bytes, bwd_bytes; /* of a pass */
  double kept;                 /* bytes of its result that the backward pass reads */
  double launches;             /* forwards */
} LayerOp;

/* What ranks exchange in a microbatch of a layer. Bytes as net counts them. */
typedef struct Exchanges {
  double tensor_bytes; /* of one all-gather or reduce-scatter of the layer's activations */
  int tensor_fwd, tensor_bwd;
  double context_bytes; /* keys and values of one rank */
  double expert_bytes;  /* tokens sent to experts, and as many back */
  double experts;       /* that one rank has of the layer */
} Exchanges;

enum { BLOCK_OPS = 32 };
typedef struct Block {
  LayerOp op[BLOCK_OPS];
  int n;
  Exchanges exchange;
  double weights;        /* of one rank, without experts' */
  double expert_weights; /* of one rank */
  double input;          /* bytes of the layer's input that one rank keeps */
} Block;

/* Kinds of layers of a model, and how many there are of each. */
enum { LAYER_KINDS = 6 };
typedef struct LayerKind {
  bool attention, global, mlp, moe, mamba;
  double count;
} LayerKind;
int plan_layer_kinds(const PlanModel *m, LayerKind *out);
/* One layer's block for one microbatch of one rank. */
void plan_block(const PlanJob *j, const LayerKind *kind, Block *out);
bool plan_loose_experts(const PlanJob *j);
double plan_tokens(const PlanLayout *l); /* of a microbatch on one rank */
/* Parameters of one whole layer, and of them its experts'. */
double plan_layer_parameters(const PlanModel *m, const LayerKind *kind, double *experts);
double plan_keys_seen(const PlanModel *m, bool global, double seq); /* by a query, on average */
double plan_embedding_parameters(const PlanModel *m, bool head);    /* of one of the two */

/* ---- exchanges (network.c) --------------------------------------------------------------------- */

/* Seconds among `size` devices, `stride` apart. */
double plan_exchange_s(const PlanMachine *h, NetKind kind, double bytes, int size, int stride);

struct PlanMachine {
  const Chip *chip;
  Net net;
  PlanKernels *kernels;
  bool shared; /* the kernels are somebody else's */
};

/* ---- memory.c --------------------------------------------------------------------------------- */

typedef struct StageLoad { /* of the fullest stage of a pipeline */
  double layers;           /* on the stage */
  double weights;          /* parameters of one rank that the whole data-parallel group has, */
  double expert_weights;   /* and of experts */
  double trained;          /* share of them that is trained */
  double kept;             /* bytes of one microbatch of one layer, on average */
  double recompute;        /* bytes that computing a layer again holds at once */
  double microbatches;     /* whose activations are held at once, in stages' worth */
  double logits;           /* bytes */
  double largest_layer;    /* parameters of one rank, before they are cut */
  double head;             /* parameters that logits are made with */
} StageLoad;
void plan_memory(const PlanMachine *h, const PlanJob *j, const StageLoad *s, PlanStep *out);

/* ---- words that several files say (print.c, json.c) -------------------------------------------- */
const char *plan_recompute_word(const PlanLayout *l); /* "none", "some", "mlp", "all" */
const char *plan_mesh(const PlanLayout *l, char *to, size_t n);
const char *plan_duration(char s[UNITS_TEXT], double seconds);
const char *plan_usd(char s[UNITS_TEXT], double usd);
void plan_parts_json(const PlanStep *s, Buf *o);

/* ---- emit_flags.c: the command of the choice's framework ---------------------------------------- */
void plan_flags(const PlanChoice *c, Buf *o);

/* ---- price.c: fills in a choice's time, price and energy --------------------------------------- */
void plan_price(const PlanAsk *ask, PlanChoice *c);
/* What its chips can be rented for, in machines as those that were timed. */
Price plan_rent(const PlanChoice *c, const PriceAsk *ask);

int plan_machine_chips(const PlanChoice *c); /* of each machine */
/* Of choices of as many of the same chip the best by what is asked stays. */
void plan_best_servers(PlanAnswer *a);

/* ---- search.c: marks the front and sorts by what was asked for ---------------------------------- */
void plan_rank(PlanAnswer *a);
/* Is a step of that many? told: by the user, not what is usual. */
Err *plan_check_batch(const PlanAsk *ask, bool told);

/* What tokens are called. */
const char *plan_unit(const PlanAsk *ask);

#endif
