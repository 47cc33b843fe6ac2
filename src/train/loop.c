/* The training loop, a PJRT client. The state lives on the device and is donated to each step;
 * the loss of a step is fetched after the next one has been enqueued, so that the device never
 * waits for the host's reading.
 */
#include "train/train_priv.h"

#include "base/units.h"
#include "stablehlo/stablehlo.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <time.h>

enum { MOST_NAMES = 6 }; /* in a sentence */
#define WARM_UP 2        /* steps that take memory and start threads */

struct Trainer {
  const TrainOpts *o;
  StepProgram step, eval;
  ClientProgram *step_exe, *eval_exe;
  int all_replicas, first; /* of the run; the number of the first that is here */
  int replicas;            /* that are here; of a whole step the devices that run it together */
  int eval_replicas;       /* that evaluate */
  int64_t global;          /* examples in a step, all replicas together */
  int64_t eval_global;     /* likewise in a batch of the evaluation */
  ClientBuffer **state;    /* replica r's values from r * step.n_state on */
  Events *events;
  ClientBuffer **gathered;      /* during an evaluation: state that else lies in parts */
  int64_t at, total, per_epoch; /* steps */
  int ema;                      /* where averages of the parameters begin in the state; 0: none */
  int taken;                    /* parameters that came from TrainOpts.init, */
  int merged;                   /* some with the adapters beside them */
  int64_t evaluations;
  uint64_t state_hash; /* of several processes */
  bool stopped;
  VEC(double) times, cpu_times; /* seconds of each step */
  Record record;
  Prof *profile; /* the finished recording */
  double exposed_s, started, looping, train_loss, train_accuracy;
  double saved; /* when the last checkpoint was written, or the first step began */
  double test_loss, test_accuracy;
};

static Err *write_program(const Module *m, Buf *code) {
  Err *e = stablehlo_write_bytecode(code, m, NULL);
  if (!e || e->code != ERR_UNIMPLEMENTED) return e;
  err_free(e); /* chlo.square has no place in it */
  code->n = 0;
  stablehlo_write_text(code, m, &(TextOpts){.locations = true});
  return NULL;
}

int train_partitions(const Module *m) {
  const Attr *a = attrs_get(m->attrs, m->n_attrs, "mhlo.num_partitions");
  return a && a->kind == AT_INT && a->i > 0 && a->i < 1 << 20 ? (int)a->i : 1;
}

Err *train_compile(Client *c, const Module *m, int replicas, bool alone, ClientProgram **out) {
  Buf code = {0};
  int partitions = train_partitions(m);
  ClientCompileOpts o = {
      .replicas = partitions > 1 ? 1 : replicas, .partitions = partitions, .alone = alone};
  Err *e = write_program(m, &code);
  if (!e) e = client_compile(c, (Str){code.p, code.n}, &o, out);
  buf_free(&code);
  return err_wrap(e, "compiling '%.*s'", STR_ARG(m->name));
}

static size_t spec_bytes(const StateSpec *s) {
  size_t n = (size_t)dtype_bytes(s->type);
  for (int i = 0; i < s->rank; i++) n *= (size_t)s->dims[i];
  return n;
}

/* A long run that cannot be saved says so before it begins. */
static Err *has_room(const char *folder, const StepProgram *p) {
  struct statvfs v;
  double need = 0;
  for (int i = 0; i < p->n_state; i++) need += (double)spec_bytes(&p->state[i]);
  if (statvfs(folder, &v) || !v.f_blocks) return NULL; /* it does not say */
  double left = (double)v.f_bavail * (double)v.f_frsize;
  if (left >= need) return NULL;
  char a[UNITS_TEXT], b[UNITS_TEXT];
  return err_hint(err_new(ERR_EXHAUSTED, "'%s' has %s left, a checkpoint takes %s", folder,
                          units_bytes(a, left), units_bytes(b, need)),
                  "--out on another disk");
}

/* ---- state: fresh, from a file, to a file ---------------------------------------------------- */

