/* HLO text that XLA does not print but people write, what is refused and where, and tuples, layouts and donation in
 * the module that comes of it. tests/frameworks/test_hlo.py reads what XLA itself makes. */
#include <setjmp.h>
#include <stdlib.h>

#include "stablehlo/stablehlo.h"

#include <cmocka.h>

static Module *read(const char *text) {
  Module *m = NULL;
  Err *e = stablehlo_read("case.hlo", str_from(text), &m);
  if (!e) e = ir_verify(m);
  if (e) fail_msg("%s", err_text(e));
  return m;
}

static void prints(const char *hlo, const char *want) {
  Module *m = read(hlo);
  Buf b = {0};
  stablehlo_write_text(&b, m, NULL);
  if (!strstr(b.p, want)) fail_msg("'%s' is not in\n%s", want, b.p);
  buf_free(&b);
  module_free(m);
}

static void refused(const char *hlo, const char *want) {
  Module *m = NULL;
  Err *e = stablehlo_read("case.hlo", str_from(hlo), &m);
  if (!e) e = ir_verify(m);
  assert_non_null(e);
  char *text = err_text(e);
  if (!strstr(text, want)) fail_msg("'%s' is not in: %s", want, text);
  free(text);
  err_free(e);
  module_free(m);
}

static void test_tuples(void **state) {
  (void)state;
  prints("HloModule t\n"
         "body { p = (s32[], (f32[2], f32[3])) parameter(0)\n"
         "  n = s32[] get-tuple-element(p), index=0\n  one = s32[] constant(1)\n"
         "  next = s32[] add(n, one)\n  rest = (f32[2], f32[3]) get-tuple-element(p), index=1\n"
         "  ROOT r = (s32[], (f32[2], f32[3])) tuple(next, rest) }\n"
         "cond { p = (s32[], (f32[2], f32[3])) parameter(0)\n"
         "  n = s32[] get-tuple-element(p), index=0\n  ten = s32[] constant(10)\n"
         "  ROOT less = pred[] compare(n, ten), direction=LT }\n"
         "ENTRY e { n = s32[] parameter(0)\n  x = (f32[2], f32[3]) parameter(1)\n"
         "  t = (s32[], (f32[2], f32[3])) tuple(n, x)\n"
         "  w = (s32[], (f32[2], f32[3])) while(t), condition=cond, body=body\n"
         "  y = (f32[2], f32[3]) get-tuple-element(w), index=1\n"
         "  ROOT z = f32[3] get-tuple-element(y), index=1 }\n",
         "(%arg0: tensor<i32>, %arg1: tensor<2xf32>, %arg2: tensor<3xf32>) -> tensor<3xf32>");
}

static void test_bitcast_follows_the_layouts(void **state) {
  (void)state;
  /* [2,3] that lies column by column, read as rows of 3 x 2: the transposition */
  prints("HloModule b\nENTRY e { x = f32[2,3]{0,1} parameter(0)\n  ROOT y = f32[3,2]{1,0} "
         "bitcast(x) }\n",
         "stablehlo.transpose %arg0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>");
  prints(
      "HloModule b\nENTRY e { x = f32[2,3]{1,0} parameter(0)\n  ROOT y = f32[6]{0} bitcast(x) }\n",
      "stablehlo.reshape %arg0 : (tensor<2x3xf32>) -> tensor<6xf32>");
}

/* An exchange among all devices, of a module that does not say how many there are: an operand for each. Who reads the
 * program that is handed back (PyTorch/XLA, by MLIR) wants to know. */
static void test_exchange_lists_its_group(void **state) {
  (void)state;
  prints("HloModule a\nENTRY e { x = f32[3] parameter(0)\n  y = f32[3] parameter(1)\n"
         "  z = (f32[3], f32[3]) all-to-all(x, y), replica_groups={}\n"
         "  ROOT w = f32[3] get-tuple-element(z), index=1 }\n",
         "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>");
}

static void test_donation(void **state) {
  (void)state;
  const char *text =
      "HloModule d, input_output_alias={ {1}: (0, {}, may-alias) }, buffer_donor={ (1, {}) }\n"
      "ENTRY e { a = f32[4] parameter(0)\n  b = f32[4] parameter(1)\n  c = f32[4] add(a, b)\n"
      "  ROOT t = (f32[4], f32[4]) tuple(b, c) }\n";
  prints(text, "%arg0: tensor<4xf32> {tf.aliasing_output = 1 : i32}");
  prints(text, "%arg1: tensor<4xf32> {jax.buffer_donor = true}");
}

