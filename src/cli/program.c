/* The program that a verb is given. */
#include "cli/cli.h"

#include "stablehlo/stablehlo.h"

#include <stdlib.h>
#include <unistd.h>

/* What is asked of a run folder, which is no program. */
static Err *is_run(const char *path) {
  char *checkpoint = xasprintf("%s/checkpoint.safetensors", path);
  bool run = !access(checkpoint, F_OK);
  free(checkpoint);
  if (!run) return NULL;
  return err_hint(
      err_new(ERR_INVALID, "'%s' is a run of weft train, not a program", path),
      "weft export %s --to DIR writes its network as one, forward.mlirbc; the step: weft "
      "train MODEL --dump-step FILE",
      path);
}

Err *cli_program(const char *path, Module **out) {
  TRY(is_run(path));
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
