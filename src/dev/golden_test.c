/* The golden corpus on the devices that compute, interp and cpu: every entry of the manifest, from
 * its text and its bytecode, three times (the second run finds used memory, the third is of the
 * program as the cache on disk gives it back), against what XLA computed, with the tolerances of the
 * corpus. Entries that only decode are read and verified. GOLDEN=REGEX runs only the names that
 * match, e.g. GOLDEN='^cpu train'. */
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dev/golden_test.h"

static void golden(void **state) {
  Err *e = golden_run(*state, 3, golden_close);
  if (!e) return;
  char *text = err_text(e);
  fail_msg("%s: %s", ((Case *)*state)->title, text);
}

int main(void) {
  cJSON *manifest = golden_manifest();
  if (!manifest) return 1;
  const cJSON *programs = cJSON_GetObjectItem(manifest, "programs"), *p;
  GoldenTests tests = {0};
  regex_t only;
  const char *pattern = env_get("GOLDEN");
  if (pattern && regcomp(&only, pattern, REG_EXTENDED | REG_NOSUB)) {
    fprintf(stderr, "GOLDEN is not a regular expression\n");
    return 1;
  }
  cJSON_ArrayForEach(p, programs) {
    static const char *const ends[] = {".mlir", ".mlirbc"}, *const devices[] = {"interp", "cpu"};
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(p, "name"));
    for (int i = 0; i < COUNT_OF(ends) * COUNT_OF(devices); i++) {
      const char *device = devices[i / COUNT_OF(ends)], *end = ends[i % COUNT_OF(ends)];
      char *title = xasprintf("%s %s%s", device, name, end);
      if (!pattern || !regexec(&only, title, 0, NULL, 0))
        golden_add(&tests, p, device, end, golden);
      free(title);
    }
  }
  int failed = golden_run_all("golden", &tests);
  cJSON_Delete(manifest);
  if (pattern) regfree(&only);
  return failed;
}
