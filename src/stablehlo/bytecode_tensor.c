/* Elements of dense attributes in bytecode: row-major, little-endian, each padded to whole bytes;
 * one element's bytes stand for all (splat); i1 packed eight to a byte, or one byte each in old
 * files. */
#include "stablehlo/bytecode_priv.h"

/* Narrow integers lie in the low bits of a byte: signed ones are sign-extended in memory, others
 * masked. */
static void clean_narrow(DType t, uint8_t *p, int64_t n) {
  int bits = dtype_bits(t);
  if (t == DT_I1 || bits >= 8 || dtype_bytes(t) != 1) return;
  uint8_t mask = (uint8_t)((1u << bits) - 1);
  uint8_t sign = dtype_class(t) == DC_SINT ? (uint8_t)(1u << (bits - 1)) : 0;
  for (int64_t i = 0; i < n; i++) {
    uint8_t v = p[i] & mask;
    p[i] = (v & sign) ? (uint8_t)(v | (uint8_t)~mask) : v;
  }
}

Err *bc_tensor(Reader *r, const Type *type, Str blob, Attr **out) {
  if (type->kind != TY_TENSOR || !type_is_static(type))
    return bc_err(r, (const uint8_t *)blob.p,
                  "elements of something that is not a tensor of known shape");
  const uint8_t *at = (const uint8_t *)blob.p;
  DType dt = type->dtype;
  int64_t n = type_count(type);
  int size = dtype_bytes(dt);
  if (size == 0 || dt == DT_TF32) return bc_err(r, at, "a constant of %s elements", dtype_name(dt));
  int64_t bytes;
  if (n == INT64_MAX || mul_overflows(n, size, &bytes))
    return bc_err(r, at, "a constant of absurd size");
  bool is_bool = dt == DT_I1;
  bool whole = !is_bool && blob.n == (size_t)bytes;
  bool by_byte = is_bool && n > 1 && blob.n == (size_t)n;
  bool packed = is_bool && blob.n == (size_t)(n / 8 + (n % 8 != 0));
  bool splat = is_bool ? blob.n == 1
                       : blob.n == (size_t)size; /* an empty tensor may come with one element */
  if (splat && is_bool && packed && n > 1) {
    uint8_t v = at[0];
    splat = v == 0xFF || v == 0;
  }
  if (!whole && !by_byte && !packed && !splat) {
    Buf b = {0};
    type_print(&b, type);
    Err *e = bc_err(r, at, "%zu bytes of elements for %s", blob.n, b.p);
    buf_free(&b);
    return e;
  }
  Tensor *t;
  if (splat && n > 0) {
    uint8_t one[16];
    if (is_bool) one[0] = at[0] & 1;
    else memcpy(one, at, (size_t)size);
    if (size == 1) clean_narrow(dt, one, 1);
    TRY(tensor_splat(dt, type->rank, type->dims, one, &t));
    *out = attr_tensor(r->m, t, type->quant);
    return NULL;
  }
  TRY(tensor_new(dt, type->rank, type->dims, &t));
  uint8_t *d = t->data;
  if (whole) {
    if (bytes) memcpy(d, blob.p, blob.n);
  } else if (by_byte) {
    for (int64_t i = 0; i < n; i++) d[i] = at[i] != 0;
  } else if (packed) {
    for (int64_t i = 0; i < n; i++) d[i] = (at[i / 8] >> (i % 8)) & 1;
  }
  if (size == 1) clean_narrow(dt, d, n);
  *out = attr_tensor(r->m, t, type->quant);
  return NULL;
}
