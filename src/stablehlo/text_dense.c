/* dense<...> : type. The type comes last, so the literal is skipped, the type read, and the
 * elements then go straight into a tensor of that type. Decimal floats are rounded as MLIR does it:
 * to double, then once more to the element type. A literal with one element stands for as many as
 * the type has (splat). */
#include "stablehlo/text_priv.h"

#include <ctype.h>
#include <stdlib.h>

static Err *check_size(Text *t, const char *at, const Type *ty) {
  if (ty->kind != TY_TENSOR) return text_err_at(t, at, "dense elements need a tensor type");
  if (!type_is_static(ty)) return text_err_at(t, at, "dense elements need a static shape");
  if (ty->dtype == DT_TF32) return text_err_at(t, at, "dense elements of tf32 are not supported");
  return NULL;
}

static void store_int(DType d, char *p, int64_t v) {
  elem_set_i64(d == DT_INDEX ? DT_I64 : d, p, v);
}

static void store_bits(DType d, char *p, uint64_t bits) {
  switch (dtype_bytes(d)) {
  case 1: *(uint8_t *)p = (uint8_t)bits; break;
  case 2: memcpy(p, &(uint16_t){(uint16_t)bits}, 2); break;
  case 4: memcpy(p, &(uint32_t){(uint32_t)bits}, 4); break;
  default: memcpy(p, &bits, 8); break;
  }
}

static Err *real_element(Text *t, DType d, char *p) {
  const char *at = t->start;
  bool neg = text_take(t, '-');
  if (text_is(t, T_INT) && t->s.n > 2 && t->s.p[1] == 'x' && !neg) {
    int64_t bits;
    TRY(text_int(t, &bits));
    if (dtype_bits(d) < 64 && (bits < 0 || bits >= (int64_t)1 << dtype_bits(d)))
      return text_err_at(t, at, "bit pattern does not fit in %s", dtype_name(d));
    store_bits(d, p, (uint64_t)bits);
    return NULL;
  }
  double v;
  TRY(text_number(t, &v));
  store_bits(d, p, float_encode(d, neg ? -v : v));
  return NULL;
}

static Err *int_element(Text *t, DType d, char *p) {
  const char *at = t->start;
  if (text_is_word(t, "true") || text_is_word(t, "false")) {
    if (d != DT_I1) return text_expected(t, "an integer");
    *p = text_is_word(t, "true");
    text_next(t);
    return NULL;
  }
  bool neg = text_is(t, '-');
  int64_t v;
  TRY(text_int(t, &v));
  int bits = d == DT_INDEX ? 64 : dtype_bits(d);
  bool uns = dtype_class(d) == DC_UINT;
  if (d == DT_I1) {
    if (v < -1 || v > 1) return text_err_at(t, at, "%lld does not fit in i1", (long long)v);
    *p = v != 0;
    return NULL;
  }
  if ((uns && neg && v) ||
      (bits < 64 && (v < (uns ? 0 : -((int64_t)1 << (bits - 1))) || v >= (int64_t)1 << bits)))
    return text_err_at(t, at, "%lld does not fit in %s", (long long)v, dtype_name(d));
  store_int(d, p, v);
  return NULL;
}

static Err *element(Text *t, DType d, char *p) {
  if (dtype_is_complex(d)) {
    DType r = dtype_real_of(d);
    if (!text_is(t, '(')) { /* a real number alone */
      memset(p, 0, (size_t)dtype_bytes(d));
      return real_element(t, r, p);
    }
    text_next(t);
    TRY(real_element(t, r, p));
    TRY(text_want(t, ',', "',' and the imaginary part"));
    TRY(real_element(t, r, p + dtype_bytes(r)));
    return text_want(t, ')', "')' after the imaginary part");
  }
  return dtype_is_float(d) ? real_element(t, d, p) : int_element(t, d, p);
}

typedef struct Fill {
  const Type *ty;
  char *p, *end;
} Fill;

static Err *nested(Text *t, Fill *f, int dim) {
  if (dim == f->ty->rank) {
    if (f->p >= f->end) return text_err_at(t, t->start, "more elements than the type has");
    TRY(element(t, f->ty->dtype, f->p));
    f->p += dtype_bytes(f->ty->dtype);
    return NULL;
  }
  const char *at = t->start;
  TRY(text_want(t, '[', "'[' (as deep as the tensor has dimensions)"));
  int64_t n = 0;
  if (!text_is(t, ']')) do {
      TRY(nested(t, f, dim + 1));
      n++;
    } while (text_take(t, ','));
  TRY(text_want(t, ']', "',' or ']'"));
  if (n != f->ty->dims[dim])
    return text_err_at(t, at, "%lld elements here, but dimension %d of the type is %lld",
                       (long long)n, dim, (long long)f->ty->dims[dim]);
  return NULL;
}

