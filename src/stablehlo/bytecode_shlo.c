/* The unversioned dialects in bytecode: stablehlo and chlo, as MLIR tools write them when nobody
 * asks for a portable artifact. Their attributes have StableHLO's own codes; a struct attribute
 * (dimension numbers, channel handle) becomes a dictionary of the flat attributes that the
 * canonical form has. Properties lie in the order of their names. */
#include "stablehlo/bytecode_priv.h"

#define MAX_FIELDS 9

/* What a struct attribute is made of: "name:kind", where i is a signed number, l a list of them, t
 * a type, b a byte. */
static const char *struct_fields(uint64_t code) {
  switch (code) {
  case 1: return "channel_id:i channel_type:i";
  case 4:
    return "input_batch_dimension:i input_feature_dimension:i input_spatial_dimensions:l "
           "kernel_input_feature_dimension:i kernel_output_feature_dimension:i "
           "kernel_spatial_dimensions:l "
           "output_batch_dimension:i output_feature_dimension:i output_spatial_dimensions:l";
  case 5:
    return "lhs_batching_dimensions:l rhs_batching_dimensions:l lhs_contracting_dimensions:l "
           "rhs_contracting_dimensions:l";
  case 7:
    return "offset_dims:l collapsed_slice_dims:l operand_batching_dims:l "
           "start_indices_batching_dims:l "
           "start_index_map:l index_vector_dim:i";
  case 11:
    return "update_window_dims:l inserted_window_dims:l input_batching_dims:l "
           "scatter_indices_batching_dims:l "
           "scatter_dims_to_operand_dims:l index_vector_dim:i";
  case 15:
    return "lhs_precision_type:t rhs_precision_type:t accumulation_type:t lhs_component_count:i "
           "rhs_component_count:i num_primitive_operations:i allow_imprecise_accumulation:b";
  default: return NULL;
  }
}

static Err *read_list(Reader *r, Cur *c, Attr **out) {
  int n = cur_count(c, 1);
  Attr *a = attr_ints(r->m, DT_I64, 0, NULL);
  a->n = n;
  a->ints = ARENA_ARRAY(r->m->arena, int64_t, n);
  for (int i = 0; i < n; i++) a->ints[i] = cur_svarint(c);
  *out = a;
  return bc_check(r, c, "list of numbers");
}

static Err *read_struct(Reader *r, Entry *e, Cur *c, const char *fields) {
  NamedAttr v[MAX_FIELDS];
  int n = 0;
  Str name, kind;
  while (vhlo_next_attr(&fields, &name, &kind)) {
    v[n].name = name;
    switch (kind.p[0]) {
    case 'i': v[n].value = attr_int(r->m, DT_I64, cur_svarint(c)); break;
    case 'l': TRY(read_list(r, c, &v[n].value)); break;
    case 'b': v[n].value = attr_bool(r->m, cur_byte(c) != 0); break;
    default: {
      Type *t;
      uint64_t i = cur_varint(c);
      TRY(bc_check(r, c, "type reference"));
      TRY(bc_type(r, i, &t));
      v[n].value = attr_type(r->m, t);
    }
    }
    n++;
  }
  e->attr = attr_dict(r->m, n, v);
  e->raw_kind = RAW_STRUCT;
  return NULL;
}

static double read_f64(Cur *c) {
  int64_t bits = cur_svarint(c);
  double v;
  memcpy(&v, &bits, 8);
  return v;
}

static Err *read_accuracy(Reader *r, Entry *e, Cur *c) {
  double atol = read_f64(c), rtol = read_f64(c);
  int64_t ulps = cur_svarint(c);
  uint64_t i = cur_varint(c);
  TRY(bc_check(r, c, "result accuracy"));
  Attr *mode;
  TRY(bc_attr(r, i, &mode));
  if (mode->kind != AT_ENUM) return bc_err(r, c->p, "expected an accuracy mode");
  NamedAttr v[] = {{STR("atol"), attr_float(r->m, DT_F64, atol)},
                   {STR("mode"), mode},
                   {STR("rtol"), attr_float(r->m, DT_F64, rtol)},
                   {STR("ulps"), attr_int(r->m, DT_I64, ulps)}};
  e->attr = attr_dict(r->m, 4, v);
  return NULL;
}

static Err *read_alias(Reader *r, Entry *e, Cur *c) {
  Attr *outputs, *operands;
  TRY(read_list(r, c, &outputs));
  int64_t index = cur_svarint(c);
  TRY(read_list(r, c, &operands));
  NamedAttr v[] = {{STR("operand_index"), attr_int(r->m, DT_I64, index)},
                   {STR("operand_tuple_indices"), operands},
                   {STR("output_tuple_indices"), outputs}};
  e->attr = attr_dict(r->m, 3, v);
  return NULL;
}

