/* VInterp give what generated code gives, bit for bit: elementwise functions, reductions along, across
 * and in chunks, what sweeps keep, conditions, strides, over lengths around vectors, strips and blocks
 * of long sums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dev/cpu/answer_test.h"

static Tensor *numbers(int64_t rows, int64_t columns) {
  Tensor *x = tensor_make(DT_F32, 2, (int64_t[]){rows, columns});
  uint32_t seed = 7;
  for (int64_t i = 0; i < x->count; i++) {
    seed = seed * 1664525u + 1013904223u;
    ((float *)x->data)[i] = ((float)(seed >> 8) / (1 << 23) - 1) * (seed & 1 ? 4 : 100);
  }
  return x;
}

static Tensor *answer(const char *text, Tensor *x, const char *strips) {
  setenv("WEFT_VINTERP", strips, 1);
  Tensor *t = answer_of(text, x);
  unsetenv("WEFT_VINTERP");
  return t;
}

static void check_of(const char *text, Tensor *x) {
  Tensor *a = answer(text, x, "always"), *b = answer(text, x, "off");
  if (memcmp(a->data, b->data, tensor_bytes(a))) fail_msg("strips differ\n%s", text);
  tensor_release(a);
  tensor_release(b);
  tensor_release(x);
}

/* The same program of numbers of 64 bits, with functions that there are for these. */
static char *widened(const char *text) {
  static const char *const types[][2] = {
      {"f32", "f64"},         {"i32", "i64"},           {"0xFF800000", "0xFFF0000000000000"},
      {"logistic", "negate"}, {"exponential ", "abs "}, {"cosine", "floor"}};
  Buf b = {0};
  while (*text) {
    int k = 0;
    while (k < COUNT_OF(types) && strncmp(text, types[k][0], strlen(types[k][0])) != 0) k++;
    if (k < COUNT_OF(types)) buf_cstr(&b, types[k][1]), text += strlen(types[k][0]);
    else buf_add(&b, text++, 1);
  }
  buf_add(&b, "", 1);
  return b.p;
}

static Tensor *wide_numbers(int64_t rows, int64_t columns) {
  Tensor *x = numbers(rows, columns), *w = tensor_make(DT_F64, 2, x->dims);
  for (int64_t i = 0; i < x->count; i++) ((double *)w->data)[i] = ((float *)x->data)[i] / 3.0;
  tensor_release(x);
  return w;
}

/* One in five is also run of 64 bits: generated code takes long to make. */
static void check(const char *text, int64_t rows, int64_t columns) {
  static int turn;
  check_of(text, numbers(rows, columns));
  if (turn++ % 5) return;
  char *wide = widened(text);
  check_of(wide, wide_numbers(rows, columns));
  free(wide);
}

static const int64_t sizes[][2] = {{1, 1},     {1, 7},      {5, 8},     {3, 511},
                                   {2, 1029},  {700, 17},   {37, 10},   {9, 20013},
                                   {20013, 3}, {3000, 200}, {1, 300007}};

static void elementwise(void **state) {
  (void)state;
  static const char *const ops[] = {"exponential", "exponential_minus_one",
                                    "log",         "log_plus_one",
                                    "tanh",        "logistic",
                                    "sqrt",        "rsqrt",
                                    "floor",       "ceil",
                                    "sign",        "abs",
                                    "negate"};
  for (int i = 0; i < COUNT_OF(sizes); i++)
    for (int k = 0; k < COUNT_OF(ops); k++) {
      long long n = sizes[i][0], m = sizes[i][1];
      char *t = xasprintf(
          "func.func @main(%%x: tensor<%lldx%lldxf32>) -> tensor<%lldx%lldxf32> {\n"
          "  %%0 = stablehlo.%s %%x : tensor<%lldx%lldxf32>\n"
          "  %%1 = stablehlo.maximum %%0, %%x : tensor<%lldx%lldxf32>\n"
          "  %%2 = stablehlo.compare LT, %%1, %%x : (tensor<%lldx%lldxf32>, tensor<%lldx%lldxf32>) "
          "-> tensor<%lldx%lldxi1>\n"
          "  %%3 = stablehlo.select %%2, %%0, %%1 : tensor<%lldx%lldxi1>, tensor<%lldx%lldxf32>\n"
          "  return %%3 : tensor<%lldx%lldxf32>\n}\n",
          n, m, n, m, ops[k], n, m, n, m, n, m, n, m, n, m, n, m, n, m, n, m);
      check(t, n, m);
      free(t);
    }
}

