/* One mesh for shardings that name several over the same devices.
 *
 * An axis stands for a range of the devices' row-major number: that of axis i lies between the products of the sizes
 * before it and up to it. Where these products of all meshes divide each other in a row, they are the bounds of the
 * axes of one mesh, and every axis of the others is some of its axes: of ["x"=2, "y"=2] and ["a"=4], a is x and y; of
 * ["x"=2, "y"=4] and ["a"=4, "b"=2] the mesh is ["x"=2, "y.0"=2, "y.1"=2]. A mesh that does not fit stays as it is.
 */
#include <stdlib.h>

#include "compile/spmd/propagate.h"

#define MAX_MESHES 8
#define MAX_BOUNDS 64

typedef struct Joined {
  Module *m;
  const Mesh *of[MAX_MESHES]; /* the first: that of main */
  Str names[MAX_MESHES];
  int n;
  int64_t bounds[MAX_BOUNDS];
  int n_bounds;
  const Mesh *fine;
  Str fine_name;
} Joined;

typedef void ShardingFn(Joined *j, Attr **a);

static void each_in(Joined *j, Attr **a, ShardingFn *fn) {
  if ((*a)->kind == AT_SHARDING && !(*a)->sharding->mesh) fn(j, a);
  if ((*a)->kind != AT_ARRAY || !(*a)->n) return;
  Attr *made = ARENA_NEW(j->m->arena, Attr);
  *made = **a;
  made->items = arena_dup(j->m->arena, (*a)->items, sizeof *made->items * (size_t)made->n);
  for (int i = 0; i < made->n; i++) each_in(j, &made->items[i], fn);
  for (int i = 0; i < made->n; i++)
    if (made->items[i] != (*a)->items[i]) *a = made; /* attributes may be shared: never in place */
}

static void each_of(Joined *j, NamedAttr *attrs, int n, ShardingFn *fn) {
  for (int i = 0; i < n; i++) each_in(j, &attrs[i].value, fn);
}

typedef struct EachOp {
  Joined *j;
  ShardingFn *fn;
} EachOp;

static int joined_index(const Joined *j, Str name) {
  for (int i = 0; i < j->n; i++)
    if (str_eq(j->names[i], name)) return i;
  return -1;
}

/* ---- bounds ---- */

static int64_t axis_low(const Mesh *mesh, Str name, int64_t *size) {
  int64_t low = 1;
  for (int i = 0; i < mesh->n_axes; low *= mesh->axes[i++].size)
    if (str_eq(mesh->axes[i].name, name)) {
      *size = mesh->axes[i].size;
      return low;
    }
  *size = 1;
  return 1;
}

static void range_of(const Mesh *mesh, const AxisRef *r, int64_t *low, int64_t *high) {
  int64_t size;
  *low = axis_low(mesh, r->name, &size);
  if (r->sub_size) *low *= r->sub_pre;
  *high = *low * (r->sub_size ? r->sub_size : size);
}

/* False: it is no multiple of the one before, or not a part of the one after. */
static bool add_bound(Joined *j, int64_t b) {
  int at = 0;
  while (at < j->n_bounds && j->bounds[at] < b) at++;
  if (at < j->n_bounds && j->bounds[at] == b) return true;
  if (j->n_bounds == MAX_BOUNDS || (at && b % j->bounds[at - 1]) ||
      (at < j->n_bounds && j->bounds[at] % b))
    return false;
  for (int i = j->n_bounds++; i > at; i--) j->bounds[i] = j->bounds[i - 1];
  j->bounds[at] = b;
  return true;
}

static bool add_bounds(Joined *j, const Mesh *mesh) {
  int64_t before[MAX_BOUNDS], product = 1;
  int n = j->n_bounds;
  for (int i = 0; i < n; i++) before[i] = j->bounds[i];
  bool fit = add_bound(j, 1);
  for (int i = 0; i < mesh->n_axes && fit; i++) fit = add_bound(j, product *= mesh->axes[i].size);
  if (fit) return true;
  for (int i = 0; i < n; i++) j->bounds[i] = before[i];
  j->n_bounds = n;
  return false;
}

