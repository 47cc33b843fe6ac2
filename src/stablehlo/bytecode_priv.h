/* bytecode: private to the MLIR bytecode reader. bytecode_read.c reads the file's sections and
 * tables, through the window of bytecode_cursor.c; bytecode_op.c the operations; bytecode_attr.c attributes and locations, with bytecode_sdy.c for meshes and
 * shardings, bytecode_shlo.c for unversioned dialects, bytecode_tensor.c for the elements of
 * constants, bytecode_text.c for what stands as text; bytecode_type.c types. */
#ifndef WEFT_STABLEHLO_BYTECODE_PRIV_H
#define WEFT_STABLEHLO_BYTECODE_PRIV_H

#include "ir/ir.h"
#include "stablehlo/stablehlo.h"
#include "stablehlo/vhlo.h"

/* ---- bytes ---- */

/* A window on the file. The first bad read sets `bad`; later reads give 0, so a caller checks once
 * for a whole record. */
typedef struct Cur {
  const uint8_t *p, *end;
  const uint8_t *bad; /* where it went wrong; NULL: all well */
} Cur;

uint8_t cur_byte(Cur *c);
uint64_t cur_varint(Cur *c);
int64_t cur_svarint(Cur *c);
uint64_t cur_flag(Cur *c, bool *flag); /* value << 1 | flag */
/* A number of things that take at least `min_bytes` each: more than the window can hold is bad. */
int cur_count(Cur *c, int min_bytes);
int cur_fit(Cur *c, uint64_t n, int min_bytes); /* the same of a number that was read otherwise */
Str cur_bytes(Cur *c, uint64_t n);
static inline size_t cur_left(const Cur *c) { return (size_t)(c->end - c->p); }

/* ---- tables of the file ---- */

typedef enum DialectId {
  D_OTHER,
  D_BUILTIN,
  D_VHLO,
  D_SDY,
  D_STABLEHLO,
  D_CHLO,
  D_FUNC,
  D_MHLO
} DialectId;

typedef struct Dialect {
  Str name;
  DialectId id;
} Dialect;

typedef enum OpRole { ROLE_PLAIN, ROLE_MODULE, ROLE_FUNC, ROLE_CAST, ROLE_MESH } OpRole;

typedef struct OpName {
  Str name; /* without the dialect */
  Str full; /* set when resolved */
  int dialect;
  bool registered, resolved;
  OpRole role;
  OpKind kind;
  const VhloOp *vhlo; /* NULL: not a VHLO op */
} OpName;

/* What an entry of the attribute table is besides (or instead of) an Attr. */
typedef enum RawKind {
  RAW_NONE,
  RAW_LOC,      /* Loc */
  RAW_AXIS,     /* MeshAxis */
  RAW_AXIS_REF, /* AxisRef; also a sub-axis (name empty) */
  RAW_DIM,      /* DimSharding */
  RAW_LIST,     /* array with entries that have no Attr: RawList */
  RAW_GROUPS,   /* replica groups by mesh axes: RawGroups */
  RAW_STRUCT /* attr is a dictionary whose entries are attributes of the op (dimension numbers) */
} RawKind;

/* An attribute made canonical for one column of ops.def; value NULL: equals the default. Kept, so
 * that an attribute shared by many operations is converted once. */
typedef struct Canon {
  const AttrSpec *spec;
  Attr *value;
  struct Canon *next;
} Canon;

typedef struct Entry {
  Str data;
  int dialect;
  bool custom;
  uint8_t state; /* 0: not read, 1: being read, 2: read */
  uint8_t raw_kind;
  int weight; /* nodes when written out as a tree: bounds what sharing can multiply */
  Attr *attr;
  void *raw;
  Canon *canon;
} Entry;

typedef struct TypeEntry {
  Str data;
  int dialect;
  bool custom;
  uint8_t state;
  int weight;
  Type *type;
} TypeEntry;

typedef struct RawList {
  int n;
  Entry **items;
} RawList;

typedef struct RawGroups {
  Str mesh_name; /* or inline: */
  const Mesh *mesh;
  int n_axes;
  AxisRef *axes;
} RawGroups;

typedef struct Resource {
  Str key, data; /* raw little-endian elements; data.p NULL: declared only */
} Resource;

typedef struct Reader {
  Module *m;
  const char *file;
  Str bytes;
  int version;
  Str producer;
  Str *strings;
  Dialect *dialects;
  OpName *op_names;
  Entry *attrs;
  TypeEntry *types;
  Str *props;
  Resource *resources;
  int n_strings, n_dialects, n_op_names, n_attrs, n_types, n_props, n_resources;
  int depth, loc_depth;
  int64_t
      expanded_bytes; /* made of fewer in the file so far: constants in text, groups of a mesh */
  int64_t pending;    /* values announced by the open regions and not yet defined */
  int64_t func_units; /* arguments, results and name bytes of functions so far */
  const Loc *unknown_loc;
  /* stacks used while an operation is put together */
  VEC(Value *) vals;
  VEC(Type *) result_types;
  VEC(NamedAttr) op_attrs;
  VEC(Region *) regions;
} Reader;

