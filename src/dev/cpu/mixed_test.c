/* Random programs of all kinds of operations and element types on the cpu device against the
 * interpreter: whole numbers, and what is only moved or compared, to the bit; the others within the
 * rounding of the narrowest type in the program. SEEDS="FROM COUNT" runs others than the usual ones;
 * one that fails is printed. */
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dev/dev.h"
#include "interp/interp.h"
#include "ir/random_test.h"
#include "stablehlo/stablehlo.h"

#define PROGRAMS 120

typedef struct Case {
  uint64_t seed;
  Module *m;
  bool exact[RANDOM_RESULTS];
  int n_args, n_results;
  Shards args[4], want[RANDOM_RESULTS];
} Case;

static void fail_with(const Case *c, const char *how, const char *what) {
  Buf text = {0};
  stablehlo_write_text(&text, c->m, NULL);
  fail_msg("seed %llu, %s: %s\n%.*s", (unsigned long long)c->seed, how, what, (int)text.n,
           (const char *)text.p);
}

static void no_err(const Case *c, const char *how, Err *e) {
  if (e) fail_with(c, how, err_text(e));
}

static Tensor *numbers(Random *r, const Type *t) {
  Tensor *x = tensor_make(t->dtype, t->rank, t->dims);
  bool whole = random_one_in(r, 3), wild = random_one_in(r, 4);
  static const double special[] = {NAN, INFINITY, -INFINITY, -0.0};
  for (int64_t i = 0; i < x->count; i++) {
    void *at = tensor_at(x, i);
    int64_t k = random_below(r, 4001);
    if (dtype_is_float(t->dtype) && wild && k % 97 == 0)
      elem_set_f64(t->dtype, at, special[k / 97 % 4]);
    else if (dtype_is_float(t->dtype))
      elem_set_f64(t->dtype, at, whole ? k % 9 - 4 : k / 1000.0 - 2);
    else if (t->dtype == DT_I1) elem_set_i64(t->dtype, at, k % 2);
    else if (wild) elem_set_i64(t->dtype, at, (int64_t)((uint64_t)k * 0x9e3779b97f4a7c1u));
    else elem_set_i64(t->dtype, at, k % 10);
  }
  return x;
}

static Case make(uint64_t seed) {
  Case c = {.seed = seed, .m = random_program(seed, 1, c.exact)};
  no_err(&c, "verifier", ir_verify(c.m));
  const Type *f = module_main(c.m)->type;
  Random r = {.state = seed};
  c.n_args = f->n_elems;
  c.n_results = f->n_results;
  for (int i = 0; i < c.n_args; i++) {
    c.args[i] = (Shards){1, xcalloc(1, sizeof(Tensor *))};
    c.args[i].t[0] = numbers(&r, f->elems[i]);
  }
  no_err(&c, "interpreter", interp_run(c.m, (Str){0}, NULL, c.args, c.n_args, c.want, c.n_results));
  return c;
}

static double as_double(DType t, const void *p) {
  return dtype_is_float(t) ? elem_get_f64(t, p) : (double)elem_get_i64(t, p);
}

static void compare(const Case *c, const char *how, int o, const Tensor *got, double tolerance) {
  const Tensor *want = c->want[o].t[0];
  DType t = want->dtype;
  double scale = 1;
  if (got->count != want->count || got->dtype != t) fail_with(c, how, "a result of another type");
  for (int64_t i = 0; i < want->count; i++) {
    double v = fabs(as_double(t, tensor_at(want, i)));
    if (isfinite(v)) scale = MAX(scale, v);
  }
  if (c->exact[o]) tolerance = 0;
  for (int64_t i = 0; i < want->count; i++) {
    double x = as_double(t, tensor_at(got, i)), y = as_double(t, tensor_at(want, i));
    if (x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= tolerance * scale) continue;
    char what[160];
    snprintf(what, sizeof what, "result %d, element %lld is %.9g, not %.9g (largest %.4g)", o,
             (long long)i, x, y, scale);
    fail_with(c, how, what);
  }
}

static void runs_alike(const Case *c, const char *how) {
  Dev *dev = NULL;
  DevProgram *prog = NULL;
  Shards got[RANDOM_RESULTS] = {0};
  no_err(c, how, dev_open("cpu", &dev));
  no_err(c, how, dev_compile(dev, c->m, NULL, &prog));
  no_err(c, how, dev->ops->run(prog, &(DevPart){.n = 1}, c->args, NULL, got, NULL));
  double of = random_tolerance(module_main(c->m));
  for (int i = 0; i < c->n_results; i++) {
    compare(c, how, i, got[i].t[0], of);
    shards_free(&got[i]);
  }
  dev_program_release(prog);
  dev_close(dev);
}

static void check(uint64_t seed) {
  Case c = make(seed);
  setenv("WEFT_VINTERP", "off", 1);
  runs_alike(&c, "generated code");
  setenv("WEFT_VINTERP", "always", 1);
  runs_alike(&c, "strips");
  for (int i = 0; i < c.n_args; i++) shards_free(&c.args[i]);
  for (int i = 0; i < c.n_results; i++) shards_free(&c.want[i]);
  module_free(c.m);
}

static void random_programs(void **unused) {
  (void)unused;
  unsigned long long from = 1, count = PROGRAMS;
  const char *given = env_get("SEEDS");
  if (given && sscanf(given, "%llu %llu", &from, &count) != 2) fail_msg("SEEDS=\"FROM COUNT\"");
  setenv("WEFT_CACHE", "off", 1);
  for (uint64_t seed = from; seed < from + count; seed++) check(seed);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
