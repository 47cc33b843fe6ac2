/* pass_number_loops, pass_count_loops: how often the bodies of loops run, told by the program itself.
 *
 * A model of time cannot know the trips of a loop whose condition depends on data; who runs the program does. Loops get numbers
 * (the attribute weft.loop), which the model's copy of the program and the executor's share; in the executor's, a counter goes
 * through every loop and branch that a wanted loop lies in, and comes out as one more result of the program. */
#include <stdlib.h>

#include "compile/pass/pass_priv.h"

#define NUMBER "weft.loop"

static Err *number(Op *op, void *arg) {
  struct Numbering {
    Module *m;
    int n;
  } *to = arg;
  if (op->kind == OP_WHILE) op_set_attr(to->m, op, STR(NUMBER), attr_int(to->m, DT_I64, to->n++));
  return NULL;
}

int pass_number_loops(Module *m) {
  struct {
    Module *m;
    int n;
  } to = {m, 0};
  for (int i = 0; i < m->funcs.n; i++)
    if (m->funcs.v[i]->body) err_free(ir_walk(m->funcs.v[i]->body, number, &to));
  return to.n;
}

int loop_number(const Op *op) { return (int)op_int(op, NUMBER, -1); }

typedef struct Counting {
  Module *m;
  Func *main;
  Type *type;         /* of a counter */
  int n;              /* numbers */
  const bool *wanted; /* by number */
  Value **total;      /* by number: so far, where the walk is; NULL: not counted here */
} Counting;

static bool carries(const Op *op) {
  return op->kind == OP_WHILE || op->kind == OP_IF || op->kind == OP_CASE;
}

static bool is_wanted(const Counting *c, const Op *op) {
  int k = op->kind == OP_WHILE ? loop_number(op) : -1;
  return k >= 0 && k < c->n && c->wanted[k];
}

/* Marks the wanted loops that a counter can come out of: under nothing but loops and branches. */
static bool mark(const Counting *c, const Op *op, bool *found) {
  bool any = is_wanted(c, op);
  if (any) found[loop_number(op)] = true;
  for (int i = 0; i < op->n_regions && carries(op); i++)
    for (const Op *in = op->regions[i]->first; in; in = in->next)
      if (op->kind != OP_WHILE || i == 1) any |= mark(c, in, found);
  return any;
}

static Value *add_arg(Counting *c, Region *r) {
  Arena *a = c->m->arena;
  Value **args = ARENA_ARRAY(a, Value *, r->n_args + 1), *v = ARENA_NEW(a, Value);
  if (r->n_args) memcpy(args, r->args, sizeof *args * (size_t)r->n_args);
  *v = (Value){.type = c->type, .region = r, .index = r->n_args, .id = -1};
  args[r->n_args++] = v;
  r->args = args;
  return v;
}

/* The region gives the totals of `found`, in their order, after what it gave. */
static void give(Counting *c, Region *r, const bool *found) {
  Op *old = r->last;
  VEC(Value *) v = {0};
  for (int i = 0; i < old->n_operands; i++) *vec_push(&v) = old->operands[i];
  for (int k = 0; k < c->n; k++)
    if (found[k]) *vec_push(&v) = c->total[k];
  Op *more = op_new(c->m, old->kind, v.n, v.v, 0, NULL, old->n_attrs, old->attrs, 0, NULL);
  more->name = old->name;
  more->loc = old->loc;
  op_insert_before(old, more);
  op_remove(old);
  vec_free(&v);
}

/* The op with as many more operands (of a loop) and results as there are totals in it; these are the totals now. */
static Op *widen(Counting *c, Op *op, const bool *found) {
  VEC(Value *) in = {0};
  VEC(Type *) out = {0};
  for (int i = 0; i < op->n_operands; i++) *vec_push(&in) = op->operands[i];
  for (int i = 0; i < op->n_results; i++) *vec_push(&out) = op->results[i].type;
  for (int k = 0; k < c->n; k++) {
    if (!found[k]) continue;
    if (op->kind == OP_WHILE) *vec_push(&in) = c->total[k];
    *vec_push(&out) = c->type;
  }
  Op *wide = op_new(c->m, op->kind, in.n, in.v, out.n, out.v, op->n_attrs, op->attrs, op->n_regions,
                    op->regions);
  wide->loc = op->loc;
  wide->line = op->line;
  wide->col = op->col;
  op_insert_before(op, wide);
  int at = op->n_results;
  for (int i = 0; i < at; i++) value_replace_all(c->main, &op->results[i], &wide->results[i]);
  for (int k = 0; k < c->n; k++)
    if (found[k]) c->total[k] = &wide->results[at++];
  op_remove(op);
  vec_free(&in);
  vec_free(&out);
  return wide;
}

