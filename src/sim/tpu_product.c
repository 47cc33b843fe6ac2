/* Products and convolutions on a TPU: the windows with the least estimate, and the matrix-vector
 * products that run as loops. */
#include <math.h>
#include <stdlib.h>

#include "sim/tpu.h"

static double up(double x, double m) { return ceil(x / m) * m; }

#define UNPACK 6 /* vector operations to take bits of a register's elements out of their words */

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

/* An operand in another order than its maker's. */
static bool relaid_operand(const HNode *cv, const HValue *v) {
  return v->node->op == OP_COPY && v->node->n_in == 1 &&
         (v->node->in[0] == cv->in[0] || v->node->in[0] == cv->in[1]);
}

typedef struct Shape {                 /* of a product in the terms of the law, tiles */
  double m, n, k, batch, taps, passes; /* m rows/8, n lanes/128, k lanes/128 */
  double base;                         /* start-up; less when nothing comes from HBM */
  double wait;                         /* in each window, for transfers beyond the first */
  double k_splits;                     /* most parts that k may be cut into */
  double la, lb, le, wo;               /* cycles to move: lhs, rhs, epilogue inputs, results */
  double ba, bb, be, bo;               /* bytes in VMEM windows of the same */
  double share; /* of the array's time that it takes to add what arrays that share columns make */
  double load;  /* cycles to load a tile of weights: the least that streaming past it takes */
  double vin, vpu_a, vpu_e, rate;
  double lhs_tiles, out_tiles;
} Shape;

/* Columns of tiles that are fewer than the arrays of a core share them: parts of the contracted side
 * run side by side, and the vector unit adds their results. */
static double shared_columns(const Law *law, double n, double k) {
  double arrays = law->macs / law->cores / (law->side * law->side), left = fmod(n, arrays);
  return left > 0 ? left / n * (1 - 1 / k) : 0;
}

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
          mxu *= 1 + s->share * shared_columns(law, n, k);
          double comp = MAX(mxu, vec) + law->vadd * MIN(mxu, vec) + s->vin / R +
                        (iK > 1 ? law->kk * s->out_tiles / io : 0);
          double nl = iM * iK * iB == 1 ? 1 : R,
                 nr = iK == 1 ? (iN * iB == 1 ? 1 : MAX(1, iN * iB / mul)) : R;
          double nw = MAX(1, io / mul), R1 = MAX(R - 1, 1);
          double dma = ((nl - 1) * inA + (nr - 1) * inB + (nw - 1) * (wo + ie)) / R1;
          double t = s->base + inA + inB + ie +
                     (R - 1) * MAX(comp + law->w, dma + (dma > 0 ? law->q + s->wait : 0)) + comp +
                     wo;
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

/* One filter a channel: forwards and towards the input (one input feature a group), or the gradient
 * of the filters (as many groups as output features). */
static bool depthwise(const HConv *c) { return c->is_conv && c->groups > 1 && c->groups == c->n; }

/* Pixels of a convolution's result; 1 of other products. */
static double positions(const HNode *cv) {
  double n = 1;
  for (int i = 0; i < cv->rank; i++)
    if (cv->conv->out[i] == 's') n *= (double)cv->d[i];
  return n;
}

/* Registers multiplied by a depthwise convolution: taps of each output register; a gradient of the
 * filters adds each pair of registers once for each of its few outputs, which costs a quarter. */
