/* A thread that tells what is under way. */
#include "cli/waiting.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#define FIRST_S 4 /* what is over sooner needs no words */
#define EVERY_S 10

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_t thread;
static struct {
  bool running;
  char what[160];
  const char *doing, *name;
} now;

static void *tell(void *unused) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += FIRST_S;
  int seconds = FIRST_S;
  pthread_mutex_lock(&lock);
  while (now.running) {
    if (pthread_cond_timedwait(&changed, &lock, &until) == 0) continue;
    if (!now.running) break;
    fprintf(stderr, "%s", now.what);
    if (now.doing) fprintf(stderr, ", %s %s", now.doing, now.name);
    fprintf(stderr, ", %d s\n", seconds);
    until.tv_sec += EVERY_S;
    seconds += EVERY_S;
  }
  pthread_mutex_unlock(&lock);
  return unused;
}

void waiting_begin(const char *what) {
  snprintf(now.what, sizeof now.what, "%s", what);
  now.doing = NULL;
  now.running = true;
  if (pthread_create(&thread, NULL, tell, NULL)) now.running = false;
}

void waiting_now(const char *doing, const char *name) {
  pthread_mutex_lock(&lock);
  now.doing = doing;
  now.name = name;
  pthread_mutex_unlock(&lock);
}

void waiting_end(void) {
  if (!now.running) return;
  pthread_mutex_lock(&lock);
  now.running = false;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&lock);
  pthread_join(thread, NULL);
}
