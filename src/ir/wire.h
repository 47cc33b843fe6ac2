/* ir/wire: modules as bytes, for caches of this very build (base/wire.h): as they are, with what
 * passes have made of them, in a tenth of the time that StableHLO takes to read. Programs over
 * meshes are not kept (`bad` when writing). What comes back is whole (every pointer is set, lists
 * are linked) but not verified: whoever reads it has a checksum. */
#ifndef WEFT_IR_WIRE_H
#define WEFT_IR_WIRE_H

#include "base/wire.h"
#include "ir/ir.h"

typedef struct IrWire IrWire;
IrWire *ir_wire_new(Wire *w);
void ir_wire_free(IrWire *x);

/* Reading: *m is new, also when it is bad. bodies: with the functions' bodies, else declarations. */
void ir_wire_module(IrWire *x, Module **m, bool bodies);
/* After the module: one of its operations, values, constants. Not NULL unless bad. */
void ir_wire_op(IrWire *x, const Op **op);
void ir_wire_value(IrWire *x, Value **v);
void ir_wire_tensor(IrWire *x, Tensor **t);

#endif
