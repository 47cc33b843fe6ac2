/* The reader of chip files and the catalogue. A file is a list of `key = value unit  # source`; the
 * struct's fields are filled from known keys, everything else stays reachable by name. */
#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "chip/chip_priv.h"

/* ---- one file -------------------------------------------------------------------------------- */

typedef struct Unit {
  const char *name;
  double scale;
} Unit;
static const Unit units[] = {
    {"", 1},       {"GHz", 1e9},   {"MHz", 1e6},          {"TFLOP/s", 1e12},  {"GFLOP/s", 1e9},
    {"GB/s", 1e9}, {"TB/s", 1e12}, {"GiB", 1073741824.0}, {"MiB", 1048576.0}, {"KiB", 1024.0},
    {"GB", 1e9},   {"MB", 1e6},    {"bytes", 1},          {"W", 1},           {"us", 1e-6},
    {"ms", 1e-3},  {"s", 1},       {"nm", 1e-9},          {"per cycle", 1},   {"cycles", 1},
    {"USD/h", 1},
};

static Str trim(Str s) {
  while (s.n && isspace((unsigned char)s.p[0])) s.p++, s.n--;
  while (s.n && isspace((unsigned char)s.p[s.n - 1])) s.n--;
  return s;
}

/* Takes the next line that is neither empty nor a comment; counts those passed over, too. */
static bool next_line(Str *rest, Str *out, int *line) {
  while (rest->n) {
    const char *end = memchr(rest->p, '\n', rest->n);
    size_t n = end ? (size_t)(end - rest->p) : rest->n;
    *out = trim((Str){rest->p, n});
    rest->p += MIN(n + 1, rest->n), rest->n -= MIN(n + 1, rest->n);
    ++*line;
    if (out->n && out->p[0] != '#') return true;
  }
  return false;
}

static const char *cstr(Arena *a, Str s) { return arena_str(a, s).p; }

/* A number with a known unit, else NaN; an unknown unit after a number is text (a topology "2x2").
 */
static double value_num(Str v) {
  char buf[64];
  if (v.n == 0 || v.n >= sizeof buf) return NAN;
  memcpy(buf, v.p, v.n);
  buf[v.n] = 0;
  char *end;
  double x = strtod(buf, &end);
  if (end == buf || !isfinite(x)) return NAN;
  Str unit = trim(str_from(end));
  for (int i = 0; i < COUNT_OF(units); i++)
    if (str_is(unit, units[i].name)) return x * units[i].scale;
  return NAN;
}

static const char *const required[] = {"name", "kind",          "devices_per_chip", "clock",
                                       "hbm",  "hbm_bandwidth", "power_idle",       "power_busy"};

const char *chip_how(const ChipFact *f) {
  static const char *const words[][2] = {/* the strongest doubt first */
                                         {"guess", "guess"},         {"fitted", "fitted"},
                                         {"(recalled)", "recalled"}, {"(derived)", "derived"},
                                         {"(oracle)", "oracle"},     {"(read)", "read"},
                                         {"measured on", "measured"}};
  if (!strncmp(f->key, "fit.", 4)) return "fitted";
  for (int i = 0; i < COUNT_OF(words); i++)
    if (strstr(f->source, words[i][0])) return words[i][1];
  return NULL;
}

const ChipFact *chip_fact(const Chip *c, const char *key) {
  for (int i = 0; i < c->n_facts; i++)
    if (!strcmp(c->facts[i].key, key)) return &c->facts[i];
  return NULL;
}
double chip_num(const Chip *c, const char *key, double dflt) {
  const ChipFact *f = chip_fact(c, key);
  return f && !isnan(f->num) ? f->num : dflt;
}
const char *chip_text(const Chip *c, const char *key) {
  const ChipFact *f = chip_fact(c, key);
  return f ? f->text : NULL;
}

