/* What `weft train` says: the header, the live line, the result for people and for programs. */
#include "cli/train.h"

#include "base/units.h"
#include "chip/chip.h"
#include "prof/prof.h"
#include "sim/sim.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int64_t train_global_batch(const TrainRun *r) {
  return r->config.batch * MAX(1, r->config.replicas);
}

int train_devices(const TrainRun *r) { return MAX(1, MAX(r->config.replicas, r->config.devices)); }

int train_virtual_devices(const TrainRun *r) {
  ChipRef chip;
  Err *e = chip_parse(r->plugin ? "" : r->device, &chip);
  int n = e ? 0 : MAX(1, chip.devices);
  err_free(e);
  return n;
}

/* ---- the header ------------------------------------------------------------------------------ */

void train_count(char *s, size_t n, int64_t v) {
  char digits[32];
  int len = snprintf(digits, sizeof digits, "%lld", (long long)v);
  size_t k = 0;
  for (int i = 0; i < len && k + 2 < n; i++) {
    if (i && (len - i) % 3 == 0) s[k++] = ',';
    s[k++] = digits[i];
  }
  s[k] = 0;
}

/* "batch 128, epochs 3, optimizer adam, lr 0.001": what is read and says something. */
static void settings_line(const TrainRun *r, Buf *out) {
  TrainConfig c = r->config;
  c.batch = train_global_batch(r);
  unsigned reads = settings_reads(r->model, r->data, &c);
  for (const Setting *s = settings; s->name; s++) {
    if (s->hidden || (s->read_by && !(s->read_by & reads))) continue;
    if (!strcmp(s->name, "epochs") && c.steps) continue;
    Buf v = {0};
    setting_text(s, &c, &v);
    bool silent = !strcmp(v.p, "0") || !strcmp(v.p, "false");
    if (!silent && !strcmp(v.p, "true")) buf_printf(out, "%s%s", out->n ? ", " : "", s->name);
    else if (!silent) buf_printf(out, "%s%s %s", out->n ? ", " : "", s->name, v.p);
    buf_free(&v);
  }
}

/* Whether what trains in 8 bits is computed by something that has no such products. */
static bool emulates_f8(const TrainRun *r) {
  ChipRef ref;
  if (r->config.compute != DT_F8E4M3FN || r->plugin) return false;
  Err *none = chip_parse(r->device, &ref);
  bool has = !none && chip_num(ref.chip, "peak_fp8", 0) > 0;
  err_free(none);
  return !has;
}

void train_print_header(const TrainRun *r, const char *where, const char *platform) {
  StepProgram p;
  char weights[40];
  Err *e = r->model->whole ? step_build(r->model, &r->config, r->data, true, &p)
                           : forward_build(r->model, &r->config, r->data, &p);
  if (e) { /* said by the run itself */
    err_free(e);
    return;
  }
  train_count(weights, sizeof weights, p.n_weights);
  step_free(&p);
  Buf line = {0};
  settings_line(r, &line);
  char over[64] = "";
  int used = train_devices(r), has = train_virtual_devices(r);
  if (used > 1) snprintf(over, sizeof over, ", %d devices", used);
  else if (has > 1 && r->model->whole && r->config.batch % has)
    snprintf(over, sizeof over, ", 1 of its %d devices: they do not divide its batch", has);
  else if (has > 1)
    snprintf(over, sizeof over, ", 1 of its %d devices (--replicas %d: all)", has, has);
  fprintf(stderr, "%s (%s %s) on %s: %lld examples, %s%s through plugin '%s'\n%s\n", r->model->name,
          weights, r->model->whole ? "numbers of state" : "weights", r->data->name,
          (long long)r->data->n_train, where, over, platform, line.p);
  buf_free(&line);
  if (emulates_f8(r))
    fprintf(
        stderr,
        "no products of 8 bits on %s: operands are rounded as for them and multiplied in bf16\n",
        where);
  if (!r->out) fputs("what is learnt is not kept: --out DIR for a run folder\n", stderr);
}

