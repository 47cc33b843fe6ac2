/* The engines that start processes: this machine, OpenMPI, SkyPilot. Slurm is in slurm.c. */
#include <stdlib.h>
#include <unistd.h>

#include "launch/launch_priv.h"

static Err *start_job(Run *r) {
  char *job = run_path(r, "job.sh");
  char *const argv[] = {"bash", job, NULL};
  Err *e = child_start(r, argv);
  free(job);
  return e;
}

/* ---- this machine ------------------------------------------------------------------------------- */

static Err *local_ready(const Run *r) {
  if (r->nodes > 1)
    return err_hint(err_new(ERR_INVALID,
                            "%d machines, but the engine 'local' starts processes on this one",
                            r->nodes),
                    "--engine mpi, slurm or sky; --procs %d for as many processes here", r->nodes);
  return NULL;
}

static void local_functions(const Run *r, Buf *o) {
  buf_printf(
      o,
      "each_host() { \"$@\"; }\n"
      "# All ranks; when one fails the others are told to stop.\n"
      "all_ranks() {\n"
      "  local rank pids= status=0 one\n"
      "  trap 'status=143; kill $pids 2>/dev/null' TERM\n"
      "  for ((rank = 0; rank < %d; rank++)); do WEFT_RANK=$rank \"$@\" & pids+=\" $!\"; done\n"
      "  for ((rank = 0; rank < %d; rank++)); do\n"
      "    wait -n; one=$?\n"
      "    if [ $one -ne 0 ] && [ $status -eq 0 ]; then status=$one; kill $pids 2>/dev/null; fi\n"
      "  done\n"
      "  wait\n"
      "  return $status\n"
      "}\n",
      r->procs, r->procs);
}

const Engine engine_local = {.name = "local",
                             .ready = local_ready,
                             .functions = local_functions,
                             .rank = "$WEFT_RANK",
                             .local_rank = "$WEFT_RANK",
                             .host = "$(hostname)",
                             .start = start_job,
                             .poll = child_poll,
                             .stop = child_stop};

/* ---- OpenMPI ------------------------------------------------------------------------------------ */

static Err *mpi_ready(const Run *r) {
  (void)r;
  if (child_exists("mpirun")) return NULL;
  return err_hint(err_new(ERR_NOT_FOUND, "there is no mpirun here"),
                  "apt install openmpi-bin, or another --engine: local, slurm, sky");
}

static void mpi_functions(const Run *r, Buf *o) {
  const LaunchJob *j = r->job;
  if (geteuid() == 0) /* containers have no other user */
    buf_cstr(o, "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n");
  if (j->hosts) /* a host that is not there, or asks for a password, is said, not waited for */
    buf_cstr(o, "[ -n \"${OMPI_MCA_plm_rsh_agent-}\" ] || export OMPI_MCA_plm_rsh_args="
                "\"${OMPI_MCA_plm_rsh_args--o ConnectTimeout=15 -o BatchMode=yes}\"\n");
  buf_cstr(o, "mpi=(mpirun -x MASTER_ADDR -x MASTER_PORT");
  if (j->hosts) buf_cstr(o, " --host "), buf_shell(o, j->hosts);
  else buf_cstr(o, " --oversubscribe");
  if (j->more) buf_printf(o, " %s", j->more);
  buf_cstr(o, ")\n");
  if (j->hosts) buf_printf(o, "MASTER_ADDR=%.*s\n", (int)strcspn(j->hosts, ":,"), j->hosts);
  buf_printf(o, "each_host() { \"${mpi[@]}\" -np %d --map-by ppr:1:node \"$@\"; }\n", r->nodes);
  buf_printf(
      o,
      "all_ranks() { trap 'kill $pid' TERM; \"${mpi[@]}\" -np %d \"$@\" & pid=$!; wait $pid; "
      "local status=$?; wait $pid 2>/dev/null; return $status; }\n",
      r->procs);
}

const Engine engine_mpi = {.name = "mpi",
                           .ready = mpi_ready,
                           .functions = mpi_functions,
                           .rank = "$OMPI_COMM_WORLD_RANK",
                           .local_rank = "$OMPI_COMM_WORLD_LOCAL_RANK",
                           .host = "$(hostname)",
                           .start = start_job,
                           .poll = child_poll,
                           .stop = child_stop};
