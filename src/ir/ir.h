/* ir: StableHLO in memory. Module > Func > Region > Op > Region ...; Value, Type, Attr.
 *
 * Ownership   everything of a module lives in the module's arena and dies with module_free; no
 *             individual frees. Tensor data (constants) is reference counted and released by
 *             module_free.
 * Threads     a module is read by many threads, changed by one.
 *
 * Canonical form, whichever reader made it (text, bytecode of any VHLO version, builder):
 *  - func.return, stablehlo.return and sdy.return are OP_RETURN; func.call is OP_CALL.
 *  - struct attributes are flattened to single attributes with the names VHLO uses: a dot_general
 * has lhs_batching_dimensions, rhs_contracting_dimensions, ...; a gather has offset_dims,
 * collapsed_slice_dims, ...; a convolution input_batch_dimension, ...; channel_handle is channel_id
 * and channel_type.
 *  - lists of integers or booleans are AT_INTS; padding, replica_groups, source_target_pairs are
 * AT_TENSOR (i64, n x 2 or groups x members padded with -1, dense); op_ints() reads both, row-major.
 *  - enumerations are AT_ENUM with the StableHLO spelling ("EQ", "TOTALORDER", "HIGHEST",
 * "NO_TRANSPOSE", "PHILOX").
 *  - an attribute that equals its default (ops.def) is absent, so both readers give the same
 * module.
 *  - attributes are sorted by name; own attributes and discardable ones (mhlo.sharding,
 * sdy.sharding) share the list: discardable names contain a dot.
 *  - every region has exactly one block. builtin.unrealized_conversion_cast is dropped by readers.
 *  - a quantized type keeps its storage type in `dtype` and has `quant` set.
 */
#ifndef WEFT_IR_IR_H
#define WEFT_IR_IR_H

#include "base/base.h"

typedef struct Module Module;
typedef struct Func Func;
typedef struct Region Region;
typedef struct Op Op;
typedef struct Value Value;
typedef struct Type Type;
typedef struct Attr Attr;
typedef struct Loc Loc;
typedef struct Tensor Tensor;

/* ---- tensors: constant data, host values ----------------------------------------------------- */

/* Dense row-major data in host memory, reference counted (atomically). Sub-byte elements take one
 * byte each; complex is (re, im); i1 is one byte, 0 or 1. A token is a Tensor of DT_TOKEN without
 * data. A tuple is `elems` (dtype DT_NONE). data may be NULL in phantom mode only (`phantom` set).
 *
 * Splats are constants of programs (the `value` of an operation) and nothing else: whoever reads a
 * program's constants uses tensor_at, tensor_is_splat or tensor_dense; what runs, and lists of
 * numbers in attributes, are dense. */
struct Tensor {
  int refs;
  DType dtype;
  int rank;
  int64_t *dims;                          /* rank numbers, inside the object's allocation */
  int64_t count;                          /* elements */
  void *data;                             /* 64-byte aligned when owned; a splat's one element */
  void (*release)(void *arg, void *data); /* how to give data back; NULL: not owned */
  void *release_arg;
  Tensor **elems; /* tuple */
  int n_elems;
  bool phantom;
  bool splat;    /* data holds one element, which stands for all `count` (more than one) of them */
  Tensor *dense; /* of a splat: tensor_dense's, once somebody asked */
};

/* Uninitialised data. errors: ERR_EXHAUSTED when the memory is not there, ERR_INVALID when the size
 * overflows. */
Err *tensor_new(DType dtype, int rank, const int64_t *dims, Tensor **out);
Tensor *tensor_make(DType dtype, int rank,
                    const int64_t *dims); /* small ones: ends the program when out of memory */
/* The element everywhere, held once whatever the size. errors: ERR_INVALID when the size overflows. */
Err *tensor_splat(DType dtype, int rank, const int64_t *dims, const void *element, Tensor **out);
bool tensor_is_splat(const Tensor *t); /* at least one element, all of the same bytes */
bool tensor_same_data(const Tensor *a, const Tensor *b); /* of equal dtype and count: equal bytes */
/* t itself, or a splat with all its elements: made at the first call, it lives as long as t
 * (borrowed). A large one takes next to no memory until it is written. errors: ERR_EXHAUSTED.
 * thread: any */
