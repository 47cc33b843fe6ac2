/* Convolutions by oneDNN, single-threaded on pieces (some images, some output channels) that the
 * pool divides; a piece is brought into oneDNN's blocked format, convolved and brought back while
 * it is in the cache. The pieces follow from the sizes alone, so the result does not depend on the
 * number of threads; partial gradients of weights are added in a fixed order. */
#include <stdatomic.h>

#include "dev/cpu/conv/conv.h"
#include "dev/cpu/conv/dnnl.h"
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"

#define PIECE_FLOPS 1e8
#define PIECE_BYTES 524288.0

typedef struct Part { /* one of X, W, Y of a piece */
  DnnlDesc user, own;
  dnnl_primitive_t reorder; /* into `own`, or for the result out of it; NULL: they are the same */
  size_t bytes;             /* of `own` */
  int64_t image_step, channel_step; /* elements from piece to piece */
  int64_t offset;
} Part;

struct ConvDnnl {
  ConvShape s;
  Part part[3];
  dnnl_primitive_t conv;
  DnnlDesc scratch;
  size_t scratch_bytes;
  int64_t image_pieces, channel_pieces;
  int64_t sums; /* weights: partial gradients */
  int divided;  /* X or Y: the side whose channels are divided */
  int arg[3];   /* DNNL_ARG_ of X, W, Y */
  bool wide;    /* all in f32 */
  bool full;    /* its kernel is made for AVX-512 */
};

static dnnl_data_type_t dnnl_type(DType t) { return t == DT_F32 ? dnnl_f32 : dnnl_bf16; }

static int64_t divisor_up_to(int64_t n, int64_t most) {
  for (int64_t d = MIN(n, most); d > 1; d--)
    if (n % d == 0) return d;
  return 1;
}

/* ---- dividing ---- */

/* Images of a piece: enough work, together with their copies at home in a core's second cache, and
 * for large weights (or gradients of weights, which are added up) enough places to be worth a pass
 * over the weights. Few images: channels are divided as well, on the side that has more of them. */
static void divide(ConvDnnl *c) {
  const ConvView *x = &c->s.v[X], *y = &c->s.v[Y], *w = &c->s.v[W];
  double places = 1, in = 1, weights = (double)c->s.groups;
  for (int i = 2; i < y->n; i++) places *= (double)y->dims[i], in *= (double)x->dims[i];
  for (int i = 1; i < w->n; i++) weights *= (double)w->dims[i];
  int64_t images = x->dims[0];
  double image_bytes = 4 * (places * (double)y->dims[1] + in * (double)x->dims[1]);
  double flops = 2.0 * (double)images * places * weights;
  double pieces = flops < 4e6 ? 1 : MAX(flops / PIECE_FLOPS, 4);
  double least = c->s.form != CONV_WEIGHTS ? (weights > 65536 ? 512 : 1)
                 : weights > 262144        ? 4096
                 : weights > 65536         ? 1024
                                           : 512;
  int64_t per_piece = MAX(1, (int64_t)((double)images / pieces));
  if (pieces > 1) per_piece = MAX(1, MIN(per_piece, (int64_t)(PIECE_BYTES / image_bytes)));
  per_piece = divisor_up_to(images, MAX(per_piece, (int64_t)(least / places)));
  c->image_pieces = images / per_piece;
  c->channel_pieces = 1;
  c->divided =
      c->s.form == CONV_DATA || (c->s.form == CONV_WEIGHTS && x->dims[1] > y->dims[1]) ? X : Y;
  int64_t channels = c->s.v[c->divided].dims[1],
          want = c->s.groups > 1 || c->image_pieces >= 4
                     ? 1
                     : (int64_t)MIN(pieces, 8) / c->image_pieces;
  for (int64_t d = want; d > 1; d--)
    if (channels % d == 0 && channels / d % 16 == 0 &&
        channels / d >= (c->s.form == CONV_WEIGHTS ? 64 : 32)) {
      c->channel_pieces = d;
      break;
    }
  c->sums = c->s.form == CONV_WEIGHTS ? MIN(c->image_pieces, 8) : 1;
}

