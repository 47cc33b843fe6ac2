/* Collectives between the processes of a run, or of several that meet (dev/meet.h): the buffers of a
 * group's members are all at hand. Sums are taken here, in the order of the group; the rest is left
 * to the interpreter's collectives on wrapped buffers. */
#include "dev/cpu/cpu_priv.h"

#include "dev/meet.h"
#include "interp/interp.h"

bool coll_supported(const Op *op) {
  switch (op->kind) {
  case OP_PARTITION_ID:
  case OP_REPLICA_ID:
  case OP_ALL_GATHER:
  case OP_ALL_REDUCE:
  case OP_ALL_TO_ALL:
  case OP_REDUCE_SCATTER:
  case OP_COLLECTIVE_BROADCAST:
  case OP_COLLECTIVE_REDUCE:
  case OP_COLLECTIVE_PERMUTE:
  case OP_CROSS_REPLICA_SUM: break;
  default: return false;
  }
  Value **cap; /* the body sees nothing from outside */
  int n = cpu_captures(op, &cap);
  free(cap);
  return n == 0;
}

/* ---- sums: the gradients of data parallel training ---- */

#define MOST_AT_ONCE 1024

typedef struct Sum {
  DType type;
  int n;
  void *const *in;     /* of each member */
  void *const *out;    /* of each member; NULL: it is not here */
  int64_t from;        /* where in the operands the result begins */
  int64_t run, stride; /* results are runs of so many elements, so far apart in the operands */
} Sum;

#define SUM(T, name)                                              \
  static void name(const Sum *s, T *acc, int64_t at, int64_t n) { \
    memcpy(acc, (const T *)s->in[0] + at, sizeof(T) * (size_t)n); \
    for (int p = 1; p < s->n; p++) {                              \
      const T *x = (const T *)s->in[p] + at;                      \
      for (int64_t i = 0; i < n; i++) acc[i] += x[i];             \
    }                                                             \
  }
SUM(float, sum_f32)
SUM(double, sum_f64)
SUM(uint32_t, sum_u32)
SUM(uint64_t, sum_u64)
#undef SUM

/* Carried in f32 and rounded once, as XLA does. */
static void sum_bf16(const Sum *s, uint16_t *out, int64_t at, int64_t n) {
  float acc[MOST_AT_ONCE];
  for (int64_t i = 0; i < n; i++) acc[i] = bf16_to_f32(((const uint16_t *)s->in[0])[at + i]);
  for (int p = 1; p < s->n; p++) {
    const uint16_t *x = (const uint16_t *)s->in[p] + at;
    for (int64_t i = 0; i < n; i++) acc[i] += bf16_to_f32(x[i]);
  }
  for (int64_t i = 0; i < n; i++) out[i] = f32_to_bf16(acc[i]);
}

static bool can_sum(DType t) {
  return t == DT_F32 || t == DT_F64 || t == DT_BF16 || t == DT_I32 || t == DT_U32 || t == DT_I64 ||
         t == DT_U64;
}

static void sum_piece(const Sum *s, void *out, int64_t at, int64_t n) {
  switch (s->type) {
  case DT_F32: sum_f32(s, out, at, n); break;
  case DT_F64: sum_f64(s, out, at, n); break;
  case DT_BF16: sum_bf16(s, out, at, n); break;
  case DT_I32:
  case DT_U32: sum_u32(s, out, at, n); break;
  default: sum_u64(s, out, at, n); break;
  }
}

/* Elements [begin, end) of the result, for all who want it. */
static void sum_range(void *arg, int64_t begin, int64_t end) {
  const Sum *s = arg;
  size_t size = (size_t)dtype_bytes(s->type);
  int first = 0;
  while (first < s->n && !s->out[first]) first++;
  if (first == s->n) return;
  for (int64_t i = begin; i < end;) {
    int64_t row = i / s->run, in_row = i % s->run,
            n = MIN(MIN(end - i, s->run - in_row), MOST_AT_ONCE);
    char *to = (char *)s->out[first] + (size_t)i * size;
    sum_piece(s, to, s->from + row * s->stride + in_row, n);
    for (int p = first + 1; p < s->n; p++)
      if (s->out[p] && s->out[p] != s->out[first])
        memcpy((char *)s->out[p] + (size_t)i * size, to, (size_t)n * size);
    i += n;
  }
}

