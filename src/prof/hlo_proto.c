/* A program in XLA's own form, for the pages of xprof that are made from it: the memory viewer (what
 * fills the memory when it is fullest) and the graph viewer (which kernel reads what).
 *
 * Kernels are custom calls by their names, arguments are parameters, what a kernel leaves in memory
 * is its result (a tuple of them), and what it reads its operands. That is the program as the
 * device runs it; the operations inside a kernel are not written out. Of several kernels that a loop
 * repeats each stands once. Values that only live in registers or inside a loop's body have no name
 * in a recording, so a kernel in a loop may have no operands here.
 *
 * Messages of XLA's hlo.proto and xla_data.proto:
 *   HloProto 1 module, 3 buffers
 *   HloModuleProto 1 name, 2 entry's name, 3 computations, 4 shape, 5 id, 6 entry's id, 7 schedule
 *   HloComputationProto 1 name, 2 instructions, 4 shape, 5 id, 6 root's id
 *   HloInstructionProto 1 name, 2 opcode, 3 shape, 7 metadata, 9 parameter, 13 tuple index, 28 custom
 *     call's target, 35 id, 36 operands
 *   BufferAssignmentProto 1 logical buffers, 3 allocations, 4 traces of the heap simulator */
#include "base/pb.h"
#include "prof/prof_priv.h"

#include <stdio.h>
#include <stdlib.h>

enum { MODULE_ID = 1, COMPUTATION_ID = 1 };
enum { TUPLE = 13 };

/* ---- shapes ---------------------------------------------------------------------------------- */

static int element_type(Str name) {
  static const struct {
    const char *name;
    int xla;
  } types[] = {
      {"i1", 1},      {"i8", 2},        {"i16", 3},   {"i32", 4},           {"i64", 5},
      {"ui8", 6},     {"ui16", 7},      {"ui32", 8},  {"ui64", 9},          {"f16", 10},
      {"f32", 11},    {"f64", 12},      {"bf16", 16}, {"complex<f32>", 15}, {"complex<f64>", 18},
      {"f8E5M2", 19}, {"f8E4M3FN", 20}, {"i4", 21},   {"ui4", 22}};
  for (int i = 0; i < COUNT_OF(types); i++)
    if (str_is(name, types[i].name)) return types[i].xla;
  return 0;
}

static void shape(Buf *out, int type, int rank, const int64_t *d, const int64_t *order) {
  Buf layout = {0};
  pb_int(out, 2, type);
  pb_ints(out, 3, rank, d);
  for (int i = 0; i < rank; i++) pb_int(out, 6, 0);
  pb_ints(&layout, 1, rank, order);
  pb_msg(out, 5, &layout);
}

/* "bf16[8,128]{1,0}" or "tensor<8x128xbf16>"; what is neither is a row of bytes. */
static void life_shape(Buf *out, const ProfLife *v) {
  int64_t d[64], order[64], bytes = (int64_t)v->bytes;
  int rank = 0, n_order = 0;
  const char *s = v->type;
  Str name = {s, 0};
  bool mlir = !strncmp(s, "tensor<", 7), good = true;
  if (mlir) {
    s += 7;
    for (char *end; good && *s >= '0' && *s <= '9'; s = end + 1) {
      good = rank < 64;
      if (good) d[rank++] = strtoll(s, &end, 10);
      good &= *end == 'x';
      if (!good) break;
    }
    size_t n = strlen(s);
    name = (Str){s, n ? n - 1 : 0};
  } else {
    name.n = strcspn(s, "[");
    s += name.n;
    for (char *end; good && (*s == '[' || *s == ',') && s[1] != ']'; s = end) {
      good = rank < 64;
      if (good) d[rank++] = strtoll(s + 1, &end, 10);
      else break;
    }
    s += *s == '[' ? 2 : *s == ']';
    for (char *end; (*s == '{' || *s == ',') && n_order < 64; s = end)
      order[n_order++] = strtoll(s + 1, &end, 10);
  }
  int type = element_type(name);
  if (!type || !good) {
    int64_t zero = 0;
    shape(out, 6, 1, &bytes, &zero);
    return;
  }
  for (int i = 0; i < rank && n_order != rank; i++) order[i] = rank - 1 - i;
  shape(out, type, rank, d, order);
}

