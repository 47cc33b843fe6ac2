/* The plugin as a caller sees it. */
#include "pjrt/plugin_test.h"

static void every_slot_is_set(void **state) {
  (void)state;
  assert_int_equal(api->pjrt_api_version.major_version, 0);
  assert_true(api->struct_size >= sizeof(PJRT_Api));
  void *const *slots = (void *const *)((const char *)api + 40);
  for (int i = 0; i < PJRT_SLOT_COUNT; i++) assert_non_null(slots[i]);
}

static void devices_and_memories(void **state) {
  (void)state;
  CALL(Client_AddressableDevices, d, .client = client);
  assert_int_equal(d.num_addressable_devices, 8);
  CALL(Client_AddressableMemories, m, .client = client);
  for (size_t i = 0; i < m.num_addressable_memories; i++) {
    /* the first word is a table that callers use */
    const PJRT_Memory_FunctionTable *t =
        *(PJRT_Memory_FunctionTable *const *)m.addressable_memories[i];
    int key;
    t->set_user_data(m.addressable_memories[i], &key, &key, NULL);
    assert_ptr_equal(t->get_user_data(m.addressable_memories[i], &key), &key);
    t->set_user_data(m.addressable_memories[i], &key, NULL, NULL);
  }
  PJRT_Client_LookupDevice_Args bad = ARGS(Client_LookupDevice, .client = client, .id = 8);
  fails(api->PJRT_Client_LookupDevice(&bad), PJRT_Error_Code_INVALID_ARGUMENT);
}

static void several_processes_need_a_store(void **state) {
  (void)state;
  PJRT_NamedValue v = {.struct_size = sizeof v,
                       .name = "num_nodes",
                       .name_size = 9,
                       .type = PJRT_NamedValue_INT64,
                       .int64_value = 2,
                       .value_size = 1};
  PJRT_NamedValue options[] = {v, v};
  PJRT_Client_Create_Args a = ARGS(Client_Create, .create_options = options, .num_options = 1);
  fails(api->PJRT_Client_Create(&a), PJRT_Error_Code_INVALID_ARGUMENT);
  options[1].name = "coordinator";
  options[1].name_size = 11;
  options[1].type = PJRT_NamedValue_STRING;
  options[1].string_value = "localhost:70000";
  options[1].value_size = 15;
  a.num_options = 2;
  fails(api->PJRT_Client_Create(&a), PJRT_Error_Code_INVALID_ARGUMENT);
}

static void strides_and_layouts(void **state) {
  (void)state;
  int16_t columns[12], got[12], back[12]; /* 3 x 4, column-major on the host */
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 4; j++) columns[j * 3 + i] = (int16_t)(10 * i + j);
  PJRT_Buffer *b = put(3, PJRT_Buffer_Type_S16, 2, (int64_t[]){3, 4}, (int64_t[]){2, 6}, columns);
  get(b, got, sizeof got);
  for (int i = 0; i < 12; i++) assert_int_equal(got[i], 10 * (i / 4) + i % 4);
  PJRT_Buffer_MemoryLayout l = {.type = PJRT_Buffer_MemoryLayout_Type_TILED};
  l.tiled.minor_to_major = (int64_t[]){0, 1};
  l.tiled.minor_to_major_size = 2;
  CALL(Buffer_ToHostBuffer, a, .src = b, .host_layout = &l, .dst = back, .dst_size = sizeof back);
  await(a.event);
  assert_memory_equal(back, columns, sizeof back);
  PJRT_Buffer_ToHostBuffer_Args small =
      ARGS(Buffer_ToHostBuffer, .src = b, .dst = back, .dst_size = 3);
  fails(api->PJRT_Buffer_ToHostBuffer(&small), PJRT_Error_Code_INVALID_ARGUMENT);
  CALL(Buffer_Device, where, .buffer = b);
  assert_ptr_equal(where.device, device(3));
  destroy(b);
}

static void count_call(PJRT_Error *e, void *arg) {
  if (e) drop(e);
  ++*(int *)arg;
}

