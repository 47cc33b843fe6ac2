/* plan: from the graph to kernels, values in memory and a schedule, as the device's compiler
 * decides them.
 *
 *   plan_stored   which nodes are stored; everything else is computed inside its consumers
 *   plan_kernels  one kernel a stored value, then sibling and producer-consumer merging
 *   plan_layouts  order and padding of each stored value
 *   plan_comp     memory space, cost and start of each kernel, in schedule order; loops are planned
 * inside out
 *
 * What kernels cost is asked of sim/cost: tpu_cost, gpu_cost, collective_time. Private to src/sim.
 */
#ifndef WEFT_SIM_PLAN_H
#define WEFT_SIM_PLAN_H

#include "sim/hlo/hlo.h"
#include "sim/law.h"
#include "sim/sim.h"

typedef enum Space { SP_HBM, SP_VMEM, SP_CMEM, SP_SCALAR } Space;

#define STAYS 6
typedef struct Stay { /* on chip while kernels first to last run */
  int first, last;
  int ready; /* the first kernel that can read it there: one that runs before it arrives cannot */
  bool fetched; /* copied there from device memory */
  int pieces;   /* in so many, one after the other */
} Stay;

typedef struct HValue {
  HNode *node;
  int index;     /* in the plan's list */
  int life;      /* 1 + its number among the report's */
  int kernel;    /* that writes it; -1: parameter or constant */
  int result;    /* result number of a multi-result node */
  int order[64]; /* dimensions from minor to major */
  double tiles;  /* (8,128) tiles of the array as laid out: padded elements / 1024 */
  double bytes;  /* padded */
  double plain;  /* unpadded bytes */
  bool rounded;  /* stored in bf16 whatever the type says */
  int packed;    /* predicates: this many along one side share a word */
  bool lone;     /* made by a kernel of its own */
  bool laid;     /* its order is decided */
  Space space;
  bool is_param, is_output, donated, on_demand;
  bool given;           /* a result in a donated argument's memory */
  struct HValue *over;  /* that argument */
  bool dropped;         /* every reader sits in the kernel that makes it: never written */
  int first, last;      /* kernels (schedule positions) between which it lives */
  int last_read;        /* the last kernel that reads it */
  struct HValue *alias; /* shares this value's memory */
  Stay stays[STAYS];
  int n_stays;
  bool held;    /* in memory that a loop keeps on chip */
  bool retiled; /* a stack that a loop has there in other tiles than it came in */
  int loop;     /* 1 + the kernel of the loop that takes it over so */
  bool born;    /* could be made on chip */
  double worth; /* being there: see weigh() */
  double at;    /* where it lies there */
  bool far;     /* is in device memory too, until kernel far_last */
  int far_last;
  int from, to; /* kernels while which it is a temporary of device memory; none: from > to */
  bool lent;    /* in the memory of a result that comes later */
  int away_from, away_to; /* nowhere between these kernels: made again before the latter */
  double copy_bytes;      /* a prefetched copy in on-chip memory, the last one */
  int copy_first, copy_last;
} HValue;

typedef struct Kernel {
  HComp *comp;
  VEC(HNode *) roots; /* stored nodes it computes, in program order */
  VEC(HNode *) inner; /* nodes computed inside, roots included, topological */
  VEC(HValue *) reads;
  VEC(HValue *) waits; /* that must have been made before */
  HNode *conv;         /* its product, or NULL */
  bool reduce;         /* has a reduction root */
  bool rows;           /* of a GPU: holds rows to sum them up and walk over them again */
  bool alone;          /* a single unfused operation */
  bool scalar;         /* scalar arithmetic: free */
  bool copy;           /* a relayout made up by the planner */
  bool turns;          /* a copy that moves another dimension into lanes */
  bool pool, soft;     /* a windowed reduction with an emitter; a softmax in one kernel */
  int attention;       /* which attention it computes forward or backward; 0: none */
  HValue *copy_of;
  struct Plan *dearest; /* of a loop's or conditional's computations */
  double mult;          /* how often it runs */
  int pos;              /* in the schedule */
  int shown;            /* 1 + its number among the report's */
  bool dead;
  /* cost */
  double cycles, flops, bytes, time_s, start_s, util, vpu;
  SimBound bound;
  double est; /* the part of `cycles` that the compiler would estimate */
  bool modelled, costed, collective, must_copy;
  int windows;
} Kernel;

