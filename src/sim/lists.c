/* What a report lists, from a plan: kernels and loops, the buffers when memory is at its fullest, the
 * lives of all of them, and whose they are. */
#include <stdlib.h>

#include "compile/pass/pass.h"
#include "sim/lists.h"
#include "sim/schedule/compiler.h"

static const char *op_word(const HNode *n) {
  if (n->op == OP_COPY) return "copy";
  if (n->crosses) return n->host ? "copy_to_host" : "copy_to_device";
  const char *full = op_info[n->op].name ? op_info[n->op].name : "op";
  const char *dot = strchr(full, '.');
  return dot ? dot + 1 : full;
}

/* A custom call is called by its target. */
static const char *call_word(Arena *a, const HNode *n) {
  Str target = n->op == OP_CUSTOM_CALL && n->src ? op_str(n->src, "call_target_name") : (Str){0};
  return target.n ? arena_str(a, target).p : op_word(n);
}

static const char *place_of(Arena *a, const HNode *n) {
  if (!n->src) return "";
  Buf b = {0};
  op_place(&b, n->src);
  const char *s = b.n ? arena_str(a, (Str){b.p, b.n}).p : "";
  buf_free(&b);
  return s;
}

static const HNode *main_node(const Kernel *k) {
  if (k->conv) return k->conv;
  for (int i = 0; i < k->inner.n; i++)
    if (k->inner.v[i]->kind == H_REDUCE) return k->inner.v[i];
  return k->roots.v[0];
}

static const char *kernel_name(Arena *a, const Kernel *k) {
  /* up to three operations that matter, in order, as XLA names fusions */
  const char *words[3];
  int n = 0, real = 0;
  for (int i = 0; i < k->inner.n; i++) {
    const HNode *x = k->inner.v[i];
    if (x->kind == H_CONST || x->kind == H_RESHAPE || (x->kind == H_BCAST && k->inner.n > 1))
      continue;
    real++;
    bool last = x == k->roots.v[k->roots.n - 1];
    if (x->kind == H_CONV || x->kind == H_REDUCE || last || (!hlo_light(x)) || k->inner.n <= 3) {
      bool dup = n > 0 && !strcmp(words[n - 1], op_word(x));
      if (n < 3 && !dup) words[n++] = op_word(x);
    }
  }
  if (k->attention) words[0] = "attention", n = 1;
  if (n == 0) words[n++] = op_word(k->roots.v[0]);
  Buf b = {0};
  for (int i = 0; i < n; i++) buf_printf(&b, "%s%s", i ? "_" : "", words[i]);
  if (real > 1) buf_cstr(&b, "_fusion");
  buf_printf(&b, ".%d", k->pos);
  const char *s = arena_str(a, (Str){b.p, b.n}).p;
  buf_free(&b);
  return s;
}

typedef VEC(SimKernel) KernelVec;
typedef VEC(SimLoop) LoopVec;
typedef VEC(const Kernel *) ShownVec;

/* What is waited for between kernels: transfers that nothing hides. */
static void add_wait(const Schedule *p, double start_s, double wait_s, double bytes, int loop,
                     KernelVec *out, ShownVec *shown) {
  if (wait_s <= 0) return;
  *vec_push(shown) = NULL;
  *vec_push(out) = (SimKernel){.name = "transfer_done",
                               .op = "transfer",
                               .place = "",
                               .cycles = wait_s * p->params->clock,
                               .time_s = wait_s,
                               .count = p->mult,
                               .start_s = start_s,
                               .bound = SIM_MEMORY,
                               .bytes = bytes,
                               .utilisation = 1,
                               .modelled = true,
                               .loop = loop};
}

