/* Attributes and types that a dialect has no encoding of its own for stand in bytecode as their
 * text, with a NUL behind it. The text reader reads them into the same module. */
#include <stdlib.h>

#include "stablehlo/bytecode_priv.h"
#include "stablehlo/text_priv.h"

/* Exactly one of attr and type is asked for. */
static Err *read_text(Reader *r, Str data, int64_t room, Attr **attr, Type **type, int *weight) {
  while (data.n && data.p[data.n - 1] == 0) data.n--;
  char *copy = xstrndup(data.p, data.n); /* the lexer looks one character ahead */
  const char *file = r->file && *r->file ? r->file : "bytecode";
  Text t = {.file = file,
            .base = copy,
            .end = copy + strlen(copy),
            .p = copy,
            .m = r->m,
            .room_left = room};
  t.depth = r->depth;
  t.aliases = map_new();
  t.values = map_new();
  t.funcs = map_new();
  *vec_push(&t.lines) = 0;
  text_next(&t);
  Err *e = attr ? text_attr(&t, attr) : text_type(&t, type);
  if (!e && !text_is(&t, T_EOF)) e = text_expected(&t, "the end");
  if (!e && t.nodes > BYTECODE_MAX_WEIGHT - *weight)
    e = err_new(ERR_INVALID, "an attribute or type of absurd size");
  if (!e) *weight += (int)t.nodes;
  r->expanded_bytes += room - t.room_left;
  map_free(t.aliases);
  map_free(t.values);
  map_free(t.funcs);
  map_free(t.resources);
  vec_free(&t.lines);
  vec_free(&t.scope);
  free(copy);
  if (!e) return NULL;
  /* the text's own line and column mean nothing to the user */
  Err *err = bc_err(r, (const uint8_t *)data.p, "%s, in the text \"%.*s%s\"", e->msg,
                    (int)MIN(data.n, 60), data.p, data.n > 60 ? "..." : "");
  err->code = e->code;
  err_free(e);
  return err;
}

Err *bc_text_attr(Reader *r, Entry *e, int64_t room) {
  return read_text(r, e->data, room, &e->attr, NULL, &e->weight);
}

Err *bc_text_type(Reader *r, TypeEntry *e) {
  return read_text(r, e->data, 0, NULL, &e->type, &e->weight);
}
