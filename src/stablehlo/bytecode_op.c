/* The operations of a file, read recursively into the canonical form of ir.h: VHLO rows give kind and
 * attributes, casts between VHLO and builtin types vanish, functions and meshes go to the module. */
#include <stdlib.h>

#include "stablehlo/bytecode_priv.h"
#include "stablehlo/canon.h"

#define MAX_LIST 1024 /* numbers in an attribute that has one for each dimension */
#define MAX_NAME 256  /* bytes of an operation's name */
#define MAX_ATTRS 128 /* attributes of an operation; of functions and modules more */

/* ---- operation names ---- */

static Err *resolve(Reader *r, OpName *o, const uint8_t *at) {
  if (o->resolved) return NULL;
  const Dialect *d = &r->dialects[o->dialect];
  if (d->name.n + o->name.n > MAX_NAME)
    return bc_err(r, at, "an operation with a name of %zu bytes", o->name.n);
  o->full = arena_printf(r->m->arena, "%.*s.%.*s", STR_ARG(d->name), STR_ARG(o->name));
  o->role = ROLE_PLAIN;
  if (d->id == D_VHLO) {
    o->vhlo = vhlo_find(o->name);
    if (!o->vhlo)
      return err_hint(
          bc_unimplemented(bc_err(r, at, "the operation '%.*s' is not in VHLO 0.9 to %d.%d",
                                  STR_ARG(o->full), VHLO_NEWEST / 1000, VHLO_NEWEST % 1000)),
          "ask the producer for an older target version");
    o->kind = o->vhlo->kind;
    if (o->kind == OP_UNKNOWN) o->role = ROLE_FUNC;
  } else if (str_is(o->full, "builtin.module")) {
    o->role = ROLE_MODULE;
  } else if (str_is(o->full, "builtin.unrealized_conversion_cast")) {
    o->role = ROLE_CAST;
  } else if (str_is(o->full, "func.func")) {
    o->role = ROLE_FUNC;
  } else if (str_is(o->full, "sdy.mesh")) {
    o->role = ROLE_MESH;
  } else {
    o->kind = op_kind_from_name(o->full);
  }
  o->resolved = true;
  return NULL;
}

/* Layout of an op's properties: "name:kind", where kind "O" is an optional reference. NULL:
 * unknown. */
static const char *props_layout(const Reader *r, const OpName *o) {
  static const struct {
    const char *name, *attrs;
  } rows[] = {{"builtin.module", "sym_name:O sym_visibility:O"},
              {"sdy.mesh", "mesh:R sym_name:R"},
              {"sdy.sharding_constraint", "sharding:R"},
              {"sdy.reshard", "sharding:R"},
              {"sdy.manual_computation", "in_shardings:R manual_axes:R out_shardings:R"},
              {"sdy.sharding_group", "group_id:R"},
              {"sdy.named_computation", "in_shardings:O name:R out_shardings:O"},
              {"sdy.propagation_barrier", "allowed_direction:R"},
              {"func.func",
               "arg_attrs:O function_type:R no_inline:O res_attrs:O sym_name:R sym_visibility:O"},
              {"func.call", "arg_attrs:O callee:R no_inline:O res_attrs:O"}};
  if (o->vhlo) return o->vhlo->attrs;
  for (int i = 0; i < COUNT_OF(rows); i++)
    if (str_is(o->full, rows[i].name)) return rows[i].attrs;
  DialectId id = r->dialects[o->dialect].id;
  return id == D_STABLEHLO || id == D_CHLO || id == D_MHLO ? bc_shlo_props(o->full) : NULL;
}

/* ---- attributes of an operation ---- */

static bool dropped(const OpName *o, Str name) {
  if (o->kind == OP_DYNAMIC_CONV && str_is(name, "padding"))
    return true; /* version 1 had it besides the operand */
  if (o->vhlo || o->role != ROLE_PLAIN) return false;
  return str_is(name, "operandSegmentSizes") || str_is(name, "resultSegmentSizes") ||
         str_is(name, "operand_segment_sizes") || str_is(name, "result_segment_sizes");
}

/* Puts one attribute on the stack, canonical. `shared` is the table's entry it comes from, where
 * the result is kept, so that an attribute of many operations is converted once; NULL for a field
 * of a struct. */
