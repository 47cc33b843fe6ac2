/* weft run: one StableHLO program, from a file, on any device or plugin; inputs and outputs are
 * .npz files. */
#include "cli/cli.h"

#include "base/npy.h"
#include "base/units.h"
#include "chip/chip.h"
#include "client/client.h"
#include "compile/pass/pass.h"
#include "compile/spmd/propagate.h"
#include "dev/dev.h"
#include "interp/interp.h"
#include "stablehlo/stablehlo.h"

#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "usage: weft run PROGRAM [options]\n"
    "\n"
    "PROGRAM is StableHLO text (.mlir) or portable bytecode (.mlirbc); - reads standard input.\n"
    "\n"
    "  --device D       interp, cpu, cpu:8 (eight host devices), or a chip as clouds name it:\n"
    "                   tpu-v3-8, tpu-v5litepod-4, A100-80GB:8, T4 (default: $WEFT_DEVICE, else "
    "cpu)\n"
    "  --in FILE.npz    in0, in1, ... in the order of @main's arguments\n"
    "  --out FILE.npz   gets out0, out1, ...; without it results are printed\n"
    "  --plugin PATH    run on another PJRT plugin (libtpu.so, XLA's CPU or CUDA plugin)\n"
    "  --option K=V     create option for the plugin (repeatable; a number is sent as a number)\n"
    "  --compile-only   compile and print what the compiler says of memory and cost\n"
    "  --topology T     compile for T without devices (with --plugin libtpu.so: v5e:2x2)\n"
    "  --parse-only     read and verify, print nothing\n"
    "  --print          print the program as StableHLO text and stop\n"
    "  --repeat N       run N times; prints the first run's time, the median and the range of the "
    "others\n"
    "  --help           this text\n"
    "\n"
    "Types that numpy lacks are stored as unsigned integers of their width (bfloat16 as uint16, f8 "
    "and i4 as one\n"
    "uint8 an element). Exit status: 0 good, 1 an error or a failed check.expect_*, 2 wrong "
    "usage.\n";

#define MAX_OPTIONS 16

typedef struct RunArgs {
  const char *program, *device, *in, *out, *plugin, *topology;
  bool compile_only, parse_only, print;
  int repeat;
  ClientOption options[MAX_OPTIONS];
  int n_options;
} RunArgs;

static int64_t attr_count(const Module *m, const char *name) {
  const Attr *a = attrs_get(m->attrs, m->n_attrs, name);
  return a && a->kind == AT_INT && a->i > 0 && a->i < 1 << 20 ? a->i : 1;
}

static Err *read_inputs(const RunArgs *a, const Func *f, Tensor **in) {
  int n = f->type->n_elems;
  if (n && !a->in)
    return err_hint(err_new(ERR_INVALID, "@%.*s takes %d arguments", STR_ARG(f->name), n),
                    "give them with --in FILE.npz (in0, in1, ...)");
  Npz z = {0};
  if (a->in) TRY(npz_read(a->in, &z));
  Err *e = NULL;
  for (int i = 0; i < n && !e; i++) {
    char name[24];
    snprintf(name, sizeof name, "in%d", i);
    Type *t = f->type->elems[i];
    const Npy *got = npz_find(&z, name);
    if (!got) {
      Buf names = {0};
      for (int k = 0; k < z.n; k++) buf_printf(&names, "%s%s", k ? ", " : "", z.arrays[k].name);
      e = err_hint(err_new(ERR_NOT_FOUND, "%s has no array '%s'", a->in, name),
                   "it has %s; the arguments of @%.*s are in0 to in%d", names.p ? names.p : "none",
                   STR_ARG(f->name), n - 1);
      buf_free(&names);
      break;
    }
    if (!npy_holds(got->dtype, t->dtype)) {
      e = err_new(ERR_INVALID, "%s of %s is %s, the program takes %s", name, a->in,
                  dtype_name(got->dtype), dtype_name(t->dtype));
      break;
    }
    bool same = !e && got->rank == t->rank;
    for (int k = 0; same && k < t->rank; k++) same = t->dims[k] < 0 || t->dims[k] == got->dims[k];
    if (!e && !same) {
      Buf want = {0}, have = {0};
      type_print(&want, t);
      for (int k = 0; k < got->rank; k++)
        buf_printf(&have, "%s%lld", k ? "x" : "", (long long)got->dims[k]);
      e = err_new(ERR_INVALID, "%s of %s has shape [%s], the program takes %s", name, a->in,
                  have.p ? have.p : "", want.p);
      buf_free(&want);
      buf_free(&have);
    }
    if (!e) e = tensor_new(t->dtype, got->rank, got->dims, &in[i]);
    if (!e && in[i]->count) memcpy(in[i]->data, got->data, tensor_bytes(in[i]));
    /* stored as the low bits; in memory narrow signed types are sign-extended */
    for (int64_t k = 0; !e && (t->dtype == DT_I4 || t->dtype == DT_I2) && k < in[i]->count; k++)
      elem_set_i64(t->dtype, tensor_at(in[i], k), *(uint8_t *)tensor_at(in[i], k));
  }
  npz_free(&z);
  return e;
}

