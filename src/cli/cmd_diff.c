/* weft diff: one program on two devices, value by value: names the first operation whose results
 * part, and by how much.
 *
 * The program is inlined and what its operations compute becomes a result, so that both devices show
 * all intermediate values of one run; where they would take more than AT_ONCE, of several runs, one
 * for each stretch of the program. What only moves numbers has its operands' error. The error of a
 * value is max|a - b| / max|a|, so that it does not depend on scale. Values inside loops and branches
 * show only as the loop's results; when these part first, the loop is followed by itself.
 */
#include "base/npy.h"
#include "cli/cli.h"
#include "cli/diff.h"
#include "cli/made_input.h"
#include "cli/waiting.h"
#include "compile/pass/pass.h"
#include "dev/sim/numerics.h"
#include "ir/build.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "usage: weft diff PROGRAM --devices A,B [options]\n"
    "\n"
    "Runs PROGRAM (.mlir, .mlirbc) on two devices and names the first operation whose results "
    "part;\n"
    "of a loop or branch, the first one inside it, too.\n"
    "\n"
    "The error of a value is max|a-b| / max|a|, a on device A, b on B. What an operation adds is "
    "its\n"
    "result's error less the largest of its operands. Of sums and products that cancel to near 0, "
    "what is\n"
    "added is max|a-b| by the size of the terms: their rounding says little of the operation.\n"
    "\n"
    "  --devices A,B    for example cpu,tpu-v3-8 or interp,cpu (default: cpu,interp)\n"
    "  --in FILE.npz    in0, in1, ...; without it inputs are normal random numbers of a fixed "
    "seed,\n"
    "                   not negative where the program takes a root or logarithm of one\n"
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

static Err *given_input(const DiffArgs *a, const Npz *z, int i, const Type *t, Tensor **out) {
  TRY(made_input(MADE_ZEROS, i, false, t, out));
  Tensor *x = *out;
  char name[24];
  snprintf(name, sizeof name, "in%d", i);
  const Npy *from = npz_find(z, name);
  if (!from || from->count != x->count || dtype_bytes(from->dtype) != dtype_bytes(x->dtype))
    return err_new(ERR_INVALID, "%s has no %s of the program's type", a->in, name);
  if (x->count) memcpy(x->data, from->data, tensor_bytes(x));
  return NULL;
}

/* The arguments of f: from the file, or made up. */
static Err *inputs(const DiffArgs *a, const Npz *z, const Func *f, Tensor **in) {
  bool *positive = made_positive(f->module);
  Err *e = NULL;
  for (int i = 0; i < f->type->n_elems && !e; i++) {
    Type *t = f->type->elems[i];
    e = a->in ? given_input(a, z, i, t, &in[i])
              : made_input(MADE_RANDOM, i, positive[i], t, &in[i]);
  }
  free(positive);
  return err_place(e, "%s", a->program);
}

static Err *known(const char *device) {
  Dev *dev = NULL;
  TRY(dev_open(device, &dev));
  dev_close(dev);
  return NULL;
}

/* The error for people: infinity has two reasons. */
static void print_error(const DiffError *e) {
  if (isfinite(e->error)) printf("  %9.3g", e->error);
  else if (isfinite(e->worst)) printf("  0 in first");
  else printf("  NaN in one"); /* or an infinity */
}

static void print_value(const Value *v) {
  Buf place = {0}, type = {0};
  op_place(&place, v->def);
  type_print(&type, v->type);
  Str name = op_full_name(v->def);
  printf("  %.*s  %s  %s\n", STR_ARG(name), type.p, place.n ? place.p : "");
  buf_free(&place);
  buf_free(&type);
}

