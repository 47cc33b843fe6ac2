/* Who is who among the arguments and results of a train step. What is said is taken first; then names
 * decide, then donation, then order and type. */
#include "adopt/adopt_priv.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- what is said: lists of numbers and names -------------------------------------------------- */

typedef VEC(int) Numbers;

/* The i-th is meant by `item`: 3, 2-5, or a name that its path or name is or lies in. */
static bool meant(const char *item, int i, const char *name, const char *path) {
  char *end;
  long from = strtol(item, &end, 10), to = from;
  if (end != item && *end == '-') to = strtol(end + 1, &end, 10);
  if (end != item && !*end) return i >= from && i <= to;
  char *want = adopt_path(str_from(item));
  bool is = !strcmp(item, name) || adopt_lies_in(path, want);
  free(want);
  return is;
}

static Err *find_args(const Adopted *a, const char *item, const char *flag, Numbers *out) {
  for (int i = 0; i < a->n_args; i++)
    if (meant(item, i, a->args[i].name, a->args[i].path)) *vec_push(out) = i;
  if (out->n) return NULL;
  Buf b = {0};
  adopt_table(a, &b);
  Err *e =
      err_hint(err_new(ERR_INVALID, "--%s %s: '%s' has no such argument", flag, item, a->program),
               "%s", b.p);
  buf_free(&b);
  return e;
}

static Err *find_results(const Adopted *a, const char *item, const char *flag, Numbers *out) {
  char *bare = adopt_path(str_from(item)); /* result[1] is 1: a path like another */
  for (int i = 0; i < a->n_results; i++) {
    const AdoptResult *r = &a->results[i];
    bool number = isdigit((unsigned char)*item);
    if (number ? meant(item, i, "", "") : !strcmp(item, r->name) || adopt_lies_in(r->path, bare))
      *vec_push(out) = i;
  }
  for (int i = 0; i < a->n_results && !out->n; i++) { /* loss: the last part of a name */
    const char *path = a->results[i].path, *slash = strrchr(path, '/');
    if (!strcmp(slash ? slash + 1 : path, item)) *vec_push(out) = i;
  }
  free(bare);
  if (out->n) return NULL;
  Buf b = {0};
  adopt_table(a, &b);
  Err *e = err_hint(
      err_new(ERR_INVALID, "--%s %s: '%s' has no such result", flag, item, a->program), "%s", b.p);
  buf_free(&b);
  return e;
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
    a->args[args.v[i]].role = ROLE_BATCH;
    if (equals) a->args[args.v[i]].wants = xstrdup(equals + 1);
  }
  vec_free(&args);
  return e;
}

static Err *each_item(Adopted *a, const char *list, Err *(*fn)(Adopted *a, char *item)) {
  char *copy = xstrdup(list), *rest = copy;
  Err *e = NULL;
  for (char *item; !e && (item = strsep(&rest, ","));)
    if (*item) e = fn(a, item);
  free(copy);
  return e;
}

/* ---- metrics ----------------------------------------------------------------------------------- */

static bool is_real_scalar(const Type *t) { return t->rank == 0 && dtype_is_float(t->dtype); }

static bool says(const char *path, const char *word) {
  const char *slash = strrchr(path, '/');
  return strcasestr(slash ? slash + 1 : path, word);
}

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

static void find_usual_metrics(Adopted *a) {
  a->accuracy = metric(a, "acc");
  if (a->accuracy >= 0) a->results[a->accuracy].taken = true;
  a->rate = metric(a, "learning_rate");
  if (a->rate < 0) a->rate = metric(a, "lr");
  if (a->rate >= 0) a->results[a->rate].taken = true;
}

