/* interp: the reference interpreter. Slow, obvious, element by element, as the StableHLO
 * specification says; the meaning of the language. Everything else is tested against it. One
 * sem_<fn>() for each row of ir/ops.def.
 *
 * Numerics    transcendental functions of f16, bf16, f32 and f8 are computed in double and rounded
 *             once; reductions and dots run in the element type (dot: accumulation type) in
 *             row-major order of the input.
 * Processes   a program over N = replicas x partitions processes runs in lock step: a value is one
 *             tensor for all (Shards.n == 1) or one for each. Process p is replica p / partitions,
 *             partition p % partitions. Control flow whose predicate differs between processes runs
 *             each branch for its own processes. sdy.manual_computation cuts its operands into
 *             blocks by in_shardings (Shards of N) and joins its results; the custom calls
 *             SPMDFullToShardShape / SPMDShardToFullShape do the same for the older form.
 */
#ifndef WEFT_INTERP_INTERP_H
#define WEFT_INTERP_INTERP_H

#include "ir/ir.h"

/* Who needs whom at a collective: `n` groups of processes, in their order. */
typedef struct ProcessGroups {
  int n, width; /* width: members of the longest */
  int *member;  /* n x width processes, -1 pads */
  int *size;
} ProcessGroups;
/* Of a permutation: processes that pairs tie together, ascending. Free with process_groups_free. */
Err *interp_groups(const Op *op, int replicas, int partitions, ProcessGroups *out);
/* Of a permutation: who gives to whom, groups of two. */
Err *interp_pairs(const Op *op, int replicas, int partitions, ProcessGroups *out);
void process_groups_free(ProcessGroups *g);

/* A run of some of the processes: the others run elsewhere. */
typedef struct InterpPart {
  int n;
  const int *process; /* ascending */
  /* At a collective: fills in[operand].t[p] for the processes that those with active[p] need, and
   * sets present[p]. */
  Err *(*meet)(void *arg, const Op *op, const uint8_t *active, Shards *in, uint8_t *present);
  void *arg;
} InterpPart;

typedef struct InterpOpts {
  int replicas, partitions; /* 0 means 1 */
  const InterpPart *part;   /* NULL: all processes */
} InterpOpts;

/* Runs function `func` ("" = main). args: one Shards for each argument, n == 1 or n == replicas *
 * partitions (with a part: part->n, in its order); borrowed. results: filled with new references, as
 * many as arguments have (Shards.t malloc'd; free with shards_free). errors: a failing check.expect_* is ERR_ABORTED naming the element;
 * ERR_UNIMPLEMENTED names the op and its place. */
Err *interp_run(const Module *m, Str func, const InterpOpts *opts, const Shards *args, int n_args,
                Shards *results, int n_results);
void shards_free(Shards *s); /* releases the references and the array */

/* One op on one process: operands and results are tensors. captured(arg, v) gives the tensor of a
 * value from outside that the op's regions use (may be NULL when there are none). Not for
 * collectives, calls or manual_computation. */
Err *interp_eval(const Op *op, Tensor *const *operands, Tensor **results,
                 Tensor *(*captured)(void *arg, const Value *v), void *arg);

/* A collective, or a custom call between whole values and shards, on all replicas * partitions
 * processes at once: in as operands (borrowed, n == 1 or N), out filled with new references. Not
 * for control flow and tokens' transfers. active: N flags: only groups of these are computed, the
 * others have no operands; NULL: all. */
Err *interp_eval_all(const Op *op, int replicas, int partitions, const uint8_t *active,
                     const Shards *in, Shards *out);

/* Cuts the block of process `p` (0 <= p < N) out of the whole tensor and back, by an sdy sharding
 * on a mesh; used by dev as well. Dimensions that do not divide evenly are padded up to ceil(dim /
 * parts) blocks as GSPMD does (last block short is an error for manual computations). */
Err *shard_cut(const Tensor *whole, const Sharding *s, const Mesh *mesh, int64_t p, Tensor **out);
/* The dims of a block. */
Err *shard_dims(const Sharding *s, const Mesh *mesh, int rank, const int64_t *dims, int64_t *out);
/* Joins blocks[0..n-1] (process order) into a tensor of the given global dims; replicated copies:
 * the first one wins. */
Err *shard_join(Tensor *const *blocks, int n, const Sharding *s, const Mesh *mesh, int rank,
                const int64_t *dims, Tensor **out);
/* The older form: "{devices=[2,4]<=[8] last_tile_dim_replicate}" and friends. Allocated in m. *out
 * NULL = replicated. */
Err *sharding_from_gspmd(Module *m, Str text, int rank, int n_devices, Sharding **out,
                         Mesh **out_mesh);

/* Targets of stablehlo.custom_call that weft knows. run gets one process's operands. Returns NULL
 * for an unknown name. */
typedef Err *(*CustomCallFn)(const Op *op, Tensor *const *operands, Tensor **results);
CustomCallFn custom_call_find(Str target);
/* The custom calls of jax.lax.approx_max_k and approx_min_k (values, indices, two initial values):
 * along which dimension, and whether larger values come first. */
bool interp_approx_top_k(const Op *op, int *dim, bool *greater);
void custom_call_register(const char *target,
                          CustomCallFn fn); /* process-wide; for the plugin's host callbacks */

#endif
