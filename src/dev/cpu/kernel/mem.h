/* Memory of results and of kernels, kept for reuse. */
#ifndef WEFT_DEV_CPU_MEM_H
#define WEFT_DEV_CPU_MEM_H

#include "ir/ir.h"

Err *cpu_tensor_new(DType t, int rank, const int64_t *dims, Tensor **out);
Err *cpu_tensor_for_argument(DType t, int rank, const int64_t *dims, bool zeros, Tensor **out);
void *cpu_block_alloc(size_t n); /* NULL: none left */
void cpu_block_free(void *p, size_t n);

#endif
