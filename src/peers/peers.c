/* Messages between processes: a header, what it is about, the bytes. */
#include "peers/peers_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define GOODBYE_S 5 /* words to one who takes nothing in are left unsaid after so long */

typedef enum HeadType { HEAD_DATA = 0x77656674, HEAD_FAILED, HEAD_BYE } HeadType;

typedef struct Head {
  uint32_t type, n_what;
  uint64_t key, kind, n;
} Head;

#define MOST_WHAT (1 << 16)
#define MOST_BYTES ((uint64_t)1 << 42)

static bool lost; /* atomic */

bool peers_lost(void) { return __atomic_load_n(&lost, __ATOMIC_RELAXED); }

int peers_id(const Peers *p) { return p->id; }
int peers_count(const Peers *p) { return p->n; }
int peers_devices(const Peers *p, int process) { return p->peer[process].devices; }

uint64_t peers_sent(const Peers *p) { return __atomic_load_n(&p->sent, __ATOMIC_RELAXED); }

int peers_all_devices(const Peers *p) {
  int n = 0;
  for (int i = 0; i < p->n; i++) n += p->peer[i].devices;
  return n;
}

/* ---- taking in ---- */

static void message_free(PeerMessage *m) {
  if (!m) return;
  free(m->data);
  free(m->what);
  free(m);
}

static void set_text(char **to, char *take) {
  free(*to);
  *to = take;
}

/* NULL, and why: the stream ended, cannot be read any further, or a message does not fit. */
static PeerMessage *read_message(int fd, Head *h, char **why) {
  PeerMessage *m = NULL;
  if (!peers_read_all(fd, h, sizeof *h)) goto ended;
  if (h->type < HEAD_DATA || h->type > HEAD_BYE || h->n_what > MOST_WHAT || h->n > MOST_BYTES) {
    *why = xstrdup("has sent what is no message: its connection is given up");
    return NULL;
  }
  m = xcalloc(1, sizeof *m);
  m->key = h->key;
  m->kind = h->kind;
  m->n = h->n;
  m->what = xcalloc((size_t)h->n_what + 1, 1);
  if (!peers_read_all(fd, m->what, h->n_what)) goto ended;
  m->data = malloc(m->n ? m->n : 1);
  if (!m->data) {
    *why = xasprintf("has sent %llu bytes for %s, for which there is no memory here",
                     (unsigned long long)m->n, m->what);
    return message_free(m), NULL;
  }
  if (peers_read_all(fd, m->data, m->n)) return m;
ended:
  *why = xstrdup("has ended: its connection is closed");
  return message_free(m), NULL;
}

static void take_in(Peer *q, const Head *h, PeerMessage *m) {
  if (h->type == HEAD_FAILED) {
    set_text(&q->failed, *m->what ? xstrdup(m->what) : NULL);
  } else if (h->type == HEAD_BYE) {
    set_text(&q->gone, xstrdup("has left the job"));
  } else {
    set_text(&q->failed, NULL);
    set_text(&q->heard, xstrdup(m->what));
    *q->last = m;
    q->last = &m->next;
    return;
  }
  message_free(m);
}

static void *listen_to(void *arg) {
  Peer *q = arg;
  Peers *p = q->all;
  Head h;
  PeerMessage *m;
  char *why = NULL;
  while ((m = read_message(q->fd, &h, &why))) {
    pthread_mutex_lock(&p->lock);
    take_in(q, &h, m);
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
  }
  shutdown(q->fd, SHUT_RDWR); /* who still sends to us has no reader */
  pthread_mutex_lock(&p->lock);
  if (!q->gone) {
    q->gone = why, why = NULL;
    if (!p->first_lost) p->first_lost = q;
    if (!p->stopped) __atomic_store_n(&lost, true, __ATOMIC_RELAXED);
  }
  pthread_cond_broadcast(&p->changed);
  pthread_mutex_unlock(&p->lock);
  free(why);
  return NULL;
}

/* ---- opening and closing ---- */

static void peers_free(Peers *p) {
  for (int i = 0; i < p->n; i++) {
    Peer *q = &p->peer[i];
    if (q->fd >= 0) shutdown(q->fd, SHUT_RDWR);
    if (q->reads) pthread_join(q->thread, NULL);
    if (q->fd >= 0) close(q->fd);
    for (PeerMessage *m = q->first, *next; m; m = next) {
      next = m->next;
      message_free(m);
    }
    free(q->name), free(q->gone), free(q->failed), free(q->heard);
    pthread_mutex_destroy(&q->sending);
  }
  err_free(p->broken);
  pthread_cond_destroy(&p->changed);
  pthread_mutex_destroy(&p->lock);
  free(p->peer);
  free(p);
}

