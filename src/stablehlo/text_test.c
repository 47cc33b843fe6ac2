/* Text against outside truth: every program of the golden corpus (printed by jaxlib) is read,
 * verified, written in each form and read back; the pretty form has to be jaxlib's own text, byte
 * for byte, for most of them. Then single constructs, floats, and what must be refused, with its
 * place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/err_test.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "stablehlo/text_write_priv.h"

#define CORPUS WEFT_SOURCE_DIR "/tests/golden/corpus/"

static Module *read_ok(const char *text) {
  Module *m = NULL;
  ok_with(stablehlo_read_text("t.mlir", str_from(text), &m), text);
  return m;
}

static void round_trip(const char *what, const Module *m, const TextOpts *opts, Buf *out) {
  Module *back;
  out->n = 0;
  stablehlo_write_text(out, m, opts);
  ok_with(stablehlo_read_text("written.mlir", (Str){out->p, out->n}, &back), what);
  ok_with(stablehlo_compare(m, back), what);
  Buf again = {0};
  stablehlo_write_text(&again, back, opts);
  if (again.n != out->n || memcmp(again.p, out->p, out->n) != 0) {
    print_error("%s: the text changes when it is written again\n", what);
    fail();
  }
  buf_free(&again);
  module_free(back);
}

/* ---- the corpus ---- */

static void corpus(void **state) {
  (void)state;
  DIR *d = opendir(CORPUS);
  assert_non_null(d);
  int n = 0, same = 0;
  Buf out = {0};
  for (struct dirent *entry; (entry = readdir(d));) {
    const char *name = entry->d_name;
    if (!str_ends(str_from(name), ".mlir")) continue;
    char *path = xasprintf("%s%s", CORPUS, name);
    Buf in = {0};
    ok_with(file_read(path, &in), path);
    Module *m;
    ok_with(stablehlo_read_text(path, (Str){in.p, in.n}, &m), name);
    ok_with(ir_verify(m), name);
    round_trip(name, m, &(TextOpts){.generic = true}, &out);
    round_trip(name, m, &(TextOpts){.locations = true}, &out);
    round_trip(name, m, NULL, &out);
    size_t end = in.n;
    while (end && in.p[end - 1] == '\n') end--;
    same += out.n == end + 1 && !memcmp(in.p, out.p, end);
    module_free(m);
    buf_free(&in);
    free(path);
    n++;
  }
  closedir(d);
  buf_free(&out);
  print_message("%d programs, %d written byte for byte as jaxlib does\n", n, same);
  assert_true(n >= 240);
  /* the others: attributes of sdy.mesh that the module does not keep, functions without visibility,
   * default precisions written out, generic forms and locations */
  assert_true(same >= 215);
}

/* ---- constructs ---- */

/* Each is the body of a function over %a, %b: tensor<2x3xf32>, %i: tensor<i32>, %p: tensor<i1>, %t:
 * a token. */
