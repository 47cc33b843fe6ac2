/* A program that begins as strips gives the same from its first run on: while its code is generated, when a
 * run under way changes to it, afterwards; from several threads, and freed meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dev/cpu/answer_test.h"

#define THREADS 3

/* As a row of three sweeps and, by columns, in parts that are added up. */
static const char text[] =
    "func.func @main(%x: tensor<1500x1024xf32>) -> tensor<1024xf32> {\n"
    "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %m = stablehlo.reduce(%x init: %z) applies stablehlo.maximum across dimensions = [1] : "
    "(tensor<1500x1024xf32>, tensor<f32>) -> tensor<1500xf32>\n"
    "  %b = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<1500xf32>) -> "
    "tensor<1500x1024xf32>\n"
    "  %d = stablehlo.subtract %x, %b : tensor<1500x1024xf32>\n"
    "  %e = stablehlo.tanh %d : tensor<1500x1024xf32>\n"
    "  %s = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [1] : "
    "(tensor<1500x1024xf32>, tensor<f32>) -> tensor<1500xf32>\n"
    "  %c = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<1500xf32>) -> "
    "tensor<1500x1024xf32>\n"
    "  %q = stablehlo.divide %e, %c : tensor<1500x1024xf32>\n"
    "  %r = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [0] : "
    "(tensor<1500x1024xf32>, tensor<f32>) -> tensor<1024xf32>\n"
    "  return %r : tensor<1024xf32>\n}\n";

/* A loop whose turns are counted: many small steps, or one function of generated code. */
static const char loop[] =
    "func.func @main(%x: tensor<60x24xf32>) -> tensor<60x24xf32> {\n"
    "  %z = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %n = stablehlo.constant dense<60> : tensor<i32>\n"
    "  %c = stablehlo.constant dense<0.5> : tensor<1x24xf32>\n"
    "  %r:3 = stablehlo.while(%i = %z, %h = %c, %o = %x) : tensor<i32>, tensor<1x24xf32>, "
    "tensor<60x24xf32>\n"
    "   cond {\n"
    "    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "    stablehlo.return %p : tensor<i1>\n"
    "  } do {\n"
    "    %s = stablehlo.dynamic_slice %o, %i, %z, sizes = [1, 24] : (tensor<60x24xf32>, "
    "tensor<i32>, tensor<i32>) -> tensor<1x24xf32>\n"
    "    %t = stablehlo.add %h, %s : tensor<1x24xf32>\n"
    "    %u = stablehlo.tanh %t : tensor<1x24xf32>\n"
    "    %w = stablehlo.dynamic_update_slice %o, %u, %i, %z : (tensor<60x24xf32>, "
    "tensor<1x24xf32>, tensor<i32>, tensor<i32>) -> tensor<60x24xf32>\n"
    "    %j = stablehlo.add %i, %one : tensor<i32>\n"
    "    stablehlo.return %j, %u, %w : tensor<i32>, tensor<1x24xf32>, tensor<60x24xf32>\n"
    "  }\n"
    "  return %r#2 : tensor<60x24xf32>\n}\n";

/* Loops until a number is reached, as one function or, with a product in it, step by step. */
#define UNTIL(more, steps)                                                             \
  "func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {\n"                        \
  "  %z = stablehlo.constant dense<0> : tensor<i32>\n"                                 \
  "  %r:2 = stablehlo.while(%i = %z, %h = %x) : tensor<i32>, tensor<4x4xf32>\n"        \
  "   cond {\n"                                                                        \
  "    %n = stablehlo.constant dense<" more "> : tensor<i32>\n"                        \
  "    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n" \
  "    stablehlo.return %p : tensor<i1>\n"                                             \
  "  } do {\n"                                                                         \
  "    %one = stablehlo.constant dense<3> : tensor<i32>\n" steps                       \
  "    %j = stablehlo.xor %i, %one : tensor<i32>\n"                                    \
  "    %k = stablehlo.add %j, %one : tensor<i32>\n"                                    \
  "    stablehlo.return %k, %u : tensor<i32>, tensor<4x4xf32>\n"                       \
  "  }\n"                                                                              \
  "  return %r#1 : tensor<4x4xf32>\n}\n"

typedef struct Run {
  Dev *dev;
  DevProgram *prog;
  Tensor *x, *want;
  int n;
} Run;

