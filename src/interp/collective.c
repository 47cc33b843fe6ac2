/* Operations between processes. All processes are in one job, so a collective is a copy between
 * tensors that are all here.
 *
 * Process groups follow the specification: ids in replica_groups are replicas, partitions or
 * flattened ids, depending on channel_id and use_global_device_ids. A group of which some member
 * does not run this op (control flow went another way) would wait forever on a real machine and is
 * an error here. Programs of a run_parallel that differ meet at their collectives (struct Meeting).
 */
#include "interp/interp_priv.h"

/* ---- groups -------------------------------------------------------------------------------- */

typedef enum Grouping { CROSS_REPLICA, CROSS_PARTITION, CROSS_BOTH, FLATTENED } Grouping;

void process_groups_free(ProcessGroups *g) {
  free(g->member);
  free(g->size);
}

static int group_find(const ProcessGroups *g, int process, int *place) {
  for (int i = 0; i < g->n; i++)
    for (int k = 0; k < g->size[i]; k++)
      if (g->member[i * g->width + k] == process) {
        *place = k;
        return i;
      }
  return -1;
}

static Grouping grouping_reduce(const Op *op) {
  bool channel = op_int(op, "channel_id", 0) > 0;
  if (op_bool(op, "use_global_device_ids", false)) return FLATTENED;
  return channel ? CROSS_BOTH : CROSS_REPLICA;
}
static Grouping grouping_plain(const Op *op) {
  return op_int(op, "channel_id", 0) > 0 ? CROSS_PARTITION : CROSS_REPLICA;
}

static Err *groups_new(const Op *op, const char *attr, Grouping how, int replicas, int partitions,
                       ProcessGroups *out) {
  const int n = replicas * partitions;
  const int64_t *ids;
  int total = op_ints(op, attr, &ids), rows = 1, cols = total;
  const Attr *a = op_attr(op, attr);
  if (a && a->kind != AT_TENSOR && a->kind != AT_INTS)
    return op_err(op, ERR_UNIMPLEMENTED, "%s that are not a list of numbers", attr);
  if (a && a->kind == AT_TENSOR && a->tensor->rank == 2) {
    rows = (int)a->tensor->dims[0];
    cols = (int)a->tensor->dims[1];
  }
  int limit = how == CROSS_PARTITION ? partitions : how == FLATTENED ? n : replicas;
  int64_t *all = NULL;
  if (!total) { /* empty: one group of all */
    all = xmalloc(sizeof *all * (size_t)limit);
    for (int i = 0; i < limit; i++) all[i] = i;
    ids = all;
    rows = 1;
    cols = limit;
  }
  int copies = how == CROSS_REPLICA ? partitions : how == CROSS_PARTITION ? replicas : 1;
  int repeat = how == CROSS_BOTH ? partitions : 1;
  ProcessGroups g = {.n = rows * copies, .width = cols * repeat};
  g.member = xmalloc(sizeof(int) * (size_t)(g.n * g.width) + 1);
  g.size = xcalloc((size_t)g.n + 1, sizeof(int));
  uint8_t *seen = xcalloc((size_t)n, 1);
  Err *err = NULL;
  for (int r = 0; r < rows && !err; r++)
    for (int c = 0; c < copies && !err; c++) {
      int row = r * copies + c;
      for (int rep = 0; rep < repeat; rep++)
        for (int k = 0; k < cols && !err; k++) {
          int64_t id = ids[r * cols + k];
          if (id < 0) continue;
          if (id >= limit) {
            err =
                op_err(op, ERR_INVALID, "%s names %lld, there are %d", attr, (long long)id, limit);
            break;
          }
          int p = how == CROSS_REPLICA     ? (int)id * partitions + c
                  : how == CROSS_PARTITION ? c * partitions + (int)id
                  : how == CROSS_BOTH      ? (int)id * partitions + rep
                                           : (int)id;
          g.member[row * g.width + g.size[row]++] = p;
          /* the sources of a permutation are unique, and so are the targets; a process may be both
           */
          if (strcmp(attr, "source_target_pairs") && seen[p]++)
            err = op_err(op, ERR_INVALID, "%s names %lld twice", attr, (long long)id);
        }
    }
  free(seen);
  free(all);
  if (err) process_groups_free(&g);
  else *out = g;
  return err;
}

