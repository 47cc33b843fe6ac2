/* Extensions of the table for the Python package: was a process of a job lost, and how long has a device
 * computed? Whatever keeps these does not know the table. */
#include "peers/peers.h"
#include "pjrt/pjrt_priv.h"

static WeftJobExtension job = {.base = {sizeof job, PJRT_EXTENSION_WEFT_JOB, NULL},
                               .lost = peers_lost};
static WeftClockExtension clock_of_device = {
    .base = {sizeof clock_of_device, PJRT_EXTENSION_WEFT_CLOCK, NULL}, .seconds = clock_seconds};

__attribute__((constructor)) static void offer(void) {
  pjrt_extend(&job.base);
  pjrt_extend(&clock_of_device.base);
}
