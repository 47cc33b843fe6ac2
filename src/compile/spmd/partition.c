/* Each value has one sharding; an op is rewritten for the sharding of its result. `whole` of a
 * value means gathered along every dimension. Resharding goes dimension by dimension: a longer list
 * of axes is a slice of the own part (dynamic_slice at a place computed from partition_id), a
 * shorter one an all_gather, anything else a gather and a slice.
 */
#include <stdlib.h>

#include "compile/spmd/partition_priv.h"
#include "compile/spmd/window.h"
#include "ir/exchange.h"

/* ---- what cannot be partitioned ---- */

static bool same_mesh(const Mesh *a, const Mesh *b) {
  if (a == b) return true;
  if (!a || a->n_axes != b->n_axes || a->n_ids != b->n_ids) return false;
  for (int i = 0; i < a->n_axes; i++)
    if (a->axes[i].size != b->axes[i].size || !str_eq(a->axes[i].name, b->axes[i].name))
      return false;
  for (int i = 0; i < a->n_ids; i++)
    if (a->ids[i] != b->ids[i]) return false;
  return true;
}

/* Axes of one mesh cut. */
static Err *check_sharding(const Spmd *s, const Attr *a) {
  if (!a) return NULL;
  for (int i = 0; a->kind == AT_ARRAY && i < a->n; i++) TRY(check_sharding(s, a->items[i]));
  if (a->kind != AT_SHARDING) return NULL;
  const Sharding *sh = a->sharding;
  bool cut = sh->n_unreduced > 0;
  for (int d = 0; d < sh->n_dims; d++) cut |= sh->dims[d].n_axes > 0;
  if (!cut || same_mesh(sh->mesh ? sh->mesh : module_mesh(s->m, sh->mesh_name), s->mesh))
    return NULL;
  return err_new(ERR_UNIMPLEMENTED, "shardings over several meshes cannot be partitioned");
}

static Err *check_op(Op *op, void *spmd) {
  static const char *const names[] = {"sharding", "sdy.sharding", "in_shardings", "out_shardings"};
  for (int i = 0; i < COUNT_OF(names); i++) TRY(check_sharding(spmd, op_attr(op, names[i])));
  for (int i = 0; i < op->n_results; i++)
    if (op->results[i].type->kind == TY_TENSOR && !type_is_static(op->results[i].type))
      return op_err(op, ERR_UNIMPLEMENTED, "a dynamic shape cannot be partitioned");
  return NULL;
}

/* A value is made in parts that are not summed yet where that is how it is asked for next, unless it was asked for in
 * another way before. */
static void ask_unsummed(Spmd *s, const Value *v, const Sharding *sh) {
  if (!says_sharding(v->def)) s->unsummed[v->id] = sh;
}

static Err *note_unsummed(Op *op, void *arg) {
  Spmd *s = arg;
  if (!says_sharding(op)) return NULL;
  const Attr *a = op_attr(op, "sharding");
  const Sharding *sh = a && a->kind == AT_SHARDING && a->sharding->n_unreduced ? a->sharding : NULL;
  s->unsummed[op->results[0].id] = sh;
  if (sh) ask_unsummed(s, op->operands[0], sh);
  return NULL;
}

static void note_unsummed_results(Spmd *s) {
  const Op *ret = s->f->body->last;
  for (int j = 0; j < ret->n_operands; j++) {
    const Attr *a = attrs_get(s->f->res_attrs[j], s->f->n_res_attrs[j], "sdy.sharding");
    if (a && a->kind == AT_SHARDING && a->sharding->n_unreduced)
      ask_unsummed(s, ret->operands[j], a->sharding);
  }
}

static Err *check_program(Spmd *s) {
  const Func *f = s->f;
  for (int i = 0; i < f->type->n_elems; i++)
    TRY(check_sharding(s, attrs_get(f->arg_attrs[i], f->n_arg_attrs[i], "sdy.sharding")));
  for (int j = 0; j < f->type->n_results; j++)
    TRY(check_sharding(s, attrs_get(f->res_attrs[j], f->n_res_attrs[j], "sdy.sharding")));
  return ir_walk(f->body, check_op, s);
}

/* ---- control ---- */

static Err *partition_region(Spmd *s, const Region *from, Region *to);

/* A region of a control-flow op: arguments laid out as `like`, returned values brought to `like`.
 */
