/* A program's code: the plan with a kernel for each of its steps, made from a module, or loaded as it
 * was once made. */
#include "dev/cpu/cpu_priv.h"
#include "dev/cpu/registry.h"
#include "dev/cut.h"

#include <stdlib.h>

/* ---- what the machine can do ---- */

static bool fusible(void *arg, const Op *op) {
  (void)arg;
  return jit_fusible(op);
}

static int in_place(void *arg, const Op *op) {
  (void)arg;
  return cpu_kernel_find(op)->in_place;
}

static bool collective(void *arg, const Op *op) {
  (void)arg;
  return coll_supported(op);
}

/* Operands of an op in a loop that come from outside of it, one bit each. */
static unsigned fixed_operands(const Op *op) {
  const Region *loop = op->parent;
  while (loop && loop->parent && loop->parent->kind != OP_WHILE) loop = loop->parent->parent;
  if (!loop || !loop->parent) return 0;
  unsigned fixed = 0;
  for (int i = 0; i < op->n_operands && i < 32; i++) {
    const Value *v = op->operands[i];
    while (v->def && v->def->kind == OP_RESHAPE) v = v->def->operands[0];
    const Region *r = v->region;
    while (r && r != loop) r = r->parent ? r->parent->parent : NULL;
    if (!r) fixed |= 1u << i;
  }
  return fixed;
}

/* All shapes known, as kernels expect: a compiled program has no others, a damaged one may. */
static bool is_known(const Type *t) { return t->kind != TY_TENSOR || type_is_static(t); }

static bool is_static(const Op *op) {
  for (int i = 0; i < op->n_operands; i++)
    if (!is_known(op->operands[i]->type)) return false;
  for (int i = 0; i < op->n_results; i++)
    if (!is_known(op->results[i].type)) return false;
  return true;
}

/* trusted: the plan was made here */
static Err *prepare_block(Code *c, const Block *b, bool trusted) {
  for (int i = 0; i < b->n; i++) {
    const Step *s = &b->steps[i];
    StepCode *k = &c->steps[s->id];
    if (s->kind == STEP_OP) {
      if (!trusted && !is_static(s->op))
        return err_new(ERR_DATA_LOSS, "the saved program is damaged");
      k->kernel = cpu_kernel_find(s->op);
      if (k->kernel->prepare) TRY(k->kernel->prepare(s->op, &k->state));
      if (k->kernel->prepack_bytes && (k->fixed = fixed_operands(s->op)))
        k->prepack_bytes = k->kernel->prepack_bytes(k->state, k->fixed);
    }
    for (int j = 0; j < s->n_blocks; j++) TRY(prepare_block(c, &s->blocks[j], trusted));
  }
  return NULL;
}

/* What began as strips may be in a loop of unknown turns inside of one that is a function: it goes on
 * with one of its own, since it might not come to an end before. */
static void add_loops_inside(const Code *c, Jit *jit, const Step *s, FusedCode *to) {
  for (int j = 0; j < s->n_blocks; j++)
    for (int i = 0; i < s->blocks[j].n; i++) {
      const Step *in = &s->blocks[j].steps[i];
      if (in->kind == STEP_WHILE && in->trips < 0) jit_add_loop(jit, c->plan, in, &to[in->id]);
      add_loops_inside(c, jit, in, to);
    }
}

static Err *add_fusions(const Code *c, Jit *jit, const Block *b, FusedCode *to) {
  for (int i = 0; i < b->n; i++) {
    const Step *s = &b->steps[i];
    if (s->kind == STEP_FUSED) TRY(jit_add(jit, s->fusion, &to[s->id]));
    if (s->kind == STEP_WHILE && jit_add_loop(jit, c->plan, s, &to[s->id])) {
      if (c->tier_up) add_loops_inside(c, jit, s, to);
      continue;
    }
    for (int j = 0; j < s->n_blocks; j++) TRY(add_fusions(c, jit, &s->blocks[j], to));
  }
  return NULL;
}

/* Beside so much memory of a program, what its code was generated with is taken from the library's file
 * again when there is another one. */
#define MUCH_MEMORY (32 << 20)

bool code_takes_much(const Code *c) {
  const Plan *p = c->plan;
  const Type *t = p->main->type;
  int64_t n = p->arena_bytes + p->arena_each_bytes;
  for (int i = 0; i < t->n_elems; i++) n += type_bytes(t->elems[i]);
  for (int i = 0; i < t->n_results; i++) n += type_bytes(t->results[i]);
  return n >= MUCH_MEMORY;
}

