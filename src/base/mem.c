/* Memory: checked malloc, arenas (chunks that double up to 1 MiB), growing buffers, strings and the
 * hash map (open addressing over an insertion-ordered entry list). */
#include "base/base.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void out_of_memory(size_t n) {
  fprintf(stderr, "weft: out of host memory (%zu bytes asked)\n", n);
  abort();
}

void *xmalloc(size_t n) {
  void *p = malloc(n ? n : 1);
  if (!p) out_of_memory(n);
  return p;
}

void *xcalloc(size_t n, size_t size) {
  /* small ones by malloc: the C library's calloc goes past its fastest lists */
  bool small = n <= 1024 && size <= 1024 && n * size <= 1024;
  void *p = small ? malloc(n && size ? n * size : 1) : calloc(n, size ? size : 1);
  if (small && p) memset(p, 0, n * size);
  if (!p) out_of_memory(n * size);
  return p;
}

void *xrealloc(void *p, size_t n) {
  p = realloc(p, n ? n : 1);
  if (!p) out_of_memory(n);
  return p;
}

char *xstrndup(const char *s, size_t n) {
  char *r = xmalloc(n + 1);
  if (n) memcpy(r, s, n);
  r[n] = 0;
  return r;
}

char *xstrdup(const char *s) { return xstrndup(s, strlen(s)); }

bool mul_overflows(int64_t a, int64_t b, int64_t *out) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) return true;
  *out = r;
  return false;
}

bool add_overflows(int64_t a, int64_t b, int64_t *out) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) return true;
  *out = r;
  return false;
}

/* ---- arena ---- */

typedef struct Chunk {
  struct Chunk *next;
  size_t used, cap;
  _Alignas(16) unsigned char data[];
} Chunk;

struct Arena {
  Chunk *head;
  size_t total;
};

Arena *arena_new(void) { return xcalloc(1, sizeof(Arena)); }

void arena_free(Arena *a) {
  if (!a) return;
  for (Chunk *c = a->head, *next; c; c = next) {
    next = c->next;
    free(c);
  }
  free(a);
}

void *arena_alloc(Arena *a, size_t n) {
  if (n > SIZE_MAX / 2) out_of_memory(n);
  n = (n + 15) & ~(size_t)15;
  if (n == 0) n = 16;
  Chunk *c = a->head;
  if (!c || c->cap - c->used < n) {
    size_t cap = c ? MIN(c->cap * 2, (size_t)1 << 20) : 4096;
    if (cap < n) cap = n;
    Chunk *fresh = xmalloc(sizeof *fresh + cap);
    fresh->used = 0;
    fresh->cap = cap;
    /* a chunk made for one large block goes behind the head, so that the head's rest stays usable
     */
    if (c && c->cap - c->used > cap - n) {
      fresh->next = c->next;
      c->next = fresh;
    } else {
      fresh->next = c;
      a->head = fresh;
    }
    c = fresh;
  }
  void *p = c->data + c->used;
  c->used += n;
  a->total += n;
  memset(p, 0, n);
  return p;
}

void *arena_dup(Arena *a, const void *p, size_t n) {
  void *r = arena_alloc(a, n);
  if (n) memcpy(r, p, n);
  return r;
}

Str arena_str(Arena *a, Str s) {
  char *p = arena_alloc(a, s.n + 1);
  if (s.n) memcpy(p, s.p, s.n);
  return (Str){p, s.n};
}

Str arena_printf(Arena *a, const char *fmt, ...) {
  va_list ap, ap2;
  va_start(ap, fmt);
  va_copy(ap2, ap);
  int n = vsnprintf(NULL, 0, fmt, ap2);
  va_end(ap2);
  char *p = arena_alloc(a, (size_t)(n < 0 ? 0 : n) + 1);
  if (n > 0) vsnprintf(p, (size_t)n + 1, fmt, ap);
  va_end(ap);
  return (Str){p, (size_t)(n < 0 ? 0 : n)};
}

size_t arena_bytes(const Arena *a) { return a->total; }

void *vec_grow_(void *v, int *cap, int need, size_t size) {
  int c = *cap ? *cap * 2 : 8;
  if (c < need) c = need;
  *cap = c;
  return xrealloc(v, (size_t)c * size);
}

/* ---- buf ---- */

static void buf_room(Buf *b, size_t n) {
  if (b->n + n + 1 <= b->cap) return;
  size_t cap = b->cap ? b->cap * 2 : 256;
  while (cap < b->n + n + 1) cap *= 2;
  b->p = xrealloc(b->p, cap);
  b->cap = cap;
}

void buf_add(Buf *b, const void *p, size_t n) {
  buf_room(b, n);
  if (n) memcpy(b->p + b->n, p, n);
  b->n += n;
  b->p[b->n] = 0;
}

void buf_byte(Buf *b, int c) {
  char ch = (char)c;
  buf_add(b, &ch, 1);
}

void buf_str(Buf *b, Str s) { buf_add(b, s.p, s.n); }
void buf_cstr(Buf *b, const char *s) { buf_add(b, s, strlen(s)); }

void buf_printf(Buf *b, const char *fmt, ...) {
  va_list ap, ap2;
  va_start(ap, fmt);
  va_copy(ap2, ap);
  int n = vsnprintf(NULL, 0, fmt, ap2);
  va_end(ap2);
  if (n > 0) {
    buf_room(b, (size_t)n);
    vsnprintf(b->p + b->n, (size_t)n + 1, fmt, ap);
    b->n += (size_t)n;
  }
  va_end(ap);
}

void buf_free(Buf *b) {
  free(b->p);
  *b = (Buf){0};
}

/* ---- strings ---- */

