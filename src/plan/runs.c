/* Rows of a table of measured runs as jobs, and what plan_step says of each. Words of the table become
 * facts of the job: which framework, what it fuses and hides, what is computed again. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "plan/plan_priv.h"

enum { MOST_COLUMNS = 128 };

typedef struct Row {
  char *field[MOST_COLUMNS];
  int n;
} Row;

/* ---- CSV ---------------------------------------------------------------------------------------- */

/* The next record; quotes may hold commas, quotes and line ends. False at the end. Fields are cut in
 * place. */
static bool next_row(char **at, Row *row) {
  char *p = *at;
  row->n = 0;
  if (!*p) return false;
  for (bool more = true; more;) {
    char *to = p;
    if (row->n < MOST_COLUMNS) row->field[row->n++] = p;
    bool quoted = false;
    for (; *p && (quoted || (*p != ',' && *p != '\n')); p++) {
      if (*p == '"' && quoted && p[1] == '"') *to++ = *++p;
      else if (*p == '"') quoted = !quoted;
      else if (*p != '\r' || quoted) *to++ = *p;
    }
    more = *p == ',';
    if (*p) p++;
    *to = 0;
  }
  *at = p;
  return true;
}

typedef struct Table {
  Row head, row;
} Table;

static const char *text(const Table *t, const char *column) {
  for (int i = 0; i < t->head.n; i++)
    if (!strcmp(t->head.field[i], column)) return i < t->row.n ? t->row.field[i] : "";
  return "";
}
static bool has(const char *in, const char *word) { return strstr(in, word) != NULL; }
static bool says(const Table *t, const char *column, const char *word) {
  return has(text(t, column), word);
}
static double number(const Table *t, const char *column) {
  const char *s = text(t, column);
  return *s ? strtod(s, NULL) : 0;
}
static int whole(const Table *t, const char *column, int otherwise) {
  double v = number(t, column);
  return v >= 1 && v < 1e9 ? (int)v : otherwise;
}
/* The number that follows the word in a text; 0: none. */
static double after(const char *in, const char *word) {
  const char *p = strstr(in, word);
  if (!p) return 0;
  for (p += strlen(word); *p == ' '; p++) {
  }
  return strtod(p, NULL);
}
/* And the one before it. */
static double before(const char *in, const char *word) {
  const char *p = strstr(in, word);
  if (!p) return 0;
  while (p > in && !isdigit((unsigned char)p[-1])) p--;
  while (p > in && isdigit((unsigned char)p[-1])) p--;
  return strtod(p, NULL);
}

/* ---- the model ---------------------------------------------------------------------------------- */

typedef struct Why {
  char text[160];
} Why;

static bool no(Why *w, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(w->text, sizeof w->text, fmt, ap);
  va_end(ap);
  return false;
}

/* Cells that must be numbers: the first that is none is named. */
static bool numbers_told(const Table *t, Why *why) {
  static const char *const columns[] = {"chips",
                                        "gpus_per_node",
                                        "fast_domain",
                                        "slices",
                                        "devices_per_chip",
                                        "layers",
                                        "dense_layers",
                                        "hidden",
                                        "ffn",
                                        "heads",
                                        "kv_heads",
                                        "head_dim",
                                        "vocab",
                                        "experts",
                                        "experts_active",
                                        "expert_ffn",
                                        "shared_expert_ffn",
                                        "mtp_layers",
                                        "seq",
                                        "gbs",
                                        "ga",
                                        "dp",
                                        "tp",
                                        "pp",
                                        "vpp",
                                        "cp",
                                        "ep",
                                        "etp",
                                        "fsdp",
                                        "mbs"};
  if (t->row.n > t->head.n)
    return no(why, "%d cells in a row under %d columns", t->row.n, t->head.n);
  for (int i = 0; i < COUNT_OF(columns); i++) {
    const char *cell = text(t, columns[i]);
    char *end;
    double v = strtod(cell, &end);
    bool part = !strcmp(columns[i], "mbs"); /* half a sequence where context ways share it */
    if (*cell && (*end || !(v >= 0 && v < 1e12) || (!part && v != floor(v))))
      return no(why, "%s is no %snumber: '%s'", columns[i], part ? "" : "whole ", cell);
  }
  return true;
}

