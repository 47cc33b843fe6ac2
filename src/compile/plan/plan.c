/* plan: steps in order, and a place for every value.
 *
 * Building walks the regions and gives each value a place (aliases share one) and each step a
 * position on one time line that runs through nested blocks. A place lives from the position that
 * writes it first to the last that reads it; what is read inside a loop but written outside lives
 * until the loop ends. Then places are merged where one memory can serve both: loop-carried values
 * with what the body computes for them, operands that die with results computed in place. Last, the
 * arena is packed (pack.c). */
#include <stdlib.h>

#include "compile/plan/plan_priv.h"

static int new_place(Builder *b, PlaceKind kind, int index, int64_t bytes, Owners owners) {
  Place *p = vec_push(&b->places);
  *p = (Place){
      .kind = kind, .index = index, .bytes = bytes, .owners = owners, .begin = -1, .end = -1};
  *vec_push(&b->merged) = -1;
  return b->places.n - 1;
}

int plan_root(const Builder *b, int place) {
  while (place >= 0 && b->merged.v[place] >= 0) place = b->merged.v[place];
  return place;
}

/* The older form of a manual computation: between whole values and one part for each process. */
static bool is_spmd_call(const Op *op) {
  Str name = op->kind == OP_CUSTOM_CALL ? op_str(op, "call_target_name") : (Str){0};
  return str_is(name, "SPMDFullToShardShape") || str_is(name, "SPMDShardToFullShape");
}

/* ---- positions and lives ---- */

static void touch(Builder *b, int place, int pos) {
  if (place < 0) return;
  Place *p = &b->places.v[place];
  if (p->begin < 0) p->begin = pos;
  p->end = MAX(p->end, pos);
}

static void read_place(Builder *b, int place, int pos, const Step *by, int operand) {
  if (place < 0) return;
  touch(b, place, pos);
  if (b->places.v[place].kind == PLACE_VIEW) read_place(b, b->places.v[place].index, pos, NULL, 0);
  *vec_push(&b->reads) = (Read){place, pos, by ? by->id : -1, operand, -1};
  for (int i = 0; i < b->loops.n; i++) /* outermost loop that the place was made outside of */
    if (b->places.v[place].begin < b->loops.v[i].begin || b->places.v[place].kind != PLACE_ARENA) {
      *vec_push(&b->loops.v[i].used) = place;
      break;
    }
}

static void write_place(Builder *b, int place, int pos) {
  touch(b, place, pos);
  if (place >= 0 && b->places.v[place].kind == PLACE_VIEW) touch(b, b->places.v[place].index, pos);
}

static int place_of(const Builder *b, const Value *v) { return b->plan->value_place[v->id]; }

static int make_value(Builder *b, const Value *v) {
  int64_t bytes = v->type->kind == TY_TENSOR ? type_bytes(v->type) : 0;
  PlaceKind kind = v->type->kind == TY_TENSOR ? PLACE_ARENA : PLACE_NONE;
  int p = new_place(b, kind, 0, bytes, b->plan->value_owners[v->id]);
  b->plan->value_place[v->id] = p;
  return p;
}

/* ---- steps ---- */

static Step *new_step(Builder *b, Steps *list, StepKind kind, const Op *op, int n_in, int n_out) {
  Step *s = vec_push(list);
  *s = (Step){.kind = kind,
              .op = op,
              .n_in = n_in,
              .n_out = n_out,
              .pred = -1,
              .pos = b->pos++,
              .id = b->n_steps++};
  s->in = ARENA_ARRAY(b->plan->mem, int, n_in);
  s->out = ARENA_ARRAY(b->plan->mem, int, n_out);
  return s;
}

static void join_owners(Builder *b, Step *s, int place) {
  if (place >= 0) s->owners = owner_sets_join(b->owners, s->owners, b->places.v[place].owners);
}

static void step_reads(Builder *b, Step *s) {
  for (int i = 0; i < s->n_in; i++) {
    read_place(b, s->in[i], s->pos, s, i);
    join_owners(b, s, s->in[i]);
  }
  for (int i = 0; i < s->n_out; i++) {
    write_place(b, s->out[i], s->pos);
    join_owners(b, s, s->out[i]);
  }
}

static Err *build_block(Builder *b, Region *r, Steps *list);

