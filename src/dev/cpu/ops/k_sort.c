/* sort by keys.
 *
 * A comparator that compares elements of the operands, one pair or several in order of importance,
 * with or without JAX's detour that makes zeros equal and NaNs the largest, is turned into keys:
 * unsigned integers in the order wanted, counted from the least of the row. A row is then sorted by
 * (key, position): many rows that are not long side by side (sort_lanes.c), others by a stable radix
 * sort of the bits in which the keys differ, whose passes run on the pool when there are few rows.
 * Comparators of another form go to the reference.
 *
 * Entries are 8 bytes (32-bit key, 32-bit position) or 16. A single operand of up to 32 bits
 * carries its bits in place of the position. Results do not depend on the number of threads: a
 * stable order is unique. */
#include "dev/cpu/kernel/clones.h"
#include "dev/cpu/ops/sorting.h"

typedef struct Run {
  const Sort *s;
  const Op *op;
  void *const *in;
  void *const *out;
  bool bits_along; /* entries carry the element, not its position */
} Run;

enum { CHUNK = 65536, LANES_LONGEST = 512, KEPT = 64 << 20 };

/* Of n entries, the widest that the keys may need. */
static size_t entries_bytes(const Sort *s) {
  int bits = 0;
  for (int k = 0; k < s->n_keys; k++) bits += s->keys[k].bits;
  return (size_t)s->n * (bits > 32 ? sizeof(Wide) : sizeof(uint64_t));
}

static size_t scratch_bytes(const Sort *s) {
  return 2 * entries_bytes(s) + (size_t)s->n * 4 + sizeof(uint32_t) * BUCKETS * MAX_CHUNKS + 256;
}

static void scatter_element(size_t bytes, const char *in, char *out, int64_t n, int64_t step,
                            const uint32_t *perm) {
#define PICK(T)                                                                     \
  case sizeof(T):                                                                   \
    for (int64_t i = 0; i < n; i++)                                                 \
      ((T *)(void *)out)[i * step] = ((const T *)(const void *)in)[perm[i] * step]; \
    return;
  switch (bytes) {
    PICK(uint8_t)
    PICK(uint16_t)
    PICK(uint32_t)
    PICK(uint64_t)
  default:
    for (int64_t i = 0; i < n; i++)
      memcpy(out + (size_t)(i * step) * bytes, in + (size_t)(perm[i] * step) * bytes, bytes);
  }
#undef PICK
}

typedef struct Row { /* a row on its way, by parts */
  const Run *r;
  int64_t base;
  int first, last;    /* the keys of this pass */
  bool wide, ordered; /* 16-byte entries; perm is set */
  uint64_t *keys;
  uint64_t least, range; /* of the keys; range: to the largest */
  void *entries;
  uint32_t *perm;
} Row;

/* Keys of n elements, `from` apart, of one operand's whole elements; to: `step` apart. */
static inline __attribute__((always_inline)) void
typed_keys(const Key *k, const char *in, int64_t from, int64_t n, uint64_t *to, int64_t step) {
  uint64_t flip = !k->down ? 0 : k->bits == 64 ? ~(uint64_t)0 : ((uint64_t)1 << k->bits) - 1;
  bool zeros = k->zeros, nans = k->nans;
#define KEYS(T, key)                          \
  {                                           \
    const T *x = (const T *)(const void *)in; \
    for (int64_t i = 0; i < n; i++) {         \
      T u = x[i * from];                      \
      to[i * step] = (uint64_t)(key) ^ flip;  \
    }                                         \
    return;                                   \
  }
  switch (k->type) {
  case DT_F32: KEYS(uint32_t, float_key(u, 32, zeros, nans, 0x7f800000))
  case DT_F64: KEYS(uint64_t, float_key(u, 64, zeros, nans, 0x7ff0000000000000))
  case DT_BF16: KEYS(uint16_t, float_key(u, 16, zeros, nans, 0x7f80))
  case DT_F16: KEYS(uint16_t, float_key(u, 16, zeros, nans, 0x7c00))
  case DT_I32: KEYS(uint32_t, u ^ 0x80000000)
  case DT_I64: KEYS(uint64_t, u ^ (uint64_t)1 << 63)
  case DT_I16: KEYS(uint16_t, u ^ 0x8000)
  case DT_I8: KEYS(uint8_t, u ^ 0x80)
  case DT_U8: KEYS(uint8_t, u)
  case DT_U32: KEYS(uint32_t, u)
  default:
    for (int64_t i = 0; i < n; i++) to[i * step] = key_at(k, in + i * from * dtype_bytes(k->type));
  }
#undef KEYS
}
CLONES static void keys_beside(const Key *k, const char *in, int64_t n, uint64_t *to) {
  typed_keys(k, in, 1, n, to, 1);
}
CLONES static void keys_apart(const Key *k, const char *in, int64_t from, int64_t n, uint64_t *to,
                              int64_t step) {
  typed_keys(k, in, from, n, to, step);
}

