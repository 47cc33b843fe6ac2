/* stablehlo: programs as files. Readers make a Module in the canonical form of ir.h; writers go
 * back.
 *
 * Hostile input gives ERR_INVALID naming the place ("prog.mlir:12:5" or "byte 1234"), never a
 * crash, hang, or memory out of proportion to the input (at most a few hundred bytes for each input
 * byte, plus what a file says once and uses often, resources and the groups of a mesh, together at
 * most STABLEHLO_MAX_EXPANDED_BYTES; a constant of one value costs one value). Fuzzed: text_fuzz.c,
 * bytecode_fuzz.c,
 * hlo/hlo_fuzz.c.
 */
#ifndef WEFT_STABLEHLO_STABLEHLO_H
#define WEFT_STABLEHLO_STABLEHLO_H

#include "ir/ir.h"

#define STABLEHLO_MAX_EXPANDED_BYTES ((int64_t)2 << 30)

/* Reads one program: text or bytecode of StableHLO, or an HLO module of XLA's as proto or text (hlo/hlo.h); told
 * apart by how they begin. `file` is for messages and kept in the module. Does not verify: call ir_verify. */
Err *stablehlo_read(const char *file, Str bytes, Module **out);
/* The same of a file that may hold several as text: see stablehlo_read_text_split. */
Err *stablehlo_read_all(const char *file, Str bytes, Module ***out, int *n);

/* A program to run: read, verified, with a main function. */
Err *stablehlo_load(const char *file, Str bytes, Module **out);
/* That of a file. bytes: gets the file's own, which the caller frees; NULL: they are not wanted. */
Err *stablehlo_open(const char *path, Buf *bytes, Module **out);
/* ERR_INVALID naming the file where there is no function to run. */
Err *stablehlo_has_main(const Module *m, const char *file);

Err *stablehlo_read_text(const char *file, Str text, Module **out);
/* Test files hold several modules, divided by lines "// -----". *out is a malloc'd array of *n
 * modules. */
Err *stablehlo_read_text_split(const char *file, Str text, Module ***out, int *n);
Err *stablehlo_read_bytecode(const char *file, Str bytes, Module **out);
/* HloModuleProto, HloProto, HloSnapshot, or text that begins with "HloModule". */
Err *stablehlo_read_hlo(const char *file, Str bytes, Module **out);

/* One attribute as text by itself, "{uplo = 76 : ui8}", into a module that is there. */
Err *stablehlo_read_attr(Module *m, Str text, Attr **out);

typedef struct TextOpts {
  bool generic;       /* "stablehlo.add"(%0, %1) : ... */
  bool locations;     /* loc(...) */
  int elide_elements; /* constants longer than this are written dense<...> of "0x...elided": 0 =
                         never (readable back) */
} TextOpts;
/* Pretty form as JAX prints it; what is written reads back to the same module. opts may be NULL. */
void stablehlo_write_text(Buf *out, const Module *m, const TextOpts *opts);

/* MLIR bytecode version 6, VHLO; `version` such as "1.13.7" goes into the producer and chooses op
 * versions; NULL: the oldest op versions that suffice. errors ERR_UNIMPLEMENTED names an op that
 * VHLO has no row for. */
Err *stablehlo_write_bytecode(Buf *out, const Module *m, const char *version);

/* Structural comparison for tests and `weft diff`: NULL when equal up to value names and locations,
 * else an Err naming the first difference. */
Err *stablehlo_compare(const Module *a, const Module *b);

#endif
