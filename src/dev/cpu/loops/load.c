/* A loader for the relocatable objects that LLVM writes for us: all objects of a program go into
 * one mapping, code first, then read-only data; calls out of it go through a stub of their own,
 * because our library may be further away than a call reaches. It takes what x86-64 code generated
 * as small and position independent contains, and says what else it met.
 *
 *   [code of the objects][stubs: jmp *8(rip), address] page [data of the objects]
 */
#include "dev/cpu/loops/load.h"

#include <elf.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define STUB 16

typedef struct Object {
  const char *p; /* aligned to 8 */
  size_t n;
  const Elf64_Ehdr *head;
  const Elf64_Shdr *sections;
  const Elf64_Sym *symbols;
  int n_symbols;
  const char *names; /* of symbols, ended by NUL */
  size_t names_n;
  int64_t *at;   /* by section: offset in the image; -1: not loaded */
  int64_t *stub; /* by symbol: offset in the image, or -1 */
} Object;

struct Image {
  char *p;
  size_t code_n, n;
  Map *symbols;
};

static Err *damaged(const char *what) { return err_new(ERR_INTERNAL, "object file: %s", what); }

static bool inside(const Object *o, uint64_t at, uint64_t n) {
  return at <= o->n && n <= o->n - at;
}

/* Is the section part of the program? Unwind tables are not: generated code throws nothing. */
static bool loaded(const Object *o, int i, const char *names, uint64_t names_n) {
  const Elf64_Shdr *s = &o->sections[i];
  if (!(s->sh_flags & SHF_ALLOC) || s->sh_size == 0) return false;
  return s->sh_name >= names_n || strcmp(names + s->sh_name, ".eh_frame") != 0;
}

static Err *open_object(Str bytes, Object *o) {
  o->p = bytes.p, o->n = bytes.n;
  o->head = (const void *)o->p;
  if (o->n < sizeof *o->head || memcmp(o->head->e_ident, ELFMAG, SELFMAG) ||
      o->head->e_ident[EI_CLASS] != ELFCLASS64 || o->head->e_type != ET_REL)
    return damaged("no relocatable ELF file");
  if (o->head->e_machine != EM_X86_64)
    return err_new(ERR_UNIMPLEMENTED, "object file: machine %d", o->head->e_machine);
  int n = o->head->e_shnum;
  if (o->head->e_shoff % 8 || !inside(o, o->head->e_shoff, sizeof(Elf64_Shdr) * (uint64_t)n) ||
      o->head->e_shstrndx >= n)
    return damaged("section table");
  o->sections = (const void *)(o->p + o->head->e_shoff);
  for (int i = 0; i < n; i++) {
    const Elf64_Shdr *s = &o->sections[i];
    if (s->sh_type != SHT_NOBITS && !inside(o, s->sh_offset, s->sh_size))
      return damaged("a section outside");
    if (s->sh_type != SHT_SYMTAB) continue;
    if (s->sh_link >= (uint32_t)n || s->sh_offset % 8) return damaged("symbol table");
    o->symbols = (const void *)(o->p + s->sh_offset);
    o->n_symbols = (int)(s->sh_size / sizeof(Elf64_Sym));
  }
  for (int i = 0; i < n; i++)
    if (o->sections[i].sh_type == SHT_SYMTAB) {
      const Elf64_Shdr *s = &o->sections[o->sections[i].sh_link];
      o->names = o->p + s->sh_offset;
      o->names_n = s->sh_size;
      if (s->sh_type != SHT_STRTAB || !inside(o, s->sh_offset, s->sh_size) || !s->sh_size ||
          o->names[s->sh_size - 1])
        return damaged("symbol names");
    }
  return NULL;
}

static const char *symbol_name(const Object *o, const Elf64_Sym *s) {
  return s->st_name < o->names_n ? o->names + s->st_name : "";
}

