/* From fusions to code that runs. Fusions that give the same code share it. What a program's
 * kernels compile to is looked for in the cache on disk first (base/cache.h): its key is every
 * kernel's graph written out, this host's instruction set and the build of weft and LLVM. Otherwise
 * they are divided into units, each with its own LLVM context, that are generated and compiled in
 * parallel. The pass list is short (the IR is vector IR already, with addresses formed loop by loop):
 * accumulators into registers, common subexpressions, blocks joined. Strength reduction of loops is
 * off for the same reason: it took a quarter of the time and left the code as it was; so is the
 * second scheduling, which processors that reorder do not need. kernels.c loads the objects. */
#include <pthread.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>

#include "base/cache.h"
#include "dev/cpu/loops/while_codegen.h"

#define PASSES "mem2reg,early-cse,simplifycfg"
/* Peepholes find nothing in arithmetic on f32, and much in integers: conditions, roundings. */
#define PASSES_INTEGER "mem2reg,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,early-cse"
/* Loops: the functions of their steps become one, its memory registers. */
#define PASSES_WHILE                                                                           \
  "always-inline,function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg," \
  "loop-mssa(licm),early-cse<memssa>,dse)"
#define UNIT_NODES 64 /* graph nodes in a unit, unless one kernel alone has more */

typedef struct Wanted { /* where addresses go when they are known */
  FusedCode *code;
  int kernel;
} Wanted;

typedef struct Kernel {
  Dag dag;
  WhileCode loop; /* with a plan: instead of a fusion */
  FusedCode code; /* without addresses */
} Kernel;

typedef struct Unit { /* kernels [first, end) in one module */
  int first, end;
  LLVMContextRef ctx;
  LLVMModuleRef mod;
  LLVMMemoryBufferRef object;
  Err *error;
} Unit;

struct Jit {
  VEC(Kernel) kernels;
  VEC(Unit) units;
  VEC(Wanted) wanted;
  Map *by_key; /* key -> kernel + 1 */
  Buf key;     /* of the whole program */
  Buf bytes;   /* of what was compiled, or found */
};

static pthread_once_t target_once = PTHREAD_ONCE_INIT;
static LLVMTargetRef target;
static char *no_target;

static void start(void) {
  const char *const options[] = {"weft", "-disable-lsr", "-disable-post-ra"};
  LLVMParseCommandLineOptions(COUNT_OF(options), options, NULL);
  LLVMInitializeNativeTarget();
  LLVMInitializeNativeAsmPrinter();
  if (LLVMGetTargetFromTriple(gen_host()->triple, &target, &no_target)) target = NULL;
}

void jit_host(Buf *out) {
  const GenHost *h = gen_host();
  unsigned major, minor, patch;
  LLVMGetVersion(&major, &minor, &patch);
  buf_printf(out, "%s\nllvm %u.%u.%u\n%s\n%s\n%s\n%d %d\n", build_id() ? build_id() : "", major,
             minor, patch, h->triple, h->cpu, h->features, cpu_vector_bits(), libmvec_here());
}

/* ---- collecting ---- */

static void kernel_free(Kernel *k) {
  if (k->loop.plan) while_free(&k->loop);
  else dag_free(&k->dag);
}

static int kernel_nodes(const Kernel *k) {
  int n = k->dag.nodes.n;
  for (int i = 0; i < k->loop.dags.n; i++) n += k->loop.dags.v[i].nodes.n;
  return n;
}

Jit *jit_new(void) {
  Jit *j = xcalloc(1, sizeof *j);
  j->by_key = map_new();
  buf_cstr(&j->key, "kernels\n");
  jit_host(&j->key);
  return j;
}

/* The kernel with this key: k, which is given up when there is one already. */
static void add_kernel(Jit *j, Buf *key, Kernel *k, FusedCode *out) {
  Str s = {key->p, key->n};
  int id = (int)(intptr_t)map_get(j->by_key, s) - 1;
  if (id < 0) {
    id = j->kernels.n;
    *vec_push(&j->kernels) = *k;
    map_set(j->by_key, s, (void *)(intptr_t)(id + 1));
    buf_printf(&j->key, "%zu:", key->n);
    buf_str(&j->key, s);
  } else {
    kernel_free(k);
  }
  buf_free(key);
  *vec_push(&j->wanted) = (Wanted){out, id};
}

Err *jit_add(Jit *j, const Fusion *f, FusedCode *out) {
  Kernel k = {0};
  Err *e = dag_build(f, &k.dag);
  if (e) {
    dag_free(&k.dag);
    return e;
  }
  Buf key = {0};
  dag_key(&k.dag, &key);
  add_kernel(j, &key, &k, out);
  return NULL;
}

