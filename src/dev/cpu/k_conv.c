/* Convolutions by oneDNN, in the three forms that training makes of them:
 *
 *   forward    out = X * W        lhs is X
 *   data       lhs_dilation or a reversed window: lhs is Y, out is the gradient of X
 *   weights    the window is larger than the result: lhs is X, rhs is Y, out is the gradient of W
 *
 * Every operand is a strided view, so any order of dimensions, negative padding and groups need no
 * copy of their own. oneDNN works single-threaded on pieces (some images, some output channels)
 * that the pool divides; a piece is brought into oneDNN's blocked format, convolved and brought
 * back while it is in the cache. The pieces follow from the sizes alone, so the result does not
 * depend on the number of threads; partial gradients of weights are added in a fixed order. What
 * has no fast kernel in oneDNN goes to conv_general.c. */
#include <dlfcn.h>
#include <dnnl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "dev/cpu/conv_general.h"
#include "dev/cpu/winograd.h"

#define PIECE_FLOPS 1e8
#define PIECE_BYTES 524288.0
#define DIMS 3 /* spatial dimensions that oneDNN knows */

typedef enum Form { FORM_FORWARD, FORM_DATA, FORM_WEIGHTS } Form;
enum { X, W, Y };

typedef struct View { /* of X and Y: images, channels, spatial; of W: group, out, in, spatial */
  dnnl_dim_t dims[12], strides[12];
  int64_t offset; /* elements */
  int n;
} View;

typedef struct Part { /* one of X, W, Y of a piece */
  dnnl_memory_desc_t user, own;
  dnnl_primitive_t reorder; /* into `own`, or for the result out of it; NULL: they are the same */
  size_t bytes;             /* of `own` */
  int64_t image_step, channel_step; /* elements from piece to piece */
  int64_t offset;
} Part;

typedef struct Conv {
  Form form;
  DType t[3];
  View v[3];
  Part part[3];
  dnnl_dim_t strides[12], dilates[12], low[12], high[12];
  int64_t groups;
  dnnl_primitive_t conv;
  size_t scratch_bytes;
  int64_t image_pieces, channel_pieces;
  int64_t sums; /* weights: partial gradients */
  int divided;  /* X or Y: the side whose channels are divided */
  int result;   /* X, W or Y */
  int arg[3];   /* DNNL_ARG_ of X, W, Y */
  bool flip;
  int64_t flip_dims[CPU_MAX_RANK], flip_strides[CPU_MAX_RANK], flip_offset;
  int flip_rank;
  bool widen; /* compute in f32 */
  ConvGeneral *general;
  Winograd *winograd;
} Conv;

/* ---- oneDNN ---- */

static dnnl_engine_t engine;
static void (*omp_set)(int);
static int (*omp_max)(void);

__attribute__((constructor)) static void before_openmp(void) {
  setenv("OMP_WAIT_POLICY", "passive", 0);
}

static void start(void) {
  if (dnnl_engine_create(&engine, dnnl_cpu, 0)) engine = NULL;
  void *gomp = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!gomp) return;
  *(void **)&omp_set = dlsym(gomp, "omp_set_num_threads");
  *(void **)&omp_max = dlsym(gomp, "omp_get_max_threads");
}

/* oneDNN asks OpenMP how many threads to use: one, the pool has divided the work. The caller's own
 * setting is put back. */
static int single(void) {
  int was = omp_max ? omp_max() : 1;
  if (omp_set && was != 1) omp_set(1);
  return was;
}

static void restore(int was) {
  if (omp_set && was != 1) omp_set(was);
}

static dnnl_data_type_t dnnl_type(DType t) { return t == DT_F32 ? dnnl_f32 : dnnl_bf16; }

/* ---- recognising ---- */

static int64_t at(const int64_t *v, int n, int i, int64_t dflt) { return i < n ? v[i] : dflt; }

static int64_t divisor_up_to(int64_t n, int64_t most) {
  for (int64_t d = MIN(n, most); d > 1; d--)
    if (n % d == 0) return d;
  return 1;
}