static Err *upload_one(Trainer *t, int i, int r, const void *data) {
  const StateSpec *s = &t->step.state[i];
  ClientBuffer **to = &t->state[r * t->step.n_state + i];
  int device = t->o->device + r;
  if (!s->cut.s)
    return client_buffer_from_host(t->o->client, device, s->type, s->rank, s->dims, data, to);
  int64_t dims[CUT_RANK];
  void *part;
  TRY(cut_take(&s->cut, s->type, s->rank, s->dims, r, data, dims, &part));
  Err *e = client_buffer_from_host(t->o->client, device, s->type, s->rank, dims, part, to);
  free(part);
  return e;
}

static Err *upload(Trainer *t, int i, const void *data) {
  if (t->o->job) t->state_hash = hash_bytes(data, spec_bytes(&t->step.state[i]), t->state_hash);
  for (int r = 0; r < t->replicas; r++) TRY(upload_one(t, i, r, data));
  return NULL;
}

/* A value of the state as a whole, into out. */
static Err *download(const Trainer *t, int i, void *out) {
  const StateSpec *s = &t->step.state[i];
  if (!s->cut.s) return client_buffer_to_host(t->state[i], out, spec_bytes(s));
  for (int r = 0; r < t->replicas; r++)
    TRY(cut_fetch(&s->cut, s->type, s->rank, s->dims, r, t->state[r * t->step.n_state + i], out));
  return NULL;
}

static Err *fresh(Trainer *t, int i) {
  uint64_t seed = t->o->config.seed;
  const StateSpec *s = &t->step.state[i];
  void *data = xmalloc(spec_bytes(s) + 1);
  const WholeStep *whole = t->o->model->whole;
  Err *e = NULL;
  if (whole) e = whole->first(t->o->model, s, seed, data);
  else init_fill(s->init, s->name + s->alias, seed, s->type, s->rank, s->dims, data);
  if (s->kind == STATE_COUNTER && !strcmp(s->name, "seed"))
    memcpy(data, (uint32_t[]){(uint32_t)seed, (uint32_t)(seed >> 32)}, 8);
  if (!e) e = err_wrap(upload(t, i, data), "placing '%s' on the device", s->name);
  free(data);
  return e;
}

static bool fits(const NamedTensor *f, const StateSpec *s) {
  return f->type == s->type && f->rank == s->rank &&
         (!s->rank || !memcmp(f->dims, s->dims, sizeof(int64_t) * (size_t)s->rank));
}

/* One value of a run that goes on. */
static Err *go_on(Trainer *t, int i, int n, const NamedTensor *file) {
  const StateSpec *s = &t->step.state[i];
  const NamedTensor *f = safetensors_find(n, file, s->name);
  const WholeStep *whole = t->o->model->whole;
  if (whole && whole->is_set(t->o->model, s)) return fresh(t, i);
  if (!f && s->kind == STATE_COUNTER && strcmp(s->name, "step") && strcmp(s->name, "seed"))
    return fresh(t, i); /* of f16, which the run had not before */
  if (!f) return err_new(ERR_INVALID, "'%s' has no tensor '%s'", t->o->resume, s->name);
  if (!fits(f, s))
    return err_new(ERR_INVALID, "'%s': tensor '%s' has another shape or type than the model's",
                   t->o->resume, s->name);
  if (s->kind == STATE_COUNTER && !strcmp(s->name, "step")) t->at = *(int32_t *)f->data;
  return upload(t, i, f->data);
}

/* One value of a run that begins with the parameters of another: what does not fit is new. */
static Err *begin_with(Trainer *t, int i, int n, const NamedTensor *file) {
  const StateSpec *s = &t->step.state[i];
  const NamedTensor *f = safetensors_find(n, file, s->name + s->alias);
  bool weights = s->kind == STATE_PARAM || s->kind == STATE_STAT || s->alias;
  if (!weights || !f || !fits(f, s)) return fresh(t, i);
  t->taken += s->kind == STATE_PARAM;
  return upload(t, i, f->data);
}

/* Adapters of `init` that this run goes on with stay beside their kernel; all others become part of it. */
static void merge_adapters(Trainer *t, int n, const NamedTensor *file) {
  for (int i = 0; i < t->step.n_state; i++) {
    const StateSpec *s = &t->step.state[i];
    if (s->kind != STATE_PARAM || !str_ends(str_from(s->name), "/kernel")) continue;
    char *name = xasprintf("%.*slora_a", (int)(strlen(s->name) - strlen("kernel")), s->name);
    const NamedTensor *kernel = safetensors_find(n, file, s->name),
                      *adapter = safetensors_find(n, file, name);
    bool kept = false;
    for (int k = 0; k < t->step.n_state && adapter; k++)
      kept |= !strcmp(t->step.state[k].name, name) && fits(adapter, &t->step.state[k]);
    free(name);
    if (kernel && adapter && !kept && fits(kernel, s))
      t->merged += lora_merge(n, file, kernel, kernel->data);
  }
}

