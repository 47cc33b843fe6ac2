#include "dev/meet.h"

#include <stdlib.h>

/* ---- what a collective is, for the others to agree with ---- */

static void describe(const Op *op, Buf *b) {
  Str name = op_full_name(op);
  if (str_starts(name, "stablehlo.")) name.p += 10, name.n -= 10;
  buf_str(b, name);
  if (op->n_regions && op->regions[0]->first && op->regions[0]->first != op->regions[0]->last) {
    Str body = op_full_name(op->regions[0]->first);
    if (str_starts(body, "stablehlo.")) body.p += 10, body.n -= 10;
    buf_printf(b, "(%.*s)", STR_ARG(body));
  }
  for (int i = 0; i < op->n_operands && i < 4; i++) {
    buf_cstr(b, i ? ", " : " of ");
    type_print(b, op->operands[i]->type);
  }
  if (op->n_operands > 4) buf_printf(b, " and %d more", op->n_operands - 4);
}

static uint64_t kind_of(const Op *op, Str what) {
  static const char *const numbers[] = {"all_gather_dim",  "scatter_dimension",
                                        "split_dimension", "concat_dimension",
                                        "split_count",     "has_dynamic_root"};
  uint64_t h = hash_bytes(what.p, what.n, (uint64_t)op->n_operands);
  for (int i = 0; i < COUNT_OF(numbers); i++) {
    int64_t v = op_int(op, numbers[i], -1);
    h = hash_bytes(&v, sizeof v, h);
  }
  Buf types = {0};
  for (int i = 4; i < op->n_operands; i++) type_print(&types, op->operands[i]->type);
  h = hash_bytes(types.p ? types.p : "", types.n, h);
  buf_free(&types);
  return h;
}

/* ---- groups ---- */

typedef struct Joined {
  DevGroup group;
  ProcessGroups pairs; /* of a permutation */
  Err *(*finish)(const DevGroup *g);
} Joined;

static Err *finish_group(void *arg, const ExchangeHand *hands, const size_t *bytes) {
  const Joined *j = arg;
  DevGroup g = j->group;
  g.hands = hands;
  g.bytes = bytes;
  return j->finish(&g);
}

/* Block `to` of n along a dimension. */
static ExchangeRange block_of(const Type *t, int64_t dim, int n, int to) {
  size_t inner = (size_t)dtype_bytes(t->dtype), rows = 1;
  if (dim < 0 || dim >= t->rank || t->dims[dim] % n)
    return (ExchangeRange){0, (size_t)type_bytes(t), 0, 1};
  for (int d = 0; d < dim; d++) rows *= (size_t)t->dims[d];
  for (int d = (int)dim + 1; d < t->rank; d++) inner *= (size_t)t->dims[d];
  size_t run = (size_t)(t->dims[dim] / n) * inner;
  return (ExchangeRange){run * (size_t)to, run, run * (size_t)n, rows};
}

static bool gives(const Joined *j, int from, int to) {
  const ProcessGroups *g = &j->pairs;
  for (int i = 0; i < g->n; i++)
    if (g->member[i * g->width] == j->group.process[from] &&
        g->member[i * g->width + 1] == j->group.process[to])
      return true;
  return false;
}

/* By the meaning of each operation. */
static void needs_of(const void *arg, int from, int to, int k, ExchangeRange *out) {
  const Joined *j = arg;
  const Op *op = j->group.op;
  const Type *t = op->operands[k]->type;
  *out = (ExchangeRange){0, t->kind == TY_TENSOR ? (size_t)type_bytes(t) : 0, 0, 1};
  bool dynamic_root = op_bool(op, "has_dynamic_root", false);
  if (op->kind == OP_COLLECTIVE_PERMUTE) out->n = gives(j, from, to);
  else if (op->kind == OP_COLLECTIVE_BROADCAST && !dynamic_root) out->n = from == 0;
  else if (op->kind == OP_REDUCE_SCATTER)
    *out = block_of(t, op_int(op, "scatter_dimension", -1), j->group.n, to);
  else if (op->kind == OP_ALL_TO_ALL)
    *out = block_of(t, op_int(op, "split_dimension", -1), j->group.n, to);
}