static void reductions(void **state) {
  (void)state;
  static const char *const bodies[] = {"add", "maximum", "minimum", "multiply"};
  static const char *const across[] = {"0", "1", "0, 1"};
  for (int i = 0; i < COUNT_OF(sizes); i++)
    for (int k = 0; k < COUNT_OF(bodies); k++)
      for (int a = 0; a < 3; a++) {
        long long n = sizes[i][0], m = sizes[i][1];
        char out[32] = "";
        if (a < 2) snprintf(out, sizeof out, "%lldx", a ? n : m);
        char *t = xasprintf("func.func @main(%%x: tensor<%lldx%lldxf32>) -> tensor<%sf32> {\n"
                            "  %%i = stablehlo.constant dense<0.5> : tensor<f32>\n"
                            "  %%y = stablehlo.logistic %%x : tensor<%lldx%lldxf32>\n"
                            "  %%r = stablehlo.reduce(%%y init: %%i) applies stablehlo.%s across "
                            "dimensions = [%s] : "
                            "(tensor<%lldx%lldxf32>, tensor<f32>) -> tensor<%sf32>\n"
                            "  return %%r : tensor<%sf32>\n}\n",
                            n, m, out, n, m, bodies[k], across[a], n, m, out, out);
        check(t, n, m);
        free(t);
      }
}

static void softmax(void **state) { /* three sweeps, an exponential that is kept */
  (void)state;
  for (int i = 0; i < COUNT_OF(sizes); i++) {
    long long n = sizes[i][0], m = sizes[i][1];
    char *t = xasprintf(
        "func.func @main(%%x: tensor<%lldx%lldxf32>) -> tensor<%lldx%lldxf32> {\n"
        "  %%l = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
        "  %%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "  %%m = stablehlo.reduce(%%x init: %%l) applies stablehlo.maximum across dimensions = [1] "
        ": "
        "(tensor<%lldx%lldxf32>, tensor<f32>) -> tensor<%lldxf32>\n"
        "  %%b = stablehlo.broadcast_in_dim %%m, dims = [0] : (tensor<%lldxf32>) -> "
        "tensor<%lldx%lldxf32>\n"
        "  %%d = stablehlo.subtract %%x, %%b : tensor<%lldx%lldxf32>\n"
        "  %%e = stablehlo.exponential %%d : tensor<%lldx%lldxf32>\n"
        "  %%s = stablehlo.reduce(%%e init: %%z) applies stablehlo.add across dimensions = [1] : "
        "(tensor<%lldx%lldxf32>, tensor<f32>) -> tensor<%lldxf32>\n"
        "  %%c = stablehlo.broadcast_in_dim %%s, dims = [0] : (tensor<%lldxf32>) -> "
        "tensor<%lldx%lldxf32>\n"
        "  %%r = stablehlo.divide %%e, %%c : tensor<%lldx%lldxf32>\n"
        "  return %%r : tensor<%lldx%lldxf32>\n}\n",
        n, m, n, m, n, m, n, n, n, m, n, m, n, m, n, m, n, n, n, m, n, m, n, m);
    check(t, n, m);
    free(t);
  }
}

