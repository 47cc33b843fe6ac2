/* The golden corpus (tests/golden) for tests of devices: reads an entry's program and arrays, runs
 * it on a device and hands every result, with what XLA computed, to the caller's comparison. */
#ifndef WEFT_DEV_GOLDEN_TEST_H
#define WEFT_DEV_GOLDEN_TEST_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "base/npy.h"
#include "dev/dev.h"
#include "interp/interp.h"
#include "stablehlo/stablehlo.h"

#define CORPUS WEFT_SOURCE_DIR "/tests/golden/corpus"

typedef struct Case {
  const cJSON *entry;
  const char *device, *name, *file; /* "cpu", "add", "add.mlirbc" */
  char *title;                      /* "cpu add.mlirbc" */
} Case;

/* tol: the corpus's tolerance of this result; m: the program */
typedef Err *GoldenCompare(const Case *c, const Module *m, const Tensor *got, const Tensor *want,
                           const cJSON *tol);

static double number(const cJSON *o, const char *key) {
  const cJSON *v = cJSON_GetObjectItem(o, key);
  return v ? v->valuedouble : 0;
}

static Err *load_tensor(const Npz *z, const char *name, const Type *t, Tensor **out) {
  const Npy *a = npz_find(z, name);
  if (!a) return err_new(ERR_NOT_FOUND, "no array %s", name);
  if (dtype_bytes(a->dtype) != dtype_bytes(t->dtype))
    return err_new(ERR_INVALID, "%s is %s, not %s", name, dtype_name(a->dtype),
                   dtype_name(t->dtype));
  TRY(tensor_new(t->dtype, a->rank, a->dims, out));
  if (a->count) memcpy((*out)->data, a->data, tensor_bytes(*out));
  if (dtype_bits(t->dtype) < 8 && dtype_is_int(t->dtype))
    for (int64_t i = 0; i < a->count; i++)
      elem_set_i64(t->dtype, tensor_at(*out, i), ((uint8_t *)a->data)[i]);
  return NULL;
}

/* One number of each: equal values, both NaN, or close enough. */
static bool same(double got, double want, double rtol, double atol) {
  if (isnan(want)) return isnan(got);
  if (got == want) return true;
  return fabs(got - want) <= atol + rtol * fabs(want);
}

/* Entries whose tolerance is too narrow for a correct answer; the allowance is multiplied. */
static const struct {
  const char *name, *why;
  double factor;
} loose[] = {
    {"train_davidnet_bf16_sgdm",
     "max-pool winners that differ by the last bit of bfloat16: one gradient goes elsewhere", 8},
};

static double loosened(const char *name) {
  for (int i = 0; i < COUNT_OF(loose); i++)
    if (!strcmp(name, loose[i].name)) return loose[i].factor;
  return 1;
}

/* Within the corpus's own tolerance; a GoldenCompare. */
static Err *golden_close(const Case *c, const Module *m, const Tensor *got, const Tensor *want,
                         const cJSON *tol) {
  (void)m;
  double factor = loosened(c->name);
  const cJSON *check = cJSON_GetObjectItem(c->entry, "check");
  bool shape_only = check && !strcmp(check->valuestring, "shape");
  if (got->dtype != want->dtype || got->count != want->count || got->rank != want->rank)
    return err_new(ERR_ABORTED, "type or shape differs (%lld elements of %s)",
                   (long long)got->count, dtype_name(got->dtype));
  for (int i = 0; i < got->rank; i++)
    if (got->dims[i] != want->dims[i])
      return err_new(ERR_ABORTED, "dimension %d is %lld", i, (long long)got->dims[i]);
  if (shape_only) return NULL;
  bool close = tol && !strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(tol, "kind")), "close");
  double rtol = close ? factor * number(tol, "rtol") : 0,
         atol = close ? factor * number(tol, "atol") : 0;
  DType t = got->dtype, r = dtype_real_of(t);
  int64_t bad = 0, first = -1;
  double g0 = 0, w0 = 0;
  for (int64_t i = 0; i < got->count; i++) {
    const char *g = tensor_at(got, i), *w = tensor_at(want, i);
    bool ok;
    double a = 0, b = 0;
    if (dtype_is_complex(t)) {
      double gr = elem_get_f64(r, g), gi = elem_get_f64(r, g + dtype_bytes(r));
      double wr = elem_get_f64(r, w), wi = elem_get_f64(r, w + dtype_bytes(r));
      a = gr, b = wr;
      ok = (same(gr, wr, 0, 0) && same(gi, wi, 0, 0)) ||
           hypot(gr - wr, gi - wi) <= atol + rtol * hypot(wr, wi);
    } else if (dtype_is_float(t)) {
      a = elem_get_f64(t, g), b = elem_get_f64(t, w);
      ok = same(a, b, rtol, atol);
    } else {
      a = (double)elem_get_i64(t, g), b = (double)elem_get_i64(t, w);
      ok = close ? same(a, b, rtol, atol) : elem_get_i64(t, g) == elem_get_i64(t, w);
    }
    if (ok) continue;
    if (!bad++) first = i, g0 = a, w0 = b;
  }
  if (!bad) return NULL;
  return err_new(
      ERR_ABORTED,
      "%lld of %lld elements differ; the first is %lld: %.9g, not %.9g (rtol %g, atol %g)",
      (long long)bad, (long long)got->count, (long long)first, g0, w0, rtol, atol);
}

