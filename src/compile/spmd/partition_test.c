/* The partitioned program, run by 8 processes on the interpreter, answers like the global one: the
 * golden programs that JAX sharded over 8 devices, arguments cut and results joined by their
 * shardings. */
#include "compile/spmd/partition_test.h"

#include "base/npy.h"
#include "ir/random_test.h"

#include <stdio.h>
#include <stdlib.h>

#define PROGRAMS 100
#define CORPUS WEFT_SOURCE_DIR "/tests/golden/corpus/"

static Tensor *tensor_of(const Npy *a, DType t) {
  Tensor *x = tensor_make(t, a->rank, a->dims);
  memcpy(x->data, a->data, tensor_bytes(x));
  return x;
}

static void check_program(const char *name) {
  char path[512];
  snprintf(path, sizeof path, CORPUS "%s.mlirbc", name);
  Buf bytes = {0};
  ok(file_read(path, &bytes));
  Module *m = NULL;
  ok(stablehlo_read(name, (Str){bytes.p, bytes.n}, &m));
  snprintf(path, sizeof path, CORPUS "%s.npz", name);
  Npz z = {0};
  ok(npz_read(path, &z));
  ok(pass_inline(m));
  Tensor *t[2][64];
  const Type *type = module_main(m)->type;
  int n[2] = {type->n_elems, type->n_results};
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < n[k]; i++) {
      snprintf(path, sizeof path, k ? "out%d" : "in%d", i);
      Type *const *of = k ? type->results : type->elems;
      t[k][i] = tensor_of(npz_find(&z, path), of[i]->dtype);
    }
  check_module(name, m, t[0], t[1], NULL);
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < n[k]; i++) tensor_release(t[k][i]);
  npz_free(&z);
  buf_free(&bytes);
}

/* ---- random programs ------------------------------------------------------------------------- */

/* Over four devices, two or all, as far as the sizes are multiples. */
static void put_random_sharding(Buf *b, Random *r, const Type *t) {
  static const char *const cuts[] = {"", "\"x\"", "\"y\"", "\"x\", \"y\""};
  static const int sizes[] = {1, 4, 2, 8};
  int used = 0;
  buf_cstr(b, " {sdy.sharding = #sdy.sharding<@m, [");
  for (int i = 0; i < t->rank; i++) {
    int cut = (int)random_below(r, 4);
    if (used & cut || t->dims[i] % sizes[cut]) cut = 0;
    used |= cut;
    buf_printf(b, "%s{%s}", i ? ", " : "", cuts[cut]);
  }
  buf_cstr(b, "]>}");
}

/* The program again, its arguments cut. */
static Module *cut_randomly(uint64_t seed, const Module *m, char **out_text) {
  Random r = {.state = seed};
  Buf text = {0}, b = {0};
  stablehlo_write_text(&text, m, NULL);
  const char *p = strstr(text.p, "func.func"), *body = strchr(p, '\n');
  buf_cstr(&b, "sdy.mesh @m = <[\"x\"=4, \"y\"=2]>\n");
  for (int i = 0; i < module_main(m)->type->n_elems; i++) {
    const char *end = strchr(strstr(p, "%arg"), '>') + 1;
    buf_add(&b, p, (size_t)(end - p));
    put_random_sharding(&b, &r, module_main(m)->type->elems[i]);
    p = end;
  }
  buf_add(&b, p, (size_t)(body - p));
  buf_cstr(&b, body);
  *strrchr(b.p, '}') = ' '; /* of the module */
  Module *cut = NULL;
  *out_text = b.p;
  ok(stablehlo_read("random", str_from(b.p), &cut));
  buf_free(&text);
  return cut;
}

static void test_random(void **state) {
  (void)state;
  unsigned long long from = 1, count = PROGRAMS;
  const char *given = env_get("SEEDS");
  if (given && sscanf(given, "%llu %llu", &from, &count) != 2) fail_msg("SEEDS=\"FROM COUNT\"");
  for (uint64_t seed = from; seed < from + count; seed++) {
    bool exact[RANDOM_RESULTS];
    double tolerance[RANDOM_RESULTS];
    char *text;
    Module *m = random_program(seed, 1, exact), *cut = cut_randomly(seed, m, &text);
    for (int i = 0; i < RANDOM_RESULTS; i++)
      tolerance[i] = exact[i] ? 0 : random_tolerance(module_main(m));
    char *name = xasprintf("seed %llu\n%s", (unsigned long long)seed, text);
    check_on_itself(name, cut, tolerance);
    free(name);
    free(text);
    module_free(m);
  }
}

/* ---- small programs -------------------------------------------------------------------------- */

