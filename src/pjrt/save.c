/* WEFT_SAVE_PROGRAMS names a folder: every program that is compiled is written there as it came,
 * "0003-name.mlirbc", for the command line to read. The variable is looked at each time, so that a
 * program can set it when the one that it wants is about to be compiled. */
#include "pjrt/pjrt_priv.h"

#include <stdio.h>

void program_save(Str code, const char *name) {
  const char *folder = env_get("WEFT_SAVE_PROGRAMS");
  if (!folder) return;
  static int count;
  int number = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
  char clean[64] = {0};
  for (size_t i = 0; name[i] && i < sizeof clean - 1; i++)
    clean[i] = strchr("/\\ :", name[i]) ? '_' : name[i];
  bool text = !code.n || code.p[0] != 'M';
  char *path = xasprintf("%s/%04d-%s.%s", folder, number, clean, text ? "mlir" : "mlirbc");
  FILE *f = fopen(path, "wb");
  bool written = f && fwrite(code.p, 1, code.n, f) == code.n;
  if (f && fclose(f)) written = false;
  if (!written) env_complain("WEFT_SAVE_PROGRAMS", "cannot write %s", path);
  free(path);
}