static Err *groups_of(const Eval *e, const char *attr, Grouping how, ProcessGroups *out) {
  return groups_new(e->op, attr, how, e->run->replicas, e->run->partitions, out);
}

/* Pairs of sources and targets, joined where they share a process. */
static void join_pairs(int n, ProcessGroups *g) {
  int *of = xmalloc(sizeof *of * (size_t)n);
  for (int p = 0; p < n; p++) of[p] = -1;
  for (int i = 0; i < g->n; i++) {
    int a = g->member[2 * i], b = g->member[2 * i + 1], from = of[b], to = of[a] >= 0 ? of[a] : a;
    for (int p = 0; p < n && from >= 0; p++)
      if (of[p] == from) of[p] = to;
    of[a] = of[b] = to;
  }
  free(g->member);
  free(g->size);
  *g = (ProcessGroups){.width = n, .size = xcalloc((size_t)n + 1, sizeof(int))};
  g->member = xmalloc(sizeof(int) * (size_t)n * (size_t)n + 1);
  for (int first = 0; first < n; first++) {
    for (int p = first; p < n; p++) {
      if (of[p] < 0 || of[p] != of[first]) continue;
      g->member[g->n * n + g->size[g->n]++] = p;
    }
    int mine = of[first];
    for (int p = 0; p < n; p++)
      if (of[p] == mine) of[p] = -1;
    g->n += g->size[g->n] > 0;
  }
  free(of);
}

Err *interp_pairs(const Op *op, int replicas, int partitions, ProcessGroups *out) {
  TRY(groups_new(op, "source_target_pairs", grouping_plain(op), replicas, partitions, out));
  if (!op_attr(op, "source_target_pairs") || out->width != 2) out->n = 0;
  return NULL;
}

Err *interp_groups(const Op *op, int replicas, int partitions, ProcessGroups *out) {
  switch (op->kind) {
  case OP_COLLECTIVE_PERMUTE:
    TRY(interp_pairs(op, replicas, partitions, out));
    join_pairs(replicas * partitions, out);
    return NULL;
  case OP_ALL_TO_ALL:
  case OP_COLLECTIVE_BROADCAST:
    return groups_new(op, "replica_groups", grouping_plain(op), replicas, partitions, out);
  case OP_COLLECTIVE_REDUCE: {
    bool flat = op_bool(op, "use_global_device_ids", false);
    return groups_new(op, "replica_groups", flat ? FLATTENED : grouping_plain(op), replicas,
                      partitions, out);
  }
  case OP_CROSS_REPLICA_SUM:
    return groups_new(op, "replica_groups", CROSS_REPLICA, replicas, partitions, out);
  default: return groups_new(op, "replica_groups", grouping_reduce(op), replicas, partitions, out);
  }
}

/* ---- operands of all processes ------------------------------------------------------------- */

typedef struct Meeting {
  OpKind kind;
  int64_t channel;
  int n_in, arrived, left;
  uint8_t *here;
  Shards *in;
} Meeting;

static void meeting_free(Meeting *m) {
  for (int i = 0; i < m->n_in; i++) shards_free(&m->in[i]);
  free(m->in);
  free(m->here);
  free(m);
}

void meetings_free(Run *run) {
  for (int i = 0; i < run->meetings.n; i++) meeting_free(run->meetings.v[i]);
  vec_free(&run->meetings);
}

/* Operands with the parts of the processes that run another program, or run elsewhere. present: n
 * flags. Free with inputs_free. */
