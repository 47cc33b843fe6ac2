/* What XLA for GPUs computes again in every kernel that needs it, and what it stores instead.
 *
 * At first every operation is a kernel. The one is taken whose computing inside all of its readers saves most, by
 * the compiler's own estimate of kernels: arithmetic beside reading and writing, and a launch. It becomes part of
 * them, which changes what they and its operands would save, and so on until nothing saves any more. What has
 * several readers and took many operations does not, nor what is summed up along few columns: a block of threads
 * sums up some of them, and few blocks compute and read slowly. */
#include <math.h>
#include <stdlib.h>

#include "sim/plan/plan.h"

#define LAUNCH 1e-6
#define OPERATION 3.0 /* of the compiler's floating-point operations */
#define LEAST 16      /* elements: what has fewer is computed again */
#define COLUMNS 32    /* that a block of threads sums up */
#define L2_SPEEDUP \
  2.5 /* of the cache against memory, and of the one in front of it; the compiler's numbers */
#define L1_SPEEDUP 8
#define CYCLE 32 /* bytes that a block reads, by the compiler's estimate */

typedef struct Use { /* of an array by a kernel */
  int of;
  double times; /* how often each element is looked at */
} Use;

typedef struct Part { /* a node's kernel as long as it has one */
  HNode *node;
  VEC(Use) in;
  VEC(int) out;
  double work;
  double blocks;        /* of threads, of its kernel */
  bool fusible, always; /* may go into its readers; will, whatever that costs */
  bool own;             /* has a kernel */
  int version;
} Part;

typedef struct Gain {
  double s;
  int part, version;
} Gain;

typedef struct Fuse {
  Plan *p;
  VEC(Part) parts;
  VEC(Gain) heap;
  int *at; /* of a node: 1 + its part */
  double memory, arithmetic, sms, l1, l2;
  double block; /* bytes a second that one block of threads reads */
} Fuse;

/* ---- the compiler's estimate ----------------------------------------------------------------- */

/* Once from memory, again from caches, but no faster than its blocks ask for. */
static double read_s(const Fuse *f, const Part *reader, const Use *u) {
  double bytes = hlo_bytes(f->parts.v[u->of].node), most = reader->blocks * f->block;
  double cached = f->memory;
  if (bytes < f->l2) cached *= L2_SPEEDUP;
  if (bytes < f->l1) cached *= L1_SPEEDUP;
  return bytes * MIN(1, u->times) / MIN(f->memory, most) +
         bytes * MAX(0, u->times - 1) / MIN(cached, most);
}

static double both(double arithmetic, double moving) {
  return arithmetic + moving - 0.95 * MIN(arithmetic, moving);
}

static double reads_s(const Fuse *f, const Part *k) {
  double s = 0;
  for (int i = 0; i < k->in.n; i++) s += read_s(f, k, &k->in.v[i]);
  return s;
}

static double kernel_s(const Fuse *f, const Part *k, double work, double reads) {
  double busy = MIN(1, k->blocks / f->sms);
  return both(work / (f->arithmetic * busy), reads + hlo_bytes(k->node) / f->memory);
}

static double times_of(const Part *reader, int part) {
  for (int i = 0; i < reader->in.n; i++)
    if (reader->in.v[i].of == part) return reader->in.v[i].times;
  return 0;
}

/* Seconds saved if it is computed inside all of its readers. */
static double gain(const Fuse *f, int at) {
  const Part *p = &f->parts.v[at];
  double s = LAUNCH + kernel_s(f, p, p->work, reads_s(f, p));
  for (int i = 0; i < p->out.n; i++) {
    const Part *r = &f->parts.v[p->out.v[i]];
    double before = reads_s(f, r), after = before, times = times_of(r, at);
    Use own = {at, times};
    after -= read_s(f, r, &own);
    for (int q = 0; q < p->in.n; q++) {
      double had = times_of(r, p->in.v[q].of);
      Use now = {p->in.v[q].of, had + times * p->in.v[q].times}, was = {p->in.v[q].of, had};
      after += read_s(f, r, &now) - (had > 0 ? read_s(f, r, &was) : 0);
    }
    s += kernel_s(f, r, r->work, before) - kernel_s(f, r, r->work + times * p->work, after);
  }
  return s;
}

/* ---- the queue ------------------------------------------------------------------------------- */

static void push(Fuse *f, int part) {
  Part *p = &f->parts.v[part];
  if (!p->fusible || !p->own || !p->out.n) return;
  bool saves = p->always;
  Gain g = {saves ? HUGE_VAL : gain(f, part), part, ++p->version};
  *vec_push(&f->heap) = g;
  int i = f->heap.n - 1;
  for (; i > 0 && f->heap.v[(i - 1) / 2].s < g.s; i = (i - 1) / 2)
    f->heap.v[i] = f->heap.v[(i - 1) / 2];
  f->heap.v[i] = g;
}

static Gain pop(Fuse *f) {
  Gain top = f->heap.v[0], last = f->heap.v[--f->heap.n];
  int i = 0, n = f->heap.n;
  for (int c; (c = 2 * i + 1) < n; i = c) {
    if (c + 1 < n && f->heap.v[c + 1].s > f->heap.v[c].s) c++;
    if (f->heap.v[c].s <= last.s) break;
    f->heap.v[i] = f->heap.v[c];
  }
  if (n) f->heap.v[i] = last;
  return top;
}

/* ---- kernels --------------------------------------------------------------------------------- */

