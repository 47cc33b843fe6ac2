/* What the tests of the plugin share: the library is opened, everything goes through the table. */
#ifndef WEFT_PJRT_PLUGIN_TEST_H
#define WEFT_PJRT_PLUGIN_TEST_H

#include "base/base.h"
#include "pjrt_abi/pjrt_abi.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static const PJRT_Api *api;
static PJRT_Client *client; /* setup: of eight interpreted devices */

#define ARGS(name, ...) \
  { .struct_size = PJRT_##name##_Args_STRUCT_SIZE, __VA_ARGS__ }
#define CALL(name, var, ...)                        \
  PJRT_##name##_Args var = ARGS(name, __VA_ARGS__); \
  ok(api->PJRT_##name(&var), #name)

static inline int code_of(PJRT_Error *e) {
  PJRT_Error_GetCode_Args a = ARGS(Error_GetCode, .error = e);
  api->PJRT_Error_GetCode(&a);
  return a.code;
}

static inline void drop(PJRT_Error *e) {
  PJRT_Error_Destroy_Args a = ARGS(Error_Destroy, .error = e);
  api->PJRT_Error_Destroy(&a);
}

static inline void ok(PJRT_Error *e, const char *what) {
  if (!e) return;
  PJRT_Error_Message_Args m = ARGS(Error_Message, .error = e);
  api->PJRT_Error_Message(&m);
  fprintf(stderr, "%s: %.*s\n", what, (int)m.message_size, m.message);
  fail();
}

static inline void fails(PJRT_Error *e, int code) {
  assert_non_null(e);
  assert_int_equal(code_of(e), code);
  drop(e);
}

/* words: all are in the message. */
static inline void fails_saying(PJRT_Error *e, int code, const char *const *words) {
  assert_non_null(e);
  PJRT_Error_Message_Args m = ARGS(Error_Message, .error = e);
  api->PJRT_Error_Message(&m);
  for (; *words; words++)
    if (!strstr(m.message, *words)) fail_msg("'%s' is not in: %s", *words, m.message);
  fails(e, code);
}

static inline void await(PJRT_Event *e) {
  CALL(Event_Await, w, .event = e);
  CALL(Event_Destroy, d, .event = e);
}

static inline PJRT_Device *device(int i) {
  CALL(Client_LookupDevice, a, .client = client, .id = i);
  return a.device;
}

static inline PJRT_Buffer *put(int dev, PJRT_Buffer_Type t, int rank, const int64_t *dims,
                               const int64_t *strides, const void *data) {
  CALL(Client_BufferFromHostBuffer, a, .client = client, .data = data, .type = t, .dims = dims,
       .num_dims = (size_t)rank, .byte_strides = strides,
       .num_byte_strides = strides ? (size_t)rank : 0, .device = device(dev));
  await(a.done_with_host_buffer);
  return a.buffer;
}

static inline void get(PJRT_Buffer *b, void *dst, size_t size) {
  CALL(Buffer_ToHostBuffer, n, .src = b);
  assert_int_equal(n.dst_size, size);
  CALL(Buffer_ToHostBuffer, a, .src = b, .dst = dst, .dst_size = size);
  await(a.event);
}

static inline void destroy(PJRT_Buffer *b) { CALL(Buffer_Destroy, a, .buffer = b); }

static inline PJRT_Error *compile(const char *text, const char *options, size_t n,
                                  PJRT_LoadedExecutable **out) {
  PJRT_Program p = {.struct_size = PJRT_END(PJRT_Program, format_size),
                    .code = (char *)(uintptr_t)text,
                    .code_size = strlen(text),
                    .format = "mlir",
                    .format_size = 4};
  PJRT_Client_Compile_Args a = ARGS(Client_Compile, .client = client, .program = &p,
                                    .compile_options = options, .compile_options_size = n);
  PJRT_Error *e = api->PJRT_Client_Compile(&a);
  *out = a.executable;
  return e;
}

static const char one_device[] = {0x1a, 4, 0x20, 1, 0x28, 1};
static const char eight_partitions[] = {0x1a, 6, 0x20, 1, 0x28, 8, 0x30, 1};

/* ---- around a file of tests ---- */

static inline int setup_on(const char *spec, void **state) {
  (void)state;
  void *lib = dlopen(WEFT_BINARY_DIR "/libpjrt_weft.so", RTLD_NOW | RTLD_LOCAL);
  if (!lib) {
    fprintf(stderr, "%s\n", dlerror());
    return -1;
  }
  PJRT_GetApiFn entry;
  *(void **)&entry = dlsym(lib, PJRT_ENTRY);
  api = entry();
  CALL(Plugin_Initialize, init, );
  PJRT_NamedValue v = {.struct_size = sizeof v,
                       .name = "device",
                       .name_size = 6,
                       .type = PJRT_NamedValue_STRING,
                       .string_value = spec,
                       .value_size = strlen(spec)};
  CALL(Client_Create, c, .create_options = &v, .num_options = 1);
  client = c.client;
  return 0;
}

static inline int setup(void **state) { return setup_on("interp:8", state); }

static inline int teardown(void **state) {
  (void)state;
  CALL(Client_Destroy, c, .client = client);
  return 0;
}

#endif
