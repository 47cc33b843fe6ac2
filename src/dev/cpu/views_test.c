/* Slices of stacks in loops, which are read where they are, and what loops put into stacks, which is
 * made there, and what loops update: by fused loops, by products, under another
 * name, in a loop inside, as what is carried on, of stacks that the program made itself, at places
 * beyond the end. The interpreter knows the answer. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dev/dev.h"
#include "interp/interp.h"
#include "stablehlo/stablehlo.h"

/* S: tensor<6xRxCxf32>, P: tensor<1xRxCxf32>, M: tensor<RxCxf32>, Q: tensor<RxRxf32>. */
static const char slices_program[] =
    "func.func @main(%n: tensor<i32>, %a: $S) -> ($S, $M, $M, $Q) {\n"
    "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %none = stablehlo.constant dense<0.0> : $M\n"
    "  %square = stablehlo.constant dense<0.0> : $Q\n"
    "  %b = stablehlo.cosine %a : $S\n"
    "  %c = stablehlo.negate %b : $S\n"
    "  %r:5 = stablehlo.while(%i = %zero, %t = %b, %x = %none, %y = %none, %q = %square)"
    " : tensor<i32>, $S, $M, $M, $Q\n"
    "  cond {\n"
    "    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "    stablehlo.return %go : tensor<i1>\n"
    "  } do {\n"
    "    %p = stablehlo.dynamic_slice %a, %i, %zero, %zero, sizes = [1, $R, $C]"
    " : ($S, tensor<i32>, tensor<i32>, tensor<i32>) -> $P\n"
    "    %m = stablehlo.reshape %p : ($P) -> $M\n"
    "    %u = stablehlo.dynamic_slice %c, %i, %zero, %zero, sizes = [1, $R, $C]"
    " : ($S, tensor<i32>, tensor<i32>, tensor<i32>) -> $P\n"
    "    %v = stablehlo.reshape %u : ($P) -> $M\n"
    "    %old = stablehlo.dynamic_slice %t, %i, %zero, %zero, sizes = [1, $R, $C]"
    " : ($S, tensor<i32>, tensor<i32>, tensor<i32>) -> $P\n"
    "    %new = stablehlo.add %old, %u : $P\n"
    "    %t1 = stablehlo.dynamic_update_slice %t, %new, %zero, %zero, %zero"
    " : ($S, $P, tensor<i32>, tensor<i32>, tensor<i32>) -> $S\n"
    "    %d = stablehlo.dot_general %m, %v, contracting_dims = [1] x [1] : ($M, $M) -> $Q\n"
    "    %q1 = stablehlo.add %q, %d : $Q\n"
    "    %in:2 = stablehlo.while(%j = %zero, %w = %x) : tensor<i32>, $M\n"
    "    cond {\n"
    "      %more = stablehlo.compare LT, %j, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "      stablehlo.return %more : tensor<i1>\n"
    "    } do {\n"
    "      %o = stablehlo.dynamic_slice %c, %j, %zero, %zero, sizes = [1, $R, $C]"
    " : ($S, tensor<i32>, tensor<i32>, tensor<i32>) -> $P\n"
    "      %o1 = stablehlo.reshape %o : ($P) -> $M\n"
    "      %s = stablehlo.add %o1, %m : $M\n"
    "      %w1 = stablehlo.subtract %s, %w : $M\n"
    "      %j1 = stablehlo.add %j, %one : tensor<i32>\n"
    "      stablehlo.return %j1, %w1 : tensor<i32>, $M\n"
    "    }\n"
    "    %x1 = stablehlo.add %in#1, %v : $M\n"
    "    %i1 = stablehlo.add %i, %one : tensor<i32>\n"
    "    stablehlo.return %i1, %t1, %x1, %v, %q1 : tensor<i32>, $S, $M, $M, $Q\n"
    "  }\n"
    "  return %r#1, %r#2, %r#3, %r#4 : $S, $M, $M, $Q\n"
    "}\n";

/* What a loop of N turns puts into stacks: all of one, backwards, a part of one that begins as
 * something, the same value twice, a product; each read again in the same turn. */