/* ---- instructions ---------------------------------------------------------------------------- */

typedef struct Writer {
  const ProfProgram *q;
  int *maker;       /* of each life: its kernel; -1: an argument */
  int64_t *id;      /* of each life: the instruction that is it; 0: not written yet */
  int *place;       /* in its maker's tuple; -1: the maker's only result */
  Map *names;       /* taken ones */
  Buf instructions; /* of the computation */
  VEC(int64_t) order;
} Writer;

static const char *unique(Writer *w, const char *name, int64_t id, char own[static 160]) {
  snprintf(own, 160, "%.120s", *name ? name : "value");
  if (map_get(w->names, str_from(own))) snprintf(own, 160, "%.120s.%lld", name, (long long)id);
  map_set(w->names, str_from(own), w);
  return own;
}

/* take: its other fields; type: its shape. */
static void instruction(Writer *w, int64_t id, const char *name, const char *opcode, Buf *type,
                        Buf *take) {
  Buf b = {0};
  char own[160];
  pb_str(&b, 1, str_from(unique(w, name, id, own)));
  pb_str(&b, 2, str_from(opcode));
  pb_msg(&b, 3, type);
  buf_add(&b, take->p, take->n);
  buf_free(take);
  pb_int(&b, 35, id);
  pb_msg(&w->instructions, 2, &b);
  *vec_push(&w->order) = id;
}

static void metadata(Buf *out, const char *op, const char *place) {
  Buf m = {0};
  const char *line = strrchr(place, ':'), *paren = strchr(place, '(');
  if (paren)
    while (line && line > place && line > paren) line = memrchr(place, ':', (size_t)(line - place));
  pb_str(&m, 1, str_from(op));
  pb_str(&m, 2, str_from(*place ? place : op));
  if (line && line[1] >= '0' && line[1] <= '9') {
    pb_str(&m, 3, (Str){place, (size_t)(line - place)});
    pb_int(&m, 4, atoi(line + 1));
  }
  pb_msg(out, 7, &m);
}

static int results_of(const Writer *w, int kernel, int *first) {
  int n = 0;
  for (int i = w->q->n_lives - 1; i >= 0; i--)
    if (w->maker[i] == kernel) *first = i, n++;
  return n;
}

static void write_kernel(Writer *w, int at) {
  const ProfProgram *q = w->q;
  const ProfKernel *k = &q->kernels[at];
  Buf type = {0}, rest = {0};
  int first = 0, n = results_of(w, at, &first), place = 0;
  int64_t id = q->n_lives + 1 + at;
  VEC(int64_t) operands = {0};
  for (int i = 0; i < k->n_reads; i++)
    if (w->id[k->reads[i]]) *vec_push(&operands) = w->id[k->reads[i]];
  if (n == 1) life_shape(&type, &q->lives[first]);
  else if (!n) shape(&type, 11, 0, NULL, NULL);
  else pb_int(&type, 2, TUPLE);
  for (int i = first; n > 1 && i < q->n_lives; i++) {
    if (w->maker[i] != at) continue;
    Buf one = {0};
    life_shape(&one, &q->lives[i]);
    pb_msg(&type, 4, &one);
  }
  metadata(&rest, k->op, k->place);
  pb_str(&rest, 28, str_from(k->op));
  pb_ints(&rest, 36, operands.n, operands.v);
  vec_free(&operands);
  instruction(w, id, k->name, "custom-call", &type, &rest);
  for (int i = first; n && i < q->n_lives; i++) {
    if (w->maker[i] != at) continue;
    w->id[i] = id;
    w->place[i] = n > 1 ? place : -1;
    if (n == 1) break;
    Buf one = {0}, get = {0};
    life_shape(&one, &q->lives[i]);
    pb_int(&get, 13, place++);
    pb_ints(&get, 36, 1, &id);
    w->id[i] = i + 1;
    instruction(w, i + 1, q->lives[i].name, "get-tuple-element", &one, &get);
  }
}

