/* Programs: their shardings and donation recorded, the program of one process found, compiled; as bytes. */
#include "dev/dev.h"

#include "dev/cut.h"

#include "compile/pass/pass.h"
#include "compile/spmd/propagate.h"
#include "interp/interp.h"
#include "ir/exchange.h"
#include "ir/wire.h"

#include <pmmintrin.h>
#include <stdlib.h>

#define DONOR (-2) /* for any result, until there is one (match_donors) */

/* ---- programs ---- */

/* The sharding of one argument or result, from sdy.sharding or the older mhlo.sharding. NULL: whole
 * everywhere. */
static Err *sharding_of(Module *m, const NamedAttr *attrs, int n, int rank, int n_devices,
                        Sharding **out, const Mesh **mesh) {
  *out = NULL;
  *mesh = NULL;
  Attr *a = attrs_get(attrs, n, "sdy.sharding");
  if (a && a->kind == AT_SHARDING) {
    *mesh = a->sharding->mesh ? a->sharding->mesh : module_mesh(m, a->sharding->mesh_name);
    if (!*mesh)
      return err_new(ERR_INVALID, "sharding names mesh @%.*s, which the module does not have",
                     STR_ARG(a->sharding->mesh_name));
    for (int i = 0; i < a->sharding->n_dims; i++)
      if (a->sharding->dims[i].n_axes) *out = a->sharding;
    if (a->sharding->n_unreduced) *out = a->sharding;
    return NULL;
  }
  a = attrs_get(attrs, n, "mhlo.sharding");
  if (a && a->kind == AT_STRING) {
    Mesh *own = NULL;
    TRY(sharding_from_gspmd(m, a->s, rank, n_devices, out, &own));
    *mesh = own;
  }
  return NULL;
}

static bool result_on_host(const Func *main, int j) {
  Attr *a = attrs_get(main->res_attrs[j], main->n_res_attrs[j], "mhlo.memory_kind");
  return a && a->kind == AT_STRING && str_ends(a->s, "_host");
}

static Err *record_signature(DevProgram *p) {
  Func *f = p->main;
  Type *t = f->type;
  int n = p->opts.replicas * p->opts.partitions;
  p->n_args = t->n_elems;
  p->n_results = t->n_results;
  p->arg_shardings = xcalloc((size_t)p->n_args, sizeof(Sharding *));
  p->arg_meshes = xcalloc((size_t)p->n_args, sizeof(Mesh *));
  p->result_shardings = xcalloc((size_t)p->n_results, sizeof(Sharding *));
  p->result_meshes = xcalloc((size_t)p->n_results, sizeof(Mesh *));
  p->aliases = xcalloc((size_t)p->n_args, sizeof(int));
  p->result_on_host = xcalloc((size_t)p->n_results, sizeof(bool));
  for (int j = 0; j < p->n_results; j++) p->result_on_host[j] = result_on_host(f, j);
  for (int i = 0; i < p->n_args; i++) {
    const NamedAttr *attrs = f->arg_attrs[i];
    int k = f->n_arg_attrs[i];
    if (p->opts.partitions > 1)
      TRY(err_wrap(sharding_of(p->module, attrs, k, t->elems[i]->rank, n, &p->arg_shardings[i],
                               &p->arg_meshes[i]),
                   "argument %d", i));
    Attr *alias = attrs_get(attrs, k, "tf.aliasing_output"),
         *donor = attrs_get(attrs, k, "jax.buffer_donor");
    p->aliases[i] = -1;
    if (alias && alias->kind == AT_INT && alias->i >= 0 && alias->i < p->n_results)
      p->aliases[i] = (int)alias->i;
    else if (donor && (donor->kind == AT_UNIT || donor->i)) p->aliases[i] = DONOR;
  }
  for (int i = 0; i < p->n_results && p->opts.partitions > 1; i++)
    TRY(err_wrap(sharding_of(p->module, f->res_attrs[i], f->n_res_attrs[i], t->results[i]->rank, n,
                             &p->result_shardings[i], &p->result_meshes[i]),
                 "result %d", i));
  return NULL;
}

static DevProgram *program_new(Dev *d, const DevCompileOpts *opts) {
  DevProgram *p = xcalloc(1, sizeof *p);
  p->ops = d->ops;
  p->dev = d;
  p->opts = *opts;
  p->copies = 1;
  __atomic_store_n(&p->refs, 1, __ATOMIC_RELAXED);
  return p;
}

static void program_drop(DevProgram *p) {
  p->ops = NULL; /* nothing of the backend's to free */
  dev_program_release(p);
}