static size_t operand_bytes(const Run *r, int i) {
  return (size_t)dtype_bytes(r->op->operands[i]->type->dtype);
}

static void make_keys(void *arg, int64_t begin, int64_t end) {
  const Row *w = arg;
  const Run *r = w->r;
  const Sort *s = r->s;
  const Key *only = &s->keys[w->first];
  if (w->last - w->first == 1 && only->part == PART_ALL && !w->ordered) {
    const char *in = (const char *)r->in[only->operand] +
                     (size_t)(w->base + begin * s->inner) * operand_bytes(r, only->operand);
    if (s->inner == 1) keys_beside(only, in, end - begin, w->keys + begin);
    else keys_apart(only, in, s->inner, end - begin, w->keys + begin, 1);
    return;
  }
  for (int64_t i = begin; i < end; i++) {
    int64_t from = w->ordered ? w->perm[i] : i;
    uint64_t key = 0;
    for (int k = w->first; k < w->last; k++) {
      const Key *q = &s->keys[k];
      const char *in = r->in[q->operand];
      key = (q->bits == 64 ? 0 : key << q->bits) |
            key_at(q, in + (size_t)(w->base + from * s->inner) * operand_bytes(r, q->operand));
    }
    w->keys[i] = key;
  }
}

CLONES static void find_range(Row *w, int64_t n) {
  uint64_t least = ~(uint64_t)0, most = 0;
  for (int64_t i = 0; i < n; i++) {
    uint64_t k = w->keys[i];
    least = k < least ? k : least;
    most = k > most ? k : most;
  }
  w->least = least;
  w->range = most - least;
}

static int bits_of(uint64_t range) { return range ? 64 - __builtin_clzll(range) : 0; }

/* Entries of 8 bytes in place of the keys, of 16 elsewhere. */
CLONES static void pack(uint64_t *k, uint64_t least, const uint32_t *low, int64_t n) {
  for (int64_t i = 0; i < n; i++) k[i] = (k[i] - least) << 32 | low[i];
}
CLONES static void pack_places(uint64_t *k, uint64_t least, int64_t begin, int64_t n) {
  for (int64_t i = 0; i < n; i++) k[i] = (k[i] - least) << 32 | (uint64_t)(begin + i);
}

static void make_entries(void *arg, int64_t begin, int64_t end) {
  const Row *w = arg;
  for (int64_t i = begin; i < end && w->wide; i++)
    ((Wide *)w->entries)[i] =
        (Wide){w->keys[i] - w->least, (uint64_t)(w->ordered ? w->perm[i] : i)};
  if (w->wide) return;
  if (w->ordered) pack(w->keys + begin, w->least, w->perm + begin, end - begin);
  else pack_places(w->keys + begin, w->least, begin, end - begin);
}

