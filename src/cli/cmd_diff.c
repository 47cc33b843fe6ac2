/* weft diff: one program on two devices, value by value: names the first operation whose results
 * part, and by how much.
 *
 * The program is inlined and what its operations compute becomes a result, so that both devices show
 * all intermediate values of one run; where they would take more than AT_ONCE, of several runs, one
 * for each stretch of the program. What only moves numbers has its operands' error. The error of a
 * value is max|a - b| / max|a|, so that it does not depend on scale. Values inside loops and branches
 * show only as the loop's results.
 */
#include "cli/cli.h"

#include "base/npy.h"
#include "compile/pass/pass.h"
#include "dev/dev.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "usage: weft diff PROGRAM --devices A,B [options]\n"
    "\n"
    "Runs PROGRAM (.mlir, .mlirbc) on two devices and names the first operation whose results "
    "part.\n"
    "\n"
    "  --devices A,B    for example cpu,tpu-v3-8 or interp,cpu (default: cpu,interp)\n"
    "  --in FILE.npz    in0, in1, ...; without it inputs are normal random numbers of a fixed "
    "seed\n"
    "  --tol X          what counts as parting: max|a-b| / max|a| (default 1e-5)\n"
    "  --top N          also list the N operations that add the most error (default 5); 0: stop\n"
    "                   at the first, which spares most of the time of a large program\n"
    "  --json           the same as one JSON object\n"
    "  --help           this text\n"
    "\n"
    "Exit status: 0 nothing parts, 1 something does or an error, 2 wrong usage.\n";

typedef struct DiffArgs {
  const char *program, *devices, *in;
  double tol;
  int top;
  bool json;
} DiffArgs;

#define AT_ONCE (1u << 30) /* bytes of values held of one device */

/* Its results have no error that its operands have not. */
static bool only_moves(const Op *op) {
  switch (op->kind) {
  case OP_BROADCAST_IN_DIM:
  case OP_BROADCAST:
  case OP_RESHAPE:
  case OP_TRANSPOSE:
  case OP_SLICE:
  case OP_REVERSE:
  case OP_CONCATENATE:
  case OP_PAD:
  case OP_IOTA:
  case OP_CONSTANT: return true;
  default: return false;
  }
}

/* The tensors that ops of the body compute, in program order. */
static Value **computed(const Func *f, int *out_n) {
  VEC(Value *) v = {0};
  for (Op *op = f->body->first; op; op = op->next)
    for (int i = 0; i < op->n_results; i++)
      if (!only_moves(op) && type_is_static(op->results[i].type)) *vec_push(&v) = &op->results[i];
  *out_n = v.n;
  return v.v;
}

/* These become the results of main. */
static void expose(Module *m, Func *f, Value *const *v, int n) {
  Op *ret = f->body->last;
  ret->operands = arena_dup(m->arena, v, sizeof(Value *) * (size_t)n);
  ret->n_operands = n;
  Type **types = xmalloc(sizeof *types * (size_t)(n + 1));
  for (int i = 0; i < n; i++) types[i] = v[i]->type;
  f->type = type_func(m, f->type->n_elems, f->type->elems, n, types);
  f->res_attrs = ARENA_ARRAY(m->arena, NamedAttr *, n);
  f->n_res_attrs = ARENA_ARRAY(m->arena, int, n);
  for (int i = 0; i < f->type->n_elems; i++) f->n_arg_attrs[i] = 0; /* nothing may be donated */
  free(types);
}

static uint64_t next_bits(uint64_t *state) {
  return *state = *state * 6364136223846793005ull + 1442695040888963407ull;
}

/* One of NORMALS numbers that are normally distributed: a large network has a thousand million
 * inputs, too many for a logarithm and a cosine each. */
