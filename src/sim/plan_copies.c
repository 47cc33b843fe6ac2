/* The relayouts that follow from the orders of plan_layout.c: copies in another order for readers
 * that want one. */
#include <math.h>
#include <stdlib.h>

#include "sim/plan.h"

static double up(double x, double m) { return ceil(x / m) * m; }

/* A relayout: `reader` reads a new value in another order instead of v. */
static HValue *add_copy(Plan *p, HValue *v, const int *order) {
  Kernel *k = plan_kernel(p);
  k->copy = true;
  k->copy_of = v;
  HNode *n = hlo_node(p->g, p->comp, H_EWISE, OP_COPY, v->node->src, v->node->dt, v->node->rank,
                      v->node->d, 1, &v->node);
  HValue *w = plan_store(p, n);
  n->kernel = w->kernel = p->kernels.n - 1;
  *vec_push(&k->roots) = n;
  *vec_push(&k->inner) = n;
  *vec_push(&k->reads) = v;
  w->rounded = v->rounded;
  value_layout(p->law, w, order);
  k->alone = true;
  k->turns = order && v->order[0] != order[0];
  return w;
}

/* The first so many kernels read w, a copy of v, and so do views of v. */
static void read_instead(Plan *p, HValue *v, HValue *w, int kernels) {
  for (int i = 0; i < p->values.n; i++)
    if (p->values.v[i]->alias == v) p->values.v[i]->alias = w;
  for (int i = 0; i < kernels; i++)
    for (int q = 0; q < p->kernels.v[i]->reads.n; q++)
      if (p->kernels.v[i]->reads.v[q] == v) p->kernels.v[i]->reads.v[q] = w;
}

static bool same_order(const HValue *a, const HValue *b) {
  return a->node->rank == b->node->rank && a->order[0] == b->order[0] && a->order[1] == b->order[1];
}

/* A copy of v, with all its digits, in the order of `like`; or NULL. */
static HValue *copy_like(const Plan *p, const HValue *v, const HValue *like) {
  for (int i = 0; i < p->kernels.n; i++) {
    HValue *w = p->kernels.v[i]->copy_of == v ? p->kernels.v[i]->roots.v[0]->val : NULL;
    if (w && same_order(w, like) && w->rounded == v->rounded) return w;
  }
  return NULL;
}

/* Sums of rows meet a table that lies in another order. Where rows were read from a copy of the
 * table in theirs, and nothing else comes in, the copy is updated and turned back, else the sums are
 * turned first, as they are for a lone result: its order reaches its maker. Returns whether it is
 * the former. */
static bool update_rows(Plan *p, int i) {
  Kernel *k = p->kernels.v[i];
  HValue *sums = NULL, *table = NULL;
  int rows = 0, tables = 0, at = 0;
  if (k->dead || k->conv || k->copy || k->reduce || k->roots.v[0]->kind != H_EWISE) return false;
  for (int q = 0; q < k->reads.n; q++) {
    HValue *v = k->reads.v[q];
    if (v->node->comp != p->comp || v->node->rank != k->roots.v[0]->rank || v->node->rank < 2 ||
        v->node->rank > 64 || v->bytes < 4096 || v->rounded)
      continue;
    if (v->node->kind == H_SCATTER) sums = v, rows++, at = q;
    else table = v, tables += v->is_param;
  }
  if (rows < 1 || tables < 1 || same_order(sums, table)) return false;
  bool alone = tables == 1 && k->roots.n == 1 && p->comp->outputs.n > 1;
  HValue *w = alone ? copy_like(p, table, sums) : NULL;
  if (w) {
    for (int q = 0; q < k->reads.n; q++)
      if (k->reads.v[q] == table) k->reads.v[q] = w;
    value_layout(p->law, k->roots.v[0]->val, sums->order);
    return true;
  }
  if (rows > 1) return false;
  w = copy_like(p, sums, table);
  if (!w) w = add_copy(p, sums, table->order);
  p->kernels.v[i]->reads.v[at] = w;
  return false;
}

/* An argument that two convolutions read, with a spatial dimension in its tile and a batch that
 * fills the lanes, is turned once so that the batch is in lanes. */
