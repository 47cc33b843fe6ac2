/* weft systolic: a matrix product on the systolic array, element by element, with fill, steady
 * state and drain. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/system.h"
#include "cli/cli.h"
#include "sim/sim.h"

enum {
  MAX_CHECKED = 100000000, /* elements of a matrix with numbers */
  SLOW = 300000000         /* element updates that take more than a second */
};

static const char usage[] =
    "usage: weft systolic M N K [options]\n"
    "\n"
    "Simulates C[M,N] = A[M,K] B[K,N] on an R x C array, every element in every cycle.\n"
    "\n"
    "  fill     cycles until the first tile has all its elements at work\n"
    "  steady   from then until the last tile begins to run empty; tiles that fill only part of\n"
    "           the array and gaps between tiles count here\n"
    "  drain    cycles after that, until the last result has left\n"
    "\n"
    "  --rows R, --cols C   the array (default 128 x 128)\n"
    "  --flow ws   weights stay (the TPU); os: results stay\n"
    "  --single    weights are not double-buffered, as SCALE-Sim assumes\n"
    "  --draw      the number of working elements over time\n"
    "  --svg FILE  the same as a picture, with fill, steady state and drain\n"
    "  --check     multiply real numbers and compare with the plain product\n"
    "  --json      the counts as one JSON object\n"
    "  --help      this text\n";

static void draw(const SystolicRun *r) {
  enum { W = 72, H = 12 };
  double col[W] = {0};
  for (int i = 0; i < W; i++) {
    int64_t a = r->n_active * i / W, b = MAX(a + 1, r->n_active * (i + 1) / W), s = 0;
    for (int64_t t = a; t < b && t < r->n_active; t++) s += r->active[t];
    col[i] = (double)s / (double)(b - a) / ((double)r->rows * r->cols);
  }
  for (int y = H; y >= 1; y--) {
    printf("%4.0f%% |", 100.0 * y / H);
    for (int i = 0; i < W; i++)
      putchar(col[i] * H >= y - 0.5 ? '#' : col[i] * H > y - 1 && y == 1 ? '.' : ' ');
    putchar('\n');
  }
  printf("      +");
  for (int i = 0; i < W; i++) putchar('-');
  printf("\n       0%*lld cycles\n", W - 8, (long long)r->cycles);
}

/* Working elements over time as one polygon, a point a column. */
static Err *draw_svg(const SystolicRun *r, const char *path) {
  enum { W = 900, H = 240, LEFT = 60, TOP = 40 };
  Buf b = {0};
  double x = (double)W / (double)r->cycles, all = (double)r->rows * r->cols;
  buf_printf(&b,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
             "font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%%\" height=\"100%%\" "
             "fill=\"white\"/>\n<text x=\"%d\" y=\"22\">%d x %d array: %lld cycles, %.1f %% "
             "utilised</text>\n<polygon fill=\"#4878a8\" points=\"%d,%d",
             W + 2 * LEFT, H + TOP + 60, LEFT, r->rows, r->cols, (long long)r->cycles,
             100 * r->utilisation, LEFT, TOP + H);
  for (int i = 0; i <= W; i++) {
    int64_t t = MIN(r->n_active - 1, (int64_t)((double)i / x)), end = (int64_t)((i + 1) / x);
    double sum = 0;
    int64_t n = 0;
    do sum += (double)r->active[t], n++;
    while (++t < end && t < r->n_active);
    buf_printf(&b, " %d,%.1f", LEFT + i, TOP + H * (1 - sum / (double)n / all));
  }
  buf_printf(&b, " %d,%d\"/>\n", LEFT + W, TOP + H);
  const struct {
    const char *name;
    int64_t from, to;
  } parts[] = {{"fill", 0, r->fill},
               {"steady", r->fill, r->fill + r->steady},
               {"drain", r->fill + r->steady, r->cycles}};
  for (int i = 0; i < COUNT_OF(parts); i++) {
    double from = LEFT + (double)parts[i].from * x, to = LEFT + (double)parts[i].to * x;
    buf_printf(
        &b,
        "<path d=\"M%.1f %d V%d\" stroke=\"#888\" stroke-dasharray=\"3\"/>\n<text x=\"%.1f\" "
        "y=\"%d\" text-anchor=\"middle\">%s %lld</text>\n",
        to, TOP, TOP + H + 8, (from + to) / 2, TOP + H + 20 + 16 * (i == 1), parts[i].name,
        (long long)(parts[i].to - parts[i].from));
  }
  buf_printf(&b, "<text x=\"8\" y=\"%d\">100 %%</text>\n<text x=\"24\" y=\"%d\">0</text>\n</svg>\n",
             TOP + 10, TOP + H);
  Err *e = file_write(path, b.p, b.n);
  buf_free(&b);
  return e;
}

/* What was asked for. */
typedef struct Ask {
  int rows, cols;
  int64_t m, n, k;
  SystolicFlow flow;
  bool double_buffered, draw, check, json;
  const char *svg;
} Ask;

