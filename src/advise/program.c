/* A StableHLO program as work: its arguments' owners tell inputs from state, rebatch changes its
 * batch. */
#include "advise/advise.h"

#include "compile/pass/pass.h"
#include "compile/pass/rebatch.h"

#include <stdlib.h>

struct AdviseProgram {
  Module *m; /* inlined */
  bool *is_input, *is_state;
  int64_t batch; /* 0: none was found */
};

static Err *build(void *arg, const AdviseCase *c, Module **out) {
  AdviseProgram *p = arg;
  if (!p->batch && c->batch != 1)
    return err_new(ERR_UNIMPLEMENTED, "no leading dimension of an input is the batch");
  Module *m = module_clone(p->m);
  int64_t batch = c->batch * c->devices; /* a sharded program says the whole */
  bool change = p->batch && batch != p->batch;
  Err *e = change ? pass_rebatch(m, p->is_input, p->is_state, batch) : NULL;
  if (e) module_free(m);
  else *out = m;
  return e;
}

Err *advise_program(const Module *m, const char *name, AdviseWork *out, AdviseProgram **keep) {
  AdviseProgram *p = xcalloc(1, sizeof *p);
  p->m = module_clone(m);
  Err *e = pass_inline(p->m);
  const Chip *const *chips;
  int n_chips;
  SimReport *r = NULL;
  if (!e) e = chip_list(&chips, &n_chips);
  if (!e) e = sim_estimate(p->m, chips[0], NULL, &r); /* any chip: the owners are the program's */
  if (e) {
    advise_program_free(p);
    return e;
  }
  p->is_input = xcalloc((size_t)r->n_args + 1, sizeof(bool));
  p->is_state = xcalloc((size_t)r->n_args + 1, sizeof(bool));
  for (int i = 0; i < r->n_args; i++) {
    p->is_input[i] = r->arg_owners[i] == SIM_INPUT;
    p->is_state[i] = !p->is_input[i];
  }
  p->batch = batch_of(p->m, p->is_input, p->is_state);
  int64_t batch = MAX(1, p->batch);
  *out = (AdviseWork){.name = name,
                      .build = build,
                      .arg = p,
                      .no_batch = !p->batch,
                      .partitions = sim_devices_of(m),
                      .fixed_devices = true};
  if (r->training) out->batch = batch;
  else out->eval_batch = batch;
  sim_report_free(r);
  *keep = p;
  return NULL;
}

void advise_program_free(AdviseProgram *p) {
  if (!p) return;
  module_free(p->m);
  free(p->is_input);
  free(p->is_state);
  free(p);
}

/* ---- operation by operation ------------------------------------------------------------------ */

static bool is_view(const Op *op) {
  return op->kind == OP_RESHAPE || op->kind == OP_BROADCAST_IN_DIM || op->kind == OP_CONSTANT ||
         op->kind == OP_IOTA || op->kind == OP_OPTIMIZATION_BARRIER;
}

/* What a value's memory belongs to: the first operand along views. */
static const Value *base_of(const Value *v) {
  while (v->def && is_view(v->def) && v->def->n_operands) v = v->def->operands[v->index];
  return v;
}

double advise_op_by_op_bytes(const Module *m) {
  Module *c = module_clone(m);
  Err *e = pass_inline(c);
  Func *f = e ? NULL : module_main(c);
  err_free(e);
  double now = 0, most = 0;
  if (f && f->body) {
    int n = ir_number(f), at = 0;
    int *last = xcalloc((size_t)n + 1, sizeof *last);
    for (Op *op = f->body->first; op; op = op->next, at++)
      for (int i = 0; i < op->n_operands; i++) last[base_of(op->operands[i])->id] = at;
    for (int i = 0; i < f->body->n_args; i++) now += (double)type_bytes(f->body->args[i]->type);
    at = 0;
    for (Op *op = f->body->first; op; op = op->next, at++) {
      if (is_view(op)) continue;
      for (int i = 0; i < op->n_results; i++) now += (double)type_bytes(op->results[i].type);
      most = MAX(most, now);
      for (int i = 0; i < op->n_operands; i++) {
        const Value *v = base_of(op->operands[i]);
        bool again = false; /* the same operand twice */
        for (int k = 0; k < i; k++) again |= base_of(op->operands[k]) == v;
        if (!again && v->def && !is_view(v->def) && last[v->id] == at)
          now -= (double)type_bytes(v->type);
      }
      for (int i = 0; i < op->n_results; i++)
        if (!last[op->results[i].id]) now -= (double)type_bytes(op->results[i].type);
    }
    free(last);
  }
  module_free(c);
  return MAX(most, now);
}

static Err *find_convolution(Op *op, void *found) {
  *(bool *)found |= op->kind == OP_CONVOLUTION;
  return NULL;
}

bool advise_has_convolution(const Module *m) {
  bool found = false;
  for (int i = 0; i < m->funcs.n && !found; i++)
    if (m->funcs.v[i]->body) err_free(ir_walk(m->funcs.v[i]->body, find_convolution, &found));
  return found;
}
