/* dev/cpu code generation, private. A fusion becomes a graph of (value, index) nodes (dag.c), loops
 * over its domain (loops.c), and vector instructions (emit.c, math.c) in one LLVM module a program
 * (jit.c). */
#ifndef WEFT_DEV_CPU_EMIT_PRIV_H
#define WEFT_DEV_CPU_EMIT_PRIV_H

#include <llvm-c/Core.h>

#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/loops/math_list.h"
#include "dev/cpu/loops/lanes.h"
#include "dev/cpu/loops/loops.h"

/* ---- the graph ---- */

typedef enum DagKind { N_INPUT, N_SPLAT, N_OP, N_REDUCE } DagKind;

typedef struct DagNode {
  DagKind kind;
  const Value *v;
  const Op *op; /* N_OP */
  DType t;
  Affine *at;        /* index of v */
  int mask;          /* condition under which it is meant; 0: always */
  int n_in, *in;     /* N_OP: nodes */
  int *in_mask;      /* pad, concatenate: condition of each operand */
  int buf;           /* N_INPUT, gather: number of the input */
  int part;          /* N_INPUT: 1 real, 2 imaginary part of a complex one; lin counts parts */
  Affine lin;        /* N_INPUT: element number; iota: the value; gather: on top of the index */
  int reduce;        /* N_REDUCE */
  int depth;         /* sweeps that must be over before it can be computed */
  int level;         /* loop level that it belongs to */
  bool vec;          /* differs along the vector loop */
  bool loose;        /* val has more digits than bf16 or f16 */
  bool stored;       /* but its users see those of its type (Fusion.stored) */
  bool odd_nan;      /* val may be a NaN that bf16 has no place for the digits of */
  LLVMValueRef kept; /* memory that sweep kept_in leaves val in for later ones; NULL: none */
  int kept_in, kept_until;
  LLVMValueRef val;     /* valid when epoch is the level's */
  LLVMValueRef rounded; /* val in its type, when one needed it */
  unsigned epoch, rounded_epoch;
  LLVMValueRef *rows; /* whole rows that others read other columns of (access.c) */
  unsigned rows_epoch;
} DagNode;

typedef struct DagMask { /* 0 <= form < size, and the parent's */
  int parent;
  Affine form;
  int64_t size;
  int level;
  bool vec;
  int known; /* of 0 <= form < size, in the box at hand (boxes.c): 1 it holds, -1 nowhere, 0 either */
  LLVMValueRef val;
  unsigned epoch;
} DagMask;

typedef struct DagReduce {
  const Op *op;
  Affine *at; /* index of the results */
  int n;
  int *in, *init; /* nodes */
  int sweep;
  OpKind binary;     /* of the body, or OP_UNKNOWN */
  bool loose;        /* a maximum or minimum of values that are */
  LLVMValueRef *acc; /* memory of the accumulators */
  int unroll;
} DagReduce;

#define MAX_LOOPS DOM_MAX
typedef struct Loop { /* a group of domain dimensions walked as one */
  int first, last;    /* fine dimensions */
  int64_t extent;
  bool reduced;
  int level;       /* 0: function; the task loop is 1 */
  LLVMValueRef iv; /* i64, first lane */
} Loop;

typedef struct Dag {
  const Fusion *f;
  Domain dom;
  Arena *mem;
  VEC(DagNode) nodes;
  VEC(DagMask) masks; /* [0] unused: always */
  VEC(DagReduce) reduces;
  VEC(Affine) leaves; /* every form that becomes an address, a number or a condition */
  int n_out;
  int *out; /* nodes; -1: an output of a reduction in a split fusion */
  Affine *out_lin;
  int n_loops;
  Loop loops[MAX_LOOPS]; /* in the order they are nested */
  int vloop;             /* vector loop, -1: none */
  bool braid;            /* lanes go through the loop before it, too: see gen_lane_steps */
} Dag;

