/* Running strips: the same walks over the same loops as generated code (walk.c, loops.c). */
#include "dev/cpu/strips/strips_run.h"

typedef struct Run {
  const Strips *s;
  const Sweep *w;
  void *const *bufs;
  const void **strip, **scalar; /* by node: where it is now */
  int64_t *at; /* by node: of what is read or made in memory, the line's beginning */
  char *slots, *sums, *rows;
  int64_t iv[MAX_LOOPS];
  bool in_part; /* sums are added up there */
} Run;

static const Loop *vector_loop(const Run *r) {
  const Dag *d = &r->s->d;
  return d->vloop >= 0 ? &d->loops[d->vloop] : NULL;
}

/* Of a form at the line's beginning, the vector loop's index 0. */
static int64_t at_line(const Run *r, const Affine *a) {
  const Dag *d = &r->s->d;
  int64_t off = a->off;
  for (int i = 0; i < d->n_loops; i++)
    if (i != d->vloop && d->loops[i].extent > 1) off += a->coef[d->loops[i].last] * r->iv[i];
  return off;
}

static uint32_t read_one(DType t, const void *base, int64_t at) {
  if (t == DT_I1) return ((const uint8_t *)base)[at] ? 0xffffffffu : 0;
  if (t == DT_BF16) return (uint32_t)((const uint16_t *)base)[at] << 16;
  return ((const uint32_t *)base)[at];
}

static void write_one(const Run *r, DType t, void *base, int64_t at, uint32_t v) {
  const void *in[3] = {&v};
  if (t == DT_I1) ((uint8_t *)base)[at] = v & 1;
  else if (t == DT_BF16) r->s->simd->fn[STRIP_store_bf16]((uint16_t *)base + at, in, 0, 1);
  else ((uint32_t *)base)[at] = v;
}

static uint32_t number(DType t, int64_t i) {
  float f = (float)(int32_t)i;
  uint32_t u = (uint32_t)i;
  if (t == DT_F32) memcpy(&u, &f, 4);
  return u;
}

static void call(const Run *r, const Do *o, const void *const *from, void *to, int64_t n) {
  const void *in[MOST_OPERANDS] = {0};
  for (int k = 0; k < o->n_in; k++) in[k] = (o->same >> k & 1 ? r->scalar : from)[o->in[k]];
  r->s->simd->fn[o->fn](to, in, o->same, n);
}

static void fill(uint32_t *to, uint32_t v, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] = v;
}

/* Element i from `at` + i * stride on, moved by the index vectors. */
static void gather(const Run *r, const Do *o, const void *const *from, int64_t at, int64_t stride,
                   uint32_t *to, int64_t n) {
  const Op *op = r->s->d.nodes.v[o->node].op;
  const Type *t = op->operands[0]->type;
  const int64_t *map, *sizes;
  int64_t strides[CPU_MAX_RANK];
  op_ints(op, "start_index_map", &map);
  op_ints(op, "slice_sizes", &sizes);
  cpu_strides(t, strides);
  bool sign = op->operands[1]->type->dtype == DT_I32;
  for (int64_t i = 0; i < n; i++, at += stride) {
    int64_t e = at;
    for (int k = 0; k < o->n_in; k++) {
      bool same = o->same >> k & 1;
      uint32_t v = ((const uint32_t *)(same ? r->scalar : from)[o->in[k]])[same ? 0 : i];
      int64_t last = t->dims[map[k]] - sizes[map[k]], x = sign ? (int32_t)v : (int64_t)v;
      e += MIN(MAX(x, 0), last) * strides[map[k]];
    }
    to[i] = read_one(o->t, r->bufs[o->buf], e);
  }
}

/* ---- a line: the vector loop at one place of all the others ---- */

/* What is the same along it. */
static void begin_line(Run *r, int64_t n) {
  for (int i = 0; i < r->w->dos.n; i++) {
    const Do *o = &r->w->dos.v[i];
    if (o->vec) {
      const Affine *form = o->out >= 0 ? &r->s->d.out_lin[o->out] : o->form;
      if (o->out >= 0 || o->kind != DO_FN) r->at[o->node] = at_line(r, form);
      continue;
    }
    uint32_t *v = (uint32_t *)(uintptr_t)r->scalar[o->node];
    int lanes = r->s->simd->lanes;
    if (o->kind == DO_READ) fill(v, read_one(o->t, r->bufs[o->buf], at_line(r, o->form)), lanes);
    if (o->kind == DO_IOTA) fill(v, number(o->t, at_line(r, o->form)), lanes);
    if (o->kind == DO_FN) call(r, o, r->scalar, v, lanes);
    if (o->kind == DO_GATHER) gather(r, o, r->scalar, at_line(r, o->form), 0, v, lanes);
    if (o->slot < 0) continue;
    uint32_t *to = (uint32_t *)(r->slots + (size_t)o->slot * STRIP_BYTES);
    fill(to, *v, MIN(n, STRIP));
    r->strip[o->node] = to;
  }
}