#define NORMALS 65536
static double next_normal(uint64_t *state) {
  static float some[NORMALS];
  if (!some[0]) {
    uint64_t own = 1234567;
    for (int k = 0; k < NORMALS; k++) {
      double u[2];
      for (int i = 0; i < 2; i++) u[i] = ((double)(next_bits(&own) >> 11) + 0.5) * 0x1p-53;
      some[k] = (float)(sqrt(-2 * log(u[0])) * cos(6.283185307179586 * u[1]));
    }
  }
  return some[next_bits(state) >> 48];
}

static Err *make_input(const DiffArgs *a, const Npz *z, int i, const Type *t, Tensor **out) {
  if (t->kind != TY_TENSOR || !type_is_static(t))
    return err_new(ERR_UNIMPLEMENTED, "argument %d has no fixed shape", i);
  TRY(tensor_new(t->dtype, t->rank, t->dims, out));
  Tensor *x = *out;
  if (a->in) {
    char name[24];
    snprintf(name, sizeof name, "in%d", i);
    const Npy *from = npz_find(z, name);
    if (!from || from->count != x->count || dtype_bytes(from->dtype) != dtype_bytes(x->dtype))
      return err_new(ERR_INVALID, "%s has no %s of the program's type", a->in, name);
    if (x->count) memcpy(x->data, from->data, tensor_bytes(x));
    return NULL;
  }
  uint64_t state = 1234567 + (uint64_t)i;
  bool is_complex = dtype_is_complex(t->dtype);
  DType real = dtype_real_of(t->dtype);
  for (int64_t k = 0; k < x->count * (is_complex ? 2 : 1); k++) {
    double v = next_normal(&state);
    char *p = (char *)x->data + (size_t)k * (size_t)dtype_bytes(real);
    elem_set_f64(real, p, dtype_is_float(real) ? v : fabs(floor(v * 4)));
  }
  return NULL;
}

static Err *known(const char *device) {
  Dev *dev = NULL;
  TRY(dev_open(device, &dev));
  dev_close(dev);
  return NULL;
}

static Err *run_on(const char *device, const Module *m, Tensor *const *in, Tensor **out,
                   int n_out) {
  Dev *dev = NULL;
  DevProgram *p = NULL;
  TRY(dev_open(device, &dev));
  Err *e = dev_compile(dev, m, NULL, &p);
  int n_in = e ? 0 : p->n_args, zero = 0;
  DevBuffer **args = xcalloc((size_t)n_in, sizeof *args),
            **res = xcalloc((size_t)n_out, sizeof *res);
  for (int i = 0; i < n_in && !e; i++)
    e = dev_buffer_new(dev, 0, tensor_retain(in[i]), true, &args[i]);
  DevBuffer *const *arg_lists[1] = {args};
  DevBuffer **const out_lists[1] = {res};
  if (!e) e = dev_execute(p, &zero, arg_lists, NULL, out_lists, NULL);
  for (int j = 0; j < n_out && !e; j++) out[j] = tensor_retain(res[j]->t);
  for (int i = 0; i < n_in; i++) dev_buffer_release(args[i]);
  for (int j = 0; j < n_out; j++) dev_buffer_release(res[j]);
  free(args);
  free(res);
  dev_program_release(p);
  dev_close(dev);
  return err_wrap(e, "on %s", device);
}

/* Most programs are of f32: without a call for each number. */
static void worst_of_f32(const float *a, const float *b, int64_t n, double *scale, double *worst,
                         int64_t *at) {
  for (int64_t k = 0; k < n; k++) {
    double x = a[k], y = b[k], d = x == y ? 0 : fabs(x - y);
    if (x != x && y != y) continue;
    if (d != d) d = INFINITY;
    if (d > *worst) *worst = d, *at = k;
    if (isfinite(x) && fabs(x) > *scale) *scale = fabs(x);
  }
}

/* max|a - b| / max|a|; infinity when one has a NaN where the other has none. *at: the worst
 * element. */
