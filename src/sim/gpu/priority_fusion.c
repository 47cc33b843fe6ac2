/* What XLA for GPUs computes again in every kernel that needs it, and what it stores instead.
 *
 * At first every operation is a kernel. The one is taken whose computing inside all of its readers saves most, by
 * the compiler's own estimate of kernels: arithmetic beside reading and writing, and a launch. It becomes part of
 * them, which changes what they and its operands would save, and so on until nothing saves any more. What has
 * several readers and took many operations does not, nor what is summed up along few columns: a block of threads
 * sums up some of them, and few blocks compute and read slowly. What libraries read lies in memory. */
#include <math.h>
#include <stdlib.h>

#include "sim/gpu/gpu.h"
#include "sim/hlo/query.h"
#include "sim/schedule/schedule.h"

#define LAUNCH 1e-6
#define BRANCHES 6    /* the compiler's operations for an element that is put beside others, */
#define DIVERGENT 400 /* and where parts do not begin with a warp */
#define LEAST 16      /* elements: what has fewer is computed again */
/* What is made of more arrays of its size is not computed again: a residual stream would grow with every layer.
 * XLA's kernels of GPT-2 on an A100 read seven arrays at most, vectors among them. */
#define OPERANDS 5
#define WARP 32 /* threads; each sums up a column, or some where elements are narrow */
#define L2_SPEEDUP \
  2.5 /* of the cache against memory, and of the one in front of it; the compiler's numbers */
#define L1_SPEEDUP 8
#define CYCLE 32 /* bytes that a block reads, by the compiler's estimate */

/* Where elements are asked for, in a kernel: by what is stored, or by what looks at others than its own (a
 * transpose, a broadcast). What leads there element by element is looked at once, by however many operations. */
typedef struct Root {
  int at;       /* the part that is asked for */
  double times; /* how often each of its elements is */
} Root;

typedef struct Use { /* of an array by a kernel */
  int of;
  VEC(int) by; /* roots */
} Use;

typedef struct Part { /* a node's kernel as long as it has one */
  HNode *node;
  VEC(Use) in;
  VEC(Root) roots;
  VEC(int) out;
  double work;
  int64_t outer,
      inner;     /* of a sum along columns: how many there are, each of so many beside each other */
  double blocks; /* of threads, of its kernel; of such a sum while nothing is fused with it */
  bool fusible, always; /* may go into its readers; will, whatever that costs */
  bool asked;           /* may not: a library reads it from memory */
  bool own;             /* has a kernel */
  int version;
} Part;

typedef struct Gain {
  double s;
  int part, version;
} Gain;

typedef struct Fuse {
  Schedule *p;
  const unsigned char *claimed; /* by node: a library computes it with a product */
  VEC(Part) parts;
  VEC(Gain) heap;
  int *at; /* of a node: 1 + its part */
  double memory, arithmetic, sms, l1, l2;
  double block; /* bytes a second that one block of threads reads */
} Fuse;

/* ---- the compiler's estimate ----------------------------------------------------------------- */

/* A thread reads up to 8 bytes of the narrowest operand at once, and sums up as many columns. */
static double blocks_of(const Part *k, double bits) {
  if (!k->inner) return k->blocks;
  int64_t each = 1;
  if (k->inner % 2 == 0 && k->inner >= 2 * WARP)
    each = bits < 32 && k->inner % 4 == 0 && k->inner >= 4 * WARP ? 4 : 2;
  return (double)(k->outer * ((k->inner + WARP * each - 1) / (WARP * each)));
}

/* Of the narrowest that it reads, but for part `but`. */
static double narrowest(const Fuse *f, const Part *k, int but) {
  double bits = 64;
  for (int i = 0; i < k->in.n; i++)
    if (k->in.v[i].of != but) bits = MIN(bits, hlo_bits(f->parts.v[k->in.v[i].of].node->dt));
  return bits;
}

