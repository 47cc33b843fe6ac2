/* From a StableHLO module to the simulator's graph: one walk over main that inlines calls and
 * composites; nodes are simplified as they are made (make.c). Cost: linear in the program after
 * inlining. */
#include <math.h>
#include <stdlib.h>

#include "sim/hlo/hlo.h"
#include "ir/exchange.h"

#define MAX_DEPTH 64
#define MAX_NODES 4000000

/* ---- the walk -------------------------------------------------------------------------------- */

typedef struct Env {
  HNode **map; /* by Value.id of the function being walked */
} Env;

static Err *walk(Maker *b, Region *r, Env *e, int depth, HNode ***outs, int *n_outs);

static Err *call_func(Maker *b, const Op *op, Func *f, HNode **args, int n, int depth,
                      HNode ***outs, int *n_outs) {
  if (depth > MAX_DEPTH)
    return op_err(op, ERR_INVALID, "calls nest deeper than %d, or recurse", MAX_DEPTH);
  if (!f->body || f->body->n_args != n)
    return op_err(op, ERR_INVALID, "cannot inline '%.*s'", STR_ARG(f->name));
  int nv = ir_number(f);
  Env e = {arena_alloc(b->g->arena, sizeof(HNode *) * (size_t)MAX(nv, 1))};
  for (int i = 0; i < n; i++) e.map[f->body->args[i]->id] = args[i];
  return walk(b, f->body, &e, depth + 1, outs, n_outs);
}

/* ---- memory kinds ---------------------------------------------------------------------------- */

static bool names_host(Str kind) {
  return str_is(kind, "pinned_host") || str_is(kind, "unpinned_host");
}

/* The memory that a custom call asks for: 1 the host's, 0 the device's, -1 it asks for none. */
static int asked_memory(const Op *op) {
  Str target = op_str(op, "call_target_name");
  if (str_is(target, "MoveToHost")) return 1;
  if (str_is(target, "MoveToDevice")) return 0;
  const Attr *a =
      str_is(target, "annotate_device_placement") ? op_attr(op, "mhlo.frontend_attributes") : NULL;
  const Attr *kind =
      a && a->kind == AT_DICT ? attrs_get(a->dict, a->n, "_xla_buffer_placement") : NULL;
  return kind && kind->kind == AT_STRING ? names_host(kind->s) : -1;
}

/* x where the call wants it: as it is, or a copy that crosses over. */
static HNode *placed(HGraph *g, HComp *c, const Op *op, HNode *x) {
  int host = asked_memory(op);
  if (host < 0 || x->host == (host > 0)) return x;
  x = hlo_node(g, c, H_OTHER, op->kind, op, x->dt, x->rank, x->d, 1, &x);
  x->n_results = 1;
  x->crosses = true;
  x->host = host > 0;
  return x;
}

/* Parts of what lies in the host's memory, and what they are written into, lie there too. */
static void stay_there(const Op *op, HNode *const *in, HNode *n) {
  switch (op->kind) {
  case OP_DYNAMIC_UPDATE_SLICE: n->host = in[0]->host || in[1]->host; break;
  case OP_SLICE:
  case OP_DYNAMIC_SLICE:
  case OP_RESHAPE: n->host |= in[0]->host; break;
  case OP_BROADCAST_IN_DIM: n->host |= in[0]->host && hlo_count(n) == hlo_count(in[0]); break;
  default: break;
  }
}

/* A loop's state whose next value lies there does so from the start. */
static void state_there(HNode *loop) {
  HComp *body = loop->comps[1];
  for (int i = 0; i < body->outputs.n && i < body->params.n && i < loop->n_in; i++) {
    if (!body->outputs.v[i]->host) continue;
    body->params.v[i]->host = true;
    if (loop->in[i]->kind == H_CONST || loop->in[i]->kind == H_BCAST) loop->in[i]->host = true;
  }
}

/* A nested computation: values of the surrounding one are seen through the environment. */
static HComp *comp_new(HGraph *g) {
  HComp *c = ARENA_NEW(g->arena, HComp);
  c->next = g->comps;
  g->comps = c;
  return c;
}

/* The array w inside of a loop that carries what w repeats. */
static HNode *repeated(Maker *b, const HNode *w, HNode *carried) {
  return w->kind == H_CONST ? hlo_const(b, NULL, w->dt, w->rank, w->d, w->value)
                            : hlo_bcast(b, NULL, carried, w->rank, w->d, w->dims);
}