static Value *constant(Counting *c, Op *before, int64_t v) {
  NamedAttr value = {STR("value"), attr_tensor_i64(c->m, 0, NULL, &v)};
  Op *k = op_new(c->m, OP_CONSTANT, 0, NULL, 1, &c->type, 1, &value, 0, NULL);
  op_insert_before(before, k);
  return &k->results[0];
}

static void count_region(Counting *c, Region *r);

static void count_loop(Counting *c, Op *op, const bool *found) {
  Region *body = op->regions[1];
  for (int k = 0; k < c->n; k++)
    if (found[k]) add_arg(c, op->regions[0]), c->total[k] = add_arg(c, body);
  count_region(c, body);
  if (!is_wanted(c, op)) return;
  Value **total = &c->total[loop_number(op)];
  Value *sum[2] = {*total, constant(c, body->last, 1)};
  Op *add = op_new(c->m, OP_ADD, 2, sum, 1, &c->type, 0, NULL, 0, NULL);
  op_insert_before(body->last, add);
  *total = &add->results[0];
}

static Op *count_op(Counting *c, Op *op) {
  bool *found = xcalloc((size_t)c->n + 1, sizeof *found);
  Value **before = xmalloc(sizeof *before * (size_t)(c->n + 1));
  memcpy(before, c->total, sizeof *before * (size_t)c->n);
  if (mark(c, op, found)) {
    for (int i = 0; i < op->n_regions; i++) {
      if (op->kind == OP_WHILE && i == 0) continue;
      memcpy(c->total, before, sizeof *before * (size_t)c->n);
      if (op->kind == OP_WHILE) count_loop(c, op, found);
      else count_region(c, op->regions[i]);
      give(c, op->regions[i], found);
    }
    memcpy(c->total, before, sizeof *before * (size_t)c->n);
    op = widen(c, op, found);
  }
  free(found);
  free(before);
  return op;
}

static void count_region(Counting *c, Region *r) {
  for (Op *op = r->first; op; op = op->next)
    if (carries(op)) op = count_op(c, op);
}

/* The function's results with n more. */
static void add_results(Counting *c, int n) {
  Func *f = c->main;
  Arena *a = c->m->arena;
  int old = f->type->n_results;
  Type **types = ARENA_ARRAY(a, Type *, old + n + 1);
  NamedAttr **attrs = ARENA_ARRAY(a, NamedAttr *, old + n + 1);
  int *counts = ARENA_ARRAY(a, int, old + n + 1);
  for (int i = 0; i < old + n; i++) {
    types[i] = i < old ? f->type->results[i] : c->type;
    attrs[i] = i < old && f->res_attrs ? f->res_attrs[i] : NULL;
    counts[i] = i < old && f->n_res_attrs ? f->n_res_attrs[i] : 0;
  }
  f->type = type_func(c->m, f->type->n_elems, f->type->elems, old + n, types);
  f->res_attrs = attrs;
  f->n_res_attrs = counts;
}

int pass_count_loops(Module *m, int n, bool *wanted) {
  Counting c = {.m = m, .main = module_main(m), .type = type_tensor(m, DT_I64, 0, NULL), .n = n};
  bool *found = xcalloc((size_t)n + 1, sizeof *found);
  int counted = 0;
  c.wanted = wanted;
  for (const Op *op = c.main->body->first; op; op = op->next)
    if (carries(op)) mark(&c, op, found);
  memcpy(wanted, found, sizeof *found * (size_t)n);
  c.total = xcalloc((size_t)n + 1, sizeof *c.total);
  for (int k = 0; k < n; k++)
    if (found[k]) c.total[k] = constant(&c, c.main->body->first, 0), counted++;
  if (counted) {
    count_region(&c, c.main->body);
    give(&c, c.main->body, found);
    add_results(&c, counted);
  }
  free(c.total);
  free(found);
  return counted;
}
