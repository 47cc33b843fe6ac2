/* Writer of MLIR bytecode version 6 with VHLO: what jaxlib and every StableHLO reader take. One
 * pass over the operations fills the tables (interned, numbered as they come) and the operation
 * bytes; then the sections are put together.
 *
 * Shardy's operations are not versioned: they take builtin types, so their operands and results
 * pass through builtin.unrealized_conversion_cast, and so do the arguments and the returned values
 * of their regions. */
#include <stdio.h>
#include <stdlib.h>

#include "stablehlo/bytecode_write_priv.h"
#include "stablehlo/stablehlo.h"

static const char *const dialect_names[W_DIALECTS] = {"builtin", "vhlo", "sdy"};

/* ---- bytes ---- */

void put_varint(Buf *b, uint64_t v) {
  int extra = 0; /* bytes after the first */
  while (extra < 8 && v >> (7 * (extra + 1))) extra++;
  if (extra == 8) {
    buf_byte(b, 0);
    buf_add(b, &v, 8);
    return;
  }
  v = (v << 1 | 1) << extra;
  buf_add(b, &v, (size_t)extra + 1);
}

void put_svarint(Buf *b, int64_t v) {
  put_varint(b, ((uint64_t)v << 1) ^ (v < 0 ? ~(uint64_t)0 : 0));
}

void put_blob(Buf *b, const void *p, size_t n) {
  put_varint(b, n);
  if (n) buf_add(b, p, n);
}

/* ---- tables ---- */

int table_add(Writer *w, Table *t, WDialect d, Buf *take) {
  Buf key = {0};
  buf_byte(&key, (int)d);
  if (take->n) buf_add(&key, take->p, take->n);
  Str k = {key.p, key.n};
  intptr_t i = (intptr_t)map_get(t->index, k);
  if (!i) {
    Str data = arena_str(w->arena, (Str){take->p ? take->p : "", take->n});
    *vec_push(&t->v) = (TableEntry){d, data};
    i = t->v.n;
    map_set(t->index, k, (void *)i);
  }
  buf_free(&key);
  buf_free(take);
  return (int)i - 1;
}

int w_string(Writer *w, Str s) {
  Buf b = {0};
  if (s.n) buf_add(&b, s.p, s.n);
  return table_add(w, &w->strings, W_BUILTIN, &b);
}

static int op_name(Writer *w, WDialect d, const char *name) {
  Buf b = {0};
  buf_cstr(&b, name);
  return table_add(w, &w->ops, d, &b);
}

/* ---- which version ---- */

static bool is_sdy(const Op *op) {
  return op->kind != OP_UNKNOWN && str_starts(op_full_name(op), "sdy.");
}

static bool in_sdy(const Region *r) { return r->parent && is_sdy(r->parent); }

static bool row_has(const VhloOp *row, Str attr) {
  const char *rest = row->attrs;
  Str name, kind;
  while (vhlo_next_attr(&rest, &name, &kind))
    if (str_eq(name, attr)) return true;
  return false;
}

/* Whether a row can say all that the op says. */
static bool suffices(const VhloOp *row, const Op *op) {
  for (int i = 0; i < op->n_attrs; i++)
    if (op_attr_spec(op->kind, op->attrs[i].name) && !row_has(row, op->attrs[i].name)) return false;
  bool first = str_ends(str_from(row->name), "_v1");
  switch (op->kind) {
  case OP_ALL_GATHER:
  case OP_ALL_REDUCE:
  case OP_ALL_TO_ALL:
  case OP_COLLECTIVE_BROADCAST: return !first || op->n_operands == 1; /* more are new */
  case OP_COMPOSITE: return !first || op->n_regions == 0;
  case OP_DYNAMIC_CONV: return !first; /* version 1 pads twice */
  default: return true;
  }
}

typedef struct Needs {
  int version;
  Map *types; /* seen */
} Needs;