static Err *nested(Maker *b, Region *r, Env *e, HNode *owner, int depth, HComp **out) {
  HComp *c = comp_new(b->g);
  c->parent = b->comp;
  c->owner = owner;
  HComp *save = b->comp;
  b->comp = c;
  for (int i = 0; i < r->n_args; i++) {
    const Type *t = r->args[i]->type;
    const HNode *w = owner->repeats ? owner->repeats[i] : NULL;
    HNode *p =
        hlo_node(b->g, c, H_PARAM, OP_UNKNOWN, NULL, t->kind == TY_TENSOR ? t->dtype : DT_TOKEN,
                 w                      ? owner->in[i]->rank
                 : t->kind == TY_TENSOR ? t->rank
                                        : 0,
                 w ? owner->in[i]->d : t->dims, 0, NULL);
    p->index = i;
    p->host = owner->kind == H_WHILE && i < owner->n_in && owner->in[i]->host;
    *vec_push(&c->params) = p;
    e->map[r->args[i]->id] = w ? repeated(b, w, p) : p;
  }
  HNode **o;
  int n;
  Err *err = walk(b, r, e, depth + 1, &o, &n);
  b->comp = save;
  if (err) return err;
  for (int i = 0; i < n; i++) {
    bool small = owner->repeats && n == c->params.n && owner->repeats[i];
    *vec_push(&c->outputs) = small ? c->params.v[i] : o[i];
  }
  *out = c;
  return NULL;
}

/* Trip count: the condition compares a loop argument that starts at a constant and steps by a
 * constant with a bound. */
static bool const_of(const HNode *n, double *v) {
  while (n && (n->kind == H_RESHAPE || (n->kind == H_EWISE && n->op == OP_CONVERT))) n = n->in[0];
  if (n && n->kind == H_CONST && n->splat) {
    *v = n->value;
    return true;
  }
  return false;
}

/* Is it carried from turn to turn, and not seen from outside the loop? */
static bool carried(const HNode *n, const HComp *region) {
  return n->kind == H_PARAM && n->comp == region;
}

/* The number that the condition compares with, known before the loop. */
static bool bound_of(const HNode *w, const HNode *y, double *v) {
  const HComp *body = w->comps[1];
  if (const_of(y, v)) return true;
  if (!carried(y, w->comps[0]) || y->index >= w->n_in || y->index >= body->outputs.n) return false;
  const HNode *next = body->outputs.v[y->index];
  return carried(next, body) && next->index == y->index && const_of(w->in[y->index], v);
}

/* What a turn adds to carried value k. */
static bool step_of(const HComp *body, int k, double *step) {
  const HNode *next = body->outputs.v[k];
  if (next->kind != H_EWISE || (next->op != OP_ADD && next->op != OP_SUBTRACT)) return false;
  const HNode *p = next->in[0], *s = next->in[1];
  if (!carried(p, body) && next->op == OP_ADD) p = next->in[1], s = next->in[0];
  if (!carried(p, body) || p->index != k || !const_of(s, step)) return false;
  if (next->op == OP_SUBTRACT) *step = -*step;
  return *step != 0;
}

/* Turns from `init` in steps while the comparison with `bound` holds; -1: it does not end, or not so. */
static double turns(Str dir, bool swapped, double init, double bound, double step) {
  double n = (bound - init) / step;
  if (str_is(dir, "NE")) return n >= 0 && n == floor(n) ? n : -1;
  bool less = str_is(dir, "LT") || str_is(dir, "LE"), with = str_is(dir, "LE") || str_is(dir, "GE");
  if (!less && !str_is(dir, "GT") && !str_is(dir, "GE")) return -1;
  bool up = less != swapped;
  if (init == bound ? !with : up != (init < bound)) return 0;
  if (up != (step > 0)) return -1;
  return with ? floor(n) + 1 : ceil(n);
}