Err *code_generate(const Code *c, bool alone, Made *out) {
  *out = (Made){.fused = xcalloc((size_t)c->plan->n_steps + 1, sizeof *out->fused)};
  Jit *jit = jit_new();
  Err *e = add_fusions(c, jit, &c->plan->body, out->fused);
  if (!e) e = jit_finish(jit, alone, &out->kernels);
  if (!e && c->prog->opts.keep) buf_str(&out->bytes, jit_bytes(jit));
  jit_free(jit);
  if (e) made_free(out);
  return e;
}

void made_free(Made *m) {
  kernels_free(m->kernels);
  buf_free(&m->bytes);
  free(m->fused);
  *m = (Made){0};
}

static void partial_size(Code *c, const Block *b) {
  for (int i = 0; i < b->n; i++) {
    const Step *s = &b->steps[i];
    c->partial_bytes = MAX(c->partial_bytes, c->steps[s->id].fused.partial_bytes);
    for (int j = 0; j < s->n_blocks; j++) partial_size(c, &s->blocks[j]);
  }
}

void code_loop_places(Code *c, const Block *b, const Made *m) {
  for (int i = 0; i < b->n; i++) {
    const Step *s = &b->steps[i];
    StepCode *k = &c->steps[s->id];
    bool whole = m ? m->fused[s->id].run : k->fused.run;
    if (s->kind == STEP_WHILE && whole && !k->places)
      k->n_places = while_places(c->plan, s, &k->places);
    for (int j = 0; j < s->n_blocks; j++) code_loop_places(c, &s->blocks[j], m);
  }
}

static Code *code_of(DevProgram *prog, Plan *plan) {
  Code *c = xcalloc(1, sizeof *c);
  c->prog = prog;
  c->plan = plan;
  c->steps = xcalloc((size_t)plan->n_steps + 1, sizeof *c->steps);
  c->arg_each = xcalloc((size_t)plan->main->type->n_elems + 1, 1);
  pthread_mutex_init(&c->lock, NULL);
  return c;
}

static void free_idle(Code *c) {
  while (c->idle) {
    RunMem *m = c->idle;
    c->idle = m->next;
    run_mem_free(c, m);
  }
}

void code_take(Code *c, Made *m) {
  free_idle(c); /* the memory for partial results may become another */
  for (int i = 0; i < c->plan->n_steps; i++) {
    c->steps[i].fused = m->fused[i];
    c->steps[i].better = NULL;
  }
  c->kernels = m->kernels;
  c->bytes = m->bytes;
  m->kernels = NULL;
  m->bytes = (Buf){0};
  made_free(m);
  c->partial_bytes = 0;
  partial_size(c, &c->plan->body);
  code_loop_places(c, &c->plan->body, NULL);
}

static void ready(Code *c) {
  stretches_find(c, &c->plan->body);
  partial_size(c, &c->plan->body);
  code_loop_places(c, &c->plan->body, NULL);
  if (cpu_verbosity()) verbose_open(c);
}

/* Of 16 bits only where no operation has to be rounded by itself, and not where tiles multiply so fast that products by
 * themselves take less time. */
static bool attends(void *arg, DType t) {
  const DevProgram *prog = arg;
  if (t == DT_F32) return true;
  return !prog->opts.round_each && (t != DT_BF16 || !cpu_has_tiles(CPU_TILES_BF16));
}

static Err *plan_program(DevProgram *prog, const Module *m, const bool *arg_each, Plan **out) {
  size_t n_args = (size_t)prog->n_args,
         n = (size_t)prog->opts.replicas * (size_t)prog->opts.partitions;
  const int **owners = xcalloc(n_args + 1, sizeof *owners);
  int *all = xmalloc(sizeof *all * (n_args * n + 1));
  Err *e = NULL;
  for (size_t i = 0; i < n_args && !e; i++) {
    if (!arg_each[i]) continue;
    owners[i] = all + i * n;
    e = dev_argument_owners(prog, (int)i, all + i * n);
  }
  Target t = {.arg = prog,
              .fusible = fusible,
              .in_place = in_place,
              .collective = collective,
              .replicas = prog->opts.replicas,
              .partitions = prog->opts.partitions,
              .apart = dev_program_splits(prog),
              .round_each = prog->opts.round_each,
              .arg_owners = owners,
              .attends = attends};
  if (!e) e = compile_program(m, &t, out);
  free(owners);
  free(all);
  return e;
}