static const char *flow_name(SystolicFlow f) {
  return f == SYSTOLIC_WS ? "weight-stationary" : "output-stationary";
}

static int64_t formula(const Ask *a) {
  return systolic_cycles(a->flow, a->rows, a->cols, a->m, a->n, a->k, a->double_buffered);
}

/* A product of too many cycles to follow: what the closed form says of it. */
static void closed_form(const Ask *a) {
  int64_t cycles = formula(a);
  double macs = (double)a->m * (double)a->n * (double)a->k;
  double share = macs / ((double)cycles * a->rows * a->cols);
  if (a->json)
    printf("{\"flow\": \"%s\", \"rows\": %d, \"cols\": %d, \"m\": %lld, \"n\": %lld, \"k\": %lld, "
           "\"cycles\": %lld, \"fill\": null, \"steady\": null, \"drain\": null, \"macs\": %.0f, "
           "\"utilisation\": %.6f, \"formula_cycles\": %lld}\n",
           flow_name(a->flow), a->rows, a->cols, (long long)a->m, (long long)a->n, (long long)a->k,
           (long long)cycles, macs, share, (long long)cycles);
  else
    printf("%lld x %lld x %lld on a %d x %d array: too many cycles to follow; by the closed form\n"
           "  cycles       %lld\n  multiply-adds %.0f\n  utilisation  %.2f %%\n",
           (long long)a->m, (long long)a->n, (long long)a->k, a->rows, a->cols, (long long)cycles,
           macs, 100 * share);
}

static void print_json(const Ask *a, const SystolicRun *r, double seconds) {
  printf("{\"flow\": \"%s\", \"rows\": %d, \"cols\": %d, \"m\": %lld, \"n\": %lld, \"k\": %lld, "
         "\"cycles\": %lld, \"fill\": %lld, \"steady\": %lld, \"drain\": %lld, \"load\": %lld, "
         "\"macs\": %lld, \"folds\": %lld, \"utilisation\": %.6f, \"formula_cycles\": %lld, "
         "\"scalesim_cycles\": %lld, \"seconds\": %.9f}\n",
         flow_name(a->flow), a->rows, a->cols, (long long)a->m, (long long)a->n, (long long)a->k,
         (long long)r->cycles, (long long)r->fill, (long long)r->steady, (long long)r->drain,
         (long long)r->load, (long long)r->macs, (long long)r->folds, r->utilisation,
         (long long)formula(a),
         (long long)systolic_scalesim_cycles(a->flow, a->rows, a->cols, a->m, a->n, a->k), seconds);
}

static void print_text(const Ask *a, const SystolicRun *r, double seconds) {
  printf("%lld x %lld x %lld on a %d x %d array, %s, %s\n", (long long)a->m, (long long)a->n,
         (long long)a->k, a->rows, a->cols, flow_name(a->flow),
         a->double_buffered ? "double-buffered" : "single-buffered");
  printf("  cycles       %lld   (closed form %lld, SCALE-Sim prints %lld)\n", (long long)r->cycles,
         (long long)formula(a),
         (long long)systolic_scalesim_cycles(a->flow, a->rows, a->cols, a->m, a->n, a->k));
  printf("  fill         %lld   (until the first tile has all its elements at work)\n"
         "  steady       %lld   (until the last tile begins to run empty)\n"
         "  drain        %lld   (until the last result has left)\n",
         (long long)r->fill, (long long)r->steady, (long long)r->drain);
  printf("  exposed %s %lld\n", a->flow == SYSTOLIC_WS ? "load" : "out ", (long long)r->load);
  printf("  tiles        %lld\n  multiply-adds %lld\n  utilisation  %.2f %%\n", (long long)r->folds,
         (long long)r->macs, 100 * r->utilisation);
  double scale = seconds < 1e-3 ? 1e6 : seconds < 1 ? 1e3 : 1;
  printf("  %s in %.3g %s, %.3g element updates a second\n",
         r->counted ? "counted wave by wave" : "simulated", seconds * scale,
         scale == 1e6   ? "us"
         : scale == 1e3 ? "ms"
                        : "s",
         (double)r->cycles * r->rows * r->cols / (seconds > 0 ? seconds : 1e-9));
}

/* The largest difference of the array's result from the plain product x[m,k] y[k,n]. */
static double difference(const Ask *a, const float *x, const float *y, const float *result) {
  double worst = 0;
  for (int64_t i = 0; i < a->m; i++)
    for (int64_t j = 0; j < a->n; j++) {
      double s = 0;
      for (int64_t k = 0; k < a->k; k++) s += (double)x[i * a->k + k] * y[k * a->n + j];
      double diff = fabs(s - result[i * a->n + j]);
      worst = diff > worst ? diff : worst;
    }
  return worst;
}

