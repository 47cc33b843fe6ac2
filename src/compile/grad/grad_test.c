/* Every gradient rule against central differences, on the interpreter in f64. A case is a
 * function @f of f64 tensors; what is differentiated is sum(w * f(args)) with fixed random w, so
 * every output element counts. Agreement with JAX's own gradients is tested on whole training
 * steps in tests/.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "compile/grad/grad.h"
#include "interp/interp.h"
#include "stablehlo/stablehlo.h"

#include <math.h>

typedef struct Case {
  const char *name, *text;
  double lo, hi; /* range of the arguments; 0, 0: -2 ... 2 */
} Case;

#define EW1(op)                                                               \
  "func.func @f(%x: tensor<2x3xf64>) -> tensor<2x3xf64> { %r = stablehlo." op \
  " %x : tensor<2x3xf64> "                                                    \
  "return %r : tensor<2x3xf64> }"
#define EW2(op)                                                                                    \
  "func.func @f(%x: tensor<2x3xf64>, %y: tensor<2x3xf64>) -> tensor<2x3xf64> { %r = stablehlo." op \
  " %x, %y : tensor<2x3xf64> return %r : tensor<2x3xf64> }"
#define ADD_BODY                                                                        \
  "({ ^bb0(%a: tensor<f64>, %b: tensor<f64>): %s = stablehlo.add %a, %b : tensor<f64> " \
  "stablehlo.return %s : tensor<f64> })"
#define MAX_BODY                                                                            \
  "({ ^bb0(%a: tensor<f64>, %b: tensor<f64>): %s = stablehlo.maximum %a, %b : tensor<f64> " \
  "stablehlo.return %s : tensor<f64> })"

