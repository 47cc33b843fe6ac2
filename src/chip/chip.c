/* Chips from their files of facts (facts.c), and the catalogue of chips, servers and prices. The
 * struct's fields are filled from known keys, everything else stays reachable by name. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "chip/chip_priv.h"
#include "chip/slice.h"

static const char *const required[] = {"name", "kind",          "devices_per_chip", "clock",
                                       "hbm",  "hbm_bandwidth", "power_idle",       "power_busy"};

static int by_key(const void *a, const void *b) {
  return strcmp((*(const ChipFact *const *)a)->key, (*(const ChipFact *const *)b)->key);
}

static double need(const Chip *c, const char *key, double lo, Err **err) {
  const ChipFact *f = chip_fact(c, key);
  if (*err) return lo;
  if (!f || !(f->num >= lo && f->num <= 1e30)) {
    *err = err_new(ERR_INVALID, "'%s' must be a number of at least %g with a known unit, not '%s'",
                   key, lo, f ? f->text : "nothing");
    err_place(facts_hint_units(*err), "%s:%d", c->file, f ? f->line : 1);
    return lo;
  }
  return f->num;
}

/* A whole number from 1 to 1024, 1 when the file does not say. */
static int small(const Chip *c, const char *key, Err **err) {
  double v = chip_fact(c, key) ? need(c, key, 1, err) : 1;
  if (v == floor(v) && v <= 1024) return (int)v;
  *err =
      err_place(err_new(ERR_INVALID, "'%s' must be a whole number from 1 to 1024, not %g", key, v),
                "%s:%d", c->file, chip_fact(c, key)->line);
  return 1;
}

/* A fact that the file must give. `line`: its last one. */
static Err *missing(const Chip *c, const char *key, int line) {
  Nearest near = {.want = str_from(key)};
  for (int i = 0; i < c->n_facts; i++) nearest_see(&near, c->facts[i].key);
  Err *e = err_new(ERR_INVALID, "the fact '%s' is missing", key);
  if (near.best) err_hint(e, "is it '%s' in line %d?", near.best, chip_fact(c, near.best)->line);
  return err_place(e, "%s:%d", c->file, line);
}

/* Of the fastest products of 16 bits, or of f32 where there are none; 0: not known. */
static double peak_of(const Chip *c) {
  return chip_num(c, "peak_bf16", chip_num(c, "peak_fp16", chip_num(c, "peak_fp32", 0)));
}

Err *chip_read(Arena *arena, const char *file, Str text, Chip **out) {
  Chip *c = ARENA_NEW(arena, Chip);
  c->file = arena_str(arena, str_from(file)).p;
  int line = 0;
  Err *err = facts_read(arena, file, text, &c->facts, &c->n_facts, &line);
  if (err) return err;
  for (int i = 0; i < COUNT_OF(required); i++)
    if (!chip_fact(c, required[i])) return missing(c, required[i], line);
  c->name = chip_text(c, "name");
  c->title = chip_text(c, "title") ? chip_text(c, "title") : c->name;
  c->vendor = chip_text(c, "vendor") ? chip_text(c, "vendor") : "";
  const char *kind = chip_text(c, "kind");
  if (strcmp(kind, "tpu") && strcmp(kind, "gpu"))
    return err_place(err_new(ERR_INVALID, "kind must be tpu or gpu, not '%s'", kind), "%s:%d", file,
                     chip_fact(c, "kind")->line);
  c->kind = strcmp(kind, "tpu") ? CHIP_GPU : CHIP_TPU;
  int dev = c->devices_per_chip = small(c, "devices_per_chip", &err);
  c->cores_per_device = small(c, "cores_per_device", &err);
  c->clock = need(c, "clock", 1, &err);
  c->peak_flops = peak_of(c) / dev;
  c->hbm_bytes =
      need(c, "hbm", 1, &err) / (c->kind == CHIP_GPU ? dev : 1); /* TPU files give it per device */
  c->hbm_usable = chip_num(c, "hbm_usable", c->hbm_bytes - chip_num(c, "hbm_reserved", 0));
  c->hbm_bandwidth = need(c, "hbm_bandwidth", 1, &err) / dev;
  c->power_idle = need(c, "power_idle", 0, &err);
  c->power_busy = need(c, "power_busy", 0, &err);
  if (err) return err;
  if (!(peak_of(c) >= 1))
    return err_place(facts_hint_units(err_new(
                         ERR_INVALID, "none of peak_bf16, peak_fp16 and peak_fp32 is a number")),
                     "%s:%d", file, line);
  c->aliases = facts_names(arena, c->name, chip_text(c, "aliases"), &c->n_aliases);
  *out = c;
  return NULL;
}