static int64_t trip_count(const HNode *w) {
  const HComp *cond = w->comps[0], *body = w->comps[1];
  if (cond->outputs.n != 1) return -1;
  const HNode *cmp = cond->outputs.v[0];
  if (cmp->kind != H_EWISE || cmp->op != OP_COMPARE || !cmp->src) return -1;
  double bound, init, step = 0;
  for (int side = 0; side < 2; side++) { /* the counter may stand on either */
    const HNode *x = cmp->in[side];
    if (!carried(x, cond) || x->index >= body->outputs.n || x->index >= w->n_in) continue;
    if (!bound_of(w, cmp->in[!side], &bound) || !const_of(w->in[x->index], &init) ||
        !step_of(body, x->index, &step))
      continue;
    double n = turns(op_str(cmp->src, "comparison_direction"), side, init, bound, step);
    return n >= 0 && n <= 1e12 ? (int64_t)n : -1;
  }
  return -1;
}

static void set_types(HGraph *g, HNode *n, const Op *op) {
  n->n_results = op->n_results;
  n->res_dt = ARENA_ARRAY(g->arena, DType, op->n_results + 1);
  n->res_rank = ARENA_ARRAY(g->arena, int, op->n_results + 1);
  n->res_d = ARENA_ARRAY(g->arena, int64_t *, op->n_results + 1);
  for (int i = 0; i < op->n_results; i++) {
    const Type *t = op->results[i].type;
    bool tensor = t->kind == TY_TENSOR;
    n->res_dt[i] = tensor ? t->dtype : DT_TOKEN;
    n->res_rank[i] = tensor ? t->rank : 0;
    n->res_d[i] = tensor ? t->dims : NULL;
  }
}

static HKind kind_of(const Op *op) {
  switch (op->kind) {
  case OP_GATHER:
  case OP_DYNAMIC_GATHER:
  case OP_TORCH_INDEX_SELECT: return H_GATHER;
  case OP_SCATTER: return H_SCATTER;
  case OP_DYNAMIC_SLICE:
  case OP_REAL_DYNAMIC_SLICE: return H_DSLICE;
  case OP_DYNAMIC_UPDATE_SLICE: return H_DUS;
  case OP_SORT: return H_SORT;
  case OP_REDUCE_WINDOW: return H_RWIN;
  case OP_SELECT_AND_SCATTER: return H_SELSCAT;
  case OP_RNG:
  case OP_RNG_BIT_GENERATOR: return H_RNG;
  default: break;
  }
  return op_info[op->kind].cls == OC_COLLECTIVE ? H_COLL : H_OTHER;
}

static bool splat_of(const Tensor *t, double *v) {
  if (!t || t->dtype == DT_TOKEN || dtype_is_complex(t->dtype) || t->phantom || !t->data ||
      !tensor_is_splat(t))
    return false;
  *v = elem_get_f64(t->dtype, t->data);
  return true;
}

/* Strips transposes and reversals from a convolution's operand: the compiler reads it in any order.
 */
static HNode *strip_reverse(HNode *x) {
  while (x->kind == H_REVERSE) x = x->in[0];
  return x;
}

/* The gradient of a transposed convolution's filter: a window larger than the image, which is
 * spread out. The compiler changes the two about, and reverses what was the window. */
static bool slides_over_window(const HConv *c, const HNode *x, const HNode *y) {
  return c->n_spatial > 0 && c->lhs_dil[0] > 1 && hlo_count(y) > hlo_count(x) &&
         y->kind != H_PARAM && c->window[0] > c->lhs_dil[0] * 2;
}

/* What is computed again from its results (jax.checkpoint) waits until all operands are there. Those
 * that are there from the start are handed on, unless there is nothing else to wait with. */
static void barrier(Maker *b, const Op *op, HNode **in, Env *e) {
  HNode **after = ARENA_ARRAY(b->g->arena, HNode *, op->n_operands + 1);
  int n = 0;
  for (int i = 0; i < op->n_operands; i++)
    if (in[i]->kind != H_PARAM && in[i]->kind != H_CONST) after[n++] = in[i];
  for (int i = 0; i < op->n_results; i++) {
    HNode *x = in[i];
    if (n > 0 && x->kind != H_CONST && x->rank > 0 && (x->kind != H_PARAM || n == 1)) {
      x = hlo_node(b->g, b->comp, H_BARRIER, op->kind, op, x->dt, x->rank, x->d, 1, &x);
      x->host = in[i]->host;
      x->after = after;
      x->n_after = n;
    }
    e->map[op->results[i].id] = x;
  }
}

