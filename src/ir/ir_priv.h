/* Private to ir: the interning tables of a module. */
#ifndef WEFT_IR_IR_PRIV_H
#define WEFT_IR_IR_PRIV_H

#include "ir/ir.h"

struct ModuleTables {
  Map *types;            /* structural key -> Type */
  VEC(Tensor *) tensors; /* released with the module */
};

/* Every region of the body knows its function. */
void ir_set_func(Func *f);

#endif