/* Once from memory, again from caches, but no faster than its blocks ask for. */
static double read_s(const Fuse *f, double blocks, int of, double times) {
  double bytes = hlo_bytes(f->parts.v[of].node), most = blocks * f->block;
  double cached = f->memory;
  if (bytes < f->l2) cached *= L2_SPEEDUP;
  if (bytes < f->l1) cached *= L1_SPEEDUP;
  return bytes * MIN(1, times) / MIN(f->memory, most) +
         bytes * MAX(0, times - 1) / MIN(cached, most);
}

static double times_at(const Part *p, int root) {
  for (int i = 0; i < p->roots.n; i++)
    if (p->roots.v[i].at == root) return p->roots.v[i].times;
  return 0;
}

static double times_of(const Part *reader, const Use *u) {
  double times = 0;
  for (int i = 0; u && i < u->by.n; i++) times += times_at(reader, u->by.v[i]);
  return times;
}

static Use *use_of(const Part *reader, int of) {
  for (int i = 0; i < reader->in.n; i++)
    if (reader->in.v[i].of == of) return &reader->in.v[i];
  return NULL;
}

static bool asked_by(const Use *u, int root) {
  for (int i = 0; u && i < u->by.n; i++)
    if (u->by.v[i] == root) return true;
  return false;
}

static double both(double arithmetic, double moving) {
  return arithmetic + moving - 0.95 * MIN(arithmetic, moving);
}

static double reads_s(const Fuse *f, const Part *k, double blocks) {
  double s = 0;
  for (int i = 0; i < k->in.n; i++) s += read_s(f, blocks, k->in.v[i].of, times_of(k, &k->in.v[i]));
  return s;
}

static double kernel_s(const Fuse *f, const Part *k, double blocks, double work, double reads) {
  double busy = MIN(1, blocks / f->sms);
  return both(work / (f->arithmetic * busy), reads + hlo_bytes(k->node) / f->memory);
}

/* How often r looks at what part `at` is made of for u, beside its own looks `had`, once it computes that. */
static double more_looks(const Fuse *f, const Part *r, int at, const Use *u, const Use *had) {
  const Use *own = use_of(r, at);
  double more = 0, times = times_of(r, own);
  for (int i = 0; i < u->by.n; i++) {
    int root = u->by.v[i];
    if (root != at && !asked_by(had, root)) more += times_at(r, root);
    if (root != at) more += times * times_at(&f->parts.v[at], root);
    for (int q = 0; root == at && q < own->by.n; q++)
      if (!asked_by(had, own->by.v[q])) more += times_at(r, own->by.v[q]);
  }
  return more;
}

/* Of r's kernel, once it computes part `at` itself. */
static double joined_s(const Fuse *f, const Part *r, int at) {
  const Part *p = &f->parts.v[at];
  double blocks = blocks_of(r, MIN(narrowest(f, r, at), narrowest(f, p, -1)));
  double times = times_of(r, use_of(r, at));
  double reads = reads_s(f, r, blocks) - read_s(f, blocks, at, times);
  for (int q = 0; q < p->in.n; q++) {
    int of = p->in.v[q].of;
    const Use *was = use_of(r, of);
    double had = times_of(r, was), now = had + more_looks(f, r, at, &p->in.v[q], was);
    reads += read_s(f, blocks, of, now) - (was ? read_s(f, blocks, of, had) : 0);
  }
  return kernel_s(f, r, blocks, r->work + times * p->work, reads);
}

static double own_s(const Fuse *f, const Part *k) {
  double blocks = blocks_of(k, narrowest(f, k, -1));
  return kernel_s(f, k, blocks, k->work, reads_s(f, k, blocks));
}

/* Seconds saved if it is computed inside all of its readers. */
static double gain(const Fuse *f, int at) {
  const Part *p = &f->parts.v[at];
  double s = LAUNCH + own_s(f, p);
  for (int i = 0; i < p->out.n; i++) {
    const Part *r = &f->parts.v[p->out.v[i]];
    s += own_s(f, r) - joined_s(f, r, at);
  }
  return s;
}

/* ---- the queue ------------------------------------------------------------------------------- */

