/* Reader of MLIR bytecode, versions 0 to 6. The file is a list of sections; strings and tables come
 * last, so the section headers are scanned first and the tables read before the operations. */
#include <stdlib.h>

#include "stablehlo/bytecode_priv.h"
#include "stablehlo/stablehlo.h"

#define NEWEST_BYTECODE 6

/* ---- sections ---- */

static const char *const section_names[S_COUNT] = {
    "strings",   "dialects",         "attributes",      "attribute offsets", "operations",
    "resources", "resource offsets", "dialect version", "properties"};

Err *bc_section(const Reader *r, Cur *c, int *id, Cur *body) {
  const uint8_t *at = c->p;
  uint8_t b = cur_byte(c);
  uint64_t length = cur_varint(c);
  *id = b & 0x7F;
  if (b & 0x80) {
    uint64_t align = cur_varint(c);
    if (c->bad || !align || (align & (align - 1)) || align > 1 << 20)
      return bc_err(r, at, "alignment of a section");
    while (!c->bad && ((uint64_t)(c->p - (const uint8_t *)r->bytes.p) & (align - 1)))
      if (cur_byte(c) != 0xCB) return bc_err(r, c->p, "padding of a section");
  }
  Str s = cur_bytes(c, length);
  TRY(bc_check(r, c, "section header"));
  if (*id >= S_COUNT) return bc_err(r, at, "section %d", *id);
  *body = (Cur){(const uint8_t *)s.p, (const uint8_t *)s.p + s.n, NULL};
  return NULL;
}

static Err *read_strings(Reader *r, Cur c) {
  int n = cur_count(&c, 1);
  r->strings = ARENA_ARRAY(r->m->arena, Str, n);
  uint64_t total = 0;
  for (int i = n - 1; i >= 0; i--) {
    uint64_t len = cur_varint(&c);
    if (len == 0 || len > r->bytes.n) return bc_err(r, c.p, "length of a string");
    r->strings[i].n = len;
    total += len;
  }
  if (c.bad || total != cur_left(&c)) return bc_err(r, c.p, "lengths of the strings do not add up");
  for (int i = 0; i < n; i++) {
    Str s = cur_bytes(&c, r->strings[i].n);
    r->strings[i] =
        arena_str(r->m->arena, (Str){s.p, s.n - 1}); /* the input may be freed before the module */
  }
  r->n_strings = n;
  return NULL;
}

static DialectId dialect_id(Str name) {
  static const struct {
    const char *name;
    DialectId id;
  } known[] = {
      {"builtin", D_BUILTIN}, {"vhlo", D_VHLO}, {"sdy", D_SDY},  {"stablehlo", D_STABLEHLO},
      {"chlo", D_CHLO},       {"func", D_FUNC}, {"mhlo", D_MHLO}};
  for (int i = 0; i < COUNT_OF(known); i++)
    if (str_is(name, known[i].name)) return known[i].id;
  return D_OTHER;
}

static Err *read_dialects(Reader *r, Cur c) {
  int n = cur_count(&c, 1);
  r->dialects = ARENA_ARRAY(r->m->arena, Dialect, n);
  for (int i = 0; i < n; i++) {
    bool has_version = false;
    uint64_t name = cur_varint(&c);
    if (r->version >= 1) {
      has_version = name & 1;
      name >>= 1;
    }
    if (c.bad || name >= (uint64_t)r->n_strings) return bc_err(r, c.p, "name of a dialect");
    r->dialects[i] = (Dialect){r->strings[name], dialect_id(r->strings[name])};
    if (has_version) {
      int id;
      Cur ignored;
      TRY(bc_section(r, &c, &id, &ignored));
      if (id != S_VERSION) return bc_err(r, c.p, "section %d in place of a dialect's version", id);
    }
  }
  r->n_dialects = n;
  if (r->version >= 4) (void)cur_varint(&c); /* the total of what follows; a hint */
  r->op_names = ARENA_ARRAY(r->m->arena, OpName, cur_left(&c));
  while (!c.bad && cur_left(&c)) {
    uint64_t dialect = cur_varint(&c);
    int k = cur_count(&c, 1);
    if (c.bad || dialect >= (uint64_t)n) return bc_err(r, c.p, "dialect of operation names");
    for (int i = 0; i < k; i++) {
      bool registered = true;
      uint64_t name = r->version >= 5 ? cur_flag(&c, &registered) : cur_varint(&c);
      if (c.bad || name >= (uint64_t)r->n_strings) return bc_err(r, c.p, "name of an operation");
      r->op_names[r->n_op_names++] =
          (OpName){.name = r->strings[name], .dialect = (int)dialect, .registered = registered};
    }
  }
  return bc_check(r, &c, "dialects");
}