bool str_starts(Str s, const char *prefix) {
  size_t n = strlen(prefix);
  return s.n >= n && !memcmp(s.p, prefix, n);
}

bool str_ends(Str s, const char *suffix) {
  size_t n = strlen(suffix);
  return s.n >= n && !memcmp(s.p + s.n - n, suffix, n);
}

int str_cmp(Str a, Str b) {
  size_t n = MIN(a.n, b.n);
  int c = n ? memcmp(a.p, b.p, n) : 0;
  return c ? c : (a.n < b.n ? -1 : a.n > b.n);
}

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed) {
  const unsigned char *s = p;
  uint64_t h = 14695981039346656037ull ^ (seed * 1099511628211ull);
  for (size_t i = 0; i < n; i++) h = (h ^ s[i]) * 1099511628211ull;
  return h ^ (h >> 32);
}

/* ---- map ---- */

typedef struct MapEntry {
  Str key;
  uint64_t hash;
  void *value;
} MapEntry;

struct Map {
  VEC(MapEntry) entries;
  Arena *keys;
  int *slots; /* index into entries + 1; 0 = free */
  int n_slots;
};

Map *map_new(void) {
  Map *m = xcalloc(1, sizeof *m);
  m->keys = arena_new();
  return m;
}

void map_free(Map *m) {
  if (!m) return;
  arena_free(m->keys);
  vec_free(&m->entries);
  free(m->slots);
  free(m);
}

/* Eight bytes at a time: keys are pointers, or hundreds of bytes that describe an operation. Each
 * step is one to one, so different keys of at most eight bytes and one length have different
 * hashes. */
static uint64_t key_hash(Str key) {
  const uint64_t k = 0x9e3779b97f4a7c15u;
  uint64_t h = key.n * k, w;
  size_t i = 0;
  for (; i + 8 <= key.n; i += 8) {
    memcpy(&w, key.p + i, 8);
    h = (h ^ w) * k;
    h ^= h >> 29;
  }
  w = 0;
  if (i < key.n) memcpy(&w, key.p + i, key.n - i);
  h = (h ^ w) * k;
  return h ^ (h >> 32);
}

static int map_slot(const Map *m, Str key, uint64_t hash) {
  unsigned mask = (unsigned)m->n_slots - 1, i = (unsigned)hash & mask;
  for (; m->slots[i]; i = (i + 1) & mask) {
    const MapEntry *e = &m->entries.v[m->slots[i] - 1];
    if (e->hash == hash && e->key.n == key.n && (key.n <= 8 || !memcmp(e->key.p, key.p, key.n)))
      break;
  }
  return (int)i;
}

static void map_grow(Map *m) {
  m->n_slots = m->n_slots ? m->n_slots * 2 : 16;
  free(m->slots);
  m->slots = xcalloc((size_t)m->n_slots, sizeof *m->slots);
  unsigned mask = (unsigned)m->n_slots - 1;
  for (int e = 0; e < m->entries.n; e++) {
    unsigned i = (unsigned)m->entries.v[e].hash & mask;
    while (m->slots[i]) i = (i + 1) & mask;
    m->slots[i] = e + 1;
  }
}

void *map_get(const Map *m, Str key) {
  if (!m->n_slots) return NULL;
  int e = m->slots[map_slot(m, key, key_hash(key))];
  return e ? m->entries.v[e - 1].value : NULL;
}

void map_set(Map *m, Str key, void *value) {
  if (2 * (m->entries.n + 1) > m->n_slots) map_grow(m);
  uint64_t hash = key_hash(key);
  int s = map_slot(m, key, hash);
  if (m->slots[s]) {
    m->entries.v[m->slots[s] - 1].value = value;
    return;
  }
  *vec_push(&m->entries) = (MapEntry){arena_str(m->keys, key), hash, value};
  m->slots[s] = m->entries.n;
}

int map_count(const Map *m) { return m->entries.n; }

bool map_at(const Map *m, int i, Str *key, void **value) {
  if (i >= m->entries.n) return false;
  *key = m->entries.v[i].key;
  *value = m->entries.v[i].value;
  return true;
}

int utf8_char(const char *p, size_t n, uint32_t *out) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  unsigned char first = (unsigned char)*p;
  int len = first < 0x80   ? 1
            : first < 0xC0 ? 0
            : first < 0xE0 ? 2
            : first < 0xF0 ? 3
            : first < 0xF8 ? 4
                           : 0;
  if (!len || (size_t)len > n) return 0;
  uint32_t c = len == 1 ? first : first & (0x7Fu >> len);
  for (int i = 1; i < len; i++) {
    if (((unsigned char)p[i] & 0xC0) != 0x80) return 0;
    c = c << 6 | ((unsigned char)p[i] & 0x3F);
  }
  if (c < least[len] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return 0;
  *out = c;
  return len;
}

void buf_json_str(Buf *b, const char *s) {
  size_t left = s ? strlen(s) : 0;
  buf_byte(b, '"');
  for (int len; left; s += len, left -= (size_t)len) {
    uint32_t c = 0xFFFD;
    len = utf8_char(s, left, &c);
    if (c == '"' || c == '\\') buf_printf(b, "\\%c", (int)c);
    else if (c < 32 || c == '<' || !len) buf_printf(b, "\\u%04x", c);
    else buf_add(b, s, (size_t)len);
    len = MAX(len, 1);
  }
  buf_byte(b, '"');
}

void buf_json_num(Buf *b, const char *key, double v) {
  bool whole = v == trunc(v) && fabs(v) < 0x1p53; /* bytes and counts: to the last digit */
  if (isfinite(v)) buf_printf(b, whole ? "\"%s\": %.0f" : "\"%s\": %.10g", key, v);
  else buf_printf(b, "\"%s\": null", key);
}
