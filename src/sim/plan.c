/* The schedule, memory spaces and live ranges of one computation, and with them its time and its
 * peak memory. The rules come from comparing with the compiler's own plans (tests/sim/oracle);
 * where it weighs many alternatives, one simple rule stands here. */
#include <math.h>
#include <stdlib.h>

#include "sim/plan.h"

static void kernel_lists_free(Kernel *k) {
  vec_free(&k->roots);
  vec_free(&k->inner);
  vec_free(&k->reads);
}

/* Next is whatever frees most memory and makes least, as the compiler's list scheduler does; else
 * program order. */
#define SMALL 65536
static void schedule(Plan *p) {
  int n = p->kernels.n;
  int *indeg = calloc((size_t)n + 1, sizeof *indeg), *key = calloc((size_t)n + 1, sizeof *key);
  VEC(int) *succ = calloc((size_t)n + 1, sizeof *succ);
  for (int i = 0; i < n; i++) {
    Kernel *k = p->kernels.v[i];
    if (k->dead) continue;
    key[i] = INT32_MAX;
    for (int r = 0; r < k->roots.n; r++) key[i] = MIN(key[i], k->roots.v[r]->id);
    if (k->copy_of && k->copy_of->kernel < 0) key[i] = 0;
    if (k->copy_of && k->copy_of->kernel >= 0)
      key[i] = p->kernels.v[k->copy_of->kernel]->roots.v[0]->id;
  }
  for (int i = 0; i < n; i++) {
    Kernel *k = p->kernels.v[i];
    if (k->dead) continue;
    for (int r = 0; r < k->reads.n; r++) {
      if (k->reads.v[r]->node->comp != p->comp) continue;
      int s = k->reads.v[r]->kernel;
      if (s < 0 || s == i || p->kernels.v[s]->dead) continue;
      *vec_push(&succ[s]) = i;
      indeg[i]++;
    }
  }
  /* uses left of each value, to see which kernel would free one */
  for (int i = 0; i < p->values.n; i++) p->values.v[i]->last = 0;
  for (int i = 0; i < n; i++) {
    Kernel *k = p->kernels.v[i];
    for (int r = 0; r < k->reads.n && !k->dead; r++) base_of(k->reads.v[r])->last++;
  }
  for (int i = 0; i < p->comp->outputs.n; i++)
    if (p->comp->outputs.v[i]->val) base_of(p->comp->outputs.v[i]->val)->last++;
  VEC(int) ready = {0};
  VEC(Kernel *) out = {0};
  int *newpos = calloc((size_t)n + 1, sizeof *newpos);
  for (int i = 0; i <= n; i++) newpos[i] = -1;
  for (int i = 0; i < n; i++)
    if (!p->kernels.v[i]->dead && indeg[i] == 0) *vec_push(&ready) = i;
  while (ready.n) {
    int best = 0;
    double best_net = 0;
    for (int c = 0; c < ready.n; c++) {
      const Kernel *k = p->kernels.v[ready.v[c]];
      double net = 0;
      for (int r = 0; r < k->reads.n; r++) {
        const HValue *v = base_of(k->reads.v[r]);
        if (v->last == 1 && !v->is_param && v->node->comp == p->comp && v->bytes > SMALL)
          net += v->bytes;
      }
      for (int r = 0; r < k->roots.n; r++) {
        const HValue *v = k->roots.v[r]->val;
        if (v && !v->alias && v->bytes > SMALL) net -= v->bytes;
      }
      bool better = net > best_net || (net == best_net && key[ready.v[c]] < key[ready.v[best]]);
      if (c == 0 || better) best = c, best_net = net;
    }
    int i = ready.v[best];
    for (int c = best; c + 1 < ready.n; c++) ready.v[c] = ready.v[c + 1];
    ready.n--;
    for (int r = 0; r < p->kernels.v[i]->reads.n; r++) base_of(p->kernels.v[i]->reads.v[r])->last--;
    newpos[i] = out.n;
    *vec_push(&out) = p->kernels.v[i];
    for (int s = 0; s < succ[i].n; s++)
      if (--indeg[succ[i].v[s]] == 0) *vec_push(&ready) = succ[i].v[s];
  }
  for (int i = 0; i < n; i++) { /* a cycle would be our mistake: keep those kernels, in order */
    if (p->kernels.v[i]->dead || newpos[i] >= 0) continue;
    newpos[i] = out.n;
    *vec_push(&out) = p->kernels.v[i];
  }
  for (int i = 0; i < n; i++)
    if (p->kernels.v[i]->dead) kernel_lists_free(p->kernels.v[i]);
  for (int i = 0; i < out.n; i++) out.v[i]->pos = i;
  for (int i = 0; i < p->values.n; i++) {
    HValue *v = p->values.v[i];
    if (v->kernel >= 0) v->kernel = newpos[v->kernel];
    if (v->node->kernel >= 0) v->node->kernel = newpos[v->node->kernel];
  }
  for (int i = 0; i < n; i++) vec_free(&succ[i]);
  free(succ);
  free(indeg);
  free(key);
  free(newpos);
  vec_free(&ready);
  vec_free(&p->kernels);
  p->kernels.v = out.v;
  p->kernels.n = out.n;
  p->kernels.cap = out.cap;
}

