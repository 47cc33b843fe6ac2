/* weft diff: one function on two devices with more of its values as results, and how far these
 * part. */
#include "cli/diff.h"

#include "cli/cli.h"
#include "cli/waiting.h"

#include <math.h>
#include <stdlib.h>

#define AT_ONCE (1u << 30) /* bytes of values held of one device */

bool diff_only_moves(const Op *op) {
  switch (op->kind) {
  case OP_BROADCAST_IN_DIM:
  case OP_BROADCAST:
  case OP_RESHAPE:
  case OP_TRANSPOSE:
  case OP_SLICE:
  case OP_REVERSE:
  case OP_CONCATENATE:
  case OP_PAD:
  case OP_IOTA:
  case OP_CONSTANT: return true;
  default: return false;
  }
}

Value **diff_computed(const Func *f, int *out_n) {
  VEC(Value *) v = {0};
  for (Op *op = f->body->first; op; op = op->next)
    for (int i = 0; i < op->n_results; i++)
      if (!diff_only_moves(op) && type_is_static(op->results[i].type))
        *vec_push(&v) = &op->results[i];
  *out_n = v.n;
  return v.v;
}

void diff_expose(Module *m, Func *f, Value *const *v, int n) {
  Op *ret = f->body->last;
  ret->operands = arena_dup(m->arena, v, sizeof(Value *) * (size_t)n);
  ret->n_operands = n;
  Type **types = xmalloc(sizeof *types * (size_t)(n + 1));
  for (int i = 0; i < n; i++) types[i] = v[i]->type;
  f->type = type_func(m, f->type->n_elems, f->type->elems, n, types);
  f->res_attrs = ARENA_ARRAY(m->arena, NamedAttr *, n);
  f->n_res_attrs = ARENA_ARRAY(m->arena, int, n);
  for (int i = 0; i < f->type->n_elems; i++) f->n_arg_attrs[i] = 0; /* nothing may be donated */
  free(types);
}

int diff_stretch(Value *const *v, int j, int n) {
  double bytes = 0;
  int end = j;
  for (; end < n && (end == j || bytes < AT_ONCE); end++)
    bytes += (double)type_count(v[end]->type) * dtype_bytes(v[end]->type->dtype);
  return end;
}

Err *diff_open(const char *device, const Module *m, DiffRun *r) {
  *r = (DiffRun){.device = device};
  Err *e = dev_open(device, &r->dev);
  if (!e) e = dev_compile(r->dev, m, NULL, &r->p);
  return err_wrap(e, "on %s", device);
}

void diff_close(DiffRun *r) {
  if (r->p) dev_program_release(r->p);
  if (r->dev) dev_close(r->dev);
  *r = (DiffRun){0};
}

Err *diff_run(const DiffRun *r, Tensor *const *in, Tensor **out) {
  int n_in = r->p->n_args, n_out = r->p->n_results, zero = 0;
  DevBuffer **args = xcalloc((size_t)n_in + 1, sizeof *args),
            **res = xcalloc((size_t)n_out + 1, sizeof *res);
  Err *e = NULL;
  for (int i = 0; i < n_in && !e; i++)
    e = dev_buffer_new(r->dev, 0, tensor_retain(in[i]), true, &args[i]);
  DevBuffer *const *arg_lists[1] = {args};
  DevBuffer **const out_lists[1] = {res};
  if (!e) e = dev_execute(r->p, &(DevPart){1, NULL, &zero, NULL}, arg_lists, NULL, out_lists, NULL);
  for (int j = 0; j < n_out && !e; j++) out[j] = tensor_retain(res[j]->t);
  for (int i = 0; i < n_in; i++) dev_buffer_release(args[i]);
  for (int j = 0; j < n_out; j++) dev_buffer_release(res[j]);
  free(args);
  free(res);
  return err_wrap(e, "on %s", r->device);
}

/* Most programs are of f32: without a call for each number. */
static void see_f32(const float *a, const float *b, int64_t n, DiffError *r, double *squares) {
  for (int64_t k = 0; k < n; k++) {
    double x = a[k], y = b[k], d = x == y ? 0 : fabs(x - y);
    if (x != x && y != y) continue;
    if (d != d) d = INFINITY;
    if (d > r->worst) r->worst = d, r->at = k;
    if (!isfinite(x)) continue;
    *squares += x * x;
    if (fabs(x) > r->scale) r->scale = fabs(x);
  }
}

DiffError diff_error(const Tensor *a, const Tensor *b) {
  DType real = dtype_real_of(a->dtype);
  int64_t n = a->count * (dtype_is_complex(a->dtype) ? 2 : 1);
  size_t w = (size_t)dtype_bytes(real);
  DiffError r = {0};
  double squares = 0;
  if (a->dtype == DT_F32) see_f32(a->data, b->data, n, &r, &squares);
  for (int64_t k = 0; k < n && a->dtype != DT_F32; k++) {
    double x = elem_get_f64(real, (char *)a->data + (size_t)k * w),
           y = elem_get_f64(real, (char *)b->data + (size_t)k * w);
    if (isnan(x) && isnan(y)) continue;
    double d = x == y ? 0 : fabs(x - y);
    if (isnan(d)) d = INFINITY;
    if (d > r.worst) r.worst = d, r.at = n == a->count ? k : k / 2;
    if (!isfinite(x)) continue;
    squares += x * x;
    r.scale = fmax(r.scale, fabs(x));
  }
  r.rms = n ? sqrt(squares / (double)n) : 0;
  r.error = r.worst == 0 ? 0 : r.scale > 0 ? r.worst / r.scale : INFINITY;
  return r;
}

/* In one device's turn. */
static Err *run_on(const char *device, const Module *m, Tensor *const *in, Tensor **out) {
  DiffRun r;
  waiting_now("compiling for", device);
  Err *e = diff_open(device, m, &r);
  waiting_now("running on", device);
  if (!e) e = diff_run(&r, in, out);
  diff_close(&r);
  return e;
}

Err *diff_errors(Module *m, Func *f, Value *const *v, int n, Tensor *const *const in[2],
                 const char *const devices[2], DiffError *out) {
  Tensor **x = xcalloc((size_t)n + 1, sizeof *x), **y = xcalloc((size_t)n + 1, sizeof *y);
  diff_expose(m, f, v, n);
  Err *e = run_on(devices[0], m, in[0], x);
  if (!e) e = run_on(devices[1], m, in[1], y);
  for (int j = 0; j < n; j++) {
    if (!e) out[j] = diff_error(x[j], y[j]);
    tensor_release(x[j]);
    tensor_release(y[j]);
  }
  free(x);
  free(y);
  return e;
}
