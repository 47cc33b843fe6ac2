/* A device whose parts belong to several processes: the caller's key-value store brings them together
 * (jax.distributed.initialize), or one that process 0 keeps where the caller says (TensorFlow's workers).
 * Of a host device each process brings its own (WEFT_DEVICE=cpu:4 of two processes are eight); a virtual
 * chip's name is that of the whole slice, divided by its hosts, and GPUs of a server further; a GPU without
 * a number is each process's own. */
#include "chip/chip.h"
#include "pjrt/pjrt_priv.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the caller's store ---- */

static PJRT_Error *callback_error(PJRT_Error_Code code, const char *message, size_t n) {
  return error_new((ErrCode)code, "%.*s", (int)n, message);
}

/* Of a callback, which may hand the error over in our type. */
static Err *said(PJRT_Error *e) {
  Err *out = e ? error_to_err(e) : NULL;
  error_free(e);
  return out;
}

static Err *store_put(void *arg, const char *key, Str value) {
  const PJRT_Client_Create_Args *a = arg;
  PJRT_CallbackError fail = callback_error;
  PJRT_KeyValuePutCallback_Args put = {.struct_size = sizeof put,
                                       .key = key,
                                       .key_size = strlen(key),
                                       .value = value.p,
                                       .value_size = value.n,
                                       .callback_error = &fail,
                                       .user_arg = a->kv_put_user_arg};
  return said(a->kv_put_callback(&put));
}

static Err *store_get(void *arg, const char *key, int timeout_ms, Buf *out) {
  const PJRT_Client_Create_Args *a = arg;
  PJRT_CallbackError fail = callback_error;
  PJRT_KeyValueGetCallback_Args get = {.struct_size = sizeof get,
                                       .key = key,
                                       .key_size = strlen(key),
                                       .timeout_in_ms = timeout_ms,
                                       .callback_error = &fail,
                                       .user_arg = a->kv_get_user_arg};
  TRY(said(a->kv_get_callback(&get)));
  buf_add(out, get.value, get.value_size);
  if (get.value_deleter_callback) get.value_deleter_callback(get.value);
  return NULL;
}

/* ---- whose devices ---- */

static bool is_host_device(const char *spec) {
  size_t n = strcspn(spec, ":");
  return (n == 3 && !strncmp(spec, "cpu", n)) || (n == 6 && !strncmp(spec, "interp", n)) ||
         (n == 4 && !strncmp(spec, "null", n));
}

/* Hosts in turn, each as many: of 16 hosts 8 processes have two each. GPUs of one server may belong to several
 * processes, as where each process is started for one of them. */
static bool divide(const HostPlace *at, int n, int hosts, int nodes, bool gpus, int *owner) {
  if (nodes <= hosts && hosts % nodes == 0) {
    for (int i = 0; i < n; i++) owner[i] = at[i].host / (hosts / nodes);
    return true;
  }
  bool even = gpus && n % nodes == 0;
  for (int i = 0; i < n && even; i++) {
    owner[i] = i / (n / nodes);
    even = at[i].host == at[i - i % (n / nodes)].host;
  }
  return even;
}

static bool is_gpu(const char *spec, bool *counted) {
  ChipRef ref;
  Err *e = chip_parse(spec, &ref);
  bool gpu = !e && ref.chip->kind == CHIP_GPU;
  *counted = gpu && ref.devices;
  err_free(e);
  return gpu;
}

static Err *by_host(const char *spec, int n, int nodes, int *owner) {
  static const int64_t host[3] = {2, 2, 1};
  HostPlace *at = xcalloc((size_t)n, sizeof *at);
  hosts_of(spec, host, n, at); /* else no chip: one host */
  int hosts = 0;
  for (int i = 0; i < n; i++) hosts = MAX(hosts, at[i].host + 1);
  bool counted, gpus = is_gpu(spec, &counted), fine = divide(at, n, hosts, nodes, gpus, owner);
  free(at);
  if (fine) return NULL;
  Err *e =
      err_new(ERR_INVALID, "%d processes cannot share '%s', which has %d device%s on %d host%s",
              nodes, spec, n, n == 1 ? "" : "s", hosts, hosts == 1 ? "" : "s");
  if (gpus) return err_hint(e, "give them a number of GPUs that %d divides", nodes);
  return err_hint(e, "start %d processes, one for each host, or a number that divides it", hosts);
}