static const char *const bodies[] = {
    "%0 = stablehlo.add %a, %b : tensor<2x3xf32>",
    "%0 = \"stablehlo.add\"(%a, %b) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32> "
    "loc(\"f.py\":1:2)",
    "%0 = stablehlo.exponential %a {result_accuracy = #stablehlo.result_accuracy<atol = 1.0e-05, "
    "ulps = 1, mode = "
    "#stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<2x3xf32>",
    "%0:2 = \"my.op\"(%a) <{x = 1 : i8, \"odd key\" = \"\\00\\22\"}> ({\n}, {\n^bb0(%z: "
    "tensor<f32>):\n"
    "\"my.end\"(%z) : (tensor<f32>) -> ()\n}) {u, d = {e = [1, @f, f32]}} : (tensor<2x3xf32>) -> "
    "(tensor<f32>, i32)\n"
    "\"my.use\"(%0#1, %0#0) : (i32, tensor<f32>) -> ()",
    "%c = stablehlo.constant dense<[[1.5, -0.0], [0x7FC00000, 0xFF800000]]> : tensor<2x2xf32>",
    "%c = stablehlo.constant dense<\"0x0100000002000000\"> : tensor<2xi32>",
    "%c = stablehlo.constant dense<[(1.0,-2.0), (0x7F800000, 0.0)]> : tensor<2xcomplex<f32>>",
    "%c = stablehlo.constant dense<> : tensor<0x3xi4>",
    "%c = stablehlo.constant dense<[-8, 7]> : tensor<2xi4>",
    "%c = stablehlo.constant dense<[true, false]> : tensor<2xi1>",
    "%c = stablehlo.constant() <{value = dense<[1, 2]> : tensor<2xi8>}> : () -> "
    "tensor<2x!quant.uniform<i8:f32:0, {0.1:-30, 0.5:-20}>>",
    "%0 = stablehlo.slice %a [0:2:2, 1:3] : (tensor<2x3xf32>) -> tensor<1x2xf32>",
    "%c = stablehlo.constant dense<0.0> : tensor<f32>\n%0 = stablehlo.reduce(%a init: %c) applies "
    "stablehlo.add across "
    "dimensions = [0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>",
    "%c = stablehlo.constant dense<0.0> : tensor<f32>\n%0:2 = stablehlo.reduce(%a init: %c), (%b "
    "init: %c) across "
    "dimensions = [1] : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>, tensor<f32>) -> "
    "(tensor<2xf32>, tensor<2xf32>)\n"
    " reducer(%x0: tensor<f32>, %y0: tensor<f32>) (%x1: tensor<f32>, %y1: tensor<f32>) {\n"
    "%1 = stablehlo.add %x0, %y0 : tensor<f32>\n%2 = stablehlo.maximum %x1, %y1 : tensor<f32>\n"
    "stablehlo.return %1, %2 : tensor<f32>, tensor<f32>\n}",
    "%0:2 = stablehlo.while(%x = %a, %k = %i) : tensor<2x3xf32>, tensor<i32>\n cond {\n"
    "stablehlo.return %p : tensor<i1>\n} do {\nstablehlo.return %x, %k : tensor<2x3xf32>, "
    "tensor<i32>\n}",
    "%0 = \"stablehlo.if\"(%p) ({\nstablehlo.return %a : tensor<2x3xf32>\n}, {\nstablehlo.return "
    "%b : tensor<2x3xf32>\n}) : "
    "(tensor<i1>) -> tensor<2x3xf32>",
    "%0 = stablehlo.custom_call @\"odd name\"(%a) {api_version = 4 : i32, backend_config = {k = 1 "
    ": i64}, operand_layouts = "
    "[dense<[1, 0]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : "
    "(tensor<2x3xf32>) -> "
    "tensor<2x3xf32>",
    "%0 = stablehlo.dot_general %a, %b, contracting_dims = [0, 1] x [0, 1], algorithm = "
    "<lhs_precision_type = bf16, "
    "rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, "
    "rhs_component_count = 1, "
    "num_primitive_operations = 3, allow_imprecise_accumulation = false> : (tensor<2x3xf32>, "
    "tensor<2x3xf32>) -> tensor<f32>",
    "%0 = stablehlo.reduce_precision %a, format = e8m7 : tensor<2x3xf32>",
    "%0 = stablehlo.tuple %a, %t : tuple<tensor<2x3xf32>, !stablehlo.token>\n%1 = "
    "stablehlo.get_tuple_element %0[1] : "
    "(tuple<tensor<2x3xf32>, !stablehlo.token>) -> !stablehlo.token",
    "%0 = stablehlo.optimization_barrier %a : tensor<2x3xf32>\nstablehlo.optimization_barrier ()",
    "%0 = \"stablehlo.all_reduce\"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, "
    "type = 0>, replica_groups = "
    "dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({\n^bb0(%x: tensor<f32>, %y: "
    "tensor<f32>):\n%1 = "
    "stablehlo.add %x, %y : tensor<f32>\nstablehlo.return %1 : tensor<f32>\n}) : (tensor<2x3xf32>) "
    "-> tensor<2x3xf32>",
    "%0 = sdy.sharding_constraint %a <@mesh, [{\"x\":(1)2, ?}p1, {}], replicated={\"y\"}> : "
    "tensor<2x3xf32>",
    "%0 = stablehlo.after_all %t, %t : !stablehlo.token\n%1 = stablehlo.after_all : "
    "!stablehlo.token",
    "check.expect_almost_eq_const %a, dense<0.5> : tensor<2x3xf32>, tolerance = 1.000000e-01",
    "%0 = chlo.erf %a : tensor<2x3xf32> -> tensor<2x3xf32>",
    "%0 = stablehlo.compare  LT, %a, %b,  TOTALORDER : (tensor<2x3xf32>, tensor<2x3xf32>) -> "
    "tensor<2x3xi1>",
    "%0 = stablehlo.abs %a {a.b = #a.b<c<d>, \"e>\">, mhlo.frontend_attributes = {}} : "
    "tensor<2x3xf32>",
};

