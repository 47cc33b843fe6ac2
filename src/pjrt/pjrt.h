/* pjrt: the plugin. Maps the PJRT C ABI (pjrt_abi/pjrt_abi.h) to devices (dev/dev.h); GetPjrtApi is
 * the only symbol that libpjrt_weft.so exports.
 *
 * Lifetime    a client is reference counted: buffers and programs hold it, so callers may destroy
 *             their handles in any order. Devices, memories and descriptions belong to the client.
 * Threads     every entry may be called from several threads. No lock is held while a caller's
 *             callback runs.
 * Versions    arguments are read and written only as far as the caller's struct_size reaches.
 * Execution   Execute returns with promises where a run takes long (queue.c), else when the results
 *             exist. Users of the data wait for it.
 */
#ifndef WEFT_PJRT_PJRT_H
#define WEFT_PJRT_PJRT_H

#include "pjrt_abi/pjrt_abi.h"

__attribute__((visibility("default"))) const PJRT_Api *GetPjrtApi(void);

/* Puts an extension at the head of the table's chain. For constructors only: callers read the chain
 * without a lock. Callers skip types that they do not know. */
void pjrt_extend(PJRT_Extension_Base *e);

/* The command line, `weft`: libpjrt_weft.so holds it, so that the engine and its libraries are there
 * once, and the program of that name (cli/start.c) finds it in the chain. */
#define PJRT_EXTENSION_WEFT_COMMAND 0x57454654
typedef struct WeftCommandExtension {
  PJRT_Extension_Base base;
  int (*run)(int argc, char **argv); /* as main */
} WeftCommandExtension;

/* Of jobs of several processes: was one of them lost? The Python package asks at its end. */
#define PJRT_EXTENSION_WEFT_JOB 0x57454a42
typedef struct WeftJobExtension {
  PJRT_Extension_Base base;
  bool (*lost)(void);
} WeftJobExtension;

/* Seconds that a device of this process has computed so far, what was asked for and has not ended
 * included: a virtual one by its model, the CPU by the wall clock. 0: none of that number did. */
#define PJRT_EXTENSION_WEFT_CLOCK 0x5745434c
typedef struct WeftClockExtension {
  PJRT_Extension_Base base;
  double (*seconds)(int device);
} WeftClockExtension;

/* Devices that a client of this process would have, without making one: callers that start threads or
 * processes for them ask first. 0: WEFT_DEVICE names none. */
#define PJRT_EXTENSION_WEFT_COUNT 0x5745434e
typedef struct WeftCountExtension {
  PJRT_Extension_Base base;
  int (*count)(void);
} WeftCountExtension;

#endif
