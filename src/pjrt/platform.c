/* What the plugin says of itself: its platform's name, the version of StableHLO that it takes, and the
 * device that it opens when nobody names one. JAX chooses lowering rules by the platform's name, and
 * libraries refuse names that they do not know. */
#include "pjrt/pjrt_priv.h"

#include <dlfcn.h>
#include <stdio.h>
#include <sys/stat.h>

/* Programs that load libtpu take this library for it. */
static bool is_libtpu(void) {
  const char *given = env_get("TPU_LIBRARY_PATH");
  Dl_info own;
  struct stat a, b;
  return given && dladdr((const void *)(uintptr_t)platform_name, &own) && own.dli_fname &&
         !stat(given, &a) && !stat(own.dli_fname, &b) && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

char *platform_name(size_t n_options, const PJRT_NamedValue *options) {
  static const char *const names[] = {"weft", "cpu", "tpu", "cuda", "rocm"};
  for (size_t i = 0; i < n_options; i++) {
    const PJRT_NamedValue *v = &options[i];
    bool named = str_is((Str){v->name, v->name_size}, "platform_name");
    if (named && v->type == PJRT_NamedValue_STRING && v->value_size)
      return xstrndup(v->string_value, v->value_size);
  }
  int chosen = env_choice("WEFT_PLATFORM", "weft|cpu|tpu|cuda|rocm");
  if (chosen < 0 && is_libtpu()) return xstrdup("tpu");
  return xstrdup(names[MAX(chosen, 0)]);
}

const char *device_default(void) {
  if (!is_libtpu()) return "cpu";
  const char *type = env_get("TPU_ACCELERATOR_TYPE"); /* as Cloud TPU's machines have it */
  return type ? type : "tpu-v5e";
}

/* ---- StableHLO ---- */

/* Newest that the readers take; callers write programs for the smaller of theirs and this. Those that
 * would write for this even when theirs is older (jaxlib until 0.5) say theirs first. */
static int64_t newest[3] = {1, 20, 0};
static char limit[40]; /* as text; empty: none was said */

void stablehlo_limit(Str version) {
  int64_t v[3] = {0};
  char *text = xstrndup(version.p, version.n), *at = text;
  for (int i = 0; i < 3; i++) {
    v[i] = strtoll(at, &at, 10);
    if (*at == '.') at++;
  }
  free(text);
  bool older = false;
  for (int i = 0; i < 3 && !older && v[i] <= newest[i]; i++) older = v[i] < newest[i];
  if (!older || (v[0] <= 0 && v[1] <= 0)) return;
  memcpy(newest, v, sizeof v);
  snprintf(limit, sizeof limit, "%d.%d.%d", (int)v[0], (int)v[1], (int)v[2]);
}

const int64_t *stablehlo_newest(void) { return newest; }
const char *stablehlo_version(void) { return limit[0] ? limit : NULL; }
