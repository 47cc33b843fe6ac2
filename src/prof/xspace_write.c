/* XSpace: a plane for each device with the lines that xprof's pages are made from, a plane of the
 * host's threads, and one of ours with the lives of buffers, so that reading gives back all. */
#include "base/pb.h"
#include "prof/prof_priv.h"
#include "prof/xspace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *const xstat_names[XS_COUNT] = {
    "",
#define X(id, name) name,
#include "prof/xstats.def"
#undef X
};

enum { WAIT_PROGRAM = 0, WAIT_SYMBOL = 1 << 30 }; /* ids of what is no kernel */
/* The id of a line that xprof derives from others: it does not count what is there as operations of
 * the host. */
#define NO_OPERATIONS ((int64_t)0xdeadbef4)

static int64_t ps(double s) { return (int64_t)llround(s * 1e12); }

/* ---- parts of a message ---------------------------------------------------------------------- */

static void stat_int(Buf *b, int field, XStatId id, int64_t v) {
  Buf s = {0};
  pb_int(&s, 1, id);
  pb_int(&s, 4, v);
  pb_msg(b, field, &s);
}
static void stat_uint(Buf *b, int field, XStatId id, uint64_t v) {
  Buf s = {0};
  pb_int(&s, 1, id);
  pb_int(&s, 3, (int64_t)v);
  pb_msg(b, field, &s);
}
static void stat_double(Buf *b, int field, XStatId id, double v) {
  Buf s = {0};
  pb_int(&s, 1, id);
  pb_f64(&s, 2, v);
  pb_msg(b, field, &s);
}
static void stat_str(Buf *b, int field, XStatId id, const char *v) {
  Buf s = {0};
  pb_int(&s, 1, id);
  pb_str(&s, 5, str_from(v));
  pb_msg(b, field, &s);
}

/* Adds an entry of a plane's map: field 4 event names, 5 stat names. */
static void map_entry(Buf *plane, int field, int64_t id, Buf *take) {
  Buf e = {0};
  pb_int(&e, 1, id);
  pb_msg(&e, 2, take);
  pb_msg(plane, field, &e);
}

static int64_t event_name(Buf *plane, int64_t id, const char *name, const char *display,
                          Buf *take_stats) {
  Buf m = {0};
  pb_int(&m, 1, id);
  pb_str(&m, 2, str_from(name));
  if (display) pb_str(&m, 4, str_from(display));
  if (take_stats) {
    buf_add(&m, take_stats->p, take_stats->n);
    buf_free(take_stats);
  }
  map_entry(plane, 4, id, &m);
  return id;
}

static void stat_names(Buf *plane) {
  for (int i = 1; i < XS_COUNT; i++) {
    Buf m = {0};
    pb_int(&m, 1, i);
    pb_str(&m, 2, str_from(xstat_names[i]));
    map_entry(plane, 5, i, &m);
  }
}

static void begin_plane(Buf *plane, int id, const char *name) {
  pb_int(plane, 1, id);
  pb_str(plane, 2, str_from(name));
  stat_names(plane);
}

static void begin_line(const Prof *p, Buf *line, int64_t id, const char *name) {
  pb_int(line, 1, id);
  pb_str(line, 2, str_from(name));
  pb_int(line, 3, (int64_t)llround(p->origin_unix_s * 1e9));
  pb_str(line, 11, str_from(name));
}

/* `take_stats`: fields 4 of the event; NULL: none. */
static void event_ps(Buf *line, int64_t name, int64_t from, int64_t to, Buf *take_stats) {
  Buf e = {0};
  from = MAX(from, 0);
  to = MAX(to, from);
  pb_int(&e, 1, name);
  pb_int(&e, 2, from);
  pb_int(&e, 3, to - from);
  if (take_stats) {
    buf_add(&e, take_stats->p, take_stats->n);
    buf_free(take_stats);
  }
  pb_msg(line, 4, &e);
}
static void event(Buf *line, int64_t name, double start_s, double time_s, Buf *take_stats) {
  event_ps(line, name, ps(start_s), ps(start_s + time_s), take_stats);
}

