/* A job made complete, its folder made, its row begun; then it is watched. */
#include "launch/launch.h"

#include "base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/launch_priv.h"

/* ---- weft's own training ------------------------------------------------------------------------ */

static const char *option_of(char *const *cmd, const char *name) {
  for (char *const *a = cmd; *a; a++) {
    size_t n = strlen(name);
    if (!strcmp(*a, name)) return a[1];
    if (!strncmp(*a, name, n) && (*a)[n] == '=') return *a + n + 1;
  }
  return NULL;
}

static bool is_weft_train(char *const *cmd) {
  return !strcmp(base_name(cmd[0]), "weft") && cmd[1] && !strcmp(cmd[1], "train");
}

/* What goes on from where: as told, or as weft train has it. */
static void checkpoints(Run *r) {
  const LaunchJob *j = r->job;
  if (j->resume) r->resume = xstrdup(j->resume);
  if (j->checkpoint) r->saved = xstrdup(j->checkpoint);
  const char *out = is_weft_train(j->cmd) ? option_of(j->cmd, "--out") : NULL;
  if (!out || j->resume) return;
  Buf quoted = {0};
  if (!strncmp(out, "{out}", 5)) buf_printf(&quoted, "\"$run\"/out%s", out + 5);
  else buf_shell(&quoted, out);
  r->resume = xasprintf("--resume %s", quoted.p);
  r->saved = xasprintf("%s/checkpoint.safetensors", out);
  buf_free(&quoted);
}

/* ---- sizes -------------------------------------------------------------------------------------- */

/* Chips of one machine. */
static int chips_of_host(const Chip *c, const LaunchPlan *p) {
  if (p->machine_chips) return p->machine_chips;
  const Server *s = chip_server(c);
  int whole = c->kind == CHIP_TPU ? 4 : s ? (int)server_num(s, "host_gpus", s->gpus) : 8;
  return MIN(whole, p->chips);
}

static int hosts_named(const char *hosts) {
  int n = 0;
  for (const char *p = hosts; *p; p += strcspn(p, ","), p += *p == ',') n++;
  return n;
}

static Err *sizes(Run *r) {
  const LaunchJob *j = r->job;
  r->nodes = j->nodes;
  if (!r->nodes && j->hosts) r->nodes = hosts_named(j->hosts);
  r->gpus = MAX(0, j->gpus);
  if (j->plan.chips) {
    const Chip *c;
    TRY(chip_find(j->plan.chip, &c));
    int each = chips_of_host(c, &j->plan);
    if (!r->nodes && j->engine != LAUNCH_LOCAL) r->nodes = (j->plan.chips + each - 1) / each;
    if (j->gpus < 0) r->gpus = j->engine == LAUNCH_LOCAL ? j->plan.chips : each;
  }
  r->nodes = MAX(1, r->nodes);
  r->procs = j->procs ? j->procs : r->nodes;
  if (r->procs < r->nodes || r->procs % r->nodes)
    return err_hint(err_new(ERR_INVALID, "%d processes over %d machines", r->procs, r->nodes),
                    "--procs with a multiple of %d", r->nodes);
  return NULL;
}

/* ---- the row ------------------------------------------------------------------------------------ */

/* What runs: the model, the script or the module, else the command. An option is no name. */
static const char *what_runs(char *const *cmd) {
  bool train = is_weft_train(cmd), python = !strncmp(base_name(cmd[0]), "python", 6);
  const char *first = cmd[1] ? cmd[1 + train] : NULL;
  if (python && first && !strcmp(first, "-m") && cmd[2]) return cmd[2];
  if ((train || python) && first && *first != '-') return base_name(first);
  return train ? "train" : base_name(cmd[0]);
}

static void run_name(const LaunchJob *j, char to[LAUNCH_NAME]) {
  const char *from = j->name ? j->name : what_runs(j->cmd);
  from += strspn(from, "-"); /* of a folder that commands do not take for an option */
  int n = 0;
  for (; *from && n < LAUNCH_NAME - 1; from++) {
    char c = *from;
    bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    to[n++] = plain ? c : '-';
  }
  to[n] = 0;
}

static void begin_row(Run *r) {
  const LaunchJob *j = r->job;
  RunRow *w = &r->row;
  char host[256] = "";
  Buf cmd = {0};
  for (char *const *a = j->cmd; *a; a++) buf_printf(&cmd, "%s%s", a == j->cmd ? "" : " ", *a);
  gethostname(host, sizeof host - 1);
  run_row_set(&w->model, "%s", j->plan.model);
  run_row_set(&w->chip, "%s", j->plan.chip);
  run_row_set(&w->engine, "%s", launch_engine_name(j->engine));
  run_row_set(&w->command, "%s", cmd.p);
  run_row_set(&w->dir, "%s", r->dir);
  run_row_set(&w->host, "%s", host);
  run_row_set(&w->state, "starting");
  buf_free(&cmd);
  bool planned = j->plan.chips > 0;
  w->chips = j->plan.chips, w->nodes = r->nodes, w->procs = r->procs;
  w->started = wall_s(), w->seconds = 0, w->attempt = 0, w->step = w->step_s = NAN;
  w->steps = planned ? j->plan.steps : NAN;
  w->usd_hour = planned ? j->plan.usd_hour : NAN, w->usd = NAN;
  w->plan_step_s = planned ? j->plan.step_s : NAN;
  w->plan_ratio = planned ? j->plan.ratio : NAN, w->gpus = r->gpus;
  w->plan_seconds = planned ? j->plan.seconds : NAN;
  w->plan_usd = planned ? j->plan.usd : NAN;
  w->pid = getpid(), w->pid_start = process_start(getpid());
}