static Err *unimplemented(Reader *r, const Entry *e, const Cur *c, uint64_t code) {
  Err *err = bc_err(r, c->p, "attribute code %llu of the dialect '%.*s'", (unsigned long long)code,
                    STR_ARG(r->dialects[e->dialect].name));
  err->code = ERR_UNIMPLEMENTED;
  return err_hint(err, "write the program as a portable artifact (VHLO)");
}

Err *bc_shlo_attr(Reader *r, Entry *e, Cur *c) {
  /* StableHLO's code of an enumeration -> VHLO's, whose values are the same */
  static const uint8_t enums[] = {
      [2] = 3, [3] = 4, [6] = 7, [8] = 11, [9] = 12, [10] = 13, [12] = 16, [16] = 19};
  DialectId dialect = r->dialects[e->dialect].id;
  uint64_t code = cur_varint(c);
  if (dialect == D_CHLO && code < 2) code += 2; /* its two enumerations */
  else if (dialect != D_STABLEHLO) return unimplemented(r, e, c, code);
  const char *fields = struct_fields(code);
  if (fields) return read_struct(r, e, c, fields);
  if (code < COUNT_OF(enums) && enums[code]) {
    uint64_t v = cur_varint(c);
    const char *name = vhlo_enum_name(enums[code], v);
    if (!name) return bc_err(r, c->p, "value %llu of an enumeration", (unsigned long long)v);
    e->attr = attr_enum(r->m, str_from(name));
    return NULL;
  }
  switch (code) {
  case 13: return read_list(r, c, &e->attr); /* bounds of a tensor type */
  case 14: return read_alias(r, e, c);
  case 17: return read_accuracy(r, e, c);
  default: return unimplemented(r, e, c, code);
  }
}

Err *bc_shlo_type(Reader *r, TypeEntry *e, Cur *c) {
  uint64_t code = cur_varint(c);
  if (code == 0) {
    e->type = type_simple(r->m, TY_TOKEN);
    return NULL;
  }
  if (code != 1) return bc_err(r, c->p, "type code %llu of StableHLO", (unsigned long long)code);
  int n = cur_count(c, 1);
  Type **v = ARENA_ARRAY(r->m->arena, Type *, n);
  for (int i = 0; i < n; i++) {
    uint64_t t = cur_varint(c);
    TRY(bc_check(r, c, "type reference"));
    TRY(bc_type(r, t, &v[i]));
    if (r->types[t].weight > BYTECODE_MAX_WEIGHT - e->weight)
      return bc_err(r, c->p, "a type of absurd size");
    e->weight += r->types[t].weight;
  }
  e->type = type_of_elems(r->m, TY_FUTURE, DT_INVALID, n, v);
  return NULL;
}

