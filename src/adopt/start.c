/* What the state begins with: the user's arrays, the results of a program, or made-up numbers. */
#include "adopt/adopt_priv.h"

#include "stablehlo/stablehlo.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- arrays from a file ------------------------------------------------------------------------ */

/* Takes the arrays of an npz. */
static void take_npz(Adopted *a, Npz *z) {
  a->start = xcalloc((size_t)z->n + 1, sizeof *a->start);
  for (int i = 0; i < z->n; i++) {
    Npy *from = &z->arrays[i];
    if (from->rank > COUNT_OF(a->start->dims)) continue; /* of no argument */
    NamedTensor *to = &a->start[a->n_start++];
    *to = (NamedTensor){.name = xstrdup(from->name), .type = from->dtype, .rank = from->rank};
    memcpy(to->dims, from->dims, sizeof(int64_t) * (size_t)from->rank);
    to->data = from->data;
    from->data = NULL;
  }
  a->start_npz = true;
}

/* Of one kind: numpy has 64 bits where a step has 32. */
static bool converts(const Adopted *a, DType from, DType to) {
  if (from == to || (a->start_npz && npy_holds(from, to))) return true;
  return (dtype_is_int(from) && dtype_is_int(to)) || (dtype_is_float(from) && dtype_is_float(to));
}

static bool fits(const Adopted *a, const NamedTensor *n, const Type *t) {
  return converts(a, n->type, t->dtype) && n->rank == t->rank &&
         (!t->rank || !memcmp(n->dims, t->dims, sizeof(int64_t) * (size_t)t->rank));
}

static void copy_start(const Adopted *a, const NamedTensor *n, const Type *t, void *out) {
  int64_t count = type_count(t), to = dtype_bytes(t->dtype), from = dtype_bytes(n->type);
  if (n->type == t->dtype || (a->start_npz && npy_holds(n->type, t->dtype))) {
    memcpy(out, n->data, (size_t)(count * to));
    return;
  }
  for (int64_t i = 0; i < count; i++) {
    const char *p = (const char *)n->data + i * from;
    char *q = (char *)out + i * to;
    if (dtype_is_int(t->dtype)) elem_set_i64(t->dtype, q, elem_get_i64(n->type, p));
    else elem_set_f64(t->dtype, q, elem_get_f64(n->type, p));
  }
}

/* Arrays without names that mean anything: as many as there is state, or the first of it, in order. */
static bool in_order(const Adopted *a) {
  int k = 0;
  for (int i = 0; i < a->n_args; i++) {
    if (a->args[i].role != ROLE_STATE || k == a->n_start) continue;
    if (!fits(a, &a->start[k++], a->args[i].type)) return false;
  }
  return k == a->n_start && k > 0;
}

const NamedTensor *adopt_start_of(const Adopted *a, int arg) {
  const AdoptArg *g = &a->args[arg];
  if (a->start_in_order) {
    int k = 0;
    for (int i = 0; i < arg; i++) k += a->args[i].role == ROLE_STATE;
    return g->role == ROLE_STATE && k < a->n_start ? &a->start[k] : NULL;
  }
  char number[32];
  snprintf(number, sizeof number, "in%d", arg); /* as weft run has them */
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < a->n_start; i++) {
      char *path = adopt_path(str_from(a->start[i].name));
      bool is = pass == 0 ? !strcmp(a->start[i].name, g->name) || (*path && !strcmp(path, g->path))
                          : !strcmp(a->start[i].name, number);
      free(path);
      if (is) return &a->start[i];
    }
  /* without the first part of its name, which a file of parameters alone does not have */
  const char *tail = adopt_tail(g->path);
  for (int i = 0; *tail && i < arg; i++)
    if (!strcmp(adopt_tail(a->args[i].path), tail)) return NULL; /* another's before it */
  for (int i = 0; *tail && i < a->n_start; i++) {
    char *path = adopt_path(str_from(a->start[i].name));
    bool is = !strcmp(path, tail);
    free(path);
    if (is) return &a->start[i];
  }
  return NULL;
}

static Err *fits_not(const Adopted *a, int arg, const NamedTensor *n) {
  Buf b = {0};
  type_print(&b, a->args[arg].type);
  buf_printf(&b, ", '%s' has %s [", n->name, dtype_name(n->type));
  for (int k = 0; k < n->rank; k++) buf_printf(&b, "%s%lld", k ? ", " : "", (long long)n->dims[k]);
  Err *e = err_new(ERR_INVALID, "'%s': argument %d (%s) is a %s]", a->start_name, arg,
                   a->args[arg].name, b.p);
  buf_free(&b);
  return e;
}

