/* pass_windows: reduce_window with a body, a type or a shape that no kernel is made for, written with
 * element-wise arithmetic on whole arrays, which is fused and compiled as any other.
 *
 * A window over everything before (or after) in one dimension is a running combination, cumlogsumexp
 * for one: a loop takes a step along the dimension for all rows at once. A few long rows are cut into
 * blocks that go side by side, and what comes before each block is combined with it afterwards.
 *
 * Other windows are combined from shifted copies: element by element from the initial value on where
 * the body may not be associative (a subtraction: the specification leaves its result open, people
 * expect the order in which XLA goes), else one dimension after the other, the last first, so that the
 * order of the elements stays, and long windows by doubling.
 *
 * The initial value of a running combination is taken for neutral, as the specification wants it. */
#include "compile/pass/pass_priv.h"
#include "ir/build.h"

#define MAX_VALUES 4
#define MAX_BODY 64
#define MAX_CHAIN 16 /* copies; longer windows by doubling */
#define MAX_TAPS 32  /* copies in order; larger windows are taken for associative */

typedef struct Body {
  const Region *r;
  int n;     /* values combined */
  bool swap; /* the elements come in reverse */
  bool wide; /* bf16 and f16 are computed in f32, and their results rounded once */
  bool logs; /* adds logarithms (log_sums.c) */
} Body;

/* ---- the body ---- */

static bool is_elementwise(const Region *r) {
  int n = 0;
  for (const Op *op = r->first; op != r->last; op = op->next) {
    bool constant = op->kind == OP_CONSTANT && value_splat(&op->results[0]);
    if (++n > MAX_BODY || op->n_results != 1 || op->results[0].type->rank || op->n_regions ||
        (!constant && op_info[op->kind].cls != OC_EWISE))
      return false;
    for (int i = 0; i < op->n_operands; i++)
      if (op->operands[i]->region != r) return false;
  }
  for (int i = 0; i < r->last->n_operands; i++)
    if (r->last->operands[i]->region != r) return false;
  return true;
}

static bool is_half(DType t) { return t == DT_BF16 || t == DT_F16; }

/* As it is computed. */
static DType held_as(const Body *f, DType t) { return f->wide && is_half(t) ? DT_F32 : t; }

/* Looks at none of the bits of bf16 or f16. */
static bool may_be_wide(const Region *r) {
  for (const Op *op = r->first; op != r->last; op = op->next)
    if (op->kind == OP_BITCAST_CONVERT || op->kind == OP_REDUCE_PRECISION) return false;
  return true;
}

/* out = body(x, y), element by element; all of one shape. out may be x or y. */
static void combine(Build *b, const Body *f, Value *const *x, Value *const *y, Value **out) {
  const Value *names[2 * MAX_VALUES + MAX_BODY];
  Value *vals[2 * MAX_VALUES + MAX_BODY];
  const Type *shape = x[0]->type;
  int n = 0;
  for (int i = 0; i < 2 * f->n; i++, n++) {
    names[n] = f->r->args[i];
    vals[n] = (i < f->n) != f->swap ? x[i % f->n] : y[i % f->n];
  }
  for (const Op *op = f->r->first;; op = op->next) {
    Value *in[8];
    for (int i = 0; i < op->n_operands; i++)
      for (int k = 0; k < n; k++)
        if (names[k] == op->operands[i]) in[i] = vals[k];
    if (op == f->r->last) {
      for (int i = 0; i < f->n; i++) out[i] = in[i];
      return;
    }
    DType as = held_as(f, op_type(op)->dtype);
    Type *t = b_type_as(b, shape, as);
    names[n] = &op->results[0];
    if (op->kind == OP_CONSTANT) {
      Type *scalar = b_type(b, op_type(op)->dtype, 0, NULL);
      Value *c = b_const(b, scalar, value_splat(&op->results[0]));
      vals[n] = b_bcast_scalar(b, b_convert(b, c, as), t);
    } else {
      vals[n] = &b_op(b, op->kind, op->n_operands, in, 1, &t, op->n_attrs, op->attrs, 0, NULL)
                     ->results[0];
    }
    n++;
  }
}

/* ---- running combinations ---- */

