/* The code of a loop as one function. Each fusion is a function of its own that LLVM puts in its place;
 * values of a few bytes are in memory of the function, which become registers. */
#include <stdio.h>

#include "dev/cpu/loops/while_codegen.h"
#include "dev/cpu/loops/loops_priv.h"

#define MOST_LOCAL 64 /* bytes of a value that the function keeps */

typedef struct Maker {
  Gen g;
  WhileCode *c;
  const char *name;
  int dag;
  V *at; /* by number of the place in the cycle: where it is */
  bool *is_local;
  LLVMBasicBlockRef first; /* memory of the function is made here */
} Maker;

#define B m->g.b

/* ---- moves ---- */

static LLVMBasicBlockRef new_block(Maker *m) {
  return LLVMAppendBasicBlockInContext(m->g.ctx, m->g.fn, "");
}

static LLVMTypeRef bytes_type(Maker *m, int64_t n) {
  if (n <= 8) return LLVMIntTypeInContext(m->g.ctx, (unsigned)n * 8);
  return LLVMVectorType(LLVMInt32TypeInContext(m->g.ctx), (unsigned)n / 4);
}

static V bytes_after(Maker *m, V p, int64_t off) {
  V at = gen_i64(&m->g, off);
  return off ? LLVMBuildGEP2(B, LLVMInt8TypeInContext(m->g.ctx), p, &at, 1, "") : p;
}

static int64_t chunk_of(int64_t left) {
  int64_t n = cpu_vector_bits() / 8;
  while (n > left) n /= 2;
  return n;
}

typedef VEC(V) Values;

static void load_bytes(Maker *m, V from, int64_t n, Values *out) {
  for (int64_t i = 0, k; i < n; i += k) {
    k = chunk_of(n - i);
    V v = LLVMBuildLoad2(B, bytes_type(m, k), bytes_after(m, from, i), "");
    LLVMSetAlignment(v, 1);
    *vec_push(out) = v;
  }
}

static int store_bytes(Maker *m, V to, int64_t n, const Values *v, int next) {
  for (int64_t i = 0, k; i < n; i += k) {
    k = chunk_of(n - i);
    LLVMSetAlignment(LLVMBuildStore(B, v->v[next++], bytes_after(m, to, i)), 1);
  }
  return next;
}

static void copy_bytes(Maker *m, V from, V to, int64_t n) {
  Values v = {0};
  load_bytes(m, from, n, &v);
  store_bytes(m, to, n, &v, 0);
  vec_free(&v);
}

/* ---- places ---- */

static int number_of(const Maker *m, int place) {
  int k = 0;
  while (m->c->places.v[k] != place) k++;
  return k;
}

static V place(const Maker *m, int place) { return m->at[number_of(m, place)]; }

static int64_t bytes_of(const Maker *m, int place) { return m->c->plan->places[place].bytes; }

static V in_first_block(Maker *m, LLVMTypeRef t) {
  LLVMBasicBlockRef now = LLVMGetInsertBlock(B);
  V at = LLVMGetFirstInstruction(m->first);
  if (at) LLVMPositionBuilderBefore(B, at);
  else LLVMPositionBuilderAtEnd(B, m->first);
  V p = LLVMBuildAlloca(B, t, "");
  LLVMPositionBuilderAtEnd(B, now);
  return p;
}

static void open_places(Maker *m) {
  LLVMTypeRef p = LLVMPointerTypeInContext(m->g.ctx, 0);
  for (int i = 0; i < m->c->places.n; i++) {
    V k = gen_i64(&m->g, i);
    int64_t n = bytes_of(m, m->c->places.v[i]);
    V outside = LLVMBuildLoad2(B, p, LLVMBuildGEP2(B, p, m->g.bufs, &k, 1, ""), "");
    m->at[i] = outside;
    m->is_local[i] = n <= MOST_LOCAL && m->c->plan->places[m->c->places.v[i]].kind != PLACE_VIEW;
    if (!m->is_local[i]) continue;
    m->at[i] = in_first_block(m, LLVMArrayType(LLVMInt8TypeInContext(m->g.ctx), (unsigned)n));
    LLVMSetAlignment(m->at[i], 64);
    copy_bytes(m, outside, m->at[i], n);
  }
}

