/* The CPU device: `cpu` is this host as one device, `cpu:8` as eight (for programs over many).
 * Programs are compiled when first wanted for a pattern of arguments (whole, or one for each
 * process); what the compiler does not take runs on the interpreter as a whole. */
#include "dev/cpu/cpu_priv.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/cache.h"
#include "dev/meet.h"
#include "interp/interp.h"

static Err *cpu_open(Dev *dev, Str args) {
  TRY(dev_count(args, &dev->n));
  dev->impl = NULL;
  jit_library_rests();
  return NULL;
}

static void cpu_close(Dev *dev) { (void)dev; }

static void cpu_info(const Dev *dev, int i, DevInfo *out) {
  (void)dev;
  *out = (DevInfo){.kind = "cpu", .coords = {i, 0, 0}};
}

static CpuProgram *program_new(DevProgram *prog) {
  CpuProgram *p = xcalloc(1, sizeof *p);
  pthread_mutex_init(&p->lock, NULL);
  p->prog = prog;
  return p;
}

static void program_free(CpuProgram *p) {
  for (int i = 0; i < p->codes.n; i++) code_free(p->codes.v[i]);
  vec_free(&p->codes);
  free(p->interpreted);
  pthread_mutex_destroy(&p->lock);
  free(p);
}

/* Compiles for the pattern; *out NULL: the interpreter runs the whole. Called with the lock held.
 */
static Err *code_for(CpuProgram *p, DevProgram *prog, const Module *m, const bool *each,
                     Code **out) {
  *out = NULL;
  if (p->interpreted) return NULL;
  for (int i = 0; i < p->codes.n; i++)
    if (!memcmp(p->codes.v[i]->arg_each, each, (size_t)prog->n_args)) {
      *out = p->codes.v[i];
      return NULL;
    }
  Code *c;
  Err *e = code_new(prog, m, each, &c);
  if (e && e->code == ERR_UNIMPLEMENTED) {
    p->interpreted = xstrdup(e->msg);
    if (cpu_verbosity()) fprintf(stderr, "weft,interpreter,whole program,\"%s\"\n", e->msg);
    err_free(e);
    return NULL;
  }
  if (e) return e;
  *vec_push(&p->codes) = c;
  *out = c;
  return NULL;
}

static DevMemory memory_of(const CpuProgram *p, const DevProgram *prog) {
  DevMemory m = {0};
  for (int i = 0; i < prog->n_args; i++) m.args += dev_argument_bytes(prog, i);
  for (int j = 0; j < prog->n_results; j++) m.outputs += dev_result_bytes(prog, j);
  if (p->codes.n) {
    const Plan *plan = p->codes.v[0]->plan;
    m.temp = plan->arena_bytes + plan->arena_each_bytes;
    for (int j = 0; j < plan->n_results; j++) /* taken over only where the caller gives it up */
      if (plan->results[j].reuse_arg >= 0 && prog->aliases[plan->results[j].reuse_arg] != -1)
        m.aliased += dev_result_bytes(prog, j);
  }
  m.peak = m.args + m.outputs + m.temp - m.aliased;
  return m;
}

/* Does each process of a run have its own part of the argument, also where there is only one here? */
static bool has_parts(const DevProgram *prog, int i) {
  return prog->opts.replicas > 1 || (dev_program_is_cut(prog) && prog->arg_shardings[i]);
}

static Err *cpu_compile(DevProgram *prog, const Module *m) {
  CpuProgram *p = program_new(prog);
  bool *each = xcalloc((size_t)prog->n_args + 1, 1);
  for (int i = 0; i < prog->n_args; i++) each[i] = has_parts(prog, i);
  if (env_flag("WEFT_INTERPRET")) p->interpreted = xstrdup("WEFT_INTERPRET is set");
  Code *c;
  Err *e = code_for(p, prog, m, each, &c);
  free(each);
  if (e) {
    program_free(p);
    return e;
  }
  p->memory = memory_of(p, prog);
  prog->impl = p;
  return NULL;
}

