/* Execute: arguments checked and waited for, donation decided, the program run once for all its
 * processes, results wrapped. Long runs on one device go to the client's queue and Execute returns
 * at once with results that are promises. Callers that execute one device in each call (one thread
 * for each) meet in a rendezvous and the last to come runs the program for all. */
#include "pjrt/pjrt_priv.h"

typedef struct Run {
  PJRT_LoadedExecutable *l;
  int n, n_args;
  PJRT_Buffer *const **args; /* [process][argument] */
  PJRT_Buffer ***outs;       /* [process][result], the caller's arrays */
  const int64_t *keep;       /* arguments not to donate */
  size_t n_keep;
} Run;

static bool kept(const Run *r, int i) {
  for (size_t k = 0; k < r->n_keep; k++)
    if (r->keep[k] == i) return true;
  return false;
}

/* A donated buffer may occur only once among a process's arguments. Each is put into a table, at a
 * place that its address tells, or the next one free. */
static Err *check_donations(const Run *r, const bool *donated) {
  bool any = false;
  for (int i = 0; i < r->n_args; i++) any |= donated[i];
  if (!any || r->n_args == 1) return NULL;
  size_t room = 4;
  while (room < 2 * (size_t)r->n_args) room *= 2;
  int few[512], *first = room <= COUNT_OF(few) ? few : xmalloc(room * sizeof *first);
  Err *e = NULL;
  for (int p = 0; p < r->n && !e; p++) {
    PJRT_Buffer *const *args = r->args[p];
    memset(first, -1, room * sizeof *first);
    for (int i = 0; i < r->n_args && !e; i++) {
      size_t at = ((uintptr_t)args[i] >> 4) * 0x9e3779b97f4a7c15u >> 32 & (room - 1);
      while (first[at] >= 0 && args[first[at]] != args[i]) at = (at + 1) & (room - 1);
      if (first[at] < 0) first[at] = i;
      else if (donated[i] || donated[first[at]])
        e = err_hint(
            err_new(ERR_INVALID,
                    "Attempt to donate the same buffer twice in Execute() (argument %d, "
                    "process %d)",
                    donated[first[at]] ? first[at] : i, p),
            "f(donate(a), a) and f(donate(a), donate(a)) give the same array twice: copy it");
    }
  }
  if (first != few) free(first);
  return e;
}

static Err *wait_for(PJRT_Buffer *b, int i) {
  const PJRT_Error *failed = event_wait(b->ready);
  if (failed) return err_wrap(error_to_err(failed), "argument %d", i);
  if (!b->data || !__atomic_load_n(&b->data->t, __ATOMIC_ACQUIRE))
    return err_new(ERR_INVALID, "argument %d: the buffer has been deleted or donated", i);
  return NULL;
}

/* A result that is an argument passed through gets memory of its own: callers take it for a copy.
 */
static Err *separate(DevBuffer *out, DevBuffer *const *args, size_t n) {
  Tensor *t = out->t, *copy;
  if (__atomic_load_n(&t->refs, __ATOMIC_ACQUIRE) == 1 || !t->data) return NULL;
  for (size_t i = 0; i < n; i++) {
    const Tensor *arg = __atomic_load_n(&args[i]->t, __ATOMIC_ACQUIRE);
    if (!arg || arg->data != t->data) continue;
    TRY(tensor_new(t->dtype, t->rank, t->dims, &copy));
    memcpy(copy->data, t->data, tensor_bytes(t));
    out->t = copy;
    tensor_release(t);
    return NULL;
  }
  return NULL;
}

static void find_dropped(const Run *r, bool *dropped) {
  const int *aliases = r->l->exe->program->aliases;
  for (int i = 0; i < r->n_args; i++) dropped[i] = aliases[i] != -1 && !kept(r, i);
}

static Err *check_run(const Run *r) {
  if (r->l->deleted) return err_new(ERR_INVALID, "the executable has been deleted");
  if (r->n_args != r->l->exe->n_in)
    return err_new(ERR_INVALID, "'%s' takes %d arguments, %d were given", r->l->exe->name,
                   r->l->exe->n_in, r->n_args);
  return NULL;
}

/* The run itself, once the arguments' data is there. outs[process * results + result]. `dropped`
 * arguments lose their data. */
