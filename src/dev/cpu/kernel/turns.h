/* dev/cpu/turns, private: transposition of planes and of many small blocks (turns.c). */
#ifndef WEFT_DEV_CPU_TURNS_H
#define WEFT_DEV_CPU_TURNS_H

#include "dev/cpu/kernel/kernel.h"

/* d[a * da + b] = s[a + b * sb] for a < na, b < nb; elements of `bytes` bytes. */
void turn_plane(size_t bytes, int64_t na, int64_t nb, int64_t da, int64_t sb, const char *src,
                char *dst);

#define TURN_BLOCK 64 /* elements of a small block, at most */
/* n blocks of `size` elements, beside each other in dst, `step` elements apart in src: element j of one
 * is element from[j] there. */
void turn_blocks(size_t bytes, int64_t n, int64_t size, const uint8_t *from, int64_t step,
                 const char *src, char *dst);

#endif
