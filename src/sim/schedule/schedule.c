/* The schedule, memory spaces and live ranges of one computation, and with them its time and its
 * peak memory. The rules come from comparing with the compiler's own plans (tests/sim/oracle);
 * where it weighs many alternatives, one simple rule stands here. */
#include <math.h>
#include <stdlib.h>

#include "sim/gpu/gpu.h"
#include "sim/hlo/query.h"
#include "sim/schedule/schedule.h"
#include "sim/tpu/tpu.h"

void sched_kernel_free(Kernel *k) {
  vec_free(&k->roots);
  vec_free(&k->inner);
  vec_free(&k->reads);
  vec_free(&k->waits);
}

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
  /* a value whose every reader sits in its own kernel is never written */
  for (int i = 0; i < p->values.n; i++) {
    HValue *v = p->values.v[i];
    if (v->kernel >= 0 && !v->is_output && v->last <= v->kernel && v->node->kind != H_GET &&
        p->kernels.v[v->kernel]->roots.n > 1)
      v->dropped = true;
  }
}

/* ---- memory spaces, costs, time -------------------------------------------------------------- */

/* A loop or a conditional: its computations are planned, the dearest one counts. */
static Err *schedule_called(Schedule *p, Kernel *k, HNode *root) {
  double best = 0;
  for (int c = root->kind == H_WHILE ? 1 : 0; c < root->n_comps; c++) {
    double trips = root->kind == H_WHILE ? (root->trip < 0 ? 1 : (double)root->trip) : 1;
    if (root->kind == H_WHILE && root->trip < 0) p->unknown_loops = true;
    Schedule *in = NULL;
    Err *err = sched_comp(p->g, root->comps[c], p->chip, p->params, p->opts, p->arena, p,
                          p->mult * trips, &in);
    if (in) *vec_push(&p->inner) = in;
    if (err) return err;
    p->unknown_loops |= in->unknown_loops;
    p->circular |= in->circular;
    double t = in->time_s * trips;
    if (k->dearest && t < best) continue;
    best = t;
    k->dearest = in;
    k->time_s = t;
    k->cycles = in->cycles * trips;
    k->flops = in->flops * trips;
    k->bytes = in->bytes * trips;
  }
  if (k->dearest) k->dearest->taken = true;
  return NULL;
}

static void cost(Schedule *p, Kernel *k) {
  k->flops = 0;
  for (int i = 0; i < k->inner.n; i++) /* the cost model walks over them afresh */
    for (int j = -1; j < k->inner.v[i]->n_in; j++)
      (j < 0 ? k->inner.v[i] : k->inner.v[i]->in[j])->visit = 0;
  k->costed = k->modelled = k->collective = false;
  if (p->params->tpu) tpu_cost(p, k);
  else gpu_cost(p, k);
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

/* Operation by operation the host issues each kernel: the interpreter, the dispatcher, the launch. A
 * launch alone is 2 to 5 us. */
#define ISSUE 5e-6

/* The host runs ahead of the device and waits for nothing; the device cannot start earlier than
 * asked. */
static void wait_for_host(Schedule *p, Kernel *k) {
  const Schedule *in = k->dearest;
  p->issue_s += in ? in->issue_s * in->mult / p->mult : ISSUE;
  if (in || p->issue_s <= p->time_s) return;
  p->host_s += p->issue_s - p->time_s;
  p->time_s = k->start_s = p->issue_s;
}

/* The counter of a loop is a kernel of its own on a GPU, however short, and its copy another. */
static void count_on_gpu(Schedule *p, Kernel *k, bool *counted) {
  *counted = true;
  gpu_cost(p, k);
  k->time_s *= 2;
  p->time_s += k->time_s;
}

/* Every kernel's time, first as if everything were in device memory, which tells how long a
 * transfer may take, then with what is on chip. */
static Err *time_all(Schedule *p) {
  bool counted = false;
  for (int pass = p->params->prefetch ? 0 : 1; pass < 2; pass++) {
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
        if (pass == 1 && p->loop_body && !p->params->tpu && !counted) count_on_gpu(p, k, &counted);
        continue;
      } else {
        if (root) k->must_copy = needs_copy(p, k, i);
        if (pass == 1) tpu_see(p, i);
        cost(p, k);
        if (pass == 1) sched_dump(p, k);
      }
      if (pass == 0) continue;
      const Schedule *in = k->dearest;
      if (p->opts->eager && !p->params->tpu) wait_for_host(p, k);
      p->time_s += k->time_s;
      p->cycles += in || k->costed ? (in ? k->cycles : k->est) : 0;
      p->flops += k->flops;
      p->bytes += k->bytes;
      double trips = in ? in->mult / p->mult : 1;
      p->net_s += in ? in->net_s * trips : k->collective ? k->time_s : 0;
      p->exposed_s += in ? in->exposed_s * trips : k->collective ? k->time_s : 0;
      if (in) p->copy_s += in->copy_s * trips, p->host_s += in->host_s * trips;
    }
    if (pass == 0) tpu_place(p);
  }
  sched_overlap(p);
  tpu_settle(p);
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

