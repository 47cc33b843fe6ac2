/* Chrome's trace event format, as Perfetto's page opens it: a process for each device and one for
 * the host, a thread for each line, complete events ("X") in microseconds. Memory is a counter. And
 * the summary as JSON. */
#include "prof/prof_priv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Out {
  Buf *b;
  int n;
} Out;

static void begin(Out *o, const char *name, const char *ph, int pid, int tid) {
  buf_cstr(o->b, o->n++ ? ",\n{\"name\":" : "\n{\"name\":");
  buf_json_str(o->b, name);
  buf_printf(o->b, ",\"ph\":\"%s\",\"pid\":%d,\"tid\":%d", ph, pid, tid);
}

static void label(Out *o, const char *what, int pid, int tid, const char *name, int order) {
  begin(o, what, "M", pid, tid);
  buf_cstr(o->b, ",\"args\":{\"name\":");
  buf_json_str(o->b, name);
  buf_cstr(o->b, "}}");
  begin(o, !strcmp(what, "process_name") ? "process_sort_index" : "thread_sort_index", "M", pid,
        tid);
  buf_printf(o->b, ",\"args\":{\"sort_index\":%d}}", order);
}

/* Times as whole nanoseconds, both ends rounded alike: what is nested or adjacent stays so. */
static void span(Out *o, const char *name, int pid, int tid, double from_s, double time_s) {
  begin(o, name, "X", pid, tid);
  int64_t from = (int64_t)llround(from_s * 1e9), to = (int64_t)llround((from_s + time_s) * 1e9);
  buf_printf(o->b, ",\"ts\":%.3f,\"dur\":%.3f", (double)from / 1e3, (double)(to - from) / 1e3);
}

enum { TID_STEPS = 1, TID_PROGRAMS, TID_KERNELS, TID_WAITS };

static void kernel_args(Out *o, const ProfProgram *q, const ProfSpan *s) {
  const ProfKernel *k = &q->kernels[s->kernel];
  buf_cstr(o->b, ",\"args\":{\"op\":");
  buf_json_str(o->b, k->op);
  buf_cstr(o->b, ",\"source\":");
  buf_json_str(o->b, k->place);
  buf_printf(o->b, ",\"bound\":\"%s\",\"flops\":%.0f,\"bytes\":%.0f", prof_bound_names[k->bound],
             k->flops, k->bytes);
  if (k->utilisation >= 0) buf_printf(o->b, ",\"utilisation\":%.4f", k->utilisation);
  if (s->count != 1) buf_printf(o->b, ",\"runs\":%.0f", s->count);
  buf_cstr(o->b, "}}");
}

static void memory_counter(Out *o, const Prof *p, const ProfRun *r, int pid) {
  int n;
  ProfChange *c = prof_changes(p->programs.v[r->program], false, &n);
  double now = 0;
  for (int i = 0; i < n; i++) {
    now += c[i].bytes;
    if (i + 1 < n && c[i + 1].at_s == c[i].at_s) continue;
    begin(o, "memory", "C", pid, 0);
    buf_printf(o->b, ",\"ts\":%.3f,\"args\":{\"bytes\":%.0f}}", (r->start_s + c[i].at_s) * 1e6,
               MAX(now, 0));
  }
  free(c);
}

static void device(Out *o, const Prof *p, int d) {
  char *name = xasprintf("%s %d%s", p->devices.v[d].kind, d,
                         p->devices.v[d].is_virtual ? " (virtual time)" : "");
  int pid = d + 1;
  label(o, "process_name", pid, 0, name, d + 1);
  free(name);
  static const char *const lines[] = {"", "steps", "programs", "kernels", "waits"};
  for (int i = 1; i < COUNT_OF(lines); i++) label(o, "thread_name", pid, i, lines[i], i);
  double end = 0, from = 0;
  int64_t step = -1;
  for (int i = 0; i <= p->runs.n; i++) {
    const ProfRun *r = i < p->runs.n && p->runs.v[i].device == d ? &p->runs.v[i] : NULL;
    if (step >= 0 && ((r && r->step != step) || i == p->runs.n)) {
      char text[32];
      snprintf(text, sizeof text, "step %lld", (long long)step);
      span(o, text, pid, TID_STEPS, from, end - from);
      buf_cstr(o->b, "}");
      from = end;
    }
    if (!r) continue;
    double gap = r->start_s - r->input_s - r->transfer_s;
    if (step < 0) from = gap;
    if (r->input_s > 0) {
      span(o, "waits for the host", pid, TID_WAITS, gap, r->input_s);
      buf_cstr(o->b, "}");
    }
    if (r->transfer_s > 0) {
      span(o, "waits for a transfer", pid, TID_WAITS, gap + r->input_s, r->transfer_s);
      buf_cstr(o->b, "}");
    }
    const ProfProgram *q = p->programs.v[r->program];
    span(o, q->name, pid, TID_PROGRAMS, r->start_s, r->time_s);
    buf_printf(o->b, ",\"args\":{\"step\":%lld}}", (long long)r->step);
    int n;
    const ProfSpan *s = prof_spans(p, r, &n);
    for (int k = 0; k < n; k++) {
      span(o, q->kernels[s[k].kernel].name, pid, TID_KERNELS, r->start_s + s[k].start_s,
           s[k].time_s);
      kernel_args(o, q, &s[k]);
    }
    memory_counter(o, p, r, pid);
    step = r->step;
    end = r->start_s + r->time_s;
  }
}

