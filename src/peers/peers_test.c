/* Two processes, with files as the store: messages arrive whole and in order, whoever ends, disagrees, is
 * unlike or does not come is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "peers/peers_priv.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/peers_test_XXXXXX";

static char *path_of(const char *key) {
  char *path = xasprintf("%s/%s", folder, key);
  for (char *c = path + strlen(folder) + 1; *c; c++)
    if (*c == '/') *c = '_';
  return path;
}

static Err *put(void *arg, const char *key, Str value) {
  (void)arg;
  char *path = path_of(key);
  Err *e = file_write(path, value.p, value.n);
  free(path);
  return e;
}

static Err *get(void *arg, const char *key, int timeout_ms, Buf *out) {
  (void)arg;
  char *path = path_of(key);
  double until_s = time_now_s() + timeout_ms / 1000.0;
  Err *e = file_read(path, out);
  while (e && time_now_s() < until_s) {
    err_free(e);
    usleep(2000);
    e = file_read(path, out);
  }
  free(path);
  return e;
}

static int rounds; /* of peers_open in this process: keys have it */

static Err *open_of(int id, int n, const char *device, Peers **out) {
  PeersOpts o = {.id = id, .n = n, .device = device, .devices = 3 + id, .store = {NULL, put, get}};
  rounds++;
  return peers_open(&o, out);
}

static Err *open_as(int id, const char *device, Peers **out) { return open_of(id, 2, device, out); }

/* From here on no descriptor can be made. */
static struct rlimit door;

static Err *put_and_close_the_door(void *arg, const char *key, Str value) {
  (void)arg;
  Err *e = put(NULL, key, value);
  getrlimit(RLIMIT_NOFILE, &door);
  setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, door.rlim_max});
  return e;
}

static Err *get_from_memory(void *arg, const char *key, int timeout_ms, Buf *out) {
  (void)key, (void)timeout_ms;
  const Buf *card = arg;
  buf_add(out, card->p, card->n);
  return NULL;
}

/* What process 1 does; the parent is process 0. */
static pid_t start(const char *device, void (*deed)(Peers *p)) {
  pid_t child = fork();
  if (child) return child;
  Peers *p;
  Err *e = open_as(1, device, &p);
  if (!e) deed(p);
  _exit(e != NULL);
}

/* It came to its own end, and could open; or a signal of ours ended it. */
static void ended(pid_t child, int signal) {
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (signal) assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signal);
  else assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void told(Err *e, ErrCode code, const char *word) {
  assert_non_null(e);
  assert_int_equal(e->code, code);
  if (!strstr(e->msg, word)) fail_msg("'%s' does not say '%s'", e->msg, word);
  err_free(e);
}

static const PeersNote note = {.key = 7, .kind = 1, .what = "sum of f32[3] in 'a'"},
                       other_key = {.key = 8, .kind = 1, .what = "sum of f32[1] in 'a'"},
                       other_kind = {.key = 7, .kind = 2, .what = "max of f32[3] in 'b'"};

#define MUCH (1 << 20)

static void sends(Peers *p) {
  char *much = xcalloc(MUCH, 1);
  for (int i = 0; i < MUCH; i++) much[i] = (char)(i * 7);
  err_free(peers_send(p, 0, &other_key, 1, (const void *[]){"x"}, (size_t[]){1}));
  err_free(peers_send(p, 0, &note, 2, (const void *[]){"one", "two"}, (size_t[]){3, 3}));
  err_free(peers_send(p, 0, &note, 1, (const void *[]){much}, (size_t[]){MUCH}));
  peers_close(p);
}

static void messages(void **state) {
  (void)state;
  pid_t child = start("cpu", sends);
  Peers *p;
  assert_null(open_as(0, "cpu", &p));
  assert_int_equal(peers_devices(p, 1), 4);
  void *got;
  assert_null(peers_receive(p, 1, &note, 6, &got));
  assert_memory_equal(got, "onetwo", 6);
  free(got);
  assert_null(peers_receive(p, 1, &note, MUCH, &got));
  for (int i = 0; i < MUCH; i++) assert_int_equal(((char *)got)[i], (char)(i * 7));
  free(got);
  assert_null(peers_receive(p, 1, &other_key, 1, &got));
  free(got);
  told(peers_receive(p, 1, &note, 6, &got), ERR_UNAVAILABLE, "has left the job");
  peers_close(p);
  ended(child, 0);
}