/* A copy of a loop's state: an array on chip costs what narrowing it does, and half a cycle a
 * tile. */
static double copy_cycles(const CostParams *params, const HValue *v, bool far) {
  double b = hlo_bits(v->node->dt) / 8;
  int w = b >= 4 ? 4 : b >= 2 ? 2 : 1;
  if (far) return params->lbase + v->tiles * (params->loop.r[w] + params->loop.o[w]);
  if (params->cmem > 0)
    return params->lbase +
           v->tiles * (w == 4 ? params->loop.r[4] : params->loop.r[w] + 0.8 * params->loop.o[w]);
  if (w == 4) return 0.5 * v->tiles;
  return params->lbase + v->tiles * (0.5 + params->loop.o[w] - params->loop.r[w]);
}

/* Does the kernel's product, or what it makes beside a sum, need that array, for more than to write a part
 * of it in place? */
static bool walks_over(const Kernel *k, const HNode *of) {
  if (k->conv) return sched_made_from(k, k->conv, of, 0);
  for (int i = 0; i < k->inner.n && k->reduce; i++)
    for (int q = k->inner.v[i]->kind == H_DUS; q < k->inner.v[i]->n_in; q++)
      if (k->inner.v[i]->in[q] == of) return true;
  return false;
}

/* A copy that belongs to a loop, of no value of its own. */
static void loop_copy(Schedule *p, HNode *n, double cycles, double bytes) {
  Kernel *k = sched_kernel(p);
  *vec_push(&k->roots) =
      hlo_node(p->g, p->comp, H_EWISE, OP_COPY, n->src, n->dt, n->rank, n->d, 1, &n);
  k->copy = k->costed = true;
  k->cycles = k->est = cycles;
  k->time_s = cycles / p->params->clock;
  k->start_s = p->time_s;
  k->bytes = bytes;
  k->bound = SIM_MEMORY;
  k->util = 1;
  p->cycles += cycles;
  p->time_s += k->time_s;
  sched_dump(p, k);
}

/* Stacks that are laid out anew before the loop: the part of it that falls on one round. */
static void retiled_stacks(Schedule *p) {
  const CostParams *params = p->params;
  for (int i = 0; i < p->comp->params.n && p->parent && p->mult > 0; i++) {
    const HValue *v = p->comp->params.v[i]->val;
    if (!v || !v->retiled) continue;
    double once = p->parent->mult / p->mult, windows = ceil(2 * v->bytes / params->cwin);
    double cycles = params->lbase + v->tiles * (params->loop.r[2] + params->loop.o[2]) +
                    (windows - 1) * params->lq;
    loop_copy(p, p->comp->params.v[i], cycles * once, v->bytes * once);
  }
}

/* A loop's state that is still read while its next value is written needs a copy in every
 * iteration: when the read comes later, or is of a product's operand or a reduction's. */
static void loop_copies(Schedule *p) {
  const HComp *c = p->comp;
  const CostParams *params = p->params;
  for (int i = 0; i < c->outputs.n && i < c->params.n; i++) {
    const HNode *o = c->outputs.v[i];
    const HValue *v = o->val;
    if (!v || v->is_param || v->kernel < 0 || v->tiles < 1) continue;
    const Kernel *k = p->kernels.v[v->kernel];
    const HValue *old = c->params.v[i]->val;
    bool clash = old->last > v->kernel;
    for (int r = 0; r < k->reads.n && !clash; r++)
      clash = k->reads.v[r] == old && walks_over(k, old->node);
    if (!clash) continue;
    bool far = old->space == SP_HBM;
    double cyc = copy_cycles(params, v, far);
    if ((far || params->cmem > 0) && params->rotates && p->parent && p->mult > 0) /* once before */
      cyc += copy_cycles(params, v, true) * p->parent->mult / p->mult;
    loop_copy(p, c->outputs.v[i], cyc, far ? 2 * v->bytes : 0);
  }
}

/* Does a loop write one slice of state i in each round, the last one first? *stack: does it write
 * slices at all? */
static bool from_the_end(const HComp *body, int i, bool *stack) {
  const HNode *o = i < body->outputs.n ? body->outputs.v[i] : NULL;
  *stack = o && o->kind == H_DUS && o->in[0] == body->params.v[i];
  if (!*stack) return false;
  for (int k = 2; k < o->n_in; k++)
    for (const HNode *n = o->in[k]; n->n_in > 0; n = n->in[n->op == OP_SELECT ? n->n_in - 1 : 0])
      if (n->op == OP_SUBTRACT) return true;
  return false;
}

