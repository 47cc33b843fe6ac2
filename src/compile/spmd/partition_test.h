/* What tests of the partitioner share: a partitioned program, run by 8 processes on the interpreter, answers like the whole one. */
#ifndef WEFT_COMPILE_SPMD_PARTITION_TEST_H
#define WEFT_COMPILE_SPMD_PARTITION_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/err_test.h"
#include "compile/pass/pass.h"
#include "compile/spmd/partition.h"
#include "compile/spmd/propagate.h"
#include "interp/interp.h"
#include "stablehlo/stablehlo.h"

#include <math.h>
#include <stdlib.h>

#define DEVICES 8
#define MESH "sdy.mesh @m = <[\"d\"=8]>\n"

static inline Module *parsed(const char *name, const char *text) {
  Module *m = NULL;
  ok(stablehlo_read(name, str_from(text), &m));
  return m;
}

static inline const Sharding *sharding(const NamedAttr *attrs, int n) {
  const Attr *a = attrs_get(attrs, n, "sdy.sharding");
  return a ? a->sharding : NULL;
}

static inline double number(const Tensor *t, int64_t k) {
  return dtype_is_float(t->dtype) ? elem_get_f64(t->dtype, tensor_at(t, k))
                                  : (double)elem_get_i64(t->dtype, tensor_at(t, k));
}

static inline double largest(const Tensor *t) {
  double most = 1;
  for (int64_t k = 0; k < t->count; k++)
    if (isfinite(number(t, k))) most = fmax(most, fabs(number(t, k)));
  return most;
}

/* What the propagation noted is gone: operations that are equal look so. */
static inline Err *has_no_notes(Op *op, void *unused) {
  (void)unused;
  assert_null(op_attr(op, "weft.sharding"));
  return NULL;
}

/* m: inlined, sharded, taken. args and want: whole arrays. tolerance[j]: of result j's largest; NULL: 1e-4. */
static inline void check_module(const char *name, Module *m, Tensor *const *args,
                                Tensor *const *want, const double *tolerance) {
  Module *shardings = module_clone(m); /* keeps what the partitioner drops */
  pass_propagate(shardings, false);
  const Func *sf = module_main(shardings);
  bool done = false;
  ok(pass_partition(m, &done));
  assert_true(done);
  ok(ir_verify(m));
  ok(ir_walk(module_main(m)->body, has_no_notes, NULL));
  const Func *f = module_main(m);
  int n_in = f->type->n_elems, n_out = f->type->n_results;
  Shards *in = xcalloc((size_t)n_in, sizeof *in), *out = xcalloc((size_t)n_out, sizeof *out);
  for (int i = 0; i < n_in; i++) {
    const Sharding *s = sharding(sf->arg_attrs[i], sf->n_arg_attrs[i]);
    in[i] = (Shards){DEVICES, xcalloc(DEVICES, sizeof(Tensor *))};
    for (int p = 0; p < DEVICES; p++) {
      if (s) ok(shard_cut(args[i], s, module_mesh(shardings, s->mesh_name), p, &in[i].t[p]));
      else in[i].t[p] = tensor_retain(args[i]);
    }
  }
  InterpOpts opts = {.partitions = DEVICES};
  ok(interp_run(m, STR(""), &opts, in, n_in, out, n_out));
  for (int j = 0; j < n_out; j++) {
    const Sharding *s = sharding(sf->res_attrs[j], sf->n_res_attrs[j]);
    Tensor *whole;
    if (s && out[j].n > 1)
      ok(shard_join(out[j].t, DEVICES, s, module_mesh(shardings, s->mesh_name), want[j]->rank,
                    want[j]->dims, &whole));
    else whole = tensor_retain(out[j].t[0]);
    assert_int_equal(whole->count, want[j]->count);
    double allowed = (tolerance ? tolerance[j] : 1e-4) * largest(want[j]);
    for (int64_t k = 0; k < whole->count; k++) {
      double g = number(whole, k), w = number(want[j], k);
      if (g != w && !(isnan(g) && isnan(w)) && !(fabs(g - w) <= allowed))
        fail_msg("%s: result %d [%lld] is %g, want %g", name, j, (long long)k, g, w);
    }
    tensor_release(whole);
    shards_free(&out[j]);
  }
  for (int i = 0; i < n_in; i++) shards_free(&in[i]);
  free(in);
  free(out);
  module_free(m);
  module_free(shardings);
}

/* The program of one device. */
static inline Module *partitioned(const char *name, const char *text) {
  Module *m = parsed(name, text);
  bool done;
  ok(pass_partition(m, &done));
  assert_true(done);
  ok(ir_verify(m));
  return m;
}

static inline int count_kind(const Module *m, OpKind kind) {
  int n = 0;
  for (const Op *op = module_main(m)->body->first; op; op = op->next) n += op->kind == kind;
  return n;
}

/* A program on made-up arguments, against itself on one device. Returns how many of its operations
 * exchange whole arrays. m: taken. */
static inline int check_on_itself(const char *name, Module *m, const double *tolerance) {
  const Type *type = module_main(m)->type;
  int n_in = type->n_elems, n_out = type->n_results;
  Tensor *args[8], *want[8];
  Shards in[8], out[8];
  for (int i = 0; i < n_in; i++) {
    const Type *t = type->elems[i];
    args[i] = tensor_make(t->dtype, t->rank, t->dims);
    for (int64_t k = 0; k < args[i]->count; k++) {
      if (dtype_is_float(t->dtype)) elem_set_f64(t->dtype, tensor_at(args[i], k), (double)(k % 13));
      else elem_set_i64(t->dtype, tensor_at(args[i], k), k * 5 % 7);
    }
    in[i] = (Shards){1, &args[i]};
  }
  memset(out, 0, sizeof out);
  ok(interp_run(m, STR(""), &(InterpOpts){0}, in, n_in, out, n_out));
  for (int j = 0; j < n_out; j++) want[j] = out[j].t[0];
  Module *parts = module_clone(m);
  bool done;
  ok(pass_partition(parts, &done));
  int gathers = count_kind(parts, OP_ALL_GATHER);
  module_free(parts);
  check_module(name, m, args, want, tolerance);
  for (int i = 0; i < n_in; i++) tensor_release(args[i]);
  for (int j = 0; j < n_out; j++) shards_free(&out[j]);
  return gathers;
}

static inline int check_text(const char *name, const char *text) {
  Module *m = parsed(name, text);
  ok(pass_inline(m));
  return check_on_itself(name, m, NULL);
}

#endif
