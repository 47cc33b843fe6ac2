/* The schedule, memory spaces and live ranges of one computation, and with them its time and its
 * peak memory. The rules come from comparing with the compiler's own plans (tests/sim/oracle);
 * where it weighs many alternatives, one simple rule stands here. */
#include <math.h>
#include <stdlib.h>

#include "sim/hlo/query.h"
#include "sim/schedule/compiler.h"

static void live_ranges(Schedule *p) {
  int end = p->kernels.n;
  for (int i = 0; i < p->values.n; i++) {
    HValue *v = p->values.v[i];
    v->first = v->is_param || v->node->kind == H_CONST ? -1 : v->kernel;
    v->last = v->first;
    if (v->is_param && !p->comp->parent) v->last = end;
  }
  for (int i = 0; i < p->kernels.n; i++) {
    Kernel *k = p->kernels.v[i];
    for (int r = 0; r < k->reads.n; r++) {
      HValue *v = k->reads.v[r];
      if (v->node->comp != p->comp) continue;
      v->last = MAX(v->last, i);
      v->last_read = i;
    }
  }
  for (int i = 0; i < p->comp->outputs.n; i++) {
    HValue *v = p->comp->outputs.v[i]->val;
    if (v && v->node->comp == p->comp) v->is_output = true, v->last = end;
  }
  for (int i = p->values.n - 1; i >= 0; i--) { /* views keep what they look at alive */
    HValue *v = p->values.v[i], *b = base_of(v);
    if (b != v && b->node->comp == p->comp) {
      b->last = MAX(b->last, v->last);
      b->is_output |= v->is_output;
    }
  }
}

/* ---- memory spaces, costs, time -------------------------------------------------------------- */

/* Does a loop's condition do more than compare numbers? */
static bool works(const HComp *c) {
  for (int i = 0; i < c->nodes.n; i++) {
    const HNode *n = c->nodes.v[i];
    if (!n->dead && n->kind != H_PARAM && n->kind != H_CONST && !hlo_is_tiny(n)) return true;
  }
  return false;
}

static Err *time_comp(Schedule *p);

static double trips_of(const HNode *n) {
  return n->kind == H_WHILE && n->trip >= 0 ? (double)n->trip : 1;
}

static Schedule *inner_of(const Schedule *p, const HComp *c) {
  for (int i = 0; i < p->inner.n; i++)
    if (p->inner.v[i]->comp == c) return p->inner.v[i];
  return NULL;
}

/* Conditions of loops run once more than their bodies. */
static Err *schedule_condition(Schedule *p, Kernel *k, HNode *loop, double trips) {
  Schedule *in = loop->kind == H_WHILE ? inner_of(p, loop->comps[0]) : NULL;
  if (!in) return NULL;
  TRY(time_comp(in));
  in->taken = true;
  k->time_s += in->time_s * (trips + 1);
  k->reckoned_s += in->reckoned_s * (trips + 1);
  k->cycles += in->cycles * (trips + 1);
  k->flops += in->flops * (trips + 1);
  k->peak_s += in->peak_s * (trips + 1);
  k->bytes += in->bytes * (trips + 1);
  return NULL;
}

/* A loop or a conditional: its computations are planned, the dearest one counts. */
static Err *schedule_called(Schedule *p, Kernel *k, HNode *root) {
  double best = 0;
  for (int c = root->kind == H_WHILE ? 1 : 0; c < root->n_comps; c++) {
    double trips = trips_of(root);
    if (root->kind == H_WHILE && root->trip < 0) p->unknown_loops++;
    Schedule *in = inner_of(p, root->comps[c]);
    TRY(time_comp(in));
    p->unknown_loops += in->unknown_loops;
    p->circular |= in->circular;
    double t = in->time_s * trips;
    if (k->dearest && t < best) continue;
    best = t;
    k->dearest = in;
    k->time_s = t;
    k->reckoned_s = in->reckoned_s * trips;
    k->cycles = in->cycles * trips;
    k->flops = in->flops * trips;
    k->peak_s = in->peak_s * trips;
    k->bytes = in->bytes * trips;
    k->cached = in->cached * trips;
  }
  if (k->dearest) k->dearest->taken = true;
  return schedule_condition(p, k, root, trips_of(root));
}

static void cost(Schedule *p, Kernel *k) {
  k->flops = 0;
  for (int i = 0; i < k->inner.n; i++) /* the cost model walks over them afresh */
    for (int j = -1; j < k->inner.v[i]->n_in; j++)
      (j < 0 ? k->inner.v[i] : k->inner.v[i]->in[j])->visit = 0;
  k->costed = k->modelled = k->collective = k->unknown = false;
  if (sched_host_cost(p, k)) return;
  p->compiler->cost(p, k);
  k->reckoned_s = k->time_s;
}

/* An update in place whose operand somebody needs afterwards. */
static bool needs_copy(const Schedule *p, const Kernel *k, int at) {
  const HNode *root = k->roots.v[0];
  if ((root->kind != H_DUS && root->kind != H_SCATTER) || root->n_in == 0) return false;
  const HValue *v = NULL;
  for (int r = 0; r < k->reads.n; r++)
    if (k->reads.v[r]->node == root->in[0]) v = k->reads.v[r];
  if (!v) return false;
  if (v->is_param && !p->comp->parent)
    return !v->donated || v->is_output || v->last_read > at; /* an argument lives to the end */
  return v->last > at;
}

