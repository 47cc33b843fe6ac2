/* The queue of a device: runs that Execute left to a thread of ours, in order. The thread starts
 * with the first of them and belongs to the queue, not to the client: a client may go away inside
 * the last task, and the thread then ends by itself. A caller that is far ahead waits, so that a
 * loop without a look at its results does not collect runs without end; but not one whose run waits for
 * those of other devices, which may come from this caller too. */
#include "pjrt/pjrt_priv.h"

#define MOST_WAITING 32

typedef struct Task {
  struct Task *next;
  void (*fn)(void *arg);
  void *arg;
} Task;

struct Queue {
  pthread_mutex_t lock;
  pthread_cond_t more, less;
  Task *first, **last;
  int waiting; /* not begun */
  bool busy;
  bool started, closed;
  bool is_virtual;
  struct Queue *next; /* of all that there are */
};
static struct Queue *all;
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;

static _Thread_local bool is_worker;

struct Queue *queue_new(bool is_virtual) {
  struct Queue *q = xcalloc(1, sizeof *q);
  q->is_virtual = is_virtual;
  pthread_mutex_init(&q->lock, NULL);
  pthread_cond_init(&q->more, NULL);
  pthread_cond_init(&q->less, NULL);
  q->last = &q->first;
  pthread_mutex_lock(&all_lock);
  q->next = all;
  all = q;
  pthread_mutex_unlock(&all_lock);
  return q;
}

static void queue_free(struct Queue *q) {
  pthread_mutex_lock(&all_lock);
  struct Queue **at = &all;
  while (*at != q) at = &(*at)->next;
  *at = q->next;
  pthread_mutex_unlock(&all_lock);
  pthread_mutex_destroy(&q->lock);
  pthread_cond_destroy(&q->more);
  pthread_cond_destroy(&q->less);
  free(q);
}

static void *work(void *arg) {
  struct Queue *q = arg;
  is_worker = true;
  pthread_mutex_lock(&q->lock);
  for (;;) {
    while (!q->first && !q->closed) pthread_cond_wait(&q->more, &q->lock);
    Task *t = q->first;
    if (!t) break;
    if (!(q->first = t->next)) q->last = &q->first;
    q->waiting--;
    q->busy = true;
    pthread_cond_broadcast(&q->less);
    pthread_mutex_unlock(&q->lock);
    t->fn(t->arg);
    free(t);
    pthread_mutex_lock(&q->lock);
    q->busy = false;
    pthread_cond_broadcast(&q->less);
  }
  pthread_mutex_unlock(&q->lock);
  queue_free(q);
  return NULL;
}

static bool start(struct Queue *q) {
  pthread_t thread;
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attr, (size_t)16 << 20);
  q->started = pthread_create(&thread, &attr, work, q) == 0;
  pthread_attr_destroy(&attr);
  return q->started;
}

bool queue_push(struct Queue *q, void (*fn)(void *arg), void *arg, bool patient) {
  pthread_mutex_lock(&q->lock);
  if (!q->started && !start(q)) {
    pthread_mutex_unlock(&q->lock);
    return false;
  }
  while (patient && q->waiting >= MOST_WAITING && !is_worker) pthread_cond_wait(&q->less, &q->lock);
  Task *t = xcalloc(1, sizeof *t);
  *t = (Task){.fn = fn, .arg = arg};
  *q->last = t;
  q->last = &t->next;
  q->waiting++;
  pthread_cond_signal(&q->more);
  pthread_mutex_unlock(&q->lock);
  return true;
}

void queue_drain(struct Queue *q) {
  if (is_worker) return;
  pthread_mutex_lock(&q->lock);
  while (q->first || q->busy) pthread_cond_wait(&q->less, &q->lock);
  pthread_mutex_unlock(&q->lock);
}

void queue_drain_for(struct Queue *q, int seconds) {
  if (is_worker) return;
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += seconds;
  pthread_mutex_lock(&q->lock);
  while (q->first || q->busy)
    if (pthread_cond_timedwait(&q->less, &q->lock, &until)) break;
  pthread_mutex_unlock(&q->lock);
}

void queues_drain_virtual(void) {
  pthread_mutex_lock(&all_lock);
  for (struct Queue *q = all; q; q = q->next)
    if (q->is_virtual) queue_drain(q);
  pthread_mutex_unlock(&all_lock);
}

void queue_close(struct Queue *q) {
  pthread_mutex_lock(&q->lock);
  bool started = q->started;
  q->closed = true;
  pthread_cond_signal(&q->more);
  pthread_mutex_unlock(&q->lock);
  if (!started) queue_free(q);
}
