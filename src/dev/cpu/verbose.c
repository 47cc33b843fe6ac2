/* WEFT_VERBOSE: where the time of a run goes. 1: a line of CSV for each kernel run,
 *
 *   weft,kernel,op,"shapes",bytes,flops,seconds,share of the limit
 *
 * and, when the program is given up or the process ends, a table of its kernels, the dearest first,
 * with equal ones added up; 2: the table only. Both name the operations left to the interpreter
 * when the program is compiled. The limit is the machine's (prof_host_*): the time that the
 * operations need at its peak or the bytes at its bandwidth, whichever is longer. Bytes are what a
 * kernel has to read and write, so an operand of which it takes some rows counts as those; a share
 * above 1 says that they came from the caches. */
#include "dev/cpu/cpu_priv.h"
#include "dev/cpu/registry.h"

#include <math.h>
#include <stdio.h>

int cpu_verbosity(void) {
  static int known = -1;
  if (known < 0) known = (int)env_int("WEFT_VERBOSE", 0, 2, 0);
  return known;
}

/* ---- a step ---------------------------------------------------------------------------------- */

static void print_type(Buf *b, const Type *t) {
  if (t->kind != TY_TENSOR) {
    buf_cstr(b, "token");
    return;
  }
  buf_cstr(b, dtype_name(t->dtype));
  buf_byte(b, '[');
  for (int i = 0; i < t->rank; i++) buf_printf(b, "%s%lld", i ? "," : "", (long long)t->dims[i]);
  buf_byte(b, ']');
}

static double op_bytes(const Op *op) {
  double in = 0, out = 0;
  for (int i = 0; i < op->n_operands; i++) in += (double)type_bytes(op->operands[i]->type);
  for (int i = 0; i < op->n_results; i++) out += (double)type_bytes(op->results[i].type);
  if (!op->n_operands) return out;
  double all = in + out, first = (double)type_bytes(op->operands[0]->type);
  switch (op->kind) {
  case OP_GATHER:
  case OP_SLICE:
  case OP_DYNAMIC_SLICE: return MIN(all, all - first + out);
  case OP_DYNAMIC_UPDATE_SLICE: return 2 * (double)type_bytes(op->operands[1]->type);
  case OP_SCATTER: /* places are read and written, updates and indices read */
    return MIN(all, 3 * (in - first));
  default: return all;
  }
}

void step_shapes(const Step *s, Buf *b, double *bytes) {
  const Fusion *f = s->kind == STEP_FUSED ? s->fusion : NULL;
  int n_in = f ? f->n_in : s->op->n_operands, n_out = f ? f->n_out : s->op->n_results;
  double total = 0;
  for (int i = 0; i < n_in; i++) {
    const Type *t = f ? f->in[i]->type : s->op->operands[i]->type;
    if (i) buf_byte(b, ' ');
    print_type(b, t);
    total += (double)type_bytes(t);
  }
  buf_cstr(b, "->");
  for (int i = 0; i < n_out; i++) {
    if (f && f->out[i].part > 0) continue; /* of the same value */
    const Type *t = f ? f->out[i].v->type : s->op->results[i].type;
    if (i) buf_byte(b, ' ');
    print_type(b, t);
    total += (double)type_bytes(t);
  }
  *bytes = f ? total : s->kind == STEP_OP ? op_bytes(s->op) : 0;
}

const char *step_name(const Code *c, const Step *s) {
  static const char *const kinds[] = {"op",         "fused", "while", "case", "copy",
                                      "collective", "cut",   "join",  "view"};
  const StepCode *k = &c->steps[s->id];
  if (s->kind == STEP_FUSED || k->fused.run) return k->fused.name ? k->fused.name : "fused";
  if (s->kind == STEP_OP) return k->kernel->chosen ? k->kernel->chosen(k->state) : k->kernel->name;
  return kinds[s->kind];
}

double step_flops(const Code *c, const Step *s) {
  const StepCode *k = &c->steps[s->id];
  if (s->kind == STEP_FUSED || k->fused.run) return k->fused.flops;
  return s->kind == STEP_OP && k->kernel->flops ? k->kernel->flops(s->op) : 0;
}

