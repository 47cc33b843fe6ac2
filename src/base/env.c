/* Environment variables. A value that cannot be meant counts as unset and is named on stderr, once: a
 * slip must not go unnoticed. */
#include "base/base.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

const char *env_get(const char *name) {
  const char *s = getenv(name);
  return s && *s ? s : NULL;
}

void env_complain(const char *name, const char *fmt, ...) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static Map *said;
  pthread_mutex_lock(&lock);
  if (!said) said = map_new();
  bool again = map_get(said, str_from(name)) != NULL;
  map_set(said, str_from(name), (void *)(uintptr_t)1);
  pthread_mutex_unlock(&lock);
  if (again) return;
  va_list ap;
  va_start(ap, fmt);
  fprintf(stderr, "weft: %s='%s' ", name, getenv(name));
  vfprintf(stderr, fmt, ap);
  fputc('\n', stderr);
  va_end(ap);
}

int64_t env_int(const char *name, int64_t least, int64_t most, int64_t otherwise) {
  const char *s = env_get(name);
  if (!s) return otherwise;
  char *end;
  long long v = strtoll(s, &end, 10);
  if (end != s && !*end && v >= least && v <= most) return v;
  env_complain(name, "is not used: it must be a whole number from %lld to %lld", (long long)least,
               (long long)most);
  return otherwise;
}

bool env_flag(const char *name) { return env_int(name, 0, 1, 0) != 0; }

bool env_lists(const char *name, const char *word) {
  size_t n = strlen(word);
  for (const char *p = env_get(name); p; p = (p = strchr(p, ',')) ? p + 1 : NULL)
    if (!strncmp(p, word, n) && (p[n] == ',' || p[n] == 0)) return true;
  return false;
}

int env_choice(const char *name, const char *choices) {
  const char *s = env_get(name);
  if (!s) return -1;
  int i = 0;
  for (const char *p = choices; *p; i++) {
    size_t n = strcspn(p, "|");
    if (strlen(s) == n && !memcmp(s, p, n)) return i;
    p += n + (p[n] == '|');
  }
  env_complain(name, "is not used: it must be one of %s", choices);
  return -1;
}