static int64_t devices(const Mesh *mesh) {
  int64_t n = 1;
  for (int i = 0; i < mesh->n_axes; i++) n *= mesh->axes[i].size;
  return n;
}

static bool same_devices(const Mesh *a, const Mesh *b) {
  if (devices(a) != devices(b) || a->n_ids != b->n_ids) return false;
  for (int i = 0; i < a->n_ids; i++)
    if (a->ids[i] != b->ids[i]) return false;
  return true;
}

static void note_mesh(Joined *j, Attr **a) {
  Str name = (*a)->sharding->mesh_name;
  const Mesh *mesh = module_mesh(j->m, name);
  if (!mesh || !mesh->n_axes || j->n == MAX_MESHES || joined_index(j, name) >= 0 ||
      !same_devices(j->of[0], mesh) || !add_bounds(j, mesh))
    return;
  j->of[j->n] = mesh;
  j->names[j->n++] = name;
}

/* Axes of which a sharding takes a part are cut there, too; where that does not fit nothing is joined. */
static void note_parts(Joined *j, Attr **a) {
  const Sharding *sh = (*a)->sharding;
  int at = joined_index(j, sh->mesh_name);
  for (int d = -2; at >= 0 && d < sh->n_dims; d++) {
    int n = d == -2 ? sh->n_replicated : d == -1 ? sh->n_unreduced : sh->dims[d].n_axes;
    const AxisRef *r = d == -2 ? sh->replicated : d == -1 ? sh->unreduced : sh->dims[d].axes;
    for (int i = 0; i < n; i++) {
      int64_t low, high;
      range_of(j->of[at], &r[i], &low, &high);
      if (!add_bound(j, low) || !add_bound(j, high)) j->n = 0;
    }
  }
}

/* ---- the mesh of all, and what is written in it ---- */

static void make_mesh(Joined *j) {
  Arena *arena = j->m->arena;
  Mesh *fine = ARENA_NEW(arena, Mesh);
  *fine = *j->of[0];
  fine->repeated = false;
  fine->axes = ARENA_ARRAY(arena, MeshAxis, j->n_bounds);
  fine->n_axes = 0;
  int64_t low = 1;
  bool cut = false;
  for (int i = 0, b = 0; i < j->of[0]->n_axes; i++) {
    const MeshAxis *x = &j->of[0]->axes[i];
    int64_t high = low * x->size;
    for (int part = 0; b + 1 < j->n_bounds && j->bounds[b + 1] <= high; b++, part++) {
      bool whole = j->bounds[b] == low && j->bounds[b + 1] == high;
      cut |= !whole;
      fine->axes[fine->n_axes++] = (MeshAxis){
          whole ? x->name : arena_printf(arena, "%.*s.%d", (int)x->name.n, x->name.p, part),
          j->bounds[b + 1] / j->bounds[b]};
    }
    low = high;
  }
  j->fine = cut ? fine : j->of[0];
  j->fine_name = cut ? STR("weft.mesh") : j->names[0];
  if (!cut) return;
  Attr *a = ARENA_NEW(arena, Attr);
  a->kind = AT_MESH;
  a->mesh = fine;
  *vec_push(&j->m->meshes) = (NamedAttr){j->fine_name, a};
}

/* The axes of the joined mesh between two bounds. */
static int axes_between(const Mesh *fine, int64_t low, int64_t high, AxisRef *out) {
  int n = 0;
  int64_t at = 1;
  for (int i = 0; i < fine->n_axes; at *= fine->axes[i++].size)
    if (at >= low && at < high && fine->axes[i].size > 1)
      out[n++] = (AxisRef){.name = fine->axes[i].name};
  return n;
}

static AxisRef *in_fine(Joined *j, const Mesh *mesh, const AxisRef *refs, int *n) {
  AxisRef *made = ARENA_ARRAY(j->m->arena, AxisRef, (*n + 1) * MAX_BOUNDS);
  int k = 0;
  for (int i = 0; i < *n; i++) {
    int64_t low, high;
    range_of(mesh, &refs[i], &low, &high);
    k += axes_between(j->fine, low, high, made + k);
  }
  *n = k;
  return made;
}