static Err *inputs_of(Eval *e, Shards **out, uint8_t *present) {
  Ctx *c = e->ctx;
  Run *run = c->run;
  int mine = 0;
  for (int p = 0; p < c->n; p++) mine += present[p] = c->active[p] != 0;
  Shards *in = xcalloc((size_t)e->n_in + 1, sizeof *in);
  if (mine == c->n || !(run->baton || run->part)) {
    for (int i = 0; i < e->n_in; i++) in[i] = shards_retain(&e->sin[i]);
    *out = in;
    return NULL;
  }
  if (run->part) {
    for (int i = 0; i < e->n_in; i++) {
      in[i] = shards_retain(&e->sin[i]);
      shards_widen(&in[i], c->n);
    }
    *out = in;
    return run->part->meet(run->part->arg, e->op, c->active, in, present);
  }
  int64_t channel = op_int(e->op, "channel_id", 0);
  Meeting *m = NULL;
  for (int i = 0; i < run->meetings.n && !m; i++) {
    Meeting *x = run->meetings.v[i];
    bool fits =
        x->kind == e->op->kind && x->channel == channel && x->n_in == e->n_in && x->arrived < c->n;
    for (int p = 0; p < c->n && fits; p++) fits = !(c->active[p] && x->here[p]);
    if (fits) m = x;
  }
  if (!m) {
    m = xcalloc(1, sizeof *m);
    *m = (Meeting){.kind = e->op->kind,
                   .channel = channel,
                   .n_in = e->n_in,
                   .here = xcalloc((size_t)c->n, 1),
                   .in = xcalloc((size_t)e->n_in + 1, sizeof(Shards))};
    for (int i = 0; i < e->n_in; i++) m->in[i] = shards_many(c->n);
    *vec_push(&run->meetings) = m;
  }
  for (int p = 0; p < c->n; p++) {
    if (!c->active[p]) continue;
    m->here[p] = 1;
    m->arrived++;
    for (int i = 0; i < e->n_in; i++) m->in[i].t[p] = tensor_retain(shards_at(&e->sin[i], p));
  }
  baton_progress(run);
  while (m->arrived < c->n) {
    Err *err = baton_wait(run, e->op);
    if (err) {
      free(in);
      return err;
    }
  }
  for (int i = 0; i < e->n_in; i++) in[i] = shards_retain(&m->in[i]);
  memset(present, 1, (size_t)c->n);
  m->left += mine;
  if (m->left == c->n) {
    for (int i = 0; i < run->meetings.n; i++)
      if (run->meetings.v[i] == m) run->meetings.v[i] = run->meetings.v[--run->meetings.n];
    meeting_free(m);
  }
  *out = in;
  return NULL;
}

static void inputs_free(Eval *e, Shards *in) {
  for (int i = 0; i < e->n_in && in; i++) shards_free(&in[i]);
  free(in);
}

static Err *absent(const Op *op, const uint8_t *present, const ProcessGroups *g, int row) {
  for (int k = 0; k < g->size[row]; k++) {
    int p = g->member[row * g->width + k];
    if (!present[p])
      return op_err(op, ERR_PRECONDITION,
                    "process %d of the group does not come here: the others would wait forever", p);
  }
  return NULL;
}

/* Calls fn for each active process, with its group; group -1: in none. */
typedef struct Call {
  Eval *e;
  const ProcessGroups *g;
  const Shards *in;
  int row, place, process;
} Call;

static Err *for_each(Eval *e, const char *attr, Grouping how, bool all_grouped,
                     Err *(*fn)(Call *c)) {
  ProcessGroups g;
  TRY(groups_of(e, attr, how, &g));
  Shards *in = NULL;
  uint8_t *present = xcalloc((size_t)e->ctx->n, 1);
  Err *err = inputs_of(e, &in, present);
  for (int i = 0; i < e->n_out && !err; i++) e->sout[i] = shards_many(e->ctx->n);
  for (int p = 0; p < e->ctx->n && !err; p++) {
    if (!e->ctx->active[p]) continue;
    Call c = {.e = e, .g = &g, .in = in, .process = p};
    c.row = group_find(&g, p, &c.place);
    if (c.row < 0 && all_grouped) err = op_err(e->op, ERR_INVALID, "process %d is in no group", p);
    if (c.row >= 0 && !err) err = absent(e->op, present, &g, c.row);
    if (!err) err = fn(&c);
  }
  inputs_free(e, in);
  free(present);
  process_groups_free(&g);
  return err;
}