static bool cpu_cache_key(Buf *out) {
  jit_host(out);
  return build_id() && !env_get("WEFT_DUMP") && !env_flag("WEFT_INTERPRET");
}

static bool cpu_save(DevProgram *prog, Buf *out) {
  CpuProgram *p = prog->impl;
  return p->codes.n == 1 && code_save(p->codes.v[0], out);
}

static Err *cpu_load(DevProgram *prog, Str saved) {
  Code *c;
  TRY(code_load(prog, saved, &c));
  CpuProgram *p = program_new(prog);
  *vec_push(&p->codes) = c;
  p->memory = memory_of(p, prog);
  prog->impl = p;
  return NULL;
}

static void cpu_program_free(DevProgram *prog) { program_free(prog->impl); }

static Err *cpu_run(DevProgram *prog, const DevPart *part, const Shards *args, const bool *donated,
                    Shards *results, DevRun *out_run) {
  CpuProgram *p = prog->impl;
  double t = time_now_s();
  Code *c = NULL;
  Err *e = NULL;
  if (!p->interpreted) {
    bool few[1024], *each = prog->n_args <= COUNT_OF(few) ? few : xcalloc((size_t)prog->n_args, 1);
    for (int i = 0; i < prog->n_args; i++) each[i] = has_parts(prog, i) || args[i].n > 1;
    pthread_mutex_lock(&p->lock);
    if (p->codes.n == 1 && prog->opts.replicas * prog->opts.partitions == 1) c = p->codes.v[0];
    else e = code_for(p, prog, prog->module, each, &c);
    pthread_mutex_unlock(&p->lock);
    if (each != few) free(each);
    if (e) return e;
  }
  Trace trace = {0};
  bool tracing = out_run && out_run->trace;
  if (tracing) {
    pthread_mutex_lock(&p->lock);
    trace.first = code_first_kernel(p, c);
    pthread_mutex_unlock(&p->lock);
  }
  if (c) {
    bool apart = c->apart && (!part->process || part->n > 1);
    e = (apart ? code_run_apart : code_run)(c, prog, part, args, donated, results,
                                            tracing ? &trace : NULL);
  } else {
    DevMeet meet;
    InterpOpts o = {prog->opts.replicas, prog->opts.partitions,
                    dev_meet_part(&meet, prog, part, prog->dev->exchange)};
    e = interp_run(prog->module, prog->main->name, &o, args, prog->n_args, results,
                   prog->n_results);
  }
  if (!out_run) return e;
  *out_run = (DevRun){.time_s = time_now_s() - t};
  if (tracing) trace_take(&trace, t, out_run);
  return e;
}

static Err *cpu_memory(const DevProgram *prog, DevMemory *out) {
  const CpuProgram *p = prog->impl;
  *out = p->memory;
  return NULL;
}

static Err *cpu_report(const DevProgram *prog, Buf *json) {
  const CpuProgram *p = prog->impl;
  buf_cstr(json, "{\"kernels\": [");
  if (p->codes.n) code_report(p->codes.v[0], json);
  buf_cstr(json, "]}");
  return NULL;
}

static void cpu_profile_device(const Dev *dev, ProfDevice *out) {
  (void)dev;
  *out = (ProfDevice){.kind = "cpu"};
}

static Err *cpu_profile(const DevProgram *prog, Prof *prof, ProfProgram **out) {
  DevMemory memory;
  TRY(cpu_memory(prog, &memory));
  *out = program_profile(prog->impl, prof);
  (*out)->peak_bytes = (double)memory.peak;
  return NULL;
}

const DeviceOps dev_cpu = {
    .name = "cpu",
    .async = true,
    .cuts = true,
    .open = cpu_open,
    .close = cpu_close,
    .info = cpu_info,
    .compile = cpu_compile,
    .program_free = cpu_program_free,
    .run = cpu_run,
    .memory = cpu_memory,
    .report = cpu_report,
    .profile_device = cpu_profile_device,
    .profile = cpu_profile,
    .cache_key = cpu_cache_key,
    .save = cpu_save,
    .load = cpu_load,
    .tensor = cpu_tensor_for_argument,
};