static char *program(const char *body) {
  return xasprintf(
      "sdy.mesh @mesh = <[\"x\"=4, \"y\"=2], device_ids=[0, 2, 4, 6, 1, 3, 5, 7]>\n"
      "func.func @main(%%a: tensor<2x3xf32>, %%b: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}, "
      "%%i: tensor<i32>, %%p: tensor<i1>, %%t: !stablehlo.token) {\n%s\nreturn\n}\n",
      body);
}

static void constructs(void **state) {
  (void)state;
  Buf out = {0};
  for (int i = 0; i < COUNT_OF(bodies); i++) {
    char *text = program(bodies[i]);
    Module *m = read_ok(text);
    ok_with(ir_verify(m), text);
    round_trip(text, m, NULL, &out);
    round_trip(text, m, &(TextOpts){.generic = true}, &out);
    round_trip(text, m, &(TextOpts){.locations = true}, &out);
    module_free(m);
    free(text);
  }
  buf_free(&out);
}

static const Op *first_op(const Module *m) { return m->funcs.v[0]->body->first; }

static void canonical(void **state) {
  (void)state;
  const int64_t *v;
  Module *m =
      read_ok("!ty = tensor<4x5xf32>\n"
              "func.func @f(%a: !ty, %i: tensor<2x1xi32>) -> tensor<2x5xf32> {\n"
              "%0 = \"stablehlo.gather\"(%a, %i) {dimension_numbers = #dims, slice_sizes = "
              "dense<[1, 5]> : tensor<2xi64>, "
              "indices_are_sorted = false} : (!ty, tensor<2x1xi32>) -> tensor<2x5xf32>\n"
              "%1 = builtin.unrealized_conversion_cast %0 : tensor<2x5xf32> -> tensor<2x5xf32>\n"
              "func.return %1 : tensor<2x5xf32> loc(#l)\n}\n"
              "#dims = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], "
              "start_index_map = [0], "
              "index_vector_dim = 1>\n"
              "#l = loc(\"scope\"(callsite(\"a.py\":3:4 at #m)))\n#m = loc(\"b.py\":5:6 to :9)\n");
  const Op *g = first_op(m), *r = g->next;
  assert_int_equal(g->kind, OP_GATHER);
  assert_int_equal(g->line, 3);
  assert_int_equal(op_int(g, "index_vector_dim", 0), 1);
  assert_int_equal(op_ints(g, "slice_sizes", &v), 2);
  assert_int_equal(v[1], 5);
  assert_null(op_attr(g, "indices_are_sorted"));
  assert_null(op_attr(g, "dimension_numbers"));
  assert_int_equal(r->kind, OP_RETURN); /* the cast is gone */
  assert_ptr_equal(r->operands[0], &g->results[0]);
  Buf b = {0};
  op_place(&b, r);
  assert_string_equal(b.p, "a.py:3 (scope)");
  buf_free(&b);
  module_free(m);
}