typedef struct Plan {
  HGraph *g;
  const Chip *chip;
  const SimOpts *opts;
  Arena *arena;
  VEC(Kernel *) kernels; /* of one computation, in schedule order */
  VEC(HValue *) values;
  HComp *comp;
  struct Plan *parent;
  double cycles, time_s, copy_s, net_s, flops, bytes;
  double host_s, issue_s; /* eager: of time_s, waiting for the host; what that takes to issue it */
  double exposed_s;       /* of net_s: under no computing */
  int again;              /* values that are computed again, and what that takes */
  double again_s;
  double peak_chip, peak_hbm; /* of this computation's own values, on chip and in HBM */
  double peak_temp;           /* the larger of the two: what the compiler calls the peak */
  int peak_pos; /* the kernel at which device memory is fullest; what is on chip when none is used */
  bool unknown_loops;
  bool circular;            /* kernels wait for each other */
  VEC(struct Plan *) inner; /* of loops and branches */
  const struct Law *law;
  double vmem_free; /* bytes of on-chip memory for values */
  bool loop_body;
  bool taken; /* the body of a loop, or the dearest branch of a conditional */
  double mult;
} Plan;

/* The first kernel while which piece k of a fetched value is there. */
static inline int plan_piece(const Stay *s, int k) {
  return MAX(s->first, 0) + (int)((double)(s->ready - MAX(s->first, 0)) * k / s->pieces);
}

static inline HValue *base_of(HValue *v) { /* what a view looks at */
  while (v->alias) v = v->alias;
  return v;
}

/* plan_groups.c */
void plan_split_groups(HGraph *g, HNode *n); /* a convolution of few groups, as what it becomes */
/* One filter of a single tap a channel becomes a factor for each; false: it is something else. */
bool plan_scale_channels(HGraph *g, HNode *n);
/* plan_indices.c: by which kernels a gather's indices come to lie as one vector, and its rows as a result */
void plan_lay_indices(HGraph *g, const Law *law, HComp *c, HNode *gather);
/* plan_expand.c, gpu_expand.c: what the compiler rewrites before it fuses */
void plan_expand(HGraph *g, const Law *law);
void gpu_expand(HGraph *g, const Chip *chip, const SimOpts *opts);
void plan_add_rows_to(HGraph *g,
                      HNode *n); /* sums of rows from nothing, added to an array: to that */
/* gpu_convs.c: which of cuDNN's functions XLA takes for a convolution */
typedef enum GpuConv { GPU_CONV_FORWARD, GPU_CONV_IMAGE, GPU_CONV_FILTER } GpuConv;
GpuConv gpu_conv_way(const HNode *n);
/* plan_store.c */
void plan_stored(Plan *p); /* decides which nodes are stored */
/* Is it an image whose pixels are repeated, for a convolution? */
bool plan_upsampled(const HNode *n);
HValue *plan_store(Plan *p, HNode *n);
/* The exponentials that n is the quotients of, perhaps rounded; or NULL. */
const HNode *plan_exponentials(const HNode *n);
int plan_sides(const HNode *n); /* longer than one element */
#define GROUPED 5 /* sides of scores: batch, keys' head, its queries' heads, queries, keys */
bool plan_is_tiny(const HNode *n); /* scalar arithmetic */
bool plan_cuts_number(
    const HNode *n); /* a single one, out of an array: stored, for the scalar unit */
bool plan_const_only(const HNode *n); /* made of constants: recomputed for nothing */
/* Has the compiler an emitter for a windowed reduction? One of a matrix has none: both its sides lie in
 * tiles. Longer running sums go block by block, which is a side more. */
