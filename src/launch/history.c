/* The history of runs in SQLite, through a library that is loaded when it is needed. */
#include "launch/history.h"

#include "base/system.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* The part of SQLite's C interface that is used (sqlite.org/c3ref): stable since version 3. */
typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;
enum { SQLITE_OK = 0, SQLITE_ROW = 100, SQLITE_DONE = 101, SQLITE_NULL = 5 };
#define SQLITE_TRANSIENT ((void (*)(void *)) - 1)
#define SQLITE_CALLS(X)                                                                            \
  X(int, open, (const char *, sqlite3 **))                                                         \
  X(int, close, (sqlite3 *))                                                                       \
  X(const char *, errmsg, (sqlite3 *))                                                             \
  X(int, busy_timeout, (sqlite3 *, int))                                                           \
  X(int, exec, (sqlite3 *, const char *, int (*)(void *, int, char **, char **), void *, char **)) \
  X(int, prepare_v2, (sqlite3 *, const char *, int, sqlite3_stmt **, const char **))               \
  X(int, bind_double, (sqlite3_stmt *, int, double))                                               \
  X(int, bind_int64, (sqlite3_stmt *, int, int64_t))                                               \
  X(int, bind_text, (sqlite3_stmt *, int, const char *, int, void (*)(void *)))                    \
  X(int, step, (sqlite3_stmt *))                                                                   \
  X(int, finalize, (sqlite3_stmt *))                                                               \
  X(int, column_type, (sqlite3_stmt *, int))                                                       \
  X(double, column_double, (sqlite3_stmt *, int))                                                  \
  X(int64_t, column_int64, (sqlite3_stmt *, int))                                                  \
  X(const unsigned char *, column_text, (sqlite3_stmt *, int))                                     \
  X(int64_t, last_insert_rowid, (sqlite3 *))

typedef struct Sqlite {
#define X(ret, name, args) ret(*name) args;
  SQLITE_CALLS(X)
#undef X
} Sqlite;

struct History {
  Sqlite call;
  sqlite3 *db;
  char *path;
};

static Err *load(Sqlite *s) {
  void *lib = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!lib) lib = dlopen("libsqlite3.so", RTLD_NOW | RTLD_LOCAL);
  if (!lib)
    return err_hint(err_new(ERR_NOT_FOUND, "the history of runs needs SQLite, which is not here"),
                    "apt install libsqlite3-0");
#define X(ret, name, args)                           \
  *(void **)&s->name = dlsym(lib, "sqlite3_" #name); \
  if (!s->name) return err_new(ERR_NOT_FOUND, "libsqlite3 has no sqlite3_" #name);
  SQLITE_CALLS(X)
#undef X
  return NULL;
}

static Err *wrong(const History *h) {
  return err_hint(err_new(ERR_INVALID, "%s: %s", h->path, h->call.errmsg(h->db)),
                  "WEFT_RUNS names another file");
}

static Err *make_folder_of(const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash || slash == path) return NULL;
  char *folder = xstrndup(path, (size_t)(slash - path));
  Err *e = err_hint(folder_make(folder), "WEFT_RUNS names another file");
  free(folder);
  return e;
}

static char *history_path(void) {
  const char *own = env_get("WEFT_RUNS"), *data = env_get("XDG_DATA_HOME"), *home = env_get("HOME");
  if (own) return xstrdup(own);
  if (data) return xasprintf("%s/weft/runs.db", data);
  return xasprintf("%s/.local/share/weft/runs.db", home ? home : ".");
}