static void live_ranges(Plan *p) {
  int end = p->kernels.n;
  for (int i = 0; i < p->values.n; i++) {
    HValue *v = p->values.v[i];
    v->first = v->is_param || v->node->kind == H_CONST ? -1 : v->kernel;
    v->last = v->first;
    if (v->is_param && !p->comp->parent) v->last = end;
  }
  for (int i = 0; i < p->kernels.n; i++) {
    Kernel *k = p->kernels.v[i];
    for (int r = 0; r < k->reads.n; r++) {
      HValue *v = k->reads.v[r];
      if (v->node->comp != p->comp) continue;
      v->last = MAX(v->last, i);
      v->last_read = i;
    }
  }
  for (int i = 0; i < p->comp->outputs.n; i++) {
    HValue *v = p->comp->outputs.v[i]->val;
    if (v && v->node->comp == p->comp) v->is_output = true, v->last = end;
  }
  for (int i = p->values.n - 1; i >= 0; i--) { /* views keep what they look at alive */
    HValue *v = p->values.v[i], *b = base_of(v);
    if (b != v && b->node->comp == p->comp) {
      b->last = MAX(b->last, v->last);
      b->is_output |= v->is_output;
    }
  }
  /* a value whose every reader sits in its own kernel is never written */
  for (int i = 0; i < p->values.n; i++) {
    HValue *v = p->values.v[i];
    if (v->kernel >= 0 && !v->is_output && v->last <= v->kernel && v->node->kind != H_GET &&
        p->kernels.v[v->kernel]->roots.n > 1)
      v->dropped = true;
  }
}

/* ---- memory spaces, costs, time
 * ---------------------------------------------------------------------------------------------- */

typedef struct Room { /* bytes of on-chip memory in use at each schedule position */
  double *used;
  int n;
  double cap;
} Room;

static bool room_take(Room *r, int a, int b, double bytes) {
  a = MAX(a, 0);
  b = MIN(b, r->n - 1);
  for (int i = a; i <= b; i++)
    if (r->used[i] + bytes > r->cap) return false;
  for (int i = a; i <= b; i++) r->used[i] += bytes;
  return true;
}

/* Is this read worth fetching ahead of the first kernel? Not when the kernel changes its order on
 * the way, nor for the matrix of a matrix-vector product. */
static bool fetch_first(const Kernel *k, const HValue *v) {
  if (k->conv) {
    const HConv *c = k->conv->conv;
    if (!c->is_conv) return c->m > 1 && c->n > 1;
    const HNode *x = k->conv->in[0];
    const HValue *ov = k->roots.v[0]->val;
    if (v->node->rank != x->rank || v->node->rank < 2 || hlo_count(v->node) != hlo_count(x))
      return true;
    if (!ov || ov->node->rank != k->conv->rank) return true;
    char ol = c->out[ov->order[0]], os = c->out[ov->order[1]];
    char il = c->lhs[v->order[0]], is = c->lhs[v->order[1]];
    return !((ol == 'm' && il == 'k' && is == 's') ||
             (ol == 'n' && os == 'm' && il == 'k' && is == 's'));
  }
  if (k->soft) return false;
  if (k->pool) {
    const HNode *n = NULL;
    const int64_t *win;
    for (int i = 0; i < k->inner.n; i++)
      if (k->inner.v[i]->kind == H_RWIN) n = k->inner.v[i];
    if (!n || !n->src || op_ints(n->src, "window_dimensions", &win) != v->node->rank) return false;
    return win[v->order[0]] == 1 && win[v->order[1]] == 1;
  }
  const HNode *root = k->roots.v[0];
  if (root->kind == H_GATHER || root->kind == H_DSLICE) return v->node == root->in[0];
  return k->alone || k->reduce;
}

