/* dot_general: batches of out[m, n] = sum_k lhs[m, k] rhs[k, n] with any strides.
 *
 * f32, bf16 and f16 by our own kernels where the host has AVX2: f32 with many rows that are runs
 * (dot_runs.c), with operands that stay in a core's caches (dot_small.c; bf16 where it goes in
 * pairs: dot_pairs.c), few rows times a matrix (dot_few.c, dot_few_quads.c), bf16 and int8 where
 * the host has AMX (dot_amx.c), f32 with few results of many terms (dot_long.c; where those lie in
 * pieces: dot_pieces.c), with many rows and columns beside a large cache (dot_blocks.c), others
 * (dot_gemm.c, and int8 where the host has AVX512_VNNI, other integers that 16 bits hold widened to
 * them), f64 (dot_f64.c); others of f64 and complex by BLAS (dot_blas.c); other integers in panels (dot_int.c). What cannot be
 * addressed (by BLAS: neither the rows nor the columns of an operand are runs; by the others:
 * dimensions that do not flatten) is gathered first.
 */
#include "dev/cpu/dot/dot.h"

#define INT16_MACS 1e5 /* products of integers with fewer are done before they would be packed */

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

static void list_dims(Side *s, const Type *t, const int64_t *strides, const int64_t *dims, int n) {
  for (int i = 0; i < n; i++)
    s->dims[s->rank] = t->dims[dims[i]], s->strides[s->rank++] = strides[dims[i]];
}

static Pieces pieces_of(const Type *t, const int64_t *strides, const int64_t *contract, int nc,
                        int64_t free_stride) {
  Pieces p = {.free_stride = free_stride};
  if (nc < 2) return p;
  int64_t k;
  p.count = t->dims[contract[0]];
  p.step = strides[contract[0]];
  p.fits = flatten(t, strides, contract + 1, nc - 1, &k, &p.k_stride);
  return p;
}

static void plan_side(Side *s, const Type *t, const int64_t *batch, int nb, const int64_t *contract,
                      int nc, bool any_stride, int64_t *free_count, int64_t *k_count) {
  int64_t strides[CPU_MAX_RANK], free_dims[CPU_MAX_RANK];
  int nf = 0;
  cpu_strides(t, strides);
  for (int i = 0; i < t->rank; i++)
    if (!b_has_dim(nb, batch, i) && !b_has_dim(nc, contract, i)) free_dims[nf++] = i;
  bool a = flatten(t, strides, free_dims, nf, free_count, &s->free_stride);
  bool b = flatten(t, strides, contract, nc, k_count, &s->k_stride);
  s->direct =
      a && b &&
      (any_stride || s->free_stride == 1 || s->k_stride == 1 || *free_count == 1 || *k_count == 1);
  if (a) s->pieces = pieces_of(t, strides, contract, nc, s->free_stride);
  bool runs = nf > 0 && strides[free_dims[nf - 1]] == 1;
  s->rank = 0;
  list_dims(s, t, strides, batch, nb);
  if (runs) list_dims(s, t, strides, contract, nc);
  list_dims(s, t, strides, free_dims, nf);
  if (!runs) list_dims(s, t, strides, contract, nc);
  if (s->direct) return;
  s->free_stride = runs ? 1 : *k_count;
  s->k_stride = runs ? *free_count : 1;
}

/* Bools and integers of fewer bits are held as int8 is. */
static DType plain_byte(DType t) {
  return t == DT_I1 || (dtype_is_int(t) && dtype_bits(t) < 8) ? DT_I8 : t;
}

#define LEAST_CROWD 65536

/* Does a turn of the op's region multiply by more from outside of it than the second cache holds? Then an
 * operand that would fit has left it again when its turn comes: the weights of a decoder. */
static bool is_crowded(const Op *op) {
  int64_t crowd = 0;
  if (type_bytes(op->operands[0]->type) + type_bytes(op->operands[1]->type) < LEAST_CROWD)
    return false;
  for (const Op *o = op->parent ? op->parent->first : NULL; o; o = o->next) {
    if (o->kind != OP_DOT_GENERAL) continue;
    for (int k = 0; k < 2; k++) {
      const Value *v = o->operands[k];
      if (!v->def || v->def->parent != op->parent) crowd += type_bytes(v->type);
    }
    if (crowd > cpu_second_cache()) return true;
  }
  return false;
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
  d->in = plain_byte(l->dtype);
  d->rhs_in = plain_byte(r->dtype);
  d->out = op_type(op)->dtype;
  d->math = d->in == DT_BF16 || d->in == DT_F16 ? DT_F32 : d->in;
  d->crowded = is_crowded(op);
  return d;
}

