/* Arguments for a program that nobody gave any. */
#ifndef WEFT_CLI_MADE_INPUT_H
#define WEFT_CLI_MADE_INPUT_H

#include "ir/ir.h"

typedef enum MadeKind { MADE_RANDOM, MADE_ZEROS } MadeKind;

/* Argument i of a program: zeros; or normal random numbers of a fixed seed, integers small and not
 * negative. positive: no number is below zero. errors: ERR_UNIMPLEMENTED a type without fixed shape */
Err *made_input(MadeKind kind, int i, bool positive, const Type *t, Tensor **out);

/* By argument of a program's main function: does it take the root or the logarithm of it, or of a sum with
 * it, as of a variance or Adam's second moment? The caller frees the list. */
bool *made_positive(const Module *m);

#endif