/* R: always there, O: may be absent. Ops without attributes have no properties. */
static const struct {
  const char *name, *attrs;
} props[] = {
    {"chlo.ragged_dot", "precision_config:O ragged_dot_dimension_numbers:R"},
    {"chlo.scan", "dimension:R is_associative:O is_reverse:O scan_dim_size:O"},
    {"chlo.top_k", "k:R"},
    {"stablehlo.all_gather",
     "all_gather_dim:R channel_handle:O replica_groups:R use_global_device_ids:O"},
    {"stablehlo.all_reduce", "channel_handle:O replica_groups:R use_global_device_ids:O"},
    {"stablehlo.all_to_all", "channel_handle:O concat_dimension:R replica_groups:R split_count:R "
                             "split_dimension:R"},
    {"stablehlo.batch_norm_grad", "epsilon:R feature_index:R"},
    {"stablehlo.batch_norm_inference", "epsilon:R feature_index:R"},
    {"stablehlo.batch_norm_training", "epsilon:R feature_index:R"},
    {"stablehlo.broadcast", "broadcast_sizes:R"},
    {"stablehlo.broadcast_in_dim", "broadcast_dimensions:R"},
    {"stablehlo.cbrt", "result_accuracy:O"},
    {"stablehlo.cholesky", "lower:O"},
    {"stablehlo.collective_broadcast", "channel_handle:O has_dynamic_root:O replica_groups:R"},
    {"stablehlo.collective_permute", "channel_handle:O source_target_pairs:R"},
    {"stablehlo.collective_reduce",
     "channel_handle:O has_dynamic_root:O replica_groups:R use_global_device_ids:O"},
    {"stablehlo.compare", "compare_type:O comparison_direction:R"},
    {"stablehlo.composite", "composite_attributes:O decomposition:R name:R version:O"},
    {"stablehlo.concatenate", "dimension:R"},
    {"stablehlo.constant", "value:R"},
    {"stablehlo.convolution",
     "batch_group_count:R dimension_numbers:R feature_group_count:R lhs_dilation:O "
     "padding:O precision_config:O rhs_dilation:O window_reversal:O window_strides:O"},
    {"stablehlo.cosine", "result_accuracy:O"},
    {"stablehlo.cross-replica-sum", "replica_groups:R"},
    {"stablehlo.custom_call",
     "api_version:O backend_config:O call_target_name:R called_computations:O has_side_effect:O "
     "operand_layouts:O output_operand_aliases:O result_layouts:O result_tilings:O"},
    {"stablehlo.dot", "precision_config:O"},
    {"stablehlo.dot_general", "algorithm:O dot_dimension_numbers:R precision_config:O"},
    {"stablehlo.dynamic_broadcast_in_dim", "broadcast_dimensions:R known_expanding_dimensions:O "
                                           "known_nonexpanding_dimensions:O"},
    {"stablehlo.dynamic_conv",
     "batch_group_count:R dimension_numbers:R feature_group_count:R lhs_dilation:O "
     "precision_config:O rhs_dilation:O window_reversal:O window_strides:O"},
    {"stablehlo.dynamic_gather", "dimension_numbers:R indices_are_sorted:O"},
    {"stablehlo.dynamic_iota", "iota_dimension:R"},
    {"stablehlo.dynamic_slice", "slice_sizes:R"},
    {"stablehlo.einsum", "einsum_config:R"},
    {"stablehlo.exponential", "result_accuracy:O"},
    {"stablehlo.exponential_minus_one", "result_accuracy:O"},
    {"stablehlo.fft", "fft_length:R fft_type:R"},
    {"stablehlo.gather", "dimension_numbers:R indices_are_sorted:O slice_sizes:R"},
    {"stablehlo.get_dimension_size", "dimension:R"},
    {"stablehlo.get_tuple_element", "index:R"},
    {"stablehlo.infeed", "infeed_config:O layout:O"},
    {"stablehlo.iota", "iota_dimension:R"},
    {"stablehlo.log", "result_accuracy:O"},
    {"stablehlo.log_plus_one", "result_accuracy:O"},
    {"stablehlo.logistic", "result_accuracy:O"},
    {"stablehlo.map", "dimensions:R"},
    {"stablehlo.outfeed", "outfeed_config:O"},
    {"stablehlo.pad", "edge_padding_high:R edge_padding_low:R interior_padding:R"},
    {"stablehlo.recv", "channel_handle:R is_host_transfer:O source_target_pairs:O"},
    {"stablehlo.reduce", "dimensions:R"},
    {"stablehlo.reduce_precision", "exponent_bits:R mantissa_bits:R"},
    {"stablehlo.reduce_scatter",
     "channel_handle:O replica_groups:R scatter_dimension:R use_global_device_ids:O"},
    {"stablehlo.reduce_window", "base_dilations:O padding:O window_dilations:O window_dimensions:R "
                                "window_strides:O"},
    {"stablehlo.reverse", "dimensions:R"},
    {"stablehlo.rng", "rng_distribution:R"},
    {"stablehlo.rng_bit_generator", "rng_algorithm:R"},
    {"stablehlo.rsqrt", "result_accuracy:O"},
    {"stablehlo.scatter", "indices_are_sorted:O scatter_dimension_numbers:R unique_indices:O"},
    {"stablehlo.select_and_scatter", "padding:O window_dimensions:O window_strides:O"},
    {"stablehlo.send", "channel_handle:R is_host_transfer:O source_target_pairs:O"},
    {"stablehlo.set_dimension_size", "dimension:R"},
    {"stablehlo.sine", "result_accuracy:O"},
    {"stablehlo.slice", "limit_indices:R start_indices:R strides:R"},
    {"stablehlo.sort", "dimension:O is_stable:O"},
    {"stablehlo.sqrt", "result_accuracy:O"},
    {"stablehlo.tan", "result_accuracy:O"},
    {"stablehlo.tanh", "result_accuracy:O"},
    {"stablehlo.torch_index_select", "batch_dims:R dim:R"},
    {"stablehlo.transpose", "permutation:R"},
    {"stablehlo.triangular_solve", "left_side:R lower:R transpose_a:R unit_diagonal:R"},
    {"stablehlo.unary_einsum", "einsum_config:R"},
};

const char *bc_shlo_props(Str full_name) {
  for (int i = 0; i < COUNT_OF(props); i++)
    if (str_is(full_name, props[i].name)) return props[i].attrs;
  return NULL;
}