static void zero_copy_ends_with_the_buffer(void **state) {
  (void)state;
  float *host = aligned_alloc(64, 64);
  for (int i = 0; i < 16; i++) host[i] = (float)i;
  CALL(Client_BufferFromHostBuffer, a, .client = client, .data = host, .type = PJRT_Buffer_Type_F32,
       .dims = (int64_t[]){16}, .num_dims = 1, .device = device(0),
       .host_buffer_semantics = PJRT_HostBufferSemantics_IMMUTABLE_ZERO_COPY);
  int calls = 0;
  CALL(Event_OnReady, on, .event = a.done_with_host_buffer, .callback = count_call,
       .user_arg = &calls);
  CALL(Event_Destroy, gone, .event = a.done_with_host_buffer);
  CALL(Buffer_UnsafePointer, p, .buffer = a.buffer);
  assert_ptr_equal((void *)p.buffer_pointer, host);
  assert_int_equal(calls, 0);
  CALL(Buffer_IncreaseExternalReferenceCount, up, .buffer = a.buffer);
  CALL(Buffer_Delete, del, .buffer = a.buffer);
  assert_int_equal(calls, 0);
  CALL(Buffer_DecreaseExternalReferenceCount, down, .buffer = a.buffer);
  assert_int_equal(calls, 1);
  PJRT_Buffer_DecreaseExternalReferenceCount_Args again =
      ARGS(Buffer_DecreaseExternalReferenceCount, .buffer = a.buffer);
  fails(api->PJRT_Buffer_DecreaseExternalReferenceCount(&again), PJRT_Error_Code_INVALID_ARGUMENT);
  destroy(a.buffer);
  free(host);
}

/* An array of zeros takes memory only when something is written there. */
static void large_zeros(void **state) {
  (void)state;
  enum { N = 2 << 20 };
  PJRT_LoadedExecutable *l;
  ok(compile("module @add { func.func @main(%a: tensor<2097152xf32> {tf.aliasing_output = 0 : i32})"
             " -> tensor<2097152xf32> { %c = stablehlo.constant dense<2.0> : tensor<2097152xf32>"
             " %0 = stablehlo.add %a, %c : tensor<2097152xf32>\n"
             " return %0 : tensor<2097152xf32> } }",
             one_device, sizeof one_device, &l),
     "compile");
  float *x = calloc(N, sizeof *x), *y = calloc(N, sizeof *y);
  for (int last = 0; last < 2; last++) { /* all zeros; all but the last */
    x[N - 1] = (float)last;
    PJRT_Buffer *in = put(0, PJRT_Buffer_Type_F32, 1, (int64_t[]){N}, NULL, x), *out = NULL;
    get(in, y, N * sizeof *y);
    assert_memory_equal(x, y, N * sizeof *y);
    PJRT_Buffer **outs = &out, *const *args = &in;
    PJRT_Event *done = NULL;
    PJRT_ExecuteOptions o = {.struct_size = 80};
    PJRT_LoadedExecutable_Execute_Args e = ARGS(
        LoadedExecutable_Execute, .executable = l, .options = &o, .argument_lists = &args,
        .num_devices = 1, .num_args = 1, .output_lists = &outs, .device_complete_events = &done);
    ok(api->PJRT_LoadedExecutable_Execute(&e), "execute");
    await(done);
    get(out, y, N * sizeof *y);
    for (int i = 0; i < N; i++) assert_true(y[i] == x[i] + 2);
    destroy(in);
    destroy(out);
  }
  free(x);
  free(y);
  CALL(LoadedExecutable_Destroy, gone, .executable = l);
}

