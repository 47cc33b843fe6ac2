/* differ: values that a program says are the same on several devices, and that are not. */
#ifndef WEFT_DEV_DIFFER_H
#define WEFT_DEV_DIFFER_H

#include "dev/dev.h"

/* May a manual computation hand on what differs between devices to which its out_shardings give the same? JAX lets
 * programs under shard_map(check_vma=False), which vouch for that themselves. XLA leaves each device its own value; of a
 * whole program there is only one. */
bool program_may_differ(const DevProgram *p);

#endif