static const char puts_program[] =
    "func.func @main(%n: tensor<i32>, %a: $S) -> ($S, $S, $S, $S, $M) {\n"
    "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %turns = stablehlo.constant dense<$N> : tensor<i32>\n"
    "  %five = stablehlo.constant dense<5> : tensor<i32>\n"
    "  %none = stablehlo.constant dense<0.0> : $S\n"
    "  %first = stablehlo.constant dense<1.0> : $M\n"
    "  %b = stablehlo.cosine %a : $S\n"
    "  %r:6 = stablehlo.while(%i = %zero, %t = %none, %u = %b, %v = %a, %w = %none, %x = %first)"
    " : tensor<i32>, $S, $S, $S, $S, $M\n"
    "  cond {\n"
    "    %go = stablehlo.compare LT, %i, %turns : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "    stablehlo.return %go : tensor<i1>\n"
    "  } do {\n"
    "    %p = stablehlo.dynamic_slice %b, %i, %zero, %zero, sizes = [1, $R, $C]"
    " : ($S, tensor<i32>, tensor<i32>, tensor<i32>) -> $P\n"
    "    %m = stablehlo.reshape %p : ($P) -> $M\n"
    "    %s = stablehlo.add %m, %x : $M\n"
    "    %s1 = stablehlo.reshape %s : ($M) -> $P\n"
    "    %t1 = stablehlo.dynamic_update_slice %t, %s1, %i, %zero, %zero"
    " : ($S, $P, tensor<i32>, tensor<i32>, tensor<i32>) -> $S\n"
    "    %back = stablehlo.subtract %five, %i : tensor<i32>\n"
    "    %u1 = stablehlo.dynamic_update_slice %u, %s1, %back, %zero, %zero"
    " : ($S, $P, tensor<i32>, tensor<i32>, tensor<i32>) -> $S\n"
    "    %d = stablehlo.dot_general %s, %m, contracting_dims = [1] x [1] : ($M, $M) -> $Q\n"
    "    %e = stablehlo.dot_general %d, %s, contracting_dims = [1] x [0] : ($Q, $M) -> $M\n"
    "    %e1 = stablehlo.reshape %e : ($M) -> $P\n"
    "    %v1 = stablehlo.dynamic_update_slice %v, %e1, %back, %zero, %zero"
    " : ($S, $P, tensor<i32>, tensor<i32>, tensor<i32>) -> $S\n"
    "    %f = stablehlo.tanh %e : $M\n"
    "    %f1 = stablehlo.reshape %f : ($M) -> $P\n"
    "    %w1 = stablehlo.dynamic_update_slice %w, %f1, %i, %zero, %zero"
    " : ($S, $P, tensor<i32>, tensor<i32>, tensor<i32>) -> $S\n"
    "    %g = stablehlo.multiply %f, %s : $M\n"
    "    %x1 = stablehlo.tanh %g : $M\n"
    "    %i1 = stablehlo.add %i, %one : tensor<i32>\n"
    "    stablehlo.return %i1, %t1, %u1, %v1, %w1, %x1 : tensor<i32>, $S, $S, $S, $S, $M\n"
    "  }\n"
    "  return %r#1, %r#2, %r#3, %r#4, %r#5 : $S, $S, $S, $S, $M\n"
    "}\n";

/* A loop that updates what it carries twice a turn, reads it between and after, and updates it once
 * more in every other turn. */
