/* compile: from a verified StableHLO module to a plan that an executor runs. compile.c lists the
 * stages in order.
 *
 *   module -> inline -> products -> groups -> repeats -> simplify -> pools -> spread -> scatters ->
 *     masks -> unroll -> hoist -> blockwise -> fuse -> order -> plan
 *
 * The first stages go from program to program. `fuse` divides each region's ops into fusions (loops
 * generated as one kernel) and single steps; `order` puts them where they give memory back early;
 * `plan` finds out how long values live and gives every value a place: an argument, a result, a constant, or an offset in one arena.
 * Nothing here knows a machine; what a device can do natively comes in by Target.
 *
 * Ownership   Plan owns a clone of the module and everything else; plan_free.
 * Dumps       WEFT_DUMP=inline,simplify,fuse,plan prints on stderr after the stage.
 */
#ifndef WEFT_COMPILE_COMPILE_H
#define WEFT_COMPILE_COMPILE_H

#include "compile/plan/plan.h"

/* Clones and compiles `m`. errors: ERR_UNIMPLEMENTED when the program has what only the interpreter
 * can do (dynamic shapes, quantized types, tuples, infeed, ...): the message says what. */
Err *compile_program(const Module *m, const Target *t, Plan **out);

#endif
