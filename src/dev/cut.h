/* cut: whether the program of one process runs in place of the whole (DevCut), and why not. */
#ifndef WEFT_DEV_CUT_H
#define WEFT_DEV_CUT_H

#include "dev/dev.h"

/* Sets p->module and p->main to the program of one process where there is one and p->opts.cut wants it; else
 * they stay, and WEFT_VERBOSE says why. */
Err *cut_program(DevProgram *p);

/* owner[k]: the first process that has the same part of argument i as process k; of a program that is not cut each
 * has its own. */
Err *dev_argument_owners(const DevProgram *p, int i, int *owner);

#endif