/* Calls, and composites that have a decomposition: the body's nodes in place of the operation. */
static Err *inlines(Maker *b, const Op *op, HNode **in, Env *e, int depth, bool *done) {
  HNode **o;
  int no;
  *done = true;
  if (op->kind == OP_NAMED_COMPUTATION || op->kind == OP_MANUAL_COMPUTATION) {
    Region *r = op->regions[0];
    for (int i = 0; i < r->n_args && i < op->n_operands; i++) e->map[r->args[i]->id] = in[i];
    TRY(walk(b, r, e, depth + 1, &o, &no));
  } else {
    Str name = op_str(op, op->kind == OP_CALL ? "callee" : "decomposition");
    Func *f = module_func(b->g->module, name);
    bool fits = f && f->body && f->body->n_args == op->n_operands;
    if (!f && op->kind == OP_CALL)
      return op_err(op, ERR_NOT_FOUND, "calls '%.*s', which is not there", STR_ARG(name));
    if (!fits && op->kind == OP_COMPOSITE) {
      *done = false;
      return NULL;
    }
    TRY(call_func(b, op, f, in, op->n_operands, depth, &o, &no));
  }
  for (int i = 0; i < op->n_results && i < no; i++) e->map[op->results[i].id] = o[i];
  return NULL;
}

/* The branch that is taken whatever comes in: the only one, or one that a constant chooses, as
 * JAX's choices by platform; else -1. */
static int branch_taken(const Op *op, const HNode *choice) {
  if (op->n_regions == 1) return 0;
  if (choice->kind != H_CONST || !choice->splat) return -1;
  if (op->kind == OP_IF) return choice->value != 0 ? 0 : 1;
  bool named = choice->value >= 0 && choice->value < op->n_regions;
  return named ? (int)choice->value : op->n_regions - 1;
}

static Err *take_branch(Maker *b, const Op *op, Region *r, Env *e, int depth) {
  HNode **o;
  int n;
  TRY(walk(b, r, e, depth + 1, &o, &n));
  for (int i = 0; i < op->n_results && i < n; i++) e->map[op->results[i].id] = o[i];
  return NULL;
}

/* What moves elements and computes nothing; NULL for other operations. */
static HNode *moved(Maker *b, const Op *op, HNode **in, DType dt, int rank, const int64_t *d) {
  HGraph *g = b->g;
  HNode *n = NULL;
  const int64_t *v;
  switch (op->kind) {
  case OP_BROADCAST_IN_DIM:
    op_ints(op, "broadcast_dimensions", &v);
    n = hlo_bcast(b, op, in[0], rank, d, v);
    break;
  case OP_BROADCAST: {
    int64_t m[64];
    for (int i = 0; i < in[0]->rank && i < 64; i++) m[i] = rank - in[0]->rank + i;
    n = hlo_bcast(b, op, in[0], rank, d, m);
    break;
  }
  case OP_RESHAPE:
  case OP_BITCAST_CONVERT:
    if (op->kind == OP_BITCAST_CONVERT && in[0]->rank == rank)
      n = hlo_ewise(b, op->kind, op, dt, rank, d, 1, in);
    else if (in[0]->dt == dt) n = hlo_reshape(b, op, in[0], rank, d);
    else n = hlo_node(g, b->comp, H_OTHER, op->kind, op, dt, rank, d, 1, in);
    break;
  case OP_TRANSPOSE:
    op_ints(op, "permutation", &v);
    n = hlo_transpose(b, op, in[0], v);
    break;
  case OP_REVERSE:
    n = hlo_node(g, b->comp, H_REVERSE, op->kind, op, dt, rank, d, 1, in);
    n->n_dims = op_ints(op, "dimensions", &v);
    n->dims = hlo_ints(g, v, n->n_dims);
    break;
  case OP_SLICE: {
    const int64_t *s, *l, *st;
    op_ints(op, "start_indices", &s);
    op_ints(op, "limit_indices", &l);
    op_ints(op, "strides", &st);
    n = hlo_slice(b, op, in[0], d, s, l, st);
    break;
  }
  case OP_PAD: {
    const int64_t *lo, *hi, *it;
    op_ints(op, "edge_padding_low", &lo);
    op_ints(op, "edge_padding_high", &hi);
    op_ints(op, "interior_padding", &it);
    n = hlo_node(g, b->comp, H_PAD, op->kind, op, dt, rank, d, 2, in);
    n->lo = hlo_ints(g, lo, rank);
    n->hi = hlo_ints(g, hi, rank);
    n->step = hlo_ints(g, it, rank);
    for (int i = 0; i < rank; i++) /* nothing is between one element */
      if (in[0]->d[i] <= 1) n->step[i] = 0;
    break;
  }
  case OP_CONCATENATE: {
    HNode **full = ARENA_ARRAY(g->arena, HNode *, op->n_operands);
    int parts = 0;
    for (int i = 0; i < op->n_operands; i++)
      if (hlo_count(in[i]) > 0) full[parts++] = in[i];
    if (parts == 1 || op->n_operands == 1) {
      n = parts ? full[0] : in[0];
      break;
    }
    n = hlo_node(g, b->comp, H_CONCAT, op->kind, op, dt, rank, d, parts, full);
    n->index = (int)op_int(op, "dimension", 0);
    break;
  }
  default: break;
  }
  return n;
}

