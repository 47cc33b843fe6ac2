/* Random numbers. rng_bit_generator gives the bits of XLA on CPU:
 *  THREE_FRY  threefry2x32 of a 64-bit counter per element (64-bit results) or per pair of elements
 *             (narrower ones; the two words of a pair lie next to each other along the first even
 *             dimension, else the largest). State: key, counter.
 *  PHILOX     philox4x32-10, four words per counter. State: key, 128-bit counter; in a state of two
 *             words the key is also the counter's upper half. DEFAULT is PHILOX, as on CPU.
 * rng (UNIFORM, NORMAL) has no prescribed values: here philox by the number of the call within the
 * run. References: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011.
 */
#include <math.h>

#include "interp/ewise_priv.h"

/* ---- the two generators ---------------------------------------------------------------------- */

static uint32_t rotl(uint32_t x, int r) { return x << r | x >> (32 - r); }

/* x has the keys added. */
static void threefry_rounds(const uint32_t key[2], uint32_t x[2]) {
  static const int rotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  const uint32_t ks[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA};
  for (uint32_t round = 0; round < 5; round++) {
    for (int i = 0; i < 4; i++) {
      x[0] += x[1];
      x[1] = rotl(x[1], rotations[(round % 2) * 4 + (uint32_t)i]) ^ x[0];
    }
    x[0] += ks[(round + 1) % 3];
    x[1] += ks[(round + 2) % 3] + round + 1;
  }
}

static void threefry2x32(const uint32_t key[2], uint32_t x[2]) {
  x[0] += key[0];
  x[1] += key[1];
  threefry_rounds(key, x);
}

