/* A plan's layout as StableHLO: a decoder of the model's shape (zoo), whose arguments get shardings over the mesh
 * [data, tensor]: kernels as Megatron cuts them over tensor ways (columns, then rows) and FSDP over data ways, the
 * optimizer's state like its kernel, sequences over data ways. Where tensors go inside follows for the compiler from
 * those and from the residual stream, whose sharding is said at each addition to it. */
#include "cli/layout_program.h"

#include "ir/build.h"
#include "zoo/zoo.h"

#include <math.h>
#include <stdlib.h>

typedef struct Ways {
  int64_t data, tensor;
} Ways;
typedef enum Axis { WHOLE, DATA, TENSOR } Axis;

/* ---- what can be said ------------------------------------------------------------------------- */

static Err *expressible(const PlanJob *j) {
  const PlanModel *m = j->model;
  const PlanLayout *l = &j->layout;
  const struct {
    bool is;
    const char *what;
  } missing[] = {{m->experts > 0, "experts"},
                 {m->latent, "latent attention"},
                 {*m->pattern, "Mamba's layers"},
                 {m->window > 0 || m->period > 0, "attention in windows"},
                 {m->bidirectional || m->masked > 0, "an encoder"},
                 {m->mtp_layers > 0, "layers that predict further tokens"},
                 {m->value_dim > 0 && m->value_dim != m->head_dim, "values of another width"},
                 {m->layers < 1, "layers"},
                 {j->lora_rank > 0, "low-rank adapters"},
                 {l->pp > 1, "stages of a pipeline"},
                 {l->cp > 1, "sequences over several devices"},
                 {l->format != PLAN_BF16, plan_format_name(l->format)},
                 {l->offload > 0, "activations in the host's memory"}};
  for (int i = 0; i < COUNT_OF(missing); i++)
    if (missing[i].is)
      return err_new(ERR_UNIMPLEMENTED, "weft builds no program with %s", missing[i].what);
  return NULL;
}

static ZooAgain again(const PlanLayout *l) {
  return !l->recompute                      ? ZOO_AGAIN_NONE
         : l->recompute == PLAN_ALL_TAGS    ? ZOO_AGAIN_ALL
         : l->recompute & PLAN_TAG(PLAN_UP) ? ZOO_AGAIN_MLP
                                            : ZOO_AGAIN_SOME;
}

/* ---- shardings -------------------------------------------------------------------------------- */

/* GSPMD's text: tiles of each dimension, copies over the axes that cut none. */
static Attr *sharding(Module *m, Ways mesh, int rank, const Axis *cut) {
  int64_t ways[] = {1, mesh.data, mesh.tensor};
  int order[2], n = 0;
  bool used[3] = {false};
  Buf b = {0};
  for (int i = 0; i < rank; i++)
    if (cut[i] != WHOLE) order[n++] = cut[i], used[cut[i]] = true;
  if (!n) return attr_string(m, STR("{replicated}"));
  int64_t copies = 1;
  for (int a = DATA; a <= TENSOR; a++)
    if (!used[a]) order[n++] = a, copies *= ways[a];
  buf_cstr(&b, "{devices=[");
  for (int i = 0; i < rank; i++) buf_printf(&b, "%s%lld", i ? "," : "", (long long)ways[cut[i]]);
  if (copies > 1) buf_printf(&b, ",%lld", (long long)copies);
  if (order[0] == TENSOR)
    buf_printf(&b, "]<=[%lld,%lld]T(1,0)", (long long)mesh.data, (long long)mesh.tensor);
  else buf_printf(&b, "]<=[%lld]", (long long)(mesh.data * mesh.tensor));
  buf_cstr(&b, copies > 1 ? " last_tile_dim_replicate}" : "}");
  Attr *a = attr_string(m, arena_str(m->arena, (Str){b.p, b.n}));
  buf_free(&b);
  return a;
}

/* Products that come second read what is cut over tensor ways. */
static bool by_rows(const char *name) {
  return str_ends(str_from(name), "/o/kernel") || str_ends(str_from(name), "/down/kernel");
}

static void axes(const char *name, const Type *t, bool input, Axis *cut) {
  bool table = str_ends(str_from(name), "wte/table");
  bool positions = str_ends(str_from(name), "wpe/table");
  for (int i = 0; i < t->rank; i++) cut[i] = WHOLE;
  if (input) cut[0] = DATA;
  if (input || t->rank != 2) return;
  bool second = by_rows(name) || table || positions;
  cut[0] = second ? TENSOR : DATA, cut[1] = second ? DATA : TENSOR;
  if (positions) cut[0] = WHOLE;
}

/* What does not divide stays whole. */
static Attr *sharding_of(Module *m, Ways mesh, const char *name, const Type *t, bool input) {
  Axis cut[B_MAX_RANK];
  int64_t ways[] = {1, mesh.data, mesh.tensor};
  axes(name, t, input, cut);
  for (int i = 0; i < t->rank; i++)
    if (t->dims[i] % ways[cut[i]] || ways[cut[i]] == 1) cut[i] = WHOLE;
  return sharding(m, mesh, t->rank, cut);
}