static void test_numbers(void **state) {
  (void)state;
  prints("HloModule c\nENTRY e { ROOT k = f32[2,2] constant({ {1, -2.5}, {inf, 1e-3} }) }\n",
         "dense<[[1.000000e+00, -2.500000e+00], [0x7F800000, 1.000000e-03]]>");
  prints("HloModule c\nENTRY e { ROOT k = c64[] constant((1, -2)) }\n",
         "(1.000000e+00,-2.000000e+00)");
  prints("HloModule c\nENTRY e { ROOT k = pred[3] constant({true, false, 1}) }\n",
         "true, false, true");
  prints("HloModule c\nENTRY e { ROOT k = u64[] constant(18446744073709551615) }\n",
         "18446744073709551615");
}

static void test_names_of_parameters(void **state) {
  (void)state;
  static const char *const want[] = {"params['w']", "layers.0.weight", "", ""};
  Module *m =
      read("HloModule n\nENTRY e { a = f32[] parameter(0), metadata={op_name=\"params['w']\"}\n"
           "b = f32[] parameter(1), metadata={op_type=\"xla__device_data\" "
           "op_name=\"tensor/layers.0.weight/xla__device_data\"}\n"
           "c = f32[] parameter(2), metadata={op_type=\"xla__device_data\" "
           "op_name=\"aten__lerp.7/xla__device_data\"}\n"
           "d = f32[] parameter(3)\nROOT s = f32[] add(a, b) }\n");
  for (int i = 0; i < COUNT_OF(want); i++)
    assert_true(str_is(module_main(m)->body->args[i]->name, want[i]));
  module_free(m);
}

/* PyTorch's own frames are none of the user's, unless there are no others. */
static void test_places(void **state) {
  (void)state;
  Module *m =
      read("HloModule p\n\nFileNames\n1 \"/home/me/train.py\"\n2 "
           "\"/usr/lib/python3/dist-packages/torch/nn/functional.py\"\n\n"
           "FunctionNames\n1 \"loss\"\n\nFileLocations\n"
           "1 {file_name_id=1 function_name_id=1 line=7}\n2 {file_name_id=2 function_name_id=1 "
           "line=900}\n\n"
           "StackFrames\n1 {file_location_id=1}\n2 {file_location_id=2 parent_frame_id=1}\n3 "
           "{file_location_id=2}\n\n"
           "ENTRY e { a = f32[] parameter(0)\nb = f32[] negate(a), metadata={stack_frame_id=2}\n"
           "ROOT c = f32[] abs(b), metadata={stack_frame_id=3} }\n");
  static const char *const want[] = {"train.py:7", "functional.py:900"};
  const Op *op = module_main(m)->body->first;
  for (int i = 0; i < COUNT_OF(want); i++, op = op->next) {
    Buf b = {0};
    loc_print(&b, op->loc);
    if (!b.p || !strstr(b.p, want[i])) fail_msg("'%s' is not in '%s'", want[i], b.p ? b.p : "");
    buf_free(&b);
  }
  module_free(m);
}

static void test_what_is_refused(void **state) {
  (void)state;
  refused("HloModule c\nENTRY e { ROOT k = f32[2000000000] constant({1, 2}) }\n",
          "ends before them");
  refused("HloModule c\nENTRY e { ROOT k = f32[3] constant({...}) }\n",
          "case.hlo:2:36: the constant's numbers were left out");
  refused("HloModule c\nENTRY e { ROOT k = f32[2] add(a, b) }\n",
          "there is no instruction 'a' before this one");
  refused("HloModule c\nENTRY e { a = f32[2] parameter(0)\n ROOT k = f32[2] frobnicate(a) }\n",
          "'frobnicate' is not one that weft reads");
  refused("HloModule c\nENTRY e { a = f33[2] parameter(0) }\n",
          "case.hlo:2:15: 'f33' is no element type");
  refused("HloModule c\nENTRY e { a = f32[2] parameter(0)\n ROOT i = () infeed(a) }\n",
          "exchanges with a host");
  refused("HloModule c\nENTRY e { a = f32[2] parameter(0)\n ROOT k = f32[2] call(a), "
          "to_apply=nobody }\n",
          "which is not there");
  refused("HloModule c\nf { a = f32[2] parameter(0)\n ROOT k = f32[2] call(a), to_apply=f }\n"
          "ENTRY e { a = f32[2] parameter(0)\n ROOT k = f32[2] call(a), to_apply=f }\n",
          "more than 64 deep");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tuples),
      cmocka_unit_test(test_bitcast_follows_the_layouts),
      cmocka_unit_test(test_exchange_lists_its_group),
      cmocka_unit_test(test_donation),
      cmocka_unit_test(test_numbers),
      cmocka_unit_test(test_names_of_parameters),
      cmocka_unit_test(test_places),
      cmocka_unit_test(test_what_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