/* y[i] = x[0] .. x[i] combined, of rows x[steps, lanes]. */
static void scan_steps(Build *b, const Body *f, Value *const *x, Value *const *init, Value **y) {
  const int64_t steps = b_dim(x[0], 0), lanes = b_dim(x[0], 1), row[2] = {1, lanes};
  /* the step, the result, what is combined so far, of logarithms what that lacks */
  int n = f->n, n_in = 1 + 2 * n + f->logs;
  Value *in[1 + 2 * MAX_VALUES], *out[1 + 2 * MAX_VALUES], *done[MAX_VALUES];
  Type *types[1 + 2 * MAX_VALUES];
  in[0] = b_scalar_i64(b, DT_I32, 0);
  for (int i = 0; i < n; i++) {
    in[1 + i] = b_bcast_scalar(b, init[i], x[i]->type);
    in[1 + n + i] = b_bcast_scalar(b, init[i], b_type(b, b_dtype(x[i]), 1, &lanes));
  }
  if (f->logs) in[3] = b_full(b, in[2]->type, 0);
  for (int i = 0; i < n_in; i++) types[i] = in[i]->type;
  Build cond = {b->m, region_new(b->m, n_in, types), b->loc},
        body = {b->m, region_new(b->m, n_in, types), b->loc};
  Value *go = b_compare(&cond, "LT", cond.r->args[0], b_scalar_i64(&cond, DT_I32, steps));
  b_return(&cond, 1, &go);
  Value *at[2] = {body.r->args[0], b_scalar_i64(&body, DT_I32, 0)}, *now[MAX_VALUES];
  for (int i = 0; i < n; i++)
    now[i] = b_reshape(&body, b_dynamic_slice(&body, x[i], at, row), 1, &lanes);
  memcpy(out, body.r->args, sizeof *out * (size_t)n_in);
  if (f->logs) done[0] = add_log(&body, &out[2], &out[3], now[0]);
  else combine(&body, f, out + 1 + n, now, out + 1 + n);
  if (!f->logs) memcpy(done, out + 1 + n, sizeof *done * (size_t)n);
  out[0] = b_add(&body, at[0], b_scalar_i64(&body, DT_I32, 1));
  for (int i = 0; i < n; i++)
    out[1 + i] = b_dynamic_update(&body, out[1 + i], b_reshape(&body, done[i], 2, row), at);
  b_return(&body, n_in, out);
  Op *loop = b_op(b, OP_WHILE, n_in, in, n_in, types, 0, NULL, 2, (Region *[]){cond.r, body.r});
  for (int i = 0; i < n; i++) y[i] = &loop->results[1 + i];
}

#define FEW_LANES 64
#define MANY_LANES 512
#define BLOCK_STEPS 256

/* y[i] = x[0] .. x[i] combined, of x[length, rows]. */
static void scan(Build *b, const Body *f, Value *const *x, Value *const *init, Value **y) {
  const int64_t length = b_dim(x[0], 0), rows = b_dim(x[0], 1);
  if (rows >= FEW_LANES || length <= FEW_LANES) {
    scan_steps(b, f, x, init, y);
    return;
  }
  int64_t blocks = MIN(MAX((MANY_LANES + rows - 1) / rows, length / BLOCK_STEPS), length / 4);
  const int64_t steps = (length + blocks - 1) / blocks, lanes = blocks * rows;
  Value *side[MAX_VALUES], *total[MAX_VALUES], *before[MAX_VALUES];
  for (int i = 0; i < f->n; i++) { /* blocks side by side */
    Value *all = b_pad(b, x[i], init[i], (int64_t[]){0, 0}, (int64_t[]){blocks * steps - length, 0},
                       (int64_t[]){0, 0});
    all = b_reshape(b, all, 3, (int64_t[]){blocks, steps, rows});
    side[i] = b_reshape(b, b_transpose(b, all, (int[]){1, 0, 2}), 2, (int64_t[]){steps, lanes});
  }
  scan_steps(b, f, side, init, side);
  for (int i = 0; i < f->n; i++)
    total[i] =
        b_reshape(b, b_slice_dim(b, side[i], 0, steps - 1, steps), 2, (int64_t[]){blocks, rows});
  scan(b, f, total, init, total);
  for (int i = 0; i < f->n; i++) {
    Value *none = b_bcast_scalar(b, init[i], b_type(b, b_dtype(x[i]), 2, (int64_t[]){1, rows}));
    Value *rest = b_slice_dim(b, total[i], 0, 0, blocks - 1);
    before[i] = b_reshape(b, b_concat(b, 2, (Value *[]){none, rest}, 0), 1, &lanes);
    before[i] = b_bcast_last(b, before[i], side[i]->type);
  }
  combine(b, f, before, side, side);
  for (int i = 0; i < f->n; i++) {
    Value *all = b_reshape(b, side[i], 3, (int64_t[]){steps, blocks, rows});
    all = b_reshape(b, b_transpose(b, all, (int[]){1, 0, 2}), 2, (int64_t[]){blocks * steps, rows});
    y[i] = b_slice_dim(b, all, 0, 0, length);
  }
}

