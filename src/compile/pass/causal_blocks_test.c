/* Attention in blocks of rows: which masks, that the interpreter answers the same before and after, and
 * what stays as it is. */
#include "compile/pass/pass_test.h"

#define ROWS "300"
#define COLS "320"
#define SCORES "tensor<2x" ROWS "x" COLS "xf32>"
#define MASK "tensor<" ROWS "x" COLS "xi1>"
#define COUNTS "tensor<" ROWS "x" COLS "xi32>"

/* %i, %j, %c (a constant) -> %m, a mask */
#define COMPARE(way, x, y) \
  "  %m = stablehlo.compare " way ", " x ", " y " : (" COUNTS ", " COUNTS ") -> " MASK "\n"
#define SEEN "  %w = stablehlo.select %all, %s, %f : tensor<2x" ROWS "x" COLS "xi1>, " SCORES "\n"
/* As JAX writes Python's -inf */
#define CONVERTED                                                                    \
  "  %fs = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"                     \
  "  %fc = stablehlo.convert %fs : tensor<f32>\n"                                    \
  "  %g = stablehlo.broadcast_in_dim %fc, dims = [] : (tensor<f32>) -> " SCORES "\n" \
  "  %w = stablehlo.select %all, %s, %g : tensor<2x" ROWS "x" COLS "xi1>, " SCORES "\n"
#define ADDED                                                                              \
  "  %none = stablehlo.constant dense<0.0> : " SCORES "\n"                                 \
  "  %g = stablehlo.select %all, %none, %f : tensor<2x" ROWS "x" COLS "xi1>, " SCORES "\n" \
  "  %h = stablehlo.convert %g : " SCORES "\n  %w = stablehlo.add %s, %h : " SCORES "\n"
#define UNSEEN "  %w = stablehlo.select %all, %f, %s : tensor<2x" ROWS "x" COLS "xi1>, " SCORES "\n"
/* Floats: %o ones, %u zeros, %l levels; and what makes %w of %b, a bias */
#define NUMBERS "tensor<" ROWS "x" COLS "xf32>"
#define TRIL                                                     \
  COMPARE("GE", "%i", "%j")                                      \
  "  %o = stablehlo.constant dense<1.0> : " NUMBERS "\n"         \
  "  %u = stablehlo.constant dense<0.0> : " NUMBERS "\n"         \
  "  %l = stablehlo.select %m, %o, %u : " MASK ", " NUMBERS "\n" \
  "  %lb = stablehlo.broadcast_in_dim %l, dims = [1, 2] : (" NUMBERS ") -> " SCORES "\n"
#define FLOATS(m, way, x, y) \
  "  " m " = stablehlo.compare " way ", " x ", " y " : (" NUMBERS ", " NUMBERS ") -> " MASK "\n"
#define SEEN2                                                                                      \
  "  %all2 = stablehlo.broadcast_in_dim %m2, dims = [1, 2] : (" MASK ") -> tensor<2x" ROWS         \
  "x" COLS "xi1>\n  %w = stablehlo.select %all2, %s, %f : tensor<2x" ROWS "x" COLS "xi1>, " SCORES \
  "\n"
#define UNSEEN2                                                                                    \
  "  %all2 = stablehlo.broadcast_in_dim %m2, dims = [1, 2] : (" MASK ") -> tensor<2x" ROWS         \
  "x" COLS "xi1>\n  %w = stablehlo.select %all2, %f, %s : tensor<2x" ROWS "x" COLS "xi1>, " SCORES \
  "\n"
#define BIAS                                               \
  "  %ones = stablehlo.constant dense<1.0> : " SCORES "\n" \
  "  %off = stablehlo.subtract %ones, %lb : " SCORES "\n"  \
  "  %b = stablehlo.multiply %off, %f : " SCORES "\n"
#define SUM BIAS "  %w = stablehlo.add %s, %b : " SCORES "\n"
#define KEPT                                          \
  BIAS "  %k1 = stablehlo.multiply %lb, %s : " SCORES \
       "\n  %w = stablehlo.subtract %k1, %b : " SCORES "\n"
