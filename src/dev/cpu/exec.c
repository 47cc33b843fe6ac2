/* Running a plan: one walk over the steps for all processes. What several have alike is computed once, by its owner; steps between
 * two exchanges go to the pool as one task for each process. Each place has a pointer for each
 * process; arena and constants are set when the memory of a run is made, arguments and results at
 * each run. Loops and branches run on the plan: a loop-carried value stays where it is, and what
 * the body made elsewhere is moved at its end. */
#include "dev/cpu/cpu_priv.h"

#include <malloc.h>
#include <pmmintrin.h>

#include "base/units.h"
#include "interp/interp.h"
#include "ir/exchange.h"

#define LARGE ((size_t)32 << 20)

typedef struct Exec {
  Code *c;
  const Plan *plan;
  const DevProgram *prog;
  const DevPart *part;
  RunMem *mem;
  int n; /* processes of the part */
  Trace *trace;
  int64_t loop; /* the entry to the innermost loop */
} Exec;

/* Asked at each step, so that a process that is interrupted in a long run may end. */
static Err *still_wanted(const Exec *x) {
  const Exchange *job = x->prog->dev ? x->prog->dev->exchange : NULL;
  if (!job || !exchange_closed(job)) return NULL;
  return err_new(ERR_CANCELLED, "the client was closed during the run");
}

/* ---- memory of a run ---- */

void run_mem_free(const Code *c, RunMem *m) {
  cpu_block_free(m->arena, (size_t)c->plan->arena_bytes);
  cpu_block_free(m->each, (size_t)c->plan->arena_each_bytes * (size_t)m->n);
  cpu_block_free(m->partial, (size_t)c->partial_bytes * (size_t)m->n);
  for (int i = 0; i < c->plan->n_steps * m->n; i++) {
    cpu_block_free(m->prepacked[i].p, c->steps[i / m->n].prepack_bytes);
    free(m->bound[i].bufs);
  }
  for (int i = 0; i < c->plan->n_steps; i++) {
    for (int k = 0; k < m->turns[i].n; k++) commands_free(m->turns[i].of[k]);
    free(m->turns[i].of);
  }
  free(m->turns);
  free(m->prepacked);
  free(m->bound);
  free(m->ptr);
  free(m);
}

static Err *mem_get(Code *c, int n, bool all, RunMem **out) {
  pthread_mutex_lock(&c->lock);
  if (c->tier_up) tier_up_before_run(c);
  RunMem **idle = &c->idle, *m;
  while (*idle && ((*idle)->n != n || (*idle)->all != all)) idle = &(*idle)->next;
  if ((m = *idle)) *idle = m->next;
  c->running++;
  pthread_mutex_unlock(&c->lock);
  if (m) {
    *out = m;
    return NULL;
  }
  const Plan *p = c->plan;
  m = xcalloc(1, sizeof *m);
  m->n = n;
  m->all = all;
  m->ptr = xcalloc((size_t)p->n_places * (size_t)n + 1, sizeof *m->ptr);
  m->prepacked = xcalloc((size_t)p->n_steps * (size_t)n + 1, sizeof *m->prepacked);
  m->bound = xcalloc((size_t)p->n_steps * (size_t)n + 1, sizeof *m->bound);
  m->turns = xcalloc((size_t)p->n_steps + 1, sizeof *m->turns);
  int64_t processes = INT64_MAX; /* what all of them take; too much for any memory */
  mul_overflows(p->arena_each_bytes, n, &processes);
  size_t shared = (size_t)p->arena_bytes, each = (size_t)processes;
  if (shared + each >= LARGE) malloc_trim(0); /* what compiling and the caller's arrays left */
  if (c->kernels && code_takes_much(c)) jit_library_rests();
  m->arena = shared ? cpu_block_alloc(shared) : NULL;
  m->each = each ? cpu_block_alloc(each) : NULL;
  m->partial = c->partial_bytes ? cpu_block_alloc((size_t)c->partial_bytes * (size_t)n) : NULL;
  if ((shared && !m->arena) || (each && !m->each) || (c->partial_bytes && !m->partial)) {
    run_mem_free(c, m);
    char size[UNITS_TEXT];
    return err_new(ERR_EXHAUSTED, "no memory for %s of temporary values",
                   units_bytes(size, (double)(shared + each)));
  }
  for (int i = 0; i < p->n_places; i++) {
    const Place *q = &p->places[i];
    for (int k = 0; k < n; k++) {
      void **at = &m->ptr[(size_t)i * (size_t)n + (size_t)k];
      int owner = q->owners && all ? q->owners[k] : k;
      if (q->kind == PLACE_ARENA)
        *at = q->owners ? m->each + p->arena_each_bytes * owner + q->offset : m->arena + q->offset;
      if (q->kind != PLACE_CONST || q->end < 0) continue; /* the other constants stand in code */
      Tensor *t;
      Err *e = tensor_dense(p->consts[q->index], &t);
      if (e) {
        run_mem_free(c, m);
        return e;
      }
      *at = t->data;
    }
  }
  *out = m;
  return NULL;
}

