/* The cost of one kernel on a TPU, as the compiler's own model has it: windows stream from HBM into
 * VMEM while the previous ones compute, and the compiler takes the windows with the least estimate.
 * With
 *
 *   in, out   cycles to move one window's operands and results     comp  cycles that one window
 * computes cycles = base + in(first) + sum over windows of max(comp + w, in + out + q) + comp(last)
 * + out(last)
 *
 * and products counted as tiles of weights pushed into the array and rows streamed through it,
 * choosing the least over all windows that fit the scoped VMEM reproduces the compiler's estimate
 * of plain matrix products to 0.1 to 0.3 % (median, v5e and later), 1 to 3 % on v2 to v4.
 * Coefficients: fit.* in the chip files. */
#include <math.h>
#include <stdlib.h>

#include "sim/plan.h"

static double up(double x, double m) { return ceil(x / m) * m; }

void law_read(const Chip *chip, Law *law) {
  memset(law, 0, sizeof *law);
  law->tpu = chip->kind == CHIP_TPU;
  law->clock = chip->clock;
  law->cores = chip->cores_per_device;
  law->min_alloc = law->tpu ? chip_num(chip, "fit.min_alloc", 512) : 256;
  law->macs = chip_num(chip, "mxu_macs", chip->peak_flops / 2 / chip->clock);
  law->side = (int)chip_num(chip, "mxu_weights", 128);
  law->scoped = chip_num(chip, "vmem_scoped", 16 << 20);
  double vmem = chip_num(chip, "vmem", 16 << 20) * (law->tpu ? chip->cores_per_device : 1);
  law->fast = law->tpu && vmem / chip->cores_per_device > law->scoped
                  ? vmem / chip->cores_per_device - law->scoped
                  : 0;
  law->cmem = chip_num(chip, "cmem", 0);
  law->prefetch = law->tpu && (law->fast > 0 || law->cmem > 0);
#define FIT(field, key, dflt) law->field = chip_num(chip, "fit." key, dflt)
  FIT(base, "base", 1000);
  law->base0 = chip_num(chip, "fit.base0", law->base);
  FIT(base_out, "base_out", 0);
  law->nopack = chip_num(chip, "fit.nopack", 0) > 0;
  FIT(w, "w", 200);
  FIT(q, "q", 500);
  FIT(wl, "wl", 128);
  FIT(mx, "mx", 1);
  FIT(kk, "kk", 1);
  FIT(r[1], "r1", 3);
  FIT(r[2], "r2", 5);
  FIT(r[4], "r4", 9);
  FIT(o[1], "o1", 8);
  FIT(o[2], "o2", 13);
  FIT(o[4], "o4", 9);
  FIT(c[2], "c2", 0.3);
  FIT(c[4], "c4", 0.3);
  FIT(vin, "vin", 0.03);
  FIT(pp, "pp", 0);
  FIT(lvpu, "lvpu", 0.3);
  FIT(lbase, "lbase", 300);
  FIT(lq, "lq", 300);
  FIT(lane, "lane", 9);
  FIT(lane_pack, "lane_pack", 0);
  law->matvec = chip_num(chip, "fit.matvec", 1) > 0;
  law->softmax = chip_num(chip, "fit.softmax", 0) > 0;
  FIT(lwin, "lwin", 128);
  FIT(rwin, "rwin", 1024);
  FIT(one_bytes, "one_mib", 12.1);
  law->one_bytes *= 1 << 20;
  FIT(rlq, "rlq", law->lq);
  FIT(ro[4], "ro4", law->o[4]);
  FIT(ro[2], "ro2", law->o[4]);
  FIT(iw, "iw", 0.55);
  FIT(lio, "lio", 1);
  FIT(vadd, "vadd", 0);
  FIT(fturn, "fturn", 0);
  FIT(fmove, "fmove", 0);
  FIT(cwin, "cwin_mib", 8.2);
  law->cwin *= 1 << 20;
  FIT(vhalf, "vhalf", 1);
  FIT(row, "row", 0);
  FIT(lvm, "lvm", 1);
  FIT(dw, "dw", 2.2);
  FIT(repeat, "repeat", 3);
  FIT(quotient, "quotient", law->repeat);
  FIT(vbcast, "vbcast", 0);
  FIT(cvpu, "cvpu", law->lvpu);
  law->keep = law->prefetch && chip_num(chip, "fit.keep", 1) > 0;
#undef FIT
}

/* Relative cost of an element-wise operation on one register of 8 x 128 elements. */
double vpu_weight(const HNode *n) {
  if (n->val && n->val->packed) return 60; /* bit after bit, shifted and added */
  switch (n->op) {
  case OP_SINE:
  case OP_COSINE: return 82;
  case OP_TAN: return 120;
  case OP_ATAN2: return 40;
  case OP_POWER: return 20;
  case OP_REMAINDER: return 30;
  case OP_CBRT: return 20;
  case OP_LOG_PLUS_ONE:
  case OP_EXPONENTIAL_MINUS_ONE: return 10;
  case OP_LOG:
  case OP_LOGISTIC: return 6;
  case OP_TANH: return 4;
  case OP_SQRT: return 5;
  case OP_EXPONENTIAL: return 3;
  case OP_DIVIDE: return 3;
  case OP_RSQRT: return 2;
  case OP_CONVERT: return 0.5;
  default: break;
  }
  if (n->kind == H_BCAST || n->kind == H_RESHAPE || n->kind == H_CONST || n->kind == H_DUS)
    return 0;
  if (n->kind == H_DSLICE) return 0.5;
  if (n->kind == H_IOTA) return 0.5;
  if (n->kind == H_EWISE && n->src && n->src->kind == OP_UNKNOWN) return 10;
  return 1;
}

static int width(const HValue *v) {
  if (v->rounded) return 2;
  double b = hlo_bits(v->node->dt) / 8;
  return b >= 4 ? 4 : b >= 2 ? 2 : 1;
}
static double wide(const HValue *v) { return MAX(1, hlo_bits(v->node->dt) / 32); }