static HNode *constant(Maker *b, Op *op, DType dt, int rank, const int64_t *d) {
  Attr *a = op_attr(op, "value");
  double x;
  if (a && a->kind == AT_TENSOR && splat_of(a->tensor, &x)) return hlo_const(b, op, dt, rank, d, x);
  return hlo_node(b->g, b->comp, H_CONST, op->kind, op, dt, rank, d, 0, NULL);
}

/* Numbers along one dimension; of several they are a vector, repeated. Counters of random bits (64 bits) are
 * taken apart in their kernels. */
static HNode *counted(Maker *b, const Op *op, DType dt, int rank, const int64_t *d) {
  int64_t along = op_int(op, "iota_dimension", 0);
  bool vector = rank > 1 && hlo_bits(dt) <= 32;
  HNode *n = hlo_node(b->g, b->comp, H_IOTA, op->kind, op, dt, vector ? 1 : rank,
                      vector ? d + along : d, 0, NULL);
  n->index = vector ? 0 : (int)along;
  n = hlo_unique(b, n);
  return vector ? hlo_bcast(b, op, n, rank, d, &along) : n;
}

static HNode *reduction(Maker *b, Op *op, HNode **in, DType dt, int rank, const int64_t *d) {
  const int64_t *v;
  int nd = op_ints(op, "dimensions", &v);
  int64_t red = 1;
  for (int i = 0; i < nd; i++) red *= in[0]->d[v[i]];
  if (red == 1 && op->n_results == 1) return hlo_reshape(b, op, in[0], rank, d);
  if (op->n_results == 1 && in[0]->kind == H_CONST && in[0]->splat)
    return hlo_const(b, op, dt, rank, d, in[0]->value * (double)red);
  HNode *n = hlo_node(b->g, b->comp, H_REDUCE, op->kind, op, dt, rank, d, op->n_operands, in);
  n->n_dims = nd;
  n->dims = hlo_ints(b->g, v, nd);
  if (op->n_results == 1) return hlo_unique(b, n);
  set_types(b->g, n, op);
  return n;
}

static HNode *product(Maker *b, Op *op, HNode **in, DType dt, int rank, const int64_t *d) {
  HConv *c = hlo_dot_info(b, op, in[0], in[1]);
  HNode *n = c->k == 1 ? hlo_outer_product(b, op, c, in[0], in[1]) : NULL;
  if (n) return n;
  n = hlo_node(b->g, b->comp, H_CONV, op->kind, op, dt, rank, d, 2, in);
  n->conv = c;
  return n;
}

static HNode *convolution(Maker *b, Op *op, HNode **in, DType dt, int rank, const int64_t *d) {
  HNode *ab[2] = {in[0], strip_reverse(in[1])};
  HConv *c = hlo_conv_info(b, op, ab[0], ab[1]);
  if (slides_over_window(c, ab[0], ab[1]))
    ab[1] = hlo_node(b->g, b->comp, H_REVERSE, OP_REVERSE, op, ab[1]->dt, ab[1]->rank, ab[1]->d, 1,
                     &ab[1]);
  HNode *n = hlo_node(b->g, b->comp, H_CONV, op->kind, op, dt, rank, d, 2, ab);
  n->conv = c;
  return n;
}

/* An array that a loop hands on as it is, and that repeats a smaller one or a number, is repeated inside of the loop: the loop
 * carries the smaller one (masks of attention). */
