/* Operations between processes: groups, channels, and their shapes. */
#include "ir/infer_priv.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* No number twice in v[0..n-1]; -1 is allowed as often as you like when `padded`. */
static Err *unique(Infer *f, const char *name, const int64_t *v, int n, int step, bool padded) {
  int count = n / step;
  int64_t *copy = tmp_dims(f, count);
  for (int i = 0; i < count; i++) copy[i] = v[i * step];
  if (count) qsort(copy, (size_t)count, sizeof *copy, by_value);
  for (int i = 0; i < count; i++) {
    if (copy[i] < (padded ? -1 : 0)) FAIL(f, "%s: %lld is not a process", name, (long long)copy[i]);
    if (i && copy[i] == copy[i - 1] && copy[i] >= 0)
      FAIL(f, "%s: process %lld is given twice", name, (long long)copy[i]);
  }
  return NULL;
}

/* Groups x members. *size: members of a group, 0 when all processes form one group or the groups
 * are unknown. */
static Err *groups(Infer *f, bool may_be_empty, bool same_size, bool all, int64_t *size) {
  const Attr *a = op_attr(f->op, "replica_groups");
  *size = 0;
  if (!a || a->kind != AT_TENSOR) return NULL; /* mesh axes */
  const Tensor *t = a->tensor;
  if (t->rank != 2 && !(t->count == 0 && t->rank <= 2))
    FAIL(f, "replica_groups has to be a matrix");
  if (t->count == 0) {
    if (!may_be_empty) FAIL(f, "replica_groups is empty");
    return NULL;
  }
  const int64_t *v = t->data;
  TRY(unique(f, "replica_groups", v, (int)t->count, 1, true));
  if (same_size && b_has_dim((int)t->count, v, -1))
    FAIL(f, "replica_groups has to be groups of one size");
  /* ids are 0 .. n-1 */
  int64_t n = 0;
  for (int64_t i = 0; i < t->count; i++) n += v[i] >= 0;
  for (int64_t i = 0; all && i < t->count; i++)
    if (v[i] >= n)
      FAIL(f, "replica_groups: process %lld is out of range, %lld are listed", (long long)v[i],
           (long long)n);
  /* with a channel but without global ids a group spans the partitions too: how many is not known
   * here */
  bool spans = op_int(f->op, "channel_id", 0) > 0 &&
               !op_bool(f->op, "use_global_device_ids", false) &&
               op_attr_spec(f->op->kind, STR("use_global_device_ids"));
  *size = spans ? 0 : t->dims[1];
  return NULL;
}

static Err *channel(Infer *f) {
  if (op_bool(f->op, "use_global_device_ids", false) && op_int(f->op, "channel_id", 0) <= 0)
    FAIL(f, "use_global_device_ids needs a positive channel id");
  return NULL;
}

static Err *pairwise_operands(Infer *f) {
  const Op *op = f->op;
  if (!op->n_operands) FAIL(f, "needs an operand");
  if (op->n_results != op->n_operands)
    FAIL(f, "has %d operands and %d results", op->n_operands, op->n_results);
  return want_tensors(f, EANY);
}

static Err *all_gather(Infer *f) {
  int64_t size;
  TRY(pairwise_operands(f));
  TRY(groups(f, true, true, true, &size));
  TRY(channel(f));
  for (int i = 0; i < f->op->n_operands; i++) {
    TRY(want_result_tensor(f, i, EANY));
    const Type *t = in_type(f, i), *r = res_type(f, i);
    int64_t dim;
    TRY(dim_index(f, "all_gather_dim", t->rank, &dim));
    if (r->rank != t->rank) FAIL(f, "operand and result %d differ in the number of dimensions", i);
    int64_t *d = tmp_dims(f, t->rank);
    for (int k = 0; k < t->rank; k++) d[k] = t->dims[k];
    if (t->dims[dim] == 0) FAIL(f, "dimension %lld of the operand is empty", (long long)dim);
    if (t->dims[dim] >= 0 && r->dims[dim] >= 0 && r->dims[dim] % t->dims[dim])
      FAIL(f, "dimension %lld of the result, %lld, is not a multiple of the operand's %lld",
           (long long)dim, (long long)r->dims[dim], (long long)t->dims[dim]);
    if (size && t->dims[dim] >= 0) {
      if (mul_overflows(t->dims[dim], size, &d[dim])) FAIL(f, "the result does not fit in 64 bits");
    } else {
      d[dim] = r->dims[dim];
    }
    out_shape(f, i, t->dtype, t->quant, t->rank, d);
  }
  return NULL;
}

static Err *all_reduce(Infer *f) {
  int64_t size;
  TRY(pairwise_operands(f));
  TRY(groups(f, true, false, true, &size));
  TRY(channel(f));
  const Type *elem;
  for (int i = 0; i < f->op->n_operands; i++) {
    const Type *t = in_type(f, i);
    TRY(want_reducer(f, 0, 1, &t, NULL, &elem));
    out_shape(f, i, elem->dtype, elem->quant, t->rank, t->dims);
  }
  return NULL;
}

