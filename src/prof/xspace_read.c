/* Reading XSpace back: weft's own, and one in which JAX's host threads stand beside weft's devices.
 */
#include "base/pb.h"
#include "prof/prof_priv.h"
#include "prof/xspace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_TIME ((uint64_t)1 << 61) /* more is damage */

typedef struct Stat {
  int64_t id;
  double num;
  Str text;
} Stat;

typedef struct Name { /* an event's metadata */
  int64_t id;
  Str name, display;
  Str message; /* for its stats */
} Name;

typedef struct Event {
  int64_t name, offset_ps, duration_ps;
  Str message;
} Event;

typedef struct Line {
  Str name;
  int64_t timestamp_ns;
  VEC(Event) events;
} Line;

typedef struct Plane {
  Str name, message;
  VEC(Line) lines;
  VEC(Name) names; /* by id after read_plane */
  int64_t stat_ids[XS_COUNT];
} Plane;

static Stat read_stat(Str bytes, bool *bad) {
  Stat s = {0};
  PbField f;
  Pb in = pb_read(bytes);
  while (pb_next(&in, &f)) {
    if (f.number == 1) s.id = (int64_t)f.value;
    if (f.number == 2) s.num = pb_double(&f);
    if (f.number == 3) s.num = (double)f.value;
    if (f.number == 4) s.num = (double)(int64_t)f.value;
    if (f.number == 5) s.text = f.bytes;
  }
  *bad |= in.bad;
  return s;
}

/* The stat of that name in a message that keeps its stats in `field`. */
static bool find_stat(const Plane *p, Str message, int field, XStatId id, Stat *out) {
  PbField f;
  Pb in = pb_read(message);
  bool bad = false;
  if (!p->stat_ids[id]) return false;
  while (pb_next(&in, &f)) {
    if (f.number != field || f.type != 2) continue;
    *out = read_stat(f.bytes, &bad);
    if (out->id == p->stat_ids[id]) return true;
  }
  return false;
}

static double stat_num(const Plane *p, Str message, int field, XStatId id, double dflt) {
  Stat s;
  return find_stat(p, message, field, id, &s) ? s.num : dflt;
}

static int64_t stat_int(const Plane *p, Str message, int field, XStatId id, int64_t dflt) {
  double v = stat_num(p, message, field, id, (double)dflt);
  return v > -1e15 && v < 1e15 ? (int64_t)v : dflt;
}

static const char *stat_text(Prof *prof, const Plane *p, Str message, int field, XStatId id) {
  Stat s;
  return find_stat(p, message, field, id, &s) ? arena_str(prof->arena, s.text).p : "";
}

static bool read_name(Str entry, Name *out, int64_t *id) {
  PbField f;
  Pb in = pb_read(entry);
  *out = (Name){0};
  while (pb_next(&in, &f)) {
    if (f.number == 1) *id = (int64_t)f.value;
    if (f.number != 2 || f.type != 2) continue;
    out->message = f.bytes;
    PbField g;
    Pb m = pb_read(f.bytes);
    while (pb_next(&m, &g)) {
      if (g.number == 2) out->name = g.bytes;
      if (g.number == 4) out->display = g.bytes;
    }
    if (m.bad) return false;
  }
  out->id = *id;
  return !in.bad;
}

static bool read_line(Str bytes, Line *out) {
  PbField f;
  Pb in = pb_read(bytes);
  *out = (Line){0};
  while (pb_next(&in, &f)) {
    if (f.number == 2) out->name = f.bytes;
    if (f.number == 3) out->timestamp_ns = (int64_t)MIN(f.value, MAX_TIME);
    if (f.number != 4 || f.type != 2) continue;
    Event *e = vec_push(&out->events);
    *e = (Event){.message = f.bytes};
    PbField g;
    Pb ev = pb_read(f.bytes);
    while (pb_next(&ev, &g)) {
      if (g.number == 1) e->name = (int64_t)g.value;
      if (g.number == 2) e->offset_ps = (int64_t)MIN(g.value, MAX_TIME);
      if (g.number == 3) e->duration_ps = (int64_t)MIN(g.value, MAX_TIME);
    }
    if (ev.bad) return false;
  }
  return !in.bad;
}

