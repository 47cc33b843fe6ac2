/* Private to the text reader and writer.
 *
 * Reader: characters -> tokens (text_lex.c) -> types (text_type.c), attributes (text_attr.c,
 * text_number.c, text_dense.c, text_mesh_groups.c, text_sdy.c), locations (text_loc.c) -> operations (text_op.c; pretty forms:
 * text_form.c by table, text_special.c by hand) -> functions and modules (text_read.c). Attributes
 * as written become canonical in text_canon.c.
 */
#ifndef WEFT_STABLEHLO_TEXT_PRIV_H
#define WEFT_STABLEHLO_TEXT_PRIV_H

#include "stablehlo/stablehlo.h"

/* ---- tokens ---- */

typedef enum Tok { /* a single punctuation character is its own code */
                   T_EOF = 256,
                   T_ID,    /* tensor, stablehlo.add */
                   T_VALUE, /* %x: text without % */
                   T_SYM,   /* @x or @"x": text without @, quotes kept */
                   T_HASH,  /* #x */
                   T_BANG,  /* !x */
                   T_CARET, /* ^x */
                   T_INT,   /* 12 or 0x1F */
                   T_FLOAT,
                   T_STR,   /* text without the quotes, escapes as written */
                   T_ARROW, /* -> */
                   T_META,  /* {-# */
                   T_META_END,
                   T_BAD
} Tok;

typedef struct Alias {
  size_t at;       /* offset of the definition's value */
  const char *end; /* the token after the value, once read */
  int state;       /* 0 not read, 1 being read, 2 read */
  Attr *attr;      /* one of these three */
  Type *type;
  const Loc *loc;
  int depth; /* nesting, nodes: of the value fully expanded */
  int64_t nodes;
} Alias;

typedef struct Bound {
  Value *v; /* first of n consecutive values */
  int n;
} Bound;

typedef struct Text {
  const char *file;
  const char *base, *end; /* the chunk */
  const char *p;          /* just after the current token */
  Tok tok;
  Str s;               /* text of the current token */
  const char *start;   /* where it starts */
  int line0;           /* lines before the chunk in the file */
  VEC(uint32_t) lines; /* offsets of line starts */
  Module *m;
  int depth; /* nesting of regions, attributes, types */
  int deepest;
  int64_t nodes; /* attribute, type and location nodes made, aliases fully expanded */
  int64_t
      room_left; /* bytes that may still be made of fewer: resources used again, groups of a mesh */
  Map *aliases;  /* "#name", "!name" -> Alias */
  Map *resources; /* key -> Str of hex digits; NULL before the first use */
  Map *funcs;     /* name -> Func */
  Map *meshes;    /* name -> Mesh */
  Map *values;    /* %name -> Bound */
  VEC(Str) scope; /* names bound, innermost last */
} Text;

Err *text_err_at(Text *t, const char *at, const char *fmt, ...) PRINTF_LIKE(3, 4);
Err *text_place(Text *t, Err *e, const char *at); /* adds the place if there is none */
/* "expected WHAT, found ..." at the current token */
Err *text_expected(Text *t, const char *what);
void text_line_col(const Text *t, const char *at, int *line, int *col);
const char *text_tok_name(const Text *t, char buf[64]);

void text_next(Text *t);                 /* reads the next token */
void text_seek(Text *t, const char *at); /* reads the token at `at` */
int text_peek_char(
    const Text *t); /* the first character after the current token and blanks; 0 at the end */
static inline bool text_is(const Text *t, int tok) { return (int)t->tok == tok; }
static inline bool text_is_word(const Text *t, const char *w) {
  return t->tok == T_ID && str_is(t->s, w);
}
bool text_take(Text *t, int tok); /* skips the token if it is the one */
bool text_take_word(Text *t, const char *w);
Err *text_want(Text *t, int tok, const char *what);
Err *text_want_word(Text *t, const char *w);
Err *text_int(Text *t, int64_t *out);   /* [-] decimal or hexadecimal */
Err *text_number(Text *t, double *out); /* [-] integer or float */
Err *text_bool(Text *t, bool *out);
Err *text_string(Text *t, Str *out); /* decoded, in the arena */
Err *text_symbol(Text *t, Str *out); /* @name, @"name", @a::@b; in the arena */
Str text_unescape(Text *t, Str raw);
Err *text_enter(Text *t); /* one level deeper */
static inline void text_leave(Text *t) { t->depth--; }
Err *text_nodes(Text *t, int64_t n); /* counts nodes */

typedef VEC(int64_t) Ints;
typedef VEC(NamedAttr) Attrs;
typedef VEC(Value *) Values;
typedef VEC(Type *) Types;
typedef VEC(Region *) Regions;
typedef VEC(Attr *) AttrList;

/* ---- pieces ---- */

Err *text_type(Text *t, Type **out);
Err *text_type_list(Text *t, int close, Types *out);       /* up to and with the closing token */
Err *text_func_type_parts(Text *t, Types *in, Types *out); /* (T, U) -> V or (V, W) */
Err *text_elem(Text *t, DType *dtype, Quant *q, bool *has_quant); /* element type */