static double error_of(const Tensor *a, const Tensor *b, int64_t *at) {
  DType real = dtype_real_of(a->dtype);
  int64_t n = a->count * (dtype_is_complex(a->dtype) ? 2 : 1);
  size_t w = (size_t)dtype_bytes(real);
  double scale = 0, worst = 0;
  *at = 0;
  if (a->dtype == DT_F32) {
    worst_of_f32(a->data, b->data, n, &scale, &worst, at);
    n = 0;
  }
  for (int64_t k = 0; k < n; k++) {
    double x = elem_get_f64(real, (char *)a->data + (size_t)k * w),
           y = elem_get_f64(real, (char *)b->data + (size_t)k * w);
    if (isnan(x) && isnan(y)) continue;
    double d = x == y ? 0 : fabs(x - y);
    if (isnan(d)) d = INFINITY;
    if (d > worst) worst = d, *at = n == a->count ? k : k / 2;
    if (isfinite(x)) scale = fmax(scale, fabs(x));
  }
  return worst == 0 ? 0 : scale > 0 ? worst / scale : INFINITY;
}

static void print_line(const Value *v, double error) {
  Buf place = {0}, type = {0};
  op_place(&place, v->def);
  type_print(&type, v->type);
  Str name = op_full_name(v->def);
  if (isfinite(error)) printf("  %9.3g", error);
  else printf("  NaN in one"); /* or an infinity */
  printf("  %.*s  %s  %s\n", STR_ARG(name), type.p, place.n ? place.p : "");
  buf_free(&place);
  buf_free(&type);
}

static const char *reason(const Value *v) {
  OpKind k = v->def->kind;
  return k == OP_DOT || k == OP_DOT_GENERAL || k == OP_CONVOLUTION
             ? "products of f32 run in the matrix unit's precision; precision=HIGHEST asks for f32"
             : "";
}

typedef struct DiffResult {
  const char *first, *second;
  Value *const *values;
  int n, at_first; /* -1: nothing parts */
  int64_t at_element;
  const double *error; /* by value id */
  double *added;       /* error that an operation adds to its operands'; used up by next_worst */
} DiffResult;

/* The operation that adds most of what is left, -1: none. */
static int next_worst(DiffResult *r, double tol) {
  int best = -1;
  for (int j = 0; j < r->n; j++)
    if (r->added[j] > tol && (best < 0 || r->added[j] > r->added[best])) best = j;
  return best;
}

static void print_first(const char *first, const char *second, const Value *v, double error,
                        int64_t element) {
  printf("%s and %s part at element %lld of\n", first, second, (long long)element);
  print_line(v, error);
  if (*reason(v)) printf("  %s (%s)\n", reason(v), second);
  fflush(stdout); /* the rest of a large program takes minutes */
}

static void print_worst(const DiffArgs *a, DiffResult *r) {
  if (a->top) printf("\nmost error added\n");
  bool nan = false;
  for (int t = 0; t < a->top; t++) {
    int best = next_worst(r, a->tol);
    if (best < 0) break;
    double error = r->error[r->values[best]->id];
    nan |= !isfinite(error);
    print_line(r->values[best], error);
    r->added[best] = 0;
  }
  if (nan && !a->in)
    printf("\nThe inputs were normal random numbers, so that a variance may be below zero and its "
           "root "
           "NaN:\ngive real ones with --in FILE.npz\n");
}

static void json_op(Buf *b, const DiffResult *r, int j) {
  const Value *v = r->values[j];
  Buf text = {0};
  buf_printf(b, "{\"value\": %d, \"op\": ", j);
  buf_str(&text, op_full_name(v->def));
  buf_json_str(b, text.p);
  text.n = 0;
  type_print(&text, v->type);
  buf_cstr(b, ", \"type\": ");
  buf_json_str(b, text.p);
  buf_free(&text);
  op_place(&text, v->def);
  buf_cstr(b, ", \"place\": ");
  buf_json_str(b, text.p);
  buf_cstr(b, ", ");
  buf_json_num(b, "error", r->error[v->id]);
  buf_cstr(b, ", ");
  buf_json_num(b, "added", r->added[j]);
  buf_cstr(b, ", \"reason\": ");
  buf_json_str(b, reason(v));
  buf_byte(b, '}');
  buf_free(&text);
}

