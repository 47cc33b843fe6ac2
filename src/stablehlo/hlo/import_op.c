/* HLO operations that have a StableHLO operation: the table, and those that differ in their attributes alone. */
#include <stdlib.h>

#include "stablehlo/canon.h"
#include "stablehlo/hlo/import_priv.h"

/* ---- attributes ------------------------------------------------------------------------------ */

void hlo_put(HloOp *o, const char *name, Attr *value) {
  assert(o->n_attrs < HLO_MAX_ATTRS);
  o->attrs[o->n_attrs++] = (NamedAttr){str_from(name), value};
}

static Module *module(const HloOp *o) { return o->s->im->m; }

void hlo_put_int(HloOp *o, const char *name, int64_t v) {
  hlo_put(o, name, attr_int(module(o), DT_I64, v));
}
void hlo_put_i32(HloOp *o, const char *name, int64_t v) {
  hlo_put(o, name, attr_int(module(o), DT_I32, v));
}
void hlo_put_bool(HloOp *o, const char *name, bool v) { hlo_put(o, name, attr_bool(module(o), v)); }
void hlo_put_enum(HloOp *o, const char *name, const char *v) {
  hlo_put(o, name, attr_enum(module(o), str_from(v)));
}
void hlo_put_str(HloOp *o, const char *name, Str v) {
  hlo_put(o, name, attr_string(module(o), arena_str(module(o)->arena, v)));
}
void hlo_put_ints(HloOp *o, const char *name, size_t n, const int64_t *v) {
  hlo_put(o, name, attr_ints(module(o), DT_I64, (int)n, v));
}
void hlo_put_matrix(HloOp *o, const char *name, int64_t rows, int64_t columns, const int64_t *v) {
  hlo_put(o, name, attr_tensor_i64(module(o), 2, (int64_t[]){rows, columns}, v));
}

/* ---- operations ------------------------------------------------------------------------------ */

static Err *canonical(HloOp *o, OpKind kind) {
  int n = 0;
  for (int i = 0; i < o->n_attrs; i++) {
    NamedAttr a = o->attrs[i];
    if (!memchr(a.name.p, '.', a.name.n))
      TRY(canon_attr(module(o), kind, a.name, a.value, &a.value));
    if (a.value) o->attrs[n++] = a;
  }
  o->n_attrs = n;
  return NULL;
}

static Err *make(HloOp *o, OpKind kind, int n_in, Value *const *in, int n_out, Type *const *types,
                 Op **out) {
  const OpInfo *info = &op_info[kind];
  if (info->operands != VARIADIC && info->operands != n_in)
    return err_new(ERR_INVALID, "%s has %d operands, %s wants %d", o->i->opcode, n_in, info->name,
                   info->operands);
  if (info->results != VARIADIC && info->results != n_out)
    return err_new(ERR_INVALID, "%s has %d results, %s gives %d", o->i->opcode, n_out, info->name,
                   info->results);
  TRY(canonical(o, kind));
  *out = op_new(module(o), kind, n_in, in, n_out, types, o->n_attrs, o->attrs, o->n_regions,
                o->regions);
  for (int i = 0; i < o->n_regions; i++) o->regions[i]->parent = *out;
  (*out)->loc = o->loc;
  op_append(o->s->region, *out);
  o->n_attrs = o->n_regions = 0;
  return NULL;
}

void hlo_is(HloOp *o, int n, Value *const *v) {
  o->result.n = n;
  o->result.v = arena_dup(module(o)->arena, v, sizeof *v * (size_t)n);
}

Err *hlo_emit(HloOp *o, OpKind kind) {
  Op *op;
  TRY(make(o, kind, o->in.n, o->in.v, o->out.n, o->out.v, &op));
  Value **v = ARENA_ARRAY(module(o)->arena, Value *, op->n_results);
  for (int i = 0; i < op->n_results; i++) v[i] = &op->results[i];
  o->result.n = op->n_results;
  o->result.v = v;
  return NULL;
}

