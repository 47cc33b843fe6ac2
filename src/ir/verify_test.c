/* The verifier and shape inference. Accepted: the whole golden corpus, where inference has to give
 * exactly the declared types of static programs. Refused: one program for each kind of constraint
 * of the specification, with what has to be said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/err_test.h"

#include <dirent.h>
#include <stdlib.h>

#include "stablehlo/stablehlo.h"

#define CORPUS WEFT_SOURCE_DIR "/tests/golden/corpus/"

/* ---- the corpus ---- */

typedef struct Count {
  Module *m;
  int ops, exact;
} Count;

static bool is_static_type(const Type *t) { return t->kind != TY_TENSOR || type_is_static(t); }

static Err *infer_one(Op *op, void *arg) {
  Count *c = arg;
  if (op->kind == OP_RETURN || op->kind == OP_UNKNOWN) return NULL;
  Type **out = xcalloc((size_t)op->n_results + 1, sizeof *out);
  Err *e = ir_infer(c->m, op, out);
  c->ops++;
  bool fixed = true;
  for (int i = 0; i < op->n_operands; i++) fixed = fixed && is_static_type(op->operands[i]->type);
  for (int i = 0; i < op->n_results && !e; i++) {
    fixed = fixed && is_static_type(op->results[i].type);
    c->exact += out[i] == op->results[i].type;
    if (fixed && out[i] != op->results[i].type && !op->results[i].type->quant)
      e = op_err(op, ERR_INTERNAL, "another type is inferred for result %d", i);
  }
  free(out);
  return e;
}

static void corpus(void **state) {
  (void)state;
  DIR *d = opendir(CORPUS);
  assert_non_null(d);
  int programs = 0, ops = 0;
  for (struct dirent *entry; (entry = readdir(d));) {
    if (!str_ends(str_from(entry->d_name), ".mlir")) continue;
    char *path = xasprintf("%s%s", CORPUS, entry->d_name);
    Buf b = {0};
    ok_with(file_read(path, &b), path);
    Module *m;
    ok_with(stablehlo_read_text(path, (Str){b.p, b.n}, &m), path);
    ok_with(ir_verify(m), path);
    Count c = {m, 0, 0};
    for (int i = 0; i < m->funcs.n; i++)
      if (m->funcs.v[i]->body) ok_with(ir_walk(m->funcs.v[i]->body, infer_one, &c), path);
    ops += c.ops;
    programs++;
    module_free(m);
    buf_free(&b);
    free(path);
  }
  closedir(d);
  print_message("%d programs, %d operations inferred\n", programs, ops);
  assert_true(programs >= 240 && ops > 10000);
}

/* ---- refused ---- */

/* In a function over %a, %b: tensor<4x6xf32>, %s: tensor<f32>, %i, %j: tensor<i32>, %p: tensor<i1>,
 * %n: tensor<2xi64>, %c: tensor<4xcomplex<f32>>, %t: token. */
#define A "tensor<4x6xf32>"
#define BODY_ADD                                                              \
  "({\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n%z = stablehlo.add %x, %y : " \
  "tensor<f32>\nstablehlo.return %z : tensor<f32>\n})"
