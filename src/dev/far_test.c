/* Meetings of devices of four processes: what they compute, and how much they send for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "dev/exchange.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define P 4
#define ROWS 64
#define ROW 1024 /* floats, P blocks of them */
#define COUNT (ROWS * ROW)
#define BYTES (COUNT * sizeof(float))

/* Sums whose value depends on the order of their terms. */
static float value(int device, int i) {
  static const float terms[2 * P] = {1e8f, 3.25f, -1e8f, 1.5f, 7.125f, -3e7f, 0.1f, 3e7f};
  return terms[(device + i) % (2 * P)] + (float)(i % 97);
}

static Err *sum(void *arg, const ExchangeHand *hands, const size_t *bytes) {
  int members = *(const int *)arg;
  size_t count = bytes ? bytes[0] / sizeof(float) : COUNT;
  for (size_t i = 0; i < count; i++) {
    float s = 0;
    for (int p = 0; p < members; p++) s += ((const float *)hands[p].in[0])[i];
    for (int p = 0; p < members; p++)
      if (hands[p].out[0]) ((float *)hands[p].out[0])[i] = s;
  }
  return NULL;
}

static bool sum_is_right(int members, const float *got) {
  for (int i = 0; i < COUNT; i++) {
    float s = 0;
    for (int p = 0; p < members; p++) s += value(p, i);
    if (got[i] != s) return false;
  }
  return true;
}

/* To the next in a ring. */
static void next_needs(const void *arg, int from, int to, int k, ExchangeRange *out) {
  (void)arg, (void)k;
  *out = (ExchangeRange){0, BYTES, 0, to == (from + 1) % P};
}

static Err *turn(void *arg, const ExchangeHand *hands, const size_t *bytes) {
  (void)arg, (void)bytes;
  for (int to = 0; to < P; to++)
    if (hands[to].out[0]) memcpy(hands[to].out[0], hands[(to + P - 1) % P].in[0], BYTES);
  return NULL;
}

/* Block `to` of each row, from all: a transposition. */
static void block_needs(const void *arg, int from, int to, int k, ExchangeRange *out) {
  (void)arg, (void)from, (void)k;
  size_t run = ROW / P * sizeof(float);
  *out = (ExchangeRange){run * (size_t)to, run, ROW * sizeof(float), ROWS};
}

static Err *transpose(void *arg, const ExchangeHand *hands, const size_t *bytes) {
  (void)arg, (void)bytes;
  for (int to = 0; to < P; to++)
    for (int from = 0; from < P && hands[to].out[0]; from++)
      for (int row = 0; row < ROWS; row++)
        memcpy((float *)hands[to].out[0] + (from * ROWS + row) * (ROW / P),
               (const float *)hands[from].in[0] + row * ROW + to * (ROW / P),
               ROW / P * sizeof(float));
  return NULL;
}

static bool is_transposed(int device, const float *got) {
  for (int from = 0; from < P; from++)
    for (int row = 0; row < ROWS; row++)
      for (int i = 0; i < ROW / P; i++)
        if (got[(from * ROWS + row) * (ROW / P) + i] !=
            value(from, row * ROW + device * (ROW / P) + i))
          return false;
  return true;
}

typedef struct Job {
  Exchange *x;
  Peers *peers;
  int id, each; /* devices of a process */
  float *in[2], *out[2];
} Job;

