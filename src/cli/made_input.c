/* Arguments for a program that nobody gave any: normal random numbers of a fixed seed, or zeros. */
#include "cli/made_input.h"

#include "compile/pass/pass.h"

#include <math.h>
#include <stdlib.h>

static uint64_t next_bits(uint64_t *state) {
  return *state = *state * 6364136223846793005ull + 1442695040888963407ull;
}

/* One of NORMALS numbers that are normally distributed: a large network has a thousand million
 * inputs, too many for a logarithm and a cosine each. */
#define NORMALS 65536
static double next_normal(uint64_t *state) {
  static float some[NORMALS];
  if (!some[0]) {
    uint64_t own = 1234567;
    for (int k = 0; k < NORMALS; k++) {
      double u[2];
      for (int i = 0; i < 2; i++) u[i] = ((double)(next_bits(&own) >> 11) + 0.5) * 0x1p-53;
      some[k] = (float)(sqrt(-2 * log(u[0])) * cos(6.283185307179586 * u[1]));
    }
  }
  return some[next_bits(state) >> 48];
}

/* ---- arguments whose root or logarithm is taken ------------------------------------------------ */

/* Marks in `seen` the values that v is a sum, product or part of, up to what is a number of another
 * kind: a square, a product of matrices, a mean. */
static void mark(const Value *v, bool *seen) {
  if (v->id < 0 || seen[v->id]) return;
  seen[v->id] = true;
  const Op *op = v->def;
  if (!op) return;
  switch (op->kind) {
  case OP_MULTIPLY:
    if (op->operands[0] == op->operands[1]) return;
    break;
  case OP_ADD:
  case OP_DIVIDE:
  case OP_MAXIMUM:
  case OP_CONVERT:
  case OP_BROADCAST_IN_DIM:
  case OP_RESHAPE:
  case OP_TRANSPOSE:
  case OP_SLICE:
  case OP_DYNAMIC_SLICE:
  case OP_CONCATENATE: break;
  default: return;
  }
  for (int i = 0; i < op->n_operands; i++) mark(op->operands[i], seen);
}

static Err *mark_op(Op *op, void *seen) {
  if (op->kind == OP_SQRT || op->kind == OP_RSQRT || op->kind == OP_LOG)
    mark(op->operands[0], seen);
  return NULL;
}

bool *made_positive(const Module *m) {
  Module *c = module_clone(m);
  err_free(pass_inline(c));
  Func *f = module_main(c);
  bool *seen = xcalloc((size_t)ir_number(f) + 1, sizeof *seen);
  bool *out = xcalloc((size_t)f->body->n_args + 1, sizeof *out);
  err_free(ir_walk(f->body, mark_op, seen));
  for (int i = 0; i < f->body->n_args; i++) out[i] = seen[f->body->args[i]->id];
  free(seen);
  module_free(c);
  return out;
}

Err *made_input(MadeKind kind, int i, bool positive, const Type *t, Tensor **out) {
  if (t->kind != TY_TENSOR || !type_is_static(t))
    return err_hint(err_new(ERR_UNIMPLEMENTED, "argument %d has no fixed shape", i),
                    "numbers are those of one shape: lower the program without symbolic or bounded "
                    "dimensions, jax.jit(f).lower(...) of arrays of the size you mean");
  TRY(tensor_new(t->dtype, t->rank, t->dims, out));
  Tensor *x = *out;
  if (kind == MADE_ZEROS) {
    if (x->count) memset(x->data, 0, tensor_bytes(x));
    return NULL;
  }
  uint64_t state = 1234567 + (uint64_t)i;
  bool is_complex = dtype_is_complex(t->dtype);
  DType real = dtype_real_of(t->dtype);
  for (int64_t k = 0; k < x->count * (is_complex ? 2 : 1); k++) {
    double v = next_normal(&state);
    char *p = (char *)x->data + (size_t)k * (size_t)dtype_bytes(real);
    elem_set_f64(real, p, !dtype_is_float(real) ? fabs(floor(v * 4)) : positive ? fabs(v) : v);
  }
  return NULL;
}
