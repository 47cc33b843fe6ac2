/* The report as one HTML file: report.html, built in, with the recording as JSON in it. */
#include "prof/prof_priv.h"

#include <math.h>
#include <stdlib.h>

extern const unsigned char prof_report_html[];
extern const int prof_report_html_n;

/* Spans that a page still draws smoothly; the timeline of runs past it shows the program's first.
 */
#define MAX_SPANS 400000

static void spans_json(Buf *b, const ProfSpan *s, int n) {
  buf_byte(b, '[');
  for (int i = 0; i < n; i++)
    buf_printf(b, "%s[%d,%.10g,%.6g]", i ? "," : "", s[i].kernel, s[i].start_s, s[i].time_s);
  buf_byte(b, ']');
}

static void strings(Buf *b, int n, const char *const *s) {
  buf_byte(b, '[');
  for (int i = 0; i < n; i++) {
    if (i) buf_byte(b, ',');
    buf_json_str(b, s[i]);
  }
  buf_byte(b, ']');
}

static void program_json(Buf *b, const Prof *p, int at) {
  const ProfProgram *q = p->programs.v[at];
  double total = q->time_s, mean = 0;
  int runs = 0;
  for (int i = 0; i < p->runs.n; i++)
    if (p->runs.v[i].program == at) mean += p->runs.v[i].time_s, runs++;
  if (runs) total = mean / runs;
  buf_cstr(b, "{\"name\":");
  buf_json_str(b, q->name);
  buf_printf(b, ",\"total\":%.9g,\"kernels\":[", total);
  for (int i = 0; i < q->n_kernels; i++) {
    const ProfKernel *k = &q->kernels[i];
    buf_cstr(b, i ? ",\n[" : "\n[");
    buf_json_str(b, k->name);
    buf_byte(b, ',');
    buf_json_str(b, k->op);
    buf_byte(b, ',');
    buf_json_str(b, k->place);
    buf_printf(b, ",\"%s\",%.6g,%.6g,", prof_bound_names[k->bound], k->flops, k->bytes);
    if (k->utilisation >= 0) buf_printf(b, "%.4g]", k->utilisation);
    else buf_cstr(b, "null]");
  }
  buf_cstr(b, "],\"spans\":");
  spans_json(b, q->spans, q->n_spans);
  buf_cstr(b, ",\n\"lives\":[");
  for (int i = 0; i < q->n_lives; i++) {
    const ProfLife *v = &q->lives[i];
    buf_cstr(b, i ? ",\n[" : "\n[");
    const char *const words[] = {v->name, v->owner, v->type, v->place};
    for (int k = 0; k < COUNT_OF(words); k++) {
      buf_json_str(b, words[k]);
      buf_byte(b, ',');
    }
    buf_printf(b, "%.9g,%d,%.9g,%.9g]", v->bytes, v->on_chip, v->from_s, v->to_s);
  }
  buf_cstr(b, "]}");
}

/* Host spans name their text by number: a loop of a thousand steps has few names. */
static void host_json(Buf *b, const Prof *p) {
  Map *names = map_new();
  buf_cstr(b, ",\n\"host\":[");
  for (int i = 0; i < p->host.n && i < MAX_SPANS; i++) {
    const ProfHost *h = &p->host.v[i];
    int id = (int)(intptr_t)map_get(names, str_from(h->name));
    if (!id) {
      id = map_count(names) + 1;
      map_set(names, str_from(h->name), (void *)(intptr_t)id);
    }
    buf_printf(b, "%s[%d,%d,%.9g,%.6g,%d,%lld,%.6g]", i ? "," : "", h->lane, id - 1, h->start_s,
               h->time_s, (int)h->kind, (long long)h->step, h->bytes);
  }
  buf_cstr(b, "],\n\"names\":[");
  Str key;
  void *value;
  for (int i = 0; map_at(names, i, &key, &value); i++) {
    char *s = xstrndup(key.p, key.n);
    if (i) buf_byte(b, ',');
    buf_json_str(b, s);
    free(s);
  }
  buf_byte(b, ']');
  map_free(names);
}

static void data_json(Prof *p, const ProfSummary *s, Buf *b) {
  buf_cstr(b, "{\"summary\":");
  prof_json(p, s, b);
  buf_cstr(b, ",\"says\":{");
  for (int i = 0; i < PART_COUNT; i++)
    buf_printf(b, "%s\"%s\":\"%s\"", i ? "," : "", prof_part_names[i], prof_part_says[i]);
  buf_cstr(b, "},\n\"programs\":[");
  for (int i = 0; i < p->programs.n; i++) {
    if (i) buf_byte(b, ',');
    program_json(b, p, i);
  }
  buf_cstr(b, "],\n\"runs\":[");
  int64_t spans = 0;
  bool first = true;
  for (int i = 0; i < p->runs.n; i++) {
    const ProfRun *r = &p->runs.v[i];
    buf_printf(b,
               "%s{\"d\":%d,\"p\":%d,\"step\":%lld,\"start\":%.10g,\"time\":%.9g,\"input\":%.6g,"
               "\"transfer\":%.6g",
               first ? "\n" : ",\n", r->device, r->program, (long long)r->step, r->start_s,
               r->time_s, r->input_s, r->transfer_s);
    first = false;
    if (r->spans && r->device == 0 && spans < MAX_SPANS) {
      buf_cstr(b, ",\"spans\":");
      spans_json(b, r->spans, r->n_spans);
      spans += r->n_spans;
    }
    buf_byte(b, '}');
  }
  buf_cstr(b, "],\n\"lanes\":");
  strings(b, p->lanes.n, p->lanes.v);
  host_json(b, p);
  buf_cstr(b, "}");
}

void prof_html(Prof *p, const ProfSummary *s, Buf *out) {
  Str page = {(const char *)prof_report_html, (size_t)prof_report_html_n};
  const char *mark = "/*DATA*/null";
  const char *at = memmem(page.p, page.n, mark, strlen(mark));
  assert(at);
  buf_add(out, page.p, (size_t)(at - page.p));
  data_json(p, s, out);
  at += strlen(mark);
  buf_add(out, at, (size_t)(page.p + page.n - at));
}
