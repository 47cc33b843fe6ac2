/* For binaries that are built on a newer glibc than they run on: what glibc has given new versions of since 2.27 is
 * called in the version from before, and what is younger is here. The build passes --wrap=NAME for every OLD() row.
 * Until 2.34 threads and dlopen were in libraries of their own, with the same names and versions: those are needed by
 * name as well (newer systems have them, empty). The functions of libm are the same ones without a wrapper that sets
 * errno as System V did; no answer changes. */
#include <stdint.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OLD(name, version)                                 \
  __asm__(".symver old_" #name ", " #name "@" version "\n" \
          ".text\n"                                        \
          ".globl __wrap_" #name "\n"                      \
          ".hidden __wrap_" #name "\n"                     \
          ".type __wrap_" #name ", @function\n"            \
          "__wrap_" #name ": jmp *old_" #name "@GOTPCREL(%rip)\n");

OLD(__libc_start_main,
    "GLIBC_2.2.5") /* for programs without constructors: old ones run those for the caller */
OLD(__pthread_key_create, "GLIBC_2.2.5")
OLD(dladdr, "GLIBC_2.2.5")
OLD(dlclose, "GLIBC_2.2.5")
OLD(dlerror, "GLIBC_2.2.5")
OLD(dlopen, "GLIBC_2.2.5")
OLD(dlsym, "GLIBC_2.2.5")
OLD(pthread_attr_setstacksize, "GLIBC_2.2.5")
OLD(pthread_condattr_setclock, "GLIBC_2.3.3")
OLD(pthread_create, "GLIBC_2.2.5")
OLD(pthread_detach, "GLIBC_2.2.5")
OLD(pthread_getaffinity_np, "GLIBC_2.3.4")
OLD(pthread_getattr_np, "GLIBC_2.2.5")
OLD(pthread_getspecific, "GLIBC_2.2.5")
OLD(pthread_join, "GLIBC_2.2.5")
OLD(pthread_key_create, "GLIBC_2.2.5")
OLD(pthread_key_delete, "GLIBC_2.2.5")
OLD(pthread_mutex_trylock, "GLIBC_2.2.5")
OLD(pthread_once, "GLIBC_2.2.5")
OLD(pthread_rwlock_rdlock, "GLIBC_2.2.5")
OLD(pthread_rwlock_unlock, "GLIBC_2.2.5")
OLD(pthread_rwlock_wrlock, "GLIBC_2.2.5")
OLD(pthread_setaffinity_np, "GLIBC_2.3.4")
OLD(pthread_setspecific, "GLIBC_2.2.5")
OLD(pthread_sigmask, "GLIBC_2.2.5")
OLD(pthread_timedjoin_np, "GLIBC_2.3.3")
OLD(sem_destroy, "GLIBC_2.2.5")
OLD(sem_init, "GLIBC_2.2.5")
OLD(sem_post, "GLIBC_2.2.5")
OLD(sem_wait, "GLIBC_2.2.5")
OLD(exp, "GLIBC_2.2.5")
OLD(exp2, "GLIBC_2.2.5")
OLD(hypot, "GLIBC_2.2.5")
OLD(log, "GLIBC_2.2.5")
OLD(log2, "GLIBC_2.2.5")
OLD(pow, "GLIBC_2.2.5")

#define HERE __attribute__((visibility("hidden")))

char __libc_single_threaded HERE = 0;

HERE pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }

HERE uint32_t arc4random(void) {
  uint32_t r = 0;
  while (getrandom(&r, sizeof r, 0) != sizeof r) {
  }
  return r;
}

struct mallinfo2 { /* LLVM's statistics, which nobody asks for */
  size_t fields[10];
};
HERE struct mallinfo2 mallinfo2(void) { return (struct mallinfo2){{0}}; }

/* Until 2.33 these were inline functions around calls that carry the version of the struct. */
int __xstat(int, const char *, struct stat *);
int __lxstat(int, const char *, struct stat *);
int __fxstat(int, int, struct stat *);
int __fxstatat(int, int, const char *, struct stat *, int);
HERE int stat(const char *restrict path, struct stat *restrict s) { return __xstat(1, path, s); }
HERE int lstat(const char *restrict path, struct stat *restrict s) { return __lxstat(1, path, s); }
HERE int fstat(int fd, struct stat *s) { return __fxstat(1, fd, s); }
HERE int fstatat(int fd, const char *restrict path, struct stat *restrict s, int flags) {
  return __fxstatat(1, fd, path, s, flags);
}
