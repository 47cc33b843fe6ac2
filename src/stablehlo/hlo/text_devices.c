/* HLO text on devices: groups, pairs, shardings; aliases and donors of the entry's arguments. */
#include <stdlib.h>

#include "stablehlo/hlo/text.h"

/* ---- groups --------------------------------------------------------------------------------- */

/* [4,2]<=[2,4]T(1,0) of groups and shardings: what stands after the first list. */
static Err *iota_list(HloText *t, size_t *n, int64_t **dims, size_t *n_perm, int32_t **perm) {
  TRY(hlo_int_list(t, "[", "]", n, dims));
  if (!hlo_take(t, "T")) return NULL;
  int64_t *p;
  TRY(hlo_int_list(t, "(", ")", n_perm, &p));
  *perm = ARENA_ARRAY(t->a, int32_t, *n_perm);
  for (size_t k = 0; k < *n_perm; k++) (*perm)[k] = (int32_t)p[k];
  return NULL;
}

Err *hlo_text_replica_groups(HloText *t, Hlo__Instruction *i) {
  if (hlo_at(t, "[")) {
    Hlo__IotaGroups *g = HLO_NEW(t, iota_groups);
    size_t n;
    int64_t *v;
    TRY(hlo_int_list(t, "[", "]", &n, &v));
    if (n != 2) return hlo_text_err(t, "groups are [how many, of how many]");
    g->num_replica_groups = v[0], g->num_devices_per_group = v[1];
    TRY(hlo_want(t, "<="));
    TRY(iota_list(t, &g->n_iota_reshape_dims, &g->iota_reshape_dims, &g->n_iota_transpose_perm,
                  &g->iota_transpose_perm));
    if (!i->collective_device_list) i->collective_device_list = HLO_NEW(t, device_list);
    i->collective_device_list->iota_replica_group_list = g;
    return NULL;
  }
  VEC(Hlo__ReplicaGroup *) v = {0};
  TRY(hlo_want(t, "{"));
  Err *e = NULL;
  while (!e && !hlo_take(t, "}")) {
    if (v.n) e = hlo_want(t, ",");
    Hlo__ReplicaGroup *g = *vec_push(&v) = HLO_NEW(t, replica_group);
    if (!e) e = hlo_int_list(t, "{", "}", &g->n_replica_ids, &g->replica_ids);
  }
  i->n_replica_groups = (size_t)v.n;
  i->replica_groups = arena_dup(t->a, v.v, sizeof *v.v * (size_t)v.n);
  vec_free(&v);
  return e;
}

Err *hlo_text_source_target_pairs(HloText *t, Hlo__Instruction *i) {
  VEC(Hlo__SourceTarget *) v = {0};
  TRY(hlo_want(t, "{"));
  Err *e = NULL;
  while (!e && !hlo_take(t, "}")) {
    if (v.n) e = hlo_want(t, ",");
    Hlo__SourceTarget *p = *vec_push(&v) = HLO_NEW(t, source_target);
    size_t n = 0;
    int64_t *pair;
    if (!e) e = hlo_int_list(t, "{", "}", &n, &pair);
    if (!e && n != 2) e = hlo_text_err(t, "a pair is {source,target}");
    if (!e) p->source = pair[0], p->target = pair[1];
  }
  i->n_source_target_pairs = (size_t)v.n;
  i->source_target_pairs = arena_dup(t->a, v.v, sizeof *v.v * (size_t)v.n);
  vec_free(&v);
  return e;
}

/* ---- shardings ------------------------------------------------------------------------------- */

enum { REPLICATED, MAXIMAL, TUPLE, OTHER, MANUAL, UNKNOWN, UNREDUCED };

static Err *subgroup_types(HloText *t, Hlo__LeafSharding *s) {
  int32_t v[HLO_MAX_DEPTH];
  TRY(hlo_want(t, "{"));
  while (!hlo_take(t, "}")) {
    if (s->n_last_tile_dims == COUNT_OF(v)) return hlo_text_err(t, "too many subgroups");
    if (s->n_last_tile_dims) TRY(hlo_want(t, ","));
    Str word;
    TRY(hlo_word(t, &word));
    v[s->n_last_tile_dims++] = str_is(word, "manual")      ? MANUAL
                               : str_is(word, "unreduced") ? UNREDUCED
                                                           : REPLICATED;
  }
  s->last_tile_dims = arena_dup(t->a, v, sizeof *v * s->n_last_tile_dims);
  return NULL;
}

static Err *listed_devices(HloText *t, Hlo__LeafSharding *s) {
  VEC(int64_t) v = {0};
  Err *e = NULL;
  do e = hlo_int(t, vec_push(&v));
  while (!e && hlo_take(t, ","));
  s->n_tile_assignment_devices = (size_t)v.n;
  s->tile_assignment_devices = arena_dup(t->a, v.v, sizeof *v.v * (size_t)v.n);
  vec_free(&v);
  return e;
}

