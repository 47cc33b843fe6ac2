/* Execute: arguments checked and waited for, donation decided, the program run once for all its
 * processes, results wrapped. Long runs go to the (first) device's queue and Execute returns
 * at once with results that are promises. Callers may execute one device in each call: programs
 * without exchange then are like those of one device; the others always go to the device's queue,
 * where they wait for each other, collective by collective (dev/exchange.h). */
#include "pjrt/pjrt_priv.h"

typedef struct Run {
  PJRT_LoadedExecutable *l;
  int n, n_args;
  const int *process;        /* [n] which of the program's processes these are; NULL: all */
  int one;                   /* room for it when n is 1 */
  PJRT_Device *device;       /* for one call of a program of one process; NULL: the program's */
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
                    "Attempt to donate the same buffer twice in Execute() (arguments %d and %d of "
                    "process %d, of which %s donated)",
                    first[at], i, p,
                    !donated[i]           ? "the first is"
                    : !donated[first[at]] ? "the second is"
                                          : "both are"),
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

static PJRT_Device *device_of(const Run *r, size_t k) {
  return r->device ? r->device : r->l->devices[r->process ? r->process[k] : (int)k];
}

/* An argument lies where its process runs. Nobody copies it there: callers do, by Buffer_CopyToDevice. */
static Err *check_devices(const Run *r) {
  for (int k = 0; k < r->n; k++) {
    const PJRT_Device *d = device_of(r, (size_t)k);
    for (int i = 0; i < r->n_args; i++) {
      const PJRT_Device *at = r->args[k][i]->memory->device;
      if (at == d) continue;
      return err_hint(err_new(ERR_INVALID,
                              "argument %d of '%s' is on device %s, but process %d of the program "
                              "runs on device %s",
                              i, r->l->exe->name, at->desc.debug, r->process ? r->process[k] : k,
                              d->desc.debug),
                      "copy it there first (jax.device_put, .to(device))");
    }
  }
  return NULL;
}

static Err *check_run(const Run *r) {
  if (r->l->deleted) return err_new(ERR_INVALID, "the executable has been deleted");
  if (r->n_args != r->l->exe->n_in)
    return err_new(ERR_INVALID, "'%s' takes %d arguments, %d were given", r->l->exe->name,
                   r->l->exe->n_in, r->n_args);
  return check_devices(r);
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
    devices[k] = device_of(r, k)->desc.id;
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
  DevPart part = {.n = r->n, .devices = devices};
  if (r->n < l->n) part.process = r->process, part.job = l->ids;
  Err *e = dev_execute(x->program, &part, (DevBuffer *const *const *)args, donated,
                       (DevBuffer * *const *)outs, &run);
  __atomic_store_n(&x->run_ns, (int64_t)((time_now_s() - t) * 1e9), __ATOMIC_RELAXED);
  if (!e) clock_advance(&part, run.time_s > 0 ? run.time_s : 0);
  if (e) profiler_run_failed(&recorded);
  else
    profiler_run_end(&recorded, x->program, &part, &run, (DevBuffer *const *const *)args,
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

static PJRT_Memory *result_memory(const Run *r, size_t k, size_t result) {
  int kind = memory_kind_from(str_from(r->l->exe->kinds_out[result]));
  return device_of(r, k)->memory_list[MAX(kind, 0)];
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
      r->outs[k][j] = buffer_wrap(result_memory(r, k, j), outs[k * nr + j]);
      r->outs[k][j]->layout = l->exe->layouts_out[j];
    }
  if (outs != few_outs) free(outs);
  if (dropped != few_dropped) free(dropped);
  return e;
}

/* ---- runs in a device's queue. The arguments are held, so that callers may delete them (and
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
  int n;                      /* processes: one, or all */
  int process;                /* of all, when n is 1 */
  PJRT_Device *device;        /* NULL: all of the program's */
  PJRT_Buffer *const **lists; /* [n] of args, by process */
  PJRT_Buffer **args, **outs; /* [n * arguments] held; [n * results] references of ours */
  PJRT_Event *done;           /* the results' event as well */
  bool *dropped;
} Queued;

