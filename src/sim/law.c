/* The coefficients of a TPU, from its chip file. */
#include <math.h>
#include <stdlib.h>

#include "sim/law.h"

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
  law->keeps_turned = chip_num(chip, "fit.keeps_turned", 0) > 0;
  law->nopack = chip_num(chip, "fit.nopack", 0) > 0;
  FIT(w, "w", 200);
  FIT(q, "q", 500);
  FIT(wl, "wl", 128);
  FIT(gload, "gload", MIN(law->wl, 44));
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
  law->weighs = chip_num(chip, "fit.weighs", 0) > 0;
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
  FIT(fshown, "fshown", 0.5);
  FIT(cwin, "cwin_mib", 8.2);
  law->cwin *= 1 << 20;
  FIT(vhalf, "vhalf", 1);
  FIT(row, "row", 0);
  FIT(spread, "spread", 0);
  FIT(scores_mx, "scores_mx", 0);
  FIT(lvm, "lvm", 1);
  FIT(dw, "dw", 2.2);
  FIT(join, "join", 15);
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
