/* Exchanges between GPUs, as NCCL (and RCCL) run them: rings, trees and NVLS inside a server, rings and
 * trees of servers, each in the protocols LL, LL128 and Simple; of all that are possible the fastest.
 * NCCL decides by a table of its own that is meant to find the same.
 *
 *   LL      8 bytes with a flag in each: no waiting for memory, at half of the rate or less
 *   LL128   120 of 128 bytes: NVLink keeps their order
 *   Simple  large chunks between fences: slow to start, all of the bandwidth
 *
 * Formulas: NCCL, src/graph/tuning.cc (BSD; read for the steps each algorithm takes and for latencies
 * between servers); the coefficients are data/servers' (tools/fit_net.py). */
#include <math.h>
#include <stdio.h>

#include "net/net_priv.h"

static const char *const proto_names[NET_PROTOS] = {"LL", "LL128", "Simple"};

static double fact(const Server *s, const char *algorithm, const char *proto, const char *what,
                   double dflt) {
  char key[64];
  snprintf(key, sizeof key, "fit.%s_%s%s%s", algorithm, proto, *proto ? "_" : "", what);
  return s ? server_num(s, key, dflt) : dflt;
}

/* Without fitted facts: starts and hops of an H100's server, shares of the link's rate. */
static NetProto proto(const Server *s, const char *algorithm, const char *name, double link,
                      double start_us, double hop_us, double share) {
  NetProto p;
  p.start_s = fact(s, algorithm, name, "start", start_us * 1e-6);
  p.hop_s = fact(s, algorithm, name, "hop", hop_us * 1e-6);
  p.link = fact(s, algorithm, name, "link", share * link);
  p.copy = fact(s, algorithm, name, "copy", 2.5 * share * link);
  p.sum = fact(s, algorithm, name, "sum", p.copy);
  p.ramp_s = fact(s, algorithm, name, "ramp", 0);
  return p;
}

static void scale(NetProto *p, double k) { p->link *= k, p->copy *= k, p->sum *= k; }

static void resolve(NetRates *r, const Server *s) {
  double k = r->link;
  r->ring[NET_LL] = proto(s, "ring", "ll", k, 4.5, 0.8, 0.05);
  r->ring[NET_LL128] = proto(s, "ring", "ll128", k, 5, 0.95, 0.45);
  r->ring[NET_SIMPLE] = proto(s, "ring", "simple", k, 12, 0.85, 0.82);
  r->pairs[NET_LL] = proto(s, "pairs", "ll", k, 6.3, 0.15, 0.05);
  r->pairs[NET_LL128] = proto(s, "pairs", "ll128", k, 8, 0.15, 0.4);
  r->pairs[NET_SIMPLE] = proto(s, "pairs", "simple", k, 8, 0.4, 0.8);
  r->nvls = proto(s, "nvls", "", k, 20, 0, 0.6);
  double of_like = s ? server_num(s, "fit.of_like", 1) : 1; /* fewer or faster links, same fabric */
  for (int i = 0; i < NET_PROTOS; i++) scale(&r->ring[i], of_like), scale(&r->pairs[i], of_like);
  scale(&r->nvls, of_like);
  r->channels = s ? server_num(s, "channels", 16) : 16;
  r->ramp_limit = s ? server_num(s, "fit.ramp_limit", 200e6) : 200e6;
  static const char *const crossed[] = {"fit.crossed2", "fit.crossed4", "fit.crossed8"};
  static const double hop[] = {2.7e-6, 4e-6, 14e-6}, tree[] = {5e-6, 8.5e-6, 14e-6};
  static const double share[] = {0.4, 0.8, 0.92};
  static const char *const names[] = {"ll", "ll128", "simple"};
  for (int i = 0; i < NET_PROTOS; i++) {
    r->crossed[i] = s ? server_num(s, crossed[i], 1) : 1;
    r->net_hop_s[i] = fact(s, "net", names[i], "hop", hop[i]);
    r->net_tree_s[i] = fact(s, "net", names[i], "tree", tree[i]);
    r->net_share[i] = fact(s, "net", names[i], "share", share[i]);
  }
  r->net_tree_share = s ? server_num(s, "fit.net_tree_share", 0.9) : 0.9;
  r->net_nvls_share = s ? server_num(s, "fit.net_nvls_share", 0.93) : 0.93;
  r->net_ramp_s = s ? server_num(s, "fit.net_ramp", 0) : 0;
  r->net_peer_s = s ? server_num(s, "fit.net_peer", 0.7e-6) : 0.7e-6;
}

