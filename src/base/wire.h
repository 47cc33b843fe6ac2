/* base/wire: structures as bytes, written and read back by the same functions, so that the two
 * cannot differ:
 *
 *   static void wire_point(Wire *w, Point *p) { wire_int(w, &p->x); wire_int(w, &p->y); }
 *
 * For files of this very build (base/cache.h): there are no versions and no field numbers.
 *
 * Reading    trusts nothing. The first thing that cannot be sets `bad`; from then on all numbers are
 *            the least that is allowed and all counts 0. A count is never more than what is left
 *            can hold, so a damaged file takes no memory. The caller looks at `bad` once, at the
 *            end.
 * Writing    `bad` says that there is something in it that is not kept (set by whoever meets it). What is
 *            written is only read: others may read it at the same time.
 */
#ifndef WEFT_BASE_WIRE_H
#define WEFT_BASE_WIRE_H

#include "base/base.h"

typedef struct Wire {
  Buf *out; /* NULL: reading */
  Str in;   /* what is left to read */
  bool bad;
} Wire;

static inline bool wire_reads(const Wire *w) { return !w->out; }
void wire_int(Wire *w, int64_t *v);
void wire_small(Wire *w, int *v, int least, int most); /* both included */
void wire_range(Wire *w, int64_t *v, int64_t least, int64_t most);
void wire_bool(Wire *w, bool *v);
void wire_f64(Wire *w, double *v);
void wire_bytes(Wire *w, void *p, size_t n); /* reading: zeros when there are not so many */
#define WIRE_ENUM(w, v, T, most)     \
  do {                               \
    int i_ = (int)*(v);              \
    wire_small(w, &i_, 0, most);     \
    if (wire_reads(w)) *(v) = (T)i_; \
  } while (0)
/* How many things follow that take at least `bytes` (>= 1) each. */
void wire_count(Wire *w, int *n, size_t bytes);
/* Reading: a copy in the arena. */
void wire_str(Wire *w, Arena *a, Str *s);
/* The next n bytes where they are. Reading only. */
Str wire_view(Wire *w, size_t n);

#endif