static void runs_and_donates(void **state) {
  (void)state;
  PJRT_LoadedExecutable *l;
  ok(compile("module @add { func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, "
             "%b: tensor<4xf32>) -> tensor<4xf32> {"
             " %0 = stablehlo.add %a, %b : tensor<4xf32>\n return %0 : tensor<4xf32> } }",
             one_device, sizeof one_device, &l),
     "compile");
  float x[4] = {1, 2, 3, 4}, y[4] = {10, 20, 30, 40}, z[4];
  PJRT_Buffer *args[2] = {put(0, PJRT_Buffer_Type_F32, 1, (int64_t[]){4}, NULL, x),
                          put(0, PJRT_Buffer_Type_F32, 1, (int64_t[]){4}, NULL, y)};
  PJRT_Buffer *out = NULL, **outs = &out, *const *arg_list = args;
  PJRT_Event *done = NULL;
  PJRT_ExecuteOptions o = {.struct_size = 80}; /* an older caller's */
  PJRT_LoadedExecutable_Execute_Args e =
      ARGS(LoadedExecutable_Execute, .executable = l, .options = &o, .argument_lists = &arg_list,
           .num_devices = 1, .num_args = 2, .output_lists = &outs, .device_complete_events = &done);
  ok(api->PJRT_LoadedExecutable_Execute(&e), "execute");
  await(done);
  get(out, z, sizeof z);
  for (int i = 0; i < 4; i++) assert_true(z[i] == x[i] + y[i]);
  CALL(Buffer_IsDeleted, d0, .buffer = args[0]);
  CALL(Buffer_IsDeleted, d1, .buffer = args[1]);
  assert_true(d0.is_deleted);
  assert_false(d1.is_deleted);
  fails(api->PJRT_LoadedExecutable_Execute(&e),
        PJRT_Error_Code_INVALID_ARGUMENT); /* a donated argument */
  PJRT_Buffer *first = args[0];
  args[0] = args[1];
  fails_saying(api->PJRT_LoadedExecutable_Execute(&e), PJRT_Error_Code_INVALID_ARGUMENT,
               (const char *[]){"same buffer twice", "arguments 0 and 1", "the first is", NULL});
  e.num_args = 1;
  fails(api->PJRT_LoadedExecutable_Execute(&e), PJRT_Error_Code_INVALID_ARGUMENT);
  CALL(LoadedExecutable_GetDeviceAssignment, da, .executable = l);
  assert_int_equal(da.serialized_bytes_size, 9);
  assert_memory_equal(da.serialized_bytes, "\x08\x01\x10\x01\x1a\x03\x0a\x01\x00", 9);
  da.serialized_device_assignment_deleter(da.serialized_device_assignment);
  CALL(LoadedExecutable_GetExecutable, g, .loaded_executable = l);
  CALL(Executable_Serialize, s, .executable = g.executable);
  CALL(Executable_DeserializeAndLoad, back, .client = client,
       .serialized_executable = s.serialized_bytes,
       .serialized_executable_size = s.serialized_bytes_size);
  PJRT_Executable_DeserializeAndLoad_Args cut = ARGS(
      Executable_DeserializeAndLoad, .client = client, .serialized_executable = s.serialized_bytes,
      .serialized_executable_size = s.serialized_bytes_size - 1);
  fails(api->PJRT_Executable_DeserializeAndLoad(&cut), PJRT_Error_Code_DATA_LOSS);
  s.serialized_executable_deleter(s.serialized_executable);
  CALL(LoadedExecutable_Destroy, l2, .executable = back.loaded_executable);
  CALL(Executable_Destroy, x1, .executable = g.executable);
  CALL(LoadedExecutable_Destroy, l1, .executable = l);
  destroy(out);
  destroy(first);
  destroy(args[1]);
}

/* The first word of an OpSharding {devices=[8,1]<=[8]}: type 3, dims [8,1], reshape [8],
 * permutation [0]. */
