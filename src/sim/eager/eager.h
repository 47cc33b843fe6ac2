/* eager: frameworks that run one operation at a time. Private to src/sim. */
#ifndef WEFT_SIM_EAGER_EAGER_H
#define WEFT_SIM_EAGER_EAGER_H

#include "sim/schedule/compiler.h"

extern const ChipCompiler eager_compiler;
void eager_fuse(Schedule *p); /* which arrays operations leave in memory */
/* Loops keep for others what single operations save. */
void eager_residuals(HGraph *g);

#endif