static Err *start_listening(Peers *p) {
  for (int i = 0; i < p->n; i++) {
    Peer *q = &p->peer[i];
    if (q->fd < 0) continue;
    if (pthread_create(&q->thread, NULL, listen_to, q))
      return err_new(ERR_EXHAUSTED, "no thread for messages of %s", q->name);
    q->reads = true;
  }
  return NULL;
}

Err *peers_open(const PeersOpts *o, Peers **out) {
  Peers *p = xcalloc(1, sizeof *p);
  p->id = o->id;
  p->n = o->n;
  pthread_mutex_init(&p->lock, NULL);
  pthread_condattr_t attr;
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&p->changed, &attr);
  pthread_condattr_destroy(&attr);
  p->peer = xcalloc((size_t)o->n, sizeof *p->peer);
  for (int i = 0; i < o->n; i++) {
    Peer *q = &p->peer[i];
    *q = (Peer){.all = p, .id = i, .fd = -1, .last = &q->first};
    pthread_mutex_init(&q->sending, NULL);
  }
  Err *e = peers_meet(p, o);
  if (!e) e = start_listening(p);
  if (e) peers_free(p);
  else *out = p;
  return e;
}

void peers_stop(Peers *p) {
  pthread_mutex_lock(&p->lock);
  p->stopped = true;
  pthread_cond_broadcast(&p->changed);
  pthread_mutex_unlock(&p->lock);
}

/* A message, whole. One that went out in part is the last to that peer. */
static Err *put_message(Peer *q, const Head *h, const char *what, int n, const void *const *pieces,
                        const size_t *sizes, int64_t seconds) {
  pthread_mutex_lock(&q->sending);
  Err *e = q->cut ? err_new(ERR_UNAVAILABLE, "the one before was cut off") : NULL;
  if (!e) e = peers_write_all(q->fd, h, sizeof *h, seconds);
  if (!e) e = peers_write_all(q->fd, what, h->n_what, seconds);
  for (int i = 0; i < n && !e; i++) e = peers_write_all(q->fd, pieces[i], sizes[i], seconds);
  q->cut |= e != NULL;
  pthread_mutex_unlock(&q->sending);
  return e;
}

static void tell_all(Peers *p, HeadType type, const char *text) {
  Head h = {.type = type, .n_what = (uint32_t)MIN(strlen(text), MOST_WHAT)};
  int64_t seconds = MIN(GOODBYE_S, peers_patience());
  for (int i = 0; i < p->n; i++) /* one that is gone is nobody to tell */
    if (p->peer[i].fd >= 0) err_free(put_message(&p->peer[i], &h, text, 0, NULL, NULL, seconds));
}

void peers_close(Peers *p) {
  if (!p) return;
  peers_stop(p);
  tell_all(p, HEAD_BYE, "");
  peers_free(p);
}

void peers_tell_failure(Peers *p, const char *why) { tell_all(p, HEAD_FAILED, why); }

/* ---- sending ---- */

static Err *copy_of(const Err *e) {
  Err *c = err_new(e->code, "%s", e->msg);
  return e->hint ? err_hint(c, "%s", e->hint) : c;
}

/* The job is broken from now on. Called with the lock held. */
static Err *breaks(Peers *p, Err *e) {
  if (!p->broken) p->broken = copy_of(e);
  __atomic_store_n(&lost, true, __ATOMIC_RELAXED);
  return e;
}

/* Called with the lock held. */
static Err *is_over(const Peers *p) {
  if (p->stopped)
    return err_new(ERR_CANCELLED, "the client was closed while processes waited for each other");
  return p->broken ? err_wrap(copy_of(p->broken), "an exchange between processes failed before")
                   : NULL;
}

/* One that was lost takes those with it that waited for it: it is named as well. Called with the lock
 * held. */
static Err *is_gone(const Peer *q, const char *what) {
  const Peer *first = q->all->first_lost;
  Err *e =
      err_new(ERR_UNAVAILABLE, "%s: %s %s", what, q->name, q->gone ? q->gone : "cannot be reached");
  if (first && first != q) {
    char *text = xasprintf("%s; before, %s %s", e->msg, first->name, first->gone);
    free(e->msg);
    e->msg = text;
  }
  return err_hint(e, "its own output says why; start the job again, from its last checkpoint");
}

static Err *takes_nothing(const Peer *q, const char *what, int64_t seconds) {
  return err_hint(err_new(ERR_DEADLINE, "%s: %s has taken in nothing of it for %lld s", what,
                          q->name, (long long)seconds),
                  "is it stopped, or cut off? WEFT_EXCHANGE_TIMEOUT=SECONDS waits longer");
}