static void read_strip(Run *r, const Do *o, int64_t lo, int64_t n) {
  const Dag *d = &r->s->d;
  int64_t stride = dag_vector_stride(d, o->form), at = r->at[o->node] + stride * lo;
  const void *base = r->bufs[o->buf];
  if (o->slot < 0) {
    r->strip[o->node] = (const char *)base + at * 4;
    return;
  }
  uint32_t *to = (uint32_t *)(r->slots + (size_t)o->slot * STRIP_BYTES);
  r->strip[o->node] = to;
  if (stride == 1) {
    const void *in[3] = {(const char *)base + at * dtype_bytes(o->t)};
    int fn = o->t == DT_I1 ? STRIP_load_mask : o->t == DT_BF16 ? STRIP_load_bf16 : STRIP_copy;
    r->s->simd->fn[fn](to, in, 0, n);
    return;
  }
  for (int64_t i = 0; i < n; i++, at += stride) to[i] = read_one(o->t, base, at);
}

static void number_strip(Run *r, const Do *o, int64_t lo, int64_t n) {
  uint32_t *to = (uint32_t *)(r->slots + (size_t)o->slot * STRIP_BYTES);
  int64_t stride = dag_vector_stride(&r->s->d, o->form), at = r->at[o->node] + stride * lo;
  r->strip[o->node] = to;
  for (int64_t i = 0; i < n; i++, at += stride) to[i] = number(o->t, at);
}

static void store_strip(Run *r, int out, int64_t lo, int64_t n) {
  const Dag *d = &r->s->d;
  DType t = r->s->f->out[out].v->type->dtype;
  const Affine *form = &d->out_lin[out];
  int64_t stride = dag_vector_stride(d, form), at = at_line(r, form) + stride * lo;
  void *base = r->bufs[r->s->f->n_in + out];
  const void *from[3] = {r->strip[r->s->out[out]]};
  int fn = t == DT_I1 ? STRIP_store_mask : t == DT_BF16 ? STRIP_store_bf16 : STRIP_copy;
  if (stride == 1) r->s->simd->fn[fn]((char *)base + at * dtype_bytes(t), from, 0, n);
  else if (stride)
    for (int64_t i = 0; i < n; i++, at += stride)
      write_one(r, t, base, at, ((const uint32_t *)from[0])[i]);
  else write_one(r, t, base, at, *(const uint32_t *)from[0]);
}

static char *sums_of(const Run *r, int reduce) {
  return r->sums + (size_t)reduce * 16 * (size_t)r->s->simd->lanes * 4;
}
static char *totals_of(const Run *r, int reduce) {
  return sums_of(r, reduce) + (size_t)8 * (size_t)r->s->simd->lanes * 4;
}

