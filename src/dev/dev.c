/* The part that all devices share: opening by name, buffers and their accounting, and the cut and join of
 * shards around a run. */
#include "dev/dev.h"

#include "dev/fetch.h"

#include "interp/interp.h"

#include <stdlib.h>

#define DEV(name) extern const DeviceOps dev_##name;
#include "dev_list.inc"
#undef DEV

static const DeviceOps *const backends[] = {
#define DEV(name) &dev_##name,
#include "dev_list.inc"
#undef DEV
};

typedef struct DevAccount {
  int64_t in_use, peak, limit, largest, allocs;
} DevAccount;

/* ---- devices ---- */

static const DeviceOps *backend_named(Str name) {
  for (int i = 0; i < COUNT_OF(backends); i++)
    if (str_is(name, backends[i]->name)) return backends[i];
  return NULL;
}

#define MAX_DEVICES 4096

Err *dev_count(Str args, int *out) {
  char text[16] = {0}, *end;
  if (args.n < sizeof text) memcpy(text, args.p, args.n);
  long n = args.n ? strtol(text, &end, 10) : 1;
  if (args.n && (end == text || *end || n < 1 || n > MAX_DEVICES))
    return err_hint(err_new(ERR_INVALID, "'%.*s' is not a number of devices", STR_ARG(args)),
                    "from 1 to %d, as in cpu:8", MAX_DEVICES);
  *out = (int)n;
  return NULL;
}

Err *dev_open(const char *spec, Dev **out) {
  if (!spec || !*spec) spec = env_get("WEFT_DEVICE");
  if (!spec) spec = "cpu";
  const char *colon = strchr(spec, ':');
  Str name = {spec, colon ? (size_t)(colon - spec) : strlen(spec)};
  Str args = colon ? str_from(colon + 1) : (Str){"", 0};
  const DeviceOps *ops = backend_named(name);
  if (!ops) { /* a chip: the backend that knows data/chips takes the whole name */
    ops = backend_named(STR("sim"));
    args = str_from(spec);
  }
  if (!ops) {
    Buf names = {0};
    for (int i = 0; i < COUNT_OF(backends); i++)
      buf_printf(&names, "%s%s", i ? ", " : "", backends[i]->name);
    Err *e = err_new(ERR_NOT_FOUND, "no device named '%s'", spec);
    e = err_hint(e, "known: %s", names.p);
    buf_free(&names);
    return e;
  }
  Dev *d = xcalloc(1, sizeof *d);
  d->ops = ops;
  d->n = 1;
  d->spec = xstrdup(spec);
  Err *e = ops->open(d, args);
  if (e) {
    if (e->code == ERR_NOT_FOUND && args.p == spec) { /* not a chip: what else it may be */
      Buf hint = {0};
      for (int i = 0; i < COUNT_OF(backends); i++)
        if (backends[i] != ops) buf_printf(&hint, "%s, ", backends[i]->name);
      buf_printf(&hint, "or a chip: %s", e->hint ? e->hint : "weft chips");
      err_hint(e, "%s", hint.p);
      buf_free(&hint);
    }
    free(d->spec);
    free(d);
    return err_wrap(e, "opening device '%s'", spec);
  }
  d->accounts = xcalloc((size_t)d->n, sizeof *d->accounts);
  d->exchange = exchange_new(d->n);
  for (int i = 0; i < d->n; i++) {
    DevInfo info = {0};
    ops->info(d, i, &info);
    d->accounts[i].limit = info.memory_bytes;
  }
  *out = d;
  return NULL;
}

void dev_close(Dev *d) {
  if (!d) return;
  d->ops->close(d);
  exchange_free(d->exchange);
  peers_close(d->peers);
  free(d->owner);
  free(d->accounts);
  free(d->spec);
  free(d);
}

void dev_share(Dev *d, Peers *peers, int *owner) {
  d->peers = peers;
  d->owner = owner;
  exchange_share(d->exchange, peers, owner);
}