/* Elements of a result for people, the first few. */
static void print_tensor(int index, const Tensor *t) {
  printf("out%d %s[", index, dtype_name(t->dtype));
  for (int i = 0; i < t->rank; i++) printf("%s%lld", i ? "," : "", (long long)t->dims[i]);
  printf("]");
  for (int64_t i = 0; i < MIN(t->count, 8); i++) {
    const char *p = tensor_at(t, i);
    if (dtype_is_complex(t->dtype)) {
      DType r = dtype_real_of(t->dtype);
      printf(" (%g,%g)", elem_get_f64(r, p), elem_get_f64(r, p + dtype_bytes(r)));
    } else if (dtype_is_float(t->dtype)) {
      printf(" %g", elem_get_f64(t->dtype, p));
    } else {
      printf(" %lld", (long long)elem_get_i64(t->dtype, p));
    }
  }
  printf("%s\n", t->count > 8 ? " ..." : "");
}

static void print_stats(const ClientStats *s) {
  const struct {
    const char *name;
    int64_t bytes;
  } rows[] = {{"arguments", s->argument_bytes}, {"outputs", s->output_bytes},
              {"aliased", s->alias_bytes},      {"temporaries", s->temp_bytes},
              {"peak", s->peak_bytes},          {"code", s->code_bytes}};
  for (int i = 0; i < COUNT_OF(rows); i++)
    if (rows[i].bytes >= 0)
      printf("%-14s %15lld bytes  %10.3f MiB\n", rows[i].name, (long long)rows[i].bytes,
             (double)rows[i].bytes / 1048576.0);
  if (s->flops >= 0) printf("%-14s %15.6g\n", "flops", s->flops);
  if (s->transcendentals >= 0) printf("%-14s %15.6g\n", "transcendentals", s->transcendentals);
  if (s->bytes_accessed >= 0) printf("%-14s %15.6g bytes\n", "bytes accessed", s->bytes_accessed);
  if (s->optimal_s >= 0) printf("%-14s %15.6g s\n", "optimal time", s->optimal_s);
}

/* How the arguments and results of a program over several processes are cut: what the program says,
 * and for results what propagation brings, which is what weft's plugin chooses. */
typedef struct Cuts {
  Module *m; /* NULL: one process, nothing is cut */
  const Func *f;
} Cuts;

static Err *cuts_open(const Module *m, int procs, Cuts *out) {
  *out = (Cuts){0};
  if (procs == 1) return NULL;
  out->m = module_clone(m);
  shardings_from_gspmd(out->m, procs); /* as the plugin does */
  TRY(pass_inline(out->m));
  pass_propagate(out->m, false);
  out->f = module_main(out->m);
  return NULL;
}

