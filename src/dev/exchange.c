/* Open meetings are a list; a member joins the first with its group and channel where it is not yet.
 * A meeting that was given up stays until all its members have been there, so that who comes late is
 * told as well and later ones do not take its place. */
#include "dev/exchange.h"

#include "dev/far.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct Meeting {
  struct Meeting *next;
  int64_t channel;
  int n, near, arrived, inside; /* near: members of this process */
  int *members;
  ExchangeHand *hands; /* by place */
  bool *here;
  uint64_t kind;
  char *what, *program; /* of the first who came */
  int first;            /* its device */
  bool done, visited, told;
  Err *error; /* when done; copied for each */
  pthread_cond_t cond;
} Meeting;

typedef struct Member { /* a device */
  char program[96];     /* the last that ran */
  bool ran, runs;
  char *failed;            /* why its last run failed; NULL: it did not, or another has begun */
  const Meeting *waits_in; /* NULL: it does not wait */
} Member;

struct Exchange {
  pthread_mutex_t lock;
  bool closed;
  Meeting *open;
  int n;
  Member *members;
  Peers *peers; /* NULL: all devices are of this process */
  bool told;    /* the other processes, that a run failed */
  const int *owner;
};

Exchange *exchange_new(int n_devices) {
  Exchange *x = xcalloc(1, sizeof *x);
  pthread_mutex_init(&x->lock, NULL);
  x->n = n_devices;
  x->members = xcalloc((size_t)n_devices, sizeof *x->members);
  return x;
}

void exchange_share(Exchange *x, Peers *peers, const int *owner) {
  x->peers = peers;
  x->owner = owner;
}

static bool is_near(const Exchange *x, int device) {
  return !x->peers || x->owner[device] == peers_id(x->peers);
}

static void meeting_free(Meeting *m) {
  pthread_cond_destroy(&m->cond);
  err_free(m->error);
  free(m->members);
  free(m->hands);
  free(m->here);
  free(m->what);
  free(m->program);
  free(m);
}

void exchange_free(Exchange *x) {
  if (!x) return;
  for (Meeting *m = x->open, *next; m; m = next) {
    next = m->next;
    meeting_free(m);
  }
  for (int i = 0; i < x->n; i++) free(x->members[i].failed);
  pthread_mutex_destroy(&x->lock);
  free(x->members);
  free(x);
}

/* ---- who is where ---- */

static void list(Buf *b, const int *devices, int n) {
  buf_printf(b, n == 1 ? "device %d" : "devices %d", devices[0]);
  for (int i = 1; i < n; i++) buf_printf(b, ", %d", devices[i]);
}

static void status_of(const Exchange *x, int device, Buf *b) {
  const Member *d = &x->members[device];
  buf_printf(b, "device %d ", device);
  if (!d->ran) buf_cstr(b, "has run nothing yet");
  else if (!d->runs) buf_printf(b, "runs nothing since '%s'", d->program);
  else if (d->waits_in)
    buf_printf(b, "runs '%s' and waits at its %s", d->program, d->waits_in->what);
  else buf_printf(b, "runs '%s'", d->program);
}

/* "all_reduce of f32[8] in 'A': devices 0, 1 wait for device 2; device 2 runs 'B' and waits at ..." */
static void describe(const Exchange *x, const Meeting *m, Buf *b) {
  int *here = xmalloc(sizeof *here * (size_t)m->n * 2), *absent = here + m->n, n_here = 0,
      n_absent = 0;
  for (int i = 0; i < m->n; i++) {
    if (!is_near(x, m->members[i])) continue;
    if (m->here[i]) here[n_here++] = m->members[i];
    else absent[n_absent++] = m->members[i];
  }
  buf_printf(b, "%s in '%s': ", m->what, m->program);
  list(b, here, n_here);
  buf_cstr(b, n_here == 1 ? " waits for " : " wait for ");
  list(b, absent, n_absent);
  for (int i = 0; i < n_absent; i++) {
    buf_cstr(b, "; ");
    status_of(x, absent[i], b);
  }
  free(here);
}

static Err *copy_of(const Err *e) {
  if (!e) return NULL;
  Err *c = err_new(e->code, "%s", e->msg);
  if (e->place) err_place(c, "%s", e->place);
  return e->hint ? err_hint(c, "%s", e->hint) : c;
}

static void give_up(Meeting *m, Err *take) {
  m->done = true;
  m->error = take;
  pthread_cond_broadcast(&m->cond);
}

/* A member that is absent and whose last run failed; -1: none. */
static int fallen(const Exchange *x, const Meeting *m) {
  for (int i = 0; i < m->n; i++)
    if (!m->here[i] && x->members[m->members[i]].failed) return m->members[i];
  return -1;
}

