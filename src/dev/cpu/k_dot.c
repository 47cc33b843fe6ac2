/* dot_general: batches of out[m, n] = sum_k lhs[m, k] rhs[k, n] with any strides.
 *
 * f32, bf16 and f16 by our own kernels (gemm.h) where the host has AVX2; f64 and complex, and
 * products with a vector, by BLAS, one thread a call: the pool divides batches and large products
 * into tiles, by size only. What cannot be addressed (by gemm: dimensions that do not flatten; by
 * BLAS: neither the rows nor the columns of an operand are runs) is gathered first. On hosts
 * without AVX2 bf16 and f16 are widened for BLAS and rounded once. Integers by loops. */
#include <cblas.h>
#include <pthread.h>

#include "dev/cpu/cpu_priv.h"
#include "dev/cpu/gemm.h"

#define TILE_FLOPS 1e8 /* a tile of a large product: half a millisecond */
#define MAX_TILES 64
#define TILE_BYTES 1e6 /* of the matrix in a product with few vectors */
#define MIN_SIDE 128
#define FEW 3           /* so many vectors times a matrix are as fast as memory without packing */
#define GRAIN_FLOPS 5e5 /* of small products, for one task */

typedef struct Side {            /* of one operand: [batch][free][contracted] */
  int64_t free_stride, k_stride; /* when `direct` */
  bool direct;
  int64_t dims[CPU_MAX_RANK], strides[CPU_MAX_RANK]; /* for gathering: batch, free, contracted */
  int rank;
} Side;

typedef struct Dot {
  DType in, out, math;
  int n_batch;
  int64_t batch_dims[CPU_MAX_RANK], lhs_batch[CPU_MAX_RANK], rhs_batch[CPU_MAX_RANK];
  int64_t b, m, n, k;
  Side lhs, rhs;
  int64_t tiles, tiles_m, tiles_n, tile_m, tile_n;
  Gemm gemm, kept[2]; /* kept: with the lhs, the rhs packed ahead */
} Dot;

static bool in_list(const int64_t *v, int n, int64_t x) {
  for (int i = 0; i < n; i++)
    if (v[i] == x) return true;
  return false;
}

/* The dimensions as one run of a common stride; 1 for a single element. */
static bool flatten(const Type *t, const int64_t *strides, const int64_t *dims, int n,
                    int64_t *count, int64_t *stride) {
  *count = 1;
  *stride = 0;
  bool ok = true;
  for (int i = n - 1; i >= 0; i--) {
    int64_t d = t->dims[dims[i]];
    if (d == 1) continue;
    if (*stride == 0) *stride = strides[dims[i]];
    else if (strides[dims[i]] != *stride * *count) ok = false;
    *count *= d;
  }
  return ok;
}

static void plan_side(Side *s, const Type *t, const int64_t *batch, int nb, const int64_t *contract,
                      int nc, bool any_stride, int64_t *free_count, int64_t *k_count) {
  int64_t strides[CPU_MAX_RANK], free_dims[CPU_MAX_RANK];
  int nf = 0;
  cpu_strides(t, strides);
  for (int i = 0; i < t->rank; i++)
    if (!in_list(batch, nb, i) && !in_list(contract, nc, i)) free_dims[nf++] = i;
  bool a = flatten(t, strides, free_dims, nf, free_count, &s->free_stride);
  bool b = flatten(t, strides, contract, nc, k_count, &s->k_stride);
  s->direct =
      a && b &&
      (any_stride || s->free_stride == 1 || s->k_stride == 1 || *free_count == 1 || *k_count == 1);
  s->rank = 0;
  for (int i = 0; i < nb; i++)
    s->dims[s->rank] = t->dims[batch[i]], s->strides[s->rank++] = strides[batch[i]];
  for (int i = 0; i < nf; i++)
    s->dims[s->rank] = t->dims[free_dims[i]], s->strides[s->rank++] = strides[free_dims[i]];
  for (int i = 0; i < nc; i++)
    s->dims[s->rank] = t->dims[contract[i]], s->strides[s->rank++] = strides[contract[i]];
}

static void once_off(void) { openblas_set_num_threads(1); }

/* Length of a tile when n is cut into *tiles, in whole vectors; *tiles becomes what that needs. */
static int64_t tile_size(int64_t n, int64_t *tiles) {
  int64_t t = MAX(1, (n + *tiles - 1) / *tiles);
  if (*tiles > 1) t = (t + 15) / 16 * 16;
  *tiles = MAX(1, (n + t - 1) / t);
  return t;
}

