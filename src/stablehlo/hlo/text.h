/* Private to the reader of HLO text: characters -> an Hlo__Module, as the proto would be. */
#ifndef WEFT_STABLEHLO_HLO_TEXT_H
#define WEFT_STABLEHLO_HLO_TEXT_H

#include "stablehlo/hlo/hlo.h"

typedef struct HloText {
  Arena *a;
  const char *file, *begin, *p, *end;
  HloFile *out;
  Map *computations; /* name -> Hlo__Computation */
  Map *instructions; /* of the computation being read: name -> Hlo__Instruction */
  int64_t next_id;
  int depth;
} HloText;

/* ---- text_lex.c ---- */

Err *hlo_text_err(HloText *t, const char *fmt, ...) PRINTF_LIKE(2, 3); /* with the line */
void hlo_skip(HloText *t);                                             /* blanks and comments */
bool hlo_at(HloText *t, const char *word);   /* the next characters, after blanks */
bool hlo_take(HloText *t, const char *word); /* skips them if they are the next */
Err *hlo_want(HloText *t, const char *word);
Err *hlo_word(HloText *t,
              Str *out); /* a name: letters, digits, _ . - ; a % before it is left out */
Err *hlo_int(HloText *t, int64_t *out);
Err *hlo_string(HloText *t, Str *out); /* "...", unescaped */
/* What stands between { and its }, or ( and its ), without them. */
Err *hlo_nested(HloText *t, char open, Str *out);
/* [1, 2] or {1, 2}: integers between the two characters. */
Err *hlo_int_list(HloText *t, const char *open, const char *close, size_t *n, int64_t **out);
char *hlo_cstr(HloText *t, Str s);

/* ---- text_literal.c ---- */

Err *hlo_text_shape(HloText *t, ProtobufCBinaryData *out); /* f32[2,3]{1,0}, (f32[], s32[2]) */
Err *hlo_text_literal(HloText *t, ProtobufCBinaryData shape, Hlo__Literal **out);

/* ---- text_devices.c ---- */

Err *hlo_text_replica_groups(HloText *t, Hlo__Instruction *i);
Err *hlo_text_source_target_pairs(HloText *t, Hlo__Instruction *i);
Err *hlo_text_sharding(HloText *t, Hlo__Sharding **out);
Err *hlo_text_alias(HloText *t, Hlo__InputOutputAlias **out);
Err *hlo_text_donor(HloText *t, Hlo__BufferDonor **out);

/* ---- text_attr.c ---- */

Err *hlo_text_attr(HloText *t, Hlo__Instruction *i, Str name); /* after the = */
Err *hlo_text_frontend(HloText *t, Hlo__FrontendAttributes **out);
/* The computation of this name, with a number; empty until it has been read. */
Hlo__Computation *hlo_computation_named(HloText *t, Str name);

/* A new message of a kind, with its defaults. */
void *hlo_message(Arena *a, const ProtobufCMessageDescriptor *d);
#define HLO_NEW(t, lower) ((void *)hlo_message((t)->a, &hlo__##lower##__descriptor))

#endif