#define RUN_BLOCK 128
bool plan_pool_emitter(const Plan *p, const HNode *n);
/* What is windowed, or what that is made of element by element. */
const HNode *plan_pooled_array(const HNode *n);
/* Has each element of an argument a window of its own, which reaches over neighbours in its tile, but not over
 * all of the row? It is summed up as it lies, by an operation of its own. */
bool plan_slides_in_tile(const Law *law, const HNode *n);
bool plan_absorbs(const Plan *p, const HNode *user,
                  const HNode *x); /* does the user compute this operand inside itself? */
/* plan_epilogue.c */

/* Several element-wise users of v that meet again in one node, as in x * (1 - t) + x * (1 - t) * t:
 * that node, or NULL when something else needs one of those between. */
HNode *plan_meets_again(HNode *v, const unsigned char *claimed);
/* The user chain of a product that becomes its epilogue: element-wise, one user at a time, same
 * number of elements. */
HNode *plan_epilogue_end(const Plan *p, HNode *conv, const unsigned char *claimed);
/* Is n what a GPU's library computes with a product's result on the way? */
bool plan_library_adds(const HNode *product, const HNode *n);
/* Where every operation is a call: cuBLAS adds a bias, both libraries write the narrower type. */
HNode *plan_library_end(const Plan *p, HNode *conv);

/* plan_softmax.c */

/* exp(x - max(x)) and its sum, where x comes from a product: the compiler keeps them in the
 * product's kernel. */
void plan_softmax(Plan *p);

/* gpu_stored.c */
/* Of what XLA could compute again; and which sums it does. `claimed`, by node: what libraries compute with
 * products. */
void gpu_stored(Plan *p, const unsigned char *claimed);
/* gpu_fuse.c: stores what XLA would not compute again; `rows`, by node: never of these */
void gpu_fuse(Plan *p, const bool *rows, const unsigned char *claimed);
/* gpu_cycles.c: operations that XLA counts for an element */
double gpu_op_cycles(const Chip *chip, OpKind op, DType type);
/* eager.c */
void eager_stored(Plan *p);
/* plan_kernels.c */
Kernel *plan_kernel(Plan *p);
void plan_kernels(Plan *p);
/* When everything has an order: two loops that do the same with different arrays of one shape, as where
 * an optimizer updates weights, become one. */
void plan_pairs(Plan *p);
/* plan_layout.c */
void plan_layouts(Plan *p);
bool plan_slices_tiles(const Plan *p, const HNode *n);
/* The order that a product wants for an operand or result (`roles`: its c->out, ...): the two minor
 * dimensions may not be batch (of a dot) or spatial (of a convolution). */
void plan_conv_order(const Law *law, const HNode *n, const HConv *c, const char *roles, int *order);
/* Which of a dot's rows lies in tiles: the dimension of its first operand that is padded least, in tiles
 * of 16 where it is one of an image's three; of equals `like`, else the last. */
int plan_dot_row(const HNode *x, const HConv *c, int like);
/* Does a dot exchange the batch in sublanes of its operand v for another dimension as it reads it? */
bool plan_turned_inside(const HValue *v, const HConv *c, const char *roles);
/* Does the order that v has do for it? */
bool plan_order_serves(const HValue *v, const HConv *c, const char *roles);
/* The stored array that a kernel does nothing to but take a slice of; the slice keeps its order. */
const HValue *plan_sliced_of(const Kernel *k, const HNode *n);

/* plan_split.c: reshapes that move elements between tiles, of arrays that lie as an image in parts does */
void plan_split_tiles(HComp *c);
/* plan_reshape.c: how the two sides of a reshape lie that no product is near to */
/* The order of a reshape's result that is the memory of its argument in that order; false: none is. */
bool plan_joined_order(const HNode *n, const int *from, int *order);
void plan_lie(HGraph *g, HNode *n, const int *order); /* it is stored in that order */
void plan_lay_reshape(HGraph *g, const Law *law, HComp *c, HNode *n);
/* plan_views.c */

