/* Fusions without a compiler: each node of the graph is one call of a function that is there already
 * for each strip of STRIP numbers. A program of a few operations starts at once so; what it computes
 * is what the generated code would, digit for digit, because the loops are cut alike (shape.h) and
 * the formulas are the same (math_forms.h).
 *
 * For floats and integers of up to 32 bits, i1 and the parts of complex<f32>: elementwise, reductions,
 * pieces joined and padded; not for f64 and i64. */
#ifndef WEFT_DEV_CPU_STRIPS_H
#define WEFT_DEV_CPU_STRIPS_H

#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/loops/loops.h"

typedef struct Strips Strips;

/* NULL: not for strips, or not on this host. f lives as long. */
Strips *strips_new(const Fusion *f);
FusedCode strips_code(const Strips *s); /* s lives as long */
/* About how much longer than generated code one run takes, and how many nodes that would have. */
double strips_excess_s(const Strips *s);
double strips_run_s(const Strips *s); /* of generated code */
int strips_nodes(const Strips *s);
void strips_free(Strips *s); /* NULL is fine */

#endif