/* Hybrids: how many layers there are of each kind. */
static bool hybrid(const char *attention, const char *extra, PlanModel *m, Why *why) {
  struct {
    char letter;
    double n;
  } kinds[] = {{'M', before(attention, " mamba")},
               {'E', before(attention, " MoE")},
               {'-', before(attention, " MLP")},
               {'*', before(attention, " attention")}};
  int at = 0;
  for (int i = 0; i < COUNT_OF(kinds); i++)
    for (int k = 0; k < (int)kinds[i].n && at + 1 < PLAN_PATTERN; k++)
      m->pattern[at++] = kinds[i].letter;
  m->mamba_heads = after(extra, "mamba heads"), m->mamba_dim = after(extra, "head dim");
  m->mamba_state = after(extra, "state"), m->mamba_groups = after(extra, "groups");
  if (at != m->layers || m->mamba_heads <= 0)
    return no(why, "the hybrid's layers are not told: %s", attention);
  return true;
}

static bool attention_of(const Table *t, PlanModel *m, Why *why) {
  const char *a = text(t, "attention"), *extra = text(t, "model_extra");
  m->bidirectional = has(a, "not causal");
  if (has(a, "encoder") || has(a, "cross") || has(a, "blocks") || has(a, "share kv"))
    return no(why, "attention of the kind '%s'", a);
  if (has(a, "hybrid")) return hybrid(a, extra, m, why);
  if (has(a, "MLA")) {
    m->latent = true;
    m->q_rank = after(extra, "q rank"), m->kv_rank = after(extra, "kv rank");
    m->rope_dim = after(extra, "rope"), m->value_dim = after(extra, ", v ");
    if (m->kv_rank <= 0) return no(why, "latent attention without its ranks");
  }
  m->window = after(a, "sliding");
  if (has(a, "chunks of")) m->window = after(a, "chunks of");
  if (m->window > 0) m->period = has(a, "every other") ? 2 : (int)after(a, " of ");
  const char *rest = strstr(a, "rest full");
  m->global_dim = rest ? after(rest, "head") : 0;
  m->global_kv_heads = rest && m->global_dim > 0 ? (int)before(rest, " kv") : 0;
  return true;
}

static bool model_by_name(const Table *t, PlanModel *m, Why *why) {
  const char *name = text(t, "model");
  if (!*name) return no(why, "neither a model's name nor its shape is told");
  Err *e = plan_model(name, m);
  if (e) no(why, "neither layers nor hidden is told, and %s", e->msg);
  err_free(e);
  return !*why->text;
}

