/* The parts of `weft diff`. */
#ifndef WEFT_CLI_DIFF_H
#define WEFT_CLI_DIFF_H

#include "dev/dev.h"
#include "ir/ir.h"

/* ---- diff_run.c: a program on each of two devices, and how far its values part ---------------- */

/* How far a value is apart, of a on the first device and b on the second. */
typedef struct DiffError {
  double error; /* max|a - b| / max|a|; infinity when one has a NaN where the other has none, or all
                   of a is 0 */
  double worst, scale, rms; /* max|a - b|, max|a|, of a */
  int64_t at;               /* the element where it is worst */
} DiffError;

DiffError diff_error(const Tensor *a, const Tensor *b);

/* Its results have no error that its operands have not. */
bool diff_only_moves(const Op *op);
/* The tensors that ops of the body compute, in program order; the caller frees the list. */
Value **diff_computed(const Func *f, int *n);
/* The end of the stretch of values from j on that both devices can show in one run. */
int diff_stretch(Value *const *v, int j, int n);

/* The main function of m, compiled for a device. diff_close takes one of zeros. */
typedef struct DiffRun {
  Dev *dev;
  DevProgram *p;
  const char *device;
} DiffRun;
/* v become the results of f. */
void diff_expose(Module *m, Func *f, Value *const *v, int n);
Err *diff_open(const char *device, const Module *m, DiffRun *out);
Err *diff_run(const DiffRun *r, Tensor *const *in, Tensor **out);
void diff_close(DiffRun *r);

/* The errors of n values of f, the main function of m, given each device's arguments. */
Err *diff_errors(Module *m, Func *f, Value *const *v, int n, Tensor *const *const in[2],
                 const char *const devices[2], DiffError *out);

/* ---- diff_inside.c: loops and branches -------------------------------------------------------- */

enum { DIFF_DEPTH = 8 };

/* What parts first inside a loop or a branch. */
typedef struct DiffInside {
  const Value *v; /* NULL: nothing does that can be run by itself. Lives as long as the module */
  DiffError error;
  int depth;
  struct {
    bool loop;
    int64_t at; /* the round of the loop, from 1 on; the branch, from 0 on */
  } path[DIFF_DEPTH];
} DiffInside;

/* Follows op, a while, case or if of f whose results part by more than tol: the rounds of a loop one
 * by one, each device with its own state, up to the first that brings them apart, and in this round
 * the operations. m is as before afterwards, but for f's results. */
Err *diff_inside(Module *m, Func *f, const Op *op, Tensor *const *const in[2],
                 const char *const devices[2], double tol, DiffInside *out);

#endif