/* Dimensions as oneDNN counts them: weights without groups lack the first. */
static int first_dim(const ConvDnnl *c, int i) { return i == W && c->s.groups <= 1; }

static dnnl_status_t described(const ConvDnnl *c, const ConvView *v, int i, dnnl_data_type_t t,
                               DnnlDesc *out) {
  int skip = first_dim(c, i);
  return dnnl_desc_strides(out, v->n - skip, v->dims + skip, t, v->strides + skip);
}

/* The same in whatever layout oneDNN likes best, or in the given one. */
static dnnl_status_t tagged(const ConvDnnl *c, const ConvView *v, int i, dnnl_data_type_t t,
                            dnnl_format_tag_t tag, DnnlDesc *out) {
  int skip = first_dim(c, i);
  return dnnl_desc_tag(out, v->n - skip, v->dims + skip, t, tag);
}

/* Channels last, images outermost, nothing between the elements. */
static bool channels_last(const ConvView *v) {
  int64_t s = v->dims[1];
  if (v->strides[1] != 1) return false;
  for (int i = v->n - 1; i >= 2; i--) {
    if (v->dims[i] != 1 && v->strides[i] != s) return false;
    s *= v->dims[i];
  }
  return v->dims[0] == 1 || v->strides[0] == s;
}

/* `hint`: W as a forward pass has it. Gradients of weights are f32, what they belong to is not. */
static dnnl_status_t describe(const ConvDnnl *c, DnnlDescView x, DnnlDescView w, DnnlDescView y,
                              DnnlDescView hint, dnnl_primitive_desc_t *out) {
  const Dnnl *d = dnnl();
  dnnl_primitive_attr_t attr;
  dnnl_primitive_desc_t forward = NULL;
  dnnl_status_t s = d->primitive_attr_create(&attr);
  if (s) return s;
  d->primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
  DnnlConv conv = {x, hint, y, c->s.strides, c->s.dilates, c->s.low, c->s.high};
  s = dnnl_conv_forward(&conv, attr, &forward);
  conv.w = w;
  if (!s && c->s.form == CONV_FORWARD) {
    *out = forward;
  } else if (!s) {
    s = dnnl_conv_backward(&conv, c->s.form == CONV_WEIGHTS, attr, forward, out);
    d->primitive_desc_destroy(forward);
  }
  d->primitive_attr_destroy(attr);
  return s;
}

static const char *info(const_dnnl_primitive_desc_t pd) {
  const char *name = "";
  dnnl()->primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
  return name ? name : "";
}

/* The operands of one call: a piece of the images and of the divided channels; where a call's parts begin. */
static void one_piece(ConvDnnl *c, ConvView *v) {
  int64_t images = c->s.v[X].dims[0] / c->image_pieces;
  for (int i = 0; i < 3; i++) {
    v[i] = c->s.v[i];
    c->part[i].offset = v[i].offset;
    if (i == W) continue;
    v[i].dims[0] = images;
    c->part[i].image_step = images * v[i].strides[0];
  }
  if (c->channel_pieces <= 1) return;
  int divided = c->divided, w_dim = divided == X ? 2 : 1;
  int64_t cut = c->s.v[divided].dims[1] / c->channel_pieces;
  v[divided].dims[1] = cut;
  v[W].dims[w_dim] = cut;
  c->part[divided].channel_step = cut * v[divided].strides[1];
  c->part[W].channel_step = cut * v[W].strides[w_dim];
}

/* What a primitive is asked for, by operand; hint: see describe(). */
typedef struct Asked {
  dnnl_data_type_t t[3];
  DnnlDesc any[3], hint;
} Asked;

