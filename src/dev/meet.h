/* meet: the collectives of a run of some of a program's processes, at the exchange.
 *
 * An operation's groups of processes become groups of devices; each group with processes of the part
 * in it is one meeting. */
#ifndef WEFT_DEV_MEET_H
#define WEFT_DEV_MEET_H

#include "dev/dev.h"
#include "interp/interp.h"

typedef struct DevMeet {
  const DevProgram *prog;
  const DevPart *part;
  Exchange *exchange;
  bool sparse; /* what finishes a group reads no more of operands than results depend on */
  bool (*by_element)(const Op *op); /* it can compute parts of results; NULL: never (exchange.h) */
  InterpPart interp;
} DevMeet;

/* One group of a collective, all of whose members have come. */
typedef struct DevGroup {
  const Op *op;
  const DevProgram *prog;
  int n;
  const int *process;        /* [n], in the order of the group */
  const ExchangeHand *hands; /* [n] */
  const size_t *bytes;       /* [operands] of a part, with which buffers begin; NULL: all */
} DevGroup;

/* hands[k]: of the part's k-th process; in and out as `finish` wants them. active: flags by
 * process, which of the part take part; NULL: all. finish is called once for each group, by whoever
 * is last to come. A process that no group names is one of its own. */
Err *dev_meet(const DevMeet *m, const Op *op, const uint8_t *active, const ExchangeHand *hands,
              Err *(*finish)(const DevGroup *g));

/* For runs by the interpreter. NULL: all processes are here; else lives as long as *m. */
const InterpPart *dev_meet_part(DevMeet *m, const DevProgram *prog, const DevPart *part,
                                Exchange *exchange);

#endif
