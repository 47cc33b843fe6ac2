/* Which loops become one function, and what tells two of them apart. */
#include "dev/cpu/loops/while_codegen.h"
#include "ir/build.h"

#define MOST_STEPS 64
#define MOST_NODES 400
#define MOST_ELEMENTS 1024 /* of a fusion */
#define MOST_MOVED 1024    /* bytes that a step moves */

/* ---- places ---- */

static void add_place(WhileCode *c, int place) {
  if (place < 0) return;
  for (int i = 0; i < c->places.n; i++)
    if (c->places.v[i] == place) return;
  *vec_push(&c->places) = place;
}

static void add_places(WhileCode *c, const Step *s) {
  for (int i = 0; i < s->n_in; i++) add_place(c, s->in[i]);
  for (int i = 0; i < s->n_out; i++) add_place(c, s->out[i]);
  if (s->n_blocks) add_place(c, s->pred);
  for (int k = 0; k < s->n_blocks; k++) {
    const Block *b = &s->blocks[k];
    for (int i = 0; i < b->n; i++) add_places(c, &b->steps[i]);
    bool condition = s->kind == STEP_WHILE && k == 0;
    for (int i = 0; i < b->n_results && !condition; i++) {
      add_place(c, b->from[i]);
      add_place(c, b->to[i]);
    }
  }
}

int while_places(const Plan *p, const Step *s, int **out) {
  WhileCode c = {.plan = p, .step = s};
  add_places(&c, s);
  *out = c.places.v;
  return c.places.n;
}

/* ---- which ---- */

bool while_box(const Type *whole, const Type *part, Box *out) {
  int64_t run = dtype_bytes(part->dtype), strides[CPU_MAX_RANK], stride = run;
  int k = part->rank - 1;
  for (int i = k; i >= 0; i--) {
    strides[i] = stride;
    stride *= whole->dims[i];
  }
  while (k >= 0 && (part->dims[k] == 1 || strides[k] == run)) run *= part->dims[k--];
  *out = (Box){.piece = run, .n = 1};
  for (; k >= 0; k--) {
    int64_t n = out->n, d = part->dims[k];
    if (d * n > COUNT_OF(out->at)) return false;
    for (int64_t j = 1; j < d; j++)
      for (int64_t i = 0; i < n; i++) out->at[j * n + i] = out->at[i] + j * strides[k];
    out->n = n * d;
  }
  return run > 0;
}

static bool box_ok(const Type *whole, const Type *part) {
  Box box;
  return while_box(whole, part, &box) && box.n * box.piece <= MOST_MOVED;
}

static bool is_place(const Plan *p, int place) {
  return place >= 0 && p->places[place].bytes > 0 && !p->places[place].owners;
}

static bool places_ok(const Plan *p, const Step *s) {
  for (int i = 0; i < s->n_in; i++)
    if (!is_place(p, s->in[i])) return false;
  for (int i = 0; i < s->n_out; i++)
    if (!is_place(p, s->out[i])) return false;
  return true;
}

static bool indices_ok(const Op *op, int first, int end) {
  for (int i = first; i < end; i++)
    if (!dtype_is_int(op->operands[i]->type->dtype) || dtype_bits(op->operands[i]->type->dtype) < 8)
      return false;
  return true;
}

bool while_spot(const Op *op, Spot *out) {
  if (op->n_results != 1 || op->n_operands != 3) return false;
  const int64_t *inserted, *batch, *windows;
  const Type *whole = op_type(op), *index = op->operands[1]->type, *part = op->operands[2]->type;
  int n_inserted = op_ints(op, "inserted_window_dims", &inserted),
      n_batch = op_ints(op, "input_batching_dims", &batch),
      n_windows = op_ints(op, "update_window_dims", &windows);
  out->n = op_ints(op, "scatter_dims_to_operand_dims", &out->of);
  if (n_batch || whole->rank > CPU_MAX_RANK || type_count(index) != out->n ||
      part->dtype != whole->dtype || n_windows + n_inserted != whole->rank)
    return false;
  int64_t count = 1;
  for (int i = 0, w = 0; i < whole->rank; i++) {
    int64_t size = b_has_dim(n_inserted, inserted, i) ? 1 : part->dims[windows[w++]];
    if (b_has_dim(out->n, out->of, i) && size != 1) return false;
    out->dims[i] = size;
    count *= size;
  }
  out->window = *whole;
  out->window.dims = out->dims;
  return count == type_count(part);
}

static bool scatter_ok(const Plan *p, const Step *s) {
  Spot spot;
  return while_spot(s->op, &spot) && indices_ok(s->op, 1, 2) &&
         box_ok(op_type(s->op), &spot.window) && emit_region_supported(s->op->regions[0]) &&
         !dtype_is_complex(op_type(s->op)->dtype) &&
         (s->in[0] == s->out[0] || p->places[s->out[0]].bytes <= MOST_MOVED);
}

/* Operands one after the other in memory. */
static bool concatenate_ok(const Plan *p, const Step *s) {
  const Type *t = op_type(s->op);
  for (int64_t i = 0; i < op_int(s->op, "dimension", 0); i++)
    if (t->dims[i] != 1) return false;
  return p->places[s->out[0]].bytes <= MOST_MOVED;
}

static bool op_ok(const Plan *p, const Step *s) {
  const Op *op = s->op;
  if (op->kind == OP_SCATTER) return scatter_ok(p, s);
  if (op->kind == OP_CONCATENATE) return concatenate_ok(p, s);
  if (op->kind == OP_DYNAMIC_SLICE)
    return indices_ok(op, 1, op->n_operands) && box_ok(op->operands[0]->type, op_type(op));
  if (op->kind == OP_DYNAMIC_UPDATE_SLICE)
    return indices_ok(op, 2, op->n_operands) && box_ok(op_type(op), op->operands[1]->type) &&
           (s->in[0] == s->out[0] || p->places[s->out[0]].bytes <= MOST_MOVED);
  return false;
}

