/* OptimizedProgram: what callers get to read of a program. JAX and PyTorch/XLA make an HLO module of
 * it, so it has no sdy ops; shardings stand in attributes of the module, where XLA's have them. */
#include "pjrt/pjrt_priv.h"

#include "base/pb.h"
#include "compile/pass/pass.h"
#include "compile/spmd/partition.h"
#include "ir/build.h"
#include "stablehlo/stablehlo.h"

static bool is_ours(Str name) { return str_starts(name, "sdy.") || str_starts(name, "weft."); }

static int drop_attrs(NamedAttr *attrs, int n) {
  int kept = 0;
  for (int i = 0; i < n; i++)
    if (!is_ours(attrs[i].name)) attrs[kept++] = attrs[i];
  return kept;
}

/* Takes the sharding out of a region; an op of sdy that is more than a wish is an error. */
static Err *strip_sdy(Func *f, Region *r) {
  for (Op *op = r->first, *next; op; op = next) {
    next = op->next;
    op->n_attrs = drop_attrs(op->attrs, op->n_attrs);
    for (int i = 0; i < op->n_regions; i++) TRY(strip_sdy(f, op->regions[i]));
    Str name = op_full_name(op);
    if (!str_starts(name, "sdy.") || str_is(name, "sdy.return")) continue;
    if (op->n_operands != 1 || op->n_results != 1 || op->n_regions ||
        op->operands[0]->type != op->results[0].type)
      return err_new(ERR_UNIMPLEMENTED, "weft: a text of %.*s", STR_ARG(name));
    value_replace_all(f, &op->results[0], op->operands[0]);
    op_remove(op);
  }
  return NULL;
}

/* What HLO has and StableHLO has not (erf, topk) becomes what XLA writes for it: a custom call of its name. */
static Err *say_chlo(Op *op, void *arg) {
  Module *m = arg;
  Str name = op_full_name(op), own = str_from("chlo.");
  if (!str_starts(name, own.p) || op->n_regions) return NULL;
  NamedAttr said[2] = {{STR("k"), op_attr(op, "k")}, {STR("largest"), attr_bool(m, true)}};
  bool top_k = op->kind == OP_CHLO_TOP_K;
  char *target = top_k ? xasprintf("mhlo.topk")
                       : xasprintf("mhlo.%.*s", (int)(name.n - own.n), name.p + own.n);
  if (top_k) op_set_attr(m, op, STR("k"), NULL);
  op->kind = OP_CUSTOM_CALL;
  op_set_attr(m, op, STR("call_target_name"),
              attr_string(m, arena_str(m->arena, str_from(target))));
  op_set_attr(m, op, STR("mhlo.attributes"), attr_dict(m, top_k ? 2 : 0, said));
  op_set_attr(m, op, STR("mhlo.version"), attr_int(m, DT_I64, 1));
  free(target);
  return NULL;
}

static Err *say(PJRT_Executable *x, Module *m) {
  for (int i = 0; i < m->funcs.n; i++)
    if (m->funcs.v[i]->body) TRY(ir_walk(m->funcs.v[i]->body, say_chlo, m));
  return stablehlo_write_bytecode(&x->readable, m, stablehlo_version());
}

/* ---- shardings as XLA's modules carry them: attributes of the module with an OpSharding each ---- */

/* Of one value. A replicated one has no bytes, which would be no sharding at all. */
static Str told_sharding(const char *bytes, size_t n) {
  static const char replicated[] = {8, 0}; /* type = REPLICATED */
  return n ? (Str){bytes, n} : (Str){replicated, sizeof replicated};
}

/* One result: its sharding; several: a tuple of theirs. */
static void put_result_shardings(const PJRT_Executable *x, Buf *out) {
  if (x->n_out != 1) pb_int(out, 1, 2); /* type = TUPLE */
  for (int i = 0; i < x->n_out; i++) {
    Str s = told_sharding(x->sharding_out[i], x->sharding_out_sizes[i]);
    if (x->n_out == 1) buf_str(out, s);
    else pb_str(out, 5, s); /* tuple_shardings */
  }
}

/* PyTorch/XLA, and jaxlib up to 0.9.0, find the shardings of results here and nowhere else. */
static void tell_shardings(const PJRT_Executable *x, Module *m) {
  Buf results = {0};
  put_result_shardings(x, &results);
  Attr *told = attr_string(m, arena_str(m->arena, (Str){results.p, results.n}));
  b_module_attr(m, "mhlo.spmd_output_sharding", told);
  Attr **params = ARENA_ARRAY(m->arena, Attr *, x->n_in + 1);
  for (int i = 0; i < x->n_in; i++)
    params[i] = attr_string(m, told_sharding(x->sharding_in[i], x->sharding_in_sizes[i]));
  b_module_attr(m, "mhlo.spmd_parameters_shardings", attr_array(m, x->n_in, params));
  buf_free(&results);
}

/* The program as it came; one that came as HLO is written as what it was read as. */
static Err *as_given(PJRT_Executable *x) {
  Str code = {x->code.p, x->code.n};
  if (str_starts(code, "ML\xEFR") || memmem(code.p, code.n, "func.func", 9)) {
    buf_add(&x->readable, code.p, code.n);
    return NULL;
  }
  Module *m;
  TRY(stablehlo_read("program", code, &m));
  Err *e = say(x, m);
  module_free(m);
  return e;
}

/* StableHLO for callers to read, without sdy ops, which they do not take: the program as given, or
 * that of one device after partitioning, with its collectives. */
static Err *readable(PJRT_Executable *x) {
  const Module *given = x->program->given;
  if (given->meshes.n == 0 &&
      x->opts.partitions == 1) { /* nothing of sdy in it, as in all that is kept on disk */
    return as_given(x);
  }
  Module *m = module_clone(given);
  Err *e = pass_inline(m);
  bool done = false;
  if (!e) e = pass_partition(m, &done);
  m->meshes.n = 0;
  for (int i = 0; i < m->funcs.n && !e; i++) {
    Func *f = m->funcs.v[i];
    for (int k = 0; k < f->type->n_elems; k++)
      f->n_arg_attrs[k] = drop_attrs(f->arg_attrs[k], f->n_arg_attrs[k]);
    for (int k = 0; k < f->type->n_results; k++)
      f->n_res_attrs[k] = drop_attrs(f->res_attrs[k], f->n_res_attrs[k]);
    if (f->body) e = strip_sdy(f, f->body);
  }
  if (x->opts.partitions > 1) tell_shardings(x, m);
  if (!e) e = say(x, m);
  module_free(m);
  if (e) e->code = ERR_UNIMPLEMENTED; /* callers then do without */
  return e;
}

ENTRY(Executable_OptimizedProgram) {
  PJRT_Program *p = a->program;
  PJRT_Executable *x = a->executable;
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  Err *e = x->readable.n ? NULL : readable(x);
  pthread_mutex_unlock(&lock);
  if (e) return error_from(e);
  const Buf *code = &x->readable;
  p->format = "mlir";
  p->format_size = 4;
  if (p->code && p->code_size < code->n)
    return error_new(ERR_INVALID, "room for %zu bytes, the program has %zu", p->code_size, code->n);
  if (p->code) memcpy(p->code, code->p, code->n);
  p->code_size = code->n;
  return NULL;
}
