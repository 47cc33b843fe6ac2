/* One chip's answers. The largest batch is found by false position on the plan's memory, which is
 * close to a straight line in the batch, kept inside a bracket of one batch that fits and one that
 * does not. The line has steps: sums over an odd batch are cut otherwise by GPUs, so a round batch
 * a little beyond the first that does not fit may fit again, and is asked for. */
#include "advise/advise.h"

#include <math.h>
#include <stdlib.h>

#include "base/units.h"

#define GIB 1073741824.0
/* TensorFlow's default limit of one convolution's workspace: TF_CUDNN_WORKSPACE_LIMIT_IN_MB */
#define CONV_WORKSPACE (4 * GIB)
#define MAX_BATCH ((int64_t)1 << 24) /* of one device: nobody asks for more */
#define ROUNDER 1.06                 /* the steps of plans seen are no higher than this */

static Err *estimate(const AdviseWork *w, const AdviseCase *c, const AdviseRow *row,
                     SimReport **out, AdviseFit *fit) {
  Module *m = NULL;
  TRY(w->build(w->arg, c, &m));
  if (fit) {
    fit->op_by_op_bytes = advise_op_by_op_bytes(m);
    fit->workspace_bytes = advise_has_convolution(m) ? CONV_WORKSPACE : 0;
  }
  SimOpts opts = {.devices = c->devices * row->copies,
                  .where = &row->ref,
                  .price = w->price,
                  .open_arguments = true};
  Err *e = sim_estimate_rented(m, row->ref.chip, &opts, w->partitions, out);
  module_free(m);
  return e;
}

static void fit_of(const AdviseWork *w, const AdviseCase *c, const AdviseRow *row, AdviseFit *out) {
  *out = (AdviseFit){.batch = c->batch * c->devices};
  Err *e = estimate(w, c, row, &out->report, out);
  out->known = !e;
  if (e) out->why = err_text(e);
  err_free(e);
}

static int64_t per_device(int64_t batch, int devices) {
  return MAX(1, (batch + devices - 1) / devices);
}

/* Bytes of a batch on one device; infinity when it cannot be made. */
static double bytes_of(const AdviseWork *w, const AdviseCase *c, const AdviseRow *row,
                       AdviseSamples *seen) {
  SimReport *r = NULL;
  Err *e = estimate(w, c, row, &r, NULL);
  double bytes = e ? INFINITY : r->hbm_bytes;
  err_free(e);
  sim_report_free(r);
  *vec_push(seen) = (AdviseSample){c->batch, bytes};
  return bytes;
}

/* A batch that fits and a larger one that does not, with their bytes. */
typedef struct Bracket {
  int64_t lo, hi;
  double lo_bytes, hi_bytes;
} Bracket;

/* Until the two are as near as anybody asks. */
static void narrow(const AdviseWork *w, AdviseCase *c, const AdviseRow *row, AdviseSamples *seen,
                   double limit, Bracket *b) {
  for (int rounds = 0; rounds < 24 && b->hi - b->lo > MAX(1, b->lo / 512); rounds++) {
    double slope = isfinite(b->hi_bytes) ? (b->hi_bytes - b->lo_bytes) / (double)(b->hi - b->lo)
                   : b->lo > 0           ? b->lo_bytes / (double)b->lo
                                         : 0;
    double guess = slope > 0 ? (double)b->lo + (limit - b->lo_bytes) / slope : 2.0 * (double)b->lo;
    if (rounds % 3 == 2) guess = isfinite(b->hi_bytes) ? 0.5 * (double)(b->lo + b->hi) : 2 * guess;
    c->batch = (int64_t)MIN((double)b->hi - 1, MAX((double)b->lo + 1, floor(guess)));
    double bytes = bytes_of(w, c, row, seen);
    if (bytes <= limit) b->lo = c->batch, b->lo_bytes = bytes;
    else b->hi = c->batch, b->hi_bytes = bytes;
  }
}