static void write_in_fine(Joined *j, Attr **a) {
  int at = joined_index(j, (*a)->sharding->mesh_name);
  if (at < 0 || j->of[at] == j->fine) return;
  Attr *made = ARENA_NEW(j->m->arena, Attr);
  *made = **a;
  Sharding *sh = made->sharding = ARENA_NEW(j->m->arena, Sharding);
  *sh = *(*a)->sharding;
  sh->mesh_name = j->fine_name;
  sh->dims = arena_dup(j->m->arena, sh->dims, sizeof *sh->dims * (size_t)sh->n_dims);
  for (int d = 0; d < sh->n_dims; d++)
    sh->dims[d].axes = in_fine(j, j->of[at], sh->dims[d].axes, &sh->dims[d].n_axes);
  sh->replicated = in_fine(j, j->of[at], sh->replicated, &sh->n_replicated);
  sh->unreduced = in_fine(j, j->of[at], sh->unreduced, &sh->n_unreduced);
  *a = made;
}

static const Sharding *first_sharding(const Op *op) {
  static const char *const names[] = {"in_shardings", "out_shardings"};
  for (int i = 0; i < 2; i++) {
    const Attr *a = op_attr(op, names[i]);
    if (a && a->kind == AT_ARRAY && a->n && a->items[0]->kind == AT_SHARDING)
      return a->items[0]->sharding;
  }
  return NULL;
}

static void write_manual_axes(Joined *j, Op *op) {
  const Sharding *sh = first_sharding(op);
  const Attr *was = op_attr(op, "manual_axes");
  int at = sh && !sh->mesh ? joined_index(j, sh->mesh_name) : -1;
  if (at < 0 || j->of[at] == j->fine || !was || was->kind != AT_ARRAY) return;
  Attr *names[MAX_BOUNDS];
  int n = 0;
  for (int i = 0; i < was->n; i++) {
    AxisRef refs[MAX_BOUNDS];
    int64_t low, high;
    range_of(j->of[at], &(AxisRef){.name = was->items[i]->s}, &low, &high);
    int k = axes_between(j->fine, low, high, refs);
    for (int r = 0; r < k && n < MAX_BOUNDS; r++) names[n++] = attr_string(j->m, refs[r].name);
  }
  op_set_attr(j->m, op, STR("manual_axes"), attr_array(j->m, n, names));
}

static Err *each_op(Op *op, void *arg) {
  const EachOp *e = arg;
  if (e->fn == write_in_fine && op->kind == OP_MANUAL_COMPUTATION) write_manual_axes(e->j, op);
  each_of(e->j, op->attrs, op->n_attrs, e->fn);
  return NULL;
}

static void each_sharding(Joined *j, ShardingFn *fn) {
  for (int i = 0; i < j->m->funcs.n; i++) {
    Func *f = j->m->funcs.v[i];
    for (int k = 0; k < f->type->n_elems && f->arg_attrs; k++)
      each_of(j, f->arg_attrs[k], f->n_arg_attrs[k], fn);
    for (int k = 0; k < f->type->n_results && f->res_attrs; k++)
      each_of(j, f->res_attrs[k], f->n_res_attrs[k], fn);
    if (f->body) err_free(ir_walk(f->body, each_op, &(EachOp){j, fn}));
  }
}

void pass_one_mesh(Module *m, const Mesh *first) {
  Joined j = {.m = m};
  if (!first || m->meshes.n < 2 || !add_bounds(&j, first)) return;
  for (int i = 0; i < m->meshes.n; i++)
    if (m->meshes.v[i].value->mesh == first) j.names[0] = m->meshes.v[i].name;
  j.of[j.n++] = first;
  each_sharding(&j, note_mesh);
  if (j.n > 1) each_sharding(&j, note_parts);
  if (j.n <= 1) return;
  make_mesh(&j);
  each_sharding(&j, write_in_fine);
}
