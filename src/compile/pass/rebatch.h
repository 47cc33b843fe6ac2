/* compile/rebatch: the same program for another batch. A program says its batch in every shape;
 * here the dimensions that belong together are found again from how operations tie them, and
 * resized at once, so that one program can be asked for the memory and time of any batch.
 */
#ifndef WEFT_COMPILE_PASS_REBATCH_H
#define WEFT_COMPILE_PASS_REBATCH_H

#include "ir/ir.h"

/* The batch of an inlined program: is_input[i] says which arguments carry examples, is_state[i]
 * which must keep their shapes (parameters, optimizer slots). It is the size of their leading
 * dimension that most input bytes share; 0 when there is none. */
int64_t batch_of(Module *m, const bool *is_input, const bool *is_state);

/* Resizes, in place, an inlined program from its batch (see batch_of) to `batch`. The result is
 * verified. errors: ERR_UNIMPLEMENTED when an operation cannot follow (a constant that lists the
 * examples, a dimension that is not a multiple); the module is of no use then. */
Err *pass_rebatch(Module *m, const bool *is_input, const bool *is_state, int64_t batch);

#endif
