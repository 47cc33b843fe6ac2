/* Programs: described to the caller (shardings, memory kinds, shapes, cost), saved and loaded. A
 * saved program is the bytes and options it was made from; loading makes it again, which is quick
 * where it is in the cache on disk (compiled.c). */
#include "pjrt/pjrt_priv.h"

#include "compile/spmd/propagate.h"
#include "interp/interp.h"

#include <stdio.h>

/* ---- making one ---- */

static const char *memory_kind_of(const NamedAttr *attrs, int n) {
  Attr *a = attrs_get(attrs, n, "mhlo.memory_kind");
  int k = a && a->kind == AT_STRING ? memory_kind_from(a->s) : -1;
  return memory_kind_names[k < 0 ? MEM_DEVICE : k];
}

static void describe_value(const Sharding *s, const Mesh *mesh, const char *kind, int i,
                           char **shardings, size_t *sizes, const char **kinds,
                           size_t *kind_sizes) {
  Buf b = {0};
  op_sharding_proto(&b, s, mesh);
  shardings[i] = b.p ? b.p : xstrdup("");
  sizes[i] = b.n;
  kinds[i] = kind;
  kind_sizes[i] = strlen(kind);
}

static void describe(PJRT_Executable *x, const ProgramFacts *facts) {
  DevProgram *p = x->program;
  Func *f = p->given_main;
  size_t in = (size_t)p->n_args + 1, out = (size_t)p->n_results + 1;
  x->n_in = p->n_args;
  x->n_out = p->n_results;
  x->sharding_in = xcalloc(in, sizeof *x->sharding_in);
  x->sharding_in_sizes = xcalloc(in, sizeof *x->sharding_in_sizes);
  x->kinds_in = xcalloc(in, sizeof *x->kinds_in);
  x->kind_in_sizes = xcalloc(in, sizeof *x->kind_in_sizes);
  x->sharding_out = xcalloc(out, sizeof *x->sharding_out);
  x->sharding_out_sizes = xcalloc(out, sizeof *x->sharding_out_sizes);
  x->kinds_out = xcalloc(out, sizeof *x->kinds_out);
  x->kind_out_sizes = xcalloc(out, sizeof *x->kind_out_sizes);
  x->layouts_in = xcalloc(in, sizeof *x->layouts_in);
  x->layouts_out = xcalloc(out, sizeof *x->layouts_out);
  for (int i = 0; i < p->n_args; i++)
    x->layouts_in[i] = layout_of_value(f->arg_attrs[i], f->n_arg_attrs[i], f->type->elems[i]);
  for (int i = 0; i < p->n_results; i++)
    x->layouts_out[i] = layout_of_value(f->res_attrs[i], f->n_res_attrs[i], f->type->results[i]);
  for (int i = 0; i < p->n_args; i++)
    describe_value(p->arg_shardings[i], p->arg_meshes[i],
                   memory_kind_of(f->arg_attrs[i], f->n_arg_attrs[i]), i, x->sharding_in,
                   x->sharding_in_sizes, x->kinds_in, x->kind_in_sizes);
  int dims = 0;
  for (int i = 0; i < p->n_results; i++) {
    describe_value(p->result_shardings[i], p->result_meshes[i],
                   memory_kind_of(f->res_attrs[i], f->n_res_attrs[i]), i, x->sharding_out,
                   x->sharding_out_sizes, x->kinds_out, x->kind_out_sizes);
    dims += f->type->results[i]->rank;
  }
  x->out_types = xcalloc(out, sizeof *x->out_types);
  x->out_ranks = xcalloc(out, sizeof *x->out_ranks);
  x->out_dims = xcalloc((size_t)dims + 1, sizeof *x->out_dims);
  dims = 0;
  for (int i = 0; i < p->n_results; i++) {
    const Type *t = f->type->results[i];
    err_free(shard_dims(p->result_shardings[i], p->result_meshes[i], t->rank, t->dims,
                        x->out_dims + dims));
    x->out_types[i] = t->kind == TY_TOKEN ? PJRT_Buffer_Type_TOKEN : (PJRT_Buffer_Type)t->dtype;
    x->out_ranks[i] = (size_t)t->rank;
    dims += t->rank;
  }
  const DevCost c = facts->cost;
  x->not_queued = facts->not_queued;
  /* 20 operations or 10 bytes a ns are more than a core does in programs this small; all devices
   * are this host */
  double ns =
      (MAX(c.flops, 0) + 20 * MAX(c.transcendentals, 0)) / 20 + MAX(c.bytes_accessed, 0) / 10;
  ns *= p->opts.replicas * p->opts.partitions; /* of copies one counts: most callers run one */
  x->run_ns = facts->loops ? INT64_MAX : (int64_t)MIN(ns, 1e18);
  if (c.flops >= 0) named_float(&x->costs[x->n_costs++], "flops", c.flops);
  if (c.transcendentals >= 0)
    named_float(&x->costs[x->n_costs++], "transcendentals", c.transcendentals);
  if (c.bytes_accessed >= 0)
    named_float(&x->costs[x->n_costs++], "bytes accessed", c.bytes_accessed);
  if (c.optimal_s >= 0) named_float(&x->costs[x->n_costs++], "optimal_seconds", c.optimal_s);
}

