/* Where the operands of a product of a batch begin; those whose dimensions do not flatten, copied in an order where they do. */
#include "dev/cpu/dot/dot.h"
#include "dev/cpu/kernel/mem.h"

/* Elements of the operands before those of product b. */
void dot_batch_at(const Dot *d, int64_t b, int64_t *lhs, int64_t *rhs) {
  *lhs = *rhs = 0;
  for (int i = d->n_batch - 1; i >= 0; i--) {
    int64_t at = i ? b % d->batch_dims[i] : b;
    b /= d->batch_dims[i];
    *lhs += at * d->lhs_batch[i];
    *rhs += at * d->rhs_batch[i];
  }
}

bool dot_operands(const Dot *d, void *const *in, DotOperands *o) {
  *o = (DotOperands){.at = {in[0], in[1]}};
  for (int i = 0; i < 2; i++) {
    const Side *s = i ? &d->rhs : &d->lhs;
    size_t size = (size_t)dtype_bytes(i ? d->rhs_in : d->in), n = size;
    if (s->direct) continue;
    for (int k = 0; k < s->rank; k++) n *= (size_t)s->dims[k];
    if (!(o->own[i] = cpu_block_alloc(n))) return false;
    o->bytes[i] = n;
    cpu_permute(size, s->rank, s->dims, s->strides, in[i], o->own[i]);
    o->at[i] = o->own[i];
  }
  return true;
}

void dot_operands_free(DotOperands *o) {
  for (int i = 0; i < 2; i++) cpu_block_free(o->own[i], o->bytes[i]);
}
