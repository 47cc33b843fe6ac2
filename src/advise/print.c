/* The answers as tables for people and as JSON. */
#include "advise/advise.h"

#include "base/units.h"

#include <math.h>
#include <stdio.h>

static void batch_text(const AdviseWork *w, char *s, size_t n, int64_t b) {
  if (w->no_batch) snprintf(s, n, "-");
  else if (b > 0) snprintf(s, n, "%lld", (long long)b);
  else snprintf(s, n, "none");
}

/* "training step of 104 examples", as many as are computed where all chips compute the same. */
static void print_work(const AdviseWork *w, const AdviseRow *rows, int n, bool training, Buf *o) {
  int64_t batch = training ? w->batch : w->eval_batch;
  bool same = n > 0, as_is = w->no_batch && batch == 1;
  for (int i = 0; i < n; i++) {
    int64_t b = training ? rows[i].train.batch : rows[i].eval.batch;
    same &= b == (training ? rows[0].train.batch : rows[0].eval.batch);
  }
  if (same && !as_is) batch = training ? rows[0].train.batch : rows[0].eval.batch;
  buf_printf(o, "\n%s", training ? "training step" : "evaluation");
  if (as_is) buf_cstr(o, " of the program as it is: which dimension is the batch was not found");
  else
    buf_printf(o, " of %lld example%s%s", (long long)batch, batch == 1 ? "" : "s",
               training ? "" : " in one batch");
  if (w->length) buf_printf(o, ", %lld tokens each (--length)", (long long)w->length);
}

/* Where a batch does not divide over a chip's devices. */
static void print_rounded(const AdviseWork *w, const AdviseRow *r, const AdviseFit *f,
                          int64_t asked, Buf *o) {
  int sharing = r->devices / r->copies;
  if (f->batch == asked || sharing < 2 || w->no_batch) return;
  buf_printf(o, "  %-18s computes %lld: %lld do not divide over %d devices, so %lld on each\n",
             r->name, (long long)f->batch, (long long)asked, sharing,
             (long long)(f->batch / sharing));
}

/* Where the work is not divided over all of a chip's devices. */
static void print_copies(const AdviseRow *r, Buf *o) {
  if (r->copies < 2) return;
  int each = r->devices / r->copies;
  buf_printf(o, "  %-18s ", r->name);
  if (each == 1)
    buf_printf(o,
               "the program is not partitioned: whole on each device; batch and time are of one, "
               "energy and price of all %d\n",
               r->devices);
  else
    buf_printf(
        o,
        "the program is for %d devices: whole on each group of so many; batch and time are of one "
        "group, energy and price of all %d\n",
        each, r->devices);
}

/* What an estimate leaves out. */
static void print_unknowns(const AdviseRow *r, const AdviseFit *f, Buf *o) {
  if (!f->known || (!f->report->unknown_calls && !f->report->unknown_loops)) return;
  buf_printf(o, "  %-18s note: ", r->name);
  sim_unknowns(f->report, o);
  buf_byte(o, '\n');
}

static void print_training(const AdviseWork *w, const AdviseRow *rows, int n, Buf *o) {
  print_work(w, rows, n, true, o);
  if (w->steps > 0) buf_printf(o, "; all: %.0f steps", w->steps);
  buf_printf(o, "\n  %-18s %7s %-5s %10s %10s %9s %9s %10s %10s %9s %9s\n", "", "devices", "fits",
             "memory", "of", "largest", "step", "examples/s",
             w->steps > 0 ? "all energy" : "energy", w->steps > 0 ? "all time" : "",
             w->steps > 0 ? "all price" : "price");
  for (int i = 0; i < n; i++) {
    const AdviseRow *r = &rows[i];
    const SimReport *t = r->train.report;
    if (!r->train.known) {
      buf_printf(o, "  %-18s no answer: %s\n", r->name, r->train.why);
      continue;
    }
    char mem[UNITS_TEXT], of[UNITS_TEXT], big[UNITS_TEXT], step[UNITS_TEXT], energy[UNITS_TEXT],
        all[UNITS_TEXT], usd[UNITS_TEXT];
    double steps = w->steps > 0 ? w->steps : 1;
    units_bytes(mem, t->hbm_bytes);
    units_bytes(of, t->limit_bytes);
    batch_text(w, big, sizeof big, r->largest_train);
    units_time(step, t->time_s);
    units_energy(energy, t->energy_j * steps);
    units_time(all, t->time_s * steps);
    units_usd(usd, t->usd * steps);
    char rate[32] = "-";
    if (!w->no_batch) snprintf(rate, sizeof rate, "%.0f", (double)r->train.batch / t->time_s);
    buf_printf(o, "  %-18s %7d %-5s %10s %10s %9s %9s %10s %10s %9s %9s\n", r->name, r->devices,
               t->fits ? "yes" : "NO", mem, of, big, step, rate, energy, w->steps > 0 ? all : "",
               usd);
  }
  for (int i = 0; i < n; i++) print_rounded(w, &rows[i], &rows[i].train, w->batch, o);
  for (int i = 0; i < n; i++) print_copies(&rows[i], o);
  for (int i = 0; i < n; i++) print_unknowns(&rows[i], &rows[i].train, o);
}