/* Values of the resource section: only blobs can be referred to. */
static Err *read_resource_entries(Reader *r, Cur *offsets, Cur *data, bool keep) {
  int k = cur_count(offsets, 3);
  for (int i = 0; i < k; i++) {
    Str key = bc_string(r, offsets);
    Str value = cur_bytes(data, cur_varint(offsets));
    uint8_t kind = cur_byte(offsets);
    TRY(bc_check(r, offsets, "resources"));
    TRY(bc_check(r, data, "resource data"));
    Resource res = {.key = key};
    if (kind == 0 && value.n) {
      Cur v = {(const uint8_t *)value.p, (const uint8_t *)value.p + value.n, NULL};
      uint64_t align = cur_varint(&v), size = cur_varint(&v);
      if (size > cur_left(&v) || !align || cur_left(&v) - size >= align)
        return bc_err(r, v.p, "size of resource '%.*s'", STR_ARG(key));
      res.data = (Str){(const char *)v.end - size, size};
    }
    if (keep) r->resources[r->n_resources++] = res;
  }
  return NULL;
}

static Err *read_resources(Reader *r, Cur offsets, Cur data) {
  if (!offsets.p) return NULL;
  r->resources = ARENA_ARRAY(r->m->arena, Resource, cur_left(&offsets));
  int n_external = cur_count(&offsets, 2);
  for (int i = 0; i < n_external; i++) {
    (void)bc_string(r, &offsets);
    TRY(read_resource_entries(r, &offsets, &data, false));
  }
  while (!offsets.bad && cur_left(&offsets)) {
    uint64_t dialect = cur_varint(&offsets);
    if (dialect >= (uint64_t)r->n_dialects) return bc_err(r, offsets.p, "dialect of resources");
    TRY(read_resource_entries(r, &offsets, &data, true));
  }
  return bc_check(r, &offsets, "resources");
}

static Err *read_offsets(Reader *r, Cur c, Cur data) {
  r->n_attrs = cur_count(&c, 1);
  r->n_types = cur_count(&c, 1);
  r->attrs = ARENA_ARRAY(r->m->arena, Entry, r->n_attrs);
  r->types = ARENA_ARRAY(r->m->arena, TypeEntry, r->n_types);
  for (int pass = 0; pass < 2; pass++) {
    int total = pass ? r->n_types : r->n_attrs;
    for (int i = 0; i < total;) {
      uint64_t dialect = cur_varint(&c);
      int k = cur_count(&c, 1);
      TRY(bc_check(r, &c, "attribute offsets"));
      if (dialect >= (uint64_t)r->n_dialects || k > total - i)
        return bc_err(r, c.p, "group of attributes or types");
      for (int j = 0; j < k; j++, i++) {
        bool custom;
        uint64_t size = cur_flag(&c, &custom);
        Str s = cur_bytes(&data, size);
        if (data.bad) return bc_err(r, c.p, "size of an attribute or type");
        if (pass) r->types[i] = (TypeEntry){.data = s, .dialect = (int)dialect, .custom = custom};
        else r->attrs[i] = (Entry){.data = s, .dialect = (int)dialect, .custom = custom};
      }
    }
  }
  return bc_check(r, &c, "attribute offsets");
}

