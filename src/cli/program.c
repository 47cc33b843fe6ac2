/* The program that a verb is given. */
#include "cli/cli.h"

#include "stablehlo/stablehlo.h"

Err *cli_has_main(const Module *m, const char *path) {
  const Func *main = module_main(m);
  return main && main->body
             ? NULL
             : err_new(ERR_INVALID,
                       "%s has no function to run: @main, or another that is not private", path);
}

Err *cli_program(const char *path, Module **out) {
  Buf bytes = {0};
  Module *m = NULL;
  if (cli_is_script(path)) TRY(cli_script_step(path, &bytes));
  else TRY(file_read(path, &bytes));
  Err *e = stablehlo_read(path, (Str){bytes.p, bytes.n}, &m);
  if (!e) e = ir_verify(m);
  if (!e) e = cli_has_main(m, path);
  buf_free(&bytes);
  if (e) module_free(m);
  else *out = m;
  return e;
}

int cli_attr_count(const Module *m, const char *name) {
  const Attr *a = attrs_get(m->attrs, m->n_attrs, name);
  return a && a->kind == AT_INT && a->i > 0 && a->i < 1 << 20 ? (int)a->i : 1;
}