static int *by_count(const Peers *p) {
  int *owner = xcalloc((size_t)peers_all_devices(p), sizeof *owner), at = 0;
  for (int i = 0; i < peers_count(p); i++)
    for (int k = 0; k < peers_devices(p, i); k++) owner[at++] = i;
  return owner;
}

/* ---- opening ---- */

/* Nobody asks the store again when all are connected. */
static Err *come_to_process_0(PeersOpts *o, Str coordinator, Peers **out) {
  PeersPlace at = {.id = o->id, .n = o->n};
  PeersHub *hub;
  char *text = xstrndup(coordinator.p, coordinator.n);
  Err *e = peers_address(text, &at.host, &at.port)
               ? peers_hub_open(&at, &hub)
               : err_new(ERR_INVALID, "\"coordinator\" is HOST:PORT of process 0, not '%s'", text);
  free(text);
  free(at.host);
  if (e) return e;
  o->store = peers_hub_store(hub);
  e = peers_open(o, out);
  peers_hub_close(hub, e);
  return e;
}

static Err *come_together(const char *device, int devices, const JobOptions *j, Peers **out) {
  const PJRT_Client_Create_Args *a = j->args;
  PeersOpts o = {j->node, j->nodes, device, devices, {(void *)(uintptr_t)a, store_put, store_get}};
  if (j->coordinator.n) return come_to_process_0(&o, j->coordinator, out);
  if (!PJRT_HAS(a, PJRT_Client_Create_Args, kv_put_user_arg) || !a->kv_get_callback ||
      !a->kv_put_callback)
    return err_new(ERR_INVALID,
                   "a job of %d processes needs the caller's key-value store, and none came",
                   j->nodes);
  return peers_open(&o, out);
}

/* Every process brings devices of its own. */
static Err *open_host(const char *spec, const JobOptions *j, Dev **out) {
  Dev *own;
  Peers *peers;
  TRY(dev_open(spec, &own));
  int n = own->n;
  dev_close(own);
  char *kind = xstrndup(spec, strcspn(spec, ":"));
  Err *e = come_together(kind, n, j, &peers);
  if (!e) {
    int *owner = by_count(peers);
    char *whole = xasprintf("%s:%d", kind, peers_all_devices(peers));
    e = dev_open(whole, out);
    free(whole);
    if (!e) dev_share(*out, peers, owner);
    else free(owner), peers_close(peers);
  }
  free(kind);
  return e;
}

/* Every process has its part of the slice. */
static Err *open_slice(const char *spec, const JobOptions *j, Dev **out) {
  Dev *d;
  Peers *peers = NULL;
  TRY(dev_open(spec, &d));
  int *owner = xcalloc((size_t)d->n, sizeof *owner);
  Err *e = by_host(spec, d->n, j->nodes, owner);
  if (!e) e = come_together(spec, d->n / j->nodes, j, &peers);
  if (e) {
    free(owner);
    dev_close(d);
    return e;
  }
  dev_share(d, peers, owner);
  *out = d;
  return NULL;
}

/* "A100" of four processes is "A100:4". */
static Err *open_virtual(const char *spec, const JobOptions *j, Dev **out) {
  bool counted;
  if (!is_gpu(spec, &counted) || counted) return open_slice(spec, j, out);
  char *whole = xasprintf("%s:%d", spec, j->nodes);
  Err *e = open_slice(whole, j, out);
  free(whole);
  return e;
}

Err *job_open(const char *spec, const JobOptions *j, Dev **out) {
  if (j->node < 0 || j->node >= j->nodes)
    return err_new(ERR_INVALID, "node_id is %d of num_nodes %d", j->node, j->nodes);
  return is_host_device(spec) ? open_host(spec, j, out) : open_virtual(spec, j, out);
}
