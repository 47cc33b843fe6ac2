/* weft.reflect_pad: copies of a value's places, whole runs of them where it can be: of every run along every
 * dimension a box, whose rows are what lies side by side in both. Many small planes, whose runs are a few
 * elements, are each copied by a table of where its elements come from. */
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/turns.h"

#define TASK_BYTES 262144
#define SHORT_RUN 64     /* bytes; such runs are copied by a table */
#define MOST_TABLE 16384 /* elements */
#define LEAST_PLANES 8   /* for which a table is worth it */

typedef struct Stretch {
  int64_t start, count, step, to; /* to: its first place in the result */
} Stretch;

typedef struct Dim {
  int n;
  const Stretch *run;
  int64_t in, out; /* bytes from one place to the next */
} Dim;

typedef struct ReflectPad {
  int rank;
  Dim dim[CPU_MAX_RANK]; /* those before the last along which places are taken, and that one */
  int64_t unit;          /* bytes of one place of it */
  const char *in;
  char *out;
} ReflectPad;

typedef struct Box {
  int rank;
  int64_t dims[CPU_MAX_RANK], in[CPU_MAX_RANK], out[CPU_MAX_RANK];
} Box;

static void copy_box(const Box *b, int d, int64_t row, const char *in, char *out) {
  if (d >= b->rank - 1) {
    if (b->rank) cpu_copy_rows(row, b->dims[d], in, b->in[d], out, b->out[d]);
    else memcpy(out, in, (size_t)row);
    return;
  }
  for (int64_t i = 0; i < b->dims[d]; i++)
    copy_box(b, d + 1, row, in + i * b->in[d], out + i * b->out[d]);
}

/* `from` more places of the run along dimension d, `count` of them, and all that is below. */
static void copy_run(const ReflectPad *p, Box *b, int d, const Stretch *s, int64_t from,
                     int64_t count, const char *in, char *out);

static void copy_below(const ReflectPad *p, Box *b, int d, const char *in, char *out) {
  for (int k = 0; k < p->dim[d].n; k++) {
    const Stretch *s = &p->dim[d].run[k];
    copy_run(p, b, d, s, 0, s->count, in, out);
  }
}

static void copy_run(const ReflectPad *p, Box *b, int d, const Stretch *s, int64_t from,
                     int64_t count, const char *in, char *out) {
  const Dim *dim = &p->dim[d];
  in += (s->start + from * s->step) * dim->in;
  out += (s->to + from) * dim->out;
  if (d == p->rank - 1) {
    if (s->step == 1) {
      copy_box(b, 0, count * p->unit, in, out);
      return;
    }
    for (int64_t i = 0; i < count; i++)
      copy_box(b, 0, p->unit, in + i * s->step * dim->in, out + i * dim->out);
    return;
  }
  bool more = count > 1;
  if (more) {
    b->dims[b->rank] = count;
    b->in[b->rank] = s->step * dim->in;
    b->out[b->rank++] = dim->out;
  }
  copy_below(p, b, d + 1, in, out);
  b->rank -= more;
}

/* Of each of the outer places, all that is below, in pieces of some of the first dimension's places: they
 * stay in the cache while their edges are written. */
typedef struct Job {
  const ReflectPad *p;
  int64_t in, out, piece, pieces; /* bytes of an outer place; places of a piece */
} Job;

static void copy_pieces(void *arg, int64_t begin, int64_t end) {
  const Job *j = arg;
  for (int64_t at = begin; at < end; at++) {
    int64_t outer = at / j->pieces, piece = at % j->pieces, k = 0, of;
    const Stretch *s = j->p->dim[0].run;
    while (piece >= (of = (s[k].count + j->piece - 1) / j->piece)) piece -= of, k++;
    Box b = {0};
    copy_run(j->p, &b, 0, &s[k], piece * j->piece, MIN(j->piece, s[k].count - piece * j->piece),
             j->p->in + outer * j->in, j->p->out + outer * j->out);
  }
}

/* ---- by a table ---- */

typedef struct Table {
  const int32_t *from; /* of each element of a plane of the result, its place in the operand's */
  int64_t n, unit;     /* elements; bytes of one */
  const char *in;
  char *out;
  int64_t in_plane; /* bytes */
} Table;

/* Elements below dimension d, whose first is element `at`. Returns the end of the table. */
static int32_t *fill_table(const ReflectPad *p, int64_t unit, int d, int64_t at, int32_t *to) {
  const Dim *dim = &p->dim[d];
  for (int k = 0; k < dim->n; k++) {
    const Stretch *s = &dim->run[k];
    for (int64_t i = 0; i < s->count; i++) {
      int64_t from = at + (s->start + i * s->step) * (dim->in / unit);
      if (d + 1 < p->rank) to = fill_table(p, unit, d + 1, from, to);
      else
        for (int64_t j = 0; j < p->unit / unit; j++) *to++ = (int32_t)(from + j);
    }
  }
  return to;
}

