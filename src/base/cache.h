/* base/cache: bytes that cost time to make, kept on disk between runs of programs.
 *
 * Where      $WEFT_CACHE (a folder; `off` or 0: no cache), else $XDG_CACHE_HOME/weft, else
 *            ~/.cache/weft. Only a folder that belongs to this user and that nobody else may write
 *            to is used: machine code is kept in it.
 * Entry      one file, named by the hash of its key. It holds the whole key and a checksum: an
 *            entry that is cut short, damaged or another key's is as good as none.
 * Writers    any number of processes: an entry appears by rename.
 * Size       at most $WEFT_CACHE_MB (512) and 10000 entries; the least recently used ones go.
 * Errors     none: what cannot be kept is made again.
 * Thread     any
 */
#ifndef WEFT_BASE_CACHE_H
#define WEFT_BASE_CACHE_H

#include "base/base.h"

bool cache_is_on(void);
/* true: *file holds the entry (buf_free), *value points into it, aligned to 16. */
bool cache_get(Str key, Buf *file, Str *value);
void cache_put(Str key, Str value);

/* What identifies the code of this library or program, down to the compiler's flags: the linker's
 * build id in hex. NULL: there is none, and nothing may be kept that depends on the code. */
const char *build_id(void);

#endif