static int name_cmp(const void *x, const void *y) {
  const Name *a = x, *b = y;
  return a->id < b->id ? -1 : a->id > b->id;
}

static bool read_plane(Str bytes, Plane *out) {
  PbField f;
  Pb in = pb_read(bytes);
  *out = (Plane){.message = bytes};
  bool ok = true;
  while (ok && pb_next(&in, &f)) {
    Name n;
    int64_t id = 0;
    if (f.number == 2) out->name = f.bytes;
    if (f.number == 3 && f.type == 2) ok = read_line(f.bytes, vec_push(&out->lines));
    if (f.number == 4 && f.type == 2) {
      ok = read_name(f.bytes, &n, &id);
      *vec_push(&out->names) = n;
    }
    if (f.number == 5 && f.type == 2) {
      ok = read_name(f.bytes, &n, &id);
      for (int i = 1; i < XS_COUNT; i++)
        if (str_is(n.name, xstat_names[i])) out->stat_ids[i] = id;
    }
  }
  if (out->names.n) qsort(out->names.v, (size_t)out->names.n, sizeof(Name), name_cmp);
  return ok && !in.bad;
}

static void plane_free(Plane *p) {
  for (int i = 0; i < p->lines.n; i++) vec_free(&p->lines.v[i].events);
  vec_free(&p->lines);
  vec_free(&p->names);
}

static const Name *name_of(const Plane *p, int64_t id) {
  Name key = {.id = id};
  return p->names.n ? bsearch(&key, p->names.v, (size_t)p->names.n, sizeof key, name_cmp) : NULL;
}

static const Line *line_named(const Plane *p, const char *name) {
  for (int i = 0; i < p->lines.n; i++)
    if (str_is(p->lines.v[i].name, name)) return &p->lines.v[i];
  return NULL;
}

/* ---- devices --------------------------------------------------------------------------------- */

typedef struct Reader {
  Prof *prof;
  Plane *planes;
  int n_planes;
  int64_t origin_ns, clock_ns; /* of the axis; of the ticks */
} Reader;

static double seconds(const Reader *r, const Line *l, const Event *e) {
  return (double)(l->timestamp_ns - r->origin_ns) * 1e-9 + (double)e->offset_ps * 1e-12;
}

/* The moment of the axis for a moment of the wall clock, both from the origin. */
static double from_wall(const Reader *r, double wall_s) {
  const ProfTick *t = r->prof->ticks.v;
  int n = r->prof->ticks.n, lo = 0, hi = n - 1;
  if (!n) return wall_s;
  double shift = (double)(r->clock_ns - r->origin_ns) * 1e-9, at = wall_s - shift;
  if (at <= t[0].real_s) return t[0].at_s + (at - t[0].real_s) + shift;
  if (at >= t[n - 1].real_s) return t[n - 1].at_s + (at - t[n - 1].real_s) + shift;
  while (hi - lo > 1) {
    int mid = (lo + hi) / 2;
    if (t[mid].real_s <= at) lo = mid;
    else hi = mid;
  }
  double span = t[hi].real_s - t[lo].real_s, part = span > 0 ? (at - t[lo].real_s) / span : 0;
  return t[lo].at_s + part * (t[hi].at_s - t[lo].at_s) + shift;
}

/* A line of the host. Those that weft did not write are on the wall clock. */
static void read_host_line(Reader *r, const Plane *p, const Line *line, Str name) {
  Prof *prof = r->prof;
  if (!line->events.n) return;
  char *lane_name = xstrndup(name.p, name.n);
  int lane = prof_lane(prof, lane_name);
  free(lane_name);
  for (int i = 0; i < line->events.n; i++) {
    const Event *e = &line->events.v[i];
    const Name *n = name_of(p, e->name);
    int kind = (int)stat_int(p, e->message, 4, XS_KIND, -1);
    char *text = xstrndup(n ? n->name.p : "", n ? n->name.n : 0);
    double from = seconds(r, line, e), to = from + (double)e->duration_ps * 1e-12;
    if (kind < 0) from = from_wall(r, from), to = from_wall(r, to);
    ProfHost *h =
        prof_host(prof, lane, kind >= 0 && kind <= HOST_WAIT ? (ProfHostKind)kind : HOST_OTHER,
                  text, from, to - from);
    free(text);
    h->step = stat_int(p, e->message, 4, XS_STEP, -1);
    h->bytes = stat_num(p, e->message, 4, XS_LIFE_BYTES, 0);
  }
}

