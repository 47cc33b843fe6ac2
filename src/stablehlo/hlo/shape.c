/* Shapes and element types. */
#include "stablehlo/hlo/hlo.h"

static const struct {
  int element_type;
  const char *name;
  DType dtype;
} types[] = {
    {1, "pred", DT_I1},
    {2, "s8", DT_I8},
    {3, "s16", DT_I16},
    {4, "s32", DT_I32},
    {5, "s64", DT_I64},
    {6, "u8", DT_U8},
    {7, "u16", DT_U16},
    {8, "u32", DT_U32},
    {9, "u64", DT_U64},
    {10, "f16", DT_F16},
    {11, "f32", DT_F32},
    {12, "f64", DT_F64},
    {15, "c64", DT_C64},
    {16, "bf16", DT_BF16},
    {18, "c128", DT_C128},
    {19, "f8e5m2", DT_F8E5M2},
    {20, "f8e4m3fn", DT_F8E4M3FN},
    {21, "s4", DT_I4},
    {22, "u4", DT_U4},
    {23, "f8e4m3b11fnuz", DT_F8E4M3B11FNUZ},
    {24, "f8e5m2fnuz", DT_F8E5M2FNUZ},
    {25, "f8e4m3fnuz", DT_F8E4M3FNUZ},
    {26, "s2", DT_I2},
    {27, "u2", DT_U2},
    {28, "f8e4m3", DT_F8E4M3},
    {29, "f8e3m4", DT_F8E3M4},
    {32, "f4e2m1fn", DT_F4E2M1FN},
    {33, "f8e8m0fnu", DT_F8E8M0FNU},
    {HLO_TOKEN, "token", DT_TOKEN},
    {HLO_TUPLE, "tuple", DT_INVALID},
    {HLO_OPAQUE, "opaque", DT_INVALID},
};

DType hlo_dtype(int element_type) {
  for (int i = 0; i < COUNT_OF(types); i++)
    if (types[i].element_type == element_type) return types[i].dtype;
  return DT_INVALID;
}

int hlo_element_type(Str name) {
  for (int i = 0; i < COUNT_OF(types); i++)
    if (str_is(name, types[i].name)) return types[i].element_type;
  return 0;
}

const char *hlo_type_name(int element_type) {
  for (int i = 0; i < COUNT_OF(types); i++)
    if (types[i].element_type == element_type) return types[i].name;
  return "?";
}

/* ---- reading --------------------------------------------------------------------------------- */

static void *from_arena(void *a, size_t n) { return arena_alloc(a, n); }
static void to_arena(void *a, void *p) { (void)a, (void)p; }

/* The layout, unless it is the default. */
static Err *read_layout(HloShape *s, const Hlo__Layout *l) {
  if (!l || !l->n_minor_to_major) return NULL;
  if (l->n_minor_to_major != (size_t)s->rank)
    return err_new(ERR_INVALID, "a layout of another rank");
  bool plain = true;
  uint64_t seen = 0;
  for (int i = 0; i < s->rank; i++) {
    int64_t d = l->minor_to_major[i];
    if (d < 0 || d >= s->rank || seen >> d & 1)
      return err_new(ERR_INVALID, "a layout that is no permutation");
    seen |= (uint64_t)1 << d;
    plain &= d == s->rank - 1 - i;
  }
  if (!plain) s->minor_to_major = l->minor_to_major;
  return NULL;
}

static Err *read_array(Arena *a, const Hlo__Shape *p, HloShape *s) {
  if (p->n_dimensions > HLO_MAX_DEPTH)
    return err_new(ERR_INVALID, "a shape of %zu dimensions", p->n_dimensions);
  s->rank = (int)p->n_dimensions;
  s->dims = p->dimensions;
  int64_t count = 1;
  for (int i = 0; i < s->rank; i++)
    if (s->dims[i] < 0 || mul_overflows(count, MAX(s->dims[i], 1), &count))
      return err_new(ERR_INVALID, "a shape with dimension %lld", (long long)s->dims[i]);
  for (size_t i = 0; i < p->n_is_dynamic_dimension && i < (size_t)s->rank; i++)
    if (p->is_dynamic_dimension[i]) {
      s->dynamic = s->dynamic ? s->dynamic : ARENA_ARRAY(a, bool, s->rank);
      s->dynamic[i] = true;
    }
  return read_layout(s, p->layout);
}

