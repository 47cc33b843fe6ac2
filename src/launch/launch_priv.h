/* Private to src/launch: what its files share. */
#ifndef WEFT_LAUNCH_LAUNCH_PRIV_H
#define WEFT_LAUNCH_LAUNCH_PRIV_H

#include "base/path.h"
#include "base/units.h"
#include "base/system.h"
#include "launch/history.h"

#include <stdio.h>
#include <sys/types.h>

typedef struct Run {
  const LaunchJob *job;
  int nodes, procs;
  int gpus;     /* of each machine */
  char *dir;    /* absolute */
  char *data;   /* what is staged, absolute; NULL: nothing */
  char *resume; /* arguments for a restart; NULL: none */
  char *saved;  /* the checkpoint that shows that there is one to go on from; NULL: none */
  RunRow row;   /* as it stands in the history */
  History *h;   /* NULL: none is kept */
  pid_t child;  /* the engine's command; 0: none */
  bool stopping;
} Run;

/* ---- how a try ended ---------------------------------------------------------------------------- */

typedef enum EndKind {
  END_NOT,     /* it runs */
  END_GOOD,    /* all ranks left with 0 */
  END_FAILED,  /* the command ended with an error: would again */
  END_TAKEN,   /* killed, preempted, host lost: may start again */
  END_REFUSED, /* the check of hosts, or the engine */
} EndKind;
typedef struct End {
  EndKind kind;
  int status; /* of the rank that ended first with another than 0 */
  char *why;  /* a sentence; the caller frees */
} End;

/* ---- engines ------------------------------------------------------------------------------------ */

typedef struct Engine {
  const char *name;
  /* Its commands are there and answer. */
  Err *(*ready)(const Run *r);
  /* Lines of job.sh: functions each_host and all_ranks that run their arguments there. */
  void (*functions)(const Run *r, Buf *o);
  const char *rank, *local_rank; /* in shell: what a rank finds its numbers in */
  const char *host;
  Err *(*start)(Run *r);
  Err *(*poll)(Run *r, End *out);
  void (*stop)(Run *r, bool hard);
  const char *
      logs; /* what lies in RUN/logs/job.log is shown as well: by this name; NULL: only on errors */
} Engine;
extern const Engine engine_local, engine_mpi, engine_slurm, engine_sky;
const Engine *engine_of(LaunchEngine e);

/* child.c: engines whose command is a child of this process. */
Err *child_start(Run *r, char *const *argv);
Err *child_poll(Run *r, End *out);
void child_stop(Run *r, bool hard);
/* Standard output of a command, trimmed; false: it is not there or failed, *out has what it said. */
bool child_says(char *const *argv, char **out);
bool child_exists(const char *program); /* in PATH */
/* How the ranks' own records say that they ended: the first with a status other than 0. */
void ranks_end(const Run *r, End *out);
void job_ended(const Run *r, End *out); /* by job.rc, or the ranks where there is none */

/* ---- files of a run (scripts.c, stage.c) -------------------------------------------------------- */

/* job.sh, rank.sh, check.sh, check.awk for this try. */
Err *scripts_write(const Run *r);
Err *stage(Run *r);                             /* the folder, the program, the data */
char *run_path(const Run *r, const char *name); /* RUN/name; the caller frees */
bool run_number(const Run *r, const char *name, double *out); /* the first in that file */

/* ---- lines of ranks (logs.c) -------------------------------------------------------------------- */

typedef struct Logs Logs;
/* rank -1: all. own: RUN/logs/job.log too, by that name. */
Logs *logs_open(const char *dir, int procs, int rank, const char *own);
void logs_close(Logs *l);
/* What has come since: each line with its rank, to f (NULL: not shown) and to see (NULL: nobody), which gets
 * rank -1 for the engine's own. all: a last line without an end as well. Returns the lines. */
typedef void LogLine(void *arg, int rank, const char *line);
int logs_read(Logs *l, bool all, FILE *f, LogLine *see, void *arg);

/* ---- progress.c --------------------------------------------------------------------------------- */

typedef struct Progress {
  double step, steps;     /* NaN: no line has told */
  double first, first_at; /* step and time of the first line of this try */
  double at;              /* of the last */
  double step_s;          /* measured; NaN: not yet */
} Progress;
void progress_new(Progress *p);
void progress_line(Progress *p, double now, const char *line);
/* "step 120 of 1404, 1.21 s a step (plan 1.10 s), 3 min of 26 min, $0.41 of $3.20" */
void progress_words(const RunRow *r, Buf *o);

/* ---- watch.c ------------------------------------------------------------------------------------ */
Err *watch(Run *r, int *status);

double wall_s(void);
double process_start(pid_t pid); /* of the kernel's clock ticks; NaN: there is none */
const char *usd_text(char s[UNITS_TEXT], double usd);
const char *time_text(char s[UNITS_TEXT], double seconds);

#endif
