/* Merging places and packing the arena.
 *
 * Two places become one when a value may take the memory of another: what a loop body computes for
 * a carried value (no copy at its end), a result computed in place of an operand that dies, the
 * initial value of a carried place. A result of main may take a donated argument's memory when
 * every read of the argument comes before the first write.
 *
 * Packing: places alive at the same time do not overlap. Each takes the smallest gap that holds it,
 * in order of birth or, where that wastes memory, the largest place first. Large places are whole
 * pages: a load waits for stores under way whose address within the page is its own, so kernels that
 * read some places and write another are fastest where all begin at the same place of a page (a
 * gradient of GELU whose input lay half a page further: 3.7 ms instead of 2.1). */
#include <stdlib.h>

#include "base/units.h"
#include "compile/plan/plan_priv.h"

#define ALIGN 64
#define PAGE 4096
#define LARGE (16 * PAGE) /* rounding up to pages costs a sixteenth at most */
#define MOST_BYTES 0x1p62 /* of all values, so that no place lies beyond 64 bits */
#define MANY 8192         /* places that are packed in order of birth only */
#define MAX_UPDATES 1024  /* of one carried value in one turn of its loop */

/* May out `o` of the step be written over its input `k`? */
static bool in_place(Builder *b, const Step *s, int k, int o) {
  if (s->kind == STEP_COPY) return true;
  /* a step that runs once for each process would read again what it has overwritten for several */
  if (s->out[o] >= 0 && s->owners != b->places.v[s->out[o]].owners) return false;
  if (s->kind == STEP_OP) {
    for (int i = 0; i < s->n_in; i++) /* read while it is written */
      if (i != k && plan_root(b, s->in[i]) == plan_root(b, s->in[k])) return false;
    return o == 0 && b->target->in_place && b->target->in_place(b->target->arg, s->op) == k + 1;
  }
  if (s->kind != STEP_FUSED || !s->fusion->in_place[k]) return false;
  const FusionOut *out = &s->fusion->out[o];
  for (int i = 0; i < s->n_in; i++) /* the same memory under another name */
    if (i != k && plan_root(b, s->in[i]) == plan_root(b, s->in[k]) && !s->fusion->in_place[i])
      return false;
  return out->full &&
         dtype_bytes(out->v->type->dtype) == dtype_bytes(s->fusion->in[k]->type->dtype);
}

static void merge(Builder *b, int from, int to) {
  Place *f = &b->places.v[from], *t = &b->places.v[to];
  b->merged.v[from] = to;
  t->begin = MIN(t->begin, f->begin);
  t->end = MAX(t->end, f->end);
  if (b->first_read[from] < 0) return;
  if (b->first_read[to] < 0) b->first_read[to] = b->first_read[from];
  else b->reads.v[b->last_read[to]].next = b->first_read[from];
  b->last_read[to] = b->last_read[from];
}

static void chain_reads(Builder *b) {
  size_t n = (size_t)b->places.n + 1;
  b->first_read = xmalloc(n * sizeof(int));
  b->last_read = xmalloc(n * sizeof(int));
  for (int i = 0; i < b->places.n; i++) b->first_read[i] = b->last_read[i] = -1;
  for (int i = 0; i < b->reads.n; i++) {
    int place = plan_root(b, b->reads.v[i].place);
    b->reads.v[i].next = -1;
    if (b->first_read[place] < 0) b->first_read[place] = i;
    else b->reads.v[b->last_read[place]].next = i;
    b->last_read[place] = i;
  }
}

static void index_steps(const Block *blk, const Step **by_id, const Step **by_pos) {
  for (int i = 0; i < blk->n; i++) {
    const Step *s = &blk->steps[i];
    by_id[s->id] = by_pos[s->pos] = s;
    for (int k = 0; k < s->n_blocks; k++) index_steps(&s->blocks[k], by_id, by_pos);
  }
}

static int out_of(Builder *b, const Step *s, int place) {
  for (int i = 0; i < s->n_out; i++)
    if (plan_root(b, s->out[i]) == place) return i;
  return -1;
}

/* No read of `place` within [begin, end] comes after the write of `by` at position w; a read at w
 * itself must be in place. */
