/* The report for people and as JSON, and the error of a program that does not fit. */
#include <math.h>
#include <stdlib.h>

#include "base/units.h"
#include "sim/sim.h"

static int by_total(const void *a, const void *b) {
  const SimKernel *x = *(SimKernel *const *)a, *y = *(SimKernel *const *)b;
  double p = x->time_s * x->count, q = y->time_s * y->count;
  return p > q ? -1 : p < q;
}

static const char *owner_words(const SimReport *r, SimOwner o) {
  if (o == SIM_KEPT && r->training) return "activations kept for the backward pass";
  if (o == SIM_GRADIENTS) return "gradients, copies of weights";
  if (o == SIM_WORKING) return "what the running kernel reads and writes";
  return sim_owner_name(o);
}

/* One line for each owner, the largest first, with its largest buffer's name and source line. */
static void print_owners(const SimReport *r, const char *indent, Buf *o) {
  bool done[SIM_OWNERS] = {false};
  for (;;) {
    int best = -1;
    for (int k = 0; k < SIM_OWNERS; k++)
      if (!done[k] && r->owners[k].bytes >= 1 &&
          (best < 0 || r->owners[k].bytes > r->owners[best].bytes))
        best = k;
    if (best < 0) break;
    done[best] = true;
    const SimHolding *h = &r->owners[best];
    buf_cstr(o, indent);
    size_t at = o->n;
    buf_bytes(o, h->bytes);
    while (o->n < at + 12) buf_byte(o, ' ');
    buf_printf(o, " %s", owner_words(r, (SimOwner)best));
    if (h->largest)
      buf_printf(o, "; %s %s %s%s%s", h->n > 1 ? "largest" : "it is", h->largest->name,
                 h->largest->type, h->largest->place[0] ? "  " : "", h->largest->place);
    buf_byte(o, '\n');
  }
  double padding = 0;
  for (int k = 0; k < SIM_OWNERS; k++) padding += r->owners[k].padding;
  if (padding < 0.01 * r->hbm_bytes) return;
  buf_cstr(o, indent);
  size_t at = o->n;
  buf_bytes(o, padding);
  while (o->n < at + 12) buf_byte(o, ' ');
  buf_cstr(o, " of all this is padding to tiles\n");
}

