/* What leaves a loop (pass_hoist) and what a loop's products keep packed: programs whose answer the
 * interpreter, which has neither, gives as well, and what is left in the loop. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "compile/pass/pass.h"
#include "dev/dev.h"
#include "interp/interp.h"
#include "stablehlo/stablehlo.h"

/* h and d at step t: SLICE picks the order in which the stack of h is read, PUT the one in which
 * the stack of d is written, ADD whether d is added to what START has there; w is the same at every
 * step. */
static const char program[] =
    "func.func @main(%hs: tensor<5x4x8xf32>, %w: tensor<8x24xf32>, %ds: tensor<5x4x24xf32>, "
    "%s: tensor<8x24xf32>) -> (tensor<8x24xf32>, tensor<5x4x24xf32>, tensor<4x8xf32>) {\n"
    "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %four = stablehlo.constant dense<4> : tensor<i32>\n"
    "  %five = stablehlo.constant dense<5> : tensor<i32>\n"
    "  %carry = stablehlo.constant dense<0.5> : tensor<4x8xf32>\n"
    "  %none = stablehlo.constant dense<0.0> : tensor<5x4x24xf32>\n"
    "  %r:6 = stablehlo.while(%i = %zero, %hs_ = %hs, %w_ = %w, %ds_ = START, %s_ = %s, %c = "
    "%carry) "
    ": tensor<i32>, tensor<5x4x8xf32>, tensor<8x24xf32>, tensor<5x4x24xf32>, tensor<8x24xf32>, "
    "tensor<4x8xf32>\n"
    "  cond {\n"
    "    %go = stablehlo.compare LT, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "    stablehlo.return %go : tensor<i1>\n"
    "  } do {\n"
    "    %back = stablehlo.subtract %four, %i : tensor<i32>\n"
    "    %p = stablehlo.dynamic_slice %hs_, SLICE, %zero, %zero, sizes = [1, 4, 8] : "
    "(tensor<5x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x8xf32>\n"
    "    %h = stablehlo.reshape %p : (tensor<1x4x8xf32>) -> tensor<4x8xf32>\n"
    "    %x = stablehlo.add %h, %c : tensor<4x8xf32>\n"
    "    %y = stablehlo.dot_general %x, %w_, contracting_dims = [1] x [0] : (tensor<4x8xf32>, "
    "tensor<8x24xf32>) -> tensor<4x24xf32>\n"
    "    %d = stablehlo.tanh %y : tensor<4x24xf32>\n"
    "    %c2 = stablehlo.dot_general %d, %w_, contracting_dims = [1] x [1] : (tensor<4x24xf32>, "
    "tensor<8x24xf32>) -> tensor<4x8xf32>\n"
    "    %c3 = stablehlo.tanh %c2 : tensor<4x8xf32>\n"
    "    %g = stablehlo.dot_general %h, %d, contracting_dims = [0] x [0] : (tensor<4x8xf32>, "
    "tensor<4x24xf32>) -> tensor<8x24xf32>\n"
    "    %sum = stablehlo.add %s_, %g : tensor<8x24xf32>\n"
    "    %q = stablehlo.reshape %d : (tensor<4x24xf32>) -> tensor<1x4x24xf32>\n"
    "    %old = stablehlo.dynamic_slice %ds_, PUT, %zero, %zero, sizes = [1, 4, 24] : "
    "(tensor<5x4x24xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x24xf32>\n"
    "    %new = stablehlo.add %old, %q : tensor<1x4x24xf32>\n"
    "    %put = stablehlo.dynamic_update_slice %ds_, PART, PUT, %zero, %zero : "
    "(tensor<5x4x24xf32>, tensor<1x4x24xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> "
    "tensor<5x4x24xf32>\n"
    "    %n = stablehlo.add %i, %one : tensor<i32>\n"
    "    stablehlo.return %n, %hs_, %w_, %put, %sum, %c3 : tensor<i32>, tensor<5x4x8xf32>, "
    "tensor<8x24xf32>, tensor<5x4x24xf32>, tensor<8x24xf32>, tensor<4x8xf32>\n"
    "  }\n"
    "  return %r#4, %r#3, %r#5 : tensor<8x24xf32>, tensor<5x4x24xf32>, tensor<4x8xf32>\n"
    "}\n";

typedef struct Words {
  const char *slice, *put, *part, *start;
} Words;

