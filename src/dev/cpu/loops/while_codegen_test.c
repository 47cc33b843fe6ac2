/* Loops that are one function, or run from a commands: slices read and written at indices that change and leave the array, windows
 * of several pieces, scatters of one window, small vectors of odd lengths. The interpreter knows the
 * answer. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dev/dev.h"
#include "interp/interp.h"
#include "stablehlo/stablehlo.h"

#define OPEN                                                                                \
  "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"                                   \
  "  %one = stablehlo.constant dense<1> : tensor<i32>\n"                                    \
  "  %five = stablehlo.constant dense<5> : tensor<i32>\n"                                   \
  "  %limit = stablehlo.constant dense<11> : tensor<i32>\n"                                 \
  "  %r:2 = stablehlo.while(%i = %zero, %x = %a) : tensor<i32>, $\n"                        \
  "  cond {\n"                                                                              \
  "    %go = stablehlo.compare LT, %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>\n" \
  "    stablehlo.return %go : tensor<i1>\n"                                                 \
  "  } do {\n"                                                                              \
  "    %i1 = stablehlo.add %i, %one : tensor<i32>\n"                                        \
  "    %at = stablehlo.subtract %i1, %five : tensor<i32>\n"
#define CLOSE                                       \
  "    stablehlo.return %i1, %y : tensor<i32>, $\n" \
  "  }\n"                                           \
  "  return %r#1 : $\n"                             \
  "}\n"

typedef struct Case {
  const char *type, *body; /* from %x and %at to %y */
} Case;

#define SCATTER(index, window, inserted, dims)                                                \
  "    %y = \"stablehlo.scatter\"(%x, %where, %w) <{scatter_dimension_numbers = "             \
  "#stablehlo.scatter<update_window_dims = " window ", inserted_window_dims = " inserted ", " \
  "scatter_dims_to_operand_dims = " dims ", index_vector_dim = " index ">}> ({\n"             \
  "    ^bb0(%p: tensor<#>, %q: tensor<#>):\n"                                                 \
  "      %sum = stablehlo.add %p, %q : tensor<#>\n"                                           \
  "      stablehlo.return %sum : tensor<#>\n"                                                 \
  "    }) : "

static const Case cases[] = {
    /* a column, from outside on the left to outside on the right, written back one row lower */
    {"5x7x#",
     "    %s = stablehlo.dynamic_slice %x, %zero, %at, sizes = [4, 2] : (tensor<5x7x#>, "
     "tensor<i32>, "
     "tensor<i32>) -> tensor<4x2x#>\n"
     "    %t = stablehlo.add %s, %s : tensor<4x2x#>\n"
     "    %y = stablehlo.dynamic_update_slice %x, %t, %one, %at : (tensor<5x7x#>, tensor<4x2x#>, "
     "tensor<i32>, tensor<i32>) -> tensor<5x7x#>\n"},
    {"300x#",
     "    %s = stablehlo.dynamic_slice %x, %at, sizes = [37] : (tensor<300x#>, tensor<i32>) -> "
     "tensor<37x#>\n"
     "    %t = stablehlo.multiply %s, %s : tensor<37x#>\n"
     "    %y = stablehlo.dynamic_update_slice %x, %t, %i1 : (tensor<300x#>, tensor<37x#>, "
     "tensor<i32>) "
     "-> tensor<300x#>\n"},
    /* too large for one function: from a commands */
    {"12x700x#",
     "    %s = stablehlo.dynamic_slice %x, %one, %at, sizes = [11, 150] : (tensor<12x700x#>, "
     "tensor<i32>, tensor<i32>) -> tensor<11x150x#>\n"
     "    %t = stablehlo.add %s, %s : tensor<11x150x#>\n"
     "    %y = stablehlo.dynamic_update_slice %x, %t, %zero, %at : (tensor<12x700x#>, "
     "tensor<11x150x#>, tensor<i32>, tensor<i32>) -> tensor<12x700x#>\n"},
    /* neighbours of odd lengths, put together again */
    {"3x#",
     "    %p = stablehlo.slice %x [0:1] : (tensor<3x#>) -> tensor<1x#>\n"
     "    %q = stablehlo.slice %x [1:3] : (tensor<3x#>) -> tensor<2x#>\n"
     "    %q2 = stablehlo.add %q, %q : tensor<2x#>\n"
     "    %t = stablehlo.concatenate %q2, %p, dim = 0 : (tensor<2x#>, tensor<1x#>) -> tensor<3x#>\n"
     "    %y = stablehlo.subtract %t, %x : tensor<3x#>\n"},
    {"6x9x#", "    %where = stablehlo.reshape %at : (tensor<i32>) -> tensor<1xi32>\n"
              "    %w = stablehlo.slice %x [1:2, 0:9] : (tensor<6x9x#>) -> tensor<1x9x#>\n" SCATTER(
                  "0", "[0, 1]", "[]",
                  "[0]") "(tensor<6x9x#>, tensor<1xi32>, tensor<1x9x#>) -> tensor<6x9x#>\n"},
    {"6x9x#",
     "    %e = stablehlo.reshape %at : (tensor<i32>) -> tensor<1xi32>\n"
     "    %f = stablehlo.reshape %i1 : (tensor<i32>) -> tensor<1xi32>\n"
     "    %where = stablehlo.concatenate %e, %f, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> "
     "tensor<2xi32>\n"
     "    %v = stablehlo.slice %x [2:3, 3:4] : (tensor<6x9x#>) -> tensor<1x1x#>\n"
     "    %w = stablehlo.reshape %v : (tensor<1x1x#>) -> tensor<#>\n" SCATTER(
         "0", "[]", "[0, 1]",
         "[0, 1]") "(tensor<6x9x#>, tensor<2xi32>, tensor<#>) -> tensor<6x9x#>\n"},
};

