/* What an HLO module says of its arguments and results: shardings, aliases, donors. */
#include "stablehlo/hlo/import_priv.h"

enum { REPLICATED, MAXIMAL, TUPLE, OTHER, MANUAL, UNKNOWN, UNREDUCED };

static void print_ints(Buf *b, size_t n, const int64_t *v) {
  for (size_t i = 0; i < n; i++) buf_printf(b, "%s%lld", i ? "," : "", (long long)v[i]);
}

static const char *type_word(int type) {
  return type == MANUAL ? "manual" : type == UNREDUCED ? "unreduced" : "replicated";
}

static void print_leaf(Buf *b, const Hlo__LeafSharding *s) {
  if (s->type == MAXIMAL && s->n_tile_assignment_devices == 1) {
    buf_printf(b, "{maximal device=%lld}", (long long)s->tile_assignment_devices[0]);
    return;
  }
  if (s->type != OTHER) {
    if (s->type != UNKNOWN) buf_printf(b, "{%s}", type_word(s->type));
    return;
  }
  buf_cstr(b, "{devices=[");
  print_ints(b, s->n_tile_assignment_dimensions, s->tile_assignment_dimensions);
  buf_cstr(b, "]");
  if (s->n_iota_reshape_dims) {
    buf_cstr(b, "<=[");
    print_ints(b, s->n_iota_reshape_dims, s->iota_reshape_dims);
    buf_cstr(b, "]");
    bool turned = false;
    for (size_t i = 0; i < s->n_iota_transpose_perm; i++)
      turned |= s->iota_transpose_perm[i] != (int32_t)i;
    for (size_t i = 0; turned && i < s->n_iota_transpose_perm; i++)
      buf_printf(b, "%s%d", i ? "," : "T(", s->iota_transpose_perm[i]);
    if (turned) buf_cstr(b, ")");
  } else {
    print_ints(b, s->n_tile_assignment_devices, s->tile_assignment_devices);
  }
  if (s->replicate_on_last_tile_dim) buf_cstr(b, " last_tile_dim_replicate");
  for (size_t i = 0; i < s->n_last_tile_dims; i++)
    buf_printf(b, "%s%s", i ? ", " : " last_tile_dims={", type_word(s->last_tile_dims[i]));
  buf_cstr(b, s->n_last_tile_dims ? "}}" : "}");
}

static int64_t devices_of(const Hlo__LeafSharding *s) {
  int64_t n = 1;
  for (size_t i = 0; i < s->n_tile_assignment_dimensions; i++)
    if (mul_overflows(n, s->tile_assignment_dimensions[i], &n)) return 0;
  return s->type == OTHER ? n : 0;
}

Str hlo_sharding_text(HloImport *im, const Hlo__Sharding *s, int leaf, int leaves) {
  if (!s) return (Str){0};
  Hlo__LeafSharding own = {
      .type = s->type,
      .n_tile_assignment_dimensions = s->n_tile_assignment_dimensions,
      .tile_assignment_dimensions = s->tile_assignment_dimensions,
      .n_tile_assignment_devices = s->n_tile_assignment_devices,
      .tile_assignment_devices = s->tile_assignment_devices,
      .replicate_on_last_tile_dim = s->replicate_on_last_tile_dim,
      .n_last_tile_dims = s->n_last_tile_dims,
      .last_tile_dims = s->last_tile_dims,
      .n_iota_reshape_dims = s->n_iota_reshape_dims,
      .iota_reshape_dims = s->iota_reshape_dims,
      .n_iota_transpose_perm = s->n_iota_transpose_perm,
      .iota_transpose_perm = s->iota_transpose_perm,
  };
  const Hlo__LeafSharding *l = &own;
  if (s->type == TUPLE) {
    if (s->n_tuple_shardings != (size_t)leaves) return (Str){0};
    l = s->tuple_shardings[leaf];
  }
  int64_t n = devices_of(l);
  if (n > 1) hlo_names_devices(im, n), im->by_channel = true;
  Buf b = {0};
  print_leaf(&b, l);
  Str text = arena_str(im->m->arena, (Str){b.p, b.n});
  buf_free(&b);
  return text;
}

/* ---- the entry ------------------------------------------------------------------------------- */

static void add_attr(Module *m, NamedAttr **attrs, int *n, const char *name, Attr *value) {
  NamedAttr *all = ARENA_ARRAY(m->arena, NamedAttr, *n + 1);
  int at = 0;
  while (at < *n && str_cmp((*attrs)[at].name, str_from(name)) < 0) at++;
  if (at < *n && str_is((*attrs)[at].name, name)) return;
  if (at) memcpy(all, *attrs, sizeof *all * (size_t)at);
  all[at] = (NamedAttr){str_from(name), value};
  if (*n > at) memcpy(all + at + 1, *attrs + at, sizeof *all * (size_t)(*n - at));
  *attrs = all;
  ++*n;
}