static void integers(void **state) { /* turned, counted, converted */
  (void)state;
  for (int i = 0; i < COUNT_OF(sizes); i++) {
    long long n = sizes[i][0], m = sizes[i][1];
    char *t = xasprintf(
        "func.func @main(%%x: tensor<%lldx%lldxf32>) -> tensor<%lldx%lldxi32> {\n"
        "  %%t = stablehlo.transpose %%x, dims = [1, 0] : (tensor<%lldx%lldxf32>) -> "
        "tensor<%lldx%lldxf32>\n"
        "  %%c = stablehlo.convert %%t : (tensor<%lldx%lldxf32>) -> tensor<%lldx%lldxi32>\n"
        "  %%i = stablehlo.iota dim = 1 : tensor<%lldx%lldxi32>\n"
        "  %%s = stablehlo.shift_right_arithmetic %%c, %%i : tensor<%lldx%lldxi32>\n"
        "  %%r = stablehlo.xor %%s, %%i : tensor<%lldx%lldxi32>\n"
        "  return %%r : tensor<%lldx%lldxi32>\n}\n",
        n, m, m, n, n, m, m, n, m, n, m, n, m, n, m, n, m, n, m, n);
    check(t, n, m);
    free(t);
  }
}

/* Digits beyond those of bf16 are lost where generated code loses them: in comparisons, conversions and
 * memory, not in between, not before sums. */
static void narrow(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(sizes); i++) {
    long long n = sizes[i][0], m = sizes[i][1];
    char *t = xasprintf(
        "func.func @main(%%x: tensor<%lldx%lldxf32>) -> tensor<%lldx%lldxbf16> {\n"
        "  %%z = stablehlo.constant dense<0.3> : tensor<bf16>\n"
        "  %%l = stablehlo.constant dense<0xFF80> : tensor<bf16>\n"
        "  %%f = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "  %%y = stablehlo.convert %%x : (tensor<%lldx%lldxf32>) -> tensor<%lldx%lldxbf16>\n"
        "  %%e = stablehlo.multiply %%y, %%y : tensor<%lldx%lldxbf16>\n"
        "  %%g = stablehlo.tanh %%e : tensor<%lldx%lldxbf16>\n"
        "  %%c = stablehlo.compare LT, %%e, %%g : (tensor<%lldx%lldxbf16>, tensor<%lldx%lldxbf16>) "
        "-> tensor<%lldx%lldxi1>\n"
        "  %%s = stablehlo.select %%c, %%e, %%y : tensor<%lldx%lldxi1>, tensor<%lldx%lldxbf16>\n"
        "  %%m = stablehlo.reduce(%%e init: %%l) applies stablehlo.maximum across dimensions = [1] "
        ": (tensor<%lldx%lldxbf16>, tensor<bf16>) -> tensor<%lldxbf16>\n"
        "  %%a = stablehlo.reduce(%%s init: %%z) applies stablehlo.add across dimensions = [1] : "
        "(tensor<%lldx%lldxbf16>, tensor<bf16>) -> tensor<%lldxbf16>\n"
        "  %%w = stablehlo.convert %%e : (tensor<%lldx%lldxbf16>) -> tensor<%lldx%lldxf32>\n"
        "  %%b = stablehlo.reduce(%%w init: %%f) applies stablehlo.add across dimensions = [1] : "
        "(tensor<%lldx%lldxf32>, tensor<f32>) -> tensor<%lldxf32>\n"
        "  %%v = stablehlo.convert %%b : (tensor<%lldxf32>) -> tensor<%lldxbf16>\n"
        "  %%p = stablehlo.add %%m, %%a : tensor<%lldxbf16>\n"
        "  %%q = stablehlo.divide %%p, %%v : tensor<%lldxbf16>\n"
        "  %%h = stablehlo.broadcast_in_dim %%q, dims = [0] : (tensor<%lldxbf16>) -> "
        "tensor<%lldx%lldxbf16>\n"
        "  %%r = stablehlo.multiply %%s, %%h : tensor<%lldx%lldxbf16>\n"
        "  return %%r : tensor<%lldx%lldxbf16>\n}\n",
        n, m, n, m, n, m, n, m, n, m, n, m, n, m, n, m, n, m, n, m, n, m, n, m, n, n, m, n, n, m, n,
        m, n, m, n, n, n, n, n, n, n, m, n, m, n, m);
    check(t, n, m);
    free(t);
  }
}