/* What cross-entropy does: a batch's own entries are picked, and their gradients put back. */
/* clang-format off */
static const char picked[] = MESH
    "func.func @main(%x: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}, "
        "%i: tensor<16x1x1xi32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}, {}]>}) -> "
        "(tensor<16x1xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}, tensor<16x8xf32> "
        "{sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}) {\n"
    "  %g = \"stablehlo.gather\"(%x, %i) <{dimension_numbers = "
        "#stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], "
        "start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, "
        "slice_sizes = array<i64: 1, 1>}> : (tensor<16x8xf32>, tensor<16x1x1xi32>) -> "
        "tensor<16x1xf32>\n"
    "  %s = \"stablehlo.scatter\"(%x, %i, %g) <{scatter_dimension_numbers = "
        "#stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], "
        "scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], "
        "index_vector_dim = 2>}> ({\n"
    "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
    "  %c = stablehlo.add %a, %b : tensor<f32>\n"
    "  stablehlo.return %c : tensor<f32>}) : (tensor<16x8xf32>, tensor<16x1x1xi32>, "
        "tensor<16x1xf32>) -> tensor<16x8xf32>\n"
    "  return %g, %s : tensor<16x1xf32>, tensor<16x8xf32>}";
/* clang-format on */

/* The same of classes that are cut: each device picks what it has, nobody fetches. */
/* clang-format off */
static const char picked_apart[] =
    "sdy.mesh @m = <[\"d\"=2, \"t\"=4]>\n"
    "func.func @main(%x: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {\"t\"}]>}, "
        "%i: tensor<16x1x1xi32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}, {}]>}) -> "
        "(tensor<16x1xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}, tensor<16x8xf32> "
        "{sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {\"t\"}]>}) {\n"
    "  %g = \"stablehlo.gather\"(%x, %i) <{dimension_numbers = "
        "#stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], "
        "start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, "
        "slice_sizes = array<i64: 1, 1>}> : (tensor<16x8xf32>, tensor<16x1x1xi32>) -> "
        "tensor<16x1xf32>\n"
    "  %z = stablehlo.constant dense<0.0> : tensor<16x8xf32>\n"
    "  %s = \"stablehlo.scatter\"(%z, %i, %g) <{scatter_dimension_numbers = "
        "#stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], "
        "scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], "
        "index_vector_dim = 2>}> ({\n"
    "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
    "  %c = stablehlo.add %a, %b : tensor<f32>\n"
    "  stablehlo.return %c : tensor<f32>}) : (tensor<16x8xf32>, tensor<16x1x1xi32>, "
        "tensor<16x1xf32>) -> tensor<16x8xf32>\n"
    "  return %g, %s : tensor<16x1xf32>, tensor<16x8xf32>}";
/* clang-format on */

/* A table's gradient: every device sums its own rows, then all sum theirs. */
/* clang-format off */
static const char table[] = MESH
    "func.func @main(%u: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}, "
        "%i: tensor<16x1xi32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}) -> "
        "tensor<8x4xf32> {\n"
    "  %z = stablehlo.constant dense<0.0> : tensor<8x4xf32>\n"
    "  %s = \"stablehlo.scatter\"(%z, %i, %u) <{scatter_dimension_numbers = "
        "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
        "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n"
    "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
    "  %c = stablehlo.add %a, %b : tensor<f32>\n"
    "  stablehlo.return %c : tensor<f32>}) : (tensor<8x4xf32>, tensor<16x1xi32>, "
        "tensor<16x4xf32>) -> tensor<8x4xf32>\n"
    "  return %s : tensor<8x4xf32>}";
/* clang-format on */

/* An embedding cut both ways and its gradient: tokens that share a part of the features are gathered, rows
 * of the others' are zeros that are added, and what comes out goes where it is wanted. */
/* clang-format off */
static const char embedding[] =
    "sdy.mesh @m = <[\"d\"=2, \"f\"=2, \"t\"=2]>\n"
    "func.func @main(%x: tensor<640x16xf32> {sdy.sharding = #sdy.sharding<@m, [{\"t\"}, {\"f\"}]>}, "
        "%i: tensor<16xi32> {sdy.sharding = #sdy.sharding<@m, [{\"d\", \"f\"}]>}, "
        "%u: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\", \"f\"}, {}]>}) -> "
        "(tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\", \"f\"}, {}]>}, "
        "tensor<640x16xf32> {sdy.sharding = #sdy.sharding<@m, [{\"t\"}, {\"f\"}]>}) {\n"
    "  %c = stablehlo.constant dense<100> : tensor<16xi32>\n"
    "  %b = stablehlo.multiply %i, %c : tensor<16xi32>\n"
    "  %j = stablehlo.reshape %b : (tensor<16xi32>) -> tensor<16x1xi32>\n"
    "  %g = \"stablehlo.gather\"(%x, %j) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], "
        "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
        "slice_sizes = array<i64: 1, 16>}> : (tensor<640x16xf32>, tensor<16x1xi32>) -> tensor<16x16xf32>\n"
    "  %z = stablehlo.constant dense<0.0> : tensor<640x16xf32>\n"
    "  %s = \"stablehlo.scatter\"(%z, %j, %u) <{scatter_dimension_numbers = "
        "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
        "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n"
    "  ^bb0(%p: tensor<f32>, %q: tensor<f32>):\n"
    "  %a = stablehlo.add %p, %q : tensor<f32>\n"
    "  stablehlo.return %a : tensor<f32>}) : (tensor<640x16xf32>, tensor<16x1xi32>, "
        "tensor<16x16xf32>) -> tensor<640x16xf32>\n"
    "  return %g, %s : tensor<16x16xf32>, tensor<640x16xf32>}";
