/* Products of few rows with a matrix (a decoder's next token, small batches, sums of products): as
 * fast as the matrix can be read once, so it is not packed; gemm_few.h has the inner loops. Which
 * operand is the matrix, whether its runs are along the columns or along k, is known ahead.
 *
 * Tasks are pieces of the matrix: runs of columns, and parts of k where columns are too few to cut.
 * Sums of k are made in blocks, added up in order; those of parts in f64. */
#include "dev/cpu/dot/dot.h"

#include "dev/cpu/kernel/mem.h"

#define ALONG 24      /* rows at most, for a matrix with runs along its columns: */
#define ALONG_BIG 6   /* where packed columns are multiplied much faster; */
#define ALONG_PAIRS 4 /* of bf16 that others multiply in pairs, where k is no shorter than */
#define LEAST_PAIRS 64
#define DOTS 12       /* along k; from so many on packing pays; */
#define DOTS_PAIRS 24 /* in pairs, and k no shorter than */
#define LEAST_DOTS 256
#define DOTS_TILES 4   /* of bf16 where the host has AMX, */
#define ALONG_TILES 12 /* and it would have to turn the matrix */
#define KEPT 5 /* rows at least, for a matrix packed in a loop: sums that hide each other's delay */
#define RATIO 4     /* and the matrix must have so many times more */
#define COLUMNS 512 /* rows of sums so long stay in the first cache, */
#define LONG 2048   /* or these of LONG_FEW; of a single one four times more */
#define LONG_FEW 3
#define BLOCK 512      /* of k */
#define TASK 131072    /* elements of the matrix, wanted of a task */
#define LEAST_PART 128 /* or putting the parts together costs as much */
#define MAX_PARTS 64   /* and of single sums so many times more */
/* Between rows of sums: powers of two would share cache lines; and a row's last vector is written
 * whole. */
#define AHEAD 16
#define TURNED 128 /* columns of sums that become rows of results at a time */

static int type_index(DType t) { return t == DT_F32 ? 0 : t == DT_BF16 ? 1 : 2; }
static int64_t parts_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

/* Two elements of the matrix at a time, as they lie in memory: a run of an even length along k. */
static bool in_pairs(const Dot *d) {
  const GemmKernels *kern = gemm_pairs();
  const int64_t *batch = d->few.lhs ? d->rhs_batch : d->lhs_batch;
  if (!kern || d->in != DT_BF16 || !d->few.dots || d->k < 2 * kern->lanes) return false;
  int64_t odd = d->k | (d->few.lhs ? d->rhs.free_stride : d->lhs.free_stride);
  for (int i = 0; i < d->n_batch; i++) odd |= batch[i];
  return odd % 2 == 0;
}

static int64_t most_rows(const Dot *d) {
  bool tiles = d->in == DT_BF16 && amx_bf16();
  if (tiles && (d->few.dots || !d->few.lhs)) return d->few.dots ? DOTS_TILES : ALONG_TILES;
  if (d->few.dots) return d->few.pairs && d->k >= LEAST_DOTS ? DOTS_PAIRS : DOTS;
  bool others = d->in == DT_BF16 && gemm_pairs() && d->few.lhs && d->k >= LEAST_PAIRS;
  return others ? ALONG_PAIRS : cpu_big_core() && d->few.lhs ? ALONG_BIG : ALONG;
}