/* ---- the live line --------------------------------------------------------------------------- */

static void clock_text(char *s, size_t n, double t) {
  int64_t v = t > 0 ? (int64_t)(t + 0.5) : 0;
  if (v >= 3600)
    snprintf(s, n, "%lld:%02lld:%02lld", (long long)(v / 3600), (long long)(v / 60 % 60),
             (long long)(v % 60));
  else snprintf(s, n, "%lld:%02lld", (long long)(v / 60), (long long)(v % 60));
}

/* What came out, or that nothing was computed. */
static void loss_text(char *s, size_t n, double loss, double accuracy) {
  if (isnan(loss)) snprintf(s, n, "no numbers");
  else if (isnan(accuracy)) snprintf(s, n, "loss %.4f", loss);
  else snprintf(s, n, "loss %.4f   accuracy %.2f %%", loss, 100 * accuracy);
}

void train_live_costs(const TrainRun *r, TrainLive *out) {
  StepProgram p;
  ChipRef ref = {0};
  SimReport *report = NULL;
  int n = train_devices(r);
  Err *none = chip_parse(r->plugin ? "" : r->device, &ref);
  bool on_chip = !none;
  err_free(none);
  const Chip *chip = on_chip ? ref.chip : NULL;
  Err *e = chip ? NULL : chip_find("T4", &chip); /* any counts the same operations */
  if (!e) e = step_build(r->model, &r->config, r->data, true, &p);
  if (!e) {
    SimOpts opts = {.devices = n, .where = on_chip ? &ref : NULL};
    e = sim_estimate_spmd(p.m, chip, &opts, train_partitions(p.m), &report);
    step_free(&p);
  }
  if (!e && on_chip) {
    out->chip_s = report->time_s;
    out->peak =
        report->time_s > 0 && report->mfu > 0 ? report->flops / (report->mfu * report->time_s) : 0;
    out->joule = report->energy_j, out->usd = report->usd;
  } else if (!e && !r->plugin) {
    out->peak = prof_host_flops();
  }
  if (!e) out->flops = report->flops;
  sim_report_free(report);
  err_free(e); /* the line goes without */
}

/* Model FLOP over peak: by the chip's clock on a chip, else by this machine's. 0: not known. */
static double utilisation(const TrainLive *l, double step_s) {
  double t = l->chip_s > 0 ? l->chip_s : step_s;
  return l->peak > 0 && t > 0 ? l->flops / t / l->peak : 0;
}

static void costs_text(const TrainLive *l, const Progress *p, char *s, size_t n) {
  char energy[UNITS_TEXT], usd[UNITS_TEXT], step[UNITS_TEXT];
  double used = utilisation(l, p->step_s);
  *s = 0;
  if (l->chip_s > 0)
    snprintf(s, n, "   chip %s a step, MFU %.1f %%, %s, %s", units_time(step, l->chip_s),
             100 * used, units_energy(energy, l->joule * (double)p->step),
             units_usd(usd, l->usd * (double)p->step));
  else if (used > 0) snprintf(s, n, "   MFU %.0f %%", 100 * used);
}

/* What is known: a step may have no accuracy and no rate. */
static void log_known(Buf *b, const char *key, double v) {
  if (isnan(v)) return;
  buf_cstr(b, ", ");
  buf_json_num(b, key, v);
}

