/* For tests: random programs of every kind of operation that networks are made of, on shapes with
 * odd sizes and several element types, to be computed in two ways or put before every chip.
 * random_program(seed, exact) is always the same one in one build. Numbers are kept small (squashed, clamped),
 * so that rounding stays rounding: only values that every device must compute to the bit are
 * compared, sorted or made into indices. */
#ifndef WEFT_RANDOM_TEST_H
#define WEFT_RANDOM_TEST_H

#include "ir/build.h"

#define RANDOM_MOST 64            /* values */
#define RANDOM_RESULTS 6          /* at most */
#define RANDOM_ELEMENTS (1 << 15) /* of one value */

typedef struct RandomValue {
  Value *v;
  bool exact; /* the same bits from every device */
  bool read;
} RandomValue;

typedef struct Random {
  uint64_t state;
  int scale;
  Build b;
  int n;
  RandomValue v[RANDOM_MOST];
} Random;

static inline int64_t random_below(Random *r, int64_t n) {
  r->state = r->state * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)((r->state >> 33) % (uint64_t)n);
}
static inline int64_t random_in(Random *r, int64_t lo, int64_t hi) {
  return lo + random_below(r, hi - lo + 1);
}
static inline bool random_one_in(Random *r, int n) { return !random_below(r, n); }

static inline DType random_dtype(Random *r) {
  static const DType t[] = {DT_F32,  DT_F32, DT_F32, DT_F32, DT_F32, DT_F32, DT_BF16,
                            DT_BF16, DT_F16, DT_F64, DT_I32, DT_I32, DT_I8,  DT_I16,
                            DT_I64,  DT_U8,  DT_U16, DT_U32, DT_I1,  DT_I1};
  return t[random_below(r, COUNT_OF(t))];
}

static inline int random_shape(Random *r, int rank, int64_t *dims) {
  static const int64_t sizes[] = {1,  1,  2,  3,  4,  5,  7,  8,   9,  15,
                                  16, 17, 31, 32, 33, 40, 64, 100, 129};
  int64_t count = 1;
  for (int i = 0; i < rank; i++) {
    do {
      dims[i] = sizes[random_below(r, COUNT_OF(sizes))];
      if (r->scale > 1 && random_one_in(r, 3)) dims[i] *= r->scale;
    } while (count * dims[i] > 6000 * r->scale);
    count *= dims[i];
  }
  return rank;
}

/* ---- one value made into another's type ------------------------------------------------------ */

static inline RandomValue random_any(Random *r) { /* mostly one of the last */
  int64_t back = MIN(random_below(r, r->n), random_below(r, r->n));
  return r->v[r->n - 1 - back];
}

/* An exact one: the arguments are. */
static inline RandomValue random_exact(Random *r) {
  RandomValue x = random_any(r);
  for (int i = 0; !x.exact; i = (i + 1) % r->n) x = r->v[i];
  return x;
}

static inline Value *random_between(Random *r, Value *x, double lo, double hi) {
  DType t = b_dtype(x);
  if (t == DT_I1) return x;
  return b_clamp(&r->b, b_scalar(&r->b, t, lo), x, b_scalar(&r->b, t, hi));
}

/* NaN has no whole number, nor a place in an order. */
static inline Value *random_number(Build *b, Value *x) {
  return b_select(b, b_compare(b, "EQ", x, x), x, b_full(b, x->type, 0));
}

/* x of type t. Inexact numbers do not become whole ones: false. */
static inline bool random_convert(Random *r, RandomValue *x, DType t) {
  Build *b = &r->b;
  DType from = b_dtype(x->v);
  if (from == t) return true;
  if (!x->exact && !dtype_is_float(t)) return false;
  if (t == DT_I1) {
    x->v = b_compare(b, "NE", x->v, b_full(b, x->v->type, 0));
    return true;
  }
  bool narrows = dtype_is_float(from) != dtype_is_float(t) && from != DT_I1;
  bool from_unsigned = dtype_is_int(from) && !dtype_is_signed(from);
  bool to_unsigned = dtype_is_int(t) && !dtype_is_signed(t);
  if (dtype_is_float(from) && dtype_is_int(t)) x->v = random_number(b, x->v);
  if (narrows) x->v = random_between(r, x->v, from_unsigned || to_unsigned ? 0 : -100, 100);
  x->v = b_convert(b, x->v, t);
  return true;
}