Err *tensor_dense(Tensor *t, Tensor **out);
/* Borrows data; release(arg, data) is called when the last reference goes (NULL: nothing to do). */
Tensor *tensor_wrap(DType dtype, int rank, const int64_t *dims, void *data,
                    void (*release)(void *, void *), void *arg);
Tensor *tensor_phantom(DType dtype, int rank, const int64_t *dims); /* a shape without data */
Tensor *tensor_tuple(Tensor **elems, int n); /* takes the references in elems */
Tensor *tensor_retain(Tensor *t);
void tensor_release(Tensor *t); /* NULL is fine */
static inline size_t tensor_bytes(const Tensor *t) {
  return (size_t)t->count * (size_t)dtype_bytes(t->dtype);
}
/* What data holds: all elements, or a splat's one. */
static inline size_t tensor_held_bytes(const Tensor *t) {
  return t->splat ? (size_t)dtype_bytes(t->dtype) : tensor_bytes(t);
}
static inline void *tensor_at(const Tensor *t, int64_t i) {
  return t->splat ? t->data : (char *)t->data + (size_t)i * (size_t)dtype_bytes(t->dtype);
}

/* ---- types ----------------------------------------------------------------------------------- */

#define DIM_DYNAMIC INT64_MIN

typedef enum TypeKind {
  TY_TENSOR,   /* dtype, rank, dims (DIM_DYNAMIC allowed), bounds, quant */
  TY_UNRANKED, /* dtype */
  TY_TOKEN,
  TY_TUPLE,  /* elems */
  TY_FUNC,   /* elems = inputs, results */
  TY_FUTURE, /* elems */
  TY_BUFFER, /* memref of custom_call: dtype, rank, dims */
  TY_SCALAR, /* a bare element type, in attributes: dtype; quant possible */
  TY_NONE
} TypeKind;

typedef struct Quant {
  DType storage, expressed;
  int axis; /* -1: per tensor */
  int n;    /* scales and zero points */
  double *scales;
  int64_t *zero_points;
  int64_t storage_min, storage_max;
} Quant;

/* Interned: two types of one module are equal exactly when their pointers are. */
struct Type {
  TypeKind kind;
  DType dtype;
  int rank;
  int64_t *dims;
  int64_t *bounds; /* NULL, or rank numbers, DIM_DYNAMIC = unbounded (#stablehlo.bounds) */
  const Quant *quant;
  int n_elems, n_results;
  Type **elems, **results;
};

Type *type_tensor(Module *m, DType dtype, int rank, const int64_t *dims);
Type *type_tensor_full(Module *m, DType dtype, int rank, const int64_t *dims, const int64_t *bounds,
                       const Quant *q);
Type *type_scalar(Module *m, DType dtype, const Quant *q);
Type *type_simple(Module *m, TypeKind kind); /* TY_TOKEN, TY_NONE */
Type *type_of_elems(Module *m, TypeKind kind, DType dtype, int n,
                    Type *const *elems); /* tuple, future, unranked */
Type *type_buffer(Module *m, DType dtype, int rank, const int64_t *dims);
Type *type_func(Module *m, int n_in, Type *const *in, int n_out, Type *const *out);
bool type_is_static(const Type *t);     /* tensor without dynamic dimension */
int64_t type_count(const Type *t);      /* elements of a static tensor */
int64_t type_bytes(const Type *t);      /* bytes in memory, unpadded; tuples added up; tokens 0 */
void type_print(Buf *b, const Type *t); /* as StableHLO text */

/* ---- locations ------------------------------------------------------------------------------- */

typedef enum LocKind { LOC_UNKNOWN, LOC_FILE, LOC_NAME, LOC_CALLSITE, LOC_FUSED } LocKind;
struct Loc {
  LocKind kind;
  Str name; /* file name or name */
  int line, col, end_line, end_col;
  const Loc *child;  /* NAME: inner; CALLSITE: callee */
  const Loc *caller; /* CALLSITE */
  const Loc **parts; /* FUSED */
  int n_parts;
};
/* The user's place in one line, "train.py:41 (mlp/dense)", or "" when unknown: the newest frame outside
 * of installed libraries, if there is one. */
void loc_print(Buf *b, const Loc *l);

/* ---- attributes ------------------------------------------------------------------------------ */

typedef struct NamedAttr {
  Str name;
  Attr *value;
} NamedAttr;