static void shards_over_eight_devices(void **state) {
  (void)state;
  PJRT_LoadedExecutable *l;
  ok(compile(
         "module @f { sdy.mesh @m = <[\"x\"=8]>\n"
         "func.func @main(%a: tensor<8x2xi32> {sdy.sharding = #sdy.sharding<@m, [{\"x\"}, {}]>}) "
         "-> tensor<8x2xi32> { %0 = stablehlo.add %a, %a : tensor<8x2xi32>\n"
         " return %0 : tensor<8x2xi32> } }",
         eight_partitions, sizeof eight_partitions, &l),
     "compile");
  const PJRT_Shardings_Extension *ext = NULL;
  for (const PJRT_Extension_Base *x = api->extension_start; x; x = x->next)
    if (x->type == PJRT_Extension_Type_SHARDINGS) ext = (const PJRT_Shardings_Extension *)x;
  assert_non_null(ext);
  CALL(LoadedExecutable_GetExecutable, g, .loaded_executable = l);
  PJRT_Shardings_PJRT_Executable_OutputShardings_Args s = {
      .struct_size = PJRT_Shardings_PJRT_Executable_OutputShardings_Args_STRUCT_SIZE,
      .executable = g.executable};
  ok(ext->PJRT_Shardings_PJRT_Executable_OutputShardings(&s), "shardings");
  static const char want[] = "\x08\x03\x1a\x02\x08\x01\x4a\x01\x08\x52\x01\x00";
  assert_int_equal(s.num_outputs, 1);
  assert_int_equal(s.sharding_sizes[0], sizeof want - 1);
  assert_memory_equal(s.shardings[0], want, sizeof want - 1);
  PJRT_Buffer *args[8], *outs[8];
  PJRT_Buffer *const *arg_lists[8];
  PJRT_Buffer **out_lists[8];
  PJRT_Event *done[8];
  for (int i = 0; i < 8; i++) {
    args[i] = put(i, PJRT_Buffer_Type_S32, 2, (int64_t[]){1, 2}, NULL, (int32_t[]){i, 10 * i});
    arg_lists[i] = &args[i];
    out_lists[i] = &outs[i];
  }
  CALL(LoadedExecutable_Execute, e, .executable = l, .argument_lists = arg_lists, .num_devices = 8,
       .num_args = 1, .output_lists = out_lists, .device_complete_events = done);
  for (int i = 0; i < 8; i++) {
    int32_t v[2];
    await(done[i]);
    get(outs[i], v, sizeof v);
    assert_int_equal(v[0], 2 * i);
    assert_int_equal(v[1], 20 * i);
    destroy(args[i]);
    destroy(outs[i]);
  }
  CALL(Executable_Destroy, x1, .executable = g.executable);
  CALL(LoadedExecutable_Destroy, l1, .executable = l);
}

/* As of any PJRT plugin: an argument on another device is refused, and both are named. */
static void arguments_on_other_devices(void **state) {
  (void)state;
  PJRT_LoadedExecutable *l;
  ok(compile("module @twice { func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {"
             " %0 = stablehlo.add %a, %a : tensor<2xf32>\n return %0 : tensor<2xf32> } }",
             one_device, sizeof one_device, &l),
     "compile");
  PJRT_Buffer *in = put(3, PJRT_Buffer_Type_F32, 1, (int64_t[]){2}, NULL, (float[]){1, 2}),
              *out = NULL;
  PJRT_Buffer **outs = &out, *const *args = &in;
  PJRT_Event *done = NULL;
  PJRT_LoadedExecutable_Execute_Args e =
      ARGS(LoadedExecutable_Execute, .executable = l, .argument_lists = &args, .num_devices = 1,
           .num_args = 1, .output_lists = &outs, .device_complete_events = &done);
  PJRT_Error *error = api->PJRT_LoadedExecutable_Execute(&e);
  assert_non_null(error);
  PJRT_Error_Message_Args m = ARGS(Error_Message, .error = error);
  api->PJRT_Error_Message(&m);
  assert_non_null(strstr(m.message, "argument 0 of 'twice' is on device"));
  assert_non_null(strstr(m.message, "3"));
  fails(error, PJRT_Error_Code_INVALID_ARGUMENT);
  destroy(in);
  CALL(LoadedExecutable_Destroy, gone, .executable = l);
}

/* The older form: the product's first dimension follows the argument's, four ways; the rest is
 * replicated. */
