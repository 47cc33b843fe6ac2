/* The settings of a training run in one table: flags of the command, metadata of checkpoints,
 * members of result.json and what a run that goes on may not change all come from it. */
#include "train/train_priv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define AT(field) offsetof(TrainConfig, field)
#define ANY INFINITY
enum { STEPS = 1 << 30 }; /* the step counter has 32 bits */

static const char *const optimizers[] = {
#define X(id, name) name,
    OPTIMIZERS(X)
#undef X
        NULL};
static const char *const schedules[] = {"const", "linear", "cosine", NULL};
static const char *const styles[] = {"torch", "keras", NULL};
static const char *const precisions[] = {"f32", "bf16", "f16", "f8", NULL};
static const int types[] = {DT_F32, DT_BF16, DT_F16, DT_F8E4M3FN};

const Setting settings[] = {
    {.name = "batch", .kind = SET_COUNT, .at = AT(batch), .least = 1, .below = 1e9, .fixed = true},
    {.name = "eval-batch", .kind = SET_COUNT, .at = AT(eval_batch), .least = 1, .below = 1e9},
    {.name = "replicas", .kind = SET_INT, .at = AT(replicas), .least = 1, .below = 1e6},
    {.name = "accumulate",
     .kind = SET_COUNT,
     .at = AT(accumulate),
     .least = 1,
     .below = 1e6,
     .read_by = READ_RECIPE},
    {.name = "epochs", .kind = SET_REAL, .at = AT(epochs), .least = 0, .below = 1e9},
    {.name = "steps", .kind = SET_COUNT, .at = AT(steps), .least = 1, .below = STEPS},
    {.name = "optimizer",
     .kind = SET_CHOICE,
     .at = AT(opt.kind),
     .names = optimizers,
     .read_by = READ_RECIPE,
     .fixed = true},
    {.name = "lr",
     .kind = SET_REAL,
     .at = AT(opt.lr),
     .least = 0,
     .below = ANY,
     .read_by = READ_RECIPE},
    {.name = "schedule",
     .kind = SET_CHOICE,
     .at = AT(opt.schedule),
     .names = schedules,
     .read_by = READ_RECIPE},
    {.name = "warmup",
     .kind = SET_REAL,
     .at = AT(opt.warmup_steps),
     .least = 0,
     .below = STEPS,
     .read_by = READ_RECIPE},
    {.name = "schedule-steps",
     .kind = SET_REAL,
     .at = AT(opt.total_steps),
     .least = 1,
     .below = STEPS,
     .read_by = READ_SCHEDULE},
    {.name = "lr-end",
     .kind = SET_REAL,
     .at = AT(opt.end),
     .least = 0,
     .below = 1.0000001,
     .read_by = READ_SCHEDULE},
    {.name = "momentum",
     .kind = SET_REAL,
     .at = AT(opt.momentum),
     .least = 0,
     .below = 1,
     .read_by = READ_MOMENTUM},
    {.name = "beta1",
     .kind = SET_REAL,
     .at = AT(opt.beta1),
     .least = 0,
     .below = 1,
     .read_by = READ_BETAS},
    {.name = "beta2",
     .kind = SET_REAL,
     .at = AT(opt.beta2),
     .least = 0,
     .below = 1,
     .read_by = READ_BETAS},
    {.name = "eps",
     .kind = SET_REAL,
     .at = AT(opt.eps),
     .least = 0,
     .below = 1,
     .read_by = READ_EPS},
    {.name = "optimizer-style",
     .kind = SET_CHOICE,
     .at = AT(opt.style),
     .names = styles,
     .hidden = true},
    {.name = "decay",
     .kind = SET_REAL,
     .at = AT(opt.decay),
     .least = 0,
     .below = ANY,
     .read_by = READ_DECAY},
    {.name = "clip",
     .kind = SET_REAL,
     .at = AT(opt.clip),
     .least = 0,
     .below = ANY,
     .read_by = READ_RECIPE},
    {.name = "ema",
     .kind = SET_REAL,
     .at = AT(opt.ema),
     .least = 0,
     .below = 1,
     .read_by = READ_RECIPE},
    {.name = "dropout",
     .kind = SET_REAL,
     .at = AT(dropout),
     .least = 0,
     .below = 1,
     .read_by = READ_DROPOUT},
    {.name = "label-smoothing",
     .kind = SET_REAL,
     .at = AT(label_smoothing),
     .least = 0,
     .below = 1,
     .read_by = READ_SMOOTHING},
    {.name = "precision",
     .kind = SET_CHOICE,
     .at = AT(compute),
     .names = precisions,
     .values = types,
     .read_by = READ_RECIPE},
    {.name = "f8-attention",
     .kind = SET_FLAG,
     .at = AT(f8_attention),
     .read_by = READ_F8_ATTENTION},
    {.name = "size",
     .kind = SET_INT,
     .at = AT(size),
     .least = 1,
     .below = 100000,
     .read_by = READ_SIZE,
     .fixed = true},
    {.name = "length",
     .kind = SET_COUNT,
     .at = AT(length),
     .least = 1,
     .below = 1 << 24,
     .read_by = READ_LENGTH,
     .fixed = true},
    {.name = "image-size",
     .kind = SET_COUNT,
     .at = AT(image_size),
     .least = 1,
     .below = 1 << 14,
     .read_by = READ_IMAGE_SIZE,
     .fixed = true},
    {.name = "lora",
     .kind = SET_INT,
     .at = AT(lora),
     .least = 1,
     .below = 4097,
     .read_by = READ_LORA,
     .fixed = true},
    {.name = "remat", .kind = SET_FLAG, .at = AT(remat), .read_by = READ_REMAT},
    {.name = "shift",
     .kind = SET_COUNT,
     .at = AT(shift),
     .least = 0,
     .below = 1 << 14,
     .read_by = READ_WARP},
    {.name = "rotate",
     .kind = SET_REAL,
     .at = AT(rotate),
     .least = 0,
     .below = 180.0000001,
     .read_by = READ_WARP},
    {.name = "augment", .kind = SET_FLAG, .at = AT(augment), .read_by = READ_AUGMENT},
    {.name = "in-order", .kind = SET_FLAG, .at = AT(in_order), .fixed = true},
    {.name = "masked", .kind = SET_FLAG, .at = AT(masked), .hidden = true},
    {.name = "seed", .kind = SET_COUNT, .at = AT(seed), .least = 0, .below = 9e15, .fixed = true},
    {0}};