static void finish_block(Builder *b, Block *out, Steps *list) {
  out->n = list->n;
  out->steps = list->n ? arena_dup(b->plan->mem, list->v, sizeof(Step) * (size_t)list->n) : NULL;
  vec_free(list);
}

static void open_loop(Builder *b) {
  Loop *l = vec_push(&b->loops);
  *l = (Loop){.begin = b->pos};
}

static void close_loop(Builder *b) {
  Loop l = b->loops.v[--b->loops.n];
  for (int i = 0; i < l.used.n; i++) touch(b, l.used.v[i], b->pos);
  b->pos++;
  vec_free(&l.used);
}

static void block_results(Builder *b, Block *blk, const Region *r, int n, const int *to) {
  blk->n_results = n;
  blk->from = ARENA_ARRAY(b->plan->mem, int, n);
  blk->to = ARENA_ARRAY(b->plan->mem, int, n);
  for (int i = 0; i < n; i++) {
    blk->from[i] = place_of(b, r->last->operands[i]);
    blk->to[i] = to[i];
    read_place(b, blk->from[i], b->pos, NULL, i);
  }
  for (int i = 0; i < n; i++) write_place(b, to[i], b->pos);
  b->pos++;
}

/* Do processes go different ways by the value at this place, in a plan that is run for all of them at once? */
static bool differs(Builder *b, int place) {
  if (place < 0 || !b->places.v[place].owners) return false;
  b->plan->diverges = true;
  return b->manual || !b->target->apart;
}

#define MAX_TRIPS (1 << 20) /* counted when compiled */

static Err *build_while(Builder *b, Op *op, Steps *list) {
  int n = op->n_operands;
  int *carried = ARENA_ARRAY(b->plan->mem, int, n);
  for (int i = 0; i < n; i++) {
    carried[i] = make_value(b, &op->results[i]);
    b->plan->value_place[op->regions[0]->args[i]->id] = carried[i];
    b->plan->value_place[op->regions[1]->args[i]->id] = carried[i];
    if (b->places.v[carried[i]].kind == PLACE_NONE) continue;
    if (loop_puts_all(op, i)) {
      write_place(b, carried[i], b->pos++);
      continue;
    }
    Step *c = new_step(b, list, STEP_COPY, op, 1, 1);
    c->in[0] = place_of(b, op->operands[i]);
    c->out[0] = carried[i];
    step_reads(b, c);
  }
  Step head = {.kind = STEP_WHILE, .op = op, .n_blocks = 2, .id = b->n_steps++, .pos = b->pos++};
  head.blocks = ARENA_ARRAY(b->plan->mem, Block, 2);
  open_loop(b);
  Steps cond = {0}, body = {0};
  TRY(build_block(b, op->regions[0], &cond));
  finish_block(b, &head.blocks[0], &cond);
  int counter;
  int64_t first, by;
  bool only_tells = head.blocks[0].n == 1 && head.blocks[0].steps[0].kind == STEP_FUSED;
  head.trips = only_tells ? loop_trip_count(op, MAX_TRIPS, &counter, &first, &by) : -1;
  head.pred = place_of(b, op->regions[0]->last->operands[0]);
  read_place(b, head.pred, b->pos++, NULL, 0);
  if (differs(b, head.pred))
    return op_err(op, ERR_UNIMPLEMENTED,
                  "a loop that ends at different times on different processes");
  int begin = b->pos;
  plan_find_puts(b, op);
  TRY(build_block(b, op->regions[1], &body));
  finish_block(b, &head.blocks[1], &body);
  block_results(b, &head.blocks[1], op->regions[1], n, carried);
  *vec_push(&b->bodies) = (Body){head.blocks[1].from, carried, n, begin, b->pos - 1, true};
  for (int i = 0; i < n; i++) touch(b, carried[i], b->pos);
  close_loop(b);
  *vec_push(list) = head;
  return NULL;
}

