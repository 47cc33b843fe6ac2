/* weft systolic: a matrix product on the systolic array, element by element, with fill, steady
 * state and drain. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "sim/sim.h"

static const char usage[] =
    "usage: weft systolic M N K [options]\n"
    "\n"
    "Simulates C[M,N] = A[M,K] B[K,N] on an R x C array, every element in every cycle.\n"
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

/* A product of too many cycles to follow: what the closed form says of it. */
static int closed_form(SystolicFlow flow, int rows, int cols, const int64_t *d, bool db,
                       bool json) {
  int64_t cycles = systolic_cycles(flow, rows, cols, d[0], d[1], d[2], db);
  double macs = (double)d[0] * (double)d[1] * (double)d[2];
  double share = macs / ((double)cycles * rows * cols);
  if (json)
    printf("{\"flow\": \"%s\", \"rows\": %d, \"cols\": %d, \"m\": %lld, \"n\": %lld, \"k\": %lld, "
           "\"cycles\": %lld, \"fill\": null, \"steady\": null, \"drain\": null, \"macs\": %.0f, "
           "\"utilisation\": %.6f, \"formula_cycles\": %lld}\n",
           flow == SYSTOLIC_WS ? "weight-stationary" : "output-stationary", rows, cols,
           (long long)d[0], (long long)d[1], (long long)d[2], (long long)cycles, macs, share,
           (long long)cycles);
  else
    printf("%lld x %lld x %lld on a %d x %d array: too many cycles to follow; by the closed form\n"
           "  cycles       %lld\n  multiply-adds %.0f\n  utilisation  %.2f %%\n",
           (long long)d[0], (long long)d[1], (long long)d[2], rows, cols, (long long)cycles, macs,
           100 * share);
  return 0;
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
  const char *svg = NULL;
  int64_t d[3];
  int rows = 128, cols = 128;
  SystolicFlow flow = SYSTOLIC_WS;
  bool db = true, want_draw = false, check = false, json = false;
  CliArgs args = {argc, argv, options, 0};
  for (int o, i; (o = cli_next(&args)) != -1;) switch (o) {
    case ROWS:
      if (!cli_int(&args, 1, &rows)) return 2;
      break;
    case COLS:
      if (!cli_int(&args, 1, &cols)) return 2;
      break;
    case FLOW:
      if ((i = cli_choice(&args, flows)) < 0) return 2;
      flow = i ? SYSTOLIC_OS : SYSTOLIC_WS;
      break;
    case SINGLE: db = false; break;
    case DRAW: want_draw = true; break;
    case SVG: svg = optarg; break;
    case CHECK: check = true; break;
    case JSON: json = true; break;
    case CLI_HELP: return fputs(usage, stdout), 0;
    default: return 2;
    }
  if (optind != argc - 3) return cli_wrong(&args, "three sizes, please: M N K");
  for (int i = 0; i < 3; i++) {
    char *end;
    d[i] = strtoll(argv[optind + i], &end, 10);
    if (*end || d[i] < 1)
      return cli_wrong(&args, "a size is a whole number of at least 1, not '%s'", argv[optind + i]);
  }
  float *a = NULL, *b = NULL;
  if (check && d[0] > 0 && d[1] > 0 && d[2] > 0 && (double)d[0] * (double)d[2] < 1e8 &&
      (double)d[2] * (double)d[1] < 1e8) {
    a = xmalloc(sizeof(float) * (size_t)(d[0] * d[2]));
    b = xmalloc(sizeof(float) * (size_t)(d[2] * d[1]));
    for (int64_t i = 0; i < d[0] * d[2]; i++) a[i] = (float)((i * 7 + 3) % 11 - 5);
    for (int64_t i = 0; i < d[2] * d[1]; i++) b[i] = (float)((i * 5 + 1) % 13 - 6);
  }
  SystolicRun r;
  double t0 = time_now_s();
  Err *e = systolic_run(flow, rows, cols, d[0], d[1], d[2], a, b, db, &r);
  double dt = time_now_s() - t0;
  int status = 0;
  if (e && e->code == ERR_EXHAUSTED && !want_draw && !svg && !a) {
    err_free(e);
    status = closed_form(flow, rows, cols, d, db, json);
  } else if (e) {
    err_report(e);
    status = 1;
  } else {
    int64_t formula = systolic_cycles(flow, rows, cols, d[0], d[1], d[2], db);
    int64_t scale = systolic_scalesim_cycles(flow, rows, cols, d[0], d[1], d[2]);
    const char *kind = flow == SYSTOLIC_WS ? "weight-stationary" : "output-stationary";
    if (json) {
      printf("{\"flow\": \"%s\", \"rows\": %d, \"cols\": %d, \"m\": %lld, \"n\": %lld, \"k\": "
             "%lld, \"cycles\": %lld, "
             "\"fill\": %lld, \"steady\": %lld, \"drain\": %lld, \"load\": %lld, \"macs\": %lld, "
             "\"folds\": %lld, "
             "\"utilisation\": %.6f, \"formula_cycles\": %lld, \"scalesim_cycles\": %lld, "
             "\"seconds\": %.9f}\n",
             kind, rows, cols, (long long)d[0], (long long)d[1], (long long)d[2],
             (long long)r.cycles, (long long)r.fill, (long long)r.steady, (long long)r.drain,
             (long long)r.load, (long long)r.macs, (long long)r.folds, r.utilisation,
             (long long)formula, (long long)scale, dt);
    } else {
      printf("%lld x %lld x %lld on a %d x %d array, %s, %s\n", (long long)d[0], (long long)d[1],
             (long long)d[2], rows, cols, kind, db ? "double-buffered" : "single-buffered");
      printf("  cycles       %lld   (closed form %lld, SCALE-Sim prints %lld)\n",
             (long long)r.cycles, (long long)formula, (long long)scale);
      printf("  fill         %lld\n  steady       %lld\n  drain        %lld\n", (long long)r.fill,
             (long long)r.steady, (long long)r.drain);
      printf("  exposed %s %lld\n", flow == SYSTOLIC_WS ? "load" : "out ", (long long)r.load);
      printf("  tiles        %lld\n  multiply-adds %lld\n  utilisation  %.2f %%\n",
             (long long)r.folds, (long long)r.macs, 100 * r.utilisation);
      printf("  %s in %.3f s, %.3g element updates a second\n",
             r.counted ? "counted wave by wave" : "simulated", dt,
             (double)r.cycles * rows * cols / (dt > 0 ? dt : 1e-9));
    }
    if (r.cycles != formula)
      fprintf(stderr, "the closed form disagrees with the simulation\n"), status = 1;
    if (a && r.result) {
      double worst = 0;
      for (int64_t i = 0; i < d[0]; i++)
        for (int64_t j = 0; j < d[1]; j++) {
          double s = 0;
          for (int64_t k = 0; k < d[2]; k++) s += (double)a[i * d[2] + k] * b[k * d[1] + j];
          double diff = fabs(s - r.result[i * d[1] + j]);
          worst = diff > worst ? diff : worst;
        }
      if (!json) printf("  largest difference from the plain product: %g\n", worst);
      if (worst > 1e-3 * (double)d[2]) status = 1;
    }
    if (want_draw && !json) draw(&r);
    if (svg && (e = draw_svg(&r, svg))) err_report(e), status = 1;
    systolic_free(&r);
  }
  free(a);
  free(b);
  return status;
}

const CliVerb cli_systolic = {"systolic",
                              "a matrix product on the systolic array, element by element", run};
