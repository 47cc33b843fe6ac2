/* How layouts follow from each other through an operation. Element-wise operations, windows and pads have one layout for all
 * their ports; a reduction's result keeps the order of what is left; a transposition needs no work where the
 * layouts of both sides are its own; a reshape hands on layouts in which the dimensions that it joins or splits lie
 * together. */
#include "compile/pass/layout_rules.h"

#include <stdlib.h>

/* ---- layouts ---- */

Layout layout_plain(int rank) {
  Layout a = {.n = rank};
  for (int i = 0; i < rank; i++) a.d[i] = (int8_t)i;
  return a;
}

bool layout_same(const Layout *a, const Layout *b, const Type *t) {
  int j = 0;
  for (int i = 0; i < a->n; i++) {
    if (t->dims[a->d[i]] == 1) continue;
    while (t->dims[b->d[j]] == 1) j++;
    if (a->d[i] != b->d[j++]) return false;
  }
  return true;
}

bool layout_moves(const Layout *a, const Type *t) {
  Layout plain = layout_plain(a->n);
  return !layout_same(a, &plain, t);
}

static void dims_in(const Layout *a, const Type *t, int64_t *dims) {
  for (int i = 0; i < a->n; i++) dims[i] = t->dims[a->d[i]];
}

Type *layout_type(Module *m, const Layout *a, const Type *t) {
  int64_t dims[B_MAX_RANK];
  dims_in(a, t, dims);
  return type_tensor(m, t->dtype, t->rank, dims);
}

int layout_find(const Layout *a, int64_t dim) {
  int i = 0;
  while (a->d[i] != dim) i++;
  return i;
}

Value *layout_change(Build *b, Value *x, const Layout *from, const Layout *to, const Type *t) {
  int perm[B_MAX_RANK];
  int64_t dims[B_MAX_RANK];
  if (layout_same(from, to, t)) {
    dims_in(to, t, dims);
    return b_reshape(b, x, t->rank, dims);
  }
  for (int i = 0; i < to->n; i++) perm[i] = layout_find(from, to->d[i]);
  return b_transpose(b, x, perm);
}

/* ---- reshapes ---- */

/* Dimensions of both sides that become each other, as few together as can be. */
typedef struct Groups {
  int n, of_from[B_MAX_RANK], of_to[B_MAX_RANK];
} Groups;

static Groups groups_of(const Type *from, const Type *to) {
  Groups g = {0};
  for (int i = 0, j = 0; i < from->rank || j < to->rank; g.n++) {
    int64_t a = 1, b = 1;
    if (i < from->rank) a *= from->dims[i], g.of_from[i++] = g.n;
    if (j < to->rank) b *= to->dims[j], g.of_to[j++] = g.n;
    while (a != b)
      if (a < b) a *= from->dims[i], g.of_from[i++] = g.n;
      else b *= to->dims[j], g.of_to[j++] = g.n;
  }
  return g;
}

/* The layout of `to` in which a reshape of `from` in layout `a` moves nothing. */
static bool through_reshape(const Type *from, const Layout *a, const Type *to, Layout *out) {
  Groups g = groups_of(from, to);
  bool begun[2 * B_MAX_RANK] = {0};
  int last = -1, dim = -1;
  *out = (Layout){.n = 0};
  for (int i = 0; i < a->n; i++) {
    if (from->dims[a->d[i]] == 1) continue;
    int group = g.of_from[a->d[i]];
    if (group == last ? a->d[i] < dim : begun[group]) return false;
    dim = a->d[i];
    if (group == last) continue;
    last = group;
    begun[group] = true;
    for (int j = 0; j < to->rank; j++)
      if (g.of_to[j] == group) out->d[out->n++] = (int8_t)j;
  }
  for (int j = 0; j < to->rank; j++)
    if (!begun[g.of_to[j]]) out->d[out->n++] = (int8_t)j;
  return true;
}

/* ---- rules ---- */

typedef enum Rule { NO_RULE, SAME, REDUCED, TRANSPOSED, RESHAPED, CONVOLVED } Rule;

static bool movable(const Type *t) {
  return type_is_static(t) && !t->quant && t->rank <= B_MAX_RANK && type_count(t) > 0;
}

