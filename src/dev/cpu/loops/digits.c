/* Which digits operations want and keep: see emit_priv.h. */
#include "dev/cpu/loops/emit_priv.h"

bool emit_moves(OpKind k) {
  switch (k) {
  case OP_CONVERT:
  case OP_BITCAST_CONVERT:
  case OP_BROADCAST_IN_DIM:
  case OP_RESHAPE:
  case OP_COPY:
  case OP_TRANSPOSE:
  case OP_SLICE:
  case OP_REVERSE:
  case OP_SELECT: return true;
  default: return false;
  }
}

Digits emit_digits(OpKind k) {
  switch (k) {
  case OP_CONVERT:
  case OP_BITCAST_CONVERT:
  case OP_COMPARE:
  case OP_IS_FINITE:
  case OP_SIGN:
  case OP_CEIL:
  case OP_FLOOR:
  case OP_ROUND_NEAREST_EVEN:
  case OP_ROUND_NEAREST_AFZ:
  case OP_REMAINDER:
  case OP_REDUCE_PRECISION:
  case OP_IOTA: return DIGITS_OF_TYPE;
  case OP_PAD:
  case OP_CONCATENATE:
  case OP_CLAMP:
  case OP_MAXIMUM:
  case OP_MINIMUM:
  case OP_ABS:
  case OP_NEGATE: return DIGITS_OF_OPERANDS;
  default: return emit_moves(k) ? DIGITS_OF_OPERANDS : DIGITS_MORE;
  }
}
