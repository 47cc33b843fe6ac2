/* One thread runs the network; those that ask wait in a list. */
#include "infer/batcher.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { LAST = 1000 };

typedef struct Asked { /* on the stack of who asks */
  const void *input;
  float *logits;
  Err *(*fn)(void *arg, Infer *i); /* instead of an example */
  void *arg;
  Err *error;
  double since;
  bool done;
  struct Asked *next;
} Asked;

struct Batcher {
  Infer *infer;
  int64_t most;
  double wait_s;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t asked, answered;
  Asked *first, **end;
  int64_t waiting;
  bool stop;
  int64_t examples, batches;
  double last[LAST];
  char *inputs;
  float *outputs;
};

/* Up to `most` examples from the front of the list; or one call alone. */
static Asked *take(Batcher *b, int64_t *n) {
  Asked *first = b->first, *last = first;
  *n = 1;
  while (!first->fn && *n < b->most && last->next && !last->next->fn) last = last->next, ++*n;
  b->first = last->next;
  if (!b->first) b->end = &b->first;
  last->next = NULL;
  b->waiting -= *n;
  return first;
}

static Err *run(Batcher *b, Asked *first, int64_t n) {
  if (first->fn) return first->fn(first->arg, b->infer);
  size_t in = infer_input_bytes(b->infer);
  int64_t out = infer_outputs(b->infer), k = 0;
  for (Asked *a = first; a; a = a->next) memcpy(b->inputs + in * (size_t)k++, a->input, in);
  Err *e = infer_forward(b->infer, n, b->inputs, b->outputs);
  k = 0;
  for (Asked *a = first; a && !e; a = a->next)
    memcpy(a->logits, b->outputs + out * k++, sizeof(float) * (size_t)out);
  return e;
}

/* Everybody in the batch gets the error in words of their own. */
static void answer(Batcher *b, Asked *first, Err *e) {
  double now = time_now_s();
  b->batches++;
  for (Asked *a = first, *next; a; a = next) {
    next = a->next;
    if (e) a->error = err_new(e->code, "%s", e->msg);
    b->last[b->examples++ % LAST] = now - a->since;
    a->done = true;
  }
  err_free(e);
  pthread_cond_broadcast(&b->answered);
}

/* Until the batch is full or the first of it has waited long enough. */
static void gather(Batcher *b) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  long ns = until.tv_nsec + (long)(b->wait_s * 1e9);
  until.tv_sec += ns / 1000000000;
  until.tv_nsec = ns % 1000000000;
  while (!b->stop && b->waiting < b->most && !b->first->fn)
    if (pthread_cond_timedwait(&b->asked, &b->lock, &until)) break;
}

static void *work(void *arg) {
  Batcher *b = arg;
  pthread_mutex_lock(&b->lock);
  for (;;) {
    while (!b->first && !b->stop) pthread_cond_wait(&b->asked, &b->lock);
    if (!b->first) break;
    gather(b);
    int64_t n;
    Asked *first = take(b, &n);
    pthread_mutex_unlock(&b->lock);
    Err *e = run(b, first, n);
    pthread_mutex_lock(&b->lock);
    answer(b, first, e);
  }
  pthread_mutex_unlock(&b->lock);
  return NULL;
}

Err *batcher_open(Infer *i, int64_t most, double wait_s, Batcher **out) {
  Batcher *b = xcalloc(1, sizeof *b);
  *b = (Batcher){.infer = i, .most = most, .wait_s = wait_s};
  b->end = &b->first;
  b->inputs = xmalloc(infer_input_bytes(i) * (size_t)most);
  b->outputs = xmalloc(sizeof(float) * (size_t)(infer_outputs(i) * most));
  pthread_mutex_init(&b->lock, NULL);
  pthread_cond_init(&b->asked, NULL);
  pthread_cond_init(&b->answered, NULL);
  if (pthread_create(&b->thread, NULL, work, b)) {
    free(b->inputs);
    free(b->outputs);
    free(b);
    return err_new(ERR_EXHAUSTED, "cannot start a thread");
  }
  *out = b;
  return NULL;
}

void batcher_close(Batcher *b) {
  if (!b) return;
  pthread_mutex_lock(&b->lock);
  b->stop = true;
  pthread_cond_broadcast(&b->asked);
  pthread_mutex_unlock(&b->lock);
  pthread_join(b->thread, NULL);
  pthread_mutex_destroy(&b->lock);
  pthread_cond_destroy(&b->asked);
  pthread_cond_destroy(&b->answered);
  free(b->inputs);
  free(b->outputs);
  free(b);
}

static Err *ask(Batcher *b, Asked *a) {
  a->since = time_now_s();
  pthread_mutex_lock(&b->lock);
  *b->end = a;
  b->end = &a->next;
  b->waiting++;
  pthread_cond_signal(&b->asked);
  while (!a->done) pthread_cond_wait(&b->answered, &b->lock);
  pthread_mutex_unlock(&b->lock);
  return a->error;
}

Err *batcher_ask(Batcher *b, const void *input, float *logits) {
  return ask(b, &(Asked){.input = input, .logits = logits});
}

Err *batcher_alone(Batcher *b, Err *(*fn)(void *arg, Infer *i), void *arg) {
  return ask(b, &(Asked){.fn = fn, .arg = arg});
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

void batcher_stats(Batcher *b, BatcherStats *out) {
  double v[LAST];
  pthread_mutex_lock(&b->lock);
  *out = (BatcherStats){.examples = b->examples, .batches = b->batches};
  int n = (int)MIN(b->examples, LAST);
  memcpy(v, b->last, sizeof *v * (size_t)n);
  pthread_mutex_unlock(&b->lock);
  qsort(v, (size_t)n, sizeof *v, by_value);
  if (n) out->p50_s = v[n / 2], out->p99_s = v[MIN(n - 1, n * 99 / 100)];
}
