/* HLO's exchanges between devices. */
#include <stdlib.h>

#include "stablehlo/hlo/import_priv.h"

#define MOST_DEVICES ((int64_t)1 << 20)

/* ---- groups ---------------------------------------------------------------------------------- */

/* Rows of one length, short ones filled up with -1. */
static Err *put_listed(HloOp *o, size_t n, Hlo__ReplicaGroup *const *g) {
  size_t width = 0;
  for (size_t k = 0; k < n; k++) width = MAX(width, g[k]->n_replica_ids);
  if (n * width > (size_t)MOST_DEVICES) return err_new(ERR_INVALID, "groups of too many devices");
  int64_t *v = ARENA_ARRAY(o->s->im->m->arena, int64_t, n * width);
  for (size_t k = 0; k < n; k++)
    for (size_t j = 0; j < width; j++)
      v[k * width + j] = j < g[k]->n_replica_ids ? g[k]->replica_ids[j] : -1;
  hlo_put_matrix(o, "replica_groups", (int64_t)n, (int64_t)width, v);
  return NULL;
}

/* 0, 1, 2, ... in the shape of `reshape`, its dimensions permuted. */
static Err *iota_ids(Arena *a, size_t n, const int64_t *reshape, const int32_t *perm, size_t n_perm,
                     int64_t total, int64_t **out) {
  int64_t count = 1, stride[HLO_MAX_DEPTH], index[HLO_MAX_DEPTH] = {0};
  if (n > HLO_MAX_DEPTH || (n_perm && n_perm != n))
    return err_new(ERR_INVALID, "a damaged list of devices");
  for (size_t k = n; k-- > 0;) {
    stride[k] = count;
    if (reshape[k] < 1 || mul_overflows(count, reshape[k], &count) || count > MOST_DEVICES)
      return err_new(ERR_INVALID, "a list of too many devices");
  }
  uint64_t seen = 0;
  for (size_t k = 0; k < n_perm; k++) {
    if (perm[k] < 0 || (size_t)perm[k] >= n || seen >> perm[k] & 1)
      return err_new(ERR_INVALID, "a list of devices that is no permutation");
    seen |= (uint64_t)1 << perm[k];
  }
  if (count != total)
    return err_new(ERR_INVALID, "a list of %lld devices, %lld are wanted", (long long)count,
                   (long long)total);
  int64_t *v = *out = ARENA_ARRAY(a, int64_t, count);
  for (int64_t i = 0; i < count; i++) {
    for (size_t k = 0; k < n; k++) v[i] += index[k] * stride[n_perm ? (size_t)perm[k] : k];
    for (size_t k = n; k-- > 0;) {
      if (++index[k] < reshape[n_perm ? (size_t)perm[k] : k]) break;
      index[k] = 0;
    }
  }
  return NULL;
}

/* members: of a group, as the operation itself says it; 0: it does not. */
static Err *put_groups(HloOp *o, int64_t members) {
  const Hlo__DeviceList *d = o->i->collective_device_list;
  const Hlo__IotaGroups *g = d ? d->iota_replica_group_list : NULL;
  if (g && g->n_iota_reshape_dims) {
    int64_t *v, total;
    if (g->num_replica_groups < 1 || g->num_devices_per_group < 1 ||
        mul_overflows(g->num_replica_groups, g->num_devices_per_group, &total))
      return err_new(ERR_INVALID, "groups of no devices");
    TRY(iota_ids(o->s->im->m->arena, g->n_iota_reshape_dims, g->iota_reshape_dims,
                 g->iota_transpose_perm, g->n_iota_transpose_perm, total, &v));
    hlo_put_matrix(o, "replica_groups", g->num_replica_groups, g->num_devices_per_group, v);
    return NULL;
  }
  if (d && d->n_replica_groups) return put_listed(o, d->n_replica_groups, d->replica_groups);
  if (o->i->n_replica_groups) return put_listed(o, o->i->n_replica_groups, o->i->replica_groups);
  /* none: all devices of the kind are one group; none here either where the module does not say how many there are */
  const HloFile *f = o->s->im->file;
  int64_t n = o->i->channel_id > 0 && !f->replicas ? f->partitions : f->replicas;
  if (!n) n = members;
  if (n > MOST_DEVICES) return err_new(ERR_INVALID, "too many devices");
  int64_t *v = ARENA_ARRAY(o->s->im->m->arena, int64_t, n);
  for (int64_t i = 0; i < n; i++) v[i] = i;
  hlo_put_matrix(o, "replica_groups", n ? 1 : 0, n, v);
  return NULL;
}

static void put_channel(HloOp *o) {
  const Attr *ids = o->attrs[o->n_attrs - 1].value; /* groups or pairs */
  for (int64_t k = 0; k < ids->tensor->count; k++)
    hlo_names_devices(o->s->im, *(const int64_t *)tensor_at(ids->tensor, k) + 1);
  if (o->i->channel_id <= 0) return;
  o->s->im->by_channel = true;
  hlo_put_int(o, "channel_id", o->i->channel_id);
  hlo_put_int(o, "channel_type", 1);
}

/* ---- operations ------------------------------------------------------------------------------ */

/* Attributes that all have; then those of the kind. */
static Err *put_all(HloOp *o, OpKind kind) {
  TRY(put_groups(o, 0));
  put_channel(o);
  if (kind == OP_ALL_GATHER || kind == OP_ALL_REDUCE || kind == OP_REDUCE_SCATTER)
    hlo_put_bool(o, "use_global_device_ids", o->i->use_global_device_ids);
  if (kind == OP_ALL_GATHER || kind == OP_REDUCE_SCATTER) {
    if (o->i->n_dimensions != 1)
      return err_new(ERR_INVALID, "%s wants one dimension", o->i->opcode);
    hlo_put_int(o, kind == OP_ALL_GATHER ? "all_gather_dim" : "scatter_dimension",
                o->i->dimensions[0]);
  }
  if (kind == OP_ALL_REDUCE || kind == OP_REDUCE_SCATTER) {
    const Hlo__Computation *c;
    TRY(hlo_called(o, 0, &c));
    TRY(hlo_region(o, c));
  }
  return NULL;
}

