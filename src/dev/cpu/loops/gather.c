/* Elements from where an index vector says, which the loop has computed or loads. The vector is moved
 * into the operand, so that every lane, also one that nobody wants, may be read. Gathers are dear and
 * never under a condition (cluster.c). */
#include "dev/cpu/loops/loops_priv.h"

#define B g->b

/* Where the windows of the lanes begin, in elements: a number of `to`, at the current lanes. */
static V start_of(Gen *g, const DagNode *n, DType to, int level, bool vec) {
  const Type *t = n->op->operands[0]->type;
  DType from = n->op->operands[1]->type->dtype;
  bool sign = dtype_class(from) == DC_SINT;
  const int64_t *map, *sizes;
  int64_t strides[CPU_MAX_RANK];
  op_ints(n->op, "start_index_map", &map);
  op_ints(n->op, "slice_sizes", &sizes);
  cpu_strides(t, strides);
  V sum = NULL;
  for (int k = 0; k < n->n_in; k++) {
    int64_t last = t->dims[map[k]] - sizes[map[k]];
    if (last == 0) continue;
    V i = gen_node_at(g, n->in[k], level, vec, true);
    g->lanes = vec ? g->vl : 0;
    DType wide = dtype_bytes(from) < dtype_bytes(to) ? to : from;
    i = emit_convert(g, from, wide, i);
    V zero = k_int(g, wide, 0), most = k_int(g, wide, last);
    if (sign) i = LLVMBuildSelect(B, LLVMBuildICmp(B, LLVMIntSGT, i, zero, ""), i, zero, "");
    LLVMIntPredicate less = sign ? LLVMIntSLT : LLVMIntULT;
    i = LLVMBuildSelect(B, LLVMBuildICmp(B, less, i, most, ""), i, most, "");
    i = LLVMBuildTruncOrBitCast(B, i, reg_type(g, to, g->lanes), "");
    i = LLVMBuildMul(B, i, k_int(g, to, strides[map[k]]), "");
    sum = sum ? LLVMBuildAdd(B, sum, i, "") : i;
  }
  return sum;
}

static void index_place(const Gen *g, const DagNode *n, int *level, bool *vec) {
  *level = 0;
  *vec = false;
  for (int k = 0; k < n->n_in; k++) {
    *level = MAX(*level, g->d->nodes.v[n->in[k]].level);
    *vec |= g->d->nodes.v[n->in[k]].vec;
  }
}

V gather_window(Gen *g, const DagNode *n, V ptr) {
  int level;
  bool vec;
  index_place(g, n, &level, &vec);
  V start = vec ? NULL : start_of(g, n, DT_I64, level, false);
  gen_at_level(g, n->level);
  return start ? LLVMBuildGEP2(B, mem_type(g, n->t, 0), ptr, &start, 1, "") : ptr;
}

V gather_each(Gen *g, DType t, V base, V at) {
  LLVMTypeRef et = mem_type(g, t, 0), i64 = LLVMInt64TypeInContext(g->ctx);
  V all = LLVMGetPoison(mem_type(g, t, g->vl));
  for (int l = 0; l < g->vl; l++) {
    V lane = LLVMConstInt(LLVMInt32TypeInContext(g->ctx), (unsigned)l, 0);
    V one = LLVMBuildExtractElement(B, at, lane, "");
    /* read backwards, a lane lies below base */
    if (LLVMTypeOf(one) != i64) one = LLVMBuildSExt(B, one, i64, "");
    V x = LLVMBuildLoad2(B, et, LLVMBuildGEP2(B, et, base, &one, 1, ""), "");
    all = LLVMBuildInsertElement(B, all, gen_align(x, t), lane, "");
  }
  return all;
}

/* The same where the lanes lie in a row, as they do along the frames of a signal: one load. The ends of
 * those that do not tell so soon. */
static V gather_row_or_each(Gen *g, DType t, V base, V at) {
  LLVMTypeRef lane = LLVMGetElementType(LLVMTypeOf(at)), i64 = LLVMInt64TypeInContext(g->ctx),
              bits = LLVMIntTypeInContext(g->ctx, (unsigned)g->vl);
  const unsigned long long far = (unsigned long long)g->vl - 1;
  V first = LLVMBuildExtractElement(B, at, LLVMConstNull(lane), "");
  V last = LLVMBuildExtractElement(B, at, LLVMConstInt(lane, far, 0), "");
  V apart = LLVMBuildSub(B, last, first, ""), v[2];
  LLVMBasicBlockRef from[2], row = LLVMAppendBasicBlockInContext(g->ctx, g->fn, "");
  gen_open_either(g, LLVMBuildICmp(B, LLVMIntEQ, apart, LLVMConstInt(lane, far, 0), ""), from);

  V to_after = LLVMGetBasicBlockTerminator(from[0]);
  LLVMPositionBuilderBefore(B, to_after);
  V in_row = LLVMBuildAdd(B, k_splat(g, first, g->vl), gen_lane_ids(g, lane), "");
  V same = LLVMBuildBitCast(B, LLVMBuildICmp(B, LLVMIntEQ, at, in_row, ""), bits, "");
  V all = LLVMBuildICmp(B, LLVMIntEQ, same, LLVMConstAllOnes(bits), "");
  LLVMBuildCondBr(B, all, row, from[1]);
  LLVMInstructionRemoveFromParent(to_after);
  LLVMPositionBuilderAtEnd(B, row);
  LLVMInsertIntoBuilder(B, to_after);
  LLVMPositionBuilderBefore(B, to_after);
  if (lane != i64) first = LLVMBuildSExt(B, first, i64, "");
  V ptr = LLVMBuildGEP2(B, mem_type(g, t, 0), base, &first, 1, "");
  v[0] = gen_align(LLVMBuildLoad2(B, mem_type(g, t, g->vl), ptr, ""), t);

  LLVMPositionBuilderBefore(B, LLVMGetBasicBlockTerminator(from[1]));
  v[1] = gather_each(g, t, base, at);
  gen_at_level(g, g->level);
  V r = LLVMBuildPhi(B, LLVMTypeOf(v[0]), "");
  LLVMAddIncoming(r, v, (LLVMBasicBlockRef[]){row, from[1]}, 2);
  return r;
}

V gather_lanes(Gen *g, const DagNode *n) {
  int level;
  bool vec;
  index_place(g, n, &level, &vec);
  DType to = type_count(n->op->operands[0]->type) <= INT32_MAX ? DT_I32 : DT_I64;
  V at = vec ? start_of(g, n, to, level, true) : NULL;
  if (!at) return NULL;
  V base = gen_base(g, n->buf);
  base = gen_address(g, base, mem_type(g, n->t, 0), &n->lin);
  gen_at_level(g, n->level);
  g->lanes = g->vl;
  int64_t steps[64];
  gen_lane_steps(g, &n->lin, steps);
  if (!gen_steps_none(g, steps)) {
    at = LLVMBuildAdd(B, at, gen_const_lanes(g, reg_type(g, to, 0), steps), "");
    if (g->tail) at = LLVMBuildSelect(B, g->tail, at, LLVMConstNull(LLVMTypeOf(at)), "");
  }
  bool here = g->point[n->level] == g->point[g->level] && !g->is_while; /* may be forked */
  V all = (here ? gather_row_or_each : gather_each)(g, n->t, base, at);
  return from_mem(g, n->t, all);
}