/* Dimension by dimension: repeated, cut out, padded; otherwise by way of a row. */
static inline Value *random_fit_dims(Random *r, Value *x, const int64_t *dims) {
  Build *b = &r->b;
  int rank = b_rank(x), map[B_MAX_RANK];
  int64_t lo[B_MAX_RANK] = {0}, hi[B_MAX_RANK] = {0}, none[B_MAX_RANK] = {0};
  int64_t wide[B_MAX_RANK], at[B_MAX_RANK], end[B_MAX_RANK], step[B_MAX_RANK];
  bool pads = false, cuts = false, repeats = false;
  for (int i = 0; i < rank; i++) {
    int64_t n = b_dim(x, i), want = dims[i];
    map[i] = i;
    wide[i] = n == 1 ? want : n;
    repeats |= wide[i] != n;
    step[i] = n > want && random_one_in(r, 2) ? n / want : 1;
    at[i] = n > want ? random_below(r, n - (want - 1) * step[i]) : 0;
    end[i] = n > want ? at[i] + (want - 1) * step[i] + 1 : wide[i];
    cuts |= n > want;
    if (want > wide[i]) {
      lo[i] = random_below(r, want - n + 1);
      hi[i] = want - n - lo[i];
      pads = true;
    }
  }
  if (repeats) x = b_bcast(b, x, rank, wide, map);
  if (cuts) x = b_slice(b, x, at, end, step);
  if (pads) x = b_pad(b, x, b_scalar(b, b_dtype(x), 1), lo, hi, none);
  return x;
}

static inline Value *random_fit(Random *r, Value *x, int rank, const int64_t *dims) {
  Build *b = &r->b;
  int64_t n = type_count(x->type), want = 1;
  for (int i = 0; i < rank; i++) want *= dims[i];
  if (n != want) {
    if (b_rank(x) != rank) {
      int64_t ones[B_MAX_RANK];
      for (int i = 0; i < rank; i++) ones[i] = 1;
      bool first = random_one_in(r, 2);
      if (rank) ones[first ? 0 : rank - 1] = n;
      else x = b_slice_dim(b, b_reshape(b, x, 1, &n), 0, n / 2, n / 2 + 1);
      x = b_reshape(b, x, rank, ones);
    }
    x = random_fit_dims(r, x, dims);
  }
  return b_reshape(b, x, rank, dims);
}

/* Any value as one of this type; ok false: there is none that may be. */
static inline RandomValue random_like(Random *r, const Type *t, bool exact, bool *ok) {
  RandomValue y = exact ? random_exact(r) : random_any(r);
  *ok = random_convert(r, &y, t->dtype);
  if (*ok) y.v = random_fit(r, y.v, t->rank, t->dims);
  return y;
}

/* ---- operations: false where none fits ------------------------------------------------------- */

typedef bool RandomStep(Random *r, RandomValue *out);

static inline Value *random_abs_half(Random *r, Value *x) { /* |x| + 1/2 */
  return b_adds(&r->b, b_abs(&r->b, x), 0.5);
}

static inline bool random_unary(Random *r, RandomValue *out) {
  static const OpKind smooth[] = {OP_TANH, OP_SINE, OP_COSINE, OP_LOGISTIC},
                      exact[] = {OP_NEGATE, OP_ABS},
                      whole[] = {OP_FLOOR, OP_CEIL, OP_SIGN, OP_ROUND_NEAREST_EVEN,
                                 OP_ROUND_NEAREST_AFZ};
  Build *b = &r->b;
  RandomValue x = random_any(r);
  DType t = b_dtype(x.v);
  if (!dtype_is_float(t)) {
    static const OpKind bits[] = {OP_NOT, OP_POPCNT, OP_COUNT_LEADING_ZEROS, OP_NOT};
    OpKind k = t == DT_I1 ? OP_NOT : bits[random_below(r, dtype_is_signed(t) ? 2 : 4)];
    *out = (RandomValue){.v = b_unary(b, k, x.v), .exact = x.exact};
    return true;
  }
  switch (random_below(r, 9)) {
  case 0:
    *out = (RandomValue){.v = b_unary(b, exact[random_below(r, 2)], x.v), .exact = x.exact};
    return true;
  case 1:
    if (!x.exact) break;
    *out = (RandomValue){.v = b_unary(b, whole[random_below(r, 5)], x.v), .exact = true};
    return true;
  case 2: out->v = b_exp(b, random_between(r, x.v, -4, 4)); return true;
  case 3: out->v = b_log1p(b, b_abs(b, x.v)); return true;
  case 4: out->v = b_sqrt(b, random_abs_half(r, x.v)); return true;
  case 5: out->v = b_rsqrt(b, random_abs_half(r, x.v)); return true;
  case 6: out->v = b_log(b, random_abs_half(r, x.v)); return true;
  default: break;
  }
  out->v = b_unary(b, smooth[random_below(r, COUNT_OF(smooth))], x.v);
  return true;
}