/* clang-format on */

static void test_embedding(void **state) {
  (void)state;
  assert_in_range(check_text("embedding", embedding), 1, 2); /* of tokens */
}

/* What a scan does with what it keeps: rows stacked, and taken from the stack. */
/* clang-format off */
static const char stacked[] = MESH
    "func.func @main(%s: tensor<3x16x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {\"d\"}, "
        "{}]>}, %x: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}) -> "
        "(tensor<3x16x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {\"d\"}, {}]>}, "
        "tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}) {\n"
    "  %o = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %n = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %r = stablehlo.reshape %x : (tensor<16x4xf32>) -> tensor<1x16x4xf32>\n"
    "  %u = stablehlo.dynamic_update_slice %s, %r, %o, %n, %n : (tensor<3x16x4xf32>, "
        "tensor<1x16x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x16x4xf32>\n"
    "  %d = stablehlo.dynamic_slice %s, %o, %n, %n, sizes = [1, 16, 4] : "
        "(tensor<3x16x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x4xf32>\n"
    "  %t = stablehlo.reshape %d : (tensor<1x16x4xf32>) -> tensor<16x4xf32>\n"
    "  return %u, %t : tensor<3x16x4xf32>, tensor<16x4xf32>}";
/* clang-format on */

static void test_stacks(void **state) {
  (void)state;
  assert_int_equal(check_text("stacked", stacked), 0);
}

/* The gradient of a weight that is cut over the same devices as the batch: own products, summed and
 * cut in one exchange. */
/* clang-format off */
static const char weight[] = MESH
    "func.func @main(%x: tensor<32x8xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}, "
        "%y: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}) -> "
        "(tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {\"d\"}]>}) {\n"
    "  %w = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<32x8xf32>, "
        "tensor<32x16xf32>) -> tensor<8x16xf32>\n"
    "  return %w : tensor<8x16xf32>}";
/* clang-format on */

static void test_weight_gradient(void **state) {
  (void)state;
  assert_int_equal(check_text("weight", weight), 0);
}

/* Two contracted dimensions, each cut in one of the operands, over the same devices: one of them can stay cut. */
/* clang-format off */
static const char crossed[] = MESH
    "func.func @main(%x: tensor<8x16x4xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}, {}]>}, "
        "%y: tensor<8x16x2xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {\"d\"}, {}]>}) -> "
        "tensor<4x2xf32> {\n"
    "  %w = stablehlo.dot_general %x, %y, contracting_dims = [0, 1] x [0, 1] : (tensor<8x16x4xf32>, "
        "tensor<8x16x2xf32>) -> tensor<4x2xf32>\n"
    "  return %w : tensor<4x2xf32>}";
/* A width more is a dimension at the end: what comes before stays cut. */
static const char widths[] = MESH
    "func.func @main(%x: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}) -> "
        "(tensor<16x4x4xui8>, tensor<16x4xi32>) {\n"
    "  %b = stablehlo.bitcast_convert %x : (tensor<16x4xf32>) -> tensor<16x4x4xui8>\n"
    "  %i = stablehlo.bitcast_convert %b : (tensor<16x4x4xui8>) -> tensor<16x4xi32>\n"
    "  return %b, %i : tensor<16x4x4xui8>, tensor<16x4xi32>}";
/* A constraint that does not come out even: that value stays whole. */
static const char uneven[] = MESH
    "func.func @main(%x: tensor<16x12xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}) -> "
        "tensor<12x16xf32> {\n"
    "  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<16x12xf32>) -> tensor<12x16xf32>\n"
    "  %c = sdy.sharding_constraint %t <@m, [{\"d\"}, {}]> : tensor<12x16xf32>\n"
    "  %r = stablehlo.add %c, %c : tensor<12x16xf32>\n"
    "  return %r : tensor<12x16xf32>}";