static double base_bytes(const HValue *v) {
  while (v->alias) v = v->alias;
  return v->space == SP_HBM || v->space == SP_CMEM ? v->bytes : 0;
}
static double read_cost(const Law *law, HValue *v) {
  while (v->alias) v = v->alias;
  if (v->space == SP_VMEM || v->space == SP_SCALAR) return 0;
  if (v->space == SP_CMEM) return v->tiles * law->c[width(v) == 4 ? 4 : 2];
  return v->tiles * law->r[width(v)] * wide(v);
}
/* A narrow result is packed from 32-bit registers; the estimate charges that even when the result
 * stays on chip. */
static double pack_cost(const Law *law, const HValue *v) {
  int w = width(v);
  return w < 4 ? v->tiles * (law->o[w] - law->r[w]) : 0;
}
static double write_cost(const Law *law, const HValue *v) {
  if (v->dropped || v->space == SP_SCALAR) return 0;
  if (v->space == SP_VMEM) return law->nopack ? 0 : pack_cost(law, v);
  if (v->space == SP_CMEM) /* slower to write than to read */
    return width(v) >= 4 ? v->tiles * 0.82 * law->o[4] * wide(v)
                         : v->tiles * law->c[2] + pack_cost(law, v);
  return v->tiles * law->o[width(v)] * wide(v);
}

static int splits(double n, double *out, int max) {
  static const int parts[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,  12,  13,  14,  16, 18,
                              20, 22, 24, 28, 32, 40, 48, 57, 64, 96, 128, 192, 256, 384, 512};
  int k = 0;
  double last = -1;
  for (int i = 0; i < COUNT_OF(parts) && k < max; i++) {
    if (parts[i] > n && i) break;
    double w = ceil(n / parts[i]);
    if (w != last) out[k++] = w;
    last = w;
  }
  return k;
}

/* Bytes read and written in device memory. */
static double traffic(const Kernel *k) {
  double b = 0;
  for (int i = 0; i < k->reads.n; i++)
    if (k->reads.v[i]->space == SP_HBM) b += k->reads.v[i]->bytes;
  for (int i = 0; i < k->roots.n; i++) {
    const HValue *v = k->roots.v[i]->val;
    if (v && !v->dropped && v->space == SP_HBM && !v->alias) b += v->bytes;
  }
  return b;
}

/* Vector work of the nodes computed inside, in register operations; products left out. */
static double vector_work(const Law *law, const Kernel *k) {
  double w = 0;
  for (int i = 0; i < k->inner.n; i++) {
    const HNode *n = k->inner.v[i];
    if (n->kind == H_CONV) continue;
    double c = (double)hlo_count(n->kind == H_REDUCE ? n->in[0] : n);
    if (c <= 1024) continue;
    bool half =
        law->vhalf < 1 && (n->dt == DT_BF16 || (n->op == OP_COMPARE && n->in[0]->dt == DT_BF16));
    double ops = vpu_weight(n);
    if (ops == 1 && n->kind == H_EWISE &&
        (dtype_class(n->dt) == DC_SINT || dtype_class(n->dt) == DC_UINT))
      ops = law->iw;
    if (n->kind == H_EWISE)
      for (int q = 0; q < n->n_in; q++)
        if (n->in[q]->kind == H_CONST || n->in[q]->kind == H_BCAST) ops += law->vbcast;
    w += ops * c / 1024 * (half ? law->vhalf : 1);
  }
  return w;
}

/* Values along rows lie in lanes; repeating them over the lanes of their row turns them first.
 * Registers turned this way by the broadcasts inside a kernel. */
static double turned_rows(const Kernel *k) {
  double sum = 0;
  bool soft = false; /* a softmax beside a product has its rows in lanes already */
  for (int i = 0; i < k->inner.n && k->conv; i++) soft |= k->inner.v[i]->soft;
  for (int i = 0; i < k->reads.n && k->conv; i++) soft |= k->reads.v[i]->node->soft;
  for (int i = 0; i < k->inner.n && !soft; i++) {
    const HNode *n = k->inner.v[i];
    if (n->kind != H_BCAST || n->rank < 2 || hlo_count(n->in[0]) < 8 || plan_const_only(n))
      continue;
    int lane = n->rank - 1;
    for (int r = 0; r < k->reads.n + k->roots.n; r++) {
      const HValue *v = r < k->reads.n ? k->reads.v[r] : k->roots.v[r - k->reads.n]->val;
      if (!v || v->node->rank != n->rank || hlo_count(v->node) != hlo_count(n)) continue;
      lane = v->order[0];
      break;
    }
    bool along = true;
    for (int q = 0; q < n->n_dims; q++) along &= n->dims[q] != lane;
    if (along) sum += (double)hlo_count(n->in[0]) / 8;
  }
  return sum;
}

/* Which operand's side of the product a stored value feeds: 0 lhs, 1 rhs, 2 epilogue. */
static void feeds(const Kernel *k, HNode *n, int side, HValue **seen, int *who, int n_seen,
                  int stamp) {
  if (n->visit == stamp) return; /* shared subexpressions: each node once */
  n->visit = stamp;
  for (int i = 0; i < n_seen; i++)
    if (seen[i]->node == n || (seen[i]->alias && seen[i]->alias->node == n)) {
      if (who[i] == 2) who[i] = side;
      if (seen[i]->node == n) return;
    }
  if (n->val && n != k->conv->in[side]) {
    bool inner = false;
    for (int i = 0; i < k->inner.n && !inner; i++) inner = k->inner.v[i] == n;
    if (!inner) {
      for (int i = 0; i < n_seen; i++) /* a relayout stands in for the value itself */
        if (seen[i]->node->op == OP_COPY && seen[i]->node->n_in == 1 && seen[i]->node->in[0] == n &&
            who[i] == 2)
          who[i] = side;
      return;
    }
  }
  for (int i = 0; i < n->n_in; i++) feeds(k, n->in[i], side, seen, who, n_seen, stamp);
}

typedef struct Shape {                 /* of a product in the terms of the law, tiles */
  double m, n, k, batch, taps, passes; /* m rows/8, n lanes/128, k lanes/128 */
  double base;                         /* start-up; less when nothing comes from HBM */
  double k_splits;                     /* most parts that k may be cut into */
  double la, lb, le, wo;               /* cycles to move: lhs, rhs, epilogue inputs, results */
  double ba, bb, be, bo;               /* bytes in VMEM windows of the same */
  double load; /* cycles to load a tile of weights: the least that streaming past it takes */
  double vin, vpu_a, vpu_e, rate;
  double lhs_tiles, out_tiles;
} Shape;

