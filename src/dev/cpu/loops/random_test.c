/* Random programs on the cpu device against the interpreter: element-wise chains, moves and
 * reductions over shapes with odd sizes, several results. i32 programs must agree to the bit, f32
 * ones within rounding. RANDOM_SEED=n runs one program and prints its plan with WEFT_DUMP. */
#include <math.h>
#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

#include <stdlib.h>

#include "dev/dev.h"
#include "interp/interp.h"
#include "ir/build.h"

#define PROGRAMS 400
#define MAX_VALUES 64

static uint64_t state;

static int64_t below(int64_t n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)((state >> 33) % (uint64_t)n);
}

typedef struct Pool {
  Build b;
  DType t;
  Value *v[MAX_VALUES];
  int n;
} Pool;

static Value *any(Pool *p) { return p->v[p->n - 1 - below(MIN(p->n, 6))]; }

static Value *same_shape(Pool *p, const Value *x) {
  int start = (int)below(p->n);
  for (int i = 0; i < p->n; i++) {
    Value *y = p->v[(start + i) % p->n];
    if (y->type == x->type) return y;
  }
  return (Value *)x;
}

/* A value of x's shape made from a smaller one: along some dimensions of x. */
static Value *spread_to(Pool *p, const Value *x) {
  int start = (int)below(p->n);
  for (int i = 0; i < p->n; i++) {
    Value *y = p->v[(start + i) % p->n];
    if (b_rank(y) >= b_rank(x) || b_dtype(y) != b_dtype(x)) continue;
    int map[8], d = 0;
    bool ok = true;
    for (int k = 0; k < b_rank(y) && ok; k++) {
      while (d < b_rank(x) && b_dim(x, d) != b_dim(y, k)) d++;
      ok = d < b_rank(x);
      map[k] = d++;
    }
    if (ok) return b_bcast_like(&p->b, y, x->type, map);
  }
  return b_full(&p->b, b_type_as(&p->b, x->type, p->t), (double)below(5) - 2);
}

static Value *tame(Pool *p, Value *x) { return p->t == DT_F32 ? b_tanh(&p->b, x) : x; }

static Value *move(Pool *p, Value *x) {
  Build *b = &p->b;
  int r = b_rank(x);
  int64_t dims[8], lo[8] = {0}, hi[8] = {0}, step[8], zero[8] = {0};
  for (int i = 0; i < r; i++) dims[i] = b_dim(x, i), hi[i] = dims[i], step[i] = 1;
  switch (below(9)) {
  case 0: { /* join or split dimensions */
    if (r >= 2 && below(2)) {
      int k = (int)below(r - 1);
      dims[k] *= dims[k + 1];
      for (int i = k + 1; i < r - 1; i++) dims[i] = dims[i + 1];
      return b_reshape(b, x, r - 1, dims);
    }
    for (int i = 0; i < r && r < 6; i++)
      for (int64_t f = 2; f <= 8; f++)
        if (dims[i] % f == 0 && dims[i] > f) {
          int64_t n[8];
          for (int k = 0; k < r; k++) n[k < i ? k : k + 1] = dims[k];
          n[i] = dims[i] / f;
          n[i + 1] = f;
          return b_reshape(b, x, r + 1, n);
        }
    return x;
  }
  case 1: {
    int perm[8];
    for (int i = 0; i < r; i++) perm[i] = i;
    for (int i = r - 1; i > 0; i--) {
      int k = (int)below(i + 1), t = perm[i];
      perm[i] = perm[k];
      perm[k] = t;
    }
    return b_transpose(b, x, perm);
  }
  case 2: {
    for (int i = 0; i < r; i++) {
      if (dims[i] < 3) continue;
      lo[i] = below(dims[i] / 2);
      hi[i] = lo[i] + 1 + below(dims[i] - lo[i]);
      step[i] = 1 + below(3) / 2;
    }
    return b_slice(b, x, lo, hi, step);
  }
  case 3: {
    if (r == 0) return x;
    int64_t d = below(r);
    return b_reverse(b, x, 1, &d);
  }
  case 4: {
    for (int i = 0; i < r; i++) {
      lo[i] = below(4) - 1;
      hi[i] = below(3);
      if (dims[i] + lo[i] + hi[i] < 1) lo[i] = 0;
    }
    return b_pad(b, x, b_scalar(b, p->t, 1), lo, hi, zero);
  }
  case 5: {
    if (r == 0) return x;
    Value *in[2] = {x, same_shape(p, x)};
    return b_concat(b, 2, in, (int)below(r));
  }
  case 6: {
    int64_t n[8];
    int map[8], at = (int)below(r + 1);
    if (r >= 5) return x;
    for (int i = 0; i < r; i++) {
      map[i] = i < at ? i : i + 1;
      n[map[i]] = dims[i];
    }
    n[at] = 1 + below(9);
    return b_bcast(b, x, r + 1, n, map);
  }
  case 7: return r ? b_add(b, x, b_iota(b, x->type, (int)below(r))) : x;
  default: return x;
  }
}