typedef enum AttrKind {
  AT_UNIT,
  AT_BOOL,     /* i */
  AT_INT,      /* i, type (scalar) */
  AT_FLOAT,    /* f, type (scalar) */
  AT_STRING,   /* s (any bytes) */
  AT_SYMBOL,   /* s: function or mesh name without @ */
  AT_ENUM,     /* s */
  AT_TYPE,     /* type */
  AT_INTS,     /* ints, n, dtype of the elements in `dtype` (i64, i32, i1, index) */
  AT_TENSOR,   /* tensor, type */
  AT_ARRAY,    /* items, n */
  AT_DICT,     /* dict, n: sorted by name */
  AT_MESH,     /* mesh */
  AT_SHARDING, /* sharding; an array of them is AT_ARRAY */
  AT_OPAQUE    /* s: text of an attribute that weft carries but does not understand */
} AttrKind;

typedef struct MeshAxis {
  Str name;
  int64_t size;
} MeshAxis;
typedef struct Mesh {
  int n_axes;
  MeshAxis *axes;
  int n_ids; /* 0: devices 0, 1, 2, ... */
  int64_t *ids;
  bool repeated; /* the file says it again as an attribute stablehlo.mesh, as JAX does; for the
                    writers */
} Mesh;
typedef struct AxisRef {
  Str name;
  int64_t sub_pre, sub_size; /* "x":(pre)size; size 0: the whole axis */
} AxisRef;
typedef struct DimSharding {
  int n_axes;
  AxisRef *axes;
  bool open;        /* `?` at the end */
  int64_t priority; /* -1: none */
} DimSharding;
typedef struct Sharding {
  Str mesh_name;    /* empty: inline mesh */
  const Mesh *mesh; /* inline mesh or NULL */
  int n_dims;
  DimSharding *dims;
  int n_replicated, n_unreduced;
  AxisRef *replicated, *unreduced;
} Sharding;

struct Attr {
  AttrKind kind;
  DType dtype;
  Type *type;
  int64_t i;
  double f;
  Str s;
  int n;
  union {
    int64_t *ints;
    Tensor *tensor;
    Attr **items;
    NamedAttr *dict;
    Mesh *mesh;
    Sharding *sharding;
  };
};

Attr *attr_unit(Module *m);
Attr *attr_bool(Module *m, bool v);
Attr *attr_int(Module *m, DType t, int64_t v);
Attr *attr_float(Module *m, DType t, double v);
Attr *attr_string(Module *m, Str s);
Attr *attr_symbol(Module *m, Str s);
Attr *attr_enum(Module *m, Str s);
Attr *attr_type(Module *m, Type *t);
Attr *attr_ints(Module *m, DType elem, int n, const int64_t *v);
Attr *attr_tensor(Module *m, Tensor *take,
                  const Quant *q); /* takes the reference; type from the tensor */
Attr *attr_tensor_i64(Module *m, int rank, const int64_t *dims, const int64_t *v);
Attr *attr_array(Module *m, int n, Attr *const *items);
Attr *attr_dict(Module *m, int n, const NamedAttr *items); /* copies and sorts */
bool attr_equal(const Attr *a, const Attr *b);

/* ---- operations ------------------------------------------------------------------------------ */

/* How an op is looped over, costed, sharded when nothing more is said of it. */
typedef enum OpClass {
  OC_OTHER,
  OC_CONSTANT, /* constant, iota, ids: no operands */
  OC_EWISE,    /* element by element, all operands of the result's shape (select, clamp: scalars
                  allowed) */
  OC_MOVE,     /* moves elements: reshape, transpose, slice, pad, broadcast, concatenate, reverse */
  OC_INDEX,    /* data-dependent addressing: gather, scatter, dynamic_slice */
  OC_REDUCE,   /* reduce, reduce_window, select_and_scatter */
  OC_CONTRACT, /* dot, dot_general, convolution */
  OC_SORT,
  OC_LINALG, /* cholesky, triangular_solve, fft */
  OC_RNG,
  OC_CONTROL,    /* while, case, if, call, composite, return */
  OC_COLLECTIVE, /* between processes */
  OC_DYNAMIC,    /* shapes as operands */
  OC_TEST        /* check.*, interpreter.* */
} OpClass;

/* One row per operation: ops.def. The row gives the enum, the name, arity, attributes and the
 * extern of sem_<fn>. */