static int program_with(const Prof *p, uint64_t id) {
  for (int i = 0; i < p->programs.n; i++)
    if (p->programs.v[i]->id == id) return i;
  return -1;
}

static ProfBound bound_from(double v) {
  return v >= 0 && v < PROF_BOUND_COUNT ? (ProfBound)(int)v : PROF_MEMORY;
}

/* The programs that a plane names: modules first, then their kernels, numbered by symbol_id. */
static void read_programs(Reader *r, const Plane *p) {
  Prof *prof = r->prof;
  for (int i = 0; i < p->names.n; i++) {
    const Name *n = &p->names.v[i];
    int64_t id = stat_int(p, n->message, 5, XS_PROGRAM_ID, -1);
    if (id < 0 || stat_int(p, n->message, 5, XS_SYMBOL_ID, -1) >= 0 ||
        program_with(prof, (uint64_t)id) >= 0)
      continue;
    int64_t kernels = 0;
    for (int k = 0; k < p->names.n; k++) {
      Str m = p->names.v[k].message;
      int64_t symbol = stat_int(p, m, 5, XS_SYMBOL_ID, 0);
      if (symbol <= p->names.n && stat_int(p, m, 5, XS_PROGRAM_ID, -1) == id)
        kernels = MAX(kernels, symbol);
    }
    char *name = xstrndup(n->display.p, n->display.n);
    ProfProgram *q = prof_program(prof, name, (int)kernels, 0, 0);
    free(name);
    q->id = (uint64_t)id;
    q->flops = stat_num(p, n->message, 5, XS_PROGRAM_FLOPS, 0);
    q->flops_recomputed = stat_num(p, n->message, 5, XS_PROGRAM_RECOMPUTED, 0);
    q->peak_bytes = stat_num(p, n->message, 5, XS_PROGRAM_PEAK, 0);
    q->unknowns = stat_text(prof, p, n->message, 5, XS_UNKNOWNS);
    for (int k = 0; k < kernels; k++)
      q->kernels[k] = (ProfKernel){
          .name = "", .op = "", .place = "", .shapes = "", .utilisation = -1, .loop = -1};
  }
  for (int i = 0; i < p->names.n; i++) {
    const Name *n = &p->names.v[i];
    int at = (int)stat_int(p, n->message, 5, XS_SYMBOL_ID, 0) - 1;
    int program = program_with(prof, (uint64_t)stat_int(p, n->message, 5, XS_PROGRAM_ID, 0));
    if (program < 0 || at < 0 || at >= prof->programs.v[program]->n_kernels) continue;
    ProfKernel *k = &prof->programs.v[program]->kernels[at];
    k->name = arena_str(prof->arena, n->display).p;
    k->op = stat_text(prof, p, n->message, 5, XS_OP);
    k->place = stat_text(prof, p, n->message, 5, XS_PLACE);
    k->shapes = stat_text(prof, p, n->message, 5, XS_SHAPES);
    k->flops = stat_num(p, n->message, 5, XS_FLOPS, 0);
    k->bytes = stat_num(p, n->message, 5, XS_BYTES, 0);
    k->bound = bound_from(stat_num(p, n->message, 5, XS_BOUND, PROF_MEMORY));
    k->utilisation = stat_num(p, n->message, 5, XS_UTILISATION, -1);
    k->modelled = stat_num(p, n->message, 5, XS_MODELLED, 0) != 0;
    k->collective = stat_num(p, n->message, 5, XS_COLLECTIVE, 0) != 0;
  }
}

