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
  double launch; /* of it, in what sim says of a kernel */
  double pass;   /* seconds a byte */
  double peak16;
  Entry *entry;
  int n, cap; /* cap: a power of two */
};

PlanKernels *plan_kernels_new(const Chip *chip) {
  PlanKernels *k = xcalloc(1, sizeof *k);
  k->chip = chip;
  k->launch = sim_pass_s(chip, 1e-300);
  k->pass = (sim_pass_s(chip, 1e12) - k->launch) / 1e12;
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

/* Short measurements run at clocks that minutes of full load do not leave. */
static double sustained(const Chip *c, DType t) {
  if (c->kind == CHIP_TPU) return plan_law.tpu_power;
  int bits = dtype_bits(t);
  return bits <= 4 ? plan_law.gpu_power4 : bits <= 8 ? plan_law.gpu_power8 : plan_law.gpu_power;
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
    e->seconds = MAX(s, 0) / sustained(k->chip, type);
    k->n++;
  }
  return e->seconds;
}

double plan_pass_s(const PlanKernels *k, double bytes) {
  return bytes * k->pass / plan_law.pass_share;
}

/* Products of queries and keys, and a softmax that reads and writes all scores. */
static double unfused_s(PlanKernels *k, const KernelAttention *a, double *backward) {
  double q = a->queries, keys = a->keys, scores = a->heads * q * keys;
  double one = plan_product_s(k, a->type, a->heads, q, keys, a->dim);
  double two = plan_product_s(k, a->type, a->heads, q, a->value_dim, keys);
  /* scale and mask, softmax, dropout: each reads and writes 16 bits; masks take a byte */
  double pass = plan_pass_s(k, scores * 2 * 2);
  *backward = 2 * (one + two) + 2.5 * pass;
  return one + two + 2.5 * pass;
}

double plan_attention_s(PlanKernels *k, const KernelAttention *a, double *backward) {
  if (a->unfused) return unfused_s(k, a, backward);
  double pairs = a->heads * a->queries * a->seen;
  double flops = 2 * pairs * (a->dim + a->value_dim);
  const Chip *c = k->chip;
  double fwd = plan_law.core_fwd, bwd = plan_law.core_bwd;
  if (c->kind == CHIP_TPU) {
    double side = chip_num(c, "mxu_side", 128);
    double filled = MIN(1, (a->dim + a->value_dim) / 2 / side); /* heads narrower than the array */
    fwd = bwd = plan_law.core_tpu * pow(filled, 0.5);
  } else {
    double narrow = a->dim < 96 ? 0.8 : 1;
    double age = a->year > 0 && a->year < 2024.3 && chip_num(c, "compute_capability", 8) >= 9
                     ? plan_law.core_old
                     : 1;
    fwd *= narrow * age, bwd *= narrow * age;
  }
  *backward = 2.5 * flops / (k->peak16 * bwd);
  return flops / (k->peak16 * fwd);
}