static double need(const Chip *c, const char *key, double lo, Err **err) {
  const ChipFact *f = chip_fact(c, key);
  if (*err) return lo;
  if (!f || !(f->num >= lo && f->num <= 1e30)) {
    *err = err_new(ERR_INVALID, "'%s' must be a number of at least %g with a known unit, not '%s'",
                   key, lo, f ? f->text : "nothing");
    err_place(*err, "%s:%d", c->file, f ? f->line : 1);
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

typedef VEC(ChipFact) Facts;

/* One line: `key = value unit  # source`. */
static Err *read_fact(Arena *arena, Str l, int line, Facts *facts) {
  const char *eq = memchr(l.p, '=', l.n);
  const char *hash = NULL;
  for (size_t k = 0; k + 1 < l.n && !hash; k++)
    if (l.p[k] == '#' && k > 0 && isspace((unsigned char)l.p[k - 1])) hash = l.p + k;
  Str key = eq ? trim((Str){l.p, (size_t)(eq - l.p)}) : (Str){0};
  Str val = {0}, source = {0};
  if (eq && (!hash || hash > eq)) {
    const char *ve = hash ? hash : l.p + l.n;
    val = trim((Str){eq + 1, (size_t)(ve - eq - 1)});
    if (hash) source = trim((Str){hash + 1, (size_t)(l.p + l.n - hash - 1)});
  }
  if (!key.n || !val.n)
    return err_hint(
        err_new(ERR_INVALID, "expected `key = value unit  # source`, found '%.*s'", STR_ARG(l)),
        "a comment line starts with #");
  if (!source.n)
    return err_hint(err_new(ERR_INVALID, "'%.*s' has no source", STR_ARG(key)),
                    "say after # where the figure comes from, or that it is a guess");
  for (int k = 0; k < facts->n; k++)
    if (str_is(key, facts->v[k].key))
      return err_new(ERR_INVALID, "'%.*s' is given twice, first on line %d", STR_ARG(key),
                     facts->v[k].line);
  *vec_push(facts) =
      (ChipFact){cstr(arena, key), cstr(arena, val), cstr(arena, source), value_num(val), line};
  return NULL;
}

/* *last: the file's last line that says something. */
static Err *read_facts(Arena *arena, Chip *c, const char *file, Str text, int *last) {
  Facts facts = {0};
  Err *err = NULL;
  for (Str l; !err && next_line(&text, &l, last);) {
    err = read_fact(arena, l, *last, &facts);
    if (err) err_place(err, "%s:%d", file, *last);
  }
  c->n_facts = facts.n;
  c->facts = arena_dup(arena, facts.v, sizeof(ChipFact) * (size_t)facts.n);
  vec_free(&facts);
  return err;
}

static void read_names(Arena *arena, Chip *c) {
  VEC(const char *) names = {0};
  *vec_push(&names) = c->name;
  for (const char *p = chip_text(c, "aliases"); p && *p;) {
    const char *e = strchr(p, ',');
    Str s = trim((Str){p, e ? (size_t)(e - p) : strlen(p)});
    if (s.n) *vec_push(&names) = cstr(arena, s);
    p = e ? e + 1 : NULL;
  }
  c->n_aliases = names.n;
  c->aliases = arena_dup(arena, names.v, sizeof *names.v * (size_t)names.n);
  vec_free(&names);
}

Err *chip_read(Arena *arena, const char *file, Str text, Chip **out) {
  Chip *c = ARENA_NEW(arena, Chip);
  c->file = cstr(arena, str_from(file));
  int line = 0;
  Err *err = read_facts(arena, c, file, text, &line);
  if (err) return err;
  for (int i = 0; i < COUNT_OF(required); i++)
    if (!chip_fact(c, required[i]))
      return err_place(err_new(ERR_INVALID, "the fact '%s' is missing", required[i]), "%s:%d", file,
                       line);
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
  double peak = chip_num(c, "peak_bf16", chip_num(c, "peak_fp16", chip_num(c, "peak_fp32", 0)));
  c->peak_flops = peak / dev;
  c->hbm_bytes =
      need(c, "hbm", 1, &err) / (c->kind == CHIP_GPU ? dev : 1); /* TPU files give it per device */
  c->hbm_usable = chip_num(c, "hbm_usable", c->hbm_bytes - chip_num(c, "hbm_reserved", 0));
  c->hbm_bandwidth = need(c, "hbm_bandwidth", 1, &err) / dev;
  c->power_idle = need(c, "power_idle", 0, &err);
  c->power_busy = need(c, "power_busy", 0, &err);
  if (err) return err;
  read_names(arena, c);
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

/* Names are compared without case, '-', '_' and blanks. */
static void fold(const char *s, char *out, size_t n) {
  size_t k = 0;
  for (; *s && k + 1 < n; s++)
    if (*s != '-' && *s != '_' && *s != ' ') out[k++] = (char)tolower((unsigned char)*s);
  out[k] = 0;
}
static bool same_name(const char *a, const char *b) {
  char x[96], y[96];
  fold(a, x, sizeof x);
  fold(b, y, sizeof y);
  return !strcmp(x, y);
}
static Chip *lookup(const char *name) {
  for (int i = 0; i < cat.chips.n; i++)
    for (int k = 0; k < cat.chips.v[i]->n_aliases; k++)
      if (same_name(cat.chips.v[i]->aliases[k], name)) return cat.chips.v[i];
  return NULL;
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
      if (n < max) f[n++] = cstr(a, (Str){b.p ? b.p : "", b.n});
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
  for (Str l; next_line(&text, &l, &line);) {
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
    const Chip *chip = lookup(f[col[PC_ACC]]);
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

static Err *load(void) {
  Err *err = NULL;
  pthread_mutex_lock(&lock);
  if (!cat.ready) {
    cat.arena = arena_new();
    err = data_each("chips", ".chip", add_chip, NULL);
    if (!err) {
      if (cat.chips.n) qsort(cat.chips.v, (size_t)cat.chips.n, sizeof *cat.chips.v, by_kind);
      err = data_each("prices", ".csv", add_prices, NULL);
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
  TRY(load());
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
  fold(name, want, sizeof want);
  int least = strlen(want) > 4 ? FAR : 2;
  for (int i = 0; i < cat.chips.n; i++) {
    const Chip *c = cat.chips.v[i];
    int best = FAR;
    for (int k = 0; k < c->n_aliases; k++) {
      fold(c->aliases[k], have, sizeof have);
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

Err *chip_find(const char *name, const Chip **out) {
  TRY(load());
  const Chip *c = lookup(name);
  if (!c) return not_found(name);
  *out = c;
  return NULL;
}

enum { MAX_CHIPS = 1000000 }; /* in one name; keeps counts of devices and cores within an int */

static Err *bad_count(const char *name, const char *count) {
  return err_new(ERR_INVALID, "'%s' in '%s': the number of chips must be from 1 to %d", count, name,
                 MAX_CHIPS);
}

/* The sizes next to a number of chips that no slice has; `each`: what a name counts in a chip. */
static Err *near_slices(const Chip *c, int chips, int each, Err *e) {
  int below = chips / 4 * 4, above = below + 4;
  if (chips < 4) below = chips < 2 ? 1 : 2, above = chips < 2 ? 2 : 4;
  return err_hint(e, "%s-%d or %s-%d", c->name, below * each, c->name, above * each);
}

Err *chip_parse(const char *name, ChipRef *out) {
  TRY(load());
  *out = (ChipRef){0};
  size_t len = strlen(name);
  if (len && !strchr("-:", name[len - 1]) && (out->chip = lookup(name))) return NULL;
  /* NAME:8 counts chips (boards); NAME-8 counts what the family's slice names count. */
  const char *sep = strrchr(name, ':');
  bool colon = sep != NULL;
  if (!sep) sep = strrchr(name, '-');
  if (!sep || sep == name || strlen(name) > 90) return not_found(name);
  char *end;
  long count = strtol(sep + 1, &end, 10);
  if (end == sep + 1 || *end) return not_found(name);
  char *base = xstrndup(name, (size_t)(sep - name));
  const Chip *c = lookup(base);
  ChipRef inner = {0}; /* SkyPilot: tpu-v3-8:1 */
  Err *e = NULL;
  if (!c) e = colon ? chip_parse(base, &inner) : not_found(name);
  else if (!colon && c->kind == CHIP_GPU) e = not_found(name); /* A100-80 is no eighty A100 */
  free(base);
  if (e) return e;
  if (count < 1 || count > MAX_CHIPS / MAX(1, inner.chips)) return bad_count(name, sep + 1);
  if (!c) {
    *out = (ChipRef){inner.chip, inner.devices * (int)count, inner.chips * (int)count};
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
  out->devices = out->chips * c->devices_per_chip;
  return NULL;
}

Err *chip_offers(const Offer **out, int *n) {
  TRY(load());
  *out = cat.offers.v;
  *n = cat.offers.n;
  return NULL;
}

double chip_price(const Chip *c, bool spot, const Offer **offer) {
  double best = NAN;
  for (int i = 0; i < cat.offers.n; i++) {
    const Offer *o = &cat.offers.v[i];
    double p = (spot ? o->spot_hour : o->usd_hour) / o->chips;
    if (o->chip != c || isnan(p) || p <= 0) continue;
    if (!spot && offer_is_suspect(o)) continue;
    if (isnan(best) || p < best) {
      best = p;
      if (offer) *offer = o;
    }
  }
  return best;
}