/* The OS process that has device i of the program. */
static int process_of(const PJRT_Client *c, const CompileOptions *o, int i) {
  int device = o->n_assignment ? o->assignment[i] : i;
  return device >= 0 && device < c->n ? c->devices[device].desc.process : -1;
}

/* Does the program run on devices of other processes as well? */
static bool spans(const PJRT_Client *c, const CompileOptions *o) {
  if (!c || !c->dev->peers) return false;
  for (int i = 0; i < o->n_assignment; i++)
    if (process_of(c, o, i) != c->process) return true;
  return !o->n_assignment && o->replicas * o->partitions > c->n_near;
}

/* Of a program all of whose devices are of this process. */
static DevCut cut_wanted(void) {
  static const DevCut of[] = {DEV_WHOLE, DEV_CUT};
  int choice = env_choice("WEFT_PARTITION", "off|always");
  return choice < 0 ? DEV_CUT_LIGHTER : of[choice];
}

Err *executable_compile(PJRT_Client *c, Dev *d, Str code, Str options, PJRT_Executable **out) {
  CompileOptions o;
  TRY(compile_options_parse(options, &o));
  ProgramFacts facts;
  DevProgram *p;
  bool far = spans(c, &o), quiet = far && process_of(c, &o, 0) != c->process;
  Err *e = program_make(d, code, &o, far ? DEV_CUT : cut_wanted(), quiet, &facts, &p);
  if (e) {
    compile_options_clear(&o);
    return e;
  }
  PJRT_Executable *x = xcalloc(1, sizeof *x);
  x->refs = 1;
  x->client = c ? client_retain(c) : NULL;
  x->program = p;
  x->opts = o;
  Str name = p->module->name.n ? p->module->name : STR("program");
  x->name = xstrndup(name.p, name.n);
  buf_add(&x->code, code.p, code.n);
  buf_add(&x->options, options.p, options.n);
  uint64_t h = hash_bytes(d->spec, strlen(d->spec),
                          hash_bytes(PLATFORM_VERSION, sizeof PLATFORM_VERSION, 0));
  snprintf(x->fingerprint, sizeof x->fingerprint, "%016llx%016llx",
           (unsigned long long)hash_bytes(code.p, code.n, h),
           (unsigned long long)hash_bytes(options.p, options.n, hash_bytes(code.p, code.n, ~h)));
  describe(x, &facts);
  program_save(code, x->name);
  *out = x;
  return NULL;
}

PJRT_Executable *executable_retain(PJRT_Executable *x) {
  __atomic_fetch_add(&x->refs, 1, __ATOMIC_RELAXED);
  return x;
}