static Err *control_region(Spmd *s, const Region *from, const Op *like, bool is_cond,
                           Region **out) {
  Type **types = xmalloc(sizeof *types * (size_t)(from->n_args + 1));
  for (int i = 0; i < from->n_args; i++) {
    s->layouts[from->args[i]->id] = *spmd_layout_of(s, &like->results[i]);
    types[i] = spmd_local_type(s, from->args[i]->type, &s->layouts[from->args[i]->id]);
  }
  Region *r = region_new(s->m, from->n_args, types);
  free(types);
  for (int i = 0; i < from->n_args; i++) s->local[from->args[i]->id] = r->args[i];
  Region *outer = s->at;
  Value *outer_id = s->partition_id;
  s->at = r;
  Err *e = partition_region(s, from, r);
  if (!e) {
    const Op *ret = from->last;
    Value **v = xmalloc(sizeof *v * (size_t)(ret->n_operands + 1));
    static const Layout none;
    for (int i = 0; i < ret->n_operands; i++)
      v[i] =
          spmd_operand(s, ret->operands[i], is_cond ? &none : spmd_layout_of(s, &like->results[i]));
    spmd_emit(s, OP_RETURN, ret->n_operands, v, 0, NULL, 0, NULL, 0, NULL);
    free(v);
  }
  s->at = outer;
  s->partition_id = outer_id;
  *out = r;
  return e;
}

/* An axis that cuts a dimension is none whose parts are terms. */
static void sums_where_free(const Value *v, const Dim *sums, Layout *l) {
  l->sum = spmd_not_cutting(sums, l, v->type->rank);
}

/* What a loop starts with it goes on with: sums that are due after it, of gradients over batches, wait. */
static void sums_as_operands(Spmd *s, const Op *op) {
  for (int i = 0; i < op->n_results; i++)
    sums_where_free(&op->results[i], &spmd_layout_of(s, op->operands[i])->sum,
                    spmd_layout_of(s, &op->results[i]));
}

static Err *control_op(Spmd *s, const Op *op) {
  Value **in = xmalloc(sizeof *in * (size_t)(op->n_operands + 1));
  Type **out = xmalloc(sizeof *out * (size_t)(op->n_results + 1));
  Region **regions = xmalloc(sizeof *regions * (size_t)(op->n_regions + 1));
  static const Layout none;
  if (op->kind == OP_WHILE) sums_as_operands(s, op);
  for (int k = 0; k < op->n_operands; k++)
    in[k] = spmd_operand(s, op->operands[k],
                         op->kind == OP_WHILE ? spmd_layout_of(s, &op->results[k]) : &none);
  for (int i = 0; i < op->n_results; i++)
    out[i] = spmd_local_type(s, op->results[i].type, spmd_layout_of(s, &op->results[i]));
  Err *e = NULL;
  for (int i = 0; i < op->n_regions && !e; i++)
    e = control_region(s, op->regions[i], op, op->kind == OP_WHILE && i == 0, &regions[i]);
  if (!e) {
    Op *c = spmd_emit(s, op->kind, op->n_operands, in, op->n_results, out, op->n_attrs, op->attrs,
                      op->n_regions, regions);
    for (int i = 0; i < op->n_results; i++) s->local[op->results[i].id] = &c->results[i];
  }
  free(in);
  free(out);
  free(regions);
  return e;
}

static void sums_from(const Sharding *sh, Dim *out) {
  out->n = MIN(sh->n_unreduced, MAX_AXES);
  for (int i = 0; i < out->n; i++) out->a[i] = sh->unreduced[i];
}

static void layout_from(const Attr *a, const Type *t, Layout *out) {
  *out = (Layout){0};
  if (!a || a->kind != AT_SHARDING) return;
  const Sharding *sh = a->sharding;
  for (int d = 0; d < sh->n_dims && d < t->rank && d < MAX_RANK; d++) {
    if (!t->dims[d]) continue; /* nothing to cut, and a gather of nothing is no StableHLO */
    out->d[d].n = MIN(sh->dims[d].n_axes, MAX_AXES);
    for (int i = 0; i < out->d[d].n; i++) out->d[d].a[i] = sh->dims[d].axes[i];
  }
  sums_from(sh, &out->sum);
}