static Err *push_canon(Reader *r, const OpName *o, Str name, Attr *a, Entry *shared) {
  const AttrSpec *spec = o->kind == OP_UNKNOWN ? NULL : op_attr_spec(o->kind, name);
  for (const Canon *c = shared && spec ? shared->canon : NULL; c; c = c->next) {
    if (c->spec != spec) continue;
    if (c->value) *vec_push(&r->op_attrs) = (NamedAttr){name, c->value};
    return NULL;
  }
  if (spec && (spec->kind == SK_INTS || spec->kind == SK_BOOLS) && a->kind == AT_TENSOR &&
      a->tensor->count > MAX_LIST)
    return bc_err(r, NULL, "attribute '%.*s' has more than %d numbers", STR_ARG(name), MAX_LIST);
  Err *e = canon_attr(r->m, o->kind, name, a, &a);
  if (e) return err_place(e, "%s", r->file && *r->file ? r->file : "bytecode");
  if (a) *vec_push(&r->op_attrs) = (NamedAttr){name, a};
  if (spec && shared) {
    Canon *c = ARENA_NEW(r->m->arena, Canon);
    *c = (Canon){spec, a, shared->canon};
    shared->canon = c;
  }
  return NULL;
}

static Err *push_attr(Reader *r, const OpName *o, Str name, uint64_t index) {
  Entry *e;
  TRY(bc_entry(r, index, &e));
  if (dropped(o, name)) return NULL;
  Attr *a = e->attr;
  if (o->kind == OP_PROPAGATION_BARRIER && a &&
      a->kind == AT_INT) { /* Shardy's enumeration is a number here */
    static const char *const names[] = {"NONE", "FORWARD", "BACKWARD", "BOTH"};
    if (a->i < 0 || a->i > 3)
      return bc_err(r, (const uint8_t *)e->data.p, "a direction of propagation");
    *vec_push(&r->op_attrs) = (NamedAttr){name, attr_enum(r->m, str_from(names[a->i]))};
    return NULL;
  }
  if (e->raw_kind == RAW_STRUCT) {
    for (int i = 0; i < a->n; i++) TRY(push_canon(r, o, a->dict[i].name, a->dict[i].value, NULL));
    return NULL;
  }
  if (e->raw_kind == RAW_GROUPS) {
    TRY(bc_groups(r, e->raw, &e->attr)); /* made once */
    e->raw_kind = RAW_NONE;
    a = e->attr;
  }
  if (!a)
    return bc_err(r, (const uint8_t *)e->data.p, "attribute '%.*s' has no value", STR_ARG(name));
  return push_canon(r, o, name, a, e);
}

static Err *push_dict(Reader *r, const OpName *o, uint64_t index) {
  Entry *e;
  TRY(bc_entry(r, index, &e));
  if (!e->attr || e->attr->kind != AT_DICT || e->raw_kind == RAW_STRUCT)
    return bc_err(r, (const uint8_t *)e->data.p, "expected a dictionary of attributes");
  /* read again reference by reference, to share what is already canonical */
  Cur c = {(const uint8_t *)e->data.p, (const uint8_t *)e->data.p + e->data.n, NULL};
  (void)cur_varint(&c);
  int n = cur_count(&c, 2);
  if (n > 16 * MAX_ATTRS) return bc_err(r, c.p, "a dictionary of %d attributes", n);
  for (int i = 0; i < n; i++) {
    Attr *key;
    TRY(bc_attr(r, cur_varint(&c), &key));
    TRY(push_attr(r, o, key->s, cur_varint(&c)));
  }
  return NULL;
}

static Err *push_props(Reader *r, const OpName *o, uint64_t index, const uint8_t *at) {
  if (index >= (uint64_t)r->n_props)
    return bc_err(r, at, "properties %llu of %d", (unsigned long long)index, r->n_props);
  Str s = r->props[index];
  Cur c = {(const uint8_t *)s.p, (const uint8_t *)s.p + s.n, NULL};
  if (!o->registered) {
    uint64_t dict = cur_varint(&c);
    TRY(bc_check(r, &c, "properties"));
    return push_dict(r, o, dict);
  }
  const char *layout = props_layout(r, o);
  if (!layout)
    return bc_unimplemented(bc_err(r, c.p, "properties of the operation '%.*s'", STR_ARG(o->full)));
  Str name, kind;
  while (vhlo_next_attr(&layout, &name, &kind)) {
    bool present = true;
    if (c.p == c.end && str_is(kind, "O")) break; /* a trailing one that this writer did not know */
    uint64_t ref = str_is(kind, "O") ? cur_flag(&c, &present) : cur_varint(&c);
    TRY(bc_check(r, &c, "properties"));
    if (present) TRY(push_attr(r, o, name, ref));
  }
  if (r->version >= 6 && !o->vhlo) c.p = c.end; /* segment sizes may follow */
  if (c.p != c.end)
    return bc_err(r, c.p, "%zu bytes too many in the properties of '%.*s'", cur_left(&c),
                  STR_ARG(o->full));
  return NULL;
}

