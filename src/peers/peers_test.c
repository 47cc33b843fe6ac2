/* Two processes, with files as the store: messages arrive whole and in order, whoever ends, disagrees, is
 * unlike or does not come is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "peers/peers.h"

#include <signal.h>
#include <stdlib.h>
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

static Err *open_as(int id, const char *device, Peers **out) {
  PeersOpts o = {.id = id, .n = 2, .device = device, .devices = 3 + id, .store = {NULL, put, get}};
  return peers_open(&o, out);
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
  waitpid(child, NULL, 0);
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
  waitpid(child, NULL, 0);
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
  waitpid(child, NULL, 0);
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
  waitpid(child, NULL, 0);
}

static void nothing(Peers *p) { peers_close(p); }

static void who_is_unlike_is_named(void **state) {
  (void)state;
  pid_t child = start("tpu-v5e-8", nothing);
  Peers *p;
  told(open_as(0, "cpu", &p), ERR_INVALID, "has WEFT_DEVICE tpu-v5e-8, process 0 has cpu");
  waitpid(child, NULL, 0);
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
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  char *remove = xasprintf("rm -r %s", folder);
  if (system(remove)) failed++;
  free(remove);
  return failed;
}
