/* mesh: where a device stands in a mesh, and which block of a sharded value is its own.
 *
 * A sharding gives each dimension a list of mesh axes, the first one slowest. The block of a process along a dimension is
 * the number its coordinates on those axes spell.
 */
#ifndef WEFT_IR_MESH_H
#define WEFT_IR_MESH_H

#include "ir/ir.h"

int64_t mesh_size(const Mesh *mesh);
/* Position of a device in the mesh's order; -1: not in it. */
int64_t mesh_position(const Mesh *mesh, int64_t device);
int64_t mesh_coordinate(const Mesh *mesh, int axis, int64_t position);
/* Is an axis among some, by name? */
bool mesh_lists(const Str *names, int n, Str axis);
/* Number of blocks and the block of `position` for each dimension. only: count these axes and no
 * others; NULL: all. */
Err *mesh_blocks(const Sharding *s, const Mesh *mesh, int rank, int64_t position, const Str *only,
                 int n_only, int64_t *parts, int64_t *index);

#endif