/* ---- operations ---- */

/* Values by number. An isolated operation's regions start a new scope, others extend their
 * parent's. */
typedef VEC(Value *) Scope;

typedef struct Slots { /* of the region being read: the next free one, and the end of its own */
  Scope *scope;
  int next, end;
} Slots;

/* What stands before an operation's regions. Lists lie on the reader's stacks from the given
 * positions on. */
typedef struct Head {
  OpName *name;
  const uint8_t *at;
  const Loc *loc;
  int attr0, type0, val0, region0;
  int n_regions;
  bool isolated;
} Head;

static Err *skip_use_lists(const Reader *r, Cur *c, int n_values) {
  int n = n_values == 1 ? 1 : cur_count(c, 2);
  for (int i = 0; i < n; i++) {
    if (n_values != 1) (void)cur_varint(c);
    bool pairs;
    uint64_t count = cur_flag(c, &pairs);
    for (uint64_t k = 0; k < count && !c->bad; k++) (void)cur_varint(c);
  }
  return bc_check(r, c, "use-list order");
}

static Err *read_head(Reader *r, Cur *c, const Slots *slots, Head *h) {
  h->at = c->p;
  uint64_t name = cur_varint(c);
  uint8_t mask = cur_byte(c);
  uint64_t loc = cur_varint(c);
  TRY(bc_check(r, c, "operation"));
  if (name >= (uint64_t)r->n_op_names)
    return bc_err(r, h->at, "operation name %llu of %d", (unsigned long long)name, r->n_op_names);
  OpName *o = h->name = &r->op_names[name];
  TRY(resolve(r, o, h->at));
  TRY(bc_loc(r, loc, &h->loc));
  h->attr0 = r->op_attrs.n;
  h->type0 = r->result_types.n;
  h->val0 = r->vals.n;
  h->region0 = r->regions.n;
  Err *e = NULL;
  if (mask & 0x01) e = push_dict(r, o, cur_varint(c));
  if (!e && (mask & 0x40)) e = push_props(r, o, cur_varint(c), h->at);
  if (!e && r->op_attrs.n - h->attr0 > (o->role == ROLE_PLAIN ? MAX_ATTRS : 16 * MAX_ATTRS))
    e = bc_err(r, h->at, "has %d attributes", r->op_attrs.n - h->attr0);
  if (e) return err_wrap(e, "operation '%.*s'", STR_ARG(o->full));
  int n_results = 0;
  if (mask & 0x02) {
    n_results = cur_count(c, 1);
    for (int i = 0; i < n_results; i++) {
      Type *t;
      TRY(bc_type(r, cur_varint(c), &t));
      *vec_push(&r->result_types) = t;
    }
  }
  if (mask & 0x04) {
    int n = cur_count(c, 1);
    for (int i = 0; i < n; i++) {
      uint64_t v = cur_varint(c);
      TRY(bc_check(r, c, "operand"));
      if (!slots || v >= (uint64_t)slots->scope->n)
        return bc_err(r, c->p, "operand %llu of '%.*s' does not exist", (unsigned long long)v,
                      STR_ARG(o->full));
      if (!slots->scope->v[v])
        return bc_err(r, c->p, "operand %d of '%.*s' is used before it is defined", i,
                      STR_ARG(o->full));
      *vec_push(&r->vals) = slots->scope->v[v];
    }
  }
  if (mask & 0x08)
    return bc_unimplemented(bc_err(r, c->p, "'%.*s' branches to other blocks", STR_ARG(o->full)));
  if (mask & 0x20) TRY(skip_use_lists(r, c, n_results));
  h->n_regions = 0;
  if (mask & 0x10) h->n_regions = cur_fit(c, cur_flag(c, &h->isolated), 1);
  return bc_check(r, c, "operation");
}

static void pop_head(Reader *r, const Head *h) {
  r->op_attrs.n = h->attr0;
  r->result_types.n = h->type0;
  r->vals.n = h->val0;
  r->regions.n = h->region0;
}

static Err *read_op(Reader *r, Cur *c, Slots *slots, Region *into, int depth);

