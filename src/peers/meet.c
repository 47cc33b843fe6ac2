/* How processes find each other: each listens, and puts into the store where, with what it is; then the
 * one with the greater number connects to the other, both say who they are, and it says that it stays. */
#include "peers/peers_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define START_S 300 /* for all to come, as JAX's own start-up has it */
#define TOKEN 32    /* characters */
#define CONNECT_MS 5000
#define HELLO_MS 5000

typedef struct Hello { /* both ways, when a connection is made */
  char token[TOKEN];
  uint32_t from, to;
} Hello;

/* ---- what a process says of itself ---- */

/* Hosts are told apart by this: names need not differ. */
static void boot_id(char *out, size_t n) {
  FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
  if (!f || !fgets(out, (int)n, f)) snprintf(out, n, "unknown");
  if (f) fclose(f);
  out[strcspn(out, "\n ")] = 0;
}

static Err *addresses(Buf *b) {
  const char *given = env_get("WEFT_PEER_ADDRESS");
  struct in_addr parsed;
  if (given && inet_pton(AF_INET, given, &parsed) != 1)
    return err_hint(
        err_new(ERR_INVALID, "WEFT_PEER_ADDRESS is '%s', which is no IPv4 address", given),
        "one of this host's, as in 10.0.0.7; without it all are tried");
  buf_cstr(b, given ? given : "127.0.0.1");
  struct ifaddrs *list = NULL;
  if (given || getifaddrs(&list)) return NULL;
  for (const struct ifaddrs *a = list; a; a = a->ifa_next) {
    char text[INET_ADDRSTRLEN];
    if (!a->ifa_addr || a->ifa_addr->sa_family != AF_INET || (a->ifa_flags & IFF_LOOPBACK))
      continue;
    struct sockaddr_in in;
    memcpy(&in, a->ifa_addr, sizeof in);
    if (inet_ntop(AF_INET, &in.sin_addr, text, sizeof text)) buf_printf(b, ",%s", text);
  }
  freeifaddrs(list);
  return NULL;
}

static Err *random_token(char *out) {
  unsigned char raw[16];
  if (getrandom(raw, sizeof raw, 0) != (ssize_t)sizeof raw)
    return err_new(ERR_UNAVAILABLE, "no random bytes: %s", strerror(errno));
  for (int i = 0; i < 16; i++) snprintf(out + 2 * i, 3, "%02x", raw[i]);
  return NULL;
}

/* ---- cards: what is in the store, a line for each field ---- */

typedef struct Card {
  char *text; /* what the fields point into */
  const char *version, *device, *host, *boot, *token, *list;
  int devices, pid, port;
} Card;

static void card_free(Card *c) {
  free(c->text);
  *c = (Card){0};
}

/* Takes the text. false: it is no card. */
static bool card_read(char *take, Card *c) {
  const char *numbers = "";
  const char **lines[] = {&c->version, &c->device, &c->host, &c->boot,
                          &c->token,   &numbers,   &c->list};
  char *rest = take;
  *c = (Card){.text = take};
  for (int i = 0; i < COUNT_OF(lines); i++) {
    if (!rest) return false;
    *lines[i] = strsep(&rest, "\n");
  }
  return strlen(c->token) == TOKEN &&
         sscanf(numbers, "%d %d %d", &c->devices, &c->pid, &c->port) == 3 && c->devices >= 0 &&
         c->devices <= 1 << 20 && c->port > 0 && c->port < 1 << 16;
}

static Err *card_own(const PeersOpts *o, int port, Buf *out) {
  char host[256] = "", boot[64], token[TOKEN + 1];
  if (gethostname(host, sizeof host - 1) || !*host) snprintf(host, sizeof host, "?");
  boot_id(boot, sizeof boot);
  if (strchr(o->device, '\n')) return err_new(ERR_INVALID, "a device's name of several lines");
  TRY(random_token(token));
  buf_printf(out, "%s\n%s\n%s\n%s\n%s\n%d %d %d\n", WEFT_VERSION, o->device, host, boot, token,
             o->devices, (int)getpid(), port);
  return addresses(out);
}

static Err *card_fits(const Peers *p, const Peer *q, const Card *own, const Card *c) {
  if (strcmp(own->version, c->version))
    return err_hint(err_new(ERR_INVALID, "%s is weft %s, process %d weft %s", q->name, c->version,
                            p->id, own->version),
                    "all processes of a job need the same weft");
  if (strcmp(own->device, c->device))
    return err_hint(err_new(ERR_INVALID, "%s has WEFT_DEVICE %s, process %d has %s", q->name,
                            c->device, p->id, own->device),
                    "all processes of a job need devices of the same kind");
  return NULL;
}

/* ---- connections ---- */