static Rule rule_of_kind(const Op *op) {
  switch (op->kind) {
  case OP_MAP: return NO_RULE;
  case OP_COPY:
  case OP_PAD:
  case OP_SLICE:
  case OP_REVERSE:
  case OP_CONCATENATE:
  case OP_REDUCE_WINDOW:
  case OP_SELECT_AND_SCATTER: return SAME;
  case OP_REDUCE: return REDUCED;
  case OP_TRANSPOSE: return TRANSPOSED;
  case OP_RESHAPE: return RESHAPED;
  case OP_CONVOLUTION: return CONVOLVED;
  default: return op_info[op->kind].cls == OC_EWISE ? SAME : NO_RULE;
  }
}

static Rule rule_of(const Op *op) {
  for (int i = 0; i < op->n_operands + op->n_results; i++)
    if (!movable(layout_port_type(op, i))) return NO_RULE;
  return rule_of_kind(op);
}

const Type *layout_port_type(const Op *op, int port) {
  return port < op->n_operands ? op->operands[port]->type : op->results[port - op->n_operands].type;
}

bool layout_of_convolution(const Op *op, int port, Layout *out) {
  ConvDims d = b_conv_dims(op);
  ConvForm form;
  bool flip;
  if (!d.n || !b_conv_form(op, &d, &form, &flip)) return false;
  bool weights = form == CONV_WEIGHTS;
  if (port == (weights ? 2 : 1)) return false;
  int64_t images = port == 2   ? d.out_batch
                   : port == 1 ? d.k_in
                   : weights   ? d.in_feature
                               : d.in_batch,
          channels = port == 2   ? d.out_feature
                     : port == 1 ? d.k_out
                     : weights   ? d.in_batch
                                 : d.in_feature;
  const int64_t *spatial = port == 2 ? d.out_spatial : port == 1 ? d.k_spatial : d.in_spatial;
  *out = (Layout){.n = d.n + 2};
  out->d[0] = (int8_t)images;
  for (int i = 0; i < d.n; i++) out->d[1 + i] = (int8_t)spatial[i];
  out->d[1 + d.n] = (int8_t)channels;
  return true;
}

/* Of a reduction's result: what is left, in the same order. */
static Layout reduced(const Op *op, const Layout *main) {
  const int64_t *dims;
  int n = op_ints(op, "dimensions", &dims);
  Layout out = {.n = 0};
  for (int i = 0; i < main->n; i++) {
    if (b_has_dim(n, dims, main->d[i])) continue;
    int before = 0;
    for (int k = 0; k < n; k++) before += dims[k] < main->d[i];
    out.d[out.n++] = (int8_t)(main->d[i] - before);
  }
  return out;
}

bool layout_port(const Op *op, const Layout *main, int port, Layout *out) {
  bool result = port >= op->n_operands;
  const int64_t *perm;
  switch (rule_of(op)) {
  case SAME: *out = *main; return layout_port_type(op, port)->rank == main->n && main->n > 0;
  case REDUCED:
    *out = result ? reduced(op, main) : *main;
    return result || port < op->n_operands / 2;
  case TRANSPOSED:
    *out = *main;
    op_ints(op, "permutation", &perm);
    for (int i = 0; i < main->n && !result; i++) out->d[i] = (int8_t)perm[main->d[i]];
    return true;
  case RESHAPED:
    *out = *main;
    return result || through_reshape(op_type(op), main, op->operands[0]->type, out);
  case CONVOLVED: return layout_of_convolution(op, port, out);
  default: return false;
  }
}

bool layout_follow(const Op *op, int port, const Layout *at, Layout *main) {
  bool result = port >= op->n_operands;
  Layout back;
  const int64_t *perm;
  *main = *at;
  switch (rule_of(op)) {
  case SAME: return op_type(op)->rank == at->n;
  case REDUCED: return port < op->n_operands / 2;
  case TRANSPOSED:
    op_ints(op, "permutation", &perm);
    for (int i = 0; i < at->n && !result; i++)
      for (int k = 0; k < at->n; k++)
        if (perm[k] == at->d[i]) main->d[i] = (int8_t)k;
    return true;
  case RESHAPED:
    if (result) return through_reshape(op_type(op), at, op->operands[0]->type, &back);
    return through_reshape(op->operands[0]->type, at, op_type(op), main) &&
           through_reshape(op_type(op), main, op->operands[0]->type, &back);
  default: return false;
  }
}

