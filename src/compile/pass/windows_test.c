/* Windows written out: no reduce_window is left, and the interpreter answers the same before and
 * after. The body takes the last number that is not 0: the order of the elements matters. */
#include "compile/pass/pass_test.h"

typedef struct Case {
  const char *name, *type, *elem, *result, *attrs, *body;
} Case;

#define LAST(e)                                                                        \
  "%z = stablehlo.constant dense<0> : tensor<" e ">\n"                                 \
  "%c = stablehlo.compare NE, %y, %z : (tensor<" e ">, tensor<" e ">) -> tensor<i1>\n" \
  "%r = stablehlo.select %c, %y, %x : tensor<i1>, tensor<" e ">\n"                     \
  "stablehlo.return %r : tensor<" e ">"
#define BINARY(op, e) \
  "%r = stablehlo." op " %x, %y : tensor<" e ">\nstablehlo.return %r : tensor<" e ">"
#define HYPOTENUSE(e)                                \
  "%p = stablehlo.multiply %x, %x : tensor<" e ">\n" \
  "%q = stablehlo.multiply %y, %y : tensor<" e ">\n" \
  "%s = stablehlo.add %p, %q : tensor<" e ">\n"      \
  "%r = stablehlo.sqrt %s : tensor<" e ">\n"         \
  "stablehlo.return %r : tensor<" e ">"
#define I32(t, r, attrs) t "xi32", "i32", r "xi32", attrs, LAST("i32")

static Case cases[] = {
    {"running", I32("5x9", "5x9",
                    "window_dimensions = array<i64: 1, 9>, "
                    "padding = dense<[[0, 0], [8, 0]]> : tensor<2x2xi64>")},
    {"running_back", I32("5x9x2", "5x9x2",
                         "window_dimensions = array<i64: 1, 9, 1>, "
                         "padding = dense<[[0, 0], [0, 8], [0, 0]]> : tensor<3x2xi64>")},
    {"running_long", I32("1000", "1000",
                         "window_dimensions = array<i64: 1000>, "
                         "padding = dense<[[999, 0]]> : tensor<1x2xi64>")},
    {"running_long_back", I32("3x701", "3x701",
                              "window_dimensions = array<i64: 1, 701>, "
                              "padding = dense<[[0, 0], [0, 700]]> : tensor<2x2xi64>")},
    {"running_many_rows", I32("70x80", "70x80",
                              "window_dimensions = array<i64: 70, 1>, "
                              "padding = dense<[[69, 0], [0, 0]]> : tensor<2x2xi64>")},
    {"square", I32("7x8", "7x8",
                   "window_dimensions = array<i64: 3, 3>, "
                   "padding = dense<[[1, 1], [1, 1]]> : tensor<2x2xi64>")},
    {"strided",
     I32("9x11", "4x5", "window_dimensions = array<i64: 3, 3>, window_strides = array<i64: 2, 2>")},
    {"dilated", I32("9x11", "5x8",
                    "window_dimensions = array<i64: 3, 3>, window_dilations = array<i64: 2, 2>, "
                    "padding = dense<[[0, 0], [0, 1]]> : tensor<2x2xi64>")},
    {"spread", I32("4x5", "6x9",
                   "window_dimensions = array<i64: 3, 2>, base_dilations = array<i64: 2, 2>, "
                   "padding = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>")},
    {"long_windows", I32("60", "38", "window_dimensions = array<i64: 23>")},
    {"long_windows_dilated",
     I32("80", "20",
         "window_dimensions = array<i64: 22>, window_dilations = array<i64: 3>, "
         "padding = dense<[[2, 1]]> : tensor<1x2xi64>")},
    {"bytes", "7x8xi8", "i8", "5x8xi8",
     "window_dimensions = array<i64: 3, 4>, padding = dense<[[0, 0], [1, 2]]> : tensor<2x2xi64>",
     BINARY("add", "i8")},
    {"bits", "70xi32", "i32", "61xi32", "window_dimensions = array<i64: 10>", BINARY("xor", "i32")},
    {"along_one", "7x40xf32", "f32", "7x36xf32", "window_dimensions = array<i64: 1, 5>",
     BINARY("add", "f32")},
    {"apart", "7x40xf32", "f32", "5x24xf32",
     "window_dimensions = array<i64: 3, 3>, window_dilations = array<i64: 1, 8>",
     BINARY("maximum", "f32")},
    {"steps_of_integers", "9x11xi32", "i32", "4x5xi32",
     "window_dimensions = array<i64: 3, 3>, window_strides = array<i64: 2, 2>",
     BINARY("maximum", "i32")},
    {"not_associative", "7x8xi32", "i32", "5x4xi32",
     "window_dimensions = array<i64: 3, 2>, window_strides = array<i64: 1, 2>",
     BINARY("subtract", "i32")},
    {"not_associative_spread", "4x6xf32", "f32", "9x4xf32",
     "window_dimensions = array<i64: 2, 3>, base_dilations = array<i64: 3, 1>",
     BINARY("subtract", "f32")},
    {"rounded_once", "2x9x9xbf16", "bf16", "2x8x4xbf16",
     "window_dimensions = array<i64: 1, 2, 3>, window_strides = array<i64: 1, 1, 2>",
     BINARY("add", "bf16")},
    {"complex", "9xcomplex<f32>", "complex<f32>", "9xcomplex<f32>",
     "window_dimensions = array<i64: 9>, padding = dense<[[8, 0]]> : tensor<1x2xi64>",
     BINARY("add", "complex<f32>")},
};

