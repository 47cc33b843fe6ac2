/* Blocks of rows, and values that one sweep keeps for the next. */
#include <stdlib.h>

#include "dev/cpu/loops/loops_priv.h"
#include "dev/cpu/loops/shape.h"

#define B g->b

#define BLOCK 2048       /* elements of a block: with what is kept of them in the first cache */
#define MAX_ROWS 16      /* of a block */
#define MIN_ROWS 4       /* fewer are not worth their loops */
#define KEEP_WORK 12     /* operations that are dearer than to write and read a value */
#define KEEP_BYTES 32768 /* of one value, for all elements of a block */
#define MAX_KEPT 4       /* values at a time */

/* ---- what several sweeps need ---- */

/* Marks what is computed below a node for each element. */
static void mark(const Dag *d, int node, bool *seen) {
  const DagNode *n = &d->nodes.v[node];
  if (seen[node] || !n->vec) return;
  seen[node] = true;
  for (int k = 0; n->kind == N_OP && k < n->n_in; k++) mark(d, n->in[k], seen);
}

/* The nodes that a sweep takes in or stores; malloc'd. */
static int *roots(const Dag *d, int sweep, int *count) {
  int n = 0, most = d->n_out + 1;
  for (int i = 0; i < d->reduces.n; i++) most += d->reduces.v[i].n;
  int *out = xcalloc((size_t)most, sizeof *out);
  for (int i = 0; i < d->reduces.n; i++)
    for (int k = 0; d->reduces.v[i].sweep == sweep && k < d->reduces.v[i].n; k++)
      out[n++] = d->reduces.v[i].in[k];
  for (int i = 0; i < d->n_out; i++)
    if (d->f->out[i].full && d->nodes.v[d->out[i]].depth == sweep) out[n++] = d->out[i];
  *count = n;
  return out;
}

/* Elements of a row, its innermost dimension in whole vectors. */
static int64_t row_room(const Gen *g, int kept_loops) {
  const Dag *d = g->d;
  int64_t n = 1;
  for (int i = kept_loops; i < d->n_loops; i++) {
    int64_t e = d->loops[i].extent;
    n *= i == d->vloop ? (e + g->vl - 1) / g->vl * g->vl : e;
  }
  return n;
}

static bool is_dear(const Dag *d, int node) {
  const DagNode *n = &d->nodes.v[node];
  bool held = emit_is_f32(n->t) || n->t == DT_F64;
  if (n->kind != N_OP || !held || n->level != d->loops[d->vloop].level) return false;
  bool *seen = xcalloc((size_t)d->nodes.n + 1, 1);
  double work = shape_work_below(d, node, seen);
  free(seen);
  return work >= KEEP_WORK;
}

typedef struct Keeping {
  int64_t room;
  bool *earlier; /* by node: computed in a sweep before this one, ... */
  int *since;    /* ... the first time in this one */
  V slot[MAX_KEPT];
  DType type[MAX_KEPT]; /* of its values */
  int tenant[MAX_KEPT]; /* the node whose values are there; -1: none yet */
} Keeping;

static bool is_tenant(const Keeping *k, int node) {
  for (int i = 0; i < MAX_KEPT; i++)
    if (k->tenant[i] == node) return true;
  return false;
}

static DType kept_type(const DagNode *n) { return n->t == DT_F64 ? DT_F64 : DT_F32; }

/* Memory that nobody reads any more when the node is first computed; a long chain of sums needs
 * two. */
static void give_slot(Gen *g, Keeping *k, int node) {
  DagNode *n = &g->d->nodes.v[node];
  for (int i = 0; i < MAX_KEPT && !n->kept; i++) {
    if (k->tenant[i] >= 0 && g->d->nodes.v[k->tenant[i]].kept_until >= k->since[node]) continue;
    if (k->slot[i] && k->type[i] != kept_type(n)) continue;
    if (!k->slot[i]) {
      k->type[i] = kept_type(n);
      LLVMTypeRef t = reg_type(g, k->type[i], 0);
      k->slot[i] = gen_alloca(g, LLVMArrayType2(t, (uint64_t)k->room));
      LLVMSetAlignment(k->slot[i], 64);
    }
    k->tenant[i] = node;
    n->kept = k->slot[i];
    n->kept_in = k->since[node];
  }
}

