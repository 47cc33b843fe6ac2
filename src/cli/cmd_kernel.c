/* weft kernel: what one exchange or product takes on a chip, without a program. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "chip/slice.h"
#include "cli/cli.h"
#include "net/net.h"
#include "sim/sim.h"

static const char usage[] =
    "usage: weft kernel CHIP:N[@SERVER] EXCHANGE BYTES [TYPE] [options]\n"
    "       weft kernel CHIP product MxNxK[xBATCH] [TYPE]\n"
    "       weft kernel -             such lines from standard input, one time in us for each\n"
    "\n"
    "What one exchange between N devices takes, and how it is done; what one kernel takes that\n"
    "multiplies matrices, A[M,K] B[K,N], by the vendor's library.\n"
    "\n"
    "  EXCHANGE  all-reduce, all-gather, reduce-scatter, all-to-all, collective-permute, send,\n"
    "            broadcast\n"
    "  BYTES     on one device: of what is reduced, of the whole that is gathered or scattered, "
    "of\n"
    "            what is dealt out or sent: 65536, 64KiB, 1GiB\n"
    "  TYPE      of the elements (bf16); of a product's operands, its result has 16 bits\n"
    "  SERVER    the machine that holds the GPUs: a3-mega, p5.48xlarge (the chip's own)\n"
    "\n"
    "  --group SIZE:STRIDE[,...]  devices of one exchange, all others in groups of that form at "
    "the\n"
    "                  same time: 8:1 those of a server, 64:8 every eighth (all devices)\n"
    "  --topology AxBxC, --slices N   of a TPU\n"
    "  --help          this text\n";

/* 64KiB, 1e9, 1.5GB. */
static bool size_of(const char *s, double *out) {
  static const struct {
    const char *name;
    double scale;
  } units[] = {{"", 1},          {"B", 1},    {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824},
               {"KB", 1e3},      {"MB", 1e6}, {"GB", 1e9},   {"K", 1024},      {"M", 1048576},
               {"G", 1073741824}};
  char *end;
  *out = strtod(s, &end);
  for (int i = 0; i < COUNT_OF(units) && end != s; i++)
    if (!strcmp(end, units[i].name)) {
      *out *= units[i].scale;
      return *out > 0 && isfinite(*out);
    }
  return false;
}

static bool group_of(const char *s, NetGroup *g) {
  *g = (NetGroup){0};
  for (int used = 0; *s && g->n < NET_AXES; s += used + (s[used] == ',')) {
    NetAxis *a = &g->axis[g->n];
    if (sscanf(s, "%d:%d%n", &a->size, &a->stride, &used) != 2 || a->size < 1 || a->stride < 1)
      return false;
    g->n++;
  }
  return !*s && g->n > 0;
}

typedef struct Question {
  ChipRef ref;
  bool product;
  double m, n, k, batch;
  const char *topology;
  int slices;
  NetOpts opts;
  NetCall call;
} Question;

static Err *read_product(const char *text, Question *q) {
  q->product = true;
  q->batch = 1;
  int used = 0, n = sscanf(text, "%lfx%lfx%lf%n", &q->m, &q->n, &q->k, &used);
  if (n == 3 && text[used] == 'x') n = sscanf(text + used, "x%lf%n", &q->batch, &used) + 2;
  if (n < 3 || !(q->m >= 1 && q->n >= 1 && q->k >= 1 && q->batch >= 1))
    return err_new(ERR_INVALID, "'%s' are no sides of a product: 4096x4096x8192", text);
  return NULL;
}

/* As the chip's name has it, or as --topology and --slices say. */
static Err *lie_of(Question *q) {
  const ChipRef *r = &q->ref;
  if (!q->opts.server) q->opts.server = r->server;
  if (r->chip->kind != CHIP_TPU) {
    if (q->topology || q->slices)
      return err_new(ERR_INVALID, "%s: GPUs have servers, no topology of slices", r->chip->name);
    return NULL;
  }
  ChipSlice *s = &q->opts.slice;
  if (r->chips) *s = r->slice;
  if (q->slices) *s = (ChipSlice){.slices = q->slices};
  if (q->topology && (!slice_box(q->topology, s->dims, &s->chips) || !s->chips))
    return err_hint(err_new(ERR_INVALID, "'%s' is no topology", q->topology),
                    "write it as 4x4x8, chips along each axis");
  s->slices = MAX(1, s->slices);
  if (q->topology && s->chips * s->slices != r->chips)
    return err_new(ERR_INVALID, "%d slice%s of %s %s %d chips, not %d", s->slices,
                   s->slices > 1 ? "s" : "", q->topology, s->slices > 1 ? "have" : "has",
                   s->chips * s->slices, r->chips);
  q->opts.meshed = !q->topology;
  return NULL;
}