Err *hlo_collective(HloOp *o, OpKind kind) {
  TRY(put_all(o, kind));
  return hlo_emit(o, kind);
}

/* The shape has operands beside the results, but for all-reduce: the last half, or the second. */
Err *hlo_collective_start(HloOp *o, OpKind kind) {
  if (kind != OP_ALL_REDUCE) {
    if (o->shape->element_type != HLO_TUPLE || o->shape->n_elems < 2)
      return err_new(ERR_INVALID, "%s without a result", o->i->opcode);
    o->out.n = 0;
    hlo_types(o->s->im->m, o->shape->elems[1], &o->out);
  }
  TRY(kind == OP_COLLECTIVE_PERMUTE ? hlo_permute(o, kind) : hlo_collective(o, kind));
  o->out.n = o->result.n;
  return NULL;
}

Err *hlo_permute(HloOp *o, OpKind kind) {
  size_t n = o->i->n_source_target_pairs;
  int64_t *v = ARENA_ARRAY(o->s->im->m->arena, int64_t, 2 * n);
  for (size_t k = 0; k < n; k++) {
    v[2 * k] = o->i->source_target_pairs[k]->source;
    v[2 * k + 1] = o->i->source_target_pairs[k]->target;
  }
  hlo_put_matrix(o, "source_target_pairs", (int64_t)n, 2, v);
  put_channel(o);
  return hlo_emit(o, kind);
}

/* StableHLO's scatters one array; several are so many operations. */
Err *hlo_reduce_scatter(HloOp *o, OpKind kind) {
  int n = o->in.n;
  if (n != o->out.n) return err_new(ERR_INVALID, "%d operands and %d results", n, o->out.n);
  Value **all = ARENA_ARRAY(o->s->im->m->arena, Value *, n);
  for (int k = 0; k < n; k++) {
    TRY(put_all(o, kind));
    TRY(hlo_emit_one(o, kind, 1, &o->in.v[k], o->out.v[k], &all[k]));
  }
  hlo_is(o, n, all);
  return NULL;
}

static int64_t group_size(const HloOp *o) {
  const Attr *g = o->attrs[0].value;
  return g->tensor->dims[1];
}

static Err *exchange(HloOp *o, Value *v, int64_t dim, int64_t count, Type *type, Value **out) {
  TRY(put_groups(o, count));
  put_channel(o);
  hlo_put_int(o, "split_dimension", dim);
  hlo_put_int(o, "concat_dimension", dim);
  hlo_put_int(o, "split_count", count);
  return hlo_emit_one(o, OP_ALL_TO_ALL, 1, &v, type, out);
}

/* A value with a dimension of size one in front. */
static Type *with_front(HloOp *o, const Type *t, int64_t front) {
  int64_t dims[HLO_MAX_DEPTH + 1] = {front};
  memcpy(dims + 1, t->dims, sizeof *dims * (size_t)t->rank);
  return type_tensor(o->s->im->m, t->dtype, t->rank + 1, dims);
}

/* One array cut along a dimension, or an operand for each member of the group: these are joined first. */
Err *hlo_all_to_all(HloOp *o, OpKind kind) {
  (void)kind;
  int n = o->in.n;
  Value *v;
  if (o->i->n_dimensions == 1 && n == 1) {
    TRY(put_groups(o, 0));
    int64_t count = group_size(o);
    o->n_attrs = 0;
    if (!count) return err_new(ERR_INVALID, "groups of devices that are not listed");
    TRY(exchange(o, o->in.v[0], o->i->dimensions[0], count, o->out.v[0], &v));
    hlo_is(o, 1, &v);
    return NULL;
  }
  if (!n || n != o->out.n) return err_new(ERR_INVALID, "%d operands and %d results", n, o->out.n);
  Value **all = ARENA_ARRAY(o->s->im->m->arena, Value *, n);
  const Type *t = o->in.v[0]->type;
  for (int k = 0; k < n; k++) {
    if (o->in.v[k]->type != t) return err_new(ERR_INVALID, "operands of several shapes");
    TRY(hlo_emit_one(o, OP_RESHAPE, 1, &o->in.v[k], with_front(o, t, 1), &all[k]));
  }
  hlo_put_int(o, "dimension", 0);
  TRY(hlo_emit_one(o, OP_CONCATENATE, n, all, with_front(o, t, n), &v));
  TRY(exchange(o, v, 0, n, with_front(o, t, n), &v));
  for (int k = 0; k < n; k++) {
    int64_t start[HLO_MAX_DEPTH + 1] = {k}, limit[HLO_MAX_DEPTH + 1] = {k + 1},
                                  ones[HLO_MAX_DEPTH + 1] = {1};
    for (int d = 0; d < t->rank; d++) limit[d + 1] = t->dims[d], ones[d + 1] = 1;
    hlo_put_ints(o, "start_indices", (size_t)t->rank + 1, start);
    hlo_put_ints(o, "limit_indices", (size_t)t->rank + 1, limit);
    hlo_put_ints(o, "strides", (size_t)t->rank + 1, ones);
    Value *part;
    TRY(hlo_emit_one(o, OP_SLICE, 1, &v, with_front(o, t, 1), &part));
    TRY(hlo_emit_one(o, OP_RESHAPE, 1, &part, o->out.v[k], &all[k]));
  }
  hlo_is(o, n, all);
  return NULL;
}
