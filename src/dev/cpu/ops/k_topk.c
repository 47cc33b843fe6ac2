/* top_k: the k elements of each row that come first, in order; approx_top_k is the same, exactly.
 *
 * Of k small beside the row, candidates are collected: elements whose key is below that of the
 * k-th best seen so far, which few are after the first hundred; whole blocks without any are left
 * out at a glance. A handful is kept in order; more go to a buffer, and when it is full, the best k
 * of it stay and the bar is lowered. Otherwise the row is sorted, without what cannot be among the k
 * by the leading digit of its key.
 *
 * Equal elements come in the order of their positions: entries are kept in that order until the
 * end, so no two rows of the same elements differ. */
#include "dev/cpu/kernel/clones.h"
#include "dev/cpu/ops/sorting.h"
#include "interp/interp.h"

typedef struct TopK {
  Key key;
  int64_t n, k, rows;
  DType index;
} TopK;

typedef struct TopRun {
  const TopK *t;
  const char *in, *places; /* what stands for the positions; NULL: they do */
  char *values, *indices;
} TopRun;

static void give(const TopRun *r, int64_t row, int64_t i, int64_t from) {
  const TopK *t = r->t;
  int64_t b = dtype_bytes(t->key.type), ib = dtype_bytes(t->index);
  memcpy(r->values + (row * t->k + i) * b, r->in + (row * t->n + from) * b, (size_t)b);
  char *index = r->indices + (row * t->k + i) * ib;
  if (r->places) memcpy(index, r->places + (row * t->n + from) * ib, (size_t)ib);
  else elem_set_i64(t->index, index, from);
}

/* ---- few of many ---- */

#define BLOCK 64
#define SPARE 256 /* of the buffer, beyond twice k */

/* Keys of n <= BLOCK elements of up to 32 bits; the smallest of them. */
CLONES static uint32_t block_keys(const Key *k, const char *in, int64_t n, uint32_t *keys) {
  const uint32_t *x = (const uint32_t *)(const void *)in;
  uint32_t least = UINT32_MAX, turn = k->down ? UINT32_MAX : 0;
  int64_t b = dtype_bytes(k->type);
  if (k->type == DT_F32)
    for (int64_t i = 0; i < n; i++)
      keys[i] = turn ^ x[i] ^ ((uint32_t)((int32_t)x[i] >> 31) | 0x80000000);
  else if (k->type == DT_I32)
    for (int64_t i = 0; i < n; i++) keys[i] = turn ^ x[i] ^ 0x80000000;
  else if ((k->type == DT_BF16 || k->type == DT_F16) && !k->zeros && !k->nans) {
    const uint16_t *h = (const uint16_t *)(const void *)in;
    for (int64_t i = 0; i < n; i++)
      keys[i] =
          ((uint32_t)(uint16_t)turn ^ h[i] ^ ((uint32_t)((int16_t)h[i] >> 15) | 0x8000)) & 0xffff;
  } else
    for (int64_t i = 0; i < n; i++) keys[i] = (uint32_t)key_at(k, in + i * b);
  for (int64_t i = 0; i < n; i++) least = keys[i] < least ? keys[i] : least;
  return least;
}

/* The key of the k-th smallest of n entries, 1 <= k <= n, and how many are smaller. */
static uint32_t kth_key(const uint64_t *e, int64_t n, int64_t k, int64_t *smaller) {
  uint32_t found = 0, known = 0; /* the leading bits, and which they are */
  *smaller = 0;
  for (int shift = 24; shift >= 0; shift -= 8) {
    uint32_t counts[256] = {0};
    for (int64_t i = 0; i < n; i++) {
      uint32_t key = (uint32_t)(e[i] >> 32);
      counts[key >> shift & 255] += (key & known) == found;
    }
    uint32_t d = 0;
    while (*smaller + counts[d] < k) *smaller += counts[d++];
    found |= d << shift;
    known |= (uint32_t)255 << shift;
  }
  return found;
}

