/* stablehlo/hlo: XLA's HLO modules, as protos (HloModuleProto, HloProto) and as text ("HloModule ..."), read into the
 * module of ir.h. Private to stablehlo; the way in is stablehlo_read.
 *
 *   bytes -> Hlo__Module (proto.c, by protobuf-c)  \
 *   text  -> Hlo__Module (text*.c)                  > import*.c -> Module
 *
 * Tuples are gone afterwards: a value of HLO is a list of leaves (arrays, tokens), in the order of its
 * shape. So loops, branches and calls pass leaves, and the entry's arguments and results are leaves.
 * Layouts do not change what a program means, but for `bitcast` and for the order of a constant's numbers.
 * Optimised programs are read too: a fusion is a call, *-start does the work and *-done gives its result.
 *
 * Ownership   an Hlo__Module and all of it lives in the arena of the Module that is being made.
 * Hostile     memory in proportion to the input; depth bounded. Fuzzed: hlo_fuzz.c.
 */
#ifndef WEFT_STABLEHLO_HLO_HLO_H
#define WEFT_STABLEHLO_HLO_HLO_H

#include "hlo.pb-c.h" /* of hlo.proto, by protoc-c */
#include "ir/ir.h"

#define HLO_MAX_DEPTH 64 /* of shapes in shapes, of computations in computations */

/* ---- XLA's PrimitiveType --------------------------------------------------------------------- */

enum { HLO_PRED = 1, HLO_S32 = 4, HLO_U32 = 8, HLO_TUPLE = 13, HLO_OPAQUE = 14, HLO_TOKEN = 17 };
DType hlo_dtype(int element_type);           /* DT_INVALID: none that weft has */
int hlo_element_type(Str name);              /* "f32", "pred", "token"; 0: none */
const char *hlo_type_name(int element_type); /* "f32"; "?" */

/* ---- shapes ---------------------------------------------------------------------------------- */

typedef struct HloShape HloShape;
struct HloShape {
  int element_type;
  DType dtype; /* of an array */
  int rank;
  int64_t *dims;
  bool *dynamic;           /* NULL: none is */
  int64_t *minor_to_major; /* NULL: the default, last dimension first */
  int n_elems;             /* of a tuple */
  HloShape **elems;
};

Err *hlo_shape(Arena *a, ProtobufCBinaryData bytes, HloShape **out);
int hlo_leaves(const HloShape *s); /* arrays and tokens in it */
/* The leaves before element `index` of a tuple. */
int hlo_leaf_offset(const HloShape *s, int64_t index);
/* The leaf at a path of tuple indices, as aliases name it; -1: there is none, or it is a tuple. */
int hlo_leaf_at(const HloShape *s, int n, const int64_t *path);
/* Types of the leaves, appended. */
typedef VEC(Type *) HloTypes;
void hlo_types(Module *m, const HloShape *s, HloTypes *out);

/* ---- files ----------------------------------------------------------------------------------- */

typedef struct HloFile {
  Hlo__Module *module;
  int64_t partitions, replicas; /* 0: the file does not say */
} HloFile;

bool hlo_is_text(Str bytes);
bool hlo_is_proto(
    Str bytes); /* it may be one: the outermost fields are an HloModuleProto's or HloProto's */
Err *hlo_read_proto(Arena *a, Str bytes, HloFile *out);
Err *hlo_read_text(Arena *a, const char *file, Str text, HloFile *out);

/* ---- constants ------------------------------------------------------------------------------- */

Err *hlo_literal_tensor(const Hlo__Literal *l, const HloShape *s, Tensor **out);
/* Takes `data`, row-major as a Tensor holds it, in the arena, as the literal's numbers. */
void hlo_literal_set(Arena *a, Hlo__Literal *l, DType t, void *data, int64_t count);

/* ---- into the module ------------------------------------------------------------------------- */

Err *hlo_import(Module *m, const HloFile *f);

#endif
