/* xla_forms: what XLA's translation of HLO leaves in a module, brought to the form that StableHLO's own
 * programs have. Private to stablehlo.
 *
 *   mhlo.input_output_alias of the module   tf.aliasing_output of the argument
 *   a custom call with one tuple            with as many results; get_tuple_element is the result
 */
#ifndef WEFT_STABLEHLO_XLA_FORMS_H
#define WEFT_STABLEHLO_XLA_FORMS_H

#include "ir/ir.h"

void xla_forms_read(Module *m);

#endif