Err *gpu_open(Net *net, const NetOpts *opts) {
  const Server *s = opts->server ? opts->server : chip_server(net->chip);
  if (s && s->chip != net->chip)
    return err_new(ERR_INVALID, "%s holds %s, not %s", s->name, s->chip->name, net->chip->name);
  net->server = s;
  net->domain = opts->domain > 0 ? opts->domain : s ? s->gpus : 8;
  NetRates *r = &net->rates;
  r->link = s ? server_num(s, "link", 0) : chip_num(net->chip, "nvlink", 0);
  if (r->link <= 0) r->link = chip_num(net->chip, "pcie", 16e9);
  r->one_card = s ? server_num(s, "nic", 0) : 12.5e9;
  r->card = s ? r->one_card * server_num(s, "nics", 0) / s->gpus : r->one_card / 8;
  if (r->card <= 0) r->card = r->one_card = 1.25e9; /* any machine's Ethernet, 10 Gbit/s */
  r->hosts = s ? (int)server_num(s, "host_gpus", s->gpus) : 8;
  r->switches = s && server_num(s, "nvls", 0) > 0;
  resolve(r, s);
  return NULL;
}

/* ---- one algorithm in one protocol ------------------------------------------------------------ */

typedef struct Work {
  const NetRates *r;
  double n, m, d; /* members; in a server; servers */
  double bytes;   /* of the call */
  double inside;  /* bytes that one device sends over the fabric */
  double own;     /* its own share of the array */
  double between; /* bytes that it sends over its card */
  bool sums;
} Work;

static double ramp(const NetRates *r, const NetProto *p, double bytes) {
  return p->ramp_s * sqrt(MIN(bytes, r->ramp_limit) * 1e-6);
}

static double fabric_s(const Work *w, const NetProto *p) {
  const NetRates *r = w->r;
  double crossed = r->crossed[w->m > 4 ? 2 : w->m > 2 ? 1 : 0];
  return w->inside / (p->link * crossed) + w->own / (w->sums ? p->sum : p->copy);
}

/* Keeps the faster. */
static void offer(NetCost *best, const Work *w, double latency, double rest, const char *algorithm,
                  const char *protocol) {
  if (best->algorithm && latency + rest >= best->s) return;
  *best = (NetCost){.s = latency + rest,
                    .latency_s = latency,
                    .bytes = {w->inside, w->between},
                    .energy_j = NAN,
                    .algorithm = algorithm,
                    .protocol = protocol};
}

static double cards_s(const Work *w, int protocol) {
  const NetRates *r = w->r;
  if (w->between <= 0) return 0;
  double fill =
      protocol == NET_SIMPLE ? r->net_ramp_s * sqrt(MIN(w->bytes, r->ramp_limit) * 1e-6) : 0;
  return w->between / (r->card * r->net_share[protocol]) + fill;
}

/* `steps` hops, `far` of them between servers. */
static void rings(const Work *w, double steps, double far, NetCost *best) {
  const NetRates *r = w->r;
  for (int q = 0; q < NET_PROTOS; q++) {
    const NetProto *p = &r->ring[q];
    double latency = p->start_s + (steps - far) * p->hop_s + far * r->net_hop_s[q];
    double rest = MAX(fabric_s(w, p), cards_s(w, q)) + ramp(r, p, w->bytes);
    offer(best, w, latency, rest, "ring", proto_names[q]);
  }
}

/* A chain in each server, two binary trees of servers, each for half of the data, up and down: in
 * trees of more than two a server sends as much as in a ring, of two just once. */
static void trees(const Work *w, NetCost *best) {
  const NetRates *r = w->r;
  Work t = *w;
  t.inside = w->m > 1 ? 2 * w->bytes : 0;
  t.between = (w->d > 2 ? 2 : 1) * w->bytes / w->m;
  for (int q = 0; q < NET_PROTOS; q++) {
    const NetProto *p = &r->ring[q];
    double steps = (w->m - 1) * p->hop_s + ceil(log2(w->d)) * r->net_tree_s[q];
    double rest = MAX(fabric_s(&t, p), cards_s(&t, q)) / r->net_tree_share + ramp(r, p, w->bytes);
    offer(best, &t, p->start_s + 2 * steps, rest, "tree", proto_names[q]);
  }
}

