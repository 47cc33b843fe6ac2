/* How axes flow, in Shardy's manner (https://openxla.org/shardy/propagation): dimensions that an operation
 * ties together are a factor, which has the longest list of axes that all of them agree on. Where two
 * factors bring the same axis to one value, that of the larger array wins. Operations that move nothing
 * come first, before all those whose operands nothing else reads, then all along factors that the result
 * has, then the rest, what broadcasts copy last. In each round operations are taken in program order, and
 * what a change touches before anything that was not seen yet: which of two shardings that exclude each
 * other wins depends on that. */
#include <stdlib.h>

#include "compile/spmd/propagate_priv.h"

enum { ONE_READER, HANDED_ON, PASSED_THROUGH, NOT_COPIED, ALL, ROUNDS };
#define MAX_FACTORS 64

enum { NOWHERE, FORWARD = 1, BACKWARD = 2, BOTH = 3 };

static bool axis_same(AxisRef a, AxisRef b) {
  return str_eq(a.name, b.name) && a.sub_pre == b.sub_pre && a.sub_size == b.sub_size;
}

static int64_t axis_size(const Spread *s, AxisRef a) {
  if (a.sub_size) return a.sub_size;
  for (int i = 0; i < s->mesh->n_axes; i++)
    if (str_eq(s->mesh->axes[i].name, a.name)) return s->mesh->axes[i].size;
  return 1;
}

int64_t spread_parts(const Spread *s, const Axes *x) {
  int64_t n = 1;
  for (int i = 0; i < x->n; i++) n *= axis_size(s, x->a[i]);
  return n;
}

bool spread_is_handed_on(const Op *loop, int k) {
  const Region *body = loop->regions[1];
  return body->last->operands[k] == body->args[k];
}

const Value *spread_owner(const Spread *s, const Value *v) {
  return s->owner[v->id] ? s->owner[v->id] : v;
}

/* ---- factors ---- */

static int member_of(const Spread *s, const Step *step, const Value *v, int d) {
  for (int i = step->first; i < step->first + step->n; i++)
    if (s->members.v[i].v == v && s->members.v[i].d == d) return i;
  return -1;
}

static void add_member(Spread *s, Step *step, Value *v, int d, int factor, bool reduced) {
  Member m = {v, d, factor, 0, step->op && v->def == step->op, reduced};
  if (m.result) m.tensor = step->op->n_operands + (int)(v - step->op->results);
  while (step->op && !m.result && m.tensor < step->op->n_operands &&
         step->op->operands[m.tensor] != v) /* a group's first is none */
    m.tensor++;
  if (!step->op) m.tensor = step->n, m.result = v == step->edge || s->owner[v->id] == step->edge;
  *vec_push(&s->members) = m;
  step->n++;
}

/* A product of a value with itself: what is summed is another factor than the result's rows and columns. */
static bool of_itself(const Link *l, const Member *a, const Member *b) {
  return l->reduced && l->a == l->b && a->factor != b->factor;
}

static void join(Spread *s, Step *step, const Link *l) {
  int a = member_of(s, step, l->a, l->da), b = member_of(s, step, l->b, l->db);
  if (a >= 0 && b >= 0 && of_itself(l, &s->members.v[a], &s->members.v[b])) a = b = -1;
  if (a < 0 && b < 0) {
    add_member(s, step, l->a, l->da, step->n_factors, l->reduced);
    add_member(s, step, l->b, l->db, step->n_factors++, l->reduced);
  } else if (a < 0) add_member(s, step, l->a, l->da, s->members.v[b].factor, l->reduced);
  else if (b < 0) add_member(s, step, l->b, l->db, s->members.v[a].factor, l->reduced);
  else {
    int from = s->members.v[b].factor, to = s->members.v[a].factor;
    for (int i = step->first; i < step->first + step->n; i++)
      if (s->members.v[i].factor == from) s->members.v[i].factor = to;
  }
}