void sim_print(const SimReport *r, int max_kernels, Buf *o) {
  buf_printf(o, "%s", r->chip->title);
  if (r->devices > 1) buf_printf(o, ", %d devices", r->devices);
  buf_cstr(o, "\n\n  memory     ");
  buf_bytes(o, r->hbm_bytes);
  buf_cstr(o, " of ");
  buf_bytes(o, r->limit_bytes);
  buf_printf(o, r->fits ? "  fits" : "  DOES NOT FIT, over by ");
  if (!r->fits) buf_bytes(o, r->hbm_bytes - r->limit_bytes);
  buf_cstr(o, "\n             arguments ");
  buf_bytes(o, r->argument_bytes);
  buf_cstr(o, ", results ");
  buf_bytes(o, r->output_bytes);
  buf_cstr(o, ", shared ");
  buf_bytes(o, r->alias_bytes);
  buf_cstr(o, ", temporaries ");
  buf_bytes(o, r->temp_bytes);
  buf_cstr(o, ", peak with on-chip copies ");
  buf_bytes(o, r->peak_bytes);
  buf_cstr(o, "\n  step time  ");
  buf_time(o, r->time_s);
  if (r->network_s > 0) {
    buf_cstr(o, ", of which network ");
    buf_time(o, r->network_exposed_s);
    if (r->network_s > r->network_exposed_s * 1.001) {
      buf_cstr(o, " (");
      buf_time(o, r->network_s);
      buf_cstr(o, ", the rest under computing)");
    }
  }
  if (r->cycles > 0) buf_printf(o, "  (%.0f cycles with an estimate)", r->cycles);
  char text[UNITS_TEXT];
  buf_printf(o, "\n  work       %s, %.1f %% of peak (MFU)", units_flop(text, r->flops),
             100 * r->mfu);
  buf_cstr(o, "\n  traffic    ");
  buf_bytes(o, r->model_bytes);
  buf_printf(o, " of device memory\n  energy     %s", units_energy(text, r->energy_j));
  if (r->time_s > 0) buf_printf(o, ", %.0f W", r->energy_j / r->time_s);
  buf_byte(o, '\n');
  bool million = r->usd < 1e-4; /* of runs: one costs next to nothing */
  if (!isnan(r->usd))
    buf_printf(o, "  price      %s%s at %.2f USD/h (%s)\n",
               units_usd(text, r->usd * (million ? 1e6 : 1)), million ? " a million steps" : "",
               r->usd_per_hour, r->price_source);
  else buf_cstr(o, "  price      none listed\n");
  if (r->again) {
    buf_printf(
        o, "  note       memory is short: %d array%s given up and computed again, as XLA does, ",
        r->again, r->again > 1 ? "s are" : " is");
    buf_time(o, r->again_s);
    buf_cstr(o, " of the step\n");
  }
  if (r->whole)
    buf_cstr(o, "  note       the program could not be partitioned: this is all devices' work\n");
  if (r->attentions)
    buf_printf(o,
               "  note       %d attention%s as XLA compiles %s, with scores in memory; --attention "
               "fused: in one kernel\n",
               r->attentions, r->attentions > 1 ? "s" : "", r->attentions > 1 ? "them" : "it");
  if (r->eager) {
    buf_cstr(o, "  eager      one operation at a time; ");
    if (r->host_s > 0) buf_time(o, r->host_s), buf_cstr(o, " of it waiting for the host\n");
    else buf_cstr(o, "the host keeps ahead of the device\n");
  }
  if (r->unknown_loops)
    buf_cstr(o, "  note       a loop without a known trip count was counted once\n");
  buf_cstr(o, "\n  memory by owner\n");
  print_owners(r, "    ", o);
  buf_cstr(o, "\n  memory at its fullest\n");
  for (int i = 0; i < r->n_buffers && i < 10; i++) {
    const SimBuffer *b = &r->buffers[i];
    buf_cstr(o, "    ");
    size_t at = o->n;
    buf_bytes(o, b->bytes);
    while (o->n < at + 12) buf_byte(o, ' ');
    buf_printf(o, " %-10s %-28s %s%s%s", b->role, b->name, b->type, b->on_chip ? " on chip" : "",
               b->place[0] ? "  " : "");
    buf_cstr(o, b->place);
    if (b->padding > 0.2 * b->bytes)
      buf_printf(o, "  (%.0f %% padding)", 100 * b->padding / b->bytes);
    buf_byte(o, '\n');
  }
  const SimKernel **s = xmalloc(sizeof *s * (size_t)(r->n_kernels + 1));
  double total = 0;
  for (int i = 0; i < r->n_kernels; i++) {
    s[i] = &r->kernels[i];
    total += s[i]->time_s * s[i]->count;
  }
  if (r->n_kernels) qsort(s, (size_t)r->n_kernels, sizeof *s, by_total);
  buf_printf(o, "\n  kernels (%d)\n    %6s %12s %8s %-8s %10s %12s %6s  %s\n", r->n_kernels,
             "share", "time", "runs", "bound", "GFLOP", "bytes", "util", "name");
  for (int i = 0; i < r->n_kernels && i < max_kernels; i++) {
    buf_printf(o, "    %5.1f%% ", total > 0 ? 100 * s[i]->time_s * s[i]->count / total : 0);
    Buf t = {0};
    buf_time(&t, s[i]->time_s);
    buf_printf(o, "%12s %8.0f %-8s %10.3f ", t.p, s[i]->count, sim_bound_name(s[i]->bound),
               s[i]->flops / 1e9);
    t.n = 0;
    buf_bytes(&t, s[i]->bytes);
    buf_printf(o, "%12s %5.0f%%  %s%s%s%s\n", t.p, 100 * s[i]->utilisation, s[i]->name,
               s[i]->modelled ? " (modelled)" : "", s[i]->place[0] ? "  " : "", s[i]->place);
    buf_free(&t);
  }
  free(s);
}

/* Kernels carry totals over all their runs, so that columns add up. Their cycles are what the
 * chip's own compiler would estimate: 0 for a kernel marked as modelled, which it has no estimate
 * for (its time counts all the same). */
void sim_print_row(const SimReport *r, const char *program, Buf *o) {
  const char *slash = strrchr(program, '/');
  buf_printf(o, "%-32s ", slash ? slash + 1 : program);
  if (!r) {
    buf_printf(o, "%-14s %-5s %12s %12s %7s %10s\n", "chip", "fits", "memory", "step time", "MFU %",
               "USD");
    return;
  }
  Buf memory = {0}, time = {0};
  buf_bytes(&memory, r->hbm_bytes);
  buf_time(&time, r->time_s);
  buf_printf(o, "%-14s %-5s %12s %12s %7.1f ", r->chip->name, r->fits ? "yes" : "NO", memory.p,
             time.p, 100 * r->mfu);
  if (isnan(r->usd)) buf_printf(o, "%10s\n", "-");
  else buf_printf(o, "%10.3g\n", r->usd);
  buf_free(&memory);
  buf_free(&time);
}

