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

/* The kernels of a block by schedule position: at[pos] = step id, and steps without one keep -1. */
static void by_position(const Block *b, int *at, int n) {
  for (int i = 0; i < b->n; i++) {
    const Step *s = &b->steps[i];
    if (s->pos >= 0 && s->pos < n && !s->n_blocks) at[s->pos] = s->id;
    for (int j = 0; j < s->n_blocks; j++) by_position(&s->blocks[j], at, n);
  }
}

static int last_position(const Block *b) {
  int last = 0;
  for (int i = 0; i < b->n; i++) {
    last = MAX(last, b->steps[i].pos);
    for (int j = 0; j < b->steps[i].n_blocks; j++)
      last = MAX(last, last_position(&b->steps[i].blocks[j]));
  }
  return last;
}

/* The operation that makes what is in each place. */
static void makers(const Plan *plan, const Region *r, const Op **of) {
  for (const Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_results; i++) {
      int place = plan->value_place[op->results[i].id];
      if (place >= 0 && !of[place]) of[place] = op;
    }
    for (int k = 0; k < op->n_regions; k++) makers(plan, op->regions[k], of);
  }
}

/* A place as memory that somebody owns. Arena places are one for each value: sizes count, where
 * they overlap in the arena does not matter. */
static void place_life(Prof *p, const Plan *plan, int i, const Op *maker, const int *at, int n,
                       ProfLife *out) {
  const Place *q = &plan->places[i];
  Buf name = {0}, type = {0}, where = {0};
  *out = (ProfLife){.bytes = (double)q->bytes, .from_kernel = -1, .to_kernel = -1};
  if (q->kind == PLACE_ARG) {
    buf_printf(&name, "argument %d", q->index);
    out->role = "argument", out->owner = "arguments";
    const Value *v = plan->main->body->args[q->index];
    type_print(&type, v->type);
  } else {
    Str op = maker ? op_full_name(maker) : STR("value");
    buf_printf(&name, "%.*s.%d", STR_ARG(op), i);
    if (maker) op_place(&where, maker);
    for (int k = 0; maker && k < maker->n_results && !type.n; k++)
      if ((double)type_bytes(maker->results[k].type) == (double)q->bytes)
        type_print(&type, maker->results[k].type);
    bool result = q->kind == PLACE_RESULT;
    out->role = result ? "output" : "temporary", out->owner = result ? "results" : "temporaries";
    for (int k = q->begin; k >= 0 && k < n && out->from_kernel < 0; k++) out->from_kernel = at[k];
    for (int k = MIN(q->end, n - 1); !result && k >= 0 && out->to_kernel < 0; k--)
      out->to_kernel = at[k];
  }
  out->name = text(p, &name);
  out->type = text(p, &type);
  out->place = text(p, &where);
}

/* life_of[place]: its number, -1: none. */
static void lives(const Plan *plan, Prof *p, ProfProgram *out, int *life_of) {
  int n = last_position(&plan->body) + 1, m = 0;
  int *at = xmalloc(sizeof *at * (size_t)n);
  for (int i = 0; i < n; i++) at[i] = -1;
  by_position(&plan->body, at, n);
  const Op **of = xcalloc((size_t)plan->n_places + 1, sizeof *of);
  makers(plan, plan->main->body, of);
  for (int i = 0; i < plan->n_places; i++) {
    const Place *q = &plan->places[i];
    bool reused = false; /* a result in a donated argument's memory */
    for (int j = 0; j < plan->n_results && q->kind == PLACE_RESULT; j++)
      reused |= plan->results[j].place == i && plan->results[j].reuse_arg >= 0;
    bool shown = q->kind != PLACE_NONE && q->kind != PLACE_CONST && q->kind != PLACE_VIEW &&
                 q->bytes > 0 && !reused;
    life_of[i] = shown ? m : -1;
    if (shown) place_life(p, plan, i, of[i], at, n, &out->lives[m++]);
  }
  out->n_lives = m;
  free(at);
  free(of);
}

static void reads(const Block *b, Prof *p, const int *life_of, ProfKernel *out) {
  for (int i = 0; i < b->n; i++) {
    const Step *s = &b->steps[i];
    int *list = ARENA_ARRAY(p->arena, int, s->n_in + 1), n = 0;
    for (int k = 0; k < s->n_in; k++)
      if (s->in[k] >= 0 && life_of[s->in[k]] >= 0) list[n++] = life_of[s->in[k]];
    out[s->id].reads = list;
    out[s->id].n_reads = n;
    for (int j = 0; j < s->n_blocks; j++) reads(&s->blocks[j], p, life_of, out);
  }
}

ProfProgram *program_profile(const CpuProgram *p, Prof *prof) {
  Str name = p->prog->module->name.n ? p->prog->module->name : STR("main");
  char *z = xstrndup(name.p, name.n);
  int n = code_first_kernel(p, NULL);
  const Plan *plan = p->codes.n ? p->codes.v[0]->plan : NULL;
  ProfProgram *q = prof_program(prof, z, n + 1, 0, plan ? plan->n_places : 0);
  free(z);
  int *life_of = plan ? xmalloc(sizeof *life_of * ((size_t)plan->n_places + 1)) : NULL;
  if (plan) lives(plan, prof, q, life_of);
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
  if (plan) reads(&plan->body, prof, life_of, q->kernels);
  free(life_of);
  return q;
}