static const char *yes_no(const AdviseRow *r, double extra) {
  return r->eval.report->hbm_bytes + extra <= r->eval.report->limit_bytes ? "yes" : "NO";
}

/* Of a program that only answers: how many, and for how much. */
static void print_answers(const AdviseRow *r, Buf *o) {
  const SimReport *e = r->eval.report;
  double batch = (double)r->eval.batch;
  char usd[UNITS_TEXT];
  buf_printf(o, " %10.0f %12s", batch / e->time_s, units_usd(usd, e->usd / batch * 1e6));
}

static void print_evaluation(const AdviseWork *w, const AdviseRow *rows, int n, Buf *o) {
  bool state = w->batch > 0;
  print_work(w, rows, n, false, o);
  if (state)
    buf_printf(o, "\n  %-18s %7s %-27s  %-27s  %s", "", "", "training state released",
               "optimizer slots resident", "all of training held");
  buf_printf(o, "\n  %-18s %7s %-5s %10s %10s", "", "devices", "fits", "memory", "largest");
  if (state)
    buf_printf(o, "  %-5s %10s %10s  %-5s %10s %10s", "fits", "memory", "largest", "fits", "memory",
               "largest");
  buf_printf(o, " %9s", "time");
  if (!state) buf_printf(o, " %10s %12s", "examples/s", "$ a million");
  buf_byte(o, '\n');
  for (int i = 0; i < n; i++) {
    const AdviseRow *r = &rows[i];
    if (!r->eval.known) {
      buf_printf(o, "  %-18s no answer: %s\n", r->name, r->eval.why);
      continue;
    }
    char a[UNITS_TEXT], b[UNITS_TEXT], c[UNITS_TEXT], la[UNITS_TEXT], lb[UNITS_TEXT],
        lc[UNITS_TEXT], t[UNITS_TEXT];
    double bytes = r->eval.report->hbm_bytes;
    units_bytes(a, bytes);
    units_bytes(b, bytes + r->slots_bytes);
    units_bytes(c, bytes + r->held_bytes);
    batch_text(w, la, sizeof la, r->largest_eval);
    batch_text(w, lb, sizeof lb, r->largest_eval_slots);
    batch_text(w, lc, sizeof lc, r->largest_eval_held);
    units_time(t, r->eval.report->time_s);
    buf_printf(o, "  %-18s %7d %-5s %10s %10s", r->name, r->devices, yes_no(r, 0), a, la);
    if (state)
      buf_printf(o, "  %-5s %10s %10s  %-5s %10s %10s", yes_no(r, r->slots_bytes), b, lb,
                 yes_no(r, r->held_bytes), c, lc);
    buf_printf(o, " %9s", t);
    if (!state) print_answers(r, o);
    buf_byte(o, '\n');
  }
  for (int i = 0; i < n; i++) print_rounded(w, &rows[i], &rows[i].eval, w->eval_batch, o);
  for (int i = 0; i < n && !w->batch; i++) print_copies(&rows[i], o);
  for (int i = 0; i < n; i++) print_unknowns(&rows[i], &rows[i].eval, o);
}

