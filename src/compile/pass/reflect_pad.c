/* pass_reflect_pad: a value beside its own edge, as padding by reflection, by repetition and in circles is
 * written, is one copy of places of it:
 *
 *   concatenate(reverse(slice(x)), x, ..)   =   reflect_pad(x, runs)
 *
 * Also where such a result is padded along another dimension in turn. */
#include "compile/pass/pass_priv.h"
#include "ir/build.h"

#define MOST_RUNS 12
#define MOST_DEPTH 12
#define LEAST_ELEMENTS 16384 /* less is as fast in a loop with what is around it */
#define MOST_SINGLE 64       /* places that are copied one by one, if they are short */
#define SHORT_BYTES 256
#define LONG_BYTES 64 /* pieces that a loop over elements copies as fast */

typedef struct Along { /* one dimension */
  int n;
  struct Stretch {
    int64_t start, count, step;
  } run[MOST_RUNS];
} Along;

typedef struct View {
  Value *of;
  Along dim[B_MAX_RANK];
} View;

/* false: too many. */
static bool add_run(Along *a, int64_t start, int64_t count, int64_t step) {
  if (count == 0) return true;
  if (count == 1) step = 1;
  struct Stretch *last = a->n ? &a->run[a->n - 1] : NULL;
  if (last && last->step == step && start == last->start + last->count * step) {
    last->count += count;
    return true;
  }
  if (a->n == MOST_RUNS) return false;
  a->run[a->n++] = (struct Stretch){start, count, step};
  return true;
}

static void whole(Value *v, View *out) {
  out->of = v;
  for (int i = 0; i < b_rank(v); i++) {
    out->dim[i].n = 0;
    add_run(&out->dim[i], 0, b_dim(v, i), 1);
  }
}

/* Places from, from + 1, .. to - 1. */
static bool cut(Along *a, int64_t from, int64_t to) {
  Along all = *a;
  a->n = 0;
  int64_t at = 0;
  for (int k = 0; k < all.n; k++) {
    int64_t first = MAX(from - at, 0), last = MIN(to - at, all.run[k].count);
    if (first < last &&
        !add_run(a, all.run[k].start + first * all.run[k].step, last - first, all.run[k].step))
      return false;
    at += all.run[k].count;
  }
  return true;
}

static bool turn_around(Along *a) {
  Along all = *a;
  a->n = 0;
  for (int k = all.n - 1; k >= 0; k--) {
    int64_t last = all.run[k].start + (all.run[k].count - 1) * all.run[k].step;
    if (!add_run(a, last, all.run[k].count, -all.run[k].step)) return false;
  }
  return true;
}

static bool same_along(const Along *a, const Along *b) {
  if (a->n != b->n) return false;
  for (int k = 0; k < a->n; k++)
    if (a->run[k].start != b->run[k].start || a->run[k].count != b->run[k].count ||
        a->run[k].step != b->run[k].step)
      return false;
  return true;
}

static bool seen_as(Value *v, View *out, int depth);

/* v with what it has one place of repeated up to `wide`. */
static bool repeated(Value *v, const Type *wide, View *out, int depth) {
  if (!seen_as(v, out, depth + 1)) return false;
  for (int i = 0; i < wide->rank; i++) {
    if (wide->dims[i] == b_dim(v, i)) continue;
    out->dim[i].run[0].count = wide->dims[i];
    out->dim[i].run[0].step = 0;
  }
  return true;
}