static Err *read_shape(Arena *a, ProtobufCBinaryData bytes, int depth, HloShape **out) {
  if (depth > HLO_MAX_DEPTH) return err_new(ERR_INVALID, "tuples more than %d deep", HLO_MAX_DEPTH);
  ProtobufCAllocator in = {from_arena, to_arena, a};
  Hlo__Shape *p = hlo__shape__unpack(&in, bytes.len, bytes.data);
  if (!p) return err_new(ERR_INVALID, "a damaged shape");
  HloShape *s = *out = ARENA_NEW(a, HloShape);
  s->element_type = p->element_type;
  s->dtype = hlo_dtype(p->element_type);
  if (p->element_type == HLO_TOKEN) return NULL;
  if (p->element_type == HLO_TUPLE) {
    s->n_elems = (int)p->n_tuple_shapes;
    s->elems = ARENA_ARRAY(a, HloShape *, s->n_elems);
    for (int i = 0; i < s->n_elems; i++)
      TRY(read_shape(a, p->tuple_shapes[i], depth + 1, &s->elems[i]));
    return NULL;
  }
  if (s->dtype == DT_INVALID)
    return err_new(ERR_UNIMPLEMENTED, "element type %s (%d) of XLA", hlo_type_name(p->element_type),
                   p->element_type);
  return read_array(a, p, s);
}

Err *hlo_shape(Arena *a, ProtobufCBinaryData bytes, HloShape **out) {
  return read_shape(a, bytes, 0, out);
}

/* ---- leaves ---------------------------------------------------------------------------------- */

int hlo_leaves(const HloShape *s) {
  if (s->element_type != HLO_TUPLE) return 1;
  int n = 0;
  for (int i = 0; i < s->n_elems; i++) n += hlo_leaves(s->elems[i]);
  return n;
}

int hlo_leaf_offset(const HloShape *s, int64_t index) {
  int n = 0;
  for (int64_t i = 0; i < index; i++) n += hlo_leaves(s->elems[i]);
  return n;
}

int hlo_leaf_at(const HloShape *s, int n, const int64_t *path) {
  int at = 0;
  for (int i = 0; i < n; i++) {
    if (s->element_type != HLO_TUPLE || path[i] < 0 || path[i] >= s->n_elems) return -1;
    at += hlo_leaf_offset(s, path[i]);
    s = s->elems[path[i]];
  }
  return s->element_type == HLO_TUPLE ? -1 : at;
}

static Type *array_type(Module *m, const HloShape *s) {
  if (!s->dynamic) return type_tensor(m, s->dtype, s->rank, s->dims);
  int64_t dims[HLO_MAX_DEPTH], bounds[HLO_MAX_DEPTH];
  for (int i = 0; i < s->rank; i++) {
    dims[i] = s->dynamic[i] ? DIM_DYNAMIC : s->dims[i];
    bounds[i] = s->dynamic[i] ? s->dims[i] : DIM_DYNAMIC;
  }
  return type_tensor_full(m, s->dtype, s->rank, dims, bounds, NULL);
}

void hlo_types(Module *m, const HloShape *s, HloTypes *out) {
  if (s->element_type == HLO_TUPLE) {
    for (int i = 0; i < s->n_elems; i++) hlo_types(m, s->elems[i], out);
    return;
  }
  *vec_push(out) = s->element_type == HLO_TOKEN ? type_simple(m, TY_TOKEN) : array_type(m, s);
}
