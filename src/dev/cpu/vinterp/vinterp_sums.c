/* Sums in strips: of a row in a few vectors, of rows side by side or of a suffix in strips; bodies that are
 * no plain sums go operation by operation. */
#include "dev/cpu/vinterp/vinterp_run.h"

/* Of operand `id` of all reductions. */
char *sums_of(const Run *r, int id) { return r->sums + (size_t)id * r->s->sum_bytes; }
static char *totals_of(const Run *r, int id) {
  return sums_of(r, id) + (size_t)(8 * r->s->simd->lanes * r->s->simd->bytes);
}

static char *temp_at(const Run *r, int reg) { return r->temps + (size_t)reg * r->s->strip_bytes; }

static void sums_body(const Run *r, const StripBody *b, char *const *a, const char *const *x,
                      int64_t n, int n_operands) {
  const StripSimd *simd = r->s->simd;
  const void *reg[MOST_REGS];
  for (int k = 0; k < n_operands; k++) reg[k] = a[k], reg[n_operands + k] = x[k];
  for (int i = 2 * n_operands; i < b->n_regs; i++)
    reg[i] = b->is_constant[i] ? b->constant[i] : temp_at(r, i);
  for (int i = 0; i < b->n_dos; i++) {
    const struct BodyDo *o = &b->dos[i];
    const void *in[MOST_OPERANDS] = {0};
    char *to = temp_at(r, o->out);
    for (int k = 0; k < o->n_in; k++) in[k] = reg[o->in[k]];
    simd->fn[o->fn](to, in, o->same, n);
    if (o->after >= 0) simd->fn[o->after](to, (const void *[3]){to}, 0, n);
  }
  for (int k = 0; k < n_operands; k++) {
    bool one = b->is_constant[b->result[k]];
    simd->fn[STRIP_copy](a[k], &reg[b->result[k]], one, n);
  }
}

/* a = body(a, x), n numbers of each */
void sums_combine(const Run *r, const StripReduce *q, char *const *a, const char *const *x,
                  int64_t n) {
  const void *in[3] = {a[0], x[0]};
  if (q->body) sums_body(r, q->body, a, x, n, q->n);
  else r->s->simd->fn[q->fn](a[0], in, 0, n);
}

void sums_neutral(const Run *r, const StripReduce *q, int k, char *to, int64_t n) {
  strip_fill(r->s->simd, to, q->neutral[k], n);
}

/* A strip into the sums, vector by vector. */
void sums_take(const Run *r, const StripReduce *q, int64_t n) {
  const int lanes = r->s->simd->lanes, each = r->s->simd->bytes, bytes = lanes * each;
  for (int64_t i = 0, u = 0; i < n; i += lanes, u = (u + 1) % r->w->count) {
    char *a[MOST_SUMS];
    const char *x[MOST_SUMS];
    for (int k = 0; k < q->n; k++) {
      a[k] = sums_of(r, q->first + k) + u * bytes;
      x[k] = (const char *)r->strip[q->in[k]] + i * each;
      if (n - i >= lanes) continue;
      char *some = temp_at(r, r->s->n_temps + k);
      sums_neutral(r, q, k, some, lanes);
      memcpy(some, x[k], (size_t)((n - i) * each));
      x[k] = some;
    }
    sums_combine(r, q, a, x, lanes);
  }
}

static int64_t sums_count(const Run *r) { /* numbers in the sums of one reduction */
  int count = r->in_part ? r->s->split.count : r->w->count;
  return (int64_t)count * r->s->simd->lanes;
}

/* Long sums are emptied into their totals. */
void sums_flush(Run *r) {
  for (int i = 0; i < r->w->sums.n; i++) {
    const StripReduce *q = &r->s->reduces[r->w->sums.v[i]];
    if (!q->is_long) continue;
    char *sums = sums_of(r, q->first), *totals = totals_of(r, q->first);
    sums_combine(r, q, &totals, (const char *[]){sums}, sums_count(r));
    sums_neutral(r, q, 0, sums, sums_count(r));
  }
}