/* Does nothing else read the operands? Numbers do not count: they cannot be cut. */
static bool one_reader(const Spread *s, const Op *op, const int *readers) {
  for (int k = 0; k < op->n_operands; k++) {
    const Value *v = op->operands[k];
    if (v->type->kind == TY_TENSOR && v->type->rank && v->id >= 0 &&
        readers[spread_owner(s, v)->id] != 1)
      return false;
  }
  return true;
}

/* A loop that hands a value on does not read it. */
static bool reads(const Region *r, const Op *op, int k) {
  if (op->kind == OP_WHILE) return !spread_is_handed_on(op, k);
  bool of_loop = op == r->last && r->parent && r->parent->kind == OP_WHILE;
  return !of_loop || r == r->parent->regions[0] || !spread_is_handed_on(r->parent, k);
}

static void count_readers(const Spread *s, const Region *r, int *readers) {
  for (const Op *op = r->first; op; op = op->next) {
    for (int k = 0; k < op->n_operands; k++)
      if (op->operands[k]->id >= 0 && reads(r, op, k))
        readers[spread_owner(s, op->operands[k])->id]++;
    for (int i = 0; i < op->n_regions; i++) count_readers(s, op->regions[i], readers);
  }
}

static void make_factors(Spread *s) {
  int *readers = xcalloc((size_t)s->n_values + 1, sizeof *readers);
  count_readers(s, module_main(s->m)->body, readers);
  for (int i = 0; i < s->steps.n; i++)
    if (s->steps.v[i].op) s->steps.v[i].one_reader = one_reader(s, s->steps.v[i].op, readers);
  free(readers);
  s->members.n = 0;
  for (int i = 0; i < s->steps.n; i++) {
    Step *step = &s->steps.v[i];
    int end = i + 1 < s->steps.n ? s->steps.v[i + 1].first_link : s->links.n;
    step->first = s->members.n, step->n = step->n_factors = 0;
    for (int k = step->first_link; k < end; k++) join(s, step, &s->links.v[k]);
  }
}

static int direction(const Step *step, bool reduced, int round) {
  bool all = round > ONE_READER || step->edge || step->one_reader;
  int way = !all                          ? NOWHERE
            : step->kind == STEP_HANDS_ON ? BOTH
            : step->kind == STEP_SLICES   ? FORWARD
                                          : NOWHERE;
  bool copies = step->kind == STEP_BROADCASTS;
  if (round == ALL) return BOTH;
  if (round == NOT_COPIED || (round == PASSED_THROUGH && !reduced)) way |= copies ? BACKWARD : BOTH;
  return way;
}

/* ---- one step ---- */

static bool has_axis(const Axes *x, AxisRef a) {
  for (int i = 0; i < x->n; i++)
    if (str_eq(x->a[i].name, a.name)) return true;
  return false;
}

/* What both say from the major axis on; the longer one where they agree and it may add. */
static void agree(Axes *x, const Axes *y, bool *adds) {
  int i = 0;
  while (i < x->n && i < y->n && axis_same(x->a[i], y->a[i])) i++;
  if (i < x->n && i < y->n) *adds = false, x->n = i;
  for (; *adds && i < y->n; i++) x->a[x->n++] = y->a[i];
}

static void agree_all(const Spread *s, const Step *step, int factor, bool results, bool *adds,
                      Axes *x) {
  for (int i = step->first; i < step->first + step->n; i++) {
    const Member *m = &s->members.v[i];
    if (m->factor == factor && m->result == results) agree(x, &s->dims[m->v->id][m->d], adds);
  }
}

/* In one direction only what the flow comes from adds axes, the other end may object. */
static Axes wanted(const Spread *s, const Step *step, int factor, int way) {
  Axes x = {0};
  bool adds = true;
  if (!way) return x;
  agree_all(s, step, factor, way == BACKWARD, &adds, &x);
  if (way != BOTH) adds = false;
  agree_all(s, step, factor, way != BACKWARD, &adds, &x);
  return x;
}