/* Constants keep their denormals, also those of a caller for whom they count as zero, as JAX does. */
static Err *compile_exactly(Dev *d, DevProgram *p) {
  unsigned modes = _mm_getcsr();
  _mm_setcsr(modes & ~(unsigned)(_MM_FLUSH_ZERO_MASK | _MM_DENORMALS_ZERO_MASK));
  Err *e = d->ops->compile(p, p->module);
  _mm_setcsr(modes);
  return e;
}

static Err *find_exchange(Op *op, void *found) {
  if (op_info[op->kind].cls == OC_COLLECTIVE || op_is_ragged(op)) *(bool *)found = true;
  return NULL;
}

/* Replicas that exchange nothing, and do not ask which they are: each is a program of its own. */
static bool is_alone(const Module *m) {
  bool found = false;
  for (int i = 0; i < m->funcs.n; i++)
    if (m->funcs.v[i]->body) err_free(ir_walk(m->funcs.v[i]->body, find_exchange, &found));
  return !found;
}

typedef VEC(Op *) Calls;

/* One that gives at most tokens. */
static Err *find_quiet(Op *op, void *calls) {
  if (!op_is_host_callback(op)) return NULL;
  for (int i = 0; i < op->n_results; i++)
    if (op->results[i].type->kind != TY_TOKEN) return NULL;
  *vec_push((Calls *)calls) = op;
  return NULL;
}

/* The token that a call was given; of one that was given none a new one. */
static Value *token_before(Module *m, Op *op) {
  for (int i = 0; i < op->n_operands; i++)
    if (op->operands[i]->type->kind == TY_TOKEN) return op->operands[i];
  Op *made = op_new(m, OP_AFTER_ALL, 0, NULL, 1, &op->results[0].type, 0, NULL, 0, NULL);
  op_insert_before(op, made);
  return &made->results[0];
}

/* A call that gives at most a token is as if it had been made. */
static Err *leave_calls_out(DevProgram *p) {
  Calls calls = {0};
  Err *e = ir_walk(p->main->body, find_quiet, &calls);
  for (int i = 0; i < calls.n && !e; i++) {
    Op *op = calls.v[i];
    for (int k = 0; k < op->n_results; k++)
      value_replace_all(p->main, &op->results[k], token_before(p->module, op));
    op_remove(op);
  }
  vec_free(&calls);
  return e;
}

bool dev_program_is_cut(const DevProgram *p) { return p->given != p->module; }

bool dev_program_splits(const DevProgram *p) {
  return p->opts.partitions == 1 || dev_program_is_cut(p);
}

int dev_program_processes(const DevProgram *p) {
  return p->copies * p->opts.replicas * p->opts.partitions;
}

Err *dev_has_room(const Dev *d, const DevCompileOpts *o) {
  int64_t n = (int64_t)MAX(o->replicas, 1) * MAX(o->partitions, 1);
  if (n <= d->n) return NULL;
  return err_hint(err_new(ERR_INVALID,
                          "the program runs on %d replicas x %d partitions, device '%s' has %d",
                          o->replicas, o->partitions, d->spec, d->n),
                  "choose a device with more, for example WEFT_DEVICE=%.*s:%lld",
                  (int)strcspn(d->spec, ":"), d->spec, (long long)n);
}

/* A donor is given up for the first result of as many bytes that no other argument makes room for, as XLA has it; one that
 * finds none stays its caller's. */
static void match_donors(DevProgram *p) {
  bool *made = xcalloc((size_t)p->n_results + 1, sizeof *made);
  int64_t *bytes = xcalloc((size_t)p->n_results + 1, sizeof *bytes);
  for (int i = 0; i < p->n_args; i++)
    if (p->aliases[i] >= 0) made[p->aliases[i]] = true;
  for (int j = 0; j < p->n_results; j++) {
    made[j] |= p->result_on_host[j] || p->given_main->type->results[j]->kind != TY_TENSOR;
    bytes[j] = dev_result_bytes(p, j);
  }
  for (int i = 0; i < p->n_args; i++) {
    if (p->aliases[i] != DONOR) continue;
    int64_t own = dev_argument_bytes(p, i);
    int j = 0;
    while (j < p->n_results && (made[j] || bytes[j] != own)) j++;
    p->aliases[i] = j < p->n_results ? j : -1;
    if (j < p->n_results) made[j] = true;
  }
  free(bytes);
  free(made);
}

