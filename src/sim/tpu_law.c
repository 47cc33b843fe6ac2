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
  FIT(product.r[1], "r1", 3);
  FIT(product.r[2], "r2", 5);
  FIT(product.r[4], "r4", 9);
  FIT(product.o[1], "o1", 8);
  FIT(product.o[2], "o2", 13);
  FIT(product.o[4], "o4", 9);
  FIT(loop.r[1], "lr1", law->product.r[1]);
  FIT(loop.r[2], "lr2", law->product.r[2]);
  FIT(loop.r[4], "lr4", law->product.r[4]);
  FIT(loop.o[1], "lo1", law->product.o[1]);
  FIT(loop.o[2], "lo2", law->product.o[2]);
  FIT(loop.o[4], "lo4", law->product.o[4]);
  FIT(c[2], "c2", 0.3);
  FIT(c[4], "c4", 0.3);
  FIT(vin, "vin", 0.03);
  FIT(pixel_load, "pixel_load", 128);
  FIT(pixel_rows, "pixel_rows", 1);
  FIT(share, "share", 0);
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
  law->images = chip_num(chip, "fit.images", 0);
  law->pairs = chip_num(chip, "fit.pairs", 0) > 0;
  law->windows = chip_num(chip, "fit.windows_mib", 0) * (1 << 20);
  law->tall = chip_num(chip, "fit.tall", 0) > 0;
  law->quarters = chip_num(chip, "fit.quarters", 0) > 0;
  law->piece = chip_num(chip, "fit.piece_mib", 0) * (1 << 20);
  FIT(lwin, "lwin", 128);
  FIT(rwin, "rwin", 1024);
  FIT(one_bytes, "one_mib", 12.1);
  law->one_bytes *= 1 << 20;
  FIT(rlq, "rlq", law->lq);
  FIT(ro[4], "ro4", law->product.o[4]);
  FIT(ro[2], "ro2", law->product.o[4]);
  FIT(iw, "iw", 0.55);
  FIT(vadd, "vadd", 0);
  FIT(made, "made", 0);
  FIT(sums, "sums", 1);
  FIT(vstart, "vstart", law->base0);
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
  FIT(join, "join", 15);
  FIT(row_pack, "row_pack", 1);
  FIT(repeat, "repeat", 3);
  FIT(quotient, "quotient", law->repeat);
  FIT(quotient_row, "quotient_row", 0);
  FIT(cvpu, "cvpu", law->lvpu);
  law->queries = chip_num(chip, "fit.queries", 0) > 0;
  law->stepped = chip_num(chip, "fit.stepped", 0) > 0;
  law->offload = chip_num(chip, "fit.offload", 0) > 0;
  law->keep = law->prefetch && chip_num(chip, "fit.keep", 1) > 0;
#undef FIT
}

/* A quotient of a quotient is one quotient, of products. */
static bool divides_again(const HNode *n) {
  const HNode *u = n->n_users == 1 && !n->val ? n->users[0] : NULL;
  return u && u->op == OP_DIVIDE && hlo_count(u) == hlo_count(n);
}

/* Instruction slots that an element-wise operation takes on one register of 8 x 128 elements whose
 * operands are in registers: one where it joins several, none for what has an instruction of its own
 * beside others, more for what is several instructions. Read off single operations of f32[1024,512]
 * and of products' epilogues in the oracle's compiler: whole numbers of quarter cycles on v5e and
 * later. */
double vpu_weight(const HNode *n) {
  if (n->val && n->val->packed) return n->val->lone ? 6 : 20; /* bit after bit, shifted and added */
  if (n->kind == H_BCAST || n->kind == H_RESHAPE || n->kind == H_BARRIER || n->kind == H_CONST ||
      n->kind == H_DUS)
    return 0;
  if (n->kind == H_DSLICE || n->kind == H_IOTA) return 1;
  if (n->kind == H_REDUCE && n->n_in == 2) return 1;
  if (n->kind != H_EWISE) return 2;
  double join = n->n_in > 1;
  switch (n->op) {
  case OP_SINE:
  case OP_COSINE: return 150;
  case OP_TAN: return 185;
  case OP_CHLO_LGAMMA: return 190;
  case OP_CHLO_ERFC:
  case OP_CHLO_ERF_INV: return 44;
  case OP_CHLO_ERF: return 21;
  case OP_REMAINDER: return 33;
  case OP_LOGISTIC: return 6;
  case OP_FLOOR:
  case OP_CEIL:
  case OP_ROUND_NEAREST_EVEN:
  case OP_ROUND_NEAREST_AFZ:
  case OP_LOG: return 3;
  case OP_TANH:
  case OP_RSQRT:
  case OP_EXPONENTIAL: return 2;
  case OP_DIVIDE: return join + (divides_again(n) ? 0 : 2);
  case OP_POWER: return join + 2;
  default: return join;
  }
}
