/* Running strips: the same walks over the same loops as generated code (walk.c, loops.c). */
#include "dev/cpu/vinterp/vinterp_run.h"

static const Loop *vector_loop(const Run *r) {
  const Dag *d = &r->s->d;
  return d->vloop >= 0 ? &d->loops[d->vloop] : NULL;
}

static char *slot_at(const Run *r, int slot) { return r->slots + (size_t)slot * r->s->strip_bytes; }

/* Of a form at the line's beginning, the vector loop's index 0. */
static int64_t at_line(const Run *r, const Affine *a) {
  const Dag *d = &r->s->d;
  int64_t off = a->off;
  for (int i = 0; i < d->n_loops; i++)
    if (i != d->vloop && d->loops[i].extent > 1) off += a->coef[d->loops[i].last] * r->iv[i];
  return off;
}

static void write_one(const Run *r, DType t, void *base, int64_t at, uint64_t v) {
  const void *in[3] = {&v};
  r->s->simd->fn[strip_store(r->s->simd, t)]((char *)base + at * dtype_bytes(t), in, 0, 1);
}

static uint64_t number(const Run *r, DType t, int64_t i) {
  float f = (float)(int32_t)i;
  double d = t == DT_F64 ? (double)i : (double)f;
  uint32_t u = (uint32_t)i;
  uint64_t v = (uint64_t)(t == DT_I32 ? (int32_t)i : t == DT_U32 ? u : i);
  if (t == DT_F32) memcpy(&u, &f, 4);
  if (t == DT_F32 || t == DT_F64) memcpy(&v, &d, 8);
  return r->s->simd->bytes == 8 ? v : u;
}

static void call(const Run *r, const Do *o, const void *const *from, void *to, int64_t n) {
  const void *in[MOST_OPERANDS] = {0};
  for (int k = 0; k < o->n_in; k++) in[k] = (o->same >> k & 1 ? r->scalar : from)[o->in[k]];
  r->s->simd->fn[o->fn](to, in, o->same, n);
  if (o->after >= 0) r->s->simd->fn[o->after](to, (const void *[3]){to}, 0, n);
}

/* Element i from `at` + i * stride on, moved by the index vectors. */
static void gather(const Run *r, const Do *o, const void *const *from, int64_t at, int64_t stride,
                   void *to, int64_t n) {
  const StripSimd *simd = r->s->simd;
  const Op *op = r->s->d.nodes.v[o->node].op;
  const Type *t = op->operands[0]->type;
  const int64_t *map, *sizes;
  int64_t strides[CPU_MAX_RANK];
  op_ints(op, "start_index_map", &map);
  op_ints(op, "slice_sizes", &sizes);
  cpu_strides(t, strides);
  DType index = op->operands[1]->type->dtype;
  for (int64_t i = 0; i < n; i++, at += stride) {
    int64_t e = at;
    for (int k = 0; k < o->n_in; k++) {
      bool same = o->same >> k & 1;
      uint64_t v = strip_number(simd, (same ? r->scalar : from)[o->in[k]], same ? 0 : i);
      int64_t last = t->dims[map[k]] - sizes[map[k]], x = (int64_t)v;
      if (simd->bytes == 4 && index != DT_U32) x = (int32_t)v;
      if (index == DT_U64) x = (int64_t)MIN(v, (uint64_t)INT64_MAX);
      e += MIN(MAX(x, 0), last) * strides[map[k]];
    }
    strip_set(simd, to, i, strip_element(simd, o->t, r->bufs[o->buf], e));
  }
}

/* ---- conditions ---- */

/* Places of the vector loop for which 0 <= at + stride * i < size. */
static void range_of(int64_t at, int64_t stride, int64_t size, int64_t *from, int64_t *to) {
  if (stride < 0) at = size - 1 - at, stride = -stride; /* the same from the other end */
  if (!stride) {
    *to = at >= 0 && at < size ? INT64_MAX : 0;
    return;
  }
  if (at < 0) *from = (-at + stride - 1) / stride;
  *to = at < size ? (size - at + stride - 1) / stride : 0;
}