static double product_cycles(const Law *law, const Shape *s, double *out_comp, int *out_windows) {
  double mo[40], no[40], ko[40], bo[40];
  int nm = splits(s->m, mo, 40), nn = splits(s->n, no, 40), nk = splits(s->k_splits, ko, 40),
      nb = splits(s->batch, bo, 12);
  double S = law->side, ss = S / 128, mg = law->cores;
  double best = 1e300, comp_best = 0, least = 1e300, spill = 0;
  int win_best = 1;
  for (int ib = 0; ib < nb; ib++)
    for (int in = 0; in < nn; in++)
      for (int ik = 0; ik < nk; ik++)
        for (int im = 0; im < nm; im++) {
          double b = bo[ib], m = mo[im], n = no[in], k = ceil(s->k * ko[ik] / s->k_splits);
          double iB = ceil(s->batch / b), iM = ceil(s->m / m), iN = ceil(s->n / n),
                 iK = ceil(s->k_splits / ko[ik]);
          double tot = iB * iM * iN * iK;
          if (tot > 20000) continue;
          double mul = tot > 1 ? mg : 1, R = tot > 1 ? ceil(tot / mg) : 1;
          double inA = s->la / (iB * iM * iK) * mul, inB = s->lb / (iB * iN * iK) * mul;
          double io = iB * iM * iN, wo = s->wo / io * mul, ie = s->le / io * mul;
          double rows = MAX(m * 8, s->load);
          double mxu = law->mx * s->passes * s->taps * b * rows * (ceil(n / ss) * S) *
                       (ceil(k / ss) * S) / (law->macs / mg);
          double vec = (s->vpu_a * iN + s->vpu_e) / R;
          double comp = MAX(mxu, vec) + law->vadd * MIN(mxu, vec) + s->vin / R +
                        (iK > 1 ? law->kk * s->out_tiles / io : 0);
          double nl = iM * iK * iB == 1 ? 1 : R,
                 nr = iK == 1 ? (iN * iB == 1 ? 1 : MAX(1, iN * iB / mul)) : R;
          double nw = MAX(1, io / mul), R1 = MAX(R - 1, 1);
          double dma = ((nl - 1) * inA + (nr - 1) * inB + (nw - 1) * (wo + ie)) / R1;
          double t = s->base + inA + inB + ie +
                     (R - 1) * MAX(comp + law->w, dma + (dma > 0 ? law->q : 0)) + comp + wo;
          double v = s->ba / (iB * iM * iK) * (nl > 1 ? 2 : 1) +
                     s->bb / (iB * iN * iK) * (nr > 1 ? 2 : 1) +
                     (s->bo + s->be) / io * (nw > 1 ? 2 : 1) +
                     (iK > 1 ? s->out_tiles * 4096 / io : 0);
          if (v > law->scoped * 0.97) { /* too large; the least bad one counts when nothing fits */
            if (v > least) continue;
            least = v;
            t = 1e200 + v;
          }
          if (t < best) {
            if (t >= 1e200)
              spill = s->base + inA + inB + (R - 1) * MAX(comp + law->w, dma + law->q) + comp + wo;
            best = t;
            comp_best = comp * R;
            win_best = (int)tot;
          }
        }
  if (best >= 1e200) best = spill;
  *out_comp = comp_best;
  *out_windows = win_best;
  return best;
}

/* The part of a value that a slice of it touches, in whole tiles. */
static double slice_part(const HValue *v, const HNode *n) {
  double part = 1;
  for (int i = 0; i < n->rank && i < v->node->rank; i++) {
    int d = v->order[i];
    double all = (double)v->node->d[d], span = (double)n->d[d];
    if (n->kind == H_SLICE && n->lo && n->hi) span = (double)(n->hi[d] - n->lo[d]);
    double unit = v->node->rank < 2 ? 1 : i == 0 ? 128 : i == 1 ? 8 : 1;
    part *= MIN(1, up(span, unit) / up(MAX(all, 1), unit));
  }
  return part;
}

/* The part of a value that the kernel touches: less than all when it only takes slices of it. */
static double read_fraction(const Kernel *k, const HValue *v) {
  double part = 0, all = (double)hlo_count(v->node);
  if (all <= 0) return 1;
  for (int i = 0; i < k->inner.n; i++) {
    const HNode *n = k->inner.v[i];
    for (int q = 0; q < n->n_in; q++) {
      if (n->in[q] != v->node) continue;
      if (n->kind != H_SLICE && n->kind != H_DSLICE && !(n->kind == H_GATHER && q == 0)) return 1;
      part += n->kind == H_GATHER || n->rank != v->node->rank ? (double)hlo_count(n) / all
                                                              : slice_part(v, n);
    }
  }
  return part > 0 && part < 1 ? part : 1;
}

/* Is this the array that the kernel writes a slice into? */
static bool written_into(const Kernel *k, const HValue *v) {
  for (int q = 0; q < k->roots.n; q++)
    if (k->roots.v[q]->kind == H_DUS && v->node == k->roots.v[q]->in[0]) return true;
  return false;
}

/* The part of a result that is written: a slice of what is updated in place. */
static double written_part(const HNode *r) {
  return r->kind == H_DUS && r->n_in > 1
             ? (double)hlo_count(r->in[1]) / (double)MAX(1, hlo_count(r))
             : 1;
}

/* A matrix with one row or column becomes a vector before it is used so, unless it lies in memory
 * as one would. */
static double vector_copy(const Law *law, const HValue *v) {
  const HNode *n = v->node;
  int64_t count = hlo_count(n);
  bool row = n->rank == 2 && (n->d[0] == 1 || n->d[1] == 1);
  if (!row || count < 2 || (width(v) == 4 && (count % 1024 == 0 || v->kernel >= 0))) return 0;
  return law->lbase + 0.035 * (double)count / law->cores;
}