static const Case cases[] = {
    {"abs", EW1("abs"), 0, 0},
    {"cbrt", EW1("cbrt"), 0.5, 3},
    {"cosine", EW1("cosine"), 0, 0},
    {"exponential", EW1("exponential"), 0, 0},
    {"exponential_minus_one", EW1("exponential_minus_one"), 0, 0},
    {"log", EW1("log"), 0.5, 3},
    {"log_plus_one", EW1("log_plus_one"), 0.5, 3},
    {"logistic", EW1("logistic"), 0, 0},
    {"negate", EW1("negate"), 0, 0},
    {"rsqrt", EW1("rsqrt"), 0.5, 3},
    {"sine", EW1("sine"), 0, 0},
    {"sqrt", EW1("sqrt"), 0.5, 3},
    {"tan", EW1("tan"), -1, 1},
    {"tanh", EW1("tanh"), 0, 0},
    {"floor", EW1("floor"), 0, 0},
    {"sign", EW1("sign"), 0, 0},
    {"add", EW2("add"), 0, 0},
    {"atan2", EW2("atan2"), 0, 0},
    {"divide", EW2("divide"), 0.5, 3},
    {"maximum", EW2("maximum"), 0, 0},
    {"minimum", EW2("minimum"), 0, 0},
    {"multiply", EW2("multiply"), 0, 0},
    {"power", EW2("power"), 0.5, 3},
    {"remainder", EW2("remainder"), 0.5, 3},
    {"subtract", EW2("subtract"), 0, 0},
    {"clamp",
     "func.func @f(%l: tensor<f64>, %x: tensor<5xf64>, %h: tensor<5xf64>) -> tensor<5xf64> { "
     "%r = stablehlo.clamp %l, %x, %h : (tensor<f64>, tensor<5xf64>, tensor<5xf64>) -> "
     "tensor<5xf64> "
     "return %r : tensor<5xf64> }",
     0, 0},
    {"select",
     "func.func @f(%x: tensor<6xf64>, %y: tensor<6xf64>) -> tensor<6xf64> { "
     "%p = stablehlo.constant dense<[true, false, true, true, false, false]> : tensor<6xi1> "
     "%r = stablehlo.select %p, %x, %y : tensor<6xi1>, tensor<6xf64> return %r : tensor<6xf64> }",
     0, 0},
    {"convert",
     "func.func @f(%x: tensor<3xf64>) -> tensor<3xf64> { %i = stablehlo.convert %x : "
     "(tensor<3xf64>) -> "
     "tensor<3xi32> %j = stablehlo.convert %i : (tensor<3xi32>) -> tensor<3xf64> "
     "%r = stablehlo.multiply %j, %x : tensor<3xf64> return %r : tensor<3xf64> }",
     0, 0},
    {"broadcast_in_dim",
     "func.func @f(%x: tensor<3x1x2xf64>) -> tensor<2x4x5x3xf64> { %r = stablehlo.broadcast_in_dim "
     "%x, "
     "dims = [3, 1, 0] : (tensor<3x1x2xf64>) -> tensor<2x4x5x3xf64> return %r : "
     "tensor<2x4x5x3xf64> }",
     0, 0},
    {"concatenate",
     "func.func @f(%x: tensor<2x2xf64>, %y: tensor<2x3xf64>) -> tensor<2x7xf64> { "
     "%r = stablehlo.concatenate %x, %y, %x, dim = 1 : (tensor<2x2xf64>, tensor<2x3xf64>, "
     "tensor<2x2xf64>) -> tensor<2x7xf64> return %r : tensor<2x7xf64> }",
     0, 0},
    {"pad",
     "func.func @f(%x: tensor<3x4xf64>, %v: tensor<f64>) -> tensor<8x4xf64> { %r = stablehlo.pad "
     "%x, %v, "
     "low = [1, -1], high = [2, 1], interior = [1, 0] : (tensor<3x4xf64>, tensor<f64>) -> "
     "tensor<8x4xf64> "
     "return %r : tensor<8x4xf64> }",
     0, 0},
    {"reshape",
     "func.func @f(%x: tensor<2x6xf64>) -> tensor<3x4xf64> { %r = stablehlo.reshape %x : "
     "(tensor<2x6xf64>) -> "
     "tensor<3x4xf64> return %r : tensor<3x4xf64> }",
     0, 0},
    {"reverse",
     "func.func @f(%x: tensor<2x3xf64>) -> tensor<2x3xf64> { %r = stablehlo.reverse %x, dims = [1] "
     ": "
     "tensor<2x3xf64> return %r : tensor<2x3xf64> }",
     0, 0},
    {"slice",
     "func.func @f(%x: tensor<4x7xf64>) -> tensor<2x2xf64> { %r = stablehlo.slice %x [1:3, 1:7:3] "
     ": "
     "(tensor<4x7xf64>) -> tensor<2x2xf64> return %r : tensor<2x2xf64> }",
     0, 0},
    {"transpose",
     "func.func @f(%x: tensor<2x3x4xf64>) -> tensor<4x2x3xf64> { %r = stablehlo.transpose %x, dims "
     "= [2, 0, 1] : "
     "(tensor<2x3x4xf64>) -> tensor<4x2x3xf64> return %r : tensor<4x2x3xf64> }",
     0, 0},
    {"dynamic_slice",
     "func.func @f(%x: tensor<4x5xf64>) -> tensor<2x2xf64> { %i = stablehlo.constant dense<9> : "
     "tensor<i32> "
     "%j = stablehlo.constant dense<1> : tensor<i32> %a = stablehlo.dynamic_slice %x, %i, %j, "
     "sizes = [2, 2] : (tensor<4x5xf64>, tensor<i32>, tensor<i32>) -> tensor<2x2xf64> "
     "%b = stablehlo.dynamic_slice %x, %j, %j, sizes = [2, 2] : (tensor<4x5xf64>, tensor<i32>, "
     "tensor<i32>) -> tensor<2x2xf64> %r = stablehlo.multiply %a, %b : tensor<2x2xf64> "
     "return %r : tensor<2x2xf64> }",
     0, 0},
    {"dynamic_update_slice",
     "func.func @f(%x: tensor<4x5xf64>, %u: tensor<2x2xf64>) -> tensor<4x5xf64> { %i = "
     "stablehlo.constant dense<1> : "
     "tensor<i32> %r = stablehlo.dynamic_update_slice %x, %u, %i, %i : (tensor<4x5xf64>, "
     "tensor<2x2xf64>, tensor<i32>, "
     "tensor<i32>) -> tensor<4x5xf64> return %r : tensor<4x5xf64> }",
     0, 0},
    {"gather",
     "func.func @f(%x: tensor<5x2xf64>) -> tensor<4x2xf64> { %i = stablehlo.constant dense<[[0], "
     "[3], [3], [9]]> : "
     "tensor<4x1xi32> %r = \"stablehlo.gather\"(%x, %i) <{dimension_numbers = "
     "#stablehlo.gather<offset_dims = [1], "
     "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = "
     "array<i64: 1, 2>}> "
     ": (tensor<5x2xf64>, tensor<4x1xi32>) -> tensor<4x2xf64> return %r : tensor<4x2xf64> }",
     0, 0},
    {"scatter_add",
     "func.func @f(%x: tensor<5x2xf64>, %u: tensor<3x2xf64>) -> tensor<5x2xf64> { %i = "
     "stablehlo.constant "
     "dense<[[1], [1], [7]]> : tensor<3x1xi32> %r = \"stablehlo.scatter\"(%x, %i, %u) "
     "<{scatter_dimension_numbers = "
     "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
     "scatter_dims_to_operand_dims = [0], "
     "index_vector_dim = 1>}> " ADD_BODY
     " : (tensor<5x2xf64>, tensor<3x1xi32>, tensor<3x2xf64>) -> tensor<5x2xf64> "
     "return %r : tensor<5x2xf64> }",
     0, 0},
    {"scatter_replace",
     "func.func @f(%x: tensor<5x2xf64>, %u: tensor<3x2xf64>) -> tensor<5x2xf64> { %i = "
     "stablehlo.constant "
     "dense<[[1], [1], [7]]> : tensor<3x1xi32> %r = \"stablehlo.scatter\"(%x, %i, %u) "
     "<{scatter_dimension_numbers = "
     "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
     "scatter_dims_to_operand_dims = [0], "
     "index_vector_dim = 1>}> ({ ^bb0(%a: tensor<f64>, %b: tensor<f64>): stablehlo.return %b : "
     "tensor<f64> }) : "
     "(tensor<5x2xf64>, tensor<3x1xi32>, tensor<3x2xf64>) -> tensor<5x2xf64> return %r : "
     "tensor<5x2xf64> }",
     0, 0},
    {"sort",
     "func.func @f(%x: tensor<2x4xf64>, %y: tensor<2x4xf64>) -> tensor<2x4xf64> { %r:2 = "
     "\"stablehlo.sort\"(%x, %y) "
     "<{dimension = 1 : i64, is_stable = true}> ({ ^bb0(%a: tensor<f64>, %b: tensor<f64>, %c: "
     "tensor<f64>, "
     "%d: tensor<f64>): %l = stablehlo.compare LT, %a, %b : (tensor<f64>, tensor<f64>) -> "
     "tensor<i1> "
     "stablehlo.return %l : tensor<i1> }) : (tensor<2x4xf64>, tensor<2x4xf64>) -> "
     "(tensor<2x4xf64>, "
     "tensor<2x4xf64>) %q = stablehlo.multiply %r#0, %r#1 : tensor<2x4xf64> return %q : "
     "tensor<2x4xf64> }",
     0, 0},
    {"reduce_add",
     "func.func @f(%x: tensor<2x3x4xf64>, %i: tensor<f64>) -> tensor<3xf64> { %r = "
     "stablehlo.reduce(%x init: %i) "
     "applies stablehlo.add across dimensions = [0, 2] : (tensor<2x3x4xf64>, tensor<f64>) -> "
     "tensor<3xf64> "
     "return %r : tensor<3xf64> }",
     0, 0},
    {"reduce_max",
     "func.func @f(%x: tensor<2x3x4xf64>) -> tensor<3xf64> { %i = stablehlo.constant dense<-1.0e9> "
     ": tensor<f64> "
     "%r = stablehlo.reduce(%x init: %i) applies stablehlo.maximum across dimensions = [0, 2] : "
     "(tensor<2x3x4xf64>, tensor<f64>) -> tensor<3xf64> return %r : tensor<3xf64> }",
     0, 0},
    {"reduce_mul",
     "func.func @f(%x: tensor<2x4xf64>) -> tensor<2xf64> { %i = stablehlo.constant dense<1.0> : "
     "tensor<f64> "
     "%r = stablehlo.reduce(%x init: %i) applies stablehlo.multiply across dimensions = [1] : "
     "(tensor<2x4xf64>, tensor<f64>) -> tensor<2xf64> return %r : tensor<2xf64> }",
     0, 0},
    {"reduce_window_add",
     "func.func @f(%x: tensor<4x7xf64>) -> tensor<3x4xf64> { %i = stablehlo.constant dense<0.0> : "
     "tensor<f64> "
     "%r = \"stablehlo.reduce_window\"(%x, %i) <{window_dimensions = array<i64: 2, 3>, "
     "window_strides = array<i64: 2, 2>, "
     "padding = dense<[[1, 1], [2, 0]]> : tensor<2x2xi64>}> " ADD_BODY
     " : (tensor<4x7xf64>, tensor<f64>) -> "
     "tensor<3x4xf64> return %r : tensor<3x4xf64> }",
     0, 0},
    {"reduce_window_max",
     "func.func @f(%x: tensor<4x7xf64>) -> tensor<3x4xf64> { %i = stablehlo.constant dense<-1.0e9> "
     ": tensor<f64> "
     "%r = \"stablehlo.reduce_window\"(%x, %i) <{window_dimensions = array<i64: 2, 3>, "
     "window_strides = array<i64: 2, 2>, "
     "padding = dense<[[1, 1], [2, 0]]> : tensor<2x2xi64>}> " MAX_BODY
     " : (tensor<4x7xf64>, tensor<f64>) -> "
     "tensor<3x4xf64> return %r : tensor<3x4xf64> }",
     0, 0},
    {"batch_norm_training",
     "func.func @f(%x: tensor<4x3xf64>, %s: tensor<3xf64>, %o: tensor<3xf64>) -> tensor<4x3xf64> { "
     "%r:3 = "
     "\"stablehlo.batch_norm_training\"(%x, %s, %o) <{epsilon = 0.001 : f32, feature_index = 1 : "
     "i64}> : (tensor<4x3xf64>, "
     "tensor<3xf64>, tensor<3xf64>) -> (tensor<4x3xf64>, tensor<3xf64>, tensor<3xf64>) return %r#0 "
     ": tensor<4x3xf64> }",
     0, 0},
    {"dot_general",
     "func.func @f(%x: tensor<2x3x4x5xf64>, %y: tensor<5x2x3x4xf64>) -> tensor<4x2x2xf64> { %r = "
     "stablehlo.dot_general %x, %y, "
     "batching_dims = [2] x [3], contracting_dims = [3, 1] x [0, 2] : (tensor<2x3x4x5xf64>, "
     "tensor<5x2x3x4xf64>) -> "
     "tensor<4x2x2xf64> return %r : tensor<4x2x2xf64> }",
     0, 0},
    {"convolution",
     "func.func @f(%x: tensor<1x5x4x2xf64>, %k: tensor<3x2x2x3xf64>) -> tensor<1x4x5x3xf64> { %r = "
     "stablehlo.convolution(%x, "
     "%k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = "
     "[[2, 1], [1, 0]], "
     "lhs_dilate = [2, 2], rhs_dilate = [2, 3], reverse = [true, false]} {batch_group_count = 1 : "
     "i64, feature_group_count "
     "= 1 : i64} : (tensor<1x5x4x2xf64>, tensor<3x2x2x3xf64>) -> tensor<1x4x5x3xf64> return %r : "
     "tensor<1x4x5x3xf64> }",
     0, 0},
    {"convolution_groups",
     "func.func @f(%x: tensor<2x4x4xf64>, %k: tensor<3x2x6xf64>) -> tensor<2x4x6xf64> { %r = "
     "stablehlo.convolution(%x, %k) "
     "dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]} {batch_group_count = "
     "1 : i64, "
     "feature_group_count = 2 : i64} : (tensor<2x4x4xf64>, tensor<3x2x6xf64>) -> tensor<2x4x6xf64> "
     "return %r : "
     "tensor<2x4x6xf64> }",
     0, 0},
    {"convolution_batch_groups",
     "func.func @f(%x: tensor<4x4x2xf64>, %k: tensor<3x2x6xf64>) -> tensor<2x4x6xf64> { %r = "
     "stablehlo.convolution(%x, %k) "
     "dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]} {batch_group_count = "
     "2 : i64, "
     "feature_group_count = 1 : i64} : (tensor<4x4x2xf64>, tensor<3x2x6xf64>) -> tensor<2x4x6xf64> "
     "return %r : "
     "tensor<2x4x6xf64> }",
     0, 0},
    {"case",
     "func.func @f(%x: tensor<3xf64>, %y: tensor<3xf64>) -> tensor<3xf64> { %i = "
     "stablehlo.constant dense<1> : "
     "tensor<i32> %r = \"stablehlo.case\"(%i) ({ stablehlo.return %x : tensor<3xf64> }, { %s = "
     "stablehlo.sine %x : "
     "tensor<3xf64> %t = stablehlo.multiply %s, %y : tensor<3xf64> stablehlo.return %t : "
     "tensor<3xf64> }) : "
     "(tensor<i32>) -> tensor<3xf64> return %r : tensor<3xf64> }",
     0, 0},
    {"while", /* c = tanh(c * w) four times, with a captured w and each turn's c put into a row of y
               */
     "func.func @f(%c: tensor<3xf64>, %w: tensor<3xf64>, %y: tensor<4x3xf64>) -> tensor<4x3xf64> { "
     "%i0 = stablehlo.constant dense<0> : tensor<i32> %n = stablehlo.constant dense<4> : "
     "tensor<i32> "
     "%one = stablehlo.constant dense<1> : tensor<i32> "
     "%r:3 = stablehlo.while(%i = %i0, %a = %c, %b = %y) : tensor<i32>, tensor<3xf64>, "
     "tensor<4x3xf64> "
     "cond { %g = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1> "
     "stablehlo.return %g : tensor<i1> } "
     "do { %p = stablehlo.multiply %a, %w : tensor<3xf64> %t = stablehlo.tanh %p : tensor<3xf64> "
     "%q = stablehlo.reshape %t : (tensor<3xf64>) -> tensor<1x3xf64> "
     "%u = stablehlo.dynamic_update_slice %b, %q, %i, %i0 : (tensor<4x3xf64>, tensor<1x3xf64>, "
     "tensor<i32>, tensor<i32>) "
     "-> tensor<4x3xf64> %j = stablehlo.add %i, %one : tensor<i32> "
     "stablehlo.return %j, %t, %u : tensor<i32>, tensor<3xf64>, tensor<4x3xf64> } return %r#2 : "
     "tensor<4x3xf64> }",
     0, 0},
};