static void write_program(Writer *w, Buf *out) {
  const ProfProgram *q = w->q;
  Buf whole = {0}, roots = {0}, computation = {0}, module = {0}, schedule = {0}, sequence = {0};
  VEC(int64_t) results = {0};
  int64_t parameters = 0, root = q->n_lives + q->n_kernels + 1;
  for (int i = 0; i < q->n_lives; i++) {
    if (w->maker[i] >= 0) continue;
    Buf type = {0}, same = {0}, rest = {0};
    life_shape(&type, &q->lives[i]);
    buf_add(&same, type.p, type.n);
    pb_msg(&whole, 1, &same);
    pb_str(&whole, 3, str_from(q->lives[i].name));
    pb_int(&rest, 9, parameters++);
    w->id[i] = i + 1;
    w->place[i] = -1;
    instruction(w, i + 1, q->lives[i].name, "parameter", &type, &rest);
  }
  for (int k = 0; k < q->n_kernels; k++) write_kernel(w, k);
  pb_int(&roots, 2, TUPLE);
  for (int i = 0; i < q->n_lives; i++) {
    if (strcmp(q->lives[i].role, "output") || !w->id[i]) continue;
    Buf type = {0};
    life_shape(&type, &q->lives[i]);
    pb_msg(&roots, 4, &type);
    *vec_push(&results) = w->id[i];
  }
  Buf type = {0}, rest = {0};
  buf_add(&type, roots.p, roots.n);
  pb_ints(&rest, 36, results.n, results.v);
  vec_free(&results);
  instruction(w, root, "results", "tuple", &type, &rest);
  pb_msg(&whole, 2, &roots);
  pb_str(&computation, 1, STR("main"));
  buf_add(&computation, w->instructions.p, w->instructions.n);
  pb_bytes(&computation, 4, &whole);
  pb_int(&computation, 5, COMPUTATION_ID);
  pb_int(&computation, 6, root);
  pb_ints(&sequence, 1, w->order.n, w->order.v);
  Buf entry = {0};
  pb_int(&entry, 1, COMPUTATION_ID);
  pb_msg(&entry, 2, &sequence);
  pb_msg(&schedule, 1, &entry);
  pb_str(&module, 1, str_from(q->name));
  pb_str(&module, 2, STR("main"));
  pb_msg(&module, 3, &computation);
  pb_msg(&module, 4, &whole);
  pb_int(&module, 5, MODULE_ID);
  pb_int(&module, 6, COMPUTATION_ID);
  pb_msg(&module, 7, &schedule);
  pb_msg(out, 1, &module);
}

/* ---- buffers --------------------------------------------------------------------------------- */

static void logical_buffer(const Writer *w, int i, Buf *out) {
  Buf b = {0}, at = {0};
  int64_t place = w->place[i], id = w->id[i];
  if (place >= 0) id = w->q->n_lives + 1 + w->maker[i]; /* part of the kernel's own result */
  pb_int(&b, 1, i + 1);
  pb_int(&b, 2, (int64_t)w->q->lives[i].bytes);
  if (place >= 0) pb_ints(&at, 3, 1, &place);
  pb_int(&at, 4, id);
  pb_msg(&b, 3, &at);
  pb_int(&b, 4, w->q->lives[i].on_chip);
  pb_msg(out, 1, &b);
}

static void assigned(Buf *allocation, int64_t buffer, double offset, double size) {
  Buf b = {0};
  pb_int(&b, 1, buffer);
  pb_int(&b, 2, (int64_t)offset);
  pb_int(&b, 3, (int64_t)size);
  pb_msg(allocation, 9, &b);
}

/* The lowest place beside what lives at the same time and has one already. */
static double lowest(const ProfProgram *q, const int *set, int n, const double *offset, int i) {
  const ProfLife *v = &q->lives[i];
  double at = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (int k = 0; k < n; k++) {
      const ProfLife *o = &q->lives[set[k]];
      bool together = o->from_s < v->to_s && v->from_s < o->to_s;
      if (!together || offset[set[k]] >= at + v->bytes || at >= offset[set[k]] + o->bytes) continue;
      at = offset[set[k]] + o->bytes;
      moved = true;
    }
  }
  return at;
}

#define PLACED 4000 /* lives up to which places are looked for */

