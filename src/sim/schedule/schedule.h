/* schedule: kernels, values in memory and the order in which kernels run, and the stages that are the same for all chips:
 * order, live ranges, memory peak, rematerialization, overlap of exchanges. What differs is asked of the ChipCompiler
 * (compiler.h), whose stages sched_program calls. Private to src/sim. */
#ifndef WEFT_SIM_SCHEDULE_SCHEDULE_H
#define WEFT_SIM_SCHEDULE_SCHEDULE_H

#include <math.h>

#include "sim/hlo/hlo.h"
#include "sim/params/params.h"
#include "sim/sim.h"

typedef struct ChipCompiler ChipCompiler; /* compiler.h */

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
  bool carries;        /* a gather travels beside it: one operation of several results */
  bool pool, soft;     /* a windowed reduction with an emitter; a softmax in one kernel */
  int attention;       /* which attention it computes forward or backward; 0: none */
  HValue *copy_of;
  struct Schedule *dearest; /* of a loop's or conditional's computations */
  double mult;              /* how often it runs */
  int pos;                  /* in the schedule */
  int shown;                /* 1 + its number among the report's */
  bool dead;
  /* cost */
  double cycles, flops, bytes, time_s, start_s, util, vpu;
  double peak_s;     /* its operations at the peak of their precision, of 16 bits at least */
  double cached;     /* bytes that come from and stay in a GPU's cache, beside `bytes` */
  double reckoned_s; /* time_s as its compiler reckons: without limits, waits and scalar work */
  SimBound bound;
  double est; /* the part of `cycles` that the compiler would estimate */
  struct {
    double start, reads, writes, vector, array;
  } parts; /* of a TPU's `cycles`: they hide behind each other, so that their sum is more */
  double wait_s,
      wait_bytes; /* before it: for transfers to on-chip memory, and what they still move */
  double beside;  /* bytes that transfers move while it runs */
  bool modelled, costed, collective, must_copy;
  bool unknown; /* a custom call that says nothing of itself: counted as what it moves */
  int windows;
} Kernel;

typedef struct Schedule {
  HGraph *g;
  const Chip *chip;
  const SimOpts *opts;
  Arena *arena;
  VEC(Kernel *) kernels; /* of one computation, in schedule order */
  VEC(HValue *) values;
  HComp *comp;
  struct Schedule *parent;
  double cycles, time_s, copy_s, net_s, flops, bytes, peak_s;
  double cached, reckoned_s; /* as of its kernels */
  double crossing_s,
      crossing_exposed_s; /* copies to and from the host's memory; of it, under no computing */
  double peak_host;       /* of its own values in the host's memory, bytes */
  double host_s, issue_s; /* eager: of time_s, waiting for the host; what that takes to issue it */
  double exposed_s;       /* of net_s: under no computing */
  int rematerialized;     /* values that are computed again, and what that takes */
  double rematerialized_s;
  double end_s, end_bytes;    /* after the last kernel: for transfers back to device memory */
  double once_bytes;          /* of a loop's body: fetched once, before the first round */
  double peak_chip, peak_hbm; /* of this computation's own values, on chip and in HBM */
  double peak_temp;           /* the larger of the two: what the compiler calls the peak */
  int peak_pos; /* the kernel at which device memory is fullest; what is on chip when none is used */
  int unknown_loops;
  bool circular;                /* kernels wait for each other */
  VEC(struct Schedule *) inner; /* of loops and branches */
  struct Order *order;          /* while kernels are put in order */
  const CostParams *params;
  const ChipCompiler *compiler;
  const struct SchedSetting *setting;
  double vmem_free; /* bytes of on-chip memory for values */
  bool loop_body;
  bool taken; /* the body of a loop, or the dearest branch of a conditional */
  double mult;
} Schedule;

/* The first kernel while which piece k of a fetched value is there. */
static inline int sched_piece(const Stay *s, int k) {
  return MAX(s->first, 0) + (int)((double)(s->ready - MAX(s->first, 0)) * k / s->pieces);
}

static inline HValue *base_of(HValue *v) { /* what a view looks at */
  while (v->alias) v = v->alias;
  return v;
}

/* Stored, with all else that the node's value is; the same for the same node. */
HValue *sched_store(Schedule *p, HNode *n);
/* A product's kernel goes on to v: where it stores. A widening conversion at the end, and scaling after it, is repeated
 * by every reader, so that the narrow array is stored. */