/* The program as it comes back from a cache on disk, where the device keeps such. */
static Err *golden_reload(Dev *dev, const DevCompileOpts *opts, DevProgram **prog) {
  Buf saved = {0};
  Err *e = NULL;
  if (opts->keep && dev_program_save(*prog, &saved)) {
    DevProgram *again = NULL;
    e = dev_program_load(dev, (Str){saved.p, saved.n}, opts, &again);
    if (!e) {
      dev_program_release(*prog);
      *prog = again;
    }
  }
  buf_free(&saved);
  return e;
}

/* Runs the program `times` times, the last time reloaded; the results of the last are compared. */
static Err *golden_run(const Case *c, int times, GoldenCompare *compare) {
  char path[512];
  Buf bytes = {0};
  Module *m = NULL;
  Npz z = {0};
  snprintf(path, sizeof path, CORPUS "/%s", c->file);
  TRY(file_read(path, &bytes));
  Err *e = stablehlo_read(c->file, (Str){bytes.p, bytes.n}, &m);
  buf_free(&bytes);
  if (!e) e = err_wrap(ir_verify(m), "verify");
  if (e || cJSON_GetObjectItem(c->entry, "decode_only")) {
    module_free(m);
    return e;
  }
  snprintf(path, sizeof path, CORPUS "/%s.npz", c->name);
  e = npz_read(path, &z);
  const Func *f = module_main(m);
  int n_in = f->type->n_elems, n_out = f->type->n_results;
  Shards *args = xcalloc((size_t)n_in + 1, sizeof *args),
         *res = xcalloc((size_t)n_out + 1, sizeof *res);
  for (int i = 0; i < n_in && !e; i++) {
    snprintf(path, sizeof path, "in%d", i);
    args[i] = (Shards){1, xcalloc(1, sizeof(Tensor *))};
    e = load_tensor(&z, path, f->type->elems[i], &args[i].t[0]);
  }
  DevCompileOpts opts = {.replicas = (int)number(c->entry, "num_replicas"),
                         .partitions = (int)number(c->entry, "num_partitions"),
                         .keep = times > 1};
  int n = MAX(opts.replicas, 1) * MAX(opts.partitions, 1);
  char *device = xasprintf("%s:%d", c->device, n);
  Dev *dev = NULL;
  DevProgram *prog = NULL;
  Buf key = {0};
  if (!e) e = dev_open(device, &dev);
  opts.keep = !e && opts.keep && dev_cache_key(dev, &opts, &key);
  buf_free(&key);
  if (!e) e = dev_compile(dev, m, &opts, &prog);
  DevRun time = {0};
  for (int k = 0; k < times && !e; k++) {
    for (int i = 0; i < n_out; i++) shards_free(&res[i]);
    if (k == times - 1) e = golden_reload(dev, &opts, &prog);
    if (!e)
      e = dev->ops->run(prog, &(DevPart){.n = dev_program_processes(prog)}, args, NULL, res, &time);
  }
  free(device);
  for (int i = 0; i < n_out && !e; i++) {
    snprintf(path, sizeof path, "out%d", i);
    Tensor *want = NULL;
    if (f->type->results[i]->kind == TY_TOKEN) continue;
    e = load_tensor(&z, path, f->type->results[i], &want);
    const cJSON *out = cJSON_GetArrayItem(cJSON_GetObjectItem(c->entry, "outputs"), i);
    if (!e && res[i].n != 1) e = err_new(ERR_ABORTED, "result %d differs between processes", i);
    if (!e)
      e = err_wrap(compare(c, m, res[i].t[0], want, cJSON_GetObjectItem(out, "tol")), "result %d",
                   i);
    tensor_release(want);
  }
  dev_program_release(prog);
  dev_close(dev);
  for (int i = 0; i < n_in; i++) shards_free(&args[i]);
  for (int i = 0; i < n_out; i++) shards_free(&res[i]);
  free(args);
  free(res);
  npz_free(&z);
  module_free(m);
  return e;
}

/* ---- a test for each case; include <cmocka.h> before this file ---- */

typedef VEC(struct CMUnitTest) GoldenTests;

static void golden_add(GoldenTests *tests, const cJSON *entry, const char *device, const char *end,
                       CMUnitTestFunction test) {
  const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(entry, "name"));
  Case *c = xcalloc(1, sizeof *c);
  char *file = xasprintf("%s%s", name, end), *title = xasprintf("%s %s", device, file);
  *c = (Case){entry, device, name, file, title};
  *vec_push(tests) = (struct CMUnitTest){title, test, NULL, NULL, c};
}

/* How many failed; frees the cases. */
static int golden_run_all(const char *group, GoldenTests *tests) {
  int failed = _cmocka_run_group_tests(group, tests->v, (size_t)tests->n, NULL, NULL);
  for (int i = 0; i < tests->n; i++) {
    Case *c = tests->v[i].initial_state;
    if (!c) continue; /* a test of its own */
    free((char *)c->file);
    free(c->title);
    free(c);
  }
  vec_free(tests);
  return failed;
}

/* The names of the manifest; the caller frees it with cJSON_Delete. */
static cJSON *golden_manifest(void) {
  Buf text = {0};
  Err *e = file_read(CORPUS "/manifest.json", &text);
  cJSON *manifest = e ? NULL : cJSON_Parse(text.p);
  if (e) err_report(e);
  buf_free(&text);
  return manifest;
}

#endif
