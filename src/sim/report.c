/* The report for people, and the error of a program that does not fit. */
#include <math.h>
#include <stdlib.h>

#include "base/path.h"
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
  if (o == SIM_OTHER) return "space that kernels work in";
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
  if (padding < 1 || padding < 0.01 * r->hbm_bytes) return;
  buf_cstr(o, indent);
  size_t at = o->n;
  buf_bytes(o, padding);
  while (o->n < at + 12) buf_byte(o, ' ');
  buf_cstr(o, " of all this is padding to tiles\n");
}

static void print_memory(const SimReport *r, Buf *o) {
  buf_cstr(o, "  memory     ");
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
  buf_byte(o, '\n');
}

static void print_host(const SimReport *r, Buf *o) {
  if (r->host_bytes <= 0 && r->host_transfer_s <= 0) return;
  buf_cstr(o, "  host       ");
  buf_bytes(o, r->host_bytes);
  buf_cstr(o, " of its memory, beside the device's; copies take ");
  buf_time(o, r->host_transfer_s);
  buf_cstr(o, ", of which exposed ");
  buf_time(o, r->host_exposed_s);
  buf_byte(o, '\n');
}

static void print_time(const SimReport *r, Buf *o) {
  buf_cstr(o, "  step time  ");
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
  if (r->exposed_copy_s > 1e-3 * r->time_s) {
    buf_cstr(o, ", of which waiting for transfers ");
    buf_time(o, r->exposed_copy_s);
  }
  if (r->cycles > 0) buf_printf(o, "  (%.0f cycles with an estimate)", r->cycles);
  buf_byte(o, '\n');
}

static void print_servers(const SimReport *r, Buf *o) {
  if (!r->server || r->network_s <= 0) return;
  int gpus = MAX(1, r->server->gpus), n = (r->devices + gpus - 1) / gpus;
  buf_printf(o, "  servers    %d x %s", n, r->server->title);
  if (r->server_rented || !r->server_named)
    buf_printf(o, ", %s; of others: --chip %s:%d@NAME",
               r->server_rented ? "where it costs least" : "the usual ones", r->chip->name,
               r->devices);
  buf_byte(o, '\n');
}

static void print_work(const SimReport *r, Buf *o) {
  char text[UNITS_TEXT];
  buf_printf(o, "  work       %s, %.1f %% of peak (MFU)",
             units_flop(text, r->flops - r->flops_recomputed), 100 * r->mfu);
  if (r->flops_recomputed > 0)
    buf_printf(o, "; with %s computed again %.1f %% (HFU)", units_flop(text, r->flops_recomputed),
               100 * r->hfu);
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
}

void sim_unknowns(const SimReport *r, Buf *o) {
  if (r->unknown_calls)
    buf_printf(o, "%d custom call%s of unknown cost (%s), counted as the bytes %s",
               r->unknown_calls, r->unknown_calls > 1 ? "s" : "", r->unknown_names,
               r->unknown_calls > 1 ? "they move" : "it moves");
  if (r->unknown_calls && r->unknown_loops) buf_cstr(o, "; ");
  if (r->unknown_loops)
    buf_printf(o, "%d loop%s of unknown length, counted once", r->unknown_loops,
               r->unknown_loops > 1 ? "s" : "");
}

static void print_notes(const SimReport *r, Buf *o) {
  if (r->rematerialized) {
    buf_printf(
        o, "  note       memory is short: %d array%s given up and computed again, as XLA does, ",
        r->rematerialized, r->rematerialized > 1 ? "s are" : " is");
    buf_time(o, r->rematerialized_s);
    buf_cstr(o, " of the step\n");
  }
  if (r->whole)
    buf_cstr(o, "  note       the program could not be partitioned: this is all devices' work\n");
  if (r->replicated)
    buf_printf(o,
               "  note       the program is not partitioned: whole on each of %d devices; memory, "
               "work and "
               "time are of one, energy and price of all\n",
               r->devices);
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
  if (r->chip->kind == CHIP_TPU && !chip_fact(r->chip, "fit.base"))
    buf_cstr(o,
             "  note       no coefficients are fitted to this chip: times follow from its clock, "
             "bandwidth and peak\n");
  if (!r->unknown_loops && !r->unknown_calls) return;
  buf_cstr(o, "  note       ");
  sim_unknowns(r, o);
  buf_byte(o, '\n');
}

