/* Layouts that callers and programs ask for: kept, reported, and used for what leaves the device. */
#include "pjrt/plugin_test.h"

#include "base/base.h"

static const PJRT_Layouts_Extension *layouts(void) {
  for (const PJRT_Extension_Base *x = api->extension_start; x; x = x->next)
    if (x->type == PJRT_Extension_Type_LAYOUTS) return (const PJRT_Layouts_Extension *)x;
  return NULL;
}

static void is_layout(PJRT_Layouts_MemoryLayout *l, const char *text) {
  PJRT_Layouts_MemoryLayout_Serialize_Args s = ARGS(Layouts_MemoryLayout_Serialize, .layout = l);
  ok(layouts()->PJRT_Layouts_MemoryLayout_Serialize(&s), "serialize");
  assert_true(str_is((Str){s.serialized_bytes, s.serialized_bytes_size}, text));
  s.serialized_layout_deleter(s.serialized_layout);
}

static void buffer_is(PJRT_Buffer *b, const char *text) {
  PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args a =
      ARGS(Layouts_PJRT_Buffer_MemoryLayout, .buffer = b);
  ok(layouts()->PJRT_Layouts_PJRT_Buffer_MemoryLayout(&a), "layout of a buffer");
  is_layout(a.layout, text);
}

static const int64_t dims[] = {2, 3};
static const int32_t rows[] = {1, 2, 3, 4, 5, 6}, columns[] = {1, 4, 2, 5, 3, 6};

static PJRT_Buffer *put_columns(void) {
  PJRT_Buffer_MemoryLayout l = {.type = PJRT_Buffer_MemoryLayout_Type_TILED};
  l.tiled.minor_to_major = (int64_t[]){0, 1};
  l.tiled.minor_to_major_size = 2;
  CALL(Client_BufferFromHostBuffer, a, .client = client, .data = rows, .type = PJRT_Buffer_Type_S32,
       .dims = dims, .num_dims = 2, .device = device(0), .device_layout = &l);
  await(a.done_with_host_buffer);
  return a.buffer;
}

static void of_callers(void **state) {
  (void)state;
  PJRT_Buffer *b = put_columns();
  buffer_is(b, "{0,1}");
  int32_t got[6];
  get(b, got, sizeof got); /* in the buffer's own layout when the caller names none */
  assert_memory_equal(got, columns, sizeof got);
  PJRT_Buffer_MemoryLayout l = {.type = PJRT_Buffer_MemoryLayout_Type_TILED};
  l.tiled.minor_to_major = (int64_t[]){1, 0};
  l.tiled.minor_to_major_size = 2;
  CALL(Buffer_ToHostBuffer, a, .src = b, .host_layout = &l, .dst = got, .dst_size = sizeof got);
  await(a.event);
  assert_memory_equal(got, rows, sizeof got);
  CALL(Buffer_CopyToDevice, c, .buffer = b, .dst_device = device(1));
  buffer_is(c.dst_buffer, "{0,1}");
  CALL(Buffer_IsOnCpu, on, .buffer = b); /* or callers would read the memory in place */
  assert_false(on.is_on_cpu);
  PJRT_Buffer_UnsafePointer_Args p = ARGS(Buffer_UnsafePointer, .buffer = b);
  fails(api->PJRT_Buffer_UnsafePointer(&p), PJRT_Error_Code_UNIMPLEMENTED);
  l.tiled.minor_to_major = (int64_t[]){1, 1};
  PJRT_Client_BufferFromHostBuffer_Args bad = ARGS(
      Client_BufferFromHostBuffer, .client = client, .data = rows, .type = PJRT_Buffer_Type_S32,
      .dims = dims, .num_dims = 2, .device = device(0), .device_layout = &l);
  fails(api->PJRT_Client_BufferFromHostBuffer(&bad), PJRT_Error_Code_INVALID_ARGUMENT);
  destroy(c.dst_buffer);
  destroy(b);
}

static void of_programs(void **state) {
  (void)state;
  static const char program[] =
      "func.func @main(%x: tensor<2x3xi32> {mhlo.layout_mode = \"{0,1}\"}) ->\n"
      "    (tensor<3x2xi32> {mhlo.layout_mode = \"auto\"},\n"
      "     tensor<2x3xi32> {mhlo.layout_mode = \"{0,1}\"}, tensor<2x3xi32>) {\n"
      "  %0 = stablehlo.add %x, %x : tensor<2x3xi32>\n"
      "  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x3xi32>) -> tensor<3x2xi32>\n"
      "  return %1, %0, %0 : tensor<3x2xi32>, tensor<2x3xi32>, tensor<2x3xi32>\n}";
  static const char *const expect[] = {"{1,0}", "{0,1}", "{1,0}"};
  PJRT_LoadedExecutable *l;
  ok(compile(program, one_device, sizeof one_device, &l), "compile");
  CALL(LoadedExecutable_GetExecutable, x, .loaded_executable = l);
  PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args in =
      ARGS(Layouts_PJRT_Executable_GetParameterLayouts, .executable = x.executable);
  ok(layouts()->PJRT_Layouts_PJRT_Executable_GetParameterLayouts(&in), "parameters");
  assert_int_equal(in.num_parameters, 1);
  is_layout(in.layouts[0], "{0,1}");
  PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args out =
      ARGS(Layouts_PJRT_Executable_GetOutputLayouts, .executable = x.executable);
  ok(layouts()->PJRT_Layouts_PJRT_Executable_GetOutputLayouts(&out), "outputs");
  assert_int_equal(out.num_outputs, 3);
  for (int i = 0; i < 3; i++) is_layout(out.layouts[i], expect[i]);

  PJRT_Buffer *b = put_columns(), *results[3] = {NULL};
  PJRT_Buffer *const *args = &b;
  PJRT_Buffer **outs = results;
  PJRT_ExecuteOptions o = {.struct_size = PJRT_END(PJRT_ExecuteOptions, launch_id)};
  CALL(LoadedExecutable_Execute, run, .executable = l, .options = &o, .argument_lists = &args,
       .num_devices = 1, .num_args = 1, .output_lists = &outs);
  for (int i = 0; i < 3; i++) {
    buffer_is(results[i], expect[i]);
    int32_t got[6];
    get(results[i], got, sizeof got);
    for (int k = 0; k < 6; k++) assert_int_equal(got[k], 2 * (i == 2 ? rows[k] : columns[k]));
    destroy(results[i]);
  }
  destroy(b);
  CALL(Executable_Destroy, gone, .executable = x.executable);
  CALL(LoadedExecutable_Destroy, d, .executable = l);

  static const char short_one[] =
      "func.func @main(%x: tensor<2x3xi32> {mhlo.layout_mode = \"{0}\"}) { return }";
  fails(compile(short_one, one_device, sizeof one_device, &l), PJRT_Error_Code_INVALID_ARGUMENT);
  static const char tiles[] =
      "func.func @main(%x: tensor<2x3xi32> {mhlo.layout_mode = \"{1,0:T(8,128)}\"}) { return }";
  fails(compile(tiles, one_device, sizeof one_device, &l), PJRT_Error_Code_UNIMPLEMENTED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(of_callers),
      cmocka_unit_test(of_programs),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