/* Fills the form, the views and the windows; false: oneDNN cannot. */
static bool recognise(Conv *c, const Op *op) {
  const Type *l = op->operands[0]->type, *r = op->operands[1]->type, *o = op_type(op);
  const int64_t *isd, *ksd, *osd, *strides, *pad, *ldil, *rdil, *rev;
  int ns = op_ints(op, "input_spatial_dimensions", &isd);
  op_ints(op, "kernel_spatial_dimensions", &ksd);
  op_ints(op, "output_spatial_dimensions", &osd);
  int n_strides = op_ints(op, "window_strides", &strides), n_pad = op_ints(op, "padding", &pad);
  int n_ldil = op_ints(op, "lhs_dilation", &ldil), n_rdil = op_ints(op, "rhs_dilation", &rdil);
  int n_rev = op_ints(op, "window_reversal", &rev);
  int ib = (int)op_int(op, "input_batch_dimension", 0),
      inf = (int)op_int(op, "input_feature_dimension", 0);
  int kif = (int)op_int(op, "kernel_input_feature_dimension", 0),
      kof = (int)op_int(op, "kernel_output_feature_dimension", 0);
  int ob = (int)op_int(op, "output_batch_dimension", 0),
      of = (int)op_int(op, "output_feature_dimension", 0);
  int64_t fg = op_int(op, "feature_group_count", 1), bg = op_int(op, "batch_group_count", 1);
  if (ns > DIMS || type_count(l) == 0 || type_count(r) == 0 || type_count(o) == 0 ||
      (fg > 1 && bg > 1))
    return false;
  int64_t ls[CPU_MAX_RANK], rs[CPU_MAX_RANK], os[CPU_MAX_RANK], out_n = 1, window_n = 1;
  cpu_strides(l, ls);
  cpu_strides(r, rs);
  cpu_strides(o, os);
  bool dilated = false, strided = false, any_turned = false, all_turned = true;
  for (int i = 0; i < ns; i++) {
    int64_t k = r->dims[ksd[i]];
    bool turned = at(rev, n_rev, i, 0) != 0;
    dilated |= at(ldil, n_ldil, i, 1) > 1;
    strided |= at(strides, n_strides, i, 1) > 1;
    out_n *= o->dims[osd[i]];
    window_n *= k;
    if (k > 1) any_turned |= turned, all_turned &= turned;
  }
  c->groups = MAX(fg, bg);
  bool data_ok = bg == 1 && !strided;
  for (int i = 0; i < ns; i++)
    if ((r->dims[ksd[i]] - 1) * at(rdil, n_rdil, i, 1) < at(pad, n_pad, 2 * i, 0)) data_ok = false;
  if (dilated && !data_ok) return false;
  c->form = dilated                                   ? FORM_DATA
            : bg > 1 || (out_n < window_n && fg == 1) ? FORM_WEIGHTS
            : any_turned && all_turned && data_ok     ? FORM_DATA
                                                      : FORM_FORWARD;
  c->flip = c->form == FORM_DATA ? !all_turned : any_turned;
  View *x = &c->v[X], *w = &c->v[W], *y = &c->v[Y];
  int fake = ns == 0; /* no spatial dimension: one of size 1 */
  x->n = y->n = 2 + ns + fake;
  w->n = 3 + ns + fake;
  int64_t g = c->groups;
  int64_t *rhs_strides = rs, flipped[CPU_MAX_RANK];
  if (c->flip) { /* a dense copy, turned round */
    c->flip_rank = r->rank;
    for (int i = 0; i < r->rank; i++)
      c->flip_dims[i] = r->dims[i], c->flip_strides[i] = flipped[i] = rs[i];
    for (int i = 0; i < ns; i++) {
      bool turned = at(rev, n_rev, i, 0) != 0;
      if (r->dims[ksd[i]] < 2 || turned == (c->form == FORM_DATA)) continue;
      c->flip_strides[ksd[i]] = -rs[ksd[i]];
      c->flip_offset += (r->dims[ksd[i]] - 1) * rs[ksd[i]];
    }
    rhs_strides = flipped;
  }
#define DIM(view, i, size, step) ((view)->dims[i] = (size), (view)->strides[i] = (step))
  switch (c->form) {
  case FORM_FORWARD:
    DIM(x, 0, l->dims[ib], ls[ib]), DIM(x, 1, l->dims[inf], ls[inf]);
    DIM(y, 0, o->dims[ob], os[ob]), DIM(y, 1, o->dims[of], os[of]);
    DIM(w, 0, g, r->dims[kof] / g * rhs_strides[kof]);
    DIM(w, 1, r->dims[kof] / g, rhs_strides[kof]), DIM(w, 2, r->dims[kif], rhs_strides[kif]);
    break;
  case FORM_DATA:
    DIM(y, 0, l->dims[ib], ls[ib]), DIM(y, 1, l->dims[inf], ls[inf]);
    DIM(x, 0, o->dims[ob], os[ob]), DIM(x, 1, o->dims[of], os[of]);
    DIM(w, 0, g, r->dims[kof] / g * rhs_strides[kof]);
    DIM(w, 1, r->dims[kif], rhs_strides[kif]), DIM(w, 2, r->dims[kof] / g, rhs_strides[kof]);
    break;
  default:
    DIM(x, 0, l->dims[inf], ls[inf]), DIM(x, 1, l->dims[ib], ls[ib]);
    DIM(y, 0, r->dims[kif], rhs_strides[kif]), DIM(y, 1, r->dims[kof], rhs_strides[kof]);
    DIM(w, 0, g, o->dims[of] / g * os[of]);
    DIM(w, 1, o->dims[of] / g, os[of]), DIM(w, 2, o->dims[ob], os[ob]);
    break;
  }
  for (int i = 0; i < ns; i++) {
    int64_t lo = at(pad, n_pad, 2 * i, 0), in = l->dims[isd[i]], k = r->dims[ksd[i]],
            out = o->dims[osd[i]];
    int64_t st = at(strides, n_strides, i, 1), rd = at(rdil, n_rdil, i, 1),
            ld = at(ldil, n_ldil, i, 1);
    int64_t istep = ls[isd[i]], kstep = rhs_strides[ksd[i]], ostep = os[osd[i]];
    if (c->form == FORM_DATA) {
      c->strides[i] = ld;
      c->dilates[i] = rd - 1;
      c->low[i] = (k - 1) * rd - lo;
      c->high[i] = (in - 1) * ld + (k - 1) * rd + 1 - out - c->low[i];
      if (c->high[i] <= -ld) return false; /* the far end of out gets nothing: rare */
      DIM(y, 2 + i, in, istep), DIM(x, 2 + i, out, ostep), DIM(w, 3 + i, k, kstep);
      continue;
    }
    bool weights = c->form == FORM_WEIGHTS;
    c->strides[i] = weights ? rd : st;
    c->dilates[i] = (weights ? st : rd) - 1;
    if (lo < 0) {
      x->offset += -lo * istep;
      in += lo;
      lo = 0;
    }
    c->low[i] = lo;
    c->high[i] = (out - 1) * st + (k - 1) * rd + 1 - in - lo;
    if (c->high[i] <= -c->strides[i]) {
      in += c->high[i];
      c->high[i] = 0;
    }
    if (in < 1) return false;
    DIM(x, 2 + i, in, istep);
    if (weights) DIM(y, 2 + i, k, kstep), DIM(w, 3 + i, out, ostep);
    else DIM(w, 3 + i, k, kstep), DIM(y, 2 + i, out, ostep);
  }
  if (fake) {
    DIM(x, 2, 1, 1), DIM(y, 2, 1, 1), DIM(w, 3, 1, 1);
    c->strides[0] = 1;
  }
#undef DIM
  DType lt = l->dtype, rt = r->dtype, ot = o->dtype;
  c->result = c->form == FORM_FORWARD ? Y : c->form == FORM_DATA ? X : W;
  c->t[c->form == FORM_DATA ? Y : X] = lt;
  c->t[c->form == FORM_WEIGHTS ? Y : W] = rt;
  c->t[c->result] = ot;
  return true;
}