/* A matrix-vector product runs on the vector unit as multiply and reduce. */
static void cost_matvec(Plan *p, Kernel *k) {
  const Law *law = p->law;
  double rd = 0, big = 0;
  for (int i = 0; i < k->reads.n; i++) {
    rd += k->reads.v[i]->tiles * law->r[width(k->reads.v[i])];
    big = MAX(big, k->reads.v[i]->tiles);
  }
  double n = ceil(big / law->rwin), R = ceil(n / (n > 1 ? law->cores : 1));
  double wr = big * law->o[4];
  k->windows = (int)n;
  k->cycles = law->lbase + rd + wr + (R - 1) * law->lq;
  for (int i = 0; i < k->reads.n; i++) k->cycles += vector_copy(law, k->reads.v[i]);
  for (int i = 0; i < k->roots.n; i++)
    if (k->roots.v[i]->val) k->cycles += vector_copy(law, k->roots.v[i]->val);
  k->bound = SIM_MEMORY;
  k->util = MIN(1, rd / k->cycles);
}

/* One filter a channel: forwards and towards the input (one input feature a group), or the gradient
 * of the filters (as many groups as output features). */
static bool depthwise(const HConv *c) { return c->is_conv && c->groups > 1 && c->groups == c->n; }

/* Registers multiplied by a depthwise convolution: taps of each output register; a gradient of the
 * filters adds each pair of registers once for each of its few outputs, which costs a quarter. */
static double depthwise_work(const Kernel *k, const HNode *cv, const HValue *ov) {
  const HConv *c = cv->conv;
  double out = ov ? ov->tiles : (double)hlo_count(cv) / 1024, taps = (double)c->taps;
  double px = 1;
  for (int i = 0; i < cv->rank; i++)
    if (c->out[i] == 's') px *= (double)cv->d[i];
  if (px >= taps) {
    for (int i = 0; i < c->n_spatial; i++) taps /= sqrt((double)MAX(1, c->lhs_dil[i]));
    return out * taps;
  }
  double in = (double)hlo_count(cv->in[1]) / 1024;
  for (int i = 0; i < k->reads.n; i++)
    if (hlo_count(k->reads.v[i]->node) == hlo_count(cv->in[1])) in = MAX(in, k->reads.v[i]->tiles);
  return in * px / 4;
}

/* The size of the contracted dimension that lies in lanes of the streamed operand, when it is one
 * of several: its multiples cannot share the array. 0 otherwise. */
static double lane_contracted(const HNode *cv, HValue *const *reads, const int *side, int n) {
  const HConv *c = cv->conv;
  int dims = 0;
  for (const char *q = c->lhs; *q; q++) dims += *q == 'k';
  if (c->is_conv || dims < 2) return 0;
  for (int i = 0; i < n; i++) {
    const HValue *v = reads[i];
    const HNode *x = cv->in[0];
    if (side[i] != 0 || v->node->rank != x->rank || hlo_count(v->node) != hlo_count(x)) continue;
    int lane = v->order[0];
    return c->lhs[lane] == 'k' && v->node->d[lane] == x->d[lane] ? (double)x->d[lane] : 0;
  }
  return 0;
}

/* How often a convolution takes each element of its input. */
static double taps_moved(const HConv *c) {
  double t = (double)c->taps;
  for (int i = 0; i < c->n_spatial; i++) t /= (double)MAX(1, c->lhs_dil[i] * c->stride[i]);
  return MAX(1, t);
}

