/* history: runs in SQLite, WEFT_RUNS or ~/.local/share/weft/runs.db. libsqlite3 is loaded when it is first
 * used; without it runs are started all the same, and what needs their history says what to install.
 * Private to src/launch. */
#ifndef WEFT_LAUNCH_HISTORY_H
#define WEFT_LAUNCH_HISTORY_H

#include "launch/launch.h"

/* X(column, SQL type, C type): one row a run. */
#define RUN_COLUMNS(X)                                                                    \
  X(name, TEXT)                                                                           \
  X(model, TEXT)                                                                          \
  X(engine, TEXT)                                                                         \
  X(chip, TEXT)                                                                           \
  X(command, TEXT)                                                                        \
  X(dir, TEXT)                                                                            \
  X(host, TEXT) X(state, TEXT) X(why, TEXT) X(job, TEXT) X(chips, REAL) X(nodes, REAL)    \
      X(procs, REAL) X(pid, REAL) X(pid_start, REAL) X(started, REAL) X(seconds, REAL)    \
          X(attempt, REAL) X(step, REAL) X(steps, REAL) X(step_s, REAL) X(usd_hour, REAL) \
              X(usd, REAL) X(plan_step_s, REAL) X(plan_seconds, REAL) X(plan_usd, REAL)   \
                  X(plan_ratio, REAL) X(gpus, REAL)

#define RUN_C_TEXT char *
#define RUN_C_REAL double
typedef struct RunRow {
  int64_t id; /* 0: not written yet */
#define X(column, type) RUN_C_##type column;
  RUN_COLUMNS(X)
#undef X
} RunRow;
void run_row_free(RunRow *r);
void run_row_set(char **text, const char *fmt, ...) PRINTF_LIKE(2, 3); /* another value */

typedef struct History History;
/* errors ERR_NOT_FOUND: no libsqlite3; ERR_INVALID: the file is none, or cannot be written. */
Err *history_open(History **out);
bool history_exists(void);               /* opening makes it */
void history_close(History *h);          /* NULL is fine */
Err *history_put(History *h, RunRow *r); /* a new row gets its id */
typedef VEC(RunRow) RunRows;
/* Newest first. which: a number, a name or a folder; NULL: all. */
Err *history_get(History *h, const char *which, RunRows *out);
void run_rows_free(RunRows *r);

#endif