/* Channels-last data as they are, where oneDNN's kernel for them is as fast; leaves *pd NULL elsewhere. */
static void describe_in_place(ConvDnnl *c, const ConvView *v, const Asked *a,
                              dnnl_primitive_desc_t *pd) {
  int64_t places = 1;
  for (int i = 2; i < v[Y].n; i++) places *= v[Y].dims[i];
  bool few = c->s.form == CONV_WEIGHTS && v[X].dims[1] <= 4;
  if (!few && (c->s.form != CONV_FORWARD || places < 49)) return;
  if (c->s.groups > 1 || v[X].n > 5 || !channels_last(&v[X]) || !channels_last(&v[Y])) return;
  static const dnnl_format_tag_t last[] = {dnnl_nwc, dnnl_nhwc, dnnl_ndhwc};
  dnnl_format_tag_t tag = last[v[X].n - 3];
  DnnlDesc x = NULL, y = NULL;
  bool made = !tagged(c, &v[X], X, a->t[X], tag, &x) && !tagged(c, &v[Y], Y, a->t[Y], tag, &y) &&
              !describe(c, x, a->any[W], y, a->hint, pd);
  if (made && !strncmp(info(*pd), few ? "jit:avx512" : "brg", few ? 10 : 3)) {
    dnnl_desc_free(c->part[X].user);
    dnnl_desc_free(c->part[Y].user);
    c->part[X].user = x;
    c->part[Y].user = y;
    return;
  }
  if (made) dnnl()->primitive_desc_destroy(*pd);
  *pd = NULL;
  dnnl_desc_free(x);
  dnnl_desc_free(y);
}

static size_t whole_lines(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

/* The layout that pd chose for operand i, and what reorders the operand to it or back. */
static dnnl_status_t lay_out(ConvDnnl *c, int i, DnnlDescView md) {
  const Dnnl *d = dnnl();
  Part *p = &c->part[i];
  dnnl_status_t s = dnnl_desc_copy(&p->own, md);
  if (s) return s;
  p->bytes = whole_lines(d->memory_desc_get_size(md));
  if (d->memory_desc_equal(p->user, p->own)) return dnnl_success;
  bool back = i == c->s.result;
  dnnl_primitive_desc_t rd = NULL;
  s = d->reorder_primitive_desc_create(&rd, back ? p->own : p->user, d->engine,
                                       back ? p->user : p->own, d->engine, NULL);
  if (!s) s = d->primitive_create(&p->reorder, rd);
  if (rd) d->primitive_desc_destroy(rd);
  return s;
}

static dnnl_status_t ask(ConvDnnl *c, const ConvView *v, Asked *a) {
  dnnl_status_t s = dnnl_success;
  for (int i = 0; i < 3 && !s; i++) {
    /* partial gradients of weights are added up in f32 */
    DType t = c->s.form == CONV_WEIGHTS && i == W ? DT_F32 : c->s.t[i];
    a->t[i] = c->wide ? dnnl_f32 : dnnl_type(t);
    s = described(c, &v[i], i, c->wide ? dnnl_f32 : dnnl_type(c->s.t[i]), &c->part[i].user);
    if (!s) s = tagged(c, &v[i], i, a->t[i], dnnl_format_tag_any, &a->any[i]);
  }
  return s ? s : tagged(c, &v[W], W, a->t[X], dnnl_format_tag_any, &a->hint);
}

static void answered(Asked *a) {
  for (int i = 0; i < 3; i++) dnnl_desc_free(a->any[i]);
  dnnl_desc_free(a->hint);
}

/* What pd wants of its operands. */
static dnnl_status_t arrange(ConvDnnl *c, dnnl_primitive_desc_t pd) {
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
  const Dnnl *d = dnnl();
  dnnl_status_t s = dnnl_success;
  for (int i = 0; i < 3 && !s; i++) {
    c->arg[i] = args[c->s.form][i];
    s = lay_out(c, i, d->primitive_desc_query_md(pd, what[c->s.form][i], 0));
  }
  c->scratch_bytes = whole_lines(
      d->memory_desc_get_size(d->primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0)));
  dnnl_dim_t bytes[] = {(dnnl_dim_t)c->scratch_bytes};
  if (!s) s = dnnl_desc_tag(&c->scratch, 1, bytes, dnnl_u8, dnnl_a);
  return s ? s : d->primitive_create(&c->conv, pd);
}

