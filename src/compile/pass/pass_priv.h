/* compile/pass, private: what the passes share. */
#ifndef WEFT_COMPILE_PASS_PASS_PRIV_H
#define WEFT_COMPILE_PASS_PASS_PRIV_H

#include "compile/pass/pass.h"
#include "compile/pass/query.h"
#include "ir/build.h"

#define MAX_RANK 32

/* ---- who reads a value (rewrite.c) ---- */

typedef struct Use {
  const Value *v;
  Op *by;
  int operand; /* its number */
  int at;      /* in the order of the program */
} Use;

typedef struct Uses { /* in a region and deeper; those of one value follow each other, in order */
  VEC(Use) all;
} Uses;

Uses uses_of(const Region *r, OpKind kind); /* of results of this kind; OP_COUNT: of all values */
int uses_first(const Uses *u, const Value *v); /* all.n: nobody */

/* ---- sums of logarithms (log_sums.c) ---- */

bool region_adds_logs(const Region *r); /* log(e^a + e^b) of its two arguments, as JAX writes it */
/* One step of a running one: *y and *low, the part of it that y's type has no room for, with x. The
 * result, rounded. */
Value *add_log(Build *b, Value **y, Value **low, Value *x);

/* ---- operations in the place of one (rewrite.c) ---- */

/* What was built behind `end`, the terminator of the region of `at`, goes before `at`. */
void compile_move_built(Op *end, Op *at);
/* What op, of one result, is written as, built at the end of its region; NULL: it stays. */
typedef Value *Rewrite(Build *b, const Op *op);
/* Applies it to every operation of this kind, in regions as well. false: all of them stayed. Takes
 * time by the size of the function and the uses of what is replaced, not their product. */
bool compile_rewrite(Module *m, OpKind kind, Rewrite *rewritten);

/* ---- scatters (scatters.c) ---- */

bool value_is_zeros(const Value *v);  /* a constant, of positive zeros */
bool scatter_adds(const Op *scatter); /* its one operand's elements and its updates are added up */

/* ---- simplify ---- */

/* A gather at places that are constants, as slices side by side; NULL: it is another (simplify_gathers.c). */
Value *gather_as_slices(Build *b, const Op *op);

typedef struct Simp {
  Module *m;
  Map *rep;      /* value -> what stands for it now */
  Map *seen;     /* key of an op -> the op */
  VEC(Str) undo; /* keys of the regions being walked */
  Buf key;
  Map *uses;       /* value -> uses + 1, at the beginning of the round */
  const Op *scope; /* innermost manual_computation */
  bool changed;
  bool keep_shardings; /* calls that say how what follows is divided */
} Simp;

/* simplify_edit.c */
Value *simp_resolve(Simp *s, Value *v);
void simp_replace(Simp *s, Value *v, Value *by);
/* A new op of one result before `at`. */
Value *simp_op(Simp *s, Op *at, OpKind kind, int n, Value *const *operands, Type *type, int n_attrs,
               const NamedAttr *attrs);
NamedAttr simp_ints(Simp *s, const char *name, int n, const int64_t *v);
/* `by` in the place of op's result, which goes. true. */
bool simp_done(Simp *s, Op *op, Value *by);
bool simp_single_use(Simp *s, const Value *v); /* as counted before this round */
/* Applies one rule (simplify_rules.c). true: something changed; op may be removed, new ops stand before it. */
bool simp_rules(Simp *s, Op *op);

/* Rules for one kind of operation each, as simp_rules. */
bool simp_move(Simp *s, Op *op);  /* reshapes, transposes, broadcasts, ...: simplify_moves.c */
bool simp_slice(Simp *s, Op *op); /* of what it is made from: simplify_slices.c */
bool simp_cutting_pad(Simp *s, Op *op); /* a pad that adds nothing: it is a slice */
bool simp_dot(Simp *s, Op *op);         /* simplify_products.c */
bool simp_conv(Simp *s, Op *op);
bool simp_transpose_of_dot(Simp *s, Op *op); /* op: the transpose */
bool simp_count(Simp *s, Op *op);            /* of iotas and constants alone: simplify_counts.c */

#endif
