/* weft serve: a trained network behind HTTP. */
#include "cli/serve_http.h"
#include "cli/use.h"
#include "infer/batcher.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char usage[] =
    "usage: weft serve RUN [options]\n"
    "\n"
    "RUN is a run folder of `weft train --out`, or a checkpoint in one. Requests that come "
    "together are\n"
    "answered in one batch. Ctrl-C or SIGTERM ends it.\n"
    "\n"
    "  GET  /             what is served: model, inputs, classes\n"
    "  GET  /health       {\"status\": \"ok\"}\n"
    "  GET  /metrics      examples, batches, latency p50 and p99 of the last 1000\n"
    "  POST /predict      a PNG or JPEG as the body, or {\"text\": ...}: the likeliest classes or "
    "tokens,\n"
    "                     of BERT those for [MASK]; of several {\"masks\": [...]}, one for each\n"
    "  POST /generate     {\"prompt\": ..., \"tokens\": 64, \"temperature\": 1, \"top_k\": 0, "
    "\"top_p\": 0,\n"
    "                     \"seed\": 1}: text\n"
    "\n"
    "  --port N           default 8080; 0: one that is free\n"
    "  --address A        default 127.0.0.1; 0.0.0.0: anybody who can reach this machine\n"
    "  --top N            answers to each input (default 5)\n"
    "  --wait-ms X        how long an example waits for others to share its batch (default "
    "2)\n" USE_HELP;

enum { O_PORT = USE_OWN, O_ADDRESS, O_TOP, O_WAIT };
static const struct option options[] = {{"port", 1, NULL, O_PORT},
                                        {"address", 1, NULL, O_ADDRESS},
                                        {"top", 1, NULL, O_TOP},
                                        {"wait-ms", 1, NULL, O_WAIT},
                                        USE_ROWS,
                                        {0}};

typedef struct Serve {
  Use u;
  const char *address;
  int port;
  int64_t top;
  double wait_ms;
  Batcher *batcher;
  Tokens *tokens; /* text */
} Serve;

static const Data *data_of(const Serve *s) { return infer_info(s->u.infer)->data; }
static bool is_text(const Serve *s) { return infer_field(s->u.infer)->type == DT_I32; }

/* ---- predict --------------------------------------------------------------------------------- */

static void put_top(const Serve *s, float *p, Buf *out) {
  int64_t k = data_of(s)->classes;
  infer_softmax(p, k);
  buf_cstr(out, "\"top\": [");
  for (int64_t i = 0; i < MIN(s->top, k); i++) {
    int64_t best = 0;
    for (int64_t c = 1; c < k; c++)
      if (p[c] > p[best]) best = c;
    char text[64];
    Buf raw = {0};
    if (is_text(s)) tokens_decode(s->tokens, (int32_t)best, &raw);
    buf_printf(out, "%s{\"class\": %lld, \"name\": ", i ? ", " : "", (long long)best);
    buf_json_str(out, is_text(s) ? (raw.p ? raw.p : "") : use_label(data_of(s), best, text));
    buf_printf(out, ", \"p\": %.6g}", (double)p[best]);
    buf_free(&raw);
    p[best] = -1;
  }
  buf_byte(out, ']');
}

/* One answer; of a text with several masks one for each, in order. */
static void put_answers(const Serve *s, float *logits, const IdVec *places, Buf *out) {
  int64_t k = data_of(s)->classes;
  buf_cstr(out, places->n > 1 ? "{\"masks\": [" : "");
  for (int i = 0; i < MAX(1, places->n); i++) {
    buf_cstr(out, i ? ", {" : "{");
    put_top(s, logits + (places->n ? places->v[i] : 0) * k, out);
    buf_byte(out, '}');
  }
  buf_cstr(out, places->n > 1 ? "]}\n" : "\n");
}

static Err *string_of(const cJSON *o, const char *key, const char **out) {
  const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
  if (!cJSON_IsObject(o))
    return err_new(ERR_INVALID, "the body is no JSON object: it wants {\"%s\": \"...\"}", key);
  if (!cJSON_IsString(v)) return err_new(ERR_INVALID, "the body has no string \"%s\"", key);
  *out = v->valuestring;
  return NULL;
}

/* A text as one example; places: where it is answered. */
static Err *text_input(const Serve *s, Str body, int32_t *out, IdVec *places) {
  cJSON *o = cJSON_ParseWithLength(body.p, body.n);
  const char *text;
  Err *e = string_of(o, "text", &text);
  if (!e) e = tokens_example(s->tokens, str_from(text), out, places);
  cJSON_Delete(o);
  return e;
}