static Tensor *member(const Call *c, int i, int k) {
  return shards_at(&c->in[i], c->g->member[c->row * c->g->width + k]);
}

static Tensor *zeros_like(const Eval *e, int i, const Tensor *t) {
  Tensor *z = tensor_zeros(t->dtype, t->rank, t->dims);
  const Quant *q = e->op->results[i].type->quant;
  if (q && q->n)
    for (int64_t k = 0; k < z->count; k++)
      elem_set_i64(z->dtype, tensor_at(z, k), q->zero_points[0]);
  return z;
}

/* ---- the operations ------------------------------------------------------------------------ */

static Err *ids(Eval *e, bool replica) {
  Run *run = e->run;
  e->sout[0] = shards_many(e->ctx->n);
  for (int p = 0; p < e->ctx->n; p++) {
    if (!e->ctx->active[p]) continue;
    Tensor *t = tensor_make(DT_U32, 0, NULL);
    *(uint32_t *)t->data = (uint32_t)(replica ? p / run->partitions : p % run->partitions);
    e->sout[0].t[p] = t;
  }
  return NULL;
}
Err *sem_partition_id(Eval *e) { return ids(e, false); }
Err *sem_replica_id(Eval *e) { return ids(e, true); }

static Err *all_gather_one(Call *c) {
  int n = c->g->size[c->row];
  Tensor **parts = xmalloc(sizeof *parts * (size_t)n);
  for (int i = 0; i < c->e->n_out; i++) {
    for (int k = 0; k < n; k++) parts[k] = member(c, i, k);
    c->e->sout[i].t[c->process] =
        tensor_concat(parts, n, (int)op_int(c->e->op, "all_gather_dim", 0));
  }
  free(parts);
  return NULL;
}
Err *sem_all_gather(Eval *e) {
  return for_each(e, "replica_groups", grouping_reduce(e->op), true, all_gather_one);
}

/* A sum or a product of bf16: carried in f32 and rounded once, as XLA does (f16 is not). */
static bool carried_wide(const Region *body, OpKind *kind) {
  DType dt = body->args[0]->type->dtype;
  const Op *op = body->first;
  *kind = op->kind;
  return dt == DT_BF16 && (op->kind == OP_ADD || op->kind == OP_MULTIPLY) &&
         op->next == body->last && body->last->operands[0] == &op->results[0] &&
         ((op->operands[0] == body->args[0] && op->operands[1] == body->args[1]) ||
          (op->operands[0] == body->args[1] && op->operands[1] == body->args[0]));
}

static Tensor *fold_wide(Call *c, int i, OpKind kind) {
  Tensor *first = member(c, i, 0), *acc = tensor_make(DT_F32, first->rank, first->dims);
  float *a = acc->data;
  for (int j = 0; j < c->g->size[c->row]; j++) {
    Tensor *x = tensor_convert(member(c, i, j), DT_F32);
    const float *v = x->data;
    for (int64_t k = 0; k < acc->count; k++)
      a[k] = j == 0 ? v[k] : kind == OP_ADD ? a[k] + v[k] : a[k] * v[k];
    tensor_release(x);
  }
  Tensor *out = tensor_convert(acc, c->e->op->results[i].type->dtype);
  tensor_release(acc);
  return out;
}