/* What the host did as lines of a plane, their names with `prefix`. */
static void host_lines(const Prof *p, const char *prefix, Buf *plane, int first_line,
                       int64_t *next) {
  Map *names = map_new();
  for (int lane = 0; lane < p->lanes.n; lane++) {
    Buf line = {0};
    char *title = xasprintf("%s%s", prefix, p->lanes.v[lane]);
    begin_line(p, &line, first_line + lane, title);
    free(title);
    for (int i = 0; i < p->host.n; i++) {
      const ProfHost *h = &p->host.v[i];
      if (h->lane != lane) continue;
      int64_t id = (int64_t)(intptr_t)map_get(names, str_from(h->name));
      if (!id) {
        id = event_name(plane, (*next)++, h->name, NULL, NULL);
        map_set(names, str_from(h->name), (void *)(intptr_t)id);
      }
      Buf stats = {0};
      stat_int(&stats, 4, XS_KIND, h->kind);
      if (h->step >= 0) stat_int(&stats, 4, XS_STEP, h->step);
      if (h->bytes > 0) stat_double(&stats, 4, XS_LIFE_BYTES, h->bytes);
      event(&line, id, h->start_s, h->time_s, &stats);
    }
    pb_msg(plane, 3, &line);
  }
  map_free(names);
}

/* ---- devices --------------------------------------------------------------------------------- */

/* The category of xprof's tables; `opcode`: XLA's word for the operation. */
static const char *category(const ProfKernel *k, const char *opcode) {
  bool fusion = strstr(k->name, "fusion") != NULL;
  if (k->collective) return opcode;
  if (!strcmp(k->op, "convolution")) return fusion ? "convolution fusion" : "convolution";
  if (strstr(k->op, "dot")) return fusion ? "convolution fusion" : "convolution";
  if (!strcmp(k->op, "copy") || !strcmp(k->op, "transpose") || !strcmp(k->op, "reshape"))
    return "data formatting";
  if (strstr(k->op, "reduce")) return fusion ? "loop fusion" : "reduce";
  if (strstr(k->op, "gather") || strstr(k->op, "scatter") || !strcmp(k->op, "sort")) return opcode;
  return fusion ? "loop fusion" : "non-fusion elementwise";
}

/* The user's place "train.py:41 (mlp/dense)" as file and scope; either may be missing. */
static void split_place(const char *place, Buf *source, Buf *scope) {
  const char *paren = strstr(place, " (");
  Str file = {place, paren ? (size_t)(paren - place) : strlen(place)};
  bool line = file.n > 1 && memrchr(file.p, ':', file.n) && file.p[file.n - 1] >= '0' &&
              file.p[file.n - 1] <= '9';
  if (line) buf_str(source, file);
  else buf_str(scope, file);
  if (paren) buf_str(scope, (Str){paren + 2, strlen(paren) > 3 ? strlen(paren) - 3 : 0});
}

/* All traffic as reads of HBM (memory space 1): operations 1 read, 2 write. */
static void stat_traffic(Buf *b, double bytes) {
  Buf access = {0}, list = {0}, s = {0};
  pb_int(&access, 1, 1);
  pb_int(&access, 2, 1);
  pb_int(&access, 3, (int64_t)bytes);
  pb_msg(&list, 1, &access);
  pb_int(&s, 1, XS_BREAKDOWN);
  pb_bytes(&s, 6, &list);
  buf_free(&list);
  pb_msg(b, 5, &s);
}

/* What the kernel leaves in memory, as XLA writes it: "f32[8]{0}", several in brackets. */
static void result_types(const ProfProgram *q, int at, Buf *out) {
  const char *of = strstr(q->kernels[at].shapes, "->");
  if (of) {
    buf_cstr(out, of + 2);
    return;
  }
  int n = 0;
  for (int i = 0; i < q->n_lives; i++) n += q->lives[i].from_kernel == at;
  if (n != 1) buf_cstr(out, "(");
  for (int i = 0, k = 0; i < q->n_lives; i++)
    if (q->lives[i].from_kernel == at) buf_printf(out, "%s%s", k++ ? ", " : "", q->lives[i].type);
  if (n != 1) buf_cstr(out, ")");
}