Err *dev_compile(Dev *d, const Module *m, const DevCompileOpts *opts, DevProgram **out) {
  DevCompileOpts o = opts ? *opts : (DevCompileOpts){.replicas = 1};
  o.replicas = MAX(o.replicas, 1);
  o.partitions = MAX(o.partitions, 1);
  TRY(dev_has_room(d, &o));
  TRY(ir_verify(m));
  int copies = o.partitions == 1 && is_alone(m) ? o.replicas : 1;
  if (copies > 1) o.replicas = 1;
  DevProgram *p = program_new(d, &o);
  p->copies = copies;
  p->module = module_clone(m);
  p->main = module_main(p->module);
  Err *e =
      p->main && p->main->body ? NULL : err_new(ERR_INVALID, "the program has no main function");
  if (!e && o.partitions > 1) { /* results without a sharding get the one that propagation brings */
    e = pass_inline(p->module);
    if (!e) pass_propagate(p->module, false);
  }
  if (!e) e = record_signature(p);
  p->given = p->module;
  p->given_main = p->main;
  if (!e) e = cut_program(p);
  if (!e) match_donors(p);
  if (!e && o.quiet && !dev_program_is_cut(p)) e = leave_calls_out(p);
  if (!e) e = compile_exactly(d, p);
  p->opts.assignment = NULL;
  if (e) {
    program_drop(p);
    return e;
  }
  *out = p;
  return NULL;
}

bool dev_cache_key(const Dev *d, const DevCompileOpts *opts, Buf *key) {
  if (!d->ops->save || opts->partitions > 1) return false;
  buf_cstr(key, d->ops->name);
  return d->ops->cache_key(key);
}

bool dev_program_save(DevProgram *p, Buf *out) {
  Wire w = {.out = out};
  if (!p->ops->save || module_func(p->module, STR("main")) != p->main) return false;
  IrWire *ir = ir_wire_new(&w);
  ir_wire_module(ir, &p->module, false);
  ir_wire_free(ir);
  return !w.bad && p->ops->save(p, out);
}

Err *dev_program_load(Dev *d, Str saved, const DevCompileOpts *opts, DevProgram **out) {
  DevProgram *p = program_new(d, opts);
  p->copies = MAX(opts->replicas, 1);
  p->opts.replicas = 1;
  p->opts.assignment = NULL;
  Wire w = {.in = saved};
  IrWire *ir = ir_wire_new(&w);
  ir_wire_module(ir, &p->module, false);
  ir_wire_free(ir);
  p->main = module_func(p->module, STR("main"));
  p->given = p->module;
  p->given_main = p->main;
  Err *e = w.bad || !p->main ? err_new(ERR_DATA_LOSS, "the saved program is damaged") : NULL;
  if (!e) e = record_signature(p);
  if (!e) match_donors(p);
  if (!e) e = d->ops->load(p, w.in);
  if (e) {
    program_drop(p);
    return e;
  }
  *out = p;
  return NULL;
}

/* How many blocks an argument or a result is cut into; s: NULL, or valid. */
static int64_t blocks_of(const Sharding *s, const Mesh *mesh) {
  int64_t n = 1;
  for (int d = 0; s && d < s->n_dims; d++)
    for (int i = 0; i < s->dims[d].n_axes; i++) {
      const AxisRef *a = &s->dims[d].axes[i];
      for (int k = 0; k < mesh->n_axes; k++)
        if (str_eq(mesh->axes[k].name, a->name))
          n *= a->sub_size ? a->sub_size : mesh->axes[k].size;
    }
  return n;
}

static int64_t part_bytes(const Type *given, const Sharding *s, const Mesh *mesh) {
  if (given->kind == TY_TENSOR && !type_is_static(given)) return 0;
  int64_t blocks = blocks_of(s, mesh);
  return (type_bytes(given) + blocks - 1) / blocks;
}

int64_t dev_argument_bytes(const DevProgram *p, int i) {
  return part_bytes(p->given_main->type->elems[i], p->arg_shardings[i], p->arg_meshes[i]);
}

int64_t dev_result_bytes(const DevProgram *p, int j) {
  if (j >= p->given_main->type->n_results)
    return type_bytes(p->main->type->results[j]); /* a count of loops (sim.c) */
  return part_bytes(p->given_main->type->results[j], p->result_shardings[j], p->result_meshes[j]);
}

DevProgram *dev_program_retain(DevProgram *p) {
  __atomic_fetch_add(&p->refs, 1, __ATOMIC_RELAXED);
  return p;
}

void dev_program_release(DevProgram *p) {
  if (!p || __atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
  if (p->ops) p->ops->program_free(p);
  free(p->arg_shardings);
  free(p->arg_meshes);
  free(p->result_shardings);
  free(p->result_meshes);
  free(p->aliases);
  free(p->result_on_host);
  buf_free(&p->cache_key);
  buf_free(&p->cache_note);
  if (p->given != p->module) module_free(p->given);
  module_free(p->module);
  free(p);
}