static Value *step(Pool *p) {
  Build *b = &p->b;
  Value *x = any(p);
  bool real = p->t == DT_F32;
  switch (below(14)) {
  case 0: return b_add(b, x, same_shape(p, x));
  case 1: return b_sub(b, x, spread_to(p, x));
  case 2: return tame(p, b_mul(b, x, spread_to(p, x)));
  case 3: return b_max(b, x, same_shape(p, x));
  case 4: return b_min(b, x, spread_to(p, x));
  case 5:
    return real ? b_exp(b, b_min(b, x, b_full(b, x->type, 2))) : b_xor(b, x, same_shape(p, x));
  case 6: return real ? b_logistic(b, x) : b_and(b, x, spread_to(p, x));
  case 7: return b_neg(b, x);
  case 8: /* equal bits on both sides: only whole numbers are compared */
    return real ? b_abs(b, x)
                : b_select(b, b_compare(b, "GT", x, same_shape(p, x)), x, spread_to(p, x));
  case 9:
  case 10: {
    static const OpKind kinds[] = {OP_ADD, OP_MAXIMUM, OP_MINIMUM};
    int r = b_rank(x);
    int64_t dims[8];
    int n = 0;
    for (int i = 0; i < r; i++)
      if (below(2)) dims[n++] = i;
    if (!n) return x;
    Value *s = b_reduce(b, kinds[below(3)], x, n, dims);
    if (below(2)) { /* back over the whole: rows as in a softmax */
      int map[8], m = 0;
      for (int i = 0, k = 0; i < r; i++) {
        if (k < n && dims[k] == i) k++;
        else map[m++] = i;
      }
      return tame(p, b_sub(b, x, b_bcast_like(b, s, x->type, map)));
    }
    return real ? b_muls(b, s, 0.125) : s;
  }
  default: return move(p, x);
  }
}

static Module *program(uint64_t seed, DType t) {
  state = seed * 0x9e3779b97f4a7c15u + (t == DT_F32);
  below(2);
  Module *m = module_new();
  Pool p = {.t = t};
  b_func(&p.b, m, "main");
  static const int64_t sizes[] = {1, 2, 3, 5, 8, 16, 17, 32, 33, 48, 64, 100};
  int n_args = 1 + (int)below(3);
  int64_t dims[4];
  int r = 1 + (int)below(4);
  for (int i = 0; i < r; i++) dims[i] = sizes[below(r > 2 ? 7 : 12)];
  for (int i = 0; i < n_args; i++) {
    int drop = i ? (int)below(r) : 0; /* others are narrower: the last dimensions */
    p.v[p.n++] = b_arg(&p.b, b_type(&p.b, t, r - drop, dims + drop));
  }
  int steps = 3 + (int)below(24);
  for (int i = 0; i < steps && p.n < MAX_VALUES; i++) {
    Value *v = step(&p);
    if (type_count(v->type) > 1 << 18 || b_rank(v) > 6) continue;
    p.v[p.n++] = v;
  }
  Value *out[4];
  int n_out = 1 + (int)below(4);
  out[0] = p.v[p.n - 1];
  for (int i = 1; i < n_out; i++) out[i] = p.v[below(p.n)];
  b_return(&p.b, n_out, out);
  return m;
}

static void check(uint64_t seed, DType t) {
  Module *m = program(seed, t);
  Err *e = ir_verify(m);
  Func *f = module_main(m);
  int n = f->type->n_elems, k = f->type->n_results;
  Shards *args = xcalloc((size_t)n, sizeof *args), *want = xcalloc((size_t)k, sizeof *want),
         *got = xcalloc((size_t)k, sizeof *got);
  for (int i = 0; i < n; i++) {
    Type *ty = f->type->elems[i];
    args[i] = (Shards){1, xcalloc(1, sizeof(Tensor *))};
    args[i].t[0] = tensor_make(ty->dtype, ty->rank, ty->dims);
    for (int64_t j = 0; j < args[i].t[0]->count; j++)
      elem_set_f64(t, tensor_at(args[i].t[0], j),
                   t == DT_F32 ? (double)below(4001) / 1000 - 2 : (double)below(2001) - 1000);
  }
  Dev *dev = NULL;
  DevProgram *prog = NULL;
  if (!e) e = interp_run(m, (Str){0}, NULL, args, n, want, k);
  if (!e) e = dev_open("cpu", &dev);
  if (!e) e = dev_compile(dev, m, NULL, &prog);
  if (!e) e = dev->ops->run(prog, &(DevPart){.n = 1}, args, NULL, got, NULL);
  if (e) {
    char *text = err_text(e);
    fail_msg("seed %llu: %s", (unsigned long long)seed, text);
  }
  for (int o = 0; o < k; o++) {
    const Tensor *a = got[o].t[0], *b = want[o].t[0];
    assert_int_equal(a->count, b->count);
    double scale = 0;
    for (int64_t i = 0; i < a->count; i++) {
      double y = fabs(elem_get_f64(t, tensor_at(b, i)));
      if (isfinite(y)) scale = MAX(scale, y);
    }
    for (int64_t i = 0; i < a->count; i++) {
      double x = elem_get_f64(t, tensor_at(a, i)), y = elem_get_f64(t, tensor_at(b, i));
      bool ok = t == DT_F32 ? fabs(x - y) <= 2e-5 * scale + 1e-6 || (isnan(x) && isnan(y)) || x == y
                            : x == y;
      if (!ok)
        fail_msg("seed %llu %s: result %d element %lld is %.9g, not %.9g", (unsigned long long)seed,
                 dtype_name(t), o, (long long)i, x, y);
    }
  }
  for (int i = 0; i < n; i++) shards_free(&args[i]);
  for (int i = 0; i < k; i++) shards_free(&want[i]), shards_free(&got[i]);
  free(args);
  free(want);
  free(got);
  dev_program_release(prog);
  dev_close(dev);
  module_free(m);
}

static void whole_numbers(void **unused) {
  (void)unused;
  for (uint64_t s = 1; s <= PROGRAMS; s++) check(s, DT_I32);
}

static void floats(void **unused) {
  (void)unused;
  for (uint64_t s = 1; s <= PROGRAMS; s++) check(s, DT_F32);
}

int main(void) {
  const char *one = env_get("RANDOM_SEED");
  if (one) {
    check((uint64_t)atoll(one), DT_I32);
    check((uint64_t)atoll(one), DT_F32);
    return 0;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(whole_numbers), cmocka_unit_test(floats)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
