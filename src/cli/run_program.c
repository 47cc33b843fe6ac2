/* weft run through a PJRT plugin: compile, send the arguments, run, fetch the results. */
#include "cli/run.h"

#include "base/units.h"
#include "chip/chip.h"
#include "compile/pass/pass.h"
#include "compile/spmd/propagate.h"
#include "interp/interp.h"

#include <stdio.h>
#include <stdlib.h>

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

/* A program on its plugin. */
typedef struct Run {
  Client *client;
  ClientProgram *program;
  Cuts cuts;
  int procs, n_in, n_out;
  Tensor **in;                /* n_in, whole */
  ClientBuffer **args, **out; /* by process, n_in and n_out each */
} Run;

/* The plugin that was asked for, else weft's own with the device that was. */
static Err *open_client(const RunArgs *a, int procs, Client **out) {
  ClientOption opts[RUN_MAX_OPTIONS + 1];
  int n = a->n_options;
  memcpy(opts, a->options, sizeof *opts * (size_t)n);
  char *spec = NULL;
  if (!a->plugin) {
    const char *given = a->device ? a->device : env_get("WEFT_DEVICE");
    const char *device = given ? given : "cpu";
    bool plain = !strchr(device, ':') &&
                 (!strcmp(device, "cpu") || !strcmp(device, "interp") || !strcmp(device, "null"));
    spec = plain && procs > 1 ? xasprintf("%s:%d", device, procs) : xstrdup(device);
    opts[n++] = (ClientOption){.name = "device", .str = spec};
  }
  Err *e = client_open(a->plugin, opts, n, out);
  free(spec);
  return e;
}

static void print_compiled(const Run *r) {
  ClientStats stats;
  client_program_stats(r->program, &stats);
  printf("compiled for %s\n", client_platform(r->client));
  print_stats(&stats);
}

static void free_buffers(Run *r) {
  for (int i = 0; i < r->n_in * r->procs; i++) client_buffer_free(r->args[i]), r->args[i] = NULL;
  for (int i = 0; i < r->n_out * r->procs; i++) client_buffer_free(r->out[i]), r->out[i] = NULL;
}

/* Arguments are sent again for each run, as it may take their memory. */
static Err *run_once(Run *r, double *seconds) {
  free_buffers(r);
  for (int d = 0; d < r->procs; d++)
    for (int i = 0; i < r->n_in; i++)
      TRY(send_argument(r->client, &r->cuts, r->procs, d, i, r->in[i], &r->args[d * r->n_in + i]));
  double begin = time_now_s();
  TRY(client_execute(r->program, r->args, r->n_in, r->out));
  for (int i = 0; i < r->n_out * r->procs; i++) TRY(client_buffer_wait(r->out[i]));
  *seconds = time_now_s() - begin;
  return NULL;
}

static Err *run_repeated(const RunArgs *a, Run *r) {
  int n = MAX(a->repeat, 1);
  double *seconds = xcalloc((size_t)n, sizeof *seconds);
  Err *e = NULL;
  for (int i = 0; i < n && !e; i++) e = run_once(r, &seconds[i]);
  if (!e && a->repeat) print_times(a, seconds, n);
  free(seconds);
  return e;
}

static Err *take_results(const RunArgs *a, const Run *r) {
  Tensor **results = xcalloc((size_t)r->n_out + 1, sizeof *results);
  Err *e = NULL;
  for (int j = 0; j < r->n_out && !e; j++) {
    if (client_buffer_type(r->out[j]) == DT_TOKEN) continue;
    e = fetch_result(&r->cuts, r->procs, r->out, r->n_out, j, &results[j]);
    if (!e && !a->out) run_print_result(j, results[j]);
  }
  if (!e && a->out) e = run_write_results(a->out, results, r->n_out);
  for (int j = 0; j < r->n_out; j++) tensor_release(results[j]);
  free(results);
  return e;
}

/* By argument or result of f: does the program leave its sharding open? The caller frees the list. */
static bool *open_ends(NamedAttr *const *attrs, const int *n_attrs, int n) {
  bool *open = xcalloc((size_t)n + 1, sizeof *open);
  for (int i = 0; i < n; i++)
    open[i] = !attrs_get(attrs[i], n_attrs[i], "sdy.sharding") &&
              !attrs_get(attrs[i], n_attrs[i], "mhlo.sharding");
  return open;
}

static Err *compile_for_topology(const RunArgs *a, Str bytes, const ClientCompileOpts *opts) {
  ClientStats stats;
  char *platform = NULL;
  TRY(client_compile_only(a->plugin, a->topology, bytes, opts, &stats, &platform));
  printf("compiled for %s (%s)\n", a->topology, platform);
  print_stats(&stats);
  free(platform);
  return NULL;
}

Err *run_program(const RunArgs *a, const Module *m, const Func *f, Str bytes) {
  ClientCompileOpts opts = {.replicas = cli_attr_count(m, "mhlo.num_replicas"),
                            .partitions = cli_attr_count(m, "mhlo.num_partitions")};
  if (a->topology) { /* nothing is sent or joined: the compiler may cut what the program leaves open */
    bool *args = open_ends(f->arg_attrs, f->n_arg_attrs, f->type->n_elems),
         *results = open_ends(f->res_attrs, f->n_res_attrs, f->type->n_results);
    opts.free_args = args, opts.n_args = f->type->n_elems;
    opts.free_results = results, opts.n_results = f->type->n_results;
    Err *e = compile_for_topology(a, bytes, &opts);
    free(args);
    free(results);
    return e;
  }
  Run r = {.procs = opts.replicas * opts.partitions,
           .n_in = f->type->n_elems,
           .n_out = f->type->n_results};
  TRY(open_client(a, r.procs, &r.client));
  r.in = xcalloc((size_t)r.n_in + 1, sizeof *r.in);
  r.args = xcalloc((size_t)(r.n_in * r.procs) + 1, sizeof *r.args);
  r.out = xcalloc((size_t)(r.n_out * r.procs) + 1, sizeof *r.out);
  Err *e = client_compile(r.client, bytes, &opts, &r.program);
  if (!e && a->compile_only) {
    print_compiled(&r);
  } else {
    if (!e) e = run_read_inputs(a, f, r.in);
    if (!e) e = cuts_open(m, r.procs, &r.cuts);
    if (!e) e = run_repeated(a, &r);
    if (!e) e = take_results(a, &r);
  }
  free_buffers(&r);
  for (int i = 0; i < r.n_in; i++) tensor_release(r.in[i]);
  free(r.in);
  free(r.args);
  free(r.out);
  module_free(r.cuts.m);
  client_program_free(r.program);
  client_close(r.client);
  return e;
}