static Err *run_program(const Run *r, const bool *dropped, DevBuffer **all_outs) {
  PJRT_LoadedExecutable *l = r->l;
  PJRT_Executable *x = l->exe;
  size_t n = (size_t)r->n, na = (size_t)r->n_args, nr = (size_t)x->n_out;
  for (size_t k = 0; k < n; k++)
    for (size_t i = 0; i < na; i++) TRY(wait_for(r->args[k][i], (int)i));
  size_t bytes = sizeof(void *) * (n * na + 2 * n) + sizeof(int) * n + na;
  DevBuffer *near[512], **all_args = bytes <= sizeof near ? near : xmalloc(bytes); /* see dev.c */
  DevBuffer ***args = (DevBuffer ***)(all_args + n * na), ***outs = args + n;
  int *devices = (int *)(outs + n);
  bool *donated = (bool *)(devices + n);
  for (size_t k = 0; k < n; k++) {
    devices[k] = l->devices[k]->desc.id;
    args[k] = all_args + k * na;
    outs[k] = all_outs + k * nr;
    for (size_t i = 0; i < na; i++) args[k][i] = dev_buffer_retain(r->args[k][i]->data);
  }
  for (size_t i = 0; i < na; i++) {
    donated[i] = dropped[i];
    for (size_t k = 0; k < n && donated[i]; k++) {
      const Tensor *t = __atomic_load_n(&args[k][i]->t, __ATOMIC_ACQUIRE);
      if (!t || tensor_is_foreign(t))
        donated[i] = false; /* the caller's memory is not ours to write */
    }
  }
  DevRun run = {.trace = profiler_on()};
  ProfilerRun recorded = profiler_run_begin(x->program->dev);
  double t = time_now_s();
  Err *e = dev_execute(x->program, devices, (DevBuffer *const *const *)args, donated,
                       (DevBuffer * *const *)outs, &run);
  __atomic_store_n(&x->run_ns, (int64_t)((time_now_s() - t) * 1e9), __ATOMIC_RELAXED);
  if (e) profiler_run_failed(&recorded);
  else
    profiler_run_end(&recorded, x->program, devices, &run, (DevBuffer *const *const *)args,
                     (DevBuffer *const *const *)outs);
  free(run.spans);
  for (size_t i = 0; i < na && !e; i++)
    for (size_t k = 0; k < n && dropped[i]; k++) buffer_delete(r->args[k][i]);
  for (size_t k = 0; k < n && !e; k++)
    for (size_t j = 0; j < nr && !e; j++) {
      e = separate(outs[k][j], args[k], na);
      if (!e) continue;
      for (size_t q = 0; q < n * nr; q++) dev_buffer_release(all_outs[q]);
    }
  for (size_t k = 0; k < n * na; k++) dev_buffer_release(all_args[k]);
  if (all_args != near) free(all_args);
  return e;
}

static PJRT_Memory *result_memory(const PJRT_LoadedExecutable *l, size_t process, size_t result) {
  int kind = memory_kind_from(str_from(l->exe->kinds_out[result]));
  return l->devices[process]->memory_list[MAX(kind, 0)];
}

/* Runs before it returns. */
static Err *run_here(const Run *r) {
  TRY(check_run(r));
  PJRT_LoadedExecutable *l = r->l;
  size_t n = (size_t)r->n, nr = (size_t)l->exe->n_out;
  for (int k = 0; k < r->n; k++)
    for (int i = 0; i < r->n_args; i++)
      if (__atomic_load_n(&r->args[k][i]->deleted, __ATOMIC_ACQUIRE))
        return err_new(ERR_INVALID, "argument %d: the buffer has been deleted or donated", i);
  DevBuffer *few_outs[64], **outs = n * nr <= 64 ? few_outs : xmalloc(sizeof *outs * n * nr);
  bool few_dropped[256], *dropped = r->n_args <= 256 ? few_dropped : xmalloc((size_t)r->n_args);
  find_dropped(r, dropped);
  Err *e = check_donations(r, dropped);
  if (!e) e = run_program(r, dropped, outs);
  for (size_t k = 0; k < n && !e; k++)
    for (size_t j = 0; j < nr; j++) {
      r->outs[k][j] = buffer_wrap(result_memory(l, k, j), outs[k * nr + j]);
      r->outs[k][j]->layout = l->exe->layouts_out[j];
    }
  if (outs != few_outs) free(outs);
  if (dropped != few_dropped) free(dropped);
  return e;
}