static void tell_of_fallen(const Exchange *x, Meeting *m, int device) {
  const Member *d = &x->members[device];
  give_up(m, err_new(ERR_ABORTED, "%s in '%s' waits for device %d, whose run of '%s' failed: %s",
                     m->what, m->program, device, d->program, d->failed));
}

/* Does all that this meeting waits for wait itself? Marks the meetings that it looked at. */
static bool all_wait(const Exchange *x, Meeting *m) {
  if (m->visited) return true;
  m->visited = true;
  for (int i = 0; i < m->n; i++) {
    if (m->here[i]) continue;
    if (!is_near(x, m->members[i])) return false;
    const Meeting *other = x->members[m->members[i]].waits_in;
    if (!other || other->done || !all_wait(x, (Meeting *)(uintptr_t)other)) return false;
  }
  return true;
}

static void find_deadlock(const Exchange *x, Meeting *m) {
  for (Meeting *q = x->open; q; q = q->next) q->visited = false;
  if (!all_wait(x, m)) return;
  Buf b = {0};
  for (Meeting *q = x->open; q; q = q->next)
    if (q->visited && !q->done) {
      if (b.n) buf_cstr(&b, "; ");
      describe(x, q, &b);
    }
  for (Meeting *q = x->open; q; q = q->next)
    if (q->visited && !q->done)
      give_up(q, err_hint(err_new(ERR_ABORTED, "the programs wait for each other: %s", b.p),
                          "every device has to come to the same collectives in the same order"));
  buf_free(&b);
}

/* ---- a run begins and ends ---- */

void exchange_remember(Exchange *x, int device, const char *program) {
  pthread_mutex_lock(&x->lock);
  Member *d = &x->members[device];
  if (!d->runs) snprintf(d->program, sizeof d->program, "%s", program);
  d->ran = true;
  pthread_mutex_unlock(&x->lock);
}

void exchange_begin(Exchange *x, int n, const int *devices, const char *program) {
  pthread_mutex_lock(&x->lock);
  for (int i = 0; i < n; i++) {
    Member *d = &x->members[devices[i]];
    snprintf(d->program, sizeof d->program, "%s", program);
    d->ran = d->runs = true;
    free(d->failed);
    d->failed = NULL;
  }
  bool told = x->told;
  x->told = false;
  pthread_mutex_unlock(&x->lock);
  if (told) peers_tell_failure(x->peers, "");
}

void exchange_end(Exchange *x, int n, const int *devices, const Err *failed) {
  pthread_mutex_lock(&x->lock);
  for (int i = 0; i < n; i++) {
    Member *d = &x->members[devices[i]];
    d->runs = false;
    free(d->failed);
    d->failed = NULL;
    if (failed) d->failed = xstrndup(failed->msg, strnlen(failed->msg, 400));
  }
  bool tell = x->peers && failed;
  x->told |= tell;
  pthread_mutex_unlock(&x->lock);
  if (tell) peers_tell_failure(x->peers, failed->msg);
}

static Err *job_is_over(void) {
  return err_new(ERR_CANCELLED, "the client was closed while devices waited for each other");
}

void exchange_close(Exchange *x) {
  pthread_mutex_lock(&x->lock);
  __atomic_store_n(&x->closed, true, __ATOMIC_RELEASE);
  for (Meeting *m = x->open; m; m = m->next)
    if (!m->done && m->arrived < m->near) give_up(m, job_is_over());
  if (x->peers) peers_stop(x->peers);
  pthread_mutex_unlock(&x->lock);
}

bool exchange_closed(const Exchange *x) { return __atomic_load_n(&x->closed, __ATOMIC_RELAXED); }

/* ---- meetings ---- */

static bool fits(const Meeting *m, const ExchangeCall *c) {
  if (m->channel != c->channel || m->n != c->n ||
      memcmp(m->members, c->members, sizeof *c->members * (size_t)c->n))
    return false;
  for (int k = 0; k < c->n_mine; k++)
    if (m->here[c->mine[k]]) return false;
  return true;
}

static Meeting *meeting_new(const Exchange *x, const ExchangeCall *c) {
  Meeting *m = xcalloc(1, sizeof *m);
  size_t n = (size_t)c->n;
  m->channel = c->channel;
  m->n = c->n;
  m->members = xmalloc(sizeof *m->members * n);
  memcpy(m->members, c->members, sizeof *m->members * n);
  for (int i = 0; i < c->n; i++) m->near += is_near(x, c->members[i]);
  m->hands = xcalloc(n, sizeof *m->hands);
  m->here = xcalloc(n, sizeof *m->here);
  m->kind = c->kind;
  m->what = xstrdup(c->what);
  m->first = c->members[c->mine[0]];
  m->program = xstrdup(x->members[m->first].program);
  pthread_condattr_t attr;
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&m->cond, &attr);
  pthread_condattr_destroy(&attr);
  return m;
}