/* Folds operand i over the group from its first member on, in the type of the body. */
static Err *fold(Call *c, int i, Tensor **out) {
  Eval *e = c->e;
  int n = c->g->size[c->row];
  Captured k = {e->ctx, c->process};
  Eval one = {.op = e->op,
              .process = c->process,
              .run = e->run,
              .captured = ctx_captured,
              .captured_arg = &k};
  Tensor *first = member(c, i, 0);
  if (!e->op->n_regions) { /* cross-replica-sum */
    Tensor *acc = tensor_retain(first);
    Value *operands[2] = {e->op->operands[i], e->op->operands[i]};
    Op add = *e->op;
    add.kind = OP_ADD;
    add.n_attrs = 0;
    add.n_operands = 2;
    add.operands = operands;
    for (int j = 1; j < n; j++) {
      Tensor *in[2] = {acc, member(c, i, j)}, *sum = NULL;
      Eval two = {.op = &add, .n_in = 2, .n_out = 1, .in = in, .out = &sum, .run = e->run};
      Err *err = sem_add(&two);
      tensor_release(acc);
      if (err) return err;
      acc = sum;
    }
    *out = acc;
    return NULL;
  }
  const Region *body = e->op->regions[0];
  if (body->n_args != 2 || body->last->n_operands != 1)
    return op_err(e->op, ERR_INVALID, "the body takes %d arguments", body->n_args);
  OpKind kind;
  if (carried_wide(body, &kind)) {
    *out = fold_wide(c, i, kind);
    return NULL;
  }
  DType dt = body->args[0]->type->dtype;
  RegionEval *re = region_eval_new(&one, body);
  Tensor *from = tensor_convert(first, dt), *acc = tensor_make(dt, first->rank, first->dims);
  if (acc->count) memcpy(acc->data, from->data, tensor_bytes(acc));
  tensor_release(from);
  Err *err = NULL;
  for (int j = 1; j < n && !err && acc->count; j++) {
    Tensor *x = tensor_convert(member(c, i, j), dt), *args[2] = {acc, x}, *res;
    err = region_eval_run(re, args, acc->count, &res);
    if (!err) memcpy(acc->data, res->data, tensor_bytes(acc));
    tensor_release(x);
  }
  region_eval_free(re);
  if (!err) *out = tensor_convert(acc, e->op->results[i].type->dtype);
  tensor_release(acc);
  return err;
}

static Err *all_reduce_one(Call *c) {
  if (c->place > 0) { /* the group's first active member has computed it */
    int first = c->g->member[c->row * c->g->width];
    if (c->e->ctx->active[first]) {
      for (int i = 0; i < c->e->n_out; i++)
        c->e->sout[i].t[c->process] = tensor_retain(c->e->sout[i].t[first]);
      return NULL;
    }
  }
  for (int i = 0; i < c->e->n_out; i++) TRY(fold(c, i, &c->e->sout[i].t[c->process]));
  return NULL;
}

/* Results of the first member of each group must be there before those of the others. */
static Err *all_reduce(Eval *e, Grouping how) {
  ProcessGroups g;
  TRY(groups_of(e, "replica_groups", how, &g));
  Shards *in = NULL;
  uint8_t *present = xcalloc((size_t)e->ctx->n, 1);
  Err *err = inputs_of(e, &in, present);
  for (int i = 0; i < e->n_out && !err; i++) e->sout[i] = shards_many(e->ctx->n);
  for (int row = 0; row < g.n && !err; row++) {
    for (int k = 0; k < g.size[row] && !err; k++) {
      int p = g.member[row * g.width + k];
      if (!e->ctx->active[p]) continue;
      Call c = {.e = e, .g = &g, .in = in, .row = row, .place = k, .process = p};
      err = absent(e->op, present, &g, row);
      if (!err) err = all_reduce_one(&c);
    }
  }
  for (int p = 0; p < e->ctx->n && !err; p++)
    if (e->ctx->active[p] && e->n_out && !e->sout[0].t[p])
      err = op_err(e->op, ERR_INVALID, "process %d is in no group", p);
  inputs_free(e, in);
  free(present);
  process_groups_free(&g);
  return err;
}
Err *sem_all_reduce(Eval *e) { return all_reduce(e, grouping_reduce(e->op)); }
Err *sem_cross_replica_sum(Eval *e) { return all_reduce(e, CROSS_REPLICA); }