static Err *create(History *h) {
  static const char *const make = "CREATE TABLE IF NOT EXISTS runs (id INTEGER PRIMARY KEY"
#define X(column, type) ", " #column " " #type
      RUN_COLUMNS(X)
#undef X
          ")";
  if (h->call.exec(h->db, make, NULL, NULL, NULL) != SQLITE_OK) return wrong(h);
    /* columns that an older weft did not have; those that are there already are an error that means nothing */
#define X(column, type) \
  h->call.exec(h->db, "ALTER TABLE runs ADD COLUMN " #column " " #type, NULL, NULL, NULL);
  RUN_COLUMNS(X)
#undef X
  return NULL;
}

bool history_exists(void) {
  struct stat s;
  char *path = history_path();
  bool there = !stat(path, &s);
  free(path);
  return there;
}

Err *history_open(History **out) {
  History *h = xcalloc(1, sizeof *h);
  h->path = history_path();
  Err *e = load(&h->call);
  if (!e) e = make_folder_of(h->path);
  if (!e && h->call.open(h->path, &h->db) != SQLITE_OK) e = wrong(h);
  if (!e) h->call.busy_timeout(h->db, 5000), e = create(h);
  if (e) history_close(h);
  else *out = h;
  return e;
}

void history_close(History *h) {
  if (!h) return;
  if (h->db) h->call.close(h->db);
  free(h->path);
  free(h);
}

/* ---- rows --------------------------------------------------------------------------------------- */

static void bind_TEXT(const Sqlite *s, sqlite3_stmt *q, int i, const char *v) {
  if (v) s->bind_text(q, i, v, -1, SQLITE_TRANSIENT);
}
static void bind_REAL(const Sqlite *s, sqlite3_stmt *q, int i, double v) {
  if (!isnan(v)) s->bind_double(q, i, v);
}
static char *column_TEXT(const Sqlite *s, sqlite3_stmt *q, int i) {
  const char *v = (const char *)s->column_text(q, i);
  return v ? xstrdup(v) : NULL;
}
static double column_REAL(const Sqlite *s, sqlite3_stmt *q, int i) {
  return s->column_type(q, i) == SQLITE_NULL ? NAN : s->column_double(q, i);
}

Err *history_put(History *h, RunRow *r) {
  static const char *const put = "INSERT OR REPLACE INTO runs (id"
#define X(column, type) ", " #column
      RUN_COLUMNS(X)
#undef X
          ") VALUES (?"
#define X(column, type) ", ?"
      RUN_COLUMNS(X)
#undef X
          ")";
  const Sqlite *s = &h->call;
  sqlite3_stmt *q;
  if (s->prepare_v2(h->db, put, -1, &q, NULL) != SQLITE_OK) return wrong(h);
  if (r->id) s->bind_int64(q, 1, r->id);
  int i = 2;
#define X(column, type) bind_##type(s, q, i++, r->column);
  RUN_COLUMNS(X)
#undef X
  bool done = s->step(q) == SQLITE_DONE;
  s->finalize(q);
  if (!done) return wrong(h);
  if (!r->id) r->id = s->last_insert_rowid(h->db);
  return NULL;
}

Err *history_get(History *h, const char *which, RunRows *out) {
  static const char *const get = "SELECT id"
#define X(column, type) ", " #column
      RUN_COLUMNS(X)
#undef X
          " FROM runs WHERE ?1 IS NULL OR id = ?1 OR name = ?1 OR dir = ?1 ORDER BY id DESC";
  const Sqlite *s = &h->call;
  sqlite3_stmt *q;
  *out = (RunRows){0};
  if (s->prepare_v2(h->db, get, -1, &q, NULL) != SQLITE_OK) return wrong(h);
  char *folder = which ? realpath(which, NULL) : NULL;
  struct stat there;
  bool is_folder = folder && !stat(folder, &there) && S_ISDIR(there.st_mode);
  char *end;
  long long id = which ? strtoll(which, &end, 10) : 0;
  if (which && id > 0 && !*end) s->bind_int64(q, 1, id);
  else bind_TEXT(s, q, 1, is_folder ? folder : which);
  free(folder);
  while (s->step(q) == SQLITE_ROW) {
    RunRow *r = vec_push(out);
    int i = 1;
    *r = (RunRow){.id = s->column_int64(q, 0)};
#define X(column, type) r->column = column_##type(s, q, i++);
    RUN_COLUMNS(X)
#undef X
  }
  s->finalize(q);
  return NULL;
}

void run_row_free(RunRow *r) {
#define RUN_FREE_TEXT(v) free(v)
#define RUN_FREE_REAL(v) (void)0
#define X(column, type) RUN_FREE_##type(r->column);
  RUN_COLUMNS(X)
#undef X
  *r = (RunRow){0};
}

void run_rows_free(RunRows *r) {
  for (int i = 0; i < r->n; i++) run_row_free(&r->v[i]);
  vec_free(r);
}

void run_row_set(char **text, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char *v = NULL;
  int n = vasprintf(&v, fmt, ap);
  va_end(ap);
  free(*text);
  *text = n < 0 ? NULL : v;
}