static void turn_images(Plan *p) {
  for (int i = 0; i < p->comp->params.n; i++) {
    HValue *v = p->comp->params.v[i]->val, *w = NULL;
    int r = v->node->rank, n = 0, batch = -1, order[64];
    bool narrow = true; /* both round it */
    if (r < 4 || r > 64) continue;
    for (int q = 0; q < p->kernels.n; q++) {
      const Kernel *k = p->kernels.v[q];
      if (k->dead || !k->conv || !k->conv->conv->is_conv) continue;
      for (int z = 0; z < k->reads.n; z++) n += k->reads.v[z] == v;
      const HConv *c = k->conv->conv;
      if (k->conv->in[0] != v->node &&
          !(k->conv->in[0]->kind == H_EWISE && k->conv->in[0]->in[0] == v->node))
        continue;
      narrow &= k->conv->in[0]->dt == DT_BF16;
      if (c->lhs[v->order[0]] != 'k' || c->lhs[v->order[1]] != 's') continue;
      for (int d = 0; d < r; d++)
        if (c->lhs[d] == 'm' && v->node->d[d] % 128 == 0) batch = d;
    }
    if (n < 2 || batch < 0) continue;
    order[0] = batch;
    for (int d = 0, o = 1; d < r; d++)
      if (v->order[d] != batch) order[o++] = v->order[d];
    w = add_copy(p, v, order);
    w->rounded = narrow && v->node->dt == DT_F32;
    value_layout(p->law, w, order);
    for (int q = 0; q + 1 < p->kernels.n; q++) {
      Kernel *k = p->kernels.v[q];
      for (int z = 0; z < k->reads.n && !k->dead && k->conv; z++)
        if (k->reads.v[z] == v) k->reads.v[z] = w;
    }
  }
}

/* Is an operand's order good enough as it is? A gather does not want the dimension that it indexes
 * in lanes, unless it takes one number a row; see sort_order(). */
static bool rows_reachable(const HNode *n, const HValue *v) {
  const int64_t *map;
  if (n->kind != H_GATHER || !n->src) return false;
  if (op_ints(n->src, "operand_batching_dims", &map) > 0) return true;
  return op_ints(n->src, "start_index_map", &map) == 1 && v->node->rank > 2 &&
         v->order[0] != map[0];
}

/* A sort runs along sublanes when another dimension fills whole tiles of lanes, else as it comes. */
static void sort_order(const Law *law, const HNode *n, int *order) {
  const HNode *x = n->in[0];
  int r = x->rank, k = 0, other = -1;
  int along = n->op == OP_SORT && n->src ? (int)op_int(n->src, "dimension", r - 1) : r - 1;
  for (int d = 0; d < r; d++)
    if (d != along && x->d[d] % 128 == 0) other = d;
  value_order_default(law, x, order);
  if (other < 0) return;
  order[k++] = other;
  order[k++] = along;
  for (int d = r - 1; d >= 0; d--)
    if (d != other && d != along) order[k++] = d;
}

/* Is it only what loops read and do not change? */
static bool for_loops(const HNode *n) {
  for (int i = 0; i < n->n_users; i++) {
    const HNode *w = n->users[i];
    if (w->kind != H_WHILE) return false;
    const HComp *body = w->comps[1];
    for (int k = 0; k < w->n_in; k++)
      if (w->in[k] == n && (k >= body->outputs.n || body->outputs.v[k] != body->params.v[k]))
        return false;
  }
  return n->n_users > 0;
}