/* ---- dividing ---- */

/* Images of a piece: enough work, together with their copies at home in a core's second cache, and
 * for large weights (or gradients of weights, which are added up) enough places to be worth a pass
 * over the weights. Few images: channels are divided as well, on the side that has more of them. */
static void divide(Conv *c) {
  const View *x = &c->v[X], *y = &c->v[Y], *w = &c->v[W];
  double places = 1, in = 1, weights = (double)c->groups;
  for (int i = 2; i < y->n; i++) places *= (double)y->dims[i], in *= (double)x->dims[i];
  for (int i = 1; i < w->n; i++) weights *= (double)w->dims[i];
  int64_t images = x->dims[0];
  double image_bytes = 4 * (places * (double)y->dims[1] + in * (double)x->dims[1]);
  double flops = 2.0 * (double)images * places * weights;
  double pieces = flops < 4e6 ? 1 : MAX(flops / PIECE_FLOPS, 4);
  double least = c->form != FORM_WEIGHTS ? (weights > 65536 ? 512 : 1)
                 : weights > 262144      ? 4096
                 : weights > 65536       ? 1024
                                         : 512;
  int64_t per_piece = MAX(1, (int64_t)((double)images / pieces));
  if (pieces > 1) per_piece = MAX(1, MIN(per_piece, (int64_t)(PIECE_BYTES / image_bytes)));
  per_piece = divisor_up_to(images, MAX(per_piece, (int64_t)(least / places)));
  c->image_pieces = images / per_piece;
  c->channel_pieces = 1;
  c->divided = c->form == FORM_DATA || (c->form == FORM_WEIGHTS && x->dims[1] > y->dims[1]) ? X : Y;
  int64_t channels = c->v[c->divided].dims[1],
          want =
              c->groups > 1 || c->image_pieces >= 4 ? 1 : (int64_t)MIN(pieces, 8) / c->image_pieces;
  for (int64_t d = want; d > 1; d--)
    if (channels % d == 0 && channels / d % 16 == 0 &&
        channels / d >= (c->form == FORM_WEIGHTS ? 64 : 32)) {
      c->channel_pieces = d;
      break;
    }
  c->sums = c->form == FORM_WEIGHTS ? MIN(c->image_pieces, 8) : 1;
}

