/* law: the coefficients of a TPU that its cost and its compiler's choices depend on, as its chip
 * file has them. Cycles unless said. Private to src/sim. */
#ifndef WEFT_SIM_LAW_H
#define WEFT_SIM_LAW_H

#include "chip/chip.h"

typedef struct Rates { /* cycles per tile read and written: index by bytes of an element, 1, 2, 4 */
  double r[5], o[5];
} Rates;

/* The chip's cost law, read once from its file. */
typedef struct Law {
  bool tpu;
  double clock, macs;
  int side, cores;
  /* products */
  double base, base0, base_out, vstart, w, q, wl, mx, kk;
  Rates product, loop;
  double c[5]; /* read from CMEM, likewise */
  double vin;
  double pixel_load,
      pixel_rows; /* rows to load a tile of weights for one pixel of a spread image, and
                                    to stream one of its batch */
  double gload;   /* the least rows to load a tile of what the gradient of a filter contracts */
  double share;   /* of the array's time, to add up what arrays that share columns make */
  double lat;     /* cycles until a transfer moves, for each one beyond the first */
  /* loops */
  double lbase, lq, lvpu, lwin, rwin;
  double lane, lane_pack;    /* relayouts: to turn a tile into lanes, and to pack a narrow one */
  double scoped, fast, cmem; /* bytes */
  double min_alloc;
  bool prefetch, matvec, softmax, scores, rotates, row_beside, keep, nopack;
  bool keeps_turned; /* gradients of weights whose input is an argument: plan_copies.c */
  bool
      queries; /* attention that only goes forwards loops over queries rather than store its scores */
  double images;  /* at most so many to a batch are cut into parts of the batch; 0: none */
  bool weighs;    /* what is fused first is what saves most cycles, not bytes: plan_store.c */
  bool pairs;     /* short loops that do the same are joined, two at a time */
  double windows; /* bytes that the least of kernels has on chip for its windows, where what windows
                     leave there is for values; 0: `scoped` is for windows alone */
  bool tall;      /* 16-bit operands of products lie in tiles of 16 rows, all else in tiles of 8 */
  bool stepped;   /* operands of convolutions with strides are stored: plan_store.c */
  bool quarters;  /* large arrays are fetched in four pieces */
  double piece;   /* or in pieces of so many bytes */
  bool offload;   /* scatters run beside the core, from device memory to device memory */
  double vhalf, cvpu, repeat, quotient;
  double lvm;          /* what a loop is charged for operands on chip, as a share of one in HBM */
  double join;         /* instruction slots to pad a register and to take the larger of two */
  double dw;           /* cycles to multiply and add one register of a depthwise convolution */
  double row;          /* cycles to turn a register of row values so that they repeat over lanes */
  double spread;       /* and to fill one with values that lie in lanes already */
  double quotient_row; /* of rows this long and longer */
  double scores_mx;    /* products beside a softmax's exponentials: times the array's own cycles */
  double one_bytes, rlq, ro[5], iw, cwin; /* unfused loops; reductions; integer work; copies */
  double fturn, fmove, fshown; /* relayouts inside convolutions; what many taps show of it */
  double vadd; /* of the shorter of the array's and the vector unit's time, that counts as well */
  double made; /* of the work on what a convolution's taps run over, before the array starts */
  double sums; /* instruction slots to add up what a tile of weights makes of a register */
} Law;

void law_read(const Chip *chip, Law *law);

#endif