static void cost_product(Plan *p, Kernel *k) {
  const Law *law = p->law;
  const HNode *cv = k->conv;
  const HConv *c = cv->conv;
  int nr = k->reads.n;
  HValue **seen = k->reads.v;
  int *who = calloc((size_t)nr + 1, sizeof *who);
  for (int i = 0; i < nr; i++) who[i] = 2;
  feeds(k, cv->in[0], 0, seen, who, nr, 2 * cv->id + 1);
  feeds(k, cv->in[1], 1, seen, who, nr, 2 * cv->id + 2);
  Shape s = {0};
  /* which side streams: the result's lanes are the stationary side */
  bool swap = false;
  const HValue *ov = NULL;
  for (int i = 0; i < k->roots.n; i++)
    if (hlo_count(k->roots.v[i]) == hlo_count(cv) && k->roots.v[i]->val) ov = k->roots.v[i]->val;
  if (ov && ov->node->rank == cv->rank && cv->rank >= 1) {
    const HValue *b = ov;
    char lane = c->out[b->order[0]];
    if (cv->rank == 1) lane = c->out[0];
    swap = lane == 'm';
  } else if (c->n < 128 && c->m > c->n && !c->is_conv) {
    swap = true;
  }
  double m = (double)c->m, n = (double)c->n;
  if (swap) m = (double)c->n, n = (double)c->m;
  double kk = (double)c->k, taps = (double)c->taps, S = law->side, splits_k;
  s.m = up(m, 8) / 8;
  s.load = law->wl;
  if (c->is_conv) {
    /* rows are counted in the dimension that lies in sublanes: the batch, or the features of a
     * weight gradient */
    const HValue *lv = NULL;
    for (int i = 0; i < nr; i++)
      if (who[i] == 0 && seen[i]->node->rank == cv->in[0]->rank &&
          hlo_count(seen[i]->node) == hlo_count(cv->in[0]))
        lv = seen[i];
    bool k_lanes = lv && c->lhs[lv->order[0]] == 'k';
    for (int i = 0; i < c->n_spatial; i++) taps /= (double)MAX(1, c->lhs_dil[i]);
    if (taps < 1) taps = 1;
    /* several taps share the contracted side of the array when one leaves room */
    double unit = k_lanes ? up(kk, 128) : up(kk, 8), pack = floor(S / unit);
    if (pack < 1) pack = 1;
    if (pack > taps) pack = taps;
    double rounds = ceil(taps / pack);
    bool gradient = true; /* the window is the image: contracted positions may be split */
    for (int i = 0; i < c->n_spatial; i++) gradient &= c->window[i] > 3;
    double out_px = (double)c->m;
    for (int i = 0; i < cv->rank; i++)
      if (c->out[i] == 'm') out_px /= (double)cv->d[i];
    gradient &= out_px < (double)c->taps || c->taps == 1;
    s.k = rounds * ceil(unit * pack / S) * (S / 128);
    if (gradient && (double)c->m / out_px <= 4)
      s.load = MAX(32, 0.45 * s.load); /* few channels: part of a tile */
    double whole = floor(kk / S), rest = kk - whole * S;
    if (k_lanes && whole >= 1 && rest > 0 && rest <= S / 2 && !gradient) /* so do what is left */
      s.k = (whole * taps + ceil(taps / floor(S / up(rest, 8)))) * (S / 128);
    splits_k = gradient ? s.k : ceil(kk / 128);
    s.batch = 1;
  } else {
    s.k = ceil(kk / 128);
    splits_k = s.k;
    s.batch = (double)c->batch;
  }
  double inner = lane_contracted(cv, seen, who, nr);
  if (inner > 0 && inner < S) { /* several dimensions are contracted, the one in lanes is short */
    s.k = ceil(kk / inner) * (S / 128);
    splits_k = s.k;
  }
  s.n = ceil(n / 128);
  s.k_splits = splits_k;
  s.taps = 1;
  s.passes = c->passes;
  if ((cv->in[0]->dt == DT_I8 || cv->in[0]->dt == DT_U8))
    s.passes = chip_num(p->chip, "fit.int8", 1);
  double sub_a = 0, sub_b = 0;
  for (int i = 0; i < nr; i++) {
    HValue *v = seen[i];
    if (written_into(k, v)) continue;
    int w = who[i] == 2 ? 2 : (swap ? 1 - who[i] : who[i]);
    double part = read_fraction(k, v);
    double cost = read_cost(law, v) * part;
    double by = base_bytes(v) * part;
    (void)sub_a;
    (void)sub_b;
    if (w == 0) s.la += cost, s.ba += by;
    else if (w == 1) s.lb += cost, s.bb += by;
    else s.le += cost, s.be += by;
    if (v->space == SP_VMEM || v->space == SP_CMEM) s.vin += v->tiles * law->vin;
    if (c->is_conv && who[i] == 0 && ov && v->is_param && v->node->rank == cv->in[0]->rank &&
        v->node->rank >= 2 && hlo_count(v->node) == hlo_count(cv->in[0]) &&
        ov->node->rank == cv->rank && hlo_bits(v->node->dt) == 16) {
      char ol = c->out[ov->order[0]],
           os = c->out[ov->order[1]]; /* a relayout of the operand is fused in */
      char il = c->lhs[v->order[0]], is = c->lhs[v->order[1]];
      if (ol == 'm' && il == 'k' && is == 's')
        s.vin += v->tiles * law->fturn * MIN(1, taps_moved(c) / 9);
      else if (ol == 'n' && os == 'm' && il == 'k' && is == 's') s.vin += v->tiles * law->fmove;
    }
  }
  for (int i = 0; i < k->roots.n; i++) {
    const HValue *v = k->roots.v[i]->val;
    if (!v || v->dropped) continue;
    double part = written_part(k->roots.v[i]);
    s.wo += write_cost(law, v) * part;
    if (v->space == SP_HBM) s.bo += v->bytes * part;
  }
  s.out_tiles = (double)hlo_count(cv) / 1024;
  double work = vector_work(law, k);
  s.vpu_e = work * law->cvpu + turned_rows(k) * law->row;
  if (depthwise(c)) { /* on the vector unit, tap by tap */
    s.passes = 0;
    s.vpu_e += depthwise_work(k, cv, ov) * law->dw;
  }
  double comp;
  bool far_in = false, far_out = false;
  for (int i = 0; i < nr; i++)
    if ((seen[i]->space == SP_HBM || seen[i]->space == SP_CMEM) && seen[i]->node->rank > 0 &&
        (seen[i]->tiles > 1 || who[i] != 2))
      far_in = true;
  for (int i = 0; i < k->roots.n; i++) {
    const HValue *v = k->roots.v[i]->val;
    if (v && !v->dropped && (v->space == SP_HBM || v->space == SP_CMEM || pack_cost(law, v) > 0) &&
        v->space != SP_SCALAR && !(v->space == SP_VMEM && law->nopack))
      far_out = true;
  }
  s.base = law->base0 + (far_in ? law->base - law->base0 - law->base_out : 0) +
           (far_out ? law->base_out : 0);
  k->cycles = product_cycles(law, &s, &comp, &k->windows);
  k->util = MIN(1, (double)c->flops * c->passes / 2 / law->macs / MAX(k->cycles, 1));
  k->bound = comp > 0.6 * k->cycles      ? SIM_COMPUTE
             : k->cycles < 3 * law->base ? SIM_LATENCY
                                         : SIM_MEMORY;
  free(who);
}

/* An unfused operation runs in one window while its arrays fit, else in windows of a fixed number
 * of tiles. */
static double loop_cycles(const Law *law, const Kernel *k, double rd, double wr, double comp,
                          double bytes, double all_bytes, double tiles, bool narrow, int *windows) {
  double n, lq = law->lq;
  bool one = all_bytes <= law->one_bytes;
  if (k->reduce) {
    n = k->alone ? (one ? 1 : ceil(tiles / law->lwin)) : ceil(tiles / law->rwin);
    if (k->alone) lq = law->rlq;
  } else if (k->alone && !k->copy) {
    n = one ? 1 : ceil(tiles / law->lwin);
  } else if (k->copy) {
    n = ceil((narrow ? 2 : 1) * bytes / law->cwin);
  } else {
    n = ceil(2 * bytes / (law->scoped * (narrow ? 0.72 : 0.985)));
  }
  if (n < 1) n = 1;
  double mg = n > 1 ? law->cores : 1, R = ceil(n / mg);
  *windows = (int)MIN(n, 1e9);
  if (R <= 1) return law->lbase + rd + wr + comp;
  return law->lbase + rd / R + wr / R + (R - 1) * MAX(comp / R, (rd + wr) / R + lq) + comp / R;
}

/* An argument that later kernels read as well is copied on chip while its first reader takes it
 * from HBM. */
static bool arrives(const Plan *p, const Kernel *k, const HValue *v) {
  if (!v->is_param || p->comp->parent || v->last_read <= k->pos || !v->n_stays ||
      !v->stays[0].fetched || v->stays[0].first > k->pos)
    return false;
  for (int i = v->stays[0].first; i < k->pos; i++)
    for (int r = 0; r < p->kernels.v[i]->reads.n; r++)
      if (p->kernels.v[i]->reads.v[r] == v) return false;
  return true;
}