static const char *const refused[][2] = {
    /* structure */
    {"%0 = \"stablehlo.add\"(%a) : (" A ") -> " A, "has 1 operands, but takes 2"},
    {"%0:2 = \"stablehlo.add\"(%a, %b) : (" A ", " A ") -> (" A ", " A ")",
     "has 2 results, but makes 1"},
    {"\"stablehlo.iota\"() : () -> tensor<3xi32>", "attribute 'iota_dimension' is missing"},
    {"stablehlo.return %a : " A "\n%0 = stablehlo.abs %a : " A, "is not the last operation"},
    {"call @nowhere() : () -> ()", "does not exist"},
    {"call @other(%a) : (" A ") -> ()", "takes 0 arguments, 1 are given"},
    {"%0 = \"stablehlo.if\"(%p) ({\nstablehlo.return %a : " A "\n}) : (tensor<i1>) -> " A,
     "has 1 regions, but takes 2"},
    {"%0 = \"stablehlo.if\"(%p) ({\nstablehlo.return %s : tensor<f32>\n}, {\nstablehlo.return %a "
     ": " A "\n}) : (tensor<i1>) -> " A,
     "returns another type"},
    /* element-wise */
    {"%0 = \"stablehlo.add\"(%a, %s) : (" A ", tensor<f32>) -> " A, "differ in shape"},
    {"%0 = \"stablehlo.add\"(%s, %i) : (tensor<f32>, tensor<i32>) -> tensor<f32>",
     "elements of f32 and i32"},
    {"%0 = \"stablehlo.add\"(%a, %b) : (" A ", " A ") -> tensor<4x6xf64>",
     "is declared as tensor<4x6xf64>, but is tensor<4x6xf32>"},
    {"%0 = stablehlo.and %s, %s : tensor<f32>",
     "has to be a tensor of boolean or integer elements"},
    {"%0 = stablehlo.tanh %i : tensor<i32>", "float or complex"},
    {"%0 = stablehlo.compare EQ, %i, %i, FLOAT : (tensor<i32>, tensor<i32>) -> tensor<i1>",
     "does not fit elements of i32"},
    {"%0 = \"stablehlo.select\"(%i, %a, %b) : (tensor<i32>, " A ", " A ") -> " A, "boolean"},
    {"%0 = \"stablehlo.real\"(%c) : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>",
     "but is tensor<4xf32>"},
    {"%0 = stablehlo.reduce_precision %a, format = e0m3 : " A, "exponent_bits has to be positive"},
    /* moving */
    {"%0 = stablehlo.reshape %a : (" A ") -> tensor<5x5xf32>", "24 elements cannot become 25"},
    {"%0 = stablehlo.transpose %a, dims = [0, 0] : (" A ") -> tensor<4x4xf32>", "given twice"},
    {"%0 = stablehlo.transpose %a, dims = [1, 0] : (" A ") -> " A, "but is tensor<6x4xf32>"},
    {"%0 = stablehlo.broadcast_in_dim %a, dims = [0, 1] : (" A ") -> tensor<4x7xf32>",
     "dimension 1 of the operand is 6"},
    {"%0 = stablehlo.slice %a [0:5, 0:6] : (" A ") -> tensor<5x6xf32>",
     "limit 5 in dimension 0 of size 4"},
    {"%0 = stablehlo.slice %a [0:4:0, 0:6] : (" A ") -> " A, "stride 0"},
    {"%0 = stablehlo.concatenate %a, %b, dim = 2 : (" A ", " A ") -> tensor<8x6xf32>",
     "is not a dimension"},
    {"%0 = stablehlo.concatenate %a, %b, dim = 0 : (" A ", " A ") -> tensor<4x6xf32>",
     "but is tensor<8x6xf32>"},
    {"%0 = stablehlo.pad %a, %s, low = [0, -7], high = [0, 0], interior = [0, 0] : (" A
     ", tensor<f32>) -> " A,
     "of size -1"},
    {"%0 = stablehlo.pad %a, %i, low = [0, 0], high = [0, 0], interior = [0, 0] : (" A
     ", tensor<i32>) -> " A,
     "element type"},
    {"%0 = stablehlo.bitcast_convert %a : (" A ") -> tensor<4x6xf64>", "one more dimension"},
    {"%0 = stablehlo.iota dim = 1 : tensor<3xi32>", "1 is not a dimension, there are 1"},
    {"%0 = stablehlo.reverse %a, dims = [2] : " A, "2 is not a dimension"},
    /* addressing */
    {"%0 = stablehlo.dynamic_slice %a, %i, %j, sizes = [5, 1] : (" A
     ", tensor<i32>, tensor<i32>) -> tensor<5x1xf32>",
     "slice size 5"},
    {"%0 = stablehlo.dynamic_slice %a, %i, sizes = [1, 1] : (" A
     ", tensor<i32>) -> tensor<1x1xf32>",
     "1 start indices"},
    {"%0 = \"stablehlo.gather\"(%a, %n) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], "
     "collapsed_slice_dims = [0], "
     "start_index_map = [0]>, slice_sizes = array<i64: 1, 6>}> : (" A
     ", tensor<2xi64>) -> tensor<6xf32>",
     "an index has 2 numbers"},
    {"%0 = \"stablehlo.gather\"(%a, %n) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], "
     "collapsed_slice_dims = [0], "
     "start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 2, 6>}> : (" A
     ", tensor<2xi64>) -> tensor<2x6xf32>",
     "which is collapsed"},
    /* reductions */
    {"%0 = stablehlo.reduce(%a init: %s) applies stablehlo.add across dimensions = [2] : (" A
     ", tensor<f32>) -> tensor<4xf32>",
     "2 is not a dimension"},
    {"%0 = stablehlo.reduce(%a init: %s) applies stablehlo.add across dimensions = [1] : (" A
     ", tensor<f32>) -> tensor<6xf32>",
     "but is tensor<4xf32>"},
    {"%0 = \"stablehlo.reduce\"(%a, %s) <{dimensions = array<i64: 0>}> ({\n^bb0(%x: "
     "tensor<f32>):\nstablehlo.return %x : "
     "tensor<f32>\n}) : (" A ", tensor<f32>) -> tensor<6xf32>",
     "has 1 arguments, but 2 are needed"},
    {"%0 = \"stablehlo.reduce_window\"(%a, %s) <{window_dimensions = array<i64: 2, 0>}> " BODY_ADD
     " : (" A ", tensor<f32>) -> " A,
     "a window of size 0"},
    {"%0 = \"stablehlo.reduce_window\"(%a, %s) <{window_dimensions = array<i64: 2, 2>}> " BODY_ADD
     " : (" A ", tensor<f32>) -> " A,
     "but is tensor<3x5xf32>"},
    /* products */
    {"%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (" A ", " A
     ") -> tensor<4x6xf32>",
     "contracting dimension 0 is 6"},
    {"%0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [0] x [1] : "
     "(" A ", " A ") -> tensor<4xf32>",
     "batching and contracting"},
    {"%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1] : (" A ", " A
     ") -> tensor<4x6xf32>",
     "but is tensor<4x4xf32>"},
    {"%0 = stablehlo.convolution(%a, %b) dim_numbers = [b, f]x[i, o]->[b, f], window = {} "
     "{batch_group_count = 1 : i64, "
     "feature_group_count = 1 : i64} : (" A ", " A ") -> " A,
     "the kernel takes 4 features"},
    /* sorting, linear algebra, random numbers */
    {"%0 = \"stablehlo.sort\"(%a) <{dimension = 2 : i64}> ({\n^bb0(%x: tensor<f32>, %y: "
     "tensor<f32>):\nstablehlo.return %p : "
     "tensor<i1>\n}) : (" A ") -> " A,
     "dimension = 2"},
    {"%0 = \"stablehlo.sort\"(%a) ({\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\nstablehlo.return %x "
     ": tensor<f32>\n}) : (" A ") -> " A,
     "has to return tensor<i1>"},
    {"%0 = stablehlo.cholesky %a, lower = true : " A, "they have to be square"},
    {"%0 = stablehlo.fft %c, type = RFFT, length = [4] : (tensor<4xcomplex<f32>>) -> "
     "tensor<3xcomplex<f32>>",
     "not complex<f32>"},
    {"%0, %1 = stablehlo.rng_bit_generator %n, algorithm = PHILOX : (tensor<2xi64>) -> "
     "(tensor<2xi64>, tensor<4xui32>)",
     "ui64"},
    /* control */
    {"%0 = stablehlo.while(%x = %i) : tensor<i32> cond {\nstablehlo.return %x : tensor<i32>\n} do "
     "{\nstablehlo.return %x : "
     "tensor<i32>\n}",
     "has to return tensor<i1>"},
    {"%0 = \"stablehlo.case\"(%i) : (tensor<i32>) -> tensor<f32>", "needs a branch"},
    {"%0 = stablehlo.tuple %a : tuple<tensor<f32>>", "element 0 of the result"},
    {"%0 = stablehlo.composite \"noname\" %a {decomposition = @other} : (" A ") -> " A,
     "namespaced"},
    {"%0 = stablehlo.custom_call @f(%a) {operand_layouts = [dense<[0, 0]> : tensor<2xindex>], "
     "result_layouts = [dense<[1, 0]> : "
     "tensor<2xindex>]} : (" A ") -> " A,
     "not a permutation"},
    {"%0 = stablehlo.after_all %a, %a : (" A ", " A ") -> !stablehlo.token", "is not a token"},
    /* between processes */
    {"%0 = \"stablehlo.all_reduce\"(%a) <{replica_groups = dense<[[0, 0]]> : "
     "tensor<1x2xi64>}> " BODY_ADD " : (" A ") -> " A,
     "given twice"},
    {"%0 = \"stablehlo.all_reduce\"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, "
     "use_global_device_ids}> " BODY_ADD " : (" A ") -> " A,
     "positive channel id"},
    {"%0 = \"stablehlo.all_gather\"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, "
     "1]]> : tensor<1x2xi64>}> : (" A ") -> tensor<12x6xf32>",
     "but is tensor<8x6xf32>"},
    {"%0 = \"stablehlo.all_to_all\"(%a) <{split_dimension = 0 : i64, concat_dimension = 1 : i64, "
     "split_count = 3 : i64, "
     "replica_groups = dense<[[0, 1, 2]]> : tensor<1x3xi64>}> : (" A ") -> " A,
     "does not divide into 3"},
    {"%0 = \"stablehlo.collective_permute\"(%a) <{source_target_pairs = dense<[[0, 1], [2, 1]]> : "
     "tensor<2x2xi64>}> : (" A ") -> " A,
     "process 1 is given twice"},
    /* types */
    {"%0 = stablehlo.custom_call @f() : () -> tensor<2x!quant.uniform<i8:f32, 0.0>>",
     "is not a positive f32"},
    {"%0 = stablehlo.custom_call @f() : () -> tensor<4xf32, #stablehlo.bounds<4>>",
     "which is static"},
};

