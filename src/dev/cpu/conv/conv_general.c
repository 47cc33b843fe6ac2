/* im2col and a product: see the header. */
#include "dev/cpu/conv/conv.h"

#include <cblas.h>

#include "blas/blas.h"
#include "dev/cpu/kernel/clones.h"
#include "ir/build.h"

/* Integers: modulo 2^32 where results have no more bits. */
typedef enum Math { MATH_F32, MATH_F64, MATH_C64, MATH_C128, MATH_INT, MATH_INT32 } Math;
static const size_t math_bytes[] = {4, 8, 8, 16, 8, 4};

struct ConvGeneral {
  Math math;
  DType lt, rt, ot;
  int ns;
  int64_t out_dims[CPU_MAX_RANK], window[CPU_MAX_RANK];
  int64_t *place[CPU_MAX_RANK]; /* [out][window]: elements from the first of the spatial dimension;
                                   -1: outside */
  int64_t out_step[CPU_MAX_RANK];
  int64_t batch, images_of_group, groups, features, channels; /* of a group */
  int64_t n_out, n_window, k;
  int64_t l_batch, l_feature, l_group;
  int64_t o_batch, o_feature;
  int64_t w_strides[CPU_MAX_RANK], w_dims[CPU_MAX_RANK],
      w_offset; /* group, window, feature, channel of the kernel */
  int w_rank;
};

static Math math_of(DType l, DType o) {
  if (dtype_is_complex(o)) return o == DT_C64 ? MATH_C64 : MATH_C128;
  if (!dtype_is_float(o)) return dtype_bytes(o) <= 4 && o != DT_I1 ? MATH_INT32 : MATH_INT;
  return o == DT_F64 || l == DT_F64 ? MATH_F64 : MATH_F32;
}

bool conv_general_accepts(const Op *op) {
  const Type *l = op->operands[0]->type, *r = op->operands[1]->type, *o = op_type(op);
  if (l->quant || r->quant || o->quant || l->rank > B_MAX_RANK) return false;
  DTypeClass lc = dtype_class(l->dtype), rc = dtype_class(r->dtype), oc = dtype_class(o->dtype);
  if (lc == DC_OTHER || oc == DC_OTHER) return false;
  if (oc == DC_COMPLEX) return l->dtype == o->dtype && r->dtype == o->dtype;
  if (oc == DC_FLOAT) return lc == DC_FLOAT && rc == DC_FLOAT;
  return lc != DC_FLOAT && lc != DC_COMPLEX && rc != DC_FLOAT && rc != DC_COMPLEX;
}

ConvGeneral *conv_general_new(const Op *op) {
  const Type *l = op->operands[0]->type, *r = op->operands[1]->type, *o = op_type(op);
  const ConvDims d = b_conv_dims(op);
  ConvGeneral *c = xcalloc(1, sizeof *c);
  int ns = c->ns = d.n;
  int64_t bg = d.batch_groups;
  int64_t ls[CPU_MAX_RANK], rs[CPU_MAX_RANK], os[CPU_MAX_RANK];
  cpu_strides(l, ls);
  cpu_strides(r, rs);
  cpu_strides(o, os);
  c->lt = l->dtype, c->rt = r->dtype, c->ot = o->dtype;
  c->math = math_of(c->lt, c->ot);
  c->groups = MAX(d.feature_groups, bg);
  c->images_of_group = l->dims[d.in_batch] / bg;
  c->features = r->dims[d.k_in];
  c->channels = r->dims[d.k_out] / c->groups;
  c->l_batch = ls[d.in_batch], c->l_feature = ls[d.in_feature];
  c->l_group = bg > 1 ? c->images_of_group * ls[d.in_batch] : c->features * ls[d.in_feature];
  c->o_batch = os[d.out_batch], c->o_feature = os[d.out_feature];
  c->n_out = c->n_window = 1;
  c->w_dims[c->w_rank] = c->groups, c->w_strides[c->w_rank++] = c->channels * rs[d.k_out];
  for (int i = 0; i < ns; i++) {
    int64_t in = l->dims[d.in_spatial[i]], k = r->dims[d.k_spatial[i]],
            n = o->dims[d.out_spatial[i]];
    int64_t st = d.strides[i], rd = d.rhs_dilation[i], ld = d.lhs_dilation[i];
    int64_t lo = d.padding[2 * i];
    bool turned = d.reversal[i];
    c->out_dims[i] = n, c->window[i] = k;
    c->out_step[i] = os[d.out_spatial[i]];
    c->n_out *= n;
    c->n_window *= k;
    c->place[i] = xmalloc(sizeof(int64_t) * (size_t)(n * k + 1));
    for (int64_t a = 0; a < n; a++)
      for (int64_t b = 0; b < k; b++) {
        int64_t x = a * st + b * rd - lo;
        bool inside = x >= 0 && x % ld == 0 && x / ld < in;
        c->place[i][a * k + b] = inside ? x / ld * ls[d.in_spatial[i]] : -1;
      }
    c->w_dims[c->w_rank] = k,
    c->w_strides[c->w_rank++] = turned ? -rs[d.k_spatial[i]] : rs[d.k_spatial[i]];
    if (turned && k) c->w_offset += (k - 1) * rs[d.k_spatial[i]];
  }
  c->w_dims[c->w_rank] = c->features, c->w_strides[c->w_rank++] = rs[d.k_in];
  c->w_dims[c->w_rank] = c->channels, c->w_strides[c->w_rank++] = rs[d.k_out];
  c->k = c->n_window * c->features;
  return c;
}

