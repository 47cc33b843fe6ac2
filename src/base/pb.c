/* Wire format: key = field << 3 | type. */
#include "base/pb.h"

#include <stdlib.h>

void pb_varint(Buf *b, uint64_t v) {
  for (; v >= 128; v >>= 7) buf_byte(b, (int)(v & 127) | 128);
  buf_byte(b, (int)v);
}

static void key(Buf *b, int field, int type) {
  pb_varint(b, (uint64_t)field << 3 | (uint64_t)type);
}

void pb_int(Buf *b, int field, int64_t v) {
  key(b, field, 0);
  pb_varint(b, (uint64_t)v);
}

void pb_f64(Buf *b, int field, double v) {
  key(b, field, 1);
  buf_add(b, &v, 8);
}

void pb_f32(Buf *b, int field, float v) {
  key(b, field, 5);
  buf_add(b, &v, 4);
}

void pb_str(Buf *b, int field, Str s) {
  key(b, field, 2);
  pb_varint(b, s.n);
  buf_add(b, s.p, s.n);
}

void pb_bytes(Buf *b, int field, const Buf *bytes) { pb_str(b, field, (Str){bytes->p, bytes->n}); }

void pb_msg(Buf *b, int field, Buf *take) {
  pb_bytes(b, field, take);
  buf_free(take);
}

void pb_ints(Buf *b, int field, int n, const int64_t *v) {
  if (!n) return;
  Buf packed = {0};
  for (int i = 0; i < n; i++) pb_varint(&packed, (uint64_t)v[i]);
  pb_msg(b, field, &packed);
}

bool pb_read_varint(Str *in, uint64_t *out) {
  *out = 0;
  for (int shift = 0; shift < 70 && in->n; shift += 7) {
    uint8_t c = (uint8_t)*in->p;
    in->p++, in->n--;
    if (shift < 64) *out |= (uint64_t)(c & 127) << shift;
    if (c < 128) return true;
  }
  return false;
}

bool pb_next(Pb *in, PbField *f) {
  Str *s = &in->rest;
  if (!s->n || in->bad) return false;
  uint64_t k;
  in->bad = true;
  if (!pb_read_varint(s, &k) || k >> 32) return false;
  *f = (PbField){.number = (int)(k >> 3), .type = (int)(k & 7)};
  if (f->type == 0) {
    if (!pb_read_varint(s, &f->value)) return false;
  } else if (f->type == 2) {
    uint64_t n;
    if (!pb_read_varint(s, &n) || n > s->n) return false;
    f->bytes = (Str){s->p, (size_t)n};
    s->p += n, s->n -= (size_t)n;
  } else if (f->type == 1 || f->type == 5) {
    size_t n = f->type == 1 ? 8 : 4;
    if (s->n < n) return false;
    memcpy(&f->value, s->p, n);
    s->p += n, s->n -= n;
  } else {
    return false;
  }
  in->bad = false;
  return true;
}

double pb_double(const PbField *f) {
  double v = 0;
  if (f->type == 1) memcpy(&v, &f->value, 8);
  return v;
}