/* The temporaries of one memory: one allocation and how it is used over time. */
static void temporaries(const Writer *w, bool on_chip, int64_t *index, Buf *out) {
  const ProfProgram *q = w->q;
  int *set = xmalloc(sizeof *set * ((size_t)q->n_lives + 1)), n = 0, changes;
  double *offset = xcalloc((size_t)q->n_lives + 1, sizeof *offset), size = 0;
  for (int i = 0; i < q->n_lives; i++) {
    const ProfLife *v = &q->lives[i];
    bool temporary = w->maker[i] >= 0 && w->id[i] && strcmp(v->role, "output") != 0;
    if (!temporary || v->on_chip != on_chip) continue;
    offset[i] = n < PLACED ? lowest(q, set, n, offset, i) : 0;
    size = MAX(size, offset[i] + v->bytes);
    set[n++] = i;
  }
  if (n) {
    Buf a = {0}, trace = {0};
    pb_int(&a, 1, *index);
    pb_int(&a, 2, (int64_t)size);
    for (int k = 0; k < n; k++) assigned(&a, set[k] + 1, offset[set[k]], q->lives[set[k]].bytes);
    pb_int(&a, 8, on_chip);
    pb_msg(out, 3, &a);
    ProfChange *c = prof_changes(q, on_chip, &changes);
    for (int k = 0; k < changes; k++) {
      int i = (int)(c[k].life - q->lives);
      if (w->maker[i] < 0 || !w->id[i] || !strcmp(c[k].life->role, "output")) continue;
      Buf e = {0};
      pb_int(&e, 1, c[k].bytes < 0);
      pb_int(&e, 2, i + 1);
      pb_str(&e, 3, STR("main"));
      pb_str(&e, 4, str_from(q->kernels[w->maker[i]].name));
      pb_msg(&trace, 1, &e);
    }
    free(c);
    pb_int(&trace, 2, 1);
    pb_int(&trace, 3, (*index)++);
    pb_msg(out, 4, &trace);
  }
  free(set);
  free(offset);
}

static void write_buffers(const Writer *w, Buf *out) {
  const ProfProgram *q = w->q;
  Buf b = {0};
  int64_t index = 0, parameter = 0;
  for (int i = 0; i < q->n_lives; i++)
    if (w->id[i]) logical_buffer(w, i, &b);
  for (int i = 0; i < q->n_lives; i++) {
    const ProfLife *v = &q->lives[i];
    bool argument = w->maker[i] < 0, output = !strcmp(v->role, "output");
    if (!w->id[i] || (!argument && !output)) continue;
    Buf a = {0};
    pb_int(&a, 1, index++);
    pb_int(&a, 2, (int64_t)v->bytes);
    if (argument) pb_int(&a, 5, 1), pb_int(&a, 6, parameter++);
    if (output) pb_int(&a, 7, 1);
    pb_int(&a, 8, v->on_chip);
    assigned(&a, i + 1, 0, v->bytes);
    pb_msg(&b, 3, &a);
  }
  temporaries(w, false, &index, &b);
  temporaries(w, true, &index, &b);
  pb_msg(out, 3, &b);
}

/* The kernel that makes a value; where that is not recorded, the one that runs when it begins. */
static int maker_of(const ProfProgram *q, const ProfLife *v) {
  if (!strcmp(v->role, "argument")) return -1;
  if (v->from_kernel >= 0 && v->from_kernel < q->n_kernels) return v->from_kernel;
  int best = 0;
  for (int k = 1; k < q->n_kernels; k++)
    if (q->kernels[k].start_s <= v->from_s + 1e-12 &&
        q->kernels[k].start_s >= q->kernels[best].start_s)
      best = k;
  return best;
}

void prof_hlo_proto(const ProfProgram *q, Buf *out) {
  Writer w = {.q = q, .names = map_new()};
  if (!q->n_kernels) {
    map_free(w.names);
    return;
  }
  w.maker = xmalloc(sizeof *w.maker * ((size_t)q->n_lives + 1));
  w.id = xcalloc((size_t)q->n_lives + 1, sizeof *w.id);
  w.place = xcalloc((size_t)q->n_lives + 1, sizeof *w.place);
  for (int i = 0; i < q->n_lives; i++) w.maker[i] = maker_of(q, &q->lives[i]);
  write_program(&w, out);
  write_buffers(&w, out);
  free(w.maker);
  free(w.id);
  free(w.place);
  buf_free(&w.instructions);
  vec_free(&w.order);
  map_free(w.names);
}
