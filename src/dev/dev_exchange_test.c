/* Meetings of threads: results do not depend on who comes when, and whoever is missed is named. */
#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

#include "dev/exchange.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define N 4
static const int group[N] = {2, 0, 3, 1}; /* devices, in the order of the group */

/* Of f32: a sum whose value depends on the order of its terms. */
static Err *sum(void *arg, const ExchangeHand *hands, const size_t *bytes) {
  (void)arg, (void)bytes;
  float s = 0;
  for (int p = 0; p < N; p++) s += *(const float *)hands[p].in[0];
  for (int p = 0; p < N; p++) *(float *)hands[p].out[0] = s;
  return NULL;
}

typedef struct Comer {
  Exchange *x;
  int place, late_us, rounds;
  int64_t channel;
  uint64_t kind;
  const char *program;
  float got[8];
  Err *e;
  pthread_t thread;
} Comer;

static Err *join(Comer *c, float give, float *take) {
  void *in[1] = {&give}, *out[1] = {take};
  ExchangeCall call = {.what = "sum of f32[]",
                       .kind = c->kind,
                       .channel = c->channel,
                       .n = N,
                       .members = group,
                       .n_mine = 1,
                       .mine = &c->place,
                       .hands = &(ExchangeHand){in, out},
                       .finish = sum};
  return exchange_join(c->x, &call);
}

static float term(int place, int round) {
  static const float terms[N] = {1e8f, 3.25f, -1e8f, 1.5f};
  return terms[(place + round) % N];
}

static void *come(void *arg) {
  Comer *c = arg;
  exchange_begin(c->x, 1, &group[c->place], c->program);
  for (int r = 0; r < c->rounds && !c->e; r++) {
    usleep((unsigned)c->late_us);
    c->e = join(c, term(c->place, r), &c->got[r]);
  }
  exchange_end(c->x, 1, &group[c->place], c->e);
  return NULL;
}

static void start(Comer *c) { assert_int_equal(pthread_create(&c->thread, NULL, come, c), 0); }

static void has(const Err *e, ErrCode code, const char *const *words) {
  assert_non_null(e);
  for (; *words; words++)
    if (!strstr(e->msg, *words)) fail_msg("'%s' is not in: %s", *words, e->msg);
  assert_int_equal(e->code, code);
}

static void order_is_that_of_the_group(void **state) {
  (void)state;
  Exchange *x = exchange_new(N);
  for (int first = 0; first < N; first++) {
    Comer c[N];
    for (int p = 0; p < N; p++) {
      c[p] = (Comer){.x = x, .place = p, .rounds = 8, .kind = 1, .program = "A"};
      c[p].late_us = 300 * ((p + first) % N);
      start(&c[p]);
    }
    for (int p = 0; p < N; p++) pthread_join(c[p].thread, NULL);
    for (int r = 0; r < 8; r++) {
      float want = 0;
      for (int p = 0; p < N; p++) want += term(p, r);
      for (int p = 0; p < N; p++) {
        assert_null(c[p].e);
        assert_true(c[p].got[r] == want);
      }
    }
  }
  exchange_free(x);
}

/* Three come; the fourth has run something else, and comes when it is too late. */
static void who_does_not_come_is_named(void **state) {
  (void)state;
  setenv("WEFT_EXCHANGE_TIMEOUT", "1", 1);
  Exchange *x = exchange_new(N);
  exchange_begin(x, 1, (int[]){1}, "B");
  exchange_end(x, 1, (int[]){1}, NULL);
  Comer c[N];
  for (int p = 0; p < N; p++) {
    c[p] = (Comer){.x = x, .place = p, .rounds = 1, .kind = 1, .program = "A"};
    if (p < 3) start(&c[p]);
  }
  for (int p = 0; p < 3; p++) {
    pthread_join(c[p].thread, NULL);
    has(c[p].e, ERR_DEADLINE,
        (const char *[]){"sum of f32[] in 'A'", "wait for device 1", "since 'B'", NULL});
    err_free(c[p].e);
  }
  start(&c[3]);
  pthread_join(c[3].thread, NULL);
  has(c[3].e, ERR_DEADLINE, (const char *[]){"device 1", NULL});
  err_free(c[3].e);
  /* the next one is a new one */
  for (int p = 0; p < N; p++) {
    c[p] = (Comer){.x = x, .place = p, .rounds = 1, .kind = 1, .program = "A"};
    start(&c[p]);
  }
  for (int p = 0; p < N; p++) {
    pthread_join(c[p].thread, NULL);
    assert_null(c[p].e);
  }
  unsetenv("WEFT_EXCHANGE_TIMEOUT");
  exchange_free(x);
}

static void who_waits_for_each_other_is_told(void **state) {
  (void)state;
  Exchange *x = exchange_new(N);
  Comer c[N];
  for (int p = 0; p < N; p++) {
    c[p] = (Comer){.x = x, .place = p, .rounds = 1, .channel = p % 2, .program = p % 2 ? "B" : "A"};
    start(&c[p]);
  }
  for (int p = 0; p < N; p++) {
    pthread_join(c[p].thread, NULL);
    has(c[p].e, ERR_ABORTED, (const char *[]){"wait for each other", "'A'", "'B'", NULL});
    err_free(c[p].e);
  }
  exchange_free(x);
}

static void a_failed_run_is_told(void **state) {
  (void)state;
  Exchange *x = exchange_new(N);
  Comer c[3];
  exchange_begin(x, 1, &group[3], "B");
  for (int p = 0; p < 3; p++) {
    c[p] = (Comer){.x = x, .place = p, .rounds = 1, .program = "A"};
    start(&c[p]);
  }
  usleep(20000);
  Err *e = err_new(ERR_EXHAUSTED, "no memory for it");
  exchange_end(x, 1, &group[3], e);
  err_free(e);
  for (int p = 0; p < 3; p++) {
    pthread_join(c[p].thread, NULL);
    has(c[p].e, ERR_ABORTED, (const char *[]){"device 1", "'B'", "no memory for it", NULL});
    err_free(c[p].e);
  }
  exchange_free(x);
}

static void all_have_to_agree(void **state) {
  (void)state;
  Exchange *x = exchange_new(N);
  Comer c[N];
  for (int p = 0; p < N; p++) {
    c[p] = (Comer){.x = x, .place = p, .rounds = 1, .kind = p == 2, .program = "A"};
    start(&c[p]);
  }
  for (int p = 0; p < N; p++) {
    pthread_join(c[p].thread, NULL);
    assert_non_null(c[p].e);
    assert_int_equal(c[p].e->code, ERR_INVALID);
    err_free(c[p].e);
  }
  exchange_free(x);
}

static void closing_ends_the_wait(void **state) {
  (void)state;
  Exchange *x = exchange_new(N);
  Comer c = {.x = x, .place = 0, .rounds = 1, .program = "A"};
  start(&c);
  usleep(20000);
  exchange_close(x);
  pthread_join(c.thread, NULL);
  has(c.e, ERR_CANCELLED, (const char *[]){"closed", NULL});
  err_free(c.e);
  exchange_free(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(order_is_that_of_the_group),
                                     cmocka_unit_test(who_does_not_come_is_named),
                                     cmocka_unit_test(who_waits_for_each_other_is_told),
                                     cmocka_unit_test(a_failed_run_is_told),
                                     cmocka_unit_test(all_have_to_agree),
                                     cmocka_unit_test(closing_ends_the_wait)};
  return cmocka_run_group_tests_name("exchange", tests, NULL, NULL);
}
