/* The train step of a plan's layout as a program: what a compiler can be asked about. */
#ifndef WEFT_CLI_LAYOUT_PROGRAM_H
#define WEFT_CLI_LAYOUT_PROGRAM_H

#include "ir/ir.h"
#include "plan/plan.h"

/* At full size: arguments are shapes, cut over a mesh of data (fully sharded) and tensor ways; microbatches in a
 * loop; what the layout computes again is computed again. *out is the caller's. errors ERR_UNIMPLEMENTED: what of
 * the model or the layout has no such program, by name. */
Err *layout_program(const PlanJob *j, Module **out);

#endif