void executable_release(PJRT_Executable *x) {
  if (!x || __atomic_sub_fetch(&x->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
  dev_program_release(x->program);
  for (int i = 0; i < x->n_in; i++) free(x->sharding_in[i]);
  for (int i = 0; i < x->n_out; i++) free(x->sharding_out[i]);
  free(x->sharding_in), free(x->sharding_in_sizes), free(x->kinds_in), free(x->kind_in_sizes);
  free(x->sharding_out), free(x->sharding_out_sizes), free(x->kinds_out), free(x->kind_out_sizes);
  free(x->out_types), free(x->out_ranks), free(x->out_dims);
  free(x->layouts_in), free(x->layouts_out);
  buf_free(&x->code);
  buf_free(&x->readable);
  buf_free(&x->options);
  compile_options_clear(&x->opts);
  free(x->name);
  if (x->own_dev) dev_close(x->own_dev);
  client_release(x->client);
  free(x);
}

Err *executable_load(PJRT_Client *c, PJRT_Executable *take, PJRT_LoadedExecutable **out) {
  const CompileOptions *o = &take->opts;
  int n = o->replicas * o->partitions;
  for (int i = 0; i < o->n_assignment; i++)
    if (o->assignment[i] < 0 || o->assignment[i] >= c->n) {
      Err *e = err_new(ERR_INVALID, "the device assignment names device %d, there are %d",
                       o->assignment[i], c->n);
      executable_release(take);
      return e;
    }
  PJRT_LoadedExecutable *l = xcalloc(1, sizeof *l);
  l->refs = 1;
  l->exe = take;
  l->n = n;
  l->devices = xcalloc((size_t)n, sizeof *l->devices);
  l->near_devices = xcalloc((size_t)n, sizeof *l->near_devices);
  l->logical = xcalloc((size_t)n, sizeof *l->logical);
  l->ids = xcalloc((size_t)n, sizeof *l->ids);
  l->near = xcalloc((size_t)n, sizeof *l->near);
  PJRT_Device **list = n <= c->n_near ? c->near_list : c->device_list;
  for (int p = 0; p < n; p++) {
    l->devices[p] = o->n_assignment ? c->device_list[o->assignment[p]] : list[p];
    l->ids[p] = l->devices[p]->desc.id;
    if (l->devices[p]->desc.process != c->process) continue;
    l->near_devices[l->n_near] = l->devices[p];
    l->logical[l->n_near] = (PJRT_LogicalDeviceIds){p / o->partitions, p % o->partitions};
    l->near[l->n_near++] = p;
  }
  *out = l;
  return NULL;
}

void loaded_release(PJRT_LoadedExecutable *l) {
  if (!l || __atomic_sub_fetch(&l->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
  executable_release(l->exe);
  free(l->devices);
  free(l->near_devices);
  free(l->logical);
  free(l->near);
  free(l->ids);
  free(l);
}

/* What the bytes are, stablehlo_read sees; the caller's word for it only has to be a known one. */
static PJRT_Error *program_code(const PJRT_Program *p, Str *out) {
  Str format = {p->format, p->format_size};
  if (!str_is(format, "mlir") && !str_is(format, "hlo") && !str_is(format, "hlo_with_config"))
    return error_from(
        err_new(ERR_UNIMPLEMENTED,
                "weft takes StableHLO (\"mlir\") and HLO programs (\"hlo\"), not \"%.*s\"",
                STR_ARG(format)));
  *out = (Str){p->code, p->code_size};
  return NULL;
}

ENTRY(Client_Compile) {
  Str code;
  PTRY(program_code(a->program, &code));
  PJRT_Executable *x;
  ProfilerSpan span = profiler_begin();
  PTRY(error_from(executable_compile(a->client, a->client->dev, code,
                                     (Str){a->compile_options, a->compile_options_size}, &x)));
  profiler_compiled(span, x->name);
  return error_from(executable_load(a->client, x, &a->executable));
}

/* Ahead of time: the executable opens the topology's device for itself, so both may go in any
 * order. */
ENTRY(Compile) {
  Str code, options = {a->compile_options, a->compile_options_size};
  PTRY(program_code(a->program, &code));
  Dev *d;
  PTRY(error_from(dev_open(a->topology->dev->spec, &d)));
  PJRT_Error *e = error_from(executable_compile(NULL, d, code, options, &a->executable));
  if (e) dev_close(d);
  else a->executable->own_dev = d;
  return e;
}

ENTRY(Client_Load) {
  PJRT_Executable *x = a->executable, *own;
  if (x->client == a->client) own = executable_retain(x);
  else
    PTRY(error_from(executable_compile(a->client, a->client->dev, (Str){x->code.p, x->code.n},
                                       (Str){x->options.p, x->options.n}, &own)));
  return error_from(executable_load(a->client, own, &a->loaded_executable));
}

/* ---- saving ---- */

#define SAVED_MAGIC "weft-executable-1\n"

static void saved_free(PJRT_SerializedExecutable *s) { free(s); }

static void put_u64(Buf *b, uint64_t v) { buf_add(b, &v, sizeof v); }

ENTRY(Executable_Serialize) {
  PJRT_Executable *x = a->executable;
  Buf b = {0};
  buf_add(&b, SAVED_MAGIC, sizeof SAVED_MAGIC - 1);
  put_u64(&b, x->options.n);
  put_u64(&b, x->code.n);
  buf_add(&b, x->options.p, x->options.n);
  buf_add(&b, x->code.p, x->code.n);
  a->serialized_bytes = b.p;
  a->serialized_bytes_size = b.n;
  a->serialized_executable = (PJRT_SerializedExecutable *)b.p;
  a->serialized_executable_deleter = saved_free;
  return NULL;
}

ENTRY(Executable_DeserializeAndLoad) {
  Str in = {a->serialized_executable, a->serialized_executable_size};
  const size_t head = sizeof SAVED_MAGIC - 1;
  uint64_t sizes[2];
  if (in.n < head + sizeof sizes || memcmp(in.p, SAVED_MAGIC, head))
    return error_new(ERR_INVALID, "this is not an executable saved by weft " WEFT_VERSION);
  memcpy(sizes, in.p + head, sizeof sizes);
  in.p += head + sizeof sizes, in.n -= head + sizeof sizes;
  if (sizes[0] > in.n || sizes[1] != in.n - sizes[0])
    return error_new(ERR_DATA_LOSS, "the saved executable is cut short");
  Str options = {in.p, (size_t)sizes[0]}, code = {in.p + sizes[0], (size_t)sizes[1]};
  if (HAS(Executable_DeserializeAndLoad, overridden_serialized_compile_options_size) &&
      a->overridden_serialized_compile_options_size)
    options = (Str){a->overridden_serialized_compile_options,
                    a->overridden_serialized_compile_options_size};
  PJRT_Executable *x;
  PTRY(error_from(executable_compile(a->client, a->client->dev, code, options, &x)));
  return error_from(executable_load(a->client, x, &a->loaded_executable));
}

static void options_free(PJRT_SerializedCompileOptions *o) { free(o); }

ENTRY(Executable_GetCompileOptions) {
  char *copy = xmalloc(a->executable->options.n + 1);
  memcpy(copy, a->executable->options.p, a->executable->options.n);
  a->serialized_bytes = copy;
  a->serialized_bytes_size = a->executable->options.n;
  a->serialized_compile_options = (PJRT_SerializedCompileOptions *)copy;
  a->serialized_compile_options_deleter = options_free;
  return NULL;
}

/* ---- getters ---- */

ENTRY(Executable_Destroy) {
  executable_release(a->executable);
  return NULL;
}

ENTRY(Executable_Name) {
  a->executable_name = a->executable->name;
  a->executable_name_size = strlen(a->executable->name);
  return NULL;
}

ENTRY(Executable_NumReplicas) {
  a->num_replicas = (size_t)a->executable->opts.replicas;
  return NULL;
}

ENTRY(Executable_NumPartitions) {
  a->num_partitions = (size_t)a->executable->opts.partitions;
  return NULL;
}

ENTRY(Executable_NumOutputs) {
  a->num_outputs = (size_t)a->executable->n_out;
  return NULL;
}

static void memory_of_program(const PJRT_Executable *x, DevMemory *m) {
  const DevProgram *p = x->program;
  *m = (DevMemory){0};
  if (p->ops->memory) {
    Err *e = p->ops->memory(p, m);
    if (!e) return;
    err_free(e);
  }
  for (int i = 0; i < p->n_args; i++) m->args += dev_argument_bytes(p, i);
  for (int j = 0; j < p->n_results; j++) m->outputs += dev_result_bytes(p, j);
  for (int i = 0; i < p->n_args; i++)
    if (p->aliases[i] >= 0) m->aliased += dev_argument_bytes(p, i);
  m->peak = m->args + m->outputs - m->aliased;
}

ENTRY(Executable_SizeOfGeneratedCodeInBytes) {
  DevMemory m;
  memory_of_program(a->executable, &m);
  a->size_in_bytes = m.code;
  return NULL;
}

ENTRY(Executable_GetCostAnalysis) {
  a->properties = a->executable->costs;
  a->num_properties = (size_t)a->executable->n_costs;
  return NULL;
}

ENTRY(Executable_GetCompiledMemoryStats) {
  DevMemory m;
  memory_of_program(a->executable, &m);
  a->generated_code_size_in_bytes = m.code;
  a->argument_size_in_bytes = m.args;
  a->output_size_in_bytes = m.outputs;
  a->alias_size_in_bytes = m.aliased;
  a->temp_size_in_bytes = m.temp;
  SET_IF(Executable_GetCompiledMemoryStats, host_generated_code_size_in_bytes, 0);
  SET_IF(Executable_GetCompiledMemoryStats, host_argument_size_in_bytes, 0);
  SET_IF(Executable_GetCompiledMemoryStats, host_output_size_in_bytes, 0);
  SET_IF(Executable_GetCompiledMemoryStats, host_alias_size_in_bytes, 0);
  SET_IF(Executable_GetCompiledMemoryStats, host_temp_size_in_bytes, 0);
  SET_IF(Executable_GetCompiledMemoryStats, peak_memory_in_bytes, m.peak);
  int64_t total = m.code + m.args + m.outputs - m.aliased + m.temp;
  SET_IF(Executable_GetCompiledMemoryStats, total_size_in_bytes, total);
  SET_IF(Executable_GetCompiledMemoryStats, total_allocation_bytes, total);
  SET_IF(Executable_GetCompiledMemoryStats, indefinite_allocations, m.args + m.outputs - m.aliased);
  SET_IF(Executable_GetCompiledMemoryStats, peak_unpadded_heap_bytes, m.temp);
  return NULL;
}

ENTRY(Executable_OutputMemoryKinds) {
  a->num_outputs = (size_t)a->executable->n_out;
  a->memory_kinds = a->executable->kinds_out;
  a->memory_kind_sizes = a->executable->kind_out_sizes;
  return NULL;
}

ENTRY(Executable_ParameterMemoryKinds) {
  a->num_parameters = (size_t)a->executable->n_in;
  a->memory_kinds = a->executable->kinds_in;
  a->memory_kind_sizes = a->executable->kind_in_sizes;
  return NULL;
}

ENTRY(Executable_OutputElementTypes) {
  a->output_types = a->executable->out_types;
  a->num_output_types = (size_t)a->executable->n_out;
  return NULL;
}

ENTRY(Executable_OutputDimensions) {
  a->num_outputs = (size_t)a->executable->n_out;
  a->dims = a->executable->out_dims;
  a->dim_sizes = a->executable->out_ranks;
  return NULL;
}

ENTRY(Executable_Fingerprint) {
  a->executable_fingerprint = a->executable->fingerprint;
  a->executable_fingerprint_size = strlen(a->executable->fingerprint);
  return NULL;
}

/* ---- loaded ones ---- */

ENTRY(LoadedExecutable_Destroy) {
  loaded_release(a->executable);
  return NULL;
}

ENTRY(LoadedExecutable_GetExecutable) {
  a->executable = executable_retain(a->loaded_executable->exe);
  return NULL;
}

ENTRY(LoadedExecutable_AddressableDevices) {
  a->addressable_devices = a->executable->near_devices;
  a->num_addressable_devices = (size_t)a->executable->n_near;
  return NULL;
}

ENTRY(LoadedExecutable_AddressableDeviceLogicalIds) {
  a->addressable_device_logical_ids = a->executable->logical;
  a->num_addressable_device_logical_ids = (size_t)a->executable->n_near;
  return NULL;
}

ENTRY(LoadedExecutable_Delete) {
  a->executable->deleted = true;
  return NULL;
}

ENTRY(LoadedExecutable_IsDeleted) {
  a->is_deleted = a->executable->deleted;
  return NULL;
}

ENTRY(LoadedExecutable_Fingerprint) {
  a->executable_fingerprint = a->executable->exe->fingerprint;
  a->executable_fingerprint_size = strlen(a->executable->exe->fingerprint);
  return NULL;
}

static void assignment_free(PJRT_DeviceAssignmentSerialized *p) { free(p); }

ENTRY(LoadedExecutable_GetDeviceAssignment) {
  PJRT_LoadedExecutable *l = a->executable;
  Buf b = {0};
  device_assignment_proto(&b, l->exe->opts.replicas, l->exe->opts.partitions, l->ids);
  a->serialized_bytes = b.p;
  a->serialized_bytes_size = b.n;
  a->serialized_device_assignment = (PJRT_DeviceAssignmentSerialized *)b.p;
  a->serialized_device_assignment_deleter = assignment_free;
  return NULL;
}

/* ---- the shardings extension ---- */

static PJRT_Error *parameter_shardings(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args *a) {
  a->num_parameters = (size_t)a->executable->n_in;
  a->shardings = (const char *const *)a->executable->sharding_in;
  a->sharding_sizes = a->executable->sharding_in_sizes;
  return NULL;
}

static PJRT_Error *output_shardings(PJRT_Shardings_PJRT_Executable_OutputShardings_Args *a) {
  /* NULL without results: an empty list is an error to jaxlib */
  const PJRT_Executable *x = a->executable;
  a->num_outputs = (size_t)x->n_out;
  a->shardings = x->n_out ? (const char *const *)x->sharding_out : NULL;
  a->sharding_sizes = x->n_out ? x->sharding_out_sizes : NULL;
  return NULL;
}

const PJRT_Shardings_Extension shardings_extension = {
    .base = {sizeof shardings_extension, PJRT_Extension_Type_SHARDINGS,
             (PJRT_Extension_Base *)(uintptr_t)&layouts_extension},
    .PJRT_Shardings_PJRT_Executable_ParameterShardings = parameter_shardings,
    .PJRT_Shardings_PJRT_Executable_OutputShardings = output_shardings,
};
