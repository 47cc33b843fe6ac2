/* Exchanges between TPUs: rings and lines along the axes of a torus, the data centre's network between
 * slices. Formulas: Austin et al., "How to Scale Your Model", chapters 2 and 3. */
#include <math.h>
#include <stdlib.h>

#include "net/net_priv.h"

static int by_length(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* The dimensions of one slice, those along which numbers count first at the end. */
static void lay_out(Net *net, const ChipSlice *s, bool meshed) {
  for (int k = NET_DIMS - 1; k >= 0; k--)
    if (s->dims[k] > 1) net->dims[net->n_dims++] = s->dims[k];
  if (meshed) qsort(net->dims, (size_t)net->n_dims, sizeof *net->dims, by_length);
  int least = (int)chip_num(net->chip, "ici_wrap", 16);
  for (int k = 0; k < net->n_dims; k++) net->wrap[k] = net->dims[k] >= least;
}

Err *tpu_open(Net *net, const NetOpts *opts) {
  const Chip *c = net->chip;
  if (opts->server)
    return err_new(ERR_INVALID, "%s: TPUs have slices, no servers of another kind", c->name);
  int each = c->devices_per_chip, chips = (net->devices + each - 1) / each;
  ChipSlice s = opts->slice;
  int slices = MAX(1, s.slices);
  if (!s.chips && net->devices % slices)
    return err_new(ERR_INVALID, "%d devices are no %d equal slices", net->devices, slices);
  if (!s.chips) s = chip_slice_of(c, (net->devices / slices + each - 1) / each);
  else if ((int64_t)s.chips * slices < chips)
    return err_new(ERR_INVALID, "slices of %d chips do not hold %d: there are %d", s.chips, chips,
                   slices);
  net->domain = s.chips * each;
  lay_out(net, &s, opts->meshed || !opts->slice.chips);
  NetRates *r = &net->rates;
  r->share = chip_num(c, "ici_efficiency", 0.82);
  r->link = chip_num(c, "ici_link", 50e9);
  r->hop_s = chip_num(c, "ici_hop", 1e-6);
  r->card = chip_num(c, "dcn", 3.125e9) / each;
  r->one_card = chip_num(c, "dcn", 3.125e9);
  r->chip_link = each > 1 ? chip_num(c, "chip_link", 2 * r->link) : 0;
  return NULL;
}

/* A part of a group along one dimension. */
typedef struct Along {
  int size, every; /* members, and positions from one to the next */
  bool ring;
} Along;

/* What the group covers of each dimension; [n_dims]: of the devices of a chip. Returns the members
 * that lie in other slices. */
static int cover(const Net *net, const NetGroup *g, Along *a) {
  int each = net->chip->devices_per_chip, far = 1;
  NetGroup whole = {1, {{net->devices, 1}}};
  if (!g->n) g = &whole;
  for (int k = 0; k <= net->n_dims; k++) a[k] = (Along){1, 1, false};
  for (int i = 0; i < g->n; i++) {
    int size = g->axis[i].size, stride = g->axis[i].stride, base = 1;
    for (int k = net->n_dims; k >= 0 && size > 1; k--) {
      int dim = k == net->n_dims ? each : net->dims[k], above = base * dim;
      if (stride < above) {
        int every = MAX(1, stride / base), n = MIN(size, MAX(1, dim / every));
        if (a[k].size > 1) every = MIN(every, a[k].every);
        a[k] = (Along){a[k].size * n, every, false};
        size = (size + n - 1) / n, stride = above;
      }
      base = above;
    }
    far *= size;
  }
  for (int k = 0; k < net->n_dims; k++)
    a[k].ring = net->wrap[k] && a[k].size * a[k].every >= net->dims[k] && a[k].size > 2;
  return far;
}

/* Seconds of a gathering of b bytes in all inside a slice. */
static double gather(const Net *net, const Along *a, double b, double *latency, double *sent) {
  const NetRates *r = &net->rates;
  double bw = 0, hops = 0, n = 1, s = 0;
  for (int k = 0; k < net->n_dims; k++) {
    n *= a[k].size;
    if (a[k].size < 2) continue;
    bw += (a[k].ring ? 2 : 1) * r->link / a[k].every;
    hops += a[k].ring ? a[k].size / 2.0 * a[k].every : (a[k].size - 1.0) * a[k].every;
  }
  double cores = a[net->n_dims].size;
  if (n > 1) s += b * (n - 1) / n / (bw * r->share), *sent += b * (n - 1) / n;
  if (cores > 1) s += b * (cores - 1) / cores / (r->chip_link * r->share), hops += 1;
  *latency += hops * r->hop_s * 1.5;
  return s + hops * r->hop_s * 1.5;
}

/* The fullest link decides: each dimension carries all bytes, a quarter of its length far. */
static double exchange(const Net *net, const Along *a, double b, double *latency, double *sent) {
  const NetRates *r = &net->rates;
  double worst = 0, hops = 0;
  for (int k = 0; k < net->n_dims; k++) {
    if (a[k].size < 2) continue;
    double x = a[k].size, apart = a[k].every;
    double t = a[k].ring ? b * x / 8 / r->link : x == 2 ? b / 2 / r->link : b * x / 4 / r->link;
    worst = MAX(worst, t * apart);
    hops += (a[k].ring ? x / 2 : x - 1) * apart;
    *sent += a[k].ring ? b * x / 4 : b * x / 3;
  }
  if (a[net->n_dims].size > 1) worst = MAX(worst, b / 2 / r->chip_link), hops += 1;
  *latency += hops * r->hop_s * 1.5;
  return worst / r->share + hops * r->hop_s * 1.5;
}

/* Between slices: each device has its share of the host's card. */
static double between(const Net *net, NetKind kind, double b, double far, double *latency,
                      double *sent) {
  double f = (far - 1) / far, bytes = kind == NET_ALL_REDUCE ? 2 * f * b : f * b;
  double lat = chip_num(net->chip, "dcn_latency", 50e-6) * (kind == NET_ALL_REDUCE ? 2 : 1);
  *latency += lat, *sent += bytes;
  return bytes / (net->rates.card * 0.9) + lat;
}

NetCost tpu_cost_of(const Net *net, const NetCall *call) {
  const NetRates *r = &net->rates;
  NetCost c = {.algorithm = "torus", .protocol = "", .energy_j = NAN};
  Along a[NET_DIMS + 1];
  int far = cover(net, &call->group, a), near = 1;
  for (int k = 0; k <= net->n_dims; k++) near *= a[k].size;
  double b = call->bytes, *lat = &c.latency_s, *in = &c.bytes[NET_INSIDE];
  double out = 0, *sent = &c.bytes[NET_BETWEEN];
  switch (call->kind) {
  case NET_ALL_REDUCE:
  case NET_BROADCAST: /* a scattering and a gathering */
    c.s = 2 * gather(net, a, b, lat, in), *lat *= 2, *in *= 2;
    if (far > 1) out = between(net, call->kind, b / near, far, lat, sent);
    break;
  case NET_ALL_GATHER:
  case NET_REDUCE_SCATTER:
    c.s = gather(net, a, b, lat, in);
    if (far > 1) out = between(net, call->kind, b / near, far, lat, sent);
    break;
  case NET_ALL_TO_ALL:
    c.s = exchange(net, a, b / far, lat, in);
    if (far > 1) out = between(net, call->kind, b, far, lat, sent);
    break;
  default:
    if (near < 2) out = b / (r->card * 0.9) + chip_num(net->chip, "dcn_latency", 50e-6), *sent = b;
    else c.s = b / (r->link * r->share) + r->hop_s, *lat = r->hop_s, *in = b;
  }
  c.s += out;
  return c;
}