Err *text_take_bytes(Text *t, const char *at, int64_t bytes) {
  if (bytes > t->room_left)
    return text_err_at(t, at, "constants take more than the limit of %lld bytes",
                       (long long)STABLEHLO_MAX_EXPANDED_BYTES);
  t->room_left -= bytes;
  return NULL;
}

static int hex_digit(int c) {
  return isdigit(c) ? c - '0' : isxdigit(c) ? (c | 32) - 'a' + 10 : -1;
}

static Err *hex_bytes(Text *t, const char *at, Str hex, unsigned char *out) {
  for (size_t i = 0; i + 1 < hex.n; i += 2) {
    int h = hex_digit((unsigned char)hex.p[i]), l = hex_digit((unsigned char)hex.p[i + 1]);
    if (h < 0 || l < 0)
      return text_err_at(t, at, "bad hexadecimal digit in the string of element bytes");
    *out++ = (unsigned char)(h * 16 + l);
  }
  return NULL;
}

/* Bytes as in a file, in x's own layout: i1 0 or 1, signed sub-byte types sign-extended. */
static void normalise(Tensor *x) {
  DType d = x->dtype;
  unsigned char *p = x->data;
  if (d == DT_I1) {
    for (int64_t i = 0; i < x->count; i++) p[i] = p[i] != 0;
  } else if (dtype_bits(d) < 8) {
    int shift = 8 - dtype_bits(d);
    for (int64_t i = 0; i < x->count; i++) {
      unsigned char v = (unsigned char)(p[i] << shift);
      p[i] = dtype_is_signed(d) ? (unsigned char)((signed char)v >> shift)
                                : (unsigned char)(v >> shift);
    }
  }
}

static Err *from_hex(Text *t, const char *at, const Type *ty, Str hex, Tensor **out) {
  size_t have = hex.n / 2, size = (size_t)dtype_bytes(ty->dtype);
  int64_t want = type_bytes(ty), count = type_count(ty);
  if (hex.n % 2) return text_err_at(t, at, "an odd number of hexadecimal digits");
  bool packed =
      ty->dtype == DT_I1 && have != (size_t)count && have == ((size_t)count + 7) / 8 && have != 1;
  if (packed) {
    TRY(tensor_new(DT_I1, ty->rank, ty->dims, out));
    unsigned char *bits = xmalloc(have), *p = (*out)->data;
    Err *e = hex_bytes(t, at, hex, bits);
    for (int64_t i = 0; !e && i < count; i++) p[i] = bits[i / 8] >> (i % 8) & 1;
    free(bits);
    return e;
  }
  bool splat = have == size && count != 1;
  if (have != (size_t)want && !splat)
    return text_err_at(t, at, "%zu bytes of elements, but the type needs %lld", have,
                       (long long)want);
  if (splat) {
    Tensor *one = tensor_make(ty->dtype, 0, NULL);
    Err *e = hex_bytes(t, at, hex, one->data);
    normalise(one);
    if (!e) e = tensor_splat(ty->dtype, ty->rank, ty->dims, one->data, out);
    tensor_release(one);
    return e;
  }
  TRY(tensor_new(ty->dtype, ty->rank, ty->dims, out));
  if ((*out)->count == 0) return NULL;
  TRY(hex_bytes(t, at, hex, (*out)->data));
  normalise(*out);
  return NULL;
}

/* t is on the first token of the literal; `length` characters long. */
static Err *fill(Text *t, const Type *ty, size_t length, Tensor **out) {
  const char *at = t->start;
  int64_t count = type_count(ty);
  if (text_is(t, '>')) {
    if (count)
      return text_err_at(t, at, "no elements here, but the type has %lld", (long long)count);
    return tensor_new(ty->dtype, ty->rank, ty->dims, out);
  }
  if (text_is(t, T_STR)) {
    Str s = t->s;
    if (s.n < 2 || s.p[0] != '0' || s.p[1] != 'x')
      return text_err_at(t, at, "expected a string \"0x...\"");
    TRY(from_hex(t, at, ty, (Str){s.p + 2, s.n - 2}, out));
    text_next(t);
    return NULL;
  }
  if (!text_is(t, '[') && !(ty->rank == 0)) {
    char one[16];
    TRY(element(t, ty->dtype, one));
    return tensor_splat(ty->dtype, ty->rank, ty->dims, one, out);
  }
  if (count > (int64_t)length)
    return text_err_at(t, at, "fewer elements than the type has (%lld)", (long long)count);
  TRY(tensor_new(ty->dtype, ty->rank, ty->dims, out));
  Fill f = {ty, (*out)->data, (char *)(*out)->data + tensor_bytes(*out)};
  return nested(t, &f, 0);
}