/* The primitives of one piece. *fast: oneDNN has a kernel worth using. */
static dnnl_status_t build(ConvDnnl *c, bool *fast) {
  ConvView v[3];
  Asked a = {0};
  dnnl_primitive_desc_t pd = NULL;
  *fast = false;
  one_piece(c, v);
  dnnl_status_t s = ask(c, v, &a);
  if (!s) describe_in_place(c, v, &a, &pd);
  if (!s && !pd) s = describe(c, a.any[X], a.any[W], a.any[Y], a.hint, &pd);
  answered(&a);
  if (s) return s;
  *fast = strncmp(info(pd), "ref", 3) != 0 && !strstr(info(pd), "gemm");
  c->full = *fast && strstr(info(pd), "avx512") != NULL;
  s = arrange(c, pd);
  dnnl()->primitive_desc_destroy(pd);
  return s;
}

/* Of a gradient of weights some reach nothing but padding: for these oneDNN 2.6 has wrong results in bf16 (three dimensions). */
static bool in_padding(const ConvShape *s) {
  bool any = false;
  for (int i = 0; i < s->v[Y].n - 2; i++)
    any |= s->low[i] > (s->v[Y].dims[i + 2] - 1) * s->strides[i];
  return s->form == CONV_WEIGHTS && any;
}

ConvDnnl *conv_dnnl_new(const ConvShape *s, bool wide) {
  if (!dnnl() || (!wide && s->t[X] == DT_BF16 && in_padding(s))) return NULL;
  ConvDnnl *c = xcalloc(1, sizeof *c);
  c->s = *s;
  c->wide = wide;
  divide(c);
  bool fast = false;
  int was = dnnl_single_begin();
  dnnl_status_t status = build(c, &fast);
  dnnl_single_end(was);
  if (!status && fast) return c;
  conv_dnnl_free(c);
  return NULL;
}

bool conv_dnnl_full(const ConvDnnl *c) { return c->full; }

void conv_dnnl_free(ConvDnnl *c) {
  if (!c) return;
  for (int i = 0; i < 3; i++) {
    if (c->part[i].reorder) dnnl()->primitive_destroy(c->part[i].reorder);
    dnnl_desc_free(c->part[i].user);
    dnnl_desc_free(c->part[i].own);
  }
  dnnl_desc_free(c->scratch);
  if (c->conv) dnnl()->primitive_destroy(c->conv);
  free(c);
}

/* ---- running ---- */

typedef struct Run {
  const ConvDnnl *c;
  char *user[3];     /* X, W, Y */
  size_t size[3];    /* bytes of a user's element */
  char *weights;     /* in oneDNN's format: a block for each piece of channels, and of sums */
  atomic_int status; /* of oneDNN */
} Run;

static dnnl_status_t execute(dnnl_primitive_t p, int n, const int *arg, const DnnlDescView *md,
                             void *const *data) {
  const Dnnl *d = dnnl();
  dnnl_exec_arg_t a[4];
  dnnl_stream_t stream = NULL;
  dnnl_status_t s = d->stream_create(&stream, d->engine, dnnl_stream_default_flags);
  int made = 0;
  for (; made < n && !s; made++) {
    a[made].arg = arg[made];
    s = d->memory_create(&a[made].memory, md[made], d->engine, data[made]);
    if (s) break;
  }
  if (!s) s = d->primitive_execute(p, stream, n, a);
  if (!s) s = d->stream_wait(stream);
  while (made-- > 0) d->memory_destroy(a[made].memory);
  if (stream) d->stream_destroy(stream);
  return s;
}

static dnnl_status_t reorder(const Part *p, bool back, void *user, void *own) {
  static const int args[] = {DNNL_ARG_FROM, DNNL_ARG_TO};
  const DnnlDescView md[] = {back ? p->own : p->user, back ? p->user : p->own};
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
  int was = dnnl_single_begin();
  for (int64_t i = begin; i < end; i++) {
    const Part *p = &r->c->part[W];
    dnnl_status_t s = reorder(p, false, user_at(r, W, 0, i), r->weights + (size_t)i * p->bytes);
    if (s) r->status = s;
  }
  dnnl_single_end(was);
}

/* One piece; `weights` in oneDNN's format. `space` holds the pieces of X and Y and the scratchpad.
 */
