/* What a band of scores and all that is computed of them, forward and backward, come to in blocks of
 * rows, each with the columns that one of its rows sees. */
#ifndef WEFT_COMPILE_PASS_CAUSAL_PARTS_H
#define WEFT_COMPILE_PASS_CAUSAL_PARTS_H

#include "compile/pass/causal_masks.h"

#define LEAST_ROWS 128 /* of a block */
#define BLOCKS 8       /* at most: each has kernels of its own */

typedef struct CausalBlock {
  int64_t row, row_end, col, col_end;
  Map *made; /* View -> its part */
} CausalBlock;

typedef struct CausalGroup {
  Build *b;
  const Region *r;
  int64_t n_rows, n_cols;
  CausalBand band;
  VEC(View) members; /* values of rows x columns that are wanted in blocks alone */
  Map *places;       /* value -> its place among members + 1 */
  Map *results;      /* reductions and products of members that are wanted whole */
  int n_blocks;
  CausalBlock blocks[BLOCKS];
} CausalGroup;

/* Divides the rows; false: one sees nothing, or hardly anything would be left out. */
bool causal_divide(CausalGroup *g);
void causal_free(CausalGroup *g);

const View *causal_member(const CausalGroup *g, const Value *v); /* NULL: it is none */
void causal_add(CausalGroup *g, View x);
bool causal_is_result(const CausalGroup *g, const Op *op);
void causal_add_result(CausalGroup *g, const Op *op);

/* How a product multiplies a member: its operand, and whether rows or columns are summed. */
typedef struct CausalProduct {
  int side;
  View member;
  bool over_rows, over_cols;
} CausalProduct;
/* false: both operands are members, or the member's rows or columns are a batch. */
bool causal_product(const CausalGroup *g, const Op *op, CausalProduct *p);

OpKind causal_combines(const Op *op); /* what a reduction does */
/* The whole result, of all blocks, of a product or a reduction; built where g->b builds. */
Value *causal_result(CausalGroup *g, const Op *op);

#endif
