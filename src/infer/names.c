/* Rules from our names to others'. In a pattern % stands for a number; in the other name % is that
 * number, %- one less. */
#include "infer/names.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Rule {
  const char *ours, *theirs;
  NameForm form;
  int part, parts;
} Rule;

#define NORM(ours, theirs) \
  {ours "/scale", theirs ".weight", 0, 0, 0}, { ours "/bias", theirs ".bias", 0, 0, 0 }
#define DENSE(ours, theirs, form) \
  {ours "/kernel", theirs ".weight", form, 0, 0}, { ours "/bias", theirs ".bias", 0, 0, 0 }
#define BATCH_NORM(ours, theirs)                                         \
  NORM(ours, theirs), {ours "/mean", theirs ".running_mean", 0, 0, 0}, { \
    ours "/var", theirs ".running_var", 0, 0, 0                          \
  }
#define CONV_BN(ours, conv, bn) \
  {ours "/conv/kernel", conv ".weight", FORM_CONV, 0, 0}, BATCH_NORM(ours "/bn", bn)

static const Rule gpt2[] = {{"wte/table", "transformer.wte.weight", 0, 0, 0},
                            {"wpe/table", "transformer.wpe.weight", 0, 0, 0},
                            NORM("h%/ln1", "transformer.h.%.ln_1"),
                            NORM("h%/ln2", "transformer.h.%.ln_2"),
                            DENSE("h%/qkv", "transformer.h.%.attn.c_attn", FORM_SAME),
                            DENSE("h%/proj", "transformer.h.%.attn.c_proj", FORM_SAME),
                            DENSE("h%/fc", "transformer.h.%.mlp.c_fc", FORM_SAME),
                            DENSE("h%/fcproj", "transformer.h.%.mlp.c_proj", FORM_SAME),
                            NORM("lnf", "transformer.ln_f"),
                            {0}};

#define BERT_LAYER "bert.encoder.layer.%."
#define THIRD(k, name)                                                                 \
  {"h%/qkv/kernel", BERT_LAYER "attention.self." name ".weight", FORM_TURNED, k, 3}, { \
    "h%/qkv/bias", BERT_LAYER "attention.self." name ".bias", 0, k, 3                  \
  }
static const Rule bert[] = {{"wte/table", "bert.embeddings.word_embeddings.weight", 0, 0, 0},
                            {"wpe/table", "bert.embeddings.position_embeddings.weight", 0, 0, 0},
                            {"wty/table", "bert.embeddings.token_type_embeddings.weight", 0, 0, 0},
                            NORM("eln", "bert.embeddings.LayerNorm"),
                            THIRD(0, "query"),
                            THIRD(1, "key"),
                            THIRD(2, "value"),
                            DENSE("h%/proj", BERT_LAYER "attention.output.dense", FORM_TURNED),
                            NORM("h%/ln1", BERT_LAYER "attention.output.LayerNorm"),
                            DENSE("h%/fc", BERT_LAYER "intermediate.dense", FORM_TURNED),
                            DENSE("h%/fcproj", BERT_LAYER "output.dense", FORM_TURNED),
                            NORM("h%/ln2", BERT_LAYER "output.LayerNorm"),
                            {"mlm/out/bias", "cls.predictions.bias", 0, 0, 0},
                            DENSE("mlm", "cls.predictions.transform.dense", FORM_TURNED),
                            NORM("mlm/ln", "cls.predictions.transform.LayerNorm"),
                            {0}};