/* A layer of a library's that the user's line calls: the user's line is shown. */
static void place_of_library(void **state) {
  (void)state;
  Module *m =
      read_ok("func.func @f(%a: tensor<f32>) -> tensor<f32> {\n"
              "%0 = stablehlo.negate %a : tensor<f32> loc(#l)\n"
              "return %0 : tensor<f32> loc(#in)\n}\n"
              "#in = loc(\"/usr/lib/python3/dist-packages/torch/nn/modules/linear.py\":134:0)\n"
              "#l = loc(\"addmm\"(callsite(\"forward\"(#in) at callsite("
              "\"/v/site-packages/torch/nn/modules/module.py\":9:0 at \"net.py\":12:0))))\n");
  const Op *op = first_op(m);
  Buf b = {0};
  op_place(&b, op);
  assert_string_equal(b.p, "net.py:12 (addmm)");
  b.n = 0;
  op_place(&b, op->next); /* nothing but libraries */
  assert_string_equal(b.p, "/usr/lib/python3/dist-packages/torch/nn/modules/linear.py:134");
  buf_free(&b);
  module_free(m);
}

static void resources(void **state) {
  (void)state;
  Module *m =
      read_ok("func.func @f() -> tensor<2xf32> {\n%0 = stablehlo.constant dense_resource<blob> : "
              "tensor<2xf32>\n"
              "return %0 : tensor<2xf32>\n}\n"
              "{-# dialect_resources: { builtin: { blob: \"0x040000000000803F00000040\" } } #-}\n");
  const float *v = op_attr(first_op(m), "value")->tensor->data;
  assert_true(v[0] == 1 && v[1] == 2);
  module_free(m);
}

static void split(void **state) {
  (void)state;
  Module **m;
  int n;
  const char *text = "func.func @a() {\nreturn\n}\n// -----\nfunc.func @b() {\n%0 = x\n}\n";
  Err *e = stablehlo_read_text_split("s.mlir", str_from(text), &m, &n);
  assert_non_null(e);
  assert_string_equal(e->place, "s.mlir:7:1"); /* lines count through the file */
  err_free(e);
  text = "func.func @a() {\nreturn\n}\n// -----\nfunc.func @b() {\nreturn\n}\n";
  ok_with(stablehlo_read_text_split("s.mlir", str_from(text), &m, &n), text);
  assert_int_equal(n, 2);
  assert_true(str_is(m[1]->funcs.v[0]->name, "b"));
  for (int i = 0; i < n; i++) module_free(m[i]);
  free(m);
}

static void mesh_groups_text(void **state) {
  (void)state;
  Module *m =
      read_ok("sdy.mesh @mesh = <[\"x\"=2, \"y\"=4]>\n"
              "func.func @f(%a: tensor<4xf32>) -> tensor<8xf32> {\n"
              "%0 = \"stablehlo.all_gather\"(%a) <{all_gather_dim = 0 : i64, channel_handle = "
              "#stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = "
              "#stablehlo.replica_group_mesh_axes<mesh = "
              "@mesh, axes = [#stablehlo.axis_ref<name = \"x\">]>, use_global_device_ids}> : "
              "(tensor<4xf32>) -> tensor<8xf32>\n"
              "return %0 : tensor<8xf32>\n}\n");
  ok_with(ir_verify(m), "mesh groups");
  static const int64_t want[] = {0, 4, 1, 5, 2, 6, 3, 7};
  const int64_t *v;
  assert_int_equal(op_ints(first_op(m), "replica_groups", &v), 8);
  assert_memory_equal(v, want, sizeof want);
  module_free(m);
}

/* ---- floats: MLIR's spelling, checked against what jaxlib prints ---- */