Err *text_attr(Text *t, Attr **out);
/* [item, item] as an array; `what`: expected at the beginning */
Err *text_attr_list(Text *t, const char *what, Err *(*item)(Text *t, Attr **out), Attr **out);
Err *text_attr_dict(Text *t, Attrs *out);     /* { ... }, appended */
Err *text_number_attr(Text *t, Attr **out);   /* -1 : i8, 0x7F : f8E4M3 */
Err *text_dense_array(Text *t, Attr **out);   /* after `array` */
Err *text_mesh_groups(Text *t, Attr **out);   /* after #stablehlo.replica_group_mesh_axes */
Err *text_int_list(Text *t, Ints *out);       /* [1, 2] */
Err *text_struct_fields(Text *t, Attrs *out); /* k = v, k = v up to > (not taken) */
Err *text_conv_dims(Text *t, Attrs *out);     /* [b, 0, f]x[..]->[..] */
Err *text_skip_nested(Text *t,
                      Str *out); /* from after an opening < to its >; t is on the token after it */
Err *text_alias(Text *t,
                Alias **out); /* for the current # or ! token: its definition, read; NULL: none */
Err *text_read_alias(Text *t, Alias *a, bool type); /* at its value; t ends on the token after it */
Err *text_dense(Text *t, Attr **out);               /* after `dense` */
Err *text_dense_resource(Text *t, Attr **out);
Err *text_take_bytes(Text *t, const char *at, int64_t bytes); /* from room_left */

Err *text_sharding(Text *t, Attr **out);      /* <@mesh, [..]> */
Err *text_sharding_list(Text *t, Attr **out); /* [<@mesh, ..>, ..] */
Err *text_mesh(Text *t, Attr **out);          /* <["x"=2], ...> */
Err *text_sdy_attr(Text *t, Str name, const char *at, bool *known, Attr **out);
Err *text_axes(Text *t, Attr **out); /* {"x", "y"} as an array of strings */

Err *text_loc(Text *t, const Loc **out); /* loc(...), the current token is `loc` */
Err *text_opt_loc(Text *t, const Loc **out);

/* stablehlo_read_text with another limit for splat constants: for the fuzzer. */
Err *text_read_limited(const char *file, Str text, int64_t room, Module **out);

/* ---- operations ---- */

typedef struct Sig { /* the types after the colon */
  Types in, out;
  bool arrow;
} Sig;

typedef struct OpDraft { /* an operation being read */
  OpKind kind;
  Str name; /* full */
  const char *at;
  Values operands;
  Regions regions;
  Attrs attrs;
  Types results;
  bool typed; /* results are final and operand types checked */
  const Loc *loc;
} OpDraft;

/* How a pretty form gives its types. The reader takes (T, U) -> V wherever it expects types. */
typedef enum TypeStyle {
  TS_FUNC,     /* (T, U) -> V */
  TS_SAME,     /* T when all are equal */
  TS_RESULT,   /* the result's type only: the operands keep theirs */
  TS_FIRST,    /* T for all operands (and results) */
  TS_OPERANDS, /* T, U: no results */
  TS_PAIRS,    /* T, U: of operands and results alike */
  TS_SELECT,   /* predicate, value */
  TS_ARROW,    /* T, U -> V */
  TS_NONE
} TypeStyle;

Err *text_operand(Text *t, Value **out);
Err *text_operands(Text *t, Values *out); /* %a, %b: as long as a comma and a % follow */
Err *text_bind(Text *t, Str name, Value *v, int n, const char *at);
int text_scope_open(const Text *t);
void text_scope_close(Text *t, int mark);
/* A region's argument, named as its location: loc("params['kernel']"). */
Value *text_arg(Text *t, Type *type, const Loc *loc);
Err *text_block_args(Text *t, int close,
                     Values *args); /* %a: T, %b: U, bound; up to and with the closing token */
Region *text_new_region(Text *t, const Values *args);
/* { operations }: t is on the brace. A block label ^bb0(..): gives arguments when `labels`. */
Err *text_region(Text *t, bool labels, const Values *args, Region **out);
Err *text_signature(Text *t, Sig *sig);
void text_sig_free(Sig *sig);
Err *text_apply_signature(Text *t, OpDraft *d, Sig *sig, TypeStyle style);
Err *text_op(Text *t, Region *r);
Err *text_canon(Module *m, OpKind kind, Attrs *attrs);
Err *text_finish_op(Text *t, OpDraft *d, Region *r,
                    Op **out);                  /* canonical attributes, checks, appended to r */
Err *text_generic_regions(Text *t, OpDraft *d); /* ({ .. }, { .. }) */
Err *text_generic_body(Text *t, OpDraft *d);    /* from ( to the types, the name is read */

/* Reads the pretty form after the op's name, types included. */
Err *text_form_read(Text *t, OpDraft *d);
Err *text_special_read(Text *t, OpDraft *d, bool *known);

/* A pretty form: "$" operands, "{a}" attribute by its kind, "?( ... )" present if its attribute is,
 * other characters literally. */
typedef struct Form {
  OpKind kind;
  const char *form;
  TypeStyle types;
} Form;
const Form *text_form_of(OpKind k); /* NULL: none */

#endif
