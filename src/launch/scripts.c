/* The shell that an engine starts: job.sh once, check.sh on every host, rank.sh for every rank. */
#include <stdlib.h>
#include <sys/stat.h>

#include "launch/launch_priv.h"

/* Where the run folder is for the hosts. */
static void run_folder(const Run *r, Buf *o) {
  buf_cstr(o, "run=");
  if (r->job->engine == LAUNCH_SKY) buf_cstr(o, "\"$HOME/weft-run\"");
  else buf_shell(o, r->dir);
  buf_byte(o, '\n');
}

/* An argument of the command, where {out} and {data} stand for the run's folders. */
static void argument(const char *arg, Buf *o) {
  static const struct {
    const char *word, *is;
  } words[] = {{"{out}", "\"$run\"/out"}, {"{data}", "\"$data\""}};
  Buf plain = {0};
  buf_byte(o, ' ');
  for (const char *p = arg; *p;) {
    int w = 0;
    while (w < COUNT_OF(words) && strncmp(p, words[w].word, strlen(words[w].word))) w++;
    if (w == COUNT_OF(words)) {
      buf_byte(&plain, *p++);
      continue;
    }
    if (plain.n) buf_shell(o, plain.p);
    plain.n = 0;
    buf_cstr(o, words[w].is);
    p += strlen(words[w].word);
  }
  if (plain.n || !*arg) buf_shell(o, plain.n ? plain.p : "");
  buf_free(&plain);
}

static void data_folder(const Run *r, Buf *o) {
  buf_cstr(o, "data=");
  if (r->data) {
    buf_cstr(o, "\"$run\"/data/");
    buf_shell(o, base_name(r->data));
  }
  buf_byte(o, '\n');
}

static void command(const Run *r, Buf *o) {
  buf_cstr(o, "set --");
  for (char *const *a = r->job->cmd; *a; a++) argument(*a, o);
  if (r->row.attempt > 0 && r->resume && r->saved) {
    buf_cstr(o, "\n[ ! -e ");
    argument(r->saved, o);
    buf_printf(o, " ] || set -- \"$@\" %s", r->resume);
  }
  buf_byte(o, '\n');
}

static void rank_sh(const Run *r, const Engine *e, Buf *o) {
  buf_cstr(o, "#!/bin/sh\n# One rank of the run: the command, its log, how it ended.\n");
  run_folder(r, o);
  data_folder(r, o);
  buf_printf(o,
             "export RANK=%s LOCAL_RANK=%s WORLD_SIZE=%d\n"
             "export WEFT_RUN=\"$run\" WEFT_RUN_OUT=\"$run/out\" WEFT_RUN_DATA=\"$data\" "
             "WEFT_RUN_TRY=%.0f\n",
             e->rank, e->local_rank, r->procs, r->row.attempt);
  if (r->job->engine == LAUNCH_LOCAL)
    buf_cstr(o, "export JAX_COORDINATOR_ADDRESS=\"$MASTER_ADDR:$MASTER_PORT\"\n");
  command(r, o);
  if (r->job->work) buf_cstr(o, "cd \"$run/work\"\n");
  buf_printf(o,
             "echo \"%s\" > \"$run/ranks/$RANK.host\"\n"
             "asked=\n"
             "trap 'asked=143; kill -TERM $child 2>/dev/null' TERM INT HUP\n"
             "\"$@\" >> \"$run/logs/rank-$RANK.log\" 2>&1 < /dev/null &\n"
             "child=$!\n"
             "wait $child; status=$?\n"
             "while kill -0 $child 2>/dev/null; do wait $child; status=$?; done\n"
             "[ -z \"$asked\" ] || status=$asked\n"
             "echo \"$status $(date +%%s%%N)\" > \"$run/ranks/$RANK.rc\"\n"
             "exit $status\n",
             e->host);
}

/* What a host has, one line: its name, then key=value with tabs between. */
static void check_sh(const Run *r, const Engine *e, Buf *o) {
  buf_cstr(o, "#!/bin/sh\n# What this host has, in a line.\n");
  run_folder(r, o);
  buf_printf(o, "line=\"%s\"\nhas() { line=\"$line\t$1=$2\"; }\n", e->host);
  buf_cstr(o, "set --");
  argument(r->job->cmd[0], o);
  buf_cstr(
      o, "\n[ -w \"$run/ranks\" ] && has folder yes || has folder no\n"
         "has machine \"$(uname -m)\"\n"
         "if command -v \"$1\" > /dev/null 2>&1; then has command yes; else has command no; fi\n"
         "case \"${1##*/}\" in\n"
         "python*) has python \"$(\"$1\" -c 'import importlib.metadata as m, platform as p\n"
         "v = [\"Python \" + p.python_version()]\n"
         "for n in (\"jax\", \"jaxlib\", \"torch\", \"tensorflow\", \"libtpu\", \"weft\"):\n"
         "    try: v.append(n + \" \" + m.version(n))\n"
         "    except m.PackageNotFoundError: pass\n"
         "print(\", \".join(v))' 2>/dev/null)\" ;;\n"
         "weft) has weft \"$(\"$1\" version 2>/dev/null)\" ;;\n"
         "esac\n"
         "if command -v nvidia-smi > /dev/null 2>&1; then\n"
         "  has gpus \"$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | wc -l)\"\n"
         "  has gpu \"$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | sort -u | "
         "paste -sd, -)\"\n"
         "  has driver \"$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null "
         "| head -n1)\"\n"
         "else\n"
         "  has gpus \"$(ls -d /dev/accel[0-9]* /dev/vfio/[0-9]* 2>/dev/null | wc -l)\"\n"
         "fi\n"
         "printf '%s\\n' \"$line\"\n");
}