/* $n, $m: sizes; $t, $u: given. malloc'd */
static char *filled(const char *pattern, int64_t n, int64_t m, const char *t, const char *u) {
  Buf b = {0};
  for (const char *p = pattern; *p; p++) {
    if (*p != '$') {
      buf_str(&b, (Str){p, 1});
      continue;
    }
    p++;
    if (*p == 't' || *p == 'u') buf_cstr(&b, *p == 't' ? t : u);
    else buf_printf(&b, "%lld", (long long)(*p == 'n' ? n : m));
  }
  char *text = xasprintf("%.*s", (int)b.n, b.p);
  buf_free(&b);
  return text;
}

/* @x and [@]: given. malloc'd */
static char *filled_at(const char *pattern, const char *size, const char *dim) {
  Buf b = {0};
  for (const char *p = pattern; *p; p++) {
    if (*p == '@' && (p[1] == 'x' || p[1] == ']')) buf_cstr(&b, p[1] == 'x' ? size : dim);
    else buf_str(&b, (Str){p, 1});
  }
  char *text = xasprintf("%.*s", (int)b.n, b.p);
  buf_free(&b);
  return text;
}

static void check_filled(const char *pattern, const char *t, const char *u) {
  for (int i = 0; i < COUNT_OF(sizes); i++) {
    char *text = filled(pattern, sizes[i][0], sizes[i][1], t, u);
    check(text, sizes[i][0], sizes[i][1]);
    free(text);
  }
}

/* Types that are wider in strips than in memory: they wrap and are rounded where generated code does so. */
static void kept_wider(void **state) {
  (void)state;
  static const char pattern[] =
      "func.func @main(%x: tensor<$nx$mxf32>) -> tensor<$nx$mx$t> {\n"
      "  %z = stablehlo.constant dense<3> : tensor<$t>\n"
      "  %k = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<$t>) -> tensor<$nx$mx$t>\n"
      "  %y = stablehlo.convert %x : (tensor<$nx$mxf32>) -> tensor<$nx$mx$t>\n"
      "  %i = stablehlo.iota dim = 1 : tensor<$nx$mxi32>\n"
      "  %j = stablehlo.convert %i : (tensor<$nx$mxi32>) -> tensor<$nx$mx$t>\n"
      "  %e = stablehlo.multiply %y, %j : tensor<$nx$mx$t>\n"
      "  %a = stablehlo.add %e, %y : tensor<$nx$mx$t>\n"
      "  %b = stablehlo.subtract %k, %a : tensor<$nx$mx$t>\n"
      "  %q = stablehlo.divide %b, %y : tensor<$nx$mx$t>\n"
      "  %r = stablehlo.remainder %b, %j : tensor<$nx$mx$t>\n"
      "  %h = stablehlo.maximum %q, %r : tensor<$nx$mx$t>\n"
      "  %d = stablehlo.clamp %k, %h, %b : tensor<$nx$mx$t>\n"
      "  %c = stablehlo.compare LT, %a, %b : (tensor<$nx$mx$t>, tensor<$nx$mx$t>) -> "
      "tensor<$nx$mxi1>\n"
      "  %s = stablehlo.select %c, %h, %d : tensor<$nx$mxi1>, tensor<$nx$mx$t>\n"
      "  %m = stablehlo.reduce(%a init: %z) applies stablehlo.$u across dimensions = [1] : "
      "(tensor<$nx$mx$t>, tensor<$t>) -> tensor<$nx$t>\n"
      "  %n = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<$nx$t>) -> tensor<$nx$mx$t>\n"
      "  %o = stablehlo.subtract %s, %n : tensor<$nx$mx$t>\n"
      "  %p = stablehlo.convert %o : (tensor<$nx$mx$t>) -> tensor<$nx$mxf32>\n"
      "  %v = stablehlo.add %p, %x : tensor<$nx$mxf32>\n"
      "  %w = stablehlo.convert %v : (tensor<$nx$mxf32>) -> tensor<$nx$mx$t>\n"
      "  return %w : tensor<$nx$mx$t>\n}\n";
  static const char *const types[] = {"f16", "i8",   "ui8", "i16", "ui16",
                                      "i32", "ui32", "i64", "ui64"};
  static const char *const bodies[] = {"add", "maximum", "minimum", "multiply"};
  for (int i = 0; i < COUNT_OF(types); i++)
    for (int k = 0; k < COUNT_OF(bodies); k++) check_filled(pattern, types[i], bodies[k]);
}