static Meeting *enter(Exchange *x, const ExchangeCall *c) {
  Meeting **at = &x->open;
  while (*at && !fits(*at, c)) at = &(*at)->next;
  if (!*at) *at = meeting_new(x, c);
  Meeting *m = *at;
  for (int k = 0; k < c->n_mine; k++) {
    m->here[c->mine[k]] = true;
    m->hands[c->mine[k]] = c->hands[k];
  }
  m->arrived += c->n_mine;
  m->inside += c->n_mine;
  return m;
}

/* The last of those who ever come takes the meeting away. */
static Err *leave(Exchange *x, Meeting *m, const ExchangeCall *c) {
  Err *e = copy_of(m->error);
  m->inside -= c->n_mine;
  if (m->arrived < m->near || m->inside) return e;
  Meeting **at = &x->open;
  while (*at != m) at = &(*at)->next;
  *at = m->next;
  meeting_free(m);
  return e;
}

static Err *disagreement(const Exchange *x, const Meeting *m, const ExchangeCall *c) {
  int mine = c->members[c->mine[0]];
  return err_hint(
      err_new(ERR_INVALID,
              "collectives that do not fit: device %d in '%s' comes to %s, device %d in "
              "'%s' to %s",
              m->first, m->program, m->what, mine, x->members[mine].program, c->what),
      "every device has to come to the same collectives in the same order");
}

static Err *timed_out(const Exchange *x, const Meeting *m, int64_t seconds) {
  Buf b = {0};
  describe(x, m, &b);
  Err *e =
      err_hint(err_new(ERR_DEADLINE, "nobody came for %lld s: %s", (long long)seconds, b.p),
               "every device has to come to the same collectives; WEFT_EXCHANGE_TIMEOUT=SECONDS "
               "waits longer");
  buf_free(&b);
  return e;
}

static void remark(const Exchange *x, Meeting *m) {
  if (m->told) return;
  m->told = true; /* by one of those who wait */
  Buf b = {0};
  describe(x, m, &b);
  fprintf(stderr, "weft: for %d s: %s\n", PEERS_REMARK_S, b.p);
  buf_free(&b);
}

static void wait_for_rest(Exchange *x, Meeting *m) {
  int64_t waited = 0;
  struct timespec tick;
  clock_gettime(CLOCK_MONOTONIC, &tick);
  while (!m->done) {
    struct timespec next = tick;
    next.tv_sec++;
    if (pthread_cond_timedwait(&m->cond, &x->lock, &next) == 0 || m->done) continue;
    tick = next;
    if (m->arrived == m->near) continue; /* it is being computed */
    int gone = ++waited >= PEERS_FALLEN_S ? fallen(x, m) : -1;
    if (gone >= 0) tell_of_fallen(x, m, gone);
    else if (waited >= peers_patience()) give_up(m, timed_out(x, m, waited));
    else if (waited == PEERS_REMARK_S) remark(x, m);
  }
}

static void finish(Exchange *x, Meeting *m, const ExchangeCall *c) {
  pthread_mutex_unlock(&x->lock);
  FarMeeting far = {x->peers, x->owner, m->program, m->hands};
  Err *e = m->near < m->n ? far_finish(&far, c) : c->finish(c->arg, m->hands, NULL);
  pthread_mutex_lock(&x->lock);
  give_up(m, e);
}

static void waits(Exchange *x, const ExchangeCall *c, const Meeting *in) {
  for (int k = 0; k < c->n_mine; k++) x->members[c->members[c->mine[k]]].waits_in = in;
}

Err *exchange_join(Exchange *x, const ExchangeCall *c) {
  pthread_mutex_lock(&x->lock);
  Meeting *m = enter(x, c);
  if (!m->done && x->closed) give_up(m, job_is_over());
  if (!m->done && m->kind != c->kind) give_up(m, disagreement(x, m, c));
  if (!m->done && m->arrived == m->near) finish(x, m, c);
  if (!m->done) {
    waits(x, c, m);
    find_deadlock(x, m);
    wait_for_rest(x, m);
    waits(x, c, NULL);
  }
  Err *e = leave(x, m, c);
  pthread_mutex_unlock(&x->lock);
  return e;
}
