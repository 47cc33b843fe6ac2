/* sim: time, memory, energy and price of a program on a chip, from the program alone.
 *
 * sim_estimate compiles a StableHLO module the way that chip's compiler would (which operations
 * share a kernel, padded and tiled layouts, what stays in on-chip memory, the schedule, the
 * buffers) and puts a number on each kernel. Nothing is executed. Chips are data (chip/chip.h): all
 * rates and the coefficients of the cost laws come from the chip's file.
 *
 * The module is one device's program. A program with collectives is taken as SPMD: every device
 * runs it, and collectives are timed on the chip's network for opts->devices devices. Numbers that
 * rest on a model instead of fitted compiler estimates (gather, scatter, sort, collectives, exposed
 * prefetch) are marked SIM_MODELLED.
 *
 * Ownership   the report owns everything it shows; it borrows the chip (which lives for ever) and
 *             nothing of the module.
 * Threads     any number of estimates at once.
 */
#ifndef WEFT_SIM_SIM_H
#define WEFT_SIM_SIM_H

#include "chip/chip.h"
#include "ir/ir.h"
#include "prof/prof.h"

typedef struct SimOpts {
  int devices; /* devices that run the program together; 0: 1 */
  const ChipRef
      *where;     /* how they lie: a server's GPUs, a TPU's slices; NULL, or with fewer devices than
                           run: the chip's own servers, the fullest slices */
  const int *ids; /* [devices] which of them runs as which member of the program's groups; NULL: the
                     mesh is laid out for the best */
  bool eager; /* on GPUs: as a framework that runs one operation at a time, not as XLA compiles */
  bool
      library; /* on GPUs: every product by the vendor's library, none by kernels that XLA searches for */
  bool fused_attention; /* on GPUs that can: attention as cuDNN and FlashAttention compute it, its
                           scores never stored; also with WEFT_ATTENTION=fused. Else as XLA does */
  bool
      open_arguments; /* of a program over devices, those without a sharding are cut as their readers
                           ask, as JAX has XLA do; else they are whole on each device */
  PriceAsk price;     /* whose prices count */
  int n_trips; /* trips of loops that the program does not tell, by number (pass_number_loops): */
  const double *trips; /* means of a run; negative: unknown */
} SimOpts;

/* What a kernel waits for most of its time. */
typedef enum SimBound {
  SIM_COMPUTE,
  SIM_MEMORY,
  SIM_VECTOR,
  SIM_LATENCY,
  SIM_NETWORK,
  SIM_HOST /* the way to the host's memory */
} SimBound;
const char *
sim_bound_name(SimBound b); /* "compute", "memory", "vector", "latency", "network", "host" */

typedef struct SimKernel {
  const char *name;  /* "dot_general_add_fusion.12" */
  const char *op;    /* the operation that sets its cost: "dot_general", "reduce", "add" */
  const char *place; /* source line in the user's program, "" when unknown */
  double cycles;     /* of one run */
  double est_cycles; /* of one run, as the device's own compiler would estimate; 0 where it has no
                        estimate */
  double time_s;     /* of one run */
  double count;      /* how often it runs (loops) */
  double start_s;    /* when the first run starts, on one device's timeline */
  SimBound bound;
  double flops, bytes; /* of one run; bytes of device memory read and written */
  double cached;       /* bytes that come from and stay in a GPU's cache, beside them */
  double beside;       /* bytes that transfers to and from on-chip memory move while it runs */
  double utilisation;  /* of the unit that bounds it, 0..1 */
  double matrix;       /* of matrix units, 0..1 */
  bool modelled;       /* no compiler estimate exists for this kind of kernel */
  bool unknown;        /* a custom call that says nothing of itself: counted as what it moves */
  bool collective;
  int loop; /* the innermost loop it is in: index into SimReport.loops; -1 none */
  int n_reads;
  const int *reads; /* which of SimReport.lives it reads */
} SimKernel;

typedef struct SimLoop { /* iteration i of a kernel in it starts i * body_s after the first */
  double body_s, trips;
  int parent;     /* the loop around it; -1 none */
  bool unknown;   /* trips is 1, for lack of anything better; of a condition 2 */
  bool condition; /* the part that asks whether to go on */
  int number;     /* by pass_number_loops; -1 none */
} SimLoop;

/* Whom memory belongs to; owner.c tells how that is found out. */
typedef enum SimOwner {
  SIM_PARAMETERS,
  SIM_SLOTS,  /* of the optimizer */
  SIM_STATE,  /* statistics, counters, random keys */
  SIM_CACHES, /* come back with parts written into them, as in decoding */
  SIM_INPUT,
  SIM_RESULTS, /* new ones: not written over an argument */
  SIM_GRADIENTS,
  SIM_KEPT,    /* made earlier, needed later: activations kept for the backward pass */
  SIM_WORKING, /* read and written by the kernel at the fullest moment */
  SIM_OTHER,   /* in the peak, but in no buffer that the plan names */
  SIM_OWNERS
} SimOwner;
const char *sim_owner_name(SimOwner o); /* "parameters", "optimizer slots", ... */