/* What the loop carries is read after it. */
static void close_places(Maker *m) {
  LLVMTypeRef p = LLVMPointerTypeInContext(m->g.ctx, 0);
  const Block *body = &m->c->step->blocks[1];
  for (int i = 0; i < body->n_results; i++) {
    int to = body->to[i], n = to < 0 ? 0 : number_of(m, to);
    if (to < 0 || !m->is_local[n]) continue;
    V k = gen_i64(&m->g, n);
    V outside = LLVMBuildLoad2(B, p, LLVMBuildGEP2(B, p, m->g.bufs, &k, 1, ""), "");
    copy_bytes(m, m->at[n], outside, bytes_of(m, to));
  }
}

/* ---- steps ---- */

/* Start indices, clamped so that the slice stays inside: bytes from the array's first. */
static V start_of(Maker *m, const Step *s, int first, const Type *whole, const Type *part) {
  LLVMTypeRef i64 = LLVMInt64TypeInContext(m->g.ctx);
  V off = gen_i64(&m->g, 0);
  int64_t stride = dtype_bytes(whole->dtype);
  for (int i = whole->rank - 1; i >= 0; stride *= whole->dims[i--]) {
    int64_t top = whole->dims[i] - part->dims[i];
    DType t = s->op->operands[first + i]->type->dtype;
    if (top <= 0) continue;
    V x = LLVMBuildLoad2(B, mem_type(&m->g, t, 0), place(m, s->in[first + i]), "");
    x = dtype_is_signed(t) ? LLVMBuildSExt(B, x, i64, "") : LLVMBuildZExt(B, x, i64, "");
    V most = gen_i64(&m->g, top), zero = gen_i64(&m->g, 0);
    if (dtype_is_signed(t))
      x = LLVMBuildSelect(B, LLVMBuildICmp(B, LLVMIntSLT, x, zero, ""), zero, x, "");
    x = LLVMBuildSelect(B, LLVMBuildICmp(B, LLVMIntULT, x, most, ""), x, most, "");
    off = LLVMBuildAdd(B, off, LLVMBuildMul(B, x, gen_i64(&m->g, stride), ""), "");
  }
  return off;
}

static void view(Maker *m, const Step *s) {
  V off = start_of(m, s, 1, s->op->operands[0]->type, op_type(s->op));
  m->at[number_of(m, s->out[0])] =
      LLVMBuildGEP2(B, LLVMInt8TypeInContext(m->g.ctx), place(m, s->in[0]), &off, 1, "");
}

static void slice(Maker *m, const Step *s) {
  const Type *whole = s->op->operands[0]->type, *part = op_type(s->op);
  Box box;
  while_box(whole, part, &box);
  V off = start_of(m, s, 1, whole, part), to = place(m, s->out[0]);
  V from = LLVMBuildGEP2(B, LLVMInt8TypeInContext(m->g.ctx), place(m, s->in[0]), &off, 1, "");
  for (int64_t i = 0; i < box.n; i++)
    copy_bytes(m, bytes_after(m, from, box.at[i]), bytes_after(m, to, i * box.piece), box.piece);
}

static void update(Maker *m, const Step *s) {
  const Type *whole = op_type(s->op), *part = s->op->operands[1]->type;
  Box box;
  while_box(whole, part, &box);
  Values v = {0};
  int next = 0;
  for (int64_t i = 0; i < box.n; i++)
    load_bytes(m, bytes_after(m, place(m, s->in[1]), i * box.piece), box.piece, &v);
  V off = start_of(m, s, 2, whole, part);
  if (s->in[0] != s->out[0])
    copy_bytes(m, place(m, s->in[0]), place(m, s->out[0]), bytes_of(m, s->out[0]));
  V to = LLVMBuildGEP2(B, LLVMInt8TypeInContext(m->g.ctx), place(m, s->out[0]), &off, 1, "");
  for (int64_t i = 0; i < box.n; i++)
    next = store_bytes(m, bytes_after(m, to, box.at[i]), box.piece, &v, next);
  vec_free(&v);
}