/* Who cannot be sent to has gone: the thread that reads knows at the same time how. With the lock held. */
static void hear_how(Peers *p, const Peer *q) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += PEERS_FALLEN_S;
  while (!q->gone && !p->stopped)
    if (pthread_cond_timedwait(&p->changed, &p->lock, &until) == ETIMEDOUT) return;
}

Err *peers_send(Peers *p, int to, const PeersNote *note, int n, const void *const *pieces,
                const size_t *sizes) {
  Peer *q = &p->peer[to];
  Head h = {.type = HEAD_DATA,
            .n_what = (uint32_t)MIN(strlen(note->what), MOST_WHAT),
            .key = note->key,
            .kind = note->kind};
  for (int i = 0; i < n; i++) h.n += sizes[i];
  pthread_mutex_lock(&p->lock);
  Err *e = is_over(p);
  pthread_mutex_unlock(&p->lock);
  TRY(e);
  int64_t seconds = peers_patience();
  e = put_message(q, &h, note->what, n, pieces, sizes, seconds);
  __atomic_fetch_add(&p->sent, h.n, __ATOMIC_RELAXED);
  if (!e) return NULL;
  bool slow = e->code == ERR_DEADLINE;
  err_free(e);
  pthread_mutex_lock(&p->lock);
  if (!slow) hear_how(p, q);
  e = breaks(p, slow ? takes_nothing(q, note->what, seconds) : is_gone(q, note->what));
  pthread_mutex_unlock(&p->lock);
  return e;
}

/* ---- receiving ---- */

static PeerMessage *find(Peer *q, uint64_t key) {
  PeerMessage **at = &q->first;
  while (*at && (*at)->key != key) at = &(*at)->next;
  PeerMessage *m = *at;
  if (!m) return NULL;
  *at = m->next;
  if (!m->next) q->last = at;
  return m;
}

static Err *did_not_come(const Peer *q, const char *what, int64_t seconds) {
  Err *e = err_new(ERR_DEADLINE, "%s waited %lld s for %s, which %s%s", what, (long long)seconds,
                   q->name, q->heard ? "was last at " : "has sent nothing yet",
                   q->heard ? q->heard : "");
  return err_hint(e, "every process has to run the same programs in the same order; "
                     "WEFT_EXCHANGE_TIMEOUT=SECONDS waits longer");
}

static Err *disagreement(const Peers *p, const Peer *q, const char *mine, const char *its) {
  return err_hint(err_new(ERR_INVALID,
                          "processes that do not agree: process %d comes to %s, %s to %s", p->id,
                          mine, q->name, its),
                  "every process has to run the same programs in the same order");
}

/* Why it makes no sense to wait on. */
static Err *hopeless(const Peers *p, const Peer *q, const char *what, int64_t waited) {
  TRY(is_over(p));
  if (q->gone) return is_gone(q, what);
  if (q->failed && waited >= PEERS_FALLEN_S)
    return err_new(ERR_ABORTED, "%s waits for %s, whose run failed: %s", what, q->name, q->failed);
  return waited >= peers_patience() ? did_not_come(q, what, waited) : NULL;
}

static Err *wait_for(Peers *p, Peer *q, const PeersNote *note, PeerMessage **out) {
  struct timespec tick;
  clock_gettime(CLOCK_MONOTONIC, &tick);
  int64_t waited = 0;
  while (!(*out = find(q, note->key))) {
    TRY(hopeless(p, q, note->what, waited));
    struct timespec next = tick;
    next.tv_sec++;
    if (pthread_cond_timedwait(&p->changed, &p->lock, &next) != ETIMEDOUT) continue;
    tick = next;
    if (++waited == PEERS_REMARK_S)
      fprintf(stderr, "weft: for %d s %s waits for %s%s%s\n", PEERS_REMARK_S, note->what, q->name,
              q->heard ? ", last at " : "", q->heard ? q->heard : "");
  }
  return NULL;
}

Err *peers_receive(Peers *p, int from, const PeersNote *note, size_t size, void **out) {
  Peer *q = &p->peer[from];
  PeerMessage *m = NULL;
  pthread_mutex_lock(&p->lock);
  Err *e = wait_for(p, q, note, &m);
  if (!e && (m->kind != note->kind || m->n != size)) e = disagreement(p, q, note->what, m->what);
  if (e) e = breaks(p, e);
  pthread_mutex_unlock(&p->lock);
  if (!e) *out = m->data, m->data = NULL;
  message_free(m);
  return e;
}