void conv_general_free(ConvGeneral *c) {
  if (!c) return;
  for (int i = 0; i < c->ns; i++) free(c->place[i]);
  free(c);
}

/* n elements, `step` apart, into the arithmetic. */
static void load(Math m, DType t, const char *in, int64_t step, int64_t n, void *to) {
  int64_t b = dtype_bytes(t) * step;
  if (step == 1 && (size_t)b == math_bytes[m]) {
    memcpy(to, in, (size_t)(n * b));
    return;
  }
  switch (m) {
  case MATH_F32: {
    float *d = to;
    if (t == DT_F32)
      for (int64_t i = 0; i < n; i++) d[i] = *(const float *)(const void *)(in + i * b);
    else if (step == 1 && (t == DT_BF16 || t == DT_F16)) cpu_to_f32(t, in, d, n);
    else
      for (int64_t i = 0; i < n; i++) d[i] = (float)elem_get_f64(t, in + i * b);
    break;
  }
  case MATH_F64:
    for (int64_t i = 0; i < n; i++) ((double *)to)[i] = elem_get_f64(t, in + i * b);
    break;
  case MATH_INT:
    for (int64_t i = 0; i < n; i++) ((int64_t *)to)[i] = elem_get_i64(t, in + i * b);
    break;
  case MATH_INT32:
    for (int64_t i = 0; i < n; i++) ((uint32_t *)to)[i] = (uint32_t)elem_get_i64(t, in + i * b);
    break;
  default:
    for (int64_t i = 0; i < n; i++)
      memcpy((char *)to + (size_t)i * math_bytes[m], in + i * b, math_bytes[m]);
  }
}

static void store(Math m, DType t, const void *from, int64_t n, char *out, int64_t step) {
  int64_t b = dtype_bytes(t) * step;
  if (step == 1 && (size_t)b == math_bytes[m]) {
    memcpy(out, from, (size_t)(n * b));
    return;
  }
  switch (m) {
  case MATH_F32:
    if (t == DT_F32)
      for (int64_t i = 0; i < n; i++) *(float *)(void *)(out + i * b) = ((const float *)from)[i];
    else
      for (int64_t i = 0; i < n; i++) elem_set_f64(t, out + i * b, ((const float *)from)[i]);
    break;
  case MATH_F64:
    for (int64_t i = 0; i < n; i++) elem_set_f64(t, out + i * b, ((const double *)from)[i]);
    break;
  case MATH_INT:
    for (int64_t i = 0; i < n; i++) {
      int64_t v = ((const int64_t *)from)[i];
      elem_set_i64(t, out + i * b, t == DT_I1 ? v != 0 : v);
    }
    break;
  case MATH_INT32:
    for (int64_t i = 0; i < n; i++) elem_set_i64(t, out + i * b, ((const int32_t *)from)[i]);
    break;
  default:
    for (int64_t i = 0; i < n; i++)
      memcpy(out + i * b, (const char *)from + (size_t)i * math_bytes[m], math_bytes[m]);
  }
}

typedef struct Run {
  const ConvGeneral *c;
  const char *in;
  char *out;
  const char *w; /* [group][window x feature][channel] in the arithmetic */
} Run;

#define ROWS 64

#define INT_PRODUCT(name, T)                                                                 \
  CLONES static void name(int64_t rows, int64_t k, int64_t channels, const T *x, const T *w, \
                          T *y) {                                                            \
    for (int64_t i = 0; i < rows; i++, x += k, y += channels) {                              \
      memset(y, 0, sizeof *y *(size_t)channels);                                             \
      for (int64_t p = 0; p < k; p++)                                                        \
        for (int64_t j = 0; j < channels; j++) y[j] += x[p] * w[p * channels + j];           \
    }                                                                                        \
  }
INT_PRODUCT(product_32, uint32_t)
INT_PRODUCT(product_64, uint64_t)