/* Functions that vectors and scalars compute differently. */
static void by_lanes(void **state) {
  (void)state;
  static const char pattern[] =
      "func.func @main(%x: tensor<$nx$mxf32>) -> tensor<$nx$mxf32> {\n"
      "  %z = stablehlo.constant dense<0.1> : tensor<f32>\n"
      "  %s = stablehlo.$t %x : tensor<$nx$mxf32>\n"
      "  %m = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [1] : "
      "(tensor<$nx$mxf32>, tensor<f32>) -> tensor<$nxf32>\n"
      "  %c = stablehlo.$t %m : tensor<$nxf32>\n"
      "  %b = stablehlo.broadcast_in_dim %c, dims = [0] : (tensor<$nxf32>) -> tensor<$nx$mxf32>\n"
      "  %p = stablehlo.$u %s, %b : tensor<$nx$mxf32>\n"
      "  return %p : tensor<$nx$mxf32>\n}\n";
  static const char *const ones[] = {"sine", "cosine", "tan", "cbrt"};
  static const char *const twos[] = {"power", "remainder", "atan2", "add"};
  for (int i = 0; i < COUNT_OF(ones); i++) check_filled(pattern, ones[i], twos[i]);
}

/* Two operands that are reduced together: the greatest element and where it is. */
static void together(void **state) {
  (void)state;
  static const char pattern[] =
      "func.func @main(%x: tensor<$nx$mxf32>) -> tensor<$txi32> {\n"
      "  %l = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
      "  %z = stablehlo.constant dense<0> : tensor<i32>\n"
      "  %f = stablehlo.floor %x : tensor<$nx$mxf32>\n"
      "  %i = stablehlo.iota dim = $u : tensor<$nx$mxi32>\n"
      "  %r:2 = stablehlo.reduce(%f init: %l), (%i init: %z) across dimensions = [$u] : "
      "(tensor<$nx$mxf32>, tensor<$nx$mxi32>, tensor<f32>, tensor<i32>) -> "
      "(tensor<$txf32>, tensor<$txi32>)\n"
      "   reducer(%a: tensor<f32>, %c: tensor<f32>) (%b: tensor<i32>, %d: tensor<i32>)  {\n"
      "    %0 = stablehlo.compare GT, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
      "    %1 = stablehlo.compare NE, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
      "    %2 = stablehlo.or %0, %1 : tensor<i1>\n"
      "    %3 = stablehlo.compare EQ, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
      "    %4 = stablehlo.compare LT, %b, %d : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "    %5 = stablehlo.and %3, %4 : tensor<i1>\n"
      "    %6 = stablehlo.or %2, %5 : tensor<i1>\n"
      "    %7 = stablehlo.select %2, %a, %c : tensor<i1>, tensor<f32>\n"
      "    %8 = stablehlo.select %6, %b, %d : tensor<i1>, tensor<i32>\n"
      "    stablehlo.return %7, %8 : tensor<f32>, tensor<i32>\n  }\n"
      "  return %r#1 : tensor<$txi32>\n}\n";
  for (int i = 0; i < COUNT_OF(sizes); i++)
    for (int along = 0; along < 2; along++) {
      int64_t n = sizes[i][0], m = sizes[i][1];
      char size[24];
      snprintf(size, sizeof size, "%lld", (long long)(along ? n : m));
      char *text = filled(pattern, n, m, size, along ? "1" : "0");
      check(text, n, m);
      free(text);
    }
}

