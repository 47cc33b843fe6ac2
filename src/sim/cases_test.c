/* cases: small programs and what a chip's own compiler makes of them, tests/sim/cases/FOLDER/NAME.mlir. Its README says what the
 * lines of a case mean. build/cases_test 'tpu/scan*' runs some of them. */
#include <ctype.h>
#include <glob.h>
#include <stdlib.h>

#include "sim/estimate_test.h"

#define FOLDER WEFT_SOURCE_DIR "/tests/sim/cases/"

typedef struct Case {
  const char *path;
  Str text;   /* the whole file */
  Str values; /* of the last WITH: "N=128 T=bf16" */
  int line, wrong, seen;
} Case;

/* ---- what can be said of an estimate --------------------------------------------------------- */

static bool of_kind(const SimKernel *k, Str op) { return op.n ? str_is(op, k->op) : !no_kernel(k); }

static double kernel_count(const SimReport *r, Str op) {
  double n = 0;
  for (int i = 0; i < r->n_kernels; i++) n += of_kind(&r->kernels[i], op);
  return n;
}

static double kernel_runs(const SimReport *r, Str op) {
  double n = 0;
  for (int i = 0; i < r->n_kernels; i++)
    if (of_kind(&r->kernels[i], op)) n += r->kernels[i].count;
  return n;
}

static double cycles(const SimReport *r, Str op) {
  double n = 0;
  if (!op.n) return r->cycles;
  for (int i = 0; i < r->n_kernels; i++)
    if (of_kind(&r->kernels[i], op)) n += r->kernels[i].est_cycles;
  return n;
}

/* Is it the array that is meant: by its bytes, by its type and layout, or by the name that its operation gave it? */
static bool is_array(const SimBuffer *b, const char *what) {
  double bytes;
  if (sscanf(what, "%lf bytes", &bytes) == 1) return b->bytes == bytes;
  return *what == '[' ? strstr(b->type, what) != NULL : !strncmp(b->name, what, strlen(what));
}

static double arrays(const SimReport *r, Str what) {
  double n = 0;
  char *text = xstrndup(what.p, what.n);
  for (int i = 0; i < r->n_lives; i++) n += is_array(&r->lives[i], text);
  free(text);
  return n;
}

static double held(const SimReport *r, Str owner) {
  for (int o = 0; o < SIM_OWNERS; o++)
    if (str_is(owner, sim_owner_name(o))) return r->owners[o].bytes;
  return NAN;
}

#define FIELD(key, field) \
  static double key(const SimReport *r, Str nothing) { return nothing.n ? NAN : (double)r->field; }
FIELD(peak, peak_bytes)
FIELD(temporaries, temp_bytes)
FIELD(argument_bytes, argument_bytes)
FIELD(result_bytes, output_bytes)
FIELD(fits, fits)
FIELD(training, training)
FIELD(rematerialized, rematerialized)
FIELD(attentions, attentions)
FIELD(circular, circular)
#undef FIELD

static double microseconds(const SimReport *r, Str nothing) {
  return nothing.n ? NAN : 1e6 * r->time_s;
}

static const struct {
  const char *key;
  double (*get)(const SimReport *r, Str what);
} figures[] = {{"cycles", cycles},
               {"kernels", kernel_count},
               {"runs", kernel_runs},
               {"arrays", arrays},
               {"held", held},
               {"peak", peak},
               {"temp", temporaries},
               {"arguments", argument_bytes},
               {"results", result_bytes},
               {"us", microseconds},
               {"fits", fits},
               {"training", training},
               {"rematerialized", rematerialized},
               {"attentions", attentions},
               {"circular", circular}};

/* ---- the lines of a case --------------------------------------------------------------------- */

static void complain(Case *c, const char *fmt, ...) {
  va_list ap;
  c->wrong++;
  va_start(ap, fmt);
  print_error("%s:%d: ", c->path, c->line);
  vprint_error(fmt, ap);
  print_error("\n");
  va_end(ap);
}

/* What stands before the first of `ends`, outside of brackets, and is taken off `s` with it. */
static Str take(Str *s, const char *ends) {
  size_t i = 0;
  for (int depth = 0; i < s->n && (depth || !strchr(ends, s->p[i])); i++)
    depth += (strchr("([{", s->p[i]) != NULL) - (strchr(")]}", s->p[i]) != NULL);
  Str head = {s->p, i};
  i += i < s->n;
  while (i < s->n && s->p[i] == ' ') i++;
  *s = (Str){s->p + i, s->n - i};
  return head;
}

/* "cycles(copy)" without what is in brackets, which comes back. */
static Str bracketed(Str *key) {
  const char *open = memchr(key->p, '(', key->n);
  if (!open) return (Str){0};
  Str in = {open + 1, key->n - (size_t)(open + 1 - key->p) - 1};
  key->n = (size_t)(open - key->p);
  return in;
}

/* Is x what `want` says: "12", "12 ±3%", "<12", ">12" or "10..12"? */
static bool is_wanted(double x, const char *want) {
  const char *range = strstr(want, "..");
  double n, percent = 0;
  if (*want == '<') return x < strtod(want + 1, NULL);
  if (*want == '>') return x > strtod(want + 1, NULL);
  if (range) return x >= strtod(want, NULL) && x <= strtod(range + 2, NULL);
  if (sscanf(want, "%lf ±%lf%%", &n, &percent) < 1) return false;
  return fabs(x - n) <= percent / 100 * fabs(n);
}

