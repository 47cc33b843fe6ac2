/* From a fusion to the graph of what is computed where: one node for each value at each affine
 * index, so that what two users want at the same place is computed once. Then the domain's
 * dimensions are grouped: neighbours that every address walks through as if they were one become
 * one loop. */
#include <math.h>

#include "dev/cpu/loops/emit_priv.h"
#include "compile/pass/query.h"

static int dag_node(Dag *d, const Value *v, const Affine *at, int mask);

static bool node_gathers(const DagNode *n) { return n->kind == N_OP && n->op->kind == OP_GATHER; }

bool dag_keeps_digits(const DagNode *n) {
  return n->loose && !n->stored && !(n->kind == N_OP && n->op->kind == OP_CONVERT);
}

static bool same_index(const Dag *d, const Value *v, const Affine *a, const Affine *b) {
  for (int i = 0; i < v->type->rank; i++)
    if (!affine_equal(&d->dom, &a[i], &b[i])) return false;
  return true;
}

static void range_of(const Dag *d, const Affine *a, int64_t *lo, int64_t *hi) {
  *lo = *hi = a->off;
  for (int k = 0; k < d->dom.n; k++) {
    int64_t s = a->coef[k] * (d->dom.dims[k] - 1);
    if (s > 0) *hi += s;
    else *lo += s;
  }
}

/* The mask of operand k of pad or concatenate. */
static int operand_mask(Dag *d, const Op *op, int k, const Affine *at, int parent) {
  int dims[DOM_MAX], n = index_range(op, k, dims);
  const Type *t = op->operands[k]->type;
  for (int i = 0; i < n; i++) {
    int64_t lo, hi, size = t->dims[dims[i]];
    range_of(d, &at[dims[i]], &lo, &hi);
    if (lo >= 0 && hi < size) continue;
    int found = 0;
    for (int j = 1; j < d->masks.n && !found; j++) {
      const DagMask *m = &d->masks.v[j];
      if (m->parent == parent && m->size == size && affine_equal(&d->dom, &m->form, &at[dims[i]]))
        found = j;
    }
    if (!found) {
      found = d->masks.n;
      *vec_push(&d->masks) = (DagMask){.parent = parent, .form = at[dims[i]], .size = size};
      *vec_push(&d->leaves) = at[dims[i]];
    }
    parent = found;
  }
  return parent;
}

static bool is_loose(const Dag *d, const DagNode *n) {
  if (n->t != DT_BF16 && n->t != DT_F16) return false;
  switch (emit_digits(n->op->kind)) {
  case DIGITS_MORE: return true;
  case DIGITS_OF_TYPE: return n->op->kind == OP_CONVERT; /* rounded for everybody (nodes.c) */
  case DIGITS_OF_OPERANDS: break;
  }
  for (int k = 0; k < n->n_in; k++)
    if (dag_keeps_digits(&d->nodes.v[n->in[k]])) return true;
  return false;
}

/* Arithmetic makes NaNs without digits of their own and passes on those it is given. */
static bool is_odd_nan(const Dag *d, const DagNode *n) {
  bool narrow = !dtype_is_float(n->t) || n->t == DT_BF16 || is_small_float(n->t), odd = false;
  if (n->kind == N_INPUT || node_gathers(n)) return !narrow;
  if (n->kind == N_SPLAT) return !narrow && isnan(elem_get_f64(n->t, value_splat(n->v)));
  if (n->kind == N_REDUCE) {
    const DagReduce *r = &d->reduces.v[n->reduce];
    for (int k = 0; k < r->n; k++)
      odd |= d->nodes.v[r->in[k]].odd_nan || d->nodes.v[r->init[k]].odd_nan;
    return odd;
  }
  for (int k = 0; k < n->n_in; k++) odd |= d->nodes.v[n->in[k]].odd_nan;
  return odd || (n->op->kind == OP_BITCAST_CONVERT && !narrow);
}

