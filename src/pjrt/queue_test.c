/* Who computes a run: the caller, or its device's queue. Decided by what the last run took and by whether
 * the caller waits after each; here those are given, not measured. */
#include "pjrt/plugin_test.h"

#include "pjrt/pjrt_priv.h"

static const char twice[] = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
                            "  %0 = stablehlo.add %a, %a : tensor<2xf32>\n"
                            "  return %0 : tensor<2xf32>\n}\n";

static bool is_ready(PJRT_Buffer *b) {
  CALL(Buffer_ReadyEvent, r, .buffer = b);
  CALL(Event_IsReady, i, .event = r.event);
  CALL(Event_Destroy, d, .event = r.event);
  return i.is_ready;
}

/* Was a run of a program that took so long before left to the queue? */
static bool is_queued(PJRT_LoadedExecutable *x, int64_t took_ns, bool waits_before) {
  const float two[2] = {1, 2};
  const int64_t n = 2;
  PJRT_Buffer *in = put(0, PJRT_Buffer_Type_F32, 1, &n, NULL, two), *out, **outs = &out;
  device(0)->asked = waits_before;
  x->exe->run_ns = took_ns;
  PJRT_ExecuteOptions o = {.struct_size = PJRT_END(PJRT_ExecuteOptions, launch_id)};
  CALL(LoadedExecutable_Execute, e, .executable = x, .options = &o,
       .argument_lists = (PJRT_Buffer *const *const[]){&in}, .num_devices = 1, .num_args = 1,
       .output_lists = (PJRT_Buffer * *const[]){outs});
  bool queued = out->from_queue;
  if (!queued) assert_true(is_ready(out)); /* the result is there when the call returns */
  float got[2];
  get(out, got, sizeof got);
  assert_true(got[0] == 2 && got[1] == 4);
  destroy(in);
  destroy(out);
  return queued;
}

static void who_waits_runs_the_call(void **state) {
  (void)state;
  PJRT_LoadedExecutable *x;
  ok(compile(twice, one_device, sizeof one_device, &x), "compile");
  const int64_t short_ns = 10000, middle_ns = 1000000, long_ns = 100000000;
  assert_false(is_queued(x, short_ns, false));
  assert_true(is_queued(x, middle_ns, false));
  assert_false(is_queued(x, middle_ns, true)); /* another thread gains nothing */
  assert_true(is_queued(x, long_ns, true));
  assert_true(is_queued(x, long_ns, false));
  CALL(LoadedExecutable_Destroy, d, .executable = x);
}

static int setup_cpu(void **state) { return setup_on("cpu", state); }

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(who_waits_runs_the_call)};
  return cmocka_run_group_tests(tests, setup_cpu, teardown);
}
