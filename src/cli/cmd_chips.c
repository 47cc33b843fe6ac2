/* weft chips: the catalogue; one chip with its facts and sources, and what its file may lack; its prices; a check of a chip
 * file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "chip/chip.h"
#include "cli/cli.h"

static const char usage[] =
    "usage: weft chips              list all chips\n"
    "       weft chips NAME         the facts of one chip, each with its source\n"
    "       weft chips NAME --prices [--all]   offers for it, cheapest first;\n"
    "                               those that weft counts with are marked *\n"
    "       weft chips --check FILE read a chip file and report what is wrong with it\n";

static int list(void) {
  const Chip *const *c;
  int n;
  Err *e = chip_list(&c, &n);
  if (e) return err_report(e), 1;
  printf("%-16s %-18s %9s %12s %10s %9s %12s %12s\n", "chip", "device", "clock", "peak", "memory",
         "HBM", "USD/chip-h", "spot");
  for (int i = 0; i < n; i++) {
    char unit[64];
    snprintf(unit, sizeof unit, "%s",
             c[i]->devices_per_chip > 1 ? "half a chip"
             : c[i]->kind == CHIP_GPU   ? "GPU"
                                        : "chip");
    const Offer *offer = NULL;
    double p = chip_price(c[i], false, &offer), s = chip_price(c[i], true, NULL);
    printf("%-16s %-18s %5.2f GHz %7.1f TF/s %6.2f GiB %4.0f GB/s ", c[i]->name, unit,
           c[i]->clock / 1e9, c[i]->peak_flops / 1e12, c[i]->hbm_usable / 1073741824.0,
           c[i]->hbm_bandwidth / 1e9);
    if (isnan(p)) printf("%12s", "-");
    else printf("%12.3f", p);
    if (isnan(s)) printf(" %12s", "-");
    else printf(" %12.3f", s);
    printf("%s\n", offer && offer_is_retired(offer) ? "  price of an offer that is retired" : "");
  }
  return 0;
}

/* "31 read, 8 recalled, 4 fitted": how much of it to believe. */
static void print_ways(const Chip *c) {
  static const char *const ways[] = {"read", "oracle", "derived", "recalled", "guess", "fitted"};
  const char *sep = "";
  for (int w = 0; w < COUNT_OF(ways); w++) {
    int n = 0;
    for (int i = 0; i < c->n_facts; i++) {
      const char *how = isnan(c->facts[i].num) ? NULL : chip_how(&c->facts[i]);
      n += how && !strcmp(how, ways[w]);
    }
    if (n) printf("%s%d %s", sep, n, ways[w]), sep = ", ";
  }
  putchar('\n');
}

/* How many other chips have the fact, of its kind or of any; *n: how many there are. */
static int others_with(const Chip *c, bool any_kind, const char *key, int *n) {
  const Chip *const *all;
  int n_all, with = 0;
  *n = 0;
  if (chip_list(&all, &n_all)) return 0; /* reported when the chip was asked for */
  for (int i = 0; i < n_all; i++) {
    if ((all[i]->kind != c->kind && !any_kind) || all[i] == c) continue;
    ++*n;
    with += chip_fact(all[i], key) != NULL;
  }
  return with;
}

static bool is_coefficient(const ChipFact *f) { return !strncmp(f->key, "fit.", 4); }

/* What a new file may have forgotten, or spelt otherwise: facts that all other chips of its kind have, and those that no
 * chip has. Coefficients of the time model have defaults. */
static void print_slips(const Chip *c, const Chip *like) {
  int n;
  const char *kind = c->kind == CHIP_TPU ? "TPU" : "GPU", *sep = "missing: ";
  for (int i = 0; like && i < like->n_facts; i++) {
    const char *key = like->facts[i].key;
    if (is_coefficient(&like->facts[i]) || chip_fact(c, key) || others_with(c, false, key, &n) < n)
      continue;
    printf("%s%s", sep, key), sep = ", ";
  }
  if (*sep == ',') printf(", which all other %ss have\n", kind);
  sep = "unknown: ";
  bool fitted = false;
  for (int i = 0; i < c->n_facts; i++) {
    fitted |= is_coefficient(&c->facts[i]);
    if (is_coefficient(&c->facts[i]) || others_with(c, true, c->facts[i].key, &n) || !n) continue;
    printf("%s%s", sep, c->facts[i].key), sep = ", ";
  }
  if (*sep == ',') printf(", which no other chip has: a slip?\n");
  if (!fitted && c->kind == CHIP_TPU)
    printf("no coefficient is fitted: times follow from clock, bandwidth and peak\n");
}

