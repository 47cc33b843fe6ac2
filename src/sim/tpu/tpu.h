/* tpu: what libtpu's compiler makes of a program, and what its kernels take. Private to src/sim. */
#ifndef WEFT_SIM_TPU_TPU_H
#define WEFT_SIM_TPU_TPU_H

#include "sim/schedule/compiler.h"

void tpu_split_groups(HGraph *g, HNode *n); /* a convolution of few groups, as what it becomes */
void tpu_move_slice(HGraph *g, HComp *c, HNode *slice); /* before the product that it cuts */
void tpu_move_pad(HGraph *g, HComp *c, HNode *convert); /* behind the conversion of what it pads */
/* One filter of a single tap a channel becomes a factor for each; false: it is something else. */
bool tpu_scale_channels(HGraph *g, HNode *n);
/* by which kernels a gather's indices come to lie as one vector, and its rows as a result */
void tpu_lay_indices(HGraph *g, const CostParams *params, HComp *c, HNode *gather);
/* what the compiler rewrites before it fuses */
void tpu_expand(HGraph *g, const CostParams *params);
/* Is it an image whose pixels are repeated, for a convolution? */
bool tpu_upsampled(const HNode *n);
/* Has the compiler an emitter for a windowed reduction? One of a matrix has none: both its sides lie in
 * tiles. Longer running sums go block by block, which is a side more. */
#define RUN_BLOCK 128
bool tpu_pool_emitter(const Schedule *p, const HNode *n);
/* What is windowed, or what that is made of element by element. */
const HNode *tpu_pooled_array(const HNode *n);
/* Has each element of an argument a window of its own, which reaches over neighbours in its tile, but not over
 * all of the row? It is summed up as it lies, by an operation of its own. */
bool tpu_slides_in_tile(const CostParams *params, const HNode *n);
/* exp(x - max(x)) and its sum, where x comes from a product: the compiler keeps them in the
 * product's kernel. */
void tpu_softmax(Schedule *p);
bool tpu_slices_tiles(const Schedule *p, const HNode *n);
/* The order that a product wants for an operand or result (`roles`: its c->out, ...): the two minor
 * dimensions may not be batch (of a dot) or spatial (of a convolution). */
void tpu_conv_order(const CostParams *params, const HNode *n, const HConv *c, const char *roles,
                    int *order);
/* Which of a dot's rows lies in tiles: the dimension of its first operand that is padded least, in tiles
 * of 16 where it is one of an image's three; of equals `like`, else the last. */
int tpu_dot_row(const HNode *x, const HConv *c, int like);
/* Does a dot exchange the batch in sublanes of its operand v for another dimension as it reads it? */
bool tpu_turned_inside(const HValue *v, const HConv *c, const char *roles);
/* Does the order that v has do for it? */
bool tpu_order_serves(const HValue *v, const HConv *c, const char *roles, bool result);
/* reshapes that move elements between tiles, of arrays that lie as an image in parts does */
void tpu_split_tiles(HComp *c);
/* how the two sides of a reshape lie that no product is near to */
void tpu_lie(HGraph *g, HNode *n, const int *order); /* it is stored in that order */
void tpu_lay_reshape(HGraph *g, const CostParams *params, HComp *c, HNode *n);
/* Is it a slice of an argument, from its first elements on, that takes the same tiles? */
bool tpu_slice_view(const CostParams *params, const HNode *n);
/* Does the kernel do nothing but take a slice of an argument that begins with tiles? On chip that is a
 * transfer. */
bool tpu_slice_of_tiles(const Schedule *p, const Kernel *k);
/* A concatenation of what is made of slices of one array of its size, whose pieces begin with tiles: one
 * loop writes each where it belongs. */
bool tpu_written_in_place(const CostParams *params, const HNode *n);
bool tpu_part_order(const CostParams *params, const HNode *n, int *order);
/* an exchange between devices becomes what the compiler makes of it; results of the program
 * that other devices write are copied. */
void tpu_collective(HGraph *g, const CostParams *params, HComp *c, HNode *n);
void tpu_received(Schedule *p);
/* What a device gets from its neighbours is put beside its own by an operation without an estimate. */
bool tpu_joins_parts(const HNode *n);
/* A new value: v in another order, made by a kernel of its own; the rule that asks for it. */
HValue *tpu_copy(Schedule *p, HValue *v, const int *order, const char *rule);
/* In that order, as far as tiles go? */
static inline bool tpu_lies_so(const HValue *v, const int *order) {
  return v->order[0] == order[0] && v->order[1] == order[1];
}
static inline bool tpu_same_order(const HValue *a, const HValue *b) {
  return a->node->rank == b->node->rank && tpu_lies_so(a, b->order);
}
/* The order of rows that are gathered by a matrix of indices: as they come, or with the second
 * dimension in lanes where that and the matrix of all rows, turned, pad less. False: something else. */
