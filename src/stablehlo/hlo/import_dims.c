/* HLO operations with dimension numbers and windows. */
#include "stablehlo/hlo/import_priv.h"

static Attr *precision(HloOp *o) {
  static const char *const names[] = {"DEFAULT", "HIGH", "HIGHEST"};
  const Hlo__PrecisionConfig *p = o->i->precision_config;
  if (!p || p->n_operand_precision != 2) return NULL;
  Attr *each[2];
  bool set = false;
  for (int k = 0; k < 2; k++) {
    int v = p->operand_precision[k];
    if (v < 0 || v >= COUNT_OF(names)) return NULL;
    each[k] = attr_enum(o->s->im->m, str_from(names[v]));
    set |= v != 0;
  }
  return set ? attr_array(o->s->im->m, 2, each) : NULL;
}

/* ---- products -------------------------------------------------------------------------------- */

/* XLA's algorithms of a product, by number: types of the operands and of the sum, how many products. */
static const struct {
  DType in, sum;
  int products;
} algorithms[] = {
    [3] = {DT_F16, DT_F16, 1},  [4] = {DT_F16, DT_F32, 1},   [5] = {DT_BF16, DT_BF16, 1},
    [6] = {DT_BF16, DT_F32, 1}, [7] = {DT_BF16, DT_F32, 3},  [8] = {DT_BF16, DT_F32, 6},
    [9] = {DT_TF32, DT_F32, 1}, [10] = {DT_TF32, DT_F32, 3}, [11] = {DT_F32, DT_F32, 1},
    [12] = {DT_F64, DT_F64, 1}, [13] = {DT_BF16, DT_F32, 9},
};

static Err *put_algorithm(HloOp *o) {
  Module *m = o->s->im->m;
  int a = o->i->precision_config ? o->i->precision_config->algorithm : 0;
  if (!a) return NULL;
  if (a < 0 || a >= COUNT_OF(algorithms) || !algorithms[a].products)
    return err_new(ERR_UNIMPLEMENTED, "algorithm %d of a dot", a);
  Attr *in = attr_type(m, type_scalar(m, algorithms[a].in, NULL));
  hlo_put(o, "lhs_precision_type", in);
  hlo_put(o, "rhs_precision_type", in);
  hlo_put(o, "accumulation_type", attr_type(m, type_scalar(m, algorithms[a].sum, NULL)));
  hlo_put_int(o, "lhs_component_count", 1);
  hlo_put_int(o, "rhs_component_count", 1);
  hlo_put_int(o, "num_primitive_operations", algorithms[a].products);
  hlo_put_bool(o, "allow_imprecise_accumulation", false);
  return NULL;
}

Err *hlo_dot(HloOp *o, OpKind kind) {
  const Hlo__DotDimensions *d = o->i->dot_dimension_numbers;
  if (!d) return err_new(ERR_INVALID, "a dot without dimension numbers");
  hlo_put_ints(o, "lhs_batching_dimensions", d->n_lhs_batch_dimensions, d->lhs_batch_dimensions);
  hlo_put_ints(o, "rhs_batching_dimensions", d->n_rhs_batch_dimensions, d->rhs_batch_dimensions);
  hlo_put_ints(o, "lhs_contracting_dimensions", d->n_lhs_contracting_dimensions,
               d->lhs_contracting_dimensions);
  hlo_put_ints(o, "rhs_contracting_dimensions", d->n_rhs_contracting_dimensions,
               d->rhs_contracting_dimensions);
  TRY(put_algorithm(o));
  Attr *p = precision(o);
  if (p) hlo_put(o, "precision_config", p);
  return hlo_emit(o, kind);
}

/* ---- windows --------------------------------------------------------------------------------- */

typedef struct WindowLists { /* a window's dimensions by attribute */
  size_t n;
  int64_t size[HLO_MAX_DEPTH], stride[HLO_MAX_DEPTH], base[HLO_MAX_DEPTH], dilation[HLO_MAX_DEPTH],
      padding[2 * HLO_MAX_DEPTH], reversed[HLO_MAX_DEPTH];
} WindowLists;

static int64_t or_one(int64_t v) { return v ? v : 1; }

static Err *window_lists(HloOp *o, WindowLists *w) {
  const Hlo__Window *p = o->i->window;
  w->n = p ? p->n_dimensions : 0;
  if (w->n > HLO_MAX_DEPTH) return err_new(ERR_INVALID, "a window of %zu dimensions", w->n);
  for (size_t k = 0; k < w->n; k++) {
    const Hlo__WindowDimension *d = p->dimensions[k];
    w->size[k] = d->size;
    w->stride[k] = or_one(d->stride);
    w->base[k] = or_one(d->base_dilation);
    w->dilation[k] = or_one(d->window_dilation);
    w->padding[2 * k] = d->padding_low, w->padding[2 * k + 1] = d->padding_high;
    w->reversed[k] = d->window_reversal;
  }
  return NULL;
}

static void put_padding(HloOp *o, const WindowLists *w) {
  if (w->n) hlo_put_matrix(o, "padding", (int64_t)w->n, 2, w->padding);
}

