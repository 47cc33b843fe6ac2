/* dev/cpu/loops, private: blocks and nodes (nodes.c), their memory (access.c), several
 * sweeps over rows (blocks.c), reductions (sums.c), walks over elements (walk.c), loops (loops.c). */
#ifndef WEFT_DEV_CPU_LOOPS_PRIV_H
#define WEFT_DEV_CPU_LOOPS_PRIV_H

#include "dev/cpu/loops/emit_priv.h"

typedef LLVMValueRef V;

/* ---- nodes.c ---- */

V gen_i64(Gen *g, int64_t v);
void gen_at_level(Gen *g, int level); /* the builder stands at the level's insertion point */
void gen_open_function(Gen *g, const char *name);
/* for (iv = lo; iv < hi; iv += step), at least once; the body is `level`. Returns iv. */
V gen_open_loop(Gen *g, int level, V lo, V hi, int64_t step);
void gen_open_if(Gen *g, int level, V cond); /* closed by gen_close_loop */
void gen_close_loop(Gen *g, int level);
/* The code of the current level goes on behind two blocks, for cond and else; no level is opened. */
void gen_open_either(Gen *g, V cond, LLVMBasicBlockRef blocks[2]);
V gen_alloca(Gen *g, LLVMTypeRef t);   /* in the entry block */
void gen_open_flat(Gen *g, int level); /* a level without a loop: the place of the one outside */
V gen_affine(Gen *g, const Affine *a); /* of the first lane */
V gen_lane_ids(Gen *g, LLVMTypeRef t);
V gen_base(Gen *g, int buf);
V gen_node(Gen *g, int id); /* in the digits of its type */
/* With as many lanes as asked for (a scalar is spread), in the digits of its type when `rounded`;
 * the builder stands at `level` afterwards. */
V gen_node_at(Gen *g, int id, int level, bool vec, bool rounded);

V gen_mask(Gen *g, int id);
V gen_address(Gen *g, V base, LLVMTypeRef elem, const Affine *a); /* of the first lane */

/* ---- access.c ---- */

/* How far each lane is from where gen_affine points. Usually a multiple of the stride; in a braid,
 * elements of the vector loop, which is short, and of the loop before it are lanes side by side:
 * lane l is element first_lane + l of a block of rows. */
void gen_lane_steps(const Gen *g, const Affine *a, int64_t *steps);
bool gen_steps_none(const Gen *g, const int64_t *steps); /* are all 0? */
V gen_const_lanes(Gen *g, LLVMTypeRef t, const int64_t *v);
V gen_align(V load, DType t);
V gen_load(Gen *g, DagNode *n); /* an input or a gather */
/* What output `out` has at the current lanes, as it is in memory. *im: of a complex one, else NULL. */
V gen_stored(Gen *g, int out, int level, bool vec, V *im);
/* Stores v at ptr, its lanes `steps` apart (NULL: in a row), those that the tail has (NULL: all). */
void gen_store_lanes(Gen *g, DType t, V v, V ptr, const int64_t *steps, V tail);
void gen_store(Gen *g, int out, int level);

/* ---- gather.c ---- */

/* The elements at `at` from base, one by one: a machine's own gather is slower where it is made of many
 * small operations, or mitigated. */
V gather_each(Gen *g, DType t, V base, V at);

/* Moves an address in the operand of a gather by the index vector, if all lanes have the same one. */
V gather_window(Gen *g, const DagNode *n, V ptr);
/* An element of a window for each lane; NULL: they have the same one. */
V gather_lanes(Gen *g, const DagNode *n);

/* ---- weave.c ---- */

/* The output, if it is a part of a value whose parts lie between each other in memory: with the first
 * of them all are stored. */
bool gen_store_woven(Gen *g, int out, int level);

/* ---- blocks.c: several sweeps over the same rows ---- */

/* Rows are swept in blocks, each sweep over all of a block: what ends one row, a chain of few
 * operations, goes on beside the next row. What several sweeps need and is dear to compute is kept in
 * memory by the first of them. */
typedef struct RowBlock {
  int64_t rows; /* of a block; 1: blocks are not worth it */
  int kept_loops;
  V first, end;    /* tasks of this one */
  V resume;        /* after the rows' loop */
  V (*results)[4]; /* of each reduction, by row */
} RowBlock;
/* Opens the loop over tasks, in blocks or one by one; the levels are set. */
void block_open(Gen *g, RowBlock *b, int kept_loops, int last_sweep);
void block_close(Gen *g, RowBlock *b);
/* Around each sweep: the loop over the rows, as level 1, with the results of earlier sweeps. */
void block_open_sweep(Gen *g, RowBlock *b, int sweep);
void block_close_sweep(Gen *g, const RowBlock *b);
void block_set_results(Gen *g, const RowBlock *b, int reduce, const V *v);
void block_keep(Gen *g, int level);  /* what this sweep leaves, at the current element */
V block_kept(Gen *g, DagNode *node); /* NULL: it is computed here */