bool dot_few_plan(Dot *d) {
  Few *f = &d->few;
  const GemmKernels *kern = gemm_kernels();
  if (!kern || d->b * d->m * d->n * d->k == 0) return false;
  if (d->lhs.k_stride != 1 && d->n >= kern->lanes && dot_long_plan(d))
    return false; /* fills vectors, and need not pack the few */
  f->lhs = d->m <= d->n;
  const Side *side = f->lhs ? &d->rhs : &d->lhs, *other = f->lhs ? &d->lhs : &d->rhs;
  f->few = MIN(d->m, d->n);
  f->big = MAX(d->m, d->n);
  f->dots = side->k_stride == 1;
  if (!side->direct || !other->direct || (!f->dots && side->free_stride != 1)) return false;
  f->pairs = in_pairs(d);
  if (f->few > most_rows(d) || (f->few > 1 && f->big < RATIO * f->few)) return false;
  if ((f->few > 1 || f->dots) && d->k < (f->few > 1 ? 2 : 1) * kern->lanes) return false;
  f->packed = d->in != DT_F32 || other->k_stride != 1;
  f->far = d->crowded || d->b * f->big * d->k * dtype_bytes(d->in) > cpu_second_cache();
  /* Along k a task takes whole rows of the matrix, across it runs as long as there are sums for. */
  int64_t whole = f->few == 1 ? 4 * LONG : f->few <= LONG_FEW ? LONG : COLUMNS;
  if (f->dots) whole = MIN(whole, parts_of(MAX(1, TASK / d->k), 4) * 4);
  f->columns = MIN(whole, f->big);
  f->pieces = parts_of(f->big, f->columns);
  int64_t want = MIN(f->columns * d->k / TASK, d->k / LEAST_PART);
  if (d->b > 8 || f->pieces > 8 || want < 2) want = 1;
  f->part =
      parts_of(parts_of(d->k, MIN(want, f->columns > 8 ? MAX_PARTS : MAX_PARTS * MAX_PARTS)), 64) *
      64;
  f->parts = parts_of(d->k, f->part);
  return true;
}

double dot_few_cost(const Dot *d) {
  const Few *f = &d->few;
  const GemmKernels *kern = gemm_kernels();
  double few = (double)f->few, big = (double)f->big, k = (double)d->k, lanes = (double)kern->lanes,
         groups = (double)parts_of(f->few, kern->few),
         both = (f->packed ? 0.5 * few * k : 0) + (f->lhs ? 0 : 0.3 * few * big);
  if (f->dots) /* sums of each vector of four; steps along k */
    return both + 0.25 * big * (3 * groups + few * (0.15 * lanes + 0.08 * (k + lanes / 2)));
  return both + 0.25 * k * (6 * groups + 0.08 * few * (big + lanes / 2));
}

typedef struct Call {
  const Dot *d;
  const char *few, *big;
  char *out;
  float *packed, *sums; /* sums: of parts [b][part][few][big] */
} Call;

static void copy_halves(const char *from, int64_t step, int64_t n, void *to) {
  if (step == 1) memcpy(to, from, (size_t)(2 * n));
  else
    for (int64_t i = 0; i < n; i++) memcpy((char *)to + 2 * i, from + 2 * i * step, 2);
}

static int64_t row_floats(const Dot *d) { return d->few.pairs ? d->k / 2 : d->k; } /* packed */

static void pack(void *arg, int64_t begin, int64_t end) { /* rows of all products' few sides */
  const Call *c = arg;
  const Dot *d = c->d;
  const Side *s = d->few.lhs ? &d->lhs : &d->rhs;
  int64_t e = dtype_bytes(d->in), row = row_floats(d);
  for (int64_t r = begin; r < end; r++) {
    int64_t lo, ro;
    dot_batch_at(d, r / d->few.few, &lo, &ro);
    const char *from = c->few + ((d->few.lhs ? lo : ro) + r % d->few.few * s->free_stride) * e;
    float *to = c->packed + r * row;
    if (d->few.pairs) copy_halves(from, s->k_stride, d->k, to);
    else if (s->k_stride != 1) gemm_pack(d->in, from, 0, s->k_stride, 1, 1, d->k, 1, 0, to);
    else if (d->in == DT_F32) memcpy(to, from, sizeof *to * (size_t)d->k);
    else cpu_to_f32(d->in, from, to, d->k);
  }
}