/* %pad: the columns that an argument lets see, the first one among them */
#define PAD                                                                                 \
  "  %vs = stablehlo.slice %v [0:1, 0:" COLS ", 0:1] : (tensor<2x" COLS                     \
  "x8xf32>) -> tensor<1x" COLS "x1xf32>\n"                                                  \
  "  %vr = stablehlo.reshape %vs : (tensor<1x" COLS "x1xf32>) -> tensor<" COLS "xf32>\n"    \
  "  %vb = stablehlo.broadcast_in_dim %vr, dims = [1] : (tensor<" COLS "xf32>) -> " NUMBERS \
  "\n  %vz = stablehlo.constant dense<0.0> : " NUMBERS "\n" FLOATS("%pad", "GT", "%vb", "%vz")
/* Rows see columns of the same segment; %k2: columns that were shifted by one. As many rows as columns */
#define SEGMENTS(columns)                                                                       \
  "  %vs = stablehlo.slice %v [0:1, 0:" COLS ", 0:1] : (tensor<2x" COLS                         \
  "x8xf32>) -> tensor<1x" COLS "x1xf32>\n"                                                      \
  "  %vr = stablehlo.reshape %vs : (tensor<1x" COLS "x1xf32>) -> tensor<" COLS "xf32>\n"        \
  "  %vt = stablehlo.add %vr, %vr : tensor<" COLS                                               \
  "xf32>\n  %vi = stablehlo.convert %vt : (tensor<" COLS "xf32>) -> tensor<" COLS "xi32>\n"     \
  "  %vo = stablehlo.iota dim = 0 : tensor<" COLS "xi32>\n"                                     \
  "  %vh = stablehlo.add %vi, %vo : tensor<" COLS "xi32>\n"                                     \
  "  %k0 = stablehlo.broadcast_in_dim %vi, dims = [0] : (tensor<" COLS "xi32>) -> " COUNTS "\n" \
  "  %k1 = stablehlo.broadcast_in_dim %vi, dims = [1] : (tensor<" COLS "xi32>) -> " COUNTS "\n" \
  "  %k2 = stablehlo.broadcast_in_dim %vh, dims = [1] : (tensor<" COLS "xi32>) -> " COUNTS "\n" \
  "  %m1 = stablehlo.compare EQ, %k0, " columns " : (" COUNTS ", " COUNTS ") -> " MASK "\n"     \
  "  %m2 = stablehlo.and %m, %m1 : " MASK "\n"
#define NEVER "  %never = stablehlo.constant dense<false> : " MASK "\n"
/* First one mask, then the other */
#define SEEN_TWICE                                                                            \
  "  %w0 = stablehlo.select %all, %s, %f : tensor<2x" ROWS "x" COLS "xi1>, " SCORES           \
  "\n  %all2 = stablehlo.broadcast_in_dim %pad, dims = [1, 2] : (" MASK ") -> tensor<2x" ROWS \
  "x" COLS "xi1>\n  %w = stablehlo.select %all2, %w0, %f : tensor<2x" ROWS "x" COLS           \
  "xi1>, " SCORES "\n"
#define ADDED2                                                                             \
  "  %all2 = stablehlo.broadcast_in_dim %m2, dims = [1, 2] : (" MASK ") -> tensor<2x" ROWS \
  "x" COLS "xi1>\n  %none = stablehlo.constant dense<0.0> : " SCORES                       \
  "\n  %b2 = stablehlo.select %all2, %none, %f : tensor<2x" ROWS "x" COLS "xi1>, " SCORES  \
  "\n  %w = stablehlo.add %s, %b2 : " SCORES "\n"
/* As softmax(where=) has it: what is exponentiated is selected a second time */
#define TWIN \
  SEEN "  %w2 = stablehlo.select %all, %s, %f : tensor<2x" ROWS "x" COLS "xi1>, " SCORES "\n"
#define SHIFTED "  %k = stablehlo.add %i, %c : " COUNTS "\n"
#define BACK "  %k = stablehlo.subtract %i, %c : " COUNTS "\n"

