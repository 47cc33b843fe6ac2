/* What the tests of library kernels share: programs of one op as text, random data, the kernel's
 * result (as the device runs it, on the pool, and inline on one thread: both the same bits) against
 * interp_eval's. */
#ifndef WEFT_DEV_CPU_KERNEL_TEST_H
#define WEFT_DEV_CPU_KERNEL_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dev/cpu/registry.h"
#include "interp/interp.h"
#include "stablehlo/stablehlo.h"

typedef struct Case {
  const char *name;
  const char *text; /* one function with one op before the return */
  const char
      *kernel; /* the row that must take it, or what it must choose; NULL: any but the reference */
  double tol;  /* relative to the largest result; 0: same bits (NaNs equal); below 0: so much,
                         with an infinity and a NaN in operand 0 */
  int64_t low, high; /* of integer operands; 0, 0: -3 .. 20 */
} Case;

#define GUARD 0xAB /* around results */

static uint64_t rng = 88172645463325252u;
static inline uint64_t next(void) {
  rng ^= rng << 13;
  rng ^= rng >> 7;
  rng ^= rng << 17;
  return rng;
}

static inline void fill(Tensor *t, const Case *c) {
  DType r = dtype_real_of(t->dtype);
  int64_t n = t->count * (dtype_is_complex(t->dtype) ? 2 : 1), lo = c->low, hi = c->high;
  if (lo == hi) lo = -3, hi = 20;
  for (int64_t i = 0; i < n; i++) {
    char *p = (char *)t->data + i * dtype_bytes(r);
    if (dtype_is_float(r)) {
      double v = (double)(int64_t)(next() % 2001) / 1000 - 1;
      if (c->tol == 0) {
        static const double odd[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, -NAN, 1e-42, 1, 1, -1};
        uint64_t k = next() % 40;
        if (k < COUNT_OF(odd)) v = odd[k];
      }
      elem_set_f64(r, p, v);
    } else {
      elem_set_i64(r, p,
                   r == DT_I1 ? (int64_t)(next() & 1)
                              : lo + (int64_t)(next() % (uint64_t)(hi - lo + 1)));
    }
  }
}

typedef struct Inline {
  const CpuKernel *k;
  void *state;
  const Op *op;
  void **in, **out;
  Err *e;
} Inline;

static inline void inline_run(void *arg, int64_t i) { /* inside pool_run nested jobs run inline */
  Inline *x = arg;
  if (i == 0) x->e = x->k->run(x->state, x->op, x->in, x->out);
}

static inline void compare(const Case *c, const char *what, const Tensor *want, const void *got) {
  DType r = dtype_real_of(want->dtype);
  int64_t n = want->count * (dtype_is_complex(want->dtype) ? 2 : 1), b = dtype_bytes(r);
  double largest = 1e-30;
  bool is_float = dtype_is_float(r);
  for (int64_t i = 0; i < n && is_float; i++) {
    double v = fabs(elem_get_f64(r, (char *)want->data + i * b));
    if (v > largest && isfinite(v)) largest = v;
  }
  for (int64_t i = 0; i < n; i++) {
    const char *w = (char *)want->data + i * b, *g = (const char *)got + i * b;
    if (!memcmp(w, g, (size_t)b)) continue;
    if (is_float) {
      double wv = elem_get_f64(r, w), gv = elem_get_f64(r, g);
      if (isnan(wv) && isnan(gv)) continue;
      if (c->tol != 0 && fabs(wv - gv) <= fabs(c->tol) * largest) continue;
      fail_msg("%s (%s): element %lld of %lld is %.9g, not %.9g", c->name, what, (long long)i,
               (long long)n, gv, wv);
    }
    fail_msg("%s (%s): element %lld of %lld is %lld, not %lld", c->name, what, (long long)i,
             (long long)n, (long long)elem_get_i64(r, g), (long long)elem_get_i64(r, w));
  }
}

static inline void must(Err *e, const char *name) {
  if (!e) return;
  char *t = err_text(e);
  fail_msg("%s: %s", name, t);
}

static inline Tensor *captured(void *arg, const Value *v) { /* constants only */
  (void)arg;
  Tensor *t = NULL;
  if (v->def && v->def->kind == OP_CONSTANT)
    must(tensor_dense(op_attr(v->def, "value")->tensor, &t), "a constant");
  return t;
}