typedef struct SimHolding { /* all of one owner at the fullest moment */
  double bytes, padding;
  int n;                           /* buffers */
  const struct SimBuffer *largest; /* NULL: none */
} SimHolding;

typedef struct SimBuffer {
  const char *name; /* "params['w']", "dot_general.3" */
  const char *role; /* "argument", "output", "temporary", "prefetch" */
  const char *type; /* "bf16[128,32,32,64]{3,0,2,1}" */
  const char *place;
  double bytes;   /* allocated, padding included */
  double padding; /* bytes that padding adds */
  bool on_chip;   /* VMEM or CMEM */
  SimOwner owner;
  double from_s, to_s; /* when it lives, on one device's timeline */
  int maker;           /* of lives: the kernel that makes it; -1: an argument, or a loop */
} SimBuffer;

typedef struct SimReport {
  const Chip *chip;
  int devices;
  /* memory of one device, bytes */
  double argument_bytes, output_bytes, alias_bytes, temp_bytes, peak_bytes;
  double hbm_bytes; /* what has to fit: arguments + outputs - aliases + temporaries in HBM */
  double limit_bytes;
  bool fits;
  /* of the host, for one device: memory kinds (pinned_host). Not in the bytes above */
  double host_bytes;      /* arguments, results and what is put there meanwhile */
  double host_transfer_s; /* copies there and back, of it host_exposed_s that no computing hides */
  double host_exposed_s;
  int64_t batch; /* examples in the program's batch; 0: none was found */
  int n_args;
  const SimOwner *arg_owners;    /* of the program's arguments */
  bool training;                 /* some argument comes back updated */
  SimHolding owners[SIM_OWNERS]; /* add up to hbm_bytes */
  /* time of one run */
  double time_s;
  double cycles;         /* sum over kernels that have a compiler estimate, loops multiplied */
  double exposed_copy_s; /* prefetch that no kernel hides */
  int rematerialized; /* arrays given up and computed again, for lack of memory: in rematerialized_s */
  double rematerialized_s;
  const Server
      *server;       /* GPUs: the machines whose network that is; NULL: one device, or none known */
  bool server_named; /* by the caller; else the chip's usual ones */
  bool server_rented; /* found by sim_estimate_rented */
  double network_s;   /* collectives, of it network_exposed_s that no computing hides */
  double network_exposed_s;
  double host_s; /* eager: of time_s, what the device waits for the host to launch kernels */
  bool eager;    /* estimated so */
  double
      flops; /* useful, of one device; of them flops_recomputed a second time, as jax.checkpoint has
                         products computed again in the backward pass */
  double flops_recomputed;
  double model_bytes; /* device memory traffic */
  double mfu,
      hfu; /* share of time x peak that the model's operations are; with those computed again */
  double energy_j;     /* all devices */
  double usd;          /* of one run, at the price of the machines; NaN when no price is listed */
  double usd_per_hour; /* of the cheapest whole machines that hold the devices */
  Price price;
  const char *price_source; /* price_words */
  int n_kernels;
  SimKernel *kernels; /* in schedule order */
  int n_buffers;
  SimBuffer *buffers; /* live at the moment of peak use, largest first */
  int n_loops;
  SimLoop *loops;
  int n_lives;
  SimBuffer *lives; /* all of the run; what a loop's body needs is one buffer of the loop */
  bool whole;       /* could not be partitioned: the program of all devices, taken for one's */
  bool replicated;  /* every one of the devices runs all of it, for itself */
  int attentions;   /* that a fused kernel would compute and that were left apart */
  bool circular;    /* kernels that wait for each other, our mistake, ran in program order */
  /* What the time leaves out, said by sim_unknowns: loops whose trip count could not be found, counted once; custom calls that
   * say nothing of themselves, counted as the bytes that they move, and their targets, separated by commas. */
  int unknown_loops, unknown_calls;
  const char *unknown_names;
  struct Arena *arena;
} SimReport;

/* errors: ERR_INVALID a program that cannot be read; ERR_UNIMPLEMENTED dynamic shapes. Does not
 * fail for lack of memory: see fits. opts may be NULL. */
Err *sim_estimate(const Module *m, const Chip *chip, const SimOpts *opts, SimReport **out);
void sim_report_free(SimReport *r); /* NULL is fine */

/* Likewise for a global program over `partitions` devices: it is partitioned first (compile/
 * partition.h). Where that is not implemented the whole program is taken for one device's, which
 * overstates it: report->whole. */
Err *sim_estimate_spmd(const Module *m, const Chip *chip, const SimOpts *opts, int partitions,
                       SimReport **out);
