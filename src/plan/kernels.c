/* PlanKernels of a chip, each shape once: a hash table in front of sim. */
#include <math.h>
#include <stdlib.h>

#include "plan/plan_priv.h"
#include "sim/sim.h"

typedef struct Entry {
  double key[4]; /* count, m, n, depth; count 0: free */
  DType type;
  double seconds;
} Entry;

struct PlanKernels {
  const Chip *chip;
  double launch;  /* of it, in what sim says of a kernel */
  double pass;    /* seconds a byte */
  double power_w; /* of a variant; 0: the chip's own */
  double peak16;
  Entry *entry;
  int n, cap; /* cap: a power of two */
};

PlanKernels *plan_kernels_new(const Chip *chip, double power_w, double bandwidth) {
  PlanKernels *k = xcalloc(1, sizeof *k);
  k->chip = chip;
  k->launch = sim_pass_s(chip, 1e-300);
  k->pass = (sim_pass_s(chip, 1e12) - k->launch) / 1e12;
  if (bandwidth > 0) k->pass *= chip->hbm_bandwidth / bandwidth;
  k->power_w = power_w;
  k->peak16 = chip->peak_flops;
  k->cap = 1024;
  k->entry = xcalloc((size_t)k->cap, sizeof *k->entry);
  return k;
}

void plan_kernels_free(PlanKernels *k) {
  if (!k) return;
  free(k->entry);
  free(k);
}

static Entry *slot(const PlanKernels *k, const double key[4], DType type) {
  uint64_t h = hash_bytes(key, 4 * sizeof *key, (uint64_t)type);
  for (int i = (int)(h & (uint64_t)(k->cap - 1));; i = (i + 1) & (k->cap - 1)) {
    Entry *e = &k->entry[i];
    if (e->key[0] == 0 || (e->type == type && !memcmp(e->key, key, sizeof e->key))) return e;
  }
}

static void grow(PlanKernels *k) {
  PlanKernels old = *k;
  k->cap *= 2;
  k->entry = xcalloc((size_t)k->cap, sizeof *k->entry);
  for (int i = 0; i < old.cap; i++)
    if (old.entry[i].key[0] != 0) *slot(k, old.entry[i].key, old.entry[i].type) = old.entry[i];
  free(old.entry);
}

/* Types that a chip has no units for are computed in the next wider one that it has. */
static DType supported(const Chip *c, DType t) {
  if (t == DT_F4E2M1FN && chip_num(c, "peak_fp4", 0) <= 0) t = DT_F8E4M3FN;
  if (t == DT_F8E4M3FN && chip_num(c, "peak_fp8", 0) <= 0) t = DT_BF16;
  if (t == DT_BF16 && c->kind == CHIP_GPU && chip_num(c, "peak_bf16", 0) <= 0) t = DT_F16;
  return t;
}

/* Picojoule of an operation at full load, by architecture and bits. */
static double energy_pj(const Chip *c, int bits) {
  double cc = chip_num(c, "compute_capability", 0);
  double pj = cc <= 0   ? (chip_num(c, "year", 2020) < 2025 ? plan_coef.pj_amd : plan_coef.pj_amd4)
              : cc < 8  ? 1.3 * plan_coef.pj_ampere
              : cc < 9  ? plan_coef.pj_ampere
              : cc < 10 ? plan_coef.pj_hopper
                        : plan_coef.pj_blackwell;
  return pj * (bits <= 4 ? plan_coef.pj_four : bits <= 8 ? plan_coef.pj_eight : 1);
}

/* When the architecture came to users. */
static double architecture_year(const Chip *c) {
  double cc = chip_num(c, "compute_capability", 0);
  if (cc <= 0) return chip_num(c, "year", 2020) + 0.5;
  return cc < 8 ? 2017.5 : cc < 9 ? 2020.4 : cc < 10 ? 2022.8 : 2024.9;
}

double plan_library_share(const Chip *c, double year) {
  if (year <= 0 || c->kind == CHIP_TPU) return 1;
  double age = MAX(0, year - architecture_year(c)) / plan_coef.young_years;
  return 1 - plan_coef.young * MAX(0, 1 - age);
}

/* Short measurements run at clocks that minutes of full load do not leave: no more operations than the
 * board's power allows. */
