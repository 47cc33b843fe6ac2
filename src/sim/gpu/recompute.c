/* What XLA's kernels for GPUs compute again for each that needs it, and what they leave in memory.
 *
 * Element by element most things are computed again. What takes long is stored if several kernels need it:
 * always where it takes as long as an error function, a hyperbolic tangent if it is rounded to 16 bits.
 *
 * XLA writes through Triton what walks over rows that it sums up as well: each block holds some rows, sums them up
 * and goes on with what it holds. Each such kernel has one result and computes again the sums that it needs, a mean
 * and a variance as well as the largest of a row, but for sums of exponentials that several arrays are made of.
 * What needs its result otherwise than element by element reads that from memory: sums along columns, transposes;
 * on some chips also further sums of rows that leave much of a block empty. */
#include <stdlib.h>

#include "sim/gpu/gpu.h"
#include "sim/schedule/compiler.h"

#define LEAST 1024    /* elements: fewer are not worth storing */
#define LONGEST 16384 /* of a row */
#define FEWEST 8      /* rows: with fewer, most of the chip would idle */
/* With a mask that rows share, those of 384 are summed up twice in a block of 512, those of 768 and 1536 are not
 * (XLA 0.11.2, H100, measured). */
#define SHORT_BLOCK 512
#define LONG_FILL 0.76

static bool elementwise(const HNode *n) {
  return n->kind == H_EWISE || n->kind == H_BCAST || n->kind == H_RESHAPE;
}

/* How long the rows are that it sums up; 0: it sums up otherwise. */
static int64_t summed_row(const HNode *n) {
  if (n->kind != H_REDUCE || n->n_results != 1 || n->dead || n->attention) return 0;
  const HNode *x = n->in[0];
  int64_t row = 1;
  for (int i = 0; i < n->n_dims; i++) {
    row *= x->d[n->dims[i]];
    if (n->dims[i] < x->rank - n->n_dims) return 0;
  }
  return row > 1 && row <= LONGEST && hlo_count(n) >= FEWEST ? row : 0;
}

static bool sums_rows(const HNode *n) { return summed_row(n) > 0; }

static bool masked(const HNode *sum) {
  for (const HNode *n = sum->in[0]; n->kind == H_EWISE && n->n_in; n = n->in[0])
    if (n->op == OP_SELECT)
      return n->in[0]->kind == H_BCAST && hlo_count(n->in[0]->in[0]) < hlo_count(n);
  return false;
}

/* A block has room for a power of two. Does a row waste so much of it that what is made of one sum is summed up
 * by another kernel? */
static bool wastes(const Schedule *p, const HNode *n) {
  int64_t row = summed_row(n), block = 1;
  while (block < row) block *= 2;
  double fill = chip_num(p->chip, "row_fill", 0);
  if (fill > 0 && block > SHORT_BLOCK && masked(n)) fill = MAX(fill, LONG_FILL);
  return (double)row < fill * (double)block;
}

/* Is the sum needed, up to where it is spread over rows again, for nothing but that? */
static bool spreads(const HNode *n, int64_t all, int depth) {
  if (n->is_output || !n->n_users || depth > 16) return false;
  for (int i = 0; i < n->n_users; i++) {
    const HNode *u = n->users[i];
    if (u->comp != n->comp || !elementwise(u)) return false;
    if (!(u->kind == H_EWISE && hlo_count(u) == all) && !spreads(u, all, depth + 1)) return false;
  }
  return true;
}

#define SEEN 64

/* Arrays that are stored of what is made of the sum row by row: more than one? */
static bool several(const HNode *sum) {
  const HNode *seen[SEEN] = {sum};
  int stored = 0;
  for (int i = 0, n = 1; i < n; i++) {
    bool end = seen[i]->is_output;
    for (int u = 0; u < seen[i]->n_users; u++)
      end |= !elementwise(seen[i]->users[u]) && !sums_rows(seen[i]->users[u]);
    if (i && end && ++stored > 1) return true;
    for (int u = 0; u < seen[i]->n_users && !(i && end); u++) {
      bool new = true;
      for (int q = 0; q < n; q++) new &= seen[q] != seen[i]->users[u];
      if (new &&n == SEEN) return true;
      if (new) seen[n++] = seen[i]->users[u];
    }
  }
  return false;
}