static const char *owner_words(SimOwner o, bool training) {
  if (o == SIM_KEPT && training) return "activations kept for backward";
  if (o == SIM_GRADIENTS) return "gradients, copies of weights";
  if (o == SIM_WORKING) return "running kernel's operands, result";
  if (o == SIM_OTHER) return "space that kernels work in";
  return sim_owner_name(o);
}

static void print_owners(const char *chip, const AdviseFit *f, const char *what, Buf *o) {
  if (!f->known) return;
  const SimReport *r = f->report;
  double padding = 0;
  buf_printf(o, "\n%s, %s: who holds the memory of a device\n", chip, what);
  for (int k = 0; k < SIM_OWNERS; k++) {
    const SimHolding *h = &r->owners[k];
    padding += h->padding;
    if (h->bytes < 1048576.0 / 20) continue;
    char s[UNITS_TEXT];
    units_bytes(s, h->bytes);
    buf_printf(o, "  %10s  %-34s", s, owner_words((SimOwner)k, r->training));
    if (h->largest) { /* arguments go by their names, values by the user's line */
      const SimBuffer *b = h->largest;
      buf_printf(o, " %s  %s", b->type, b->place[0] ? b->place : b->name);
    }
    buf_byte(o, '\n');
  }
  char s[UNITS_TEXT];
  units_bytes(s, r->hbm_bytes);
  buf_printf(o, "  %10s  together", s);
  units_bytes(s, padding);
  if (padding > 1048576.0 / 20) buf_printf(o, ", %s of it padding to tiles", s);
  units_bytes(s, r->chip->hbm_bytes - r->chip->hbm_usable);
  buf_printf(o, "; %s more is the runtime's own\n", s);
}

/* Why a framework can run out of memory where the plan fits. */
static void print_framework(const AdviseWork *w, const AdviseRow *r, Buf *o) {
  const SimReport *e = r->eval.report;
  char s[UNITS_TEXT];
  units_bytes(s, r->eval.op_by_op_bytes);
  buf_printf(o, "  %10s  without fusion, one operation at a time\n", s);
  units_bytes(s, r->framework_bytes);
  const char *held = w->batch ? "all that training holds" : "",
             *space = r->eval.workspace_bytes > 0
                          ? "a convolution workspace of 4 GiB (TensorFlow's limit)"
                          : "";
  if (!*held && !*space) return;
  buf_printf(o, "  %10s  that, %s%s%s: %s\n", s, held, *held && *space ? ", and " : "", space,
             r->framework_bytes <= e->limit_bytes ? "fits"
             : e->fits                            ? "DOES NOT FIT, unlike the plan"
                                                  : "DOES NOT FIT");
}

/* What the prices are of: of a few chips all, of many those that cannot be had. */
static void print_prices(const AdviseRow *rows, int n, Buf *o) {
  bool head = false;
  for (int i = 0; i < n; i++) {
    const SimReport *r = rows[i].train.known ? rows[i].train.report : rows[i].eval.report;
    if (!r || !r->price.offer || (n > 4 && !offer_is_retired(r->price.offer))) continue;
    if (!head) buf_cstr(o, "\nprices\n");
    head = true;
    buf_printf(o, "  %-18s %.2f USD/h: %s\n", rows[i].name, r->usd_per_hour, r->price_source);
  }
}