static void repeat_inside(Maker *b, const Op *op, HNode *n) {
  const Region *body = op->regions[1];
  n->repeats = ARENA_ARRAY(b->g->arena, HNode *, n->n_in + 1);
  for (int k = 0; k < n->n_in; k++) {
    HNode *x = n->in[k];
    bool kept = body->last && k < body->last->n_operands && k < body->n_args &&
                body->last->operands[k] == body->args[k];
    bool number = x->kind == H_CONST && x->splat && x->rank > 0;
    kept &= !x->host && x->comp == b->comp &&
            (number || (x->kind == H_BCAST && hlo_count(x) > hlo_count(x->in[0])));
    n->repeats[k] = kept ? x : NULL;
    if (!kept) continue;
    n->in[k] = number ? hlo_const(b, x->src, x->dt, 0, NULL, x->value) : x->in[0];
    n->res_rank[k] = n->in[k]->rank;
    n->res_d[k] = n->in[k]->d;
  }
}

/* A loop or a choice of branches: a node with a computation for each region. */
static Err *control(Maker *b, Op *op, HNode *n, Env *e, int depth) {
  set_types(b->g, n, op);
  n->n_comps = op->n_regions;
  n->comps = ARENA_ARRAY(b->g->arena, HComp *, op->n_regions);
  if (op->kind == OP_WHILE && n->n_in > 1) repeat_inside(b, op, n);
  for (int i = 0; i < op->n_regions; i++) TRY(nested(b, op->regions[i], e, n, depth, &n->comps[i]));
  if (op->kind == OP_WHILE) n->trip = trip_count(n), state_there(n);
  return NULL;
}

/* An element-wise operation; scalars beside arrays, as of select and clamp, are spread. NULL: it is
 * none. */
static HNode *elementwise(Maker *b, Op *op, HNode **in, DType dt, int rank, const int64_t *d) {
  HNode *x[8];
  if (op_info[op->kind].cls != OC_EWISE || op->n_results != 1 || op->n_regions ||
      op->n_operands > COUNT_OF(x))
    return NULL;
  for (int i = 0; i < op->n_operands; i++)
    x[i] = rank && in[i]->rank == 0 ? hlo_bcast(b, op, in[i], rank, d, NULL) : in[i];
  return hlo_ewise(b, op->kind, op, dt, rank, d, op->n_operands, x);
}

/* Whatever has no form of its own. */
static HNode *other(Maker *b, Op *op, HNode **in, DType dt, int rank, const int64_t *d) {
  HGraph *g = b->g;
  HNode *n = hlo_node(g, b->comp, kind_of(op), op->kind, op, dt, rank, d, op->n_operands, in);
  if (op->n_results > 1) set_types(g, n, op);
  n->n_results = MAX(op->n_results, 1);
  if (n->kind == H_RWIN || n->kind == H_SELSCAT) {
    const int64_t *w, *s;
    int nw = op_ints(op, "window_dimensions", &w), ns = op_ints(op, "window_strides", &s);
    if (nw == rank) n->lo = hlo_ints(g, w, rank);
    if (ns == rank) n->step = hlo_ints(g, s, rank);
  }
  return n;
}

/* The node's results are the operation's. A loop that never runs is what it begins with. */
static void bind_results(Maker *b, const Op *op, HNode *n, Env *e) {
  bool never = n->kind == H_WHILE && n->trip == 0;
  if (op->n_results == 1) {
    e->map[op->results[0].id] = never ? n->in[0] : n;
    return;
  }
  for (int i = 0; i < op->n_results; i++) {
    const Type *rt = op->results[i].type;
    if (n->repeats && n->repeats[i]) {
      e->map[op->results[i].id] = n->repeats[i];
      continue;
    }
    if (never) {
      e->map[op->results[i].id] = n->in[i];
      continue;
    }
    bool tensor = rt->kind == TY_TENSOR;
    HNode *x = hlo_node(b->g, b->comp, H_GET, OP_GET_TUPLE_ELEMENT, op,
                        tensor ? rt->dtype : DT_TOKEN, tensor ? rt->rank : 0, rt->dims, 1, &n);
    x->index = i;
    x->host = n->n_comps > 0 && i < n->comps[n->n_comps - 1]->outputs.n &&
              n->comps[n->n_comps - 1]->outputs.v[i]->host;
    e->map[op->results[i].id] = x;
  }
}