/* Gives the sections with or without SHF_EXECINSTR their places from *end on. */
static void place(Object *o, bool code, int64_t *end) {
  const Elf64_Shdr *names = &o->sections[o->head->e_shstrndx];
  for (int i = 0; i < o->head->e_shnum; i++) {
    const Elf64_Shdr *s = &o->sections[i];
    if (((s->sh_flags & SHF_EXECINSTR) != 0) != code ||
        !loaded(o, i, o->p + names->sh_offset, names->sh_size))
      continue;
    int64_t align = s->sh_addralign > 1 && s->sh_addralign <= 4096 ? (int64_t)s->sh_addralign : 1;
    o->at[i] = (*end + align - 1) / align * align;
    *end = o->at[i] + (int64_t)s->sh_size;
  }
}

static void place_stubs(Object *o, int64_t *end) {
  for (int i = 1; i < o->n_symbols; i++) {
    o->stub[i] = -1;
    if (o->symbols[i].st_shndx != SHN_UNDEF || !*symbol_name(o, &o->symbols[i])) continue;
    o->stub[i] = (*end + STUB - 1) / STUB * STUB;
    *end = o->stub[i] + STUB;
  }
}

static Err *fill(Image *m, const Object *o, void *(*outside)(const char *name)) {
  for (int i = 0; i < o->head->e_shnum; i++)
    if (o->at[i] >= 0 && o->sections[i].sh_type != SHT_NOBITS)
      memcpy(m->p + o->at[i], o->p + o->sections[i].sh_offset, o->sections[i].sh_size);
  for (int i = 1; i < o->n_symbols; i++) {
    if (o->stub[i] < 0) continue;
    const char *name = symbol_name(o, &o->symbols[i]);
    void *fn = outside(name);
    if (!fn) return err_new(ERR_INTERNAL, "generated code calls '%s', which there is not", name);
    static const unsigned char jump[8] = {0xff, 0x25, 2, 0, 0, 0, 0xcc, 0xcc};
    memcpy(m->p + o->stub[i], jump, sizeof jump);
    memcpy(m->p + o->stub[i] + 8, &fn, sizeof fn);
  }
  return NULL;
}

/* The address of a symbol; `slot`: of memory that holds its address. */
static Err *address(const Image *m, const Object *o, uint64_t i, bool slot, int64_t *out) {
  if (i >= (uint64_t)o->n_symbols) return damaged("a relocation without symbol");
  const Elf64_Sym *s = &o->symbols[i];
  if (i && s->st_shndx == SHN_UNDEF) {
    *out = (int64_t)(intptr_t)m->p + o->stub[i] + (slot ? 8 : 0);
    return NULL;
  }
  if (slot || s->st_shndx >= o->head->e_shnum || o->at[s->st_shndx] < 0)
    return damaged("a symbol in a section that is not loaded");
  if (s->st_value > o->sections[s->st_shndx].sh_size)
    return damaged("a symbol outside its section");
  *out = (int64_t)(intptr_t)m->p + o->at[s->st_shndx] + (int64_t)s->st_value;
  return NULL;
}

static Err *relocate(const Image *m, const Object *o, const Elf64_Shdr *table) {
  const Elf64_Rela *r = (const void *)(o->p + table->sh_offset);
  const Elf64_Shdr *s = &o->sections[table->sh_info];
  for (uint64_t k = 0; k < table->sh_size / sizeof *r; k++, r++) {
    uint64_t type = ELF64_R_TYPE(r->r_info),
             size = type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
    if (r->r_offset > s->sh_size || size > s->sh_size - r->r_offset)
      return damaged("a relocation outside its section");
    bool slot =
        type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX;
    int64_t to;
    TRY(address(m, o, ELF64_R_SYM(r->r_info), slot, &to));
    char *at = m->p + o->at[table->sh_info] + r->r_offset;
    int64_t absolute = (int64_t)((uint64_t)to + (uint64_t)r->r_addend);
    int64_t relative = (int64_t)((uint64_t)absolute - (uint64_t)(uintptr_t)at);
    switch (type) {
    case R_X86_64_64: memcpy(at, &absolute, 8); break;
    case R_X86_64_PC64: memcpy(at, &relative, 8); break;
    case R_X86_64_PC32:
    case R_X86_64_PLT32:
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX:
      if (relative != (int32_t)relative) return damaged("a relocation that does not reach");
      memcpy(at, &(int32_t){(int32_t)relative}, 4);
      break;
    default: return err_new(ERR_UNIMPLEMENTED, "object file: relocation type %d", (int)type);
    }
  }
  return NULL;
}

