/* The table at the end of `weft train`: the same step on other hardware. The program is built
 * again for each chip (its number of devices decides the batch of one) and estimated by sim;
 * nothing of it is run. */
#include "cli/compare.h"

#include "base/units.h"
#include "chip/chip.h"
#include "prof/prof.h"
#include "sim/sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static const char *const chips[] = {"T4", "A100-40GB", "tpu-v2-8", "tpu-v3-8", "tpu-v5litepod-1"};

typedef struct Row { /* of one device; NaN: not known */
  char name[40];
  bool fits, measured;
  int devices;
  int64_t batch;                                     /* over all of them */
  double memory_bytes, step_s, examples_per_s, used; /* used: the model's FLOP over peak, MFU */
  double energy_j, usd;                              /* of the whole training */
} Row;

static void print_row(Buf *out, const Row *r) {
  char name[60], memory[UNITS_TEXT], step[UNITS_TEXT], rate[UNITS_TEXT], use[UNITS_TEXT],
      energy[UNITS_TEXT], usd[UNITS_TEXT];
  snprintf(name, sizeof name, "%s%s", r->name, r->measured ? " (measured)" : "");
  units_bytes(memory, r->memory_bytes);
  units_time(step, r->step_s);
  snprintf(rate, sizeof rate, "%.0f", r->examples_per_s);
  if (isnan(r->used)) snprintf(use, sizeof use, "-");
  else snprintf(use, sizeof use, "%.1f %%", 100 * r->used);
  units_energy(energy, r->energy_j);
  units_usd(usd, r->usd);
  buf_printf(out, "  %-24s %7d %-5s %11s %10s %12s %7s %11s %10s\n", name, r->devices,
             r->fits ? "yes" : "NO", memory, step, rate, use, energy, usd);
}

static void json_row(Buf *out, const Row *r) {
  buf_printf(
      out,
      "    {\"device\": \"%s\", \"devices\": %d, \"batch\": %lld, \"measured\": %s, \"fits\": %s",
      r->name, r->devices, (long long)r->batch, r->measured ? "true" : "false",
      r->fits ? "true" : "false");
  buf_cstr(out, ", "), buf_json_num(out, "memory_bytes", r->memory_bytes);
  buf_cstr(out, ", "), buf_json_num(out, "step_s", r->step_s);
  buf_cstr(out, ", "), buf_json_num(out, "examples_per_s", r->examples_per_s);
  buf_cstr(out, ", "), buf_json_num(out, "utilisation", r->used);
  buf_cstr(out, ", "), buf_json_num(out, "energy_j", r->energy_j);
  buf_cstr(out, ", "), buf_json_num(out, "usd", r->usd);
  buf_byte(out, '}');
}

/* replicas 0: all devices that the name counts. */
static Err *chip_row(const Model *model, const TrainConfig *config, const Data *data,
                     const char *name, int replicas, int64_t steps, Row *row) {
  ChipRef ref;
  TRY(chip_parse(name, &ref));
  bool whole = model->whole; /* a step from a file has one batch */
  int n = replicas ? replicas : MAX(1, ref.devices);
  if (whole) n = model->devices ? model->devices : config->batch % n ? 1 : n;
  TrainConfig c = *config;
  c.replicas = whole ? 0 : n;
  c.devices = whole ? n : 0;
  c.batch = whole ? config->batch : MAX(1, (config->batch + n - 1) / n);
  int64_t all = whole ? c.batch : c.batch * n;
  StepProgram p;
  TRY(step_build(model, &c, data, true, &p));
  SimReport *r = NULL;
  SimOpts opts = {.devices = n, .where = &ref};
  Err *e = sim_estimate_spmd(p.m, ref.chip, &opts, train_partitions(p.m), &r);
  step_free(&p);
  if (e) return e;
  *row = (Row){.fits = r->fits,
               .devices = n,
               .batch = all,
               .memory_bytes = r->hbm_bytes,
               .step_s = r->time_s,
               .used = r->mfu};
  snprintf(row->name, sizeof row->name, "%s",
           ref.devices > 1 && !(whole && n == 1) ? name : ref.chip->title);
  row->examples_per_s = r->time_s > 0 ? (double)all / r->time_s : NAN;
  row->energy_j = r->energy_j * (double)steps;
  row->usd = r->usd * (double)steps;
  sim_report_free(r);
  return NULL;
}