static const struct {
  const char *mask, *select, *fill, *weights;
  int blocks; /* products with weights; 1: none */
} cases[] = {
    {COMPARE("GE", "%i", "%j"), SEEN, "-1.0e+30", "%p", 3},
    {COMPARE("GT", "%i", "%j"), SEEN, "-1.0e+30", "%p", 1}, /* the first row sees nothing */
    {COMPARE("LE", "%j", "%i"), SEEN, "0xFF800000", "%p", 3},
    {COMPARE("GE", "%i", "%j"), CONVERTED, "0.0", "%p", 3},
    {COMPARE("GE", "%i", "%j"), ADDED, "0xFF800000", "%p", 3},
    {SHIFTED COMPARE("LT", "%j", "%k"), SEEN, "-1.0e+30", "%p", 3},
    {BACK COMPARE("GE", "%k", "%j"), SEEN, "-1.0e+30", "%p", 1},
    {BACK COMPARE("GE", "%j", "%k"), SEEN, "-1.0e+30", "%p", 3},
    {COMPARE("GE", "%j", "%i"), SEEN, "-1.0e+30", "%p", 3},
    {COMPARE("LT", "%i", "%j"), UNSEEN, "0xFF800000", "%p", 3},
    {COMPARE("GE", "%i", "%j"), UNSEEN, "-1.0e+30", "%p", 3},
    {"  %k = stablehlo.constant dense<250> : " COUNTS "\n"
     "  %n = stablehlo.add %i, %k : " COUNTS "\n" COMPARE("GE", "%n", "%j"),
     SEEN, "-1.0e+30", "%p", 1}, /* most is seen */
    {"  %r = stablehlo.constant dense<\"counts\"> : tensor<" ROWS "x1xi32>\n"
     "  %k = stablehlo.broadcast_in_dim %r, dims = [0, 1] : (tensor<" ROWS "x1xi32>) -> " COUNTS
     "\n" COMPARE("GE", "%k", "%j"),
     SEEN, "-1.0e+30", "%p", 3},
    {"  %m = stablehlo.constant dense<\"drawn\"> : " MASK "\n", SEEN, "-1.0e+30", "%p", 3},
    {COMPARE("EQ", "%i", "%j"), SEEN, "-1.0e+30", "%p", 1},
    {COMPARE("GE", "%i", "%j"), SEEN, "-3.0", "%p", 1},     /* has weight */
    {COMPARE("GE", "%i", "%j"), SEEN, "-1.0e+30", "%e", 3}, /* not normalized */
    {COMPARE("GE", "%i", "%j"), SEEN, "-1.0e+30", "%r", 1}, /* weights are wanted whole */
    {SHIFTED "  %m0 = stablehlo.compare GE, %k, %j : (" COUNTS ", " COUNTS ") -> " MASK "\n"
             "  %m1 = stablehlo.compare LE, %i, %j : (" COUNTS ", " COUNTS ") -> " MASK "\n"
             "  %m = stablehlo.and %m0, %m1 : " MASK "\n",
     SEEN, "-1.0e+30", "%p", 3},
    {TRIL FLOATS("%m2", "GT", "%l", "%u"), SEEN2, "-1.0e+30", "%p", 3},
    {TRIL FLOATS("%m2", "EQ", "%u", "%l"), UNSEEN2, "0xFF800000", "%p", 3},
    {TRIL FLOATS("%m2", "EQ", "%l", "%l"), SEEN2, "-1.0e+30", "%p", 1}, /* all is seen */
    {TRIL, SUM, "-1.0e+10", "%p", 3},
    {TRIL, SUM, "-10.0", "%p", 1},
    {TRIL, SUM, "1.0e+10", "%p", 1}, /* nothing but what lies beyond */
    {TRIL, KEPT, "1.0e+10", "%p", 3},
    {TRIL "  %h = stablehlo.constant dense<31> : " COUNTS "\n"
          "  %k = stablehlo.add %j, %h : " COUNTS "\n"
          "  %m1 = stablehlo.compare GE, %i, %k : (" COUNTS ", " COUNTS ") -> " MASK "\n"
          "  %l1 = stablehlo.select %m1, %u, %l : " MASK ", " NUMBERS
          "\n" FLOATS("%m2", "NE", "%l1", "%u"),
     SEEN2, "-1.0e+30", "%p", 3}, /* a window of 31 */
    {"  %l = stablehlo.constant dense<\"levels\"> : " NUMBERS "\n"
     "  %u = stablehlo.constant dense<0.0> : " NUMBERS "\n" FLOATS("%m", "GT", "%l", "%u"),
     SEEN, "-1.0e+30", "%p", 3},
    {COMPARE("LT", "%i", "%j") "  %k = stablehlo.subtract %i, %c : " COUNTS "\n"
                               "  %n = stablehlo.compare GE, %k, %j : (" COUNTS ", " COUNTS
                               ") -> " MASK "\n  %m2 = stablehlo.or %m, %n : " MASK "\n",
     UNSEEN2, "-1.0e+30", "%p", 3},
    {COMPARE("GE", "%i", "%j") PAD "  %m2 = stablehlo.and %m, %pad : " MASK "\n", SEEN2,
     "0xFF800000", "%p", 3},
    {COMPARE("LT", "%i", "%j") PAD "  %n = stablehlo.not %pad : " MASK "\n"
                                   "  %m2 = stablehlo.or %m, %n : " MASK "\n",
     UNSEEN2, "0xFF800000", "%p", 3},
    {COMPARE("GE", "%i", "%j") PAD NEVER "  %m2 = stablehlo.select %m, %pad, %never : " MASK
                                         ", " MASK "\n",
     SEEN2, "0xFF800000", "%p", 3},
    {COMPARE("GE", "%i", "%j") PAD NEVER "  %m2 = stablehlo.select %never, %m, %pad : " MASK
                                         ", " MASK "\n",
     SEEN2, "-1.0e+30", "%p", 1}, /* nothing is known */
    {COMPARE("GE", "%i", "%j") PAD "  %m2 = stablehlo.or %m, %pad : " MASK "\n", SEEN2, "-1.0e+30",
     "%p", 1},
    {COMPARE("GE", "%i", "%j") PAD, SEEN_TWICE, "0xFF800000", "%p", 3},
    {COMPARE("GE", "%i", "%j") PAD "  %m2 = stablehlo.and %pad, %m : " MASK "\n", ADDED2,
     "0xFF800000", "%p", 3},
    {COMPARE("GE", "%i", "%j") PAD "  %m2 = stablehlo.and %m, %pad : " MASK "\n", SEEN2, "-1.0e+30",
     "%p", 1}, /* a row may be left nothing: equal weights in all columns */
    {COMPARE("GE", "%i", "%j") PAD, SEEN_TWICE, "-1.0e+30", "%p", 1},
    {COMPARE("GE", "%i", "%j") SEGMENTS("%k1"), SEEN2, "-1.0e+30", "%p", 3},
    {COMPARE("GE", "%i", "%j") SEGMENTS("%k2"), SEEN2, "-1.0e+30", "%p", 1}, /* of others */
    {COMPARE("GE", "%i", "%j"), TWIN, "0xFF800000", "%p", 3},
};