/* Likewise, time and price of one machine: GPUs in a server that nobody named, more of them than one machine holds,
 * are estimated in each server that prices are listed of (chip_servers); that in which the step costs least stays. */
Err *sim_estimate_rented(const Module *m, const Chip *chip, const SimOpts *opts, int partitions,
                         SimReport **out);
/* Devices that the module says it is for: mhlo.num_replicas x mhlo.num_partitions. */
int sim_devices_of(const Module *m);

/* Seconds of a run in which the bodies of unknown loop k ran bodies[k] times in all; bodies: n, by number, negative where nobody
 * counted. trips: n means for SimOpts, or NULL. */
double sim_ran_s(const SimReport *r, int n, const int64_t *bodies, double *trips);

/* The error for a program that does not fit, in the words of the design: what holds the memory, and
 * what to try. NULL when it fits. */
Err *sim_fit_error(const SimReport *r, const char *program);
/* Likewise on one line, below a report that lists the owners. */
Err *sim_fit_error_brief(const SimReport *r, const char *program);
/* Likewise beside `held` bytes that other arrays take on the device. */
Err *sim_fit_error_beside(const SimReport *r, const char *program, double held);

/* What the time leaves out, in one sentence without an end: "1 custom call of unknown cost (foo)"; nothing when it leaves out
 * nothing. */
void sim_unknowns(const SimReport *r, Buf *out);

/* The report as text for people, as one row of a table (r NULL: its head; chip: its name as the user
 * says it), or as one JSON object (program NULL: without its name), on one line if asked for. */
void sim_print(const SimReport *r, int max_kernels, Buf *out);
void sim_print_row(const SimReport *r, const char *program, const char *chip, Buf *out);
void sim_json(const SimReport *r, const char *program, bool one_line, Buf *out);

/* The report as a program of a recording, and the chip as a device of it (prof/prof.h). */
ProfProgram *sim_profile(const SimReport *r, Prof *p, const char *name);
void sim_profile_device(const Chip *chip, ProfDevice *out);

/* Bytes that an array of this type takes in the chip's memory, padding included (arguments and
 * results). */
double sim_array_bytes(const Chip *chip, const Type *t);

/* ---- single kernels, from shapes alone ------------------------------------------------------- */

/* Seconds of `batch` products C[m,n] = A[m,k] B[k,n] in one kernel: operands of type dt and a result of
 * 16 bits in device memory, f32 sums. The same model as for kernels of programs; any thread. */
double sim_product_s(const Chip *chip, DType dt, double batch, double m, double n, double k);
/* Of a kernel that does little more than move so many bytes from and to device memory. */
double sim_pass_s(const Chip *chip, double bytes);

/* ---- the systolic array, processing element by processing element ---------------------------- */

typedef enum SystolicFlow { SYSTOLIC_WS, SYSTOLIC_OS } SystolicFlow;

typedef struct SystolicRun {
  int64_t cycles; /* from the first value entering to the last result leaving */
  int64_t fill, steady,
      drain;          /* until the first tile is full, until the last runs empty, the rest */
  int64_t load;       /* of `cycles`: exposed loading of stationary values */
  int64_t macs;       /* multiply-accumulates done */
  double utilisation; /* macs / (cycles x rows x cols) */
  int rows, cols;     /* of the array */
  int64_t folds;      /* tiles of stationary values */
  float *result;      /* M x N row-major, malloc'd; NULL when no inputs were given */
  int64_t *active;    /* active elements in each cycle, n_active entries; for drawing; malloc'd */
  int64_t n_active;
  bool counted; /* too large to walk: the same counts, wave by wave instead of element by element */
} SystolicRun;

/* Element updates up to which a run without inputs is walked element by element; larger ones are
 * counted wave by wave, which gives the same counts (sim_test.c) in no time. */
#define SYSTOLIC_WALK 6e4
/* C[M,N] = A[M,K] B[K,N] on a rows x cols array, every element simulated every cycle. a, b NULL:
 * counts only. Weights are double-buffered when `double_buffer` is set: the next tile's weights
 * march in behind the current ones. */
Err *systolic_run(SystolicFlow flow, int rows, int cols, int64_t m, int64_t n, int64_t k,
                  const float *a, const float *b, bool double_buffer, SystolicRun *out);
void systolic_free(SystolicRun *r);
/* The same cycles in closed form, without simulating. */
int64_t systolic_cycles(SystolicFlow flow, int rows, int cols, int64_t m, int64_t n, int64_t k,
                        bool double_buffer);
/* The count that SCALE-Sim 3.0.0 prints for the same dataflow: stationary values are not
 * double-buffered, cycles are numbered from 0. */
int64_t systolic_scalesim_cycles(SystolicFlow flow, int rows, int cols, int64_t m, int64_t n,
                                 int64_t k);

#endif