static bool model_of(const Table *t, PlanModel *m, Why *why) {
  if (!*text(t, "layers") && !*text(t, "hidden")) return model_by_name(t, m, why);
  *m = (PlanModel){.layers = whole(t, "layers", 0),
                   .hidden = number(t, "hidden"),
                   .vocab = number(t, "vocab"),
                   .ffn = number(t, "ffn"),
                   .gated = says(t, "mlp", "gated"),
                   .heads = whole(t, "heads", 0),
                   .kv_heads = whole(t, "kv_heads", whole(t, "heads", 0)),
                   .head_dim = number(t, "head_dim"),
                   .experts = whole(t, "experts", 0),
                   .active = whole(t, "experts_active", 1),
                   .expert_ffn = number(t, "expert_ffn"),
                   .shared_ffn = number(t, "shared_expert_ffn"),
                   .dense_layers = whole(t, "dense_layers", 0),
                   .mtp_layers = whole(t, "mtp_layers", 0),
                   .tied = says(t, "tied_embeddings", "yes"),
                   .learned = says(t, "model_extra", "learned positions")};
  snprintf(m->name, sizeof m->name, "%s", text(t, "model"));
  if (says(t, "family", "vision") || says(t, "model_extra", "diffusion"))
    return no(why, "not a language model: %s", m->name);
  if (m->layers < 1 || m->hidden <= 0 || m->heads < 1 || m->head_dim <= 0 || m->vocab <= 0)
    return no(why, "the model's shape is not told in full: %s is missing",
              m->layers < 1      ? "layers"
              : m->hidden <= 0   ? "hidden"
              : m->heads < 1     ? "heads"
              : m->head_dim <= 0 ? "head_dim"
                                 : "vocab");
  if (m->experts > 0 && m->expert_ffn <= 0) return no(why, "the experts' size is not told");
  if (m->experts == 0 && m->ffn <= 0) return no(why, "ffn is not told");
  if (says(t, "note", "masked tokens only")) m->masked = 0.15;
  if (m->bidirectional && says(t, "model", "bert") && says(t, "note", "every token")) m->masked = 0;
  m->biased = has(m->name, "gpt-oss");
  return attention_of(t, m, why);
}

/* ---- the layout --------------------------------------------------------------------------------- */

static const struct {
  const char *word;
  unsigned tags;
} recompute_words[] = {
    {"core_attn", PLAN_TAG(PLAN_CORE)}, {"mla_up_proj", PLAN_TAG(PLAN_LATENT)},
    {"layernorm", PLAN_TAG(PLAN_NORM)}, {"moe_act", PLAN_TAG(PLAN_EXPERT_ACT)},
    {"norms", PLAN_TAG(PLAN_NORM)},     {"MLA up-projection", PLAN_TAG(PLAN_LATENT)},
};
static const struct {
  const char *word;
  unsigned tags;
} kept_words[] = {
    {"context", PLAN_TAG(PLAN_CORE)},
    {"key_proj", PLAN_TAG(PLAN_QKV)},
    {"query_proj", PLAN_TAG(PLAN_QKV)},
    {"value_proj", PLAN_TAG(PLAN_QKV)},
    {"qkv_proj", PLAN_TAG(PLAN_QKV)},
    {"out_proj", PLAN_TAG(PLAN_OUT)},
    {"mlpwi", PLAN_TAG(PLAN_UP) | PLAN_TAG(PLAN_EXPERT_UP)},
    {"mlpwo", PLAN_TAG(PLAN_DOWN) | PLAN_TAG(PLAN_EXPERT_DOWN)},
};
#define MLP_TAGS (PLAN_TAG(PLAN_UP) | PLAN_TAG(PLAN_ACT) | PLAN_TAG(PLAN_DOWN))
#define MOE_TAGS                                                                \
  (PLAN_TAG(PLAN_ROUTER) | PLAN_TAG(PLAN_DISPATCH) | PLAN_TAG(PLAN_EXPERT_UP) | \
   PLAN_TAG(PLAN_EXPERT_ACT) | PLAN_TAG(PLAN_EXPERT_DOWN))
#define PRODUCT_TAGS                                                                     \
  (PLAN_TAG(PLAN_QKV) | PLAN_TAG(PLAN_LATENT) | PLAN_TAG(PLAN_OUT) | PLAN_TAG(PLAN_UP) | \
   PLAN_TAG(PLAN_DOWN) | PLAN_TAG(PLAN_EXPERT_UP) | PLAN_TAG(PLAN_EXPERT_DOWN))

/* Is the word there, with nothing of a longer one around it? */
static bool whole_word(const char *in, const char *word) {
  size_t n = strlen(word);
  for (const char *p = in; (p = strstr(p, word)); p++) {
    bool begins = p == in || !(isalnum((unsigned char)p[-1]) || p[-1] == '_');
    if (begins && !(isalnum((unsigned char)p[n]) || p[n] == '_')) return true;
  }
  return false;
}