static Dot *plan_dot(const Op *op, bool any_stride) {
  Dot *d = xcalloc(1, sizeof *d);
  const Type *l = op->operands[0]->type, *r = op->operands[1]->type;
  const int64_t *lb, *rb, *lc, *rc;
  int nb = op_ints(op, "lhs_batching_dimensions", &lb),
      nc = op_ints(op, "lhs_contracting_dimensions", &lc);
  op_ints(op, "rhs_batching_dimensions", &rb);
  op_ints(op, "rhs_contracting_dimensions", &rc);
  /* Contracted dimensions in the order of the lhs's memory where possible: both sides list them in
   * the same order. */
  int64_t lk[CPU_MAX_RANK], rk[CPU_MAX_RANK];
  for (int i = 0; i < nc; i++) {
    int j = i;
    for (; j > 0 && lk[j - 1] > lc[i]; j--) lk[j] = lk[j - 1], rk[j] = rk[j - 1];
    lk[j] = lc[i];
    rk[j] = rc[i];
  }
  int64_t k2;
  plan_side(&d->lhs, l, lb, nb, lk, nc, any_stride, &d->m, &d->k);
  plan_side(&d->rhs, r, rb, nb, rk, nc, any_stride, &d->n, &k2);
  int64_t ls[CPU_MAX_RANK], rs[CPU_MAX_RANK];
  cpu_strides(l, ls);
  cpu_strides(r, rs);
  d->n_batch = nb;
  d->b = 1;
  int64_t lpack = d->m * d->k, rpack = d->n * d->k;
  for (int i = nb - 1; i >= 0; i--) {
    d->batch_dims[i] = l->dims[lb[i]];
    d->lhs_batch[i] = d->lhs.direct ? ls[lb[i]] : lpack;
    d->rhs_batch[i] = d->rhs.direct ? rs[rb[i]] : rpack;
    lpack *= d->batch_dims[i];
    rpack *= d->batch_dims[i];
    d->b *= d->batch_dims[i];
  }
  if (!d->lhs.direct) d->lhs.free_stride = d->k, d->lhs.k_stride = 1;
  if (!d->rhs.direct) d->rhs.free_stride = d->k, d->rhs.k_stride = 1;
  d->in = l->dtype;
  d->out = op_type(op)->dtype;
  d->math = d->in == DT_BF16 || d->in == DT_F16 ? DT_F32 : d->in;
  return d;
}

static Err *prepare(const Op *op, void **state) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, once_off);
  Dot *d = plan_dot(op, false);
  double want = 2.0 * (double)d->m * (double)d->n * (double)d->k / TILE_FLOPS;
  if (d->m <= FEW || d->n <= FEW)
    want = (double)(MAX(d->m, d->n) * d->k) * (double)dtype_bytes(d->math) / TILE_BYTES;
  d->tiles_m = d->tiles_n = 1;
  while (d->tiles_m * d->tiles_n < MIN(want, MAX_TILES)) { /* halve the longer side of a tile */
    int64_t m = d->m / d->tiles_m, n = d->n / d->tiles_n;
    if (MAX(m, n) < 2 * MIN_SIDE) break;
    *(m >= n ? &d->tiles_m : &d->tiles_n) *= 2;
  }
  d->tile_m = tile_size(d->m, &d->tiles_m);
  d->tile_n = tile_size(d->n, &d->tiles_n);
  d->tiles = d->tiles_m * d->tiles_n;
  *state = d;
  return NULL;
}

static void release(void *state) { free(state); }

static Err *prepare_gemm(const Op *op, void **state) {
  Dot *d = plan_dot(op, true);
  if (d->b * d->m * d->n * d->k > 0) {
    gemm_plan(&d->gemm, d->m, d->n, d->k, d->in, d->out, d->b, GEMM_SMALLER);
    gemm_plan(&d->kept[0], d->m, d->n, d->k, d->in, d->out, d->b, GEMM_A);
    gemm_plan(&d->kept[1], d->m, d->n, d->k, d->in, d->out, d->b, GEMM_B);
  }
  *state = d;
  return NULL;
}

/* ---- one product ---- */

typedef struct Call {
  const Dot *d;
  const char *lhs, *rhs;
  char *out;
} Call;

/* Transposition flag and leading dimension of a [rows, cols] view with two strides, one of which is
 * 1 (or has one element). */