static void take_places(void *arg, int64_t begin, int64_t end) {
  const Row *w = arg;
  for (int64_t i = begin; i < end; i++)
    w->perm[i] =
        (uint32_t)(w->wide ? ((const Wide *)w->entries)[i].at : ((const uint64_t *)w->entries)[i]);
}

/* Is operand i the numbers of the places along the sorted dimension? */
static bool is_places(const Run *r, int i) {
  const Op *d = r->op->operands[i]->def;
  return d && d->kind == OP_IOTA && op_int(d, "iota_dimension", -1) == r->s->dim &&
         operand_bytes(r, i) >= 4 && dtype_is_int(r->op->operands[i]->type->dtype);
}

CLONES static void give_places(size_t bytes, const uint32_t *perm, int64_t n, void *out) {
  if (bytes == 4) memcpy(out, perm, (size_t)n * 4);
  else
    for (int64_t i = 0; i < n; i++) ((uint64_t *)out)[i] = perm[i];
}

static void move_elements(void *arg, int64_t begin, int64_t end) {
  const Row *w = arg;
  int64_t step = w->r->s->inner;
  for (int i = 0; i < w->r->op->n_operands; i++) {
    size_t bytes = operand_bytes(w->r, i);
    const char *in = w->r->in[i];
    char *out = w->r->out[i];
    if (step == 1 && is_places(w->r, i))
      give_places(bytes, w->perm + begin, end - begin, out + (size_t)(w->base + begin) * bytes);
    else
      scatter_element(bytes, in + (size_t)w->base * bytes,
                      out + (size_t)(w->base + begin * step) * bytes, end - begin, step,
                      w->perm + begin);
  }
}

/* The order by keys of a few bits: each key's first place, then one after another. */
static void place_few(const Row *w, int64_t n, int bits, uint32_t *at) {
  memset(at, 0, sizeof *at << bits);
  for (int64_t i = 0; i < n; i++) at[w->keys[i] - w->least]++;
  for (uint32_t d = 0, sum = 0; d < 1u << bits; d++) {
    uint32_t before = sum;
    sum += at[d];
    at[d] = before;
  }
  for (int64_t i = 0; i < n; i++) w->perm[at[w->keys[i] - w->least]++] = (uint32_t)i;
}

static void sort_row(const Run *r, int64_t row, char *space) {
  const Sort *s = r->s;
  int64_t n = s->n, step = s->inner;
  char *a = space, *b = a + entries_bytes(s);
  Row w = {.r = r,
           .base = row / step * n * step + row % step,
           .keys = (uint64_t *)(void *)a,
           .perm = (uint32_t *)(void *)(b + entries_bytes(s))};
  uint32_t(*at)[BUCKETS] = (uint32_t(*)[BUCKETS])(void *)(w.perm + n);
  for (w.last = s->n_keys; w.last > 0; w.last = w.first) {
    int bits = 0; /* as many keys at once as fit, the least important first */
    for (w.first = w.last; w.first > 0 && bits + s->keys[w.first - 1].bits <= 64;)
      bits += s->keys[--w.first].bits;
    cpu_parallel(n, CHUNK, make_keys, &w);
    find_range(&w, n);
    bits = bits_of(w.range);
    if (bits <= DIGIT && !w.ordered) {
      place_few(&w, n, bits, at[0]);
      w.ordered = true;
      continue;
    }
    w.wide = bits > 32;
    w.entries = w.wide ? b : a;
    cpu_parallel(n, CHUNK, make_entries, &w);
    w.entries = sort_entries(w.entries, w.wide ? a : b, n, bits, w.wide, at);
    cpu_parallel(n, CHUNK, take_places, &w);
    w.ordered = true;
  }
  cpu_parallel(n, CHUNK, move_elements, &w);
}

/* ---- one operand, entries with its bits ---- */

typedef struct Fill {
  Row w;
  const char *in;
  char *out;
  int64_t bytes;
} Fill;