/* Rows of few, columns [j0, j0 + n) of the matrix, [p0, p1) of k. */
static void piece(const Call *c, int64_t b, int64_t j0, int64_t n, int64_t p0, int64_t p1,
                  float *sums, float *block) {
  const Dot *d = c->d;
  const Few *f = &d->few;
  const Side *few = f->lhs ? &d->lhs : &d->rhs, *big = f->lhs ? &d->rhs : &d->lhs;
  int64_t lo, ro, e = dtype_bytes(d->in), ld = f->columns + AHEAD, t = type_index(d->in);
  dot_batch_at(d, b, &lo, &ro);
  int64_t a_ld = f->packed ? row_floats(d) : few->free_stride, per = f->pairs ? 2 : 1;
  const float *a =
      f->packed ? c->packed + b * f->few * a_ld : (const float *)c->few + (f->lhs ? lo : ro);
  const char *m = c->big + ((f->lhs ? ro : lo) + j0 * big->free_stride) * e;
  const GemmKernels *kern = gemm_kernels();
  GemmFewFn dots = f->pairs ? gemm_pairs()->dots[0] : kern->dots[t];
  int64_t whole = MIN(n + AHEAD, ld); /* with what is added up beyond the end and not used */
  for (int64_t i = 0; i < f->few; i++) memset(sums + i * ld, 0, sizeof *sums * (size_t)whole);
  int64_t run = f->few <= LONG_FEW ? LONG : BLOCK, four = p1 - p0 <= run ? n : 4;
  for (int64_t j = 0; f->dots && j < n; j += four) /* rows of the matrix from end to end */
    for (int64_t p = p0; p < p1; p += run)
      dots(f->few, a + p / per, a_ld, m + (j * big->free_stride + p) * e, big->free_stride / per,
           MIN(four, n - j), MIN(run, p1 - p) / per, sums + j, ld, f->far);
  for (int64_t p = p0; !f->dots && p < p1; p += BLOCK) {
    float *to = p == p0 ? sums : block;
    for (int64_t i = 0; p > p0 && i < f->few; i++)
      memset(to + i * ld, 0, sizeof *to * (size_t)whole);
    kern->along[t](f->few, a + p, a_ld, m + p * big->k_stride * e, big->k_stride, n,
                   MIN(BLOCK, p1 - p), to, ld, f->far);
    for (int64_t i = 0; p > p0 && i < f->few; i++)
      for (int64_t j = 0; j < n; j++) sums[i * ld + j] += block[i * ld + j];
  }
}

/* The matrix's columns are the result's, or its rows. */
static void store(const Dot *d, char *out, int64_t j0, int64_t n, const float *sums, int64_t ld) {
  int64_t e = dtype_bytes(d->out), few = d->few.few;
  if (d->few.lhs || few == 1) {
    for (int64_t i = 0; i < few; i++, sums += ld) {
      char *to = out + (i * d->n + j0) * e;
      if (d->out == DT_F32) memcpy(to, sums, sizeof *sums * (size_t)n);
      else cpu_from_f32(d->out, sums, to, n);
    }
    return;
  }
  out += j0 * few * e;
  if (d->out == DT_F32) {
    gemm_pack(DT_F32, sums, ld, 1, (int)few, (int)few, n, 1, 0, (float *)(void *)out);
    return;
  }
  float turned[ALONG * TURNED];
  for (int64_t j = 0; j < n; j += TURNED) {
    int64_t columns = MIN(TURNED, n - j);
    gemm_pack(DT_F32, sums + j, ld, 1, (int)few, (int)few, columns, 1, 0, turned);
    cpu_from_f32(d->out, turned, out + j * few * e, columns * few);
  }
}

