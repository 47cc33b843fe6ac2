/* What a recording says: steps and their parts, kernels over all steps, the verdict, and the text
 * for a terminal. */
#include "prof/prof_priv.h"

#include "base/units.h"

#include <math.h>
#include <stdlib.h>

static ProfPart part_of(const ProfKernel *k) {
  static const ProfPart parts[] = {PART_COMPUTE, PART_VECTOR, PART_MEMORY, PART_OVERHEAD,
                                   PART_COLLECTIVE};
  return k->collective ? PART_COLLECTIVE : parts[k->bound];
}

const ProfSpan *prof_spans(const Prof *p, const ProfRun *r, int *n) {
  *n = r->spans ? r->n_spans : p->programs.v[r->program]->n_spans;
  return r->spans ? r->spans : p->programs.v[r->program]->spans;
}

static int change_cmp(const void *x, const void *y) {
  const ProfChange *a = x, *b = y;
  if (a->at_s != b->at_s) return a->at_s < b->at_s ? -1 : 1;
  return a->bytes < b->bytes ? -1 : a->bytes > b->bytes; /* what goes makes room for what comes */
}

ProfChange *prof_changes(const ProfProgram *q, bool on_chip, int *n) {
  ProfChange *c = xcalloc(2 * (size_t)q->n_lives + 1, sizeof *c);
  int m = 0;
  for (int i = 0; i < q->n_lives; i++) {
    const ProfLife *v = &q->lives[i];
    if (v->on_chip != on_chip || v->to_s <= v->from_s) continue;
    c[m++] = (ProfChange){v, v->from_s, v->bytes};
    c[m++] = (ProfChange){v, v->to_s, -v->bytes};
  }
  qsort(c, (size_t)m, sizeof *c, change_cmp);
  *n = m;
  return c;
}

/* The parts of one run and of the gap before it, `gap` long. Kernels that overlap count once: time
 * is given to the one that ends first. */
static void add_run(const Prof *p, const ProfRun *r, double gap, ProfStep *s) {
  const ProfProgram *q = p->programs.v[r->program];
  double input = MIN(gap, MAX(r->input_s, 0)), transfer = MIN(gap - input, MAX(r->transfer_s, 0));
  s->part_s[PART_INPUT] += input;
  s->part_s[PART_TRANSFER] += transfer;
  s->part_s[PART_IDLE] += gap - input - transfer;
  int n;
  const ProfSpan *spans = prof_spans(p, r, &n);
  double at = 0;
  for (int i = 0; i < n; i++) {
    double from = MAX(at, spans[i].start_s);
    double to = MIN(spans[i].start_s + spans[i].time_s, r->time_s);
    if (to <= from) continue;
    s->part_s[PART_OVERHEAD] += from - at;
    s->part_s[part_of(&q->kernels[spans[i].kernel])] += to - from;
    at = to;
  }
  s->part_s[PART_OVERHEAD] += MAX(r->time_s - at, 0);
  s->flops += q->flops;
  s->flops_recomputed += q->flops_recomputed;
}

static int double_cmp(const void *x, const void *y) {
  double a = *(const double *)x, b = *(const double *)y;
  return a < b ? -1 : a > b;
}

static int total_cmp(const void *x, const void *y) {
  const ProfTotal *a = x, *b = y;
  return a->time_s > b->time_s ? -1 : a->time_s < b->time_s;
}

static void add_totals(Prof *p, const ProfSummary *s, TotalVec *out) {
  for (int q = 0; q < p->programs.n; q++) {
    const ProfProgram *g = p->programs.v[q];
    ProfTotal *t = xcalloc((size_t)g->n_kernels + 1, sizeof *t);
    for (int i = 0; i < p->runs.n; i++) {
      const ProfRun *r = &p->runs.v[i];
      if (r->program != q || r->device != s->device || r->step < s->steps[s->first].number)
        continue;
      int n;
      const ProfSpan *spans = prof_spans(p, r, &n);
      for (int k = 0; k < n; k++) {
        t[spans[k].kernel].time_s += spans[k].time_s;
        t[spans[k].kernel].count += spans[k].count;
      }
    }
    for (int k = 0; k < g->n_kernels; k++) {
      if (t[k].time_s <= 0) continue;
      t[k].kernel = &g->kernels[k];
      t[k].program = g;
      *vec_push(out) = t[k];
    }
    free(t);
  }
  if (out->n) qsort(out->v, (size_t)out->n, sizeof *out->v, total_cmp);
}

static double peak_bytes(const Prof *p, int device) {
  double peak = 0;
  for (int i = 0; i < p->runs.n; i++)
    if (p->runs.v[i].device == device)
      peak = MAX(peak, p->programs.v[p->runs.v[i].program]->peak_bytes);
  return peak;
}

