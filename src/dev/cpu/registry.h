/* registry: which kernel computes an operation. Every k_X.c in the folders of src/dev/cpu is in it; see kernel.h. */
#ifndef WEFT_DEV_CPU_REGISTRY_H
#define WEFT_DEV_CPU_REGISTRY_H

#include "dev/cpu/kernel/kernel.h"

/* The first row that accepts the op; never NULL (the reference comes last). */
const CpuKernel *cpu_kernel_find(const Op *op);
bool cpu_kernel_is_reference(const CpuKernel *k);

#endif
