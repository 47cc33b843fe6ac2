/* chip: every file of data/chips is whole and sourced, names of clouds find their chips, mistakes
 * name file and line. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "chip/slice.h"

#include <stdlib.h>

static const Chip *find(const char *name) {
  const Chip *c = NULL;
  Err *e = chip_find(name, &c);
  if (e) err_report(e);
  assert_null(e);
  return c;
}

static void test_catalogue(void **state) {
  (void)state;
  const Chip *const *all;
  int n;
  assert_null(chip_list(&all, &n));
  assert_true(n >= 21);
  for (int i = 0; i < n; i++) {
    const Chip *c = all[i];
    assert_true(c->clock > 1e8 && c->clock < 1e10);
    assert_true(c->peak_flops > 1e12);
    assert_true(c->hbm_bandwidth > 1e11 && c->hbm_bandwidth < 2e13);
    assert_true(c->hbm_usable > 1e9 && c->power_busy > c->power_idle);
    assert_ptr_equal(find(c->name), c);
  }
  assert_int_equal(find("tpu-v3")->devices_per_chip, 2);
  assert_int_equal(find("tpu-v4")->devices_per_chip, 1);
  assert_true(chip_num(find("A100-80GB"), "sms", 0) == 108);
}

/* What a chip's file leaves out is its kind's, what it gives is its own; nothing is there twice. */
static void test_family(void **state) {
  (void)state;
  const Chip *gpu = find("H100-SXM"), *other = find("MI300X"), *tpu = find("tpu-v5e");
  assert_true(chip_num(gpu, "fit.scatter_32", 0) == 1.7 &&
              chip_num(other, "fit.scatter_32", 0) == 1.7);
  assert_true(chip_num(gpu, "fit.wave", NAN) == 0 && chip_num(find("V100"), "fit.wave", 0) == 1e-6);
  assert_null(chip_fact(tpu, "fit.scatter_32"));
  assert_true(chip_num(tpu, "pass_start", 0) == 1e-6 && !chip_fact(gpu, "pass_start"));
  for (int i = 0; i < gpu->n_facts; i++)
    assert_ptr_equal(chip_fact(gpu, gpu->facts[i].key), &gpu->facts[i]);
  assert_null(chip_fact(gpu, "nothing"));
}

/* Every number says how it is known. */
static void test_sources(void **state) {
  (void)state;
  const Chip *const *all;
  int n, bad = 0;
  assert_null(chip_list(&all, &n));
  for (int i = 0; i < n; i++)
    for (int k = 0; k < all[i]->n_facts; k++) {
      const ChipFact *f = &all[i]->facts[k];
      if (isnan(f->num) || chip_how(f)) continue;
      print_message("%s:%d: %s = %s: %s\n", all[i]->file, f->line, f->key, f->text, f->source);
      bad++;
    }
  assert_int_equal(bad, 0);
}