static Tensor *part_of(const Tensor *t, int64_t dim, int64_t n, int64_t i) {
  int64_t start[MAX_RANK] = {0}, size[MAX_RANK];
  memcpy(size, t->dims, sizeof *size * (size_t)t->rank);
  size[dim] = t->dims[dim] / n;
  start[dim] = size[dim] * i;
  return tensor_cut(t, start, size);
}

static Err *reduce_scatter_one(Call *c) {
  int64_t dim = op_int(c->e->op, "scatter_dimension", 0), n = c->g->size[c->row];
  Tensor *whole;
  TRY(fold(c, 0, &whole));
  Err *err = NULL;
  if (dim < 0 || dim >= whole->rank || whole->dims[dim] % n)
    err = op_err(c->e->op, ERR_INVALID, "cannot be scattered into %lld parts", (long long)n);
  else c->e->sout[0].t[c->process] = part_of(whole, dim, n, c->place);
  tensor_release(whole);
  return err;
}
Err *sem_reduce_scatter(Eval *e) {
  return for_each(e, "replica_groups", grouping_reduce(e->op), true, reduce_scatter_one);
}

static Err *all_to_all_one(Call *c) {
  const Op *op = c->e->op;
  int n = c->g->size[c->row];
  int64_t split = op_int(op, "split_dimension", 0), concat = op_int(op, "concat_dimension", 0);
  int64_t count = op_int(op, "split_count", n);
  Tensor **parts = xcalloc((size_t)n, sizeof *parts);
  Err *err = NULL;
  for (int i = 0; i < c->e->n_out && !err; i++) {
    const Tensor *t = member(c, i, 0);
    if (count != n || split < 0 || split >= t->rank || t->dims[split] % count || concat < 0 ||
        concat >= t->rank) {
      err = op_err(op, ERR_INVALID, "cannot split into %lld parts for a group of %d",
                   (long long)count, n);
      break;
    }
    for (int k = 0; k < n; k++) parts[k] = part_of(member(c, i, k), split, count, c->place);
    c->e->sout[i].t[c->process] = tensor_concat(parts, n, (int)concat);
    for (int k = 0; k < n; k++) tensor_release(parts[k]);
  }
  free(parts);
  return err;
}
Err *sem_all_to_all(Eval *e) {
  return for_each(e, "replica_groups", grouping_plain(e->op), true, all_to_all_one);
}

/* Place in the group of the process that result i comes from or goes to. */
static Err *root_of(Call *c, int i, int *place) {
  *place = 0;
  if (!op_bool(c->e->op, "has_dynamic_root", false)) return NULL;
  const Tensor *roots = shards_at(&c->in[c->e->n_in - 1], c->process);
  int64_t v = i < roots->count ? elem_get_i64(roots->dtype, tensor_at(roots, i)) : -1;
  if (v < 0 || v >= c->g->size[c->row])
    return op_err(c->e->op, ERR_INVALID, "root %lld of a group of %d", (long long)v,
                  c->g->size[c->row]);
  *place = (int)v;
  return NULL;
}

static Err *broadcast_one(Call *c) {
  for (int i = 0; i < c->e->n_out; i++) {
    Tensor **out = &c->e->sout[i].t[c->process];
    int root;
    if (c->row < 0) {
      *out = zeros_like(c->e, i, shards_at(&c->in[i], c->process));
      continue;
    }
    TRY(root_of(c, i, &root));
    *out = tensor_retain(member(c, i, root));
  }
  return NULL;
}
Err *sem_collective_broadcast(Eval *e) {
  return for_each(e, "replica_groups", grouping_plain(e->op), false, broadcast_one);
}