/* Parameters that the file of `init` has not, or has of another shape. */
static void tell_begun(const Trainer *t, int n, const NamedTensor *file) {
  Buf fresh = {0};
  int all = 0, listed = 0;
  for (int i = 0; i < t->step.n_state; i++) {
    const StateSpec *s = &t->step.state[i];
    const NamedTensor *f = safetensors_find(n, file, s->name);
    if (s->kind != STATE_PARAM) continue;
    all++;
    if (f && fits(f, s)) continue;
    if (listed++ < MOST_NAMES) buf_printf(&fresh, "%s%s", fresh.n ? ", " : "", s->name);
  }
  if (listed > MOST_NAMES) buf_printf(&fresh, " and %d more", listed - MOST_NAMES);
  t->o->begun(t->o->arg, t->taken, all, t->merged, fresh.p ? fresh.p : "");
  buf_free(&fresh);
}

/* Why nothing of another run fits: what it was made with. */
static Err *nothing_fits(const Trainer *t, const char *path) {
  Err *e = err_new(ERR_INVALID, "'%s' has no tensor of the names and shapes of model '%s'", path,
                   t->o->model->name);
  CheckpointInfo c;
  Err *none = checkpoint_info(path, &c);
  if (none) {
    err_free(none);
    return err_hint(e,
                    "weft import MODEL FILE --to RUN takes the names of transformers, torchvision "
                    "and timm; then --init RUN");
  }
  Buf other = {0};
  for (const Setting *s = settings; s->name; s++) {
    if (!(s->read_by & (READ_SIZE | READ_LENGTH)) || setting_equal(s, &c.config, &t->o->config))
      continue;
    Buf v = {0};
    setting_text(s, &c.config, &v);
    buf_printf(&other, " --%s %s", s->name, v.p);
    buf_free(&v);
  }
  err_hint(e, "it is a run of %s%s%s", c.model, other.n ? " with" : "", other.n ? other.p : "");
  buf_free(&other);
  checkpoint_info_free(&c);
  return e;
}

/* What a run that goes on may not change: another would not be the same run. */
static Err *same_run(Trainer *t) {
  CheckpointInfo c;
  Meta m = {0};
  TRY(safetensors_meta(t->o->resume, &m));
  bool old = !meta_get(&m, "inputs"); /* says nothing of itself */
  meta_free(&m);
  if (old) return NULL;
  TRY(checkpoint_info(t->o->resume, &c));
  TrainConfig now = t->o->config;
  now.batch = t->global;
  Err *e = NULL;
  if (strcmp(c.model, t->o->model->name))
    e = err_new(ERR_INVALID, "'%s' is a run of model '%s', not of '%s'", t->o->resume, c.model,
                t->o->model->name);
  else if (strcmp(c.data->name, t->o->data->name))
    e = err_hint(err_new(ERR_INVALID, "'%s' is a run on '%s', not on '%s'", t->o->resume,
                         c.data->name, t->o->data->name),
                 "--init begins a new run with its weights");
  for (const Setting *s = settings; s->name && !e; s++) {
    if (!s->fixed || setting_equal(s, &c.config, &now)) continue;
    Buf was = {0}, is = {0};
    setting_text(s, &c.config, &was);
    setting_text(s, &now, &is);
    e = err_hint(err_new(ERR_INVALID, "'%s' is a run with --%s %s, not %s", t->o->resume, s->name,
                         was.p, is.p),
                 "leave the flag out; --init begins a new run with its weights");
    buf_free(&was);
    buf_free(&is);
  }
  if (t->o->model->whole) t->at = c.step; /* its state counts as it likes */
  checkpoint_info_free(&c);
  return e;
}

