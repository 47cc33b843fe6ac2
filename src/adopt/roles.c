/* Who is who among the arguments and results of a train step. What is said is taken first; then names
 * decide, then donation, then order and type. */
#include "adopt/adopt_priv.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- what is said: lists of numbers and names -------------------------------------------------- */

typedef VEC(int) Numbers;

/* "3" or "2-5"; false: a name. */
static bool range_of(const char *item, long *from, long *to) {
  char *end;
  if (!isdigit((unsigned char)*item)) return false;
  *from = *to = strtol(item, &end, 10);
  if (*end == '-' && isdigit((unsigned char)end[1])) *to = strtol(end + 1, &end, 10);
  return !*end;
}

/* By number, or by a name that its name or path is, or that its path lies in. */
static Err *find_args(const Adopted *a, const char *item, const char *flag, Numbers *out) {
  long from, to;
  bool number = range_of(item, &from, &to);
  char *want = adopt_path(str_from(item));
  for (int i = 0; i < a->n_args; i++) {
    const AdoptArg *g = &a->args[i];
    bool named = !strcmp(item, g->name) || adopt_lies_in(g->path, want);
    if (number ? i >= from && i <= to : named) *vec_push(out) = i;
  }
  free(want);
  return out->n ? NULL : adopt_wrong(a, "--%s %s: there is no such argument", flag, item);
}

static Err *find_results(const Adopted *a, const char *item, const char *flag, Numbers *out) {
  long from, to;
  bool number = range_of(item, &from, &to);
  char *bare = adopt_path(str_from(item)); /* result[1] is 1: a path like another */
  for (int i = 0; i < a->n_results; i++) {
    const AdoptResult *r = &a->results[i];
    bool named = !strcmp(item, r->name) || adopt_lies_in(r->path, bare);
    if (number ? i >= from && i <= to : named) *vec_push(out) = i;
  }
  for (int i = 0; i < a->n_results && !out->n; i++) /* loss: the last part of a name */
    if (!strcmp(base_name(a->results[i].path), item)) *vec_push(out) = i;
  free(bare);
  return out->n ? NULL : adopt_wrong(a, "--%s %s: there is no such result", flag, item);
}

static Err *differ(const Adopted *a, int arg, int result) {
  Buf b = {0};
  type_print(&b, a->args[arg].type);
  buf_cstr(&b, " and ");
  type_print(&b, a->results[result].type);
  Err *e = err_new(ERR_INVALID, "argument %d (%s) and result %d (%s) of '%s' differ: %s", arg,
                   a->args[arg].name, result, a->results[result].name, a->program, b.p);
  buf_free(&b);
  return e;
}

static Err *claim(Adopted *a, int arg, int result) {
  if (a->args[arg].type != a->results[result].type) return differ(a, arg, result);
  a->args[arg].role = ROLE_STATE;
  a->args[arg].result = result;
  a->results[result].taken = true;
  return NULL;
}

static Err *say_state_item(Adopted *a, char *item) {
  Numbers args = {0}, results = {0};
  char *equals = strchr(item, '=');
  if (equals) *equals = 0;
  Err *e = find_args(a, item, "state", &args);
  if (!e && equals) e = find_results(a, equals + 1, "state", &results);
  if (!e && equals && args.n != results.n)
    e = err_new(ERR_INVALID, "--state %s=%s: %d arguments and %d results", item, equals + 1, args.n,
                results.n);
  for (int i = 0; i < args.n && !e; i++) {
    if (results.n) e = claim(a, args.v[i], results.v[i]);
    else a->args[args.v[i]].role = ROLE_STATE; /* its result is found later */
  }
  vec_free(&args);
  vec_free(&results);
  return e;
}

static Err *say_batch_item(Adopted *a, char *item) {
  Numbers args = {0};
  char *equals = strchr(item, '=');
  if (equals) *equals = 0;
  Err *e = find_args(a, item, "batch-args", &args);
  for (int i = 0; i < args.n && !e; i++) {
    AdoptArg *g = &a->args[args.v[i]];
    g->role = ROLE_BATCH;
    if (!equals) continue;
    free(g->wants); /* the last word counts */
    g->wants = xstrdup(equals + 1);
  }
  vec_free(&args);
  return e;
}

static Err *each_item(Adopted *a, const char *flag, const char *list,
                      Err *(*fn)(Adopted *a, char *item)) {
  char *copy = xstrdup(list), *rest = copy;
  Err *e = NULL;
  for (char *item; !e && (item = strsep(&rest, ","));)
    e = *item ? fn(a, item)
              : err_new(ERR_INVALID,
                        "--%s '%s' has an empty place: numbers or names, with a comma between",
                        flag, list);
  free(copy);
  return e;
}