/* What a loop is charged for an operand: on some generations one on chip costs as much as one in
 * HBM. */
static double far_read(const Plan *p, const Kernel *k, HValue *v) {
  const Law *law = p->law;
  while (v->alias) v = v->alias;
  if (v->space == SP_SCALAR) return 0;
  double near = v->space == SP_VMEM && !arrives(p, k, v) ? law->lvm : 1;
  return v->tiles * law->r[width(v)] * wide(v) * near;
}

#define TURN_WINDOW 768 /* tiles of both sides that are turned at a time */

/* Moving another dimension into lanes goes through the transpose unit, window by window: nothing
 * overlaps, and a tile of any type costs the same. */
static double turn_cycles(const Law *law, HValue *from, HValue *to, int *windows) {
  HValue *side[2] = {base_of(from), to};
  double tiles = side[0]->tiles + to->tiles, per = TURN_WINDOW * law->cores, w = 100;
  double n = MAX(1, ceil(tiles / per));
  const HNode *x = to->node; /* windows are whole slices of the outermost dimension */
  if (n > 1 && x->rank > 2) {
    double outer = (double)x->d[to->order[x->rank - 1]], take = floor(outer * per / tiles);
    if (take >= 1) n = ceil(outer / take);
  }
  for (int i = 0; i < 2; i++) {
    double t = side[i]->tiles / n, far = law->lbase - 30;
    if (side[i]->space == SP_HBM) w += far + t * law->lane;
    else if (side[i]->space == SP_CMEM) w += far + t * law->lane * 0.41;
    else if (i && law->lane_pack > 0 && width(to) < 4 && side[0]->space != SP_HBM)
      w += far + t * law->lane_pack;
  }
  *windows = (int)n;
  return n * w;
}

/* A concatenation is the largest of its padded operands: along the outermost dimension every window
 * reads all of them, and moving wide elements within their lanes is work of its own. */
static double joining(const Law *law, const HNode *n, double tiles) {
  const HValue *v = n->val;
  if (!v || n->rank < 1) return 0;
  if (n->index == v->order[n->rank - 1] && n->rank > 1)
    return tiles * law->r[width(v)] * (n->n_in - 1);
  if (n->index == v->order[0] && width(v) == 4) return tiles * 8 * law->lvpu;
  return 0;
}

/* Kernels beside one that makes random bits from a counter: the key is taken apart, and each row
 * has three words of its counters computed once, for nothing where they fill whole registers. */
static double counters(const Law *law, const Kernel *k) {
  double t = 0;
  for (int i = 0; i < k->inner.n; i++) {
    const HNode *n = k->inner.v[i];
    if (n->kind == H_SLICE && n->in[0]->val && n->dt == DT_U32 && n->rank == 1 &&
        hlo_count(n->in[0]) <= 4 && t < law->lbase)
      t += law->lbase + 8;
  }
  for (int i = 0; i < k->inner.n && t > 0; i++) {
    const HNode *n = k->inner.v[i];
    if (n->kind != H_IOTA || n->dt != DT_U64 || n->rank < 2) continue;
    double rows = (double)(hlo_count(n) / MAX(1, n->d[n->rank - 1]));
    return t + 3 * (rows <= 512 ? law->lbase + 4 : 15 + 3 * rows / 1024);
  }
  return t;
}

static void cost_loop(Plan *p, Kernel *k) {
  const Law *law = p->law;
  double rd = 0, wr = 0, bytes = 0, all = 0, tiles = 0;
  bool any_array = false, narrow = false;
  for (int i = 0; i < k->reads.n; i++) {
    HValue *v = k->reads.v[i];
    double part = read_fraction(k, v);
    rd += (k->copy ? read_cost(law, v) : far_read(p, k, v)) * part;
    if (v->node->rank > 0) any_array = true;
    if (!k->copy || v->space == SP_HBM) bytes += v->bytes * part;
    all += v->bytes * part;
    narrow |= width(v) == 2;
    if (part >= 1) tiles = MAX(tiles, v->tiles);
  }
  bool reduced = false;
  for (int i = 0; i < k->roots.n && k->reduce;
       i++) { /* walked anyway when a whole array is written as well */
    const HNode *n = k->roots.v[i];
    if (n->kind != H_REDUCE && n->val && !n->val->dropped && !n->val->alias && n->val->tiles > 16)
      reduced = true;
  }
  for (int i = 0; i < k->roots.n; i++) {
    HNode *n = k->roots.v[i];
    HValue *v = n->val;
    if (!v || v->dropped || v->alias) continue;
    if (n->kind ==
        H_REDUCE) { /* the estimate charges the window it walks over, as 4-byte results */
      double t = (double)hlo_count(n->in[0]) / 1024;
      int wide_in = 4;
      for (int q = 0; q < k->reads.n; q++)
        if (hlo_count(k->reads.v[q]->node) == hlo_count(n->in[0])) {
          t = MAX(t, k->reads.v[q]->tiles);
          if (width(k->reads.v[q]) < 4) wide_in = 2;
        }
      if (!reduced) {
        wr += t * law->ro[wide_in];
        if (wide_in == 2) all += t * 4096;
      }
      reduced = true;
      tiles = MAX(tiles, t);
    } else {
      wr += write_cost(law, v);
      tiles = MAX(tiles, v->tiles);
      if (!k->copy || v->space == SP_HBM) bytes += v->bytes;
      all += width(v) < 4 ? 2 * v->bytes : v->bytes;
    }
    any_array |= (v->space == SP_HBM || v->space == SP_CMEM) && v->node->rank > 0;
  }
  for (int i = 0; i < k->inner.n; i++) { /* rows of one image lie apart */
    const HNode *n = k->inner.v[i];
    const HValue *v = n->kind == H_RESHAPE ? n->in[0]->val : NULL;
    if (v && v->is_param && n->rank == 2 && v->node->rank > 2 && v->node->d[v->order[1]] == 1)
      rd *= 2;
  }
  rd *= law->lio, wr *= law->lio;
  double comp = vector_work(law, k) * law->lvpu + turned_rows(k) * law->row;
  if (k->alone && !k->reduce)
    comp = MIN(comp, tiles * law->lvpu); /* all unfused operations alike */
  if (k->roots.v[0]->kind == H_CONCAT) wr += joining(law, k->roots.v[0], tiles);
  const HNode *root = k->roots.v[0];
  bool moved = root->kind == H_TRANSPOSE && k->inner.n == 1 && root->val && k->reads.n == 1 &&
               root->rank >= 2 && root->dims[root->val->order[0]] != k->reads.v[0]->order[0];
  k->vpu = comp;
  k->cycles = loop_cycles(law, k, rd, wr, comp, bytes, all, tiles, narrow, &k->windows);
  if (!any_array) /* less than a register's worth is written like an array */
    k->cycles = root->rank > 0 && hlo_count(root) < 1024 ? law->lbase + 2 : 15 + tiles * 0.25;
  k->cycles += counters(law, k);
  if (k->copy && k->reads.n == 1 && k->reads.v[0]->space != SP_HBM && k->roots.v[0]->val &&
      k->roots.v[0]->val->space == SP_VMEM)
    k->cycles = 100 * MAX(1, ceil(tiles / 384)); /* inside VMEM */
  if ((k->turns || moved) && root->val)
    k->cycles = turn_cycles(law, k->reads.v[0], root->val, &k->windows);
  k->bound = comp > rd + wr ? SIM_VECTOR : k->cycles < 2 * law->lbase ? SIM_LATENCY : SIM_MEMORY;
  k->util = MIN(1, MAX(comp, rd + wr) / MAX(k->cycles, 1));
}