/* ---- the catalogue --------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  bool ready;
  Arena *arena;
  VEC(Chip *) chips;
  VEC(Offer) offers;
} cat;

Chip *chip_named(const char *name) {
  for (int i = 0; i < cat.chips.n; i++)
    for (int k = 0; k < cat.chips.v[i]->n_aliases; k++)
      if (same_name(cat.chips.v[i]->aliases[k], name)) return cat.chips.v[i];
  return NULL;
}

typedef struct Family { /* what all chips of a kind share */
  const char *kind;
  ChipFact *facts;
  int n;
} Family;
static VEC(Family) families;

static Err *add_family(void *arg, const char *file, Str text) {
  (void)arg;
  const char *name = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
  Family f = {.kind = arena_str(cat.arena, (Str){name, strcspn(name, ".")}).p};
  for (int i = 0; i < families.n; i++)
    if (!strcmp(families.v[i].kind, f.kind)) return NULL; /* WEFT_DATA came first and wins */
  int line = 0;
  TRY(facts_read(cat.arena, file, text, &f.facts, &f.n, &line));
  *vec_push(&families) = f;
  return NULL;
}

/* The facts of its kind that a chip's file does not give, and an index of all. */
static void complete(Chip *c) {
  VEC(ChipFact) all = {0};
  for (int i = 0; i < c->n_facts; i++) *vec_push(&all) = c->facts[i];
  for (int i = 0; i < families.n; i++)
    for (int k = 0; k < families.v[i].n && !strcmp(families.v[i].kind, chip_text(c, "kind")); k++)
      if (!chip_fact(c, families.v[i].facts[k].key)) *vec_push(&all) = families.v[i].facts[k];
  c->n_facts = all.n;
  c->facts = arena_dup(cat.arena, all.v, sizeof *all.v * (size_t)all.n);
  vec_free(&all);
  c->by_key = arena_alloc(cat.arena, sizeof *c->by_key * (size_t)c->n_facts);
  for (int i = 0; i < c->n_facts; i++) c->by_key[i] = &c->facts[i];
  qsort(c->by_key, (size_t)c->n_facts, sizeof *c->by_key, by_key);
}

static Err *add_chip(void *arg, const char *file, Str text) {
  (void)arg;
  Chip *c;
  TRY(chip_read(cat.arena, file, text, &c));
  for (int i = 0; i < cat.chips.n; i++)
    if (same_name(cat.chips.v[i]->name, c->name)) return NULL; /* WEFT_DATA came first and wins */
  *vec_push(&cat.chips) = c;
  return NULL;
}

/* Splits one CSV line into fields, in place semantics on the arena; quotes may hold commas. */
static int csv_fields(Arena *a, Str l, const char **f, int max) {
  int n = 0;
  Buf b = {0};
  bool quoted = false;
  for (size_t i = 0; i <= l.n; i++) {
    char ch = i < l.n ? l.p[i] : ',';
    if (ch == '"' && i < l.n) {
      if (quoted && i + 1 < l.n && l.p[i + 1] == '"') buf_byte(&b, '"'), i++;
      else quoted = !quoted;
    } else if (ch == ',' && (!quoted || i == l.n)) {
      if (n < max) f[n++] = arena_str(a, (Str){b.p ? b.p : "", b.n}).p;
      b.n = 0;
    } else {
      buf_byte(&b, ch);
    }
  }
  buf_free(&b);
  return n;
}

static const char *const price_columns[] = {"cloud",  "instance_type", "accelerator", "chips",
                                            "vcpu",   "mem_gib",       "price_usd_h", "spot_usd_h",
                                            "region", "source_date",   "source",      "note"};
enum {
  PC_CLOUD,
  PC_INST,
  PC_ACC,
  PC_CHIPS,
  PC_VCPU,
  PC_MEM,
  PC_USD,
  PC_SPOT,
  PC_REGION,
  PC_DATE,
  PC_SRC,
  PC_NOTE,
  PC_N
};

static double num_or_nan(const char *s) {
  char *end;
  double x = strtod(s, &end);
  return end == s ? NAN : x;
}

