/* lists: what a report shows of a plan. Private to src/sim. */
#ifndef WEFT_SIM_LISTS_H
#define WEFT_SIM_LISTS_H

#include "sim/owner.h"

/* Fills kernels, loops, buffers, lives and owners (given: those of the arguments); argument_bytes to
 * temp_bytes are there. */
void report_lists(SimReport *r, const Schedule *p, Owners *owners);

/* Examples in the module's batch, by the owners of its arguments; 0: none was found. */
int64_t report_batch(const SimReport *r, const Module *m);

/* Share of the module's products, by operations, that is computed a second time (recompute.c). */
double products_recomputed(const Module *m);

#endif