/* Of a value inside: as far as the parts are equal. */
static void layout_inside(Spmd *s, const Attr *a, const Type *t, Layout *out) {
  layout_from(a, t, out);
  for (int d = 0; t->kind == TY_TENSOR && d < t->rank && d < MAX_RANK; d++)
    while (t->dims[d] % spmd_dim_parts(s, &out->d[d])) out->d[d].n--;
}

/* Of a value that others cut or join. */
static Err *layout_given(Spmd *s, const Attr *a, const Type *t, Layout *out) {
  Layout equal;
  layout_from(a, t, out);
  layout_inside(s, a, t, &equal);
  for (int d = 0; t->kind == TY_TENSOR && d < t->rank && d < MAX_RANK; d++)
    if (equal.d[d].n != out->d[d].n)
      return err_new(ERR_UNIMPLEMENTED, "%lld elements in %lld parts cannot be partitioned",
                     (long long)t->dims[d], (long long)spmd_dim_parts(s, &out->d[d]));
  return NULL;
}

static Err *partition_op(Spmd *s, Op *op);

/* The manual ones of the axes come first. */
static Dim axes_around(const Attr *manual, const Dim *given, const Dim *inside) {
  Dim r = {0};
  for (int i = 0; i < given->n; i++)
    for (int k = 0; k < manual->n; k++)
      if (str_eq(manual->items[k]->s, given->a[i].name)) r.a[r.n++] = given->a[i];
  for (int i = 0; i < inside->n && r.n < MAX_AXES; i++) r.a[r.n++] = inside->a[i];
  return r;
}

/* The manual axes of a sharding, and after them those by which the part inside is cut. */
static Err *layout_around(Spmd *s, const Op *op, const Attr *a, const Type *t, const Layout *inside,
                          Layout *out) {
  const Attr *axes = op_attr(op, "manual_axes");
  Layout given;
  layout_from(a, t, &given);
  *out = (Layout){0};
  for (int d = 0; d < t->rank && d < MAX_RANK; d++) {
    static const Dim none;
    Dim manual = axes_around(axes, &given.d[d], &none);
    if (t->dims[d] % spmd_dim_parts(s, &manual))
      return op_err(op, ERR_UNIMPLEMENTED, "%lld elements in %lld parts cannot be partitioned",
                    (long long)t->dims[d], (long long)spmd_dim_parts(s, &manual));
    out->d[d] = axes_around(axes, &given.d[d], &inside->d[d]);
  }
  out->sum = axes_around(axes, &given.sum, &inside->sum);
  return NULL;
}

/* The body is a program over the axes that are left: its operations are partitioned for those. */
static Err *partly_manual_op(Spmd *s, const Op *op) {
  const Attr *in = op_attr(op, "in_shardings"), *out = op_attr(op, "out_shardings"),
             *inside = op_attr(op, "weft.arguments");
  const Region *body = op->regions[0];
  for (int k = 0; k < op->n_operands; k++) {
    Layout *own = spmd_layout_of(s, body->args[k]), want;
    layout_inside(s, inside->items[k], body->args[k]->type, own);
    TRY(layout_around(s, op, in->items[k], op->operands[k]->type, own, &want));
    s->local[body->args[k]->id] = spmd_operand(s, op->operands[k], &want);
  }
  for (Op *b = body->first; b != body->last; b = b->next) TRY(partition_op(s, b));
  for (int i = 0; i < op->n_results; i++) {
    const Value *v = body->last->operands[i];
    Layout has;
    TRY(layout_around(s, op, out->items[i], op->results[i].type, spmd_layout_of(s, v), &has));
    spmd_set_result(s, op, i, s->local[v->id], &has);
  }
  return NULL;
}

/* The body is one device's program already: its ops go in as they are. */
static Err *manual_op(Spmd *s, Op *op) {
  const Attr *in = op_attr(op, "in_shardings"), *out = op_attr(op, "out_shardings");
  Region *body = op->regions[0];
  if (manual_is_partial(s->mesh, op)) return partly_manual_op(s, op);
  if (spmd_captures(s, body))
    return op_err(op, ERR_UNIMPLEMENTED, "values from outside cannot be partitioned");
  for (int k = 0; k < op->n_operands; k++) {
    Layout want;
    TRY(layout_given(s, in->items[k], op->operands[k]->type, &want));
    /* s->f still has the old body, this region in it */
    value_replace_all(s->f, body->args[k], spmd_operand(s, op->operands[k], &want));
  }
  Op *ret = body->last;
  for (Op *b = body->first, *next; b && b != ret; b = next) {
    next = b->next;
    op_remove(b);
    op_append(s->at, b);
  }
  for (int i = 0; i < op->n_results; i++) {
    Layout has;
    TRY(layout_given(s, out->items[i], op->results[i].type, &has));
    spmd_set_result(s, op, i, ret->operands[i], &has);
  }
  return NULL;
}

