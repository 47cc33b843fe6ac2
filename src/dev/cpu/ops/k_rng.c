/* rng_bit_generator: threefry2x32 and philox4x32-10 by counter, so that every block is computed on
 * its own: in groups of LANES counters, written so that the C compiler makes vectors of them (for
 * several instruction sets, chosen at load time), the groups divided by the pool. Which element
 * gets which word is what the reference says (interp/rng.c). */
#include "dev/cpu/kernel/kernel.h"

#include "dev/cpu/kernel/clones.h"

#define LANES 64

static inline uint32_t rotl(uint32_t x, int r) { return x << r | x >> (32 - r); }

/* Words of counters first .. first + LANES - 1. */
CLONES static void threefry(uint32_t k0, uint32_t k1, uint64_t first, uint32_t *restrict w0,
                            uint32_t *restrict w1) {
  const uint32_t ks[3] = {k0, k1, k0 ^ k1 ^ 0x1BD11BDAu};
  for (int i = 0; i < LANES; i++) {
    uint64_t c = first + (uint64_t)i;
    w0[i] = (uint32_t)c + k0;
    w1[i] = (uint32_t)(c >> 32) + k1;
  }
#define TURN(r) \
  a += b;       \
  b = rotl(b, r) ^ a;
#define FIRST TURN(13) TURN(15) TURN(26) TURN(6)
#define SECOND TURN(17) TURN(29) TURN(16) TURN(24)
#define ADD(i) a += ks[(i) % 3], b += ks[((i) + 1) % 3] + (i);
  for (int i = 0; i < LANES; i++) {
    uint32_t a = w0[i], b = w1[i];
    FIRST ADD(1) SECOND ADD(2) FIRST ADD(3) SECOND ADD(4) FIRST ADD(5) w0[i] = a;
    w1[i] = b;
  }
}

