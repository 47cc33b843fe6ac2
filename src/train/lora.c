/* Kernels with what was learnt beside them (Hu et al. 2021): W + 2 A B. */
#include "train/train_priv.h"

#include <stdlib.h>

/* "h0/fc/lora_a" of "h0/fc/kernel"; NULL: none. */
static const NamedTensor *beside(int n, const NamedTensor *t, const char *kernel,
                                 const char *name) {
  char *full = xasprintf("%.*s%s", (int)(strlen(kernel) - strlen("kernel")), kernel, name);
  const NamedTensor *found = safetensors_find(n, t, full);
  free(full);
  return found && found->type == DT_F32 && found->rank == 2 ? found : NULL;
}

bool lora_merge(int n, const NamedTensor *t, const NamedTensor *kernel, float *out) {
  if (!str_ends(str_from(kernel->name), "/kernel") || kernel->rank != 2 || kernel->type != DT_F32)
    return false;
  const NamedTensor *a = beside(n, t, kernel->name, "lora_a"),
                    *b = beside(n, t, kernel->name, "lora_b");
  int64_t rows = kernel->dims[0], cols = kernel->dims[1];
  if (!a || !b || a->dims[0] != rows || b->dims[0] != a->dims[1] || b->dims[1] != cols)
    return false;
  int64_t rank = a->dims[1];
  const float *down = a->data, *up = b->data;
  if (out != kernel->data) memcpy(out, kernel->data, sizeof *out * (size_t)(rows * cols));
  for (int64_t r = 0; r < rows; r++)
    for (int64_t k = 0; k < rank; k++) {
      float scale = (float)LORA_SCALE * down[r * rank + k];
      for (int64_t c = 0; c < cols; c++) out[r * cols + c] += scale * up[k * cols + c];
    }
  return true;
}