static CBLAS_TRANSPOSE blas_view(int64_t rows, int64_t cols, int64_t rs, int64_t cs, blasint *ld) {
  if (cs == 1 || cols == 1) {
    *ld = (blasint)MAX(rs, MAX(cols, 1));
    if (rows > 1 || cs == 1) return CblasNoTrans;
  }
  *ld = (blasint)MAX(cs, MAX(rows, 1));
  return CblasTrans;
}

static void product(const Dot *d, const char *lhs, const char *rhs, char *out, int64_t m0,
                    int64_t m, int64_t n0, int64_t n) {
  int64_t e = dtype_bytes(d->math);
  lhs += m0 * d->lhs.free_stride * e;
  rhs += n0 * d->rhs.free_stride * e;
  out += (m0 * d->n + n0) * e;
  blasint lda, ldb, ldc = (blasint)MAX(d->n, 1);
  CBLAS_TRANSPOSE ta = blas_view(m, d->k, d->lhs.free_stride, d->lhs.k_stride, &lda);
  CBLAS_TRANSPOSE tb = blas_view(d->k, n, d->rhs.k_stride, d->rhs.free_stride, &ldb);
  blasint M = (blasint)m, N = (blasint)n, K = (blasint)d->k;
  static const float one_c[2] = {1, 0}, zero_c[2] = {0, 0};
  static const double one_z[2] = {1, 0}, zero_z[2] = {0, 0};
  switch (d->math) {
  case DT_F32:
    if (d->m <= FEW) { /* row by row: the rhs is read where it is */
      bool straight = tb == CblasNoTrans;
      for (int64_t i = 0; i < m; i++)
        cblas_sgemv(CblasRowMajor, straight ? CblasTrans : CblasNoTrans, straight ? K : N,
                    straight ? N : K, 1, (const float *)rhs, ldb,
                    (const float *)lhs + i * d->lhs.free_stride, (blasint)MAX(d->lhs.k_stride, 1),
                    0, (float *)out + i * d->n, 1);
    } else if (d->n <= FEW) { /* column by column */
      bool straight = ta == CblasNoTrans;
      for (int64_t j = 0; j < n; j++)
        cblas_sgemv(CblasRowMajor, ta, straight ? M : K, straight ? K : M, 1, (const float *)lhs,
                    lda, (const float *)rhs + j * d->rhs.free_stride,
                    (blasint)MAX(d->rhs.k_stride, 1), 0, (float *)out + j, ldc);
    } else {
      cblas_sgemm(CblasRowMajor, ta, tb, M, N, K, 1, (const float *)lhs, lda, (const float *)rhs,
                  ldb, 0, (float *)out, ldc);
    }
    break;
  case DT_F64:
    cblas_dgemm(CblasRowMajor, ta, tb, M, N, K, 1, (const double *)lhs, lda, (const double *)rhs,
                ldb, 0, (double *)out, ldc);
    break;
  case DT_C64:
    cblas_cgemm(CblasRowMajor, ta, tb, M, N, K, one_c, lhs, lda, rhs, ldb, zero_c, out, ldc);
    break;
  default:
    cblas_zgemm(CblasRowMajor, ta, tb, M, N, K, one_z, lhs, lda, rhs, ldb, zero_z, out, ldc);
    break;
  }
}

/* Elements of the operands before those of product b. */
static void batch_at(const Dot *d, int64_t b, int64_t *lhs, int64_t *rhs) {
  *lhs = *rhs = 0;
  for (int i = d->n_batch - 1; i >= 0; i--) {
    int64_t at = b % d->batch_dims[i];
    b /= d->batch_dims[i];
    *lhs += at * d->lhs_batch[i];
    *rhs += at * d->rhs_batch[i];
  }
}

static void tasks(void *arg, int64_t begin, int64_t end) {
  const Call *c = arg;
  const Dot *d = c->d;
  int64_t e = dtype_bytes(d->math);
  for (int64_t t = begin; t < end; t++) {
    int64_t b = t / d->tiles, tile = t % d->tiles, lo, ro;
    batch_at(d, b, &lo, &ro);
    int64_t m0 = tile / d->tiles_n * d->tile_m, n0 = tile % d->tiles_n * d->tile_n;
    product(d, c->lhs + lo * e, c->rhs + ro * e, c->out + b * d->m * d->n * e, m0,
            MIN(d->tile_m, d->m - m0), n0, MIN(d->tile_n, d->n - n0));
  }
}

