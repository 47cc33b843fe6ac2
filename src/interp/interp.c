/* The run: frames, calls, dispatch.
 *
 * All processes go through the program together. A frame holds for each value of a function either
 * one tensor for all processes or one for each. An op whose operands are common is computed once;
 * else once for each active process. Where a predicate differs between processes, each branch runs
 * with the mask of its own processes, and the results are merged.
 *
 * A value is released after its last use (frame.c), so memory follows the live set and not the
 * program's length.
 */
#include "interp/interp_priv.h"

#include <pthread.h>
#include <stdio.h>

#define MAX_CALL_DEPTH 200

const SemFn sem_table[OP_COUNT] = {
#define OP(id, fn, name, cls, operands, results, regions, attrs) [OP_##id] = sem_##fn,
#include "ir/ops.def"
#undef OP
};

/* ---- one op on one process ----------------------------------------------------------------- */

bool op_moves_elements(const Op *op) {
  switch (op->kind) {
  case OP_BROADCAST:
  case OP_BROADCAST_IN_DIM:
  case OP_CONCATENATE:
  case OP_PAD:
  case OP_RESHAPE:
  case OP_REVERSE:
  case OP_SLICE:
  case OP_TRANSPOSE:
  case OP_COPY:
  case OP_DYNAMIC_SLICE:
  case OP_DYNAMIC_UPDATE_SLICE:
  case OP_GATHER:
  case OP_BITCAST_CONVERT:
  case OP_DYNAMIC_BROADCAST_IN_DIM:
  case OP_DYNAMIC_GATHER:
  case OP_DYNAMIC_PAD:
  case OP_DYNAMIC_RESHAPE:
  case OP_REAL_DYNAMIC_SLICE:
  case OP_GET_DIMENSION_SIZE:
  case OP_SET_DIMENSION_SIZE:
  case OP_TORCH_INDEX_SELECT:
  case OP_CONSTANT:
  case OP_OPTIMIZATION_BARRIER:
  case OP_TUPLE:
  case OP_GET_TUPLE_ELEMENT:
  case OP_SHARDING_CONSTRAINT:
  case OP_RESHARD:
  case OP_PROPAGATION_BARRIER:
  case OP_SHARDING_GROUP: return true;
  default: return false;
  }
}

static bool type_is_quantized(const Type *t) { return t->kind == TY_TENSOR && t->quant; }

bool op_is_quantized(const Op *op) {
  for (int i = 0; i < op->n_operands; i++)
    if (type_is_quantized(op->operands[i]->type)) return true;
  for (int i = 0; i < op->n_results; i++)
    if (type_is_quantized(op->results[i].type)) return true;
  return false;
}

DType eval_out_dtype(const Eval *e, int i) {
  const Type *t = e->op->results[i].type;
  return e->as_float && t->quant ? t->quant->expressed : t->dtype;
}

Err *eval_out_dims(Eval *e, int i, int rank, const int64_t *dims, Tensor **out) {
  assert(i < e->n_out);
  DType dtype = eval_out_dtype(e, i);
  if (rank > MAX_RANK)
    return op_err(e->op, ERR_UNIMPLEMENTED, "rank %d is over %d", rank, MAX_RANK);
  Tensor *t = e->out[i];
  if (t && t->refs == 1 && t->dtype == dtype && t->rank == rank &&
      (rank == 0 || !memcmp(t->dims, dims, sizeof *dims * (size_t)rank))) {
    *out = t;
    return NULL;
  }
  tensor_release(t);
  e->out[i] = NULL;
  TRY(tensor_new(dtype, rank, dims, &e->out[i]));
  *out = e->out[i];
  return NULL;
}

Err *eval_padded(const Op *op, int64_t size, int64_t dilation, int64_t low, int64_t high,
                 int64_t *out) {
  int64_t room = 0, from_low, to_high;
  bool fits = low > INT64_MIN && high > INT64_MIN;
  if (size) fits &= !mul_overflows(size - 1, dilation, &room) && !add_overflows(room, 1, &room);
  fits = fits && !add_overflows(room, low, &from_low) && !add_overflows(room, high, &to_high) &&
         !add_overflows(from_low, high, out);
  return fits ? NULL : op_err(op, ERR_INVALID, "the padded size does not fit in 64 bits");
}

