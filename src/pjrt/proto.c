/* The protobuf messages of the ABI: CompileOptionsProto in, DeviceAssignmentProto in and out,
 * OpSharding out. Unknown fields are skipped. */
#include "base/pb.h"
#include "pjrt/pjrt_priv.h"

/* ---- compile options ---- */

/* Fields 1 replicas, 2 computations, 3 repeated computation {1 packed device ids}. */
static Err *assignment_parse(Str in, CompileOptions *o) {
  VEC(int) ids = {0};
  PbField f, g;
  bool bad_inner = false;
  int64_t replicas = 0, computations = 0;
  Pb message = pb_read(in);
  while (pb_next(&message, &f)) {
    if (f.number == 1 && f.type == 0) replicas = (int64_t)f.value;
    if (f.number == 2 && f.type == 0) computations = (int64_t)f.value;
    if (f.number != 3 || f.type != 2) continue;
    Pb c = pb_read(f.bytes);
    while (pb_next(&c, &g)) {
      if (g.number != 1) continue;
      uint64_t id;
      if (g.type == 0) *vec_push(&ids) = (int)g.value;
      else if (g.type == 2)
        while (g.bytes.n && pb_read_varint(&g.bytes, &id)) *vec_push(&ids) = (int)id;
    }
    bad_inner |= c.bad;
  }
  if (message.bad || bad_inner || replicas < 1 || computations < 1 || replicas > 1 << 20 ||
      computations > 1 << 20 || replicas * computations != ids.n) {
    vec_free(&ids);
    return err_new(ERR_INVALID, "the compile options hold a damaged device assignment");
  }
  o->n_assignment = ids.n;
  o->assignment = xcalloc((size_t)ids.n, sizeof(int));
  for (int c = 0; c < computations; c++) /* computation-major in the message */
    for (int r = 0; r < replicas; r++)
      o->assignment[r * computations + c] = ids.v[c * replicas + r];
  vec_free(&ids);
  return NULL;
}

/* An entry of env_option_overrides: 1 name, 2 value. XLA's flags mean nothing here and are
 * accepted, as programs set them for other backends; other names are mistakes. */
static Err *override_check(Str entry) {
  PbField f;
  Pb message = pb_read(entry);
  while (pb_next(&message, &f))
    if (f.number == 1 && f.type == 2 && !str_starts(f.bytes, "xla_"))
      return err_new(ERR_INVALID, "No such compile option: '%.*s'", STR_ARG(f.bytes));
  return NULL;
}

Err *compile_options_parse(Str bytes, CompileOptions *o) {
  *o = (CompileOptions){.replicas = 1, .partitions = 1};
  PbField top, f;
  bool bad_inner = false;
  Err *e = NULL;
  Pb message = pb_read(bytes);
  while (!e && pb_next(&message, &top)) {
    if (top.number == 7 && top.type == 2) e = override_check(top.bytes);
    if (top.number != 3 || top.type != 2) continue;
    Pb in = pb_read(top.bytes);
    while (!e && pb_next(&in, &f)) {
      int64_t v = (int64_t)f.value;
      switch (f.number) {
      case 4: o->replicas = v > 0 && v < 1 << 20 ? (int)v : 1; break;
      case 5: o->partitions = v > 0 && v < 1 << 20 ? (int)v : 1; break;
      case 6: o->spmd = v != 0; break;
      case 9:
        free(o->assignment);
        o->assignment = NULL, o->n_assignment = 0;
        if (f.type == 2) e = assignment_parse(f.bytes, o);
        break;
      case 12: /* bools, packed or not */
        if (f.type == 0) o->propagate_results |= v != 0;
        else
          for (size_t i = 0; i < f.bytes.n; i++) o->propagate_results |= f.bytes.p[i] != 0;
        break;
      case 19: o->shardy = v != 0; break;
      default: break;
      }
    }
    bad_inner |= in.bad;
  }
  if (!e && (message.bad || bad_inner)) e = err_new(ERR_INVALID, "the compile options are damaged");
  if (!e && o->n_assignment && o->n_assignment != o->replicas * o->partitions)
    e = err_new(ERR_INVALID,
                "the device assignment names %d devices for %d replicas x %d partitions",
                o->n_assignment, o->replicas, o->partitions);
  if (e) compile_options_clear(o);
  return e;
}

void compile_options_clear(CompileOptions *o) {
  free(o->assignment);
  o->assignment = NULL;
  o->n_assignment = 0;
}

void device_assignment_proto(Buf *out, int replicas, int partitions, const int *ids) {
  pb_int(out, 1, replicas);
  pb_int(out, 2, partitions);
  for (int c = 0; c < partitions; c++) {
    Buf one = {0};
    int64_t *row = xcalloc((size_t)replicas, sizeof *row);
    for (int r = 0; r < replicas; r++) row[r] = ids[r * partitions + c];
    pb_ints(&one, 1, replicas, row);
    pb_bytes(out, 3, &one);
    free(row);
    buf_free(&one);
  }
}

/* ---- shardings ---- */

/* One factor of the mesh: a piece of an axis, in the mesh's order. */
typedef struct Factor {
  int axis;
  int64_t pre, size; /* axis position = (pre, size, rest) */
  int dim;           /* -1: replicated, -2: unreduced */
  int order;         /* within the dimension */
} Factor;

static int axis_index(const Mesh *mesh, Str name) {
  for (int i = 0; i < mesh->n_axes; i++)
    if (str_eq(mesh->axes[i].name, name)) return i;
  return -1;
}

