/* Networks opened, groups described. */
#include <math.h>

#include "net/net_priv.h"

const char *net_kind_name(NetKind k) {
  static const char *const names[NET_KINDS] = {"all-reduce", "all-gather",         "reduce-scatter",
                                               "all-to-all", "collective-permute", "send",
                                               "broadcast"};
  return names[k];
}

int net_group_size(const NetGroup *g, int devices) {
  int n = 1;
  for (int i = 0; i < g->n; i++) n *= MAX(1, g->axis[i].size);
  return g->n ? n : devices;
}

/* Axis by axis: what repeats with one stride is an axis, blocks of it those of the next. */
bool net_group_of(const int64_t *ids, int groups, int size, NetGroup *out) {
  *out = (NetGroup){1, {{MAX(size, 1), 1}}};
  if (groups < 1 || size < 2) return true;
  NetGroup g = {0};
  for (int block = 1; block < size;) {
    int64_t stride = ids[block] - ids[0];
    int n = 2;
    if (stride <= 0 || stride > INT32_MAX || g.n == NET_AXES || size % block) return false;
    while ((n + 1) * block <= size && ids[n * block] - ids[(n - 1) * block] == stride) n++;
    while (n > 1 && (size / block) % n) n--;
    if (n < 2) return false;
    for (int i = block; i < n * block; i++)
      if (ids[i] - ids[i - block] != stride) return false;
    g.axis[g.n++] = (NetAxis){n, (int)stride};
    block *= n;
  }
  *out = g;
  return true;
}

NetSpread net_spread(const Net *net, const NetGroup *g) {
  NetSpread s = {net_group_size(g, net->devices), 1, 1};
  int room = net->domain;
  if (!g->n) s.inside = MIN(s.members, room);
  for (int i = 0; i < g->n; i++) {
    int reach = room / MAX(1, g->axis[i].stride); /* members of this axis that one domain holds */
    s.inside *= MAX(1, MIN(g->axis[i].size, reach));
  }
  s.inside = MAX(1, MIN(s.inside, s.members));
  s.domains = (s.members + s.inside - 1) / s.inside;
  return s;
}

Err *net_open(const Chip *chip, int devices, const NetOpts *opts, Net *out) {
  static const NetOpts none = {0};
  if (devices < 1) return err_new(ERR_INVALID, "a network of %d devices", devices);
  if (!opts) opts = &none;
  *out = (Net){.chip = chip, .devices = devices, .domain = devices};
  return chip->kind == CHIP_GPU ? gpu_open(out, opts) : tpu_open(out, opts);
}

NetCost net_cost(const Net *net, const NetCall *call) {
  NetCost none = {.algorithm = "none", .protocol = ""};
  if (net_group_size(&call->group, net->devices) < 2 || !(call->bytes > 0)) return none;
  return net->chip->kind == CHIP_GPU ? gpu_cost_of(net, call) : tpu_cost_of(net, call);
}