static void kernel_name(Buf *plane, int64_t id, const ProfProgram *q, int at) {
  const ProfKernel *k = &q->kernels[at];
  Buf text = {0}, stats = {0}, source = {0}, scope = {0};
  char *opcode = xasprintf("%s", k->op);
  for (char *c = opcode; *c; c++)
    if (*c == '_') *c = '-';
  buf_printf(&text, "%%%s = ", k->name);
  result_types(q, at, &text);
  buf_printf(&text, " %s()", opcode);
  split_place(k->place, &source, &scope);
  if (source.n)
    buf_printf(&text, ", metadata={op_name=\"%s\" source=\"%s\"}", scope.n ? scope.p : k->op,
               source.p);
  buf_printf(&scope, "%s%s:%s", scope.n ? "/" : "", k->op, k->op);
  stat_uint(&stats, 5, XS_PROGRAM_ID, q->id);
  stat_uint(&stats, 5, XS_SYMBOL_ID, (uint64_t)at + 1);
  stat_str(&stats, 5, XS_CATEGORY, category(k, opcode));
  stat_uint(&stats, 5, XS_FLOPS, (uint64_t)k->flops);
  stat_uint(&stats, 5, XS_MODEL_FLOPS, (uint64_t)k->flops);
  stat_uint(&stats, 5, XS_BYTES, (uint64_t)k->bytes);
  stat_traffic(&stats, k->bytes);
  stat_str(&stats, 5, XS_TF_OP, scope.p);
  if (source.n) stat_str(&stats, 5, XS_SOURCE, source.p);
  stat_str(&stats, 5, XS_PLACE, k->place);
  stat_str(&stats, 5, XS_OP, k->op);
  stat_str(&stats, 5, XS_SHAPES, k->shapes);
  stat_int(&stats, 5, XS_BOUND, k->bound);
  stat_double(&stats, 5, XS_UTILISATION, k->utilisation);
  stat_int(&stats, 5, XS_MODELLED, k->modelled);
  stat_int(&stats, 5, XS_COLLECTIVE, k->collective);
  event_name(plane, id, text.p, k->name, &stats);
  free(opcode);
  buf_free(&text);
  buf_free(&source);
  buf_free(&scope);
}

static void device_stats(Buf *plane, const Prof *p, const ProfDevice *d) {
  stat_str(plane, 6, XS_DEVICE_TYPE, d->kind);
  stat_str(plane, 6, XS_KIND, d->kind);
  stat_str(plane, 6, XS_TITLE, p->title);
  stat_double(plane, 6, XS_PEAK_TERAFLOPS, d->peak_flops / 1e12);
  stat_double(plane, 6, XS_PEAK_BANDWIDTH, d->bandwidth / 1e9);
  stat_int(plane, 6, XS_VIRTUAL, d->is_virtual);
  stat_double(plane, 6, XS_MEMORY, d->memory_bytes);
  stat_double(plane, 6, XS_LINK, d->link);
}

typedef struct DeviceLines {
  Buf steps, modules, ops;
  int64_t next, wait_names[2]; /* event name ids of this plane */
  int64_t *first;              /* of each program's kernels; -1: not named yet */
  int64_t *module;
} DeviceLines;

static void name_program(const Prof *p, Buf *plane, DeviceLines *l, int program) {
  const ProfProgram *q = p->programs.v[program];
  if (l->module[program]) return;
  char *name = xasprintf("%s(%llu)", q->name, (unsigned long long)q->id);
  Buf stats = {0};
  stat_uint(&stats, 5, XS_PROGRAM_ID, q->id);
  stat_double(&stats, 5, XS_PROGRAM_FLOPS, q->flops);
  stat_double(&stats, 5, XS_PROGRAM_RECOMPUTED, q->flops_recomputed);
  stat_double(&stats, 5, XS_PROGRAM_PEAK, q->peak_bytes);
  if (q->unknowns[0]) stat_str(&stats, 5, XS_UNKNOWNS, q->unknowns);
  l->module[program] = event_name(plane, l->next++, name, q->name, &stats);
  free(name);
  l->first[program] = l->next;
  for (int k = 0; k < q->n_kernels; k++) kernel_name(plane, l->next++, q, k);
}

/* A wait for the host is an operation of category "infeed" among the kernels: xprof's pages then
 * say how far the program is input-bound. */
