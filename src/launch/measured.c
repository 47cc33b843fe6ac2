/* What earlier runs teach plans: a model's steps on a chip, measured by planned. */
#include <math.h>
#include <stdlib.h>

#include "launch/launch_priv.h"

#define LEAST_STEPS 5 /* the first ones are slow */

/* Measured by planned; NaN: the run says nothing, or not of the chip that it was planned for. */
static double ratio_of(const RunRow *r, const char *model) {
  bool good =
      r->state && !strcmp(r->state, "done") && r->gpus > 0 && r->model && !strcmp(r->model, model);
  if (!good || !(r->step >= LEAST_STEPS) || !(r->step_s > 0) || !(r->plan_step_s > 0)) return NAN;
  return r->step_s / r->plan_step_s * (r->plan_ratio > 0 ? r->plan_ratio : 1);
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void chip_of(const RunRows *rows, const char *model, const char *chip, LaunchMeasures *out) {
  VEC(double) all = {0};
  for (int i = 0; i < out->n; i++)
    if (!strcmp(out->v[i].chip, chip)) return;
  for (int i = 0; i < rows->n; i++) {
    double v = ratio_of(&rows->v[i], model);
    if (!isnan(v) && !strcmp(rows->v[i].chip, chip)) *vec_push(&all) = v;
  }
  qsort(all.v, (size_t)all.n, sizeof *all.v, by_size);
  LaunchMeasured *m = vec_push(out);
  *m = (LaunchMeasured){.ratio = (all.v[all.n / 2] + all.v[(all.n - 1) / 2]) / 2, .runs = all.n};
  snprintf(m->chip, sizeof m->chip, "%s", chip);
  vec_free(&all);
}

Err *launch_measured(const char *model, LaunchMeasures *out) {
  History *h;
  RunRows rows;
  *out = (LaunchMeasures){0};
  if (!history_exists()) return NULL;
  TRY(history_open(&h));
  Err *e = history_get(h, NULL, &rows);
  for (int i = 0; i < rows.n; i++)
    if (!isnan(ratio_of(&rows.v[i], model))) chip_of(&rows, model, rows.v[i].chip, out);
  run_rows_free(&rows);
  history_close(h);
  return e;
}