static Err *first_state(Trainer *t) {
  const TrainOpts *o = t->o;
  const char *path = o->resume ? o->resume : o->init;
  int n = 0;
  NamedTensor *file = NULL;
  if (o->resume) TRY(same_run(t));
  if (path) TRY(runs_beside(safetensors_read(path, &n, &file), path));
  if (path && !o->resume) merge_adapters(t, n, file);
  Err *e = NULL;
  for (int i = 0; i < t->step.n_state && !e; i++)
    e = o->resume ? go_on(t, i, n, file) : path ? begin_with(t, i, n, file) : fresh(t, i);
  if (!e && path && !o->resume && !t->taken) e = nothing_fits(t, path);
  if (!e && path && !o->resume && o->begun) tell_begun(t, n, file);
  safetensors_free(n, file);
  return e;
}

static Err *save_state(Trainer *t) {
  if (!t->o->out || t->o->phantom) return NULL;
  int n = t->step.n_state;
  NamedTensor *v = xcalloc((size_t)n + 1, sizeof *v);
  Err *e = NULL;
  for (int i = 0; i < n && !e; i++) {
    const StateSpec *s = &t->step.state[i];
    v[i] = (NamedTensor){
        .name = s->name, .type = s->type, .rank = s->rank, .data = xmalloc(spec_bytes(s) + 1)};
    memcpy(v[i].dims, s->dims, sizeof(int64_t) * (size_t)s->rank);
    e = download(t, i, v[i].data);
  }
  if (!e) {
    char *path = xasprintf("%s/checkpoint.safetensors", t->o->out);
    TrainConfig whole = t->o->config;
    whole.batch = t->global;
    Meta m = {0};
    checkpoint_meta(t->o->model, &whole, t->o->data, t->at, &m);
    e = safetensors_write(path, n, v, m.kv.n / 2, (const char *const *)m.kv.v);
    meta_free(&m);
    free(path);
  }
  for (int i = 0; i < n; i++) free(v[i].data);
  free(v);
  t->saved = time_now_s();
  return e;
}

/* ---- evaluation ------------------------------------------------------------------------------ */

/* State of replica r that an evaluation program gets as its i-th: of parameters their average,
 * where one is kept. */
static ClientBuffer *evaluated_with(const Trainer *t, int r, int i) {
  if (t->gathered && t->gathered[i]) return t->gathered[i];
  ClientBuffer **state = t->state + r * t->step.n_state;
  return t->ema && i < t->step.n_params ? state[t->ema + i] : state[i];
}

/* A whole step is evaluated by one device: what lies in parts is joined for it. */
static Err *gather(Trainer *t) {
  t->gathered = xcalloc((size_t)t->step.n_state + 1, sizeof *t->gathered);
  Err *e = NULL;
  for (int i = 0; i < t->step.n_state && !e; i++) {
    const StateSpec *s = &t->step.state[i];
    if (!s->cut.s) continue;
    void *data = xmalloc(spec_bytes(s) + 1);
    e = download(t, i, data);
    if (!e)
      e = client_buffer_from_host(t->o->client, t->o->device, s->type, s->rank, s->dims, data,
                                  &t->gathered[i]);
    free(data);
  }
  return e;
}

static void drop_gathered(Trainer *t) {
  for (int i = 0; t->gathered && i < t->step.n_state; i++) client_buffer_free(t->gathered[i]);
  free(t->gathered);
  t->gathered = NULL;
}

