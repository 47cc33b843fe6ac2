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

static void expect(const char *name, Case c, int ciphers) {
  Module *before = program(c), *after = program(c);
  ok(pass_simplify(after));
  assert_int_equal(count(after, OP_UNKNOWN, DT_U64), 0); /* counted in 32 bits */
  ok(pass_threefry(after));
  ok(ir_verify(after));
  assert_int_equal(count(after, OP_THREEFRY, DT_U32), ciphers);
  Tensor *key = tensor_make(DT_U32, 1, (int64_t[]){2});
  ((uint32_t *)key->data)[0] = 0x13198a2eu;
  ((uint32_t *)key->data)[1] = 0x85a308d3u;
  same_result(name, before, after, 1, &key, 0);
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(is_found), cmocka_unit_test(others_are_not)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
