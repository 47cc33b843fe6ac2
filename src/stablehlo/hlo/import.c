/* An HLO module into the module of ir.h: computations become functions and regions, tuples their leaves. */
#include <stdlib.h>

#include "stablehlo/hlo/import_priv.h"

/* Instructions that may be made of those of the file, whose computations may be used often. */
#define LEAST_ROOM 100000
#define MOST_USES 64

/* ---- places in the user's program ------------------------------------------------------------ */

static const Loc *file_loc(Arena *a, Str file, int line, int column) {
  Loc *l = ARENA_NEW(a, Loc);
  *l = (Loc){.kind = LOC_FILE, .name = file, .line = line, .col = column};
  return l;
}

/* Is it PyTorch's own file, or weft's beneath it? Then who called it is the user's place, as JAX has it for its files. */
static bool is_framework(const char *file) {
  static const char *const parts[] = {"-packages/torch/", "-packages/torch_xla/", "/weft/torch/",
                                      "<frozen "};
  for (int i = 0; i < COUNT_OF(parts); i++)
    if (strstr(file, parts[i])) return true;
  return false;
}

static bool in_list(int32_t id, size_t n) { return id > 0 && (size_t)id <= n; }

/* A frame and those that called it, at most HLO_MAX_DEPTH of them. */
static const Loc *frame_loc(HloImport *im, int32_t id, int depth) {
  const Hlo__StackFrameIndex *x = im->file->module->stack_frame_index;
  if (!x || depth > HLO_MAX_DEPTH || !in_list(id, x->n_stack_frames)) return NULL;
  int64_t key = id;
  const Loc *known = map_get(im->frames, hlo_key(&key));
  if (known) return known;
  const Hlo__StackFrame *f = x->stack_frames[id - 1];
  if (!in_list(f->file_location_id, x->n_file_locations)) return NULL;
  const Hlo__FileLocation *at = x->file_locations[f->file_location_id - 1];
  if (!in_list(at->file_name_id, x->n_file_names)) return NULL;
  Arena *a = im->m->arena;
  const Loc *l = file_loc(a, str_from(x->file_names[at->file_name_id - 1]), at->line, at->column);
  if (in_list(at->function_name_id, x->n_function_names)) {
    Loc *named = ARENA_NEW(a, Loc);
    *named = (Loc){.kind = LOC_NAME,
                   .name = str_from(x->function_names[at->function_name_id - 1]),
                   .child = l};
    l = named;
  }
  int32_t parent =
      f->parent_frame_id - (x->stack_frames[0]->parent_frame_id == 1); /* of newer XLAs */
  const Loc *caller = parent < id ? frame_loc(im, parent, depth + 1) : NULL;
  if (caller && is_framework(x->file_names[at->file_name_id - 1])) {
    l = caller;
  } else if (caller) {
    Loc *site = ARENA_NEW(a, Loc);
    *site = (Loc){.kind = LOC_CALLSITE, .child = l, .caller = caller};
    l = site;
  }
  map_set(im->frames, hlo_key(&key), (void *)l);
  return l;
}

const Loc *hlo_loc(HloImport *im, const Hlo__Metadata *d) {
  if (!d) return NULL;
  const Loc *at = frame_loc(im, d->stack_frame_id, 0);
  Arena *a = im->m->arena;
  if (!at && *d->source_file)
    at = file_loc(a, str_from(d->source_file), d->source_line, d->source_column);
  if (!*d->op_name) return at;
  Loc *l = ARENA_NEW(a, Loc);
  *l = (Loc){.kind = LOC_NAME, .name = str_from(d->op_name), .child = at};
  return l;
}

/* ---- instructions ---------------------------------------------------------------------------- */

static Err *find_operands(HloOp *o) {
  const Hlo__Instruction *i = o->i;
  o->n_operands = (int)i->n_operand_ids;
  o->operand = ARENA_ARRAY(o->s->im->m->arena, HloLeaves, o->n_operands);
  for (int k = 0; k < o->n_operands; k++) {
    const HloLeaves *v = map_get(o->s->values, hlo_key(&i->operand_ids[k]));
    if (!v)
      return err_new(ERR_INVALID, "operand %d is instruction %lld, which does not come before it",
                     k, (long long)i->operand_ids[k]);
    o->operand[k] = *v;
    for (int n = 0; n < v->n; n++) *vec_push(&o->in) = v->v[n];
  }
  return NULL;
}

/* The parameter's name, as JAX writes it; what PyTorch/XLA has on the device is called "tensor/NAME/xla__device_data" where
 * python/weft/torch/names.py named it. Empty: none. */