static Err *sharding_word(HloText *t, Hlo__LeafSharding *s) {
  Str word, rest;
  TRY(hlo_word(t, &word));
  if (str_is(word, "replicated")) s->type = REPLICATED;
  else if (str_is(word, "manual")) s->type = MANUAL;
  else if (str_is(word, "unknown")) s->type = UNKNOWN;
  else if (str_is(word, "unreduced")) s->type = UNREDUCED;
  else if (str_is(word, "maximal")) s->type = MAXIMAL;
  else if (str_is(word, "last_tile_dim_replicate")) s->replicate_on_last_tile_dim = true;
  else if (str_is(word, "device")) {
    TRY(hlo_want(t, "="));
    return listed_devices(t, s);
  } else if (str_is(word, "last_tile_dims")) {
    TRY(hlo_want(t, "="));
    return subgroup_types(t, s);
  } else if (str_is(word, "metadata")) {
    TRY(hlo_want(t, "="));
    return hlo_nested(t, '{', &rest);
  } else if (str_is(word, "devices")) {
    s->type = OTHER;
    TRY(hlo_want(t, "="));
    TRY(hlo_int_list(t, "[", "]", &s->n_tile_assignment_dimensions,
                     &s->tile_assignment_dimensions));
    if (hlo_take(t, "<="))
      return iota_list(t, &s->n_iota_reshape_dims, &s->iota_reshape_dims, &s->n_iota_transpose_perm,
                       &s->iota_transpose_perm);
    return listed_devices(t, s);
  } else {
    return hlo_text_err(t, "a sharding has no '%.*s'", STR_ARG(word));
  }
  return NULL;
}

static Err *leaf_sharding(HloText *t, Hlo__LeafSharding *s) { /* after the { */
  while (!hlo_take(t, "}")) TRY(sharding_word(t, s));
  return NULL;
}

Err *hlo_text_sharding(HloText *t, Hlo__Sharding **out) {
  Hlo__Sharding *s = *out = HLO_NEW(t, sharding);
  TRY(hlo_want(t, "{"));
  if (!hlo_at(t, "{")) {
    Hlo__LeafSharding l = HLO__LEAF_SHARDING__INIT;
    TRY(leaf_sharding(t, &l));
    s->type = l.type;
    s->n_tile_assignment_dimensions = l.n_tile_assignment_dimensions;
    s->tile_assignment_dimensions = l.tile_assignment_dimensions;
    s->n_tile_assignment_devices = l.n_tile_assignment_devices;
    s->tile_assignment_devices = l.tile_assignment_devices;
    s->replicate_on_last_tile_dim = l.replicate_on_last_tile_dim;
    s->n_last_tile_dims = l.n_last_tile_dims, s->last_tile_dims = l.last_tile_dims;
    s->n_iota_reshape_dims = l.n_iota_reshape_dims, s->iota_reshape_dims = l.iota_reshape_dims;
    s->n_iota_transpose_perm = l.n_iota_transpose_perm;
    s->iota_transpose_perm = l.iota_transpose_perm;
    return NULL;
  }
  VEC(Hlo__LeafSharding *) v = {0};
  Err *e = NULL;
  while (!e && !hlo_take(t, "}")) {
    if (v.n) e = hlo_want(t, ",");
    Hlo__LeafSharding *l = *vec_push(&v) = HLO_NEW(t, leaf_sharding);
    if (!e) e = hlo_want(t, "{");
    if (!e) e = leaf_sharding(t, l);
  }
  s->type = TUPLE;
  s->n_tuple_shardings = (size_t)v.n;
  s->tuple_shardings = arena_dup(t->a, v.v, sizeof *v.v * (size_t)v.n);
  vec_free(&v);
  return e;
}

/* ---- of the module --------------------------------------------------------------------------- */

/* { {0}: (2, {}, may-alias), ... } */
Err *hlo_text_alias(HloText *t, Hlo__InputOutputAlias **out) {
  VEC(Hlo__AliasEntry *) v = {0};
  Hlo__InputOutputAlias *all = *out = HLO_NEW(t, input_output_alias);
  TRY(hlo_want(t, "{"));
  Err *e = NULL;
  while (!e && !hlo_take(t, "}")) {
    if (v.n) e = hlo_want(t, ",");
    Hlo__AliasEntry *a = *vec_push(&v) = HLO_NEW(t, alias_entry);
    Str rest;
    if (!e) e = hlo_int_list(t, "{", "}", &a->n_output_shape_index, &a->output_shape_index);
    if (!e) e = hlo_want(t, ":");
    if (!e) e = hlo_want(t, "(");
    if (!e) e = hlo_int(t, &a->parameter_number);
    if (!e && hlo_take(t, ","))
      e = hlo_int_list(t, "{", "}", &a->n_parameter_shape_index, &a->parameter_shape_index);
    if (!e && hlo_take(t, ",")) e = hlo_word(t, &rest);
    if (!e) e = hlo_want(t, ")");
  }
  all->n_entries = (size_t)v.n;
  all->entries = arena_dup(t->a, v.v, sizeof *v.v * (size_t)v.n);
  vec_free(&v);
  return e;
}

/* { (0, {}), (1, {}) } */
Err *hlo_text_donor(HloText *t, Hlo__BufferDonor **out) {
  VEC(Hlo__DonorEntry *) v = {0};
  Hlo__BufferDonor *all = *out = HLO_NEW(t, buffer_donor);
  TRY(hlo_want(t, "{"));
  Err *e = NULL;
  while (!e && !hlo_take(t, "}")) {
    if (v.n) e = hlo_want(t, ",");
    Hlo__DonorEntry *d = *vec_push(&v) = HLO_NEW(t, donor_entry);
    if (!e) e = hlo_want(t, "(");
    if (!e) e = hlo_int(t, &d->parameter_number);
    if (!e && hlo_take(t, ","))
      e = hlo_int_list(t, "{", "}", &d->n_parameter_shape_index, &d->parameter_shape_index);
    if (!e) e = hlo_want(t, ")");
  }
  all->n_entries = (size_t)v.n;
  all->entries = arena_dup(t->a, v.v, sizeof *v.v * (size_t)v.n);
  vec_free(&v);
  return e;
}