static int add_reduce(Dag *d, const Op *op, const Affine *at, int mask) {
  for (int i = 0; i < d->reduces.n; i++)
    if (d->reduces.v[i].op == op && same_index(d, &op->results[0], d->reduces.v[i].at, at))
      return i;
  int n = op->n_operands / 2, rank = op->results[0].type->rank;
  DagReduce r = {.op = op, .n = n, .binary = cpu_region_binary(op->regions[0], NULL)};
  r.at = ARENA_ARRAY(d->mem, Affine, rank + 1);
  if (rank) memcpy(r.at, at, sizeof *at * (size_t)rank);
  r.in = ARENA_ARRAY(d->mem, int, n);
  r.init = ARENA_ARRAY(d->mem, int, n);
  r.acc = ARENA_ARRAY(d->mem, LLVMValueRef, n * 8);
  for (int k = 0; k < n; k++) {
    Affine from[DOM_MAX];
    memset(from, 0, sizeof from);
    if (!value_splat(op->operands[k])) { /* the fuser divided no dimension for one of these */
      bool ok = index_operand(&d->dom, op, k, at, from, NULL, NULL);
      assert(ok);
      (void)ok;
    }
    r.in[k] = dag_node(d, op->operands[k], from, mask);
    r.init[k] = dag_node(d, op->operands[n + k], from, 0);
    r.sweep = MAX(r.sweep, MAX(d->nodes.v[r.in[k]].depth, d->nodes.v[r.init[k]].depth));
  }
  r.loose = n == 1 && op->operands[0]->type->dtype == op_type(op)->dtype &&
            (r.binary == OP_MAXIMUM || r.binary == OP_MINIMUM) &&
            dag_keeps_digits(&d->nodes.v[r.in[0]]);
  *vec_push(&d->reduces) = r;
  return d->reduces.n - 1;
}

/* Reads a part of the complex number `of` from memory. */
static void read_part(Dag *d, DagNode *n, const Value *of, const Affine *at, bool imag) {
  n->kind = N_INPUT;
  n->part = imag ? 2 : 1;
  while (d->f->in[n->buf] != of) n->buf++;
  n->lin = index_flat(&d->dom, of->type, at);
  n->lin.off = 2 * n->lin.off + imag;
  for (int k = 0; k < d->dom.n; k++) n->lin.coef[k] *= 2;
  *vec_push(&d->leaves) = n->lin;
}

static void read_operands(Dag *d, DagNode *n, const Affine *at) {
  const Op *op = n->op;
  n->n_in = op->n_operands;
  n->in = ARENA_ARRAY(d->mem, int, n->n_in);
  if (op->kind == OP_PAD || op->kind == OP_CONCATENATE)
    n->in_mask = ARENA_ARRAY(d->mem, int, n->n_in);
  if (op->kind == OP_IOTA) {
    n->lin = at[op_int(op, "iota_dimension", 0)];
    *vec_push(&d->leaves) = n->lin;
  }
  for (int k = 0; k < n->n_in; k++) {
    Affine from[DOM_MAX];
    memset(from, 0, sizeof from);
    int m = n->mask;
    if (!value_splat(op->operands[k])) {
      bool ok = index_operand(&d->dom, op, k, at, from, NULL, NULL);
      assert(ok);
      (void)ok;
    }
    if (n->in_mask) {
      if (op->kind == OP_CONCATENATE && value_splat(op->operands[k]))
        index_operand(&d->dom, op, k, at, from, NULL, NULL);
      if (op->kind == OP_PAD && k == 0 && value_splat(op->operands[k]))
        index_operand(&d->dom, op, k, at, from, NULL, NULL);
      m = operand_mask(d, op, k, from, n->mask);
      n->in_mask[k] = m;
    }
    n->in[k] = dag_node(d, op->operands[k], from, m);
    n->depth = MAX(n->depth, d->nodes.v[n->in[k]].depth);
  }
}

/* Elements of a value at places that are computed here. */
static void read_gathered(Dag *d, DagNode *n, const Affine *at) {
  Affine from[DOM_MAX];
  assert(!n->mask);
  n->n_in = index_reads(n->op) - 1;
  n->in = ARENA_ARRAY(d->mem, int, n->n_in + 1);
  for (int k = 0; k < n->n_in; k++) {
    index_operand(&d->dom, n->op, k + 1, at, from, NULL, NULL);
    n->in[k] = dag_node(d, n->op->operands[1], from, n->mask);
    n->depth = MAX(n->depth, d->nodes.v[n->in[k]].depth);
  }
  while (d->f->in[n->buf] != n->op->operands[0]) n->buf++;
  index_operand(&d->dom, n->op, 0, at, from, NULL, NULL);
  n->lin = index_flat(&d->dom, n->op->operands[0]->type, from);
  *vec_push(&d->leaves) = n->lin;
}

