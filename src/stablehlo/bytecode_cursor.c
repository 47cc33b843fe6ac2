/* The reader's window on the file, and its errors. Every count is checked against the bytes that are
 * left before anything is allocated for it. */
#include <limits.h>

#include "stablehlo/bytecode_priv.h"

/* ---- bytes ---- */

static void cur_fail(Cur *c) {
  if (!c->bad) c->bad = c->p;
  c->p = c->end;
}

uint8_t cur_byte(Cur *c) {
  if (c->p == c->end) {
    cur_fail(c);
    return 0;
  }
  return *c->p++;
}

uint64_t cur_varint(Cur *c) {
  if (c->p == c->end) {
    cur_fail(c);
    return 0;
  }
  unsigned first = *c->p;
  int extra = first ? __builtin_ctz(first) : 8;
  if (cur_left(c) < (size_t)extra + 1) {
    cur_fail(c);
    return 0;
  }
  uint64_t v = 0;
  if (extra == 8) {
    memcpy(&v, c->p + 1, 8);
  } else {
    memcpy(&v, c->p, (size_t)extra + 1);
    v >>= extra + 1;
  }
  c->p += extra + 1;
  return v;
}

int64_t cur_svarint(Cur *c) {
  uint64_t u = cur_varint(c);
  return (int64_t)((u >> 1) ^ (~(u & 1) + 1));
}

uint64_t cur_flag(Cur *c, bool *flag) {
  uint64_t v = cur_varint(c);
  *flag = v & 1;
  return v >> 1;
}

int cur_fit(Cur *c, uint64_t n, int min_bytes) {
  if (n > cur_left(c) / (size_t)min_bytes || n > INT_MAX / 2) {
    cur_fail(c);
    return 0;
  }
  return (int)n;
}

int cur_count(Cur *c, int min_bytes) { return cur_fit(c, cur_varint(c), min_bytes); }

Str cur_bytes(Cur *c, uint64_t n) {
  if (n > cur_left(c)) {
    cur_fail(c);
    return (Str){"", 0};
  }
  if (!n)
    return (Str){c->p ? (const char *)c->p : "",
                 0}; /* a section that is not there has no bytes at all */
  Str s = {(const char *)c->p, (size_t)n};
  c->p += n;
  return s;
}

/* ---- errors ---- */

Err *bc_err(const Reader *r, const uint8_t *at, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  Err *e = err_newv(ERR_INVALID, fmt, ap);
  va_end(ap);
  const uint8_t *base = (const uint8_t *)r->bytes.p;
  const char *file = r->file && *r->file ? r->file : "bytecode";
  if (at && at >= base && at <= base + r->bytes.n)
    return err_place(e, "%s: byte %zu", file, (size_t)(at - base));
  return err_place(e, "%s", file);
}

Err *bc_check(const Reader *r, const Cur *c, const char *what) {
  return c->bad ? bc_err(r, c->bad, "the file ends or contradicts itself inside: %s", what) : NULL;
}

Err *bc_unimplemented(Err *e) {
  e->code = ERR_UNIMPLEMENTED;
  return e;
}

Str bc_string(const Reader *r, Cur *c) {
  uint64_t i = cur_varint(c);
  if (i >= (uint64_t)r->n_strings) {
    cur_fail(c);
    return (Str){"", 0};
  }
  return r->strings[i];
}
