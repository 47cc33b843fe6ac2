/* The parts of `weft run`. */
#ifndef WEFT_CLI_RUN_H
#define WEFT_CLI_RUN_H

#include "cli/cli.h"
#include "ir/ir.h"

#define RUN_MAX_OPTIONS 16

typedef struct RunArgs {
  const char *program, *device, *in, *out, *plugin, *topology;
  bool compile_only, parse_only, print;
  bool random, zeros; /* arguments made up, instead of `in` */
  int repeat;
  ClientOption options[RUN_MAX_OPTIONS];
  int n_options;
} RunArgs;

/* ---- run_program.c: through a plugin, weft's own or another ---------------------------------- */

/* @main of m, whose bytes the plugin gets: compiled, run as often as asked, its results printed or
 * written. */
Err *run_program(const RunArgs *a, const Module *m, const Func *f, Str bytes);

/* ---- run_arrays.c: .npz files in and out ----------------------------------------------------- */

/* The arguments of f from a->in, checked against their types, or made up; the caller releases them. */
Err *run_read_inputs(const RunArgs *a, const Func *f, Tensor **in);
/* Result j for people, the first few elements. */
void run_print_result(int j, const Tensor *t);
/* Results, NULL where there is none to write, as out0, out1, ... Narrow signed integers lose their
 * sign's copies. */
Err *run_write_results(const char *path, Tensor *const *results, int n);

/* ---- run_checks.c: files that check themselves ----------------------------------------------- */

/* Several modules, or functions without arguments with check.* operations. */
bool run_is_self_checking(Module *const *modules, int n);
/* Runs every public function without arguments. Failures are reported one by one. */
Err *run_checks(const RunArgs *a, Module **modules, int n);

#endif
