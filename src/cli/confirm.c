/* A plan beside what Google's compiler says of the same program: it compiles for a topology without a device. */
#include "cli/confirm.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "cli/cli.h"
#include "cli/layout_program.h"
#include "sim/sim.h"
#include "stablehlo/stablehlo.h"

/* As libtpu names a slice: "v5e:4x4", "v5p:2x2x1"; no smaller than a host's four chips. */
static void topology(const PlanChoice *c, Buf *o) {
  const char *name = c->chip->name;
  buf_printf(o, "%s:", !strncmp(name, "tpu-", 4) ? name + 4 : name);
  int dims = chip_num(c->chip, "ici_links", 4) >= 6 ? 3 : 2;
  const int host[] = {2, 2, 1}, *box = c->chips <= 4 ? host : c->slice.dims;
  for (int i = 0; i < dims; i++) buf_printf(o, "%s%d", i ? "x" : "", box[i]);
}

static const char *or_no(char s[UNITS_TEXT], double bytes) {
  return bytes >= 0 ? units_bytes(s, bytes) : "-";
}

/* Bytes of it by weft and by libtpu; negative: not told. */
static void side(const char *what, double ours, double theirs) {
  char a[UNITS_TEXT], b[UNITS_TEXT];
  printf("  %-12s %12s %12s", what, or_no(a, ours), or_no(b, theirs));
  if (ours > 0 && theirs > 0) printf("  %+6.1f %%", 100 * (ours / theirs - 1));
  printf("\n");
}

/* libtpu's own peak counts what lies on the chip, too; without one it is what has to fit in device memory. */
static double peak_of(const ClientStats *s) {
  if (s->peak_bytes > 0) return (double)s->peak_bytes;
  return (double)(s->argument_bytes + s->output_bytes - s->alias_bytes + s->temp_bytes);
}

static void compare(const SimReport *r, const ClientStats *s) {
  printf("  %-12s %12s %12s\n", "", "weft", "libtpu");
  side("arguments", r->argument_bytes, (double)s->argument_bytes);
  side("results", r->output_bytes - r->alias_bytes, (double)(s->output_bytes - s->alias_bytes));
  side("temporaries", r->temp_bytes, (double)s->temp_bytes);
  side("peak", s->peak_bytes > 0 ? r->peak_bytes : r->hbm_bytes, peak_of(s));
  printf("  %-12s %12s %12s\n", "fits", r->fits ? "yes" : "no", "yes"); /* it compiled */
  if (s->optimal_s > 0)
    printf("  %-12s %9.3f ms %9.3f ms  (its cost analysis, not the cycles of its schedule)\n",
           "time", 1e3 * r->time_s, 1e3 * s->optimal_s);
}

static Err *compile(const char *libtpu, const char *slice, const Module *m, const PlanChoice *c,
                    int partitions, ClientStats *out) {
  Buf text = {0};
  char *platform = NULL;
  int n = c->job.layout.devices;
  ClientCompileOpts opts = {.replicas = partitions > 1 ? 1 : n, .partitions = MAX(1, partitions)};
  stablehlo_write_text(&text, m, &(TextOpts){0});
  Err *e = client_compile_only(libtpu, slice, (Str){text.p, text.n}, &opts, out, &platform);
  free(platform);
  buf_free(&text);
  return e;
}

static Err *first_tpu(const PlanAnswer *a, const PlanChoice **out) {
  *out = NULL;
  for (int i = 0; i < a->choices.n && !*out; i++)
    if (a->choices.v[i].chip->kind == CHIP_TPU) *out = &a->choices.v[i];
  if (*out && (*out)->slice.slices > 1)
    return err_hint(err_new(ERR_INVALID, "--confirm compiles for one slice, and %d %s are %d",
                            (*out)->chips, (*out)->chip->title, (*out)->slice.slices),
                    "name fewer chips: --chips %s:%d", (*out)->chip->name, (*out)->slice.chips);
  if (*out) return NULL;
  return err_hint(err_new(ERR_INVALID, "--confirm: no choice is a TPU"), "--chips tpu-v5e");
}

/* Compiles the program of a choice; *out is what libtpu says, *does_not_fit what it says of one that is too large. */
static Err *ask(const char *libtpu, const Module *m, const PlanChoice *c, int partitions,
                ClientStats *out, char **does_not_fit) {
  Buf slice = {0};
  *does_not_fit = NULL;
  topology(c, &slice);
  printf(" compiled by %s for %s:\n", libtpu, slice.p);
  fflush(stdout);
  double start = time_now_s();
  Err *e = err_wrap(compile(libtpu, slice.p, m, c, partitions, out), "libtpu, for %s", slice.p);
  if (e && e->code == ERR_EXHAUSTED) {
    *does_not_fit = xstrndup(e->msg, strcspn(e->msg, "\n"));
    err_free(e), e = NULL;
  }
  if (!e) printf("  (compiling took %.1f s)\n", time_now_s() - start);
  buf_free(&slice);
  return e;
}

Err *cli_confirm(const char *libtpu, const AdviseWork *w, const PlanAnswer *a) {
  const PlanChoice *c;
  TRY(first_tpu(a, &c));
  Module *m = NULL;
  SimReport *r = NULL;
  ClientStats stats;
  char *too_large = NULL;
  Err *e = plan_program_module(w, c, &m);
  SimOpts opts = {.devices = c->job.layout.devices};
  if (!e) e = sim_estimate_spmd(m, c->chip, &opts, w->partitions, &r);
  if (!e) {
    printf("\n%s:%d, %g examples a device,", c->chip->name, c->chips, c->job.layout.mbs);
    e = ask(libtpu, m, c, w->partitions, &stats, &too_large);
  }
  if (!e && too_large) printf("  libtpu says that it does not fit: %s\n", too_large);
  else if (!e) compare(r, &stats);
  free(too_large);
  sim_report_free(r);
  module_free(m);
  return e;
}

/* The plan's own count of bytes beside the compiler's. */
static void compare_plan(const PlanStep *s, const ClientStats *t, const char *too_large) {
  double state = s->owner[PLAN_OWN_WEIGHTS] + s->owner[PLAN_OWN_SLOTS];
  printf("  %-12s %12s %12s\n", "", "plan", "libtpu");
  side("state", state, too_large ? -1 : (double)t->argument_bytes);
  side("the rest", s->peak_bytes - state, too_large ? -1 : peak_of(t) - (double)t->argument_bytes);
  side("peak", s->peak_bytes, too_large ? -1 : peak_of(t));
  printf("  %-12s %12s %12s\n", "fits", s->fits ? "yes" : "no", too_large ? "no" : "yes");
  if (too_large) printf("  %s\n", too_large);
}

Err *cli_confirm_shape(const char *libtpu, const PlanAnswer *a) {
  const PlanChoice *c;
  TRY(first_tpu(a, &c));
  Module *m = NULL;
  ClientStats stats;
  char *too_large = NULL;
  TRY(err_wrap(layout_program(&c->job, &m), "%s:%d", c->chip->name, c->chips));
  printf("\n%s:%d, its train step (%d x %d ways, microbatches of %g),", c->chip->name, c->chips,
         c->job.layout.dp, c->job.layout.tp, c->job.layout.mbs);
  Err *e = ask(libtpu, m, c, c->job.layout.devices, &stats, &too_large);
  if (!e) compare_plan(&c->step, &stats, too_large);
  free(too_large);
  module_free(m);
  return e;
}