static void find_conditions(Run *r) {
  const Dag *d = &r->s->d;
  r->holds_from[0] = 0;
  r->holds_to[0] = INT64_MAX;
  for (int i = 1; i < d->masks.n; i++) {
    const DagMask *m = &d->masks.v[i];
    int64_t from = 0, to = INT64_MAX;
    range_of(at_line(r, &m->form), dag_vector_stride(d, &m->form), m->size, &from, &to);
    r->holds_from[i] = MAX(from, r->holds_from[m->parent]);
    r->holds_to[i] = MIN(to, r->holds_to[m->parent]);
  }
}

static bool holds(const Run *r, int mask) { return r->holds_from[mask] < r->holds_to[mask]; }

/* The operands of a join to a strip of n from lo on. */
static void join(const Run *r, const Do *o, char *to, int64_t lo, int64_t n) {
  const DagNode *x = &r->s->d.nodes.v[o->node];
  const StripSimd *simd = r->s->simd;
  const int64_t bytes = simd->bytes;
  for (int k = o->n_in - 1; k >= 0; k--) {
    bool same = o->same >> k & 1, rest = k == o->n_in - 1;
    int64_t a = rest ? 0 : MAX(r->holds_from[x->in_mask[k]] - lo, 0),
            b = rest ? n : MIN(r->holds_to[x->in_mask[k]] - lo, n);
    const char *from = (same ? r->scalar : r->strip)[o->in[k]];
    if (a >= b) continue;
    if (same) strip_fill(simd, to + a * bytes, strip_number(simd, from, 0), b - a);
    else memcpy(to + a * bytes, from + a * bytes, (size_t)((b - a) * bytes));
  }
}

/* One of them, the same along the line. */
static uint64_t join_one(const Run *r, const Do *o) {
  int k = 0;
  while (k < o->n_in - 1 && !holds(r, r->s->d.nodes.v[o->node].in_mask[k])) k++;
  return strip_number(r->s->simd, r->scalar[o->in[k]], 0);
}

/* ---- a line: the vector loop at one place of all the others ---- */

static uint64_t read_one(const Run *r, const Do *o) {
  if (!holds(r, o->mask)) return 0;
  return strip_element(r->s->simd, o->t, r->bufs[o->buf], at_line(r, o->form));
}

/* What is the same along it. */
static void begin_line(Run *r, int64_t n) {
  find_conditions(r);
  for (int i = 0; i < r->w->dos.n; i++) {
    const Do *o = &r->w->dos.v[i];
    if (o->vec) {
      const Affine *form = o->out >= 0 ? &r->s->d.out_lin[o->out] : o->form;
      if (o->out >= 0 || o->kind != DO_FN) r->at[o->node] = at_line(r, form);
      continue;
    }
    void *v = (void *)(uintptr_t)r->scalar[o->node];
    const StripSimd *simd = r->s->simd;
    int lanes = simd->lanes;
    if (o->kind == DO_READ) strip_fill(simd, v, read_one(r, o), lanes);
    if (o->kind == DO_JOIN) strip_fill(simd, v, join_one(r, o), lanes);
    if (o->kind == DO_IOTA) strip_fill(simd, v, number(r, o->t, at_line(r, o->form)), lanes);
    if (o->kind == DO_FN) call(r, o, r->scalar, v, lanes);
    if (o->kind == DO_GATHER) gather(r, o, r->scalar, at_line(r, o->form), 0, v, lanes);
    if (o->slot < 0) continue;
    r->strip[o->node] = slot_at(r, o->slot);
    strip_fill(simd, slot_at(r, o->slot), strip_number(simd, v, 0), MIN(n, STRIP));
  }
}