static void mem_put(Code *c, RunMem *m) {
  pthread_mutex_lock(&c->lock);
  m->next = c->idle;
  c->idle = m;
  c->running--;
  pthread_mutex_unlock(&c->lock);
}

/* Whose copy a process uses. */
static int copy_of(const Exec *x, Owners owners, int process) {
  return !owners ? 0 : x->mem->all ? owners[process] : process;
}

static bool owns(const Exec *x, Owners owners, int process) {
  return copy_of(x, owners, process) == process;
}

static void *at(const Exec *x, int place, int process) {
  return place < 0 ? NULL : x->mem->ptr[(size_t)place * (size_t)x->n + (size_t)process];
}

/* ---- steps ---- */

#define FEW 24

typedef struct FusedTask {
  const StepCode *step;
  const FusedCode *code; /* that the tasks were cut for */
  bool finish;
  void *const *bufs;
} FusedTask;

/* What was generated since the first task began takes over, where it is cut alike. */
static const FusedCode *best(const FusedTask *t) {
  const FusedCode *k = t->code, *b = __atomic_load_n(&t->step->better, __ATOMIC_ACQUIRE);
  if (!b || b == k) return k;
  bool alike = t->finish ? b->finish_outer == k->finish_outer && b->finish_grain == k->finish_grain
                         : b->outer == k->outer && b->grain == k->grain;
  return alike ? b : k;
}

static void fused_chunk(void *arg, int64_t begin, int64_t end) {
  const FusedTask *t = arg;
  const FusedCode *k = best(t);
  (t->finish ? k->finish : k->run)(t->bufs, begin, end, k->self);
}

/* Places do not move during a run, but for views: a step of a loop finds its buffers once. */
static void **bind(Exec *x, const Step *s, int process) {
  struct Bound *b = &x->mem->bound[(size_t)s->id * (size_t)x->n + (size_t)process];
  if (b->run == x->mem->runs) return b->bufs;
  b->run = x->mem->runs;
  for (int i = 0; i < s->n_in + s->n_out; i++) {
    int place = i < s->n_in ? s->in[i] : s->out[i - s->n_in];
    if (place >= 0 && x->plan->places[place].kind == PLACE_VIEW) b->run = 0;
  }
  if (!b->bufs) b->bufs = xmalloc(sizeof(void *) * (size_t)(s->n_in + s->n_out + 1));
  for (int i = 0; i < s->n_in; i++) b->bufs[i] = at(x, s->in[i], process);
  for (int i = 0; i < s->n_out; i++) b->bufs[s->n_in + i] = at(x, s->out[i], process);
  b->bufs[s->n_in + s->n_out] =
      x->mem->partial ? x->mem->partial + x->c->partial_bytes * process : NULL;
  return b->bufs;
}

static void run_fused(Exec *x, const Step *s, const StepCode *step, int process) {
  const FusedCode *k = code_now(step);
  FusedTask t = {step, k, false, bind(x, s, process)};
  cpu_parallel(k->outer, k->grain, fused_chunk, &t);
  t.code = k = code_now(step);
  t.finish = true;
  if (k->finish) cpu_parallel(k->finish_outer, k->finish_grain, fused_chunk, &t);
}

