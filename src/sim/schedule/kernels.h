/* What the stages that join kernels share: which kernel depends on which, and questions about one.
 * Private to src/sim. */
#ifndef WEFT_SIM_SCHEDULE_KERNELS_H
#define WEFT_SIM_SCHEDULE_KERNELS_H

#include "sim/schedule/compiler.h"

struct Joins {
  Schedule *p;
  int *walk, last;  /* kernels that a walk has come by have its number */
  int *mark, stamp; /* nodes likewise */
};

Joins joins_open(Schedule *p);
void joins_close(Joins *js);
/* Does kernel `to` depend, directly or not, on kernel `from`? around: by another way than by reading
 * what that makes. */
bool joins_depends(Joins *js, int to, int from, bool around);
/* dst computes what src did, which is dead then; the rule is the function that says so. */
#define joins_merge(js, dst, src) joins_merge_by(js, dst, src, __func__)
void joins_merge_by(Joins *js, int dst, int src, const char *rule);

/* Results of one attention that do not wait for each other are one kernel's: the output; the three
 * gradients. */
void joins_attention(Joins *js);
/* The kernel that makes a full-size input of kernel `at` and can make its results as well, the last of
 * several; -1: none. `loops`: of two loops without a sum or a product, else of others. */
int joins_maker(Joins *js, int at, bool loops);
/* Loops and reductions join what makes their input; what was merged may join another maker. */
void joins_makers(Joins *js, bool skip_widening);
/* Kernels over the same domain that share an input of full size and do not depend on each other; `sums`:
 * only those. */
void joins_siblings(Joins *js, bool sums);

bool kernel_in_place(
    const HNode *n); /* a slice written in place in every round of a loop: a loop over it */
bool kernel_writes_in_place(const Kernel *k);
bool kernel_updates(const Kernel *k);   /* writes into an array in place, in a loop or not */
int64_t kernel_domain(const Kernel *k); /* elements that it walks over */
bool kernel_loops_over(const Kernel *k);
bool kernel_only_widens(const Kernel *k); /* does nothing but widen an array */
bool kernel_inside(const Kernel *k, const HNode *n);

#endif