const Setting *setting_find(const char *name) {
  for (const Setting *s = settings; s->name; s++)
    if (!strcmp(s->name, name)) return s;
  return NULL;
}

/* ---- one value ------------------------------------------------------------------------------- */

static Err *wants_number(const Setting *s, const char *text) {
  bool whole = s->kind != SET_REAL;
  double v = strtod(text, NULL);
  if (isinf(s->below) || (s->below >= 1e6 && v < s->below))
    return err_new(ERR_INVALID, "wants a %snumber of at least %g, not '%s'", whole ? "whole " : "",
                   s->least, text);
  return err_new(ERR_INVALID, "wants a %snumber of at least %g and below %g, not '%s'",
                 whole ? "whole " : "", s->least, s->below, text);
}

static Err *parse_choice(const Setting *s, const char *text, int *out) {
  Buf all = {0};
  for (int i = 0; s->names[i]; i++) {
    if (!strcmp(text, s->names[i])) {
      *out = s->values ? s->values[i] : i;
      buf_free(&all);
      return NULL;
    }
    buf_printf(&all, "%s%s", i ? ", " : "", s->names[i]);
  }
  Err *e = err_new(ERR_INVALID, "is one of %s, not '%s'", all.p, text);
  buf_free(&all);
  return e;
}

Err *setting_parse(const Setting *s, const char *text, TrainConfig *c) {
  char *at = (char *)c + s->at, *end;
  if (s->kind == SET_CHOICE) return parse_choice(s, text, (int *)(void *)at);
  if (s->kind == SET_FLAG) {
    bool yes = !strcmp(text, "true");
    if (!yes && strcmp(text, "false"))
      return err_new(ERR_INVALID, "is true or false, not '%s'", text);
    *(bool *)at = yes;
    return NULL;
  }
  double v = strtod(text, &end); /* 1e6 is a count, too */
  bool good = end != text && !*end && isfinite(v) && v >= s->least && v < s->below;
  if (!good || (s->kind != SET_REAL && v != floor(v))) return wants_number(s, text);
  if (s->kind == SET_REAL) *(double *)(void *)at = v;
  else if (s->kind == SET_INT) *(int *)(void *)at = (int)v;
  else *(int64_t *)(void *)at = (int64_t)v;
  return NULL;
}

