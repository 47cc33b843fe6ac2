/* Fusions without a compiler: each node of the graph is one call of a function that is there already
 * for each strip of STRIP numbers. A program of a few operations starts at once so; what it computes
 * is what the generated code would, digit for digit, because the loops are cut alike (shape.h) and
 * the formulas are the same (math_forms.h).
 *
 * For floats and integers of up to 32 bits, i1 and the parts of complex<f32>: elementwise, reductions,
 * pieces joined and padded; not for f64 and i64. */
#ifndef WEFT_DEV_CPU_VINTERP_H
#define WEFT_DEV_CPU_VINTERP_H

#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/loops/loops.h"

typedef struct Strips VInterp;

/* NULL: not for strips, or not on this host. f lives as long. */
VInterp *vinterp_new(const Fusion *f);
FusedCode vinterp_code(const VInterp *s); /* s lives as long */
/* About how much longer than generated code one run takes, and how many nodes that would have. */
double vinterp_excess_s(const VInterp *s);
double vinterp_run_s(const VInterp *s); /* of generated code */
int vinterp_nodes(const VInterp *s);
void vinterp_free(VInterp *s); /* NULL is fine */

#endif