static Str parameter_name(HloImport *im, const Hlo__Metadata *d) {
  static const char before[] = "tensor/", after[] = "/xla__device_data";
  if (!d || !*d->op_name) return (Str){0};
  if (strcmp(d->op_type, "xla__device_data") != 0)
    return arena_str(im->m->arena, str_from(d->op_name));
  size_t n = strlen(d->op_name), edge = sizeof before + sizeof after - 2;
  if (n <= edge || strncmp(d->op_name, before, sizeof before - 1) ||
      strcmp(d->op_name + n - (sizeof after - 1), after) != 0)
    return (Str){0};
  return arena_str(im->m->arena, (Str){d->op_name + sizeof before - 1, n - edge});
}

static Err *read_parameter(HloOp *o) {
  int64_t n = o->i->parameter_number;
  if (n < 0 || n >= o->s->n_in)
    return err_new(ERR_INVALID, "there is no parameter %lld", (long long)n);
  o->result = o->s->in[n];
  Value *v = o->result.n == 1 ? o->result.v[0] : NULL;
  if (v && !v->def && !v->region->parent) v->name = parameter_name(o->s->im, o->i->metadata);
  return o->result.n == o->out.n
             ? NULL
             : err_new(ERR_INVALID, "parameter %lld has another shape where it is given",
                       (long long)n);
}

static Err *read_tuple_element(HloOp *o) {
  const HloShape *t = o->n_operands == 1 ? o->operand[0].shape : NULL;
  int64_t k = o->i->tuple_index;
  if (!t || t->element_type != HLO_TUPLE || k < 0 || k >= t->n_elems)
    return err_new(ERR_INVALID, "there is no element %lld of its operand", (long long)k);
  int at = hlo_leaf_offset(t, k), n = hlo_leaves(t->elems[k]);
  if (at + n > o->operand[0].n || n != o->out.n)
    return err_new(ERR_INVALID, "element %lld is of another shape", (long long)k);
  hlo_is(o, n, o->operand[0].v + at);
  return NULL;
}

static Err *read_constant(HloOp *o) {
  if (!o->i->literal || o->out.n != 1) return err_new(ERR_INVALID, "a constant without a value");
  HloShape *own = NULL;
  if (o->i->literal->shape.len) TRY(hlo_shape(o->s->im->m->arena, o->i->literal->shape, &own));
  HloShape as = *o->shape; /* the literal's layout may be another than the instruction's */
  if (own && own->rank == as.rank) as.minor_to_major = own->minor_to_major;
  Tensor *t;
  TRY(hlo_literal_tensor(o->i->literal, &as, &t));
  hlo_put(o, "value", attr_tensor(o->s->im->m, t, NULL));
  return hlo_emit(o, OP_CONSTANT);
}

static Err *read_instruction(HloOp *o) {
  Str name = str_from(o->i->opcode);
  if (str_is(name, "parameter")) return read_parameter(o);
  if (str_is(name, "get-tuple-element")) return read_tuple_element(o);
  if (str_is(name, "constant")) return read_constant(o);
  if (str_is(name, "tuple")) return hlo_is(o, o->in.n, o->in.v), NULL;
  const HloOpcode *op = hlo_opcode(name);
  if (!op)
    return err_new(ERR_UNIMPLEMENTED, "HLO operation '%s' is not one that weft reads",
                   o->i->opcode);
  return op->read(o, op->kind);
}

/* XLA lets any operation have a sharding; StableHLO says it by a custom call after it. */
static void add_sharding(HloOp *o) {
  const Hlo__Instruction *i = o->i;
  bool own = !strcmp(i->opcode, "parameter") || !strcmp(i->opcode, "tuple") ||
             !strcmp(i->opcode, "get-tuple-element") || !strcmp(i->opcode, "custom-call");
  if (!i->sharding || own || o->result.n != 1 || o->result.v[0]->type->kind != TY_TENSOR) return;
  Str text = hlo_sharding_text(o->s->im, i->sharding, 0, 1);
  if (!text.n || !o->result.v[0]->type->rank) return;
  o->n_attrs = 0;
  hlo_put_str(o, "call_target_name", STR("Sharding"));
  hlo_put_str(o, "mhlo.sharding", text);
  Value *out;
  Err *e = hlo_emit_one(o, OP_CUSTOM_CALL, 1, o->result.v, o->result.v[0]->type, &out);
  if (e) err_free(e);
  else hlo_is(o, 1, &out);
}

static Err *instruction(HloScope *s, const Hlo__Instruction *i, HloLeaves *out) {
  HloOp o = {.s = s, .i = i, .loc = hlo_loc(s->im, i->metadata)};
  HloShape *shape = NULL;
  Err *e = hlo_shape(s->im->m->arena, i->shape, &shape);
  o.shape = shape;
  if (!e) hlo_types(s->im->m, shape, &o.out);
  if (!e) e = find_operands(&o);
  if (!e) e = read_instruction(&o);
  if (!e && o.result.n != o.out.n)
    e = err_new(ERR_INVALID, "gives %d arrays, its shape has %d", o.result.n, o.out.n);
  if (!e) {
    add_sharding(&o);
    *out = o.result;
    out->shape = shape;
  }
  vec_free(&o.in);
  vec_free(&o.out);
  return err_place(e, "%.*s: %s in computation %s", STR_ARG(s->im->m->file), i->name, s->c->name);
}

