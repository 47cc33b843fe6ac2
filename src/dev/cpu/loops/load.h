/* dev/cpu/load: relocatable x86-64 ELF objects become code that runs. */
#ifndef WEFT_DEV_CPU_LOAD_H
#define WEFT_DEV_CPU_LOAD_H

#include "base/base.h"

typedef struct Image Image;

/* Links the objects (each aligned to 8; not needed afterwards) into memory of its own. outside():
 * the address of a function that the code calls; NULL: unknown.
 *   errors    ERR_INTERNAL damaged or incomplete; ERR_UNIMPLEMENTED another machine, a relocation
 *             that small position independent code does not have; ERR_PRECONDITION the system
 *             allows no executable memory
 */
Err *image_load(const Str *objects, int n, void *(*outside)(const char *name), Image **out);
void *image_symbol(const Image *m, const char *name); /* a global function; NULL: none */
size_t image_bytes(const Image *m);
void image_free(Image *m); /* NULL is fine */

#endif