static void fill(void *arg, int64_t begin, int64_t end) {
  const Fill *f = arg;
  int64_t step = f->w.r->s->inner;
  uint64_t *e = f->w.keys, least = f->w.least;
#define FILL(T)                                                                      \
  case sizeof(T): {                                                                  \
    const T *x = (const T *)(const void *)f->in;                                     \
    for (int64_t i = begin; i < end; i++) e[i] = (e[i] - least) << 32 | x[i * step]; \
    return;                                                                          \
  }
  switch (f->bytes) {
    FILL(uint8_t)
    FILL(uint16_t)
    FILL(uint32_t)
  }
#undef FILL
}

static void drain(void *arg, int64_t begin, int64_t end) {
  const Fill *f = arg;
  const uint64_t *e = f->w.entries;
  int64_t step = f->w.r->s->inner;
#define DRAIN(T)                                                 \
  case sizeof(T): {                                              \
    T *x = (T *)(void *)f->out;                                  \
    for (int64_t i = begin; i < end; i++) x[i * step] = (T)e[i]; \
    return;                                                      \
  }
  switch (f->bytes) {
    DRAIN(uint8_t)
    DRAIN(uint16_t)
    DRAIN(uint32_t)
  }
#undef DRAIN
}

/* Elements of a byte: how often each comes is all there is to know. */
static void sort_bytes(const Key *k, const uint8_t *in, uint8_t *out, int64_t n, int64_t step) {
  uint32_t counts[4][256] = {{0}};
  uint8_t element[256];
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int l = 0; l < 4; l++) counts[l][in[(i + l) * step]]++;
  for (; i < n; i++) counts[0][in[i * step]]++;
  for (int e = 0; e < 256; e++) {
    uint8_t x = (uint8_t)e;
    element[key_at(k, (const char *)&x)] = x;
  }
  i = 0;
  for (int key = 0; key < 256; key++) {
    uint8_t x = element[key];
    int64_t some = (int64_t)counts[0][x] + counts[1][x] + counts[2][x] + counts[3][x];
    if (step == 1) memset(out + i, x, (size_t)some);
    else
      for (int64_t j = i; j < i + some; j++) out[j * step] = x;
    i += some;
  }
}

static void sort_single(const Run *r, int64_t row, char *space) {
  const Sort *s = r->s;
  const Key *k = &s->keys[0];
  int64_t n = s->n, base = row / s->inner * n * s->inner + row % s->inner;
  uint64_t *a = (uint64_t *)(void *)space, *b = a + n;
  uint32_t(*at)[BUCKETS] = (uint32_t(*)[BUCKETS])(void *)(b + n);
  int64_t bytes = dtype_bytes(k->type);
  Fill f = {.w = {.r = r, .base = base, .last = 1, .keys = a},
            .in = (const char *)r->in[0] + base * bytes,
            .out = (char *)r->out[0] + base * bytes,
            .bytes = bytes};
  if (bytes == 1 && k->bits == 8 && n >= 64 &&
      !dtype_is_float(k->type)) { /* equal keys, equal bytes */
    sort_bytes(k, (const uint8_t *)f.in, (uint8_t *)f.out, n, s->inner);
    return;
  }
  cpu_parallel(n, CHUNK, make_keys, &f.w);
  find_range(&f.w, n);
  cpu_parallel(n, CHUNK, fill, &f);
  f.w.entries = sort_entries(a, b, n, bits_of(f.w.range), false, at);
  cpu_parallel(n, CHUNK, drain, &f);
}

/* ---- rows side by side ---- */

static bool lanes_suit(const Sort *s) {
  return s->n_keys == 1 && s->keys[0].bits <= 32 && s->keys[0].part == PART_ALL &&
         s->n <= LANES_LONGEST && s->rows >= SORT_LANES;
}

static int64_t row_base(const Sort *s, int64_t row) {
  return row / s->inner * s->n * s->inner + row % s->inner;
}

