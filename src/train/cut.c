/* Arrays that lie in parts on several devices. */
#include "train/train_priv.h"

#include "ir/mesh.h"

#include <stdlib.h>

/* Where the device's part begins, and its dims. */
static Err *box(const Cut *c, int rank, const int64_t *dims, int device, int64_t *start,
                int64_t *size) {
  int64_t parts[CUT_RANK], index[CUT_RANK], at = mesh_position(c->mesh, device);
  assert(rank <= CUT_RANK);
  if (at < 0) return err_new(ERR_INVALID, "device %d is not in the program's mesh", device);
  TRY(mesh_blocks(c->s, c->mesh, rank, at, NULL, 0, parts, index));
  for (int d = 0; d < rank; d++) {
    if (dims[d] % parts[d])
      return err_new(ERR_INVALID, "a dimension of %lld does not divide into %lld parts",
                     (long long)dims[d], (long long)parts[d]);
    size[d] = dims[d] / parts[d];
    start[d] = index[d] * size[d];
  }
  return NULL;
}

/* Copies a box of `whole` from or to a dense part, row by row. */
static void copy_box(int rank, const int64_t *dims, const int64_t *start, const int64_t *size,
                     size_t element, char *whole, char *part, bool take) {
  int64_t rows = 1, at[CUT_RANK] = {0};
  for (int d = 0; d < rank - 1; d++) rows *= size[d];
  size_t bytes = element * (size_t)(rank ? size[rank - 1] : 1);
  for (int64_t r = 0; r < rows; r++, part += bytes) {
    int64_t offset = 0;
    for (int d = 0; d < rank; d++) offset = offset * dims[d] + start[d] + at[d];
    char *row = whole + (size_t)offset * element;
    memcpy(take ? part : row, take ? row : part, bytes);
    for (int d = rank - 2; d >= 0 && ++at[d] == size[d]; d--) at[d] = 0;
  }
}

Err *cut_take(const Cut *c, DType t, int rank, const int64_t *dims, int device, const void *whole,
              int64_t *part_dims, void **out) {
  int64_t start[CUT_RANK];
  TRY(box(c, rank, dims, device, start, part_dims));
  size_t n = (size_t)dtype_bytes(t);
  for (int d = 0; d < rank; d++) n *= (size_t)part_dims[d];
  *out = xmalloc(n + 1);
  copy_box(rank, dims, start, part_dims, (size_t)dtype_bytes(t), (char *)(uintptr_t)whole, *out,
           true);
  return NULL;
}

Err *cut_fetch(const Cut *c, DType t, int rank, const int64_t *dims, int device, ClientBuffer *part,
               void *whole) {
  int64_t start[CUT_RANK], size[CUT_RANK];
  TRY(box(c, rank, dims, device, start, size));
  size_t n = (size_t)dtype_bytes(t);
  for (int d = 0; d < rank; d++) n *= (size_t)size[d];
  char *data = xmalloc(n + 1);
  Err *e = client_buffer_to_host(part, data, n);
  if (!e) copy_box(rank, dims, start, size, (size_t)dtype_bytes(t), whole, data, false);
  free(data);
  return e;
}
