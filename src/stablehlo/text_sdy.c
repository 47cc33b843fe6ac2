/* Shardy's attributes: meshes, shardings, axis lists. */
#include "stablehlo/text_priv.h"

#include <stdlib.h>

typedef VEC(AxisRef) Axes;

/* "x" or "x":(2)4 */
static Err *axis_ref(Text *t, AxisRef *out) {
  *out = (AxisRef){0};
  TRY(text_string(t, &out->name));
  if (!text_take(t, ':')) return NULL;
  TRY(text_want(t, '(', "'(' and the size before the sub-axis"));
  TRY(text_int(t, &out->sub_pre));
  TRY(text_want(t, ')', "')'"));
  TRY(text_int(t, &out->sub_size));
  if (out->sub_pre < 1 || out->sub_size < 1)
    return text_err_at(t, t->start, "sub-axis sizes must be positive");
  return NULL;
}

static Err *axis_list(Text *t, Axes *v, bool *open) { /* up to and with } */
  *open = false;
  if (text_take(t, '}')) return NULL;
  do {
    if (text_take(t, '?')) {
      *open = true;
      break;
    }
    AxisRef a;
    TRY(axis_ref(t, &a));
    *vec_push(v) = a;
  } while (text_take(t, ','));
  return text_want(t, '}', "',' or '}'");
}

static Err *axis_set(Text *t, AxisRef **out, int *n) {
  Axes v = {0};
  bool open;
  Err *e = text_want(t, '{', "'{' and axes");
  if (!e) e = axis_list(t, &v, &open);
  *out = arena_dup(t->m->arena, v.v, sizeof *v.v * (size_t)v.n);
  *n = v.n;
  vec_free(&v);
  return e;
}

static Err *dim_sharding(Text *t, DimSharding *d) {
  *d = (DimSharding){.priority = -1};
  Axes v = {0};
  Err *e = text_want(t, '{', "'{' and the axes of a dimension");
  if (!e) e = axis_list(t, &v, &d->open);
  d->axes = arena_dup(t->m->arena, v.v, sizeof *v.v * (size_t)v.n);
  d->n_axes = v.n;
  vec_free(&v);
  if (e) return e;
  if (text_is(t, T_ID) && t->s.n >= 2 && t->s.n < 12 && t->s.p[0] == 'p') {
    int64_t p = 0;
    for (size_t i = 1; i < t->s.n; i++) {
      if (t->s.p[i] < '0' || t->s.p[i] > '9') return text_expected(t, "a priority such as p1");
      p = p * 10 + (t->s.p[i] - '0');
    }
    d->priority = p;
    text_next(t);
  }
  return NULL;
}

static Err *mesh_axes(Text *t, Mesh *m) {
  TRY(text_want(t, '[', "'[' and the axes of the mesh"));
  VEC(MeshAxis) v = {0};
  Err *e = NULL;
  if (!text_is(t, ']')) do {
      MeshAxis *a = vec_push(&v);
      *a = (MeshAxis){0};
      e = text_string(t, &a->name);
      if (!e) e = text_want(t, '=', "'=' and the size of the axis");
      if (!e) e = text_int(t, &a->size);
    } while (!e && text_take(t, ','));
  if (!e) e = text_want(t, ']', "',' or ']'");
  m->axes = arena_dup(t->m->arena, v.v, sizeof *v.v * (size_t)v.n);
  m->n_axes = v.n;
  vec_free(&v);
  return e;
}

static Err *mesh_body(Text *t, Attr **out) { /* after <, with > */
  Mesh *m = ARENA_NEW(t->m->arena, Mesh);
  TRY(mesh_axes(t, m));
  if (text_take(t, ',')) {
    TRY(text_want_word(t, "device_ids"));
    TRY(text_want(t, '=', "'='"));
    Ints v = {0};
    Err *e = text_int_list(t, &v);
    m->ids = arena_dup(t->m->arena, v.v, sizeof *v.v * (size_t)v.n);
    m->n_ids = v.n;
    vec_free(&v);
    if (e) return e;
  }
  *out = attr_unit(t->m);
  (*out)->kind = AT_MESH;
  (*out)->mesh = m;
  return text_want(t, '>', "'>' after the mesh");
}

