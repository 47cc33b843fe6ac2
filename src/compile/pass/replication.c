/* Values begin as the same for all and are told apart as far as needed, in rounds over the program until
 * nothing changes: what an operation makes differs where its operands do. A collective gives the members
 * of a group the same, and members of two groups that were given the same. What processes compute of
 * their own number, where their part begins, say, is computed here for each of them. */
#include "compile/pass/replication.h"

#include <stdlib.h>

#include "compile/pass/query.h"
#include "interp/interp.h"
#include "ir/exchange.h"

#define MOST_PROCESSES 256 /* of more every process has its own */
#define MOST_NUMBERS 16    /* in a value that is computed here */

/* ---- sets of processes ---- */

typedef struct Join {
  Owners a, b, both;
} Join;

struct OwnerSets {
  int n;
  Arena *mem;
  VEC(Owners) all;
  VEC(Join) joined;
};

OwnerSets *owner_sets_new(int processes, Arena *mem) {
  OwnerSets *s = xcalloc(1, sizeof *s);
  s->n = processes;
  s->mem = mem;
  return s;
}

void owner_sets_free(OwnerSets *s) {
  if (!s) return;
  vec_free(&s->all);
  vec_free(&s->joined);
  free(s);
}

/* The one there is for these owners. */
static Owners intern(OwnerSets *s, const int *owner) {
  size_t bytes = sizeof *owner * (size_t)s->n;
  bool same = true;
  for (int p = 0; p < s->n; p++) same &= owner[p] == 0;
  if (same) return NULL;
  for (int i = 0; i < s->all.n; i++)
    if (!memcmp(s->all.v[i], owner, bytes)) return s->all.v[i];
  return *vec_push(&s->all) = arena_dup(s->mem, owner, bytes);
}

/* Processes share what has equal keys of n numbers. */
static Owners by_keys(OwnerSets *s, const int64_t *key, int n) {
  int owner[MOST_PROCESSES];
  for (int p = 0; p < s->n; p++) {
    owner[p] = 0;
    while (memcmp(key + owner[p] * n, key + p * n, sizeof *key * (size_t)n)) owner[p]++;
  }
  return intern(s, owner);
}

Owners owner_sets_own(OwnerSets *s) {
  int own[4096], *owner = s->n <= COUNT_OF(own) ? own : xmalloc(sizeof *owner * (size_t)s->n);
  for (int p = 0; p < s->n; p++) owner[p] = p;
  Owners l = intern(s, owner);
  if (owner != own) free(owner);
  return l;
}

Owners owner_sets_join(OwnerSets *s, Owners a, Owners b) {
  if (!a || a == b) return b;
  if (!b) return a;
  if (s->n > MOST_PROCESSES) return owner_sets_own(s);
  for (int i = 0; i < s->joined.n; i++) {
    const Join *j = &s->joined.v[i];
    if ((j->a == a && j->b == b) || (j->a == b && j->b == a)) return j->both;
  }
  int64_t key[MOST_PROCESSES][2];
  for (int p = 0; p < s->n; p++) key[p][0] = a[p], key[p][1] = b[p];
  Owners both = by_keys(s, key[0], 2);
  *vec_push(&s->joined) = (Join){a, b, both};
  return both;
}

/* ---- the analysis ---- */

typedef struct Analysis {
  OwnerSets *sets;
  int n, replicas, partitions;
  Owners *of;        /* by value */
  Tensor ***numbers; /* by value: of every process, where they differ and are known; else NULL */
} Analysis;

static Owners of_value(const Analysis *a, const Value *v) { return a->of[v->id]; }

/* Tells the processes of v apart as those of `l` are. */
static bool tell_apart(Analysis *a, const Value *v, Owners l) {
  Owners was = a->of[v->id], now = owner_sets_join(a->sets, was, l);
  a->of[v->id] = now;
  return now != was;
}

/* Of all that an operation reads, its regions included. */
static Owners of_operands(const Analysis *a, const Op *op) {
  Owners l = NULL;
  for (int i = 0; i < op->n_operands; i++)
    l = owner_sets_join(a->sets, l, of_value(a, op->operands[i]));
  for (int i = 0; i < op->n_regions; i++)
    for (const Op *x = op->regions[i]->first; x; x = x->next)
      l = owner_sets_join(a->sets, l, of_operands(a, x));
  return l;
}

/* ---- numbers that processes compute of their own ---- */

static Tensor *own_number(const Analysis *a, const Op *op, int p) {
  Tensor *t = tensor_make(DT_U32, 0, NULL);
  *(uint32_t *)t->data =
      (uint32_t)(op->kind == OP_REPLICA_ID ? p / a->partitions : p % a->partitions);
  return t;
}

static bool is_computed_here(const Op *op) {
  if (op->n_results != 1 || op->n_regions || op->n_operands > 8) return false;
  const Type *t = op->results[0].type;
  OpClass c = op_info[op->kind].cls;
  return t->kind == TY_TENSOR && type_is_static(t) && !t->quant && type_count(t) > 0 &&
         type_count(t) <= MOST_NUMBERS && op_is_pure(op) &&
         (c == OC_EWISE || c == OC_MOVE || c == OC_INDEX);
}