/* An exchange over manual axes: cut by others where its own dimensions are not concerned. */
static void exchange_op(Spmd *s, const Op *op) {
  static const char *const own[] = {"all_gather_dim", "scatter_dimension", "split_dimension",
                                    "concat_dimension"};
  bool keep[MAX_RANK];
  for (int d = 0; d < MAX_RANK; d++) keep[d] = true;
  for (int i = 0; i < COUNT_OF(own); i++) {
    int64_t d = op_int(op, own[i], -1);
    if (d >= 0 && d < MAX_RANK) keep[d] = false;
  }
  spmd_tied_op(s, op, keep, spmd_tie_same);
}

/* Which dimensions of the result may be cut as an operand's are. */
static void tied_dims(const Op *op, bool *tied) {
  const Type *r = op->n_results ? op->results[0].type : NULL;
  const int64_t *v;
  for (int d = 0; d < MAX_RANK; d++) tied[d] = true;
  switch (op->kind) {
  case OP_BROADCAST_IN_DIM: {
    const int64_t *from = op->operands[0]->type->dims;
    int n = op_ints(op, "broadcast_dimensions", &v);
    for (int i = 0; i < n; i++)
      if (from[i] != r->dims[v[i]]) tied[v[i]] = from[i] == 1;
    break;
  }
  case OP_BITCAST_CONVERT: { /* a width more or less is a dimension at the end */
    const Type *x = op->operands[0]->type;
    for (int d = 0; d < r->rank; d++) tied[d] = d < x->rank && x->dims[d] == r->dims[d];
    break;
  }
  case OP_SELECT_AND_SCATTER: { /* windows that lie within parts */
    Side sides[MAX_RANK];
    for (int d = 0, n = window_sides(op, sides); d < n; d++) {
      const Side *w = &sides[d];
      tied[d] = window_follows(w, CUT_OUTPUTS) && !w->low && w->taps <= w->stride;
    }
    break;
  }
  default: break;
  }
}