static inline bool random_binary(Random *r, RandomValue *out) {
  Build *b = &r->b;
  bool ok;
  RandomValue x = random_any(r), y = random_like(r, x.v->type, false, &ok);
  if (!ok) return false;
  DType t = b_dtype(x.v);
  out->exact = x.exact && y.exact;
  if (t == DT_I1) {
    static const OpKind logic[] = {OP_AND, OP_OR, OP_XOR};
    out->v = b_binary(b, logic[random_below(r, 3)], x.v, y.v);
  } else if (!dtype_is_float(t)) {
    static const OpKind whole[] = {OP_ADD, OP_SUBTRACT, OP_MULTIPLY, OP_AND,    OP_OR,
                                   OP_XOR, OP_MAXIMUM,  OP_MINIMUM,  OP_DIVIDE, OP_REMAINDER};
    static const OpKind shifts[] = {OP_SHIFT_LEFT, OP_SHIFT_RIGHT_LOGICAL,
                                    OP_SHIFT_RIGHT_ARITHMETIC};
    OpKind k = whole[random_below(r, COUNT_OF(whole))];
    if (k == OP_DIVIDE || k == OP_REMAINDER) y.v = random_between(r, y.v, 1, 100);
    if (random_one_in(r, 5)) {
      k = shifts[random_below(r, 3)];
      y.v = b_and(b, y.v, b_full(b, y.v->type, 7));
    }
    out->v = b_binary(b, k, x.v, y.v);
  } else {
    bool exact = false;
    switch (random_below(r, 8)) {
    case 0:
    case 1: out->v = b_mul(b, random_between(r, x.v, -4, 4), random_between(r, y.v, -4, 4)); break;
    case 2: out->v = b_max(b, x.v, y.v), exact = true; break;
    case 3: out->v = b_min(b, x.v, y.v), exact = true; break;
    case 4: out->v = b_div(b, random_between(r, x.v, -9, 9), random_abs_half(r, y.v)); break;
    case 5:
      out->v = b_pow(b, random_between(r, random_abs_half(r, x.v), 0.5, 2),
                     random_between(r, y.v, -2, 2));
      break;
    case 6: out->v = b_sub(b, random_between(r, x.v, -99, 99), y.v); break;
    default: out->v = b_add(b, x.v, random_between(r, y.v, -99, 99)); break;
    }
    out->exact &= exact;
  }
  return true;
}

