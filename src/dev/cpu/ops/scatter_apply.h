/* dev/cpu, private to scatter: what an update does to the operand. OP_RETURN: takes its place. */
#ifndef WEFT_DEV_CPU_SCATTER_APPLY_H
#define WEFT_DEV_CPU_SCATTER_APPLY_H

#include "ir/ir.h"

/* dst[from[i] + k] = combination with src[to[i] + k], k < run, in order of i: what is common, in
 * vectors. */
typedef void ScatterApply(int64_t n, const int64_t *from, const int64_t *to, int64_t run, void *dst,
                          const void *src);
/* dst[at[i] + k] = combination with src[i * run + k], k < run; nothing where at[i] is negative. */
typedef void ScatterEach(int64_t n, const int32_t *at, int64_t run, void *dst, const void *src);

typedef struct ScatterWay {
  OpKind kind;
  DType t;
  ScatterApply *how[2]; /* runs, runs of one element */
  ScatterEach *each;
} ScatterWay;

const ScatterWay *scatter_way(OpKind kind, DType t); /* NULL: only scatter_combine */
/* One run, of any operation and type. */
void scatter_combine(OpKind kind, DType t, char *dst, const char *src, int64_t n);

#endif
