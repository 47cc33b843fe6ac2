/* program: plans of a job whose step is a StableHLO program, or anything else that can make one for a batch
 * and a number of devices (advise.h). What sim says of one device's program stands for the step; a program
 * of one device runs data parallel, its gradients added up; one that is sharded runs on as many devices as
 * it is for. Where a device's share of the batch does not fit it is done in pieces, gradients accumulated. */
#ifndef WEFT_PLAN_PROGRAM_H
#define WEFT_PLAN_PROGRAM_H

#include "advise/advise.h"
#include "plan/plan.h"

/* ask->model and seq are ignored: tokens are examples; gbs 0: the program's own batch; most 0: 64. The answer
 * must stay where it is (its ask names its own model). errors ERR_INVALID: a batch that the program cannot
 * have, --lora. That nothing fits is no error: out->nothing. */
Err *plan_program(const AdviseWork *w, const PlanAsk *ask, PlanAnswer *out);

/* The program of one device of a choice; the caller frees it. */
Err *plan_program_module(const AdviseWork *w, const PlanChoice *c, struct Module **out);

#endif