static Module *read_case(const Case *c, const char *type) {
  const char *parts[] = {"func.func @main(%a: $) -> $ {\n", OPEN, c->body, CLOSE};
  Buf b = {0};
  for (int i = 0; i < COUNT_OF(parts); i++)
    for (const char *p = parts[i]; *p; p++) {
      if (*p == '$') {
        buf_cstr(&b, "tensor<");
        for (const char *q = c->type; *q; q++)
          if (*q == '#') buf_cstr(&b, type);
          else buf_byte(&b, (uint8_t)*q);
        buf_cstr(&b, ">");
      } else if (*p == '#' && p[1] != 's' && p[1] != '1') {
        buf_cstr(&b, type);
      } else {
        buf_byte(&b, (uint8_t)*p);
      }
    }
  Module *m = NULL;
  Err *e = stablehlo_read("loop.mlir", (Str){b.p, b.n}, &m);
  if (e) fail_msg("%s\n%.*s", err_text(e), (int)b.n, b.p);
  buf_free(&b);
  return m;
}

/* Within a kernel bf16 has more digits than the interpreter's. */
static bool is_same(const Tensor *got, const Tensor *want) {
  if (got->dtype != DT_BF16) return !memcmp(got->data, want->data, tensor_bytes(want));
  double most = 0, off = 0;
  for (int64_t i = 0; i < want->count; i++) {
    double a = elem_get_f64(DT_BF16, tensor_at(got, i)),
           b = elem_get_f64(DT_BF16, tensor_at(want, i));
    most = fmax(most, fabs(b));
    off = fmax(off, fabs(a - b));
  }
  return off <= 0.02 * most;
}

static void test_cycles(void **state) {
  (void)state;
  static const char *const types[] = {"f32", "i32", "bf16", "f64", "ui8"};
  Dev *dev = NULL;
  assert_null(dev_open("cpu", &dev));
  for (int k = 0; k < COUNT_OF(cases) * COUNT_OF(types); k++) {
    Module *m = read_case(&cases[k / COUNT_OF(types)], types[k % COUNT_OF(types)]);
    const Type *t = module_main(m)->type->elems[0];
    Tensor *x = tensor_make(t->dtype, t->rank, t->dims);
    for (int64_t i = 0; i < x->count; i++) {
      char *at = (char *)x->data + i * dtype_bytes(t->dtype);
      if (dtype_is_float(t->dtype)) elem_set_f64(t->dtype, at, (double)(i % 7) * 0.5 - 1);
      else elem_set_i64(t->dtype, at, i % 5 + 1);
    }
    Shards in = {1, &x}, want = {0}, got = {0};
    DevProgram *prog = NULL;
    Err *e = dev_compile(dev, m, NULL, &prog);
    if (!e) e = interp_run(m, (Str){0}, NULL, &in, 1, &want, 1);
    if (!e) e = dev->ops->run(prog, &(DevPart){.n = 1}, &in, NULL, &got, NULL);
    if (e) fail_msg("%s", err_text(e));
    if (!is_same(got.t[0], want.t[0]))
      fail_msg("case %d of %s is wrong", k / (int)COUNT_OF(types), types[k % COUNT_OF(types)]);
    tensor_release(x);
    shards_free(&want);
    shards_free(&got);
    dev_program_release(prog);
    module_free(m);
  }
  dev_close(dev);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_cycles)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