static Err *cut_of(const Cuts *c, int i, bool result, int procs, const Sharding **s,
                   const Mesh **mesh) {
  *s = NULL;
  if (!c->m) return NULL;
  const NamedAttr *attrs = result ? c->f->res_attrs[i] : c->f->arg_attrs[i];
  int n = result ? c->f->n_res_attrs[i] : c->f->n_arg_attrs[i];
  const Type *t = result ? c->f->type->results[i] : c->f->type->elems[i];
  const Attr *a = attrs_get(attrs, n, "sdy.sharding");
  if (a && a->kind == AT_SHARDING) {
    *s = a->sharding;
    *mesh = a->sharding->mesh ? a->sharding->mesh : module_mesh(c->m, a->sharding->mesh_name);
    if (!*mesh || !(*mesh)->n_axes) *s = NULL;
    return NULL;
  }
  a = attrs_get(attrs, n, "mhlo.sharding");
  Sharding *own = NULL;
  Mesh *own_mesh = NULL;
  if (a && a->kind == AT_STRING)
    TRY(sharding_from_gspmd(c->m, a->s, t->rank, procs, &own, &own_mesh));
  *s = own;
  *mesh = own_mesh;
  return NULL;
}

/* Argument i for process d. */
static Err *send_argument(Client *c, const Cuts *cuts, int procs, int d, int i, Tensor *whole,
                          ClientBuffer **out) {
  const Sharding *s;
  const Mesh *mesh;
  TRY(cut_of(cuts, i, false, procs, &s, &mesh));
  Tensor *t = NULL;
  if (s) TRY(shard_cut(whole, s, mesh, d, &t));
  else t = tensor_retain(whole);
  Err *e = client_buffer_from_host(c, d, t->dtype, t->rank, t->dims, t->data, out);
  tensor_release(t);
  return e;
}

static Err *fetch_buffer(ClientBuffer *b, Tensor **out) {
  int rank;
  const int64_t *dims;
  Tensor *t;
  TRY(client_buffer_dims(b, &rank, &dims));
  TRY(tensor_new(client_buffer_type(b), rank, dims, &t));
  Err *e = client_buffer_to_host(b, t->data, tensor_bytes(t));
  if (e) tensor_release(t);
  else *out = t;
  return e;
}

/* Result j, joined from all processes. outs: by process, n_out each. */
static Err *fetch_result(const Cuts *cuts, int procs, ClientBuffer *const *outs, int n_out, int j,
                         Tensor **out) {
  const Sharding *s;
  const Mesh *mesh;
  TRY(cut_of(cuts, j, true, procs, &s, &mesh));
  if (!s) return fetch_buffer(outs[j], out);
  const Type *whole = cuts->f->type->results[j];
  Tensor **blocks = xcalloc((size_t)procs, sizeof *blocks);
  Err *e = NULL;
  for (int d = 0; d < procs && !e; d++) e = fetch_buffer(outs[d * n_out + j], &blocks[d]);
  bool is_whole = !e && blocks[0]->rank == whole->rank;
  for (int k = 0; is_whole && k < whole->rank; k++) is_whole = blocks[0]->dims[k] == whole->dims[k];
  if (!e && is_whole) *out = tensor_retain(blocks[0]); /* the plugin chose to replicate it */
  else if (!e) e = shard_join(blocks, procs, s, mesh, whole->rank, whole->dims, out);
  for (int d = 0; d < procs; d++) tensor_release(blocks[d]);
  free(blocks);
  return e;
}