static Err *build_case(Builder *b, Op *op, Steps *list) {
  int *to = ARENA_ARRAY(b->plan->mem, int, op->n_results);
  for (int i = 0; i < op->n_results; i++) to[i] = make_value(b, &op->results[i]);
  Step head = {
      .kind = STEP_CASE, .op = op, .n_blocks = op->n_regions, .id = b->n_steps++, .pos = b->pos++};
  head.pred = place_of(b, op->operands[0]);
  read_place(b, head.pred, head.pos, NULL, 0);
  if (differs(b, head.pred))
    return op_err(op, ERR_UNIMPLEMENTED, "a branch that differs between processes");
  head.blocks = ARENA_ARRAY(b->plan->mem, Block, op->n_regions);
  for (int k = 0; k < op->n_regions; k++) {
    Steps branch = {0};
    int begin = b->pos;
    TRY(build_block(b, op->regions[k], &branch));
    finish_block(b, &head.blocks[k], &branch);
    block_results(b, &head.blocks[k], op->regions[k], op->n_results, to);
    *vec_push(&b->bodies) =
        (Body){head.blocks[k].from, to, op->n_results, begin, b->pos - 1, false};
  }
  *vec_push(list) = head;
  return NULL;
}

/* out becomes the part of in[0] that a slice or a put means. */
static void build_view(Builder *b, const Op *op, const Value *out, Steps *list) {
  int whole = place_of(b, op->operands[0]), part = make_value(b, out);
  b->places.v[part].kind = PLACE_VIEW;
  b->places.v[part].index = whole;
  Step *s = new_step(b, list, STEP_VIEW, op, op->n_operands, 1);
  for (int i = 0; i < op->n_operands; i++)
    s->in[i] = op->operands[i] == out ? -1 : place_of(b, op->operands[i]);
  s->out[0] = part;
  step_reads(b, s);
}

/* A place for what a step makes. */
static void make_result(Builder *b, const Value *v, Steps *list) {
  const Op *put = plan_put_of(b, v);
  if (put) build_view(b, put, v, list);
  else make_value(b, v);
}

/* Every axis that the shardings name is manual: each block belongs to one process. */
static bool only_manual_axes(const Op *op, const char *attr) {
  const Attr *list = op_attr(op, attr), *manual = op_attr(op, "manual_axes");
  for (int i = 0; list && list->kind == AT_ARRAY && i < list->n; i++) {
    const Attr *a = list->items[i];
    if (a->kind != AT_SHARDING) return false;
    for (int d = 0; d < a->sharding->n_dims; d++)
      for (int k = 0; k < a->sharding->dims[d].n_axes; k++) {
        bool found = false;
        for (int m = 0; manual && manual->kind == AT_ARRAY && m < manual->n; m++)
          found |= str_eq(manual->items[m]->s, a->sharding->dims[d].axes[k].name);
        if (!found) return false;
      }
    if (a->sharding->n_unreduced) return false;
  }
  return list != NULL;
}

static Err *build_manual(Builder *b, Op *op, Steps *list) {
  if (b->manual) return op_err(op, ERR_UNIMPLEMENTED, "a manual computation inside another");
  if (b->target->replicas > 1 || !only_manual_axes(op, "in_shardings") ||
      !only_manual_axes(op, "out_shardings"))
    return op_err(op, ERR_UNIMPLEMENTED, "a manual computation over some of the axes");
  Region *r = op->regions[0];
  for (int i = 0; i < op->n_operands; i++) {
    make_value(b, r->args[i]);
    Step *c = new_step(b, list, STEP_CUT, op, 1, 1);
    c->index = i;
    c->in[0] = place_of(b, op->operands[i]);
    c->out[0] = place_of(b, r->args[i]);
    if (c->in[0] >= 0 && b->places.v[c->in[0]].owners)
      return op_err(op, ERR_UNIMPLEMENTED, "a manual computation over values that differ already");
    step_reads(b, c);
  }
  b->manual++;
  TRY(build_block(b, r, list));
  b->manual--;
  for (int i = 0; i < op->n_results; i++) {
    make_value(b, &op->results[i]);
    Step *c = new_step(b, list, STEP_JOIN, op, 1, 1);
    c->index = i;
    c->in[0] = place_of(b, r->last->operands[i]);
    c->out[0] = place_of(b, &op->results[i]);
    step_reads(b, c);
  }
  return NULL;
}