/* Constants in hexadecimal: rows that are counted, a causal mask, as floats. */
static char *with_constants(const char *mask) {
  static const char *const names[] = {"counts", "drawn", "levels"};
  int kind = 0;
  while (kind < COUNT_OF(names) && !strstr(mask, names[kind])) kind++;
  if (kind == COUNT_OF(names)) return xasprintf("%s", mask);
  const char *at = strstr(mask, names[kind]);
  Buf b = {0};
  buf_printf(&b, "%.*s0x", (int)(at - mask), mask);
  int rows = atoi(ROWS), cols = kind ? atoi(COLS) : 1;
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < cols; j++)
      if (!kind) buf_printf(&b, "%02X%02X0000", i % 256, i / 256);
      else if (kind == 1) buf_printf(&b, "%02X", j <= i);
      else buf_printf(&b, j <= i ? "0000803F" : "00000000");
  buf_printf(&b, "%s", at + strlen(names[kind]));
  char *text = xasprintf("%s", b.p);
  buf_free(&b);
  return text;
}

static char *program(int c) {
  char *mask = with_constants(cases[c].mask);
  char *text = xasprintf(
      "func.func @main(%%q: tensor<2x" ROWS "x8xf32>, %%v: tensor<2x" COLS "x8xf32>) -> "
      "tensor<2x" ROWS "x8xf32> {\n"
      "  %%i = stablehlo.iota dim = 0 : " COUNTS "\n  %%j = stablehlo.iota dim = 1 : " COUNTS "\n"
      "  %%c = stablehlo.constant dense<31> : " COUNTS "\n%s"
      "  %%all = stablehlo.broadcast_in_dim %%m, dims = [1, 2] : (" MASK ") -> tensor<2x" ROWS
      "x" COLS "xi1>\n"
      "  %%s = stablehlo.dot_general %%q, %%v, batching_dims = [0] x [0], contracting_dims = [2] x "
      "[2] : (tensor<2x" ROWS "x8xf32>, tensor<2x" COLS "x8xf32>) -> " SCORES "\n"
      "  %%f = stablehlo.constant dense<%s> : " SCORES "\n%s"
      "  %%low = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
      "  %%x = stablehlo.reduce(%%w init: %%low) applies stablehlo.maximum across dimensions = [2] "
      ": (" SCORES ", tensor<f32>) -> tensor<2x" ROWS "xf32>\n"
      "  %%xs = stablehlo.broadcast_in_dim %%x, dims = [0, 1] : (tensor<2x" ROWS "xf32>) -> " SCORES
      "\n  %%d = stablehlo.subtract %s, %%xs : " SCORES "\n"
      "  %%e = stablehlo.exponential %%d : " SCORES "\n"
      "  %%zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %%t = stablehlo.reduce(%%e init: %%zero) applies stablehlo.add across dimensions = [2] "
      ": (" SCORES ", tensor<f32>) -> tensor<2x" ROWS "xf32>\n"
      "  %%ts = stablehlo.broadcast_in_dim %%t, dims = [0, 1] : (tensor<2x" ROWS "xf32>) -> " SCORES
      "\n  %%p = stablehlo.divide %%e, %%ts : " SCORES "\n"
      "%s  %%y = stablehlo.dot_general %s, %%v, batching_dims = [0] x [0], contracting_dims = [2] "
      "x "
      "[1] : (" SCORES ", tensor<2x" COLS "x8xf32>) -> tensor<2x" ROWS "x8xf32>\n"
      "  return %%y : tensor<2x" ROWS "x8xf32>\n}\n",
      mask, cases[c].fill, cases[c].select, strstr(cases[c].select, "%w2") ? "%w2" : "%w",
      !strcmp(cases[c].weights, "%r") ? "  %r = stablehlo.reverse %p, dims = [2] : " SCORES "\n"
                                      : "",
      cases[c].weights);
  free(mask);
  return text;
}

