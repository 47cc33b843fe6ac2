/* For tests that make files in a folder of their own. */
#ifndef WEFT_BASE_TEST_FOLDER_H
#define WEFT_BASE_TEST_FOLDER_H

#include <dirent.h>
#include <stdlib.h>

#include "base/base.h"

/* Calls fn, if any, with the path of each entry; their number. */
static inline int test_each_file(const char *folder, void (*fn)(const char *path, void *arg),
                                 void *arg) {
  int n = 0;
  DIR *d = opendir(folder);
  if (!d) return 0;
  for (struct dirent *e; (e = readdir(d));) {
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
    char *path = xasprintf("%s/%s", folder, e->d_name);
    if (fn) fn(path, arg);
    free(path);
    n++;
  }
  closedir(d);
  return n;
}

#endif
