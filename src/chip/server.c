/* Servers from their files of facts, and the list of them. */
#include <math.h>
#include <stdlib.h>

#include "chip/chip_priv.h"

static struct {
  Arena *arena;
  VEC(Server *) v;
} all;

static Server *named(const char *name) {
  for (int i = 0; i < all.v.n; i++)
    for (int k = 0; k < all.v.v[i]->n_aliases; k++)
      if (same_name(all.v.v[i]->aliases[k], name)) return all.v.v[i];
  return NULL;
}

const ChipFact *server_fact(const Server *s, const char *key) {
  for (; s; s = s->like) {
    const ChipFact *f = facts_find(s->facts, s->n_facts, key);
    if (f) return f;
  }
  return NULL;
}
double server_num(const Server *s, const char *key, double dflt) {
  const ChipFact *f = server_fact(s, key);
  return f && !isnan(f->num) ? f->num : dflt;
}
const char *server_text(const Server *s, const char *key) {
  const ChipFact *f = server_fact(s, key);
  return f ? f->text : NULL;
}

static Err *add_server(void *arg, const char *file, Str text) {
  (void)arg;
  Server *s = ARENA_NEW(all.arena, Server);
  int line = 0;
  s->file = arena_str(all.arena, str_from(file)).p;
  TRY(facts_read(all.arena, file, text, &s->facts, &s->n_facts, &line));
  const ChipFact *name = facts_find(s->facts, s->n_facts, "name");
  if (!name)
    return err_place(err_new(ERR_INVALID, "the fact 'name' is missing"), "%s:%d", file, line);
  s->name = name->text;
  const ChipFact *aliases = facts_find(s->facts, s->n_facts, "aliases");
  s->aliases = facts_names(all.arena, s->name, aliases ? aliases->text : NULL, &s->n_aliases);
  for (int i = 0; i < all.v.n; i++)
    if (same_name(all.v.v[i]->name, s->name)) return NULL; /* WEFT_DATA came first and wins */
  *vec_push(&all.v) = s;
  return NULL;
}

static Err *wrong(const Server *s, const char *key, const char *what) {
  const ChipFact *f = server_fact(s, key);
  return err_place(
      err_new(ERR_INVALID, "'%s' must be %s, not '%s'", key, what, f ? f->text : "nothing"),
      "%s:%d", s->file, f && facts_find(s->facts, s->n_facts, key) ? f->line : 1);
}

/* `like` points at another server; a circle is refused. */
static Err *link_like(Server *s) {
  const ChipFact *f = facts_find(s->facts, s->n_facts, "like");
  if (!f) return NULL;
  s->like = named(f->text);
  for (const Server *p = s->like; p && p != s; p = p->like)
    if (p->like == s) return wrong(s, "like", "a server that is not like this one");
  return s->like && s->like != s ? NULL : wrong(s, "like", "the name of another server");
}

static Err *finish(Server *s) {
  const char *chip = server_text(s, "chip"), *title = server_text(s, "title");
  s->title = title ? title : s->name;
  s->chip = chip ? chip_named(chip) : NULL;
  if (!s->chip || s->chip->kind != CHIP_GPU) return wrong(s, "chip", "the name of a GPU");
  double n = server_num(s, "gpus", 0);
  if (!(n >= 1 && n <= 1024 && n == floor(n)))
    return wrong(s, "gpus", "a whole number from 1 to 1024");
  s->gpus = (int)n;
  if (!(server_num(s, "link", 0) > 0)) return wrong(s, "link", "bytes/s above 0");
  return NULL;
}

static int by_name(const void *a, const void *b) {
  return strcmp((*(Server *const *)a)->name, (*(Server *const *)b)->name);
}

Err *servers_load(Arena *arena) {
  vec_free(&all.v);
  all.arena = arena;
  Err *e = data_each("servers", ".server", add_server, NULL);
  for (int i = 0; i < all.v.n && !e; i++) e = link_like(all.v.v[i]);
  for (int i = 0; i < all.v.n && !e; i++) e = finish(all.v.v[i]);
  if (!e && all.v.n) qsort(all.v.v, (size_t)all.v.n, sizeof *all.v.v, by_name);
  return e;
}

Err *server_list(const Server *const **out, int *n) {
  TRY(catalogue_load());
  *out = (const Server *const *)all.v.v;
  *n = all.v.n;
  return NULL;
}

Err *server_find(const char *name, const Server **out) {
  TRY(catalogue_load());
  *out = named(name);
  if (*out) return NULL;
  Buf known = {0};
  Nearest near = {.want = str_from(name)};
  for (int i = 0; i < all.v.n; i++) {
    buf_printf(&known, "%s%s", i ? " " : "", all.v.v[i]->name);
    for (int k = 0; k < all.v.v[i]->n_aliases; k++) nearest_see(&near, all.v.v[i]->aliases[k]);
  }
  Err *e = err_new(ERR_NOT_FOUND, "no server is called '%s'", name);
  if (near.best) e = err_hint(e, "did you mean %s? known: %s", near.best, known.p);
  else e = err_hint(e, "known: %s", known.p ? known.p : "none");
  buf_free(&known);
  return e;
}

const Server *chip_server(const Chip *c) {
  const char *name = chip_text(c, "server");
  return name ? named(name) : NULL;
}
