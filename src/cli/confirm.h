/* A plan beside what Google's compiler says of the same program. */
#ifndef WEFT_CLI_CONFIRM_H
#define WEFT_CLI_CONFIRM_H

#include "plan/program.h"

/* Compiles the first choice on a TPU for its topology by the plugin at `libtpu`, without a device, and prints
 * fits and memory side by side. errors: no choice is a TPU; the plugin's. */
Err *cli_confirm(const char *libtpu, const AdviseWork *w, const PlanAnswer *a);

/* The same of a model's shape: the step of its layout (layout_program.h), beside the plan's own count of bytes.
 * errors: also ERR_UNIMPLEMENTED a layout that has no such program. */
Err *cli_confirm_shape(const char *libtpu, const PlanAnswer *a);

#endif
