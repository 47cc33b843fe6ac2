/* Private to the verifier and the shape inference.
 *
 * One function for each operation checks operands, attributes and regions, and says what its
 * results are: as Shapes, which cost nothing to make and do not touch the module, so that ir_verify
 * can run on a module that others read. ir_infer turns them into types. Dimensions that are not
 * known are DIM_DYNAMIC and agree with any.
 */
#ifndef WEFT_IR_INFER_PRIV_H
#define WEFT_IR_INFER_PRIV_H

#include "ir/build.h"
#include "ir/ir.h"

typedef struct Shape {
  const Type *type; /* exactly this type; NULL: the tensor below */
  DType dtype;
  const Quant *quant;
  int rank;
  int64_t *dims;
  bool any_quant; /* the quantization is not determined by the operands */
} Shape;

typedef struct Infer {
  const Op *op;
  Arena *arena;
  Shape *out;              /* op->n_results */
  bool *chosen;            /* result i is what the program declares, already checked */
  const Module *m;         /* for symbols; may be NULL */
  struct Symbols *symbols; /* names of m's functions; may be NULL */
} Infer;

#define FAIL(f, ...) return op_err((f)->op, ERR_INVALID, __VA_ARGS__)

/* classes of element types */
/* EQ: quantized with one scale, EP: quantized per axis */
enum {
  EB = 1,
  ES = 2,
  EU = 4,
  EF = 8,
  EC = 16,
  EQ = 32,
  EP = 64,
  EI = ES | EU,
  EANY = 127,
  EMOST = 63
};
unsigned elem_class(const Type *t);
const char *elem_class_words(unsigned mask, char buf[96]);

Err *infer_op(Infer *f);           /* infer.c: dispatch */
Err *ir_check_arity(const Op *op); /* operands, regions, results against ops.def */

static inline const Type *in_type(const Infer *f, int i) { return f->op->operands[i]->type; }
static inline const Type *res_type(const Infer *f, int i) { return f->op->results[i].type; }

Err *want_tensor(Infer *f, int i, unsigned mask); /* operand i: a ranked tensor of these elements */
Err *want_tensors(Infer *f, unsigned mask);       /* all operands */
Err *want_result_tensor(Infer *f, int i, unsigned mask);
Err *want_scalar(Infer *f, int i, unsigned mask);   /* rank 0 */
Err *want_shape_vector(Infer *f, int i, int64_t n); /* 1-d integers, n of them (-1: any) */

static inline bool dim_ok(int64_t a, int64_t b) { return a == b || a < 0 || b < 0; }
bool dims_ok(int ra, const int64_t *a, int rb, const int64_t *b);
bool shapes_ok(const Type *a, const Type *b); /* ranks and dims of two tensors */
bool elems_ok(const Type *a, const Type *b); /* element types; quantization parameters may differ */
bool types_ok(const Type *a, const Type *b); /* compatible types of any kind */
/* the same scales and zero points: operations that only move elements keep them */
bool same_scales(const Quant *a, const Quant *b);
bool promotable(DType from, DType to); /* an accumulator may be wider */
static inline int64_t dim_more(int64_t a, int64_t b) {
  return a < 0 ? b : a;
} /* the one that is known */

void out_shape(Infer *f, int i, DType t, const Quant *q, int rank,
               const int64_t *dims); /* copies dims */
void out_like(Infer *f, int i,
              const Type *t); /* a tensor of t's shape and element, dynamic as t is */
void out_type(Infer *f, int i, const Type *t); /* exactly t */
void out_declared(Infer *f, int i);            /* what the program says */
int64_t *tmp_dims(Infer *f, int n);

/* integer lists of the op: count must be n (-1: any); absent: NULL and 0 */
Err *ints_of(Infer *f, const char *name, int n, const int64_t **v, int *count);
/* like ints_of, every number in [0, limit), no number twice; ascending when sorted */
Err *dims_of(Infer *f, const char *name, int64_t limit, bool sorted, const int64_t **v, int *count);
Err *dim_index(Infer *f, const char *name, int64_t limit,
               int64_t *out); /* an i64 attribute in [0, limit) */
/* n values of an attribute that is ones (zeros) when absent */
Err *window_ints(Infer *f, const char *name, int n, int64_t dflt, const int64_t **v);
Err *window_padding(Infer *f, int n, const int64_t **v); /* n x 2 */
/* windowed size of one dimension; dynamic stays dynamic; errors when the window does not make sense
 */
Err *window_dim(Infer *f, int64_t size, int64_t lo, int64_t hi, int64_t base_dilation,
                int64_t window, int64_t dilation, int64_t stride, int64_t *out);

/* The numbers of operand i when it is a constant: malloc-free, in the scratch arena; NULL when it
 * is not. */
const int64_t *const_ints(Infer *f, int i, int64_t *n);
/* Operand i is a shape; when it is constant the declared result 0 has to agree with it. */
Err *check_const_shape(Infer *f, int i);

/* regions */
Err *want_region_args(Infer *f, int r, int n);
const Op *region_return(Infer *f, int r); /* NULL: no return */
/* A reduction body over n operands whose elements are those of inputs[i]: 2n scalar arguments (all
 * left, all right), n results of the same types, wide enough. elem[i]: the element type that
 * results have. */
Err *want_reducer(Infer *f, int r, int n, const Type *const *inputs, const Type *const *inits,
                  const Type **elem);
Err *want_returns(Infer *f, int r, int n); /* region r returns n values */

/* per class */
typedef Err *(*InferFn)(Infer *f);
InferFn infer_ewise_fn(OpKind k);
InferFn infer_move_fn(OpKind k);
InferFn infer_index_fn(OpKind k);
InferFn infer_reduce_fn(OpKind k);
InferFn infer_contract_fn(OpKind k);
InferFn infer_control_fn(OpKind k);
InferFn infer_collective_fn(OpKind k);
InferFn infer_dynamic_fn(OpKind k);
Err *infer_dynamic_gather(Infer *f); /* infer_index.c */
Err *infer_dynamic_conv(Infer *f);   /* infer_contract.c */
InferFn infer_misc_fn(OpKind k);     /* sort, linear algebra, random numbers, chlo, tests */

typedef struct InferRow {
  OpKind kind;
  InferFn fn;
} InferRow;
static inline InferFn infer_find(const InferRow *rows, int n, OpKind k) {
  for (int i = 0; i < n; i++)
    if (rows[i].kind == k) return rows[i].fn;
  return NULL;
}

const Func *infer_func(Infer *f, Str name); /* by symbol; NULL when absent */

#endif