/* Elements of memory that are `step` of `to` and `from_step` of `from` apart. */
static void move_apart(int64_t bytes, void *to, int64_t to_step, const void *from,
                       int64_t from_step, int64_t n) {
#define MOVE(T) \
  for (int64_t i = 0; i < n; i++) ((T *)to)[i * to_step] = ((const T *)from)[i * from_step]
  switch (bytes) {
  case 1: MOVE(uint8_t); break;
  case 2: MOVE(uint16_t); break;
  case 4: MOVE(uint32_t); break;
  default: MOVE(uint64_t); break;
  }
#undef MOVE
}

static void read_strip(Run *r, const Do *o, int64_t lo, int64_t n) {
  const Dag *d = &r->s->d;
  int64_t stride = dag_vector_stride(d, o->form), at = r->at[o->node] + stride * lo;
  const void *base = r->bufs[o->buf];
  const StripSimd *simd = r->s->simd;
  if (o->slot < 0) {
    r->strip[o->node] = (const char *)base + at * simd->bytes;
    return;
  }
  char *to = slot_at(r, o->slot);
  r->strip[o->node] = to;
  if (o->mask) { /* what lies elsewhere may not be there */
    int64_t a = MAX(r->holds_from[o->mask] - lo, 0), b = MIN(r->holds_to[o->mask] - lo, n);
    strip_fill(simd, to, 0, n);
    if (a >= b) return;
    to += a * simd->bytes, at += stride * a, n = b - a;
  }
  const int64_t bytes = dtype_bytes(o->t);
  const void *in[3] = {(const char *)base + at * bytes};
  uint64_t row[STRIP];
  if (stride != 1) {
    move_apart(bytes, row, 1, in[0], stride, n);
    in[0] = row;
  }
  simd->fn[strip_load(simd, o->t)](to, in, 0, n);
}

static void number_strip(Run *r, const Do *o, int64_t lo, int64_t n) {
  char *to = slot_at(r, o->slot);
  int64_t stride = dag_vector_stride(&r->s->d, o->form), at = r->at[o->node] + stride * lo;
  r->strip[o->node] = to;
  for (int64_t i = 0; i < n; i++, at += stride) strip_set(r->s->simd, to, i, number(r, o->t, at));
}

/* Complex numbers, their parts one after the other. */
static void store_pairs(const Run *r, int out, int64_t lo, int64_t n) {
  const Dag *d = &r->s->d;
  const Affine *form = &d->out_lin[out];
  int64_t stride = dag_vector_stride(d, form), at = at_line(r, form) + stride * lo;
  const StripSimd *simd = r->s->simd;
  void *base = r->bufs[r->s->f->n_in + out];
  for (int part = 0; part < 2; part++) {
    int from = r->s->part[2 * out + part];
    bool same = !d->nodes.v[from % d->nodes.n].vec;
    const void *v = (same ? r->scalar : r->strip)[from];
    for (int64_t i = 0; i < n; i++)
      strip_set(simd, base, 2 * (at + stride * i) + part, strip_number(simd, v, same ? 0 : i));
  }
}

static void store_strip(Run *r, int out, int64_t lo, int64_t n) {
  if (dtype_is_complex(r->s->f->out[out].v->type->dtype)) {
    store_pairs(r, out, lo, n);
    return;
  }
  const Dag *d = &r->s->d;
  DType t = r->s->f->out[out].v->type->dtype;
  const Affine *form = &d->out_lin[out];
  int64_t stride = dag_vector_stride(d, form), at = at_line(r, form) + stride * lo;
  void *base = r->bufs[r->s->f->n_in + out];
  const void *from[3] = {r->strip[r->s->out[out]]};
  const StripSimd *simd = r->s->simd;
  const int64_t bytes = dtype_bytes(t);
  char *to = (char *)base + at * bytes;
  if (stride == 1) {
    simd->fn[strip_store(simd, t)](to, from, 0, n);
    return;
  }
  if (!stride) n = 1;
  uint64_t row[STRIP];
  for (int64_t i = 0; i < n; i += STRIP) {
    const void *part[3] = {(const char *)from[0] + i * simd->bytes};
    simd->fn[strip_store(simd, t)](row, part, 0, MIN(STRIP, n - i));
    move_apart(bytes, to + i * stride * bytes, stride, row, 1, MIN(STRIP, n - i));
  }
}

