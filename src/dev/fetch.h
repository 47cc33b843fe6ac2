/* fetch: arguments from other processes, for a program that only runs as a whole.
 *
 * What partitioning does not take (a call of the caller's, manual computation over some axes of a mesh)
 * is computed whole by each process of the job, from all arguments: nothing else is exchanged. */
#ifndef WEFT_DEV_FETCH_H
#define WEFT_DEV_FETCH_H

#include "dev/dev.h"

/* t[i * processes + k]: argument i of the program's process k, those of the part filled; the others of
 * sharded arguments are filled here, the rest stays NULL. errors: of exchange_join */
Err *fetch_arguments(const DevProgram *p, const DevPart *part, Tensor **t);

#endif
