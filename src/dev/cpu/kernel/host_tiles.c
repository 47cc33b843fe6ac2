/* AMX: does the processor have tiles, and does the system give them? */
#include <pthread.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#endif

#include "dev/cpu/kernel/kernel.h"

static pthread_once_t tiles_once = PTHREAD_ONCE_INIT;
static bool tiles[2];

#if defined(__x86_64__) && defined(__linux__)
#define ASK_PERMISSION 0x1023 /* arch_prctl: ARCH_REQ_XCOMP_PERM */
#define TILE_DATA 18          /* of XCR0; 17 is their configuration */

static bool may_use_tiles(void) {
  unsigned a, b, c, d, low, high;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return false;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if ((low >> (TILE_DATA - 1) & 3) != 3) return false;
  return syscall(SYS_arch_prctl, ASK_PERMISSION, TILE_DATA) == 0;
}

static void know_tiles(void) {
  unsigned a, b, c, d;
  if (cpu_vector_bits() < 512 || env_choice("WEFT_AMX", "off|on") == 0) return;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d >> 24 & 1) || !may_use_tiles()) return;
  tiles[CPU_TILES_BF16] = d >> 22 & 1;
  tiles[CPU_TILES_INT8] = d >> 25 & 1;
}
#else
static void know_tiles(void) {}
#endif

bool cpu_has_tiles(CpuTiles of) {
  pthread_once(&tiles_once, know_tiles);
  return tiles[of];
}
