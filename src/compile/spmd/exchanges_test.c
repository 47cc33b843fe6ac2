/* What devices exchange: how often, how much and of which type. */
#include "compile/spmd/partition_test.h"

/* A weight's gradient of a batch over two axes, one of which cuts the weight: each device gets its part of the
 * sum over that axis, and parts are summed over the other, as XLA has it. */
static void test_scattered_sums(void **state) {
  (void)state;
  static const char text[] =
      "sdy.mesh @m = <[\"d\"=2, \"f\"=4]>\n"
      "func.func @main(%x: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\", \"f\"}, "
      "{}]>}, "
      "%y: tensor<16x12xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\", \"f\"}, {}]>}) -> "
      "(tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@m, [{\"f\"}, {}]>}) {\n"
      "  %w = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<16x8xf32>, "
      "tensor<16x12xf32>) -> tensor<8x12xf32>\n"
      "  return %w : tensor<8x12xf32>\n}";
  Module *m = partitioned("scattered sums", text);
  for (const Op *op = module_main(m)->body->first; op; op = op->next)
    if (op->kind == OP_ALL_REDUCE) assert_int_equal(op_type(op)->dims[0], 2);
  assert_int_equal(count_kind(m, OP_REDUCE_SCATTER), 1);
  assert_int_equal(count_kind(m, OP_ALL_REDUCE), 1);
  assert_int_equal(count_kind(m, OP_DYNAMIC_SLICE), 0);
  module_free(m);
  check_text("scattered sums", text);
}

/* The same where the other operand's batch is cut over the first axis alone, as its columns are cut over the second: what
 * both have in common stays, and the rest of the first one's batch is fetched, not all of it. */
static void test_batch_in_common(void **state) {
  (void)state;
  static const char text[] =
      "sdy.mesh @m = <[\"d\"=2, \"f\"=4]>\n"
      "func.func @main(%x: tensor<16x12xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\", \"f\"}, "
      "{}]>}, "
      "%y: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {\"f\"}]>}) -> "
      "(tensor<12x8xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {\"f\"}]>}) {\n"
      "  %w = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<16x12xf32>, "
      "tensor<16x8xf32>) -> tensor<12x8xf32>\n"
      "  return %w : tensor<12x8xf32>\n}";
  Module *m = partitioned("batch in common", text);
  for (const Op *op = module_main(m)->body->first; op; op = op->next)
    if (op->kind == OP_ALL_GATHER) assert_int_equal(op_type(op)->dims[0], 8);
  assert_int_equal(count_kind(m, OP_ALL_GATHER), 1);
  assert_int_equal(count_kind(m, OP_ALL_REDUCE), 1);
  module_free(m);
  check_text("batch in common", text);
}

/* Two products of one array that must be whole: it is fetched once, as XLA does. */
static void test_fetched_once(void **state) {
  (void)state;
  static const char text[] = MESH
      "func.func @main(%x: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}, "
      "%w: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {\"d\"}]>}) -> "
      "(tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {\"d\"}]>}, tensor<16x16xf32> "
      "{sdy.sharding = #sdy.sharding<@m, [{}, {\"d\"}]>}) {\n"
      "  %v = stablehlo.negate %w : tensor<8x16xf32>\n"
      "  %a = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, "
      "tensor<8x16xf32>) -> tensor<16x16xf32>\n"
      "  %b = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<16x8xf32>, "
      "tensor<8x16xf32>) -> tensor<16x16xf32>\n"
      "  return %a, %b : tensor<16x16xf32>, tensor<16x16xf32>\n}";
  assert_int_equal(check_text("fetched once", text), 1);
}

/* One mask for two arrays that are cut along different dimensions: each has it as it is cut, as Shardy makes
 * constants again for each reader; nothing is fetched. */
