/* The thread pool: one for the process, made at first use.
 *
 * A job is (fn, arg, n) with an atomic cursor; the caller takes part, so a job always finishes even
 * when every worker is busy. One job runs at a time on the workers; a second caller (another
 * thread, or fn itself) runs its job inline, which keeps nesting free of deadlocks. Who waits spins
 * for a few microseconds, then sleeps on a futex-backed condition: with a core taken by somebody
 * else, long spinning costs more than it saves. So the caller too, which waits for the workers'
 * last indices: a worker that lost its core gets the caller's at once when that one sleeps.
 *
 * A worker that the kernel queued on its caller's CPU, because the others looked busy at that moment,
 * is of no use to jobs shorter than a slice of time, and may stay there for hundreds of them. When it
 * comes too late and finds itself there it moves away.
 *
 * The workers round, and treat denormals, as the job's caller does.
 */
#include "base/base.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#define SPIN_ROUNDS 2000
#define LAST_ROUNDS 8000 /* a caller, for the workers' last indices */
#define MAX_THREADS 256

typedef struct Job {
  void (*fn)(void *, int64_t);
  void *arg;
  int64_t n;
  unsigned modes;    /* of the caller's arithmetic: rounding, what becomes of denormals */
  atomic_llong next; /* first index not yet taken */
} Job;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int n_threads = 1;
static pthread_mutex_t caller_lock = PTHREAD_MUTEX_INITIALIZER; /* who may use the workers */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static Job *current;      /* guarded by lock */
static atomic_uint epoch; /* changes with every job */
static int sleepers;      /* guarded by lock */
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static atomic_int users;    /* workers inside the job */
static atomic_bool waiting; /* the caller sleeps until there are none */
static _Thread_local bool inside;
static atomic_int callers_cpu; /* of the last job */

static void work(Job *job) {
  inside = true;
  for (;;) {
    int64_t i = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
    if (i >= job->n) break;
    job->fn(job->arg, i);
  }
  inside = false;
}

static void leave(void) {
  if (atomic_fetch_sub(&users, 1) > 1 || !atomic_load(&waiting)) return;
  pthread_mutex_lock(&lock);
  pthread_cond_signal(&done);
  pthread_mutex_unlock(&lock);
}

static void wait_for_last(void) {
  for (int s = 0; s < LAST_ROUNDS; s++) {
    if (!atomic_load_explicit(&users, memory_order_acquire)) return;
    __builtin_ia32_pause();
  }
  pthread_mutex_lock(&lock);
  atomic_store(&waiting, true);
  while (atomic_load(&users) > 0) pthread_cond_wait(&done, &lock);
  atomic_store(&waiting, false);
  pthread_mutex_unlock(&lock);
}

static bool on_callers_cpu(void) {
  int cpu = atomic_load_explicit(&callers_cpu, memory_order_relaxed);
  return cpu >= 0 && cpu < CPU_SETSIZE && sched_getcpu() == cpu;
}

/* To any other CPU; from there the kernel takes it where it likes. */
static void move_away(void) {
  cpu_set_t all, others;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  others = all;
  CPU_CLR(sched_getcpu(), &others);
  if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0)
    sched_setaffinity(0, sizeof all, &all);
}

static void *worker(void *unused) {
  (void)unused;
  unsigned seen = 0;
  for (;;) {
    for (int s = 0; s < SPIN_ROUNDS && atomic_load_explicit(&epoch, memory_order_acquire) == seen;
         s++)
      __builtin_ia32_pause();
    pthread_mutex_lock(&lock);
    while (atomic_load_explicit(&epoch, memory_order_relaxed) == seen) {
      sleepers++;
      pthread_cond_wait(&wake, &lock);
      sleepers--;
    }
    seen = atomic_load_explicit(&epoch, memory_order_relaxed);
    Job *job = current;
    if (job) atomic_fetch_add(&users, 1);
    pthread_mutex_unlock(&lock);
    if (!job) { /* too late; a worker in time stays, as an idle CPU will fetch the caller */
      if (on_callers_cpu()) move_away();
      continue;
    }
    __builtin_ia32_ldmxcsr(job->modes);
    work(job);
    leave();
  }
  return NULL;
}

static void start(void) {
  cpu_set_t set;
  n_threads = (int)env_int("WEFT_THREADS", 1, MAX_THREADS, 0);
  if (!n_threads && sched_getaffinity(0, sizeof set, &set) == 0)
    n_threads = MIN(CPU_COUNT(&set), MAX_THREADS);
  n_threads = MAX(n_threads, 1);
  for (int i = 1; i < n_threads; i++) {
    pthread_t t;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, (size_t)8 << 20);
    if (pthread_create(&t, &attr, worker, NULL) != 0) n_threads = i;
    pthread_attr_destroy(&attr);
  }
}

int pool_threads(void) {
  pthread_once(&once, start);
  return n_threads;
}

void pool_run(int64_t n, void (*fn)(void *arg, int64_t i), void *arg) {
  if (n <= 0) return;
  if (n == 1 || inside || pool_threads() == 1 || pthread_mutex_trylock(&caller_lock) != 0) {
    for (int64_t i = 0; i < n; i++) fn(arg, i);
    return;
  }
  Job job = {.fn = fn, .arg = arg, .n = n, .modes = __builtin_ia32_stmxcsr()};
  atomic_store_explicit(&callers_cpu, sched_getcpu(), memory_order_relaxed);
  pthread_mutex_lock(&lock);
  current = &job;
  atomic_fetch_add_explicit(&epoch, 1, memory_order_release);
  if (sleepers) pthread_cond_broadcast(&wake);
  pthread_mutex_unlock(&lock);
  work(&job);
  pthread_mutex_lock(&lock); /* nobody can enter the job from here on */
  current = NULL;
  pthread_mutex_unlock(&lock);
  wait_for_last();
  pthread_mutex_unlock(&caller_lock);
}