/* A stack that is written from its first slice on starts as it is found, if it is of the only loop whose stacks begin as
 * that constant. One that is written from the end is filled with it, and so are then all that begin so. */
static bool filled(const HNode *init) {
  const HNode *loop = NULL;
  for (int i = 0; i < init->n_users; i++) {
    const HNode *w = init->users[i];
    for (int k = 0; w->kind == H_WHILE && k < w->n_in; k++) {
      bool stack = false;
      if (w->in[k] != init) continue;
      if (from_the_end(w->comps[1], k, &stack) || (stack && loop && loop != w)) return true;
      if (stack) loop = w;
    }
  }
  return false;
}

static void fill_stack(Schedule *p, HNode *init, const HValue *v) {
  const CostParams *params = p->params;
  double b = hlo_bits(init->dt) / 8;
  int width = b >= 4 ? 4 : b >= 2 ? 2 : 1;
  bool far = v->space == SP_HBM;
  double n = v->tiles * 4096 <= params->one_bytes ? 1 : ceil(v->tiles / params->lwin);
  double tile = far || params->cmem > 0 ? params->loop.o[width]
                : width == 4            ? 0.25
                                        : params->loop.o[width] - params->loop.r[width] + 0.25;
  Kernel *c = sched_kernel(p);
  *vec_push(&c->roots) = hlo_node(p->g, p->comp, H_BCAST, OP_BROADCAST_IN_DIM, init->src, init->dt,
                                  init->rank, init->d, 1, (HNode *[]){init});
  if (params->tpu) {
    c->costed = true;
    c->windows = (int)n;
    c->cycles = c->est =
        params->lbase + v->tiles * tile + (ceil(n / (n > 1 ? params->cores : 1)) - 1) * params->lq;
    c->time_s = c->cycles / params->clock;
    c->bytes = far ? v->bytes : 0;
  } else {
    c->bytes = v->plain;
    c->time_s = v->plain / (p->chip->hbm_bandwidth * chip_num(p->chip, "fit.stream", 0.85)) +
                chip_num(p->chip, "fit.launch", 2.5e-6);
  }
  c->start_s = p->time_s;
  c->bound = SIM_MEMORY;
  c->util = 1;
  p->cycles += c->cycles;
  p->time_s += c->time_s;
  sched_dump(p, c);
}

/* XLA for GPUs fills all stacks. */
static void fill_stacks(Schedule *p) {
  for (int i = p->kernels.n - 1; i >= 0; i--) {
    const Kernel *k = p->kernels.v[i];
    const HNode *w = k->roots.n ? k->roots.v[0] : NULL;
    for (int s = 0; k->dearest && w->kind == H_WHILE && s < w->n_in; s++) {
      bool stack;
      from_the_end(w->comps[1], s, &stack);
      if (stack && hlo_const_only(w->in[s]) && (!p->params->tpu || filled(w->in[s])))
        fill_stack(p, w->in[s], w->comps[1]->params.v[s]->val);
    }
  }
}

Err *sched_comp(HGraph *g, HComp *c, const Chip *chip, const CostParams *params,
                const SimOpts *opts, Arena *arena, Schedule *parent, double mult, Schedule **out) {
  Schedule *p = ARENA_NEW(arena, Schedule);
  p->g = g;
  p->comp = c;
  p->chip = chip;
  p->params = params;
  p->opts = opts;
  p->arena = arena;
  p->parent = parent;
  p->mult = mult;
  p->loop_body = c->owner && c->owner->kind == H_WHILE;
  p->vmem_free = params->cmem > 0 ? params->cmem : params->fast;
  *out = p;
  sched_stored(p);
  sched_kernels(p);
  tpu_layouts(p);
  sched_pairs(p);
  tpu_copies(p);
  sched_order(p);
  live_ranges(p);
  TRY(time_all(p));
  if (p->loop_body && params->tpu) {
    loop_copies(p);
    retiled_stacks(p);
  }
  if (params->tpu || !opts->eager) fill_stacks(p);
  sched_peak(p, !params->tpu && !opts->eager && !parent);
  return NULL;
}

void sched_lists_free(Schedule *p) {
  if (!p) return;
  for (int i = 0; i < p->kernels.n; i++) sched_kernel_free(p->kernels.v[i]);
  for (int i = 0; i < p->inner.n; i++) sched_lists_free(p->inner.v[i]);
  vec_free(&p->kernels);
  vec_free(&p->values);
  vec_free(&p->inner);
}