typedef struct Widen {
  DType t;
  const char *in;
  float *out;
} Widen;

static void widen(void *arg, int64_t begin, int64_t end) {
  const Widen *w = arg;
  cpu_to_f32(w->t, w->in + begin * 2, w->out + begin, end - begin);
}

static void narrow(void *arg, int64_t begin, int64_t end) {
  const Widen *w = arg;
  cpu_from_f32(w->t, w->out + begin, (char *)w->in + begin * 2, end - begin);
}

static Err *run_blas(void *state, const Op *op, void *const *in, void *const *out) {
  const Dot *d = state;
  int64_t total = d->b * d->m * d->n;
  if (total == 0) return NULL;
  if (d->k == 0) {
    memset(out[0], 0, (size_t)type_bytes(op_type(op)));
    return NULL;
  }
  Call c = {d, in[0], in[1], out[0]};
  void *own[5] = {NULL};
  size_t e = (size_t)dtype_bytes(d->in);
  for (int i = 0; i < 2; i++) {
    const Side *s = i ? &d->rhs : &d->lhs;
    const char **p = i ? &c.rhs : &c.lhs;
    int64_t n = type_count(op->operands[i]->type);
    if (!s->direct) {
      own[2 * i] = aligned_alloc(64, ((size_t)n * e + 127) & ~(size_t)63);
      if (!own[2 * i]) goto memory;
      cpu_permute(e, s->rank, s->dims, s->strides, *p, own[2 * i]);
      *p = own[2 * i];
    }
    if (d->math != d->in) {
      own[2 * i + 1] = aligned_alloc(64, ((size_t)n * 4 + 127) & ~(size_t)63);
      if (!own[2 * i + 1]) goto memory;
      Widen w = {d->in, *p, own[2 * i + 1]};
      cpu_parallel(n, 65536, widen, &w);
      *p = own[2 * i + 1];
    }
  }
  if (d->out != d->math) {
    own[4] = aligned_alloc(64, ((size_t)total * 4 + 127) & ~(size_t)63);
    if (!own[4]) goto memory;
    c.out = own[4];
  }
  double flops = 2.0 * (double)d->m * (double)d->n * (double)d->k;
  int64_t grain = MAX(1, (int64_t)(5e5 / (flops / (double)d->tiles + 1)));
  if (flops * (double)d->b < 2e5) grain = d->b * d->tiles;
  cpu_parallel(d->b * d->tiles, grain, tasks, &c);
  if (d->out != d->math) {
    Widen w = {d->out, out[0], own[4]};
    cpu_parallel(total, 65536, narrow, &w);
  }
  for (int i = 0; i < 5; i++) free(own[i]);
  return NULL;
memory:
  for (int i = 0; i < 5; i++) free(own[i]);
  return op_err(op, ERR_EXHAUSTED, "no memory for packed operands");
}

/* ---- by gemm ---- */

typedef struct GemmCall {
  const Dot *d;
  const Gemm *g;
  const char *lhs, *rhs;
  char *out;
  GemmArgs args; /* of the product whose tiles are being computed */
  float *ahead;
} GemmCall;

static GemmArgs product_args(const GemmCall *c, int64_t b) {
  const Dot *d = c->d;
  int64_t lo, ro, e = dtype_bytes(d->in);
  batch_at(d, b, &lo, &ro);
  return (GemmArgs){.a = c->lhs + lo * e,
                    .b = c->rhs + ro * e,
                    .a_row = d->lhs.free_stride,
                    .a_k = d->lhs.k_stride,
                    .b_col = d->rhs.free_stride,
                    .b_k = d->rhs.k_stride,
                    .c = c->out + b * d->m * d->n * dtype_bytes(d->out),
                    .c_row = d->n};
}

static void gemm_parts(void *arg, int64_t begin, int64_t end) {
  const GemmCall *c = arg;
  gemm_ahead(c->g, &c->args, c->ahead, begin, end);
}

static void gemm_tiles(void *arg, int64_t begin, int64_t end) {
  const GemmCall *c = arg;
  const Gemm *g = c->g;
  float *scratch = cpu_scratch((size_t)gemm_scratch_floats(g) * 4);
  for (int64_t t = begin; t < end; t++) gemm_tile(g, &c->args, c->ahead, t, scratch);
}