void advise_print(const AdviseWork *w, const AdviseRow *rows, int n, Buf *o) {
  buf_printf(o, "%s\n", w->name);
  if (w->batch) print_training(w, rows, n, o);
  if (w->eval_batch) print_evaluation(w, rows, n, o);
  for (int i = 0; i < n && n <= 4; i++) {
    if (w->batch) print_owners(rows[i].name, &rows[i].train, "training step", o);
    if (w->eval_batch) print_owners(rows[i].name, &rows[i].eval, "evaluation", o);
    if (rows[i].framework_bytes > 0) print_framework(w, &rows[i], o);
  }
  bool head = false;
  for (int i = 0; i < n; i++)
    for (int k = 0; k < rows[i].tips.n; k++) {
      bool needed = (rows[i].train.known && !rows[i].train.report->fits) ||
                    (rows[i].eval.known && !rows[i].eval.report->fits);
      if (n > 4 && !needed) continue;
      if (!head) buf_cstr(o, "\nwhat to try\n");
      head = true;
      buf_printf(o, "  %-18s %s\n", rows[i].name, rows[i].tips.v[k].text);
    }
  print_prices(rows, n, o);
  buf_cstr(o, "\nMemory is of one device, batches are over all devices, time and energy of the "
              "devices alone.\nEstimates from the program; nothing was run. Prices: the cheapest "
              "whole machines that hold the devices, by the second;\nweft chips NAME --prices.\n");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void more_json(Buf *o, const char *key, double v) {
  buf_cstr(o, ", ");
  buf_json_num(o, key, v);
}

static void fit_json(const AdviseWork *w, const char *key, const AdviseFit *f, Buf *o) {
  buf_printf(o, ",\n   \"%s\": {", key);
  buf_json_num(o, "batch", w->no_batch && f->known ? NAN : (double)f->batch);
  const SimReport *r = f->report;
  if (!f->known) {
    buf_cstr(o, ", \"error\": ");
    buf_json_str(o, f->why);
    buf_byte(o, '}');
    return;
  }
  buf_printf(o, ", \"fits\": %s", r->fits ? "true" : "false");
  more_json(o, "hbm_bytes", round(r->hbm_bytes));
  more_json(o, "limit_bytes", round(r->limit_bytes));
  more_json(o, "peak_bytes", round(r->peak_bytes));
  more_json(o, "time_s", r->time_s);
  more_json(o, "energy_j", r->energy_j);
  more_json(o, "usd", r->usd);
  more_json(o, "usd_per_hour", r->usd_per_hour);
  buf_cstr(o, ", \"price_source\": ");
  buf_json_str(o, r->price_source);
  more_json(o, "mfu", r->mfu);
  more_json(o, "hfu", r->hfu);
  more_json(o, "unknown_calls", r->unknown_calls);
  more_json(o, "unknown_loops", r->unknown_loops);
  more_json(o, "op_by_op_bytes", round(f->op_by_op_bytes));
  buf_cstr(o, ", \"owners\": {");
  double padding = 0;
  for (int k = 0; k < SIM_OWNERS; k++) {
    padding += r->owners[k].padding;
    if (k) buf_cstr(o, ", ");
    buf_json_num(o, sim_owner_name((SimOwner)k), round(r->owners[k].bytes));
  }
  buf_byte(o, '}');
  more_json(o, "padding_bytes", round(padding));
  buf_byte(o, '}');
}

void advise_json(const AdviseWork *w, const AdviseRow *rows, int n, Buf *o) {
  buf_cstr(o, "{\"work\": ");
  buf_json_str(o, w->name);
  more_json(o, "steps", w->steps > 0 ? w->steps : NAN);
  buf_cstr(o, ", \"chips\": [");
  for (int i = 0; i < n; i++) {
    const AdviseRow *r = &rows[i];
    buf_printf(o, "%s\n  {\"chip\": ", i ? "," : "");
    buf_json_str(o, r->name);
    buf_printf(o, ", \"devices\": %d, \"whole_on_each\": %s", r->devices,
               r->copies > 1 ? "true" : "false");
    more_json(o, "devices_sharing", r->devices / r->copies);
    if (w->batch) {
      more_json(o, "largest_train_batch", w->no_batch ? NAN : (double)r->largest_train);
      fit_json(w, "train", &r->train, o);
    }
    if (w->eval_batch) {
      more_json(o, "largest_eval_batch", w->no_batch ? NAN : (double)r->largest_eval);
      more_json(o, "framework_bytes", r->framework_bytes > 0 ? round(r->framework_bytes) : NAN);
      if (w->batch) {
        more_json(o, "largest_eval_batch_slots_resident", (double)r->largest_eval_slots);
        more_json(o, "largest_eval_batch_training_held", (double)r->largest_eval_held);
        more_json(o, "slots_bytes", round(r->slots_bytes));
        more_json(o, "held_bytes", round(r->held_bytes));
      }
      fit_json(w, "eval", &r->eval, o);
    }
    buf_cstr(o, ",\n   \"try\": [");
    for (int k = 0; k < r->tips.n; k++) {
      if (k) buf_cstr(o, ", ");
      buf_json_str(o, r->tips.v[k].text);
    }
    buf_cstr(o, "]}");
  }
  buf_cstr(o, "]}\n");
}