static void test_names(void **state) {
  (void)state;
  static const struct {
    const char *name, *chip;
    int devices;
  } names[] = {
      {"tpu-v3-8", "tpu-v3", 8},
      {"tpu-v2-8", "tpu-v2", 8},
      {"tpu-v5litepod-4", "tpu-v5e", 4},
      {"v5litepod-16", "tpu-v5e", 16},
      {"tpu-v4-8", "tpu-v4", 4},
      {"A100-80GB:8", "A100-80GB", 8},
      {"T4", "T4", 0},
      {"t4", "T4", 0},
      {"V100:4", "V100", 4},
      {"H100", "H100-SXM", 0},
      {"tpu-v6e-8", "tpu-v6e", 8},
      {"tpu7x", "tpu7x", 0},
      {"tpu7x-8", "tpu7x", 8},
      {"tpu7x:4x4x4", "tpu7x", 128},
      {"tpu7x-4x4x4", "tpu7x", 128},
      {"v5e:4x4", "tpu-v5e", 16},
      {"v5:2x2x2", "tpu-v5p", 8},
      {"v5:2x2x2:2", "tpu-v5p", 16},
      {"v6e-256", "tpu-v6e", 256},
      {"h100-mega-80gb-8", "H100-SXM", 8},
      {"gb200:72", "GB200", 72},
      {"a3-ultragpu-8g", "H200", 8},
      {"dgx-h100:2", "H100-SXM", 16},
  };
  for (int i = 0; i < COUNT_OF(names); i++) {
    ChipRef r;
    Err *e = chip_parse(names[i].name, &r);
    if (e) err_report(e);
    assert_null(e);
    assert_string_equal(r.chip->name, names[i].chip);
    if (names[i].devices) assert_int_equal(r.devices, names[i].devices);
  }
  ChipRef r;
  static const char *const wrong[] = {"",
                                      "tpu-v9",
                                      "T4:0",
                                      "T4:-2",
                                      "T4:x",
                                      "tpu-v3-",
                                      "tpu-v3-7",
                                      "tpu-v5e-3",
                                      "tpu-v3-12",
                                      ":",
                                      "A100-80GB:99999999999999999999",
                                      "tpu-v3-0",
                                      "T4:1000001",
                                      "tpu-v3-1000000:1000000",
                                      "tpu-v5e-100000",
                                      "v5e-512",
                                      "v5e:32x32",
                                      "v5e:4x",
                                      "v5e:0x4",
                                      "A100:2x2",
                                      "A100-12"};
  for (int i = 0; i < COUNT_OF(wrong); i++) {
    Err *e = chip_parse(wrong[i], &r);
    if (!e) print_message("accepted: '%s'\n", wrong[i]);
    assert_non_null(e);
    err_free(e);
  }
}

/* As libtpu's topologies of these names have them; x fastest. */
static void test_slices(void **state) {
  (void)state;
  static const struct {
    const char *name;
    ChipSlice want;
  } slices[] = {
      {"v5e:4x4", {{4, 4, 1}, 16, 1}},     {"tpu-v5e-8", {{2, 4, 1}, 8, 1}},
      {"v4-128", {{4, 4, 4}, 64, 1}},      {"v5p-512", {{4, 8, 8}, 256, 1}},
      {"v4-8", {{2, 2, 1}, 4, 1}},         {"v5p-16", {{2, 2, 2}, 8, 1}},
      {"v5:2x2x2:2", {{2, 2, 2}, 8, 2}},   {"v5p-8:2", {{2, 2, 1}, 4, 2}},
      {"tpu7x-4x4x4", {{4, 4, 4}, 64, 1}}, {"tpu-v2-8", {{2, 2, 1}, 4, 1}},
      {"A100-80GB:8", {{8, 1, 1}, 8, 1}},  {"v6e-256", {{16, 16, 1}, 256, 1}},
      {"v5e:1024", {{16, 16, 1}, 256, 4}}, {"a3-mega:2", {{16, 1, 1}, 16, 1}},
  };
  for (int i = 0; i < COUNT_OF(slices); i++) {
    ChipRef ref;
    assert_null(chip_parse(slices[i].name, &ref));
    assert_memory_equal(&ref.slice, &slices[i].want, sizeof ref.slice);
  }
  ChipRef ref;
  int64_t at[3];
  assert_null(chip_parse("v5e:4x4", &ref));
  slice_place(&ref.slice, 6, at);
  assert_true(at[0] == 2 && at[1] == 1 && at[2] == 0);
}

/* Does reading this text fail, with this in the message? */
static void fails(const char *text, const char *part) {
  Arena *a = arena_new();
  Chip *c;
  Err *e = chip_read(a, "dir/x.chip", str_from(text), &c);
  assert_non_null(e);
  char *said = err_text(e);
  if (!strstr(said, part)) print_message("no '%s' in: %s\n", part, said);
  assert_non_null(strstr(said, part));
  free(said);
  err_free(e);
  arena_free(a);
}