static int64_t bytes_of(const PJRT_Buffer *b) {
  int64_t n = dtype_bytes(b->dtype);
  for (int i = 0; i < b->rank; i++) n *= b->dims[i];
  return b->memory == b->memory->device->memory_list[MEM_DEVICE] ? n : 0;
}

/* What the results under way will take of their devices' memory, above what is given up for them: who asks how much is in use
 * is told as if they were there. sign: -1 when they are. */
static void count_promised(const Queued *q, int sign) {
  const PJRT_Executable *x = q->l->exe;
  for (int k = 0; k < q->n; k++) {
    int64_t bytes = 0;
    for (int j = 0; j < x->n_out; j++) bytes += bytes_of(q->outs[k * x->n_out + j]);
    for (int i = 0; i < x->n_in; i++)
      if (q->dropped[i]) bytes -= bytes_of(q->args[k * x->n_in + i]);
    PJRT_Device *d = q->device ? q->device : q->l->devices[q->n == 1 ? q->process : k];
    __atomic_fetch_add(&d->promised, sign * MAX(bytes, 0), __ATOMIC_RELAXED);
  }
}

/* Does the run exchange values with those of other devices? */
static bool meets(const Run *r) { return r->n < r->l->n && r->l->exe->program->copies == 1; }

static Err *run_whole_when_all_came(const Queued *q, DevBuffer **outs);

static void run_queued(void *arg) {
  Queued *q = arg;
  PJRT_Executable *x = q->l->exe;
  int n_args = q->n * x->n_in, n_outs = q->n * x->n_out;
  DevBuffer **outs = xcalloc((size_t)n_outs + 1, sizeof *outs);
  Run r = {.l = q->l,
           .n = q->n,
           .n_args = x->n_in,
           .args = q->lists,
           .process = q->n == 1 ? &q->process : NULL,
           .device = q->device};
  bool together = meets(&r) && !dev_program_splits(x->program) && q->l->n_near > 1;
  PJRT_Error *e =
      error_from(together ? run_whole_when_all_came(q, outs) : run_program(&r, q->dropped, outs));
  count_promised(q, -1);
  for (int i = 0; i < n_args; i++) buffer_unhold(q->args[i]);
  for (int j = 0; j < n_outs; j++) buffer_fill(q->outs[j], e ? NULL : outs[j]);
  event_set(q->done, e);
  event_release(q->done);
  for (int j = 0; j < n_outs; j++) buffer_release(q->outs[j]);
  loaded_release(q->l);
  free(outs);
  free(q);
}

/* May the run go to the queue, and does it pay? Not when callers' threads are needed to finish it
 * (host callbacks) nor when its arguments come from elsewhere: nobody behind it should wait. Nor
 * while a virtual device is recorded: what its caller does meanwhile is on the axis. Who
 * exchanges must not keep its caller: that may be the one who brings the others. */
static bool for_queue(const Run *r) {
  const PJRT_Executable *x = r->l->exe;
  if (x->not_queued || !x->client) return false;
  if (meets(r)) return r->n == 1;
  if (!x->program->ops->async || (profiler_on() && dev_is_virtual(x->program->dev))) return false;
  bool waited = false, ready = true;
  for (int k = 0; k < r->n; k++) {
    waited |= __atomic_exchange_n(&device_of(r, (size_t)k)->asked, false, __ATOMIC_RELAXED);
    for (int i = 0; i < r->n_args; i++) {
      const PJRT_Buffer *b = r->args[k][i];
      if (event_is_ready(b->ready)) continue;
      if (!b->from_queue || b->client != x->client) return false;
      ready = false;
    }
  }
  int64_t ns = __atomic_load_n(&x->run_ns, __ATOMIC_RELAXED);
  return !ready || ns > (waited ? WAITED_NS : QUICK_NS);
}