/* Operand k as process p has it; NULL: not known before the run. A new reference. */
static Tensor *known(const Analysis *a, const Op *op, int k, int p) {
  const Value *v = op->operands[k];
  if (a->numbers[v->id]) return tensor_retain(a->numbers[v->id][p]);
  Tensor *t = value_constant(v), *dense = NULL;
  if (!t || t->count > 65536 || !t->data) return NULL;
  err_free(tensor_dense(t, &dense));
  return dense ? tensor_retain(dense) : NULL;
}

static Tensor *compute(const Analysis *a, const Op *op, int p) {
  Tensor *in[8], *out = NULL;
  int n = 0;
  while (n < op->n_operands && (in[n] = known(a, op, n, p))) n++;
  if (n == op->n_operands) err_free(interp_eval(op, in, &out, NULL, NULL));
  while (n) tensor_release(in[--n]);
  return out;
}

static void forget(const Analysis *a, int id) {
  Tensor **t = a->numbers[id];
  for (int p = 0; t && p < a->n; p++)
    if (t[p]) tensor_release(t[p]);
  free(t);
  a->numbers[id] = NULL;
}

static void find_numbers(Analysis *a, const Op *op) {
  bool first = op->kind == OP_PARTITION_ID || op->kind == OP_REPLICA_ID, differ = first;
  if (!first && !is_computed_here(op)) return;
  for (int i = 0; i < op->n_operands; i++) differ |= a->numbers[op->operands[i]->id] != NULL;
  if (!differ) return;
  const Value *v = &op->results[0];
  Tensor **t = a->numbers[v->id] = xcalloc((size_t)a->n, sizeof *t);
  for (int p = 0; p < a->n; p++)
    if (!(t[p] = first ? own_number(a, op, p) : compute(a, op, p))) {
      forget(a, v->id);
      return;
    }
}

static void find_all_numbers(Analysis *a, const Region *r) {
  for (const Op *op = r->first; op; op = op->next) {
    find_numbers(a, op);
    for (int i = 0; i < op->n_regions; i++) find_all_numbers(a, op->regions[i]);
  }
}

static Owners of_numbers(const Analysis *a, const Value *v) {
  Tensor *const *t = a->numbers[v->id];
  size_t bytes = tensor_bytes(t[0]);
  int owner[MOST_PROCESSES];
  for (int p = 0; p < a->n; p++) {
    owner[p] = 0;
    while (memcmp(t[owner[p]]->data, t[p]->data, bytes)) owner[p]++;
  }
  return intern(a->sets, owner);
}

/* ---- collectives ---- */

/* What process p takes from: the members of its group as their operands are told apart, and its place
 * among them where everybody takes something else. */
static Owners of_groups(const Analysis *a, const Op *op, bool all_alike) {
  ProcessGroups g;
  Err *e = interp_groups(op, a->replicas, a->partitions, &g);
  if (e) {
    err_free(e);
    return owner_sets_own(a->sets);
  }
  Owners in = of_operands(a, op);
  int width = g.width + 1;
  int64_t *key = xmalloc(sizeof *key * (size_t)(a->n * width));
  for (int i = 0; i < a->n * width; i++) key[i] = -1;
  for (int p = 0; p < a->n; p++) key[p * width] = -2 - p; /* in no group: its own */
  for (int row = 0; row < g.n; row++)
    for (int k = 0; k < g.size[row]; k++) {
      int64_t *to = key + g.member[row * g.width + k] * width;
      for (int i = 0; i < g.size[row]; i++) to[i + 1] = in ? in[g.member[row * g.width + i]] : 0;
      to[0] = all_alike ? 0 : k;
    }
  process_groups_free(&g);
  Owners l = by_keys(a->sets, key, width);
  free(key);
  return l;
}

/* Where each value of a permutation comes from; zeros from nowhere. */
static Owners of_sources(const Analysis *a, const Op *op) {
  const int64_t *pair;
  int n = op_ints(op, "source_target_pairs", &pair);
  bool by_partition = op_int(op, "channel_id", 0) > 0;
  if ((by_partition ? a->replicas : a->partitions) != 1) return owner_sets_own(a->sets);
  Owners in = of_operands(a, op);
  int64_t from[MOST_PROCESSES];
  for (int p = 0; p < a->n; p++) from[p] = -1;
  for (int i = 0; i + 1 < n; i += 2)
    if (pair[i] >= 0 && pair[i] < a->n && pair[i + 1] >= 0 && pair[i + 1] < a->n)
      from[pair[i + 1]] = in ? in[pair[i]] : 0;
  return by_keys(a->sets, from, 1);
}

static Owners of_collective(const Analysis *a, const Op *op) {
  if (a->n > MOST_PROCESSES) return owner_sets_own(a->sets);
  switch (op->kind) {
  case OP_ALL_GATHER:
  case OP_ALL_REDUCE:
  case OP_CROSS_REPLICA_SUM:
  case OP_COLLECTIVE_BROADCAST: return of_groups(a, op, true);
  case OP_ALL_TO_ALL:
  case OP_REDUCE_SCATTER: return of_groups(a, op, false);
  case OP_COLLECTIVE_PERMUTE: return of_sources(a, op);
  default: return owner_sets_own(a->sets);
  }
}

