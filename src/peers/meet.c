/* How processes find each other: each listens, and puts into the store where, with what it is; then the
 * one with the greater number connects to the other and both say who they are. */
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
#define CONNECT_MS 5000

typedef struct Hello { /* both ways, when a connection is made */
  char token[32];
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

static void addresses(Buf *b) {
  const char *given = env_get("WEFT_PEER_ADDRESS");
  if (given) {
    buf_cstr(b, given);
    return;
  }
  buf_cstr(b, "127.0.0.1");
  struct ifaddrs *list = NULL;
  if (getifaddrs(&list)) return;
  for (const struct ifaddrs *a = list; a; a = a->ifa_next) {
    char text[INET_ADDRSTRLEN];
    if (!a->ifa_addr || a->ifa_addr->sa_family != AF_INET || (a->ifa_flags & IFF_LOOPBACK))
      continue;
    struct sockaddr_in in;
    memcpy(&in, a->ifa_addr, sizeof in);
    if (inet_ntop(AF_INET, &in.sin_addr, text, sizeof text)) buf_printf(b, ",%s", text);
  }
  freeifaddrs(list);
}

static Err *random_token(char *out) {
  unsigned char raw[16];
  if (getrandom(raw, sizeof raw, 0) != (ssize_t)sizeof raw)
    return err_new(ERR_UNAVAILABLE, "no random bytes: %s", strerror(errno));
  for (int i = 0; i < 16; i++) snprintf(out + 2 * i, 3, "%02x", raw[i]);
  return NULL;
}

/* ---- cards: what is in the store, fields with blanks between ---- */

typedef struct Card {
  char version[64], device[128], host[128], boot[64], token[64], list[512];
  int devices, pid, port;
} Card;

static char *card_text(const Card *c) {
  return xasprintf("%s %s %d %d %s %s %s %d %s", c->version, c->device, c->devices, c->pid, c->host,
                   c->boot, c->token, c->port, c->list);
}

static bool card_read(const char *text, Card *c) {
  return sscanf(text, "%63s %127s %d %d %127s %63s %63s %d %511s", c->version, c->device,
                &c->devices, &c->pid, c->host, c->boot, c->token, &c->port, c->list) == 9 &&
         c->devices >= 0 && c->devices <= 1 << 20 && c->port > 0 && c->port < 1 << 16;
}

static Err *card_own(const PeersOpts *o, int port, Card *c) {
  *c = (Card){.devices = o->devices, .pid = (int)getpid(), .port = port};
  snprintf(c->version, sizeof c->version, "%s", WEFT_VERSION);
  snprintf(c->device, sizeof c->device, "%s", o->device);
  if (gethostname(c->host, sizeof c->host - 1) || !*c->host) snprintf(c->host, sizeof c->host, "?");
  boot_id(c->boot, sizeof c->boot);
  Buf list = {0};
  addresses(&list);
  snprintf(c->list, sizeof c->list, "%s", list.p);
  buf_free(&list);
  return random_token(c->token);
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

static void settings(int fd, int timeout_ms) {
  int on = 1;
  struct timeval t = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
}

static int connect_to(const char *address, int port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  if (inet_pton(AF_INET, address, &at.sin_addr) != 1) return -1;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  struct timeval t = {CONNECT_MS / 1000, 0};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t); /* counts for connect as well */
  if (!connect(fd, (struct sockaddr *)&at, sizeof at)) {
    t.tv_sec = 0;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
    settings(fd, CONNECT_MS);
    return fd;
  }
  close(fd);
  return -1;
}

/* Both sides know the token of the one who listens. */
static bool is_peer(int fd, const char *token, uint32_t from, uint32_t to) {
  Hello h;
  return peers_read_all(fd, &h, sizeof h) && !memcmp(h.token, token, sizeof h.token) &&
         h.from == from && h.to == to;
}

static bool say_hello(int fd, const char *token, int from, int to) {
  Hello h = {.from = (uint32_t)from, .to = (uint32_t)to};
  memcpy(h.token, token, sizeof h.token);
  Err *e = peers_write_all(fd, &h, sizeof h);
  err_free(e);
  return !e;
}

/* By its addresses in turn: first loopback, if it is on this host. */
static Err *reach(Peers *p, Peer *q, const Card *own, const Card *c) {
  char list[sizeof c->list], *rest = NULL;
  snprintf(list, sizeof list, "%s", c->list);
  for (char *a = strtok_r(list, ",", &rest); a; a = strtok_r(NULL, ",", &rest)) {
    if (!strcmp(a, "127.0.0.1") && strcmp(own->boot, c->boot)) continue;
    int fd = connect_to(a, c->port);
    if (fd < 0) continue;
    if (say_hello(fd, c->token, p->id, q->id) &&
        is_peer(fd, c->token, (uint32_t)q->id, (uint32_t)p->id)) {
      settings(fd, 0);
      q->fd = fd;
      return NULL;
    }
    close(fd);
  }
  return err_hint(err_new(ERR_UNAVAILABLE, "process %d cannot connect to %s at %s, port %d", p->id,
                          q->name, c->list, c->port),
                  "WEFT_PEER_ADDRESS=ADDRESS, set for that process, names the one to connect to");
}

/* One who connects; strangers are sent away. */
static void answer(Peers *p, int fd, const char *token) {
  Hello h;
  settings(fd, CONNECT_MS);
  if (peers_read_all(fd, &h, sizeof h) && !memcmp(h.token, token, sizeof h.token) &&
      h.to == (uint32_t)p->id && h.from > (uint32_t)p->id && h.from < (uint32_t)p->n &&
      p->peer[h.from].fd < 0 && say_hello(fd, token, p->id, (int)h.from)) {
    settings(fd, 0);
    p->peer[h.from].fd = fd;
    return;
  }
  close(fd);
}

static Err *wait_for_greater(Peers *p, int listener, const char *token, double until_s) {
  for (int i = p->id + 1; i < p->n;) {
    if (p->peer[i].fd >= 0) {
      i++;
      continue;
    }
    struct pollfd f = {.fd = listener, .events = POLLIN};
    double left = until_s - time_now_s();
    if (left <= 0)
      return err_new(ERR_DEADLINE, "%s has not connected to process %d within %lld s",
                     p->peer[i].name, p->id, (long long)MIN(START_S, peers_patience()));
    if (poll(&f, 1, (int)MIN(left * 1000 + 1, 1000)) <= 0) continue;
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) answer(p, fd, token);
  }
  return NULL;
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
  if (e) {
    Err *named = err_hint(err_new(ERR_DEADLINE, "process %d of %d has not come within %lld s (%s)",
                                  id, o->n, (long long)MIN(START_S, peers_patience()), e->msg),
                          "start all processes of the job, each with its own process_id");
    err_free(e);
    e = named;
  } else if (!card_read(text.p ? text.p : "", c)) {
    e = err_new(ERR_INVALID, "process %d is not one of this weft's (" WEFT_VERSION ")", id);
  }
  buf_free(&text);
  return e;
}

