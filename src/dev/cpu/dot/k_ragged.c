/* chlo.ragged_dot of f32: each group's rows are a product by BLAS, in pieces of a size of their own. */
#include <cblas.h>

#include "blas/blas.h"
#include "dev/cpu/kernel/kernel.h"

#define PIECE 128 /* rows of a task's results */

/* x [m, k]. Rows: times [groups, k, n], or [groups, n, k] if turned, [m, n]. Groups: times [m, n], [groups, k, n]. */
typedef struct Ragged {
  int64_t m, k, n, groups, pieces;
  bool turned;
  const float *x, *y;
  float *out;
  int64_t *ends; /* of the groups' rows; each begins where the one before it ends */
} Ragged;

static int64_t begin_of(const Ragged *r, int64_t g) { return g ? r->ends[g - 1] : 0; }

static void put_zeros(float *x, int64_t n) { memset(x, 0, sizeof *x * (size_t)n); }

static void multiply_rows(void *arg, int64_t begin, int64_t end) { /* pieces of PIECE rows */
  const Ragged *r = arg;
  blas_begin();
  begin *= PIECE;
  end = MIN(r->m, end * PIECE);
  for (int64_t g = 0; g < r->groups; g++) {
    int64_t from = MAX(begin, begin_of(r, g)), to = MIN(end, r->ends[g]);
    if (from >= to) continue;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, r->turned ? CblasTrans : CblasNoTrans,
                (blasint)(to - from), (blasint)r->n, (blasint)r->k, 1, r->x + from * r->k,
                (blasint)r->k, r->y + g * r->k * r->n, (blasint)(r->turned ? r->k : r->n), 0,
                r->out + from * r->n, (blasint)r->n);
  }
  int64_t rest = MAX(begin, r->ends[r->groups - 1]); /* rows of no group */
  if (rest < end) put_zeros(r->out + rest * r->n, (end - rest) * r->n);
}

static void sum_groups(void *arg, int64_t begin,
                       int64_t end) { /* groups, in pieces of PIECE of k */
  const Ragged *r = arg;
  blas_begin();
  for (int64_t i = begin; i < end; i++) {
    int64_t g = i / r->pieces, k0 = i % r->pieces * PIECE, k = MIN(PIECE, r->k - k0),
            from = begin_of(r, g), rows = r->ends[g] - from;
    float *out = r->out + (g * r->k + k0) * r->n;
    if (rows == 0) put_zeros(out, k * r->n);
    else
      cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (blasint)k, (blasint)r->n, (blasint)rows,
                  1, r->x + from * r->k + k0, (blasint)r->k, r->y + from * r->n, (blasint)r->n, 0,
                  out, (blasint)r->n);
  }
}

static const int64_t *list_of(const Op *op, const char *name, int *n) {
  const Attr *a = op_attr(op, "ragged_dot_dimension_numbers");
  const Attr *x = a && a->kind == AT_DICT ? attrs_get(a->dict, a->n, name) : NULL;
  *n = x && x->kind == AT_INTS ? x->n : 0;
  return *n ? x->ints : NULL;
}

static bool is_only(const Op *op, const char *name, int64_t least, int64_t most) {
  int n;
  const int64_t *v = list_of(op, name, &n);
  return n == 1 && v[0] >= least && v[0] <= most;
}

static bool sums_rows(const Op *op) { return is_only(op, "lhs_contracting_dimensions", 0, 0); }

static bool accepts(const Op *op) {
  const Type *x = op->operands[0]->type, *y = op->operands[1]->type, *sizes = op->operands[2]->type;
  if (x->dtype != DT_F32 || y->dtype != DT_F32 || op_type(op)->dtype != DT_F32 || x->rank != 2 ||
      sizes->rank != 1 || sizes->dims[0] < 1 || !is_only(op, "lhs_ragged_dimensions", 0, 0))
    return false;
  for (int i = 0; i < 2; i++)
    if (MAX(MAX(x->dims[i], y->dims[i]), y->dims[y->rank - 1]) > INT32_MAX) return false;
  if (sums_rows(op)) return y->rank == 2 && is_only(op, "rhs_contracting_dimensions", 0, 0);
  return y->rank == 3 && is_only(op, "lhs_contracting_dimensions", 1, 1) &&
         is_only(op, "rhs_group_dimensions", 0, 0) &&
         is_only(op, "rhs_contracting_dimensions", 1, 2);
}

static void find_ends(Ragged *r, DType t, const char *sizes) {
  int64_t end = 0, last = 0;
  for (int64_t g = 0; g < r->groups; g++) {
    end += elem_get_i64(t, sizes + g * dtype_bytes(t));
    r->ends[g] = last = MIN(r->m, MAX(last, end));
  }
}

static Err *run(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  const Type *x = op->operands[0]->type, *y = op->operands[1]->type;
  bool sums = sums_rows(op);
  Ragged r = {.m = x->dims[0],
              .k = x->dims[1],
              .groups = op->operands[2]->type->dims[0],
              .turned = is_only(op, "rhs_contracting_dimensions", 2, 2),
              .x = in[0],
              .y = in[1],
              .out = out[0]};
  r.n = y->dims[sums || r.turned ? 1 : 2];
  r.pieces = (r.k + PIECE - 1) / PIECE;
  r.ends = xmalloc(sizeof *r.ends * (size_t)r.groups);
  find_ends(&r, op->operands[2]->type->dtype, in[2]);
  if (sums) cpu_parallel(r.groups * r.pieces, 1, sum_groups, &r);
  else cpu_parallel((r.m + PIECE - 1) / PIECE, 1, multiply_rows, &r);
  free(r.ends);
  return NULL;
}

static double flops(const Op *op) {
  const Type *x = op->operands[0]->type, *t = op_type(op);
  return 2.0 * (double)(x->dims[0] * x->dims[1]) * (double)t->dims[t->rank - 1];
}

const CpuKernel cpu_kernels_ragged[] = {
    {.name = "dot:ragged",
     .kind = OP_CHLO_RAGGED_DOT,
     .accepts = accepts,
     .run = run,
     .flops = flops},
    {0},
};