static const char updates_program[] =
    "func.func @main(%n: tensor<i32>, %a: $S) -> ($S, $S, $M) {\n"
    "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %five = stablehlo.constant dense<5> : tensor<i32>\n"
    "  %none = stablehlo.constant dense<0.0> : $M\n"
    "  %b = stablehlo.cosine %a : $S\n"
    "  %r:4 = stablehlo.while(%i = %zero, %t = %a, %u = %b, %x = %none)"
    " : tensor<i32>, $S, $S, $M\n"
    "  cond {\n"
    "    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "    stablehlo.return %go : tensor<i1>\n"
    "  } do {\n"
    "    %back = stablehlo.subtract %five, %i : tensor<i32>\n"
    "    %m = stablehlo.tanh %x : $M\n"
    "    %p = stablehlo.reshape %m : ($M) -> $P\n"
    "    %t1 = stablehlo.dynamic_update_slice %t, %p, %i, %zero, %zero"
    " : ($S, $P, tensor<i32>, tensor<i32>, tensor<i32>) -> $S\n"
    "    %s = stablehlo.dynamic_slice %t1, %back, %zero, %zero, sizes = [1, $R, $C]"
    " : ($S, tensor<i32>, tensor<i32>, tensor<i32>) -> $P\n"
    "    %s1 = stablehlo.cosine %s : $P\n"
    "    %t2 = stablehlo.dynamic_update_slice %t1, %s1, %back, %zero, %zero"
    " : ($S, $P, tensor<i32>, tensor<i32>, tensor<i32>) -> $S\n"
    "    %u1 = stablehlo.dynamic_update_slice %u, %s1, %back, %zero, %zero"
    " : ($S, $P, tensor<i32>, tensor<i32>, tensor<i32>) -> $S\n"
    "    %u2 = stablehlo.dynamic_update_slice %u1, %p, %i, %zero, %zero"
    " : ($S, $P, tensor<i32>, tensor<i32>, tensor<i32>) -> $S\n"
    "    %old = stablehlo.dynamic_slice %u, %back, %zero, %zero, sizes = [1, $R, $C]"
    " : ($S, tensor<i32>, tensor<i32>, tensor<i32>) -> $P\n"
    "    %o = stablehlo.reshape %old : ($P) -> $M\n"
    "    %d = stablehlo.dot_general %o, %o, contracting_dims = [1] x [1] : ($M, $M) -> $Q\n"
    "    %e = stablehlo.dot_general %d, %o, contracting_dims = [1] x [0] : ($Q, $M) -> $M\n"
    "    %x1 = stablehlo.add %x, %e : $M\n"
    "    %i1 = stablehlo.add %i, %one : tensor<i32>\n"
    "    %odd = stablehlo.and %i, %one : tensor<i32>\n"
    "    %is = stablehlo.compare EQ, %odd, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "    %t3 = \"stablehlo.if\"(%is) ({\n"
    "      %w = stablehlo.dynamic_update_slice %t2, %p, %one, %zero, %zero"
    " : ($S, $P, tensor<i32>, tensor<i32>, tensor<i32>) -> $S\n"
    "      stablehlo.return %w : $S\n"
    "    }, {\n"
    "      stablehlo.return %t2 : $S\n"
    "    }) : (tensor<i1>) -> $S\n"
    "    stablehlo.return %i1, %t3, %u2, %x1 : tensor<i32>, $S, $S, $M\n"
    "  }\n"
    "  return %r#1, %r#2, %r#3 : $S, $S, $M\n"
    "}\n";

/* Parts of an argument outside of loops: of a product, of a loop and a product, at an end. */
static const char parts_program[] =
    "func.func @main(%n: tensor<i32>, %a: $S) -> ($Q, $Q, $M, $S) {\n"
    "  %p = stablehlo.slice %a [2:3, 0:$R, 0:$C] : ($S) -> $P\n"
    "  %m = stablehlo.reshape %p : ($P) -> $M\n"
    "  %q = stablehlo.slice %a [5:6, 0:$R, 0:$C] : ($S) -> $P\n"
    "  %o = stablehlo.reshape %q : ($P) -> $M\n"
    "  %d = stablehlo.dot_general %m, %o, contracting_dims = [1] x [1] : ($M, $M) -> $Q\n"
    "  %e = stablehlo.dot_general %m, %m, contracting_dims = [1] x [1] : ($M, $M) -> $Q\n"
    "  %t = stablehlo.tanh %m : $M\n"
    "  %u = stablehlo.add %t, %o : $M\n"
    "  %s = stablehlo.negate %a : $S\n"
    "  return %d, %e, %u, %s : $Q, $Q, $M, $S\n"
    "}\n";

