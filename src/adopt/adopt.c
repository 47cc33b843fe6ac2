/* Opening, describing and closing an adopted step. */
#include "adopt/adopt_priv.h"

#include "stablehlo/stablehlo.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

bool adopt_is_program(const char *path) { return adopt_ending(path); }

/* ---- what a checkpoint keeps ------------------------------------------------------------------- */

static void put_meta(const Model *m, Meta *out) {
  const Adopted *a = (const Adopted *)(const void *)m;
  meta_set(out, "program", "program%s", a->ending);
  if (a->eval) meta_set(out, "program-eval", "eval%s", a->eval->ending);
  if (a->predict) meta_set(out, "program-predict", "predict%s", a->predict->ending);
  if (a->state_opt) meta_set(out, "program-state", "%s", a->state_opt);
  if (a->batch_opt) meta_set(out, "program-batch-args", "%s", a->batch_opt);
  if (a->loss_opt) meta_set(out, "program-loss", "%s", a->loss_opt);
  if (a->pixels) meta_set(out, "program-pixels", "%s", a->pixels);
}

static Err *keep_one(const Adopted *a, const char *folder, const char *name) {
  if (!a) return NULL;
  char *path = xasprintf("%s/%s%s", folder, name, a->ending);
  Err *e = file_write(path, a->bytes.p, a->bytes.n);
  free(path);
  return e;
}

static Err *keep_programs(const Model *m, const char *folder) {
  const Adopted *a = (const Adopted *)(const void *)m;
  TRY(keep_one(a, folder, "program"));
  TRY(keep_one(a->eval, folder, "eval"));
  return keep_one(a->predict, folder, "predict");
}

static const WholeStep whole = {.build = adopt_build,
                                .first = adopt_first,
                                .is_set = adopt_is_set,
                                .meta = put_meta,
                                .keep = keep_programs};

static const WholeStep whole_with_eval = {.build = adopt_build,
                                          .eval = adopt_build_eval,
                                          .first = adopt_first,
                                          .is_set = adopt_is_set,
                                          .meta = put_meta,
                                          .keep = keep_programs};

static char *either(const char *said, const Meta *before, const char *key) {
  const char *v = said ? said : meta_get(before, key);
  return v ? xstrdup(v) : NULL;
}

/* ---- opening ----------------------------------------------------------------------------------- */

/* "train_step" of "runs/train-step.mlir": a name that MLIR takes. */
static char *name_of(const char *path, const char *ending) {
  const char *base = base_name(path);
  char *name = xstrndup(base, strlen(base) - strlen(ending));
  for (char *p = name; *p; p++)
    if (!isalnum((unsigned char)*p)) *p = '_';
  return name;
}

static void defaults(TrainConfig *c) { c->steps = 100; }

/* What data of files are made to fit: pictures and texts. */
static void read_shapes(Adopted *a) {
  Model *m = &a->model;
  for (int i = 0; i < a->n_args; i++) {
    const Type *t = a->args[i].type;
    if (a->args[i].role != ROLE_BATCH || m->shape[0]) continue;
    const int64_t *d = t->dims;
    bool last = t->rank == 4 && (d[3] == 1 || d[3] == 3),
         first = t->rank == 4 && (d[1] == 1 || d[1] == 3);
    if (last) memcpy(m->shape, d + 1, sizeof m->shape);
    else if (first) m->shape[0] = d[2], m->shape[1] = d[3], m->shape[2] = d[1];
  }
}

static bool lacks_value(const Adopted *a, int i) {
  return a->args[i].role == ROLE_FIXED && !adopt_has_value(a, i) && !a->init_program;
}