Err *dag_build(const Fusion *f, Dag *d);
void dag_key(const Dag *d, Buf *key); /* equal keys: equal code */
void dag_key_region(Buf *key, const Region *r);
void dag_free(Dag *d);
void dag_levels(Dag *d);                 /* after the loops are chosen */
bool dag_keeps_digits(const DagNode *n); /* is seen by its users with more digits than its type */
/* Of a condition, where another (an ancestor; 0: none) holds: 1 it does, too, -1 nowhere, 0 either. */
int dag_mask_known(const Dag *d, int mask, int given);
/* May an element come from operand k? Of pad and concatenate only some are asked in a box. */
bool dag_takes(const Dag *d, const DagNode *n, int k);
int64_t dag_vector_stride(const Dag *d, const Affine *a); /* of a form, from lane to lane */
double dag_flops(const Dag *d);

/* ---- generating a function ---- */

#define MAX_LEVELS (MAX_LOOPS + 3)

typedef struct Turned Turned;
typedef struct Gen {
  LLVMContextRef ctx;
  LLVMModuleRef mod;
  LLVMBuilderRef b;
  LLVMValueRef fn;
  Dag *d;
  int vl;                          /* lanes of a full vector */
  int lanes;                       /* lanes now: vl, less in a combining tree, 0: scalars */
  LLVMValueRef point[MAX_LEVELS];  /* insert before this */
  LLVMValueRef resume[MAX_LEVELS]; /* the point after the loop of the level */
  unsigned epoch[MAX_LEVELS], next_epoch;
  int level;                     /* deepest open level */
  LLVMValueRef tail;             /* mask of a partial vector, or NULL */
  int sweep;                     /* over the rows of a block */
  LLVMValueRef block_row;        /* number of the row in its block */
  int64_t first_lane;            /* braid: element of the block that lane 0 is */
  int64_t first;                 /* where the vector loop begins; its tasks, at multiples of vl */
  Turned *turned;                /* NULL: rows are not turned (turned.c) */
  bool is_while;                 /* part of a loop that is one function (while_codegen.h) */
  bool plain_nan;                /* what is rounded now is no odd_nan */
  LLVMValueRef bufs, begin, end; /* parameters */
} Gen;

/* host.c */
typedef struct GenHost {
  char *triple, *cpu, *features; /* as LLVM says them */
} GenHost;
const GenHost *gen_host(void);
LLVMTypeRef gen_fn_type(Gen *g);
LLVMValueRef gen_fn(Gen *g, const char *name); /* of that type */

/* emit_types.c */
LLVMValueRef gen_helper(Gen *g, const char *name, int n_args,
                        DType t); /* declared C function on scalars of t */
LLVMValueRef gen_intrinsic(Gen *g, const char *name, LLVMTypeRef *types, int n_types,
                           LLVMValueRef *args, int n);
bool is_small_float(DType t); /* of up to 8 bits */
bool emit_is_f32(DType t);    /* in registers */
LLVMTypeRef
reg_type(Gen *g, DType t,
         int lanes); /* in registers: f32 for bf16 and f16, i1 for i1, bytes for small floats */
LLVMTypeRef mem_type(Gen *g, DType t, int lanes);
LLVMValueRef k_splat(Gen *g, LLVMValueRef scalar, int lanes); /* constants stay constants */
LLVMValueRef k_f32(Gen *g, double v);                         /* at the current lanes */
LLVMValueRef k_int(Gen *g, DType t, int64_t v);
LLVMValueRef k_real(Gen *g, DType t, double v);
LLVMValueRef k_elem(Gen *g, DType t, const void *elem);
#define round_to emit_round_to                          /* interp has a round_to */
LLVMValueRef round_to(Gen *g, DType t, LLVMValueRef v); /* to bf16, f16, sub-byte integers */
LLVMValueRef from_mem(Gen *g, DType t, LLVMValueRef v);
LLVMValueRef to_mem(Gen *g, DType t, LLVMValueRef v, bool rounded); /* rounded: it is already */

/* emit.c: one op on registers, all of the same lanes; digits.c.
 *
 * Within a kernel bf16 and f16 keep the digits of f32 from one arithmetic op to the next: they are
 * rounded, to nearest even, where they are stored and where the program looks at them: compares or
 * converts them, takes their floor or their bits. What a convert makes has the digits of its type,
 * always. So has what reduce_precision makes. */
