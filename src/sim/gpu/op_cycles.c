/* Operations that XLA for GPUs counts for an element when it asks what to fuse: cycles that its authors measured on
 * some chips, by compute capability, in f32 (the table of OpenXLA's cost model as jaxlib 0.10.2 holds it). Those of
 * an RTX A6000 (8.6) stand for chips that it has none of, and what it has not is counted as few. */
#include "sim/gpu/gpu.h"
#include "sim/schedule/schedule.h"

#define FEW 3.0

typedef struct Cycles {
  OpKind op;
  double of[7]; /* by chip, in the order of `chips`; 0: not in the table */
} Cycles;

static const double chips[] = {6.0, 7.0, 7.5, 8.0, 8.6, 9.0, 10.0};
#define OTHERS 4 /* 8.6 */

static const Cycles table[] = {
    {OP_ADD, {11, 6, 0, 0, 0, 7, 7}},
    {OP_SUBTRACT, {11, 6, 0, 0, 0, 7, 7}},
    {OP_MULTIPLY, {11, 6, 0, 0, 0, 3, 7}},
    {OP_CHLO_SQUARE, {11, 6, 0, 0, 0, 3, 7}},
    {OP_DIVIDE, {35, 21, 0, 0, 0, 19, 23}},
    {OP_EXPONENTIAL, {109, 79, 83, 0, 86, 79, 82}},
    {OP_EXPONENTIAL_MINUS_ONE, {337, 205, 319, 0, 381, 190, 196}},
    {OP_LOG, {284, 180, 201, 259, 244, 166, 165}},
    {OP_LOG_PLUS_ONE, {328, 217, 218, 0, 262, 229, 200}},
    {OP_RSQRT, {71, 76, 74, 0, 75, 75, 74}},
    {OP_SQRT, {71, 76, 74, 0, 75, 75, 74}},
    {OP_CBRT, {213, 189, 783, 0, 867, 178, 180}},
    {OP_TANH, {426, 269, 167, 504, 190, 467, 137}},
    {OP_SINE, {473, 373, 717, 0, 662, 958, 990}},
    {OP_COSINE, {494, 373, 737, 0, 662, 978, 1002}},
    {OP_POWER, {988, 673, 1085, 1221, 925, 510, 463}},
    {OP_ATAN2, {663, 406, 414, 0, 486, 431, 373}},
    {OP_CHLO_ERF, {0, 0, 0, 0, 0, 0, 161}},
};

double gpu_op_cycles(const Chip *chip, OpKind op, DType type) {
  if (type == DT_BF16) return FEW; /* no chip was measured in it */
  if (op == OP_LOGISTIC)           /* written out: 1 / (1 + exp(-x)) */
    return FEW + gpu_op_cycles(chip, OP_EXPONENTIAL, type) + gpu_op_cycles(chip, OP_ADD, type) +
           gpu_op_cycles(chip, OP_DIVIDE, type);
  double capability = chip_num(chip, "compute_capability", 0);
  int column = OTHERS;
  for (int i = 0; i < (int)(sizeof chips / sizeof *chips); i++)
    if (chips[i] == capability) column = i;
  for (int i = 0; i < (int)(sizeof table / sizeof *table); i++)
    if (table[i].op == op && table[i].of[column] > 0) return table[i].of[column];
  return FEW;
}
