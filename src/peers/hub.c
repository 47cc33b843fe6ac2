/* The store that process 0 keeps for a job: a table, and a thread for each of the others, which asks over
 * a connection of its own, one question at a time. A connection that ends without a goodbye is a
 * process that was lost: who waits for a word, or asks for one that is not there, is told. */
#include "peers/peers_priv.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 64
#define MOST_TEXT ((uint64_t)1 << 30)
#define AGAIN_MS 50 /* until the next try to reach process 0 */
#define FIRST_WORD_S 5

typedef enum Verb { VERB_PUT = 1, VERB_GET, VERB_AGREE, VERB_BYE } Verb; /* bye: or why it failed */

typedef struct Question {
  uint32_t verb, n_key;
  int64_t
      number; /* of put and bye: bytes after the key; of get: milliseconds; of agree: the value */
} Question;

typedef struct Answer {
  int64_t code, n; /* 0 and bytes; an ErrCode and the words of it; of agree: n is the value */
} Answer;

typedef struct Greeting { /* of who connects; answered by an Answer */
  char magic[8], version[24], job[64], name[128];
  int32_t id, n;
} Greeting;

typedef struct Word {
  struct Word *next;
  char *key;
  Buf value;
} Word;

typedef struct Guest { /* of process 0: one of the others */
  PeersHub *hub;
  int id, fd; /* fd -1: it has not come, or has gone */
  char *name;
  bool left; /* under Hub.lock: nothing more comes of it */
  pthread_t thread;
} Guest;

struct PeersHub {
  PeersPlace at;
  int fd;                 /* of process 0: where it listens; of the others: to process 0 */
  pthread_mutex_t asking; /* of the others: one question at a time */
  /* of process 0, under lock: */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  Word *words;
  struct {
    int64_t round, value;
  } rounds[ROUNDS];
  char *lost; /* "process 2 (pid 71 on a7) has ended" */
  bool stop;
  Guest *guests; /* [n] */
  pthread_t door;
  bool open;
};

static void own_name(int id, char *out, size_t n) {
  char host[100] = "";
  if (gethostname(host, sizeof host - 1) || !*host) snprintf(host, sizeof host, "?");
  snprintf(out, n, "process %d (pid %d on %s)", id, (int)getpid(), host);
}

/* ---- the table of process 0; with the lock held ---- */

static Word *find(const PeersHub *h, Str key) {
  Word *w = h->words;
  while (w && !str_is(key, w->key)) w = w->next;
  return w;
}

static void put_word(PeersHub *h, Str key, Str value) {
  Word *w = find(h, key);
  if (!w) {
    w = xcalloc(1, sizeof *w);
    w->key = xstrndup(key.p, key.n);
    w->next = h->words;
    h->words = w;
  }
  w->value.n = 0;
  buf_add(&w->value, value.p, value.n);
  pthread_cond_broadcast(&h->changed);
}

static Err *is_lost(const PeersHub *h) {
  return err_hint(err_new(ERR_UNAVAILABLE, "%s", h->lost), "its own output says why");
}

static Err *get_word(PeersHub *h, Str key, int64_t timeout_ms, Buf *out) {
  double until_s = time_now_s() + (double)timeout_ms / 1000;
  Word *w;
  while (!(w = find(h, key))) {
    if (h->lost) return is_lost(h);
    if (time_now_s() >= until_s)
      return err_new(ERR_DEADLINE, "nobody has put '%.*s'", STR_ARG(key));
    struct timespec next;
    clock_gettime(CLOCK_REALTIME, &next);
    next.tv_sec++;
    pthread_cond_timedwait(&h->changed, &h->lock, &next);
  }
  buf_add(out, w->value.p, w->value.n);
  return NULL;
}

static int64_t agree(PeersHub *h, int64_t round, int64_t value) {
  int64_t at = round & (ROUNDS - 1);
  if (h->rounds[at].round != round + 1) { /* kept as round + 1: 0 is none */
    h->rounds[at].round = round + 1;
    h->rounds[at].value = value;
  }
  return h->rounds[at].value;
}

/* ---- process 0 answers ---- */

static Err *reply(int fd, ErrCode code, int64_t n, const char *text) {
  Answer a = {(int64_t)code, n};
  TRY(peers_write_all(fd, &a, sizeof a, peers_patience()));
  return text ? peers_write_all(fd, text, (size_t)n, peers_patience()) : NULL;
}

/* Takes e. */
static Err *reply_error(int fd, Err *e) {
  Err *sent = reply(fd, e->code, (int64_t)strlen(e->msg), e->msg);
  err_free(e);
  return sent;
}

