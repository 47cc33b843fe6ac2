/* base: what every other folder stands on. Errors, arenas, strings, hash map, element types, thread
 * pool.
 *
 * Errors      `Err *` is NULL on success. An Err has a code (the numbers of PJRT_Error_Code), a
 *             message, an optional place in the user's program and an optional hint. It is made
 *             once (err_new), wrapped on the way up (err_wrap) and freed by whoever prints it
 *             (err_free).
 * Memory      running out of host memory for small things ends the program here (xmalloc), so
 *             nobody checks. Device buffers may be huge: they use tensor_new / try_malloc, whose
 *             failure is an ordinary Err.
 * Threads     Arena, Buf, Map: one thread at a time. Pool: any thread. Err: whoever holds it.
 */
#ifndef WEFT_BASE_BASE_H
#define WEFT_BASE_BASE_H

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WEFT_VERSION "0.1.0"
#define COUNT_OF(a) ((int)(sizeof(a) / sizeof((a)[0])))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#if defined(__GNUC__)
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#else
#define PRINTF_LIKE(f, a)
#endif

/* ---- strings: pointer and length, not NUL-terminated ----------------------------------------- */

typedef struct Str {
  const char *p;
  size_t n;
} Str;

#define STR(lit) ((Str){(lit), sizeof(lit) - 1})
#define STR_ARG(s) (int)(s).n, (s).p /* for "%.*s" */
static inline Str str_from(const char *cstr) { return (Str){cstr, cstr ? strlen(cstr) : 0}; }
static inline bool str_eq(Str a, Str b) {
  return a.n == b.n && (a.n == 0 || !memcmp(a.p, b.p, a.n));
}
static inline bool str_is(Str a, const char *cstr) { return str_eq(a, str_from(cstr)); }
bool str_starts(Str s, const char *prefix);
bool str_ends(Str s, const char *suffix);
int str_cmp(Str a, Str b); /* byte order; a prefix sorts first */

/* Letters to insert, drop, change or swap with the next to make b of a, upper and lower case alike;
 * of the first 64 letters. */
int str_distance(Str a, Str b);

/* "Did you mean ...?": Nearest near = {.want = name}; nearest_see() of every name there is;
 * near.best is the nearest that is near enough to be meant, or NULL. */
typedef struct Nearest {
  Str want;
  const char *best;
  int distance;
} Nearest;
void nearest_see(Nearest *near, const char *name);

/* ---- errors ---------------------------------------------------------------------------------- */

/* X(name, number, text): the codes of PJRT_Error_Code (= absl status codes). */
/* clang-format off */
#define ERR_CODES(X)                        \
  X(CANCELLED, 1, "CANCELLED")              \
  X(UNKNOWN, 2, "UNKNOWN")                  \
  X(INVALID, 3, "INVALID_ARGUMENT")         \
  X(DEADLINE, 4, "DEADLINE_EXCEEDED")       \
  X(NOT_FOUND, 5, "NOT_FOUND")              \
  X(EXISTS, 6, "ALREADY_EXISTS")            \
  X(PERMISSION, 7, "PERMISSION_DENIED")     \
  X(EXHAUSTED, 8, "RESOURCE_EXHAUSTED")     \
  X(PRECONDITION, 9, "FAILED_PRECONDITION") \
  X(ABORTED, 10, "ABORTED")                 \
  X(RANGE, 11, "OUT_OF_RANGE")              \
  X(UNIMPLEMENTED, 12, "UNIMPLEMENTED")     \
  X(INTERNAL, 13, "INTERNAL")               \
  X(UNAVAILABLE, 14, "UNAVAILABLE")         \
  X(DATA_LOSS, 15, "DATA_LOSS")             \
  X(UNAUTHENTICATED, 16, "UNAUTHENTICATED")
/* clang-format on */

typedef enum ErrCode {
  ERR_OK = 0,
#define X(n, v, t) ERR_##n = v,
  ERR_CODES(X)
#undef X
} ErrCode;

