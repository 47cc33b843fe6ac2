/* Recordings: their lists, the timeline of a virtual program, steps, and the input pipeline. */
#include "prof/prof.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

const char *const prof_bound_names[PROF_BOUND_COUNT] = {
#define X(id, word) word,
    PROF_BOUNDS(X)
#undef X
};
const char *const prof_part_names[PART_COUNT] = {
#define X(id, word, says) word,
    PROF_PARTS(X)
#undef X
};
const char *const prof_part_says[PART_COUNT] = {
#define X(id, word, says) says,
    PROF_PARTS(X)
#undef X
};

Prof *prof_new(const char *title) {
  Prof *p = xcalloc(1, sizeof *p);
  p->arena = arena_new();
  p->title = prof_str(p, title);
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  p->origin_unix_s = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
  return p;
}

void prof_free(Prof *p) {
  if (!p) return;
  vec_free(&p->devices);
  vec_free(&p->programs);
  vec_free(&p->runs);
  vec_free(&p->lanes);
  vec_free(&p->host);
  vec_free(&p->ticks);
  arena_free(p->arena);
  free(p);
}

const char *prof_str(Prof *p, const char *s) { return arena_str(p->arena, str_from(s ? s : "")).p; }

int prof_device(Prof *p, const ProfDevice *d) {
  *vec_push(&p->devices) = *d;
  p->devices.v[p->devices.n - 1].kind = prof_str(p, d->kind);
  return p->devices.n - 1;
}

int prof_lane(Prof *p, const char *name) {
  for (int i = 0; i < p->lanes.n; i++)
    if (!strcmp(p->lanes.v[i], name)) return i;
  *vec_push(&p->lanes) = prof_str(p, name);
  return p->lanes.n - 1;
}

ProfProgram *prof_program(Prof *p, const char *name, int kernels, int loops, int lives) {
  ProfProgram *q = ARENA_NEW(p->arena, ProfProgram);
  q->name = prof_str(p, name);
  q->unknowns = "";
  q->id = (uint64_t)p->programs.n + 1;
  q->n_kernels = kernels;
  q->n_loops = loops;
  q->n_lives = lives;
  q->kernels = ARENA_ARRAY(p->arena, ProfKernel, kernels + 1);
  q->loops = ARENA_ARRAY(p->arena, ProfLoop, loops + 1);
  q->lives = ARENA_ARRAY(p->arena, ProfLife, lives + 1);
  *vec_push(&p->programs) = q;
  return q;
}

/* ---- the timeline of a virtual run ----------------------------------------------------------- */

/* Loops are written out up to this many spans a run; past it a kernel's runs are one span. */
#define MAX_SPANS 20000

typedef VEC(ProfSpan) SpanVec;

static int span_cmp(const void *x, const void *y) {
  const ProfSpan *a = x, *b = y;
  if (a->start_s != b->start_s) return a->start_s < b->start_s ? -1 : 1;
  return a->kernel < b->kernel ? -1 : a->kernel > b->kernel;
}

static void iterate(const ProfProgram *q, int kernel, int loop, double at, SpanVec *out) {
  const ProfKernel *k = &q->kernels[kernel];
  if (loop < 0) {
    *vec_push(out) = (ProfSpan){kernel, at, k->time_s, 1};
    return;
  }
  const ProfLoop *l = &q->loops[loop];
  for (int64_t i = 0; i < (int64_t)l->trips; i++)
    iterate(q, kernel, l->parent, at + (double)i * l->body_s, out);
}

void prof_program_end(Prof *p, ProfProgram *q) {
  double total = 0;
  for (int i = 0; i < q->n_kernels; i++) total += MAX(q->kernels[i].count, 1);
  SpanVec spans = {0};
  for (int i = 0; i < q->n_kernels; i++) {
    const ProfKernel *k = &q->kernels[i];
    if (k->count <= 0 || k->time_s <= 0) continue;
    if (total <= MAX_SPANS) iterate(q, i, k->loop, k->start_s, &spans);
    else *vec_push(&spans) = (ProfSpan){i, k->start_s, k->time_s * k->count, k->count};
  }
  if (spans.n) qsort(spans.v, (size_t)spans.n, sizeof *spans.v, span_cmp);
  /* a loop shown as one span for each kernel: one after the other, where the loop is */
  double end = 0;
  for (int i = 0; i < spans.n; i++) {
    if (total > MAX_SPANS && spans.v[i].start_s < end) spans.v[i].start_s = end;
    end = spans.v[i].start_s + spans.v[i].time_s;
  }
  q->n_spans = spans.n;
  q->spans = arena_dup(p->arena, spans.v, sizeof *spans.v * (size_t)spans.n);
  vec_free(&spans);
}

