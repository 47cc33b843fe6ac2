/* exchange: where the runs of one job meet.
 *
 * A program over N processes may be run as several runs, each of some of the processes: one for each
 * device when every device has a thread of its own (PyTorch/XLA's replicas). A collective then is a
 * meeting of its group. Every member joins with what it gives and room for what it takes; who comes
 * last computes for all, in the order of the group, so that results do not depend on who came when.
 *
 * Which meeting   Members are devices, by number. A meeting is found by its group (members in order)
 *                 and channel; the k-th time that a member joins by these it meets the k-th of the
 *                 others, whatever programs they run. `kind` must be the same for all.
 * Far members     Some devices may belong to other processes of the job (peers/peers.h). Then those of this
 *                 process meet first, and the last of them swaps operands with the other processes.
 * Who is missed   A member that waits longer than WEFT_EXCHANGE_TIMEOUT seconds (300) gives up, and
 *                 so do all who wait with it: the error names who has not come and what it runs.
 *                 Members that wait for each other are told at once, those who wait for one whose
 *                 run has failed within seconds.
 * Threads         any; a member joins one meeting at a time.
 */
#ifndef WEFT_DEV_EXCHANGE_H
#define WEFT_DEV_EXCHANGE_H

#include "base/base.h"
#include "peers/peers.h"

typedef struct Exchange Exchange;
Exchange *exchange_new(int n_devices);
void exchange_free(Exchange *x); /* NULL is fine; nobody is inside */
/* The job is over: who waits, or joins later, is told so. */
void exchange_close(Exchange *x);
/* owner[device]: the process that has it. Both are borrowed, until exchange_free. */
void exchange_share(Exchange *x, Peers *peers, const int *owner);
bool exchange_closed(const Exchange *x); /* nobody reads results any more: runs may stop */

/* A run of some of a job's devices begins and ends; in between they may join. Each device is in one
 * run at a time. `program` names it in errors. failed: the run's error, NULL when it went well;
 * borrowed. */
void exchange_begin(Exchange *x, int n, const int *devices, const char *program);
void exchange_end(Exchange *x, int n, const int *devices, const Err *failed);

/* The device runs a program without exchange: what errors say it does. */
void exchange_remember(Exchange *x, int device, const char *program);

typedef struct ExchangeHand { /* of one member */
  void *const *in;            /* [n_in] what it gives */
  void *const *out;           /* [n_out] room for what it takes */
} ExchangeHand;

typedef struct
    ExchangeRange { /* n runs of so many bytes, so far apart, from `from` on; n 0: nothing */
  size_t from, run, stride, n;
} ExchangeRange;

typedef struct ExchangeCall {
  const char *what; /* for errors: "all_reduce of f32[8]"; lives during the call */
  uint64_t kind;    /* a hash of all that the members must agree on */
  int64_t channel;
  int n; /* members of the group */
  const int *members;
  int n_mine;                /* those that come with this call */
  const int *mine;           /* their places in the group */
  const ExchangeHand *hands; /* [n_mine] */
  /* What a hand has, for members of other processes: so many operands, of so many bytes, and room for so
   * many results; theirs are NULL. */
  int n_in, n_out;
  const size_t *in_bytes; /* NULL: all members are of this process */
  /* What spares members of other processes bytes. needs: all that what the member at place `to` takes depends
   * on in operand k of the one at `from`; NULL: the whole operand. by_element: each result's elements
   * depend on the same elements of its operand, of all members alike: parts of it can be computed by
   * themselves, in pieces of 64 bytes. */
  void (*needs)(const void *arg, int from, int to, int k, ExchangeRange *out);
  bool by_element;
  /* Computes what all take, from hands[place]. Called once, by whoever comes last, with its own arg. bytes:
   * of each operand, where it is by element and in parts, which all buffers then begin with; NULL: all. */
  Err *(*finish)(void *arg, const ExchangeHand *hands, const size_t *bytes);
  void *arg;
} ExchangeCall;

/* Returns when all have come and the result is there. errors: ERR_DEADLINE somebody did not come;
 * ERR_ABORTED it never will; ERR_INVALID the members do not agree; what `finish` says. */
Err *exchange_join(Exchange *x, const ExchangeCall *c);

#endif