static void test_masks(void **state) {
  (void)state;
  static const char text[] =
      MESH "func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}, "
           "%y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {\"d\"}]>}) -> "
           "(tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}, "
           "tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {\"d\"}]>}) {\n"
           "  %i = stablehlo.iota dim = 0 : tensor<8x8xi32>\n"
           "  %j = stablehlo.iota dim = 1 : tensor<8x8xi32>\n"
           "  %m = stablehlo.compare GE, %i, %j : (tensor<8x8xi32>, tensor<8x8xi32>) -> "
           "tensor<8x8xi1>\n"
           "  %c = stablehlo.constant dense<-1.0> : tensor<f32>\n"
           "  %z = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<8x8xf32>\n"
           "  %a = stablehlo.select %m, %x, %z : tensor<8x8xi1>, tensor<8x8xf32>\n"
           "  %b = stablehlo.select %m, %y, %z : tensor<8x8xi1>, tensor<8x8xf32>\n"
           "  return %a, %b : tensor<8x8xf32>, tensor<8x8xf32>\n}";
  Module *m = partitioned("masks", text);
  for (const Op *op = module_main(m)->body->first; op; op = op->next)
    assert_true(op->kind == OP_PARTITION_ID || op_info[op->kind].cls != OC_COLLECTIVE);
  module_free(m);
  check_text("masks", text);
}

/* The same row spread twice, for arrays that are cut along different dimensions, is one array, cut as the first reader
 * has it, as libtpu's partitioner has it; the second is sent its part of the whole. */
static void test_equal_broadcasts(void **state) {
  (void)state;
  static const char text[] =
      MESH "func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}, "
           "%y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {\"d\"}]>}, %v: "
           "tensor<8xf32>) -> "
           "(tensor<8x8xf32>, tensor<8x8xf32>) {\n"
           "  %p = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<8xf32>) -> tensor<8x8xf32>\n"
           "  %a = stablehlo.add %x, %p : tensor<8x8xf32>\n"
           "  %q = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<8xf32>) -> tensor<8x8xf32>\n"
           "  %b = stablehlo.add %y, %q : tensor<8x8xf32>\n"
           "  return %a, %b : tensor<8x8xf32>, tensor<8x8xf32>\n}";
  Module *m = partitioned("equal broadcasts", text);
  assert_int_equal(count_kind(m, OP_BROADCAST_IN_DIM), 1);
  assert_int_equal(count_kind(m, OP_ALL_TO_ALL), 1);
  module_free(m);
  check_text("equal broadcasts", text);
}

/* What is rounded before it is read whole is sent rounded, as by libtpu. */
static void test_sent_narrow(void **state) {
  (void)state;
  static const char text[] = MESH
      "func.func @main(%x: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}) -> "
      "(tensor<16x8xbf16> {sdy.sharding = #sdy.sharding<@m, [{}, {}]>}) {\n"
      "  %y = stablehlo.negate %x : tensor<16x8xf32>\n"
      "  %z = stablehlo.convert %y : (tensor<16x8xf32>) -> tensor<16x8xbf16>\n"
      "  %w = sdy.sharding_constraint %z <@m, [{}, {}]> : tensor<16x8xbf16>\n"
      "  return %w : tensor<16x8xbf16>\n}";
  Module *m = partitioned("sent narrow", text);
  for (const Op *op = module_main(m)->body->first; op; op = op->next)
    if (op->kind == OP_ALL_GATHER) assert_int_equal(op_type(op)->dtype, DT_BF16);
  assert_int_equal(count_kind(m, OP_ALL_GATHER), 1);
  module_free(m);
  check_text("sent narrow", text);
}

/* Independent problems of linear algebra stay where they are. */
static void test_batches(void **state) {
  (void)state;
  static const char text[] =
      "module { sdy.mesh @mesh = <[\"x\"=8]>\n"
      "func.func @main(%a: tensor<8x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {},"
      " {}]>}) -> (tensor<8x4x4xf32>, tensor<8x4xi32>, tensor<8x4x4xcomplex<f32>>) {\n"
      "  %c = stablehlo.cholesky %a, lower = true : tensor<8x4x4xf32>\n"
      "  %s = \"stablehlo.triangular_solve\"(%c, %a) <{left_side = true, lower = true,"
      " transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}>"
      " : (tensor<8x4x4xf32>, tensor<8x4x4xf32>) -> tensor<8x4x4xf32>\n"
      "  %l:3 = stablehlo.custom_call @lapack_sgetrf_ffi(%s)"
      " {mhlo.frontend_attributes = {num_batch_dims = \"1\"}}"
      " : (tensor<8x4x4xf32>) -> (tensor<8x4x4xf32>, tensor<8x4xi32>, tensor<8xi32>)\n"
      "  %z = stablehlo.convert %s : (tensor<8x4x4xf32>) -> tensor<8x4x4xcomplex<f32>>\n"
      "  %f = stablehlo.fft %z, type = FFT, length = [4, 4]"
      " : (tensor<8x4x4xcomplex<f32>>) -> tensor<8x4x4xcomplex<f32>>\n"
      "  return %l#0, %l#1, %f : tensor<8x4x4xf32>, tensor<8x4xi32>,"
      " tensor<8x4x4xcomplex<f32>>\n}}";
  Module *m = partitioned("batches", text);
  int ops = 0;
  for (const Op *op = module_main(m)->body->first; op; op = op->next) ops++;
  assert_int_equal(ops, 6); /* no exchange */
  const Type *types = module_main(m)->type;
  for (int i = 0; i < 3; i++) assert_int_equal(types->results[i]->dims[0], 1);
  module_free(m);
}

