/* The coefficients of a TPU, from its chip file, and the weight of element-wise operations. */
#include <math.h>
#include <stdlib.h>

#include "sim/tpu.h"

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
  FIT(lat, "lat", 0);
  FIT(pp, "pp", 0);
  FIT(lvpu, "lvpu", 0.3);
  FIT(lbase, "lbase", 300);
  FIT(lq, "lq", 300);
  FIT(lane, "lane", 9);
  FIT(lane_pack, "lane_pack", 0);
  law->matvec = chip_num(chip, "fit.matvec", 1) > 0;
  law->softmax = chip_num(chip, "fit.softmax", 0) > 0;
  law->rotates = chip_num(chip, "fit.rotates", 0) > 0;
  law->row_beside = chip_num(chip, "fit.row_beside", 0) > 0;
  law->scores = chip_num(chip, "fit.scores", 0) > 0;
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
  FIT(spread, "spread", 0);
  FIT(scores_mx, "scores_mx", 0);
  FIT(lvm, "lvm", 1);
  FIT(dw, "dw", 2.2);
  FIT(row_pack, "row_pack", 1);
  FIT(repeat, "repeat", 3);
  FIT(quotient, "quotient", law->repeat);
  FIT(quotient_row, "quotient_row", 0);
  FIT(vbcast, "vbcast", 0);
  FIT(cvpu, "cvpu", law->lvpu);
  law->queries = chip_num(chip, "fit.queries", 0) > 0;
  law->offload = chip_num(chip, "fit.offload", 0) > 0;
  law->keep = law->prefetch && chip_num(chip, "fit.keep", 1) > 0;
#undef FIT
}

/* Relative cost of an element-wise operation on one register of 8 x 128 elements. */
double vpu_weight(const HNode *n) {
  if (n->val && n->val->packed) return n->val->lone ? 3 : 10; /* bit after bit, shifted and added */
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
  if (n->kind == H_BCAST || n->kind == H_RESHAPE || n->kind == H_BARRIER || n->kind == H_CONST ||
      n->kind == H_DUS)
    return 0;
  if (n->kind == H_DSLICE) return 0.5;
  if (n->kind == H_IOTA) return 0.5;
  if (n->kind == H_EWISE && n->src && n->src->kind == OP_UNKNOWN) return 10;
  return 1;
}