static char *program(const char *body) {
  return xasprintf("func.func private @other() {\nreturn\n}\n"
                   "func.func @main(%%a: " A ", %%b: " A
                   ", %%s: tensor<f32>, %%i: tensor<i32>, %%j: tensor<i32>, "
                   "%%p: tensor<i1>, %%n: tensor<2xi64>, %%c: tensor<4xcomplex<f32>>, %%t: "
                   "!stablehlo.token) {\n%s\nreturn\n}\n",
                   body);
}

static void refuses(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(refused); i++) {
    char *text = program(refused[i][0]);
    Module *m;
    ok_with(stablehlo_read_text("t.mlir", str_from(text), &m), refused[i][0]);
    Err *e = ir_verify(m);
    if (!e || !strstr(e->msg, refused[i][1])) {
      print_error("%s\n  gives %s\n  not   %s\n", refused[i][0], e ? e->msg : "no error",
                  refused[i][1]);
      fail();
    }
    assert_non_null(e->place); /* every message names the line */
    assert_true(!strncmp(e->place, "t.mlir:", 7));
    err_free(e);
    module_free(m);
    free(text);
  }
}

/* Values that are not visible where they are used: only a builder can make these. */
static void dominance(void **state) {
  (void)state;
  char *text = program("%0 = stablehlo.abs %a : " A
                       "\n%1 = \"stablehlo.if\"(%p) ({\n%2 = stablehlo.abs %0 : " A
                       "\nstablehlo.return %2 : " A "\n}, {\nstablehlo.return %0 : " A
                       "\n}) : (tensor<i1>) -> " A "\n%3 = stablehlo.abs %1 : " A);
  Module *m;
  ok_with(stablehlo_read_text("t.mlir", str_from(text), &m), text);
  Op *abs0 = m->funcs.v[1]->body->first, *branch = abs0->next, *abs3 = branch->next;
  ok_with(ir_verify(m), text);
  Value *inner = &branch->regions[0]->first->results[0];
  Value *bad[] = {inner, &abs3->results[0]};
  for (int i = 0; i < 2; i++) {
    Value *good = abs3->operands[0];
    abs3->operands[0] = bad[i]; /* from inside of a region; itself */
    Err *e = ir_verify(m);
    assert_non_null(e);
    assert_non_null(strstr(e->msg, "used before it is defined"));
    err_free(e);
    abs3->operands[0] = good;
  }
  module_free(m);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(corpus), cmocka_unit_test(refuses),
                                     cmocka_unit_test(dominance)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