/* clang-format on */

static void test_cuts_that_collide(void **state) {
  (void)state;
  check_text("crossed", crossed);
  assert_int_equal(check_text("widths", widths), 0);
  check_text("uneven", uneven);
}

/* What stays whole, and says so. */
static void test_not_partitioned(void **state) {
  (void)state;
  static const char *const texts[] = {
      "module { sdy.mesh @a = <[\"w\"=2, \"x\"=3]>\nsdy.mesh @b = <[\"y\"=3, \"z\"=2]>\n"
      "func.func @main(%p: tensor<6xf32> {sdy.sharding = #sdy.sharding<@a, [{\"x\"}]>}, "
      "%q: tensor<6xf32> {sdy.sharding = #sdy.sharding<@b, [{\"z\"}]>}) -> tensor<6xf32> {\n"
      "  %r = stablehlo.add %p, %q : tensor<6xf32>\n  return %r : tensor<6xf32>}}",
      "module { sdy.mesh @a = <[\"x\"=8]>\n"
      "func.func @main(%p: tensor<12xf32> {sdy.sharding = #sdy.sharding<@a, [{\"x\"}]>}) -> "
      "tensor<12xf32> {\n  return %p : tensor<12xf32>}}"};
  for (int i = 0; i < COUNT_OF(texts); i++) {
    Module *m = parsed("whole", texts[i]);
    bool done = true;
    Err *e = pass_partition(m, &done);
    assert_non_null(e);
    assert_int_equal(e->code, ERR_UNIMPLEMENTED);
    assert_false(done);
    err_free(e);
    module_free(m);
  }
}

/* An axis that moves to another dimension is exchanged part by part, and a broadcast made anew. */
/* clang-format off */
static const char moved[] = MESH
    "func.func @main(%x: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}, "
        "%w: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}]>}) -> (tensor<16x8xf32> "
        "{sdy.sharding = #sdy.sharding<@m, [{}, {\"d\"}]>}, tensor<16x8xf32> {sdy.sharding = "
        "#sdy.sharding<@m, [{\"d\"}, {}]>}) {\n"
    "  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<16x8xf32>) -> tensor<8x16xf32>\n"
    "  %u = stablehlo.transpose %t, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>\n"
    "  %b = stablehlo.broadcast_in_dim %w, dims = [1] : (tensor<8xf32>) -> tensor<16x8xf32>\n"
    "  %p = stablehlo.multiply %x, %b : tensor<16x8xf32>\n"
    "  return %u, %p : tensor<16x8xf32>, tensor<16x8xf32>}";
/* clang-format on */

static void test_moves(void **state) {
  (void)state;
  assert_int_equal(check_text("moved", moved), 1); /* of 8 numbers */
}

/* The gradient of a table cut by the axis that cuts its tokens: of many tokens each device adds its own into all rows,
 * and these sums are scattered; of few, all go to each device, which takes those of its rows. */
static void test_sums_of_rows(void **state) {
  (void)state;
  for (int many = 0; many < 2; many++) {
    Buf text = {0};
    int tokens = many ? 64 : 8, rows = many ? 16 : 64;
    buf_printf(&text,
               MESH
               "func.func @main(%%u: tensor<%dx4xf32> {sdy.sharding = #sdy.sharding<@m, "
               "[{\"d\"}, {}]>}, %%i: tensor<%dx1xi32> {sdy.sharding = #sdy.sharding<@m, "
               "[{\"d\"}, {}]>}) -> (tensor<%dx4xf32> {sdy.sharding = #sdy.sharding<@m, "
               "[{\"d\"}, {}]>}) {\n  %%z = stablehlo.constant dense<0.0> : tensor<%dx4xf32>\n",
               tokens, tokens, rows, rows);
    buf_printf(&text,
               "  %%s = \"stablehlo.scatter\"(%%z, %%i, %%u) <{scatter_dimension_numbers = "
               "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
               "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n"
               "  ^bb0(%%a: tensor<f32>, %%b: tensor<f32>):\n"
               "  %%c = stablehlo.add %%a, %%b : tensor<f32>\n"
               "  stablehlo.return %%c : tensor<f32>}) : (tensor<%dx4xf32>, tensor<%dx1xi32>, "
               "tensor<%dx4xf32>) -> tensor<%dx4xf32>\n  return %%s : tensor<%dx4xf32>}",
               rows, tokens, tokens, rows, rows);
    Module *m = parsed("sums of rows", text.p);
    bool done;
    ok(pass_partition(m, &done));
    int scattered = 0, gathered = 0;
    for (const Op *op = module_main(m)->body->first; op; op = op->next) {
      scattered += op->kind == OP_REDUCE_SCATTER;
      gathered += op->kind == OP_ALL_GATHER;
    }
    assert_int_equal(scattered, many);
    assert_int_equal(gathered, many ? 0 : 2); /* tokens and their rows */
    module_free(m);
    check_text("sums of rows", text.p);
    buf_free(&text);
  }
}

