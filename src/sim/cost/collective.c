/* Collectives on the chip's network: rings along the axes of a torus (TPU), NVLink or PCIe (GPU).
 * Formulas: Austin et al., "How to Scale Your Model"; nccl-tests. No compiler estimate exists:
 * results are marked as modelled. */
#include <math.h>
#include <stdlib.h>

#include "sim/plan/plan.h"

/* Axis sizes of the torus that holds n chips, the fullest box: 2 axes for 4 links, 3 for 6. */
static int torus(int n, int axes, int *out) {
  int rest = n, used = 0;
  for (int a = axes; a >= 1; a--) {
    int best = 1;
    int side = (int)floor(pow(rest, 1.0 / a) + 1e-6);
    for (int s = side; s >= 1 && best == 1; s--)
      if (rest % s == 0) best = s;
    if (a == 1) best = rest;
    out[used++] = best;
    rest /= best;
  }
  return used;
}

double sim_collective_s(const Chip *chip, SimColl kind, double bytes, int devices) {
  if (devices <= 1) return 0;
  if (chip->kind == CHIP_GPU) {
    double link = chip_num(chip, "nvlink", 0);
    if (link <= 0) link = chip_num(chip, "pcie", 16e9);
    int n = devices, per_node = 8;
    double a = 2e-6, bw = link * 0.82;
    if (n > per_node) bw = MIN(bw, chip_num(chip, "nic", 50e9) * 0.9), a = 6e-6;
    double f = (double)(n - 1) / n, lat = a * log2((double)n) * 2;
    /* What could have passed while a collective starts and its rings fill. It goes in chunks, so
     * that the filling grows with the root of the size, up to a limit: bytes at which half of the
     * bandwidth is reached. Inside a node from 8 H100 (Austin et al., ch. 12: an all-gather of
     * 536 MB takes 1.5 ms, an all-reduce of 58 MB reaches 150 GB/s), between nodes from a table
     * of 32 GPUs (Bekman: half near 5 MiB). */
    double half = bw * (n > per_node ? 50e-6 : 230e-6);
    half = MIN(half, sqrt(1.5 * half * bytes));
    double eff = bytes / MAX(bytes + half, 1);
    switch (kind) {
    case SIM_ALL_REDUCE: return bytes * 2 * f / (bw * eff) + lat;
    case SIM_ALL_TO_ALL: return bytes * f / (bw * eff) + lat;
    case SIM_PERMUTE: return bytes / bw + a;
    default: return bytes * f / (bw * eff) + lat;
    }
  }
  int chips = (devices + chip->devices_per_chip - 1) / chip->devices_per_chip;
  double link = chip_num(chip, "ici_link", 50e9), hop = chip_num(chip, "ici_hop", 1e-6);
  double eff = chip_num(chip, "ici_efficiency", 0.82);
  int links = (int)chip_num(chip, "ici_links", 4), dim[3],
      wrap = (int)chip_num(chip, "ici_wrap", 16);
  int axes = torus(MAX(chips, 1), links >= 6 ? 3 : 2, dim);
  double bw = 0, hops = 0;
  for (int i = 0; i < axes; i++) {
    if (dim[i] < 2) continue;
    bool ring = dim[i] >= wrap;
    /* a line moves (X-1)/X of the data one way; a ring both ways */
    double frac = (double)(dim[i] - 1) / dim[i];
    bw += ring ? 2 * link : (dim[i] == 2 ? link : link / frac);
    hops += ring ? dim[i] / 2.0 : dim[i] - 1;
  }
  if (chips == 1) bw = 2 * link, hops = 1; /* the two cores of a chip */
  if (bw <= 0) return 0;
  double gather = bytes / (bw * eff) + hop * hops * 1.5;
  int longest = 1;
  for (int i = 0; i < axes; i++) longest = MAX(longest, dim[i]);
  switch (kind) {
  case SIM_ALL_REDUCE: return 2 * gather;
  case SIM_ALL_TO_ALL: return bytes * longest / (4.0 * chips * 2 * link * eff) + hop * hops * 1.5;
  case SIM_PERMUTE: return bytes / (link * eff) + hop;
  default: return gather;
  }
}

/* What a node exchanges, and among how many. */
typedef struct Exchange {
  HNode *node;
  int level, group; /* collectives on the longest way to it; members of a group */
  SimColl kind;
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

/* False: nothing crosses the network. */
static bool exchange_of(const Plan *p, const HNode *n, Exchange *x) {
  double in = 0;
  for (int i = 0; i < n->n_in; i++) in += hlo_bytes(n->in[i]);
  *x = (Exchange){.kind = SIM_ALL_REDUCE, .bytes = MAX(in, result_bytes(n))};
  x->group = p->opts && p->opts->devices > 0 ? p->opts->devices : 1;
  Attr *g = n->src ? op_attr(n->src, "replica_groups") : NULL;
  if (g && g->kind == AT_TENSOR && g->tensor && g->tensor->rank == 2 && g->tensor->dims[1] > 0)
    x->group = (int)g->tensor->dims[1];
  switch (n->op) {
  case OP_ALL_GATHER: x->kind = SIM_ALL_GATHER; return true;
  case OP_REDUCE_SCATTER: x->kind = SIM_REDUCE_SCATTER; return true;
  case OP_ALL_TO_ALL: x->kind = SIM_ALL_TO_ALL; return true;
  case OP_COLLECTIVE_PERMUTE:
  case OP_COLLECTIVE_BROADCAST:
  case OP_SEND:
  case OP_RECV: x->kind = SIM_PERMUTE; return true;
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

static int by_level(const void *a, const void *b) {
  const Exchange *x = a, *y = b;
  int d = x->level != y->level   ? x->level - y->level
          : x->kind != y->kind   ? (int)x->kind - (int)y->kind
          : x->group != y->group ? x->group - y->group
                                 : (int)x->node->dt - (int)y->node->dt;
  return d ? d : x->node->id - y->node->id;
}

static bool combines(const Exchange *x, const Exchange *y) {
  return x->level == y->level && x->kind == y->kind && x->group == y->group &&
         x->node->dt == y->node->dt && x->kind != SIM_PERMUTE && x->kind != SIM_ALL_TO_ALL;
}

static void combine(const Plan *p, const HComp *c) {
  int *level = xcalloc((size_t)p->g->n_nodes + 1, sizeof *level);
  VEC(Exchange) all = {0};
  for (int i = 0; i < c->nodes.n; i++) {
    HNode *n = c->nodes.v[i];
    Exchange x;
    for (int k = 0; k < n->n_in; k++)
      level[n->id] = MAX(level[n->id], level[n->in[k]->id] + (n->in[k]->kind == H_COLL));
    if (n->kind != H_COLL || n->dead || !exchange_of(p, n, &x)) continue;
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
double collective_time(const Plan *p, const Kernel *k, const HNode *n) {
  (void)k;
  Exchange x;
  if (n->op == OP_INFEED || n->op == OP_OUTFEED) {
    exchange_of(p, n, &x);
    return x.bytes / chip_num(p->chip, "pcie", 16e9);
  }
  if (!exchange_of(p, n, &x) || x.bytes <= 0) return 0;
  if (n->together == 0) combine(p, n->comp);
  double all = MAX(n->together, x.bytes);
  return sim_collective_s(p->chip, x.kind, all, x.group) * x.bytes / all;
}
