/* What chips can be rented for. */
#include <math.h>
#include <stdlib.h>

#include "chip/chip_priv.h"

typedef VEC(const char *) Names;

static bool cloud_counts(const char *clouds, const char *cloud) {
  if (!clouds) return true;
  size_t n = strlen(cloud);
  for (const char *p = clouds; *p; p += strcspn(p, ","), p += *p == ',')
    if (strcspn(p, ",") == n && !strncmp(p, cloud, n)) return true;
  return false;
}

/* A cloud or a region that no offer has; seen: those there are, each once. */
static Err *no_such(const char *what, Str name, const Names *seen) {
  Nearest near = {.want = name};
  Buf all = {0};
  for (int i = 0; i < seen->n; i++) {
    nearest_see(&near, seen->v[i]);
    buf_printf(&all, "%s%s", i ? ", " : "", seen->v[i]);
  }
  Err *e = err_new(ERR_NOT_FOUND, "no %s is called '%.*s'", what, STR_ARG(name));
  if (near.best) err_hint(e, "did you mean %s?", near.best);
  else err_hint(e, "prices are listed of %s", all.p);
  buf_free(&all);
  return e;
}

static void see(Names *seen, const char *name) {
  for (int i = 0; i < seen->n; i++)
    if (!strcmp(seen->v[i], name)) return;
  *vec_push(seen) = name;
}

static Err *clouds_check(const char *clouds, const Names *seen) {
  for (const char *p = clouds;; p++) {
    Str name = {p, strcspn(p, ",")};
    bool there = false;
    for (int i = 0; i < seen->n; i++) there |= str_is(name, seen->v[i]);
    if (!there) return no_such("cloud", name, seen);
    p += name.n;
    if (!*p) return NULL;
  }
}

static Err *region_check(const char *region, const Names *seen) {
  for (int i = 0; i < seen->n && *region; i++)
    if (!strncmp(seen->v[i], region, strlen(region))) return NULL;
  return no_such("region", str_from(region), seen);
}

Err *price_ask_check(const PriceAsk *ask) {
  const Offer *all;
  int n = 0;
  TRY(chip_offers(&all, &n));
  Names clouds = {0}, regions = {0};
  for (int i = 0; i < n; i++) {
    see(&clouds, all[i].cloud);
    if (cloud_counts(ask->clouds, all[i].cloud)) see(&regions, all[i].region);
  }
  Err *e = ask->clouds ? clouds_check(ask->clouds, &clouds) : NULL;
  if (!e && ask->region) e = region_check(ask->region, &regions);
  vec_free(&clouds);
  vec_free(&regions);
  return e;
}

bool offer_is_server(const Offer *o, const Server *s) {
  bool named = !strcmp(s->name, o->instance);
  for (int i = 0; i < s->n_aliases; i++) named |= !strcmp(s->aliases[i], o->instance);
  return named && o->chips * s->chip->devices_per_chip == server_num(s, "host_gpus", s->gpus);
}

/* NaN where the offer does not count. */
static double hour(const Offer *o, const Chip *c, const PriceAsk *ask) {
  double p = ask->spot ? o->spot_hour : o->usd_hour;
  bool counts = o->chip == c && p > 0 && (ask->spot || !offer_is_suspect(o)) &&
                cloud_counts(ask->clouds, o->cloud) &&
                (!ask->server || offer_is_server(o, ask->server)) &&
                (!ask->region || !strncmp(o->region, ask->region, strlen(ask->region)));
  return counts ? p : NAN;
}

/* The lower the better, before any price: what can be rented as it is. */
static int rank(const Offer *o) { return 2 * offer_is_part(o) + offer_is_retired(o); }

/* The same of so many machines: TPUs of several slices are not one, so these count where no slice is large enough. */
static int rank_of(const Price *p) {
  return 2 * rank(p->offer) + (p->offer->chip->kind == CHIP_TPU && p->machines > 1);
}

Price chip_rent(const Chip *c, double chips, const PriceAsk *ask) {
  static const PriceAsk any;
  Price best = {.usd_hour = NAN};
  const Offer *all;
  int n = 0;
  Err *e = chip_offers(&all, &n);
  if (e) return err_free(e), best;
  if (!ask) ask = &any;
  bool large = false; /* there are machines of least_chips */
  for (int i = 0; i < n; i++)
    large |= all[i].chips >= ask->least_chips && !isnan(hour(&all[i], c, ask));
  for (int i = 0; i < n; i++) {
    const Offer *o = &all[i];
    double p = hour(o, c, ask);
    if (isnan(p) || (large && o->chips < ask->least_chips)) continue;
    int machines = MAX(1, (int)ceil(chips / o->chips));
    Price q = {o, machines, p * machines, chips / ((double)o->chips * machines), ask->spot};
    int order = best.offer ? rank_of(&q) - rank_of(&best) : -1;
    bool same = fabs(q.usd_hour - best.usd_hour) < 1e-6 * q.usd_hour;
    if (order < 0 || (order == 0 && (same ? machines < best.machines : q.usd_hour < best.usd_hour)))
      best = q;
  }
  return best;
}