Err *eval_out(Eval *e, int i, Tensor **out) {
  if (op_info[e->op->kind].cls == OC_EWISE && e->n_in) {
    const Tensor *widest = e->in[0];
    for (int k = 1; k < e->n_in; k++)
      if (e->in[k]->rank > widest->rank) widest = e->in[k];
    return eval_out_dims(e, i, widest->rank, widest->dims, out);
  }
  const Type *t = e->op->results[i].type;
  if (!type_is_static(t))
    return op_err(e->op, ERR_UNIMPLEMENTED, "the shape of result %d is not known when it runs", i);
  return eval_out_dims(e, i, t->rank, t->dims, out);
}

void eval_set(Eval *e, int i, Tensor *take) {
  tensor_release(e->out[i]);
  e->out[i] = take;
}

Tensor *eval_captured(Eval *e, const Value *v) {
  return e->captured ? e->captured(e->captured_arg, v) : NULL;
}

Err *eval_dispatch(Eval *e) {
  const Op *op = e->op;
  if (op->kind == OP_UNKNOWN) return op_err(op, ERR_UNIMPLEMENTED, "no such operation");
  SemFn fn = sem_table[op->kind];
  Err *err;
  OpClass cls = op_info[op->kind].cls;
  bool plain = op_moves_elements(op) || cls == OC_TEST || cls == OC_COLLECTIVE ||
               cls == OC_CONTROL || op->kind == OP_UNIFORM_QUANTIZE ||
               op->kind == OP_UNIFORM_DEQUANTIZE || op->kind == OP_CUSTOM_CALL;
  if (!e->as_float && !plain && op_is_quantized(op)) err = quant_eval(e, fn);
  else err = fn(e);
  if (err && !err->place) {
    Buf b = {0};
    op_place(&b, op);
    if (b.n) err_place(err, "%s", b.p);
    buf_free(&b);
  }
  return err;
}

/* ---- ops on all processes ------------------------------------------------------------------ */

bool op_is_lockstep(const Op *op) {
  OpClass cls = op_info[op->kind].cls;
  if (op->kind == OP_CUSTOM_CALL) return spmd_custom_call(op) != NULL;
  return cls == OC_CONTROL || cls == OC_COLLECTIVE || op->kind == OP_INTERPRETER_RUN_PARALLEL;
}

const Shards *ctx_get(Ctx *c, const Value *v) {
  Frame *f = c->frame;
  if (v->id < 0 || v->id >= f->func->n_values) return NULL;
  Shards *s = &f->slots[v->id];
  if (!s->n && f->captured) {
    Tensor *t = f->captured(f->captured_arg, v);
    if (t) *s = shards_one(tensor_retain(t));
  }
  return s->n ? s : NULL;
}

static void ctx_set(Ctx *c, const Value *v, Shards take) {
  Shards *s = &c->frame->slots[v->id];
  shards_free(s);
  *s = take;
}

Tensor *ctx_captured(void *arg, const Value *v) {
  Captured *k = arg;
  const Shards *s = ctx_get(k->c, v);
  return s ? shards_at(s, k->p) : NULL;
}

typedef struct Wide {
  Ctx *c;
  const Op *top;
} Wide;

static Err found_wide; /* its address says: yes */

static bool value_is_inside(const Value *v, const Op *top) {
  const Region *r = v->def ? v->def->parent : v->region;
  while (r && r->parent) {
    if (r->parent == top) return true;
    r = r->parent->parent;
  }
  return false;
}

static Err *find_wide(Op *op, void *arg) {
  Wide *w = arg;
  for (int i = 0; i < op->n_operands; i++) {
    if (value_is_inside(op->operands[i], w->top)) continue;
    const Shards *s = ctx_get(w->c, op->operands[i]);
    if (s && s->n > 1) return &found_wide;
  }
  return NULL;
}

