/* The functions of one operand that math_forms.h has a formula for, on f32: X(formula, operation, what generated code has for f64;
 * NULL: nothing, the reference interpreter computes it). Generated code (emit.c) and the vectorized interpreter know them from
 * here; math_test.c has a row for each. */
#ifndef WEFT_DEV_CPU_LOOPS_MATH_LIST_H
#define WEFT_DEV_CPU_LOOPS_MATH_LIST_H

/* clang-format off */
#define MATH_FORMS(X)                                                    \
  X(exp, EXPONENTIAL, math_library(g, "exp", 1, in))                     \
  X(expm1, EXPONENTIAL_MINUS_ONE, math_library(g, "expm1", 1, in))       \
  X(log, LOG, math_library(g, "log", 1, in))                             \
  X(log1p, LOG_PLUS_ONE, math_library(g, "log1p", 1, in))                \
  X(tanh, TANH, math_tanh_wide(g, in[0]))                                \
  X(logistic, LOGISTIC, math_logistic_wide(g, in[0]))                    \
  X(erf, CHLO_ERF, math_library(g, "erf", 1, in))                        \
  X(erfc, CHLO_ERFC, math_library(g, "erfc", 1, in))                     \
  X(erf_inv, CHLO_ERF_INV, NULL)
/* clang-format on */

#endif
