/* Extensions of the table for the Python package: was a process of a job lost, how long has a device
 * computed, how many are there? Whatever keeps these does not know the table. */
#include "peers/peers.h"
#include "pjrt/pjrt_priv.h"

static int device_count(void) {
  const char *env = env_get("WEFT_DEVICE");
  Dev *dev;
  Err *e = dev_open(env ? env : device_default(), &dev);
  int n = e ? 0 : dev->n;
  if (e) err_free(e);
  else dev_close(dev);
  return n;
}

static WeftJobExtension job = {.base = {sizeof job, PJRT_EXTENSION_WEFT_JOB, NULL},
                               .lost = peers_lost};
static WeftClockExtension clock_of_device = {
    .base = {sizeof clock_of_device, PJRT_EXTENSION_WEFT_CLOCK, NULL}, .seconds = clock_seconds};
static WeftCountExtension count_of_devices = {
    .base = {sizeof count_of_devices, PJRT_EXTENSION_WEFT_COUNT, NULL}, .count = device_count};

__attribute__((constructor)) static void offer(void) {
  pjrt_extend(&job.base);
  pjrt_extend(&clock_of_device.base);
  pjrt_extend(&count_of_devices.base);
}