/* Does a region of op use a value from outside that differs between processes? */
static bool captures_wide(Ctx *c, const Op *op) {
  Wide w = {c, op};
  for (int r = 0; r < op->n_regions; r++)
    if (ir_walk(op->regions[r], find_wide, &w)) return true;
  return false;
}

static Err *run_each(Ctx *c, const Op *op, const Shards *sin, Shards *sout) {
  bool common = true;
  for (int i = 0; i < op->n_operands; i++) common &= sin[i].n == 1;
  if (common && c->n > 1 && op->n_regions) common = !captures_wide(c, op);
  Tensor *in_small[8], *out_small[8];
  Tensor **in = op->n_operands <= 8 ? in_small : xmalloc(sizeof *in * (size_t)op->n_operands);
  Tensor **out = op->n_results <= 8 ? out_small : xmalloc(sizeof *out * (size_t)op->n_results);
  for (int i = 0; i < op->n_results; i++) sout[i] = shards_many(common ? 1 : c->n);
  Err *err = NULL;
  int first = 0;
  while (first < c->n - 1 && !c->active[first]) first++;
  for (int p = first; p < c->n && !err; p++) {
    if (!c->active[p]) continue;
    Captured k = {c, p};
    for (int i = 0; i < op->n_operands; i++) {
      in[i] = shards_at(&sin[i], p);
      assert(in[i]);
    }
    for (int i = 0; i < op->n_results; i++) out[i] = NULL;
    Eval e = {.op = op,
              .n_in = op->n_operands,
              .n_out = op->n_results,
              .in = in,
              .out = out,
              .process = p,
              .run = c->run,
              .captured = ctx_captured,
              .captured_arg = &k};
    err = eval_dispatch(&e);
    for (int i = 0; i < op->n_results; i++) {
      sout[i].t[common ? 0 : p] = out[i];
      if (!err && !out[i]) err = op_err(op, ERR_INTERNAL, "result %d was not computed", i);
    }
    if (common) break;
  }
  if (in != in_small) free(in);
  if (out != out_small) free(out);
  return err;
}

static Err *run_op(Ctx *c, const Op *op) {
  Shards sin_small[8], sout_small[8];
  Shards *sin = op->n_operands <= 8 ? sin_small : xmalloc(sizeof *sin * (size_t)op->n_operands);
  Shards *sout = op->n_results <= 8 ? sout_small : xmalloc(sizeof *sout * (size_t)op->n_results);
  memset(sout, 0, sizeof *sout * (size_t)op->n_results);
  Err *err = NULL;
  for (int i = 0; i < op->n_operands && !err; i++) {
    const Shards *s = ctx_get(c, op->operands[i]);
    if (s)
      sin[i] = *s; /* borrowed: slots are not written while the op runs, unless by regions defining
                      other values */
    else err = op_err(op, ERR_INTERNAL, "operand %d has no value", i);
  }
  if (!err && op_is_lockstep(op)) {
    Eval e = {.op = op,
              .n_in = op->n_operands,
              .n_out = op->n_results,
              .run = c->run,
              .ctx = c,
              .sin = sin,
              .sout = sout};
    SemFn spmd = op->kind == OP_CUSTOM_CALL ? spmd_custom_call(op) : NULL;
    err = spmd ? spmd(&e) : eval_dispatch(&e);
  } else if (!err) {
    err = run_each(c, op, sin, sout);
  }
  for (int i = 0; i < op->n_results; i++) {
    if (err) shards_free(&sout[i]);
    else ctx_set(c, &op->results[i], sout[i]);
  }
  if (!err) frame_bury(c->frame, op);
  if (sin != sin_small) free(sin);
  if (sout != sout_small) free(sout);
  return err;
}