Err *text_dense(Text *t, Attr **out) {
  if (!text_is(t, '<')) return text_expected(t, "'<' after dense");
  const char *from = t->p, *p = from; /* the next character */
  bool in_string = false;
  for (; p < t->end && (in_string || *p != '>'); p++)
    if (*p == '"') in_string = !in_string;
  if (p >= t->end) return text_err_at(t, t->start, "dense<...> is not closed");
  size_t length = (size_t)(p - from);
  text_seek(t, p + 1);
  TRY(text_want(t, ':', "':' and the type of the elements"));
  const char *type_at = t->start;
  Type *ty;
  TRY(text_type(t, &ty));
  TRY(check_size(t, type_at, ty));
  const char *back = t->start;
  text_seek(t, from);
  Tensor *x = NULL;
  Err *e = fill(t, ty, length, &x);
  if (!e) e = text_want(t, '>', "'>' after the elements");
  if (!e && t->start <= p) e = text_expected(t, "'>' after the elements");
  if (e) {
    tensor_release(x);
    return text_place(t, e, from);
  }
  *out = attr_tensor(t->m, x, ty->quant);
  text_seek(t, back);
  return NULL;
}

/* ---- resources ---- */

/* {-# dialect_resources: { builtin: { key: "0x...", ... }, ... }, external_resources: ... #-} */
static Err *read_resources(Text *t) {
  t->resources = map_new();
  for (int i = 0; i < t->lines.n; i++) {
    const char *p = t->base + t->lines.v[i];
    while (p < t->end && (*p == ' ' || *p == '\t')) p++;
    if (t->end - p < 3 || memcmp(p, "{-#", 3) != 0) continue;
    text_seek(t, p);
    text_next(t);
    Str key = {0};
    for (; !text_is(t, T_META_END) && !text_is(t, T_EOF); text_next(t)) {
      if (text_is(t, T_ID)) {
        key = t->s;
      } else if (text_is(t, T_STR)) {
        if (text_peek_char(t) == ':') {
          key = t->s;
        } else if (!map_get(t->resources, key)) {
          Str *hex = ARENA_NEW(t->m->arena, Str);
          *hex = t->s;
          map_set(t->resources, key, hex);
        }
      }
    }
    return NULL;
  }
  return NULL;
}

Err *text_dense_resource(Text *t, Attr **out) {
  TRY(text_want(t, '<', "'<' after dense_resource"));
  const char *at = t->start;
  if (!text_is(t, T_ID) && !text_is(t, T_STR)) return text_expected(t, "a resource key");
  Str key = t->s;
  text_next(t);
  TRY(text_want(t, '>', "'>'"));
  TRY(text_want(t, ':', "':' and the type of the elements"));
  const char *type_at = t->start;
  Type *ty;
  TRY(text_type(t, &ty));
  TRY(check_size(t, type_at, ty));
  if (!t->resources) {
    const char *back = t->start;
    TRY(read_resources(t));
    text_seek(t, back);
  }
  const Str *hex = map_get(t->resources, key);
  if (!hex) return text_err_at(t, at, "resource '%.*s' is not defined", STR_ARG(key));
  if (hex->n < 10 || hex->p[0] != '0' || hex->p[1] != 'x')
    return text_err_at(t, hex->p, "expected \"0x\", four bytes of alignment and the data");
  Tensor *x = NULL;
  Str digits = {hex->p + 10, hex->n - 10};
  Err *e = from_hex(t, hex->p, ty, digits, &x);
  /* a key used many times must not multiply the memory */
  if (!e) e = text_take_bytes(t, at, (int64_t)tensor_held_bytes(x));
  if (e) {
    tensor_release(x);
    return e;
  }
  *out = attr_tensor(t->m, x, ty->quant);
  return NULL;
}