/* One line of JSON, at once in the file: for dashboards and scripts. */
static void log_line(TrainLive *l, const Progress *p) {
  Buf b = {0};
  buf_printf(&b, "{\"kind\": \"%s\", \"step\": %lld, \"steps\": %lld", p->eval ? "test" : "train",
             (long long)p->step, (long long)p->steps);
  buf_cstr(&b, ", "), buf_json_num(&b, "loss", p->loss);
  log_known(&b, "accuracy", p->accuracy);
  if (!p->eval) {
    double used = utilisation(l, p->step_s);
    log_known(&b, "learning_rate", p->lr);
    buf_cstr(&b, ", "), buf_json_num(&b, "step_wall_s", p->step_s);
    buf_cstr(&b, ", "), buf_json_num(&b, "examples_per_s", p->examples_per_s);
    buf_cstr(&b, ", "), buf_json_num(&b, "input_wait", p->exposed_share);
    buf_cstr(&b, ", "), buf_json_num(&b, "left_s", p->left_s);
    buf_cstr(&b, ", "), buf_json_num(&b, "mfu", used > 0 ? used : NAN);
    if (l->chip_s > 0) {
      buf_cstr(&b, ", "), buf_json_num(&b, "step_s", l->chip_s);
      buf_cstr(&b, ", "), buf_json_num(&b, "energy_j", l->joule * (double)p->step);
      buf_cstr(&b, ", "), buf_json_num(&b, "usd", l->usd * (double)p->step);
    }
  }
  buf_cstr(&b, "}\n");
  bool bad = fputs(b.p, l->log) < 0 || fflush(l->log);
  if (bad && !l->log_errno) l->log_errno = errno;
  buf_free(&b);
}

void train_show(void *arg, const Progress *p) {
  TrainLive *l = arg;
  char loss[64], costs[120];
  if (l->log && !p->batches) log_line(l, p);
  if (p->batches) { /* an evaluation that takes long says so */
    double now = time_now_s();
    if (p->batch == 1) l->next = now + (l->tty ? 0.1 : 5);
    if (now < l->next) return;
    l->next = now + (l->tty ? 0.1 : 5);
    char left[32];
    clock_text(left, sizeof left, p->left_s);
    fprintf(stderr, "%stest    batch %lld/%lld   left %s%s", l->tty ? "\r\033[K" : "",
            (long long)p->batch, (long long)p->batches, left, l->tty ? "" : "\n");
    fflush(stderr);
    return;
  }
  if (p->eval) {
    loss_text(loss, sizeof loss, p->loss, p->accuracy);
    fprintf(stderr, "%stest    step %lld   %s\n", l->tty ? "\r\033[K" : "", (long long)p->step,
            loss);
    l->next = 0;
    return;
  }
  double k = l->seen < 30 ? 1.0 / (double)(l->seen + 1) : 1.0 / 30;
  l->seen++;
  l->loss += k * (p->loss - l->loss);
  l->accuracy += k * (p->accuracy - l->accuracy);
  double now = time_now_s();
  if (now < l->next && p->step != p->steps) return;
  l->next = now + (l->tty ? 0.1 : 5);
  char left[32];
  clock_text(left, sizeof left, p->left_s);
  loss_text(loss, sizeof loss, l->loss, l->accuracy);
  costs_text(l, p, costs, sizeof costs);
  fprintf(stderr,
          "%sepoch %lld  step %lld/%lld   %s   %.0f %s/s   left %s   "
          "input wait %.1f %%%s%s",
          l->tty ? "\r\033[K" : "", (long long)p->epoch + 1, (long long)p->step,
          (long long)p->steps, loss, p->examples_per_s, l->unit, left, 100 * p->exposed_share,
          costs, l->tty ? "" : "\n");
  fflush(stderr);
}

/* ---- the result ------------------------------------------------------------------------------ */

static void json_field(Buf *b, const char *key, double v) {
  buf_cstr(b, ",\n  ");
  buf_json_num(b, key, v);
}

/* What was trained and how: the same as in the checkpoint's metadata. */
static void put_run(const TrainRun *a, const TrainResult *r, Buf *b) {
  const Data *d = a->data;
  TrainConfig whole = a->config;
  whole.batch = train_global_batch(a);
  Buf s = {0};
  settings_json(&whole, settings_reads(a->model, d, &whole), &s);
  buf_printf(b, ",\n  \"weft\": \"%s\",\n  \"weights\": %lld", WEFT_VERSION,
             (long long)r->n_weights);
  data_channels_json(d, b);
  buf_printf(b, ",\n  \"settings\": {%s}", s.p + 1);
  buf_free(&s);
}

