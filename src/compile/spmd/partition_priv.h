/* The partitioner's parts: partition.c goes through the program, partition_ops.c knows single
 * operations, partition_exchange.c what devices must tell each other. */
#ifndef WEFT_COMPILE_SPMD_PARTITION_PRIV_H
#define WEFT_COMPILE_SPMD_PARTITION_PRIV_H

#include "compile/spmd/partition.h"
#include "compile/spmd/propagate.h"
#include "ir/build.h"

#define MAX_RANK 16
#define MAX_AXES 8

typedef struct Dim {
  int n;
  AxisRef a[MAX_AXES];
} Dim;

typedef struct Layout { /* sharding of one value; rank entries used */
  Dim d[MAX_RANK];
  Dim sum; /* over these axes the devices' parts have yet to be summed */
} Layout;

typedef struct Spmd {
  Module *m;
  const Mesh *mesh;
  Func *f;
  int64_t n_devices, next_channel;
  Value **local;   /* by old value id: the local value */
  Layout *layouts; /* by old value id */
  const Sharding **
      unsummed; /* by old value id: the one that asks for parts that are not summed yet; NULL: none */
  Region *at;   /* where new ops go */
  const Loc *loc;
  Value *partition_id; /* in the current region; NULL: not yet */
  Map *exchanged;      /* what spmd_reshard has made, by value, region and layout */
  Map *
      broadcasts; /* old ops: the first of equal ones, by local operand, region, type, dimensions */
} Spmd;

/* ---- partition_exchange.c ---- */

int64_t spmd_dim_parts(const Spmd *s, const Dim *d);
/* Elements of a device's part. */
double spmd_part_of(const Spmd *s, const Type *t, const Layout *l);
Op *spmd_emit(Spmd *s, OpKind kind, int n_in, Value *const *in, int n_out, Type *const *out,
              int n_attrs, const NamedAttr *attrs, int n_regions, Region *const *regions);
Value *spmd_emit1(Spmd *s, OpKind kind, int n_in, Value *const *in, Type *out, int n_attrs,
                  const NamedAttr *attrs);
Type *spmd_local_type(Spmd *s, Type *t, const Layout *l);
NamedAttr spmd_named(const char *name, Attr *a);
Value *spmd_all_gather(Spmd *s, Value *x, int dim, const Dim *axes);
Value *spmd_reduce_scatter(Spmd *s, Value *x, int dim, const Dim *axes);
Value *spmd_all_reduce(Spmd *s, Value *x, const Dim *axes, const Region *body, OpKind combine);
int spmd_common_prefix(const Dim *a, const Dim *b);
/* From one layout to the other, is a part of a device's part all that it needs? */
bool spmd_only_cuts(const Layout *from, const Layout *to, int rank);
bool spmd_same_axes(const Dim *a, const Dim *b);
/* Those axes of a that b has, or has not. */
Dim spmd_axes_in(const Dim *a, const Dim *b, bool in);
bool spmd_same_sums(const Layout *a, const Layout *b);
bool spmd_uses_axis(const Layout *l, int rank, AxisRef a);
/* Those of the axes that cut no dimension of a layout. */
Dim spmd_not_cutting(const Dim *axes, const Layout *l, int rank);
/* The sum over `axes` as the result wants it: of each device its part where axes cut it, then over the axes
 * that are left. */
Value *spmd_sum_over(Spmd *s, Value *x, const Dim *axes, const Layout *want, Layout *has);
/* Where this device's part begins, of parts of this size along a dimension cut by axes: an i64. */
Value *spmd_own_place(Spmd *s, const Dim *axes, int64_t size);
Value *spmd_reshard(Spmd *s, Value *x, const Layout *from, const Layout *to);
/* x of the device whose place along the axes is from[own place]; zeros where that is none of them. */
Value *spmd_fetch(Spmd *s, Value *x, const Dim *axes, const int64_t *from);

/* ---- partition_ops.c ---- */

Layout *spmd_layout_of(Spmd *s, const Value *v);
/* The value that it is given, whose sharding it tells? op: NULL is fine */
static inline bool says_sharding(const Op *op) {
  return op && (op->kind == OP_SHARDING_CONSTRAINT || op->kind == OP_RESHARD);
}
Value *spmd_operand(Spmd *s, Value *old, const Layout *want);
/* The first axes of a cut, up to one that a layout uses. */
Dim spmd_without(const Dim *cut, const Layout *used, int rank);
/* has: whether its parts have yet to be summed stays as it is. */
void spmd_set_result(Spmd *s, const Op *op, int i, Value *x, const Layout *has);
bool spmd_captures(const Spmd *s, const Region *r); /* does it use values from outside? */
void spmd_batched_op(Spmd *s, const Op *op);
void spmd_callback_op(Spmd *s, const Op *op);
Op *spmd_tied_op(Spmd *s, const Op *op, const bool *keep, int (*tie)(const Op *op, int k, int d));
int spmd_tie_same(const Op *op, int k, int d);
int spmd_tie_leading(const Op *op, int k, int d);
int spmd_tie_transpose(const Op *op, int k, int d);
bool spmd_elementwise_op(Spmd *s,
                         const Op *op); /* false: its operands come to where its result is */