/* Pieces and edges: what lies elsewhere is not read. */
static void joined(void **state) {
  (void)state;
  static const char pattern[] =
      "func.func @main(%x: tensor<$nx$mxf32>) -> tensor<$txf32> {\n"
      "  %z = stablehlo.constant dense<0.25> : tensor<f32>\n"
      "  %e = stablehlo.exponential %x : tensor<$nx$mxf32>\n"
      "  %c = stablehlo.concatenate %x, %e, %x, dim = 0 : (tensor<$nx$mxf32>, "
      "tensor<$nx$mxf32>, tensor<$nx$mxf32>) -> tensor<$txf32>\n"
      "  %r = stablehlo.reverse %x, dims = [1] : tensor<$nx$mxf32>\n"
      "  %p = stablehlo.pad %r, %z, low = [$n, 0], high = [$n, 0], interior = [0, 0] : "
      "(tensor<$nx$mxf32>, tensor<f32>) -> tensor<$txf32>\n"
      "  %w = stablehlo.pad %c, %z, low = [0, 2], high = [0, -2], interior = [0, 0] : "
      "(tensor<$txf32>, tensor<f32>) -> tensor<$txf32>\n"
      "  %a = stablehlo.add %c, %p : tensor<$txf32>\n"
      "  %s = stablehlo.multiply %a, %w : tensor<$txf32>\n"
      "  %m = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [$u] : "
      "(tensor<$txf32>, tensor<f32>) -> tensor<@xf32>\n"
      "  %b = stablehlo.broadcast_in_dim %m, dims = [@] : (tensor<@xf32>) -> tensor<$txf32>\n"
      "  %q = stablehlo.compare LT, %b, %w, TOTALORDER : (tensor<$txf32>, tensor<$txf32>) -> "
      "tensor<$txi1>\n"
      "  %o = stablehlo.select %q, %s, %b : tensor<$txi1>, tensor<$txf32>\n"
      "  return %o : tensor<$txf32>\n}\n";
  for (int i = 0; i < COUNT_OF(sizes); i++)
    for (int along = 0; along < 2; along++) {
      int64_t n = sizes[i][0], m = sizes[i][1];
      char t[48], kept[24];
      snprintf(t, sizeof t, "%lldx%lld", (long long)(3 * n), (long long)m);
      snprintf(kept, sizeof kept, "%lld", (long long)(along ? 3 * n : m));
      char *text = filled(pattern, n, m, t, along ? "1" : "0"), *whole;
      whole = filled_at(text, kept, along ? "0" : "1");
      check(whole, n, m);
      free(text);
      free(whole);
    }
}