/* What an operation becomes. */
static Err *one(Maker *b, Op *op, Env *e, int depth) {
  HGraph *g = b->g;
  HNode *in_small[16],
      **in = op->n_operands <= 16 ? in_small : ARENA_ARRAY(g->arena, HNode *, op->n_operands);
  for (int i = 0; i < op->n_operands; i++) {
    in[i] = e->map[op->operands[i]->id];
    if (!in[i]) return op_err(op, ERR_INTERNAL, "operand %d was not seen before", i);
  }
  if (g->n_nodes > MAX_NODES)
    return op_err(op, ERR_EXHAUSTED, "the program has more than %d operations after inlining",
                  MAX_NODES);
  for (int i = 0; i < op->n_results; i++)
    if (op->results[i].type->kind == TY_TENSOR && !type_is_static(op->results[i].type))
      return op_err(op, ERR_UNIMPLEMENTED, "a timing model needs static shapes");
  const Type *t = op->n_results ? op->results[0].type : NULL;
  DType dt = t && t->kind == TY_TENSOR ? t->dtype : DT_TOKEN;
  int rank = t && t->kind == TY_TENSOR ? t->rank : 0;
  const int64_t *d = t && t->kind == TY_TENSOR ? t->dims : NULL;
  HNode *n = hlo_said_before(b, op, in);
  if (n) {
    e->map[op->results[0].id] = n;
    return NULL;
  }
  switch (op->kind) {
  case OP_UNKNOWN:
    return err_hint(op_err(op, ERR_UNIMPLEMENTED, "no such operation"),
                    "StableHLO, CHLO and JAX's portable custom calls are known");
  case OP_CONSTANT: n = constant(b, op, dt, rank, d); break;
  case OP_IOTA: n = counted(b, op, dt, rank, d); break;
  case OP_REDUCE: n = reduction(b, op, in, dt, rank, d); break;
  case OP_DOT:
  case OP_DOT_GENERAL: n = product(b, op, in, dt, rank, d); break;
  case OP_CONVOLUTION:
  case OP_DYNAMIC_CONV: n = convolution(b, op, in, dt, rank, d); break;
  case OP_CALL:
  case OP_COMPOSITE:
  case OP_NAMED_COMPUTATION:
  case OP_MANUAL_COMPUTATION: {
    bool inlined;
    TRY(inlines(b, op, in, e, depth, &inlined));
    if (inlined) return NULL;
    break;
  }
  case OP_OPTIMIZATION_BARRIER: barrier(b, op, in, e); return NULL;
  case OP_SHARDING_CONSTRAINT:
  case OP_RESHARD:
  case OP_PROPAGATION_BARRIER:
  case OP_COPY: n = in[0]; break;
  case OP_CUSTOM_CALL: {
    Str target = op_str(op, "call_target_name");
    if (op_is_ragged(op)) /* what it sends crosses the network, as an all_to_all of as many bytes */
      n = hlo_node(g, b->comp, H_COLL, OP_ALL_TO_ALL, op, dt, rank, d, op->n_operands, in);
    if (op->n_operands == 1 && op->n_results == 1 &&
        (op_is_remark(op) || str_is(target, "Sharding") || str_is(target, "SPMDFullToShardShape") ||
         str_is(target, "SPMDShardToFullShape")))
      n = placed(g, b->comp, op, in[0]);
    break;
  }
  case OP_WHILE:
    n = hlo_node(g, b->comp, H_WHILE, op->kind, op, dt, rank, d, op->n_operands, in);
    TRY(control(b, op, n, e, depth));
    break;
  case OP_IF:
  case OP_CASE: {
    int taken = branch_taken(op, in[0]);
    if (taken >= 0) return take_branch(b, op, op->regions[taken], e, depth);
    n = hlo_node(g, b->comp, H_COND, op->kind, op, dt, rank, d, op->n_operands, in);
    TRY(control(b, op, n, e, depth));
    break;
  }
  case OP_RETURN: return NULL;
  case OP_SCATTER: n = hlo_one_per_row(b, op, rank, d, dt, in); break;
  case OP_GATHER:
    n = hlo_known_place(b, op, in, rank, d);
    if (!n) n = other(b, op, (HNode *[]){in[0], hlo_row_offsets(b, op, in[1])}, dt, rank, d);
    break;
  default:
    n = moved(b, op, in, dt, rank, d);
    if (!n) n = elementwise(b, op, in, dt, rank, d);
    break;
  }
  if (!n) n = other(b, op, in, dt, rank, d);
  if (n->n_results <= 1) stay_there(op, in, n);
  hlo_say(b, op, in, n);
  bind_results(b, op, n, e);
  return NULL;
}