typedef VEC(ProfSpan) SpanVec;

static void read_device(Reader *r, const Plane *p) {
  Prof *prof = r->prof;
  ProfDevice d = {.kind = stat_text(prof, p, p->message, 6, XS_KIND),
                  .is_virtual = stat_num(p, p->message, 6, XS_VIRTUAL, 0) != 0,
                  .peak_flops = stat_num(p, p->message, 6, XS_PEAK_TERAFLOPS, 0) * 1e12,
                  .bandwidth = stat_num(p, p->message, 6, XS_PEAK_BANDWIDTH, 0) * 1e9,
                  .memory_bytes = stat_num(p, p->message, 6, XS_MEMORY, 0),
                  .link = stat_num(p, p->message, 6, XS_LINK, 0)};
  if (!d.kind[0]) d.kind = stat_text(prof, p, p->message, 6, XS_DEVICE_TYPE);
  int device = prof_device(prof, &d);
  if (device == 0) prof->title = stat_text(prof, p, p->message, 6, XS_TITLE);
  read_programs(r, p);
  for (int i = 0; i < p->lines.n; i++) {
    Str name = p->lines.v[i].name;
    size_t skip = strlen(XLINE_HOST);
    if (str_starts(name, XLINE_HOST))
      read_host_line(r, p, &p->lines.v[i], (Str){name.p + skip, name.n - skip});
  }
  const Line *modules = line_named(p, XLINE_MODULES), *ops = line_named(p, XLINE_OPS);
  if (!modules) return;
  int at = 0;
  for (int i = 0; i < modules->events.n; i++) {
    const Event *e = &modules->events.v[i];
    const Name *n = name_of(p, e->name);
    int program =
        n ? program_with(prof, (uint64_t)stat_int(p, n->message, 5, XS_PROGRAM_ID, 0)) : -1;
    if (program < 0) continue;
    ProfRun *run = prof_run(prof, device, program, stat_int(p, e->message, 4, XS_STEP, -1),
                            seconds(r, modules, e), (double)e->duration_ps * 1e-12);
    run->input_s = stat_num(p, e->message, 4, XS_INPUT_S, 0);
    run->transfer_s = stat_num(p, e->message, 4, XS_TRANSFER_S, 0);
    SpanVec spans = {0};
    ProfProgram *q = prof->programs.v[program];
    int64_t begin = e->offset_ps, end = begin + e->duration_ps;
    for (; ops && at < ops->events.n; at++) {
      const Event *o = &ops->events.v[at];
      if (o->offset_ps >= end && (o->duration_ps || o->offset_ps > end)) break;
      const Name *name = name_of(p, o->name);
      int kernel = name ? (int)stat_int(p, name->message, 5, XS_SYMBOL_ID, 0) - 1 : -1;
      if (o->offset_ps < begin || kernel < 0 || kernel >= q->n_kernels) continue;
      *vec_push(&spans) =
          (ProfSpan){kernel, (double)(o->offset_ps - begin) * 1e-12, (double)o->duration_ps * 1e-12,
                     stat_num(p, o->message, 4, XS_OCCURRENCES, 1)};
      q->kernels[kernel].time_s = (double)o->duration_ps * 1e-12;
    }
    run->n_spans = spans.n;
    ProfSpan *list = ARENA_ARRAY(prof->arena, ProfSpan, spans.n + 1); /* NULL: the program's */
    if (spans.n) memcpy(list, spans.v, sizeof *list * (size_t)spans.n);
    run->spans = list;
    vec_free(&spans);
  }
}

/* ---- the host, and what is ours -------------------------------------------------------------- */

static void read_host(Reader *r, const Plane *p) {
  for (int l = 0; l < p->lines.n; l++)
    if (!str_is(p->lines.v[l].name, XLINE_MEMORY))
      read_host_line(r, p, &p->lines.v[l], p->lines.v[l].name);
}

