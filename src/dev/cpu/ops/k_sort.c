/* sort by keys.
 *
 * A comparator that compares elements of the operands, one pair or several in order of importance,
 * with or without JAX's detour that makes zeros equal and NaNs the largest, is turned into keys:
 * unsigned integers in the order wanted. A row is then sorted by (key, position): up to a few
 * hundred entries by merging, longer ones by a stable radix sort, whose passes run on the pool when
 * there are few rows. Comparators of another form go to the reference.
 *
 * Entries are 8 bytes (32-bit key, 32-bit position) or 16. A single operand of up to 32 bits
 * carries its bits in place of the position. Results do not depend on the number of threads: a
 * stable order is unique. */
#include "dev/cpu/ops/sorting.h"

typedef struct Run {
  const Sort *s;
  const Op *op;
  void *const *in;
  void *const *out;
  bool bits_along; /* entries carry the element, not its position */
} Run;

static size_t scratch_bytes(const Sort *s) {
  int64_t n = s->n;
  return (size_t)n * 2 * sizeof(Wide) + (size_t)n * 4 + sizeof(uint32_t) * BUCKETS * MAX_CHUNKS +
         256;
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
  void *entries;
  uint32_t *perm;
} Row;

static void make_entries(void *arg, int64_t begin, int64_t end) {
  const Row *w = arg;
  const Run *r = w->r;
  const Sort *s = r->s;
  for (int64_t i = begin; i < end; i++) {
    int64_t from = w->ordered ? w->perm[i] : i;
    uint64_t key = 0;
    for (int k = w->first; k < w->last; k++) {
      const Key *q = &s->keys[k];
      size_t bytes = (size_t)dtype_bytes(r->op->operands[q->operand]->type->dtype);
      const char *in = r->in[q->operand];
      key = (q->bits == 64 ? 0 : key << q->bits) |
            key_at(q, in + (size_t)(w->base + from * s->inner) * bytes);
    }
    if (w->wide) ((Wide *)w->entries)[i] = (Wide){key, (uint64_t)from};
    else ((uint64_t *)w->entries)[i] = key << 32 | (uint64_t)from;
  }
}

static void take_places(void *arg, int64_t begin, int64_t end) {
  const Row *w = arg;
  for (int64_t i = begin; i < end; i++)
    w->perm[i] =
        (uint32_t)(w->wide ? ((const Wide *)w->entries)[i].at : ((const uint64_t *)w->entries)[i]);
}

static void move_elements(void *arg, int64_t begin, int64_t end) {
  const Row *w = arg;
  int64_t step = w->r->s->inner;
  for (int i = 0; i < w->r->op->n_operands; i++) {
    size_t bytes = (size_t)dtype_bytes(w->r->op->operands[i]->type->dtype);
    const char *in = w->r->in[i];
    char *out = w->r->out[i];
    scatter_element(bytes, in + (size_t)w->base * bytes,
                    out + (size_t)(w->base + begin * step) * bytes, end - begin, step,
                    w->perm + begin);
  }
}

static void sort_row(const Run *r, int64_t row, char *space) {
  const Sort *s = r->s;
  int64_t n = s->n, step = s->inner;
  Wide *a = (Wide *)(void *)space, *b = a + n;
  Row w = {.r = r, .base = row / step * n * step + row % step, .perm = (uint32_t *)(void *)(b + n)};
  uint32_t(*at)[BUCKETS] = (uint32_t(*)[BUCKETS])(void *)(w.perm + n);
  for (w.last = s->n_keys; w.last > 0; w.last = w.first) {
    int bits = 0; /* as many keys at once as fit, the least important first */
    for (w.first = w.last; w.first > 0 && bits + s->keys[w.first - 1].bits <= 64;)
      bits += s->keys[--w.first].bits;
    w.wide = bits > 32;
    w.entries = a;
    cpu_parallel(n, 65536, make_entries, &w);
    w.entries = sort_entries(a, b, n, bits, w.wide, at);
    cpu_parallel(n, 65536, take_places, &w);
    w.ordered = true;
  }
  cpu_parallel(n, 65536, move_elements, &w);
}

typedef struct Fill { /* one row of a single operand, entries with bits */
  const Key *k;
  const char *in;
  char *out;
  uint64_t *e;
  int64_t step, bytes;
} Fill;

static void fill(void *arg, int64_t begin, int64_t end) {
  const Fill *f = arg;
  if (f->k->type == DT_F32) {
    const uint32_t *in = (const uint32_t *)(const void *)f->in;
    bool zeros = f->k->zeros, nans = f->k->nans;
    uint64_t flip = f->k->down ? 0xffffffff : 0;
    for (int64_t i = begin; i < end; i++) {
      uint32_t u = in[i * f->step];
      f->e[i] = (float_key(u, 32, zeros, nans, 0x7f800000) ^ flip) << 32 | u;
    }
    return;
  }
  for (int64_t i = begin; i < end; i++) {
    const char *p = f->in + i * f->step * f->bytes;
    uint32_t u = 0;
    memcpy(&u, p, (size_t)f->bytes);
    f->e[i] = key_at(f->k, p) << 32 | u;
  }
}

static void drain(void *arg, int64_t begin, int64_t end) {
  const Fill *f = arg;
  for (int64_t i = begin; i < end; i++) {
    uint32_t u = (uint32_t)f->e[i];
    memcpy(f->out + i * f->step * f->bytes, &u, (size_t)f->bytes);
  }
}

/* Elements of a byte: how often each key comes is all there is to know. */
static void sort_bytes(const Fill *f, int64_t n) {
  int64_t counts[256] = {0};
  char element[256];
  for (int64_t i = 0; i < n; i++) {
    const char *p = f->in + i * f->step;
    uint64_t key = key_at(f->k, p);
    counts[key]++;
    element[key] = *p;
  }
  for (int64_t key = 0, i = 0; key < 256; key++)
    for (int64_t last = i + counts[key]; i < last; i++) f->out[i * f->step] = element[key];
}

static void sort_single(const Run *r, int64_t row, char *space) {
  const Sort *s = r->s;
  int64_t n = s->n, base = row / s->inner * n * s->inner + row % s->inner;
  uint64_t *a = (uint64_t *)(void *)space, *b = a + n;
  uint32_t(*at)[BUCKETS] = (uint32_t(*)[BUCKETS])(void *)(b + n);
  int64_t bytes = dtype_bytes(s->keys[0].type);
  Fill f = {&s->keys[0],
            (const char *)r->in[0] + base * bytes,
            (char *)r->out[0] + base * bytes,
            a,
            s->inner,
            bytes};
  if (bytes == 1 && n >= 64) {
    sort_bytes(&f, n);
    return;
  }
  cpu_parallel(n, 65536, fill, &f);
  f.e = sort_entries(a, b, n, s->keys[0].bits, false, at);
  cpu_parallel(n, 65536, drain, &f);
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
  if (s->rows < 8 && s->n > 65536) { /* the passes run on the pool */
    char *space = aligned_alloc(64, (scratch_bytes(s) + 63) & ~(size_t)63);
    if (!space) return op_err(op, ERR_EXHAUSTED, "no memory for sorting");
    for (int64_t row = 0; row < s->rows; row++) {
      if (r.bits_along) sort_single(&r, row, space);
      else sort_row(&r, row, space);
    }
    free(space);
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