/* A GPU's bytes/s to other servers; where one holds all there are none to go to. */
static double share_of_cards(const Rented *r, double chips) {
  const Server *s = r->server;
  if (s->gpus >= chips * s->chip->devices_per_chip) return INFINITY;
  return server_num(s, "nic", 0) * server_num(s, "nics", 0) / s->gpus;
}

static bool beats(const Rented *a, const Rented *b, double chips) {
  int order = rank(a->price.offer) - rank(b->price.offer);
  if (order) return order < 0;
  double card_a = share_of_cards(a, chips), card_b = share_of_cards(b, chips);
  double usd_a = a->price.usd_hour, usd_b = b->price.usd_hour;
  if (card_a < card_b || usd_a > usd_b) return false;
  return card_a > card_b || usd_a < usd_b || a->server < b->server;
}

int chip_rented(const Chip *c, double chips, const PriceAsk *ask, Rented *out, int most) {
  const Server *const *servers;
  int n = 0, have = 0, kept = 0;
  Err *e = server_list(&servers, &n);
  if (e) return err_free(e), 0;
  Rented *all = xcalloc((size_t)n + 1, sizeof *all);
  for (int i = 0; i < n; i++) {
    PriceAsk a = ask ? *ask : (PriceAsk){0};
    a.server = servers[i];
    if (servers[i]->chip != c) continue;
    Price p = chip_rent(c, chips, &a);
    if (p.offer) all[have++] = (Rented){servers[i], p};
  }
  for (int i = 0; i < have && kept < most; i++) {
    bool beaten = false;
    for (int k = 0; k < have; k++) beaten |= k != i && beats(&all[k], &all[i], chips);
    if (!beaten) out[kept++] = all[i];
  }
  free(all);
  return kept;
}

/* One machine holds them all: none other's network counts. */
static bool one_machine(const PriceAsk *ask, const Chip *chip, int chips) {
  PriceAsk whole = *ask;
  whole.least_chips = chips;
  return chip_rent(chip, chips, &whole).machines == 1;
}

int chip_servers(const ChipRef *asked, int chips, const PriceAsk *ask, const Server **out) {
  Rented rented[CHIP_SERVERS];
  bool open = asked->chip->kind == CHIP_GPU && !asked->server;
  int n = open && !one_machine(ask, asked->chip, chips)
              ? chip_rented(asked->chip, chips, ask, rented, CHIP_SERVERS)
              : 0;
  for (int i = 0; i < n; i++) out[i] = rented[i].server;
  if (n) return n;
  out[0] = asked->server;
  return 1;
}

void offer_when(const Offer *o, Buf *out) {
  bool none = !strncmp(o->date, "undated", 7);
  buf_printf(out, none ? "undated: %s" : "as of %s", none ? o->source : o->date);
}

void price_words(const Price *p, Buf *out) {
  const Offer *o = p->offer;
  if (!o) {
    buf_cstr(out, "no price listed");
    return;
  }
  if (p->machines > 1) buf_printf(out, "%d x ", p->machines);
  buf_printf(out, "%s %s %s%s, ", o->cloud, o->instance, o->region, p->spot ? ", spot" : "");
  offer_when(o, out);
  if (offer_is_part(o)) buf_cstr(out, "; GPU part only, the machine is extra");
  if (offer_is_retired(o) && !strstr(o->date, "retired")) buf_cstr(out, "; the offer is retired");
  double used = p->share * p->machines * o->chips * p->offer->chip->devices_per_chip,
         all = (double)p->machines * o->chips * p->offer->chip->devices_per_chip;
  if (p->share < 1)
    buf_printf(out, "; %.0f/%.0f of it is used: %.2f USD/h", used, all, p->usd_hour * p->share);
}

double chip_price(const Chip *c, bool spot, const Offer **offer) {
  PriceAsk ask = {.spot = spot};
  const Offer *all, *best = NULL;
  int n = 0;
  Err *e = chip_offers(&all, &n);
  if (e) return err_free(e), NAN;
  double least = NAN;
  for (int i = 0; i < n; i++) {
    double p = hour(&all[i], c, &ask) / all[i].chips;
    if (isnan(p)) continue;
    int order = best ? rank(&all[i]) - rank(best) : -1;
    if (order < 0 || (order == 0 && p < least)) best = &all[i], least = p;
  }
  if (offer && best) *offer = best;
  return least;
}
