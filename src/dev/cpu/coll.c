/* Collectives between the processes of a run, or of several that meet (dev/meet.h): the buffers of a
 * group's members are all at hand. Sums and their like are taken here, in the order of the group; what only moves is
 * coll_move.c's; the rest is left to the interpreter's collectives on wrapped buffers. */
#include "dev/cpu/cpu_priv.h"

#include <math.h>

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

/* ---- reductions: the gradients of data parallel training ---- */

#define MOST_AT_ONCE 1024

typedef struct Sum Sum;
struct Sum {
  DType type;
  void (*piece)(const Sum *s, void *out, int64_t at, int64_t n);
  int n;
  void *const *in;     /* of each member */
  void *const *out;    /* of each member; NULL: it is not here */
  int64_t from;        /* where in the operands the result begins */
  int64_t run, stride; /* results are runs of so many elements, so far apart in the operands */
};

/* `value` of a and b, one member after the other. */
#define REDUCTION(name, T, value)                                    \
  static void name(const Sum *s, void *out, int64_t at, int64_t n) { \
    T *acc = out;                                                    \
    memcpy(acc, (const T *)s->in[0] + at, sizeof(T) * (size_t)n);    \
    for (int p = 1; p < s->n; p++) {                                 \
      const T *x = (const T *)s->in[p] + at;                         \
      for (int64_t i = 0; i < n; i++) {                              \
        T a = acc[i], b = x[i];                                      \
        acc[i] = (T)(value);                                         \
      }                                                              \
    }                                                                \
  }
#define LARGER a > b || a != a || (a == b && signbit(b)) ? a : b
#define SMALLER a < b || a != a || (a == b && signbit(a)) ? a : b
REDUCTION(sum_f32, float, a + b)
REDUCTION(sum_f64, double, a + b)
REDUCTION(sum_u32, uint32_t, a + b)
REDUCTION(sum_u64, uint64_t, a + b)
REDUCTION(max_f32, float, LARGER)
REDUCTION(max_f64, double, LARGER)
REDUCTION(max_i32, int32_t, MAX(a, b))
REDUCTION(max_i64, int64_t, MAX(a, b))
REDUCTION(min_f32, float, SMALLER)
REDUCTION(min_f64, double, SMALLER)
REDUCTION(min_i32, int32_t, MIN(a, b))
REDUCTION(min_i64, int64_t, MIN(a, b))
REDUCTION(or_bool, uint8_t, a | b)
REDUCTION(and_bool, uint8_t, a &b)
#undef LARGER
#undef SMALLER
#undef REDUCTION

/* Carried in f32 and rounded once, as XLA does. */
static void sum_bf16(const Sum *s, void *out, int64_t at, int64_t n) {
  float acc[MOST_AT_ONCE];
  for (int64_t i = 0; i < n; i++) acc[i] = bf16_to_f32(((const uint16_t *)s->in[0])[at + i]);
  for (int p = 1; p < s->n; p++) {
    const uint16_t *x = (const uint16_t *)s->in[p] + at;
    for (int64_t i = 0; i < n; i++) acc[i] += bf16_to_f32(x[i]);
  }
  for (int64_t i = 0; i < n; i++) ((uint16_t *)out)[i] = f32_to_bf16(acc[i]);
}

static const struct {
  OpKind op;
  DType type;
  void (*piece)(const Sum *s, void *out, int64_t at, int64_t n);
} reductions[] = {
    {OP_ADD, DT_F32, sum_f32},     {OP_ADD, DT_F64, sum_f64},     {OP_ADD, DT_BF16, sum_bf16},
    {OP_ADD, DT_I32, sum_u32},     {OP_ADD, DT_U32, sum_u32},     {OP_ADD, DT_I64, sum_u64},
    {OP_ADD, DT_U64, sum_u64},     {OP_MAXIMUM, DT_F32, max_f32}, {OP_MAXIMUM, DT_F64, max_f64},
    {OP_MAXIMUM, DT_I32, max_i32}, {OP_MAXIMUM, DT_I64, max_i64}, {OP_MINIMUM, DT_F32, min_f32},
    {OP_MINIMUM, DT_F64, min_f64}, {OP_MINIMUM, DT_I32, min_i32}, {OP_MINIMUM, DT_I64, min_i64},
    {OP_OR, DT_I1, or_bool},       {OP_AND, DT_I1, and_bool}};

/* The row of the table; -1: there is none. */
static int find_reduction(OpKind op, DType t) {
  for (int i = 0; i < COUNT_OF(reductions); i++)
    if (reductions[i].op == op && reductions[i].type == t) return i;
  return -1;
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
    s->piece(s, to, s->from + row * s->stride + in_row, n);
    for (int p = first + 1; p < s->n; p++)
      if (s->out[p] && s->out[p] != s->out[first])
        memcpy((char *)s->out[p] + (size_t)i * size, to, (size_t)n * size);
    i += n;
  }
}

#define GRAIN 16384

static bool is_reduction(const Op *op) {
  if (op->kind != OP_ALL_REDUCE && op->kind != OP_REDUCE_SCATTER) return false;
  OpKind by = cpu_region_binary(op->regions[0], NULL);
  for (int i = 0; i < op->n_results; i++) {
    DType t = op->results[i].type->dtype;
    if (find_reduction(by, t) < 0 || op->regions[0]->args[0]->type->dtype != t) return false;
  }
  return true;
}

static bool is_reduction_of_all(const Op *op) {
  return op->kind == OP_ALL_REDUCE && is_reduction(op);
}

/* in[i * n + k], out[i * n + k] of member k of a group. bytes: of each operand, the part that is computed;
 * NULL: all. false: not one of these */
static bool reduce_group(const Op *op, int n, void *const *in, void *const *out,
                         const size_t *bytes) {
  if (!is_reduction(op)) return false;
  OpKind by = cpu_region_binary(op->regions[0], NULL);
  const Type *r = op->results[0].type;
  if (op->kind == OP_ALL_REDUCE) {
    for (int i = 0; i < op->n_results; i++) {
      int64_t count = type_count(op->results[i].type);
      DType t = op->results[i].type->dtype;
      if (bytes) count = (int64_t)bytes[i] / dtype_bytes(t);
      Sum s = {.type = t,
               .piece = reductions[find_reduction(by, t)].piece,
               .n = n,
               .in = in + i * n,
               .out = out + i * n,
               .run = MAX(count, 1)};
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
    Sum s = {.type = r->dtype,
             .piece = reductions[find_reduction(by, r->dtype)].piece,
             .n = n,
             .in = in,
             .out = only,
             .from = run * k,
             .run = run,
             .stride = run * n};
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
  if (!reduce_group(op, g->n, in, out, g->bytes) && !coll_move(op, g->n, in, out))
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
                  .exchange = part->exchange ? part->exchange : prog->dev->exchange,
                  .sparse = true,
                  .by_element = is_reduction_of_all};
  Err *e = dev_meet(&meet, op, NULL, hands, run_group);
  free(all);
  free(hands);
  free(lists);
  return e;
}