bool tpu_rows_order(const HNode *n, int *order);
/* Is this read worth fetching ahead of the first kernel? Not when the kernel changes its order on
 * the way, nor for the matrix of a matrix-vector product, nor for what is summed once on the way to
 * another kernel. */
bool tpu_fetch_first(const Schedule *p, const Kernel *k, const HValue *v);
bool tpu_product_or_reduce(
    const Kernel *k); /* also windows, gathers and slices that are looked up */
/* Is the value itself an operand of the kernel's product or sum, and of nothing else in it? Views
 * and edges belong to the operand. */
bool tpu_is_operand(const Kernel *k, const HNode *x);
void tpu_place(Schedule *p);
void tpu_see(Schedule *p, int at);
void tpu_settle(Schedule *p);
void tpu_transfers(Schedule *p); /* beside and between kernels: shifts them */
/* is what a sum and products read, made in so many slots of the vector unit from what
 * takes so many cycles to bring, written where it is added up? */
bool tpu_comes_with_sum(const CostParams *params, const HNode *n, double slots, double in);
/* Arrays of n's size that it is made of, element by element: those that are stored, or parts of such. What
 * is repeated to that size is none. Only stored ones: 0 if it is made of anything else. */
int tpu_leaves(const HNode *n, bool stored);
/* Are rows of what is made of two stored arrays or more added up, or compared, as they are or widened, and walked
 * over again? It is not computed anew then: it comes out of the sums' kernel. Where its squares are added up,
 * what is made of two arrays is, too, of three not. A product would write it. */
bool tpu_walked_again(const HNode *n);
double tpu_read_fraction(const Kernel *k, const HValue *v); /* of v that the kernel reads */
double tpu_windows(const CostParams *params,
                   const Kernel *k); /* bytes on chip that its windows take */
typedef struct RunningSum {
  int width;     /* bytes of an element, two at least */
  bool in_lanes; /* the summed dimension is */
  bool whole;    /* it is a number of blocks */
  bool apart;    /* these do not fill tiles of eight */
  double tiles;  /* of the blocks, summed dimension outside of the tile */
  double plain;  /* without what the number of blocks is padded by */
  double work;   /* what the tiles are reckoned as */
} RunningSum;
bool tpu_running_sum(const Kernel *k, RunningSum *s); /* s may be NULL */
void tpu_cost(Schedule *p, Kernel *k);
/* The stages of tpu_compiler (compiler.h). */
extern const ChipCompiler tpu_compiler;
void tpu_fuse(Schedule *p);
SchedView tpu_view(const Schedule *p, const HNode *n);
void tpu_join(Joins *js);
bool tpu_joins_maker(Joins *js, int at, const HValue *v, bool loops);
bool tpu_shares_tables(const Kernel *k, const HNode *n);
bool tpu_joins_sibling(Joins *js, int i, int j, const HNode *shared, bool table);
void tpu_classified(Schedule *p);
void tpu_layouts(Schedule *p);
/* When everything has an order: two loops that do the same with different arrays of one shape, as where
 * an optimizer updates weights, become one. */
void tpu_pairs(Schedule *p);
void tpu_copies(Schedule *p);
double tpu_scratch(const Schedule *p, const Kernel *k);
double tpu_attention_room(const Schedule *p, const Kernel *k); /* on chip, with what is under way */
/* Where an input meets nothing that is broadcast on its way to the result, in HBM; a loop's state wherever sizes
 * agree. */
bool tpu_overwrites(const Schedule *p, const Kernel *k, const HValue *v, const HValue *o,
                    bool state);
void tpu_finish(Schedule *p);
/* The user chain of a product that becomes its epilogue: element-wise, one user at a time, same
 * number of elements. */
HNode *tpu_epilogue_end(const Schedule *p, HNode *conv, const unsigned char *claimed);
/* Several element-wise users of v that meet again in one node, as in x * (1 - t) + x * (1 - t) * t:
 * that node, or NULL when something else needs one of those between. */
HNode *tpu_meets_again(HNode *v, const unsigned char *claimed);
/* Group norms are made in the shape of the image. */
void tpu_group_norm(HGraph *g);
/* Space of at most so many images becomes batch. */
void tpu_space_to_batch(HGraph *g, double limit);

/* Of a product from its shape alone, everything in device memory. */
double tpu_product_s(const Chip *c, DType dt, double batch, double m, double n, double k);

/* Times that the array goes over a product's operands: digits that the precision asks for, both halves of 64 bits with each other but
 * for the lower ones, three products of real numbers for one of complex ones. */
double tpu_passes(const HNode *n);

#endif
