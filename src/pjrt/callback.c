/* Custom calls back into the host process: target "weft_host_callback". The address of a C function
 * is in the call's attributes; the Python package makes it (ctypes) and keeps it alive as long as
 * the program.
 *
 *   int fn(void *const *operands, void *const *results, char *error, size_t error_size, const int64_t *dims)
 *
 * gets dense row-major data and writes the results; a number other than 0 fails the call with
 * `error`. dims: of all operands, one after another; what a process has of an operand may be a part of it. */
#include "pjrt/pjrt_priv.h"

#include "interp/interp.h"
#include "ir/exchange.h"

typedef int (*HostFn)(void *const *operands, void *const *results, char *error, size_t error_size,
                      const int64_t *dims);

typedef VEC(int64_t) Dims;

static Dims dims_of(int n, Tensor *const *operands) {
  Dims dims = {0};
  for (int i = 0; i < n; i++)
    for (int d = 0; d < operands[i]->rank; d++) *vec_push(&dims) = operands[i]->dims[d];
  return dims;
}

static Err *host_callback(const Op *op, Tensor *const *operands, Tensor **results) {
  Attr *config = op_attr(op, "mhlo.backend_config");
  Attr *fn = NULL;
  if (config && config->kind == AT_DICT) fn = attrs_get(config->dict, config->n, "address");
  if (!fn || fn->kind != AT_INT || !fn->i)
    return op_err(op, ERR_INVALID, "a host callback without an address");
  for (int i = 0; i < op->n_results; i++) {
    const Type *t = op->results[i].type;
    bool token = t->kind == TY_TOKEN;
    TRY(tensor_new(token ? DT_TOKEN : t->dtype, token ? 0 : t->rank, t->dims, &results[i]));
  }
  void **in = xcalloc((size_t)op->n_operands + 1, sizeof *in);
  void **out = xcalloc((size_t)op->n_results + 1, sizeof *out);
  for (int i = 0; i < op->n_operands; i++) in[i] = operands[i]->data;
  for (int i = 0; i < op->n_results; i++) out[i] = results[i]->data;
  char error[4096] = "";
  HostFn call = (HostFn)(uintptr_t)fn->i;
  Dims dims = dims_of(op->n_operands, operands);
  int failed = call(in, out, error, sizeof error, dims.v);
  vec_free(&dims);
  free(in);
  free(out);
  if (!failed) return NULL;
  error[sizeof error - 1] = 0;
  return err_new(ERR_INTERNAL, "CpuCallback error: %s", error);
}

void callbacks_register(void) { custom_call_register(HOST_CALLBACK, host_callback); }
