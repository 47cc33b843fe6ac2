/* An extension of the table for the Python package: was a process of a job lost? */
#include "peers/peers.h"
#include "pjrt/pjrt.h"

static WeftJobExtension job = {.base = {sizeof job, PJRT_EXTENSION_WEFT_JOB, NULL},
                               .lost = peers_lost};

__attribute__((constructor)) static void offer(void) { pjrt_extend(&job.base); }