static void check_owner(Case *c, const SimReport *r, Str number, Str want) {
  int i = atoi(number.p);
  if (i < 0 || i >= r->n_args) complain(c, "there is no argument %d", i);
  else if (!str_is(want, sim_owner_name(r->arg_owners[i])))
    complain(c, "argument %d belongs to %s, not %.*s", i, sim_owner_name(r->arg_owners[i]),
             (int)want.n, want.p);
}

static void check_figure(Case *c, const SimReport *r, Str key, Str what, Str want) {
  for (int i = 0; i < COUNT_OF(figures); i++) {
    if (!str_is(key, figures[i].key)) continue;
    char *text = xstrndup(want.p, want.n);
    double x = figures[i].get(r, what);
    if (!is_wanted(x, text))
      complain(c, "%s(%.*s) is %.9g, not %s", figures[i].key, (int)what.n, what.p, x, text);
    free(text);
    return;
  }
  complain(c, "nothing is called %.*s", (int)key.n, key.p);
}

static SimOpts options(Case *c, Str words) {
  SimOpts o = {0};
  while (words.n) {
    Str w = take(&words, ",");
    if (str_is(w, "eager")) o.eager = true;
    else if (str_is(w, "library")) o.library = true;
    else if (str_is(w, "fused")) o.fused_attention = true;
    else complain(c, "no option is called %.*s", (int)w.n, w.p);
  }
  return o;
}

/* NAME's value among "NAME=VALUE NAME=VALUE"; empty: there is none. */
static Str value_of(Str values, Str name) {
  while (values.n) {
    Str value = take(&values, " "), key = take(&value, "=");
    if (str_eq(key, name)) return value;
  }
  return (Str){0};
}

/* NAME or {NAME} at the beginning of `s`, which is taken off it. */
static Str take_name(Str *s) {
  bool braces = s->n && *s->p == '{';
  Str name = {s->p + braces, 0};
  size_t rest = s->n - braces;
  while (name.n < rest && (isupper(name.p[name.n]) || isdigit(name.p[name.n]))) name.n++;
  size_t all = name.n + braces + (braces && name.n < rest);
  *s = (Str){s->p + all, s->n - all};
  return name;
}

/* The program with WITH's values in place of $NAME and ${NAME}. */
static char *program(Case *c) {
  Buf b = {0};
  for (Str t = c->text; t.n;) {
    const char *dollar = memchr(t.p, '$', t.n);
    Str plain = {t.p, dollar ? (size_t)(dollar - t.p) : t.n};
    buf_str(&b, plain);
    if (!dollar) break;
    t = (Str){dollar + 1, t.n - plain.n - 1};
    Str name = take_name(&t), value = value_of(c->values, name);
    if (!value.n) complain(c, "WITH gives no %.*s", (int)name.n, name.p);
    buf_str(&b, value);
  }
  buf_byte(&b, 0);
  return b.p;
}

/* CHIP[,OPTION...]: KEY WANT[, KEY WANT]... */
static void check_line(Case *c, Str line) {
  Str opts = take(&line, ":"), name = take(&opts, ",");
  SimOpts o = options(c, opts);
  char *chip = xstrndup(name.p, name.n), *text = program(c);
  SimReport *r = estimate_as(text, chip, &o);
  while (line.n) {
    Str want = take(&line, ","), key = take(&want, " "), what = bracketed(&key);
    if (str_is(key, "owner")) check_owner(c, r, what, want);
    else check_figure(c, r, key, what, want);
    c->seen++;
  }
  sim_report_free(r);
  free(text);
  free(chip);
}

static Str after(Str s, size_t n) { return (Str){s.p + n, s.n - n}; }

static Str take_line(Str *s) {
  const char *end = memchr(s->p, '\n', s->n);
  Str line = {s->p, end ? (size_t)(end - s->p) : s->n};
  *s = after(*s, line.n + (end != NULL));
  return line;
}

static void check_case(void **state) {
  Case c = {.path = *state};
  Buf file = {0};
  assert_null(file_read(c.path, &file));
  c.text = (Str){file.p, file.n};
  for (Str rest = c.text; rest.n;) {
    Str line = take_line(&rest);
    c.line++;
    if (str_starts(line, "// WITH ")) c.values = after(line, 8);
    if (str_starts(line, "// EXPECT ")) check_line(&c, after(line, 10));
  }
  buf_free(&file);
  if (!c.seen) complain(&c, "nothing is expected");
  if (c.wrong) fail_msg("%d of %d expectations are wrong", c.wrong, c.seen);
}

int main(int argc, char **argv) {
  glob_t files;
  if (glob(FOLDER "*/*.mlir", 0, NULL, &files)) return 1;
  struct CMUnitTest *tests = xcalloc(files.gl_pathc, sizeof *tests);
  for (size_t i = 0; i < files.gl_pathc; i++)
    tests[i] = (struct CMUnitTest){.name = files.gl_pathv[i] + strlen(FOLDER),
                                   .test_func = check_case,
                                   .initial_state = files.gl_pathv[i]};
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  int failed = _cmocka_run_group_tests("cases", tests, files.gl_pathc, NULL, NULL);
  free(tests);
  globfree(&files);
  return failed;
}