static void older_shardings_spread(void **state) {
  (void)state;
  PJRT_LoadedExecutable *l;
  ok(compile(
         "module @f { func.func @main("
         "%a: tensor<8x4xf32> {mhlo.sharding = \"{devices=[4,2]<=[8]}\"}, "
         "%b: tensor<4x8xf32> {mhlo.sharding = \"{replicated}\"}) -> tensor<8x8xf32> {"
         " %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] :"
         " (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>\n return %0 : tensor<8x8xf32> } }",
         eight_partitions, sizeof eight_partitions, &l),
     "compile");
  const PJRT_Extension_Base *x = api->extension_start;
  while (x->type != PJRT_Extension_Type_SHARDINGS) x = x->next;
  CALL(LoadedExecutable_GetExecutable, g, .loaded_executable = l);
  PJRT_Shardings_PJRT_Executable_OutputShardings_Args s = {
      .struct_size = PJRT_Shardings_PJRT_Executable_OutputShardings_Args_STRUCT_SIZE,
      .executable = g.executable};
  ok(((const PJRT_Shardings_Extension *)x)->PJRT_Shardings_PJRT_Executable_OutputShardings(&s),
     "shardings");
  /* tiled, [4,1,2], replicated last, reshape [8], permutation [0] */
  static const char want[] = "\x08\x03\x1a\x03\x04\x01\x02\x4a\x01\x08\x52\x01\x00\x30\x01";
  assert_int_equal(s.sharding_sizes[0], sizeof want - 1);
  assert_memory_equal(s.shardings[0], want, sizeof want - 1);
  CALL(Executable_Destroy, x1, .executable = g.executable);
  CALL(LoadedExecutable_Destroy, l1, .executable = l);
}

/* As JAX declares them: what the call "InspectSharding" carries, and what it is told. */
struct told {
  const char *spec;
  size_t size;
  const char *error;
  void *scratch;
  void (*free_error)(struct told *);
};
static struct {
  void (*call)(void *data, struct told *t);
  void *data;
} inspector;

static char seen[3][16];
static size_t seen_sizes[3];
static int n_seen, n_freed;

static void error_freed(struct told *t) {
  assert_string_equal(t->error, "not this one");
  n_freed++;
}

static void see(void *data, struct told *t) {
  assert_ptr_equal(data, &inspector);
  assert_true(n_seen < 3 && t->size < sizeof seen[0]);
  memcpy(seen[n_seen], t->spec, t->size);
  seen_sizes[n_seen++] = t->size;
}

static void refuse(void *data, struct told *t) {
  (void)data;
  t->error = "not this one";
  t->free_error = error_freed;
}

/* A value that follows an argument, one of a manual computation, one that is whole everywhere. */
static void sharding_is_told(void **state) {
  (void)state;
  char config[3 * sizeof inspector + 1], text[2000];
  void (*const calls[2])(void *, struct told *) = {see, refuse};
  for (int i = 0; i < 2; i++) {
    inspector.call = calls[i];
    inspector.data = &inspector;
    for (size_t k = 0; k < sizeof inspector; k++)
      snprintf(config + 3 * k, 4, "\\%02X", ((const unsigned char *)&inspector)[k]);
    char call[200];
    snprintf(call, sizeof call, "{backend_config = \"%s\", has_side_effect = true}", config);
    snprintf(text, sizeof text,
             "module @f { sdy.mesh @m = <[\"x\"=8]>\n"
             "func.func @main(%%a: tensor<8x2xi32> {sdy.sharding = #sdy.sharding<@m, [{\"x\"}, "
             "{}]>}) -> tensor<8x2xi32> { %%0 = stablehlo.add %%a, %%a : tensor<8x2xi32>\n"
             "%%1 = stablehlo.custom_call @InspectSharding(%%0) %s : (tensor<8x2xi32>) -> "
             "tensor<8x2xi32>\n"
             "%%2 = sdy.manual_computation(%%0) in_shardings=[<@m, [{\"x\"}, {}]>] "
             "out_shardings=[<@m, [{\"x\"}, {}]>] manual_axes={\"x\"} (%%b: tensor<1x2xi32>) {\n"
             "  %%3 = stablehlo.custom_call @InspectSharding(%%b) %s : (tensor<1x2xi32>) -> "
             "tensor<1x2xi32>\n"
             "  sdy.return %%b : tensor<1x2xi32>\n} : (tensor<8x2xi32>) -> tensor<8x2xi32>\n"
             "%%4 = stablehlo.constant dense<0> : tensor<i32>\n"
             "%%5 = stablehlo.custom_call @InspectSharding(%%4) %s : (tensor<i32>) -> tensor<i32>\n"
             "return %%2 : tensor<8x2xi32> } }",
             call, call, call);
    PJRT_LoadedExecutable *l;
    PJRT_Error *e = compile(text, eight_partitions, sizeof eight_partitions, &l);
    if (i) {
      fails(e, PJRT_Error_Code_INVALID_ARGUMENT);
      assert_int_equal(n_freed, 1);
      break;
    }
    ok(e, "compile");
    CALL(LoadedExecutable_Destroy, l1, .executable = l);
  }
  static const char tiled[] = "\x08\x03\x1a\x02\x08\x01\x4a\x01\x08\x52\x01\x00";
  assert_int_equal(n_seen, 3);
  assert_int_equal(seen_sizes[0], sizeof tiled - 1);
  assert_memory_equal(seen[0], tiled, sizeof tiled - 1);
  assert_int_equal(seen_sizes[1], 2);
  assert_memory_equal(seen[1], "\x08\x04", 2); /* MANUAL */
  assert_int_equal(seen_sizes[2], 0);          /* replicated */
  PJRT_LoadedExecutable *l;                    /* not what JAX writes there */
  fails(compile("module @f { func.func @main(%a: tensor<2xi32>) -> tensor<2xi32> { "
                "%0 = stablehlo.custom_call @InspectSharding(%a) {backend_config = \"x\"} : "
                "(tensor<2xi32>) -> tensor<2xi32>\n return %0 : tensor<2xi32> } }",
                one_device, sizeof one_device, &l),
        PJRT_Error_Code_INVALID_ARGUMENT);
}

