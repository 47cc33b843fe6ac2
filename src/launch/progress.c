/* How far a run is, from what its command prints: "step 24/1404" (weft), "completed step: 24, ..." (MaxText),
 * "step: 24  loss: ..." (torchtitan), "iteration 24/ 1404 | ..." (Megatron), "Step 24" (many). */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "launch/launch_priv.h"

double wall_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

const char *usd_text(char s[UNITS_TEXT], double usd) {
  if (isnan(usd)) return snprintf(s, UNITS_TEXT, "-"), s;
  snprintf(s, UNITS_TEXT, usd < 1 ? "$%.4f" : usd < 1e4 ? "$%.2f" : "$%.0f", usd);
  return s;
}

const char *time_text(char s[UNITS_TEXT], double t) {
  if (isnan(t)) return snprintf(s, UNITS_TEXT, "-"), s;
  if (t < 1) return units_time(s, t);
  int64_t v = (int64_t)(t + 0.5);
  if (v < 100) snprintf(s, UNITS_TEXT, "%.3g s", t);
  else if (v < 5400)
    snprintf(s, UNITS_TEXT, "%lld:%02lld min", (long long)(v / 60), (long long)(v % 60));
  else if (v < 2 * 86400)
    snprintf(s, UNITS_TEXT, "%lld:%02lld h", (long long)(v / 3600), (long long)(v / 60 % 60));
  else snprintf(s, UNITS_TEXT, "%.1f days", t / 86400);
  return s;
}

void progress_new(Progress *p) { *p = (Progress){NAN, NAN, NAN, NAN, NAN, NAN}; }

/* The number that comes next after blanks and punctuation: "step: 24", "step=24", "iteration   24/". */
static bool number_after(const char *p, const char **end, double *out) {
  p += strspn(p, " \t:=#[(");
  if (!isdigit((unsigned char)*p)) return false;
  char *e;
  *out = strtod(p, &e);
  *end = e;
  return *out == floor(*out);
}

static bool step_in(const char *text, double *step, double *steps) {
  static const char *const words[] = {"step", "iteration", "iter"};
  for (const char *p = text; *p; p++) {
    if (p != text && isalpha((unsigned char)p[-1])) continue;
    for (int w = 0; w < COUNT_OF(words); w++) {
      size_t n = strlen(words[w]);
      const char *end;
      if (strncasecmp(p, words[w], n) || !number_after(p + n, &end, step)) continue;
      end += strspn(end, " ");
      *steps = NAN;
      if (*end == '/') number_after(end + 1, &end, steps);
      else if (!strncmp(end, "of ", 3)) number_after(end + 3, &end, steps);
      return true;
    }
  }
  return false;
}

void progress_line(Progress *p, double now, const char *text) {
  double step, steps;
  if (!step_in(text, &step, &steps)) return;
  if (!isnan(steps)) p->steps = steps;
  if (isnan(p->first)) p->first = step, p->first_at = now; /* the first has compiling in it */
  p->step = step, p->at = now;
  if (step > p->first && now > p->first_at) p->step_s = (now - p->first_at) / (step - p->first);
}

void progress_words(const RunRow *r, Buf *o) {
  char s[UNITS_TEXT], t[UNITS_TEXT];
  if (isnan(r->step)) {
    buf_cstr(o, "no step yet");
  } else {
    buf_printf(o, "step %.0f", r->step);
    if (r->steps > 0) buf_printf(o, " of %.0f", r->steps);
    if (r->step_s > 0) buf_printf(o, ", %s a step", time_text(s, r->step_s));
    if (r->plan_step_s > 0) buf_printf(o, " (plan %s)", time_text(s, r->plan_step_s));
  }
  buf_printf(o, ", %s", time_text(s, r->seconds));
  if (r->plan_seconds > 0) buf_printf(o, " of %s", time_text(t, r->plan_seconds));
  else if (r->step_s > 0 && r->steps > r->step)
    buf_printf(o, ", %s left", time_text(t, (r->steps - r->step) * r->step_s));
  if (r->usd_hour > 0) {
    buf_printf(o, ", %s", usd_text(s, r->usd));
    if (r->plan_usd > 0) buf_printf(o, " of %s", usd_text(t, r->plan_usd));
  }
}