/* numpy has no narrow signed integers: the low bits are stored. */
static void mask_narrow(Tensor *t) {
  int bits = dtype_bits(t->dtype);
  if (dtype_class(t->dtype) != DC_SINT || bits >= 8) return;
  for (int64_t k = 0; k < t->count; k++) *(uint8_t *)tensor_at(t, k) &= (uint8_t)((1 << bits) - 1);
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* The first run apart: it touches memory and reads files that later ones find ready. */
static void print_times(const RunArgs *a, double *seconds, int n) {
  char first[UNITS_TEXT], median[UNITS_TEXT], least[UNITS_TEXT], most[UNITS_TEXT];
  int later = n - 1;
  printf("first run %s", units_time(first, seconds[0]));
  if (later) {
    qsort(seconds + 1, (size_t)later, sizeof *seconds, by_value);
    printf("; %d more: median %s, %s to %s", later, units_time(median, seconds[1 + later / 2]),
           units_time(least, seconds[1]), units_time(most, seconds[later]));
  }
  const char *device = a->device ? a->device : env_get("WEFT_DEVICE");
  ChipRef chip;
  Err *other = device && !a->plugin ? chip_parse(device, &chip) : NULL;
  bool on_chip = device && !a->plugin && !other;
  err_free(other);
  puts(on_chip ? " (of this machine; weft estimate tells the chip's)" : "");
}

static Err *run_on_plugin(const RunArgs *a, const Module *m, const Func *f, Str bytes) {
  ClientCompileOpts co = {(int)attr_count(m, "mhlo.num_replicas"),
                          (int)attr_count(m, "mhlo.num_partitions")};
  int procs = co.replicas * co.partitions;
  if (a->topology) {
    ClientStats stats;
    char *platform = NULL;
    TRY(client_compile_only(a->plugin, a->topology, bytes, &co, &stats, &platform));
    printf("compiled for %s (%s)\n", a->topology, platform);
    print_stats(&stats);
    free(platform);
    return NULL;
  }
  ClientOption opts[MAX_OPTIONS + 2];
  int n_opts = a->n_options;
  memcpy(opts, a->options, sizeof *opts * (size_t)n_opts);
  char *spec = NULL;
  if (!a->plugin) {
    const char *device = a->device                ? a->device
                         : env_get("WEFT_DEVICE") ? env_get("WEFT_DEVICE")
                                                  : "cpu";
    bool plain = !strchr(device, ':') &&
                 (!strcmp(device, "cpu") || !strcmp(device, "interp") || !strcmp(device, "null"));
    spec = plain && procs > 1 ? xasprintf("%s:%d", device, procs) : xstrdup(device);
    opts[n_opts++] = (ClientOption){.name = "device", .str = spec};
  }
  Client *c = NULL;
  Err *e = client_open(a->plugin, opts, n_opts, &c);
  free(spec);
  if (e) return e;
  int n_in = f->type->n_elems, n_out = f->type->n_results;
  ClientProgram *p = NULL;
  Tensor **in = xcalloc((size_t)n_in, sizeof *in);
  ClientBuffer **args = xcalloc((size_t)(n_in * procs), sizeof *args);
  ClientBuffer **outs = xcalloc((size_t)(n_out * procs), sizeof *outs);
  Npy *arrays = xcalloc((size_t)n_out, sizeof *arrays);
  int n_arrays = 0;
  Cuts cuts = {0};
  VEC(double) seconds = {0};
  e = client_compile(c, bytes, &co, &p);
  if (!e && a->compile_only) {
    ClientStats stats;
    client_program_stats(p, &stats);
    printf("compiled for %s\n", client_platform(c));
    print_stats(&stats);
    goto out;
  }
  if (!e) e = read_inputs(a, f, in);
  if (!e) e = cuts_open(m, procs, &cuts);
  for (int r = 0; r < MAX(a->repeat, 1) && !e; r++) {
    for (int i = 0; i < n_in * procs; i++) client_buffer_free(args[i]), args[i] = NULL;
    for (int i = 0; i < n_out * procs; i++) client_buffer_free(outs[i]), outs[i] = NULL;
    for (int d = 0; d < procs && !e; d++)
      for (int i = 0; i < n_in && !e; i++)
        e = send_argument(c, &cuts, procs, d, i, in[i], &args[d * n_in + i]);
    double t0 = time_now_s();
    if (!e) e = client_execute(p, args, n_in, outs);
    for (int i = 0; i < n_out * procs && !e; i++) e = client_buffer_wait(outs[i]);
    if (!e && a->repeat) *vec_push(&seconds) = time_now_s() - t0;
  }
  if (!e && a->repeat) print_times(a, seconds.v, seconds.n);
  for (int j = 0; j < n_out && !e; j++) {
    if (client_buffer_type(outs[j]) == DT_TOKEN) continue;
    Tensor *t = NULL;
    e = fetch_result(&cuts, procs, outs, n_out, j, &t);
    if (e) break;
    if (!e && a->out) {
      Npy *w = &arrays[n_arrays++];
      *w = (Npy){
          .name = xasprintf("out%d", j), .dtype = t->dtype, .rank = t->rank, .count = t->count};
      if (t->rank) memcpy(w->dims, t->dims, sizeof *t->dims * (size_t)t->rank);
      mask_narrow(t);
      w->data = xmalloc(tensor_bytes(t));
      memcpy(w->data, t->data, tensor_bytes(t));
    } else if (!e) {
      print_tensor(j, t);
    }
    tensor_release(t);
  }
  if (!e && a->out) e = npz_write(a->out, arrays, n_arrays);
out:
  for (int j = 0; j < n_arrays; j++) npy_free(&arrays[j]);
  free(arrays);
  vec_free(&seconds);
  module_free(cuts.m);
  for (int i = 0; i < n_in; i++) tensor_release(in[i]);
  for (int i = 0; i < n_in * procs; i++) client_buffer_free(args[i]);
  for (int i = 0; i < n_out * procs; i++) client_buffer_free(outs[i]);
  free(in);
  free(args);
  free(outs);
  client_program_free(p);
  client_close(c);
  return e;
}

/* ---- self-checking files: several modules, functions without arguments, check.* ops ---- */

static Err *run_function(Dev *dev, const Module *m, const Func *f) {
  if (!strcmp(dev->ops->name, "interp")) {
    int n = f->type->n_results;
    Shards *res = xcalloc((size_t)n, sizeof *res);
    Err *e = interp_run(m, f->name, NULL, NULL, 0, res, n);
    for (int j = 0; j < n; j++) shards_free(&res[j]);
    free(res);
    return e;
  }
  Module *copy = module_clone(m);
  Func *g = module_func(copy, f->name);
  g->name = STR("main");
  DevProgram *p = NULL;
  Err *e = dev_compile(dev, copy, NULL, &p);
  module_free(copy);
  if (e) return e;
  DevBuffer **outs = xcalloc((size_t)p->n_results, sizeof *outs);
  int device = 0;
  DevBuffer *const *args[1] = {NULL};
  DevBuffer **const out_lists[1] = {outs};
  e = dev_execute(p, &device, args, NULL, out_lists, NULL);
  for (int j = 0; j < p->n_results; j++) dev_buffer_release(outs[j]);
  free(outs);
  dev_program_release(p);
  return e;
}

/* Runs every public function without arguments. Failures are reported one by one. */
static Err *run_checks(const RunArgs *a, Module **modules, int n) {
  Dev *dev = NULL;
  TRY(dev_open(a->device, &dev));
  int ran = 0, failed = 0;
  for (int i = 0; i < n; i++)
    for (int k = 0; k < modules[i]->funcs.n; k++) {
      const Func *f = modules[i]->funcs.v[k];
      bool only_main = module_func(modules[i], STR("main")) && !str_is(f->name, "main");
      if (f->is_private || !f->body || f->type->n_elems || only_main) continue;
      ran++;
      Err *e = run_function(dev, modules[i], f);
      if (!e) continue;
      failed++;
      err_report(err_wrap(e, "@%.*s", STR_ARG(f->name)));
    }
  dev_close(dev);
  if (failed) return err_new(ERR_ABORTED, "%d of %d functions failed", failed, ran);
  printf("%d functions passed\n", ran);
  return NULL;
}

static Err found_check; /* its address says: yes */

static Err *find_check(Op *op, void *arg) {
  (void)arg;
  bool call = op->kind == OP_CUSTOM_CALL && str_starts(op_str(op, "call_target_name"), "check.");
  return call || op_info[op->kind].cls == OC_TEST ? &found_check : NULL;
}

/* Files of several modules, of functions that check themselves. */
static bool is_self_checking(Module *const *modules, int n) {
  if (n != 1) return true;
  const Func *f = module_func(modules[0], STR("main"));
  if (f && f->type->n_elems) return false;
  for (int k = 0; k < modules[0]->funcs.n; k++)
    if (modules[0]->funcs.v[k]->body && ir_walk(modules[0]->funcs.v[k]->body, find_check, NULL))
      return true;
  return false;
}

/* Operations that nobody has heard of are a matter for other plugins. */
static Err *is_known(Op *op, void *unused) {
  (void)unused;
  if (op->kind != OP_UNKNOWN) return NULL;
  Nearest near = {.want = op->name};
  for (int k = 1; k < OP_COUNT; k++) nearest_see(&near, op_info[k].name);
  Err *e = op_err(op, ERR_UNIMPLEMENTED, "no such operation");
  return near.best ? err_hint(e, "did you mean %s?", near.best) : e;
}

static Err *run(const RunArgs *a) {
  Buf bytes = {0};
  TRY(file_read(a->program, &bytes));
  Str program = {bytes.p, bytes.n};
  Module **modules = NULL;
  int n = 0;
  Err *e;
  if (bytes.n >= 4 && !memcmp(bytes.p, "ML\xefR", 4)) {
    modules = xcalloc(1, sizeof *modules);
    n = 1;
    e = stablehlo_read(a->program, program, &modules[0]);
  } else {
    e = stablehlo_read_text_split(a->program, program, &modules, &n);
  }
  for (int i = 0; i < n && !e; i++) e = ir_verify(modules[i]);
  if (!e && a->print) {
    Buf text = {0};
    for (int i = 0; i < n; i++) {
      if (i) buf_cstr(&text, "\n// -----\n\n");
      stablehlo_write_text(&text, modules[i], NULL);
    }
    fwrite(text.p, 1, text.n, stdout);
    buf_free(&text);
  } else if (!e && !a->parse_only) {
    const Func *f = n ? module_main(modules[0]) : NULL;
    for (int i = 0; i < n && !e && !a->plugin; i++)
      for (int k = 0; k < modules[i]->funcs.n && !e; k++)
        if (modules[i]->funcs.v[k]->body) e = ir_walk(modules[i]->funcs.v[k]->body, is_known, NULL);
    if (e) goto out;
    if (!a->plugin && is_self_checking(modules, n)) e = run_checks(a, modules, n);
    else if (!f || !f->body) e = err_new(ERR_INVALID, "%s has no @main", a->program);
    else e = run_on_plugin(a, modules[0], f, program);
  }
out:
  for (int i = 0; i < n; i++) module_free(modules[i]);
  free(modules);
  buf_free(&bytes);
  return e;
}

static int cmd_run(int argc, char **argv) {
  enum {
    DEVICE = CLI_FIRST,
    IN,
    OUT,
    PLUGIN,
    OPTION,
    COMPILE_ONLY,
    TOPOLOGY,
    PARSE_ONLY,
    PRINT,
    REPEAT
  };
  static const struct option options[] = {{"device", required_argument, NULL, DEVICE},
                                          {"in", required_argument, NULL, IN},
                                          {"out", required_argument, NULL, OUT},
                                          {"plugin", required_argument, NULL, PLUGIN},
                                          {"option", required_argument, NULL, OPTION},
                                          {"compile-only", no_argument, NULL, COMPILE_ONLY},
                                          {"topology", required_argument, NULL, TOPOLOGY},
                                          {"parse-only", no_argument, NULL, PARSE_ONLY},
                                          {"print", no_argument, NULL, PRINT},
                                          {"repeat", required_argument, NULL, REPEAT},
                                          CLI_HELP_ROW,
                                          {0}};
  RunArgs a = {0};
  CliArgs args = {argc, argv, options, 0};
  for (int o; (o = cli_next(&args)) != -1;) switch (o) {
    case DEVICE: a.device = optarg; break;
    case IN: a.in = optarg; break;
    case OUT: a.out = optarg; break;
    case PLUGIN: a.plugin = optarg; break;
    case COMPILE_ONLY: a.compile_only = true; break;
    case TOPOLOGY:
      a.topology = optarg;
      a.compile_only = true;
      break;
    case PARSE_ONLY: a.parse_only = true; break;
    case PRINT: a.print = true; break;
    case REPEAT:
      if (!cli_int(&args, 1, &a.repeat)) return 2;
      break;
    case OPTION:
      if (!cli_plugin_option(&args, a.options, &a.n_options, MAX_OPTIONS)) return 2;
      break;
    case CLI_HELP: return fputs(usage, stdout), 0;
    default: return 2;
    }
  if (optind != argc - 1) return cli_wrong(&args, "one PROGRAM, please");
  a.program = argv[optind];
  Err *e = run(&a);
  if (!e) return 0;
  err_report(e);
  return 1;
}

const CliVerb cli_run = {"run", "run one StableHLO program on a device or plugin", cmd_run};