/* The part of a reduction in this task's memory for partial results. */
static char *part_of(const Run *r, int64_t task, int reduce) {
  const SplitShape *h = &r->s->split;
  char *p = r->bufs[r->s->f->n_in + r->s->f->n_out];
  return p + reduce * ((h->tasks * h->row * 4 + 63) / 64 * 64) + task * h->row * 4;
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
static char *sums_along(const Run *r, int64_t task, int reduce) {
  return r->s->split.in_registers ? sums_of(r, reduce) : part_of(r, task, reduce);
}

static void take_in(Run *r, int64_t task, int64_t lo, int64_t n) {
  const Strips *s = r->s;
  for (int i = 0; i < r->w->sums.n; i++) {
    int k = r->w->sums.v[i];
    const StripReduce *q = &s->reduces[k];
    const void *x = r->strip[q->in];
    if (!r->in_part) {
      s->simd->sum[q->sum](sums_of(r, k), x, n, r->w->count);
      continue;
    }
    char *to = sums_along(r, task, k) + suffix_at(r, lo) * 4;
    const void *in[3] = {to, x};
    s->simd->fn[q->fn](to, in, 0, n);
  }
}

static char *row_at(const Run *r, int row, int64_t lo) {
  return r->rows + (size_t)row * r->s->row_bytes + lo * 4;
}

static void do_strip(Run *r, int64_t task, int64_t lo, int64_t n) {
  for (int i = 0; i < r->w->dos.n; i++) {
    const Do *o = &r->w->dos.v[i];
    if (!o->vec) continue;
    if (o->kind == DO_READ) {
      read_strip(r, o, lo, n);
    } else if (o->kind == DO_IOTA) {
      number_strip(r, o, lo, n);
    } else if (o->kind == DO_KEPT) {
      r->strip[o->node] = row_at(r, o->row, lo);
    } else {
      char *to = r->slots + (size_t)(o->slot < 0 ? 0 : o->slot) * STRIP_BYTES;
      int64_t stride = o->kind == DO_GATHER ? dag_vector_stride(&r->s->d, o->form) : 0;
      if (o->row >= 0) to = row_at(r, o->row, lo);
      if (o->out >= 0) to = (char *)r->bufs[r->s->f->n_in + o->out] + (r->at[o->node] + lo) * 4;
      if (o->kind == DO_FN) call(r, o, r->strip, to, n);
      else gather(r, o, r->strip, r->at[o->node] + stride * lo, stride, (uint32_t *)(void *)to, n);
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

static void combine(const Run *r, const StripReduce *q, char *a, const char *b, int64_t n) {
  const void *in[3] = {a, b};
  r->s->simd->fn[q->fn](a, in, 0, n);
}

static int64_t sums_count(const Run *r) { /* numbers in the sums of one reduction */
  int count = r->in_part ? r->s->split.count : r->w->count;
  return (int64_t)count * r->s->simd->lanes;
}

/* Long sums are emptied into their totals. */
static void flush(Run *r) {
  for (int i = 0; i < r->w->sums.n; i++) {
    int k = r->w->sums.v[i];
    const StripReduce *q = &r->s->reduces[k];
    if (!q->is_long) continue;
    combine(r, q, totals_of(r, k), sums_of(r, k), sums_count(r));
    fill((uint32_t *)sums_of(r, k), q->neutral, sums_count(r));
  }
}

static void over_blocks(Run *r, int64_t task, int64_t lo, int64_t hi, int64_t step) {
  for (; lo < hi; lo += step * LONG_SUM) {
    over(r, task, lo, MIN(lo + step * LONG_SUM, hi));
    flush(r);
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
    if (flushes) flush(r);
  }
}

static void decode(Run *r, int64_t t, int n) {
  for (int i = n - 1; i >= 0; i--) {
    int64_t e = r->s->d.loops[i].extent;
    r->iv[i] = i ? t % e : t;
    t /= e;
  }
}

static Run begin(const Strips *s, void *const *bufs) {
  char *p = cpu_scratch(s->scratch_bytes);
  int n = 2 * s->d.nodes.n;
  Run r = {.s = s, .w = s->sweep, .bufs = bufs, .strip = (const void **)(void *)p};
  r.scalar = r.strip + n;
  r.at = (int64_t *)(r.scalar + n);
  char *scalars = (char *)(r.at + n);
  r.slots = p + s->slots_at;
  r.sums = p + s->sums_at;
  r.rows = p + s->rows_at;
  for (int i = 0; i < n; i++) {
    bool constant = i < s->d.nodes.n && s->d.nodes.v[i].kind == N_SPLAT;
    r.scalar[i] = (constant ? s->constants : scalars) + (size_t)i * SCALAR_BYTES;
  }
  return r;
}

/* ---- sums ---- */

static void sums_begin(Run *r, bool totals) {
  for (int i = 0; i < r->w->sums.n; i++) {
    int k = r->w->sums.v[i];
    const StripReduce *q = &r->s->reduces[k];
    fill((uint32_t *)sums_of(r, k), q->neutral, sums_count(r));
    if (totals) fill((uint32_t *)totals_of(r, k), q->neutral, sums_count(r));
  }
}

/* The totals take the sums' place. */
static void sums_end(Run *r) {
  for (int i = 0; i < r->w->sums.n; i++) {
    int k = r->w->sums.v[i];
    const StripReduce *q = &r->s->reduces[k];
    if (!q->is_long) continue;
    combine(r, q, totals_of(r, k), sums_of(r, k), sums_count(r));
    memcpy(sums_of(r, k), totals_of(r, k), (size_t)sums_count(r) * 4);
  }
}

/* The sum as one number, in all lanes. */
static const char *sums_collect(Run *r, int k) {
  r->s->simd->fold[r->s->reduces[k].sum](sums_of(r, k), r->w->count);
  return sums_of(r, k);
}

/* in: initial values, sums */
static void with_init(const Run *r, const StripReduce *q, void *to, const void *const *in,
                      unsigned same, int64_t n) {
  const void *sum[3] = {to};
  r->s->simd->fn[q->fn](to, in, same, n);
  if (q->round) r->s->simd->fn[STRIP_to_bf16](to, sum, 0, n);
}

/* ---- the three kinds ---- */

static void run_loop(Run *r, int64_t begin, int64_t end) {
  const Strips *s = r->s;
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
  const Strips *s = r->s;
  for (int64_t t = begin; t < end; t++) {
    decode(r, t, s->task_loops);
    for (int k = 0; k < s->sweeps; k++) {
      const Sweep *w = r->w = &s->sweep[k];
      if (!w->sums.n && !w->dos.n && !w->outs.n) continue;
      sums_begin(r, w->totals);
      walk(r, 0, s->task_loops, w->totals);
      if (w->totals) sums_end(r);
      for (int i = 0; i < w->sums.n; i++) {
        const StripReduce *q = &s->reduces[w->sums.v[i]];
        const void *in[3] = {r->scalar[q->init], sums_collect(r, w->sums.v[i])};
        with_init(r, q, (void *)(uintptr_t)r->scalar[q->node], in, 0, s->simd->lanes);
      }
    }
    r->w = &s->sweep[s->sweeps];
    begin_line(r, 1);
    for (int i = 0; i < r->w->outs.n; i++) {
      int o = r->w->outs.v[i], node = s->out[o];
      write_one(r, s->f->out[o].v->type->dtype, r->bufs[s->f->n_in + o],
                at_line(r, &s->d.out_lin[o]), *(const uint32_t *)r->scalar[node]);
    }
  }
}

static void run_parts(Run *r, int64_t first, int64_t end) {
  const Strips *s = r->s;
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
    else
      for (int k = 0; k < s->d.reduces.n; k++)
        fill((uint32_t *)part_of(r, t, k), s->reduces[k].neutral, h->suffix);
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
        if (flushes || (turns && ((i - lo) % LONG_SUM == LONG_SUM - 1 || i == hi - 1))) flush(r);
      }
    }
    if (h->totals) sums_end(r);
    for (int k = 0; k < s->d.reduces.n && h->in_registers; k++) {
      if (!r->in_part) sums_collect(r, k);
      memcpy(part_of(r, t, k), sums_of(r, k), (size_t)h->suffix * 4);
    }
  }
}

void strips_run(void *const *bufs, int64_t first, int64_t end, const void *strips) {
  Run r = begin(strips, bufs);
  switch (r.s->f->kind) {
  case FUSION_LOOP: run_loop(&r, first, end); return;
  case FUSION_ROW: run_rows(&r, first, end); return;
  case FUSION_SPLIT: run_parts(&r, first, end); return;
  }
}

/* Adds the parts up in the order of the chunks: a task is a strip of the suffix. */
void strips_finish(void *const *bufs, int64_t first, int64_t end, const void *strips) {
  Run r = begin(strips, bufs);
  const Strips *s = r.s;
  const Dag *d = &s->d;
  const SplitShape *h = &s->split;
  int64_t each = (h->suffix + STRIP - 1) / STRIP;
  r.w = &s->sweep[s->sweeps];
  begin_line(&r, 1);
  uint32_t *sum = (uint32_t *)r.slots, *block = (uint32_t *)(r.slots + STRIP_BYTES);
  for (int64_t t = first; t < end; t++) {
    int64_t kept = t / each, lo = t % each * STRIP, n = MIN(STRIP, h->suffix - lo);
    for (int k = 0; k < d->reduces.n; k++) {
      const StripReduce *q = &s->reduces[k];
      int64_t many = shape_finish_block(&d->reduces.v[k], h);
      uint32_t *to = many < h->chunks ? block : sum;
      fill(sum, q->neutral, n);
      for (int64_t c = 0; c < h->chunks; c++) {
        if (to == block && c % many == 0) fill(block, q->neutral, n);
        combine(&r, q, (char *)to, part_of(&r, kept * h->chunks + c, k) + lo * 4, n);
        if (to == block && (c % many == many - 1 || c == h->chunks - 1))
          combine(&r, q, (char *)sum, (const char *)block, n);
      }
      const void *in[3] = {r.scalar[q->init], sum};
      with_init(&r, q, sum, in, 1, n);
      for (int o = 0; o < d->n_out; o++) {
        const DagNode *x = &d->nodes.v[d->out[o]];
        if (s->f->out[o].full || x->kind != N_REDUCE || x->reduce != k) continue;
        char *base = r.bufs[s->f->n_in + o];
        int64_t at = kept * h->suffix + lo;
        for (int64_t i = 0; i < n; i++) write_one(&r, x->t, base, at + i, sum[i]);
      }
    }
  }
}