static Module *read(const Case *c) {
  char *text =
      xasprintf("func.func @main(%%a: tensor<%s>) -> tensor<%s> {\n"
                "%%i = stablehlo.constant dense<%s> : tensor<%s>\n"
                "%%w = \"stablehlo.reduce_window\"(%%a, %%i) <{%s}> ({\n"
                "^bb0(%%x: tensor<%s>, %%y: tensor<%s>):\n%s\n"
                "}) : (tensor<%s>, tensor<%s>) -> tensor<%s>\n"
                "return %%w : tensor<%s>\n}\n",
                c->type, c->result, strstr(c->elem, "complex") ? "(0.0, 0.0)" : "0", c->elem,
                c->attrs, c->elem, c->elem, c->body, c->type, c->elem, c->result, c->result);
  Module *m = read_program(str_from(text));
  free(text);
  return m;
}

/* The length of a hypotenuse of more and more sides, which the digits of its type would lose step by
 * step. */
static void running_halves(void **state) {
  static const struct {
    DType t;
    double digit; /* half of the last one */
  } halves[] = {{DT_BF16, 1.0 / 256}, {DT_F16, 1.0 / 2048}};
  enum { N = 300 };
  (void)state;
  for (int h = 0; h < COUNT_OF(halves); h++) {
    Case c = {"hypotenuse",
              h ? "300xf16" : "300xbf16",
              h ? "f16" : "bf16",
              h ? "300xf16" : "300xbf16",
              "window_dimensions = array<i64: 300>, padding = dense<[[299, 0]]> : tensor<1x2xi64>",
              h ? HYPOTENUSE("f16") : HYPOTENUSE("bf16")};
    Module *m = read(&c);
    ok(pass_windows(m));
    ok(ir_verify(m));
    Tensor *in = tensor_make(halves[h].t, 1, (int64_t[]){N});
    uint16_t *x = in->data;
    for (int i = 0; i < N; i++) elem_set_f64(halves[h].t, &x[i], 0.25 * (i % 7 + 1));
    Tensor *got = run(m, 1, &in);
    double sum = 0;
    for (int i = 0; i < N; i++) {
      double side = elem_get_f64(halves[h].t, &x[i]),
             out = elem_get_f64(halves[h].t, (uint16_t *)got->data + i);
      sum += side * side;
      if (fabs(out - sqrt(sum)) > halves[h].digit * sqrt(sum) * 1.01)
        fail_msg("%s: %g at side %d, not %g", c.elem, out, i, sqrt(sum));
    }
    tensor_release(in);
    tensor_release(got);
    module_free(m);
  }
}

static void windows(void **state) {
  const Case *c = *state;
  Module *before = read(c), *after = read(c);
  ok(pass_windows(after));
  ok(ir_verify(after));
  for (const Op *op = module_main(after)->body->first; op; op = op->next)
    assert_int_not_equal(op->kind, OP_REDUCE_WINDOW);
  const Type *t = module_main(before)->body->args[0]->type;
  Tensor *in = tensor_make(t->dtype, t->rank, t->dims);
  DType r = dtype_real_of(t->dtype);
  for (int64_t i = 0; i < (int64_t)tensor_bytes(in) / dtype_bytes(r); i++) {
    int64_t v = i * 37 % 11 < 4 ? 0 : i % 90 + 1;
    char *p = (char *)in->data + i * dtype_bytes(r);
    if (dtype_is_float(r)) elem_set_f64(r, p, (double)v);
    else elem_set_i64(r, p, v);
  }
  same_result(c->name, before, after, 1, &in, 0);
}

int main(void) {
  struct CMUnitTest tests[COUNT_OF(cases) + 1];
  for (int i = 0; i < COUNT_OF(cases); i++)
    tests[i] = (struct CMUnitTest){cases[i].name, windows, NULL, NULL, &cases[i]};
  tests[COUNT_OF(cases)] = (struct CMUnitTest)cmocka_unit_test(running_halves);
  return _cmocka_run_group_tests("windows", tests, COUNT_OF(tests), NULL, NULL);
}