static bool memory_desc(dnnl_memory_desc_t *m, const View *v, dnnl_data_type_t t, bool grouped,
                        bool is_weights) {
  int skip = is_weights && !grouped;
  dnnl_dim_t dims[12] = {0}, strides[12] = {0};
  for (int i = skip; i < v->n; i++) dims[i - skip] = v->dims[i], strides[i - skip] = v->strides[i];
  return !dnnl_memory_desc_init_by_strides(m, v->n - skip, dims, t, strides);
}

static void any_format(dnnl_memory_desc_t *m, const dnnl_memory_desc_t *like) {
  dnnl_memory_desc_init_by_tag(m, like->ndims, like->dims, like->data_type, dnnl_format_tag_any);
}

/* Channels last, images outermost, nothing between the elements. */
static bool channels_last(const View *v) {
  int64_t s = v->dims[1];
  if (v->strides[1] != 1) return false;
  for (int i = v->n - 1; i >= 2; i--) {
    if (v->dims[i] != 1 && v->strides[i] != s) return false;
    s *= v->dims[i];
  }
  return v->dims[0] == 1 || v->strides[0] == s;
}

static dnnl_status_t describe(const Conv *c, const dnnl_memory_desc_t *x,
                              const dnnl_memory_desc_t *w, const dnnl_memory_desc_t *y,
                              dnnl_primitive_desc_t *out) {
  dnnl_convolution_desc_t fd, d;
  dnnl_primitive_attr_t attr;
  dnnl_primitive_desc_t hint = NULL;
  dnnl_status_t s = dnnl_primitive_attr_create(&attr);
  if (s) return s;
  dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
  s = dnnl_dilated_convolution_forward_desc_init(&fd, dnnl_forward_training,
                                                 dnnl_convolution_direct, x, w, NULL, y, c->strides,
                                                 c->dilates, c->low, c->high);
  if (!s) s = dnnl_primitive_desc_create(&hint, &fd, attr, engine, NULL);
  if (!s && c->form == FORM_FORWARD) {
    *out = hint;
  } else if (!s) {
    s = c->form == FORM_DATA
            ? dnnl_dilated_convolution_backward_data_desc_init(
                  &d, dnnl_convolution_direct, x, w, y, c->strides, c->dilates, c->low, c->high)
            : dnnl_dilated_convolution_backward_weights_desc_init(&d, dnnl_convolution_direct, x, w,
                                                                  NULL, y, c->strides, c->dilates,
                                                                  c->low, c->high);
    if (!s) s = dnnl_primitive_desc_create(out, &d, attr, engine, hint);
    dnnl_primitive_desc_destroy(hint);
  }
  dnnl_primitive_attr_destroy(attr);
  return s;
}

static const char *info(const_dnnl_primitive_desc_t pd) {
  const char *name = "";
  dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
  return name ? name : "";
}