static Err *run_op(Exec *x, const Step *s, StepCode *k, int process) {
  void *few[FEW * 2], **p = s->n_in + s->n_out <= FEW * 2
                                ? few
                                : xmalloc(sizeof(void *) * (size_t)(s->n_in + s->n_out));
  for (int i = 0; i < s->n_in; i++) p[i] = at(x, s->in[i], process);
  for (int i = 0; i < s->n_out; i++) p[s->n_in + i] = at(x, s->out[i], process);
  struct Prepacked *prepacked =
      k->prepack_bytes ? &x->mem->prepacked[(size_t)s->id * (size_t)x->n + (size_t)process] : NULL;
  if (prepacked && !prepacked->p) prepacked->p = cpu_block_alloc(k->prepack_bytes);
  Err *e;
  if (prepacked && prepacked->p) {
    bool fresh = prepacked->loop != x->loop;
    e = k->kernel->run_prepacked(k->state, s->op, p, p + s->n_in, k->fixed, prepacked->p, fresh);
    prepacked->loop = x->loop;
  } else {
    e = k->kernel->run(k->state, s->op, p, p + s->n_in);
  }
  if (p != few) free(p);
  return e;
}

static void run_view(Exec *x, const Step *s) {
  void *in[CPU_MAX_RANK + 2];
  for (int i = 0; i < s->n_in; i++) in[i] = at(x, s->in[i], 0);
  x->mem->ptr[s->out[0]] = cpu_slice_start(s->op, in);
}

static Err *run_collective(Exec *x, const Step *s) {
  size_t n = (size_t)x->n;
  void **p = xmalloc(sizeof(void *) * (size_t)(s->n_in + s->n_out + 1) * n);
  for (int i = 0; i < s->n_in; i++)
    for (int k = 0; k < x->n; k++) p[(size_t)i * n + (size_t)k] = at(x, s->in[i], k);
  void **o = p + (size_t)s->n_in * n;
  for (int i = 0; i < s->n_out; i++)
    for (int k = 0; k < x->n; k++) o[(size_t)i * n + (size_t)k] = at(x, s->out[i], k);
  Err *e = coll_run(s->op, x->prog, x->part, p, o);
  free(p);
  return e;
}

static Tensor *wrap(const Type *t, void *data) {
  return tensor_wrap(t->dtype, t->rank, t->dims, data, NULL, NULL);
}

static Err *sharding_at(const Exec *x, const Step *s, const char *attr, const Sharding **sh,
                        const Mesh **mesh) {
  Attr *a = op_attr(s->op, attr);
  if (!a || a->kind != AT_ARRAY || s->index >= a->n || a->items[s->index]->kind != AT_SHARDING)
    return op_err(s->op, ERR_INVALID, "%s has no entry %d", attr, s->index);
  *sh = a->items[s->index]->sharding;
  *mesh = (*sh)->mesh ? (*sh)->mesh : module_mesh(x->plan->module, (*sh)->mesh_name);
  if (!*mesh) return op_err(s->op, ERR_INVALID, "names a mesh that the module does not have");
  return NULL;
}

static Err *run_cut(Exec *x, const Step *s) {
  const Sharding *sh;
  const Mesh *mesh;
  TRY(sharding_at(x, s, "in_shardings", &sh, &mesh));
  const Value *v = s->op->operands[s->index];
  if (v->type->kind != TY_TENSOR) return NULL;
  Tensor *whole = wrap(v->type, at(x, s->in[0], 0));
  Err *e = NULL;
  for (int k = 0; k < x->n && !e; k++) {
    Tensor *b = NULL;
    e = shard_cut(whole, sh, mesh, k, &b);
    if (e) break;
    if (b->count != type_count(s->op->regions[0]->args[s->index]->type))
      e = op_err(s->op, ERR_INVALID, "operand %d does not divide evenly", s->index);
    else if (b->count) memcpy(at(x, s->out[0], k), b->data, tensor_bytes(b));
    tensor_release(b);
  }
  tensor_release(whole);
  return e;
}