#define BYTECODE_MAX_WEIGHT (1 << 22)

/* ERR_INVALID at a place in the file. `at` may be NULL. */
Err *bc_err(const Reader *r, const uint8_t *at, const char *fmt, ...) PRINTF_LIKE(3, 4);
Err *bc_check(const Reader *r, const Cur *c, const char *what); /* NULL when the cursor is well */
Err *bc_unimplemented(Err *e);                                  /* makes it ERR_UNIMPLEMENTED */
Str bc_string(const Reader *r, Cur *c);                         /* string ref; bad index: c->bad */

/* A string, symbol or enumeration that shares a string of the table (which is copied into the
 * module once). */
Attr *bc_str_attr(Reader *r, AttrKind kind, Str s);

/* ---- bytecode_attr.c ---- */

Err *bc_entry(Reader *r, uint64_t index, Entry **out); /* decoded */
Err *bc_attr(Reader *r, uint64_t index, Attr **out);   /* decoded, has a value of its own */
Err *bc_type(Reader *r, uint64_t index, Type **out);
Err *bc_loc(Reader *r, uint64_t index, const Loc **out);
/* Replica groups by mesh axes become a matrix; needs the module's meshes. */
Err *bc_groups(Reader *r, const RawGroups *g, Attr **out);

/* For the readers of single attributes. A reference adds the weight of what it refers to. */
Err *bc_add_weight(const Reader *r, int *weight, int more);
Err *bc_ref_entry(Reader *r, Entry *e, Cur *c, Entry **out);
Err *bc_need_attr(Reader *r, Entry *e, Cur *c, Attr **out);
Err *bc_need_kind(Reader *r, Entry *e, Cur *c, AttrKind kind, const char *what, Attr **out);
Err *bc_need_string(Reader *r, Entry *e, Cur *c, Str *out);
Err *bc_need_raw(Reader *r, Entry *e, Cur *c, RawKind kind, const char *what, void *out);
Err *bc_svarints(Reader *r, Cur *c, int *n, int64_t **out);
Err *bc_ints(Reader *r, Cur *c, DType elem, Attr **out); /* list of svarints as AT_INTS */
Err *bc_array(Reader *r, Entry *e, Cur *c);
double bc_apfloat(Cur *c, DType t);

/* ---- bytecode_read.c: sections ---- */

enum {
  S_STRINGS,
  S_DIALECTS,
  S_ATTRS,
  S_OFFSETS,
  S_IR,
  S_RESOURCES,
  S_RESOURCE_OFFSETS,
  S_VERSION,
  S_PROPS,
  S_COUNT
};

/* Takes one with its header; ids are those above. */
Err *bc_section(const Reader *r, Cur *c, int *id, Cur *body);

/* ---- bytecode_op.c: the section of operations ---- */

Err *bc_read_ir(Reader *r, Cur c);

/* ---- bytecode_sdy.c ---- */

#define MAX_PRINTED 65536 /* bytes of an attribute that is kept as text */

Err *bc_sdy_attr(Reader *r, Entry *e, Cur *c);
Err *bc_axis(Reader *r, Entry *e, Cur *c, Str name);
Err *bc_axis_ref(Reader *r, Entry *e, Cur *c, Str name, bool present, uint64_t index);
Err *bc_sub_axis(Reader *r, Entry *e, Cur *c);
Err *bc_vhlo_mesh(Reader *r, Entry *e, Cur *c);
Err *bc_mesh_groups(Reader *r, Entry *e, Cur *c);

/* ---- bytecode_shlo.c: attributes and types of the unversioned dialects ---- */

Err *bc_shlo_attr(Reader *r, Entry *e, Cur *c);
Err *bc_shlo_type(Reader *r, TypeEntry *e, Cur *c);
/* Layout of the properties of an unversioned op: "name:R name:O" (required, optional); NULL when
 * unknown. */
const char *bc_shlo_props(Str full_name);

/* ---- bytecode_text.c: entries in text form ---- */

Err *bc_text_attr(Reader *r, Entry *e, int64_t room); /* bytes that may be made of fewer */
Err *bc_text_type(Reader *r, TypeEntry *e);

/* ---- bytecode_tensor.c ---- */

/* Elements of a dense attribute as they stand in the file. */
Err *bc_tensor(Reader *r, const Type *type, Str blob, Attr **out);

#endif
