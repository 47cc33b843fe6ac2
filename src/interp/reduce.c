/* reduce, reduce_window, select_and_scatter, map and sort.
 *
 * Reductions go through the reduced positions in row-major order, one step for a whole block of
 * results at once: the body is lifted to vectors (region.c), the block's elements are collected by
 * their offsets. Each result is thus folded from the left, in the element type of the body. Plain
 * sums and products of floats are folded in double precision and rounded once: any order is right
 * by the specification, and 600 terms in bfloat16 would stop growing at 256.
 */
#include "interp/interp_priv.h"

#define BLOCK 4096

static Tensor view(DType dtype, void *data, int64_t *count) {
  return (Tensor){
      .refs = 1, .dtype = dtype, .rank = 1, .dims = count, .count = *count, .data = data};
}

static void gather_run(size_t bytes, void *dst, const void *src, const int64_t *at, int64_t add,
                       int64_t n) {
#define RUN(T) \
  for (int64_t i = 0; i < n; i++) ((T *)dst)[i] = ((const T *)src)[at[i] + add]
  switch (bytes) {
  case 1: RUN(uint8_t); break;
  case 2: RUN(uint16_t); break;
  case 4: RUN(uint32_t); break;
  case 8: RUN(uint64_t); break;
  default:
    for (int64_t i = 0; i < n; i++)
      memcpy((char *)dst + (size_t)i * bytes, (const char *)src + (size_t)(at[i] + add) * bytes,
             bytes);
  }
#undef RUN
}

/* A fold over n operands at once: accumulators and elements of a block, in the types of the body's
 * arguments. */
typedef struct Fold {
  RegionEval *re;
  int n;
  Tensor **in, **init;                 /* converted to the body's types; own references */
  Tensor **acc, **elem, **args, **out; /* args: the n accumulators, then the n elements */
} Fold;

static void fold_free(Fold *f) {
  for (int i = 0; i < f->n; i++) {
    tensor_release(f->in[i]);
    tensor_release(f->init[i]);
    tensor_release(f->acc[i]);
    tensor_release(f->elem[i]);
  }
  free(f->in);
  free(f->args);
  region_eval_free(f->re);
}

static Err *fold_new(Eval *e, const Region *body, Tensor *const *in, Tensor *const *init, int n,
                     Fold *f) {
  if (body->n_args != 2 * n || body->last->n_operands != n)
    return op_err(e->op, ERR_INVALID, "the body does not fit %d operands", n);
  *f = (Fold){.re = region_eval_new(e, body), .n = n};
  f->in = xcalloc((size_t)n * 2 + 1, sizeof(Tensor *));
  f->init = f->in + n;
  f->args = xcalloc((size_t)n * 3 + 1, sizeof(Tensor *));
  f->acc = f->args;
  f->elem = f->args + n;
  f->out = f->args + 2 * n;
  int64_t room = BLOCK;
  for (int i = 0; i < n; i++) {
    DType dt = body->args[i]->type->dtype;
    f->in[i] = tensor_convert(in[i], dt);
    f->init[i] = tensor_convert(init[i], dt);
    f->acc[i] = tensor_make(dt, 1, &room);
    f->elem[i] = tensor_make(dt, 1, &room);
  }
  return NULL;
}

static void fold_start(Fold *f, int64_t m) {
  for (int i = 0; i < f->n; i++) {
    f->acc[i]->dims[0] = f->acc[i]->count = m;
    f->elem[i]->dims[0] = f->elem[i]->count = m;
    tensor_fill(f->acc[i], f->init[i]->data);
  }
}

static Err *fold_step(Fold *f, int64_t m) {
  TRY(region_eval_run(f->re, f->args, m, f->out));
  for (int i = 0; i < f->n; i++) memcpy(f->acc[i]->data, f->out[i]->data, tensor_bytes(f->acc[i]));
  return NULL;
}

/* Results of a block, converted back if the declared type is another one. */
static void fold_store(Fold *f, Tensor **out, int64_t at) {
  for (int i = 0; i < f->n; i++) {
    Tensor *t = tensor_convert(f->acc[i], out[i]->dtype);
    memcpy(tensor_at(out[i], at), t->data, tensor_bytes(t));
    tensor_release(t);
  }
}

/* ---- reduce -------------------------------------------------------------------------------- */