static bool product_or_reduce(const Kernel *k) {
  return k->conv != NULL || k->reduce || k->pool || k->roots.v[0]->kind == H_GATHER ||
         k->roots.v[0]->kind == H_DSLICE;
}

static int larger(const void *a, const void *b) {
  const HValue *x = *(HValue *const *)a, *y = *(HValue *const *)b;
  return x->bytes > y->bytes ? -1 : x->bytes < y->bytes ? 1 : x->node->id - y->node->id;
}

/* Results that later kernels read stay on chip, the largest first. */
static void place_results(Plan *p, Room *room, Space fast) {
  VEC(HValue *) want = {0};
  for (int i = 0; i < p->kernels.n; i++) {
    Kernel *k = p->kernels.v[i];
    const HNode *root = k->roots.n ? k->roots.v[0] : NULL;
    if (k->scalar || !root || root->kind == H_WHILE || root->kind == H_COND) continue;
    for (int r = 0; r < k->roots.n; r++) {
      HValue *v = k->roots.v[r]->val;
      if (!v || v->dropped || v->alias || v->is_output || k->roots.v[r]->n_results > 1) continue;
      if (v->bytes <= p->vmem_free * 0.95) *vec_push(&want) = v;
    }
  }
  if (want.n > 1) qsort(want.v, (size_t)want.n, sizeof *want.v, larger);
  for (int i = 0; i < want.n; i++) {
    HValue *v = want.v[i];
    if (room_take(room, v->kernel, v->last, v->bytes)) v->space = fast;
  }
  vec_free(&want);
}