static Err *read_props(Reader *r, Cur c) {
  if (!c.p) return NULL;
  r->n_props = cur_count(&c, 1);
  r->props = ARENA_ARRAY(r->m->arena, Str, r->n_props);
  for (int i = 0; i < r->n_props; i++) r->props[i] = cur_bytes(&c, cur_varint(&c));
  return bc_check(r, &c, "properties");
}

/* ---- the file ---- */

static Err *read_file(Reader *r) {
  Cur c = {(const uint8_t *)r->bytes.p, (const uint8_t *)r->bytes.p + r->bytes.n, NULL};
  static const uint8_t magic[4] = {0x4D, 0x4C, 0xEF, 0x52};
  if (r->bytes.n < 4 || memcmp(c.p, magic, 4))
    return bc_err(r, c.p, "not MLIR bytecode: the magic number is missing");
  c.p += 4;
  uint64_t version = cur_varint(&c);
  TRY(bc_check(r, &c, "version"));
  if (version > NEWEST_BYTECODE)
    return bc_unimplemented(bc_err(r, c.p,
                                   "MLIR bytecode version %llu; the newest this reader knows is %d",
                                   (unsigned long long)version, NEWEST_BYTECODE));
  r->version = (int)version;
  const uint8_t *zero = cur_left(&c) ? memchr(c.p, 0, cur_left(&c)) : NULL;
  if (!zero) return bc_err(r, c.p, "the producer's name does not end");
  r->producer = (Str){(const char *)c.p, (size_t)(zero - c.p)};
  c.p = zero + 1;
  Cur sections[S_COUNT] = {0};
  while (cur_left(&c)) {
    int id;
    Cur body;
    const uint8_t *at = c.p;
    TRY(bc_section(r, &c, &id, &body));
    if (sections[id].p) return bc_err(r, at, "section '%s' twice", section_names[id]);
    sections[id] = body;
  }
  static const int needed[] = {S_STRINGS, S_DIALECTS, S_ATTRS, S_OFFSETS, S_IR};
  for (int i = 0; i < COUNT_OF(needed); i++)
    if (!sections[needed[i]].p)
      return bc_err(r, c.p, "section '%s' is missing", section_names[needed[i]]);
  TRY(read_strings(r, sections[S_STRINGS]));
  TRY(read_dialects(r, sections[S_DIALECTS]));
  TRY(read_resources(r, sections[S_RESOURCE_OFFSETS], sections[S_RESOURCES]));
  TRY(read_offsets(r, sections[S_OFFSETS], sections[S_ATTRS]));
  TRY(read_props(r, sections[S_PROPS]));
  return bc_read_ir(r, sections[S_IR]);
}

Err *stablehlo_read_bytecode(const char *file, Str bytes, Module **out) {
  Module *m = module_new();
  m->file = arena_str(m->arena, str_from(file ? file : ""));
  Loc *unknown = ARENA_NEW(m->arena, Loc);
  unknown->kind = LOC_UNKNOWN;
  Reader r = {.m = m, .file = file, .bytes = bytes, .unknown_loc = unknown};
  /* room in each stack, so that the base of one is never NULL */
  *vec_push(&r.vals) = NULL;
  *vec_push(&r.result_types) = NULL;
  *vec_push(&r.op_attrs) = (NamedAttr){0};
  *vec_push(&r.regions) = NULL;
  r.vals.n = r.result_types.n = r.op_attrs.n = r.regions.n = 0;
  Err *e = read_file(&r);
  vec_free(&r.vals);
  vec_free(&r.result_types);
  vec_free(&r.op_attrs);
  vec_free(&r.regions);
  if (e) {
    module_free(m);
    return e;
  }
  *out = m;
  return NULL;
}
