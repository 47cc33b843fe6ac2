/* Drives the profiler extension of any plugin. */
#include "client/client_priv.h"

#include <stdlib.h>

struct ClientProfile {
  const PLUGIN_Profiler_Api *api;
  PLUGIN_Profiler *handle;
};

static Err *take_profiler_error(const PLUGIN_Profiler_Api *api, PLUGIN_Profiler_Error *e) {
  if (!e) return NULL;
  PLUGIN_Profiler_Error_Message_Args m = {.struct_size = sizeof m, .error = e};
  api->error_message(&m);
  Err *r = err_new(ERR_INTERNAL, "the plugin's profiler: %.*s", (int)m.message_size, m.message);
  PLUGIN_Profiler_Error_Destroy_Args d = {.struct_size = sizeof d, .error = e};
  api->error_destroy(&d);
  return r;
}

static const PLUGIN_Profiler_Api *find_profiler(const PJRT_Api *api) {
  for (const PJRT_Extension_Base *x = api->extension_start; x; x = x->next)
    if (x->type == PJRT_Extension_Type_PROFILER)
      return ((const PJRT_Profiler_Extension *)(const void *)x)->profiler_api;
  return NULL;
}

Err *client_profile_start(Client *c, ClientProfile **out) {
  const PLUGIN_Profiler_Api *api = find_profiler(c->api);
  if (!api) return err_new(ERR_UNIMPLEMENTED, "plugin '%s' has no profiler", c->platform);
  PLUGIN_Profiler_Create_Args create = {.struct_size = sizeof create, .options = ""};
  TRY(take_profiler_error(api, api->create(&create)));
  PLUGIN_Profiler_Args start = {sizeof start, create.profiler};
  Err *e = take_profiler_error(api, api->start(&start));
  if (e) {
    err_free(take_profiler_error(api, api->destroy(&start)));
    return e;
  }
  ClientProfile *p = xcalloc(1, sizeof *p);
  *p = (ClientProfile){api, create.profiler};
  *out = p;
  return NULL;
}

Err *client_profile_stop(ClientProfile *p, Buf *out) {
  PLUGIN_Profiler_Args args = {sizeof args, p->handle};
  Err *e = take_profiler_error(p->api, p->api->stop(&args));
  PLUGIN_Profiler_CollectData_Args get = {.struct_size = sizeof get, .profiler = p->handle};
  if (!e) e = take_profiler_error(p->api, p->api->collect_data(&get));
  if (!e && get.buffer) {
    buf_add(out, get.buffer, get.buffer_size_in_bytes);
  } else if (!e && get.buffer_size_in_bytes) { /* it wants our memory */
    get.buffer = xmalloc(get.buffer_size_in_bytes);
    uint8_t *own = get.buffer;
    e = take_profiler_error(p->api, p->api->collect_data(&get));
    if (!e) buf_add(out, own, get.buffer_size_in_bytes);
    free(own);
  }
  Err *d = take_profiler_error(p->api, p->api->destroy(&args));
  if (e) err_free(d);
  else e = d;
  free(p);
  return e;
}