/* All arguments without a value, at once. */
static Err *check_fixed(const Adopted *a) {
  Buf all = {0};
  int n = 0, first = -1;
  for (int i = 0; i < a->n_args; i++) {
    if (!lacks_value(a, i)) continue;
    if (!n++) first = i;
    if (n > 8) continue;
    buf_printf(&all, "%s%d (%s), a ", n > 1 ? "; " : "", i, a->args[i].name);
    type_print(&all, a->args[i].type);
  }
  if (!n) return NULL;
  if (n > 8) buf_printf(&all, "; and %d more", n - 8);
  Err *e = n == 1 ? err_new(ERR_INVALID, "argument %s, of '%s' is neither state nor data", all.p,
                            a->program)
                  : err_new(ERR_INVALID, "arguments of '%s' are neither state nor data: %s",
                            a->program, all.p);
  buf_free(&all);
  return err_hint(e,
                  "--set %s=NUMBER gives a value; --state or --batch-args say that it is one; what "
                  "the step changes it must return",
                  a->args[first].name);
}

static Err *check_pixels(const Adopted *a) {
  static const char *const ways[] = {"unit", "normal", "bytes"};
  for (int i = 0; i < 3; i++)
    if (!a->pixels || !strcmp(a->pixels, ways[i])) return NULL;
  return err_new(ERR_INVALID, "--pixels is unit, normal or bytes, not '%s'", a->pixels);
}

/* A state begins in one way; one that goes on has begun. */
static Err *check_start_options(const AdoptOpts *o) {
  const char *flags[] = {o->init ? "--init" : NULL, o->init_program ? "--init-program" : NULL,
                         o->zeros ? "--zeros" : NULL},
             *said = NULL;
  for (int i = 0; i < COUNT_OF(flags); i++) {
    if (!flags[i]) continue;
    if (o->resume)
      return err_new(ERR_INVALID,
                     "--resume goes on with the state of '%s', %s begins a new one: not both",
                     o->resume, flags[i]);
    if (said)
      return err_hint(
          err_new(ERR_INVALID, "%s and %s both say what the state begins with", said, flags[i]),
          "what --init does not have begins with zeros");
    said = flags[i];
  }
  return NULL;
}

/* A program beside the step: what is said, else that of the run that goes on. */
static Err *open_beside(Adopted *a, const char *said, const AdoptOpts *o, const Meta *before,
                        const char *key, Err *(*read)(Adopted *a, const char *path)) {
  const char *name = meta_get(before, key);
  char *path = said ? xstrdup(said) : name ? checkpoint_beside(o->resume, name) : NULL;
  Err *e = path ? read(a, path) : NULL;
  free(path);
  return e;
}

static Err *open_programs_beside(Adopted *a, const AdoptOpts *o) {
  Meta before = {0};
  if (o->resume) TRY(safetensors_meta(o->resume, &before));
  Err *e = open_beside(a, o->eval_program, o, &before, "program-eval", adopt_read_eval);
  if (!e) e = open_beside(a, o->predict_program, o, &before, "program-predict", adopt_read_predict);
  meta_free(&before);
  return e;
}

static Err *open_program(Adopted *a, const AdoptOpts *o) {
  Meta before = {0};
  TRY(check_start_options(o));
  if (o->resume) TRY(safetensors_meta(o->resume, &before));
  a->state_opt = either(o->state, &before, "program-state");
  a->batch_opt = either(o->batch, &before, "program-batch-args");
  a->loss_opt = either(o->loss, &before, "program-loss");
  a->pixels = either(o->pixels, &before, "program-pixels");
  const char *name = meta_get(&before, "model");
  a->name = name ? xstrdup(name) : name_of(a->program, a->ending);
  meta_free(&before);
  TRY(check_pixels(a));
  TRY(stablehlo_open(a->program, &a->bytes, &a->m));
  a->f = module_main(a->m);
  TRY(adopt_read_devices(a));
  TRY(adopt_read_names(a));
  AdoptOpts said = *o;
  said.state = a->state_opt, said.batch = a->batch_opt, said.loss = a->loss_opt;
  TRY(adopt_roles(a, &said));
  for (int i = 0; i < o->n_set; i++) TRY(adopt_set(a, o->set[i]));
  TRY(open_programs_beside(a, o));
  if (o->init) TRY(adopt_read_start(a, o->init));
  if (!o->resume) TRY(check_fixed(a));
  read_shapes(a);
  return NULL;
}

