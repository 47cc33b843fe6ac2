/* The program `weft`. All it does is in libpjrt_weft.so, which carries the command in its table
 * (main.c): the engine with LLVM, oneDNN and BLAS is installed once. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pjrt/pjrt.h"

#ifndef WEFT_LIBRARY_FOLDER /* where the build installs it */
#define WEFT_LIBRARY_FOLDER "/usr/lib/weft"
#endif
#ifndef WEFT_LIBRARY_BELOW /* the same, below the folder that `bin` is in */
#define WEFT_LIBRARY_BELOW "lib/weft"
#endif
#define LIBRARY "libpjrt_weft.so"

/* Beside the program (a build, an archive), in the folder above (Python's package), where an
 * install that was moved has it, where it was installed. */
static bool find(char *path, size_t size) {
  static const char *const places[] = {"", "/..", "/../" WEFT_LIBRARY_BELOW, "/../lib"};
  char exe[4096];
  ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
  exe[n > 0 ? n : 0] = 0;
  char *slash = strrchr(exe, '/');
  if (slash) *slash = 0;
  for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
    snprintf(path, size, "%s%s/%s", exe, places[i], LIBRARY);
    if (!access(path, R_OK)) return true;
  }
  snprintf(path, size, "%s/%s", WEFT_LIBRARY_FOLDER, LIBRARY);
  return !access(path, R_OK);
}

int main(int argc, char **argv) {
  char path[8192];
  if (!find(path, sizeof path)) {
    fprintf(stderr, "weft: %s is neither beside this program nor in %s\n", LIBRARY,
            WEFT_LIBRARY_FOLDER);
    return 1;
  }
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  PJRT_GetApiFn get = library ? (PJRT_GetApiFn)dlsym(library, PJRT_ENTRY) : NULL;
  if (!get) {
    fprintf(stderr, "weft: cannot load %s: %s\n", path, dlerror());
    return 1;
  }
  const PJRT_Extension_Base *e = get()->extension_start;
  while (e && e->type != PJRT_EXTENSION_WEFT_COMMAND) e = e->next;
  if (e) return ((const WeftCommandExtension *)e)->run(argc, argv);
  fprintf(stderr, "weft: %s holds no command: it is of another version\n", path);
  return 1;
}
