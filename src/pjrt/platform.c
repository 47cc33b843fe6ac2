/* What the plugin calls its platform, and which device it opens when nobody names one. JAX chooses
 * lowering rules by the platform's name, and libraries refuse names that they do not know. */
#include "pjrt/pjrt_priv.h"

#include <dlfcn.h>
#include <sys/stat.h>

/* Programs that load libtpu take this library for it. */
static bool is_libtpu(void) {
  const char *given = env_get("TPU_LIBRARY_PATH");
  Dl_info own;
  struct stat a, b;
  return given && dladdr((const void *)(uintptr_t)GetPjrtApi, &own) && own.dli_fname &&
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