typedef struct Err {
  ErrCode code;
  char *msg;   /* one sentence, may be several lines; owned */
  char *place; /* "file.mlir:12:3" or the user's "train.py:41"; NULL when unknown; owned */
  char *hint;  /* what to do next; NULL when none; owned */
} Err;

Err *err_new(ErrCode code, const char *fmt, ...) PRINTF_LIKE(2, 3);
Err *err_newv(ErrCode code, const char *fmt, va_list ap);
Err *err_wrap(Err *e, const char *fmt, ...)
    PRINTF_LIKE(2, 3); /* prefixes "fmt: "; returns e; NULL stays NULL */
Err *err_place(Err *e, const char *fmt, ...)
    PRINTF_LIKE(2, 3); /* sets the place if there is none yet; returns e */
Err *err_hint(Err *e, const char *fmt, ...) PRINTF_LIKE(2, 3); /* sets the hint; returns e */
void err_free(Err *e);                                         /* NULL is fine */
const char *err_code_name(ErrCode code);                       /* "INVALID_ARGUMENT" */
char *err_text(const Err *e); /* "CODE: place: message\n  hint: ..."; the caller frees */
void err_report(Err *e);      /* prints err_text on stderr and frees e */

#define TRY(expr)                  \
  do {                             \
    Err *try_err_ = (expr);        \
    if (try_err_) return try_err_; \
  } while (0)

/* ---- memory ---------------------------------------------------------------------------------- */

void *
xmalloc(size_t n); /* ends the program with a message when there is no memory; n == 0 is fine */
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
char *xasprintf(const char *fmt, ...) PRINTF_LIKE(1, 2);
bool mul_overflows(int64_t a, int64_t b, int64_t *out); /* true: overflow, *out untouched */
bool add_overflows(int64_t a, int64_t b, int64_t *out);

