/* Constants: an HLO literal's numbers, which lie in the order of its layout, as a Tensor. */
#include "stablehlo/hlo/hlo.h"

#include <stdlib.h>

/* Where a type's numbers are in the message: bytes as they lie in memory (whole types of one byte, and halves), or
 * a list. Booleans are a list of ints there. */
typedef enum Kind { BYTES, LIST, BOOLS } Kind;
typedef struct Field {
  DType dtype;
  Kind kind;
  size_t at, n_at; /* of the pointer (or of the ProtobufCBinaryData), of the count */
} Field;

#define LIST_OF(dtype, name) \
  { dtype, LIST, offsetof(Hlo__Literal, name), offsetof(Hlo__Literal, n_##name) }
#define BYTES_OF(dtype, name) \
  { dtype, BYTES, offsetof(Hlo__Literal, name), 0 }
static const Field fields[] = {
    {DT_I1, BOOLS, offsetof(Hlo__Literal, preds), offsetof(Hlo__Literal, n_preds)},
    LIST_OF(DT_I32, s32s),
    LIST_OF(DT_I64, s64s),
    LIST_OF(DT_U32, u32s),
    LIST_OF(DT_U64, u64s),
    LIST_OF(DT_F32, f32s),
    LIST_OF(DT_F64, f64s),
    LIST_OF(DT_C64, c64s),
    LIST_OF(DT_C128, c128s),
    BYTES_OF(DT_I8, s8s),
    BYTES_OF(DT_I16, s16s),
    BYTES_OF(DT_U8, u8s),
    BYTES_OF(DT_U16, u16s),
    BYTES_OF(DT_F16, f16s),
    BYTES_OF(DT_BF16, bf16s),
    BYTES_OF(DT_F8E5M2, f8e5m2s),
    BYTES_OF(DT_F8E4M3FN, f8e4m3fns),
    BYTES_OF(DT_F8E4M3B11FNUZ, f8e4m3b11fnuzs),
    BYTES_OF(DT_F8E5M2FNUZ, f8e5m2fnuzs),
    BYTES_OF(DT_F8E4M3FNUZ, f8e4m3fnuzs),
    BYTES_OF(DT_F8E4M3, f8e4m3s),
    BYTES_OF(DT_F8E3M4, f8e3m4s),
    BYTES_OF(DT_F8E8M0FNU, f8e8m0fnus),
    BYTES_OF(DT_F4E2M1FN, f4e2m1fns),
    BYTES_OF(DT_I4, s4s),
    BYTES_OF(DT_U4, u4s),
    BYTES_OF(DT_I2, s2s),
    BYTES_OF(DT_U2, u2s),
};

static const Field *field_of(DType t) {
  for (int i = 0; i < COUNT_OF(fields); i++)
    if (fields[i].dtype == t) return &fields[i];
  return NULL;
}

/* Elements narrower than a byte, several in one, the first in the low bits. */
static void unpack_bits(DType t, const uint8_t *from, int64_t count, uint8_t *to) {
  int bits = dtype_bits(t), each = 8 / bits;
  bool sign = dtype_is_signed(t);
  for (int64_t i = 0; i < count; i++) {
    int v = from[i / each] >> i % each * bits & ((1 << bits) - 1);
    to[i] = (uint8_t)(sign && v >> (bits - 1) ? v - (1 << bits) : v);
  }
}

static Err *wrong_count(size_t n, int64_t want) {
  return err_new(ERR_INVALID, "a constant of %lld elements has numbers for %zu", (long long)want,
                 n);
}

static Err *copy_bytes(DType t, ProtobufCBinaryData b, int64_t count, char *to) {
  int bits = dtype_bits(t);
  size_t whole = (size_t)count * (size_t)dtype_bytes(t);
  if (b.len == whole) {
    memcpy(to, b.data, whole);
  } else if (bits < 8 && b.len == (size_t)((count * bits + 7) / 8)) {
    unpack_bits(t, b.data, count, (uint8_t *)to);
  } else {
    return wrong_count(b.len / (size_t)dtype_bytes(t), count);
  }
  return NULL;
}

/* All numbers in the order of the file. */
static Err *copy_numbers(const Hlo__Literal *l, DType t, int64_t count, char *to) {
  const Field *f = field_of(t);
  if (!f) return err_new(ERR_UNIMPLEMENTED, "a constant of %s", dtype_name(t));
  const char *at = (const char *)l + f->at;
  if (f->kind == BYTES) return copy_bytes(t, *(const ProtobufCBinaryData *)at, count, to);
  size_t n = *(const size_t *)((const char *)l + f->n_at);
  size_t want = (size_t)count * (dtype_is_complex(t) ? 2 : 1);
  if (n != want) return wrong_count(n, count);
  const void *from = *(void *const *)at;
  if (f->kind == LIST && n) memcpy(to, from, (size_t)count * (size_t)dtype_bytes(t));
  for (size_t i = 0; f->kind == BOOLS && i < n; i++)
    to[i] = ((const protobuf_c_boolean *)from)[i] != 0;
  return NULL;
}

/* Numbers in the order of the layout to row-major ones. */
static void to_row_major(const HloShape *s, size_t bytes, const char *from, char *to) {
  int64_t stride[HLO_MAX_DEPTH], index[HLO_MAX_DEPTH] = {0}, count = 1;
  for (int i = s->rank - 1; i >= 0; i--) stride[i] = count, count *= s->dims[i];
  for (int64_t i = 0; i < count; i++) {
    int64_t at = 0;
    for (int d = 0; d < s->rank; d++) at += index[d] * stride[d];
    memcpy(to + (size_t)at * bytes, from + (size_t)i * bytes, bytes);
    for (int k = 0; k < s->rank; k++) {
      int64_t d = s->minor_to_major[k];
      if (++index[d] < s->dims[d]) break;
      index[d] = 0;
    }
  }
}

/* The file has every number of a constant, so that memory stays in proportion to it. */
static bool has_room(const Hlo__Literal *l, const Field *f, int64_t count) {
  if (!f) return true;
  size_t n = f->kind == BYTES ? ((const ProtobufCBinaryData *)((const char *)l + f->at))->len * 8
                              : *(const size_t *)((const char *)l + f->n_at);
  return (size_t)count <= n;
}

Err *hlo_literal_tensor(const Hlo__Literal *l, const HloShape *s, Tensor **out) {
  int64_t count = 1;
  for (int i = 0; i < s->rank; i++) count *= s->dims[i];
  if (!has_room(l, field_of(s->dtype), count))
    return err_hint(wrong_count(0, count), "a dump that leaves out large constants cannot be run; "
                                           "XLA's flag --xla_dump_large_constants writes them");
  Tensor *t;
  TRY(tensor_new(s->dtype, s->rank, s->dims, &t));
  Err *e = copy_numbers(l, s->dtype, count, t->data);
  if (!e && s->minor_to_major) {
    Tensor *turned = NULL;
    e = tensor_new(s->dtype, s->rank, s->dims, &turned);
    if (!e) to_row_major(s, (size_t)dtype_bytes(s->dtype), t->data, turned->data);
    tensor_release(t);
    t = turned;
  }
  if (e) tensor_release(t);
  else *out = t;
  return e;
}

void hlo_literal_set(Arena *a, Hlo__Literal *l, DType t, void *data, int64_t count) {
  const Field *f = field_of(t);
  if (!f) return;
  char *at = (char *)l + f->at;
  if (f->kind == BYTES) {
    *(ProtobufCBinaryData *)at =
        (ProtobufCBinaryData){(size_t)count * (size_t)dtype_bytes(t), data};
    return;
  }
  *(size_t *)((char *)l + f->n_at) = (size_t)count * (dtype_is_complex(t) ? 2 : 1);
  if (f->kind == LIST) {
    *(void **)at = data;
    return;
  }
  protobuf_c_boolean *b = ARENA_ARRAY(a, protobuf_c_boolean, count);
  for (int64_t i = 0; i < count; i++) b[i] = ((const char *)data)[i] != 0;
  *(protobuf_c_boolean **)at = b;
}