static Run start(const char *program, Tensor *x, Tensor *want, int n) {
  Run r = {.x = x, .want = want, .n = n};
  Module *m = NULL;
  Err *e = stablehlo_read("test.mlir", str_from(program), &m);
  if (!e) e = dev_open("cpu", &r.dev);
  if (!e) e = dev_compile(r.dev, m, NULL, &r.prog);
  if (e) fail_msg("%s", err_text(e));
  module_free(m);
  return r;
}

static void end(Run *r) {
  dev_program_release(r->prog);
  dev_close(r->dev);
}

static void *runs(void *arg) { /* returns NULL: well */
  Run *r = arg;
  for (int i = 0; i < r->n; i++) {
    Shards in = {1, (Tensor *[]){r->x}}, got = {0};
    Err *e = r->dev->ops->run(r->prog, &(DevPart){.n = 1}, &in, NULL, &got, NULL);
    bool same = !e && !memcmp(got.t[0]->data, r->want->data, tensor_bytes(r->want));
    err_free(e);
    shards_free(&got);
    if (!same) return r;
  }
  return NULL;
}

static void check(const char *program, Tensor *x) {
  setenv("WEFT_VINTERP", "off", 1);
  Tensor *want = answer_of(program, x);
  unsetenv("WEFT_VINTERP");
  for (int turn = 0; turn < 4; turn++) { /* one after the other, then at once */
    Run r = start(program, x, want, 12);
    pthread_t t[THREADS];
    void *wrong = NULL;
    for (int i = 0; i < THREADS && turn % 2; i++) pthread_create(&t[i], NULL, runs, &r);
    for (int i = 0; i < THREADS && turn % 2; i++) {
      void *one;
      pthread_join(t[i], &one);
      if (one) wrong = one;
    }
    if (!wrong) wrong = runs(&r);
    assert_null(wrong);
    end(&r);
  }
  for (int i = 1; i <= 4; i++) { /* freed with its code under way */
    Run r = start(program, x, want, i);
    assert_null(runs(&r));
    end(&r);
  }
  tensor_release(want);
  tensor_release(x);
}

static void test_late(void **state) {
  (void)state;
  check(text, test_numbers(DT_F32, 2, (int64_t[]){1500, 1024}));
}

static void test_loop(void **state) {
  (void)state;
  check(loop, test_numbers(DT_F32, 2, (int64_t[]){60, 24}));
}

#define SUBTRACT "    %u = stablehlo.subtract %x, %h : tensor<4x4xf32>\n"
static const char until[] = UNTIL("800000", SUBTRACT);
static const char long_until[] = UNTIL("24000000", SUBTRACT);
static const char dot_until[] =
    UNTIL("20000", "    %d = stablehlo.dot_general %h, %x, contracting_dims = [1] x [0] : "
                   "(tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>\n"
                   "    %u = stablehlo.tanh %d : tensor<4x4xf32>\n");

/* Such a loop inside of one of two turns, and of so many. */
#define INSIDE(more)                                                                       \
  "    %in:2 = stablehlo.while(%a = %z, %b = %h) : tensor<i32>, tensor<4x4xf32>\n"         \
  "     cond {\n"                                                                          \
  "      %n1 = stablehlo.constant dense<" more "> : tensor<i32>\n"                         \
  "      %p1 = stablehlo.compare LT, %a, %n1 : (tensor<i32>, tensor<i32>) -> tensor<i1>\n" \
  "      stablehlo.return %p1 : tensor<i1>\n"                                              \
  "    } do {\n"                                                                           \
  "      %d = stablehlo.subtract %x, %b : tensor<4x4xf32>\n"                               \
  "      %c = stablehlo.xor %a, %one : tensor<i32>\n"                                      \
  "      %e = stablehlo.add %c, %one : tensor<i32>\n"                                      \
  "      stablehlo.return %e, %d : tensor<i32>, tensor<4x4xf32>\n"                         \
  "    }\n"                                                                                \
  "    %u = stablehlo.tanh %in#1 : tensor<4x4xf32>\n"
static const char inside[] = UNTIL("20000", INSIDE("100")),
                  long_inside[] = UNTIL("7", INSIDE("12000000"));