/* A transposition that renames the dimensions of an array which lies in the wanted order already. */
static void transposed_views(Plan *p) {
  for (int i = 0; i < p->kernels.n; i++) {
    Kernel *k = p->kernels.v[i];
    if (k->dead || !k->copy || k->copy_of || k->roots.n != 1) continue;
    HNode *n = k->roots.v[0];
    HValue *v = n->val, *x = n->in[0]->val;
    if (n->kind != H_TRANSPOSE || n->rank < 2 || n->rank > 64 || !x || x->alias || v->alias ||
        v->rounded != x->rounded)
      continue;
    int order[64]; /* of the result, when nothing moves */
    for (int d = 0; d < n->rank; d++)
      for (int q = 0; q < n->rank; q++)
        if (n->dims[q] == x->order[d]) order[d] = q;
    if (n->is_output) {
      int want[64];
      value_order_default(p->law, n, want);
      if (p->comp->parent || want[0] != order[0] || want[1] != order[1]) continue;
      if (x->is_param) continue; /* a result has memory of its own */
    } else if ((order[0] != v->order[0] || order[1] != v->order[1]) && !for_loops(n)) {
      continue;
    }
    value_layout(p->law, v, order);
    v->alias = x;
    k->copy = false;
    k->scalar = true;
  }
}

/* A product with a vector runs as a loop, in whatever order the matrix lies. */
static bool by_vector(const Plan *p, const HConv *c) {
  return p->law->matvec && !c->is_conv && (c->m == 1 || c->n == 1) && c->k > 1;
}