static Err *all_to_all(Infer *f) {
  int64_t size;
  TRY(pairwise_operands(f));
  TRY(groups(f, true, true, true, &size));
  int64_t count = op_int(f->op, "split_count", 0), split, concat;
  if (count < 1) FAIL(f, "split_count has to be positive");
  if (size && size != count)
    FAIL(f, "split_count is %lld, but the groups have %lld members", (long long)count,
         (long long)size);
  for (int i = 0; i < f->op->n_operands; i++) {
    const Type *t = in_type(f, i);
    TRY(dim_index(f, "split_dimension", t->rank, &split));
    TRY(dim_index(f, "concat_dimension", t->rank, &concat));
    int64_t *d = tmp_dims(f, t->rank);
    for (int k = 0; k < t->rank; k++) d[k] = t->dims[k];
    if (d[split] >= 0 && d[split] % count)
      FAIL(f, "dimension %lld of size %lld does not divide into %lld", (long long)split,
           (long long)d[split], (long long)count);
    if (split != concat) {
      if (d[split] >= 0) d[split] /= count;
      if (d[concat] >= 0 && mul_overflows(d[concat], count, &d[concat]))
        FAIL(f, "the result does not fit in 64 bits");
    }
    out_shape(f, i, t->dtype, t->quant, t->rank, d);
  }
  return NULL;
}

static Err *reduce_scatter(Infer *f) {
  int64_t size, dim;
  TRY(want_tensor(f, 0, EANY));
  TRY(want_result_tensor(f, 0, EANY));
  TRY(groups(f, true, true, true, &size));
  TRY(channel(f));
  const Type *t = in_type(f, 0), *r = res_type(f, 0), *elem;
  TRY(dim_index(f, "scatter_dimension", t->rank, &dim));
  TRY(want_reducer(f, 0, 1, &t, NULL, &elem));
  if (r->rank != t->rank) FAIL(f, "operand and result differ in the number of dimensions");
  int64_t *d = tmp_dims(f, t->rank);
  for (int k = 0; k < t->rank; k++) d[k] = t->dims[k];
  if (t->dims[dim] == 0 || r->dims[dim] == 0) FAIL(f, "the scattered dimension is empty");
  if (d[dim] >= 0) {
    int64_t parts = size ? size : r->dims[dim] > 0 ? d[dim] / r->dims[dim] : 1;
    if (parts < 1 || d[dim] % parts || (!size && r->dims[dim] > 0 && d[dim] % r->dims[dim]))
      FAIL(f, "dimension %lld of size %lld does not divide into the result's", (long long)dim,
           (long long)d[dim]);
    d[dim] = r->dims[dim] < 0 && !size ? DIM_DYNAMIC : d[dim] / parts;
  }
  out_shape(f, 0, elem->dtype, elem->quant, t->rank, d);
  return NULL;
}

static Err *cross_replica_sum(Infer *f) {
  int64_t size;
  TRY(pairwise_operands(f));
  TRY(groups(f, true, false, true, &size));
  for (int i = 0; i < f->op->n_results; i++) out_like(f, i, in_type(f, i));
  return NULL;
}

/* With has_dynamic_root an operand more than results, the last: the root of each. */
static Err *rooted(Infer *f) {
  const Op *op = f->op;
  int64_t size;
  int root = op_bool(op, "has_dynamic_root", false), n = op->n_operands - root;
  TRY(groups(f, op->kind == OP_COLLECTIVE_REDUCE, false, false, &size));
  TRY(channel(f));
  TRY(want_tensors(f, EANY));
  if (n != op->n_results || !n)
    FAIL(f, "has %d operands and %d results", op->n_operands, op->n_results);
  if (root) {
    TRY(want_shape_vector(f, n, n));
    if (in_type(f, n)->dtype != DT_I32) FAIL(f, "the root has to be a vector of i32");
  }
  for (int i = 0; i < n; i++) {
    const Type *t = in_type(f, i), *elem = t;
    if (op->kind == OP_COLLECTIVE_REDUCE) TRY(want_reducer(f, 0, 1, &t, NULL, &elem));
    out_shape(f, i, elem->dtype, elem->quant, t->rank, t->dims);
  }
  return NULL;
}

static Err *pairs(Infer *f) {
  const int64_t *v;
  int n = op_ints(f->op, "source_target_pairs", &v);
  const Attr *a = op_attr(f->op, "source_target_pairs");
  if (!a) return NULL;
  if (a->kind == AT_TENSOR && a->tensor->count && (a->tensor->rank != 2 || a->tensor->dims[1] != 2))
    FAIL(f, "source_target_pairs has to be an n x 2 matrix");
  TRY(unique(f, "sources of source_target_pairs", v, n, 2, false));
  return n ? unique(f, "targets of source_target_pairs", v + 1, n, 2, false) : NULL;
}

static Err *collective_permute(Infer *f) {
  TRY(want_tensor(f, 0, EMOST));
  TRY(pairs(f));
  out_like(f, 0, in_type(f, 0));
  return NULL;
}

