/* owner: whom the memory of a program belongs to. Private to src/sim. */
#ifndef WEFT_SIM_OWNER_H
#define WEFT_SIM_OWNER_H

#include "sim/schedule/schedule.h"

typedef struct Owners {
  bool training;              /* some argument comes back updated */
  SimOwner *of_param;         /* by argument */
  bool *updated;              /* likewise: comes back so */
  const HNode **gradient_for; /* by node id: the argument that this value updates, NULL: none */
} Owners;

/* In the graph's arena. Of the graph as it was built, before any chip's compiler has changed it:
 * whose an argument is does not depend on the chip. */
Owners *owners_of_arguments(HGraph *g);
/* Fills gradient_for, from the graph as it was planned. */
void owners_of_values(Owners *o, HGraph *g);
/* A value of plan p that lives at position t and is no argument. */
SimOwner owner_of_value(const Owners *o, const Schedule *p, const HValue *v, int t);

#endif
