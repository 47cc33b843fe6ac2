/* How the terms of a reduction may be grouped. */
#ifndef WEFT_IR_ANY_ORDER_H
#define WEFT_IR_ANY_ORDER_H

#include "ir/ir.h"

/* The terms of a reduction with this body may be grouped anyhow, as the specification allows of all; of
 * others each is taken in after the one before it. */
bool region_any_order(const Region *body);

#endif
