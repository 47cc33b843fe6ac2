/* base/pb: protobuf's wire format, written and read field by field. Messages are a Buf (writing)
 * or a Str (reading); nobody generates code. Unknown fields are skipped by the reader's loop.
 *
 *   PbField f;                                   Buf inner = {0}, outer = {0};
 *   for (Pb in = pb_read(bytes); pb_next(&in, &f);)   pb_str(&inner, 1, STR("name"));
 *     if (f.number == 2) ...                     pb_msg(&outer, 3, &inner);  (adds and frees)
 *   if (in.bad) ...damaged...
 */
#ifndef WEFT_BASE_PB_H
#define WEFT_BASE_PB_H

#include "base/base.h"

void pb_varint(Buf *b, uint64_t v);
void pb_int(Buf *b, int field, int64_t v); /* int32, int64, uint64, bool, enum */
void pb_f64(Buf *b, int field, double v);
void pb_f32(Buf *b, int field, float v);
void pb_str(Buf *b, int field, Str s); /* string, bytes */
void pb_bytes(Buf *b, int field, const Buf *bytes);
void pb_msg(Buf *b, int field, Buf *take);                /* pb_bytes, then frees */
void pb_ints(Buf *b, int field, int n, const int64_t *v); /* packed; nothing when n is 0 */

typedef struct PbField {
  int number, type; /* type 0 varint, 1 eight bytes, 2 bytes, 5 four bytes */
  uint64_t value;   /* types 0, 1, 5 */
  Str bytes;        /* type 2: borrowed */
} PbField;
typedef struct Pb {
  Str rest;
  bool bad; /* the message is damaged; pb_next said false */
} Pb;

static inline Pb pb_read(Str bytes) { return (Pb){bytes, false}; }
bool pb_next(Pb *in, PbField *out);          /* false at the end or on damage */
bool pb_read_varint(Str *in, uint64_t *out); /* of packed fields */
double pb_double(const PbField *f);          /* of a type 1 field; 0 else */

#endif
