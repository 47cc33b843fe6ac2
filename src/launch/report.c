/* Runs that were or are: status, logs, stop, the table. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/system.h"
#include "launch/launch_priv.h"

static bool in_progress(const RunRow *r) {
  return r->state && (!strcmp(r->state, "running") || !strcmp(r->state, "starting"));
}

static bool here(const RunRow *r) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return r->host && !strcmp(r->host, host);
}

/* Its launcher has gone without a word. */
static bool lost(const RunRow *r) {
  return in_progress(r) && here(r) && !(process_start((pid_t)r->pid) == r->pid_start);
}

static Err *open_rows(const char *which, History **h, RunRows *rows) {
  TRY(history_open(h));
  Err *e = history_get(*h, which, rows);
  if (!e && !rows->n && which)
    e = err_hint(err_new(ERR_NOT_FOUND, "no run is called '%s'", which), "`weft runs` lists them");
  if (!e && !rows->n)
    e = err_hint(err_new(ERR_NOT_FOUND, "no run was started yet"), "weft launch -- COMMAND");
  if (e) history_close(*h);
  return e;
}

static void words(const RunRow *r, Buf *o) {
  buf_printf(o, "run %lld %s: %s", (long long)r->id, r->name,
             lost(r) ? "lost: its launcher is gone" : r->state);
  if (r->attempt > 0)
    buf_printf(o, ", restarted %.0f time%s", r->attempt, r->attempt > 1 ? "s" : "");
  buf_cstr(o, "\n  "), progress_words(r, o);
  if (r->why) buf_printf(o, "\n  %s", r->why);
  buf_printf(o, "\n  %s%s%s: %s\n  %s\n", r->engine, r->job ? " job " : "", r->job ? r->job : "",
             r->command, r->dir);
}

Err *launch_status(const char *which, Buf *out) {
  History *h;
  RunRows rows;
  TRY(open_rows(which, &h, &rows));
  int said = 0;
  for (int i = 0; i < rows.n; i++)
    if (which ? i == 0 : in_progress(&rows.v[i])) words(&rows.v[i], out), said++;
  if (!said) buf_printf(out, "nothing runs; the last was\n"), words(&rows.v[0], out);
  run_rows_free(&rows);
  history_close(h);
  return NULL;
}

Err *launch_logs(const char *which, int rank, bool follow) {
  History *h;
  RunRows rows;
  TRY(open_rows(which, &h, &rows));
  RunRow *r = &rows.v[0];
  int procs = (int)r->procs;
  Err *e = NULL;
  if (rank >= procs)
    e = err_hint(err_new(ERR_INVALID, "run %lld has ranks 0 to %d, not %d", (long long)r->id,
                         procs - 1, rank),
                 "--rank");
  Logs *l = logs_open(r->dir, procs, rank, !strcmp(r->engine, "sky") ? "sky" : NULL);
  char id[32];
  snprintf(id, sizeof id, "%lld", (long long)r->id);
  while (!e) {
    bool runs = in_progress(&rows.v[0]) && !lost(&rows.v[0]);
    logs_read(l, !runs, stdout, NULL, NULL);
    if (!follow || !runs) break;
    nanosleep(&(struct timespec){0, 300000000}, NULL);
    run_rows_free(&rows);
    e = history_get(h, id, &rows);
    if (!e && !rows.n) break;
  }
  logs_close(l);
  run_rows_free(&rows);
  history_close(h);
  return e;
}

/* By the launcher, which stops what it started; where it is gone, by the engine. */
static Err *stop(RunRow *r) {
  if (!in_progress(r)) {
    printf("run %lld has ended: %s\n", (long long)r->id, r->state);
    return NULL;
  }
  if (!here(r))
    return err_hint(
        err_new(ERR_PRECONDITION, "run %lld was started on %s", (long long)r->id, r->host),
        "stop it there");
  if (!lost(r)) {
    if (kill((pid_t)r->pid, SIGTERM))
      return err_errno("cannot tell the launcher, process %.0f", r->pid);
    printf("run %lld was told to stop\n", (long long)r->id);
    return NULL;
  }
  if (r->job) {
    LaunchJob job = {0};
    Run gone = {.job = &job, .row = *r};
    engine_slurm.stop(&gone, false);
    printf("run %lld: its launcher was gone; Slurm job %s is cancelled\n", (long long)r->id,
           r->job);
  } else {
    printf("run %lld: its launcher was gone, and with it what it had started here\n",
           (long long)r->id);
  }
  run_row_set(&r->state, "stopped");
  return NULL;
}