/* clang-format off */
static const char picked_for_own[] = MESH
    "func.func @main(%t: tensor<64x4xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}, "
    "%i: tensor<8x1xi32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}) -> "
    "(tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}) {\n"
    "  %g = \"stablehlo.gather\"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], "
    "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
    "slice_sizes = array<i64: 1, 4>}> : (tensor<64x4xf32>, tensor<8x1xi32>) -> tensor<8x4xf32>\n"
    "  return %g : tensor<8x4xf32>}";
/* clang-format on */

/* Rows of a table that is cut, picked for tokens cut over the same axis: as XLA has it, each device is sent
 * the sums of its own tokens alone. */
static void test_scattered_rows(void **state) {
  (void)state;
  Module *m = partitioned("picked for own", picked_for_own);
  int scattered = 0, summed = 0;
  for (const Op *op = module_main(m)->body->first; op; op = op->next) {
    scattered += op->kind == OP_REDUCE_SCATTER;
    summed += op->kind == OP_ALL_REDUCE;
  }
  assert_int_equal(scattered, 1);
  assert_int_equal(summed, 0);
  module_free(m);
  check_text("picked for own", picked_for_own);
}

/* clang-format off */
#define ROWS "{sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}"
#define FLAT "{sdy.sharding = #sdy.sharding<@m, [{\"d\"}]>}"
static const char diagonal[] = MESH
    "func.func @main(%t: tensor<16x16xf32> " ROWS ", %i: tensor<16x2xi32> " ROWS ", %u: tensor<16xf32> " FLAT ") -> (tensor<16xf32>, tensor<16x16xf32> " ROWS ") {\n"
    "  %g = \"stablehlo.gather\"(%t, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, "
    "slice_sizes = array<i64: 1, 1>}> : (tensor<16x16xf32>, tensor<16x2xi32>) -> tensor<16xf32>\n"
    "  %z = stablehlo.constant dense<0.0> : tensor<16x16xf32>\n"
    "  %s = \"stablehlo.scatter\"(%z, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], "
    "scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}> ({\n"
    "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n  %c = stablehlo.add %a, %b : tensor<f32>\n  stablehlo.return %c : tensor<f32>}) : "
    "(tensor<16x16xf32>, tensor<16x2xi32>, tensor<16xf32>) -> tensor<16x16xf32>\n"
    "  return %g, %s : tensor<16xf32>, tensor<16x16xf32>}";
/* clang-format on */

/* Single elements of a matrix that is cut, read and added by two numbers each, as diagonals are: as with rows, the
 * matrix stays where it is. */
static void test_elements(void **state) {
  (void)state;
  Module *m = partitioned("elements", diagonal);
  for (const Op *op = module_main(m)->body->first; op; op = op->next)
    if (op_info[op->kind].cls == OC_COLLECTIVE && op->n_results)
      assert_true(type_count(op_type(op)) < 64); /* indices and elements */
  module_free(m);
  check_text("elements", diagonal);
}

/* Updates of a table that is there: sums of many, which are cut as the table is, are added to it and scattered; what
 * replaces rows is sent to those who have them. body: of two rows. */
static void test_updated_rows(void **state) {
  (void)state;
  static const char *const bodies[] = {"%c = stablehlo.add %a, %b : tensor<f32>",
                                       "%c = stablehlo.maximum %a, %b : tensor<f32>"};
  for (int i = 0; i < 2; i++) {
    char *text = xasprintf(
        MESH "func.func @main(%%t: tensor<16x4xf32> " ROWS ", %%i: tensor<64x1xi32> " ROWS
             ", %%u: tensor<64x4xf32> " ROWS ") -> (tensor<16x4xf32> " ROWS ") {\n"
             "  %%s = \"stablehlo.scatter\"(%%t, %%i, %%u) <{scatter_dimension_numbers = "
             "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
             "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n"
             "  ^bb0(%%a: tensor<f32>, %%b: tensor<f32>):\n  %s\n"
             "  stablehlo.return %%c : tensor<f32>}) : (tensor<16x4xf32>, tensor<64x1xi32>, "
             "tensor<64x4xf32>) -> tensor<16x4xf32>\n  return %%s : tensor<16x4xf32>}",
        bodies[i]);
    Module *m = parsed("updated rows", text);
    bool done;
    ok(pass_partition(m, &done));
    int scattered = 0, gathered = 0;
    for (const Op *op = module_main(m)->body->first; op; op = op->next) {
      scattered += op->kind == OP_REDUCE_SCATTER;
      gathered += op->kind == OP_ALL_GATHER;
      if (op->kind == OP_ALL_GATHER) assert_int_equal(op_type(op)->dims[0], 64); /* no table */
    }
    assert_int_equal(scattered, i == 0 ? 1 : 0);
    assert_int_equal(gathered, i == 0 ? 0 : 2);
    module_free(m);
    check_text("updated rows", text);
    free(text);
  }
}

