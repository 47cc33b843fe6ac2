#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *with(char *s, double v, const char *unit) {
  double a = fabs(v);
  if (isnan(v)) return strcpy(s, "-");
  snprintf(s, UNITS_TEXT, "%.*f %s", a < 9.9995 ? 3 : a < 99.995 ? 2 : a < 999.95 ? 1 : 0, v, unit);
  return s;
}

const char *units_bytes(char s[UNITS_TEXT], double v) {
  static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int k = 0;
  while (fabs(v) >= 1024 && k < 4) v /= 1024, k++;
  if (k) return with(s, v, unit[k]);
  snprintf(s, UNITS_TEXT, "%.0f B", v);
  return s;
}

const char *units_time(char s[UNITS_TEXT], double v) {
  double a = fabs(v);
  return a == 0     ? with(s, 0, "s")
         : a < 1e-6 ? with(s, v * 1e9, "ns")
         : a < 1e-3 ? with(s, v * 1e6, "us")
         : a < 1    ? with(s, v * 1e3, "ms")
         : a < 120  ? with(s, v, "s")
         : a < 7200 ? with(s, v / 60, "min")
                    : with(s, v / 3600, "h");
}

const char *units_flop(char s[UNITS_TEXT], double v) {
  static const char *const unit[] = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"};
  int k = 0;
  while (fabs(v) >= 1000 && k < 6) v /= 1000, k++;
  if (k) return with(s, v, unit[k]);
  snprintf(s, UNITS_TEXT, "%.0f FLOP", v);
  return s;
}

const char *units_energy(char s[UNITS_TEXT], double v) {
  double a = fabs(v);
  return a < 1e-3 && a > 0 ? with(s, v * 1e6, "uJ")
         : a < 1           ? with(s, v * 1e3, "mJ")
         : a < 3.6e4       ? with(s, v, "J")
         : a < 3.6e6       ? with(s, v / 3600, "Wh")
         : a < 3.6e10      ? with(s, v / 3.6e6, "kWh")
                           : with(s, v / 3.6e9, "MWh");
}

const char *units_usd(char s[UNITS_TEXT], double v) {
  if (isnan(v)) return strcpy(s, "-");
  double a = fabs(v);
  int digits = a == 0 ? 0 : a >= 10 ? 2 : a >= 0.01 ? 4 : (int)MIN(20, 1 - floor(log10(a)));
  snprintf(s, UNITS_TEXT, "$%.*f", digits, v);
  return s;
}

const char *units_count(char s[UNITS_TEXT], double v) {
  static const char unit[] = "MBT";
  double a = fabs(v);
  int k = -1;
  for (double step = 1e6; k < 2 && a >= step * (1 - 0.0005); step *= 1e3) k++;
  if (isnan(v)) return strcpy(s, "-");
  if (k < 0) return snprintf(s, UNITS_TEXT, "%.*f", a < 10 && a != floor(a) ? 1 : 0, v), s;
  a /= pow(10, 6 + 3 * k);
  snprintf(s, UNITS_TEXT, "%s%.*f%c", v < 0 ? "-" : "",
           a < 9.995   ? 2
           : a < 99.95 ? 1
                       : 0,
           a, unit[k]);
  return s;
}

void buf_bytes(Buf *b, double v) {
  char s[UNITS_TEXT];
  buf_cstr(b, units_bytes(s, v));
}

void buf_time(Buf *b, double v) {
  char s[UNITS_TEXT];
  buf_cstr(b, units_time(s, v));
}
