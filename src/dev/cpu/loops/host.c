/* The host that code is generated for, and functions with its attributes. */
#include <pthread.h>
#include <llvm-c/TargetMachine.h>
#include <stdio.h>

#include "dev/cpu/loops/emit_priv.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static GenHost host;

static void know_host(void) {
  host.triple = LLVMGetDefaultTargetTriple();
  host.cpu = LLVMGetHostCPUName();
  char *features = LLVMGetHostCPUFeatures();
  /* 256 bits stand for a host without AVX-512: no masks, sixteen registers. */
  host.features = xasprintf("%s%s", features, cpu_vector_bits() < 512 ? ",-avx512f" : "");
  LLVMDisposeMessage(features);
}

const GenHost *gen_host(void) {
  pthread_once(&once, know_host);
  return &host;
}

LLVMTypeRef gen_fn_type(Gen *g) {
  LLVMTypeRef p = LLVMPointerTypeInContext(g->ctx, 0), i = LLVMInt64TypeInContext(g->ctx);
  LLVMTypeRef args[4] = {p, i, i, p};
  return LLVMFunctionType(LLVMVoidTypeInContext(g->ctx), args, 4, 0);
}

static void add_attr(Gen *g, LLVMValueRef fn, const char *key, const char *value) {
  LLVMAttributeRef a =
      LLVMCreateStringAttribute(g->ctx, key, (unsigned)strlen(key), value, (unsigned)strlen(value));
  LLVMAddAttributeAtIndex(fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, a);
}

LLVMValueRef gen_fn(Gen *g, const char *name) {
  LLVMValueRef fn = LLVMAddFunction(g->mod, name, gen_fn_type(g));
  char bits[8];
  snprintf(bits, sizeof bits, "%d", cpu_vector_bits());
  add_attr(g, fn, "target-cpu", gen_host()->cpu);
  add_attr(g, fn, "target-features", gen_host()->features);
  add_attr(g, fn, "prefer-vector-width", bits);
  add_attr(g, fn, "min-legal-vector-width", bits);
  unsigned kind = LLVMGetEnumAttributeKindForName("nounwind", 8);
  LLVMAddAttributeAtIndex(fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                          LLVMCreateEnumAttribute(g->ctx, kind, 0));
  return fn;
}
