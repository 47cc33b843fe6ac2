/* compile/partition: the SPMD partitioner. A global program over N devices becomes the program of
 * one device: local shapes and explicit collectives, to be run by N processes (or timed by sim).
 *
 * Shardings come from pass_propagate. An operation that knows how keeps its operands cut
 * (element-wise, moves, products with cut contracting dimensions followed by all_reduce, reductions
 * likewise, independent problems of linear algebra); any other gets whole operands by all_gather,
 * computes whole and takes its part. So every program can be partitioned; the cost shows in its
 * collectives.
 */
#ifndef WEFT_COMPILE_SPMD_PARTITION_H
#define WEFT_COMPILE_SPMD_PARTITION_H

#include "ir/ir.h"

/* m: inlined; changed in place: main's arguments and results get local types and lose their
 * shardings (cut them by the shardings they had). No mesh: nothing happens, *out_done false. errors
 * ERR_UNIMPLEMENTED: values that have yet to be summed, shardings over
 * meshes that do not become one (one_mesh.c), dynamic shapes. */
Err *pass_partition(Module *m, bool *out_done);

#endif