void sums_begin(Run *r, bool totals) {
  for (int i = 0; i < r->w->sums.n; i++) {
    const StripReduce *q = &r->s->reduces[r->w->sums.v[i]];
    for (int k = 0; k < q->n; k++) {
      sums_neutral(r, q, k, sums_of(r, q->first + k), sums_count(r));
      if (totals) sums_neutral(r, q, k, totals_of(r, q->first + k), sums_count(r));
    }
  }
}

/* The totals take the sums' place. */
void sums_end(Run *r) {
  for (int i = 0; i < r->w->sums.n; i++) {
    const StripReduce *q = &r->s->reduces[r->w->sums.v[i]];
    if (!q->is_long) continue;
    char *sums = sums_of(r, q->first), *totals = totals_of(r, q->first);
    sums_combine(r, q, &totals, (const char *[]){sums}, sums_count(r));
    memcpy(sums, totals, (size_t)(sums_count(r) * r->s->simd->bytes));
  }
}

/* The sum as one number of each operand, in all lanes. */
void sums_collect(const Run *r, const StripReduce *q) {
  const int lanes = r->s->simd->lanes, each = r->s->simd->bytes;
  char *a[MOST_SUMS];
  const char *x[MOST_SUMS];
  for (int k = 0; k < q->n; k++) a[k] = sums_of(r, q->first + k);
  if (!q->body) {
    r->s->simd->fold[q->sum](a[0], r->w->count);
    return;
  }
  for (int u = 1; u < r->w->count; u++) {
    for (int k = 0; k < q->n; k++) x[k] = a[k] + u * lanes * each;
    sums_combine(r, q, a, x, lanes);
  }
  for (int half = lanes / 2; half;
       half /= 2) { /* of the upper lanes, nobody looks at the results */
    for (int k = 0; k < q->n; k++) {
      char *upper = temp_at(r, r->s->n_temps + k);
      memcpy(upper, a[k] + half * each, (size_t)(half * each));
      x[k] = upper;
    }
    sums_combine(r, q, a, x, half);
  }
  for (int k = 0; k < q->n; k++)
    strip_fill(r->s->simd, a[k], strip_number(r->s->simd, a[k], 0), lanes);
}

/* sums = body(initial values, sums), as they are when they are complete; n of each. */
void sums_with_init(const Run *r, const StripReduce *q, char *const *sums, int64_t n) {
  const StripSimd *simd = r->s->simd;
  char *init[MOST_SUMS];
  const void *in[3] = {r->scalar[q->init[0]], sums[0]};
  for (int k = 0; k < q->n && q->body; k++) {
    init[k] = temp_at(r, r->s->n_temps + MOST_SUMS + k);
    strip_fill(simd, init[k], strip_number(simd, r->scalar[q->init[k]], 0), n);
  }
  if (q->body) sums_body(r, q->body, init, (const char *const *)sums, n, q->n);
  else simd->fn[q->fn](sums[0], in, 1, n);
  for (int k = 0; k < q->n; k++) {
    if (q->body) memcpy(sums[k], init[k], (size_t)(n * simd->bytes));
    if (q->after[k] >= 0) simd->fn[q->after[k]](sums[k], (const void *[3]){sums[k]}, 0, n);
  }
}

/* What the nodes of a sweep's reductions are, the row being over. */
void sums_results(const Run *r) {
  for (int i = 0; i < r->w->sums.n; i++) {
    const StripReduce *q = &r->s->reduces[r->w->sums.v[i]];
    char *a[MOST_SUMS];
    for (int k = 0; k < q->n; k++) a[k] = sums_of(r, q->first + k);
    sums_collect(r, q);
    sums_with_init(r, q, a, r->s->simd->lanes);
    for (int k = 0; k < q->n; k++)
      if (q->node[k] >= 0)
        memcpy((void *)(uintptr_t)r->scalar[q->node[k]], a[k],
               (size_t)(r->s->simd->lanes * r->s->simd->bytes));
  }
}
