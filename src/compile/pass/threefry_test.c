/* Threefry's rounds as JAX writes them are found, with any key, and nothing that differs from them. */
#include "compile/pass/pass_test.h"

typedef struct Writer {
  Buf b;
  int n; /* values so far */
} Writer;

#define T "tensor<37xui32>"

static int op2(Writer *w, const char *op, int x, int y) {
  buf_printf(&w->b, "%%v%d = stablehlo.%s %%v%d, %%v%d : " T "\n", w->n, op, x, y);
  return w->n++;
}

static int number(Writer *w, uint32_t x) {
  buf_printf(&w->b, "%%v%d = stablehlo.constant dense<%u> : " T "\n", w->n, x);
  return w->n++;
}

typedef struct Case {
  bool no_key;    /* the first is 0 */
  uint32_t third; /* rotation of the third round */
  uint32_t parity;
} Case;

/* bits = first word ^ second word of iota's ciphers; its argument, two words, is the key. */
static Module *program(Case c) {
  uint32_t turns[2][4] = {{13, 15, c.third, 6}, {17, 29, 16, 24}};
  Writer w = {.n = 0};
  buf_cstr(&w.b, "func.func @main(%key: tensor<2xui32>) -> " T " {\n");
  int key[3], x[2];
  for (int k = 0; k < 2; k++) {
    buf_printf(&w.b,
               "%%s%d = stablehlo.slice %%key [%d:%d] : (tensor<2xui32>) -> tensor<1xui32>\n"
               "%%k%d = stablehlo.reshape %%s%d : (tensor<1xui32>) -> tensor<ui32>\n"
               "%%v%d = stablehlo.broadcast_in_dim %%k%d, dims = [] : (tensor<ui32>) -> " T "\n",
               k, k, k + 1, k, k, w.n, k);
    key[k] = w.n++;
    if (c.no_key && !k) key[k] = number(&w, 0);
  }
  key[2] = op2(&w, "xor", op2(&w, "xor", key[0], key[1]), number(&w, c.parity));
  buf_printf(&w.b,
             "%%wide = stablehlo.iota dim = 0 : tensor<37xui64>\n"
             "%%up = stablehlo.constant dense<32> : tensor<37xui64>\n"
             "%%high = stablehlo.shift_right_logical %%wide, %%up : tensor<37xui64>\n"
             "%%v%d = stablehlo.convert %%high : (tensor<37xui64>) -> " T "\n"
             "%%v%d = stablehlo.convert %%wide : (tensor<37xui64>) -> " T "\n",
             w.n, w.n + 1);
  for (int k = 0; k < 2; k++) x[k] = w.n++;
  for (int k = 0; k < 2; k++) x[k] = op2(&w, "add", x[k], key[k]);
  for (int round = 0; round < 5; round++) {
    for (int i = 0; i < 4; i++) {
      uint32_t by = turns[round % 2][i];
      x[0] = op2(&w, "add", x[0], x[1]);
      int up = op2(&w, "shift_left", x[1], number(&w, by)),
          down = op2(&w, "shift_right_logical", x[1], number(&w, 32 - by));
      x[1] = op2(&w, "xor", x[0], op2(&w, "or", up, down));
    }
    x[0] = op2(&w, "add", x[0], key[(round + 1) % 3]);
    x[1] = op2(&w, "add", x[1], key[(round + 2) % 3]);
    x[1] = op2(&w, "add", x[1], number(&w, (uint32_t)round + 1));
  }
  buf_printf(&w.b, "return %%v%d : " T "\n}", op2(&w, "xor", x[0], x[1]));
  Module *m = read_program((Str){w.b.p, w.b.n});
  buf_free(&w.b);
  return m;
}

static int count(const Module *m, OpKind kind, DType t) {
  int n = 0;
  for (const Op *op = module_main(m)->body->first; op; op = op->next)
    n += (kind == OP_UNKNOWN || op->kind == kind) && op->n_results &&
         op->results[0].type->dtype == t;
  return n;
}

static void check(Module *after, Module *before, const char *name, int ciphers) {
  assert_int_equal(count(after, OP_THREEFRY, DT_U32), ciphers);
  Tensor *key = tensor_make(DT_U32, 1, (int64_t[]){2});
  ((uint32_t *)key->data)[0] = 0x13198a2eu;
  ((uint32_t *)key->data)[1] = 0x85a308d3u;
  same_result(name, before, after, 1, &key, 0);
}

static void expect(const char *name, Case c, int ciphers) {
  Module *before = program(c), *after = program(c);
  ok(pass_simplify(after));
  assert_int_equal(count(after, OP_UNKNOWN, DT_U64), 0); /* counted in 32 bits */
  ok(pass_threefry(after));
  ok(ir_verify(after));
  check(after, before, name, ciphers);
}

static void is_found(void **state) {
  (void)state;
  expect("a key", (Case){.third = 26, .parity = 0x1BD11BDA}, 1);
  expect("half a key", (Case){.no_key = true, .third = 26, .parity = 0x1BD11BDA}, 1);
}