static void bad_programs_are_errors(void **state) {
  (void)state;
  PJRT_LoadedExecutable *l;
  fails(compile("module { nonsense }", one_device, sizeof one_device, &l),
        PJRT_Error_Code_INVALID_ARGUMENT);
  fails(compile("ML\xefR\x0d", one_device, sizeof one_device, &l),
        PJRT_Error_Code_INVALID_ARGUMENT);
  static const char damaged[] = {0x1a, 100, 0x20};
  fails(compile("module { }", damaged, sizeof damaged, &l), PJRT_Error_Code_INVALID_ARGUMENT);
  static const char feeds[] = /* to a host that cannot take it */
      "func.func @main(%x: tensor<f32>, %t: !stablehlo.token) -> !stablehlo.token {\n"
      "  %r = \"stablehlo.outfeed\"(%x, %t) : (tensor<f32>, !stablehlo.token) -> "
      "!stablehlo.token\n"
      "  return %r : !stablehlo.token\n}";
  fails(compile(feeds, one_device, sizeof one_device, &l), PJRT_Error_Code_UNIMPLEMENTED);
  static const char known[] = "\x3a\x07\x0a\x05xla_a", unknown[] = "\x3a\x07\x0a\x05other",
                    program[] = "func.func @main() { return }";
  ok(compile(program, known, sizeof known - 1, &l), "an option of XLA");
  CALL(LoadedExecutable_Destroy, gone, .executable = l);
  fails(compile(program, unknown, sizeof unknown - 1, &l), PJRT_Error_Code_INVALID_ARGUMENT);
}

/* A run that fails for want of memory has not used any. */
/* 65536 replicas x 65536 partitions are 0 in 32 bits. */
static void more_processes_than_an_int_counts(void **state) {
  (void)state;
  static const char options[] = {0x1a, 8, 0x20, -128, -128, 4, 0x28, -128, -128, 4};
  PJRT_LoadedExecutable *x;
  fails_saying(
      compile("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }",
              options, sizeof options, &x),
      PJRT_Error_Code_INVALID_ARGUMENT,
      (const char *[]){"65536 replicas x 65536 partitions", NULL});
}