static Err *run_join(Exec *x, const Step *s) {
  const Sharding *sh;
  const Mesh *mesh;
  TRY(sharding_at(x, s, "out_shardings", &sh, &mesh));
  const Type *t = s->op->results[s->index].type,
             *local = s->op->regions[0]->last->operands[s->index]->type;
  if (t->kind != TY_TENSOR) return NULL;
  Tensor **b = xcalloc((size_t)x->n, sizeof *b), *whole = NULL;
  for (int k = 0; k < x->n; k++) b[k] = wrap(local, at(x, s->in[0], k));
  Err *e = shard_join(b, x->n, sh, mesh, t->rank, t->dims, &whole);
  if (!e && whole->count) memcpy(at(x, s->out[0], 0), whole->data, tensor_bytes(whole));
  tensor_release(whole);
  for (int k = 0; k < x->n; k++) tensor_release(b[k]);
  free(b);
  return e;
}

static Err *run_block(Exec *x, const Block *b);

static void copy_place(Exec *x, int from, int to) {
  if (from < 0 || to < 0 || from == to) return;
  const Place *p = &x->plan->places[to];
  for (int k = 0; k < x->n; k++) {
    void *s = at(x, from, k), *d = at(x, to, k);
    if (owns(x, p->owners, k) && s != d && p->bytes) memcpy(d, s, (size_t)p->bytes);
  }
}

static void move_results(Exec *x, const Block *b, bool crossed) {
  if (!crossed) {
    for (int i = 0; i < b->n_results; i++) copy_place(x, b->from[i], b->to[i]);
    return;
  }
  size_t n = (size_t)x->n, total = 0;
  for (int i = 0; i < b->n_results; i++)
    if (b->to[i] >= 0) total += (size_t)x->plan->places[b->to[i]].bytes * n;
  char *tmp = xmalloc(total + 1), *p = tmp;
  for (int pass = 0; pass < 2; pass++) {
    p = tmp;
    for (int i = 0; i < b->n_results; i++) {
      if (b->to[i] < 0 || b->from[i] == b->to[i]) continue;
      const Place *q = &x->plan->places[b->to[i]];
      for (int k = 0; k < x->n; k++) {
        if (!owns(x, q->owners, k)) continue;
        if (pass == 0) memcpy(p, at(x, b->from[i], k), (size_t)q->bytes);
        else memcpy(at(x, b->to[i], k), p, (size_t)q->bytes);
        p += q->bytes;
      }
    }
  }
  free(tmp);
}

static Err *run_step(Exec *x, const Step *s);
static Err *run_other(void *arg, const Step *s) { return run_step(arg, s); }

/* The block of a loop or branch as a commands; NULL: it goes step by step. */
static const CommandList *commands_for(const Exec *x, const Step *s, int block) {
  bool watched = x->trace || cpu_verbosity();
  return x->loop && x->n == 1 && !watched ? commands_of(x->c, x->mem, s, block) : NULL;
}

/* Runs a block and moves its results where they go (a loop's condition has none). */
static Err *run_region(Exec *x, const Step *s, int block, const CommandList *t) {
  const Block *b = &s->blocks[block];
  TRY(still_wanted(x));
  if (t) TRY(commands_run(t, run_other, x));
  else TRY(run_block(x, b));
  bool condition = s->kind == STEP_WHILE && block == 0;
  if (!condition && !(t && commands_moves(t))) move_results(x, b, commands_crosses(b));
  return NULL;
}

/* All of a loop in one function. */
static void run_while_code(Exec *x, const Step *s, const StepCode *k) {
  struct Bound *b = &x->mem->bound[s->id];
  if (b->run != x->mem->runs) {
    b->run = x->mem->runs;
    if (!b->bufs) b->bufs = xmalloc(sizeof(void *) * (size_t)(k->n_places + 1));
    for (int i = 0; i < k->n_places; i++) b->bufs[i] = at(x, k->places[i], 0);
  }
  const FusedCode *all = code_now(k);
  all->run(b->bufs, 0, all->outer, all->self);
}

/* A loop of unknown turns goes on with generated code that came meanwhile, if that is one function,
 * or takes it up in its blocks. */
