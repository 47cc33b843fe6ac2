/* A device whose parts belong to several processes (jax.distributed.initialize): the caller's key-value
 * store brings them together. Of a host device each process brings its own (WEFT_DEVICE=cpu:4 of two
 * processes are eight); a virtual chip's name is that of the whole slice, divided by its hosts. */
#include "pjrt/pjrt_priv.h"

#include <stdio.h>

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

/* Hosts in turn, each as many: of 16 hosts 8 processes have two each. */
static Err *by_host(const char *spec, int n, int nodes, int *owner) {
  static const int64_t host[3] = {2, 2, 1};
  HostPlace *at = xcalloc((size_t)n, sizeof *at);
  bool found = hosts_of(spec, host, n, at);
  int hosts = 0;
  for (int i = 0; i < n; i++) {
    owner[i] = found ? at[i].host : 0;
    hosts = MAX(hosts, owner[i] + 1);
  }
  free(at);
  if (nodes <= hosts && hosts % nodes == 0) {
    for (int i = 0; i < n; i++) owner[i] /= hosts / nodes;
    return NULL;
  }
  return err_hint(err_new(ERR_INVALID,
                          "%d processes cannot share '%s', which has %d device%s on %d host%s",
                          nodes, spec, n, n == 1 ? "" : "s", hosts, hosts == 1 ? "" : "s"),
                  "start %d processes, one for each host, or a number that divides it", hosts);
}

static int *by_count(const Peers *p) {
  int *owner = xcalloc((size_t)peers_all_devices(p), sizeof *owner), at = 0;
  for (int i = 0; i < peers_count(p); i++)
    for (int k = 0; k < peers_devices(p, i); k++) owner[at++] = i;
  return owner;
}

/* ---- opening ---- */

static Err *come_together(const char *device, int devices, int node, int nodes,
                          const PJRT_Client_Create_Args *a, Peers **out) {
  if (!PJRT_HAS(a, PJRT_Client_Create_Args, kv_put_user_arg) || !a->kv_get_callback ||
      !a->kv_put_callback)
    return err_new(ERR_INVALID,
                   "a job of %d processes needs the caller's key-value store, and none came",
                   nodes);
  PeersStore store = {(void *)(uintptr_t)a, store_put, store_get};
  return peers_open(&(PeersOpts){node, nodes, device, devices, store}, out);
}

/* Every process brings devices of its own. */
static Err *open_host(const char *spec, int node, int nodes, const PJRT_Client_Create_Args *a,
                      Dev **out) {
  Dev *own;
  Peers *peers;
  TRY(dev_open(spec, &own));
  int n = own->n;
  dev_close(own);
  char *kind = xstrndup(spec, strcspn(spec, ":"));
  Err *e = come_together(kind, n, node, nodes, a, &peers);
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
static Err *open_slice(const char *spec, int node, int nodes, const PJRT_Client_Create_Args *a,
                       Dev **out) {
  Dev *d;
  Peers *peers = NULL;
  TRY(dev_open(spec, &d));
  int *owner = xcalloc((size_t)d->n, sizeof *owner);
  Err *e = by_host(spec, d->n, nodes, owner);
  if (!e) e = come_together(spec, d->n / nodes, node, nodes, a, &peers);
  if (e) {
    free(owner);
    dev_close(d);
    return e;
  }
  dev_share(d, peers, owner);
  *out = d;
  return NULL;
}

Err *job_open(const char *spec, int node, int nodes, const PJRT_Client_Create_Args *a, Dev **out) {
  if (node < 0 || node >= nodes)
    return err_new(ERR_INVALID, "node_id is %d of num_nodes %d", node, nodes);
  return is_host_device(spec) ? open_host(spec, node, nodes, a, out)
                              : open_slice(spec, node, nodes, a, out);
}