/* How to send what this network takes, where something else came. */
static void wants(const Serve *s, const HttpCall *c, Err *e) {
  if (is_text(s)) return;
  if (!strncmp(c->type, "multipart/", 10)) {
    free(e->msg);
    e->code = ERR_UNIMPLEMENTED;
    e->msg = xstrdup("a form: the body is to be the picture itself");
  }
  err_hint(e, "curl --data-binary @FILE sends a PNG or a JPEG as it is");
}

static Err *predict(Serve *s, HttpCall *c) {
  void *input = xcalloc(1, infer_input_bytes(s->u.infer) + 1);
  float *logits = xmalloc(sizeof *logits * (size_t)infer_outputs(s->u.infer));
  IdVec places = {0};
  Err *e = is_text(s) ? text_input(s, c->body, input, &places)
                      : infer_image(s->u.infer, c->body.p, c->body.n, input);
  if (e) wants(s, c, e);
  if (!e) e = batcher_ask(s->batcher, input, logits);
  if (!e) put_answers(s, logits, &places, &c->answer);
  vec_free(&places);
  free(logits);
  free(input);
  return e;
}

/* ---- generate -------------------------------------------------------------------------------- */

typedef struct Text {
  IdVec prompt;
  GenerateOpts o;
  Generated out;
} Text;

static Err *generate_alone(void *arg, Infer *i) {
  Text *t = arg;
  return infer_generate(i, &t->prompt, &t->o, &t->out);
}

/* A number of the request, or what it is without one. */
static Err *number(const cJSON *o, const char *key, double least, double most, double *out) {
  const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
  if (!v) return NULL;
  if (!cJSON_IsNumber(v) || !(v->valuedouble >= least && v->valuedouble <= most))
    return err_new(ERR_INVALID, "\"%s\" wants a number from %g to %g", key, least, most);
  *out = v->valuedouble;
  return NULL;
}

static Err *read_request(const Serve *s, const cJSON *o, Text *t) {
  const char *prompt;
  double tokens = 64, temperature = 1, top_k = 0, top_p = 0, seed = 1;
  TRY(string_of(o, "prompt", &prompt));
  TRY(number(o, "tokens", 1, 4096, &tokens));
  TRY(number(o, "temperature", 0, 100, &temperature));
  TRY(number(o, "top_k", 0, 1e9, &top_k));
  TRY(number(o, "top_p", 0, 1, &top_p));
  TRY(number(o, "seed", 0, 9e15, &seed));
  t->o = (GenerateOpts){.tokens = (int64_t)tokens,
                        .sampling = {temperature, (int64_t)top_k, top_p, (uint64_t)seed}};
  return tokens_encode(s->tokens, str_from(prompt), &t->prompt);
}