/* The switches add up what all send and copy the sum to all; between servers a tree. */
static void switched(const Work *w, NetCost *best) {
  const NetRates *r = w->r;
  const NetProto *p = &r->nvls;
  Work t = *w;
  t.inside = w->bytes * (1 + 1 / w->m);
  t.between = w->d > 1 ? (w->d > 2 ? 2 : 1) * w->bytes / w->m : 0;
  double far = w->d > 1 ? 2 * ceil(log2(w->d)) * r->net_tree_s[NET_SIMPLE] : 0;
  double rate = p->link * (w->d > 1 ? r->net_nvls_share : 1);
  double rest = MAX(w->bytes / rate, cards_s(&t, NET_SIMPLE)) + ramp(r, p, w->bytes);
  offer(best, &t, p->start_s + far, rest, w->d > 1 ? "NVLS tree" : "NVLS", "Simple");
}

/* Everybody with everybody at once. */
static void pairs(const Work *w, double peers, double far, NetCost *best) {
  const NetRates *r = w->r;
  for (int q = 0; q < NET_PROTOS; q++) {
    const NetProto *p = &r->pairs[q];
    double latency = p->start_s + peers * p->hop_s + far * r->net_peer_s;
    if (w->between > 0) latency += r->net_hop_s[q];
    double rest = MAX(fabric_s(w, p), cards_s(w, q)) + ramp(r, p, w->bytes);
    offer(best, w, latency, rest, "pairs", proto_names[q]);
  }
}

static bool summable(DType t) { return dtype_bits(t) > 8; }

static void reduce(Work *w, const NetCall *call, NetCost *best) {
  double f = (w->n - 1) / w->n;
  bool all = call->kind == NET_ALL_REDUCE;
  w->inside = w->m > 1 ? (all ? 2 : 1) * f * w->bytes : 0;
  w->between = w->d > 1 ? (all ? 2 : 1) * f * w->bytes / w->m : 0;
  w->own = w->bytes / w->n;
  w->sums = call->kind != NET_ALL_GATHER;
  double steps = w->n - 1, far = w->d > 1 ? w->d - 1 : 0;
  rings(w, all ? 2 * steps : steps, all && far > 0 ? 2 * w->d : far, best);
  if (!all) return;
  if (w->d > 1) trees(w, best);
  if (w->r->switches && summable(call->type) && (w->m > 4 || (w->d > 1 && w->m > 2)))
    switched(w, best);
}

/* One device sends to one other. */
static void send(Work *w, const NetCall *call, NetCost *best) {
  bool near = w->m > 1; /* the next member is in the same server, of one group at least */
  NetRates alone = *w->r;
  if (call->kind == NET_SEND) alone.card = alone.one_card;
  if (near && w->d < 2) w->inside = w->bytes;
  else w->between = w->bytes;
  w->r = &alone;
  w->m = 2;
  pairs(w, 1, 0, best);
}

NetCost gpu_cost_of(const Net *net, const NetCall *call) {
  NetSpread sp = net_spread(net, &call->group);
  NetCost c = {0};
  Work w = {&net->rates, sp.members, sp.inside, sp.domains, call->bytes, 0, 0, 0, false};
  switch (call->kind) {
  case NET_ALL_REDUCE:
  case NET_ALL_GATHER:
  case NET_REDUCE_SCATTER: reduce(&w, call, &c); break;
  case NET_ALL_TO_ALL:
    w.inside = (w.m - 1) / w.n * w.bytes, w.between = (w.n - w.m) / w.n * w.bytes;
    w.own = w.bytes / w.n;
    pairs(&w, w.m - 1, w.n - w.m, &c);
    break;
  case NET_BROADCAST:
    w.inside = w.m > 1 ? w.bytes : 0, w.between = w.d > 1 ? w.bytes / w.m : 0;
    rings(&w, w.n - 1, w.d - 1, &c);
    break;
  default: send(&w, call, &c);
  }
  c.sms = net->rates.channels * MIN(1, MAX(1 / net->rates.channels, call->bytes / 4e6));
  return c;
}