static inline void kernel_case(void **state) {
  const Case *c = *state;
  Module *m = NULL;
  Str text = {c->text, strlen(c->text)};
  must(stablehlo_read("case.mlir", text, &m), c->name);
  must(ir_verify(m), c->name);
  const Op *op = module_main(m)->body->first;
  while (op->next->kind != OP_RETURN) op = op->next;
  const CpuKernel *k = cpu_kernel_find(op);
  if (cpu_kernel_is_reference(k)) fail_msg("%s: left to the reference", c->name);
  int n = op->n_operands, nr = op->n_results;
  Tensor *in[16], *want[16];
  void *data[16], *out[16], *again[16];
  for (int i = 0; i < n; i++) {
    const Type *t = op->operands[i]->type;
    const Op *def = op->operands[i]->def;
    bool fixed = def && def->kind == OP_CONSTANT;
    in[i] = fixed ? tensor_retain(captured(NULL, op->operands[i]))
                  : tensor_make(t->dtype, t->rank, t->dims);
    if (!fixed) fill(in[i], c);
    for (int odd = 0; odd < 2 && i == 0 && c->tol < 0; odd++)
      elem_set_f64(t->dtype, tensor_at(in[i], (int64_t)(next() % (uint64_t)in[i]->count)),
                   odd ? NAN : INFINITY);
    data[i] = in[i]->data;
  }
  if ((op->kind == OP_CHOLESKY || op->kind == OP_TRIANGULAR_SOLVE) &&
      c->tol > 0) { /* well conditioned */
    const Tensor *a = in[0];
    int64_t d = a->dims[a->rank - 1];
    for (int64_t row = 0; row < a->count / d; row++) {
      int64_t i = row * d + row % d;
      elem_set_f64(dtype_real_of(a->dtype), tensor_at(a, i), (double)d + 1);
      if (dtype_is_complex(a->dtype))
        memset((char *)tensor_at(a, i) + dtype_bytes(a->dtype) / 2, 0,
               (size_t)dtype_bytes(a->dtype) / 2);
    }
  }
  must(interp_eval(op, in, want, captured, NULL), c->name);
  for (int i = 0; i < nr; i++) {
    size_t bytes = ((size_t)type_bytes(op->results[i].type) + 127) & ~(size_t)63;
    out[i] = aligned_alloc(64, bytes);
    again[i] = aligned_alloc(64, bytes);
    memset(out[i], GUARD, bytes);
    memset(again[i], 0xCD, bytes);
  }
  void *s = NULL;
  if (k->prepare) must(k->prepare(op, &s), c->name);
  const char *taken_by = k->chosen ? k->chosen(s) : k->name;
  if (c->kernel && strcmp(taken_by, c->kernel) != 0) fail_msg("%s: by %s", c->name, taken_by);
  must(k->run(s, op, data, out), c->name);
  Inline x = {k, s, op, data, again, NULL};
  pool_run(2, inline_run, &x);
  must(x.e, c->name);
  for (int i = 0; i < nr; i++) {
    compare(c, "pool", want[i], out[i]);
    for (int64_t b = type_bytes(op->results[i].type); b % 64; b++)
      if (((unsigned char *)out[i])[b] != GUARD) fail_msg("%s: wrote beyond its result", c->name);
    if (memcmp(out[i], again[i], (size_t)type_bytes(op->results[i].type)))
      fail_msg("%s: depends on the number of threads", c->name);
  }
  for (unsigned fixed = 1; k->prepack_bytes && fixed < 4; fixed++) { /* in a loop */
    size_t prepack = k->prepack_bytes(s, fixed);
    void *prepacked = prepack ? aligned_alloc(64, (prepack + 63) & ~(size_t)63) : NULL;
    for (int turn = 0; prepacked && turn < 2; turn++) {
      memset(again[0], 0xCD, (size_t)type_bytes(op->results[0].type));
      must(k->run_prepacked(s, op, data, again, fixed, prepacked, turn == 0), c->name);
      compare(c, "prepacked", want[0], again[0]);
    }
    free(prepacked);
  }
  if (k->in_place) {
    memcpy(again[0], data[k->in_place - 1],
           (size_t)type_bytes(op->operands[k->in_place - 1]->type));
    void *was = data[k->in_place - 1];
    data[k->in_place - 1] = again[0];
    must(k->run(s, op, data, again), c->name);
    data[k->in_place - 1] = was;
    compare(c, "in place", want[0], again[0]);
  }
  if (k->release) k->release(s);
  for (int i = 0; i < n; i++) tensor_release(in[i]);
  for (int i = 0; i < nr; i++) {
    tensor_release(want[i]);
    free(out[i]);
    free(again[i]);
  }
  module_free(m);
}

/* Tests of n cases. */
static inline void kernel_cases(Case *cases, int n, struct CMUnitTest *tests) {
  for (int i = 0; i < n; i++)
    tests[i] = (struct CMUnitTest){cases[i].name, kernel_case, NULL, NULL, &cases[i]};
}

#endif
