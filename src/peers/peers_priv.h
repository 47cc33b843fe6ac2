/* The two halves of peers: meet.c brings connections about, peers.c sends over them. */
#ifndef WEFT_PEERS_PEERS_PRIV_H
#define WEFT_PEERS_PEERS_PRIV_H

#include "peers/peers.h"

#include <pthread.h>

typedef struct PeerMessage {
  struct PeerMessage *next;
  uint64_t key, kind;
  size_t n;
  char *data, *what;
} PeerMessage;

typedef struct Peer {
  Peers *all;
  int id, fd; /* fd -1: this process itself */
  int devices;
  char *name; /* "process 1 (pid 71 on a7)" */
  pthread_t thread;
  bool reads; /* the thread is there */
  pthread_mutex_t sending;
  bool cut; /* under `sending`: a message went out in part, nothing can follow it */
  /* under Peers.lock */
  PeerMessage *first, **last;
  char *gone;   /* why nothing comes any more */
  char *failed; /* why its last run failed */
  char *heard;  /* what its last message was about */
} Peer;

struct Peers {
  int id, n;
  Peer *peer;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool stopped;
  uint64_t sent;          /* atomic */
  const Peer *first_lost; /* NULL: none was */
  Err *broken;
};

/* Connects every two processes; fills name, devices and fd of each. */
Err *peers_meet(Peers *p, const PeersOpts *o);
/* errors: ERR_UNAVAILABLE the stream ended; ERR_DEADLINE the other side took nothing for so long. */
Err *peers_write_all(int fd, const void *data, size_t n, int64_t seconds);
bool peers_read_all(int fd, void *data, size_t n); /* false: the stream ended, or SO_RCVTIMEO */

#endif