/* Every kernel's time, first as if everything were in device memory, which tells how long a
 * transfer may take, then with what is on chip. */
static Err *time_all(Schedule *p) {
  bool counted = false;
  for (int pass = p->params->prefetch && p->compiler->place ? 0 : 1; pass < 2; pass++) {
    for (int i = 0; i < p->kernels.n; i++) {
      Kernel *k = p->kernels.v[i];
      HNode *root = k->roots.n ? k->roots.v[0] : NULL;
      if (pass == 1) k->start_s = p->time_s;
      if (root && (root->kind == H_WHILE || root->kind == H_COND)) {
        if (!k->dearest) TRY(schedule_called(p, k, root));
      } else if (k->scalar) {
        for (int r = 0; r < k->roots.n; r++)
          if (k->roots.v[r]->val && hlo_is_tiny(k->roots.v[r]))
            k->roots.v[r]->val->space = SP_SCALAR;
        if (pass == 1 && p->loop_body && p->compiler->count && !counted) {
          p->compiler->count(p, k);
          counted = true;
        }
        continue;
      } else {
        if (root) k->must_copy = needs_copy(p, k, i);
        if (pass == 1 && p->compiler->see) p->compiler->see(p, i);
        cost(p, k);
        if (pass == 1) sched_limit(p, k);
        if (pass == 1) k->peak_s = sched_peak_s(p, k);
        if (pass == 1) sched_dump(p, k);
      }
      if (pass == 0) continue;
      const Schedule *in = k->dearest;
      if (p->compiler->issue) p->compiler->issue(p, k);
      p->time_s += k->time_s;
      p->reckoned_s += k->reckoned_s;
      p->cached += k->cached;
      p->cycles += in || k->costed ? (in ? k->cycles : k->est) : 0;
      p->flops += k->flops;
      p->peak_s += k->peak_s;
      p->bytes += k->bytes;
      double trips = in ? in->mult / p->mult : 1;
      p->net_s += in ? in->net_s * trips : k->collective ? k->time_s : 0;
      p->exposed_s += in ? in->exposed_s * trips : k->collective ? k->time_s : 0;
      p->crossing_s += in ? in->crossing_s * trips : sched_crosses(k) ? k->time_s : 0;
      p->crossing_exposed_s += in                 ? in->crossing_exposed_s * trips
                               : sched_crosses(k) ? k->time_s
                                                  : 0;
      if (in) p->copy_s += in->copy_s * trips, p->host_s += in->host_s * trips;
    }
    if (pass == 0) p->compiler->place(p);
  }
  sched_overlap(p);
  if (p->compiler->settle) p->compiler->settle(p);
  return NULL;
}

/* Is `of` among what n is computed from, inside the kernel? */
bool sched_made_from(const Kernel *k, const HNode *n, const HNode *of, int depth) {
  if (n == of) return true;
  if (depth > 64 || (n->val && n != k->conv && depth > 0)) return false;
  for (int i = 0; i < n->n_in; i++)
    if (sched_made_from(k, n->in[i], of, depth + 1)) return true;
  return false;
}

/* A computation's kernels and layouts, and those of all loops and branches in it. */
static Schedule *open_comp(const SchedSetting *s, HComp *c, Schedule *parent, double mult) {
  Schedule *p = ARENA_NEW(s->arena, Schedule);
  p->g = s->g;
  p->comp = c;
  p->chip = s->chip;
  p->params = s->params;
  p->opts = s->opts;
  p->arena = s->arena;
  p->compiler = s->compiler;
  p->setting = s;
  p->parent = parent;
  p->mult = mult;
  p->loop_body = c->owner && c->owner->kind == H_WHILE && c != c->owner->comps[0];
  p->vmem_free = s->params->cmem > 0 ? s->params->cmem : s->params->fast;
  p->compiler->fuse(p);
  sched_kernels(p);
  p->compiler->layout(p);
  for (int i = 0; i < p->kernels.n; i++) {
    const Kernel *k = p->kernels.v[i];
    const HNode *root = !k->dead && k->roots.n ? k->roots.v[0] : NULL;
    if (!root || (root->kind != H_WHILE && root->kind != H_COND)) continue;
    bool loop = root->kind == H_WHILE;
    for (int q = loop ? 1 : 0; q < root->n_comps; q++)
      *vec_push(&p->inner) = open_comp(s, root->comps[q], p, mult * trips_of(root));
    if (loop && works(root->comps[0]))
      *vec_push(&p->inner) = open_comp(s, root->comps[0], p, mult * (trips_of(root) + 1));
  }
  return p;
}

static Err *time_comp(Schedule *p) {
  live_ranges(p);
  TRY(time_all(p));
  if (p->compiler->finish) p->compiler->finish(p);
  sched_peak(p, p->compiler->lends && !p->parent);
  return NULL;
}

Err *sched_program(const SchedSetting *s, HComp *c, Schedule **out) {
  *out = open_comp(s, c, NULL, 1);
  sched_order(*out);
  return time_comp(*out);
}

void sched_lists_free(Schedule *p) {
  if (!p) return;
  for (int i = 0; i < p->kernels.n; i++) sched_kernel_free(p->kernels.v[i]);
  for (int i = 0; i < p->inner.n; i++) sched_lists_free(p->inner.v[i]);
  vec_free(&p->kernels);
  vec_free(&p->values);
  vec_free(&p->inner);
}