/* Why a product's numbers are other ones on one of the devices; "": for no such reason. */
static const char *reason(const char *device, const Value *v) {
  ChipRef ref = {0};
  Err *e = chip_parse(device, &ref);
  Numerics policy = e ? NUM_F32 : chip_numerics(ref.chip);
  err_free(e);
  switch (numerics_level(v->def, policy)) {
  case 0:
    return "products of f32 run in the matrix unit's precision; precision=HIGHEST asks for f32";
  case 1:
    return policy == NUM_TF32 ? "precision=HIGH is one product of tf32; HIGHEST asks for f32"
                              : "precision=HIGH is three products of bf16; HIGHEST asks for six";
  case 2:
    return policy == NUM_TF32 ? "" : "precision=HIGHEST is six products of bf16, 22 to 24 bits";
  default: return "";
  }
}

typedef struct DiffResult {
  const char *const *devices;
  Value *const *values;
  int n, at_first; /* -1: nothing parts */
  DiffInside inside;
  const DiffError *of; /* of each value */
  double *added;       /* error that an operation adds to its operands'; used up by next_worst */
} DiffResult;

/* The operation that adds most of what is left, -1: none. */
static int next_worst(DiffResult *r, double tol) {
  int best = -1;
  for (int j = 0; j < r->n; j++)
    if (r->added[j] > tol && (best < 0 || r->added[j] > r->added[best])) best = j;
  return best;
}

/* "  0.0013  stablehlo.add  tensor<4xf32>  step.py:3", and why. */
static void print_one(const char *const *devices, const Value *v, const DiffError *of) {
  print_error(of);
  print_value(v);
  for (int i = 1; i >= 0; i--)
    if (*reason(devices[i], v)) printf("  %s (%s)\n", reason(devices[i], v), devices[i]);
}

static void print_first(const DiffResult *r) {
  const DiffError *of = &r->of[r->at_first];
  Str name = op_full_name(r->values[r->at_first]->def);
  printf("%s and %s part first in %.*s, most at its element %lld   (error: max|a-b| / max|a|)\n",
         r->devices[0], r->devices[1], STR_ARG(name), (long long)of->at);
  print_one(r->devices, r->values[r->at_first], of);
  const DiffInside *in = &r->inside;
  if (in->v) {
    printf("inside it, in ");
    for (int i = 0; i < in->depth; i++)
      printf("%s%s %lld", i ? ", " : "", in->path[i].loop ? "round" : "branch",
             (long long)in->path[i].at);
    Str inner = op_full_name(in->v->def);
    printf(", first in %.*s, most at its element %lld\n", STR_ARG(inner), (long long)in->error.at);
    print_one(r->devices, in->v, &in->error);
  }
  fflush(stdout); /* the rest of a large program takes minutes */
}

static void print_worst(const DiffArgs *a, DiffResult *r) {
  bool nan = false;
  const Op *first = r->values[r->at_first]->def;
  if (r->of[r->at_first].error > 10 * a->tol && r->added[r->at_first] <= a->tol &&
      first->kind != OP_COMPARE)
    printf("this is rounding: its terms cancel to near 0, and by their size it parts by less than "
           "%g\n",
           a->tol);
  for (int t = 0; t < a->top; t++) {
    int best = next_worst(r, a->tol);
    if (best < 0) break;
    if (!t) printf("\nmost error added to that of the operands\n      added      error\n");
    const DiffError *of = &r->of[best];
    nan |= !isfinite(of->worst);
    if (isfinite(r->added[best])) printf("  %9.3g", r->added[best]);
    else printf("  %9s", "");
    print_error(of);
    print_value(r->values[best]);
    r->added[best] = 0;
  }
  if (nan && !a->in)
    printf("\nThe inputs were normal random numbers, so that a variance may be below zero and its "
           "root "
           "NaN:\ngive real ones with --in FILE.npz\n");
}

