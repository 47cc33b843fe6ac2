/* ir: custom calls that are exchanges: between processes, with the caller's own. */
#ifndef WEFT_IR_EXCHANGE_H
#define WEFT_IR_EXCHANGE_H

#include "ir/ir.h"

/* @ragged_all_to_all, as jax.lax.ragged_all_to_all is lowered, with its six operands (compile/pass/ragged.c
 * tells what they are). */
static inline bool op_is_ragged(const Op *op) {
  return op->kind == OP_CUSTOM_CALL && op->n_operands == 6 && op->n_results == 1 &&
         str_is(op_str(op, "call_target_name"), "ragged_all_to_all");
}

/* A call back into the caller's process (pjrt/callback.c). */
#define HOST_CALLBACK "weft_host_callback"
static inline bool op_is_host_callback(const Op *op) {
  return op->kind == OP_CUSTOM_CALL && str_is(op_str(op, "call_target_name"), HOST_CALLBACK);
}

/* One that each process makes with its own parts of the operands, wherever the program is cut; it gives at most tokens. */
static inline bool op_is_partitioned_callback(const Op *op) {
  if (!op_is_host_callback(op)) return false;
  for (int i = 0; i < op->n_results; i++)
    if (op->results[i].type->kind != TY_TOKEN) return false;
  const Attr *config = op_attr(op, "mhlo.backend_config");
  return config && config->kind == AT_DICT && attrs_get(config->dict, config->n, "partitioned");
}

#endif
