/* pass_interior_pad: what is spread out between other elements, to be combined with them, is written as
 * edges of a further dimension, which fuse as steps between elements do not:
 *
 *   pad(x[n, c], interior k - 1)   =   reshape(pad(reshape(x to [n, 1, c]) to [n, k, c]))
 *
 * So are the two halves of jax.lax.associative_scan's results put together, and gradients of
 * x[::k]. Only where rows are long enough that a loop over k of them costs nothing. */
#include "compile/pass/pass_priv.h"
#include "ir/build.h"

#define LEAST_RUN 16 /* elements of a row */

static int64_t int_at(const Op *op, const char *name, int i) {
  const int64_t *v;
  return i < op_ints(op, name, &v) ? v[i] : 0;
}

/* NULL: it is no such pad. */
static Value *rewritten(Build *b, const Op *pad) {
  Value *x = pad->operands[0];
  const Type *from = x->type, *t = op_type(pad);
  if (!type_is_static(from) || from->quant || type_count(from) == 0 || t->rank >= B_MAX_RANK)
    return NULL;
  int at = -1;
  int64_t run = 1;
  for (int i = 0; i < t->rank; i++) {
    int64_t low = int_at(pad, "edge_padding_low", i), high = int_at(pad, "edge_padding_high", i);
    if (int_at(pad, "interior_padding", i)) {
      if (at >= 0) return NULL;
      at = i;
      run = 1;
    } else {
      if (low || high) return NULL;
      run *= t->dims[i];
    }
    if (low < 0 || high < 0) return NULL;
  }
  if (at < 0 || run < LEAST_RUN) return NULL;
  int64_t k = int_at(pad, "interior_padding", at) + 1, before = int_at(pad, "edge_padding_low", at),
          n = from->dims[at];
  if (t->dims[at] % k) return NULL;
  int64_t rows = t->dims[at] / k;
  int64_t dims[B_MAX_RANK], low[B_MAX_RANK] = {0}, high[B_MAX_RANK] = {0};
  for (int i = 0; i < t->rank; i++) dims[i + (i > at)] = from->dims[i];
  dims[at + 1] = 1;
  low[at] = before / k;
  high[at] = rows - n - low[at];
  low[at + 1] = before % k;
  high[at + 1] = k - 1 - low[at + 1];
  Value *y = b_reshape(b, x, t->rank + 1, dims);
  return b_reshape(b, b_pad(b, y, pad->operands[1], low, high, NULL), t->rank, t->dims);
}

static void walk(Module *m, Region *r) {
  for (Op *op = r->first, *next; op; op = next) {
    next = op->next;
    for (int i = 0; i < op->n_regions; i++) walk(m, op->regions[i]);
    if (op_info[op->kind].cls != OC_EWISE) continue;
    for (int i = 0; i < op->n_operands; i++) {
      Op *pad = op->operands[i]->def;
      if (!pad || pad->kind != OP_PAD || pad->parent != r) continue;
      Build b = {.m = m, .r = r, .loc = op->loc};
      Op *end = r->last;
      Value *v = rewritten(&b, pad);
      if (!v) continue;
      compile_move_built(end, op);
      op->operands[i] = v;
      if (!region_uses(r, &pad->results[0])) op_remove(pad);
    }
  }
}

Err *pass_interior_pad(Module *m) {
  walk(m, module_main(m)->body);
  return NULL;
}
