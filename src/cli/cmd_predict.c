/* weft predict: a trained network's answers to pictures or text, and how long an answer takes. */
#include "cli/use.h"

#include "base/system.h"
#include "base/units.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char usage[] =
    "usage: weft predict RUN INPUT... [options]\n"
    "\n"
    "RUN is a run folder of `weft train --out`, or a checkpoint in one. INPUT is a PNG, a JPEG, "
    "a\n"
    "folder of them (or of folders), or an .npy file of bytes ((H, W), (H, W, C) or (n, H, W, C)); "
    "pictures of "
    "another size are cut to "
    "the\n"
    "network's shape from their middle and resized. For networks of text INPUT is a text, or a "
    "file\n"
    "that holds one: answered are the likeliest next tokens (of BERT: those for every [MASK]). For "
    "networks\n"
    "of numbers it is an .npy or .npz file, an example in each row, or a .csv like the one that "
    "they learnt\n"
    "from. A train step of your own answers by the program that predicts.\n"
    "\n"
    "  --predict-program P   of a train step of your own: from state and batch to answers "
    "(default: "
    "the\n"
    "                     run's; its batch is the only one)\n"
    "  --top N            answers for each input (default 3)\n"
    "  --measure N        time N runs of one example and N of a whole batch (default 50, or what 2 "
    "s\n"
    "                     allow; 0: none)\n" USE_HELP;

enum { O_TOP = USE_OWN, O_MEASURE, O_PROGRAM };
static const struct option options[] = {{"top", 1, NULL, O_TOP},
                                        {"measure", 1, NULL, O_MEASURE},
                                        {"predict-program", 1, NULL, O_PROGRAM},
                                        USE_ROWS,
                                        {0}};

enum { MOST_SECONDS = 2 };

typedef struct Asked { /* one example: what it came from, its bytes, where the answer stands */
  char *name;
  int64_t place; /* text: the token that is answered */
} Asked;

typedef struct Predict {
  Use u;
  int64_t top, measure;
  VEC(Asked) asked;
  Buf inputs;
  Tokens *tokens;
} Predict;

static bool is_text(const Predict *p) {
  const Field *f = infer_field(p->u.infer);
  return f->type == DT_I32 && f->rank == 1 && infer_classes(p->u.infer);
}