/* Does a reshape only add and take away dimensions of one? Then the result lies as what it is made of. */
bool plan_same_dimensions(const HNode *reshape);
void plan_reshaped_alike(const HNode *reshape, const int *from, int *order);
/* Is a reshape the memory of what it reads? */
bool plan_bitcast(const Plan *p, const HNode *n);
/* An argument that becomes a piece of a stack. */
bool plan_stacked_argument(const HNode *n);
/* Is it a slice of an argument, from its first elements on, that takes the same tiles? */
bool plan_slice_view(const Law *law, const HNode *n);
/* Does the kernel do nothing but take a slice of an argument that begins with tiles? On chip that is a
 * transfer. */
bool plan_slice_of_tiles(const Plan *p, const Kernel *k);
/* A concatenation of what is made of slices of one array of its size, whose pieces begin with tiles: one
 * loop writes each where it belongs. */
bool plan_written_in_place(const Law *law, const HNode *n);
/* A concatenation of pieces that are one wide: the dimension that it makes lies outside of all others. */
bool plan_stacked(const HNode *n);
/* plan_parts.c */
bool plan_part_order(const Law *law, const HNode *n, int *order,
                     int depth); /* false: any will do */
/* plan_exchange.c: an exchange between devices becomes what the compiler makes of it; results of the program
 * that other devices write are copied. */
void plan_exchange(HGraph *g, const Law *law, HComp *c, HNode *n);
void plan_received(Plan *p);
/* What a device gets from its neighbours is put beside its own by an operation without an estimate. */
bool plan_joins_parts(const HNode *n);

/* plan_copies.c */
#define TURN_MIN 4096 /* bytes: smaller arrays are turned on the way */
#define TURN_MAX 64e6 /* larger ones are not */
void plan_copies(Plan *p);
/* A new value: v in another order, made by a kernel of its own. */
HValue *plan_copy(Plan *p, HValue *v, const int *order);
/* The first so many kernels read w, a copy of v. */
void plan_read_instead(Plan *p, const HValue *v, HValue *w, int kernels);
bool plan_same_order(const HValue *a, const HValue *b);
/* plan_rows.c */
void plan_turn_indexed(Plan *p);
/* The order of rows that are gathered by a matrix of indices: as they come, or with the second
 * dimension in lanes where that and the matrix of all rows, turned, pad less. False: something else. */
bool plan_rows_order(const HNode *n, int *order);
/* Kernel i, where sums of rows meet tables that lie in another order: these are turned, or the sums.
 * Returns whether it is the tables, and with them the kernel's results. */
bool plan_update_rows(Plan *p, int i);
/* plan.c */
Err *plan_comp(HGraph *g, HComp *c, const Chip *chip, const Law *law, const SimOpts *opts,
               Arena *arena, Plan *parent, double mult, Plan **out);
bool plan_made_from(const Kernel *k, const HNode *n, const HNode *of, int depth);
void plan_lists_free(Plan *p); /* its lists; the rest is in the arena */
void plan_kernel_free(Kernel *k);
/* plan_dump.c */
void plan_dump(const Plan *p, const Kernel *k);
/* plan_order.c */
void plan_order(Plan *p);
/* plan_fetch.c */

/* Is this read worth fetching ahead of the first kernel? Not when the kernel changes its order on
 * the way, nor for the matrix of a matrix-vector product, nor for what is summed once on the way to
 * another kernel. */
bool plan_fetch_first(const Plan *p, const Kernel *k, const HValue *v);
bool plan_product_or_reduce(
    const Kernel *k); /* also windows, gathers and slices that are looked up */
/* Is the value itself an operand of the kernel's product or sum, and of nothing else in it? Views
 * and edges belong to the operand. */
bool plan_is_operand(const Kernel *k, const HNode *x);