Err *hlo_emit_one(HloOp *o, OpKind kind, int n, Value *const *in, Type *type, Value **out) {
  Op *op;
  TRY(make(o, kind, n, in, 1, &type, &op));
  *out = &op->results[0];
  return NULL;
}

Err *hlo_first_operand(HloOp *o, OpKind kind) {
  (void)kind;
  if (o->n_operands < 1) return err_new(ERR_INVALID, "%s without an operand", o->i->opcode);
  HloLeaves *v = &o->operand[0];
  hlo_is(o, v->n, v->v);
  return NULL;
}

/* ---- with attributes of their own ------------------------------------------------------------ */

static Err *wants(const HloOp *o, bool ok, const char *what) {
  return ok ? NULL : err_new(ERR_INVALID, "%s wants %s", o->i->opcode, what);
}

static Err *plain(HloOp *o, OpKind kind) { return hlo_emit(o, kind); }

static Err *compare(HloOp *o, OpKind kind) {
  hlo_put_enum(o, "comparison_direction", o->i->comparison_direction);
  if (*o->i->comparison_type) hlo_put_enum(o, "compare_type", o->i->comparison_type);
  return hlo_emit(o, kind);
}

static Err *with_dimensions(HloOp *o,
                            OpKind kind) { /* under the name that the operation has for them */
  const char *name = kind == OP_BROADCAST_IN_DIM ? "broadcast_dimensions"
                     : kind == OP_TRANSPOSE      ? "permutation"
                                                 : "dimensions";
  hlo_put_ints(o, name, o->i->n_dimensions, o->i->dimensions);
  return hlo_emit(o, kind);
}

static Err *with_dimension(HloOp *o, OpKind kind) {
  TRY(wants(o, o->i->n_dimensions == 1, "one dimension"));
  hlo_put_int(o, kind == OP_IOTA ? "iota_dimension" : "dimension", o->i->dimensions[0]);
  return hlo_emit(o, kind);
}

static Err *reduce(HloOp *o, OpKind kind) {
  const Hlo__Computation *c;
  TRY(hlo_called(o, 0, &c));
  TRY(hlo_region(o, c));
  hlo_put_ints(o, "dimensions", o->i->n_dimensions, o->i->dimensions);
  return hlo_emit(o, kind);
}

static Err *sort(HloOp *o, OpKind kind) {
  const Hlo__Computation *c;
  TRY(wants(o, o->i->n_dimensions == 1, "one dimension"));
  TRY(hlo_called(o, 0, &c));
  TRY(hlo_region(o, c));
  hlo_put_int(o, "dimension", o->i->dimensions[0]);
  hlo_put_bool(o, "is_stable", o->i->is_stable);
  return hlo_emit(o, kind);
}

static Err *top_k(HloOp *o, OpKind kind) {
  if (!o->i->largest) return err_new(ERR_UNIMPLEMENTED, "topk of the smallest elements");
  hlo_put_int(o, "k", o->i->k);
  return hlo_emit(o, kind);
}

static Err *slice(HloOp *o, OpKind kind) {
  size_t n = o->i->n_slice_dimensions;
  int64_t v[3][HLO_MAX_DEPTH];
  TRY(wants(o, n <= HLO_MAX_DEPTH, "fewer dimensions"));
  for (size_t k = 0; k < n; k++) {
    const Hlo__SliceDimension *d = o->i->slice_dimensions[k];
    v[0][k] = d->start, v[1][k] = d->limit, v[2][k] = d->stride ? d->stride : 1;
  }
  hlo_put_ints(o, "start_indices", n, v[0]);
  hlo_put_ints(o, "limit_indices", n, v[1]);
  hlo_put_ints(o, "strides", n, v[2]);
  return hlo_emit(o, kind);
}

