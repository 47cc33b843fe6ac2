/* Compiled kernels: their code in memory, and as bytes for the caches on disk.
 *
 *   number of kernels, of objects; Saved of each kernel; sizes of the objects; objects, each from a
 *   multiple of 16 on
 */
#include <stdio.h>
#include <stdlib.h>

#include "dev/cpu/loops/emit_priv.h"
#include "dev/cpu/loops/load.h"

typedef struct Saved {
  FusedCode code;  /* without pointers */
  char has_finish; /* 0 or 1; a damaged one anything */
  char name[31];
} Saved;

struct Kernels {
  int n;
  Saved *saved;
  Image *image;
};

void kernels_write(const FusedCode *codes, int n, const Str *objects, int n_objects, Buf *out) {
  int64_t counts[2] = {n, n_objects};
  buf_add(out, counts, sizeof counts);
  for (int i = 0; i < n; i++) {
    Saved s;
    memset(&s, 0, sizeof s); /* the gaps as well: equal kernels are equal bytes */
    s.code = codes[i];
    s.has_finish = codes[i].finish_outer > 0;
    snprintf(s.name, sizeof s.name, "%s", s.code.name);
    s.code.run = s.code.finish = NULL;
    s.code.name = NULL;
    buf_add(out, &s, sizeof s);
  }
  for (int i = 0; i < n_objects; i++) buf_add(out, &objects[i].n, sizeof objects[i].n);
  for (int i = 0; i < n_objects; i++) {
    while (out->n % 16) buf_byte(out, 0);
    buf_str(out, objects[i]);
  }
}

static void *helper(const char *name) {
  for (const Helper *h = math_helpers; h->name; h++)
    if (!strcmp(h->name, name)) return h->fn;
  for (const Helper *h = lanes_helpers; h->name; h++)
    if (!strcmp(h->name, name)) return h->fn;
  return libmvec_symbol(name);
}

static Err *set_addresses(Kernels *k) {
  for (int i = 0; i < k->n; i++) {
    Saved *s = &k->saved[i];
    char name[24];
    snprintf(name, sizeof name, "k%d", i);
    s->code.run = (FusedFn)image_symbol(k->image, name);
    snprintf(name, sizeof name, "k%d_finish", i);
    s->code.finish = s->has_finish ? (FusedFn)image_symbol(k->image, name) : NULL;
    if (!s->code.run || (s->has_finish && !s->code.finish))
      return err_new(ERR_INTERNAL, "kernel %d was not compiled", i);
    s->name[sizeof s->name - 1] = 0;
    s->code.name = s->name;
    s->code.kernel = i;
  }
  return NULL;
}

/* Objects are read where they are: bytes.p is aligned to 16. */
static Err *load(Kernels *k, Str bytes) {
  Err *damaged = err_new(ERR_DATA_LOSS, "kernels are cut short"), *e = damaged;
  int64_t counts[2];
  if (bytes.n < sizeof counts) return damaged;
  memcpy(counts, bytes.p, sizeof counts);
  const int64_t most = (int64_t)(bytes.n / sizeof(size_t));
  if (counts[0] < 0 || counts[0] > most || counts[1] < 0 || counts[1] > most) return damaged;
  size_t nk = (size_t)counts[0], n = (size_t)counts[1], at = sizeof counts;
  if (bytes.n - at < nk * sizeof(Saved) + n * sizeof(size_t)) return damaged;
  const char *sizes = bytes.p + at + nk * sizeof(Saved);
  k->n = (int)nk;
  k->saved = xcalloc(nk + 1, sizeof *k->saved);
  memcpy(k->saved, bytes.p + at, nk * sizeof(Saved));
  at += nk * sizeof(Saved) + n * sizeof(size_t);
  Str *objects = xcalloc(n + 1, sizeof *objects);
  bool ok = true;
  for (size_t i = 0; i < n && ok; i++) {
    memcpy(&objects[i].n, sizes + i * sizeof(size_t), sizeof(size_t));
    at = (at + 15) & ~(size_t)15;
    ok = at <= bytes.n && objects[i].n <= bytes.n - at;
    objects[i].p = bytes.p + at;
    at += objects[i].n;
  }
  if (ok) {
    err_free(damaged);
    e = image_load(objects, (int)n, helper, &k->image);
  }
  free(objects);
  if (!e) e = set_addresses(k);
  return e;
}

Err *kernels_load(Str bytes, Kernels **out) {
  Kernels *k = xcalloc(1, sizeof *k);
  char *aligned = NULL;
  if ((uintptr_t)bytes.p % 16 && bytes.n)
    bytes.p = aligned = memcpy(xmalloc(bytes.n), bytes.p, bytes.n);
  Err *e = load(k, bytes);
  free(aligned);
  if (e) kernels_free(k);
  else *out = k;
  return e;
}

int kernels_count(const Kernels *k) { return k ? k->n : 0; }

const FusedCode *kernels_at(const Kernels *k, int i) { return &k->saved[i].code; }

void kernels_free(Kernels *k) {
  if (!k) return;
  image_free(k->image);
  free(k->saved);
  free(k);
}