static void concatenate(Maker *m, const Step *s) {
  int64_t at = 0;
  for (int i = 0; i < s->n_in; i++) {
    int64_t n = type_bytes(s->op->operands[i]->type);
    copy_bytes(m, place(m, s->in[i]), bytes_after(m, place(m, s->out[0]), at), n);
    at += n;
  }
}

/* to[i] = region(to[i], from[i]) of n elements */
static void combine(Maker *m, const Op *op, V to, V from, int64_t n) {
  Gen *g = &m->g;
  DType t = op_type(op)->dtype;
  int64_t bytes = dtype_bytes(t);
  for (int64_t i = 0; i < n; i += MAX(g->lanes, 1)) {
    int64_t lanes = MAX(1, cpu_vector_bits() / 64);
    while (lanes > n - i) lanes /= 2;
    g->lanes = lanes > 1 ? (int)lanes : 0;
    V at = bytes_after(m, to, i * bytes), v[2], out;
    for (int k = 0; k < 2; k++) {
      V p = k ? bytes_after(m, from, i * bytes) : at;
      v[k] = gen_align(LLVMBuildLoad2(B, mem_type(g, t, g->lanes), p, ""), t);
      v[k] = from_mem(g, t, v[k]);
    }
    emit_region(g, op->regions[0], v, &out);
    gen_align(LLVMBuildStore(B, to_mem(g, t, out, false), at), t);
  }
  g->lanes = 0;
}

/* Nothing happens when the index is outside. */
static void scatter(Maker *m, const Step *s) {
  const Op *op = s->op;
  const Type *whole = op_type(op);
  LLVMTypeRef i64 = LLVMInt64TypeInContext(m->g.ctx), i8 = LLVMInt8TypeInContext(m->g.ctx);
  DType t = op->operands[1]->type->dtype;
  int64_t strides[CPU_MAX_RANK];
  Spot spot;
  Box box;
  while_spot(op, &spot);
  while_box(whole, &spot.window, &box);
  cpu_strides(whole, strides);
  V off = gen_i64(&m->g, 0), inside = NULL;
  for (int i = 0; i < spot.n; i++) {
    int64_t d = spot.of[i];
    V p = bytes_after(m, place(m, s->in[1]), i * dtype_bytes(t));
    V x = gen_align(LLVMBuildLoad2(B, mem_type(&m->g, t, 0), p, ""), t);
    x = dtype_is_signed(t) ? LLVMBuildSExt(B, x, i64, "") : LLVMBuildZExt(B, x, i64, "");
    V ok = LLVMBuildICmp(B, LLVMIntULT, x, gen_i64(&m->g, whole->dims[d]), "");
    inside = inside ? LLVMBuildAnd(B, inside, ok, "") : ok;
    V by = gen_i64(&m->g, strides[d] * dtype_bytes(whole->dtype));
    off = LLVMBuildAdd(B, off, LLVMBuildMul(B, x, by, ""), "");
  }
  if (s->in[0] != s->out[0])
    copy_bytes(m, place(m, s->in[0]), place(m, s->out[0]), bytes_of(m, s->out[0]));
  LLVMBasicBlockRef then = new_block(m), after = new_block(m);
  if (inside) LLVMBuildCondBr(B, inside, then, after);
  else LLVMBuildBr(B, then);
  LLVMPositionBuilderAtEnd(B, then);
  V to = LLVMBuildGEP2(B, i8, place(m, s->out[0]), &off, 1, "");
  for (int64_t i = 0; i < box.n; i++)
    combine(m, op, bytes_after(m, to, box.at[i]), bytes_after(m, place(m, s->in[2]), i * box.piece),
            box.piece / dtype_bytes(whole->dtype));
  LLVMBuildBr(B, after);
  LLVMPositionBuilderAtEnd(B, after);
}

