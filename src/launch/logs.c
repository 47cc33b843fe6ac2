/* The logs of all ranks as one stream of lines. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "launch/launch_priv.h"

typedef struct Log {
  int rank; /* -1: the engine's own */
  char *path;
  off_t at;
  Buf part; /* a line whose end has not come */
} Log;

struct Logs {
  Log *log;
  int n, width;
  const char *own;
};

Logs *logs_open(const char *dir, int procs, int rank, const char *own) {
  Logs *l = xcalloc(1, sizeof *l);
  l->log = xcalloc((size_t)procs + 1, sizeof *l->log);
  l->own = own;
  l->width = snprintf(NULL, 0, "%d", MAX(procs - 1, 0));
  if (own && rank < 0)
    l->log[l->n++] = (Log){.rank = -1, .path = xasprintf("%s/logs/job.log", dir)};
  for (int i = 0; i < procs; i++)
    if (rank < 0 || rank == i)
      l->log[l->n++] = (Log){.rank = i, .path = xasprintf("%s/logs/rank-%d.log", dir, i)};
  return l;
}

void logs_close(Logs *l) {
  if (!l) return;
  for (int i = 0; i < l->n; i++) free(l->log[i].path), buf_free(&l->log[i].part);
  free(l->log);
  free(l);
}

static void line(const Logs *l, Log *g, FILE *f, LogLine *see, void *arg) {
  if (!g->part.p) buf_cstr(&g->part, "");
  if (f && g->rank >= 0) fprintf(f, "[%*d] %s\n", l->width, g->rank, g->part.p);
  else if (f) fprintf(f, "[%s] %s\n", l->own, g->part.p);
  if (see) see(arg, g->rank, g->part.p);
  g->part.n = 0;
  g->part.p[0] = 0;
}

static int read_log(const Logs *l, Log *g, FILE *f, LogLine *see, void *arg) {
  int fd = open(g->path, O_RDONLY | O_CLOEXEC), lines = 0;
  if (fd < 0) return 0;
  char chunk[16384];
  /* at most so much at once: a rank that floods its log must not keep the launcher from others */
  for (int i = 0; i < 64; i++) {
    ssize_t n = pread(fd, chunk, sizeof chunk, g->at);
    if (n <= 0) break;
    g->at += n;
    for (ssize_t k = 0; k < n; k++)
      if (chunk[k] == '\n' || chunk[k] == '\r') { /* progress bars end lines by going back */
        if (g->part.n || chunk[k] == '\n') line(l, g, f, see, arg), lines++;
      } else if (g->part.n < 65536) {
        buf_byte(&g->part, chunk[k] ? chunk[k] : ' ');
      }
  }
  close(fd);
  return lines;
}

int logs_read(Logs *l, bool all, FILE *f, LogLine *see, void *arg) {
  int lines = 0;
  for (int i = 0; i < l->n; i++) {
    lines += read_log(l, &l->log[i], f, see, arg);
    if (all && l->log[i].part.n) line(l, &l->log[i], f, see, arg), lines++;
  }
  if (f) fflush(f);
  return lines;
}
