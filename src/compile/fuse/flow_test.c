/* Fusions of random programs: whatever joins whatever, data flows forward. That the numbers stay
 * the same is tested by the golden corpus. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "compile/fuse/fuse.h"
#include "ir/build.h"

#define ROWS 64
#define COLUMNS 6

static bool fusible(void *arg, const Op *op) { /* the sine stands for what is a step of its own */
  (void)arg;
  OpClass c = op_info[op->kind].cls;
  return (c == OC_EWISE && op->kind != OP_SINE) || c == OC_MOVE || op->kind == OP_IOTA ||
         op->kind == OP_REDUCE;
}

static const Target target = {.fusible = fusible, .replicas = 1, .partitions = 1};

static uint64_t state;

static int draw(int n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (int)((state >> 33) % (uint64_t)n);
}

static Value *padded(Build *b, Value *x, int64_t rows, int64_t columns) {
  const int64_t lo[2] = {rows, columns}, none[2] = {0, 0};
  return b_pad(b, x, b_scalar(b, DT_F32, 0), lo, none, none);
}

/* A matrix of the one shape, made of two others; between them may be other shapes. */
static Value *grown(Build *b, Value *x, Value *y) {
  const int64_t rows[1] = {0}, columns[1] = {1};
  switch (draw(9)) {
  case 0: return b_add(b, x, y);
  case 1: return b_mul(b, x, y);
  case 2: return b_neg(b, x);
  case 3: return b_sin(b, x);
  case 4: return b_reverse(b, x, 1, draw(2) ? rows : columns);
  case 5: return b_add(b, y, padded(b, b_neg(b, b_slice_dim(b, x, 0, 3, ROWS)), 3, 0));
  case 6: return b_max(b, y, padded(b, b_slice_dim(b, x, 1, 0, COLUMNS - 1), 0, 1));
  case 7: {
    Value *halves[2] = {b_slice_dim(b, x, 0, 0, ROWS / 2), b_slice_dim(b, y, 0, 0, ROWS / 2)};
    return b_concat(b, 2, halves, 0);
  }
  default: return b_sub(b, y, b_bcast_last(b, b_reduce(b, OP_ADD, x, 1, rows), x->type));
  }
}

static Module *random_program(uint64_t seed) {
  state = seed;
  Module *m = module_new();
  Build b;
  b_func(&b, m, "main");
  Value *v[40];
  int n = 0, n_ops = 4 + draw(36);
  const int64_t dims[2] = {ROWS, COLUMNS};
  v[n++] = b_arg(&b, b_type(&b, DT_F32, 2, dims));
  while (n < n_ops) {
    int i = n - 1 - draw(n < 6 ? n : 6), j = draw(n);
    v[n] = grown(&b, v[i], v[j]);
    n++;
  }
  Value *results[4] = {v[n - 1], v[n - 2], v[draw(n - 1) + 1], v[draw(n - 1) + 1]};
  b_return(&b, 4, results);
  return m;
}

static bool is_made(const Nodes *nodes, int before, const Value *v) {
  for (int i = 0; i < before; i++) {
    const Node *x = &nodes->v[i];
    if (x->kind == NODE_OP && v->def == x->op) return true;
    for (int k = 0; x->kind == NODE_FUSION && k < x->fusion->n_out; k++)
      if (x->fusion->out[k].v == v) return true;
  }
  return false;
}

static void data_flows_forward(void **unused) {
  (void)unused;
  for (uint64_t seed = 0; seed < 2000; seed++) {
    Module *m = random_program(seed);
    Func *f = module_main(m);
    ir_number(f);
    Nodes nodes = {0};
    assert_null(fuse_region(m, &target, f->body, &nodes));
    for (int i = 0; i < nodes.n; i++) {
      const Node *x = &nodes.v[i];
      int n_in = x->kind == NODE_OP ? x->op->n_operands : x->fusion->n_in;
      Value **in = x->kind == NODE_OP ? x->op->operands : x->fusion->in;
      for (int k = 0; k < n_in; k++)
        if (in[k]->def && !is_made(&nodes, i, in[k]))
          fail_msg("program %llu: step %d of %d reads what is made later", (unsigned long long)seed,
                   i, nodes.n);
    }
    vec_free(&nodes);
    module_free(m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(data_flows_forward)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
