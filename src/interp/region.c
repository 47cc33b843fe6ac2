/* Reduction bodies, comparators, map bodies: small regions that are evaluated very often.
 *
 * The region is resolved once into a list of element-wise kernels between numbered slots. A slot is
 * the data of an argument, a constant or captured scalar (step 0), or an intermediate of m
 * elements. Because the kernels are element-wise, one walk over the list evaluates the region for m
 * elements at once. Calls are inlined. A body with anything else runs in a frame, one element after
 * the other.
 */
#include "interp/interp_priv.h"
#include "interp/ewise_priv.h"

typedef struct Slot {
  DType dtype;
  const void *data;
  int64_t step; /* 1: an element each; 0: the same for all */
  Tensor *t;    /* what the slot holds itself: constants, intermediates; NULL for arguments */
} Slot;

typedef struct Step {
  EwKernel k;
  int n_in, in[EW_MAX_OPERANDS], out;
} Step;

struct RegionEval {
  Eval *e;
  const Region *r;
  bool liftable;
  VEC(Slot) slots; /* the first n_args are the arguments */
  VEC(Step) steps;
  int n_results, *result; /* slots */
  Tensor **copies;        /* results that are not the memory of an intermediate */
  int64_t room;           /* elements the intermediates have room for */
  int64_t m;
  RegionRun *slow;
  Tensor **slow_out, **slow_in;
};

/* ---- resolving ----------------------------------------------------------------------------- */

typedef struct Binding {
  const Value *v;
  int slot;
} Binding;
typedef struct Scope {
  VEC(Binding) b;
} Scope;

static int new_slot(RegionEval *re, DType dtype) {
  *vec_push(&re->slots) = (Slot){.dtype = dtype, .step = 1};
  return re->slots.n - 1;
}

static void bind(Scope *s, const Value *v, int slot) { *vec_push(&s->b) = (Binding){v, slot}; }

static int constant_slot(RegionEval *re, Tensor *t) {
  int i = new_slot(re, t->dtype);
  re->slots.v[i].t = tensor_retain(t);
  re->slots.v[i].data = t->data;
  re->slots.v[i].step = 0;
  return i;
}

static int find_slot(RegionEval *re, const Scope *s, const Value *v, bool captures) {
  for (int i = s->b.n - 1; i >= 0; i--)
    if (s->b.v[i].v == v) return s->b.v[i].slot;
  Tensor *t = captures ? eval_captured(re->e, v) : NULL;
  return t && t->count == 1 && !t->n_elems ? constant_slot(re, t) : -1;
}

static bool scalar_type(const Type *t) {
  return t->kind == TY_TENSOR && type_is_static(t) && type_count(t) == 1 && !t->quant;
}

static bool resolve(RegionEval *re, const Region *r, Scope *s, bool captures, int *results,
                    int depth);

static bool resolve_call(RegionEval *re, const Op *op, Scope *s, bool captures, int depth) {
  const Module *m = re->e->run->module;
  const Func *f = m && depth < 16
                      ? module_func(m, op_str(op, op->kind == OP_CALL ? "callee" : "decomposition"))
                      : NULL;
  if (!f || !f->body || !f->body->last || f->body->n_args != op->n_operands ||
      f->body->last->n_operands != op->n_results)
    return false;
  Scope in = {0};
  int *res = xcalloc((size_t)op->n_results + 1, sizeof *res);
  bool ok = true;
  for (int i = 0; i < op->n_operands && ok; i++) {
    int slot = find_slot(re, s, op->operands[i], captures);
    ok = slot >= 0;
    bind(&in, f->body->args[i], slot);
  }
  ok = ok && resolve(re, f->body, &in, false, res, depth + 1);
  for (int i = 0; i < op->n_results && ok; i++) bind(s, &op->results[i], res[i]);
  free(res);
  vec_free(&in.b);
  return ok;
}