/* ---- metrics ----------------------------------------------------------------------------------- */

static bool is_real_scalar(const Type *t) { return t->rank == 0 && dtype_is_float(t->dtype); }

static bool says(const char *path, const char *word) { return strcasestr(base_name(path), word); }

/* The result whose last name holds the word and is no state yet; -1: none. */
static int metric(const Adopted *a, const char *word) {
  for (int i = 0; i < a->n_results; i++)
    if (!a->results[i].taken && is_real_scalar(a->results[i].type) &&
        says(a->results[i].path, word))
      return i;
  return -1;
}

static bool aliases(const Adopted *a, int result) {
  for (int i = 0; i < a->n_args; i++)
    if (a->args[i].alias == result) return true;
  return false;
}

/* Where no result says that it is the loss: the only scalar; -1: none, or -2: several. */
static int nameless_loss(const Adopted *a) {
  int found = -1;
  for (int i = 0; i < a->n_results; i++) {
    const AdoptResult *r = &a->results[i];
    if (r->taken || !is_real_scalar(r->type) || aliases(a, i)) continue;
    found = found == -1 ? i : -2;
  }
  return found;
}

static Err *find_loss(Adopted *a, const char *said) {
  if (said) {
    Numbers found = {0};
    Err *e = find_results(a, said, "loss", &found);
    if (!e && found.n > 1)
      e = err_new(ERR_INVALID, "--loss %s: %d results of '%s' are that", said, found.n, a->program);
    if (!e) a->loss = found.v[0];
    vec_free(&found);
    TRY(e);
    if (!dtype_is_float(a->results[a->loss].type->dtype))
      return err_new(ERR_INVALID, "--loss %s: result %d of '%s' is no floating-point number", said,
                     a->loss, a->program);
  } else {
    a->loss = metric(a, "loss");
    if (a->loss < 0) a->loss = nameless_loss(a);
  }
  if (a->loss >= 0) a->results[a->loss].taken = true;
  return NULL;
}

static int take_metric(Adopted *a, const char *word) {
  int i = metric(a, word);
  if (i >= 0) a->results[i].taken = true;
  return i;
}

static void find_usual_metrics(Adopted *a) {
  a->accuracy = take_metric(a, "acc");
  a->rate = take_metric(a, "learning_rate");
  if (a->rate < 0) a->rate = take_metric(a, "lr");
}

/* An argument that is the rate, where no result says it: of a step that takes it, or of optax' inject_hyperparams. */
static void find_rate_argument(Adopted *a) {
  a->rate_arg = -1;
  for (int i = 0; i < a->n_args && a->rate < 0 && a->rate_arg < 0; i++) {
    const char *name = base_name(a->args[i].path);
    bool rate = !strcasecmp(name, "lr") || !strcasecmp(name, "learning_rate");
    if (rate && a->args[i].role != ROLE_BATCH && is_real_scalar(a->args[i].type)) a->rate_arg = i;
  }
}

/* All other scalars: curves. */
static void find_other_metrics(Adopted *a) {
  for (int i = 0; i < a->n_results && a->n_extra < STEP_EXTRA; i++) {
    if (a->results[i].taken || !is_real_scalar(a->results[i].type)) continue;
    const char *name = base_name(a->results[i].path);
    bool named = *name && !isdigit((unsigned char)*name);
    a->extra_names[a->n_extra] = xstrdup(named ? name : a->results[i].name);
    a->extra[a->n_extra++] = i;
  }
}

/* ---- state ------------------------------------------------------------------------------------- */

static bool open_arg(const AdoptArg *g) {
  return g->role == ROLE_NONE || (g->role == ROLE_STATE && g->result < 0);
}

static bool same_type(const Adopted *a, int arg, int result) {
  return a->args[arg].type == a->results[result].type && !a->results[result].taken;
}

/* As same_type, where names do not speak against it: result[1]['norm'] is no next value of lr. */
static bool may_pair(const Adopted *a, int arg, int result) {
  const char *was = base_name(a->args[arg].path), *is = base_name(a->results[result].path);
  bool word = *is && !isdigit((unsigned char)*is), other = *was && word && strcmp(was, is) != 0;
  return same_type(a, arg, result) && !other;
}

/* step(params, opt, ...) that gives (params, opt, ...), {'params': ..., }, or one of them alone. */
static bool same_name(const AdoptArg *g, const AdoptResult *r, int how) {
  const char *tail = adopt_tail(g->path), *rest = adopt_tail(r->path);
  if (how == 0) return *g->path && !strcmp(g->path, r->path);
  if (how == 1) return *tail && !strcmp(tail, rest);
  return *tail && !strcmp(tail, r->path);
}