static unsigned selective(const char *s) {
  const char *but = strstr(s, "all again but");
  unsigned tags = 0;
  if (has(s, "save_dot_except_mlp") || has(s, "context_except_mlp")) {
    tags = PLAN_ALL_TAGS & ~PRODUCT_TAGS;
    tags |= has(s, "mlpwi") ? PLAN_TAG(PLAN_UP) : MLP_TAGS;
    if (has(s, "with_context")) tags &= ~PLAN_TAG(PLAN_CORE);
    return tags;
  }
  if (has(s, "minimal") || has(s, "matrix product")) {
    tags = PLAN_ALL_TAGS & ~PRODUCT_TAGS;
    return has(s, "flash") ? tags & ~PLAN_TAG(PLAN_CORE) : tags;
  }
  if (but) {
    tags = PLAN_ALL_TAGS;
    for (int i = 0; i < COUNT_OF(kept_words); i++)
      if (whole_word(but, kept_words[i].word)) tags &= ~kept_words[i].tags;
    return tags;
  }
  for (int i = 0; i < COUNT_OF(recompute_words); i++)
    if (has(s, recompute_words[i].word)) tags |= recompute_words[i].tags;
  if (whole_word(s, "mlp")) tags |= MLP_TAGS;
  if (whole_word(s, "moe")) tags |= MOE_TAGS;
  return tags;
}

static void recompute_of(const Table *t, const PlanModel *m, PlanLayout *l) {
  const char *s = text(t, "recompute");
  if (!strncmp(s, "full", 4)) {
    l->recompute = PLAN_ALL_TAGS;
    double n = before(s, " layers");
    if (n > 0) l->recompute_share = MIN(1, n * l->pp / m->layers);
  } else if (!strncmp(s, "selective", 9)) {
    l->recompute = selective(s);
    if (has(s, "share of the layers")) l->recompute = PLAN_ALL_TAGS, l->recompute_share = 0.5;
  }
}

static bool words_known(const Table *t, Why *why) {
  static const struct {
    const char *column, *words[12];
  } known[] = {
      {"precision",
       {"bf16", "bfloat16", "fp16", "float16", "f16", "mixed", "fp8", "fp4", "int8", "tf32"}},
      {"zero", {"none", "zero-0", "zero-1", "zero-2", "zero-3", "fsdp", "hsdp", "ddp"}},
      {"recompute", {"none", "full", "selective"}},
      {"optimizer", {"adam", "adafactor", "lamb", "sgd"}}};
  for (int i = 0; i < COUNT_OF(known); i++) {
    const char *s = text(t, known[i].column);
    bool found = !*s;
    for (int k = 0; known[i].words[k]; k++) found |= has(s, known[i].words[k]);
    if (!found) return no(why, "%s '%s' is not known: docs/plan.md", known[i].column, s);
  }
  return true;
}

static PlanFormat format_of(const char *s) {
  if (has(s, "nvfp4")) return PLAN_NVFP4;
  if (has(s, "mxfp8")) return PLAN_MXFP8;
  if (has(s, "current") || has(s, "tensorwise")) return PLAN_FP8_CURRENT;
  if (has(s, "rowwise")) return PLAN_FP8_ROWS;
  if (has(s, "blocks")) return PLAN_FP8_BLOCKS;
  if (has(s, "fp8")) return PLAN_FP8;
  if (has(s, "int8")) return PLAN_INT8;
  if (has(s, "tf32")) return PLAN_TF32;
  if (has(s, "fp16") || has(s, "mixed") || !strcmp(s, "f16") || !strcmp(s, "float16"))
    return PLAN_FP16;
  return PLAN_BF16;
}