static void collect(Arena *a, const Schedule *p, double base, int loop, KernelVec *out,
                    LoopVec *loops, ShownVec *shown) {
  for (int i = 0; i < p->kernels.n; i++) {
    Kernel *k = p->kernels.v[i];
    if (!k->roots.n) continue;
    const HNode *root = k->roots.v[0];
    add_wait(p, base + k->start_s - k->wait_s, k->wait_s, k->wait_bytes, loop, out, shown);
    if (root->kind == H_WHILE || root->kind == H_COND) {
      for (int q = 0; q < p->inner.n; q++) {
        const Schedule *in = p->inner.v[q];
        if (in->comp->owner != root || !in->taken) continue;
        int at = loop;
        if (root->kind == H_WHILE) {
          at = loops->n;
          *vec_push(loops) = (SimLoop){.body_s = in->time_s,
                                       .trips = in->mult / p->mult,
                                       .parent = loop,
                                       .unknown = root->trip < 0,
                                       .condition = in->comp == root->comps[0],
                                       .number = root->src ? loop_number(root->src) : -1};
        }
        collect(a, in, base + k->start_s, at, out, loops, shown);
      }
      continue;
    }
    if (k->scalar && k->time_s == 0) continue;
    const HNode *m = main_node(k);
    SimKernel *s = vec_push(out);
    *s = (SimKernel){0};
    k->shown = out->n;
    *vec_push(shown) = k;
    bool round = k->scalar && p->compiler->counts_cycles; /* of a loop: the scalar core's work */
    s->name = round ? arena_printf(a, "scalar_round.%d", k->pos).p : kernel_name(a, k);
    s->op = round ? "scalar" : k->unknown ? call_word(a, m) : op_word(m);
    s->place = place_of(a, m);
    s->cycles = p->compiler->counts_cycles ? k->cycles : k->time_s * p->params->clock;
    s->est_cycles = k->costed ? k->est : 0;
    s->time_s = k->time_s;
    s->count = k->mult;
    s->start_s = base + k->start_s;
    s->bound = k->bound;
    s->flops = k->flops;
    s->bytes = k->bytes;
    s->cached = k->cached;
    s->beside = k->beside;
    s->utilisation = k->util;
    s->matrix = k->conv ? k->util : 0;
    s->modelled = k->modelled;
    s->unknown = k->unknown;
    s->collective = k->collective;
    s->loop = loop;
  }
  add_wait(p, base + p->time_s - p->end_s, p->end_s, p->end_bytes, loop, out, shown);
}

static const char *value_type(Arena *a, const HValue *v) {
  Buf b = {0};
  const HNode *n = v->node;
  buf_printf(&b, "%s[", dtype_name(n->dt));
  for (int i = 0; i < n->rank; i++) buf_printf(&b, "%s%lld", i ? "," : "", (long long)n->d[i]);
  buf_byte(&b, ']');
  if (n->rank > 1 && n->rank <= 64) {
    buf_byte(&b, '{');
    for (int i = 0; i < n->rank; i++) buf_printf(&b, "%s%d", i ? "," : "", v->order[i]);
    buf_byte(&b, '}');
  }
  const char *s = arena_str(a, (Str){b.p, b.n}).p;
  buf_free(&b);
  return s;
}

typedef VEC(SimBuffer) BufferVec;

static void add_buffer(Arena *a, const Schedule *p, const HValue *v, const char *role, bool on_chip,
                       double bytes, BufferVec *out) {
  if (bytes <= 0) return;
  SimBuffer *s = vec_push(out);
  *s = (SimBuffer){0};
  if (v->is_param && !p->comp->parent) s->name = p->g->param_names[v->node->index];
  else s->name = arena_printf(a, "%s.%d", op_word(v->node), v->node->id).p;
  s->role = role;
  s->type = value_type(a, v);
  s->place = place_of(a, v->node);
  s->bytes = bytes;
  s->padding = bytes > v->plain ? bytes - v->plain : 0;
  s->on_chip = on_chip;
}

static void buffers_at_peak(Arena *a, const Schedule *p, const Owners *owners, BufferVec *out) {
  int t = p->peak_pos;
  for (int i = 0; i < p->values.n; i++) {
    const HValue *v = p->values.v[i];
    if (v->alias || v->dropped || v->space == SP_SCALAR || v->node->host) continue;
    if (v->away_from < t && t < v->away_to) continue; /* computed again later */
    int before = out->n;
    if (v->is_param && !p->comp->parent) {
      add_buffer(a, p, v, "argument", false, v->bytes, out);
    } else if (v->is_output && !p->comp->parent) {
      add_buffer(a, p, v, "output", false, v->bytes, out);
    } else if (!v->is_param && MAX(v->first, 0) <= t && t <= v->last && v->node->kind != H_WHILE &&
               v->node->kind != H_COND) {
      add_buffer(a, p, v, "temporary", v->space != SP_HBM && v->copy_bytes == 0, v->bytes, out);
    }
    if (out->n > before)
      out->v[before].owner = v->is_param && !p->comp->parent ? owners->of_param[v->node->index]
                                                             : owner_of_value(owners, p, v, t);
    if (v->copy_bytes > 0 && v->copy_first <= t && t <= v->copy_last)
      add_buffer(a, p, v, "prefetch", true, v->copy_bytes, out);
  }
  if (t < p->kernels.n && p->kernels.v[t]->roots.n) {
    const HNode *root = p->kernels.v[t]->roots.v[0];
    for (int q = 0; q < p->inner.n; q++)
      if (p->inner.v[q]->comp->owner == root) buffers_at_peak(a, p->inner.v[q], owners, out);
  }
}

