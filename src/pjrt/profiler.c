/* The profiler extension: what callers do with the plugin and what its devices run, as an XSpace.
 *
 * A real device is on the wall clock. A virtual device has a clock of its own, and the wall clock
 * has time in it that such a device would not have: computing its numbers here. So the recording's
 * axis is
 *
 *     axis = wall clock - time spent computing for virtual devices + time waited for them
 *
 * A program starts on its axis when it was asked for, its device is free and its arguments have
 * arrived; it takes what the model says; who reads a result waits, on the axis, until it is there.
 * A loop that loads a batch for 30 ms and then runs a 2 ms step so shows 28 ms in which the device
 * waits for the host. Each change of the difference is a tick, by which readers move what other
 * recorders saw on the wall clock (prof/prof.h). */
#include "pjrt/pjrt_priv.h"

#include <stdio.h>

typedef struct Place { /* a device of the recording */
  const Dev *dev;
  int id;
  double free_s, link_free_s;
} Place;

static struct {
  pthread_mutex_t lock;
  bool on;
  int session;              /* counts up; what buffers remember of another session does not hold */
  double begin_s, behind_s; /* wall clock at 0; what the axis is behind it (may be negative) */
  int computing;            /* virtual devices' programs under way */
  double computing_since_s;
  int threads;
  Prof *prof;
  VEC(Place) places;
  VEC(DevProgram *) programs; /* as Prof.programs will be */
  Buf bytes;                  /* the finished recording */
} rec = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local struct { int session, lane; } thread;

bool profiler_on(void) { return __atomic_load_n(&rec.on, __ATOMIC_RELAXED); }

/* The axis now; the lock is held. It stands still while virtual devices compute. */
static double now(void) {
  double t = rec.computing ? rec.computing_since_s : time_now_s();
  return t - rec.begin_s - rec.behind_s;
}

static void tick(void) {
  *vec_push(&rec.prof->ticks) = (ProfTick){time_now_s() - rec.begin_s, now()};
}

/* The calling thread waits, on the axis, until `at`. */
static void wait_until(double at) {
  double ahead = at - now();
  if (ahead <= 0) return;
  tick();
  rec.behind_s -= ahead;
  tick();
}

static int lane(void) {
  if (thread.session == rec.session) return thread.lane;
  char name[32];
  snprintf(name, sizeof name, rec.threads ? "weft client %d" : "weft client", rec.threads);
  rec.threads++;
  thread.session = rec.session;
  thread.lane = prof_lane(rec.prof, name);
  return thread.lane;
}

static ProfHost *host_span(ProfHostKind kind, const char *name, double from_s) {
  return prof_host(rec.prof, lane(), kind, name, from_s, now() - from_s);
}

/* The recording's number of a device; a Dev brings all of its own at once. */
static int place_of(const Dev *d, int id) {
  for (int i = 0; i < rec.places.n; i++)
    if (rec.places.v[i].dev == d && rec.places.v[i].id == id) return i;
  int first = rec.places.n;
  ProfDevice info = {.kind = d->ops->name};
  if (d->ops->profile_device) d->ops->profile_device(d, &info);
  for (int i = 0; i < d->n; i++) {
    prof_device(rec.prof, &info);
    *vec_push(&rec.places) = (Place){d, i, 0, 0};
  }
  return first + id;
}

static int program_of(DevProgram *p) {
  for (int i = 0; i < rec.programs.n; i++)
    if (rec.programs.v[i] == p) return i;
  *vec_push(&rec.programs) = dev_program_retain(p);
  return rec.programs.n - 1;
}

/* ---- what the client's calls tell ------------------------------------------------------------ */

ProfilerSpan profiler_begin(void) {
  if (!profiler_on()) return (ProfilerSpan){0};
  pthread_mutex_lock(&rec.lock);
  ProfilerSpan s = {rec.session, rec.on ? now() : 0};
  pthread_mutex_unlock(&rec.lock);
  return s;
}

/* Takes the lock when the session of `s` is still being recorded. */
static bool enter(ProfilerSpan s) {
  if (!s.session) return false;
  pthread_mutex_lock(&rec.lock);
  if (rec.on && rec.session == s.session) return true;
  pthread_mutex_unlock(&rec.lock);
  return false;
}

void profiler_compiled(ProfilerSpan s, const char *name) {
  if (!enter(s)) return;
  char *text = xasprintf("compile %s", name);
  host_span(HOST_COMPILE, text, s.from_s);
  free(text);
  pthread_mutex_unlock(&rec.lock);
}