static void add_use(Part *reader, int of, double times) {
  for (int i = 0; i < reader->in.n; i++)
    if (reader->in.v[i].of == of) {
      reader->in.v[i].times += times;
      return;
    }
  *vec_push(&reader->in) = (Use){of, times};
}

static void add_reader(Part *p, int reader) {
  if (!p->fusible) return; /* nobody will ask */
  for (int i = 0; i < p->out.n; i++)
    if (p->out.v[i] == reader) return;
  *vec_push(&p->out) = reader;
}

static void remove_reader(Part *p, int reader) {
  for (int i = 0; i < p->out.n; i++)
    if (p->out.v[i] == reader) p->out.v[i--] = p->out.v[--p->out.n];
}

static void fuse(Fuse *f, int at) {
  Part *p = &f->parts.v[at];
  p->own = false;
  for (int i = 0; i < p->out.n; i++) {
    Part *r = &f->parts.v[p->out.v[i]];
    double times = times_of(r, at);
    for (int q = 0; q < r->in.n; q++)
      if (r->in.v[q].of == at) r->in.v[q--] = r->in.v[--r->in.n];
    r->work += times * p->work;
    for (int q = 0; q < p->in.n; q++) {
      add_use(r, p->in.v[q].of, times * p->in.v[q].times);
      add_reader(&f->parts.v[p->in.v[q].of], p->out.v[i]);
    }
  }
  for (int q = 0; q < p->in.n; q++) remove_reader(&f->parts.v[p->in.v[q].of], at);
  for (int q = 0; q < p->in.n; q++) push(f, p->in.v[q].of);
  for (int i = 0; i < p->out.n; i++) push(f, p->out.v[i]);
}

/* ---- the graph ------------------------------------------------------------------------------- */

/* Are its elements moved or computed one by one? */
static bool by_element(const HNode *n) { return hlo_light(n) && n->kind != H_BARRIER; }

static double operations(const HNode *n) {
  double count = (double)hlo_count(n->kind == H_REDUCE ? n->in[0] : n);
  if (n->kind == H_REDUCE) return OPERATION * count;
  return n->kind == H_EWISE ? OPERATION * MAX(1, vpu_weight(n) / 2) * count : 0;
}

/* How often n looks at each element of x. */
static double looks(const HNode *n, const HNode *x) {
  double all = (double)hlo_count(n), one = MAX(1, (double)hlo_count(x));
  if (n->kind == H_REDUCE || n->kind == H_CONCAT || n->kind == H_PAD) return 1;
  return by_element(n) || n->kind == H_GATHER ? all / one : 1;
}

/* A block of threads sums up a row or some columns; of all else there are enough. */
static double blocks_of(const HNode *n) {
  if (n->kind != H_REDUCE) return HUGE_VAL;
  bool along = false;
  for (int i = 0; i < n->n_dims; i++) along |= n->dims[i] == n->in[0]->rank - 1;
  return ceil((double)hlo_count(n) / (along ? 1 : COLUMNS));
}

static void add_part(Fuse *f, HNode *n, const bool *rows) {
  Part k = {.node = n, .own = true, .always = rows[n->id] || hlo_count(n) < LEAST};
  k.work = operations(n);
  k.blocks = blocks_of(n);
  k.fusible = by_element(n) && !n->val && !n->is_output && !n->dead && !n->attention;
  for (int i = 0; i < n->n_users && k.fusible; i++)
    k.fusible = n->users[i]->comp == n->comp && plan_absorbs(f->p, n->users[i], n);
  *vec_push(&f->parts) = k;
  int at = f->parts.n - 1;
  f->at[n->id] = at + 1;
  for (int i = 0; i < n->n_in; i++) {
    int of = n->in[i]->comp == n->comp ? f->at[n->in[i]->id] - 1 : -1;
    if (of < 0 || n->in[i]->kind == H_CONST || plan_const_only(n->in[i])) continue;
    add_use(&f->parts.v[at], of, looks(n, n->in[i]));
    add_reader(&f->parts.v[of], at);
  }
}

void gpu_fuse(Plan *p, const bool *rows) {
  HComp *c = p->comp;
  Fuse f = {.p = p, .at = xcalloc((size_t)p->g->n_nodes + 1, sizeof *f.at)};
  f.memory = p->chip->hbm_bandwidth;
  f.arithmetic = chip_num(p->chip, "peak_fp32", 1e12) / p->chip->devices_per_chip;
  f.sms = chip_num(p->chip, "sms", 80) / p->chip->devices_per_chip;
  f.l1 = chip_num(p->chip, "smem_per_sm", 1e5) * f.sms;
  f.l2 = chip_num(p->chip, "l2", 4e6);
  f.block = CYCLE * p->chip->clock;
  for (int i = 0; i < c->nodes.n; i++) add_part(&f, c->nodes.v[i], rows);
  for (int i = 0; i < f.parts.n; i++) push(&f, i);
  while (f.heap.n) {
    Gain g = pop(&f);
    const Part *k = &f.parts.v[g.part];
    if (g.version != k->version || !k->own) continue;
    if (g.s >= 0) fuse(&f, g.part);
  }
  for (int i = 0; i < f.parts.n; i++) {
    const Part *k = &f.parts.v[i];
    if (k->own && k->fusible && k->out.n) plan_store(p, k->node);
  }
  for (int i = 0; i < f.parts.n; i++) {
    vec_free(&f.parts.v[i].in);
    vec_free(&f.parts.v[i].out);
  }
  vec_free(&f.parts);
  vec_free(&f.heap);
  free(f.at);
}
