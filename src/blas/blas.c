/* One thread a call of OpenBLAS: see the header. */
#include "blas/blas.h"

#include <pthread.h>

void openblas_set_num_threads(int n);

/* In the products, where the library is inside, in place of the function that starts its threads when it is loaded (the linker's
 * --wrap, cmake/outside.cmake). */
int __wrap_blas_thread_init(void);
int __wrap_blas_thread_init(void) { return 0; }

static void one_thread(void) { openblas_set_num_threads(1); }

void blas_begin(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, one_thread);
}
