/* weft diff: inside loops and branches, as functions of what they carry and of what they see around
 * them. */
#include "cli/diff.h"

#include <stdlib.h>

typedef VEC(Value *) Values;

static void mark(const Region *r, bool *inside) {
  for (int i = 0; i < r->n_args; i++) inside[r->args[i]->id] = true;
  for (const Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_results; i++) inside[op->results[i].id] = true;
    for (int i = 0; i < op->n_regions; i++) mark(op->regions[i], inside);
  }
}

/* Values used in r but not marked as inside are added and marked. */
static void captured(const Region *r, bool *inside, Values *out) {
  for (const Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_operands; i++)
      if (!inside[op->operands[i]->id]) {
        inside[op->operands[i]->id] = true;
        *vec_push(out) = op->operands[i];
      }
    for (int i = 0; i < op->n_regions; i++) captured(op->regions[i], inside, out);
  }
}

/* What op's regions need: its operands, then what they see of the function around them. */
static void needed(Func *f, const Op *op, Values *out) {
  bool *inside = xcalloc((size_t)ir_number(f) + 1, sizeof *inside);
  for (int i = 0; i < op->n_operands; i++) *vec_push(out) = op->operands[i];
  for (int i = 0; i < op->n_regions; i++) mark(op->regions[i], inside);
  for (int i = 0; i < op->n_regions; i++) captured(op->regions[i], inside, out);
  free(inside);
}

/* The ops of r at the end of `to`, and what its terminator gives back into out. */
static void paste(Module *m, const Region *r, Region *to, Value **map, Values *out) {
  for (const Op *op = r->first; op != r->last; op = op->next) {
    Op *copy = op_clone(m, op, map);
    for (int i = 0; i < op->n_results; i++) map[op->results[i].id] = &copy->results[i];
    op_append(to, copy);
  }
  for (int i = 0; i < r->last->n_operands; i++) {
    Value *v = r->last->operands[i];
    *vec_push(out) = map[v->id] ? map[v->id] : v;
  }
}

/* The n regions of op, which follow each other, as a function of the values needed; it takes f's
 * place in the module. Their results: into out. */
static Func *outline(Module *m, Func *f, const Op *op, Region *const *regions, int n,
                     const Values *need, Values *out) {
  Value **map = xcalloc((size_t)f->n_values + 1, sizeof *map);
  Type **types = xmalloc(sizeof *types * (size_t)(need->n + 1));
  for (int i = 0; i < need->n; i++) types[i] = need->v[i]->type;
  Func *g = func_new(m, f->name, need->n, types, 0, NULL);
  m->funcs.n--; /* it was put at the end */
  for (int i = 0; i < m->funcs.n; i++)
    if (m->funcs.v[i] == f) m->funcs.v[i] = g;
  for (int i = op->n_operands; i < need->n; i++) map[need->v[i]->id] = g->body->args[i];
  for (int i = 0; i < n; i++) {
    for (int k = 0; k < regions[i]->n_args; k++) map[regions[i]->args[k]->id] = g->body->args[k];
    paste(m, regions[i], g->body, map, out);
  }
  op_append(g->body, op_new(m, OP_RETURN, 0, NULL, 0, NULL, 0, NULL, 0, NULL));
  free(map);
  free(types);
  return g;
}

static void put_back(Module *m, const Func *g, Func *f) {
  for (int i = 0; i < m->funcs.n; i++)
    if (m->funcs.v[i] == g) m->funcs.v[i] = f;
}

static void release(Tensor **t, int n) {
  for (int i = 0; i < n; i++) tensor_release(t[i]), t[i] = NULL;
}

/* Rounds of g, which gives back whether it goes on and the next state, until the states part: the
 * number of this round, 0 when they never do. state: before this round. */
