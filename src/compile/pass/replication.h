/* replication: which processes of a program hold the same value. What they compute alike is computed once
 * and stored once where they run together. */
#ifndef WEFT_COMPILE_PASS_REPLICATION_H
#define WEFT_COMPILE_PASS_REPLICATION_H

#include "ir/ir.h"

/* owner[p]: the first process whose value is that of process p. NULL stands for: of all processes. Two
 * values that the same processes share have the same pointer. */
typedef const int *Owners;

/* Who shares what, each set of owners once; they live in `mem`. */
typedef struct OwnerSets OwnerSets;
OwnerSets *owner_sets_new(int processes, Arena *mem);
void owner_sets_free(OwnerSets *s); /* NULL is fine */
/* The processes that share both a value with `a` and one with `b`. */
Owners owner_sets_join(OwnerSets *s, Owners a, Owners b);
Owners owner_sets_own(OwnerSets *s); /* every process has its own */

/* Of every value of main, by id, an array in `mem`; regions have been given numbers. argument[i]: of argument i,
 * any memory; NULL: all of all arguments. */
Owners *replication_find(Func *main, int replicas, int partitions, const Owners *argument,
                         OwnerSets *sets, Arena *mem);
/* Likewise of the values in the body of one of main's manual computations, by what each process has of its arguments. */
Owners *replication_find_manual(Func *main, const Op *manual, int partitions,
                                const Owners *argument, OwnerSets *sets, Arena *mem);

#endif
