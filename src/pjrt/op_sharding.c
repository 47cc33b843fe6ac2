/* OpSharding, as XLA's HLO writes it, out of a sharding by axes of a mesh.
 *
 * Its tile assignment is a reshape of 0 .. n-1 to factors, pieces of the mesh's axes, and a
 * transposition that puts the factors of dimension 0 first, then those of dimension 1, ..., then the
 * replicated ones, then the unreduced ones. */
#include <stdlib.h>

#include "base/pb.h"
#include "pjrt/pjrt_priv.h"

/* Fields of the message, and its kinds. */
enum {
  TYPE = 1,
  TILE = 3,
  DEVICES = 4,
  LAST_IS_REPLICATED = 6,
  LAST_TYPES = 8,
  RESHAPE = 9,
  PERMUTATION = 10
};
enum { REPLICATED = 0, TILED = 3, UNREDUCED = 6 };

enum { DIM_REPLICATED = -1, DIM_UNREDUCED = -2 };

/* One factor of the mesh: a piece of an axis, in the mesh's order. */
typedef struct Factor {
  int axis;
  int64_t pre, size; /* axis position = (pre, size, rest) */
  int dim;           /* or DIM_ */
  int order;         /* within the dimension */
} Factor;
typedef VEC(Factor) Factors;

static int axis_index(const Mesh *mesh, Str name) {
  for (int i = 0; i < mesh->n_axes; i++)
    if (str_eq(mesh->axes[i].name, name)) return i;
  return -1;
}

/* The pieces of axes that the sharding names. false: nothing is cut. */
static bool used_factors(const Sharding *s, const Mesh *mesh, Factors *out) {
  bool cut = false;
  for (int d = 0; d < s->n_dims; d++)
    for (int k = 0; k < s->dims[d].n_axes; k++) {
      const AxisRef *r = &s->dims[d].axes[k];
      int axis = axis_index(mesh, r->name);
      if (axis < 0) continue;
      int64_t pre = r->sub_size ? r->sub_pre : 1;
      int64_t size = r->sub_size ? r->sub_size : mesh->axes[axis].size;
      cut |= size > 1;
      *vec_push(out) = (Factor){axis, pre, size, d, k};
    }
  for (int i = 0; i < s->n_unreduced; i++) {
    int axis = axis_index(mesh, s->unreduced[i].name);
    if (axis < 0 || mesh->axes[axis].size < 2) continue;
    cut = true;
    *vec_push(out) = (Factor){axis, 1, mesh->axes[axis].size, DIM_UNREDUCED, 0};
  }
  return cut;
}

/* Every axis cut into its used pieces and the rest, in order: the reshape. */
static void all_factors(const Mesh *mesh, const Factors *used, Factors *out) {
  for (int x = 0; x < mesh->n_axes; x++)
    for (int64_t at = 1; at < mesh->axes[x].size;) {
      Factor next = {x, at, mesh->axes[x].size / at, DIM_REPLICATED, 0};
      for (int i = 0; i < used->n; i++) {
        const Factor *u = &used->v[i];
        if (u->axis != x) continue;
        if (u->pre == at) {
          next = *u;
          break;
        }
        if (u->pre > at && u->pre / at < next.size) next.size = u->pre / at;
      }
      *vec_push(out) = next;
      at *= MAX(next.size, 2);
    }
}

/* Appends the factors of a dimension to the transposition: how many pieces they make. */
static int64_t take_dim(const Factors *all, int dim, int order, int64_t *perm, int *n) {
  int64_t pieces = 1;
  for (int i = 0; i < all->n; i++) {
    if (all->v[i].dim != dim || (order >= 0 && all->v[i].order != order)) continue;
    perm[(*n)++] = i;
    pieces *= all->v[i].size;
  }
  return pieces;
}

/* A mesh in an order of its own: the devices one by one, in the transposed order. */
static void put_devices(Buf *out, const Mesh *mesh, int n, const int64_t *reshape,
                        const int64_t *perm) {
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
  pb_ints(out, DEVICES, (int)total, ids);
  free(ids);
}

/* The reshape and the transposition; neighbouring factors that stay neighbours are one. */
static void put_iota(Buf *out, int n, int64_t *reshape, int64_t *perm) {
  int64_t *to = xcalloc((size_t)n + 1, sizeof *to);
  bool *joins = xcalloc((size_t)n + 1, sizeof *joins);
  for (int k = 1; k < n; k++)
    if (perm[k] == perm[k - 1] + 1) joins[perm[k]] = true;
  int groups = 0, m = 0;
  for (int i = 0; i < n; i++) {
    int64_t size = reshape[i];
    if (joins[i]) reshape[groups - 1] *= size;
    else reshape[groups++] = size;
    to[i] = groups - 1;
  }
  for (int k = 0; k < n; k++)
    if (!joins[perm[k]]) perm[m++] = to[perm[k]];
  pb_ints(out, RESHAPE, groups, reshape);
  pb_ints(out, PERMUTATION, groups, perm);
  free(to);
  free(joins);
}

static void put_tiled(Buf *out, const Sharding *s, const Mesh *mesh, const Factors *all) {
  int n = 0, n_tile = s->n_dims;
  int64_t *reshape = xcalloc((size_t)all->n + 1, sizeof *reshape);
  int64_t *perm = xcalloc((size_t)all->n + 1, sizeof *perm);
  int64_t *tile = xcalloc((size_t)s->n_dims + 2, sizeof *tile);
  for (int i = 0; i < all->n; i++) reshape[i] = all->v[i].size;
  for (int d = 0; d < s->n_dims; d++) {
    tile[d] = 1;
    for (int k = 0; k < s->dims[d].n_axes; k++) tile[d] *= take_dim(all, d, k, perm, &n);
  }
  int64_t replicated = take_dim(all, DIM_REPLICATED, -1, perm, &n);
  int64_t unreduced = take_dim(all, DIM_UNREDUCED, -1, perm, &n);
  if (replicated > 1) tile[n_tile++] = replicated;
  if (unreduced > 1) tile[n_tile++] = unreduced;
  pb_int(out, TYPE, TILED);
  pb_ints(out, TILE, n_tile, tile);
  if (mesh->n_ids) put_devices(out, mesh, n, reshape, perm);
  else put_iota(out, n, reshape, perm);
  int64_t types[2] = {REPLICATED, UNREDUCED};
  if (unreduced > 1) pb_ints(out, LAST_TYPES, replicated > 1 ? 2 : 1, types + (replicated <= 1));
  else if (replicated > 1) pb_int(out, LAST_IS_REPLICATED, 1);
  free(reshape);
  free(perm);
  free(tile);
}

void op_sharding_proto(Buf *out, const Sharding *s, const Mesh *mesh) {
  if (!s || !mesh) return;
  Factors used = {0}, all = {0};
  if (used_factors(s, mesh, &used)) {
    all_factors(mesh, &used, &all);
    put_tiled(out, s, mesh, &all);
  }
  vec_free(&used);
  vec_free(&all);
}