static bool sums_exponentials(const HNode *n) {
  for (int depth = 0; depth < 8 && n->n_in; depth++) {
    n = n->in[0];
    if (n->kind != H_EWISE) return false;
    if (n->op == OP_EXPONENTIAL) return true;
  }
  return false;
}

/* The widest elements that are stored instead of computed again; 0: none. */
static int dear_bits(const HNode *n) { return n->kind == H_EWISE ? op_cost[n->op].bits : 0; }

static void store_dear(Schedule *p) {
  for (int i = 0; i < p->comp->nodes.n; i++) {
    HNode *n = p->comp->nodes.v[i];
    int most = n->dead || n->attention ? 0 : dear_bits(n);
    if (!most) continue;
    while (n->n_users == 1 && !n->is_output && n->users[0]->kind == H_EWISE &&
           n->users[0]->op == OP_CONVERT && n->users[0]->comp == p->comp)
      n = n->users[0];
    if (hlo_bits(n->dt) <= most && hlo_count(n) >= LEAST && several(n)) sched_store(p, n);
  }
}

static void hold_rows(Schedule *p) {
  HComp *c = p->comp;
  size_t all = (size_t)p->g->n_nodes + 1;
  bool *held = xcalloc(all, sizeof *held); /* made of rows' sums in its kernel */
  bool *left = xcalloc(all, sizeof *left); /* made of rows that were left in memory */
  for (int i = 0; i < c->nodes.n; i++) {
    HNode *n = c->nodes.v[i];
    if (n->dead || n->attention) continue;
    bool rows = sums_rows(n), inside = false;
    for (int k = 0; k < n->n_in; k++) left[n->id] |= left[n->in[k]->id] && (elementwise(n) || rows);
    bool once = rows && wastes(p, n) && (several(n) || left[n->id]);
    for (int k = 0; k < n->n_in; k++) {
      if (!held[n->in[k]->id]) continue;
      rows &= !once;
      if (n->in[k]->val) continue;
      if (elementwise(n) || rows) inside = true;
      else sched_store(p, n->in[k]);
      left[n->in[k]->id] |= once;
    }
    rows &= !left[n->id];
    if (rows)
      n->inlined = spreads(n, hlo_count(n->in[0]), 0) && !(sums_exponentials(n) && several(n));
    held[n->id] = (inside && elementwise(n)) || n->inlined;
  }
  free(held);
  free(left);
}

/* What a kernel that holds rows computes: all between its sums and what leads to them, element by element. */
static void mark_rows(Schedule *p, bool *rows) {
  HComp *c = p->comp;
  for (int i = 0; i < c->nodes.n; i++) {
    HNode *n = c->nodes.v[i];
    rows[n->id] = n->inlined;
    for (int k = 0; k < n->n_in; k++)
      rows[n->id] |= elementwise(n) && rows[n->in[k]->id] && !n->in[k]->val;
  }
  for (int i = c->nodes.n - 1; i >= 0; i--) {
    HNode *n = c->nodes.v[i];
    for (int u = 0; u < n->n_users && !n->val && elementwise(n); u++)
      rows[n->id] |= n->users[u]->comp == c && rows[n->users[u]->id];
  }
}

void gpu_fuse(Schedule *p) {
  unsigned char *claimed = xcalloc((size_t)p->g->n_nodes + 1, 1);
  bool *rows = xcalloc((size_t)p->g->n_nodes + 1, sizeof *rows);
  sched_start_store(p);
  sched_store_products(p, claimed, gpu_epilogue_end);
  store_dear(p);
  if (chip_num(p->chip, "fused_attention", 0) > 0)
    hold_rows(p); /* Triton asks for the same chips */
  mark_rows(p, rows);
  gpu_priority_fusion(p, rows, claimed);
  sched_store_rest(p, claimed, true, gpu_absorbs);
  free(rows);
  free(claimed);
}