/* Hosts that differ from the first, or have too little: a sentence and 1. */
static const char check_awk[] =
    "function wrong(s) { print s; bad = 1; exit 1 }\n"
    "BEGIN { FS = \"\\t\" }\n"
    "NF > 1 {\n"
    "  host[++n] = $1\n"
    "  for (i = 2; i <= NF; i++) {\n"
    "    at = index($i, \"=\"); key = substr($i, 1, at - 1)\n"
    "    if (!(key in known)) { known[key] = 1; order[++keys] = key }\n"
    "    has[n, key] = substr($i, at + 1)\n"
    "  }\n"
    "}\n"
    "END {\n"
    "  if (bad) exit 1\n"
    "  for (i = 1; i <= n; i++) names = names (i > 1 ? \", \" : \"\") host[i]\n"
    "  if (n < hosts) wrong(n + 0 \" of \" hosts \" hosts answered\" (n ? \" (\" names \")\" : "
    "\"\") "
    "\": can each of them be reached without a password, and do all see the run folder \" folder "
    "\"?\")\n"
    "  for (i = 1; i <= n; i++) {\n"
    "    if (has[i, \"folder\"] != \"yes\") wrong(\"host \" host[i] \" cannot write to the run "
    "folder \" folder \": --dir "
    "with a folder on a file system that all hosts share\")\n"
    "    if (has[i, \"command\"] != \"yes\") wrong(\"host \" host[i] \" has no command \" "
    "command)\n"
    "    if (has[i, \"gpus\"] + 0 < gpus) wrong(\"host \" host[i] \" has \" has[i, \"gpus\"] + 0 "
    "\" accelerators, the "
    "job wants \" gpus)\n"
    "    if (gpus > 0 && gpu != \"\" && has[i, \"gpu\"] != \"\" && !index(toupper(has[i, "
    "\"gpu\"]), toupper(gpu)))\n"
    "      wrong(\"host \" host[i] \" has \" has[i, \"gpu\"] \", the plan is for \" gpu)\n"
    "  }\n"
    "  for (k = 1; k <= keys; k++)\n"
    "    for (i = 2; i <= n; i++)\n"
    "      if (has[i, order[k]] != has[1, order[k]])\n"
    "        wrong(\"hosts differ: \" host[i] \" has \" order[k] \" \" has[i, order[k]] \", \" "
    "host[1] \" has \" "
    "has[1, order[k]])\n"
    "}\n";

/* "H100" of "H100-SXM": what nvidia-smi says in its own words has it. */
static void gpu_word(const Run *r, Buf *o) {
  const char *chip = r->job->plan.chip;
  if (!strncmp(chip, "tpu", 3)) return;
  buf_printf(o, "%.*s", (int)strcspn(chip, "-"), chip);
}

static void job_sh(const Run *r, const Engine *e, Buf *o) {
  buf_cstr(o,
           "#!/usr/bin/env bash\n# The run: a check of all hosts, then all ranks.\nset -u\nrun=");
  buf_shell(o, r->dir);
  buf_printf(o,
             "\nend() { echo \"$1\" > \"$run/job.tmp\"; mv \"$run/job.tmp\" \"$run/job.rc\"; exit "
             "\"$1\"; }\n"
             "export MASTER_ADDR=${MASTER_ADDR:-127.0.0.1} MASTER_PORT=${MASTER_PORT:-%d}\n",
             20000 + (int)(hash_bytes(r->dir, strlen(r->dir), (uint64_t)r->row.attempt) % 20000));
  e->functions(r, o);
  Buf gpu = {0};
  gpu_word(r, &gpu);
  buf_cstr(
      o,
      "each_host sh \"$run/check.sh\" > \"$run/check.txt\" 2> \"$run/check.err\"\nawk -v hosts=");
  buf_printf(o, "%d -v gpus=%d -v gpu='%s' -v folder=\"$run\" -v command=", r->nodes, r->gpus,
             gpu.n ? gpu.p : "");
  buf_shell(o, r->job->cmd[0]);
  buf_cstr(o, " -f \"$run/check.awk\" \"$run/check.txt\" > \"$run/check.said\" || end 78\n"
              "all_ranks sh \"$run/rank.sh\"\nend $?\n");
  buf_free(&gpu);
}

static Err *put(const Run *r, const char *name, const char *text, size_t n) {
  char *path = run_path(r, name);
  Err *e = file_write(path, text, n);
  if (!e && str_ends(str_from(name), ".sh")) chmod(path, 0755);
  free(path);
  return e;
}

Err *scripts_write(const Run *r) {
  const Engine *e = engine_of(r->job->engine);
  static const struct {
    const char *name;
    void (*fill)(const Run *, const Engine *, Buf *);
  } all[] = {{"rank.sh", rank_sh}, {"check.sh", check_sh}, {"job.sh", job_sh}};
  for (int i = 0; i < COUNT_OF(all); i++) {
    Buf o = {0};
    all[i].fill(r, e, &o);
    Err *err = put(r, all[i].name, o.p, o.n);
    buf_free(&o);
    if (err) return err;
  }
  return put(r, "check.awk", check_awk, strlen(check_awk));
}