Err *adopt_open(const AdoptOpts *o, Adopted **out) {
  Adopted *a = xcalloc(1, sizeof *a);
  const char *ending = adopt_ending(o->program);
  a->program = xstrdup(o->program);
  a->ending = xstrdup(ending ? ending : "");
  a->init_program = o->init_program ? xstrdup(o->init_program) : NULL;
  a->zeros = o->zeros;
  Err *e = open_program(a, o);
  a->model = (Model){.name = a->name,
                     .summary = "a train step of its own",
                     .data = "synthetic",
                     .defaults = defaults,
                     .shape = {a->model.shape[0], a->model.shape[1], a->model.shape[2]},
                     .devices = a->devices,
                     .whole = a->eval ? &whole_with_eval : &whole};
  if (e) adopt_close(a);
  else *out = a;
  return e;
}

void adopt_close(Adopted *a) {
  if (!a) return;
  adopt_close(a->eval);
  adopt_close(a->predict);
  for (int i = 0; i < a->n_args; i++)
    free(a->args[i].name), free(a->args[i].path), free(a->args[i].wants);
  for (int i = 0; i < a->n_results; i++) free(a->results[i].name), free(a->results[i].path);
  for (int i = 0; i < a->n_extra; i++) free(a->extra_names[i]);
  safetensors_free(a->n_start, a->start);
  free(a->args), free(a->results);
  free(a->name), free(a->program), free(a->ending);
  free(a->state_opt), free(a->batch_opt), free(a->loss_opt), free(a->pixels);
  free(a->start_name), free(a->init_program);
  buf_free(&a->bytes);
  module_free(a->m);
  free(a);
}

const Model *adopt_model(const Adopted *a) { return &a->model; }
int64_t adopt_batch(const Adopted *a) { return a->batch; }

int64_t adopt_eval_batch(const Adopted *a) { return a->eval ? a->eval->batch : 0; }

int64_t adopt_length(const Adopted *a) {
  for (int i = 0; i < a->n_args; i++) {
    const Type *t = a->args[i].type;
    if (a->args[i].role == ROLE_BATCH && t->rank == 2 && dtype_is_int(t->dtype)) return t->dims[1];
  }
  return 0;
}

/* ---- who is who -------------------------------------------------------------------------------- */

static void print_state(const Adopted *a, Buf *out) {
  int n = 0, roots = 0;
  int64_t numbers = 0;
  Buf names = {0};
  char *last = NULL;
  for (int i = 0; i < a->n_args; i++) {
    const AdoptArg *g = &a->args[i];
    if (g->role != ROLE_STATE) continue;
    n++, numbers += type_count(g->type);
    size_t k = strcspn(g->path, "/");
    bool same = last && strlen(last) == k && !strncmp(last, g->path, k);
    if (same || !k) continue;
    free(last);
    last = xstrndup(g->path, k);
    if (roots++ < 6) buf_printf(&names, "%s%s", roots > 1 ? ", " : "", last);
  }
  free(last);
  buf_printf(out, "state: %d of %d arguments (%s%s), %lld numbers", n, a->n_args,
             names.n ? names.p : "found by their types and order", roots > 6 ? ", ..." : "",
             (long long)numbers);
  buf_free(&names);
}

static void print_start(const Adopted *a, Buf *out) {
  int without = 0, n = 0, first = -1;
  for (int i = 0; i < a->n_args; i++) {
    if (a->args[i].role != ROLE_STATE) continue;
    n++;
    if (adopt_start_of(a, i) || adopt_is_key(&a->args[i])) continue;
    if (!without++) first = i;
  }
  if (a->init_program && !a->n_start)
    buf_printf(out, "begins with what '%s' gives", a->init_program);
  else if (a->zeros) buf_cstr(out, "begins with zeros (--zeros)");
  else if (!a->n_start)
    buf_cstr(
        out,
        "begins with MADE-UP numbers (matrices normal, scales one, all else zero): --init FILE "
        "or --init-program PROGRAM give yours");
  else {
    buf_printf(out, "begins with '%s'%s", a->start_name, a->start_in_order ? ", in order" : "");
    if (without)
      buf_printf(out, "; %d of %d, from %s on, are not in it: zeros", without, n,
                 a->args[first].name);
  }
}

