/* The most memory that is alive at once, in device memory and on chip. */
#include <math.h>
#include <stdlib.h>

#include "sim/gpu/gpu.h"
#include "sim/schedule/schedule.h"
#include "sim/tpu/tpu.h"

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

/* Does a product take it, perhaps computed on? */
static bool feeds_product(const Schedule *p, const HValue *v) {
  for (int i = 0; i < p->kernels.n; i++) {
    const Kernel *k = p->kernels.v[i];
    for (int r = 0; k->conv && r < k->reads.n; r++)
      if (k->reads.v[r] == v && sched_made_from(k, k->conv, v->node, 0)) return true;
  }
  return false;
}

/* May kernel k put its result o where its input v was? The compiler does so in HBM where the input
 * meets nothing that is broadcast on its way to the result; in GPUs' and loops' memory wherever the
 * sizes agree. Sums over devices are made where this one's part was. */
static bool may_share(const Schedule *p, const Kernel *k, const HValue *v, const HValue *o) {
  Space from = tpu_space(p, v, k->pos), to = tpu_space(p, o, k->pos);
  bool state = v->is_param && p->comp->parent &&
               (!p->params->prefetch || (from == SP_HBM && to == SP_HBM)); /* of a loop */
  if ((v->is_param && !state) || v->is_output || v->bytes != o->bytes || v->node->comp != p->comp ||
      v->node->kind == H_CONST || from != to || k->copy)
    return false;
  if (o->node->kind == H_COLL && o->node->op == OP_ALL_REDUCE) return o->node->in[0] == v->node;
  if (!p->params->tpu && k->conv && !p->opts->eager) /* cuBLAS adds to what is there */
    return !k->attention && !k->conv->conv->is_conv && !sched_made_from(k, k->conv, v->node, 0);
  if ((state || !p->params->tpu) && !k->conv) return !k->reduce && hlo_light(k->roots.v[0]);
  if (!p->params->tpu) return false;
  if (to != SP_HBM || v->node->dt != o->node->dt || v->node->rank != o->node->rank ||
      !hlo_light(o->node))
    return false;
  for (int i = 0; i < o->node->rank; i++)
    if (v->order[i] != o->order[i]) return false;
  int budget = 500;
  const HValue *of = /* a copy: what reads it names the original */
      v->kernel < 0 ? NULL : p->kernels.v[v->kernel]->copy_of;
  if (plain_path(of ? of->node : v->node, o->node, &budget) != 1) return false;
  return !p->params->tall || hlo_bits(v->node->dt) != 16 ||
         feeds_product(p, v) == feeds_product(p, o);
}

/* Does it? XLA for GPUs makes room for every temporary apart; in the memory of arguments and results, which
 * is there anyway, values lie one after the other (lend_results). */
bool sched_writes_over(const Schedule *p, const Kernel *k, const HValue *v, const HValue *o) {
  bool state = v->is_param && p->comp->parent;
  return (p->params->tpu || p->opts->eager || state) && may_share(p, k, v, o);
}

/* Attention that loops over queries holds the scores of as many as fit, rounded: at most half of what
 * is on chip before they are. And so many arrays of their rows: what they come to, and, where room is
 * sought, the next queries beside these and the result before on its way out. */
static double held_scores(const CostParams *params, const Kernel *k, int rows) {
  const HValue *out = k->roots.v[0]->val;
  for (int i = 0; i < k->inner.n && params->queries; i++) {
    const HNode *s = k->inner.v[i];
    double bytes = 4 * (double)hlo_count(s), parts = 1;
    if (!s->scores) continue;
    while (bytes / parts > (params->fast + params->scoped) / 2) parts *= 2;
    return (bytes / 2 + rows * (out ? out->bytes : 0)) / parts;
  }
  return 0;
}

/* The blocks of a running sum lie with the summed dimension outside of the tile, before and after a
 * step. In device memory the second is smaller: what is padded last is not there yet, and if nothing
 * had to be turned, there is none. */
static double summed_blocks(const CostParams *params, const Kernel *k, const RunningSum *s) {
  double tile = 1024 * s->width, both = s->tiles + s->tiles;
  if (!params->keep) both = s->tiles + (s->in_lanes ? MIN(s->plain, s->tiles) : 0);
  bool copied = k->reads.n && k->reads.v[0]->node->op == OP_COPY; /* by a kernel of its own */
  return both * tile - (copied ? MIN(both * tile, k->reads.v[0]->bytes) : 0);
}

#define LIBRARY 8e9 /* operations: smaller products XLA writes itself, through Triton */

/* What cuBLAS is given to split sums in; XLA's own kernels multiply vectors. */
static double library_room(const Schedule *p, const HNode *n) {
  const HConv *v = n->conv;
  bool matrices = v->m > 1 && v->n > 1;
  bool library = p->opts->library || (double)v->flops >= LIBRARY;
  return !v->is_conv && (p->opts->eager || (library && matrices))
             ? chip_num(p->chip, "product_workspace", 0)
             : 0;
}