bool jit_add_loop(Jit *j, const Plan *p, const Step *s, FusedCode *out) {
  Kernel k = {0};
  if (!while_new(p, s, &k.loop)) return false;
  Buf key = {0};
  while_key(&k.loop, &key);
  add_kernel(j, &key, &k, out);
  return true;
}

/* ---- compiling ---- */

/* Machines know the host's features, which takes longer to find out than a small kernel to compile:
 * they are kept. Each works for one thread at a time. */
static pthread_mutex_t machines_lock = PTHREAD_MUTEX_INITIALIZER;
static VEC(LLVMTargetMachineRef) machines;

static LLVMTargetMachineRef machine_take(void) {
  LLVMTargetMachineRef tm = NULL;
  pthread_mutex_lock(&machines_lock);
  if (machines.n) tm = machines.v[--machines.n];
  pthread_mutex_unlock(&machines_lock);
  if (tm) return tm;
  const GenHost *h = gen_host();
  return LLVMCreateTargetMachine(target, h->triple, h->cpu, h->features, LLVMCodeGenLevelDefault,
                                 LLVMRelocPIC, LLVMCodeModelSmall);
}

static void machine_give(LLVMTargetMachineRef tm) {
  pthread_mutex_lock(&machines_lock);
  *vec_push(&machines) = tm;
  pthread_mutex_unlock(&machines_lock);
}

static void unit_close(Unit *u) {
  if (!u->mod) return;
  LLVMDisposeModule(u->mod);
  LLVMContextDispose(u->ctx);
  u->mod = NULL;
}

static void divide(Jit *j) {
  int nodes = UNIT_NODES;
  for (int i = 0; i < j->kernels.n; i++) {
    if (nodes >= UNIT_NODES) {
      *vec_push(&j->units) = (Unit){.first = i};
      nodes = 0;
    }
    nodes += kernel_nodes(&j->kernels.v[i]);
    j->units.v[j->units.n - 1].end = i + 1;
  }
}

static Err *unit_generate(Jit *j, Unit *u) {
  u->ctx = LLVMContextCreate();
  u->mod = LLVMModuleCreateWithNameInContext("weft", u->ctx);
  LLVMBuilderRef b = LLVMCreateBuilderInContext(u->ctx);
  Err *e = NULL;
  for (int i = u->first; i < u->end && !e; i++) {
    Kernel *k = &j->kernels.v[i];
    char name[24];
    snprintf(name, sizeof name, "k%d", i);
    Gen g = {.ctx = u->ctx, .mod = u->mod, .b = b, .d = &k->dag};
    e = k->loop.plan ? while_gen(u->ctx, u->mod, b, &k->loop, name, &k->code)
                     : gen_fusion(&g, &k->dag, name, &k->code);
  }
  LLVMDisposeBuilder(b);
  return e;
}

static bool has_integers(const Dag *d) {
  for (int i = 0; i < d->nodes.n; i++) {
    const DagNode *n = &d->nodes.v[i];
    DTypeClass c = dtype_class(n->t);
    if (n->kind == N_OP &&
        (c == DC_SINT || c == DC_UINT || n->t == DT_BF16 || n->t == DT_F16 || is_small_float(n->t)))
      return true;
  }
  return d->masks.n > 1; /* [0] is none */
}

static const char *passes_for(const Jit *j, const Unit *u) {
  for (int i = u->first; i < u->end; i++)
    if (j->kernels.v[i].loop.plan) return PASSES_WHILE;
  for (int i = u->first; i < u->end; i++)
    if (has_integers(&j->kernels.v[i].dag)) return PASSES_INTEGER;
  return PASSES;
}

static Err *unit_compile(Unit *u, const char *passes, LLVMTargetMachineRef tm) {
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(tm);
  LLVMSetTarget(u->mod, gen_host()->triple);
  LLVMSetModuleDataLayout(u->mod, layout);
  LLVMDisposeTargetData(layout);
  char *bad = NULL;
  Err *e = NULL;
#ifndef NDEBUG
  if (LLVMVerifyModule(u->mod, LLVMReturnStatusAction, &bad))
    e = err_new(ERR_INTERNAL, "LLVM: %s", bad);
  LLVMDisposeMessage(bad);
  if (e) return e;
#endif
  LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
  LLVMErrorRef error = LLVMRunPasses(u->mod, passes, tm, o);
  LLVMDisposePassBuilderOptions(o);
  if (error) {
    bad = LLVMGetErrorMessage(error);
    e = err_new(ERR_INTERNAL, "LLVM: %s", bad);
    LLVMDisposeErrorMessage(bad);
  } else if (LLVMTargetMachineEmitToMemoryBuffer(tm, u->mod, LLVMObjectFile, &bad, &u->object)) {
    e = err_new(ERR_INTERNAL, "LLVM: %s", bad);
    LLVMDisposeMessage(bad);
  }
  return e;
}