Err *code_new(DevProgram *prog, const Module *m, const bool *arg_each, Code **out) {
  Plan *plan;
  TRY(plan_program(prog, m, arg_each, &plan));
  Code *c = code_of(prog, plan);
  memcpy(c->arg_each, arg_each, (size_t)prog->n_args);
  c->apart = plan_runs_apart(prog, plan);
  Err *e = prepare_block(c, &plan->body, true);
  if (!e && !tier_up_start(c)) {
    Made made;
    e = code_generate(c, false, &made);
    if (!e) code_take(c, &made);
  }
  if (e) {
    code_free(c);
    return e;
  }
  ready(c);
  *out = c;
  return NULL;
}

void code_free(Code *c) {
  if (!c) return;
  if (cpu_verbosity()) verbose_close(c);
  tier_up_free(c->tier_up);
  free_idle(c);
  for (int i = 0; i < c->plan->n_steps; i++)
    if (c->steps[i].kernel && c->steps[i].kernel->release)
      c->steps[i].kernel->release(c->steps[i].state);
  for (int i = 0; i < c->plan->n_steps; i++) free(c->steps[i].places);
  kernels_free(c->kernels);
  buf_free(&c->bytes);
  plan_free(c->plan);
  pthread_mutex_destroy(&c->lock);
  free(c->steps);
  free(c->arg_each);
  free(c);
}

/* ---- as bytes: the kernels, the plan, each step's kernel ---- */

/* m: code that is not taken yet; NULL */
static void wire_kernels(Wire *w, Code *c, Made *m, const Block *b) {
  const Kernels *kernels = m ? m->kernels : c->kernels;
  for (int i = 0; i < b->n && !w->bad; i++) {
    const Step *s = &b->steps[i];
    FusedCode *f = m ? &m->fused[s->id] : &c->steps[s->id].fused;
    if (s->kind == STEP_FUSED) {
      wire_small(w, &f->kernel, 0, kernels_count(kernels) - 1);
      if (wire_reads(w) && !w->bad) *f = *kernels_at(kernels, f->kernel);
    }
    if (s->kind == STEP_WHILE) {
      int k = f->run ? f->kernel + 1 : 0;
      wire_small(w, &k, 0, kernels_count(kernels));
      if (wire_reads(w) && !w->bad && k) *f = *kernels_at(kernels, k - 1);
      if (k) continue;
    }
    for (int j = 0; j < s->n_blocks; j++) wire_kernels(w, c, m, &s->blocks[j]);
  }
}

bool code_save(Code *c, Buf *out) {
  Made *m = tier_up_made(c);
  if (c->tier_up && !m) return false; /* until then it is made again about as fast as read */
  Buf *bytes = m ? &m->bytes : &c->bytes;
  if (kernels_count(m ? m->kernels : c->kernels) && !bytes->n) return false;
  Wire w = {.out = out};
  int n = (int)bytes->n;
  wire_count(&w, &n, 1);
  buf_str(out, (Str){bytes->p, bytes->n});
  plan_wire(&w, &c->plan);
  wire_kernels(&w, c, m, &c->plan->body);
  buf_free(bytes);
  return !w.bad;
}

Err *code_load(DevProgram *prog, Str saved, Code **out) {
  Wire w = {.in = saved};
  int n = 0;
  wire_count(&w, &n, 1);
  Str bytes = wire_view(&w, (size_t)n);
  Plan *plan;
  plan_wire(&w, &plan);
  const Type *t = plan->main ? plan->main->type : NULL;
  if (w.bad || plan->n_procs != 1 || t->n_elems != prog->n_args ||
      t->n_results != prog->n_results) {
    plan_free(plan);
    return err_new(ERR_DATA_LOSS, "the saved program is damaged");
  }
  Err *e = ir_verify(plan->module); /* kernels are chosen by operations that hold together */
  if (e) {
    plan_free(plan);
    return e;
  }
  Code *c = code_of(prog, plan);
  e = n ? kernels_load(bytes, &c->kernels) : NULL;
  if (!e) {
    wire_kernels(&w, c, NULL, &plan->body);
    if (w.bad || w.in.n) e = err_new(ERR_DATA_LOSS, "the saved program is damaged");
  }
  if (!e) e = prepare_block(c, &plan->body, false);
  if (e) {
    code_free(c);
    return e;
  }
  ready(c);
  *out = c;
  return NULL;
}
