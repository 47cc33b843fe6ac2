/* What the files of chips must agree on. A chip begins as a copy of another one's file: what was left in it by mistake must
 * not pass for the other chip. */
#include <math.h>
#include <stdlib.h>

#include "chip/chip_priv.h"

typedef struct Name {
  char folded[96];
  const char *given;
  const Chip *chip;
  int at; /* of the chip in the list */
} Name;

static int by_name(const void *a, const void *b) {
  const Name *x = a, *y = b;
  int c = strcmp(x->folded, y->folded);
  return c ? c : x->at - y->at;
}

/* The first of the list is the newer one: WEFT_DATA goes before what is compiled in. */
static Err *given_twice(const Name *mine, const Name *other) {
  const Chip *c = mine->chip, *o = other->chip;
  const ChipFact *f = chip_fact(c, strcmp(mine->given, c->name) ? "aliases" : "name");
  Err *e = err_new(ERR_INVALID, "'%s' is a name of %s, too (%s)", mine->given, o->name, o->file);
  err_hint(e, "leave it out of `aliases`; a file that takes the place of %s has its `name`",
           o->name);
  return err_place(e, "%s:%d", c->file, f->line);
}

static Err *names_agree(Chip *const *chips, int n) {
  VEC(Name) names = {0};
  for (int i = 0; i < n; i++)
    for (int k = 0; k < chips[i]->n_aliases; k++) {
      Name *name = vec_push(&names);
      *name = (Name){.given = chips[i]->aliases[k], .chip = chips[i], .at = i};
      chip_fold(name->given, name->folded, sizeof name->folded);
    }
  if (names.n) qsort(names.v, (size_t)names.n, sizeof *names.v, by_name);
  Err *e = NULL;
  for (int i = 1; i < names.n && !e; i++) {
    const Name *a = &names.v[i - 1], *b = &names.v[i];
    if (!strcmp(a->folded, b->folded) && a->chip != b->chip) e = given_twice(a, b);
  }
  vec_free(&names);
  return e;
}

static Err *numbers_agree(Chip *const *chips, int n) {
  Map *numbers = map_new(); /* key -> a chip in whose file it is one */
  for (int i = 0; i < n; i++)
    for (int k = 0; k < chips[i]->n_facts; k++)
      if (!isnan(chips[i]->facts[k].num))
        map_set(numbers, str_from(chips[i]->facts[k].key), chips[i]);
  Err *e = NULL;
  for (int i = 0; i < n && !e; i++)
    for (int k = 0; k < chips[i]->n_facts && !e; k++) {
      const ChipFact *f = &chips[i]->facts[k];
      const Chip *other = isnan(f->num) ? map_get(numbers, str_from(f->key)) : NULL;
      if (!other) continue;
      e = err_new(ERR_INVALID, "'%s' is a number with a unit (%s: %s), not '%s'", f->key,
                  other->name, chip_text(other, f->key), f->text);
      err_place(facts_hint_units(e), "%s:%d", chips[i]->file, f->line);
    }
  map_free(numbers);
  return e;
}

Err *chips_agree(Chip *const *chips, int n) {
  TRY(names_agree(chips, n));
  return numbers_agree(chips, n);
}