/* Whether the body is one sum or product of its two arguments, of a float type up to 32 bits. */
static bool plain_fold(const Region *body, OpKind *kind) {
  const Op *op = body->first;
  if (body->n_args != 2 || op == body->last || op->next != body->last) return false;
  if (op->kind != OP_ADD && op->kind != OP_MULTIPLY) return false;
  DType dt = op->results[0].type->dtype;
  if (!dtype_is_float(dt) || dt == DT_F64 || op->results[0].type->kind != body->args[0]->type->kind)
    return false;
  for (int i = 0; i < 2; i++)
    if (op->operands[i]->type->dtype != dt || body->args[i]->type->dtype != dt ||
        (op->operands[i] != body->args[0] && op->operands[i] != body->args[1]))
      return false;
  *kind = op->kind;
  return op->operands[0] != op->operands[1] && body->last->n_operands == 1 &&
         body->last->operands[0] == &op->results[0];
}

/* The reduced offsets of one result after another, accumulated in double. */
typedef struct PlainFold {
  OpKind kind;
  int n_kept, n_red;
  const int64_t *kept, *kept_step, *red, *red_step;
} PlainFold;

static Err *plain_reduce(Eval *e, const PlainFold *p, DType body_type) {
  Tensor *narrow = tensor_convert(e->in[0], body_type), *in = tensor_convert(narrow, DT_F64);
  Tensor *narrow_init = tensor_convert(e->in[1], body_type);
  Tensor *init = tensor_convert(narrow_init, DT_F64);
  Tensor *acc = tensor_make(DT_F64, p->n_kept, p->kept);
  const double *x = in->data;
  double *y = acc->data, start = *(const double *)init->data;
  int64_t total = dims_count(p->n_kept, p->kept), steps = dims_count(p->n_red, p->red);
  int64_t *at = xmalloc(sizeof *at * BLOCK), index[MAX_RANK] = {0};
  for (int64_t first = 0; first < total; first += BLOCK) {
    int64_t m = MIN(BLOCK, total - first), r[MAX_RANK] = {0};
    for (int64_t k = 0; k < m; k++) {
      at[k] = index_linear(p->n_kept, p->kept_step, index);
      index_next(p->n_kept, p->kept, index);
      y[first + k] = start;
    }
    for (int64_t s = 0; s < steps; s++) {
      int64_t add = index_linear(p->n_red, p->red_step, r);
      if (p->kind == OP_ADD)
        for (int64_t k = 0; k < m; k++) y[first + k] += x[at[k] + add];
      else
        for (int64_t k = 0; k < m; k++) y[first + k] *= x[at[k] + add];
      index_next(p->n_red, p->red, r);
    }
  }
  Tensor *rounded = tensor_convert(acc, body_type);
  Tensor *t = tensor_convert(rounded, e->out[0]->dtype);
  memcpy(e->out[0]->data, t->data, tensor_bytes(t));
  Tensor *mine[] = {narrow, in, narrow_init, init, acc, rounded, t};
  for (int i = 0; i < COUNT_OF(mine); i++) tensor_release(mine[i]);
  free(at);
  return NULL;
}