static void check(Err *e, const char *name) {
  if (!e) return;
  char *t = err_text(e);
  print_error("%s: %s\n", name, t);
  fail();
}

static double next_random(uint64_t *s) {
  *s = *s * 6364136223846793005ull + 1442695040888963407ull;
  return (double)(*s >> 11) / 9007199254740992.0;
}

/* @loss(args) = sum(w * @f(args)) */
static Func *add_loss(Module *m, Func *f, uint64_t *seed) {
  Build b = {0};
  Func *loss = b_func(&b, m, "loss");
  Value *args[4];
  for (int i = 0; i < f->type->n_elems; i++) args[i] = b_arg(&b, f->type->elems[i]);
  NamedAttr callee = {STR("callee"), attr_symbol(m, f->name)};
  Type *t = f->type->results[0];
  Value *y = &b_op(&b, OP_CALL, f->type->n_elems, args, 1, &t, 1, &callee, 0, NULL)->results[0];
  double *w = xmalloc(sizeof *w * (size_t)type_count(t));
  for (int64_t i = 0; i < type_count(t); i++) w[i] = next_random(seed) + 0.5;
  Value *r = b_reduce_all(&b, OP_ADD, b_mul(&b, y, b_const(&b, t, w)));
  free(w);
  b_return(&b, 1, &r);
  return loss;
}

