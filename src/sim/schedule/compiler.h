/* compiler: what a chip's compiler does at each stage of a schedule. libtpu's (sim/tpu), XLA's for GPUs (sim/gpu) and a
 * framework that runs one operation at a time (sim/eager) have a table each; a field that may be NULL says so.
 * The stages, in the order in which sim.c and schedule.c call them: rewrite, lower, fuse, join, layout, place, cost, finish.
 * Private to src/sim. */
#ifndef WEFT_SIM_SCHEDULE_COMPILER_H
#define WEFT_SIM_SCHEDULE_COMPILER_H

#include "sim/schedule/schedule.h"

typedef struct Joins Joins; /* kernels.h */

/* What a stored node is to what it reads. */
typedef enum SchedView { VIEW_NONE, VIEW_ALIAS, VIEW_COPY } SchedView;

struct ChipCompiler {
  const char *name;

  /* ---- the graph ---- */
  bool keeps_scatters; /* what is scattered into rows stays that (hlo_build) */
  void (*rewrite)(HGraph *g, const Chip *chip, const CostParams *params); /* NULL: nothing */
  /* After attention was found: as libraries take it. NULL: nothing. */
  void (*lower)(HGraph *g, const Chip *chip, const CostParams *params);

  /* ---- instruction fusion: which nodes are stored; the others are computed in their readers ---- */
  void (*fuse)(Schedule *p);
  /* Is a stored node the memory of what it reads, or a copy of it? */
  SchedView (*view)(const Schedule *p, const HNode *n);
  bool (*pools)(const Schedule *p,
                const HNode *n); /* has it an emitter for that window? NULL: for none */
  bool holds_rows;               /* kernels hold rows to sum them up and walk over them again */

  /* ---- kernels that are joined ---- */
  void (*join)(Joins *js);
  bool (*joins_nothing)(const Schedule *p,
                        const Kernel *k); /* with what makes its input. NULL: false */
  bool (*joins_maker)(Joins *js, int at, const HValue *v,
                      bool loops); /* may kernel `at` join v's? */
  bool (*shares_tables)(const Kernel *k,
                        const HNode *n); /* may siblings share this small one? NULL: no */
  bool (*joins_sibling)(Joins *js, int i, int j, const HNode *shared, bool table);
  void (*classified)(Schedule *p); /* marks of its own on kernels. NULL: none */

  /* ---- layout assignment ---- */
  void (*layout)(Schedule *p);

  /* ---- order and memory ---- */
  bool starts_loops;   /* loops' constant beginnings are operations in the order of kernels */
  bool orders_scratch; /* what a kernel works in counts when kernels are ordered */
  double combines_to;  /* bytes of exchanges that travel as one */
  double hides_to;     /* exchanges run beside computing, up to this part of the memory; 0: never */
  void (*place)(Schedule *p);       /* memory spaces, after a first costing. NULL: all in HBM */
  void (*see)(Schedule *p, int at); /* kernel `at` is about to be costed. NULL: nothing */
  void (*settle)(Schedule *p);      /* after the last kernel. NULL: nothing */
  /* May k write o over v, which ends there and has its size? state: v is a loop's. */
  bool (*overwrites)(const Schedule *p, const Kernel *k, const HValue *v, const HValue *o,
                     bool state);
  bool shares_temporaries; /* they take the place of what they are made from */
  bool sorts_in_place;
  bool lends; /* results' memory to temporaries, whether or not there is much */
  bool lends_to_scratch;
  double lends_from;  /* part of the chip's memory from which on it does so; 0: never */
  double remats_from; /* part of it from which on values are computed again; 0: never */
  bool tuples;        /* the addresses of several results are an array */
  double (*scratch)(const Schedule *p, const Kernel *k); /* bytes that a kernel works in */

  /* ---- time and energy ---- */
  void (*cost)(Schedule *p, Kernel *k);
  void (*count)(Schedule *p, Kernel *k); /* a loop's counter. NULL: free */
  void (*issue)(Schedule *p, Kernel *k); /* the host issues each kernel. NULL: all at once */
  void (*finish)(Schedule *p);           /* copies that loops need. NULL: none */
  bool counts_cycles; /* kernels' cycles are estimated; else time times the clock */
  double (*peak)(const Chip *chip, const HNode *product); /* FLOP/s of the units that it runs on */
  double (*launch_s)(const Chip *chip, const CostParams *params);
  double (*energy_j)(const Chip *chip, const SimReport *r);
};

/* What compilers share.
 *   sched_flat_view     for chips whose arrays do not lie in tiles
 *   sched_of_stored     does it only change the shape or order of something stored?
 *   sched_absorbs       do all compilers compute the operand x inside this user?
 *   sched_start_store   parameters are stored
 *   sched_store_products  and products with what their kernels go on to compute: `end` says the last such node.
 *                         claimed, by node: computed so
 *   sched_store_rest    and what no reader computes inside itself; joins_parts: concatenations are put together by
 *                       their readers */
SchedView sched_flat_view(const Schedule *p, const HNode *n);
bool sched_of_stored(const Schedule *p, const HNode *n);
bool sched_absorbs(const HNode *user, const HNode *x);
void sched_start_store(Schedule *p);
void sched_store_products(Schedule *p, unsigned char *claimed,
                          HNode *(*end)(const Schedule *p, HNode *product,
                                        const unsigned char *claimed));
void sched_store_rest(Schedule *p, const unsigned char *claimed, bool joins_parts,
                      bool (*absorbs)(const HNode *user, const HNode *x));
/* A stack that a loop fills is filled with its constant before: `all`, or only where what it starts with can be seen. */
void sched_fill_stacks(Schedule *p, bool all,
                       void (*cost)(Schedule *p, Kernel *k, const HValue *stack));
/* Adds the copies of results that cannot be made in the donated argument's memory which they are given. */
void sched_copy_to_given(Schedule *p, void (*cost)(Schedule *p, Kernel *k, const HValue *v));

#endif