static void need_type(Needs *n, Type *t) {
  Str key = ptr_key((const void *const *)&t);
  if (map_get(n->types, key)) return;
  map_set(n->types, key, t);
  n->version = MAX(n->version, vhlo_type_since(t));
  for (int i = 0; i < t->n_elems; i++) need_type(n, t->elems[i]);
  for (int i = 0; i < t->n_results; i++) need_type(n, t->results[i]);
}

static Err *need_op(Op *op, void *arg) {
  Needs *n = arg;
  for (int i = 0; i < op->n_results; i++) need_type(n, op->results[i].type);
  for (int i = 0; i < op->n_regions; i++)
    for (int k = 0; k < op->regions[i]->n_args; k++) need_type(n, op->regions[i]->args[k]->type);
  if (is_sdy(op)) {
    n->version = MAX(n->version, VHLO_VERSION(1, 11));
    return NULL;
  }
  const VhloOp *best = NULL;
  for (int i = 0; op->kind != OP_UNKNOWN && i < vhlo_n_ops; i++) {
    const VhloOp *row = &vhlo_ops[i];
    if (row->kind == op->kind && suffices(row, op) && (!best || row->since < best->since))
      best = row;
  }
  if (best) n->version = MAX(n->version, best->since);
  const Attr *groups = op_attr(op, "replica_groups");
  if (groups && groups->kind == AT_OPAQUE) n->version = MAX(n->version, VHLO_VERSION(1, 16));
  return NULL; /* an op without a row is reported when it is written */
}

static Err *oldest_version(const Module *m, int *out) {
  Needs n = {VHLO_VERSION(1, 0), map_new()};
  if (m->meshes.n) n.version = VHLO_VERSION(1, 11);
  Err *e = NULL;
  for (int i = 0; i < m->funcs.n && !e; i++) {
    const Func *f = m->funcs.v[i];
    need_type(&n, f->type);
    if (f->body) e = ir_walk(f->body, need_op, &n);
  }
  map_free(n.types);
  *out = n.version;
  return e;
}

static Err *parse_version(const char *s, int *out) {
  int major, minor, patch, used = 0;
  if (sscanf(s, "%d.%d.%d%n", &major, &minor, &patch, &used) != 3 || s[used] || major < 0 ||
      minor < 0 || minor > 999 || major > 999)
    return err_new(ERR_INVALID, "'%s' is not a version like 1.13.7", s);
  *out = VHLO_VERSION(major, minor);
  if (*out < VHLO_OLDEST || *out > VHLO_NEWEST)
    return err_new(ERR_INVALID, "VHLO version %s; known are 0.9.0 to %d.%d.0", s,
                   VHLO_NEWEST / 1000, VHLO_NEWEST % 1000);
  return NULL;
}

/* ---- operations ---- */

enum { HAS_ATTRS = 1, HAS_RESULTS = 2, HAS_OPERANDS = 4, HAS_REGIONS = 0x10, HAS_PROPS = 0x40 };

static int value_number(Map *map, const Value *v) {
  return (int)(intptr_t)map_get(map, ptr_key((const void *const *)&v)) - 1;
}

static void set_number(Map *map, const Value *v, int n) {
  map_set(map, ptr_key((const void *const *)&v), (void *)(intptr_t)(n + 1));
}

/* Values that a region defines itself, casts included. */
static int count_values(const Region *r) {
  int n = r->n_args * (in_sdy(r) ? 2 : 1);
  for (const Op *op = r->first; op; op = op->next) {
    n += op->n_results;
    if (is_sdy(op) || (op->kind == OP_RETURN && in_sdy(r))) n += op->n_operands + op->n_results;
  }
  return n;
}

typedef struct RegionState {
  int next;   /* number of the next value of this region */
  int nested; /* first number of a region inside */
  int n_ops;
} RegionState;

static Err *put_region(Writer *w, Buf *out, const Region *r, int base);

static Err *value_type(Writer *w, const Type *t, bool vhlo, int *out) {
  return vhlo ? w_vhlo_type(w, t, out) : w_builtin_type(w, t, out);
}

