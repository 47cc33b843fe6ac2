/* libtpu's compiler, as a table of stages. */
#include "sim/schedule/compiler.h"
#include "sim/tpu/tpu.h"

static void rewrite(HGraph *g, const Chip *chip, const CostParams *params) {
  (void)chip;
  tpu_group_norm(g);
  if (params->images > 0) tpu_space_to_batch(g, params->images);
  tpu_expand(g, params);
}

static void layout(Schedule *p) {
  tpu_layouts(p);
  tpu_pairs(p);
  tpu_copies(p);
  if (!p->comp->parent) tpu_received(p);
}

/* Of bf16; 8-bit numbers where there are units for them; f32 in as many passes as it asks for. */
static double peak(const Chip *chip, const HNode *n) {
  DType t = n->in[0]->dt;
  double flops = chip->peak_flops, per = chip->devices_per_chip;
  if (dtype_bits(t) <= 8 && dtype_bits(n->in[1]->dt) <= 8)
    flops = MAX(flops, chip_num(chip, dtype_is_float(t) ? "peak_fp8" : "peak_int8", 0) / per);
  if (dtype_bits(t) <= 4) flops = MAX(flops, chip_num(chip, "peak_int4", 0) / per);
  return flops / tpu_passes(n) * (dtype_is_complex(t) ? 3 : 1);
}

static double launch_s(const Chip *chip, const CostParams *params) {
  (void)chip;
  return params->lbase / params->clock;
}

/* Scalar work of one round of a loop, which the compiler counts as nothing: what the counter, the condition and the branch take
 * of the scalar core, and an operation; what it has no instruction for takes as long as its slots, one waiting for the other. */
#define ROUND 16
#define SCALAR_OP 2

static void count(Schedule *p, Kernel *k) {
  double cycles = ROUND;
  for (int i = 0; i < p->kernels.n; i++) {
    const Kernel *s = p->kernels.v[i];
    for (int q = 0; q < s->inner.n && s->scalar; q++)
      if (s->inner.v[q]->kind == H_EWISE) cycles += SCALAR_OP + op_weight(s->inner.v[q]);
  }
  k->cycles = cycles;
  k->time_s = cycles / p->params->clock;
  k->bound = SIM_LATENCY;
  k->modelled = true;
  p->time_s += k->time_s;
}

/* Joules of one TPU: idle power all the time, the rest in proportion to how busy it is. A busy matrix
 * unit draws nearly all, streaming memory three quarters (checked on the powers in docs/accuracy.md). */
static double energy(const Chip *chip, const SimReport *r) {
  double busy = 0;
  for (int i = 0; i < r->n_kernels; i++) {
    const SimKernel *k = &r->kernels[i];
    double u = k->bound == SIM_COMPUTE  ? 0.6 + 0.4 * k->utilisation
               : k->bound == SIM_MEMORY ? 0.75
               : k->bound == SIM_VECTOR ? 0.6
                                        : 0.3;
    busy += k->time_s * k->count * u;
  }
  return chip->power_idle * r->time_s +
         (chip->power_busy - chip->power_idle) * MIN(busy, r->time_s);
}

/* From this part of a chip's memory on, its compiler lends the memory of results: measured with
 * libtpu on programs of growing size, between 65.6 and 66.9 %. */
#define SCARCE (2.0 / 3)

/* And from this part on it computes values again rather than keep them (libtpu's reports). */
#define FULL 0.95

/* What the latency hiding scheduler may fill (its logs: 92.4 to 99 %). */
#define FILLED 0.92

/* What one exchange may carry: 101 MB were seen together, 184 MB apart. */
#define COMBINED (128 * 1048576.0)

const ChipCompiler tpu_compiler = {
    .name = "libtpu",
    .rewrite = rewrite,
    .fuse = tpu_fuse,
    .view = tpu_view,
    .pools = tpu_pool_emitter,
    .join = tpu_join,
    .joins_maker = tpu_joins_maker,
    .shares_tables = tpu_shares_tables,
    .joins_sibling = tpu_joins_sibling,
    .classified = tpu_classified,
    .layout = layout,
    .starts_loops = true,
    .combines_to = COMBINED,
    .hides_to = FILLED,
    .place = tpu_place,
    .see = tpu_see,
    .settle = tpu_settle,
    .overwrites = tpu_overwrites,
    .shares_temporaries = true,
    .sorts_in_place = true,
    .lends_from = SCARCE,
    .remats_from = FULL,
    .tuples = true,
    .scratch = tpu_scratch,
    .cost = tpu_cost,
    .count = count,
    .finish = tpu_finish,
    .counts_cycles = true,
    .peak = peak,
    .launch_s = launch_s,
    .energy_j = energy,
};