static Err *link_objects(Image *m, Object *o, int n, void *(*outside)(const char *name)) {
  int64_t code = 0, page = sysconf(_SC_PAGESIZE);
  for (int i = 0; i < n; i++) {
    place(&o[i], true, &code);
    place_stubs(&o[i], &code);
  }
  int64_t end = code = (code + page - 1) / page * page;
  for (int i = 0; i < n; i++) place(&o[i], false, &end);
  m->code_n = (size_t)code;
  m->n = (size_t)((end + page - 1) / page * page);
  m->p = mmap(NULL, m->n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (m->p == MAP_FAILED) {
    m->p = NULL;
    return err_new(ERR_EXHAUSTED, "no memory for %zu bytes of code", m->n);
  }
  for (int i = 0; i < n; i++) TRY(fill(m, &o[i], outside));
  for (int i = 0; i < n; i++)
    for (int k = 0; k < o[i].head->e_shnum; k++) {
      const Elf64_Shdr *s = &o[i].sections[k];
      if (s->sh_type != SHT_RELA || s->sh_info >= o[i].head->e_shnum || o[i].at[s->sh_info] < 0)
        continue;
      if (s->sh_offset % 8) return damaged("relocations");
      TRY(relocate(m, &o[i], s));
    }
  if (mprotect(m->p, m->code_n, PROT_READ | PROT_EXEC) ||
      (m->n > m->code_n && mprotect(m->p + m->code_n, m->n - m->code_n, PROT_READ)))
    return err_hint(err_new(ERR_PRECONDITION, "this system does not let programs make code"),
                    "set WEFT_INTERPRET=1 to do without");
  for (int i = 0; i < n; i++)
    for (int k = 1; k < o[i].n_symbols; k++) {
      const Elf64_Sym *s = &o[i].symbols[k];
      if (ELF64_ST_BIND(s->st_info) != STB_GLOBAL || s->st_shndx == SHN_UNDEF) continue;
      int64_t at;
      TRY(address(m, &o[i], (uint64_t)k, false, &at));
      map_set(m->symbols, str_from(symbol_name(&o[i], s)), (void *)(intptr_t)at);
    }
  return NULL;
}

Err *image_load(const Str *objects, int n, void *(*outside)(const char *name), Image **out) {
  Image *m = xcalloc(1, sizeof *m);
  m->symbols = map_new();
  Object *o = xcalloc((size_t)n + 1, sizeof *o);
  Err *e = NULL;
  for (int i = 0; i < n && !e; i++) {
    e = open_object(objects[i], &o[i]);
    if (e) break;
    o[i].at = xmalloc(sizeof(int64_t) * ((size_t)o[i].head->e_shnum + 1));
    o[i].stub = xmalloc(sizeof(int64_t) * ((size_t)o[i].n_symbols + 1));
    for (int k = 0; k < o[i].head->e_shnum; k++) o[i].at[k] = -1;
  }
  if (!e) e = link_objects(m, o, n, outside);
  for (int i = 0; i < n; i++) free(o[i].at), free(o[i].stub);
  free(o);
  if (e) image_free(m);
  else *out = m;
  return e;
}

void *image_symbol(const Image *m, const char *name) { return map_get(m->symbols, str_from(name)); }

size_t image_bytes(const Image *m) { return m->n; }

void image_free(Image *m) {
  if (!m) return;
  if (m->p) munmap(m->p, m->n);
  map_free(m->symbols);
  free(m);
}