/* Of an object: what there is to say of a value. */
static void json_value(Buf *b, const char *const *devices, const Value *v, const DiffError *of) {
  Buf text = {0};
  buf_str(&text, op_full_name(v->def));
  buf_cstr(b, "\"op\": ");
  buf_json_str(b, text.p);
  text.n = 0;
  type_print(&text, v->type);
  buf_cstr(b, ", \"type\": ");
  buf_json_str(b, text.p);
  buf_free(&text);
  op_place(&text, v->def);
  buf_cstr(b, ", \"place\": ");
  buf_json_str(b, text.n ? text.p : "");
  buf_cstr(b, ", ");
  buf_json_num(b, "error", of->error);
  buf_cstr(b, ", \"reason\": ");
  const char *second = reason(devices[1], v);
  buf_json_str(b, *second ? second : reason(devices[0], v));
  buf_free(&text);
}

static void json_op(Buf *b, const DiffResult *r, int j) {
  buf_printf(b, "{\"value\": %d, ", j);
  json_value(b, r->devices, r->values[j], &r->of[j]);
  buf_cstr(b, ", ");
  buf_json_num(b, "added", r->added[j]);
  buf_byte(b, '}');
}

static void json_inside(Buf *b, const DiffResult *r) {
  const DiffInside *in = &r->inside;
  if (!in->v) {
    buf_cstr(b, "null");
    return;
  }
  buf_cstr(b, "{\"path\": [");
  for (int i = 0; i < in->depth; i++)
    buf_printf(b, "%s{\"%s\": %lld}", i ? ", " : "", in->path[i].loop ? "round" : "branch",
               (long long)in->path[i].at);
  buf_cstr(b, "], ");
  json_value(b, r->devices, in->v, &in->error);
  buf_printf(b, ", \"element\": %lld}", (long long)in->error.at);
}