/* 0 ... 1; 0 when the machine's peaks are not known. */
static double share_of_limit(double flops, double bytes, double seconds) {
  double peak = prof_host_flops(), rate = prof_host_bandwidth();
  if (!(peak > 0) || !(rate > 0) || !(seconds > 0)) return 0;
  return fmax(flops / peak, bytes / rate) / seconds;
}

/* Element-wise operations are not multiply-adds at the peak: the bytes are the limit of a loop. */
static double limit_flops(const Code *c, const Step *s) {
  return s->kind == STEP_FUSED ? 0 : step_flops(c, s);
}

void verbose_step(Code *c, const Step *s, double seconds) {
  StepCode *k = &c->steps[s->id];
  k->seconds += seconds;
  if (!k->runs++) k->first = seconds;
  if (cpu_verbosity() != 1) return;
  Buf b = {0};
  double bytes;
  step_shapes(s, &b, &bytes);
  Str op = op_full_name(s->op);
  fprintf(stderr, "weft,%s,%.*s,\"%s\",%.0f,%.0f,%.9f,%.3f\n", step_name(c, s), STR_ARG(op), b.p,
          bytes, step_flops(c, s), seconds, share_of_limit(limit_flops(c, s), bytes, seconds));
  buf_free(&b);
}

/* ---- the table ------------------------------------------------------------------------------- */

typedef struct Line {                        /* steps of the same kernel, operation and shapes */
  char *key;                                 /* "kernel  op  shapes" */
  double seconds, bytes, flops, limit_flops; /* of one run of the program */
  int steps;
} Line;
typedef struct Lines {
  VEC(Line) v;
  Map *by_key;
  double runs; /* of the program */
} Lines;

/* Mean of the runs after the first, which also waits for fresh memory. */
static double seconds_of(const StepCode *k) {
  return k->runs > 1 ? (k->seconds - k->first) / (double)(k->runs - 1) : k->seconds;
}

static double add_block(Lines *l, const Code *c, const Block *b) {
  double all = 0;
  for (int i = 0; i < b->n; i++) {
    const Step *s = &b->steps[i];
    const StepCode *k = &c->steps[s->id];
    if (!k->runs) continue;
    double times = (double)k->runs / l->runs, seconds = seconds_of(k) * times, inside = 0;
    for (int j = 0; j < s->n_blocks; j++) inside += add_block(l, c, &s->blocks[j]);
    all += seconds;
    Buf shapes = {0}, key = {0};
    double bytes;
    step_shapes(s, &shapes, &bytes);
    Str op = op_full_name(s->op);
    buf_printf(&key, "%s  %.*s  %s", step_name(c, s), STR_ARG(op), shapes.p);
    buf_free(&shapes);
    Str id = {key.p, key.n};
    int at = (int)(intptr_t)map_get(l->by_key, id) - 1;
    if (at < 0) {
      at = l->v.n;
      *vec_push(&l->v) = (Line){.key = xstrndup(key.p, key.n)};
      map_set(l->by_key, id, (void *)(intptr_t)(at + 1));
    }
    buf_free(&key);
    Line *to = &l->v.v[at];
    to->seconds += fmax(0, seconds - inside);
    to->steps++;
    if (s->n_blocks) continue; /* what is inside has its own lines */
    to->bytes += bytes * times;
    to->flops += step_flops(c, s) * times;
    to->limit_flops += limit_flops(c, s) * times;
  }
  return all;
}

static int dearest_first(const void *a, const void *b) {
  double x = ((const Line *)a)->seconds, y = ((const Line *)b)->seconds;
  return x < y ? 1 : x > y ? -1 : 0;
}