#define GRAIN 16384

static bool is_sum(const Op *op) {
  if ((op->kind != OP_ALL_REDUCE && op->kind != OP_REDUCE_SCATTER) ||
      cpu_region_binary(op->regions[0], NULL) != OP_ADD)
    return false;
  for (int i = 0; i < op->n_results; i++) {
    DType t = op->results[i].type->dtype;
    if (!can_sum(t) || op->regions[0]->args[0]->type->dtype != t) return false;
  }
  return true;
}

static bool is_sum_of_all(const Op *op) { return op->kind == OP_ALL_REDUCE && is_sum(op); }

/* in[i * n + k], out[i * n + k] of member k of a group. bytes: of each operand, the part that is computed;
 * NULL: all. false: not one of these */
static bool sum_group(const Op *op, int n, void *const *in, void *const *out, const size_t *bytes) {
  if (!is_sum(op)) return false;
  const Type *r = op->results[0].type;
  if (op->kind == OP_ALL_REDUCE) {
    for (int i = 0; i < op->n_results; i++) {
      int64_t count = type_count(op->results[i].type);
      if (bytes) count = (int64_t)bytes[i] / dtype_bytes(op->results[i].type->dtype);
      Sum s = {op->results[i].type->dtype, n, in + i * n, out + i * n, 0, MAX(count, 1), 0};
      cpu_parallel(count, GRAIN, sum_range, &s);
    }
    return true;
  }
  const Type *t = op->operands[0]->type;
  int64_t dim = op_int(op, "scatter_dimension", 0), run = 1;
  if (dim < 0 || dim >= t->rank || t->dims[dim] != r->dims[dim] * n) return false;
  for (int d = (int)dim; d < r->rank; d++) run *= r->dims[d];
  void **only = xcalloc((size_t)n, sizeof *only); /* a part for each: nobody else wants it */
  for (int k = 0; k < n && run; k++) {
    Sum s = {r->dtype, n, in, only, run * k, run, run * n};
    only[0] = out[k];
    cpu_parallel(type_count(r), GRAIN, sum_range, &s);
  }
  free(only);
  return true;
}

/* ---- the rest ---- */

static Tensor *wrap_one(const Type *t, void *data) {
  return t->kind == TY_TENSOR ? tensor_wrap(t->dtype, t->rank, t->dims, data, NULL, NULL)
                              : tensor_make(DT_TOKEN, 0, NULL);
}

/* in[i * n + k] and out likewise are of process[k]; the others of the program take no part. */
static Err *by_interpreter(const Op *op, const DevProgram *prog, int n, const int *process,
                           void *const *in, void *const *out) {
  int all = prog->opts.replicas * prog->opts.partitions;
  Shards *s = xcalloc((size_t)(op->n_operands + op->n_results) + 1, sizeof *s),
         *r = s + op->n_operands;
  uint8_t *active = xcalloc((size_t)all, 1);
  for (int k = 0; k < n; k++) active[process[k]] = 1;
  for (int i = 0; i < op->n_operands; i++) {
    s[i] = (Shards){all, xcalloc((size_t)all, sizeof(Tensor *))};
    for (int k = 0; k < n; k++) s[i].t[process[k]] = wrap_one(op->operands[i]->type, in[i * n + k]);
  }
  Err *e = interp_eval_all(op, prog->opts.replicas, prog->opts.partitions, active, s, r);
  for (int i = 0; i < op->n_results && !e; i++) {
    const Type *t = op->results[i].type;
    for (int k = 0; k < n && t->kind == TY_TENSOR && !e; k++) {
      const Tensor *x = r[i].t[r[i].n > 1 ? process[k] : 0];
      if (!out[i * n + k] || (k && out[i * n + k] == out[i * n])) continue;
      if (x->count != type_count(t))
        e = op_err(op, ERR_INVALID, "result %d has %lld elements, its type %lld", i,
                   (long long)x->count, (long long)type_count(t));
      else if (x->count) memcpy(out[i * n + k], x->data, tensor_bytes(x));
    }
  }
  for (int i = 0; i < op->n_operands + op->n_results; i++) shards_free(&s[i]);
  free(active);
  free(s);
  return e;
}

