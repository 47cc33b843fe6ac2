/* The kernel list: rows of all k_*.c files as the build finds them, the reference kernel last.
 * Helpers that kernels share. */
#include "dev/cpu/kernel/kernel.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "interp/interp.h"

#define KERNELS(name) extern const CpuKernel cpu_kernels_##name[];
#include "kernel_list.inc"
#undef KERNELS

static const CpuKernel *const lists[] = {
#define KERNELS(name) cpu_kernels_##name,
#include "kernel_list.inc"
#undef KERNELS
    NULL,
};

/* ---- the reference: the interpreter, one op at a time ---- */

typedef struct Captured {
  const Op *op;
  Value **values;
  int n;
  void *const *data;
  Tensor **made;
} Captured;

static Tensor *wrap(const Type *t, void *data) {
  if (t->kind != TY_TENSOR) return tensor_make(DT_TOKEN, 0, NULL);
  return tensor_wrap(t->dtype, t->rank, t->dims, data, NULL, NULL);
}

static Tensor *captured(void *arg, const Value *v) {
  Captured *c = arg;
  for (int i = 0; i < c->n; i++)
    if (c->values[i] == v) {
      if (!c->made[i]) c->made[i] = wrap(v->type, c->data[i]);
      return c->made[i];
    }
  return NULL;
}

static Err *reference_run(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  int n = op->n_operands, m = op->n_results;
  Tensor **t = xcalloc((size_t)(n + m) + 1, sizeof *t);
  for (int i = 0; i < n; i++) t[i] = wrap(op->operands[i]->type, in[i]);
  Captured c = {.op = op, .data = in + n};
  c.n = cpu_captures(op, &c.values);
  c.made = xcalloc((size_t)c.n + 1, sizeof *c.made);
  Err *e = interp_eval(op, t, t + n, captured, &c);
  for (int i = 0; i < m && !e; i++) {
    Tensor *r = t[n + i];
    const Type *want = op->results[i].type;
    if (want->kind != TY_TENSOR) continue;
    if (r->count != type_count(want))
      e = op_err(op, ERR_INVALID, "result %d has %lld elements, its type %lld", i,
                 (long long)r->count, (long long)type_count(want));
    else if (r->count) memcpy(out[i], r->data, tensor_bytes(r));
  }
  for (int i = 0; i < n + m; i++) tensor_release(t[i]);
  for (int i = 0; i < c.n; i++) tensor_release(c.made[i]);
  free(c.values);
  free(c.made);
  free(t);
  return e;
}

static const CpuKernel reference = {.name = "interpreter", .run = reference_run};

bool cpu_kernel_is_reference(const CpuKernel *k) { return k == &reference; }

const CpuKernel *cpu_kernel_find(const Op *op) {
  for (int i = 0; lists[i]; i++)
    for (const CpuKernel *k = lists[i]; k->name; k++)
      if ((k->kind == op->kind || k->kind == OP_UNKNOWN) && (!k->accepts || k->accepts(op)))
        return k;
  return &reference;
}

/* ---- helpers ---- */

typedef VEC(Value *) Values;

static void add_captures(const Op *op, const Region *r, Values *out) {
  for (const Op *x = r->first; x; x = x->next) {
    for (int i = 0; i < x->n_operands; i++) {
      Value *v = x->operands[i];
      bool skip = false;
      for (const Region *up = v->region; up && !skip; up = up->parent ? up->parent->parent : NULL)
        for (int k = 0; k < op->n_regions; k++) skip |= op->regions[k] == up;
      for (int k = 0; k < out->n; k++) skip |= out->v[k] == v;
      if (!skip) *vec_push(out) = v;
    }
    for (int i = 0; i < x->n_regions; i++) add_captures(op, x->regions[i], out);
  }
}

int cpu_captures(const Op *op, Value ***out) {
  Values v = {0};
  for (int i = 0; i < op->n_regions; i++) add_captures(op, op->regions[i], &v);
  *out = v.v;
  return v.n;
}

OpKind cpu_region_binary(const Region *r, bool *swapped) {
  const Op *x = r->first;
  if (!x || x->next != r->last || r->n_args != 2 || x->n_operands != 2 || x->n_results != 1 ||
      x->n_regions || r->last->n_operands != 1 || r->last->operands[0] != &x->results[0])
    return OP_UNKNOWN;
  bool straight = x->operands[0] == r->args[0] && x->operands[1] == r->args[1];
  bool crossed = x->operands[0] == r->args[1] && x->operands[1] == r->args[0];
  if (!straight && !crossed) return OP_UNKNOWN;
  if (swapped) *swapped = crossed;
  return x->kind;
}

bool cpu_region_select(const Region *r, bool *max) {
  const Op *x = r->first;
  if (!x || x->kind != OP_COMPARE || x->next != r->last || r->n_args != 2 ||
      x->operands[0] != r->args[0] || x->operands[1] != r->args[1] ||
      r->last->operands[0] != &x->results[0] || str_is(op_str(x, "compare_type"), "TOTALORDER"))
    return false;
  Str d = op_str(x, "comparison_direction");
  *max = str_is(d, "GE");
  return *max || str_is(d, "LE");
}

static _Thread_local struct {
  void *p;
  size_t n;
} scratch;

static pthread_key_t scratch_key; /* frees it when its thread ends */
static void make_scratch_key(void) { pthread_key_create(&scratch_key, free); }

void *cpu_scratch(size_t n) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (n > scratch.n) {
    free(scratch.p);
    scratch.n = (n + n / 4 + 4095) & ~(size_t)4095;
    scratch.p = aligned_alloc(64, scratch.n);
    if (!scratch.p) {
      fprintf(stderr, "weft: no memory for %zu bytes of scratch\n", n);
      abort();
    }
    pthread_once(&once, make_scratch_key);
    pthread_setspecific(scratch_key, scratch.p);
  }
  return scratch.p;
}

typedef struct Chunks {
  int64_t n, grain;
  void (*fn)(void *, int64_t, int64_t);
  void *arg;
} Chunks;

static void run_chunk(void *arg, int64_t i) {
  const Chunks *c = arg;
  int64_t begin = i * c->grain, end = MIN(begin + c->grain, c->n);
  c->fn(c->arg, begin, end);
}

void cpu_parallel(int64_t n, int64_t grain, void (*fn)(void *arg, int64_t begin, int64_t end),
                  void *arg) {
  if (n <= 0) return;
  grain = MAX(grain, 1);
  if (n <= grain) {
    fn(arg, 0, n);
    return;
  }
  Chunks c = {n, grain, fn, arg};
  pool_run((n + grain - 1) / grain, run_chunk, &c);
}

bool cpu_window_skips_outside(const Op *op) {
  OpKind k = cpu_region_binary(op->regions[0], NULL);
  if (k != OP_ADD && k != OP_MULTIPLY) return true;
  const int64_t *v;
  bool outside = false;
  int n = op_ints(op, "padding", &v);
  for (int i = 0; i < n; i++) outside |= v[i] > 0;
  n = op_ints(op, "base_dilations", &v);
  for (int i = 0; i < n; i++) outside |= v[i] > 1;
  if (!outside) return true;
  const Op *def = op->operands[op->n_operands / 2]->def;
  const Attr *a = def && def->kind == OP_CONSTANT ? op_attr(def, "value") : NULL;
  if (!a || a->tensor->count != 1 || dtype_is_complex(a->dtype)) return false;
  return elem_get_f64(a->dtype, a->tensor->data) == (k == OP_ADD ? 0 : 1);
}
