/* Private to the text writer. */
#ifndef WEFT_STABLEHLO_TEXT_WRITE_PRIV_H
#define WEFT_STABLEHLO_TEXT_WRITE_PRIV_H

#include "stablehlo/text_priv.h"

typedef struct ValueName {
  Str name; /* without % */
  int sub;  /* >= 0: written %name#sub */
} ValueName;

typedef struct Writer {
  Buf *b;
  TextOpts opts;
  int indent;
  ValueName *names; /* by value id */
  int n_names;
  Map *locs; /* Loc pointer -> number + 1 */
  VEC(const Loc *) loc_list;
  Arena *arena; /* names */
} Writer;

/* ---- numbers: text_write_number.c ---- */
void tw_dense(Writer *w, const Attr *a);
void tw_float(Buf *b, DType d, const void *p); /* one element, as MLIR prints it */
void tw_float_value(Buf *b, DType d, double v);

/* ---- Shardy: text_write_sdy.c ---- */
void tw_sharding(Buf *b, const Sharding *s);
void tw_sharding_list(Buf *b, const Attr *a);
void tw_mesh(Buf *b, const Mesh *m);
void tw_axes(Buf *b, const Attr *a);

/* ---- attributes: text_write_attr.c ---- */
void tw_attr(Writer *w, const Attr *a);
void tw_quoted(Buf *b, Str s);
void tw_symbol(Buf *b, Str s); /* with @ */
void tw_key(Buf *b, Str s);
void tw_dict(Writer *w, const NamedAttr *v, int n);     /* {a = 1, b} */
void tw_int_list(Buf *b, const Attr *a, bool booleans); /* [1, 2] */
void tw_conv_dims(Buf *b, const Op *op);
/* The op's attributes as MLIR groups them (dimension numbers ...), sorted by name, without those in
 * skip (NUL-separated names as a blank-separated list). own: the op's own; else the discardable
 * ones. Entries point to text. */
typedef struct TextAttr {
  Str name;
  char *text; /* malloc'd, n bytes; NULL: unit */
  size_t n;
} TextAttr;
typedef VEC(TextAttr) TextAttrs;
void tw_op_attrs(Writer *w, const Op *op, bool own, bool discardable, const char *skip,
                 TextAttrs *out);
void tw_text_attrs(Buf *b, const TextAttrs *v); /* {..} */
void text_attrs_free(TextAttrs *v);

/* ---- operations: text_write.c, text_write_form.c ---- */
void tw_value(Writer *w, const Value *v);
void tw_operands(Writer *w, const Op *op, int from, int to);
void tw_func_type(Writer *w, const Op *op);
void tw_region(Writer *w, const Region *r, bool labels); /* { ... } */
void tw_op(Writer *w, const Op *op);
void tw_loc(Writer *w, const Loc *l);
void tw_newline(Writer *w);
bool tw_pretty(Writer *w,
               const Op *op); /* after "%r = "; false: nothing written, write the generic form */
Str tw_op_name(const Op *op); /* in full; returns by where they are */

#endif