static void ends(Peers *p) {
  (void)p;
  kill(getpid(), SIGKILL);
}

static void who_ends_is_named(void **state) {
  (void)state;
  pid_t child = start("cpu", ends);
  Peers *p;
  void *got;
  assert_null(open_as(0, "cpu", &p));
  char *name = xasprintf("process 1 (pid %d on ", (int)child);
  told(peers_receive(p, 1, &note, 6, &got), ERR_UNAVAILABLE, name);
  told(peers_receive(p, 1, &other_key, 6, &got), ERR_UNAVAILABLE, "failed before");
  assert_true(peers_lost());
  peers_close(p);
  free(name);
  ended(child, SIGKILL);
}

static void comes_to_another(Peers *p) {
  err_free(peers_send(p, 0, &other_kind, 1, (const void *[]){"123456"}, (size_t[]){6}));
  pause();
}

static void who_disagrees_is_named(void **state) {
  (void)state;
  pid_t child = start("cpu", comes_to_another);
  Peers *p;
  void *got;
  assert_null(open_as(0, "cpu", &p));
  told(peers_receive(p, 1, &note, 6, &got), ERR_INVALID, "to max of f32[3] in 'b'");
  peers_close(p);
  kill(child, SIGKILL);
  ended(child, SIGKILL);
}

static void fails(Peers *p) {
  peers_tell_failure(p, "something else");
  peers_tell_failure(p, ""); /* and goes on */
  peers_tell_failure(p, "no memory");
  pause();
}

static void whose_run_failed_is_named(void **state) {
  (void)state;
  pid_t child = start("cpu", fails);
  Peers *p;
  void *got;
  assert_null(open_as(0, "cpu", &p));
  told(peers_receive(p, 1, &note, 6, &got), ERR_ABORTED, "whose run failed: no memory");
  peers_close(p);
  kill(child, SIGKILL);
  ended(child, SIGKILL);
}

static void nothing(Peers *p) { peers_close(p); }