static int dag_node(Dag *d, const Value *v, const Affine *at, int mask) {
  bool imag = v->def && v->def->kind == OP_IMAG;
  const Value *whole = imag || (v->def && v->def->kind == OP_REAL) ? v->def->operands[0] : NULL;
  if (whole && !fusion_has(d->f, v->def)) whole = NULL;
  if (whole && whole->def && fusion_has(d->f, whole->def)) /* put together here, of two parts */
    return dag_node(d, whole->def->operands[imag], at, mask);
  const void *splat = value_splat(v);
  for (int i = 0; i < d->nodes.n; i++) {
    const DagNode *o = &d->nodes.v[i];
    if (o->v != v) continue;
    if (splat || (o->mask == mask && same_index(d, v, o->at, at))) return i;
  }
  DagNode n = {.v = v, .t = v->type->dtype, .mask = mask};
  int rank = v->type->rank;
  n.at = ARENA_ARRAY(d->mem, Affine, rank + 1);
  if (rank) memcpy(n.at, at, sizeof *at * (size_t)rank);
  if (splat) {
    n.kind = N_SPLAT;
    n.mask = 0;
  } else if (whole) {
    read_part(d, &n, whole, at, imag);
  } else if (!v->def || !fusion_has(d->f, v->def)) {
    n.kind = N_INPUT;
    while (d->f->in[n.buf] != v) n.buf++;
    n.lin = index_flat(&d->dom, v->type, at);
    *vec_push(&d->leaves) = n.lin;
  } else if (v->def->kind == OP_REDUCE) {
    n.kind = N_REDUCE;
    n.op = v->def;
    n.reduce = add_reduce(d, v->def, at, mask);
    n.loose = d->reduces.v[n.reduce].loose;
    n.stored = n.loose && fusion_stores(d->f, n.op);
    n.depth = d->reduces.v[n.reduce].sweep + 1;
  } else {
    const Op *op = v->def;
    int piece = op->kind == OP_CONCATENATE ? index_piece(&d->dom, op, at) : -1;
    if (piece >= 0) {
      Affine from[DOM_MAX];
      index_operand(&d->dom, op, piece, at, from, NULL, NULL);
      return dag_node(d, op->operands[piece], from, mask);
    }
    n.kind = N_OP;
    n.op = op;
    if (op->kind == OP_GATHER) read_gathered(d, &n, at);
    else read_operands(d, &n, at);
    n.loose = is_loose(d, &n);
    n.stored = n.loose && fusion_stores(d->f, n.op);
  }
  n.odd_nan = is_odd_nan(d, &n);
  *vec_push(&d->nodes) = n;
  return d->nodes.n - 1;
}

/* ---- loops ---- */

static bool mergeable(const Dag *d, int k) { /* dimensions k and k + 1 */
  if (d->dom.reduced[k] != d->dom.reduced[k + 1]) return false;
  for (int i = 0; i < d->leaves.n; i++) {
    const Affine *a = &d->leaves.v[i];
    if (a->coef[k] != a->coef[k + 1] * d->dom.dims[k + 1]) return false;
  }
  return true;
}

static void add_loop(Dag *d, int first, int last) {
  Loop *l = &d->loops[d->n_loops++];
  *l = (Loop){.first = first, .last = last, .extent = 1, .reduced = d->dom.reduced[last]};
  for (int k = first; k <= last; k++) l->extent *= d->dom.dims[k];
}

static int out_node(Dag *d, const FusionOut *o) {
  if (o->part < 0) return dag_node(d, o->v, o->at, 0);
  Affine from[DOM_MAX];
  bool ok = index_operand(&d->dom, o->v->def, o->part, o->at, from, NULL, NULL);
  assert(ok);
  (void)ok;
  return dag_node(d, o->v->def->operands[o->part], from, 0);
}

Err *dag_build(const Fusion *f, Dag *d) {
  *d = (Dag){.f = f, .dom = f->dom, .mem = arena_new(), .vloop = -1};
  *vec_push(&d->masks) = (DagMask){0};
  d->n_out = f->n_out;
  d->out = ARENA_ARRAY(d->mem, int, f->n_out);
  d->out_lin = ARENA_ARRAY(d->mem, Affine, f->n_out);
  for (int i = 0; i < f->n_out; i++) {
    d->out[i] = out_node(d, &f->out[i]);
    d->out_lin[i] = index_flat(&d->dom, f->out[i].v->type, f->out[i].at);
    *vec_push(&d->leaves) = d->out_lin[i];
  }
  /* kept dimensions outside, reduced ones inside; a split fusion keeps the kept ones behind the
   * last reduced one innermost */
  int suffix = d->dom.n;
  if (f->kind == FUSION_SPLIT) {
    while (suffix > 0 && !d->dom.reduced[suffix - 1]) suffix--;
  }
  for (int pass = 0; pass < 3; pass++)
    for (int k = 0; k < d->dom.n; k++) {
      int which = k >= suffix ? 2 : d->dom.reduced[k] ? 1 : 0;
      if (which != pass) continue;
      int last = k;
      while (last + 1 < d->dom.n && (last + 1 < suffix) == (last < suffix) && mergeable(d, last))
        last++;
      if (d->n_loops == MAX_LOOPS) return err_new(ERR_INTERNAL, "a fusion with too many loops");
      add_loop(d, k, last);
      k = last;
    }
  return NULL;
}

