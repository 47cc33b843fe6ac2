/* Masks that let each row of scores see a band of columns, however a program writes them: counts that
 * are compared, constants, tril of ones, (1 - mask) * -1e9. */
#ifndef WEFT_COMPILE_PASS_CAUSAL_MASKS_H
#define WEFT_COMPILE_PASS_CAUSAL_MASKS_H

#include "compile/pass/pass_priv.h"

/* A value, and which of its dimensions are the rows and columns of the scores; -1: none. */
typedef struct View {
  Value *v;
  int rows, cols;
} View;

bool moves_elements(const Op *op); /* transpose, reshape, broadcast */
/* What x's move moves, with the places of rows and columns there. false: they have none. */
bool before_move(View x, View *y);
View after_move(View x, const Op *op); /* -1: not there as a dimension of its own */
bool sums_or_maximizes(const Op *op);  /* a reduction of one operand, from what is neutral */
View after_reduction(View x, const Op *op);
View before_reduction(View x);    /* what is reduced is none of the rows, the columns */
bool of_elements(const Op *op);   /* element by element, without broadcasts */
View view_operand(View x, int i); /* of an operation of elements */

#define BIG 1e9 /* below -BIG a score counts as masked */
#define FAR ((int64_t)1 << 40)
typedef struct CausalBand { /* lo <= column - row < hi */
  int64_t lo, hi;
} CausalBand;

/* Elements that are all `in` within the band and all `out` elsewhere; band -FAR .. FAR where they
 * are all equal. */
typedef struct Levels {
  CausalBand band;
  double in, out;
} Levels;
bool levels_of(View x, Levels *l);
void masks_forget(void); /* a pass's end: what this thread keeps of constants */

/* Of what is known in part, as a causal mask and one that is an argument: nothing differs, nothing is
 * above -BIG, beyond these bands. Everything: nothing is known; lo > hi: nowhere. */
CausalBand mask_differs(View mask, bool from);
CausalBand scores_unmasked(View x);
/* Does each row certainly see the column of its own number, or are all masked scores minus infinity? A
 * row that an argument leaves nothing has equal weights in all columns, also those beyond a band. */
bool rows_see_something(View scores);

#endif
