/* The program that a verb is given. */
#include "cli/cli.h"

#include "stablehlo/stablehlo.h"

Err *cli_program(const char *path, Module **out) {
  if (!cli_is_script(path)) return stablehlo_open(path, NULL, out);
  Buf bytes = {0};
  TRY(cli_script_step(path, &bytes));
  Err *e = stablehlo_load(path, (Str){bytes.p, bytes.n}, out);
  buf_free(&bytes);
  return e;
}

int cli_attr_count(const Module *m, const char *name) {
  const Attr *a = attrs_get(m->attrs, m->n_attrs, name);
  return a && a->kind == AT_INT && a->i > 0 && a->i < 1 << 20 ? (int)a->i : 1;
}