static bool read_before(Builder *b, const Step *const *steps, int place, int begin, int end, int w,
                        int by) {
  for (int i = b->first_read[place]; i >= 0; i = b->reads.v[i].next) {
    const Read *r = &b->reads.v[i];
    if (r->pos < begin || r->pos > end || r->pos < w) continue;
    if (r->pos > w || r->step < 0) return false;
    const Step *s = steps[r->step];
    int o = out_of(b, s, by);
    if (o < 0 || !in_place(b, s, r->operand, o)) return false;
  }
  return true;
}

static int first_write(Builder *b, int place) { return b->places.v[place].begin; }

/* The place of the same size that the step which makes `at` may make it in; -1. */
static int written_over(Builder *b, const Step *const *by_pos, int at) {
  const Place *p = &b->places.v[at];
  const Step *s = by_pos[p->begin];
  int o = s ? out_of(b, s, at) : -1;
  for (int k = 0; o >= 0 && k < s->n_in; k++) {
    int in = plan_root(b, s->in[k]);
    if (in >= 0 && in != at && b->places.v[in].bytes == p->bytes &&
        b->places.v[in].owners == p->owners && in_place(b, s, k, o))
      return in;
  }
  return -1;
}

/* What is written over step after step, x.at[i].set(..).at[j].set(..), from the value in `to` on
 * until `from`, last first; how many, 0: something else, or `to` is read later in the block. */
static int find_updates(Builder *b, const Step *const *steps, const Step *const *by_pos,
                        const Body *y, int from, int to, int *link) {
  int n = 0;
  for (int at = from; at != to;) {
    const Place *p = &b->places.v[at];
    if (n == MAX_UPDATES || p->kind != PLACE_ARENA || p->begin < y->begin || p->end > y->end ||
        (n && p->end != first_write(b, link[n - 1])))
      return 0;
    link[n++] = at;
    int next = written_over(b, by_pos, at);
    if (next < 0) return 0;
    at = next;
  }
  if (!n) return 0;
  int first = link[n - 1];
  return read_before(b, steps, to, y->begin, y->end, first_write(b, first), first) ? n : 0;
}

/* Updates of a carried value become one place, whose first write is where that is read last. */
static void merge_updates(Builder *b, const Step *const *steps, const Step *const *by_pos,
                          const Body *y, int from, int to) {
  int link[MAX_UPDATES], n = find_updates(b, steps, by_pos, y, from, to, link);
  for (int i = 1; i < n; i++) merge(b, link[i], from);
}

/* ---- branches that update a value or leave it as it is ---- */

#define MAX_BRANCHES 64

typedef struct Case {
  const Body *branch[MAX_BRANCHES];
  int n, end;
} Case;

/* All branches of the case of which body k is the first. */
static bool find_case(const Builder *b, int k, Case *c) {
  *c = (Case){0};
  const Body *y = &b->bodies.v[k];
  if (y->loop) return false;
  for (int j = 0; j < b->bodies.n; j++) {
    if (b->bodies.v[j].to != y->to) continue;
    if (j < k || c->n == MAX_BRANCHES) return false;
    c->branch[c->n++] = &b->bodies.v[j];
    c->end = MAX(c->end, b->bodies.v[j].end);
  }
  return true;
}

/* Does nobody want the value in `x` after the case, but as `result`, which is in the loop's next turn
 * what x was, perhaps with further updates? */
static bool is_given_up(Builder *b, const Step *const *steps, const Step *const *by_pos,
                        const Case *c, int x, int result) {
  int link[MAX_UPDATES];
  const Place *p = &b->places.v[x];
  if (p->kind == PLACE_ARENA && p->end <= c->end) return true;
  if (p->kind != PLACE_ARENA && p->kind != PLACE_RESULT) return false;
  for (int k = 0; k < b->bodies.n; k++) {
    const Body *y = &b->bodies.v[k];
    if (!y->loop || y->begin > c->branch[0]->begin || y->end < c->end) continue;
    for (int i = 0; i < y->n; i++) {
      int from = plan_root(b, y->from[i]);
      if (plan_root(b, y->to[i]) != x ||
          (from != result && !find_updates(b, steps, by_pos, y, from, result, link)))
        continue;
      for (int r = b->first_read[x]; r >= 0; r = b->reads.v[r].next)
        if (b->reads.v[r].pos > c->end && b->reads.v[r].pos <= y->end) return false;
      return true;
    }
  }
  return false;
}