static Err *time_all(Plan *p) {
  const Law *law = p->law;
  Room room = {calloc((size_t)p->kernels.n + 2, sizeof(double)), p->kernels.n + 1, p->vmem_free};
  Space fast = law->cmem > 0 ? SP_CMEM : SP_VMEM;
  double elapsed = 0, dma_free = 0; /* cycles */
  Err *err = NULL;
  /* state of a loop stays on chip when it is small */
  if (law->prefetch && p->loop_body)
    for (int i = 0; i < p->values.n; i++) {
      HValue *v = p->values.v[i];
      bool stack = false; /* one slice a round */
      for (int u = 0; u < v->node->n_users; u++)
        stack |= v->node->users[u]->kind == H_DSLICE || v->node->users[u]->kind == H_DUS;
      if (v->is_param && !stack && v->bytes <= p->vmem_free / 8 && v->node->rank > 0 &&
          room_take(&room, 0, p->kernels.n, v->bytes)) {
        v->space = fast;
        v->copy_bytes = v->bytes;
        v->copy_first = 0;
        v->copy_last = p->kernels.n - 1;
      }
    }
  if (law->prefetch && p->loop_body) /* and what it becomes */
    for (int i = 0; i < p->comp->outputs.n && i < p->comp->params.n; i++) {
      HValue *v = p->comp->outputs.v[i]->val;
      if (!v || v->is_param || v->alias || v->kernel < 0 || v->node->comp != p->comp ||
          v->space != SP_HBM)
        continue;
      if (p->comp->params.v[i]->val->space == fast && v->node->n_results == 1 &&
          room_take(&room, v->kernel, p->kernels.n, v->bytes))
        v->space = fast;
    }
  if (law->keep) place_results(p, &room, fast);
  bool first = true;
  for (int i = 0; i < p->kernels.n && !err; i++) {
    Kernel *k = p->kernels.v[i];
    HNode *root = k->roots.n ? k->roots.v[0] : NULL;
    if (root && (root->kind == H_WHILE || root->kind == H_COND)) {
      double best = 0;
      Plan *worst = NULL;
      for (int c = 0; c < root->n_comps && !err; c++) {
        if (root->kind == H_WHILE && c == 0) continue;
        double trips = root->kind == H_WHILE ? (root->trip < 0 ? 1 : (double)root->trip) : 1;
        if (root->kind == H_WHILE && root->trip < 0) p->unknown_loops = true;
        Plan *in = NULL;
        err = plan_comp(p->g, root->comps[c], p->chip, law, p->opts, p->arena, p, p->mult * trips,
                        &in);
        if (in) *vec_push(&p->inner) = in;
        if (err) break;
        p->unknown_loops |= in->unknown_loops;
        double t = in->time_s * trips;
        if (t >= best) {
          best = t;
          worst = in;
          k->time_s = t;
          k->cycles = in->cycles * trips;
          k->flops = in->flops * trips;
          k->bytes = in->bytes * trips;
        }
      }
      if (err) break;
      k->start_s = p->time_s;
      if (worst) worst->taken = true;
      if (worst) p->copy_s += worst->copy_s, p->net_s += worst->net_s;
      p->time_s += k->time_s;
      p->cycles += k->cycles;
      p->flops += k->flops;
      p->bytes += k->bytes;
      elapsed += k->time_s * law->clock;
      dma_free = MAX(dma_free, elapsed);
      continue;
    }
    if (k->scalar) {
      k->start_s = p->time_s;
      for (int r = 0; r < k->roots.n; r++)
        if (k->roots.v[r]->val && plan_is_tiny(k->roots.v[r]))
          k->roots.v[r]->val->space = SP_SCALAR;
      continue;
    }
    /* bring arguments and far values on chip when there was time to */
    if (law->prefetch) {
      HValue *best = NULL;
      for (int r = 0; r < k->reads.n; r++) {
        HValue *v = k->reads.v[r];
        if (v->node->comp != p->comp || base_of(v)->space != SP_HBM || v->node->rank == 0) continue;
        if (v->copy_bytes > 0 || (!law->keep && !v->is_param)) continue;
        double cyc = v->tiles * law->r[v->bytes / MAX(v->tiles, 1) > 2100 ? 4 : 2];
        if (v->bytes > p->vmem_free * 0.95) continue;
        if (dma_free + cyc * 1.0 <= elapsed) {
          if (room_take(&room, i > 0 ? i - 1 : i, v->last_read, v->bytes)) {
            dma_free += cyc;
            v->copy_bytes = v->bytes;
            v->copy_first = MAX(i - 1, 0);
            v->copy_last = MIN(v->last_read, p->kernels.n - 1);
            v->space = fast;
          }
        } else if (first && product_or_reduce(k) && !p->comp->parent && v->is_param &&
                   fetch_first(k, v)) {
          if (!best || v->bytes > best->bytes) best = v;
        }
      }
      if (best && room_take(&room, 0, best->last_read, best->bytes)) {
        best->copy_bytes = best->bytes;
        best->copy_first = 0;
        best->copy_last = MIN(best->last_read, p->kernels.n - 1);
        best->space = fast;
      }
    }
    if (root && (root->kind == H_DUS || root->kind == H_SCATTER) && root->n_in > 0) {
      HValue *v = NULL;
      for (int r = 0; r < k->reads.n; r++)
        if (k->reads.v[r]->node == root->in[0]) v = k->reads.v[r];
      k->must_copy = v && ((v->is_param && !v->donated && !p->comp->parent) || v->last > i);
    }
    if (law->tpu) tpu_cost(p, k);
    else gpu_cost(p, k);
    k->start_s = p->time_s;
    p->time_s += k->time_s;
    p->cycles += k->costed ? k->est : 0;
    p->flops += k->flops;
    p->bytes += k->bytes;
    if (k->collective) p->net_s += k->time_s;
    elapsed += k->time_s * law->clock;
    first &= elapsed < 3 * law->lbase;
    /* after a kernel has read an argument from HBM, later readers find a copy when it fits */
    if (law->prefetch)
      for (int r = 0; r < k->reads.n; r++) {
        HValue *v = k->reads.v[r];
        if (v->node->comp != p->comp || v->space != SP_HBM || v->alias || v->node->rank == 0 ||
            v->last <= i)
          continue;
        if (!law->keep && !v->is_param) continue;
        if (v->last >= p->kernels.n && !v->is_param) continue;
        int last = i;
        for (int z = i + 1; z < p->kernels.n; z++)
          for (int y = 0; y < p->kernels.v[z]->reads.n; y++)
            if (p->kernels.v[z]->reads.v[y] == v) last = z;
        if (last == i || v->bytes > p->vmem_free * 0.95) continue;
        if (room_take(&room, i, last, v->bytes)) {
          v->space = fast;
          v->copy_bytes = v->bytes;
          v->copy_first = i;
          v->copy_last = last;
        }
      }
    dma_free = MAX(dma_free, elapsed - 4e5);
  }
  free(room.used);
  return err;
}