/* number = cast(of) : type; gives the new value's number */
static Err *put_cast(Writer *w, Buf *out, RegionState *s, int of, const Type *t, bool to_vhlo,
                     int *number) {
  int type, loc;
  TRY(value_type(w, t, to_vhlo, &type));
  TRY(w_loc(w, NULL, &loc));
  put_varint(out, (uint64_t)op_name(w, W_BUILTIN, "unrealized_conversion_cast"));
  buf_byte(out, HAS_RESULTS | HAS_OPERANDS);
  put_varint(out, (uint64_t)loc);
  put_varint(out, 1);
  put_varint(out, (uint64_t)type);
  put_varint(out, 1);
  put_varint(out, (uint64_t)of);
  *number = s->next++;
  s->n_ops++;
  return NULL;
}

/* The properties of an op as an entry of the properties section. *has is false when it has none. */
static Err *op_props(Writer *w, const Op *op, const VhloOp *row, bool *has, int *out) {
  Buf b = {0};
  Err *e = NULL;
  int x;
  if (row) {
    const char *rest = row->attrs;
    Str name, kind;
    while (!e && vhlo_next_attr(&rest, &name, &kind)) {
      const Attr *a = NULL;
      for (int i = 0; i < op->n_attrs; i++)
        if (str_eq(op->attrs[i].name, name)) a = op->attrs[i].value;
      e = err_wrap(w_vhlo_attr(w, op, name, kind, a, &x), "attribute '%.*s'", STR_ARG(name));
      if (!e) put_varint(&b, (uint64_t)x);
    }
  } else {
    int n;
    const AttrSpec *specs = op_attr_specs(op->kind, &n);
    for (int i = 0; !e && i < n; i++) {
      const Attr *a = NULL;
      for (int k = 0; k < op->n_attrs; k++)
        if (str_eq(op->attrs[k].name, specs[i].name)) a = op->attrs[k].value;
      if (!a && specs[i].required) {
        e = err_new(ERR_INVALID, "the attribute '%.*s' is missing", STR_ARG(specs[i].name));
      } else if (!a) {
        put_varint(&b, 0);
      } else {
        if (str_is(specs[i].name, "manual_axes")) e = w_sdy_manual_axes(w, a, &x);
        else if (str_ends(specs[i].name, "_shardings")) e = w_sdy_per_value(w, a, &x);
        else if (op->kind == OP_PROPAGATION_BARRIER) e = w_sdy_direction(w, a, &x);
        else e = w_builtin_attr(w, a, &x);
        if (!e) put_varint(&b, specs[i].required ? (uint64_t)x : (uint64_t)x << 1 | 1);
      }
    }
  }
  *has = b.n > 0;
  if (e || !*has) buf_free(&b);
  else *out = table_add(w, &w->props, W_BUILTIN, &b);
  return e;
}

/* Attributes that are not the op's own. */
static Err *op_discardable(Writer *w, const Op *op, const VhloOp *row, bool *has, int *out) {
  VEC(NamedAttr) v = {0};
  for (int i = 0; i < op->n_attrs; i++)
    if (!op_attr_spec(op->kind, op->attrs[i].name) && !(row && row_has(row, op->attrs[i].name)))
      *vec_push(&v) = op->attrs[i];
  *has = v.n > 0;
  Err *e = *has ? w_builtin_dict(w, v.v, v.n, out) : NULL;
  vec_free(&v);
  return e;
}

static Err *find_row(Writer *w, const Op *op, const VhloOp **row) {
  Str name = op_full_name(op);
  *row = vhlo_newest(op->kind, w->version);
  if (*row && suffices(*row, op)) return NULL;
  for (int i = 0; op->kind != OP_UNKNOWN && i < vhlo_n_ops; i++)
    if (vhlo_ops[i].kind == op->kind && vhlo_ops[i].since > w->version &&
        suffices(&vhlo_ops[i], op))
      return err_new(ERR_UNIMPLEMENTED, "VHLO %d.%d cannot say this; 1.%d can", w->version / 1000,
                     w->version % 1000, vhlo_ops[i].since % 1000);
  return err_new(ERR_UNIMPLEMENTED, "VHLO has no operation for '%.*s'", STR_ARG(name));
}