/* The part of it in this task's memory for partial results. */
static char *part_of(const Run *r, int64_t task, int id) {
  const SplitShape *h = &r->s->split;
  char *p = r->bufs[r->s->f->n_in + r->s->f->n_out];
  int64_t row = h->row * r->s->simd->bytes;
  return p + id * ((h->tasks * row + 63) / 64 * 64) + task * row;
}

static int64_t suffix_at(const Run *r, int64_t lo) {
  const Dag *d = &r->s->d;
  int64_t at = lo, stride = 1;
  for (int i = d->n_loops - 1; i >= r->s->split.first_suffix; i--) {
    if (i != d->vloop) at += stride * r->iv[i];
    stride *= d->loops[i].extent;
  }
  return at;
}

/* What a task of a split fusion with a suffix adds to: as many numbers as the suffix has. */
static char *sums_along(const Run *r, int64_t task, int id) {
  return r->s->split.in_registers ? sums_of(r, id) : part_of(r, task, id);
}

static void take_in(Run *r, int64_t task, int64_t lo, int64_t n) {
  const VInterp *s = r->s;
  for (int i = 0; i < r->w->sums.n; i++) {
    const StripReduce *q = &s->reduces[r->w->sums.v[i]];
    if (!r->in_part && !s->across) {
      if (q->body) sums_take(r, q, n);
      else s->simd->sum[q->sum](sums_of(r, q->first), r->strip[q->in[0]], n, r->w->count);
      continue;
    }
    char *to[MOST_SUMS];
    const char *x[MOST_SUMS];
    for (int k = 0; k < q->n; k++) {
      to[k] = s->across ? sums_of(r, q->first + k)
                        : sums_along(r, task, q->first + k) + suffix_at(r, lo) * s->simd->bytes;
      x[k] = r->strip[q->in[k]];
    }
    sums_combine(r, q, to, x, n);
  }
}

static char *row_at(const Run *r, int row, int64_t lo) {
  return r->rows + (size_t)row * r->s->row_bytes + lo * r->s->simd->bytes;
}

static const char *sum_of_node(const Run *r, int node) {
  const DagNode *n = &r->s->d.nodes.v[node];
  return sums_of(r, r->s->reduces[n->reduce].first + n->v->index);
}

static void do_strip(Run *r, int64_t task, int64_t lo, int64_t n) {
  for (int i = 0; i < r->w->dos.n; i++) {
    const Do *o = &r->w->dos.v[i];
    if (!o->vec) continue;
    if (o->kind == DO_READ) {
      read_strip(r, o, lo, n);
    } else if (o->kind == DO_IOTA) {
      number_strip(r, o, lo, n);
    } else if (o->kind == DO_JOIN) {
      char *to = o->row >= 0 ? row_at(r, o->row, lo) : slot_at(r, o->slot);
      join(r, o, to, lo, n);
      r->strip[o->node] = to;
    } else if (o->kind == DO_PAIR) {
      continue; /* stored from its parts */
    } else if (o->kind == DO_SUM) {
      r->strip[o->node] = sum_of_node(r, o->node);
    } else if (o->kind == DO_KEPT) {
      r->strip[o->node] = row_at(r, o->row, lo);
    } else {
      char *to = slot_at(r, MAX(o->slot, 0));
      int64_t stride = o->kind == DO_GATHER ? dag_vector_stride(&r->s->d, o->form) : 0;
      if (o->row >= 0) to = row_at(r, o->row, lo);
      if (o->out >= 0)
        to = (char *)r->bufs[r->s->f->n_in + o->out] + (r->at[o->node] + lo) * r->s->simd->bytes;
      if (o->kind == DO_FN) call(r, o, r->strip, to, n);
      else gather(r, o, r->strip, r->at[o->node] + stride * lo, stride, to, n);
      r->strip[o->node] = to;
    }
  }
  take_in(r, task, lo, n);
  for (int i = 0; i < r->w->outs.n; i++) store_strip(r, r->w->outs.v[i], lo, n);
}

