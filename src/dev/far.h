/* far: a meeting some of whose members are devices of other processes.
 *
 * Every process sends what its members give to each other process of the group, in the group's order, as
 * far as the members there need it, takes in theirs, and computes what its own members take: all have
 * the same operands in the same order, so all have the same results to the bit.
 *
 * Sums of many elements go in two exchanges: each process gets its part of all operands, sums it in the
 * order of the group, and sends the sums to all. Of P processes with D members each, one sends
 * (D + 1) (P - 1) / P times an operand's bytes; as above it would be D (P - 1) times. */
#ifndef WEFT_DEV_FAR_H
#define WEFT_DEV_FAR_H

#include "dev/exchange.h"

typedef struct FarMeeting {
  Peers *peers;
  const int *owner;          /* [device] */
  const char *program;       /* which runs */
  const ExchangeHand *hands; /* by place; those of this process's members */
} FarMeeting;

/* c->finish with all hands: those of far members have no room. errors: of peers_receive, of finish */
Err *far_finish(const FarMeeting *m, const ExchangeCall *c);

#endif