static Err *partition_op(Spmd *s, Op *op) {
  s->loc = op->loc;
  for (int i = 0; i < op->n_results; i++) {
    const Attr *a = op_attr(op, "weft.sharding");
    Layout *l = spmd_layout_of(s, &op->results[i]);
    layout_inside(s, a && i < a->n ? a->items[i] : NULL, op->results[i].type, l);
    const Sharding *unsummed = s->unsummed[op->results[i].id];
    Dim sums = {0};
    if (unsummed) sums_from(unsummed, &sums);
    sums_where_free(&op->results[i], &sums, l);
  }
  op_set_attr(s->m, op, STR("weft.sharding"), NULL);
  for (int i = 0; i < op->n_results; i++)
    if (op->results[i].type->kind == TY_TENSOR && op->results[i].type->rank > MAX_RANK)
      return op_err(op, ERR_UNIMPLEMENTED, "rank %d cannot be partitioned",
                    op->results[i].type->rank);
  bool tied[MAX_RANK];
  tied_dims(op, tied);
  switch (op->kind) {
  case OP_RETURN: return NULL;
  case OP_CONSTANT: spmd_constant_op(s, op); return NULL;
  case OP_IOTA: spmd_iota_op(s, op); return NULL;
  case OP_SELECT_AND_SCATTER: spmd_tied_op(s, op, tied, spmd_tie_same); return NULL;
  case OP_BROADCAST_IN_DIM: spmd_broadcast_op(s, op, tied); return NULL;
  case OP_TRANSPOSE: spmd_tied_op(s, op, tied, spmd_tie_transpose); return NULL;
  case OP_BITCAST_CONVERT: spmd_tied_op(s, op, tied, spmd_tie_leading); return NULL;
  case OP_RESHAPE: spmd_reshape_op(s, op); return NULL;
  case OP_REDUCE: spmd_reduce_op(s, op); return NULL;
  case OP_DOT:
  case OP_DOT_GENERAL: spmd_dot_op(s, op); return NULL;
  case OP_CONVOLUTION: spmd_conv_op(s, op); return NULL;
  case OP_GATHER:
    if (!spmd_lookup_op(s, op)) spmd_gather_op(s, op);
    return NULL;
  case OP_SCATTER:
    if (op->n_operands > 64) break;
    spmd_scatter_op(s, op);
    return NULL;
  case OP_SLICE:
  case OP_DYNAMIC_SLICE:
  case OP_PAD:
  case OP_CONCATENATE:
  case OP_SORT:
  case OP_REDUCE_WINDOW:
    if (op->kind == OP_REDUCE_WINDOW && spmd_pool_op(s, op)) return NULL;
    if (op->kind == OP_SLICE && spmd_slice_op(s, op)) return NULL;
    if (op->kind == OP_PAD && spmd_pad_op(s, op)) return NULL;
    if (op->kind == OP_CONCATENATE && spmd_joined_op(s, op)) return NULL;
    if (op->n_operands <= 64 && op->n_results <= 64) {
      spmd_moved_op(s, op);
      return NULL;
    }
    break;
  case OP_DYNAMIC_UPDATE_SLICE: spmd_update_slice_op(s, op); return NULL;
  case OP_REVERSE: spmd_reverse_op(s, op); return NULL;
  case OP_CHLO_TOP_K: spmd_top_k_op(s, op); return NULL;
  case OP_SHARDING_CONSTRAINT:
  case OP_RESHARD:
  case OP_PROPAGATION_BARRIER:
    s->local[op->results[0].id] =
        spmd_operand(s, op->operands[0], spmd_layout_of(s, &op->results[0]));
    return NULL;
  case OP_CUSTOM_CALL:
    if (op_is_partitioned_callback(op)) {
      spmd_callback_op(s, op);
      return NULL;
    }
    if (!op_is_remark(op)) break;
    s->local[op->results[0].id] =
        spmd_operand(s, op->operands[0], spmd_layout_of(s, &op->results[0]));
    return NULL;
  case OP_SHARDING_GROUP: return NULL;
  case OP_OPTIMIZATION_BARRIER:
    sums_as_operands(s, op);
    spmd_barrier_op(s, op);
    return NULL;
  case OP_WHILE:
  case OP_CASE:
  case OP_IF: return control_op(s, op);
  case OP_ALL_REDUCE:
  case OP_ALL_GATHER:
  case OP_REDUCE_SCATTER:
  case OP_ALL_TO_ALL:
  case OP_COLLECTIVE_PERMUTE:
  case OP_COLLECTIVE_BROADCAST:
    if (op->n_operands != 1) break;
    exchange_op(s, op);
    return NULL;
  case OP_MANUAL_COMPUTATION: return manual_op(s, op);
  default:
    if (op_info[op->kind].cls == OC_EWISE && op->n_results == 1 && op->kind != OP_MAP) {
      if (spmd_elementwise_op(s, op)) return NULL;
      spmd_tied_op(s, op, tied, spmd_tie_same);
      return NULL;
    }
    break;
  }
  spmd_batched_op(s, op);
  return NULL;
}

static Err *partition_region(Spmd *s, const Region *from, Region *to) {
  s->at = to;
  s->partition_id = NULL;
  for (Op *op = from->first, *next; op; op = next) {
    next = op->next;
    TRY(partition_op(s, op));
  }
  return NULL;
}

/* What the propagation noted would tell equal operations apart. */
static Err *drop_notes(Op *op, void *module) {
  op_set_attr(module, op, STR("weft.sharding"), NULL);
  return NULL;
}

static void drop_shardings(NamedAttr *attrs, int *n) {
  int kept = 0;
  for (int i = 0; i < *n; i++)
    if (!str_is(attrs[i].name, "sdy.sharding") && !str_is(attrs[i].name, "mhlo.sharding"))
      attrs[kept++] = attrs[i];
  *n = kept;
}

/* The new body with its arguments; types: theirs, local. */
static Err *new_body(Spmd *s, const Region *old, Type **types) {
  Func *f = s->f;
  for (int i = 0; i < old->n_args; i++) {
    Layout *l = &s->layouts[old->args[i]->id];
    TRY(layout_given(s, attrs_get(f->arg_attrs[i], f->n_arg_attrs[i], "sdy.sharding"),
                     old->args[i]->type, l));
    types[i] = spmd_local_type(s, old->args[i]->type, l);
  }
  Region *body = region_new(s->m, old->n_args, types);
  body->func = f;
  for (int i = 0; i < old->n_args; i++) {
    body->args[i]->name = old->args[i]->name;
    s->local[old->args[i]->id] = body->args[i];
  }
  s->at = body;
  return NULL;
}