Err *prof_summary(Prof *p, int device, ProfSummary **out) {
  ProfSummary *s = ARENA_NEW(p->arena, ProfSummary);
  s->device = device;
  VEC(ProfStep) steps = {0};
  double end = 0;
  bool begun = false;
  for (int i = 0; i < p->runs.n; i++) {
    const ProfRun *r = &p->runs.v[i];
    if (r->device != device) continue;
    double gap = r->start_s - end;
    if (!begun) gap = MIN(gap, MAX(0, r->input_s) + MAX(0, r->transfer_s));
    gap = MAX(gap, 0);
    ProfStep *t = steps.n ? &steps.v[steps.n - 1] : NULL;
    if (!t || t->number != r->step) {
      t = vec_push(&steps);
      *t = (ProfStep){.number = r->step, .start_s = r->start_s - gap};
    }
    add_run(p, r, gap, t);
    end = r->start_s + r->time_s;
    t->time_s = end - t->start_s;
    begun = true;
  }
  if (!begun)
    return err_hint(err_new(ERR_NOT_FOUND, "nothing ran on device %d in this recording", device),
                    "record at least one step between start and stop");
  s->n_steps = steps.n;
  s->steps = arena_dup(p->arena, steps.v, sizeof *steps.v * (size_t)steps.n);
  vec_free(&steps);
  s->first = s->n_steps > 1 ? 1 : 0;
  int n = s->n_steps - s->first;
  double *times = xcalloc((size_t)n, sizeof *times);
  for (int i = 0; i < n; i++) {
    const ProfStep *t = &s->steps[s->first + i];
    times[i] = t->time_s;
    s->mean.time_s += t->time_s / n;
    s->mean.flops += t->flops / n;
    s->mean.flops_recomputed += t->flops_recomputed / n;
    for (int k = 0; k < PART_COUNT; k++) s->mean.part_s[k] += t->part_s[k] / n;
  }
  qsort(times, (size_t)n, sizeof *times, double_cmp);
  s->median_s = times[n / 2];
  s->min_s = times[0];
  s->max_s = times[n - 1];
  free(times);
  TotalVec totals = {0};
  add_totals(p, s, &totals);
  s->n_totals = totals.n;
  s->totals = arena_dup(p->arena, totals.v, sizeof *totals.v * (size_t)totals.n);
  vec_free(&totals);
  const ProfDevice *d = &p->devices.v[device];
  double step = s->mean.time_s;
  for (int k = 1; k < PART_COUNT; k++)
    if (s->mean.part_s[k] > s->mean.part_s[s->dearest]) s->dearest = (ProfPart)k;
  if (step > 0) {
    if (d->peak_flops > 0) {
      s->hfu = s->mean.flops / step / d->peak_flops;
      s->mfu = (s->mean.flops - s->mean.flops_recomputed) / step / d->peak_flops;
    }
    s->input = (s->mean.part_s[PART_INPUT] + s->mean.part_s[PART_TRANSFER]) / step;
    s->busy = 1 - s->input - s->mean.part_s[PART_IDLE] / step;
  }
  int made = 0;
  for (int i = 0; i < p->host.n; i++)
    if (p->host.v[i].kind == HOST_INPUT) s->make_s += p->host.v[i].time_s, made++;
  if (made) s->make_s /= made;
  s->peak_bytes = peak_bytes(p, device);
  *out = s;
  return NULL;
}

/* ---- words ----------------------------------------------------------------------------------- */

static void verdict(const ProfSummary *s, Buf *o) {
  double step = s->mean.time_s;
  if (step <= 0) return;
  if (s->input >= 0.1) {
    double waits = 100 * s->input;
    buf_printf(o,
               waits > 99 ? "input-bound: %.1f %% idle, waiting for the host"
                          : "input-bound: %.0f %% idle, waiting for the host",
               waits);
    if (s->make_s > 0) {
      buf_cstr(o, " (a batch takes ");
      buf_time(o, s->make_s);
      buf_cstr(o, " to make, the device needs ");
      buf_time(o, step * s->busy);
      buf_byte(o, ')');
    }
    buf_cstr(o, s->mean.part_s[PART_TRANSFER] > s->mean.part_s[PART_INPUT]
                    ? "; the transfer is most of it: send smaller types (uint8, bfloat16)"
                    : "; load in parallel and ahead of time");
    return;
  }
  if (s->mean.part_s[PART_IDLE] > 0.1 * step) {
    buf_printf(o, "idle %.0f %% of the step, for no input", 100 * s->mean.part_s[PART_IDLE] / step);
    return;
  }
  static const char *const says[PART_COUNT] = {
      [PART_COMPUTE] = "compute-bound: fewer operations, or a lower precision, make it faster",
      [PART_VECTOR] = "bound by the vector unit: element-wise work outweighs the products",
      [PART_MEMORY] =
          "memory-bound: smaller types, fewer passes over the data or a larger batch help",
      [PART_OVERHEAD] = "bound by latency: many small kernels; a larger batch hides them",
      [PART_COLLECTIVE] =
          "bound by the network: larger batches per device, or fewer devices, hide it"};
  double share = 100 * s->mean.part_s[s->dearest] / step;
  bool slack = s->dearest == PART_COMPUTE && s->hfu > 0 && 100 * s->hfu < 0.4 * share;
  if (slack) /* products that the units do not fill are no lack of units */
    buf_printf(
        o,
        "products take %.0f %% of the step and reach %.0f %% of the peak: larger ones, in whole "
        "tiles (batch, length, widths), would use more of it",
        share, 100 * s->hfu * 100 / share);
  else
    buf_printf(o, "%s (%.0f %% of the step)", says[s->dearest] ? says[s->dearest] : "idle",
               100 * s->mean.part_s[s->dearest] / step);
  if (s->make_s > 0) {
    buf_cstr(o, "; not input-bound (a batch takes ");
    buf_time(o, s->make_s);
    buf_cstr(o, " to make)");
  }
}