static bool layout_of(const Table *t, const PlanModel *m, const Chip *chip, PlanLayout *l,
                      Why *why) {
  int chips = whole(t, "chips", 0);
  *l = (PlanLayout){.devices = chips * MAX(1, whole(t, "devices_per_chip", chip->devices_per_chip)),
                    .tp = whole(t, "tp", 1),
                    .pp = whole(t, "pp", 1),
                    .cp = whole(t, "cp", 1),
                    .ep = whole(t, "ep", 1),
                    .etp = whole(t, "etp", 0),
                    .vpp = whole(t, "vpp", 1),
                    .seq = number(t, "seq"),
                    .gbs = number(t, "gbs"),
                    .mbs = number(t, "mbs"),
                    .fsdp = whole(t, "fsdp", 0),
                    .format = format_of(text(t, "precision"))};
  if (chips < 1) return no(why, "chips is not told");
  if (l->seq < 1) l->seq = plan_usual_seq(m);
  if (l->gbs < 1) return no(why, "gbs is not told");
  l->dp = whole(t, "dp", MAX(1, l->devices / (l->tp * l->pp * l->cp)));
  if (l->mbs <= 0) l->mbs = whole(t, "ga", 0) ? l->gbs / l->dp / whole(t, "ga", 1) : 1;
  if (l->mbs * l->dp > l->gbs) l->mbs = l->gbs / l->dp;
  if (l->mbs < 1 && l->cp > 1) l->mbs = 1; /* counted a device: context ways share a sequence */
  const char *zero = text(t, "zero");
  l->zero = has(zero, "zero-3") || has(zero, "fsdp") || has(zero, "hsdp") ? PLAN_ZERO_3
            : has(zero, "zero-2 like")                                    ? PLAN_ZERO_3
            : has(zero, "zero-2")                                         ? PLAN_ZERO_2
            : has(zero, "zero-1")                                         ? PLAN_ZERO_1
                                                                          : PLAN_ZERO_NONE;
  l->keep_gathered = has(zero, "kept gathered") || says(t, "note", "weights kept gathered");
  if (l->pp > 1 && l->zero == PLAN_ZERO_3)
    l->keep_gathered = true; /* else each microbatch gathers */
  if (l->zero != PLAN_ZERO_3 || l->fsdp < 2) l->fsdp = 0;
  /* recipes of mixtures leave experts whole unless they say otherwise */
  if (l->ep > 1 && l->tp > 1 && l->etp == 0) l->etp = 1;
  recompute_of(t, m, l);
  const char *offload = text(t, "offload");
  double of = before(offload, " layers");
  if (of > 0) l->offload = MIN(1, of / m->layers);
  else if (has(offload, "kept on host")) l->offload = 0.9;
  else if (has(offload, "activations of")) l->offload = 0.5;
  return true;
}

/* ---- the software ------------------------------------------------------------------------------- */

static PlanStack stack_of(const Table *t, const Chip *chip, PlanZero zero) {
  static const char *const xla[] = {"maxtext", "MaxText", "JAX-Toolbox", "paxml", "tpu-recipes"};
  static const char *const modules[] = {"llm-foundry", "fms-fsdp", "torchtitan", "Automodel",
                                        "DeepLearningExamples"};
  const char *source = text(t, "source");
  if (chip->kind == CHIP_TPU) return PLAN_XLA;
  for (int i = 0; i < COUNT_OF(xla); i++)
    if (has(source, xla[i])) return PLAN_XLA;
  for (int i = 0; i < COUNT_OF(modules); i++)
    if (has(source, modules[i])) return PLAN_FSDP;
  return zero == PLAN_ZERO_3 && !says(t, "zero", "megatron") ? PLAN_FSDP : PLAN_MEGATRON;
}

