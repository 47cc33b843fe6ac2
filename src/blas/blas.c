/* One thread a call of OpenBLAS: see the header. */
#include "blas/blas.h"

#include <pthread.h>
#include <stdio.h>

void openblas_set_num_threads(int n);
int openblas_get_parallel(void); /* 0: the serial build */

/* In the products, where the library is inside, in place of the function that starts its threads when it is loaded (the linker's
 * --wrap, cmake/outside.cmake). */
int __wrap_blas_thread_init(void);
int __wrap_blas_thread_init(void) { return 0; }

static void one_thread(void) {
  if (!openblas_get_parallel())
    fprintf(stderr, "weft: the OpenBLAS that the system gives is the serial build, whose calls "
                    "from several threads give wrong "
                    "numbers: install libopenblas0-pthread, or set WEFT_THREADS=1\n");
  openblas_set_num_threads(1);
}

void blas_begin(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, one_thread);
}
