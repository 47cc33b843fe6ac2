/* The cache on disk. File: Head, key, zeros up to 16, value. */
#include "base/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC "weft cache 1\n\n\n"
#define MAX_ENTRIES 10000
#define DEFAULT_MB 512
#define TRIM_EVERY 32    /* entries written, on average */
#define ABANDONED_S 3600 /* a temporary file that old has lost its writer */
#define MAX_ENTRY (1 << 30)

typedef struct Head {
  char magic[16];
  uint64_t key_n, value_n, sum;
} Head;

/* ---- the code's own name ---- */

static char own_id[2 * 64 + 1];

static int find_own_id(struct dl_phdr_info *info, size_t size, void *arg) {
  (void)size;
  uintptr_t here = (uintptr_t)&own_id;
  bool inside = false;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    uintptr_t at = info->dlpi_addr + p->p_vaddr;
    inside |= p->p_type == PT_LOAD && here >= at && here < at + p->p_memsz;
  }
  if (!inside) return 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    if (p->p_type != PT_NOTE) continue;
    const char *at = (const char *)(info->dlpi_addr + p->p_vaddr), *end = at + p->p_memsz;
    while (end - at >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
      const ElfW(Nhdr) *n = (const void *)at;
      const unsigned char *id = (const unsigned char *)(n + 1) + ((n->n_namesz + 3) & ~3u);
      if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 && n->n_descsz <= 64) {
        for (unsigned k = 0; k < n->n_descsz; k++) snprintf(own_id + 2 * k, 3, "%02x", id[k]);
        *(bool *)arg = true;
        return 1;
      }
      at = (const char *)id + ((n->n_descsz + 3) & ~3u);
    }
  }
  return 1;
}

static bool has_id;

static void find_id(void) { dl_iterate_phdr(find_own_id, &has_id); }

const char *build_id(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, find_id);
  return has_id ? own_id : NULL;
}

/* ---- the folder ---- */

static char *folder; /* NULL: no cache */
static int64_t limit_bytes;