static void test_lookups(void **state) {
  (void)state;
  assert_int_equal(check_text("picked", picked), 0);
  assert_int_equal(check_text("picked apart", picked_apart), 0);
  assert_int_equal(check_text("table", table), 0);
}

static void test_train_step(void **state) {
  (void)state;
  check_program("dp_train_step_shardy");
}

static void test_matmul(void **state) {
  (void)state;
  check_program("pjit_matmul_shardy");
}

static void test_collectives(void **state) {
  (void)state;
  static const char *const names[] = {"coll_psum", "coll_all_gather", "coll_ppermute",
                                      "coll_psum_scatter", "pmap_psum"};
  for (int i = 0; i < COUNT_OF(names); i++) check_program(names[i]);
}

/* What a program says of values that it only names: groups sharded alike, layouts. */
static void test_wishes(void **state) {
  (void)state;
  static const char text[] =
      "module { sdy.mesh @mesh = <[\"x\"=8]>\n"
      "func.func @main(%a: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>})"
      " -> tensor<4x16xf32> {\n"
      "  %i = stablehlo.iota dim = 0 : tensor<16x4xf32>\n"
      "  sdy.sharding_group %a group_id = 3 : tensor<16x4xf32>\n"
      "  sdy.sharding_group %i group_id = 3 : tensor<16x4xf32>\n"
      "  %l = stablehlo.custom_call @LayoutConstraint(%i) : (tensor<16x4xf32>) -> "
      "tensor<16x4xf32>\n"
      "  %t = stablehlo.transpose %l, dims = [1, 0] : (tensor<16x4xf32>) -> tensor<4x16xf32>\n"
      "  return %t : tensor<4x16xf32>\n}}";
  Module *m = parsed("wishes", text);
  pass_propagate(m, false);
  const Func *f = module_main(m);
  const Sharding *s = sharding(f->res_attrs[0], f->n_res_attrs[0]);
  assert_non_null(s);
  assert_int_equal(s->dims[0].n_axes, 0);
  assert_int_equal(s->dims[1].n_axes, 1);
  bool done;
  ok(pass_partition(m, &done));
  for (const Op *op = module_main(m)->body->first; op; op = op->next)
    assert_int_not_equal(op->kind, OP_ALL_GATHER); /* nobody fetches for a wish */
  module_free(m);
}

/* Results as JAX 0.10.2 on eight CPU devices cuts them: an argument without a sharding takes that of
 * its readers, and a sum decides before a product. */
static void test_found(void **state) {
  (void)state;
  static const char text[] =
      "module { sdy.mesh @mesh = <[\"x\"=8]>\n"
      "func.func @main(%p: tensor<8x8xf32>,"
      " %q: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {\"x\"}]>},"
      " %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>})"
      " -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {\n"
      "  %d = stablehlo.dot_general %p, %q, contracting_dims = [1] x [0]"
      " : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>\n"
      "  %0 = stablehlo.add %d, %a : tensor<8x8xf32>\n"
      "  %1 = stablehlo.multiply %d, %d : tensor<8x8xf32>\n"
      "  %2 = stablehlo.multiply %p, %p : tensor<8x8xf32>\n"
      "  return %0, %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>\n}}";
  Module *m = parsed("found", text);
  pass_propagate(m, false);
  const Func *f = module_main(m);
  for (int i = 0; i < 3; i++) {
    const Sharding *s = sharding(f->res_attrs[i], f->n_res_attrs[i]);
    assert_int_equal(s->dims[0].n_axes, 1);
    assert_int_equal(s->dims[1].n_axes, 0);
  }
  assert_null(sharding(f->arg_attrs[0], f->n_arg_attrs[0])); /* it still arrives whole */
  module_free(m);
}

/* Of two shardings that exclude each other, as JAX 0.10.2 on eight CPU devices decides: the larger array's, and of
 * an element-wise operation the one with more parts. cuts: one letter for each axis, a comma between dimensions. */