/* Does a round batch beyond the bracket fit, not more than ROUNDER larger? It is the new lo then. */
static bool rounder(const AdviseWork *w, AdviseCase *c, const AdviseRow *row, AdviseSamples *seen,
                    double limit, Bracket *b) {
  int64_t most = (int64_t)((double)b->lo * ROUNDER);
  for (int64_t unit = 256; unit >= 16; unit /= 4) {
    c->batch = (b->lo / unit + 1) * unit;
    if (c->batch > MIN(most, MAX_BATCH) || c->batch < b->hi) continue;
    bool asked = false;
    for (int i = 0; i < seen->n; i++) asked |= seen->v[i].batch == c->batch;
    double bytes = asked ? INFINITY : bytes_of(w, c, row, seen);
    if (bytes > limit) continue;
    b->lo = c->batch, b->lo_bytes = bytes;
    return true;
  }
  return false;
}

static int sharing(const AdviseRow *row) { return row->devices / row->copies; }

/* Most examples (over all devices that share the work) that fit with `reserve` bytes taken already. */
static int64_t largest(const AdviseWork *w, AdviseRow *row, bool training, double reserve) {
  const AdviseFit *known = training ? &row->train : &row->eval;
  if (!known->known) return 0;
  AdviseSamples *seen = training ? &row->train_samples : &row->eval_samples;
  double limit = row->ref.chip->hbm_usable - reserve;
  AdviseCase c = {.devices = sharing(row), .training = training};
  if (!seen->n)
    *vec_push(seen) = (AdviseSample){per_device(known->batch, c.devices), known->report->hbm_bytes};
  Bracket b = {.hi = MAX_BATCH + 1, .hi_bytes = INFINITY};
  for (int o = SIM_PARAMETERS; o <= SIM_STATE; o++)
    b.lo_bytes += known->report->owners[o].bytes; /* what no batch at all would take, about */
  for (int i = 0; i < seen->n; i++) {
    AdviseSample s = seen->v[i];
    if (s.bytes <= limit && s.batch > b.lo) b.lo = s.batch, b.lo_bytes = s.bytes;
  }
  do {
    b.hi = MAX_BATCH + 1, b.hi_bytes = INFINITY;
    for (int i = 0; i < seen->n; i++) {
      AdviseSample s = seen->v[i];
      if (s.batch > b.lo && s.batch < b.hi) b.hi = s.batch, b.hi_bytes = s.bytes;
    }
    narrow(w, &c, row, seen, limit, &b);
  } while (rounder(w, &c, row, seen, limit, &b));
  return b.lo * c.devices;
}

/* ---- what to try ----------------------------------------------------------------------------- */

static void tip(AdviseRow *row, bool fits, char *text) {
  *vec_push(&row->tips) = (AdviseTip){text, fits};
}

/* The same work with one thing changed; what it brings is said in its own numbers. */
static void tip_case(const AdviseWork *w, AdviseRow *row, const AdviseFit *base, AdviseCase c,
                     const char *what) {
  SimReport *r = NULL;
  Err *e = estimate(w, &c, row, &r, NULL);
  char bytes[UNITS_TEXT], time[UNITS_TEXT];
  if (!e && r->fits &&
      (!base->report->fits || r->time_s < 0.95 * base->report->time_s ||
       r->hbm_bytes < 0.95 * base->report->hbm_bytes))
    tip(row, true,
        xasprintf("%s: %s on a device, %s a %s%s", what, units_bytes(bytes, r->hbm_bytes),
                  units_time(time, r->time_s), c.training ? "step" : "batch",
                  base->report->fits ? "" : ", fits"));
  err_free(e);
  sim_report_free(r);
}