static Err *read_block_args(Reader *r, Cur *c, Slots *slots, Region **out) {
  int type0 = r->result_types.n, n = cur_count(c, 1);
  Str *names = ARENA_ARRAY(r->m->arena, Str, n); /* JAX's locations: "params['kernel']" */
  for (int i = 0; i < n; i++) {
    Type *t;
    bool has_loc = true;
    uint64_t type = r->version >= 4 ? cur_flag(c, &has_loc) : cur_varint(c);
    TRY(bc_check(r, c, "block argument"));
    TRY(bc_type(r, type, &t));
    const Loc *loc = NULL;
    if (has_loc) TRY(bc_loc(r, cur_varint(c), &loc));
    if (loc && loc->kind == LOC_NAME) names[i] = loc->name;
    *vec_push(&r->result_types) = t;
  }
  TRY(bc_check(r, c, "block arguments"));
  if (n > slots->end - slots->next)
    return bc_err(r, c->p, "more values in a region than announced");
  *out = region_new(r->m, n, r->result_types.v + type0);
  for (int i = 0; i < n; i++) {
    (*out)->args[i]->name = names[i];
    slots->scope->v[slots->next++] = (*out)->args[i];
  }
  r->pending -= n;
  r->result_types.n = type0;
  return NULL;
}

/* One region with its block; *out is NULL for a region without blocks. */
static Err *read_region(Reader *r, Cur *c, Scope *scope, Func *f, int depth, Region **out) {
  *out = NULL;
  if (depth >= IR_MAX_DEPTH) return bc_err(r, c->p, "regions nested deeper than %d", IR_MAX_DEPTH);
  const uint8_t *at = c->p;
  uint64_t n_blocks = cur_varint(c);
  TRY(bc_check(r, c, "region"));
  if (!n_blocks) return NULL;
  if (n_blocks != 1) return bc_unimplemented(bc_err(r, at, "a region of several blocks"));
  int n_values = cur_count(c, 1);
  /* each value takes at least a byte of what follows, be it in this region or an open one */
  r->pending += n_values;
  if (r->pending > (const uint8_t *)r->bytes.p + r->bytes.n - c->p)
    return bc_err(r, at, "more values than bytes");
  Slots slots = {scope, scope->n, scope->n + n_values};
  for (int i = 0; i < n_values; i++) *vec_push(scope) = NULL;
  bool has_args;
  int n_ops = cur_fit(c, cur_flag(c, &has_args), 3);
  TRY(bc_check(r, c, "block"));
  if (has_args) TRY(read_block_args(r, c, &slots, out));
  else *out = region_new(r->m, 0, NULL);
  Region *region = *out;
  region->func = f;
  if (has_args && r->version >= 3 && (cur_byte(c) & 0x20))
    TRY(skip_use_lists(r, c, region->n_args));
  for (int i = 0; i < n_ops; i++) TRY(read_op(r, c, &slots, region, depth));
  TRY(bc_check(r, c, "block"));
  if (slots.next != slots.end) return bc_err(r, at, "fewer values in a region than announced");
  scope->n -= n_values;
  return NULL;
}

/* Where the regions of an operation stand: isolated ones in a section of their own. */
static Err *enter(const Reader *r, Cur *c, const Head *h, Cur *inner, Cur **in) {
  *in = c;
  if (!h->isolated || r->version < 2) return NULL;
  int id;
  TRY(bc_section(r, c, &id, inner));
  if (id != S_IR) return bc_err(r, c->p, "section %d in place of regions", id);
  *in = inner;
  return NULL;
}

/* All regions of an operation onto the reader's stack. */
static Err *read_regions(Reader *r, Cur *c, const Head *h, Scope *parent, Func *f, int depth) {
  Cur inner, *in;
  TRY(enter(r, c, h, &inner, &in));
  for (int i = 0; i < h->n_regions; i++) {
    Region *region;
    Scope own = {0};
    Err *e = read_region(r, in, h->isolated ? &own : parent, f, depth, &region);
    vec_free(&own);
    if (e) return e;
    *vec_push(&r->regions) = region;
  }
  if (in == &inner && inner.p != inner.end)
    return bc_err(r, inner.p, "%zu bytes too many in a region", cur_left(in));
  return NULL;
}