void sim_json(const SimReport *r, const char *program, bool one_line, Buf *o) {
  size_t start = o->n;
  buf_byte(o, '{');
  if (program) {
    buf_cstr(o, "\"program\": ");
    buf_json_str(o, program);
    buf_cstr(o, ", ");
  }
  buf_cstr(o, "\"chip\": ");
  buf_json_str(o, r->chip->name);
  buf_printf(o, ", \"devices\": %d, \"fits\": %s, ", r->devices, r->fits ? "true" : "false");
  const struct {
    const char *k;
    double v;
  } f[] = {{"time_s", r->time_s},
           {"cycles", r->cycles},
           {"peak_bytes", r->peak_bytes},
           {"hbm_bytes", r->hbm_bytes},
           {"limit_bytes", r->limit_bytes},
           {"argument_bytes", r->argument_bytes},
           {"output_bytes", r->output_bytes},
           {"alias_bytes", r->alias_bytes},
           {"temp_bytes", r->temp_bytes},
           {"network_s", r->network_s},
           {"network_exposed_s", r->network_exposed_s},
           {"computed_again_s", r->again_s},
           {"host_s", r->host_s},
           {"flops", r->flops},
           {"bytes", r->model_bytes},
           {"mfu", r->mfu},
           {"energy_j", r->energy_j},
           {"usd", r->usd},
           {"usd_per_hour", r->usd_per_hour}};
  for (int i = 0; i < COUNT_OF(f); i++) {
    buf_json_num(o, f[i].k, f[i].v);
    buf_cstr(o, ", ");
  }
  buf_cstr(o, "\"price_source\": ");
  buf_json_str(o, r->price_source);
  buf_printf(o, ", \"unknown_loops\": %s,\n \"kernels\": [", r->unknown_loops ? "true" : "false");
  for (int i = 0; i < r->n_kernels; i++) {
    const SimKernel *k = &r->kernels[i];
    buf_cstr(o, i ? ",\n  {\"name\": " : "\n  {\"name\": ");
    buf_json_str(o, k->name);
    buf_cstr(o, ", \"op\": ");
    buf_json_str(o, k->op);
    buf_cstr(o, ", ");
    buf_json_num(o, "cycles", (r->chip->kind == CHIP_TPU ? k->est_cycles : k->cycles) * k->count);
    buf_cstr(o, ", ");
    buf_json_num(o, "time_s", k->time_s * k->count);
    buf_cstr(o, ", ");
    buf_json_num(o, "count", k->count);
    buf_cstr(o, ", ");
    buf_json_num(o, "run_time_s", k->time_s);
    buf_cstr(o, ", ");
    buf_json_num(o, "start_s", k->start_s);
    buf_printf(o, ", \"bound\": \"%s\", ", sim_bound_name(k->bound));
    buf_json_num(o, "flops", k->flops * k->count);
    buf_cstr(o, ", ");
    buf_json_num(o, "bytes", k->bytes * k->count);
    buf_cstr(o, ", ");
    buf_json_num(o, "utilisation", k->utilisation);
    buf_printf(o, ", \"modelled\": %s, \"place\": ", k->modelled ? "true" : "false");
    buf_json_str(o, k->place);
    buf_byte(o, '}');
  }
  buf_cstr(o, "],\n \"owners\": [");
  for (int i = 0, n = 0; i < SIM_OWNERS; i++) {
    const SimHolding *h = &r->owners[i];
    if (h->bytes <= 0) continue;
    buf_printf(o, "%s\n  {\"owner\": \"%s\", ", n++ ? "," : "", sim_owner_name((SimOwner)i));
    buf_json_num(o, "bytes", h->bytes);
    buf_cstr(o, ", ");
    buf_json_num(o, "padding", h->padding);
    buf_printf(o, ", \"buffers\": %d, \"largest\": ", h->n);
    buf_json_str(o, h->largest ? h->largest->name : "");
    buf_cstr(o, ", \"place\": ");
    buf_json_str(o, h->largest ? h->largest->place : "");
    buf_byte(o, '}');
  }
  buf_cstr(o, "],\n \"buffers\": [");
  for (int i = 0; i < r->n_buffers && i < 200; i++) {
    const SimBuffer *b = &r->buffers[i];
    buf_cstr(o, i ? ",\n  {\"name\": " : "\n  {\"name\": ");
    buf_json_str(o, b->name);
    buf_cstr(o, ", \"role\": ");
    buf_json_str(o, b->role);
    buf_cstr(o, ", \"type\": ");
    buf_json_str(o, b->type);
    buf_cstr(o, ", ");
    buf_json_num(o, "bytes", b->bytes);
    buf_cstr(o, ", ");
    buf_json_num(o, "padding", b->padding);
    buf_printf(o, ", \"owner\": \"%s\"", sim_owner_name(b->owner));
    buf_printf(o, ", \"on_chip\": %s, \"place\": ", b->on_chip ? "true" : "false");
    buf_json_str(o, b->place);
    buf_byte(o, '}');
  }
  buf_cstr(o, "]}");
  for (size_t i = start; i < o->n && one_line; i++) /* strings have none */
    if (o->p[i] == '\n') o->p[i] = ' ';
  buf_byte(o, '\n');
}