static bool is_private(const char *path) {
  struct stat s;
  return stat(path, &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == geteuid() &&
         (s.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* Makes the folder and those above it. */
static bool make_folder(char *path) {
  for (char *p = path + 1; *p; p++)
    if (*p == '/') {
      *p = 0;
      mkdir(path, 0700);
      *p = '/';
    }
  mkdir(path, 0700);
  return is_private(path);
}

static void find_folder(void) {
  const char *want = env_get("WEFT_CACHE"), *xdg = env_get("XDG_CACHE_HOME"),
             *home = env_get("HOME");
  limit_bytes = env_int("WEFT_CACHE_MB", 1, 1 << 30, DEFAULT_MB) << 20;
  if (want && (!strcmp(want, "0") || !strcmp(want, "off"))) return;
  char *path = want                 ? xstrdup(want)
               : xdg && *xdg == '/' ? xasprintf("%s/weft", xdg)
               : home               ? xasprintf("%s/.cache/weft", home)
                                    : NULL;
  if (path && make_folder(path)) {
    folder = path;
    return;
  }
  if (want)
    env_complain("WEFT_CACHE", "is not used, programs are compiled anew each time: it must be a "
                               "folder that can be made or is only yours to write");
  free(path);
}

static const char *cache_folder(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, find_folder);
  return folder;
}

bool cache_is_on(void) { return cache_folder() != NULL; }

/* ---- entries ---- */

/* Eight bytes at a time: entries are megabytes. */
static uint64_t checksum(Str s, uint64_t h) {
  const uint64_t k = 0x9e3779b97f4a7c15u;
  size_t i = 0;
  for (; i + 8 <= s.n; i += 8) {
    uint64_t w;
    memcpy(&w, s.p + i, 8);
    h = (h ^ w) * k;
    h ^= h >> 32;
  }
  for (; i < s.n; i++) h = (h ^ (unsigned char)s.p[i]) * k;
  return h ^ (h >> 29) ^ s.n;
}

static char *entry_path(Str key) {
  return xasprintf("%s/%016llx%016llx", cache_folder(),
                   (unsigned long long)checksum(key, 0x243f6a8885a308d3u),
                   (unsigned long long)checksum(key, 0x13198a2e03707344u));
}

static size_t value_at(size_t key_n) { return (sizeof(Head) + key_n + 15) & ~(size_t)15; }

static bool read_all(int fd, char *p, size_t n) {
  while (n) {
    ssize_t got = read(fd, p, n);
    if (got <= 0) return false;
    p += got;
    n -= (size_t)got;
  }
  return true;
}

static bool is_entry(const Buf *f, Str key, Str *value) {
  Head h;
  if (f->n < sizeof h) return false;
  memcpy(&h, f->p, sizeof h);
  size_t at = value_at(key.n);
  if (memcmp(h.magic, MAGIC, sizeof h.magic) || h.key_n != key.n || f->n < at ||
      h.value_n != f->n - at || memcmp(f->p + sizeof h, key.p, key.n))
    return false;
  *value = (Str){f->p + at, f->n - at};
  return checksum(*value, h.key_n) == h.sum;
}

bool cache_get(Str key, Buf *file, Str *value) {
  if (!cache_folder()) return false;
  char *path = entry_path(key);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  free(path);
  if (fd < 0) return false;
  struct stat s;
  Buf f = {0};
  bool ok = fstat(fd, &s) == 0 && s.st_size > 0 && s.st_size <= MAX_ENTRY;
  if (ok) {
    f = (Buf){xmalloc((size_t)s.st_size), (size_t)s.st_size, (size_t)s.st_size};
    ok = read_all(fd, f.p, f.n) && is_entry(&f, key, value);
  }
  if (ok) futimens(fd, NULL); /* used now */
  close(fd);
  if (ok) *file = f;
  else buf_free(&f);
  return ok;
}

/* ---- the limit ---- */

typedef struct Entry {
  char *name;
  int64_t bytes;
  struct timespec used;
} Entry;

static int older_first(const void *x, const void *y) {
  const Entry *a = x, *b = y;
  if (a->used.tv_sec != b->used.tv_sec) return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
  return a->used.tv_nsec < b->used.tv_nsec ? -1 : a->used.tv_nsec > b->used.tv_nsec;
}

/* Down to three quarters of the limits when one is passed. */
static void trim(void) {
  DIR *d = opendir(cache_folder());
  if (!d) return;
  VEC(Entry) all = {0};
  int64_t bytes = 0;
  for (struct dirent *e; (e = readdir(d));) {
    struct stat s;
    if (fstatat(dirfd(d), e->d_name, &s, AT_SYMLINK_NOFOLLOW) || !S_ISREG(s.st_mode)) continue;
    bool temporary = e->d_name[0] == '.';
    if (temporary && s.st_mtim.tv_sec + ABANDONED_S < time(NULL)) unlinkat(dirfd(d), e->d_name, 0);
    if (temporary) continue;
    *vec_push(&all) = (Entry){xstrdup(e->d_name), s.st_size, s.st_mtim};
    bytes += s.st_size;
  }
  if (bytes > limit_bytes || all.n > MAX_ENTRIES) {
    qsort(all.v, (size_t)all.n, sizeof *all.v, older_first);
    for (int i = 0; i < all.n; i++) {
      if (bytes <= limit_bytes / 4 * 3 && all.n - i <= MAX_ENTRIES / 4 * 3) break;
      unlinkat(dirfd(d), all.v[i].name, 0);
      bytes -= all.v[i].bytes;
    }
  }
  for (int i = 0; i < all.n; i++) free(all.v[i].name);
  vec_free(&all);
  closedir(d);
}

void cache_put(Str key, Str value) {
  if (!cache_folder() || value.n > MAX_ENTRY / 2) return;
  static unsigned count;
  unsigned number = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
  Head h = {.magic = MAGIC, .key_n = key.n, .value_n = value.n, .sum = checksum(value, key.n)};
  size_t pad = value_at(key.n) - sizeof h - key.n;
  char *temporary = xasprintf("%s/.%d.%u", cache_folder(), (int)getpid(), number);
  FILE *f = fopen(temporary, "wbe");
  bool ok = f && fwrite(&h, sizeof h, 1, f) == 1 && fwrite(key.p, 1, key.n, f) == key.n &&
            fwrite((char[16]){0}, 1, pad, f) == pad && fwrite(value.p, 1, value.n, f) == value.n;
  if (f) ok = (fclose(f) == 0) && ok;
  char *path = entry_path(key);
  if (f && (!ok || rename(temporary, path))) unlink(temporary);
  free(path);
  free(temporary);
  if (h.sum % TRIM_EVERY == 0) trim();
}