/* ---- the same operation in another layout ---- */

/* Attributes with a number, or a pair, for each dimension. */
static bool is_per_dimension(Str name) {
  static const char *const names[] = {"window_dimensions", "window_strides",   "base_dilations",
                                      "window_dilations",  "strides",          "edge_padding_low",
                                      "edge_padding_high", "interior_padding", "limit_indices",
                                      "start_indices",     "padding"};
  for (int i = 0; i < COUNT_OF(names); i++)
    if (str_is(name, names[i])) return true;
  return false;
}

static int numbers(const Op *op, Str name, const int64_t **out) {
  char *key = xstrndup(name.p, name.n);
  int n = op_ints(op, key, out);
  free(key);
  return n;
}

static Attr *per_dimension(Build *b, const Op *op, Str name, const Layout *a) {
  const int64_t *v;
  int64_t out[2 * B_MAX_RANK], shape[2] = {a->n, 2};
  int n = numbers(op, name, &v), each = n / a->n;
  for (int i = 0; i < n; i++) out[i] = v[a->d[i / each] * each + i % each];
  return each == 2 ? attr_tensor_i64(b->m, 2, shape, out) : attr_ints(b->m, DT_I64, n, out);
}

static int compare_dims(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

/* A list of dimensions. */
static Attr *places(Build *b, const Op *op, Str name, const Layout *a) {
  const int64_t *v;
  int64_t out[B_MAX_RANK];
  int n = numbers(op, name, &v);
  for (int i = 0; i < n; i++) out[i] = layout_find(a, v[i]);
  qsort(out, (size_t)n, sizeof *out, compare_dims);
  return attr_ints(b->m, DT_I64, n, out);
}

/* What other frontends and tools say of the plain layout (a sharding) is left out. */
static int attributes(Build *b, const Op *op, const Layout *a, NamedAttr *out) {
  int n = 0;
  for (int i = 0; i < op->n_attrs; i++) {
    NamedAttr x = op->attrs[i];
    if (memchr(x.name.p, '.', x.name.n)) continue;
    if (is_per_dimension(x.name)) x.value = per_dimension(b, op, x.name, a);
    else if (str_is(x.name, "dimensions")) x.value = places(b, op, x.name, a);
    else if (str_is(x.name, "dimension"))
      x.value = attr_int(b->m, DT_I64, layout_find(a, x.value->i));
    out[n++] = x;
  }
  return n;
}

static Op *convolution(Build *b, const Op *op, Value *const *operands) {
  ConvDims d = b_conv_dims(op);
  Layout at[3];
  bool given[3];
  for (int i = 0; i < 3; i++) given[i] = layout_of_convolution(op, i, &at[i]);
#define MOVE(port, dim) (given[port] ? layout_find(&at[port], dim) : (dim))
  d.in_batch = MOVE(0, d.in_batch), d.in_feature = MOVE(0, d.in_feature);
  d.k_in = MOVE(1, d.k_in), d.k_out = MOVE(1, d.k_out);
  d.out_batch = MOVE(2, d.out_batch), d.out_feature = MOVE(2, d.out_feature);
  for (int i = 0; i < d.n; i++) {
    d.in_spatial[i] = MOVE(0, d.in_spatial[i]);
    d.k_spatial[i] = MOVE(1, d.k_spatial[i]);
    d.out_spatial[i] = MOVE(2, d.out_spatial[i]);
  }
#undef MOVE
  return b_conv(b, operands[0], operands[1], &d, op_type(op)->dtype,
                op_attr(op, "precision_config"))
      ->def;
}

Op *layout_rebuild(Build *b, const Op *op, const Layout *main, Value *const *operands) {
  Type *types[B_MAX_RANK];
  Layout at;
  Rule rule = rule_of(op);
  if (rule == CONVOLVED) return convolution(b, op, operands);
  for (int i = 0; i < op->n_results; i++)
    types[i] = layout_port(op, main, op->n_operands + i, &at)
                   ? layout_type(b->m, &at, op->results[i].type)
                   : op->results[i].type;
  NamedAttr attrs[B_MAX_RANK];
  int n = attributes(b, op, main, attrs);
  return b_op(b, op->kind, op->n_operands, operands, op->n_results, types, n, attrs, op->n_regions,
              op->regions);
}
