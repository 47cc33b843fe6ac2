/* How long each device of this process has computed: virtual ones by their model, the CPU by the wall
 * clock. The Python package asks (weft.virtual_time): a program's own
 * clock runs on while this machine computes a chip's numbers. */
#include "pjrt/pjrt_priv.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static VEC(double) computed; /* by device; never freed */

void clock_advance(const DevPart *part, double seconds) {
  pthread_mutex_lock(&lock);
  for (int k = 0; k < part->n; k++) {
    while (computed.n <= part->devices[k]) *vec_push(&computed) = 0;
    computed.v[part->devices[k]] += seconds;
  }
  pthread_mutex_unlock(&lock);
}

double clock_seconds(int device) {
  queues_drain_virtual();
  pthread_mutex_lock(&lock);
  double t = device >= 0 && device < computed.n ? computed.v[device] : 0;
  pthread_mutex_unlock(&lock);
  return t;
}