/* The verdict, and what the model's time leaves out. */
void prof_verdict(const Prof *p, const ProfSummary *s, Buf *o) {
  verdict(s, o);
  for (int i = 0; i < p->programs.n; i++) {
    const ProfProgram *q = p->programs.v[i];
    if (q->unknowns[0]) buf_printf(o, ". %s: %s", q->name, q->unknowns);
  }
}

static void row(Buf *o, const char *label) { buf_printf(o, "  %-10s ", label); }

void prof_print(Prof *p, const ProfSummary *s, int max_kernels, Buf *o) {
  const ProfDevice *d = &p->devices.v[s->device];
  buf_printf(o, "%s on %s", p->title, d->kind);
  if (p->devices.n > 1) buf_printf(o, ", %d devices", p->devices.n);
  buf_printf(o, "%s\n\n", d->is_virtual ? ", virtual time" : ", measured");
  row(o, "step");
  buf_time(o, s->median_s);
  buf_printf(o, " (median of %d, ", s->n_steps - s->first);
  buf_time(o, s->min_s);
  buf_cstr(o, " to ");
  buf_time(o, s->max_s);
  buf_cstr(o, ")\n");
  row(o, "verdict");
  prof_verdict(p, s, o);
  buf_byte(o, '\n');
  for (int k = 0; k < PART_COUNT; k++) {
    double v = s->mean.part_s[k];
    if (v <= 1e-7 * s->mean.time_s) continue;
    buf_printf(o, "  %-10s %5.1f %%  ", prof_part_names[k], 100 * v / s->mean.time_s);
    Buf t = {0};
    buf_time(&t, v);
    buf_printf(o, "%12s  %s\n", t.p, prof_part_says[k]);
    buf_free(&t);
  }
  row(o, "work");
  char text[UNITS_TEXT];
  buf_printf(o, "%s a step", units_flop(text, s->mean.flops - s->mean.flops_recomputed));
  if (s->mfu > 0) buf_printf(o, ", %.1f %% of peak (MFU)", 100 * s->mfu);
  if (s->mfu > 0 && s->mean.flops_recomputed > 0)
    buf_printf(o, ", %.1f %% with %s computed again (HFU)", 100 * s->hfu,
               units_flop(text, s->mean.flops_recomputed));
  buf_printf(o, ", device busy %.1f %%\n", 100 * s->busy);
  row(o, "memory");
  buf_bytes(o, s->peak_bytes);
  if (d->memory_bytes > 0) {
    buf_cstr(o, " of ");
    buf_bytes(o, d->memory_bytes);
  }
  double total = 0;
  for (int i = 0; i < s->n_totals; i++) total += s->totals[i].time_s;
  buf_printf(o, "\n\n  kernels (%d)\n    %6s %12s %6s %-8s %9s %8s %5s  %s\n", s->n_totals, "share",
             "a step", "runs", "bound", "GFLOP/s", "GB/s", "util", "name, source");
  int n = s->n_steps - s->first;
  for (int i = 0; i < s->n_totals && i < max_kernels; i++) {
    const ProfTotal *t = &s->totals[i];
    const ProfKernel *k = t->kernel;
    Buf time = {0};
    double one = t->time_s / t->count;
    buf_time(&time, t->time_s / n);
    buf_printf(o, "    %5.1f%% %12s %6.0f %-8s %9.1f %8.1f ", 100 * t->time_s / total, time.p,
               t->count / n, prof_bound_names[k->bound], k->flops / one / 1e9,
               k->bytes / one / 1e9);
    buf_free(&time);
    if (k->utilisation >= 0) buf_printf(o, "%4.0f%%", 100 * k->utilisation);
    else buf_printf(o, "%5s", "-");
    buf_printf(o, "  %s%s%s%s\n", k->name, k->modelled ? " (modelled)" : "",
               k->place[0] ? "  " : "", k->place);
  }
}