static const Rule llama[] = {
    {"wte/table", "model.embed_tokens.weight", 0, 0, 0},
    {"h%/norm1/scale", "model.layers.%.input_layernorm.weight", 0, 0, 0},
    {"h%/norm2/scale", "model.layers.%.post_attention_layernorm.weight", 0, 0, 0},
    {"h%/q/kernel", "model.layers.%.self_attn.q_proj.weight", FORM_TURNED, 0, 0},
    {"h%/k/kernel", "model.layers.%.self_attn.k_proj.weight", FORM_TURNED, 0, 0},
    {"h%/v/kernel", "model.layers.%.self_attn.v_proj.weight", FORM_TURNED, 0, 0},
    {"h%/o/kernel", "model.layers.%.self_attn.o_proj.weight", FORM_TURNED, 0, 0},
    {"h%/gate/kernel", "model.layers.%.mlp.gate_proj.weight", FORM_TURNED, 0, 0},
    {"h%/up/kernel", "model.layers.%.mlp.up_proj.weight", FORM_TURNED, 0, 0},
    {"h%/down/kernel", "model.layers.%.mlp.down_proj.weight", FORM_TURNED, 0, 0},
    {"norm/scale", "model.norm.weight", 0, 0, 0},
    {"out/kernel", "lm_head.weight", FORM_TURNED, 0, 0},
    {0}};

#define BLOCK "layer%.%-."
static const Rule resnet[] = {
    CONV_BN("stem", "conv1", "bn1"),
    CONV_BN("stage%/block%/a", BLOCK "conv1", BLOCK "bn1"),
    CONV_BN("stage%/block%/b", BLOCK "conv2", BLOCK "bn2"),
    CONV_BN("stage%/block%/c", BLOCK "conv3", BLOCK "bn3"),
    CONV_BN("stage%/block%/shortcut", BLOCK "downsample.0", BLOCK "downsample.1"),
    DENSE("classifier", "fc", FORM_TURNED),
    {0}};

static const Rule vit[] = {DENSE("patch", "patch_embed.proj", FORM_CONV),
                           {"cls", "cls_token", FORM_ONES, 0, 0},
                           {"wpe/table", "pos_embed", FORM_ONES, 0, 0},
                           NORM("h%/ln1", "blocks.%.norm1"),
                           NORM("h%/ln2", "blocks.%.norm2"),
                           DENSE("h%/qkv", "blocks.%.attn.qkv", FORM_TURNED),
                           DENSE("h%/proj", "blocks.%.attn.proj", FORM_TURNED),
                           DENSE("h%/fc", "blocks.%.mlp.fc1", FORM_TURNED),
                           DENSE("h%/fcproj", "blocks.%.mlp.fc2", FORM_TURNED),
                           NORM("lnf", "norm"),
                           DENSE("head", "head", FORM_TURNED),
                           {0}};

/* What torch.nn calls its modules' parameters. */
static const Rule torch_nn[] = {{"*/recurrent_bias", "*.bias_hh_l0", 0, 0, 0},
                                {"lstm%/kernel", "lstm%.weight_ih_l0", FORM_TURNED, 0, 0},
                                {"lstm%/recurrent", "lstm%.weight_hh_l0", FORM_TURNED, 0, 0},
                                {"lstm%/bias", "lstm%.bias_ih_l0", 0, 0, 0},
                                {"gru%/kernel", "gru%.weight_ih_l0", FORM_TURNED, 0, 0},
                                {"gru%/recurrent", "gru%.weight_hh_l0", FORM_TURNED, 0, 0},
                                {"gru%/bias", "gru%.bias_ih_l0", 0, 0, 0},
                                {"*/kernel", "*.weight", FORM_TURNED, 0, 0},
                                {"*/bias", "*.bias", 0, 0, 0},
                                {"*/scale", "*.weight", 0, 0, 0},
                                {"*/mean", "*.running_mean", 0, 0, 0},
                                {"*/var", "*.running_var", 0, 0, 0},
                                {"*/table", "*.weight", 0, 0, 0},
                                {0}};

static const Rule keras[] = {{"*/recurrent", "*/recurrent_kernel", 0, 0, 0},
                             {"*/scale", "*/gamma", 0, 0, 0},
                             {"*bn/bias", "*bn/beta", 0, 0, 0},
                             {"*ln/bias", "*ln/beta", 0, 0, 0},
                             {"*/mean", "*/moving_mean", 0, 0, 0},
                             {"*/var", "*/moving_variance", 0, 0, 0},
                             {"*/table", "*/embeddings", 0, 0, 0},
                             {0}};