/* Products of one tile each. */
static void gemm_products(void *arg, int64_t begin, int64_t end) {
  const GemmCall *c = arg;
  const Gemm *g = c->g;
  int64_t ahead = gemm_ahead_floats(g);
  float *scratch = cpu_scratch((size_t)(gemm_scratch_floats(g) + ahead) * 4);
  for (int64_t b = begin; b < end; b++) {
    GemmArgs x = product_args(c, b);
    gemm_ahead(g, &x, scratch, 0, gemm_ahead_parts(g));
    gemm_tile(g, &x, scratch, 0, scratch + ahead);
  }
}

/* kept: the operand packed ahead, of a single product; NULL: memory of our own. */
static Err *run_gemm_as(const Dot *d, const Gemm *g, const Op *op, void *const *in,
                        void *const *out, float *kept, bool fresh) {
  if (d->b * d->m * d->n == 0) return NULL;
  if (d->k == 0) {
    memset(out[0], 0, (size_t)type_bytes(op_type(op)));
    return NULL;
  }
  GemmCall c = {.d = d, .g = g, .lhs = in[0], .rhs = in[1], .out = out[0], .ahead = kept};
  void *own[2] = {NULL};
  size_t bytes[2] = {0}, e = (size_t)dtype_bytes(d->in), ahead = 0;
  Err *err = NULL;
  for (int i = 0; i < 2; i++) {
    const Side *s = i ? &d->rhs : &d->lhs;
    if (s->direct) continue;
    bytes[i] = (size_t)type_bytes(op->operands[i]->type);
    own[i] = cpu_block_alloc(bytes[i]);
    if (!own[i]) goto memory;
    cpu_permute(e, s->rank, s->dims, s->strides, in[i], own[i]);
    *(i ? &c.rhs : &c.lhs) = own[i];
  }
  int64_t tiles = g->tiles_m * g->tiles_n;
  double flops = 2.0 * (double)d->m * (double)d->n * (double)d->k;
  if (tiles == 1 && !kept) {
    cpu_parallel(d->b, (int64_t)(GRAIN_FLOPS / flops) + 1, gemm_products, &c);
  } else {
    ahead = (size_t)gemm_ahead_floats(g) * 4;
    if (!kept) c.ahead = cpu_block_alloc(ahead);
    if (!c.ahead) goto memory;
    for (int64_t b = 0; b < d->b; b++) {
      c.args = product_args(&c, b);
      if (!kept || fresh) cpu_parallel(gemm_ahead_parts(g), 4, gemm_parts, &c);
      cpu_parallel(tiles, 1, gemm_tiles, &c);
    }
  }
done:
  if (!kept) cpu_block_free(c.ahead, ahead);
  for (int i = 0; i < 2; i++) cpu_block_free(own[i], bytes[i]);
  return err;
memory:
  err = op_err(op, ERR_EXHAUSTED, "no memory for packed operands");
  goto done;
}

static Err *run_gemm(void *state, const Op *op, void *const *in, void *const *out) {
  const Dot *d = state;
  return run_gemm_as(d, &d->gemm, op, in, out, NULL, false);
}

/* The operand that stays the same is packed once a loop. */
static size_t keep_bytes(void *state, unsigned fixed) {
  const Dot *d = state;
  if (d->b != 1 || d->m * d->n * d->k == 0) return 0;
  int which = fixed & 2 ? 1 : 0;
  return (which ? d->rhs : d->lhs).direct ? (size_t)gemm_ahead_floats(&d->kept[which]) * 4 : 0;
}

static Err *run_kept(void *state, const Op *op, void *const *in, void *const *out, unsigned fixed,
                     void *kept, bool fresh) {
  const Dot *d = state;
  return run_gemm_as(d, &d->kept[fixed & 2 ? 1 : 0], op, in, out, kept, fresh);
}

/* ---- integers ---- */

