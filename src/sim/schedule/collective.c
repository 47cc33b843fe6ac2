/* Collectives of a program, on the network of its devices (net/net.h). No compiler estimate exists:
 * results are marked as modelled. */
#include <stdlib.h>

#include "net/net.h"
#include "sim/schedule/schedule.h"
#include "ir/exchange.h"

/* What a node exchanges, and among how many. */
typedef struct Exchange {
  HNode *node;
  int level; /* collectives on the longest way to it */
  NetKind kind;
  NetGroup group;
  double bytes;
} Exchange;

static double result_bytes(const HNode *n) {
  if (n->n_results <= 1) return hlo_bytes(n);
  double sum = 0;
  for (int r = 0; r < n->n_results; r++) {
    double b = hlo_bits(n->res_dt[r]) / 8;
    for (int d = 0; d < n->res_rank[r]; d++) b *= (double)n->res_d[r][d];
    sum += b;
  }
  return sum;
}

/* The group of one device, from the operation's list; those that are shorter are filled up with -1. */
static NetGroup group_of(const HNode *n) {
  NetGroup g = {0};
  const int64_t *ids;
  const Attr *a = n->src ? op_attr(n->src, "replica_groups") : NULL;
  const Attr *config = n->src && op_is_ragged(n->src) ? op_attr(n->src, "backend_config") : NULL;
  if (config && config->kind == AT_DICT) a = attrs_get(config->dict, config->n, "replica_groups");
  if (!a || a->kind != AT_TENSOR || !a->tensor || a->tensor->rank != 2) return g;
  if (a->tensor->splat || a->dtype != DT_I64) return g;
  ids = a->tensor->data;
  int have = (int)a->tensor->count, size = 0, columns = (int)a->tensor->dims[1];
  while (size < MIN(have, columns) && ids[size] >= 0) size++;
  if (size) net_group_of(ids, 1, size, &g);
  return g;
}

/* How far apart the first pair of a permutation is; the others are taken to be as far. */
static NetGroup pair_of(const HNode *n) {
  const int64_t *ids;
  int have = n->src ? op_ints(n->src, "source_target_pairs", &ids) : 0;
  int64_t apart = have >= 2 ? llabs(ids[1] - ids[0]) : 1;
  return (NetGroup){1, {{2, (int)MIN(MAX(apart, 1), 1 << 24)}}};
}

/* False: nothing crosses the network. */
static bool exchange_of(const HNode *n, Exchange *x) {
  double in = 0;
  for (int i = 0; i < n->n_in; i++) in += hlo_bytes(n->in[i]);
  *x = (Exchange){.kind = NET_ALL_REDUCE, .bytes = MAX(in, result_bytes(n)), .group = group_of(n)};
  if (n->src && op_is_ragged(n->src)) x->bytes = hlo_bytes(n->in[0]); /* of the rest only numbers */
  switch (n->op) {
  case OP_ALL_GATHER: x->kind = NET_ALL_GATHER; return true;
  case OP_REDUCE_SCATTER: x->kind = NET_REDUCE_SCATTER; return true;
  case OP_ALL_TO_ALL: x->kind = NET_ALL_TO_ALL; return true;
  case OP_COLLECTIVE_BROADCAST: x->kind = NET_BROADCAST; return true;
  case OP_COLLECTIVE_PERMUTE:
  case OP_SEND:
  case OP_RECV:
    x->kind = NET_PERMUTE;
    x->group = pair_of(n);
    return true;
  case OP_ALL_REDUCE:
  case OP_CROSS_REPLICA_SUM:
  case OP_COLLECTIVE_REDUCE: return true;
  default: return false;
  }
}

/* XLA's combiners: exchanges of one kind that do not wait for each other, as the gradients of all
 * parameters, travel as one, up to 30 MiB (xla_gpu_all_reduce_combine_threshold_bytes; taken for
 * TPUs too). Two of the same level cannot wait for each other. */
#define COMBINED (30 * 1048576.0)

static bool same(const Exchange *x, const Exchange *y) { /* groups */
  return !memcmp(&x->group, &y->group, sizeof x->group);
}

static int by_level(const void *a, const void *b) {
  const Exchange *x = a, *y = b;
  int d = x->level != y->level ? x->level - y->level
          : x->kind != y->kind ? (int)x->kind - (int)y->kind
          : !same(x, y)        ? memcmp(&x->group, &y->group, sizeof x->group)
                               : (int)x->node->dt - (int)y->node->dt;
  return d ? d : x->node->id - y->node->id;
}

static bool combines(const Exchange *x, const Exchange *y) {
  return x->level == y->level && x->kind == y->kind && same(x, y) && x->node->dt == y->node->dt &&
         x->kind != NET_PERMUTE && x->kind != NET_ALL_TO_ALL;
}

static void combine(const Schedule *p, const HComp *c) {
  int *level = xcalloc((size_t)p->g->n_nodes + 1, sizeof *level);
  VEC(Exchange) all = {0};
  for (int i = 0; i < c->nodes.n; i++) {
    HNode *n = c->nodes.v[i];
    Exchange x;
    for (int k = 0; k < n->n_in; k++)
      level[n->id] = MAX(level[n->id], level[n->in[k]->id] + (n->in[k]->kind == H_COLL));
    if (n->kind != H_COLL || n->dead || !exchange_of(n, &x)) continue;
    x.node = n;
    x.level = level[n->id];
    *vec_push(&all) = x;
  }
  if (all.n) qsort(all.v, (size_t)all.n, sizeof *all.v, by_level);
  for (int i = 0, end; i < all.n; i = end) {
    double sum = all.v[i].bytes;
    for (end = i + 1; end < all.n && combines(&all.v[i], &all.v[end]); end++) {
      if (sum + all.v[end].bytes > COMBINED) break;
      sum += all.v[end].bytes;
    }
    for (int k = i; k < end; k++) {
      all.v[k].node->together = sum;
      all.v[k].node->company = 1 + all.v[i].node->id;
    }
  }
  vec_free(&all);
  free(level);
}

/* Each has its share of the time that all of its company take. */
double collective_time(const Schedule *p, const Kernel *k, const HNode *n) {
  (void)k;
  Exchange x;
  if (n->op == OP_INFEED || n->op == OP_OUTFEED) {
    exchange_of(n, &x);
    return x.bytes / chip_num(p->chip, "pcie", 16e9);
  }
  if (!exchange_of(n, &x) || x.bytes <= 0) return 0;
  if (n->together == 0) combine(p, n->comp);
  double all = MAX(n->together, x.bytes);
  Net net;
  int devices = p->opts && p->opts->devices > 0 ? p->opts->devices : 1;
  if (x.group.n) devices = MAX(devices, net_group_size(&x.group, 0));
  Err *e = net_open(p->chip, devices, NULL, &net);
  if (e) return err_free(e), 0; /* only options can be wrong */
  NetCall call = {x.kind, all, n->dt, x.group};
  return net_cost(&net, &call).s * x.bytes / all;
}
