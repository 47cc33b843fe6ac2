/* Events: set once, waited for by threads and callbacks. Reference counted, because callers destroy
 * an event right after OnReady: one reference for the handle, one for whoever will set it.
 * Callbacks run without any lock held. */
#include "pjrt/pjrt_priv.h"

PJRT_Event *event_new(void) {
  PJRT_Event *e = xcalloc(1, sizeof *e);
  e->refs = 1;
  pthread_mutex_init(&e->lock, NULL);
  pthread_cond_init(&e->cond, NULL);
  return e;
}

PJRT_Event *event_ready(void) {
  static PJRT_Event always = {.refs = 1,
                              .ready = true,
                              .lock = PTHREAD_MUTEX_INITIALIZER,
                              .cond = PTHREAD_COND_INITIALIZER};
  return event_retain(&always);
}

bool event_is_ready(const PJRT_Event *e) { return __atomic_load_n(&e->ready, __ATOMIC_ACQUIRE); }

PJRT_Event *event_retain(PJRT_Event *e) {
  __atomic_fetch_add(&e->refs, 1, __ATOMIC_RELAXED);
  return e;
}

void event_release(PJRT_Event *e) {
  if (!e || __atomic_sub_fetch(&e->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
  error_free(e->error);
  vec_free(&e->waiters);
  pthread_mutex_destroy(&e->lock);
  pthread_cond_destroy(&e->cond);
  free(e);
}

void event_set(PJRT_Event *e, PJRT_Error *take) {
  pthread_mutex_lock(&e->lock);
  if (e->ready) {
    pthread_mutex_unlock(&e->lock);
    error_free(take);
    return;
  }
  e->error = take;
  __atomic_store_n(&e->ready, true, __ATOMIC_RELEASE);
  pthread_cond_broadcast(&e->cond);
  int n = e->waiters.n;
  EventWaiter *waiters = e->waiters.v;
  memset(&e->waiters, 0, sizeof e->waiters);
  pthread_mutex_unlock(&e->lock);
  event_retain(e); /* a waiter may drop the last reference */
  for (int i = 0; i < n; i++) waiters[i].fn(error_copy(take), waiters[i].arg);
  free(waiters);
  event_release(e);
}

void event_on_ready(PJRT_Event *e, PJRT_Event_OnReadyCallback fn, void *arg) {
  if (event_is_ready(e)) {
    fn(error_copy(e->error), arg);
    return;
  }
  pthread_mutex_lock(&e->lock);
  bool ready = e->ready;
  if (!ready) *vec_push(&e->waiters) = (EventWaiter){fn, arg};
  pthread_mutex_unlock(&e->lock);
  if (ready) fn(error_copy(e->error), arg);
}

const PJRT_Error *event_wait(PJRT_Event *e) {
  if (__atomic_load_n(&e->ready, __ATOMIC_ACQUIRE)) return e->error;
  pthread_mutex_lock(&e->lock);
  while (!e->ready) pthread_cond_wait(&e->cond, &e->lock);
  pthread_mutex_unlock(&e->lock);
  return e->error;
}

ENTRY(Event_Destroy) {
  event_release(a->event);
  return NULL;
}

ENTRY(Event_IsReady) {
  a->is_ready = __atomic_load_n(&a->event->ready, __ATOMIC_ACQUIRE);
  return NULL;
}

ENTRY(Event_Error) { return error_copy(event_wait(a->event)); }

ENTRY(Event_Await) { return error_copy(event_wait(a->event)); }

ENTRY(Event_OnReady) {
  event_on_ready(a->event, a->callback, a->user_arg);
  return NULL;
}

ENTRY(Event_Create) {
  a->event = event_new();
  return NULL;
}

ENTRY(Event_Set) {
  PJRT_Error *e = NULL;
  if (a->error_code != PJRT_Error_Code_OK)
    e = error_new((ErrCode)a->error_code, "%.*s", (int)a->error_message_size,
                  a->error_message ? a->error_message : "");
  event_set(a->event, e);
  return NULL;
}
