/* weft run: inputs and results as .npz files. */
#include "cli/run.h"

#include "base/npy.h"
#include "cli/made_input.h"

#include <stdio.h>
#include <stdlib.h>

static Err *make_inputs(const RunArgs *a, const Func *f, Tensor **in) {
  bool *positive = made_positive(f->module);
  Err *e = NULL;
  for (int i = 0; i < f->type->n_elems && !e; i++)
    e = made_input(a->zeros ? MADE_ZEROS : MADE_RANDOM, i, positive[i], f->type->elems[i], &in[i]);
  free(positive);
  return err_place(e, "%s", a->program);
}

Err *run_read_inputs(const RunArgs *a, const Func *f, Tensor **in) {
  int n = f->type->n_elems;
  if (a->random || a->zeros) return make_inputs(a, f, in);
  if (n && !a->in)
    return err_hint(
        err_new(ERR_INVALID, "@%.*s takes %d argument%s", STR_ARG(f->name), n, n == 1 ? "" : "s"),
        "give them with --in FILE.npz (in0, in1, ...), or make some up: --random, --zeros");
  Npz z = {0};
  if (a->in) TRY(npz_read(a->in, &z));
  Err *e = NULL;
  for (int i = 0; i < n && !e; i++) {
    char name[24];
    snprintf(name, sizeof name, "in%d", i);
    Type *t = f->type->elems[i];
    const Npy *got = npz_find(&z, name);
    if (!got) {
      Buf names = {0};
      for (int k = 0; k < z.n; k++) buf_printf(&names, "%s%s", k ? ", " : "", z.arrays[k].name);
      e = err_hint(err_new(ERR_NOT_FOUND, "%s has no array '%s'", a->in, name),
                   "it has %s; the arguments of @%.*s are in0 to in%d", names.p ? names.p : "none",
                   STR_ARG(f->name), n - 1);
      buf_free(&names);
      break;
    }
    if (!npy_holds(got->dtype, t->dtype)) {
      e = err_new(ERR_INVALID, "%s of %s is %s, the program takes %s", name, a->in,
                  dtype_name(got->dtype), dtype_name(t->dtype));
      break;
    }
    bool same = !e && got->rank == t->rank;
    for (int k = 0; same && k < t->rank; k++) same = t->dims[k] < 0 || t->dims[k] == got->dims[k];
    if (!e && !same) {
      Buf want = {0}, have = {0};
      type_print(&want, t);
      for (int k = 0; k < got->rank; k++)
        buf_printf(&have, "%s%lld", k ? "x" : "", (long long)got->dims[k]);
      e = err_new(ERR_INVALID, "%s of %s has shape [%s], the program takes %s", name, a->in,
                  have.p ? have.p : "", want.p);
      buf_free(&want);
      buf_free(&have);
    }
    if (!e) e = tensor_new(t->dtype, got->rank, got->dims, &in[i]);
    if (!e && in[i]->count) memcpy(in[i]->data, got->data, tensor_bytes(in[i]));
    /* stored as the low bits; in memory narrow signed types are sign-extended */
    for (int64_t k = 0; !e && (t->dtype == DT_I4 || t->dtype == DT_I2) && k < in[i]->count; k++)
      elem_set_i64(t->dtype, tensor_at(in[i], k), *(uint8_t *)tensor_at(in[i], k));
  }
  npz_free(&z);
  return e;
}

void run_print_result(int j, const Tensor *t) {
  printf("out%d %s[", j, dtype_name(t->dtype));
  for (int i = 0; i < t->rank; i++) printf("%s%lld", i ? "," : "", (long long)t->dims[i]);
  printf("]");
  for (int64_t i = 0; i < MIN(t->count, 8); i++) {
    const char *p = tensor_at(t, i);
    if (dtype_is_complex(t->dtype)) {
      DType r = dtype_real_of(t->dtype);
      printf(" (%g,%g)", elem_get_f64(r, p), elem_get_f64(r, p + dtype_bytes(r)));
    } else if (dtype_is_float(t->dtype)) {
      printf(" %g", elem_get_f64(t->dtype, p));
    } else {
      printf(" %lld", (long long)elem_get_i64(t->dtype, p));
    }
  }
  printf("%s\n", t->count > 8 ? " ..." : "");
}

/* numpy has no narrow signed integers: the low bits are stored. */
static void mask_narrow(Tensor *t) {
  int bits = dtype_bits(t->dtype);
  if (dtype_class(t->dtype) != DC_SINT || bits >= 8) return;
  for (int64_t k = 0; k < t->count; k++) *(uint8_t *)tensor_at(t, k) &= (uint8_t)((1 << bits) - 1);
}

Err *run_write_results(const char *path, Tensor *const *results, int n) {
  Npy *arrays = xcalloc((size_t)n + 1, sizeof *arrays);
  int n_arrays = 0;
  for (int j = 0; j < n; j++) {
    Tensor *t = results[j];
    if (!t) continue;
    Npy *w = &arrays[n_arrays++];
    *w =
        (Npy){.name = xasprintf("out%d", j), .dtype = t->dtype, .rank = t->rank, .count = t->count};
    if (t->rank) memcpy(w->dims, t->dims, sizeof *t->dims * (size_t)t->rank);
    mask_narrow(t);
    w->data = xmalloc(tensor_bytes(t));
    memcpy(w->data, t->data, tensor_bytes(t));
  }
  Err *e = npz_write(path, arrays, n_arrays);
  for (int j = 0; j < n_arrays; j++) npy_free(&arrays[j]);
  free(arrays);
  return e;
}
