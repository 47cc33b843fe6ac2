/* The older form of shardings, "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}", made into
 * the newer one, so that propagation serves both. A string cuts the device number into digits; the
 * digits of all strings of a program together are the axes of one mesh over devices 0, 1, 2, ...
 * Strings that do not fit into it stay as they are.
 *
 *   reshape [4,2], permutation (1,0)  the number's digits are (4, 2), major first; tiles take the 2
 * first tiles [2,1,4]                     dimension 0 has the digit of size 2, dimension 1 none; 4
 * is replicated
 */
#include "compile/spmd/propagate.h"

#include <stdlib.h>

#define MAX_DIGITS 16

/* A digit of the device number: (number / stride) % size. dim: the tile dimension that it belongs
 * to. */
typedef struct Digit {
  int64_t stride, size;
  int dim;
} Digit;
typedef struct Tiling {
  int n_dims; /* tile dimensions of the tensor */
  int n;
  Digit d[MAX_DIGITS]; /* in the order of the tiles, major first */
} Tiling;

static bool eat(Str *s, const char *word) {
  while (s->n && *s->p == ' ') s->p++, s->n--;
  if (!str_starts(*s, word)) return false;
  s->p += strlen(word), s->n -= strlen(word);
  return true;
}

/* Numbers up to `end`; -1 when it is something else. */
static int numbers(Str *s, const char *end, int64_t *out, int room) {
  int n = 0;
  while (!eat(s, end)) {
    if (n == room || !s->n || *s->p < '0' || *s->p > '9') return -1;
    for (out[n] = 0; s->n && *s->p >= '0' && *s->p <= '9' && out[n] < 1 << 24; s->p++, s->n--)
      out[n] = out[n] * 10 + (*s->p - '0');
    n++;
    eat(s, ",");
  }
  return n;
}

/* The digits of the device number in the order of the tiles, major first. */
typedef struct Order {
  int n;
  int64_t size[MAX_DIGITS], stride[MAX_DIGITS];
} Order;

/* "<=[4,2]T(1,0)", after its beginning */
static bool read_iota(Str *s, int n_devices, Order *o) {
  int64_t shape[MAX_DIGITS], perm[MAX_DIGITS], strides[MAX_DIGITS], total = 1;
  o->n = numbers(s, "]", shape, MAX_DIGITS);
  for (int i = 0; i < o->n; i++) perm[i] = i;
  if (o->n < 1 || (eat(s, "T(") && numbers(s, ")", perm, o->n) != o->n)) return false;
  for (int i = o->n - 1; i >= 0 && total <= n_devices; i--) strides[i] = total, total *= shape[i];
  if (total != n_devices) return false;
  for (int i = 0; i < o->n; i++) {
    if (perm[i] >= o->n) return false;
    o->size[i] = shape[perm[i]];
    o->stride[i] = strides[perm[i]];
  }
  return true;
}

/* The digits that a list of device numbers counts in: 0,2,1,3 is two digits, the minor one of stride 2. */
static bool order_of_list(const int64_t *ids, int n, Order *o) {
  if (ids[0]) return false;
  for (int done = 1; done < n;) {
    if (o->n == MAX_DIGITS) return false;
    int64_t stride = ids[done], size = 1;
    while (done * size < n && ids[done * size] == size * stride) size++;
    if (n % (done * size)) return false;
    memmove(o->size + 1, o->size, sizeof *o->size * (size_t)o->n);
    memmove(o->stride + 1, o->stride, sizeof *o->stride * (size_t)o->n);
    o->size[0] = size, o->stride[0] = stride;
    o->n++;
    done *= (int)size;
  }
  uint8_t *seen = xcalloc((size_t)n, 1);
  bool all = true;
  for (int at = 0; at < n && all; at++) {
    int64_t rest = at, id = 0;
    for (int i = o->n - 1; i >= 0; rest /= o->size[i--]) id += rest % o->size[i] * o->stride[i];
    all = id == ids[at] && id < n && !seen[id];
    if (all) seen[id] = 1;
  }
  free(seen);
  return all;
}