/* Where in the part a process is; -1: elsewhere, or not active. */
static int lane_of(const DevPart *part, const uint8_t *active, int process) {
  if (active && !active[process]) return -1;
  for (int k = 0; k < part->n; k++)
    if (part->process[k] == process) return k;
  return -1;
}

static size_t *operand_bytes(const Op *op) {
  size_t *bytes = xcalloc((size_t)op->n_operands + 1, sizeof *bytes);
  for (int i = 0; i < op->n_operands; i++)
    if (op->operands[i]->type->kind == TY_TENSOR)
      bytes[i] = (size_t)type_bytes(op->operands[i]->type);
  return bytes;
}

static Err *join_group(const DevMeet *m, const Op *op, const uint8_t *active, Str what,
                       const int *member, int n, const ExchangeHand *hands,
                       Err *(*finish)(const DevGroup *g), bool *met) {
  int *devices = xmalloc(sizeof *devices * (size_t)n * 2), *mine = devices + n, n_mine = 0;
  ExchangeHand *own = xmalloc(sizeof *own * (size_t)n);
  for (int i = 0; i < n; i++) {
    devices[i] = m->part->job[member[i]];
    int k = lane_of(m->part, active, member[i]);
    if (k < 0) continue;
    met[k] = true;
    own[n_mine] = hands[k];
    mine[n_mine++] = i;
  }
  Joined joined = {{op, m->prog, n, member, NULL, NULL}, {0}, finish};
  Err *e = NULL;
  if (n_mine && n_mine < n && op->kind == OP_COLLECTIVE_PERMUTE)
    e = interp_pairs(op, m->prog->opts.replicas, m->prog->opts.partitions, &joined.pairs);
  if (n_mine == n) {
    e = finish_group(&joined, own, NULL);
  } else if (n_mine && !e) {
    size_t *bytes = operand_bytes(op);
    ExchangeCall c = {.what = what.p,
                      .kind = kind_of(op, what),
                      .channel = op_int(op, "channel_id", 0),
                      .n = n,
                      .members = devices,
                      .n_mine = n_mine,
                      .mine = mine,
                      .hands = own,
                      .n_in = op->n_operands,
                      .n_out = MAX(op->n_results, op->n_operands * dev_program_processes(m->prog)),
                      .in_bytes = bytes,
                      .needs = m->sparse ? needs_of : NULL,
                      .by_element = m->by_element && m->by_element(op),
                      .finish = finish_group,
                      .arg = &joined};
    e = exchange_join(m->exchange, &c);
    free(bytes);
  }
  process_groups_free(&joined.pairs);
  free(devices);
  free(own);
  return e;
}

Err *dev_meet(const DevMeet *m, const Op *op, const uint8_t *active, const ExchangeHand *hands,
              Err *(*finish)(const DevGroup *g)) {
  const DevPart *part = m->part;
  ProcessGroups g;
  TRY(interp_groups(op, m->prog->opts.replicas, m->prog->opts.partitions, &g));
  Buf what = {0};
  describe(op, &what);
  bool *met = xcalloc((size_t)part->n, sizeof *met);
  Err *e = NULL;
  for (int row = 0; row < g.n && !e; row++)
    e = join_group(m, op, active, (Str){what.p, what.n}, g.member + row * g.width, g.size[row],
                   hands, finish, met);
  for (int k = 0; k < part->n && !e; k++) {
    if (met[k] || (active && !active[part->process[k]])) continue;
    e = finish(&(DevGroup){op, m->prog, 1, &part->process[k], &hands[k], NULL});
  }
  free(met);
  buf_free(&what);
  process_groups_free(&g);
  return e;
}

/* ---- for the interpreter: every member gets all others' operands ---- */