static bool resolve_op(RegionEval *re, const Op *op, Scope *s, bool captures, int depth) {
  for (int i = 0; i < op->n_results; i++)
    if (!scalar_type(op->results[i].type)) return false;
  switch (op->kind) {
  case OP_CONSTANT:
    bind(s, &op->results[0], constant_slot(re, op_attr(op, "value")->tensor));
    return true;
  case OP_CALL:
  case OP_COMPOSITE: return resolve_call(re, op, s, captures, depth);
  case OP_SHARDING_CONSTRAINT:
  case OP_RESHARD:
  case OP_PROPAGATION_BARRIER:
  case OP_COPY:
  case OP_RESHAPE:
  case OP_OPTIMIZATION_BARRIER:
  case OP_BROADCAST_IN_DIM:
  case OP_BROADCAST:
  case OP_TRANSPOSE:
    for (int i = 0; i < op->n_results; i++) {
      if (!scalar_type(op->operands[i]->type)) return false;
      int slot = find_slot(re, s, op->operands[i], captures);
      if (slot < 0) return false;
      bind(s, &op->results[i], slot);
    }
    return true;
  default: break;
  }
  if (op_info[op->kind].cls != OC_EWISE || op->n_regions || op->n_operands > EW_MAX_OPERANDS ||
      op->n_results != 1)
    return false;
  Step st = {.n_in = op->n_operands};
  DType types[EW_MAX_OPERANDS] = {DT_INVALID};
  for (int i = 0; i < op->n_operands; i++) {
    if (op->operands[i]->type->quant) return false;
    st.in[i] = find_slot(re, s, op->operands[i], captures);
    if (st.in[i] < 0) return false;
    types[i] = re->slots.v[st.in[i]].dtype;
  }
  if (!ewise_resolve(op, types, op->results[0].type->dtype, &st.k)) return false;
  st.out = new_slot(re, op->results[0].type->dtype);
  bind(s, &op->results[0], st.out);
  *vec_push(&re->steps) = st;
  return true;
}

static bool resolve(RegionEval *re, const Region *r, Scope *s, bool captures, int *results,
                    int depth) {
  for (const Op *op = r->first; op && op != r->last; op = op->next)
    if (!resolve_op(re, op, s, captures, depth)) return false;
  for (int i = 0; i < r->last->n_operands; i++)
    if ((results[i] = find_slot(re, s, r->last->operands[i], captures)) < 0) return false;
  return true;
}

RegionEval *region_eval_new(Eval *e, const Region *r) {
  RegionEval *re = xcalloc(1, sizeof *re);
  re->e = e;
  re->r = r;
  re->n_results = r->last->n_operands;
  re->result = xcalloc((size_t)re->n_results + 1, sizeof(int));
  re->copies = xcalloc((size_t)re->n_results + 1, sizeof(Tensor *));
  Scope s = {0};
  re->liftable = true;
  for (int i = 0; i < r->n_args; i++) {
    re->liftable &= scalar_type(r->args[i]->type);
    bind(&s, r->args[i], new_slot(re, r->args[i]->type->dtype));
  }
  re->liftable = re->liftable && resolve(re, r, &s, true, re->result, 0);
  vec_free(&s.b);
  return re;
}

void region_eval_free(RegionEval *re) {
  if (!re) return;
  for (int i = 0; i < re->slots.n; i++) tensor_release(re->slots.v[i].t);
  for (int i = 0; i < re->n_results; i++) {
    tensor_release(re->copies[i]);
    if (re->slow_out) tensor_release(re->slow_out[i]);
  }
  for (int i = 0; i < re->r->n_args && re->slow_in; i++) tensor_release(re->slow_in[i]);
  vec_free(&re->slots);
  vec_free(&re->steps);
  free(re->result);
  free(re->copies);
  free(re->slow_out);
  free(re->slow_in);
  region_run_free(re->slow);
  free(re);
}

int region_eval_returns_arg(const RegionEval *re, int i) {
  return re->liftable && re->result[i] < re->r->n_args ? re->result[i] : -1;
}