void adopt_print(const Adopted *a, const Data *d, bool new_run, Buf *out) {
  print_state(a, out);
  if (new_run) buf_cstr(out, "; "), print_start(a, out);
  for (int i = 0; i < a->n_args; i++) {
    const AdoptArg *g = &a->args[i];
    if (g->role == ROLE_STATE) continue;
    buf_printf(out, "\n%s: %s ", g->role == ROLE_BATCH ? "batch" : "fixed", g->name);
    type_print(out, g->type);
    if (g->role != ROLE_BATCH || g->field < 0) continue;
    const Field *f = &d->fields[g->field];
    buf_printf(out, " from %s", f->name);
    if (f->type == DT_U8 && f->rank == 3 && dtype_is_float(g->type->dtype))
      buf_printf(out, " (%s)",
                 !a->pixels || !strcmp(a->pixels, "unit") ? "bytes / 255; --pixels"
                 : !strcmp(a->pixels, "normal")           ? "less mean, over deviation"
                                                          : "bytes 0 ... 255");
  }
  buf_printf(out, "\nloss: result %d (%s)", a->loss, a->results[a->loss].name);
  if (a->accuracy >= 0)
    buf_printf(out, ", accuracy: result %d (%s)", a->accuracy, a->results[a->accuracy].name);
  buf_byte(out, '\n');
  int64_t answers = adopt_answers(a);
  if (d->labels && answers > 1 && answers < d->classes)
    buf_printf(out,
               "NOTE: '%s' answers %lld numbers for an example, and the data have %lld classes: if "
               "these are classes, the step takes labels that it does not know\n",
               a->predict->program, (long long)answers, (long long)d->classes);
}

/* ---- made-up data ------------------------------------------------------------------------------ */

static Err *get_made(const Data *d, bool test, int64_t index, uint64_t rand, void *const *dst) {
  (void)test, (void)rand;
  for (int k = 0; k < d->n_fields; k++) {
    const Field *f = &d->fields[k];
    int64_t n = 1;
    for (int i = 0; i < f->rank; i++) n *= f->dims[i];
    if (f->type == DT_F32) {
      char name[48];
      snprintf(name, sizeof name, "%d/%lld", k, (long long)index);
      init_fill(INIT(INIT_NORMAL, 1), name, 0, DT_F32, f->rank, f->dims, dst[k]);
      continue;
    }
    for (int64_t i = 0; i < n; i++)
      ((int32_t *)dst[k])[i] =
          (int32_t)(random_word((uint64_t)index, (uint64_t)k, (uint64_t)i) >> 33) %
          (int32_t)d->classes;
  }
  return NULL;
}

Err *adopt_synthetic(const Adopted *a, int64_t classes, Data **out) {
  Data *d = xcalloc(1, sizeof *d);
  Buf names = {0};
  *d = (Data){.name = xstrdup("synthetic"),
              .spec = xstrdup("synthetic"),
              .classes = classes,
              .get = get_made};
  d->n_train = a->batch * 64;
  d->n_test = a->batch;
  size_t at[DATA_FIELDS];
  for (int i = 0; i < a->n_args; i++) {
    const AdoptArg *g = &a->args[i];
    if (g->role != ROLE_BATCH) continue;
    if (d->n_fields == DATA_FIELDS) {
      buf_free(&names);
      data_close(d);
      return err_new(ERR_UNIMPLEMENTED, "'%s' has more than %d batch arguments", a->program,
                     DATA_FIELDS);
    }
    Field *f = &d->fields[d->n_fields];
    *f = (Field){.type = dtype_is_float(g->type->dtype) ? DT_F32 : DT_I32,
                 .rank = g->type->rank - 1};
    if (f->rank) memcpy(f->dims, g->type->dims + 1, sizeof(int64_t) * (size_t)f->rank);
    at[d->n_fields++] = names.n;
    const char *name = g->wants ? g->wants : *g->path ? base_name(g->path) : g->name;
    buf_printf(&names, "%.30s", name);
    buf_byte(&names, 0);
  }
  d->names = names.p;
  for (int i = 0; i < d->n_fields; i++) d->fields[i].name = d->names + at[i];
  *out = d;
  return NULL;
}