static Err *collective_reduce_one(Call *c) {
  for (int i = 0; i < c->e->n_out; i++) {
    Tensor **out = &c->e->sout[i].t[c->process];
    int root = -1;
    if (c->row >= 0) TRY(root_of(c, i, &root));
    if (c->row >= 0 && c->place == root) TRY(fold(c, i, out));
    else *out = zeros_like(c->e, i, shards_at(&c->in[i], c->process));
  }
  return NULL;
}
Err *sem_collective_reduce(Eval *e) {
  Grouping how = op_bool(e->op, "use_global_device_ids", false) ? FLATTENED : grouping_plain(e->op);
  return for_each(e, "replica_groups", how, false, collective_reduce_one);
}

Err *sem_collective_permute(Eval *e) {
  ProcessGroups g;
  TRY(groups_of(e, "source_target_pairs", grouping_plain(e->op), &g));
  if (!op_attr(e->op, "source_target_pairs") || g.width != 2) g.n = 0;
  Shards *in = NULL;
  int n = e->ctx->n;
  uint8_t *present = xcalloc((size_t)n, 1);
  Err *err = inputs_of(e, &in, present);
  if (!err) e->sout[0] = shards_many(n);
  for (int p = 0; p < n && !err; p++) {
    if (!e->ctx->active[p]) continue;
    for (int i = 0; i < g.n && !err; i++) {
      int source = g.member[2 * i], target = g.member[2 * i + 1];
      if (target != p) continue;
      if (!present[source]) err = absent(e->op, present, &g, i);
      else if (e->sout[0].t[p])
        err = op_err(e->op, ERR_INVALID, "process %d is the target of two", p);
      else e->sout[0].t[p] = tensor_retain(shards_at(&in[0], source));
    }
    if (!err && !e->sout[0].t[p]) e->sout[0].t[p] = zeros_like(e, 0, shards_at(&in[0], p));
  }
  inputs_free(e, in);
  free(present);
  process_groups_free(&g);
  return err;
}

/* ---- channels, infeed ---------------------------------------------------------------------- */

static Channel *channel_of(Run *run, int64_t id, int target) {
  for (int i = 0; i < run->channels.n; i++)
    if (run->channels.v[i]->id == id && run->channels.v[i]->target == target)
      return run->channels.v[i];
  Channel *c = xcalloc(1, sizeof *c);
  c->id = id;
  c->target = target;
  *vec_push(&run->channels) = c;
  return c;
}

static Tensor *token(void) { return tensor_make(DT_TOKEN, 0, NULL); }

/* Where process p sends to: by source_target_pairs, else -1: whoever receives. -2: nowhere. */
static Err *partner(Eval *e, int p, bool sending, int *out) {
  *out = -1;
  if (op_bool(e->op, "is_host_transfer", false) || !op_attr(e->op, "source_target_pairs"))
    return NULL;
  ProcessGroups g;
  TRY(groups_new(e->op, "source_target_pairs",
                 e->run->partitions > 1 ? CROSS_PARTITION : CROSS_REPLICA, e->run->replicas,
                 e->run->partitions, &g));
  bool any = g.n > 0 && g.width == 2;
  *out = any ? -2 : -1;
  for (int i = 0; i < g.n && any; i++) {
    int source = g.member[2 * i], target = g.member[2 * i + 1];
    if (sending ? source == p : target == p) *out = target;
  }
  process_groups_free(&g);
  return NULL;
}

Err *sem_send(Eval *e) {
  int64_t id = op_int(e->op, "channel_id", 0);
  for (int p = 0; p < e->ctx->n; p++) {
    int target;
    if (!e->ctx->active[p]) continue;
    TRY(partner(e, p, true, &target));
    if (target == -2) continue;
    Message m = {.n = e->n_in - 1, .t = xmalloc(sizeof(Tensor *) * (size_t)e->n_in)};
    for (int i = 0; i < m.n; i++) m.t[i] = tensor_retain(shards_at(&e->sin[i], p));
    *vec_push(&channel_of(e->run, id, target)->queue) = m;
  }
  baton_progress(e->run);
  e->sout[0] = shards_one(token());
  return NULL;
}