static dnnl_status_t piece(const Run *r, int64_t image, int64_t channel, void *weights,
                           char *space) {
  const ConvDnnl *c = r->c;
  int arg[4];
  DnnlDescView md[4];
  void *data[4];
  dnnl_status_t s = dnnl_success;
  for (int i = 0; i < 3; i++) {
    const Part *p = &c->part[i];
    arg[i] = c->arg[i];
    md[i] = p->own;
    if (i == W) {
      data[i] = weights;
    } else if (!p->reorder) {
      data[i] = user_at(r, i, image, channel);
    } else {
      data[i] = space;
      space += p->bytes;
      if (i != c->s.result) s = reorder(p, false, user_at(r, i, image, channel), data[i]);
      if (s) return s;
    }
  }
  arg[3] = DNNL_ARG_SCRATCHPAD;
  md[3] = c->scratch;
  data[3] = space;
  s = execute(c->conv, c->scratch_bytes ? 4 : 3, arg, md, data);
  if (!s && c->s.result != W && c->part[c->s.result].reorder)
    s = reorder(&c->part[c->s.result], true, user_at(r, c->s.result, image, channel),
                data[c->s.result]);
  return s;
}

static size_t space_bytes(const ConvDnnl *c) {
  size_t n = c->scratch_bytes + 64;
  for (int i = 0; i < 3; i++)
    if (i != W && c->part[i].reorder) n += c->part[i].bytes;
  return n;
}

static void pieces(void *arg, int64_t begin, int64_t end) {
  Run *r = arg;
  const ConvDnnl *c = r->c;
  int was = dnnl_single_begin();
  char *space = cpu_scratch(space_bytes(c));
  for (int64_t i = begin; i < end; i++) {
    int64_t channel = i % c->channel_pieces, image = i / c->channel_pieces;
    char *w = c->part[W].reorder ? r->weights + (size_t)channel * c->part[W].bytes
                                 : user_at(r, W, 0, channel);
    dnnl_status_t s = piece(r, image, channel, w, space);
    if (s) r->status = s;
  }
  dnnl_single_end(was);
}

/* Gradient of weights: sum i of channel piece j. */
static void sum_pieces(void *arg, int64_t begin, int64_t end) {
  Run *r = arg;
  const ConvDnnl *c = r->c;
  size_t bytes = c->part[W].bytes;
  int was = dnnl_single_begin();
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
  dnnl_single_end(was);
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
  int was = dnnl_single_begin();
  for (int64_t i = begin; i < end; i++) {
    char *user = user_at(r, W, 0, i), *own = r->weights + (size_t)i * p->bytes;
    if (!p->reorder) {
      memcpy(user, own, dnnl()->memory_desc_get_size(p->own));
      continue;
    }
    dnnl_status_t s = reorder(p, true, user, own);
    if (s) r->status = s;
  }
  dnnl_single_end(was);
}

bool conv_dnnl_run(const ConvDnnl *c, void *const *data, int *status) {
  const Part *w = &c->part[W];
  bool sums = c->s.form == CONV_WEIGHTS;
  Run r = {.c = c};
  for (int i = 0; i < 3; i++) {
    r.user[i] = data[i];
    r.size[i] = c->wide ? 4 : (size_t)dtype_bytes(c->s.t[i]);
  }
  size_t bytes = sums || w->reorder ? w->bytes * (size_t)(c->channel_pieces * c->sums) : 0;
  if (bytes && !(r.weights = cpu_block_alloc(bytes))) return false;
  if (!sums) {
    if (w->reorder) cpu_parallel(c->channel_pieces, 1, weights_in, &r);
    cpu_parallel(c->image_pieces * c->channel_pieces, 1, pieces, &r);
  } else {
    cpu_parallel(c->sums * c->channel_pieces, 1, sum_pieces, &r);
    int64_t n = c->channel_pieces * (int64_t)(w->bytes / 4);
    Sum s = {(float *)(void *)r.weights, c->sums, n};
    if (c->sums > 1) cpu_parallel(n, 16384, add_sums, &s);
    cpu_parallel(c->channel_pieces, 1, weights_out, &r);
  }
  if (bytes) cpu_block_free(r.weights, bytes);
  *status = atomic_load(&r.status);
  return true;
}