/* out[i * processes + p]: room for operand i of process p; NULL: not wanted */
static Err *give_all(const DevGroup *g) {
  int processes = g->prog->opts.replicas * g->prog->opts.partitions;
  for (int to = 0; to < g->n; to++)
    for (int from = 0; from < g->n; from++)
      for (int i = 0; i < g->op->n_operands; i++) {
        void *room = g->hands[to].out[i * processes + g->process[from]];
        size_t bytes = (size_t)type_bytes(g->op->operands[i]->type);
        if (room && bytes) memcpy(room, g->hands[from].in[i], bytes);
      }
  return NULL;
}

typedef struct Wants { /* of one process of the part */
  void **in, **out;    /* its hand */
  Tensor **rooms;      /* whose memory out is */
} Wants;

/* The operands of process p, and room for those of the processes in its group. */
static Wants wants_of(const Op *op, const Shards *in, int p, int n, const ProcessGroups *g) {
  size_t n_in = (size_t)op->n_operands, n_out = n_in * (size_t)n;
  Wants w = {.in = xcalloc(n_in + n_out + 1, sizeof(void *)),
             .rooms = xcalloc(n_out + 1, sizeof(Tensor *))};
  w.out = w.in + n_in;
  for (int i = 0; i < op->n_operands; i++) w.in[i] = in[i].t[p]->data;
  for (int row = 0; row < g->n; row++) {
    const int *member = g->member + row * g->width;
    bool own = false;
    for (int k = 0; k < g->size[row]; k++) own |= member[k] == p;
    for (int k = 0; k < g->size[row] && own; k++)
      for (int i = 0; i < op->n_operands; i++) {
        const Tensor *t = in[i].t[p];
        if (in[i].t[member[k]]) continue;
        size_t at = (size_t)i * (size_t)n + (size_t)member[k];
        w.rooms[at] = tensor_make(t->dtype, t->rank, t->dims);
        w.out[at] = w.rooms[at]->data;
      }
  }
  return w;
}

static Err *meet_interp(void *arg, const Op *op, const uint8_t *active, Shards *in,
                        uint8_t *present) {
  const DevMeet *m = arg;
  const DevPart *part = m->part;
  for (int i = 0; i < op->n_operands; i++)
    if (op->operands[i]->type->kind != TY_TENSOR || !type_is_static(op->operands[i]->type))
      return op_err(op, ERR_UNIMPLEMENTED, "an exchange of unknown size between runs");
  int n = m->prog->opts.replicas * m->prog->opts.partitions;
  ProcessGroups g;
  TRY(interp_groups(op, m->prog->opts.replicas, m->prog->opts.partitions, &g));
  Wants *wants = xcalloc((size_t)part->n, sizeof *wants);
  ExchangeHand *hands = xcalloc((size_t)part->n, sizeof *hands);
  for (int k = 0; k < part->n; k++) {
    if (!active[part->process[k]]) continue;
    wants[k] = wants_of(op, in, part->process[k], n, &g);
    hands[k] = (ExchangeHand){wants[k].in, wants[k].out};
  }
  process_groups_free(&g);
  Err *e = dev_meet(m, op, active, hands, give_all);
  for (int k = 0; k < part->n; k++) {
    for (int i = 0; i < op->n_operands && wants[k].in; i++)
      for (int q = 0; q < n; q++) {
        Tensor *t = wants[k].rooms[i * n + q];
        if (!t) continue;
        if (in[i].t[q]) tensor_release(t);
        else in[i].t[q] = t, present[q] = 1;
      }
    free(wants[k].in);
    free(wants[k].rooms);
  }
  free(wants);
  free(hands);
  return e;
}

const InterpPart *dev_meet_part(DevMeet *m, const DevProgram *prog, const DevPart *part,
                                Exchange *exchange) {
  if (!part->process) return NULL;
  *m = (DevMeet){prog, part, exchange, false, NULL, {part->n, part->process, meet_interp, NULL}};
  m->interp.arg = m;
  return &m->interp;
}
