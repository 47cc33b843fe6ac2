/* One run from its start to its end: lines of ranks, progress, limits, restarts. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "launch/launch_priv.h"

static volatile sig_atomic_t asked_to_stop;
static void on_signal(int s) {
  (void)s;
  asked_to_stop++;
}

typedef struct Watch {
  Run *r;
  const Engine *engine;
  Logs *logs;
  Progress progress;
  double begun, before; /* of the run; seconds of it before this try */
  double line_at, shown_at, saved_at, stopped_at;
  bool live; /* a terminal: progress is a line that stays */
  char *stop_why;
} Watch;

static void seen(void *arg, int rank, const char *line) {
  Watch *w = arg;
  if (rank <= 0) progress_line(&w->progress, wall_s(), line);
}

static void update(Watch *w) {
  RunRow *r = &w->r->row;
  r->seconds = wall_s() - w->begun;
  r->usd = r->usd_hour * r->seconds / 3600;
  if (!isnan(w->progress.step)) r->step = w->progress.step;
  if (!isnan(w->progress.steps)) r->steps = w->progress.steps;
  if (!isnan(w->progress.step_s)) r->step_s = w->progress.step_s;
}

static void save(Watch *w, bool now) {
  if (!w->r->h || (!now && wall_s() < w->saved_at + 2)) return;
  w->saved_at = wall_s();
  Err *e = history_put(w->r->h, &w->r->row);
  if (!e) return;
  err_report(err_wrap(e, "the run goes on without its history"));
  history_close(w->r->h);
  w->r->h = NULL;
}

static void show(Watch *w) {
  double every = w->live ? 0.5 : 30;
  if (wall_s() < w->shown_at + every) return;
  w->shown_at = wall_s();
  Buf o = {0};
  if (w->r->row.why) buf_cstr(&o, w->r->row.why);
  else progress_words(&w->r->row, &o);
  fprintf(stderr, "%sweft launch: %s%s", w->live ? "\r\033[K" : "", o.p, w->live ? "" : "\n");
  fflush(stderr);
  buf_free(&o);
}

static void lines(Watch *w, bool all) {
  if (w->live) fputs("\r\033[K", stderr);
  if (logs_read(w->logs, all, w->r->job->quiet ? NULL : stdout, seen, w)) w->line_at = wall_s();
}

/* A limit that the run has reached: why it is stopped; NULL. */
static char *limit(const Watch *w) {
  const LaunchJob *j = w->r->job;
  const RunRow *r = &w->r->row;
  char s[UNITS_TEXT], t[UNITS_TEXT];
  if (j->max_s > 0 && r->seconds > j->max_s)
    return xasprintf("%s are over (--max-time)", time_text(s, j->max_s));
  if (j->max_usd > 0 && r->usd > j->max_usd)
    return xasprintf("%s of %s are spent (--max-usd)", usd_text(s, r->usd),
                     usd_text(t, j->max_usd));
  if (j->idle_s > 0 && wall_s() - w->line_at > j->idle_s)
    return xasprintf("no rank has printed a line for %s (--idle)", time_text(s, j->idle_s));
  return NULL;
}

/* Tells the engine to stop, after a while with force. */
static void stop_if(Watch *w) {
  if (!w->stopped_at && asked_to_stop) w->stop_why = xstrdup("it was stopped by hand");
  if (!w->stopped_at && !w->stop_why) w->stop_why = limit(w);
  if (!w->stop_why) return;
  double now = wall_s();
  bool hard = w->stopped_at && (now > w->stopped_at + 30 || asked_to_stop > 1);
  if (!w->stopped_at) {
    fprintf(stderr, "%sweft launch: stopping: %s\n", w->live ? "\r\033[K" : "", w->stop_why);
    w->stopped_at = now;
    w->engine->stop(w->r, false);
  } else if (hard) {
    w->engine->stop(w->r, true);
    w->stopped_at = now;
  }
}

static void nap(double seconds) {
  struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - floor(seconds)))};
  nanosleep(&t, NULL);
}