/* ---- walks ---- */

static void over(Run *r, int64_t task, int64_t lo, int64_t hi) {
  const int64_t n = MIN(r->w->strip, hi - lo);
  for (; lo < hi; lo += n) do_strip(r, task, lo, MIN(n, hi - lo));
}

static void over_blocks(Run *r, int64_t task, int64_t lo, int64_t hi, int64_t step) {
  for (; lo < hi; lo += step * LONG_SUM) {
    over(r, task, lo, MIN(lo + step * LONG_SUM, hi));
    sums_flush(r);
  }
}

static void walk_line(Run *r, int64_t task, bool totals) {
  const Loop *l = vector_loop(r);
  int64_t n = l ? l->extent : 1, step = (int64_t)r->s->simd->lanes * r->w->count;
  int64_t full = r->in_part ? 0 : n / step * step;
  begin_line(r, n);
  if (full <= step) {
    over(r, task, 0, n);
    return;
  }
  if (totals && full >= 2 * LONG_SUM * step) over_blocks(r, task, 0, full, step);
  else over(r, task, 0, full);
  over(r, task, full, n);
}

static bool flush_before(const Run *r, int first) {
  return shape_flush_before(&r->s->d, r->s->simd->lanes, first, r->w->count);
}

static void walk(Run *r, int64_t task, int first, bool totals) {
  const Dag *d = &r->s->d;
  if (first >= d->vloop) {
    walk_line(r, task, totals);
    return;
  }
  bool flushes = totals && flush_before(r, first + 1);
  for (int64_t i = 0; i < d->loops[first].extent; i++) {
    r->iv[first] = i;
    walk(r, task, first + 1, totals);
    if (flushes) sums_flush(r);
  }
}

static void decode(Run *r, int64_t t, int n) {
  for (int i = n - 1; i >= 0; i--) {
    int64_t e = r->s->d.loops[i].extent;
    r->iv[i] = i ? t % e : t;
    t /= e;
  }
}

static Run begin(const VInterp *s, void *const *bufs) {
  char *p = cpu_scratch(s->scratch_bytes);
  int n = 2 * s->d.nodes.n;
  Run r = {.s = s, .w = s->sweep, .bufs = bufs, .strip = (const void **)(void *)p};
  r.scalar = r.strip + n;
  r.at = (int64_t *)(r.scalar + n);
  r.holds_from = r.at + n;
  r.holds_to = r.holds_from + s->d.masks.n;
  char *scalars = (char *)(r.holds_to + s->d.masks.n);
  r.slots = p + s->slots_at;
  r.sums = p + s->sums_at;
  r.temps = p + s->temps_at;
  r.rows = p + s->rows_at;
  for (int i = 0; i < n; i++) {
    bool constant = i < s->d.nodes.n && s->d.nodes.v[i].kind == N_SPLAT;
    r.scalar[i] = (constant ? s->constants : scalars) + (size_t)i * SCALAR_BYTES;
  }
  return r;
}

/* ---- the three kinds ---- */

static void run_loop(Run *r, int64_t begin, int64_t end) {
  const VInterp *s = r->s;
  if (s->d.n_loops <= 1) {
    begin_line(r, end - begin);
    over(r, 0, begin, end);
    return;
  }
  for (int64_t t = begin; t < end; t++) {
    decode(r, t, s->task_loops);
    walk(r, 0, s->task_loops, false);
  }
}

static void run_rows(Run *r, int64_t begin, int64_t end) {
  const VInterp *s = r->s;
  for (int64_t t = begin; t < end; t++) {
    decode(r, t, s->task_loops);
    for (int k = 0; k < s->sweeps; k++) {
      const Sweep *w = r->w = &s->sweep[k];
      if (!w->sums.n && !w->dos.n && !w->outs.n) continue;
      sums_begin(r, w->totals);
      walk(r, 0, s->task_loops, w->totals);
      if (w->totals) sums_end(r);
      sums_results(r);
    }
    r->w = &s->sweep[s->sweeps];
    begin_line(r, 1);
    for (int i = 0; i < r->w->outs.n; i++) {
      int o = r->w->outs.v[i], node = s->out[o];
      write_one(r, s->f->out[o].v->type->dtype, r->bufs[s->f->n_in + o],
                at_line(r, &s->d.out_lin[o]), strip_number(s->simd, r->scalar[node], 0));
    }
  }
}

