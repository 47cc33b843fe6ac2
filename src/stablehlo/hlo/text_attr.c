/* Attributes of HLO text: NAME=VALUE after an instruction, into the fields that the proto has for them. */
#include <ctype.h>
#include <stdlib.h>

#include "stablehlo/hlo/text.h"

#define NEW_IN(field, lower) ((field) ? (field) : ((field) = HLO_NEW(t, lower)))

/* ---- lists ----------------------------------------------------------------------------------- */

static Err *brace_ints(HloText *t, size_t *n, int64_t **out) {
  return hlo_int_list(t, "{", "}", n, out);
}

static Err *dimensions(HloText *t, Hlo__Instruction *i) {
  return brace_ints(t, &i->n_dimensions, &i->dimensions);
}
static Err *slice_sizes(HloText *t, Hlo__Instruction *i) { /* gather's */
  return brace_ints(t, &i->n_gather_slice_sizes, &i->gather_slice_sizes);
}
static Err *dynamic_slice_sizes(HloText *t, Hlo__Instruction *i) {
  return brace_ints(t, &i->n_dynamic_slice_sizes, &i->dynamic_slice_sizes);
}
static Err *fft_length(HloText *t, Hlo__Instruction *i) {
  return brace_ints(t, &i->n_fft_length, &i->fft_length);
}

/* {[0:4], [1:8:2]} */
static Err *slice(HloText *t, Hlo__Instruction *i) {
  VEC(Hlo__SliceDimension *) v = {0};
  TRY(hlo_want(t, "{"));
  Err *e = NULL;
  while (!e && !hlo_take(t, "}")) {
    if (v.n) e = hlo_want(t, ",");
    Hlo__SliceDimension *d = *vec_push(&v) = HLO_NEW(t, slice_dimension);
    d->stride = 1;
    if (!e) e = hlo_want(t, "[");
    if (!e) e = hlo_int(t, &d->start);
    if (!e) e = hlo_want(t, ":");
    if (!e) e = hlo_int(t, &d->limit);
    if (!e && hlo_take(t, ":")) e = hlo_int(t, &d->stride);
    if (!e) e = hlo_want(t, "]");
  }
  i->n_slice_dimensions = (size_t)v.n;
  i->slice_dimensions = arena_dup(t->a, v.v, sizeof *v.v * (size_t)v.n);
  vec_free(&v);
  return e;
}

/* 0_1_0x-1_2: low, high and interior of each dimension. */
static Err *padding(HloText *t, Hlo__Instruction *i) {
  VEC(Hlo__PaddingDimension *) v = {0};
  Err *e = NULL;
  do {
    Hlo__PaddingDimension *d = *vec_push(&v) = HLO_NEW(t, padding_dimension);
    e = hlo_int(t, &d->edge_padding_low);
    if (!e) e = hlo_want(t, "_");
    if (!e) e = hlo_int(t, &d->edge_padding_high);
    if (!e && hlo_take(t, "_")) e = hlo_int(t, &d->interior_padding);
  } while (!e && hlo_take(t, "x"));
  Hlo__Padding *p = i->padding_config = HLO_NEW(t, padding);
  p->n_dimensions = (size_t)v.n;
  p->dimensions = arena_dup(t->a, v.v, sizeof *v.v * (size_t)v.n);
  vec_free(&v);
  return e;
}

/* ---- windows --------------------------------------------------------------------------------- */

typedef struct WindowPart {
  const char *name;
  size_t at, high; /* field; of the second number, 0: there is none */
} WindowPart;
#define PART(f) offsetof(Hlo__WindowDimension, f)
static const WindowPart window_parts[] = {
    {"size", PART(size), 0},
    {"stride", PART(stride), 0},
    {"pad", PART(padding_low), PART(padding_high)},
    {"lhs_dilate", PART(base_dilation), 0},
    {"rhs_dilate", PART(window_dilation), 0},
    {"rhs_reversal", PART(window_reversal), 0},
};

