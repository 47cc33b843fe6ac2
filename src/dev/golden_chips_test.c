/* The golden corpus on virtual chips. A program without a float32 product answers within the
 * corpus's own tolerance, as on the CPU: a chip changes nothing else. One with such products may
 * part by what the chip's matrix units lose: half an ulp of each operand, 2^-9 in bfloat16 (TPUs at
 * DEFAULT), 2^-11 in tf32 (A100 and later), 2^-17 in two bfloat16 parts (HIGH); nothing where
 * float32 is multiplied as it is (V100, T4). The whole result is held to that (its 2-norm), single
 * elements to more of it, since sums cancel. The second test is that the loss is there at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "chip/chip.h"
#include "dev/sim/numerics.h"
#include "dev/golden_test.h"

/* How far errors grow on the way from an operand to a result. The gradients of training steps come
 * through many layers and gates: a pooling or ReLU that decides otherwise sends a gradient
 * elsewhere; their losses do not. The largest seen are 10 and 147, of single elements 60 and 610:
 * another order of a sum of 108 terms moved one step's from 95 to 147 (tf32 rounds anew in every
 * layer). In proportion to the loss of a product, tf32's a quarter of bfloat16's. */
typedef struct Growth {
  double norm, element;
} Growth;

static Growth growth_of(const char *program, const Tensor *result) {
  bool gradient = !strncmp(program, "train_", 6) && result->rank > 0;
  return gradient ? (Growth){192, 1024} : (Growth){16, 128};
}

static double product_loss(const char *device, int level) {
  if (!strncmp(device, "tpu", 3)) return level == 0 ? 0x1p-8 : level == 1 ? 0x1p-15 : 0x1p-22;
  bool tf32 = strncmp(device, "T4", 2) != 0 && strncmp(device, "V100", 4) != 0;
  return tf32 && level < 2 ? 0x1p-10 : 0;
}

/* The least precise float32 product of a program; -1: there is none. */
static int least_level(const Region *r, Numerics policy) {
  int least = -1;
  for (const Op *op = r->first; op; op = op->next) {
    int own = numerics_level(op, policy);
    for (int i = 0; i < op->n_regions; i++) {
      int in = least_level(op->regions[i], policy);
      if (in >= 0 && (own < 0 || in < own)) own = in;
    }
    if (own >= 0 && (least < 0 || own < least)) least = own;
  }
  return least;
}

static double real_of(const Tensor *t, int64_t i) {
  return elem_get_f64(t->dtype, tensor_at(t, i));
}

/* err: the 2-norm of the difference, of the result's own; largest: the largest element's difference
 * in root mean squares of the result */
static void distance(const Tensor *got, const Tensor *want, double *err, double *largest) {
  double diff = 0, size = 0, most = 0;
  for (int64_t i = 0; i < got->count; i++) {
    double g = real_of(got, i), w = real_of(want, i), d = g == w ? 0 : fabs(g - w);
    diff += d * d, size += w * w;
    most = !(d <= most) ? d : most; /* NaN stays */
  }
  *err = diff > 0 ? sqrt(diff / size) : diff;
  *largest = most > 0 ? most / sqrt(size / (double)got->count) : most;
}

static Err *close_for_chip(const Case *c, const Module *m, const Tensor *got, const Tensor *want,
                           const cJSON *tol) {
  int level = -1;
  ChipRef ref = {0};
  TRY(chip_parse(c->device, &ref));
  Numerics policy = chip_numerics(ref.chip);
  for (int i = 0; i < m->funcs.n; i++) {
    int l = m->funcs.v[i]->body ? least_level(m->funcs.v[i]->body, policy) : -1;
    if (l >= 0 && (level < 0 || l < level)) level = l;
  }
  double loss = level < 0 ? 0 : product_loss(c->device, level);
  if (loss > 0 && strstr(c->name, "bf16")) loss = 0x1p-8; /* rounds what the loss has moved */
  if (loss == 0 || !dtype_is_float(got->dtype)) return golden_close(c, m, got, want, tol);
  if (got->dtype != want->dtype || got->count != want->count)
    return err_new(ERR_ABORTED, "type or shape differs");
  double err, largest;
  distance(got, want, &err, &largest);
  Growth g = growth_of(c->name, got);
  if (err <= g.norm * loss && largest <= g.element * loss) return NULL;
  return err_new(ERR_ABORTED, "off by %.3g of its size (allowed %.3g), an element by %.3g (%.3g)",
                 err, g.norm * loss, largest, g.element * loss);
}

static void golden(void **state) {
  Err *e = golden_run(*state, 1, close_for_chip);
  if (!e) return;
  char *text = err_text(e);
  fail_msg("%s: %s", ((Case *)*state)->title, text);
}

/* ---- the loss itself ------------------------------------------------------------------------- */

static double measured;

static Err *measure(const Case *c, const Module *m, const Tensor *got, const Tensor *want,
                    const cJSON *tol) {
  double largest;
  (void)c, (void)m, (void)tol;
  distance(got, want, &measured, &largest);
  return NULL;
}

/* What is lost of random operands: sqrt(2) / sqrt(12) of an ulp's half, whatever the length. */
static void loses(const cJSON *entry, const char *name, const char *device, double low,
                  double high) {
  Case c = {entry, device, name, NULL, NULL};
  c.file = xasprintf("%s.mlirbc", name);
  assert_null(golden_run(&c, 1, measure));
  if (measured < low || measured > high)
    fail_msg("%s on %s is off by %.3g, not %.3g to %.3g", name, device, measured, low, high);
  free((char *)c.file);
}

static cJSON *manifest;

static const cJSON *entry_of(const char *name) {
  const cJSON *p;
  cJSON_ArrayForEach(
      p,
      cJSON_GetObjectItem(
          manifest, "programs")) if (!strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(p, "name")),
                                             name)) return p;
  fail_msg("no program %s", name);
  return NULL;
}

static void precision_shows(void **state) {
  (void)state;
  const cJSON *plain = entry_of("dot_mm_f32"), *highest = entry_of("dot_highest");
  loses(plain, "dot_mm_f32", "tpu-v5e", 0x1p-11, 0x1p-8);
  loses(plain, "dot_mm_f32", "H100", 0x1p-14, 0x1p-11);
  loses(plain, "dot_mm_f32", "T4", 0, 0x1p-21);
  loses(highest, "dot_highest", "tpu-v5e", 0, 0x1p-21);
  loses(highest, "dot_highest", "H100", 0, 0x1p-21);
}

/* ---- */

static const char *const devices[] = {"tpu-v3", "tpu-v5p", "T4", "A100-80GB"};

int main(void) {
  manifest = golden_manifest();
  if (!manifest) return 1;
  const cJSON *programs = cJSON_GetObjectItem(manifest, "programs"), *p;
  GoldenTests tests = {0};
  *vec_push(&tests) = (struct CMUnitTest)cmocka_unit_test(precision_shows);
  cJSON_ArrayForEach(p, programs) for (int i = 0; i < COUNT_OF(devices); i++)
      golden_add(&tests, p, devices[i], ".mlirbc", golden);
  int failed = golden_run_all("golden on chips", &tests);
  cJSON_Delete(manifest);
  return failed;
}
