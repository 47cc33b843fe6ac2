/* OpenMP with one thread, for the oneDNN in the wheel: weft's pool divides the work before it calls, so no thread of OpenMP's is
 * ever wanted, and none of another library's (TensorFlow's, PyTorch's) is disturbed. These are the calls that oneDNN makes, in
 * GCC's interface, with its versions (serial_omp.map); tools/wheel.sh builds them. */
#include <stdbool.h>

/* The caller runs the body itself, between these two. */
void GOMP_parallel_start(void (*body)(void *), void *data, unsigned threads) {
  (void)body, (void)data, (void)threads;
}
void GOMP_parallel_end(void) {}
void GOMP_barrier(void) {}

/* All of a loop's range at once. */
bool GOMP_loop_static_start(long start, long end, long step, long chunk, long *out_start,
                            long *out_end) {
  (void)chunk;
  *out_start = start;
  *out_end = end;
  return step > 0 ? start < end : start > end;
}
bool GOMP_loop_static_next(long *out_start, long *out_end) {
  (void)out_start, (void)out_end;
  return false;
}
void GOMP_loop_end_nowait(void) {}

int omp_get_max_threads(void) { return 1; }
int omp_get_num_threads(void) { return 1; }
int omp_get_thread_num(void) { return 0; }
int omp_in_parallel(void) { return 0; }