Err *sem_recv(Eval *e) {
  int64_t id = op_int(e->op, "channel_id", 0);
  int n = e->ctx->n, payload = e->n_out - 1;
  for (int i = 0; i < payload; i++) e->sout[i] = shards_many(n);
  e->sout[payload] = shards_one(token());
  for (int p = 0; p < n; p++) {
    int target;
    if (!e->ctx->active[p]) continue;
    TRY(partner(e, p, false, &target));
    if (target == -2) { /* nobody sends here */
      for (int i = 0; i < payload; i++) {
        const Type *t = e->op->results[i].type;
        e->sout[i].t[p] = tensor_zeros(t->dtype, t->rank, t->dims);
      }
      continue;
    }
    Channel *c = channel_of(e->run, id, target);
    while (c->head >= c->queue.n) TRY(baton_wait(e->run, e->op));
    Message m = c->queue.v[c->head++];
    if (m.n != payload) return op_err(e->op, ERR_INVALID, "%d values arrive, not %d", m.n, payload);
    for (int i = 0; i < payload; i++) e->sout[i].t[p] = m.t[i];
    free(m.t);
    c->queue.v[c->head - 1] = (Message){0};
  }
  return NULL;
}

Err *sem_infeed(Eval *e) {
  int n = e->ctx->n, payload = e->n_out - 1;
  Run *run = e->run;
  for (int i = 0; i < payload; i++) e->sout[i] = shards_many(n);
  e->sout[payload] = shards_one(token());
  for (int p = 0; p < n; p++) {
    if (!e->ctx->active[p]) continue;
    if (run->infeed_head >= run->infeed.n) return op_err(e->op, ERR_RANGE, "the infeed is empty");
    Message *m = &run->infeed.v[run->infeed_head++];
    if (m->n != payload)
      return op_err(e->op, ERR_INVALID, "%d values in the infeed, not %d", m->n, payload);
    for (int i = 0; i < payload; i++) e->sout[i].t[p] = tensor_retain(m->t[i]);
  }
  return NULL;
}

/* The host that would take the data is not there: it is dropped. */
Err *sem_outfeed(Eval *e) {
  e->sout[0] = shards_one(token());
  return NULL;
}

/* ---- asynchronous: done at once; the future is a tuple ------------------------------------- */

Err *sem_async_start(Eval *e) {
  const Region *body = e->op->regions[0];
  int k = body->last->n_operands;
  Shards *res = xcalloc((size_t)k + 1, sizeof *res);
  Err *err = ctx_run_region(e->ctx, body, e->sin, res);
  bool common = true;
  for (int i = 0; i < k; i++) common &= res[i].n == 1;
  if (!err) {
    e->sout[0] = shards_many(common ? 1 : e->ctx->n);
    Tensor **elems = xcalloc((size_t)k + 1, sizeof *elems);
    for (int p = 0; p < e->sout[0].n; p++) {
      if (!common && !e->ctx->active[p]) continue;
      for (int i = 0; i < k; i++) elems[i] = tensor_retain(shards_at(&res[i], p));
      e->sout[0].t[p] = tensor_tuple(elems, k);
    }
    free(elems);
  }
  for (int i = 0; i < k; i++) shards_free(&res[i]);
  free(res);
  return err;
}

Err *sem_async_done(Eval *e) {
  const Shards *in = &e->sin[0];
  for (int i = 0; i < e->n_out; i++) {
    e->sout[i] = shards_many(in->n);
    for (int p = 0; p < in->n; p++)
      if (in->t[p]) e->sout[i].t[p] = tensor_retain(in->t[p]->elems[i]);
  }
  return NULL;
}