static Err *window_numbers(HloText *t, Hlo__Window *w, const WindowPart *part) {
  size_t k = 0;
  do {
    if (k == HLO_MAX_DEPTH) return hlo_text_err(t, "a window of too many dimensions");
    if (k == w->n_dimensions) {
      Hlo__WindowDimension *d = w->dimensions[w->n_dimensions++] = HLO_NEW(t, window_dimension);
      d->size = d->stride = d->base_dilation = d->window_dilation = 1;
    }
    char *d = (char *)w->dimensions[k++];
    int64_t v, high;
    TRY(hlo_int(t, &v));
    if (part->at == PART(window_reversal)) *(protobuf_c_boolean *)(d + part->at) = v != 0;
    else *(int64_t *)(d + part->at) = v;
    if (!part->high) continue;
    TRY(hlo_want(t, "_"));
    TRY(hlo_int(t, &high));
    *(int64_t *)(d + part->high) = high;
  } while (hlo_take(t, "x"));
  return NULL;
}

/* {size=3x3 stride=2x2 pad=0_1x0_1} */
static Err *window(HloText *t, Hlo__Instruction *i) {
  Hlo__Window *w = i->window = HLO_NEW(t, window);
  w->dimensions = ARENA_ARRAY(t->a, Hlo__WindowDimension *, HLO_MAX_DEPTH);
  TRY(hlo_want(t, "{"));
  while (!hlo_take(t, "}")) {
    Str name;
    TRY(hlo_word(t, &name));
    TRY(hlo_want(t, "="));
    const WindowPart *part = NULL;
    for (int k = 0; k < COUNT_OF(window_parts); k++)
      if (str_is(name, window_parts[k].name)) part = &window_parts[k];
    if (!part) return hlo_text_err(t, "a window has no '%.*s'", STR_ARG(name));
    TRY(window_numbers(t, w, part));
  }
  return NULL;
}

/* ---- dimension numbers ----------------------------------------------------------------------- */

typedef struct Labels { /* b01f */
  int64_t batch, feature, spatial[HLO_MAX_DEPTH];
  size_t n;
} Labels;

static Err *labels(HloText *t, char batch, char feature, Labels *out) {
  *out = (Labels){-1, -1, {0}, 0};
  hlo_skip(t);
  for (int64_t at = 0; t->p < t->end && isalnum((unsigned char)*t->p); at++, t->p++) {
    char c = *t->p;
    if (c == batch) out->batch = at;
    else if (c == feature) out->feature = at;
    else if (isdigit((unsigned char)c)) out->spatial[c - '0'] = at, out->n++;
    else return hlo_text_err(t, "dim_labels has '%c'", c);
  }
  return out->batch >= 0 && out->feature >= 0 && out->n <= 10
             ? NULL
             : hlo_text_err(t, "dim_labels without '%c' or '%c'", batch, feature);
}

/* b01f_01io->b01f */
static Err *dim_labels(HloText *t, Hlo__Instruction *i) {
  Labels in, kernel, out;
  TRY(labels(t, 'b', 'f', &in));
  TRY(hlo_want(t, "_"));
  TRY(labels(t, 'i', 'o', &kernel));
  TRY(hlo_want(t, "->"));
  TRY(labels(t, 'b', 'f', &out));
  Hlo__ConvolutionDimensions *d = i->convolution_dimension_numbers =
      HLO_NEW(t, convolution_dimensions);
  size_t bytes = sizeof(int64_t);
  d->input_batch_dimension = in.batch, d->input_feature_dimension = in.feature;
  d->kernel_input_feature_dimension = kernel.batch,
  d->kernel_output_feature_dimension = kernel.feature;
  d->output_batch_dimension = out.batch, d->output_feature_dimension = out.feature;
  d->n_input_spatial_dimensions = in.n;
  d->input_spatial_dimensions = arena_dup(t->a, in.spatial, in.n * bytes);
  d->n_kernel_spatial_dimensions = kernel.n;
  d->kernel_spatial_dimensions = arena_dup(t->a, kernel.spatial, kernel.n * bytes);
  d->n_output_spatial_dimensions = out.n;
  d->output_spatial_dimensions = arena_dup(t->a, out.spatial, out.n * bytes);
  return NULL;
}