/* Backwards, columns of other rows and every second element, of each size in memory. */
static void apart(void **state) {
  (void)state;
  static const char *const types[] = {"f32", "bf16", "f16", "i8", "ui16", "i32", "f64", "i64"};
  static const char pattern[] =
      "func.func @main(%x: tensor<$nx$mxf32>) -> (tensor<$mx$nx$t>) {\n"
      "  %y = stablehlo.convert %x : (tensor<$nx$mxf32>) -> tensor<$nx$mx$t>\n"
      "  %o = stablehlo.optimization_barrier %y : tensor<$nx$mx$t>\n"
      "  %r = stablehlo.reverse %o, dims = [0, 1] : tensor<$nx$mx$t>\n"
      "  %s = stablehlo.add %r, %o : tensor<$nx$mx$t>\n"
      "  %t = stablehlo.transpose %s, dims = [1, 0] : (tensor<$nx$mx$t>) -> tensor<$mx$nx$t>\n"
      "  %q = stablehlo.optimization_barrier %t : tensor<$mx$nx$t>\n"
      "  %v = stablehlo.reverse %q, dims = [1] : tensor<$mx$nx$t>\n"
      "  return %v : tensor<$mx$nx$t>\n}\n";
  for (int i = 0; i < COUNT_OF(types); i++)
    for (int k = 0; k < COUNT_OF(sizes); k += 2) {
      char *text = filled(pattern, sizes[k][0], sizes[k][1], types[i], "");
      check_of(text, numbers(sizes[k][0], sizes[k][1]));
      free(text);
    }
}

/* Parts of complex numbers, which are in memory only. */
static void pairs(void **state) {
  (void)state;
  check_filled("func.func @main(%x: tensor<$nx$mxf32>) -> tensor<$nx$mxcomplex<f32>> {\n"
               "  %e = stablehlo.cosine %x : tensor<$nx$mxf32>\n"
               "  %c = stablehlo.complex %x, %e : tensor<$nx$mxcomplex<f32>>\n"
               "  %b = stablehlo.optimization_barrier %c : tensor<$nx$mxcomplex<f32>>\n"
               "  %m = stablehlo.multiply %b, %b : tensor<$nx$mxcomplex<f32>>\n"
               "  %a = stablehlo.add %m, %b : tensor<$nx$mxcomplex<f32>>\n"
               "  return %a : tensor<$nx$mxcomplex<f32>>\n}\n",
               "", "");
}

/* Rows of few elements: another dimension is walked in strips. */
static void short_rows(void **state) {
  (void)state;
  static const int64_t of[][2] = {{500, 36}, {3, 36}, {513, 36}, {2000, 36}};
  for (int i = 0; i < COUNT_OF(of); i++) {
    long long n = of[i][0];
    char *t = xasprintf(
        "func.func @main(%%x: tensor<%lldx36xf32>) -> tensor<%lldx6x6xf32> {\n"
        "  %%y = stablehlo.reshape %%x : (tensor<%lldx36xf32>) -> tensor<%lldx6x6xf32>\n"
        "  %%t = stablehlo.transpose %%y, dims = [0, 2, 1] : (tensor<%lldx6x6xf32>) -> "
        "tensor<%lldx6x6xf32>\n"
        "  %%s = stablehlo.slice %%y [0:%lld, 0:6, 2:3] : (tensor<%lldx6x6xf32>) -> "
        "tensor<%lldx6x1xf32>\n"
        "  %%b = stablehlo.broadcast_in_dim %%s, dims = [0, 1, 2] : (tensor<%lldx6x1xf32>) -> "
        "tensor<%lldx6x6xf32>\n"
        "  %%e = stablehlo.exponential %%b : tensor<%lldx6x6xf32>\n"
        "  %%m = stablehlo.multiply %%e, %%t : tensor<%lldx6x6xf32>\n"
        "  %%i = stablehlo.iota dim = 2 : tensor<%lldx6x6xf32>\n"
        "  %%a = stablehlo.add %%m, %%i : tensor<%lldx6x6xf32>\n"
        "  return %%a : tensor<%lldx6x6xf32>\n}\n",
        n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n);
    check(t, n, 36);
    free(t);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(elementwise), cmocka_unit_test(reductions), cmocka_unit_test(softmax),
      cmocka_unit_test(integers),    cmocka_unit_test(narrow),     cmocka_unit_test(kept_wider),
      cmocka_unit_test(by_lanes),    cmocka_unit_test(together),   cmocka_unit_test(joined),
      cmocka_unit_test(apart),       cmocka_unit_test(pairs),      cmocka_unit_test(short_rows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
