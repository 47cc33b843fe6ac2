/* Weights that other programs trained, as a run of ours. */
#include "infer/hub.h"
#include "infer/names.h"

#include "base/system.h"
#include "infer/infer.h"

#include "base/path.h"
#include "zoo/zoo.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of the file's tensors that hold `ours`: dimension k. */
static int64_t dim_there(const Model *m, const char *ours, int rank, int k, int n,
                         const NamedTensor *file) {
  OtherName other[3];
  names_of(NAMES_TORCH, m, ours, rank, other);
  const char *point = strchr(other[0].name, '.');
  const NamedTensor *t = safetensors_find(n, file, other[0].name);
  if (!t && point) t = safetensors_find(n, file, point + 1);
  return t && k < t->rank ? t->dims[k] : 0;
}

/* Its name and marks; its tokens must be those that the network knows. */
static Err *take_tokenizer(const ImportOpts *o, Data *d) {
  if (!o->tokenizer) return NULL;
  Tokenizer *t;
  TRY(tokenizer_open(o->tokenizer, &t));
  d->tokenizer = xstrdup(o->tokenizer);
  d->tokenizer_kind = tokenizer_kind(t);
  d->marks = tokenizer_marks(t);
  Err *e = NULL;
  if (tokenizer_size(t) > d->classes)
    e = err_new(ERR_INVALID, "'%s' has %d tokens, the network %lld", o->tokenizer,
                tokenizer_size(t), (long long)d->classes);
  tokenizer_close(t);
  return e;
}

static Err *text_data(const ImportOpts *o, const Model *m, TrainConfig *c, int n,
                      const NamedTensor *file, Data *d) {
  c->length = o->length ? o->length : c->masked ? 512 : 1024;
  int64_t words = dim_there(m, "wte/table", 2, 0, n, file);
  d->classes = words ? words : m->classes;
  d->n_fields = c->masked ? 3 : 2;
  d->fields[0] = (Field){"tokens", DT_I32, 1, {c->length}};
  d->fields[1] = (Field){"targets", DT_I32, 1, {c->length}};
  d->fields[2] = (Field){"weights", DT_F32, 1, {c->length}};
  return take_tokenizer(o, d);
}

/* Means and deviations of ImageNet, which torchvision's and timm's networks are trained with. */
static void image_data(const Model *m, int n, const NamedTensor *file, Data *d) {
  static const float mean[] = {0.485f, 0.456f, 0.406f}, std[] = {0.229f, 0.224f, 0.225f};
  static const char *const last[] = {"classifier/bias", "head/bias"};
  d->n_fields = 2;
  d->fields[0] = (Field){"images", DT_U8, 3, {m->shape[0], m->shape[1], m->shape[2]}};
  d->fields[1] = (Field){"labels", DT_I32, 0, {0}};
  d->classes = m->classes;
  for (int i = 0; i < 2; i++) {
    int64_t classes = dim_there(m, last[i], 1, 0, n, file);
    if (classes) d->classes = classes;
  }
  for (int i = 0; i < 3; i++) d->mean[i] = mean[i], d->std[i] = std[i];
}

static Err *fill(const Model *m, const StepProgram *p, int n, const NamedTensor *file,
                 NamedTensor *out) {
  for (int i = 0; i < p->n_state; i++) {
    const StateSpec *s = &p->state[i];
    int64_t count = 1;
    for (int k = 0; k < s->rank; k++) count *= s->dims[k];
    out[i] = (NamedTensor){.name = xstrdup(s->name), .type = DT_F32, .rank = s->rank};
    memcpy(out[i].dims, s->dims, sizeof *s->dims * (size_t)s->rank);
    out[i].data = xmalloc(sizeof(float) * (size_t)count + 1);
    TRY(names_import(m, s, n, file, out[i].data));
  }
  return NULL;
}

