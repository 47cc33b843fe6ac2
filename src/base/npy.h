/* npy: numpy's .npy and .npz files, read and written.
 *
 * Arrays are dense row-major (Fortran order is rearranged on reading) and little-endian (big-endian
 * input is swapped). numpy has no bfloat16, f8, i4: such arrays are stored as unsigned integers
 * (golden files) or as void ("|V2"; float8_e5m2 is "<f1"), which is read as the unsigned integer of
 * that width; the caller knows what it means. .npz is a zip file; members may be stored or deflated, zip64 is
 * understood; writing stores.
 */
#ifndef WEFT_BASE_NPY_H
#define WEFT_BASE_NPY_H

#include "base/base.h"

#define NPY_MAX_RANK 64

typedef struct Npy {
  char *name; /* member without ".npy"; "" for a plain .npy; owned */
  DType dtype;
  int rank;
  int64_t dims[NPY_MAX_RANK];
  int64_t count;
  void *data; /* count * dtype_bytes(dtype) bytes, malloc'd; owned */
} Npy;

typedef struct Npz {
  int n;
  Npy *arrays; /* in file order */
} Npz;

/* May an array of `got` be taken for one of `want`? The same type, or one that numpy has not got and
 * whose bits it stores as another's of that size (bfloat16, float8, int4). */
bool npy_holds(DType got, DType want);
/* errors: NOT_FOUND and what else file_read says; INVALID for anything that is not such a file. */
Err *npz_read(const char *path, Npz *out);
/* The same from bytes in memory. */
Err *npy_parse(const void *p, size_t n, Npy *out);
Err *npz_parse(const void *p, size_t n, Npz *out);
const Npy *npz_find(const Npz *z, const char *name); /* NULL when absent */
void npy_free(Npy *a);
void npz_free(Npz *z);

/* Writes; element types numpy lacks are written as unsigned integers of the same width. */
Err *npz_write(const char *path, const Npy *arrays, int n);

#endif