Err *text_mesh(Text *t, Attr **out) {
  TRY(text_want(t, '<', "'<' and a mesh"));
  return mesh_body(t, out);
}

static Err *sharding_body(Text *t, Sharding *s) { /* after < */
  if (text_is(t, T_SYM)) {
    TRY(text_symbol(t, &s->mesh_name));
  } else if (text_take_word(t, "mesh")) {
    Attr *m;
    TRY(text_mesh(t, &m));
    s->mesh = m->mesh;
  } else {
    return text_expected(t, "a mesh symbol or mesh<...>");
  }
  TRY(text_want(t, ',', "','"));
  TRY(text_want(t, '[', "'[' and dimension shardings"));
  VEC(DimSharding) v = {0};
  Err *e = NULL;
  if (!text_is(t, ']')) do {
      e = dim_sharding(t, vec_push(&v));
    } while (!e && text_take(t, ','));
  if (!e) e = text_want(t, ']', "',' or ']'");
  s->dims = arena_dup(t->m->arena, v.v, sizeof *v.v * (size_t)v.n);
  s->n_dims = v.n;
  vec_free(&v);
  if (e) return e;
  while (text_take(t, ',')) {
    bool rep = text_is_word(t, "replicated"), unr = text_is_word(t, "unreduced");
    if (!rep && !unr) return text_expected(t, "'replicated' or 'unreduced'");
    text_next(t);
    TRY(text_want(t, '=', "'='"));
    TRY(axis_set(t, rep ? &s->replicated : &s->unreduced,
                 rep ? &s->n_replicated : &s->n_unreduced));
  }
  return text_want(t, '>', "'>' after the sharding");
}

Err *text_sharding(Text *t, Attr **out) {
  TRY(text_want(t, '<', "'<' and a sharding"));
  Attr *a = attr_unit(t->m);
  a->kind = AT_SHARDING;
  a->sharding = ARENA_NEW(t->m->arena, Sharding);
  TRY(sharding_body(t, a->sharding));
  *out = a;
  return NULL;
}

Err *text_sharding_list(Text *t, Attr **out) {
  return text_attr_list(t, "'[' and shardings", text_sharding, out);
}

Err *text_axes(Text *t, Attr **out) {
  AttrList v = {0};
  Err *e = text_want(t, '{', "'{' and axes");
  if (!e && !text_is(t, '}')) do {
      Str s = {0};
      e = text_string(t, &s);
      *vec_push(&v) = attr_string(t->m, s);
    } while (!e && text_take(t, ','));
  if (!e) e = text_want(t, '}', "',' or '}'");
  if (!e) *out = attr_array(t->m, v.n, v.v);
  vec_free(&v);
  return e;
}

/* t is on the token after #sdy.name< (or after `name` of #sdy<name ...>); reads through the last >.
 */
Err *text_sdy_attr(Text *t, Str name, const char *at, bool *known, Attr **out) {
  (void)at;
  *known = true;
  if (str_is(name, "sharding")) {
    Attr *a = attr_unit(t->m);
    a->kind = AT_SHARDING;
    a->sharding = ARENA_NEW(t->m->arena, Sharding);
    if (text_take(t, '<')) { /* #sdy<sharding<...>> */
      TRY(sharding_body(t, a->sharding));
      TRY(text_want(t, '>', "'>'"));
    } else {
      TRY(sharding_body(t, a->sharding));
    }
    *out = a;
    return NULL;
  }
  if (str_is(name, "sharding_per_value")) {
    TRY(text_sharding_list(t, out));
    return text_want(t, '>', "'>'");
  }
  if (str_is(name, "manual_axes")) {
    TRY(text_axes(t, out));
    return text_want(t, '>', "'>'");
  }
  if (str_is(name, "mesh")) return mesh_body(t, out);
  *known = false;
  return NULL;
}