Err *hlo_computation(HloImport *im, Region *r, const Hlo__Computation *c, int n_in,
                     const HloLeaves *in, HloLeaves *root) {
  if (im->depth >= HLO_MAX_DEPTH)
    return err_new(ERR_INVALID, "computations call each other more than %d deep", HLO_MAX_DEPTH);
  im->depth++;
  HloScope s = {im, r, c, map_new(), in, n_in};
  Err *e = NULL;
  im->left -= (int64_t)c->n_instructions;
  if (im->left < 0) e = err_new(ERR_INVALID, "computations are used again too often");
  for (size_t k = 0; k < c->n_instructions && !e; k++) {
    HloLeaves *v = ARENA_NEW(im->m->arena, HloLeaves);
    e = instruction(&s, c->instructions[k], v);
    if (!e) map_set(s.values, hlo_key(&c->instructions[k]->id), v);
  }
  const HloLeaves *last = e ? NULL : map_get(s.values, hlo_key(&c->root_id));
  if (last) *root = *last;
  else if (!e) e = err_new(ERR_INVALID, "computation %s has no root", c->name);
  map_free(s.values);
  im->depth--;
  return e;
}

/* ---- computations that are called ------------------------------------------------------------ */

Err *hlo_called(HloOp *o, int index, const Hlo__Computation **out) {
  if ((size_t)index >= o->i->n_called_computation_ids)
    return err_new(ERR_INVALID, "%s names %zu computations, too few", o->i->opcode,
                   o->i->n_called_computation_ids);
  *out = map_get(o->s->im->computations, hlo_key(&o->i->called_computation_ids[index]));
  return *out ? NULL
              : err_new(ERR_INVALID, "%s calls computation %lld, which is not there", o->i->opcode,
                        (long long)o->i->called_computation_ids[index]);
}

static int parameter_count(const Hlo__Computation *c) {
  int n = 0;
  for (size_t k = 0; k < c->n_instructions; k++)
    n += !strcmp(c->instructions[k]->opcode, "parameter");
  return n;
}

/* Shapes of the parameters, by number. */
static Err *parameters(HloImport *im, const Hlo__Computation *c, int *n, HloLeaves **out) {
  Arena *a = im->m->arena;
  *n = parameter_count(c);
  *out = ARENA_ARRAY(a, HloLeaves, *n);
  for (size_t k = 0; k < c->n_instructions; k++) {
    const Hlo__Instruction *i = c->instructions[k];
    if (strcmp(i->opcode, "parameter")) continue;
    if (i->parameter_number < 0 || i->parameter_number >= *n || (*out)[i->parameter_number].shape)
      return err_new(ERR_INVALID, "computation %s has two parameters %lld, or lacks one before it",
                     c->name, (long long)i->parameter_number);
    HloShape *s;
    TRY(hlo_shape(a, i->shape, &s));
    (*out)[i->parameter_number].shape = s;
  }
  return NULL;
}

static void types_of(Module *m, int n, const HloLeaves *p, HloTypes *out) {
  for (int i = 0; i < n; i++) hlo_types(m, p[i].shape, out);
}

/* The parameters are the region's arguments, in order. */
static void bind_arguments(int n, HloLeaves *p, Value **args) {
  for (int i = 0; i < n; i++) {
    p[i].n = hlo_leaves(p[i].shape);
    p[i].v = args;
    args += p[i].n;
  }
}

void hlo_return(HloImport *im, Region *r, const HloLeaves *v, const Loc *loc) {
  Op *op = op_new(im->m, OP_RETURN, v->n, v->v, 0, NULL, 0, NULL, 0, NULL);
  op->loc = loc;
  op_append(r, op);
}

static Err *fill(HloImport *im, Region *r, const Hlo__Computation *c, int n, HloLeaves *p,
                 const Loc *loc) {
  HloLeaves root;
  TRY(hlo_computation(im, r, c, n, p, &root));
  hlo_return(im, r, &root, loc);
  return NULL;
}

Err *hlo_region(HloOp *o, const Hlo__Computation *c) {
  HloImport *im = o->s->im;
  if (o->n_regions == HLO_MAX_DEPTH) return err_new(ERR_INVALID, "too many computations");
  int n;
  HloLeaves *p;
  TRY(parameters(im, c, &n, &p));
  HloTypes types = {0};
  types_of(im->m, n, p, &types);
  Region *r = region_new(im->m, types.n, types.v);
  vec_free(&types);
  r->func = o->s->region->func;
  bind_arguments(n, p, r->args);
  o->regions[o->n_regions++] = r;
  return fill(im, r, c, n, p, o->loc);
}

