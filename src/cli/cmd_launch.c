/* weft launch: a command on many hosts, by an engine that is there already. */
#include "cli/cli.h"

#include "launch/launch.h"

#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "usage: weft launch [options] -- COMMAND...      starts it on all hosts, shows their lines, "
    "brings back what it leaves\n"
    "       weft launch status [RUN]                 what runs, how far, what it has cost\n"
    "       weft launch logs [RUN] [--rank N] [--follow]\n"
    "       weft launch stop [RUN]\n"
    "\n"
    "  --engine E         local (default: processes on this machine), mpi (OpenMPI), slurm, sky "
    "(SkyPilot)\n"
    "  --plan FILE|DIR    what weft plan --json printed, or a folder of weft plan --emit (without "
    "COMMAND: its\n"
    "                     train.sh): chips and machines, and what time and money are shown "
    "against\n"
    "  --chips CHIP:N     chips without a plan: machines, price\n"
    "  --nodes N          machines; otherwise as many as hold the chips\n"
    "  --procs N          processes in all; otherwise one a machine\n"
    "  --hosts A:2,B:2    mpi: hosts and their slots\n"
    "  --gpus N           accelerators that every machine must have (otherwise as --plan or "
    "--chips say; 0: any)\n"
    "  --work DIR         folder with the program: copied into the run folder, where the command "
    "runs\n"
    "  --data PATH        copied there too: {data} in the command, WEFT_RUN_DATA\n"
    "  --dir DIR          the run folder; otherwise runs/NAME-DATE. {out} in the command, "
    "WEFT_RUN_OUT: what it leaves\n"
    "  --name NAME        of the run\n"
    "  --restarts N       starts again after a kill, a preemption or a lost host, at most so often "
    "(default 3)\n"
    "  --checkpoint PATH --resume ARGS   arguments added on a restart where PATH is there; weft "
    "train --out D needs none\n"
    "  --max-time TIME, --max-usd USD, --idle TIME   stops by itself: after, when spent, when no "
    "rank has said anything for\n"
    "  --spot             spot machines, spot prices\n"
    "  --partition P, --account A    Slurm's\n"
    "  --more ARGS        further options of sbatch, mpirun or sky launch\n"
    "  --detach           goes on in the background\n"
    "  --quiet            progress alone, no lines of ranks\n"
    "  --dry-run          writes the run folder and starts nothing\n"
    "\n"
    "RUN is a number or name of `weft runs`, or a run folder; otherwise the last one, of stop the "
    "one "
    "that runs.\n";

enum {
  O_ENGINE = CLI_FIRST,
  O_PLAN,
  O_CHIPS,
  O_NODES,
  O_PROCS,
  O_HOSTS,
  O_GPUS,
  O_WORK,
  O_DATA,
  O_DIR,
  O_NAME,
  O_RESTARTS,
  O_CHECKPOINT,
  O_RESUME,
  O_MAX_TIME,
  O_MAX_USD,
  O_IDLE,
  O_SPOT,
  O_PARTITION,
  O_ACCOUNT,
  O_MORE,
  O_DETACH,
  O_QUIET,
  O_DRY,
  O_RANK,
  O_FOLLOW
};
#define GIVEN(o) (1u << ((o)-CLI_FIRST))
enum { OF_LOGS = GIVEN(O_RANK) | GIVEN(O_FOLLOW) };

static const struct option options[] = {{"engine", 1, NULL, O_ENGINE},
                                        {"plan", 1, NULL, O_PLAN},
                                        {"chips", 1, NULL, O_CHIPS},
                                        {"chip", 1, NULL, O_CHIPS},
                                        {"nodes", 1, NULL, O_NODES},
                                        {"procs", 1, NULL, O_PROCS},
                                        {"hosts", 1, NULL, O_HOSTS},
                                        {"gpus", 1, NULL, O_GPUS},
                                        {"work", 1, NULL, O_WORK},
                                        {"data", 1, NULL, O_DATA},
                                        {"dir", 1, NULL, O_DIR},
                                        {"name", 1, NULL, O_NAME},
                                        {"restarts", 1, NULL, O_RESTARTS},
                                        {"checkpoint", 1, NULL, O_CHECKPOINT},
                                        {"resume", 1, NULL, O_RESUME},
                                        {"max-time", 1, NULL, O_MAX_TIME},
                                        {"max-usd", 1, NULL, O_MAX_USD},
                                        {"idle", 1, NULL, O_IDLE},
                                        {"spot", 0, NULL, O_SPOT},
                                        {"partition", 1, NULL, O_PARTITION},
                                        {"account", 1, NULL, O_ACCOUNT},
                                        {"more", 1, NULL, O_MORE},
                                        {"detach", 0, NULL, O_DETACH},
                                        {"quiet", 0, NULL, O_QUIET},
                                        {"dry-run", 0, NULL, O_DRY},
                                        {"rank", 1, NULL, O_RANK},
                                        {"follow", 0, NULL, O_FOLLOW},
                                        CLI_HELP_ROW,
                                        {0}};

typedef struct LaunchArgs {
  LaunchJob job;
  const char *plan, *chips;
  unsigned given; /* bits of options */
  int rank;
  bool follow;
} LaunchArgs;

