/* What precision a chip's matrix units have, as its file says. */
#ifndef WEFT_DEV_SIM_NUMERICS_H
#define WEFT_DEV_SIM_NUMERICS_H

#include "chip/chip.h"
#include "compile/pass/numerics.h"

Numerics chip_numerics(const Chip *c);

#endif