/* A slice written in place into a larger array: a loop over the slice. libtpu estimates it where it
 * is fused with what computes the slice, or runs in a loop. */
static void cost_update(Plan *p, Kernel *k) {
  const Law *law = p->law;
  double rd = 0, wr = 0, bytes = 0;
  for (int i = 0; i < k->reads.n; i++) {
    HValue *v = k->reads.v[i];
    if (written_into(k, v)) continue;
    double part = read_fraction(k, v);
    rd += far_read(p, k, v) * part;
    bytes += v->bytes * part;
  }
  for (int i = 0; i < k->roots.n; i++) {
    const HNode *r = k->roots.v[i];
    if (!r->val) continue;
    double part = written_part(r);
    wr += write_cost(law, r->val) * part;
    bytes += r->val->bytes * part;
  }
  double R = MAX(1, ceil(ceil(2 * bytes / (law->scoped * 0.985)) / law->cores));
  k->windows = (int)R;
  k->cycles =
      law->lbase + law->lio * (rd + wr) + (R - 1) * law->lq + vector_work(law, k) * law->lvpu / R;
  k->bound = SIM_MEMORY;
  k->util = MIN(1, (rd + wr) / k->cycles);
  const HNode *first = k->roots.v[0];
  bool plain = k->inner.n <= 1 && (width(first->val) >= 4 || first->rank < 2 ||
                                   first->val->order[0] == first->rank - 1);
  k->modelled = !p->comp->parent && plain;
  k->costed = !k->modelled;
}

/* Windowed reductions: estimated as a product is, when the compiler has an emitter for them (the
 * window's dimensions outside the tile, whole lanes); otherwise without an estimate. */
static void cost_pool(Plan *p, Kernel *k) {
  const Law *law = p->law;
  double rd = 0, wr = 0, out = 0;
  const HValue *ov = NULL;
  for (int i = 0; i < k->roots.n; i++) {
    const HValue *v = k->roots.v[i]->val;
    if (!v) continue;
    wr += v->tiles * law->o[width(v)];
    out += v->tiles;
    ov = v;
  }
  double work = 0; /* a relayout that is fused in; elements of each window */
  for (int i = 0; i < k->reads.n; i++) {
    const HValue *v = k->reads.v[i];
    rd += read_cost(law, k->reads.v[i]);
    if (ov && v->node->rank == ov->node->rank && v->node->rank > 1 &&
        (v->order[0] != ov->order[0] || v->order[1] != ov->order[1]))
      work += v->tiles * law->fmove;
  }
  for (int i = 0; i < k->inner.n; i++)
    if (k->inner.v[i]->kind == H_RWIN && k->inner.v[i]->lo) {
      const HNode *w = k->inner.v[i];
      const HNode *x = w->in[0]->kind == H_PAD ? w->in[0]->in[0] : w->in[0];
      double taps = 1, in = (double)hlo_count(x) / 1024; /* holes and edges left out */
      for (int d = 0; d < w->rank; d++) {
        taps *= (double)w->lo[d];
        if (w->step) in /= (double)MAX(1, w->step[d]);
      }
      if (taps > 4) work += MIN(out, in) * taps * law->dw / 4;
    }
  double n = MAX(1, ceil(out / 900)), R = ceil(n / (n > 1 ? law->cores : 1));
  k->windows = (int)n;
  k->cycles = law->base + (rd + wr + work) / R + (R - 1) * MAX((rd + wr) / R + law->q, work / R);
  k->bound = SIM_MEMORY;
  k->util = MIN(1, (rd + wr) / k->cycles);
}

/* A softmax in one kernel: rows are read once, reduced, and written. */
static void cost_softmax(Plan *p, Kernel *k) {
  const Law *law = p->law;
  double rd = 0, wr = 0, bytes = 0;
  for (int i = 0; i < k->reads.n; i++)
    rd += read_cost(law, k->reads.v[i]), bytes += k->reads.v[i]->bytes;
  for (int i = 0; i < k->roots.n; i++)
    if (k->roots.v[i]->val)
      wr += write_cost(law, k->roots.v[i]->val), bytes += k->roots.v[i]->val->bytes;
  double n = MAX(1, ceil(bytes / 3.2e6)), R = ceil(n / (n > 1 ? law->cores : 1));
  k->windows = (int)n;
  k->cycles = law->base + rd + wr + vector_work(law, k) * law->lvpu / (n > 1 ? law->cores : 1) +
              (R - 1) * law->q;
  k->bound = SIM_MEMORY;
  k->util = MIN(1, (rd + wr) / k->cycles);
}

/* Gathers, scatters, sorts and the like carry no estimate in the compiler: modelled from what they
 * move. */