/* ---- runs in the queue: one device. The arguments are held, so that callers may delete them (and
 * donation does) before the run; the results are promises. ---- */

/* Shorter runs are done by the caller: another thread would have to be woken, and then shares the
 * processors with the caller. On two cores a step of 0.1 to 0.2 ms that is waited for takes a fifth
 * less, one that is not a seventh more. */
#define QUICK_NS 250000
/* Of a caller who waited after the run before, and so has nothing to do meanwhile: on two cores, by
 * the caller, one of 0.3 to 0.5 ms takes a tenth to a fifth less, one of 5 ms a hundredth. */
#define WAITED_NS 10000000

typedef struct Queued {
  PJRT_LoadedExecutable *l;
  PJRT_Buffer **args, **outs; /* held; references of ours */
  PJRT_Event *done;           /* the results' event as well */
  bool *dropped;
} Queued;

static void run_queued(void *arg) {
  Queued *q = arg;
  PJRT_Executable *x = q->l->exe;
  DevBuffer **outs = xcalloc((size_t)x->n_out + 1, sizeof *outs);
  PJRT_Buffer *const *args = q->args;
  Run r = {.l = q->l, .n = 1, .n_args = x->n_in, .args = &args};
  PJRT_Error *e = error_from(run_program(&r, q->dropped, outs));
  for (int i = 0; i < x->n_in; i++) buffer_unhold(q->args[i]);
  for (int j = 0; j < x->n_out; j++) buffer_fill(q->outs[j], e ? NULL : outs[j]);
  event_set(q->done, e);
  event_release(q->done);
  for (int j = 0; j < x->n_out; j++) buffer_release(q->outs[j]);
  loaded_release(q->l);
  free(outs);
  free(q);
}

/* May the run go to the queue, and does it pay? Not when callers' threads are needed to finish it
 * (host callbacks) nor when its arguments come from elsewhere: nobody behind it should wait. */
static bool for_queue(const Run *r) {
  const PJRT_Executable *x = r->l->exe;
  if (!x->program->ops->async || r->l->n != 1 || x->not_queued || !x->client) return false;
  bool waited = __atomic_exchange_n(&x->client->asked, false, __ATOMIC_RELAXED), ready = true;
  for (int i = 0; i < r->n_args; i++) {
    const PJRT_Buffer *b = r->args[0][i];
    if (event_is_ready(b->ready)) continue;
    if (!b->from_queue || b->client != x->client) return false;
    ready = false;
  }
  int64_t ns = __atomic_load_n(&x->run_ns, __ATOMIC_RELAXED);
  return !ready || ns > (waited ? WAITED_NS : QUICK_NS);
}

/* false, without an error: it was not queued. */
static Err *enqueue(const Run *r, PJRT_Event **done, bool *queued) {
  TRY(check_run(r));
  PJRT_LoadedExecutable *l = r->l;
  PJRT_Executable *x = l->exe;
  size_t na = (size_t)x->n_in, nr = (size_t)x->n_out;
  Queued *q = xmalloc(sizeof *q + sizeof(void *) * (na + nr) + na);
  *q = (Queued){.l = l, .args = (PJRT_Buffer **)(q + 1)};
  q->outs = q->args + na;
  q->dropped = (bool *)(q->outs + nr);
  find_dropped(r, q->dropped);
  Err *e = check_donations(r, q->dropped);
  size_t held = 0;
  for (; held < na && !e; held++) {
    q->args[held] = r->args[0][held];
    e = err_wrap(buffer_hold(q->args[held]), "argument %zu", held);
    if (e) break;
  }
  if (e) {
    while (held) buffer_unhold(q->args[--held]);
    free(q);
    return e;
  }
  const int64_t *dims = x->out_dims;
  q->done = event_new();
  for (size_t j = 0; j < nr; j++) {
    q->outs[j] = buffer_promise_until(q->done, result_memory(l, 0, j), (DType)x->out_types[j],
                                      (int)x->out_ranks[j], dims);
    q->outs[j]->layout = x->layouts_out[j];
    q->outs[j]->from_queue = true;
    q->outs[j]->refs = 2;
    r->outs[0][j] = q->outs[j];
    dims += x->out_ranks[j];
  }
  if (done) *done = event_retain(q->done);
  __atomic_fetch_add(&l->refs, 1, __ATOMIC_RELAXED);
  for (size_t i = 0; i < na; i++)
    if (q->dropped[i]) buffer_delete(q->args[i]);
  if (!queue_push(x->client->queue, run_queued, q)) run_queued(q);
  *queued = true;
  return NULL;
}