/* One question, read whole. false: the stream ended, or makes no sense. */
static bool read_question(int fd, Question *q, Buf *key, Buf *value) {
  key->n = value->n = 0;
  if (!peers_read_all(fd, q, sizeof *q) || q->n_key > 4096) return false;
  uint64_t n = q->verb == VERB_PUT || q->verb == VERB_BYE ? (uint64_t)q->number : 0;
  if (n > MOST_TEXT) return false;
  char *text = xmalloc(q->n_key + n + 1);
  bool good = peers_read_all(fd, text, q->n_key + n);
  if (good) buf_add(key, text, q->n_key), buf_add(value, text + q->n_key, n);
  free(text);
  return good;
}

static Err *answer_one(Guest *g, const Question *q, Str key, Str value) {
  PeersHub *h = g->hub;
  Buf out = {0};
  Err *e = NULL;
  int64_t n = 0;
  pthread_mutex_lock(&h->lock);
  if (q->verb == VERB_PUT) put_word(h, key, value);
  else if (q->verb == VERB_GET) e = get_word(h, key, q->number, &out);
  else n = agree(h, strtoll(key.p, NULL, 10), q->number);
  pthread_mutex_unlock(&h->lock);
  if (e) return reply_error(g->fd, e);
  bool get = q->verb == VERB_GET;
  e = reply(g->fd, ERR_OK, get ? (int64_t)out.n : n, get ? (out.p ? out.p : "") : NULL);
  buf_free(&out);
  return e;
}

/* Until the guest says goodbye, or its connection ends. */
static void *serve(void *arg) {
  Guest *g = arg;
  PeersHub *h = g->hub;
  Question q = {0};
  Buf key = {0}, value = {0};
  Err *e = NULL;
  while (!e && read_question(g->fd, &q, &key, &value) && q.verb != VERB_BYE)
    e = answer_one(g, &q, (Str){key.p, key.n}, (Str){value.p, value.n});
  pthread_mutex_lock(&h->lock);
  if (!h->lost && !h->stop && q.verb != VERB_BYE)
    h->lost = xasprintf("%s has ended: its connection is closed", g->name);
  else if (!h->lost && !h->stop && value.n)
    h->lost = xasprintf("%s failed: %.*s", g->name, STR_ARG(value));
  g->left = true;
  pthread_cond_broadcast(&h->changed);
  pthread_mutex_unlock(&h->lock);
  err_free(e);
  buf_free(&key);
  buf_free(&value);
  return NULL;
}

/* Does who comes belong here? */
static Err *fits(const PeersHub *h, const Greeting *g) {
  if (memcmp(g->magic, "weft-hub", sizeof g->magic) || strcmp(g->job, h->at.job))
    return err_new(ERR_INVALID, "another job is at port %d", h->at.port);
  if (strcmp(g->version, WEFT_VERSION))
    return err_new(ERR_INVALID, "%s is weft %s, process 0 weft %s", g->name, g->version,
                   WEFT_VERSION);
  if (g->n != h->at.n || g->id < 1 || g->id >= g->n)
    return err_new(ERR_INVALID, "%s is one of %d, process 0 one of %d", g->name, g->n, h->at.n);
  if (h->guests[g->id].name)
    return err_new(ERR_INVALID, "%s: %s is there already", g->name, h->guests[g->id].name);
  return NULL;
}

static void let_in(PeersHub *h, int fd) {
  Greeting g = {0};
  struct timeval t = {FIRST_WORD_S, 0};
  int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  Err *e = peers_read_all(fd, &g, sizeof g) ? NULL : err_new(ERR_INVALID, "no greeting");
  g.version[sizeof g.version - 1] = g.job[sizeof g.job - 1] = g.name[sizeof g.name - 1] = 0;
  if (!e) e = fits(h, &g);
  if (e) {
    err_free(reply_error(fd, e));
    close(fd);
    return;
  }
  t.tv_sec = 0;
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
  Guest *guest = &h->guests[g.id];
  *guest = (Guest){.hub = h, .id = g.id, .fd = fd, .name = xstrdup(g.name)};
  e = reply(fd, ERR_OK, 0, NULL);
  if (e || pthread_create(&guest->thread, NULL, serve, guest)) {
    free(guest->name);
    *guest = (Guest){.fd = -1};
    close(fd);
  }
  err_free(e);
}

