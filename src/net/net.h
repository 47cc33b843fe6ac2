/* net: what an exchange between devices costs, from the chip's links, its server and its cluster.
 *
 *   Net net;
 *   Err *e = net_open(chip, 512, NULL, &net);            // 512 H100 in the servers that hold them
 *   NetCall call = {NET_ALL_REDUCE, bytes, DT_BF16, {1, {{64, 8}}}};   // every eighth of the 512
 *   NetCost cost = net_cost(&net, &call);                // cost.s, cost.algorithm, ...
 *
 * Devices have numbers from 0, those of a server (or of a rack with one fabric) side by side; on a
 * TPU they count along the torus, the last dimension fastest, slice after slice. An exchange is told
 * by the group of one member, as sizes and strides; all devices of the job do the same at once, each
 * in its own group, and groups that share cards or links share their bandwidth.
 *
 *   tensor parallel inside a server       {1, {{8, 1}}}
 *   data parallel across servers          {1, {{64, 8}}}       every eighth device
 *   sharded over data and context ways    {2, {{2, 8}, {16, 32}}}
 *   all devices                           {0}
 *
 * Bytes are counted as NCCL and XLA do it, on one device: of the whole reduced array (all-reduce), of
 * the whole that is gathered (all-gather) or scattered (reduce-scatter), of what a device holds
 * before it is dealt out (all-to-all), of what one device sends (permute, send, broadcast).
 *
 * How     GPUs: NCCL's ring, tree and NVLS in the protocols LL, LL128 and Simple, whichever is said to
 *         be fastest, hierarchical between servers (gpu.c). TPUs: rings and lines along the torus'
 *         axes, the data centre's network between slices (tpu.c). Rates, latencies and fitted
 *         coefficients are facts of data/servers and data/chips, each with its source.
 * Threads any; net_cost only reads. A Net is a value: copy it, change `domain`, drop it. It borrows
 *         the chip and the server, which live for ever. net_cost takes well below a microsecond.
 */
#ifndef WEFT_NET_NET_H
#define WEFT_NET_NET_H

#include "chip/chip.h"

typedef enum NetKind {
  NET_ALL_REDUCE,
  NET_ALL_GATHER,
  NET_REDUCE_SCATTER,
  NET_ALL_TO_ALL,
  NET_PERMUTE,   /* each member sends to the next one of its group, all at once: pipeline stages */
  NET_SEND,      /* one pair of neighbours of the group; nothing else is on the way */
  NET_BROADCAST, /* one member's bytes to all others */
  NET_KINDS
} NetKind;
const char *net_kind_name(NetKind k); /* "all-reduce", "collective-permute", ... */

enum { NET_AXES = 4, NET_DIMS = 3 };
typedef struct NetAxis {
  int size, stride; /* members, and device numbers from one to the next */
} NetAxis;
typedef struct NetGroup {
  int n; /* axes, the one with the smallest stride first; 0: all devices of the Net */
  NetAxis axis[NET_AXES];
} NetGroup;
int net_group_size(const NetGroup *g, int devices); /* members */
/* From groups as replica_groups lists them: `groups` rows of `size` device numbers. The first row
 * stands for all. False: it is no grid of strides; *out is then `size` devices side by side. */
bool net_group_of(const int64_t *ids, int groups, int size, NetGroup *out);

/* Classes of links that bytes go over. */
typedef enum NetLink {
  NET_INSIDE,  /* NVLink, xGMI or PCIe of a server or rack; ICI of a slice */
  NET_BETWEEN, /* network cards between servers, the data centre's network between slices */
  NET_LINKS
} NetLink;

typedef struct NetCall {
  NetKind kind;
  double bytes; /* see above */
  DType type;   /* of the elements: switches do not add up 8-bit numbers */
  NetGroup group;
} NetCall;

