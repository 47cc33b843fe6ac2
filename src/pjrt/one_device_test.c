/* Callers that execute one device in each call. All calls here come from one thread: none of them may
 * wait for the others. */
#include "pjrt/plugin_test.h"

#include <unistd.h>

#define N 4

static const char four_replicas[] = {0x1a, 4, 0x20, N, 0x28, 1};
static const char four_partitions[] = {0x1a, 6, 0x20, 1, 0x28, N, 0x30, 1};

#define GROUP "replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>"
#define ADDS(t)                                      \
  "({ ^bb0(%p: tensor<" t ">, %q: tensor<" t ">):\n" \
  " %s = stablehlo.add %p, %q : tensor<" t ">\n"     \
  " stablehlo.return %s : tensor<" t "> })"

/* sum over all, times 2 */
static const char sums[] = "module @sums { func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
                           " %0 = \"stablehlo.all_reduce\"(%a) <{" GROUP
                           "}> " ADDS("f32") " : (tensor<2xf32>) -> tensor<2xf32>\n"
                                             " %1 = stablehlo.add %0, %0 : tensor<2xf32>\n"
                                             " return %1 : tensor<2xf32> } }";
/* of another rank: minus itself */
static const char other[] =
    "module @other { func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
    " %n = stablehlo.negate %a : tensor<2xf32>\n"
    " %0 = \"stablehlo.all_reduce\"(%n) <{" GROUP
    "}> " ADDS("f32") " : (tensor<2xf32>) -> tensor<2xf32>\n"
                      " return %0 : tensor<2xf32> } }";
static const char longer[] =
    "module @longer { func.func @main(%a: tensor<2xf32>) -> tensor<4xf32> {\n"
    " %c = stablehlo.concatenate %a, %a, dim = 0 : (tensor<2xf32>, "
    "tensor<2xf32>) -> tensor<4xf32>\n"
    " %0 = \"stablehlo.all_reduce\"(%c) <{" GROUP
    "}> " ADDS("f32") " : (tensor<4xf32>) -> tensor<4xf32>\n"
                      " return %0 : tensor<4xf32> } }";
static const char alone[] =
    "module @alone { func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
    " %0 = stablehlo.add %a, %a : tensor<2xf32>\n"
    " return %0 : tensor<2xf32> } }";
/* a loop whose number of turns differs between devices, with pairs that meet after it */
static const char turns[] =
    "module @turns { func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
    " %r = stablehlo.replica_id : tensor<ui32>\n"
    " %z = stablehlo.constant dense<0> : tensor<ui32>\n"
    " %o = stablehlo.constant dense<1> : tensor<ui32>\n"
    " %l:2 = stablehlo.while(%i = %z, %x = %a) : tensor<ui32>, tensor<2xf32>\n"
    " cond { %c = stablehlo.compare LT, %i, %r : (tensor<ui32>, tensor<ui32>) -> tensor<i1>\n"
    "  stablehlo.return %c : tensor<i1> }\n"
    " do { %i1 = stablehlo.add %i, %o : tensor<ui32>\n"
    "  %x1 = stablehlo.add %x, %x : tensor<2xf32>\n"
    "  stablehlo.return %i1, %x1 : tensor<ui32>, tensor<2xf32> }\n"
    " %0 = \"stablehlo.all_reduce\"(%l#1) <{replica_groups = dense<[[0, 2], [1, 3]]> : "
    "tensor<2x2xi64>}> " ADDS("f32") " : (tensor<2xf32>) -> tensor<2xf32>\n"
                                     " return %0 : tensor<2xf32> } }";

static PJRT_LoadedExecutable *made(const char *text, const char *options, size_t n) {
  PJRT_LoadedExecutable *x;
  ok(compile(text, options, n, &x), "compile");
  return x;
}

static void unload(PJRT_LoadedExecutable *x) { CALL(LoadedExecutable_Destroy, d, .executable = x); }

/* Executes on one device; takes the argument. */
static PJRT_Buffer *execute(PJRT_LoadedExecutable *x, int at, PJRT_Buffer *arg, PJRT_Event **done) {
  PJRT_Buffer *out, **outs = &out;
  PJRT_ExecuteOptions o = {.struct_size = PJRT_END(PJRT_ExecuteOptions, launch_id)};
  CALL(LoadedExecutable_Execute, e, .executable = x, .options = &o,
       .argument_lists = (PJRT_Buffer *const *const[]){&arg}, .num_devices = 1, .num_args = 1,
       .output_lists = (PJRT_Buffer * *const[]){outs}, .device_complete_events = done,
       .execute_device = device(at));
  destroy(arg);
  return out;
}