/* The arguments are in their slots. */
static Err *run_block(Ctx *c, const Region *r, Shards *results) {
  for (const Op *op = r->first; op != r->last; op = op->next) TRY(run_op(c, op));
  const Op *ret = r->last;
  for (int i = 0; i < ret->n_operands; i++) {
    const Shards *s = ctx_get(c, ret->operands[i]);
    if (!s) {
      while (i--) shards_free(&results[i]);
      return op_err(ret, ERR_INTERNAL, "operand has no value");
    }
    results[i] = shards_retain(s);
  }
  frame_bury(c->frame, ret);
  return NULL;
}

Err *ctx_run_region(Ctx *c, const Region *r, const Shards *args, Shards *results) {
  for (int i = 0; i < r->n_args; i++) ctx_set(c, r->args[i], shards_retain(&args[i]));
  if (!r->last) return err_new(ERR_INVALID, "a region without terminator");
  return run_block(c, r, results);
}

Err *ctx_call(Ctx *c, const Func *f, const Shards *args, int n_args, Shards *results,
              int n_results) {
  if (c->depth > MAX_CALL_DEPTH)
    return err_new(ERR_EXHAUSTED, "@%.*s: calls nested over %d deep", STR_ARG(f->name),
                   MAX_CALL_DEPTH);
  if (!f->body || !f->body->last)
    return err_new(ERR_INVALID, "@%.*s has no body", STR_ARG(f->name));
  if (n_args != f->body->n_args || n_results != f->body->last->n_operands)
    return err_new(ERR_INVALID, "@%.*s takes %d arguments and gives %d results, not %d and %d",
                   STR_ARG(f->name), f->body->n_args, f->body->last->n_operands, n_args, n_results);
  Frame frame = {.func = f,
                 .slots = xcalloc((size_t)f->n_values + 1, sizeof(Shards)),
                 .plan = plan_of(c->run, f)};
  Ctx in = *c;
  in.frame = &frame;
  in.depth++;
  Err *e = ctx_run_region(&in, f->body, args, results);
  frame_free(&frame);
  return e;
}

/* ---- regions and functions on one process -------------------------------------------------- */

struct RegionRun {
  Ctx c;
  Frame f;
  uint8_t *active;
  const Region *r;
  Shards *args, *results;
};

RegionRun *region_run_new(Eval *e, const Region *r) {
  RegionRun *x = xcalloc(1, sizeof *x);
  x->r = r;
  x->f = (Frame){.func = r->func,
                 .slots = xcalloc((size_t)r->func->n_values + 1, sizeof(Shards)),
                 .captured = e->captured,
                 .captured_arg = e->captured_arg};
  x->active = xcalloc((size_t)e->run->n, 1);
  x->active[e->process] = 1;
  x->c = (Ctx){.run = e->run,
               .frame = &x->f,
               .n = e->run->n,
               .active = x->active,
               .process = e->process,
               .depth = 1};
  x->args = xcalloc((size_t)r->n_args + 1, sizeof(Shards));
  x->results = xcalloc((size_t)r->last->n_operands + 1, sizeof(Shards));
  return x;
}

void region_run_free(RegionRun *x) {
  if (!x) return;
  frame_free(&x->f);
  free(x->active);
  free(x->args);
  free(x->results);
  free(x);
}

Err *region_run(RegionRun *x, Tensor *const *args, Tensor **results) {
  for (int i = 0; i < x->r->n_args; i++) x->args[i] = shards_one(tensor_retain(args[i]));
  Err *e = ctx_run_region(&x->c, x->r, x->args, x->results);
  for (int i = 0; i < x->r->n_args; i++) shards_free(&x->args[i]);
  for (int i = 0; i < x->r->last->n_operands && !e; i++) {
    results[i] = tensor_retain(shards_at(&x->results[i], x->c.process));
    shards_free(&x->results[i]);
  }
  return e;
}

/* ---- entry points -------------------------------------------------------------------------- */

