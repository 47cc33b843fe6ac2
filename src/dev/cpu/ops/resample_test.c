/* weft.resample on the cpu device: triangles of weights along one to three dimensions, made larger and
 * smaller, turned, with places of all sizes and with what is not finite, beside the interpreter's
 * products. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dev/cpu/kernel/kernel_test.h"
#include "dev/cpu/registry.h"
#include "ir/build.h"

typedef struct Shape {
  const char *name;
  int rank;
  int64_t dims[5], to[5]; /* to: 0: as it is */
  bool turned;            /* matrices [to, from] of what made `from` out of `to` */
  double odd;             /* in the middle; 0: nothing */
} Shape;

static Shape shapes[] = {
    {"channels_last", 4, {2, 9, 11, 32}, {0, 17, 23, 0}, false, 0},
    {"channels_last_odd", 4, {2, 9, 11, 37}, {0, 17, 23, 0}, false, 0},
    {"three", 4, {3, 20, 30, 3}, {0, 33, 47, 0}, false, 0},
    {"three_smaller", 4, {3, 40, 50, 3}, {0, 13, 17, 0}, false, 0},
    {"twelve", 4, {1, 10, 12, 12}, {0, 23, 20, 0}, false, 0},
    {"planes", 4, {2, 3, 28, 40}, {0, 0, 56, 77}, false, 0},
    {"planes_smaller", 4, {2, 3, 56, 77}, {0, 0, 20, 25}, false, 0},
    {"planes_one_way", 3, {5, 30, 70}, {0, 50, 33}, false, 0},
    {"gradient", 4, {2, 3, 56, 77}, {0, 0, 28, 40}, true, 0},
    {"gradient_last", 4, {2, 17, 23, 8}, {0, 40, 51, 0}, true, 0},
    {"rows", 2, {40, 9}, {23, 0}, false, 0},
    {"line", 1, {100}, {37}, false, 0},
    {"columns", 2, {7, 90}, {0, 301}, false, 0},
    {"volume", 5, {2, 6, 7, 8, 4}, {0, 9, 5, 13, 0}, false, 0},
    {"apart", 4, {5, 6, 7, 20}, {8, 0, 15, 0}, false, 0},
    {"infinite", 4, {2, 9, 11, 3}, {0, 4, 5, 0}, false, INFINITY},
    {"not_a_number", 4, {1, 9, 11, 20}, {0, 5, 5, 0}, false, NAN},
};

/* weft.resample along the dimensions that change. */
static void check(void **state) {
  const Shape *s = *state;
  Module *m = module_new();
  Build b = {0};
  b_func(&b, m, "main");
  Value *in[4] = {b_arg(&b, b_type(&b, DT_F32, s->rank, s->dims))};
  int64_t at[3], out[5];
  int n = 0;
  for (int i = 0; i < s->rank; i++) {
    out[i] = s->to[i] ? s->to[i] : s->dims[i];
    if (!s->to[i]) continue;
    at[n++] = i;
    in[n] = b_arg(&b, b_type(&b, DT_F32, 2, (int64_t[]){s->dims[i], out[i]}));
  }
  Type *t = b_type(&b, DT_F32, s->rank, out);
  NamedAttr a = b_ints(&b, "dims", n, at);
  Op *op = b_op(&b, OP_RESAMPLE, n + 1, in, 1, &t, 1, &a, 0, NULL);
  b_return(&b, 1, (Value *[]){&op->results[0]});
  must(ir_verify(m), s->name);
  Tensor *x[4], *want[1];
  void *args[4], *got = aligned_alloc(64, (size_t)(type_count(t) * 4 + 63) / 64 * 64);
  for (int k = 0; k <= n; k++) {
    const Type *from = in[k]->type;
    x[k] = tensor_make(DT_F32, from->rank, from->dims);
    /* nothing after the operand may be read */
    args[k] = k ? x[k]->data : malloc(tensor_bytes(x[k]));
    float *p = x[k]->data;
    for (int64_t i = 0; i < x[k]->count; i++) p[i] = (float)(int64_t)(next() % 2001) / 1000 - 1;
    if (!k && s->odd != 0) p[x[k]->count / 2] = (float)s->odd;
    if (!k) continue;
    int64_t rows = from->dims[0], columns = from->dims[1];
    double scale = (double)rows / (double)columns, wide = fmax(s->turned ? 1 / scale : scale, 1);
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < columns; j++) {
        double d = s->turned ? ((double)i + .5) / scale - .5 - (double)j
                             : ((double)j + .5) * scale - .5 - (double)i;
        p[i * columns + j] = (float)fmax(0, 1 - fabs(d) / wide);
      }
  }
  memcpy(args[0], x[0]->data, tensor_bytes(x[0]));
  must(interp_eval(op, x, want, NULL, NULL), s->name);
  const CpuKernel *k = cpu_kernel_find(op);
  assert_false(cpu_kernel_is_reference(k));
  must(k->run(NULL, op, args, (void *[]){got}), s->name);
  compare(&(Case){.name = s->name, .tol = 1e-6}, "resample", want[0], got);
  for (int i = 0; i <= n; i++) tensor_release(x[i]);
  tensor_release(want[0]);
  free(args[0]);
  free(got);
  module_free(m);
}

int main(void) {
  struct CMUnitTest tests[COUNT_OF(shapes)];
  for (int i = 0; i < COUNT_OF(shapes); i++)
    tests[i] = (struct CMUnitTest){shapes[i].name, check, NULL, NULL, &shapes[i]};
  return _cmocka_run_group_tests("resample", tests, COUNT_OF(tests), NULL, NULL);
}
