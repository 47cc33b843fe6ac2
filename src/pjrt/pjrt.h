/* pjrt: the plugin. Maps the PJRT C ABI (pjrt_abi/pjrt_abi.h) to devices (dev/dev.h); GetPjrtApi is
 * the only symbol that libpjrt_weft.so exports.
 *
 * Lifetime    a client is reference counted: buffers and programs hold it, so callers may destroy
 *             their handles in any order. Devices, memories and descriptions belong to the client.
 * Threads     every entry may be called from several threads. No lock is held while a caller's
 *             callback runs.
 * Versions    arguments are read and written only as far as the caller's struct_size reaches.
 * Execution   is synchronous: Execute returns when the results exist, its events are ready. Buffers
 *             may still be unfinished (async transfers, alias buffers): users of the data wait for
 *             them.
 */
#ifndef WEFT_PJRT_PJRT_H
#define WEFT_PJRT_PJRT_H

#include "pjrt_abi/pjrt_abi.h"

__attribute__((visibility("default"))) const PJRT_Api *GetPjrtApi(void);

#endif