/* clang-format off */
static const struct { const char *cuts, *args, *body; } contests[] = {
    {"d,f", "%x: tensor<640x16xf32> {sdy.sharding = #sdy.sharding<@m, [{\"t\"}, {\"f\"}]>}, "
            "%i: tensor<16x1xi32> {sdy.sharding = #sdy.sharding<@m, [{\"d\", \"f\"}, {}]>}",
        "  %r = \"stablehlo.gather\"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], "
        "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = "
        "array<i64: 1, 16>}> : (tensor<640x16xf32>, tensor<16x1xi32>) -> tensor<16x16xf32>\n"},
    {",f", "%x: tensor<640x16xf32> {sdy.sharding = #sdy.sharding<@m, [{\"t\"}, {\"f\"}]>}, "
           "%i: tensor<16x1xi32> {sdy.sharding = #sdy.sharding<@m, [{\"f\"}, {}]>}",
        "  %r = \"stablehlo.gather\"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], "
        "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = "
        "array<i64: 1, 16>}> : (tensor<640x16xf32>, tensor<16x1xi32>) -> tensor<16x16xf32>\n"},
    {"df,", "%x: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\", \"f\"}, {}]>}, "
            "%i: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {\"f\"}]>}",
        "  %r = stablehlo.add %x, %i : tensor<16x16xf32>\n"},
    {",df", "%x: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@m, [{\"f\"}, {}]>}, "
            "%i: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {\"d\", \"f\"}]>}",
        "  %r = stablehlo.add %x, %i : tensor<16x16xf32>\n"},
    {",f", "%x: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}]>}, "
           "%i: tensor<16xf32> {sdy.sharding = #sdy.sharding<@m, [{\"f\"}]>}",
        "  %b = stablehlo.broadcast_in_dim %i, dims = [1] : (tensor<16xf32>) -> tensor<16x16xf32>\n"
        "  %r = stablehlo.multiply %x, %b : tensor<16x16xf32>\n"},
    {"d,f", "%x: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {\"f\"}]>}", /* of itself */
        "  %r = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> "
        "tensor<16x16xf32>\n"},
    /* a loop that hands a value on is no way for its sharding: it is known inside before the weight is seen */
    {"d,", "%a: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}, %k: tensor<16x16xf32>, "
     "%w: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {\"d\"}]>}",
     "  %g = stablehlo.dot_general %a, %k, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>\n"
     "  %z = stablehlo.constant dense<0.0> : tensor<16x16xf32>\n"
     "  %i = stablehlo.constant dense<0> : tensor<i32>\n"
     "  %o:3 = stablehlo.while(%n = %i, %x = %g, %s = %z) : tensor<i32>, tensor<16x16xf32>, tensor<16x16xf32>\n"
     "   cond {\n"
     "    %c = stablehlo.constant dense<3> : tensor<i32>\n"
     "    %l = stablehlo.compare LT, %n, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
     "    stablehlo.return %l : tensor<i1>\n"
     "  } do {\n"
     "    %c = stablehlo.constant dense<1> : tensor<i32>\n"
     "    %m = stablehlo.add %n, %c : tensor<i32>\n"
     "    %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>\n"
     "    %t = stablehlo.add %s, %p : tensor<16x16xf32>\n"
     "    stablehlo.return %m, %x, %t : tensor<i32>, tensor<16x16xf32>, tensor<16x16xf32>\n"
     "  }\n"
     "  %r = stablehlo.negate %o#2 : tensor<16x16xf32>\n"},
};
/* clang-format on */

static void test_contests(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(contests); i++) {
    char *text = xasprintf("sdy.mesh @m = <[\"d\"=2, \"f\"=2, \"t\"=2]>\n"
                           "func.func @main(%s) -> tensor<16x16xf32> {\n%s"
                           "  return %%r : tensor<16x16xf32>\n}",
                           contests[i].args, contests[i].body);
    Module *m = parsed("contest", text);
    pass_propagate(m, false);
    const Sharding *s = sharding(module_main(m)->res_attrs[0], module_main(m)->n_res_attrs[0]);
    Buf cuts = {0};
    for (int d = 0; d < s->n_dims; d++) {
      if (d) buf_cstr(&cuts, ",");
      for (int k = 0; k < s->dims[d].n_axes; k++)
        buf_add(&cuts, s->dims[d].axes[k].name.p, s->dims[d].axes[k].name.n);
    }
    assert_string_equal(cuts.p, contests[i].cuts);
    buf_free(&cuts);
    module_free(m);
    check_text("contest", text); /* and its numbers are right */
    free(text);
  }
}