/* Rows [lo, lo + n) of the last kept loop: element by element, of all of them. */
static void sweep_across(Run *r, int64_t lo, int64_t n) {
  const VInterp *s = r->s;
  int first = s->task_loops + 1;
  int64_t length = shape_row_length(&s->d, first);
  for (int64_t e = 0; e < length; e++) {
    int64_t rest = e;
    for (int i = s->d.n_loops - 1; i >= first; rest /= s->d.loops[i--].extent)
      r->iv[i] = rest % s->d.loops[i].extent;
    begin_line(r, n);
    do_strip(r, 0, lo, n);
  }
}

static void rows_across(Run *r, int64_t lo, int64_t n) {
  const VInterp *s = r->s;
  for (int k = 0; k < s->sweeps; k++) {
    const Sweep *w = r->w = &s->sweep[k];
    for (int i = 0; i < w->sums.n; i++) {
      const StripReduce *q = &s->reduces[w->sums.v[i]];
      for (int j = 0; j < q->n; j++) sums_neutral(r, q, j, sums_of(r, q->first + j), n);
    }
    if (w->sums.n || w->dos.n || w->outs.n) sweep_across(r, lo, n);
    for (int i = 0; i < w->sums.n; i++) {
      const StripReduce *q = &s->reduces[w->sums.v[i]];
      char *sums[MOST_SUMS];
      for (int j = 0; j < q->n; j++) sums[j] = sums_of(r, q->first + j);
      sums_with_init(r, q, sums, n);
    }
  }
  r->w = &s->sweep[s->sweeps];
  begin_line(r, n);
  do_strip(r, 0, lo, n);
}

static void run_across(Run *r, int64_t begin, int64_t end) {
  const VInterp *s = r->s;
  int64_t all = s->d.loops[s->task_loops].extent;
  for (int64_t t = begin; t < end; t++) {
    decode(r, t / s->runs.runs, s->task_loops);
    int64_t lo = t % s->runs.runs * s->runs.length, hi = MIN(lo + s->runs.length, all);
    for (; lo < hi; lo += STRIP) rows_across(r, lo, MIN(STRIP, hi - lo));
  }
}

static void clear_parts(const Run *r, int64_t task) {
  for (int i = 0; i < r->s->d.reduces.n; i++) {
    const StripReduce *q = &r->s->reduces[i];
    for (int k = 0; k < q->n; k++)
      sums_neutral(r, q, k, part_of(r, task, q->first + k), r->s->split.suffix);
  }
}

static void run_parts(Run *r, int64_t first, int64_t end) {
  const VInterp *s = r->s;
  const SplitShape *h = &s->split;
  Sweep w = s->sweep[0];
  r->in_part = h->first_suffix < s->d.n_loops;
  w.count = r->in_part ? 1 : h->count;
  r->w = &w;
  int64_t lanes = s->simd->lanes, r0 = s->d.loops[h->kept_loops].extent;
  for (int64_t t = first; t < end; t++) {
    decode(r, t / h->chunks, h->kept_loops);
    int64_t lo = t % h->chunks * h->length, hi = MIN(lo + h->length, r0);
    if (h->in_registers) sums_begin(r, h->totals);
    else clear_parts(r, t);
    if (h->vector_chunks) {
      int64_t mid = lo + (hi - lo) / lanes * lanes;
      begin_line(r, hi - lo);
      if (h->totals && mid > lo) over_blocks(r, t, lo, mid, lanes);
      else over(r, t, lo, mid);
      over(r, t, mid, hi);
    } else {
      bool turns = h->totals && r->in_part;
      bool flushes = h->totals && !turns && flush_before(r, h->kept_loops + 1);
      for (int64_t i = lo; i < hi; i++) {
        r->iv[h->kept_loops] = i;
        walk(r, t, h->kept_loops + 1, h->totals && !turns);
        if (flushes || (turns && ((i - lo) % LONG_SUM == LONG_SUM - 1 || i == hi - 1)))
          sums_flush(r);
      }
    }
    if (h->totals) sums_end(r);
    for (int i = 0; i < s->d.reduces.n && h->in_registers && !r->in_part; i++)
      sums_collect(r, &s->reduces[i]);
    for (int k = 0; k < s->n_sums && h->in_registers; k++)
      memcpy(part_of(r, t, k), sums_of(r, k), (size_t)(h->suffix * s->simd->bytes));
  }
}