typedef struct NetCost {
  double s;                /* from all members' arrival to the last result */
  double latency_s;        /* of it, what is left when no byte is sent */
  double bytes[NET_LINKS]; /* that one device sends over links of that class */
  double sms;              /* of a GPU's SMs that the exchange's kernel holds meanwhile */
  double energy_j;         /* of the links, all members of one group; NaN: not known */
  const char *algorithm;   /* "ring", "tree", "NVLS", "pairs", "torus", ... */
  const char *protocol;    /* "LL", "LL128", "Simple"; "" where there are none */
} NetCost;

/* One of NCCL's protocols on one fabric. A run takes
 *   start_s + steps * hop_s + moved / link + own / copy + ramp_s * sqrt(bytes / 1 MB)
 * where each of the steps passes data on once, `moved` is what a device sends, and `own` its own share
 * of the array, which its SMs copy or (in a reduction) add up. The last term is the pipeline's filling:
 * chunks grow with the size, up to `ramp_limit` bytes. */
typedef struct NetProto {
  double start_s, hop_s, link, copy, sum, ramp_s;
} NetProto;
enum { NET_LL, NET_LL128, NET_SIMPLE, NET_PROTOS };

/* Facts of a server's fabric and cards, resolved once by net_open; data/servers has them with their
 * sources, tools/fit_net.py fits those that are called fit.*. For src/net. */
typedef struct NetRates {
  double link;     /* bytes/s of one device into the fabric, one way */
  double card;     /* of its share of the server's network cards, one way; 0: it has none */
  double one_card; /* of one card */
  int hosts;       /* devices of one host, where a fabric joins several */
  bool switches;   /* that add up and copy (NVLS) */
  double channels; /* rings side by side; each holds an SM */
  double ramp_limit;
  NetProto ring[NET_PROTOS], pairs[NET_PROTOS],
      nvls;          /* inside a server; pairs: all-to-all, sends */
  double crossed[3]; /* PCIe: share of the rate that rings of 2, 3 to 4, more devices reach */
  double net_hop_s[NET_PROTOS], net_tree_s[NET_PROTOS]; /* of one step between servers */
  double net_share[NET_PROTOS];                         /* of the cards' rate that they reach */
  double net_tree_share, net_peer_s; /* trees', of it; each peer of an all-to-all */
  double net_nvls_share;             /* of NVLS's rate, with trees of servers behind it */
  double net_ramp_s;                 /* as ramp_s, of chunks on the way between servers */
  /* TPUs */
  double hop_s;     /* of one link */
  double share;     /* of `link` that large exchanges reach */
  double chip_link; /* between the devices of one chip; 0: one device a chip */
} NetRates;

typedef struct Net {
  const Chip *chip;
  const Server *server; /* NULL: a TPU, or a GPU of no known server */
  int devices;          /* of the job */
  int domain;           /* devices that share the fast fabric: a server's, a rack's, a slice's */
  /* TPUs: chips of one slice along each dimension */
  int n_dims, dims[NET_DIMS];
  bool wrap[NET_DIMS]; /* the dimension's ends are linked */
  NetRates rates;
} Net;

typedef struct NetOpts {
  const Server *server; /* GPUs; NULL: the chip's own */
  ChipSlice
      slice;   /* TPUs, as chip_parse finds it; of 0 chips: the fullest boxes, `slices` of them */
  bool meshed; /* numbers are of a mesh, whose maker gives the longest axis to the innermost; else
                           they are the devices' own, which count along x first. The fullest boxes are meshed */
  int domain;  /* GPUs of each rack that the job uses, 64 of an NVL72; 0: all */
} NetOpts;

/* opts may be NULL. A slice may have more devices than the job. errors ERR_INVALID a server of another
 * chip, slices that do not hold the devices. */
Err *net_open(const Chip *chip, int devices, const NetOpts *opts, Net *out);

/* Groups of one member cost nothing. A group that reaches beyond the Net's devices is taken as if
 * there were as many. */
NetCost net_cost(const Net *net, const NetCall *call);

#endif