static void test_errors(void **state) {
  (void)state;
  fails("name = a # s\nclock 3\n", "x.chip:2");
  fails("name = a # s\nclock = 1 parsec # s\n", "x.chip:2");
  fails("name = a # s\nclock = 1 GHz\n", "x.chip:2"); /* no source */
  fails("name = a # s\nname = b # s\n", "x.chip:2");  /* twice */
  fails("name = a # s\n", "x.chip");                  /* incomplete */
  fails("\xff\x00\x01", "x.chip");
#define CHIP_WITH(devices)                                                   \
  "name = a # s\nkind = tpu # s\nclock = 1 GHz # s\nhbm = 1 GiB # s\n"       \
  "hbm_bandwidth = 1 GB/s # s\npower_idle = 1 W # s\npower_busy = 1 W # s\n" \
  "devices_per_chip = " devices " # s\n"
  fails(CHIP_WITH("1e18"), "x.chip:8");
  fails(CHIP_WITH("1.5"), "x.chip:8");
  fails(CHIP_WITH("1") "cores_per_device = -1 # s\n", "x.chip:9");
  fails(CHIP_WITH("1"), "peak_bf16");
  fails(CHIP_WITH("1") "peak_bf16 = 9 TFLOPS # s\n", "TFLOP/s"); /* the units there are */
  fails("name = a # s\nkind = tpu # s\ndevices_per_chip = 1 # s\nclokc = 1 GHz # s\n",
        "is it 'clokc' in line 4?");
}

/* A copy of another chip's file, some lines changed, beside the catalogue. */
static void test_agree(void **state) {
  (void)state;
  static const struct {
    const char *line, *said;
  } cases[] = {{"aliases = copy, v5e # s", "'v5e' is a name of tpu-v5e, too"},
               {"vmem = 128 Mib # s", "'vmem' is a number with a unit ("},
               {"own = 3 apples # s", NULL}};
  for (int i = 0; i < COUNT_OF(cases); i++) {
    Arena *a = arena_new();
    Chip *c;
    char *text = xasprintf(CHIP_WITH("1") "peak_bf16 = 9 TFLOP/s # s\n%s\n", cases[i].line);
    assert_null(chip_read(a, "x.chip", str_from(text), &c));
    Err *e = chip_check(c);
    char *said = e ? err_text(e) : NULL;
    if (!cases[i].said) assert_null(e);
    else if (!said || !strstr(said, cases[i].said) || !strstr(said, "x.chip:10"))
      fail_msg("no '%s' in: %s", cases[i].said, said ? said : "no error");
    free(said);
    err_free(e);
    free(text);
    arena_free(a);
  }
}

static void test_prices(void **state) {
  (void)state;
  const Offer *o;
  int n;
  assert_null(chip_offers(&o, &n));
  assert_true(n > 100);
  for (int i = 0; i < n; i++) assert_true(o[i].cloud && o[i].region && o[i].date);
  for (int i = 1; i < n; i++) assert_true(offer_is_suspect(&o[i - 1]) <= offer_is_suspect(&o[i]));
  const Offer *best = NULL;
  double usd = chip_price(find("T4"), false, &best);
  assert_true(usd > 0.05 && usd < 2 && best && !offer_is_retired(best));
  chip_price(find("A100-80GB"), false, &best);
  assert_true(best && !offer_is_suspect(best));
  chip_price(find("K80"), false, &best);
  assert_true(best && !offer_is_retired(best) &&
              !offer_is_part(best));              /* though another is lower */
  Price p = chip_rent(find("tpu-v2"), 0.5, NULL); /* a core: the machine has eight */
  assert_true(p.offer && p.machines == 1 && p.share == 0.125 && p.usd_hour == p.offer->usd_hour);
  p = chip_rent(find("tpu-v2"), 0.5, &(PriceAsk){.region = "europe", .spot = true});
  assert_true(p.offer && !strncmp(p.offer->region, "europe", 6) &&
              p.usd_hour == p.offer->spot_hour);
  p = chip_rent(find("L4"), 1, NULL);
  assert_true(p.offer && !offer_is_part(p.offer));
  p = chip_rent(find("T4"), 100, &(PriceAsk){.clouds = "aws,azure"});
  assert_true(p.offer && p.machines > 1 && strcmp(p.offer->cloud, "gcp"));
  assert_null(chip_rent(find("T4"), 1, &(PriceAsk){.clouds = "nobody"}).offer);
  assert_true(chip_price(find("H100-SXM"), false, NULL) > chip_price(find("T4"), false, NULL));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_catalogue), cmocka_unit_test(test_family),
      cmocka_unit_test(test_sources),   cmocka_unit_test(test_names),
      cmocka_unit_test(test_slices),    cmocka_unit_test(test_errors),
      cmocka_unit_test(test_agree),     cmocka_unit_test(test_prices)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