/* ---- one device a call ---- */

struct Rendezvous {
  pthread_mutex_t lock;
  pthread_cond_t cond;
  int n, arrived;
  int64_t round;
  PJRT_Buffer *const **args;
  PJRT_Buffer ***outs;
  PJRT_Error *error; /* of the last finished round */
  int leaving;
};

struct Rendezvous *rendezvous_new(int n) {
  struct Rendezvous *r = xcalloc(1, sizeof *r);
  r->n = n;
  r->args = xcalloc((size_t)n, sizeof *r->args);
  r->outs = xcalloc((size_t)n, sizeof *r->outs);
  pthread_mutex_init(&r->lock, NULL);
  pthread_cond_init(&r->cond, NULL);
  return r;
}

void rendezvous_free(struct Rendezvous *r) {
  error_free(r->error);
  pthread_mutex_destroy(&r->lock);
  pthread_cond_destroy(&r->cond);
  free(r->args);
  free(r->outs);
  free(r);
}

static PJRT_Error *meet(PJRT_LoadedExecutable *l, int process, const Run *mine) {
  struct Rendezvous *r = l->rendezvous;
  pthread_mutex_lock(&r->lock);
  while (r->leaving || r->args[process]) pthread_cond_wait(&r->cond, &r->lock);
  r->args[process] = mine->args[0];
  r->outs[process] = mine->outs[0];
  int64_t round = r->round;
  if (++r->arrived == r->n) {
    Run all = *mine;
    all.n = r->n;
    all.args = r->args;
    all.outs = r->outs;
    Err *e = run_here(&all); /* the others only wait: the lock is not in anybody's way */
    error_free(r->error);
    r->error = error_from(e);
    memset(r->args, 0, sizeof *r->args * (size_t)r->n);
    r->arrived = 0;
    r->leaving = r->n;
    r->round++;
    pthread_cond_broadcast(&r->cond);
  }
  while (r->round == round) pthread_cond_wait(&r->cond, &r->lock);
  PJRT_Error *e = error_copy(r->error);
  if (--r->leaving == 0) pthread_cond_broadcast(&r->cond);
  pthread_mutex_unlock(&r->lock);
  return e;
}

ENTRY(LoadedExecutable_Execute) {
  PJRT_LoadedExecutable *l = a->executable;
  PJRT_ExecuteOptions *o = a->options;
  Run r = {.l = l, .n = (int)a->num_devices, .n_args = (int)a->num_args};
  if (o && PJRT_HAS(o, PJRT_ExecuteOptions, num_non_donatable_input_indices)) {
    r.keep = o->non_donatable_input_indices;
    r.n_keep = o->num_non_donatable_input_indices;
  }
  bool one = l->n > 1 && a->num_devices == 1 && a->execute_device;
  if ((int)a->num_devices != l->n && !one)
    return error_new(ERR_INVALID, "the program runs on %d devices, arguments came for %zu", l->n,
                     a->num_devices);
  PJRT_Buffer *const **args = (PJRT_Buffer *const **)a->argument_lists;
  r.args = args;
  r.outs = (PJRT_Buffer ***)a->output_lists;
  PJRT_Event **done = a->device_complete_events;
  if (one) {
    int process = 0;
    while (process < l->n && l->devices[process] != a->execute_device) process++;
    PTRY(process < l->n ? meet(l, process, &r)
                        : error_new(ERR_INVALID, "the program does not run on the given device"));
  } else if (l->n == 1 && a->execute_device && a->execute_device != l->devices[0]) {
    return error_new(ERR_UNIMPLEMENTED,
                     "weft: running a program on a device it was not compiled for");
  } else {
    bool queued = false;
    if (for_queue(&r)) PTRY(error_from(enqueue(&r, done, &queued)));
    if (queued) return NULL;
    PTRY(error_from(run_here(&r)));
  }
  for (size_t k = 0; k < a->num_devices && done; k++) done[k] = event_ready();
  return NULL;
}
