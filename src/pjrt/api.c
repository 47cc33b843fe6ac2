/* The table, and what a caller asks before it makes a client. */
#include "pjrt/pjrt_priv.h"

static const int64_t stablehlo_minimum[3] = {0, 9, 0};

ENTRY(Plugin_Initialize) {
  (void)a;
  callbacks_register();
  return NULL;
}

ENTRY(Plugin_Attributes) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static PJRT_NamedValue attrs[3];
  pthread_mutex_lock(&lock);
  named_int(&attrs[0], "xla_version", 2);
  named_ints(&attrs[1], "stablehlo_current_version", stablehlo_newest(), 3);
  named_ints(&attrs[2], "stablehlo_minimum_version", stablehlo_minimum, 3);
  pthread_mutex_unlock(&lock);
  a->attributes = attrs;
  a->num_attributes = 3;
  return NULL;
}

static PJRT_Api api = {.struct_size = sizeof api,
                       .extension_start = (PJRT_Extension_Base *)(uintptr_t)&profiler_extension,
                       .pjrt_api_version = {.struct_size = sizeof(PJRT_Api_Version),
                                            .major_version = PJRT_API_MAJOR,
                                            .minor_version = PJRT_API_MINOR},
#define PJRT_X(name) .PJRT_##name = weft_##name,
                       PJRT_SLOTS(PJRT_X, PJRT_X)
#undef PJRT_X
};

const PJRT_Api *GetPjrtApi(void) { return &api; }

void pjrt_extend(PJRT_Extension_Base *e) {
  e->next = api.extension_start;
  api.extension_start = e;
}