static void software_of(const Table *t, const Chip *chip, const PlanLayout *l, PlanSoftware *w) {
  const char *note = text(t, "note"), *date = text(t, "date"), *source = text(t, "source");
  double month = strlen(date) >= 7 ? strtod(date + 5, NULL) : 7;
  *w = (PlanSoftware){.stack = stack_of(t, chip, l->zero),
                      .year = *date ? strtod(date, NULL) + (month - 0.5) / 12 : 0};
  /* FlashAttention is of May 2022, splash attention for TPUs of autumn 2023 */
  w->unfused = has(note, "unfused attention") || (w->year > 0 && w->year < 2022.6);
  if (chip->kind == CHIP_TPU) w->unfused = w->year > 0 && w->year < 2023.8;
  else if (chip_num(chip, "fused_attention", 0) <= 0) w->unfused = true;
  w->blocking = has(note, "launches ran blocking");
  w->compiled = (has(note, "compiled") && !has(note, "no compile")) || w->stack == PLAN_XLA;
  w->tuned = has(source, "mlcommons");
  w->graphs = w->tuned || has(note, "full_iteration");
  w->some_graphs = has(note, "cuda graph");
  w->fused_dispatch = has(note, "hybridep") || has(note, "deepep");
  /* the only dispatch across servers that recipes have since */
  if (w->year > 2025.7 && (l->ep > 8 || w->stack == PLAN_FSDP)) w->fused_dispatch = true;
  w->hidden_dispatch = has(note, "all-to-all overlapped");
  w->host_counts = !has(note, "hybridep");
  w->dropped = has(note, "capacity");
  w->balanced = has(note, "balanced");
  w->pure16 = has(source, "Automodel");
}

/* "1600 Gbps node-node", "400 Gbit/s a node": bytes/s of one device's share; 0: not told. */
static double card_of(const Table *t) {
  static const char *const words[] = {" Gbps node", " Gbit/s a node"};
  double per_node = MAX(1, number(t, "gpus_per_node")), rate = 0;
  for (int i = 0; i < COUNT_OF(words) && rate <= 0; i++) {
    rate = before(text(t, "source"), words[i]);
    if (rate <= 0) rate = before(text(t, "note"), words[i]);
  }
  if (rate <= 0 && says(t, "note", "8 x 200 Gbit/s")) rate = 1600;
  return rate * 1e9 / 8 / per_node;
}

static PlanMachineOpts machine_of(const Table *t) {
  const char *variant = text(t, "chip_variant");
  return (PlanMachineOpts){.domain = whole(t, "fast_domain", 0),
                           .slices = whole(t, "slices", 1),
                           .card = card_of(t),
                           .power_w = before(variant, " W limit"),
                           .bandwidth = has(variant, "2.4 TB/s") ? 2.4e12 : 0};
}

static bool job_of(const Table *t, const Chip *chip, PlanModel *m, PlanJob *j, Why *why) {
  *j = (PlanJob){.model = m};
  if (!numbers_told(t, why) || !words_known(t, why) || !model_of(t, m, why)) return false;
  if (!layout_of(t, m, chip, &j->layout, why)) return false;
  software_of(t, chip, &j->layout, &j->software);
  const char *o = text(t, "optimizer");
  j->optimizer = has(o, "adafactor") ? PLAN_ADAFACTOR
                 : has(o, "lamb")    ? PLAN_LAMB
                 : has(o, "sgd")     ? PLAN_SGD
                                     : PLAN_ADAM;
  if (says(t, "task", "lora")) {
    j->lora_rank = (int)after(text(t, "note"), "LoRA rank");
    if (j->lora_rank < 1) j->lora_rank = 16;
    j->lora_all = says(t, "note", "every projection");
  }
  return true;
}

/* ---- answers ------------------------------------------------------------------------------------ */

static void unsupported(Buf *out, const char *why) {
  buf_cstr(out, "\"unsupported\": ");
  buf_json_str(out, why);
}