static Err *check_start(Adopted *a) {
  int named = 0;
  for (int i = 0; i < a->n_args; i++) {
    if (a->args[i].role == ROLE_BATCH) continue;
    const NamedTensor *n = adopt_start_of(a, i);
    if (n && !fits(a, n, a->args[i].type)) return fits_not(a, i, n);
    named += n != NULL;
  }
  if (named) return NULL;
  a->start_in_order = in_order(a);
  if (a->start_in_order) return NULL;
  Buf b = {0};
  for (int i = 0; i < MIN(a->n_start, 8); i++)
    buf_printf(&b, "%s%s", i ? ", " : "", a->start[i].name);
  Err *e = err_new(ERR_INVALID,
                   "'%s' has no array of the state's names, and its %d arrays are not the state in "
                   "order either",
                   a->start_name, a->n_start);
  e = err_hint(e, "it has %s%s; the state is %s, ...: by these names, or in0, in1, ... by argument",
               b.p ? b.p : "nothing", a->n_start > 8 ? ", ..." : "", a->args[0].name);
  buf_free(&b);
  return e;
}

Err *adopt_read_start(Adopted *a, const char *path) {
  a->start_name = xstrdup(path);
  Str s = str_from(path);
  if (str_ends(s, ".npz")) {
    Npz z;
    TRY(npz_read(path, &z));
    take_npz(a, &z);
    npz_free(&z);
  } else {
    TRY(safetensors_read(path, &a->n_start, &a->start));
  }
  return check_start(a);
}

/* ---- the results of a program ------------------------------------------------------------------ */

static Err *seed_argument(const Adopted *a, const Func *f, Client *c, uint64_t seed,
                          ClientBuffer **out) {
  const Type *t = f->type->elems[0];
  uint32_t key[2] = {(uint32_t)(seed >> 32), (uint32_t)seed};
  uint64_t number = seed;
  bool is_key = t->kind == TY_TENSOR && t->dtype == DT_U32 && t->rank == 1 && t->dims[0] == 2;
  bool is_int = t->kind == TY_TENSOR && !t->rank && dtype_is_int(t->dtype);
  if (f->type->n_elems > 1 || !(is_key || is_int))
    return err_new(ERR_INVALID, "'%s' takes more than a seed", a->init_program);
  return client_buffer_from_host(c, 0, t->dtype, t->rank, t->dims,
                                 is_key ? (const void *)key : &number, out);
}

static Err *fetch(ClientBuffer *b, NamedTensor *out) {
  const int64_t *dims;
  TRY(client_buffer_dims(b, &out->rank, &dims));
  out->type = client_buffer_type(b);
  size_t n = (size_t)dtype_bytes(out->type);
  for (int i = 0; i < out->rank; i++) n *= (size_t)(out->dims[i] = dims[i]);
  out->data = xmalloc(n + 1);
  return client_buffer_to_host(b, out->data, n);
}

static Err *run(Adopted *a, const Module *m, Client *c, uint64_t seed) {
  const Func *f = module_main(m);
  if (!f || !f->body) return err_new(ERR_INVALID, "'%s' has no main function", a->init_program);
  ClientProgram *exe = NULL;
  ClientBuffer *arg = NULL, **outs = xcalloc((size_t)f->type->n_results + 1, sizeof *outs);
  Err *e = f->type->n_elems ? seed_argument(a, f, c, seed, &arg) : NULL;
  if (!e) e = train_compile(c, m, 1, true, &exe);
  if (!e) e = client_execute(exe, &arg, f->type->n_elems, outs);
  a->start = xcalloc((size_t)f->type->n_results + 1, sizeof *a->start);
  for (int i = 0; i < f->type->n_results && !e; i++) {
    Attr *info = attrs_get(f->res_attrs[i], f->n_res_attrs[i], "jax.result_info");
    bool named = info && info->kind == AT_STRING;
    a->start[i].name = named ? xstrndup(info->s.p, info->s.n) : xasprintf("result%d", i);
    a->n_start = i + 1;
    e = fetch(outs[i], &a->start[i]);
  }
  for (int i = 0; i < f->type->n_results; i++) client_buffer_free(outs[i]);
  free(outs);
  client_buffer_free(arg);
  client_program_free(exe);
  if (e) return e;
  a->start_name = xstrdup(a->init_program);
  a->start_in_order = in_order(a); /* what a program gives is in order, if it can be */
  return a->start_in_order ? NULL : check_start(a);
}

Err *adopt_run_init(Adopted *a, Client *c, uint64_t seed) {
  Module *m = NULL;
  if (!a->init_program) return NULL;
  Err *e = stablehlo_open(a->init_program, NULL, &m);
  if (!e) e = run(a, m, c, seed);
  module_free(m);
  return err_wrap(e, "the program that the state begins with");
}

/* ---- one value --------------------------------------------------------------------------------- */

/* The argument beside the batch that has the name or path; -1: none. */
static int arg_named(const Adopted *a, Str name) {
  char *path = adopt_path(name);
  int found = -1;
  for (int i = 0; i < a->n_args && found < 0; i++)
    if (a->args[i].role != ROLE_BATCH &&
        (str_is(name, a->args[i].name) || (*path && !strcmp(path, a->args[i].path))))
      found = i;
  free(path);
  return found;
}