static Err *until_end(Watch *w, End *end) {
  bool slow = w->engine == &engine_slurm;
  double asked = 0;
  *end = (End){0};
  while (!end->kind) {
    nap(0.1);
    lines(w, false);
    update(w);
    show(w);
    save(w, false);
    stop_if(w);
    if (slow && wall_s() < asked + 1) continue;
    asked = wall_s();
    TRY(w->engine->poll(w->r, end));
  }
  nap(0.05);
  lines(w, true);
  update(w);
  return NULL;
}

/* Records of the try before, out of the way. */
static void clean(const Run *r) {
  for (int i = 0; i < r->procs; i++) {
    char *name = xasprintf("ranks/%d.rc", i), *path = run_path(r, name);
    unlink(path);
    free(name), free(path);
  }
  char *rc = run_path(r, "job.rc");
  unlink(rc);
  free(rc);
}

static Err *begin(Watch *w) {
  Run *r = w->r;
  clean(r);
  TRY(scripts_write(r));
  progress_new(&w->progress);
  w->line_at = w->shown_at = wall_s();
  run_row_set(&r->row.state, "running");
  free(r->row.why), r->row.why = NULL;
  TRY(w->engine->start(r));
  save(w, true);
  return NULL;
}

/* Whether it is worth another try; says so. */
static bool again(Watch *w, const End *end, double step_before) {
  Run *r = w->r;
  if (end->kind != END_TAKEN || w->stop_why) return false;
  if (r->row.attempt >= r->job->restarts) return false;
  bool further = !(r->row.step <= step_before);
  if (r->row.attempt >= 2 && !further) {
    fprintf(stderr,
            "weft launch: %s; it gets no further than step %.0f, so it is not started again\n",
            end->why, r->row.step);
    return false;
  }
  r->row.attempt++;
  fprintf(stderr, "%sweft launch: %s; start %.0f of %d more\n", w->live ? "\r\033[K" : "", end->why,
          r->row.attempt, r->job->restarts);
  return true;
}

static Err *verdict(Watch *w, End *end, int *status) {
  RunRow *r = &w->r->row;
  Err *e = NULL;
  *status = end->status;
  const char *state = "done";
  if (w->stop_why) {
    state = "stopped";
    *status = 128 + SIGTERM; /* wherever it was when it was told */
    e = err_new(ERR_CANCELLED, "the run was stopped: %s", w->stop_why);
    run_row_set(&r->why, "%s", w->stop_why);
  } else if (end->kind != END_GOOD) {
    state = end->kind == END_REFUSED ? "refused" : end->kind == END_TAKEN ? "killed" : "failed";
    e = err_new(end->kind == END_REFUSED ? ERR_PRECONDITION : ERR_ABORTED, "%s", end->why);
    if (end->kind != END_REFUSED)
      err_hint(e, "%s/logs has what its ranks said%s", w->r->dir,
               end->kind == END_TAKEN && !w->r->job->restarts ? "; --restarts N starts it again"
                                                              : "");
    run_row_set(&r->why, "%s", end->why);
  }
  run_row_set(&r->state, "%s", state);
  free(end->why);
  return e;
}

static void totals(const Watch *w) {
  const RunRow *r = &w->r->row;
  Buf o = {0};
  progress_words(r, &o);
  fprintf(stderr, "weft launch: run %lld %s: %s\n  %s\n", (long long)r->id, r->state, o.p,
          w->r->dir);
  buf_free(&o);
}

Err *watch(Run *r, int *status) {
  Watch w = {.r = r,
             .engine = engine_of(r->job->engine),
             .begun = wall_s(),
             .live = isatty(2) && !r->job->detach};
  struct sigaction act = {.sa_handler = on_signal};
  sigaction(SIGINT, &act, NULL);
  sigaction(SIGTERM, &act, NULL);
  w.logs = logs_open(r->dir, r->procs, -1, w.engine->logs);
  End end = {0};
  double step;
  Err *e = NULL;
  do {
    step = r->row.step;
    free(end.why);
    e = begin(&w);
    if (!e) e = until_end(&w, &end);
  } while (!e && again(&w, &end, step));
  if (!e) e = verdict(&w, &end, status);
  else run_row_set(&r->row.state, "refused"), run_row_set(&r->row.why, "%s", e->msg);
  if (w.live) fputs("\r\033[K", stderr);
  save(&w, true);
  totals(&w);
  logs_close(w.logs);
  free(w.stop_why);
  return e;
}
