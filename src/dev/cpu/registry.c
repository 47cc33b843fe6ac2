/* The kernel list: rows of all k_*.c files as the build finds them, the reference kernel last. */
#include "dev/cpu/registry.h"

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
