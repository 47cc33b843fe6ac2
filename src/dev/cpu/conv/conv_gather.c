/* Elements of windows: see the header. A window's rows are copied for all places beside each other at a
 * time, as these lie a step apart. */
#include "dev/cpu/conv/conv_gather.h"
#include "dev/cpu/kernel/kernel.h"

#define DIMS CONV_DIMS
#define CLEARED 256 /* places of a task */

typedef struct Spot { /* a place, counted over all images */
  int64_t image, of[DIMS];
  int64_t at[DIMS]; /* where its window begins in the source */
} Spot;

static Spot spot_at(const ConvWindows *w, int64_t place) {
  Spot p;
  for (int i = DIMS - 1; i >= 0; i--) {
    p.of[i] = place % w->places[i];
    p.at[i] = p.of[i] * w->stride[i] - w->low[i];
    place /= w->places[i];
  }
  p.image = place;
  return p;
}

static void next_spot(const ConvWindows *w, Spot *p) {
  for (int i = DIMS - 1; i >= 0; i--) {
    p->at[i] += w->stride[i];
    if (++p->of[i] < w->places[i]) return;
    p->of[i] = 0;
    p->at[i] = -w->low[i];
  }
  p->image++;
}

typedef struct Element { /* of a window */
  int64_t tap[DIMS], channel;
} Element;

static Element element_at(const ConvWindows *w, int64_t i) {
  Element e = {.channel = i % w->channels};
  i /= w->channels;
  for (int d = DIMS - 1; d >= 0; d--) {
    e.tap[d] = i % w->taps[d];
    i /= w->taps[d];
  }
  return e;
}

/* A piece of a row of the window, of `run` elements from `first` on, and the taps it has. */
typedef struct Piece {
  Element first;
  int64_t run, taps;
} Piece;

static Piece piece_at(const ConvWindows *w, Element first, int64_t n) {
  bool together = w->apart[2] == 1 && w->steps[2] == w->channels;
  int64_t taps = together ? w->taps[2] - first.tap[2] : 1,
          run = MIN(n, taps * w->channels - first.channel);
  return (Piece){first, run, (first.channel + run - 1) / w->channels + 1};
}

static Element after(const ConvWindows *w, const Piece *p) {
  Element e = p->first;
  e.channel += p->run;
  e.tap[2] += e.channel / w->channels;
  e.channel %= w->channels;
  for (int i = DIMS - 1; i > 0 && e.tap[i] == w->taps[i]; i--) e.tap[i] = 0, e.tap[i - 1]++;
  return e;
}

/* A place at whose window's row the source has only some pixels; row: where x = 0 is. */
static void edge(const ConvWindows *w, const char *row, size_t size, const Piece *p, int64_t at,
                 char *out) {
  int64_t channel = p->first.channel, x = at + p->first.tap[2] * w->apart[2];
  for (int64_t n = p->run, run; n > 0; n -= run, channel = 0, x += w->apart[2]) {
    run = MIN(n, w->channels - channel);
    size_t bytes = (size_t)run * size;
    if (x >= 0 && x < w->size[2])
      memcpy(out, row + (x * w->steps[2] + channel) * (int64_t)size, bytes);
    else memset(out, 0, bytes);
    out += bytes;
  }
}

/* Of places beside each other. */
static void piece(const ConvWindows *w, const char *from, size_t size, const Spot *s,
                  int64_t places, const Piece *p, char *out, int64_t pitch) {
  int64_t row = s->image * w->image_step, bytes = p->run * (int64_t)size;
  bool inside = true;
  for (int i = 0; i < DIMS - 1; i++) {
    int64_t y = s->at[i] + p->first.tap[i] * w->apart[i];
    inside &= y >= 0 && y < w->size[i];
    row += y * w->steps[i];
  }
  if (!inside) {
    for (int64_t i = 0; i < places; i++) memset(out + i * pitch, 0, (size_t)bytes);
    return;
  }
  const char *line = from + row * (int64_t)size;
  int64_t first =
              s->at[2] + p->first.tap[2] * w->apart[2], /* the first pixel of the first place, */
      span = (p->taps - 1) * w->apart[2], step = w->stride[2], i = 0;
  /* and how many of the places have all of theirs in the source: */
  int64_t last = w->size[2] - 1 - span - first, whole = 0;
  for (; i < places && first + i * step < 0; i++)
    edge(w, line, size, p, s->at[2] + i * step, out + i * pitch);
  if (step > 0 && last >= i * step) whole = MIN(places, last / step + 1) - i;
  if (whole > 0) {
    cpu_copy_rows(bytes, whole,
                  line + ((first + i * step) * w->steps[2] + p->first.channel) * (int64_t)size,
                  step * w->steps[2] * (int64_t)size, out + i * pitch, pitch);
    i += whole;
  }
  for (; i < places; i++) edge(w, line, size, p, s->at[2] + i * step, out + i * pitch);
}

void conv_gather(const ConvWindows *w, const void *from, size_t size, int64_t place, int64_t places,
                 int64_t element, int64_t n, void *out, int64_t pitch) {
  Spot s = spot_at(w, place);
  char *row = out;
  for (int64_t beside; places > 0; places -= beside, row += beside * pitch) {
    beside = MIN(places, w->places[2] - s.of[2]);
    Element e = element_at(w, element);
    char *to = row;
    for (int64_t left = n; left > 0;) {
      Piece p = piece_at(w, e, left);
      piece(w, from, size, &s, beside, &p, to, pitch);
      to += p.run * (int64_t)size;
      left -= p.run;
      e = after(w, &p);
    }
    s.of[2] += beside - 1;
    s.at[2] += (beside - 1) * w->stride[2];
    next_spot(w, &s);
  }
}

typedef struct Clearing {
  const ConvWindows *w;
  char *to;
  int64_t n, size;
} Clearing;

static void clear(void *arg, int64_t begin, int64_t end) { /* places */
  const Clearing *c = arg;
  for (int64_t i = begin; i < end; i++)
    memset(c->to + conv_result_at(c->w, i) * c->size, 0, (size_t)(c->n * c->size));
}

void conv_clear(const ConvWindows *w, char *to, int64_t n, int64_t size) {
  Clearing c = {w, to, n, size};
  cpu_parallel(w->images * conv_volume(w->places), CLEARED, clear, &c);
}