static void *mind_door(void *arg) {
  PeersHub *h = arg;
  struct pollfd f = {.fd = h->fd, .events = POLLIN};
  while (!__atomic_load_n(&h->stop, __ATOMIC_RELAXED)) {
    if (poll(&f, 1, 100) <= 0) continue;
    int fd = accept4(h->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) let_in(h, fd);
    else usleep(AGAIN_MS * 1000); /* no descriptor is free: those who knock come again */
  }
  return NULL;
}

static Err *listen_at(PeersHub *h) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)h->at.port)};
  int on = 1;
  h->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (h->fd >= 0) setsockopt(h->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (h->fd >= 0 && !bind(h->fd, (struct sockaddr *)&at, sizeof at) && !listen(h->fd, h->at.n) &&
      !pthread_create(&h->door, NULL, mind_door, h)) {
    h->open = true;
    return NULL;
  }
  return err_hint(err_new(ERR_UNAVAILABLE, "process 0 cannot listen at port %d: %s", h->at.port,
                          strerror(errno)),
                  "--coordinator HOST:PORT, for all processes, names a free one");
}

/* ---- the others ask ---- */

static int try_connect(const PeersHub *h, Err **why) {
  char port[16];
  struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
  snprintf(port, sizeof port, "%d", h->at.port);
  int bad = getaddrinfo(h->at.host, port, &hints, &found);
  err_free(*why);
  *why = bad ? err_new(ERR_DEADLINE, "%s", gai_strerror(bad)) : NULL;
  if (bad) return -1;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  if (fd >= 0 && !connect(fd, found->ai_addr, found->ai_addrlen)) {
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  } else {
    *why = err_new(ERR_DEADLINE, "%s", strerror(errno));
    if (fd >= 0) close(fd);
    fd = -1;
  }
  freeaddrinfo(found);
  return fd;
}

static Err *zero_is_gone(const PeersHub *h) {
  return err_hint(
      err_new(ERR_UNAVAILABLE, "process 0 (at %s, port %d) has ended", h->at.host, h->at.port),
      "its own output says why; start the job again, from its last checkpoint");
}

/* An answer's number, or its bytes into out. */
static Err *hear(const PeersHub *h, int fd, int64_t *number, Buf *out) {
  Answer a;
  if (!peers_read_all(fd, &a, sizeof a)) return zero_is_gone(h);
  if (number && !a.code) return *number = a.n, NULL;
  if (a.n < 0 || (uint64_t)a.n > MOST_TEXT) return zero_is_gone(h);
  if (!out && !a.code) return NULL;
  char *text = xmalloc((size_t)a.n + 1);
  Err *e = peers_read_all(fd, text, (size_t)a.n) ? NULL : zero_is_gone(h);
  if (!e && a.code) e = err_new((ErrCode)a.code, "%.*s", (int)a.n, text);
  else if (!e) buf_add(out, text, (size_t)a.n);
  free(text);
  return e;
}

static Err *greet(const PeersHub *h, int fd) {
  Greeting g = {.magic = "weft-hub", .version = WEFT_VERSION, .id = h->at.id, .n = h->at.n};
  snprintf(g.job, sizeof g.job, "%s", h->at.job);
  own_name(h->at.id, g.name, sizeof g.name);
  TRY(peers_write_all(fd, &g, sizeof g, peers_patience()));
  return hear(h, fd, NULL, NULL);
}

static Err *knock(PeersHub *h) {
  double until_s = time_now_s() + (double)peers_patience();
  Err *why = NULL;
  int fd;
  while ((fd = try_connect(h, &why)) < 0 && time_now_s() < until_s) usleep(AGAIN_MS * 1000);
  if (fd >= 0) {
    h->fd = fd;
    h->open = true;
    return greet(h, fd);
  }
  Err *e = err_hint(
      err_new(ERR_DEADLINE, "process %d of %d cannot reach process 0 at %s, port %d: %s", h->at.id,
              h->at.n, h->at.host, h->at.port, why ? why->msg : "no answer"),
      "--coordinator HOST:PORT, for all processes, names the host of process 0 and a free port");
  err_free(why);
  return e;
}

static Err *ask(PeersHub *h, Verb verb, const char *key, int64_t number, Str value, int64_t *got,
                Buf *out) {
  Question q = {verb, (uint32_t)strlen(key), number};
  int64_t s = peers_patience();
  pthread_mutex_lock(&h->asking);
  Err *e = peers_write_all(h->fd, &q, sizeof q, s);
  if (!e) e = peers_write_all(h->fd, key, q.n_key, s);
  if (!e && value.n) e = peers_write_all(h->fd, value.p, value.n, s);
  if (e) err_free(e), e = zero_is_gone(h);
  else if (verb != VERB_BYE) e = hear(h, h->fd, got, out);
  pthread_mutex_unlock(&h->asking);
  return e;
}