/* ---- sums.c: the accumulators of a reduction, at most 8 for each operand ---- */

/* A neutral element at the current lanes; init: the initial value, a scalar. */
V sum_neutral(Gen *g, const DagReduce *r, int k, V init);
void sum_combine(Gen *g, const DagReduce *r, V *a, V *b, V *out); /* out = body(a, b) */
/* The elements taken in, spread to the current lanes, neutral where the mask is off. */
void sum_elements(Gen *g, const DagReduce *r, int level, bool vec, V *out);
void sum_init(Gen *g, DagReduce *r, int level, bool vec, int count);
void sum_accumulate(Gen *g, DagReduce *r, int level, bool vec, int u);
/* A sum of many floats loses digits when each is added to a large total. Of such a sum
 * (shape_sum_is_long) the accumulators, at most 4, may be emptied into totals now and then; these take
 * their place in the end. */
void sum_init_totals(Gen *g, DagReduce *r, int level, bool vec, int count);
void sum_flush(Gen *g, const DagReduce *r, int level, bool vec, int count);
void sum_take_totals(Gen *g, DagReduce *r, int level, bool vec, int count);
/* Accumulators -> scalars, without the initial value. */
void sum_collect(Gen *g, DagReduce *r, int level, bool vec, int count, V *out);
/* The accumulators of a row in each lane. */
void sum_collect_lanes(Gen *g, const DagReduce *r, int level, V *out);
void sum_with_init(Gen *g, DagReduce *r, int level, bool vec,
                   V *v); /* and rounded, unless r->loose */

/* ---- walk.c ---- */

typedef struct Walk {
  /* at g->level, the loops' iv set; u: which of the unrolled */
  void (*body)(Gen *g, void *arg, int u);
  void *arg;
  int unroll;
  bool expand; /* no loop at all over the vectors: u counts them */
  /* NULL, or called at g->level after about LONG_SUM bodies of each u */
  void (*flush)(Gen *g, void *arg);
} Walk;

/* The vector loop over [lo, hi). Not empty, and a partial vector only at the very end of the extent,
 * unless ragged. */
void walk_range(Gen *g, int level, V lo, V hi, bool ragged, const Walk *w);
void walk_vectors(Gen *g, int level, int64_t lo, int64_t hi, const Walk *w);
/* Of a braid: rows of a block, whose elements fill whole vectors. */
int64_t walk_braid_rows(const Gen *g);
/* The braid of rows [lo, hi), not empty; lo is a multiple of the block's, a part of one comes only at
 * the very end. */
void walk_braid(Gen *g, int level, V lo, V hi, const Walk *w);
/* Loops first .. vloop, levels from `level`; the last in vectors. */
void walk_loops(Gen *g, int first, int level, const Walk *w);
/* for (iv = lo; iv < hi; iv += step), at least once, in blocks of `many` with a flush after each. The body is
 * `level`; no loop may be opened as level + 1. */
V walk_open_blocks(Gen *g, int level, V lo, V hi, int64_t step, int64_t many);
void walk_close_blocks(Gen *g, int level, const Walk *w);

/* Numbers of n columns, a vector each, stored row by row. */
void gen_store_columns(Gen *g, DType t, int n, const V *columns, V ptr);

/* ---- turned.c: rows in the lanes of vectors, turned when they are loaded and stored ---- */

/* Around the rows of one vector, all in one block; whatever is asked for meanwhile is of element
 * turned_at. */
void turned_open(Gen *g, int kept_loops, int64_t length);
void turned_close(Gen *g);
void turned_at(Gen *g, int64_t element);
V turned_load(Gen *g, DagNode *n); /* NULL: not of such rows */
/* At turned_flush, after the last element. false: not of such rows, and not stored. */
bool turned_store(Gen *g, int out, int level);
void turned_flush(Gen *g, int level);

/* ---- boxes.c ---- */

/* The loops of a fusion, of which the first `tasks` are tasks and open, in boxes. false: it is better
 * left whole, and nothing is generated. */
bool gen_boxes(Gen *g, int tasks, const Walk *w);

/* ---- what the kinds of fusions share ---- */

/* nodes.c: task number -> the loops first .. last - 1 */
void gen_decode(Gen *g, int level, V t, int first, int last);
/* walk.c: opens the tasks' loop: a task is a run, [*lo, *hi), of the rows of loop p at one place of the loops
 * before it; runs begin at multiples of `block`. width: elements of a row. */
void gen_open_runs(Gen *g, Dag *d, int p, int64_t block, int64_t width, FusedCode *out, V *lo,
                   V *hi);
/* blocks.c: what the nodes of a reduction are now */
void gen_set_results(Gen *g, int reduce, const V *v);
void gen_row(Gen *g, Dag *d, const char *name, FusedCode *out);   /* rows.c */
void gen_split(Gen *g, Dag *d, const char *name, FusedCode *out); /* split.c */

#endif