/* Products of parts that are asked for as they are: summed once, after a second was added, by who wants the sum. */
static void test_unsummed(void **state) {
  (void)state;
  static const char text[] =
      "module { sdy.mesh @mesh = <[\"x\"=4]>\n"
      "func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {\"x\"}]>},"
      " %b: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>},"
      " %c: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={\"x\"}>})"
      " -> (tensor<8x8xf32>, tensor<8x8xf32>) {\n"
      "  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]"
      " : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>\n"
      "  %1 = sdy.sharding_constraint %0 <@mesh, [{}, {}], unreduced={\"x\"}> : tensor<8x8xf32>\n"
      "  %2 = stablehlo.add %1, %c : tensor<8x8xf32>\n"
      "  %3 = sdy.sharding_constraint %2 <@mesh, [{}, {}], unreduced={\"x\"}> : tensor<8x8xf32>\n"
      "  %4 = sdy.sharding_constraint %3 <@mesh, [{}, {}]> : tensor<8x8xf32>\n"
      "  return %3, %4 : tensor<8x8xf32>, tensor<8x8xf32>\n}}";
  Module *m = partitioned("unsummed", text);
  OpKind kinds[8];
  int n = 0;
  for (const Op *op = module_main(m)->body->first; op && n < 8; op = op->next)
    kinds[n++] = op->kind;
  assert_int_equal(n, 4);
  assert_int_equal(kinds[0], OP_DOT_GENERAL);
  assert_int_equal(kinds[1], OP_ADD);
  assert_int_equal(kinds[2], OP_ALL_REDUCE);
  module_free(m);
}

/* A sum begins with its initial value on one device, of whatever type it is. */
static void test_sum_begins_once(void **state) {
  (void)state;
  static const char text[] =
      "module { sdy.mesh @mesh = <[\"x\"=4]>\n"
      "func.func @main(%a: tensor<8xcomplex<f32>> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>},"
      " %i: tensor<complex<f32>>) -> tensor<complex<f32>> {\n"
      "  %0 = stablehlo.reduce(%a init: %i) applies stablehlo.add across dimensions = [0]"
      " : (tensor<8xcomplex<f32>>, tensor<complex<f32>>) -> tensor<complex<f32>>\n"
      "  return %0 : tensor<complex<f32>>\n}}";
  Module *m = partitioned("begins", text);
  const Op *reduce = module_main(m)->body->last->operands[0]->def->operands[0]->def;
  assert_int_equal(reduce->kind, OP_REDUCE);
  assert_int_equal(reduce->operands[1]->def->kind, OP_SELECT); /* zero on the others */
  module_free(m);
}

/* Each device calls with its part, whatever sharding the call itself has. */
static void test_calls_with_parts(void **state) {
  (void)state;
  static const char text[] =
      "module { sdy.mesh @mesh = <[\"x\"=4]>\n"
      "sdy.mesh @one = <[], device_ids=[0]>\n"
      "func.func @main(%a: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {}]>})"
      " -> tensor<16x4xf32> {\n"
      "  stablehlo.custom_call @weft_host_callback(%a) {has_side_effect = true,"
      " mhlo.backend_config = {address = 1 : i64, partitioned = true},"
      " sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : (tensor<16x4xf32>) -> ()\n"
      "  return %a : tensor<16x4xf32>\n}}";
  Module *m = partitioned("calls", text);
  const Op *call = module_main(m)->body->first;
  assert_int_equal(call->kind, OP_CUSTOM_CALL);
  assert_int_equal(call->operands[0]->type->dims[0], 4);
  module_free(m);
}