/* Memory that a kernel needs besides its operands and results: positions and turned copies of
 * sorts, the groups of a grouped convolution laid out one by one, a part of attention's scores. */
double sched_scratch(const Schedule *p, const Kernel *k) {
  const CostParams *params = p->params;
  const HNode *n = k->roots.n ? k->roots.v[0] : NULL;
  if (n && k->conv && !params->tpu && !k->attention) return library_room(p, k->conv);
  if (n && !params->tpu && !p->opts->eager) return gpu_made_bytes(n);
  if (!n || !params->tpu || k->copy) return 0;
  if (k->attention) return held_scores(params, k, 1);
  if (k->conv && k->conv->conv->groups > 1 && k->conv->conv->k > 1 &&
      k->conv->conv->n > k->conv->conv->groups && k->conv->conv->is_conv) {
    double g = (double)k->conv->conv->groups,
           side[2] = {(double)k->conv->conv->k, (double)k->conv->conv->n / g};
    double b = 0;
    for (int i = 0; i < 2; i++) {
      const HNode *x = i ? k->conv : k->conv->in[0];
      b += hlo_bytes(x) / side[i] * ceil(side[i] / 128) * 128 * (ceil(g / 4) * 4 / g);
    }
    return b;
  }
  if (params->prefetch && params->keep && n->val && tpu_written_in_place(params, n))
    return 2 * n->val->bytes; /* made on chip */
  if (n->n_in < 1 || n->in[0]->rank < 2 || n->in[0]->rank > 64) return 0;
  RunningSum sum;
  if (tpu_running_sum(k, &sum)) return n->val ? summed_blocks(params, k, &sum) : 0;
  if (n->kind != H_SORT || !params->prefetch || !params->keep) return 0;
  const HValue *v = n->in[0]->val, *u = k->reads.n ? k->reads.v[0] : NULL;
  if (n->op == OP_CHLO_TOP_K && v && n->n_results > 1)
    return 3 * v->bytes; /* and both results stay there */
  /* an argument is brought on chip */
  return v && v->is_param && u == v && v->space == SP_HBM ? v->bytes : 0;
}

double sched_attention_room(const Schedule *p, const Kernel *k) {
  return p->params->tpu && k->attention ? held_scores(p->params, k, 4) : 0;
}

typedef VEC(HValue *) Values;

static int larger_first(const void *x, const void *y) {
  const HValue *a = *(HValue *const *)x, *b = *(HValue *const *)y;
  if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
  return a->first != b->first ? a->first - b->first : a->node->id - b->node->id;
}

/* Can b be where a is, then or before? */
static bool follows(const Schedule *p, const HValue *a, const HValue *b) {
  return a->to < b->from ||
         (a->to == b->from && b->kernel == b->from && may_share(p, p->kernels.v[b->kernel], a, b));
}

/* What a library's kernels need besides, as values of their own. */
static void add_rooms(Schedule *p, Values *temps) {
  for (int i = 0; i < p->kernels.n && !p->params->tpu; i++) {
    const Kernel *k = p->kernels.v[i];
    double bytes = k->conv ? sched_scratch(p, k) : 0;
    if (bytes <= 0) continue;
    HValue *v = ARENA_NEW(p->arena, HValue);
    v->node = k->conv;
    v->bytes = bytes;
    v->from = v->to = i;
    v->kernel = -1;
    *vec_push(temps) = v;
  }
}

/* A new result's memory is there from the beginning. Where there is not much, and always on GPUs, values that are
 * no larger lie in it until the result is made, the largest first, in the smallest that will do. */
static void lend_results(Schedule *p, double *hbm) {
  Values results = {0}, temps = {0};
  for (int i = 0; i < p->values.n; i++) {
    HValue *v = p->values.v[i];
    bool result = v->is_output && !v->given && !v->is_param && !v->alias && v->kernel >= 0;
    if (result) *vec_push(&results) = v;
    if (v->from <= v->to && v->bytes > 0 && !v->away_to) *vec_push(&temps) = v;
  }
  add_rooms(p, &temps);
  if (results.n) qsort(results.v, (size_t)results.n, sizeof *results.v, larger_first);
  if (temps.n) qsort(temps.v, (size_t)temps.n, sizeof *temps.v, larger_first);
  Values *in = xcalloc((size_t)results.n + 1, sizeof *in);
  for (int i = 0; i < temps.n && results.n; i++) {
    HValue *v = temps.v[i];
    for (int q = results.n - 1; q >= 0 && !v->lent; q--) {
      const HValue *r = results.v[q];
      bool over = v->to == r->kernel && may_share(p, p->kernels.v[r->kernel], v, r);
      bool free_then = v->bytes <= r->bytes && (v->to < r->kernel || over);
      for (int z = 0; z < in[q].n; z++)
        free_then &= follows(p, v, in[q].v[z]) || follows(p, in[q].v[z], v);
      if (!free_then) continue;
      v->lent = true;
      *vec_push(&in[q]) = v;
      for (int t = v->from; t <= v->to; t++) hbm[t] -= v->bytes;
    }
  }
  for (int q = 0; q < results.n; q++) vec_free(&in[q]);
  free(in);
  vec_free(&results);
  vec_free(&temps);
}

