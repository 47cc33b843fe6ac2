/* XLA for GPUs, as a table of stages. */
#include "sim/gpu/cost.h"
#include "sim/gpu/gpu.h"
#include "sim/schedule/kernels.h"

#define LINE 32 /* columns that a block of threads sums up */

/* Do its sums keep all of a GPU busy, so that they may be added up where a loop is? */
static bool sums_widely(const Schedule *p, const Kernel *k) {
  double sms = chip_num(p->chip, "sms", 80) / p->chip->devices_per_chip;
  for (int i = 0; i < k->roots.n; i++) {
    const HNode *n = k->roots.v[i];
    if (n->kind != H_REDUCE) continue;
    bool along = false; /* rows */
    for (int q = 0; q < n->n_dims; q++) along |= n->dims[q] == n->in[0]->rank - 1;
    if ((double)hlo_count(n) < sms * (along ? 1 : LINE)) return false;
  }
  return true;
}

static bool joins_nothing(const Schedule *p, const Kernel *k) {
  return k->reduce && !sums_widely(p, k);
}

/* A library's product is read from memory; what is written in place is one array at a time. */
static bool may_join_maker(Joins *js, int at, const HValue *v, bool loops) {
  const Kernel *k = js->p->kernels.v[at], *s = js->p->kernels.v[v->kernel];
  return !loops && !s->conv && !kernel_updates(s) && !kernel_updates(k);
}

static bool may_join_sibling(Joins *js, int i, int j, const HNode *shared, bool table) {
  (void)shared, (void)table;
  return !kernel_updates(js->p->kernels.v[i]) && !kernel_updates(js->p->kernels.v[j]);
}

static void join(Joins *js) {
  joins_attention(js);
  joins_makers(js, false);
  joins_siblings(js, false);
}

/* cuBLAS adds to what is there. */
static bool overwrites(const Schedule *p, const Kernel *k, const HValue *v, const HValue *o,
                       bool state) {
  (void)p, (void)o, (void)state;
  if (k->conv)
    return !k->attention && !k->conv->conv->is_conv && !sched_made_from(k, k->conv, v->node, 0);
  return !k->reduce && hlo_light(k->roots.v[0]);
}

#define LIBRARY 8e9 /* operations: smaller products XLA writes itself, through Triton */

/* What cuBLAS is given to split sums in; XLA's own kernels multiply vectors. */
static double library_room(const Schedule *p, const HNode *n) {
  const HConv *v = n->conv;
  bool matrices = v->m > 1 && v->n > 1;
  bool library = p->opts->library || (double)v->flops >= LIBRARY;
  return !v->is_conv && ((library && matrices)) ? chip_num(p->chip, "product_workspace", 0) : 0;
}

/* Memory that a kernel needs besides its operands and results. */
static double scratch(const Schedule *p, const Kernel *k) {
  const HNode *n = k->roots.n ? k->roots.v[0] : NULL;
  if (!n) return 0;
  return k->conv && !k->attention ? library_room(p, k->conv) : gpu_made_bytes(n);
}

/* The counter of a loop is a kernel of its own on a GPU, however short, and its copy another. */
void gpu_count(Schedule *p, Kernel *k) {
  gpu_cost(p, k);
  k->time_s *= 2;
  p->time_s += k->time_s;
}

double gpu_product_peak(const Chip *chip, const HNode *n) {
  bool matrix;
  double flops = gpu_peak(chip, n->in[0]->dt, n->conv->passes, &matrix);
  return matrix || !n->conv->is_conv ? flops : flops * gpu_winograd(chip, n);
}

double gpu_launch_s(const Chip *chip, const CostParams *params) {
  (void)params;
  return gpu_rate(chip, "fit.launch");
}

/* In parts of the power that the board may take: what it draws as soon as kernels run, matrix units at their peak (more than
 * there is: clocks fall) and memory at its full bandwidth. */
double gpu_energy(const Chip *chip, const SimReport *r) {
  double most = chip->power_busy,
         joules = MAX(chip->power_idle, gpu_rate(chip, "fit.power_on") * most) * r->time_s,
         byte = chip_num(chip, "fit.joules_byte",
                         gpu_rate(chip, "fit.power_memory") * most / chip->hbm_bandwidth),
         matrix = gpu_rate(chip, "fit.power_matrix");
  for (int i = 0; i < r->n_kernels; i++) {
    const SimKernel *k = &r->kernels[i];
    joules += k->count * (matrix * most * k->matrix * k->time_s + byte * (k->bytes + k->cached));
  }
  return MIN(joules, most * r->time_s);
}

static void fill(Schedule *p, Kernel *k, const HValue *stack) {
  k->bytes = stack->plain;
  k->time_s = stack->plain / (p->chip->hbm_bandwidth * gpu_rate(p->chip, "fit.stream")) +
              gpu_rate(p->chip, "fit.launch");
}

static void copy(Schedule *p, Kernel *k, const HValue *v) {
  fill(p, k, v);
  k->bytes += v->plain;
  k->time_s += v->plain / (p->chip->hbm_bandwidth * gpu_rate(p->chip, "fit.stream"));
}

/* XLA for GPUs fills all stacks. */
static void finish(Schedule *p) {
  sched_fill_stacks(p, true, fill);
  sched_copy_to_given(p, copy);
}

const ChipCompiler gpu_compiler = {
    .name = "XLA for GPUs",
    .keeps_scatters = true,
    .lower = gpu_rewrite,
    .fuse = gpu_fuse,
    .view = sched_flat_view,
    .holds_rows = true,
    .join = join,
    .joins_nothing = joins_nothing,
    .joins_maker = may_join_maker,
    .joins_sibling = may_join_sibling,
    .layout = sched_flat_layouts,
    .orders_scratch = true,
    .combines_to = 30 * 1048576.0, /* xla_gpu_all_reduce_combine_threshold_bytes */
    .overwrites = overwrites,
    .lends = true,
    .lends_to_scratch = true,
    .scratch = scratch,
    .cost = gpu_cost,
    .count = gpu_count,
    .finish = finish,
    .peak = gpu_product_peak,
    .launch_s = gpu_launch_s,
    .energy_j = gpu_energy,
};