/* The place from outside that result i is in every branch, updated there or not; -1. */
static int value_updated(Builder *b, const Step *const *steps, const Step *const *by_pos,
                         const Case *c, int i, int result) {
  int x = plan_root(b, c->branch[0]->from[i]), link[MAX_UPDATES];
  for (int n = 0; x >= 0 && b->places.v[x].begin >= c->branch[0]->begin; n++)
    x = n < MAX_UPDATES ? written_over(b, by_pos, x) : -1;
  if (x < 0 || x == result || b->places.v[x].bytes != b->places.v[result].bytes ||
      b->places.v[x].owners != b->places.v[result].owners ||
      !is_given_up(b, steps, by_pos, c, x, result))
    return -1;
  for (int k = 0; k < c->n; k++) {
    int from = plan_root(b, c->branch[k]->from[i]);
    if (from != x && !find_updates(b, steps, by_pos, c->branch[k], from, x, link)) return -1;
  }
  return x;
}

static void merge_cases(Builder *b, const Step *const *steps, const Step *const *by_pos) {
  Case c;
  for (int k = 0; k < b->bodies.n; k++) {
    if (!find_case(b, k, &c)) continue;
    for (int i = 0; i < c.branch[0]->n; i++) {
      int result = plan_root(b, c.branch[0]->to[i]);
      if (result < 0 || b->places.v[result].kind != PLACE_ARENA) continue;
      int x = value_updated(b, steps, by_pos, &c, i, result), link[MAX_UPDATES];
      for (int j = 0; x >= 0 && j < c.n; j++) {
        int from = plan_root(b, c.branch[j]->from[i]);
        if (from == x) continue;
        int n = find_updates(b, steps, by_pos, c.branch[j], from, x, link);
        for (int m = 0; m < n; m++) merge(b, link[m], result);
      }
      if (x >= 0) merge(b, result, x);
    }
  }
}

static void merge_bodies(Builder *b, const Step *const *steps, const Step *const *by_pos) {
  for (int k = 0; k < b->bodies.n; k++) {
    const Body *y = &b->bodies.v[k];
    for (int i = 0; i < y->n; i++) {
      int from = plan_root(b, y->from[i]), to = plan_root(b, y->to[i]);
      if (from < 0 || from == to) continue;
      const Place *f = &b->places.v[from], *t = &b->places.v[to];
      if (f->kind != PLACE_ARENA || (t->kind != PLACE_ARENA && t->kind != PLACE_RESULT)) continue;
      if (f->bytes != t->bytes || f->owners != t->owners || f->begin < y->begin || f->end > y->end)
        continue;
      if (y->loop) merge_updates(b, steps, by_pos, y, from, to);
      if (!read_before(b, steps, to, y->begin, y->end, first_write(b, from), from)) continue;
      bool other =
          false; /* another value of this body merged with it already and alive at the same time */
      for (int j = 0; j < y->n; j++) other |= j != i && plan_root(b, y->from[j]) == to;
      if (!other) merge(b, from, to);
    }
  }
}

/* Does a result that takes over an argument's memory still find it unread when its first write is
 * that of `in`? */
static bool keeps_arg(Builder *b, const Step *const *steps, int out, int in) {
  int arg = b->plan->results[b->places.v[out].index].reuse_arg;
  if (arg < 0) return true;
  arg = b->plan->value_place[b->plan->main->body->args[arg]->id];
  return read_before(b, steps, arg, 0, b->pos, first_write(b, in), in);
}