/* ---- runs ------------------------------------------------------------------------------------ */

ProfRun *prof_run(Prof *p, int device, int program, int64_t step, double start_s, double time_s) {
  ProfRun *r = vec_push(&p->runs);
  *r = (ProfRun){
      .device = device, .program = program, .step = step, .start_s = start_s, .time_s = time_s};
  return r;
}

ProfHost *prof_host(Prof *p, int lane, ProfHostKind kind, const char *name, double start_s,
                    double time_s) {
  ProfHost *h = vec_push(&p->host);
  *h = (ProfHost){.name = prof_str(p, name),
                  .lane = lane,
                  .kind = kind,
                  .start_s = start_s,
                  .time_s = MAX(time_s, 0),
                  .step = -1};
  return h;
}

static int run_cmp(const void *x, const void *y) {
  const ProfRun *a = x, *b = y;
  if (a->device != b->device) return a->device - b->device;
  return a->start_s < b->start_s ? -1 : a->start_s > b->start_s;
}

static int dearest_program(const Prof *p) {
  double *sum = xcalloc((size_t)p->programs.n + 1, sizeof *sum);
  int best = 0;
  for (int i = 0; i < p->runs.n; i++) sum[p->runs.v[i].program] += p->runs.v[i].time_s;
  for (int i = 1; i < p->programs.n; i++)
    if (sum[i] > sum[best]) best = i;
  free(sum);
  return best;
}

/* When the buffers of a measured program live, in one of its runs. */
static void measured_lives(ProfProgram *g, const ProfRun *r) {
  double *from = xcalloc((size_t)g->n_kernels + 1, sizeof *from);
  double *to = xcalloc((size_t)g->n_kernels + 1, sizeof *to);
  for (int k = r->n_spans - 1; k >= 0; k--) {
    const ProfSpan *s = &r->spans[k];
    from[s->kernel] = s->start_s;
    to[s->kernel] = MAX(to[s->kernel], s->start_s + s->time_s);
  }
  for (int i = 0; i < g->n_lives; i++) {
    ProfLife *v = &g->lives[i];
    v->from_s = v->from_kernel >= 0 ? from[v->from_kernel] : 0;
    v->to_s = v->to_kernel >= 0 ? to[v->to_kernel] : r->time_s;
  }
  free(from);
  free(to);
}

/* Measured kernels: their mean time, and with it what bounds them; and the work of a run. */
static void measured(Prof *p) {
  for (int q = 0; q < p->programs.n; q++) {
    ProfProgram *g = p->programs.v[q];
    double *time = xcalloc((size_t)g->n_kernels + 1, sizeof *time);
    double *count = xcalloc((size_t)g->n_kernels + 1, sizeof *count), flops = 0;
    int runs = 0;
    const ProfDevice *d = NULL;
    const ProfRun *last = NULL;
    for (int i = 0; i < p->runs.n; i++) {
      const ProfRun *r = &p->runs.v[i];
      if (r->program != q || !r->spans || p->devices.v[r->device].is_virtual) continue;
      d = &p->devices.v[r->device];
      last = r;
      runs++;
      for (int k = 0; k < r->n_spans; k++) {
        time[r->spans[k].kernel] += r->spans[k].time_s;
        count[r->spans[k].kernel] += r->spans[k].count;
        flops += r->spans[k].count * g->kernels[r->spans[k].kernel].flops;
      }
    }
    for (int k = 0; k < g->n_kernels && d; k++) {
      if (count[k] <= 0) continue;
      g->kernels[k].time_s = time[k] / count[k];
      g->kernels[k].count = count[k] / runs;
      prof_bound(d, &g->kernels[k]);
    }
    if (runs) g->flops = flops / runs;
    if (last && g->n_lives && !g->lives[0].to_s) measured_lives(g, last);
    free(time);
    free(count);
  }
}