static Err *walk(Maker *b, Region *r, Env *e, int depth, HNode ***outs, int *n_outs) {
  if (depth > MAX_DEPTH) return err_new(ERR_INVALID, "regions nest deeper than %d", MAX_DEPTH);
  for (Op *op = r->first; op; op = op->next) {
    if (op->kind == OP_RETURN) {
      HNode **o = ARENA_ARRAY(b->g->arena, HNode *, op->n_operands + 1);
      for (int i = 0; i < op->n_operands; i++) o[i] = e->map[op->operands[i]->id];
      *outs = o;
      *n_outs = op->n_operands;
      return NULL;
    }
    TRY(one(b, op, e, depth));
  }
  *outs = NULL;
  *n_outs = 0;
  return NULL;
}

/* ---- entry ----------------------------------------------------------------------------------- */

Err *hlo_build(const Module *m, Arena *arena, bool scatters, HGraph **out) {
  *out = NULL;
  Func *f = module_main(m);
  if (!f || !f->body) return err_new(ERR_INVALID, "the module has no main function");
  HGraph *g = ARENA_NEW(arena, HGraph);
  g->arena = arena;
  g->module = m;
  g->scatters = scatters;
  *out = g;
  g->main = comp_new(g);
  Maker b = {.g = g, .cse = map_new(), .said = map_new(), .comp = g->main};
  int nv = ir_number(f);
  Env e = {arena_alloc(arena, sizeof(HNode *) * (size_t)MAX(nv, 1))};
  g->n_params = f->body->n_args;
  g->param_names = ARENA_ARRAY(arena, const char *, g->n_params + 1);
  bool *donated = ARENA_ARRAY(arena, bool, g->n_params + 1);
  g->donated = donated;
  Err *err = NULL;
  for (int i = 0; i < f->body->n_args && !err; i++) {
    const Type *t = f->body->args[i]->type;
    bool tensor = t->kind == TY_TENSOR;
    if (tensor && !type_is_static(t))
      err =
          err_hint(err_new(ERR_UNIMPLEMENTED, "argument %d has a dynamic shape", i),
                   "time and memory are those of one shape: lower the program without symbolic or "
                   "bounded dimensions, jax.jit(f).lower(...) of arrays of the size you mean");
    HNode *p = hlo_node(g, g->main, H_PARAM, OP_UNKNOWN, NULL, tensor ? t->dtype : DT_TOKEN,
                        tensor ? t->rank : 0, tensor ? t->dims : NULL, 0, NULL);
    p->index = i;
    *vec_push(&g->main->params) = p;
    e.map[f->body->args[i]->id] = p;
    g->param_names[i] = arena_printf(arena, "arg%d", i).p;
    if (f->arg_attrs && f->arg_attrs[i]) {
      Attr *al = attrs_get(f->arg_attrs[i], f->n_arg_attrs[i], "tf.aliasing_output");
      Attr *dn = attrs_get(f->arg_attrs[i], f->n_arg_attrs[i], "jax.buffer_donor");
      Attr *kind = attrs_get(f->arg_attrs[i], f->n_arg_attrs[i], "mhlo.memory_kind");
      p->host = kind && kind->kind == AT_STRING && names_host(kind->s);
      donated[i] = al || (dn && (dn->kind != AT_BOOL || dn->i));
    }
    if (f->body->args[i]->name.n) g->param_names[i] = arena_str(arena, f->body->args[i]->name).p;
  }
  HNode **o = NULL;
  int n = 0;
  if (!err) err = walk(&b, f->body, &e, 0, &o, &n);
  map_free(b.cse);
  map_free(b.said);
  if (err) return err;
  for (int i = 0; i < n; i++) *vec_push(&g->main->outputs) = o[i];
  hlo_users(g, g->main);
  hlo_narrow_sums(g->main);
  hlo_users(g, g->main);
  return NULL;
}
