/* What PyTorch/XLA asks of the plugin and JAX does not. Its programs are HLO that XLA translated. */
#include "pjrt/plugin_test.h"

#include "base/pb.h"
#include "stablehlo/stablehlo.h"

#include <unistd.h>

#define TEXT(s) \
  { .type = PJRT_NamedValue_STRING, .string_value = s, .value_size = sizeof s - 1 }

static void named(PJRT_NamedValue *v, const char *name) {
  v->struct_size = sizeof *v;
  v->name = name;
  v->name_size = strlen(name);
}

static void platform_is(const char *want, size_t n, const PJRT_NamedValue *options) {
  CALL(Client_Create, c, .create_options = options, .num_options = n);
  CALL(Client_PlatformName, p, .client = c.client);
  assert_int_equal(p.platform_name_size, strlen(want));
  assert_memory_equal(p.platform_name, want, p.platform_name_size);
  CALL(Client_TopologyDescription, t, .client = c.client);
  CALL(TopologyDescription_PlatformName, q, .topology = t.topology);
  assert_memory_equal(q.platform_name, want, p.platform_name_size);
  CALL(Client_Destroy, d, .client = c.client);
}

static void platform_has_a_name(void **state) {
  (void)state;
  PJRT_NamedValue v[2] = {TEXT("interp"), TEXT("tpu")};
  named(&v[0], "device");
  named(&v[1], "platform_name");
  platform_is("weft", 1, v);
  setenv("WEFT_PLATFORM", "cuda", 1);
  platform_is("cuda", 1, v);
  platform_is("tpu", 2, v);
  unsetenv("WEFT_PLATFORM");
}

static void memory_has_a_limit(void **state) {
  (void)state;
  CALL(Device_MemoryStats, s, .device = device(0));
  assert_true(s.bytes_limit_is_set);
  assert_true(s.bytes_limit > 1 << 20);
  assert_true(s.bytes_reservable_limit_is_set && s.bytes_reservable_limit == s.bytes_limit);
  assert_true(s.largest_free_block_bytes_is_set);
  assert_true(s.largest_free_block_bytes <= s.bytes_limit);
}

