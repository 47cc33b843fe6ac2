/* The client: one opened Dev, its devices and their memories. Every device has three memories: its
 * own
 * ("device", the default) and two kinds of host memory, which only keep data out of the device's
 * account. */
#include "pjrt/pjrt_priv.h"

#include <stdio.h>
#include <unistd.h>

const char *const memory_kind_names[MEM_KINDS] = {"device", "pinned_host", "unpinned_host"};

int memory_kind_from(Str name) {
  for (int i = 0; i < MEM_KINDS; i++)
    if (str_is(name, memory_kind_names[i])) return i;
  return -1;
}

/* ---- named values ---- */

static void named(PJRT_NamedValue *v, const char *name, PJRT_NamedValue_Type type, size_t n) {
  *v = (PJRT_NamedValue){.struct_size = sizeof *v,
                         .name = name,
                         .name_size = strlen(name),
                         .type = type,
                         .value_size = n};
}

void named_int(PJRT_NamedValue *v, const char *name, int64_t x) {
  named(v, name, PJRT_NamedValue_INT64, 1);
  v->int64_value = x;
}

void named_ints(PJRT_NamedValue *v, const char *name, const int64_t *x, size_t n) {
  named(v, name, PJRT_NamedValue_INT64_LIST, n);
  v->int64_array_value = x;
}

static void named_text(PJRT_NamedValue *v, const char *name, const char *text) {
  named(v, name, PJRT_NamedValue_STRING, strlen(text));
  v->string_value = text;
}

void named_float(PJRT_NamedValue *v, const char *name, double x) {
  named(v, name, PJRT_NamedValue_FLOAT, 1);
  v->float_value = (float)x;
}

/* ---- the caller's data on memories ---- */

static void *get_user_data(PJRT_Memory *m, const void *key) {
  void *found = NULL;
  pthread_mutex_lock(&m->lock);
  for (int i = 0; i < m->data.n; i++)
    if (m->data.v[i].key == key) found = m->data.v[i].data;
  pthread_mutex_unlock(&m->lock);
  return found;
}

static void set_user_data(PJRT_Memory *m, const void *key, void *data, void (*dtor)(void *)) {
  MemoryData old = {0};
  pthread_mutex_lock(&m->lock);
  int i = 0;
  while (i < m->data.n && m->data.v[i].key != key) i++;
  if (i < m->data.n) old = m->data.v[i];
  else (void)vec_push(&m->data);
  m->data.v[i] = (MemoryData){key, data, dtor};
  pthread_mutex_unlock(&m->lock);
  if (old.data && old.dtor) old.dtor(old.data);
}

static const PJRT_Memory_FunctionTable memory_table = {
    .struct_size = sizeof memory_table,
    .instance_struct_size = sizeof(PJRT_Memory),
    .get_user_data = get_user_data,
    .set_user_data = set_user_data,
};

/* ---- devices ---- */

void describe_device(const Dev *d, int i, PJRT_DeviceDescription *out) {
  DevInfo info = {0};
  d->ops->info(d, i, &info);
  *out = (PJRT_DeviceDescription){.id = i, .kind = info.kind ? info.kind : d->ops->name};
  out->text = xasprintf("WeftDevice(id=%d)", i);
  out->debug = xasprintf("weft:%d (%s)", i, out->kind);
  for (int k = 0; k < 3; k++) out->coords[k] = info.coords[k];
  bool torus = !strncmp(out->kind, "TPU", 3); /* JAX's mesh code looks for these two */
  if (torus) named_ints(&out->attrs[out->n_attrs++], "coords", out->coords, 3);
  if (torus) named_int(&out->attrs[out->n_attrs++], "core_on_chip", info.core);
  if (info.memory_bytes) named_int(&out->attrs[out->n_attrs++], "memory_bytes", info.memory_bytes);
  /* XLA's client of GPUs has these three */
  if (info.vendor) named_text(&out->attrs[out->n_attrs++], "device_vendor", info.vendor);
  if (info.capability)
    named_text(&out->attrs[out->n_attrs++], "compute_capability", info.capability);
  if (info.units) named_int(&out->attrs[out->n_attrs++], "core_count", info.units);
}

void description_clear(PJRT_DeviceDescription *d) {
  free(d->text);
  free(d->debug);
}