/* Follows the product, with the numbers x and y unless they are NULL; returns the exit status. */
static int follow(const Ask *a, const float *x, const float *y) {
  Err *no = a->svg ? file_may_write(a->svg) : NULL;
  if (no) return err_report(no), 1;
  SystolicRun r;
  double start = time_now_s(), updates = (double)formula(a) * a->rows * a->cols;
  if (x && updates > SLOW) /* then it would seem to hang */
    fprintf(stderr, "--check follows %.3g element updates one by one; this takes a while\n",
            updates);
  Err *e = systolic_run(a->flow, a->rows, a->cols, a->m, a->n, a->k, x, y, a->double_buffered, &r);
  double seconds = time_now_s() - start;
  if (e && e->code == ERR_EXHAUSTED && !a->draw && !a->svg && !x) {
    err_free(e);
    closed_form(a);
    return 0;
  }
  if (e) return err_report(e), 1;
  int status = 0;
  if (a->json) print_json(a, &r, seconds);
  else print_text(a, &r, seconds);
  if (r.cycles != formula(a))
    fprintf(stderr, "the closed form disagrees with the simulation\n"), status = 1;
  if (x) {
    double worst = difference(a, x, y, r.result);
    if (!a->json) printf("  largest difference from the plain product: %g\n", worst);
    if (worst > 1e-3 * (double)a->k) status = 1;
  }
  if (a->draw && !a->json) draw(&r);
  if (a->svg && (e = draw_svg(&r, a->svg))) err_report(e), status = 1;
  systolic_free(&r);
  return status;
}

/* The same with small whole numbers, so that the result is exact. */
static int follow_numbers(const Ask *a) {
  if ((double)a->m * (double)a->k > MAX_CHECKED || (double)a->k * (double)a->n > MAX_CHECKED ||
      (double)a->m * (double)a->n > MAX_CHECKED) {
    err_report(err_hint(
        err_new(ERR_EXHAUSTED, "--check multiplies matrices of at most %d elements", MAX_CHECKED),
        "smaller sizes, or without --check the counts alone"));
    return 1;
  }
  float *x = xmalloc(sizeof *x * (size_t)(a->m * a->k));
  float *y = xmalloc(sizeof *y * (size_t)(a->k * a->n));
  for (int64_t i = 0; i < a->m * a->k; i++) x[i] = (float)((i * 7 + 3) % 11 - 5);
  for (int64_t i = 0; i < a->k * a->n; i++) y[i] = (float)((i * 5 + 1) % 13 - 6);
  int status = follow(a, x, y);
  free(x);
  free(y);
  return status;
}

static int run(int argc, char **argv) {
  enum { ROWS = CLI_FIRST, COLS, FLOW, SINGLE, DRAW, SVG, CHECK, JSON };
  static const struct option options[] = {{"rows", 1, NULL, ROWS},
                                          {"cols", 1, NULL, COLS},
                                          {"flow", 1, NULL, FLOW},
                                          {"single", 0, NULL, SINGLE},
                                          {"draw", 0, NULL, DRAW},
                                          {"svg", 1, NULL, SVG},
                                          {"check", 0, NULL, CHECK},
                                          {"json", 0, NULL, JSON},
                                          CLI_HELP_ROW,
                                          {0}};
  static const char *const flows[] = {"ws", "os", NULL};
  Ask a = {.rows = 128, .cols = 128, .flow = SYSTOLIC_WS, .double_buffered = true};
  CliArgs args = {argc, argv, options, 0};
  for (int i = 1; i < argc; i++) /* -1 would be an option that there is not */
    if (argv[i][0] == '-' && argv[i][1] >= '0' && argv[i][1] <= '9')
      return cli_wrong(&args, "sizes must be positive, not %s", argv[i]);
  for (int o, i; (o = cli_next(&args)) != -1;) switch (o) {
    case ROWS:
      if (!cli_int(&args, 1, &a.rows)) return 2;
      break;
    case COLS:
      if (!cli_int(&args, 1, &a.cols)) return 2;
      break;
    case FLOW:
      if ((i = cli_choice(&args, flows)) < 0) return 2;
      a.flow = i ? SYSTOLIC_OS : SYSTOLIC_WS;
      break;
    case SINGLE: a.double_buffered = false; break;
    case DRAW: a.draw = true; break;
    case SVG: a.svg = optarg; break;
    case CHECK: a.check = true; break;
    case JSON: a.json = true; break;
    case CLI_HELP: return fputs(usage, stdout), 0;
    default: return 2;
    }
  if (optind != argc - 3) return cli_wrong(&args, "three sizes, please: M N K");
  int64_t *const sizes[] = {&a.m, &a.n, &a.k};
  for (int i = 0; i < 3; i++) {
    char *end, *text = argv[optind + i];
    errno = 0;
    *sizes[i] = strtoll(text, &end, 10);
    if (errno == ERANGE) return cli_wrong(&args, "a size is at most 2^50, not %s", text);
    if (end == text || *end || *sizes[i] < 1)
      return cli_wrong(&args, "a size is a whole number of at least 1, not '%s'", text);
  }
  return a.check ? follow_numbers(&a) : follow(&a, NULL, NULL);
}

const CliVerb cli_systolic = {"systolic",
                              "a matrix product on the systolic array, element by element", run};