static void refused_memory_is_not_counted(void **state) {
  (void)state;
  CALL(Device_MemoryStats, before, .device = device(0));
  PJRT_LoadedExecutable *l;
  ok(compile("func.func @main() -> tensor<1048576x1048576x1024xf32> {\n"
             "  %c = stablehlo.iota dim = 0 : tensor<1048576x1048576x1024xf32>\n"
             "  return %c : tensor<1048576x1048576x1024xf32>\n}",
             one_device, sizeof one_device, &l),
     "compile");
  PJRT_Buffer *out = NULL, **outs = &out, *const *no_args = NULL;
  PJRT_Event *done = NULL;
  PJRT_ExecuteOptions o = {.struct_size = 80};
  PJRT_LoadedExecutable_Execute_Args e =
      ARGS(LoadedExecutable_Execute, .executable = l, .options = &o, .argument_lists = &no_args,
           .num_devices = 1, .output_lists = &outs, .device_complete_events = &done);
  PJRT_Error *failed = api->PJRT_LoadedExecutable_Execute(&e);
  if (!failed) { /* it is in the queue: the event has the error */
    PJRT_Event_Await_Args w = ARGS(Event_Await, .event = done);
    failed = api->PJRT_Event_Await(&w);
    CALL(Event_Destroy, gone, .event = done);
    destroy(out);
  }
  fails(failed, PJRT_Error_Code_RESOURCE_EXHAUSTED);
  CALL(Device_MemoryStats, after, .device = device(0));
  assert_int_equal(after.peak_bytes_in_use, before.peak_bytes_in_use);
  CALL(LoadedExecutable_Destroy, freed, .executable = l);
}

static void transfers_in_pieces(void **state) {
  (void)state;
  CALL(Device_DefaultMemory, m, .device = device(1));
  PJRT_ShapeSpec spec = {
      .dims = (int64_t[]){4}, .num_dims = 1, .element_type = PJRT_Buffer_Type_F32};
  CALL(Client_CreateBuffersForAsyncHostToDevice, c, .client = client, .shape_specs = &spec,
       .num_shape_specs = 1, .memory = m.memory);
  CALL(AsyncHostToDeviceTransferManager_RetrieveBuffer, r, .transfer_manager = c.transfer_manager);
  CALL(Buffer_ReadyEvent, ready, .buffer = r.buffer_out);
  CALL(Event_IsReady, is, .event = ready.event);
  assert_false(is.is_ready);
  float x[4] = {1, 2, 3, 4}, y[4];
  CALL(AsyncHostToDeviceTransferManager_TransferData, t1, .transfer_manager = c.transfer_manager,
       .data = x, .transfer_size = 8);
  await(t1.done_with_h2d_transfer);
  CALL(AsyncHostToDeviceTransferManager_TransferData, t2, .transfer_manager = c.transfer_manager,
       .data = x + 2, .offset = 8, .transfer_size = 8, .is_last_transfer = true);
  await(t2.done_with_h2d_transfer);
  PJRT_AsyncHostToDeviceTransferManager_TransferData_Args late =
      ARGS(AsyncHostToDeviceTransferManager_TransferData, .transfer_manager = c.transfer_manager,
           .data = x, .transfer_size = 4);
  fails(api->PJRT_AsyncHostToDeviceTransferManager_TransferData(&late),
        PJRT_Error_Code_FAILED_PRECONDITION);
  await(ready.event);
  get(r.buffer_out, y, sizeof y);
  assert_memory_equal(x, y, sizeof x);
  CALL(AsyncHostToDeviceTransferManager_Destroy, d, .transfer_manager = c.transfer_manager);
  destroy(r.buffer_out);
}

static void alias_and_error_buffers(void **state) {
  (void)state;
  CALL(Device_DefaultMemory, m, .device = device(0));
  int64_t dims[1] = {2};
  CALL(Client_CreateAliasBuffer, al, .client = client, .memory = m.memory, .shape_dims = dims,
       .shape_num_dims = 1, .shape_element_type = PJRT_Buffer_Type_S32);
  PJRT_Buffer *b = put(0, PJRT_Buffer_Type_S32, 1, dims, NULL, (int32_t[]){7, 8});
  CALL(Client_FulfillAliasBuffer, f, .client = client, .buffer = b,
       .fulfill_alias_buffer_cb = al.fulfill_alias_buffer_cb);
  int32_t got[2];
  get(al.alias_buffer, got, sizeof got);
  assert_int_equal(got[1], 8);
  CALL(Client_CreateErrorBuffer, er, .client = client, .memory = m.memory, .shape_dims = dims,
       .shape_num_dims = 1, .shape_element_type = PJRT_Buffer_Type_S32,
       .error_code = PJRT_Error_Code_ABORTED, .error_message = "broken", .error_message_size = 6);
  PJRT_Buffer_ToHostBuffer_Args a =
      ARGS(Buffer_ToHostBuffer, .src = er.buffer, .dst = got, .dst_size = 8);
  fails(api->PJRT_Buffer_ToHostBuffer(&a), PJRT_Error_Code_ABORTED);
  destroy(er.buffer);
  destroy(al.alias_buffer);
  destroy(b);
}