static bool ids_seen(const Region *r, uint8_t *seen, int n, int *count) {
  for (int i = 0; i < r->n_args; i++) {
    int id = r->args[i]->id;
    if (id < 0 || id >= n || seen[id]) return false;
    seen[id] = 1, ++*count;
  }
  for (const Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_results; i++) {
      int id = op->results[i].id;
      if (id < 0 || id >= n || seen[id]) return false;
      seen[id] = 1, ++*count;
    }
    for (int k = 0; k < op->n_regions; k++)
      if (!ids_seen(op->regions[k], seen, n, count)) return false;
  }
  return true;
}

/* Values need dense numbers; a pass may have left holes. A module is numbered once and then only
 * read. */
static void number_values(const Func *f) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  if (!f->body) return;
  pthread_mutex_lock(&lock);
  uint8_t *seen = xcalloc((size_t)MAX(f->n_values, 0) + 1, 1);
  int count = 0;
  if (f->n_values < 0 || !ids_seen(f->body, seen, f->n_values, &count)) ir_number((Func *)f);
  free(seen);
  pthread_mutex_unlock(&lock);
}

Run *run_new(const Module *m, int replicas, int partitions) {
  Run *r = xcalloc(1, sizeof *r);
  r->module = m;
  r->replicas = MAX(replicas, 1);
  r->partitions = MAX(partitions, 1);
  r->n = r->replicas * r->partitions;
  return r;
}

void run_free(Run *r) {
  if (!r) return;
  plans_free(r);
  parallel_free(r);
  for (int i = 0; i < r->probes.n; i++) {
    free((char *)r->probes.v[i].id.p);
    tensor_release(r->probes.v[i].t);
  }
  vec_free(&r->probes);
  free(r);
}

/* Arguments of a part of the processes at the places of these. NULL: there is no part. */
static Shards *placed(const Run *run, const Shards *args, int n_args) {
  if (!run->part) return NULL;
  Shards *in = xcalloc((size_t)n_args + 1, sizeof *in);
  for (int i = 0; i < n_args; i++) {
    in[i] = shards_many(run->n);
    for (int k = 0; k < run->part->n; k++)
      in[i].t[run->part->process[k]] = tensor_retain(shards_at(&args[i], args[i].n > 1 ? k : 0));
  }
  return in;
}

/* The part's results alone. */
static Shards taken(const Run *run, Shards *all) {
  Shards out = shards_many(run->part->n);
  for (int k = 0; k < run->part->n; k++)
    out.t[k] = tensor_retain(shards_at(all, run->part->process[k]));
  shards_free(all);
  return out;
}

Err *interp_run(const Module *m, Str func, const InterpOpts *opts, const Shards *args, int n_args,
                Shards *results, int n_results) {
  const Func *f = func.n ? module_func(m, func) : module_main(m);
  if (!f) return err_new(ERR_NOT_FOUND, "the program has no function '%.*s'", STR_ARG(func));
  for (int i = 0; i < m->funcs.n; i++) number_values(m->funcs.v[i]);
  Run *run = run_new(m, opts ? opts->replicas : 1, opts ? opts->partitions : 1);
  run->part = opts ? opts->part : NULL;
  int lanes = run->part ? run->part->n : run->n;
  for (int i = 0; i < n_args; i++)
    if (args[i].n != 1 && args[i].n != lanes) {
      Err *e = err_new(ERR_INVALID, "argument %d has %d parts, the program runs on %d processes", i,
                       args[i].n, lanes);
      run_free(run);
      return e;
    }
  uint8_t *active = xcalloc((size_t)run->n, 1);
  if (!run->part) memset(active, 1, (size_t)run->n);
  for (int k = 0; run->part && k < lanes; k++) active[run->part->process[k]] = 1;
  Ctx c = {.run = run, .n = run->n, .active = active};
  Shards *out = xcalloc((size_t)n_results + 1, sizeof *out), *in = placed(run, args, n_args);
  Err *e = ctx_call(&c, f, in ? in : args, n_args, out, n_results);
  for (int i = 0; i < n_results && !e; i++) results[i] = run->part ? taken(run, &out[i]) : out[i];
  for (int i = 0; i < n_args && in; i++) shards_free(&in[i]);
  free(in);
  free(out);
  free(active);
  run_free(run);
  return e;
}