static double arrival(const DevBuffer *b) {
  return b && b->recording == rec.session ? b->arrives_s : 0;
}

static void arrives(DevBuffer *b, double at) {
  b->recording = rec.session;
  b->arrives_s = at;
}

void profiler_to_device(ProfilerSpan s, PJRT_Buffer *b) {
  if (!enter(s)) return;
  double bytes = (double)dtype_bytes(b->dtype);
  for (int i = 0; i < b->rank; i++) bytes *= (double)b->dims[i];
  host_span(HOST_TO_DEVICE, "to device", s.from_s)->bytes = bytes;
  int at = place_of(b->client->dev, b->memory->device->desc.id);
  double link = rec.prof->devices.v[at].link;
  if (rec.prof->devices.v[at].is_virtual && link > 0) {
    Place *p = &rec.places.v[at];
    double from = MAX(now(), p->link_free_s);
    p->link_free_s = from + bytes / link;
    if (b->data) arrives(b->data, p->link_free_s);
    int wire = prof_lane(rec.prof, "transfer");
    prof_host(rec.prof, wire, HOST_TO_DEVICE, "to device", from, bytes / link)->bytes = bytes;
  }
  pthread_mutex_unlock(&rec.lock);
}

void profiler_waits(ProfilerSpan s, const PJRT_Buffer *b, bool reads) {
  if (!enter(s)) return;
  double at = arrival(b->data);
  if (at > now() || reads) {
    wait_until(at);
    host_span(reads ? HOST_FROM_DEVICE : HOST_WAIT, reads ? "from device" : "wait", s.from_s);
  }
  pthread_mutex_unlock(&rec.lock);
}

ProfilerRun profiler_run_begin(const Dev *dev) {
  ProfilerRun r = {.span = profiler_begin()};
  if (!enter(r.span)) return (ProfilerRun){0};
  r.is_virtual = dev_is_virtual(dev);
  r.asked_s = now();
  if (r.is_virtual && rec.computing++ == 0) rec.computing_since_s = time_now_s();
  pthread_mutex_unlock(&rec.lock);
  return r;
}

/* The lock is held. */
static void computed(void) {
  if (rec.computing == 0) return;
  double t = time_now_s(), since = rec.computing_since_s;
  if (rec.computing == 1) *vec_push(&rec.prof->ticks) = (ProfTick){since - rec.begin_s, now()};
  if (--rec.computing > 0) return;
  rec.behind_s += t - since;
  tick();
}

void profiler_run_end(const ProfilerRun *r, DevProgram *p, const DevPart *part, const DevRun *run,
                      DevBuffer *const *const *args, DevBuffer *const *const *outs) {
  if (!enter(r->span)) return;
  if (r->is_virtual) computed();
  int n = part->n, program = program_of(p);
  double idle_from = 0, arrived = 0, start = r->asked_s;
  for (int k = 0; k < n; k++) {
    int at = place_of(p->dev, part->devices[k]); /* may move the list */
    idle_from = MAX(idle_from, rec.places.v[at].free_s);
    for (int i = 0; i < p->n_args; i++) arrived = MAX(arrived, arrival(args[k][i]));
  }
  if (r->is_virtual) start = MAX(MAX(r->asked_s, arrived), idle_from);
  double gap = MAX(start - idle_from, 0), input = MIN(gap, MAX(r->asked_s - idle_from, 0));
  const ProfSpan *spans = run->n_spans ? arena_dup(rec.prof->arena, run->spans,
                                                   sizeof *run->spans * (size_t)run->n_spans)
                                       : NULL;
  for (int k = 0; k < n; k++) {
    int at = place_of(p->dev, part->devices[k]);
    ProfRun *t = prof_run(rec.prof, at, program, -1, start, run->time_s);
    t->input_s = input;
    t->transfer_s = gap - input;
    t->n_spans = run->n_spans;
    t->spans = spans;
    rec.places.v[at].free_s = start + run->time_s;
    for (int j = 0; j < p->n_results && r->is_virtual; j++)
      arrives(outs[k][j], rec.places.v[at].free_s);
  }
  host_span(HOST_EXECUTE, "execute", r->asked_s);
  pthread_mutex_unlock(&rec.lock);
}

void profiler_run_failed(const ProfilerRun *r) {
  if (!enter(r->span)) return;
  if (r->is_virtual) computed();
  pthread_mutex_unlock(&rec.lock);
}

/* ---- one recording at a time ----------------------------------------------------------------- */

