/* Runs of several processes, each in a thread of its own, as XLA has all: of programs whose processes go different ways, and
 * of those in which they call their caller, whose functions may wait for each other's, when they fail as well. All
 * others run in step, which takes no threads and computes once what processes share. */
#include "dev/cpu/cpu_priv.h"

#include <pthread.h>

#include "interp/interp.h"
#include "ir/exchange.h"

static Err *find_call(Op *op, void *found) {
  *(bool *)found |= op_is_host_callback(op);
  return NULL;
}

bool plan_runs_apart(const DevProgram *prog, const Plan *p) {
  bool calls = false;
  if (p->n_procs == 1 || !dev_program_splits(prog)) return false;
  err_free(ir_walk(p->main->body, find_call, &calls));
  return calls || p->diverges;
}

typedef struct Lane { /* of one process */
  Code *c;
  const DevProgram *prog;
  DevPart part;
  int process, device;
  const Shards *args;
  const bool *donated;
  Shards *results;
  Trace *trace;
  Exchange *exchange; /* where its end is told */
  pthread_t thread;
  bool started;
  Err *e;
} Lane;

static void *run_lane(void *arg) {
  Lane *l = arg;
  l->e = code_run(l->c, l->prog, &l->part, l->args, l->donated, l->results, l->trace);
  if (l->part.exchange || l->e) exchange_end(l->exchange, 1, &l->device, l->e);
  return NULL;
}

/* Lane 0 is the caller's. A thread that cannot be had fails its lane, for which the others wait. */
static void run_lanes(Lane *lanes, int n) {
  for (int k = 1; k < n; k++) {
    Lane *l = &lanes[k];
    l->started = pthread_create(&l->thread, NULL, run_lane, l) == 0;
    if (l->started) continue;
    l->e = err_new(ERR_EXHAUSTED, "no thread for device %d", l->device);
    exchange_end(l->exchange, 1, &l->device, l->e);
  }
  run_lane(&lanes[0]);
  for (int k = 1; k < n; k++)
    if (lanes[k].started) pthread_join(lanes[k].thread, NULL);
}

/* What went wrong first: not that others were waited for in vain. */
static Err *take_error(Lane *lanes, int n) {
  int cause = -1;
  for (int k = 0; k < n; k++)
    if (lanes[k].e &&
        (cause < 0 || (lanes[cause].e->code == ERR_ABORTED && lanes[k].e->code != ERR_ABORTED)))
      cause = k;
  for (int k = 0; k < n; k++)
    if (k != cause) err_free(lanes[k].e);
  return cause < 0 ? NULL : lanes[cause].e;
}

/* A result that all have the same is the first one's. */
static void join_result(const Lane *lanes, int n, int j, Shards *out) {
  const Plan *p = lanes[0].c->plan;
  int place = p->results[j].place;
  bool own = place >= 0 && p->places[place].owners;
  *out = (Shards){own ? n : 1, xcalloc(own ? (size_t)n : 1, sizeof(Tensor *))};
  for (int k = 0; k < out->n; k++) out->t[k] = tensor_retain(lanes[k].results[j].t[0]);
}

static Err *run_and_join(Lane *lanes, int n, Shards *results) {
  int n_results = lanes[0].c->plan->n_results;
  run_lanes(lanes, n);
  Err *e = take_error(lanes, n);
  for (int j = 0; j < n_results; j++) {
    if (!e) join_result(lanes, n, j, &results[j]);
    for (int k = 0; k < n; k++) shards_free(&lanes[k].results[j]);
  }
  return e;
}

/* args[k * n_args + i] of lane k. Nobody may write to what all have. */
static void divide(int n, int n_args, const Shards *all, const bool *donated, Shards *args,
                   bool *given) {
  for (int i = 0; i < n_args; i++) {
    given[i] = donated && donated[i] && all[i].n > 1;
    for (int k = 0; k < n; k++)
      args[(size_t)k * (size_t)n_args + (size_t)i] = (Shards){1, all[i].t + (all[i].n > 1 ? k : 0)};
  }
}

Err *code_run_apart(Code *c, const DevProgram *prog, const DevPart *part, const Shards *args,
                    const bool *donated, Shards *results, Trace *trace) {
  size_t n = (size_t)(part->process ? part->n : c->plan->n_procs), n_args = (size_t)prog->n_args,
         n_results = (size_t)c->plan->n_results;
  const int *job = part->process ? part->job : part->devices;
  Exchange *own = NULL; /* other runs of these devices may be under way: they are not met */
  if (!part->process) {
    int most = 0;
    for (size_t k = 0; k < n; k++) most = MAX(most, job[k]);
    own = exchange_new(most + 1);
    char *name = xstrndup(prog->module->name.p, prog->module->name.n);
    exchange_begin(own, (int)n, job, name);
    free(name);
  }
  Shards *divided = xcalloc(n * (n_args + n_results) + 1, sizeof *divided),
         *made = divided + n * n_args;
  bool *given = xcalloc(n_args + 1, 1);
  divide((int)n, prog->n_args, args, donated, divided, given);
  Lane *lanes = xcalloc(n, sizeof *lanes);
  for (size_t k = 0; k < n; k++) {
    Lane *l = &lanes[k];
    *l = (Lane){.c = c,
                .prog = prog,
                .process = part->process ? part->process[k] : (int)k,
                .device = part->devices[k],
                .args = divided + k * n_args,
                .donated = given,
                .results = made + k * n_results,
                .trace = k ? NULL : trace,
                .exchange = own ? own : prog->dev->exchange};
    l->part = (DevPart){1, &l->process, &l->device, job, own};
  }
  Err *e = run_and_join(lanes, (int)n, results);
  exchange_free(own);
  free(lanes);
  free(given);
  free(divided);
  return e;
}