/* Tile assignment as a reshape of 0..n-1 to the factors, and a transposition that puts the factors
 * of dimension 0 first, then the replicated ones, then the unreduced ones. OpSharding fields: 1
 * type (3 tiled), 3 tile dimensions, 6 replicate_on_last_tile_dim, 8 types of the last tile
 * dimensions, 9 reshape dims, 10 permutation, 4 explicit device list. */
void op_sharding_proto(Buf *out, const Sharding *s, const Mesh *mesh) {
  if (!s || !mesh) return;
  VEC(Factor) fs = {0};
  bool tiled = false;
  for (int d = 0; d < s->n_dims; d++)
    for (int k = 0; k < s->dims[d].n_axes; k++) {
      const AxisRef *r = &s->dims[d].axes[k];
      int axis = axis_index(mesh, r->name);
      if (axis < 0) continue;
      int64_t pre = r->sub_size ? r->sub_pre : 1,
              size = r->sub_size ? r->sub_size : mesh->axes[axis].size;
      if (size > 1) tiled = true;
      *vec_push(&fs) = (Factor){axis, pre, size, d, k};
    }
  for (int i = 0; i < s->n_unreduced; i++) {
    int axis = axis_index(mesh, s->unreduced[i].name);
    if (axis < 0 || mesh->axes[axis].size < 2) continue;
    tiled = true;
    *vec_push(&fs) = (Factor){axis, 1, mesh->axes[axis].size, -2, 0};
  }
  if (!tiled) {
    vec_free(&fs);
    return;
  }
  /* Cut every axis into its used pieces and the rest, in order: the reshape. */
  VEC(Factor) all = {0};
  for (int x = 0; x < mesh->n_axes; x++)
    for (int64_t at = 1; at < mesh->axes[x].size;) {
      Factor next = {x, at, mesh->axes[x].size / at, -1, 0};
      for (int i = 0; i < fs.n; i++) {
        if (fs.v[i].axis != x) continue;
        if (fs.v[i].pre == at) {
          next = fs.v[i];
          break;
        }
        if (fs.v[i].pre > at && fs.v[i].pre / at < next.size) next.size = fs.v[i].pre / at;
      }
      *vec_push(&all) = next;
      at *= MAX(next.size, 2);
    }
  int n = all.n;
  int64_t *reshape = xcalloc((size_t)n + 1, sizeof *reshape),
          *perm = xcalloc((size_t)n + 1, sizeof *perm);
  int64_t *tile = xcalloc((size_t)s->n_dims + 2, sizeof *tile);
  for (int d = 0; d < s->n_dims + 2; d++) tile[d] = 1;
  int m = 0;
  for (int d = 0; d < s->n_dims; d++)
    for (int k = 0; k < s->dims[d].n_axes; k++)
      for (int i = 0; i < n; i++)
        if (all.v[i].dim == d && all.v[i].order == k) perm[m++] = i, tile[d] *= all.v[i].size;
  for (int i = 0; i < n; i++) {
    reshape[i] = all.v[i].size;
    if (all.v[i].dim == -1) perm[m++] = i, tile[s->n_dims] *= all.v[i].size;
  }
  int64_t unreduced = 1;
  for (int i = 0; i < n; i++)
    if (all.v[i].dim == -2) perm[m++] = i, unreduced *= all.v[i].size;
  bool partial = tile[s->n_dims] > 1;
  int n_tile = s->n_dims + (partial ? 1 : 0);
  if (unreduced > 1) tile[n_tile++] = unreduced;
  pb_int(out, 1, 3);
  pb_ints(out, 3, n_tile, tile);
  if (mesh->n_ids) { /* an explicit list: walk the transposed order */
    int64_t total = 1;
    for (int i = 0; i < n; i++) total *= reshape[i];
    int64_t *ids = xcalloc((size_t)total, sizeof *ids);
    for (int64_t at = 0; at < total; at++) {
      int64_t rest = at, pos = 0;
      for (int i = n - 1; i >= 0; i--) {
        int64_t digit = rest % reshape[perm[i]], stride = 1;
        rest /= reshape[perm[i]];
        for (int j = (int)perm[i] + 1; j < n; j++) stride *= reshape[j];
        pos += digit * stride;
      }
      ids[at] = pos < mesh->n_ids ? mesh->ids[pos] : pos;
    }
    pb_ints(out, 4, (int)total, ids);
    free(ids);
  } else {
    /* neighbouring factors that stay neighbours are one */
    int64_t *to = xcalloc((size_t)n + 1, sizeof *to);
    bool *joins = xcalloc((size_t)n + 1, sizeof *joins);
    for (int k = 1; k < n; k++)
      if (perm[k] == perm[k - 1] + 1) joins[perm[k]] = true;
    int groups = 0;
    for (int i = 0; i < n; i++) {
      if (joins[i]) reshape[groups - 1] *= all.v[i].size;
      else reshape[groups++] = all.v[i].size;
      to[i] = groups - 1;
    }
    int g = 0;
    for (int k = 0; k < n; k++)
      if (!joins[perm[k]]) perm[g++] = to[perm[k]];
    pb_ints(out, 9, groups, reshape);
    pb_ints(out, 10, groups, perm);
    free(to);
    free(joins);
  }
  int64_t types[2] = {0, 6}; /* REPLICATED, UNREDUCED */
  if (unreduced > 1) pb_ints(out, 8, partial ? 2 : 1, partial ? types : types + 1);
  else if (partial) pb_int(out, 6, 1);
  free(reshape);
  free(perm);
  free(tile);
  vec_free(&fs);
  vec_free(&all);
}
