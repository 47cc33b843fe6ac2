/* Private to prof. */
#ifndef WEFT_PROF_PROF_PRIV_H
#define WEFT_PROF_PROF_PRIV_H

#include "prof/prof.h"

/* Past this many spans only the first device is written kernel by kernel. */
#define PROF_MANY_SPANS 1000000

typedef VEC(ProfTotal) TotalVec;

const ProfSpan *prof_spans(const Prof *p, const ProfRun *r, int *n); /* of a run, by start */
/* When buffers come and go during one run, by time; malloc'd. */
typedef struct ProfChange {
  const ProfLife *life;
  double at_s, bytes; /* negative: it goes */
} ProfChange;
ProfChange *prof_changes(const ProfProgram *q, bool on_chip, int *n);
/* XLA's HloProto of a program, kernel by kernel; nothing when it has none. */
void prof_hlo_proto(const ProfProgram *q, Buf *out);

#endif
