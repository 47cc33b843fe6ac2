/* peers: the processes of one job, on one host or several.
 *
 * Processes that compute together find each other through a store that somebody else keeps (JAX hands
 * its own to the plugin, PJRT_Client_Create's kv callbacks): each puts there where it listens, what
 * devices it has and which version it is. Every two processes then have one TCP connection.
 *
 * Why sockets  Plain jax.distributed.initialize has no mpirun, so MPI would know each process as a job
 *              of one; gloo, which JAX's own CPU backend has inside, is a C++ library without a C
 *              interface or a package to load. What collectives need from below is an ordered stream
 *              of bytes between two processes that ends when one of them does, and TCP is that.
 * Messages     are bytes with a key; those of one sender with one key arrive in the order in which they
 *              were sent. A thread for each peer takes them in, so a sender never waits for a receiver.
 * Who is gone  A process that ends, however it does, closes its connections: who waits for it is told
 *              at once. One that is stopped or cut off is missed after WEFT_EXCHANGE_TIMEOUT seconds
 *              (300); a run of another's that failed ends the wait within seconds. After an exchange
 *              between processes failed the job is broken: all later ones fail by the same error.
 * Addresses    IPv4. A process listens on all of its host's, at a port that is free, and answers those
 *              who know the job's secret, which is in the store. WEFT_PEER_ADDRESS names one address
 *              to connect to where the host has several. Values travel as they are, unencrypted.
 * Who is slow  A send waits for a receiver that takes nothing in as long as a receive waits for a sender.
 * Threads      any.
 */
#ifndef WEFT_PEERS_PEERS_H
#define WEFT_PEERS_PEERS_H

#include "base/base.h"

typedef struct Peers Peers;

/* Where processes leave words for each other. get waits until the key is there. */
typedef struct PeersStore {
  void *arg;
  Err *(*put)(void *arg, const char *key, Str value);
  Err *(*get)(void *arg, const char *key, int timeout_ms, Buf *out);
} PeersStore;

typedef struct PeersOpts {
  int id, n;          /* this process of how many */
  const char *device; /* what all must have: "cpu", "tpu-v5p-128" */
  int devices;        /* how many this one brings */
  PeersStore store;
} PeersOpts;

/* Returns when all processes are connected. errors: ERR_DEADLINE some process did not come, ERR_INVALID
 * one is of another version or has another device; each by its number. */
Err *peers_open(const PeersOpts *o, Peers **out);
void peers_close(Peers *p); /* says goodbye; NULL is fine; nobody is inside */
/* Who waits, or comes later, is told that the job is over. */
void peers_stop(Peers *p);

int peers_id(const Peers *p);
int peers_count(const Peers *p);
int peers_devices(const Peers *p, int process);
int peers_all_devices(const Peers *p);

/* How long who waits for others waits, here and at meetings within a process (dev/exchange.h). */
int64_t peers_patience(void); /* seconds: WEFT_EXCHANGE_TIMEOUT, looked at again each second */
#define PEERS_REMARK_S 30     /* a word on stderr after so long */
#define PEERS_FALLEN_S 2      /* one whose run failed has so long to begin another */

typedef struct PeersNote { /* what a message is about */
  uint64_t key;
  uint64_t kind;    /* both sides must have the same */
  const char *what; /* for errors: "all_reduce of f32[8] in 'jit_step'" */
} PeersNote;

/* Sends n pieces as one message. errors: as peers_receive */
Err *peers_send(Peers *p, int to, const PeersNote *note, int n, const void *const *pieces,
                const size_t *sizes);
/* The next message of a peer with the note's key; *out is malloc'd, of exactly `size` bytes. errors:
 * ERR_UNAVAILABLE the peer is gone, ERR_ABORTED its run failed or the job is broken, ERR_DEADLINE it did
 * not come, ERR_INVALID its message is of another kind; the peer and what it last came to are named. */
Err *peers_receive(Peers *p, int from, const PeersNote *note, size_t size, void **out);

/* Bytes of all pieces that were sent to others. */
uint64_t peers_sent(const Peers *p);

/* Has a process of any job that this one was in been lost, or an exchange failed? Then nobody should wait
 * for all processes to come to an end together. */
bool peers_lost(void);

/* A run of this process failed: others who wait for it need not. "": another has begun. */
void peers_tell_failure(Peers *p, const char *why);

/* ---- a store of our own, where the caller has none: jobs of mpirun, srun, weft launch ---- */

typedef struct PeersPlace {
  int id, n;  /* this process of how many; n 1: it is by itself */
  char *host; /* of process 0, where it keeps the store; NULL when n is 1; the caller frees */
  int port;
  char job[64]; /* told from another at the same port; may be "" */
} PeersPlace;
/* Which process of which job is this? As torchrun's names, OpenMPI or Slurm tell. coordinator: "HOST:PORT" of
 * process 0; "none": a process by itself, whatever they tell; NULL: found as well. errors: ERR_INVALID */
Err *peers_place(const char *coordinator, PeersPlace *out);

/* "HOST:PORT" in its parts; the caller frees the host. false: it is none. */
bool peers_address(const char *text, char **host, int *port);

typedef struct PeersHub PeersHub;
/* Process 0 listens; the others return when they are connected. errors: ERR_DEADLINE nobody answers there;
 * ERR_INVALID it is of another version, size or job; ERR_UNAVAILABLE process 0 cannot listen. */
Err *peers_hub_open(const PeersPlace *place, PeersHub **out);
/* failed: why this process ends before the job does; NULL: it does not, and process 0 waits until the
 * others have closed theirs. Nobody is inside; h NULL is fine. */
void peers_hub_close(PeersHub *h, const Err *failed);
/* errors of get, besides ERR_DEADLINE: ERR_UNAVAILABLE a process of the job is gone, which is named. */
PeersStore peers_hub_store(PeersHub *h);
/* All processes get the same value for a round: that of whoever asks first. Rounds go up; the last 64 are
 * known. errors: ERR_UNAVAILABLE process 0 is gone */
Err *peers_hub_agree(PeersHub *h, int64_t round, int64_t value, int64_t *agreed);

#endif
