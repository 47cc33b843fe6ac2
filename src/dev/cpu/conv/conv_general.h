/* Convolutions of any form and type: the window under each result is gathered (im2col) and
 * multiplied by the kernel; by BLAS for f32, f64 and complex, by loops for integers; narrower
 * floats in f32, rounded once. */
#ifndef WEFT_DEV_CPU_CONV_GENERAL_H
#define WEFT_DEV_CPU_CONV_GENERAL_H

#include "dev/cpu/kernel/kernel.h"

typedef struct ConvGeneral ConvGeneral;
bool conv_general_accepts(const Op *op);
ConvGeneral *conv_general_new(const Op *op);
void conv_general_free(ConvGeneral *c); /* NULL is fine */
Err *conv_general_run(const ConvGeneral *c, const Op *op, void *const *in, void *const *out);

#endif
