/* Locations: the user's place in one line. JAX nests name(callsite(name(file range) at
 * callsite(...))): the callee is the innermost frame. The one shown is the innermost that is no
 * installed library's (a layer of torch or flax is not what the user wrote), else the innermost;
 * names on the way are the scopes, shown in parentheses. */
#include "ir/ir.h"

static bool of_library(Str file) {
  static const char *const folders[] = {"/site-packages/", "/dist-packages/", "/lib/python3"};
  for (int i = 0; i < COUNT_OF(folders); i++)
    if (memmem(file.p, file.n, folders[i], strlen(folders[i]))) return true;
  return false;
}

static const Loc *find_file(const Loc *l, bool libraries, Str *name, int depth) {
  if (!l || depth > IR_MAX_DEPTH) return NULL;
  switch (l->kind) {
  case LOC_FILE: return libraries || !of_library(l->name) ? l : NULL;
  case LOC_NAME:
    if (!name->n) *name = l->name;
    return find_file(l->child, libraries, name, depth + 1);
  case LOC_CALLSITE: {
    const Loc *f = find_file(l->child, libraries, name, depth + 1);
    return f ? f : find_file(l->caller, libraries, name, depth + 1);
  }
  case LOC_FUSED:
    for (int i = 0; i < l->n_parts; i++) {
      const Loc *f = find_file(l->parts[i], libraries, name, depth + 1);
      if (f) return f;
    }
    return NULL;
  case LOC_UNKNOWN: return NULL;
  }
  return NULL;
}

void loc_print(Buf *b, const Loc *l) {
  Str name = {0};
  const Loc *f = find_file(l, false, &name, 0);
  if (!f) f = find_file(l, true, &name, 0);
  if (f) buf_printf(b, "%.*s:%d", STR_ARG(f->name), f->line);
  if (name.n) buf_printf(b, f ? " (%.*s)" : "%.*s", STR_ARG(name));
}
