/* Slurm: sbatch, squeue, scontrol, scancel. No accounting database is needed: job.sh leaves its status in the
 * run folder, and a job that is gone without it was taken away. */
#include <stdlib.h>

#include "launch/launch_priv.h"

static Err *slurm_ready(const Run *r) {
  (void)r;
  if (!child_exists("sbatch"))
    return err_hint(
        err_new(ERR_NOT_FOUND, "there is no sbatch here: Slurm's commands are missing"),
        "run this on a login node of the cluster, apt install slurm-client, or another --engine: "
        "local, mpi, sky");
  char *const ask[] = {"sinfo", "-h", "-o", "%P %D", NULL};
  char *said;
  bool good = child_says(ask, &said);
  Err *e = good ? NULL
                : err_hint(err_new(ERR_UNAVAILABLE, "Slurm does not answer: %s", said),
                           "is slurmctld running, and SLURM_CONF right? `scontrol ping` tells");
  free(said);
  return e;
}

static void slurm_functions(const Run *r, Buf *o) {
  /* by the address that Slurm itself uses: not every node's name is known to the resolver */
  buf_cstr(o, "MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n1)\n"
              "addr=$(scontrol -o show node \"$MASTER_ADDR\" | sed -n 's/.* NodeAddr=\\([^ "
              "]*\\).*/\\1/p')\n"
              "MASTER_ADDR=${addr:-$MASTER_ADDR}\n");
  buf_printf(o, "each_host() { srun --nodes=%d --ntasks=%d --ntasks-per-node=1 \"$@\"; }\n",
             r->nodes, r->nodes);
  buf_printf(o, "all_ranks() { srun --kill-on-bad-exit=1 --nodes=%d --ntasks=%d \"$@\"; }\n",
             r->nodes, r->procs);
}

static Err *slurm_start(Run *r) {
  const LaunchJob *j = r->job;
  Buf o = {0};
  char *job = run_path(r, "job.sh"), *log = run_path(r, "logs/job.log");
  buf_printf(&o, "exec sbatch --parsable --nodes=%d --ntasks=%d --open-mode=append --job-name=",
             r->nodes, r->procs);
  buf_shell(&o, r->row.name);
  buf_cstr(&o, " --output="), buf_shell(&o, log);
  if (r->gpus > 0) buf_printf(&o, " --gpus-per-node=%d", r->gpus);
  if (j->partition) buf_cstr(&o, " --partition="), buf_shell(&o, j->partition);
  if (j->account) buf_cstr(&o, " --account="), buf_shell(&o, j->account);
  if (j->max_s > 0) buf_printf(&o, " --time=%d", (int)(j->max_s / 60) + 2);
  if (j->more) buf_printf(&o, " %s", j->more);
  buf_byte(&o, ' '), buf_shell(&o, job);
  char *const argv[] = {"sh", "-c", o.p, NULL};
  char *said;
  bool good = child_says(argv, &said);
  Err *e = NULL;
  if (!good)
    e = err_hint(err_new(ERR_INVALID, "Slurm refused the job: %s", said),
                 "`sinfo` lists partitions and nodes");
  else said[strcspn(said, ";")] = 0, run_row_set(&r->row.job, "%s", said);
  free(said), free(job), free(log);
  buf_free(&o);
  return e;
}

/* JobState of a job that the queue has forgotten; "" when nobody knows. */
static void last_state(const Run *r, char to[64]) {
  char *const ask[] = {"scontrol", "-o", "show", "job", r->row.job, NULL};
  char *said;
  *to = 0;
  if (child_says(ask, &said)) {
    const char *p = strstr(said, "JobState=");
    if (p) snprintf(to, 64, "%.*s", (int)strcspn(p + 9, " "), p + 9);
  }
  free(said);
}

static void gone(const Run *r, End *out) {
  double status;
  char state[64];
  last_state(r, state);
  bool own = !strcmp(state, "FAILED") || !strcmp(state, "COMPLETED") || !*state;
  if (run_number(r, "job.rc", &status) && own) {
    job_ended(r, out);
  } else if (!strcmp(state, "TIMEOUT")) {
    *out = (End){END_FAILED, 1, xasprintf("Slurm job %s ran out of its time limit", r->row.job)};
  } else {
    *out = (End){END_TAKEN, 1,
                 xasprintf("Slurm took job %s away%s%s", r->row.job, *state ? ": " : "", state)};
  }
}

static Err *slurm_poll(Run *r, End *out) {
  char *const ask[] = {"squeue", "-h", "-j", r->row.job, "-o", "%T %r", NULL};
  char *said;
  *out = (End){0};
  bool good = child_says(ask, &said);
  bool unknown = !good && strstr(said, "Invalid job id");
  if (good && *said) {
    char state[64] = "";
    sscanf(said, "%63s", state);
    if (strstr("COMPLETED FAILED CANCELLED TIMEOUT NODE_FAIL PREEMPTED BOOT_FAIL OUT_OF_MEMORY",
               state))
      gone(r, out);
    else if (strcmp(state, "RUNNING")) run_row_set(&r->row.why, "in Slurm's queue: %s", said);
    else if (r->row.why) free(r->row.why), r->row.why = NULL;
  } else if (good || unknown) {
    gone(r, out);
  } /* else the controller is silent for a while: ask again */
  free(said);
  return NULL;
}

static void slurm_stop(Run *r, bool hard) {
  char *const polite[] = {"scancel", r->row.job, NULL};
  char *const kill[] = {"scancel", "--signal=KILL", "--full", r->row.job, NULL};
  char *said;
  if (!r->row.job) return;
  child_says(hard ? kill : polite, &said);
  free(said);
}

const Engine engine_slurm = {.name = "slurm",
                             .ready = slurm_ready,
                             .functions = slurm_functions,
                             .rank = "$SLURM_PROCID",
                             .local_rank = "$SLURM_LOCALID",
                             .host = "${SLURMD_NODENAME:-$(hostname)}",
                             .start = slurm_start,
                             .poll = slurm_poll,
                             .stop = slurm_stop};