static const struct {
  const char *family; /* the model's name begins so */
  const Rule *rules;
} families[] = {{"gpt2", gpt2}, {"bert", bert}, {"llama", llama}, {"resnet", resnet}, {"vit", vit}};

/* ---- patterns -------------------------------------------------------------------------------- */

typedef struct Match {
  int numbers[4], n;
  Str rest; /* what * stands for */
} Match;

/* A * stands only at the beginning of a pattern. */
static bool matches(const char *pattern, const char *name, Match *m) {
  *m = (Match){0};
  if (*pattern == '*') {
    size_t tail = strlen(++pattern), len = strlen(name);
    if (len < tail || strcmp(name + len - tail, pattern)) return false;
    m->rest = (Str){name, len - tail};
    return true;
  }
  for (; *pattern; pattern++) {
    if (*pattern != '%') {
      if (*name++ != *pattern) return false;
      continue;
    }
    if (!isdigit((unsigned char)*name) || m->n == COUNT_OF(m->numbers)) return false;
    char *end;
    m->numbers[m->n++] = (int)strtol(name, &end, 10);
    name = end;
  }
  return !*name;
}

static void fill(const char *theirs, const Match *m, char slash, char out[160]) {
  Buf b = {0};
  int k = 0;
  for (const char *p = theirs; *p; p++) {
    if (*p == '*') {
      for (size_t i = 0; i < m->rest.n; i++)
        buf_byte(&b, m->rest.p[i] == '/' ? slash : m->rest.p[i]);
    } else if (*p == '%') {
      bool less = p[1] == '-';
      buf_printf(&b, "%d", m->numbers[k++] - less);
      p += less;
    } else buf_byte(&b, *p);
  }
  snprintf(out, 160, "%s", b.p ? b.p : "");
  buf_free(&b);
}

static int find(const Rule *rules, const char *ours, int rank, char slash, OtherName out[3]) {
  int n = 0;
  for (const Rule *r = rules; r->ours && n < 3; r++) {
    Match m;
    if (!matches(r->ours, ours, &m)) continue;
    if (n && !r->parts) break;
    NameForm form = r->form == FORM_TURNED && rank == 4 ? FORM_CONV : r->form;
    out[n] = (OtherName){.form = form, .part = r->part, .parts = r->parts ? r->parts : 1};
    fill(r->theirs, &m, slash, out[n++].name);
    if (!r->parts) break;
  }
  return n;
}

int names_of(NameStyle style, const Model *m, const char *ours, int rank, OtherName out[3]) {
  int n = 0;
  if (style == NAMES_TORCH) {
    for (int i = 0; i < COUNT_OF(families) && !n; i++)
      if (str_starts(str_from(m->name), families[i].family))
        n = find(families[i].rules, ours, rank, '.', out);
    if (!n) n = find(torch_nn, ours, rank, '.', out);
  } else {
    n = find(keras, ours, rank, '/', out);
  }
  if (n) return n;
  out[0] = (OtherName){.parts = 1};
  snprintf(out[0].name, sizeof out[0].name, "%s", ours);
  return 1;
}

/* ---- data ------------------------------------------------------------------------------------ */

/* The shape there of part of a tensor of ours. */
static void shape_there(const OtherName *o, int rank, const int64_t *dims, int *r, int64_t *out) {
  int64_t d[8];
  memcpy(d, dims, sizeof *d * (size_t)rank);
  d[rank - 1] /= o->parts;
  *r = rank;
  switch (o->form) {
  case FORM_SAME: memcpy(out, d, sizeof *d * (size_t)rank); break;
  case FORM_TURNED: out[0] = d[1], out[1] = d[0]; break;
  case FORM_CONV: out[0] = d[3], out[1] = d[2], out[2] = d[0], out[3] = d[1]; break;
  case FORM_ONES:
    *r = 3;
    for (int i = 0; i < 3; i++) out[i] = i < 3 - rank ? 1 : d[i - 3 + rank];
    break;
  }
}

