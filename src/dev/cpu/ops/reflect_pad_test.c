/* Padding by what is there: which concatenations become weft.reflect_pad, and that the cpu device answers as
 * the interpreter does with the concatenations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "compile/pass/pass.h"
#include "dev/cpu/answer_test.h"
#include "ir/build.h"

typedef enum Mode { REFLECT, SYMMETRIC, EDGE, WRAP, ROLL } Mode;

typedef struct Case {
  const char *name;
  Mode mode;
  DType type;
  int rank;
  int64_t dims[4], wide[4]; /* of the padding on each side; ROLL: by so much */
  int places;               /* weft.reflect_pad there should be */
} Case;

static Case cases[] = {
    {"reflect_planes", REFLECT, DT_F32, 4, {2, 3, 50, 60}, {0, 0, 3, 2}, 1},
    {"reflect_last", REFLECT, DT_F32, 4, {2, 50, 60, 3}, {0, 3, 2, 0}, 1},
    {"symmetric_last", SYMMETRIC, DT_BF16, 4, {2, 50, 60, 3}, {0, 3, 2, 0}, 1},
    {"edge_all", EDGE, DT_F64, 3, {20, 30, 40}, {2, 1, 3}, 1},
    {"edge_bytes", EDGE, DT_U8, 4, {2, 50, 60, 3}, {0, 3, 2, 0}, 1},
    {"wrap_rows", WRAP, DT_F32, 2, {150, 170}, {7, 5}, 0},
    {"wrap", WRAP, DT_F32, 3, {50, 170, 3}, {7, 5, 0}, 1},
    {"line", REFLECT, DT_F32, 1, {40000}, {30}, 1},
    {"rows_far", REFLECT, DT_F32, 2, {200, 100}, {150, 0}, 1},
    {"far_reflection", REFLECT, DT_F32, 1, {40000}, {3000}, 0},
    {"planes_edge", EDGE, DT_F32, 4, {16, 17, 8, 9}, {0, 0, 3, 2}, 1},
    {"planes_wrap", WRAP, DT_F16, 4, {100, 8, 9, 3}, {0, 3, 2, 0}, 1},
    {"planes_last", SYMMETRIC, DT_U8, 4, {100, 8, 9, 3}, {0, 3, 2, 0}, 1},
    {"planes_half", REFLECT, DT_BF16, 3, {150, 8, 15}, {0, 0, 3}, 1},
    {"small", REFLECT, DT_F32, 2, {50, 60}, {3, 2}, 0},
    {"roll", ROLL, DT_F32, 2, {150, 170}, {7, 5}, 0},
};

/* The end of x along d, as padding after it (or, reversed in thought, before it). */
static Value *edge_of(Build *b, const Case *c, Value *x, int d, bool after) {
  int64_t n = b_dim(x, d), w = c->wide[d], dim = d, from, to;
  bool mirror = c->mode == REFLECT || c->mode == SYMMETRIC;
  int64_t skip = c->mode == REFLECT;
  if (mirror) from = after ? n - w - skip : skip, to = from + w;
  else if (c->mode == EDGE) from = after ? n - 1 : 0, to = from + 1;
  else from = after ? 0 : n - w, to = from + w;
  Value *part = b_slice_dim(b, x, d, from, to);
  if (mirror) return b_reverse(b, part, 1, &dim);
  if (c->mode != EDGE) return part;
  /* as jnp.repeat does: by a dimension of its own */
  int64_t dims[4], wide[5];
  int map[4];
  for (int i = 0; i < c->rank; i++) {
    dims[i] = i == d ? w : b_dim(x, i);
    map[i] = i + (i > d);
    wide[map[i]] = b_dim(part, i);
  }
  wide[d + 1] = w;
  return b_reshape(b, b_bcast(b, part, c->rank + 1, wide, map), c->rank, dims);
}

static Module *program(const Case *c) {
  Module *m = module_new();
  Build b = {0};
  b_func(&b, m, "main");
  Value *x = b_arg(&b, b_type(&b, c->type, c->rank, c->dims));
  for (int d = 0; d < c->rank; d++) {
    if (!c->wide[d]) continue;
    int64_t n = c->dims[d], w = c->wide[d];
    if (c->mode == ROLL) {
      Value *two[2] = {b_slice_dim(&b, x, d, n - w, n), b_slice_dim(&b, x, d, 0, n - w)};
      x = b_concat(&b, 2, two, d);
      continue;
    }
    Value *parts[3] = {edge_of(&b, c, x, d, false), x, edge_of(&b, c, x, d, true)};
    x = b_concat(&b, 3, parts, d);
  }
  b_return(&b, 1, &x);
  return m;
}

static void places(void **state) {
  const Case *c = *state;
  Module *m = program(c), *after = program(c);
  Err *e = ir_verify(m);
  if (!e) e = pass_reflect_pad(after);
  if (!e) e = pass_simplify(after);
  if (!e) e = ir_verify(after);
  if (e) fail_msg("%s: %s", c->name, err_text(e));
  int n = 0;
  for (const Op *op = module_main(after)->body->first; op; op = op->next) {
    n += op->kind == OP_REFLECT_PAD;
    if (c->places && op->kind == OP_CONCATENATE) fail_msg("%s: a concatenation is left", c->name);
  }
  assert_int_equal(n, c->places);
  check_made(c->type, c->rank, c->dims, m, after);
  module_free(m);
  module_free(after);
}

int main(void) {
  struct CMUnitTest tests[COUNT_OF(cases)];
  for (int i = 0; i < COUNT_OF(cases); i++)
    tests[i] = (struct CMUnitTest){cases[i].name, places, NULL, NULL, &cases[i]};
  return _cmocka_run_group_tests("reflect_pad", tests, COUNT_OF(tests), NULL, NULL);
}