/* words: CHIP EXCHANGE BYTES [TYPE] */
static Err *read_question(char **words, int n, Question *q) {
  if (n < 3 || n > 4) return err_new(ERR_INVALID, "expected CHIP:N EXCHANGE BYTES [TYPE]");
  TRY(chip_parse(words[0], &q->ref));
  q->opts.server = q->ref.server;
  TRY(lie_of(q));
  q->call.type = n > 3 ? dtype_from_name(str_from(words[3])) : DT_BF16;
  if (q->call.type == DT_INVALID) return err_new(ERR_INVALID, "there is no type '%s'", words[3]);
  if (!strcmp(words[1], "product")) return read_product(words[2], q);
  Nearest near = {.want = str_from(words[1])};
  int kind = 0;
  while (kind < NET_KINDS && strcmp(words[1], net_kind_name(kind)))
    nearest_see(&near, net_kind_name(kind++));
  if (kind == NET_KINDS)
    return err_hint(err_new(ERR_INVALID, "there is no exchange '%s'", words[1]), "did you mean %s?",
                    near.best ? near.best : "all-reduce");
  q->call.kind = kind;
  if (!size_of(words[2], &q->call.bytes))
    return err_new(ERR_INVALID, "'%s' is no size: 65536, 64KiB, 1GiB", words[2]);
  return NULL;
}

static Err *answer(const Question *q, Net *net, NetCost *cost) {
  if (q->product) {
    cost->s = sim_product_s(q->ref.chip, q->call.type, q->batch, q->m, q->n, q->k);
    return NULL;
  }
  int devices = MAX(1, q->ref.devices);
  if (q->call.group.n) devices = MAX(devices, net_group_size(&q->call.group, 0));
  TRY(net_open(q->ref.chip, devices, &q->opts, net));
  *cost = net_cost(net, &q->call);
  return NULL;
}

static int lines(void) {
  char line[256];
  for (int at = 1; fgets(line, sizeof line, stdin); at++) {
    char *words[5], *save = NULL;
    int n = 0;
    for (char *w = strtok_r(line, " \t\r\n", &save); w && n < 5;
         w = strtok_r(NULL, " \t\r\n", &save))
      words[n++] = w;
    if (!n) continue;
    Question q = {0};
    Net net;
    NetCost c = {0};
    Err *e = read_question(words, n, &q);
    if (!e) e = answer(&q, &net, &c);
    if (e) return err_report(err_place(e, "line %d", at)), 1;
    printf("%.6g\n", c.s * 1e6);
  }
  return 0;
}

static void print_product(const Question *q, double s) {
  char t[UNITS_TEXT];
  double flops = 2 * q->batch * q->m * q->n * q->k;
  printf("product of %s, %gx%gx%g", dtype_name(q->call.type), q->m, q->n, q->k);
  if (q->batch > 1) printf(", %g of them,", q->batch);
  printf(" on a %s\n  %s; %.1f TFLOP/s\n", q->ref.chip->title, units_time(t, s), flops / s / 1e12);
}

static void print(const Question *q, const Net *net, const NetCost *c) {
  if (q->product) return print_product(q, c->s);
  char t[UNITS_TEXT], l[UNITS_TEXT], b[UNITS_TEXT];
  int members = net_group_size(&q->call.group, net->devices);
  printf("%s of %s over %d of %d %s", net_kind_name(q->call.kind), units_bytes(b, q->call.bytes),
         members, net->devices, q->ref.chip->title);
  if (net->server) printf(" in %s", net->server->title);
  for (int i = 0; i < net->n_dims; i++) printf("%s%d", i ? "x" : ", ", net->dims[i]);
  printf("\n  %s, of it %s however small", units_time(t, c->s), units_time(l, c->latency_s));
  printf("; %s%s%s\n", c->algorithm, *c->protocol ? ", " : "", c->protocol);
  static const char *const links[] = {"inside", "between"};
  for (int i = 0; i < NET_LINKS; i++)
    if (c->bytes[i] > 0)
      printf("  each device sends %s %s: %.1f GB/s\n", units_bytes(b, c->bytes[i]), links[i],
             c->bytes[i] / c->s / 1e9);
}

static int run(int argc, char **argv) {
  enum { GROUP = CLI_FIRST, TOPOLOGY, SLICES };
  static const struct option options[] = {{"group", required_argument, NULL, GROUP},
                                          {"topology", required_argument, NULL, TOPOLOGY},
                                          {"slices", required_argument, NULL, SLICES},
                                          CLI_HELP_ROW,
                                          {0}};
  Question q = {0};
  NetGroup group = {0};
  CliArgs args = {argc, argv, options, 0};
  for (int o; (o = cli_next(&args)) != -1;) switch (o) {
    case GROUP:
      if (!group_of(optarg, &group))
        return cli_wrong(&args, "--group wants SIZE:STRIDE[,...], not '%s'", optarg);
      break;
    case TOPOLOGY: q.topology = optarg; break;
    case SLICES:
      if (!cli_int(&args, 1, &q.slices)) return 2;
      break;
    case CLI_HELP: return fputs(usage, stdout), 0;
    default: return 2;
    }
  if (argc - optind == 1 && !strcmp(argv[optind], "-")) return lines();
  if (argc - optind < 3) return cli_wrong(&args, "CHIP:N EXCHANGE BYTES?");
  Err *e = read_question(argv + optind, argc - optind, &q);
  q.call.group = group;
  Net net;
  NetCost c;
  if (!e) e = answer(&q, &net, &c);
  if (e) return err_report(e), 1;
  print(&q, &net, &c);
  return 0;
}

const CliVerb cli_kernel = {"kernel", "what one exchange or product takes", run};