/* Arena: everything allocated from it lives until arena_free. Zeroed memory, aligned to 16. */
typedef struct Arena Arena;
Arena *arena_new(void);
void arena_free(Arena *a); /* NULL is fine */
void *arena_alloc(Arena *a, size_t n);
#define ARENA_NEW(a, T) ((T *)arena_alloc((a), sizeof(T)))
#define ARENA_ARRAY(a, T, n) ((T *)arena_alloc((a), sizeof(T) * (size_t)(n)))
void *arena_dup(Arena *a, const void *p, size_t n);
Str arena_str(Arena *a, Str s); /* copy, with a NUL after it */
Str arena_printf(Arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
size_t arena_bytes(const Arena *a); /* allocated so far, for limits on hostile input */

/* Growing array: VEC(T) v = {0}; *vec_push(&v) = x; v.v[i], v.n; vec_free(&v). */
#define VEC(T)  \
  struct {      \
    T *v;       \
    int n, cap; \
  }
void *vec_grow_(void *v, int *cap, int need, size_t size);
#define vec_push(a)                                                                         \
  ((a)->n == (a)->cap ? ((a)->v = vec_grow_((a)->v, &(a)->cap, (a)->n + 1, sizeof *(a)->v)) \
                      : (a)->v,                                                             \
   &(a)->v[(a)->n++])
#define vec_free(a) (free((a)->v), (a)->v = NULL, (a)->n = (a)->cap = 0)

/* Buf: growing bytes, always NUL-terminated. Zero-initialise; buf_free when done, or take .p (free
 * it). */
typedef struct Buf {
  char *p;
  size_t n, cap;
} Buf;
void buf_add(Buf *b, const void *p, size_t n);
void buf_byte(Buf *b, int c);
void buf_str(Buf *b, Str s);
void buf_cstr(Buf *b, const char *s);
/* Quoted; NULL is ""; '<' escaped, safe inside HTML; bytes that are not UTF-8 (a file's name may have
 * any) become U+FFFD. */
void buf_json_str(Buf *b, const char *s);
void buf_json_num(Buf *b, const char *key, double v); /* "key": v, null when not finite */
void buf_printf(Buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_free(Buf *b);

/* The character of UTF-8 that begins at p, n >= 1 bytes: its length; 0 when these are none (cut, a longer
 * form than it needs, half of a pair). */
int utf8_char(const char *p, size_t n, uint32_t *out);

/* Map: byte-string keys (copied) to one pointer. */
typedef struct Map Map;
Map *map_new(void);
void map_free(Map *m);                /* values are the caller's; NULL is fine */
void *map_get(const Map *m, Str key); /* NULL: absent (or a NULL value) */
void map_set(Map *m, Str key, void *value);
int map_count(const Map *m);
/* Visits in insertion order: for (int i = 0; map_at(m, i, &k, &v); i++) */
bool map_at(const Map *m, int i, Str *key, void **value);

uint64_t hash_bytes(const void *p, size_t n,
                    uint64_t seed); /* FNV-1a style, stable across runs and machines */

/* ---- files ----------------------------------------------------------------------------------- */

/* Whole file; *out.p is NUL-terminated and freed by the caller. "-" is standard input. */
Err *file_read(const char *path, Buf *out);
Err *file_write(const char *path, const void *p, size_t n); /* by a temporary file and rename */
double time_now_s(void);                                    /* monotonic seconds */

/* ---- environment variables (docs/env.md) ------------------------------------------------------ */

const char *env_get(const char *name); /* NULL when unset or empty */
/* A value that is none of these counts as unset and is named on stderr, once. */
int64_t env_int(const char *name, int64_t least, int64_t most, int64_t otherwise);
bool env_flag(const char *name);                          /* 1: true */
bool env_lists(const char *name, const char *word);       /* among words with commas between */
int env_choice(const char *name, const char *choices);    /* "a|b": which; -1: none */
void env_complain(const char *name, const char *fmt, ...) /* for other kinds of values */
    PRINTF_LIKE(2, 3);

/* ---- element types --------------------------------------------------------------------------- */

/* X(id, PJRT_Buffer_Type number, StableHLO name, bytes in memory, bits, class). Numbers are PJRT's,
 * so that the plugin maps them by identity. Types narrower than a byte are held one element a byte
 * (value in the low bits, signed ones sign-extended), as JAX hands them over. DT_TF32, DT_INDEX and
 * DT_NONE occur only in attributes. */
/* clang-format off */
#define DTYPES(X)                                    \
  X(I1, 1, "i1", 1, 1, BOOL)                         \
  X(I8, 2, "i8", 1, 8, SINT)                         \
  X(I16, 3, "i16", 2, 16, SINT)                      \
  X(I32, 4, "i32", 4, 32, SINT)                      \
  X(I64, 5, "i64", 8, 64, SINT)                      \
  X(U8, 6, "ui8", 1, 8, UINT)                        \
  X(U16, 7, "ui16", 2, 16, UINT)                    \
  X(U32, 8, "ui32", 4, 32, UINT)                     \
  X(U64, 9, "ui64", 8, 64, UINT)                     \
  X(F16, 10, "f16", 2, 16, FLOAT)                    \
  X(F32, 11, "f32", 4, 32, FLOAT)                    \
  X(F64, 12, "f64", 8, 64, FLOAT)                   \
  X(BF16, 13, "bf16", 2, 16, FLOAT)                  \
  X(C64, 14, "complex<f32>", 8, 64, COMPLEX)         \
  X(C128, 15, "complex<f64>", 16, 128, COMPLEX)      \
  X(F8E5M2, 16, "f8E5M2", 1, 8, FLOAT)               \
  X(F8E4M3FN, 17, "f8E4M3FN", 1, 8, FLOAT)           \
  X(F8E4M3B11FNUZ, 18, "f8E4M3B11FNUZ", 1, 8, FLOAT) \
  X(F8E5M2FNUZ, 19, "f8E5M2FNUZ", 1, 8, FLOAT)       \
  X(F8E4M3FNUZ, 20, "f8E4M3FNUZ", 1, 8, FLOAT)       \
  X(I4, 21, "i4", 1, 4, SINT)                        \
  X(U4, 22, "ui4", 1, 4, UINT)                       \
  X(TOKEN, 23, "token", 0, 0, OTHER)                 \
  X(I2, 24, "i2", 1, 2, SINT)                        \
  X(U2, 25, "ui2", 1, 2, UINT)                       \
  X(F8E4M3, 26, "f8E4M3", 1, 8, FLOAT)               \
  X(F8E3M4, 27, "f8E3M4", 1, 8, FLOAT)               \
  X(F8E8M0FNU, 28, "f8E8M0FNU", 1, 8, FLOAT)         \
  X(F4E2M1FN, 29, "f4E2M1FN", 1, 4, FLOAT)           \
  X(F6E2M3FN, 32, "f6E2M3FN", 1, 6, FLOAT)           \
  X(F6E3M2FN, 33, "f6E3M2FN", 1, 6, FLOAT)           \
  X(TF32, 40, "tf32", 4, 19, OTHER)                  \
  X(INDEX, 41, "index", 8, 64, OTHER)                \
  X(NONE, 42, "none", 0, 0, OTHER)
/* clang-format on */

typedef enum DType {
  DT_INVALID = 0,
#define X(id, num, name, bytes, bits, cls) DT_##id = num,
  DTYPES(X)
#undef X
      DT_COUNT = 43
} DType;

typedef enum DTypeClass { DC_OTHER, DC_BOOL, DC_SINT, DC_UINT, DC_FLOAT, DC_COMPLEX } DTypeClass;

const char *dtype_name(DType t); /* "bf16"; "invalid" */
DType dtype_from_name(Str name); /* DT_INVALID when unknown */
int dtype_bytes(DType t);        /* bytes of an element in memory */
int dtype_bits(DType t);         /* width as a type, 1 for i1 */
DTypeClass dtype_class(DType t);
static inline bool dtype_is_float(DType t) { return dtype_class(t) == DC_FLOAT; }
static inline bool dtype_is_complex(DType t) { return dtype_class(t) == DC_COMPLEX; }
static inline bool dtype_is_int(DType t) {
  return dtype_class(t) == DC_SINT || dtype_class(t) == DC_UINT;
}
static inline bool dtype_is_signed(DType t) { return dtype_class(t) == DC_SINT; }
DType dtype_real_of(DType t); /* C64 -> F32, C128 -> F64, else t */

/* Conversion of single elements, round to nearest even; every float kind. f64 holds every narrower
 * float exactly. */
float f16_to_f32(uint16_t h);
uint16_t f32_to_f16(float f);
static inline float bf16_to_f32(uint16_t h) {
  uint32_t u = (uint32_t)h << 16;
  float f;
  memcpy(&f, &u, 4);
  return f;
}
uint16_t f32_to_bf16(float f);
double float_decode(DType t, uint64_t bits); /* any DC_FLOAT type */
uint64_t float_encode(
    DType t,
    double value); /* rounds once; overflow as the type prescribes (inf, NaN or saturate) */
double elem_get_f64(DType t, const void *p); /* real types: int, uint, bool, float -> double */
void elem_set_f64(DType t, void *p,
                  double v);                  /* ints: truncates toward zero, saturates, NaN -> 0 */
int64_t elem_get_i64(DType t, const void *p); /* int, uint, bool; u64 reinterpreted */
void elem_set_i64(DType t, void *p, int64_t v); /* wraps to the type's width */

/* ---- threads --------------------------------------------------------------------------------- */

/* One pool for the process. pool_run calls fn(arg, i) for i in 0..n-1 on the caller and the pool's
 * threads and returns when all are done. May be called from several threads and from inside fn
 * (then it runs inline). Results must not depend on the number of threads: split work by size,
 * never by thread count. Spins briefly, then sleeps. Size: WEFT_THREADS, else the CPUs in the
 * affinity mask. */
int pool_threads(void);
void pool_run(int64_t n, void (*fn)(void *arg, int64_t i), void *arg);

#endif