/* Another chip of its kind; NULL: there is none. */
static const Chip *one_like(const Chip *c) {
  const Chip *const *all;
  int n;
  if (chip_list(&all, &n)) return NULL;
  for (int i = 0; i < n; i++)
    if (all[i]->kind == c->kind && all[i] != c) return all[i];
  return NULL;
}

/* "3.431*" where weft counts with it, "-" where it is not known. */
static void print_price(double usd, bool used) {
  if (isnan(usd)) printf("%12s ", "-");
  else printf("%12.3f%c", usd, used ? '*' : ' ');
}

static int prices(const Chip *c, bool all) {
  const Offer *o;
  int n, shown = 0;
  Err *e = chip_offers(&o, &n);
  if (e) return err_report(e), 1;
  const Offer *used = NULL, *spot = NULL;
  bool last = false; /* those that are not used have begun */
  chip_price(c, false, &used);
  chip_price(c, true, &spot);
  printf("%-8s %-30s %-18s %6s %12s %12s   %s\n", "cloud", "instance", "region", "chips",
         "USD/chip-h", "spot", "date, source");
  for (int i = 0; i < n; i++) {
    if (o[i].chip != c || (shown++ >= 20 && !all)) continue;
    if (offer_is_suspect(&o[i]) && !last) printf("not used on demand, the prices are in doubt:\n");
    last |= offer_is_suspect(&o[i]);
    printf("%-8s %-30s %-18s %6d ", o[i].cloud, o[i].instance, o[i].region, o[i].chips);
    print_price(o[i].usd_hour / o[i].chips, &o[i] == used);
    print_price(o[i].spot_hour / o[i].chips, &o[i] == spot);
    printf("  %s, %s%s%s\n", o[i].date, o[i].source, o[i].note[0] ? "; " : "", o[i].note);
  }
  if (shown > 20 && !all) printf("%d more with --all\n", shown - 20);
  if (!shown) printf("no offer is listed\n");
  else
    printf("* the price that weft counts with, the lowest%s\n",
           used && offer_is_retired(used) ? "; the offer is retired: nobody can rent it any more"
                                          : "");
  return 0;
}

static int run(int argc, char **argv) {
  enum { PRICES = CLI_FIRST, ALL, CHECK };
  static const struct option options[] = {{"prices", no_argument, NULL, PRICES},
                                          {"all", no_argument, NULL, ALL},
                                          {"check", required_argument, NULL, CHECK},
                                          CLI_HELP_ROW,
                                          {0}};
  const char *check = NULL;
  bool want_prices = false, all = false;
  CliArgs args = {argc, argv, options, 0};
  for (int o; (o = cli_next(&args)) != -1;) switch (o) {
    case PRICES: want_prices = true; break;
    case ALL: all = true; break;
    case CHECK: check = optarg; break;
    case CLI_HELP: return fputs(usage, stdout), 0;
    default: return 2;
    }
  if (optind < argc - 1) return cli_wrong(&args, "one NAME at a time");
  const char *name = argv[optind]; /* NULL at the end */
  if (want_prices && !name) return cli_wrong(&args, "--prices of which chip?");
  if (check) {
    Buf text = {0};
    Arena *a = arena_new();
    Chip *c;
    Err *e = file_read(check, &text);
    if (!e) e = chip_read(a, check, (Str){text.p ? text.p : "", text.n}, &c);
    if (!e) e = chip_check(c);
    if (!e) {
      printf("%s: %s, %d facts, every one with a source; numbers: ", check, c->name, c->n_facts);
      print_ways(c);
    }
    for (int i = 0; !e && i < c->n_facts; i++)
      if (!isnan(c->facts[i].num) && !chip_how(&c->facts[i]))
        printf("  line %d: %s does not say how it is known: (read), (recalled), (derived), guess\n",
               c->facts[i].line, c->facts[i].key);
    int status = e != NULL;
    if (e) err_report(e);
    buf_free(&text);
    arena_free(a);
    return status;
  }
  if (!name) return list();
  ChipRef ref;
  Err *e = chip_parse(name, &ref);
  if (e) return err_report(e), 1;
  if (want_prices) return prices(ref.chip, all);
  printf("%s (%s)\n", ref.chip->title, ref.chip->file);
  for (int i = 0; i < ref.chip->n_facts; i++)
    printf("  %-24s %-28s %s\n", ref.chip->facts[i].key, ref.chip->facts[i].text,
           ref.chip->facts[i].source);
  printf("numbers: ");
  print_ways(ref.chip);
  print_slips(ref.chip, one_like(ref.chip));
  return 0;
}

const CliVerb cli_chips = {"chips", "the chips weft knows, their facts, sources and prices", run};
