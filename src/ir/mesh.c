/* Devices of a mesh and the blocks of sharded values. */
#include "ir/mesh.h"

int64_t mesh_size(const Mesh *mesh) {
  int64_t n = 1;
  for (int i = 0; i < mesh->n_axes; i++) n *= mesh->axes[i].size;
  return n;
}

int64_t mesh_position(const Mesh *mesh, int64_t device) {
  if (!mesh->n_ids) return device < mesh_size(mesh) ? device : -1;
  for (int i = 0; i < mesh->n_ids; i++)
    if (mesh->ids[i] == device) return i;
  return -1;
}

int64_t mesh_coordinate(const Mesh *mesh, int axis, int64_t position) {
  for (int i = mesh->n_axes - 1; i > axis; i--) position /= mesh->axes[i].size;
  return position % mesh->axes[axis].size;
}

bool mesh_lists(const Str *names, int n, Str s) {
  for (int i = 0; i < n; i++)
    if (str_eq(names[i], s)) return true;
  return false;
}

Err *mesh_blocks(const Sharding *s, const Mesh *mesh, int rank, int64_t position, const Str *only,
                 int n_only, int64_t *parts, int64_t *index) {
  for (int d = 0; d < rank; d++) parts[d] = 1, index[d] = 0;
  if (s->n_dims && s->n_dims != rank)
    return err_new(ERR_INVALID, "a sharding of %d dimensions for a tensor of rank %d", s->n_dims,
                   rank);
  for (int d = 0; d < s->n_dims; d++)
    for (int i = 0; i < s->dims[d].n_axes; i++) {
      const AxisRef *a = &s->dims[d].axes[i];
      if (only && !mesh_lists(only, n_only, a->name)) continue;
      int axis = 0;
      while (axis < mesh->n_axes && !str_eq(mesh->axes[axis].name, a->name)) axis++;
      if (axis == mesh->n_axes)
        return err_new(ERR_INVALID, "the mesh has no axis \"%.*s\"", STR_ARG(a->name));
      int64_t size = mesh->axes[axis].size, c = mesh_coordinate(mesh, axis, position);
      if (a->sub_size) { /* the axis seen as pre x sub x rest */
        int64_t pre = MAX(a->sub_pre, 1);
        if (size % (pre * a->sub_size))
          return err_new(ERR_INVALID, "axis \"%.*s\" has no such part", STR_ARG(a->name));
        c = c / (size / (pre * a->sub_size)) % a->sub_size;
        size = a->sub_size;
      }
      parts[d] *= size;
      index[d] = index[d] * size + c;
    }
  return NULL;
}