/* Each device counts its own part: nothing is made whole. */
static void test_counting(void **state) {
  (void)state;
  static const char text[] =
      "module { sdy.mesh @mesh = <[\"x\"=4, \"y\"=2]>\n"
      "func.func @main(%a: tensor<16x4xi32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\", \"y\"}, "
      "{}]>},"
      " %b: tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"y\"}, {\"x\"}]>})"
      " -> (tensor<16x4xi32>, tensor<4x16xf32>) {\n"
      "  %i = stablehlo.iota dim = 0 : tensor<16x4xi32>\n"
      "  %j = stablehlo.iota dim = 1 : tensor<4x16xf32>\n"
      "  %0 = stablehlo.add %a, %i : tensor<16x4xi32>\n"
      "  %1 = stablehlo.multiply %b, %j : tensor<4x16xf32>\n"
      "  return %0, %1 : tensor<16x4xi32>, tensor<4x16xf32>\n}}";
  Module *m = parsed("counting", text);
  Tensor *in[2] = {tensor_make(DT_I32, 2, (const int64_t[]){16, 4}),
                   tensor_make(DT_F32, 2, (const int64_t[]){4, 16})},
         *out[2] = {tensor_make(DT_I32, 2, (const int64_t[]){16, 4}),
                    tensor_make(DT_F32, 2, (const int64_t[]){4, 16})};
  for (int k = 0; k < 64; k++) {
    ((int32_t *)in[0]->data)[k] = 100 * k;
    ((int32_t *)out[0]->data)[k] = 100 * k + k / 4;
    ((float *)in[1]->data)[k] = (float)k;
    ((float *)out[1]->data)[k] = (float)(k * (k % 16));
  }
  Module *cut = module_clone(m);
  bool done;
  ok(pass_partition(cut, &done));
  for (const Op *op = module_main(cut)->body->first; op; op = op->next)
    if (op->kind == OP_IOTA) assert_true(type_count(op->results[0].type) == 8);
  module_free(cut);
  check_module("counting", m, in, out, NULL);
  for (int i = 0; i < 2; i++) {
    tensor_release(in[i]);
    tensor_release(out[i]);
  }
}

/* A step on parts whose result is to be whole: the result is fetched, not each of what it is made from. */
static void test_results_travel(void **state) {
  (void)state;
  static const char text[] =
      MESH "func.func @main(%p: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}]>}, "
           "%g: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}) -> "
           "(tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}]>}) {\n"
           "  %c = sdy.sharding_constraint %p <@m, [{\"d\"}, {}]> : tensor<16x8xf32>\n"
           "  %u = stablehlo.tanh %g : tensor<16x8xf32>\n"
           "  %n = stablehlo.subtract %c, %u : tensor<16x8xf32>\n"
           "  %r = sdy.sharding_constraint %n <@m, [{}, {}]> : tensor<16x8xf32>\n"
           "  return %r : tensor<16x8xf32>\n}";
  assert_int_equal(check_text("results travel", text), 1);
}