static Err *pad(HloOp *o, OpKind kind) {
  const Hlo__Padding *p = o->i->padding_config;
  size_t n = p ? p->n_dimensions : 0;
  int64_t v[3][HLO_MAX_DEPTH];
  TRY(wants(o, n <= HLO_MAX_DEPTH, "fewer dimensions"));
  for (size_t k = 0; k < n; k++) {
    const Hlo__PaddingDimension *d = p->dimensions[k];
    v[0][k] = d->edge_padding_low, v[1][k] = d->edge_padding_high, v[2][k] = d->interior_padding;
  }
  hlo_put_ints(o, "edge_padding_low", n, v[0]);
  hlo_put_ints(o, "edge_padding_high", n, v[1]);
  hlo_put_ints(o, "interior_padding", n, v[2]);
  return hlo_emit(o, kind);
}

/* Programs of years ago give the indices as one vector; here they are scalars. */
static Err *scalar_indices(HloOp *o, int at) {
  if (o->in.n != at + 1 || o->in.v[at]->type->rank != 1) return NULL;
  Value *all = o->in.v[at];
  int64_t n = all->type->dims[0], one = 1;
  DType t = all->type->dtype;
  TRY(wants(o, n >= 0 && n <= HLO_MAX_DEPTH, "fewer indices"));
  o->in.n = at;
  for (int64_t k = 0; k < n; k++) {
    Value *v;
    hlo_put_ints(o, "start_indices", 1, &k);
    hlo_put_ints(o, "limit_indices", 1, &(int64_t){k + 1});
    hlo_put_ints(o, "strides", 1, &one);
    TRY(hlo_emit_one(o, OP_SLICE, 1, &all, type_tensor(module(o), t, 1, &one), &v));
    TRY(hlo_emit_one(o, OP_RESHAPE, 1, &v, type_tensor(module(o), t, 0, NULL), &v));
    *vec_push(&o->in) = v;
  }
  return NULL;
}

static Err *dynamic_slice(HloOp *o, OpKind kind) {
  TRY(scalar_indices(o, 1));
  hlo_put_ints(o, "slice_sizes", o->i->n_dynamic_slice_sizes, o->i->dynamic_slice_sizes);
  return hlo_emit(o, kind);
}

static Err *dynamic_update_slice(HloOp *o, OpKind kind) {
  TRY(scalar_indices(o, 2));
  return hlo_emit(o, kind);
}

static Err *reduce_precision(HloOp *o, OpKind kind) {
  hlo_put_i32(o, "exponent_bits", o->i->exponent_bits);
  hlo_put_i32(o, "mantissa_bits", o->i->mantissa_bits);
  return hlo_emit(o, kind);
}

static Err *batch_norm(HloOp *o, OpKind kind) {
  hlo_put(o, "epsilon", attr_float(module(o), DT_F32, (double)o->i->epsilon));
  hlo_put_int(o, "feature_index", o->i->feature_index);
  return hlo_emit(o, kind);
}

static Err *cholesky(HloOp *o, OpKind kind) {
  hlo_put_bool(o, "lower", o->i->cholesky_options && o->i->cholesky_options->lower);
  return hlo_emit(o, kind);
}