static double depthwise_work(const Kernel *k, const HNode *cv, const HValue *ov) {
  const HConv *c = cv->conv;
  double out = ov ? ov->tiles : (double)hlo_count(cv) / 1024, taps = (double)c->taps;
  double px = positions(cv);
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

/* Is an operand computed inside the kernel, by more than moving and converting it? */
static bool is_computed(const HNode *n) {
  while (!n->val && n->n_in &&
         (n->kind == H_RESHAPE || n->kind == H_TRANSPOSE || n->kind == H_PAD ||
          (n->kind == H_EWISE && n->op == OP_CONVERT)))
    n = n->in[0];
  return !n->val;
}

/* Do the filter's output features lie in lanes, as on the way forwards? */
static bool features_in_lanes(const Kernel *k, const HNode *cv, const int *side) {
  for (int i = 0; i < k->reads.n; i++) {
    const HValue *v = k->reads.v[i];
    if (side[i] == 1 && v->node->rank == cv->in[1]->rank &&
        hlo_count(v->node) == hlo_count(cv->in[1]))
      return cv->conv->rhs[v->order[0]] == 'n';
  }
  return false;
}

/* How often a convolution takes each element of its input. */
static double taps_moved(const HConv *c) {
  double t = (double)c->taps;
  for (int i = 0; i < c->n_spatial; i++) t /= (double)MAX(1, c->lhs_dil[i] * c->stride[i]);
  return MAX(1, t);
}

/* A product that meets a softmax's exponentials in its epilogue: so many times the array's own time,
 * wherever they lie; its own time where all fits in one window. */
static double beside_scores(const Law *law, const HConv *c, const HValue *scores) {
  double S = law->side, mx = (double)c->batch * up((double)c->m, 8) * up((double)c->n, S) *
                             up((double)c->k, S) * c->passes / law->macs;
  bool one = 3 * scores->bytes <= law->scoped;
  return law->base0 + mx * (one ? 1.1 : law->scores_mx);
}

void tpu_product(Plan *p, Kernel *k) {
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
  double pixels = positions(cv);
  bool gradient = c->is_conv; /* the window is the image: contracted positions may be split */
  for (int i = 0; i < c->n_spatial; i++) gradient &= c->window[i] > 3;
  gradient &= pixels < (double)c->taps || c->taps == 1;
  if (swap) m = (double)c->n, n = (double)c->m;
  if (swap && gradient && law->prefetch && law->side == 128)
    m *= pixels, n /= pixels; /* each pixel of the window has rows of its own */
  double kk = (double)c->k, taps = (double)c->taps, S = law->side, splits_k;
  s.m = up(m, 8) / 8;
  s.load = law->wl;
  if (n >= 8 && kk * taps >= 8 && !(S > 128 && c->is_conv)) /* only what holds weights is loaded */
    s.load *= MAX(0.25, MIN(1, MIN(up(n, 8), up(kk * taps, 8)) / 128));
  if (c->is_conv) {
    /* rows are counted in the dimension that lies in sublanes: the batch, or the features of a
     * weight gradient */
    const HValue *lv = NULL; /* the operand that streams */
    int from = swap && gradient && law->prefetch;
    for (int i = 0; i < nr; i++)
      if (who[i] == from && seen[i]->node->rank == cv->in[from]->rank &&
          hlo_count(seen[i]->node) == hlo_count(cv->in[from]))
        lv = seen[i];
    const char *roles = from ? c->rhs : c->lhs;
    bool k_lanes = lv && roles[lv->order[0]] == 'k', forwards = features_in_lanes(k, cv, who);
    for (int i = 0; i < c->n_spatial; i++) taps /= (double)MAX(1, c->lhs_dil[i]);
    if (taps < 1) taps = 1;
    /* several taps share the contracted side of the array when one leaves room */
    double unit = k_lanes ? up(kk, 128) : up(kk, 8), pack = floor(S / unit);
    if (pack < 1) pack = 1;
    if (pack > taps) pack = taps;
    s.k = ceil(taps / pack) * ceil(unit * pack / S) * (S / 128);
    if (gradient && !k_lanes) s.k = up(ceil(taps * unit / 128), S / 128); /* images in sublanes */
    double whole = floor(kk / 128), rest = kk - whole * 128;              /* lanes */
    bool images = lv && roles[lv->order[1]] == 'm';                       /* in sublanes */
    if (k_lanes && !gradient) {
      s.k = ceil(taps * up(kk, 128) / S) * (S / 128);
      if (whole >= 1 && rest > 0 && rest <= 64 && forwards) /* so does what is left */
        s.k = MIN(s.k, up(whole * taps + ceil(taps / floor(128 / up(rest, 8))), S / 128));
      if (whole < 1 && forwards && c->groups == 1 && taps == (double)c->taps && c->taps > 1 &&
          (images || law->row_pack > (is_computed(cv->in[0]) ? 0 : 1))) {
        /* a copy beside it, shifted along the row, fills the lanes that are left */
        double row = (double)c->window[c->n_spatial - 1];
        pack = MAX(1, MIN(row, floor(S / up(kk, 8))));
        s.k = MIN(s.k, taps / row * ceil(row / pack) * (S / 128));
      }
    }
    if (gradient && S > 128 && (double)c->m / pixels <= 4) s.load *= 0.45; /* few channels */
    if (gradient) s.load = MAX(s.load, MIN(law->wl, 44));
    splits_k = gradient ? s.k : ceil(kk / 128);
    s.batch = 1;
  } else {
    s.k = ceil(kk / 128);
    splits_k = s.k;
    s.batch = (double)c->batch;
  }
  s.share = !c->is_conv || c->taps == 1 || (gradient && n > S) ? law->share : 0;
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
    if (tpu_written_into(k, v)) continue;
    int w = who[i] == 2 ? 2 : (swap ? 1 - who[i] : who[i]);
    double part = tpu_read_fraction(k, v);
    double cost = tpu_read_cost(law, &law->product, v) * part;
    double by = tpu_base_bytes(v) * part;
    (void)sub_a;
    (void)sub_b;
    if (w == 0) s.la += cost, s.ba += by;
    else if (w == 1) s.lb += cost, s.bb += by;
    else s.le += cost, s.be += by;
    if (v->space == SP_VMEM || v->space == SP_CMEM) s.vin += v->tiles * law->vin;
    if (v->packed && !gradient) s.vin += v->tiles * v->packed * UNPACK * law->lvpu;
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
    double part = tpu_written_part(k->roots.v[i]);
    s.wo += tpu_write_cost(law, &law->product, v) * part;
    if (v->space == SP_HBM) s.bo += v->bytes * part;
  }
  s.wo -= tpu_packed_twice(law, &law->product, k);
  s.out_tiles = (double)hlo_count(cv) / 1024;
  double work = tpu_vector_work(law, k);
  double rows = tpu_turned_rows(k) * law->row;
  s.vpu_e = work * law->cvpu + (law->row_beside ? 0 : rows);
  if (depthwise(c)) { /* on the vector unit, tap by tap */
    s.passes = 0;
    s.vpu_e += depthwise_work(k, cv, ov) * law->dw;
  }
  double comp;
  bool far_in = false, far_out = false, hbm = false;
  int streams = 0; /* operands that come from HBM */
  for (int i = 0; i < nr; i++)
    if ((seen[i]->space == SP_HBM || seen[i]->space == SP_CMEM) && seen[i]->node->rank > 0 &&
        (who[i] != 2 || relaid_operand(cv, seen[i]))) { /* the epilogue's come in beside it */
      far_in = true;
      hbm |= seen[i]->space == SP_HBM;
      streams += seen[i]->space == SP_HBM && tpu_read_fraction(k, seen[i]) >= 1;
    }
  for (int i = 0; i < k->roots.n; i++) {
    const HValue *v = k->roots.v[i]->val;
    hbm |= v && !v->dropped && v->space == SP_HBM;
    if (v && !v->dropped &&
        (v->space == SP_HBM || v->space == SP_CMEM || tpu_pack_cost(&law->product, v) > 0) &&
        v->space != SP_SCALAR && !(v->space == SP_VMEM && law->nopack))
      far_out = true;
  }
  double start = law->base - law->base0 - law->base_out;
  s.base = law->base0 +
           (!far_in ? 0
            : hbm   ? start
                    : 0.8 * start) + /* the shared memory is nearer */
           (far_out ? law->base_out : 0);
  s.wait = MAX(0, streams - 1) * law->lat;
  s.base += s.wait;
  k->cycles = product_cycles(law, &s, &comp, &k->windows);
  if (law->row_beside && rows > 0) /* while the array works: the longer of both counts */
    k->cycles = MAX(k->cycles, 0.3 * law->base0 + rows + work * law->cvpu + comp / 4);
  for (int i = 0; i < nr && law->scores_mx > 0; i++)
    if (who[i] == 2 && seen[i]->node->soft && hlo_count(seen[i]->node) == hlo_count(cv))
      k->cycles = beside_scores(law, c, seen[i]);
  k->util = MIN(1, (double)c->flops * c->passes / 2 / law->macs / MAX(k->cycles, 1));
  k->bound = comp > 0.6 * k->cycles      ? SIM_COMPUTE
             : k->cycles < 3 * law->base ? SIM_LATENCY
                                         : SIM_MEMORY;
  free(who);
}

