/* What GPUs' libraries compute with a product's result on the way. */
#include "sim/gpu/gpu.h"

/* What GPUs' libraries compute with a product's or convolution's result on the way: a bias or what it
 * is added to, clipping, the operands' type; with a convolution's gradients nothing. */
static bool library_epilogue(const HNode *conv, const HNode *u) {
  if (conv->src && conv->dt != op_type(conv->src)->dtype)
    return false; /* widened: rounded between */
  if (conv->conv->is_conv && gpu_conv_way(conv) != GPU_CONV_FORWARD) return false;
  if (u->op == OP_CONVERT && u->dt != conv->in[0]->dt) return false;
  return u->op == OP_ADD || u->op == OP_MAXIMUM || u->op == OP_CONVERT;
}

bool gpu_library_adds(const HNode *product, const HNode *n) {
  return product->n_users == 1 && !product->is_output && hlo_count(n) == hlo_count(product) &&
         n->op != OP_CONVERT && library_epilogue(product, n);
}

HNode *gpu_epilogue_end(const Schedule *p, HNode *conv, const unsigned char *claimed) {
  HNode *v = conv;
  (void)p;
  while (!v->is_output && v->n_users == 1) {
    HNode *u = v->users[0];
    if (u->comp != conv->comp || claimed[u->id] || u->kind != H_EWISE ||
        hlo_count(u) != hlo_count(conv) || !library_epilogue(conv, u))
      break;
    v = u;
  }
  return sched_narrow_end(conv, v);
}