static Err *put_op(Writer *w, Buf *out, const Op *op, RegionState *s) {
  bool sdy = is_sdy(op), sdy_return = op->kind == OP_RETURN && in_sdy(op->parent);
  bool vhlo = !sdy && !sdy_return;
  const VhloOp *row = NULL;
  if (vhlo) TRY(find_row(w, op, &row));
  int *operands = ARENA_ARRAY(w->arena, int, op->n_operands);
  for (int i = 0; i < op->n_operands; i++) {
    operands[i] = value_number(w->values, op->operands[i]);
    if (operands[i] < 0) return err_new(ERR_INVALID, "operand %d is not visible here", i);
    if (!vhlo) TRY(put_cast(w, out, s, operands[i], op->operands[i]->type, false, &operands[i]));
  }
  const char *name = row          ? row->name
                     : sdy_return ? "return"
                                  : op_info[op->kind].name + strlen("sdy.");
  bool has_props = false, has_attrs;
  int props = 0, attrs = 0, loc;
  TRY(w_loc(w, op->loc, &loc));
  if (!sdy_return) TRY(op_props(w, op, row, &has_props, &props));
  TRY(op_discardable(w, op, row, &has_attrs, &attrs));
  put_varint(out, (uint64_t)op_name(w, vhlo ? W_VHLO : W_SDY, name));
  buf_byte(out, (has_attrs ? HAS_ATTRS : 0) | (has_props ? HAS_PROPS : 0) |
                    (op->n_results ? HAS_RESULTS : 0) | (op->n_operands ? HAS_OPERANDS : 0) |
                    (op->n_regions ? HAS_REGIONS : 0));
  put_varint(out, (uint64_t)loc);
  if (has_attrs) put_varint(out, (uint64_t)attrs);
  if (has_props) put_varint(out, (uint64_t)props);
  if (op->n_results) {
    put_varint(out, (uint64_t)op->n_results);
    for (int i = 0; i < op->n_results; i++) {
      int t;
      TRY(value_type(w, op->results[i].type, vhlo, &t));
      put_varint(out, (uint64_t)t);
    }
  }
  if (op->n_operands) {
    put_varint(out, (uint64_t)op->n_operands);
    for (int i = 0; i < op->n_operands; i++) put_varint(out, (uint64_t)operands[i]);
  }
  s->n_ops++;
  int result0 = s->next;
  s->next += op->n_results;
  if (op->n_regions) {
    put_varint(out, (uint64_t)op->n_regions << 1);
    for (int i = 0; i < op->n_regions; i++) TRY(put_region(w, out, op->regions[i], s->nested));
  }
  for (int i = 0; i < op->n_results; i++) {
    int number = result0 + i;
    if (!vhlo) TRY(put_cast(w, out, s, number, op->results[i].type, true, &number));
    set_number(w->values, &op->results[i], number);
  }
  return NULL;
}

static Err *op_failed(const Op *op, Err *e) {
  if (e && !e->place) {
    Str name = op_full_name(op);
    e = err_wrap(e, "%.*s", STR_ARG(name));
    Buf place = {0};
    op_place(&place, op);
    e = err_place(e, "%s", place.n ? place.p : "program");
    buf_free(&place);
  }
  return e;
}

/* An argument: its type, and its name as location where it has one. */
static Err *put_arg(Writer *w, Buf *out, int type, Str name) {
  int loc;
  put_varint(out, (uint64_t)type << 1 | (name.n > 0));
  if (!name.n) return NULL;
  Loc *l = ARENA_NEW(w->arena, Loc);
  *l = (Loc){.kind = LOC_NAME, .name = name};
  TRY(w_loc(w, l, &loc));
  put_varint(out, (uint64_t)loc);
  return NULL;
}