static void set_inline(Maker *m, V fn) {
  unsigned kind = LLVMGetEnumAttributeKindForName("alwaysinline", 12);
  LLVMAddAttributeAtIndex(fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                          LLVMCreateEnumAttribute(m->g.ctx, kind, 0));
  LLVMSetLinkage(fn, LLVMInternalLinkage);
}

static Err *fused(Maker *m, const Step *s, double *flops) {
  char name[48];
  FusedCode code = {0};
  LLVMBasicBlockRef now = LLVMGetInsertBlock(B);
  Dag *d = &m->c->dags.v[m->dag];
  Gen g = {.ctx = m->g.ctx, .mod = m->g.mod, .b = m->g.b, .d = d, .is_while = true};
  snprintf(name, sizeof name, "%s_%d", m->name, m->dag++);
  TRY(gen_fusion(&g, d, name, &code));
  *flops += code.flops;
  set_inline(m, g.fn);
  LLVMPositionBuilderAtEnd(B, now);
  LLVMTypeRef p = LLVMPointerTypeInContext(m->g.ctx, 0);
  int n = s->n_in + s->n_out;
  V bufs = in_first_block(m, LLVMArrayType(p, (unsigned)n));
  for (int i = 0; i < n; i++) {
    V k = gen_i64(&m->g, i), to = LLVMBuildGEP2(B, p, bufs, &k, 1, "");
    LLVMBuildStore(B, place(m, i < s->n_in ? s->in[i] : s->out[i - s->n_in]), to);
  }
  V args[4] = {bufs, gen_i64(&m->g, 0), gen_i64(&m->g, code.outer), LLVMConstNull(p)};
  LLVMBuildCall2(B, gen_fn_type(&m->g), g.fn, args, 4, "");
  return NULL;
}

static Err *step(Maker *m, const Step *s, double *flops);

static Err *block(Maker *m, const Block *b, bool results, double *flops) {
  for (int i = 0; i < b->n; i++) TRY(step(m, &b->steps[i], flops));
  Values v = {0};
  int next = 0;
  for (int pass = 0; pass < 2 && results; pass++)
    for (int i = 0; i < b->n_results; i++) {
      if (b->to[i] == b->from[i]) continue;
      int64_t n = bytes_of(m, b->to[i]);
      if (pass == 0) load_bytes(m, place(m, b->from[i]), n, &v);
      else next = store_bytes(m, place(m, b->to[i]), n, &v, next);
    }
  vec_free(&v);
  return NULL;
}