HNode *sched_narrow_end(HNode *product, HNode *v);
Kernel *sched_kernel(Schedule *p);
void sched_kernels(Schedule *p);
/* What all computations of a program are scheduled with. */
typedef struct SchedSetting {
  HGraph *g;
  const Chip *chip;
  const CostParams *params;
  const SimOpts *opts;
  const ChipCompiler *compiler;
  Arena *arena;
} SchedSetting;
/* The schedule of a program and of all that it calls; *out is set on errors too. */
Err *sched_program(const SchedSetting *s, HComp *c, Schedule **out);
/* host.c: the time of a kernel that copies to or from the host's memory, or that only addresses it; false: of another one. */
bool sched_host_cost(const Schedule *p, Kernel *k);
static inline bool sched_crosses(const Kernel *k) { return k->roots.n && k->roots.v[0]->crosses; }
bool sched_made_from(const Kernel *k, const HNode *n, const HNode *of, int depth);
void sched_lists_free(Schedule *p); /* its lists; the rest is in the arena */
void sched_kernel_free(Kernel *k);
void sched_dump(const Schedule *p, const Kernel *k);
/* WEFT_DUMP=why: what became of this node ("stored", "joined", ...) and by which rule: the name of a row, or of the function that has it. */
void sched_why(const HNode *n, const char *what, const char *rule);
void sched_order(Schedule *p);
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
/* limits.c: seconds that the kernel takes at least; its time made no shorter */
double sched_least_s(const Schedule *p, const Kernel *k);
double sched_peak_s(const Schedule *p, const Kernel *k);
void sched_limit(const Schedule *p, Kernel *k);
/* Padded bytes of the results that an operation with several writes to that memory; 0 for one with one. */
double sched_results_bytes(const HNode *n, Space in);
void sched_overlap(Schedule *p); /* exchanges under computing: shortens them to what is exposed */
void sched_peak(Schedule *p, bool lend); /* lend: results' memory to what comes before them */
/* Has a kernel several results that are written, or a loop's? */
bool sched_several(const Schedule *p, int kernel);
/* Is it a result that cannot be made in the donated argument's memory which it is given? */
bool sched_copied_to_given(const Schedule *p, const HValue *v);
bool sched_writes_over(const Schedule *p, const Kernel *k, const HValue *v, const HValue *o);
/* Where a value is while kernel `at` runs. */
Space sched_space(const Schedule *p, const HValue *v, int at);
void sched_remat(Schedule *p, double room); /* values are computed again until the peak is so low */
void value_layout(const CostParams *params, HValue *v,
                  const int *order); /* order NULL: the default of arguments and results */
void value_order_default(const CostParams *params, const HNode *n, int *order);
/* The two dimensions that pad least share the tile, but for those whose role is `not`; of equals features (n) over rows
 * (m), else the later ones. False: there are no two. */
bool value_order_roles(const CostParams *params, const HNode *n, const char *roles, char not,
                       int *order);
/* Behind the first k of an order: the other dimensions, the last first. */
void value_order_rest(int *order, int k, int rank);
static inline void value_order_swap(int *order) { /* what lies in lanes, and in sublanes */
  int lanes = order[0];
  order[0] = order[1], order[1] = lanes;
}
/* The next whole number of m. */
static inline double round_up(double x, double m) { return ceil(x / m) * m; }
void sched_flat_layouts(Schedule *p); /* of chips whose arrays do not lie in tiles */
double value_padded(const CostParams *params, const HNode *n, const int *order, double *tiles);
/* Products inside attention kernels against large ones: FlashAttention-2 names 50 to 73 % of the
 * peak on the A100, backward less than forward, where large products reach 87 %. Taken for Pallas'
 * kernels on TPUs too. */
#define ATTENTION 0.7
/* Counts, and marks what stays inside kernels: all, or what only goes forwards and whose scores are
 * larger than so many bytes. */
int attention_mark(HGraph *g, bool mark, double forward);
bool attention_causal(const Kernel *k);
bool attention_again(const Kernel *k, const HNode *n);
/* Slots of the vector unit that an operation takes for 1024 elements. */
double op_weight(const HNode *n);
/* Which exchanges of a computation travel as one: HNode.company, .together. */
void collective_combine(const Schedule *p, const HComp *c);
double collective_time(const Schedule *p, const Kernel *k, const HNode *n);

#endif