static Err *listen_anywhere(int backlog, int *fd, int *port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
  socklen_t n = sizeof at;
  *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (*fd >= 0 && !bind(*fd, (struct sockaddr *)&at, n) && !listen(*fd, backlog) &&
      !getsockname(*fd, (struct sockaddr *)&at, &n)) {
    *port = ntohs(at.sin_port);
    return NULL;
  }
  Err *e = err_new(ERR_UNAVAILABLE, "cannot listen for other processes: %s", strerror(errno));
  if (*fd >= 0) close(*fd);
  *fd = -1;
  return e;
}

static void receive_within(int fd, int timeout_ms) { /* 0: however long it takes */
  struct timeval t = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
}

static void settings(int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  receive_within(fd, HELLO_MS);
}

static int connect_to(const char *address, int port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  if (inet_pton(AF_INET, address, &at.sin_addr) != 1) return -1;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  struct timeval t = {CONNECT_MS / 1000, 0};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t); /* counts for connect */
  settings(fd);
  if (!connect(fd, (struct sockaddr *)&at, sizeof at)) return fd;
  close(fd);
  return -1;
}

/* Both sides know the token of the one who listens. */
static bool hear_hello(int fd, const char *token, Hello *h) {
  return peers_read_all(fd, h, sizeof *h) && !memcmp(h->token, token, sizeof h->token);
}

static bool say_hello(int fd, const char *token, int from, int to) {
  Hello h = {.from = (uint32_t)from, .to = (uint32_t)to};
  memcpy(h.token, token, sizeof h.token);
  Err *e = peers_write_all(fd, &h, sizeof h, HELLO_MS / 1000);
  bool said = !e;
  err_free(e);
  return said;
}

/* After both hellos: the one who connected stays with this connection. */
static bool say_yes(int fd) {
  Err *e = peers_write_all(fd, "y", 1, HELLO_MS / 1000);
  bool said = !e;
  err_free(e);
  return said;
}

static bool hear_yes(int fd) {
  char yes;
  return peers_read_all(fd, &yes, 1) && yes == 'y';
}

typedef enum Reached { REACHED, SILENT, NOBODY } Reached;

/* Who is at an address. SILENT: somebody, who may yet be the one: it says nothing. */
static Reached try_address(Peers *p, Peer *q, const char *address, const Card *c) {
  int fd = connect_to(address, c->port);
  if (fd < 0) return NOBODY;
  Hello h;
  errno = 0;
  if (say_hello(fd, c->token, p->id, q->id) && hear_hello(fd, c->token, &h) &&
      h.from == (uint32_t)q->id && h.to == (uint32_t)p->id && say_yes(fd)) {
    receive_within(fd, 0);
    q->fd = fd;
    return REACHED;
  }
  bool silent = errno == EAGAIN || errno == EWOULDBLOCK;
  close(fd);
  return silent ? SILENT : NOBODY;
}

/* By its addresses in turn, first loopback, if it is on this host; again while it is slow to answer. */
static Err *reach(Peers *p, Peer *q, const Card *own, const Card *c, double until_s) {
  for (bool again = true; again;) {
    again = false;
    char *list = xstrdup(c->list), *rest = list, *a;
    while (q->fd < 0 && (a = strsep(&rest, ","))) {
      if (!strcmp(a, "127.0.0.1") && strcmp(own->boot, c->boot)) continue;
      again |= try_address(p, q, a, c) == SILENT;
    }
    free(list);
    if (q->fd >= 0) return NULL;
    again &= time_now_s() < until_s;
  }
  return err_hint(err_new(ERR_UNAVAILABLE, "process %d cannot connect to %s at %s, port %d", p->id,
                          q->name, c->list, c->port),
                  "WEFT_PEER_ADDRESS=ADDRESS, set for that process, names the one to connect to");
}

/* ---- those who connect: answered from the first moment on, by a thread ---- */

typedef struct Answers {
  Peers *p;
  int listener;
  char token[TOKEN];
  bool stop; /* atomic */
  Err *error;
  int *fds; /* [process], -1: it has not come */
  int missing;
} Answers;

/* Strangers are sent away. One who comes again has given its first connection up. */
static void answer(Answers *a, int fd) {
  Hello h;
  const Peers *p = a->p;
  settings(fd);
  if (hear_hello(fd, a->token, &h) && h.to == (uint32_t)p->id && h.from > (uint32_t)p->id &&
      h.from < (uint32_t)p->n && say_hello(fd, a->token, p->id, (int)h.from) && hear_yes(fd)) {
    receive_within(fd, 0);
    if (a->fds[h.from] >= 0) close(a->fds[h.from]);
    else a->missing--;
    a->fds[h.from] = fd;
    return;
  }
  close(fd);
}

static void *answer_all(void *arg) {
  Answers *a = arg;
  struct pollfd f = {.fd = a->listener, .events = POLLIN};
  while (a->missing && !__atomic_load_n(&a->stop, __ATOMIC_RELAXED)) {
    if (poll(&f, 1, 100) <= 0) continue;
    int fd = accept4(a->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) {
      answer(a, fd);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      a->error = err_new(ERR_EXHAUSTED, "process %d cannot take in connections of the others: %s",
                         a->p->id, strerror(errno));
      break;
    }
  }
  return NULL;
}

