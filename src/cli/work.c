/* A model of the zoo, or a program in a file, as work. */
#include "cli/work.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"

/* ---- a model of the zoo -------------------------------------------------------------------------- */

static Err *zoo_build(void *arg, const AdviseCase *c, Module **out) {
  const CliWork *z = arg;
  TrainConfig t = z->config;
  t.batch = c->batch;
  t.replicas = c->training ? c->devices : 1;
  if (c->narrow) t.compute = DT_BF16;
  StepProgram p;
  TRY(step_build(z->model, &t, z->data, c->training, &p));
  *out = p.m;
  p.m = NULL;
  step_free(&p);
  return NULL;
}

/* Shapes are all that is needed: a data set whose files are not here is made up. */
static Err *zoo_data(const CliWorkOpts *a, CliWork *z) {
  const Model *m = z->model;
  const TrainConfig *c = &z->config;
  DataOpts o = model_data(m, c);
  o.dir = a->data_dir;
  o.augment = false;
  Err *e = a->data ? data_open(a->data, &o, &z->data) : NULL;
  if (e && e->code == ERR_NOT_FOUND && !strncmp(a->data, m->data, strlen(m->data))) {
    fprintf(stderr, "weft %s: the files of '%s' are not here; shapes of the model's own\n", a->verb,
            a->data);
    err_free(e);
    e = NULL;
  }
  return !e && !z->data ? data_open("synthetic", &o, &z->data) : e;
}

static Err *zoo_work(const CliWorkOpts *a, CliWork *z) {
  TrainConfig *c = &z->config;
  *c = (TrainConfig){.seed = 1, .compute = a->compute};
  z->model->defaults(c);
  c->compute = a->compute;
  if (a->batch) c->batch = a->batch;
  if (a->length) c->length = a->length;
  if (a->size) c->size = a->size;
  TRY(zoo_data(a, z));
  double epochs = a->epochs > 0 ? a->epochs : c->epochs;
  double steps = a->steps > 0 ? a->steps
                 : c->steps && !a->epochs
                     ? (double)c->steps
                     : epochs * floor((double)z->data->n_train / (double)c->batch);
  z->work = (AdviseWork){.name = z->model->name,
                         .batch = c->batch,
                         .eval_batch = a->eval_batch ? a->eval_batch : c->batch,
                         .steps = steps,
                         .length = c->length,
                         .can_narrow = c->compute == DT_F32,
                         .build = zoo_build,
                         .arg = z};
  return NULL;
}

/* ---- a program ------------------------------------------------------------------------------------ */

static Err *program_work(const char *what, const CliWorkOpts *a, CliWork *out) {
  AdviseWork *w = &out->work;
  Module *m = NULL;
  Err *e = cli_program(what, &m);
  if (!e) e = advise_program(m, what, w, &out->keep);
  int64_t want = a->batch ? a->batch : a->eval_batch;
  if (!e && want && w->batch) w->batch = want;
  else if (!e && want) w->eval_batch = want;
  if (!e) w->steps = a->steps;
  module_free(m);
  return e;
}

bool cli_work_is_file(const char *what) {
  return access(what, R_OK) == 0 || strchr(what, '/') || str_ends(str_from(what), ".mlir") ||
         str_ends(str_from(what), ".mlirbc");
}

Err *cli_work_open(const char *what, const CliWorkOpts *o, CliWork *out) {
  *out = (CliWork){0};
  Err *e = zoo_find(what, &out->model);
  if (!e) return zoo_work(o, out);
  if (!cli_work_is_file(what) && !strchr(what, '.'))
    return err_wrap(e, "neither a file nor a model");
  err_free(e);
  out->model = NULL;
  return program_work(what, o, out);
}

void cli_work_close(CliWork *w) {
  advise_program_free(w->keep);
  data_close(w->data);
}