static void compare(const char *text, int n_products) {
  Module *before = read_program(str_from(text)), *after = read_program(str_from(text));
  ok(pass_causal_blocks(after));
  ok(pass_simplify(after));
  ok(ir_verify(after));
  int products = 0;
  for (const Op *op = module_main(after)->body->first; op; op = op->next)
    products += op->kind == OP_DOT_GENERAL;
  if (products != n_products) fail_msg("%d products of\n%s", products, text);
  const Func *f = module_main(before);
  Tensor *in[3];
  for (int i = 0; i < f->body->n_args; i++) {
    const Type *t = f->body->args[i]->type;
    in[i] = tensor_make(t->dtype, t->rank, t->dims);
    for (int64_t k = 0; k < in[i]->count; k++)
      ((float *)in[i]->data)[k] = (float)sin((double)(k * 7 + i));
  }
  same_result(text, before, after, f->body->n_args, in, 1e-6);
}

/* As many rows as columns */
static void make_square(char *text) {
  for (char *p = text; (p = strstr(p, ROWS)); p += strlen(ROWS)) memcpy(p, COLS, strlen(COLS));
}

static void same_answer(void **state) {
  (void)state;
  for (int c = 0; c < COUNT_OF(cases); c++) {
    char *text = program(c);
    if (strstr(text, "%k1")) make_square(text);
    compare(text, 2 * cases[c].blocks);
    free(text);
  }
}

/* ---- gradients ---- */

#define Q "tensor<2x" ROWS "x8xf32>"
#define K "tensor<2x" COLS "x8xf32>"
#define SEES "tensor<2x" ROWS "x" COLS "xi1>"
#define OF_ROWS "tensor<2x" ROWS "xf32>"
#define RESULT "tensor<2x1240x8xf32>"
#define PRODUCT(y, l, r, summed, types)                                                        \
  "  " y " = stablehlo.dot_general " l ", " r ", batching_dims = [0] x [0], contracting_dims " \
  "= " summed " : " types "\n"
#define ROWS_OF(y, x, way, init)                                             \
  "  " y "r = stablehlo.reduce(" x " init: " init ") applies stablehlo." way \
  " across dimensions = [2] : (" SCORES ", tensor<f32>) -> " OF_ROWS "\n"    \
  "  " y " = stablehlo.broadcast_in_dim " y "r, dims = [0, 1] : (" OF_ROWS ") -> " SCORES "\n"