/* The greater ones come until then; their connections become the peers'. e: what failed meanwhile. */
static Err *answers_end(Answers *a, pthread_t thread, double until_s, Err *e) {
  Peers *p = a->p;
  if (e) __atomic_store_n(&a->stop, true, __ATOMIC_RELAXED);
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += (time_t)MAX(until_s - time_now_s(), 0) + 1;
  if (pthread_timedjoin_np(thread, NULL, &until)) {
    __atomic_store_n(&a->stop, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
  }
  for (int i = p->id + 1; i < p->n; i++) {
    p->peer[i].fd = a->fds[i];
    if (a->fds[i] < 0 && !e && !a->error)
      e = err_new(ERR_DEADLINE, "%s has not connected to process %d within %lld s", p->peer[i].name,
                  p->id, (long long)MIN(START_S, peers_patience()));
  }
  if (e) err_free(a->error);
  else e = a->error;
  free(a->fds);
  return e;
}

static Err *answers_begin(Answers *a, Peers *p, int listener, const char *token,
                          pthread_t *thread) {
  *a = (Answers){.p = p, .listener = listener, .missing = p->n - 1 - p->id};
  memcpy(a->token, token, TOKEN);
  a->fds = xmalloc(sizeof *a->fds * (size_t)p->n);
  for (int i = 0; i < p->n; i++) a->fds[i] = -1;
  if (!pthread_create(thread, NULL, answer_all, a)) return NULL;
  free(a->fds);
  return err_new(ERR_EXHAUSTED, "no thread for the connections of other processes");
}

/* ---- all together ---- */

/* Each client of a process has keys of its own. */
static char *key_of(int round, int id) { return xasprintf("weft/%d/process/%d", round, id); }

static Err *fetch(const PeersOpts *o, int round, int id, double until_s, Card *c) {
  char *key = key_of(round, id);
  Buf text = {0};
  double left = until_s - time_now_s();
  Err *e = o->store.get(o->store.arg, key, (int)MAX(left * 1000, 1), &text);
  free(key);
  if (e && e->code == ERR_UNAVAILABLE) { /* one that is gone, which it names */
    err_wrap(e, "waiting for process %d of %d", id, o->n);
  } else if (e) {
    Err *named = err_hint(err_new(ERR_DEADLINE, "process %d of %d has not come within %lld s (%s)",
                                  id, o->n, (long long)MIN(START_S, peers_patience()), e->msg),
                          "start all processes of the job, each with its own process_id");
    err_free(e);
    e = named;
  } else if (!card_read(xstrndup(text.p ? text.p : "", text.n), c)) {
    e = err_new(ERR_INVALID, "process %d is not one of this weft's (" WEFT_VERSION ")", id);
  }
  buf_free(&text);
  return e;
}

/* All cards; every process is then named. */
static Err *fetch_all(Peers *p, const PeersOpts *o, int round, double until_s, Card *cards) {
  const Card *own = &cards[o->id];
  for (int i = 0; i < o->n; i++) {
    Peer *q = &p->peer[i];
    if (i != o->id) TRY(fetch(o, round, i, until_s, &cards[i]));
    q->name = xasprintf("process %d (pid %d on %s)", i, cards[i].pid, cards[i].host);
    q->devices = cards[i].devices;
    TRY(card_fits(p, q, own, &cards[i]));
  }
  return NULL;
}

static Err *connect_all(Peers *p, const PeersOpts *o, int round, double until_s, Card *cards) {
  TRY(fetch_all(p, o, round, until_s, cards));
  for (int i = 0; i < o->id; i++) TRY(reach(p, &p->peer[i], &cards[o->id], &cards[i], until_s));
  return NULL;
}

static Err *put_card(const PeersOpts *o, int round, Str text) {
  char *key = key_of(round, o->id);
  Err *e = o->store.put(o->store.arg, key, text);
  free(key);
  return err_wrap(e, "telling the other processes");
}

Err *peers_meet(Peers *p, const PeersOpts *o) {
  static int rounds;
  int round = __atomic_fetch_add(&rounds, 1, __ATOMIC_RELAXED), listener, port;
  double until_s = time_now_s() + (double)MIN(START_S, peers_patience());
  TRY(listen_anywhere(o->n, &listener, &port));
  Card *cards = xcalloc((size_t)o->n, sizeof *cards);
  Buf own = {0};
  Answers answers;
  pthread_t thread;
  Err *e = card_own(o, port, &own);
  if (!e) card_read(xstrndup(own.p, own.n), &cards[o->id]);
  if (!e) e = answers_begin(&answers, p, listener, cards[o->id].token, &thread);
  if (!e) {
    e = put_card(o, round, (Str){own.p, own.n});
    if (!e) e = connect_all(p, o, round, until_s, cards);
    e = answers_end(&answers, thread, until_s, e);
  }
  close(listener);
  for (int i = 0; i < o->n; i++) card_free(&cards[i]);
  free(cards);
  buf_free(&own);
  return e;
}