/* ---- evaluating ---------------------------------------------------------------------------- */

/* A vector of m elements with room for `room`: dims[0] is set to m by hand, so that the memory can
 * be kept. */
static Tensor *vector(DType dtype, int64_t room, int64_t m) {
  Tensor *t = tensor_make(dtype, 1, &room);
  t->dims[0] = t->count = m;
  return t;
}

static void resize(RegionEval *re, int64_t m) {
  if (m == re->m) return;
  bool grow = m > re->room;
  if (grow) re->room = m;
  for (int i = 0; i < re->steps.n; i++) {
    Slot *s = &re->slots.v[re->steps.v[i].out];
    if (grow || !s->t) {
      tensor_release(s->t);
      s->t = vector(s->dtype, re->room, m);
      s->data = s->t->data;
    }
    s->t->dims[0] = s->t->count = m;
  }
  for (int i = 0; i < re->n_results; i++) {
    Slot *s = &re->slots.v[re->result[i]];
    if (s->step == 1 && s->t) continue;
    if (grow || !re->copies[i]) {
      tensor_release(re->copies[i]);
      re->copies[i] = vector(s->dtype, re->room, m);
    }
    re->copies[i]->dims[0] = re->copies[i]->count = m;
  }
  re->m = m;
}

static Err *run_slow(RegionEval *re, Tensor *const *args, int64_t m, Tensor **results) {
  int n_args = re->r->n_args;
  if (!re->slow) {
    re->slow = region_run_new(re->e, re->r);
    re->slow_in = xcalloc((size_t)n_args + 1, sizeof(Tensor *));
    re->slow_out = xcalloc((size_t)re->n_results + 1, sizeof(Tensor *));
  }
  Tensor *one[64];
  if (re->n_results > COUNT_OF(one))
    return op_err(re->e->op, ERR_UNIMPLEMENTED, "a region of %d results", re->n_results);
  for (int i = 0; i < re->n_results; i++) {
    DType dt = re->r->last->operands[i]->type->dtype;
    tensor_release(re->slow_out[i]);
    re->slow_out[i] = vector(dt, m, m);
    results[i] = re->slow_out[i];
  }
  for (int64_t k = 0; k < m; k++) {
    for (int i = 0; i < n_args; i++) {
      tensor_release(re->slow_in[i]);
      re->slow_in[i] =
          tensor_make(args[i]->dtype, re->r->args[i]->type->rank, re->r->args[i]->type->dims);
      elem_copy(re->slow_in[i], 0, args[i], k);
    }
    TRY(region_run(re->slow, re->slow_in, one));
    for (int i = 0; i < re->n_results; i++) {
      elem_copy(re->slow_out[i], k, one[i], 0);
      tensor_release(one[i]);
    }
  }
  return NULL;
}

Err *region_eval_run(RegionEval *re, Tensor *const *args, int64_t m, Tensor **results) {
  if (!re->liftable) return run_slow(re, args, m, results);
  resize(re, m);
  for (int i = 0; i < re->r->n_args; i++) re->slots.v[i].data = args[i]->data;
  for (int i = 0; i < re->steps.n; i++) {
    const Step *st = &re->steps.v[i];
    const void *in[EW_MAX_OPERANDS];
    int64_t step[EW_MAX_OPERANDS];
    for (int k = 0; k < st->n_in; k++) {
      in[k] = re->slots.v[st->in[k]].data;
      step[k] = re->slots.v[st->in[k]].step;
    }
    ewise_apply(&st->k, m, (void *)re->slots.v[st->out].data, in, step);
  }
  for (int i = 0; i < re->n_results; i++) {
    Slot *s = &re->slots.v[re->result[i]];
    if (s->step == 1 && s->t) {
      results[i] = s->t;
    } else {
      results[i] = re->copies[i];
      if (s->step) memcpy(results[i]->data, s->data, tensor_bytes(results[i]));
      else tensor_fill(results[i], s->data);
    }
  }
  return NULL;
}