static void print_json(const DiffArgs *a, DiffResult *r) {
  Buf b = {0};
  bool agree = r->at_first < 0;
  buf_cstr(&b, "{\"devices\": [");
  buf_json_str(&b, r->devices[0]);
  buf_cstr(&b, ", ");
  buf_json_str(&b, r->devices[1]);
  buf_printf(&b, "], \"values\": %d, \"tol\": %g, \"agree\": %s, \"first\": ", r->n, a->tol,
             agree ? "true" : "false");
  if (agree) buf_cstr(&b, "null");
  else json_op(&b, r, r->at_first);
  buf_printf(&b,
             ", \"element\": %lld, \"inside\": ", (long long)(agree ? -1 : r->of[r->at_first].at));
  json_inside(&b, r);
  buf_cstr(&b, ", \"top\": [");
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

/* What settle knows of each value, by id. */
typedef struct Settled {
  double error;  /* by the size of what it was added up from */
  double size;   /* root mean square of that */
  double cancel; /* how much larger than the value that is, at least 1 */
} Settled;

/* The size of an op's result if its terms did not cancel; 0: not a sum. */
static double size_of_terms(const Op *op, const Settled *s) {
  double x = op->n_operands > 0 ? s[op->operands[0]->id].size : 0,
         y = op->n_operands > 1 ? s[op->operands[1]->id].size : 0, terms = 1;
  switch (op->kind) {
  case OP_ADD:
  case OP_SUBTRACT: return fmax(x, y);
  case OP_REDUCE:
    if (op->regions[0]->first->kind != OP_ADD) return 0;
    return x * sqrt((double)type_count(op->operands[0]->type) /
                    fmax(1, (double)type_count(op_type(op))));
  case OP_DOT_GENERAL: {
    DotDims d = b_dot_dims(op);
    for (int i = 0; i < d.n_contract; i++)
      terms *= (double)op->operands[0]->type->dims[d.lhs_contract[i]];
    return sqrt(terms) * x * y;
  }
  case OP_CONVOLUTION: {
    ConvDims d = b_conv_dims(op);
    const Type *k = op->operands[1]->type;
    return sqrt((double)type_count(k) / fmax(1, (double)k->dims[d.k_out])) * x * y;
  }
  default: return 0;
  }
}

/* A result of op from what its operands are. of: as compared, NULL when it only moves numbers. */
static Settled settle_one(const Op *op, const Settled *operands, const DiffError *of,
                          const Settled *s) {
  Settled r = *operands;
  if (!of) return r;
  double terms = size_of_terms(op, s);
  if (terms > 0 || op_info[op->kind].cls == OC_CONTROL) r.cancel = 1;
  if (terms > of->scale && of->scale > 0) r.cancel = terms / of->scale;
  r.size = fmax(terms, of->rms * r.cancel);
  r.error = terms > of->scale ? of->worst / terms : of->error / r.cancel;
  return r;
}

/* What each value's error adds to its operands' goes to r->added. A value whose terms cancel to near
 * 0 has their rounding for its error, and so has what is made of it: both are seen by the size of
 * the terms. A comparison of what differs may turn out either way: that adds nothing. */
static void settle(Func *f, Tensor *const *in, DiffResult *r) {
  int j = 0, n_values = ir_number(f);
  Settled *s = xcalloc((size_t)n_values + 1, sizeof *s);
  for (int i = 0; i < f->body->n_args; i++)
    s[f->body->args[i]->id] = (Settled){0, diff_error(in[i], in[i]).rms, 1};
  for (const Op *op = f->body->first; op; op = op->next) {
    Settled most = {0, 0, 1};
    for (int k = 0; k < op->n_operands; k++) {
      const Settled *o = &s[op->operands[k]->id];
      most = (Settled){fmax(most.error, o->error), fmax(most.size, o->size),
                       fmax(most.cancel, o->cancel)};
    }
    for (int k = 0; k < op->n_results; k++) {
      const Value *v = &op->results[k];
      bool compared = j < r->n && r->values[j] == v;
      s[v->id] = settle_one(op, &most, compared ? &r->of[j] : NULL, s);
      if (!compared) continue;
      bool inherits = isinf(most.error) || (op->kind == OP_COMPARE && most.error > 0);
      r->added[j++] = inherits ? 0 : s[v->id].error - most.error;
    }
  }
  free(s);
}

static Err *compare(const DiffArgs *a, Module *m, Func *f, Tensor *const *in,
                    const char *const devices[2], bool *parts) {
  int n = 0;
  Value **values = diff_computed(f, &n);
  DiffError *of = xcalloc((size_t)n + 1, sizeof *of);
  double *added = xcalloc((size_t)n + 1, sizeof *added);
  Tensor *const *const both[2] = {in, in};
  DiffResult r = {devices, values, n, -1, {0}, of, added};
  Err *e = NULL;
  for (int j = 0, end; j < n && !e; j = end) {
    end = diff_stretch(values, j, n);
    char phase[128];
    snprintf(phase, sizeof phase, "weft diff: values %d to %d of %d", j + 1, end, n);
    waiting_begin(phase);
    e = diff_errors(m, f, values + j, end - j, both, devices, of + j);
    waiting_end();
    for (int k = j; k < end && !e && r.at_first < 0; k++)
      if (of[k].error > a->tol) r.at_first = k;
    if (!e && r.at_first >= j) {
      waiting_begin("weft diff: looking inside the first that parts");
      /* what cannot be run by itself has no more to show */
      err_free(diff_inside(m, f, values[r.at_first]->def, both, devices, a->tol, &r.inside));
      waiting_end();
      if (!a->json) print_first(&r);
    }
    if (r.at_first >= 0 && !a->top) break; /* that was all that is asked for */
    if (!e && n > end - j) fprintf(stderr, "weft diff: %d of %d values compared\n", end, n);
  }
  if (!e) {
    settle(f, in, &r);
    *parts = r.at_first >= 0;
    if (a->json) print_json(a, &r);
    else if (*parts) print_worst(a, &r);
    else
      printf("%s and %s agree: %d values within %g of each other (max|a-b| / max|a|)\n", devices[0],
             devices[1], n, a->tol);
  }
  free(values);
  free(of);
  free(added);
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
  if (!e) e = inputs(a, &z, f, in);
  if (!e) e = known(second); /* before the first one works for minutes */
  if (!e) e = add_hint(compare(a, m, f, in, (const char *const[]){first, second}, parts), m);
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