Err *sem_reduce(Eval *e) {
  int n = e->n_in / 2, rank = e->in[0]->rank, n_kept = 0, n_red = 0;
  const int64_t *dims;
  int n_dims = op_ints(e->op, "dimensions", &dims);
  int64_t steps[MAX_RANK], kept[MAX_RANK], kept_step[MAX_RANK], red[MAX_RANK], red_step[MAX_RANK];
  dims_strides(rank, e->in[0]->dims, steps);
  for (int i = 0; i < rank; i++) {
    bool reduced = false;
    for (int k = 0; k < n_dims; k++) reduced |= dims[k] == i;
    if (reduced) red[n_red] = e->in[0]->dims[i], red_step[n_red++] = steps[i];
    else kept[n_kept] = e->in[0]->dims[i], kept_step[n_kept++] = steps[i];
  }
  for (int i = 0; i < n; i++) {
    Tensor *t;
    TRY(eval_out_dims(e, i, n_kept, kept, &t));
  }
  PlainFold plain = {OP_ADD, n_kept, n_red, kept, kept_step, red, red_step};
  if (n == 1 && plain_fold(e->op->regions[0], &plain.kind))
    return plain_reduce(e, &plain, e->op->regions[0]->args[0]->type->dtype);
  int64_t total = dims_count(n_kept, kept), n_steps = dims_count(n_red, red);
  Fold f;
  TRY(fold_new(e, e->op->regions[0], e->in, e->in + n, n, &f));
  int64_t *at = xmalloc(sizeof *at * BLOCK), index[MAX_RANK] = {0};
  Err *err = NULL;
  for (int64_t first = 0; first < total && !err; first += BLOCK) {
    int64_t m = MIN(BLOCK, total - first);
    for (int64_t k = 0; k < m; k++) {
      at[k] = index_linear(n_kept, kept_step, index);
      index_next(n_kept, kept, index);
    }
    fold_start(&f, m);
    int64_t r[MAX_RANK] = {0};
    for (int64_t s = 0; s < n_steps && !err; s++) {
      int64_t add = index_linear(n_red, red_step, r);
      for (int i = 0; i < n; i++)
        gather_run((size_t)dtype_bytes(f.in[i]->dtype), f.elem[i]->data, f.in[i]->data, at, add, m);
      err = fold_step(&f, m);
      index_next(n_red, red, r);
    }
    fold_store(&f, e->out, first);
  }
  free(at);
  fold_free(&f);
  return err;
}

/* ---- windows ------------------------------------------------------------------------------- */

typedef struct Window {
  int rank;
  int64_t size[MAX_RANK], stride[MAX_RANK], base_dil[MAX_RANK], dil[MAX_RANK], low[MAX_RANK],
      high[MAX_RANK];
  int64_t in[MAX_RANK], in_step[MAX_RANK], out[MAX_RANK];
} Window;

static Err *window_of(const Op *op, const Tensor *in, Window *w) {
  int64_t pad[2 * MAX_RANK];
  w->rank = in->rank;
  op_ints_or(op, "window_dimensions", w->rank, 1, w->size);
  op_ints_or(op, "window_strides", w->rank, 1, w->stride);
  op_ints_or(op, "base_dilations", w->rank, 1, w->base_dil);
  op_ints_or(op, "window_dilations", w->rank, 1, w->dil);
  op_ints_or(op, "padding", 2 * w->rank, 0, pad);
  dims_strides(in->rank, in->dims, w->in_step);
  for (int i = 0; i < w->rank; i++) {
    w->in[i] = in->dims[i];
    w->low[i] = pad[2 * i];
    w->high[i] = pad[2 * i + 1];
    int64_t room, span;
    TRY(eval_padded(op, in->dims[i], w->base_dil[i], w->low[i], w->high[i], &room));
    TRY(eval_padded(op, w->size[i], w->dil[i], 0, 0, &span));
    w->out[i] = w->size[i] == 0 || room < span ? 0 : (room - span) / w->stride[i] + 1;
  }
  return NULL;
}

/* Offset of the input element at output position o, window position k; -1 in the padding or between
 * dilated elements. */
static int64_t window_at(const Window *w, const int64_t *o, const int64_t *k) {
  int64_t at = 0;
  for (int i = 0; i < w->rank; i++) {
    int64_t x = o[i] * w->stride[i] + k[i] * w->dil[i] - w->low[i];
    if (x < 0) return -1;
    if (w->base_dil[i] > 1) {
      if (x % w->base_dil[i]) return -1;
      x /= w->base_dil[i];
    }
    if (x >= w->in[i]) return -1;
    at += x * w->in_step[i];
  }
  return at;
}