/* How many of these axes may cut this dimension: where they do not yet, it must be open, and even. */
int spread_may_cut(const Spread *s, const Value *v, int dim, const Axes *x) {
  const Axes *has = &s->dims[v->id][dim];
  const Sharding *never = s->replicated[v->id];
  Axes major = {0};
  for (int i = 0; i < x->n; i++) {
    for (int k = 0; never && k < never->n_replicated; k++)
      if (str_eq(never->replicated[k].name, x->a[i].name)) return i;
    major.a[major.n++] = x->a[i];
    if (i < has->n) continue;
    int64_t size = v->type->dims[dim];
    if (has->closed || size < 0 || size % spread_parts(s, &major)) return i;
    for (int d = 0; d < v->type->rank; d++)
      if (d != dim && has_axis(&s->dims[v->id][d], x->a[i])) return i;
  }
  return x->n;
}

static bool is_reduced(const Spread *s, const Step *step, int factor) {
  for (int i = step->first; i < step->first + step->n; i++)
    if (s->members.v[i].factor == factor && s->members.v[i].reduced) return true;
  return false;
}

/* Does a list of axes begin with another? */
bool spread_begins(const Axes *x, const Axes *y) {
  int i = 0;
  while (i < x->n && i < y->n && axis_same(x->a[i], y->a[i])) i++;
  return i == y->n;
}

typedef struct Wish { /* what a factor is to have, and how large the array is that says so */
  int factor, tensor;
  double size;
  int64_t parts; /* of element-wise operations */
  Axes axes;
} Wish;

static int by_weight(const void *a, const void *b) {
  const Wish *x = a, *y = b;
  if (x->size != y->size) return x->size > y->size ? -1 : 1;
  if (x->parts != y->parts) return x->parts > y->parts ? -1 : 1;
  return x->tensor != y->tensor ? x->tensor - y->tensor : x->factor - y->factor;
}

static void weigh(const Spread *s, const Step *step, Wish *w) {
  w->size = -1;
  for (int i = step->first; i < step->first + step->n; i++) {
    const Member *m = &s->members.v[i];
    if (m->factor != w->factor || !w->axes.n) continue;
    if (!spread_begins(&s->dims[m->v->id][m->d], &w->axes)) continue;
    double size = (double)type_count(m->v->type);
    if (size > w->size || (size == w->size && m->tensor < w->tensor))
      w->size = size, w->tensor = m->tensor;
  }
  bool ewise = step->op && op_info[step->op->kind].cls == OC_EWISE;
  w->parts = ewise ? spread_parts(s, &w->axes) : 0;
}

/* Those that matter most first. Returns how many. */
static int wishes(const Spread *s, const Step *step, int round, Wish *all) {
  int n = 0;
  for (int f = 0; f < step->n_factors; f++) {
    Wish w = {.factor = f};
    w.axes = wanted(s, step, f, direction(step, is_reduced(s, step, f), round));
    if (!w.axes.n) continue;
    weigh(s, step, &w);
    all[n++] = w;
  }
  if (n > 1) qsort(all, (size_t)n, sizeof *all, by_weight);
  return n;
}

/* ---- the list of steps to be taken ---- */

typedef struct List {
  Spread *s;
  int *stack, n;
  bool *waits;        /* by step: is on the stack */
  int *first, *touch; /* by value id: the steps that touch it, in program order */
  int *makes;         /* by value id: the one that makes it; -1: none */
} List;

static void push(List *l, int step) {
  if (step < 0 || l->waits[step]) return;
  l->waits[step] = true;
  l->stack[l->n++] = step;
}