static Err *run_turns(Exec *x, const Step *s, const StepCode *k) {
  const CommandList *condition = commands_for(x, s, 0), *body = commands_for(x, s, 1);
  const uint8_t *more = at(x, s->pred, 0);
  for (bool asks = x->c->tier_up;;) {
    if (asks && tier_up_iteration(x->c, k)) {
      if (code_now(k)->run) {
        run_while_code(x, s, k);
        return NULL;
      }
      asks = false;
      condition = commands_for(x, s, 0);
      body = commands_for(x, s, 1);
    }
    TRY(run_region(x, s, 0, condition));
    if (!*more) return NULL;
    TRY(run_region(x, s, 1, body));
  }
}

static Err *run_while(Exec *x, const Step *s) {
  const StepCode *k = &x->c->steps[s->id];
  if (code_now(k)->run) {
    run_while_code(x, s, k);
    return NULL;
  }
  int64_t outer = x->loop;
  x->loop = ++x->mem->loops;
  if (s->trips < 0) {
    TRY(run_turns(x, s, k));
  } else {
    const CommandList *body = commands_for(x, s, 1);
    for (int64_t i = 0; i < s->trips; i++) TRY(run_region(x, s, 1, body));
  }
  x->loop = outer;
  return NULL;
}

static Err *run_case(Exec *x, const Step *s) {
  const Type *t = s->op->operands[0]->type;
  int64_t i = elem_get_i64(t->dtype, at(x, s->pred, 0));
  if (s->op->kind == OP_IF) i = i ? 0 : 1;
  else if (i < 0 || i >= s->n_blocks) i = s->n_blocks - 1;
  return run_region(x, s, (int)i, commands_for(x, s, (int)i));
}

/* ---- calls of the caller's functions ---- */

typedef struct Call {
  Exec *x;
  const Step *s;
  int process;
  pthread_t thread;
  bool apart; /* in a thread of its own */
  Err *e;
} Call;

static void *make_call(void *arg) {
  Call *c = arg;
  c->e = run_op(c->x, c->s, &c->x->c->steps[c->s->id], c->process);
  return NULL;
}

/* All devices call at once, not in the pool, which may have fewer threads: their functions may wait for each other, as
 * those do by which kernels of several devices are interpreted. */
static Err *run_calls(Exec *x, const Step *s) {
  Call *calls = xcalloc((size_t)x->n, sizeof *calls);
  Err *e = NULL;
  int n = 0;
  for (int p = 0; p < x->n; p++)
    if (owns(x, s->owners, p)) calls[n++] = (Call){.x = x, .s = s, .process = p};
  for (int i = 1; i < n; i++)
    calls[i].apart = pthread_create(&calls[i].thread, NULL, make_call, &calls[i]) == 0;
  for (int i = 0; i < n; i++) {
    if (calls[i].apart) pthread_join(calls[i].thread, NULL);
    else make_call(&calls[i]);
    if (!e) e = calls[i].e;
    else err_free(calls[i].e);
  }
  free(calls);
  return e;
}

static Err *run_step(Exec *x, const Step *s) {
  StepCode *k = &x->c->steps[s->id];
  switch (s->kind) {
  case STEP_FUSED:
    for (int p = 0; p < x->n; p++)
      if (owns(x, s->owners, p)) run_fused(x, s, k, p);
    return NULL;
  case STEP_OP:
    if (x->n > 1 && op_is_host_callback(s->op)) return run_calls(x, s);
    for (int p = 0; p < x->n; p++)
      if (owns(x, s->owners, p)) TRY(run_op(x, s, k, p));
    return NULL;
  case STEP_COPY: copy_place(x, s->in[0], s->out[0]); return NULL;
  case STEP_WHILE: return run_while(x, s);
  case STEP_CASE: return run_case(x, s);
  case STEP_COLLECTIVE: return run_collective(x, s);
  case STEP_CUT: return run_cut(x, s);
  case STEP_JOIN: return run_join(x, s);
  case STEP_VIEW: run_view(x, s); return NULL;
  }
  return NULL;
}

/* ---- stretches of steps that each process does by itself ---- */

typedef struct Stretch {
  Exec *x;
  const Step *first;
  int n;
  int *process; /* who computes */
  Err **e;      /* of each of them */
} Stretch;

/* One process's steps, one after the other. */
static void run_stretch(void *arg, int64_t k) {
  const Stretch *t = arg;
  for (int i = 0; i < t->n && !t->e[k]; i++) {
    const Step *s = &t->first[i];
    StepCode *code = &t->x->c->steps[s->id];
    if (s->kind == STEP_FUSED) run_fused(t->x, s, code, t->process[k]);
    else t->e[k] = run_op(t->x, s, code, t->process[k]);
  }
}

