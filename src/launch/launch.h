/* launch: a command on many hosts, by an engine that is there already (this machine, OpenMPI, Slurm,
 * SkyPilot), from its plan to its run folder.
 *
 *   LaunchJob job = {.engine = LAUNCH_SLURM, .nodes = 2, .procs = 2, .cmd = argv};
 *   int status;  launch_run(&job, &status);       // returns when the run has ended
 *
 * Run folder  RUN/ has all of a run: work/ (the program, staged) and data/, job.sh, rank.sh and check.sh
 *             (what the engine starts: plain shell), logs/rank-N.log, ranks/N.rc (how each ended), out/
 *             (what the command leaves: WEFT_RUN_OUT, `{out}` in its arguments). Hosts of mpi and slurm
 *             must all see it; sky copies it there and back.
 * Checks      before the command, every host says what it has: weft, Python, JAX, PyTorch, driver,
 *             devices. Hosts that differ, or have too little, end the run by name (scripts.c).
 * Ranks       the command finds the names of torchrun (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR,
 *             MASTER_PORT) and JAX's (JAX_COORDINATOR_ADDRESS) besides the engine's own.
 * Restarts    a rank that a signal killed, or a job that its engine took away (preempted, node failed), starts
 *             again, from the checkpoint where the command has one; a command that ends with an error
 *             does not.
 * History     every run is a row of an SQLite file (history.h), which `weft runs` lists.
 * Threads     one run a process: launch_run handles SIGINT and SIGTERM while it runs.
 */
#ifndef WEFT_LAUNCH_LAUNCH_H
#define WEFT_LAUNCH_LAUNCH_H

#include "chip/chip.h"

typedef enum LaunchEngine { LAUNCH_LOCAL, LAUNCH_MPI, LAUNCH_SLURM, LAUNCH_SKY } LaunchEngine;
const char *launch_engine_name(LaunchEngine e); /* "local", "mpi", "slurm", "sky" */

enum { LAUNCH_NAME = 64 };

/* What was expected of the run; NaN, 0 or "": not told. */
typedef struct LaunchPlan {
  char model[LAUNCH_NAME], chip[LAUNCH_NAME];
  int chips;
  int machine_chips; /* of each machine; 0: as the chip's usual server */
  double step_s, steps;
  double ratio;        /* of earlier runs' steps, measured by planned, that is in step_s */
  double seconds, usd; /* of the whole run */
  double usd_hour;     /* of all machines */
  bool script;         /* the folder has a train.sh */
} LaunchPlan;

/* From what `weft plan --json` printed, or a folder of `weft plan --emit`. errors: no such file; ERR_INVALID
 * a file that is no plan, or a plan without a choice. */
Err *launch_plan_read(const char *path, LaunchPlan *out);
/* From chips alone: their price. */
void launch_plan_chips(const ChipRef *chips, bool spot, LaunchPlan *out);

typedef struct LaunchJob {
  LaunchEngine engine;
  const char *name;     /* NULL: of the command */
  char *const *cmd;     /* NULL after the last */
  LaunchPlan plan;      /* all zero: none */
  const char *plan_dir; /* a folder of --emit; NULL: none */
  int nodes;            /* machines; 0: 1, or as the plan has it */
  int procs;            /* processes in all; 0: one a machine */
  int gpus; /* accelerators that each machine must have; -1: as the plan has it, 0: not asked */
  const char *hosts;  /* mpi: "a:2,b:2"; NULL: this machine */
  const char *work;   /* folder with the program: copied to RUN/work, where the command runs; NULL:
                           it runs where it was started, nothing is copied */
  const char *data;   /* file or folder: copied to RUN/data; NULL: none */
  const char *dir;    /* the run folder; NULL: runs/NAME-DATE */
  const char *resume; /* arguments added after a restart when `checkpoint` is there */
  const char *checkpoint;
  int restarts;                  /* at most */
  double max_s, max_usd, idle_s; /* stops by itself; 0: never. idle: since the last line of a log */
  const char *partition, *account,
      *more; /* Slurm's; more: further options of sbatch, of mpirun, of sky */
  bool spot;
  bool quiet;  /* no lines of ranks, only progress */
  bool dry;    /* writes the run folder, says what would be started, starts nothing */
  bool detach; /* goes on in the background; launch_run returns at once */
} LaunchJob;

/* *status: the command's exit status; 0 when all ranks ended well. errors ERR_INVALID a job that makes no
 * sense; ERR_NOT_FOUND an engine that is not there, with what to install; ERR_PRECONDITION hosts that
 * differ or lack something; ERR_ABORTED a run that was killed, stopped or ran out of restarts. */
Err *launch_run(const LaunchJob *job, int *status);

/* Of a run by number, name or folder; NULL: the last one (logs), all that run (status), the one that runs
 * (stop; INVALID where several do, or several have that name). */
Err *launch_status(const char *which, Buf *out);
Err *launch_logs(const char *which, int rank, bool follow); /* rank -1: all; to standard output */
Err *launch_stop(const char *which);

/* How long steps of a model took on chips that were checked to be there, by what was planned without it: for
 * plans to come. Runs that ended well and did some steps count. */
typedef struct LaunchMeasured {
  char chip[LAUNCH_NAME];
  double ratio; /* the median */
  int runs;
} LaunchMeasured;
typedef VEC(LaunchMeasured) LaunchMeasures;
/* errors as history_open's: no SQLite. */
Err *launch_measured(const char *model, LaunchMeasures *out);

/* The table of `weft runs`, newest first; which: everything known of one. */
Err *launch_history(const char *which, bool json, Buf *out);

#endif
