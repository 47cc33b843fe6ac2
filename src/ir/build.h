/* ir/build: making programs op by op. One function for each op that programs are written with;
 * result types follow from the operands, attributes equal to their defaults are left out
 * (canonical form of ir.h).
 *
 * Ownership   everything belongs to the module. The caller keeps Build on its stack.
 * Errors      none: operands that do not fit are the caller's bug (assert). ir_verify checks the
 *             whole afterwards.
 * Types       element-wise functions want equal types; nothing is broadcast silently
 *             (b_bcast_like does it by name).
 */
#ifndef WEFT_IR_BUILD_H
#define WEFT_IR_BUILD_H

#include "ir/ir.h"

typedef struct Build {
  Module *m;
  Region *r;      /* ops are appended at the end of this region */
  const Loc *loc; /* given to every op made; may be NULL */
} Build;

#define B_MAX_RANK 16

/* ---- functions ------------------------------------------------------------------------------- */

/* A public function without arguments and results; b->r becomes its body. */
Func *b_func(Build *b, Module *m, const char *name);
Value *b_arg(Build *b, Type *type); /* adds an argument to the function b->r belongs to */
/* The function's arguments become order[0..n-1], a permutation of those it has. */
void b_order_args(Func *f, int n, Value *const *order);
/* Where there is one of the name it is replaced. */
void b_arg_attr(Func *f, int arg, const char *name, Attr *value); /* f.ex. tf.aliasing_output */
void b_result_attr(Func *f, int result, const char *name, Attr *value); /* after b_return */
void b_module_attr(Module *m, const char *name, Attr *value);
void b_return(Build *b, int n, Value *const *v); /* ends the region; of a function: sets its type */
/* Location "name" around what follows, inside `outer` (the former b->loc). Give the old one back
 * by hand. */
const Loc *b_scope(Build *b, const char *name);

/* ---- any op ---------------------------------------------------------------------------------- */

Op *b_op(Build *b, OpKind kind, int n_operands, Value *const *operands, int n_results,
         Type *const *types, int n_attrs, const NamedAttr *attrs, int n_regions,
         Region *const *regions);
NamedAttr b_ints(Build *b, const char *name, int n, const int64_t *v);
NamedAttr b_int(Build *b, const char *name, int64_t v);
NamedAttr b_bool(Build *b, const char *name, bool v);
NamedAttr b_enum(Build *b, const char *name, const char *v);

/* ---- types ----------------------------------------------------------------------------------- */

static inline int b_rank(const Value *v) { return v->type->rank; }
static inline int64_t b_dim(const Value *v, int i) { return v->type->dims[i]; }
static inline DType b_dtype(const Value *v) { return v->type->dtype; }
Type *b_type(Build *b, DType t, int rank, const int64_t *dims);
Type *b_type_as(Build *b, const Type *shape, DType t); /* same dims, other element type */

/* ---- constants ------------------------------------------------------------------------------- */

Value *b_const(Build *b, Type *type, const void *data); /* data: type_bytes(type), copied */
Value *b_scalar(Build *b, DType t, double v);
Value *b_scalar_i64(Build *b, DType t, int64_t v);
Value *b_full(Build *b, Type *type, double v); /* scalar constant, broadcast */
Value *b_iota(Build *b, Type *type, int dim);

/* ---- element by element ---------------------------------------------------------------------- */

Value *b_unary(Build *b, OpKind k, Value *x);
Value *b_binary(Build *b, OpKind k, Value *x, Value *y);
#define B_UNARY(name, OP) \
  static inline Value *b_##name(Build *b, Value *x) { return b_unary(b, OP_##OP, x); }
#define B_BINARY(name, OP) \
  static inline Value *b_##name(Build *b, Value *x, Value *y) { return b_binary(b, OP_##OP, x, y); }
