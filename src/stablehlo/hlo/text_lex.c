/* Characters of HLO text. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "stablehlo/hlo/text.h"

Err *hlo_text_err(HloText *t, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  Err *e = err_newv(ERR_INVALID, fmt, ap);
  va_end(ap);
  int line = 1;
  const char *start = t->begin;
  for (const char *p = t->begin; p < t->p && p < t->end; p++)
    if (*p == '\n') line++, start = p + 1;
  return err_place(e, "%s:%d:%d", t->file, line, (int)(t->p - start) + 1);
}

void hlo_skip(HloText *t) {
  while (t->p < t->end) {
    if (isspace((unsigned char)*t->p)) {
      t->p++;
    } else if (t->end - t->p > 1 && t->p[0] == '/' && t->p[1] == '/') {
      const char *nl = memchr(t->p, '\n', (size_t)(t->end - t->p));
      t->p = nl ? nl : t->end;
    } else if (t->end - t->p > 1 && t->p[0] == '/' && t->p[1] == '*') {
      const char *close = memmem(t->p, (size_t)(t->end - t->p), "*/", 2);
      t->p = close ? close + 2 : t->end;
    } else {
      return;
    }
  }
}

bool hlo_at(HloText *t, const char *word) {
  hlo_skip(t);
  size_t n = strlen(word);
  return (size_t)(t->end - t->p) >= n && !memcmp(t->p, word, n);
}

bool hlo_take(HloText *t, const char *word) {
  if (!hlo_at(t, word)) return false;
  t->p += strlen(word);
  return true;
}

Err *hlo_want(HloText *t, const char *word) {
  if (hlo_take(t, word)) return NULL;
  const char *nl = memchr(t->p, '\n', (size_t)(t->end - t->p));
  int n = (int)MIN((nl ? nl : t->end) - t->p, 30);
  return hlo_text_err(t, "'%s' expected, found '%.*s'", word, n, t->p);
}

static bool in_name(char c) { return isalnum((unsigned char)c) || (c && strchr("_.-", c)); }

Err *hlo_word(HloText *t, Str *out) {
  hlo_take(t, "%");
  hlo_skip(t);
  const char *from = t->p;
  while (t->p < t->end && in_name(*t->p)) {
    if (t->p[0] == '-' && t->end - t->p > 1 && t->p[1] == '>') break;
    t->p++;
  }
  *out = (Str){from, (size_t)(t->p - from)};
  return out->n ? NULL : hlo_text_err(t, "a name is expected");
}

Err *hlo_int(HloText *t, int64_t *out) {
  hlo_skip(t);
  char digits[32];
  size_t n = MIN((size_t)(t->end - t->p), sizeof digits - 1);
  memcpy(digits, t->p, n);
  digits[n] = 0;
  char *end;
  errno = 0;
  *out = strtoll(digits, &end, 10);
  if (end == digits || errno) return hlo_text_err(t, "a whole number is expected");
  t->p += end - digits;
  return NULL;
}

static char unescaped(char c) {
  static const char from[] = "ntr", to[] = "\n\t\r";
  const char *k = c ? strchr(from, c) : NULL;
  return k ? to[k - from] : c;
}

Err *hlo_string(HloText *t, Str *out) {
  TRY(hlo_want(t, "\""));
  const char *from = t->p;
  size_t n = 0;
  while (t->p < t->end && *t->p != '"') t->p += *t->p == '\\' && t->end - t->p > 1 ? 2 : 1, n++;
  if (t->p >= t->end) return hlo_text_err(t, "a string that does not end");
  char *s = arena_alloc(t->a, n + 1);
  for (size_t i = 0; from < t->p; i++) {
    bool escape = *from == '\\' && t->p - from > 1;
    s[i] = escape ? unescaped(from[1]) : *from;
    from += escape ? 2 : 1;
  }
  *out = (Str){s, n};
  return hlo_want(t, "\"");
}

Err *hlo_nested(HloText *t, char open, Str *out) {
  const char begin[2] = {open, 0};
  char close = open == '(' ? ')' : open == '[' ? ']' : '}';
  TRY(hlo_want(t, begin));
  const char *from = t->p;
  bool quoted = false;
  for (int depth = 1; t->p < t->end; t->p++) {
    if (*t->p == '\\' && quoted) {
      if (t->end - t->p > 1) t->p++;
      continue;
    }
    if (*t->p == '"') quoted = !quoted;
    if (quoted) continue;
    depth += (*t->p == open) - (*t->p == close);
    if (!depth) {
      *out = (Str){from, (size_t)(t->p - from)};
      t->p++;
      return NULL;
    }
  }
  return hlo_text_err(t, "'%c' is not closed", open);
}

Err *hlo_int_list(HloText *t, const char *open, const char *close, size_t *n, int64_t **out) {
  VEC(int64_t) v = {0};
  TRY(hlo_want(t, open));
  Err *e = NULL;
  while (!e && !hlo_at(t, close)) {
    if (v.n) e = hlo_want(t, ",");
    if (!e) e = hlo_int(t, vec_push(&v));
  }
  if (!e) e = hlo_want(t, close);
  *n = (size_t)v.n;
  *out = arena_dup(t->a, v.v, sizeof *v.v * (size_t)v.n);
  vec_free(&v);
  return e;
}

char *hlo_cstr(HloText *t, Str s) { return (char *)arena_str(t->a, s).p; }

void *hlo_message(Arena *a, const ProtobufCMessageDescriptor *d) {
  ProtobufCMessage *m = arena_alloc(a, d->sizeof_message);
  d->message_init(m);
  return m;
}