/* ---- both ---- */

static Err *put(void *arg, const char *key, Str value) {
  PeersHub *h = arg;
  if (h->at.id) return ask(h, VERB_PUT, key, (int64_t)value.n, value, NULL, NULL);
  pthread_mutex_lock(&h->lock);
  put_word(h, str_from(key), value);
  pthread_mutex_unlock(&h->lock);
  return NULL;
}

static Err *get(void *arg, const char *key, int timeout_ms, Buf *out) {
  PeersHub *h = arg;
  if (h->at.id) return ask(h, VERB_GET, key, timeout_ms, (Str){0}, NULL, out);
  pthread_mutex_lock(&h->lock);
  Err *e = get_word(h, str_from(key), timeout_ms, out);
  pthread_mutex_unlock(&h->lock);
  return e;
}

PeersStore peers_hub_store(PeersHub *h) { return (PeersStore){h, put, get}; }

Err *peers_hub_agree(PeersHub *h, int64_t round, int64_t value, int64_t *agreed) {
  char key[32];
  snprintf(key, sizeof key, "%lld", (long long)round);
  if (h->at.id) return ask(h, VERB_AGREE, key, value, (Str){0}, agreed, NULL);
  pthread_mutex_lock(&h->lock);
  *agreed = agree(h, round, value);
  pthread_mutex_unlock(&h->lock);
  return NULL;
}

Err *peers_hub_open(const PeersPlace *place, PeersHub **out) {
  PeersHub *h = xcalloc(1, sizeof *h);
  h->at = *place;
  h->at.host = xstrdup(place->host);
  h->fd = -1;
  pthread_mutex_init(&h->asking, NULL);
  pthread_mutex_init(&h->lock, NULL);
  pthread_cond_init(&h->changed, NULL);
  h->guests = xcalloc((size_t)place->n, sizeof *h->guests);
  for (int i = 0; i < place->n; i++) h->guests[i].fd = -1;
  Err *e = place->id ? knock(h) : listen_at(h);
  if (e) peers_hub_close(h, NULL);
  else *out = h;
  return e;
}

/* The others may still ask for what is there. With the lock held. */
static void wait_for_guests(PeersHub *h) {
  double until_s = time_now_s() + (double)peers_patience();
  for (int i = 0; i < h->at.n;) {
    const Guest *g = &h->guests[i];
    if (!g->name || g->left || time_now_s() >= until_s) {
      i++;
      continue;
    }
    struct timespec next;
    clock_gettime(CLOCK_REALTIME, &next);
    next.tv_sec++;
    pthread_cond_timedwait(&h->changed, &h->lock, &next);
  }
}

static void close_door(PeersHub *h, const char *why) {
  char own[128];
  own_name(0, own, sizeof own);
  pthread_mutex_lock(&h->lock);
  if (!*why) wait_for_guests(h);
  if (!h->lost) h->lost = xasprintf("%s %s%s", own, *why ? "failed: " : "has ended", why);
  __atomic_store_n(&h->stop, true, __ATOMIC_RELAXED);
  pthread_cond_broadcast(&h->changed);
  pthread_mutex_unlock(&h->lock);
  pthread_join(h->door, NULL);
  for (int i = 0; i < h->at.n; i++) {
    Guest *g = &h->guests[i];
    if (g->fd < 0) continue;
    shutdown(g->fd, SHUT_RDWR);
    pthread_join(g->thread, NULL);
    close(g->fd);
  }
}

void peers_hub_close(PeersHub *h, const Err *failed) {
  if (!h) return;
  const char *why = failed ? failed->msg : "";
  int64_t n = (int64_t)strlen(why);
  if (h->open && !h->at.id) close_door(h, why);
  else if (h->open) err_free(ask(h, VERB_BYE, "", n, (Str){why, (size_t)n}, NULL, NULL));
  if (h->fd >= 0) close(h->fd);
  for (int i = 0; i < h->at.n; i++) free(h->guests[i].name);
  for (Word *w = h->words, *next; w; w = next) {
    next = w->next;
    free(w->key);
    buf_free(&w->value);
    free(w);
  }
  pthread_mutex_destroy(&h->asking);
  pthread_mutex_destroy(&h->lock);
  pthread_cond_destroy(&h->changed);
  free(h->guests);
  free(h->lost);
  free(h->at.host);
  free(h);
}