/* Along dimension `dim` of operands of any rank. */
static void scan_dim(Build *b, Body f, int dim, bool back, Value *const *x, Value *const *init,
                     Value **y) {
  const Type *t = x[0]->type;
  int to_front[B_MAX_RANK], from_front[B_MAX_RANK], rank = t->rank;
  int64_t turned[B_MAX_RANK], at = dim;
  for (int i = 0; i < rank; i++) {
    to_front[i] = i == 0 ? dim : i <= dim ? i - 1 : i;
    from_front[to_front[i]] = i;
    turned[i] = t->dims[to_front[i]];
  }
  Value *rows[MAX_VALUES];
  f.swap = back;
  for (int i = 0; i < f.n; i++) {
    Value *v = back ? b_reverse(b, x[i], 1, &at) : x[i];
    rows[i] = b_reshape(b, b_transpose(b, v, to_front), 2,
                        (int64_t[]){t->dims[dim], type_count(t) / t->dims[dim]});
  }
  scan(b, &f, rows, init, rows);
  for (int i = 0; i < f.n; i++) {
    Value *v = b_transpose(b, b_reshape(b, rows[i], rank, turned), from_front);
    y[i] = back ? b_reverse(b, v, 1, &at) : v;
  }
}

/* ---- other windows ---- */

typedef struct Along {
  int64_t size, stride, base, dilation, lo, hi;
} Along;

static Value *strided(Build *b, Value *x, int dim, int64_t start, int64_t n, int64_t stride) {
  int64_t from[B_MAX_RANK] = {0}, to[B_MAX_RANK], by[B_MAX_RANK];
  for (int i = 0; i < b_rank(x); i++) to[i] = b_dim(x, i), by[i] = 1;
  from[dim] = start, to[dim] = start + (n - 1) * stride + 1, by[dim] = stride;
  return b_slice(b, x, from, to, by);
}

static void strided_all(Build *b, const Body *f, Value *const *x, int dim, int64_t start, int64_t n,
                        int64_t stride, Value **out) {
  for (int i = 0; i < f->n; i++) out[i] = strided(b, x[i], dim, start, n, stride);
}

/* Windows along one dimension, by doubling: power k has 2^k elements. */
static void double_dim(Build *b, const Body *f, int dim, const Along *w, int64_t n, Value **x) {
  Value *power[MAX_VALUES], *part[MAX_VALUES], *all[MAX_VALUES];
  int64_t have = 0; /* elements of the window combined so far: its last ones */
  memcpy(power, x, sizeof power);
  for (int64_t p = 1; p <= w->size; p *= 2) {
    if (w->size & p) {
      strided_all(b, f, power, dim, (w->size - have - p) * w->dilation, n, 1, part);
      if (have) combine(b, f, part, all, all);
      else memcpy(all, part, sizeof all);
      have += p;
    }
    int64_t left = b_dim(power[0], dim) - p * w->dilation;
    if (2 * p > w->size) break;
    Value *first[MAX_VALUES];
    strided_all(b, f, power, dim, 0, left, 1, first);
    strided_all(b, f, power, dim, p * w->dilation, left, 1, part);
    combine(b, f, first, part, power);
  }
  memcpy(x, all, sizeof all);
}

static void window_dim(Build *b, const Body *f, int dim, const Along *w, Value *const *init,
                       Value **x) {
  for (int i = 0; i < f->n; i++) {
    int64_t lo[B_MAX_RANK] = {0}, hi[B_MAX_RANK] = {0}, in[B_MAX_RANK] = {0};
    lo[dim] = w->lo, hi[dim] = w->hi, in[dim] = w->base - 1;
    if (w->lo || w->hi || w->base > 1) x[i] = b_pad(b, x[i], init[i], lo, hi, in);
  }
  int64_t n = (b_dim(x[0], dim) - (w->size - 1) * w->dilation - 1) / w->stride + 1;
  if (w->size > MAX_CHAIN && w->stride == 1) {
    double_dim(b, f, dim, w, n, x);
    return;
  }
  Value *all[MAX_VALUES], *next[MAX_VALUES];
  strided_all(b, f, x, dim, 0, n, w->stride, all);
  for (int64_t k = 1; k < w->size; k++) {
    strided_all(b, f, x, dim, k * w->dilation, n, w->stride, next);
    combine(b, f, all, next, all);
  }
  memcpy(x, all, sizeof all);
}