void dag_free(Dag *d) {
  vec_free(&d->nodes);
  vec_free(&d->masks);
  vec_free(&d->reduces);
  vec_free(&d->leaves);
  arena_free(d->mem);
}

static void level_of(const Dag *d, const Affine *a, int *level, bool *vec) {
  for (int i = 0; i < d->n_loops; i++) {
    const Loop *l = &d->loops[i];
    if (l->extent == 1) continue;
    bool on = false; /* dimensions of one have coefficients that mean nothing */
    for (int k = l->first; k <= l->last; k++) on |= a->coef[k] != 0 && d->dom.dims[k] > 1;
    if (!on) continue;
    *level = MAX(*level, l->level);
    if (i == d->vloop || (d->braid && i == d->vloop - 1)) *vec = true;
  }
}

int dag_mask_known(const Dag *d, int mask, int given) {
  int known = 1;
  for (; mask != given; mask = d->masks.v[mask].parent) {
    known = MIN(known, d->masks.v[mask].known);
    if (!mask) break;
  }
  return known;
}

bool dag_takes(const Dag *d, const DagNode *n, int k) {
  if (!n->in_mask) return true;
  for (int i = 0; i < k; i++)
    if (dag_mask_known(d, n->in_mask[i], n->mask) > 0) return false;
  return k == n->n_in - 1 || dag_mask_known(d, n->in_mask[k], n->mask) >= 0;
}

void dag_levels(Dag *d) {
  for (int i = 1; i < d->masks.n; i++) {
    DagMask *m = &d->masks.v[i];
    m->level = m->parent ? d->masks.v[m->parent].level : 0;
    m->vec = m->parent ? d->masks.v[m->parent].vec : false;
    if (!m->known) level_of(d, &m->form, &m->level, &m->vec);
  }
  for (int i = 0; i < d->nodes.n; i++) {
    DagNode *n = &d->nodes.v[i];
    n->level = 0;
    n->vec = false;
    switch (n->kind) {
    case N_SPLAT: break;
    case N_INPUT: level_of(d, &n->lin, &n->level, &n->vec); break;
    case N_REDUCE:
      for (int k = 0; k < n->v->type->rank; k++) level_of(d, &n->at[k], &n->level, &n->vec);
      n->level = MAX(n->level, 1); /* set after a sweep, in the task loop */
      break;
    case N_OP:
      if (n->op->kind == OP_IOTA || node_gathers(n)) level_of(d, &n->lin, &n->level, &n->vec);
      for (int k = 0; k < n->n_in; k++) {
        const DagNode *o = &d->nodes.v[n->in[k]];
        if (!dag_takes(d, n, k)) continue;
        n->level = MAX(n->level, o->level);
        n->vec |= o->vec;
        if (n->in_mask && !dag_mask_known(d, n->in_mask[k], n->mask)) {
          n->level = MAX(n->level, d->masks.v[n->in_mask[k]].level);
          n->vec |= d->masks.v[n->in_mask[k]].vec;
        }
      }
      break;
    }
    if (n->kind == N_INPUT && n->mask) {
      n->level = MAX(n->level, d->masks.v[n->mask].level);
      n->vec |= d->masks.v[n->mask].vec;
    }
  }
}

int64_t dag_vector_stride(const Dag *d, const Affine *a) {
  return d->vloop < 0 || d->loops[d->vloop].extent == 1 ? 0 : a->coef[d->loops[d->vloop].last];
}

double dag_flops(const Dag *d) {
  double total = 1, sum = 0;
  for (int k = 0; k < d->dom.n; k++) total *= (double)d->dom.dims[k];
  for (int i = 0; i < d->nodes.n; i++)
    if (d->nodes.v[i].kind == N_OP && op_info[d->nodes.v[i].op->kind].cls == OC_EWISE &&
        d->nodes.v[i].vec)
      sum += total;
  return sum + total * d->reduces.n;
}

/* ---- keys ---- */

static void key_int(Buf *b, int64_t x) { buf_add(b, &x, sizeof x); }

static void key_affine(const Dag *d, Buf *b, const Affine *a) {
  buf_add(b, &a->off, sizeof a->off);
  buf_add(b, a->coef, sizeof *a->coef * (size_t)d->dom.n);
}

