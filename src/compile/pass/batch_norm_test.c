/* Batch normalisation as sums and arithmetic: none of its operations is left, and the interpreter answers as before. */
#include "compile/pass/pass_test.h"

typedef struct Case {
  const char *name, *op, *more, *result, *in;
  int feature, channels;
  double mean, tol; /* of the operand's elements */
} Case;

#define OTHERS ", %f, %f"
#define SAVED ", %f, %s, %g, %a"

static Case cases[] = {
    {"training", "training", OTHERS, "#0", "4x3x5xf32", 1, 3, 0, 2e-6},
    {"training_mean", "training", OTHERS, "#1", "4x3x5xf32", 1, 3, 7, 1e-6},
    {"training_variance", "training", OTHERS, "#2", "4x3x5xf32", 1, 3, 0, 1e-6},
    {"far_from_zero", "training", OTHERS, "#2", "4x5x3xf32", 2, 3, 4000, 1e-6},
    {"one_element", "training", OTHERS, "#0", "1x3xf32", 1, 3, 5, 1e-6},
    {"channels_first", "training", OTHERS, "#0", "3x4x5x2xf32", 0, 3, 0, 2e-6},
    {"f64", "training", OTHERS, "#0", "4x3x5xf64", 1, 3, 0, 1e-13},
    {"bf16", "training", OTHERS, "#0", "4x3x5xbf16", 1, 3, 0, 8e-3},
    {"not_finite", "training", OTHERS, "#1", "2x3xf32", 1, 3, INFINITY, 0},
    {"inference", "inference", ", %f, %f, %g, %s", "", "4x3x5xf32", 1, 3, 0, 2e-6},
    {"gradient", "grad", SAVED, "#0", "4x3x5xf32", 1, 3, 0, 5e-6},
    {"gradient_scale", "grad", SAVED, "#1", "4x5x3xf32", 2, 3, 0, 5e-6},
    {"gradient_offset", "grad", SAVED, "#2", "4x3x5xf32", 1, 3, 0, 2e-6},
    {"gradient_bf16", "grad", SAVED, "#0", "4x3x5xbf16", 1, 3, 0, 3e-2},
};

/* %a: the operand. %f: factors, %g: means, %s: variances, of each channel. */
static Module *read(const Case *c) {
  const char *t = strrchr(c->in, 'x') + 1;
  char *channels = xasprintf("tensor<%dx%s>", c->channels, t),
       *whole = xasprintf("tensor<%s>", c->in);
  bool three = *c->result, grad = !strcmp(c->op, "grad"),
       returns_channels = three && c->result[1] != '0';
  char *in = xasprintf(grad                          ? "%s, %s, %s, %s, %s"
                       : !strcmp(c->op, "inference") ? "%s, %s, %s, %s, %s"
                                                     : "%s, %s, %s",
                       whole, channels, channels, channels, grad ? whole : channels);
  char *out = three ? xasprintf("(%s, %s, %s)", whole, channels, channels) : xstrdup(whole);
  char *text = xasprintf(
      "func.func @main(%%a: %s) -> %s {\n%%f = stablehlo.constant dense<[0.5, -1.5, 2.0]> : %s\n"
      "%%g = stablehlo.constant dense<[-1.0, 0.25, 1.0]> : %s\n%%s = stablehlo.constant "
      "dense<[0.5, 1.5, 9.0]> : %s\n"
      "%%r%s = \"stablehlo.batch_norm_%s\"(%%a%s) <{epsilon = 1.0e-3 : f32, feature_index = %d : "
      "i64}> : (%s) -> %s\n"
      "return %%r%s : %s\n}\n",
      whole, returns_channels ? channels : whole, channels, channels, channels, three ? ":3" : "",
      c->op, c->more, c->feature, in, out, c->result, returns_channels ? channels : whole);
  Module *m = read_program(str_from(text));
  free(text), free(out), free(in), free(whole), free(channels);
  return m;
}

static void batch_norm(void **state) {
  const Case *c = *state;
  Module *before = read(c), *after = read(c);
  ok(pass_batch_norm(after));
  ok(ir_verify(after));
  for (const Op *op = module_main(after)->body->first; op; op = op->next)
    assert_false(op->kind == OP_BATCH_NORM_TRAINING || op->kind == OP_BATCH_NORM_INFERENCE ||
                 op->kind == OP_BATCH_NORM_GRAD);
  const Type *t = module_main(before)->body->args[0]->type;
  Tensor *in = tensor_make(t->dtype, t->rank, t->dims);
  for (int64_t i = 0; i < in->count; i++) {
    double v = (double)(i * 37 % 29 - 14) / 8;
    if (!isfinite(c->mean)) v = i ? v : c->mean;
    else v += c->mean;
    elem_set_f64(t->dtype, (char *)in->data + i * dtype_bytes(t->dtype), v);
  }
  same_result(c->name, before, after, 1, &in, c->tol);
}

int main(void) {
  struct CMUnitTest tests[COUNT_OF(cases)];
  for (int i = 0; i < COUNT_OF(cases); i++)
    tests[i] = (struct CMUnitTest){cases[i].name, batch_norm, NULL, NULL, &cases[i]};
  return _cmocka_run_group_tests("batch_norm", tests, COUNT_OF(tests), NULL, NULL);
}
