/* Small programs start without generated code: their fusions run as strips. When one runs again and
 * strips take much longer, a thread beside the runs makes its code; if not, what they cost more is added
 * up from run to run, and the thread begins when that comes to a part of what the code takes. So it does
 * in a first run that is long, which goes on with the code from its next task and ends about as soon as
 * one that waited for it. Only a later run that would lose more than the code takes waits. What loops that
 * nobody knows the turns of cost more is added up from turn to turn, and they go on with the code from
 * their next turn. Complete code goes into the cache on disk. A program with much code beside much memory,
 * or with shapes that strips are bad at, has its code at once. */
#include "dev/cpu/cpu_priv.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "dev/cpu/vinterp/vinterp.h"

#define MOST_NODES 1024 /* beside much memory of the runs: LLVM's comes on top */
#define STEP_S 2e-7     /* a step of a loop, which may be one function in generated code */
#define MOST_EXCESS 4.0 /* of one run, in its times with code */
#define DEAR_S 2e-5     /* of one run, or ... */
#define DEAR 0.3        /* ... of its time with code: not to be borne twice */
#define DUE 0.25        /* of the time of generating, which is beside the runs */
#define COMPILE_S 2e-3
#define COMPILE_NODE_S 0.15e-3

struct TierUp {
  VEC(VInterp *) strips;
  int nodes, most_nodes;
  bool always;           /* strips whatever they cost */
  double code_s;         /* a run of generated code */
  double run_s;          /* what a run takes longer; of loops of unknown turns, one */
  double spent_s, all_s; /* what all runs took longer, and would have taken */
  int64_t runs;
  Code *code;
  pthread_t thread;
  bool started;
  Made made;     /* the thread's, until it is done */
  bool complete; /* it is, for the thread */
  int done;
};

static double compile_s(const TierUp *l) { return COMPILE_S + COMPILE_NODE_S * l->nodes; }

/* ---- strips ---- */

static bool add_fusion(Code *c, TierUp *l, const Step *s, double times) {
  VInterp *t = vinterp_new(s->fusion);
  if (!t) return false;
  *vec_push(&l->strips) = t;
  c->steps[s->id].fused = vinterp_code(t);
  l->run_s += times * vinterp_excess_s(t);
  l->code_s += times * vinterp_run_s(t);
  l->nodes += vinterp_nodes(t);
  return l->nodes <= l->most_nodes;
}

static bool add_block(Code *c, TierUp *l, const Block *b, double times, bool looped);

static bool add_turns(Code *c, TierUp *l, const Step *s, double times) {
  double turns = times * (double)MAX(s->trips, 1);
  bool counted = s->trips >= 0; /* the condition is not asked */
  return add_block(c, l, &s->blocks[0], counted ? 0 : turns, true) &&
         add_block(c, l, &s->blocks[1], turns, true);
}

static bool add_unknown_turns(Code *c, TierUp *l, const Step *s, double times) {
  double run_s = l->run_s, code_s = l->code_s;
  times = MAX(times, 1);
  bool ok = add_turns(c, l, s, times);
  StepCode *k = &c->steps[s->id];
  k->over_s = (l->run_s - run_s) / times;
  k->turn_s = (l->code_s - code_s) / times;
  return ok;
}

/* times: a run does the block; looped: in a loop */
static bool add_block(Code *c, TierUp *l, const Block *b, double times, bool looped) {
  for (int i = 0; i < b->n; i++) {
    const Step *s = &b->steps[i];
    bool ok = true;
    if (looped) l->run_s += times * STEP_S;
    if (s->kind == STEP_FUSED) ok = add_fusion(c, l, s, times);
    if (s->kind == STEP_WHILE)
      ok = s->trips < 0 ? add_unknown_turns(c, l, s, times) : add_turns(c, l, s, times);
    for (int k = 0; k < s->n_blocks && ok && s->kind != STEP_WHILE; k++)
      ok = add_block(c, l, &s->blocks[k], times, looped);
    if (!ok) return false;
  }
  return true;
}

/* ---- the end of the process ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static pthread_cond_t all_done = PTHREAD_COND_INITIALIZER;
static int under_way; /* generations of code */
static bool leaving;  /* the process */
static pid_t process;

/* A process that was forked has none of these threads. */
static void know_process(void) {
  if (process == getpid()) return;
  process = getpid();
  under_way = 0;
  leaving = false;
}

/* LLVM must not find its own data gone under it. */
static void wait_for_all(void) {
  pthread_mutex_lock(&lock);
  know_process();
  leaving = true;
  while (under_way) pthread_cond_wait(&all_done, &lock);
  pthread_mutex_unlock(&lock);
}

/* Some of its data is made when it is first used, so it is destroyed before the functions of atexit are called that were there
 * before. What is left to do for the thread that ends the process comes earlier: for the main thread, which mostly does. */
#ifdef __GLIBC__
int __cxa_thread_atexit_impl(void (*call)(void *), void *arg, void *dso);
extern void *__dso_handle __attribute__((visibility("hidden")));

static void wait_before_exit(void *arg) {
  (void)arg;
  wait_for_all();
}

static void ask_to_wait(void) {
  static _Thread_local bool asked;
  if (!asked && gettid() == getpid())
    __cxa_thread_atexit_impl(wait_before_exit, NULL, &__dso_handle);
  asked = true;
}
#else
static void ask_to_wait(void) {}
#endif