/* All other scalars: curves. */
static void find_other_metrics(Adopted *a) {
  for (int i = 0; i < a->n_results && a->n_extra < STEP_EXTRA; i++) {
    if (a->results[i].taken || !is_real_scalar(a->results[i].type)) continue;
    const char *path = a->results[i].path, *slash = strrchr(path, '/');
    bool named = *path && !isdigit((unsigned char)(slash ? slash[1] : *path));
    a->extra_names[a->n_extra] = xstrdup(named ? slash ? slash + 1 : path : a->results[i].name);
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

const char *adopt_last(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* As same_type, where names do not speak against it: result[1]['norm'] is no next value of lr. */
static bool may_pair(const Adopted *a, int arg, int result) {
  const char *was = adopt_last(a->args[arg].path), *is = adopt_last(a->results[result].path);
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
  const char *slash = strrchr(g->path, '/'), *name = slash ? slash + 1 : g->path;
  for (int i = 0; i < COUNT_OF(words); i++)
    if (strcasestr(name, words[i]) && (words_of_32 || (!t->rank && dtype_is_int(t->dtype))))
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

/* The longest run of pairs of one type in the order of both: a longest common subsequence. */
static void by_order(Adopted *a) {
  bool any_donated = false;
  for (int i = 0; i < a->n_args; i++) any_donated |= a->args[i].donated;
  Numbers args = {0}, results = {0};
  for (int i = 0; i < a->n_args; i++)
    if (may_be_state(a, i, any_donated)) *vec_push(&args) = i;
  for (int j = 0; j < a->n_results; j++)
    if (!a->results[j].taken) *vec_push(&results) = j;
  int n = args.n, k = results.n;
  int *best = xcalloc((size_t)((n + 1) * (k + 1)), sizeof *best); /* [i][j]: of what is left */
  for (int i = n - 1; i >= 0; i--)
    for (int j = k - 1; j >= 0; j--) {
      int skip = MAX(best[(i + 1) * (k + 1) + j], best[i * (k + 1) + j + 1]);
      bool same = may_pair(a, args.v[i], results.v[j]);
      best[i * (k + 1) + j] = MAX(skip, same ? best[(i + 1) * (k + 1) + j + 1] + 1 : 0);
    }
  for (int i = 0, j = 0; i < n && j < k;) {
    int here = best[i * (k + 1) + j];
    bool same = may_pair(a, args.v[i], results.v[j]);
    if (same && here == best[(i + 1) * (k + 1) + j + 1] + 1)
      err_free(claim(a, args.v[i++], results.v[j++]));
    else if (here == best[i * (k + 1) + j + 1]) j++;
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

/* What is no state has examples in front, as many as most of them; the rest is fixed. */
static void find_batch(Adopted *a, bool said) {
  for (int pass = 0; pass < 3 && !a->batch; pass++)
    for (int i = 0; i < a->n_args; i++) {
      const AdoptArg *g = &a->args[i];
      bool asked = g->role == ROLE_BATCH;
      bool may = g->role == ROLE_NONE && !adopt_is_key(g) && (pass == 2 || adopt_named_as_batch(g));
      if (g->type->rank && (pass ? may : asked)) a->batch = g->type->dims[0];
    }
  for (int i = 0; i < a->n_args; i++) {
    AdoptArg *g = &a->args[i];
    if (g->role != ROLE_NONE) continue;
    bool examples = g->type->rank && g->type->dims[0] == a->batch && !adopt_is_key(g);
    g->role = examples && !said ? ROLE_BATCH : ROLE_FIXED;
  }
}

static Err *lacks(const Adopted *a, const char *what, const char *todo) {
  Buf b = {0};
  adopt_table(a, &b);
  Err *e = err_hint(
      err_new(ERR_INVALID, "'%s' is no train step that is understood: %s", a->program, what),
      "%s\n%s", todo, b.p);
  buf_free(&b);
  return e;
}

Err *adopt_roles(Adopted *a, const AdoptOpts *o) {
  a->loss = a->accuracy = a->rate = -1;
  if (o->batch) TRY(each_item(a, o->batch, say_batch_item));
  if (o->state) TRY(each_item(a, o->state, say_state_item));
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
  int states = 0, batches = 0;
  for (int i = 0; i < a->n_args; i++) {
    AdoptArg *g = &a->args[i];
    if (g->role == ROLE_STATE && g->result < 0) {
      Buf t = {0};
      type_print(&t, g->type);
      buf_printf(&t, ": argument %d (%s) is state, but no result is left of its type", i, g->name);
      Err *e = lacks(a, t.p, "--state ARGUMENTS=RESULTS says which result is its next value");
      buf_free(&t);
      return e;
    }
    states += g->role == ROLE_STATE;
    batches += g->role == ROLE_BATCH;
    if (g->role == ROLE_BATCH && (!g->type->rank || g->type->dims[0] != a->batch))
      return err_new(ERR_INVALID,
                     "argument %d (%s) of '%s' has no first dimension of %lld examples", i, g->name,
                     a->program, (long long)a->batch);
  }
  if (!states)
    return lacks(a, "no result has the type of an argument, so nothing is state",
                 "a step gives back the new state: return it, or say it with --state");
  if (a->loss == -2) return lacks(a, "several results may be the loss", "--loss says which");
  if (a->loss < 0)
    return lacks(a, "no result is a loss", "return the loss as a scalar, or say it with --loss");
  if (!batches)
    return lacks(a, "every argument is state or a single number, so nothing is a batch",
                 "--batch-args names the arguments that data go to");
  return NULL;
}

Err *adopt_find_metrics(Adopted *a) {
  a->loss = a->accuracy = a->rate = -1;
  a->accuracy = metric(a, "acc");
  if (a->accuracy >= 0) a->results[a->accuracy].taken = true;
  TRY(find_loss(a, NULL));
  if (a->loss >= 0 || a->accuracy >= 0) return NULL;
  return lacks(a, "no result is a loss or an accuracy",
               "return {'loss': ..., 'accuracy': ...}, scalars");
}