static Err *build_op(Builder *b, const Nodes *nodes, int at, Steps *list) {
  Op *op = nodes->v[at].op;
  if (op_is_alias(op)) {
    for (int i = 0; i < op->n_results; i++)
      b->plan->value_place[op->results[i].id] = place_of(b, op->operands[i]);
    return NULL;
  }
  switch (op->kind) {
  case OP_CONSTANT: {
    Tensor *t = value_constant(&op->results[0]);
    int p = new_place(b, PLACE_CONST, b->consts.n, (int64_t)tensor_bytes(t), NULL);
    *vec_push(&b->consts) = t;
    b->plan->value_place[op->results[0].id] = p;
    return NULL;
  }
  case OP_CREATE_TOKEN:
  case OP_AFTER_ALL: make_value(b, &op->results[0]); return NULL;
  case OP_SHARDING_GROUP: return NULL;
  case OP_WHILE: return build_while(b, op, list);
  case OP_CASE:
  case OP_IF: return build_case(b, op, list);
  case OP_MANUAL_COMPUTATION: return build_manual(b, op, list);
  default: break;
  }
  if (plan_slice_is_view(b, op) && !plan_is_outlived(b, nodes, at)) {
    build_view(b, op, &op->results[0], list);
    return NULL;
  }
  if (plan_put_is_done(b, op)) {
    b->plan->value_place[op->results[0].id] = place_of(b, op->operands[0]);
    return NULL;
  }
  Value **cap;
  int n_cap = op_captures(op, &cap);
  for (int i = 0; i < op->n_results; i++) make_result(b, &op->results[i], list);
  bool coll = op_info[op->kind].cls == OC_COLLECTIVE || is_spmd_call(op);
  Step *s = new_step(b, list, coll ? STEP_COLLECTIVE : STEP_OP, op, op->n_operands + n_cap,
                     op->n_results);
  for (int i = 0; i < op->n_operands; i++) s->in[i] = place_of(b, op->operands[i]);
  for (int i = 0; i < n_cap; i++) s->in[op->n_operands + i] = place_of(b, cap[i]);
  for (int i = 0; i < op->n_results; i++) s->out[i] = place_of(b, &op->results[i]);
  free(cap);
  step_reads(b, s);
  bool counts = op_info[op->kind].cls == OC_TEST || op->kind == OP_CUSTOM_CALL;
  if (b->manual && counts) s->owners = owner_sets_own(b->owners); /* once for each process */
  return NULL;
}

static void build_fusion(Builder *b, const Fusion *f, Steps *list) {
  for (int i = 0; i < f->n_out; i++)
    if (f->out[i].part <= 0) make_result(b, f->out[i].v, list);
  Step *s = new_step(b, list, STEP_FUSED, f->ops[f->n_ops - 1], f->n_in, f->n_out);
  s->fusion = f;
  for (int i = 0; i < f->n_in; i++) s->in[i] = place_of(b, f->in[i]);
  for (int i = 0; i < f->n_out; i++) s->out[i] = place_of(b, f->out[i].v);
  step_reads(b, s);
}

static Err *build_block(Builder *b, Region *r, Steps *list) {
  Nodes nodes = {0};
  TRY(fuse_region(b->plan->module, b->target, r, &nodes));
  order_nodes(b->plan->main, r, &nodes);
  Err *e = NULL;
  for (int i = 0; i < nodes.n && !e; i++) {
    if (nodes.v[i].kind == NODE_FUSION) build_fusion(b, nodes.v[i].fusion, list);
    else e = build_op(b, &nodes, i, list);
  }
  vec_free(&nodes);
  return e;
}

/* ---- what only the interpreter can do ---- */

static Err *check_type(const Op *op, const Type *t) {
  if (t->kind == TY_TOKEN) return NULL;
  if (t->kind != TY_TENSOR) return op_err(op, ERR_UNIMPLEMENTED, "a value that is not a tensor");
  if (!type_is_static(t)) return op_err(op, ERR_UNIMPLEMENTED, "a dynamic shape");
  if (t->quant) return op_err(op, ERR_UNIMPLEMENTED, "a quantized type");
  return NULL;
}

