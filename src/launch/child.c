/* Commands as children of this process: an engine's own, and short ones that are asked something. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system.h"
#include "launch/launch_priv.h"

bool child_exists(const char *program) {
  const char *path = env_get("PATH");
  for (const char *p = path ? path : "/usr/bin:/bin"; *p;) {
    size_t n = strcspn(p, ":");
    char *file = xasprintf("%.*s/%s", (int)n, p, program);
    bool there = !access(file, X_OK);
    free(file);
    if (there) return true;
    p += n + (p[n] == ':');
  }
  return false;
}

static void become(char *const *argv, int out) {
  int in = open("/dev/null", O_RDONLY);
  dup2(in, 0), dup2(out, 1), dup2(out, 2);
  signal(SIGINT, SIG_DFL), signal(SIGTERM, SIG_DFL);
  execvp(argv[0], argv);
  _exit(127);
}

bool child_says(char *const *argv, char **out) {
  int ends[2];
  *out = NULL;
  if (pipe2(ends, O_CLOEXEC)) return false;
  pid_t child = fork();
  if (child == 0) become(argv, ends[1]);
  close(ends[1]);
  Buf said = {0};
  char chunk[4096];
  for (ssize_t n; (n = read(ends[0], chunk, sizeof chunk)) > 0 || (n < 0 && errno == EINTR);)
    if (n > 0) buf_add(&said, chunk, (size_t)n);
  close(ends[0]);
  int status = -1;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  while (said.n && strchr(" \n\r\t", said.p[said.n - 1])) said.p[--said.n] = 0;
  *out = said.p ? said.p : xstrdup("");
  return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

Err *child_start(Run *r, char *const *argv) {
  char *log = run_path(r, "logs/job.log");
  int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  Err *e = out < 0 ? err_errno("cannot write %s", log) : NULL;
  free(log);
  if (e) return e;
  pid_t self = getpid(), child = fork();
  if (child == 0) {
    setpgid(0, 0); /* Ctrl-C is for the launcher, which stops the rest */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != self) _exit(1);
    become(argv, out);
  }
  close(out);
  if (child < 0) return err_errno("cannot start %s", argv[0]);
  r->child = child;
  return NULL;
}

void child_stop(Run *r, bool hard) {
  if (r->child > 0) kill(hard ? -r->child : r->child, hard ? SIGKILL : SIGTERM);
}

/* ---- how it ended ------------------------------------------------------------------------------- */

static void rank_host(const Run *r, int rank, char to[128]) {
  char *name = xasprintf("ranks/%d.host", rank), *path = run_path(r, name);
  FILE *f = fopen(path, "r");
  if (!f || fscanf(f, "%127s", to) != 1) strcpy(to, "its host");
  if (f) fclose(f);
  free(name), free(path);
}

/* A status as shells have it: 128 and more is a signal. */
static char *rank_words(const Run *r, int rank, int status) {
  char host[128];
  rank_host(r, rank, host);
  if (status < 128)
    return xasprintf("rank %d on %s ended with status %d%s", rank, host, status,
                     status == 127 ? ": its command was not found" : "");
  int s = status - 128;
  return xasprintf("rank %d on %s was killed by signal %d (%s)%s", rank, host, s, strsignal(s),
                   s == SIGKILL ? ": out of memory, or by hand" : "");
}

typedef struct RankEnd {
  int rank, status;
  double at;
} RankEnd;

static bool rank_end(const Run *r, int rank, RankEnd *out) {
  char *name = xasprintf("ranks/%d.rc", rank), *path = run_path(r, name);
  FILE *f = fopen(path, "r");
  *out = (RankEnd){.rank = rank};
  bool good = f && fscanf(f, "%d %lf", &out->status, &out->at) == 2;
  if (f) fclose(f);
  free(name), free(path);
  return good;
}

/* Ranks that compute together end with one that is killed, and may say so before it does. */
#define OVER_IT_NS 5e9