static Module *read_program(const char *program, int rows, int columns, int turns) {
  Buf b = {0};
  for (const char *p = program; *p; p++) {
    if (*p != '$') {
      buf_byte(&b, (uint8_t)*p);
      continue;
    }
    switch (*++p) {
    case 'S': buf_printf(&b, "tensor<6x%dx%dxf32>", rows, columns); break;
    case 'P': buf_printf(&b, "tensor<1x%dx%dxf32>", rows, columns); break;
    case 'M': buf_printf(&b, "tensor<%dx%dxf32>", rows, columns); break;
    case 'Q': buf_printf(&b, "tensor<%dx%dxf32>", rows, rows); break;
    case 'R': buf_printf(&b, "%d", rows); break;
    case 'N': buf_printf(&b, "%d", turns); break;
    default: buf_printf(&b, "%d", columns);
    }
  }
  Module *m = NULL;
  Err *e = stablehlo_read("stack.mlir", (Str){b.p, b.n}, &m);
  if (e) fail_msg("%s", err_text(e));
  buf_free(&b);
  return m;
}

static void compare(const Tensor *got, const Tensor *want, int rows, int columns) {
  const float *x = got->data, *y = want->data;
  for (int64_t i = 0; i < want->count; i++)
    if (!(fabsf(x[i] - y[i]) <= 1e-4f * (1 + fabsf(y[i]))))
      fail_msg("%dx%d: element %lld is %.9g, not %.9g", rows, columns, (long long)i, (double)x[i],
               (double)y[i]);
}

/* The program with each of these numbers as its first argument. */
static void check(const char *text, int rows, int columns, int times, const int *turns, int n) {
  Dev *dev = NULL;
  assert_null(dev_open("cpu", &dev));
  Module *m = read_program(text, rows, columns, turns[0]);
  const Func *f = module_main(m);
  int n_out = f->type->n_results;
  DevProgram *prog = NULL;
  Err *e = dev_compile(dev, m, NULL, &prog);
  for (int t = 0; t < n && !e; t++) {
    Tensor *args[2];
    Shards in[2], want[5] = {0}, got[5] = {0};
    for (int i = 0; i < 2; i++) {
      const Type *type = f->type->elems[i];
      args[i] = tensor_make(type->dtype, type->rank, type->dims);
      in[i] = (Shards){1, &args[i]};
    }
    *(int32_t *)args[0]->data = turns[t];
    for (int64_t j = 0; j < args[1]->count; j++)
      ((float *)args[1]->data)[j] = (float)((j * 7919 + t) % 201 - 100) / 64;
    e = interp_run(m, (Str){0}, NULL, in, 2, want, n_out);
    for (int k = 0; k < times && !e; k++) {
      e = dev->ops->run(prog, &(DevPart){.n = 1}, in, NULL, got, NULL);
      for (int o = 0; o < n_out && !e; o++) {
        compare(got[o].t[0], want[o].t[0], rows, columns);
        shards_free(&got[o]);
      }
    }
    for (int i = 0; i < 2; i++) tensor_release(args[i]);
    for (int o = 0; o < n_out; o++) shards_free(&want[o]);
  }
  if (e) fail_msg("%dx%d: %s", rows, columns, err_text(e));
  dev_program_release(prog);
  module_free(m);
  dev_close(dev);
}

static const int shapes[][2] = {{3, 5}, {16, 16}, {16, 18}, {1, 256}, {64, 512}, {200, 640}};

static void test_slices(void **state) {
  (void)state;
  static const int turns[] = {6, 1, 0, 8, 6};
  for (int k = 0; k < COUNT_OF(shapes); k++)
    check(slices_program, shapes[k][0], shapes[k][1], 1, turns, COUNT_OF(turns));
}

static void test_puts(void **state) {
  (void)state;
  static const int turns[] = {6, 4, 1};
  for (int k = 0; k < COUNT_OF(shapes); k++)
    for (int t = 0; t < COUNT_OF(turns); t++)
      check(puts_program, shapes[k][0], shapes[k][1], 2, &turns[t], 1);
}

static void test_updates(void **state) {
  (void)state;
  static const int turns[] = {6, 1, 0, 5};
  for (int k = 0; k < COUNT_OF(shapes); k++)
    check(updates_program, shapes[k][0], shapes[k][1], 2, turns, COUNT_OF(turns));
}

static void test_parts(void **state) {
  (void)state;
  static const int turns[] = {1, 2};
  for (int k = 0; k < COUNT_OF(shapes); k++)
    check(parts_program, shapes[k][0], shapes[k][1], 2, turns, COUNT_OF(turns));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_slices), cmocka_unit_test(test_puts),
                                     cmocka_unit_test(test_updates), cmocka_unit_test(test_parts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
