/* Recordings of this device: which step ran when, and the steps as kernels. Loops and branches are
 * not kernels themselves, their steps are. */
#include "dev/cpu/cpu_priv.h"

/* Spans of one run that are kept one by one; what runs after that is one span for each kernel. */
#define MAX_SPANS 50000

int code_first_kernel(const CpuProgram *p, const Code *c) {
  int n = 0;
  for (int i = 0; i < p->codes.n && p->codes.v[i] != c; i++) n += p->codes.v[i]->plan->n_steps;
  return n;
}

void trace_step(Trace *t, const Step *s, double from_s, double to_s) {
  if (s->n_blocks) return;
  ProfSpan span = {t->first + s->id, from_s, to_s - from_s, 1};
  if (t->spans.n < MAX_SPANS) {
    *vec_push(&t->spans) = span;
    return;
  }
  for (int i = 0; i < t->rest.n; i++)
    if (t->rest.v[i].kernel == span.kernel) {
      t->rest.v[i].time_s += span.time_s;
      t->rest.v[i].count++;
      return;
    }
  *vec_push(&t->rest) = span;
}

void trace_take(Trace *t, double start_s, DevRun *out) {
  double at =
      t->spans.n ? t->spans.v[t->spans.n - 1].start_s + t->spans.v[t->spans.n - 1].time_s : start_s;
  for (int i = 0; i < t->rest.n; i++) {
    t->rest.v[i].start_s = at;
    at += t->rest.v[i].time_s;
    *vec_push(&t->spans) = t->rest.v[i];
  }
  vec_free(&t->rest);
  if (!t->spans.n) *vec_push(&t->spans) = (ProfSpan){t->first, start_s, out->time_s, 1};
  for (int i = 0; i < t->spans.n; i++) t->spans.v[i].start_s -= start_s;
  out->spans = t->spans.v;
  out->n_spans = t->spans.n;
}

static const char *text(Prof *p, Buf *take) {
  const char *s = prof_str(p, take->p ? take->p : "");
  buf_free(take);
  return s;
}

static void describe(const Code *c, const Block *b, Prof *p, ProfKernel *out) {
  for (int i = 0; i < b->n; i++) {
    const Step *s = &b->steps[i];
    ProfKernel *k = &out[s->id];
    Buf name = {0}, op = {0}, shapes = {0}, place = {0};
    Str full = op_full_name(s->op);
    const char *dot = memchr(full.p, '.', full.n);
    if (dot) full = (Str){dot + 1, full.n - (size_t)(dot + 1 - full.p)};
    buf_str(&op, full);
    buf_printf(&name, "%s.%d", step_name(c, s), s->id);
    step_shapes(s, &shapes, &k->bytes);
    op_place(&place, s->op);
    k->name = text(p, &name);
    k->op = text(p, &op);
    k->shapes = text(p, &shapes);
    k->place = text(p, &place);
    k->flops = step_flops(c, s);
    k->collective = s->kind == STEP_COLLECTIVE;
    k->utilisation = -1;
    k->loop = -1;
    for (int j = 0; j < s->n_blocks; j++) describe(c, &s->blocks[j], p, out);
  }
}

ProfProgram *program_profile(const CpuProgram *p, Prof *prof) {
  Str name = p->prog->module->name.n ? p->prog->module->name : STR("main");
  char *z = xstrndup(name.p, name.n);
  int n = code_first_kernel(p, NULL);
  ProfProgram *q = prof_program(prof, z, n + 1, 0, 0);
  free(z);
  for (int i = 0; i <= n; i++)
    q->kernels[i] = (ProfKernel){.name = "interpreter",
                                 .op = "module",
                                 .place = "",
                                 .shapes = "",
                                 .utilisation = -1,
                                 .loop = -1};
  for (int i = 0; i < p->codes.n; i++) {
    const Code *c = p->codes.v[i];
    describe(c, &c->plan->body, prof, q->kernels + code_first_kernel(p, c));
    for (int s = 0; s < c->plan->n_steps && !i; s++) q->flops += q->kernels[s].flops;
  }
  return q;
}