/* A loop's state that is still read while its next value is written needs a copy in every
 * iteration. */
static void loop_copies(
    Plan *p) { /* state that is still read after its successor is written moves through a copy */
  const HComp *c = p->comp;
  const Law *law = p->law;
  for (int i = 0; i < c->outputs.n && i < c->params.n; i++) {
    const HNode *o = c->outputs.v[i];
    const HValue *v = o->val;
    if (!v || v->is_param || v->kernel < 0 || v->tiles < 1) continue;
    const Kernel *k = p->kernels.v[v->kernel];
    const HValue *old = c->params.v[i]->val;
    bool clash = old->last > v->kernel;
    for (int r = 0; r < k->reads.n && !clash; r++)
      clash = k->reads.v[r] == old && (k->conv || k->reduce);
    if (!clash) continue;
    double b = hlo_bits(o->dt) / 8;
    int w = b >= 4 ? 4 : b >= 2 ? 2 : 1;
    double cyc =
        law->lbase +
        v->tiles * (law->r[w] + (old->space == SP_HBM ? law->o[w] : law->o[w] - law->r[w]));
    Kernel *c2 = plan_kernel(p);
    HNode *from = c->outputs.v[i];
    HNode *n = hlo_node(p->g, p->comp, H_EWISE, OP_COPY, o->src, o->dt, o->rank, o->d, 1, &from);
    *vec_push(&c2->roots) = n;
    c2->copy = c2->costed = true;
    c2->cycles = c2->est = cyc;
    c2->time_s = cyc / law->clock;
    c2->start_s = p->time_s;
    c2->bytes = old->space == SP_HBM ? 2 * v->bytes : 0;
    c2->bound = SIM_MEMORY;
    c2->util = 1;
    p->cycles += cyc;
    p->time_s += c2->time_s;
  }
}

/* 1: x is computed from `from` by element-wise steps of one kernel, none of which takes in a
 * broadcast array; 0: not from it; -1: by others. */
static int plain_path(const HNode *from, const HNode *x, int *budget) {
  if (x == from) return 1;
  if (--*budget < 0) return -1;
  if (x->kind != H_EWISE) return 0;
  int way = 0;
  bool spread = false;
  for (int i = 0; i < x->n_in; i++) {
    const HNode *y = x->in[i];
    if (y->val && y != from) continue;
    int w = plain_path(from, y, budget);
    if (w) way = way < 0 || w < 0 ? -1 : 1;
    while (y->kind == H_EWISE && y->n_in == 1) y = y->in[0];
    spread |= y->kind == H_BCAST && hlo_count(y->in[0]) > 1;
  }
  return way && spread ? -1 : way;
}

/* May kernel k put its result o where its input v was? The compiler does so in HBM, for products
 * that are no convolutions and for loops, where the input meets nothing that is broadcast on its
 * way to the result; in GPUs' and loops' memory wherever the sizes agree. */
static bool writes_over(const Plan *p, const Kernel *k, const HValue *v, const HValue *o) {
  bool state = v->is_param && p->comp->parent && !p->law->prefetch; /* of a loop */
  if ((v->is_param && !state) || v->is_output || v->bytes != o->bytes || v->node->comp != p->comp ||
      v->node->kind == H_CONST || v->space != o->space || k->copy)
    return false;
  if (state || !p->law->tpu) return !k->conv && !k->reduce && hlo_light(k->roots.v[0]);
  if (o->space != SP_HBM || (k->conv && k->conv->conv->is_conv) || v->node->dt != o->node->dt ||
      v->node->rank != o->node->rank || !hlo_light(o->node))
    return false;
  for (int i = 0; i < o->node->rank; i++)
    if (v->order[i] != o->order[i]) return false;
  int budget = 500;
  return plain_path(v->node, o->node, &budget) == 1;
}

/* The most that lives at once, in HBM and on chip. The compiler's peak is the larger of the two,
 * arguments and results on top (sim.c). */