/* The most that lives at once, in HBM and on chip. The compiler's peak is the larger of the two,
 * arguments and results on top (sim.c). */
void sched_peak(Schedule *p, bool lend) {
  p->peak_chip = p->peak_hbm = 0;
  int n = p->kernels.n + 1;
  double *chip = calloc((size_t)n + 1, sizeof *chip), *hbm = calloc((size_t)n + 1, sizeof *hbm);
  for (int i = 0; i < p->values.n; i++) {
    HValue *v = p->values.v[i];
    v->from = 0, v->to = -1;
    v->lent = false;
    bool own = !v->alias && !v->dropped && !(v->is_param && !p->comp->parent);
    if (p->comp->parent && v->is_param) own = false; /* the loop's state belongs to the caller */
    if (v->node->kind == H_CONST) own = v->bytes > 0 && !v->alias;
    if (v->space == SP_SCALAR) own = false;
    if (v->is_output && !p->comp->parent) own = false; /* counted with the outputs */
    if (v->node->kind == H_WHILE || v->node->kind == H_COND || v->node->n_results > 1)
      own = false; /* its results are */
    int a = MAX(v->first, 0), b = MIN(MAX(v->last, v->first), p->kernels.n - 1);
    const HNode *vn = v->node;
    bool adds = vn->kind == H_SCATTER && v->space == SP_HBM;
    if ((vn->kind == H_DUS || adds) && v->kernel >= 0 && !p->kernels.v[v->kernel]->must_copy &&
        vn->in[0]->val) { /* written in place */
      if (vn->in[0]->val->is_param && p->comp->parent) own = false;
      a++;
    }
    if (v->node->kind == H_CONST) a = 0, b = p->kernels.n - 1;
    if (v->held && vn->kind == H_DUS) { /* written in place; by a kernel of several results beside
                                           the old one, as the compiler counts */
      if (p->kernels.v[v->kernel]->roots.n > 1) chip[v->kernel] += v->bytes;
      continue;
    }
    for (int t = 0; t < v->n_stays; t++)
      for (int k = 0; k < v->stays[t].pieces; k++)
        for (int i2 = sched_piece(&v->stays[t], k); i2 <= v->stays[t].last && i2 < p->kernels.n;
             i2++)
          chip[i2] += v->bytes / v->stays[t].pieces;
    if ((v->n_stays || v->held) && !v->far) continue;
    if (v->n_stays) b = MIN(b, v->far_last);
    for (int t = a; own && t <= b; t++)
      if (t <= v->away_from || t >= v->away_to) hbm[t] += v->bytes;
    if (own) v->from = a, v->to = b;
  }
  if (lend) lend_results(p, hbm);
  /* a kernel writes over an input that nobody needs afterwards */
  for (int i = 0; i < p->kernels.n; i++) {
    const Kernel *k = p->kernels.v[i];
    bool taken[64] = {false};
    const HNode *sort =
        p->params->tpu && k->roots.n && k->roots.v[0]->kind == H_SORT ? k->roots.v[0] : NULL;
    bool apart = sort && sort->n_results == 1 && sort->val && sort->val->is_output;
    for (int r = 0; sort && !apart && r < k->reads.n; r++) { /* works in place */
      const HValue *v = base_of(k->reads.v[r]);
      if ((sort->n_results > 1 || v->node->dt == sort->dt) && !v->is_param && !v->is_output &&
          v->last == i && v->space == SP_HBM && !v->lent)
        hbm[i] -= v->bytes;
    }
    for (int r = 0; r < k->roots.n; r++) {
      const HValue *o = k->roots.v[r]->val;
      if (!o || o->node->n_results > 1 || o->alias || o->dropped || o->space == SP_SCALAR) continue;
      if (o->is_output && !p->comp->parent) continue;
      for (int q = 0; q < k->reads.n && q < 64; q++) {
        const HValue *v = base_of(k->reads.v[q]);
        if (taken[q] || v->last != i || v->lent || o->lent || !sched_writes_over(p, k, v, o))
          continue;
        taken[q] = true;
        *(tpu_space(p, o, i) == SP_HBM ? &hbm[i] : &chip[i]) -= o->bytes;
        break;
      }
    }
  }
  for (int i = 0; i < p->kernels.n; i++)
    *(p->params->keep ? &chip[i] : &hbm[i]) += sched_scratch(p, p->kernels.v[i]);
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
  p->peak_pos = p->peak_hbm > 0 ? at_hbm : at_chip;
  free(chip);
  free(hbm);
}