static V is_true(Maker *m, int pred) {
  V v = LLVMBuildLoad2(B, LLVMInt8TypeInContext(m->g.ctx), place(m, pred), "");
  return LLVMBuildICmp(B, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
}

/* trips: how many turns, when the program says so */
static Err *loop(Maker *m, const Step *s, V trips, double *flops) {
  LLVMTypeRef i64 = LLVMInt64TypeInContext(m->g.ctx);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(B), head = new_block(m), body = new_block(m),
                    after = new_block(m);
  V zero = gen_i64(&m->g, 0), i = NULL, more;
  LLVMBuildBr(B, head);
  LLVMPositionBuilderAtEnd(B, head);
  if (s->trips >= 0) {
    i = LLVMBuildPhi(B, i64, "i");
    more = LLVMBuildICmp(B, LLVMIntSLT, i, trips, "");
  } else {
    TRY(block(m, &s->blocks[0], false, flops));
    more = is_true(m, s->pred);
  }
  LLVMBuildCondBr(B, more, body, after);
  LLVMPositionBuilderAtEnd(B, body);
  TRY(block(m, &s->blocks[1], true, flops));
  if (i) {
    V next = LLVMBuildAdd(B, i, gen_i64(&m->g, 1), ""), vals[2] = {zero, next};
    LLVMBasicBlockRef from[2] = {before, LLVMGetInsertBlock(B)};
    LLVMAddIncoming(i, vals, from, 2);
  }
  LLVMBuildBr(B, head);
  LLVMPositionBuilderAtEnd(B, after);
  return NULL;
}

static Err *branches(Maker *m, const Step *s, double *flops) {
  DType t = s->op->operands[0]->type->dtype;
  LLVMBasicBlockRef now = LLVMGetInsertBlock(B), after = new_block(m);
  V which;
  if (s->op->kind == OP_IF)
    which = LLVMBuildSelect(B, is_true(m, s->pred), gen_i64(&m->g, 0), gen_i64(&m->g, 1), "");
  else which = LLVMBuildLoad2(B, mem_type(&m->g, t, 0), place(m, s->pred), "");
  LLVMBasicBlockRef *to = xcalloc((size_t)s->n_blocks, sizeof *to);
  for (int k = 0; k < s->n_blocks; k++) to[k] = new_block(m);
  LLVMPositionBuilderAtEnd(B, now);
  V sw = LLVMBuildSwitch(B, which, to[s->n_blocks - 1], (unsigned)s->n_blocks);
  for (int k = 0; k < s->n_blocks - 1; k++)
    LLVMAddCase(sw, LLVMConstInt(LLVMTypeOf(which), (unsigned long long)k, 0), to[k]);
  Err *e = NULL;
  for (int k = 0; k < s->n_blocks && !e; k++) {
    LLVMPositionBuilderAtEnd(B, to[k]);
    e = block(m, &s->blocks[k], true, flops);
    LLVMBuildBr(B, after);
  }
  free(to);
  LLVMPositionBuilderAtEnd(B, after);
  return e;
}

static Err *step(Maker *m, const Step *s, double *flops) {
  switch (s->kind) {
  case STEP_FUSED: return fused(m, s, flops);
  case STEP_COPY:
    copy_bytes(m, place(m, s->in[0]), place(m, s->out[0]), bytes_of(m, s->out[0]));
    return NULL;
  case STEP_WHILE: return loop(m, s, gen_i64(&m->g, MAX(s->trips, 0)), flops);
  case STEP_CASE: return branches(m, s, flops);
  case STEP_VIEW: view(m, s); return NULL;
  default: break;
  }
  switch (s->op->kind) {
  case OP_DYNAMIC_SLICE: slice(m, s); break;
  case OP_SCATTER: scatter(m, s); break;
  case OP_CONCATENATE: concatenate(m, s); break;
  default: update(m, s);
  }
  return NULL;
}

Err *while_gen(LLVMContextRef ctx, LLVMModuleRef mod, LLVMBuilderRef b, WhileCode *c,
               const char *name, FusedCode *out) {
  Maker maker = {.g = {.ctx = ctx, .mod = mod, .b = b}, .c = c, .name = name}, *m = &maker;
  m->at = xcalloc((size_t)c->places.n + 1, sizeof *m->at);
  m->is_local = xcalloc((size_t)c->places.n + 1, 1);
  m->g.fn = gen_fn(&m->g, name);
  m->g.bufs = LLVMGetParam(m->g.fn, 0);
  m->first = new_block(m);
  LLVMBasicBlockRef start = new_block(m);
  LLVMPositionBuilderAtEnd(B, start);
  open_places(m);
  double flops = 0;
  Err *e = loop(m, c->step, gen_i64(&m->g, MAX(c->step->trips, 0)), &flops);
  if (!e) {
    close_places(m);
    LLVMBuildRetVoid(B);
    LLVMPositionBuilderAtEnd(B, m->first);
    LLVMBuildBr(B, start);
  }
  double turns = MAX(c->step->trips, 1);
  *out = (FusedCode){.outer = 1, .grain = 1, .flops = flops * turns, .name = "while"};
  free(m->at);
  free(m->is_local);
  return e;
}