static Err *rounds(Module *m, Func *g, const Values *results, Tensor **const state[2],
                   const char *const devices[2], double tol, int64_t *round) {
  int n = results->n;
  DiffRun run[2] = {{0}};
  Tensor **next[2];
  diff_expose(m, g, results->v, n);
  Err *e = NULL;
  for (int d = 0; d < 2; d++) {
    next[d] = xcalloc((size_t)n, sizeof *next[d]);
    if (!e) e = diff_open(devices[d], m, &run[d]);
  }
  *round = 0;
  for (int64_t k = 1; !e && !*round; k++) {
    for (int d = 0; d < 2 && !e; d++) e = diff_run(&run[d], state[d], next[d]);
    if (e) break;
    bool on = *(char *)next[0][0]->data;
    for (int j = 0; j < (on ? n : 1); j++)
      if (diff_error(next[0][j], next[1][j]).error > tol) *round = k;
    if (*round || !on) break;
    for (int d = 0; d < 2; d++) {
      tensor_release(next[d][0]);
      next[d][0] = NULL;
      for (int j = 1; j < n; j++) {
        tensor_release(state[d][j - 1]);
        state[d][j - 1] = next[d][j];
        next[d][j] = NULL;
      }
    }
  }
  for (int d = 0; d < 2; d++) {
    diff_close(&run[d]);
    release(next[d], n);
    free(next[d]);
  }
  return e;
}

/* The first value of g that parts: into out, and what is inside that. */
static Err *first_of(Module *m, Func *g, Tensor *const *const in[2], const char *const devices[2],
                     double tol, DiffInside *out) {
  int n;
  Value **v = diff_computed(g, &n);
  DiffError *of = xcalloc((size_t)n + 1, sizeof *of);
  const Value *first = NULL;
  Err *e = NULL;
  for (int j = 0, end; j < n && !e && !first; j = end) {
    end = diff_stretch(v, j, n);
    e = diff_errors(m, g, v + j, end - j, in, devices, of + j);
    for (int k = j; k < end && !e && !first; k++)
      if (of[k].error > tol) {
        first = out->v = v[k];
        out->error = of[k];
      }
  }
  free(v);
  free(of);
  return e || !first ? e : diff_inside(m, g, first->def, in, devices, tol, out);
}

Err *diff_inside(Module *m, Func *f, const Op *op, Tensor *const *const in[2],
                 const char *const devices[2], double tol, DiffInside *out) {
  bool loop = op->kind == OP_WHILE;
  if ((!loop && op->kind != OP_CASE && op->kind != OP_IF) || out->depth == DIFF_DEPTH) return NULL;
  Values need = {0}, results = {0};
  needed(f, op, &need);
  bool tensors = true;
  for (int i = 0; i < need.n; i++)
    tensors &= need.v[i]->type->kind == TY_TENSOR && type_is_static(need.v[i]->type);
  Tensor **state[2];
  for (int d = 0; d < 2; d++) state[d] = xcalloc((size_t)need.n + 1, sizeof *state[d]);
  Err *e = NULL;
  diff_expose(m, f, need.v, need.n);
  for (int d = 0; d < 2 && tensors && !e; d++) {
    DiffRun run;
    e = diff_open(devices[d], m, &run);
    if (!e) e = diff_run(&run, in[d], state[d]);
    diff_close(&run);
  }
  if (tensors && !e) {
    Region *const *regions = op->regions;
    int64_t at = 0;
    if (!loop) { /* a case: outside its branches is the last one; an if: true is the first */
      DType t = state[0][0]->dtype;
      at = (int64_t)elem_get_f64(t, state[0][0]->data);
      if (op->kind == OP_IF) at = !at;
      else if (at < 0 || at >= op->n_regions) at = op->n_regions - 1;
      regions += at;
    }
    Func *g = outline(m, f, op, regions, loop ? 2 : 1, &need, &results);
    if (loop) e = rounds(m, g, &results, state, devices, tol, &at);
    if (!e && (at || !loop)) {
      out->path[out->depth].loop = loop;
      out->path[out->depth++].at = at;
      e = first_of(m, g, (Tensor *const *const[2]){state[0], state[1]}, devices, tol, out);
    }
    put_back(m, g, f);
  }
  for (int d = 0; d < 2; d++) {
    release(state[d], need.n);
    free(state[d]);
  }
  vec_free(&need);
  vec_free(&results);
  return e;
}
