/* Sums of gathered rows: which scatters become weft.segment_sum, and that the cpu device and the interpreter
 * answer as the interpreter does with the scatters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "compile/pass/pass.h"
#include "dev/cpu/answer_test.h"
#include "ir/build.h"

typedef struct Case {
  const char *name;
  DType type;
  int64_t sums, rows, messages, heads, width; /* of the rows: heads x width elements */
  bool mask;
  int weights;  /* of a message: 0, 1, one for each head; -1: one for each element */
  int64_t wide; /* how far the indices leave the rows on each side */
  bool again;   /* the messages are a result, too */
  int found;
} Case;

static Case cases[] = {
    {"plain", DT_F32, 90, 70, 900, 1, 24, false, 0, 0, false, 1},
    {"weights", DT_F32, 90, 70, 900, 1, 64, false, 1, 3, false, 1},
    {"weights_mask", DT_F32, 50, 70, 900, 1, 19, true, 1, 3, false, 1},
    {"heads", DT_F32, 90, 40, 800, 4, 9, false, 4, 3, false, 1},
    {"heads_mask", DT_F64, 90, 40, 800, 3, 8, true, 3, 0, false, 1},
    {"mask", DT_F64, 40, 40, 3000, 1, 16, true, 0, 2, false, 1},
    {"elements", DT_F32, 90, 70, 900, 1, 24, false, -1, 0, false, 0},
    {"narrow", DT_F32, 90, 70, 9000, 1, 4, false, 1, 0, false, 0},
    {"few", DT_F32, 90, 70, 100, 1, 24, false, 1, 0, false, 0},
    {"halves", DT_BF16, 90, 70, 900, 1, 24, false, 1, 0, false, 0},
    {"empty", DT_F32, 9000, 70, 900, 1, 24, false, 1, 0, false, 0},
    {"again", DT_F32, 90, 70, 900, 1, 24, false, 1, 0, true, 0},
};

/* An index for each message, of `n` rows and as many as the case says that are not there. */
static Value *indices(Build *b, const Case *c, int64_t n, uint32_t step) {
  int32_t *v = xmalloc(sizeof *v * (size_t)c->messages);
  uint32_t many = (uint32_t)(n + 2 * c->wide);
  for (int64_t i = 0; i < c->messages; i++)
    v[i] = (int32_t)((uint32_t)i * step % many) - (int32_t)c->wide;
  Value *ids = b_const(b, b_type(b, DT_I32, 2, (int64_t[]){c->messages, 1}), v);
  free(v);
  return ids;
}

/* The first elements of x with these dimensions. */
static Value *first(Build *b, Value *x, int rank, const int64_t *dims) {
  int64_t count = 1;
  for (int i = 0; i < rank; i++) count *= dims[i];
  return b_reshape(b, b_slice_dim(b, x, 0, 0, count), rank, dims);
}

static int64_t numbers(const Case *c) {
  return MAX(c->sums, MAX(c->rows, c->messages)) * c->heads * c->width;
}

static Value *message(Build *b, const Case *c, Value *x, const IndexDims *d) {
  int64_t dims[3] = {c->rows, c->heads, c->width}, slice[3] = {1, c->heads, c->width};
  int map[3] = {0, 1, 2};
  Value *from = indices(b, c, c->rows, 2654435761u);
  Value *v = b_gather(b, first(b, x, 3, dims), from, d, slice);
  dims[0] = c->messages;
  if (c->mask) {
    Value *there = b_compare(b, "GE", from, b_full(b, from->type, (double)c->rows / 3));
    there = b_bcast(b, b_reshape(b, there, 1, dims), 3, dims, map);
    v = b_select(b, there, v, b_full(b, v->type, 0));
  }
  int64_t many[3] = {c->messages, c->heads, c->width};
  int rank = c->weights < 0 ? 3 : c->weights == 1 ? 1 : 2;
  if (c->weights) v = b_mul(b, b_bcast(b, first(b, x, rank, many), 3, dims, map), v);
  return v;
}

static Module *program(const Case *c) {
  Module *m = module_new();
  Build b = {0};
  b_func(&b, m, "main");
  int64_t n = numbers(c), dims[3] = {c->sums, c->heads, c->width};
  Value *x = b_arg(&b, b_type(&b, c->type, 1, &n));
  IndexDims d = {.n_offset = 2, .n_collapsed = 1, .n_map = 1, .offset = {1, 2}};
  d.index_vector_dim = 1;
  Value *updates = message(&b, c, x, &d);
  Value *to = indices(&b, c, c->sums, 40503);
  Value *r = b_scatter(&b, OP_ADD, first(&b, x, 3, dims), to, updates, &d);
  if (c->again) r = b_add(&b, r, b_slice_dim(&b, updates, 0, 0, c->sums));
  b_return(&b, 1, &r);
  return m;
}

static void messages(void **state) {
  const Case *c = *state;
  Module *m = program(c), *after = program(c);
  Err *e = ir_verify(m);
  if (!e) e = pass_segment_sum(after);
  if (!e) e = ir_verify(after);
  if (e) fail_msg("%s: %s", c->name, err_text(e));
  int found = 0;
  for (const Op *op = module_main(after)->body->first; op; op = op->next)
    found += op->kind == OP_SEGMENT_SUM;
  assert_int_equal(found, c->found);
  int64_t n = numbers(c);
  check_made(c->type, 1, &n, m, after);
  module_free(m);
  module_free(after);
}

int main(void) {
  struct CMUnitTest tests[COUNT_OF(cases)];
  for (int i = 0; i < COUNT_OF(cases); i++)
    tests[i] = (struct CMUnitTest){cases[i].name, messages, NULL, NULL, &cases[i]};
  return _cmocka_run_group_tests("segment_sum", tests, COUNT_OF(tests), NULL, NULL);
}
