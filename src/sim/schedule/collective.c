/* Collectives of a program, on the network of its devices (net/net.h). No compiler estimate exists:
 * results are marked as modelled. */
#include <stdlib.h>

#include "net/net.h"
#include "sim/schedule/compiler.h"
#include "ir/exchange.h"

/* What a node exchanges, and among how many. */
typedef struct Exchange {
  HNode *node;
  NetKind kind;
  NetGroup group;
  double bytes;
} Exchange;

static double result_bytes(const HNode *n) {
  if (n->n_results <= 1) return hlo_bytes(n);
  double sum = 0;
  for (int r = 0; r < n->n_results; r++) {
    double b = hlo_bits(n->res_dt[r]) / 8;
    for (int d = 0; d < n->res_rank[r]; d++) b *= (double)n->res_d[r][d];
    sum += b;
  }
  return sum;
}

/* The devices that members of a group run on, ascending, as the whole job has them. */
static int by_number(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static int64_t device_of(const SimOpts *o, int64_t member) {
  return o && o->ids && member >= 0 && member < o->devices ? o->ids[member] : member;
}

static void lies_in(const SimOpts *o, const int64_t *members, int n, NetGroup *out) {
  int64_t *at = xmalloc(sizeof *at * (size_t)n);
  for (int i = 0; i < n; i++) at[i] = device_of(o, members[i]);
  qsort(at, (size_t)n, sizeof *at, by_number);
  net_group_of(at, 1, n, out);
  free(at);
}

/* The group of one device, from the operation's list; those that are shorter are filled up with -1. */
static NetGroup group_of(const SimOpts *o, const HNode *n) {
  NetGroup g = {0};
  const int64_t *ids;
  const Attr *a = n->src ? op_attr(n->src, "replica_groups") : NULL;
  const Attr *config = n->src && op_is_ragged(n->src) ? op_attr(n->src, "backend_config") : NULL;
  if (config && config->kind == AT_DICT) a = attrs_get(config->dict, config->n, "replica_groups");
  if (!a || a->kind != AT_TENSOR || !a->tensor || a->tensor->rank != 2) return g;
  if (a->tensor->splat || a->dtype != DT_I64) return g;
  ids = a->tensor->data;
  int have = (int)a->tensor->count, size = 0, columns = (int)a->tensor->dims[1];
  while (size < MIN(have, columns) && ids[size] >= 0) size++;
  if (size) lies_in(o, ids, size, &g);
  return g;
}

/* A permutation as its slowest pair has it: between domains (a server's GPUs, a slice's TPUs), where several
 * may share the network cards; or inside one, as far as the first pair. */
static void pairs_of(const SimOpts *o, const HNode *n, int domain, NetCall *call) {
  const int64_t *ids;
  int have = n->src ? op_ints(n->src, "source_target_pairs", &ids) : 0;
  int64_t near = 1, far = 0, last = -1;
  call->kind = NET_PERMUTE;
  for (int i = 0; i + 1 < have; i += 2) {
    int64_t from = device_of(o, ids[i]), to = device_of(o, ids[i + 1]);
    if (!i) near = MAX(llabs(to - from), 1);
    if (from / domain == to / domain) continue;
    if (!far) call->kind = NET_SEND;
    if (far && from / domain == last) call->kind = NET_PERMUTE;
    far = MAX(far, MAX(llabs(to - from), domain));
    last = from / domain;
  }
  call->group = (NetGroup){1, {{2, (int)MIN(far ? far : near, 1 << 24)}}};
}

/* False: nothing crosses the network. */
static bool exchange_of(const SimOpts *o, const HNode *n, Exchange *x) {
  double in = 0;
  for (int i = 0; i < n->n_in; i++) in += hlo_bytes(n->in[i]);
  *x = (Exchange){
      .kind = NET_ALL_REDUCE, .bytes = MAX(in, result_bytes(n)), .group = group_of(o, n)};
  if (n->src && op_is_ragged(n->src)) x->bytes = hlo_bytes(n->in[0]); /* of the rest only numbers */
  switch (n->op) {
  case OP_ALL_GATHER: x->kind = NET_ALL_GATHER; return true;
  case OP_REDUCE_SCATTER: x->kind = NET_REDUCE_SCATTER; return true;
  case OP_ALL_TO_ALL: x->kind = NET_ALL_TO_ALL; return true;
  case OP_COLLECTIVE_BROADCAST: x->kind = NET_BROADCAST; return true;
  case OP_COLLECTIVE_PERMUTE:
  case OP_SEND:
  case OP_RECV: x->kind = NET_PERMUTE; return true;
  case OP_ALL_REDUCE:
  case OP_CROSS_REPLICA_SUM:
  case OP_COLLECTIVE_REDUCE: return true;
  default: return false;
  }
}

/* ---- XLA's combiners: exchanges of one kind that do not wait for each other, as the gradients of all
 * parameters, travel as one, from the last in the program to the first until it is too much for one
 * (libtpu's dumps: of three sums it joins the last two). ---- */

static OpKind sums_by(const HNode *n) {
  const Op *op = n->src;
  return op && op->n_regions && op->regions[0]->first ? op->regions[0]->first->kind : OP_UNKNOWN;
}

/* As it is stored. */
static DType sent_as(const HNode *n) { return n->val && n->val->rounded ? DT_BF16 : n->dt; }

static bool combines(const Exchange *x, const Exchange *y) {
  return x->kind == y->kind && !memcmp(&x->group, &y->group, sizeof x->group) &&
         sent_as(x->node) == sent_as(y->node) && x->node->op == y->node->op &&
         sums_by(x->node) == sums_by(y->node) && x->kind != NET_PERMUTE &&
         x->kind != NET_ALL_TO_ALL;
}

typedef struct Company {
  const SimOpts *opts;
  VEC(HNode *) order; /* of the computation, inputs first */
  unsigned char
      *at; /* by node id: seen, in the order; then: waits for one of the company, is one */
  double most;
} Company;

enum { SEEN = 1, LISTED = 2, NEEDED = 4 };

static void inputs_first(Company *c, HNode *from) {
  VEC(HNode *) stack = {0};
  *vec_push(&stack) = from;
  while (stack.n) {
    HNode *n = stack.v[stack.n - 1];
    unsigned char *at = &c->at[n->id];
    if (*at & SEEN) {
      stack.n--;
      if (!(*at & LISTED)) *vec_push(&c->order) = n;
      *at |= LISTED;
      continue;
    }
    *at |= SEEN;
    for (int k = n->n_in - 1; k >= 0; k--)
      if (!(c->at[n->in[k]->id] & SEEN) && n->in[k]->comp == n->comp) *vec_push(&stack) = n->in[k];
  }
  vec_free(&stack);
}

static void need_inputs(const Company *c, const HNode *n) {
  for (int k = 0; k < n->n_in; k++) c->at[n->in[k]->id] |= NEEDED;
}

/* All that travel with the exchange at this place of the order. */
static void find_company(Company *c, int last) {
  Exchange own, x;
  if (!exchange_of(c->opts, c->order.v[last], &own)) return;
  own.node = c->order.v[last];
  double sum = 0;
  VEC(HNode *) with = {0};
  for (int i = 0; i < c->order.n; i++) c->at[c->order.v[i]->id] &= SEEN | LISTED;
  for (int i = last; i >= 0; i--) {
    HNode *n = c->order.v[i];
    if (c->at[n->id] & NEEDED) {
      need_inputs(c, n);
      continue;
    }
    if (n->kind != H_COLL || n->dead || n->company || !exchange_of(c->opts, n, &x)) continue;
    x.node = n;
    if (!combines(&own, &x) || (with.n && sum + x.bytes > c->most)) continue;
    need_inputs(c, n);
    sum += x.bytes;
    *vec_push(&with) = n;
  }
  for (int i = 0; i < with.n; i++) {
    with.v[i]->together = sum;
    with.v[i]->company = 1 + own.node->id;
  }
  vec_free(&with);
}

void collective_combine(const Schedule *p, const HComp *c) {
  Company all = {.opts = p->opts, .most = p->compiler->combines_to};
  bool any = false;
  for (int i = 0; i < c->nodes.n; i++)
    any |= c->nodes.v[i]->kind == H_COLL && !c->nodes.v[i]->dead && !c->nodes.v[i]->company;
  if (!any) return;
  all.at = xcalloc((size_t)p->g->n_nodes + 1, 1);
  for (int i = 0; i < c->nodes.n; i++) inputs_first(&all, c->nodes.v[i]);
  for (int i = all.order.n - 1; i >= 0; i--) {
    const HNode *n = all.order.v[i];
    if (n->kind == H_COLL && !n->dead && !n->company) find_company(&all, i);
  }
  free(all.at);
  vec_free(&all.order);
}

static NetOpts lie_of(const SimOpts *o, int devices) {
  const ChipRef *w = o ? o->where : NULL;
  if (!w) return (NetOpts){0};
  if (w->devices < devices) return (NetOpts){.server = w->server};
  return (NetOpts){.server = w->server, .slice = w->slice, .meshed = !o->ids};
}

/* Each has its share of the time that all of its company take. */
double collective_time(const Schedule *p, const Kernel *k, const HNode *n) {
  (void)k;
  Exchange x;
  if (n->op == OP_INFEED || n->op == OP_OUTFEED) {
    exchange_of(p->opts, n, &x);
    return x.bytes / chip_num(p->chip, "pcie", 16e9);
  }
  if (!exchange_of(p->opts, n, &x) || x.bytes <= 0) return 0;
  if (n->together == 0) collective_combine(p, n->comp);
  double all = MAX(n->together, x.bytes);
  int devices = p->opts && p->opts->devices > 0 ? p->opts->devices : 1;
  if (x.group.n) devices = MAX(devices, net_group_size(&x.group, 0));
  Net net;
  NetOpts lie = lie_of(p->opts, devices);
  Err *e = net_open(p->chip, devices, &lie, &net);
  if (e) return err_free(e), 0; /* only options can be wrong */
  NetCall call = {x.kind, all, n->dt, x.group};
  if (x.kind == NET_PERMUTE) pairs_of(p->opts, n, net.domain, &call);
  return net_cost(&net, &call).s * x.bytes / all;
}