typedef enum Digits {
  DIGITS_OF_TYPE,     /* operands are wanted rounded, and the result is then in its type */
  DIGITS_OF_OPERANDS, /* passes on what it is given */
  DIGITS_MORE         /* arithmetic */
} Digits;
Digits emit_digits(OpKind k);
/* Passes bits on, whatever they mean; or has its own way with types (convert). */
bool emit_moves(OpKind k);
bool emit_rounds_to_type(const Op *op); /* a reduce_precision to the digits of its own type */
LLVMValueRef emit_op(Gen *g, const Op *op, const DType *in_t, LLVMValueRef *in, DType out_t);
LLVMValueRef emit_convert(Gen *g, DType from, DType to, LLVMValueRef v);
bool emit_supports(const Op *op);
bool emit_calls(OpKind k); /* of f32: by a function that other vectors wait for */
/* A reduction body or other scalar region on registers. */
void emit_region(Gen *g, const Region *r, LLVMValueRef *args, LLVMValueRef *results);
bool emit_region_supported(const Region *r);

/* emit_int.c */
LLVMValueRef int_divide(Gen *g, DType t, bool rem, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef int_shift(Gen *g, OpKind k, DType t, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef int_power(Gen *g, DType t, LLVMValueRef a, LLVMValueRef b);

/* emit_small.c: floats of up to 8 bits. In registers they are bytes, as in memory: what is only passed on keeps its bits. */
LLVMValueRef small_decode(Gen *g, DType t, LLVMValueRef v, DType as); /* exactly; as: F32 or F64 */
LLVMValueRef small_encode(Gen *g, DType t, LLVMValueRef v,
                          DType from); /* rounded once; from: F32; F64 of F8E8M0FNU alone */
DType small_computed(DType t);         /* what arithmetic on it is done in */

/* x / c, rounded correctly, is fma(x, h, x l), unless it is nearly subnormal. false: of no such two.
 * (quotient.c) */
bool quotient_by(float c, float *h, float *l);

/* math.c: f32 vectors */
LLVMValueRef math_divide(Gen *g, DType t, LLVMValueRef x, LLVMValueRef y);
#define DECLARE(form, op, wide) LLVMValueRef math_##form(Gen *g, LLVMValueRef x);
MATH_FORMS(DECLARE)
#undef DECLARE
LLVMValueRef math_atan2(Gen *g, LLVMValueRef y, LLVMValueRef x);
LLVMValueRef math_tanh_wide(Gen *g, LLVMValueRef x); /* of f64 */
LLVMValueRef math_logistic_wide(Gen *g, LLVMValueRef x);
LLVMValueRef math_power(Gen *g, LLVMValueRef *args); /* of f32: the base, the exponent */
/* On f32: `lane` for a scalar, `lanes` for the lanes of a vector. */
LLVMValueRef math_call(Gen *g, const char *lane, const char *lanes, int n, LLVMValueRef *args);
LLVMValueRef call_lanes(Gen *g, const char *helper, DType t, int n, LLVMValueRef *args);
/* A function of the C library ("exp", "atan2") on f64. */
LLVMValueRef math_library(Gen *g, const char *fn, int n, LLVMValueRef *args);
/* libmvec.c: the same on whole vectors; NULL where there is none. */
LLVMValueRef libmvec_call(Gen *g, const char *fn, int n, LLVMValueRef *args);
/* Lanes [first, first + n) of v; of all of them: v. */
LLVMValueRef part_of_lanes(Gen *g, LLVMValueRef v, int first, int n);
/* a, of as many lanes as all the parts so far, and b behind it. */
LLVMValueRef joined_lanes(Gen *g, LLVMValueRef a, int na, LLVMValueRef b, int nb);
/* A function of vectors in registers, on some lanes of its n arguments. */
LLVMValueRef call_part(Gen *g, const char *name, DType of, int n, LLVMValueRef *args, int first,
                       int lanes);
void *libmvec_symbol(const char *name);
bool libmvec_here(void);
typedef struct Helper {
  const char *name;
  void *fn;
} Helper;
extern const Helper math_helpers[], lanes_helpers[]; /* ended by {0} */
/* lanes_threefry of operands in memory (math_stored); parts: of type t, those not NULL before are wanted. */
void math_threefry(Gen *g, LLVMValueRef *in, unsigned same, LLVMTypeRef t, LLVMValueRef *parts);
LLVMValueRef math_stored(Gen *g, LLVMValueRef v); /* on the stack: where */

/* loops.c */
Err *gen_fusion(Gen *g, Dag *d, const char *name, FusedCode *out);

#endif
