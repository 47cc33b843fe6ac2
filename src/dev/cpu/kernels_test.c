/* Library kernels against the reference: programs of one op as text, random data, the kernel's
 * result (as the device runs it, on the pool, and inline on one thread: both the same bits) against
 * interp_eval's. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dev/cpu/kernel/kernel.h"
#include "interp/interp.h"
#include "stablehlo/stablehlo.h"

typedef struct Case {
  const char *name;
  const char *text;   /* one function with one op before the return */
  const char *kernel; /* the row that must take it; NULL: any but the reference */
  double tol;        /* relative to the largest result; 0: same bits (NaNs equal); below 0: so much,
                         with an infinity and a NaN in operand 0 */
  int64_t low, high; /* of integer operands; 0, 0: -3 .. 20 */
} Case;

#define GUARD 0xAB /* around results */

static uint64_t rng = 88172645463325252u;
static uint64_t next(void) {
  rng ^= rng << 13;
  rng ^= rng >> 7;
  rng ^= rng << 17;
  return rng;
}

static void fill(Tensor *t, const Case *c) {
  DType r = dtype_real_of(t->dtype);
  int64_t n = t->count * (dtype_is_complex(t->dtype) ? 2 : 1), lo = c->low, hi = c->high;
  if (lo == hi) lo = -3, hi = 20;
  for (int64_t i = 0; i < n; i++) {
    char *p = (char *)t->data + i * dtype_bytes(r);
    if (dtype_is_float(r)) {
      double v = (double)(int64_t)(next() % 2001) / 1000 - 1;
      if (c->tol == 0) {
        static const double odd[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, -NAN, 1e-42, 1, 1, -1};
        uint64_t k = next() % 40;
        if (k < COUNT_OF(odd)) v = odd[k];
      }
      elem_set_f64(r, p, v);
    } else {
      elem_set_i64(r, p,
                   r == DT_I1 ? (int64_t)(next() & 1)
                              : lo + (int64_t)(next() % (uint64_t)(hi - lo + 1)));
    }
  }
}

typedef struct Inline {
  const CpuKernel *k;
  void *state;
  const Op *op;
  void **in, **out;
  Err *e;
} Inline;

static void inline_run(void *arg, int64_t i) { /* inside pool_run nested jobs run inline */
  Inline *x = arg;
  if (i == 0) x->e = x->k->run(x->state, x->op, x->in, x->out);
}

static void compare(const Case *c, const char *what, const Tensor *want, const void *got) {
  DType r = dtype_real_of(want->dtype);
  int64_t n = want->count * (dtype_is_complex(want->dtype) ? 2 : 1), b = dtype_bytes(r);
  double largest = 1e-30;
  bool is_float = dtype_is_float(r);
  for (int64_t i = 0; i < n && is_float; i++) {
    double v = fabs(elem_get_f64(r, (char *)want->data + i * b));
    if (v > largest && isfinite(v)) largest = v;
  }
  for (int64_t i = 0; i < n; i++) {
    const char *w = (char *)want->data + i * b, *g = (const char *)got + i * b;
    if (!memcmp(w, g, (size_t)b)) continue;
    if (is_float) {
      double wv = elem_get_f64(r, w), gv = elem_get_f64(r, g);
      if (isnan(wv) && isnan(gv)) continue;
      if (c->tol != 0 && fabs(wv - gv) <= fabs(c->tol) * largest) continue;
      fail_msg("%s (%s): element %lld of %lld is %.9g, not %.9g", c->name, what, (long long)i,
               (long long)n, gv, wv);
    }
    fail_msg("%s (%s): element %lld of %lld is %lld, not %lld", c->name, what, (long long)i,
             (long long)n, (long long)elem_get_i64(r, g), (long long)elem_get_i64(r, w));
  }
}

static void must(Err *e, const char *name) {
  if (!e) return;
  char *t = err_text(e);
  fail_msg("%s: %s", name, t);
}

static Tensor *captured(void *arg, const Value *v) { /* constants only */
  (void)arg;
  return v->def && v->def->kind == OP_CONSTANT ? op_attr(v->def, "value")->tensor : NULL;
}

static void kernel_case(void **state) {
  const Case *c = *state;
  Module *m = NULL;
  Str text = {c->text, strlen(c->text)};
  must(stablehlo_read("case.mlir", text, &m), c->name);
  must(ir_verify(m), c->name);
  const Op *op = module_main(m)->body->first;
  while (op->next->kind != OP_RETURN) op = op->next;
  const CpuKernel *k = cpu_kernel_find(op);
  if (c->kernel ? strcmp(k->name, c->kernel) != 0 : cpu_kernel_is_reference(k))
    fail_msg("%s: taken by %s", c->name, k->name);
  int n = op->n_operands, nr = op->n_results;
  Tensor *in[16], *want[16];
  void *data[16], *out[16], *again[16];
  for (int i = 0; i < n; i++) {
    const Type *t = op->operands[i]->type;
    const Op *def = op->operands[i]->def;
    bool fixed = def && def->kind == OP_CONSTANT;
    in[i] = fixed ? tensor_retain(op_attr(def, "value")->tensor)
                  : tensor_make(t->dtype, t->rank, t->dims);
    if (!fixed) fill(in[i], c);
    for (int odd = 0; odd < 2 && i == 0 && c->tol < 0; odd++)
      elem_set_f64(t->dtype, tensor_at(in[i], (int64_t)(next() % (uint64_t)in[i]->count)),
                   odd ? NAN : INFINITY);
    data[i] = in[i]->data;
  }
  if ((op->kind == OP_CHOLESKY || op->kind == OP_TRIANGULAR_SOLVE) &&
      c->tol > 0) { /* well conditioned */
    const Tensor *a = in[0];
    int64_t d = a->dims[a->rank - 1];
    for (int64_t row = 0; row < a->count / d; row++) {
      int64_t i = row * d + row % d;
      elem_set_f64(dtype_real_of(a->dtype), tensor_at(a, i), (double)d + 1);
      if (dtype_is_complex(a->dtype))
        memset((char *)tensor_at(a, i) + dtype_bytes(a->dtype) / 2, 0,
               (size_t)dtype_bytes(a->dtype) / 2);
    }
  }
  must(interp_eval(op, in, want, captured, NULL), c->name);
  for (int i = 0; i < nr; i++) {
    size_t bytes = ((size_t)type_bytes(op->results[i].type) + 127) & ~(size_t)63;
    out[i] = aligned_alloc(64, bytes);
    again[i] = aligned_alloc(64, bytes);
    memset(out[i], GUARD, bytes);
    memset(again[i], 0xCD, bytes);
  }
  void *s = NULL;
  if (k->prepare) must(k->prepare(op, &s), c->name);
  must(k->run(s, op, data, out), c->name);
  Inline x = {k, s, op, data, again, NULL};
  pool_run(2, inline_run, &x);
  must(x.e, c->name);
  for (int i = 0; i < nr; i++) {
    compare(c, "pool", want[i], out[i]);
    for (int64_t b = type_bytes(op->results[i].type); b % 64; b++)
      if (((unsigned char *)out[i])[b] != GUARD) fail_msg("%s: wrote beyond its result", c->name);
    if (memcmp(out[i], again[i], (size_t)type_bytes(op->results[i].type)))
      fail_msg("%s: depends on the number of threads", c->name);
  }
  for (unsigned fixed = 1; k->keep_bytes && fixed < 4; fixed++) { /* in a loop */
    size_t keep = k->keep_bytes(s, fixed);
    void *kept = keep ? aligned_alloc(64, (keep + 63) & ~(size_t)63) : NULL;
    for (int turn = 0; kept && turn < 2; turn++) {
      memset(again[0], 0xCD, (size_t)type_bytes(op->results[0].type));
      must(k->run_kept(s, op, data, again, fixed, kept, turn == 0), c->name);
      compare(c, "kept", want[0], again[0]);
    }
    free(kept);
  }
  if (k->in_place) {
    memcpy(again[0], data[k->in_place - 1],
           (size_t)type_bytes(op->operands[k->in_place - 1]->type));
    void *was = data[k->in_place - 1];
    data[k->in_place - 1] = again[0];
    must(k->run(s, op, data, again), c->name);
    data[k->in_place - 1] = was;
    compare(c, "in place", want[0], again[0]);
  }
  if (k->release) k->release(s);
  for (int i = 0; i < n; i++) tensor_release(in[i]);
  for (int i = 0; i < nr; i++) {
    tensor_release(want[i]);
    free(out[i]);
    free(again[i]);
  }
  module_free(m);
}

#define GROUPS(f, b) "batch_group_count = " #b " : i64, feature_group_count = " #f " : i64"
#define CONVG(dims, attrs, f, b, l, r, o)                                                        \
  "func.func @main(%a: tensor<" l ">, %b: tensor<" r ">) -> tensor<" o                           \
  "> { %r = stablehlo.convolution(%a, %b) dim_numbers = " dims ", window = {" attrs              \
  "} {" GROUPS(f, b) "} : (tensor<" l ">, tensor<" r ">) -> tensor<" o "> return %r : tensor<" o \
                     "> }"
#define DOT(batch, contract, l, r, o)                                                            \
  "func.func @main(%a: tensor<" l ">, %b: tensor<" r ">) -> tensor<" o                           \
  "> { %r = stablehlo.dot_general %a, %b, " batch "contracting_dims = " contract " : (tensor<" l \
  ">, tensor<" r ">) -> tensor<" o "> return %r : tensor<" o "> }"
#define FEW "dot:few"     /* few rows times a matrix: its runs along the columns, or along k */
#define SMALL "dot:small" /* operands that stay in the caches: read in place, or a copied rhs */
#define INT "dot:int"
#define NHWC "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
#define NCHW "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]"

