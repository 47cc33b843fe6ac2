/* Functions of the C library on vectors of f64 (glibc's libmvec: within 4 ulp, special values as in the
 * scalar ones), when this machine has them. Generated code calls them by their names there. */
#include <pthread.h>
#include <stdio.h>

#include "dev/cpu/loops/emit_priv.h"

#if defined(__x86_64__) && defined(__GLIBC__)
#include <dlfcn.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *library;

static void open_library(void) { library = dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL); }

void *libmvec_symbol(const char *name) {
  if (strncmp(name, "_ZGV", 4)) return NULL;
  pthread_once(&once, open_library);
  return library ? dlsym(library, name) : NULL;
}
#else
void *libmvec_symbol(const char *name) {
  (void)name;
  return NULL;
}
#endif

bool libmvec_here(void) { return libmvec_symbol("_ZGVdN4v_tanh") != NULL; }

#define B g->b

LLVMValueRef part_of_lanes(Gen *g, LLVMValueRef v, int first, int n) {
  if (n == g->lanes) return v;
  LLVMValueRef at[64];
  for (int i = 0; i < n; i++)
    at[i] = LLVMConstInt(LLVMInt32TypeInContext(g->ctx), (unsigned)(first + i), 0);
  return LLVMBuildShuffleVector(B, v, LLVMGetPoison(LLVMTypeOf(v)),
                                LLVMConstVector(at, (unsigned)n), "");
}

LLVMValueRef joined_lanes(Gen *g, LLVMValueRef a, int na, LLVMValueRef b, int nb) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(g->ctx);
  LLVMValueRef at[64];
  if (na > nb) { /* operands of a shuffle have one type */
    for (int i = 0; i < na; i++)
      at[i] = i < nb ? LLVMConstInt(i32, (unsigned)i, 0) : LLVMGetPoison(i32);
    b = LLVMBuildShuffleVector(B, b, LLVMGetPoison(LLVMTypeOf(b)),
                               LLVMConstVector(at, (unsigned)na), "");
  }
  for (int i = 0; i < na + nb; i++) at[i] = LLVMConstInt(i32, (unsigned)i, 0);
  return LLVMBuildShuffleVector(B, a, b, LLVMConstVector(at, (unsigned)(na + nb)), "");
}

LLVMValueRef call_part(Gen *g, const char *name, DType of, int n, LLVMValueRef *args, int first,
                       int lanes) {
  LLVMTypeRef t = reg_type(g, of, lanes), params[3] = {t, t, t};
  LLVMTypeRef ft = LLVMFunctionType(t, params, (unsigned)n, 0);
  LLVMValueRef f = LLVMGetNamedFunction(g->mod, name), some[3];
  if (!f) f = LLVMAddFunction(g->mod, name, ft);
  for (int a = 0; a < n; a++) some[a] = part_of_lanes(g, args[a], first, lanes);
  return LLVMBuildCall2(B, ft, f, some, (unsigned)n, "");
}

LLVMValueRef libmvec_call(Gen *g, const char *fn, int n, LLVMValueRef *args) {
  int most = cpu_vector_bits() >= 512 ? 8 : 4;
  if (cpu_vector_bits() < 256 || g->lanes < 4 || g->lanes % 4 || !libmvec_here()) return NULL;
  LLVMValueRef r = NULL;
  for (int i = 0, k; i < g->lanes; i += k) {
    k = MIN(most, g->lanes - i);
    char name[40];
    snprintf(name, sizeof name, "_ZGV%cN%d%.*s_%s", k == 8 ? 'e' : 'd', k, n, "vvv", fn);
    LLVMValueRef p = call_part(g, name, DT_F64, n, args, i, k);
    r = r ? joined_lanes(g, r, i, p, k) : p;
  }
  return r;
}