/* The primitives of one piece. *fast: oneDNN has a kernel worth using. */
static dnnl_status_t build(Conv *c, bool *fast) {
  bool grouped = c->groups > 1;
  *fast = false;
  View v[3];
  int divided = c->divided, w_dim = divided == X ? 2 : 1;
  int64_t cut = c->v[divided].dims[1] / c->channel_pieces;
  int64_t images = c->v[X].dims[0] / c->image_pieces;
  for (int i = 0; i < 3; i++) {
    v[i] = c->v[i];
    c->part[i].offset = v[i].offset;
    if (i != W) {
      v[i].dims[0] = images;
      c->part[i].image_step = images * v[i].strides[0];
    }
  }
  if (c->channel_pieces > 1) {
    v[divided].dims[1] = cut;
    v[W].dims[w_dim] = cut;
    c->part[divided].channel_step = cut * v[divided].strides[1];
    c->part[W].channel_step = cut * v[W].strides[w_dim];
  }
  dnnl_memory_desc_t any[3];
  for (int i = 0; i < 3; i++) {
    /* partial gradients of weights are added up in f32 */
    DType t = c->form == FORM_WEIGHTS && i == W ? DT_F32 : c->t[i];
    if (c->widen) t = DT_F32;
    if (!memory_desc(&c->part[i].user, &v[i], dnnl_type(c->widen ? DT_F32 : c->t[i]), grouped,
                     i == W))
      return dnnl_invalid_arguments;
    any_format(&any[i], &c->part[i].user);
    any[i].data_type = dnnl_type(t);
  }
  dnnl_primitive_desc_t pd = NULL;
  dnnl_status_t s = dnnl_success;
  /* Channels-last data as they are, where oneDNN's kernel for them is as fast. */
  int64_t places = 1;
  for (int i = 2; i < v[Y].n; i++) places *= v[Y].dims[i];
  bool few = c->form == FORM_WEIGHTS && v[X].dims[1] <= 4;
  if ((few || (c->form == FORM_FORWARD && places >= 49)) && v[X].n == 4 && channels_last(&v[X]) &&
      channels_last(&v[Y]) && !grouped) {
    dnnl_memory_desc_t x, y;
    dnnl_memory_desc_init_by_tag(&x, v[X].n, any[X].dims, any[X].data_type, dnnl_nhwc);
    dnnl_memory_desc_init_by_tag(&y, v[Y].n, any[Y].dims, any[Y].data_type, dnnl_nhwc);
    if (!describe(c, &x, &any[W], &y, &pd)) {
      if (strncmp(info(pd), few ? "jit:avx512" : "brg", few ? 10 : 3)) {
        dnnl_primitive_desc_destroy(pd);
        pd = NULL;
      } else {
        c->part[X].user = x;
        c->part[Y].user = y;
      }
    }
  }
  if (!pd) s = describe(c, &any[X], &any[W], &any[Y], &pd);
  if (s) return s;
  *fast = strncmp(info(pd), "ref", 3) != 0 && !strstr(info(pd), "gemm");
  static const dnnl_query_t what[3][3] = {
      {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md},
      {dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md},
      {dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md},
  };
  static const int args[3][3] = {
      {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
      {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
      {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST},
  };
  for (int i = 0; i < 3; i++) {
    Part *p = &c->part[i];
    c->arg[i] = args[c->form][i];
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, what[c->form][i], 0);
    p->own = *md;
    p->bytes = (dnnl_memory_desc_get_size(md) + 63) & ~(size_t)63;
    if (dnnl_memory_desc_equal(&p->user, &p->own)) continue;
    bool back = i == c->result;
    dnnl_primitive_desc_t rd = NULL;
    s = dnnl_reorder_primitive_desc_create(&rd, back ? &p->own : &p->user, engine,
                                           back ? &p->user : &p->own, engine, NULL);
    if (!s) s = dnnl_primitive_create(&p->reorder, rd);
    if (rd) dnnl_primitive_desc_destroy(rd);
    if (s) break;
  }
  c->scratch_bytes =
      (dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0)) +
       63) &
      ~(size_t)63;
  if (!s) s = dnnl_primitive_create(&c->conv, pd);
  dnnl_primitive_desc_destroy(pd);
  return s;
}

static void drop_primitives(Conv *c) {
  for (int i = 0; i < 3; i++) {
    if (c->part[i].reorder) dnnl_primitive_destroy(c->part[i].reorder);
    c->part[i].reorder = NULL;
  }
  if (c->conv) dnnl_primitive_destroy(c->conv);
  c->conv = NULL;
}

static void release(void *state) {
  Conv *c = state;
  if (!c) return;
  drop_primitives(c);
  conv_general_free(c->general);
  free(c->winograd);
  free(c);
}

/* Channels last, whatever the steps between the others. */
static WinoImages wino_images(const View *v) {
  return (WinoImages){.height = v->dims[2],
                      .width = v->dims[3],
                      .channels = v->dims[1],
                      .image_step = v->strides[0],
                      .row_step = v->strides[2],
                      .pixel_step = v->strides[3]};
}