static double pos_start_s(const Schedule *p, int pos) {
  if (pos < 0) return 0;
  return pos < p->kernels.n ? p->kernels.v[pos]->start_s : p->time_s;
}

/* Has this output the memory of a donated argument that is still free? Marks it as taken. */
static bool takes_argument(const Schedule *p, const HValue *v, bool *taken) {
  for (int i = 0; i < p->comp->params.n; i++) {
    const HNode *q = p->comp->params.v[i];
    if (taken[i] || !p->g->donated[q->index] || q->dt != v->node->dt || q->val->bytes != v->bytes)
      continue;
    taken[i] = true;
    return true;
  }
  return false;
}

/* Every buffer of the outermost computation with the time that it lives. Results written over an
 * argument are the argument's; what a loop's body needs is one buffer of the loop. */
static void lives_of(Arena *a, const Schedule *p, const Owners *owners, BufferVec *out) {
  bool *taken = xcalloc((size_t)p->comp->params.n + 1, sizeof *taken);
  for (int i = 0; i < p->values.n; i++) {
    const HValue *v = p->values.v[i];
    if (v->alias || v->dropped || v->space == SP_SCALAR || v->node->host) continue;
    int before = out->n;
    double from = pos_start_s(p, v->first), to = pos_start_s(p, v->last + 1);
    if (v->is_param) {
      add_buffer(a, p, v, "argument", false, v->bytes, out);
      from = 0, to = p->time_s;
    } else if (v->is_output) {
      if (takes_argument(p, v, taken)) continue;
      add_buffer(a, p, v, "output", false, v->bytes, out);
      to = p->time_s;
    } else if (v->node->kind != H_WHILE && v->node->kind != H_COND) {
      add_buffer(a, p, v, "temporary", v->space != SP_HBM && v->copy_bytes == 0, v->bytes, out);
    }
    if (out->n == before) continue;
    SimBuffer *b = &out->v[before];
    b->from_s = from, b->to_s = to;
    p->values.v[i]->life = out->n;
    b->maker = v->is_param || v->kernel < 0 ? -1 : p->kernels.v[v->kernel]->shown - 1;
    b->owner = v->is_param ? owners->of_param[v->node->index]
                           : owner_of_value(owners, p, v, (MAX(v->first, 0) + v->last) / 2);
  }
  free(taken);
  for (int q = 0; q < p->inner.n; q++) {
    const Schedule *in = p->inner.v[q];
    const HNode *owner = in->comp->owner;
    if (!in->taken || in->peak_hbm <= 0 || !owner) continue;
    for (int i = 0; i < p->kernels.n; i++) {
      const Kernel *k = p->kernels.v[i];
      if (!k->roots.n || k->roots.v[0] != owner) continue;
      *vec_push(out) = (SimBuffer){.name = arena_printf(a, "%s.%d", op_word(owner), owner->id).p,
                                   .role = "temporary",
                                   .type = "body",
                                   .place = place_of(a, owner),
                                   .owner = SIM_WORKING,
                                   .bytes = in->peak_hbm,
                                   .maker = -1,
                                   .from_s = k->start_s,
                                   .to_s = k->start_s + k->time_s};
    }
  }
}

/* Which of the lives each kernel reads. */
static void reads_of(Arena *a, const ShownVec *shown, SimKernel *kernels) {
  for (int i = 0; i < shown->n; i++) {
    const Kernel *k = shown->v[i];
    if (!k) continue;
    int *reads = ARENA_ARRAY(a, int, k->reads.n + 1), n = 0;
    for (int r = 0; r < k->reads.n; r++) {
      int life = base_of(k->reads.v[r])->life - 1;
      bool twice = life < 0;
      for (int q = 0; q < n && !twice; q++) twice = reads[q] == life;
      if (!twice) reads[n++] = life;
    }
    kernels[i].reads = reads;
    kernels[i].n_reads = n;
  }
}

