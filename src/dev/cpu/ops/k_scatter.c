/* scatter by runs of memory (indexed.h).
 *
 * A scatter whose windows are either equal or disjoint (every indexed dimension has window size 1:
 * rows, single elements) divides the operand's places into parts: the updates are put in order of
 * the parts, those of a part stay in the order they have, so the sums do not depend on the number
 * of threads. */
#include "dev/cpu/ops/indexed.h"
#include "dev/cpu/ops/scatter_apply.h"

#define MAX_PARTS 8 /* of the operand */
#define SMALL_WINDOW 64

typedef struct Scatter {
  const Walk *w;
  const char *indices, *in;
  char *out;
  int64_t *from, *to;           /* of all index vectors */
  int64_t first[MAX_PARTS + 1]; /* of the windows in each part of the operand */
} Scatter;

static void find_windows(void *arg, int64_t begin, int64_t end) {
  const Scatter *r = arg;
  walk_windows(r->w, r->indices, false, begin, end, r->from + begin, r->to + begin);
}

static void apply(const Walk *w, int64_t n, const int64_t *from, const int64_t *to, char *dst,
                  const char *src) {
  const ScatterWay *way = scatter_way(w->combine, w->type);
  if (way) {
    way->how[w->run == 1](n, from, to, w->run, dst, src);
    return;
  }
  int64_t b = dtype_bytes(w->type);
  for (int64_t i = 0; i < n; i++)
    scatter_combine(w->combine, w->type, dst + from[i] * b, src + to[i] * b, w->run);
}

static void scatter_simple(const Walk *w, const char *indices, const char *in, char *out) {
  const ScatterWay *way = scatter_way(w->combine, w->type);
  int64_t b = dtype_bytes(w->type), run = w->run;
  int32_t at[SIMPLE_BATCH];
  for (int64_t i = 0; i < w->n; i += SIMPLE_BATCH) {
    int64_t n = MIN(SIMPLE_BATCH, w->n - i);
    walk_simple(w, indices, false, i, i + n, at);
    if (way) way->each(n, at, run, out, in + i * run * b);
    for (int64_t k = 0; !way && k < n; k++)
      if (at[k] >= 0)
        scatter_combine(w->combine, w->type, out + at[k] * b, in + (i + k) * run * b, run);
  }
}

static OpKind body_kind(const Region *r) {
  if (r->n_args == 2 && r->first == r->last && r->last->n_operands == 1 &&
      r->last->operands[0] == r->args[1])
    return OP_RETURN;
  bool swapped = false;
  OpKind k = cpu_region_binary(r, &swapped);
  return k == OP_SUBTRACT && swapped ? OP_UNKNOWN : k;
}

static bool accepts(const Op *op) {
  if (op->n_operands != 3 || op->n_results != 1) return false;
  const Type *t = op->operands[0]->type, *u = op->operands[2]->type;
  const Region *body = op->regions[0];
  if (t->quant || u->quant || u->dtype != t->dtype || op_type(op)->dtype != t->dtype) return false;
  if (body->n_args != 2 || body->args[0]->type->dtype != t->dtype ||
      body->args[1]->type->dtype != t->dtype)
    return false;
  OpKind k = body_kind(body);
  DType d = t->dtype;
  bool is_int = dtype_is_int(d), is_float = dtype_is_float(d);
  switch (k) {
  case OP_RETURN: return true;
  case OP_ADD:
  case OP_SUBTRACT:
  case OP_MULTIPLY: return is_int || is_float || d == DT_C64 || d == DT_C128;
  case OP_MAXIMUM:
  case OP_MINIMUM: return is_float || is_int;
  case OP_AND:
  case OP_OR:
  case OP_XOR: return is_int || d == DT_I1;
  default: return false;
  }
}

static Err *prepare(const Op *op, void **state) {
  Walk *w = walk_new(op, true, op->operands[0]->type, op->operands[1]->type, op->operands[2]->type);
  w->combine = body_kind(op->regions[0]);
  *state = w;
  return NULL;
}

