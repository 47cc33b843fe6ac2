/* The PJRT client. Each call fills an argument struct, checks that the plugin's table has the slot,
 * and turns a PJRT_Error into an Err. The order of calls is what jaxlib does; nothing optional is
 * required of the plugin. */
#include "client/client_priv.h"

#include "base/path.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

struct ClientProgram {
  Client *client;
  PJRT_LoadedExecutable *handle;
  PJRT_Executable *exec;
  int n_outputs, processes;
  int near; /* of the processes, those here */
};

struct ClientBuffer {
  Client *client;
  PJRT_Buffer *handle;
};

#define ARGS(name, var, ...) \
  PJRT_##name##_Args var = {.struct_size = PJRT_##name##_Args_STRUCT_SIZE, __VA_ARGS__}
/* Calls a slot; NULL on success. */
#define CALL(api, name, args)                                          \
  (PJRT_API_HAS(api, name) ? take_error(api, (api)->PJRT_##name(args)) \
                           : err_new(ERR_UNIMPLEMENTED, "the plugin has no %s", #name))

static Err *take_error(const PJRT_Api *api, PJRT_Error *e) {
  if (!e) return NULL;
  ARGS(Error_Message, msg, .error = e);
  ARGS(Error_GetCode, code, .error = e);
  api->PJRT_Error_Message(&msg);
  if (api->PJRT_Error_GetCode(&code)) code.code = PJRT_Error_Code_UNKNOWN;
  Err *r = err_new((ErrCode)code.code, "%.*s", (int)msg.message_size, msg.message);
  ARGS(Error_Destroy, del, .error = e);
  api->PJRT_Error_Destroy(&del);
  return r;
}

/* ---- finding and opening a plugin ---- */

static char *own_plugin(Buf *tried) {
  const char *env = env_get("WEFT_PLUGIN");
  if (env) return xstrdup(env);
  char exe[4096];
  ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
  exe[n > 0 ? n : 0] = 0;
  Dl_info self; /* the file this code is in: the executable, or libweft.so of a user's program */
  const char *files[] = {exe, dladdr((void *)(uintptr_t)own_plugin, &self) ? self.dli_fname : ""};
  static const char *const places[] = {"", "/weft", "/..", "/../lib/weft", "/../lib"};
  for (int f = 0; f < COUNT_OF(files); f++) {
    const char *slash = strrchr(files[f], '/');
    for (int i = 0; slash && i < COUNT_OF(places); i++) {
      char *path =
          xasprintf("%.*s%s/libpjrt_weft.so", (int)(slash - files[f]), files[f], places[i]);
      if (access(path, R_OK) == 0) return path;
      buf_printf(tried, " %s", path);
      free(path);
    }
  }
  return NULL;
}

/* A file of this folder is meant before one of the system's: dlopen looks for names without a slash there only. */
static char *path_of(const char *plugin) {
  bool here = !strchr(plugin, '/') && access(plugin, R_OK) == 0;
  return here ? xasprintf("./%s", plugin) : xstrdup(plugin);
}

static Err *load_plugin(const char *plugin, const PJRT_Api **out) {
  Buf tried = {0};
  char *path = plugin ? path_of(plugin) : own_plugin(&tried);
  if (!path) {
    Err *e = err_new(ERR_NOT_FOUND, "weft's own plugin is not where it was looked for:%s",
                     tried.p ? tried.p : "");
    buf_free(&tried);
    return err_hint(e, "set WEFT_PLUGIN to the path of libpjrt_weft.so");
  }
  buf_free(&tried);
  void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* never closed: plugins start threads */
  Err *e = NULL;
  PJRT_GetApiFn get = NULL;
  if (!lib)
    e = err_hint(
        err_new(ERR_NOT_FOUND, "cannot load plugin: %s", dlerror()),
        "give the path of the file; Python's packages hold some: libtpu/libtpu.so of libtpu, "
        "jax_plugins/xla_cuda12/xla_cuda_plugin.so of jax-cuda12-pjrt, "
        "lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so of lammps-jax-pjrt-cpu");
  else if (!(get = (PJRT_GetApiFn)(uintptr_t)dlsym(lib, PJRT_ENTRY)))
    e = err_new(ERR_INVALID, "%s has no symbol %s: not a PJRT plugin", path, PJRT_ENTRY);
  const PJRT_Api *api = e ? NULL : get();
  if (!e && !api) e = err_new(ERR_INTERNAL, "%s: %s returned nothing", path, PJRT_ENTRY);
  if (!e && api->pjrt_api_version.major_version != PJRT_API_MAJOR)
    e = err_new(ERR_PRECONDITION, "%s speaks PJRT %d.%d, weft speaks major version %d", path,
                api->pjrt_api_version.major_version, api->pjrt_api_version.minor_version,
                PJRT_API_MAJOR);
  if (!e) {
    ARGS(Plugin_Initialize, init);
    e = err_wrap(CALL(api, Plugin_Initialize, &init), "initialising %s", path);
  }
  free(path);
  if (!e) *out = api;
  return e;
}

/* libtpu looks for a TPU for a minute and a half where there is none. */
static Err *has_tpu(const char *plugin) {
  if (!plugin || !strstr(base_name(plugin), "libtpu")) return NULL;
  glob_t found = {0};
  bool any = !glob("/dev/accel*", 0, NULL, &found) && found.gl_pathc > 0;
  globfree(&found);
  any = any || (!glob("/dev/vfio/[0-9]*", 0, NULL, &found) && found.gl_pathc > 0);
  globfree(&found);
  if (any) return NULL;
  return err_hint(
      err_new(ERR_PRECONDITION,
              "%s: this machine has no TPU: no /dev/accel* and no "
              "/dev/vfio/*",
              plugin),
      "it can compile without one: weft run PROGRAM --plugin %s --topology v5e:2x2; weft's "
      "own virtual TPUs run: --device tpu-v5e-4",
      plugin);
}

static void named_value(const ClientOption *o, PJRT_NamedValue *v) {
  v->struct_size = PJRT_END(PJRT_NamedValue, value_size);
  v->name = o->name;
  v->name_size = strlen(o->name);
  v->type = o->str ? PJRT_NamedValue_STRING : PJRT_NamedValue_INT64;
  if (o->str) v->string_value = o->str;
  else v->int64_value = o->num;
  v->value_size = o->str ? strlen(o->str) : 1;
}

/* ---- the other processes: the plugin finds them through our store ---- */

/* Of a key or a value that need not end in a NUL. */
static PJRT_Error *told_back(Err *take, PJRT_CallbackError *fail) {
  PJRT_Error *told =
      take ? (*fail)((PJRT_Error_Code)take->code, take->msg, strlen(take->msg)) : NULL;
  err_free(take);
  return told;
}

static PJRT_Error *put_back(PJRT_KeyValuePutCallback_Args *a) {
  const PeersStore store = peers_hub_store(a->user_arg);
  char *key = xstrndup(a->key, a->key_size);
  Err *e = store.put(store.arg, key, (Str){a->value, a->value_size});
  free(key);
  return told_back(e, a->callback_error);
}

static void free_value(char *value) { free(value); }

static PJRT_Error *get_back(PJRT_KeyValueGetCallback_Args *a) {
  const PeersStore store = peers_hub_store(a->user_arg);
  char *key = xstrndup(a->key, a->key_size);
  Buf value = {0};
  Err *e = store.get(store.arg, key, a->timeout_in_ms, &value);
  free(key);
  a->value = value.p;
  a->value_size = value.n;
  a->value_deleter_callback = free_value;
  return told_back(e, a->callback_error);
}

static Err *create_client(const PJRT_Api *api, const ClientOption *opts, int n_opts,
                          const ClientJob *job, PJRT_Client **out) {
  PJRT_NamedValue *values = xcalloc((size_t)n_opts + 2, sizeof *values);
  for (int i = 0; i < n_opts; i++) named_value(&opts[i], &values[i]);
  ARGS(Client_Create, create, .create_options = values, .num_options = (size_t)n_opts);
  if (job) {
    named_value(&(ClientOption){.name = "num_nodes", .num = job->n}, &values[n_opts]);
    named_value(&(ClientOption){.name = "node_id", .num = job->id}, &values[n_opts + 1]);
    create.num_options += 2;
    create.kv_put_callback = put_back;
    create.kv_get_callback = get_back;
    create.kv_put_user_arg = create.kv_get_user_arg = job->hub;
  }
  Err *e = CALL(api, Client_Create, &create);
  free(values);
  if (!e) *out = create.client;
  return e;
}

int client_share(const ClientJob *job, int replicas, int *first) {
  int n = job ? job->n : 1, id = job ? job->id : 0, each = replicas / n, more = replicas % n;
  *first = id * each + MIN(id, more);
  return each + (id < more);
}

Err *client_open(const char *plugin, const ClientOption *opts, int n_opts, Client **out) {
  return client_open_job(plugin, opts, n_opts, NULL, out);
}

Err *client_open_job(const char *plugin, const ClientOption *opts, int n_opts, const ClientJob *job,
                     Client **out) {
  const PJRT_Api *api;
  TRY(has_tpu(plugin));
  TRY(load_plugin(plugin, &api));
  PJRT_Client *handle;
  TRY(create_client(api, opts, n_opts, job, &handle));
  Client *c = xcalloc(1, sizeof *c);
  c->api = api;
  c->handle = handle;
  if (job) c->job = *job;
  ARGS(Client_PlatformName, name, .client = c->handle);
  ARGS(Client_AddressableDevices, devices, .client = c->handle);
  Err *e = CALL(api, Client_PlatformName, &name);
  if (!e) e = CALL(api, Client_AddressableDevices, &devices);
  if (e) {
    client_close(c);
    return e;
  }
  c->platform = xstrndup(name.platform_name, name.platform_name_size);
  c->devices = devices.addressable_devices;
  c->n_devices = (int)devices.num_addressable_devices;
  *out = c;
  return NULL;
}

void client_close(Client *c) {
  if (!c) return;
  ARGS(Client_Destroy, del, .client = c->handle);
  err_free(CALL(c->api, Client_Destroy, &del));
  free(c->platform);
  free(c);
}

const char *client_platform(const Client *c) { return c->platform; }
int client_device_count(const Client *c) { return c->n_devices; }

const char *client_device_kind(const Client *c, int device) {
  ARGS(Device_GetDescription, get, .device = c->devices[device]);
  Err *e = CALL(c->api, Device_GetDescription, &get);
  ARGS(DeviceDescription_Kind, kind, .device_description = get.device_description);
  if (!e) e = CALL(c->api, DeviceDescription_Kind, &kind);
  if (e) {
    err_free(e);
    return "unknown";
  }
  return kind.device_kind; /* the plugin's, NUL-terminated in every plugin seen */
}

Err *client_memory(const Client *c, int device, ClientMemory *out) {
  ARGS(Device_MemoryStats, m, .device = c->devices[device]);
  TRY(CALL(c->api, Device_MemoryStats, &m));
  *out = (ClientMemory){m.bytes_in_use, m.peak_bytes_in_use_is_set ? m.peak_bytes_in_use : -1,
                        m.bytes_limit_is_set ? m.bytes_limit : -1};
  return NULL;
}

/* ---- compile options: a CompileOptionsProto written by hand ---- */

static void put_varint(Buf *b, uint64_t v) {
  while (v >= 128) {
    buf_byte(b, (int)(v & 127) | 128);
    v >>= 7;
  }
  buf_byte(b, (int)v);
}

static void put_int(Buf *b, int field, int64_t v) {
  put_varint(b, (uint64_t)field << 3);
  put_varint(b, (uint64_t)v);
}

static void put_message(Buf *b, int field, Buf *m) {
  put_varint(b, (uint64_t)field << 3 | 2);
  put_varint(b, m->n);
  buf_add(b, m->p, m->n);
  buf_free(m);
}

static bool contains(Str s, const char *what) {
  return memmem(s.p, s.n, what, strlen(what)) != NULL;
}

static void put_bools(Buf *b, int field, const bool *v, int n) {
  Buf list = {0};
  for (int i = 0; i < n; i++) put_varint(&list, v[i]);
  if (n) put_message(b, field, &list);
}

/* ExecutableBuildOptions: 1 device_ordinal, 4 replicas, 5 partitions, 6 use_spmd_partitioning, 9
 * device assignment (process p on device p, or ids[p]), 12 and 18 allow_spmd_sharding_propagation_to_output and
 * _to_parameters, 19 use_shardy_partitioner. */
static void write_compile_options(Buf *out, Str program, const ClientCompileOpts *o,
                                  const int *ids) {
  int replicas = o && o->replicas ? o->replicas : 1,
      partitions = o && o->partitions ? o->partitions : 1;
  Buf build = {0}, assign = {0};
  put_int(&build, 1, -1);
  put_int(&build, 4, replicas);
  put_int(&build, 5, partitions);
  if (partitions > 1) put_int(&build, 6, 1);
  put_int(&assign, 1, replicas);
  put_int(&assign, 2, partitions);
  for (int p = 0; p < partitions; p++) {
    Buf list = {0}, computation = {0};
    for (int r = 0; r < replicas; r++)
      put_varint(&list, ids ? (uint64_t)ids[r * partitions + p] : (uint64_t)(r * partitions + p));
    put_message(&computation, 1, &list);
    put_message(&assign, 3, &computation);
  }
  put_message(&build, 9, &assign);
  if (o && partitions > 1) {
    put_bools(&build, 12, o->free_results, o->n_results);
    put_bools(&build, 18, o->free_args, o->n_args);
  }
  if (partitions > 1 && contains(program, "sdy")) put_int(&build, 19, 1);
  put_message(out, 3, &build);
  put_int(out, 4, 0);
}

static PJRT_Program program_arg(Str program) {
  return (PJRT_Program){.struct_size = PJRT_END(PJRT_Program, format_size),
                        .code = (char *)(uintptr_t)program.p,
                        .code_size = program.n,
                        .format = "mlir",
                        .format_size = 4};
}

/* The numbers of the first devices of every process, each for its share of the n; alone: of this one's. */
static Err *spread(const Client *c, int devices, bool alone, int *ids) {
  ARGS(Client_Devices, all, .client = c->handle);
  TRY(CALL(c->api, Client_Devices, &all));
  for (int id = 0; id < c->job.n; id++) {
    int first = 0, n = devices, has = 0;
    if (alone && id != c->job.id) continue;
    if (!alone) n = client_share(&(ClientJob){id, c->job.n, NULL}, devices, &first);
    for (size_t i = 0; i < all.num_devices; i++) {
      ARGS(Device_GetDescription, get, .device = all.devices[i]);
      TRY(CALL(c->api, Device_GetDescription, &get));
      ARGS(DeviceDescription_ProcessIndex, process, .device_description = get.device_description);
      ARGS(DeviceDescription_Id, number, .device_description = get.device_description);
      TRY(CALL(c->api, DeviceDescription_ProcessIndex, &process));
      TRY(CALL(c->api, DeviceDescription_Id, &number));
      if (process.process_index == id && has < n) ids[first + has++] = number.id;
    }
    if (has < n)
      return err_new(ERR_INVALID, "process %d has %d device%s for %d of %d replicas", id, has,
                     has == 1 ? "" : "s", n, devices);
  }
  return NULL;
}

Err *client_compile(Client *c, Str program, const ClientCompileOpts *opts, ClientProgram **out) {
  Buf options = {0};
  int devices = (opts && opts->replicas ? opts->replicas : 1) *
                (opts && opts->partitions ? opts->partitions : 1),
      first, *ids = NULL;
  bool alone = c->job.n < 2 || (opts && opts->alone);
  if (c->job.n > 1) {
    ids = xcalloc((size_t)devices, sizeof *ids);
    Err *few = spread(c, devices, alone, ids);
    if (few) return free(ids), few;
  }
  write_compile_options(&options, program, opts, ids);
  free(ids);
  PJRT_Program prog = program_arg(program);
  ARGS(Client_Compile, compile, .client = c->handle, .program = &prog, .compile_options = options.p,
       .compile_options_size = options.n);
  Err *e = CALL(c->api, Client_Compile, &compile);
  buf_free(&options);
  if (e) return e;
  ClientProgram *p = xcalloc(1, sizeof *p);
  p->client = c;
  p->handle = compile.executable;
  p->processes = devices;
  p->near = alone ? devices : client_share(&c->job, devices, &first);
  ARGS(LoadedExecutable_GetExecutable, get, .loaded_executable = p->handle);
  e = CALL(c->api, LoadedExecutable_GetExecutable, &get);
  p->exec = e ? NULL : get.executable;
  ARGS(Executable_NumOutputs, outputs, .executable = p->exec);
  if (!e) e = CALL(c->api, Executable_NumOutputs, &outputs);
  if (e) {
    client_program_free(p);
    return e;
  }
  p->n_outputs = (int)outputs.num_outputs;
  *out = p;
  return NULL;
}

void client_program_free(ClientProgram *p) {
  if (!p) return;
  const PJRT_Api *api = p->client->api;
  if (p->exec) {
    ARGS(Executable_Destroy, del, .executable = p->exec);
    err_free(CALL(api, Executable_Destroy, &del));
  }
  ARGS(LoadedExecutable_Destroy, del, .executable = p->handle);
  err_free(CALL(api, LoadedExecutable_Destroy, &del));
  free(p);
}

int client_program_outputs(const ClientProgram *p) { return p->n_outputs; }
int client_program_processes(const ClientProgram *p) { return p->processes; }

static void executable_stats(const PJRT_Api *api, PJRT_Executable *exec, ClientStats *out) {
  *out = (ClientStats){-1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
  ARGS(Executable_GetCompiledMemoryStats, m, .executable = exec);
  Err *e = CALL(api, Executable_GetCompiledMemoryStats, &m);
  if (!e) {
    out->code_bytes = m.generated_code_size_in_bytes;
    out->argument_bytes = m.argument_size_in_bytes;
    out->output_bytes = m.output_size_in_bytes;
    out->alias_bytes = m.alias_size_in_bytes;
    out->temp_bytes = m.temp_size_in_bytes;
    out->peak_bytes = m.peak_memory_in_bytes;
  }
  err_free(e);
  ARGS(Executable_GetCostAnalysis, cost, .executable = exec);
  e = CALL(api, Executable_GetCostAnalysis, &cost);
  for (size_t i = 0; !e && i < cost.num_properties; i++) {
    const PJRT_NamedValue *v = &cost.properties[i];
    double number = v->type == PJRT_NamedValue_FLOAT   ? (double)v->float_value
                    : v->type == PJRT_NamedValue_INT64 ? (double)v->int64_value
                                                       : -1;
    Str name = {v->name, v->name_size};
    if (str_is(name, "flops")) out->flops = number;
    if (str_is(name, "transcendentals")) out->transcendentals = number;
    if (str_is(name, "bytes accessed")) out->bytes_accessed = number;
    if (str_is(name, "optimal_seconds")) out->optimal_s = number;
  }
  err_free(e);
}

void client_program_stats(const ClientProgram *p, ClientStats *out) {
  executable_stats(p->client->api, p->exec, out);
}

/* libtpu ends the process over a program for more devices than the topology has. */
static Err *enough_devices(const PJRT_Api *api, PJRT_TopologyDescription *topology,
                           const char *name, const ClientCompileOpts *opts) {
  int want = MAX(opts->replicas, 1) * MAX(opts->partitions, 1);
  ARGS(TopologyDescription_GetDeviceDescriptions, get, .topology = topology);
  TRY(CALL(api, TopologyDescription_GetDeviceDescriptions, &get));
  if (get.num_descriptions >= (size_t)want) return NULL;
  return err_hint(err_new(ERR_INVALID, "the program is for %d devices, '%s' has %d", want, name,
                          (int)get.num_descriptions),
                  "--topology with more of them, for example v5e:4x2 for 8");
}

/* What libtpu would ask a metadata server for, and complain about: the topology says what is compiled for. */
static void machine_without_tpu(void) {
  setenv("TPU_SKIP_MDS_QUERY", "1", 0);
  setenv("TPU_ACCELERATOR_TYPE", "v5litepod-8", 0);
  setenv("TPU_WORKER_HOSTNAMES", "localhost", 0);
  setenv("TPU_WORKER_ID", "0", 0);
}

Err *client_compile_only(const char *plugin, const char *topology, Str program,
                         const ClientCompileOpts *opts, ClientStats *out, char **out_platform) {
  machine_without_tpu();
  const PJRT_Api *api;
  TRY(load_plugin(plugin, &api));
  ARGS(TopologyDescription_Create, create, .topology_name = topology,
       .topology_name_size = strlen(topology));
  TRY(err_wrap(CALL(api, TopologyDescription_Create, &create), "topology '%s'", topology));
  ARGS(TopologyDescription_PlatformName, name, .topology = create.topology);
  Err *e = CALL(api, TopologyDescription_PlatformName, &name);
  if (!e) e = enough_devices(api, create.topology, topology, opts);
  Buf options = {0};
  write_compile_options(&options, program, opts, NULL);
  PJRT_Program prog = program_arg(program);
  ARGS(Compile, compile, .topology = create.topology, .program = &prog,
       .compile_options = options.p, .compile_options_size = options.n);
  if (!e) e = CALL(api, Compile, &compile);
  buf_free(&options);
  if (!e) {
    executable_stats(api, compile.executable, out);
    *out_platform = xstrndup(name.platform_name, name.platform_name_size);
    ARGS(Executable_Destroy, del, .executable = compile.executable);
    err_free(CALL(api, Executable_Destroy, &del));
  }
  ARGS(TopologyDescription_Destroy, del, .topology = create.topology);
  err_free(CALL(api, TopologyDescription_Destroy, &del));
  return e;
}

/* ---- events and buffers ---- */

/* Waits for the event and destroys it. */
static Err *event_await(const PJRT_Api *api, PJRT_Event *event) {
  if (!event) return NULL;
  ARGS(Event_Await, await, .event = event);
  Err *e = CALL(api, Event_Await, &await);
  ARGS(Event_Destroy, del, .event = event);
  err_free(CALL(api, Event_Destroy, &del));
  return e;
}

static ClientBuffer *wrap_buffer(Client *c, PJRT_Buffer *handle) {
  ClientBuffer *b = xcalloc(1, sizeof *b);
  b->client = c;
  b->handle = handle;
  return b;
}

Err *client_buffer_from_host(Client *c, int device, DType type, int rank, const int64_t *dims,
                             const void *data, ClientBuffer **out) {
  if (device < 0 || device >= c->n_devices)
    return err_new(ERR_INVALID, "device %d: the plugin has %d", device, c->n_devices);
  ARGS(Client_BufferFromHostBuffer, from, .client = c->handle, .data = data,
       .type = (PJRT_Buffer_Type)type, .dims = dims, .num_dims = (size_t)rank,
       .host_buffer_semantics = PJRT_HostBufferSemantics_IMMUTABLE_ONLY_DURING_CALL,
       .device = c->devices[device]);
  TRY(CALL(c->api, Client_BufferFromHostBuffer, &from));
  ClientBuffer *b = wrap_buffer(c, from.buffer);
  Err *e = event_await(c->api, from.done_with_host_buffer);
  if (e) {
    client_buffer_free(b);
    return e;
  }
  *out = b;
  return NULL;
}

void client_buffer_free(ClientBuffer *b) {
  if (!b) return;
  ARGS(Buffer_Destroy, del, .buffer = b->handle);
  err_free(CALL(b->client->api, Buffer_Destroy, &del));
  free(b);
}

DType client_buffer_type(const ClientBuffer *b) {
  ARGS(Buffer_ElementType, type, .buffer = b->handle);
  Err *e = CALL(b->client->api, Buffer_ElementType, &type);
  DType t = e ? DT_INVALID : (DType)type.type;
  err_free(e);
  return t;
}

Err *client_buffer_dims(const ClientBuffer *b, int *rank, const int64_t **dims) {
  ARGS(Buffer_Dimensions, d, .buffer = b->handle);
  TRY(CALL(b->client->api, Buffer_Dimensions, &d));
  *rank = (int)d.num_dims;
  *dims = d.dims;
  return NULL;
}

Err *client_buffer_wait(ClientBuffer *b) {
  ARGS(Buffer_ReadyEvent, ready, .buffer = b->handle);
  TRY(CALL(b->client->api, Buffer_ReadyEvent, &ready));
  return event_await(b->client->api, ready.event);
}

Err *client_buffer_to_host(ClientBuffer *b, void *dst, size_t n) {
  int rank;
  const int64_t *dims;
  TRY(client_buffer_dims(b, &rank, &dims));
  if (rank > 64) return err_new(ERR_UNIMPLEMENTED, "buffer of rank %d", rank);
  int64_t minor_to_major[64];
  for (int i = 0; i < rank; i++) minor_to_major[i] = rank - 1 - i;
  PJRT_Buffer_MemoryLayout layout = {.struct_size = PJRT_END(PJRT_Buffer_MemoryLayout, type),
                                     .type = PJRT_Buffer_MemoryLayout_Type_TILED};
  layout.tiled = (PJRT_Buffer_MemoryLayout_Tiled){
      .struct_size = PJRT_END(PJRT_Buffer_MemoryLayout_Tiled, num_tiles),
      .minor_to_major = minor_to_major,
      .minor_to_major_size = (size_t)rank};
  ARGS(Buffer_ToHostBuffer, to, .src = b->handle, .host_layout = &layout);
  TRY(CALL(b->client->api, Buffer_ToHostBuffer, &to)); /* dst NULL: the size */
  if (to.dst_size != n)
    return err_new(ERR_INVALID, "the buffer has %zu bytes, %zu were asked for", to.dst_size, n);
  to.dst = dst;
  to.event = NULL;
  TRY(CALL(b->client->api, Buffer_ToHostBuffer, &to));
  return event_await(b->client->api, to.event);
}

/* ---- running ---- */

Err *client_execute(ClientProgram *p, ClientBuffer *const *args, int n_args, ClientBuffer **outs) {
  const PJRT_Api *api = p->client->api;
  size_t procs = (size_t)p->near, n_in = (size_t)n_args, n_out = (size_t)p->n_outputs;
  PJRT_Buffer **handles = xmalloc(sizeof *handles * (procs * (n_in + n_out) + 1));
  PJRT_Buffer ***lists = xmalloc(sizeof *lists * procs * 2);
  PJRT_Event **events = xcalloc(procs, sizeof *events);
  for (size_t d = 0; d < procs; d++) {
    lists[d] = handles + d * n_in;
    lists[procs + d] = handles + procs * n_in + d * n_out;
    for (size_t i = 0; i < n_in; i++) lists[d][i] = args[d * n_in + i]->handle;
    for (size_t j = 0; j < n_out; j++) lists[procs + d][j] = NULL;
  }
  PJRT_ExecuteOptions options = {.struct_size =
                                     PJRT_END(PJRT_ExecuteOptions, num_hlo_output_callbacks)};
  ARGS(LoadedExecutable_Execute, run, .executable = p->handle, .options = &options,
       .argument_lists = (PJRT_Buffer *const *const *)lists, .num_devices = procs, .num_args = n_in,
       .output_lists = (PJRT_Buffer * *const *)(lists + procs), .device_complete_events = events);
  Err *e = CALL(api, LoadedExecutable_Execute, &run);
  if (!e)
    for (size_t d = 0; d < procs; d++) {
      for (size_t j = 0; j < n_out; j++)
        outs[d * n_out + j] = wrap_buffer(p->client, lists[procs + d][j]);
      ARGS(Event_Destroy, del, .event = events[d]);
      if (events[d]) err_free(CALL(api, Event_Destroy, &del));
    }
  free(handles);
  free(lists);
  free(events);
  return e;
}
