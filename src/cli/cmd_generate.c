/* weft generate: text that a trained network makes. */
#include "cli/use.h"

#include "base/units.h"

#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "usage: weft generate RUN --prompt TEXT [options]\n"
    "\n"
    "RUN is a run folder of `weft train --out` of gpt2, llama, moe, lstm or gru, or a checkpoint "
    "in one.\n"
    "Goes on from the prompt, token by token, with what it needs of the tokens before kept on the\n"
    "device.\n"
    "When the length that the network was trained with is full, it goes on from the last half.\n"
    "\n"
    "  --prompt TEXT      where it begins; - is standard input\n"
    "  --tokens N         how many to make (default 64)\n"
    "  --temperature X    1: as the network says (default); less: more certain; 0: the likeliest\n"
    "  --top-k N          among the N likeliest\n"
    "  --top-p X          among the likeliest that make up this share\n"
    "  --seed N           another seed, another text (default 1)\n"
    "  --no-cache         compute all tokens again for each: the same text, slower\n" USE_HELP;

enum { O_PROMPT = USE_OWN, O_TOKENS, O_TEMPERATURE, O_TOP_K, O_TOP_P, O_SEED, O_NO_CACHE };
static const struct option options[] = {{"prompt", 1, NULL, O_PROMPT},
                                        {"tokens", 1, NULL, O_TOKENS},
                                        {"temperature", 1, NULL, O_TEMPERATURE},
                                        {"top-k", 1, NULL, O_TOP_K},
                                        {"top-p", 1, NULL, O_TOP_P},
                                        {"seed", 1, NULL, O_SEED},
                                        {"no-cache", 0, NULL, O_NO_CACHE},
                                        USE_ROWS,
                                        {0}};

typedef struct Gen {
  Use u;
  const char *prompt;
  Str begin; /* the prompt until it is printed, with the first token: a failure prints nothing */
  GenerateOpts o;
  Tokens *tokens;
} Gen;

static bool show(void *arg, int32_t token) {
  Gen *g = arg;
  fwrite(g->begin.p, 1, g->begin.n, stdout);
  g->begin.n = 0;
  Buf b = {0};
  tokens_decode(g->tokens, token, &b);
  fwrite(b.p, 1, b.n, stdout);
  fflush(stdout);
  buf_free(&b);
  return true;
}

static void print_json(const Gen *g, const IdVec *prompt, const Generated *r) {
  Buf text = {0}, b = {0};
  for (int i = 0; i < r->ids.n; i++) tokens_decode(g->tokens, r->ids.v[i], &text);
  buf_cstr(&b, "{\"text\": ");
  buf_json_str(&b, text.p ? text.p : "");
  buf_printf(&b, ", \"prompt_tokens\": %d, \"tokens\": [", prompt->n);
  for (int i = 0; i < r->ids.n; i++) buf_printf(&b, "%s%d", i ? ", " : "", r->ids.v[i]);
  buf_printf(&b, "], \"first_token_s\": %.6g, \"token_s\": %.6g}", r->prompt_s, r->each_s);
  puts(b.p);
  buf_free(&b);
  buf_free(&text);
}

static Err *run(Gen *g, const char *path) {
  Buf in = {0};
  IdVec ids = {0};
  Generated r = {0};
  TRY(use_open(&g->u, path));
  TRY(tokens_open(infer_info(g->u.infer), &g->tokens));
  if (!strcmp(g->prompt, "-")) TRY(file_read("-", &in));
  g->begin = in.p ? (Str){in.p, in.n} : str_from(g->prompt);
  Err *e = tokens_encode(g->tokens, g->begin, &ids);
  if (!e && !g->u.json) {
    g->o.each = show;
    g->o.arg = g;
  }
  if (!e) e = infer_generate(g->u.infer, &ids, &g->o, &r);
  if (!e && g->u.json) print_json(g, &ids, &r);
  if (!e && !g->u.json) {
    char first[UNITS_TEXT], each[UNITS_TEXT];
    units_time(first, r.prompt_s);
    units_time(each, r.each_s);
    printf("\n");
    fflush(stdout); /* before what is said of it, where both go to one place */
    fprintf(stderr, "%d tokens of prompt, first token after %s, then %s each (%.1f tokens/s)\n",
            ids.n, first, each, r.each_s > 0 ? 1 / r.each_s : 0);
  }
  vec_free(&r.ids);
  vec_free(&ids);
  buf_free(&in);
  return e;
}

static bool set(const CliArgs *args, int which, Gen *g) {
  Sampling *s = &g->o.sampling;
  int64_t seed;
  switch (which) {
  case O_PROMPT: g->prompt = optarg; return true;
  case O_TOKENS: return cli_count(args, 1, &g->o.tokens);
  case O_TEMPERATURE: return cli_real(args, 0, &s->temperature);
  case O_TOP_K: return cli_count(args, 1, &s->top_k);
  case O_TOP_P:
    if (!cli_real(args, 0, &s->top_p)) return false;
    if (s->top_p <= 0 || s->top_p > 1) cli_wrong(args, "--top-p is a share, 0 < X <= 1");
    return s->top_p > 0 && s->top_p <= 1;
  case O_SEED:
    if (!cli_count(args, 0, &seed)) return false;
    s->seed = (uint64_t)seed;
    return true;
  case O_NO_CACHE: g->o.no_cache = true; return true;
  default: return use_option(args, which, &g->u);
  }
}

static int generate(int argc, char **argv) {
  Gen g = {.o = {.tokens = 64, .sampling = {.temperature = 1, .seed = 1}}};
  CliArgs args = {argc, argv, options, 0};
  for (int o; (o = cli_next(&args)) != -1;) {
    if (o == CLI_HELP) return fputs(usage, stdout), 0;
    if (o == '?' || !set(&args, o, &g)) return 2;
  }
  if (optind != argc - 1) return cli_wrong(&args, "wants one RUN");
  if (!g.prompt) return cli_wrong(&args, "wants a --prompt to begin with");
  Err *e = run(&g, argv[optind]);
  tokens_close(g.tokens);
  use_close(&g.u);
  if (!e) return 0;
  err_report(e);
  return 1;
}

const CliVerb cli_generate = {"generate", "text that a trained network makes", generate};
