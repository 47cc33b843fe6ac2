/* What generated code and strips both call (lanes.c). */
#ifndef WEFT_DEV_CPU_LANES_H
#define WEFT_DEV_CPU_LANES_H

#include <stdint.h>

/* The rounds of threefry2x32 on words a and b that have the keys added, n of each; same: bit k: the
 * k-th operand is one vector of equal numbers. Results: the two words and one xor the other; NULL: not
 * wanted. They may lie where operands do. */
void lanes_threefry(const uint32_t *a, const uint32_t *b, const uint32_t *key0,
                    const uint32_t *key1, uint32_t *first, uint32_t *second, uint32_t *both,
                    int64_t same, int64_t n);

/* For a vector of n lanes: how many weft_sines_8 or _16 and the like take in a register; 0: none. */
int lanes_at_once(int n);

/* Of n numbers; results must not lie where operands do. */
void lanes_sines(const float *x, float *y, int64_t n);
void lanes_cosines(const float *x, float *y, int64_t n);
void lanes_tangents(const float *x, float *y, int64_t n);
void lanes_cube_roots(const float *x, float *y, int64_t n);
void lanes_powers(const float *x, const float *y, float *z, int64_t n);
void lanes_remainders(const float *x, const float *y, float *z, int64_t n);

#endif