/* What a virtual device still computes was asked for before: none of the recording's. */
static void start(void) {
  queues_drain_virtual();
  pthread_mutex_lock(&rec.lock);
  if (!rec.on) {
    rec.session++;
    rec.begin_s = time_now_s();
    rec.behind_s = 0;
    rec.computing = rec.threads = 0;
    rec.prof = prof_new("recording");
    rec.places.n = rec.programs.n = 0;
    buf_free(&rec.bytes);
    tick();
    __atomic_store_n(&rec.on, true, __ATOMIC_RELAXED);
  }
  pthread_mutex_unlock(&rec.lock);
}

/* Programs are described when all is over: a real device's kernels are known then. */
static void describe_programs(Prof *p) {
  for (int i = 0; i < rec.programs.n; i++) {
    DevProgram *q = rec.programs.v[i];
    ProfProgram *out = NULL;
    Err *e = q->ops->profile ? q->ops->profile(q, p, &out)
                             : err_new(ERR_UNIMPLEMENTED, "no kernels are known");
    if (e) prof_program_end(p, prof_program(p, "program without a model", 0, 0, 0));
    err_free(e);
    dev_program_release(q);
  }
  rec.programs.n = 0;
}

/* The program that the devices spent most time on: the recording is of that. */
static int dearest(const Prof *p) {
  double *s = xcalloc((size_t)p->programs.n + 1, sizeof *s);
  int best = 0;
  for (int i = 0; i < p->runs.n; i++)
    if (p->runs.v[i].program < p->programs.n) s[p->runs.v[i].program] += p->runs.v[i].time_s;
  for (int i = 1; i < p->programs.n; i++)
    if (s[i] > s[best]) best = i;
  free(s);
  return best;
}

static void stop(void) {
  pthread_mutex_lock(&rec.lock);
  if (rec.on) {
    __atomic_store_n(&rec.on, false, __ATOMIC_RELAXED);
    Prof *p = rec.prof;
    tick();
    describe_programs(p);
    prof_host_peaks(p);
    if (p->programs.n) p->title = p->programs.v[dearest(p)]->name;
    prof_end(p);
    if (p->devices.n) prof_xspace(p, true, &rec.bytes);
    prof_free(p);
    rec.prof = NULL;
  }
  pthread_mutex_unlock(&rec.lock);
}

static PLUGIN_Profiler *const the_one = (PLUGIN_Profiler *)&rec;

static void api_error_destroy(PLUGIN_Profiler_Error_Destroy_Args *a) { (void)a; }
static void api_error_message(PLUGIN_Profiler_Error_Message_Args *a) {
  a->message = "weft: the profiler makes no errors";
  a->message_size = strlen(a->message);
}
static PLUGIN_Profiler_Error *api_error_code(PLUGIN_Profiler_Error_GetCode_Args *a) {
  a->code = ERR_INTERNAL;
  return NULL;
}
static PLUGIN_Profiler_Error *api_create(PLUGIN_Profiler_Create_Args *a) {
  a->profiler = the_one;
  return NULL;
}
static PLUGIN_Profiler_Error *api_start(PLUGIN_Profiler_Args *a) {
  (void)a;
  start();
  return NULL;
}
static PLUGIN_Profiler_Error *api_stop(PLUGIN_Profiler_Args *a) {
  (void)a;
  stop();
  return NULL;
}
static PLUGIN_Profiler_Error *api_destroy(PLUGIN_Profiler_Args *a) {
  (void)a;
  stop();
  pthread_mutex_lock(&rec.lock);
  buf_free(&rec.bytes);
  pthread_mutex_unlock(&rec.lock);
  return NULL;
}
static PLUGIN_Profiler_Error *api_collect(PLUGIN_Profiler_CollectData_Args *a) {
  stop();
  if (a->buffer) memcpy(a->buffer, rec.bytes.p, rec.bytes.n);
  else a->buffer = (uint8_t *)rec.bytes.p;
  a->buffer_size_in_bytes = rec.bytes.n;
  return NULL;
}

static const PLUGIN_Profiler_Api profiler_api = {.struct_size = sizeof profiler_api,
                                                 .error_destroy = api_error_destroy,
                                                 .error_message = api_error_message,
                                                 .error_get_code = api_error_code,
                                                 .create = api_create,
                                                 .destroy = api_destroy,
                                                 .start = api_start,
                                                 .stop = api_stop,
                                                 .collect_data = api_collect};

const PJRT_Profiler_Extension profiler_extension = {
    .base = {sizeof profiler_extension, PJRT_Extension_Type_PROFILER,
             (PJRT_Extension_Base *)(uintptr_t)&shardings_extension},
    .profiler_api = &profiler_api};