static Err *add_prices(void *arg, const char *file, Str text) {
  (void)arg;
  int col[PC_N], line = 0;
  for (Str l; facts_line(&text, &l, &line);) {
    const char *f[32];
    int n = csv_fields(cat.arena, l, f, 32);
    if (line == 1) {
      for (int c = 0; c < PC_N; c++) {
        col[c] = -1;
        for (int k = 0; k < n; k++)
          if (!strcmp(f[k], price_columns[c])) col[c] = k;
        if (col[c] < 0)
          return err_place(err_new(ERR_INVALID, "the column '%s' is missing", price_columns[c]),
                           "%s:1", file);
      }
      continue;
    }
    for (int c = 0; c < PC_N; c++)
      if (col[c] >= n)
        return err_place(err_new(ERR_INVALID, "%d fields, too few for the header", n), "%s:%d",
                         file, line);
    const Chip *chip = chip_named(f[col[PC_ACC]]);
    if (!chip) continue; /* an accelerator without a chip file */
    Offer o = {f[col[PC_CLOUD]],
               f[col[PC_INST]],
               f[col[PC_REGION]],
               chip,
               atoi(f[col[PC_CHIPS]]),
               num_or_nan(f[col[PC_USD]]),
               num_or_nan(f[col[PC_SPOT]]),
               num_or_nan(f[col[PC_VCPU]]),
               num_or_nan(f[col[PC_MEM]]),
               f[col[PC_DATE]],
               f[col[PC_SRC]],
               f[col[PC_NOTE]]};
    if (o.chips < 1 || (isnan(o.usd_hour) && isnan(o.spot_hour)))
      return err_place(err_new(ERR_INVALID, "an offer needs chips and a price"), "%s:%d", file,
                       line);
    *vec_push(&cat.offers) = o;
  }
  return NULL;
}

bool offer_is_suspect(const Offer *o) { return strstr(o->note, "SUSPECT") != NULL; }

bool offer_is_retired(const Offer *o) {
  return strstr(o->date, "retired") || strstr(o->note, "retired") || strstr(o->note, "withdrawn");
}

bool offer_is_part(const Offer *o) { return strstr(o->note, "part only") != NULL; }

static double per_chip(const Offer *o) {
  return isnan(o->usd_hour) ? 1e30 : o->usd_hour / o->chips;
}
static int by_price(const void *a, const void *b) {
  int s = offer_is_suspect(a), t = offer_is_suspect(b);
  if (s != t) return s - t;
  double x = per_chip(a), y = per_chip(b);
  return x < y ? -1 : x > y;
}
static int by_kind(const void *a, const void *b) {
  const Chip *x = *(Chip *const *)a, *y = *(Chip *const *)b;
  if (x->kind != y->kind) return x->kind == CHIP_TPU ? -1 : 1;
  double p = chip_num(x, "year", 0), q = chip_num(y, "year", 0);
  if (p != q) return p < q ? -1 : 1;
  return strcmp(x->name, y->name);
}

Err *catalogue_load(void) {
  Err *err = NULL;
  pthread_mutex_lock(&lock);
  if (!cat.ready) {
    cat.arena = arena_new();
    err = data_each("chips", ".chip", add_chip, NULL);
    if (!err) err = data_each("chips", ".family", add_family, NULL);
    for (int i = 0; i < cat.chips.n && !err; i++) complete(cat.chips.v[i]);
    vec_free(&families);
    if (!err) err = chips_agree(cat.chips.v, cat.chips.n);
    if (!err) {
      if (cat.chips.n) qsort(cat.chips.v, (size_t)cat.chips.n, sizeof *cat.chips.v, by_kind);
      err = servers_load(cat.arena);
      if (!err) err = data_each("prices", ".csv", add_prices, NULL);
    }
    if (!err && cat.offers.n)
      qsort(cat.offers.v, (size_t)cat.offers.n, sizeof *cat.offers.v, by_price);
    if (err) {
      vec_free(&cat.chips);
      vec_free(&cat.offers);
      arena_free(cat.arena);
      cat.arena = NULL;
    } else {
      cat.ready = true;
    }
  }
  pthread_mutex_unlock(&lock);
  return err;
}

Err *chip_list(const Chip *const **out, int *n) {
  TRY(catalogue_load());
  *out = (const Chip *const *)cat.chips.v;
  *n = cat.chips.n;
  return NULL;
}

/* The chips whose names are nearest: every one that the name begins, else the fewest letters off.
 */