static Err *read_op(Reader *r, Cur *c, Slots *slots, Region *into, int depth) {
  Head h = {0};
  TRY(read_head(r, c, slots, &h));
  OpName *o = h.name;
  int n_results = r->result_types.n - h.type0, n_operands = r->vals.n - h.val0;
  if (n_results > slots->end - slots->next)
    return bc_err(r, h.at, "more values in a region than announced");
  int slot = slots->next;
  slots->next += n_results;
  r->pending -= n_results;
  if (o->role == ROLE_CAST) {
    if (n_results != n_operands || h.n_regions)
      return bc_err(r, h.at, "a cast of %d to %d values", n_operands, n_results);
    for (int i = 0; i < n_results; i++) {
      Value *v = r->vals.v[h.val0 + i];
      if (v->type != r->result_types.v[h.type0 + i])
        return bc_err(r, h.at, "a cast to a different type");
      slots->scope->v[slot + i] = v;
    }
    pop_head(r, &h);
    return NULL;
  }
  if (o->role != ROLE_PLAIN) return bc_err(r, h.at, "'%.*s' inside a function", STR_ARG(o->full));
  if (h.n_regions) TRY(read_regions(r, c, &h, slots->scope, into->func, depth + 1));
  for (int i = 0; i < h.n_regions; i++)
    if (!r->regions.v[h.region0 + i])
      return bc_err(r, h.at, "'%.*s' has a region without a block", STR_ARG(o->full));
  Op *op = op_new(r->m, o->kind, n_operands, r->vals.v + h.val0, n_results,
                  r->result_types.v + h.type0, r->op_attrs.n - h.attr0, r->op_attrs.v + h.attr0,
                  h.n_regions, r->regions.v + h.region0);
  op->loc = h.loc;
  if (o->kind == OP_UNKNOWN) op->name = o->full;
  for (int i = 1; i < op->n_attrs; i++)
    if (str_eq(op->attrs[i - 1].name, op->attrs[i].name))
      return bc_err(r, h.at, "'%.*s' has the attribute '%.*s' twice", STR_ARG(o->full),
                    STR_ARG(op->attrs[i].name));
  pop_head(r, &h);
  op_append(into, op);
  for (int i = 0; i < n_results; i++) slots->scope->v[slot + i] = &op->results[i];
  return NULL;
}

/* ---- the module ---- */

static Attr *head_attr(const Reader *r, const Head *h, const char *name) {
  return attrs_get(r->op_attrs.v + h->attr0, r->op_attrs.n - h->attr0, name);
}

static int by_name(const void *a, const void *b) {
  return str_cmp(((const NamedAttr *)a)->name, ((const NamedAttr *)b)->name);
}

/* What is left of an op's attributes after the named ones, sorted. */
static NamedAttr *other_attrs(const Reader *r, const Head *h, const char *const *own, int *n) {
  int total = r->op_attrs.n - h->attr0;
  NamedAttr *v = ARENA_ARRAY(r->m->arena, NamedAttr, total);
  *n = 0;
  for (int i = 0; i < total; i++) {
    const NamedAttr *a = &r->op_attrs.v[h->attr0 + i];
    bool is_own = false;
    for (int k = 0; own[k]; k++) is_own |= str_is(a->name, own[k]);
    if (!is_own) v[(*n)++] = *a;
  }
  if (*n) qsort(v, (size_t)*n, sizeof *v, by_name);
  return v;
}

static Err *set_value_attrs(const Reader *r, const Head *h, const char *name, int n,
                            NamedAttr **attrs, int *counts) {
  const Attr *a = head_attr(r, h, name);
  if (!a || (a->kind == AT_ARRAY && a->n == 0)) return NULL;
  if (a->kind != AT_ARRAY || a->n != n)
    return bc_err(r, h->at, "'%s' does not fit the function's type", name);
  for (int i = 0; i < n; i++) {
    if (a->items[i]->kind != AT_DICT)
      return bc_err(r, h->at, "'%s' holds something else than dictionaries", name);
    attrs[i] = a->items[i]->dict;
    counts[i] = a->items[i]->n;
  }
  return NULL;
}

