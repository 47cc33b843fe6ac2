/* Parts of paths. */
#include "base/path.h"

#include <string.h>

const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}