/* base: number of the region's first value in the scope */
static Err *put_region(Writer *w, Buf *out, const Region *r, int base) {
  int n_values = count_values(r);
  RegionState s = {base, base + n_values, 0};
  Buf ops = {0}, args = {0};
  bool vhlo = !in_sdy(r);
  Err *e = NULL;
  for (int i = 0; i < r->n_args && !e; i++) {
    int t;
    e = value_type(w, r->args[i]->type, vhlo, &t);
    if (!e) e = put_arg(w, &args, t, r->args[i]->name);
    set_number(w->values, r->args[i], s.next++);
  }
  for (int i = 0; i < r->n_args && !vhlo && !e; i++) {
    int number;
    e = put_cast(w, &ops, &s, value_number(w->values, r->args[i]), r->args[i]->type, true, &number);
    if (!e) set_number(w->values, r->args[i], number);
  }
  for (const Op *op = r->first; op && !e; op = op->next) e = op_failed(op, put_op(w, &ops, op, &s));
  if (!e) {
    assert(s.next == base + n_values);
    put_varint(out, 1);
    put_varint(out, (uint64_t)n_values);
    put_varint(out, (uint64_t)s.n_ops << 1 | (r->n_args > 0));
    if (r->n_args) {
      put_varint(out, (uint64_t)r->n_args);
      buf_add(out, args.p, args.n);
      buf_byte(out, 0);
    }
    if (ops.n) buf_add(out, ops.p, ops.n);
  }
  buf_free(&ops);
  buf_free(&args);
  return e;
}

/* ---- functions, meshes, module ---- */

static void put_section(Buf *out, int id, Buf *take) {
  buf_byte(out, id);
  put_varint(out, take->n);
  if (take->n) buf_add(out, take->p, take->n);
  buf_free(take);
}

static Err *put_func(Writer *w, Buf *out, const Func *f) {
  int arg_attrs, res_attrs, type, loc, attrs = 0;
  TRY(w_vhlo_dicts(w, f->type->n_elems, f->arg_attrs, f->n_arg_attrs, &arg_attrs));
  TRY(w_vhlo_type_attr(w, f->type, &type));
  TRY(w_vhlo_dicts(w, f->type->n_results, f->res_attrs, f->n_res_attrs, &res_attrs));
  TRY(w_loc(w, f->loc, &loc));
  if (f->n_attrs) TRY(w_builtin_dict(w, f->attrs, f->n_attrs, &attrs));
  Str visibility = f->is_private ? STR("private") : f->says_public ? STR("public") : (Str){"", 0};
  Buf props = {0};
  put_varint(&props, (uint64_t)arg_attrs);
  put_varint(&props, (uint64_t)type);
  put_varint(&props, (uint64_t)res_attrs);
  put_varint(&props, (uint64_t)w_vhlo_string(w, f->name));
  put_varint(&props, (uint64_t)w_vhlo_string(w, visibility));
  put_varint(out, (uint64_t)op_name(w, W_VHLO, "func_v1"));
  buf_byte(out, (f->n_attrs ? HAS_ATTRS : 0) | HAS_PROPS | HAS_REGIONS);
  put_varint(out, (uint64_t)loc);
  if (f->n_attrs) put_varint(out, (uint64_t)attrs);
  put_varint(out, (uint64_t)table_add(w, &w->props, W_BUILTIN, &props));
  put_varint(out, 1 << 1 | 1);
  Buf body = {0};
  Err *e = NULL;
  if (f->body) e = put_region(w, &body, f->body, 0);
  else put_varint(&body, 0);
  if (e) buf_free(&body);
  else put_section(out, 4, &body);
  return e;
}