/* The one to stop: that runs, before those whose launcher is gone. Several are the user's to choose of. */
static Err *which_to_stop(const RunRows *rows, int *at) {
  for (int gone = 0; gone < 2; gone++) {
    Buf some = {0};
    int n = 0;
    for (int i = 0; i < rows->n; i++) {
      const RunRow *r = &rows->v[i];
      if (!in_progress(r) || lost(r) != gone) continue;
      buf_printf(&some, "%s%lld (%s)", n++ ? ", " : "", (long long)r->id, r->name);
      *at = i;
    }
    Err *e = n > 1 ? err_hint(err_new(ERR_INVALID, "%d runs go on: %s", n, some.p),
                              "weft launch stop NUMBER stops one of them")
                   : NULL;
    buf_free(&some);
    if (n) return e;
  }
  *at = 0; /* none: stop() says how the last one ended */
  return NULL;
}

Err *launch_stop(const char *which) {
  History *h;
  RunRows rows;
  TRY(open_rows(which, &h, &rows));
  int at = 0;
  Err *e = which_to_stop(&rows, &at);
  if (!e) e = stop(&rows.v[at]);
  if (!e && !strcmp(rows.v[at].state, "stopped")) e = history_put(h, &rows.v[at]);
  run_rows_free(&rows);
  history_close(h);
  return e;
}

/* ---- the table ---------------------------------------------------------------------------------- */

static void row_text(const RunRow *r, Buf *o) {
  char date[32], t[UNITS_TEXT], a[UNITS_TEXT], b[UNITS_TEXT], u[UNITS_TEXT], v[UNITS_TEXT],
      chips[LAUNCH_NAME + 16];
  time_t when = (time_t)r->started;
  strftime(date, sizeof date, "%Y-%m-%d %H:%M", localtime(&when));
  if (r->chips > 0) snprintf(chips, sizeof chips, "%s:%.0f", r->chip, r->chips);
  else snprintf(chips, sizeof chips, "%.0f x %.0f", r->nodes, r->procs / MAX(1, r->nodes));
  buf_printf(o, "%4lld  %s  %-18.18s %-6s %-16.16s %-9s %10s %10s %10s %10s %10s\n",
             (long long)r->id, date, r->name, r->engine, chips, lost(r) ? "lost" : r->state,
             time_text(t, r->seconds), time_text(a, r->step_s), time_text(b, r->plan_step_s),
             usd_text(u, r->usd), usd_text(v, r->plan_usd));
}

static void json_TEXT(Buf *o, const char *key, const char *v) {
  buf_printf(o, ", \"%s\": ", key);
  if (v) buf_json_str(o, v);
  else buf_cstr(o, "null");
}
static void json_REAL(Buf *o, const char *key, double v) {
  buf_cstr(o, ", ");
  buf_json_num(o, key, v);
}

static void row_json(const RunRow *r, Buf *o) {
  buf_printf(o, "{\"id\": %lld", (long long)r->id);
#define X(column, type) json_##type(o, #column, r->column);
  RUN_COLUMNS(X)
#undef X
  buf_printf(o, ", \"lost\": %s}", lost(r) ? "true" : "false");
}

Err *launch_history(const char *which, bool json, Buf *out) {
  History *h;
  RunRows rows = {0};
  if (which) {
    TRY(open_rows(which, &h, &rows));
  } else {
    TRY(history_open(&h));
    Err *e = history_get(h, NULL, &rows);
    if (e) return history_close(h), e;
  }
  if (json) buf_cstr(out, "[");
  else if (!which && rows.n)
    buf_printf(out, "%4s  %-16s  %-18s %-6s %-16s %-9s %10s %10s %10s %10s %10s\n", "run",
               "started", "name", "engine", "chips", "state", "time", "step", "planned", "money",
               "planned");
  else if (!rows.n) buf_cstr(out, "no run was started yet: weft launch -- COMMAND\n");
  for (int i = 0; i < rows.n; i++)
    if (json) buf_cstr(out, i ? ",\n " : ""), row_json(&rows.v[i], out);
    else if (which) words(&rows.v[i], out);
    else row_text(&rows.v[i], out);
  if (json) buf_cstr(out, "]\n");
  run_rows_free(&rows);
  history_close(h);
  return NULL;
}