/* "0,2,1,3" */
static bool read_list(Str *s, int n_devices, Order *o) {
  int64_t *ids = xcalloc((size_t)n_devices, sizeof *ids);
  bool good = true;
  for (int i = 0; i < n_devices && good; i++) {
    eat(s, ",");
    good = s->n && *s->p >= '0' && *s->p <= '9';
    for (; s->n && *s->p >= '0' && *s->p <= '9' && ids[i] < 1 << 24; s->p++, s->n--)
      ids[i] = ids[i] * 10 + (*s->p - '0');
  }
  good = good && order_of_list(ids, n_devices, o);
  free(ids);
  return good;
}

/* False: a form that is left alone (manual, maximal, devices in no order that digits make). */
static bool parse(Str s, int rank, int n_devices, Tiling *t) {
  *t = (Tiling){.n_dims = rank};
  if (!eat(&s, "{")) return false;
  if (eat(&s, "replicated")) return eat(&s, "}");
  int64_t tile[MAX_DIGITS];
  if (!eat(&s, "devices=[")) return false;
  int n_tile = numbers(&s, "]", tile, MAX_DIGITS);
  Order o = {0};
  if (n_tile < rank ||
      !(eat(&s, "<=[") ? read_iota(&s, n_devices, &o) : read_list(&s, n_devices, &o)))
    return false;
  if (eat(&s, "last_tile_dim_replicate") != (n_tile == rank + 1) || n_tile > rank + 1 ||
      !eat(&s, "}"))
    return false;
  /* walk both lists, cutting digits where a tile dimension ends */
  int at = 0;
  int64_t left = 0, stride = 0;
  for (int d = 0; d < n_tile; d++)
    for (int64_t need = tile[d]; need > 1;) {
      if (left <= 1) {
        if (at == o.n) return false;
        left = o.size[at];
        stride = o.stride[at++] * left;
        continue;
      }
      int64_t size = left < need ? left : need;
      if (left % size || need % size || t->n == MAX_DIGITS) return false;
      stride /= size;
      t->d[t->n++] = (Digit){stride, size, d < rank ? d : -1};
      left /= size, need /= size;
    }
  return true;
}

/* ---- the common mesh: its axes' boundaries as strides, ascending ---- */

typedef struct Bounds {
  int n;
  int64_t v[4 * MAX_DIGITS];
} Bounds;

static void bound(Bounds *b, int64_t v) {
  int i = 0;
  while (i < b->n && b->v[i] < v) i++;
  if ((i < b->n && b->v[i] == v) || b->n == COUNT_OF(b->v)) return;
  memmove(&b->v[i + 1], &b->v[i], sizeof *b->v * (size_t)(b->n - i));
  b->v[i] = v;
  b->n++;
}

typedef struct Rewrite {
  Module *m;
  int n_devices;
  Bounds bounds;
  Mesh *mesh;
} Rewrite;

static void note(Rewrite *r, Str text, const Type *type) {
  Tiling t;
  if (type->kind != TY_TENSOR || !parse(text, type->rank, r->n_devices, &t)) return;
  for (int i = 0; i < t.n; i++) {
    bound(&r->bounds, t.d[i].stride);
    bound(&r->bounds, t.d[i].stride * t.d[i].size);
  }
}

static const char mesh_name[] = "gspmd";

/* Axis i counts (number / bounds[k]) % (bounds[k + 1] / bounds[k]), k from the top. False: digits
 * that overlap. */
static bool make_mesh(Rewrite *r) {
  bound(&r->bounds, 1);
  bound(&r->bounds, r->n_devices);
  Mesh *mesh = ARENA_NEW(r->m->arena, Mesh);
  mesh->n_axes = r->bounds.n - 1;
  mesh->axes = ARENA_ARRAY(r->m->arena, MeshAxis, mesh->n_axes + 1);
  for (int i = 0; i < mesh->n_axes; i++) {
    int k = mesh->n_axes - 1 - i;
    if (r->bounds.v[k + 1] % r->bounds.v[k]) return false;
    mesh->axes[i].size = r->bounds.v[k + 1] / r->bounds.v[k];
    mesh->axes[i].name = arena_printf(r->m->arena, "g%d", i);
  }
  r->mesh = mesh;
  Attr *a = ARENA_NEW(r->m->arena, Attr);
  a->kind = AT_MESH;
  a->mesh = mesh;
  *vec_push(&r->m->meshes) = (NamedAttr){STR(mesh_name), a};
  return true;
}