/* clang-format off */
static const char head[] = "func.func @main(%q: " Q ", %v: " K ", %g: " Q ") -> " RESULT " {\n"
                           "  %i = stablehlo.iota dim = 0 : " COUNTS "\n"
                           "  %j = stablehlo.iota dim = 1 : " COUNTS "\n"
                           "  %c = stablehlo.constant dense<13> : " COUNTS "\n";
static const char attention[] =
    "  %all = stablehlo.broadcast_in_dim %m, dims = [1, 2] : (" MASK ") -> " SEES "\n"
    "  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
    "  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %f = stablehlo.constant dense<0xFF800000> : " SCORES "\n"
    "  %none = stablehlo.constant dense<0.0> : " SCORES "\n"
    PRODUCT("%s", "%q", "%v", "[2] x [2]", "(" Q ", " K ") -> " SCORES)
    "  %w = stablehlo.select %all, %s, %f : " SEES ", " SCORES "\n"
    ROWS_OF("%x", "%w", "maximum", "%low")
    "  %d = stablehlo.subtract %w, %x : " SCORES "\n"
    "  %e = stablehlo.exponential %d : " SCORES "\n"
    ROWS_OF("%t", "%e", "add", "%zero")
    "  %p = stablehlo.divide %e, %t : " SCORES "\n"
    PRODUCT("%y", "%p", "%v", "[2] x [1]", "(" SCORES ", " K ") -> " Q);
/* Of the values, through the softmax, of queries and keys */
static const char gradient[] =
    PRODUCT("%dv", "%p", "%g", "[1] x [1]", "(" SCORES ", " Q ") -> " K)
    PRODUCT("%dp", "%g", "%v", "[2] x [2]", "(" Q ", " K ") -> " SCORES)
    "  %a = stablehlo.multiply %dp, %p : " SCORES "\n"
    ROWS_OF("%b", "%a", "add", "%zero")
    "  %u = stablehlo.subtract %dp, %b : " SCORES "\n"
    "  %du = stablehlo.multiply %u, %p : " SCORES "\n";
static const char plainly[] = "  %ds = stablehlo.add %du, %none : " SCORES "\n";
/* As JAX has it of exp(s - s.max()): what the maximum is of shares its gradient */
static const char through_maximum[] =
    "  %eq = stablehlo.compare EQ, %w, %x : (" SCORES ", " SCORES ") -> " SEES "\n"
    "  %one = stablehlo.convert %eq : (" SEES ") -> " SCORES "\n"
    ROWS_OF("%q1", "%one", "add", "%zero")
    ROWS_OF("%h", "%du", "add", "%zero")
    "  %hn = stablehlo.divide %h, %q1 : " SCORES "\n"
    "  %hs = stablehlo.multiply %hn, %one : " SCORES "\n"
    "  %ds = stablehlo.subtract %du, %hs : " SCORES "\n";
static const char products[] =
    "  %dm = stablehlo.select %all, %ds, %none : " SEES ", " SCORES "\n"
    PRODUCT("%dq", "%dm", "%v", "[2] x [1]", "(" SCORES ", " K ") -> " Q)
    PRODUCT("%dk", "%dm", "%q", "[1] x [1]", "(" SCORES ", " Q ") -> " K)
    "  %z = stablehlo.concatenate %y, %dq, %dk, %dv, dim = 1 : (" Q ", " Q ", " K ", " K ") -> "
    RESULT "\n  return %z : " RESULT "\n}\n";

/* clang-format on */

static void same_gradient(void **state) {
  (void)state;
  static const char *const masks[] = {
      COMPARE("GE", "%i", "%j"),
      "  %n = stablehlo.add %i, %c : " COUNTS "\n" COMPARE("GT", "%n", "%j"),
      "  %n = stablehlo.subtract %j, %c : " COUNTS "\n" COMPARE("GE", "%n", "%i"),
  };
  for (int c = 0; c < 2 * COUNT_OF(masks); c++) {
    char *text = xasprintf("%s%s%s%s%s%s", head, masks[c / 2], attention, gradient,
                           c % 2 ? through_maximum : plainly, products);
    compare(text, 6 * 3);
    free(text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_answer),
                                     cmocka_unit_test(same_gradient)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