/* All members of all processes; returns what this one sent. */
static uint64_t join(Job *j, ExchangeCall c) {
  int members[2 * P], mine[2], n = P * j->each;
  void *in[2], *out[2];
  ExchangeHand hands[2];
  size_t bytes = BYTES;
  for (int i = 0; i < n; i++) members[i] = i;
  for (int k = 0; k < j->each; k++) {
    mine[k] = j->id * j->each + k;
    for (int i = 0; i < COUNT; i++) j->in[k][i] = value(mine[k], i);
    in[k] = j->in[k], out[k] = j->out[k];
    hands[k] = (ExchangeHand){&in[k], &out[k]};
  }
  uint64_t before = peers_sent(j->peers);
  c.n = n, c.members = members;
  c.n_mine = j->each, c.mine = mine, c.hands = hands;
  c.n_in = c.n_out = 1, c.in_bytes = &bytes;
  c.arg = &n;
  exchange_begin(j->x, j->each, mine, "test");
  Err *e = exchange_join(j->x, &c);
  exchange_end(j->x, j->each, mine, e);
  if (e) fprintf(stderr, "%s\n", e->msg), _exit(9);
  return peers_sent(j->peers) - before;
}

/* 0, or the number of what was wrong. */
static int all(Job *j) {
  j->each = 1;
  uint64_t sent = join(j, (ExchangeCall){.what = "sum", .by_element = true, .finish = sum});
  if (!sum_is_right(P, j->out[0])) return 1;
  if (sent != 2 * (P - 1) * BYTES / P) return 2;
  sent = join(j, (ExchangeCall){.what = "whole sum", .channel = 1, .finish = sum});
  if (!sum_is_right(P, j->out[0]) || sent != (P - 1) * BYTES) return 3;
  sent = join(j, (ExchangeCall){.what = "turn", .channel = 2, .needs = next_needs, .finish = turn});
  for (int i = 0; i < COUNT; i++)
    if (j->out[0][i] != value((j->id + P - 1) % P, i)) return 4;
  if (sent != BYTES) return 5;
  sent = join(j, (ExchangeCall){
                     .what = "transpose", .channel = 3, .needs = block_needs, .finish = transpose});
  if (!is_transposed(j->id, j->out[0])) return 6;
  return sent != (P - 1) * BYTES / P ? 7 : 0;
}

/* With two devices in each process. */
static int pairs(Job *j) {
  j->each = 2;
  uint64_t sent = join(j, (ExchangeCall){.what = "sum", .by_element = true, .finish = sum});
  for (int k = 0; k < 2; k++)
    if (!sum_is_right(2 * P, j->out[k])) return 1;
  return sent != 3 * (P - 1) * BYTES / P ? 2 : 0;
}

static void process(int id, int port, int each, int (*deed)(Job *)) {
  static char host[] = "127.0.0.1";
  PeersPlace at = {.id = id, .n = P, .host = host, .port = port};
  PeersHub *hub;
  Job j = {.id = id, .x = exchange_new(each * P)};
  int owner[2 * P];
  for (int i = 0; i < each * P; i++) owner[i] = i / each;
  if (peers_hub_open(&at, &hub)) _exit(10);
  PeersOpts o = {.id = id, .n = P, .device = "cpu", .devices = each, .store = peers_hub_store(hub)};
  if (peers_open(&o, &j.peers)) _exit(11);
  exchange_share(j.x, j.peers, owner);
  for (int k = 0; k < 2; k++) j.in[k] = xcalloc(COUNT, 4), j.out[k] = xcalloc(COUNT, 4);
  int wrong = deed(&j);
  peers_hub_close(hub, NULL);
  peers_close(j.peers);
  _exit(wrong);
}

static void by_four(int each, int (*deed)(Job *)) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t n = sizeof at;
  int fd = socket(AF_INET, SOCK_STREAM, 0), status;
  assert_int_equal(bind(fd, (struct sockaddr *)&at, n), 0);
  assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
  close(fd);
  pid_t child[P];
  for (int id = 0; id < P; id++)
    if (!(child[id] = fork())) process(id, ntohs(at.sin_port), each, deed);
  for (int id = 0; id < P; id++) {
    assert_int_equal(waitpid(child[id], &status, 0), child[id]);
    assert_int_equal(status, 0);
  }
}

static void of_one_device(void **state) {
  (void)state;
  by_four(1, all);
}

static void of_two_devices(void **state) {
  (void)state;
  by_four(2, pairs);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(of_one_device),
                                     cmocka_unit_test(of_two_devices)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
