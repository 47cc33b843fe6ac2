/* HLO text, as XLA prints it: a header, computations, instructions. Names become numbers, as in the proto. */
#include <ctype.h>
#include <stdlib.h>

#include "stablehlo/hlo/text.h"

bool hlo_is_text(Str bytes) {
  HloText t = {.p = bytes.p, .end = bytes.p + bytes.n};
  return hlo_take(&t, "HloModule") && t.p < t.end && (isspace((unsigned char)*t.p) || *t.p == ',');
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* %a, or f32[2] %a: the shape says nothing new. */
static Err *operand(HloText *t, int64_t *out) {
  Str name;
  ProtobufCBinaryData shape;
  hlo_skip(t);
  const char *at = t->p;
  bool shaped = hlo_at(t, "(");
  if (!shaped) {
    TRY(hlo_word(t, &name));
    shaped = *at != '%' && t->p < t->end && *t->p == '[';
  }
  if (shaped) {
    t->p = at;
    TRY(hlo_text_shape(t, &shape));
    hlo_skip(t);
    at = t->p;
    TRY(hlo_word(t, &name));
  }
  const Hlo__Instruction *i = map_get(t->instructions, name);
  if (i) return *out = i->id, NULL;
  t->p = at;
  return hlo_text_err(t, "there is no instruction '%.*s' before this one", STR_ARG(name));
}

static Err *operands(HloText *t, Hlo__Instruction *i) {
  VEC(int64_t) v = {0};
  Err *e = NULL;
  while (!e && !hlo_take(t, ")")) {
    if (v.n) e = hlo_want(t, ",");
    if (!e) e = operand(t, vec_push(&v));
  }
  i->n_operand_ids = (size_t)v.n;
  i->operand_ids = arena_dup(t->a, v.v, sizeof *v.v * (size_t)v.n);
  vec_free(&v);
  return e;
}

static Err *in_parentheses(HloText *t, Hlo__Instruction *i) {
  TRY(hlo_want(t, "("));
  if (!strcmp(i->opcode, "parameter")) {
    TRY(hlo_int(t, &i->parameter_number));
    return hlo_want(t, ")");
  }
  if (strcmp(i->opcode, "constant")) return operands(t, i);
  TRY(hlo_text_literal(t, i->shape, &i->literal));
  return hlo_want(t, ")");
}

static Err *instruction_attrs(HloText *t, Hlo__Instruction *i) {
  while (hlo_take(t, ",")) {
    Str name;
    TRY(hlo_word(t, &name));
    TRY(hlo_want(t, "="));
    TRY(hlo_text_attr(t, i, name));
  }
  return NULL;
}

/* [ROOT] %name = f32[2] add(%a, %b), name=value, ... */
static Err *instruction(HloText *t, Hlo__Computation *c, Hlo__Instruction **out) {
  Hlo__Instruction *i = *out = HLO_NEW(t, instruction);
  bool root = hlo_take(t, "ROOT ");
  Str name, opcode;
  TRY(hlo_word(t, &name));
  i->name = hlo_cstr(t, name);
  i->id = ++t->next_id;
  if (root) c->root_id = i->id;
  TRY(hlo_want(t, "="));
  TRY(hlo_text_shape(t, &i->shape));
  TRY(hlo_word(t, &opcode));
  i->opcode = hlo_cstr(t, opcode);
  TRY(in_parentheses(t, i));
  TRY(instruction_attrs(t, i));
  if (map_get(t->instructions, name))
    return hlo_text_err(t, "two instructions '%.*s'", STR_ARG(name));
  map_set(t->instructions, name, i);
  return NULL;
}

/* ---- computations ---------------------------------------------------------------------------- */

static Err *body(HloText *t, Hlo__Computation *c) {
  VEC(Hlo__Instruction *) v = {0};
  t->instructions = map_new();
  Err *e = NULL;
  while (!e && !hlo_take(t, "}")) e = instruction(t, c, vec_push(&v));
  if (!e && !v.n) e = hlo_text_err(t, "computation %s is empty", c->name);
  if (!e && !c->root_id) c->root_id = v.v[v.n - 1]->id;
  c->n_instructions = (size_t)v.n;
  c->instructions = arena_dup(t->a, v.v, sizeof *v.v * (size_t)v.n);
  vec_free(&v);
  map_free(t->instructions);
  return e;
}

/* [ENTRY] %name (a: f32[2]) -> f32[2] { ... }, execution_thread="main" */
static Err *computation(HloText *t, Hlo__Computation **out) {
  bool entry = hlo_take(t, "ENTRY ");
  Str name, rest;
  TRY(hlo_word(t, &name));
  Hlo__Computation *c = *out = hlo_computation_named(t, name);
  if (c->n_instructions) return hlo_text_err(t, "two computations '%.*s'", STR_ARG(name));
  if (entry) t->out->module->entry_computation_id = c->id;
  if (hlo_at(t, "(")) TRY(hlo_nested(t, '(', &rest));
  if (hlo_take(t, "->")) {
    ProtobufCBinaryData shape;
    TRY(hlo_text_shape(t, &shape));
  }
  TRY(hlo_want(t, "{"));
  TRY(body(t, c));
  Hlo__Instruction ignored = HLO__INSTRUCTION__INIT;
  return instruction_attrs(t, &ignored);
}

/* ---- the tables of places -------------------------------------------------------------------- */

/* Rows "1 VALUE", numbered from 1. */
static Err *rows(HloText *t, Err *(*read)(HloText *t, void **out), size_t *n, void ***out) {
  VEC(void *) v = {0};
  Err *e = NULL;
  hlo_skip(t);
  while (!e && t->p < t->end && isdigit((unsigned char)*t->p)) {
    int64_t number;
    e = hlo_int(t, &number);
    if (!e && number != v.n + 1) e = hlo_text_err(t, "row %d is expected", v.n + 1);
    if (!e) e = read(t, vec_push(&v));
    hlo_skip(t);
  }
  *n = (size_t)v.n;
  *out = arena_dup(t->a, v.v, sizeof *v.v * (size_t)v.n);
  vec_free(&v);
  return e;
}

static Err *string_row(HloText *t, void **out) {
  Str s;
  TRY(hlo_string(t, &s));
  *out = hlo_cstr(t, s);
  return NULL;
}

/* {name=1 name=2}: the number of each name that is wanted. */
static Err *fields(HloText *t, int n, const char *const *names, int32_t *const *out) {
  TRY(hlo_want(t, "{"));
  while (!hlo_take(t, "}")) {
    Str name;
    int64_t v;
    TRY(hlo_word(t, &name));
    TRY(hlo_want(t, "="));
    TRY(hlo_int(t, &v));
    for (int k = 0; k < n; k++)
      if (str_is(name, names[k])) *out[k] = (int32_t)v;
  }
  return NULL;
}

static Err *location_row(HloText *t, void **out) {
  Hlo__FileLocation *l = *out = HLO_NEW(t, file_location);
  static const char *const names[] = {"file_name_id", "function_name_id", "line", "column"};
  int32_t *const to[] = {&l->file_name_id, &l->function_name_id, &l->line, &l->column};
  return fields(t, COUNT_OF(names), names, to);
}

static Err *frame_row(HloText *t, void **out) {
  Hlo__StackFrame *f = *out = HLO_NEW(t, stack_frame);
  static const char *const names[] = {"file_location_id", "parent_frame_id"};
  int32_t *const to[] = {&f->file_location_id, &f->parent_frame_id};
  return fields(t, COUNT_OF(names), names, to);
}

/* true: there was a table. */
static Err *table(HloText *t, bool *found) {
  Hlo__StackFrameIndex *x = t->out->module->stack_frame_index;
  *found = true;
  if (hlo_take(t, "FileNames\n"))
    return rows(t, string_row, &x->n_file_names, (void ***)&x->file_names);
  if (hlo_take(t, "FunctionNames\n"))
    return rows(t, string_row, &x->n_function_names, (void ***)&x->function_names);
  if (hlo_take(t, "FileLocations\n"))
    return rows(t, location_row, &x->n_file_locations, (void ***)&x->file_locations);
  if (hlo_take(t, "StackFrames\n"))
    return rows(t, frame_row, &x->n_stack_frames, (void ***)&x->stack_frames);
  *found = false;
  return NULL;
}

/* ---- the module ------------------------------------------------------------------------------ */

static Err *header_attr(HloText *t, Str name) {
  Hlo__Module *m = t->out->module;
  if (str_is(name, "input_output_alias")) return hlo_text_alias(t, &m->input_output_alias);
  if (str_is(name, "buffer_donor")) return hlo_text_donor(t, &m->buffer_donor);
  if (str_is(name, "frontend_attributes")) return hlo_text_frontend(t, &m->frontend_attributes);
  if (str_is(name, "num_partitions")) return hlo_int(t, &t->out->partitions);
  if (str_is(name, "replica_count")) return hlo_int(t, &t->out->replicas);
  Hlo__Instruction ignored = HLO__INSTRUCTION__INIT;
  return hlo_text_attr(t, &ignored, STR("")); /* skipped */
}

static Err *header(HloText *t) {
  Str name;
  TRY(hlo_want(t, "HloModule"));
  TRY(hlo_word(t, &name));
  t->out->module->name = hlo_cstr(t, name);
  while (hlo_take(t, ",")) {
    TRY(hlo_word(t, &name));
    TRY(hlo_want(t, "="));
    TRY(header_attr(t, name));
  }
  for (bool found = true; found;) TRY(table(t, &found));
  return NULL;
}

static Err *module(HloText *t) {
  VEC(Hlo__Computation *) v = {0};
  Err *e = header(t);
  for (hlo_skip(t); !e && t->p < t->end; hlo_skip(t)) e = computation(t, vec_push(&v));
  Hlo__Module *m = t->out->module;
  m->n_computations = (size_t)v.n;
  m->computations = arena_dup(t->a, v.v, sizeof *v.v * (size_t)v.n);
  if (!e && !m->entry_computation_id && v.n) m->entry_computation_id = v.v[v.n - 1]->id;
  vec_free(&v);
  return e;
}

Err *hlo_read_text(Arena *a, const char *file, Str text, HloFile *out) {
  HloText t = {
      .a = a, .file = file, .begin = text.p, .p = text.p, .end = text.p + text.n, .out = out};
  *out = (HloFile){.module = HLO_NEW(&t, module)};
  out->module->stack_frame_index = HLO_NEW(&t, stack_frame_index);
  t.computations = map_new();
  Err *e = module(&t);
  map_free(t.computations);
  return e;
}
