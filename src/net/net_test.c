/* net: groups as replica_groups lists them, and what others measured or published of exchanges. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "net/net.h"

static Net opened(const char *chip, int devices, const NetOpts *opts) {
  const Chip *c;
  Net net;
  assert_null(chip_find(chip, &c));
  assert_null(net_open(c, devices, opts, &net));
  return net;
}

static double seconds(const Net *net, NetKind kind, double bytes, NetGroup g) {
  return net_cost(net, &(NetCall){kind, bytes, DT_BF16, g}).s;
}

static void test_groups(void **state) {
  (void)state;
  const int64_t near[] = {0, 1, 2, 3}, far[] = {4, 12, 20, 28}, grid[] = {0, 1, 8, 9, 16, 17};
  const int64_t odd[] = {0, 1, 3, 4, 5};
  NetGroup g;
  assert_true(net_group_of(near, 1, 4, &g));
  assert_int_equal(g.n, 1);
  assert_int_equal(g.axis[0].size, 4);
  assert_int_equal(g.axis[0].stride, 1);
  assert_true(net_group_of(far, 1, 4, &g));
  assert_int_equal(g.axis[0].stride, 8);
  assert_true(net_group_of(grid, 1, 6, &g));
  assert_int_equal(g.n, 2);
  assert_int_equal(g.axis[0].size, 2);
  assert_int_equal(g.axis[1].size, 3);
  assert_int_equal(g.axis[1].stride, 8);
  assert_false(net_group_of(odd, 1, 5, &g));
  assert_int_equal(net_group_size(&g, 0), 5);
}

/* Groups that all reach into both servers share the cards; one group has them all. */
static void test_sharing(void **state) {
  (void)state;
  Net net = opened("H100", 16, NULL);
  double one = seconds(&net, NET_ALL_GATHER, 1e9, (NetGroup){0});
  double eight = seconds(&net, NET_ALL_GATHER, 1e9, (NetGroup){1, {{2, 8}}});
  double inside = seconds(&net, NET_ALL_GATHER, 1e9, (NetGroup){1, {{8, 1}}});
  assert_true(eight > 3 * one);
  assert_true(inside < one);
  assert_float_equal(seconds(&net, NET_ALL_GATHER, 1e9, (NetGroup){1, {{1, 1}}}), 0, 0);
}

/* Austin et al., "How to Scale Your Model", ch. 3: an all-gather of 34 MB over an axis of four of a v5e 4x4
 * takes about 680 us measured; a ring of 16 moves bytes at twice its links' rate. */
static void test_torus(void **state) {
  (void)state;
  Net line = opened("tpu-v5e", 16, &(NetOpts){.slice = {{4, 4, 1}, 16, 1}});
  double t = seconds(&line, NET_ALL_GATHER, 2048.0 * 8192 * 2, (NetGroup){1, {{4, 1}}});
  assert_float_equal(t, 650e-6, 80e-6);
  Net ring = opened("tpu-v5e", 256, NULL);
  assert_int_equal(ring.dims[0], 16);
  double whole = seconds(&ring, NET_ALL_GATHER, 1e9, (NetGroup){0}),
         axis = seconds(&ring, NET_ALL_GATHER, 1e9, (NetGroup){1, {{16, 16}}});
  assert_float_equal(axis / whole, 2, 0.15);
  Net two = opened("tpu-v5e", 512, &(NetOpts){.slice.slices = 2});
  NetCost far = net_cost(&two, &(NetCall){NET_ALL_REDUCE, 1e9, DT_BF16, {1, {{2, 256}}}});
  assert_true(far.bytes[NET_BETWEEN] > 0 && far.bytes[NET_INSIDE] == 0);
  assert_true(far.s > 0.3);
}

/* Numbers of devices count along x; those of a mesh along the longest axis. Slices have no torus in common. */
static void test_slices(void **state) {
  (void)state;
  ChipSlice tall = {{4, 8, 1}, 32, 1}, two = {{4, 4, 1}, 16, 2};
  NetGroup row = {1, {{4, 1}}}, both = {1, {{2, 16}}};
  Net own = opened("tpu-v5e", 32, &(NetOpts){.slice = tall}),
      mesh = opened("tpu-v5e", 32, &(NetOpts){.slice = tall, .meshed = true}),
      far = opened("tpu-v5e", 32, &(NetOpts){.slice = two}), many = opened("tpu-v5e", 512, NULL);
  assert_int_equal(own.dims[1], 4);
  assert_int_equal(mesh.dims[1], 8);
  assert_int_equal(many.domain, 256); /* the largest slice */
  assert_true(net_cost(&own, &(NetCall){NET_ALL_GATHER, 1e9, DT_BF16, both}).bytes[NET_BETWEEN] ==
              0);
  assert_true(net_cost(&far, &(NetCall){NET_ALL_GATHER, 1e9, DT_BF16, both}).bytes[NET_BETWEEN] >
              0);
  assert_true(net_cost(&far, &(NetCall){NET_ALL_GATHER, 1e9, DT_BF16, row}).bytes[NET_BETWEEN] ==
              0);
}

static void test_errors(void **state) {
  (void)state;
  const Chip *c;
  Net net;
  assert_null(chip_find("H100", &c));
  const Server *other;
  assert_null(server_find("dgx-a100", &other));
  Err *e = net_open(c, 8, &(NetOpts){.server = other}, &net);
  assert_non_null(e);
  err_free(e);
  assert_null(chip_find("tpu-v5p", &c));
  const NetOpts wrong[] = {{.server = other}, {.slice = {{2, 2, 1}, 4, 1}}};
  for (int i = 0; i < COUNT_OF(wrong); i++) {
    e = net_open(c, 8, &wrong[i], &net);
    assert_non_null(e);
    err_free(e);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_groups), cmocka_unit_test(test_sharing),
                                     cmocka_unit_test(test_torus), cmocka_unit_test(test_slices),
                                     cmocka_unit_test(test_errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