static PJRT_Buffer *argument(int at) {
  float v[2] = {(float)(at + 1), 10 * (float)(at + 1)};
  return put(at, PJRT_Buffer_Type_F32, 1, (int64_t[]){2}, NULL, v);
}

static void check(PJRT_Buffer *b, float x, float y) {
  float got[2];
  get(b, got, sizeof got);
  if (got[0] != x || got[1] != y) fail_msg("%g %g, not %g %g", got[0], got[1], x, y);
  destroy(b);
}

static void replicas_meet(void **state) {
  (void)state;
  PJRT_LoadedExecutable *x[N]; /* each with its own, of the same bytes */
  PJRT_Buffer *out[N];
  for (int k = 0; k < N; k++) x[k] = made(sums, four_replicas, sizeof four_replicas);
  for (int round = 0; round < 3; round++) {
    for (int k = 0; k < N; k++) out[k] = execute(x[k], k, argument(k), NULL);
    for (int k = 0; k < N; k++) check(out[k], 20, 200);
  }
  for (int round = 0; round < 40; round++) /* far ahead, of one device */
    destroy(execute(x[0], 0, argument(0), NULL));
  for (int round = 0; round < 40; round++)
    for (int k = 1; k < N; k++) out[k] = execute(x[0], k, argument(k), NULL), destroy(out[k]);
  for (int k = 0; k < N; k++) out[k] = execute(x[1], k, argument(k), NULL);
  for (int k = 0; k < N; k++) check(out[k], 20, 200);
  for (int k = 0; k < N; k++) unload(x[k]);
}

static void programs_that_differ_meet(void **state) {
  (void)state;
  PJRT_LoadedExecutable *a = made(sums, four_replicas, sizeof four_replicas),
                        *b = made(other, four_replicas, sizeof four_replicas);
  PJRT_Buffer *out[N];
  for (int k = 0; k < N; k++) out[k] = execute(k == 2 ? b : a, k, argument(k), NULL);
  for (int k = 0; k < N; k++) check(out[k], k == 2 ? 1 + 2 - 3 + 4 : 8, k == 2 ? 40 : 80);
  unload(a);
  unload(b);
}

static void without_exchange_one_runs_alone(void **state) {
  (void)state;
  PJRT_LoadedExecutable *x = made(alone, four_replicas, sizeof four_replicas);
  check(execute(x, 3, argument(3), NULL), 8, 80);
  unload(x);
}

static void control_may_differ(void **state) {
  (void)state;
  PJRT_LoadedExecutable *x = made(turns, four_replicas, sizeof four_replicas);
  PJRT_Buffer *out[N];
  for (int k = 0; k < N; k++) out[k] = execute(x, k, argument(k), NULL);
  for (int k = 0; k < N; k++) check(out[k], k % 2 ? 36 : 13, k % 2 ? 360 : 130);
  unload(x);
}

/* The error of a run: Execute itself does not fail. */
static void fails_with(PJRT_Event *done, int code, const char *const *words) {
  PJRT_Event_Await_Args w = ARGS(Event_Await, .event = done);
  fails_saying(api->PJRT_Event_Await(&w), code, words);
  CALL(Event_Destroy, d, .event = done);
}

static void who_does_not_come_is_named(void **state) {
  (void)state;
  setenv("WEFT_EXCHANGE_TIMEOUT", "1", 1);
  PJRT_LoadedExecutable *a = made(sums, four_replicas, sizeof four_replicas),
                        *b = made(alone, four_replicas, sizeof four_replicas);
  PJRT_Event *done[N];
  destroy(execute(b, 3, argument(3), NULL));
  for (int k = 0; k < 3; k++) destroy(execute(a, k, argument(k), &done[k]));
  for (int k = 0; k < 3; k++)
    fails_with(done[k], PJRT_Error_Code_DEADLINE_EXCEEDED,
               (const char *[]){"all_reduce(add) of tensor<2xf32>", "'sums'", "device 3", "'alone'",
                                NULL});
  destroy(execute(a, 3, argument(3), &done[3]));
  fails_with(done[3], PJRT_Error_Code_DEADLINE_EXCEEDED, (const char *[]){"device 3", NULL});
  unsetenv("WEFT_EXCHANGE_TIMEOUT");
  unload(a);
  unload(b);
}