static void by_name(Adopted *a) {
  for (int how = 0; how < 3; how++)
    for (int i = 0; i < a->n_args; i++)
      for (int j = 0; j < a->n_results && open_arg(&a->args[i]); j++)
        if (same_type(a, i, j) && same_name(&a->args[i], &a->results[j], how))
          err_free(claim(a, i, j));
}

static void by_alias(Adopted *a) {
  for (int i = 0; i < a->n_args; i++) {
    int j = a->args[i].alias;
    if (j >= 0 && open_arg(&a->args[i]) && same_type(a, i, j)) err_free(claim(a, i, j));
  }
}

bool adopt_is_key(const AdoptArg *g) {
  static const char *const words[] = {"key", "rng", "seed", "prng"};
  const Type *t = g->type;
  bool words_of_32 = t->dtype == DT_U32 && t->rank == 1 && (t->dims[0] == 2 || t->dims[0] == 4);
  if (!*g->path) return words_of_32;
  for (int i = 0; i < COUNT_OF(words); i++)
    if (strcasestr(base_name(g->path), words[i]) &&
        (words_of_32 || (!t->rank && dtype_is_int(t->dtype))))
      return true;
  return words_of_32;
}

bool adopt_named_as_batch(const AdoptArg *g) {
  static const char *const words[] = {
      "x",     "y",      "xs",    "ys",     "batch",     "input",          "inputs",
      "image", "images", "label", "labels", "tokens",    "target",         "targets",
      "ids",   "data",   "mask",  "text",   "input_ids", "attention_mask", "features"};
  size_t n = strcspn(g->path, "/");
  for (int i = 0; i < COUNT_OF(words); i++)
    if (strlen(words[i]) == n && !strncasecmp(g->path, words[i], n)) return true;
  return false;
}

/* May a result be its next value though no name says so? */
static bool may_be_state(const Adopted *a, int i, bool any_donated) {
  const AdoptArg *g = &a->args[i];
  if (!open_arg(g)) return false;
  if (g->role == ROLE_STATE || g->donated || adopt_is_key(g)) return true;
  if (adopt_named_as_batch(g)) return false;
  bool counter = !g->type->rank && dtype_is_int(g->type->dtype);
  return !any_donated || counter;
}

enum { ORDER_CELLS = 1 << 26 }; /* of by_order's table: arguments times results */

/* The longest run of pairs of one type in the order of both: a longest common subsequence. Programs of more than
 * ORDER_CELLS pairs go without it: by_type takes all. */
static void by_order(Adopted *a) {
  bool any_donated = false;
  for (int i = 0; i < a->n_args; i++) any_donated |= a->args[i].donated;
  Numbers args = {0}, results = {0};
  for (int i = 0; i < a->n_args; i++)
    if (may_be_state(a, i, any_donated)) *vec_push(&args) = i;
  for (int j = 0; j < a->n_results; j++)
    if (!a->results[j].taken) *vec_push(&results) = j;
  int64_t n = args.n, k = results.n, row = k + 1;
  if ((n + 1) * row > ORDER_CELLS) n = k = 0;
  int *best = xcalloc((size_t)((n + 1) * row), sizeof *best); /* [i][j]: of what is left */
  for (int64_t i = n - 1; i >= 0; i--)
    for (int64_t j = k - 1; j >= 0; j--) {
      int skip = MAX(best[(i + 1) * row + j], best[i * row + j + 1]);
      bool same = may_pair(a, args.v[i], results.v[j]);
      best[i * row + j] = MAX(skip, same ? best[(i + 1) * row + j + 1] + 1 : 0);
    }
  for (int64_t i = 0, j = 0; i < n && j < k;) {
    int here = best[i * row + j];
    bool same = may_pair(a, args.v[i], results.v[j]);
    if (same && here == best[(i + 1) * row + j + 1] + 1)
      err_free(claim(a, args.v[i++], results.v[j++]));
    else if (here == best[i * row + j + 1]) j++;
    else i++;
  }
  free(best);
  vec_free(&args);
  vec_free(&results);
}

/* What is left has another order, as in traces of PyTorch/XLA: the n-th of a type is the n-th of it. */
static void by_type(Adopted *a) {
  bool any_donated = false;
  for (int i = 0; i < a->n_args; i++) any_donated |= a->args[i].donated;
  for (int i = 0; i < a->n_args; i++)
    for (int j = 0; j < a->n_results && may_be_state(a, i, any_donated); j++)
      if (may_pair(a, i, j)) err_free(claim(a, i, j));
}