static Err *process_id(Infer *f) {
  const Type *r = res_type(f, 0);
  if (r->kind != TY_TENSOR || r->rank || r->dtype != DT_U32) FAIL(f, "the result is tensor<ui32>");
  out_declared(f, 0);
  return NULL;
}

static Err *is_token(Infer *f, const char *what, const Type *t) {
  return t->kind == TY_TOKEN ? NULL : op_err(f->op, ERR_INVALID, "%s has to be a token", what);
}

static Err *channels(Infer *f) {
  const Op *op = f->op;
  bool send = op->kind == OP_SEND, recv = op->kind == OP_RECV,
       host = op_bool(op, "is_host_transfer", false);
  if (op->n_operands < 1 || op->n_results < 1) FAIL(f, "takes and gives a token");
  TRY(is_token(f, "the last operand", in_type(f, op->n_operands - 1)));
  TRY(is_token(f, "the last result", res_type(f, op->n_results - 1)));
  if (send || recv) {
    int64_t type = op_int(op, "channel_type", 0);
    if (!host && type != 1) FAIL(f, "channel_type has to be 1 between devices");
    if (host && type != (send ? 2 : 3))
      FAIL(f, "channel_type has to be %d with is_host_transfer", send ? 2 : 3);
    TRY(pairs(f));
  }
  for (int i = 0; i < op->n_results; i++) out_declared(f, i);
  return NULL;
}

static Err *infeed_layout(Infer *f) {
  TRY(channels(f));
  for (int i = 0; i + 1 < f->op->n_results; i++) TRY(want_result_tensor(f, i, EANY));
  const Attr *a = op_attr(f->op, "layout");
  if (!a) return NULL;
  if (a->n != f->op->n_results - 1)
    FAIL(f, "layout has %d entries for %d values", a->n, f->op->n_results - 1);
  for (int i = 0; i < a->n; i++)
    if (a->items[i]->kind != AT_ARRAY && a->items[i]->kind != AT_INTS)
      FAIL(f, "layout has to be a list of lists");
  return NULL;
}

static Err *async(Infer *f) {
  const Op *op = f->op;
  if (op->kind == OP_ASYNC_START) {
    if (res_type(f, 0)->kind != TY_FUTURE) FAIL(f, "the result has to be a future");
    TRY(want_returns(f, 0, res_type(f, 0)->n_elems));
    const Op *ret = region_return(f, 0), *inner = op->regions[0]->first;
    if (inner == ret || inner->next != ret)
      FAIL(f, "the body has to be one operation and a return");
    OpClass c = inner->kind == OP_UNKNOWN ? OC_COLLECTIVE : op_info[inner->kind].cls;
    if (c != OC_COLLECTIVE && inner->kind != OP_SLICE && inner->kind != OP_DYNAMIC_SLICE &&
        inner->kind != OP_DYNAMIC_UPDATE_SLICE && inner->kind != OP_CUSTOM_CALL)
      FAIL(f, "the body has to be a collective or a slice");
    for (int i = 0; i < ret->n_operands; i++)
      if (!types_ok(ret->operands[i]->type, res_type(f, 0)->elems[i]))
        FAIL(f, "the future's types differ from the body's");
    TRY(want_region_args(f, 0, op->n_operands));
    for (int i = 0; i < op->n_operands; i++)
      if (!types_ok(op->regions[0]->args[i]->type, in_type(f, i)))
        FAIL(f, "argument %d of the body has another type", i);
  } else {
    const Type *t = in_type(f, 0);
    if (t->kind != TY_FUTURE) FAIL(f, "the operand has to be a future");
    if (t->n_elems != op->n_results)
      FAIL(f, "the future holds %d values, %d are taken", t->n_elems, op->n_results);
    for (int i = 0; i < op->n_results; i++)
      if (!types_ok(t->elems[i], res_type(f, i)))
        FAIL(f, "result %d has another type than the future holds", i);
  }
  for (int i = 0; i < op->n_results; i++) out_declared(f, i);
  return NULL;
}

InferFn infer_collective_fn(OpKind k) {
  static const InferRow rows[] = {
      {OP_PARTITION_ID, process_id},
      {OP_REPLICA_ID, process_id},
      {OP_ALL_GATHER, all_gather},
      {OP_ALL_REDUCE, all_reduce},
      {OP_ALL_TO_ALL, all_to_all},
      {OP_REDUCE_SCATTER, reduce_scatter},
      {OP_COLLECTIVE_BROADCAST, rooted},
      {OP_COLLECTIVE_REDUCE, rooted},
      {OP_COLLECTIVE_PERMUTE, collective_permute},
      {OP_CROSS_REPLICA_SUM, cross_replica_sum},
      {OP_INFEED, infeed_layout},
      {OP_OUTFEED, channels},
      {OP_SEND, channels},
      {OP_RECV, channels},
      {OP_ASYNC_START, async},
      {OP_ASYNC_DONE, async},
  };
  return infer_find(rows, COUNT_OF(rows), k);
}
