/* A plan beside what Google's compiler says of the same program: it compiles for a topology without a device. */
#include "cli/confirm.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "cli/cli.h"
#include "net/net.h"
#include "sim/sim.h"
#include "stablehlo/stablehlo.h"

/* As libtpu names a slice: "v5e:4x4", "v5p:2x2x1"; no smaller than a host's four chips. */
static Err *topology(const PlanChoice *c, Buf *o) {
  Net net;
  const char *name = c->chip->name;
  TRY(net_open(c->chip, c->job.layout.devices, NULL, &net));
  buf_printf(o, "%s:", !strncmp(name, "tpu-", 4) ? name + 4 : name);
  bool flat = !strcmp(name, "tpu-v2") || !strcmp(name, "tpu-v3") || !strcmp(name, "tpu-v5e") ||
              !strcmp(name, "tpu-v6e");
  int dims = flat ? 2 : 3;
  if (c->chips <= 4) {
    buf_cstr(o, flat ? "2x2" : "2x2x1");
    return NULL;
  }
  for (int i = 0; i < dims; i++)
    buf_printf(o, "%s%d", i ? "x" : "", i < net.n_dims ? net.dims[i] : 1);
  return NULL;
}

static void side(const char *what, double ours, double theirs) {
  char a[UNITS_TEXT], b[UNITS_TEXT];
  printf("  %-12s %12s %12s", what, units_bytes(a, ours), units_bytes(b, theirs));
  if (theirs > 0) printf("  %+6.1f %%", 100 * (ours / theirs - 1));
  printf("\n");
}

static void compare(const SimReport *r, const ClientStats *s) {
  printf("  %-12s %12s %12s\n", "", "weft", "libtpu");
  side("arguments", r->argument_bytes, (double)s->argument_bytes);
  side("results", r->output_bytes - r->alias_bytes, (double)(s->output_bytes - s->alias_bytes));
  side("temporaries", r->temp_bytes, (double)s->temp_bytes);
  double theirs =
      s->peak_bytes > 0
          ? (double)s->peak_bytes
          : (double)(s->argument_bytes + s->output_bytes - s->alias_bytes + s->temp_bytes);
  side("peak", r->hbm_bytes, theirs);
  printf("  %-12s %12s %12s\n", "fits", r->fits ? "yes" : "no", "yes"); /* it compiled */
  if (s->optimal_s > 0)
    printf("  %-12s %9.3f ms %9.3f ms\n", "time", 1e3 * r->time_s, 1e3 * s->optimal_s);
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

Err *cli_confirm(const char *libtpu, const AdviseWork *w, const PlanAnswer *a) {
  const PlanChoice *c = NULL;
  for (int i = 0; i < a->choices.n && !c; i++)
    if (a->choices.v[i].chip->kind == CHIP_TPU) c = &a->choices.v[i];
  if (!c) return err_hint(err_new(ERR_INVALID, "--confirm: no choice is a TPU"), "--chips tpu-v5e");
  Buf slice = {0};
  Module *m = NULL;
  SimReport *r = NULL;
  ClientStats stats;
  Err *e = topology(c, &slice);
  if (!e) e = plan_program_module(w, c, &m);
  SimOpts opts = {.devices = c->job.layout.devices};
  if (!e) e = sim_estimate_spmd(m, c->chip, &opts, w->partitions, &r);
  if (!e) {
    printf("\n%s:%d, %g examples a device, compiled by %s for %s:\n", c->chip->name, c->chips,
           c->job.layout.mbs, libtpu, slice.p);
    fflush(stdout);
    double start = time_now_s();
    e = err_wrap(compile(libtpu, slice.p, m, c, w->partitions, &stats), "libtpu, for %s", slice.p);
    if (!e) compare(r, &stats), printf("  (compiling took %.1f s)\n", time_now_s() - start);
  }
  sim_report_free(r);
  module_free(m);
  buf_free(&slice);
  return e;
}
