/* fuse, private: clusters, the fusions in the making, and what fuse.c (which op goes where), cluster.c
 * (what a cluster computes), cluster_reduce.c (its sums), stored.c (what is in memory) and nodes.c (the
 * result) share. */
#ifndef WEFT_COMPILE_FUSE_FUSE_PRIV_H
#define WEFT_COMPILE_FUSE_FUSE_PRIV_H

#include "compile/fuse/fuse.h"
#include "compile/pass/query.h"

#define SMALL_COUNT 16384 /* below this, shapes do not matter for speed */
#define MIN_ROWS 16       /* fewer rows than this of a long reduction: cut the rows instead */

/* ---- again: what fusions compute for themselves although others compute it as well ---- */

#define REMAT_ROOTS 2
typedef struct Origin {
  const Value *root[REMAT_ROOTS]; /* the large values that it is computed from */
  int n, ops, heavy;
  bool again; /* worth it with one root, or where another root is read anyway */
} Origin;

typedef struct RematInput { /* a region's ops */
  const Region *region;
  int n;
  Op **ops;
  bool *fusible;
  int *const *users; /* positions; n: the region's end */
  const int *n_users;
  int (*pos)(const void *arg, const Op *op); /* -1: elsewhere */
  const void *arg;
} RematInput;

Origin *remat_find(const RematInput *in); /* by position; malloc'd */

/* ---- clusters ---- */

typedef struct Visit { /* a value at an index over the domain */
  Value *v;
  Affine *at;    /* rank of v entries */
  bool inside;   /* computed here; else read from memory */
  bool masked;   /* below a pad or concatenate */
  bool anywhere; /* read where an index says: from memory, that is */
} Visit;

typedef struct Cluster {
  FusionKind kind;
  Domain dom;
  VEC(Visit) visits;
  VEC(int) members; /* positions of ops */
  VEC(Value *) outs;
  const Op
      *parts; /* the concatenate whose operands are what is computed, element by element; NULL */
  int first, last; /* positions */
  int repeats;
  int functions; /* members whose code is long */
  int stamp;
} Cluster;

typedef struct Info { /* of the op at a position */
  Op *op;
  VEC(int) inside; /* clusters that compute it */
  bool alias;      /* exists in memory as another name of its operand */
  bool step;       /* a step of its own */
  int sweeps;      /* of its cluster: reductions one after the other, from here on */
  int stamp;
} Info;

typedef struct Fuser {
  Module *m;
  const Target *t;
  Region *r;
  Arena *mem;
  int n;
  Info *info;
  VEC(Cluster *) clusters;
  Map *pos;    /* op -> position + 1 */
  int **users; /* by position: positions of users, -1 ended; position n = outside */
  int *n_users;
  Origin *origins;
  int stamp;
} Fuser;

/* ---- fuse.c ---- */

int fuser_pos(const Fuser *f, const Op *op); /* -1: of another region */
bool op_is_cheap(const Op *op);              /* computed again rather than stored */

/* ---- cluster.c ---- */

/* A cluster of the op at `pos` alone, its results as outputs: the cluster's number; -1: not
 * possible. */
int cluster_new(Fuser *f, int pos);
/* A concatenate of equal shapes is written piece by piece: an element of each for every element of the
 * domain, which is their shape. */
bool op_is_in_parts(const Op *op);
/* Tries to compute the op inside cluster `id`; as_out: its results become outputs. Leaves the
 * cluster as it was on failure. */
bool cluster_take(Fuser *f, int id, int pos, bool as_out);
void cluster_free(Cluster *c);
/* Is the visit row-major over the whole domain (full) or over its kept dimensions (row)? */
bool cluster_in_order(const Cluster *c, const Visit *o, bool full);
Affine *cluster_index(Fuser *f, int rank);

/* ---- cluster_reduce.c ---- */

/* Of few elements, with many others beside each: a vector's lanes are rows. */
bool reduce_lies_across(const Op *op);
/* A reduction joins the cluster of its users: as rows of what they compute, or with them as its
 * epilogue. false: it cannot; the cluster may be changed. */
bool cluster_take_reduce(Fuser *f, Cluster *c, const Op *op);

/* ---- stored.c ---- */

/* By position: Fusion.stored. malloc'd */
bool *fuser_stored(const Fuser *f);

/* ---- nodes.c ---- */

/* The clusters as fusions and the other ops as steps of their own, in an order that respects data
 * flow. */
void fuser_nodes(Fuser *f, Nodes *out);

#endif