B_UNARY(abs, ABS)
B_UNARY(cos, COSINE)
B_UNARY(exp, EXPONENTIAL)
B_UNARY(log, LOG)
B_UNARY(log1p, LOG_PLUS_ONE)
B_UNARY(logistic, LOGISTIC)
B_UNARY(neg, NEGATE)
B_UNARY(not, NOT)
B_UNARY(rsqrt, RSQRT)
B_UNARY(sign, SIGN)
B_UNARY(sin, SINE)
B_UNARY(sqrt, SQRT)
B_UNARY(tanh, TANH)
B_BINARY(add, ADD)
B_BINARY(and, AND)
B_BINARY(div, DIVIDE)
B_BINARY(max, MAXIMUM)
B_BINARY(min, MINIMUM)
B_BINARY(mul, MULTIPLY)
B_BINARY(or, OR)
B_BINARY(pow, POWER)
B_BINARY(shl, SHIFT_LEFT)
B_BINARY(shr, SHIFT_RIGHT_LOGICAL)
B_BINARY(sub, SUBTRACT)
B_BINARY(xor, XOR)
Value *b_adds(Build *b, Value *x, double s); /* x + s, x * s with a constant */
Value *b_muls(Build *b, Value *x, double s);
Value *b_convert(Build *b, Value *x, DType t); /* x itself when it has the type */
Value *b_compare(Build *b, const char *direction, Value *x,
                 Value *y); /* "EQ" "NE" "GE" "GT" "LE" "LT" */
Value *b_select(Build *b, Value *pred, Value *on_true, Value *on_false);
Value *b_clamp(Build *b, Value *lo, Value *x, Value *hi); /* lo and hi may be scalars */
Value *b_erf(Build *b, Value *x); /* f32 rational approximation in primitive ops, error < 1e-6 */

/* ---- moving elements ------------------------------------------------------------------------- */

Value *b_reshape(Build *b, Value *x, int rank, const int64_t *dims);
Value *
b_transpose(Build *b, Value *x,
            const int *perm); /* result dim i is x's dim perm[i]; x itself for the identity */
/* dims[0..rank-1] is the result; x's dim i becomes result dim map[i]. x itself when nothing
 * changes. */
Value *b_bcast(Build *b, Value *x, int rank, const int64_t *dims, const int *map);
Value *b_bcast_like(Build *b, Value *x, const Type *shape, const int *map);
Value *b_bcast_scalar(Build *b, Value *x, const Type *shape);
Value *b_bcast_last(Build *b, Value *x,
                    const Type *shape); /* x: rank 1, along the last dimension */
Value *b_reverse(Build *b, Value *x, int n, const int64_t *dims);
Value *b_slice(Build *b, Value *x, const int64_t *start, const int64_t *limit,
               const int64_t *strides); /* NULL: ones */
Value *b_slice_dim(Build *b, Value *x, int dim, int64_t start, int64_t limit);
Value *b_pad(Build *b, Value *x, Value *pad_value, const int64_t *lo, const int64_t *hi,
             const int64_t *interior);
Value *b_concat(Build *b, int n, Value *const *x, int dim);
Value *b_dynamic_slice(Build *b, Value *x, Value *const *start, const int64_t *sizes);
Value *b_dynamic_update(Build *b, Value *x, Value *update, Value *const *start);

/* ---- indexing -------------------------------------------------------------------------------- */

/* Dimension numbers of gather and scatter share one struct; a list is (n, numbers). Names are
 * gather's:
 *   offset_dims = update_window_dims, collapsed = inserted_window_dims, start_index_map =
 *   scatter_dims_to_operand_dims */
typedef struct IndexDims {
  int n_offset, n_collapsed, n_map, n_batch;
  int64_t offset[B_MAX_RANK], collapsed[B_MAX_RANK], map[B_MAX_RANK];
  int64_t operand_batch[B_MAX_RANK], indices_batch[B_MAX_RANK];
  int64_t index_vector_dim;
  bool sorted, unique;
} IndexDims;
IndexDims b_gather_dims(const Op *gather);
IndexDims b_scatter_dims(const Op *scatter);
Value *b_gather(Build *b, Value *x, Value *indices, const IndexDims *d, const int64_t *slice_sizes);
/* One operand; combine OP_ADD, OP_MAXIMUM, ... or OP_UNKNOWN: the update replaces. */
Value *b_scatter(Build *b, OpKind combine, Value *x, Value *indices, Value *updates,
                 const IndexDims *d);