void prof_end(Prof *p) {
  if (!p->runs.n) return;
  measured(p);
  qsort(p->runs.v, (size_t)p->runs.n, sizeof *p->runs.v, run_cmp);
  for (int i = 0; i < p->runs.n; i++)
    if (p->runs.v[i].step >= 0) return;
  int main = dearest_program(p);
  int64_t step = 0;
  for (int i = 0; i < p->runs.n; i++) {
    ProfRun *r = &p->runs.v[i];
    if (i && r->device != r[-1].device) step = 0;
    r->step = step;
    if (r->program == main) step++;
  }
}

void prof_bound(const ProfDevice *d, ProfKernel *k) {
  double compute = d->peak_flops > 0 ? k->flops / d->peak_flops : 0;
  double memory = d->bandwidth > 0 ? k->bytes / d->bandwidth : 0;
  double most = MAX(compute, memory);
  k->utilisation = k->time_s > 0 && most > 0 ? MIN(1, most / k->time_s) : -1;
  if (k->collective) k->bound = PROF_NETWORK;
  else if (k->utilisation >= 0 && k->utilisation < 0.02 && k->time_s < 20e-6)
    k->bound = PROF_LATENCY;
  else k->bound = compute > memory ? PROF_COMPUTE : PROF_MEMORY;
}

/* ---- the input pipeline ---------------------------------------------------------------------- */

/* made[k]    when batch k was made: the maker is free (made[k-1]) and the ring has room (step
 *            k - ahead has taken its batch), plus make_s[k]
 * there[k]   when it has crossed: the link is free and the batch is made, plus bytes / link
 * start[k]   when the device is free and the batch is there */
void prof_join_input(Prof *p, const ProfInput *in) {
  int n = in->n;
  if (n <= 0 || !p->devices.n) return;
  double *made = xcalloc((size_t)n, sizeof *made), *there = xcalloc((size_t)n, sizeof *there);
  double *taken = xcalloc((size_t)n, sizeof *taken);
  double link = p->devices.v[0].link, cross = link > 0 ? in->bytes / link : 0;
  int makers = prof_lane(p, "input"), wires = prof_lane(p, "transfer");
  int *seen = xcalloc((size_t)p->devices.n, sizeof *seen);
  double *free_s = xcalloc((size_t)p->devices.n, sizeof *free_s);
  if (p->runs.n) qsort(p->runs.v, (size_t)p->runs.n, sizeof *p->runs.v, run_cmp);
  int main = dearest_program(p);
  double *lasts =
      xcalloc((size_t)n, sizeof *lasts); /* the run time of step k on the first device */
  for (int i = 0, k = 0; i < p->runs.n; i++)
    if (p->runs.v[i].device == 0 && p->runs.v[i].program == main && k < n)
      lasts[k++] = p->runs.v[i].time_s;
  double device_free = 0;
  for (int k = 0; k < n; k++) {
    double begin = MAX(k ? made[k - 1] : 0, k >= in->ahead ? taken[k - in->ahead] : 0);
    made[k] = begin + in->make_s[k];
    ProfHost *h = prof_host(p, makers, HOST_INPUT, "make batch", begin, in->make_s[k]);
    h->step = k;
    double cross_from = MAX(made[k], k ? there[k - 1] : 0);
    there[k] = cross_from + cross;
    if (cross > 0) {
      h = prof_host(p, wires, HOST_TO_DEVICE, "batch to device", cross_from, cross);
      h->step = k;
      h->bytes = in->bytes;
    }
    taken[k] = MAX(device_free, there[k]);
    device_free = taken[k] + lasts[k];
  }
  for (int i = 0; i < p->runs.n; i++) {
    ProfRun *r = &p->runs.v[i];
    int d = r->device, k = seen[d];
    double from = free_s[d];
    if (r->program == main && k < n) {
      r->start_s = MAX(from, there[k]);
      double gap = r->start_s - from;
      r->input_s = MIN(gap, MAX(0, made[k] - from));
      r->transfer_s = gap - r->input_s;
      r->step = k;
      seen[d]++;
    } else {
      r->start_s = from;
      r->input_s = r->transfer_s = 0;
      r->step = k;
    }
    free_s[d] = r->start_s + r->time_s;
  }
  free(made);
  free(there);
  free(taken);
  free(seen);
  free(free_s);
  free(lasts);
}