/* What the sweep reads of what is kept: below `node`, as far as it is computed again. */
static void read_below(Dag *d, const Keeping *k, int node, int sweep, bool *seen) {
  DagNode *n = &d->nodes.v[node];
  if (seen[node] || !n->vec) return;
  seen[node] = true;
  if (is_tenant(k, node) && n->kept_in < sweep) {
    n->kept_until = sweep;
    return;
  }
  for (int i = 0; n->kind == N_OP && i < n->n_in; i++) read_below(d, k, n->in[i], sweep, seen);
}

/* Of what both an earlier sweep and this one compute, the nodes that this one uses directly. */
static void keep(Gen *g, int sweep, Keeping *k) {
  Dag *d = g->d;
  int n_roots, *root = roots(d, sweep, &n_roots);
  bool *seen = xcalloc((size_t)d->nodes.n + 1, 1), *wanted = xcalloc((size_t)d->nodes.n + 1, 1);
  for (int i = 0; i < n_roots; i++) {
    mark(d, root[i], seen);
    wanted[root[i]] = true;
  }
  for (int i = 0; i < d->nodes.n; i++)
    for (int j = 0;
         seen[i] && !k->earlier[i] && d->nodes.v[i].kind == N_OP && j < d->nodes.v[i].n_in; j++)
      wanted[d->nodes.v[i].in[j]] = true;
  for (int i = 0; i < d->nodes.n; i++)
    if (wanted[i] && is_tenant(k, i)) d->nodes.v[i].kept_until = sweep;
  for (int i = 0; i < d->nodes.n; i++)
    if (wanted[i] && k->earlier[i] && !d->nodes.v[i].kept && is_dear(d, i)) {
      give_slot(g, k, i);
      d->nodes.v[i].kept_until = sweep;
    }
  free(seen);
  seen = xcalloc((size_t)d->nodes.n + 1, 1);
  for (int i = 0; i < n_roots; i++) read_below(d, k, root[i], sweep, seen);
  free(root);
  free(seen);
  free(wanted);
}

static void find_kept(Gen *g, int last_sweep, int64_t room) {
  Dag *d = g->d;
  Keeping k = {.room = room, .tenant = {-1, -1, -1, -1}};
  k.earlier = xcalloc((size_t)d->nodes.n + 1, 1);
  k.since = xcalloc((size_t)d->nodes.n + 1, sizeof *k.since);
  if (room * 4 > KEEP_BYTES || d->vloop < 0) last_sweep = -1; /* of f64 twice as much */
  for (int s = 0; s <= last_sweep; s++) {
    if (s > 0) keep(g, s, &k);
    int n, *root = roots(d, s, &n);
    for (int i = 0; i < n; i++) mark(d, root[i], k.earlier);
    free(root);
    for (int i = 0; i < d->nodes.n; i++)
      if (!k.earlier[i]) k.since[i] = s + 1;
  }
  free(k.earlier);
  free(k.since);
}

static V kept_pointer(Gen *g, const DagNode *n) {
  const Dag *d = g->d;
  int64_t stride = 1;
  V at = gen_i64(g, 0);
  for (int i = d->n_loops - 1; i >= 0; i--) {
    const Loop *l = &d->loops[i];
    if (l->level <= 1) continue;
    at = LLVMBuildAdd(B, at, LLVMBuildMul(B, l->iv, gen_i64(g, stride), ""), "");
    stride *= i == d->vloop ? (l->extent + g->vl - 1) / g->vl * g->vl : l->extent;
  }
  if (g->block_row)
    at = LLVMBuildAdd(B, at, LLVMBuildMul(B, g->block_row, gen_i64(g, stride), ""), "");
  return LLVMBuildGEP2(B, reg_type(g, kept_type(n), 0), n->kept, &at, 1, "");
}

static unsigned kept_alignment(const Gen *g, const DagNode *n) {
  return MIN(64, (unsigned)(dtype_bytes(kept_type(n)) * g->vl));
}

void block_keep(Gen *g, int level) {
  for (int i = 0; i < g->d->nodes.n; i++) {
    const DagNode *n = &g->d->nodes.v[i];
    if (!n->kept || n->kept_in != g->sweep) continue;
    V v = gen_node_at(g, i, level, true, false);
    LLVMSetAlignment(LLVMBuildStore(B, v, kept_pointer(g, n)), kept_alignment(g, n));
  }
}