/* plan_place.c */
void plan_place(Plan *p);
void plan_see(Plan *p, int at);
void plan_settle(Plan *p);
Space plan_space(const Plan *p, const HValue *v, int at);
/* plan_heap.c */
typedef struct Chunk { /* memory from `at` on, while kernels a to b run */
  int a, b;
  double at, bytes;
} Chunk;
typedef struct Heap {
  VEC(Chunk) chunks; /* by address */
  double size;
} Heap;
double heap_gap(const Heap *h, int a, int b, double bytes, double at);
void heap_put(Heap *h, int a, int b, double at, double bytes);
/* plan_overlap.c */
void plan_overlap(Plan *p); /* exchanges under computing: shortens them to what is exposed */
/* plan_peak.c */
void plan_peak(Plan *p, bool lend); /* lend: results' memory to what comes before them */
double plan_scratch(const Plan *p, const Kernel *k);
double plan_attention_room(const Plan *p, const Kernel *k); /* on chip, with what is under way */
bool plan_writes_over(const Plan *p, const Kernel *k, const HValue *v, const HValue *o);
/* plan_again.c */
void plan_again(Plan *p, double room); /* values are computed again until the peak is so low */
/* plan_summed.c: is what a sum and products read, made in so many slots of the vector unit from what
 * takes so many cycles to bring, written where it is added up? */
bool plan_comes_with_sum(const Law *law, const HNode *n, double slots, double in);
/* Arrays of n's size that it is made of, element by element: those that are stored, or parts of such. What
 * is repeated to that size is none. Only stored ones: 0 if it is made of anything else. */
int plan_leaves(const HNode *n, bool stored);
/* Are rows of what is made of two stored arrays or more added up, or compared, as they are or widened, and walked
 * over again? It is not computed anew then: it comes out of the sums' kernel. Where its squares are added up,
 * what is made of two arrays is, too, of three not. A product would write it. */
bool plan_walked_again(const HNode *n);
/* layout.c */
void value_layout(const Law *law, HValue *v,
                  const int *order); /* order NULL: the default of arguments and results */
void value_order_default(const Law *law, const HNode *n, int *order);
double value_padded(const Law *law, const HNode *n, const int *order, double *tiles);
/* tpu_parts.c */
double tpu_read_fraction(const Kernel *k, const HValue *v); /* of v that the kernel reads */
double tpu_windows(const Law *law, const Kernel *k); /* bytes on chip that its windows take */
/* tpu_scan.c */
typedef struct RunningSum {
  int width;     /* bytes of an element, two at least */
  bool in_lanes; /* the summed dimension is */
  bool whole;    /* it is a number of blocks */
  bool apart;    /* these do not fill tiles of eight */
  double tiles;  /* of the blocks, summed dimension outside of the tile */
  double plain;  /* without what the number of blocks is padded by */
  double work;   /* what the tiles are reckoned as */
} RunningSum;
bool tpu_running_sum(const Kernel *k, RunningSum *s); /* s may be NULL */
/* tpu_cost.c, gpu_cost.c */
void tpu_cost(Plan *p, Kernel *k);
void gpu_cost(Plan *p, Kernel *k);
/* gpu_conv.c: the gradient of a convolution's weights, of its image */
bool gpu_weight_gradient(const HNode *n);
bool gpu_backwards(const HNode *n);
/* gpu_made.c */
double
gpu_made_bytes(const HNode *n); /* held while XLA's kernels of one operation run; 0: one kernel */
/* attention.c */
/* Products inside attention kernels against large ones: FlashAttention-2 names 50 to 73 % of the
 * peak on the A100, backward less than forward, where large products reach 87 %. Taken for Pallas'
 * kernels on TPUs too. */
#define ATTENTION 0.7
/* Counts, and marks what stays inside kernels: all, or what only goes forwards and whose scores are
 * larger than so many bytes. */
int attention_mark(HGraph *g, bool mark, double forward);
bool attention_causal(const Kernel *k);
bool attention_again(const Kernel *k, const HNode *n);
/* collective.c */
double collective_time(const Plan *p, const Kernel *k, const HNode *n);
/* vpu_weight.c */
double vpu_weight(const HNode *n);

#endif