/* Arrays of its size that it reads. */
static int operands(const Fuse *f, const Part *p) {
  int count = 0;
  for (int i = 0; i < p->in.n; i++)
    count += hlo_count(f->parts.v[p->in.v[i].of].node) >= hlo_count(p->node);
  return count;
}

/* Would one of several readers read too many? */
static bool crowds(const Fuse *f, const Part *p) {
  int own = operands(f, p);
  if (p->out.n < 2) return false;
  for (int i = 0; i < p->out.n; i++)
    if (operands(f, &f->parts.v[p->out.v[i]]) - 1 + own > OPERANDS) return true;
  return false;
}

static void push(Fuse *f, int part) {
  Part *p = &f->parts.v[part];
  if (!p->fusible || !p->own || !p->out.n) return;
  p->version++;
  if (p->out.n > 1 && operands(f, p) > OPERANDS) return;
  bool saves = p->always && !crowds(f, p);
  Gain g = {saves ? HUGE_VAL : gain(f, part), part, p->version};
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

static void add_root(Part *p, int at, double times) {
  for (int i = 0; i < p->roots.n; i++)
    if (p->roots.v[i].at == at) {
      p->roots.v[i].times += times;
      return;
    }
  *vec_push(&p->roots) = (Root){at, times};
}

static void add_use(Part *reader, int of, int root) {
  Use *u = use_of(reader, of);
  if (!u) *(u = vec_push(&reader->in)) = (Use){.of = of};
  if (!asked_by(u, root)) *vec_push(&u->by) = root;
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

/* r computes part `at` itself. */
static void take_in(const Fuse *f, Part *r, int at) {
  const Part *p = &f->parts.v[at];
  Use *slot = use_of(r, at), own = *slot;
  double times = times_of(r, &own);
  *slot = r->in.v[--r->in.n];
  r->work += times * p->work;
  for (int i = 0; i < p->roots.n; i++)
    if (p->roots.v[i].at != at) add_root(r, p->roots.v[i].at, times * p->roots.v[i].times);
  for (int q = 0; q < p->in.n; q++)
    for (int k = 0; k < p->in.v[q].by.n; k++) {
      int root = p->in.v[q].by.v[k];
      if (root != at) add_use(r, p->in.v[q].of, root);
      for (int z = 0; root == at && z < own.by.n; z++) add_use(r, p->in.v[q].of, own.by.v[z]);
    }
  vec_free(&own.by);
}

static void fuse(Fuse *f, int at) {
  Part *p = &f->parts.v[at];
  p->own = false;
  for (int i = 0; i < p->out.n; i++) {
    Part *r = &f->parts.v[p->out.v[i]];
    take_in(f, r, at);
    for (int q = 0; q < p->in.n; q++) add_reader(&f->parts.v[p->in.v[q].of], p->out.v[i]);
  }
  for (int q = 0; q < p->in.n; q++) remove_reader(&f->parts.v[p->in.v[q].of], at);
  for (int q = 0; q < p->in.n; q++) push(f, p->in.v[q].of);
  for (int i = 0; i < p->out.n; i++) push(f, p->out.v[i]);
}

/* ---- the graph ------------------------------------------------------------------------------- */

/* Are its elements moved or computed one by one? */
static bool by_element(const HNode *n) { return hlo_light(n) && n->kind != H_BARRIER; }

/* In a concatenation a warp of threads computes all parts that meet in it: the compiler counts that as much. */
static double concat_cycles(const HNode *n) {
  for (int i = 0; i < n->n_in && n->index > 0; i++)
    if (n->in[i]->d[n->index] % WARP) return DIVERGENT;
  return BRANCHES;
}

static double operations(const Fuse *f, const HNode *n) {
  double count = (double)hlo_count(n->kind == H_REDUCE ? n->in[0] : n);
  const Op *step = n->src && n->src->n_regions ? n->src->regions[0]->first : NULL;
  switch (n->kind) {
  case H_REDUCE: return count * gpu_op_cycles(f->p->chip, step ? step->kind : OP_ADD, n->dt);
  case H_EWISE: return count * gpu_op_cycles(f->p->chip, n->op, n->dt);
  case H_CONCAT: return count * concat_cycles(n);
  default: return 0;
  }
}

/* How often n looks at each element of x. */
static double looks(const HNode *n, const HNode *x) {
  double all = (double)hlo_count(n), one = MAX(1, (double)hlo_count(x));
  if (n->kind == H_REDUCE || n->kind == H_CONCAT || n->kind == H_PAD) return 1;
  return by_element(n) || n->kind == H_GATHER ? all / one : 1;
}

/* Of a sum a block does a row or some columns; of all else there are enough. */
static void set_blocks(Part *k) {
  const HNode *n = k->node;
  k->blocks = HUGE_VAL;
  if (n->kind != H_REDUCE) return;
  bool along = false;
  int64_t last = -1;
  for (int i = 0; i < n->n_dims; i++) {
    along |= n->dims[i] == n->in[0]->rank - 1;
    last = MAX(last, n->dims[i]);
  }
  k->blocks = (double)hlo_count(n);
  if (along) return;
  k->inner = 1;
  for (int i = (int)last + 1; i < n->in[0]->rank; i++) k->inner *= n->in[0]->d[i];
  k->outer = hlo_count(n) / MAX(1, k->inner);
}

/* A gather computes only what it takes, a scatter what it adds. */
bool gpu_absorbs(const HNode *user, const HNode *x) {
  return sched_absorbs(user, x) || user->kind == H_GATHER ||
         (user->kind == H_SCATTER && x != user->in[0]);
}

/* Does a kernel that is XLA's own need x for u? Libraries read arrays, and a vector that they add to each row. */
static bool absorbs(const Fuse *f, const HNode *u, const HNode *x) {
  bool bias = u->kind == H_BCAST && x->rank <= 1 && u->n_users == 1 && f->claimed[u->users[0]->id];
  if (bias) return hlo_count(x) < LEAST;
  if (f->claimed[u->id]) return hlo_const_only(x) || (x->kind == H_BCAST && x->in[0]->rank <= 1);
  return u->comp == x->comp && gpu_absorbs(u, x);
}

static void add_part(Fuse *f, HNode *n, const bool *rows) {
  Part k = {.node = n, .own = true, .always = rows[n->id] || hlo_count(n) < LEAST};
  k.work = operations(f, n);
  set_blocks(&k);
  k.fusible =
      by_element(n) && !n->val && !n->is_output && !n->dead && !n->attention && !f->claimed[n->id];
  for (int i = 0; i < n->n_users && k.fusible; i++)
    if (!absorbs(f, n->users[i], n)) k.fusible = false, k.asked = f->claimed[n->users[i]->id];
  int at = f->parts.n;
  *vec_push(&k.roots) = (Root){at, 1};
  *vec_push(&f->parts) = k;
  f->at[n->id] = at + 1;
  for (int i = 0; i < n->n_in; i++) {
    int of = n->in[i]->comp == n->comp ? f->at[n->in[i]->id] - 1 : -1;
    if (of < 0 || n->in[i]->kind == H_CONST || hlo_const_only(n->in[i])) continue;
    add_use(&f->parts.v[at], of, n->kind == H_EWISE ? at : of);
    if (n->kind != H_EWISE) add_root(&f->parts.v[at], of, looks(n, n->in[i]));
    add_reader(&f->parts.v[of], at);
  }
}

void gpu_priority_fusion(Schedule *p, const bool *rows, const unsigned char *claimed) {
  HComp *c = p->comp;
  Fuse f = {.p = p, .claimed = claimed, .at = xcalloc((size_t)p->g->n_nodes + 1, sizeof *f.at)};
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
    if (k->asked || (k->own && k->fusible && k->out.n)) sched_store(p, k->node);
  }
  for (int i = 0; i < f.parts.n; i++) {
    Part *k = &f.parts.v[i];
    for (int q = 0; q < k->in.n; q++) vec_free(&k->in.v[q].by);
    vec_free(&k->in);
    vec_free(&k->roots);
    vec_free(&k->out);
  }
  vec_free(&f.parts);
  vec_free(&f.heap);
  free(f.at);
}