/* Four words of each of counters (hi, lo) + 0 .. LANES - 1. */
CLONES static void philox(uint32_t key0, uint32_t key1, uint64_t lo, uint64_t hi,
                          uint32_t (*restrict w)[LANES]) {
  for (int i = 0; i < LANES; i++) {
    uint64_t l = lo + (uint64_t)i, h = hi + (l < lo);
    w[0][i] = (uint32_t)l, w[1][i] = (uint32_t)(l >> 32);
    w[2][i] = (uint32_t)h, w[3][i] = (uint32_t)(h >> 32);
  }
  for (int i = 0; i < LANES; i++) {
    uint32_t x0 = w[0][i], x1 = w[1][i], x2 = w[2][i], x3 = w[3][i], k0 = key0, k1 = key1;
    for (int round = 0; round < 10; round++) {
      uint64_t a = (uint64_t)x0 * 0xD2511F53u, b = (uint64_t)x2 * 0xCD9E8D57u;
      x0 = (uint32_t)(b >> 32) ^ x1 ^ k0;
      x1 = (uint32_t)b;
      x2 = (uint32_t)(a >> 32) ^ x3 ^ k1;
      x3 = (uint32_t)a;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    w[0][i] = x0, w[1][i] = x1, w[2][i] = x2, w[3][i] = x3;
  }
}

typedef struct Bits {
  DType t;
  char *out;
  uint64_t key, lo, hi; /* the counter's halves */
  int64_t count;
  int64_t n, inner; /* threefry: the dimension of the pairs and what lies below it */
} Bits;

static void put(const Bits *r, int64_t i, uint64_t bits) {
  int width = dtype_bits(r->t);
  char *p = r->out + i * dtype_bytes(r->t);
  switch (dtype_bytes(r->t)) {
  case 4: memcpy(p, &(uint32_t){(uint32_t)bits}, 4); return;
  case 8: memcpy(p, &bits, 8); return;
  case 2: memcpy(p, &(uint16_t){(uint16_t)bits}, 2); return;
  default:
    elem_set_i64(r->t, p, (int64_t)(width < 64 ? bits & (((uint64_t)1 << width) - 1) : bits));
  }
}

static void threefry_groups(void *arg, int64_t begin, int64_t end) { /* of LANES counters */
  const Bits *r = arg;
  uint32_t w0[LANES], w1[LANES];
  int64_t half = (r->n + 1) / 2,
          blocks = r->n && r->inner ? r->count / (r->n * r->inner) * half * r->inner : 0;
  bool wide = dtype_bits(r->t) == 64;
  if (wide) blocks = r->count;
  for (int64_t g = begin; g < end; g++) {
    int64_t first = g * LANES, m = MIN(LANES, blocks - first);
    threefry((uint32_t)r->key, (uint32_t)(r->key >> 32), r->lo + (uint64_t)first, w0, w1);
    if (wide) {
      uint64_t *to = (uint64_t *)(void *)r->out + first;
      for (int64_t i = 0; i < m; i++) to[i] = (uint64_t)w0[i] | (uint64_t)w1[i] << 32;
      continue;
    }
    if (r->inner == 1 && r->n % 2 == 0 && dtype_bytes(r->t) == 4) { /* pairs side by side */
      uint32_t *to = (uint32_t *)(void *)r->out + 2 * first;
      for (int64_t i = 0; i < m; i++) to[2 * i] = w0[i], to[2 * i + 1] = w1[i];
      continue;
    }
    int64_t o = first / (half * r->inner), h = first / r->inner % half, in = first % r->inner;
    for (int64_t i = 0; i < m; i++) {
      int64_t at = (o * r->n + 2 * h) * r->inner + in;
      put(r, at, w0[i]);
      if (2 * h + 1 < r->n) put(r, at + r->inner, w1[i]);
      if (++in < r->inner) continue;
      in = 0;
      if (++h < half) continue;
      h = 0;
      o++;
    }
  }
}

static void philox_groups(void *arg, int64_t begin, int64_t end) {
  const Bits *r = arg;
  uint32_t w[4][LANES];
  bool wide = dtype_bits(r->t) == 64;
  int64_t each = wide ? 2 : 4; /* elements of a block */
  for (int64_t g = begin; g < end; g++) {
    int64_t first = g * LANES, at = first * each, m = MIN(LANES * each, r->count - at);
    uint64_t lo = r->lo + (uint64_t)first;
    philox((uint32_t)r->key, (uint32_t)(r->key >> 32), lo, r->hi + (lo < r->lo), w);
    if (dtype_bytes(r->t) == 4 && m == LANES * each) {
      uint32_t *to = (uint32_t *)(void *)r->out + at;
      for (int64_t i = 0; i < LANES; i++)
        for (int j = 0; j < 4; j++) to[4 * i + j] = w[j][i];
      continue;
    }
    for (int64_t i = 0; i < m; i++)
      put(r, at + i,
          wide ? (uint64_t)w[i % 2 * 2][i / 2] | (uint64_t)w[i % 2 * 2 + 1][i / 2] << 32
               : w[i % 4][i / 4]);
  }
}

static Err *run(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  const Type *st = op->operands[0]->type, *t = op->results[1].type;
  uint64_t s[3] = {0};
  size_t bytes = (size_t)type_bytes(st);
  memcpy(s, in[0], bytes);
  Bits r = {.t = t->dtype,
            .out = out[1],
            .key = s[0],
            .lo = s[1],
            .count = type_count(t),
            .n = 1,
            .inner = 1};
  if (str_is(op_str(op, "rng_algorithm"), "THREE_FRY")) {
    int64_t blocks = r.count;
    if (dtype_bits(r.t) < 64) {
      int dim = -1; /* along which the pairs lie: the first even dimension, else the largest */
      for (int d = 0; d < t->rank && dim < 0; d++)
        if (t->dims[d] % 2 == 0) dim = d;
      for (int d = 0; d < t->rank && (dim < 0 || t->dims[dim] % 2); d++)
        if (dim < 0 || t->dims[d] > t->dims[dim]) dim = d;
      if (dim >= 0) r.n = t->dims[dim];
      for (int d = dim + 1; d < t->rank && dim >= 0; d++) r.inner *= t->dims[d];
      blocks = r.count ? r.count / (r.n * r.inner) * ((r.n + 1) / 2) * r.inner : 0;
    }
    cpu_parallel((blocks + LANES - 1) / LANES, 128, threefry_groups, &r);
    s[1] += (uint64_t)blocks;
  } else {
    r.hi = bytes == 16 ? s[0] : s[2];
    int64_t each = dtype_bits(r.t) == 64 ? 2 : 4, blocks = (r.count + each - 1) / each;
    cpu_parallel((blocks + LANES - 1) / LANES, 64, philox_groups, &r);
    uint64_t next = s[1] + (uint64_t)blocks;
    if (bytes > 16) s[2] = r.hi + (next < s[1]);
    s[1] = next;
  }
  memcpy(out[0], s, bytes);
  return NULL;
}

static bool accepts(const Op *op) {
  int64_t bytes = type_bytes(op->operands[0]->type);
  const Type *t = op->results[1].type;
  return bytes >= 16 && bytes <= 24 && !t->quant && (dtype_is_int(t->dtype) || t->dtype == DT_I1);
}

const CpuKernel cpu_kernels_rng[] = {
    {.name = "rng_bits", .kind = OP_RNG_BIT_GENERATOR, .accepts = accepts, .run = run},
    {0},
};
