/* Loops cut into boxes: pieces turned round, wrapped round, padded and joined along one to three
 * dimensions, with arithmetic above and below, against the interpreter, bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dev/cpu/answer_test.h"

static const struct {
  DType t;
  const char *name;
} types[] = {{DT_F32, "f32"}, {DT_F64, "f64"}, {DT_BF16, "bf16"}, {DT_I8, "i8"}, {DT_I64, "i64"}};

typedef struct Program {
  Buf b;
  const char *t;
  int rank, next; /* %v0 is the argument */
  int64_t dims[3];
} Program;

static void type_of(Program *p, const int64_t *dims) {
  buf_printf(&p->b, "tensor<");
  for (int i = 0; i < p->rank; i++) buf_printf(&p->b, "%lldx", (long long)dims[i]);
  buf_printf(&p->b, "%s>", p->t);
}

/* [from, to) of dimension d of %v<x>, turned round if asked for; its number */
static int part(Program *p, int x, int d, int64_t from, int64_t to, bool turned) {
  int64_t dims[3];
  memcpy(dims, p->dims, sizeof dims);
  dims[d] = to - from;
  buf_printf(&p->b, "%%v%d = stablehlo.slice %%v%d [", p->next, x);
  for (int i = 0; i < p->rank; i++)
    buf_printf(&p->b, "%s%lld:%lld", i ? ", " : "", (long long)(i == d ? from : 0),
               (long long)(i == d ? to : p->dims[i]));
  buf_printf(&p->b, "] : (");
  type_of(p, p->dims);
  buf_printf(&p->b, ") -> ");
  type_of(p, dims);
  buf_printf(&p->b, "\n");
  if (!turned) return p->next++;
  buf_printf(&p->b, "%%v%d = stablehlo.reverse %%v%d, dims = [%d] : ", p->next + 1, p->next, d);
  type_of(p, dims);
  buf_printf(&p->b, "\n");
  p->next += 2;
  return p->next - 1;
}

static int negated(Program *p, int x) {
  buf_printf(&p->b, "%%v%d = stablehlo.negate %%v%d : ", p->next, x);
  type_of(p, p->dims);
  buf_printf(&p->b, "\n");
  return p->next++;
}

/* k elements from the end before it and from the beginning behind it (or both turned round) */
static int extended(Program *p, int x, int d, int64_t k, bool turned) {
  int64_t n = p->dims[d], dims[2][3], lo = turned ? 0 : n - k, hi = turned ? n - k : 0;
  int a = part(p, x, d, lo, lo + k, turned), b = part(p, x, d, hi, hi + k, turned);
  memcpy(dims[0], p->dims, sizeof dims[0]);
  dims[0][d] = k;
  memcpy(dims[1], p->dims, sizeof dims[1]);
  buf_printf(&p->b, "%%v%d = stablehlo.concatenate %%v%d, %%v%d, %%v%d, dim = %d : (", p->next, a,
             x, b, d);
  for (int i = 0; i < 3; i++) {
    buf_printf(&p->b, "%s", i ? ", " : "");
    type_of(p, dims[i == 1]);
  }
  p->dims[d] = n + 2 * k;
  buf_printf(&p->b, ") -> ");
  type_of(p, p->dims);
  buf_printf(&p->b, "\n");
  return p->next++;
}

static int padded(Program *p, int x, const int64_t *low, const int64_t *high) {
  buf_printf(&p->b, "%%v%d = stablehlo.pad %%v%d, %%c, low = [", p->next, x);
  for (int i = 0; i < p->rank; i++) buf_printf(&p->b, "%s%lld", i ? ", " : "", (long long)low[i]);
  buf_printf(&p->b, "], high = [");
  for (int i = 0; i < p->rank; i++) buf_printf(&p->b, "%s%lld", i ? ", " : "", (long long)high[i]);
  buf_printf(&p->b, "], interior = [");
  for (int i = 0; i < p->rank; i++) buf_printf(&p->b, "%s0", i ? ", " : "");
  buf_printf(&p->b, "] : (");
  type_of(p, p->dims);
  for (int i = 0; i < p->rank; i++) p->dims[i] += low[i] + high[i];
  buf_printf(&p->b, ", tensor<%s>) -> ", p->t);
  type_of(p, p->dims);
  buf_printf(&p->b, "\n");
  return p->next++;
}

/* how: bit 0 turned, 1 arithmetic between, 2 padded */
static void check_extended(int type, int rank, const int64_t *dims, int64_t k, int how) {
  Program p = {.t = types[type].name, .rank = rank, .next = 1};
  memcpy(p.dims, dims, sizeof *dims * (size_t)rank);
  int x = 0;
  for (int d = 0; d < rank; d++) {
    if (dims[d] < k) continue;
    x = extended(&p, x, d, k, how & 1);
    if (how & 2) x = negated(&p, x);
  }
  if (how & 4) x = padded(&p, x, (int64_t[]){1, 0, 3}, (int64_t[]){0, 2, -1});
  buf_printf(&p.b, "return %%v%d : ", x);
  type_of(&p, p.dims);
  Buf body = p.b;
  p.b = (Buf){0};
  buf_printf(&p.b, "func.func @main(%%v0: ");
  type_of(&p, dims);
  buf_printf(&p.b, ") -> ");
  type_of(&p, p.dims);
  buf_printf(&p.b, " {\n%%c = stablehlo.constant dense<%s> : tensor<%s>\n",
             types[type].name[0] == 'i' ? "5" : "5.0", p.t);
  buf_printf(&p.b, "%s\n}", body.p);
  check_answer(types[type].t, rank, dims, p.b.p, 0);
  buf_free(&p.b);
  buf_free(&body);
}

static void pieces_are_boxes(void **unused) {
  (void)unused;
  static const int64_t dims[][3] = {{1001},    {70000},    {5, 40},     {70, 50},    {3, 257},
                                    {9, 2000}, {2, 3, 40}, {80, 6, 33}, {6, 20, 200}};
  static const int rank[] = {1, 1, 2, 2, 2, 2, 3, 3, 3};
  for (int i = 0; i < COUNT_OF(rank); i++)
    for (int t = 0; t < COUNT_OF(types); t++)
      for (int how = 0; how < 8; how++) {
        check_extended(t, rank[i], dims[i], 2, how);
        check_extended(t, rank[i], dims[i], 20, how);
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(pieces_are_boxes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