static void print_json(const DiffArgs *a, DiffResult *r) {
  Buf b = {0};
  buf_cstr(&b, "{\"devices\": [");
  buf_json_str(&b, r->first);
  buf_cstr(&b, ", ");
  buf_json_str(&b, r->second);
  buf_printf(&b, "], \"values\": %d, \"tol\": %g, \"agree\": %s, \"first\": ", r->n, a->tol,
             r->at_first < 0 ? "true" : "false");
  if (r->at_first < 0) buf_cstr(&b, "null");
  else json_op(&b, r, r->at_first);
  buf_printf(&b, ", \"element\": %lld, \"top\": [",
             (long long)(r->at_first < 0 ? -1 : r->at_element));
  for (int t = 0; t < a->top; t++) {
    int best = next_worst(r, a->tol);
    if (best < 0) break;
    buf_cstr(&b, t ? ",\n  " : "\n  ");
    json_op(&b, r, best);
    r->added[best] = 0;
  }
  buf_cstr(&b, "]}\n");
  fputs(b.p, stdout);
  buf_free(&b);
}

/* The error of each of n values on both devices, and where it is worst. */
static Err *errors_of(Module *m, Func *f, Value *const *v, int n, Tensor *const *in,
                      const char *first, const char *second, double *error, int64_t *at) {
  Tensor **x = xcalloc((size_t)n + 1, sizeof *x), **y = xcalloc((size_t)n + 1, sizeof *y);
  expose(m, f, v, n);
  Err *e = run_on(first, m, in, x, n);
  if (!e) e = run_on(second, m, in, y, n);
  for (int j = 0; j < n; j++) {
    if (!e) error[j] = error_of(x[j], y[j], &at[j]);
    tensor_release(x[j]);
    tensor_release(y[j]);
  }
  free(x);
  free(y);
  return e;
}

/* What each value's error adds to its operands' goes to r->added; r->error: by value id. */
static void settle(const Func *f, const double *of, double *error, DiffResult *r) {
  int j = 0;
  for (const Op *op = f->body->first; op; op = op->next) {
    double inherited = 0;
    for (int k = 0; k < op->n_operands; k++)
      inherited = fmax(inherited, error[op->operands[k]->id]);
    for (int k = 0; k < op->n_results; k++) {
      const Value *v = &op->results[k];
      error[v->id] = inherited;
      if (j == r->n || r->values[j] != v) continue;
      error[v->id] = of[j];
      r->added[j] = of[j] - inherited;
      j++;
    }
  }
  r->error = error;
}

static Err *compare(const DiffArgs *a, Module *m, Func *f, Tensor *const *in, const char *first,
                    const char *second, bool *parts) {
  int n = 0, at_first = -1;
  Value **values = computed(f, &n);
  double *of = xcalloc((size_t)n + 1, sizeof *of), *added = xcalloc((size_t)n + 1, sizeof *added);
  int64_t *at = xcalloc((size_t)n + 1, sizeof *at);
  Err *e = NULL;
  for (int j = 0, end; j < n && !e; j = end) {
    double bytes = 0;
    for (end = j; end < n && (end == j || bytes < AT_ONCE); end++)
      bytes += (double)type_count(values[end]->type) * dtype_bytes(values[end]->type->dtype);
    e = errors_of(m, f, values + j, end - j, in, first, second, of + j, at + j);
    for (int k = j; k < end && !e && at_first < 0; k++)
      if (of[k] > a->tol) at_first = k;
    if (at_first >= j && !a->json)
      print_first(first, second, values[at_first], of[at_first], at[at_first]);
    if (at_first >= 0 && !a->top) break; /* that was all that is asked for */
    if (!e && n > end - j) fprintf(stderr, "weft diff: %d of %d values compared\n", end, n);
  }
  if (!e) {
    ir_number(f);
    double *error = xcalloc((size_t)f->n_values + 1, sizeof *error);
    DiffResult r = {first, second, values, n, at_first, at_first < 0 ? 0 : at[at_first],
                    NULL,  added};
    settle(f, of, error, &r);
    *parts = at_first >= 0;
    if (a->json) print_json(a, &r);
    else if (*parts) print_worst(a, &r);
    else printf("%s and %s agree: %d values within %g of each other\n", first, second, n, a->tol);
    free(error);
  }
  free(values);
  free(of);
  free(added);
  free(at);
  return e;
}