/* Those that touch a changed value come next: its readers in their order, then what makes it. */
static void changed(List *l, const Value *v, int by) {
  int id = spread_owner(l->s, v)->id, makes = l->makes[id], at = l->first[id + 1];
  if (makes != by) push(l, makes);
  while (at-- > l->first[id])
    if (l->touch[at] != by) push(l, l->touch[at]);
}

/* An element-wise operation brings no operand what its result must not have. */
static void limit(const Spread *s, const Step *step, const Member *m, Axes *x) {
  if (m->result || !step->op || op_info[step->op->kind].cls != OC_EWISE) return;
  for (int i = step->first; i < step->first + step->n; i++) {
    const Member *o = &s->members.v[i];
    const Axes *has = &s->dims[o->v->id][o->d];
    if (o->result && o->factor == m->factor && has->n < x->n && spread_begins(x, has)) *x = *has;
  }
}

static void take(List *l, int step, int round) {
  Spread *s = l->s;
  const Step *t = &s->steps.v[step];
  if (!t->n || t->n_factors > MAX_FACTORS) return;
  Wish all[MAX_FACTORS];
  int n = wishes(s, t, round, all);
  for (int results = 1; results >= 0; results--)
    for (int i = 0; i < n; i++)
      for (int k = t->first; k < t->first + t->n; k++) {
        const Member *m = &s->members.v[k];
        if (m->factor != all[i].factor || m->result != results) continue;
        Axes *has = &s->dims[m->v->id][m->d], want = all[i].axes;
        if (!spread_begins(&want, has)) continue;
        want.n = spread_may_cut(s, m->v, m->d, &want);
        limit(s, t, m, &want);
        if (want.n <= has->n) continue;
        memcpy(has->a, want.a, sizeof *want.a * (size_t)want.n);
        has->n = want.n;
        changed(l, m->v, step);
      }
}

/* Which steps touch which values. */
static void index_values(List *l) {
  Spread *s = l->s;
  int *last = xmalloc(sizeof *last * (size_t)(s->n_values + 1));
  for (int fill = 0; fill < 2; fill++) {
    for (int i = 0; i <= s->n_values; i++) last[i] = -1;
    for (int i = 0; i < s->steps.n; i++)
      for (int k = s->steps.v[i].first; k < s->steps.v[i].first + s->steps.v[i].n; k++) {
        const Member *m = &s->members.v[k];
        int id = spread_owner(s, m->v)->id;
        if (m->result) l->makes[id] = i;
        if (last[id] == i) continue;
        last[id] = i;
        if (fill) l->touch[l->first[id + 1]++] = i;
        else l->first[id + 1]++;
      }
    if (fill) break;
    int sum = 0;
    for (int i = 0; i < s->n_values; i++) { /* first[i + 1]: where the next of value i goes */
      int n = l->first[i + 1];
      l->first[i + 1] = sum;
      sum += n;
    }
    l->touch = xmalloc(sizeof *l->touch * (size_t)(sum + 1));
  }
  free(last);
}

static void flow(List *l, int round) {
  for (int i = l->s->steps.n - 1; i >= 0; i--) push(l, i);
  while (l->n) {
    int step = l->stack[--l->n];
    l->waits[step] = false;
    take(l, step, round);
  }
}

void spread_flow(Spread *s) {
  make_factors(s);
  List l = {.s = s};
  l.stack = xmalloc(sizeof *l.stack * (size_t)(s->steps.n + 1));
  l.waits = xcalloc((size_t)s->steps.n + 1, sizeof *l.waits);
  l.first = xcalloc((size_t)s->n_values + 2, sizeof *l.first);
  l.makes = xmalloc(sizeof *l.makes * (size_t)(s->n_values + 1));
  for (int i = 0; i <= s->n_values; i++) l.makes[i] = -1;
  index_values(&l);
  for (int round = 0; round < ROUNDS; round++) flow(&l, round);
  free(l.stack);
  free(l.waits);
  free(l.first);
  free(l.touch);
  free(l.makes);
}