static void cost_irregular(Plan *p, Kernel *k) {
  const Law *law = p->law;
  const HNode *n = k->roots.v[0];
  double rd = 0, wr = 0, passes = 1, latency = 0;
  for (int i = 0; i < k->reads.n; i++) rd += k->reads.v[i]->tiles * law->r[width(k->reads.v[i])];
  for (int i = 0; i < k->roots.n; i++)
    if (k->roots.v[i]->val) wr += k->roots.v[i]->val->tiles * law->o[width(k->roots.v[i]->val)];
  double rows = 0;
  switch (n->kind) {
  case H_GATHER: {
    int64_t idx = n->n_in > 1 ? hlo_count(n->in[1]) : 1;
    rd = wr;
    rows = (double)MIN(idx, hlo_count(n));
    latency = rows * 12; /* one row a descriptor */
    break;
  }
  case H_SCATTER: {
    int64_t idx = n->n_in > 1 ? hlo_count(n->in[n->n_in / 2]) : 1;
    rows = (double)idx;
    latency = rows * 25;
    rd = wr = 0;
    for (int i = 0; i < k->reads.n; i++) rd += k->reads.v[i]->tiles * law->r[width(k->reads.v[i])];
    break;
  }
  case H_RWIN: passes = 1; break;
  case H_SORT: {
    double len = 1;
    const HNode *x = n->in[0];
    if (x->rank) len = (double)x->d[x->rank - 1];
    passes = MAX(1, log2(len + 1) * (log2(len + 1) + 1) / 2);
    rd = (double)hlo_count(x) / 1024 * passes * 1.1;
    wr = 0;
    break;
  }
  default: break;
  }
  k->cycles = law->lbase + rd + wr + latency;
  k->bound = latency > rd + wr ? SIM_LATENCY : SIM_MEMORY;
  k->util = MIN(1, (rd + wr) / k->cycles);
  k->modelled = true;
}

/* A slice of every so many elements, on its own. */
static bool skips(const Kernel *k) {
  const HNode *n = k->roots.v[0];
  if (n->kind != H_SLICE || k->inner.n > 1 || !n->step) return false;
  for (int d = 0; d < n->rank; d++)
    if (n->step[d] > 1) return n->rank > 1;
  return false;
}

/* Elements spread apart along rows or lanes: a product with a matrix of zeros and ones, in three
 * passes. 0 for other kernels. */
static double spreading(const Law *law, const Kernel *k, int *windows) {
  const HNode *n = k->roots.v[0];
  if (n->kind != H_PAD || k->inner.n > 2 || n->rank < 2 || !n->val || k->reads.n < 1) return 0;
  for (int i = 0; i < 2; i++) {
    int d = n->val->order[i];
    if (n->step[d] < 1) continue;
    double from = law->side, to = up((double)n->d[d], law->side); /* block by block */
    double others = (double)hlo_count(n) / (double)MAX(1, n->d[d]);
    *windows = 1;
    return law->base + read_cost(law, k->reads.v[0]) + write_cost(law, n->val) +
           3 * up(others, 8) * from * to / law->macs;
  }
  return 0;
}

/* A reshape of its own, from the natural order to the natural order. */
static bool moves_elements(const Kernel *k) {
  const HNode *n = k->roots.v[0];
  if (!k->copy || n->kind != H_RESHAPE || k->reads.n != 1) return false;
  const HValue *v = k->reads.v[0], *o = n->val;
  if (v->node->rank < 2 || !o) return false;
  int r = v->node->rank;
  if (n->rank < 2) return v->node->d[r - 1] % 128 || v->node->d[r - 2] % 8;
  for (int d = 0; d < 2; d++)
    if (v->order[d] != v->node->rank - 1 - d || o->order[d] != n->rank - 1 - d) return false;
  return true;
}

static bool updates(const Kernel *k) {
  for (int i = 0; i < k->roots.n; i++)
    if (k->roots.v[i]->kind == H_DUS) return true;
  return false;
}

void tpu_cost(Plan *p, Kernel *k) {
  const HNode *root = k->roots.n ? k->roots.v[0] : NULL;
  k->bytes = traffic(k);
  for (int i = 0; i < k->inner.n; i++) {
    const HNode *n = k->inner.v[i];
    if (n->conv) k->flops += (double)n->conv->flops;
    else if (n->kind == H_EWISE) k->flops += (double)hlo_count(n);
    else if (n->kind == H_REDUCE) k->flops += (double)hlo_count(n->in[0]);
  }
  if (!root) return;
  k->costed = true;
  if (root->kind == H_COLL) {
    k->collective = k->modelled = true;
    k->costed = false;
    k->time_s = collective_time(p, k, root);
    k->cycles = k->time_s * p->law->clock;
    k->bound = SIM_NETWORK;
    k->util = 1;
    return;
  }
  const HConv *cv = k->conv ? k->conv->conv : NULL;
  if (cv && !cv->is_conv && (cv->m == 1 || cv->n == 1) && p->law->matvec && cv->k > 1) {
    cost_matvec(p, k);
  } else if (k->conv) {
    cost_product(p, k);
  } else if (updates(k)) {
    cost_update(p, k);
  } else if (k->pool) {
    cost_pool(p, k);
  } else if (k->soft) {
    cost_softmax(p, k);
  } else if (root->kind == H_REDUCE || hlo_light(root) || root->kind == H_CONCAT ||
             root->kind == H_DSLICE) {
    cost_loop(p, k);
    double t = spreading(p->law, k, &k->windows);
    if (t > 0) k->cycles = t;
  } else {
    cost_irregular(p, k);
    k->costed = root->op == OP_BITCAST_CONVERT;
    k->modelled = !k->costed;
  }
  if (moves_elements(k) || skips(k)) k->costed = false, k->modelled = true; /* no estimate exists */
  k->est = k->cycles;
  if (k->must_copy) { /* the operand must survive: it is copied before it is changed */
    HValue *v = root->val;
    double bytes = 2 * v->bytes, n = MAX(1, ceil(2 * bytes / (p->law->scoped * 0.985)));
    double R = ceil(n / (n > 1 ? p->law->cores : 1));
    k->est = p->law->lbase + v->tiles * (p->law->r[width(v)] + p->law->o[width(v)]) +
             (R - 1) * p->law->lq;
    k->cycles += k->est;
    k->costed = true;
  }
  k->time_s = k->cycles / p->law->clock;
}