/* Without SQLite the run is started all the same. */
static void begin_history(Run *r) {
  Err *e = history_open(&r->h);
  if (!e) e = history_put(r->h, &r->row);
  if (e) err_report(err_wrap(e, "no history is kept of this run"));
}

/* ---- starting ----------------------------------------------------------------------------------- */

/* The parent returns *child > 0; the child goes on with the log for its output. */
static Err *detach(const Run *r, pid_t *child) {
  char *path = run_path(r, "logs/launch.log");
  int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666),
      null = open("/dev/null", O_RDONLY);
  free(path);
  if (log < 0) return err_errno("cannot write the run folder %s", r->dir);
  fflush(NULL);
  *child = fork();
  if (*child == 0) {
    setsid();
    dup2(null, 0), dup2(log, 1), dup2(log, 2);
  }
  close(log), close(null);
  return *child < 0 ? err_errno("cannot go on in the background") : NULL;
}

static Err *in_background(Run *r, int *status) {
  pid_t child = 0;
  /* the child opens the history for itself: SQLite's handles do not survive a fork */
  TRY(detach(r, &child));
  if (child > 0) {
    int64_t id = 0;
    for (int i = 0; i < 50 && !id; i++) {
      usleep(100000);
      double v;
      if (run_number(r, "id", &v)) id = (int64_t)v;
      if (waitpid(child, NULL, WNOHANG) == child) break;
    }
    printf("run %lld in %s\n  weft launch status %lld; weft launch logs %lld --follow; weft launch "
           "stop %lld\n",
           (long long)id, r->dir, (long long)id, (long long)id, (long long)id);
    return NULL;
  }
  r->row.pid = getpid(), r->row.pid_start = process_start(getpid());
  begin_history(r);
  char *path = run_path(r, "id"), text[32];
  int n = snprintf(text, sizeof text, "%lld\n", (long long)r->row.id);
  Err *e = file_write(path, text, (size_t)n);
  free(path);
  if (!e) e = watch(r, status);
  if (e) err_report(e);
  fflush(NULL);
  _exit(*status ? *status : e ? 1 : 0);
}

Err *sky_write(const Run *r);

/* Options that this engine, or a run without a price, could not heed. */
static Err *heeded(const LaunchJob *j) {
  const struct {
    const char *option, *of;
    bool asked, heeded;
  } all[] = {
      {"--hosts", "mpi", j->hosts != NULL, j->engine == LAUNCH_MPI},
      {"--partition", "slurm", j->partition != NULL, j->engine == LAUNCH_SLURM},
      {"--account", "slurm", j->account != NULL, j->engine == LAUNCH_SLURM},
      {"--more", "mpi, slurm or sky", j->more != NULL, j->engine != LAUNCH_LOCAL},
  };
  for (int i = 0; i < COUNT_OF(all); i++)
    if (all[i].asked && !all[i].heeded)
      return err_hint(err_new(ERR_INVALID, "%s is of --engine %s, and this is %s", all[i].option,
                              all[i].of, launch_engine_name(j->engine)),
                      "leave it out, or say the --engine");
  if (j->max_usd > 0 && !(j->plan.chips && j->plan.usd_hour > 0))
    return err_hint(err_new(ERR_INVALID, "--max-usd needs a price: %s",
                            j->plan.chips ? "none is listed for these chips"
                                          : "what runs here costs nothing that is known"),
                    "--chips CHIP:N or --plan say what is rented; --max-time bounds any run");
  if (!j->resume != !j->checkpoint && !is_weft_train(j->cmd))
    return err_hint(err_new(ERR_INVALID, "--%s without --%s", j->resume ? "resume" : "checkpoint",
                            j->resume ? "checkpoint" : "resume"),
                    "a restart adds the arguments of --resume where the path of --checkpoint is");
  return NULL;
}

static Err *go(Run *r, int *status) {
  const LaunchJob *j = r->job;
  const Engine *e = engine_of(j->engine);
  TRY(heeded(j));
  TRY(sizes(r));
  if (!j->dry) TRY(e->ready(r));
  TRY(stage(r));
  checkpoints(r);
  begin_row(r);
  TRY(scripts_write(r));
  if (j->engine == LAUNCH_SKY) TRY(sky_write(r));
  if (j->dry) {
    printf("%s: %d process%s on %d machine%s by %s; nothing was started\n  %s/job.sh is what would "
           "run\n",
           r->row.name, r->procs, r->procs > 1 ? "es" : "", r->nodes, r->nodes > 1 ? "s" : "",
           e->name, r->dir);
    return NULL;
  }
  if (j->detach) return in_background(r, status);
  begin_history(r);
  fprintf(stderr, "weft launch: run %lld, %d process%s on %d machine%s by %s, in %s\n",
          (long long)r->row.id, r->procs, r->procs > 1 ? "es" : "", r->nodes,
          r->nodes > 1 ? "s" : "", e->name, r->dir);
  return watch(r, status);
}

Err *launch_run(const LaunchJob *job, int *status) {
  Run r = {.job = job};
  *status = 0;
  if (!job->cmd || !job->cmd[0])
    return err_hint(err_new(ERR_INVALID, "no command to run"), "weft launch ... -- COMMAND");
  char name[LAUNCH_NAME];
  run_name(job, name);
  run_row_set(&r.row.name, "%s", name);
  Err *e = go(&r, status);
  history_close(r.h);
  run_row_free(&r.row);
  free(r.dir), free(r.data), free(r.resume), free(r.saved);
  return e;
}
