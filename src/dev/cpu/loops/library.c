/* LLVM's library at rest. Loading it reads some 40 MB of it into the process, symbol tables, relocations
 * and the code that registers its options, nearly all of which is never looked at again: in a program of
 * one kernel that is a sixth of all memory. These pages are the file's; the process gives them back,
 * and what it does need comes again from the system's cache, 16 pages at a time: half a millisecond for
 * the first code that is generated. */
#include <llvm-c/Core.h>

#include "dev/cpu/loops/loops.h"

#ifdef __linux__
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

static bool holds(const struct dl_phdr_info *o, const ElfW(Phdr) * part, uintptr_t at) {
  uintptr_t from = o->dlpi_addr + part->p_vaddr;
  return part->p_type == PT_LOAD && at >= from && at < from + part->p_memsz;
}

/* What may be written has pages of the process's own: relocated pointers. It stays. */
static int give_back(struct dl_phdr_info *o, size_t size, void *at) {
  (void)size;
  bool here = false;
  for (int i = 0; i < o->dlpi_phnum; i++) here |= holds(o, &o->dlpi_phdr[i], (uintptr_t)at);
  for (int i = 0; here && i < o->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &o->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || part->p_flags & PF_W) continue;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = o->dlpi_addr + part->p_vaddr;
    uintptr_t end = (from + part->p_filesz) & ~(page - 1);
    from = (from + page - 1) & ~(page - 1);
    if (end > from) madvise((void *)from, end - from, MADV_DONTNEED);
  }
  return here;
}

void jit_library_rests(void) { dl_iterate_phdr(give_back, (void *)(uintptr_t)LLVMContextCreate); }
#else
void jit_library_rests(void) {}
#endif
