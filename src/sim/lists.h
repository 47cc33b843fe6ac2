/* lists: what a report shows of a plan. Private to src/sim. */
#ifndef WEFT_SIM_LISTS_H
#define WEFT_SIM_LISTS_H

#include "sim/plan/plan.h"

/* Fills kernels, loops, buffers, lives and owners; argument_bytes to temp_bytes are there. */
void report_lists(SimReport *r, const Plan *p);

#endif