/* v is made by op by taking places; false: not so. */
static bool taken(const Op *op, View *out, int depth) {
  const int64_t *from, *to, *step;
  int n;
  switch (op->kind) {
  case OP_SLICE:
    n = op_ints(op, "start_indices", &from);
    op_ints(op, "limit_indices", &to);
    op_ints(op, "strides", &step);
    if (!seen_as(op->operands[0], out, depth + 1)) return false;
    for (int i = 0; i < n; i++)
      if (step[i] != 1 || !cut(&out->dim[i], from[i], to[i])) return false;
    return true;
  case OP_REVERSE:
    n = op_ints(op, "dimensions", &from);
    if (!seen_as(op->operands[0], out, depth + 1)) return false;
    for (int i = 0; i < n; i++)
      if (!turn_around(&out->dim[from[i]])) return false;
    return true;
  case OP_BROADCAST_IN_DIM:
    n = op_ints(op, "broadcast_dimensions", &to);
    for (int i = 0; i < n; i++)
      if (to[i] != i) return false;
    return n == op_type(op)->rank && repeated(op->operands[0], op_type(op), out, depth);
  case OP_RESHAPE: { /* a new dimension beside one of a single place becomes that one */
    const Op *wide = op->operands[0]->def;
    if (!wide || wide->kind != OP_BROADCAST_IN_DIM) return false;
    n = op_ints(wide, "broadcast_dimensions", &to);
    if (n != op_type(op)->rank || op_type(wide)->rank != n + 1) return false;
    int k = 0; /* the new one follows n's k-th, or comes before it */
    while (k < n && to[k] == k) k++;
    for (int i = k; i < n; i++)
      if (to[i] != i + 1) return false;
    const Type *from_type = wide->operands[0]->type;
    bool before =
        k < n && from_type->dims[k] == 1 && op_type(op)->dims[k] == op_type(wide)->dims[k];
    int at = before ? k : k - 1;
    if (at < 0 || from_type->dims[at] != 1 || op_type(op)->dims[at] != op_type(wide)->dims[k])
      return false;
    for (int i = 0; i < n; i++)
      if (i != at && op_type(op)->dims[i] != from_type->dims[i]) return false;
    return repeated(wide->operands[0], op_type(op), out, depth);
  }
  case OP_CONCATENATE: {
    int64_t dim = op_int(op, "dimension", 0);
    bool first = true;
    for (int k = 0; k < op->n_operands; k++) {
      View part;
      if (type_count(op->operands[k]->type) == 0) continue;
      if (!seen_as(op->operands[k], first ? out : &part, depth + 1)) return false;
      if (first) {
        first = false;
        continue;
      }
      if (part.of != out->of) return false;
      for (int i = 0; i < op_type(op)->rank; i++)
        if (i != dim && !same_along(&part.dim[i], &out->dim[i])) return false;
      const Along *a = &part.dim[dim];
      for (int r = 0; r < a->n; r++)
        if (!add_run(&out->dim[dim], a->run[r].start, a->run[r].count, a->run[r].step))
          return false;
    }
    return !first;
  }
  case OP_REFLECT_PAD:
    whole(op->operands[0], out);
    n = op_ints(op, "runs", &from);
    for (int i = 0, last = -1; i < n; i += 4) {
      Along *a = &out->dim[from[i]];
      if (from[i] != last) a->n = 0;
      last = (int)from[i];
      if (!add_run(a, from[i + 1], from[i + 2], from[i + 3])) return false;
    }
    return true;
  default: return false;
  }
}

/* The value as places of another, or as itself. */
static bool seen_as(Value *v, View *out, int depth) {
  if (!type_is_static(v->type) || b_rank(v) >= B_MAX_RANK || type_count(v->type) == 0) return false;
  if (!v->def || depth == MOST_DEPTH || !taken(v->def, out, depth)) whole(v, out);
  return true;
}

/* A concatenation that is worth it: not two halves that change places, nor what is scattered. */
static Value *rewritten(Build *b, const Op *op) {
  const Type *t = op_type(op);
  View v;
  if (!type_is_static(t) || t->quant || t->rank > B_MAX_RANK || type_count(t) < LEAST_ELEMENTS ||
      dtype_bytes(t->dtype) == 0 || op->n_operands < 2 || !taken(op, &v, 0))
    return NULL;
  int64_t runs[4 * MOST_RUNS * B_MAX_RANK], unit = dtype_bytes(t->dtype), single = 0;
  int n = 0, most = 0;
  bool last = true; /* of the dimensions along which places are taken */
  bool loop = true; /* long pieces, all as they were */
  for (int i = t->rank - 1; i >= 0; i--) {
    const Along *a = &v.dim[i];
    bool moved = a->n > 1 || a->run[0].count != b_dim(v.of, i) || a->run[0].step != 1;
    if (!moved) {
      unit *= t->dims[i];
      continue;
    }
    most = MAX(most, a->n);
    for (int k = 0; k < a->n; k++) {
      most = a->run[k].step == 1 ? most : MOST_RUNS;
      loop &= a->run[k].step == 1;
      if (last && a->run[k].step != 1) single += a->run[k].count;
    }
    if (last && single > MOST_SINGLE && unit < SHORT_BYTES) return NULL;
    if (last)
      loop &= (i == t->rank - 1 || unit >= LONG_BYTES) && t->dims[i] * unit >= LONG_BYTES * a->n;
    last = false;
  }
  if (most < 3 || loop) return NULL;
  for (int i = 0; i < t->rank; i++)
    for (int k = 0; k < v.dim[i].n; k++) {
      runs[n++] = i;
      runs[n++] = v.dim[i].run[k].start;
      runs[n++] = v.dim[i].run[k].count;
      runs[n++] = v.dim[i].run[k].step;
    }
  NamedAttr attr = b_ints(b, "runs", n, runs);
  Type *type = b_type(b, t->dtype, t->rank, t->dims);
  return &b_op(b, OP_REFLECT_PAD, 1, &v.of, 1, &type, 1, &attr, 0, NULL)->results[0];
}

Err *pass_reflect_pad(Module *m) {
  compile_rewrite(m, OP_CONCATENATE, rewritten);
  return NULL;
}