Err *sem_reduce_window(Eval *e) {
  int n = e->n_in / 2;
  Window *w = xmalloc(sizeof *w);
  Err *err = window_of(e->op, e->in[0], w);
  Tensor *t;
  for (int i = 0; i < n && !err; i++) err = eval_out_dims(e, i, w->rank, w->out, &t);
  Fold f;
  if (!err) err = fold_new(e, e->op->regions[0], e->in, e->in + n, n, &f);
  if (err) {
    free(w);
    return err;
  }
  int64_t total = dims_count(w->rank, w->out), n_steps = dims_count(w->rank, w->size);
  int64_t *out_index = xcalloc((size_t)(BLOCK * MAX(w->rank, 1)), sizeof *out_index),
          index[MAX_RANK] = {0};
  for (int64_t first = 0; first < total && !err; first += BLOCK) {
    int64_t m = MIN(BLOCK, total - first);
    for (int64_t j = 0; j < m; j++) {
      memcpy(out_index + j * w->rank, index, sizeof *index * (size_t)w->rank);
      index_next(w->rank, w->out, index);
    }
    fold_start(&f, m);
    int64_t k[MAX_RANK] = {0};
    for (int64_t s = 0; s < n_steps && !err; s++) {
      for (int64_t j = 0; j < m; j++) {
        int64_t at = window_at(w, out_index + j * w->rank, k);
        for (int i = 0; i < n; i++)
          elem_copy(f.elem[i], j, at < 0 ? f.init[i] : f.in[i], MAX(at, 0));
      }
      err = fold_step(&f, m);
      index_next(w->rank, w->size, k);
    }
    fold_store(&f, e->out, first);
  }
  free(out_index);
  fold_free(&f);
  free(w);
  return err;
}

/* For each window: the element that `select` keeps; then the source values are folded into their
 * places in row-major order of the source. The padding cannot be selected. */
Err *sem_select_and_scatter(Eval *e) {
  const Tensor *source = e->in[1];
  const Region *sel = e->op->regions[0], *sca = e->op->regions[1];
  Tensor *out;
  TRY(eval_out_dims(e, 0, e->in[0]->rank, e->in[0]->dims, &out));
  Window *w = xmalloc(sizeof *w);
  Err *err = window_of(e->op, e->in[0], w);
  if (!err && memcmp(w->out, source->dims, sizeof *w->out * (size_t)w->rank) != 0)
    err = op_err(e->op, ERR_INVALID, "the source's shape is not that of the windows");
  if (err) {
    free(w);
    return err;
  }
  Tensor *in = tensor_convert(e->in[0], sel->args[0]->type->dtype);
  DType dt = sca->args[0]->type->dtype;
  Tensor *src = tensor_convert(e->in[1], dt), *init = tensor_convert(e->in[2], dt);
  Tensor *res = tensor_make(dt, out->rank, out->dims);
  tensor_fill(res, init->data);
  RegionEval *select = region_eval_new(e, sel), *scatter = region_eval_new(e, sca);
  int64_t o[MAX_RANK] = {0}, one = 1, n_steps = dims_count(w->rank, w->size);
  for (int64_t j = 0; j < src->count && !err; j++) {
    int64_t best = -1, k[MAX_RANK] = {0};
    for (int64_t s = 0; s < n_steps && !err; s++, index_next(w->rank, w->size, k)) {
      int64_t at = window_at(w, o, k);
      if (at < 0) continue;
      if (best < 0) {
        best = at;
        continue;
      }
      Tensor a = view(in->dtype, tensor_at(in, best), &one),
             b = view(in->dtype, tensor_at(in, at), &one);
      Tensor *args[2] = {&a, &b}, *keep;
      err = region_eval_run(select, args, 1, &keep);
      if (!err && !*(uint8_t *)keep->data) best = at;
    }
    if (!err && best >= 0) {
      Tensor a = view(dt, tensor_at(res, best), &one), b = view(dt, tensor_at(src, j), &one);
      Tensor *args[2] = {&a, &b}, *sum;
      err = region_eval_run(scatter, args, 1, &sum);
      if (!err) elem_copy(res, best, sum, 0);
    }
    index_next(w->rank, w->out, o);
  }
  if (!err) {
    Tensor *t = tensor_convert(res, out->dtype);
    if (t->count) memcpy(out->data, t->data, tensor_bytes(t));
    tensor_release(t);
  }
  region_eval_free(select);
  region_eval_free(scatter);
  tensor_release(in);
  tensor_release(src);
  tensor_release(init);
  tensor_release(res);
  free(w);
  return err;
}

/* ---- map ----------------------------------------------------------------------------------- */