static void wait_span(Buf *plane, DeviceLines *l, int which, const char *name, int64_t from,
                      int64_t to) {
  if (to <= from) return;
  if (!l->wait_names[which]) {
    Buf stats = {0};
    stat_uint(&stats, 5, XS_PROGRAM_ID, WAIT_PROGRAM);
    stat_uint(&stats, 5, XS_SYMBOL_ID, WAIT_SYMBOL + (uint64_t)which);
    stat_str(&stats, 5, XS_CATEGORY, "infeed");
    stat_str(&stats, 5, XS_TF_OP, which ? "transfer:transfer" : "host:host");
    char *text = xasprintf("%%%s = infeed()", name);
    l->wait_names[which] = event_name(plane, l->next++, text, name, &stats);
    free(text);
  }
  event_ps(&l->ops, l->wait_names[which], from, to, NULL);
}

/* When a run's wait, its transfer and the run itself begin and when it ends, in picoseconds, each as
 * long in every run of the program: xprof takes an operation that so much as touches a step for a
 * part of it, and steps that differ by one picosecond for a spread that has no root. So what follows
 * on the last run, which ended at `end`, begins one later; the drift is none that can be seen. */
typedef struct RunTimes {
  int64_t wait, transfer, start, end;
} RunTimes;

static RunTimes run_times(const ProfRun *r, int64_t end) {
  enum { ROUNDING = 1000, DRIFT = 1000000 };
  RunTimes t = {.wait = ps(r->start_s - r->input_s - r->transfer_s)};
  if (t.wait < end + ROUNDING && t.wait > end - DRIFT) t.wait = end + 1;
  t.transfer = t.wait + ps(r->input_s);
  t.start = t.transfer + ps(r->transfer_s);
  t.end = t.start + ps(r->time_s);
  return t;
}

/* Which step operations belong to, xprof finds by their times: it gives steps numbers of its own
 * where the host has marked some. */
static void write_run(const Prof *p, Buf *plane, DeviceLines *l, const ProfRun *r, RunTimes t,
                      int64_t id, bool kernels) {
  name_program(p, plane, l, r->program);
  wait_span(plane, l, 0, "wait_for_host", t.wait, t.transfer);
  wait_span(plane, l, 1, "wait_for_transfer", t.transfer, t.start);
  Buf stats = {0};
  stat_int(&stats, 4, XS_STEP, r->step);
  stat_uint(&stats, 4, XS_RUN_ID, (uint64_t)id);
  stat_uint(&stats, 4, XS_PROGRAM_ID, p->programs.v[r->program]->id);
  stat_double(&stats, 4, XS_INPUT_S, r->input_s);
  stat_double(&stats, 4, XS_TRANSFER_S, r->transfer_s);
  event_ps(&l->modules, l->module[r->program], t.start, t.end, &stats);
  if (!kernels) return;
  int n;
  const ProfSpan *s = prof_spans(p, r, &n);
  for (int i = 0; i < n; i++) {
    Buf often = {0};
    if (s[i].count != 1) stat_int(&often, 4, XS_OCCURRENCES, (int64_t)s[i].count);
    int64_t from = MIN(t.start + ps(s[i].start_s), t.end);
    event_ps(&l->ops, l->first[r->program] + s[i].kernel, from,
             MIN(t.start + ps(s[i].start_s + s[i].time_s), t.end), &often);
  }
}

/* From the end of the last step: the time that the device waits belongs to the step it waits for. */
static void write_step(Buf *plane, DeviceLines *l, int64_t number, int64_t from, int64_t to) {
  char name[24];
  snprintf(name, sizeof name, "%lld", (long long)number);
  Buf stats = {0};
  stat_int(&stats, 4, XS_STEP_NUM, number);
  event_ps(&l->steps, event_name(plane, l->next++, name, NULL, NULL), from, to, &stats);
}

static void device_plane(const Prof *p, int device, bool kernels, bool host, Buf *out) {
  Buf plane = {0};
  char name[32];
  snprintf(name, sizeof name, "/device:TPU:%d", device);
  begin_plane(&plane, device + 1, name);
  device_stats(&plane, p, &p->devices.v[device]);
  DeviceLines l = {.next = 1};
  l.first = xcalloc((size_t)p->programs.n + 1, sizeof *l.first);
  l.module = xcalloc((size_t)p->programs.n + 1, sizeof *l.module);
  begin_line(p, &l.steps, 1, XLINE_STEPS);
  begin_line(p, &l.modules, 2, XLINE_MODULES);
  begin_line(p, &l.ops, 3, XLINE_OPS);
  int64_t end = -1, from = 0, step = -1;
  bool any = false;
  for (int i = 0; i < p->runs.n; i++) {
    const ProfRun *r = &p->runs.v[i];
    if (r->device != device) continue;
    RunTimes t = run_times(r, end);
    if (!any || r->step != step) {
      if (any) write_step(&plane, &l, step, from, end);
      from = any ? end + 1 : MAX(0, t.wait);
      step = r->step;
    }
    write_run(p, &plane, &l, r, t, i, kernels);
    end = t.end;
    any = true;
  }
  if (any) write_step(&plane, &l, step, from, end);
  pb_msg(&plane, 3, &l.steps);
  pb_msg(&plane, 3, &l.modules);
  pb_msg(&plane, 3, &l.ops);
  if (host) host_lines(p, XLINE_HOST, &plane, 10, &l.next);
  free(l.first);
  free(l.module);
  pb_msg(out, 1, &plane);
}