void spmd_broadcast_op(Spmd *s, const Op *op, const bool *keep);
void spmd_iota_op(Spmd *s, const Op *op);
void spmd_constant_op(Spmd *s, const Op *op);
void spmd_moved_op(Spmd *s, const Op *op);
void spmd_update_slice_op(Spmd *s, const Op *op);
void spmd_reshape_op(Spmd *s, const Op *op);
void spmd_reduce_op(Spmd *s, const Op *op);
void spmd_gather_op(Spmd *s, const Op *op);
void spmd_scatter_op(Spmd *s, const Op *op);
void spmd_barrier_op(Spmd *s, const Op *op);

/* Same op on local operands, local result types. */
Op *spmd_same_op(Spmd *s, const Op *op, Value *const *in, Type *const *out);

/* Number k of the n that each index has along a dimension; and the indices with others in their place, whose type all
 * of them get. */
Value *spmd_numbers(Build *b, Value *ids, int dim, int k, int n);
Value *spmd_with_numbers(Build *b, Value *ids, int dim, int k, int n, Value *numbers);

/* ---- partition_product.c ---- */

/* A product: result dimension d comes from (operand, dimension); contracting pairs may stay cut
 * alike. */
typedef struct Product {
  int n_pairs;
  int pairs[MAX_RANK][2];
  int from[MAX_RANK][2]; /* result dim -> dim of x, of y; -1 none */
} Product;

void spmd_dot_op(Spmd *s, const Op *op);
void spmd_conv_op(Spmd *s, const Op *op);

/* ---- partition_window.c ---- */

/* Adds the dimensions that a convolution's window moves along and that may stay cut. */
void spmd_conv_sides(Spmd *s, const Op *op, Product *p);
/* The input cut as need[0] and what windows reach of its neighbours'; padding: pairs, as they are then. */
Value *spmd_conv_input(Spmd *s, const Op *op, Value *x, const Layout need[2], int64_t *padding);
void spmd_set_padding(Spmd *s, Op *conv, const int64_t *padding);
void spmd_reverse_op(Spmd *s, const Op *op);
bool spmd_pool_op(Spmd *s, const Op *op); /* a reduce_window; false: no window moves along a cut */

/* ---- partition_stretch.c ---- */

/* Of a dimension cut over n devices, of `part` elements each: device p gets the len from p * step + begin on. */
typedef struct Stretch {
  int64_t n, part;
  int64_t step, begin, len;
  int64_t first, end; /* of these only [first, end) are asked for */
  bool around;        /* after the last comes the first again; then all of them are */
} Stretch;

/* The elements along the dimension that a device fetches of others. */
int64_t spmd_stretch_fetches(const Stretch *w);
/* That of each device; `fill` (NULL: zeros) before the first of all elements and after the last; what is not asked for may
 * be anything. */
Value *spmd_stretch(Spmd *s, Value *x, int dim, const Dim *axes, const Stretch *w, Value *fill);
/* Of what each device has the whole of. */
Value *spmd_stretch_of_whole(Spmd *s, Value *x, int dim, const Dim *axes, const Stretch *w);
/* y, a stretch, where its elements are of [first, end); otherwise: alike or a number. */
Value *spmd_where_inside(Spmd *s, Value *y, int dim, const Dim *axes, const Stretch *w,
                         Value *otherwise);

/* ---- partition_slice.c ---- */

/* Slices, pads and what is joined along a cut dimension, where a device needs few elements that others have; false: no
 * such. */
bool spmd_slice_op(Spmd *s, const Op *op);
bool spmd_pad_op(Spmd *s, const Op *op);
bool spmd_joined_op(Spmd *s, const Op *op);

/* ---- partition_top_k.c ---- */

void spmd_top_k_op(Spmd *s, const Op *op);

/* ---- partition_lookup.c ---- */

/* A gather of few whole rows from a table that stays cut; false: it is no such. */
bool spmd_lookup_op(Spmd *s, const Op *op);

#endif