CLONES static void number_lanes(SortLanes *e, int64_t n) {
  for (int64_t i = 0; i < n; i++) e[i] = (SortLanes)((e[i] ^ 0x80000000) << 32) | i;
}

static void sort_groups(void *arg, int64_t begin, int64_t end) {
  const Run *r = arg;
  const Sort *s = r->s;
  const Key *k = &s->keys[0];
  int64_t n = s->n, step = s->inner;
  SortLanes *e = cpu_scratch((size_t)n * (sizeof *e + 4));
  uint32_t *perm = (uint32_t *)(void *)(e + n);
  for (int64_t g = begin; g < end; g++) {
    int64_t first = g * SORT_LANES, some = MIN(SORT_LANES, s->rows - first);
    for (int l = 0; l < some; l++)
      keys_apart(k,
                 (const char *)r->in[k->operand] +
                     (size_t)row_base(s, first + l) * operand_bytes(r, k->operand),
                 step, n, (uint64_t *)(void *)e + l, SORT_LANES);
    number_lanes(e, n);
    sort_lanes(e, n);
    for (int l = 0; l < some; l++) {
      Row w = {.r = r, .base = row_base(s, first + l), .perm = perm};
      for (int64_t i = 0; i < n; i++) perm[i] = (uint32_t)e[i][l];
      move_elements(&w, 0, n);
    }
  }
}

static void sort_rows(void *arg, int64_t begin, int64_t end) {
  const Run *r = arg;
  char *space = cpu_scratch(scratch_bytes(r->s));
  for (int64_t row = begin; row < end; row++) {
    if (r->bits_along) sort_single(r, row, space);
    else sort_row(r, row, space);
  }
}

static Err *prepare(const Op *op, void **state) {
  Sort *s = xcalloc(1, sizeof *s);
  bool ok = sort_recognise(op, s);
  if (!ok) {
    free(s);
    return op_err(op, ERR_INTERNAL, "the comparator is not what it was");
  }
  *state = s;
  return NULL;
}

static Err *run(void *state, const Op *op, void *const *in, void *const *out) {
  const Sort *s = state;
  if (s->rows == 0) return NULL;
  Run r = {.s = s, .op = op, .in = in, .out = out};
  r.bits_along =
      op->n_operands == 1 && s->n_keys == 1 && s->keys[0].part == PART_ALL && s->keys[0].bits <= 32;
  if (lanes_suit(s)) {
    int64_t groups = (s->rows + SORT_LANES - 1) / SORT_LANES;
    cpu_parallel(groups, MAX(1, 512 / s->n), sort_groups, &r);
    return NULL;
  }
  if (s->rows < 8 && s->n > CHUNK) { /* the passes run on the pool */
    size_t bytes = scratch_bytes(s);
    void *own = bytes > KEPT ? malloc(bytes) : NULL; /* memory touched before is twice as fast */
    if (bytes > KEPT && !own) return op_err(op, ERR_EXHAUSTED, "no memory for sorting");
    char *space = own ? own : cpu_scratch(bytes);
    for (int64_t row = 0; row < s->rows; row++) {
      if (r.bits_along) sort_single(&r, row, space);
      else sort_row(&r, row, space);
    }
    free(own);
    return NULL;
  }
  cpu_parallel(s->rows, MAX(1, 4096 / s->n), sort_rows, &r);
  return NULL;
}

static bool accepts(const Op *op) {
  Sort s;
  if (op->n_operands < 1 || op->operands[0]->type->kind != TY_TENSOR || !sort_recognise(op, &s))
    return false;
  for (int i = 0; i < s.n_keys; i++)
    if (!key_type_ok(s.keys[i].type)) return false;
  return true;
}

const CpuKernel cpu_kernels_sort[] = {
    {.name = "sort:keys",
     .kind = OP_SORT,
     .accepts = accepts,
     .prepare = prepare,
     .run = run,
     .release = free},
    {0},
};