/* ---- the host, and what is ours -------------------------------------------------------------- */

/* Allocations and releases of the first run of each program on the first device, as an allocator
 * would tell them: xprof's page of memory. */
static void memory_line(const Prof *p, Buf *plane, int64_t *next) {
  const ProfDevice *d = p->devices.n ? &p->devices.v[0] : NULL;
  Buf line = {0};
  begin_line(p, &line, NO_OPERATIONS, XLINE_MEMORY);
  int64_t take = 0, give = 0;
  bool *seen = xcalloc((size_t)p->programs.n + 1, sizeof *seen);
  for (int i = 0; i < p->runs.n; i++) {
    const ProfRun *r = &p->runs.v[i];
    const ProfProgram *q = p->programs.v[r->program];
    if (r->device || seen[r->program] || !q->n_lives) continue;
    seen[r->program] = true;
    if (!take) take = event_name(plane, (*next)++, "MemoryAllocation", NULL, NULL);
    if (!give) give = event_name(plane, (*next)++, "MemoryDeallocation", NULL, NULL);
    int n;
    ProfChange *c = prof_changes(q, false, &n);
    double now = 0, peak = 0;
    for (int k = 0; k < n; k++) {
      const ProfLife *v = c[k].life;
      now += c[k].bytes;
      peak = MAX(peak, now);
      Buf s = {0};
      stat_str(&s, 4, XS_ALLOCATOR, "device 0");
      stat_int(&s, 4, XS_RESERVED, 0);
      stat_int(&s, 4, XS_BYTES_ALLOCATED, (int64_t)now);
      stat_int(&s, 4, XS_BYTES_AVAILABLE, (int64_t)MAX(d->memory_bytes - now, 0));
      stat_int(&s, 4, XS_PEAK_BYTES, (int64_t)peak);
      stat_double(&s, 4, XS_FRAGMENTATION, 0);
      stat_int(&s, 4, XS_REQUESTED, (int64_t)v->bytes);
      stat_int(&s, 4, XS_ALLOC_BYTES, (int64_t)v->bytes);
      stat_int(&s, 4, XS_ADDRESS, v - q->lives + 1);
      stat_str(&s, 4, XS_TF_OP, v->name);
      stat_str(&s, 4, XS_REGION, v->role);
      stat_str(&s, 4, XS_SHAPE, v->type);
      event(&line, c[k].bytes > 0 ? take : give, r->start_s + c[k].at_s, 0, &s);
    }
    free(c);
  }
  free(seen);
  if (take) pb_msg(plane, 3, &line);
  else buf_free(&line);
}

/* Shares of the peaks over the whole recording, as the chips' own counters would tell them. The
 * overview page looks for them among the host's stats: the mean of all devices. */
static void counters(Buf *plane, const Prof *p) {
  double matrix = 0, memory = 0;
  for (int device = 0; device < p->devices.n; device++) {
    const ProfDevice *d = &p->devices.v[device];
    double flops = 0, bytes = 0, from = 0, to = 0;
    bool any = false;
    for (int i = 0; i < p->runs.n; i++) {
      const ProfRun *r = &p->runs.v[i];
      if (r->device != device) continue;
      const ProfProgram *q = p->programs.v[r->program];
      int n;
      const ProfSpan *s = prof_spans(p, r, &n);
      for (int k = 0; k < n; k++) bytes += q->kernels[s[k].kernel].bytes * s[k].count;
      flops += q->flops;
      if (!any) from = r->start_s - r->input_s - r->transfer_s;
      any = true;
      to = r->start_s + r->time_s;
    }
    if (to <= from) continue;
    if (d->peak_flops > 0) matrix += MIN(100, 100 * flops / (to - from) / d->peak_flops);
    if (d->bandwidth > 0) memory += MIN(100, 100 * bytes / (to - from) / d->bandwidth);
  }
  if (matrix > 0) stat_double(plane, 6, XS_MXU, matrix / p->devices.n);
  if (memory > 0) stat_double(plane, 6, XS_HBM, memory / p->devices.n);
}