/* To result.json in the run folder, and with --json to stdout. */
Err *train_write_result(const TrainRun *a, const TrainResult *r, const Buf *devices) {
  const Data *d = a->data;
  Buf b = {0};
  buf_cstr(&b, "{\n  \"model\": ");
  buf_json_str(&b, a->model->name);
  buf_cstr(&b, ",\n  \"data\": ");
  buf_json_str(&b, d->name);
  buf_cstr(&b, ",\n  \"device\": ");
  buf_json_str(&b, a->plugin ? a->plugin : a->device);
  buf_printf(&b, ",\n  \"batch\": %lld,\n  \"steps\": %lld,\n  \"step\": %lld",
             (long long)train_global_batch(a), (long long)r->steps, (long long)r->at);
  put_run(a, r, &b);
  json_field(&b, "train_loss", r->train_loss);
  if (a->eval_every >= 0) {
    json_field(&b, "test_loss", r->test_loss);
    json_field(&b, "test_accuracy", r->test_accuracy);
  }
  bool virtual = train_virtual_devices(a) && r->stats.optimal_s > 0;
  json_field(&b, "replicas", train_devices(a));
  json_field(&b, "step_s",
             virtual ? r->stats.optimal_s : r->step_s); /* a chip's: by its own clock */
  json_field(&b, "step_wall_s", r->step_s);
  json_field(&b, "step_cpu_s", r->step_cpu_s);
  json_field(&b, "exposed_input_s", r->exposed_s);
  json_field(&b, "compile_s", r->compile_s);
  json_field(&b, "total_s", r->total_s);
  buf_printf(&b, ",\n  \"peak_bytes\": %lld", (long long)r->memory.peak);
  if (devices->n) buf_printf(&b, ",\n  \"devices\": %s", devices->p);
  buf_cstr(&b, "\n}\n");
  if (a->json) fputs(b.p, stdout);
  Err *e = NULL;
  if (a->out) {
    char *path = xasprintf("%s/result.json", a->out);
    e = file_write(path, b.p, b.n);
    free(path);
  }
  buf_free(&b);
  return e;
}

/* The recording as text, as a page and for TensorBoard. */
Err *train_write_profile(const TrainRun *a, const char *to, Prof *p) {
  ProfSummary *s;
  Buf text = {0};
  char *folder = NULL, *page = xasprintf("%s/report.html", to);
  Err *e = prof_summary(p, 0, &s);
  if (!e) {
    buf_byte(&text, '\n');
    prof_print(p, s, 8, &text);
    fputs(text.p, a->json ? stderr : stdout);
    text.n = 0;
    e = prof_write(p, to, &folder);
  }
  if (!e) {
    prof_html(p, s, &text);
    e = file_write(page, text.p, text.n);
  }
  if (!e)
    fprintf(stderr, "\nreport: %s\nrecording: %s (tensorboard --logdir %s)\n", page, folder, to);
  free(folder);
  free(page);
  buf_free(&text);
  return e;
}

/* One line for people. */
void train_print_result(const TrainRun *a, const TrainResult *r, bool phantom, bool interrupted) {
  if (phantom) printf("memory and time only");
  else if (isnan(r->test_loss)) printf("training loss %.4f (last step)", r->train_loss);
  else if (isnan(r->test_accuracy)) printf("test loss %.4f", r->test_loss);
  else printf("test accuracy %.2f %%, loss %.4f", 100 * r->test_accuracy, r->test_loss);
  printf(" after %lld steps", (long long)r->at);
  if (r->steps < r->at) printf(", %lld of them now,", (long long)r->steps);
  printf(" in %.1f s%s (compiling %.1f s, waiting for input %.2f s)\n", r->total_s,
         phantom ? " here" : "", r->compile_s, r->exposed_s);
  if (a->out)
    printf("run folder %s: %sresult.json\n", a->out,
           phantom ? "" : "checkpoint.safetensors, events for TensorBoard, ");
  if (interrupted)
    printf("interrupted%s%s\n", a->out ? "; to go on: --resume " : "", a->out ? a->out : "");
}