typedef struct Parameter {
  const HloShape *shape;
  const Hlo__Sharding *sharding;
  Attr *shardy; /* of an array */
  int first;    /* leaf */
} Parameter;

static Err *find_parameters(HloImport *im, const Hlo__Computation *c, Parameter *p, int n) {
  const Hlo__Module *h = im->file->module;
  for (size_t k = 0; k < c->n_instructions; k++) {
    const Hlo__Instruction *i = c->instructions[k];
    if (strcmp(i->opcode, "parameter") || i->parameter_number >= n) continue;
    HloShape *s;
    TRY(hlo_shape(im->m->arena, i->shape, &s));
    size_t number = (size_t)i->parameter_number;
    p[number] = (Parameter){s, i->sharding, hlo_shardy_sharding(im, i), 0};
    if (number < h->n_spmd_parameters_shardings)
      p[number].sharding = h->spmd_parameters_shardings[number];
  }
  for (int k = 1; k < n; k++) p[k].first = p[k - 1].first + hlo_leaves(p[k - 1].shape);
  return NULL;
}

static int leaf_of(const Parameter *p, int n, int64_t number, size_t n_path, const int64_t *path) {
  if (number < 0 || number >= n) return -1;
  int at = hlo_leaf_at(p[number].shape, (int)n_path, path);
  return at < 0 ? -1 : p[number].first + at;
}

static void add_shardings(HloImport *im, Func *f, const Parameter *p, int n,
                          const Hlo__Instruction *root) {
  Module *m = im->m;
  for (int k = 0; k < n; k++) {
    if (p[k].shardy && hlo_leaves(p[k].shape) == 1)
      add_attr(m, &f->arg_attrs[p[k].first], &f->n_arg_attrs[p[k].first], "sdy.sharding",
               p[k].shardy);
    for (int l = 0, leaves = hlo_leaves(p[k].shape); l < leaves; l++) {
      Str text = hlo_sharding_text(im, p[k].sharding, l, leaves);
      int at = p[k].first + l;
      if (text.n)
        add_attr(m, &f->arg_attrs[at], &f->n_arg_attrs[at], "mhlo.sharding", attr_string(m, text));
    }
  }
  const Hlo__Sharding *out = im->file->module->spmd_output_sharding;
  if (!out && root) out = root->sharding;
  for (int k = 0; k < f->type->n_results; k++) {
    const Op *made = f->body->last->operands[k]->def; /* of xla.sdy.FuncResultSharding */
    if (made && made->kind == OP_SHARDING_CONSTRAINT)
      add_attr(m, &f->res_attrs[k], &f->n_res_attrs[k], "sdy.sharding", op_attr(made, "sharding"));
    Str text = hlo_sharding_text(im, out, k, f->type->n_results);
    if (text.n)
      add_attr(m, &f->res_attrs[k], &f->n_res_attrs[k], "mhlo.sharding", attr_string(m, text));
  }
}

static Err *add_aliases(HloImport *im, Func *f, const Parameter *p, int n, const HloShape *result) {
  const Hlo__Module *h = im->file->module;
  Module *m = im->m;
  for (size_t k = 0; h->input_output_alias && k < h->input_output_alias->n_entries; k++) {
    const Hlo__AliasEntry *a = h->input_output_alias->entries[k];
    int in =
        leaf_of(p, n, a->parameter_number, a->n_parameter_shape_index, a->parameter_shape_index);
    int out = hlo_leaf_at(result, (int)a->n_output_shape_index, a->output_shape_index);
    if (in < 0 || out < 0) return err_new(ERR_INVALID, "input_output_alias %zu names no array", k);
    add_attr(m, &f->arg_attrs[in], &f->n_arg_attrs[in], "tf.aliasing_output",
             attr_int(m, DT_I32, out));
  }
  for (size_t k = 0; h->buffer_donor && k < h->buffer_donor->n_entries; k++) {
    const Hlo__DonorEntry *d = h->buffer_donor->entries[k];
    int in =
        leaf_of(p, n, d->parameter_number, d->n_parameter_shape_index, d->parameter_shape_index);
    if (in < 0) return err_new(ERR_INVALID, "buffer_donor %zu names no array", k);
    add_attr(m, &f->arg_attrs[in], &f->n_arg_attrs[in], "jax.buffer_donor", attr_bool(m, true));
  }
  return NULL;
}

Err *hlo_entry_attrs(HloImport *im, Func *f, const Hlo__Computation *c) {
  int n = 0;
  const Hlo__Instruction *root = NULL;
  for (size_t k = 0; k < c->n_instructions; k++) {
    n += !strcmp(c->instructions[k]->opcode, "parameter");
    if (c->instructions[k]->id == c->root_id) root = c->instructions[k];
  }
  Parameter *p = ARENA_ARRAY(im->m->arena, Parameter, n + 1);
  TRY(find_parameters(im, c, p, n));
  add_shardings(im, f, p, n, root);
  HloShape *result;
  TRY(hlo_shape(im->m->arena, root->shape, &result));
  return add_aliases(im, f, p, n, result);
}