void prof_chrome(Prof *p, Buf *b) {
  Out o = {b, 0};
  buf_cstr(b, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"title\":");
  buf_json_str(b, p->title);
  buf_cstr(b, ",\"version\":\"weft " WEFT_VERSION "\"},\n\"traceEvents\":[");
  int64_t spans = 0;
  for (int i = 0; i < p->runs.n; i++) {
    int n;
    prof_spans(p, &p->runs.v[i], &n);
    spans += n;
  }
  for (int d = 0; d < (spans > PROF_MANY_SPANS ? 1 : p->devices.n); d++) device(&o, p, d);
  if (p->lanes.n) label(&o, "process_name", 1000, 0, "host", 0);
  for (int l = 0; l < p->lanes.n; l++) label(&o, "thread_name", 1000, l + 1, p->lanes.v[l], l);
  for (int i = 0; i < p->host.n; i++) {
    const ProfHost *h = &p->host.v[i];
    span(&o, h->name, 1000, h->lane + 1, h->start_s, h->time_s);
    buf_cstr(b, ",\"args\":{");
    if (h->step >= 0) buf_printf(b, "\"step\":%lld", (long long)h->step);
    if (h->bytes > 0) buf_printf(b, "%s\"bytes\":%.0f", h->step >= 0 ? "," : "", h->bytes);
    buf_cstr(b, "}}");
  }
  buf_cstr(b, "\n]}\n");
}

/* ---- the summary ----------------------------------------------------------------------------- */

static void step_json(Buf *b, const ProfStep *t) {
  buf_printf(b, "{\"step\":%lld,", (long long)t->number);
  buf_json_num(b, "start_s", t->start_s);
  buf_byte(b, ',');
  buf_json_num(b, "time_s", t->time_s);
  buf_cstr(b, ",\"parts\":{");
  for (int k = 0; k < PART_COUNT; k++) {
    if (k) buf_byte(b, ',');
    buf_json_num(b, prof_part_names[k], t->part_s[k]);
  }
  buf_cstr(b, "}}");
}

void prof_json(Prof *p, const ProfSummary *s, Buf *b) {
  const ProfDevice *d = &p->devices.v[s->device];
  Buf verdict = {0};
  prof_verdict(p, s, &verdict);
  buf_cstr(b, "{\"title\":");
  buf_json_str(b, p->title);
  buf_cstr(b, ",\"device\":");
  buf_json_str(b, d->kind);
  buf_printf(b, ",\"devices\":%d,\"virtual\":%s,\"verdict\":", p->devices.n,
             d->is_virtual ? "true" : "false");
  buf_json_str(b, verdict.p ? verdict.p : "");
  buf_free(&verdict);
  const struct {
    const char *key;
    double v;
  } f[] = {{"step_s", s->median_s},
           {"mean_step_s", s->mean.time_s},
           {"flops", s->mean.flops},
           {"flops_recomputed", s->mean.flops_recomputed},
           {"mfu", s->mfu},
           {"hfu", s->hfu},
           {"busy", s->busy},
           {"input_share", s->input},
           {"make_batch_s", s->make_s},
           {"peak_bytes", s->peak_bytes},
           {"peak_flops", d->peak_flops},
           {"bandwidth", d->bandwidth},
           {"memory_bytes", d->memory_bytes}};
  for (int i = 0; i < COUNT_OF(f); i++) {
    buf_byte(b, ',');
    buf_json_num(b, f[i].key, f[i].v);
  }
  buf_cstr(b, ",\n\"mean\":");
  step_json(b, &s->mean);
  buf_printf(b, ",\n\"first\":%d,\"steps\":[", s->first);
  for (int i = 0; i < s->n_steps; i++) {
    buf_cstr(b, i ? ",\n" : "\n");
    step_json(b, &s->steps[i]);
  }
  buf_cstr(b, "],\n\"kernels\":[");
  int n = s->n_steps - s->first;
  for (int i = 0; i < s->n_totals; i++) {
    const ProfTotal *t = &s->totals[i];
    const ProfKernel *k = t->kernel;
    buf_cstr(b, i ? ",\n{\"name\":" : "\n{\"name\":");
    buf_json_str(b, k->name);
    buf_cstr(b, ",\"op\":");
    buf_json_str(b, k->op);
    buf_cstr(b, ",\"source\":");
    buf_json_str(b, k->place);
    buf_cstr(b, ",\"shapes\":");
    buf_json_str(b, k->shapes);
    buf_cstr(b, ",\"program\":");
    buf_json_str(b, t->program->name);
    buf_printf(b, ",\"bound\":\"%s\",\"modelled\":%s,\"collective\":%s,",
               prof_bound_names[k->bound], k->modelled ? "true" : "false",
               k->collective ? "true" : "false");
    buf_json_num(b, "step_s", t->time_s / n);
    buf_byte(b, ',');
    buf_json_num(b, "runs", t->count / n);
    buf_byte(b, ',');
    buf_json_num(b, "time_s", t->time_s / t->count);
    buf_byte(b, ',');
    buf_json_num(b, "flops", k->flops);
    buf_byte(b, ',');
    buf_json_num(b, "bytes", k->bytes);
    buf_byte(b, ',');
    buf_json_num(b, "utilisation", k->utilisation >= 0 ? k->utilisation : NAN);
    buf_byte(b, '}');
  }
  buf_cstr(b, "]}\n");
}
