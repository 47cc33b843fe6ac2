/* Plans as bytes. What a run follows blindly is checked when it is read: places lie in their memory,
 * steps name places, operations and blocks that there are. */
#include "compile/pass/query.h"
#include "compile/plan/plan.h"
#include "ir/wire.h"

typedef struct PlanWire {
  Wire *w;
  IrWire *ir;
  Plan *p;
  bool *taken; /* reading, by id: there is such a step already */
  int depth;
} PlanWire;

static bool reads(const PlanWire *x) { return wire_reads(x->w); }

static void *room(PlanWire *x, size_t size, int n) {
  return arena_alloc(x->p->mem, size * (size_t)n);
}
#define ROOM(x, T, n) ((T *)room(x, sizeof(T), n))

/* ---- fusions ---- */

static void wire_affine(PlanWire *x, Affine *a, int n) {
  wire_int(x->w, &a->off);
  for (int i = 0; i < n; i++) wire_int(x->w, &a->coef[i]);
}

static bool part_ok(const FusionOut *o) {
  const Op *op = o->v->def;
  return o->part < 0 || (op && op->kind == OP_CONCATENATE && o->part < op->n_operands);
}

static void wire_fusion(PlanWire *x, Fusion *f) {
  WIRE_ENUM(x->w, &f->kind, FusionKind, FUSION_SPLIT);
  wire_small(x->w, &f->dom.n, 0, DOM_MAX);
  for (int i = 0; i < f->dom.n; i++) {
    wire_range(x->w, &f->dom.dims[i], 0, INT64_MAX);
    wire_bool(x->w, &f->dom.reduced[i]);
  }
  wire_count(x->w, &f->n_ops, 1);
  wire_count(x->w, &f->n_in, 1);
  wire_count(x->w, &f->n_out, 1);
  if (reads(x)) {
    f->ops = ROOM(x, const Op *, f->n_ops);
    f->stored = ROOM(x, bool, f->n_ops);
    f->in = ROOM(x, Value *, f->n_in);
    f->out = ROOM(x, FusionOut, f->n_out);
    f->in_place = ROOM(x, bool, f->n_in);
  }
  x->w->bad |= f->n_ops == 0;
  for (int i = 0; i < f->n_ops; i++) {
    ir_wire_op(x->ir, &f->ops[i]);
    wire_bool(x->w, &f->stored[i]);
  }
  for (int i = 0; i < f->n_in; i++) {
    ir_wire_value(x->ir, &f->in[i]);
    wire_bool(x->w, &f->in_place[i]);
  }
  for (int i = 0; i < f->n_out && !x->w->bad; i++) {
    FusionOut *o = &f->out[i];
    ir_wire_value(x->ir, &o->v);
    wire_bool(x->w, &o->full);
    wire_small(x->w, &o->part, -1, MAX_PARTS - 1);
    x->w->bad |= !x->w->bad && !part_ok(o);
    int rank = x->w->bad ? 0 : o->v->type->rank;
    for (int k = 0; k < MIN(rank, DOM_MAX); k++) wire_affine(x, &o->at[k], f->dom.n);
  }
}

/* ---- steps ---- */

static void wire_places(PlanWire *x, int *n, int **v) {
  wire_count(x->w, n, 1);
  if (reads(x)) *v = ROOM(x, int, *n);
  for (int i = 0; i < *n; i++) wire_small(x->w, &(*v)[i], -1, x->p->n_places - 1);
}

static void wire_block(PlanWire *x, Block *b);

static int results_of(const Step *s) { return s->fusion ? s->fusion->n_out : s->op->n_results; }

/* Do the places fit what the step is? */
static bool is_whole(const Step *s) {
  switch (s->kind) {
  case STEP_OP:
  case STEP_COLLECTIVE: return s->n_in >= s->op->n_operands && s->n_out == results_of(s);
  case STEP_FUSED: return s->fusion && s->n_in == s->fusion->n_in && s->n_out == results_of(s);
  case STEP_WHILE: return s->n_blocks == 2 && s->pred >= 0;
  case STEP_CASE: return s->n_blocks >= 1 && s->pred >= 0 && s->op->n_operands >= 1;
  case STEP_COPY:
  case STEP_CUT:
  case STEP_JOIN: return s->n_in == 1 && s->n_out == 1;
  case STEP_VIEW:
    return (s->op->kind == OP_SLICE || s->op->kind == OP_DYNAMIC_SLICE ||
            s->op->kind == OP_DYNAMIC_UPDATE_SLICE) &&
           s->n_in == s->op->n_operands && s->n_out == 1 && s->out[0] >= 0;
  }
  return false;
}

