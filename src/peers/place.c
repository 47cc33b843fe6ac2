/* Which process of which job this is, and where process 0 keeps the store: from what starts processes. */
#include "peers/peers.h"

#include <stdio.h>
#include <stdlib.h>

#define FIRST_PORT 20000 /* below those that the kernel hands out */
#define PORTS 12000

/* torchrun's names first: weft launch sets them; OpenMPI's before Slurm's, which may start its daemons. */
static const struct {
  const char *id, *n, *with; /* with: has to be there as well */
} starters[] = {{"RANK", "WORLD_SIZE", "MASTER_PORT"},
                {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL},
                {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"}};

/* A whole number of at least 0, else -1. */
static int number(const char *name) {
  const char *text = env_get(name);
  char *end;
  long v = text ? strtol(text, &end, 10) : -1;
  return text && !*end && v >= 0 && v < 1 << 24 ? (int)v : -1;
}

/* given: the address is the caller's, only the number is wanted. */
static bool find_number(PeersPlace *p, bool given) {
  for (int i = 0; i < COUNT_OF(starters); i++) {
    int id = number(starters[i].id), n = number(starters[i].n);
    if (id < 0 || n <= id || (!given && starters[i].with && !env_get(starters[i].with))) continue;
    p->id = id;
    p->n = n;
    return true;
  }
  return false;
}

/* The first of Slurm's hosts: of "n[3-5,9],x" it is n3. */
static char *first_host(const char *list) {
  size_t n = strcspn(list, ",[");
  if (list[n] != '[') return xstrndup(list, n);
  const char *from = list + n + 1, *end = strchr(from, ']');
  int digits = (int)strcspn(from, "-,]"), rest = end ? (int)strcspn(end + 1, ",") : 0;
  return xasprintf("%.*s%.*s%.*s", (int)n, list, digits, from, rest, end ? end + 1 : "");
}

/* Jobs of one host have ports by their names. */
static void port_of_job(PeersPlace *p) {
  p->port = FIRST_PORT + (int)(hash_bytes(p->job, strlen(p->job), 0) % PORTS);
}

static void by_slurm(PeersPlace *p) {
  const char *hosts = env_get("SLURM_STEP_NODELIST"), *job = env_get("SLURM_JOB_ID");
  snprintf(p->job, sizeof p->job, "slurm-%s.%s", job ? job : "", env_get("SLURM_STEP_ID"));
  if (number("SLURM_STEP_NUM_NODES") == 1) p->host = xstrdup("127.0.0.1");
  else if (hosts) p->host = first_host(hosts);
  port_of_job(p);
}

/* mpirun does not tell the host of rank 0: only whether all are on one. */
static void by_mpirun(PeersPlace *p) {
  const char *name = env_get("PMIX_NAMESPACE");
  snprintf(p->job, sizeof p->job, "mpi-%s", name ? name : "");
  if (number("OMPI_COMM_WORLD_LOCAL_SIZE") == p->n) p->host = xstrdup("127.0.0.1");
  port_of_job(p);
}

bool peers_address(const char *text, char **host, int *port) {
  const char *colon = strrchr(text, ':');
  char *end;
  long number = colon ? strtol(colon + 1, &end, 10) : 0;
  if (!colon || colon == text || *end || number < 1 || number > 65535) return false;
  *host = xstrndup(text, (size_t)(colon - text));
  *port = (int)number;
  return true;
}

static Err *by_hand(const char *coordinator, PeersPlace *p) {
  if (peers_address(coordinator, &p->host, &p->port)) return NULL;
  return err_new(ERR_INVALID, "--coordinator wants HOST:PORT of process 0, or none; not '%s'",
                 coordinator);
}

static Err *find_host(const char *coordinator, PeersPlace *p) {
  const char *master = env_get("MASTER_ADDR");
  if (coordinator) return by_hand(coordinator, p);
  if (master && number("MASTER_PORT") > 0) {
    p->host = xstrdup(master);
    p->port = number("MASTER_PORT");
  } else if (env_get("OMPI_COMM_WORLD_SIZE")) {
    by_mpirun(p);
  } else if (env_get("SLURM_STEP_ID")) {
    by_slurm(p);
  }
  if (p->host) return NULL;
  return err_hint(
      err_new(ERR_INVALID, "process %d of %d does not know where process 0 is", p->id, p->n),
      "--coordinator HOST:PORT, the host of process 0 and a free port of it; `weft launch` finds "
      "both by itself");
}

Err *peers_place(const char *coordinator, PeersPlace *out) {
  *out = (PeersPlace){.n = 1};
  if (coordinator && !strcmp(coordinator, "none")) return NULL;
  if (!find_number(out, coordinator != NULL) && coordinator)
    return err_hint(err_new(ERR_INVALID, "--coordinator, but which process is this?"),
                    "start it by mpirun, srun or weft launch, or set RANK and WORLD_SIZE");
  return out->n > 1 ? find_host(coordinator, out) : NULL;
}