static void philox4x32(const uint32_t key[2], uint32_t x[4]) {
  uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; round++) {
    uint64_t a = (uint64_t)x[0] * 0xD2511F53u, b = (uint64_t)x[2] * 0xCD9E8D57u;
    uint32_t y[4] = {(uint32_t)(b >> 32) ^ x[1] ^ k0, (uint32_t)b, (uint32_t)(a >> 32) ^ x[3] ^ k1,
                     (uint32_t)a};
    memcpy(x, y, sizeof y);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

static void split(uint64_t v, uint32_t *lo_hi) {
  lo_hi[0] = (uint32_t)v;
  lo_hi[1] = (uint32_t)(v >> 32);
}

/* ---- rng_bit_generator ----------------------------------------------------------------------- */

static void put_bits(Tensor *t, int64_t i, uint64_t bits) {
  int width = dtype_bits(t->dtype);
  store_bits(t->dtype, t->data, i, width < 64 ? bits & (((uint64_t)1 << width) - 1) : bits);
}

/* Returns the new counter. */
static uint64_t fill_threefry(Tensor *out, uint64_t key64, uint64_t counter) {
  uint32_t key[2], x[2];
  split(key64, key);
  if (dtype_bits(out->dtype) == 64) {
    for (int64_t i = 0; i < out->count; i++) {
      split(counter + (uint64_t)i, x);
      threefry2x32(key, x);
      put_bits(out, i, (uint64_t)x[0] | (uint64_t)x[1] << 32);
    }
    return counter + (uint64_t)out->count;
  }
  int dim = -1; /* along which the pairs lie */
  for (int d = 0; d < out->rank && dim < 0; d++)
    if (out->dims[d] % 2 == 0) dim = d;
  for (int d = 0; d < out->rank && (dim < 0 || out->dims[dim] % 2); d++)
    if (dim < 0 || out->dims[d] > out->dims[dim]) dim = d;
  int64_t n = out->rank ? out->dims[dim] : 1, inner = 1, half = (n + 1) / 2;
  for (int d = dim + 1; d < out->rank; d++) inner *= out->dims[d];
  int64_t outer = out->count ? out->count / (n * inner) : 0;
  for (int64_t i = 0; i < outer * half * inner; i++) {
    split(counter + (uint64_t)i, x);
    threefry2x32(key, x);
    int64_t o = i / (half * inner), h = i / inner % half, in = i % inner;
    for (int64_t j = 0; j < 2 && 2 * h + j < n; j++)
      put_bits(out, (o * n + 2 * h + j) * inner + in, x[j]);
  }
  return counter + (uint64_t)(outer * half * inner);
}

static void fill_philox(Tensor *out, uint64_t key64, uint64_t counter[2]) {
  uint32_t key[2], block[4];
  split(key64, key);
  int words = dtype_bits(out->dtype) == 64 ? 2 : 1; /* of 32 bits per element */
  for (int64_t i = 0; i < out->count * words; i += 4) {
    split(counter[0], block);
    split(counter[1], block + 2);
    philox4x32(key, block);
    if (++counter[0] == 0) counter[1]++;
    for (int64_t j = 0; j < 4 && i + j < out->count * words; j += words)
      put_bits(out, (i + j) / words, block[j] | (words == 2 ? (uint64_t)block[j + 1] << 32 : 0));
  }
}

static void run_philox(Tensor *out, uint64_t *s, size_t bytes) {
  uint64_t counter[2] = {s[1], bytes == 16 ? s[0] : s[2]};
  fill_philox(out, s[0], counter);
  s[1] = counter[0];
  if (bytes > 16) s[2] = counter[1];
}

Err *sem_rng_bit_generator(Eval *e) {
  const Tensor *state = e->in[0];
  Str algorithm = op_str(e->op, "rng_algorithm");
  Tensor *new_state, *out;
  TRY(eval_out_dims(e, 0, state->rank, state->dims, &new_state));
  TRY(eval_out(e, 1, &out));
  uint64_t s[4] = {0};
  size_t bytes = tensor_bytes(state);
  if (bytes < 16 || bytes > 24)
    return op_err(e->op, ERR_INVALID, "the state has %zu bytes, not 16 or 24", bytes);
  memcpy(s, state->data, bytes);
  if (str_is(algorithm, "THREE_FRY")) s[1] = fill_threefry(out, s[0], s[1]);
  else run_philox(out, s, bytes);
  memcpy(new_state->data, s, bytes);
  return NULL;
}

/* ---- rng ------------------------------------------------------------------------------------- */

static uint64_t random_u64(uint64_t call, uint64_t i) {
  const uint32_t key[2] = {0x77656674u, 0x00726e67u};
  uint32_t block[4];
  split(i, block);
  split(call, block + 2);
  philox4x32(key, block);
  return (uint64_t)block[0] | (uint64_t)block[1] << 32;
}
static double random_unit(uint64_t call, uint64_t i) {
  return (double)(random_u64(call, i) >> 11) * 0x1p-53;
}

static void fill_rng(Tensor *out, const Tensor *a, const Tensor *b, bool normal, uint64_t call) {
  DType t = out->dtype;
  for (int64_t i = 0; i < out->count; i++) {
    uint64_t n = (uint64_t)i;
    if (dtype_is_float(t)) {
      double lo, hi, v;
      load_d(t, a->data, 0, 1, 1, &lo);
      load_d(t, b->data, 0, 1, 1, &hi);
      if (normal) { /* Box and Muller */
        double u = 1 - random_unit(call, 2 * n), w = random_unit(call, 2 * n + 1);
        v = lo + hi * sqrt(-2 * log(u)) * cos(6.283185307179586476925 * w);
      } else {
        v = lo + (hi - lo) * random_unit(call, n);
        for (uint64_t again = 1; round_to(t, v) >= hi && lo < hi && again < 64;
             again++) /* rounded up to the open end */
          v = lo + (hi - lo) * random_unit(call, n + (again << 48));
      }
      store_d(t, out->data, i, 1, &v);
    } else {
      int64_t lo, hi, v;
      load_i(t, a->data, 0, 1, 1, &lo);
      load_i(t, b->data, 0, 1, 1, &hi);
      uint64_t range = (uint64_t)hi - (uint64_t)lo;
      if (t == DT_I1) range = 2, lo = 0;
      v = (int64_t)((uint64_t)lo + (range ? random_u64(call, n) % range : 0));
      store_i(t, out->data, i, 1, &v);
    }
  }
}

Err *sem_rng(Eval *e) {
  const Tensor *shape = e->in[2];
  int64_t dims[MAX_RANK];
  if (shape->count > MAX_RANK)
    return op_err(e->op, ERR_INVALID, "more than %d dimensions", MAX_RANK);
  load_i(shape->dtype, shape->data, 0, shape->count, 1, dims);
  for (int64_t d = 0; d < shape->count; d++)
    if (dims[d] < 0) return op_err(e->op, ERR_INVALID, "dimension %lld is negative", (long long)d);
  Tensor *out;
  TRY(eval_out_dims(e, 0, (int)shape->count, dims, &out));
  if (dtype_is_complex(out->dtype))
    return op_err(e->op, ERR_UNIMPLEMENTED, "random %s", dtype_name(out->dtype));
  fill_rng(out, e->in[0], e->in[1], str_is(op_str(e->op, "rng_distribution"), "NORMAL"),
           e->run->rng_calls++);
  return NULL;
}

/* ---- as the compiler writes it --------------------------------------------------------------- */

Err *sem_threefry(Eval *e) {
  Tensor *out;
  TRY(eval_out(e, 0, &out));
  int64_t part = op_int(e->op, "part", 0);
  for (int64_t i = 0; i < out->count; i++) {
    uint32_t x[4];
    for (int k = 0; k < 4; k++)
      x[k] = ((const uint32_t *)e->in[k]->data)[e->in[k]->count == 1 ? 0 : i];
    threefry_rounds(x + 2, x);
    ((uint32_t *)out->data)[i] = part == 2 ? x[0] ^ x[1] : x[part];
  }
  return NULL;
}