static int by_size(const void *x, const void *y) {
  double a = ((const SimBuffer *)x)->bytes, b = ((const SimBuffer *)y)->bytes;
  return a > b ? -1 : a < b;
}

/* The owners' parts of what has to fit. Results written over a donated argument are the argument's;
 * what the plan counts beyond its buffers is nobody's by name, and where a list is longer than the
 * peak (it was made at another moment than the fullest of device memory) the temporaries shrink to
 * it. */
static void owners_add_up(SimReport *r) {
  double temp = 0, rest = r->hbm_bytes;
  for (int i = 0; i < r->n_buffers; i++) {
    const SimBuffer *b = &r->buffers[i];
    if (b->on_chip) continue;
    SimHolding *h = &r->owners[b->owner];
    if (!h->largest) h->largest = b; /* they are sorted */
    h->bytes += b->bytes;
    h->padding += b->padding;
    h->n++;
  }
  SimHolding *results = &r->owners[SIM_RESULTS];
  double fresh = MAX(0, r->output_bytes - r->alias_bytes);
  if (results->bytes > 0) results->padding *= MIN(1, fresh / results->bytes);
  if (results->bytes > fresh) results->largest = NULL;
  results->bytes = fresh;
  for (int o = SIM_GRADIENTS; o <= SIM_WORKING; o++) temp += r->owners[o].bytes;
  for (int o = SIM_GRADIENTS; o <= SIM_WORKING && temp > r->temp_bytes; o++) {
    r->owners[o].bytes *= r->temp_bytes / temp;
    r->owners[o].padding *= r->temp_bytes / temp;
  }
  for (int o = 0; o < SIM_OTHER; o++) rest -= r->owners[o].bytes;
  r->owners[SIM_OTHER].bytes = MAX(0, rest);
}

#define MOST_NAMES 4 /* targets that are named */

static void unknown_calls(SimReport *r) {
  Buf names = {0};
  int named = 0;
  for (int i = 0; i < r->n_kernels; i++) {
    const SimKernel *k = &r->kernels[i];
    if (!k->unknown) continue;
    r->unknown_calls++;
    if (names.n && strstr(names.p, k->op)) continue;
    if (named++ < MOST_NAMES) buf_printf(&names, "%s%s", names.n ? ", " : "", k->op);
  }
  if (named > MOST_NAMES) buf_cstr(&names, ", ...");
  r->unknown_names = names.n ? arena_str(r->arena, (Str){names.p, names.n}).p : "";
  buf_free(&names);
}

#define TAKE(a, vec, T) arena_dup(a, (vec).v, sizeof(T) * (size_t)(vec).n)

void report_lists(SimReport *r, const Schedule *p, Owners *owners) {
  Arena *a = r->arena;
  KernelVec kernels = {0};
  LoopVec loops = {0};
  ShownVec shown = {0};
  collect(a, p, 0, -1, &kernels, &loops, &shown);
  r->n_kernels = kernels.n;
  r->kernels = TAKE(a, kernels, SimKernel);
  r->n_loops = loops.n;
  r->loops = TAKE(a, loops, SimLoop);
  owners_of_values(owners, p->g);
  r->training = owners->training;
  r->n_args = p->g->n_params;
  r->arg_owners = owners->of_param;
  BufferVec fullest = {0}, lives = {0};
  buffers_at_peak(a, p, owners, &fullest);
  if (fullest.n) qsort(fullest.v, (size_t)fullest.n, sizeof *fullest.v, by_size);
  r->n_buffers = fullest.n;
  r->buffers = TAKE(a, fullest, SimBuffer);
  owners_add_up(r);
  lives_of(a, p, owners, &lives);
  r->n_lives = lives.n;
  r->lives = TAKE(a, lives, SimBuffer);
  reads_of(a, &shown, r->kernels);
  unknown_calls(r);
  vec_free(&kernels);
  vec_free(&loops);
  vec_free(&shown);
  vec_free(&fullest);
  vec_free(&lives);
}