/* A product and the plan of one way to compute it. */
static Err *prepare(const Op *op, bool any_stride, bool (*plan)(Dot *d), void **state) {
  Dot *d = plan_dot(op, any_stride);
  if (plan) plan(d);
  *state = d;
  return NULL;
}

/* In a loop it multiplies as dot:gemm does. */
static bool plan_few(Dot *d) { return dot_few_plan(d) && dot_gemm_plan(d); }

#define PREPARE(way, any_stride, plan)                    \
  static Err *prepare_##way(const Op *op, void **state) { \
    return prepare(op, any_stride, plan, state);          \
  }
PREPARE(blas, false, dot_blas_plan)
PREPARE(gemm, true, dot_gemm_plan)
PREPARE(few, true, plan_few)
PREPARE(small, true, dot_small_plan)
PREPARE(pairs, true, dot_pairs_plan)
PREPARE(runs, true, dot_runs_plan)
PREPARE(blocks, true, dot_blocks_plan)
PREPARE(f64, true, dot_f64_plan)
PREPARE(few_quads, true, dot_few_quads_plan)
PREPARE(amx, true, dot_amx_plan)
PREPARE(long, true, dot_long_plan)
PREPARE(pieces, true, dot_pieces_plan)
PREPARE(int, true, NULL)

static void release(void *state) { free(state); }

/* ---- rows ---- */

static bool plain(const Op *op) {
  if (op_attr(op, "lhs_precision_type") || op_attr(op, "accumulation_type") ||
      op_attr(op, "rhs_precision_type"))
    return false;
  const Type *l = op->operands[0]->type, *r = op->operands[1]->type;
  return !l->quant && !r->quant && !op_type(op)->quant;
}