static void who_is_unlike_is_named(void **state) {
  (void)state;
  pid_t child = start("tpu-v5e-8", nothing);
  Peers *p;
  told(open_as(0, "cpu", &p), ERR_INVALID, "has WEFT_DEVICE tpu-v5e-8, process 0 has cpu");
  int status; /* it is refused as well */
  waitpid(child, &status, 0);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

/* A device's name is the caller's word. */
static void names_with_blanks(void **state) {
  (void)state;
  pid_t child = start("a device, new", nothing);
  Peers *p;
  assert_null(open_as(0, "a device, new", &p));
  peers_close(p);
  ended(child, 0);
}

/* Many addresses: the store's text is longer than any room that is set aside for it. */
static Err *put_with_many_addresses(void *arg, const char *key, Str value) {
  Buf b = {0};
  const char *list = memrchr(value.p, '\n', value.n) + 1;
  buf_add(&b, value.p, (size_t)(list - value.p));
  for (int i = 0; i < 100; i++) buf_cstr(&b, "256.0.0.1,");
  buf_cstr(&b, "127.0.0.1");
  Err *e = put(arg, key, (Str){b.p, b.n});
  buf_free(&b);
  return e;
}

static void many_addresses(void **state) {
  (void)state;
  pid_t child = start("cpu", nothing);
  Peers *p;
  PeersOpts o = {0, 2, "cpu", 3, {NULL, put_with_many_addresses, get}};
  rounds++;
  assert_null(peers_open(&o, &p));
  peers_close(p);
  ended(child, 0);
}

static void an_address_is_checked_at_once(void **state) {
  (void)state;
  setenv("WEFT_PEER_ADDRESS", "ten.zero", 1);
  Peers *p;
  told(open_as(0, "cpu", &p), ERR_INVALID, "WEFT_PEER_ADDRESS is 'ten.zero'");
  unsetenv("WEFT_PEER_ADDRESS");
}

/* Connects as process 1 with the job's secret, and goes away before the answer; then process 1 comes. */
static void comes_again(int key_of_round) {
  char *key = xasprintf("weft/%d/process/0", key_of_round);
  Buf card = {0};
  err_free(get(NULL, key, 10000, &card));
  char *field[7], *rest = card.p;
  for (int i = 0; i < 7; i++) field[i] = strsep(&rest, "\n");
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  at.sin_port = htons((uint16_t)atoi(strrchr(field[5], ' ') + 1));
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  uint32_t who[2] = {1, 0};
  if (connect(fd, (struct sockaddr *)&at, sizeof at) || send(fd, field[4], 32, 0) != 32 ||
      send(fd, who, sizeof who, 0) != sizeof who)
    _exit(2);
  close(fd);
  Peers *p;
  if (open_as(1, "cpu", &p)) _exit(1);
  sends(p);
  _exit(0);
}

static void one_who_comes_again_is_let_in(void **state) {
  (void)state;
  const int round = rounds;
  pid_t child = fork();
  if (!child) comes_again(round);
  Peers *p;
  void *got;
  assert_null(open_as(0, "cpu", &p));
  assert_null(peers_receive(p, 1, &note, 6, &got));
  free(got);
  peers_close(p);
  ended(child, 0);
}

/* No descriptor is left for those who connect: said at once, not waited for. */
static void no_descriptors(void **state) {
  (void)state;
  pid_t child = start("cpu", nothing);
  Buf card = {0};
  char *key = xasprintf("weft/%d/process/1", rounds);
  assert_null(get(NULL, key, 60000, &card)); /* it listens: its card is read without a descriptor */
  Peers *p;
  PeersOpts o = {0, 2, "cpu", 3, {&card, put_and_close_the_door, get_from_memory}};
  told(peers_open(&o, &p), ERR_EXHAUSTED, "cannot take in connections");
  setrlimit(RLIMIT_NOFILE, &door);
  rounds++;
  buf_free(&card);
  free(key);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
}

static void stops(Peers *p) {
  (void)p;
  raise(SIGSTOP);
  pause();
}

/* 64 MiB do not fit between two processes: who takes nothing in is named, and closing does not wait. */
static void who_takes_nothing_is_named(void **state) {
  (void)state;
  pid_t child = start("cpu", stops);
  int status;
  Peers *p;
  size_t n = (size_t)64 << 20;
  void *much = xcalloc(n, 1);
  assert_null(open_as(0, "cpu", &p));
  assert_int_equal(waitpid(child, &status, WUNTRACED), child);
  assert_true(WIFSTOPPED(status));
  setenv("WEFT_EXCHANGE_TIMEOUT", "1", 1);
  const void *pieces[] = {much};
  told(peers_send(p, 1, &note, 1, pieces, &n), ERR_DEADLINE, "has taken in nothing of it for 1 s");
  told(peers_send(p, 1, &note, 1, pieces, &n), ERR_DEADLINE, "failed before");
  unsetenv("WEFT_EXCHANGE_TIMEOUT");
  peers_close(p);
  free(much);
  kill(child, SIGKILL);
  ended(child, SIGKILL);
}

static void speaks_another_language(Peers *p) {
  const char words[] = "GET / HTTP/1.1 and many more words than a header has";
  if (send(p->peer[0].fd, words, sizeof words, 0) < 0) _exit(2);
  pause();
}

static void what_is_no_message_is_named(void **state) {
  (void)state;
  pid_t child = start("cpu", speaks_another_language);
  Peers *p;
  void *got;
  assert_null(open_as(0, "cpu", &p));
  told(peers_receive(p, 1, &note, 6, &got), ERR_UNAVAILABLE, "has sent what is no message");
  peers_close(p);
  kill(child, SIGKILL);
  ended(child, SIGKILL);
}

#ifndef __SANITIZE_ADDRESS__ /* which ends the process where malloc would say no */
static void sends_too_much(Peers *p) {
  uint32_t head[8] = {0x77656674, 3}; /* the type, the length of what it is about; key, kind */
  uint64_t n = (uint64_t)1 << 41;
  memcpy(head + 6, &n, sizeof n);
  if (send(p->peer[0].fd, head, sizeof head, 0) < 0 || send(p->peer[0].fd, "all", 3, 0) < 0)
    _exit(2);
  pause();
}

static void what_does_not_fit_is_named(void **state) {
  (void)state;
  pid_t child = start("cpu", sends_too_much);
  Peers *p;
  void *got;
  struct rlimit all, some = {(rlim_t)1 << 40, (rlim_t)1 << 40};
  getrlimit(RLIMIT_AS, &all);
  some.rlim_max = all.rlim_max;
  setrlimit(RLIMIT_AS, &some);
  assert_null(open_as(0, "cpu", &p));
  told(peers_receive(p, 1, &note, 6, &got), ERR_UNAVAILABLE, "for which there is no memory here");
  setrlimit(RLIMIT_AS, &all);
  peers_close(p);
  kill(child, SIGKILL);
  ended(child, SIGKILL);
}
#endif

static bool is_lost(Peers *p, int who) {
  pthread_mutex_lock(&p->lock);
  bool lost = p->peer[who].gone;
  pthread_mutex_unlock(&p->lock);
  return lost;
}

/* Of three the last is killed, and the second ends over it: the first hears of both. */
static void the_first_that_was_lost_is_named(void **state) {
  (void)state;
  pid_t child[2];
  for (int i = 0; i < 2; i++) {
    if ((child[i] = fork())) continue;
    Peers *p;
    void *got;
    if (open_of(i + 1, 3, "cpu", &p)) _exit(1);
    if (i) kill(getpid(), SIGKILL);
    Err *e = peers_receive(p, 0, &note, 1, &got);
    _exit(e != NULL);
  }
  Peers *p;
  void *got;
  assert_null(open_of(0, 3, "cpu", &p));
  ended(child[1], SIGKILL);
  while (!is_lost(p, 2)) usleep(1000);
  assert_null(peers_send(p, 1, &note, 1, (const void *[]){"x"}, (size_t[]){1}));
  ended(child[0], 0);
  char *name = xasprintf("before, process 2 (pid %d on ", (int)child[1]);
  told(peers_receive(p, 1, &note, 6, &got), ERR_UNAVAILABLE, name);
  free(name);
  peers_close(p);
}

static void who_does_not_come_is_named(void **state) {
  (void)state;
  setenv("WEFT_EXCHANGE_TIMEOUT", "1", 1);
  Peers *p;
  told(open_as(0, "cpu", &p), ERR_DEADLINE, "process 1 of 2 has not come within 1 s");
  unsetenv("WEFT_EXCHANGE_TIMEOUT");
}

int main(void) {
  if (!mkdtemp(folder)) return 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(messages),
      cmocka_unit_test(who_ends_is_named),
      cmocka_unit_test(who_disagrees_is_named),
      cmocka_unit_test(whose_run_failed_is_named),
      cmocka_unit_test(who_is_unlike_is_named),
      cmocka_unit_test(who_does_not_come_is_named),
      cmocka_unit_test(names_with_blanks),
      cmocka_unit_test(many_addresses),
      cmocka_unit_test(an_address_is_checked_at_once),
      cmocka_unit_test(one_who_comes_again_is_let_in),
      cmocka_unit_test(no_descriptors),
      cmocka_unit_test(who_takes_nothing_is_named),
      cmocka_unit_test(what_is_no_message_is_named),
      cmocka_unit_test(the_first_that_was_lost_is_named),
#ifndef __SANITIZE_ADDRESS__
      cmocka_unit_test(what_does_not_fit_is_named),
#endif
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  char *remove = xasprintf("rm -r %s", folder);
  if (system(remove)) failed++;
  free(remove);
  return failed;
}