void dag_key_region(Buf *b, const Region *r) {
  for (const Op *op = r->first; op; op = op->next) {
    key_int(b, (int)op->kind);
    for (int i = 0; i < op->n_operands; i++) {
      const Value *v = op->operands[i];
      int at = -1, n = 0;
      for (int k = 0; k < r->n_args; k++)
        if (r->args[k] == v) at = k;
      n = r->n_args;
      for (const Op *x = r->first; x && at < 0; x = x->next)
        for (int k = 0; k < x->n_results; k++, n++)
          if (&x->results[k] == v) at = n;
      key_int(b, at);
    }
    for (int i = 0; i < op->n_results; i++) key_int(b, (int)op->results[i].type->dtype);
    Str dir = op_str(op, "comparison_direction"), kind = op_str(op, "compare_type");
    buf_str(b, dir);
    buf_str(b, kind);
    if (op->kind == OP_CONSTANT)
      buf_add(b, value_splat(&op->results[0]), (size_t)dtype_bytes(op_type(op)->dtype));
    buf_byte(b, ')');
  }
}

static void key_gather(Buf *b, const DagNode *n) {
  const Type *t = n->op->operands[0]->type;
  const int64_t *v;
  key_int(b, n->buf);
  for (int i = 0; i < t->rank; i++) key_int(b, t->dims[i]);
  int k = op_ints(n->op, "slice_sizes", &v);
  buf_add(b, v, sizeof *v * (size_t)k);
  k = op_ints(n->op, "start_index_map", &v);
  buf_add(b, v, sizeof *v * (size_t)k);
}

void dag_key(const Dag *d, Buf *b) {
  int sizes[] = {(int)d->f->kind, d->dom.n,     d->f->n_in, d->n_out,
                 d->masks.n,      d->reduces.n, d->nodes.n};
  buf_add(b, sizes, sizeof sizes);
  for (int k = 0; k < d->dom.n; k++) {
    key_int(b, d->dom.dims[k]);
    buf_byte(b, d->dom.reduced[k]);
  }
  for (int i = 0; i < d->n_out; i++) {
    key_int(b, d->out[i]);
    buf_byte(b, d->f->out[i].full);
    key_int(b, d->f->out[i].part);
    key_affine(d, b, &d->out_lin[i]);
  }
  for (int i = 1; i < d->masks.n; i++) {
    key_int(b, d->masks.v[i].parent);
    key_int(b, d->masks.v[i].size);
    key_affine(d, b, &d->masks.v[i].form);
  }
  for (int i = 0; i < d->reduces.n; i++) {
    const DagReduce *r = &d->reduces.v[i];
    key_int(b, r->sweep);
    for (int k = 0; k < r->n; k++) {
      key_int(b, r->in[k]);
      key_int(b, r->init[k]);
    }
    for (int k = 0; k < op_type(r->op)->rank; k++) key_affine(d, b, &r->at[k]);
    dag_key_region(b, r->op->regions[0]);
  }
  for (int i = 0; i < d->nodes.n; i++) {
    const DagNode *n = &d->nodes.v[i];
    int node[] = {(int)n->kind, (int)n->t, n->mask, n->stored};
    buf_add(b, node, sizeof node);
    switch (n->kind) {
    case N_INPUT:
      key_int(b, n->buf);
      key_int(b, n->part);
      key_affine(d, b, &n->lin);
      break;
    case N_SPLAT: buf_add(b, value_splat(n->v), (size_t)dtype_bytes(n->t)); break;
    case N_REDUCE:
      key_int(b, n->reduce);
      key_int(b, n->v->index);
      break;
    case N_OP:
      key_int(b, (int)n->op->kind);
      for (int k = 0; k < n->n_in; k++) {
        key_int(b, n->in[k]);
        key_int(b, n->in_mask ? n->in_mask[k] : 0);
      }
      if (n->op->kind == OP_IOTA || node_gathers(n)) key_affine(d, b, &n->lin);
      if (node_gathers(n)) key_gather(b, n);
      buf_str(b, op_str(n->op, "comparison_direction"));
      buf_str(b, op_str(n->op, "compare_type"));
      if (n->op->kind == OP_THREEFRY) key_int(b, op_int(n->op, "part", 0));
      if (n->op->kind == OP_REDUCE_PRECISION) {
        key_int(b, op_int(n->op, "exponent_bits", 0));
        key_int(b, op_int(n->op, "mantissa_bits", 0));
      }
      break;
    }
  }
}
