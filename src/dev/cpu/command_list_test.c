/* Loops whose bodies run from a commands: inside each other, with branches, with values that change places
 * from turn to turn, run again with other arguments. The interpreter knows the answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dev/dev.h"
#include "interp/interp.h"
#include "stablehlo/stablehlo.h"

/* x and y change places at every turn; $ is their type. */
static const char program[] =
    "func.func @main(%n: tensor<i32>, %a: $, %b: $) -> ($, $, tensor<i32>) {\n"
    "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %two = stablehlo.constant dense<2> : tensor<i32>\n"
    "  %r:4 = stablehlo.while(%i = %zero, %x = %a, %y = %b, %s = %zero) : tensor<i32>, $, $, "
    "tensor<i32>\n"
    "  cond {\n"
    "    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "    stablehlo.return %go : tensor<i1>\n"
    "  } do {\n"
    "    %rest = stablehlo.remainder %i, %two : tensor<i32>\n"
    "    %odd = stablehlo.compare EQ, %rest, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "    %z = \"stablehlo.if\"(%odd) ({\n"
    "      %sum = stablehlo.add %x, %y : $\n"
    "      stablehlo.return %sum : $\n"
    "    }, {\n"
    "      %q:2 = stablehlo.while(%j = %zero, %v = %y) : tensor<i32>, $\n"
    "      cond {\n"
    "        %more = stablehlo.compare LT, %j, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "        stablehlo.return %more : tensor<i1>\n"
    "      } do {\n"
    "        %jb = stablehlo.broadcast_in_dim %j, dims = [] : (tensor<i32>) -> $\n"
    "        %v1 = stablehlo.subtract %jb, %v : $\n"
    "        %j1 = stablehlo.add %j, %one : tensor<i32>\n"
    "        stablehlo.return %j1, %v1 : tensor<i32>, $\n"
    "      }\n"
    "      stablehlo.return %q#1 : $\n"
    "    }) : (tensor<i1>) -> $\n"
    "    %i1 = stablehlo.add %i, %one : tensor<i32>\n"
    "    %s1 = stablehlo.add %s, %i : tensor<i32>\n"
    "    stablehlo.return %i1, %z, %x, %s1 : tensor<i32>, $, $, tensor<i32>\n"
    "  }\n"
    "  %w:3 = stablehlo.while(%k = %zero, %f = %r#1, %g = %r#2) : tensor<i32>, $, $\n"
    "  cond {\n"
    "    %on = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "    stablehlo.return %on : tensor<i1>\n"
    "  } do {\n"
    "    %k1 = stablehlo.add %k, %one : tensor<i32>\n"
    "    stablehlo.return %k1, %g, %f : tensor<i32>, $, $\n"
    "  }\n"
    "  return %w#1, %w#2, %r#3 : $, $, tensor<i32>\n"
    "}\n";

static Module *read_program(const char *type) {
  Buf b = {0};
  for (const char *p = program; *p; p++) {
    if (*p == '$') buf_cstr(&b, type);
    else buf_byte(&b, (uint8_t)*p);
  }
  Module *m = NULL;
  Err *e = stablehlo_read("loop.mlir", (Str){b.p, b.n}, &m);
  if (e) fail_msg("%s", err_text(e));
  buf_free(&b);
  return m;
}

static void test_turns(void **state) {
  (void)state;
  static const char *const types[] = {"tensor<i32>", "tensor<3xi32>", "tensor<20000xi32>"};
  static const int turns[] = {5, 0, 1, 8, 5};
  Dev *dev = NULL;
  assert_null(dev_open("cpu", &dev));
  for (int k = 0; k < COUNT_OF(types); k++) {
    Module *m = read_program(types[k]);
    const Func *f = module_main(m);
    DevProgram *prog = NULL;
    Err *e = dev_compile(dev, m, NULL, &prog);
    for (int t = 0; t < COUNT_OF(turns) && !e; t++) {
      Tensor *args[3];
      Shards in[3], want[3] = {0}, got[3] = {0};
      for (int i = 0; i < 3; i++) {
        const Type *type = f->type->elems[i];
        args[i] = tensor_make(type->dtype, type->rank, type->dims);
        in[i] = (Shards){1, &args[i]};
        for (int64_t j = 0; j < args[i]->count; j++)
          ((int32_t *)args[i]->data)[j] = i ? (int32_t)(j * 31 + i * 1000 + t) : turns[t];
      }
      e = interp_run(m, (Str){0}, NULL, in, 3, want, 3);
      if (!e) e = dev->ops->run(prog, &(DevPart){.n = 1}, in, NULL, got, NULL);
      for (int o = 0; o < 3 && !e; o++)
        assert_memory_equal(got[o].t[0]->data, want[o].t[0]->data, tensor_bytes(want[o].t[0]));
      for (int i = 0; i < 3; i++) {
        tensor_release(args[i]);
        shards_free(&want[i]);
        shards_free(&got[i]);
      }
    }
    if (e) fail_msg("%s: %s", types[k], err_text(e));
    dev_program_release(prog);
    module_free(m);
  }
  dev_close(dev);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_turns)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