static void merge_in_place(Builder *b, const Step *const *steps, const Block *blk) {
  for (int n = 0; n < blk->n; n++) {
    const Step *s = &blk->steps[n];
    for (int o = 0; o < s->n_out; o++) {
      int out = plan_root(b, s->out[o]);
      if (out < 0) continue;
      for (int k = 0; k < s->n_in; k++) {
        int in = plan_root(b, s->in[k]);
        if (in < 0 || in == out) continue;
        const Place *pi = &b->places.v[in], *po = &b->places.v[out];
        if (pi->kind != PLACE_ARENA || (po->kind != PLACE_ARENA && po->kind != PLACE_RESULT))
          continue;
        if (pi->end != s->pos || po->begin != s->pos || pi->bytes != po->bytes ||
            pi->owners != po->owners)
          continue;
        if (!in_place(b, s, k, o)) continue;
        if (po->kind != PLACE_RESULT) merge(b, out, in);
        else if (keeps_arg(b, steps, out, in)) merge(b, in, out);
        else continue;
        break;
      }
    }
    for (int k = 0; k < s->n_blocks; k++) merge_in_place(b, steps, &s->blocks[k]);
  }
}

/* Results that may take a donated argument's memory: those that the program asks for, or any. */
static void reuse_args(Builder *b, const Step *const *steps, bool asked_for) {
  Plan *p = b->plan;
  int n = p->main->body->n_args;
  bool *taken = xcalloc((size_t)n + 1, 1);
  for (int j = 0; j < p->n_results; j++)
    if (p->results[j].reuse_arg >= 0) taken[p->results[j].reuse_arg] = true;
  for (int i = 0; i < n; i++) {
    Attr *alias = attrs_get(p->main->arg_attrs[i], p->main->n_arg_attrs[i], "tf.aliasing_output");
    int arg = p->value_place[p->main->body->args[i]->id];
    if (arg < 0 || b->places.v[arg].kind != PLACE_ARG || taken[i] || (asked_for && !alias))
      continue;
    for (int j = 0; j < p->n_results; j++) {
      if (asked_for && alias->i != j) continue;
      int at = plan_root(b, p->results[j].place);
      if (at < 0 || p->results[j].reuse_arg >= 0) continue;
      const Place *q = &b->places.v[at];
      if (q->kind != PLACE_RESULT || q->index != j || q->bytes != b->places.v[arg].bytes ||
          q->owners != b->places.v[arg].owners)
        continue;
      if (!read_before(b, steps, arg, 0, b->pos, q->begin, at)) continue;
      p->results[j].reuse_arg = i;
      break;
    }
  }
  free(taken);
}

void plan_merge(Builder *b) {
  const Step **steps = xcalloc((size_t)b->n_steps + 1, sizeof *steps);
  const Step **by_pos = xcalloc((size_t)b->pos + 1, sizeof *by_pos);
  index_steps(&b->plan->body, steps, by_pos);
  chain_reads(b);
  merge_cases(b, steps, by_pos);
  merge_bodies(b, steps, by_pos);
  reuse_args(b, steps, true);
  merge_in_place(b, steps, &b->plan->body);
  reuse_args(b, steps, false);
  free(b->first_read);
  free(b->last_read);
  free(steps);
  free(by_pos);
}

/* ---- packing ---- */

typedef struct Slot {
  int place, begin, end;
  int64_t offset, bytes; /* multiples of `align` */
  int64_t align;
} Slot;

typedef struct Packed { /* slots that have their offset, by offset */
  Slot **v;
  int n;
} Packed;

static int by_begin(const void *a, const void *b) {
  const Slot *x = a, *y = b;
  if (x->begin != y->begin) return x->begin - y->begin;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return x->place - y->place;
}

static int by_bytes(const void *a, const void *b) {
  const Slot *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return by_begin(a, b);
}

static int64_t rounded(int64_t bytes, int64_t align) { return (bytes + align - 1) / align * align; }

/* The smallest gap between the slots that are alive with it. */
static void place_slot(Packed *p, Slot *s) {
  int64_t best = -1, best_gap = INT64_MAX, at = 0;
  for (int j = 0; j <= p->n; j++) {
    const Slot *o = j < p->n ? p->v[j] : NULL;
    if (o && (o->end < s->begin || o->begin > s->end)) continue;
    at = rounded(at, s->align);
    int64_t gap = o ? o->offset - at : INT64_MAX - 1;
    if (gap >= s->bytes && gap < best_gap) {
      best = at;
      best_gap = gap;
    }
    if (o) at = MAX(at, o->offset + o->bytes);
  }
  s->offset = best;
  int k = p->n++;
  for (; k > 0 && p->v[k - 1]->offset > best; k--) p->v[k] = p->v[k - 1];
  p->v[k] = s;
}