/* A program that asks for more precision than the default gets direct sums. */
static Winograd *winograd_of(const Conv *c, const Op *op) {
  if (op_attr(op, "precision_config")) return NULL;
  const View *x = &c->v[X], *w = &c->v[W], *y = &c->v[Y];
  if (x->n != 4 || c->groups != 1 || w->dims[3] != 3 || w->dims[4] != 3 || x->strides[1] != 1 ||
      y->strides[1] != 1)
    return NULL;
  for (int i = 0; i < 2; i++)
    if (c->strides[i] != 1 || c->dilates[i] != 0) return NULL;
  bool data = c->form == FORM_DATA;
  Winograd g = {
      .images = x->dims[0],
      .source = wino_images(data ? y : x),
      .result = wino_images(data ? x : y),
      .top = data ? 2 - c->low[0] : c->low[0],
      .left = data ? 2 - c->low[1] : c->low[1],
      .out_step = w->strides[data ? 2 : 1],
      .in_step = w->strides[data ? 1 : 2],
      .tap_steps = {data ? -w->strides[3] : w->strides[3], data ? -w->strides[4] : w->strides[4]}};
  if (!winograd_pays(&g)) return NULL;
  Winograd *out = xmalloc(sizeof *out);
  *out = g;
  return out;
}

static Err *prepare(const Op *op, void **state) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, start);
  Conv *c = xcalloc(1, sizeof *c);
  *state = c;
  DType l = op->operands[0]->type->dtype, r = op->operands[1]->type->dtype, o = op_type(op)->dtype;
  bool narrow = l != DT_F32 || r != DT_F32 || o != DT_F32;
  if (engine && (l == DT_F32 || l == DT_BF16 || l == DT_F16) && r == l && (o == l || o == DT_F32) &&
      recognise(c, op)) {
    if ((c->winograd = winograd_of(c, op))) {
      c->widen = narrow;
      return NULL;
    }
    int was = single();
    divide(c);
    bool fast = false;
    dnnl_status_t s = dnnl_unimplemented;
    if (l != DT_F16 && o != DT_F16) s = build(c, &fast);
    if (narrow && (s || !fast)) {
      drop_primitives(c);
      c->widen = true;
      s = build(c, &fast);
    }
    restore(was);
    if (!s && fast) return NULL;
    drop_primitives(c);
  }
  return conv_general_new(op, &c->general);
}

/* ---- running ---- */

typedef struct Run {
  const Conv *c;
  char *user[3];     /* X, W, Y */
  size_t size[3];    /* bytes of a user's element */
  char *weights;     /* in oneDNN's format: a block for each piece of channels, and of sums */
  atomic_int status; /* of oneDNN */
} Run;

static dnnl_status_t execute(dnnl_primitive_t p, int n, const int *arg,
                             const dnnl_memory_desc_t *const *md, void *const *data) {
  dnnl_exec_arg_t a[4];
  dnnl_stream_t stream = NULL;
  dnnl_status_t s = dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
  int made = 0;
  for (; made < n && !s; made++) {
    a[made].arg = arg[made];
    s = dnnl_memory_create(&a[made].memory, md[made], engine, data[made]);
    if (s) break;
  }
  if (!s) s = dnnl_primitive_execute(p, stream, n, a);
  if (!s) s = dnnl_stream_wait(stream);
  while (made-- > 0) dnnl_memory_destroy(a[made].memory);
  if (stream) dnnl_stream_destroy(stream);
  return s;
}

static dnnl_status_t reorder(const Part *p, bool back, void *user, void *own) {
  static const int args[] = {DNNL_ARG_FROM, DNNL_ARG_TO};
  const dnnl_memory_desc_t *md[] = {back ? &p->own : &p->user, back ? &p->user : &p->own};
  void *data[] = {back ? own : user, back ? user : own};
  return execute(p->reorder, 2, args, md, data);
}

static char *user_at(const Run *r, int i, int64_t image, int64_t channel) {
  const Part *p = &r->c->part[i];
  return r->user[i] +
         (p->offset + image * p->image_step + channel * p->channel_step) * (int64_t)r->size[i];
}

static void weights_in(void *arg, int64_t begin, int64_t end) {
  Run *r = arg;
  int was = single();
  for (int64_t i = begin; i < end; i++) {
    const Part *p = &r->c->part[W];
    dnnl_status_t s = reorder(p, false, user_at(r, W, 0, i), r->weights + (size_t)i * p->bytes);
    if (s) r->status = s;
  }
  restore(was);
}

/* One piece; `weights` in oneDNN's format. `space` holds the pieces of X and Y and the scratchpad.
 */
