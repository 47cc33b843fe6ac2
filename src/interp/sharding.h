/* sharding: which processes a sharding gives the same block. */
#ifndef WEFT_INTERP_SHARDING_H
#define WEFT_INTERP_SHARDING_H

#include "ir/ir.h"

/* owner[p]: the first of n processes that has the same block as p. errors: of shard_cut (interp.h) */
Err *shard_owners(const Sharding *s, const Mesh *mesh, int rank, int n, int *owner);

#endif