static Err *not_found(const char *name) {
  enum { FAR = 3 };
  Buf near = {0}, all = {0};
  char want[96], have[96];
  chip_fold(name, want, sizeof want);
  int least = strlen(want) > 4 ? FAR : 2;
  for (int i = 0; i < cat.chips.n; i++) {
    const Chip *c = cat.chips.v[i];
    int best = FAR;
    for (int k = 0; k < c->n_aliases; k++) {
      chip_fold(c->aliases[k], have, sizeof have);
      bool begins = strlen(want) > 2 && !strncmp(have, want, strlen(want));
      best = MIN(best, begins ? 0 : str_distance(str_from(want), str_from(have)));
    }
    if (best < least) near.n = 0, least = best;
    if (best == least && best < FAR) buf_printf(&near, "%s%s", near.n ? ", " : "", c->name);
    buf_printf(&all, "%s%s", i ? " " : "", c->name);
  }
  Err *e = err_new(ERR_NOT_FOUND, "no chip is called '%s'", name);
  if (near.n && *want) e = err_hint(e, "did you mean %s? known: %s", near.p, all.p);
  else e = err_hint(e, "known: %s", all.p ? all.p : "none");
  buf_free(&near);
  buf_free(&all);
  return e;
}

Err *chip_check(Chip *c) {
  TRY(catalogue_load());
  VEC(Chip *) all = {0};
  *vec_push(&all) = c;
  for (int i = 0; i < cat.chips.n; i++)
    if (!same_name(cat.chips.v[i]->name, c->name)) *vec_push(&all) = cat.chips.v[i];
  Err *e = chips_agree(all.v, all.n);
  vec_free(&all);
  return e;
}

Err *chip_find(const char *name, const Chip **out) {
  TRY(catalogue_load());
  const Chip *c = chip_named(name);
  if (!c) return not_found(name);
  *out = c;
  return NULL;
}

enum { MAX_CHIPS = 1000000 }; /* in one name; keeps counts of devices and cores within an int */

static Err *bad_count(const char *name, const char *count) {
  return err_new(ERR_INVALID, "'%s' in '%s': the number of chips must be whole, from 1 to %d",
                 count, name, MAX_CHIPS);
}

/* The sizes next to a number of chips that no slice has; `each`: what a name counts in a chip. */
static Err *near_slices(const Chip *c, int chips, int each, Err *e) {
  int below = chips / 4 * 4, above = below + 4;
  if (chips < 4) below = chips < 2 ? 1 : 2, above = chips < 2 ? 2 : 4;
  return err_hint(e, "%s-%d or %s-%d", c->name, below * each, c->name, above * each);
}

/* A slice that nobody can have: larger than the largest of its kind. */
static Err *too_large(const char *name, const Chip *c, int chips) {
  int most = (int)chip_num(c, "slice_most", 0);
  if (!most || chips <= most) return NULL;
  return err_hint(err_new(ERR_INVALID, "'%s': the largest slice of %s has %d chips, not %d", name,
                          c->title, most, chips),
                  "several slices: %s:%d is %d chips in slices of %d", c->name, chips, chips, most);
}

/* "v5e:4x4", "tpu7x-4x4x4": chips along each axis. */
static Err *parse_box(const char *name, const char *sep, ChipRef *out) {
  int dims[3], chips;
  if (!slice_box(sep + 1, dims, &chips)) return not_found(name);
  char *base = xstrndup(name, (size_t)(sep - name));
  const Chip *c = chip_named(base);
  free(base);
  if (!c || c->kind != CHIP_TPU) return not_found(name);
  if (!chips) return bad_count(name, sep + 1);
  TRY(too_large(name, c, chips));
  *out = (ChipRef){.chip = c, .devices = chips * c->devices_per_chip, .chips = chips};
  out->slice = (ChipSlice){{dims[0], dims[1], dims[2]}, chips, 1};
  return NULL;
}

/* "a3-ultragpu-8g", "dgx-h100": the GPUs of a machine. */
static bool parse_server(const char *name, ChipRef *out) {
  const Server *s = NULL;
  Err *e = server_find(name, &s);
  err_free(e);
  if (!s || !s->chip) return false;
  *out = (ChipRef){s->chip, s->gpus * s->chip->devices_per_chip, s->gpus, s, {{0}, 0, 0}};
  return true;
}

