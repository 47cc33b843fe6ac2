/* pass_ragged: the custom call @ragged_all_to_all, as jax.lax.ragged_all_to_all is lowered, becomes an
 * all_gather and a choice of rows. Operands: rows to send, the result before it, and by update (as many
 * to each process of the group, in its order) where the rows to send begin, how many, where they go in
 * the receiver's result, how many are received. Here each process looks up who sends a row to it.
 */
#include <stdlib.h>

#include "compile/pass/pass_priv.h"
#include "ir/exchange.h"

typedef struct Ragged {
  const Attr *groups, *channel; /* channel: NULL, none */
  int64_t peers, each;          /* processes of a group, updates for each of them */
} Ragged;

static const Attr *config(const Op *op, const char *name) {
  const Attr *a = op_attr(op, "backend_config");
  if (!a) a = op_attr(op, "mhlo.backend_config");
  return a && a->kind == AT_DICT ? attrs_get(a->dict, a->n, name) : NULL;
}

static bool fits(const Op *op, Ragged *r) {
  if (!op_is_ragged(op)) return false;
  r->groups = config(op, "replica_groups");
  r->channel = config(op, "channel_id");
  if (r->channel && r->channel->i <= 0) r->channel = NULL;
  if (!r->groups || r->groups->kind != AT_TENSOR || r->groups->tensor->rank != 2) return false;
  r->peers = r->groups->tensor->dims[1];
  const Type *x = op->operands[0]->type, *out = op->operands[1]->type;
  if (!type_is_static(x) || out != op_type(op) || x->rank < 1 || x->rank != out->rank) return false;
  for (int d = 1; d < x->rank; d++)
    if (x->dims[d] != out->dims[d]) return false;
  for (int i = 2; i < 6; i++)
    if (op->operands[i]->type != op->operands[2]->type) return false;
  const Type *t = op->operands[2]->type;
  r->each = t->rank == 1 && r->peers > 0 ? t->dims[0] / r->peers : 0;
  return r->each > 0 && r->each * r->peers == t->dims[0];
}

static Value *scalar_op(Build *b, OpKind kind) {
  Type *u32 = b_type(b, DT_U32, 0, NULL);
  return &b_op(b, kind, 0, NULL, 1, &u32, 0, NULL, 0, NULL)->results[0];
}

/* This process's place in its group: looked up by its number, of partitions where there is a channel. */
static Value *place_in_group(Build *b, const Ragged *r) {
  const Tensor *g = r->groups->tensor;
  int64_t most = 0, start[1] = {1};
  for (int64_t i = 0; i < g->count; i++) most = MAX(most, elem_get_i64(g->dtype, tensor_at(g, i)));
  int64_t dims[1] = {most + 1};
  int32_t *table = xcalloc((size_t)dims[0], sizeof *table);
  for (int64_t i = 0; i < g->count; i++) {
    int64_t id = elem_get_i64(g->dtype, tensor_at(g, i));
    if (id >= 0) table[id] = (int32_t)(i % r->peers);
  }
  Value *all = b_const(b, b_type(b, DT_I32, 1, dims), table);
  free(table);
  Value *own = scalar_op(b, r->channel ? OP_PARTITION_ID : OP_REPLICA_ID);
  return b_reshape(b, b_dynamic_slice(b, all, &own, start), 0, NULL);
}

/* Of x and the updates, those of all processes of the group behind each other. */
static void gather(Build *b, const Ragged *r, Value *x, Value *updates, Value **all_x,
                   Value **all_updates) {
  Value *in[2] = {x, updates};
  Type *types[2];
  for (int i = 0; i < 2; i++) {
    int64_t dims[MAX_RANK];
    memcpy(dims, in[i]->type->dims, sizeof *dims * (size_t)in[i]->type->rank);
    dims[0] *= r->peers;
    types[i] = b_type(b, in[i]->type->dtype, in[i]->type->rank, dims);
  }
  NamedAttr attrs[4] = {b_int(b, "all_gather_dim", 0)};
  int n = 1;
  if (r->channel) attrs[n++] = b_int(b, "channel_id", r->channel->i);
  attrs[n++] = (NamedAttr){STR("replica_groups"), (Attr *)r->groups};
  if (r->channel) attrs[n++] = b_bool(b, "use_global_device_ids", true);
  Op *op = b_op(b, OP_ALL_GATHER, 2, in, 2, types, n, attrs, 0, NULL);
  *all_x = &op->results[0], *all_updates = &op->results[1];
}

/* Row k (0 to 2: begin, number, where) of the updates for this process, flat: [peers * each]. */
static Value *row(Build *b, const Ragged *r, Value *mine, int64_t k) {
  int64_t flat[1] = {r->peers * r->each};
  return b_reshape(b, b_slice_dim(b, mine, 1, k, k + 1), 1, flat);
}

static Value *rewritten(Build *b, const Op *op) {
  Ragged r;
  if (!fits(op, &r)) return NULL;
  Value *x = op->operands[0], *out = op->operands[1], *parts[3];
  int64_t rows = x->type->dims[0], made = out->type->dims[0], n = r.peers * r.each;
  int64_t wide = rows ? type_count(x->type) / rows : 0;
  if (!wide || !made) return out;
  for (int i = 0; i < 3; i++) parts[i] = b_convert(b, op->operands[2 + i], DT_I32);
  Value *all_x, *all;
  gather(b, &r, b_reshape(b, x, 2, (int64_t[]){rows, wide}), b_concat(b, 3, parts, 0), &all_x,
         &all);
  Value *zero = b_scalar_i64(b, DT_I32, 0);
  Value *at = b_mul(b, place_in_group(b, &r), b_scalar_i64(b, DT_I32, r.each));
  Value *mine = b_dynamic_slice(b, b_reshape(b, all, 3, (int64_t[]){r.peers, 3, n}),
                                (Value *[]){zero, zero, at}, (int64_t[]){r.peers, 3, r.each});
  Type *by_peer = b_type(b, DT_I32, 2, (int64_t[]){r.peers, r.each});
  Value *first =
      b_mul(b, b_iota(b, by_peer, 0), b_bcast_scalar(b, b_scalar_i64(b, DT_I32, rows), by_peer));
  Value *begin = b_add(b, row(b, &r, mine, 0), b_reshape(b, first, 1, &n));
  Type *grid = b_type(b, DT_I32, 2, (int64_t[]){made, n}); /* row of the result, update */
  Value *behind = b_sub(b, b_iota(b, grid, 0), b_bcast_last(b, row(b, &r, mine, 2), grid));
  Value *none = b_bcast_scalar(b, zero, grid);
  Value *in = b_and(b, b_compare(b, "GE", behind, none),
                    b_compare(b, "LT", behind, b_bcast_last(b, row(b, &r, mine, 1), grid)));
  Value *from = b_select(b, in, b_add(b, behind, b_bcast_last(b, begin, grid)), none);
  int64_t updates = 1;
  Value *taken = b_take_rows(b, all_x, b_reduce(b, OP_ADD, from, 1, &updates));
  Value *any = b_reduce(b, OP_OR, in, 1, &updates);
  Type *flat = b_type(b, x->type->dtype, 2, (int64_t[]){made, wide});
  Value *sent = b_bcast(b, any, 2, flat->dims, (int[]){0});
  Value *was = b_reshape(b, out, 2, flat->dims);
  return b_reshape(b, b_select(b, sent, taken, was), out->type->rank, out->type->dims);
}

Err *pass_ragged(Module *m) {
  compile_rewrite(m, OP_CUSTOM_CALL, rewritten);
  return NULL;
}