/* The whole window in the order of its elements: (((init . x0) . x1) . x2) ... */
static void window_in_order(Build *b, const Body *f, const Along *w, Value *const *init,
                            Value **x) {
  int rank = b_rank(x[0]);
  int64_t lo[B_MAX_RANK], hi[B_MAX_RANK], in[B_MAX_RANK], n[B_MAX_RANK], at[B_MAX_RANK] = {0};
  int64_t by[B_MAX_RANK];
  for (int d = 0; d < rank; d++)
    lo[d] = w[d].lo, hi[d] = w[d].hi, in[d] = w[d].base - 1, by[d] = w[d].stride;
  Value *all[MAX_VALUES], *next[MAX_VALUES];
  for (int i = 0; i < f->n; i++) x[i] = b_pad(b, x[i], init[i], lo, hi, in);
  for (int d = 0; d < rank; d++)
    n[d] = (b_dim(x[0], d) - (w[d].size - 1) * w[d].dilation - 1) / w[d].stride + 1;
  for (int i = 0; i < f->n; i++)
    all[i] = b_bcast_scalar(b, init[i], b_type(b, b_dtype(x[i]), rank, n));
  for (int d = rank; d >= 0;) {
    int64_t from[B_MAX_RANK], to[B_MAX_RANK];
    for (int k = 0; k < rank; k++) {
      from[k] = at[k] * w[k].dilation;
      to[k] = from[k] + (n[k] - 1) * w[k].stride + 1;
    }
    for (int i = 0; i < f->n; i++) next[i] = b_slice(b, x[i], from, to, by);
    combine(b, f, all, next, all);
    for (d = rank - 1; d >= 0 && ++at[d] == w[d].size; d--) at[d] = 0;
  }
  memcpy(x, all, sizeof all);
}

/* ---- the pass ---- */

static int64_t int_at(const Op *op, const char *name, int i, int64_t otherwise) {
  const int64_t *v;
  return i < op_ints(op, name, &v) ? v[i] : otherwise;
}

/* The dimension that the window runs along as a whole; -1. */
static int running_dim(const Type *t, const Along *w, bool *back) {
  int dim = -1;
  for (int i = 0; i < t->rank; i++) {
    const Along *x = &w[i];
    if (x->stride != 1 || x->base != 1 || (x->dilation != 1 && x->size > 1)) return -1;
    if (x->size == 1 && !x->lo && !x->hi) continue;
    if (dim >= 0 || x->size != t->dims[i] || x->size < 3 || x->lo + x->hi != x->size - 1 ||
        (x->lo && x->hi))
      return -1;
    dim = i;
    *back = x->hi > 0;
  }
  return dim;
}

/* One operand, combined by one operation of both. */
static bool is_one_op(const Op *op) {
  const Region *r = op->regions[0];
  const Op *f = r->first;
  return op->n_results == 1 && f->next == r->last && r->last->operands[0] == &f->results[0] &&
         f->n_operands == 2 && !f->operands[0]->def && !f->operands[1]->def &&
         f->operands[0] != f->operands[1];
}

/* For sure: other bodies may be, too. */
static bool is_associative(const Op *op) {
  OpKind kind = op->regions[0]->first->kind;
  return is_one_op(op) && (kind == OP_ADD || kind == OP_MULTIPLY || kind == OP_MAXIMUM ||
                           kind == OP_MINIMUM || kind == OP_AND || kind == OP_OR || kind == OP_XOR);
}

/* One operand of these types, combined by one of these operations: all that kernels do. */
static bool is_plain(const Op *op) {
  if (!is_one_op(op)) return false;
  const Op *f = op->regions[0]->first;
  DType t = op_type(op)->dtype;
  bool number = t == DT_F32 || t == DT_F64 || t == DT_BF16 || t == DT_F16 || t == DT_I32 ||
                t == DT_I64 || t == DT_U32 || t == DT_U64;
  return number && (f->kind == OP_ADD || f->kind == OP_MULTIPLY || f->kind == OP_MAXIMUM ||
                    f->kind == OP_MINIMUM);
}

#define LONG_RUN 8 /* elements behind the window that kernels take a vector at a time */
#define LONG_WINDOW \
  32 /* kernels have no longer ones of f32; with steps, longer ones are too many copies */