/* SPMDFullToShardShape and its like, of a program computed as a whole. */
static Err *between_whole_and_parts(const Op *op, const DevProgram *prog, int n, void *const *in,
                                    void *const *out) {
  int *all = xmalloc(sizeof *all * (size_t)n);
  for (int k = 0; k < n; k++) all[k] = k;
  Err *e = by_interpreter(op, prog, n, all, in, out);
  free(all);
  return e;
}

/* ---- one group, all of whose members' buffers are here ---- */

static Err *run_group(const DevGroup *g) {
  const Op *op = g->op;
  size_t n = (size_t)g->n;
  void **in = xmalloc(sizeof *in * ((size_t)(op->n_operands + op->n_results) * n + 1)),
       **out = in + (size_t)op->n_operands * n;
  for (size_t k = 0; k < n; k++) {
    for (int i = 0; i < op->n_operands; i++) in[(size_t)i * n + k] = g->hands[k].in[i];
    for (int i = 0; i < op->n_results; i++) out[(size_t)i * n + k] = g->hands[k].out[i];
  }
  Err *e = NULL;
  if (!sum_group(op, g->n, in, out, g->bytes))
    e = by_interpreter(op, g->prog, g->n, g->process, in, out);
  free(in);
  return e;
}

Err *coll_run(const Op *op, const DevProgram *prog, const DevPart *part, void *const *in,
              void *const *out) {
  int n = part->n;
  if (op->kind == OP_PARTITION_ID || op->kind == OP_REPLICA_ID) {
    for (int k = 0; k < n; k++) {
      int p = part->process ? part->process[k] : k;
      *(uint32_t *)out[k] = (uint32_t)(op->kind == OP_REPLICA_ID ? p / prog->opts.partitions
                                                                 : p % prog->opts.partitions);
    }
    return NULL;
  }
  if (op->kind == OP_CUSTOM_CALL) return between_whole_and_parts(op, prog, n, in, out);
  size_t n_in = (size_t)op->n_operands, n_out = (size_t)op->n_results;
  void **lists = xmalloc(sizeof *lists * (size_t)n * (n_in + n_out) + 1);
  int *all = NULL;
  ExchangeHand *hands = xmalloc(sizeof *hands * (size_t)n);
  for (size_t k = 0; k < (size_t)n; k++) {
    void **own = lists + k * (n_in + n_out);
    for (size_t i = 0; i < n_in; i++) own[i] = in[i * (size_t)n + k];
    for (size_t i = 0; i < n_out; i++) own[n_in + i] = out[i * (size_t)n + k];
    hands[k] = (ExchangeHand){own, own + n_in};
  }
  DevPart whole = *part;
  if (!part->process) {
    all = xmalloc(sizeof *all * (size_t)n);
    for (int k = 0; k < n; k++) all[k] = k;
    whole.process = whole.job = all;
  }
  DevMeet meet = {.prog = prog,
                  .part = &whole,
                  .exchange = prog->dev->exchange,
                  .sparse = true,
                  .by_element = is_sum_of_all};
  Err *e = dev_meet(&meet, op, NULL, hands, run_group);
  free(all);
  free(hands);
  free(lists);
  return e;
}