/* The values that main returns as their shardings want them; types: theirs, local. */
static Err *new_return(Spmd *s, const Op *ret, Type **types) {
  const Func *f = s->f;
  Value **v = xmalloc(sizeof *v * (size_t)(ret->n_operands + 1));
  Err *e = NULL;
  for (int j = 0; j < ret->n_operands && !e; j++) {
    Layout want;
    e = layout_given(s, attrs_get(f->res_attrs[j], f->n_res_attrs[j], "sdy.sharding"),
                     ret->operands[j]->type, &want);
    if (e) break;
    v[j] = spmd_operand(s, ret->operands[j], &want);
    types[j] = v[j]->type;
  }
  s->loc = ret->loc;
  if (!e) spmd_emit(s, OP_RETURN, ret->n_operands, v, 0, NULL, 0, NULL, 0, NULL);
  free(v);
  return e;
}

static Err *partition_main(Spmd *s) {
  Func *f = s->f;
  const Region *old = f->body;
  int n_in = old->n_args, n_out = old->last->n_operands;
  Type **types = xmalloc(sizeof *types * (size_t)(n_in + n_out + 1));
  Err *e = new_body(s, old, types);
  Region *body = s->at;
  if (!e) e = partition_region(s, old, body);
  if (!e) e = new_return(s, old->last, types + n_in);
  if (!e) {
    f->type = type_func(s->m, n_in, types, n_out, types + n_in);
    f->body = body;
    err_free(ir_walk(body, drop_notes, s->m));
    for (int i = 0; i < n_in; i++) drop_shardings(f->arg_attrs[i], &f->n_arg_attrs[i]);
    for (int j = 0; j < n_out; j++) drop_shardings(f->res_attrs[j], &f->n_res_attrs[j]);
  }
  free(types);
  return e;
}

static Err *count_uses(Op *op, void *uses) {
  for (int i = 0; i < op->n_operands; i++) ((int *)uses)[op->operands[i]->id]++;
  return NULL;
}

/* Arrays made whole for slices and pads of which others look at what they took. */
static void drop_unused(const Region *r, int *uses) {
  for (Op *op = r->last, *before; op; op = before) {
    before = op->prev;
    for (int i = 0; i < op->n_regions; i++) drop_unused(op->regions[i], uses);
    bool moves = op_info[op->kind].cls == OC_MOVE || op->kind == OP_DYNAMIC_SLICE ||
                 op->kind == OP_ALL_GATHER;
    if (!moves || uses[op->results[0].id]) continue;
    for (int i = 0; i < op->n_operands; i++) uses[op->operands[i]->id]--;
    op_remove(op);
  }
}

static void drop_unused_wholes(Func *f) {
  int *uses = xcalloc((size_t)ir_number(f) + 1, sizeof *uses);
  err_free(ir_walk(f->body, count_uses, uses));
  drop_unused(f->body, uses);
  free(uses);
}

Err *pass_partition(Module *m, bool *out_done) {
  *out_done = false;
  Func *f = module_main(m);
  if (!f || !f->body) return NULL;
  pass_one_mesh(m, mesh_of_main(m));
  Spmd s = {.m = m, .mesh = mesh_of_main(m), .f = f, .n_devices = 1, .next_channel = 1 << 20};
  if (!s.mesh) return NULL;
  TRY(check_program(&s));
  pass_propagate(m, true);
  for (int i = 0; i < s.mesh->n_axes; i++) s.n_devices *= s.mesh->axes[i].size;
  s.exchanged = map_new();
  s.broadcasts = map_new();
  int n = ir_number(f);
  s.local = xcalloc((size_t)n, sizeof *s.local);
  s.layouts = xcalloc((size_t)n, sizeof *s.layouts);
  s.unsummed = xcalloc((size_t)n, sizeof *s.unsummed);
  note_unsummed_results(&s);
  err_free(ir_walk(f->body, note_unsummed, &s));
  Err *e = partition_main(&s);
  if (!e) drop_unused_wholes(f);
  *out_done = !e;
  free(s.local);
  free(s.layouts);
  free(s.unsummed);
  map_free(s.exchanged);
  map_free(s.broadcasts);
  return e;
}
