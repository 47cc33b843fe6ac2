/* Private to compile/grad*: the state of one backward pass and the rules' signature. */
#ifndef WEFT_COMPILE_GRAD_GRAD_PRIV_H
#define WEFT_COMPILE_GRAD_GRAD_PRIV_H

#include "compile/grad/grad.h"

/* Value pointer -> Value pointer or flag; grows, no removal. */
typedef struct PtrMap {
  const void **keys;
  void **vals;
  int n, cap;
} PtrMap;
void *ptrmap_get(const PtrMap *m, const void *key); /* NULL: absent */
void ptrmap_set(PtrMap *m, const void *key, void *val);
void ptrmap_free(PtrMap *m);

typedef struct Grad {
  Build *b;
  PtrMap active; /* values that depend on wrt */
  PtrMap cots;   /* value -> cotangent so far */
} Grad;

/* Reads cotangents of op's results, adds to those of its operands. Called in reverse order, only
 * when some result has one and some operand is active. b->loc is the op's. */
typedef Err *(*GradRule)(Grad *g, Op *op);

bool grad_active(const Grad *g, const Value *v);
Value *grad_cot(Grad *g, Value *v); /* NULL: none yet */
void grad_set(Grad *g, Value *v, Value *cot);
void grad_add(Grad *g, Value *v, Value *cot); /* nothing when v is not active */
/* The kind of a combiner region (a, b) -> op(a, b); OP_RETURN: (a, b) -> b; OP_UNKNOWN: something
 * else. */
OpKind grad_combiner(const Region *r);
/* Copies the ops of src into b, with src's arguments replaced; results: the terminator's operands.
 */
void grad_replay(Build *b, const Region *src, Value *const *args, Value **results, PtrMap *map);

/* One declaration for each row; an op may share another's rule. */
#define RULE(op, fn) Err *vjp_##fn(Grad *g, Op *op_);
#include "compile/grad/grad.def"
#undef RULE

#endif