typedef enum OpKind {
  OP_UNKNOWN = 0, /* an operation without a row: Op.name holds its full name */
#define OP(id, fn, name, cls, operands, results, regions, attrs) OP_##id,
#include "ir/ops.def"
#undef OP
  OP_COUNT
} OpKind;

#define VARIADIC (-1)

typedef struct OpInfo {
  const char *id;   /* "ADD" */
  const char *name; /* "stablehlo.add" */
  OpClass cls;
  int operands, results, regions; /* VARIADIC: any number */
  const char *attrs;              /* "name:kind name:kind=default ...", see ops.def */
} OpInfo;
extern const OpInfo op_info[OP_COUNT];

/* What an operation costs, by its row OP_COST in ops.def; without one all is 0. */
typedef struct OpCost {
  bool dear, transcendental;
  int16_t loop, loop_f64, slots, bits;
  bool expanded;
} OpCost;
extern const OpCost op_cost[OP_COUNT];
OpKind op_kind_from_name(
    Str full_name); /* "stablehlo.add"; also "func.return", "sdy.return"; OP_UNKNOWN when none */

struct Value {
  Type *type;
  Op *def;        /* NULL: argument of `region` */
  Region *region; /* the region that holds it (as argument or through its op) */
  int index;      /* result or argument number */
  int id;         /* dense number within the function after ir_number(); -1 before */
  Str name;       /* hint for the printer, without %; may be empty */
};

struct Op {
  OpKind kind;
  Str name; /* full name, set for OP_UNKNOWN only */
  const Loc *loc;
  int n_operands, n_results, n_regions, n_attrs;
  Value **operands;
  Value *results; /* n_results values, contiguous */
  Region **regions;
  NamedAttr *attrs; /* sorted by name */
  Op *prev, *next;
  Region *parent;
  int line, col; /* in the text file it came from; 0 when unknown */
};

struct Region { /* = its single block */
  int n_args;
  Value **args;
  Op *first, *last; /* last is the terminator */
  Op *parent;       /* NULL for a function's body */
  Func *func;
};

struct Func {
  Str name;
  bool is_private;
  bool says_public; /* "public" was written out; means nothing, kept for the writers */
  Type *type;
  Region *body;          /* NULL: declaration only */
  NamedAttr **arg_attrs; /* per argument, NULL when none */
  int *n_arg_attrs;
  NamedAttr **res_attrs;
  int *n_res_attrs;
  NamedAttr *attrs; /* discardable attributes of the function */
  int n_attrs;
  const Loc *loc;
  Module *module;
  int n_values; /* set by ir_number */
};

struct Module {
  Arena *arena;
  Str name;
  NamedAttr *attrs;
  int n_attrs;
  VEC(Func *) funcs;     /* in file order */
  VEC(NamedAttr) meshes; /* sdy.mesh: name and AT_MESH */
  const Loc *loc;
  Str file;                    /* for messages: "prog.mlir" */
  struct ModuleTables *tables; /* interning; private */
};

Module *module_new(void);
void module_free(Module *m);                  /* NULL is fine */
Module *module_clone(const Module *m);        /* deep copy, shares constant data */
Func *module_func(const Module *m, Str name); /* NULL when absent */
Func *
module_main(const Module *m); /* "main", else the first public function; NULL when there is none */
const Mesh *module_mesh(const Module *m, Str name);

/* ---- building and changing ------------------------------------------------------------------- */

Func *func_new(Module *m, Str name, int n_in, Type *const *in, int n_out,
               Type *const *out); /* body with arguments */
Func *func_declare(Module *m, Str name, Type *func_type);
Region *region_new(Module *m, int n_args, Type *const *arg_types);
/* Not yet in a region. Operands, attrs are copied (attrs sorted); regions are attached. kind
 * OP_UNKNOWN: set op->name. */
Op *op_new(Module *m, OpKind kind, int n_operands, Value *const *operands, int n_results,
           Type *const *result_types, int n_attrs, const NamedAttr *attrs, int n_regions,
           Region *const *regions);
void op_append(Region *r, Op *op); /* at the end */
void op_insert_before(Op *at, Op *op);
void op_remove(Op *op); /* unlinks; its results must have no uses left */
void op_set_attr(Module *m, Op *op, Str name, Attr *value); /* adds, replaces; NULL removes */
/* Copies an op with its regions; operands are mapped through map[value->id] when map is given and
 * the entry is not NULL. */
