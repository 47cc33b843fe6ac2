/* How a product is cut into windows on a TPU: the cut with the least estimate. */
#include <math.h>

#include "sim/tpu/cost.h"

#define MAX_CUTS 60
#define WINDOWS 20000 /* more are not worth a look, and where nothing fits in fewer: */
#define FINE_WINDOWS 1e6
/* Of the memory for windows, in products by the batch alone: the most of an operand, and of results while they are
 * added up (libtpu 0.0.51, windows of 40 products on v5e and v6e). */
#define OPERAND 0.18
#define SUMS 0.4

#define FINE 512 /* more parts than that are looked at where nothing fits in as few */

static int cuts(double n, double *out, int max, bool fine) {
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
  for (double p = FINE * 1.5; fine && p <= n && k < max; p *= 1.25) {
    double w = ceil(n / p);
    if (w != last) out[k++] = w;
    last = w;
  }
  return k;
}

/* Columns of tiles that are fewer than the arrays of a core share them: parts of the contracted side
 * run side by side, and the vector unit adds their results. */
static double shared_columns(const CostParams *params, double n, double k) {
  double arrays = params->macs / params->cores / (params->side * params->side),
         left = fmod(n, arrays);
  return left > 0 ? left / n * (1 - 1 / k) : 0;
}

/* Images of a filter's gradient are cut by batch first, then by pixels, along the outer side first: each part overlaps its
 * neighbours by what the filter reaches. How often more than once they are read so. */
static double overlap(const ProductShape *s, double parts) {
  if (s->whole_parts <= 0 || parts <= s->whole_parts) return 1;
  double pieces = ceil(parts / s->whole_parts), outer = MIN(pieces, s->wide[0]);
  double rows = ceil(s->wide[0] / outer), columns = ceil(s->wide[1] / ceil(pieces / outer));
  return (rows + s->halo[0]) / rows * (columns < s->wide[1] ? (columns + s->halo[1]) / columns : 1);
}

typedef struct Cut {
  double windows; /* in all */
  double cycles;  /* of the kernel */
  double array;   /* of those, the computing of all windows */
  double bytes;   /* of VMEM */
  double operand; /* of the larger operand's window */
  double sums;    /* of a window's results, in f32 */
} Cut;

/* Windows of b products, m rows, n columns and `part` of what k may be cut into. False when they
 * are too many to be worth a look. */
static bool cut_into(const CostParams *params, const ProductShape *s, double b, double m, double n,
                     double part, double most, Cut *out) {
  double S = params->side, ss = S / 128, mg = params->cores;
  double k = ceil(s->k * part / s->k_splits);
  double iB = ceil(s->batch / b), iM = ceil(s->m / m), iN = ceil(s->n / n),
         iK = ceil(s->k_splits / part);
  double tot = iB * iM * iN * iK, io = iB * iM * iN;
  if (tot > most) return false;
  double mul = tot > 1 ? mg : 1,
         R = tot > 1 ? ceil(tot / mg) : 1; /* windows beside each other, rounds */
  /* cycles to move a round's windows */
  double lhs = s->la / (iB * iM * iK) * mul, rhs = s->lb / (iB * iN * iK) * mul;
  *(s->image_right ? &rhs : &lhs) *= overlap(s, iK);
  double written = s->wo / io * mul, epilogue = s->le / io * mul;
  /* cycles to compute one */
  double rows = MAX(m * 8, s->load);
  double deep = ceil(k / ss), tiles = ceil(n / ss) * deep; /* of weights */
  if (s->halves && fmod(n, ss) == 1) tiles -= floor(deep / 2);
  double mxu = params->mx * s->passes * b * rows * tiles * S * S / (params->macs / mg) *
               (1 + s->share * shared_columns(params, n, k));
  double vec = s->vector / R,
         late = params->base0 - params->vstart; /* the array starts so much later */
  double comp = MAX(mxu, vec + (s->sums - late) / R) + params->vadd * MIN(mxu, vec) + s->vin / R +
                (iK > 1 ? params->kk * s->out_tiles / io : 0);
  /* how often each operand's window changes */
  double nl = iM * iK * iB == 1 ? 1 : R,
         nr = iK == 1 ? (iN * iB == 1 ? 1 : MAX(1, iN * iB / mul)) : R, nw = MAX(1, io / mul);
  double dma = ((nl - 1) * lhs + (nr - 1) * rhs + (nw - 1) * (written + epilogue)) / MAX(R - 1, 1);
  out->windows = tot;
  out->array = comp * R;
  out->cycles = s->base + lhs + rhs + epilogue +
                (R - 1) * MAX(comp + params->w, dma + (dma > 0 ? params->q + s->wait : 0)) + comp +
                written;
  out->bytes = s->ba / (iB * iM * iK) * (nl > 1 ? 2 : 1) +
               s->bb / (iB * iN * iK) * (nr > 1 ? 2 : 1) + (s->bo + s->be) / io * (nw > 1 ? 2 : 1) +
               (iK > 1 ? s->out_tiles * 4096 / io : 0);
  out->operand = MAX(s->ba / (iB * iM * iK), s->bb / (iB * iN * iK));
  out->sums = s->out_tiles * 4096 / io;
  return true;
}

/* The cut with the least estimate among those that fit, or the smallest when none does: false. */
static bool best_cut(const CostParams *params, const ProductShape *s, bool fine, Cut *best) {
  double mo[MAX_CUTS], no[MAX_CUTS], ko[MAX_CUTS], bo[MAX_CUTS];
  int nm = cuts(s->m, mo, MAX_CUTS, fine), nn = cuts(s->n, no, MAX_CUTS, fine),
      nk = cuts(s->k_splits, ko, MAX_CUTS, fine),
      nb = cuts(s->batch, bo, fine ? MAX_CUTS : 12, fine);
  bool found = false, fits = false;
  Cut t;
  for (int ib = 0; ib < nb; ib++)
    for (int in = 0; in < nn; in++)
      for (int ik = 0; ik < nk; ik++)
        for (int im = 0; im < nm; im++) {
          double most = fine ? FINE_WINDOWS : WINDOWS;
          if (!cut_into(params, s, bo[ib], mo[im], no[in], ko[ik], most, &t)) continue;
          bool fit =
              t.bytes <= params->scoped * 0.97; /* the least bad one counts when nothing fits */
          if (s->batch > 1 && s->vector <= 0)
            fit &= t.operand <= params->scoped * OPERAND && t.sums <= params->scoped * SUMS;
          bool better = !found || fit > fits ||
                        (fit == fits && (fit ? t.cycles < best->cycles : t.bytes < best->bytes));
          if (!better) continue;
          *best = t;
          found = true;
          fits = fit;
        }
  return fits;
}

double tpu_tiling(const CostParams *params, const ProductShape *s, double *array, int *windows) {
  Cut best = {0}, fine = {0};
  if (!best_cut(params, s, false, &best) && best_cut(params, s, true, &fine)) best = fine;
  *array = best.array;
  *windows = (int)best.windows;
  return best.cycles;
}