/* In order of birth the dead are forgotten, which makes it linear in practice. */
static int64_t pack(Slot *slots, int n, bool births) {
  qsort(slots, (size_t)n, sizeof *slots, births ? by_begin : by_bytes);
  Packed p = {xmalloc(sizeof *p.v * (size_t)(n + 1)), 0};
  int64_t top = 0;
  for (int i = 0; i < n; i++) {
    int k = 0;
    for (int j = 0; births && j < p.n; j++)
      if (p.v[j]->end >= slots[i].begin) p.v[k++] = p.v[j];
    if (births) p.n = k;
    place_slot(&p, &slots[i]);
    top = MAX(top, slots[i].offset + slots[i].bytes);
  }
  free(p.v);
  return top;
}

/* Bytes alive at the worst time: no packing can do with less. */
static int64_t alive_at_once(const Slot *slots, int n) {
  int last = 0;
  for (int i = 0; i < n; i++) last = MAX(last, slots[i].end);
  int64_t *change = xcalloc((size_t)last + 2, sizeof *change), alive = 0, most = 0;
  for (int i = 0; i < n; i++) {
    change[slots[i].begin] += slots[i].bytes;
    change[slots[i].end + 1] -= slots[i].bytes;
  }
  for (int t = 0; t <= last; t++) {
    alive += change[t];
    most = MAX(most, alive);
  }
  free(change);
  return most;
}

static int64_t pack_best(Slot *slots, int n) {
  int64_t top = pack(slots, n, true);
  if (n > MANY || top <= alive_at_once(slots, n)) return top;
  int64_t by_size = pack(slots, n, false);
  return by_size <= top ? by_size : pack(slots, n, true);
}

static void rename_blocks(Builder *b, Block *blk) {
  for (int i = 0; i < blk->n; i++) {
    Step *s = &blk->steps[i];
    for (int k = 0; k < s->n_in; k++) s->in[k] = plan_root(b, s->in[k]);
    for (int k = 0; k < s->n_out; k++) s->out[k] = plan_root(b, s->out[k]);
    s->pred = plan_root(b, s->pred);
    for (int k = 0; k < s->n_blocks; k++) rename_blocks(b, &s->blocks[k]);
  }
  for (int i = 0; i < blk->n_results; i++) {
    blk->from[i] = plan_root(b, blk->from[i]);
    blk->to[i] = plan_root(b, blk->to[i]);
  }
}

Err *plan_pack(Builder *b) {
  Plan *p = b->plan;
  for (int each = 0; each < 2; each++) {
    Slot *slots = xcalloc((size_t)b->places.n + 1, sizeof *slots);
    int n = 0;
    double all = 0;
    for (int i = 0; i < b->places.n; i++) {
      const Place *q = &b->places.v[i];
      if (q->kind != PLACE_ARENA || b->merged.v[i] >= 0 || (q->owners != NULL) != each ||
          q->begin < 0)
        continue;
      all += (double)q->bytes;
      if (all > MOST_BYTES) break;
      int64_t align = q->bytes >= LARGE ? PAGE : ALIGN;
      slots[n++] = (Slot){i, q->begin, q->end, 0, rounded(q->bytes, align), align};
    }
    if (all > MOST_BYTES) {
      free(slots);
      char size[UNITS_TEXT];
      return err_new(ERR_EXHAUSTED, "temporary values of %s are more than memory can be",
                     units_bytes(size, all));
    }
    int64_t top = pack_best(slots, n);
    for (int i = 0; i < n; i++) b->places.v[slots[i].place].offset = slots[i].offset;
    free(slots);
    *(each ? &p->arena_each_bytes : &p->arena_bytes) = top;
  }
  rename_blocks(b, &p->body);
  for (int j = 0; j < p->n_results; j++) p->results[j].place = plan_root(b, p->results[j].place);
  int n = p->main->n_values;
  for (int i = 0; i < n; i++) p->value_place[i] = plan_root(b, p->value_place[i]);
  p->n_places = b->places.n;
  p->places = arena_dup(p->mem, b->places.v, sizeof(Place) * (size_t)b->places.n);
  return NULL;
}