Err *interp_eval(const Op *op, Tensor *const *operands, Tensor **results,
                 Tensor *(*captured)(void *arg, const Value *v), void *arg) {
  const Module *m = op->parent && op->parent->func ? op->parent->func->module : NULL;
  if (op->n_regions && op->regions[0]->func) number_values(op->regions[0]->func);
  if (!m && op->n_regions && op->regions[0]->func) m = op->regions[0]->func->module;
  Run *run = run_new(m, 1, 1);
  uint8_t active = 1;
  Err *err;
  for (int i = 0; i < op->n_results; i++) results[i] = NULL;
  if (op_is_lockstep(op)) {
    Func none = {.n_values = 0};
    const Func *f = op->n_regions && op->regions[0]->func ? op->regions[0]->func : &none;
    Frame frame = {.func = f,
                   .slots = xcalloc((size_t)f->n_values + 1, sizeof(Shards)),
                   .captured = captured,
                   .captured_arg = arg};
    Ctx c = {.run = run, .frame = &frame, .n = 1, .active = &active};
    Shards *sin = xcalloc((size_t)op->n_operands + 1, sizeof *sin),
           *sout = xcalloc((size_t)op->n_results + 1, sizeof *sout);
    for (int i = 0; i < op->n_operands; i++) sin[i] = shards_one(tensor_retain(operands[i]));
    Eval e = {.op = op,
              .n_in = op->n_operands,
              .n_out = op->n_results,
              .run = run,
              .ctx = &c,
              .sin = sin,
              .sout = sout};
    SemFn spmd = op->kind == OP_CUSTOM_CALL ? spmd_custom_call(op) : NULL;
    err = spmd ? spmd(&e) : eval_dispatch(&e);
    for (int i = 0; i < op->n_results; i++) {
      if (!err) results[i] = tensor_retain(shards_at(&sout[i], 0));
      shards_free(&sout[i]);
    }
    for (int i = 0; i < op->n_operands; i++) shards_free(&sin[i]);
    free(sin);
    free(sout);
    frame_free(&frame);
  } else {
    Eval e = {.op = op,
              .n_in = op->n_operands,
              .n_out = op->n_results,
              .in = (Tensor **)operands,
              .out = results,
              .run = run,
              .captured = captured,
              .captured_arg = arg};
    err = eval_dispatch(&e);
    for (int i = 0; i < op->n_results && err; i++) {
      tensor_release(results[i]);
      results[i] = NULL;
    }
  }
  run_free(run);
  return err;
}

Err *interp_eval_all(const Op *op, int replicas, int partitions, const uint8_t *some,
                     const Shards *in, Shards *out) {
  const Module *m = op->parent && op->parent->func ? op->parent->func->module : NULL;
  if (op->n_regions && op->regions[0]->func) number_values(op->regions[0]->func);
  Run *run = run_new(m, replicas, partitions);
  int n = replicas * partitions;
  uint8_t *active = xmalloc((size_t)n);
  if (some) memcpy(active, some, (size_t)n);
  else memset(active, 1, (size_t)n);
  Func none = {.n_values = 0};
  const Func *f = op->n_regions && op->regions[0]->func ? op->regions[0]->func : &none;
  Frame frame = {.func = f, .slots = xcalloc((size_t)f->n_values + 1, sizeof(Shards))};
  Ctx c = {.run = run, .frame = &frame, .n = n, .active = active};
  Eval e = {.op = op,
            .n_in = op->n_operands,
            .n_out = op->n_results,
            .run = run,
            .ctx = &c,
            .sin = in,
            .sout = out};
  SemFn spmd = op->kind == OP_CUSTOM_CALL ? spmd_custom_call(op) : NULL;
  for (int i = 0; i < op->n_results; i++) out[i] = (Shards){0};
  Err *err = spmd ? spmd(&e) : eval_dispatch(&e);
  if (err)
    for (int i = 0; i < op->n_results; i++) shards_free(&out[i]);
  frame_free(&frame);
  run_free(run);
  free(active);
  return err;
}