/* Those that --set is for: neither state nor batch. */
static void list_fixed(const Adopted *a, Buf *out) {
  int n = 0;
  for (int i = 0; i < a->n_args; i++)
    if (a->args[i].role == ROLE_FIXED && n++ < 8)
      buf_printf(out, "%s%s", n > 1 ? ", " : "", a->args[i].name);
  if (!n) buf_cstr(out, "none");
  else if (n > 8) buf_cstr(out, ", ...");
}

/* Does an element of the type hold the number, whole ones exactly? */
static bool holds(DType t, double v) {
  char element[16];
  elem_set_f64(t, element, v);
  return dtype_is_float(t) ? isfinite(elem_get_f64(t, element)) : elem_get_f64(t, element) == v;
}

Err *adopt_set(Adopted *a, const char *text) {
  const char *equals = strchr(text, '=');
  if (!equals || equals == text)
    return err_new(ERR_INVALID, "--set wants ARGUMENT=NUMBER, not '%s'", text);
  int arg = arg_named(a, (Str){text, (size_t)(equals - text)});
  if (arg < 0) {
    Buf b = {0};
    list_fixed(a, &b);
    Err *e = err_new(ERR_INVALID, "--set %s: '%s' has no such argument beside the batch", text,
                     a->program);
    e = err_hint(e, "arguments that are neither state nor batch: %s", b.p);
    buf_free(&b);
    return e;
  }
  AdoptArg *g = &a->args[arg];
  char *end;
  double v = strtod(equals + 1, &end);
  if (end == equals + 1 || *end || !isfinite(v) || !holds(g->type->dtype, v))
    return err_new(ERR_INVALID, "--set %s: argument '%s' is %s, '%s' is no such number", text,
                   g->name, dtype_name(g->type->dtype), equals + 1);
  if (g->set) return err_new(ERR_INVALID, "--set %s: '%s' was set before", text, g->name);
  g->set = true;
  g->value = v;
  return NULL;
}

bool adopt_has_value(const Adopted *a, int arg) {
  return a->args[arg].set || adopt_is_key(&a->args[arg]) || adopt_start_of(a, arg);
}

static bool says_one(const char *path) {
  static const char *const words[] = {"scale", "gamma", "var", "loss_scale"};
  for (int i = 0; i < COUNT_OF(words); i++)
    if (strcasestr(base_name(path), words[i])) return true;
  return false;
}

/* Made up: matrices normal by their inputs, scales and variances one, all else zero. */
static void make_up(const AdoptArg *g, const StateSpec *s, uint64_t seed, void *out) {
  bool matrix = s->rank > 1 && dtype_is_float(s->type);
  if (strstr(g->path, "/mu/") || strstr(g->path, "/nu/")) matrix = false; /* Adam's, of optax */
  if (!matrix) {
    double v = dtype_is_float(s->type) && says_one(g->path);
    init_fill(INIT(INIT_CONST, v), s->name, seed, s->type, s->rank, s->dims, out);
    return;
  }
  int64_t n = type_count(g->type);
  float *wide = xmalloc(sizeof *wide * (size_t)n + 1);
  init_fill(INIT(INIT_LECUN_NORMAL, 1), s->name, seed, DT_F32, s->rank, s->dims, wide);
  for (int64_t i = 0; i < n; i++)
    elem_set_f64(s->type, (char *)out + i * dtype_bytes(s->type), (double)wide[i]);
  free(wide);
}

static const AdoptArg *arg_of(const Adopted *a, const StateSpec *s) {
  int i = 0;
  while (i < a->n_args && (a->args[i].role == ROLE_BATCH || strcmp(a->args[i].name, s->name))) i++;
  assert(i < a->n_args);
  return &a->args[i];
}

bool adopt_is_set(const Model *m, const StateSpec *s) {
  return arg_of((const Adopted *)(const void *)m, s)->set;
}

Err *adopt_first(const Model *m, const StateSpec *s, uint64_t seed, void *out) {
  const Adopted *a = (const Adopted *)(const void *)m;
  const AdoptArg *g = arg_of(a, s);
  const NamedTensor *n = adopt_start_of(a, (int)(g - a->args));
  int64_t count = type_count(g->type), size = dtype_bytes(s->type);
  if (g->set) {
    for (int64_t i = 0; i < count; i++) elem_set_f64(s->type, (char *)out + i * size, g->value);
    return NULL;
  }
  if (n) {
    copy_start(a, n, g->type, out);
    return NULL;
  }
  memset(out, 0, (size_t)(count * size));
  if (adopt_is_key(g)) { /* jax.random.key(seed): its high word first */
    if (g->type->rank) {
      ((uint32_t *)out)[0] = (uint32_t)(seed >> 32);
      ((uint32_t *)out)[1] = (uint32_t)seed;
    } else {
      elem_set_i64(s->type, out, (int64_t)seed);
    }
  } else if (!a->zeros && !a->n_start) {
    make_up(g, s, seed, out);
  }
  return NULL;
}