static void shard_main(Module *m, Ways mesh, const StepProgram *p) {
  Func *f = module_main(m);
  int n_results = f->body->last->n_operands;
  for (int i = 0; i < f->body->n_args; i++) {
    bool state = i < p->n_state;
    Attr *a = sharding_of(m, mesh, state ? p->state[i].name : "", f->body->args[i]->type, !state);
    b_arg_attr(f, i, "mhlo.sharding", a);
    if (!state || i >= n_results) continue;
    NamedAttr *r = ARENA_ARRAY(m->arena, NamedAttr, 1);
    *r = (NamedAttr){STR("mhlo.sharding"), a};
    f->res_attrs[i] = r, f->n_res_attrs[i] = 1;
  }
}

static void module_say(Module *m, int devices) {
  NamedAttr *a = ARENA_ARRAY(m->arena, NamedAttr, 2);
  a[0] = (NamedAttr){STR("mhlo.num_partitions"), attr_int(m, DT_I32, devices)};
  a[1] = (NamedAttr){STR("mhlo.num_replicas"), attr_int(m, DT_I32, 1)};
  m->attrs = a, m->n_attrs = 2;
}

/* x through an op that says its sharding; whoever read x reads that. */
static void constrain(Module *m, Ways mesh, Op *def, Value *x) {
  Axis cut[B_MAX_RANK] = {DATA};
  NamedAttr a[] = {{STR("call_target_name"), attr_string(m, STR("Sharding"))},
                   {STR("mhlo.sharding"), sharding(m, mesh, x->type->rank, cut)}};
  Op *op = op_new(m, OP_CUSTOM_CALL, 1, &x, 1, &x->type, 2, a, 0, NULL);
  op->loc = def->loc;
  for (Op *o = def->next; o; o = o->next)
    for (int i = 0; i < o->n_operands; i++)
      if (o->operands[i] == x) o->operands[i] = &op->results[0];
  op_insert_before(def->next, op);
}

/* The residual stream, forwards and backwards, and a microbatch's sequences. */
static bool is_stream(const Op *op, int64_t batch, int64_t width) {
  if (op->n_results != 1) return false;
  const Type *t = op->results[0].type;
  if (op->kind == OP_DYNAMIC_SLICE)
    return t->rank == 2 && t->dtype == DT_I32 && t->dims[0] == batch;
  return op->kind == OP_ADD && t->rank == 3 && t->dims[0] == batch && t->dims[2] == width;
}

typedef struct Streams {
  Module *m;
  Ways mesh;
  int64_t batch, width;
} Streams;

static void constrain_region(const Streams *s, Region *r) {
  for (Op *op = r->first, *next; op; op = next) {
    next = op->next;
    for (int i = 0; i < op->n_regions; i++) constrain_region(s, op->regions[i]);
    if (is_stream(op, s->batch, s->width)) constrain(s->m, s->mesh, op, &op->results[0]);
  }
}

/* ---- the program ------------------------------------------------------------------------------ */

static ZooDecoder decoder(const PlanJob *j) {
  const PlanModel *m = j->model;
  ZooDecoder d = {.layers = m->layers,
                  .width = (int64_t)m->hidden,
                  .heads = m->heads,
                  .kv_heads = m->kv_heads,
                  .head_dim = (int64_t)m->head_dim,
                  .inner = (int64_t)m->ffn,
                  .vocab = (int64_t)m->vocab,
                  .theta = 5e5,
                  .plain = !m->gated,
                  .tied = m->tied,
                  .again = again(&j->layout)};
  return d;
}

Err *layout_program(const PlanJob *j, Module **out) {
  TRY(expressible(j));
  const PlanLayout *l = &j->layout;
  Ways mesh = {l->dp, l->tp};
  ZooDecoder s = decoder(j);
  zoo_decoder(&s);
  TrainConfig c = {.seed = 1,
                   .compute = DT_BF16,
                   .batch = (int64_t)l->gbs,
                   .accumulate = (int64_t)(l->gbs / (l->mbs * l->dp)),
                   .length = (int64_t)l->seq,
                   .remat = true,
                   .opt = {.kind = OPT_ADAMW,
                           .style = STYLE_TORCH,
                           .lr = 1e-4,
                           .beta1 = 0.9,
                           .beta2 = 0.95,
                           .eps = 1e-8,
                           .decay = 0.1}};
  DataOpts shapes = model_data(&s.model, &c);
  Data *d = NULL;
  StepProgram p;
  TRY(data_open("synthetic", &shapes, &d));
  Err *e = step_build(&s.model, &c, d, true, &p);
  data_close(d);
  if (e) return e;
  Module *m = p.m;
  p.m = NULL;
  Streams streams = {m, mesh, c.batch / MAX(1, c.accumulate), s.width};
  for (int i = 0; i < m->funcs.n && mesh.data > 1; i++)
    constrain_region(&streams, m->funcs.v[i]->body);
  shard_main(m, mesh, &p);
  module_say(m, l->devices);
  step_free(&p);
  if ((e = ir_verify(m))) return module_free(m), e;
  *out = m;
  return NULL;
}