static bool fusion_ok(WhileCode *c, const Fusion *f, int *nodes) {
  double n = 1;
  for (int i = 0; i < f->dom.n; i++) n *= (double)f->dom.dims[i];
  if (f->kind == FUSION_SPLIT || n > MOST_ELEMENTS || n < 1) return false;
  Dag *d = vec_push(&c->dags);
  Err *e = dag_build(f, d);
  *nodes += d->nodes.n;
  bool ok = !e && *nodes <= MOST_NODES;
  err_free(e);
  return ok;
}

static bool step_ok(WhileCode *c, const Step *s, int *steps, int *nodes);

static bool block_ok(WhileCode *c, const Block *b, bool results, int *steps, int *nodes) {
  for (int i = 0; i < b->n; i++)
    if (!step_ok(c, &b->steps[i], steps, nodes)) return false;
  int64_t moved = 0;
  for (int i = 0; i < b->n_results && results; i++) {
    if (b->to[i] == b->from[i]) continue;
    if (!is_place(c->plan, b->to[i]) || !is_place(c->plan, b->from[i])) return false;
    moved += c->plan->places[b->to[i]].bytes;
  }
  return moved <= MOST_MOVED;
}

static bool step_ok(WhileCode *c, const Step *s, int *steps, int *nodes) {
  if (++*steps > MOST_STEPS || s->owners || !places_ok(c->plan, s)) return false;
  switch (s->kind) {
  case STEP_FUSED: return fusion_ok(c, s->fusion, nodes);
  case STEP_OP: return op_ok(c->plan, s);
  case STEP_VIEW: return s->op->kind == OP_DYNAMIC_SLICE && indices_ok(s->op, 1, s->op->n_operands);
  case STEP_COPY: return c->plan->places[s->out[0]].bytes <= MOST_MOVED;
  case STEP_WHILE:
    return (s->trips >= 0 ||
            (is_place(c->plan, s->pred) && block_ok(c, &s->blocks[0], false, steps, nodes))) &&
           block_ok(c, &s->blocks[1], true, steps, nodes);
  case STEP_CASE:
    if (!is_place(c->plan, s->pred)) return false;
    for (int k = 0; k < s->n_blocks; k++)
      if (!block_ok(c, &s->blocks[k], true, steps, nodes)) return false;
    return s->n_blocks > 0;
  default: return false;
  }
}

bool while_new(const Plan *p, const Step *s, WhileCode *out) {
  *out = (WhileCode){.plan = p, .step = s};
  int steps = 0, nodes = 0;
  bool ok = s->kind == STEP_WHILE && p->n_procs == 1 && step_ok(out, s, &steps, &nodes);
  if (ok) add_places(out, s);
  else while_free(out);
  return ok;
}

void while_free(WhileCode *c) {
  for (int i = 0; i < c->dags.n; i++) dag_free(&c->dags.v[i]);
  vec_free(&c->dags);
  vec_free(&c->places);
}

/* ---- keys ---- */

static void key_int(Buf *b, int64_t x) { buf_add(b, &x, sizeof x); }

static void key_type(Buf *b, const Type *t) {
  key_int(b, (int)t->dtype);
  key_int(b, t->rank);
  for (int i = 0; i < t->rank; i++) key_int(b, t->dims[i]);
}

static void key_place(const WhileCode *c, Buf *b, int place) {
  int k = 0;
  while (k < c->places.n && c->places.v[k] != place) k++;
  key_int(b, k);
}

static void key_scatter(Buf *b, const Op *op) {
  Spot spot;
  while_spot(op, &spot);
  key_type(b, &spot.window);
  for (int i = 0; i < spot.n; i++) key_int(b, spot.of[i]);
  dag_key_region(b, op->regions[0]);
}

static void key_step(const WhileCode *c, const Step *s, Buf *b) {
  key_int(b, (int)s->kind);
  key_int(b, s->n_in);
  for (int i = 0; i < s->n_in; i++) key_place(c, b, s->in[i]);
  key_int(b, s->n_out);
  for (int i = 0; i < s->n_out; i++) key_place(c, b, s->out[i]);
  if (s->kind == STEP_OP || s->kind == STEP_VIEW) {
    key_int(b, (int)s->op->kind);
    for (int i = 0; i < s->op->n_operands; i++) key_type(b, s->op->operands[i]->type);
    key_type(b, op_type(s->op));
    if (s->op->kind == OP_SCATTER) key_scatter(b, s->op);
  }
  if (!s->n_blocks) return;
  key_place(c, b, s->pred);
  key_int(b, s->kind == STEP_WHILE ? s->trips : (int)s->op->kind);
  if (s->kind == STEP_CASE) key_type(b, s->op->operands[0]->type);
  key_int(b, s->n_blocks);
  for (int k = 0; k < s->n_blocks; k++) {
    const Block *blk = &s->blocks[k];
    key_int(b, blk->n);
    for (int i = 0; i < blk->n; i++) key_step(c, &blk->steps[i], b);
    key_int(b, blk->n_results);
    for (int i = 0; i < blk->n_results; i++) {
      key_place(c, b, blk->from[i]);
      key_place(c, b, blk->to[i]);
    }
  }
}

void while_key(const WhileCode *c, Buf *key) {
  buf_cstr(key, "while");
  key_int(key, c->places.n);
  for (int i = 0; i < c->places.n; i++) key_int(key, c->plan->places[c->places.v[i]].bytes);
  key_step(c, c->step, key);
  for (int i = 0; i < c->dags.n; i++) dag_key(&c->dags.v[i], key);
}