/* ---- units ---- */

/* Each unit has its context and machine: they run in parallel. */
static void make_unit(void *arg, int64_t i) {
  Jit *j = arg;
  Unit *u = &j->units.v[i];
  u->error = unit_generate(j, u);
  if (!u->error && env_lists("WEFT_DUMP", "llvm")) LLVMDumpModule(u->mod);
  if (!u->error) {
    LLVMTargetMachineRef tm = machine_take();
    u->error = unit_compile(u, passes_for(j, u), tm);
    machine_give(tm);
  }
  unit_close(u);
}

static Err *compile_units(Jit *j, bool alone) {
  pthread_once(&target_once, start);
  if (!target) return err_new(ERR_INTERNAL, "LLVM: %s", no_target);
  divide(j);
  if (!alone) pool_run(j->units.n, make_unit, j);
  for (int i = 0; i < j->units.n && alone; i++) make_unit(j, i);
  for (int i = 0; i < j->units.n; i++)
    if (j->units.v[i].error) {
      Err *e = j->units.v[i].error;
      j->units.v[i].error = NULL;
      return e;
    }
  return NULL;
}

/* Written as bytes and loaded from them, as from the cache. */
static Err *link_units(Jit *j, Kernels **out) {
  int n = j->units.n, nk = j->kernels.n;
  Str *objects = xcalloc((size_t)n + 1, sizeof *objects);
  FusedCode *codes = xcalloc((size_t)nk + 1, sizeof *codes);
  for (int i = 0; i < n; i++)
    objects[i] =
        (Str){LLVMGetBufferStart(j->units.v[i].object), LLVMGetBufferSize(j->units.v[i].object)};
  for (int i = 0; i < nk; i++) codes[i] = j->kernels.v[i].code;
  Buf b = {0};
  kernels_write(codes, nk, objects, n, &b);
  Str bytes = {b.p, b.n};
  Err *e = kernels_load(bytes, out);
  if (!e && build_id()) cache_put((Str){j->key.p, j->key.n}, bytes);
  if (e) buf_free(&b);
  else j->bytes = b;
  free(objects);
  free(codes);
  return e;
}

static void drop_inputs(Jit *j) {
  for (int i = 0; i < j->units.n; i++) {
    Unit *u = &j->units.v[i];
    unit_close(u);
    err_free(u->error);
    if (u->object) LLVMDisposeMemoryBuffer(u->object);
  }
  vec_free(&j->units);
  for (int i = 0; i < j->kernels.n; i++) kernel_free(&j->kernels.v[i]);
  vec_free(&j->kernels);
  vec_free(&j->wanted);
  map_free(j->by_key);
  j->by_key = NULL;
  buf_free(&j->key);
}

static bool from_cache(Jit *j, Kernels **out) {
  Buf file;
  Str bytes;
  if (!build_id() || !cache_get((Str){j->key.p, j->key.n}, &file, &bytes)) return false;
  Err *e = kernels_load(bytes, out);
  bool ok = !e && kernels_count(*out) == j->kernels.n;
  if (!e && !ok) kernels_free(*out);
  if (ok) buf_str(&j->bytes, bytes);
  else *out = NULL;
  err_free(e);
  buf_free(&file);
  return ok;
}

Err *jit_finish(Jit *j, bool alone, Kernels **out) {
  *out = NULL;
  Err *e = NULL;
  if (j->kernels.n && !from_cache(j, out)) {
    e = compile_units(j, alone);
    if (!e) e = link_units(j, out);
  }
  for (int i = 0; i < j->wanted.n && !e; i++)
    *j->wanted.v[i].code = *kernels_at(*out, j->wanted.v[i].kernel);
  drop_inputs(j);
  return e;
}

Str jit_bytes(const Jit *j) { return (Str){j->bytes.p, j->bytes.n}; }

void jit_free(Jit *j) {
  if (!j) return;
  drop_inputs(j);
  buf_free(&j->bytes);
  free(j);
}

bool jit_fusible(const Op *op) { return emit_supports(op); }
