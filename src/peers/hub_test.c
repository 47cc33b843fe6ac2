/* The store of a job that has none of its caller's: words are found, first ones count, who is lost, unlike
 * or fails is named; and which process of which job one is by what started it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "peers/peers.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void told(Err *e, ErrCode code, const char *word) {
  assert_non_null(e);
  if (!strstr(e->msg, word)) fail_msg("'%s' does not say '%s'", e->msg, word);
  assert_int_equal(e->code, code);
  err_free(e);
}

/* A port that nobody has now. */
static int free_port(void) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t n = sizeof at;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(fd, (struct sockaddr *)&at, n) || getsockname(fd, (struct sockaddr *)&at, &n)) abort();
  close(fd);
  return ntohs(at.sin_port);
}

static char localhost[] = "127.0.0.1";

static PeersPlace place_of(int id, int n, int port) {
  return (PeersPlace){.id = id, .n = n, .host = localhost, .port = port, .job = "test"};
}

static Err *put(PeersHub *h, const char *key, const char *value) {
  PeersStore s = peers_hub_store(h);
  return s.put(s.arg, key, str_from(value));
}

static Err *get(PeersHub *h, const char *key, int timeout_ms, Buf *out) {
  PeersStore s = peers_hub_store(h);
  return s.get(s.arg, key, timeout_ms, out);
}

/* Another process, with what it does once it is there. */
static pid_t start(PeersPlace at, void (*deed)(PeersHub *h)) {
  pid_t child = fork();
  if (child) return child;
  PeersHub *h;
  Err *e = peers_hub_open(&at, &h);
  if (!e) deed(h);
  _exit(e != NULL);
}

static void ended(pid_t child, int status) {
  int got;
  assert_int_equal(waitpid(child, &got, 0), child);
  assert_int_equal(got, status);
}

static void asks(PeersHub *h) {
  Buf b = {0};
  int64_t value;
  if (get(h, "question", 60000, &b) || b.n != 3 || memcmp(b.p, "why", 3)) _exit(2);
  if (put(h, "answer", "because")) _exit(3);
  if (peers_hub_agree(h, 5, 2, &value) || value != 1) _exit(4);
  if (peers_hub_agree(h, 6, 2, &value) || value != 2) _exit(5);
  if (put(h, "done", "")) _exit(6);
  peers_hub_close(h, NULL);
}

static void words_and_rounds(void **state) {
  (void)state;
  PeersPlace at = place_of(0, 2, free_port());
  pid_t child = start(place_of(1, 2, at.port), asks);
  PeersHub *h;
  Buf b = {0};
  int64_t value;
  assert_null(peers_hub_open(&at, &h));
  assert_null(peers_hub_agree(h, 5, 1, &value));
  assert_int_equal(value, 1);
  assert_null(put(h, "question", "why"));
  assert_null(get(h, "answer", 60000, &b));
  assert_int_equal(b.n, 7);
  assert_memory_equal(b.p, "because", 7);
  assert_null(get(h, "done", 60000, &b));
  assert_null(peers_hub_agree(h, 6, 1, &value));
  assert_int_equal(value, 2);
  told(get(h, "nothing", 10, &b), ERR_DEADLINE, "nobody has put 'nothing'");
  ended(child, 0);
  buf_free(&b);
  peers_hub_close(h, NULL);
}

static void is_late(PeersHub *h) {
  Buf b = {0};
  kill(getpid(), SIGSTOP);
  if (get(h, "end", 60000, &b)) _exit(2);
  peers_hub_close(h, NULL);
}

static void *
wake(void *arg) { /* once the test is likely to be closing: before, it is just as well */
  usleep(100000);
  kill(*(pid_t *)arg, SIGCONT);
  return NULL;
}