/* The largest of a row that is cut and where it is: each device's own and its place travel, not the row. */
static void test_argmax(void **state) {
  (void)state;
  static const char text[] = MESH
      "func.func @main(%x: tensor<4x64xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {\"d\"}]>}) -> "
      "(tensor<4xf32>, tensor<4xi32>) {\n"
      "  %i = stablehlo.iota dim = 1 : tensor<4x64xi32>\n"
      "  %a = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
      "  %b = stablehlo.constant dense<0> : tensor<i32>\n"
      "  %r:2 = stablehlo.reduce(%x init: %a), (%i init: %b) across dimensions = [1] : "
      "(tensor<4x64xf32>, "
      "tensor<4x64xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)\n"
      "   reducer(%p: tensor<f32>, %q: tensor<f32>) (%m: tensor<i32>, %n: tensor<i32>) {\n"
      "    %0 = stablehlo.compare GT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
      "    %1 = stablehlo.compare EQ, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
      "    %2 = stablehlo.compare LT, %m, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "    %3 = stablehlo.and %1, %2 : tensor<i1>\n"
      "    %4 = stablehlo.or %0, %3 : tensor<i1>\n"
      "    %5 = stablehlo.select %0, %p, %q : tensor<i1>, tensor<f32>\n"
      "    %6 = stablehlo.select %4, %m, %n : tensor<i1>, tensor<i32>\n"
      "    stablehlo.return %5, %6 : tensor<f32>, tensor<i32>\n"
      "  }\n"
      "  return %r#0, %r#1 : tensor<4xf32>, tensor<4xi32>\n}";
  Module *m = partitioned("argmax", text);
  for (const Op *op = module_main(m)->body->first; op; op = op->next)
    if (op->kind == OP_ALL_GATHER) assert_int_equal(type_count(op->results[0].type), 4 * 8);
  module_free(m);
  assert_int_equal(check_text("argmax", text), 2);
}

/* Arrays of nothing are not exchanged: `jnp.roll(x, 0)`. StableHLO has no gather of a dimension of 0. */
static void test_nothing(void **state) {
  (void)state;
  static const char text[] =
      MESH "func.func @main(%x: tensor<16xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}]>}) -> "
           "(tensor<16xf32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}]>}) {\n"
           "  %a = stablehlo.slice %x [0:16] : (tensor<16xf32>) -> tensor<16xf32>\n"
           "  %b = stablehlo.slice %x [0:0] : (tensor<16xf32>) -> tensor<0xf32>\n"
           "  %c = stablehlo.concatenate %a, %b, dim = 0 : (tensor<16xf32>, tensor<0xf32>) -> "
           "tensor<16xf32>\n"
           "  return %c : tensor<16xf32>\n}";
  Module *m = partitioned("nothing", text);
  for (const Op *op = module_main(m)->body->first; op; op = op->next)
    if (op->kind == OP_ALL_GATHER) assert_true(op_type(op)->dims[0] > 0);
  module_free(m);
  check_text("nothing", text);
}

/* What is sorted beside keys that no sharding reaches is cut as its result is, and so are the keys. */
static void test_sorted_beside(void **state) {
  (void)state;
  static const char text[] = MESH
      "func.func @main(%x: tensor<8x6xi32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}) -> "
      "(tensor<8x6xi32> {sdy.sharding = #sdy.sharding<@m, [{\"d\"}, {}]>}) {\n"
      "  %k = stablehlo.constant dense<0> : tensor<8x6xi32>\n"
      "  %i = stablehlo.iota dim = 1 : tensor<8x6xi32>\n"
      "  %s:2 = \"stablehlo.sort\"(%k, %i) ({\n"
      "  ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):\n"
      "    %l = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "    stablehlo.return %l : tensor<i1>\n"
      "  }) {dimension = 1 : i64, is_stable = true} : (tensor<8x6xi32>, tensor<8x6xi32>) -> "
      "(tensor<8x6xi32>, tensor<8x6xi32>)\n"
      "  %r = stablehlo.add %x, %s#1 : tensor<8x6xi32>\n"
      "  return %r : tensor<8x6xi32>\n}";
  Module *m = partitioned("sorted beside", text);
  assert_int_equal(count_kind(m, OP_ALL_GATHER), 0);
  assert_int_equal(count_kind(m, OP_DYNAMIC_SLICE), 0);
  module_free(m);
  check_text("sorted beside", text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_scattered_sums),   cmocka_unit_test(test_batch_in_common),
      cmocka_unit_test(test_fetched_once),     cmocka_unit_test(test_masks),
      cmocka_unit_test(test_equal_broadcasts), cmocka_unit_test(test_sent_narrow),
      cmocka_unit_test(test_batches),          cmocka_unit_test(test_unsummed),
      cmocka_unit_test(test_sum_begins_once),  cmocka_unit_test(test_calls_with_parts),
      cmocka_unit_test(test_counting),         cmocka_unit_test(test_results_travel),
      cmocka_unit_test(test_argmax),           cmocka_unit_test(test_nothing),
      cmocka_unit_test(test_sorted_beside)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