/* Useful floating-point operations of one step, from the first chip's report. */
static double step_flops(const Model *model, const TrainConfig *config, const Data *data) {
  StepProgram p;
  const Chip *chip;
  SimReport *r = NULL;
  double flops = 0;
  Err *e = chip_find("T4", &chip);
  if (!e) e = step_build(model, config, data, true, &p);
  if (!e) {
    e = sim_estimate(p.m, chip, NULL, &r);
    if (!e) flops = r->flops;
    sim_report_free(r);
    step_free(&p);
  }
  err_free(e);
  return flops;
}

/* What the step holds at once: arguments and temporaries, as the plugin tells them; else the
 * whole process. */
static double measured_memory(const TrainResult *t) {
  const ClientStats *s = &t->stats;
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  double rss = (double)u.ru_maxrss * 1024;
  if (s->argument_bytes < 0 || s->temp_bytes <= 0) return rss;
  double out = s->output_bytes > 0 ? (double)(s->output_bytes - MAX(0, s->alias_bytes)) : 0;
  return fmax((double)t->memory.peak,
              (double)s->argument_bytes + fmax(0, out) + (double)s->temp_bytes);
}

/* Where a batch does not divide: what is computed instead. */
static void note_batch(Buf *notes, const Row *r, int64_t asked) {
  if (r->batch != asked)
    buf_printf(notes,
               "  %s computes %lld examples: %lld do not divide over %d devices, so %lld on each\n",
               r->name, (long long)r->batch, (long long)asked, r->devices,
               (long long)(r->batch / r->devices));
}

Err *compare_print(const Model *model, const TrainConfig *config, const Data *data,
                   const char *device, int replicas, const TrainResult *t, Buf *out, Buf *json) {
  buf_printf(out, "\nOne step of '%s', batch %lld, and what %lld steps take\n", model->name,
             (long long)config->batch, (long long)t->steps);
  buf_printf(out, "  %-24s %7s %-5s %11s %10s %12s %7s %11s %10s\n", "", "devices", "fits",
             "memory", "step", "examples/s", "MFU", "energy", "dollars");
  Buf notes = {0};
  ChipRef own;
  Err *no_chip = chip_parse(device, &own), *e = NULL;
  Row cpu = {.fits = true,
             .measured = true,
             .devices = MAX(1, replicas),
             .batch = config->batch,
             .step_s = t->step_s,
             .energy_j = NAN,
             .usd = NAN};
  snprintf(cpu.name, sizeof cpu.name, "%.20s", device);
  cpu.memory_bytes = measured_memory(t);
  cpu.examples_per_s = t->step_s > 0 ? (double)config->batch / t->step_s : NAN;
  double peak = no_chip ? prof_host_flops() : 0, flops = step_flops(model, config, data);
  cpu.used = peak > 0 && flops > 0 && t->step_s > 0 ? flops / t->step_s / peak : NAN;
  if (!no_chip) { /* what this machine took to compute a chip's numbers says nothing of the chip */
    e = chip_row(model, config, data, device, MAX(1, replicas), t->steps, &cpu);
    snprintf(cpu.name, sizeof cpu.name, "%.24s (this run)", device);
  }
  err_free(no_chip);
  print_row(out, &cpu);
  buf_cstr(json, "[\n");
  json_row(json, &cpu);
  for (int i = 0; i < COUNT_OF(chips) && !e; i++) {
    Row row;
    e = chip_row(model, config, data, chips[i], 0, t->steps, &row);
    e = err_wrap(e, "estimating %s", chips[i]);
    if (e) break;
    print_row(out, &row);
    note_batch(&notes, &row, config->batch);
    buf_cstr(json, ",\n");
    json_row(json, &row);
  }
  buf_cstr(json, "\n  ]");
  buf_add(out, notes.p, notes.n);
  buf_free(&notes);
  buf_cstr(out,
           "  Chips are virtual: estimates from the program, device time only. Energy and dollars: "
           "all steps, the\n"
           "  cheapest whole machines that hold the devices. MFU: the model's FLOP over peak; more "
           "than 100 %\n"
           "  where convolutions need fewer (Winograd). Memory: of one device.\n");
  return e;
}
