/* eager: frameworks that run one operation at a time. Private to src/sim. */
#ifndef WEFT_SIM_EAGER_EAGER_H
#define WEFT_SIM_EAGER_EAGER_H

#include "sim/schedule/schedule.h"

void eager_stored(Schedule *p);
/* Loops keep for others what single operations save. */
void eager_residuals(HGraph *g);

#endif
