/* weft eval: a trained network on test examples. */
#include "cli/use.h"

#include <math.h>
#include <stdio.h>

static const char usage[] =
    "usage: weft eval RUN [options]\n"
    "\n"
    "RUN is a run folder of `weft train --out`, or a checkpoint in one. Its network answers the "
    "test\n"
    "examples of the data that it was trained with.\n"
    "\n"
    "  --data D           another data set of the same kind (weft train --help lists them): its "
    "test\n"
    "                     examples, or all where it does not say which those are\n"
    "  --data-dir DIR     where its files are\n"
    "  --eval-program P   of a train step of your own: what evaluates (default: the "
    "run's)\n" USE_HELP;

enum { O_DATA = USE_OWN, O_DIR, O_PROGRAM };
static const struct option options[] = {{"data", 1, NULL, O_DATA},
                                        {"data-dir", 1, NULL, O_DIR},
                                        {"eval-program", 1, NULL, O_PROGRAM},
                                        USE_ROWS,
                                        {0}};

static Err *open_data(const CheckpointInfo *c, const Model *m, const char *spec, const char *dir,
                      Data **out) {
  DataOpts o = model_data(m, &c->config);
  o.dir = dir;
  o.augment = false;
  o.tokenizer = c->tokenizer;
  o.like = c->data;
  if (!spec) spec = c->data->spec;
  if (!spec) return err_new(ERR_INVALID, "the checkpoint names no data: --data");
  TRY(data_open(spec, &o, out));
  if (c->data->spec && !strcmp((*out)->spec, c->data->spec)) return NULL;
  data_close(*out); /* another set, of which nothing was learnt from */
  *out = NULL;
  o.whole = true;
  return data_open(spec, &o, out);
}

static void print(const Use *u, const Data *d, const InferScore *s) {
  const CheckpointInfo *c = infer_info(u->infer);
  double rate = s->seconds > 0 ? (double)s->examples / s->seconds : 0;
  bool text = d->fields[0].type == DT_I32 && d->fields[0].rank == 1;
  if (u->json) {
    Buf b = {0};
    buf_cstr(&b, "{\"model\": ");
    buf_json_str(&b, c->model);
    buf_cstr(&b, ", \"data\": ");
    buf_json_str(&b, d->name);
    buf_printf(&b, ", \"step\": %lld, \"examples\": %lld, ", (long long)c->step,
               (long long)s->examples);
    buf_json_num(&b, "loss", s->loss);
    buf_cstr(&b, ", ");
    buf_json_num(&b, "accuracy", s->accuracy);
    if (text) buf_cstr(&b, ", "), buf_json_num(&b, "perplexity", exp(s->loss));
    buf_cstr(&b, ", ");
    buf_json_num(&b, "examples_per_s", rate);
    buf_cstr(&b, "}");
    puts(b.p);
    buf_free(&b);
    return;
  }
  printf("%s after %lld steps, on %lld test examples of %s\n", c->model, (long long)c->step,
         (long long)s->examples, d->name);
  if (!isnan(s->accuracy)) printf("accuracy %.2f %%, ", 100 * s->accuracy);
  printf("loss %.4f", s->loss);
  if (text) printf(", perplexity %.2f", exp(s->loss));
  printf("   (%.0f examples/s)\n", rate);
}

static int eval(int argc, char **argv) {
  Use u = {0};
  const char *spec = NULL, *dir = NULL;
  CliArgs args = {argc, argv, options, 0};
  for (int o; (o = cli_next(&args)) != -1;) {
    if (o == CLI_HELP) return fputs(usage, stdout), 0;
    if (o == '?') return 2;
    if (o == O_DATA) spec = optarg;
    else if (o == O_DIR) dir = optarg;
    else if (o == O_PROGRAM) u.eval_program = optarg;
    else if (!use_option(&args, o, &u)) return 2;
  }
  if (optind != argc - 1) return cli_wrong(&args, "wants one RUN");
  Data *d = NULL;
  InferScore s;
  Err *e = use_open(&u, argv[optind]);
  if (!e) e = open_data(infer_info(u.infer), infer_model(u.infer), spec, dir, &d);
  if (!e) e = infer_evaluate(u.infer, d, &s);
  if (!e) print(&u, d, &s);
  data_close(d);
  use_close(&u);
  if (!e) return 0;
  err_report(e);
  return 1;
}

const CliVerb cli_eval = {"eval", "a trained network's accuracy and loss on test examples", eval};