/* beside_host: JAX moves what is in the runtime's plane to the host's own. */
static void host_plane(const Prof *p, bool beside_host, Buf *out) {
  Buf plane = {0};
  begin_plane(&plane, p->devices.n + 1, beside_host ? XPLANE_RUNTIME : XPLANE_HOST);
  counters(&plane, p);
  int64_t next = 1;
  if (!beside_host) host_lines(p, "", &plane, 1, &next);
  memory_line(p, &plane, &next);
  pb_msg(out, 1, &plane);
}

static void own_plane(const Prof *p, Buf *out) {
  Buf plane = {0};
  begin_plane(&plane, p->devices.n + 2, XPLANE_OWN);
  int64_t next = 1;
  for (int i = 0; i < p->programs.n; i++) {
    const ProfProgram *q = p->programs.v[i];
    Buf line = {0};
    char name[64];
    snprintf(name, sizeof name, XLINE_LIVES "%llu", (unsigned long long)q->id);
    begin_line(p, &line, i + 1, name);
    for (int k = 0; k < q->n_lives; k++) {
      const ProfLife *v = &q->lives[k];
      Buf stats = {0};
      stat_str(&stats, 5, XS_ROLE, v->role);
      stat_str(&stats, 5, XS_OWNER, v->owner);
      stat_str(&stats, 5, XS_TYPE, v->type);
      stat_str(&stats, 5, XS_PLACE, v->place);
      stat_double(&stats, 5, XS_LIFE_BYTES, v->bytes);
      stat_int(&stats, 5, XS_ON_CHIP, v->on_chip);
      event_name(&plane, next, v->name, NULL, &stats);
      event(&line, next++, v->from_s, v->to_s - v->from_s, NULL);
    }
    pb_msg(&plane, 3, &line);
  }
  Buf line = {0};
  begin_line(p, &line, 0, XLINE_CLOCK);
  for (int i = 0; i < p->ticks.n; i++) {
    if (!i) event_name(&plane, next, "tick", NULL, NULL);
    Buf stats = {0};
    stat_double(&stats, 4, XS_REAL_S, p->ticks.v[i].real_s);
    event(&line, next, p->ticks.v[i].at_s, 0, &stats);
  }
  pb_msg(&plane, 3, &line);
  pb_msg(out, 1, &plane);
}

/* The programs in XLA's own form, where xprof looks for them. */
static void metadata_plane(const Prof *p, Buf *out) {
  Buf plane = {0};
  begin_plane(&plane, p->devices.n + 3, XPLANE_METADATA);
  for (int i = 0; i < p->programs.n; i++) {
    const ProfProgram *q = p->programs.v[i];
    Buf hlo = {0}, stat = {0}, stats = {0};
    prof_hlo_proto(q, &hlo);
    if (hlo.n) {
      char *name = xasprintf("%s(%llu)", q->name, (unsigned long long)q->id);
      pb_int(&stat, 1, XS_HLO_PROTO);
      pb_bytes(&stat, 6, &hlo);
      pb_msg(&stats, 5, &stat);
      event_name(&plane, (int64_t)q->id, name, NULL, &stats);
      free(name);
    }
    buf_free(&hlo);
  }
  pb_msg(out, 1, &plane);
}

void prof_xspace(const Prof *p, bool beside_host, Buf *out) {
  int64_t events = 0;
  for (int i = 0; i < p->runs.n; i++) {
    int n;
    prof_spans(p, &p->runs.v[i], &n);
    events += n;
  }
  for (int d = 0; d < p->devices.n; d++)
    device_plane(p, d, d == 0 || events <= PROF_MANY_SPANS, beside_host && d == 0, out);
  host_plane(p, beside_host, out);
  own_plane(p, out);
  metadata_plane(p, out);
  char host[64] = "host";
  gethostname(host, sizeof host - 1);
  pb_str(out, 4, str_from(host));
}
