/* What a checkpoint says of itself, in safetensors' metadata: model, settings, data with their
 * preprocessing, step, version. */
#include "train/train_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

void meta_set(Meta *m, const char *key, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  va_list again;
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, fmt, ap);
  char *text = xmalloc((size_t)n + 1);
  vsnprintf(text, (size_t)n + 1, fmt, again);
  va_end(again);
  va_end(ap);
  *vec_push(&m->kv) = xstrdup(key);
  *vec_push(&m->kv) = text;
}

const char *meta_get(const Meta *m, const char *key) {
  for (int i = 0; i < m->kv.n; i += 2)
    if (!strcmp(m->kv.v[i], key)) return m->kv.v[i + 1];
  return NULL;
}

void meta_free(Meta *m) {
  for (int i = 0; i < m->kv.n; i++) free(m->kv.v[i]);
  vec_free(&m->kv);
}

char *checkpoint_path(const char *run) {
  struct stat s;
  bool folder = !stat(run, &s) && S_ISDIR(s.st_mode);
  return folder ? xasprintf("%s/checkpoint.safetensors", run) : xstrdup(run);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* "images ui8 28x28x1; labels i32 " */
static void put_fields(Meta *m, const Data *d) {
  Buf b = {0};
  for (int i = 0; i < d->n_fields; i++) {
    const Field *f = &d->fields[i];
    buf_printf(&b, "%s%s %s ", i ? "; " : "", f->name, dtype_name(f->type));
    for (int k = 0; k < f->rank; k++) buf_printf(&b, "%s%lld", k ? "x" : "", (long long)f->dims[k]);
  }
  meta_set(m, "inputs", "%s", b.p);
  buf_free(&b);
}

static void put_numbers(Meta *m, const char *key, int64_t n, const float *v) {
  Buf b = {0};
  for (int64_t i = 0; i < n; i++) buf_printf(&b, "%s%.9g", i ? " " : "", (double)v[i]);
  meta_set(m, key, "%s", b.p ? b.p : "");
  buf_free(&b);
}

static void put_data(Meta *m, const Data *d) {
  meta_set(m, "data", "%s", d->name);
  if (d->spec) meta_set(m, "data-spec", "%s", d->spec);
  put_fields(m, d);
  meta_set(m, "classes", "%lld", (long long)d->classes);
  if (d->labels) meta_set(m, "labels", "%s", d->labels);
  if (d->fields[0].rank == 3) { /* of pixels as 0 ... 1, by channel: (x / 255 - mean) / std */
    put_numbers(m, "mean", data_channels(d), d->mean);
    put_numbers(m, "std", data_channels(d), d->std);
  } else if (d->column_mean) { /* (x - mean) / std */
    put_numbers(m, "column-mean", d->fields[0].dims[0], d->column_mean);
    put_numbers(m, "column-std", d->fields[0].dims[0], d->column_std);
    if (d->column_names) meta_set(m, "column-names", "%s", d->column_names);
  } else if (d->fields[0].rank == 1) {
    meta_set(m, "tokenizer", "%s", d->tokenizer_kind ? d->tokenizer_kind : "bytes");
    const TokenMarks *k = &d->marks;
    if (k->there) meta_set(m, "token-marks", "%d %d %d %d", k->begin, k->end, k->mask, k->pad);
  }
}

void checkpoint_meta(const Model *model, const TrainConfig *c, const Data *d, int64_t step,
                     Meta *out) {
  meta_set(out, "weft", "%s", WEFT_VERSION);
  meta_set(out, "model", "%s", model->name);
  meta_set(out, "step", "%lld", (long long)step);
  if (model->whole) model->whole->meta(model, out);
  put_data(out, d);
  for (const Setting *s = settings; s->name; s++) {
    Buf text = {0};
    setting_text(s, c, &text);
    meta_set(out, s->name, "%s", text.p);
    buf_free(&text);
  }
}

/* ---- reading --------------------------------------------------------------------------------- */

enum { NAME_BYTES = 32 };

static Err *get_fields(const char *text, Data *d) {
  char *names = d->names = xcalloc(DATA_FIELDS, NAME_BYTES);
  for (const char *p = text; *p && d->n_fields < DATA_FIELDS; d->n_fields++, names += NAME_BYTES) {
    Field *f = &d->fields[d->n_fields];
    char name[32], type[16];
    int used = 0;
    if (sscanf(p, "%31s %15s %n", name, type, &used) < 2) break;
    f->name = strcpy(names, name);
    type[strcspn(type, ";")] = 0;
    f->type = dtype_from_name(str_from(type));
    for (p += used; *p && *p != ';' && f->rank < COUNT_OF(f->dims);) {
      char *end;
      f->dims[f->rank++] = strtoll(p, &end, 10);
      if (end == p || f->dims[f->rank - 1] < 1 || f->dims[f->rank - 1] > 1 << 28)
        return err_new(ERR_DATA_LOSS, "its metadata has inputs '%s'", text);
      p = *end == 'x' ? end + 1 : end;
    }
    if (!f->type) return err_new(ERR_DATA_LOSS, "its metadata has inputs '%s'", text);
    p += strspn(p, "; ");
  }
  return d->n_fields ? NULL : err_new(ERR_DATA_LOSS, "its metadata has inputs '%s'", text);
}

static void get_numbers(const char *text, float out[DATA_CHANNELS]) {
  char *end;
  for (int i = 0; text && i < DATA_CHANNELS; i++, text = end) {
    float v = strtof(text, &end);
    if (end == text) return;
    out[i] = v;
  }
}

static void get_marks(const char *text, TokenMarks *k) {
  k->there = text && sscanf(text, "%d %d %d %d", &k->begin, &k->end, &k->mask, &k->pad) == 4;
}

/* n numbers with blanks between; NULL: there are not so many. */
static float *get_columns(const char *text, int64_t n) {
  if (!text || (size_t)n > strlen(text)) return NULL;
  float *v = xcalloc((size_t)n + 1, sizeof *v);
  char *end;
  for (int64_t i = 0; i < n; i++, text = end) {
    v[i] = strtof(text, &end);
    if (end == text) return free(v), NULL;
  }
  return v;
}

/* n lines; NULL: there are not so many. */
static char *get_names(const char *text, int64_t n) {
  int64_t lines = 1;
  for (const char *p = text; p && *p; p++) lines += *p == '\n';
  return text && lines == n ? xstrdup(text) : NULL;
}

static Err *get_data(const Meta *m, const char *path, CheckpointInfo *out) {
  Data *d = out->data = xcalloc(1, sizeof *d);
  const char *name = meta_get(m, "data"), *spec = meta_get(m, "data-spec"),
             *inputs = meta_get(m, "inputs"), *classes = meta_get(m, "classes"),
             *tokens = meta_get(m, "tokenizer"), *labels = meta_get(m, "labels");
  d->labels = labels ? xstrdup(labels) : NULL;
  d->name = xstrdup(name ? name : "?");
  d->spec = spec ? xstrdup(spec) : NULL;
  for (int i = 0; i < DATA_CHANNELS; i++) d->std[i] = 1;
  if (!inputs || !classes) return err_new(ERR_DATA_LOSS, "its metadata does not tell its inputs");
  TRY(get_fields(inputs, d));
  d->classes = strtoll(classes, NULL, 10);
  get_numbers(meta_get(m, "mean"), d->mean);
  get_numbers(meta_get(m, "std"), d->std);
  if (d->fields[0].rank == 1) {
    d->column_mean = get_columns(meta_get(m, "column-mean"), d->fields[0].dims[0]);
    d->column_std = get_columns(meta_get(m, "column-std"), d->fields[0].dims[0]);
    if (!d->column_std) free(d->column_mean), d->column_mean = NULL;
    d->column_names = get_names(meta_get(m, "column-names"), d->fields[0].dims[0] + 1);
  }
  get_marks(meta_get(m, "token-marks"), &d->marks);
  d->tokenizer_kind = tokens && !strcmp(tokens, "gpt2")        ? "gpt2"
                      : tokens && !strcmp(tokens, "wordpiece") ? "wordpiece"
                                                               : NULL;
  if (d->tokenizer_kind) { /* beside the checkpoint */
    const char *slash = strrchr(path, '/');
    out->tokenizer = xasprintf("%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    d->tokenizer = xstrdup(out->tokenizer);
  }
  return NULL;
}

static Err *get_settings(const Meta *m, TrainConfig *c) {
  for (const Setting *s = settings; s->name; s++) {
    const char *text = meta_get(m, s->name);
    bool none = text && !strcmp(text, "0"); /* what was left to its default, below the least */
    if (text && !(none && s->least > 0))
      TRY(err_wrap(setting_parse(s, text, c), "its metadata: %s", s->name));
  }
  return NULL;
}

char *checkpoint_beside(const char *path, const char *name) {
  const char *slash = strrchr(path, '/');
  if (!name || strchr(name, '/')) return NULL;
  return xasprintf("%.*s%s", slash ? (int)(slash - path) + 1 : 0, path, name);
}

Err *checkpoint_info(const char *path, CheckpointInfo *out) {
  Meta m = {0};
  TRY(runs_beside(safetensors_meta(path, &m), path));
  *out = (CheckpointInfo){0};
  const char *model = meta_get(&m, "model"), *version = meta_get(&m, "weft"),
             *step = meta_get(&m, "step");
  Err *e = NULL;
  if (!model || !version || !meta_get(&m, "inputs"))
    e = err_hint(err_new(ERR_DATA_LOSS, "its metadata names no model and no inputs"),
                 "it is not a checkpoint that `weft train --out` wrote");
  if (!e) {
    out->model = xstrdup(model);
    out->version = xstrdup(version);
    out->step = step ? strtoll(step, NULL, 10) : 0;
    out->program = checkpoint_beside(path, meta_get(&m, "program"));
    e = get_settings(&m, &out->config);
  }
  if (!e) e = get_data(&m, path, out);
  meta_free(&m);
  if (e) checkpoint_info_free(out);
  return err_wrap(e, "'%s'", path);
}

void checkpoint_info_free(CheckpointInfo *i) {
  free(i->model);
  free(i->version);
  free(i->tokenizer);
  free(i->program);
  data_close(i->data);
  *i = (CheckpointInfo){0};
}