void dev_stats(const Dev *d, int device, DevStats *out) {
  const DevAccount *a = &d->accounts[device];
  int64_t in_use = __atomic_load_n(&a->in_use, __ATOMIC_RELAXED);
  *out = (DevStats){in_use, MAX(in_use, __atomic_load_n(&a->peak, __ATOMIC_RELAXED)), a->limit,
                    __atomic_load_n(&a->largest, __ATOMIC_RELAXED),
                    __atomic_load_n(&a->allocs, __ATOMIC_RELAXED)};
}

static void raise_to(int64_t *p, int64_t v) {
  int64_t was = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (was < v &&
         !__atomic_compare_exchange_n(p, &was, v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

/* false: so many bytes do not fit; *in_use then are there. */
static bool account_take(DevAccount *a, int64_t bytes, int64_t *in_use) {
  *in_use = __atomic_load_n(&a->in_use, __ATOMIC_RELAXED);
  do {
    if (a->limit && *in_use + bytes > a->limit) return false;
  } while (!__atomic_compare_exchange_n(&a->in_use, in_use, *in_use + bytes, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
  raise_to(&a->peak, *in_use + bytes);
  raise_to(&a->largest, bytes);
  __atomic_fetch_add(&a->allocs, 1, __ATOMIC_RELAXED);
  return true;
}

bool dev_is_virtual(const Dev *d) {
  ProfDevice info = {0};
  if (d->ops->profile_device) d->ops->profile_device(d, &info);
  return info.is_virtual;
}

/* ---- buffers ---- */

static int64_t footprint(const Dev *d, const Tensor *t) {
  return d->ops->footprint ? d->ops->footprint(d, t) : (int64_t)tensor_bytes(t);
}

Err *dev_buffer_new(Dev *d, int device, Tensor *t, bool pinned_host, DevBuffer **out) {
  if (!pinned_host) {
    int64_t bytes = footprint(d, t);
    DevAccount *a = &d->accounts[device];
    int64_t in_use, limit = a->limit;
    if (!account_take(a, bytes, &in_use)) {
      tensor_release(t);
      const double gib = 1024.0 * 1024.0 * 1024.0;
      Err *e = err_new(
          ERR_EXHAUSTED,
          "a buffer of %.2f %s does not fit on %s device %d: %.2f of %.2f GiB are in use",
          (double)bytes / (bytes < 1 << 30 ? gib / 1024 : gib), bytes < 1 << 30 ? "MiB" : "GiB",
          d->spec, device, (double)in_use / gib, (double)limit / gib);
      return err_hint(
          e,
          "delete arrays that are not needed (optimizer slots when only evaluating), use a smaller "
          "batch, or more devices");
    }
  }
  DevBuffer *b = xcalloc(1, sizeof *b);
  *b = (DevBuffer){.refs = 1, .dev = d, .device = device, .t = t, .pinned_host = pinned_host};
  *out = b;
  return NULL;
}

DevBuffer *dev_buffer_retain(DevBuffer *b) {
  __atomic_fetch_add(&b->refs, 1, __ATOMIC_RELAXED);
  return b;
}

static void account_give(Dev *d, int device, int64_t bytes) {
  __atomic_fetch_sub(&d->accounts[device].in_use, bytes, __ATOMIC_RELAXED);
}

/* Takes the tensor out of the buffer; *bytes then are to be given back to the account. NULL when it was
 * gone already. */
static Tensor *buffer_take(DevBuffer *b, int64_t *bytes) {
  Tensor *t = __atomic_exchange_n(&b->t, NULL, __ATOMIC_ACQ_REL);
  *bytes = t && !b->pinned_host ? footprint(b->dev, t) : 0;
  return t;
}

void dev_buffer_delete(DevBuffer *b) {
  int64_t bytes;
  Tensor *t = buffer_take(b, &bytes);
  account_give(b->dev, b->device, bytes);
  tensor_release(t);
}

void dev_buffer_release(DevBuffer *b) {
  if (!b || __atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
  dev_buffer_delete(b);
  free(b);
}

/* ---- running ---- */

static Err *check_argument(const DevProgram *p, int i, const Tensor *t, const Type *whole,
                           bool is_block) {
  bool same = t->dtype == whole->dtype && t->rank == whole->rank;
  for (int k = 0; same && !is_block && k < t->rank; k++)
    same = whole->dims[k] < 0 || t->dims[k] == whole->dims[k];
  if (same || whole->kind != TY_TENSOR) return NULL;
  Buf want = {0}, got = {0};
  type_print(&want, whole);
  buf_printf(&got, "tensor<");
  for (int k = 0; k < t->rank; k++) buf_printf(&got, "%lldx", (long long)t->dims[k]);
  buf_printf(&got, "%s>", dtype_name(t->dtype));
  Err *e = err_new(ERR_INVALID, "argument %d of '%.*s' is %s, the program takes %s", i,
                   STR_ARG(p->main->name), got.p, want.p);
  buf_free(&want);
  buf_free(&got);
  return e;
}

static void release_all(const Shards *s) {
  for (int k = 0; k < s->n; k++)
    if (s->t[k]) tensor_release(s->t[k]);
}

bool dev_argument_is_parted(const DevProgram *p, int i) {
  return p->opts.replicas > 1 || p->arg_shardings[i] != NULL;
}

/* The backend takes a tensor for each process of the part; of a program that does not split, one for
 * each of the program's. Which of them is that of the part's k-th process? */
static int lane_of(const DevProgram *p, const DevPart *part, int k) {
  return part->process && !dev_program_splits(p) ? part->process[k] : k;
}

/* Has a device another value of argument i than the first, though all are said to have the same? */
static bool is_apart(const DevPart *part, DevBuffer *const *const *args, int i) {
  for (int k = 0; k < part->n; k++)
    if (args[k][i]->apart) return true;
  return false;
}

/* Argument i of the part's processes into t[lane], which are NULL before; one that all have whole into t[0].
 * lent[k] grows by what is donated: until the results are there it counts as in use. */
static Err *take_argument(DevProgram *p, const DevPart *part, DevBuffer *const *const *args, int i,
                          bool donate, Tensor **t, int64_t *lent) {
  const Type *type = p->main->type->elems[i];
  bool parts = dev_argument_is_parted(p, i) || is_apart(part, args, i),
       block = p->arg_shardings[i] && !dev_program_is_cut(p);
  Err *e = NULL;
  for (int k = 0; k < part->n && !e; k++) {
    DevBuffer *b = args[k][i];
    int64_t bytes = 0;
    Tensor *own =
        donate ? buffer_take(b, &bytes) : tensor_retain(__atomic_load_n(&b->t, __ATOMIC_ACQUIRE));
    lent[k] += bytes;
    if (!own) e = err_new(ERR_INVALID, "argument %d was deleted or donated", i);
    else if (parts || k == 0)
      t[parts ? lane_of(p, part, k) : 0] = own, e = check_argument(p, i, own, type, block);
    else tensor_release(own);
  }
  return e;
}

/* Argument i as the backend takes it. *out owns its references, in t, where its n parts are. */
static Err *gather_argument(const DevProgram *p, int n, int i, bool apart, Tensor **t,
                            Shards *out) {
  const Type *type = p->main->type->elems[i];
  const Sharding *s = p->arg_shardings[i];
  *out = (Shards){apart || dev_argument_is_parted(p, i) ? n : 1, t};
  if (!s || p->opts.replicas > 1 || dev_program_is_cut(p)) return NULL;
  Tensor *whole = NULL;
  Err *e = shard_join(t, n, s, p->arg_meshes[i], type->rank, type->dims, &whole);
  release_all(out);
  t[0] = whole;
  *out = (Shards){whole != NULL, t};
  return err_wrap(e, "argument %d", i);
}

/* differs: each device may have its own of what all are said to have. */
static Err *scatter_result(DevProgram *p, const DevPart *part, int j, const Shards *r, bool differs,
                           DevBuffer **const *outs) {
  const Sharding *s = dev_program_is_cut(p) ? NULL : p->result_shardings[j];
  bool same = r->n == 1 || p->result_shardings[j], host = p->result_on_host[j];
  for (int k = 0; k < part->n; k++) {
    int lane = lane_of(p, part, k);
    Tensor *t = r->t[r->n > 1 ? lane : 0];
    if (s && (r->n == 1 || differs)) TRY(shard_cut(t, s, p->result_meshes[j], lane, &t));
    else tensor_retain(t);
    TRY(dev_buffer_new(p->dev, part->devices[k], t, host, &outs[k][j]));
    outs[k][j]->apart = differs && !same && t != r->t[0];
  }
  return NULL;
}

/* What the arguments of process k take on its device; a buffer given twice counts once. */
static int64_t argument_bytes(const DevProgram *p, DevBuffer *const *args) {
  int64_t bytes = 0;
  for (int i = 0; i < p->n_args; i++) {
    const Tensor *t = __atomic_load_n(&args[i]->t, __ATOMIC_ACQUIRE);
    bool again = !t || args[i]->pinned_host;
    for (int j = 0; j < i && !again && i < 4096; j++) again = args[j] == args[i];
    if (!again) bytes += footprint(p->dev, t);
  }
  return bytes;
}

/* Room for a run beside what the devices hold already, and how full each will be. */
static Err *make_room(const DevProgram *p, int n, const int *devices, DevBuffer *const *const *args,
                      int64_t *full) {
  DevMemory m = {0};
  memset(full, 0, sizeof *full * (size_t)n);
  if (!p->ops->memory) return NULL;
  Err *e = p->ops->memory(p, &m);
  if (e) { /* no model of this program: only its buffers count */
    err_free(e);
    return NULL;
  }
  for (int k = 0; k < n; k++) {
    int64_t in_use = __atomic_load_n(&p->dev->accounts[devices[k]].in_use, __ATOMIC_RELAXED);
    if (p->ops->beside) {
      int64_t own = argument_bytes(p, args[k]);
      if (in_use > own) TRY(p->ops->beside(p, in_use - own));
    }
    full[k] = in_use + m.temp + MAX(0, m.outputs - m.aliased);
  }
  return NULL;
}

Err *dev_fits(const DevProgram *p, int n, const int *devices, DevBuffer *const *const *args) {
  int64_t few[8], *full = n <= COUNT_OF(few) ? few : xmalloc(sizeof *full * (size_t)n);
  Err *e = make_room(p, n, devices, args, full);
  if (full != few) free(full);
  return e;
}

/* The peaks of a run that was made; one that failed for want of memory has not reached them. */
static void raise_peaks(const DevProgram *p, int n, const int *devices, const int64_t *full) {
  for (int k = 0; k < n; k++) raise_to(&p->dev->accounts[devices[k]].peak, full[k]);
}

/* A run of a few hundred arguments asks the C library for no large piece: it would put together all small
 * ones that are free before each. */
#define STACK_BYTES 8192

static Err *execute_together(DevProgram *p, const DevPart *part, DevBuffer *const *const *args,
                             const bool *donated, DevBuffer **const *outs, DevRun *run) {
  int n = part->n;
  bool whole = part->process && !dev_program_splits(p); /* the other processes' arguments as well */
  int lanes = whole ? dev_program_processes(p) : n;
  size_t n_in = (size_t)p->n_args, n_out = (size_t)p->n_results;
  size_t bytes = (n_in + n_out) * sizeof(Shards) + n_in * (size_t)lanes * sizeof(Tensor *);
  Shards near[STACK_BYTES / sizeof(Shards)], *in = bytes <= sizeof near ? near : xmalloc(bytes),
                                             *res = in + n_in;
  memset(in, 0, bytes);
  Tensor **tensors = (Tensor **)(res + n_out);
  int64_t few[16], *full = 2 * n <= COUNT_OF(few) ? few : xmalloc(sizeof *full * 2 * (size_t)n),
                   *lent = full + n;
  memset(lent, 0, sizeof *lent * (size_t)n);
  bool differs = p->differs;
  Err *e = make_room(p, n, part->devices, args, full);
  for (int i = 0; i < p->n_args && !e; i++)
    e = take_argument(p, part, args, i, donated && donated[i], tensors + (size_t)i * (size_t)lanes,
                      lent);
  if (!e && whole) e = fetch_arguments(p, part, tensors);
  for (int i = 0; i < p->n_args; i++)
    if (e) in[i] = (Shards){lanes, tensors + (size_t)i * (size_t)lanes};
    else {
      bool apart = !whole && is_apart(part, args, i);
      e = gather_argument(p, lanes, i, apart, tensors + (size_t)i * (size_t)lanes, &in[i]);
      differs |= apart;
    }
  DevPart all = {.n = lanes, .devices = part->job};
  if (!e) e = p->ops->run(p, whole ? &all : part, in, donated, res, run);
  if (!e) raise_peaks(p, n, part->devices, full);
  for (int i = 0; i < p->n_args; i++) release_all(&in[i]);
  for (int k = 0; k < n; k++) account_give(p->dev, part->devices[k], lent[k]);
  for (int k = 0; k < n; k++)
    for (int j = 0; j < p->n_results; j++) outs[k][j] = NULL;
  for (int j = 0; j < p->n_results && !e; j++)
    e = scatter_result(p, part, j, &res[j], differs, outs);
  for (int j = 0; j < p->n_results; j++) shards_free(&res[j]);
  for (int k = 0; k < n && e; k++)
    for (int j = 0; j < p->n_results; j++) {
      dev_buffer_release(outs[k][j]);
      outs[k][j] = NULL;
    }
  if (full != few) free(full);
  if (in != near) free(in);
  return e;
}

/* Replicas that exchange nothing, one after the other. Devices of their own run at the same time. */
static Err *execute_copies(DevProgram *p, const DevPart *part, DevBuffer *const *const *args,
                           const bool *donated, DevBuffer **const *outs, DevRun *run) {
  Err *e = NULL;
  DevRun all = {.trace = run->trace};
  for (int k = 0; k < part->n; k++)
    for (int j = 0; j < p->n_results; j++) outs[k][j] = NULL;
  for (int k = 0; k < part->n && !e; k++) {
    DevPart one = {.n = 1, .devices = part->devices + k};
    DevRun r = {.trace = run->trace && k == 0};
    e = execute_together(p, &one, args + k, donated, outs + k, &r);
    if (k == 0) all.spans = r.spans, all.n_spans = r.n_spans;
    all.time_s = MAX(all.time_s, r.time_s);
    all.energy_j += r.energy_j;
  }
  for (int k = 0; k < part->n && e; k++)
    for (int j = 0; j < p->n_results; j++) {
      dev_buffer_release(outs[k][j]);
      outs[k][j] = NULL;
    }
  *run = all;
  return e;
}

/* Are all the others' devices of other OS processes? */
static bool has_all_near(const DevProgram *p, const DevPart *part) {
  const Dev *d = p->dev;
  if (!d->peers) return false;
  int near = 0;
  for (int k = 0; k < dev_program_processes(p); k++)
    near += d->owner[part->job[k]] == peers_id(d->peers);
  return near == part->n;
}

/* Collectives of a part of the processes meet those of the others. */
static Err *execute_part(DevProgram *p, const DevPart *part, DevBuffer *const *const *args,
                         const bool *donated, DevBuffer **const *outs, DevRun *run) {
  if (!dev_program_splits(p) && !has_all_near(p, part))
    return err_new(ERR_UNIMPLEMENTED, "weft: some of the devices of a program of %d partitions",
                   p->opts.partitions);
  char *name = xstrndup(p->module->name.p, p->module->name.n);
  Exchange *x = p->dev->exchange;
  exchange_begin(x, part->n, part->devices, name);
  Err *e = execute_together(p, part, args, donated, outs, run);
  exchange_end(x, part->n, part->devices, e);
  free(name);
  return e;
}

Err *dev_execute(DevProgram *p, const DevPart *part, DevBuffer *const *const *args,
                 const bool *donated, DevBuffer **const *outs, DevRun *out_run) {
  DevRun run = {.trace = out_run && out_run->trace};
  DevPart own = *part; /* of copies each is all of its processes */
  bool some = part->process && part->n < dev_program_processes(p);
  if (p->copies > 1 || !some) own.process = own.job = NULL;
  Err *e;
  if (own.process) e = execute_part(p, &own, args, donated, outs, &run);
  else if (p->copies > 1 && part->n > 1) e = execute_copies(p, &own, args, donated, outs, &run);
  else e = execute_together(p, &own, args, donated, outs, &run);
  if (out_run) *out_run = run;
  return e;
}
