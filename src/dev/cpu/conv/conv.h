/* dev/cpu, private to convolutions: what one computes, in one order of dimensions, and the ways to
 * compute it. Its form (ir/build.h) says which of the three is the result. Every operand is a strided view, so any order of dimensions, negative padding and groups need no
 * copy of their own. */
#ifndef WEFT_DEV_CPU_CONV_H
#define WEFT_DEV_CPU_CONV_H

#include "dev/cpu/kernel/kernel.h"
#include "ir/build.h"

enum { X, W, Y };

typedef struct ConvView { /* of X and Y: images, channels, spatial; of W: group, out, in, spatial */
  int64_t dims[12], strides[12];
  int64_t offset; /* elements */
  int n;
} ConvView;

typedef struct ConvShape {
  ConvForm form;
  DType t[3];
  ConvView v[3];
  int64_t strides[12], dilates[12], low[12], high[12]; /* dilates: 0 is none */
  int64_t groups;
  int result;   /* X, W or Y */
  bool swapped; /* by conv_swapped: lhs is Y, rhs is X */
  bool flip;    /* the rhs has to be turned round: gathered so before all else; along these */
  bool flipped[12];
  int64_t flip_dims[CPU_MAX_RANK], flip_strides[CPU_MAX_RANK], flip_offset;
  int flip_rank;
} ConvShape;

/* false: none of the three forms, or too many dimensions. */
bool conv_shape(const Op *op, ConvShape *out);
/* The same sums the other way round: a forward convolution of step 1 as a gradient of images with
 * the kernel turned, or back; X and Y change places. false: it has steps, or is a gradient of
 * weights. */
bool conv_turned(const ConvShape *s, ConvShape *out);
/* A gradient of images smaller than their window, as it comes from the kernel of a transposed
 * convolution: the gradient of that kernel as weights, with the rhs for images. false: another
 * form, or gaps in the window. */
bool conv_swapped(const ConvShape *s, ConvShape *out);

/* oneDNN's kernels take groups of eights of channels: so many smaller ones are put together, 8 at
 * most. */
int64_t conv_merged(const ConvShape *s);

/* Windows of many elements that do not overlap: as products they need no element twice. */
bool conv_patches(const ConvShape *s);

/* Backwards: every place of Y gives a window of X of its own, and so many of its pixels lie together
 * in a row; 1: not so. */
int64_t conv_fan(const ConvShape *s);

/* The share of a window's taps that lie inside the image, mean of all places; 1 without gaps, where
 * it is not worth asking. Below CONV_SPARSE leaving out the others pays. */
#define CONV_SPARSE 0.7
double conv_inside(const ConvShape *s);

/* Each way takes data[X, W, Y] at element 0 of the user's arrays. false: no memory. */

typedef struct ConvDnnl ConvDnnl;
ConvDnnl *conv_dnnl_new(const ConvShape *s,
                        bool wide);     /* wide: all in f32; NULL: oneDNN has nothing fast */
void conv_dnnl_free(ConvDnnl *c);       /* NULL is fine */
bool conv_dnnl_full(const ConvDnnl *c); /* its kernel is made for AVX-512 */
bool conv_dnnl_run(const ConvDnnl *c, void *const *data,
                   int *status); /* status: of oneDNN, 0 is good */

/* f32, or X and Y as bf16 where t[] says so; channels last: strides[1] is 1 in X and Y. The sums are not the plain ones: not for programs
 * that ask for more than the default precision. *finite: false if a result is not; then the results
 * are to be had another way. */
bool conv_winograd_fits(const ConvShape *s);
double conv_winograd_gain(const ConvShape *s); /* over direct sums in f32; 0: it does not fit */
bool conv_winograd_run(const ConvShape *s, void *const *data, bool *finite);

/* Few channels, or groups of few; f32 in any order. *finite: as above, for gradients of weights. */
bool conv_planar_fits(const ConvShape *s);
bool conv_planar_run(const ConvShape *s, void *const *data, bool *finite);

/* Gradients of images with few channels, f32, channels last and the pixels of a row without gaps.
 */
bool conv_spread_fits(const ConvShape *s);
bool conv_spread_run(const ConvShape *s, void *const *data);

/* Windows of few channels; f32, channels last as above. */
bool conv_rows_fits(const ConvShape *s);
bool conv_rows_run(const ConvShape *s, void *const *data);

/* All forms as products of windows that are gathered into gemm's panels; f32, channels last as
 * above.
 */
bool conv_gemm_fits(const ConvShape *s);
bool conv_gemm_run(const ConvShape *s, void *const *data);

/* Results and gradients of images as products of pixels where they are; f32, channels last as above. */
bool conv_runs_fits(const ConvShape *s);
bool conv_runs_run(const ConvShape *s, void *const *data);

/* Results and gradients of images by windows of one pixel, f32, where pixels are runs. */
bool conv_images_fits(const ConvShape *s);
bool conv_images_run(const ConvShape *s, void *const *data);

/* Each channel by itself, or groups of few; channels last. f32, or X and Y as bf16 where t[] says so, or f64; this
 * also of one channel alone. */
bool conv_depthwise_fits(const ConvShape *s);
bool conv_depthwise_run(const ConvShape *s, void *const *data);

/* bf16 (the result also f32), channels last: strides[1] is 1 in X and Y; by AMX. */
bool conv_amx_fits(const ConvShape *s);
bool conv_amx_run(const ConvShape *s, void *const *data);

/* f64, channels last as above. */
bool conv_f64_fits(const ConvShape *s);
bool conv_f64_run(const ConvShape *s, void *const *data);

/* A convolution of complex numbers, channels last as above, as one of real numbers: a pixel has twice as
 * many channels, and the weights, dense and in the order of their view, are four for each: (re w, im w) for
 * the real part of what they are multiplied with, (-im w, re w) for the imaginary one. */
void conv_parts_shape(const ConvShape *s, ConvShape *out);
void conv_parts_spread(const ConvShape *s, const void *weights, void *out);
/* The gradient of the weights from that of the real ones, products of all parts with all. */
void conv_parts_collect(const ConvShape *s, const void *sums, void *weights);

/* Integers that 16 bits hold to those of up to 32, channels last as above; both operands of one size.
 * */
bool conv_int_fits(const ConvShape *s);
bool conv_int_run(const ConvShape *s, void *const *data);

/* Convolutions of any form and type: the window under each result is gathered (im2col) and
 * multiplied by the kernel; by BLAS for f32, f64 and complex, by loops for integers; narrower
 * floats in f32, rounded once. */
typedef struct ConvGeneral ConvGeneral;
bool conv_general_accepts(const Op *op);
ConvGeneral *conv_general_new(const Op *op);
void conv_general_free(ConvGeneral *c); /* NULL is fine */
Err *conv_general_run(const ConvGeneral *c, const Op *op, void *const *in, void *const *out);

#endif