Value *b_take_rows(Build *b, Value *table, Value *ids); /* table[V, C], ids[...] i32 -> [..., C] */

/* ---- reductions ------------------------------------------------------------------------------ */

/* combine: OP_ADD, OP_MAXIMUM, OP_MINIMUM, OP_MULTIPLY, OP_AND, OP_OR; starts from its neutral
 * element. */
Value *b_reduce(Build *b, OpKind combine, Value *x, int n, const int64_t *dims);
Value *b_reduce_all(Build *b, OpKind combine, Value *x);
Value *b_mean(Build *b, Value *x, int n, const int64_t *dims);
Value *b_neutral(Build *b, OpKind combine, DType t);
typedef struct Window { /* NULL pointers: ones, zeros */
  const int64_t *size, *strides, *base_dilation, *dilation, *padding; /* padding: rank x 2 */
} Window;
Value *b_reduce_window(Build *b, OpKind combine, Value *x, const Window *w);
/* Gradient of a max pooling: select GE, scatter add. */
Value *b_select_and_scatter(Build *b, Value *x, Value *source, const Window *w);
Region *b_combiner(Build *b, OpKind combine, DType t); /* (a, b) -> combine(a, b) on scalars */

/* ---- products -------------------------------------------------------------------------------- */

typedef struct DotDims {
  int n_batch, n_contract;
  int64_t lhs_batch[B_MAX_RANK], rhs_batch[B_MAX_RANK], lhs_contract[B_MAX_RANK],
      rhs_contract[B_MAX_RANK];
} DotDims;
#define ATTR_CUT_TO_ONE "weft.cut_to_one" /* a product: partitioning left it one of a batch */
DotDims b_dot_dims(const Op *dot_general);
bool b_has_dim(int n, const int64_t *dims, int64_t d); /* is d among them? */
/* precision: the attribute of another product to take over, or NULL. */
Value *b_dot(Build *b, Value *x, Value *y, const DotDims *d, DType result, Attr *precision);
Value *b_matmul(Build *b, Value *x, Value *y); /* last dimension of x with the first of y */

/* Of weft.attention and its gradients: queries are [b / h][h][g][m][d], keys [b / h][h][n][d], values [b / h][h][n][e]. */
typedef struct AttentionDims {
  int64_t b, h, g, m, n, d, e; /* b: of all heads, h of each batch */
  int64_t lo, hi;              /* queries see the keys of this band: key - query is in [lo, hi) */
  double scale, fill;          /* fill: the score of what the mask hides */
  int bias, mask;              /* operands; 0: there is none */
} AttentionDims;
AttentionDims b_attention_dims(const Op *attention);

typedef struct ConvDims { /* n spatial dimensions; strides ... are n long, padding n x 2 */
  int n;
  int64_t in_batch, in_feature, k_in, k_out, out_batch, out_feature;
  int64_t in_spatial[B_MAX_RANK], k_spatial[B_MAX_RANK], out_spatial[B_MAX_RANK];
  int64_t strides[B_MAX_RANK], padding[2 * B_MAX_RANK], lhs_dilation[B_MAX_RANK],
      rhs_dilation[B_MAX_RANK];
  bool reversal[B_MAX_RANK];
  int64_t feature_groups, batch_groups;
} ConvDims;
ConvDims b_conv_dims(const Op *convolution);
ConvDims b_conv_nhwc(int64_t stride, int64_t pad_lo,
                     int64_t pad_hi); /* 2-D, kernel HWIO, no dilation, one group */
Value *b_conv(Build *b, Value *x, Value *k, const ConvDims *d, DType result, Attr *precision);

/* What a convolution computes, of images X, a kernel W and results Y:
 *
 *   forward    Y = X * W        lhs is X
 *   data       lhs_dilation or a reversed window: lhs is Y, out is the gradient of X
 *   weights    the window is larger than the result: lhs is X, rhs is Y, out is the gradient of W
 */
typedef enum ConvForm { CONV_FORWARD, CONV_DATA, CONV_WEIGHTS } ConvForm;
/* flip: the window has to be turned round for that. false: none of the three. */
bool b_conv_form(const Op *op, const ConvDims *d, ConvForm *form, bool *flip);

#endif