#define INTS_OF(fn, message, lower, field)                            \
  static Err *fn(HloText *t, Hlo__Instruction *i) {                   \
    NEW_IN(i->message, lower);                                        \
    return brace_ints(t, &i->message->n_##field, &i->message->field); \
  }
INTS_OF(lhs_batch, dot_dimension_numbers, dot_dimensions, lhs_batch_dimensions)
INTS_OF(rhs_batch, dot_dimension_numbers, dot_dimensions, rhs_batch_dimensions)
INTS_OF(lhs_contracting, dot_dimension_numbers, dot_dimensions, lhs_contracting_dimensions)
INTS_OF(rhs_contracting, dot_dimension_numbers, dot_dimensions, rhs_contracting_dimensions)
INTS_OF(offset_dims, gather_dimension_numbers, gather_dimensions, offset_dims)
INTS_OF(collapsed_slice, gather_dimension_numbers, gather_dimensions, collapsed_slice_dims)
INTS_OF(start_index_map, gather_dimension_numbers, gather_dimensions, start_index_map)
INTS_OF(operand_batching, gather_dimension_numbers, gather_dimensions, operand_batching_dims)
INTS_OF(indices_batching, gather_dimension_numbers, gather_dimensions, start_indices_batching_dims)
INTS_OF(update_window, scatter_dimension_numbers, scatter_dimensions, update_window_dims)
INTS_OF(inserted_window, scatter_dimension_numbers, scatter_dimensions, inserted_window_dims)
INTS_OF(to_operand_dims, scatter_dimension_numbers, scatter_dimensions,
        scatter_dims_to_operand_dims)
INTS_OF(input_batching, scatter_dimension_numbers, scatter_dimensions, input_batching_dims)
INTS_OF(scatter_batching, scatter_dimension_numbers, scatter_dimensions,
        scatter_indices_batching_dims)

/* Of a gather or a scatter: the opcode has been read. */
static Err *index_vector_dim(HloText *t, Hlo__Instruction *i) {
  if (!strcmp(i->opcode, "scatter"))
    return hlo_int(t, &NEW_IN(i->scatter_dimension_numbers, scatter_dimensions)->index_vector_dim);
  return hlo_int(t, &NEW_IN(i->gather_dimension_numbers, gather_dimensions)->index_vector_dim);
}

/* ---- words ----------------------------------------------------------------------------------- */

static Err *boolean(HloText *t, protobuf_c_boolean *out) {
  Str word;
  TRY(hlo_word(t, &word));
  *out = str_is(word, "true") || str_is(word, "1");
  return NULL;
}
#define BOOL_OF(fn, field) \
  static Err *fn(HloText *t, Hlo__Instruction *i) { return boolean(t, &i->field); }
BOOL_OF(is_stable, is_stable)
BOOL_OF(sorted, indices_are_sorted)
BOOL_OF(unique, unique_indices)
BOOL_OF(global_ids, use_global_device_ids)
BOOL_OF(largest, largest)
BOOL_OF(side_effect, custom_call_has_side_effect)

#define OPTION_OF(fn, message, lower, field)              \
  static Err *fn(HloText *t, Hlo__Instruction *i) {       \
    return boolean(t, &NEW_IN(i->message, lower)->field); \
  }
OPTION_OF(left_side, triangular_solve_options, triangular_solve_options, left_side)
OPTION_OF(unit_diagonal, triangular_solve_options, triangular_solve_options, unit_diagonal)

static Err *lower(HloText *t, Hlo__Instruction *i) {
  if (!strcmp(i->opcode, "cholesky"))
    return boolean(t, &NEW_IN(i->cholesky_options, cholesky_options)->lower);
  return boolean(t, &NEW_IN(i->triangular_solve_options, triangular_solve_options)->lower);
}

/* The place of a word in a list, "A|B|C". */
static Err *choice(HloText *t, const char *choices, int32_t first, int32_t *out) {
  Str word;
  TRY(hlo_word(t, &word));
  *out = first;
  for (const char *p = choices; p; p++, ++*out) {
    size_t n = strcspn(p, "|");
    if (str_eq((Str){p, n}, word)) return NULL;
    p = strchr(p, '|');
    if (!p) break;
  }
  return hlo_text_err(t, "'%.*s' is none of %s", STR_ARG(word), choices);
}

static Err *transpose_a(HloText *t, Hlo__Instruction *i) {
  NEW_IN(i->triangular_solve_options, triangular_solve_options);
  return choice(t, "NO_TRANSPOSE|TRANSPOSE|ADJOINT", 1, &i->triangular_solve_options->transpose_a);
}
static Err *fft_type(HloText *t, Hlo__Instruction *i) {
  return choice(t, "FFT|IFFT|RFFT|IRFFT", 0, &i->fft_type);
}
static Err *distribution(HloText *t, Hlo__Instruction *i) {
  return choice(t, "rng_uniform|rng_normal", 1, &i->distribution);
}
static Err *algorithm(HloText *t, Hlo__Instruction *i) {
  if (!strcmp(i->opcode, "rng-bit-generator"))
    return choice(t, "rng_default|rng_three_fry|rng_philox", 0, &i->rng_algorithm);
  NEW_IN(i->precision_config, precision_config);
  return choice(
      t,
      "unset|dot_any_f8_any_f8_f32|dot_any_f8_any_f8_f32_fast_accum|dot_f16_f16_f16|dot_f16_f16_"
      "f32|"
      "dot_bf16_bf16_bf16|dot_bf16_bf16_f32|dot_bf16_bf16_f32_x3|dot_bf16_bf16_f32_x6|"
      "dot_tf32_tf32_f32|dot_tf32_tf32_f32_x3|dot_f32_f32_f32|dot_f64_f64_f64|dot_bf16_bf16_f32_x9",
      0, &i->precision_config->algorithm);
}
static Err *operand_precision(HloText *t, Hlo__Instruction *i) {
  Hlo__PrecisionConfig *p = NEW_IN(i->precision_config, precision_config);
  int32_t v[16];
  TRY(hlo_want(t, "{"));
  while (!hlo_take(t, "}")) {
    if (p->n_operand_precision == COUNT_OF(v)) return hlo_text_err(t, "too many precisions");
    if (p->n_operand_precision) TRY(hlo_want(t, ","));
    TRY(choice(t, "default|high|highest", 0, &v[p->n_operand_precision++]));
  }
  p->operand_precision = arena_dup(t->a, v, sizeof *v * p->n_operand_precision);
  return NULL;
}

static Err *word_to(HloText *t, char **out) {
  Str word;
  TRY(hlo_word(t, &word));
  *out = hlo_cstr(t, word);
  return NULL;
}
static Err *direction(HloText *t, Hlo__Instruction *i) {
  return word_to(t, &i->comparison_direction);
}
static Err *compare_type(HloText *t, Hlo__Instruction *i) {
  return word_to(t, &i->comparison_type);
}

static Err *target(HloText *t, Hlo__Instruction *i) {
  Str s;
  TRY(hlo_string(t, &s));
  i->custom_call_target = hlo_cstr(t, s);
  return NULL;
}

/* A string, or a JSON object as it stands. */
static Err *backend_config(HloText *t, Hlo__Instruction *i) {
  Str s;
  hlo_skip(t);
  const char *from = t->p;
  if (hlo_at(t, "\"")) {
    TRY(hlo_string(t, &s));
  } else {
    TRY(hlo_nested(t, '{', &s));
    s = (Str){from, (size_t)(t->p - from)};
  }
  i->backend_config = (ProtobufCBinaryData){s.n, arena_dup(t->a, s.p, s.n)};
  return NULL;
}

static Err *api_version(HloText *t, Hlo__Instruction *i) {
  return choice(t,
                "API_VERSION_UNSPECIFIED|API_VERSION_ORIGINAL|API_VERSION_STATUS_RETURNING|"
                "API_VERSION_STATUS_RETURNING_UNIFIED|API_VERSION_TYPED_FFI",
                0, &i->custom_call_api_version);
}

/* ---- numbers --------------------------------------------------------------------------------- */

#define NUMBER_OF(fn, field) \
  static Err *fn(HloText *t, Hlo__Instruction *i) { return hlo_int(t, &i->field); }
NUMBER_OF(iota_dimension, dimensions[0])
NUMBER_OF(tuple_index, tuple_index)
NUMBER_OF(feature_index, feature_index)
NUMBER_OF(feature_groups, feature_group_count)
NUMBER_OF(batch_groups, batch_group_count)
NUMBER_OF(channel_id, channel_id)
NUMBER_OF(top_k, k)

static Err *one_dimension(HloText *t, Hlo__Instruction *i) {
  i->n_dimensions = 1;
  i->dimensions = ARENA_ARRAY(t->a, int64_t, 1);
  return iota_dimension(t, i);
}

static Err *i32(HloText *t, int32_t *out) {
  int64_t v;
  TRY(hlo_int(t, &v));
  *out = (int32_t)v;
  return NULL;
}
static Err *exponent_bits(HloText *t, Hlo__Instruction *i) { return i32(t, &i->exponent_bits); }
static Err *mantissa_bits(HloText *t, Hlo__Instruction *i) { return i32(t, &i->mantissa_bits); }

static Err *epsilon(HloText *t, Hlo__Instruction *i) {
  hlo_skip(t);
  char digits[40], *end;
  size_t n = MIN((size_t)(t->end - t->p), sizeof digits - 1);
  memcpy(digits, t->p, n);
  digits[n] = 0;
  i->epsilon = strtof(digits, &end);
  t->p += end - digits;
  return end == digits ? hlo_text_err(t, "a number is expected") : NULL;
}

/* ---- computations ---------------------------------------------------------------------------- */

Hlo__Computation *hlo_computation_named(HloText *t, Str name) {
  Hlo__Computation *c = map_get(t->computations, name);
  if (c) return c;
  c = HLO_NEW(t, computation);
  c->name = hlo_cstr(t, name);
  c->id = ++t->next_id;
  map_set(t->computations, name, c);
  return c;
}

static Err *add_called(HloText *t, Hlo__Instruction *i, size_t at) {
  Str name;
  TRY(hlo_word(t, &name));
  size_t n = MAX(i->n_called_computation_ids, at + 1);
  int64_t *all = ARENA_ARRAY(t->a, int64_t, n);
  for (size_t k = 0; k < i->n_called_computation_ids; k++) all[k] = i->called_computation_ids[k];
  all[at] = hlo_computation_named(t, name)->id;
  i->n_called_computation_ids = n;
  i->called_computation_ids = all;
  return NULL;
}
static Err *first_called(HloText *t, Hlo__Instruction *i) { return add_called(t, i, 0); }
static Err *second_called(HloText *t, Hlo__Instruction *i) { return add_called(t, i, 1); }

static Err *called_list(HloText *t, Hlo__Instruction *i) {
  if (!hlo_at(t, "{")) return first_called(t, i);
  hlo_take(t, "{");
  for (size_t k = 0; !hlo_take(t, "}"); k++) {
    if (k == 4096) return hlo_text_err(t, "too many computations");
    if (k) TRY(hlo_want(t, ","));
    TRY(add_called(t, i, k));
  }
  return NULL;
}

static Err *sharding(HloText *t, Hlo__Instruction *i) { return hlo_text_sharding(t, &i->sharding); }

/* ---- frontend attributes --------------------------------------------------------------------- */

/* {name="text", name={text}} */
Err *hlo_text_frontend(HloText *t, Hlo__FrontendAttributes **out) {
  VEC(Hlo__StringEntry *) v = {0};
  Hlo__FrontendAttributes *all = *out = HLO_NEW(t, frontend_attributes);
  TRY(hlo_want(t, "{"));
  Err *e = NULL;
  while (!e && !hlo_take(t, "}")) {
    Hlo__StringEntry *f = *vec_push(&v) = HLO_NEW(t, string_entry);
    Str s = {0};
    if (v.n > 1) e = hlo_want(t, ",");
    if (!e) e = hlo_word(t, &s);
    f->key = hlo_cstr(t, s);
    if (!e) e = hlo_want(t, "=");
    hlo_skip(t);
    const char *from = t->p;
    if (!e && hlo_at(t, "{")) {
      e = hlo_nested(t, '{', &s);
      s = (Str){from, (size_t)(t->p - from)};
    } else if (!e) {
      e = hlo_string(t, &s);
    }
    if (!e) f->value = hlo_cstr(t, s);
  }
  all->n_map = (size_t)v.n;
  all->map = arena_dup(t->a, v.v, sizeof *v.v * (size_t)v.n);
  vec_free(&v);
  return e;
}
static Err *frontend(HloText *t, Hlo__Instruction *i) {
  return hlo_text_frontend(t, &i->frontend_attributes);
}

/* {op_type="dot" op_name="jit(f)/dot" source_file="a.py" source_line=3} */
static Err *metadata(HloText *t, Hlo__Instruction *i) {
  Hlo__Metadata *m = i->metadata = HLO_NEW(t, metadata);
  TRY(hlo_want(t, "{"));
  while (!hlo_take(t, "}")) {
    Str name, s, rest;
    TRY(hlo_word(t, &name));
    TRY(hlo_want(t, "="));
    if (hlo_at(t, "\"")) {
      TRY(hlo_string(t, &s));
      char **to = str_is(name, "op_name")       ? &m->op_name
                  : str_is(name, "op_type")     ? &m->op_type
                  : str_is(name, "source_file") ? &m->source_file
                                                : NULL;
      if (to) *to = hlo_cstr(t, s);
    } else if (hlo_at(t, "{")) {
      TRY(hlo_nested(t, '{', &rest));
    } else {
      int64_t v = 0;
      hlo_skip(t);
      if (t->p < t->end && (isdigit((unsigned char)*t->p) || *t->p == '-')) TRY(hlo_int(t, &v));
      else TRY(hlo_word(t, &rest));
      if (str_is(name, "source_line")) m->source_line = (int32_t)v;
      if (str_is(name, "source_column")) m->source_column = (int32_t)v;
      if (str_is(name, "stack_frame_id")) m->stack_frame_id = (int32_t)v;
    }
  }
  return NULL;
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct {
  const char *name;
  Err *(*read)(HloText *t, Hlo__Instruction *i);
} attrs[] = {
    {"algorithm", algorithm},
    {"api_version", api_version},
    {"backend_config", backend_config},
    {"batch_group_count", batch_groups},
    {"body", first_called},
    {"branch_computations", called_list},
    {"called_computations", called_list},
    {"calls", called_list},
    {"channel_id", channel_id},
    {"collapsed_slice_dims", collapsed_slice},
    {"condition", second_called},
    {"custom_call_has_side_effect", side_effect},
    {"custom_call_target", target},
    {"dim_labels", dim_labels},
    {"dimensions", dimensions},
    {"direction", direction},
    {"distribution", distribution},
    {"dynamic_slice_sizes", dynamic_slice_sizes},
    {"epsilon", epsilon},
    {"exponent_bits", exponent_bits},
    {"false_computation", second_called},
    {"feature_group_count", feature_groups},
    {"feature_index", feature_index},
    {"fft_length", fft_length},
    {"fft_type", fft_type},
    {"frontend_attributes", frontend},
    {"index", tuple_index},
    {"index_vector_dim", index_vector_dim},
    {"indices_are_sorted", sorted},
    {"input_batching_dims", input_batching},
    {"inserted_window_dims", inserted_window},
    {"iota_dimension", one_dimension},
    {"is_stable", is_stable},
    {"k", top_k},
    {"largest", largest},
    {"left_side", left_side},
    {"lhs_batch_dims", lhs_batch},
    {"lhs_contracting_dims", lhs_contracting},
    {"lower", lower},
    {"mantissa_bits", mantissa_bits},
    {"metadata", metadata},
    {"offset_dims", offset_dims},
    {"operand_batching_dims", operand_batching},
    {"operand_precision", operand_precision},
    {"padding", padding},
    {"replica_groups", hlo_text_replica_groups},
    {"rhs_batch_dims", rhs_batch},
    {"rhs_contracting_dims", rhs_contracting},
    {"scatter", second_called},
    {"scatter_dims_to_operand_dims", to_operand_dims},
    {"scatter_indices_batching_dims", scatter_batching},
    {"select", first_called},
    {"sharding", sharding},
    {"slice", slice},
    {"slice_sizes", slice_sizes},
    {"source_target_pairs", hlo_text_source_target_pairs},
    {"start_index_map", start_index_map},
    {"start_indices_batching_dims", indices_batching},
    {"to_apply", first_called},
    {"transpose_a", transpose_a},
    {"true_computation", first_called},
    {"type", compare_type},
    {"unique_indices", unique},
    {"unit_diagonal", unit_diagonal},
    {"update_window_dims", update_window},
    {"use_global_device_ids", global_ids},
    {"window", window},
};

/* One that says nothing of what is computed: a kind of fusion, a schedule, an origin. */
static Err *skip_value(HloText *t) {
  Str s;
  if (hlo_at(t, "{")) return hlo_nested(t, '{', &s);
  if (hlo_at(t, "[")) return hlo_nested(t, '[', &s);
  if (hlo_at(t, "(")) return hlo_nested(t, '(', &s);
  if (hlo_at(t, "\"")) return hlo_string(t, &s);
  while (t->p < t->end && *t->p != ',' && *t->p != '\n') t->p++;
  return NULL;
}

Err *hlo_text_attr(HloText *t, Hlo__Instruction *i, Str name) {
  for (int k = 0; k < COUNT_OF(attrs); k++)
    if (str_is(name, attrs[k].name)) return err_wrap(attrs[k].read(t, i), "%s", attrs[k].name);
  return skip_value(t);
}