Err *sim_fit_error(const SimReport *r, const char *program) {
  return sim_fit_error_beside(r, program, 0);
}

#define ALONE 4096 /* bytes of arguments that make no batch: scalars, padded */

Err *sim_fit_error_beside(const SimReport *r, const char *program, double held) {
  double over = r->hbm_bytes + held - r->limit_bytes;
  if (over <= 0) return NULL;
  Buf b = {0};
  buf_printf(&b, "'%s' needs ", program);
  buf_bytes(&b, r->hbm_bytes);
  if (held > 0) {
    buf_cstr(&b, " beside ");
    buf_bytes(&b, held);
    buf_cstr(&b, " of other arrays; together");
  }
  buf_cstr(&b, held > 0 ? " more than the " : " of ");
  buf_bytes(&b, r->limit_bytes);
  buf_printf(&b, " on %s, over by ", r->chip->name);
  buf_bytes(&b, over);
  buf_byte(&b, '\n');
  print_owners(r, "  ", &b);
  if (held > 0) {
    buf_cstr(&b, "  ");
    size_t at = b.n;
    buf_bytes(&b, held);
    while (b.n < at + 12) buf_byte(&b, ' ');
    buf_cstr(&b, " other arrays on the device, no arguments of this program\n");
  }
  while (b.n && b.p[b.n - 1] == '\n') b.p[--b.n] = 0;
  Err *e = err_new(ERR_EXHAUSTED, "%s", b.p);
  buf_free(&b);
  double fixed = 0; /* what a smaller batch does not shrink */
  for (int o = SIM_PARAMETERS; o <= SIM_STATE; o++) fixed += r->owners[o].bytes;
  fixed += r->owners[SIM_GRADIENTS].bytes;
  double scales = r->hbm_bytes - fixed, room = r->limit_bytes - fixed - held;
  const SimHolding *slots = &r->owners[SIM_SLOTS];
  if (held > 0 && over <= held && r->owners[SIM_INPUT].bytes <= ALONE)
    err_hint(e, "it fits without the other arrays: delete those that are not needed, or make this "
                "one in parts, in a narrower type, or shard it over more devices");
  else if (held > 0 && over <= held)
    err_hint(e,
             "it fits without the other arrays: delete those that are not needed (optimizer slots "
             "when only evaluating), or take %.0f %% of this batch: weft advise compares these",
             floor(97 * MAX(room, 0) / scales));
  else if (r->owners[SIM_INPUT].bytes <= ALONE && fixed <= ALONE)
    err_hint(e, "make it in parts, in a narrower type, or shard it over more devices");
  else if (room > 0 && scales > 0 && room / scales > 0.01)
    err_hint(e,
             "%.0f %% of this batch should fit; or %s, more "
             "devices or a chip with more memory: weft advise compares these",
             floor(97 * room / scales),
             r->training ? "bfloat16 activations, recomputing them" : "bfloat16 activations");
  else
    err_hint(
        e,
        "no batch is small enough: the state alone takes %.2f GiB%s; use narrower state, shard "
        "it over more devices, or take a chip with more memory: weft advise compares these",
        fixed / 1073741824.0, slots->bytes > 0 ? ", optimizer slots included" : "");
  return e;
}
