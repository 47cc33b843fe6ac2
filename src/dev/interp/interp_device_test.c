/* The simple devices through the device interface: interp computes, null gives zeros; names,
 * shards, errors. */
#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/err_test.h"
#include "dev/dev.h"
#include "stablehlo/stablehlo.h"

#include <stdlib.h>

#define N 4
/* Rows on four devices; every device adds the sum over all of them. */
static const char program[] =
    "module @m attributes {mhlo.num_partitions = 4 : i32} {\n"
    "  sdy.mesh @mesh = <[\"x\"=4]>\n"
    "  func.func public @main(%a: tensor<8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}) "
    "->"
    " (tensor<8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}, tensor<2xi32>) {\n"
    "    %0:2 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{\"x\"}]>]"
    " out_shardings=[<@mesh, [{\"x\"}]>, <@mesh, [{}]>] manual_axes={\"x\"} (%b: tensor<2xi32>) {\n"
    "      %1 = \"stablehlo.all_reduce\"(%b) <{channel_handle = #stablehlo.channel_handle<handle = "
    "1, type = 0>,"
    " replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({\n"
    "      ^bb0(%x: tensor<i32>, %y: tensor<i32>):\n"
    "        %s = stablehlo.add %x, %y : tensor<i32>\n"
    "        stablehlo.return %s : tensor<i32>\n"
    "      }) : (tensor<2xi32>) -> tensor<2xi32>\n"
    "      %2 = stablehlo.add %1, %b : tensor<2xi32>\n"
    "      sdy.return %2, %1 : tensor<2xi32>, tensor<2xi32>\n"
    "    } : (tensor<8xi32>) -> (tensor<8xi32>, tensor<2xi32>)\n"
    "    return %0#0, %0#1 : tensor<8xi32>, tensor<2xi32>\n"
    "  }\n"
    "}\n";

static void run(const char *spec, const int32_t (*rows)[2], const int32_t *sum) {
  Dev *d;
  Module *m;
  DevProgram *p;
  ok(dev_open(spec, &d));
  ok(stablehlo_read_text("test.mlir", str_from(program), &m));
  DevCompileOpts opts = {.replicas = 1, .partitions = N, .auto_spmd = true};
  ok(dev_compile(d, m, &opts, &p));
  module_free(m);
  int devices[N];
  int64_t two = 2;
  DevBuffer *in[N], *out[N][2];
  DevBuffer *const *args[N];
  DevBuffer **outs[N];
  for (int i = 0; i < N; i++) {
    Tensor *t = tensor_make(DT_I32, 1, &two);
    ((int32_t *)t->data)[0] = i;
    ((int32_t *)t->data)[1] = 10 * i;
    ok(dev_buffer_new(d, i, t, false, &in[i]));
    devices[i] = i;
    args[i] = &in[i];
    outs[i] = out[i];
  }
  ok(dev_execute(p, &(DevPart){N, NULL, devices, NULL}, args, NULL, outs, NULL));
  for (int i = 0; i < N; i++) {
    assert_int_equal(out[i][0]->t->count, 2);
    assert_memory_equal(out[i][0]->t->data, rows[i], 8);
    assert_memory_equal(out[i][1]->t->data, sum, 8);
    assert_int_equal(out[i][0]->device, i);
    dev_buffer_release(in[i]);
    dev_buffer_release(out[i][0]);
    dev_buffer_release(out[i][1]);
  }
  DevStats stats;
  dev_stats(d, 0, &stats);
  assert_int_equal(stats.in_use, 0);
  dev_program_release(p);
  dev_close(d);
}

static void interp_computes(void **state) {
  (void)state;
  run("interp:4", (const int32_t[N][2]){{6, 60}, {7, 70}, {8, 80}, {9, 90}},
      (const int32_t[]){6, 60});
}

static void null_gives_zeros(void **state) {
  (void)state;
  run("null:4", (const int32_t[N][2]){{0}}, (const int32_t[]){0, 0});
}

static void bad_names(void **state) {
  (void)state;
  static const char *const bad[] = {
      "interp:", "interp:0", "interp:-1", "interp:8x", "null:99999999999999999999", "null:x"};
  for (int i = 0; i < COUNT_OF(bad); i++) {
    Dev *d = NULL;
    Err *e = dev_open(bad[i], &d);
    if (!strcmp(bad[i], "interp:")) { /* nothing after the colon: one device */
      ok(e);
      assert_int_equal(d->n, 1);
      dev_close(d);
      continue;
    }
    if (!e) fail_msg("opened '%s'", bad[i]);
    assert_int_equal(e->code, ERR_INVALID);
    err_free(e);
  }
}

static void too_few_devices(void **state) {
  (void)state;
  Dev *d;
  Module *m;
  DevProgram *p = NULL;
  ok(dev_open("interp:2", &d));
  ok(stablehlo_read_text("test.mlir", str_from(program), &m));
  DevCompileOpts opts = {.replicas = 1, .partitions = N, .auto_spmd = true};
  Err *e = dev_compile(d, m, &opts, &p);
  assert_non_null(e);
  assert_int_equal(e->code, ERR_INVALID);
  err_free(e);
  module_free(m);
  dev_close(d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(interp_computes), cmocka_unit_test(null_gives_zeros),
      cmocka_unit_test(bad_names), cmocka_unit_test(too_few_devices)};
  return cmocka_run_group_tests_name("simple devices", tests, NULL, NULL);
}
