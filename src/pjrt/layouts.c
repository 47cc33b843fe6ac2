/* Layouts: read from programs (mhlo.layout_mode) and from callers, chosen where a program leaves them
 * open, and the layouts extension. Layouts are made once for each order of dimensions and kept, so
 * that they can be handed out as constants. Without the extension callers read layouts out of the
 * optimized program, which costs them more than compiling it. */
#include "pjrt/pjrt_priv.h"

#include <stdio.h>

#include "ir/ir.h"

/* ---- one object for each order ---- */

#define USUAL_RANKS 16

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Map *known; /* text -> Layout */
static Layout *row_major[USUAL_RANKS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

Layout *layout_of_order(int rank, const int64_t *minor_to_major) {
  Buf text = {0};
  buf_byte(&text, '{');
  bool plain = true;
  for (int i = 0; i < rank; i++) {
    buf_printf(&text, "%s%lld", i ? "," : "", (long long)minor_to_major[i]);
    plain &= minor_to_major[i] == rank - 1 - i;
  }
  buf_byte(&text, '}');
  pthread_mutex_lock(&lock);
  if (!known) known = map_new();
  Layout *l = map_get(known, (Str){text.p, text.n});
  if (!l) {
    l = xcalloc(1, sizeof *l + sizeof(int64_t) * (size_t)rank);
    *l = (Layout){.rank = rank, .is_row_major = plain, .text = {text.p, text.n}};
    if (rank) memcpy(l->minor_to_major, minor_to_major, sizeof(int64_t) * (size_t)rank);
    map_set(known, l->text, l);
    text.p = NULL;
  }
  pthread_mutex_unlock(&lock);
  free(text.p);
  return l;
}

static Layout *make_row_major(int rank) {
  int64_t *order = xcalloc((size_t)rank + 1, sizeof *order);
  for (int i = 0; i < rank; i++) order[i] = rank - 1 - i;
  Layout *l = layout_of_order(rank, order);
  free(order);
  return l;
}

static void make_usual(void) {
  for (int rank = 0; rank < USUAL_RANKS; rank++) row_major[rank] = make_row_major(rank);
}

Layout *layout_row_major(int rank) {
  pthread_once(&once, make_usual);
  return rank < USUAL_RANKS ? row_major[rank] : make_row_major(rank);
}

/* ---- from callers ---- */

static Err *check_order(const int64_t *order, size_t n, int rank) {
  if (n != (size_t)rank)
    return err_new(ERR_INVALID, "the layout orders %zu dimensions, the array has %d", n, rank);
  bool *seen = xcalloc((size_t)rank + 1, sizeof *seen);
  bool ok = true;
  for (int i = 0; i < rank && ok; i++) {
    ok = order[i] >= 0 && order[i] < rank && !seen[order[i]];
    if (ok) seen[order[i]] = true;
  }
  free(seen);
  return ok ? NULL : err_new(ERR_INVALID, "the layout's minor_to_major is not a permutation");
}

Err *layout_from_caller(const PJRT_Buffer_MemoryLayout *l, int rank, Layout **out) {
  *out = layout_row_major(rank);
  if (!l) return NULL;
  if (l->type != PJRT_Buffer_MemoryLayout_Type_TILED)
    return err_new(ERR_UNIMPLEMENTED, "weft: arrays on a device by strides");
  if (l->tiled.num_tiles)
    return err_new(ERR_UNIMPLEMENTED, "weft: tiled layouts (%zu tiles)", l->tiled.num_tiles);
  TRY(check_order(l->tiled.minor_to_major, l->tiled.minor_to_major_size, rank));
  *out = layout_of_order(rank, l->tiled.minor_to_major);
  return NULL;
}

void layout_dense_strides(const Layout *l, const int64_t *dims, size_t elem, int64_t *out) {
  int64_t stride = (int64_t)elem;
  for (int i = 0; i < l->rank; i++) {
    out[l->minor_to_major[i]] = stride;
    stride *= dims[l->minor_to_major[i]];
  }
}

Err *layout_strides(const PJRT_Buffer_MemoryLayout *l, int rank, const int64_t *dims, size_t elem,
                    int64_t *out) {
  if (l->type == PJRT_Buffer_MemoryLayout_Type_STRIDES) {
    if (l->strides.num_byte_strides != (size_t)rank)
      return err_new(ERR_INVALID, "the layout has %zu strides, the array %d dimensions",
                     l->strides.num_byte_strides, rank);
    if (rank) memcpy(out, l->strides.byte_strides, (size_t)rank * sizeof *out);
    return NULL;
  }
  Layout *tiled;
  TRY(layout_from_caller(l, rank, &tiled));
  layout_dense_strides(tiled, dims, elem, out);
  return NULL;
}

/* ---- from programs ---- */

/* "{0,1}": minor to major. */
static Err *parse(Str text, int rank, Layout **out) {
  if (memchr(text.p, ':', text.n))
    return err_new(ERR_UNIMPLEMENTED, "weft: tiled layouts, as in '%.*s'", STR_ARG(text));
  int64_t *order = xcalloc(text.n + 1, sizeof *order);
  size_t n = 0, at = 1;
  bool ok = text.n >= 2 && text.p[0] == '{' && text.p[text.n - 1] == '}';
  while (ok && at < text.n - 1) {
    int64_t v = 0;
    size_t from = at;
    for (; text.p[at] >= '0' && text.p[at] <= '9' && at - from < 6; at++)
      v = v * 10 + (text.p[at] - '0');
    order[n++] = v;
    ok = at > from && (at == text.n - 1 || (text.p[at] == ',' && at + 1 < text.n - 1));
    at++;
  }
  Err *e = ok ? check_order(order, n, rank)
              : err_new(ERR_INVALID, "'%.*s' is not a layout", STR_ARG(text));
  if (!e) *out = layout_of_order(rank, order);
  free(order);
  return e;
}

static Str mode_of(const NamedAttr *attrs, int n) {
  Attr *a = attrs_get(attrs, n, "mhlo.layout_mode");
  return a && a->kind == AT_STRING ? a->s : STR("default");
}

static Err *read_mode(const NamedAttr *attrs, int n, const Type *t, Layout **out) {
  Str mode = mode_of(attrs, n);
  *out = layout_row_major(t->kind == TY_TENSOR ? t->rank : 0);
  if (t->kind != TY_TENSOR || str_is(mode, "default") || str_is(mode, "auto")) return NULL;
  return parse(mode, t->rank, out);
}

Layout *layout_of_value(const NamedAttr *attrs, int n, const Type *t) {
  Layout *l;
  err_free(read_mode(attrs, n, t, &l)); /* layouts_choose() has looked at it */
  return l;
}

static bool is_constraint(const Op *op) {
  return op->kind == OP_CUSTOM_CALL && str_is(op_str(op, "call_target_name"), "LayoutConstraint");
}

static bool keeps_order(const Op *op) {
  return op->n_operands && op->n_results == 1 && op->operands[0]->type->kind == TY_TENSOR &&
         op->operands[0]->type->rank == op->results[0].type->rank &&
         (op_info[op->kind].cls == OC_EWISE || op->kind == OP_SHARDING_CONSTRAINT);
}

/* The layout that a LayoutConstraint asks of its result. */
static Layout *constrained(const Op *op) {
  int rank = op->results[0].type->rank;
  Attr *a = op_attr(op, "result_layouts");
  Attr *first = a && a->kind == AT_ARRAY && a->n ? a->items[0] : NULL;
  const int64_t *order = !first                   ? NULL
                         : first->kind == AT_INTS ? first->ints
                         : first->kind == AT_TENSOR && first->tensor->data &&
                                 !first->tensor->splat && dtype_bytes(first->tensor->dtype) == 8
                             ? first->tensor->data
                             : NULL;
  size_t n = !order ? 0 : first->kind == AT_INTS ? (size_t)first->n : (size_t)first->tensor->count;
  Err *e = order ? check_order(order, n, rank) : err_new(ERR_INVALID, "no layout");
  if (!e) return layout_of_order(rank, order);
  err_free(e);
  return layout_row_major(rank);
}

/* The order in which v's elements come to lie when nothing is moved: transpositions turn it. */
static Layout *natural(const Func *f, const Value *v) {
  int rank = v->type->rank;
  int64_t *to = xcalloc((size_t)rank * 2 + 1, sizeof *to),
          *next = to + rank; /* v's dim -> result's */
  for (int i = 0; i < rank; i++) to[i] = i;
  for (const Op *op; (op = v->def); v = op->operands[0]) {
    const int64_t *perm;
    if (op->kind == OP_TRANSPOSE && op_ints(op, "permutation", &perm) == rank) {
      for (int i = 0; i < rank; i++) next[perm[i]] = to[i];
      memcpy(to, next, sizeof *to * (size_t)rank);
    } else if (!keeps_order(op)) {
      break;
    }
  }
  Layout *base = v->def && is_constraint(v->def) ? constrained(v->def)
                 : !v->def && v->region == f->body
                     ? layout_of_value(f->arg_attrs[v->index], f->n_arg_attrs[v->index], v->type)
                     : layout_row_major(rank);
  for (int i = 0; i < rank; i++) next[i] = to[base->minor_to_major[i]];
  Layout *l = layout_of_order(rank, next);
  free(to);
  return l;
}

static void settle(Module *m, NamedAttr *attrs, int n, const Layout *l) {
  for (int i = 0; i < n; i++)
    if (str_is(attrs[i].name, "mhlo.layout_mode")) attrs[i].value = attr_string(m, l->text);
}

Err *layouts_choose(Module *m) {
  Func *f = module_main(m);
  if (!f || !f->body) return NULL;
  Layout *l;
  for (int i = 0; i < f->type->n_elems; i++)
    TRY(err_wrap(read_mode(f->arg_attrs[i], f->n_arg_attrs[i], f->type->elems[i], &l),
                 "argument %d", i));
  for (int j = 0; j < f->type->n_results; j++) {
    const Type *t = f->type->results[j];
    TRY(err_wrap(read_mode(f->res_attrs[j], f->n_res_attrs[j], t, &l), "result %d", j));
    if (t->kind != TY_TENSOR || !str_is(mode_of(f->res_attrs[j], f->n_res_attrs[j]), "auto"))
      continue;
    settle(m, f->res_attrs[j], f->n_res_attrs[j], natural(f, f->body->last->operands[j]));
  }
  return NULL;
}

/* ---- the extension ---- */

static PJRT_Error *destroy(PJRT_Layouts_MemoryLayout_Destroy_Args *a) {
  (void)a;
  return NULL;
}

static void nothing_to_free(PJRT_Layouts_SerializedLayout *l) { (void)l; }

static PJRT_Error *serialize(PJRT_Layouts_MemoryLayout_Serialize_Args *a) {
  a->serialized_bytes = a->layout->text.p;
  a->serialized_bytes_size = a->layout->text.n;
  a->serialized_layout = (PJRT_Layouts_SerializedLayout *)a->layout;
  a->serialized_layout_deleter = nothing_to_free;
  return NULL;
}

static PJRT_Error *default_of(size_t n_dims, Layout **out) {
  if (n_dims > 1024) return error_new(ERR_INVALID, "an array of %zu dimensions", n_dims);
  *out = layout_row_major((int)n_dims);
  return NULL;
}

static PJRT_Error *client_default(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args *a) {
  return default_of(a->num_dims, &a->layout);
}

static PJRT_Error *topology_default(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args *a) {
  return default_of(a->num_dims, &a->layout);
}

static PJRT_Error *of_buffer(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args *a) {
  a->layout = a->buffer->layout;
  return NULL;
}

static PJRT_Error *of_outputs(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args *a) {
  a->num_outputs = (size_t)a->executable->n_out;
  a->layouts = a->executable->layouts_out;
  return NULL;
}

static PJRT_Error *of_parameters(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args *a) {
  a->num_parameters = (size_t)a->executable->n_in;
  a->layouts = a->executable->layouts_in;
  return NULL;
}

const PJRT_Layouts_Extension layouts_extension = {
    .base = {sizeof layouts_extension, PJRT_Extension_Type_LAYOUTS,
             (PJRT_Extension_Base *)(uintptr_t)&memory_descriptions_extension},
    .PJRT_Layouts_MemoryLayout_Destroy = destroy,
    .PJRT_Layouts_MemoryLayout_Serialize = serialize,
    .PJRT_Layouts_PJRT_Client_GetDefaultLayout = client_default,
    .PJRT_Layouts_PJRT_Buffer_MemoryLayout = of_buffer,
    .PJRT_Layouts_PJRT_Topology_GetDefaultLayout = topology_default,
    .PJRT_Layouts_PJRT_Executable_GetOutputLayouts = of_outputs,
    .PJRT_Layouts_PJRT_Executable_GetParameterLayouts = of_parameters,
};
