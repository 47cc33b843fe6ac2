/* dev/cpu/sorting, private: elements as unsigned integers in the order wanted, entries of (key,
 * position), and their sorting. */
#ifndef WEFT_DEV_CPU_SORTING_H
#define WEFT_DEV_CPU_SORTING_H

#include "dev/cpu/kernel/kernel.h"

typedef enum Part { PART_ALL, PART_REAL, PART_IMAG } Part;

typedef struct Key {
  int operand;
  Part part;
  DType type; /* of the part */
  bool zeros; /* -0 is 0 */
  bool nans;  /* all NaNs are the largest */
  bool down;
  int bits;
} Key;

static inline uint64_t float_key(uint64_t u, int bits, bool zeros, bool nans, uint64_t infinity) {
  uint64_t sign = (uint64_t)1 << (bits - 1), mask = sign | (sign - 1), magnitude = u & (sign - 1);
  if (zeros && magnitude == 0) u = 0;
  if (nans && magnitude > infinity) u = sign - 1;
  return (u & sign ? ~u : u | sign) & mask;
}

/* Of 8 bits, with one NaN where others have -0. */
static inline uint64_t nanless_key(uint64_t u, bool nans) {
  if (!nans) return float_key(u, 8, false, false, 0);
  return u == 0x80 ? 0xff : u & 0x80 ? ~u & 0xff : (u | 0x80) - 1;
}

static inline uint64_t key_at(const Key *k, const char *p) {
  uint64_t u = 0, mask = k->bits == 64 ? ~(uint64_t)0 : ((uint64_t)1 << k->bits) - 1, v;
  int64_t b = dtype_bytes(k->type);
  if (k->part == PART_IMAG) p += b;
  memcpy(&u, p, (size_t)b);
  switch (k->type) {
  case DT_F32: v = float_key(u, 32, k->zeros, k->nans, 0x7f800000); break;
  case DT_F64: v = float_key(u, 64, k->zeros, k->nans, 0x7ff0000000000000); break;
  case DT_BF16: v = float_key(u, 16, k->zeros, k->nans, 0x7f80); break;
  case DT_F16: v = float_key(u, 16, k->zeros, k->nans, 0x7c00); break;
  case DT_F8E5M2: v = float_key(u, 8, k->zeros, k->nans, 0x7c); break;
  case DT_F8E4M3: v = float_key(u, 8, k->zeros, k->nans, 0x78); break;
  case DT_F8E3M4: v = float_key(u, 8, k->zeros, k->nans, 0x70); break;
  case DT_F8E4M3FN: v = float_key(u, 8, k->zeros, k->nans, 0x7e); break; /* the largest number */
  case DT_F8E4M3FNUZ:
  case DT_F8E5M2FNUZ:
  case DT_F8E4M3B11FNUZ: v = nanless_key(u, k->nans); break;
  default: v = dtype_is_signed(k->type) ? u ^ ((uint64_t)1 << (k->bits - 1)) : u;
  }
  return (k->down ? ~v : v) & mask;
}

static inline bool key_type_ok(DType t) {
  return t == DT_I1 || dtype_is_int(t) ||
         (dtype_is_float(t) && dtype_bits(t) >= 8 && t != DT_F8E8M0FNU);
}

/* ---- a comparator as keys, most important first (comparator.c) ---- */

#define MAX_KEYS 8

typedef struct Sort {
  Key keys[MAX_KEYS];
  int n_keys;
  int64_t n, inner, rows;
  int dim;
} Sort;

bool sort_recognise(const Op *op, Sort *s);

/* ---- entries (entries.c) ---- */

typedef struct Wide {
  uint64_t key, at;
} Wide;

#define DIGIT 11 /* bits of a digit, at most */
#define BUCKETS (1 << DIGIT)
#define MAX_CHUNKS 16

/* Sorts n entries at a, stably, by the lowest `bits` bits of the key; b: as much memory. wide: Wide, else 8 bytes,
 * the key in the upper half. at: room to count in. Returns where the result is, a or b. */
void *sort_entries(void *a, void *b, int64_t n, int bits, bool wide, uint32_t (*at)[BUCKETS]);

/* ---- many rows at once (sort_lanes.c) ---- */

#define SORT_LANES 8
typedef int64_t SortLanes __attribute__((vector_size(8 * SORT_LANES), may_alias));

/* Sorts n numbers in each lane. */
void sort_lanes(SortLanes *e, int64_t n);

#endif