static dnnl_status_t piece(const Run *r, int64_t image, int64_t channel, void *weights,
                           char *space) {
  const Conv *c = r->c;
  int arg[4];
  const dnnl_memory_desc_t *md[4];
  void *data[4];
  dnnl_memory_desc_t pad;
  dnnl_status_t s = dnnl_success;
  for (int i = 0; i < 3; i++) {
    const Part *p = &c->part[i];
    arg[i] = c->arg[i];
    md[i] = &p->own;
    if (i == W) {
      data[i] = weights;
    } else if (!p->reorder) {
      data[i] = user_at(r, i, image, channel);
    } else {
      data[i] = space;
      space += p->bytes;
      if (i != c->result) s = reorder(p, false, user_at(r, i, image, channel), data[i]);
      if (s) return s;
    }
  }
  dnnl_dim_t bytes[12] = {(dnnl_dim_t)c->scratch_bytes};
  dnnl_memory_desc_init_by_tag(&pad, 1, bytes, dnnl_u8, dnnl_a);
  arg[3] = DNNL_ARG_SCRATCHPAD;
  md[3] = &pad;
  data[3] = space;
  s = execute(c->conv, c->scratch_bytes ? 4 : 3, arg, md, data);
  if (!s && c->result != W && c->part[c->result].reorder)
    s = reorder(&c->part[c->result], true, user_at(r, c->result, image, channel), data[c->result]);
  return s;
}

static size_t space_bytes(const Conv *c) {
  size_t n = c->scratch_bytes + 64;
  for (int i = 0; i < 3; i++)
    if (i != W && c->part[i].reorder) n += c->part[i].bytes;
  return n;
}

static void pieces(void *arg, int64_t begin, int64_t end) {
  Run *r = arg;
  const Conv *c = r->c;
  int was = single();
  char *space = cpu_scratch(space_bytes(c));
  for (int64_t i = begin; i < end; i++) {
    int64_t channel = i % c->channel_pieces, image = i / c->channel_pieces;
    char *w = c->part[W].reorder ? r->weights + (size_t)channel * c->part[W].bytes
                                 : user_at(r, W, 0, channel);
    dnnl_status_t s = piece(r, image, channel, w, space);
    if (s) r->status = s;
  }
  restore(was);
}

/* Gradient of weights: sum i of channel piece j. */
static void sum_pieces(void *arg, int64_t begin, int64_t end) {
  Run *r = arg;
  const Conv *c = r->c;
  size_t bytes = c->part[W].bytes;
  int was = single();
  char *space = cpu_scratch(space_bytes(c) + bytes);
  for (int64_t i = begin; i < end; i++) {
    int64_t sum = i / c->channel_pieces, channel = i % c->channel_pieces;
    int64_t first = sum * c->image_pieces / c->sums, last = (sum + 1) * c->image_pieces / c->sums;
    float *total = (float *)(void *)(r->weights + (size_t)i * bytes),
          *part = (float *)(void *)space;
    for (int64_t image = first; image < last; image++) {
      dnnl_status_t s = piece(r, image, channel, image == first ? total : part, space + bytes);
      if (s) r->status = s;
      if (image == first) continue;
      for (size_t k = 0; k < bytes / 4; k++) total[k] += part[k];
    }
  }
  restore(was);
}

typedef struct Sum {
  float *p;
  int64_t n, step;
} Sum;

static void add_sums(void *arg, int64_t begin, int64_t end) {
  const Sum *s = arg;
  for (int64_t k = 1; k < s->n; k++) {
    const float *from = s->p + k * s->step;
    for (int64_t i = begin; i < end; i++) s->p[i] += from[i];
  }
}

static void weights_out(void *arg, int64_t begin, int64_t end) {
  Run *r = arg;
  const Part *p = &r->c->part[W];
  int was = single();
  for (int64_t i = begin; i < end; i++) {
    char *user = user_at(r, W, 0, i), *own = r->weights + (size_t)i * p->bytes;
    if (!p->reorder) {
      memcpy(user, own, dnnl_memory_desc_get_size(&p->own));
      continue;
    }
    dnnl_status_t s = reorder(p, true, user, own);
    if (s) r->status = s;
  }
  restore(was);
}

typedef struct Cast {
  DType t;
  const char *in;
  char *out;
} Cast;

static void widen(void *arg, int64_t begin, int64_t end) {
  const Cast *c = arg;
  cpu_to_f32(c->t, c->in + 2 * begin, (float *)(void *)c->out + begin, end - begin);
}

static void narrow(void *arg, int64_t begin, int64_t end) {
  const Cast *c = arg;
  cpu_from_f32(c->t, (const float *)(const void *)c->in + begin, c->out + 2 * begin, end - begin);
}

static void *room(size_t n) { return aligned_alloc(64, (n + 127) & ~(size_t)63); }