/* The windows of parts begin .. end - 1 of the operand, in order. */
static void scatter_parts(void *arg, int64_t begin, int64_t end) {
  const Scatter *r = arg;
  const Walk *w = r->w;
  int64_t b = dtype_bytes(w->type), first = r->first[begin], n = r->first[end] - first;
  const int64_t *from = r->from + first, *to = r->to + first;
  if (w->n_runs == 1) {
    apply(w, n, from, to, r->out, r->in);
    return;
  }
  for (int64_t i = 0; i < n; i++)
    apply(w, w->n_runs, w->at_operand, w->at_other, r->out + from[i] * b, r->in + to[i] * b);
}

/* Runs begin .. end - 1 of every window: where the updates of a run lie together, as they do along the
 * last dimensions. */
static void scatter_runs(void *arg, int64_t begin, int64_t end) {
  const Scatter *r = arg;
  const Walk *w = r->w;
  int64_t b = dtype_bytes(w->type);
  for (int64_t k = begin; k < end; k++)
    apply(w, r->first[1], r->from, r->to, r->out + w->at_operand[k] * b,
          r->in + w->at_other[k] * b);
}

/* Leaves out the windows that are not inside the operand: XLA drops them whole, too. */
static int64_t keep_inside(int64_t n, int64_t *from, int64_t *to) {
  int64_t kept = 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t f = from[i], t = to[i];
    from[kept] = f, to[kept] = t;
    kept += f >= 0;
  }
  return kept;
}

/* Puts n windows in order of the parts, of `size` elements, of the operand that they lie in; those
 * of a part stay in their order. part[i]: room for n. */
static void sort_windows(Scatter *r, int parts, int64_t size, int64_t n, const int64_t *from,
                         const int64_t *to, uint8_t *part) {
  int64_t next[MAX_PARTS] = {0};
  double scale = 1 / (double)size; /* equal windows are of one part however it is rounded */
  for (int64_t i = 0; i < n; i++) {
    part[i] = (uint8_t)MIN(parts - 1, (int)((double)from[i] * scale));
    next[part[i]]++;
  }
  for (int64_t k = 0, at = 0; k < parts; k++) {
    int64_t count = next[k];
    r->first[k] = next[k] = at;
    at += count;
  }
  for (int64_t i = 0; i < n; i++) {
    int64_t at = next[part[i]]++;
    r->from[at] = from[i], r->to[at] = to[i];
  }
}

static Err *run(void *state, const Op *op, void *const *in, void *const *out) {
  const Walk *w = state;
  int64_t count = type_count(op_type(op));
  if (count == 0) return NULL;
  copy_sums(op, in, out);
  if (type_count(op->operands[2]->type) == 0) return NULL;
  if (walk_is_simple(w) && w->run < SMALL_WINDOW) {
    scatter_simple(w, in[1], in[2], out[0]);
    return NULL;
  }
  /* putting the windows in order costs as much as some dozen elements of each */
  int64_t elements = w->run * w->n_runs, work = w->n * (4 * w->n_runs + elements / 4);
  bool by_runs = w->aligned && w->window_first && w->n_runs > 1;
  bool divide = w->aligned && elements >= SMALL_WINDOW && !by_runs;
  int parts = divide ? (int)MAX(1, MIN(MAX_PARTS, work / 50000)) : 1;
  size_t n = (size_t)w->n;
  int64_t *places = xmalloc(n * (parts > 1 ? 4 * sizeof *places + 1 : 2 * sizeof *places));
  Scatter r = {
      .w = w, .indices = in[1], .in = in[2], .out = out[0], .from = places, .to = places + n};
  cpu_parallel(w->n, 16384, find_windows, &r);
  r.first[parts] = keep_inside(w->n, r.from, r.to);
  if (by_runs) {
    cpu_parallel(w->n_runs, MAX(1, 16384 / (w->n * w->run)), scatter_runs, &r);
    free(places);
    return NULL;
  }
  if (parts > 1) {
    r.from += 2 * n, r.to += 2 * n;
    sort_windows(&r, parts, (count + parts - 1) / parts, r.first[parts], places, places + n,
                 (uint8_t *)(places + 4 * n));
  }
  cpu_parallel(parts, 1, scatter_parts, &r);
  free(places);
  return NULL;
}

const CpuKernel cpu_kernels_scatter[] = {
    {.name = "scatter",
     .kind = OP_SCATTER,
     .accepts = accepts,
     .prepare = prepare,
     .run = run,
     .release = walk_free,
     .in_place = 1},
    {0},
};