static Err *check_region(Builder *b, const Region *r) {
  for (const Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_operands; i++) TRY(check_type(op, op->operands[i]->type));
    for (int i = 0; i < op->n_results; i++) TRY(check_type(op, op->results[i].type));
    switch (op->kind) {
    case OP_INFEED:
    case OP_OUTFEED:
    case OP_SEND:
    case OP_RECV:
    case OP_ASYNC_START:
    case OP_ASYNC_DONE:
    case OP_INTERPRETER_RUN_PARALLEL:
    case OP_INTERPRETER_PROBE:
    case OP_CHECK_EXPECT_SERIALIZED_EQ:
    case OP_RNG: /* numbered within a run */
    case OP_UNKNOWN: return op_err(op, ERR_UNIMPLEMENTED, "left to the interpreter");
    default: break;
    }
    OpClass c = op_info[op->kind].cls;
    if (c == OC_COLLECTIVE &&
        (!b->target->collective || !b->target->collective(b->target->arg, op)))
      return op_err(op, ERR_UNIMPLEMENTED, "a collective without a kernel");
    if (is_spmd_call(op) && (b->target->replicas > 1 || !b->target->collective))
      return op_err(op, ERR_UNIMPLEMENTED, "left to the interpreter");
    if (op->kind == OP_WHILE || op->kind == OP_CASE || op->kind == OP_IF ||
        op->kind == OP_MANUAL_COMPUTATION)
      for (int i = 0; i < op->n_regions; i++) TRY(check_region(b, op->regions[i]));
  }
  return NULL;
}

/* ---- the whole ---- */

static void place_results(Builder *b) {
  Plan *p = b->plan;
  const Op *ret = p->main->body->last;
  p->n_results = ret->n_operands;
  p->results = ARENA_ARRAY(p->mem, PlanResult, p->n_results);
  for (int j = 0; j < p->n_results; j++) {
    int at = place_of(b, ret->operands[j]);
    p->results[j] = (PlanResult){at, -1};
    if (at < 0) continue;
    Place *q = &b->places.v[at];
    if (q->kind == PLACE_ARENA) {
      q->kind = PLACE_RESULT;
      q->index = j;
    }
    read_place(b, at, b->pos, NULL, j);
  }
  b->pos++;
}

Err *plan_build(Module *m, const Target *t, Plan **out) {
  Plan *p = xcalloc(1, sizeof *p);
  p->module = m;
  p->main = module_main(m);
  p->mem = arena_new();
  p->n_procs = MAX(t->replicas, 1) * MAX(t->partitions, 1);
  int n = ir_number(p->main);
  p->value_place = ARENA_ARRAY(p->mem, int, n);
  for (int i = 0; i < n; i++) p->value_place[i] = -1;
  Builder b = {.plan = p, .target = t, .owners = owner_sets_new(p->n_procs, p->mem)};
  Region *r = p->main->body;
  Err *e = check_region(&b, r);
  if (!e) {
    p->value_owners = replication_find(p->main, MAX(t->replicas, 1), MAX(t->partitions, 1),
                                       t->arg_owners, b.owners, p->mem);
    for (int i = 0; i < r->n_args; i++) {
      Value *v = r->args[i];
      PlaceKind kind = v->type->kind == TY_TENSOR ? PLACE_ARG : PLACE_NONE;
      int64_t bytes = kind == PLACE_ARG ? type_bytes(v->type) : 0;
      p->value_place[v->id] = new_place(&b, kind, i, bytes, p->value_owners[v->id]);
      write_place(&b, p->value_place[v->id], 0);
    }
    b.pos = 1;
    Steps list = {0};
    e = build_block(&b, r, &list);
    finish_block(&b, &p->body, &list);
  }
  if (!e) {
    place_results(&b);
    plan_merge(&b);
    e = plan_pack(&b);
    p->n_steps = b.n_steps;
    p->n_consts = b.consts.n;
    p->consts =
        b.consts.n ? arena_dup(p->mem, b.consts.v, sizeof(Tensor *) * (size_t)b.consts.n) : NULL;
  }
  vec_free(&b.places);
  vec_free(&b.merged);
  vec_free(&b.reads);
  vec_free(&b.bodies);
  vec_free(&b.consts);
  vec_free(&b.puts);
  for (int i = 0; i < b.loops.n; i++) vec_free(&b.loops.v[i].used);
  vec_free(&b.loops);
  owner_sets_free(b.owners);
  if (e) {
    p->module = NULL; /* the caller's still */
    plan_free(p);
    return e;
  }
  *out = p;
  return NULL;
}

void plan_free(Plan *p) {
  if (!p) return;
  module_free(p->module);
  arena_free(p->mem);
  free(p);
}