/* Steps from s on that go to the pool as one task for each process; 0: none, or it has more threads than there are
 * processes. */
static int stretch_from(const Exec *x, const Step *s) {
  int owners = 0, n = x->n > 1 ? x->c->steps[s->id].stretch : 0;
  for (int p = 0; n && p < x->n; p++) owners += owns(x, s->owners, p);
  return owners >= MAX(pool_threads(), 2) ? n : 0;
}

static Err *run_stretches(Exec *x, const Step *first, int n) {
  int few[64], *process = x->n <= COUNT_OF(few) ? few : xmalloc(sizeof *process * (size_t)x->n),
               owners = 0;
  Err *some[64] = {0}, **all = x->n <= COUNT_OF(some) ? some : xcalloc((size_t)x->n, sizeof *all),
      *e = NULL;
  for (int p = 0; p < x->n; p++)
    if (owns(x, first->owners, p)) process[owners++] = p;
  pool_run(owners, run_stretch, &(Stretch){x, first, n, process, all});
  for (int k = 0; k < owners; k++) {
    if (!e) e = all[k];
    else err_free(all[k]);
  }
  if (process != few) free(process);
  if (all != some) free(all);
  return e;
}

/* ---- a block ---- */

static Err *run_block(Exec *x, const Block *b) {
  bool verbose = cpu_verbosity() > 0;
  for (int i = 0; i < b->n; i++) {
    const Step *s = &b->steps[i];
    TRY(still_wanted(x));
    if (!verbose && !x->trace) {
      int n = stretch_from(x, s);
      if (n) i += n - 1;
      TRY(n ? run_stretches(x, s, n) : run_step(x, s));
      continue;
    }
    double from = time_now_s();
    TRY(run_step(x, s));
    double to = time_now_s(), t = to - from;
    bool whole = !s->n_blocks || x->c->steps[s->id].fused.run;
    if (x->trace && whole) trace_step(x->trace, s, from, to);
    if (verbose) verbose_step(x->c, s, t);
  }
  return NULL;
}

/* ---- a run ---- */

static void release_base(void *arg, void *data) {
  (void)data;
  tensor_release(arg);
}

/* The same bytes as another tensor, with the type of a result. Takes no reference. */
static Tensor *retyped(Tensor *t, const Type *type) {
  bool same = t->dtype == type->dtype && t->rank == type->rank;
  for (int i = 0; same && i < t->rank; i++) same = t->dims[i] == type->dims[i];
  if (same) return tensor_retain(t);
  return tensor_wrap(type->dtype, type->rank, type->dims, t->data, release_base, tensor_retain(t));
}

/* The argument whose memory a result of process k may take; NULL: others want it, too. */
static Tensor *given_up(const Exec *x, const Shards *arg, Owners owners, int k) {
  if (x->n > 1 && (arg->n > 1) != (owners != NULL)) return NULL;
  Tensor *t = arg->t[arg->n > 1 ? k : 0];
  int own = 0; /* references: of processes that share the result as well */
  for (int i = 0; i < arg->n; i++) own += arg->t[i] == t && copy_of(x, owners, i) == k;
  return __atomic_load_n(&t->refs, __ATOMIC_ACQUIRE) == own ? t : NULL;
}

static Err *make_results(Exec *x, const Shards *args, const bool *donated, Tensor **own) {
  const Plan *p = x->plan;
  for (int j = 0; j < p->n_results; j++) {
    const PlanResult *r = &p->results[j];
    if (r->place < 0) continue;
    const Place *q = &p->places[r->place];
    if (q->kind != PLACE_RESULT || q->index != j) continue;
    const Type *t = p->main->body->last->operands[j]->type;
    bool may = r->reuse_arg >= 0 && donated && donated[r->reuse_arg];
    for (int k = 0; k < x->n; k++) {
      if (!owns(x, q->owners, k)) continue;
      Tensor *arg = may ? given_up(x, &args[r->reuse_arg], q->owners, k) : NULL;
      Tensor **to = &own[j * x->n + k];
      if (arg) *to = retyped(arg, t);
      else TRY(cpu_tensor_new(t->dtype, t->rank, t->dims, to));
    }
    for (int k = 0; k < x->n; k++)
      x->mem->ptr[(size_t)r->place * (size_t)x->n + (size_t)k] =
          own[j * x->n + copy_of(x, q->owners, k)]->data;
  }
  return NULL;
}