ChipSlice chip_slice_of(const Chip *c, int chips) {
  if (c->kind != CHIP_TPU) return slice_fullest(chips, 1, 0);
  int axes = chip_num(c, "ici_links", 4) >= 6 ? 3 : 2;
  return slice_fullest(chips, axes, (int)chip_num(c, "slice_most", 0));
}

/* So many slices or servers of one name. */
static ChipRef several(const ChipRef *one, int count) {
  ChipRef all = *one;
  all.devices *= count;
  all.chips *= count;
  if (all.chip->kind != CHIP_TPU || one->chips < 2) return all.slice.chips = 0, all;
  if (!all.slice.chips) all.slice = chip_slice_of(all.chip, one->chips);
  all.slice.slices *= count;
  return all;
}

static Err *parse(const char *name, ChipRef *out) {
  *out = (ChipRef){0};
  size_t len = strlen(name);
  if (len && !strchr("-:", name[len - 1]) && (out->chip = chip_named(name))) return NULL;
  if (len && parse_server(name, out)) return NULL;
  /* NAME:8 counts chips (boards); NAME-8 counts what the family's slice names count. */
  const char *sep = strrchr(name, ':');
  bool colon = sep != NULL;
  if (!sep) sep = strrchr(name, '-');
  if (!sep || sep == name || strlen(name) > 90) return not_found(name);
  char *end;
  long count = strtol(sep + 1, &end, 10);
  if (*end == 'x') return parse_box(name, sep, out);
  char *base = xstrndup(name, (size_t)(sep - name));
  const Chip *c = chip_named(base);
  if (end == sep + 1 || *end) {
    free(base);
    return c && colon ? bad_count(name, sep + 1) : not_found(name);
  }
  ChipRef inner = {0}; /* SkyPilot: tpu-v3-8:1 */
  Err *e = NULL;
  if (!c) e = colon ? parse(base, &inner) : not_found(name);
  else if (!colon && c->kind == CHIP_GPU && (count > 8 || (count & (count - 1))))
    e = not_found(name); /* A100-80 is no eighty A100; H100-80GB-8 is eight, as xpk writes it */
  free(base);
  if (e) return e;
  if (count < 1 || count > MAX_CHIPS / MAX(1, inner.chips)) return bad_count(name, sep + 1);
  if (!c) {
    *out = several(&inner, (int)count);
    return NULL;
  }
  out->chip = c;
  const char *unit = chip_text(c, "slice_unit");
  int cores = (int)chip_num(c, "cores_per_chip", c->devices_per_chip);
  bool by_core = !colon && unit && !strcmp(unit, "core");
  int each = by_core ? MAX(1, cores) : 1;
  if (count > 1 && count % each)
    return near_slices(
        c, (int)count / each, each,
        err_new(ERR_INVALID, "'%s' counts cores, and a %s has %d of them", name, c->title, cores));
  out->chips = (int)MAX(1, count / each);
  if (!colon && out->chips > 2 && out->chips % 4)
    return near_slices(c, out->chips, each,
                       err_new(ERR_INVALID,
                               "'%s': a slice has 1 chip, 2, or a multiple of 4, not %d", name,
                               out->chips));
  if (!colon) TRY(too_large(name, c, out->chips));
  out->devices = out->chips * c->devices_per_chip;
  return NULL;
}

/* "H100:16@a3-mega": the chips before it, in servers of that name. */
static Err *parse_in_server(const char *name, const char *at, ChipRef *out) {
  const Server *s;
  TRY(server_find(at + 1, &s));
  char *chips = xstrndup(name, (size_t)(at - name));
  Err *e = parse(chips, out);
  if (!e && s->chip != out->chip)
    e = err_hint(err_new(ERR_INVALID, "'%s': a server %s has %s", name, s->name, s->chip->name),
                 "%s:%d@%s", s->chip->name, MAX(1, out->chips), s->name);
  free(chips);
  out->server = s;
  return e;
}

Err *chip_parse(const char *name, ChipRef *out) {
  TRY(catalogue_load());
  const char *at = strrchr(name, '@');
  TRY(at ? parse_in_server(name, at, out) : parse(name, out));
  if (!out->slice.chips) out->slice = chip_slice_of(out->chip, out->chips);
  return NULL;
}

Err *chip_offers(const Offer **out, int *n) {
  TRY(catalogue_load());
  *out = cat.offers.v;
  *n = cat.offers.n;
  return NULL;
}
