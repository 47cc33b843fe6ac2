/* Topologies: a device by name without buffers, for compiling ahead of time. The name is a device
 * name as WEFT_DEVICE takes it; the serialized form is that name. */
#include "pjrt/pjrt_priv.h"

static Err *topology_new(Str name, size_t n_options, const PJRT_NamedValue *options,
                         PJRT_TopologyDescription **out) {
  char *spec = xstrndup(name.p ? name.p : "", name.n);
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
  *out = t;
  return NULL;
}

ENTRY(TopologyDescription_Create) {
  Str name = {a->topology_name, a->topology_name_size};
  for (size_t i = 0; i < a->num_options; i++) {
    const PJRT_NamedValue *v = &a->create_options[i];
    if (str_is((Str){v->name, v->name_size}, "device") && v->type == PJRT_NamedValue_STRING)
      name = (Str){v->string_value, v->value_size};
  }
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