/* The k smallest of n entries in order of positions, in that order; the largest key of them. */
static uint32_t keep_best(uint64_t *e, int64_t n, int64_t k) {
  int64_t smaller, m = 0;
  uint32_t bar = kth_key(e, n, k, &smaller);
  int64_t equal = k - smaller;
  for (int64_t i = 0; i < n; i++) {
    uint32_t key = (uint32_t)(e[i] >> 32);
    bool keep = key < bar || (key == bar && equal-- > 0);
    e[m] = e[i];
    m += keep;
  }
  return bar;
}

static size_t few_bytes(const TopK *t) {
  return sizeof(uint64_t) * 2 * (size_t)(2 * t->k + SPARE + BLOCK) +
         sizeof(uint32_t) * BUCKETS * MAX_CHUNKS;
}

#define HANDFUL 16

static void handful_rows(void *arg, int64_t begin, int64_t end) {
  const TopRun *r = arg;
  const TopK *t = r->t;
  int64_t n = t->n, b = dtype_bytes(t->key.type), k = t->k;
  for (int64_t row = begin; row < end; row++) {
    uint32_t best[HANDFUL], keys[BLOCK];
    int64_t from[HANDFUL], m = 0;
    for (int64_t i = 0; i < n; i += BLOCK) {
      int64_t some = MIN(BLOCK, n - i);
      uint32_t least = block_keys(&t->key, r->in + (row * n + i) * b, some, keys);
      if (m == k && least >= best[k - 1]) continue;
      for (int64_t j = 0; j < some; j++) {
        if (m == k && keys[j] >= best[k - 1]) continue;
        int64_t at = m < k ? m++ : k - 1;
        for (; at > 0 && best[at - 1] > keys[j]; at--)
          best[at] = best[at - 1], from[at] = from[at - 1];
        best[at] = keys[j], from[at] = i + j;
      }
    }
    for (int64_t i = 0; i < k; i++) give(r, row, i, from[i]);
  }
}

static void few_rows(void *arg, int64_t begin, int64_t end) {
  const TopRun *r = arg;
  const TopK *t = r->t;
  int64_t n = t->n, b = dtype_bytes(t->key.type), room = 2 * t->k + SPARE;
  uint64_t *e = cpu_scratch(few_bytes(t)), *other = e + room + BLOCK;
  uint32_t(*at)[BUCKETS] = (uint32_t(*)[BUCKETS])(void *)(other + room + BLOCK);
  for (int64_t row = begin; row < end; row++) {
    int64_t m = 0;
    uint64_t bar = (uint64_t)UINT32_MAX + 1;
    for (int64_t i = 0; i < n; i += BLOCK) {
      uint32_t keys[BLOCK];
      int64_t some = MIN(BLOCK, n - i);
      if (block_keys(&t->key, r->in + (row * n + i) * b, some, keys) >= bar) continue;
      for (int64_t j = 0; j < some; j++) {
        e[m] = (uint64_t)keys[j] << 32 | (uint64_t)(i + j);
        m += keys[j] < bar;
      }
      if (m < room) continue;
      bar = keep_best(e, m, t->k);
      m = t->k;
    }
    if (m > t->k) keep_best(e, m, t->k);
    const uint64_t *s = sort_entries(e, other, t->k, t->key.bits, false, at);
    for (int64_t i = 0; i < t->k; i++) give(r, row, i, (int64_t)(uint32_t)s[i]);
  }
}

/* ---- many ---- */

/* The k smallest keys, in order. Entries that cannot be among them are left out by the leading
 * digit of the key. */