static Err *write_run(const ImportOpts *o, const Model *m, const TrainConfig *c, const Data *d,
                      int n, NamedTensor *t) {
  char *path = xasprintf("%s/checkpoint.safetensors", o->to);
  Meta meta = {0};
  checkpoint_meta(m, c, d, 0, &meta);
  Err *e = folder_make(o->to);
  if (!e && !o->overwrite && !access(path, F_OK))
    e = err_hint(err_new(ERR_EXISTS, "'%s' holds a run", o->to), "--overwrite replaces it");
  if (!e && o->tokenizer) e = tokenizer_copy(o->tokenizer, o->to);
  if (!e) e = safetensors_write(path, n, t, meta.kv.n / 2, (const char *const *)meta.kv.v);
  meta_free(&meta);
  free(path);
  return e;
}

/* What a folder says beside its weights, where nobody said otherwise. */
static void take_folder(const Model *m, ImportOpts *o) {
  if (!hub_is_folder(o->file)) return;
  int layers = hub_layers(o->file);
  NetShape own = {.layers = m->size};
  if (m->transformer) m->transformer(m, &(TrainConfig){0}, &own);
  if (!o->size && m->reads & READ_SIZE && layers != own.layers) o->size = layers;
  if (!o->tokenizer && m->reads & READ_LENGTH && hub_has_tokenizer(o->file)) o->tokenizer = o->file;
}

/* A head of its own in the file of a network whose embedding is the head: the same numbers, or another network. */
static Err *check_head(const Model *m, int n, const NamedTensor *file) {
  OtherName other[3];
  names_of(NAMES_TORCH, m, "wte/table", 2, other);
  const NamedTensor *table = safetensors_find(n, file, other[0].name),
                    *head = safetensors_find(n, file, "lm_head.weight");
  if (!head || !table) return NULL;
  bool same = head->type == table->type && head->rank == table->rank;
  size_t bytes = (size_t)dtype_bytes(table->type);
  for (int k = 0; k < table->rank && same; k++) {
    same = head->dims[k] == table->dims[k];
    bytes *= (size_t)table->dims[k];
  }
  if (same && !memcmp(head->data, table->data, bytes)) return NULL;
  return err_new(ERR_UNIMPLEMENTED,
                 "it has a head of its own ('lm_head.weight'), in weft's '%s' the embedding is it",
                 m->name);
}

static Err *check_transformer(const ImportOpts *o, const Model *m, const TrainConfig *c, int n,
                              const NamedTensor *file) {
  if (!m->transformer) return NULL;
  NetShape s;
  m->transformer(m, c, &s);
  TRY(hub_check(o->file, m->name, &s, c->length));
  return s.tied ? check_head(m, n, file) : NULL;
}

static Err *import(const ImportOpts *o, const Model *m, int n, const NamedTensor *file) {
  TrainConfig c = {.seed = 1, .compute = DT_F32};
  m->defaults(&c);
  c.size = o->size;
  Data *d = xcalloc(1, sizeof *d);
  d->name = xasprintf("import:%s", base_name(o->file));
  for (int i = 0; i < DATA_CHANNELS; i++) d->std[i] = 1;
  Err *e = NULL;
  if (m->reads & READ_LENGTH) e = text_data(o, m, &c, n, file, d);
  else image_data(m, n, file, d);
  if (!e) e = check_transformer(o, m, &c, n, file);
  StepProgram p;
  TrainConfig one = c;
  one.batch = 1;
  bool built = !e && !(e = forward_build(m, &one, d, &p));
  if (built) {
    NamedTensor *t = xcalloc((size_t)p.n_state + 1, sizeof *t);
    e = fill(m, &p, n, file, t);
    if (!e) e = write_run(o, m, &c, d, p.n_state, t);
    safetensors_free(p.n_state, t);
    step_free(&p);
  }
  data_close(d);
  return e;
}

Err *infer_import(const ImportOpts *asked) {
  const Model *m;
  ImportOpts o = *asked;
  TRY(zoo_find(o.model, &m));
  take_folder(m, &o);
  HubWeights w;
  TRY(hub_read(o.file, &w));
  Err *e = import(&o, m, w.n, w.v);
  hub_free(&w);
  if (e && o.tokenizer == o.file && e->code == ERR_UNIMPLEMENTED)
    err_hint(e, "the weights' file in place of the folder leaves the tokenizer out: text as bytes");
  return err_wrap(e, "importing '%s'", o.file);
}