/* clang-format off: a program a line */
static Case cases[] = {
    {"few_1", DOT("", "[1] x [0]", "1x700xf32", "700x1030xf32", "1x1030xf32"), FEW, 1e-5, 0, 0},
    {"few_5_odd", DOT("", "[1] x [0]", "5x777xf32", "777x101xf32", "5x101xf32"), FEW, 1e-5, 0, 0},
    {"few_24_turned", DOT("", "[0] x [0]", "530x24xf32", "530x200xf32", "24x200xf32"), FEW, 1e-5, 0,
     0},
    {"few_7_dots", DOT("", "[1] x [1]", "7x1037xf32", "131x1037xf32", "7x131xf32"), FEW, 1e-5, 0,
     0},
    {"few_rhs", DOT("", "[1] x [0]", "257x5300xf32", "5300x10xf32", "257x10xf32"), FEW, 1e-5, 0, 0},
    {"few_rhs_turned", DOT("", "[0] x [1]", "64x515xf32", "3x64xf32", "515x3xf32"), FEW, 1e-5, 0,
     0},
    {"few_batch",
     DOT("batching_dims = [0, 2] x [1, 0], ", "[3] x [3]", "3x2x4x40xf32", "4x3x50x40xf32",
         "3x4x2x50xf32"),
     FEW, 1e-5, 0, 0},
    {"few_bf16", DOT("", "[1] x [0]", "4x90xbf16", "90x333xbf16", "4x333xbf16"), FEW, 8e-3, 0, 0},
    {"few_bf16_dots", DOT("", "[1] x [1]", "4x93xbf16", "333x93xbf16", "4x333xf32"), FEW, 1e-5, 0,
     0},
    {"few_f16", DOT("", "[1] x [0]", "2x90xf16", "90x333xf16", "2x333xf32"), FEW, 1e-5, 0, 0},
    {"few_vectors", DOT("", "[0] x [0]", "100001xf32", "100001xf32", "f32"), FEW, 1e-5, 0, 0},
    {"few_long", DOT("", "[0] x [0]", "70001x2xf32", "70001x9xf32", "2x9xf32"), FEW, 5e-5, 0, 0},
    {"small", DOT("", "[1] x [0]", "33x33xf32", "33x33xf32", "33x33xf32"), SMALL, 1e-5, 0, 0},
    {"small_kept", DOT("", "[1] x [1]", "32x64xf32", "70x64xf32", "32x70xf32"), SMALL, 1e-5, 0, 0},
    {"long", DOT("", "[0] x [0]", "9001x37xf32", "9001x50xf32", "37x50xf32"), "dot:long", 2e-5, 0,
     0},
    {"long_straight", DOT("", "[1] x [0]", "26x4500xf32", "4500x29xf32", "26x29xf32"), "dot:long",
     2e-5, 0, 0},
    {"small_odd",
     DOT("batching_dims = [0] x [0], ", "[2] x [1]", "51x7x5xf32", "51x5x7xf32", "51x7x7xf32"),
     SMALL, 1e-5, 0, 0},
    {"small_rhs_turned",
     DOT("batching_dims = [0] x [0], ", "[2] x [2]", "9x13x70xf32", "9x37x70xf32", "9x13x37xf32"),
     SMALL, 1e-5, 0, 0},
    {"small_both_turned",
     DOT("batching_dims = [1] x [0], ", "[0] x [2]", "31x3x50xf32", "3x19x31xf32", "3x50x19xf32"),
     SMALL, 1e-5, 0, 0},
    {"small_pieces", DOT("", "[1] x [0]", "1003x100xf32", "100x90xf32", "1003x90xf32"), SMALL, 1e-5,
     0, 0},
    {"small_long", DOT("", "[1] x [0]", "101x1300xf32", "1300x18xf32", "101x18xf32"), SMALL, 1e-5,
     0, 0},
    {"small_heads",
     DOT("batching_dims = [0, 2] x [0, 2], ", "[3] x [3]", "2x50x12x64xf32", "2x60x12x64xf32",
         "2x12x50x60xf32"),
     SMALL, 1e-5, 0, 0},
    {"small_slices",
     DOT("batching_dims = [0, 1] x [0, 2], ", "[3] x [1]", "2x12x40x60xf32", "2x60x12x64xf32",
         "2x12x40x64xf32"),
     SMALL, 1e-5, 0, 0},
    /* on hosts with AVX512_BF16 by dot:bf16-small */
    {"bf16_heads",
     DOT("batching_dims = [0, 2] x [0, 2], ", "[3] x [3]", "2x50x12x64xbf16", "2x61x12x64xbf16",
         "2x12x50x61xbf16"),
     NULL, 8e-3, 0, 0},
    {"bf16_slices",
     DOT("batching_dims = [0, 1] x [0, 2], ", "[3] x [1]", "2x3x137x60xbf16", "2x60x3x19xbf16",
         "2x3x137x19xf32"),
     NULL, 1e-5, 0, 0},
    {"bf16_pieces", DOT("", "[1] x [0]", "1003x100xbf16", "100x90xbf16", "1003x90xbf16"), NULL,
     8e-3, 0, 0},
    {"bf16_odd", DOT("", "[1] x [0]", "103x101xbf16", "101x33xbf16", "103x33xf32"), NULL, 1e-5, 0,
     0},
    {"int8", DOT("", "[1] x [0]", "77x130xi8", "130x301xi8", "77x301xi32"), INT, 0, -128, 127},
    {"int8_narrow", DOT("", "[1] x [1]", "9x33xi8", "17x33xi8", "9x17xi8"), INT, 0, -128, 127},
    {"int_mixed", DOT("", "[0] x [0]", "65x5xui8", "65x50xi16", "5x50xi32"), INT, 0, 0, 255},
    {"int32_wraps", DOT("", "[1] x [0]", "6x40xi32", "40x19xi32", "6x19xi32"), INT, 0, -2000000000,
     2000000000},
    {"int64",
     DOT("batching_dims = [0, 2] x [1, 0], ", "[3] x [3]", "3x2x4x40xi64", "4x3x50x40xi64",
         "3x4x2x50xi64"),
     INT, 0, -2000000000, 2000000000},
    {"int64_of_32", DOT("", "[1] x [0]", "5x9xi32", "9x3xi32", "5x3xi64"), INT, 0, -2000000000,
     2000000000},
    {"int_apart", DOT("", "[0, 2] x [2, 0]", "7x6x5xui16", "5x33x7xui16", "6x33xui32"), INT, 0, 0,
     65535},
    {"int4", DOT("", "[1] x [0]", "3x18xi4", "18x5xi4", "3x5xi32"), INT, 0, -8, 7},
    {"int_bools", DOT("", "[1] x [0]", "30x3xi1", "3x40xi1", "30x40xi1"), INT, 0, 0, 1},
    {"conv_same",
     CONVG(NHWC, "stride = [1, 1], pad = [[1, 1], [1, 1]]", 1, 1, "8x14x14x16xf32", "3x3x16x32xf32",
           "8x14x14x32xf32"),
     0, 1e-5, 0, 0},
    {"conv_stem",
     CONVG(NHWC, "stride = [2, 2], pad = [[3, 3], [3, 3]]", 1, 1, "2x32x32x3xf32", "7x7x3x16xf32",
           "2x16x16x16xf32"),
     0, 1e-5, 0, 0},
    {"conv_nchw",
     CONVG(NCHW, "stride = [2, 1], pad = [[1, 0], [0, 2]]", 1, 1, "3x5x9x8xf32", "7x5x3x2xf32",
           "3x7x4x9xf32"),
     0, 1e-5, 0, 0},
    {"conv_negative_pad",
     CONVG(NHWC, "pad = [[-1, 2], [0, -2]]", 1, 1, "2x9x8x4xf32", "3x2x4x6xf32", "2x8x5x6xf32"), 0,
     1e-5, 0, 0},
    {"conv_dilated",
     CONVG(NHWC, "pad = [[2, 2], [2, 2]], rhs_dilate = [2, 2]", 1, 1, "2x9x8x4xf32", "3x3x4x6xf32",
           "2x9x8x6xf32"),
     0, 1e-5, 0, 0},
    {"conv_depthwise",
     CONVG(NHWC, "pad = [[1, 1], [1, 1]]", 16, 1, "2x9x8x16xf32", "3x3x1x16xf32", "2x9x8x16xf32"),
     0, 1e-5, 0, 0},
    {"conv_groups",
     CONVG(NHWC, "pad = [[1, 1], [1, 1]]", 2, 1, "2x9x8x16xf32", "3x3x8x12xf32", "2x9x8x12xf32"), 0,
     1e-5, 0, 0},
    {"conv_reversed",
     CONVG(NHWC, "pad = [[1, 1], [1, 1]], reverse = [true, true]", 1, 1, "2x9x8x16xf32",
           "3x3x16x12xf32", "2x9x8x12xf32"),
     0, 1e-5, 0, 0},
    {"conv_half_reversed",
     CONVG(NHWC, "pad = [[1, 1], [1, 1]], reverse = [false, true]", 1, 1, "2x9x8x16xf32",
           "3x3x16x12xf32", "2x9x8x12xf32"),
     0, 1e-5, 0, 0},
    {"conv_data_stride2",
     CONVG("[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]",
           "pad = [[1, 2], [1, 2]], lhs_dilate = [2, 2], reverse = [true, true]", 1, 1,
           "4x7x7x16xf32", "3x3x24x16xf32", "4x14x14x24xf32"),
     0, 1e-5, 0, 0},
    {"conv_data_groups",
     CONVG(NHWC, "pad = [[1, 2], [1, 2]], lhs_dilate = [2, 2]", 2, 1, "4x7x7x16xf32",
           "3x3x8x24xf32", "4x14x14x24xf32"),
     0, 1e-5, 0, 0},
    {"conv_transposed_short",
     CONVG(NHWC, "pad = [[2, 2], [2, 2]], lhs_dilate = [2, 2]", 1, 1, "1x4x4x3xf32", "2x2x3x5xf32",
           "1x10x10x5xf32"),
     0, 1e-5, 0, 0},
    {"conv_weights",
     CONVG("[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", "pad = [[1, 1], [1, 1]]", 1, 1,
           "16x14x14x12xf32", "16x14x14x24xf32", "3x3x12x24xf32"),
     0, 1e-5, 0, 0},
    {"conv_weights_stride",
     CONVG("[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", "pad = [[1, 0], [1, 0]], rhs_dilate = [2, 2]",
           1, 1, "16x14x14x12xf32", "16x7x7x24xf32", "3x3x12x24xf32"),
     0, 1e-5, 0, 0},
    {"conv_weights_many",
     CONVG("[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", "pad = [[1, 1], [1, 1]]", 1, 1,
           "128x8x8x64xf32", "128x8x8x128xf32", "3x3x64x128xf32"),
     0, 1e-5, 0, 0},
    {"conv_weights_depthwise",
     CONVG("[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", "pad = [[1, 1], [1, 1]]", 1, 16,
           "4x9x8x16xf32", "4x9x8x16xf32", "3x3x1x16xf32"),
     0, 1e-5, 0, 0},
    {"conv_weights_depthwise_long", /* more taps than go together, channels that do not fill one */
     CONVG("[f, 0, b]x[i, 0, o]->[0, b, f]", "pad = [[14, 0]]", 1, 21, "3x40x21xf32", "3x40x21xf32",
           "15x1x21xf32"),
     0, 1e-5, 0, 0},
    {"conv_one_image",
     CONVG(NHWC, "pad = [[1, 1], [1, 1]]", 1, 1, "1x28x28x64xf32", "3x3x64x128xf32",
           "1x28x28x128xf32"),
     0, 1e-5, 0, 0},
    {"conv_batch",
     CONVG(NHWC, "pad = [[1, 1], [1, 1]]", 1, 1, "30x12x12x32xf32", "3x3x32x64xf32",
           "30x12x12x64xf32"),
     0, 1e-5, 0, 0},
    {"conv_4x4",
     CONVG(NHWC, "pad = [[1, 1], [1, 1]]", 1, 1, "16x4x4x64xf32", "3x3x64x64xf32", "16x4x4x64xf32"),
     0, 1e-5, 0, 0},
    {"conv_winograd_odd",
     CONVG(NHWC, "pad = [[0, 2], [-1, 3]]", 1, 1, "3x19x26x37xf32", "3x3x37x29xf32",
           "3x19x26x29xf32"),
     0, 1e-5, 0, 0},
    {"conv_winograd_data",
     CONVG("[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]",
           "pad = [[1, 1], [0, 2]], reverse = [true, true]", 1, 1, "5x14x14x24xf32",
           "3x3x20x24xf32", "5x14x14x20xf32"),
     0, 1e-5, 0, 0},
    {"conv_winograd_half_reversed",
     CONVG(NHWC, "pad = [[1, 1], [1, 1]], reverse = [true, false]", 1, 1, "9x12x12x16xf32",
           "3x3x16x33xf32", "9x12x12x33xf32"),
     0, 1e-5, 0, 0},
    {"conv_winograd_weights",
     CONVG("[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", "pad = [[0, 0], [-1, 2]]", 1, 1,
           "50x15x15x20xf32", "50x13x14x40xf32", "3x3x20x40xf32"),
     0, 1e-5, 0, 0},
    {"conv_winograd_bf16",
     CONVG(NHWC, "pad = [[1, 1], [1, 1]]", 1, 1, "4x12x12x32xbf16", "3x3x32x32xbf16",
           "4x12x12x32xbf16"),
     0, 1e-2, 0, 0},
    {"conv_winograd_1d",
     CONVG("[b, 0, f]x[0, i, o]->[b, 0, f]", "pad = [[8, 0]], rhs_dilate = [2]", 1, 1,
           "3x301x20xf32", "5x20x40xf32", "3x301x40xf32"),
     0, 1e-5, 0, 0},
    {"conv_winograd_1d_data",
     CONVG("[b, 0, f]x[0, o, i]->[b, 0, f]", "pad = [[1, 2]], reverse = [true]", 1, 1,
           "3x301x40xf32", "4x20x40xf32", "3x301x20xf32"),
     0, 1e-5, 0, 0},
    {"conv_winograd_1d_weights",
     CONVG("[f, 0, b]x[i, 0, o]->[0, b, f]", "pad = [[1, 1]]", 1, 1, "3x301x20xf32", "3x301x40xf32",
           "3x20x40xf32"),
     0, 2e-5, 0, 0},
    {"conv_winograd_tall",
     CONVG(NHWC, "pad = [[3, 3], [0, 0]]", 1, 1, "2x24x17x32xf32", "7x1x32x32xf32",
           "2x24x17x32xf32"),
     0, 1e-5, 0, 0},
    {"conv_winograd_deep",
     CONVG("[b, 0, 1, 2, f]x[0, 1, 2, i, o]->[b, 0, 1, 2, f]", "pad = [[1, 1], [0, 0], [0, 0]]", 1,
           1, "1x16x12x11x32xf32", "3x1x1x32x32xf32", "1x16x12x11x32xf32"),
     0, 1e-5, 0, 0},
    {"conv_winograd_bf16_data", /* channels that do not fill a vector */
     CONVG("[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]", "pad = [[1, 1], [1, 1]]", 1, 1,
           "4x12x12x31xbf16", "3x3x29x31xbf16", "4x12x12x29xbf16"),
     0, 1e-2, 0, 0},
    {"conv_winograd_bf16_weights",
     CONVG("[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", "pad = [[1, 1], [1, 1]]", 1, 1,
           "9x15x15x31xbf16", "9x15x15x40xbf16", "3x3x31x40xbf16"),
     0, 1e-2, 0, 0},
    {"conv_winograd_bf16_to_f32",
     CONVG(NHWC, "pad = [[1, 1], [1, 1]]", 1, 1, "4x12x12x32xbf16", "3x3x32x32xbf16",
           "4x12x12x32xf32"),
     0, 1e-5, 0, 0},
    {"conv_winograd_bf16_not_finite",
     CONVG(NHWC, "pad = [[1, 1], [1, 1]]", 1, 1, "2x13x14x32xbf16", "3x3x32x32xbf16",
           "2x13x14x32xbf16"),
     0, -1e-2, 0, 0},
    {"conv_winograd_channels_first",
     CONVG(NCHW, "pad = [[1, 1], [-1, 1]]", 1, 1, "3x20x13x15xf32", "24x20x3x3xf32",
           "3x24x13x13xf32"),
     0, 1e-5, 0, 0},
    {"conv_winograd_not_finite",
     CONVG(NHWC, "pad = [[1, 1], [1, 1]]", 1, 1, "2x13x14x16xf32", "3x3x16x32xf32",
           "2x13x14x32xf32"),
     0, -1e-5, 0, 0},
    {"conv_winograd_weights_not_finite",
     CONVG("[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", "pad = [[1, 1], [1, 1]]", 1, 1,
           "9x15x15x20xf32", "9x15x15x40xf32", "3x3x20x40xf32"),
     0, -1e-5, 0, 0},
    {"conv_winograd_5x5",
     CONVG(NHWC, "pad = [[2, 2], [1, 3]]", 1, 1, "2x15x12x30xf32", "5x5x30x32xf32",
           "2x15x12x32xf32"),
     0, 1e-5, 0, 0},
    {"conv_winograd_step",
     CONVG(NHWC, "stride = [2, 2], pad = [[1, 1], [1, 1]]", 1, 1, "4x16x14x32xf32", "4x4x32x31xf32",
           "4x8x7x31xf32"),
     0, 1e-5, 0, 0},
    {"conv_winograd_step_data",
     CONVG("[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]",
           "pad = [[2, 2], [2, 2]], lhs_dilate = [2, 2], reverse = [true, true]", 1, 1,
           "4x8x7x32xf32", "4x4x31x32xf32", "4x16x14x31xf32"),
     0, 1e-5, 0, 0},
    {"conv_winograd_step_weights",
     CONVG("[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", "pad = [[1, 1], [1, 1]], rhs_dilate = [2, 2]",
           1, 1, "4x16x14x31xf32", "4x8x7x32xf32", "4x4x31x32xf32"),
     0, 1e-5, 0, 0},
    {"conv_winograd_uneven_step",
     CONVG(NHWC, "stride = [3, 2], pad = [[2, 1], [3, 1]]", 1, 1, "2x36x27x32xf32", "7x6x32x32xf32",
           "2x11x13x32xf32"),
     0, 1e-5, 0, 0},
    {"conv_winograd_uneven_step_data",
     CONVG("[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]",
           "pad = [[4, 5], [2, 4]], lhs_dilate = [3, 2], reverse = [true, true]", 1, 1,
           "2x11x13x32xf32", "7x6x32x32xf32", "2x34x26x32xf32"),
     0, 1e-5, 0, 0},
    {"conv_winograd_gaps",
     CONVG(NHWC, "pad = [[3, 3], [3, 3]], rhs_dilate = [3, 3]", 1, 1, "2x25x24x32xf32",
           "3x3x32x32xf32", "2x25x24x32xf32"),
     0, 1e-5, 0, 0},
    {"conv_winograd_gaps_data",
     CONVG("[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]",
           "pad = [[3, 3], [2, 4]], rhs_dilate = [3, 3], reverse = [true, true]", 1, 1,
           "2x25x24x32xf32", "3x3x32x32xf32", "2x25x24x32xf32"),
     0, 1e-5, 0, 0},
    {"conv_winograd_gaps_weights",
     CONVG("[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", "stride = [3, 3], pad = [[3, 3], [3, 3]]", 1,
           1, "2x25x24x32xf32", "2x25x24x32xf32", "3x3x32x32xf32"),
     0, 1e-5, 0, 0},
    {"conv_winograd_3d",
     CONVG("[b, 0, 1, 2, f]x[0, 1, 2, i, o]->[b, 0, 1, 2, f]",
           "stride = [2, 1, 1], pad = [[1, 1], [1, 1], [0, 2]]", 1, 1, "1x9x12x11x32xf32",
           "3x3x3x32x32xf32", "1x5x12x11x32xf32"),
     0, 1e-5, 0, 0},
    {"conv_winograd_3d_data",
     CONVG("[b, 0, 1, 2, f]x[0, 1, 2, o, i]->[b, 0, 1, 2, f]",
           "pad = [[1, 1], [1, 1], [2, 0]], lhs_dilate = [2, 1, 1], reverse = [true, true, true]",
           1, 1, "1x5x12x11x32xf32", "3x3x3x32x32xf32", "1x9x12x11x32xf32"),
     0, 1e-5, 0, 0},
    {"conv_winograd_3d_weights",
     CONVG("[f, 0, 1, 2, b]x[i, 0, 1, 2, o]->[0, 1, 2, b, f]",
           "pad = [[1, 1], [1, 1], [1, 1]], rhs_dilate = [2, 1, 1]", 1, 1, "1x9x12x11x32xf32",
           "1x5x12x11x32xf32", "3x3x3x32x32xf32"),
     0, 1e-5, 0, 0},
    {"conv_winograd_groups",
     CONVG(NHWC, "pad = [[1, 1], [1, 1]]", 2, 1, "2x12x12x32xf32", "3x3x16x48xf32",
           "2x12x12x48xf32"),
     0, 1e-5, 0, 0},
    {"conv_spread",
     CONVG("[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]",
           "pad = [[3, 4], [3, 3]], lhs_dilate = [2, 2], reverse = [true, true]", 1, 1,
           "3x17x16x16xf32", "7x7x3x16xf32", "3x34x31x3xf32"),
     0, 1e-5, 0, 0},
    {"conv_spread_bands",
     CONVG(
         "[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]",
         "pad = [[3, 3], [2, 2]], lhs_dilate = [1, 3], rhs_dilate = [2, 1], reverse = [true, true]",
         1, 1, "1x120x50x64xf32", "3x4x2x64xf32", "1x122x149x2xf32"),
     0, 1e-5, 0, 0},
    {"conv_spread_channels_first",
     CONVG(
         "[b, f, 0, 1]x[i, o, 0, 1]->[b, f, 0, 1]",
         "pad = [[1, 1], [1, 1]], lhs_dilate = [2, 1], rhs_dilate = [1, 2], reverse = [true, true]",
         1, 1, "2x8x9x12xf32", "8x3x4x2xf32", "2x3x16x12xf32"),
     0, 1e-5, 0, 0},
    {"conv_spread_1d",
     CONVG("[b, 0, f]x[0, o, i]->[b, 0, f]", "pad = [[4, 2]], lhs_dilate = [2], reverse = [true]",
           1, 1, "4x17x16xf32", "5x1x16xf32", "4x35x1xf32"),
     0, 1e-5, 0, 0},
    {"conv_swapped",
     CONVG("[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", "pad = [[2, 2], [2, 2]], lhs_dilate = [2, 2]",
           1, 1, "4x8x8x9xf32", "4x16x16x3xf32", "4x4x9x3xf32"),
     0, 1e-5, 0, 0},
    {"conv_swapped_uneven",
     CONVG("[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]",
           "pad = [[0, 3], [6, 1]], lhs_dilate = [2, 3], reverse = [true, false]", 1, 1,
           "5x9x7x10xf32", "5x17x20x12xf32", "4x7x10x12xf32"),
     0, 1e-5, 0, 0},
    {"conv_swapped_bf16",
     CONVG("[f, 0, b]x[i, 0, o]->[0, b, f]", "pad = [[5, 1]], lhs_dilate = [2]", 1, 1,
           "6x20x16xbf16", "6x40x2xbf16", "6x16x2xbf16"),
     0, 1e-2, 0, 0},
    {"conv_planar_bands", /* rows and a long row in parts */
     CONVG(NHWC, "pad = [[1, 1], [1, 1]]", 1, 1, "1x40x600x5xf32", "3x3x5x3xf32", "1x40x600x3xf32"),
     0, 1e-5, 0, 0},
    {"conv_planar_channels", /* copied a few at a time */
     CONVG(NHWC, "pad = [[1, 1], [1, 1]]", 1, 1, "2x20x24x130xf32", "3x3x130x3xf32",
           "2x20x24x3xf32"),
     0, 1e-5, 0, 0},
    {"conv_planar_1d",
     CONVG("[b, 0, f]x[0, i, o]->[b, 0, f]", "stride = [3], pad = [[8, 0]], rhs_dilate = [4]", 1, 1,
           "3x1700x25xf32", "3x25x13xf32", "3x567x13xf32"),
     0, 1e-5, 0, 0},
    {"conv_planar_channels_first",
     CONVG(NCHW, "stride = [2, 2], pad = [[1, 0], [0, 1]]", 1, 1, "3x3x33x42xf32", "16x3x4x4xf32",
           "3x16x16x20xf32"),
     0, 1e-5, 0, 0},
    {"conv_planar_depthwise_channels_first",
     CONVG(NCHW, "pad = [[2, 2], [2, 2]]", 6, 1, "3x6x21x19xf32", "6x1x5x5xf32", "3x6x21x19xf32"),
     0, 1e-5, 0, 0},
    {"conv_planar_groups",
     CONVG(NHWC, "stride = [2, 1], pad = [[1, 1], [1, 1]]", 5, 1, "2x19x18x15xf32", "3x3x3x20xf32",
           "2x10x18x20xf32"),
     0, 1e-5, 0, 0},
    {"conv_planar_weights_groups",
     CONVG("[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", "pad = [[1, 1], [1, 1]]", 1, 4,
           "3x15x14x12xf32", "3x15x14x20xf32", "3x3x3x20xf32"),
     0, 1e-5, 0, 0},
    {"conv_planar_3d",
     CONVG("[b, 0, 1, 2, f]x[0, 1, 2, i, o]->[b, 0, 1, 2, f]",
           "stride = [2, 1, 2], pad = [[1, 1], [0, 2], [1, 0]]", 1, 1, "2x9x8x11x1xf32",
           "3x3x2x1x18xf32", "2x5x8x6x18xf32"),
     0, 1e-5, 0, 0},
    {"conv_planar_3d_data", /* a place without taps */
     CONVG("[b, 0, 1, 2, f]x[0, 1, 2, o, i]->[b, 0, 1, 2, f]",
           "pad = [[0, 3], [1, 2], [2, 1]], lhs_dilate = [3, 2, 2], reverse = [true, true, true]",
           1, 1, "2x4x5x5x20xf32", "1x3x3x2x20xf32", "2x13x10x10x2xf32"),
     0, 1e-5, 0, 0},
    {"conv_planar_3d_weights",
     CONVG("[f, 0, 1, 2, b]x[i, 0, 1, 2, o]->[0, 1, 2, b, f]",
           "pad = [[1, 1], [1, 1], [1, 1]], rhs_dilate = [1, 2, 1]", 1, 1, "2x9x15x11x1xf32",
           "2x9x7x11x16xf32", "3x5x3x1x16xf32"),
     0, 1e-5, 0, 0},
    {"conv_planar_weights_not_finite",
     CONVG("[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", "pad = [[1, 1], [1, 1]]", 1, 1,
           "9x15x15x12xf32", "9x15x15x3xf32", "3x3x12x3xf32"),
     0, -1e-5, 0, 0},
    {"conv_planar_bf16",
     CONVG(NHWC, "pad = [[1, 1], [1, 1]]", 1, 1, "2x13x18x9xbf16", "3x3x9x10xbf16",
           "2x13x18x10xbf16"),
     0, 1e-2, 0, 0},
    {"conv_patches", /* more taps than results */
     CONVG(NHWC, "stride = [10, 9], pad = [[0, 0], [1, 0]]", 1, 1, "3x50x44x3xf32", "10x9x3x20xf32",
           "3x5x5x20xf32"),
     0, 1e-5, 0, 0},
    {"conv_patches_weights",
     CONVG("[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]",
           "pad = [[0, 0], [1, 0]], rhs_dilate = [10, 9]", 1, 1, "3x50x44x3xf32", "3x5x5x20xf32",
           "10x9x3x20xf32"),
     0, 1e-5, 0, 0},
    {"conv_spread_few_places", /* images together */
     CONVG("[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]",
           "pad = [[4, 3], [3, 3]], reverse = [true, true]", 1, 1, "5x2x1x24xf32", "5x4x16x24xf32",
           "5x5x4x16xf32"),
     0, 1e-5, 0, 0},
    {"conv_gemm",
     CONVG(NHWC, "stride = [2, 3], pad = [[1, 0], [2, 1]], rhs_dilate = [1, 2]", 1, 1,
           "2x13x17x19xf32", "3x3x19x130xf32", "2x6x6x130xf32"),
     0, 1e-5, 0, 0},
    {"conv_gemm_data", /* places between the taps get zeros */
     CONVG("[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]",
           "pad = [[2, 1], [1, 2]], lhs_dilate = [2, 3], reverse = [true, true]", 1, 1,
           "2x5x6x20xf32", "4x2x130x20xf32", "2x9x18x130xf32"),
     0, 1e-5, 0, 0},
    {"conv_gemm_weights",
     CONVG("[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", "pad = [[1, 0], [0, 1]], rhs_dilate = [2, 2]",
           1, 1, "3x14x13x17xf32", "3x7x6x130xf32", "3x4x17x130xf32"),
     0, 1e-5, 0, 0},
    {"conv_gemm_weights_3d",
     CONVG("[f, 0, 1, 2, b]x[i, 0, 1, 2, o]->[0, 1, 2, b, f]", "pad = [[1, 1], [1, 1], [1, 1]]", 1,
           1, "2x5x6x7x9xf32", "2x5x6x7x11xf32", "3x3x3x9x11xf32"),
     0, 1e-5, 0, 0},
    {"conv_gemm_data_3d",
     CONVG("[b, 0, 1, 2, f]x[0, 1, 2, o, i]->[b, 0, 1, 2, f]",
           "pad = [[1, 1], [1, 1], [0, 0]], lhs_dilate = [2, 2, 2], reverse = [true, true, true]",
           1, 1, "2x3x4x3x16xf32", "2x3x2x24x16xf32", "2x6x7x4x24xf32"),
     0, 1e-5, 0, 0},
    {"conv_gemm_1d",
     CONVG("[b, 0, f]x[0, i, o]->[b, 0, f]", "pad = [[4, 4]], rhs_dilate = [4]", 1, 1,
           "2x50x16xf32", "3x16x64xf32", "2x50x64xf32"),
     0, 1e-5, 0, 0},
    {"conv_gemm_pixels",
     CONVG("[b, 0, f]x[0, i, o]->[b, 0, f]", "pad = [[0, 0]]", 1, 1, "2x64x32xf32", "1x32x48xf32",
           "2x64x48xf32"),
     0, 1e-5, 0, 0},
    {"conv_gemm_channels_first",
     CONVG(NCHW, "stride = [2, 2], pad = [[1, 1], [1, 1]]", 1, 1, "2x16x12x11xf32",
           "128x16x3x3xf32", "2x128x6x6xf32"),
     0, 1e-5, 0, 0},
    {"conv_merged_groups",
     CONVG(NHWC, "stride = [1, 2], pad = [[1, 1], [0, 1]]", 8, 1, "2x9x8x32xf32", "3x3x4x24xf32",
           "2x9x4x24xf32"),
     0, 1e-5, 0, 0},
    {"conv_merged_groups_data",
     CONVG("[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]",
           "pad = [[1, 1], [1, 2]], lhs_dilate = [1, 2], reverse = [true, true]", 4, 1,
           "2x7x7x24xf32", "3x3x6x16xf32", "2x7x14x16xf32"),
     0, 1e-5, 0, 0},
    {"conv_merged_groups_weights",
     CONVG("[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", "pad = [[1, 1], [1, 1]]", 1, 4,
           "5x9x8x16xf32", "5x9x8x24xf32", "3x3x4x24xf32"),
     0, 1e-5, 0, 0},
    {"conv_merged_groups_bf16",
     CONVG(NHWC, "pad = [[1, 1], [1, 1]]", 4, 1, "2x9x8x16xbf16", "3x3x4x16xbf16", "2x9x8x16xbf16"),
     0, 1e-2, 0, 0},
    {"conv_depthwise_step",
     CONVG(NHWC, "stride = [2, 1], pad = [[0, 1], [2, 2]], rhs_dilate = [1, 2]", 45, 1,
           "2x9x8x45xf32", "3x3x1x45xf32", "2x4x8x45xf32"),
     0, 1e-5, 0, 0},
    {"conv_depthwise_data",
     CONVG(NHWC, "pad = [[1, 2], [1, 1]], lhs_dilate = [2, 1], reverse = [true, true]", 40, 1,
           "2x5x8x40xf32", "3x3x1x40xf32", "2x10x8x40xf32"),
     0, 1e-5, 0, 0},
    {"conv_depthwise_weights",
     CONVG("[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", "pad = [[2, 2], [1, 0]], rhs_dilate = [1, 2]",
           1, 41, "3x21x14x41xf32", "3x21x7x41xf32", "5x3x1x41xf32"),
     0, 1e-5, 0, 0},
    {"conv_depthwise_1d",
     CONVG("[b, f, 0]x[o, i, 0]->[b, f, 0]", "pad = [[4, 0]]", 20, 1, "3x20x30xf32", "20x1x5xf32",
           "3x20x30xf32"),
     0, 1e-5, 0, 0},
    {"conv_columns",
     CONVG("[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", "pad = [[3, 2], [3, 2]], rhs_dilate = [2, 2]",
           1, 1, "5x32x30x3xf32", "5x16x15x24xf32", "7x7x3x24xf32"),
     0, 1e-5, 0, 0},
    {"conv_columns_gaps",
     CONVG("[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", "stride = [2, 3], pad = [[2, 2], [-1, 3]]", 1,
           1, "3x20x21x32xf32", "3x20x17x16xf32", "3x3x32x16xf32"),
     0, 1e-5, 0, 0},
    {"conv_columns_1d",
     CONVG("[f, b, 0]x[i, o, 0]->[b, f, 0]", "pad = [[1, 1]]", 1, 1, "6x1x40xf32", "6x16x40xf32",
           "1x16x3xf32"),
     0, 1e-5, 0, 0},
    {"conv_first",
     CONVG(NHWC, "stride = [2, 3], pad = [[3, 2], [-1, 3]], rhs_dilate = [1, 2]", 1, 1,
           "2x20x33x3xf32", "5x3x3x37xf32", "2x11x11x37xf32"),
     0, 1e-5, 0, 0},
    {"conv_first_weights",
     CONVG("[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", "pad = [[1, 1], [0, 2]]", 1, 1,
           "7x13x22x1xf32", "7x13x22x20xf32", "3x3x1x20xf32"),
     0, 1e-5, 0, 0},
    {"conv_first_1d",
     CONVG("[b, f, 0]x[o, i, 0]->[b, f, 0]", "stride = [2], pad = [[4, 0]]", 1, 1, "3x2x30xf32",
           "24x2x5xf32", "3x24x15xf32"),
     0, 1e-5, 0, 0},
    {"conv_last",
     CONVG(NCHW, "pad = [[2, 1], [0, 1]]", 1, 1, "2x24x9x10xf32", "3x24x3x2xf32", "2x3x10x10xf32"),
     0, 1e-5, 0, 0},
    {"conv_last_data",
     CONVG("[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]",
           "pad = [[1, 1], [2, 2]], rhs_dilate = [1, 2], reverse = [true, true]", 1, 1,
           "2x9x8x3xf32", "3x3x24x3xf32", "2x9x8x24xf32"),
     0, 1e-5, 0, 0},
    {"conv_1x1",
     CONVG(NHWC, "stride = [2, 2]", 1, 1, "4x8x8x32xf32", "1x1x32x64xf32", "4x4x4x64xf32"), 0, 1e-5,
     0, 0},
    {"conv_1d",
     CONVG("[b, 0, f]x[0, i, o]->[b, 0, f]", "pad = [[2, 1]]", 1, 1, "3x20x5xf32", "4x5x7xf32",
           "3x20x7xf32"),
     0, 1e-5, 0, 0},
    {"conv_0d", CONVG("[b, f]x[i, o]->[b, f]", "", 1, 1, "3x5xf32", "5x7xf32", "3x7xf32"), 0, 1e-5,
     0, 0},
    {"conv_3d",
     CONVG("[b, 0, 1, 2, f]x[0, 1, 2, i, o]->[b, 0, 1, 2, f]", "pad = [[1, 1], [1, 1], [1, 1]]", 1,
           1, "2x5x6x7x4xf32", "3x3x3x4x8xf32", "2x5x6x7x8xf32"),
     0, 1e-5, 0, 0},
    {"conv_4d",
     CONVG("[b, 0, 1, 2, 3, f]x[0, 1, 2, 3, i, o]->[b, 0, 1, 2, 3, f]", "", 1, 1, "2x3x3x3x3x4xf32",
           "2x2x2x2x4x5xf32", "2x2x2x2x2x5xf32"),
     0, 1e-5, 0, 0},
    {"conv_batch_groups_forward",
     CONVG(NHWC, "pad = [[1, 1], [1, 1]]", 1, 2, "4x5x5x3xf32", "3x3x3x6xf32", "2x5x5x6xf32"), 0,
     1e-5, 0, 0},
    {"conv_stride_and_dilation",
     CONVG(NHWC, "stride = [2, 2], pad = [[1, 1], [1, 1]], lhs_dilate = [3, 2]", 1, 1,
           "2x5x5x3xf32", "3x3x3x6xf32", "2x7x5x6xf32"),
     0, 1e-5, 0, 0},
    {"conv_bf16",
     CONVG(NHWC, "pad = [[1, 1], [1, 1]]", 1, 1, "2x9x8x16xbf16", "3x3x16x12xbf16",
           "2x9x8x12xbf16"),
     0, 8e-3, 0, 0},
    {"conv_bf16_weights",
     CONVG("[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", "pad = [[1, 1], [1, 1]]", 1, 1,
           "16x14x14x12xbf16", "16x14x14x24xbf16", "3x3x12x24xbf16"),
     0, 8e-3, 0, 0},
    {"conv_bf16_data",
     CONVG("[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]",
           "pad = [[1, 2], [1, 2]], lhs_dilate = [2, 2], reverse = [true, true]", 1, 1,
           "4x7x7x16xbf16", "3x3x24x16xbf16", "4x14x14x24xbf16"),
     0, 8e-3, 0, 0},
    {"conv_bf16_f32",
     CONVG(NHWC, "pad = [[1, 1], [1, 1]]", 1, 1, "2x9x8x16xbf16", "3x3x16x12xbf16", "2x9x8x12xf32"),
     0, 1e-5, 0, 0},
    {"conv_f16",
     CONVG(NHWC, "pad = [[1, 1], [1, 1]]", 1, 1, "2x9x8x16xf16", "3x3x16x12xf16", "2x9x8x12xf16"),
     0, 1e-3, 0, 0},
    {"conv_f64",
     CONVG(NHWC, "pad = [[1, 1], [1, 1]]", 1, 1, "2x9x8x16xf64", "3x3x16x12xf64", "2x9x8x12xf64"),
     0, 1e-14, 0, 0},
    {"conv_c64",
     CONVG(NHWC, "pad = [[1, 1], [1, 1]]", 1, 1, "2x9x8x4xcomplex<f32>", "3x3x4x3xcomplex<f32>",
           "2x9x8x3xcomplex<f32>"),
     0, 1e-5, 0, 0},
    {"conv_i32",
     CONVG(NHWC, "pad = [[1, 1], [1, 1]], reverse = [true, false]", 1, 1, "2x9x8x4xi32",
           "3x3x4x3xi32", "2x9x8x3xi32"),
     0, 0, 0, 0},
    {"conv_i8_i32",
     CONVG(NHWC, "pad = [[1, 1], [1, 1]]", 1, 1, "2x9x8x4xi8", "3x3x4x3xi8", "2x9x8x3xi32"), 0, 0,
     0, 0},
    {"conv_no_features",
     CONVG(NHWC, "pad = [[1, 1], [1, 1]]", 1, 1, "2x4x4x0xf32", "3x3x0x3xf32", "2x4x4x3xf32"), 0, 0,
     0, 0},
    {"conv_no_batch",
     CONVG(NHWC, "pad = [[1, 1], [1, 1]]", 1, 1, "0x4x4x2xf32", "3x3x2x3xf32", "0x4x4x3xf32"), 0, 0,
     0, 0},

#define GATHER(l, i, o, dims, sizes)                                                               \
  "func.func @main(%a: tensor<" l ">, %b: tensor<" i ">) -> tensor<" o                             \
  "> { %r = \"stablehlo.gather\"(%a, %b) <{dimension_numbers = "                                   \
  "#stablehlo.gather<" dims ">, slice_sizes = array<i64: " sizes ">}> : (tensor<" l ">, tensor<" i \
  ">) -> tensor<" o "> return %r : tensor<" o "> }"
    {"gather_rows",
     GATHER("17x40xf32", "33x1xi32", "33x40xf32",
            "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
            "index_vector_dim = 1",
            "1, 40"),
     "gather", 0, 0, 0},
    {"gather_rows_big",
     GATHER("5000x64xf32", "6000x1xi32", "6000x64xf32",
            "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
            "index_vector_dim = 1",
            "1, 64"),
     "gather", 0, -10, 6000},
    {"gather_columns",
     GATHER("300x17xf64", "700x1xi64", "300x700xf64",
            "offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], "
            "index_vector_dim = 1",
            "300, 1"),
     "gather", 0, 0, 0},
    {"gather_elements",
     GATHER("7x6x5xbf16", "9x4x3xui8", "9x4xbf16",
            "collapsed_slice_dims = [0, 1, 2], start_index_map = [2, 0, 1], index_vector_dim = 2",
            "1, 1, 1"),
     "gather", 0, 0, 9},
    {"gather_windows",
     GATHER("7x6x5xi8", "2x9xi32", "3x9x2x5xi8",
            "offset_dims = [0, 2, 3], start_index_map = [0, 1], index_vector_dim = 0", "3, 2, 5"),
     "gather", 0, 0, 9},
    {"gather_scalar_index",
     GATHER("7x6xi1", "i32", "6xi1",
            "offset_dims = [0], collapsed_slice_dims = [0], start_index_map = [0], "
            "index_vector_dim = 0",
            "1, 6"),
     "gather", 0, 0, 9},
    {"gather_batching",
     GATHER("4x7x3xf32", "4x5x1xi32", "4x5x3xf32",
            "offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], "
            "start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2",
            "1, 1, 3"),
     "gather", 0, 0, 8},
    {"gather_c128",
     GATHER("4x7xcomplex<f64>", "5x1xi32", "5x7xcomplex<f64>",
            "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
            "index_vector_dim = 1",
            "1, 7"),
     "gather", 0, 0, 0},
    {"gather_none",
     GATHER("4x7xf32", "0x1xi32", "0x7xf32",
            "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
            "index_vector_dim = 1",
            "1, 7"),
     "gather", 0, 0, 0},

    {"gather_single",
     GATHER("700xf32", "70x100x1xi32", "70x100xf32",
            "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2", "1"),
     "gather", 0, -10, 710},
    {"gather_single_u32",
     GATHER("700xf32", "900x1xui32", "900xf32",
            "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1", "1"),
     "gather", 0, 0, 4294967295},
    {"gather_rows_i64",
     GATHER("70x3xf64", "900x1xi64", "900x3xf64",
            "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
            "index_vector_dim = 1",
            "1, 3"),
     "gather", 0, -90, 90},
    {"gather_windows_one",
     GATHER("700xi16", "900x1xi32", "900x5xi16",
            "offset_dims = [1], start_index_map = [0], index_vector_dim = 1", "5"),
     "gather", 0, -10, 710},
    {"gather_single_c128",
     GATHER("30x20xcomplex<f64>", "1000x2xi32", "1000xcomplex<f64>",
            "collapsed_slice_dims = [0, 1], start_index_map = [1, 0], index_vector_dim = 1",
            "1, 1"),
     "gather", 0, -2, 40},
#define SCATTER(l, i, u, e, dims, op)                                                             \
  "func.func @main(%a: tensor<" l ">, %b: tensor<" i ">, %c: tensor<" u ">) -> tensor<" l         \
  "> { %r = \"stablehlo.scatter\"(%a, %b, %c) "                                                   \
  "<{scatter_dimension_numbers = #stablehlo.scatter<" dims ">}> ({ ^bb0(%x: tensor<" e            \
  ">, %y: tensor<" e ">): " op " }) : (tensor<" l ">, tensor<" i ">, tensor<" u ">) -> tensor<" l \
  "> return %r : tensor<" l "> }"
#define BODY(o, e) "%s = stablehlo." o " %x, %y : tensor<" e "> stablehlo.return %s : tensor<" e ">"
#define ROWS_                                                                                  \
  "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], " \
  "index_vector_dim = 1"
    {"scatter_add_rows",
     SCATTER("17x40xf32", "33x1xi32", "33x40xf32", "f32", ROWS_, BODY("add", "f32")), "scatter",
     1e-30, 0, 0},
    {"scatter_add_rows_big",
     SCATTER("500x64xf32", "6000x1xi32", "6000x64xf32", "f32", ROWS_, BODY("add", "f32")),
     "scatter", 1e-30, -10, 520},
    {"scatter_set_rows",
     SCATTER("17x40xf32", "33x1xi32", "33x40xf32", "f32", ROWS_,
             "stablehlo.return %y : tensor<f32>"),
     "scatter", 0, 0, 0},
    {"scatter_max_bf16",
     SCATTER("17x70xbf16", "33x1xi32", "33x70xbf16", "bf16", ROWS_, BODY("maximum", "bf16")),
     "scatter", 0, 0, 0},
    {"scatter_min_f32",
     SCATTER("17x70xf32", "33x1xi32", "33x70xf32", "f32", ROWS_, BODY("minimum", "f32")), "scatter",
     0, 0, 0},
    {"scatter_add_bf16",
     SCATTER("17x70xbf16", "33x1xi32", "33x70xbf16", "bf16", ROWS_, BODY("add", "bf16")), "scatter",
     1e-30, 0, 0},
    {"scatter_min_i32",
     SCATTER("17x7xi32", "33x1xi32", "33x7xi32", "i32", ROWS_, BODY("minimum", "i32")), "scatter",
     0, 0, 0},
    {"scatter_mul_i64",
     SCATTER("17x7xi64", "33x1xi32", "33x7xi64", "i64", ROWS_, BODY("multiply", "i64")), "scatter",
     0, 0, 0},
    {"scatter_add_c64",
     SCATTER("17x7xcomplex<f32>", "33x1xi32", "33x7xcomplex<f32>", "complex<f32>", ROWS_,
             BODY("add", "complex<f32>")),
     "scatter", 1e-30, 0, 0},
    {"scatter_max_nan",
     SCATTER("17x1xf32", "330x1xi32", "330x1xf32", "f32", ROWS_, BODY("maximum", "f32")), "scatter",
     0, -3, 20},
    {"scatter_min_nan",
     SCATTER("17x1xbf16", "330x1xi32", "330x1xbf16", "bf16", ROWS_, BODY("minimum", "bf16")),
     "scatter", 0, -3, 20},
    {"scatter_max_f64",
     SCATTER("17x3xf64", "330x1xi32", "330x3xf64", "f64", ROWS_, BODY("maximum", "f64")), "scatter",
     0, -3, 20},
    {"scatter_mul_f32",
     SCATTER("17x16xf32", "33x1xi32", "33x16xf32", "f32", ROWS_, BODY("multiply", "f32")),
     "scatter", 1e-6, 0, 0},
    {"scatter_mul_bf16",
     SCATTER("17x16xbf16", "33x1xi32", "33x16xbf16", "bf16", ROWS_, BODY("multiply", "bf16")),
     "scatter", 1e-30, 0, 0},
    {"scatter_add_bf16_rows",
     SCATTER("17x2xbf16", "330x1xi32", "330x2xbf16", "bf16", ROWS_, BODY("add", "bf16")), "scatter",
     1e-30, 0, 0},
    {"scatter_set_i8",
     SCATTER("17x3xi8", "33x1xi32", "33x3xi8", "i8", ROWS_, "stablehlo.return %y : tensor<i8>"),
     "scatter", 0, 0, 0},
    {"scatter_batches",
     SCATTER("5x3x40xf32", "5x3x70x1xi32", "5x3x70xf32", "f32",
             "inserted_window_dims = [2], input_batching_dims = [0, 1], "
             "scatter_indices_batching_dims = [0, 1], scatter_dims_to_operand_dims = [2], "
             "index_vector_dim = 3",
             BODY("add", "f32")),
     "scatter", 1e-30, -2, 42},
    {"scatter_elements",
     SCATTER("30x20xf32", "2000x2xi32", "2000xf32", "f32",
             "inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [1, 0], "
             "index_vector_dim = 1",
             BODY("add", "f32")),
     "scatter", 1e-30, -2, 32},
#define SINGLE \
  "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
    {"scatter_max_elements",
     SCATTER("300xf32", "2000x1xi32", "2000xf32", "f32", SINGLE, BODY("maximum", "f32")), "scatter",
     0, -2, 310},
    {"scatter_min_elements",
     SCATTER("300xi32", "2000x1xi32", "2000xi32", "i32", SINGLE, BODY("minimum", "i32")), "scatter",
     0, -2, 310},
    {"scatter_set_elements",
     SCATTER("300xf64", "2000x1xi32", "2000xf64", "f64", SINGLE,
             "stablehlo.return %y : tensor<f64>"),
     "scatter", 0, -2, 310},
    {"scatter_multiply_elements_bf16",
     SCATTER("300xbf16", "700x1xi32", "700xbf16", "bf16", SINGLE, BODY("multiply", "bf16")),
     "scatter", 0, -2, 310},
    {"scatter_add_rows_of_8",
     SCATTER("30x8xf32", "2000x1xi64", "2000x8xf32", "f32", ROWS_, BODY("add", "f32")), "scatter",
     1e-30, -2, 32},
    {"scatter_columns",
     SCATTER("30x20xf32", "9x1xi32", "30x9xf32", "f32",
             "update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = "
             "[1], index_vector_dim = 1",
             BODY("add", "f32")),
     "scatter", 1e-30, 0, 0},
    {"scatter_windows",
     SCATTER(
         "30x20xf32", "50x2xi32", "50x3x4xf32", "f32",
         "update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1",
         BODY("add", "f32")),
     "scatter", 1e-30, -4, 31},
    {"scatter_batching",
     SCATTER("4x20x3xf32", "4x9x1xi32", "4x9x3xf32", "f32",
             "update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], "
             "scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], "
             "index_vector_dim = 2",
             BODY("add", "f32")),
     "scatter", 1e-30, -4, 21},
    {"scatter_none", SCATTER("17x40xf32", "0x1xi32", "0x40xf32", "f32", ROWS_, BODY("add", "f32")),
     "scatter", 0, 0, 0},

#define SORT1(t, e, dim, body)                                                      \
  "func.func @main(%a: tensor<" t ">) -> tensor<" t                                 \
  "> { %z = stablehlo.constant dense<0.0> : tensor<f32> %n = stablehlo.constant "   \
  "dense<0x7FC00000> : tensor<f32> %r = \"stablehlo.sort\"(%a) <{dimension = " dim  \
  " : i64, is_stable = true}> ({ ^bb0(%x: tensor<" e ">, %y: tensor<" e ">): " body \
  " }) : (tensor<" t ">) -> tensor<" t "> return %r : tensor<" t "> }"
#define LESS(direction, type, e)                                                       \
  "%s = stablehlo.compare " direction ", %x, %y, " type " : (tensor<" e ">, tensor<" e \
  ">) -> tensor<i1> stablehlo.return %s : tensor<i1>"
#define JAX_FLOAT                                                                             \
  "%1 = stablehlo.compare EQ, %x, %z, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> "      \
  "%2 = stablehlo.select %1, %z, %x : tensor<i1>, tensor<f32> "                               \
  "%3 = stablehlo.compare NE, %x, %x, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> "      \
  "%4 = stablehlo.select %3, %n, %2 : tensor<i1>, tensor<f32> "                               \
  "%5 = stablehlo.compare EQ, %y, %z, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> "      \
  "%6 = stablehlo.select %5, %z, %y : tensor<i1>, tensor<f32> "                               \
  "%7 = stablehlo.compare NE, %y, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> "      \
  "%8 = stablehlo.select %7, %n, %6 : tensor<i1>, tensor<f32> "                               \
  "%9 = stablehlo.compare LT, %4, %8, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1> " \
  "stablehlo.return %9 : tensor<i1>"
#define TWO_KEYS                                                                                   \
  "%1 = stablehlo.compare LT, %p, %q, UNSIGNED : (tensor<ui8>, tensor<ui8>) -> tensor<i1> "        \
  "%2 = stablehlo.compare GT, %x, %y, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1> "          \
  "%3 = stablehlo.compare EQ, %x, %y, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1> "          \
  "%4 = stablehlo.and %3, %1 : tensor<i1> %5 = stablehlo.or %2, %4 : tensor<i1> stablehlo.return " \
  "%5 : tensor<i1>"
#define SORT3(n, key, body)                                                                      \
  "func.func @main(%a: tensor<" n "x" key ">, %b: tensor<" n "xui8>, %c: tensor<" n              \
  "xf64>) -> (tensor<" n "x" key ">, tensor<" n "xui8>, tensor<" n                               \
  "xf64>) { %r:3 = \"stablehlo.sort\"(%a, %b, %c) <{dimension = 0 : i64, is_stable = true}> ({ " \
  "^bb0(%x: tensor<" key ">, %y: tensor<" key                                                    \
  ">, %p: tensor<ui8>, %q: tensor<ui8>, %v: tensor<f64>, %w: tensor<f64>): " body                \
  " }) : (tensor<" n "x" key ">, tensor<" n "xui8>, tensor<" n "xf64>) -> (tensor<" n "x" key    \
  ">, tensor<" n "xui8>, tensor<" n "xf64>) return %r#0, %r#1, %r#2 : "                          \
  "tensor<" n "x" key ">, tensor<" n "xui8>, tensor<" n "xf64> }"
#define TURN(a, dims, o)                                                            \
  "func.func @main(%a: tensor<" a ">) -> tensor<" o                                 \
  "> { %r = stablehlo.transpose %a, dims = " dims " : (tensor<" a ">) -> tensor<" o \
  "> return %r : tensor<" o "> }"
#define APPROX(t, o)                                                                              \
  "func.func @main(%a: tensor<" t "xf32>, %b: tensor<" t                                          \
  "xi32>, %c: tensor<f32>, %d: tensor<i32>) "                                                     \
  "-> (tensor<" o "xf32>, tensor<" o "xi32>) { %r:2 = stablehlo.custom_call @ApproxTopK(%a, %b, " \
  "%c, %d) {mhlo.backend_config = {reduction_dim = 1 : i64}} : (tensor<" t "xf32>, tensor<" t     \
  "xi32>, tensor<f32>, tensor<i32>) -> (tensor<" o "xf32>, tensor<" o "xi32>) return %r#0, %r#1 " \
  ": tensor<" o "xf32>, tensor<" o "xi32> }"
#define TOP_OF(k, t, o, i)                                                             \
  "func.func @main(%a: tensor<" t ">) -> (tensor<" o ">, tensor<" i                    \
  ">) { %r:2 = chlo.top_k(%a, k = " k ") : tensor<" t "> -> (tensor<" o ">, tensor<" i \
  ">) return %r#0, %r#1 : tensor<" o ">, tensor<" i "> }"
#define TOP(t, o, i) TOP_OF("7", t, o, i)
    {"sort_f32_total", SORT1("5x300xf32", "f32", "1", LESS("LT", "TOTALORDER", "f32")), "sort:keys",
     0, 0, 0},
    {"sort_f32_jax", SORT1("2000x3xf32", "f32", "0", JAX_FLOAT), "sort:keys", 0, 0, 0},
    {"sort_f32_long", SORT1("70000xf32", "f32", "0", JAX_FLOAT), "sort:keys", 0, 0, 0},
    {"sort_f64_down", SORT1("3x1000xf64", "f64", "1", LESS("GT", "TOTALORDER", "f64")), "sort:keys",
     0, 0, 0},
    {"sort_bf16", SORT1("3x1000xbf16", "bf16", "1", LESS("LT", "TOTALORDER", "bf16")), "sort:keys",
     0, 0, 0},
    {"sort_i8_down", SORT1("3x1000xi8", "i8", "1", LESS("GT", "SIGNED", "i8")), "sort:keys", 0,
     -128, 127},
    {"sort_i64", SORT1("3x1000xi64", "i64", "1", LESS("LT", "SIGNED", "i64")), "sort:keys", 0,
     -5000000000, 5000000000},
    {"sort_u32_long", SORT1("150000xui32", "ui32", "0", LESS("LT", "UNSIGNED", "ui32")),
     "sort:keys", 0, 0, 4294967295},
    {"sort_i1", SORT1("3x1000xi1", "i1", "1", LESS("LT", "UNSIGNED", "i1")), "sort:keys", 0, 0, 0},
    {"sort_one", SORT1("3x1xi32", "i32", "1", LESS("LT", "SIGNED", "i32")), "sort:keys", 0, 0, 0},
    {"sort_none", SORT1("3x0xi32", "i32", "1", LESS("LT", "SIGNED", "i32")), "sort:keys", 0, 0, 0},
    {"sort_two_keys", SORT3("2000", "i32", TWO_KEYS), "sort:keys", 0, 0, 0},
    {"sort_two_keys_long", SORT3("70000", "i32", TWO_KEYS), "sort:keys", 0, 0, 0},
    {"sort_key_value", SORT3("300", "i16", LESS("LT", "SIGNED", "i16")), "sort:keys", 0, 0, 0},
    {"sort_long_keys", SORT3("3000", "i64", LESS("LT", "SIGNED", "i64")), "sort:keys", 0, 0, 0},
    {"approx_top_k", APPROX("5x300", "5x7"), "top_k", 0, 0, 0},
    {"approx_top_k_most", APPROX("3x90", "3x50"), "top_k", 0, 0, 0},
    {"top_k_f32", TOP("5x300xf32", "5x7xf32", "5x7xi32"), "top_k", 0, 0, 0},
    {"top_k_i8", TOP("2x3000xi8", "2x7xi8", "2x7xi32"), "top_k", 0, 0, 0},
    {"top_k_f64", TOP("2x3000xf64", "2x7xf64", "2x7xi32"), "top_k", 0, 0, 0},
    {"top_k_of_many", TOP("3x5000xf32", "3x7xf32", "3x7xi32"), "top_k", 0, 0, 0},
    {"top_k_of_few_values", TOP("3x5000xi32", "3x7xi32", "3x7xi32"), "top_k", 0, 0, 3},
    {"top_k_buffer", TOP_OF("20", "3x5000xf32", "3x20xf32", "3x20xi32"), "top_k", 0, 0, 0},
    {"top_k_buffer_equals", TOP_OF("70", "3x5000xi32", "3x70xi32", "3x70xi32"), "top_k", 0, 0, 3},
    {"top_k_buffer_i8", TOP_OF("20", "2x900xi8", "2x20xi8", "2x20xi32"), "top_k", 0, -128, 127},
    {"top_k_most", TOP_OF("20", "2x50xf32", "2x20xf32", "2x20xi32"), "top_k", 0, 0, 0},
    {"top_k_all", TOP("7xbf16", "7xbf16", "7xi32"), "top_k", 0, 0, 0},
#define POOL_OF(e, t, o, init, op, attrs)                                                  \
  "func.func @main(%a: tensor<" t ">, %b: tensor<" e ">) -> tensor<" o                     \
  "> { %r = \"stablehlo.reduce_window\"(%a, " init ") <{" attrs "}> ({ ^bb0(%x: tensor<" e \
  ">, %y: tensor<" e ">): %s = stablehlo." op " %x, %y : tensor<" e                        \
  "> stablehlo.return %s : tensor<" e "> }) : (tensor<" t ">, tensor<" e ">) -> tensor<" o \
  "> return %r : tensor<" o "> }"
#define POOL(t, o, init, op, attrs) POOL_OF("f32", t, o, init, op, attrs)
#define UNPOOL_OF(e, t, o, direction, attrs)                                                  \
  "func.func @main(%a: tensor<" t ">, %b: tensor<" o ">, %c: tensor<" e ">) -> tensor<" t     \
  "> { %r = \"stablehlo.select_and_scatter\"(%a, %b, %c) <{" attrs "}> ({ ^bb0(%x: tensor<" e \
  ">, %y: tensor<" e ">): %s = stablehlo.compare " direction ", %x, %y, FLOAT : (tensor<" e   \
  ">, tensor<" e ">) -> tensor<i1> stablehlo.return %s : "                                    \
  "tensor<i1> }, { ^bb0(%x: tensor<" e ">, %y: tensor<" e ">): %s = stablehlo.add %x, %y "    \
  ": tensor<" e "> stablehlo.return %s : tensor<" e "> }) : (tensor<" t ">, tensor<" o        \
  ">, tensor<" e ">) -> tensor<" t "> return %r : tensor<" t "> }"
#define UNPOOL(t, o, direction, attrs) UNPOOL_OF("f32", t, o, direction, attrs)
#define P22 "window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>"
#define P33                                                                                       \
  "window_dimensions = array<i64: 1, 1, 3, 3>, window_strides = array<i64: 1, 1, 2, 1>, padding " \
  "= dense<[[0, 0], [0, 0], [1, 1], [1, 2]]> : tensor<4x2xi64>"
    {"pool_max", POOL("2x3x8x40xf32", "2x3x4x20xf32", "%b", "maximum", P22), "pool:planes", 1e-30,
     0, 0},
    {"pool_min_pad", POOL("2x3x8x10xf32", "2x3x4x11xf32", "%b", "minimum", P33), "pool:planes",
     1e-30, 0, 0},
    {"pool_add_pad", POOL("2x3x8x10xf32", "2x3x4x11xf32", "%b", "add", P33), "pool:planes", 1e-5, 0,
     0},
    {"pool_mul", POOL("2x3x8x40xf32", "2x3x4x20xf32", "%b", "multiply", P22), "pool:planes", 1e-5,
     0, 0},
    {"pool_1d",
     POOL("3x40xf32", "3x12xf32", "%b", "add",
          "window_dimensions = array<i64: 1, 5>, window_strides = array<i64: 1, 3>"),
     "pool:planes", 1e-5, 0, 0},
    {"pool_negative",
     POOL("3x40xf32", "3x10xf32", "%b", "add",
          "window_dimensions = array<i64: 1, 5>, window_strides = array<i64: 1, 3>, padding = "
          "dense<[[0, 0], [-5, -2]]> : tensor<2x2xi64>"),
     "pool:planes", 1e-5, 0, 0},
    {"unpool_max", UNPOOL("2x3x8x40xf32", "2x3x4x20xf32", "GE", P22), "unpool:planes", 1e-30, 0, 0},
    {"unpool_min_pad", UNPOOL("2x3x8x10xf32", "2x3x4x11xf32", "LE", P33), "unpool:planes", 1e-5, 0,
     0},
#define LAST33                                                                                    \
  "window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 1, 1>, padding " \
  "= dense<[[0, 0], [1, 1], [1, 2], [0, 0]]> : tensor<4x2xi64>"
    {"pool_max_bf16", POOL_OF("bf16", "3x8x10x19xbf16", "3x4x11x19xbf16", "%b", "maximum", LAST33),
     "reduce_window", 1e-30, 0, 0},
    {"pool_max_f16_one", POOL_OF("f16", "1x8x10x19xf16", "1x4x11x19xf16", "%b", "maximum", LAST33),
     "reduce_window", 1e-30, 0, 0},
    {"unpool_max_bf16", UNPOOL_OF("bf16", "3x8x10x19xbf16", "3x4x11x19xbf16", "GE", LAST33),
     "select_and_scatter", 2e-2, 0, 0},
    {"unpool_max_f16", UNPOOL_OF("f16", "3x8x10x19xf16", "3x4x11x19xf16", "GE", LAST33),
     "select_and_scatter", 2e-3, 0, 0},
    {"unpool_1d", UNPOOL("3x40xf32", "3x36xf32", "GE", "window_dimensions = array<i64: 1, 5>"),
     "unpool:planes", 1e-5, 0, 0},
#define CHOL(t, lower)                              \
  "func.func @main(%a: tensor<" t ">) -> tensor<" t \
  "> { %r = stablehlo.cholesky %a, lower = " lower " : tensor<" t "> return %r : tensor<" t "> }"
#define SOLVE(a, t, attrs)                                                                    \
  "func.func @main(%a: tensor<" a ">, %b: tensor<" t ">) -> tensor<" t                        \
  "> { %r = \"stablehlo.triangular_solve\"(%a, %b) <{" attrs "}> : (tensor<" a ">, tensor<" t \
  ">) -> tensor<" t "> return %r : tensor<" t "> }"
#define HOW(left, lower, how, unit)                                                  \
  "left_side = " left ", lower = " lower ", transpose_a = #stablehlo<transpose " how \
  ">, unit_diagonal = " unit
    {"cholesky_f32", CHOL("3x17x17xf32", "true"), "cholesky:lapack", 1e-5, 0, 0},
    {"cholesky_f64_upper", CHOL("50x50xf64", "false"), "cholesky:lapack", 1e-13, 0, 0},
    {"cholesky_c64", CHOL("2x3x9x9xcomplex<f32>", "true"), "cholesky:lapack", 1e-5, 0, 0},
    {"cholesky_c128_upper", CHOL("9x9xcomplex<f64>", "false"), "cholesky:lapack", 1e-13, 0, 0},
    {"cholesky_many", CHOL("37x7x7xf32", "true"), "cholesky:lapack", 1e-5, 0, 0},
    {"cholesky_many_upper", CHOL("5x3x20x20xf64", "false"), "cholesky:lapack", 1e-13, 0, 0},
    {"cholesky_many_not_positive", CHOL("9x4x4xf32", "true"), "cholesky:lapack", 0, 0, 0},
    {"cholesky_not_positive", CHOL("3x4x4xf32", "true"), "cholesky:lapack", 0, 0, 0},
    {"solve_left_lower",
     SOLVE("2x20x20xf32", "2x20x300xf32", HOW("true", "true", "NO_TRANSPOSE", "false")),
     "triangular_solve:blas", 1e-4, 0, 0},
    {"solve_left_upper_t",
     SOLVE("20x20xf64", "20x7xf64", HOW("true", "false", "TRANSPOSE", "false")),
     "triangular_solve:blas", 1e-12, 0, 0},
    {"solve_right_unit",
     SOLVE("20x20xf64", "7x20xf64", HOW("false", "true", "NO_TRANSPOSE", "true")),
     "triangular_solve:blas", 1e-12, 0, 0},
    {"solve_right_adjoint",
     SOLVE("5x8x8xcomplex<f32>", "5x7x8xcomplex<f32>", HOW("false", "true", "ADJOINT", "false")),
     "triangular_solve:blas", 1e-4, 0, 0},
    {"solve_many_lower",
     SOLVE("37x5x5xf32", "37x5x3xf32", HOW("true", "true", "NO_TRANSPOSE", "true")),
     "triangular_solve:blas", 1e-4, 0, 0},
    {"solve_many_upper_t",
     SOLVE("9x5x5xf64", "9x5x3xf64", HOW("true", "false", "TRANSPOSE", "false")),
     "triangular_solve:blas", 1e-9, 0, 0},
    {"solve_many_right",
     SOLVE("9x5x5xf64", "9x3x5xf64", HOW("false", "true", "NO_TRANSPOSE", "false")),
     "triangular_solve:blas", 1e-9, 0, 0},
    {"solve_many_right_upper_t",
     SOLVE("9x5x5xf64", "9x3x5xf64", HOW("false", "false", "TRANSPOSE", "true")),
     "triangular_solve:blas", 1e-9, 0, 0},
#define LU(letter, a, k, info)                                                         \
  "func.func @main(%a: tensor<" a ">) -> (tensor<" a ">, tensor<" k ">, tensor<" info  \
  ">) { %r:3 = stablehlo.custom_call @lapack_" letter                                  \
  "getrf_ffi(%a) {api_version = 4 : i32, mhlo.backend_config = {}} : (tensor<" a       \
  ">) -> (tensor<" a ">, tensor<" k ">, tensor<" info "> ) return %r#0, %r#1, %r#2 : " \
  "tensor<" a ">, tensor<" k ">, tensor<" info "> }"
    {"lu_many", LU("s", "37x7x7xf32", "37x7xi32", "37xi32"), "lu:small", 1e-4, 0, 0},
    {"lu_many_wide", LU("d", "3x3x5x9xf64", "3x3x5xi32", "3x3xi32"), "lu:small", 1e-11, 0, 0},
    {"lu_many_tall", LU("d", "20x9x5xf64", "20x5xi32", "20xi32"), "lu:small", 1e-11, 0, 0},
    {"solve_wide",
     SOLVE("300x300xf32", "300x900xf32", HOW("true", "true", "NO_TRANSPOSE", "false")),
     "triangular_solve:blas", 1e-4, 0, 0},
#define BITS(algorithm, state, t)                                                             \
  "func.func @main(%a: tensor<" state ">) -> (tensor<" state ">, tensor<" t                   \
  ">) { %r:2 = stablehlo.rng_bit_generator %a, algorithm = " algorithm " : (tensor<" state    \
  ">) -> (tensor<" state ">, tensor<" t ">) return %r#0, %r#1 : tensor<" state ">, tensor<" t \
  "> }"
#define SCAN(t, e, op, size, pad, zero)                                                       \
  "func.func @main(%a: tensor<" t ">) -> tensor<" t "> { %b = stablehlo.constant dense<" zero \
  "> : tensor<" e "> %r = \"stablehlo.reduce_window\"(%a, %b) <{padding = dense<" pad         \
  "> : tensor<2x2xi64>, window_dimensions = array<i64: " size ">}> ({ ^bb0(%x: tensor<" e     \
  ">, %y: tensor<" e ">): %s = stablehlo." op " %x, %y : tensor<" e                           \
  "> stablehlo.return %s : tensor<" e "> }) : (tensor<" t ">, tensor<" e ">) -> tensor<" t    \
  "> return %r : tensor<" t "> }"
    {"scan_add", SCAN("21x700xf32", "f32", "add", "1, 700", "[[0, 0], [699, 0]]", "0.0"), "scan",
     1e-5, 0, 0},
    {"scan_add_back", SCAN("21x700xf32", "f32", "add", "1, 700", "[[0, 0], [0, 699]]", "0.0"),
     "scan", 1e-5, 0, 0},
    {"turn_plane_i8", TURN("70x133xi8", "[1, 0]", "133x70xi8"), "transpose", 0, -100, 100},
    {"turn_plane_f16", TURN("70x133xf16", "[1, 0]", "133x70xf16"), "transpose", 0, -100, 100},
    {"turn_plane_f32", TURN("70x133xf32", "[1, 0]", "133x70xf32"), "transpose", 0, -100, 100},
    {"turn_plane_f64", TURN("70x133xf64", "[1, 0]", "133x70xf64"), "transpose", 0, -100, 100},
    {"turn_plane_complex", TURN("70x133xcomplex<f64>", "[1, 0]", "133x70xcomplex<f64>"),
     "transpose", 0, -100, 100},
    {"turn_plane_lines_i8", TURN("128x256xi8", "[1, 0]", "256x128xi8"), "transpose", 0, -100, 100},
    {"turn_plane_lines_f16", TURN("128x256xf16", "[1, 0]", "256x128xf16"), "transpose", 0, -100,
     100},
    {"turn_plane_lines_f32", TURN("128x256xf32", "[1, 0]", "256x128xf32"), "transpose", 0, -100,
     100},
    {"turn_plane_lines_f64", TURN("128x256xf64", "[1, 0]", "256x128xf64"), "transpose", 0, -100,
     100},
    {"turn_apart3_i8", TURN("33x3xi8", "[1, 0]", "3x33xi8"), "transpose", 0, -100, 100},
    {"turn_apart3_f16", TURN("33x3xf16", "[1, 0]", "3x33xf16"), "transpose", 0, -100, 100},
    {"turn_apart3_f32", TURN("33x3xf32", "[1, 0]", "3x33xf32"), "transpose", 0, -100, 100},
    {"turn_apart3_f64", TURN("33x3xf64", "[1, 0]", "3x33xf64"), "transpose", 0, -100, 100},
    {"turn_join4_i8", TURN("4x37xi8", "[1, 0]", "37x4xi8"), "transpose", 0, -100, 100},
    {"turn_join4_f16", TURN("4x37xf16", "[1, 0]", "37x4xf16"), "transpose", 0, -100, 100},
    {"turn_join4_f32", TURN("4x37xf32", "[1, 0]", "37x4xf32"), "transpose", 0, -100, 100},
    {"turn_join4_f64", TURN("4x37xf64", "[1, 0]", "37x4xf64"), "transpose", 0, -100, 100},
    {"turn_apart2_i8", TURN("50x2xi8", "[1, 0]", "2x50xi8"), "transpose", 0, -100, 100},
    {"turn_apart2_f16", TURN("50x2xf16", "[1, 0]", "2x50xf16"), "transpose", 0, -100, 100},
    {"turn_apart2_f32", TURN("50x2xf32", "[1, 0]", "2x50xf32"), "transpose", 0, -100, 100},
    {"turn_apart2_f64", TURN("50x2xf64", "[1, 0]", "2x50xf64"), "transpose", 0, -100, 100},
    {"turn_blocks_i8", TURN("37x2x2xi8", "[0, 2, 1]", "37x2x2xi8"), "transpose", 0, -100, 100},
    {"turn_blocks_f16", TURN("37x2x2xf16", "[0, 2, 1]", "37x2x2xf16"), "transpose", 0, -100, 100},
    {"turn_blocks_f32", TURN("37x2x2xf32", "[0, 2, 1]", "37x2x2xf32"), "transpose", 0, -100, 100},
    {"turn_blocks_f64", TURN("37x2x2xf64", "[0, 2, 1]", "37x2x2xf64"), "transpose", 0, -100, 100},
    {"turn_blocks_complex", TURN("37x2x2xcomplex<f64>", "[0, 2, 1]", "37x2x2xcomplex<f64>"),
     "transpose", 0, -100, 100},
    {"turn_blocks_odd_i8", TURN("41x3x5xi8", "[0, 2, 1]", "41x5x3xi8"), "transpose", 0, -100, 100},
    {"turn_blocks_odd_f16", TURN("41x3x5xf16", "[0, 2, 1]", "41x5x3xf16"), "transpose", 0, -100,
     100},
    {"turn_blocks_odd_f32", TURN("41x3x5xf32", "[0, 2, 1]", "41x5x3xf32"), "transpose", 0, -100,
     100},
    {"turn_blocks_odd_f64", TURN("41x3x5xf64", "[0, 2, 1]", "41x5x3xf64"), "transpose", 0, -100,
     100},
    {"turn_blocks_outer_i8", TURN("5x19x4x8xi8", "[1, 0, 3, 2]", "19x5x8x4xi8"), "transpose", 0,
     -100, 100},
    {"turn_blocks_outer_f16", TURN("5x19x4x8xf16", "[1, 0, 3, 2]", "19x5x8x4xf16"), "transpose", 0,
     -100, 100},
    {"turn_blocks_outer_f32", TURN("5x19x4x8xf32", "[1, 0, 3, 2]", "19x5x8x4xf32"), "transpose", 0,
     -100, 100},
    {"turn_blocks_outer_f64", TURN("5x19x4x8xf64", "[1, 0, 3, 2]", "19x5x8x4xf64"), "transpose", 0,
     -100, 100},
    {"turn_rows_i8", TURN("9x7x5x16xi8", "[0, 2, 1, 3]", "9x5x7x16xi8"), "transpose", 0, -100, 100},
    {"turn_rows_f16", TURN("9x7x5x16xf16", "[0, 2, 1, 3]", "9x5x7x16xf16"), "transpose", 0, -100,
     100},
    {"turn_rows_f32", TURN("9x7x5x16xf32", "[0, 2, 1, 3]", "9x5x7x16xf32"), "transpose", 0, -100,
     100},
    {"turn_rows_f64", TURN("9x7x5x16xf64", "[0, 2, 1, 3]", "9x5x7x16xf64"), "transpose", 0, -100,
     100},
    {"turn_rows_odd_i8", TURN("9x7x5x3xi8", "[0, 2, 1, 3]", "9x5x7x3xi8"), "transpose", 0, -100,
     100},
    {"turn_rows_odd_f16", TURN("9x7x5x3xf16", "[0, 2, 1, 3]", "9x5x7x3xf16"), "transpose", 0, -100,
     100},
    {"turn_rows_odd_f32", TURN("9x7x5x3xf32", "[0, 2, 1, 3]", "9x5x7x3xf32"), "transpose", 0, -100,
     100},
    {"turn_rows_odd_f64", TURN("9x7x5x3xf64", "[0, 2, 1, 3]", "9x5x7x3xf64"), "transpose", 0, -100,
     100},
    {"turn_all_turned_i8", TURN("6x65x33xi8", "[2, 1, 0]", "33x65x6xi8"), "transpose", 0, -100,
     100},
    {"turn_all_turned_f16", TURN("6x65x33xf16", "[2, 1, 0]", "33x65x6xf16"), "transpose", 0, -100,
     100},
    {"turn_all_turned_f32", TURN("6x65x33xf32", "[2, 1, 0]", "33x65x6xf32"), "transpose", 0, -100,
     100},
    {"turn_all_turned_f64", TURN("6x65x33xf64", "[2, 1, 0]", "33x65x6xf64"), "transpose", 0, -100,
     100},
    {"scan_short", SCAN("210x3xf32", "f32", "maximum", "1, 3", "[[0, 0], [2, 0]]", "0.0"), "scan",
     0, 0, 0},
    {"scan_short_back", SCAN("77x32xbf16", "bf16", "add", "1, 32", "[[0, 0], [0, 31]]", "0.0"),
     "scan", 2e-2, 0, 0},
    {"scan_short_i64", SCAN("33x17xi64", "i64", "multiply", "1, 17", "[[0, 0], [16, 0]]", "1"),
     "scan", 0, 0, 0},
    {"scan_max_down", SCAN("70x37xf32", "f32", "maximum", "70, 1", "[[69, 0], [0, 0]]", "0.0"),
     "scan", 0, 0, 0},
    {"scan_min_up", SCAN("70x37xf64", "f64", "minimum", "70, 1", "[[0, 69], [0, 0]]", "0.0"),
     "scan", 0, 0, 0},
    {"scan_mul_i32", SCAN("20x30xi32", "i32", "multiply", "1, 30", "[[0, 0], [29, 0]]", "1"),
     "scan", 0, 0, 0},
    {"scan_max_i64", SCAN("20x30xi64", "i64", "maximum", "1, 30", "[[0, 0], [0, 29]]", "0"), "scan",
     0, 0, 0},
    {"scan_add_bf16", SCAN("3x70xbf16", "bf16", "add", "1, 70", "[[0, 0], [69, 0]]", "0.0"), "scan",
     1e-1, 0, 0},
    {"scan_none", SCAN("0x70xf32", "f32", "add", "1, 70", "[[0, 0], [69, 0]]", "0.0"), "scan", 0, 0,
     0},
    {"threefry_u32", BITS("THREE_FRY", "2xui64", "100x1000xui32"), "rng_bits", 0, 0, INT64_MAX - 1},
    {"threefry_u32_odd", BITS("THREE_FRY", "2xui64", "37x101xui32"), "rng_bits", 0, 0,
     INT64_MAX - 1},
    {"threefry_u32_inner", BITS("THREE_FRY", "2xui64", "37x100x3xui32"), "rng_bits", 0, 0,
     INT64_MAX - 1},
    {"threefry_u64", BITS("THREE_FRY", "2xui64", "40000xui64"), "rng_bits", 0, 0, INT64_MAX - 1},
    {"threefry_u8", BITS("THREE_FRY", "2xui64", "1001xui8"), "rng_bits", 0, 0, INT64_MAX - 1},
    {"threefry_scalar", BITS("THREE_FRY", "2xui64", "ui32"), "rng_bits", 0, 0, INT64_MAX - 1},
    {"philox_u32", BITS("PHILOX", "3xui64", "100003xui32"), "rng_bits", 0, -100, -1},
    {"philox_u64", BITS("PHILOX", "2xui64", "4x5003xui64"), "rng_bits", 0, 0, INT64_MAX - 1},
    {"philox_u16", BITS("DEFAULT", "3xui64", "4x503xui16"), "rng_bits", 0, 0, INT64_MAX - 1},
    {"philox_i32", BITS("PHILOX", "2xui64", "0xi32"), "rng_bits", 0, 0, INT64_MAX - 1},
};