/* One that is only cut at its ends runs whole on one device; what says itself what each device does,
 * does not. */
static Err *add_hint(Err *e, const Module *m) {
  int n = cli_attr_count(m, "mhlo.num_replicas") * cli_attr_count(m, "mhlo.num_partitions");
  if (!e || n == 1) return e;
  return err_hint(err_wrap(e, "a program of %d devices, on one", n),
                  "compare its results: weft run --device cpu:%d --out a.npz, then --device "
                  "interp:%d",
                  n, n);
}

static Err *diff(const DiffArgs *a, bool *parts) {
  char *first = xstrdup(a->devices), *second = strchr(first, ',');
  *second++ = 0;
  Module *m = NULL;
  Npz z = {0};
  Err *e = cli_program(a->program, &m);
  if (!e) e = pass_inline(m);
  if (!e && a->in) e = npz_read(a->in, &z);
  Func *f = e ? NULL : module_main(m);
  int n_in = e ? 0 : f->type->n_elems;
  Tensor **in = xcalloc((size_t)n_in + 1, sizeof *in);
  for (int i = 0; i < n_in && !e; i++) e = make_input(a, &z, i, f->type->elems[i], &in[i]);
  if (!e) e = known(second); /* before the first one works for minutes */
  if (!e) e = add_hint(compare(a, m, f, in, first, second, parts), m);
  for (int i = 0; i < n_in; i++) tensor_release(in[i]);
  free(in);
  npz_free(&z);
  module_free(m);
  free(first);
  return e;
}

static int cmd_diff(int argc, char **argv) {
  enum { DEVICES = CLI_FIRST, IN, TOL, TOP, JSON };
  static const struct option options[] = {{"devices", required_argument, NULL, DEVICES},
                                          {"in", required_argument, NULL, IN},
                                          {"tol", required_argument, NULL, TOL},
                                          {"top", required_argument, NULL, TOP},
                                          {"json", no_argument, NULL, JSON},
                                          CLI_HELP_ROW,
                                          {0}};
  DiffArgs a = {.devices = "cpu,interp", .tol = 1e-5, .top = 5};
  CliArgs args = {argc, argv, options, 0};
  for (int o; (o = cli_next(&args)) != -1;) switch (o) {
    case DEVICES: a.devices = optarg; break;
    case IN: a.in = optarg; break;
    case TOL:
      if (!cli_real(&args, 0, &a.tol)) return 2;
      break;
    case TOP:
      if (!cli_int(&args, 0, &a.top)) return 2;
      break;
    case JSON: a.json = true; break;
    case CLI_HELP: return fputs(usage, stdout), 0;
    default: return 2;
    }
  if (optind != argc - 1) return cli_wrong(&args, "one PROGRAM, please");
  a.program = argv[optind];
  const char *comma = strchr(a.devices, ',');
  if (!comma || comma == a.devices || !comma[1] || strchr(comma + 1, ','))
    return cli_wrong(&args, "--devices wants two names, A,B, not '%s'", a.devices);
  bool parts = false;
  Err *e = diff(&a, &parts);
  if (e) {
    err_report(e);
    return 1;
  }
  return parts ? 1 : 0;
}

const CliVerb cli_diff = {"diff", "name the first operation that differs between two devices",
                          cmd_diff};
