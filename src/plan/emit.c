/* A choice as files that start it: train.sh, and for each engine what it reads. Devices of a node are told to
 * train.sh by the engine's own variables. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/system.h"
#include "plan/plan_priv.h"

typedef struct Emit {
  const PlanChoice *c;
  const PlanAsk *ask;
  int nodes, per_node; /* machines, chips of each */
  int slices;          /* of TPUs; 1: none */
  char name[96];       /* of the run: letters, digits, '-' */
  double hours;        /* that it may take; 0: not told */
} Emit;

static void emit_name(const PlanChoice *c, char *to, size_t n) {
  snprintf(to, n, "weft-%s-%s-%d", c->job.model->name, c->chip->name, c->chips);
  for (char *p = to; *p; p++) {
    bool plain = (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9');
    if (*p >= 'A' && *p <= 'Z') *p = (char)(*p - 'A' + 'a');
    else if (!plain) *p = '-';
  }
  size_t len = strlen(to); /* labels of clusters: 63 characters, no '-' at the end */
  if (len > 40) to[len = 40] = 0;
  while (len && to[len - 1] == '-') to[--len] = 0;
}

static bool is_tpu(const Emit *e) { return e->c->chip->kind == CHIP_TPU; }

/* ---- the files ---------------------------------------------------------------------------------- */

static void train_sh(const Emit *e, Buf *o) {
  buf_printf(o,
             "#!/usr/bin/env bash\n# %s on %d %s in the layout that weft plan chose. Arguments are "
             "passed on: data, tokenizer, "
             "checkpoints.\nset -eu\n",
             e->c->job.model->name, e->c->chips, e->c->chip->title);
  if (!is_tpu(e)) {
    buf_printf(
        o,
        ": \"${GPUS_PER_NODE:=${SKYPILOT_NUM_GPUS_PER_NODE:-${DSTACK_GPUS_PER_NODE:-%d}}}\"\n"
        ": \"${NODES:=${SKYPILOT_NUM_NODES:-${DSTACK_NODES_NUM:-${SLURM_NNODES:-%d}}}}\"\n"
        ": \"${NODE_RANK:=${SKYPILOT_NODE_RANK:-${DSTACK_NODE_RANK:-${SLURM_NODEID:-0}}}}\"\n"
        ": \"${MASTER:=$(echo \"${SKYPILOT_NODE_IPS:-${DSTACK_MASTER_NODE_IP:-localhost}}\" | head "
        "-n1)}\"\n"
        "export CUDA_DEVICE_MAX_CONNECTIONS=1\n",
        e->per_node, e->nodes);
  }
  plan_flags(e->c, o);
}

static void sky_yaml(const Emit *e, Buf *o) {
  const Offer *f = e->c->offer;
  buf_printf(o, "name: %s\n\nresources:\n", e->name);
  if (f) buf_printf(o, "  infra: %s\n", f->cloud);
  buf_cstr(o, "  accelerators: ");
  chip_sky(e->c->chip, e->c->chips / e->slices, e->nodes, o);
  buf_byte(o, '\n');
  buf_printf(o, "  use_spot: %s\n  autostop: 10m\n", e->ask->price.spot ? "true" : "false");
  buf_printf(o, "\nnum_nodes: %d\nworkdir: .\n", is_tpu(e) ? e->slices : e->nodes);
  buf_cstr(o, "\nsetup: |\n  echo \"install the framework that train.sh calls here\"\n\nrun: |\n  "
              "bash train.sh\n");
}

static void slurm_sh(const Emit *e, Buf *o) {
  buf_printf(o,
             "#!/usr/bin/env bash\n#SBATCH --job-name=%s\n#SBATCH --nodes=%d\n#SBATCH "
             "--ntasks-per-node=1\n",
             e->name, e->nodes);
  if (!is_tpu(e)) buf_printf(o, "#SBATCH --gpus-per-node=%d\n", e->per_node);
  buf_cstr(o, "#SBATCH --exclusive\n#SBATCH --output=%x-%j.log\n");
  if (e->hours > 0) {
    int minutes = (int)(e->hours * 60 * 1.1) + 10;
    buf_printf(o, "#SBATCH --time=%d-%02d:%02d:00\n", minutes / 1440, minutes / 60 % 24,
               minutes % 60);
  }
  buf_cstr(o,
           "set -eu\nexport MASTER=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n1)\n"
           "srun --kill-on-bad-exit=1 bash train.sh \"$@\"\n");
}

/* xpk's name of the machine: its table of systems, June 2026; NULL: it has none. */
static const char *xpk_gpu(const Emit *e) {
  static const char *const l4[] = {"l4-1", "l4-2", "l4-4", "l4-8"}, *const a100[] = {"a100-40gb-1",
                                                                                     "a100-40gb-2",
                                                                                     "a100-40gb-4",
                                                                                     "a100-40gb-8"};
  const char *chip = e->c->chip->name;
  const Offer *f = e->c->offer;
  bool eight = e->per_node == 8;
  int size = eight ? 3 : e->per_node == 4 ? 2 : e->per_node - 1;
  if (size < 0 || size > 3 || (size == 2 && e->per_node != 4)) return NULL;
  if (!strcmp(chip, "L4")) return l4[size];
  if (!strcmp(chip, "A100-40GB")) return a100[size];
  if (!strcmp(chip, "GB200") && e->per_node == 4) return "gb200-4";
  if (!strcmp(chip, "H100-SXM") && eight)
    return f && !strncmp(f->instance, "a3-highgpu", 10) ? "h100-80gb-8" : "h100-mega-80gb-8";
  if (!strcmp(chip, "H200") && eight) return "h200-141gb-8";
  return !strcmp(chip, "B200") && eight ? "b200-8" : NULL;
}

static const char *xpk_lacks(const Emit *e) {
  static const char *const tpus[] = {"tpu-v4", "tpu-v5p", "tpu-v5e", "tpu-v6e", "tpu7x"};
  if (!is_tpu(e)) return xpk_gpu(e) ? NULL : "xpk knows no such machine";
  for (int i = 0; i < COUNT_OF(tpus); i++)
    if (!strcmp(tpus[i], e->c->chip->name)) return NULL;
  return "xpk knows no such slice";
}

/* dstack's manual, August 2026: TPUs of one host. */
static const char *dstack_lacks(const Emit *e) {
  const char *chip = e->c->chip->name;
  int host = !strcmp(chip, "tpu-v5e") || !strcmp(chip, "tpu-v6e") ? 8 : 4;
  return is_tpu(e) && (e->slices > 1 || e->c->chips > host) ? "dstack starts TPUs of one host only"
                                                            : NULL;
}

static void xpk_sh(const Emit *e, Buf *o) {
  buf_cstr(o, "#!/usr/bin/env bash\n# xpk starts the run on a GKE cluster that has the "
              "machines.\nset -eu\n");
  buf_printf(
      o, "xpk workload create --cluster \"${CLUSTER:?name of the GKE cluster}\" --workload %s \\\n",
      e->name);
  if (is_tpu(e)) {
    buf_cstr(o, "  --tpu-type ");
    chip_slice(e->c->chip, e->c->chips / e->slices, o);
    buf_printf(o, " --num-slices %d \\\n", e->slices);
  } else {
    buf_printf(o, "  --device-type %s --num-nodes %d \\\n", xpk_gpu(e), e->nodes);
  }
  buf_cstr(
      o,
      "  --base-docker-image \"${IMAGE:?image with the framework}\" --command \"bash train.sh\"\n");
}

/* "A100-80GB:8" as dstack writes it: A100:80GB:8. */
static void dstack_gpu(const Emit *e, Buf *o) {
  Buf name = {0};
  chip_sky(e->c->chip, e->c->chips, e->nodes, &name);
  char *memory = strchr(name.p, '-'), *count = strchr(name.p, ':');
  bool told = memory && strstr(memory, "GB");
  if (told) *memory = ':';
  if (!told && !strcmp(e->c->chip->name, "A100-40GB"))
    buf_printf(o, "A100:40GB%s", count); /* there is another */
  else buf_cstr(o, name.p);
  buf_free(&name);
}

static void dstack_yml(const Emit *e, Buf *o) {
  buf_printf(o, "type: task\nname: %s\nnodes: %d\n", e->name, is_tpu(e) ? e->slices : e->nodes);
  buf_cstr(o, "commands:\n  - bash train.sh\n\nresources:\n  gpu: ");
  if (is_tpu(e)) chip_slice(e->c->chip, e->c->chips / e->slices, o);
  else dstack_gpu(e, o);
  buf_printf(o, "\n\nspot_policy: %s\n", e->ask->price.spot ? "spot" : "on-demand");
  if (e->c->offer) buf_printf(o, "backends: [%s]\n", e->c->offer->cloud);
  if (e->hours > 0) buf_printf(o, "max_duration: %dh\n", (int)(e->hours * 1.1) + 1);
  if (e->c->usd_hour > 0)
    buf_printf(o, "max_price: %.2f\n", e->c->usd_hour / (is_tpu(e) ? e->slices : e->nodes) * 1.05);
}

static Err *put(const char *dir, const char *name, void (*fill)(const Emit *, Buf *),
                const Emit *e) {
  Buf text = {0};
  fill(e, &text);
  char *path = xasprintf("%s/%s", dir, name);
  Err *err = file_write(path, text.p, text.n);
  if (!err && str_ends(str_from(name), ".sh")) chmod(path, 0755);
  buf_free(&text);
  free(path);
  return err;
}

Err *plan_emit(const PlanAnswer *a, const PlanChoice *c, const char *dir, Buf *left_out) {
  Emit e = {.c = c, .ask = &a->ask, .hours = c->steps > 0 ? c->p95_s / 3600 : 0};
  e.per_node = plan_machine_chips(c);
  e.slices = c->chip->kind == CHIP_TPU ? MAX(1, c->slice.slices) : 1;
  e.nodes = (c->chips + e.per_node - 1) / e.per_node;
  emit_name(c, e.name, sizeof e.name);
  TRY(folder_make(dir));
  static const struct {
    const char *name;
    void (*fill)(const Emit *, Buf *);
    const char *(*lacks)(const Emit *); /* why there is none; NULL: there always is */
  } files[] = {{"train.sh", train_sh, NULL},
               {"sky.yaml", sky_yaml, NULL},
               {"slurm.sh", slurm_sh, NULL},
               {"xpk.sh", xpk_sh, xpk_lacks},
               {"dstack.yml", dstack_yml, dstack_lacks}};
  for (int i = 0; i < COUNT_OF(files); i++) {
    const char *why = files[i].lacks ? files[i].lacks(&e) : NULL;
    if (why) buf_printf(left_out, "%sno %s: %s", left_out->n ? "; " : "", files[i].name, why);
    else TRY(put(dir, files[i].name, files[i].fill, &e));
  }
  Buf json = {0};
  plan_json(a, &json);
  char *path = xasprintf("%s/plan.json", dir); /* what weft launch --plan reads */
  Err *err = file_write(path, json.p, json.n);
  free(path);
  buf_free(&json);
  return err;
}