static Err *hold_arguments(const Run *r, Queued *q) {
  find_dropped(r, q->dropped);
  TRY(check_donations(r, q->dropped));
  for (int at = 0; at < r->n * r->n_args; at++) {
    int k = at / r->n_args, i = at % r->n_args;
    if (!i) q->lists[k] = q->args + at;
    q->args[at] = r->args[k][i];
    Err *e = err_wrap(buffer_hold(q->args[at]), "argument %d", i);
    while (e && at) buffer_unhold(q->args[--at]);
    TRY(e);
  }
  return NULL;
}

/* Is there room now, as far as can be told while arguments are still being computed? The caller of
 * a queued run hears of it at once. */
static Err *check_room(const Run *r) {
  const DevProgram *p = r->l->exe->program;
  size_t n = (size_t)r->n, na = (size_t)r->n_args;
  if (!p->ops->beside) return NULL;
  for (size_t at = 0; at < n * na; at++)
    if (!event_is_ready(r->args[at / na][at % na]->ready)) return NULL;
  DevBuffer **all = xcalloc(n * na + 1, sizeof *all), *const **args = xcalloc(n, sizeof *args);
  int *devices = xcalloc(n, sizeof *devices);
  Err *e = NULL;
  for (size_t k = 0; k < n; k++) {
    devices[k] = device_of(r, k)->desc.id;
    args[k] = all + k * na;
    for (size_t i = 0; i < na && !e; i++)
      if (!(all[k * na + i] = r->args[k][i]->data)) e = wait_for(r->args[k][i], (int)i);
  }
  if (!e) e = dev_fits(p, (int)n, devices, args);
  free(devices);
  free(args);
  free(all);
  return e;
}

static Queued *queued_new(const Run *r) {
  size_t n = (size_t)r->n, na = n * (size_t)r->n_args, nr = n * (size_t)r->l->exe->n_out;
  Queued *q = xmalloc(sizeof *q + sizeof(void *) * (n + na + nr) + (size_t)r->n_args);
  *q = (Queued){.l = r->l,
                .n = r->n,
                .process = r->n == 1 && r->process ? r->process[0] : 0,
                .device = r->n == 1 ? device_of(r, 0) : NULL,
                .lists = (PJRT_Buffer *const **)(q + 1)};
  q->args = (PJRT_Buffer **)(q->lists + n);
  q->outs = q->args + na;
  q->dropped = (bool *)(q->outs + nr);
  return q;
}

/* The results of process k, as promises. */
static void promise_results(const Run *r, Queued *q, size_t k) {
  const PJRT_Executable *x = r->l->exe;
  const int64_t *dims = x->out_dims;
  for (size_t j = 0; j < (size_t)x->n_out; j++) {
    PJRT_Buffer *b = buffer_promise_until(q->done, result_memory(r, k, j), (DType)x->out_types[j],
                                          (int)x->out_ranks[j], dims);
    b->layout = x->layouts_out[j];
    b->from_queue = true;
    b->refs = 2;
    q->outs[k * (size_t)x->n_out + j] = r->outs[k][j] = b;
    dims += x->out_ranks[j];
  }
}

/* A run of several devices goes to the queue of the first. Whoever waits in a queue waits for runs
 * that were asked for before: nobody waits in a circle. */
static Err *enqueue(const Run *r, PJRT_Event **done) {
  TRY(check_run(r));
  Queued *q = queued_new(r);
  Err *e = hold_arguments(r, q);
  if (!e && (e = check_room(r)))
    for (int at = 0; at < r->n * r->n_args; at++) buffer_unhold(q->args[at]);
  if (e) {
    free(q);
    return e;
  }
  q->done = event_new();
  for (size_t k = 0; k < (size_t)r->n; k++) {
    promise_results(r, q, k);
    if (done) done[k] = event_retain(q->done);
  }
  count_promised(q, 1);
  __atomic_fetch_add(&r->l->refs, 1, __ATOMIC_RELAXED);
  for (int at = 0; at < r->n * r->n_args; at++)
    if (q->dropped[at % r->n_args]) buffer_delete(q->args[at]);
  if (!queue_push(device_of(r, 0)->queue, run_queued, q, !meets(r))) run_queued(q);
  return NULL;
}