static void floats(void **state) {
  (void)state;
  static const struct {
    DType t;
    uint64_t bits;
    const char *text;
  } rows[] = {
      {DT_F32, 0x3f800000, "1.000000e+00"},
      {DT_F32, 0x80000000, "-0.000000e+00"},
      {DT_F32, 0x3dcccccd, "1.000000e-01"},
      {DT_F32, 0x3f666666, "0.899999976"},
      {DT_F32, 0x3eaaaaab, "0.333333343"},
      {DT_F32, 0x7f800000, "0x7F800000"},
      {DT_F32, 0x7fc00001, "0x7FC00001"},
      {DT_F32, 0x7f7fffff, "3.40282347E+38"},
      {DT_F32, 1, "1.401300e-45"},
      {DT_F64, 0x3fb999999999999a, "1.000000e-01"},
      {DT_F64, 0x400921fb54442d18, "3.1415926535897931"},
      {DT_BF16, 0x3f80, "1.000000e+00"},
      {DT_BF16, 0xff80, "0xFF80"},
      {DT_F8E4M3FN, 0x80, "-0.000000e+00"},
      {DT_F16, 0x7bff, "6.550400e+04"},
  };
  for (int i = 0; i < COUNT_OF(rows); i++) {
    Buf b = {0};
    tw_float(&b, rows[i].t, &rows[i].bits);
    assert_string_equal(b.p, rows[i].text);
    buf_free(&b);
  }
  /* what is printed reads back to the same bits: a walk over all exponents */
  uint64_t x = 88172645463325252u;
  for (int i = 0; i < 200000; i++) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    DType t = i % 4 == 0 ? DT_F64 : i % 4 == 1 ? DT_F32 : i % 4 == 2 ? DT_F16 : DT_BF16;
    uint64_t bits = t == DT_F64 ? x : t == DT_F32 ? (uint32_t)x : (uint16_t)x;
    Buf b = {0};
    tw_float(&b, t, &bits);
    uint64_t back =
        strncmp(b.p, "0x", 2) ? float_encode(t, strtod(b.p, NULL)) : strtoull(b.p, NULL, 16);
    assert_int_equal(back, bits);
    buf_free(&b);
  }
}

/* ---- refused ---- */

static const struct {
  const char *text, *place, *message;
} refused[] = {
    {"func.func @f( {", "t.mlir:1:15", "expected a type"},
    {"func.func @f() {\n  %0 = stablehlo.add %1, %1 : tensor<f32>\n}", "t.mlir:2:22",
     "'%1' is not defined"},
    {"func.func @f(%a: tensor<f32>) {\n  %0 = stablehlo.abs %a : tensor<2xf32>\n}", "t.mlir:2:8",
     "is of type tensor<f32>, but tensor<2xf32> is written"},
    {"func.func @f(%a: tensor<f32>) {\n  %a = stablehlo.abs %a : tensor<f32>\n}", "t.mlir:2:3",
     "defined twice"},
    {"func.func @f(%a: tensor<4y5xf32>) {", "t.mlir:1:26", "expected 'x' after a dimension"},
    {"func.func @f(%a: tensor<4xf33>) {", "t.mlir:1:27", "an element type"},
    {"func.func @f() {\n  %0 = stablehlo.constant dense<[1, 2]> : tensor<3xi32>\n}", "t.mlir:2:33",
     "dimension 0"},
    {"func.func @f() {\n  %0 = stablehlo.constant dense<300> : tensor<2xi8>\n}", "t.mlir:2:33",
     "300 does not fit in i8"},
    {"func.func @f() {\n  %0 = stablehlo.constant dense<1> : tensor<9999999999x9999999999xi8>\n}",
     "t.mlir:2:38", "64 bits"},
    {"func.func @f() {\n  stablehlo.gather %a\n}", "t.mlir:2:3", "has no short form"},
    {"func.func @f() {\n  %0 = stablehlo.iota dim = x : tensor<3xi32>\n}", "t.mlir:2:29",
     "expected an integer"},
    {"func.func @f() {\n  return\n}\nfunc.func @f() {\n  return\n}", "t.mlir:4:11",
     "defined twice"},
    {"#a = [#a]\nfunc.func @f() attributes {x = #a} {\n  return\n}", "t.mlir:1:7",
     "refers to itself"},
    {"module {\n} module {\n}", "t.mlir:2:3", "the end of the text"},
    {"func.func @f() {\n  \"a.b\"() {x = #q} : () -> ()\n}", "t.mlir:2:16", "not defined"},
    {"func.func @f() {\n  \"a.b\"() {x = 1, x = 2} : () -> ()\n}", "t.mlir:2:19", "given twice"},
    {"func.func @f(%p: tensor<i1>) {\n  \"x.y\"() ({\n^a:\n^b:\n}) : () -> ()\n}", "t.mlir:4:1",
     "one block"},
    {"func.func @f() {\n  %0 = stablehlo.rng_bit_generator %x\n}", "t.mlir:2:36", "not defined"},
    {"func.func @f() {\n  \"stablehlo.iota\"() <{iota_dimension = \"x\"}> : () -> tensor<3xi32>\n}",
     "t.mlir:2:3", "'iota_dimension' is not an integer"},
};