static void print_buffers(const SimReport *r, int most, Buf *o) {
  for (int i = 0; i < r->n_buffers && i < most; i++) {
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
}

static void print_kernels(const SimReport *r, int most, Buf *o) {
  const SimKernel **s = xmalloc(sizeof *s * (size_t)(r->n_kernels + 1));
  double total = 0;
  for (int i = 0; i < r->n_kernels; i++) {
    s[i] = &r->kernels[i];
    total += s[i]->time_s * s[i]->count;
  }
  if (r->n_kernels) qsort(s, (size_t)r->n_kernels, sizeof *s, by_total);
  buf_printf(o, "  kernels (%d)\n    %6s %12s %8s %-8s %10s %12s %6s  %s\n", r->n_kernels, "share",
             "time", "runs", "bound", "GFLOP", "bytes", "util", "name");
  for (int i = 0; i < r->n_kernels && i < most; i++) {
    buf_printf(o, "    %5.1f%% ", total > 0 ? 100 * s[i]->time_s * s[i]->count / total : 0);
    Buf t = {0};
    buf_time(&t, s[i]->time_s);
    buf_printf(o, "%12s %8.0f %-8s %10.3f ", t.p, s[i]->count, sim_bound_name(s[i]->bound),
               s[i]->flops / 1e9);
    t.n = 0;
    buf_bytes(&t, s[i]->bytes);
    buf_printf(o, "%12s %5.0f%%  %s%s%s%s\n", t.p, 100 * s[i]->utilisation, s[i]->name,
               s[i]->unknown    ? " (unknown cost)"
               : s[i]->modelled ? " (modelled)"
                                : "",
               s[i]->place[0] ? "  " : "", s[i]->place);
    buf_free(&t);
  }
  free(s);
}

void sim_print(const SimReport *r, int max_kernels, Buf *o) {
  buf_printf(o, "%s", r->chip->title);
  if (r->devices > 1) buf_printf(o, ", %d devices", r->devices);
  buf_cstr(o, "\n\n");
  print_memory(r, o);
  print_host(r, o);
  print_time(r, o);
  print_servers(r, o);
  print_work(r, o);
  print_notes(r, o);
  buf_cstr(o, "\n  memory by owner\n");
  print_owners(r, "    ", o);
  buf_cstr(o, "\n  memory at its fullest\n");
  print_buffers(r, 10, o);
  buf_byte(o, '\n');
  print_kernels(r, max_kernels, o);
}

void sim_print_row(const SimReport *r, const char *program, const char *chip, Buf *o) {
  buf_printf(o, "%-32s ", base_name(program));
  if (!r) {
    buf_printf(o, "%-14s %-5s %12s %12s %7s %10s\n", "chip", "fits", "memory", "step time", "MFU %",
               "USD");
    return;
  }
  Buf memory = {0}, time = {0};
  buf_bytes(&memory, r->hbm_bytes);
  buf_time(&time, r->time_s);
  buf_printf(o, "%-14s %-5s %12s %12s %7.1f ", chip, r->fits ? "yes" : "NO", memory.p, time.p,
             100 * r->mfu);
  if (isnan(r->usd)) buf_printf(o, "%10s", "-");
  else buf_printf(o, "%10.3g", r->usd);
  if (r->unknown_calls || r->unknown_loops) buf_cstr(o, "  "), sim_unknowns(r, o);
  buf_byte(o, '\n');
  buf_free(&memory);
  buf_free(&time);
}

#define ALONE 4096 /* bytes of arguments that make no batch: scalars, padded */

/* What a smaller batch does not shrink: state, its gradients, and new state beside the old. */
static double fixed_bytes(const SimReport *r) {
  double state = 0, gradients = r->owners[SIM_GRADIENTS].bytes;
  for (int o = SIM_PARAMETERS; o <= SIM_STATE; o++) state += r->owners[o].bytes;
  double fresh = r->training ? MAX(0, state - r->alias_bytes) : 0;
  return state + gradients + MIN(fresh, r->owners[SIM_RESULTS].bytes);
}

/* A batch that should fit: "batch 29 instead of 3000", or its share of this one where that is not
 * known; nothing when it is less than one example. */
static void smaller_batch(const SimReport *r, double share, Buf *o) {
  int64_t n = (int64_t)floor(share * (double)r->batch);
  int64_t unit = n >= 64 * r->devices ? 8 * r->devices : r->devices; /* odd ones are padded */
  if (n > unit) n -= n % unit;
  if (n > 0) buf_printf(o, "batch %lld instead of %lld", (long long)n, (long long)r->batch);
  else if (!r->batch && share >= 0.1) buf_printf(o, "%.0f %% of this batch", floor(100 * share));
  else if (!r->batch && share > 0) buf_printf(o, "%.2g %% of this batch", 100 * share);
}

static Err *hint_to_fit(const SimReport *r, double held, double over, Err *e) {
  double fixed = fixed_bytes(r), room = r->limit_bytes - fixed - held;
  double scales = r->hbm_bytes - fixed, share = scales > 0 ? 0.97 * MAX(room, 0) / scales : 0;
  bool alone = r->owners[SIM_INPUT].bytes <= ALONE; /* no examples: an array is made */
  const char *narrower =
      r->training ? "bfloat16 activations, recomputing them" : "bfloat16 activations";
  char state[UNITS_TEXT], rest[UNITS_TEXT];
  units_bytes(state, fixed);
  Buf batch = {0};
  smaller_batch(r, MIN(share, 1), &batch);
  if (held > 0 && over <= held && (alone || !batch.n))
    err_hint(e, "it fits without the other arrays: delete those that are not needed, or make this "
                "one in parts, in a narrower type, or shard it over more devices");
  else if (held > 0 && over <= held)
    err_hint(e,
             "it fits without the other arrays: delete those that are not needed (optimizer slots "
             "when only evaluating), or take %s: weft advise compares these",
             batch.p);
  else if (fixed <= ALONE || (alone && !r->training && !r->batch))
    err_hint(e, "make it in parts, in a narrower type, or shard it over more devices");
  else if (room > 0 && batch.n)
    err_hint(e,
             "%s should fit; or %s, more devices or a chip with more memory: weft advise compares "
             "these",
             batch.p, narrower);
  else if (room > 0)
    err_hint(e,
             "not even one example fits: it takes about %s beside the state's %s; use shorter or "
             "smaller examples, %s, or take a chip with more memory: weft advise compares these",
             units_bytes(rest, scales / (double)MAX(1, r->batch)), state, narrower);
  else
    err_hint(e,
             "no batch is small enough: the state alone%s takes %s%s; use narrower state, shard it "
             "over more devices, or take a chip with more memory: weft advise compares these",
             held > 0 ? ", beside the other arrays," : "", state,
             r->owners[SIM_SLOTS].bytes > 0 ? ", optimizer slots included" : "");
  buf_free(&batch);
  return e;
}

static Err *fit_error(const SimReport *r, const char *program, double held, bool owners) {
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
  if (owners) print_owners(r, "  ", &b);
  if (held > 0) {
    buf_cstr(&b, "  ");
    size_t at = b.n;
    buf_bytes(&b, held);
    while (b.n < at + 12) buf_byte(&b, ' ');
    buf_cstr(&b, " other arrays on the device, no arguments of this program\n");
  }
  if (r->attentions && owners)
    buf_printf(
        &b,
        "  %d attention%s here, with scores in memory as XLA compiles it; does the framework "
        "call cuDNN's or FlashAttention? Then set WEFT_ATTENTION=fused\n",
        r->attentions, r->attentions > 1 ? "s" : "");
  while (b.n && b.p[b.n - 1] == '\n') b.p[--b.n] = 0;
  Err *e = err_new(ERR_EXHAUSTED, "%s", b.p);
  buf_free(&b);
  return hint_to_fit(r, held, over, e);
}

Err *sim_fit_error(const SimReport *r, const char *program) {
  return fit_error(r, program, 0, true);
}

Err *sim_fit_error_brief(const SimReport *r, const char *program) {
  return fit_error(r, program, 0, false);
}

Err *sim_fit_error_beside(const SimReport *r, const char *program, double held) {
  return fit_error(r, program, held, true);
}