/* reduce-window and select-and-scatter; the latter has no dilations, and calls two computations. */
Err *hlo_window(HloOp *o, OpKind kind) {
  WindowLists w;
  TRY(window_lists(o, &w));
  for (int k = 0; k < (kind == OP_SELECT_AND_SCATTER ? 2 : 1); k++) {
    const Hlo__Computation *c;
    TRY(hlo_called(o, k, &c));
    TRY(hlo_region(o, c));
  }
  hlo_put_ints(o, "window_dimensions", w.n, w.size);
  hlo_put_ints(o, "window_strides", w.n, w.stride);
  put_padding(o, &w);
  if (kind == OP_REDUCE_WINDOW) {
    hlo_put_ints(o, "base_dilations", w.n, w.base);
    hlo_put_ints(o, "window_dilations", w.n, w.dilation);
  }
  return hlo_emit(o, kind);
}

Err *hlo_convolution(HloOp *o, OpKind kind) {
  WindowLists w;
  TRY(window_lists(o, &w));
  const Hlo__ConvolutionDimensions *d = o->i->convolution_dimension_numbers;
  if (!d) return err_new(ERR_INVALID, "a convolution without dimension numbers");
  hlo_put_int(o, "input_batch_dimension", d->input_batch_dimension);
  hlo_put_int(o, "input_feature_dimension", d->input_feature_dimension);
  hlo_put_ints(o, "input_spatial_dimensions", d->n_input_spatial_dimensions,
               d->input_spatial_dimensions);
  hlo_put_int(o, "kernel_input_feature_dimension", d->kernel_input_feature_dimension);
  hlo_put_int(o, "kernel_output_feature_dimension", d->kernel_output_feature_dimension);
  hlo_put_ints(o, "kernel_spatial_dimensions", d->n_kernel_spatial_dimensions,
               d->kernel_spatial_dimensions);
  hlo_put_int(o, "output_batch_dimension", d->output_batch_dimension);
  hlo_put_int(o, "output_feature_dimension", d->output_feature_dimension);
  hlo_put_ints(o, "output_spatial_dimensions", d->n_output_spatial_dimensions,
               d->output_spatial_dimensions);
  hlo_put_int(o, "feature_group_count", or_one(o->i->feature_group_count));
  hlo_put_int(o, "batch_group_count", or_one(o->i->batch_group_count));
  hlo_put_ints(o, "window_strides", w.n, w.stride);
  hlo_put_ints(o, "lhs_dilation", w.n, w.base);
  hlo_put_ints(o, "rhs_dilation", w.n, w.dilation);
  hlo_put(o, "window_reversal", attr_ints(o->s->im->m, DT_I1, (int)w.n, w.reversed));
  put_padding(o, &w);
  Attr *p = precision(o);
  if (p) hlo_put(o, "precision_config", p);
  return hlo_emit(o, kind);
}

/* ---- indices --------------------------------------------------------------------------------- */

Err *hlo_gather(HloOp *o, OpKind kind) {
  const Hlo__GatherDimensions *d = o->i->gather_dimension_numbers;
  if (!d) return err_new(ERR_INVALID, "a gather without dimension numbers");
  hlo_put_ints(o, "offset_dims", d->n_offset_dims, d->offset_dims);
  hlo_put_ints(o, "collapsed_slice_dims", d->n_collapsed_slice_dims, d->collapsed_slice_dims);
  hlo_put_ints(o, "start_index_map", d->n_start_index_map, d->start_index_map);
  hlo_put_ints(o, "operand_batching_dims", d->n_operand_batching_dims, d->operand_batching_dims);
  hlo_put_ints(o, "start_indices_batching_dims", d->n_start_indices_batching_dims,
               d->start_indices_batching_dims);
  hlo_put_int(o, "index_vector_dim", d->index_vector_dim);
  hlo_put_ints(o, "slice_sizes", o->i->n_gather_slice_sizes, o->i->gather_slice_sizes);
  hlo_put_bool(o, "indices_are_sorted", o->i->indices_are_sorted);
  return hlo_emit(o, kind);
}

Err *hlo_scatter(HloOp *o, OpKind kind) {
  const Hlo__ScatterDimensions *d = o->i->scatter_dimension_numbers;
  if (!d) return err_new(ERR_INVALID, "a scatter without dimension numbers");
  const Hlo__Computation *c;
  TRY(hlo_called(o, 0, &c));
  TRY(hlo_region(o, c));
  hlo_put_ints(o, "update_window_dims", d->n_update_window_dims, d->update_window_dims);
  hlo_put_ints(o, "inserted_window_dims", d->n_inserted_window_dims, d->inserted_window_dims);
  hlo_put_ints(o, "scatter_dims_to_operand_dims", d->n_scatter_dims_to_operand_dims,
               d->scatter_dims_to_operand_dims);
  hlo_put_ints(o, "input_batching_dims", d->n_input_batching_dims, d->input_batching_dims);
  hlo_put_ints(o, "scatter_indices_batching_dims", d->n_scatter_indices_batching_dims,
               d->scatter_indices_batching_dims);
  hlo_put_int(o, "index_vector_dim", d->index_vector_dim);
  hlo_put_bool(o, "indices_are_sorted", o->i->indices_are_sorted);
  hlo_put_bool(o, "unique_indices", o->i->unique_indices);
  return hlo_emit(o, kind);
}