static void product(const ConvGeneral *c, int64_t rows, const void *a, const void *b, void *to) {
  static const float one_c[2] = {1, 0}, zero_c[2] = {0, 0};
  static const double one_z[2] = {1, 0}, zero_z[2] = {0, 0};
  int m = (int)rows, n = (int)c->channels, k = (int)c->k;
#define GEMM(f, one, zero) \
  cblas_##f(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, one, a, k, b, n, zero, to, n)
  switch (c->math) {
  case MATH_F32: GEMM(sgemm, 1, 0); return;
  case MATH_F64: GEMM(dgemm, 1, 0); return;
  case MATH_C64: GEMM(cgemm, one_c, zero_c); return;
  case MATH_C128: GEMM(zgemm, one_z, zero_z); return;
  default: break;
  }
#undef GEMM
  if (c->math == MATH_INT32) product_32(rows, c->k, c->channels, a, b, to);
  else product_64(rows, c->k, c->channels, a, b, to);
}

/* Rows of windows: (group, image, place). */
static void rows(void *arg, int64_t begin, int64_t end) {
  const Run *r = arg;
  const ConvGeneral *c = r->c;
  size_t mb = math_bytes[c->math];
  int64_t lb = dtype_bytes(c->lt), ob = dtype_bytes(c->ot),
          per_group = c->images_of_group * c->n_out;
  size_t a_bytes = ((size_t)(ROWS * c->k) * mb + 63) & ~(size_t)63;
  char *a = cpu_scratch(a_bytes + (size_t)(ROWS * c->channels) * mb + 64), *y = a + a_bytes;
  char *outs[ROWS];
  for (int64_t row = begin; row < end;) {
    int64_t group = row / per_group, n = MIN(MIN(ROWS, end - row), (group + 1) * per_group - row);
    for (int64_t i = 0; i < n; i++) {
      int64_t rest = (row + i) % per_group, image = rest / c->n_out, place = rest % c->n_out,
              pos[CPU_MAX_RANK];
      const char *in = r->in + (group * c->l_group + image * c->l_batch) * lb;
      int64_t o = image * c->o_batch + group * c->channels * c->o_feature;
      for (int d = c->ns - 1; d >= 0; d--) {
        pos[d] = place % c->out_dims[d];
        place /= c->out_dims[d];
        o += pos[d] * c->out_step[d];
      }
      outs[i] = r->out + o * ob;
      int64_t w[CPU_MAX_RANK] = {0};
      char *to = a + (size_t)(i * c->k) * mb;
      for (int64_t p = 0; p < c->n_window; p++, to += (size_t)c->features * mb) {
        int64_t from = 0;
        bool inside = true;
        for (int d = 0; d < c->ns && inside; d++) {
          int64_t x = c->place[d][pos[d] * c->window[d] + w[d]];
          inside = x >= 0;
          from += x;
        }
        if (inside) load(c->math, c->lt, in + from * lb, c->l_feature, c->features, to);
        else memset(to, 0, (size_t)c->features * mb);
        for (int d = c->ns - 1; d >= 0; d--) {
          if (++w[d] < c->window[d]) break;
          w[d] = 0;
        }
      }
    }
    product(c, n, a, r->w + (size_t)(group * c->k * c->channels) * mb, y);
    for (int64_t i = 0; i < n; i++)
      store(c->math, c->ot, y + (size_t)(i * c->channels) * mb, c->channels, outs[i], c->o_feature);
    row += n;
  }
}

Err *conv_general_run(const ConvGeneral *c, const Op *op, void *const *in, void *const *out) {
  int64_t count = type_count(op_type(op)), nw = type_count(op->operands[1]->type);
  if (count == 0) return NULL;
  if (c->k == 0 || type_count(op->operands[0]->type) == 0) {
    memset(out[0], 0, (size_t)type_bytes(op_type(op)));
    return NULL;
  }
  size_t mb = math_bytes[c->math], eb = (size_t)dtype_bytes(c->rt);
  char *tmp = aligned_alloc(64, ((size_t)nw * eb + 127) & ~(size_t)63);
  char *w = aligned_alloc(64, ((size_t)nw * mb + 127) & ~(size_t)63);
  if (!tmp || !w) {
    free(tmp);
    free(w);
    return op_err(op, ERR_EXHAUSTED, "no memory for a packed kernel");
  }
  cpu_permute(eb, c->w_rank, c->w_dims, c->w_strides,
              (const char *)in[1] + c->w_offset * (int64_t)eb, tmp);
  load(c->math, c->rt, tmp, 1, nw, w);
  blas_begin();
  Run r = {c, in[0], out[0], w};
  double per_row = 2.0 * (double)c->k * (double)c->channels + 4.0 * (double)c->k;
  int64_t grain = MAX(ROWS, (int64_t)(1e6 / per_row) / ROWS * ROWS);
  cpu_parallel(c->groups * c->images_of_group * c->n_out, grain, rows, &r);
  free(tmp);
  free(w);
  return NULL;
}