/* ---- the batch --------------------------------------------------------------------------------- */

/* How many examples a step takes: the first dimension of the last argument that --batch-args names, else of the last
 * with a batch's name (x, labels), else of the last that is no state. */
static int64_t batch_of(const Adopted *a) {
  for (int pass = 0; pass < 3; pass++) {
    int64_t n = -1;
    for (int i = 0; i < a->n_args; i++) {
      const AdoptArg *g = &a->args[i];
      bool may = g->role == ROLE_NONE && !adopt_is_key(g) && (pass == 2 || adopt_named_as_batch(g));
      if (g->type->rank && (pass ? may : g->role == ROLE_BATCH)) n = g->type->dims[0];
    }
    if (n >= 0) return n;
  }
  return 0;
}

/* What is no state and has as many rows is a batch, where none was said; the rest is fixed. */
static void find_batch(Adopted *a, bool said) {
  a->batch = batch_of(a);
  for (int i = 0; i < a->n_args; i++) {
    AdoptArg *g = &a->args[i];
    if (g->role != ROLE_NONE) continue;
    bool examples = g->type->rank && g->type->dims[0] == a->batch && !adopt_is_key(g);
    g->role = examples && !said ? ROLE_BATCH : ROLE_FIXED;
  }
}

static Err *check_batch(const Adopted *a) {
  int batches = 0;
  for (int i = 0; i < a->n_args; i++) {
    const AdoptArg *g = &a->args[i];
    if (g->role != ROLE_BATCH) continue;
    batches++;
    if (!g->type->rank || g->type->dims[0] != a->batch)
      return err_new(ERR_INVALID,
                     "argument %d (%s) of '%s' has no first dimension of %lld examples", i, g->name,
                     a->program, (long long)a->batch);
    if (!a->batch)
      return err_new(ERR_INVALID, "argument %d (%s) of '%s' takes 0 examples", i, g->name,
                     a->program);
  }
  if (batches) return NULL;
  return err_hint(
      adopt_wrong(a, "every argument is state or a single number, so nothing is a batch"),
      "--batch-args names the arguments that data go to");
}

static Err *check_state(const Adopted *a) {
  int states = 0;
  for (int i = 0; i < a->n_args; i++) {
    const AdoptArg *g = &a->args[i];
    if (g->role != ROLE_STATE) continue;
    states++;
    if (g->result < 0)
      return err_hint(adopt_wrong(a, "argument %d (%s) is state, but no result is left of its type",
                                  i, g->name),
                      "--state ARGUMENTS=RESULTS says which result is its next value");
  }
  if (states) return NULL;
  return err_hint(
      adopt_wrong(a, "no result has the type of an argument, so nothing is state"),
      "a step gives back the new state: return it, or say it with --state ARGUMENTS=RESULTS");
}

static Err *check_loss(const Adopted *a) {
  if (a->loss >= 0) return NULL;
  if (a->loss == -2)
    return err_hint(adopt_wrong(a, "several results may be the loss"), "--loss says which");
  return err_hint(adopt_wrong(a, "no result is a loss"),
                  "return the loss as a scalar, or say it with --loss");
}

Err *adopt_roles(Adopted *a, const AdoptOpts *o) {
  a->loss = a->accuracy = a->rate = a->rate_arg = -1;
  if (o->batch) TRY(each_item(a, "batch-args", o->batch, say_batch_item));
  if (o->state) TRY(each_item(a, "state", o->state, say_state_item));
  if (o->loss) TRY(find_loss(a, o->loss));
  by_name(a);
  if (!o->loss) TRY(find_loss(a, NULL));
  find_usual_metrics(a);
  by_alias(a);
  by_order(a);
  by_type(a);
  if (a->loss < 0) TRY(find_loss(a, NULL)); /* what the state has left */
  find_other_metrics(a);
  find_batch(a, o->batch);
  find_rate_argument(a);
  TRY(check_state(a));
  TRY(check_loss(a));
  return check_batch(a);
}

Err *adopt_find_metrics(Adopted *a) {
  a->loss = a->rate = a->rate_arg = -1;
  a->accuracy = take_metric(a, "acc");
  TRY(find_loss(a, NULL));
  if (a->loss >= 0 || a->accuracy >= 0) return NULL;
  return err_hint(adopt_wrong(a, "no result is a loss or an accuracy"),
                  "return {'loss': ..., 'accuracy': ...}, scalars");
}