static void read_clock(Reader *r, const Plane *p) {
  const Line *line = line_named(p, XLINE_CLOCK);
  if (!line) return;
  r->clock_ns = line->timestamp_ns;
  for (int i = 0; i < line->events.n; i++) {
    const Event *e = &line->events.v[i];
    *vec_push(&r->prof->ticks) =
        (ProfTick){stat_num(p, e->message, 4, XS_REAL_S, 0), (double)e->offset_ps * 1e-12};
  }
}

static void read_lives(Reader *r, const Plane *p) {
  Prof *prof = r->prof;
  for (int l = 0; l < p->lines.n; l++) {
    const Line *line = &p->lines.v[l];
    if (!str_starts(line->name, XLINE_LIVES)) continue;
    size_t skip = strlen(XLINE_LIVES);
    char *id = xstrndup(line->name.p + skip, line->name.n - skip);
    int program = program_with(prof, strtoull(id, NULL, 10));
    free(id);
    if (program < 0) continue;
    ProfProgram *q = prof->programs.v[program];
    q->n_lives = line->events.n;
    q->lives = ARENA_ARRAY(prof->arena, ProfLife, line->events.n + 1);
    for (int i = 0; i < line->events.n; i++) {
      const Event *e = &line->events.v[i];
      const Name *n = name_of(p, e->name);
      if (!n) continue;
      q->lives[i] = (ProfLife){.name = arena_str(prof->arena, n->name).p,
                               .role = stat_text(prof, p, n->message, 5, XS_ROLE),
                               .owner = stat_text(prof, p, n->message, 5, XS_OWNER),
                               .type = stat_text(prof, p, n->message, 5, XS_TYPE),
                               .place = stat_text(prof, p, n->message, 5, XS_PLACE),
                               .bytes = stat_num(p, n->message, 5, XS_LIFE_BYTES, 0),
                               .from_s = (double)e->offset_ps * 1e-12,
                               .to_s = (double)(e->offset_ps + e->duration_ps) * 1e-12,
                               .on_chip = stat_num(p, n->message, 5, XS_ON_CHIP, 0) != 0};
    }
  }
}

static int64_t first_time(const Plane *planes, int n) {
  int64_t first = INT64_MAX;
  for (int i = 0; i < n; i++)
    for (int l = 0; l < planes[i].lines.n; l++) {
      const Line *line = &planes[i].lines.v[l];
      if (line->events.n) first = MIN(first, line->timestamp_ns);
    }
  return first == INT64_MAX ? 0 : first;
}

Err *prof_read_xspace(Str bytes, Prof **out) {
  VEC(Plane) planes = {0};
  PbField f;
  Pb in = pb_read(bytes);
  bool ok = true;
  while (ok && pb_next(&in, &f))
    if (f.number == 1 && f.type == 2) ok = read_plane(f.bytes, vec_push(&planes));
  Prof *prof = prof_new("");
  Reader r = {.prof = prof, .planes = planes.v, .n_planes = planes.n};
  r.origin_ns = first_time(planes.v, planes.n);
  prof->origin_unix_s = (double)r.origin_ns * 1e-9;
  for (int i = 0; i < planes.n && ok; i++) {
    if (str_starts(planes.v[i].name, "/device:")) read_device(&r, &planes.v[i]);
    if (str_is(planes.v[i].name, XPLANE_OWN)) read_clock(&r, &planes.v[i]);
  }
  for (int i = 0; i < planes.n && ok; i++) {
    if (str_is(planes.v[i].name, XPLANE_HOST)) read_host(&r, &planes.v[i]);
    if (str_is(planes.v[i].name, XPLANE_OWN)) read_lives(&r, &planes.v[i]);
  }
  for (int i = 0; i < planes.n; i++) plane_free(&planes.v[i]);
  vec_free(&planes);
  Err *e = NULL;
  if (!ok || in.bad) e = err_new(ERR_DATA_LOSS, "this is not an XSpace, or it is damaged");
  else if (!prof->devices.n)
    e = err_hint(err_new(ERR_NOT_FOUND, "no device in this recording"),
                 "record on weft's plugin, with at least one step between start and stop");
  if (e) {
    prof_free(prof);
    return e;
  }
  prof_end(prof);
  *out = prof;
  return NULL;
}