/* Process 0 is done first: who still wants a word of it gets it. */
static void zero_waits_for_who_is_late(void **state) {
  (void)state;
  PeersPlace at = place_of(0, 2, free_port());
  pid_t child = start(place_of(1, 2, at.port), is_late);
  PeersHub *h;
  int status;
  pthread_t waker;
  assert_null(peers_hub_open(&at, &h));
  assert_int_equal(waitpid(child, &status, WUNTRACED), child);
  assert_null(put(h, "end", ""));
  assert_int_equal(pthread_create(&waker, NULL, wake, &child), 0);
  peers_hub_close(h, NULL);
  pthread_join(waker, NULL);
  ended(child, 0);
}

static void dies(PeersHub *h) {
  (void)h;
  kill(getpid(), SIGKILL);
}

static void who_is_lost_is_named(void **state) {
  (void)state;
  PeersPlace at = place_of(0, 2, free_port());
  pid_t child = start(place_of(1, 2, at.port), dies);
  PeersHub *h;
  Buf b = {0};
  assert_null(peers_hub_open(&at, &h));
  char *name = xasprintf("process 1 (pid %d on ", (int)child);
  told(get(h, "answer", 60000, &b), ERR_UNAVAILABLE, name);
  free(name);
  ended(child, SIGKILL);
  peers_hub_close(h, NULL);
}

static void fails(PeersHub *h) {
  Err *e = err_new(ERR_INVALID, "no data");
  peers_hub_close(h, e);
  err_free(e);
}

static void who_fails_is_named(void **state) {
  (void)state;
  PeersPlace at = place_of(0, 2, free_port());
  pid_t child = start(place_of(1, 2, at.port), fails);
  PeersHub *h;
  Buf b = {0};
  assert_null(peers_hub_open(&at, &h));
  told(get(h, "answer", 60000, &b), ERR_UNAVAILABLE, "failed: no data");
  ended(child, 0);
  peers_hub_close(h, NULL);
}

static void waits_for_zero(PeersHub *h) {
  Buf b = {0};
  Err *e = put(h, "there", "");
  if (!e) e = get(h, "answer", 60000, &b);
  _exit(e && e->code == ERR_UNAVAILABLE && strstr(e->msg, "process 0 ") ? 0 : 2);
}

static void zero_is_missed(void **state) {
  (void)state;
  int port = free_port();
  pid_t zero = fork();
  if (!zero) {
    PeersHub *h;
    Buf b = {0};
    PeersPlace at = place_of(0, 3, port);
    if (peers_hub_open(&at, &h) || get(h, "here", 60000, &b) || get(h, "there", 60000, &b))
      _exit(1);
    kill(getpid(), SIGKILL);
  }
  pid_t child = start(place_of(1, 3, port), waits_for_zero);
  PeersHub *h;
  PeersPlace at = place_of(2, 3, port);
  assert_null(peers_hub_open(&at, &h));
  Err *e = put(h, "here", ""); /* may end before it answers */
  if (e) told(e, ERR_UNAVAILABLE, "process 0 ");
  ended(zero, SIGKILL);
  ended(child, 0);
  peers_hub_close(h, NULL);
}

static void who_does_not_belong_is_told(void **state) {
  (void)state;
  PeersPlace at = place_of(0, 2, free_port()), other = place_of(1, 3, at.port);
  PeersHub *h, *guest, *twin;
  assert_null(peers_hub_open(&at, &h));
  told(peers_hub_open(&other, &guest), ERR_INVALID, "is one of 3, process 0 one of 2");
  other = place_of(1, 2, at.port);
  strcpy(other.job, "another");
  told(peers_hub_open(&other, &guest), ERR_INVALID, "another job is at port");
  other = place_of(1, 2, at.port);
  assert_null(peers_hub_open(&other, &guest));
  told(peers_hub_open(&other, &twin), ERR_INVALID, "is there already");
  other = place_of(0, 2, at.port);
  told(peers_hub_open(&other, &twin), ERR_UNAVAILABLE, "cannot listen at port");
  peers_hub_close(guest, NULL);
  peers_hub_close(h, NULL);
}