static void devices_share_the_memory_of_the_host(void **state) {
  (void)state;
  CALL(Client_AddressableDevices, d, .client = client);
  assert_true(d.num_addressable_devices > 1);
  int64_t all = 0;
  for (size_t i = 0; i < d.num_addressable_devices; i++) {
    CALL(Device_MemoryStats, s, .device = d.addressable_devices[i]);
    all += s.bytes_limit;
  }
  assert_true(all <= (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
}

static PJRT_Buffer *run(const char *text, int n, PJRT_Buffer **args, PJRT_Buffer **outs) {
  PJRT_LoadedExecutable *x;
  ok(compile(text, one_device, sizeof one_device, &x), "compile");
  PJRT_ExecuteOptions o = {.struct_size = PJRT_END(PJRT_ExecuteOptions, launch_id)};
  CALL(LoadedExecutable_Execute, e, .executable = x, .options = &o,
       .argument_lists = (PJRT_Buffer *const *const[]){args}, .num_devices = 1,
       .num_args = (size_t)n, .output_lists = (PJRT_Buffer * *const[]){outs});
  CALL(LoadedExecutable_Destroy, d, .executable = x);
  return outs[0];
}

static PJRT_Buffer *pair(float a, float b) {
  return put(0, PJRT_Buffer_Type_F32, 1, (int64_t[]){2}, NULL, (float[]){a, b});
}

static void check(PJRT_Buffer *b, float x, float y) {
  float got[2];
  get(b, got, sizeof got);
  if (got[0] != x || got[1] != y) fail_msg("%g %g, not %g %g", got[0], got[1], x, y);
  destroy(b);
}

static bool is_deleted(PJRT_Buffer *b) {
  CALL(Buffer_IsDeleted, d, .buffer = b);
  return d.is_deleted;
}

/* The module says which argument a result may take. */
static void aliases_of_the_module_donate(void **state) {
  (void)state;
  PJRT_Buffer *in[2] = {pair(1, 2), pair(10, 20)}, *out[2];
  run("module @IrToHlo attributes {mhlo.input_output_alias = [{alias = {kind = \"may_alias\", "
      "parameter_index = array<i64>, parameter_number = 1 : i64}, output_index = array<i64: 0>}]} "
      "{\n"
      " func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {\n"
      "  %0 = stablehlo.add %a, %b : tensor<2xf32>\n"
      "  return %0, %a : tensor<2xf32>, tensor<2xf32> } }",
      2, in, out);
  assert_false(is_deleted(in[0]));
  assert_true(is_deleted(in[1]));
  check(out[0], 11, 22);
  check(out[1], 1, 2);
  destroy(in[0]);
  destroy(in[1]);
}

/* Aliases that make no sense are not donation, and no error. */
static void odd_aliases_are_left(void **state) {
  (void)state;
  static const char *const odd[] = {"7 : i32",
                                    "[{output_index = array<i64: 0>}]",
                                    "[{alias = 3, output_index = array<i64: 0>}]",
                                    "[{alias = {parameter_index = array<i64>, parameter_number = "
                                    "9}, output_index = array<i64: 0>}]",
                                    "[{alias = {parameter_index = array<i64: 1>, parameter_number "
                                    "= 0}, output_index = array<i64>}]",
                                    "[{alias = {parameter_index = array<i64>, parameter_number = "
                                    "0}, output_index = array<i64: 0, 0>}]",
                                    "[{alias = {parameter_index = array<i64>, parameter_number = "
                                    "0}, output_index = array<i64: -1>}]"};
  for (int i = 0; i < COUNT_OF(odd); i++) {
    char *text = xasprintf("module attributes {mhlo.input_output_alias = %s} {\n"
                           " func.func @main(%%a: tensor<2xf32>) -> tensor<2xf32> {\n"
                           "  %%0 = stablehlo.add %%a, %%a : tensor<2xf32>\n"
                           "  return %%0 : tensor<2xf32> } }",
                           odd[i]);
    PJRT_Buffer *in = pair(1, 2), *out;
    check(run(text, 1, &in, &out), 2, 4);
    assert_false(is_deleted(in));
    destroy(in);
    free(text);
  }
}

static void copies_are_read(void **state) {
  (void)state;
  PJRT_Buffer *in = pair(3, 4), *out;
  check(run("module { func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
            " %0 = mhlo.copy %a : tensor<2xf32>\n"
            " %1 = \"mhlo.copy\"(%0) {mhlo.sharding = \"{replicated}\"} : (tensor<2xf32>) -> "
            "tensor<2xf32>\n"
            " return %1 : tensor<2xf32> } }",
            1, &in, &out),
        3, 4);
  destroy(in);
}

/* Linear algebra as HLO has it: one result, a tuple. */
static void tuples_of_calls_are_results(void **state) {
  (void)state;
  float a[4] = {2, 0, 0, 3}, q[4], w[2];
  PJRT_Buffer *in = put(0, PJRT_Buffer_Type_F32, 2, (int64_t[]){2, 2}, NULL, a), *out[2];
  run("module { func.func @main(%a: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>) {\n"
      " %0 = stablehlo.custom_call @Eigh(%a) {backend_config = \"1,1,100,1e-6\"} : "
      "(tensor<2x2xf32>) -> tuple<tensor<2x2xf32>, tensor<2xf32>>\n"
      " %1 = stablehlo.get_tuple_element %0[0] : (tuple<tensor<2x2xf32>, tensor<2xf32>>) -> "
      "tensor<2x2xf32>\n"
      " %2 = stablehlo.get_tuple_element %0[1] : (tuple<tensor<2x2xf32>, tensor<2xf32>>) -> "
      "tensor<2xf32>\n"
      " return %1, %2 : tensor<2x2xf32>, tensor<2xf32> } }",
      1, &in, out);
  get(out[0], q, sizeof q);
  get(out[1], w, sizeof w);
  assert_float_equal(w[0], 2, 1e-5);
  assert_float_equal(w[1], 3, 1e-5);
  assert_float_equal(q[0] * q[0] + q[2] * q[2], 1, 1e-5);
  destroy(out[0]);
  destroy(out[1]);
  destroy(in);
}

/* ---- shardings, for who reads them from the optimized program ---- */

static Module *optimized(const char *text, const char *options, size_t n) {
  PJRT_LoadedExecutable *x;
  ok(compile(text, options, n, &x), "compile");
  CALL(LoadedExecutable_GetExecutable, g, .loaded_executable = x);
  PJRT_Program p = {.struct_size = PJRT_END(PJRT_Program, format_size)};
  CALL(Executable_OptimizedProgram, size, .executable = g.executable, .program = &p);
  p.code = xmalloc(p.code_size);
  CALL(Executable_OptimizedProgram, a, .executable = g.executable, .program = &p);
  Module *m;
  assert_memory_equal(p.code, "ML\xEFR", 4);
  assert_null(stablehlo_read("optimized", (Str){p.code, p.code_size}, &m));
  free(p.code);
  CALL(Executable_Destroy, d, .executable = g.executable);
  CALL(LoadedExecutable_Destroy, u, .executable = x);
  return m;
}

static int64_t type_of(Str sharding) {
  PbField f;
  for (Pb in = pb_read(sharding); pb_next(&in, &f);)
    if (f.number == 1) return (int64_t)f.value;
  return 0;
}

static void shardings_stand_in_the_module(void **state) {
  (void)state;
  Module *m = optimized(
      "module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {\n"
      " func.func @main(%a: tensor<8x4xf32> {mhlo.sharding = \"{devices=[4,1,2]0,1,2,3,4,5,6,7 "
      "last_tile_dim_replicate}\"}, %b: tensor<f32>) -> (tensor<8x4xf32>, tensor<f32>) {\n"
      "  %0 = stablehlo.add %a, %a : tensor<8x4xf32>\n"
      "  return %0, %b : tensor<8x4xf32>, tensor<f32> } }",
      eight_partitions, sizeof eight_partitions);
  Attr *in = attrs_get(m->attrs, m->n_attrs, "mhlo.spmd_parameters_shardings"),
       *out = attrs_get(m->attrs, m->n_attrs, "mhlo.spmd_output_sharding");
  assert_non_null(in);
  assert_int_equal(in->n, 2);
  assert_int_equal(type_of(in->items[0]->s), 3); /* OTHER: tiled */
  assert_int_equal(type_of(in->items[1]->s), 0); /* REPLICATED */
  assert_non_null(out);
  assert_int_equal(type_of(out->s), 2); /* TUPLE */
  Str results[3] = {{0}};
  int n = 0;
  PbField f;
  for (Pb p = pb_read(out->s); pb_next(&p, &f);)
    if (f.number == 5 && n < 3) results[n++] = f.bytes;
  assert_int_equal(n, 2);
  assert_int_equal(type_of(results[0]), 3);
  assert_int_equal(type_of(results[1]), 0);
  module_free(m);
}

/* What came as HLO is read as StableHLO. */
static void hlo_is_read_back(void **state) {
  (void)state;
  Module *m = optimized("HloModule m, entry_computation_layout={(f32[2]{0})->f32[2]{0}}\n\n"
                        "ENTRY main {\n  p = f32[2]{0} parameter(0)\n"
                        "  ROOT a = f32[2]{0} add(p, p)\n}\n",
                        one_device, sizeof one_device);
  assert_int_equal(module_main(m)->type->n_elems, 1);
  module_free(m);
}

/* What StableHLO has no operation for is a custom call, as XLA writes it. */
static void hlo_beyond_stablehlo_is_read_back(void **state) {
  (void)state;
  Module *m =
      optimized("HloModule m, entry_computation_layout={(f32[8]{0})->(f32[2]{0}, s32[2]{0})}\n\n"
                "ENTRY main {\n  p = f32[8]{0} parameter(0)\n  e = f32[8]{0} erf(p)\n"
                "  ROOT t = (f32[2]{0}, s32[2]{0}) topk(e), k=2, largest=true\n}\n",
                one_device, sizeof one_device);
  Op *erf = module_main(m)->body->first;
  assert_true(str_is(op_str(erf, "call_target_name"), "mhlo.erf"));
  assert_true(str_is(op_str(erf->next, "call_target_name"), "mhlo.topk"));
  module_free(m);
}

/* Every program that is compiled, as it came. */
static void programs_are_saved(void **state) {
  (void)state;
  static const char text[] =
      "module @told { func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
      " return %a : tensor<2xf32> } }";
  char folder[] = "/tmp/weft_save_XXXXXX";
  assert_non_null(mkdtemp(folder));
  setenv("WEFT_SAVE_PROGRAMS", folder, 1);
  PJRT_Buffer *in = pair(1, 2), *out;
  check(run(text, 1, &in, &out), 1, 2);
  destroy(in);
  unsetenv("WEFT_SAVE_PROGRAMS");
  char *path = xasprintf("%s/0001-told.mlir", folder);
  Buf got = {0};
  assert_null(file_read(path, &got));
  assert_int_equal(got.n, strlen(text));
  assert_memory_equal(got.p, text, got.n);
  buf_free(&got);
  unlink(path);
  rmdir(folder);
  free(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(platform_has_a_name),
      cmocka_unit_test(memory_has_a_limit),
      cmocka_unit_test(devices_share_the_memory_of_the_host),
      cmocka_unit_test(aliases_of_the_module_donate),
      cmocka_unit_test(odd_aliases_are_left),
      cmocka_unit_test(copies_are_read),
      cmocka_unit_test(tuples_of_calls_are_results),
      cmocka_unit_test(shardings_stand_in_the_module),
      cmocka_unit_test(hlo_is_read_back),
      cmocka_unit_test(hlo_beyond_stablehlo_is_read_back),
      cmocka_unit_test(programs_are_saved),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