/* The first run of six million turns does not go to its end as strips, which take 1.5 s. */
static void check_long(const char *program, Tensor *x) {
  setenv("WEFT_VINTERP", "off", 1);
  Tensor *want = answer_of(program, x);
  unsetenv("WEFT_VINTERP");
  clock_t from = clock();
  Run r = start(program, x, want, 1);
  assert_null(runs(&r));
  assert_true(clock() - from < CLOCKS_PER_SEC / 2);
  end(&r);
  tensor_release(want);
}

static void test_until(void **state) {
  (void)state;
  Tensor *x = test_numbers(DT_F32, 2, (int64_t[]){4, 4});
  check_long(long_until, x);
  check_long(long_inside, x);
  check(until, x);
  check(inside, test_numbers(DT_F32, 2, (int64_t[]){4, 4}));
  check(dot_until, test_numbers(DT_F32, 2, (int64_t[]){4, 4}));
}

static void *forever(void *arg) {
  const Run *r = arg;
  for (;;) {
    Shards in = {1, (Tensor *[]){r->x}}, got = {0};
    if (r->dev->ops->run(r->prog, &(DevPart){.n = 1}, &in, NULL, &got, NULL)) _exit(1);
    shards_free(&got);
  }
}

/* As many loops of their own: each sum is of all elements that the last one made. */
static char *many_loops(int n) {
  Buf b = {0};
  buf_cstr(&b, "func.func @main(%y0: tensor<8xf32>) -> tensor<8xf32> {\n"
               "%z = stablehlo.constant dense<0.0> : tensor<f32>\n");
  for (int i = 0; i < n; i++)
    buf_printf(
        &b,
        "%%s%d = stablehlo.reduce(%%y%d init: %%z) applies stablehlo.add across dimensions = "
        "[0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>\n"
        "%%b%d = stablehlo.broadcast_in_dim %%s%d, dims = [] : (tensor<f32>) -> tensor<8xf32>\n"
        "%%c%d = stablehlo.constant dense<%d.5> : tensor<8xf32>\n"
        "%%d%d = stablehlo.subtract %%b%d, %%c%d : tensor<8xf32>\n"
        "%%y%d = stablehlo.subtract %%d%d, %%y%d : tensor<8xf32>\n",
        i, i, i, i, i, i, i, i, i, i + 1, i, i);
  buf_printf(&b, "return %%y%d : tensor<8xf32>\n}\n", n);
  return b.p;
}

/* A process whose main thread ends before, while and after its first code is generated for another ends well. */
static void test_exit(void **state) {
  (void)state;
  Tensor *x = test_numbers(DT_F32, 1, (int64_t[]){8});
  char *program = many_loops(60);
  for (int i = 0; i < 60; i++) {
    pid_t child = fork();
    if (!child) {
      Run r = start(program, x, NULL, 0);
      pthread_t t;
      pthread_create(&t, NULL, forever, &r);
      usleep(1000 * (useconds_t)i);
      exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
  }
  tensor_release(x);
  free(program);
}

/* Seconds to compile and run twice: of the processor, and until the second result is there. */
static double starting(const char *program, Tensor *x, Tensor *want, double *wall_s) {
  clock_t from = clock();
  double began = time_now_s();
  Run r = start(program, x, want, 2);
  from = clock() - from;
  assert_null(runs(&r));
  *wall_s = time_now_s() - began;
  end(&r);
  return (double)from / CLOCKS_PER_SEC;
}

/* The code of hundreds of operations is not waited for either, by the second run neither. */
static void test_many(void **state) {
  (void)state;
  char *program = many_loops(400);
  Tensor *x = test_numbers(DT_F32, 1, (int64_t[]){8});
  setenv("WEFT_VINTERP", "always", 1);
  Tensor *want = answer_of(program, x);
  unsetenv("WEFT_VINTERP");
  double late_s, whole_s, late = starting(program, x, want, &late_s);
  setenv("WEFT_VINTERP", "off", 1);
  double whole = starting(program, x, want, &whole_s); /* the code was not there already */
  unsetenv("WEFT_VINTERP");
  assert_true(late < whole / 2);
  assert_true(late_s < whole_s * 2 / 3);
  tensor_release(want);
  tensor_release(x);
  free(program);
}

int main(void) {
  setenv("WEFT_CACHE", "off", 1);                                 /* code is generated, not found */
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_exit), /* before LLVM is used here */
                                     cmocka_unit_test(test_late), cmocka_unit_test(test_loop),
                                     cmocka_unit_test(test_until), cmocka_unit_test(test_many)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