static void refuses(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(refused); i++) {
    Module *m = NULL;
    Err *e = stablehlo_read_text("t.mlir", str_from(refused[i].text), &m);
    if (!e) {
      print_error("accepted: %s\n", refused[i].text);
      fail();
    }
    assert_int_equal(e->code, ERR_INVALID);
    if (!e->place || strcmp(e->place, refused[i].place) != 0 ||
        !strstr(e->msg, refused[i].message)) {
      print_error("%s\n  gives %s: %s\n  not   %s: %s\n", refused[i].text,
                  e->place ? e->place : "?", e->msg, refused[i].place, refused[i].message);
      fail();
    }
    err_free(e);
  }
}

/* Small input must not cost much time, memory or stack. */
static void bombs(void **state) {
  (void)state;
  Buf b = {0};
  buf_cstr(&b, "#a0 = [1, 1]\n!t0 = tuple<i32>\n#l0 = loc(unknown)\n");
  for (int i = 0; i < 60; i++)
    buf_printf(
        &b, "#a%d = [#a%d, #a%d]\n!t%d = tuple<!t%d, !t%d>\n#l%d = loc(callsite(#l%d at #l%d))\n",
        i + 1, i, i, i + 1, i, i, i + 1, i, i);
  static const char *const uses[] = {"func.func @f() attributes {a = #a60} { return }",
                                     "func.func @f(%a: !t60) { return }",
                                     "func.func @f() { return loc(#l60) }"};
  size_t n = b.n;
  for (int k = 0; k < 3; k++) {
    Module *m;
    b.n = n;
    buf_cstr(&b, uses[k]);
    Err *e = stablehlo_read_text("t.mlir", (Str){b.p, b.n}, &m);
    assert_non_null(e);
    assert_non_null(strstr(e->msg, "nodes"));
    err_free(e);
  }
  static const char *const deep[] = {"\"a.b\"() ({", "\"a.b\"() {a = [[[[",
                                     "\"a.b\"() : () -> tuple<tuple<"};
  for (int k = 0; k < 3; k++) {
    Module *m;
    b.n = 0;
    buf_cstr(&b, "func.func @f() {\n");
    if (k) buf_cstr(&b, deep[k]);
    for (int i = 0; i < 20000; i++) buf_cstr(&b, k == 0 ? deep[0] : k == 1 ? "[" : "tuple<");
    Err *e = stablehlo_read_text("t.mlir", (Str){b.p, b.n}, &m);
    assert_non_null(e);
    assert_non_null(strstr(e->msg, "nested deeper"));
    err_free(e);
  }
  buf_free(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(corpus),           cmocka_unit_test(constructs),
      cmocka_unit_test(canonical),        cmocka_unit_test(place_of_library),
      cmocka_unit_test(resources),        cmocka_unit_test(split),
      cmocka_unit_test(mesh_groups_text), cmocka_unit_test(floats),
      cmocka_unit_test(refuses),          cmocka_unit_test(bombs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
