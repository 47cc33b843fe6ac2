/* Private to the import of HLO: what is known while a computation is walked, and what an operation's function gets. */
#ifndef WEFT_STABLEHLO_HLO_IMPORT_PRIV_H
#define WEFT_STABLEHLO_HLO_IMPORT_PRIV_H

#include "stablehlo/hlo/hlo.h"

typedef struct HloLeaves { /* a value of HLO: its arrays and tokens */
  int n;
  Value **v;
  const HloShape *shape;
} HloLeaves;

typedef struct HloImport {
  Module *m;
  const HloFile *file;
  Map *computations; /* id -> Hlo__Computation */
  Map *funcs;        /* id -> Func, of computations that are called */
  Map *names;        /* of functions */
  Map *frames;       /* stack frame id -> Loc */
  Map *manual;       /* Value -> what it enters a manual computation with */
  int depth;
  int64_t left;    /* instructions that may still be made */
  int64_t devices; /* that groups and shardings name */
  bool by_channel; /* groups of partitions, not of replicas */
} HloImport;

typedef struct HloScope { /* a computation being read into a region */
  HloImport *im;
  Region *region;
  const Hlo__Computation *c;
  Map *values;         /* id -> HloLeaves */
  const HloLeaves *in; /* its parameters */
  int n_in;
} HloScope;

#define HLO_MAX_ATTRS 24
typedef struct HloOp { /* an instruction being read */
  HloScope *s;
  const Hlo__Instruction *i;
  const HloShape *shape;
  const Loc *loc;
  HloLeaves *operand; /* n_operands */
  int n_operands;
  VEC(Value *) in; /* leaves of all operands */
  HloTypes out;    /* of all results */
  int n_attrs, n_regions;
  NamedAttr attrs[HLO_MAX_ATTRS];
  Region *regions[HLO_MAX_DEPTH];
  HloLeaves result;
} HloOp;

/* Keys of the maps. */
static inline Str hlo_key(const int64_t *id) { return (Str){(const char *)id, sizeof *id}; }

/* ---- import.c ---- */

/* The instructions of a computation, appended to a region. *root: the value of its root. */
Err *hlo_computation(HloImport *im, Region *r, const Hlo__Computation *c, int n_in,
                     const HloLeaves *in, HloLeaves *root);
Err *hlo_called(HloOp *o, int index, const Hlo__Computation **out);
/* A region whose arguments are the computation's parameters. */
Err *hlo_region(HloOp *o, const Hlo__Computation *c);
/* A region without arguments, the parameters being values outside. */
Err *hlo_branch(HloOp *o, const Hlo__Computation *c, int n_in, const HloLeaves *in);
Err *hlo_func(HloImport *im, const Hlo__Computation *c, Str name, bool is_private, Func **out);
void hlo_return(HloImport *im, Region *r, const HloLeaves *v, const Loc *loc);
const Loc *hlo_loc(HloImport *im, const Hlo__Metadata *d);

/* ---- import_op.c: attributes, and the op itself ---- */

void hlo_put(HloOp *o, const char *name, Attr *value);
void hlo_put_int(HloOp *o, const char *name, int64_t v);
void hlo_put_i32(HloOp *o, const char *name, int64_t v);
void hlo_put_bool(HloOp *o, const char *name, bool v);
void hlo_put_enum(HloOp *o, const char *name, const char *v);
void hlo_put_str(HloOp *o, const char *name, Str v);
void hlo_put_ints(HloOp *o, const char *name, size_t n, const int64_t *v);
void hlo_put_matrix(HloOp *o, const char *name, int64_t rows, int64_t columns, const int64_t *v);
/* Any operation from the operands, types, attributes and regions gathered; its results become the value. */
Err *hlo_emit(HloOp *o, OpKind kind);
/* The same of these operands and one result; gathered attributes are used up. */
Err *hlo_emit_one(HloOp *o, OpKind kind, int n, Value *const *in, Type *type, Value **out);
void hlo_is(HloOp *o, int n, Value *const *v); /* the value is these leaves */

typedef Err *(*HloFn)(HloOp *o, OpKind kind);
typedef struct HloOpcode {
  const char *name;
  OpKind kind;
  HloFn read;
} HloOpcode;
const HloOpcode *hlo_opcode(Str name); /* NULL: none */

/* ---- import_*.c: functions of the table ---- */

Err *hlo_window(HloOp *o, OpKind kind);
Err *hlo_convolution(HloOp *o, OpKind kind);
Err *hlo_dot(HloOp *o, OpKind kind);
Err *hlo_gather(HloOp *o, OpKind kind);
Err *hlo_scatter(HloOp *o, OpKind kind);
Err *hlo_while(HloOp *o, OpKind kind);
Err *hlo_conditional(HloOp *o, OpKind kind);
Err *hlo_call(HloOp *o, OpKind kind);
Err *hlo_async(HloOp *o, OpKind kind);
Err *hlo_first_operand(HloOp *o, OpKind kind);
Err *hlo_custom_call(HloOp *o, OpKind kind);
Err *hlo_collective(HloOp *o, OpKind kind);
Err *hlo_collective_start(HloOp *o, OpKind kind);
Err *hlo_permute(HloOp *o, OpKind kind);
Err *hlo_all_to_all(HloOp *o, OpKind kind);
Err *hlo_reduce_scatter(HloOp *o, OpKind kind);

/* Notes that devices 0 .. n-1 are named. */
static inline void hlo_names_devices(HloImport *im, int64_t n) {
  if (n > im->devices && n <= 1 << 20) im->devices = n;
}

/* ---- import_sharding.c ---- */

/* "{devices=[2,1]<=[2]}" of leaf `leaf` of a value with so many; empty: none. */
Str hlo_sharding_text(HloImport *im, const Hlo__Sharding *s, int leaf, int leaves);
/* ---- import_shardy.c ---- */

void hlo_meshes(HloImport *im);
Attr *hlo_shardy_sharding(HloImport *im, const Hlo__Instruction *i); /* NULL: it has none */
Err *hlo_shardy_call(HloOp *o, bool *done);                          /* custom calls of Shardy's */
bool hlo_is_manual(const Hlo__Computation *c);
Err *hlo_manual(HloOp *o, const Hlo__Computation *c); /* a call of one */

/* Shardings, aliases, donors: what the module says of the entry's arguments and results. */
Err *hlo_entry_attrs(HloImport *im, Func *f, const Hlo__Computation *c);

#endif