/* What a run under way will give counts as in use, as on a device whose results have their memory when it is asked for. */
static void promised_memory_is_counted(void **state) {
  (void)state;
  enum { SIDE = 1024, BYTES = SIDE * SIDE * 4 };
  PJRT_LoadedExecutable *l;
  Buf text = {0};
  buf_cstr(&text, "func.func @main(%x0: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {\n");
  for (int i = 0; i < 8; i++)
    buf_printf(&text,
               "%%x%d = stablehlo.dot %%x%d, %%x0 : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) "
               "-> tensor<1024x1024xf32>\n",
               i + 1, i);
  buf_cstr(&text, "return %x8 : tensor<1024x1024xf32>\n}");
  ok(compile(text.p, one_device, sizeof one_device, &l), "compile");
  buf_free(&text);
  float *x = calloc(SIDE * SIDE, sizeof *x);
  PJRT_Buffer *in = put(0, PJRT_Buffer_Type_F32, 2, (int64_t[]){SIDE, SIDE}, NULL, x), *out = NULL;
  CALL(Device_MemoryStats, before, .device = device(0));
  PJRT_Buffer **outs = &out, *const *args = &in;
  PJRT_Event *done = NULL;
  PJRT_ExecuteOptions o = {.struct_size = 80};
  CALL(LoadedExecutable_Execute, e, .executable = l, .options = &o, .argument_lists = &args,
       .num_devices = 1, .num_args = 1, .output_lists = &outs, .device_complete_events = &done);
  CALL(Device_MemoryStats, during, .device = device(0));
  assert_true(during.bytes_in_use >= before.bytes_in_use + BYTES);
  assert_true(during.peak_bytes_in_use >= during.bytes_in_use);
  await(done);
  CALL(Device_MemoryStats, after, .device = device(0));
  assert_int_equal(after.bytes_in_use, before.bytes_in_use + BYTES);
  destroy(out);
  destroy(in);
  free(x);
  CALL(LoadedExecutable_Destroy, gone, .executable = l);
}

/* A caller with an older, shorter struct: the newer fields stay as they are. */
static void older_callers(void **state) {
  (void)state;
  PJRT_Device_MemoryStats_Args a;
  memset(&a, 0x55, sizeof a);
  a.struct_size = 185;
  a.extension_start = NULL;
  a.device = device(0);
  ok(api->PJRT_Device_MemoryStats(&a), "memory stats");
  assert_true(a.peak_bytes_in_use_is_set);
  assert_true(a.peak_allocated_bytes == 0x5555555555555555);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_slot_is_set),
      cmocka_unit_test(devices_and_memories),
      cmocka_unit_test(several_processes_need_a_store),
      cmocka_unit_test(strides_and_layouts),
      cmocka_unit_test(zero_copy_ends_with_the_buffer),
      cmocka_unit_test(large_zeros),
      cmocka_unit_test(runs_and_donates),
      cmocka_unit_test(promised_memory_is_counted),
      cmocka_unit_test(arguments_on_other_devices),
      cmocka_unit_test(shards_over_eight_devices),
      cmocka_unit_test(older_shardings_spread),
      cmocka_unit_test(sharding_is_told),
      cmocka_unit_test(bad_programs_are_errors),
      cmocka_unit_test(more_processes_than_an_int_counts),
      cmocka_unit_test(refused_memory_is_not_counted),
      cmocka_unit_test(transfers_in_pieces),
      cmocka_unit_test(alias_and_error_buffers),
      cmocka_unit_test(older_callers),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