/* The devices of this process, and their memories. */
static void list_near(PJRT_Client *c) {
  c->near_list = xcalloc((size_t)c->n, sizeof *c->near_list);
  c->near_memories = xcalloc((size_t)c->n * MEM_KINDS, sizeof *c->near_memories);
  for (int i = 0; i < c->n; i++) {
    PJRT_Device *d = &c->devices[i];
    if (d->desc.process != c->process) continue;
    d->near_id = c->n_near;
    memcpy(c->near_memories + c->n_near * MEM_KINDS, d->memory_list, sizeof d->memory_list);
    c->near_list[c->n_near++] = d;
  }
}

static PJRT_Client *client_new(Dev *dev, char *take_platform) {
  PJRT_Client *c = xcalloc(1, sizeof *c);
  c->refs = 1;
  c->dev = dev;
  c->n = dev->n;
  c->process = dev->peers ? peers_id(dev->peers) : 0;
  c->devices = xcalloc((size_t)c->n, sizeof *c->devices);
  c->device_list = xcalloc((size_t)c->n, sizeof *c->device_list);
  c->memory_list = xcalloc((size_t)c->n * MEM_KINDS, sizeof *c->memory_list);
  c->topology =
      (PJRT_TopologyDescription){.dev = dev, .name = xstrdup(dev->spec), .platform = take_platform};
  c->topology.list = xcalloc((size_t)c->n, sizeof *c->topology.list);
  for (int i = 0; i < c->n; i++) {
    PJRT_Device *d = &c->devices[i];
    c->device_list[i] = d;
    d->client = c;
    d->near_id = -1;
    d->queue = queue_new(dev_is_virtual(c->dev));
    describe_device(dev, i, &d->desc);
    if (dev->peers) d->desc.process = dev->owner[i];
    c->topology.list[i] = &d->desc;
    for (int k = 0; k < MEM_KINDS; k++) {
      PJRT_Memory *m = &d->memories[k];
      *m = (PJRT_Memory){.vtable = &memory_table,
                         .client = c,
                         .device = d,
                         .kind = (MemoryKind)k,
                         .id = i * MEM_KINDS + k};
      m->text = xasprintf("%s of WeftDevice(id=%d)", memory_kind_names[k], i);
      pthread_mutex_init(&m->lock, NULL);
      d->memory_list[k] = m;
      c->memory_list[m->id] = m;
    }
  }
  list_near(c);
  return c;
}

PJRT_Client *client_retain(PJRT_Client *c) {
  __atomic_fetch_add(&c->refs, 1, __ATOMIC_RELAXED);
  return c;
}