static void nobody_answers(void **state) {
  (void)state;
  PeersPlace at = place_of(1, 2, free_port());
  PeersHub *h;
  setenv("WEFT_EXCHANGE_TIMEOUT", "1", 1);
  told(peers_hub_open(&at, &h), ERR_DEADLINE, "process 1 of 2 cannot reach process 0 at 127.0.0.1");
  unsetenv("WEFT_EXCHANGE_TIMEOUT");
}

/* ---- which process of which job ---- */

static const char *const names[] = {"RANK",
                                    "WORLD_SIZE",
                                    "MASTER_ADDR",
                                    "MASTER_PORT",
                                    "SLURM_PROCID",
                                    "SLURM_STEP_ID",
                                    "SLURM_STEP_NUM_TASKS",
                                    "OMPI_COMM_WORLD_RANK",
                                    "SLURM_JOB_ID",
                                    "PMIX_NAMESPACE",
                                    "OMPI_COMM_WORLD_SIZE",
                                    "OMPI_COMM_WORLD_LOCAL_SIZE",
                                    "SLURM_STEP_NODELIST",
                                    "SLURM_STEP_NUM_NODES"};

/* pairs: name, value, ..., NULL: all there is. */
static void only(const char *const *pairs) {
  for (int i = 0; i < COUNT_OF(names); i++) unsetenv(names[i]);
  for (; *pairs; pairs += 2) setenv(pairs[0], pairs[1], 1);
}

static void is_at(const char *coordinator, int id, int n, const char *host) {
  PeersPlace p;
  assert_null(peers_place(coordinator, &p));
  assert_int_equal(p.id, id);
  assert_int_equal(p.n, n);
  if (host) assert_string_equal(p.host, host);
  else assert_null(p.host);
  if (host) assert_in_range(p.port, 1, 65535);
  free(p.host);
}

static void by_what_started_it(void **state) {
  (void)state;
  PeersPlace p;
  only((const char *[]){NULL});
  is_at(NULL, 0, 1, NULL);
  told(peers_place("a:1", &p), ERR_INVALID, "which process is this?");
  only((const char *[]){"RANK", "1", "WORLD_SIZE", "4", "MASTER_ADDR", "a", "MASTER_PORT", "77",
                        NULL});
  is_at(NULL, 1, 4, "a");
  is_at("b:99", 1, 4, "b");
  is_at("none", 0, 1, NULL);
  told(peers_place("b", &p), ERR_INVALID, "HOST:PORT");
  told(peers_place("b:0", &p), ERR_INVALID, "HOST:PORT");
  /* a batch script of Slurm's is no process of a step */
  only((const char *[]){"SLURM_PROCID", "0", "SLURM_JOB_ID", "7", NULL});
  is_at(NULL, 0, 1, NULL);
  only((const char *[]){"SLURM_PROCID", "5", "SLURM_STEP_NUM_TASKS", "8", "SLURM_STEP_ID", "0",
                        "SLURM_JOB_ID", "7", "SLURM_STEP_NUM_NODES", "2", "SLURM_STEP_NODELIST",
                        "gpu[07-09,12]-ib,x", NULL});
  is_at(NULL, 5, 8, "gpu07-ib");
  setenv("SLURM_STEP_NUM_NODES", "1", 1);
  is_at(NULL, 5, 8, "127.0.0.1");
  only((const char *[]){"OMPI_COMM_WORLD_RANK", "2", "OMPI_COMM_WORLD_SIZE", "3",
                        "OMPI_COMM_WORLD_LOCAL_SIZE", "3", "PMIX_NAMESPACE", "123", NULL});
  is_at(NULL, 2, 3, "127.0.0.1");
  setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2", 1);
  told(peers_place(NULL, &p), ERR_INVALID, "process 2 of 3 does not know where process 0 is");
  is_at("c:5", 2, 3, "c");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(words_and_rounds),     cmocka_unit_test(zero_waits_for_who_is_late),
      cmocka_unit_test(who_is_lost_is_named), cmocka_unit_test(who_fails_is_named),
      cmocka_unit_test(zero_is_missed),       cmocka_unit_test(who_does_not_belong_is_told),
      cmocka_unit_test(nobody_answers),       cmocka_unit_test(by_what_started_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
