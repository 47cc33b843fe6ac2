/* A program in any form: bytecode begins with the bytes "ML\xEFR", HLO's text with "HloModule", its protos with
 * their fields. What is none of these, but something that people take for a program, is called by its name. */
#include "stablehlo/hlo/hlo.h"
#include "stablehlo/stablehlo.h"
#include "stablehlo/xla_forms.h"

#include <stdlib.h>

static const Str magic = {"ML\xEFR", 4};

/* A text's first kilobyte has no control characters but blanks. */
static bool is_binary(Str bytes) {
  for (size_t i = 0; i < MIN(bytes.n, 1024); i++) {
    unsigned char c = (unsigned char)bytes.p[i];
    if (c < ' ' && !memchr("\t\n\v\f\r", c, 5)) return true;
  }
  return false;
}

/* NULL when the bytes may be text of a program. */
static Err *refuse_others(const char *file, Str bytes) {
  size_t blank = 0;
  while (blank < bytes.n && memchr(" \t\r\n", bytes.p[blank], 4)) blank++;
  Str rest = {bytes.p + blank, bytes.n - blank};
  if (!rest.n) return err_new(ERR_INVALID, "%s is empty", file);
  if (str_starts(rest, "{ lambda"))
    return err_hint(err_new(ERR_INVALID, "%s is a jaxpr", file),
                    "write StableHLO: jax.jit(f).lower(...).as_text()");
  if (!is_binary(bytes)) return NULL;
  Err *e =
      err_new(ERR_INVALID, "%s is neither StableHLO (text, bytecode) nor HLO (text, proto)", file);
  return memmem(bytes.p, bytes.n, magic.p, magic.n)
             ? err_hint(e, "a program lies inside it: of jax.export's Exported write "
                           "exported.mlir_module_serialized, not exported.serialize()")
             : err_hint(e, "JAX writes text by jax.jit(f).lower(...).as_text()");
}

static bool is_bytecode(Str bytes) {
  return bytes.n >= magic.n && !memcmp(bytes.p, magic.p, magic.n);
}

static bool is_hlo(Str bytes) { return hlo_is_text(bytes) || hlo_is_proto(bytes); }

Err *stablehlo_read_hlo(const char *file, Str bytes, Module **out) {
  Module *m = module_new();
  m->file = arena_str(m->arena, str_from(file));
  HloFile hlo;
  Err *e = hlo_is_text(bytes) ? hlo_read_text(m->arena, file, bytes, &hlo)
                              : hlo_read_proto(m->arena, bytes, &hlo);
  if (!e) e = hlo_import(m, &hlo);
  if (e) module_free(m);
  else *out = m;
  return err_place(e, "%s", file);
}

Err *stablehlo_read(const char *file, Str bytes, Module **out) {
  if (is_bytecode(bytes)) {
    TRY(stablehlo_read_bytecode(file, bytes, out));
  } else if (is_hlo(bytes)) {
    TRY(stablehlo_read_hlo(file, bytes, out));
  } else {
    TRY(refuse_others(file, bytes));
    TRY(stablehlo_read_text(file, bytes, out));
  }
  xla_forms_read(*out);
  return NULL;
}

Err *stablehlo_has_main(const Module *m, const char *file) {
  const Func *main = module_main(m);
  return main && main->body
             ? NULL
             : err_new(ERR_INVALID,
                       "%s has no function to run: @main, or another that is not private", file);
}

Err *stablehlo_load(const char *file, Str bytes, Module **out) {
  Module *m;
  TRY(stablehlo_read(file, bytes, &m));
  Err *e = ir_verify(m);
  if (!e) e = stablehlo_has_main(m, file);
  if (e) module_free(m);
  else *out = m;
  return e;
}

Err *stablehlo_open(const char *path, Buf *bytes, Module **out) {
  Buf b = {0};
  TRY(file_read(path, &b));
  Err *e = stablehlo_load(path, (Str){b.p, b.n}, out);
  if (e || !bytes) buf_free(&b);
  else *bytes = b;
  return e;
}

Err *stablehlo_read_all(const char *file, Str bytes, Module ***out, int *n) {
  if (is_bytecode(bytes) || is_hlo(bytes)) {
    Module *m;
    TRY(stablehlo_read(file, bytes, &m));
    *out = xcalloc(1, sizeof **out);
    **out = m;
    *n = 1;
    return NULL;
  }
  TRY(refuse_others(file, bytes));
  TRY(stablehlo_read_text_split(file, bytes, out, n));
  for (int i = 0; i < *n; i++) xla_forms_read((*out)[i]);
  return NULL;
}
