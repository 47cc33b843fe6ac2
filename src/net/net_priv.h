#ifndef WEFT_NET_NET_PRIV_H
#define WEFT_NET_NET_PRIV_H
#include "net/net.h"

/* How a group's members lie: so many in each of so many domains. */
typedef struct NetSpread {
  int members, inside, domains;
} NetSpread;
NetSpread net_spread(const Net *net, const NetGroup *g);

Err *gpu_open(Net *net, const NetOpts *opts);
NetCost gpu_cost_of(const Net *net, const NetCall *call);
Err *tpu_open(Net *net, const NetOpts *opts);
NetCost tpu_cost_of(const Net *net, const NetCall *call);

#endif
