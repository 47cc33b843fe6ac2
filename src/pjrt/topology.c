/* Topologies: a device by name without buffers, for compiling ahead of time. The name is a device
 * name as WEFT_DEVICE takes it ("v5e:4x4", "A100-80GB:8"); the serialized form is that name. */
#include "pjrt/pjrt_priv.h"

/* What a caller may ask of a topology, as libtpu takes it; other options are ignored. */
typedef struct TopologyOptions {
  Str device;      /* "device": wins over the name */
  int64_t slices;  /* "num_slices" */
  int64_t host[3]; /* "chips_per_host_bounds" */
} TopologyOptions;

static TopologyOptions options_read(size_t n, const PJRT_NamedValue *options) {
  TopologyOptions o = {.slices = 1, .host = {2, 2, 1}};
  for (size_t i = 0; i < n; i++) {
    const PJRT_NamedValue *v = &options[i];
    Str name = {v->name, v->name_size};
    if (str_is(name, "device") && v->type == PJRT_NamedValue_STRING)
      o.device = (Str){v->string_value, v->value_size};
    if (str_is(name, "num_slices") && v->type == PJRT_NamedValue_INT64) o.slices = v->int64_value;
    if (str_is(name, "chips_per_host_bounds") && v->type == PJRT_NamedValue_INT64_LIST)
      for (size_t k = 0; k < v->value_size && k < 3; k++)
        o.host[k] = MAX(1, v->int64_array_value[k]);
  }
  return o;
}

static int by_host(const void *a, const void *b) {
  const PJRT_DeviceDescription *x = *(PJRT_DeviceDescription *const *)a,
                               *y = *(PJRT_DeviceDescription *const *)b;
  return x->process != y->process ? x->process - y->process : x->id - y->id;
}

/* Devices by their hosts; slices have numbers when there are several. */
static void place_hosts(PJRT_TopologyDescription *t, const char *spec, const int64_t *host) {
  HostPlace *at = xcalloc((size_t)t->dev->n, sizeof *at);
  if (hosts_of(spec, host, t->dev->n, at)) /* else no chip: one host */
    for (int i = 0; i < t->dev->n; i++) {
      PJRT_DeviceDescription *d = &t->descs[i];
      d->process = at[i].host;
      if (at[i].slice >= 0) named_int(&d->attrs[d->n_attrs++], "slice_index", at[i].slice);
    }
  free(at);
  qsort(t->list, (size_t)t->dev->n, sizeof(void *), by_host);
}

static Err *topology_new(Str name, size_t n_options, const PJRT_NamedValue *options,
                         PJRT_TopologyDescription **out) {
  TopologyOptions o = options_read(n_options, options);
  if (o.device.n) name = o.device;
  if (o.slices < 1 || o.slices > 1 << 20)
    return err_new(ERR_INVALID, "num_slices is %lld; it must be 1 or more", (long long)o.slices);
  char *spec = o.slices > 1 ? xasprintf("%.*s:%lld", STR_ARG(name), (long long)o.slices)
                            : xstrndup(name.p ? name.p : "", name.n);
  Dev *dev;
  Err *e = dev_open(spec, &dev);
  free(spec);
  TRY(e);
  PJRT_TopologyDescription *t = xcalloc(1, sizeof *t);
  *t = (PJRT_TopologyDescription){.dev = dev,
                                  .owns_dev = true,
                                  .name = xstrdup(dev->spec),
                                  .platform = platform_name(n_options, options)};
  t->descs = xcalloc((size_t)dev->n, sizeof *t->descs);
  t->list = xcalloc((size_t)dev->n, sizeof *t->list);
  for (int i = 0; i < dev->n; i++) {
    describe_device(dev, i, &t->descs[i]);
    t->list[i] = &t->descs[i];
  }
  place_hosts(t, dev->spec, o.host);
  *out = t;
  return NULL;
}

ENTRY(TopologyDescription_Create) {
  Str name = {a->topology_name, a->topology_name_size};
  return error_from(topology_new(name, a->num_options, a->create_options, &a->topology));
}

ENTRY(TopologyDescription_Deserialize) {
  return error_from(topology_new((Str){a->serialized_topology, a->serialized_topology_size}, 0,
                                 NULL, &a->topology));
}

ENTRY(TopologyDescription_Destroy) {
  PJRT_TopologyDescription *t = a->topology;
  if (!t || !t->owns_dev) return NULL; /* the client's own */
  for (int i = 0; i < t->dev->n; i++) description_clear(&t->descs[i]);
  dev_close(t->dev);
  free(t->descs);
  free(t->list);
  free(t->name);
  free(t->platform);
  free(t);
  return NULL;
}

ENTRY(TopologyDescription_PlatformName) {
  a->platform_name = a->topology->platform;
  a->platform_name_size = strlen(a->platform_name);
  return NULL;
}

ENTRY(TopologyDescription_PlatformVersion) {
  a->platform_version = PLATFORM_VERSION;
  a->platform_version_size = sizeof PLATFORM_VERSION - 1;
  return NULL;
}

ENTRY(TopologyDescription_GetDeviceDescriptions) {
  a->descriptions = a->topology->list;
  a->num_descriptions = (size_t)a->topology->dev->n;
  return NULL;
}

ENTRY(TopologyDescription_Attributes) {
  a->attributes = a->topology->attrs;
  a->num_attributes = (size_t)a->topology->n_attrs;
  return NULL;
}

ENTRY(TopologyDescription_Fingerprint) {
  a->fingerprint = (size_t)hash_bytes(a->topology->name, strlen(a->topology->name), 0);
  return NULL;
}

static void topology_bytes_free(PJRT_SerializedTopology *t) { free(t); }

ENTRY(TopologyDescription_Serialize) {
  char *copy = xstrdup(a->topology->name);
  a->serialized_bytes = copy;
  a->serialized_bytes_size = strlen(copy);
  a->serialized_topology = (PJRT_SerializedTopology *)copy;
  a->serialized_topology_deleter = topology_bytes_free;
  return NULL;
}

ENTRY(TopologyDescription_GetMemorySpaceKindIds) {
  static const int ids[MEM_KINDS] = {MEM_DEVICE, MEM_PINNED_HOST, MEM_UNPINNED_HOST};
  a->memory_space_kind_ids = ids;
  a->num_memory_space_kind_ids = MEM_KINDS;
  return NULL;
}

ENTRY(TopologyDescription_MakeCanonicalShapeForMemorySpace) {
  (void)a;
  return error_new(ERR_UNIMPLEMENTED, "weft: TopologyDescription_MakeCanonicalShapeForMemorySpace");
}