static void run(const Module *m, const char *func, Tensor **args, int n, Shards *out, int n_out,
                const char *name) {
  Shards in[4];
  for (int i = 0; i < n; i++) in[i] = (Shards){1, &args[i]};
  check(interp_run(m, str_from(func), NULL, in, n, out, n_out), name);
}

static void one_case(const Case *c) {
  Module *m;
  check(stablehlo_read_text(c->name, str_from(c->text), &m), c->name);
  check(ir_verify(m), c->name);
  uint64_t seed = 7;
  Func *f = module_func(m, STR("f")), *g, *loss = add_loss(m, f, &seed);
  int n = f->type->n_elems, which[4] = {0, 1, 2, 3};
  check(grad_func(m, loss, n, which, "gradient", &g), c->name);
  check(ir_verify(m), c->name);
  double lo = c->lo, hi = c->hi;
  if (lo == 0 && hi == 0) lo = -2, hi = 2;
  Tensor *args[4];
  for (int i = 0; i < n; i++) {
    Type *t = f->type->elems[i];
    args[i] = tensor_make(DT_F64, t->rank, t->dims);
    for (int64_t k = 0; k < args[i]->count; k++)
      ((double *)args[i]->data)[k] = lo + (hi - lo) * next_random(&seed);
  }
  Shards got[5] = {{0, NULL}};
  run(m, "gradient", args, n, got, n + 1, c->name);
  for (int i = 0; i < n; i++) {
    double *x = args[i]->data, *d = got[i + 1].t[0]->data;
    for (int64_t k = 0; k < args[i]->count; k++) {
      double keep = x[k], h = 1e-5, side[2];
      for (int s = 0; s < 2; s++) {
        Shards v;
        x[k] = keep + (s ? h : -h);
        run(m, "loss", args, n, &v, 1, c->name);
        side[s] = *(double *)v.t[0]->data;
        shards_free(&v);
      }
      x[k] = keep;
      double want = (side[1] - side[0]) / (2 * h);
      if (!(fabs(d[k] - want) <= 1e-6 * (1 + fabs(want)))) {
        print_error("%s: argument %d element %d: gradient %.9g, difference %.9g\n", c->name, i,
                    (int)k, d[k], want);
        fail();
      }
    }
  }
  for (int i = 0; i <= n; i++) shards_free(&got[i]);
  for (int i = 0; i < n; i++) tensor_release(args[i]);
  module_free(m);
}