typedef struct Complex {
  double re, im;
} Complex;

/* A plane's elements are few: the compiler is told that nothing overlaps, and takes several at a time. */
#define COPY_PLANE(T)                                                 \
  do {                                                                \
    const T *restrict from = (const T *)in;                           \
    T *restrict to = (T *)out;                                        \
    const int32_t *restrict at_of = t->from;                          \
    for (int64_t i = 0, n = t->n; i < n; i++) to[i] = from[at_of[i]]; \
  } while (0)

static void copy_planes(void *arg, int64_t begin, int64_t end) {
  const Table *t = arg;
  for (int64_t at = begin; at < end; at++) {
    const char *in = t->in + at * t->in_plane;
    char *out = t->out + at * t->n * t->unit;
    switch (t->unit) {
    case 1: COPY_PLANE(uint8_t); break;
    case 2: COPY_PLANE(uint16_t); break;
    case 4: COPY_PLANE(uint32_t); break;
    case 8: COPY_PLANE(uint64_t); break;
    default: COPY_PLANE(Complex);
    }
  }
}

static bool wants_table(const ReflectPad *p, int64_t planes, int64_t bytes, int64_t unit) {
  const Dim *last = &p->dim[p->rank - 1];
  int64_t row = 0;
  for (int k = 0; k < last->n; k++) row += last->run[k].count * p->unit;
  return row < SHORT_RUN * last->n && planes >= LEAST_PLANES && bytes <= MOST_TABLE * unit;
}

static void run_table(const ReflectPad *p, int64_t planes, int64_t bytes, int64_t in_plane,
                      int64_t unit) {
  int32_t *from = xmalloc(sizeof *from * (size_t)(bytes / unit));
  fill_table(p, unit, 0, 0, from);
  Table t = {from, bytes / unit, unit, p->in, p->out, in_plane};
  cpu_parallel(planes, MAX(1, TASK_BYTES / bytes), copy_planes, &t);
  free(from);
}

/* Is dimension d as it was? */
static bool is_whole(const ReflectPad *p, int d, const Type *from) {
  return p->dim[d].n == 1 && p->dim[d].run[0].step == 1 && p->dim[d].run[0].count == from->dims[d];
}

static Err *run_reflect_pad(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  const Type *t = op_type(op), *from = op->operands[0]->type;
  const int64_t *v;
  int n = op_ints(op, "runs", &v) / 4, first = 0;
  int64_t bytes = dtype_bytes(t->dtype), is[CPU_MAX_RANK], os[CPU_MAX_RANK], outer = 1;
  cpu_strides(from, is);
  cpu_strides(t, os);
  Stretch *runs = xmalloc(sizeof *runs * (size_t)n);
  ReflectPad p = {.rank = t->rank, .in = in[0], .out = out[0]};
  for (int k = 0; k < n; k++) {
    Dim *d = &p.dim[v[4 * k]];
    if (!d->n) *d = (Dim){0, &runs[k], is[v[4 * k]] * bytes, os[v[4 * k]] * bytes};
    int64_t to = d->n ? runs[k - 1].to + runs[k - 1].count : 0;
    runs[k] = (Stretch){v[4 * k + 1], v[4 * k + 2], v[4 * k + 3], to};
    d->n++;
  }
  while (p.rank > 1 && is_whole(&p, p.rank - 1, from)) p.rank--;
  p.unit = os[p.rank - 1] * bytes;
  for (; first + 1 < p.rank && is_whole(&p, first, from); first++) outer *= t->dims[first];
  p.rank -= first;
  memmove(p.dim, p.dim + first, sizeof *p.dim * (size_t)p.rank);
  Dim *d = p.dim;
  Job j = {.p = &p, .piece = MAX(1, TASK_BYTES / d->out)};
  if (first) j.in = is[first - 1] * bytes, j.out = os[first - 1] * bytes;
  int64_t whole = type_count(t) * bytes / outer;
  if (wants_table(&p, outer, whole, bytes)) {
    run_table(&p, outer, whole, j.in, bytes);
    free(runs);
    return NULL;
  }
  for (int k = 0; k < d->n; k++) j.pieces += (d->run[k].count + j.piece - 1) / j.piece;
  cpu_parallel(outer * j.pieces, MAX(1, TASK_BYTES * j.pieces / whole), copy_pieces, &j);
  free(runs);
  return NULL;
}

const CpuKernel cpu_kernels_reflect_pad[] = {
    {.name = "reflect_pad", .kind = OP_REFLECT_PAD, .run = run_reflect_pad},
    {0},
};