static Err *generate(Serve *s, HttpCall *c) {
  if (!is_text(s)) return err_new(ERR_UNIMPLEMENTED, "this network makes no text");
  cJSON *o = cJSON_ParseWithLength(c->body.p, c->body.n);
  Text t = {0};
  Err *e = read_request(s, o, &t);
  if (!e) e = batcher_alone(s->batcher, generate_alone, &t);
  if (!e) {
    Buf text = {0};
    for (int i = 0; i < t.out.ids.n; i++) tokens_decode(s->tokens, t.out.ids.v[i], &text);
    buf_cstr(&c->answer, "{\"text\": ");
    buf_json_str(&c->answer, text.p ? text.p : "");
    buf_printf(&c->answer, ", \"tokens\": %d, \"first_token_s\": %.6g, \"token_s\": %.6g}\n",
               t.out.ids.n, t.out.prompt_s, t.out.each_s);
    buf_free(&text);
  }
  vec_free(&t.out.ids);
  vec_free(&t.prompt);
  cJSON_Delete(o);
  return e;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void about(const Serve *s, Buf *out) {
  const CheckpointInfo *i = infer_info(s->u.infer);
  const Field *f = &i->data->fields[0];
  buf_cstr(out, "{\"model\": ");
  buf_json_str(out, i->model);
  buf_printf(out, ", \"step\": %lld, \"weights\": %lld, \"input\": \"%s\", \"shape\": [",
             (long long)i->step, (long long)infer_weights(s->u.infer), f->name);
  for (int k = 0; k < f->rank; k++) buf_printf(out, "%s%lld", k ? ", " : "", (long long)f->dims[k]);
  buf_printf(out, "], \"classes\": %lld}\n", (long long)i->data->classes);
}

static void metrics(const Serve *s, Buf *out) {
  BatcherStats b;
  batcher_stats(s->batcher, &b);
  buf_printf(out,
             "{\"examples\": %lld, \"batches\": %lld, \"latency_p50_s\": %.6g, "
             "\"latency_p99_s\": %.6g}\n",
             (long long)b.examples, (long long)b.batches, b.p50_s, b.p99_s);
}

static void handle(void *arg, HttpCall *c) {
  static const char paths[] = "GET /, /health, /metrics; POST /predict, /generate";
  Serve *s = arg;
  bool post = !strcmp(c->method, "POST"), get = !strcmp(c->method, "GET");
  Err *e = NULL;
  if (get && !strcmp(c->path, "/")) about(s, &c->answer);
  else if (get && !strcmp(c->path, "/health")) buf_cstr(&c->answer, "{\"status\": \"ok\"}\n");
  else if (get && !strcmp(c->path, "/metrics")) metrics(s, &c->answer);
  else if (post && !strcmp(c->path, "/predict")) e = predict(s, c);
  else if (post && !strcmp(c->path, "/generate")) e = generate(s, c);
  else e = err_hint(err_new(ERR_NOT_FOUND, "there is no %s %s", c->method, c->path), "%s", paths);
  if (e) http_error(c, e);
}

static sigset_t ending_signals(void) {
  sigset_t s;
  sigemptyset(&s);
  sigaddset(&s, SIGINT);
  sigaddset(&s, SIGTERM);
  return s;
}

static Err *serve_until_signal(Serve *s) {
  HttpServer *http = NULL;
  sigset_t ends = ending_signals();
  int which;
  TRY(http_open(s->address, &s->port, handle, s, &http));
  printf("%s at http://%s:%d/\n", infer_info(s->u.infer)->model, s->address, s->port);
  fflush(stdout);
  sigwait(&ends, &which);
  http_close(http);
  BatcherStats b;
  batcher_stats(s->batcher, &b);
  fprintf(stderr, "%lld examples in %lld batches, latency p50 %.2f ms, p99 %.2f ms\n",
          (long long)b.examples, (long long)b.batches, 1e3 * b.p50_s, 1e3 * b.p99_s);
  return NULL;
}

static Err *run(Serve *s, const char *path) {
  TRY(use_open(&s->u, path));
  TRY(infer_can_answer(s->u.infer));
  if (!infer_classes(s->u.infer))
    return err_hint(err_new(ERR_UNIMPLEMENTED, "'%s' does not choose among classes",
                            infer_info(s->u.infer)->model),
                    "weft predict gives its numbers");
  if (is_text(s)) TRY(tokens_open(infer_info(s->u.infer), &s->tokens));
  int64_t fixed = infer_fixed_batch(s->u.infer);
  int64_t most = fixed ? fixed : s->u.batch ? s->u.batch : 64;
  float *logits = xmalloc(sizeof *logits * (size_t)(infer_outputs(s->u.infer) * most));
  void *zeros = xcalloc((size_t)most, infer_input_bytes(s->u.infer));
  Err *e = NULL; /* nobody waits for a compiler later */
  for (int64_t n = 1; n <= most && !e; n *= 2) e = infer_forward(s->u.infer, n, zeros, logits);
  free(zeros);
  free(logits);
  if (!e) e = batcher_open(s->u.infer, most, 1e-3 * s->wait_ms, &s->batcher);
  if (!e) e = serve_until_signal(s);
  return e;
}

static bool set(const CliArgs *args, int which, Serve *s) {
  switch (which) {
  case O_PORT:
    if (!cli_int(args, 0, &s->port)) return false;
    if (s->port > 65535) cli_wrong(args, "ports end at 65535");
    return s->port <= 65535;
  case O_ADDRESS: s->address = optarg; return true;
  case O_TOP: return cli_count(args, 1, &s->top);
  case O_WAIT: return cli_real(args, 0, &s->wait_ms);
  default: return use_option(args, which, &s->u);
  }
}

static int serve(int argc, char **argv) {
  Serve s = {.address = "127.0.0.1", .port = 8080, .top = 5, .wait_ms = 2};
  CliArgs args = {argc, argv, options, 0};
  for (int o; (o = cli_next(&args)) != -1;) {
    if (o == CLI_HELP) return fputs(usage, stdout), 0;
    if (o == '?' || !set(&args, o, &s)) return 2;
  }
  if (optind != argc - 1) return cli_wrong(&args, "wants one RUN");
  sigset_t ends = ending_signals(); /* every thread inherits that they are waited for */
  pthread_sigmask(SIG_BLOCK, &ends, NULL);
  Err *e = run(&s, argv[optind]);
  batcher_close(s.batcher);
  tokens_close(s.tokens);
  use_close(&s.u);
  if (!e) return 0;
  err_report(e);
  return 1;
}

const CliVerb cli_serve = {"serve", "a trained network behind HTTP, requests in batches", serve};