static void tips_for(const AdviseWork *w, AdviseRow *row, const AdviseFit *f, bool training,
                     int64_t most) {
  if (!f->known) return;
  char bytes[UNITS_TEXT];
  const char *kind = training ? "training" : "evaluation";
  AdviseCase c = {
      .devices = sharing(row), .training = training, .batch = per_device(f->batch, sharing(row))};
  if (!f->report->fits && most > 0) {
    if (training && f->batch > most) {
      int64_t parts = (f->batch + most - 1) / most;
      tip(row, true,
          xasprintf("training: batch %lld, or %lld as %lld accumulated parts of %lld",
                    (long long)most, (long long)f->batch, (long long)parts,
                    (long long)((f->batch + parts - 1) / parts)));
    } else {
      tip(row, true, xasprintf("%s in batches of at most %lld", kind, (long long)most));
    }
  }
  if (w->can_narrow) {
    char *what = xasprintf("%s with bfloat16 activations", kind);
    AdviseCase narrow = c;
    narrow.narrow = true;
    tip_case(w, row, f, narrow, what);
    free(what);
  }
  for (int k = 2; k <= 8 && !w->fixed_devices && !f->report->fits; k *= 2) {
    AdviseCase more = c;
    more.devices = row->devices * k;
    more.batch = per_device(f->batch, more.devices);
    size_t before = (size_t)row->tips.n;
    char *what = xasprintf("%s on %d devices, data parallel", kind, more.devices);
    tip_case(w, row, f, more, what);
    free(what);
    if ((size_t)row->tips.n > before) break;
  }
  if (!f->report->fits && row->tips.n == 0)
    tip(row, false,
        xasprintf("%s: shard the state over devices (FSDP), or a chip with more than %s", kind,
                  units_bytes(bytes, f->report->hbm_bytes)));
}

/* ---- one chip -------------------------------------------------------------------------------- */

/* The program is for a number of devices that does not divide the chip's. */
static Err *refuse(const AdviseWork *w, int shards, AdviseRow *out) {
  AdviseFit *fits[2] = {w->batch ? &out->train : NULL, w->eval_batch ? &out->eval : NULL};
  for (int i = 0; i < 2; i++)
    if (fits[i])
      fits[i]->why = xasprintf("the program is for %d devices, not for %d", shards, out->devices);
  return NULL;
}

Err *advise_chip(const AdviseWork *w, const char *chip, AdviseRow *out) {
  *out = (AdviseRow){0};
  TRY(chip_parse(chip, &out->ref));
  out->name = xstrdup(chip);
  int shards = w->fixed_devices ? MAX(1, w->partitions) : 0; /* 0: any number */
  out->devices = MAX(1, out->ref.devices ? out->ref.devices : shards);
  out->copies = shards ? MAX(1, out->devices / shards) : 1;
  if (shards && out->devices % shards) return refuse(w, shards, out);
  AdviseCase c = {.devices = sharing(out)};
  if (w->batch) {
    c.training = true;
    c.batch = per_device(w->batch, sharing(out));
    fit_of(w, &c, out, &out->train);
    out->largest_train = largest(w, out, true, 0);
    if (out->train.known) {
      const SimReport *r = out->train.report;
      out->slots_bytes = r->owners[SIM_SLOTS].bytes;
      out->held_bytes = out->slots_bytes + r->temp_bytes;
    }
  }
  if (w->eval_batch) {
    c.training = false;
    c.batch = per_device(w->eval_batch, sharing(out));
    fit_of(w, &c, out, &out->eval);
    out->largest_eval = largest(w, out, false, 0);
    if (out->train.known) {
      out->largest_eval_slots = largest(w, out, false, out->slots_bytes);
      out->largest_eval_held = largest(w, out, false, out->held_bytes);
    }
  }
  if (out->eval.known && out->ref.chip->kind == CHIP_GPU)
    out->framework_bytes = out->eval.op_by_op_bytes + out->held_bytes + out->eval.workspace_bytes;
  if (w->batch) tips_for(w, out, &out->train, true, out->largest_train);
  if (w->eval_batch) tips_for(w, out, &out->eval, false, out->largest_eval);
  return NULL;
}

static void fit_free(AdviseFit *f) {
  sim_report_free(f->report);
  free(f->why);
}

void advise_row_free(AdviseRow *r) {
  fit_free(&r->train);
  fit_free(&r->eval);
  for (int i = 0; i < r->tips.n; i++) free(r->tips.v[i].text);
  vec_free(&r->tips);
  vec_free(&r->train_samples);
  vec_free(&r->eval_samples);
  free(r->name);
}
