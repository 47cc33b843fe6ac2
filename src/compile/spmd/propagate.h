/* compile/propagate: sharding propagation by Shardy's rules (propagate_flow.c): what is written on
 * arguments, results and constraints spreads along the dimensions that operations tie together, until
 * nothing changes.
 *
 * A dimension of a value carries a list of mesh axes, major first. Written shardings are closed
 * (kept as they are) unless they say `?`. Spreading never uses an axis twice in one value, and
 * never splits a dimension unevenly. One mesh takes part: the first that a sharding of main names, with what others
 * say in its axes. sdy.manual_computation is a wall with its in_shardings and out_shardings on both sides; its body
 * is entered where it is manual over some of the axes only (propagate_manual.c). What it wants of an operand reaches the operand where nothing else has cut that.
 */
#ifndef WEFT_COMPILE_SPMD_PROPAGATE_H
#define WEFT_COMPILE_SPMD_PROPAGATE_H

#include "ir/ir.h"

/* Spreads shardings through main of an inlined module, then gives each result of main without a
 * sharding the one that arrived there (res_attrs "sdy.sharding"). With all_values, every op result
 * gets its sharding as attribute "weft.sharding" (an array of AT_SHARDING), for the partitioner. No
 * mesh: does nothing. */
void pass_propagate(Module *m, bool all_values);
/* Does a manual computation leave axes free, with those around it? */
bool manual_is_partial(const Mesh *mesh, const Op *op);
/* The mesh whose axes take part; NULL: none. */
const Mesh *mesh_of_main(Module *m);
/* Likewise gives each argument of main without a sharding the one that its readers ask for: JAX leaves
 * those to the compiler. */
void pass_open_arguments(Module *m);
/* Writes shardings over other meshes of the same devices as such over the first, whose axes are split where that needs
 * it (one_mesh.c); NULL: does nothing. Propagation begins with it, for the mesh of main. */
void pass_one_mesh(Module *m, const Mesh *first);
/* Gives a program with mhlo.sharding strings a mesh and sdy shardings beside them (gspmd.c). */
void shardings_from_gspmd(Module *m, int n_devices);

/* Calls fn for every pair of dimensions that an operation of an inlined function ties together:
 * dimension da of a has the size of db of b, or their groups of a reshape begin with them. */
void dims_tied(Func *f, void (*fn)(void *arg, Value *a, int da, Value *b, int db), void *arg);

/* How many leading dimensions of an operation's operands and results count independent problems:
 * those of linear algebra, and of a custom call that says so (JAX's num_batch_dims). */
int batch_dims(const Op *op);

/* The next group of dimensions of a and b with equal products, from *i and *j on (dimensions of one
 * belong to none): *i0 and *j0 are the major ones. False: no more. */
bool reshape_group(const Type *a, const Type *b, int *i, int *j, int *i0, int *j0);

#endif