void plan_copies(Plan *p) {
  if (!p->law->tpu) return;
  transposed_views(p);
  turn_images(p);
  int nk = p->kernels.n;
  for (int i = 0; i < nk; i++) {
    Kernel *k = p->kernels.v[i];
    if (k->dead || !k->conv || by_vector(p, k->conv->conv)) continue;
    for (int side = 0; side < 2; side++) {
      HNode *x = k->conv->in[side];
      const HConv *c = k->conv->conv;
      const char *roles = side ? c->rhs : c->lhs;
      if (side &&
          c->is_conv) { /* kernels may be read in any order unless spatial sides are minor */
        if (x->rank < 2) continue;
      }
      for (int q = 0; q < k->reads.n; q++) {
        HValue *v = k->reads.v[q];
        HNode *n = v->node;
        if (n->rank != x->rank || n->rank < 2 || n->rank > 64) continue;
        bool same = true;
        for (int d = 0; d < n->rank; d++) same &= n->d[d] == x->d[d];
        if (!same || plan_order_serves(v, c, roles) || v->bytes < 4096) continue;
        /* only when this value really feeds that operand */
        const HNode *t = x;
        bool feeds = t == n;
        for (int depth = 0; !feeds && depth < 12 && !t->val && t->kind == H_EWISE; depth++) {
          const HNode *next = NULL;
          for (int z = 0; z < t->n_in; z++)
            if (t->in[z] == n) feeds = true;
            else if (hlo_count(t->in[z]) == hlo_count(t) && t->in[z]->kind == H_EWISE)
              next = t->in[z];
          if (!next) break;
          t = next;
        }
        if (!feeds) continue;
        int order[64];
        plan_conv_order(p->law, n, c, roles, order);
        /* an earlier copy of the same value in the same order serves too */
        HValue *w = NULL;
        for (int z = nk; z < p->kernels.n && !w; z++)
          if (p->kernels.v[z]->copy_of == v &&
              p->kernels.v[z]->roots.v[0]->val->order[0] == order[0] &&
              p->kernels.v[z]->roots.v[0]->val->order[1] == order[1])
            w = p->kernels.v[z]->roots.v[0]->val;
        if (!w) {
          w = add_copy(p, v, order);
          if (v->is_param && n->dt == DT_F32 &&
              (x->dt == DT_BF16 || c->passes == 1)) { /* rounded on the way */
            w->rounded = true;
            value_layout(p->law, w, order);
          }
        }
        k = p->kernels.v[i];
        k->reads.v[q] = w;
      }
    }
  }
  /* splitting the lanes of a product's result into heads needs them out of the lanes first */
  nk = p->kernels.n;
  for (int i = 0; i < nk; i++) {
    Kernel *k = p->kernels.v[i];
    if (k->dead || !k->conv || k->conv->conv->is_conv || k->roots.n != 1) continue;
    HNode *n = k->roots.v[0];
    if (n->kind != H_RESHAPE || n->is_output || n->rank != n->in[0]->rank + 1 || n->rank < 3)
      continue;
    const HNode *x = n->in[0];
    int64_t lanes = x->d[x->rank - 1], rows = x->d[x->rank - 2];
    if (n->d[n->rank - 1] >= 128 || lanes <= 128 || rows >= MIN(lanes, 1024) ||
        n->val->bytes < 65536)
      continue;
    HValue *v = n->val, *w = add_copy(p, v, v->order);
    p->kernels.v[p->kernels.n - 1]->turns = true; /* the heads' features are in lanes before */
    for (int q = 0; q < nk; q++)
      for (int z = 0; z < p->kernels.v[q]->reads.n; z++)
        if (p->kernels.v[q]->reads.v[z] == v) p->kernels.v[q]->reads.v[z] = w;
  }
  /* a slice of tiles is laid out anew, by a product that reads it inside that */
  nk = p->kernels.n;
  for (int i = 0; i < nk && p->loop_body; i++) {
    Kernel *k = p->kernels.v[i];
    HNode *n = !k->dead && k->roots.n == 1 ? k->roots.v[0] : NULL;
    if (!n || !plan_slices_tiles(p, n)) continue;
    HValue *v = n->val;
    int order[64];
    bool loops = false;
    for (int q = 0; q < nk; q++)
      for (int z = 0; z < p->kernels.v[q]->reads.n; z++)
        loops |= base_of(p->kernels.v[q]->reads.v[z]) == v && !p->kernels.v[q]->conv &&
                 !p->kernels.v[q]->roots.v[0]->val->alias;
    if (!loops) continue;
    value_order_default(p->law, n, order);
    read_instead(p, v, add_copy(p, v, order), nk);
  }
  /* padding and concatenation work in the order of their result */
  nk = p->kernels.n;
  for (int i = 0; i < nk; i++) {
    Kernel *k = p->kernels.v[i];
    if (k->dead || k->conv || k->copy || k->roots.n != 1) continue;
    HNode *n = k->roots.v[0];
    bool pad = n->kind == H_PAD;
    if ((!pad && n->kind != H_CONCAT) || n->rank < 2 || n->rank > 64 || n->val->bytes < 4096)
      continue;
    int order[64];
    value_order_default(p->law, n, order);
    if (n->is_output) value_layout(p->law, n->val, order);
    const int *want = n->val->order;
    for (int q = 0; q < k->reads.n; q++) {
      HValue *v = k->reads.v[q];
      bool operand = false;
      for (int z = 0; z < n->n_in; z++) operand |= n->in[z] == v->node;
      if (!operand || v->node->rank != n->rank || v->bytes < 4096) continue;
      if (v->order[0] == want[0] &&
          (v->order[1] == want[1] || (n->kind == H_CONCAT && v->node->d[v->order[1]] == 1)))
        continue;
      HValue *w = add_copy(p, v, want);
      k = p->kernels.v[i];
      k->reads.v[q] = w;
    }
  }
  /* a reshape that moves elements works in the natural order */
  nk = p->kernels.n;
  for (int i = 0; i < nk; i++) {
    Kernel *k = p->kernels.v[i];
    if (k->dead || !k->copy || k->copy_of || k->roots.n != 1 || k->roots.v[0]->kind != H_RESHAPE ||
        k->reads.n != 1)
      continue;
    HValue *v = k->reads.v[0];
    int r = v->node->rank, order[64];
    const HNode *o = k->roots.v[0];
    if (v->node != o->in[0] || r < 2 || r > 64 || v->bytes < 4096) continue;
    if (v->order[0] == 0 && o->rank > 1 && o->d[0] == v->node->d[0])
      continue; /* with the batch in lanes the others are joined as they lie */
    if (v->order[0] == r - 1 && o->rank > 2 && o->val->order[0] == 0) continue; /* turned */
    if (hlo_bits(v->node->dt) == 16 && o->rank == 2 && o->d[0] == v->node->d[0] &&
        v->order[0] == r - 1 && v->order[1] == 0 && r > 2 &&
        up((double)o->d[0], 128) * (double)v->node->d[r - 1] <=
            up((double)v->node->d[r - 1], 128) * (double)o->d[0]) { /* by way of lanes */
      for (int d = 1; d < r; d++) order[d] = r - d;
      order[0] = 0;
      HValue *w = add_copy(p, v, order);
      p->kernels.v[i]->reads.v[0] = w;
      continue;
    }
    bool natural = true;
    for (int d = 0; d < r; d++) order[d] = r - 1 - d, natural &= d > 1 || v->order[d] == order[d];
    if (natural) continue;
    HValue *w = add_copy(p, v, order);
    k = p->kernels.v[i];
    k->reads.v[0] = w;
  }
  /* operations that address rows want the natural order */
  nk = p->kernels.n;
  for (int i = 0; i < nk; i++) {
    Kernel *k = p->kernels.v[i];
    if (k->dead || k->roots.n != 1) continue;
    HNode *n = k->roots.v[0];
    for (int q = 0; q < k->inner.n && k->pool; q++)
      if (k->inner.v[q]->kind == H_RWIN) n = k->inner.v[q];
    bool pool = n->kind == H_RWIN || n->kind == H_SELSCAT;
    bool top = n->kind == H_OTHER && n->op == OP_CHLO_TOP_K;
    if (n->kind != H_GATHER && n->kind != H_SCATTER && n->kind != H_SORT && !pool && !top) continue;
    int order[64];
    HNode *x = n->in[0];
    const HValue *added_to = NULL;
    for (int q = 0; q < k->inner.n && n->kind == H_SCATTER; q++) /* rows straight from a gather */
      if (k->inner.v[q]->kind == H_GATHER) x = k->inner.v[q]->in[0];
    int r = x->rank;
    if (r < 2 || r > 64) continue;
    for (int d = 0; d < r; d++) order[d] = r - 1 - d;
    if (pool) { /* windowed dimensions stay out of the tile */
      if (!n->src) continue;
      const int64_t *win;
      int nw = op_ints(n->src, "window_dimensions", &win), w = 0;
      if (nw != r) continue;
      if (n->kind == H_RWIN &&
          !k->pool) { /* no emitter: the natural order serves, windows may lie in sublanes */
        for (int q = 0; q < k->reads.n; q++)
          if (k->reads.v[q]->node == x && win[k->reads.v[q]->order[0]] != 1 &&
              k->reads.v[q]->bytes >= 4096) {
            HValue *c = add_copy(p, k->reads.v[q], order);
            k = p->kernels.v[i];
            k->reads.v[q] = c;
          }
        if (n->val && n->rank == r) value_layout(p->law, n->val, order);
        continue;
      }
      for (int d = r - 1; d >= 0; d--)
        if (win[d] == 1) order[w++] = d;
      if (w < 2) continue;
      if (w == 2) { /* the one in lanes that pads less */
        double a = (double)x->d[order[0]], b = (double)x->d[order[1]];
        if (up(b, 128) * up(a, 8) < up(a, 128) * up(b, 8)) {
          int t = order[0];
          order[0] = order[1];
          order[1] = t;
        }
      }
      for (int d = r - 1; d >= 0; d--)
        if (win[d] != 1) order[w++] = d;
    } else if (n->kind == H_SORT) {
      sort_order(p->law, n, order);
    } else if (top) { /* in the order of the result, which is narrow */
      value_order_default(p->law, n, order);
    } else if (n->kind == H_GATHER && n->src) { /* the indexed dimension may not be in lanes */
      const int64_t *map;
      int nm = op_ints(n->src, "start_index_map", &map);
      if (nm == 1 && map[0] == r - 1) {
        int t = order[0];
        order[0] = order[1];
        order[1] = t;
      }
    }
    for (int q = 0; q < k->reads.n; q++) {
      HValue *v = k->reads.v[q];
      bool operand = v->node == x ||
                     (n->kind == H_SCATTER && n->n_in >= 3 &&
                      (v->node == n->in[n->n_in - 1] || v->node == n->in[0])) ||
                     (n->kind == H_SELSCAT && v->node == n->in[1]);
      if (n->kind == H_GATHER && v->node == x && v->node->rank == r && v->bytes > 64e6)
        memcpy(order, v->order, sizeof(int) * (size_t)r); /* too large to turn: so is the result */
      if (!operand || v->node->rank != r || v->bytes < 4096 || v->bytes > 64e6) continue;
      if (v->node == x && rows_reachable(n, v)) continue;
      if (v->order[0] == order[0] && (v->order[1] == order[1] || n->kind == H_RWIN)) continue;
      if (pool) {
        bool ok = true;
        const int64_t *win;
        op_ints(n->src, "window_dimensions", &win);
        ok = win[v->order[0]] == 1 && win[v->order[1]] == 1;
        if (ok) continue;
      }
      if (v->kernel >= 0 && !v->is_param && pool) { /* its maker can write that order */
        value_layout(p->law, v, order);
        continue;
      }
      if (n->kind == H_RWIN) continue; /* fused in */
      HValue *w = add_copy(p, v, order);
      k = p->kernels.v[i];
      k->reads.v[q] = w;
      if (n->kind == H_SCATTER && v->node == n->in[0] && v->kernel >= 0) added_to = v;
    }
    HValue *made = k->pool ? k->roots.v[0]->val : n->val;
    if (n->rank == r && made && made->node->rank == r && n->n_results == 1)
      value_layout(p->law, made, order);
    if (added_to && !n->is_output) { /* and back */
      HValue *w = add_copy(p, made, added_to->order);
      for (int z = 0; z + 1 < p->kernels.n; z++)
        for (int q = 0; q < p->kernels.v[z]->reads.n; q++)
          if (p->kernels.v[z]->reads.v[q] == made) p->kernels.v[z]->reads.v[q] = w;
    }
  }
  /* results of the program keep the default order */
  if (p->comp->parent) return;
  bool *turned = ARENA_ARRAY(p->arena, bool, p->kernels.n + 1);
  for (int i = 0, n = p->kernels.n; i < n; i++) turned[i] = update_rows(p, i);
  nk = p->kernels.n;
  for (int i = 0; i < p->comp->outputs.n; i++) {
    HValue *v = p->comp->outputs.v[i]->val;
    if (!v || v->is_param || v->alias || v->node->rank < 2 || v->node->rank > 64) continue;
    if (v->kernel < 0) continue;
    int order[64];
    value_order_default(p->law, v->node, order);
    if ((order[0] == v->order[0] && order[1] == v->order[1]) || v->bytes < 4096) continue;
    Kernel *k = p->kernels.v[v->kernel];
    if (k->roots.v[0]->kind == H_GATHER && order[0] == v->order[0] && v->node->rank > 2) {
      value_layout(p->law, v, order); /* rows land in any order */
      continue;
    }
    bool read = false;
    for (int q = 0; q < p->kernels.n && !read; q++)
      for (int z = 0; z < p->kernels.v[q]->reads.n; z++)
        if (!p->kernels.v[q]->dead && base_of(p->kernels.v[q]->reads.v[z]) == v) read = true;
    bool indexed = k->roots.v[0]->kind == H_GATHER || k->roots.v[0]->kind == H_SCATTER ||
                   k->roots.v[0]->kind == H_SORT || k->roots.v[0]->kind == H_SELSCAT ||
                   (v->kernel < nk && turned[v->kernel]);
    if (!k->conv && !read && !indexed &&
        !plan_sliced_of(k, v->node)) { /* a loop can write any order */
      value_layout(p->law, v, order);
      continue;
    }
    if (k->conv && !k->conv->conv->is_conv && !read &&
        (k->conv->rank != v->node->rank || k->conv->conv->batch == 1)) {
      value_layout(p->law, v, order);
      continue;
    }
    double t;
    if (k->conv && k->conv->conv->is_conv &&
        plan_order_serves(v, k->conv->conv, k->conv->conv->out) && k->conv->rank == v->node->rank) {
      HValue tmp = *v;
      memcpy(tmp.order, order, sizeof order);
      if (plan_order_serves(&tmp, k->conv->conv, k->conv->conv->out)) {
        value_layout(p->law, v, order);
        continue;
      }
    }
    (void)t;
    HValue *w = add_copy(p, v, order);
    w->is_output = true;
    p->comp->outputs.v[i] = w->node;
  }
}
