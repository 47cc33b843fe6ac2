/* Command lines of verbs: getopt_long with messages that name the verb, the option and the nearest
 * one there is. */
#include "cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int cli_wrong(const CliArgs *a, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  fprintf(stderr, "weft %s: ", a->argv[0]);
  vfprintf(stderr, fmt, ap);
  fprintf(stderr, "   (weft %s --help)\n", a->argv[0]);
  va_end(ap);
  return 2;
}

/* What getopt stumbled over: `--epohs=3`, `-x`. */
static void complain(const CliArgs *a, const char *text) {
  Nearest near = {.want = {text, strcspn(text, "=")}};
  while (near.want.n && *near.want.p == '-') near.want.p++, near.want.n--;
  int fits = 0; /* options that it abbreviates */
  for (const struct option *o = a->options; o->name; o++) {
    nearest_see(&near, o->name);
    fits += text[1] == '-' && near.want.n && !strncmp(o->name, near.want.p, near.want.n);
  }
  int n = (int)strcspn(text, "=");
  if (fits > 1) cli_wrong(a, "'%.*s' may be one of %d options", n, text, fits);
  else if (near.best) cli_wrong(a, "no option '%.*s'; did you mean --%s?", n, text, near.best);
  else cli_wrong(a, "no option '%.*s'", n, text);
}

int cli_next(CliArgs *a) {
  opterr = 0;
  a->at = -1;
  int before = optind;
  int o = getopt_long(a->argc, a->argv, ":h", a->options, &a->at);
  if (o == 'h') return CLI_HELP;
  if (o != ':' && o != '?') return o;
  /* optopt: the option's value, 0 when there is none of that name */
  const struct option *known = a->options;
  while (known->name && (!optopt || known->val != optopt)) known++;
  if (!known->name) {
    char letter[] = {'-', (char)optopt, 0};
    complain(a, optopt ? letter : a->argv[MAX(before, optind - 1)]);
  } else if (o == ':') cli_wrong(a, "--%s wants a value", known->name);
  else cli_wrong(a, "--%s takes no value", known->name);
  return '?';
}

bool cli_real(const CliArgs *a, double least, double *out) {
  char *end;
  double v = strtod(optarg, &end);
  if (end != optarg && !*end && isfinite(v) && v >= least) return *out = v, true;
  cli_wrong(a, "--%s wants a number of at least %g, not '%s'", a->options[a->at].name, least,
            optarg);
  return false;
}

bool cli_amount(const CliArgs *a, double least, double *out) {
  static const char letters[] = "kMBT";
  char *end;
  double v = strtod(optarg, &end);
  const char *u = *end ? strchr(letters, *end == 'K' ? 'k' : *end) : NULL;
  if (end == optarg || !u || end[1]) return cli_real(a, least, out);
  v *= pow(10, 3 * (double)(u - letters + 1));
  if (isfinite(v) && v >= least) return *out = v, true;
  return cli_real(a, least, out);
}

static bool whole(const CliArgs *a, int64_t least, double most, int64_t *out) {
  char *end;
  double v = strtod(optarg, &end); /* 1e6 is a count, too */
  if (end != optarg && !*end && v == floor(v) && v <= most && v >= (double)least)
    return *out = (int64_t)v, true;
  cli_wrong(a, "--%s wants a whole number of at least %lld, not '%s'", a->options[a->at].name,
            (long long)least, optarg);
  return false;
}

bool cli_count(const CliArgs *a, int64_t least, int64_t *out) {
  return whole(a, least, 9e15, out); /* exact in a double */
}

bool cli_int(const CliArgs *a, int least, int *out) {
  int64_t v;
  if (!whole(a, least, INT32_MAX, &v)) return false;
  *out = (int)v;
  return true;
}

bool cli_duration(const CliArgs *a, double *seconds) {
  static const double unit[] = {1, 60, 3600, 86400};
  static const char letters[] = "smhd";
  char *end;
  double v = strtod(optarg, &end);
  const char *u = *end ? strchr(letters, *end) : NULL;
  if (end != optarg && v > 0 && isfinite(v) && u && !end[1])
    return *seconds = v * unit[u - letters], true;
  cli_wrong(a, "--%s wants a time like 90m, 12h or 3d, not '%s'", a->options[a->at].name, optarg);
  return false;
}

bool cli_price(const CliArgs *a, int option, PriceAsk *ask) {
  if (option == CLI_SPOT) return ask->spot = true;
  *(option == CLI_CLOUD ? &ask->clouds : &ask->region) = optarg;
  Err *e = price_ask_check(&(PriceAsk){.clouds = option == CLI_CLOUD ? optarg : NULL,
                                       .region = option == CLI_REGION ? optarg : NULL});
  if (!e) return true;
  cli_wrong(a, "--%s: %s; %s", a->options[a->at].name, e->msg, e->hint);
  err_free(e);
  return false;
}

bool cli_plugin_option(const CliArgs *a, ClientOption *options, int *n, int most) {
  char *eq = strchr(optarg, '='), *end;
  if (!eq || eq == optarg) return cli_wrong(a, "--option wants K=V, not '%s'", optarg), false;
  if (*n == most) return cli_wrong(a, "at most %d times --option", most), false;
  *eq = 0;
  int64_t number = strtoll(eq + 1, &end, 0);
  bool is_number = end != eq + 1 && !*end;
  options[(*n)++] = (ClientOption){optarg, is_number ? NULL : eq + 1, is_number ? number : 0};
  return true;
}

int cli_choice(const CliArgs *a, const char *const *names) {
  Buf all = {0};
  for (int i = 0; names[i]; i++) {
    if (!strcmp(optarg, names[i])) return buf_free(&all), i;
    buf_printf(&all, "%s%s", i ? ", " : "", names[i]);
  }
  cli_wrong(a, "--%s is one of %s, not '%s'", a->options[a->at].name, all.p, optarg);
  buf_free(&all);
  return -1;
}