static bool set(const CliArgs *args, int which, LaunchArgs *a) {
  static const char *const engines[] = {"local", "mpi", "slurm", "sky", NULL};
  LaunchJob *j = &a->job;
  int i;
  a->given |= GIVEN(which);
  switch (which) {
  case O_ENGINE:
    i = cli_choice(args, engines);
    if (i >= 0) j->engine = (LaunchEngine)i;
    return i >= 0;
  case O_PLAN: a->plan = optarg; return true;
  case O_CHIPS: a->chips = optarg; return true;
  case O_NODES: return cli_int(args, 1, &j->nodes);
  case O_PROCS: return cli_int(args, 1, &j->procs);
  case O_HOSTS: j->hosts = optarg; return true;
  case O_GPUS: return cli_int(args, 0, &j->gpus);
  case O_WORK: j->work = optarg; return true;
  case O_DATA: j->data = optarg; return true;
  case O_DIR: j->dir = optarg; return true;
  case O_NAME: j->name = optarg; return true;
  case O_RESTARTS: return cli_int(args, 0, &j->restarts);
  case O_CHECKPOINT: j->checkpoint = optarg; return true;
  case O_RESUME: j->resume = optarg; return true;
  case O_MAX_TIME: return cli_duration(args, &j->max_s);
  case O_MAX_USD: return cli_real(args, 0.001, &j->max_usd);
  case O_IDLE: return cli_duration(args, &j->idle_s);
  case O_SPOT: j->spot = true; return true;
  case O_PARTITION: j->partition = optarg; return true;
  case O_ACCOUNT: j->account = optarg; return true;
  case O_MORE: j->more = optarg; return true;
  case O_DETACH: j->detach = true; return true;
  case O_QUIET: j->quiet = true; return true;
  case O_DRY: j->dry = true; return true;
  case O_RANK: return cli_int(args, 0, &a->rank);
  case O_FOLLOW: a->follow = true; return true;
  default: return false;
  }
}

static Err *planned(LaunchArgs *a, char **script) {
  LaunchJob *j = &a->job;
  if (a->plan) TRY(launch_plan_read(a->plan, &j->plan));
  if (a->chips) {
    ChipRef c;
    LaunchPlan alone;
    TRY(chip_parse(a->chips, &c));
    launch_plan_chips(&c, j->spot, &alone);
    if (!a->plan) j->plan = alone;
  }
  static char *own[] = {"bash", "train.sh", NULL};
  if (a->plan && !j->cmd[0] && j->plan.script) {
    j->cmd = own, j->plan_dir = a->plan;
    if (!j->work) j->work = a->plan;
    else *script = own[1] = xasprintf("%s/train.sh", a->plan);
    if (!j->name) j->name = j->plan.model;
  }
  return NULL;
}

static int start(LaunchArgs *a) {
  char *script = NULL;
  int status = 0;
  Err *e = planned(a, &script);
  if (!e) e = launch_run(&a->job, &status);
  free(script);
  if (e) err_report(e);
  return e && !status ? 1 : status;
}

static int done(Err *e, Buf *out) {
  if (out->n) fwrite(out->p, 1, out->n, stdout);
  buf_free(out);
  if (e) err_report(e);
  return e ? 1 : 0;
}

/* The first option that was given and is not of these. */
static int unheeded(const CliArgs *args, const LaunchArgs *a, unsigned of, const char *by) {
  for (const struct option *o = options; o->name; o++)
    if (o->val != CLI_HELP && a->given & GIVEN(o->val) & ~of)
      return cli_wrong(args, "%s does not read --%s", by, o->name);
  return 0;
}

/* status, logs, stop */
static int about(const CliArgs *args, const LaunchArgs *a, const char *verb, const char *which) {
  Buf out = {0};
  bool logs = !strcmp(verb, "logs");
  if (unheeded(args, a, logs ? OF_LOGS : 0, verb)) return 2;
  if (!strcmp(verb, "status")) return done(launch_status(which, &out), &out);
  if (!strcmp(verb, "logs")) return done(launch_logs(which, a->rank, a->follow), &out);
  if (!strcmp(verb, "stop")) return done(launch_stop(which), &out);
  return cli_wrong(args, "'%s': status, logs or stop; a command to start comes after --", verb);
}

static int launch(int argc, char **argv) {
  CliArgs args = {argc, argv, options, 0};
  LaunchArgs a = {.job = {.restarts = 3, .gpus = -1}, .rank = -1};
  int end = 1; /* what comes after -- is the command's */
  while (end < argc && strcmp(argv[end], "--")) end++;
  args.argc = end;
  for (int o; (o = cli_next(&args)) != -1;)
    if (o == CLI_HELP) return fputs(usage, stdout), 0;
    else if (o == '?' || !set(&args, o, &a)) return 2;
  if (optind < end) {
    if (end < argc || optind < end - 2) return cli_wrong(&args, "what is '%s'?", argv[optind]);
    return about(&args, &a, argv[optind], optind + 1 < end ? argv[optind + 1] : NULL);
  }
  a.job.cmd = argv + MIN(end + 1, argc);
  if (unheeded(&args, &a, ~(unsigned)OF_LOGS, "a start")) return 2;
  if (a.plan && a.chips) return cli_wrong(&args, "--plan has its chips: not --chips, too");
  if (!a.job.cmd[0] && !a.plan) return cli_wrong(&args, "which command? weft launch -- COMMAND");
  return start(&a);
}

const CliVerb cli_launch = {
    "launch", "start a command on many hosts: MPI, Slurm, SkyPilot; status, logs, stop", launch};
