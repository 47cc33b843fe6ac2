/* A run in several processes: whether all make the same one, what all of them counted, when they stop. */
#include "train/train_priv.h"

#include <stdio.h>
#include <stdlib.h>

#define AHEAD 4 /* steps; no process is further ahead of another: sums of gradients wait for all */

static Err *get(const ClientJob *j, const char *what, int64_t round, int id, Buf *out) {
  PeersStore s = peers_hub_store(j->hub);
  char *key = xasprintf("train/%s/%lld/%d", what, (long long)round, id);
  Err *e = s.get(s.arg, key, (int)MIN(peers_patience() * 1000, INT32_MAX), out);
  free(key);
  return err_wrap(e, "waiting for process %d of %d", id, j->n);
}

static Err *put(const ClientJob *j, const char *what, int64_t round, Str value) {
  PeersStore s = peers_hub_store(j->hub);
  char *key = xasprintf("train/%s/%lld/%d", what, (long long)round, j->id);
  Err *e = s.put(s.arg, key, value);
  free(key);
  return e;
}

/* ---- one run ---- */

/* A line for each setting, then what cannot be told in words. */
static void describe(const JobRun *r, Buf *out) {
  Meta m = {0};
  checkpoint_meta(r->o->model, &r->whole, r->o->data, r->step, &m);
  meta_set(&m, "examples", "%lld", (long long)r->o->data->n_train);
  meta_set(&m, "test-examples", "%lld", (long long)r->o->data->n_test);
  meta_set(&m, "eval-every", "%lld", (long long)r->o->eval_every);
  meta_set(&m, "program", "%016llx", (unsigned long long)r->program);
  meta_set(&m, "first-state", "%016llx", (unsigned long long)r->state);
  for (int i = 0; i < m.kv.n; i += 2) {
    size_t at = out->n;
    buf_printf(out, "%s\t%s", m.kv.v[i], m.kv.v[i + 1]);
    for (; at < out->n; at++)
      if (out->p[at] == '\n') out->p[at] = ' ';
    buf_byte(out, '\n');
  }
  meta_free(&m);
}

/* The first line in which two differ. */
static Err *compare(int id, char *zero, char *text) {
  char *a, *b;
  while ((a = strsep(&zero, "\n")) && (b = strsep(&text, "\n"))) {
    if (!strcmp(a, b)) continue;
    const char *was = strchr(a, '\t'), *is = strchr(b, '\t');
    return err_hint(err_new(ERR_INVALID,
                            "process %d makes another run than process 0: its %.*s is '%s', that "
                            "of process 0 '%s'",
                            id, is ? (int)(is - b) : 0, b, is ? is + 1 : b, was ? was + 1 : a),
                    "start all processes with the same command and the same files");
  }
  return NULL;
}

Err *job_is_one_run(const JobRun *r) {
  const ClientJob *j = r->o->job;
  Buf own = {0}, zero = {0};
  describe(r, &own);
  Err *e = put(j, "run", 0, (Str){own.p, own.n});
  if (!e) e = get(j, "run", 0, 0, &zero);
  buf_byte(&zero, 0);
  for (int id = 1; id < j->n && !e; id++) {
    Buf text = {0};
    e = get(j, "run", 0, id, &text);
    buf_byte(&text, 0);
    char *copy = xstrdup(zero.p);
    if (!e) e = compare(id, copy, text.p);
    free(copy);
    buf_free(&text);
  }
  buf_free(&own);
  buf_free(&zero);
  return e;
}

/* ---- an evaluation ---- */

Err *job_sum(const ClientJob *j, int64_t round, int replicas, int64_t batches, const float *own,
             double sums[3]) {
  int first, n = client_share(j, replicas, &first);
  float **of =
      xcalloc((size_t)replicas, sizeof *of); /* [replica], a row of [batch][its share][3] */
  int *share = xcalloc((size_t)replicas, sizeof *share);
  Buf *said = xcalloc((size_t)j->n, sizeof *said);
  Err *e = put(j, "sums", round, (Str){(const char *)own, sizeof *own * 3 * (size_t)(n * batches)});
  if (!e && round > 1) e = put(j, "sums", round - 2, (Str){"", 0}); /* read by all by now */
  for (int id = 0; id < j->n && !e; id++) {
    n = client_share(&(ClientJob){id, j->n, NULL}, replicas, &first);
    e = get(j, "sums", round, id, &said[id]);
    if (!e && said[id].n != sizeof *own * 3 * (size_t)(n * batches))
      e = err_new(ERR_INTERNAL, "process %d evaluated another number of batches", id);
    for (int r = 0; r < n && !e; r++)
      of[first + r] = (float *)said[id].p + 3 * r, share[first + r] = n;
  }
  for (int64_t b = 0; b < batches && !e; b++) /* in the order of a process that has all replicas */
    for (int r = 0; r < replicas; r++)
      for (int i = 0; i < 3; i++) sums[i] += (double)of[r][b * share[r] * 3 + i];
  for (int id = 0; id < j->n; id++) buf_free(&said[id]);
  free(said);
  free(share);
  free(of);
  return e;
}

/* ---- the end ---- */

Err *job_stops(const ClientJob *j, int64_t step, bool asked, bool *stop) {
  int64_t now, then;
  if (asked) TRY(peers_hub_agree(j->hub, step + AHEAD, 1, &then));
  TRY(peers_hub_agree(j->hub, step, 0, &now));
  *stop = now != 0;
  return NULL;
}

Err *train_end(const ClientJob *j) {
  Buf unused = {0};
  Err *e = j->id ? get(j, "end", 0, 0, &unused) : put(j, "end", 0, STR(""));
  buf_free(&unused);
  return e;
}