static Err *read_func(Reader *r, Cur *c, Head *h) {
  static const char *const own[] = {"arg_attrs", "function_type",  "res_attrs",
                                    "sym_name",  "sym_visibility", NULL};
  const Attr *name = head_attr(r, h, "sym_name"), *type = head_attr(r, h, "function_type");
  const Attr *visibility = head_attr(r, h, "sym_visibility");
  if (!name || name->kind != AT_STRING) return bc_err(r, h->at, "a function without a name");
  if (!type || type->kind != AT_TYPE || type->type->kind != TY_FUNC)
    return bc_err(r, h->at, "function '%.*s' has no type", STR_ARG(name->s));
  if (r->vals.n != h->val0 || r->result_types.n != h->type0 || h->n_regions > 1)
    return bc_err(r, h->at, "function '%.*s' has operands, results or several regions",
                  STR_ARG(name->s));
  /* what a function takes in memory beside its body; types and names can be shared by many in the
   * file */
  r->func_units += (int64_t)name->s.n + type->type->n_elems + type->type->n_results;
  if (r->func_units > 4 * (int64_t)r->bytes.n) return bc_err(r, h->at, "functions of absurd size");
  Func *f = func_declare(r->m, name->s, type->type);
  f->is_private = visibility && visibility->kind == AT_STRING && str_is(visibility->s, "private");
  f->says_public = visibility && visibility->kind == AT_STRING && str_is(visibility->s, "public");
  f->loc = h->loc;
  f->attrs = other_attrs(r, h, own, &f->n_attrs);
  TRY(set_value_attrs(r, h, "arg_attrs", type->type->n_elems, f->arg_attrs, f->n_arg_attrs));
  TRY(set_value_attrs(r, h, "res_attrs", type->type->n_results, f->res_attrs, f->n_res_attrs));
  if (!h->n_regions) return NULL;
  Scope scope = {0};
  Err *e = read_regions(r, c, h, &scope, f, 1);
  vec_free(&scope);
  if (e) return err_wrap(e, "function '%.*s'", STR_ARG(name->s));
  f->body = r->regions.v[h->region0];
  if (!f->body) return NULL;
  bool same = f->body->n_args == f->type->n_elems;
  for (int i = 0; same && i < f->body->n_args; i++)
    same = f->body->args[i]->type == f->type->elems[i];
  if (!same)
    return bc_err(r, h->at, "the body of function '%.*s' does not fit its type", STR_ARG(name->s));
  return NULL;
}

static Err *read_mesh(Reader *r, const Head *h) {
  const Attr *name = head_attr(r, h, "sym_name");
  Attr *mesh = head_attr(r, h, "mesh");
  if (!name || name->kind != AT_STRING || !mesh || mesh->kind != AT_MESH)
    return bc_err(r, h->at, "a mesh without name or axes");
  mesh->mesh->repeated = head_attr(r, h, "stablehlo.mesh") != NULL;
  *vec_push(&r->m->meshes) = (NamedAttr){name->s, mesh};
  return NULL;
}

static Err *read_module_ops(Reader *r, Cur *c) {
  uint64_t n_blocks = cur_varint(c);
  TRY(bc_check(r, c, "module"));
  if (!n_blocks) return NULL;
  (void)cur_varint(c); /* values */
  bool has_args;
  int n_ops = cur_fit(c, cur_flag(c, &has_args), 3);
  TRY(bc_check(r, c, "module"));
  if (n_blocks != 1 || has_args)
    return bc_err(r, c->p, "a module of several blocks or with arguments");
  for (int i = 0; i < n_ops; i++) {
    Head h = {0};
    TRY(read_head(r, c, NULL, &h));
    if (h.name->role == ROLE_FUNC) TRY(read_func(r, c, &h));
    else if (h.name->role == ROLE_MESH && !h.n_regions) TRY(read_mesh(r, &h));
    else return bc_err(r, h.at, "'%.*s' outside a function", STR_ARG(h.name->full));
    pop_head(r, &h);
  }
  return bc_check(r, c, "module");
}

Err *bc_read_ir(Reader *r, Cur c) {
  static const char *const own[] = {"sym_name", "sym_visibility", NULL};
  bool has_args;
  uint64_t n_ops = cur_flag(&c, &has_args);
  TRY(bc_check(r, &c, "operations"));
  if (n_ops != 1 || has_args) return bc_err(r, c.p, "expected one module");
  Head h = {0};
  TRY(read_head(r, &c, NULL, &h));
  if (h.name->role != ROLE_MODULE || h.n_regions != 1 || r->result_types.n)
    return bc_err(r, h.at, "expected a module, found '%.*s'", STR_ARG(h.name->full));
  const Attr *name = head_attr(r, &h, "sym_name");
  if (name && name->kind == AT_STRING) r->m->name = name->s;
  r->m->attrs = other_attrs(r, &h, own, &r->m->n_attrs);
  r->m->loc = h.loc;
  pop_head(r, &h);
  Cur inner, *in;
  TRY(enter(r, &c, &h, &inner, &in));
  return read_module_ops(r, in);
}