void client_release(PJRT_Client *c) {
  if (!c || __atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
  for (int i = 0; i < c->n; i++) {
    for (int k = 0; k < MEM_KINDS; k++) {
      PJRT_Memory *m = &c->devices[i].memories[k];
      free(m->text);
      vec_free(&m->data);
      pthread_mutex_destroy(&m->lock);
    }
    description_clear(&c->devices[i].desc);
    queue_close(c->devices[i].queue);
  }
  dev_close(c->dev);
  free(c->topology.name);
  free(c->topology.platform);
  free(c->topology.list);
  free(c->devices);
  free(c->device_list);
  free(c->memory_list);
  free(c->near_list);
  free(c->near_memories);
  free(c);
}

/* What a caller may ask for when it makes a client. Others are ignored: callers add their own. */
typedef struct ClientOptions {
  Str device;      /* "device": names the device as WEFT_DEVICE does and wins over it */
  int64_t devices; /* "num_devices": for a host device without a number ("cpu") */
  int64_t nodes;   /* "num_nodes": processes that compute together, of distributed JAX */
  int64_t node;    /* "node_id": which of them this is */
  Str coordinator; /* "coordinator": HOST:PORT of process 0, where the caller has no store for them */
  /* "platform_name": platform.c; "stablehlo_version": the caller's own */
} ClientOptions;

static ClientOptions options_read(const PJRT_Client_Create_Args *a) {
  ClientOptions o = {.nodes = 1};
  for (size_t i = 0; i < a->num_options; i++) {
    const PJRT_NamedValue *v = &a->create_options[i];
    Str name = {v->name, v->name_size};
    bool number = v->type == PJRT_NamedValue_INT64;
    if (str_is(name, "device") && v->type == PJRT_NamedValue_STRING)
      o.device = (Str){v->string_value, v->value_size};
    if (str_is(name, "coordinator") && v->type == PJRT_NamedValue_STRING)
      o.coordinator = (Str){v->string_value, v->value_size};
    if (str_is(name, "num_devices") && number) o.devices = v->int64_value;
    if (str_is(name, "num_nodes") && number) o.nodes = v->int64_value;
    if (str_is(name, "node_id") && number) o.node = v->int64_value;
    if (str_is(name, "stablehlo_version") && v->type == PJRT_NamedValue_STRING)
      stablehlo_limit((Str){v->string_value, v->value_size});
  }
  return o;
}

/* The device's name, malloc'd. */
static char *spec_of(const ClientOptions *o) {
  const char *env = env_get("WEFT_DEVICE");
  if (!env) env = device_default();
  char *spec = o->device.n ? xstrndup(o->device.p, o->device.n) : xstrdup(env);
  bool host = !strcmp(spec, "cpu") || !strcmp(spec, "interp") || !strcmp(spec, "null");
  if (o->devices <= 0 || !host) return spec;
  char *with_count = xasprintf("%s:%lld", spec, (long long)o->devices);
  free(spec);
  return with_count;
}

ENTRY(Client_Create) {
  ClientOptions o = options_read(a);
  char *spec = spec_of(&o);
  Dev *dev;
  JobOptions job = {(int)o.node, (int)o.nodes, o.coordinator, a};
  Err *e = o.nodes > 1 ? job_open(spec, &job, &dev) : dev_open(spec, &dev);
  free(spec);
  if (!e) a->client = client_new(dev, platform_name(a->num_options, a->create_options));
  return error_from(e);
}

ENTRY(Client_Destroy) {
  /* The process may be about to end, perhaps interrupted in a long run. Nobody reads results any
   * more: runs stop at their next step, and what still computes that one is left to itself. */
  exchange_close(a->client->dev->exchange);
  for (int i = 0; i < a->client->n; i++) queue_drain_for(a->client->devices[i].queue, 2);
  /* what a caller tied to the memories goes with its client, even if buffers live on */
  for (int i = 0; i < a->client->n * MEM_KINDS; i++) {
    PJRT_Memory *m = a->client->memory_list[i];
    pthread_mutex_lock(&m->lock);
    int n = m->data.n;
    MemoryData *data = m->data.v;
    memset(&m->data, 0, sizeof m->data);
    pthread_mutex_unlock(&m->lock);
    for (int k = 0; k < n; k++)
      if (data[k].data && data[k].dtor) data[k].dtor(data[k].data);
    free(data);
  }
  client_release(a->client);
  return NULL;
}

ENTRY(Client_PlatformName) {
  a->platform_name = a->client->topology.platform;
  a->platform_name_size = strlen(a->platform_name);
  return NULL;
}

ENTRY(Client_PlatformVersion) {
  a->platform_version = PLATFORM_VERSION;
  a->platform_version_size = sizeof PLATFORM_VERSION - 1;
  return NULL;
}

ENTRY(Client_ProcessIndex) {
  a->process_index = a->client->process;
  return NULL;
}

ENTRY(Client_Devices) {
  a->devices = a->client->device_list;
  a->num_devices = (size_t)a->client->n;
  return NULL;
}

ENTRY(Client_AddressableDevices) {
  a->addressable_devices = a->client->near_list;
  a->num_addressable_devices = (size_t)a->client->n_near;
  return NULL;
}

ENTRY(Client_AddressableMemories) {
  a->addressable_memories = a->client->near_memories;
  a->num_addressable_memories = (size_t)a->client->n_near * MEM_KINDS;
  return NULL;
}

static PJRT_Error *lookup(PJRT_Client *c, int id, PJRT_Device **out) {
  if (id < 0 || id >= c->n)
    return error_new(ERR_INVALID, "no device with id %d: there are %d", id, c->n);
  *out = c->device_list[id];
  return NULL;
}

ENTRY(Client_LookupDevice) { return lookup(a->client, a->id, &a->device); }

ENTRY(Client_LookupAddressableDevice) {
  int i = a->local_hardware_id;
  if (i < 0 || i >= a->client->n_near)
    return error_new(ERR_INVALID, "no device with local id %d: this process has %d", i,
                     a->client->n_near);
  a->addressable_device = a->client->near_list[i];
  return NULL;
}

ENTRY(Client_DefaultDeviceAssignment) {
  int64_t n = (int64_t)a->num_replicas * a->num_partitions;
  if (a->num_replicas < 1 || a->num_partitions < 1 || n > a->client->n)
    return error_new(ERR_INVALID, "%d replicas x %d partitions do not fit %d devices",
                     a->num_replicas, a->num_partitions, a->client->n);
  if ((int64_t)a->default_assignment_size < n)
    return error_new(ERR_INVALID, "room for %zu device ids, %lld needed",
                     a->default_assignment_size, (long long)n);
  PJRT_Device **list = n <= a->client->n_near ? a->client->near_list : a->client->device_list;
  for (int i = 0; i < n; i++) a->default_assignment[i] = list[i]->desc.id;
  return NULL;
}

ENTRY(Client_TopologyDescription) {
  a->topology = &a->client->topology;
  return NULL;
}

ENTRY(Client_UpdateGlobalProcessInfo) {
  (void)a; /* their connections tell how the others are */
  return NULL;
}

ENTRY(Client_DmaMap) {
  (void)a; /* all memory is host memory */
  return NULL;
}

ENTRY(Client_DmaUnmap) {
  (void)a;
  return NULL;
}

/* ---- devices ---- */

ENTRY(Device_GetDescription) {
  a->device_description = &a->device->desc;
  return NULL;
}

ENTRY(Device_IsAddressable) {
  a->is_addressable = a->device->desc.process == a->device->client->process;
  return NULL;
}

ENTRY(Device_LocalHardwareId) {
  a->local_hardware_id = a->device->near_id;
  return NULL;
}

ENTRY(Device_AddressableMemories) {
  a->memories = a->device->memory_list;
  a->num_memories = MEM_KINDS;
  return NULL;
}

ENTRY(Device_DefaultMemory) {
  a->memory = a->device->memory_list[MEM_DEVICE];
  return NULL;
}

/* A device without a limit of its own has a share of this host's memory: all devices filled as far as each says they can be must not be
   more than there is. */
static int64_t share_of_host(const PJRT_Client *c) {
  long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? (int64_t)pages * size / c->n_near : INT64_MAX;
}

ENTRY(Device_MemoryStats) {
  DevStats s = {0};
  if (dev_is_virtual(a->device->client->dev)) /* results of queued runs count, as on a real chip */
    for (int i = 0; i < a->device->client->n; i++) queue_drain(a->device->client->devices[i].queue);
  dev_stats(a->device->client->dev, a->device->desc.id, &s);
  s.in_use += __atomic_load_n(&a->device->promised, __ATOMIC_RELAXED);
  s.peak = MAX(s.peak, s.in_use);
  int64_t limit = s.limit > 0 ? s.limit : share_of_host(a->device->client);
  SET_IF(Device_MemoryStats, bytes_in_use, s.in_use);
  SET_IF(Device_MemoryStats, peak_bytes_in_use, s.peak);
  SET_IF(Device_MemoryStats, peak_bytes_in_use_is_set, true);
  SET_IF(Device_MemoryStats, num_allocs, s.allocs);
  SET_IF(Device_MemoryStats, num_allocs_is_set, true);
  SET_IF(Device_MemoryStats, largest_alloc_size, s.largest);
  SET_IF(Device_MemoryStats, largest_alloc_size_is_set, true);
  SET_IF(Device_MemoryStats, bytes_limit, limit); /* torch_xla asks */
  SET_IF(Device_MemoryStats, bytes_limit_is_set, true);
  SET_IF(Device_MemoryStats, bytes_reserved, 0);
  SET_IF(Device_MemoryStats, bytes_reserved_is_set, true);
  SET_IF(Device_MemoryStats, peak_bytes_reserved, 0);
  SET_IF(Device_MemoryStats, peak_bytes_reserved_is_set, true);
  SET_IF(Device_MemoryStats, bytes_reservable_limit, limit);
  SET_IF(Device_MemoryStats, bytes_reservable_limit_is_set, true);
  SET_IF(Device_MemoryStats, largest_free_block_bytes, limit > s.in_use ? limit - s.in_use : 0);
  SET_IF(Device_MemoryStats, largest_free_block_bytes_is_set, true);
  SET_IF(Device_MemoryStats, pool_bytes, 0);
  SET_IF(Device_MemoryStats, pool_bytes_is_set, false);
  SET_IF(Device_MemoryStats, peak_pool_bytes, 0);
  SET_IF(Device_MemoryStats, peak_pool_bytes_is_set, false);
  SET_IF(Device_MemoryStats, peak_allocated_bytes, s.peak);
  SET_IF(Device_MemoryStats, peak_allocated_bytes_is_set, true);
  return NULL;
}

static void no_deleter(PJRT_Device_Attributes *attrs) { (void)attrs; }

ENTRY(Device_GetAttributes) {
  a->attributes = a->device->desc.attrs;
  a->num_attributes = (size_t)a->device->desc.n_attrs;
  SET_IF(Device_GetAttributes, device_attributes, NULL);
  SET_IF(Device_GetAttributes, attributes_deleter, no_deleter);
  return NULL;
}

/* ---- descriptions ---- */

ENTRY(DeviceDescription_Id) {
  a->id = a->device_description->id;
  return NULL;
}

ENTRY(DeviceDescription_ProcessIndex) {
  a->process_index = a->device_description->process;
  return NULL;
}

ENTRY(DeviceDescription_Attributes) {
  a->attributes = a->device_description->attrs;
  a->num_attributes = (size_t)a->device_description->n_attrs;
  return NULL;
}

ENTRY(DeviceDescription_Kind) {
  a->device_kind = a->device_description->kind;
  a->device_kind_size = strlen(a->device_kind);
  return NULL;
}

ENTRY(DeviceDescription_DebugString) {
  a->debug_string = a->device_description->debug;
  a->debug_string_size = strlen(a->debug_string);
  return NULL;
}

ENTRY(DeviceDescription_ToString) {
  a->to_string = a->device_description->text;
  a->to_string_size = strlen(a->to_string);
  return NULL;
}

/* ---- memories ---- */

ENTRY(Memory_Id) {
  a->id = a->memory->id;
  return NULL;
}

ENTRY(Memory_Kind) {
  a->kind = memory_kind_names[a->memory->kind];
  a->kind_size = strlen(a->kind);
  return NULL;
}

ENTRY(Memory_Kind_Id) {
  a->kind_id = a->memory->kind;
  return NULL;
}

ENTRY(Memory_DebugString) {
  a->debug_string = a->memory->text;
  a->debug_string_size = strlen(a->debug_string);
  return NULL;
}

ENTRY(Memory_ToString) {
  a->to_string = a->memory->text;
  a->to_string_size = strlen(a->to_string);
  return NULL;
}

ENTRY(Memory_AddressableByDevices) {
  a->devices = &a->memory->client->device_list[a->memory->device->desc.id];
  a->num_devices = 1;
  return NULL;
}

/* ---- the memory descriptions extension: kinds without a client ---- */

static const PJRT_MemoryDescription *const kind_list[MEM_KINDS] = {
    (const PJRT_MemoryDescription *)&memory_kind_names[0],
    (const PJRT_MemoryDescription *)&memory_kind_names[1],
    (const PJRT_MemoryDescription *)&memory_kind_names[2],
};

static PJRT_Error *memory_descriptions(PJRT_DeviceDescription_MemoryDescriptions_Args *a) {
  a->memory_descriptions = kind_list;
  a->num_memory_descriptions = MEM_KINDS;
  a->default_memory_index = MEM_DEVICE;
  return NULL;
}

static PJRT_Error *memory_description_kind(PJRT_MemoryDescription_Kind_Args *a) {
  const char *const *name = (const char *const *)a->memory_description;
  a->kind = *name;
  a->kind_size = strlen(*name);
  a->kind_id = (int)(name - memory_kind_names);
  return NULL;
}

const PJRT_MemoryDescriptions_Extension memory_descriptions_extension = {
    .base = {sizeof memory_descriptions_extension, PJRT_Extension_Type_MEMORY_DESCRIPTIONS, NULL},
    .PJRT_DeviceDescription_MemoryDescriptions = memory_descriptions,
    .PJRT_MemoryDescription_Kind = memory_description_kind,
};