static Err *run_int(void *state, const Op *op, void *const *in, void *const *out) {
  const Dot *d = state;
  DType lt = op->operands[0]->type->dtype, rt = op->operands[1]->type->dtype;
  int64_t lb = dtype_bytes(lt), rb = dtype_bytes(rt), ob = dtype_bytes(d->out);
  int64_t nl = type_count(op->operands[0]->type), nr = type_count(op->operands[1]->type);
  if (d->b * d->m * d->n == 0) return NULL;
  int64_t *l = xmalloc(sizeof *l * (size_t)(nl + nr + d->n + 1)), *r = l + nl, *row = r + nr;
  char *tmp = xmalloc((size_t)MAX(nl * lb, nr * rb) + 1);
  cpu_permute((size_t)lb, d->lhs.rank, d->lhs.dims, d->lhs.strides, in[0], tmp); /* [b, m, k] */
  for (int64_t i = 0; i < nl; i++) l[i] = elem_get_i64(lt, tmp + i * lb);
  cpu_permute((size_t)rb, d->rhs.rank, d->rhs.dims, d->rhs.strides, in[1], tmp); /* [b, n, k] */
  for (int64_t i = 0; i < nr; i++) r[i] = elem_get_i64(rt, tmp + i * rb);
  bool is_bool = d->out == DT_I1;
  for (int64_t b = 0; b < d->b; b++)
    for (int64_t m = 0; m < d->m; m++) {
      const int64_t *a = l + (b * d->m + m) * d->k;
      for (int64_t n = 0; n < d->n; n++) {
        const int64_t *c = r + (b * d->n + n) * d->k;
        uint64_t sum = 0;
        for (int64_t k = 0; k < d->k; k++) sum += (uint64_t)a[k] * (uint64_t)c[k];
        row[n] = is_bool ? sum != 0 : (int64_t)sum;
      }
      for (int64_t n = 0; n < d->n; n++)
        elem_set_i64(d->out, (char *)out[0] + ((b * d->m + m) * d->n + n) * ob, row[n]);
    }
  free(tmp);
  free(l);
  return NULL;
}

/* ---- rows ---- */

static bool plain(const Op *op) {
  if (op_attr(op, "lhs_precision_type") || op_attr(op, "accumulation_type") ||
      op_attr(op, "rhs_precision_type"))
    return false;
  const Type *l = op->operands[0]->type, *r = op->operands[1]->type;
  return !l->quant && !r->quant && !op_type(op)->quant && type_count(l) < INT32_MAX &&
         type_count(r) < INT32_MAX && type_count(op_type(op)) < INT32_MAX;
}

static double macs(const Op *op) {
  const int64_t *lc;
  double f = (double)type_count(op_type(op));
  int nc = op_ints(op, "lhs_contracting_dimensions", &lc);
  for (int i = 0; i < nc; i++) f *= (double)op->operands[0]->type->dims[lc[i]];
  return f;
}

static double flops(const Op *op) {
  return macs(op) * (dtype_is_complex(op_type(op)->dtype) ? 8 : 2);
}

static bool accepts_blas(const Op *op) {
  DType l = op->operands[0]->type->dtype, r = op->operands[1]->type->dtype, o = op_type(op)->dtype;
  if (!plain(op) || l != r) return false;
  if (l == DT_BF16 || l == DT_F16) return o == l || o == DT_F32;
  if (dtype_is_complex(l) && macs(op) < 1000)
    return false; /* a few terms are added in order, to the last bit as specified */
  return l == o && (l == DT_F32 || l == DT_F64 || l == DT_C64 || l == DT_C128);
}

static bool accepts_gemm(const Op *op) {
  DType l = op->operands[0]->type->dtype;
  if (!accepts_blas(op) || dtype_is_complex(l) || l == DT_F64 || !gemm_kernels()) return false;
  double all = macs(op), lhs = (double)type_count(op->operands[0]->type),
         rhs = (double)type_count(op->operands[1]->type);
  return l != DT_F32 || (all > FEW * lhs && all > FEW * rhs);
}

static bool accepts_int(const Op *op) {
  DType l = op->operands[0]->type->dtype, r = op->operands[1]->type->dtype, o = op_type(op)->dtype;
  bool li = dtype_is_int(l) || l == DT_I1, ri = dtype_is_int(r) || r == DT_I1,
       oi = dtype_is_int(o) || o == DT_I1;
  return plain(op) && li && ri && oi;
}

const CpuKernel cpu_kernels_dot[] = {
    {.name = "dot:gemm",
     .kind = OP_DOT_GENERAL,
     .accepts = accepts_gemm,
     .prepare = prepare_gemm,
     .run = run_gemm,
     .keep_bytes = keep_bytes,
     .run_kept = run_kept,
     .release = release,
     .flops = flops},
    {.name = "dot:blas",
     .kind = OP_DOT_GENERAL,
     .accepts = accepts_blas,
     .prepare = prepare,
     .run = run_blas,
     .release = release,
     .flops = flops},
    {.name = "dot:loops",
     .kind = OP_DOT_GENERAL,
     .accepts = accepts_int,
     .prepare = prepare,
     .run = run_int,
     .release = release,
     .flops = flops},
    {0},
};