static void peak_memory(Plan *p) {
  int n = p->kernels.n + 1;
  double *chip = calloc((size_t)n + 1, sizeof *chip), *hbm = calloc((size_t)n + 1, sizeof *hbm);
  for (int i = 0; i < p->values.n; i++) {
    HValue *v = p->values.v[i];
    bool own = !v->alias && !v->dropped && !(v->is_param && !p->comp->parent);
    if (p->comp->parent && v->is_param) own = false; /* the loop's state belongs to the caller */
    if (v->node->kind == H_CONST) own = v->bytes > 0 && !v->alias;
    if (v->space == SP_SCALAR) own = false;
    if (v->is_output && !p->comp->parent) own = false; /* counted with the outputs */
    if (v->node->kind == H_WHILE || v->node->kind == H_COND) own = false;
    int a = MAX(v->first, 0), b = MIN(MAX(v->last, v->first), p->kernels.n - 1);
    const HNode *vn = v->node;
    if (vn->kind == H_DUS && v->kernel >= 0 && !p->kernels.v[v->kernel]->must_copy &&
        vn->in[0]->val) { /* written in place */
      if (vn->in[0]->val->is_param && p->comp->parent) own = false;
      a++;
    }
    if (v->node->kind == H_CONST) a = 0, b = p->kernels.n - 1;
    double *room = v->space == SP_HBM || v->copy_bytes > 0 ? hbm : chip;
    for (int t = a; own && t <= b; t++) room[t] += v->bytes;
    if (v->copy_bytes > 0)
      for (int t = MAX(v->copy_first, 0); t <= MIN(v->copy_last, p->kernels.n - 1); t++)
        chip[t] += v->copy_bytes;
  }
  /* a kernel writes over an input that nobody needs afterwards */
  for (int i = 0; i < p->kernels.n; i++) {
    const Kernel *k = p->kernels.v[i];
    bool taken[64] = {false};
    for (int r = 0; r < k->roots.n; r++) {
      const HValue *o = k->roots.v[r]->val;
      if (!o || o->alias || o->dropped || o->space == SP_SCALAR) continue;
      if (o->is_output && !p->comp->parent) continue;
      for (int q = 0; q < k->reads.n && q < 64; q++) {
        const HValue *v = base_of(k->reads.v[q]);
        if (taken[q] || v->last != i || !writes_over(p, k, v, o)) continue;
        taken[q] = true;
        *(o->space == SP_HBM ? &hbm[i] : &chip[i]) -= o->bytes;
        break;
      }
    }
  }
  int at_chip = 0, at_hbm = 0;
  for (int i = 0; i < p->kernels.n; i++) {
    const HNode *root = p->kernels.v[i]->roots.n ? p->kernels.v[i]->roots.v[0] : NULL;
    if (root && (root->kind == H_WHILE || root->kind == H_COND)) {
      double a = 0, h = 0;
      for (int q = 0; q < p->inner.n; q++)
        if (p->inner.v[q]->comp->owner == root)
          a = MAX(a, p->inner.v[q]->peak_chip), h = MAX(h, p->inner.v[q]->peak_hbm);
      chip[i] += a;
      hbm[i] += h;
    }
    if (chip[i] > p->peak_chip) p->peak_chip = chip[i], at_chip = i;
    if (hbm[i] > p->peak_hbm) p->peak_hbm = hbm[i], at_hbm = i;
  }
  p->peak_temp = MAX(p->peak_chip, p->peak_hbm);
  p->peak_pos = p->peak_chip > p->peak_hbm ? at_chip : at_hbm;
  free(chip);
  free(hbm);
}

Err *plan_comp(HGraph *g, HComp *c, const Chip *chip, const Law *law, const SimOpts *opts,
               Arena *arena, Plan *parent, double mult, Plan **out) {
  Plan *p = ARENA_NEW(arena, Plan);
  p->g = g;
  p->comp = c;
  p->chip = chip;
  p->law = law;
  p->opts = opts;
  p->arena = arena;
  p->parent = parent;
  p->mult = mult;
  p->loop_body = c->owner && c->owner->kind == H_WHILE;
  p->vmem_free = law->cmem > 0 ? law->cmem : law->fast;
  *out = p;
  plan_stored(p);
  plan_kernels(p);
  plan_layouts(p);
  plan_copies(p);
  schedule(p);
  live_ranges(p);
  TRY(time_all(p));
  if (p->loop_body && law->tpu) loop_copies(p);
  peak_memory(p);
  return NULL;
}

void plan_lists_free(Plan *p) {
  if (!p) return;
  for (int i = 0; i < p->kernels.n; i++) kernel_lists_free(p->kernels.v[i]);
  for (int i = 0; i < p->inner.n; i++) plan_lists_free(p->inner.v[i]);
  vec_free(&p->kernels);
  vec_free(&p->values);
  vec_free(&p->inner);
}