Err *sem_map(Eval *e) {
  Tensor *out;
  TRY(eval_out(e, 0, &out));
  RegionEval *re = region_eval_new(e, e->op->regions[0]);
  Tensor *views = xcalloc((size_t)e->n_in, sizeof *views),
         **args = xcalloc((size_t)e->n_in, sizeof *args);
  Err *err = NULL;
  for (int64_t first = 0; first < out->count && !err; first += BLOCK) {
    int64_t m = MIN(BLOCK, out->count - first);
    for (int i = 0; i < e->n_in; i++) {
      views[i] = view(e->in[i]->dtype, tensor_at(e->in[i], first), &m);
      args[i] = &views[i];
    }
    Tensor *res;
    err = region_eval_run(re, args, m, &res);
    if (!err) memcpy(tensor_at(out, first), res->data, tensor_bytes(res));
  }
  free(views);
  free(args);
  region_eval_free(re);
  return err;
}

/* ---- sort ---------------------------------------------------------------------------------- */

typedef struct Sorter {
  RegionEval *less;
  Tensor **in;
  int n;
  int64_t base, step; /* element k of the row is at base + k * step */
  Tensor *views, **args;
  int64_t one;
} Sorter;

static Err *sort_less(Sorter *s, int64_t a, int64_t b, bool *out) {
  for (int i = 0; i < s->n; i++) {
    s->views[2 * i].data = tensor_at(s->in[i], s->base + a * s->step);
    s->views[2 * i + 1].data = tensor_at(s->in[i], s->base + b * s->step);
  }
  Tensor *res;
  TRY(region_eval_run(s->less, s->args, 1, &res));
  *out = *(uint8_t *)res->data != 0;
  return NULL;
}

/* Stable, bottom-up merge sort of the numbers 0 .. n-1; the result is in *perm. */
static Err *merge_sort(Sorter *s, int64_t n, int64_t **perm, int64_t **other) {
  for (int64_t i = 0; i < n; i++) (*perm)[i] = i;
  for (int64_t width = 1; width < n; width *= 2) {
    for (int64_t lo = 0; lo < n; lo += 2 * width) {
      int64_t mid = MIN(lo + width, n), hi = MIN(lo + 2 * width, n), a = lo, b = mid;
      for (int64_t k = lo; k < hi; k++) {
        bool right = a >= mid;
        if (!right && b < hi) TRY(sort_less(s, (*perm)[b], (*perm)[a], &right));
        (*other)[k] = right ? (*perm)[b++] : (*perm)[a++];
      }
    }
    int64_t *t = *perm;
    *perm = *other;
    *other = t;
  }
  return NULL;
}

Err *sem_sort(Eval *e) {
  int n = e->n_in, rank = e->in[0]->rank;
  int64_t dim = op_int(e->op, "dimension", -1);
  if (dim < 0) dim += rank;
  if (dim < 0 || dim >= rank) return op_err(e->op, ERR_INVALID, "no dimension to sort along");
  for (int i = 0; i < n; i++) {
    Tensor *t;
    TRY(eval_out_dims(e, i, rank, e->in[i]->dims, &t));
  }
  int64_t steps[MAX_RANK], outer[MAX_RANK], index[MAX_RANK] = {0}, len = e->in[0]->dims[dim];
  dims_strides(rank, e->in[0]->dims, steps);
  memcpy(outer, e->in[0]->dims, sizeof *outer * (size_t)rank);
  outer[dim] = 1;
  int64_t rows = e->in[0]->count ? dims_count(rank, outer) : 0;
  Sorter s = {.less = region_eval_new(e, e->op->regions[0]),
              .in = e->in,
              .n = n,
              .step = steps[dim],
              .one = 1};
  s.views = xcalloc((size_t)n * 2, sizeof *s.views);
  s.args = xcalloc((size_t)n * 2, sizeof *s.args);
  for (int i = 0; i < 2 * n; i++) {
    s.views[i] = view(e->in[i / 2]->dtype, NULL, &s.one);
    s.args[i] = &s.views[i];
  }
  int64_t *perm = xmalloc(sizeof *perm * (size_t)len),
          *other = xmalloc(sizeof *other * (size_t)len);
  Err *err = NULL;
  for (int64_t r = 0; r < rows && !err; r++) {
    s.base = index_linear(rank, steps, index);
    err = merge_sort(&s, len, &perm, &other);
    for (int i = 0; i < n && !err; i++)
      for (int64_t k = 0; k < len; k++)
        elem_copy(e->out[i], s.base + k * s.step, e->in[i], s.base + perm[k] * s.step);
    index_next(rank, outer, index);
  }
  free(perm);
  free(other);
  free(s.views);
  free(s.args);
  region_eval_free(s.less);
  return err;
}
