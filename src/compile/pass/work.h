/* work: how much a program has to do, counted from its operations. */
#ifndef WEFT_COMPILE_PASS_WORK_H
#define WEFT_COMPILE_PASS_WORK_H

#include "ir/ir.h"

/* Products that are summed for each element of a matrix product's or convolution's result. */
double op_contraction(const Op *op);
/* Numbers that a region's operations make and sum, of a loop those of one turn; what stands in a manual
 * computation is done by each of so many processes. */
double region_work(const Region *r, int processes);

#endif