static Err *evaluate(Trainer *t) {
  const Data *d = t->o->data;
  bool whole = t->o->model->whole; /* counts what fills a batch up: only full ones */
  int64_t batches = (d->n_test + (whole ? 0 : t->eval_global - 1)) / t->eval_global, done = 0;
  if (!batches) return NULL;
  double from = time_now_s();
  int prefix = t->eval.n_state, in = t->eval.n_inputs, n_args = prefix + in, n = t->eval_replicas;
  ClientBuffer **args = xcalloc((size_t)(n_args * n), sizeof *args);
  ClientBuffer **out = xcalloc((size_t)n, sizeof *out);
  Loader *l = NULL;
  double sums[3] = {0};
  float *counted = xcalloc((size_t)(3 * n * batches), sizeof *counted); /* [batch][replica][3] */
  LoaderOpts lo = {.data = d,
                   .client = t->o->client,
                   .device = t->o->device,
                   .n_devices = n,
                   .first_part = whole ? 0 : t->first, /* each process all of it */
                   .parts = t->all_replicas,
                   .test = true,
                   .batch = t->eval_global,
                   .n_batches = batches};
  Err *e = whole ? gather(t) : NULL;
  if (!e) e = loader_open(&lo, &l);
  for (bool more = !e; more && !e;) {
    Batch b = {0};
    double wait;
    e = loader_next(l, &b, &wait, &more);
    if (e || !more) break;
    for (int r = 0; r < n; r++) { /* each replica answers for its part of the batch */
      for (int i = 0; i < prefix; i++) args[r * n_args + i] = evaluated_with(t, r, i);
      memcpy(args + r * n_args + prefix, b.bufs + r * in, sizeof *args * (size_t)in);
    }
    e = client_execute(t->eval_exe, args, n_args, out);
    for (int r = 0; r < n; r++) {
      float *m = counted + (done * n + r) * 3;
      if (!e) e = client_buffer_to_host(out[r], m, 3 * sizeof *m);
      for (int i = 0; i < 3 && !e; i++) sums[i] += (double)m[i];
      client_buffer_free(out[r]);
      out[r] = NULL;
    }
    batch_free(l, &b);
    done++;
    if (!e && t->o->progress && done < batches)
      t->o->progress(t->o->arg, &(Progress){.step = t->at,
                                            .steps = t->total,
                                            .eval = true,
                                            .batch = done,
                                            .batches = batches,
                                            .left_s = (time_now_s() - from) *
                                                      (double)(batches - done) / (double)done});
  }
  loader_close(l);
  drop_gathered(t);
  free(args);
  free(out);
  if (!e && t->o->job && !whole) {
    memset(sums, 0, sizeof sums);
    e = job_sum(t->o->job, t->evaluations++, t->all_replicas, batches, counted, sums);
  }
  free(counted);
  if (e) return err_wrap(e, "while evaluating");
  t->test_loss = t->o->phantom ? NAN : sums[0] / MAX(sums[2], 1);
  t->test_accuracy = t->o->phantom ? NAN : sums[1] / MAX(sums[2], 1);
  if (t->events) {
    TRY(events_scalar(t->events, "test/loss", t->at, t->test_loss));
    if (!isnan(t->test_accuracy))
      TRY(events_scalar(t->events, "test/accuracy", t->at, t->test_accuracy));
  }
  if (t->o->progress)
    t->o->progress(t->o->arg, &(Progress){.step = t->at,
                                          .steps = t->total,
                                          .epoch = t->at / t->per_epoch,
                                          .eval = true,
                                          .loss = t->test_loss,
                                          .accuracy = t->test_accuracy});
  return NULL;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static double cpu_now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct Pending { /* a step whose metrics were not read yet */
  ClientBuffer *metrics;
  int64_t step; /* 1, 2, ... */
} Pending;

static double recent_rate(const Trainer *t) { /* seconds a step, over the last 50 */
  double sum = 0;
  int n = MIN(50, t->times.n - 1); /* the first time is that of handing the first step over */
  if (n < 1) return time_now_s() - t->looping;
  for (int i = t->times.n - n; i < t->times.n; i++) sum += t->times.v[i];
  return sum / n;
}

static Err *report(Trainer *t, Pending *p) {
  if (!p->metrics) return NULL;
  float m[3 + STEP_EXTRA];
  int n = 3 + t->step.n_extra;
  assert(n <= COUNT_OF(m));
  Err *e = client_buffer_to_host(p->metrics, m, sizeof *m * (size_t)n);
  client_buffer_free(p->metrics);
  p->metrics = NULL;
  if (e) return err_wrap(e, "in step %lld", (long long)p->step);
  if (t->o->phantom) m[0] = m[1] = NAN;
  t->train_loss = (double)m[0];
  t->train_accuracy = (double)m[1];
  if (!t->o->phantom && !isfinite(m[0]))
    return err_hint(
        err_new(ERR_ABORTED, "the loss is %f in step %lld", (double)m[0], (long long)p->step),
        t->o->model->whole ? "the step itself: its rate, its loss, where its state begins; or the "
                             "data: numbers that are "
                             "large, labels that are no classes"
                           : "a smaller learning rate (--lr), a longer warm-up, or --clip 1");
  if (t->events) {
    TRY(events_scalar(t->events, "train/loss", p->step, (double)m[0]));
    if (!isnan(m[1])) TRY(events_scalar(t->events, "train/accuracy", p->step, (double)m[1]));
    if (!isnan(m[2])) TRY(events_scalar(t->events, "train/learning_rate", p->step, (double)m[2]));
    for (int i = 3; i < n; i++) {
      char *tag = xasprintf("train/%s", t->step.extra[i - 3]);
      Err *failed = events_scalar(t->events, tag, p->step, (double)m[i]);
      free(tag);
      TRY(failed);
    }
  }
  if (!t->o->progress) return NULL;
  double step_s = recent_rate(t), busy = time_now_s() - t->looping;
  Progress pr = {.step = p->step,
                 .steps = t->total,
                 .epoch = (p->step - 1) / t->per_epoch,
                 .loss = (double)m[0],
                 .accuracy = (double)m[1],
                 .lr = (double)m[2]};
  pr.step_s = step_s;
  pr.examples_per_s = step_s > 0 ? (double)t->global / step_s : 0;
  pr.left_s = step_s * (double)(t->total - p->step);
  pr.exposed_share = busy > 0 ? MIN(1, t->exposed_s / busy) : 0;
  t->o->progress(t->o->arg, &pr);
  return NULL;
}

/* One step: new state in place of the old. args and outs have room for all replicas. */
static Err *run_step(Trainer *t, Loader *l, Batch *b, ClientBuffer **args, ClientBuffer **outs,
                     Pending *p) {
  int n = t->step.n_state, in = t->step.n_inputs;
  for (int r = 0; r < t->replicas; r++) {
    memcpy(args + r * (n + in), t->state + r * n, sizeof *args * (size_t)n);
    memcpy(args + r * (n + in) + n, b->bufs + r * in, sizeof *args * (size_t)in);
  }
  Err *e = client_execute(t->step_exe, args, n + in, outs);
  batch_free(l, b);
  if (e) return err_wrap(e, "in step %lld", (long long)t->at + 1);
  for (int r = 0; r < t->replicas; r++) {
    for (int i = 0; i < n; i++) {
      client_buffer_free(t->state[r * n + i]);
      t->state[r * n + i] = outs[r * (n + 1) + i];
    }
    if (r > 0) client_buffer_free(outs[r * (n + 1) + n]); /* every replica has the same metrics */
  }
  p->metrics = outs[n];
  p->step = ++t->at;
  return NULL;
}

static char *record_title(const Trainer *t) {
  return xasprintf("%s, batch %lld, training", t->o->model->name, (long long)t->global);
}

/* `all`: the run is over. */
static Err *record_after(Trainer *t, bool all) {
  if (!t->record.running || (!all && t->at < t->record.first + t->record.steps)) return NULL;
  char *title = record_title(t);
  Err *e = record_finish(&t->record, title, &t->profile);
  free(title);
  return e;
}

/* Before a step; of several processes all get the same answer. */
static Err *look_for_stop(Trainer *t) {
  bool asked = t->o->stop && *t->o->stop;
  if (t->o->job) return job_stops(t->o->job, t->at, asked, &t->stopped);
  t->stopped = asked;
  return NULL;
}

static bool due(int64_t at, int64_t every) { return every > 0 && at % every == 0; }

static bool save_due(const Trainer *t) {
  const TrainOpts *o = t->o;
  if (!o->out || o->save_every || o->save_s <= 0) return due(t->at, o->save_every);
  return time_now_s() - t->saved >= o->save_s;
}

static Err *train_steps(Trainer *t) {
  const TrainOpts *o = t->o;
  int n_args = t->step.n_state + t->step.n_inputs;
  ClientBuffer **args = xcalloc((size_t)(n_args * t->replicas), sizeof *args);
  ClientBuffer **outs = xcalloc((size_t)((t->step.n_state + 1) * t->replicas), sizeof *outs);
  Loader *l = NULL;
  Pending last = {0}, now = {0};
  LoaderOpts lo = {.data = o->data,
                   .client = o->client,
                   .device = o->device,
                   .n_devices = t->replicas,
                   .first_part = t->first,
                   .parts = o->model->whole ? MAX(1, o->config.devices) : t->all_replicas,
                   .cuts = t->step.input_cuts[0].s ? t->step.input_cuts : NULL,
                   .batch = t->global,
                   .seed = o->config.seed,
                   .in_order = o->config.in_order,
                   .first = t->at,
                   .n_batches = t->total - t->at};
  Err *e = loader_open(&lo, &l);
  int64_t eval_every = o->eval_every ? o->eval_every : t->per_epoch, evaluated = -1;
  double from = t->looping = t->saved = time_now_s(), cpu_from = cpu_now_s();
  while (!e && t->at < t->total) {
    Batch b = {0};
    double wait;
    bool more;
    e = look_for_stop(t);
    if (e || t->stopped) break;
    e = loader_next(l, &b, &wait, &more);
    if (e || !more) break;
    t->exposed_s += wait;
    e = record_before_step(&t->record, t->at, &b);
    if (!e) e = run_step(t, l, &b, args, outs, &now);
    else batch_free(l, &b);
    if (!e) e = report(t, &last);
    last = now;
    now.metrics = NULL;
    bool eval = due(t->at, eval_every), save = save_due(t);
    if (!e && (eval || save || t->at == t->total))
      e = report(t, &last); /* the step has to be finished anyway */
    if (!e) e = record_after(t, false);
    double to = time_now_s(), cpu_to = cpu_now_s();
    *vec_push(&t->times) = to - from;
    *vec_push(&t->cpu_times) = cpu_to - cpu_from;
    if (!e && eval) {
      e = evaluate(t);
      evaluated = t->at;
    }
    if (!e && save) e = save_state(t);
    from = eval || save ? time_now_s() : to;
    cpu_from = eval || save ? cpu_now_s() : cpu_to;
  }
  if (!e) e = report(t, &last);
  if (!e) e = record_after(t, true);
  if (last.metrics) client_buffer_free(last.metrics);
  loader_close(l);
  free(args);
  free(outs);
  if (!e && !t->stopped && !o->job) e = look_for_stop(t); /* in the last step */
  /* whoever asks to stop does not wait for a test set */
  if (!e && evaluated != t->at && o->eval_every >= 0 && !t->stopped) e = evaluate(t);
  return e;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* Of the steps after those that warm up; 0 of nothing. Sorts. */
static double median(double *v, int n) {
  int warm = MIN(WARM_UP, n - 1);
  if (n < 1) return 0;
  qsort(v + warm, (size_t)(n - warm), sizeof *v, by_value);
  return v[warm + (n - warm - 1) / 2];
}

/* Do all processes make the same run? */
static Err *one_run(Trainer *t) {
  Buf code = {0};
  TRY(write_program(t->step.m, &code));
  JobRun r = {t->o, t->o->config, t->at, hash_bytes(code.p, code.n, 0), t->state_hash};
  r.whole.batch = t->global;
  buf_free(&code);
  return job_is_one_run(&r);
}

static Err *batch_too_large(const Trainer *t) {
  int64_t n = t->o->data->n_train, fits = t->all_replicas;
  while (2 * fits <= n && 2 * fits < t->global) fits *= 2;
  Err *e = err_new(ERR_INVALID, "a batch of %lld is more than the %lld examples of '%s'",
                   (long long)t->global, (long long)n, t->o->data->name);
  if (t->o->model->whole)
    return err_hint(e, "export the step for a batch of at most %lld", (long long)n);
  return fits <= n ? err_hint(e, "--batch %lld", (long long)fits) : e;
}

static Err *prepare(Trainer *t, double *compile_s) {
  const TrainOpts *o = t->o;
  bool whole = o->model->whole;
  t->all_replicas = MAX(1, o->config.replicas);
  t->replicas = whole ? 1 : client_share(o->job, t->all_replicas, &t->first);
  t->global = o->config.batch * t->all_replicas;
  TrainConfig ec = o->config;
  if (ec.eval_batch) ec.batch = ec.eval_batch;
  t->eval_global = ec.batch * t->all_replicas;
  t->eval_replicas = t->replicas;
  if (t->replicas < 1)
    return err_hint(
        err_new(ERR_INVALID, "%d processes for %d replicas", o->job->n, t->all_replicas),
        "--replicas %d, or as many processes as replicas at most", o->job->n);
  if (whole) t->replicas = client_share(o->job, MAX(1, o->config.devices), &t->first);
  if (whole && t->replicas < 1)
    return err_new(ERR_INVALID, "%d processes for a step on %d devices", o->job->n,
                   MAX(1, o->config.devices));
  if (t->replicas > 1 && o->device + t->replicas > client_device_count(o->client))
    return err_hint(err_new(ERR_INVALID, "%d replicas on %d devices", t->replicas,
                            client_device_count(o->client)),
                    "--device cpu:%d has so many", t->replicas);
  t->per_epoch = o->data->n_train / t->global;
  t->total =
      o->config.steps ? o->config.steps : (int64_t)(o->config.epochs * (double)t->per_epoch + 0.5);
  TrainConfig c = o->config;
  if (c.opt.total_steps <= 0) c.opt.total_steps = (double)t->total;
  TRY(step_build(o->model, &c, o->data, true,
                 &t->step)); /* says first that data are of another kind */
  if (t->per_epoch < 1) return batch_too_large(t);
  bool eval = o->eval_every >= 0;
  if (eval) TRY(step_build(o->model, &ec, o->data, false, &t->eval));
  for (int i = 0; i < t->step.n_state && !t->ema; i++)
    if (t->step.state[i].alias) t->ema = i;
  if (o->out) TRY(run_folder_open(o));
  if (o->out && !o->phantom) TRY(has_room(o->out, &t->step));
  if (o->out && !o->phantom) TRY(events_open(o->out, &t->events));
  double t0 = time_now_s();
  TRY(train_compile(o->client, t->step.m, t->all_replicas, false, &t->step_exe));
  if (eval) TRY(train_compile(o->client, t->eval.m, t->all_replicas, whole, &t->eval_exe));
  *compile_s = time_now_s() - t0;
  t->state = xcalloc((size_t)(t->step.n_state * t->replicas) + 1, sizeof *t->state);
  TRY(first_state(t));
  return o->job ? one_run(t) : NULL;
}

Err *train_run(const TrainOpts *o, TrainResult *out) {
  Trainer t = {.o = o, .started = time_now_s(), .test_loss = NAN, .test_accuracy = NAN};
  TrainResult r = {0};
  Err *e = prepare(&t, &r.compile_s);
  int64_t first = t.at;
  if (!e && t.at >= t.total && o->resume)
    e = err_hint(err_new(ERR_PRECONDITION, "'%s' has already done %lld of %lld steps", o->resume,
                         (long long)t.at, (long long)t.total),
                 "ask for more --epochs or --steps");
  if (!e && o->profile) {
    int replicas = MAX(1, o->config.replicas);
    t.record = (Record){
        .client = o->client, .first = MIN(first + WARM_UP, t.total - 1), .steps = o->profile};
    for (int i = 0; i < t.step.n_inputs; i++)
      t.record.batch_bytes += (double)field_bytes(&t.step.inputs[i]) * replicas;
  }
  if (!e) e = train_steps(&t);
  if (!e) e = save_state(&t);
  if (!e) {
    client_program_stats(t.step_exe, &r.stats);
    Err *m = client_memory(o->client, o->device, &r.memory);
    if (m) r.memory = (ClientMemory){-1, -1, -1};
    err_free(m);
    r.train_loss = t.train_loss;
    r.test_loss = t.test_loss;
    r.test_accuracy = t.test_accuracy;
    r.exposed_s = t.exposed_s;
    r.steps = t.at - first;
    r.at = t.at;
    r.examples = r.steps * t.global;
    r.profile = t.profile;
    r.n_weights = t.step.n_weights;
    r.total_s = time_now_s() - t.started;
    r.step_s = median(t.times.v, t.times.n);
    r.step_cpu_s = median(t.cpu_times.v, t.cpu_times.n);
    *out = r;
  } else {
    prof_free(t.profile);
  }
  for (int i = 0; t.state && i < t.step.n_state * t.replicas; i++) client_buffer_free(t.state[i]);
  free(t.state);
  client_program_free(t.step_exe);
  client_program_free(t.eval_exe);
  events_close(t.events);
  step_free(&t.step);
  step_free(&t.eval);
  vec_free(&t.times);
  vec_free(&t.cpu_times);
  return e;
}