static bool plain_floats(const Op *op) {
  DType l = op->operands[0]->type->dtype, r = op->operands[1]->type->dtype, o = op_type(op)->dtype;
  if (!plain(op) || l != r) return false;
  if (l == DT_BF16 || l == DT_F16) return o == l || o == DT_F32;
  return l == o && (l == DT_F32 || l == DT_F64 || l == DT_C64 || l == DT_C128);
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

/* BLAS counts in 32 bits. */
static bool accepts_blas(const Op *op) {
  const Type *l = op->operands[0]->type, *r = op->operands[1]->type, *o = op_type(op);
  if (!plain_floats(op) || type_count(l) >= INT32_MAX || type_count(r) >= INT32_MAX ||
      type_count(o) >= INT32_MAX)
    return false;
  return !dtype_is_complex(l->dtype) ||
         macs(op) >= 1000; /* a few terms are added in order, to the last bit as specified */
}

static bool planned(const Op *op, bool (*plan)(Dot *d)) {
  Dot *d = plan_dot(op, true);
  bool ok = plan(d);
  free(d);
  return ok;
}

static bool accepts_few(const Op *op) {
  DType l = op->operands[0]->type->dtype;
  if (!plain_floats(op) || dtype_is_complex(l) || l == DT_F64) return false;
  return planned(op, dot_few_plan);
}

static bool accepts_small(const Op *op) {
  if (!plain_floats(op) || op_type(op)->dtype != DT_F32) return false;
  return planned(op, dot_small_plan);
}

static bool accepts_runs(const Op *op) {
  if (!plain_floats(op) || op_type(op)->dtype != DT_F32) return false;
  return planned(op, dot_runs_plan);
}

static bool accepts_blocks(const Op *op) {
  if (!plain_floats(op) || op_type(op)->dtype != DT_F32) return false;
  return planned(op, dot_blocks_plan);
}

static bool accepts_long(const Op *op) {
  if (!plain_floats(op) || op_type(op)->dtype != DT_F32) return false;
  return planned(op, dot_long_plan);
}

static bool accepts_pieces(const Op *op) {
  if (!plain_floats(op) || op_type(op)->dtype != DT_F32) return false;
  return planned(op, dot_pieces_plan);
}

static bool accepts_f64(const Op *op) {
  return plain_floats(op) && op_type(op)->dtype == DT_F64 && planned(op, dot_f64_plan);
}

static bool accepts_gemm(const Op *op) {
  DType l = op->operands[0]->type->dtype;
  if (!plain_floats(op) || dtype_is_complex(l) || l == DT_F64 || !gemm_kernels()) return false;
  double all = macs(op), lhs = (double)type_count(op->operands[0]->type),
         rhs = (double)type_count(op->operands[1]->type);
  return l != DT_F32 || (all > DOT_FEW * lhs && all > DOT_FEW * rhs);
}

static bool accepts_amx(const Op *op) {
  if (op->operands[0]->type->dtype != DT_BF16 || !amx_bf16() || !accepts_gemm(op)) return false;
  return planned(op, dot_amx_plan);
}

static bool accepts_amx_bytes(const Op *op) {
  DType l = plain_byte(op->operands[0]->type->dtype), r = plain_byte(op->operands[1]->type->dtype),
        o = op_type(op)->dtype;
  bool bytes = (l == DT_I8 || l == DT_U8) && (r == DT_I8 || r == DT_U8);
  return plain(op) && bytes && (o == DT_I32 || o == DT_U32) && macs(op) >= INT16_MACS &&
         amx_bytes(l == DT_I8, r == DT_I8) && planned(op, dot_amx_plan);
}

static bool accepts_pairs(const Op *op) {
  return op->operands[0]->type->dtype == DT_BF16 && gemm_pairs() && accepts_gemm(op);
}

static bool accepts_small_pairs(const Op *op) {
  return accepts_pairs(op) && planned(op, dot_pairs_plan);
}

static bool accepts_quads(const Op *op) {
  DType l = op->operands[0]->type->dtype, r = op->operands[1]->type->dtype, o = op_type(op)->dtype;
  return plain(op) && gemm_quads() && (plain_byte(l) == DT_I8 || l == DT_U8) &&
         plain_byte(r) == DT_I8 && (o == DT_I32 || o == DT_U32);
}

static bool accepts_few_quads(const Op *op) {
  return accepts_quads(op) && planned(op, dot_few_quads_plan);
}

static bool accepts_int16(const Op *op) {
  DType o = op_type(op)->dtype;
  return plain(op) && gemm_kernels() && macs(op) >= INT16_MACS &&
         dot_fits_int16(op->operands[0]->type->dtype) &&
         dot_fits_int16(op->operands[1]->type->dtype) && (o == DT_I32 || o == DT_U32);
}

static bool accepts_int(const Op *op) {
  DType l = op->operands[0]->type->dtype, r = op->operands[1]->type->dtype, o = op_type(op)->dtype;
  bool li = dtype_is_int(l) || l == DT_I1, ri = dtype_is_int(r) || r == DT_I1,
       oi = dtype_is_int(o) || o == DT_I1;
  return plain(op) && li && ri && oi;
}

#define ROW(called, taken, prepared, ...)                                          \
  {                                                                                \
    .name = called, .kind = OP_DOT_GENERAL, .accepts = taken, .prepare = prepared, \
    .release = release, .flops = flops, __VA_ARGS__                                \
  }
#define GEMM                                                    \
  .run = dot_gemm_run, .prepack_bytes = dot_gemm_prepack_bytes, \
  .run_prepacked = dot_gemm_run_prepacked
#define AMX \
  .run = dot_amx_run, .prepack_bytes = dot_amx_prepack_bytes, .run_prepacked = dot_amx_run_prepacked

const CpuKernel cpu_kernels_dot[] = {
    ROW("dot:runs", accepts_runs, prepare_runs, .run = dot_runs_run,
        .prepack_bytes = dot_runs_prepack_bytes, .run_prepacked = dot_runs_run_prepacked),
    ROW("dot:small", accepts_small, prepare_small, .run = dot_small_run,
        .prepack_bytes = dot_small_prepack_bytes, .run_prepacked = dot_small_run_prepacked),
    ROW("dot:few", accepts_few, prepare_few, .run = dot_few_run,
        .prepack_bytes = dot_few_prepack_bytes, .run_prepacked = dot_few_run_prepacked),
    ROW("dot:amx", accepts_amx, prepare_amx, AMX),
    /* the host has instructions for it, and for int8 */
    ROW("dot:bf16-small", accepts_small_pairs, prepare_pairs, .run = dot_pairs_run),
    ROW("dot:bf16", accepts_pairs, prepare_gemm, GEMM),
    ROW("dot:long", accepts_long, prepare_long, .run = dot_long_run),
    ROW("dot:pieces", accepts_pieces, prepare_pieces, .run = dot_pieces_run),
    ROW("dot:blocks", accepts_blocks, prepare_blocks, .run = dot_blocks_run),
    ROW("dot:gemm", accepts_gemm, prepare_gemm, GEMM),
    ROW("dot:f64", accepts_f64, prepare_f64, .run = dot_f64_run),
    ROW("dot:blas", accepts_blas, prepare_blas, .run = dot_blas_run),
    ROW("dot:int8-few", accepts_few_quads, prepare_few_quads, .run = dot_few_quads_run),
    ROW("dot:int8-amx", accepts_amx_bytes, prepare_amx, AMX),
    ROW("dot:int8", accepts_quads, prepare_gemm, GEMM),
    ROW("dot:int16", accepts_int16, prepare_gemm, GEMM),
    ROW("dot:int", accepts_int, prepare_int, .run = dot_int_run),
    {0},
};