/* ---- operations ---- */

/* Nobody may miss a call, and an expectation holds for each. */
static bool is_counted(const Op *op) {
  return op_info[op->kind].cls == OC_TEST || op_is_host_callback(op);
}

static bool spread_region(Analysis *a, const Region *r);

static bool spread_while(Analysis *a, const Op *op) {
  bool changed = false;
  Owners turns = of_value(a, op->regions[0]->last->operands[0]); /* who stops tells what it has */
  for (int i = 0; i < op->n_operands; i++) {
    Owners l = owner_sets_join(a->sets, of_value(a, op->operands[i]),
                               of_value(a, op->regions[1]->last->operands[i]));
    l = owner_sets_join(a->sets, l, turns);
    for (int k = 0; k < 2; k++) changed |= tell_apart(a, op->regions[k]->args[i], l);
    changed |= tell_apart(a, &op->results[i], l);
  }
  for (int k = 0; k < 2; k++) changed |= spread_region(a, op->regions[k]);
  return changed;
}

static bool spread_case(Analysis *a, const Op *op) {
  bool changed = false;
  for (int k = 0; k < op->n_regions; k++) {
    changed |= spread_region(a, op->regions[k]);
    for (int i = 0; i < op->n_results; i++)
      changed |= tell_apart(a, &op->results[i],
                            owner_sets_join(a->sets, of_value(a, op->operands[0]),
                                            of_value(a, op->regions[k]->last->operands[i])));
  }
  return changed;
}

/* Each process has its part; what comes out is whole again. */
static bool spread_manual(Analysis *a, const Op *op) {
  bool changed = false;
  for (int i = 0; i < op->n_operands; i++)
    changed |= tell_apart(a, op->regions[0]->args[i], owner_sets_own(a->sets));
  return changed | spread_region(a, op->regions[0]);
}

static Owners of_results(const Analysis *a, const Op *op) {
  if (op_info[op->kind].cls == OC_COLLECTIVE) return of_collective(a, op);
  Str call = op->kind == OP_CUSTOM_CALL ? op_str(op, "call_target_name") : (Str){0};
  if (str_is(call, "SPMDFullToShardShape")) return owner_sets_own(a->sets);
  if (str_is(call, "SPMDShardToFullShape")) return NULL;
  Owners l = of_operands(a, op);
  return l && is_counted(op) ? owner_sets_own(a->sets) : l;
}

static bool spread_op(Analysis *a, const Op *op) {
  bool changed = false;
  if (op->n_results == 1 && a->numbers[op->results[0].id])
    return tell_apart(a, &op->results[0], of_numbers(a, &op->results[0]));
  if (op_is_alias(op)) {
    for (int i = 0; i < op->n_results; i++)
      changed |= tell_apart(a, &op->results[i], of_value(a, op->operands[i]));
    return changed;
  }
  Owners l = of_results(a, op);
  for (int i = 0; i < op->n_results; i++) changed |= tell_apart(a, &op->results[i], l);
  return changed;
}

static bool spread_region(Analysis *a, const Region *r) {
  bool changed = false;
  for (const Op *op = r->first; op; op = op->next) switch (op->kind) {
    case OP_RETURN: break;
    case OP_WHILE: changed |= spread_while(a, op); break;
    case OP_CASE:
    case OP_IF: changed |= spread_case(a, op); break;
    case OP_MANUAL_COMPUTATION: changed |= spread_manual(a, op); break;
    default: changed |= spread_op(a, op); break;
    }
  return changed;
}

static Owners *find(Func *main, const Region *r, int replicas, int partitions,
                    const Owners *argument, OwnerSets *sets, Arena *mem) {
  int n_values = ir_number(main);
  Analysis a = {.sets = sets,
                .n = replicas * partitions,
                .replicas = replicas,
                .partitions = partitions,
                .of = ARENA_ARRAY(mem, Owners, n_values),
                .numbers = xcalloc((size_t)n_values + 1, sizeof(Tensor **))};
  for (int i = 0; i < r->n_args; i++)
    if (argument && argument[i]) a.of[r->args[i]->id] = intern(sets, argument[i]);
  if (a.n <= MOST_PROCESSES) find_all_numbers(&a, r);
  while (a.n > 1 && spread_region(&a, r)) {
  }
  for (int id = 0; id < n_values; id++) forget(&a, id);
  free(a.numbers);
  return a.of;
}

Owners *replication_find(Func *main, int replicas, int partitions, const Owners *argument,
                         OwnerSets *sets, Arena *mem) {
  return find(main, main->body, replicas, partitions, argument, sets, mem);
}

Owners *replication_find_manual(Func *main, const Op *manual, int partitions,
                                const Owners *argument, OwnerSets *sets, Arena *mem) {
  return find(main, manual->regions[0], 1, partitions, argument, sets, mem);
}
