/* Which host has which device of a virtual chip's slices: hosts hold boxes of chips, a GPU's its server's. */
#include "chip/slice.h"
#include "pjrt/pjrt_priv.h"

static int host_of(const ChipRef *ref, const int64_t *host, int chip) {
  const ChipSlice *s = &ref->slice;
  if (ref->chip->kind == CHIP_GPU) {
    const Server *server = ref->server ? ref->server : chip_server(ref->chip);
    int gpus = server ? (int)server_num(server, "host_gpus", server->gpus) : 8;
    return chip / MAX(1, gpus);
  }
  int64_t at = chip / s->chips, place[3];
  slice_place(s, chip % s->chips, place);
  for (int k = 2; k >= 0; k--)
    at = at * ((s->dims[k] + host[k] - 1) / host[k]) + place[k] / host[k];
  return (int)at;
}

bool hosts_of(const char *spec, const int64_t *host, int n, HostPlace *out) {
  ChipRef ref;
  Err *e = chip_parse(spec, &ref);
  for (int i = 0; i < n && !e; i++) {
    int chip = i / MAX(1, ref.chip->devices_per_chip);
    out[i] =
        (HostPlace){host_of(&ref, host, chip), ref.slice.slices > 1 ? chip / ref.slice.chips : -1};
  }
  bool found = !e;
  err_free(e);
  return found;
}