/* Where element i of the tensor there lies in ours. */
static int64_t place(const OtherName *o, int64_t i, const int64_t *there, const int64_t *ours,
                     int rank) {
  int64_t last = ours[rank - 1], part = last / o->parts, row, col;
  if (o->form == FORM_TURNED) {
    col = i / there[1], row = i % there[1];
  } else if (o->form == FORM_CONV) { /* (o, i, h, w) -> (h, w, i, o) */
    int64_t w = i % there[3], h = i / there[3] % there[2],
            in = i / (there[3] * there[2]) % there[1];
    col = i / (there[3] * there[2] * there[1]);
    row = (h * ours[1] + w) * ours[2] + in;
  } else {
    row = i / part, col = i % part;
  }
  return row * last + o->part * part + col;
}

static int64_t count_of(int rank, const int64_t *dims) {
  int64_t n = 1;
  for (int i = 0; i < rank; i++) n *= dims[i];
  return n;
}

void names_export(NameStyle style, const Model *m, const NamedTensor *t, TensorVec *out) {
  OtherName other[3];
  int n = names_of(style, m, t->name, t->rank, other);
  for (int k = 0; k < n; k++) {
    NamedTensor *to = vec_push(out);
    *to = (NamedTensor){.name = xstrdup(other[k].name), .type = DT_F32};
    shape_there(&other[k], t->rank, t->dims, &to->rank, to->dims);
    int64_t count = count_of(to->rank, to->dims);
    float *v = to->data = xmalloc(sizeof(float) * (size_t)count + 1);
    const float *from = t->data;
    for (int64_t i = 0; i < count; i++)
      v[i] = t->rank ? from[place(&other[k], i, to->dims, t->dims, t->rank)] : from[i];
  }
}

/* By its name, or without what stands before its first point ("transformer.", "bert."). */
static const NamedTensor *find_there(int n, const NamedTensor *file, const char *name) {
  const NamedTensor *t = safetensors_find(n, file, name);
  const char *point = strchr(name, '.');
  if (!t && point) t = safetensors_find(n, file, point + 1);
  return t;
}

static void put_shape(int rank, const int64_t *dims, Buf *out) {
  for (int i = 0; i < rank; i++) buf_printf(out, "%s%lld", i ? ", " : "", (long long)dims[i]);
}

static Err *other_shape(const NamedTensor *t, int rank, const int64_t *want, const StateSpec *s) {
  Buf has = {0}, wants = {0};
  put_shape(t->rank, t->dims, &has);
  put_shape(rank, want, &wants);
  Err *e =
      err_new(ERR_INVALID, "tensor '%s' of the file is %s (%s), '%s' needs floats (%s)", t->name,
              dtype_name(t->type), has.p ? has.p : "", s->name, wants.p ? wants.p : "");
  buf_free(&has);
  buf_free(&wants);
  return err_hint(e, "--size N: another depth, with its width");
}

Err *names_import(const Model *m, const StateSpec *s, int n, const NamedTensor *file, float *out) {
  OtherName other[3];
  int parts = names_of(NAMES_TORCH, m, s->name, s->rank, other);
  for (int k = 0; k < parts; k++) {
    const NamedTensor *t = find_there(n, file, other[k].name);
    if (!t)
      return err_new(ERR_INVALID, "the file has no tensor '%s' (for '%s')", other[k].name, s->name);
    int rank;
    int64_t want[8];
    shape_there(&other[k], s->rank, s->dims, &rank, want);
    if (t->rank != rank || memcmp(t->dims, want, sizeof *want * (size_t)rank) ||
        !dtype_is_float(t->type))
      return other_shape(t, rank, want, s);
    int64_t count = count_of(rank, want);
    for (int64_t i = 0; i < count; i++) {
      const char *at = (const char *)t->data + i * dtype_bytes(t->type);
      out[place(&other[k], i, want, s->dims, s->rank)] = (float)elem_get_f64(t->type, at);
    }
  }
  return NULL;
}