static Module *read_program(const Words *w) {
  const struct {
    const char *word, *by;
  } words[] = {{"SLICE", w->slice}, {"PUT", w->put}, {"PART", w->part}, {"START", w->start}};
  Buf b = {0};
  for (const char *p = program; *p;) {
    int k = 0;
    while (k < COUNT_OF(words) && strncmp(p, words[k].word, strlen(words[k].word))) k++;
    if (k == COUNT_OF(words)) {
      buf_byte(&b, (uint8_t)*p++);
      continue;
    }
    buf_cstr(&b, words[k].by);
    p += strlen(words[k].word);
  }
  Module *m = NULL;
  Err *e = stablehlo_read("loop.mlir", (Str){(const char *)b.p, b.n}, &m);
  if (e) fail_msg("%s", err_text(e));
  buf_free(&b);
  return m;
}

static void run_both(const Words *words) {
  Module *m = read_program(words);
  Func *f = module_main(m);
  Shards args[4], want[3] = {0}, got[3] = {0};
  for (int i = 0; i < 4; i++) {
    const Type *t = f->type->elems[i];
    args[i] = (Shards){1, xcalloc(1, sizeof(Tensor *))};
    args[i].t[0] = tensor_make(t->dtype, t->rank, t->dims);
    float *p = args[i].t[0]->data;
    for (int64_t j = 0; j < args[i].t[0]->count; j++)
      p[j] = (float)((j * 7919 + i * 104729) % 201 - 100) / 100;
  }
  Dev *dev = NULL;
  DevProgram *prog = NULL;
  Err *e = interp_run(m, (Str){0}, NULL, args, 4, want, 3);
  if (!e) e = dev_open("cpu", &dev);
  if (!e) e = dev_compile(dev, m, NULL, &prog);
  for (int again = 0; again < 2 && !e; again++) { /* what was kept must be filled anew */
    float *w = args[1].t[0]->data;
    if (again) {
      for (int64_t j = 0; j < args[1].t[0]->count; j++) w[j] = -w[j] / 2;
      for (int i = 0; i < 3; i++) shards_free(&want[i]), shards_free(&got[i]);
      e = interp_run(m, (Str){0}, NULL, args, 4, want, 3);
    }
    if (!e) e = dev->ops->run(prog, &(DevPart){.n = 1}, args, NULL, got, NULL);
    for (int o = 0; o < 3 && !e; o++) {
      const float *a = got[o].t[0]->data, *b = want[o].t[0]->data;
      for (int64_t i = 0; i < want[o].t[0]->count; i++)
        if (fabsf(a[i] - b[i]) > 2e-5f)
          fail_msg("%s %s %s run %d: result %d element %lld is %g, not %g", words->slice,
                   words->put, words->start, again, o, (long long)i, (double)a[i], (double)b[i]);
    }
  }
  if (e) fail_msg("%s", err_text(e));
  for (int i = 0; i < 4; i++) shards_free(&args[i]);
  for (int i = 0; i < 3; i++) shards_free(&want[i]), shards_free(&got[i]);
  dev_program_release(prog);
  dev_close(dev);
  module_free(m);
}

/* Products left in the loop, and values it carries. */
static void after_hoist(const Words *words, int *dots, int *carried) {
  Module *m = read_program(words);
  Err *e = pass_simplify(m);
  if (!e) e = pass_hoist(m);
  if (!e) e = ir_verify(m);
  if (e) fail_msg("%s", err_text(e));
  *dots = *carried = 0;
  for (const Op *op = module_main(m)->body->first; op; op = op->next) {
    if (op->kind != OP_WHILE) continue;
    *carried = op->n_results;
    for (const Op *x = op->regions[1]->first; x; x = x->next) *dots += x->kind == OP_DOT_GENERAL;
  }
  module_free(m);
}

static void test_sums(void **state) {
  (void)state;
  static const struct {
    Words words;
    int dots, carried;
  } cases[] = {
      {{"%i", "%i", "%q", "%ds"}, 2, 3},
      {{"%back", "%back", "%q", "%ds"}, 2, 3},
      {{"%i", "%back", "%q", "%ds"}, 3, 4}, /* step t of one is not step t of the other */
      {{"%zero", "%zero", "%q", "%ds"}, 3, 4},
      {{"%i", "%one", "%q", "%ds"}, 3, 4},
      {{"%back", "%back", "%new", "%none"}, 2, 3}, /* added to nothing */
      {{"%back", "%back", "%new", "%ds"}, 3, 4},
      {{"%zero", "%zero", "%new", "%none"}, 3, 4}, /* all in one place */
  };
  for (int i = 0; i < COUNT_OF(cases); i++) {
    int dots, carried;
    after_hoist(&cases[i].words, &dots, &carried);
    assert_int_equal(dots, cases[i].dots);
    assert_int_equal(carried, cases[i].carried);
    run_both(&cases[i].words);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