static void rules_against_differences(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(cases); i++) one_case(&cases[i]);
}

/* As in JAX, where a power's gradient at 0 is infinite, not NaN. */
static void cube_root_of_zero(void **state) {
  (void)state;
  Module *m;
  check(stablehlo_read_text("cbrt",
                            STR("func.func @f(%x: tensor<f64>) -> tensor<f64> { %r = "
                                "stablehlo.cbrt %x : tensor<f64> return %r : tensor<f64> }"),
                            &m),
        "cbrt");
  Func *g;
  check(grad_func(m, module_func(m, STR("f")), 1, (int[]){0}, "g", &g), "cbrt");
  Tensor *x = tensor_make(DT_F64, 0, NULL);
  *(double *)x->data = 0;
  Shards out[2];
  run(m, "g", &x, 1, out, 2, "cbrt");
  assert_true(*(double *)out[1].t[0]->data == (double)INFINITY);
  for (int i = 0; i < 2; i++) shards_free(&out[i]);
  tensor_release(x);
  module_free(m);
}

static void refuses(void **state) {
  (void)state;
  static const struct {
    const char *text, *say;
  } bad[] = {
      {"func.func @f(%x: tensor<f32>, %n: tensor<i32>) -> tensor<f32> { %c = stablehlo.constant "
       "dense<0> : tensor<i32> "
       "%o = stablehlo.constant dense<1> : tensor<i32> "
       "%r:2 = stablehlo.while(%i = %c, %a = %x) : tensor<i32>, tensor<f32> cond { %g = "
       "stablehlo.compare LT, %i, %n : "
       "(tensor<i32>, tensor<i32>) -> tensor<i1> stablehlo.return %g : tensor<i1> } do { %s = "
       "stablehlo.sine %a : tensor<f32> "
       "%j = stablehlo.add %i, %o : tensor<i32> stablehlo.return %j, %s : tensor<i32>, tensor<f32> "
       "} "
       "return %r#1 : tensor<f32> }",
       "number of turns"},
      {"func.func @f(%x: tensor<f32>) -> tensor<f32> { %r = stablehlo.custom_call @mystery(%x) : "
       "(tensor<f32>) -> tensor<f32> "
       "return %r : tensor<f32> }",
       "mystery"},
      {"func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }", "scalar"},
  };
  for (int i = 0; i < COUNT_OF(bad); i++) {
    Module *m;
    check(stablehlo_read_text("bad", str_from(bad[i].text), &m), "bad");
    Func *g;
    Err *e = grad_func(m, module_func(m, STR("f")), 1, (int[]){0}, "g", &g);
    assert_non_null(e);
    char *t = err_text(e);
    if (!strstr(t, bad[i].say)) print_error("case %d says: %s\n", i, t);
    assert_non_null(strstr(t, bad[i].say));
    assert_int_equal(m->funcs.n, 1);
    free(t);
    err_free(e);
    module_free(m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rules_against_differences),
                                     cmocka_unit_test(cube_root_of_zero),
                                     cmocka_unit_test(refuses)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
