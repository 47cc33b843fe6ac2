/* The null device: accepts every program and computes nothing; results are zeros. For measuring
 * everything around a device (reading, JAX's dispatch, buffers), and to copy when writing a new
 * backend. Every entry is here, the optional ones too.
 *
 *   "null", "null:8"
 */
#include "dev/dev.h"

#include <stdlib.h>

/* What compile keeps for run. A real backend puts its code and plan here. */
typedef struct NullProgram {
  int64_t args_bytes, result_bytes;
} NullProgram;

static Err *open(Dev *dev, Str args) { return dev_count(args, &dev->n); }

static void close(Dev *dev) { (void)dev; /* frees dev->impl */ }

static void info(const Dev *dev, int i, DevInfo *out) {
  (void)dev;
  *out = (DevInfo){.kind = "null", .memory_bytes = 0, .coords = {i, 0, 0}};
}

static Err *compile(DevProgram *prog, const Module *m) {
  (void)m; /* prog->module is our own copy of it, prog->main the function to run */
  NullProgram *np = xcalloc(1, sizeof *np);
  for (int i = 0; i < prog->n_args; i++) np->args_bytes += dev_argument_bytes(prog, i);
  for (int j = 0; j < prog->n_results; j++) np->result_bytes += dev_result_bytes(prog, j);
  prog->impl = np;
  return NULL;
}

static void program_free(DevProgram *prog) { free(prog->impl); }

/* A tensor of zeros of a type; a dimension of unknown size gets its bound, or 0. */
static Err *zeros(const Type *t, Tensor **out) {
  if (t->kind == TY_TUPLE) {
    Tensor **elems = xcalloc((size_t)t->n_elems + 1, sizeof *elems);
    Err *e = NULL;
    int made = 0;
    while (made < t->n_elems && !(e = zeros(t->elems[made], &elems[made]))) made++;
    if (!e) *out = tensor_tuple(elems, t->n_elems);
    else
      while (made--) tensor_release(elems[made]);
    free(elems);
    return e;
  }
  int rank = t->kind == TY_TENSOR ? t->rank : 0;
  int64_t *dims = xcalloc((size_t)rank + 1, sizeof *dims);
  for (int i = 0; i < rank; i++) {
    int64_t bound = t->bounds && t->bounds[i] >= 0 ? t->bounds[i] : 0;
    dims[i] = t->dims[i] >= 0 ? t->dims[i] : bound;
  }
  Err *e = tensor_new(t->kind == TY_TENSOR ? t->dtype : DT_TOKEN, rank, dims, out);
  if (!e) memset((*out)->data, 0, tensor_bytes(*out));
  free(dims);
  return e;
}

/* Results are whole values, the same for all processes (n == 1); dev.c cuts them by their
 * shardings. */
static Err *run(DevProgram *prog, const DevPart *part, const Shards *args, const bool *donated,
                Shards *results, DevRun *out_run) {
  (void)part;
  (void)args;
  (void)donated;
  for (int j = 0; j < prog->n_results; j++) {
    results[j] = (Shards){1, xcalloc(1, sizeof(Tensor *))};
    TRY(zeros(prog->main->type->results[j], &results[j].t[0])); /* the caller frees what is there */
  }
  if (out_run) *out_run = (DevRun){.time_s = 0};
  return NULL;
}

static Err *cost(const DevProgram *prog, DevCost *out) {
  const NullProgram *np = prog->impl;
  *out = (DevCost){.flops = 0,
                   .transcendentals = 0,
                   .bytes_accessed = (double)(np->args_bytes + np->result_bytes),
                   .optimal_s = 0};
  return NULL;
}

static Err *memory(const DevProgram *prog, DevMemory *out) {
  const NullProgram *np = prog->impl;
  *out = (DevMemory){.args = np->args_bytes,
                     .outputs = np->result_bytes,
                     .peak = np->args_bytes + np->result_bytes};
  return NULL;
}

static Err *report(const DevProgram *prog, Buf *out_json) {
  (void)prog;
  buf_cstr(out_json, "{\"kernels\": []}\n");
  return NULL;
}

const DeviceOps dev_null = {
    .name = "null",
    .open = open,
    .close = close,
    .info = info,
    .compile = compile,
    .program_free = program_free,
    .run = run,
    .cost = cost,
    .memory = memory,
    .report = report,
};