/* An argument as a result: itself when it was given up, else a copy: results are buffers of their
 * own. */
static Err *copied(Tensor *t, bool taken, const Type *type, Tensor **out) {
  if (taken) {
    *out = retyped(t, type);
    return NULL;
  }
  TRY(cpu_tensor_new(type->dtype, type->rank, type->dims, out));
  if (t->count) memcpy((*out)->data, t->data, tensor_bytes(t));
  return NULL;
}

static Err *result_at(Exec *x, const Shards *args, const bool *donated, Tensor **own, int j,
                      Shards *out) {
  const Plan *p = x->plan;
  const Type *t = p->main->body->last->operands[j]->type;
  int place = p->results[j].place;
  const Place *q = place >= 0 ? &p->places[place] : NULL;
  int n = q && q->owners ? x->n : 1;
  Shards s = {n, xcalloc((size_t)n, sizeof(Tensor *))};
  for (int k = 0; k < s.n; k++) {
    if (t->kind != TY_TENSOR) s.t[k] = tensor_make(DT_TOKEN, 0, NULL);
    else if (q->kind == PLACE_RESULT)
      s.t[k] = retyped(own[q->index * x->n + copy_of(x, q->owners, k)], t);
    else if (q->kind == PLACE_CONST) {
      Tensor *dense; /* made when the memory was */
      err_free(tensor_dense(p->consts[q->index], &dense));
      s.t[k] = retyped(dense, t);
    } else {
      const Shards *a = &args[q->index];
      Err *e = copied(a->t[a->n > 1 ? k : 0], donated && donated[q->index], t, &s.t[k]);
      if (e) {
        shards_free(&s);
        return e;
      }
    }
  }
  *out = s;
  return NULL;
}

static Err *run(Code *c, const DevProgram *prog, const DevPart *part, const Shards *args,
                const bool *donated, Shards *results, Trace *trace) {
  const Plan *p = c->plan;
  int n = part->process ? part->n : p->n_procs;
  Exec x = {.c = c, .plan = p, .prog = prog, .part = part, .n = n, .trace = trace};
  TRY(mem_get(c, n, !part->process, &x.mem));
  x.mem->runs++;
  const Region *r = p->main->body;
  for (int i = 0; i < r->n_args; i++) {
    int place = p->value_place[r->args[i]->id];
    if (place < 0) continue;
    for (int k = 0; k < x.n; k++)
      x.mem->ptr[(size_t)place * (size_t)x.n + (size_t)k] = args[i].t[args[i].n > 1 ? k : 0]->data;
  }
  Tensor *few[512], **own = p->n_results * x.n <= COUNT_OF(few)
                                ? few
                                : xmalloc(sizeof *own * (size_t)(p->n_results * x.n));
  memset(own, 0, sizeof *own * (size_t)(p->n_results * x.n));
  Err *e = make_results(&x, args, donated, own);
  if (!e) e = run_block(&x, &p->body);
  for (int j = 0; j < p->n_results && !e; j++)
    e = result_at(&x, args, donated, own, j, &results[j]);
  for (int j = 0; j < p->n_results * x.n; j++) tensor_release(own[j]);
  if (own != few) free(own);
  mem_put(c, x.mem);
  return e;
}

/* Denormals count as zero, as XLA has it: hosts take a hundred times as long for one as for others. */
Err *code_run(Code *c, const DevProgram *prog, const DevPart *part, const Shards *args,
              const bool *donated, Shards *results, Trace *trace) {
  unsigned modes = _mm_getcsr();
  _mm_setcsr(modes | _MM_FLUSH_ZERO_ON | _MM_DENORMALS_ZERO_ON);
  Err *e = run(c, prog, part, args, donated, results, trace);
  _mm_setcsr(modes);
  return e;
}