/* Rows of numbers also where the network reads text. */
static bool is_array(const char *path) {
  Str s = str_from(path);
  return str_ends(s, ".npz") || str_ends(s, ".npy");
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static Err *add_file(Predict *p, const char *path) {
  int64_t n;
  void *examples;
  TRY(infer_read(p->u.infer, path, &n, &examples));
  buf_add(&p->inputs, examples, infer_input_bytes(p->u.infer) * (size_t)n);
  free(examples);
  int64_t last = is_text(p) ? infer_field(p->u.infer)->dims[0] - 1 : 0;
  for (int64_t i = 0; i < n; i++)
    *vec_push(&p->asked) =
        (Asked){n > 1 ? xasprintf("%s[%lld]", path, (long long)i) : xstrdup(path), last};
  return NULL;
}

static Err *add_text(Predict *p, const char *input) {
  struct stat st;
  Buf file = {0};
  if (!stat(input, &st) && S_ISREG(st.st_mode)) TRY(file_read(input, &file));
  Str text = file.p ? (Str){file.p, file.n} : str_from(input);
  int64_t length = infer_field(p->u.infer)->dims[0];
  int32_t *example = xmalloc(sizeof *example * (size_t)length);
  IdVec places = {0};
  Err *e = tokens_example(p->tokens, text, example, &places);
  for (int i = 0; i < places.n && !e; i++) {
    buf_add(&p->inputs, example, sizeof *example * (size_t)length);
    *vec_push(&p->asked) = (Asked){xasprintf("%.40s", input), places.v[i]};
  }
  vec_free(&places);
  free(example);
  buf_free(&file);
  return e;
}

/* ---- answers --------------------------------------------------------------------------------- */

static int64_t best_of(const float *p, int64_t k) {
  int64_t best = 0;
  for (int64_t i = 1; i < k; i++)
    if (p[i] > p[best]) best = i;
  return best;
}

/* The class's or token's name as JSON. */
static void put_name(const Predict *p, int64_t k, Buf *out) {
  char text[64];
  Buf raw = {0};
  if (is_text(p)) tokens_decode(p->tokens, (int32_t)k, &raw);
  buf_json_str(out, is_text(p) ? (raw.p ? raw.p : "")
                               : use_label(infer_info(p->u.infer)->data, k, text));
  buf_free(&raw);
}

static void put_answer(const Predict *p, const Asked *a, float *prob, int64_t k, Buf *out) {
  bool json = p->u.json;
  if (json)
    buf_cstr(out, "    {\"input\": "), buf_json_str(out, a->name), buf_cstr(out, ", \"top\": [");
  else buf_printf(out, "%s:", a->name);
  for (int64_t i = 0; i < MIN(p->top, k); i++) {
    int64_t best = best_of(prob, k);
    double share = (double)prob[best];
    prob[best] = -1;
    if (json) buf_printf(out, "%s{\"class\": %lld, \"name\": ", i ? ", " : "", (long long)best);
    else buf_cstr(out, i ? ", " : "  ");
    put_name(p, best, out);
    if (json) buf_printf(out, ", \"p\": %.6g}", share);
    else buf_printf(out, " %.2f %%", 100 * share);
  }
  buf_cstr(out, json ? "]}" : "\n");
}

/* Of a network that does not choose among classes. */
static void put_numbers(const Predict *p, const Asked *a, const float *v, int64_t n, Buf *out) {
  bool json = p->u.json;
  if (json)
    buf_cstr(out, "    {\"input\": "), buf_json_str(out, a->name), buf_cstr(out, ", \"values\": [");
  else buf_printf(out, "%s: ", a->name);
  for (int64_t i = 0; i < n; i++) {
    if (json && !isfinite(v[i])) buf_cstr(out, i ? ", null" : "null");
    else buf_printf(out, json ? "%s%.9g" : "%s%.6g", i ? json ? ", " : " " : "", (double)v[i]);
  }
  buf_cstr(out, json ? "]}" : "\n");
}

static Err *answer(const Predict *p, Buf *out) {
  Infer *i = p->u.infer;
  int64_t all = infer_outputs(i), n = p->asked.n;
  int64_t k = infer_classes(i);
  float *logits = xmalloc(sizeof *logits * (size_t)(all * n) + 1);
  Err *e = infer_forward(i, n, p->inputs.p, logits);
  for (int64_t q = 0; q < n && !e; q++) {
    float *row = logits + q * all + p->asked.v[q].place * k;
    if (p->u.json && q) buf_cstr(out, ",\n");
    if (!k) {
      put_numbers(p, &p->asked.v[q], row, all, out);
      continue;
    }
    infer_softmax(row, k);
    put_answer(p, &p->asked.v[q], row, k, out);
  }
  free(logits);
  return e;
}

/* ---- how long it takes ----------------------------------------------------------------------- */

/* Runs of n examples, the first not counted: their times. */
static Err *measure(const Predict *p, int64_t n, int *count, double *seconds) {
  Infer *i = p->u.infer;
  size_t each = infer_input_bytes(i);
  char *in = xmalloc(each * (size_t)n);
  float *out = xmalloc(sizeof *out * (size_t)(n * infer_outputs(i)));
  for (int64_t k = 0; k < n; k++)
    memcpy(in + (size_t)k * each, p->inputs.p + (size_t)(k % p->asked.n) * each, each);
  Err *e = infer_forward(i, n, in, out);
  double begin = time_now_s();
  for (*count = 0; !e && *count < p->measure && time_now_s() - begin < MOST_SECONDS; ++*count) {
    double from = time_now_s();
    e = infer_forward(i, n, in, out);
    seconds[*count] = time_now_s() - from;
  }
  free(in);
  free(out);
  return e;
}

static Err *put_times(const Predict *p, Buf *out) {
  if (!p->measure) return NULL;
  int64_t fixed = infer_fixed_batch(p->u.infer), batch = fixed        ? fixed
                                                         : p->u.batch ? p->u.batch
                                                                      : 64;
  double *s = xmalloc(sizeof *s * (size_t)p->measure);
  int n_one, n_batch;
  UseLatency one, many;
  Err *e = measure(p, 1, &n_one, s);
  one = use_latency(n_one, s);
  if (!e) e = measure(p, batch, &n_batch, s);
  if (!e) {
    many = use_latency(n_batch, s);
    double rate = many.p50 > 0 ? (double)batch / many.p50 : 0;
    char p50[UNITS_TEXT], p99[UNITS_TEXT];
    units_time(p50, one.p50);
    units_time(p99, one.p99);
    if (p->u.json)
      buf_printf(out,
                 ",\n  \"latency_p50_s\": %.6g, \"latency_p99_s\": %.6g, \"batch\": %lld, "
                 "\"examples_per_s\": %.6g",
                 one.p50, one.p99, (long long)batch, rate);
    else
      buf_printf(out, "one example: p50 %s, p99 %s of %d runs; batches of %lld: %.0f examples/s\n",
                 p50, p99, n_one, (long long)batch, rate);
  }
  free(s);
  return e;
}

static Err *add_input(Predict *p, const char *input) {
  return is_text(p) && !is_array(input) ? add_text(p, input) : add_file(p, input);
}

static bool is_folder(const char *path) {
  struct stat s;
  return !stat(path, &s) && S_ISDIR(s.st_mode);
}

/* The pictures in a folder, by name, then those of the folders in it, one for each class. */
static Err *add_pictures(Predict *p, const char *folder, int deep, int *found) {
  struct dirent **list = NULL;
  int n = scandir(folder, &list, NULL, alphasort);
  Err *e = n < 0 ? err_errno("cannot read '%s'", folder) : NULL;
  for (int inside = 0; inside <= deep; inside++)
    for (int i = 0; i < n && !e; i++) {
      char *path = xasprintf("%s/%s", folder, list[i]->d_name);
      bool within = list[i]->d_name[0] != '.' && is_folder(path);
      if (inside && within) e = add_pictures(p, path, 0, found);
      else if (!inside && !within && picture_named(path)) e = add_file(p, path), ++*found;
      free(path);
    }
  for (int i = 0; i < n; i++) free(list[i]);
  free(list);
  return e;
}

static Err *add_folder(Predict *p, const char *folder) {
  int found = 0;
  TRY(add_pictures(p, folder, 1, &found));
  if (found) return NULL;
  return err_hint(err_new(ERR_INVALID, "'%s' holds no pictures", folder), "*.png, *.jpg, *.jpeg");
}

static Err *run(Predict *p, int n, char **inputs) {
  struct stat st;
  TRY(use_open(&p->u, inputs[0]));
  if (is_text(p)) TRY(tokens_open(infer_info(p->u.infer), &p->tokens));
  for (int i = 1; i < n; i++) {
    bool folder = !is_text(p) && !stat(inputs[i], &st) && S_ISDIR(st.st_mode);
    TRY(folder ? add_folder(p, inputs[i]) : add_input(p, inputs[i]));
  }
  Buf text = {0};
  if (p->u.json) buf_cstr(&text, "{\n  \"answers\": [\n");
  Err *e = answer(p, &text);
  if (!e && p->u.json) buf_cstr(&text, "\n  ]");
  if (!e) e = put_times(p, &text);
  if (!e) fputs(text.p, stdout);
  if (!e && p->u.json) puts("\n}");
  buf_free(&text);
  return e;
}

static int predict(int argc, char **argv) {
  Predict p = {.top = 3, .measure = 50};
  CliArgs args = {argc, argv, options, 0};
  for (int o; (o = cli_next(&args)) != -1;) {
    if (o == CLI_HELP) return fputs(usage, stdout), 0;
    if (o == '?') return 2;
    if (o == O_PROGRAM) p.u.predict_program = optarg;
    else if (o == O_TOP       ? !cli_count(&args, 1, &p.top)
             : o == O_MEASURE ? !cli_count(&args, 0, &p.measure)
                              : !use_option(&args, o, &p.u))
      return 2;
  }
  if (optind > argc - 2) return cli_wrong(&args, "wants RUN and an INPUT");
  Err *e = run(&p, argc - optind, argv + optind);
  for (int i = 0; i < p.asked.n; i++) free(p.asked.v[i].name);
  vec_free(&p.asked);
  buf_free(&p.inputs);
  tokens_close(p.tokens);
  use_close(&p.u);
  if (!e) return 0;
  err_report(e);
  return 1;
}

const CliVerb cli_predict = {"predict", "a trained network's answers to pictures or text", predict};