Op *op_clone(Module *m, const Op *op, Value **map);
void value_replace_all(Func *f, Value *from,
                       Value *to); /* every use in f; linear in the function */

/* ---- reading --------------------------------------------------------------------------------- */

Attr *attrs_get(const NamedAttr *attrs, int n, const char *name); /* NULL when absent */
Attr *op_attr(const Op *op, const char *name);
/* Typed readers with a default. The verifier has made sure that a present attribute has the right
 * kind. */
int64_t op_int(const Op *op, const char *name, int64_t dflt);
bool op_bool(const Op *op, const char *name, bool dflt);
Str op_str(const Op *op, const char *name); /* STRING, SYMBOL, ENUM; empty when absent */
/* A custom call that gives its operand back and only says something of it: a layout, a place in
 * memory, that a debugger asks for its sharding. */
bool op_is_remark(const Op *op);
/* Row-major integers of AT_INTS or an i64 AT_TENSOR. Returns the count, 0 when absent. *out lives
 * as long as the module. A tensor must be of i64 (readers make it so); other kinds count as absent.
 */
int op_ints(const Op *op, const char *name, const int64_t **out);
Str op_full_name(const Op *op);
void op_place(Buf *b,
              const Op *op); /* where the user finds it: "prog.mlir:12:5" or the Python location */
Err *op_err(const Op *op, ErrCode code, const char *fmt, ...)
    PRINTF_LIKE(3, 4); /* names the op and its place */
static inline Op *region_terminator(const Region *r) { return r->last; }
static inline Type *op_type(const Op *op) { return op->results[0].type; }

/* The attributes of an op as its row in ops.def declares them. */
typedef enum SpecKind {
  SK_I64,
  SK_I32,
  SK_F32,
  SK_BOOL,
  SK_STR,
  SK_SYM,
  SK_SYMS,
  SK_TYPE,
  SK_DICT,
  SK_ENUM,
  SK_INTS,
  SK_BOOLS,
  SK_MAT,
  SK_DENSE,
  SK_ARRAY,
  SK_ANY
} SpecKind;
typedef struct AttrSpec {
  Str name;
  SpecKind kind;
  Str choices;   /* of an enumeration: "A|B|C" */
  bool required; /* no default, not optional */
  Str dflt;      /* "7", "true", "EQ", "[]", "ones", "zeros", "?"; empty when required */
} AttrSpec;
const AttrSpec *op_attr_specs(OpKind k, int *n);        /* in the order of ops.def; lives forever */
const AttrSpec *op_attr_spec(OpKind k, Str name);       /* NULL: not one of the op's own */
bool attr_is_default(const AttrSpec *s, const Attr *a); /* then canonical form leaves it out */

/* Gives every value of f (nested regions included) a dense id; returns and stores the count. */
int ir_number(Func *f);
/* Calls fn for each op of f, outer before inner, in order. A non-NULL Err ends the walk and is
 * returned. */
Err *ir_walk(Region *r, Err *(*fn)(Op *op, void *arg), void *arg);
/* Deepest nesting of regions and of types the readers accept; deeper input is ERR_INVALID. */
#define IR_MAX_DEPTH 200

/* ---- verification and shape inference -------------------------------------------------------- */

/* Checks the whole module against the specification's constraints: dominance, arity, attributes,
 * types, regions, terminators, symbols. The message names op, constraint, and the line. */
Err *ir_verify(const Module *m);
/* Result types of an op from operands, attributes and regions; used by the verifier and by
 * builders. *out holds op->n_results types (allocated in the module). errors ERR_INVALID with the
 * constraint violated. Ops whose result type is not determined by the rest (custom_call, rng,
 * reshape, ...) return the declared types after checking them. */
Err *ir_infer(Module *m, const Op *op, Type **out);

/* ---- printing (debugging and the text writer's base) ----------------------------------------- */
/* The full writer is stablehlo/stablehlo.h. */

/* ---- values on several processes ------------------------------------------------------------- */

/* A program over N processes (replicas x partitions) runs as one job. A value is the same on all of
 * them (n == 1) or one tensor for each (n == N). */
typedef struct Shards {
  int n;
  Tensor **t;
} Shards;

#endif