static double sustained_s(const PlanKernels *k, DType t, double s, double operations) {
  const Chip *c = k->chip;
  if (c->kind == CHIP_TPU) return s / plan_coef.tpu_power;
  double w = k->power_w > 0 ? MIN(k->power_w, c->power_busy) : c->power_busy;
  double least = w > 0 ? operations * energy_pj(c, dtype_bits(t)) * 1e-12 / w : 0;
  s /= plan_coef.gpu_power;
  return pow(pow(s, 4) + pow(least, 4), 0.25);
}

double plan_product_s(PlanKernels *k, DType type, double count, double m, double n, double depth) {
  if (count <= 0 || m <= 0 || n <= 0 || depth <= 0) return 0;
  type = supported(k->chip, type);
  double key[4] = {count, ceil(m), ceil(n), ceil(depth)};
  Entry *e = slot(k, key, type);
  if (e->key[0] == 0) {
    if (4 * k->n >= 3 * k->cap) grow(k), e = slot(k, key, type);
    double s = sim_product_s(k->chip, type, count, key[1], key[2], key[3]) - k->launch;
    memcpy(e->key, key, sizeof key);
    e->type = type;
    e->seconds = sustained_s(k, type, MAX(s, 0), 2 * count * m * n * depth);
    k->n++;
  }
  return e->seconds;
}

double plan_pass_s(const PlanKernels *k, double bytes) {
  return bytes * k->pass / plan_coef.pass_share;
}

/* Products of queries and keys, and a softmax that reads and writes all scores. */
static double unfused_s(PlanKernels *k, const KernelAttention *a, double *backward) {
  double q = a->queries, keys = a->keys, scores = a->heads * q * keys;
  double one = plan_product_s(k, a->type, a->heads, q, keys, a->dim);
  double two = plan_product_s(k, a->type, a->heads, q, a->value_dim, keys);
  /* scale and mask, softmax, dropout: each reads and writes the scores; masks take a byte */
  double pass = plan_pass_s(k, scores * 2 * dtype_bytes(a->type));
  if (k->chip->kind == CHIP_TPU) pass /= 2.5; /* XLA fuses all three */
  *backward = 2 * (one + two) + 2.5 * pass;
  return one + two + 2.5 * pass;
}

/* Of the products' peak, by what the kernels were written for. */
static double core_share(const Chip *c, double year) {
  double cc = chip_num(c, "compute_capability", 0);
  if (c->kind == CHIP_TPU) return plan_coef.core_tpu;
  if (cc <= 0) return plan_coef.core_amd;
  /* FlashAttention 2 is of July 2023, cuDNN's and FlashAttention 3's kernels for Hopper of early 2024,
   * those for Blackwell of 2025; what came before ran at about the older part's speed */
  if (cc < 9)
    return plan_coef.core_ampere * (year > 0 && year < 2024.2 ? plan_coef.core_old_ampere : 1);
  if (cc < 10) return plan_coef.core_hopper * (year > 0 && year < 2024.3 ? plan_coef.core_old : 1);
  return plan_coef.core_blackwell;
}

double plan_attention_s(PlanKernels *k, const KernelAttention *a, double *backward) {
  if (a->unfused) return unfused_s(k, a, backward);
  double pairs = a->heads * a->queries * a->seen, share = core_share(k->chip, a->year);
  double flops = 2 * pairs * (a->dim + a->value_dim), width = (a->dim + a->value_dim) / 2;
  if (k->chip->kind == CHIP_TPU) /* heads narrower than the array */
    share *= sqrt(MIN(1, width / chip_num(k->chip, "mxu_side", 128)));
  else if (width < 96) share *= 0.8;
  /* cut over context ways: pieces of a ring, each a smaller kernel */
  bool tpu = k->chip->kind == CHIP_TPU; /* there keys are gathered first */
  double ring = tpu ? 1 : 1 + plan_coef.core_ring * (1 - 1.0 / MAX(1, a->ring));
  double fill = k->chip->kind == CHIP_TPU ? plan_coef.core_fill_tpu : plan_coef.core_fill;
  share *= a->keys / (a->keys + fill);
  double fwd = flops / (k->peak16 * share) * ring;
  *backward = 2.5 * fwd / plan_coef.core_back;
  return fwd;
}
