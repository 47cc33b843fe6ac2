/* Helpers that kernels share. */
#include "dev/cpu/kernel/kernel.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef VEC(Value *) Values;

static void add_captures(const Op *op, const Region *r, Values *out) {
  for (const Op *x = r->first; x; x = x->next) {
    for (int i = 0; i < x->n_operands; i++) {
      Value *v = x->operands[i];
      bool skip = false;
      for (const Region *up = v->region; up && !skip; up = up->parent ? up->parent->parent : NULL)
        for (int k = 0; k < op->n_regions; k++) skip |= op->regions[k] == up;
      for (int k = 0; k < out->n; k++) skip |= out->v[k] == v;
      if (!skip) *vec_push(out) = v;
    }
    for (int i = 0; i < x->n_regions; i++) add_captures(op, x->regions[i], out);
  }
}

int cpu_captures(const Op *op, Value ***out) {
  Values v = {0};
  for (int i = 0; i < op->n_regions; i++) add_captures(op, op->regions[i], &v);
  *out = v.v;
  return v.n;
}

OpKind cpu_region_binary(const Region *r, bool *swapped) {
  const Op *x = r->first;
  if (!x || x->next != r->last || r->n_args != 2 || x->n_operands != 2 || x->n_results != 1 ||
      x->n_regions || r->last->n_operands != 1 || r->last->operands[0] != &x->results[0])
    return OP_UNKNOWN;
  bool straight = x->operands[0] == r->args[0] && x->operands[1] == r->args[1];
  bool crossed = x->operands[0] == r->args[1] && x->operands[1] == r->args[0];
  if (!straight && !crossed) return OP_UNKNOWN;
  if (swapped) *swapped = crossed;
  return x->kind;
}

bool cpu_region_select(const Region *r, bool *max) {
  const Op *x = r->first;
  if (!x || x->kind != OP_COMPARE || x->next != r->last || r->n_args != 2 ||
      x->operands[0] != r->args[0] || x->operands[1] != r->args[1] ||
      r->last->operands[0] != &x->results[0] || str_is(op_str(x, "compare_type"), "TOTALORDER"))
    return false;
  Str d = op_str(x, "comparison_direction");
  *max = str_is(d, "GE");
  return *max || str_is(d, "LE");
}

static _Thread_local struct {
  void *p;
  size_t n;
} scratch;

static pthread_key_t scratch_key; /* frees it when its thread ends */
static void make_scratch_key(void) { pthread_key_create(&scratch_key, free); }

void *cpu_scratch(size_t n) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (n > scratch.n) {
    free(scratch.p);
    scratch.n = (n + n / 4 + 4095) & ~(size_t)4095;
    scratch.p = aligned_alloc(64, scratch.n);
    if (!scratch.p) {
      fprintf(stderr, "weft: no memory for %zu bytes of scratch\n", n);
      abort();
    }
    pthread_once(&once, make_scratch_key);
    pthread_setspecific(scratch_key, scratch.p);
  }
  return scratch.p;
}

typedef struct Chunks {
  int64_t n, grain;
  void (*fn)(void *, int64_t, int64_t);
  void *arg;
} Chunks;

static void run_chunk(void *arg, int64_t i) {
  const Chunks *c = arg;
  int64_t begin = i * c->grain, end = MIN(begin + c->grain, c->n);
  c->fn(c->arg, begin, end);
}

void cpu_parallel(int64_t n, int64_t grain, void (*fn)(void *arg, int64_t begin, int64_t end),
                  void *arg) {
  if (n <= 0) return;
  grain = MAX(grain, 1);
  if (n <= grain) {
    fn(arg, 0, n);
    return;
  }
  Chunks c = {n, grain, fn, arg};
  pool_run((n + grain - 1) / grain, run_chunk, &c);
}

bool cpu_window_skips_outside(const Op *op) {
  OpKind k = cpu_region_binary(op->regions[0], NULL);
  if (k != OP_ADD && k != OP_MULTIPLY) return true;
  const int64_t *v;
  bool outside = false;
  int n = op_ints(op, "padding", &v);
  for (int i = 0; i < n; i++) outside |= v[i] > 0;
  n = op_ints(op, "base_dilations", &v);
  for (int i = 0; i < n; i++) outside |= v[i] > 1;
  if (!outside) return true;
  const Op *def = op->operands[op->n_operands / 2]->def;
  const Attr *a = def && def->kind == OP_CONSTANT ? op_attr(def, "value") : NULL;
  if (!a || a->tensor->count != 1 || dtype_is_complex(a->dtype)) return false;
  return elem_get_f64(a->dtype, a->tensor->data) == (k == OP_ADD ? 0 : 1);
}
