/* What a band of scores and all that is computed of them, forward and backward, come to in blocks of
 * rows, each with the columns that one of its rows sees. */
#ifndef WEFT_COMPILE_PASS_BAND_PARTS_H
#define WEFT_COMPILE_PASS_BAND_PARTS_H

#include "compile/pass/band_masks.h"

#define LEAST_ROWS 128 /* of a block */
#define BLOCKS 8       /* at most: each has kernels of its own */

typedef struct BandBlock {
  int64_t row, row_end, col, col_end;
  Map *made; /* View -> its part */
} BandBlock;

typedef struct BandGroup {
  Build *b;
  const Region *r;
  int64_t n_rows, n_cols;
  Band band;
  VEC(View) members; /* values of rows x columns that are wanted in blocks alone */
  Map *places;       /* value -> its place among members + 1 */
  Map *results;      /* reductions and products of members that are wanted whole */
  int n_blocks;
  BandBlock blocks[BLOCKS];
} BandGroup;

/* Divides the rows; false: one sees nothing, or hardly anything would be left out. */
bool band_divide(BandGroup *g);
void band_free(BandGroup *g);

const View *band_member(const BandGroup *g, const Value *v); /* NULL: it is none */
void band_add(BandGroup *g, View x);
bool band_is_result(const BandGroup *g, const Op *op);
void band_add_result(BandGroup *g, const Op *op);

/* How a product multiplies a member: its operand, and whether rows or columns are summed. */
typedef struct BandProduct {
  int side;
  View member;
  bool over_rows, over_cols;
} BandProduct;
/* false: both operands are members, or the member's rows or columns are a batch. */
bool band_product(const BandGroup *g, const Op *op, BandProduct *p);

OpKind band_combines(const Op *op); /* what a reduction does */
/* The whole result, of all blocks, of a product or a reduction; built where g->b builds. */
Value *band_result(BandGroup *g, const Op *op);

#endif
