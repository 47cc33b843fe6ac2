/* blas: OpenBLAS as the pool needs it. The pool divides the work, so a call stays on its thread and the library
 * starts none of its own.
 *
 * It must be a library of threads all the same (libopenblas-pthread): the serial one keeps its buffers
 * without a lock, and calls from several threads at once give wrong numbers. The build refuses it (cmake/outside.cmake). */
#ifndef WEFT_BLAS_BLAS_H
#define WEFT_BLAS_BLAS_H

/* Before calls of BLAS or LAPACK; cheap, from any thread. */
void blas_begin(void);

#endif