static Attr *sharding_attr(Rewrite *r, Str text, const Type *type) {
  Tiling t;
  if (type->kind != TY_TENSOR || !parse(text, type->rank, r->n_devices, &t)) return NULL;
  Arena *arena = r->m->arena;
  Sharding *s = ARENA_NEW(arena, Sharding);
  s->mesh_name = STR(mesh_name);
  s->n_dims = type->rank;
  s->dims = ARENA_ARRAY(arena, DimSharding, type->rank + 1);
  for (int d = 0; d < type->rank; d++) {
    s->dims[d].priority = -1;
    s->dims[d].axes = ARENA_ARRAY(arena, AxisRef, r->mesh->n_axes + 1);
    for (int i = 0; i < t.n; i++) {
      if (t.d[i].dim != d) continue;
      for (int x = 0; x < r->mesh->n_axes; x++) { /* the axes inside the digit, major first */
        int64_t low = r->bounds.v[r->mesh->n_axes - 1 - x];
        if (low >= t.d[i].stride && low < t.d[i].stride * t.d[i].size)
          s->dims[d].axes[s->dims[d].n_axes++].name = r->mesh->axes[x].name;
      }
    }
  }
  Attr *a = ARENA_NEW(arena, Attr);
  a->kind = AT_SHARDING;
  a->sharding = s;
  return a;
}

static Str sharding_text(const NamedAttr *attrs, int n) {
  Attr *a = attrs_get(attrs, n, "mhlo.sharding");
  return a && a->kind == AT_STRING ? a->s : (Str){0};
}

/* Adds sdy.sharding beside mhlo.sharding. */
static void add_attr(Rewrite *r, NamedAttr **attrs, int *n, const Type *type) {
  Str text = sharding_text(*attrs, *n);
  Attr *a = text.n ? sharding_attr(r, text, type) : NULL;
  if (!a) return;
  NamedAttr *all = ARENA_ARRAY(r->m->arena, NamedAttr, *n + 1);
  int at = 0;
  while (at < *n && str_cmp((*attrs)[at].name, STR("sdy.sharding")) < 0) at++;
  memcpy(all, *attrs, sizeof *all * (size_t)at);
  all[at] = (NamedAttr){STR("sdy.sharding"), a};
  memcpy(all + at + 1, *attrs + at, sizeof *all * (size_t)(*n - at));
  *attrs = all;
  ++*n;
}

static bool is_call(const Op *op, const char *target) {
  return op->kind == OP_CUSTOM_CALL && str_is(op_str(op, "call_target_name"), target);
}

static bool feeds_manual(const Region *region, const Value *v) {
  for (const Op *op = region->first; op; op = op->next)
    if (is_call(op, "SPMDFullToShardShape") && op->operands[0] == v) return true;
  return false;
}

typedef void (*Visit)(Rewrite *r, Op *op);

static void each_op(Rewrite *r, Region *region, Visit visit) {
  for (Op *op = region->first, *next; op; op = next) {
    next = op->next;
    for (int i = 0; i < op->n_regions; i++) each_op(r, op->regions[i], visit);
    bool wanted = is_call(op, "Sharding") || is_call(op, "SPMDShardToFullShape");
    if (wanted && op->n_operands == 1 && op->n_results == 1) visit(r, op);
  }
}

static void note_call(Rewrite *r, Op *op) {
  Str text = sharding_text(op->attrs, op->n_attrs);
  if (text.n) note(r, text, op_type(op));
}

