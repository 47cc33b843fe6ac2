/* query: questions about nodes of the graph that several compilers ask. Private to src/sim. */
#ifndef WEFT_SIM_HLO_QUERY_H
#define WEFT_SIM_HLO_QUERY_H

#include "sim/hlo/hlo.h"

/* The exponentials that n is the quotients of, perhaps rounded; or NULL. */
const HNode *hlo_exponentials(const HNode *n);
int hlo_sides(const HNode *n); /* longer than one element */
#define GROUPED 5 /* sides of scores: batch, keys' head, its queries' heads, queries, keys */
bool hlo_is_tiny(const HNode *n); /* scalar arithmetic */
bool hlo_cuts_number(
    const HNode *n); /* a single one, out of an array: stored, for the scalar unit */
bool hlo_const_only(const HNode *n); /* made of constants: recomputed for nothing */
/* Does a reshape only add and take away dimensions of one? Then the result lies as what it is made of. */
bool hlo_same_dimensions(const HNode *reshape);
/* An argument that becomes a piece of a stack. */
bool hlo_stacked_argument(const HNode *n);
/* A concatenation of pieces that are one wide: the dimension that it makes lies outside of all others. */
bool hlo_stacked(const HNode *n);
/* Rows added up from nothing, and something else but such sums added to them: they are added to that. */
void hlo_add_rows_to(HGraph *g, HNode *n);

#endif