static void many_rows(void *arg, int64_t begin, int64_t end) {
  const TopRun *r = arg;
  const TopK *t = r->t;
  int64_t n = t->n, b = dtype_bytes(t->key.type);
  int bits = t->key.bits, shift = MAX(0, bits - DIGIT);
  Wide *a = cpu_scratch(sizeof(Wide) * 2 * (size_t)n +
                        sizeof(uint32_t) * BUCKETS * (MAX_CHUNKS + 1) + 64),
       *c = a + n;
  uint32_t(*at)[BUCKETS] = (uint32_t(*)[BUCKETS])(void *)(c + n);
  uint32_t *counts = at[MAX_CHUNKS];
  for (int64_t row = begin; row < end; row++) {
    const char *in = r->in + row * n * b;
    memset(counts, 0, sizeof *at);
    for (int64_t i = 0; i < n; i++) {
      uint64_t key = key_at(&t->key, in + i * b);
      c[i].key = key;
      counts[key >> shift]++;
    }
    int64_t seen = 0, limit = 0;
    while (limit < BUCKETS && seen + counts[limit] < t->k) seen += counts[limit++];
    int64_t m = 0;
    for (int64_t i = 0; i < n; i++) {
      a[m] = (Wide){c[i].key, (uint64_t)i};
      m += (int64_t)(c[i].key >> shift) <= limit;
      if (m == n) break;
    }
    const Wide *s = sort_entries(a, c, m, bits, true, at);
    for (int64_t i = 0; i < t->k; i++) give(r, row, i, (int64_t)s[i].at);
  }
}

static Err *prepare(const Op *op, void **state) {
  const Type *t = op->operands[0]->type;
  TopK *k = xcalloc(1, sizeof *k);
  k->key = (Key){.type = t->dtype, .down = true, .bits = dtype_bits(t->dtype)};
  int dim;
  if (op->kind == OP_CUSTOM_CALL) interp_approx_top_k(op, &dim, &k->key.down);
  k->n = t->dims[t->rank - 1];
  k->k = op_type(op)->dims[t->rank - 1];
  k->rows = k->n ? type_count(t) / k->n : 0;
  k->index = op->results[1].type->dtype;
  *state = k;
  return NULL;
}

static Err *run(void *state, const Op *op, void *const *in, void *const *out) {
  const TopK *t = state;
  if (type_count(op_type(op)) == 0) return NULL;
  TopRun r = {t, in[0], op->kind == OP_CUSTOM_CALL ? in[1] : NULL, out[0], out[1]};
  bool narrow = t->key.bits <= 32, handful = narrow && t->k <= HANDFUL;
  cpu_parallel(t->rows, MAX(1, 16384 / t->n),
               handful                      ? handful_rows
               : narrow && t->k <= t->n / 4 ? few_rows
                                            : many_rows,
               &r);
  return NULL;
}

static bool accepts(const Op *op) {
  const Type *t = op->operands[0]->type;
  return t->rank >= 1 && !t->quant && key_type_ok(t->dtype) && t->dims[t->rank - 1] < INT32_MAX &&
         op_type(op)->dims[t->rank - 1] <= t->dims[t->rank - 1];
}

static bool accepts_approx(const Op *op) {
  int dim;
  bool greater;
  if (!interp_approx_top_k(op, &dim, &greater)) return false;
  const Type *t = op->operands[0]->type, *at = op->operands[1]->type;
  for (int i = 0; i < 2; i++)
    if (op->results[i].type->kind != TY_TENSOR ||
        op->results[i].type->dtype != op->operands[i]->type->dtype)
      return false;
  return dim == t->rank - 1 && at->rank == t->rank && at->dims[dim] == t->dims[dim] && accepts(op);
}

const CpuKernel cpu_kernels_topk[] = {
    {.name = "top_k",
     .kind = OP_CHLO_TOP_K,
     .accepts = accepts,
     .prepare = prepare,
     .run = run,
     .release = free},
    {.name = "top_k",
     .kind = OP_CUSTOM_CALL,
     .accepts = accepts_approx,
     .prepare = prepare,
     .run = run,
     .release = free},
    {0},
};