static void tasks(void *arg, int64_t begin, int64_t end) {
  const Call *c = arg;
  const Dot *d = c->d;
  const Few *f = &d->few;
  int64_t ld = f->columns + AHEAD, each = f->parts * f->pieces;
  float *sums = cpu_scratch(sizeof *sums * (size_t)(2 * f->few * ld));
  for (int64_t t = begin; t < end; t++) {
    int64_t b = t / each, part = t % each / f->pieces, j0 = t % f->pieces * f->columns;
    int64_t n = MIN(f->columns, f->big - j0), p0 = part * f->part;
    piece(c, b, j0, n, p0, MIN(p0 + f->part, d->k), sums, sums + f->few * ld);
    if (f->parts == 1) {
      store(d, c->out + b * d->m * d->n * dtype_bytes(d->out), j0, n, sums, ld);
      continue;
    }
    for (int64_t i = 0; i < f->few; i++)
      memcpy(c->sums + ((b * f->parts + part) * f->few + i) * f->big + j0, sums + i * ld,
             sizeof *sums * (size_t)n);
  }
}

/* The parts of k together, columns of one product. */
static void join(void *arg, int64_t begin, int64_t end) {
  const Call *c = arg;
  const Dot *d = c->d;
  const Few *f = &d->few;
  int64_t n = f->few * f->big, ld = f->columns + AHEAD;
  float *sums = cpu_scratch(sizeof *sums * (size_t)(f->few * ld));
  for (int64_t t = begin; t < end; t++) {
    int64_t b = t / f->pieces, j0 = t % f->pieces * f->columns, m = MIN(f->columns, f->big - j0);
    for (int64_t i = 0; i < f->few; i++)
      for (int64_t j = 0; j < m; j++) {
        const float *from = c->sums + b * f->parts * n + i * f->big + j0 + j;
        double sum = 0;
        for (int64_t p = 0; p < f->parts; p++) sum += from[p * n];
        sums[i * ld + j] = (float)sum;
      }
    store(d, c->out + b * n * dtype_bytes(d->out), j0, m, sums, ld);
  }
}

Err *dot_few_run(void *state, const Op *op, void *const *in, void *const *out) {
  const Dot *d = state;
  const Few *f = &d->few;
  Call c = {.d = d, .few = in[f->lhs ? 0 : 1], .big = in[f->lhs ? 1 : 0], .out = out[0]};
  size_t packed = f->packed ? sizeof(float) * (size_t)(d->b * f->few * row_floats(d)) : 0,
         sums = f->parts > 1 ? sizeof(float) * (size_t)(d->b * f->parts * f->few * f->big) : 0;
  char *own = NULL;
  if (packed + sums && !(own = cpu_block_alloc(packed + sums)))
    return op_err(op, ERR_EXHAUSTED, "no memory for the smaller operand");
  c.packed = (float *)own;
  c.sums = (float *)(own + packed);
  if (packed) cpu_parallel(d->b * f->few, MAX(1, TASK / d->k), pack, &c);
  int64_t task = f->columns * f->part;
  cpu_parallel(d->b * f->parts * f->pieces, MAX(1, TASK / task), tasks, &c);
  if (f->parts > 1) cpu_parallel(d->b * f->pieces, 4, join, &c);
  cpu_block_free(own, packed + sums);
  return NULL;
}

/* A matrix that stays the same is packed once a loop, and multiplied as any other, where there are
 * rows enough for that to be worth it. */
static unsigned matrix(const Dot *d) { return d->few.lhs ? 2 : 1; }

size_t dot_few_prepack_bytes(void *state, unsigned fixed) {
  const Dot *d = state;
  int64_t least = d->gemm.per > 1 ? 2 : KEPT; /* several elements at a time: twice as fast */
  return d->few.few >= least && fixed & matrix(d) ? dot_gemm_prepack_bytes(state, matrix(d)) : 0;
}

Err *dot_few_run_prepacked(void *state, const Op *op, void *const *in, void *const *out,
                           unsigned fixed, void *prepacked, bool fresh) {
  (void)fixed;
  return dot_gemm_run_prepacked(state, op, in, out, matrix(state), prepacked, fresh);
}
