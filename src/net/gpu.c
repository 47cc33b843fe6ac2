/* Exchanges between GPUs, as NCCL and RCCL run them. */
#include <math.h>

#include "net/net_priv.h"

Err *gpu_open(Net *net, const NetOpts *opts) {
  if (opts->topology || opts->slices > 1)
    return err_new(ERR_INVALID, "%s: GPUs have servers, no topology of slices", net->chip->name);
  const Server *s = chip_server(net->chip);
  if (opts->server) TRY(server_find(opts->server, &s));
  if (s && opts->server && s->chip != net->chip)
    return err_new(ERR_INVALID, "%s holds %s, not %s", s->name, s->chip->name, net->chip->name);
  net->server = s;
  net->domain = opts->domain > 0 ? opts->domain : s ? s->gpus : 8;
  NetRates *r = &net->rates;
  r->link = s ? server_num(s, "link", 0) : chip_num(net->chip, "nvlink", 0);
  if (r->link <= 0) r->link = chip_num(net->chip, "pcie", 16e9);
  r->one_card = s ? server_num(s, "nic", 0) : 12.5e9;
  r->card = s ? r->one_card * server_num(s, "nics", 0) / s->gpus : r->one_card / 8;
  r->switches = s && server_num(s, "nvls", 0) > 0;
  const char *fabric = s ? server_text(s, "fabric") : NULL;
  r->mesh = fabric && !strcmp(fabric, "mesh");
  r->share = s ? server_num(s, "fit.share", 0.82) : 0.82;
  return NULL;
}

NetCost gpu_cost_of(const Net *net, const NetCall *call) {
  const NetRates *r = &net->rates;
  NetSpread sp = net_spread(net, &call->group);
  double n = sp.members, m = sp.inside, d = sp.domains, f = (n - 1) / n, b = call->bytes;
  NetCost c = {.algorithm = "ring", .protocol = "Simple", .energy_j = NAN, .sms = 16};
  double step = d > 1 ? 6e-6 : 2e-6, lat = 2 * step * log2(n), inside = 0, between = 0;
  switch (call->kind) {
  case NET_ALL_REDUCE:
    inside = m > 1 ? 2 * f * b : 0, between = d > 1 ? (d > 2 ? 2 * f : 1) * b / m : 0;
    if (d == 2) c.algorithm = "tree";
    break;
  case NET_ALL_GATHER:
  case NET_REDUCE_SCATTER: inside = m > 1 ? f * b : 0, between = d > 1 ? f * b / m : 0; break;
  case NET_ALL_TO_ALL: inside = (m - 1) / n * b, between = (n - m) / n * b; break;
  case NET_BROADCAST: inside = m > 1 ? b : 0, between = d > 1 ? b / m : 0, lat /= 2; break;
  default:
    c.algorithm = "pairs", lat = step;
    if (m > 1) inside = b;
    else between = b;
  }
  double card = call->kind == NET_SEND ? r->one_card : r->card, half = 230e-6;
  double bw = r->link * r->share, t_in = inside / bw;
  half = MIN(half, sqrt(1.5 * half * b / bw)) * (inside > 0 ? inside / b : 0);
  double t_out =
      between > 0 ? between / (card * 0.85) + MIN(50e-6, sqrt(75e-6 * between / card)) : 0;
  c.s = MAX(t_in + half, t_out) + lat;
  c.latency_s = lat;
  c.bytes[NET_INSIDE] = inside, c.bytes[NET_BETWEEN] = between;
  return c;
}