static void others_are_not(void **state) {
  (void)state;
  expect("turned otherwise", (Case){.third = 25, .parity = 0x1BD11BDA}, 0);
  expect("another third key", (Case){.third = 26, .parity = 0x1BD11BDB}, 0);
}

/* As JAX lowers it for "cpu": a loop of five times four rounds, keys and rotations taking turns. */
static Module *looped(void) {
  static const char *const types =
      "tensor<i32>, " T ", " T ", tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, "
      "tensor<4xui32>";
  Buf b = {0};
  buf_cstr(&b, "func.func @main(%key: tensor<2xui32>) -> " T " {\n");
  for (int k = 0; k < 2; k++)
    buf_printf(&b,
               "%%s%d = stablehlo.slice %%key [%d:%d] : (tensor<2xui32>) -> tensor<1xui32>\n"
               "%%k%d = stablehlo.reshape %%s%d : (tensor<1xui32>) -> tensor<ui32>\n"
               "%%b%d = stablehlo.broadcast_in_dim %%k%d, dims = [] : (tensor<ui32>) -> " T "\n",
               k, k, k + 1, k, k, k, k);
  buf_printf(
      &b,
      "%%c = stablehlo.constant dense<466688986> : tensor<ui32>\n"
      "%%x = stablehlo.xor %%k0, %%k1 : tensor<ui32>\n"
      "%%k2 = stablehlo.xor %%x, %%c : tensor<ui32>\n"
      "%%i = stablehlo.iota dim = 0 : " T "\n"
      "%%y = stablehlo.add %%i, %%b1 : " T "\n"
      "%%ra = stablehlo.constant dense<[13, 15, 26, 6]> : tensor<4xui32>\n"
      "%%rb = stablehlo.constant dense<[17, 29, 16, 24]> : tensor<4xui32>\n"
      "%%zero = stablehlo.constant dense<0> : tensor<i32>\n"
      "%%w:8 = stablehlo.while(%%n = %%zero, %%a0 = %%b0, %%d0 = %%y, %%u = %%k1, %%v = %%k2, "
      "%%t = %%k0, %%q = %%ra, %%r = %%rb) : %s\n"
      "cond {\n%%five = stablehlo.constant dense<5> : tensor<i32>\n"
      "%%go = stablehlo.compare LT, %%n, %%five : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "stablehlo.return %%go : tensor<i1>\n} do {\n"
      "%%bits = stablehlo.constant dense<32> : " T "\n",
      types);
  for (int k = 0; k < 4; k++)
    buf_printf(&b,
               "%%e%d = stablehlo.slice %%q [%d:%d] : (tensor<4xui32>) -> tensor<1xui32>\n"
               "%%f%d = stablehlo.reshape %%e%d : (tensor<1xui32>) -> tensor<ui32>\n"
               "%%g%d = stablehlo.broadcast_in_dim %%f%d, dims = [] : (tensor<ui32>) -> " T "\n"
               "%%h%d = stablehlo.subtract %%bits, %%g%d : " T "\n"
               "%%a%d = stablehlo.add %%a%d, %%d%d : " T "\n"
               "%%l%d = stablehlo.shift_left %%d%d, %%g%d : " T "\n"
               "%%m%d = stablehlo.shift_right_logical %%d%d, %%h%d : " T "\n"
               "%%o%d = stablehlo.or %%l%d, %%m%d : " T "\n"
               "%%d%d = stablehlo.xor %%a%d, %%o%d : " T "\n",
               k, k, k + 1, k, k, k, k, k, k, k + 1, k, k, k, k, k, k, k, k, k, k, k, k + 1, k + 1,
               k);
  buf_printf(&b,
             "%%one = stablehlo.constant dense<1> : tensor<i32>\n"
             "%%n1 = stablehlo.add %%n, %%one : tensor<i32>\n"
             "%%nu = stablehlo.convert %%n1 : (tensor<i32>) -> tensor<ui32>\n"
             "%%nb = stablehlo.broadcast_in_dim %%nu, dims = [] : (tensor<ui32>) -> " T "\n"
             "%%ub = stablehlo.broadcast_in_dim %%u, dims = [] : (tensor<ui32>) -> " T "\n"
             "%%vb = stablehlo.broadcast_in_dim %%v, dims = [] : (tensor<ui32>) -> " T "\n"
             "%%a5 = stablehlo.add %%a4, %%ub : " T "\n"
             "%%d5 = stablehlo.add %%d4, %%vb : " T "\n"
             "%%d6 = stablehlo.add %%d5, %%nb : " T "\n"
             "stablehlo.return %%n1, %%a5, %%d6, %%v, %%t, %%u, %%r, %%q : %s\n}\n"
             "%%z = stablehlo.xor %%w#1, %%w#2 : " T "\nreturn %%z : " T "\n}",
             types);
  Module *m = read_program((Str){b.p, b.n});
  buf_free(&b);
  return m;
}

static void loops_are_found(void **state) {
  (void)state;
  Module *before = looped(), *after = looped();
  ok(pass_simplify(after));
  ok(pass_unroll(after));
  ok(pass_threefry(after));
  ok(ir_verify(after));
  check(after, before, "a loop", 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(is_found), cmocka_unit_test(loops_are_found),
                                     cmocka_unit_test(others_are_not)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