static const char *largest(const PlanStep *s, char *to, size_t n) {
  int best = 0, next = 0;
  for (int i = 1; i < PLAN_PARTS_N; i++)
    if (s->part[i] > s->part[best]) best = i;
  next = best == 0;
  for (int i = 0; i < PLAN_PARTS_N; i++)
    if (i != best && s->part[i] > s->part[next]) next = i;
  snprintf(to, n, "%.0f %% %s, %.0f %% %s", 100 * s->part[best] / s->time_s,
           plan_part_name((PlanPart)best), 100 * s->part[next] / s->time_s,
           plan_part_name((PlanPart)next));
  return to;
}

static void answer(Buf *out, const PlanStep *s) {
  char why[128];
  buf_printf(out, "\"fits\": %s, \"peak_bytes\": %.0f, \"limit_bytes\": %.0f, ",
             s->fits ? "true" : "false", s->peak_bytes, s->limit_bytes);
  buf_printf(out, "\"step_time_s\": %.6g, \"mfu\": %.4g, \"why\": ", s->time_s, s->mfu);
  buf_json_str(out, largest(s, why, sizeof why));
  buf_cstr(out, ", ");
  plan_parts_json(s, out);
}

/* What kernels take on each chip that rows name. */
typedef struct Known {
  const Chip *chip;
  double power_w;
  PlanKernels *kernels;
} Known;
typedef VEC(Known) Knowns;

static PlanKernels *kernels_of(Knowns *all, const Chip *chip, const PlanMachineOpts *o) {
  for (int i = 0; i < all->n; i++)
    if (all->v[i].chip == chip && all->v[i].power_w == o->power_w) return all->v[i].kernels;
  Known k = {chip, o->power_w, plan_kernels_new(chip, o->power_w, o->bandwidth)};
  *vec_push(all) = k;
  return k.kernels;
}

static void one_row(const Table *t, Knowns *known, Buf *out) {
  const Chip *chip = NULL;
  PlanModel m;
  PlanJob j;
  Why why = {""};
  PlanMachine *h = NULL;
  buf_cstr(out, "{\"id\": ");
  buf_json_str(out, text(t, "id"));
  buf_cstr(out, ", ");
  Err *e = chip_find(text(t, "chip"), &chip);
  if (!e && !job_of(t, chip, &m, &j, &why)) {
    unsupported(out, why.text);
  } else {
    if (!e) e = plan_check(&j);
    PlanMachineOpts opts = machine_of(t);
    if (!e) opts.kernels = kernels_of(known, chip, &opts);
    if (!e) e = plan_machine_open(chip, j.layout.devices, &opts, &h);
    if (e) {
      unsupported(out, e->msg);
    } else {
      PlanStep s;
      plan_step(h, &j, &s);
      answer(out, &s);
    }
  }
  buf_cstr(out, "}\n");
  plan_machine_close(h);
  err_free(e);
}

Err *plan_runs(const char *path, Buf *out) {
  Buf file = {0};
  TRY(file_read(path, &file));
  static const char *const needed[] = {"id", "chip", "chips"};
  Table *t = xcalloc(1, sizeof *t);
  Knowns known = {0};
  char *at = file.p ? file.p : "";
  if (!strncmp(at, "\xef\xbb\xbf", 3)) at += 3; /* spreadsheets write a mark first */
  Err *e = NULL;
  if (!next_row(&at, &t->head)) e = err_new(ERR_INVALID, "%s is empty", path);
  for (int i = 0; i < COUNT_OF(needed) && !e; i++) {
    bool found = false;
    for (int k = 0; k < t->head.n; k++) found |= !strcmp(t->head.field[k], needed[i]);
    if (!found)
      e = err_hint(
          err_place(err_new(ERR_INVALID, "the column '%s' is missing", needed[i]), "%s:1", path),
          "docs/plan.md lists the columns");
  }
  while (!e && next_row(&at, &t->row))
    if (t->row.n > 1) one_row(t, &known, out);
  for (int i = 0; i < known.n; i++) plan_kernels_free(known.v[i].kernels);
  vec_free(&known);
  free(t);
  buf_free(&file);
  return e;
}