/* A kernel does it better: running combinations, channels behind the window, images of f32, and what
 * pass_pools knows. Windows along one dimension are better written out, and so is what would go an
 * element at a time. */
static bool kernel_takes(const Op *op, const Along *w) {
  const Type *t = op->operands[0]->type;
  bool back, base = false, dilated = false, steps = false, is_long = false, whole = false;
  if (!is_plain(op)) return false;
  if (running_dim(t, w, &back) >= 0) return true;
  int64_t run = 1, touched = 0;
  for (int i = t->rank - 1; i >= 0; i--) {
    const Along *x = &w[i];
    if (x->size == 1 && x->stride == 1 && !x->lo && !x->hi && x->base == 1) {
      if (!touched) run *= t->dims[i];
      continue;
    }
    touched++;
    base |= x->base > 1;
    dilated |= x->dilation > 1;
    steps |= x->stride > 1;
    is_long |= x->size > LONG_WINDOW;
    whole |= op_type(op)->dims[i] == 1;
  }
  if (run >= LONG_RUN || whole || (steps && is_long)) return true;
  return t->dtype == DT_F32 && (base || (!dilated && !is_long && (touched > 1 || steps)));
}

static bool wanted(const Op *op) {
  if (op->n_results > MAX_VALUES || op->n_operands != 2 * op->n_results ||
      !is_elementwise(op->regions[0]))
    return false;
  for (int i = 0; i < op->n_operands; i++) {
    const Type *t = op->operands[i]->type;
    if (!type_is_static(t) || t->quant || t->rank > B_MAX_RANK - 2 || type_count(t) == 0 ||
        op->regions[0]->args[i]->type->dtype != op->operands[i % op->n_results]->type->dtype)
      return false;
  }
  return type_count(op_type(op)) > 0;
}

static void rewrite(Module *m, Op *op) {
  Build b = {m, op->results[0].region, op->loc};
  Op *end = b.r->last;
  Body f = {.r = op->regions[0], .n = op->n_results};
  Along w[B_MAX_RANK];
  Value *x[MAX_VALUES], *init[MAX_VALUES];
  const Type *t = op->operands[0]->type;
  bool back = false;
  for (int i = 0; i < t->rank; i++)
    w[i] = (Along){int_at(op, "window_dimensions", i, 1), int_at(op, "window_strides", i, 1),
                   int_at(op, "base_dilations", i, 1),    int_at(op, "window_dilations", i, 1),
                   int_at(op, "padding", 2 * i, 0),       int_at(op, "padding", 2 * i + 1, 0)};
  for (int i = 0; i < t->rank; i++)
    if (w[i].lo < 0 || w[i].hi < 0) return;
  if (kernel_takes(op, w)) return;
  f.wide = may_be_wide(op->regions[0]);
  f.logs = !is_half(t->dtype) && region_adds_logs(op->regions[0]); /* these have digits to spare */
  for (int i = 0; i < f.n; i++) {
    DType as = held_as(&f, op->operands[i]->type->dtype);
    x[i] = b_convert(&b, op->operands[i], as);
    init[i] = b_convert(&b, op->operands[f.n + i], as);
  }
  int64_t taps = 1;
  for (int i = 0; i < t->rank; i++) taps *= w[i].size;
  int dim = running_dim(t, w, &back);
  if (taps <= MAX_TAPS && !is_associative(op)) {
    window_in_order(&b, &f, w, init, x);
  } else if (dim >= 0) {
    scan_dim(&b, f, dim, back, x, init, x);
  } else {
    Value *start[MAX_VALUES];
    for (int i = t->rank - 1; i >= 0; i--) window_dim(&b, &f, i, &w[i], init, x);
    for (int i = 0; i < f.n; i++) start[i] = b_bcast_scalar(&b, init[i], x[i]->type);
    combine(&b, &f, start, x, x);
  }
  for (int i = 0; i < f.n; i++) x[i] = b_convert(&b, x[i], op->results[i].type->dtype);
  compile_move_built(end, op);
  for (int i = 0; i < f.n; i++) value_replace_all(b.r->func, &op->results[i], x[i]);
  op_remove(op);
}

static void walk(Module *m, Region *r) {
  for (Op *op = r->first, *next; op; op = next) {
    next = op->next;
    for (int i = 0; i < op->n_regions; i++) walk(m, op->regions[i]);
    if (op->kind == OP_REDUCE_WINDOW && wanted(op)) rewrite(m, op);
  }
}

Err *pass_windows(Module *m) {
  walk(m, module_main(m)->body);
  return NULL;
}