/* The shortest text that reads back as the same number. */
static void real_text(double v, Buf *out) {
  char t[40];
  for (int digits = 6; digits <= 17; digits++) {
    snprintf(t, sizeof t, "%.*g", digits, v);
    if (strtod(t, NULL) == v) break;
  }
  buf_cstr(out, t);
}

static const char *choice_text(const Setting *s, int value) {
  for (int i = 0; s->names[i]; i++)
    if (value == (s->values ? s->values[i] : i)) return s->names[i];
  return s->names[0]; /* compute 0 is f32 */
}

void setting_text(const Setting *s, const TrainConfig *c, Buf *out) {
  const char *at = (const char *)c + s->at;
  switch (s->kind) {
  case SET_REAL: real_text(*(const double *)(const void *)at, out); break;
  case SET_COUNT: buf_printf(out, "%lld", (long long)*(const int64_t *)(const void *)at); break;
  case SET_INT: buf_printf(out, "%d", *(const int *)(const void *)at); break;
  case SET_FLAG: buf_cstr(out, *(const bool *)at ? "true" : "false"); break;
  case SET_CHOICE: buf_cstr(out, choice_text(s, *(const int *)(const void *)at)); break;
  }
}

bool setting_equal(const Setting *s, const TrainConfig *a, const TrainConfig *b) {
  Buf x = {0}, y = {0};
  setting_text(s, a, &x);
  setting_text(s, b, &y);
  bool equal = !strcmp(x.p, y.p);
  buf_free(&x);
  buf_free(&y);
  return equal;
}

void settings_json(const TrainConfig *c, unsigned reads, Buf *out) {
  for (const Setting *s = settings; s->name; s++) {
    if (s->hidden || (s->read_by && !(s->read_by & reads))) continue;
    if (!strcmp(s->name, "steps") && !c->steps) continue;
    if (!strcmp(s->name, "epochs") && c->steps) continue;
    Buf key = {0}, value = {0};
    for (const char *p = s->name; *p; p++) buf_byte(&key, *p == '-' ? '_' : *p);
    setting_text(s, c, &value);
    buf_printf(out, ",\n  \"%s\": ", key.p);
    if (s->kind == SET_CHOICE) buf_json_str(out, value.p);
    else buf_cstr(out, value.p);
    buf_free(&key);
    buf_free(&value);
  }
}

/* ---- who reads it ---------------------------------------------------------------------------- */

unsigned settings_reads(const Model *m, const Data *d, const TrainConfig *c) {
  unsigned recipe = m->whole ? 0 : READ_RECIPE | opt_reads(&c->opt);
  return m->reads | (d ? d->reads : 0) | recipe;
}

Err *setting_unread(const Setting *s, const Model *m, const Data *d, const TrainConfig *c) {
  if (!s->read_by || s->read_by & settings_reads(m, d, c)) return NULL;
  if (s->read_by & (READ_AUGMENT | READ_TOKENIZER | READ_WARP | READ_IMAGE_SIZE))
    return err_new(ERR_INVALID, "data set '%s' does not read --%s%s", d ? d->name : m->data,
                   s->kind == SET_FLAG ? "no-" : "", s->name);
  if (m->whole && s->read_by & (READ_RECIPE | READ_SCHEDULE | READ_MOMENTUM | READ_BETAS |
                                READ_EPS | READ_DECAY))
    return err_new(ERR_INVALID, "--%s is of the models that weft builds: the step '%s' has its own",
                   s->name, m->name);
  if (s->read_by & READ_SCHEDULE)
    return err_hint(err_new(ERR_INVALID, "a constant rate does not read --%s", s->name),
                    "--schedule linear or cosine");
  if (s->read_by & (READ_MOMENTUM | READ_BETAS | READ_EPS | READ_DECAY)) {
    Err *e =
        err_new(ERR_INVALID, "optimizer %s does not read --%s", optimizers[c->opt.kind], s->name);
    bool adam = c->opt.kind == OPT_ADAM && s->read_by & READ_DECAY;
    return adam ? err_hint(e, "--optimizer adamw has weight decay") : e;
  }
  return err_new(ERR_INVALID, "model '%s' does not read --%s", m->name, s->name);
}