static void wire_step(PlanWire *x, Step *s) {
  Wire *w = x->w;
  WIRE_ENUM(x->w, &s->kind, StepKind, STEP_VIEW);
  ir_wire_op(x->ir, &s->op);
  bool fused = s->fusion != NULL;
  wire_bool(w, &fused);
  if (fused) {
    Fusion *f = reads(x) ? ROOM(x, Fusion, 1) : (Fusion *)(uintptr_t)s->fusion;
    wire_fusion(x, f);
    if (reads(x)) s->fusion = f;
  }
  wire_places(x, &s->n_in, &s->in);
  wire_places(x, &s->n_out, &s->out);
  wire_small(w, &s->pred, -1, x->p->n_places - 1);
  wire_small(w, &s->trips, -1, INT32_MAX);
  wire_small(w, &s->index, 0, INT32_MAX);
  wire_small(w, &s->pos, 0, INT32_MAX);
  wire_small(w, &s->id, 0, x->p->n_steps - 1);
  if (reads(x) && !w->bad) {
    w->bad |= x->taken[s->id];
    x->taken[s->id] = true;
  }
  wire_count(w, &s->n_blocks, 1);
  if (reads(x)) s->blocks = ROOM(x, Block, s->n_blocks);
  for (int i = 0; i < s->n_blocks && !w->bad; i++) wire_block(x, &s->blocks[i]);
  if (!w->bad && !is_whole(s)) w->bad = true;
}

static void wire_block(PlanWire *x, Block *b) {
  x->w->bad |= x->depth == IR_MAX_DEPTH;
  if (x->w->bad) return;
  x->depth++;
  wire_count(x->w, &b->n, 8);
  if (reads(x)) b->steps = ROOM(x, Step, b->n);
  for (int i = 0; i < b->n && !x->w->bad; i++) wire_step(x, &b->steps[i]);
  int n = b->n_results;
  wire_places(x, &b->n_results, &b->from);
  wire_places(x, &n, &b->to);
  x->w->bad |= n != b->n_results;
  x->depth--;
}

/* ---- plans ---- */

/* The largest index that a place of this kind may have. */
static int64_t last_index(const Plan *p, PlaceKind k) {
  switch (k) {
  case PLACE_ARG: return p->main->type->n_elems - 1;
  case PLACE_RESULT: return p->main->type->n_results - 1;
  case PLACE_CONST: return p->n_consts - 1;
  default: return INT32_MAX;
  }
}

static void wire_place(PlanWire *x, Place *q) {
  Wire *w = x->w;
  const Plan *p = x->p;
  WIRE_ENUM(x->w, &q->kind, PlaceKind, PLACE_VIEW);
  wire_small(w, &q->index, 0, (int)last_index(p, q->kind));
  wire_range(w, &q->bytes, 0, INT64_MAX);
  wire_range(w, &q->offset, 0, INT64_MAX);
  wire_small(w, &q->begin, -1, INT32_MAX);
  wire_small(w, &q->end, -1, INT32_MAX);
  int64_t arena = p->arena_bytes;
  if (q->kind == PLACE_ARENA) w->bad |= q->offset > arena || q->bytes > arena - q->offset;
  if (q->kind == PLACE_CONST)
    w->bad |= w->bad || (int64_t)tensor_bytes(p->consts[q->index]) < q->bytes;
}

static void wire_all(PlanWire *x) {
  Wire *w = x->w;
  Plan *p = x->p;
  ir_wire_module(x->ir, &p->module, true);
  if (reads(x)) p->main = module_main(p->module);
  w->bad |= !p->main || !p->main->body;
  if (w->bad) return;
  wire_small(w, &p->n_procs, 1, 1); /* nothing has owners */
  wire_range(w, &p->arena_bytes, 0, INT64_MAX);
  wire_range(w, &p->arena_each_bytes, 0, INT64_MAX);
  wire_count(w, &p->n_consts, 1);
  if (reads(x)) p->consts = ROOM(x, Tensor *, p->n_consts);
  for (int i = 0; i < p->n_consts; i++) ir_wire_tensor(x->ir, &p->consts[i]);
  wire_count(w, &p->n_places, 7);
  if (reads(x)) p->places = ROOM(x, Place, p->n_places);
  for (int i = 0; i < p->n_places && !w->bad; i++) wire_place(x, &p->places[i]);
  wire_count(w, &p->n_steps, 1);
  if (reads(x)) x->taken = ROOM(x, bool, p->n_steps);
  wire_block(x, &p->body);
  wire_count(w, &p->n_results, 2);
  w->bad |= p->n_results != p->main->type->n_results;
  if (reads(x)) p->results = ROOM(x, PlanResult, p->n_results);
  for (int i = 0; i < p->n_results; i++) {
    wire_small(w, &p->results[i].place, -1, p->n_places - 1);
    wire_small(w, &p->results[i].reuse_arg, -1, p->main->type->n_elems - 1);
  }
  int n = p->main->n_values;
  if (reads(x)) {
    w->bad |= n != ir_number(p->main) || (size_t)n > w->in.n;
    if (w->bad) return;
    p->value_place = ROOM(x, int, n);
    p->value_owners = ROOM(x, Owners, n);
  }
  for (int i = 0; i < n; i++) wire_small(w, &p->value_place[i], -1, p->n_places - 1);
}

void plan_wire(Wire *w, Plan **p) {
  if (wire_reads(w)) {
    *p = xcalloc(1, sizeof **p);
    (*p)->mem = arena_new();
  }
  PlanWire x = {.w = w, .ir = ir_wire_new(w), .p = *p};
  wire_all(&x);
  ir_wire_free(x.ir);
}
