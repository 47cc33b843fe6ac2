/* Numbers are LEB128 with the sign in the lowest bit. */
#include "base/wire.h"

static void put(Buf *b, uint64_t u) {
  for (; u >= 128; u >>= 7) buf_byte(b, (int)(u & 127) | 128);
  buf_byte(b, (int)u);
}

static uint64_t get(Wire *w) {
  uint64_t u = 0;
  for (int shift = 0; shift < 64 && !w->bad; shift += 7) {
    if (!w->in.n) break;
    uint8_t c = (uint8_t)*w->in.p;
    w->in.p++, w->in.n--;
    u |= (uint64_t)(c & 127) << shift;
    if (c < 128) return u;
  }
  w->bad = true;
  return 0;
}

void wire_int(Wire *w, int64_t *v) {
  if (w->out) {
    put(w->out, (uint64_t)*v << 1 ^ (uint64_t)(*v >> 63));
    return;
  }
  uint64_t u = get(w);
  *v = (int64_t)(u >> 1 ^ (0 - (u & 1)));
}

void wire_range(Wire *w, int64_t *v, int64_t least, int64_t most) {
  wire_int(w, v);
  if (*v >= least && *v <= most && !w->bad) return;
  w->bad = true;
  if (wire_reads(w)) *v = least;
}

void wire_small(Wire *w, int *v, int least, int most) {
  int64_t i = *v;
  wire_range(w, &i, least, most);
  if (wire_reads(w)) *v = (int)i;
}

void wire_bool(Wire *w, bool *v) {
  int i = *v;
  wire_small(w, &i, 0, 1);
  if (wire_reads(w)) *v = i;
}

void wire_f64(Wire *w, double *v) { wire_bytes(w, v, sizeof *v); }

Str wire_view(Wire *w, size_t n) {
  w->bad |= n > w->in.n;
  if (w->bad) return (Str){0};
  Str s = {w->in.p, n};
  w->in.p += n, w->in.n -= n;
  return s;
}

void wire_bytes(Wire *w, void *p, size_t n) {
  if (w->out) {
    buf_add(w->out, p, n);
    return;
  }
  Str s = wire_view(w, n);
  if (w->bad) memset(p, 0, n);
  else if (n) memcpy(p, s.p, n);
}

void wire_count(Wire *w, int *n, size_t bytes) {
  int64_t most = w->out ? INT32_MAX : (int64_t)MIN(w->in.n / bytes, (size_t)INT32_MAX);
  wire_small(w, n, 0, (int)most);
}

void wire_str(Wire *w, Arena *a, Str *s) {
  int n = (int)s->n;
  wire_count(w, &n, 1);
  if (w->out) buf_str(w->out, *s);
  else *s = n ? arena_str(a, wire_view(w, (size_t)n)) : (Str){0};
}