Err *peers_meet(Peers *p, const PeersOpts *o) {
  static int rounds;
  int round = __atomic_fetch_add(&rounds, 1, __ATOMIC_RELAXED), listener, port;
  double until_s = time_now_s() + (double)MIN(START_S, peers_patience());
  TRY(listen_anywhere(o->n, &listener, &port));
  Card own, *cards = xcalloc((size_t)o->n, sizeof *cards);
  Err *e = card_own(o, port, &own);
  if (!e) {
    char *key = key_of(round, o->id), *text = card_text(&own);
    e = err_wrap(o->store.put(o->store.arg, key, str_from(text)), "telling the other processes");
    free(key);
    free(text);
  }
  for (int i = 0; i < o->n && !e; i++) {
    Peer *q = &p->peer[i];
    if (i == o->id) cards[i] = own;
    else e = fetch(o, round, i, until_s, &cards[i]);
    q->name = xasprintf("process %d (pid %d on %s)", i, cards[i].pid, cards[i].host);
    q->devices = cards[i].devices;
    if (!e) e = card_fits(p, q, &own, &cards[i]);
  }
  for (int i = 0; i < o->id && !e; i++) e = reach(p, &p->peer[i], &own, &cards[i]);
  if (!e) e = wait_for_greater(p, listener, own.token, until_s);
  close(listener);
  free(cards);
  return e;
}