V block_kept(Gen *g, DagNode *n) {
  if (!n->kept || g->sweep <= n->kept_in || g->sweep > n->kept_until) return NULL;
  gen_at_level(g, n->level);
  V v = LLVMBuildLoad2(B, reg_type(g, kept_type(n), g->vl), kept_pointer(g, n), "");
  LLVMSetAlignment(v, kept_alignment(g, n));
  return v;
}

/* ---- blocks ---- */

static int64_t rows_of(const Dag *d, int kept_loops, int last_sweep) {
  int64_t inner = 1, rows = 1;
  for (int i = 0; i < d->n_loops; i++) *(i < kept_loops ? &rows : &inner) *= d->loops[i].extent;
  int64_t n = MIN(MIN(BLOCK / inner, MAX_ROWS), rows);
  if (last_sweep < 1 || n < MIN_ROWS) return 1;
  for (int i = 0; i < d->nodes.n; i++)
    if (d->nodes.v[i].kind == N_REDUCE && d->nodes.v[i].level != 1) return 1;
  return n;
}

void block_open(Gen *g, RowBlock *b, int kept_loops, int last_sweep) {
  Dag *d = g->d;
  *b = (RowBlock){.rows = rows_of(d, kept_loops, last_sweep), .kept_loops = kept_loops};
  find_kept(g, last_sweep, b->rows * row_room(g, kept_loops));
  g->block_row = NULL;
  b->first = gen_open_loop(g, 1, g->begin, g->end, b->rows);
  if (b->rows == 1) {
    gen_decode(g, 1, b->first, 0, kept_loops);
    return;
  }
  gen_at_level(g, 1);
  b->end = LLVMBuildAdd(B, b->first, gen_i64(g, b->rows), "");
  b->end = LLVMBuildSelect(B, LLVMBuildICmp(B, LLVMIntSLT, b->end, g->end, ""), b->end, g->end, "");
  b->results = xcalloc((size_t)d->reduces.n + 1, sizeof *b->results);
}

void block_close(Gen *g, RowBlock *b) {
  free(b->results);
  gen_close_loop(g, 1);
}

static V result_pointer(Gen *g, const RowBlock *b, int reduce, int k) {
  LLVMTypeRef t = reg_type(g, shape_sum_type(&g->d->reduces.v[reduce], k), 0);
  return LLVMBuildGEP2(B, t, b->results[reduce][k], &g->block_row, 1, "");
}

void block_open_sweep(Gen *g, RowBlock *b, int sweep) {
  g->sweep = sweep;
  if (b->rows == 1) return;
  V t = gen_open_loop(g, 2, b->first, b->end, 1);
  b->resume = g->resume[2];
  g->point[1] = g->point[2];
  g->level = 1;
  g->epoch[1] = ++g->next_epoch;
  gen_decode(g, 1, t, 0, b->kept_loops);
  gen_at_level(g, 1);
  g->block_row = LLVMBuildSub(B, t, b->first, "");
  for (int i = 0; i < g->d->reduces.n; i++) {
    const DagReduce *r = &g->d->reduces.v[i];
    if (r->sweep >= sweep) continue;
    V v[4];
    for (int k = 0; k < r->n; k++)
      v[k] =
          LLVMBuildLoad2(B, reg_type(g, shape_sum_type(r, k), 0), result_pointer(g, b, i, k), "");
    gen_set_results(g, i, v);
  }
}

void block_set_results(Gen *g, const RowBlock *b, int reduce, const V *v) {
  gen_set_results(g, reduce, v);
  for (int k = 0; b->rows > 1 && k < g->d->reduces.v[reduce].n; k++) {
    LLVMTypeRef t = LLVMTypeOf(v[k]);
    b->results[reduce][k] = gen_alloca(g, LLVMArrayType2(t, (uint64_t)b->rows));
    gen_at_level(g, 1);
    LLVMBuildStore(B, v[k], result_pointer(g, b, reduce, k));
  }
}

void block_close_sweep(Gen *g, const RowBlock *b) {
  if (b->rows == 1) return;
  g->point[1] = b->resume;
  g->level = 1;
}

void gen_set_results(Gen *g, int reduce, const V *v) {
  for (int k = 0; k < g->d->nodes.n; k++) {
    DagNode *o = &g->d->nodes.v[k];
    if (o->kind != N_REDUCE || o->reduce != reduce) continue;
    o->val = v[o->v->index];
    o->epoch = g->epoch[o->level];
  }
}