static Err *triangular_solve(HloOp *o, OpKind kind) {
  static const char *const transpose[] = {"NO_TRANSPOSE", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
  const Hlo__TriangularSolveOptions *t = o->i->triangular_solve_options;
  TRY(wants(o, t && t->transpose_a >= 0 && t->transpose_a < COUNT_OF(transpose), "its options"));
  hlo_put_bool(o, "left_side", t->left_side);
  hlo_put_bool(o, "lower", t->lower);
  hlo_put_bool(o, "unit_diagonal", t->unit_diagonal);
  hlo_put_enum(o, "transpose_a", transpose[t->transpose_a]);
  return hlo_emit(o, kind);
}

static Err *fft(HloOp *o, OpKind kind) {
  static const char *const type[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
  TRY(wants(o, o->i->fft_type >= 0 && o->i->fft_type < COUNT_OF(type), "a type of FFT"));
  hlo_put_enum(o, "fft_type", type[o->i->fft_type]);
  hlo_put_ints(o, "fft_length", o->i->n_fft_length, o->i->fft_length);
  return hlo_emit(o, kind);
}

/* StableHLO has the shape as an operand. */
static Err *rng(HloOp *o, OpKind kind) {
  TRY(wants(o, o->i->distribution == 1 || o->i->distribution == 2, "a distribution"));
  TRY(wants(o, o->in.n == 2 && o->out.n == 1, "two operands"));
  const Type *t = o->out.v[0];
  Value *shape;
  int64_t rank = t->rank;
  Attr *dims = attr_tensor_i64(module(o), 1, &rank, t->dims);
  hlo_put(o, "value", dims);
  TRY(hlo_emit_one(o, OP_CONSTANT, 0, NULL, type_tensor(module(o), DT_I64, 1, &rank), &shape));
  *vec_push(&o->in) = shape;
  hlo_put_enum(o, "rng_distribution", o->i->distribution == 1 ? "UNIFORM" : "NORMAL");
  return hlo_emit(o, kind);
}

static Err *rng_bit_generator(HloOp *o, OpKind kind) {
  static const char *const algorithm[] = {"DEFAULT", "THREE_FRY", "PHILOX"};
  TRY(wants(o, o->i->rng_algorithm >= 0 && o->i->rng_algorithm < COUNT_OF(algorithm),
            "an algorithm"));
  hlo_put_enum(o, "rng_algorithm", algorithm[o->i->rng_algorithm]);
  return hlo_emit(o, kind);
}

static Err *map(HloOp *o, OpKind kind) {
  const Hlo__Computation *c;
  TRY(hlo_called(o, 0, &c));
  TRY(hlo_region(o, c));
  TRY(wants(o, o->out.n == 1, "one result"));
  int64_t dims[HLO_MAX_DEPTH];
  for (int k = 0; k < o->out.v[0]->rank; k++) dims[k] = k;
  hlo_put_ints(o, "dimensions", (size_t)o->out.v[0]->rank, dims);
  return hlo_emit(o, kind);
}

/* The same bytes in another shape: what a layout makes of it. Elements in the order in which they lie, as
 * the other shape, then as that one lies. */
static Err *bitcast(HloOp *o, OpKind kind) {
  (void)kind;
  TRY(wants(o, o->n_operands == 1 && o->in.n == 1 && o->out.n == 1 && o->operand[0].shape,
            "one array"));
  const HloShape *from = o->operand[0].shape, *to = o->shape;
  if (from->dtype != to->dtype) return hlo_emit(o, OP_BITCAST_CONVERT);
  Value *v = o->in.v[0];
  int64_t perm[HLO_MAX_DEPTH], dims[HLO_MAX_DEPTH];
  if (from->minor_to_major) {
    for (int k = 0; k < from->rank; k++) {
      perm[k] = from->minor_to_major[from->rank - 1 - k];
      dims[k] = from->dims[perm[k]];
    }
    hlo_put_ints(o, "permutation", (size_t)from->rank, perm);
    TRY(hlo_emit_one(o, OP_TRANSPOSE, 1, &v, type_tensor(module(o), from->dtype, from->rank, dims),
                     &v));
  }
  for (int k = 0; k < to->rank; k++)
    dims[k] = to->minor_to_major ? to->dims[to->minor_to_major[to->rank - 1 - k]] : to->dims[k];
  Type *lies = type_tensor(module(o), to->dtype, to->rank, dims);
  if (type_count(lies) != type_count(v->type))
    return wants(o, false, "as many elements as its operand has");
  if (lies != v->type) TRY(hlo_emit_one(o, OP_RESHAPE, 1, &v, lies, &v));
  if (to->minor_to_major) {
    for (int k = 0; k < to->rank; k++) perm[to->minor_to_major[to->rank - 1 - k]] = k;
    hlo_put_ints(o, "permutation", (size_t)to->rank, perm);
    TRY(hlo_emit_one(o, OP_TRANSPOSE, 1, &v, o->out.v[0], &v));
  }
  hlo_is(o, 1, &v);
  return NULL;
}

static Err *host(HloOp *o, OpKind kind) {
  (void)kind;
  return err_hint(err_new(ERR_UNIMPLEMENTED, "%s exchanges with a host", o->i->opcode),
                  "weft runs programs without infeed, outfeed, send and recv");
}

/* ---- the table ------------------------------------------------------------------------------- */

static const HloOpcode opcodes[] = {
    {"abs", OP_ABS, plain},
    {"add", OP_ADD, plain},
    {"add-dependency", OP_UNKNOWN, hlo_first_operand},
    {"after-all", OP_AFTER_ALL, plain},
    {"all-gather", OP_ALL_GATHER, hlo_collective},
    {"all-gather-done", OP_UNKNOWN, hlo_first_operand},
    {"all-gather-start", OP_ALL_GATHER, hlo_collective_start},
    {"all-reduce", OP_ALL_REDUCE, hlo_collective},
    {"all-reduce-done", OP_UNKNOWN, hlo_first_operand},
    {"all-reduce-start", OP_ALL_REDUCE, hlo_collective_start},
    {"all-to-all", OP_ALL_TO_ALL, hlo_all_to_all},
    {"and", OP_AND, plain},
    {"async-done", OP_UNKNOWN, hlo_first_operand},
    {"async-start", OP_UNKNOWN, hlo_async},
    {"async-update", OP_UNKNOWN, hlo_first_operand},
    {"atan2", OP_ATAN2, plain},
    {"batch-norm-grad", OP_BATCH_NORM_GRAD, batch_norm},
    {"batch-norm-inference", OP_BATCH_NORM_INFERENCE, batch_norm},
    {"batch-norm-training", OP_BATCH_NORM_TRAINING, batch_norm},
    {"bitcast", OP_UNKNOWN, bitcast},
    {"bitcast-convert", OP_BITCAST_CONVERT, plain},
    {"broadcast", OP_BROADCAST_IN_DIM, with_dimensions},
    {"call", OP_CALL, hlo_call},
    {"cbrt", OP_CBRT, plain},
    {"ceil", OP_CEIL, plain},
    {"cholesky", OP_CHOLESKY, cholesky},
    {"clamp", OP_CLAMP, plain},
    {"collective-broadcast", OP_COLLECTIVE_BROADCAST, hlo_collective},
    {"collective-permute", OP_COLLECTIVE_PERMUTE, hlo_permute},
    {"collective-permute-done", OP_UNKNOWN, hlo_first_operand},
    {"collective-permute-start", OP_COLLECTIVE_PERMUTE, hlo_collective_start},
    {"compare", OP_COMPARE, compare},
    {"complex", OP_COMPLEX, plain},
    {"concatenate", OP_CONCATENATE, with_dimension},
    {"conditional", OP_CASE, hlo_conditional},
    {"convert", OP_CONVERT, plain},
    {"convolution", OP_CONVOLUTION, hlo_convolution},
    {"copy", OP_UNKNOWN, hlo_first_operand},
    {"copy-done", OP_UNKNOWN, hlo_first_operand},
    {"copy-start", OP_UNKNOWN, hlo_async},
    {"cosine", OP_COSINE, plain},
    {"count-leading-zeros", OP_COUNT_LEADING_ZEROS, plain},
    {"custom-call", OP_CUSTOM_CALL, hlo_custom_call},
    {"divide", OP_DIVIDE, plain},
    {"domain", OP_UNKNOWN, hlo_first_operand},
    {"dot", OP_DOT_GENERAL, hlo_dot},
    {"dynamic-slice", OP_DYNAMIC_SLICE, dynamic_slice},
    {"dynamic-update-slice", OP_DYNAMIC_UPDATE_SLICE, dynamic_update_slice},
    {"erf", OP_CHLO_ERF, plain},
    {"exponential", OP_EXPONENTIAL, plain},
    {"exponential-minus-one", OP_EXPONENTIAL_MINUS_ONE, plain},
    {"fft", OP_FFT, fft},
    {"floor", OP_FLOOR, plain},
    {"fusion", OP_CALL, hlo_call},
    {"gather", OP_GATHER, hlo_gather},
    {"get-dimension-size", OP_GET_DIMENSION_SIZE, with_dimension},
    {"imag", OP_IMAG, plain},
    {"infeed", OP_UNKNOWN, host},
    {"iota", OP_IOTA, with_dimension},
    {"is-finite", OP_IS_FINITE, plain},
    {"log", OP_LOG, plain},
    {"log-plus-one", OP_LOG_PLUS_ONE, plain},
    {"logistic", OP_LOGISTIC, plain},
    {"map", OP_MAP, map},
    {"maximum", OP_MAXIMUM, plain},
    {"minimum", OP_MINIMUM, plain},
    {"multiply", OP_MULTIPLY, plain},
    {"negate", OP_NEGATE, plain},
    {"not", OP_NOT, plain},
    {"opt-barrier", OP_OPTIMIZATION_BARRIER, plain},
    {"or", OP_OR, plain},
    {"outfeed", OP_UNKNOWN, host},
    {"pad", OP_PAD, pad},
    {"partition-id", OP_PARTITION_ID, plain},
    {"popcnt", OP_POPCNT, plain},
    {"power", OP_POWER, plain},
    {"real", OP_REAL, plain},
    {"recv", OP_UNKNOWN, host},
    {"reduce", OP_REDUCE, reduce},
    {"reduce-precision", OP_REDUCE_PRECISION, reduce_precision},
    {"reduce-scatter", OP_REDUCE_SCATTER, hlo_reduce_scatter},
    {"reduce-window", OP_REDUCE_WINDOW, hlo_window},
    {"remainder", OP_REMAINDER, plain},
    {"replica-id", OP_REPLICA_ID, plain},
    {"reshape", OP_RESHAPE, plain},
    {"reverse", OP_REVERSE, with_dimensions},
    {"rng", OP_RNG, rng},
    {"rng-bit-generator", OP_RNG_BIT_GENERATOR, rng_bit_generator},
    {"round-nearest-afz", OP_ROUND_NEAREST_AFZ, plain},
    {"round-nearest-even", OP_ROUND_NEAREST_EVEN, plain},
    {"rsqrt", OP_RSQRT, plain},
    {"scatter", OP_SCATTER, hlo_scatter},
    {"select", OP_SELECT, plain},
    {"select-and-scatter", OP_SELECT_AND_SCATTER, hlo_window},
    {"send", OP_UNKNOWN, host},
    {"set-dimension-size", OP_SET_DIMENSION_SIZE, with_dimension},
    {"shift-left", OP_SHIFT_LEFT, plain},
    {"shift-right-arithmetic", OP_SHIFT_RIGHT_ARITHMETIC, plain},
    {"shift-right-logical", OP_SHIFT_RIGHT_LOGICAL, plain},
    {"sign", OP_SIGN, plain},
    {"sine", OP_SINE, plain},
    {"slice", OP_SLICE, slice},
    {"sort", OP_SORT, sort},
    {"sqrt", OP_SQRT, plain},
    {"subtract", OP_SUBTRACT, plain},
    {"tan", OP_TAN, plain},
    {"tanh", OP_TANH, plain},
    {"topk", OP_CHLO_TOP_K, top_k},
    {"transpose", OP_TRANSPOSE, with_dimensions},
    {"triangular-solve", OP_TRIANGULAR_SOLVE, triangular_solve},
    {"while", OP_WHILE, hlo_while},
    {"xor", OP_XOR, plain},
};

const HloOpcode *hlo_opcode(Str name) {
  for (int i = 0; i < COUNT_OF(opcodes); i++)
    if (str_is(name, opcodes[i].name)) return &opcodes[i];
  return NULL;
}