static void print_table(const Code *c) {
  const Block *b = &c->plan->body;
  Lines l = {.by_key = map_new()};
  for (int i = 0; i < b->n; i++) l.runs = fmax(l.runs, (double)c->steps[b->steps[i].id].runs);
  double all = l.runs > 0 ? add_block(&l, c, b) : 0;
  if (l.v.n) qsort(l.v.v, (size_t)l.v.n, sizeof(Line), dearest_first);
  if (all > 0) {
    Str name = c->plan->module->name.n ? c->plan->module->name : STR("main");
    fprintf(stderr,
            "\n%.*s: %.3f ms in kernels a run, %.0f runs; limit %.0f GFLOP/s, %.0f GB/s\n"
            "%7s %6s %10s %8s %7s %6s  kernel, operation, shapes\n",
            STR_ARG(name), all * 1e3, l.runs, prof_host_flops() / 1e9, prof_host_bandwidth() / 1e9,
            "share", "steps", "ms", "GFLOP/s", "GB/s", "limit");
  }
  for (int i = 0; i < l.v.n; i++) {
    const Line *x = &l.v.v[i];
    if (all > 0 && x->seconds > 0)
      fprintf(stderr, "%5.1f %% %6d %10.3f %8.1f %7.1f %4.0f %%  %s\n", 100 * x->seconds / all,
              x->steps, x->seconds * 1e3, x->flops / x->seconds / 1e9, x->bytes / x->seconds / 1e9,
              100 * share_of_limit(x->limit_flops, x->bytes, x->seconds), x->key);
    free(x->key);
  }
  vec_free(&l.v);
  map_free(l.by_key);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Code *open_codes;

static void at_end(void) {
  for (Code *c = open_codes; c; c = c->next) print_table(c);
}

static void name_interpreted(const Code *c, const Block *b) {
  for (int i = 0; i < b->n; i++) {
    const Step *s = &b->steps[i];
    for (int j = 0; j < s->n_blocks; j++) name_interpreted(c, &s->blocks[j]);
    if (s->kind != STEP_OP || !cpu_kernel_is_reference(c->steps[s->id].kernel)) continue;
    Buf shapes = {0};
    double bytes;
    step_shapes(s, &shapes, &bytes);
    Str op = op_full_name(s->op);
    fprintf(stderr, "weft,interpreter,%.*s,\"%s\"\n", STR_ARG(op), shapes.p);
    buf_free(&shapes);
  }
}

void verbose_open(Code *c) {
  pthread_mutex_lock(&lock);
  static bool registered;
  if (!registered) atexit(at_end);
  registered = true;
  c->next = open_codes;
  open_codes = c;
  pthread_mutex_unlock(&lock);
  name_interpreted(c, &c->plan->body);
  prof_host_flops(); /* measured now, not between two kernels */
}

void verbose_close(Code *c) {
  pthread_mutex_lock(&lock);
  Code **at = &open_codes;
  while (*at && *at != c) at = &(*at)->next;
  bool found = *at != NULL;
  if (found) *at = c->next;
  pthread_mutex_unlock(&lock);
  if (found) print_table(c);
}

/* ---- JSON, for tools ------------------------------------------------------------------------- */

static void report_block(const Code *c, const Block *b, Buf *json, bool *first) {
  for (int i = 0; i < b->n; i++) {
    const Step *s = &b->steps[i];
    const StepCode *k = &c->steps[s->id];
    Buf shapes = {0};
    double bytes;
    step_shapes(s, &shapes, &bytes);
    Str op = op_full_name(s->op);
    buf_printf(json,
               "%s\n{\"name\": \"%s\", \"op\": \"%.*s\", \"shapes\": \"%s\", \"bytes\": %.0f, "
               "\"flops\": %.0f, \"runs\": %lld, \"seconds\": %.9f}",
               *first ? "" : ",", step_name(c, s), STR_ARG(op), shapes.p, bytes, step_flops(c, s),
               (long long)k->runs, k->seconds);
    *first = false;
    buf_free(&shapes);
    for (int j = 0; j < s->n_blocks; j++) report_block(c, &s->blocks[j], json, first);
  }
}

void code_report(const Code *c, Buf *json) {
  bool first = true;
  report_block(c, &c->plan->body, json, &first);
}