static bool was_killed(int status) { return status >= 128 && status != 128 + SIGTERM; }

void ranks_end(const Run *r, End *out) {
  RankEnd first = {.rank = -1, .at = INFINITY}, killed = first, one;
  int silent = -1;
  for (int i = 0; i < r->procs; i++)
    if (!rank_end(r, i, &one)) silent = silent < 0 ? i : silent;
    else if (one.status && one.at < first.at) first = one;
  for (int i = 0; i < r->procs; i++)
    if (rank_end(r, i, &one) && was_killed(one.status) && one.at < killed.at) killed = one;
  if (killed.at <= first.at + OVER_IT_NS) first = killed;
  /* a rank that left no word was killed together with its shell; the others then were told to stop */
  if (silent >= 0 && (first.rank < 0 || first.status == 128 + SIGTERM)) {
    char host[128];
    rank_host(r, silent, host);
    *out = (End){END_TAKEN, 137,
                 xasprintf("rank %d on %s was killed, or its host is gone", silent, host)};
  } else if (first.rank >= 0) {
    *out = (End){first.status >= 128 ? END_TAKEN : END_FAILED, first.status,
                 rank_words(r, first.rank, first.status)};
  } else {
    *out = (End){.kind = END_GOOD};
  }
}

/* The last lines of a file. */
static char *tail_of(const Run *r, const char *name) {
  char *path = run_path(r, name);
  Buf b = {0};
  Err *e = file_read(path, &b);
  free(path);
  if (e) return err_free(e), NULL;
  while (b.n && strchr(" \n", b.p[b.n - 1])) b.p[--b.n] = 0;
  size_t from = b.n > 600 ? b.n - 600 : 0;
  const char *line = from ? strchr(b.p + from, '\n') : NULL; /* not from the middle of one */
  char *out = b.n ? xstrdup(line ? line + 1 : b.p + from) : NULL;
  buf_free(&b);
  return out;
}

/* Of job.sh, by the status that it left. */
static void job_end(const Run *r, int status, End *out) {
  if (status == 0) {
    ranks_end(r, out);
    return;
  }
  char *said = tail_of(r, "check.said");
  if (status == 78 && said) {
    char *more = tail_of(r, "check.err");
    *out = (End){END_REFUSED, 78, more ? xasprintf("%s\n%s", said, more) : xstrdup(said)};
    free(more);
  } else {
    ranks_end(r, out);
    if (out->kind == END_GOOD) { /* no rank failed: the engine did */
      char *more = tail_of(r, "logs/job.log");
      *out = (End){END_REFUSED, status,
                   xasprintf("the engine ended with status %d%s%s", status, more ? ":\n" : "",
                             more ? more : "")};
      free(more);
    }
  }
  free(said);
}

void job_ended(const Run *r, End *out) {
  double status;
  if (run_number(r, "job.rc", &status)) job_end(r, (int)status, out);
  else ranks_end(r, out);
}

Err *child_poll(Run *r, End *out) {
  int status;
  pid_t p = waitpid(r->child, &status, WNOHANG);
  *out = (End){0};
  if (p == 0 || (p < 0 && errno == EINTR)) return NULL;
  double rc;
  if (run_number(r, "job.rc", &rc)) job_end(r, (int)rc, out);
  else if (p > 0 && WIFEXITED(status)) job_end(r, WEXITSTATUS(status), out);
  else *out = (End){END_TAKEN, 137, xstrdup("the engine's own process was killed")};
  kill(-r->child, SIGKILL); /* what it left behind */
  r->child = 0;
  return NULL;
}

double process_start(pid_t pid) {
  char path[64], line[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  FILE *f = fopen(path, "r");
  bool good = f && fgets(line, sizeof line, f);
  if (f) fclose(f);
  const char *p = good ? strrchr(line, ')') : NULL; /* the name may have anything in it */
  for (int i = 2; p && i < 22; i++) p = strchr(p + 1, ' ');
  return p ? strtod(p, NULL) : NAN;
}