/* A matrix with one row or column becomes a vector before it is used so, unless it lies in memory
 * as one would. */
static double vector_copy(const Law *law, const HValue *v) {
  const HNode *n = v->node;
  int64_t count = hlo_count(n);
  bool row = n->rank == 2 && (n->d[0] == 1 || n->d[1] == 1);
  if (!row || count < 2 || (tpu_width(v) == 4 && (count % 1024 == 0 || v->kernel >= 0))) return 0;
  return law->lbase + 0.035 * (double)count / law->cores;
}

/* A matrix-vector product runs on the vector unit as multiply and reduce. */
void tpu_matvec(Plan *p, Kernel *k) {
  const Law *law = p->law;
  double rd = 0, big = 0;
  for (int i = 0; i < k->reads.n; i++) {
    rd += k->reads.v[i]->tiles * law->loop.r[tpu_width(k->reads.v[i])];
    big = MAX(big, k->reads.v[i]->tiles);
  }
  double n = ceil(big / law->rwin), R = ceil(n / (n > 1 ? law->cores : 1));
  double wr = big * law->loop.o[4];
  k->windows = (int)n;
  k->cycles = law->lbase + rd + wr + (R - 1) * law->lq;
  for (int i = 0; i < k->reads.n; i++) k->cycles += vector_copy(law, k->reads.v[i]);
  for (int i = 0; i < k->roots.n; i++)
    if (k->roots.v[i]->val) k->cycles += vector_copy(law, k->roots.v[i]->val);
  k->bound = SIM_MEMORY;
  k->util = MIN(1, rd / k->cycles);
}
