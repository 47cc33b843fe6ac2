/* Collectives on the chip's network: rings along the axes of a torus (TPU), NVLink or PCIe (GPU).
 * Formulas: Austin et al., "How to Scale Your Model"; nccl-tests. No compiler estimate exists:
 * results are marked as modelled. */
#include <math.h>

#include "sim/plan.h"

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
    /* bytes at which half of the bandwidth is reached: what passes in the time that a collective
     * needs to start and to fill its rings. Inside a node from 8 H100 (Austin et al., ch. 12: an
     * all-gather of 536 MB takes 1.5 ms, an all-reduce of 58 MB reaches 150 GB/s), between nodes
     * from a table of 32 GPUs (Bekman: half near 5 MiB). */
    double half = bw * (n > per_node ? 50e-6 : 230e-6);
    double eff = bytes / (bytes + half);
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

double collective_time(const Plan *p, const Kernel *k, const HNode *n) {
  int devices = p->opts && p->opts->devices > 0 ? p->opts->devices : 1;
  (void)k;
  double in = 0, out = 0;
  for (int i = 0; i < n->n_in; i++) in += hlo_bytes(n->in[i]);
  if (n->n_results > 1)
    for (int r = 0; r < n->n_results; r++) {
      double c = hlo_bits(n->res_dt[r]) / 8;
      for (int d = 0; d < n->res_rank[r]; d++) c *= (double)n->res_d[r][d];
      out += c;
    }
  else out = hlo_bytes(n);
  int group = devices;
  if (n->src) { /* replica_groups: members of one group */
    Attr *g = op_attr(n->src, "replica_groups");
    if (g && g->kind == AT_TENSOR && g->tensor && g->tensor->rank == 2 && g->tensor->dims[1] > 0)
      group = (int)g->tensor->dims[1];
  }
  if (n->op == OP_PARTITION_ID || n->op == OP_REPLICA_ID) return 0;
  SimColl kind = SIM_ALL_REDUCE;
  double bytes = MAX(in, out);
  switch (n->op) {
  case OP_ALL_GATHER: kind = SIM_ALL_GATHER; break;
  case OP_REDUCE_SCATTER: kind = SIM_REDUCE_SCATTER; break;
  case OP_ALL_TO_ALL: kind = SIM_ALL_TO_ALL; break;
  case OP_COLLECTIVE_PERMUTE:
  case OP_COLLECTIVE_BROADCAST:
  case OP_SEND:
  case OP_RECV: kind = SIM_PERMUTE; break;
  case OP_INFEED:
  case OP_OUTFEED: return bytes / chip_num(p->chip, "pcie", 16e9);
  case OP_ALL_REDUCE:
  case OP_CROSS_REPLICA_SUM:
  case OP_COLLECTIVE_REDUCE: break;
  default: return 0;
  }
  return sim_collective_s(p->chip, kind, bytes, group);
}