Err *hlo_branch(HloOp *o, const Hlo__Computation *c, int n_in, const HloLeaves *in) {
  HloImport *im = o->s->im;
  if (o->n_regions == HLO_MAX_DEPTH)
    return err_new(ERR_UNIMPLEMENTED, "more than %d branches", HLO_MAX_DEPTH);
  Region *r = region_new(im->m, 0, NULL);
  r->func = o->s->region->func;
  o->regions[o->n_regions++] = r;
  HloLeaves *p = arena_dup(im->m->arena, in, sizeof *in * (size_t)n_in);
  return fill(im, r, c, n_in, p, o->loc);
}

static Str own_name(HloImport *im, Str name) {
  Str own = arena_str(im->m->arena, name.n ? name : STR("computation"));
  for (int k = 1; map_get(im->names, own); k++)
    own = arena_printf(im->m->arena, "%.*s_%d", STR_ARG(name), k);
  map_set(im->names, own, im);
  return own;
}

Err *hlo_func(HloImport *im, const Hlo__Computation *c, Str name, bool is_private, Func **out) {
  int n;
  HloLeaves *p;
  TRY(parameters(im, c, &n, &p));
  Module *m = im->m;
  HloTypes types = {0};
  types_of(m, n, p, &types);
  Func *f = func_new(m, own_name(im, name), types.n, types.v, 0, NULL);
  f->is_private = is_private;
  bind_arguments(n, p, f->body->args);
  HloLeaves root = {0};
  Err *e = hlo_computation(im, f->body, c, n, p, &root);
  if (!e) {
    Type **results = ARENA_ARRAY(m->arena, Type *, root.n);
    for (int i = 0; i < root.n; i++) results[i] = root.v[i]->type;
    f->type = type_func(m, types.n, types.v, root.n, results);
    f->res_attrs = ARENA_ARRAY(m->arena, NamedAttr *, root.n);
    f->n_res_attrs = ARENA_ARRAY(m->arena, int, root.n);
    hlo_return(im, f->body, &root, NULL);
  }
  vec_free(&types);
  *out = f;
  return e;
}

/* ---- the module ------------------------------------------------------------------------------ */

static const Hlo__Computation *entry_of(const HloImport *im) {
  const Hlo__Module *h = im->file->module;
  const Hlo__Computation *c = map_get(im->computations, hlo_key(&h->entry_computation_id));
  for (size_t i = 0; !c && i < h->n_computations; i++)
    if (!strcmp(h->computations[i]->name, h->entry_computation_name)) c = h->computations[i];
  return c;
}

/* How many devices it is for: as the file says, else as many as it names. */
static void put_counts(const HloImport *im) {
  Module *m = im->m;
  int64_t partitions = im->file->partitions, replicas = im->file->replicas;
  if (!partitions && !replicas && im->devices > 1)
    *(im->by_channel ? &partitions : &replicas) = im->devices;
  NamedAttr all[2];
  int n = 0;
  if (partitions)
    all[n++] = (NamedAttr){STR("mhlo.num_partitions"), attr_int(m, DT_I32, partitions)};
  if (replicas) all[n++] = (NamedAttr){STR("mhlo.num_replicas"), attr_int(m, DT_I32, replicas)};
  m->attrs = n ? arena_dup(m->arena, all, sizeof *all * (size_t)n) : NULL;
  m->n_attrs = n;
}

Err *hlo_import(Module *m, const HloFile *file) {
  HloImport im = {m,         file,      map_new(), map_new(),
                  map_new(), map_new(), map_new(), .left = LEAST_ROOM};
  const Hlo__Module *h = file->module;
  for (size_t i = 0; i < h->n_computations; i++)
    im.left += (int64_t)h->computations[i]->n_instructions * MOST_USES;
  m->name = arena_str(m->arena, str_from(h->name));
  for (size_t i = 0; i < h->n_computations; i++)
    map_set(im.computations, hlo_key(&h->computations[i]->id), h->computations[i]);
  hlo_meshes(&im);
  const Hlo__Computation *entry = entry_of(&im);
  Func *main = NULL;
  Err *e = entry ? hlo_func(&im, entry, STR("main"), false, &main)
                 : err_new(ERR_INVALID, "module %s has no entry computation", h->name);
  if (!e) e = hlo_entry_attrs(&im, main, entry);
  if (!e) put_counts(&im);
  map_free(im.computations);
  map_free(im.funcs);
  map_free(im.names);
  map_free(im.frames);
  map_free(im.manual);
  return e;
}