/* JAX hangs a copy of the mesh in plain attributes on each sdy.mesh. */
static Err *mesh_copy(Writer *w, const Mesh *mesh, int *out) {
  Attr **axes = ARENA_ARRAY(w->arena, Attr *, mesh->n_axes);
  for (int i = 0; i < mesh->n_axes; i++) {
    Attr *v = ARENA_ARRAY(w->arena, Attr, 3);
    NamedAttr *d = ARENA_ARRAY(w->arena, NamedAttr, 2);
    v[0] = (Attr){.kind = AT_STRING, .s = mesh->axes[i].name};
    v[1] = (Attr){.kind = AT_INT, .dtype = DT_I64, .i = mesh->axes[i].size};
    d[0] = (NamedAttr){STR("name"), &v[0]};
    d[1] = (NamedAttr){STR("size"), &v[1]};
    v[2] = (Attr){.kind = AT_DICT, .n = 2, .dict = d};
    axes[i] = &v[2];
  }
  Attr *v = ARENA_ARRAY(w->arena, Attr,
                        2); /* not on the stack: attributes are remembered by their address */
  NamedAttr *field = ARENA_NEW(w->arena, NamedAttr);
  v[0] = (Attr){.kind = AT_ARRAY, .n = mesh->n_axes, .items = axes};
  *field = (NamedAttr){STR("axes"), &v[0]};
  v[1] = (Attr){.kind = AT_DICT, .n = 1, .dict = field};
  return w_builtin_dict(w, &(NamedAttr){STR("stablehlo.mesh"), &v[1]}, 1, out);
}

static Err *put_mesh(Writer *w, Buf *out, const NamedAttr *mesh) {
  int attrs = 0, x, loc;
  bool repeated = mesh->value->mesh->repeated;
  if (repeated) TRY(mesh_copy(w, mesh->value->mesh, &attrs));
  TRY(w_builtin_attr(w, mesh->value, &x));
  TRY(w_loc(w, NULL, &loc));
  Buf props = {0};
  put_varint(&props, (uint64_t)x);
  put_varint(&props, (uint64_t)w_builtin_string(w, mesh->name));
  put_varint(out, (uint64_t)op_name(w, W_SDY, "mesh"));
  buf_byte(out, (repeated ? HAS_ATTRS : 0) | HAS_PROPS);
  put_varint(out, (uint64_t)loc);
  if (repeated) put_varint(out, (uint64_t)attrs);
  put_varint(out, (uint64_t)table_add(w, &w->props, W_BUILTIN, &props));
  return NULL;
}

static Err *put_module(Writer *w, Buf *out) {
  const Module *m = w->m;
  int loc, attrs = 0;
  TRY(w_loc(w, m->loc, &loc));
  if (m->n_attrs) TRY(w_builtin_dict(w, m->attrs, m->n_attrs, &attrs));
  Buf props = {0};
  put_varint(&props, m->name.n ? (uint64_t)w_builtin_string(w, m->name) << 1 | 1 : 0);
  put_varint(&props, 0);
  put_varint(out, 1 << 1); /* a block of one operation */
  put_varint(out, (uint64_t)op_name(w, W_BUILTIN, "module"));
  buf_byte(out, (m->n_attrs ? HAS_ATTRS : 0) | HAS_PROPS | HAS_REGIONS);
  put_varint(out, (uint64_t)loc);
  if (m->n_attrs) put_varint(out, (uint64_t)attrs);
  put_varint(out, (uint64_t)table_add(w, &w->props, W_BUILTIN, &props));
  put_varint(out, 1 << 1 | 1);
  Buf body = {0};
  put_varint(&body, 1);
  put_varint(&body, 0);
  put_varint(&body, (uint64_t)(m->funcs.n + m->meshes.n) << 1);
  Err *e = NULL;
  for (int i = 0; i < m->meshes.n && !e; i++) e = put_mesh(w, &body, &m->meshes.v[i]);
  for (int i = 0; i < m->funcs.n && !e; i++) {
    e = put_func(w, &body, m->funcs.v[i]);
    if (e && !e->place) e = err_wrap(e, "function '%.*s'", STR_ARG(m->funcs.v[i]->name));
  }
  if (e) buf_free(&body);
  else put_section(out, 4, &body);
  return e;
}

/* ---- the file ---- */

/* Entries in runs of one dialect: `dialect, count, entries`. */
static void put_groups(Writer *w, Buf *out, const Table *t,
                       void (*one)(Writer *, Buf *, const TableEntry *)) {
  for (int i = 0; i < t->v.n;) {
    int end = i;
    while (end < t->v.n && t->v.v[end].dialect == t->v.v[i].dialect) end++;
    put_varint(out, (uint64_t)t->v.v[i].dialect);
    put_varint(out, (uint64_t)(end - i));
    for (; i < end; i++) one(w, out, &t->v.v[i]);
  }
}