/* shard_map as JAX wrote it before Shardy: the body's own collectives, within a manual computation. */
static void test_manual_of_gspmd(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%a: tensor<16x4xf32>) -> (tensor<16x4xf32>, tensor<8xi32>) {\n"
      "  %0 = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = \"{devices=[2,1,4]<=[8] "
      "last_tile_dim_replicate}\"} : (tensor<16x4xf32>) -> tensor<16x4xf32>\n"
      "  %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = \"{manual}\"} : "
      "(tensor<16x4xf32>) -> tensor<8x4xf32>\n"
      "  %2 = call @body(%1) : (tensor<8x4xf32>) -> tensor<8x4xf32>\n"
      "  %3 = stablehlo.custom_call @Sharding(%2) {mhlo.sharding = \"{manual}\"} : "
      "(tensor<8x4xf32>) -> tensor<8x4xf32>\n"
      "  %4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {mhlo.sharding = \"{devices=[2,1,4]"
      "<=[8] last_tile_dim_replicate}\"} : (tensor<8x4xf32>) -> tensor<16x4xf32>\n"
      "  %5 = call @place() : () -> tensor<1xi32>\n"
      "  %6 = stablehlo.custom_call @Sharding(%5) {mhlo.sharding = \"{manual}\"} : (tensor<1xi32>) "
      "-> tensor<1xi32>\n"
      "  %7 = stablehlo.custom_call @SPMDShardToFullShape(%6) {mhlo.sharding = \"{devices=[8]<=[8]}"
      "\"} : (tensor<1xi32>) -> tensor<8xi32>\n"
      "  return %4, %7 : tensor<16x4xf32>, tensor<8xi32>\n}\n"
      "func.func private @body(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {\n"
      "  %p = stablehlo.partition_id : tensor<ui32>\n"
      "  %f = stablehlo.convert %p : (tensor<ui32>) -> tensor<f32>\n"
      "  %four = stablehlo.constant dense<4.0> : tensor<f32>\n"
      "  %q = stablehlo.divide %f, %four : tensor<f32>\n"
      "  %row = stablehlo.floor %q : tensor<f32>\n"
      "  %b = stablehlo.broadcast_in_dim %row, dims = [] : (tensor<f32>) -> tensor<8x4xf32>\n"
      "  %r = stablehlo.add %a, %b : tensor<8x4xf32>\n"
      "  return %r : tensor<8x4xf32>\n}\n"
      "func.func private @place() -> tensor<1xi32> {\n"
      "  %p = stablehlo.partition_id : tensor<ui32>\n"
      "  %i = stablehlo.convert %p : (tensor<ui32>) -> tensor<i32>\n"
      "  %r = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>\n"
      "  return %r : tensor<1xi32>\n}\n";
  Module *m = parsed("gspmd", text);
  shardings_from_gspmd(m, DEVICES);
  int manual = 0;
  for (const Op *op = module_main(m)->body->first; op; op = op->next) {
    assert_true(op->kind != OP_CUSTOM_CALL && op->kind != OP_CALL);
    manual += op->kind == OP_MANUAL_COMPUTATION;
  }
  assert_int_equal(manual, 2);
  ok(pass_inline(m));
  pass_open_arguments(m);
  assert_non_null(sharding(module_main(m)->arg_attrs[0], module_main(m)->n_arg_attrs[0]));
  Tensor *in = tensor_make(DT_F32, 2, (int64_t[]){16, 4}),
         *out[2] = {tensor_make(DT_F32, 2, (int64_t[]){16, 4}),
                    tensor_make(DT_I32, 1, (int64_t[]){8})};
  for (int k = 0; k < 64; k++) {
    ((float *)in->data)[k] = (float)k;
    ((float *)out[0]->data)[k] = (float)(k + (k >= 32));
    if (k < 8) ((int32_t *)out[1]->data)[k] = k;
  }
  check_module("manual", m, &in, out, NULL);
  tensor_release(in);
  for (int j = 0; j < 2; j++) tensor_release(out[j]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_manual_of_gspmd),
                                     cmocka_unit_test(test_matmul),
                                     cmocka_unit_test(test_train_step),
                                     cmocka_unit_test(test_collectives),
                                     cmocka_unit_test(test_lookups),
                                     cmocka_unit_test(test_elements),
                                     cmocka_unit_test(test_updated_rows),
                                     cmocka_unit_test(test_scattered_rows),
                                     cmocka_unit_test(test_sums_of_rows),
                                     cmocka_unit_test(test_stacks),
                                     cmocka_unit_test(test_embedding),
                                     cmocka_unit_test(test_weight_gradient),
                                     cmocka_unit_test(test_cuts_that_collide),
                                     cmocka_unit_test(test_not_partitioned),
                                     cmocka_unit_test(test_moves),
                                     cmocka_unit_test(test_wishes),
                                     cmocka_unit_test(test_found),
                                     cmocka_unit_test(test_contests),
                                     cmocka_unit_test(test_random)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
