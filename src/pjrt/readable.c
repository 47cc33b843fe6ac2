/* The program that callers read back: as it was given, or that of one device after partitioning.
 * jaxlib makes HLO of it, and up to 0.9.0 takes the shardings of arguments and results from what
 * that HLO says of the whole module; later ones ask the shardings extension. */
#include "base/pb.h"
#include "compile/pass/pass.h"
#include "compile/spmd/partition.h"
#include "pjrt/pjrt_priv.h"
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

/* What is left has no sdy ops, which callers do not take. */
static Err *strip(Module *m) {
  m->meshes.n = 0;
  for (int i = 0; i < m->funcs.n; i++) {
    Func *f = m->funcs.v[i];
    for (int k = 0; k < f->type->n_elems; k++)
      f->n_arg_attrs[k] = drop_attrs(f->arg_attrs[k], f->n_arg_attrs[k]);
    for (int k = 0; k < f->type->n_results; k++)
      f->n_res_attrs[k] = drop_attrs(f->res_attrs[k], f->n_res_attrs[k]);
    if (f->body) TRY(strip_sdy(f, f->body));
  }
  return NULL;
}

static void module_set_attr(Module *m, const char *name, Attr *value) {
  NamedAttr *attrs = arena_alloc(m->arena, sizeof *attrs * (size_t)(m->n_attrs + 1));
  int n = 0;
  for (int i = 0; i < m->n_attrs; i++)
    if (!str_is(m->attrs[i].name, name)) attrs[n++] = m->attrs[i];
  attrs[n++] = (NamedAttr){str_from(name), value};
  m->attrs = attrs;
  m->n_attrs = n;
}

static Attr *sharding_bytes(Module *m, const char *p, size_t n) {
  return attr_string(m, (Str){arena_dup(m->arena, p, n), n});
}

/* One OpSharding for each argument; for the results that of their one, or a tuple's. */
static void tell_shardings(Module *m, const PJRT_Executable *x) {
  enum { TYPE = 1, ELEMENTS = 5, TUPLE = 2 };
  Attr **in = xcalloc((size_t)x->n_in + 1, sizeof *in);
  for (int i = 0; i < x->n_in; i++)
    in[i] = sharding_bytes(m, x->sharding_in[i], x->sharding_in_sizes[i]);
  module_set_attr(m, "mhlo.spmd_parameters_shardings", attr_array(m, x->n_in, in));
  free(in);
  if (!x->n_out) return;
  Buf all = {0};
  if (x->n_out == 1) buf_add(&all, x->sharding_out[0], x->sharding_out_sizes[0]);
  else pb_int(&all, TYPE, TUPLE);
  for (int i = 0; i < x->n_out && x->n_out > 1; i++)
    pb_str(&all, ELEMENTS, (Str){x->sharding_out[i], x->sharding_out_sizes[i]});
  module_set_attr(m, "mhlo.spmd_output_sharding", sharding_bytes(m, all.p ? all.p : "", all.n));
  buf_free(&all);
}

static Err *partitioned(PJRT_Executable *x, Module *m) {
  bool done = false;
  if (m->meshes.n) { /* else nothing of sdy is in it */
    TRY(pass_inline(m));
    TRY(pass_partition(m, &done));
    TRY(strip(m));
  }
  tell_shardings(m, x);
  return stablehlo_write_bytecode(&x->readable, m, stablehlo_version());
}

static Err *readable(PJRT_Executable *x) {
  const Module *given = x->program->module;
  bool whole = given->meshes.n == 0; /* as in all that is kept on disk */
  if (whole && x->opts.partitions == 1) {
    buf_add(&x->readable, x->code.p, x->code.n);
    return NULL;
  }
  Module *m = NULL;
  Err *e = NULL;
  if (whole) e = stablehlo_read("program", (Str){x->code.p, x->code.n}, &m);
  else m = module_clone(given);
  if (!e) e = partitioned(x, m);
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