static void wait_at_exit_once(void) { atexit(wait_for_all); }

/* Until end_work() the process does not end. false: it is ending. */
static bool begin_work(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, wait_at_exit_once);
  pthread_mutex_lock(&lock);
  know_process();
  bool wanted = !leaving;
  under_way += wanted;
  pthread_mutex_unlock(&lock);
  return wanted;
}

static void end_work(void) {
  pthread_mutex_lock(&lock);
  if (!--under_way) pthread_cond_broadcast(&all_done);
  pthread_mutex_unlock(&lock);
}

/* ---- the beginning ---- */

bool tier_up_start(Code *c) {
  const char *want = env_get("WEFT_VINTERP");
  if (want && !strcmp(want, "off")) return false;
  TierUp *l = xcalloc(1, sizeof *l);
  l->always = want && !strcmp(want, "always");
  l->code = c;
  l->most_nodes = !l->always && code_takes_much(c) ? MOST_NODES : INT_MAX;
  bool ok = add_block(c, l, &c->plan->body, 1, false);
  double most = MAX(compile_s(l), MOST_EXCESS * l->code_s);
  ok = ok && (l->always || l->run_s <= most);
  if (ok && l->strips.n) {
    c->tier_up = l;
    ask_to_wait();
  } else {
    tier_up_free(l);
  }
  return ok;
}

/* ---- the thread ---- */

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static void *make(void *arg) {
  TierUp *l = arg;
  Code *c = l->code;
  pthread_mutex_lock(&one_at_a_time);
  pthread_mutex_lock(&lock);
  bool wanted = !leaving; /* it may have waited for others */
  pthread_mutex_unlock(&lock);
  Err *e = wanted ? code_generate(c, true, &l->made) : NULL;
  if (wanted && code_takes_much(c)) jit_library_rests(); /* the run has its memory already */
  pthread_mutex_unlock(&one_at_a_time);
  if (wanted && !e) code_loop_places(c, &c->plan->body, &l->made);
  for (int i = 0; i < c->plan->n_steps && wanted && !e; i++) {
    StepCode *s = &c->steps[i];
    const FusedCode *f = &l->made.fused[i];
    bool same_parts = f->partial_bytes == s->fused.partial_bytes && !f->finish == !s->fused.finish;
    if (f->run && same_parts) __atomic_store_n(&s->better, f, __ATOMIC_RELEASE);
  }
  l->complete = wanted && !e;
  if (l->complete) dev_cache_complete(c->prog); /* before the program waits for this thread */
  if (l->complete) __atomic_store_n(&l->done, 1, __ATOMIC_RELEASE);
  err_free(e); /* strips they stay */
  end_work();
  return NULL;
}

static void start_thread(TierUp *l) {
  if (!begin_work()) return;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the program's own threads */
  l->started = pthread_create(&l->thread, NULL, make, l) == 0;
  if (!l->started) {
    l->always = true;
    end_work();
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void tier_up_free(TierUp *l) {
  if (!l) return;
  if (l->started) pthread_join(l->thread, NULL);
  if (l->made.fused) made_free(&l->made);
  for (int i = 0; i < l->strips.n; i++) vinterp_free(l->strips.v[i]);
  vec_free(&l->strips);
  free(l);
}

/* Nobody needs the strips any more; c->tier_up is gone. */
static void take(Code *c, TierUp *l, Made *made) {
  code_take(c, made);
  tier_up_free(l);
  c->tier_up = NULL;
}

/* Mean costs of the runs before: not to be borne again. */
static bool was_dear(const TierUp *l) {
  return l->spent_s > MAX(DEAR_S * (double)l->runs, DEAR * l->all_s);
}

static void start_if_due(TierUp *l) {
  if (!l->started && l->spent_s > DUE * compile_s(l)) start_thread(l);
}

void tier_up_before_run(Code *c) {
  TierUp *l = c->tier_up;
  if (l->always) return;
  bool again = l->runs > 0, dear = again && was_dear(l), wait = again && l->run_s > compile_s(l);
  l->runs++;
  l->spent_s += l->run_s;
  l->all_s += l->code_s;
  if (dear && !l->started) start_thread(l);
  else start_if_due(l);
  if (!l->started || c->running) return;
  if (!wait && !tier_up_is_done(c)) return;
  pthread_join(l->thread, NULL);
  l->started = false;
  if (l->done) take(c, l, &l->made);
  else l->always = true;
}

bool tier_up_is_done(const Code *c) {
  return c->tier_up && __atomic_load_n(&c->tier_up->done, __ATOMIC_ACQUIRE);
}

Made *tier_up_made(const Code *c) {
  return c->tier_up && c->tier_up->complete ? &c->tier_up->made : NULL;
}

bool tier_up_iteration(Code *c, const StepCode *loop) {
  if (tier_up_is_done(c)) return true;
  TierUp *l = c->tier_up;
  pthread_mutex_lock(&c->lock);
  if (!l->always) {
    l->spent_s += loop->over_s;
    l->all_s += loop->turn_s;
    start_if_due(l);
  }
  pthread_mutex_unlock(&c->lock);
  return false;
}