void vinterp_run(void *const *bufs, int64_t first, int64_t end, const void *strips) {
  Run r = begin(strips, bufs);
  switch (r.s->f->kind) {
  case FUSION_LOOP: run_loop(&r, first, end); return;
  case FUSION_ROW: (r.s->across ? run_across : run_rows)(&r, first, end); return;
  case FUSION_SPLIT: run_parts(&r, first, end); return;
  }
}

/* The sums of one reduction over the chunks: [lo, lo + n) of the suffix. */
static void add_chunks(const Run *r, int reduce, int64_t kept, int64_t lo, int64_t n,
                       char *const *sum, char *const *block) {
  const SplitShape *h = &r->s->split;
  const StripReduce *q = &r->s->reduces[reduce];
  int64_t many = shape_finish_block(&r->s->d.reduces.v[reduce], h);
  char *const *to = many < h->chunks ? block : sum;
  for (int k = 0; k < q->n; k++) sums_neutral(r, q, k, sum[k], n);
  for (int64_t c = 0; c < h->chunks; c++) {
    const char *x[MOST_SUMS];
    if (to == block && c % many == 0) sums_neutral(r, q, 0, block[0], n);
    for (int k = 0; k < q->n; k++)
      x[k] = part_of(r, kept * h->chunks + c, q->first + k) + lo * r->s->simd->bytes;
    sums_combine(r, q, to, x, n);
    if (to == block && (c % many == many - 1 || c == h->chunks - 1))
      sums_combine(r, q, sum, (const char *const *)block, n);
  }
}

/* Adds the parts up in the order of the chunks: a task is a strip of the suffix. */
void vinterp_finish(void *const *bufs, int64_t first, int64_t end, const void *strips) {
  Run r = begin(strips, bufs);
  const VInterp *s = r.s;
  const Dag *d = &s->d;
  const SplitShape *h = &s->split;
  int64_t each = (h->suffix + STRIP - 1) / STRIP;
  r.w = &s->sweep[s->sweeps];
  begin_line(&r, 1);
  char *sum[MOST_SUMS], *block[MOST_SUMS];
  for (int k = 0; k < MOST_SUMS; k++) {
    sum[k] = slot_at(&r, k);
    block[k] = slot_at(&r, MOST_SUMS + k);
  }
  for (int64_t t = first; t < end; t++) {
    int64_t kept = t / each, lo = t % each * STRIP, n = MIN(STRIP, h->suffix - lo);
    for (int i = 0; i < d->reduces.n; i++) {
      add_chunks(&r, i, kept, lo, n, sum, block);
      sums_with_init(&r, &s->reduces[i], sum, n);
      for (int o = 0; o < d->n_out; o++) {
        const DagNode *x = &d->nodes.v[d->out[o]];
        if (s->f->out[o].full || x->kind != N_REDUCE || x->reduce != i) continue;
        const void *in[3] = {sum[x->v->index]};
        char *to = r.bufs[s->f->n_in + o];
        s->simd->fn[strip_store(s->simd, x->t)](to + (kept * h->suffix + lo) * dtype_bytes(x->t),
                                                in, 0, n);
      }
    }
  }
}