static Err *run(void *state, const Op *op, void *const *in, void *const *out) {
  const Conv *c = state;
  if (c->general) return conv_general_run(c->general, op, in, out);
  Run r = {.c = c};
  void *own[5] = {NULL}; /* widened lhs, rhs, result; flipped rhs; weights */
  bool memory = true;
  const void *operand[2] = {in[0], in[1]};
  void *result = out[0];
  size_t size[3];
  for (int i = 0; i < 3; i++) {
    const Type *t = i < 2 ? op->operands[i]->type : op_type(op);
    int64_t n = type_count(t);
    size[i] = (size_t)dtype_bytes(t->dtype);
    if (!c->widen || t->dtype == DT_F32) continue;
    size[i] = 4;
    own[i] = room((size_t)n * 4);
    if (!(memory = memory && own[i])) break;
    if (i == 2) {
      result = own[i];
      continue;
    }
    Cast k = {t->dtype, operand[i], own[i]};
    cpu_parallel(n, 65536, widen, &k);
    operand[i] = own[i];
  }
  if (memory && c->flip) {
    memory = (own[3] = room((size_t)type_count(op->operands[1]->type) * size[1])) != NULL;
    if (memory)
      cpu_permute(size[1], c->flip_rank, c->flip_dims, c->flip_strides,
                  (const char *)operand[1] + c->flip_offset * (int64_t)size[1], own[3]);
    operand[1] = own[3];
  }
  int lhs = c->form == FORM_DATA ? Y : X, rhs = c->form == FORM_WEIGHTS ? Y : W;
  r.user[lhs] = (char *)(uintptr_t)operand[0], r.size[lhs] = size[0];
  r.user[rhs] = (char *)(uintptr_t)operand[1], r.size[rhs] = size[1];
  r.user[c->result] = result, r.size[c->result] = size[2];
  if (memory && c->winograd) {
    const Winograd *g = c->winograd;
    float *p[3];
    for (int i = 0; i < 3; i++) p[i] = (float *)(void *)r.user[i] + c->v[i].offset;
    if (c->form == FORM_DATA) p[W] -= 2 * (g->tap_steps[0] + g->tap_steps[1]);
    memory = c->form == FORM_WEIGHTS ? winograd_weights(g, p[X], p[Y], p[W])
             : c->form == FORM_DATA  ? winograd_forward(g, p[Y], p[W], p[X])
                                     : winograd_forward(g, p[X], p[W], p[Y]);
    goto done;
  }
  const Part *w = &c->part[W];
  bool sums = c->form == FORM_WEIGHTS;
  if (memory && (sums || w->reorder))
    memory = (r.weights = own[4] = room(w->bytes * (size_t)(c->channel_pieces * c->sums))) != NULL;
  if (memory && !sums) {
    if (w->reorder) cpu_parallel(c->channel_pieces, 1, weights_in, &r);
    cpu_parallel(c->image_pieces * c->channel_pieces, 1, pieces, &r);
  } else if (memory) {
    cpu_parallel(c->sums * c->channel_pieces, 1, sum_pieces, &r);
    int64_t n = c->channel_pieces * (int64_t)(w->bytes / 4);
    Sum s = {(float *)(void *)r.weights, c->sums, n};
    if (c->sums > 1) cpu_parallel(n, 16384, add_sums, &s);
    cpu_parallel(c->channel_pieces, 1, weights_out, &r);
  }
done:
  if (memory && own[2]) {
    Cast k = {op_type(op)->dtype, own[2], out[0]};
    cpu_parallel(type_count(op_type(op)), 65536, narrow, &k);
  }
  for (int i = 0; i < 5; i++) free(own[i]);
  if (!memory) return op_err(op, ERR_EXHAUSTED, "no memory for packed operands");
  int status = atomic_load(&r.status);
  return status ? op_err(op, ERR_INTERNAL, "oneDNN fails with status %d", status) : NULL;
}

/* ---- rows ---- */

static bool accepts(const Op *op) {
  const Type *l = op->operands[0]->type, *r = op->operands[1]->type, *o = op_type(op);
  if (l->quant || r->quant || o->quant) return false;
  return conv_general_accepts(op);
}

static double flops(const Op *op) {
  const Type *r = op->operands[1]->type;
  double of = (double)r->dims[op_int(op, "kernel_output_feature_dimension", 0)];
  return of == 0 ? 0 : 2.0 * (double)type_count(op_type(op)) * (double)type_count(r) / of;
}

const CpuKernel cpu_kernels_conv[] = {
    {.name = "conv:dnnl",
     .kind = OP_CONVOLUTION,
     .accepts = accepts,
     .prepare = prepare,
     .run = run,
     .release = release,
     .flops = flops},
    {0},
};