/* A constraint in place of the call, or after it. */
static void replace_call(Rewrite *r, Op *op) {
  Str text = sharding_text(op->attrs, op->n_attrs);
  Attr *a = text.n ? sharding_attr(r, text, op_type(op)) : NULL;
  bool full = is_call(op, "SPMDShardToFullShape");
  if (!a || feeds_manual(op->parent, &op->results[0])) return; /* those are read by the call */
  Type *type = op_type(op);
  Value *from = full ? &op->results[0] : op->operands[0];
  Op *c = op_new(r->m, OP_SHARDING_CONSTRAINT, 1, &from, 1, &type, 1,
                 &(NamedAttr){STR("sharding"), a}, 0, NULL);
  c->loc = op->loc;
  op_insert_before(full ? op->next : op, c);
  value_replace_all(op->parent->func, &op->results[0], &c->results[0]);
  c->operands[0] = from;
  if (!full) op_remove(op);
}

/* ---- shard_map in this form, made into a manual computation ----
 *
 *   %1 = Sharding(%0) {devices=...}      %2 = SPMDFullToShardShape(%1) {manual}
 *   %3 = call @shmap_body(%2)
 *   %4 = Sharding(%3) {manual}           %5 = SPMDShardToFullShape(%4) {devices=...}
 *
 * Whatever looks otherwise (manual over some of the axes only) stays as it is. */

static bool is_manual(const Op *op, const char *target) {
  return op && is_call(op, target) && op->n_operands == 1 && op->n_results == 1 &&
         str_is(sharding_text(op->attrs, op->n_attrs), "{manual}");
}

/* The one operation that reads v, after `from` in its region; NULL: several do, or none. */
static Op *only_reader(const Op *from, const Value *v) {
  Op *found = NULL;
  for (Op *op = from->next; op; op = op->next)
    for (int k = 0; k < op->n_operands; k++) {
      if (op->operands[k] != v) continue;
      if (found) return NULL;
      found = op;
    }
  return found;
}

/* The sharding with which operand v of a body came in. */
static Attr *sharding_in(Rewrite *r, const Value *v) {
  const Op *part = v->def,
           *whole = is_manual(part, "SPMDFullToShardShape") ? part->operands[0]->def : NULL;
  if (!whole || !is_call(whole, "Sharding") || whole->n_results != 1 || !only_reader(part, v))
    return NULL;
  return sharding_attr(r, sharding_text(whole->attrs, whole->n_attrs), whole->results[0].type);
}

/* The operation that makes a whole of a body's result. */
static Op *whole_again(const Op *call, const Value *v) {
  const Op *part = only_reader(call, v);
  if (!is_manual(part, "Sharding")) return NULL;
  Op *whole = only_reader(part, &part->results[0]);
  return whole && is_call(whole, "SPMDShardToFullShape") && whole->n_results == 1 ? whole : NULL;
}

static Attr *all_axes(Rewrite *r) {
  Attr **names = ARENA_ARRAY(r->m->arena, Attr *, r->mesh->n_axes + 1);
  for (int i = 0; i < r->mesh->n_axes; i++) names[i] = attr_string(r->m, r->mesh->axes[i].name);
  return attr_array(r->m, r->mesh->n_axes, names);
}

/* The body of the manual computation: the same call, of its own arguments. */
static Region *manual_body(Module *m, const Op *call) {
  Type **in = ARENA_ARRAY(m->arena, Type *, call->n_operands + 1),
       **out = ARENA_ARRAY(m->arena, Type *, call->n_results + 1);
  Value **results = ARENA_ARRAY(m->arena, Value *, call->n_results + 1);
  for (int k = 0; k < call->n_operands; k++) in[k] = call->operands[k]->type;
  for (int j = 0; j < call->n_results; j++) out[j] = call->results[j].type;
  Region *body = region_new(m, call->n_operands, in);
  Op *inner = op_new(m, OP_CALL, call->n_operands, body->args, call->n_results, out, call->n_attrs,
                     call->attrs, 0, NULL);
  for (int j = 0; j < call->n_results; j++) results[j] = &inner->results[j];
  Op *ret = op_new(m, OP_RETURN, call->n_results, results, 0, NULL, 0, NULL, 0, NULL);
  inner->loc = ret->loc = call->loc;
  op_append(body, inner);
  op_append(body, ret);
  return body;
}