static inline bool random_select(Random *r, RandomValue *out) {
  static const char *const directions[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
  Build *b = &r->b;
  bool ok, ok2;
  RandomValue x = random_exact(r), y = random_like(r, x.v->type, true, &ok);
  if (!ok) return false;
  Value *p = b_compare(b, directions[random_below(r, 6)], x.v, y.v);
  *out = (RandomValue){.v = p, .exact = true};
  if (random_one_in(r, 3)) return true;
  RandomValue on = random_any(r), off = random_like(r, on.v->type, false, &ok2);
  if (!ok2) return false;
  p = random_fit(r, p, b_rank(on.v), on.v->type->dims);
  *out = (RandomValue){.v = b_select(b, p, on.v, off.v), .exact = on.exact && off.exact};
  return true;
}

static inline bool random_retype(Random *r, RandomValue *out) {
  RandomValue x = random_any(r);
  if (!random_convert(r, &x, random_dtype(r))) return false;
  *out = x;
  return true;
}

/* x turned round by some places, as jnp.roll does. */
static inline bool random_roll(Random *r, RandomValue *out) {
  RandomValue x = random_any(r);
  if (!b_rank(x.v)) return false;
  int d = (int)random_below(r, b_rank(x.v));
  int64_t n = b_dim(x.v, d), cut = random_below(r, n);
  if (!cut) return false;
  Value *parts[] = {b_slice_dim(&r->b, x.v, d, cut, n), b_slice_dim(&r->b, x.v, d, 0, cut)};
  *out = (RandomValue){.v = b_concat(&r->b, 2, parts, d), .exact = x.exact};
  return true;
}

/* x joined with others that are wider or narrower. */
static inline bool random_join(Random *r, RandomValue *out) {
  RandomValue x = random_any(r);
  int rank = b_rank(x.v);
  if (!rank) return false;
  int64_t dims[B_MAX_RANK];
  Value *parts[3];
  int d = (int)random_below(r, rank), n = (int)random_in(r, 2, 3), own = (int)random_below(r, n);
  *out = x;
  for (int i = 0; i < n; i++) {
    bool ok;
    for (int k = 0; k < rank; k++) dims[k] = b_dim(x.v, k);
    dims[d] = random_in(r, 1, 5);
    RandomValue y = random_like(r, b_type(&r->b, b_dtype(x.v), rank, dims), false, &ok);
    if (!ok) return false;
    parts[i] = i == own ? x.v : y.v;
    out->exact &= i == own || y.exact;
  }
  out->v = b_concat(&r->b, n, parts, d);
  return true;
}

static inline Value *random_transpose(Random *r, Value *x) {
  int perm[B_MAX_RANK];
  for (int i = 0; i < b_rank(x); i++) {
    int k = (int)random_below(r, i + 1);
    perm[i] = perm[k];
    perm[k] = i;
  }
  return b_transpose(&r->b, x, perm);
}

static inline Value *random_slice(Random *r, Value *x) {
  int64_t lo[B_MAX_RANK], hi[B_MAX_RANK], step[B_MAX_RANK];
  for (int i = 0; i < b_rank(x); i++) {
    lo[i] = random_below(r, (b_dim(x, i) + 1) / 2);
    hi[i] = random_in(r, lo[i] + 1, b_dim(x, i));
    step[i] = random_one_in(r, 3) ? 2 : 1;
  }
  return b_slice(&r->b, x, lo, hi, step);
}

static inline Value *random_pad(Random *r, Value *x) {
  int64_t lo[B_MAX_RANK], hi[B_MAX_RANK], between[B_MAX_RANK];
  for (int i = 0; i < b_rank(x); i++) {
    lo[i] = random_in(r, b_dim(x, i) > 2 ? -1 : 0, 3);
    hi[i] = random_below(r, 3);
    between[i] = random_one_in(r, 4);
  }
  return b_pad(&r->b, x, b_scalar(&r->b, b_dtype(x), 1), lo, hi, between);
}

static inline bool random_move(Random *r, RandomValue *out) {
  RandomValue x = random_any(r);
  int64_t dims[B_MAX_RANK], rank = b_rank(x.v);
  if (!rank) return false;
  *out = x;
  switch (random_below(r, 5)) {
  case 0: out->v = random_transpose(r, x.v); break;
  case 1: dims[0] = random_below(r, rank), out->v = b_reverse(&r->b, x.v, 1, dims); break;
  case 2: out->v = random_slice(r, x.v); break;
  case 3: out->v = random_pad(r, x.v); break;
  default:
    rank = random_shape(r, (int)random_in(r, 1, 4), dims);
    out->v = random_fit(r, x.v, (int)rank, dims);
    break;
  }
  return true;
}

static inline bool random_reduce(Random *r, RandomValue *out) {
  Build *b = &r->b;
  RandomValue x = random_any(r);
  int rank = b_rank(x.v), n = 0, map[B_MAX_RANK], n_map = 0;
  DType t = b_dtype(x.v);
  int64_t dims[B_MAX_RANK];
  for (int i = 0; i < rank; i++)
    if (random_one_in(r, 2)) dims[n++] = i;
    else map[n_map++] = i;
  if (!n) return false;
  static const OpKind of_i1[] = {OP_AND, OP_OR, OP_AND},
                      of_number[] = {OP_ADD, OP_MAXIMUM, OP_MINIMUM};
  OpKind k = (t == DT_I1 ? of_i1 : of_number)[random_below(r, 3)];
  bool sum = dtype_is_float(t) && k == OP_ADD;
  Value *in = sum ? random_between(r, x.v, -1, 1) : x.v, *s = b_reduce(b, k, in, n, dims);
  *out = (RandomValue){.v = s, .exact = x.exact && !sum};
  if (!dtype_is_float(t) || random_one_in(r, 2)) return true;
  /* back over the whole, as in a softmax or a layer norm */
  s = b_bcast_like(b, b_tanh(b, s), x.v->type, map);
  *out = (RandomValue){.v = b_sub(b, random_between(r, x.v, -99, 99), s), .exact = false};
  return true;
}

static inline bool random_window(Random *r, RandomValue *out) {
  static const OpKind kinds[] = {OP_ADD, OP_MAXIMUM, OP_MINIMUM};
  RandomValue x = random_any(r);
  int rank = b_rank(x.v);
  DType t = b_dtype(x.v);
  if (!rank || t == DT_I1) return false;
  int64_t size[B_MAX_RANK], step[B_MAX_RANK], padding[2 * B_MAX_RANK], base[B_MAX_RANK],
      apart[B_MAX_RANK];
  for (int i = 0; i < rank; i++) {
    size[i] = random_in(r, 1, MIN(3, b_dim(x.v, i)));
    step[i] = random_one_in(r, 3) ? 2 : 1;
    base[i] = random_one_in(r, 6) ? 2 : 1;
    apart[i] = random_one_in(r, 6) && b_dim(x.v, i) > 2 * size[i] ? 2 : 1;
    padding[2 * i] = random_below(r, 2);
    padding[2 * i + 1] = random_below(r, 2);
  }
  OpKind k = kinds[random_below(r, 3)];
  bool sum = dtype_is_float(t) && k == OP_ADD;
  Window w = {size, step, base, apart, padding};
  Value *in = sum ? random_between(r, x.v, -9, 9) : x.v;
  *out = (RandomValue){.v = b_reduce_window(&r->b, k, in, &w), .exact = x.exact && !sum};
  return true;
}

static inline bool random_dot(Random *r, RandomValue *out) {
  static const int64_t sizes[] = {1, 2, 3, 5, 8, 16, 17, 32, 40, 65};
  Build *b = &r->b;
  DotDims d = {.n_batch = random_one_in(r, 3), .n_contract = 1};
  int64_t m = sizes[random_below(r, 10)], k = sizes[random_below(r, 10)],
          n = sizes[random_below(r, 10)], batch = random_in(r, 1, 4) * r->scale, x_dims[3],
          y_dims[3];
  if (random_one_in(r, 2)) m *= r->scale;
  if (random_one_in(r, 2)) n *= r->scale;
  /* where in each operand its batch, its free and its contracted dimension stand */
  int rank = 2 + d.n_batch, turn = (int)random_below(r, rank), turn2 = (int)random_below(r, rank);
  int64_t x_of[] = {m, k, batch}, y_of[] = {n, k, batch};
  for (int i = 0; i < rank; i++) {
    x_dims[(i + turn) % rank] = x_of[i];
    y_dims[(i + turn2) % rank] = y_of[i];
  }
  d.lhs_contract[0] = (1 + turn) % rank;
  d.rhs_contract[0] = (1 + turn2) % rank;
  d.lhs_batch[0] = (2 + turn) % rank;
  d.rhs_batch[0] = (2 + turn2) % rank;
  RandomValue x = random_any(r);
  DType t = b_dtype(x.v), result = t;
  if (t == DT_I1) return false;
  if ((t == DT_BF16 || t == DT_F16) && random_one_in(r, 2)) result = DT_F32;
  bool ok;
  x.v = random_fit(r, x.v, rank, x_dims);
  RandomValue y = random_like(r, b_type(b, t, rank, y_dims), false, &ok);
  if (!ok) return false;
  bool real = dtype_is_float(t);
  if (real) x.v = random_between(r, x.v, -4, 4), y.v = random_between(r, y.v, -4, 4);
  *out = (RandomValue){.v = b_dot(b, x.v, y.v, &d, result, NULL),
                       .exact = !real && x.exact && y.exact};
  return true;
}

static inline bool random_conv(Random *r, RandomValue *out) {
  static const int64_t channels[] = {1, 2, 3, 4, 7, 8, 16, 24};
  Build *b = &r->b;
  bool ok, ok2;
  RandomValue any = random_any(r);
  DType t = b_dtype(any.v);
  if (!dtype_is_float(t)) return false;
  int64_t in = channels[random_below(r, 8)], made = channels[random_below(r, 8)];
  ConvDims d = b_conv_nhwc(random_in(r, 1, 2), random_below(r, 3), random_below(r, 3));
  if (random_one_in(r, 4)) d.feature_groups = in, made = in * random_in(r, 1, 2);
  for (int i = 0; i < 2; i++) {
    if (random_one_in(r, 5)) d.lhs_dilation[i] = 2;
    if (random_one_in(r, 5)) d.rhs_dilation[i] = 2;
    d.reversal[i] = random_one_in(r, 8);
  }
  int64_t image[] = {random_in(r, 1, 3) * r->scale, random_in(r, 5, 12), random_in(r, 5, 12), in},
          kernel[] = {random_in(r, 1, 3), random_in(r, 1, 3), in / d.feature_groups, made};
  RandomValue x = random_like(r, b_type(b, t, 4, image), false, &ok),
              k = random_like(r, b_type(b, t, 4, kernel), false, &ok2);
  if (!ok || !ok2) return false;
  out->v = b_conv(b, random_between(r, x.v, -4, 4), random_between(r, k.v, -4, 4), &d, t, NULL);
  return true;
}

/* Whole numbers of 32 bits, from just below 0 to just above n. */
static inline Value *random_indices(Random *r, int rank, const int64_t *dims, int64_t n) {
  RandomValue ids = random_exact(r);
  random_convert(r, &ids, DT_I32);
  return random_fit(r, random_between(r, ids.v, -2, (double)n + 1), rank, dims);
}

/* A window somewhere, read or written over. */
static inline bool random_part(Random *r, RandomValue *out) {
  RandomValue x = random_any(r), y;
  int rank = b_rank(x.v);
  int64_t size[B_MAX_RANK];
  Value *start[B_MAX_RANK];
  bool ok;
  if (!rank) return false;
  *out = x;
  for (int i = 0; i < rank; i++) {
    size[i] = random_in(r, 1, b_dim(x.v, i));
    start[i] = random_indices(r, 0, NULL, b_dim(x.v, i));
  }
  if (random_one_in(r, 2)) {
    out->v = b_dynamic_slice(&r->b, x.v, start, size);
    return true;
  }
  y = random_like(r, b_type(&r->b, b_dtype(x.v), rank, size), false, &ok);
  if (!ok) return false;
  out->v = b_dynamic_update(&r->b, x.v, y.v, start);
  out->exact &= y.exact;
  return true;
}

/* Indices of one number each, into one dimension; the other dimensions as they are, the last. */
static inline IndexDims random_rows(int rank, int dim) {
  IndexDims d = {.n_offset = rank - 1, .n_collapsed = 1, .n_map = 1, .index_vector_dim = 1};
  d.collapsed[0] = d.map[0] = dim;
  for (int i = 1; i < rank; i++) d.offset[i - 1] = i;
  return d;
}

static inline bool random_gather(Random *r, RandomValue *out) {
  RandomValue x = random_any(r);
  int rank = b_rank(x.v);
  if (!rank) return false;
  int64_t size[B_MAX_RANK], count = random_in(r, 1, 9);
  int dim = (int)random_below(r, rank);
  IndexDims d = random_rows(rank, dim);
  for (int i = 0; i < rank; i++) size[i] = i == dim ? 1 : b_dim(x.v, i);
  Value *ids = random_indices(r, 1, &count, b_dim(x.v, dim));
  *out = (RandomValue){.v = b_gather(&r->b, x.v, ids, &d, size), .exact = x.exact};
  return true;
}

/* Rows added to, or kept when they are the largest. */
static inline bool random_scatter(Random *r, RandomValue *out) {
  RandomValue x = random_any(r);
  int rank = b_rank(x.v);
  DType t = b_dtype(x.v);
  if (!rank) return false;
  int64_t size[B_MAX_RANK];
  IndexDims d = random_rows(rank, 0);
  for (int i = 1; i < rank; i++) size[i] = b_dim(x.v, i);
  size[0] = random_in(r, 1, 9);
  bool ok;
  RandomValue y = random_like(r, b_type(&r->b, t, rank, size), false, &ok);
  if (!ok) return false;
  OpKind k = t == DT_I1 ? OP_OR : random_one_in(r, 2) ? OP_ADD : OP_MAXIMUM;
  Value *ids = random_indices(r, 1, size, b_dim(x.v, 0));
  out->v = b_scatter(&r->b, k, x.v, ids, y.v, &d);
  out->exact = x.exact && y.exact && !(k == OP_ADD && dtype_is_float(t));
  return true;
}

/* The keys in order, or what their places were. */
static inline bool random_sort(Random *r, RandomValue *out) {
  Build *b = &r->b;
  RandomValue x = random_exact(r);
  int rank = b_rank(x.v);
  if (!rank) return false;
  if (dtype_is_float(b_dtype(x.v))) x.v = random_number(b, x.v);
  int64_t dim = random_below(r, rank);
  Type *types[] = {x.v->type, b_type_as(b, x.v->type, DT_I32)},
       *key = b_type(b, b_dtype(x.v), 0, NULL), *place = b_type(b, DT_I32, 0, NULL);
  Build in = {b->m, region_new(b->m, 4, (Type *[]){key, key, place, place}), b->loc};
  Value *less = b_compare(&in, random_one_in(r, 2) ? "GT" : "LT", in.r->args[0], in.r->args[1]);
  b_return(&in, 1, &less);
  NamedAttr a[] = {b_int(b, "dimension", dim), b_bool(b, "is_stable", true)};
  Value *operands[] = {x.v, b_iota(b, types[1], (int)dim)};
  Op *op = b_op(b, OP_SORT, 2, operands, 2, types, 2, a, 1, &in.r);
  *out = (RandomValue){.v = &op->results[random_below(r, 2)], .exact = true};
  return true;
}

/* One step of a loop or a branch: x squashed together with y. */
static inline Value *random_body(Random *r, Build *in, Value *x, Value *y) {
  Value *z = b_tanh(in, b_add(in, b_muls(in, x, 0.7), y));
  int rank = b_rank(x), last = rank - 1;
  if (!rank || random_one_in(r, 2)) return z;
  int64_t n = b_dim(x, last), d = last;
  int map[B_MAX_RANK];
  for (int i = 0; i < last; i++) map[i] = i;
  if (n > 1 && random_one_in(r, 2)) {
    Value *parts[] = {b_slice_dim(in, z, last, 1, n), b_slice_dim(in, z, last, 0, 1)};
    return b_concat(in, 2, parts, last);
  }
  Value *most = b_muls(in, b_reduce(in, OP_MAXIMUM, z, 1, &d), 0.25);
  return b_add(in, z, b_bcast_like(in, most, x->type, map));
}

/* Some steps; the second carried value takes down what each of them sums to. */
static inline Value *random_loop(Random *r, Value *x, Value *y) {
  Build *b = &r->b;
  int64_t trips = random_in(r, 1, 7);
  DType t = b_dtype(x);
  Value *in[] = {b_scalar_i64(b, DT_I32, 0), x, b_full(b, b_type(b, t, 1, &trips), 0)};
  Type *types[] = {in[0]->type, in[1]->type, in[2]->type};
  Build cond = {b->m, region_new(b->m, 3, types), b->loc},
        body = {b->m, region_new(b->m, 3, types), b->loc};
  Value *go = b_compare(&cond, "LT", cond.r->args[0], b_scalar_i64(&cond, DT_I32, trips));
  b_return(&cond, 1, &go);
  Value **a = body.r->args, *next = random_body(r, &body, a[1], y);
  Value *sum = b_reshape(&body, b_reduce_all(&body, OP_MAXIMUM, next), 1, (int64_t[]){1});
  Value *row = b_dynamic_update(&body, a[2], sum, &a[0]);
  b_return(&body, 3, (Value *[]){b_add(&body, a[0], b_scalar_i64(&body, DT_I32, 1)), next, row});
  Op *op = b_op(b, OP_WHILE, 3, in, 3, types, 0, NULL, 2, (Region *[]){cond.r, body.r});
  return &op->results[random_in(r, 1, 2)];
}

static inline bool random_control(Random *r, RandomValue *out) {
  Build *b = &r->b;
  RandomValue x = random_any(r);
  bool ok;
  if (!dtype_is_float(b_dtype(x.v))) return false;
  RandomValue y = random_like(r, x.v->type, false, &ok);
  if (!ok) return false;
  y.v = random_between(r, y.v, -3, 3);
  x.v = random_between(r, x.v, -9, 9);
  if (random_one_in(r, 2)) {
    out->v = random_loop(r, x.v, y.v);
    return true;
  }
  Region *arms[3];
  int n = (int)random_in(r, 2, 3);
  for (int i = 0; i < n; i++) {
    Build in = {b->m, region_new(b->m, 0, NULL), b->loc};
    Value *v = i == 1 ? b_sub(&in, x.v, y.v) : random_body(r, &in, x.v, y.v);
    b_return(&in, 1, &v);
    arms[i] = in.r;
  }
  Value *which = random_indices(r, 0, NULL, n);
  out->v = &b_op(b, OP_CASE, 1, &which, 1, &x.v->type, 0, NULL, n, arms)->results[0];
  return true;
}

/* ---- programs -------------------------------------------------------------------------------- */

static inline Err *random_mark_read(Op *op, void *random) {
  Random *r = random;
  for (int i = 0; i < op->n_operands; i++)
    for (int k = 0; k < r->n; k++)
      if (r->v[k].v == op->operands[i]) r->v[k].read = true;
  return NULL;
}

/* exact[i]: result i must be the same to the bit. scale: sizes of some dimensions are multiplied
 * by it. Frees with module_free. */
static inline Module *random_program(uint64_t seed, int scale, bool exact[RANDOM_RESULTS]) {
  static RandomStep *const steps[] = {
      random_unary,  random_unary,  random_unary,  random_binary,  random_binary, random_binary,
      random_binary, random_select, random_retype, random_move,    random_move,   random_move,
      random_roll,   random_join,   random_reduce, random_reduce,  random_window, random_dot,
      random_conv,   random_part,   random_gather, random_scatter, random_sort,   random_control};
  Random r = {.state = seed * 0x9e3779b97f4a7c15u + 1, .scale = scale};
  random_below(&r, 2);
  Module *m = module_new();
  b_func(&r.b, m, "main");
  int64_t dims[B_MAX_RANK], n_args = random_in(&r, 1, 4);
  while (r.n < n_args) {
    int rank = random_shape(&r, (int)random_in(&r, 0, 4), dims);
    r.v[r.n++] =
        (RandomValue){.v = b_arg(&r.b, b_type(&r.b, random_dtype(&r), rank, dims)), .exact = true};
  }
  int64_t want = random_in(&r, 3, 30), tries = 0;
  while (r.n < n_args + want && tries++ < 200) {
    RandomValue x = {0};
    if (!steps[random_below(&r, COUNT_OF(steps))](&r, &x)) continue;
    if (type_count(x.v->type) <= (int64_t)RANDOM_ELEMENTS * scale) r.v[r.n++] = x;
  }
  ir_walk(module_main(m)->body, random_mark_read, &r);
  Value *results[RANDOM_RESULTS];
  int n = 0;
  for (int i = r.n - 1; i >= 0 && n < RANDOM_RESULTS; i--) {
    if (r.v[i].read && !random_one_in(&r, 12)) continue;
    results[n] = r.v[i].v;
    exact[n++] = r.v[i].exact;
  }
  b_return(&r.b, n, results);
  return m;
}

static inline Err *random_rounding(Op *op, void *most) {
  for (int i = 0; i < op->n_results; i++) {
    DType t = op->results[i].type->dtype;
    double of = t == DT_BF16 ? 0.16 : t == DT_F16 ? 0.02 : 3e-4;
    *(double *)most = MAX(*(double *)most, of);
  }
  return NULL;
}

/* What may come between two results that are not exact, of the largest number in them: what the
 * narrowest type in the program rounds away, some steps on. */
static inline double random_tolerance(const Func *f) {
  double most = 0;
  ir_walk(f->body, random_rounding, &most);
  return most;
}

#endif