/* clang-format on */

/* Long lines are scanned in blocks; the reference would take minutes. */
static void long_scan(void **state) {
  (void)state;
  static const char *const text[] = {
      SCAN("2x70001xi32", "i32", "add", "1, 70001", "[[0, 0], [70000, 0]]", "0"),
      SCAN("2x70001xi32", "i32", "minimum", "1, 70001", "[[0, 0], [0, 70000]]", "0")};
  for (int t = 0; t < 2; t++) {
    Module *m = NULL;
    must(stablehlo_read("case.mlir", (Str){text[t], strlen(text[t])}, &m), "long_scan");
    const Op *op = module_main(m)->body->first->next;
    const CpuKernel *k = cpu_kernel_find(op);
    int64_t n = 70001;
    int32_t *x = xmalloc(8 * (size_t)n), *y = xmalloc(8 * (size_t)n), init = 0;
    for (int64_t i = 0; i < 2 * n; i++) x[i] = (int32_t)(next() % 2000000) - 1000000;
    void *s = NULL;
    must(k->prepare(op, &s), "long_scan");
    must(k->run(s, op, (void *[]){x, &init}, (void *[]){y}), "long_scan");
    for (int64_t r = 0; r < 2; r++) {
      int32_t want = init;
      for (int64_t i = 0; i < n; i++) {
        int64_t at = r * n + (t ? n - 1 - i : i);
        want = t ? MIN(want, x[at]) : (int32_t)((uint32_t)want + (uint32_t)x[at]);
        assert_int_equal(y[at], want);
      }
    }
    free(x);
    free(y);
    k->release(s);
    module_free(m);
  }
}

int main(void) {
  struct CMUnitTest tests[COUNT_OF(cases) + 1];
  for (int i = 0; i < COUNT_OF(cases); i++)
    tests[i] = (struct CMUnitTest){cases[i].name, kernel_case, NULL, NULL, &cases[i]};
  tests[COUNT_OF(cases)] = (struct CMUnitTest){"long_scan", long_scan, NULL, NULL, NULL};
  return _cmocka_run_group_tests("kernels", tests, COUNT_OF(tests), NULL, NULL);
}