/* ---- one device a call, of a program that only runs as a whole ---- */

/* in[0]: the Queued of a process; out: its results */
static Err *run_whole(void *arg, const ExchangeHand *hands, const size_t *bytes) {
  PJRT_LoadedExecutable *l = arg;
  (void)bytes;
  size_t n = (size_t)l->n, nr = (size_t)l->exe->n_out;
  DevBuffer **outs = xcalloc(n * nr + 1, sizeof *outs);
  PJRT_Buffer *const **args = xcalloc(n, sizeof *args);
  const Queued *first = hands[0].in[0];
  for (size_t k = 0; k < n; k++) args[k] = ((const Queued *)hands[k].in[0])->args;
  Run r = {.l = l, .n = l->n, .n_args = l->exe->n_in, .args = args};
  Err *e = run_program(&r, first->dropped, outs);
  for (size_t k = 0; k < n && !e; k++) memcpy(hands[k].out[0], outs + k * nr, sizeof *outs * nr);
  free(args);
  free(outs);
  return e;
}

static Err *run_whole_when_all_came(const Queued *q, DevBuffer **outs) {
  PJRT_LoadedExecutable *l = q->l;
  char *what = xasprintf("program '%s'", l->exe->name);
  void *in[1] = {(void *)(uintptr_t)q}, *out[1] = {outs};
  int device = q->device->desc.id;
  Exchange *x = l->exe->program->dev->exchange;
  ExchangeCall c = {.what = what,
                    .kind = hash_bytes(l->exe->fingerprint, strlen(l->exe->fingerprint), 1),
                    .channel = -1,
                    .n = l->n,
                    .members = l->ids,
                    .n_mine = 1,
                    .mine = &q->process,
                    .hands = &(ExchangeHand){in, out},
                    .finish = run_whole,
                    .arg = l};
  exchange_begin(x, 1, &device, l->exe->name);
  Err *e = exchange_join(x, &c);
  exchange_end(x, 1, &device, e);
  free(what);
  return e;
}

/* ---- the entry ---- */

/* One device of several. errors: it is none of them */
static Err *find_process(Run *r, PJRT_Device *device) {
  while (r->one < r->l->n && r->l->devices[r->one] != device) r->one++;
  r->device = device;
  r->process = &r->one;
  if (r->one < r->l->n) return NULL;
  return err_new(ERR_INVALID, "the program does not run on the given device");
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
  if ((int)a->num_devices != l->n_near && !one)
    return error_new(ERR_INVALID, "the program runs on %d devices here, arguments came for %zu",
                     l->n_near, a->num_devices);
  if (!a->num_devices) return NULL; /* all of it runs on other processes' devices */
  PJRT_Buffer *const **args = (PJRT_Buffer *const **)a->argument_lists;
  r.args = args;
  r.outs = (PJRT_Buffer ***)a->output_lists;
  PJRT_Event **done = a->device_complete_events;
  if (one) PTRY(error_from(find_process(&r, a->execute_device)));
  else if (l->n == 1 && a->execute_device) r.device = a->execute_device;
  else if (l->n_near < l->n) r.process = l->near;
  if (one && !meets(&r))
    exchange_remember(l->exe->program->dev->exchange, r.device->desc.id, l->exe->name);
  if (for_queue(&r)) return error_from(enqueue(&r, done));
  for (int k = 0; k < r.n && meets(&r); k++) /* their calls in the order they were made */
    queue_drain(device_of(&r, (size_t)k)->queue);
  PTRY(error_from(run_here(&r)));
  for (size_t k = 0; k < a->num_devices && done; k++) done[k] = event_ready();
  return NULL;
}