/* A caller that knows that nobody will come shortens a wait under way. */
static void a_wait_is_cut_short(void **state) {
  (void)state;
  setenv("WEFT_EXCHANGE_TIMEOUT", "1000", 1);
  PJRT_LoadedExecutable *a = made(sums, four_replicas, sizeof four_replicas);
  PJRT_Event *done[N];
  for (int k = 0; k < 3; k++) destroy(execute(a, k, argument(k), &done[k]));
  setenv("WEFT_EXCHANGE_TIMEOUT", "1", 1);
  for (int k = 0; k < 3; k++)
    fails_with(done[k], PJRT_Error_Code_DEADLINE_EXCEEDED,
               (const char *[]){"'sums'", "device 3", NULL});
  destroy(execute(a, 3, argument(3), &done[3]));
  fails_with(done[3], PJRT_Error_Code_DEADLINE_EXCEEDED, (const char *[]){NULL});
  unsetenv("WEFT_EXCHANGE_TIMEOUT");
  unload(a);
}

static void who_does_not_agree_is_named(void **state) {
  (void)state;
  PJRT_LoadedExecutable *a = made(sums, four_replicas, sizeof four_replicas),
                        *b = made(longer, four_replicas, sizeof four_replicas);
  PJRT_Event *done[N];
  for (int k = 0; k < N; k++) destroy(execute(k == 1 ? b : a, k, argument(k), &done[k]));
  for (int k = 0; k < N; k++)
    fails_with(done[k], PJRT_Error_Code_INVALID_ARGUMENT,
               (const char *[]){"'sums'", "'longer'", "tensor<4xf32>", NULL});
  unload(a);
  unload(b);
}

static void partitions_come_one_by_one(void **state) {
  (void)state;
  static const char text[] =
      "module @rows { sdy.mesh @mesh = <[\"x\"=4]>\n"
      " func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}) -> "
      "(tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}) {\n"
      " %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      " %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : "
      "(tensor<8xf32>, tensor<f32>) -> tensor<f32>\n"
      " %b = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<8xf32>\n"
      " %0 = stablehlo.add %a, %b : tensor<8xf32>\n"
      " return %0 : tensor<8xf32> } }";
  PJRT_LoadedExecutable *x = made(text, four_partitions, sizeof four_partitions);
  PJRT_Buffer *out[N];
  for (int round = 0; round < 2; round++) {
    for (int k = 0; k < N; k++) out[k] = execute(x, k, argument(k), NULL);
    for (int k = 0; k < N; k++) check(out[k], 110 + (float)(k + 1), 110 + 10 * (float)(k + 1));
  }
  unload(x);
}

static void runs_on_another_device(void **state) {
  (void)state;
  PJRT_LoadedExecutable *x = made(alone, one_device, sizeof one_device);
  PJRT_Buffer *b = execute(x, 2, argument(2), NULL);
  CALL(Buffer_Device, where, .buffer = b);
  assert_ptr_equal(where.device, device(2));
  check(b, 6, 60);
  unload(x);
}

#define TESTS                                                                                      \
  cmocka_unit_test(replicas_meet), cmocka_unit_test(programs_that_differ_meet),                    \
      cmocka_unit_test(without_exchange_one_runs_alone), cmocka_unit_test(control_may_differ),     \
      cmocka_unit_test(who_does_not_come_is_named), cmocka_unit_test(a_wait_is_cut_short),         \
      cmocka_unit_test(who_does_not_agree_is_named), cmocka_unit_test(partitions_come_one_by_one), \
      cmocka_unit_test(runs_on_another_device)

static int cpu(void **state) { return setup_on("cpu:4", state); }
static int interp(void **state) { return setup_on("interp:4", state); }
static int chips(void **state) { return setup_on("tpu-v5e-4", state); }

int main(void) {
  alarm(120); /* what must not wait would wait for long */
  const struct CMUnitTest tests[] = {TESTS};
  int bad = cmocka_run_group_tests_name("one device a call: cpu", tests, cpu, teardown);
  bad += cmocka_run_group_tests_name("one device a call: interp", tests, interp, teardown);
  return bad + cmocka_run_group_tests_name("one device a call: chips", tests, chips, teardown);
}
