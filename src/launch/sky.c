/* SkyPilot: a task that brings the run folder to a cluster of its own, runs there, and brings it back. */
#include <stdlib.h>

#include "launch/launch_priv.h"

static Err *sky_ready(const Run *r) {
  const LaunchPlan *p = &r->job->plan;
  if (!p->chips)
    return err_hint(err_new(ERR_INVALID, "SkyPilot must be told which machines to rent"),
                    "--chips H100:8, or --plan");
  if (r->job->dry || child_exists("sky")) return NULL;
  return err_hint(err_new(ERR_NOT_FOUND, "there is no `sky` here"),
                  "pip install skypilot and `sky check`, or another --engine: local, mpi, slurm");
}

/* As names of its clusters may be. */
static void cluster_name(const Run *r, Buf *o) {
  buf_cstr(o, "weft-");
  for (const char *p = base_name(r->dir); *p && o->n < 40; p++) {
    char c = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;
    buf_byte(o, (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '-');
  }
  while (o->p[o->n - 1] == '-') o->p[--o->n] = 0;
}

static void sky_task(const Run *r, Buf *o) {
  const LaunchJob *j = r->job;
  const Chip *chip;
  Buf name = {0};
  cluster_name(r, &name);
  buf_printf(o, "name: %s\n\nresources:\n  accelerators: ", name.p);
  Err *e = chip_find(j->plan.chip, &chip);
  if (!e) chip_sky(chip, j->plan.chips, r->nodes, o);
  else buf_cstr(o, j->plan.chip), err_free(e);
  buf_printf(o, "\n  use_spot: %s\n  autostop:\n    idle_minutes: %d\n    down: true\n",
             j->spot ? "true" : "false", j->idle_s > 0 ? (int)(j->idle_s / 60) + 1 : 10);
  bool slice = !strncmp(j->plan.chip, "tpu", 3); /* all its hosts are one node */
  buf_printf(o, "\nnum_nodes: %d\n", slice ? 1 : r->nodes);
  buf_cstr(o, "\nfile_mounts:\n  ~/weft-run: ");
  buf_json_str(o, r->dir);
  buf_cstr(o, "\n\nrun: |\n"
              "  export MASTER_ADDR=$(echo \"$SKYPILOT_NODE_IPS\" | head -n1) MASTER_PORT=29500\n"
              "  cd ~/weft-run && mkdir -p logs ranks out\n"
              "  sh check.sh > check-$SKYPILOT_NODE_RANK.txt\n");
  buf_printf(o, "  awk -v hosts=1 -v gpus=%d -v folder=\"$PWD\" -v command=", r->gpus);
  buf_shell(o, j->cmd[0]);
  buf_cstr(o, " -f check.awk check-$SKYPILOT_NODE_RANK.txt || exit 78\n"
              "  tail -n+1 -F logs/rank-$SKYPILOT_NODE_RANK.log 2>/dev/null & tail=$!\n"
              "  sh rank.sh; status=$?\n"
              "  sleep 1; kill $tail\n"
              "  exit $status\n");
  buf_free(&name);
}

static void sky_functions(const Run *r, Buf *o) {
  Buf name = {0};
  cluster_name(r, &name);
  buf_printf(o, "cluster=%s\n", name.p);
  buf_cstr(o, "trap 'sky down -y \"$cluster\"' TERM EXIT\n"
              "each_host() { :; }\n"
              "awk() { :; } # every node checks itself\n"
              "all_ranks() {\n  sky launch -y -c \"$cluster\"");
  if (r->job->more) buf_printf(o, " %s", r->job->more);
  buf_cstr(o, " \"$run/sky.yaml\" &\n"
              "  wait $!\n"
              "  local status=$?\n"
              "  rsync -az --exclude work --exclude data \"$cluster:weft-run/\" \"$run/\"\n"
              "  return $status\n}\n");
  buf_free(&name);
}

static Err *sky_start(Run *r) {
  char *job = run_path(r, "job.sh");
  char *const argv[] = {"bash", job, NULL};
  Err *e = child_start(r, argv);
  free(job);
  return e;
}

Err *sky_write(const Run *r) {
  Buf o = {0};
  sky_task(r, &o);
  char *path = run_path(r, "sky.yaml");
  Err *e = file_write(path, o.p, o.n);
  free(path);
  buf_free(&o);
  return e;
}

const Engine engine_sky = {.name = "sky",
                           .ready = sky_ready,
                           .functions = sky_functions,
                           .rank = "$SKYPILOT_NODE_RANK",
                           .local_rank = "0",
                           .host = "$(hostname)",
                           .start = sky_start,
                           .poll = child_poll,
                           .stop = child_stop,
                           .logs = "sky"};