static void put_op_name(Writer *w, Buf *out, const TableEntry *e) {
  put_varint(out, (uint64_t)w_string(w, e->data) << 1 | 1);
}

static void put_offset(Writer *w, Buf *out, const TableEntry *e) {
  (void)w;
  put_varint(out, (uint64_t)e->data.n << 1 | 1);
}

static void put_file(Writer *w, Buf *out, const char *version, Buf *ir) {
  Buf dialects = {0}, offsets = {0}, data = {0}, strings = {0}, props = {0};
  bool sdy = false;
  const Table *tables[] = {&w->attrs, &w->types, &w->ops};
  for (int k = 0; k < 3; k++)
    for (int i = 0; i < tables[k]->v.n; i++) sdy |= tables[k]->v.v[i].dialect == W_SDY;
  int n_dialects = sdy ? 3 : 2;
  put_varint(&dialects, (uint64_t)n_dialects);
  for (int i = 0; i < n_dialects; i++)
    put_varint(&dialects, (uint64_t)w_string(w, str_from(dialect_names[i])) << 1);
  put_varint(&dialects, (uint64_t)w->ops.v.n);
  put_groups(w, &dialects, &w->ops, put_op_name);

  put_varint(&offsets, (uint64_t)w->attrs.v.n);
  put_varint(&offsets, (uint64_t)w->types.v.n);
  put_groups(w, &offsets, &w->attrs, put_offset);
  put_groups(w, &offsets, &w->types, put_offset);
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < tables[k]->v.n; i++) buf_str(&data, tables[k]->v.v[i].data);

  put_varint(&strings, (uint64_t)w->strings.v.n);
  for (int i = w->strings.v.n - 1; i >= 0; i--) put_varint(&strings, w->strings.v.v[i].data.n + 1);
  for (int i = 0; i < w->strings.v.n; i++) {
    buf_str(&strings, w->strings.v.v[i].data);
    buf_byte(&strings, 0);
  }

  put_varint(&props, (uint64_t)w->props.v.n);
  for (int i = 0; i < w->props.v.n; i++)
    put_blob(&props, w->props.v.v[i].data.p, w->props.v.v[i].data.n);

  buf_cstr(out, "ML\xEFR");
  put_varint(out, 6);
  buf_printf(out, "StableHLO_v%s", version);
  buf_byte(out, 0);
  put_section(out, 1, &dialects);
  put_section(out, 3, &offsets);
  put_section(out, 2, &data);
  put_section(out, 4, ir);
  put_section(out, 0, &strings);
  put_section(out, 8, &props);
}

Err *stablehlo_write_bytecode(Buf *out, const Module *m, const char *version) {
  Writer w = {.m = m};
  char name[32];
  if (version) TRY(parse_version(version, &w.version));
  else TRY(oldest_version(m, &w.version));
  snprintf(name, sizeof name, "%d.%d.0", w.version / 1000, w.version % 1000);
  w.arena = arena_new();
  Table *tables[] = {&w.strings, &w.attrs, &w.types, &w.ops, &w.props};
  Map **maps[] = {&w.vhlo_types, &w.builtin_types, &w.locs,
                  &w.values,     &w.vhlo_attrs,    &w.builtin_attrs};
  for (int i = 0; i < COUNT_OF(tables); i++) tables[i]->index = map_new();
  for (int i = 0; i < COUNT_OF(maps); i++) *maps[i] = map_new();
  Buf ir = {0};
  Err *e = put_module(&w, &ir);
  if (!e) put_file(&w, out, version ? version : name, &ir);
  buf_free(&ir);
  for (int i = 0; i < COUNT_OF(tables); i++) {
    map_free(tables[i]->index);
    vec_free(&tables[i]->v);
  }
  for (int i = 0; i < COUNT_OF(maps); i++) map_free(*maps[i]);
  arena_free(w.arena);
  return e;
}
