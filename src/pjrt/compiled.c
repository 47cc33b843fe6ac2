/* Programs compiled, or found in the cache on disk as they once were compiled, with what callers ask
 * of their operations. Programs that call back into this process are not kept. */
#include "pjrt/pjrt_priv.h"

#include "base/cache.h"
#include "base/wire.h"
#include "compile/spmd/propagate.h"
#include "ir/exchange.h"
#include "stablehlo/stablehlo.h"

static void look_for(const Region *r, bool *loops, bool *calls_back) {
  for (const Op *op = r->first; op; op = op->next) {
    *loops |= op->kind == OP_WHILE;
    *calls_back |= op_is_host_callback(op);
    for (int i = 0; i < op->n_regions; i++) look_for(op->regions[i], loops, calls_back);
  }
}

static void find_facts(DevProgram *p, ProgramFacts *out) {
  *out = (ProgramFacts){.cost = {-1, -1, -1, -1}};
  const Module *m = p->given;
  for (int i = 0; i < m->funcs.n; i++)
    if (m->funcs.v[i]->body) look_for(m->funcs.v[i]->body, &out->loops, &out->not_queued);
  for (int j = 0; j < p->n_results; j++)
    out->not_queued |= !type_is_static(p->given_main->type->results[j]);
  DevCost counted;
  program_cost(p, &counted);
  Err *e = p->ops->cost ? p->ops->cost(p, &out->cost) : NULL;
  if (e || !p->ops->cost) out->cost = counted;
  if (out->cost.transcendentals < 0) out->cost.transcendentals = counted.transcendentals;
  err_free(e);
}

static void wire_facts(Wire *w, ProgramFacts *f) {
  wire_f64(w, &f->cost.flops);
  wire_f64(w, &f->cost.transcendentals);
  wire_f64(w, &f->cost.bytes_accessed);
  wire_f64(w, &f->cost.optimal_s);
  wire_bool(w, &f->loops);
  wire_bool(w, &f->not_queued);
}

/* ---- compiling ---- */

/* PJRT has no entry by which a host feeds a running program or is fed by it. */
static Err *no_streams(Op *op, void *unused) {
  (void)unused;
  if (op->kind != OP_INFEED && op->kind != OP_OUTFEED &&
      !((op->kind == OP_SEND || op->kind == OP_RECV) && op_bool(op, "is_host_transfer", false)))
    return NULL;
  return err_hint(op_err(op, ERR_UNIMPLEMENTED, "there is no host at the other end"),
                  "host callbacks work: jax.experimental.io_callback, jax.debug.callback");
}

static Err *compile(Dev *d, Module *m, const DevCompileOpts *opts, DevProgram **out) {
  TRY(dev_has_room(d, opts));
  for (int i = 0; i < m->funcs.n; i++)
    if (m->funcs.v[i]->body) TRY(ir_walk(m->funcs.v[i]->body, no_streams, NULL));
  TRY(shardings_inspect(m));
  TRY(layouts_choose(m));
  return dev_compile(d, m, opts, out);
}

Err *program_make(Dev *d, Str code, const CompileOptions *o, DevCut cut, bool quiet,
                  ProgramFacts *facts, DevProgram **out) {
  DevCompileOpts opts = {.replicas = o->replicas,
                         .partitions = o->partitions,
                         .auto_spmd = o->spmd,
                         .keep = cache_is_on(),
                         .round_each = o->round_each,
                         .assignment =
                             o->n_assignment == o->replicas * o->partitions ? o->assignment : NULL,
                         .cut = cut,
                         .quiet = quiet};
  Buf note = {0};
  if (dev_cache_get(d, code, &opts, &note, out)) {
    wire_facts(&(Wire){.in = {note.p, note.n}}, facts);
    buf_free(&note);
    return NULL;
  }
  Module *m = NULL;
  Err *e = stablehlo_read("program", code, &m);
  if (!e && o->partitions > 1 && !o->shardy) shardings_from_gspmd(m, o->partitions);
  if (!e) e = compile(d, m, &opts, out);
  if (!e) find_facts(*out, facts);
  if (!e && opts.keep && !facts->not_queued) {
    wire_facts(&(Wire){.out = &note}, facts);
    dev_cache_put(*out, code, (Str){note.p, note.n});
  }
  buf_free(&note);
  module_free(m);
  return e;
}
