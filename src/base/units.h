/* Quantities as people read them: four digits and the unit that suits. */
#ifndef WEFT_UNITS_H
#define WEFT_UNITS_H

#include "base/base.h"

/* Into s, which is returned; NaN is "-". */
#define UNITS_TEXT 32
const char *units_bytes(char s[UNITS_TEXT], double bytes);     /* "98.30 MiB" */
const char *units_time(char s[UNITS_TEXT], double seconds);    /* "64.42 ms" */
const char *units_flop(char s[UNITS_TEXT], double operations); /* "62.31 TFLOP" */
const char *units_energy(char s[UNITS_TEXT], double joules);
const char *units_usd(char s[UNITS_TEXT], double dollars);
const char *units_count(char s[UNITS_TEXT], double n); /* "512", "24.9B" */

void buf_bytes(Buf *b, double bytes);
void buf_time(Buf *b, double seconds);

#endif