static void remove_all(Func *f, Op *call, Op *manual, Op *const *wholes) {
  for (int j = 0; j < call->n_results; j++) {
    Op *part = wholes[j]->operands[0]->def;
    value_replace_all(f, &wholes[j]->results[0], &manual->results[j]);
    op_remove(wholes[j]);
    op_remove(part);
  }
  int n = call->n_operands;
  Value *const *operands = call->operands;
  op_remove(call);
  for (int k = 0; k < n; k++) op_remove(operands[k]->def);
}

static void make_manual(Rewrite *r, Op *call) {
  Module *m = r->m;
  int n = call->n_operands, n_out = call->n_results;
  Attr **in = ARENA_ARRAY(m->arena, Attr *, n + 1),
       **out = ARENA_ARRAY(m->arena, Attr *, n_out + 1);
  Value **operands = ARENA_ARRAY(m->arena, Value *, n + 1);
  Type **types = ARENA_ARRAY(m->arena, Type *, n_out + 1);
  Op **wholes = ARENA_ARRAY(m->arena, Op *, n_out + 1);
  for (int k = 0; k < n; k++) {
    if (!(in[k] = sharding_in(r, call->operands[k]))) return;
    operands[k] = call->operands[k]->def->operands[0];
  }
  for (int j = 0; j < n_out; j++) {
    const Op *whole = wholes[j] = whole_again(call, &call->results[j]);
    if (!whole) return;
    types[j] = whole->results[0].type;
    out[j] = sharding_attr(r, sharding_text(whole->attrs, whole->n_attrs), types[j]);
    if (!out[j]) return;
  }
  NamedAttr attrs[] = {{STR("in_shardings"), attr_array(m, n, in)},
                       {STR("manual_axes"), all_axes(r)},
                       {STR("out_shardings"), attr_array(m, n_out, out)}};
  Region *body = manual_body(m, call);
  Op *manual =
      op_new(m, OP_MANUAL_COMPUTATION, n, operands, n_out, types, COUNT_OF(attrs), attrs, 1, &body);
  manual->loc = call->loc;
  op_insert_before(call, manual);
  remove_all(call->parent->func, call, manual, wholes);
}

static void make_all_manual(Rewrite *r, const Region *region) {
  for (Op *op = region->first, *next; op; op = next) {
    next = op->next;
    for (int i = 0; i < op->n_regions; i++) make_all_manual(r, op->regions[i]);
    if (op->kind != OP_CALL || !op->n_results) continue;
    while (next && (is_manual(next, "Sharding") || is_call(next, "SPMDShardToFullShape")))
      next = next->next; /* those go */
    make_manual(r, op);
  }
}

void shardings_from_gspmd(Module *m, int n_devices) {
  Func *f = module_main(m);
  if (m->meshes.n || !f || !f->body) return;
  Rewrite r = {.m = m, .n_devices = n_devices};
  const Type *t = f->type;
  bool any = false;
  for (int i = 0; i < t->n_elems; i++) {
    Str text = sharding_text(f->arg_attrs[i], f->n_arg_attrs[i]);
    any |= text.n > 0;
    if (text.n) note(&r, text, t->elems[i]);
  }
  for (int i = 0; i < t->n_results; i++) {
    Str text = sharding_text(f->res_attrs[i], f->n_res_attrs[i]);
    any |= text.n > 0;
    if (text.n) note(&r, text, t->results[i]);
  }
  for (int i = 0; i < m->funcs.n; i++)
    if (m->funcs.v[i]->body) each_op(&r, m->funcs.v[i]->body, note_call);
  if ((!any && !r.bounds.n) || !make_mesh(&r)) return;
  for (int i = 0; i < t->n_elems; i++)
    add_attr(&r, &f->arg_attrs[i], &f->n_arg_attrs[i], t->elems[i]);
  for (int i = 0; i < t->n_results; i++)
    add_attr(&r, &f->res_attrs[i], &f->n_res_attrs[i], t->results[i]);
  for (int i = 0; i < m->funcs.n; i++)
    if (m->funcs.v[i]->body) make_all_manual(&r, m->funcs.v[i]->body);
  for (int i = 0; i < m->funcs.n; i++)
    if (m->funcs.v[i]->body) each_op(&r, m->funcs.v[i]->body, replace_call);
}
